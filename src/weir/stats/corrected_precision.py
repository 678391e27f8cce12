"""Precision from a model's labels and their errors on the pairs that people judged too, after Rogan and Gladen."""

from __future__ import annotations

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.distributions import student_quantile
from weir.stats.prediction_powered import LEVEL, Estimate, corrected_share

__all__ = ["corrected_precision"]


def corrected_precision(labelled: Float64, relevant: Float64, confusion: Float64, k: int) -> Estimate:
    """The mean precision at k that people would give, had the model the same errors on all pairs.

    labelled, relevant: float64[Q], how many of the first k documents of each query the model labelled, and called
    relevant; confusion: float64[Q, 2, 2], those of them that people judged too, by the human label (0, 1) and the
    model's. The share that the model calls relevant is corrected by its sensitivity and specificity; errors are
    linearised over queries, so that pairs of a query need not be independent (the limit of a bootstrap of queries),
    with Student's t by the queries that people judged; the interval is that of `corrected_share`. Raises BadValue where
    people gave one label alone, and as `corrected_share`. Source: Rogan and Gladen 1978; linearised as Binder 1983.
    """
    cells = confusion.sum(axis=0)
    negative, positive = cells.sum(axis=1).tolist()
    if not negative or not positive:
        raise BadValue("people gave one label alone, so that the model's errors are not known; judge more")
    sensitivity, specificity = float(cells[1, 1]) / positive, float(cells[0, 0]) / negative
    slope = sensitivity + specificity - 1
    queries, all_labelled = len(labelled), float(labelled.sum())
    apparent = float(relevant.sum()) / all_labelled
    # Of the first k places some hold nothing that was labelled: these are not relevant.
    filled = all_labelled / queries / k
    of_positive = (confusion[:, 1, 1] - sensitivity * confusion[:, 1].sum(axis=1)) / positive
    of_negative = (confusion[:, 0, 0] - specificity * confusion[:, 0].sum(axis=1)) / negative
    moved = filled * ((relevant - apparent * labelled) / all_labelled + of_negative)
    moved = moved + (apparent + specificity - 1) * (labelled / k - filled) / queries
    moved_slope = of_positive + of_negative
    judged = int((confusion.sum(axis=(1, 2)) > 0).sum())
    few = judged / max(1, judged - 1)
    errors = (
        few * float(moved @ moved),
        few * float(moved @ moved_slope),
        few * float(moved_slope @ moved_slope),
    )
    times = student_quantile((1 + LEVEL) / 2, max(1, judged - 1))
    return corrected_share(filled * (apparent + specificity - 1), slope, errors, times)
