"""The figures that BIRCO's program prints, beside the scores by the measures that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import between, count, percent_points, percent_step, score
from weir.core.run import Run
from weir.core.short_names import short_names
from weir.core.strings import Int64
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, parse_measure
from weir.stats.score_rows import result_rows

SEED = 42
TRIALS = 1000
RELEVANT_GRADE = 1
"""Lowest grade that counts as relevant for recall and MAP, also for fractional grades."""
RANKS_READ = 10
"""Ranks of a ranking and its pool that BIRCO's nDCG reads, even if they are missing."""


@dataclass(frozen=True)
class _BircoMeasure:
    """A measure that BIRCO's program prints, as computed and as its name promises."""

    line: str
    """Name in the program's output of resampled means."""
    own: Measure
    """The measure that the program computes."""
    plain: Measure
    """The measure that its name promises."""
    leaves_out: bool
    """True if the program's mean skips queries without a document of grade 1 or more."""


BIRCO_MEASURES: dict[str, _BircoMeasure] = {
    name: _BircoMeasure(line, parse_measure(own), parse_measure(plain), leaves_out)
    for name, line, own, plain, leaves_out in (
        ("R@5", "R@5", "R@5", "R@5", True),
        ("R@10", "R@100", "R@10", "R@10", True),
        ("R@20", "R@20", "R@20", "R@20", True),
        ("R@100", "R@100", "R@100", "R@100", True),
        ("nDCG@10", "NDCG", "nDCG@10", "nDCG@10", False),
        ("MRR@10", "MRR", "RR(of='best', rel=0.001)@10", "RR@10", False),
        ("MAP", "MAP", "AP", "AP", True),
    )
}
"""BIRCO's measures by their names without resampling. MRR@10 looks for the documents of the query's highest grade;
two lines of resampled means are named R@100, and the first is R@10."""


@dataclass(frozen=True)
class BircoScore:
    """A figure that BIRCO's program prints under a measure's name, and the score by this measure."""

    dataset: str
    system: str
    measure: str
    """BIRCO's name."""
    line: str
    """Name in BIRCO's output."""
    definition: str
    """The measure that BIRCO computes, by Weir's name."""
    mean: float
    """Mean over the `queries` that count for BIRCO."""
    queries: int
    printed: float
    """Mean of 1,000 bootstrap means, which BIRCO prints as the score."""
    deviation: float
    """Standard deviation of these means (divided by n), printed after a plus-minus sign."""
    plain: str
    """The measure that the name promises."""
    score: float
    """Mean of `plain` over all judged queries; `low` and `high` are its 95% interval."""
    low: float
    high: float
    resampling: float
    """printed - mean. The three differences sum to printed - score."""
    left_out: float
    """Difference from leaving out queries."""
    best_grade: float
    """Difference from looking for the highest grade only."""


def birco_scores(qrels: Qrels, run: Run, dataset: str = "", system: str = "") -> list[BircoScore]:
    """Return the figures that BIRCO's program prints for a run, with the scores by the measures that it
    names.

    system: name in the result, by default the run's.

    Raises BadValue unless the run ranks exactly each query's judged documents, or if no grade is 1 or more.
    """
    # Wang et al. 2024, evaluation/rank2metric.py of its repository at 84b2b05.
    name = system or run.name
    ranked = {query: set(docs) for query, docs in run.to_dict().items()}
    for query, judged in qrels.to_dict().items():
        docs = ranked.get(query, set())
        missing, strange = sorted(judged.keys() - docs), sorted(docs - judged.keys())
        if query in ranked and not missing and not strange:
            continue
        problem = f"no ranking of query '{query}'"
        if query in ranked and missing:
            problem = f"the ranking of query '{query}' leaves out '{missing[0]}'"
        elif query in ranked:
            problem = f"the ranking of query '{query}' holds '{strange[0]}', which is no candidate"
        raise BadValue(f"{name}: {problem}; BIRCO scores rankings of whole candidate pools")
    joined = Judged.of(run, qrels)
    counted = joined.relevant(RELEVANT_GRADE) > 0
    plain = scores_of(joined, tuple(one.plain for one in BIRCO_MEASURES.values()))
    scores = []
    draws: dict[
        int, Int64
    ] = {}  # of so many queries: the same for each measure, as the generator is seeded anew
    for (measure, one), row in zip(BIRCO_MEASURES.items(), result_rows(plain, dataset, name), strict=True):
        every = one.own.per_query(joined)
        values = every[counted] if one.leaves_out else every
        count = len(values)
        if not count:
            raise BadValue("no query has a document of grade 1 or more, so that BIRCO has nothing to average")
        if count not in draws:
            draws[count] = np.random.RandomState(SEED).choice(count, size=(TRIALS, count))
        means = np.mean(values[draws[count]], axis=1)
        mean, printed, over_all = float(np.mean(values)), float(np.mean(means)), float(np.mean(every))
        best_grade = 0.0 if one.own == one.plain else over_all - row.mean
        names = (dataset, name, measure, one.line, str(one.own))
        deviation, causes = float(np.std(means)), (printed - mean, mean - over_all, best_grade)
        scores.append(
            BircoScore(
                *names, mean, count, printed, deviation, str(one.plain), row.mean, row.low, row.high, *causes
            )
        )
    return scores


