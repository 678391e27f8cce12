"""The range of a score over all possible judgments of the unjudged documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, Int64, Strings
from weir.errors import BadValue
from weir.files.parsers import distinct_strings
from weir.measures.library.arithmetic import found_gains, gain_of, place_in_query, ratio
from weir.measures.library.gains import divisor_at
from weir.measures.measure import Measure, parse_measure
from weir.stats.power import detectable, excess_kurtosis

MEASURE = parse_measure("nDCG@10")
RISING = {"AP", "DCG", "ERR", "P", "R", "RBP", "RR", "R_cap", "SDCG", "Success", "nDCG"}
"""Measures that never fall if a relevant document moves above a less relevant document."""
MOST_RANKS = 100
CELLS = 1 << 21
"""Cells of the tables of gains and ideals in memory at once, 8 bytes each."""


@dataclass(frozen=True, eq=False)
class Unjudged:
    """Unjudged documents in the top k of several runs, for judged queries."""

    qrels: Qrels
    """The judgments; their documents include the runs'."""
    query: Int32
    """int32[n], ascending; `doc` ascending within it."""
    doc: Int32
    rank: Int64
    """int64[n]: best rank in any run."""
    grade: float
    """Grade of an unjudged document that turns out relevant: the highest judged or given by other labels."""

    @staticmethod
    def of(runs: Sequence[Run], qrels: Qrels, k: int, highest: float = 0) -> Unjudged:
        """Return the unjudged documents in any run's top k, for judged queries; `highest`, if above the
        grades in `qrels`, is the grade that they may get.
        """
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
        grade = max(highest, float(qrels.grade.max(initial=0))) or 1.0
        return Unjudged(wider, query[rows].astype(np.int32), doc[rows].astype(np.int32), rank[rows], grade)

    def ranks_in(self, run: Run, k: int) -> Int64:
        """Return each unjudged document's rank in a run, int64[n]; k + 1 if not in its top k."""
        top, docs = run.top(k), len(self.qrels.docs)
        query = self.qrels.queries.codes(top.queries.strings)[top.query_of_row()].astype(np.int64)
        pair = query * docs + self.qrels.docs.codes(top.docs.strings)[top.doc]
        mine = self.query.astype(np.int64) * docs + self.doc
        ranks = np.full(len(mine), k + 1)
        at = np.searchsorted(mine, pair)
        among = (at < len(mine)) & (query >= 0)
        among[among] = mine[at[among]] == pair[among]
        ranks[at[among]] = top.ranks()[among]
        return ranks

    def filled(self, relevant: NDArray[np.bool_]) -> Qrels:
        """Return the judgments plus the unjudged documents where `relevant`, bool[n], at the highest grade."""
        qrels = self.qrels
        return Qrels.from_columns(
            qrels.queries,
            qrels.docs,
            np.concatenate([qrels.query_of_row(), self.query[relevant]]),
            np.concatenate([qrels.doc, self.doc[relevant]]),
            np.concatenate([qrels.grade, np.full(int(relevant.sum()), self.grade)]),
        )


@dataclass(frozen=True, eq=False)
class ScoreBounds:
    """Bounds of a measure for each judged query, float64[queries] each."""

    low: Float64
    """Minimum over all possible judgments of the unjudged documents, grades 0 to the highest; `high` is the maximum."""
    score: Float64
    """Reported score: all unjudged documents count as not relevant."""
    high: Float64


def score_bounds(
    runs: Mapping[str, Run], qrels: Qrels, measure: Measure = MEASURE, highest: float = 0
) -> dict[str, ScoreBounds]:
    """Return {run: bounds of each query's score} over all possible judgments of unjudged documents in any
    run's top k.

    highest: grade that they may get, if above the largest in `qrels`.

    Raises BadValue for a measure of unknown bounds, or without a cut-off of at most MOST_RANKS.
    """
    k = _cutoff(measure)
    unjudged = Unjudged.of(list(runs.values()), qrels, k, highest)
    bounds_of = {}
    for name, run in runs.items():
        top = run.top(k)
        if measure.name != "nDCG":
            bounds_of[name] = _bounds_by_filling(top, unjudged, measure)
            continue
        score = measure.per_query(Judged.of(top, unjudged.qrels))
        zero = np.zeros(len(score)), np.zeros(len(unjudged.rank))
        own = discounted(top, unjudged, measure)
        low, high = -most_above(zero, own, unjudged, measure), most_above(own, zero, unjudged, measure)
        bounds_of[name] = ScoreBounds(np.minimum(low, score), score, np.maximum(high, score))
    return bounds_of


