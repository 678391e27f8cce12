"""BIRCO's official figures: its measures, and the mean and deviation of bootstrap means that it prints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import Measure, parse_measure

__all__ = ["BIRCO_MEASURES", "BircoScore", "birco_scores"]

SEED = 42
TRIALS = 1000
RELEVANT_GRADE = 1
"""Grade from which recall and MAP take a document for relevant, also where grades have fractions."""
BIRCO_MEASURES: dict[str, Measure] = {
    "R@5": parse_measure("R@5"),
    "R@10": parse_measure("R@10"),
    "R@20": parse_measure("R@20"),
    "R@100": parse_measure("R@100"),
    "nDCG@10": parse_measure("nDCG@10"),
    "MRR@10": parse_measure("RR(of='best', rel=0.001)@10"),
    "MAP": parse_measure("AP"),
}
"""What BIRCO calls a measure, and what it is here: MRR@10 looks for the documents of the query's highest grade."""
LEAVING_OUT = {"R@5", "R@10", "R@20", "R@100", "MAP"}
"""Those whose mean leaves out queries without a document of grade 1 or more."""


@dataclass(frozen=True)
class BircoScore:
    """A figure of BIRCO's rank2metric beside the plain mean.

    mean: over the queries that count; queries: how many do; printed: the mean of 1,000 bootstrap means, which BIRCO
    prints as the score; deviation: theirs, with n in the denominator, printed behind a plus-minus sign.
    """

    measure: str
    definition: str
    mean: float
    queries: int
    printed: float
    deviation: float


def birco_scores(qrels: Qrels, run: Run) -> list[BircoScore]:
    """BIRCO's figures of a ranking, to the last digit.

    The pool of a query are its judged documents, grade 0 included, and the ranking must hold all of them and no other.
    For each measure NumPy's legacy generator is seeded with 42 anew. Raises BadValue for a ranking that leaves out a
    query or a document of its pool or holds another, where BIRCO's program ends with an error. Source: Wang et al.
    2024, evaluation/rank2metric.py of its repository at 84b2b05.
    """
    _refuse_other_than_pools(qrels, run)
    joined = Judged.of(run, qrels)
    counted = joined.relevant(RELEVANT_GRADE) > 0
    found = []
    for name, measure in BIRCO_MEASURES.items():
        values = measure.per_query(joined)
        values = values[counted] if name in LEAVING_OUT else values
        means = _bootstrap_means(values)
        found.append(
            BircoScore(
                name,
                str(measure),
                float(np.mean(values)),
                len(values),
                float(np.mean(means)),
                float(np.std(means)),
            )
        )
    return found


def _bootstrap_means(values: Float64) -> Float64:
    generator = np.random.RandomState(SEED)
    count = len(values)
    if not count:
        raise BadValue("no query has a document of grade 1 or more, so that BIRCO has nothing to average")
    return np.array([np.mean(values[generator.choice(count, size=count)]) for _ in range(TRIALS)])


def _refuse_other_than_pools(qrels: Qrels, run: Run) -> None:
    ranked = {query: set(docs) for query, docs in run.to_dict().items()}
    for query, judged in qrels.to_dict().items():
        held = ranked.get(query, set())
        if held == judged.keys():
            continue
        missing, strange = sorted(judged.keys() - held), sorted(held - judged.keys())
        said = f"leaves out '{missing[0]}'" if missing else f"holds '{strange[0]}', which is no candidate"
        raise BadValue(
            f"{run.name}: the ranking of query '{query}' {said}; BIRCO scores rankings of whole candidate pools"
        )