def birco_remarks(qrels: Qrels) -> list[str]:
    """Return warnings on queries for which BIRCO's program deviates from its measures' definitions."""
    if not len(qrels):
        return []
    starts, sizes = qrels.ptr[:-1], np.diff(qrels.ptr)
    worthless = np.logical_and.reduceat(qrels.grade <= 0, starts)
    equal = np.logical_and.reduceat(qrels.grade == qrels.grade[starts].repeat(sizes), starts)
    remarks = []
    for which, remark in (
        (
            sizes < RANKS_READ,
            f"fewer than {RANKS_READ} candidates, where BIRCO's program ends with an error (IndexError) and "
            "prints nothing; these figures are by its rules",
        ),
        (
            worthless,
            "no grade above 0, where BIRCO's program divides by zero and prints no nDCG@10; here it is 0",
        ),
        (
            equal & ~worthless,
            "all grades are equal, where BIRCO's MRR@10 leaves out the last candidate of its list; here none is",
        ),
    ):
        if which.any():
            first, *others = np.flatnonzero(which).tolist()
            more = f" and {len(others):,} others" if others else ""
            remarks.append(f"query '{qrels.queries[first]}'{more}: {remark}")
    return remarks


LEAST_SHARE = 5e-6
"""Smallest difference that is shown: half of the last digit that BIRCO prints."""


def _birco_tables(scores: Sequence[BircoScore]) -> tuple[Table, ...]:
    several = len({one.dataset for one in scores}) > 1
    head = ["system", "BIRCO's name", "printed", "score", "measure", "printed differs by"]
    lines = [["dataset", *head] if several else head]
    systems = tuple(dict.fromkeys(one.system for one in scores))
    names = dict(zip(systems, short_names(systems), strict=True))
    for one in scores:
        parts = (
            (one.resampling, "resampled means"),
            (one.left_out, f"queries left out, {count(one.queries)} count"),
            (one.best_grade, f"the highest grade alone, {one.definition}"),
        )
        reasons = [f"{percent_step(size)} {why}" for size, why in parts if abs(size) >= LEAST_SHARE]
        if one.line == "R@100" != one.measure:
            reasons.append(f"named {one.line}")
        printed = f"{percent_points(one.printed)} ± {percent_points(one.deviation)}"
        interval = f"{score(one.score)} {between(one.low, one.high)}"
        cells = [names[one.system], one.measure, printed, interval, one.plain, "; ".join(reasons)]
        lines.append([one.dataset, *cells] if several else cells)
    note = (
        "printed: the mean and deviation of 1,000 bootstrap means, times 100, a standard error and no interval; "
        "score: over all judged queries, with its 95% interval; weir compare gives verdicts"
    )
    return (table_of(lines, keys=1 + several, notes=[note]),)


BIRCO_SCORES = ResultKind("official", BircoScore, _birco_tables)