def _cutoff(measure: Measure) -> int:
    k, gain = measure.cutoff, dict(measure.settings).get("gain", "linear")
    # The gain "scaled" divides by the highest grade of the judgments.
    table = gain not in ("linear", "exp", "binary") and measure.name != "nDCG"
    if measure.name not in RISING or measure.condensed or k is None or k > MOST_RANKS or table:
        names = ", ".join(f"{name}@k" for name in sorted(RISING))
        raise BadValue(f"{measure} has no score bounds; they are known of {names}, for k up to {MOST_RANKS}")
    return k


def _bounds_by_filling(run: Run, unjudged: Unjudged, measure: Measure) -> ScoreBounds:
    def query_values(relevant: NDArray[np.bool_]) -> Float64:
        return measure.per_query(Judged.of(run, unjudged.filled(relevant)))

    # Giving all relevant documents the highest grade suffices. If m unjudged documents of a ranking are
    # relevant, the measure is largest for the first m and no other document, and smallest for the last m and
    # all unjudged ones of other runs.
    k = measure.cutoff or MOST_RANKS
    rank = unjudged.ranks_in(run, k)
    returned = rank <= k
    order = np.lexsort((rank, unjudged.query))
    per_query = np.bincount(unjudged.query[returned], minlength=len(unjudged.qrels))
    nth = np.empty(len(order), np.int64)
    nth[order] = place_in_query(unjudged.query[order])
    behind = per_query[unjudged.query] - 1 - nth
    score = query_values(np.zeros(len(rank), np.bool_))
    low, high = np.minimum(score, query_values(~returned)), score
    for count in range(1, int(per_query.max(initial=0)) + 1):
        high = np.maximum(high, query_values(returned & (nth < count)))
        low = np.minimum(low, query_values(~returned | (behind < count)))
    return ScoreBounds(low, score, high)


def discounted(run: Run, unjudged: Unjudged, measure: Measure) -> tuple[Float64, Float64]:
    """Return (nDCG's numerator over judged documents, float64[queries]; discount at each unjudged document's
    rank, 0 beyond the top k).
    """
    gain, base, discount = _settings(measure)
    k = measure.cutoff or MOST_RANKS
    query, judged_rank, worth = found_gains(Judged.of(run, unjudged.qrels), k, gain)
    judged = np.bincount(
        query, worth / divisor_at(judged_rank, base, discount), minlength=len(unjudged.qrels)
    )
    rank = unjudged.ranks_in(run, k)
    weight = np.where(rank <= k, 1 / divisor_at(rank, base, discount), 0.0)
    return judged.astype(np.float64), np.asarray(weight, np.float64)


def _settings(measure: Measure) -> tuple[str, float, str]:
    settings = dict(measure.settings)
    base = float(settings.get("base", 2.0))
    return str(settings.get("gain", "linear")), base, str(settings.get("discount", "trec"))


