"""Measures of what a generator is given: contexts and the nuggets they hold. Relevant: the grade is `rel` or better.

They are of what was retrieved; no generated text is judged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weir.core.intents import JudgedIntents
from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.measures.library.arithmetic import place, ratio
from weir.measures.library.diversity import intents_of
from weir.measures.measure import measure

__all__ = ["ContextPrecision", "NuggetRecall"]

VITAL_WEIGHT = 1.0
"""How much a nugget must count, at least, to be vital."""


@measure("ContextPrecision")
def ContextPrecision(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """The mean, over the relevant documents among the first k, of the precision where each stands.

    AP divides by all relevant documents, this by those found: what was missed costs nothing, and one relevant document
    at rank 1 scores 1 whatever stands below. It can fall when one more is found. 0 where none was. ragas computes it as
    context_precision (with 1e-10 added to the divisor), DeepEval as contextual precision, both of labels that a model
    gives; ragas' id_based_context_precision is another measure, SetP. Source: documentation of ragas 0.3 and of
    DeepEval.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    precision = (place(query) + 1) / j.rank[rows]
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
    """Share of the nuggets of a query that a document within the first k supports; also called context recall.

    importance: "all" counts every nugget alike, "vital" the vital ones alone, "weighted" each by its weight, 1 for
    vital ones and 0.5 for those that are okay. partial: what a nugget counts that no document supports with a grade of
    `rel` and one with a grade above 0, 0 to 1. All nuggets count that the judgments name, also those that no document
    supports, which StRecall leaves out. nuggetizer scores answers so: strict_all_score and strict_vital_score with
    partial=0, all_score and vital_score with partial=0.5; here the first k documents stand for the answer.
    Source: Pradeep et al. 2025 (AutoNuggetizer, TREC 2024 RAG); nuggetizer core/metrics.py; ragas context_recall, whose
    nuggets are statements.
    """
    seen = intents_of(j)

    def served(least: float) -> Float64:
        return (np.bincount(seen.found(k, least)[0], minlength=len(seen.qrels.query)) > 0).astype(np.float64)

    return nuggets_found(seen, served, importance, partial, rel)


def nuggets_found(
    seen: JudgedIntents, served: Callable[[float], Float64], importance: str, partial: float, rel: float
) -> Float64:
    """The weighted share of nuggets found, float64[Q].

    served: for each nugget how far (or how likely) a document of at least this grade is among those looked at,
    float64[P].
    """
    weight = np.ones(len(seen.qrels.query)) if seen.qrels.weight is None else seen.qrels.weight
    if importance != "weighted":
        weight = np.ones(len(weight)) if importance == "all" else (weight >= VITAL_WEIGHT).astype(np.float64)
    found = (1.0 - partial) * served(rel)
    if partial:
        found = found + partial * served(min(rel, float(np.nextafter(0.0, 1.0))))
    return ratio(seen.total(weight * found), seen.total(weight))
