"""Measures of retrieved contexts and their nuggets, not of generated text. Relevant: the grade is `rel` or
better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weir.core.judged import Judged, JudgedIntents
from weir.core.strings import Float64
from weir.measures.library.arithmetic import place_in_query, ratio
from weir.measures.library.diversity import intents_of
from weir.measures.measure import measure

__all__ = ["ContextPrecision", "NuggetRecall"]

VITAL_WEIGHT = 1.0
"""Least weight of a vital nugget."""


@measure("ContextPrecision")
def ContextPrecision(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """The mean, over the relevant documents among the first k, of the precision at the rank of each.

    Unlike AP, misses cost nothing, and finding one more can lower the value; 0 if none is found. It is ragas'
    context_precision and DeepEval's contextual precision; ragas' id_based_context_precision is SetP.

    Source: documentation of ragas 0.3 and of DeepEval.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    precision = (place_in_query(query) + 1) / j.rank[rows]
    return ratio(j.total(query, precision), j.per_query(j.query, rows))


@measure(
    "NuggetRecall",
    choices={"importance": ("all", "vital", "weighted")},
    within={"partial": (0.0, 1.0)},
    of="intents",
)
def NuggetRecall(
    j: Judged, *, k: int | None = None, importance: str = "all", partial: float = 0.0, rel: float = 1
) -> Float64:
    """Share of a query's nuggets that a document within the first k supports; also called context recall.

    All judged nuggets count, also unsupported ones, unlike in StRecall.

    importance: "all" counts every nugget alike, "vital" only vital ones, "weighted" by weight: 1 for vital,
        0.5 for okay.
    partial: credit, 0 to 1, for a nugget supported only with a grade above 0 and below `rel`; nuggetizer's
        strict scores have 0, its others 0.5.

    Source: Pradeep et al. 2025 (AutoNuggetizer, TREC 2024 RAG); nuggetizer core/metrics.py; ragas
    context_recall, whose nuggets are statements.
    """
    seen = intents_of(j)

    def served(least: float) -> Float64:
        return (np.bincount(seen.found(k, least)[0], minlength=len(seen.qrels.query)) > 0).astype(np.float64)

    return nuggets_found(seen, served, importance, partial, rel)


def nuggets_found(
    seen: JudgedIntents, served: Callable[[float], Float64], importance: str, partial: float, rel: float
) -> Float64:
    """Return the share of each query's nuggets that are found, float64[queries]; 0 without nuggets.

    served: maps a grade to the probability that a document of at least this grade was seen, float64[nuggets].
    importance: "all" counts every nugget alike, "weighted" by its weight, "vital" only vital ones.
    partial: credit for a grade above 0 but below `rel`.
    """
    weight = np.ones(len(seen.qrels.query)) if seen.qrels.weight is None else seen.qrels.weight
    if importance != "weighted":
        weight = np.ones(len(weight)) if importance == "all" else (weight >= VITAL_WEIGHT).astype(np.float64)
    found = (1.0 - partial) * served(rel)
    if partial:
        found = found + partial * served(min(rel, float(np.nextafter(0.0, 1.0))))
    return ratio(seen.total(weight * found), seen.total(weight))