def most_above(
    over: tuple[Float64, Float64], under: tuple[Float64, Float64], unjudged: Unjudged, measure: Measure
) -> Float64:
    """Return each query's largest possible nDCG of `over` minus `under` over all judgments, float64[queries].

    Both are from `discounted`; zeros for `under` give the largest score of a run.
    """
    # With n[g] unjudged documents gaining g or more, the numerator is largest if those of the largest weights
    # gain most. Numerator and ideal are then sums over the levels g, so that the largest `numerator - value *
    # ideal` is found level by level, and a value at which it is 0 is the maximum (Dinkelbach 1967). Above a
    # level are fewer judged documents than above one below it, so another relevant document costs the ideal
    # more: for values from 0 the best n[g] falls with g, as it must; for others it would rise, and the best
    # that does not is the same n at each level. Between two judged gains n[g] is constant, so that no gain
    # between them goes further.
    gain, base, discount = _settings(measure)
    queries, k = len(unjudged.qrels), measure.cutoff or MOST_RANKS
    levels = np.unique(gain_of(np.append(unjudged.qrels.grade, unjudged.grade), gain))
    levels = levels[levels > 0]
    steps = np.diff(levels, prepend=0.0)
    ideals = np.append(0.0, np.cumsum(1 / divisor_at(np.arange(1, k + 1), base, discount)))
    level = np.searchsorted(levels, gain_of(unjudged.qrels.grade, gain), side="right")
    above = np.zeros((queries, len(levels) + 1), np.int64)
    np.add.at(above, (unjudged.qrels.query_of_row(), level), 1)
    above = above[:, ::-1].cumsum(axis=1)[:, -2::-1]  # how many judged documents gain as much as each level
    # Sums of the n largest weights of each query, float64[Q, N + 1], -inf beyond its number of documents.
    weight = over[1] - under[1]
    order = np.lexsort((-weight, unjudged.query))
    query, weight = unjudged.query[order], weight[order]
    zero = weight == 0
    used = ~zero | (np.cumsum(zero) - np.cumsum(zero)[np.searchsorted(query, query)] < k)
    query, weight = query[used], weight[used]  # more than k without a weight change no ideal
    nth = place_in_query(query)
    table = np.full((queries, int(nth.max(initial=-1)) + 2), -np.inf)
    table[:, 0] = 0.0
    table[query, nth + 1] = weight
    weights = np.cumsum(table, axis=1)
    first = over[0] - under[0]
    rows = max(1, CELLS // max(1, len(levels) * weights.shape[1]))
    parts = [
        _largest_ratio(first[a : a + rows], weights[a : a + rows], above[a : a + rows], steps, ideals)
        for a in range(0, queries, rows)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _largest_ratio(
    first: Float64, weights: Float64, above: Int64, steps: Float64, ideals: Float64
) -> Float64:
    queries, levels = above.shape
    count = np.arange(weights.shape[1])
    ideal = ideals[np.minimum(above[:, :, None] + count, len(ideals) - 1)]
    at = np.arange(queries)
    value = ratio(first, ideal[:, :, 0] @ steps)
    while True:
        by_level = (weights[:, None, :] - np.maximum(value, 0)[:, None, None] * ideal).argmax(axis=2)
        alike = (weights * steps.sum() - value[:, None] * np.einsum("l,qln->qn", steps, ideal)).argmax(axis=1)
        n = np.where((value >= 0)[:, None], by_level, alike[:, None])
        numerator = first + np.take_along_axis(weights, n, 1) @ steps
        better = ratio(numerator, ideal[at[:, None], np.arange(levels), n] @ steps)
        if not (better > value).any():
            return value
        value = np.maximum(better, value)


def turning_pairs(
    runs: Mapping[str, Run], qrels: Qrels, measure: Measure = MEASURE
) -> dict[tuple[str, str], bool]:
    """Return {(better run, worse run): detected} for unequal means that judging the unjudged documents could
    equalise or reverse.

    detected: the default test finds such a difference with a power of 80%; False for one query.

    Raises BadValue unless `measure` is an nDCG with known bounds.
    """
    k = _cutoff(measure)
    unjudged = Unjudged.of(list(runs.values()), qrels, k)
    score = {name: measure.per_query(Judged.of(run.top(k), qrels)) for name, run in runs.items()}
    ordered = sorted(runs, key=lambda name: -float(score[name].mean()))
    columns = {name: discounted(run.top(k), unjudged, measure) for name, run in runs.items()}
    pairs = {}
    for better, worse in combinations(ordered, 2):
        differences = score[better] - score[worse]
        if (
            differences.mean() > 0
            and most_above(columns[worse], columns[better], unjudged, measure).mean() >= 0
        ):
            pairs[better, worse] = len(differences) > 1 and float(differences.mean()) >= detectable(
                float(differences.std(ddof=1)), len(differences), kurtosis=excess_kurtosis(differences[None])
            )
    return pairs
