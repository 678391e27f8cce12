"""The corridor of a score: between which values it lies, whatever the unjudged documents are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, Severity, check
from weir.audit.holes import CUTOFF
from weir.audit.subject import Subject
from weir.core import rounding
from weir.core.ids import Ids
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64, Strings
from weir.errors import BadValue
from weir.io.runs.distinct_ids import distinct_strings
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, parse_measure

__all__ = ["Corridor", "Unjudged", "corridors", "relevance_by_rank", "turning_pairs"]

MEASURE = parse_measure(f"nDCG@{CUTOFF}")
RISING = {"AP", "DCG", "ERR", "P", "R", "RBP", "RR", "R_cap", "SDCG", "Success", "nDCG"}
"""Measures that never fall where a relevant document changes places with a worse one above it."""
BESIDE = (parse_measure(f"condensed(nDCG@{CUTOFF})"), parse_measure("RBP_residual"))
"""Other views of holes: unjudged documents leave the ranking; the weight that RBP gives to them."""
MOST_RANKS = 100
DRAWS = 50
SEED = 1


@dataclass(frozen=True, eq=False)
class Unjudged:
    """The unjudged documents among the first k of some runs' rankings, of judged queries.

    qrels: the judgments, whose documents include those of the runs; query, doc: int32[n], ascending; rank: int64[n],
    the best of it in any run; grade: what a relevant one is given, the highest that was judged.
    """

    qrels: Qrels
    query: Int32
    doc: Int32
    rank: Int64
    grade: float

    @staticmethod
    def of(runs: Sequence[Run], qrels: Qrels, k: int) -> Unjudged:
        """Find them."""
        tops = [run.top(k) for run in runs]
        codes, distinct = distinct_strings(
            Strings.concatenated([qrels.docs.strings, *(run.docs.strings for run in tops)])
        )
        wider = Qrels(qrels.queries, Ids(distinct), qrels.ptr, codes[qrels.doc].astype(np.int32), qrels.grade)
        query = np.concatenate(
            [qrels.queries.codes(run.queries.strings)[run.query_of_row()] for run in tops]
        ).astype(np.int64)
        doc = np.concatenate([wider.docs.codes(run.docs.strings)[run.doc] for run in tops])
        rank = np.concatenate([run.ranks() for run in tops])
        pair = query * len(distinct) + doc
        judged = wider.query_of_row().astype(np.int64) * len(distinct) + wider.doc
        rows = np.flatnonzero((query >= 0) & ~np.isin(pair, judged))
        rows = rows[np.lexsort((rank[rows], pair[rows]))]
        rows = rows[np.append(True, np.diff(pair[rows]) != 0)[: len(rows)]]
        grade = float(qrels.grade.max(initial=0)) if (qrels.grade > 0).any() else 1.0
        return Unjudged(wider, query[rows].astype(np.int32), doc[rows].astype(np.int32), rank[rows], grade)

    def ranks_in(self, run: Run, k: int) -> Int64:
        """The rank of each in a run's first k, k + 1 where it is not among them."""
        top, docs = run.top(k), len(self.qrels.docs)
        query = self.qrels.queries.codes(top.queries.strings)[top.query_of_row()].astype(np.int64)
        pair = query * docs + self.qrels.docs.codes(top.docs.strings)[top.doc]
        mine = self.query.astype(np.int64) * docs + self.doc
        found = np.full(len(mine), k + 1)
        at = np.searchsorted(mine, pair)
        here = (at < len(mine)) & (query >= 0)
        here[here] = mine[at[here]] == pair[here]
        found[at[here]] = top.ranks()[here]
        return found

    def filled(self, relevant: NDArray[np.bool_]) -> Qrels:
        """The judgments where these of them are relevant and the others are not judged."""
        qrels = self.qrels
        return Qrels.from_columns(
            qrels.queries,
            qrels.docs,
            np.concatenate([qrels.query_of_row(), self.query[relevant]]),
            np.concatenate([qrels.doc, self.doc[relevant]]),
            np.concatenate([qrels.grade, np.full(int(relevant.sum()), self.grade, qrels.grade.dtype)]),
        )


@dataclass(frozen=True, eq=False)
class Corridor:
    """Bounds of a measure by judged query, float64[Q] each.

    low, high: the least and the most over all ways in which the unjudged documents may be relevant or not; score: all
    of them not relevant, as it is reported; expected: the mean over draws in which each is relevant as often as judged
    documents at its best rank are, NaN where nothing is judged not relevant.
    """

    measure: str
    low: Float64
    score: Float64
    high: Float64
    expected: Float64


