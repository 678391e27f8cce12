"""Scores of systems from human judgments of few queries and a model's of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import Measure
from weir.stats.prediction_powered import Estimate, prediction_powered

__all__ = ["ESTIMABLE", "CorrectedScore", "corrected_score"]

ESTIMABLE = ("DCG", "P", "RBP", "RR", "Success")
"""Measures that depend on the labels of the documents returned alone. nDCG, AP and recall divide by what the labels say
of all documents: people's labels of few and a model's of many have other ideals, and no mean of both is defined."""


@dataclass(frozen=True)
class CorrectedScore:
    """A system's mean over all queries, as people would give it.

    human: from their judgments alone; model: mean of the model's labels over all queries, with its error; corrected: by
    prediction-powered inference, the model's error measured where people judged too; judged: share of human judgments
    among the first k documents of their queries.
    """

    system: str
    measure: str
    human_queries: int
    model_queries: int
    judged: float
    human: Estimate
    model: float
    corrected: Estimate


def corrected_score(name: str, run: Run, human: Qrels, model: Qrels, measure: Measure) -> CorrectedScore:
    """Score a run by both labels and correct the model's; the unit that was drawn is the query.

    Queries that people judged must be drawn at random among those that the model judged. Raises BadValue for a measure
    that is not of ESTIMABLE or has no cut-off, and for fewer than two queries judged by both or by the model alone.
    """
    if measure.name not in ESTIMABLE or measure.cutoff is None or measure.condensed:
        takes = ", ".join(f"{one}@k" for one in ESTIMABLE)
        raise BadValue(
            f"{measure} cannot be estimated from two kinds of labels, for its ideal ranking is another by each; "
            f"take one of {takes}"
        )
    by_model = _values(run, model, measure)
    both = model.queries.codes(human.queries.strings)
    shared = np.flatnonzero(both >= 0)
    by_human = _values(run, human, measure)[shared]
    alone = np.delete(by_model, both[shared])
    if len(shared) < 2 or len(alone) < 2:
        raise BadValue(
            f"{len(shared)} queries are judged by people and the model, {len(alone)} by the model alone; two of each "
            "are needed"
        )
    beside = by_model[both[shared]]
    return CorrectedScore(
        name,
        str(measure),
        len(shared),
        len(by_model),
        _judged_share(run, human.only(shared), measure.cutoff),
        prediction_powered(by_human, beside, alone, weight=0.0),
        float(by_model.mean()),
        prediction_powered(by_human, beside, alone),
    )


def _values(run: Run, qrels: Qrels, measure: Measure) -> Float64:
    return measure.per_query(Judged.of(run, qrels))


def _judged_share(run: Run, qrels: Qrels, k: int) -> float:
    joined = Judged.of(run, qrels)
    returned = int(np.minimum(joined.retrieved, k).sum())
    return int((joined.rank <= k).sum()) / returned if returned else 0.0
