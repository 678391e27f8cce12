"""Precision from a model's labels and their errors on the pairs that people judged too, after Rogan and Gladen."""

from __future__ import annotations

import math

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.prediction_powered import SampledMean

__all__ = ["corrected_precision"]


def corrected_precision(labelled: Float64, relevant: Float64, confusion: Float64, k: int) -> SampledMean:
    """The mean precision at k that people would give, had the model the same errors on all pairs.

    labelled, relevant: float64[Q], how many of the first k documents of each query the model labelled, and called
    relevant; confusion: float64[Q, 2, 2], those of them that people judged too, by the human label (0, 1) and the
    model's. The share that the model calls relevant is corrected by its sensitivity and specificity; the error is
    linearised over queries, so that pairs of a query need not be independent (the limit of a bootstrap of queries),
    with Student's t by the queries that people judged. Value and interval are cut at nothing here. Raises BadValue
    where people gave one label alone, and where the model is no better than chance. Source: Rogan and Gladen 1978; the
    linearisation, Binder 1983.
    """
    cells = confusion.sum(axis=0)
    negative, positive = cells.sum(axis=1).tolist()
    if not negative or not positive:
        raise BadValue("people gave one label alone, so that the model's errors are not known; judge more")
    sensitivity, specificity = float(cells[1, 1]) / positive, float(cells[0, 0]) / negative
    slope = sensitivity + specificity - 1
    if slope <= 0:
        raise BadValue(
            f"the model's labels are no better than chance (sensitivity {sensitivity:.3f}, specificity "
            f"{specificity:.3f}); they cannot be corrected"
        )
    queries, all_labelled = len(labelled), float(labelled.sum())
    apparent = float(relevant.sum()) / all_labelled
    share = (apparent + specificity - 1) / slope
    by_query = (relevant - apparent * labelled) / all_labelled
    by_query = by_query - share * (confusion[:, 1, 1] - sensitivity * confusion[:, 1].sum(axis=1)) / positive
    by_query = (
        by_query + (1 - share) * (confusion[:, 0, 0] - specificity * confusion[:, 0].sum(axis=1)) / negative
    )
    # Of the first k places some hold nothing that was labelled: these are not relevant.
    filled = all_labelled / queries / k
    moved = filled * by_query / slope + share * (labelled / k - filled) / queries
    judged = int((confusion.sum(axis=(1, 2)) > 0).sum())
    error = math.sqrt(float(moved @ moved) * judged / max(1, judged - 1))
    return SampledMean(share * filled, error, max(1, judged - 1), 1.0)