def corridors(
    runs: Mapping[str, Run], qrels: Qrels, measure: Measure = MEASURE, draws: int = DRAWS
) -> dict[str, Corridor]:
    """The corridor of each run's score in a measure with a cut-off k, over what is unjudged in the first k of any.

    Exact for one grade, the highest judged: of all ways in which m unjudged documents of a ranking may be relevant, the
    measure is largest where they are the first m, and nothing else is; least where they are the last m, and all that
    other runs return is relevant too. Documents that no run returns stay as they are. draws: of which what is expected
    is the mean, 0 to expect nothing. Raises BadValue for a measure of which this is not so, or without a cut-off of at
    most MOST_RANKS.
    """
    k = measure.cutoff
    if measure.name not in RISING or measure.condensed or k is None or k > MOST_RANKS:
        known = ", ".join(f"{name}@k" for name in sorted(RISING))
        raise BadValue(f"{measure} has no corridor; it is known of {known}, for k up to {MOST_RANKS}")
    unjudged = Unjudged.of(list(runs.values()), qrels, k)
    chance = relevance_by_rank([Judged.of(run, qrels) for run in runs.values()], k)
    rng = np.random.default_rng(SEED)
    count = draws if len(unjudged.rank) else min(draws, 1)
    if len(unjudged.rank) and not bool((qrels.grade <= 0).any()):
        count = 0  # all that is judged is relevant, which says nothing of what is not judged
    drawn = [
        unjudged.filled(rng.random(len(unjudged.rank)) < chance[unjudged.rank - 1]) for _ in range(count)
    ]
    return {name: _corridor(run.top(k), unjudged, measure, drawn) for name, run in runs.items()}


def _corridor(run: Run, unjudged: Unjudged, measure: Measure, drawn: Sequence[Qrels]) -> Corridor:
    def values(relevant: NDArray[np.bool_]) -> Float64:
        return measure.per_query(Judged.of(run, unjudged.filled(relevant)))

    k = measure.cutoff or MOST_RANKS
    rank = unjudged.ranks_in(run, k)
    returned = rank <= k
    order = np.lexsort((rank, unjudged.query))
    per_query = np.bincount(unjudged.query[returned], minlength=len(unjudged.qrels))
    first = np.searchsorted(unjudged.query[order], np.arange(len(unjudged.qrels)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - first[unjudged.query[order]]
    left = per_query[unjudged.query] - 1 - place
    score = values(np.zeros(len(rank), np.bool_))
    low, high = np.minimum(score, values(~returned)), score
    for count in range(1, int(per_query.max(initial=0)) + 1):
        high = np.maximum(high, values(returned & (place < count)))
        low = np.minimum(low, values(~returned | (left < count)))
    expected = (
        np.mean([measure.per_query(Judged.of(run, one)) for one in drawn], axis=0)
        if drawn
        else np.full(len(score), np.nan)
    )
    return Corridor(str(measure), low, score, high, expected)


def relevance_by_rank(joins: Sequence[Judged], k: int) -> Float64:
    """The share of relevant documents among the judged ones at each of the first k ranks, over all runs, float64[k]."""
    judged, relevant = np.zeros(k + 1), np.zeros(k + 1)
    for join in joins:
        near = join.rank <= k
        judged += np.bincount(join.rank[near], minlength=k + 1)
        relevant += np.bincount(join.rank[near & (join.grade > 0)], minlength=k + 1)
    return np.divide(relevant, judged, out=np.zeros(k + 1), where=judged > 0)[1:]


def turning_pairs(corridors: dict[str, Corridor]) -> list[tuple[str, str]]:
    """Pairs (better, worse by score) whose order of means some judgments of unjudged documents may turn round.

    Careful: the better is taken at its least and the worse at its most, though one way of judging may not do both.
    """
    means = {name: float(np.nanmean(one.score)) for name, one in corridors.items()}
    ordered = sorted(corridors, key=lambda name: -means[name])
    return [
        (better, worse)
        for better, worse in combinations(ordered, 2)
        if float(np.nanmean(corridors[better].low - corridors[worse].high))
        <= 0
        < means[better] - means[worse]
    ]


@check("corridor", needs=["runs", "qrels"])
def corridor_check(subject: Subject) -> Iterator[Finding]:
    """Between which values nDCG@10 lies whatever the unjudged documents are, and which systems may change places.

    From none of them relevant to the choice that suits best; expected, where each is relevant as often as judged
    documents at its rank are. Beside it the score of condensed lists (Sakai 2007), and what RBP leaves to unjudged
    documents (Moffat and Zobel 2008).
    """
    answering = {name: run for name, run in subject.runs.items() if subject.joins[name].answered.any()}
    found = corridors(answering, subject.need_qrels()) if answering else {}
    for name, one in found.items():
        low, score, high = (float(np.nanmean(v)) for v in (one.low, one.score, one.high))
        expected = math.nan if np.isnan(one.expected).all() else float(np.nanmean(one.expected))
        said = "" if math.isnan(expected) else f"; {rounding.score(expected)} is expected"
        views = scores_of(subject.joins[name], BESIDE).means()
        beside = ", ".join(f"{view} {rounding.score(value)}" for view, value in views.items())
        if high - low >= 0.005:
            severity: Severity = "caution" if high - low < 0.1 else "serious"
            yield Finding(
                severity,
                f"{MEASURE} {rounding.score(score)} may be anything from {rounding.score(low)} "
                f"to {rounding.score(high)} by what its unjudged documents are{said}; beside it {beside}",
                "judge what is unjudged among the first 10 of each system (weir pool)",
                (("low", low), ("score", score), ("high", high), ("expected", expected), *views.items()),
                system=name,
            )
    pairs = turning_pairs(found)
    if pairs:
        total = len(found) * (len(found) - 1) // 2
        yield Finding(
            "serious",
            f"{len(pairs):,} of {total:,} pairs of systems may change places by what unjudged documents are",
            "call the order of such a pair open until their unjudged documents are judged",
            (("pairs that may turn", float(len(pairs))), ("pairs", float(total))),
            tuple(f"{better} over {worse}" for better, worse in pairs),
        )
