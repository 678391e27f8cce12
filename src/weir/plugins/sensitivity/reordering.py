"""What a re-ranking did to its first stage, from run files alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64, Ids, Int64
from weir.errors import BadValue
from weir.measures.evaluate import score_run
from weir.measures.measure import Measure, direction, parse_measure
from weir.registry import check_whole
from weir.stats import permutation  # noqa: F401 - registers the test
from weir.stats.order_agreement import kendall_tau, rbo
from weir.stats.resampling import interval, ratio_interval
from weir.stats.significance import adjusted, exact_mean, p_values

# ----------
# Two orders of the same candidates, query by query: what was lost, what moved, how far, and across which borders.


RBO_PERSISTENCE = 0.9
"""How far down a reader goes on, in rank-biased overlap."""


@dataclass(frozen=True)
class WindowShape:
    """Windows of one pass from the last candidates to the first: documents of one, and how far the next is from it.

    Raises BadValue for a window below 2, a step below 1 and a step beyond the window.
    """

    window: int = 20
    step: int = 10

    def __post_init__(self) -> None:
        if self.window < 2 or not 1 <= self.step <= self.window:
            raise BadValue(
                f"windows of {self.window} every {self.step}: a window has 2 documents or more, and a step is no "
                "longer than it"
            )

    def deepest(self, count: int) -> Int64:
        """The deepest place from 1 that one pass can give the document of each place, int64[count]."""
        behind = np.maximum(0, count - self.window - np.arange(count))
        return count - self.step * -(-behind // self.step)

    def borders(self, count: int) -> Int64:
        """The places behind which a window ends, but for the last one; half a step fits on either side of each."""
        half = self.step // 2
        ends = count - self.step * np.arange(1, count // self.step + 1)
        return ends[(ends > half) & (half > 0)][::-1]


@dataclass(frozen=True)
class ReorderRules:
    """What is compared.

    k: first ranks; depth: candidates of each query, None for as many as the re-ranking's longest ranking has; block:
    places of a block; rel: least relevant grade; shape: windows whose traces are looked for. Raises BadValue for
    numbers below 1.
    """

    k: int = 10
    depth: int | None = None
    block: int = 10
    rel: float = 1
    shape: WindowShape = field(default_factory=WindowShape)

    def __post_init__(self) -> None:
        for name in ("k", "depth", "block"):
            if name != "depth" or self.depth is not None:
                check_whole(name, getattr(self, name))
        if not self.rel > 0:
            raise BadValue(f"rel is {self.rel}; expected a grade above 0")


@dataclass(frozen=True, eq=False)
class OrderChanges:
    """The changes of each query's order; all columns are aligned with `queries`.

    queries: those that the first stage answers, in the order of their identifiers; candidates: int64, documents of the
    first stage that are compared; answered: whether the second order has any; kept_first: whether its first k are
    those of the first stage, in the same order; kept: whether all candidates are; lost, new: int64, candidates that the
    second order lacks within the same depth, and documents there that are none; moved: mean places by which a candidate
    that both have moved, either way; tau: tau-b of both orders of those (NaN for fewer than two); rbo: of both orders;
    last_moved: the deepest place that holds another document, 0 for none; sealed: share of borders between windows that
    no document crossed (the documents above are the same before and after), less the mean of the same half a step above
    and below them, NaN where there is no border; beyond: int64, documents deeper than one pass of windows can put them;
    sources: int64[Q, k], the places from which the first k came, 0 for what was no candidate and where there is none.
    """

    queries: Ids
    candidates: Int64
    answered: NDArray[np.bool_]
    kept_first: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    lost: Int64
    new: Int64
    moved: Float64
    tau: Float64
    rbo: Float64
    last_moved: Int64
    sealed: Float64
    beyond: Int64
    sources: Int64

    def commonest(self) -> tuple[tuple[int, ...], int]:
        """(places from which the first k came, of how many queries) of the commonest order but the first stage's own.

        ((), 0) where no order is another; of several the one of the smallest places. A re-ranker that reads its
        candidates hardly ever gives two queries the same: one that does answers without regard to them.
        """
        orders = Counter(map(tuple, self.sources[self.answered & ~self.kept_first].tolist()))
        return min(orders.items(), key=lambda item: (-item[1], item[0]), default=((), 0))


def order_changes(first: Run, second: Run, rules: ReorderRules, depth: int) -> OrderChanges:
    """How the first `depth` documents of each ranking changed.

    first, second: the rankings before and after. A query without an answer in the second has lost all its candidates;
    its other statistics are NaN. Raises BadValue where the first stage answers no query.
    """
    before, after = _tops(first, depth), _tops(second, depth)
    queries = sorted(query for query, ranking in before.items() if ranking)
    if not queries:
        raise BadValue("the first stage answers no query, so nothing can be compared with it")
    rows = [_changes(before[query], after.get(query, ()), rules) for query in queries]
    types = (np.int64, bool, bool, bool, np.int64, np.int64, float, float, float, np.int64, float, np.int64)
    columns = [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    sources = np.zeros((len(queries), rules.k), np.int64)
    for row, query in enumerate(queries):
        place = {document: n for n, document in enumerate(before[query], 1)}
        top = after.get(query, ())[: min(rules.k, len(place))]
        sources[row, : len(top)] = [place.get(document, 0) for document in top]
    columns.append(sources)
    return OrderChanges(Ids.of(queries), *columns)


def places_of(run: Run, depth: int) -> dict[str, dict[str, int]]:
    """{query: {document: place from 1}} of the first `depth` of each ranking."""
    return {q: {d: i for i, d in enumerate(docs, 1)} for q, docs in _tops(run, depth).items()}


def _tops(run: Run, depth: int) -> dict[str, tuple[str, ...]]:
    return {query: tuple(ranking) for query, ranking in run.top(depth).to_dict().items()}


def _changes(before: tuple[str, ...], after: tuple[str, ...], rules: ReorderRules) -> tuple[float, ...]:
    """The columns of one query."""
    count, k, shape = len(before), rules.k, rules.shape
    after = after[:count]
    old, new = set(before), set(after)
    if not after:
        nan = float("nan")
        return (count, False, False, False, count, 0, nan, nan, nan, 0, nan, 0)
    place = {document: i for i, document in enumerate(after)}
    was = np.array([i for i, document in enumerate(before) if document in new])
    now = np.array([place[before[i]] for i in was])
    apart = [i for i in range(count) if i >= len(after) or before[i] != after[i]]
    return (
        count,
        True,
        after[:k] == before[:k],
        after == before,
        count - len(was),
        len(new - old),
        float(np.abs(now - was).mean()) if len(was) else float("nan"),
        kendall_tau(-was.astype(np.float64), -now.astype(np.float64)) if len(was) > 1 else float("nan"),
        rbo(before, after, RBO_PERSISTENCE),
        apart[-1] + 1 if apart else 0,
        _sealed(before, after, shape),
        int(np.count_nonzero(now + 1 > shape.deepest(count)[was])) if len(was) else 0,
    )


def _sealed(before: tuple[str, ...], after: tuple[str, ...], shape: WindowShape) -> float:
    """The share of window borders that no document crossed, less that half a step beside them."""
    borders, half = shape.borders(len(before)), shape.step // 2
    borders = borders[borders + half < len(before)]
    if not len(borders):
        return float("nan")
    open_: set[str] = set()
    closed = np.zeros(len(before) + 1)
    for place, pair in enumerate(zip(before, after, strict=False), 1):
        open_ ^= {pair[0]} ^ {pair[1]}
        closed[place] = not open_
    return float((closed[borders] - (closed[borders - half] + closed[borders + half]) / 2).mean())


# ----------
# Who reaches the first ranks, by the place from which a document came: what position bias looks like from outside.


@dataclass(frozen=True)
class ReachedDocuments:
    """Relevant documents from some places: how many got into the first k, beside what a perfect order would bring.

    relevant: candidates from there that are judged relevant; reached, ideal: those of them among the first k after
    the re-ranking, and the number expected among the first k of a perfect order; ratio: reached / ideal, NaN where
    ideal is 0; low, high: bounds of its interval over queries.
    """

    relevant: int
    reached: int
    ideal: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class RankBand:
    """The candidates of places start to stop of the first stage, from 1, both included.

    documents: how many; promoted: share of all of them among the first k after the re-ranking; raised: mean places by
    which they rose, negative where they fell (documents that were lost aside); reach: of the relevant ones.
    """

    start: int
    stop: int
    documents: int
    promoted: float
    raised: float
    reach: ReachedDocuments


def rank_bands(
    first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int
) -> tuple[RankBand, ...]:
    """The blocks of places over the first `depth` of each judged query's ranking; see RankBand.

    rules: first ranks, places of a block, the least relevant grade. A perfect order sorts the candidates by grade,
    unjudged ones as grade 0, and orders equal grades at random, so that where a tie spans rank k each of its documents
    has the same chance. A re-ranker that is as good as perfect and blind to places therefore has a ratio of 1 in each
    block, and one that is worse alike everywhere the same ratio everywhere. Raises BadValue where no query with
    candidates is judged.
    """
    rows, block = _Candidates.of(first, second, qrels, rules, depth), rules.block
    bands = []
    for start in range(1, int(rows.place.max()) + 1, block):
        own = (rows.place >= start) & (rows.place < start + block)
        stop = min(start + block - 1, depth)
        ranked = own & (rows.now > 0)
        bands.append(
            RankBand(
                start,
                stop,
                int(own.sum()),
                float(rows.top[own].mean()),
                float((rows.place - rows.now)[ranked].mean()) if ranked.any() else float("nan"),
                rows.reach(own),
            )
        )
    return tuple(bands)


def reach(
    first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int
) -> tuple[ReachedDocuments, ReachedDocuments, tuple[float, float, float]]:
    """Of relevant documents from the first k places, of those from behind them, and (difference, low, high) of the
    ratios, behind less first: what a document loses by coming from behind. Raises as `rank_bands`."""
    rows = _Candidates.of(first, second, qrels, rules, depth)
    early = rows.place <= rules.k
    sums = [rows.by_query(values, own) for own in (early, ~early) for values in (rows.hit, rows.chance)]
    one, other = rows.reach(early), rows.reach(~early)
    low, high = ratio_interval((sums[2], sums[3]), less=(sums[0], sums[1]))
    return one, other, (other.ratio - one.ratio, low, high)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The candidates of all judged queries, as columns: query number, place before and after (0: lost), whether among
    the first k after, whether relevant and there, relevant, and the chance of being there in a perfect order."""

    queries: int
    query: Int64
    place: Int64
    now: Int64
    top: Float64
    hit: Float64
    relevant: Float64
    chance: Float64

    @staticmethod
    def of(first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int) -> _Candidates:
        before, after, grades = places_of(first, depth), places_of(second, depth), qrels.to_dict()
        queries = sorted(query for query in before if before[query] and query in grades)
        if not queries:
            raise BadValue("no query of the first stage is judged; are these judgments of other queries?")
        count = np.array([len(before[query]) for query in queries])
        place = np.concatenate([np.arange(1, one + 1) for one in count])
        now = np.array([after.get(query, {}).get(d, 0) for query in queries for d in before[query]])
        by_query = [np.array([float(grades[q].get(d, 0)) for d in before[q]]) for q in queries]
        relevant = (np.concatenate(by_query) >= rules.rel).astype(np.float64)
        chance = np.concatenate([ideal_chances(grade, rules.k) for grade in by_query]) * relevant
        top = ((now > 0) & (now <= rules.k)).astype(np.float64)
        number = np.repeat(np.arange(len(queries)), count)
        return _Candidates(len(queries), number, place, now, top, top * relevant, relevant, chance)

    def by_query(self, values: Float64, own: NDArray[np.bool_]) -> Float64:
        """Sums of the rows that count, by query."""
        return np.asarray(np.bincount(self.query, values * own, minlength=self.queries), np.float64)

    def reach(self, own: NDArray[np.bool_]) -> ReachedDocuments:
        """Of the relevant documents among some rows."""
        hit, chance = self.by_query(self.hit, own), self.by_query(self.chance, own)
        reached, ideal = float(hit.sum()), float(chance.sum())
        low, high = ratio_interval((hit, chance))
        ratio = reached / ideal if ideal else float("nan")
        return ReachedDocuments(int((self.relevant * own).sum()), int(reached), ideal, ratio, low, high)


def ideal_chances(grade: Float64, k: int) -> Float64:
    """The chance of each document to be among the first k of an order by grade in which equal grades stand at random.

    grade: float64[n]; grades below 0 count as 0.
    """
    grade = np.maximum(grade, 0)
    levels, level, size = np.unique(-grade, return_inverse=True, return_counts=True)
    above = np.cumsum(size) - size
    share = np.clip((k - above) / size, 0, 1)
    return np.asarray(share[level], np.float64) if len(levels) else np.zeros(0)


# ----------
# What a re-ranking did to its first stage: order, lost documents, places, and what that did to scores.


HURT_BELOW = -1e-9
"""A change of a score that is a loss, and no rounding."""


@dataclass(frozen=True)
class MeanOverQueries:
    """The mean of a statistic over `queries` queries for which it is defined, and its 95% interval over them."""

    name: str
    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Gain:
    """A measure before and after, on the judged queries.

    change: after less before, with its 95% interval over queries, none of geometric means; p: of the paired permutation
    test; adjusted: the same corrected for all re-rankings of one call (Holm); hurt, helped: shares of queries that lost
    and gained, none by a measure without a direction; judged_before, judged_after: mean share of the first k documents
    that are judged, as Judged@k has it.
    """

    measure: str
    queries: int
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float
    adjusted: float
    hurt: float
    helped: float
    judged_before: float
    judged_after: float


@dataclass(frozen=True)
class Bias:
    """Relevant documents from the first k places, from behind them, and the difference of the ratios with its interval.

    A negative difference: documents from behind reach the first k more rarely than their judgments let expect.
    """

    early: ReachedDocuments
    late: ReachedDocuments
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Reordering:
    """A re-ranking beside its first stage.

    first, system: what both are called; k, depth: first ranks, and candidates of each query; queries: that the first
    stage answers; unanswered: those of them that the re-ranking does not; tied: share of the re-ranking's documents
    whose score is another's of the query too, so that identifiers and not the re-ranker order them; beyond: documents
    deeper than one pass of windows can put them, of `candidates`; repeated: queries whose first k came from the places
    `pattern`, the commonest order that is not the first stage's; duplicates: rows that named a document again, of which
    the one of the highest score counts; means: see MEANS; gain, bias, blocks: None and () without judgments.
    """

    first: str
    system: str
    k: int
    depth: int
    queries: int
    unanswered: int
    candidates: int
    tied: float
    lost: int
    new: int
    beyond: int
    repeated: int
    pattern: tuple[int, ...]
    means: tuple[MeanOverQueries, ...]
    gain: Gain | None = None
    bias: Bias | None = None
    blocks: tuple[RankBand, ...] = ()
    duplicates: int = 0

    def mean(self, name: str) -> MeanOverQueries:
        """One of the means by its name in MEANS; raises BadValue for another."""
        mean = next((one for one in self.means if one.name == name), None)
        if mean is None:
            raise BadValue(f"'{name}' is no statistic of a re-ranking; expected {', '.join(MEANS)}")
        return mean


MEANS = ("kept first", "kept", "moved", "tau", "rbo", "last moved", "sealed")
"""Statistics of queries that are averaged: see OrderChanges."""


def reorderings(
    first: Run,
    others: Mapping[str, Run],
    qrels: Qrels | None,
    measure: Measure,
    rules: ReorderRules | None = None,
    repeated_rows: Mapping[str, int] | None = None,
) -> list[Reordering]:
    """Each re-ranking beside the first stage whose candidates it ordered.

    others: re-rankings by name; qrels: None leaves out what needs judgments; measure: of the gain;
    repeated_rows: of each re-ranking, as it was read (files/runs.py). Raises BadValue
    where a re-ranking answers no query of the first stage, where no query is judged, and for rules out of range.
    """
    rules = rules or ReorderRules()
    rerankings = [
        replace(_reordering(first, name, run, rules), duplicates=(repeated_rows or {}).get(name, 0))
        for name, run in others.items()
    ]
    if qrels is None:
        return rerankings
    judged = [
        _judged(first, run, qrels, measure, replace(rules, depth=one.depth))
        for one, run in zip(rerankings, others.values(), strict=True)
    ]
    holm = adjusted(np.array([gain.p for gain, _, _ in judged])).tolist()
    return [
        replace(one, gain=replace(gain, adjusted=p), bias=bias, blocks=blocks)
        for one, (gain, bias, blocks), p in zip(rerankings, judged, holm, strict=True)
    ]


def _reordering(first: Run, name: str, second: Run, rules: ReorderRules) -> Reordering:
    lengths = np.diff(second.ptr)
    depth = rules.depth or int(lengths.max(initial=0))
    if depth == 0 or not (second.queries.codes(first.queries.strings) >= 0).any():
        raise BadValue(f"{name} answers no query of {first.name}; is it a re-ranking of it?")
    changes = order_changes(first, second, rules, depth)
    pattern, repeated = changes.commonest()
    cut = second.top(depth)
    means = []
    for statistic in MEANS:
        values = np.asarray(vars(changes)[statistic.replace(" ", "_")], np.float64)
        values = np.where(changes.answered, values, np.nan)
        defined = values[~np.isnan(values)]
        mean = math.fsum(defined.tolist()) / len(defined) if len(defined) else math.nan
        bounds = interval(values)
        means.append(MeanOverQueries(statistic, mean, *bounds, len(defined)))
    return Reordering(
        first.name,
        name,
        rules.k,
        depth,
        len(changes.queries),
        int((~changes.answered).sum()),
        int(changes.candidates.sum()),
        float(cut.tied().sum()) / max(1, len(cut.doc)),
        int(changes.lost.sum()),
        int(changes.new.sum()),
        int(changes.beyond.sum()),
        repeated,
        pattern,
        tuple(means),
    )


def _judged(
    first: Run, second: Run, qrels: Qrels, measure: Measure, rules: ReorderRules
) -> tuple[Gain, Bias, tuple[RankBand, ...]]:
    common = np.flatnonzero(qrels.queries.codes(first.queries.strings) >= 0)
    if not len(common):
        raise BadValue("no query of the first stage is judged; are these judgments of other queries?")
    judgments = qrels.only(qrels.queries.codes(first.queries.take(common).strings))
    depth = rules.depth or 1
    holes = parse_measure(f"Judged@{rules.k}")
    scores = [score_run(judgments, run, [measure, holes]) for run in (first, second)]
    early, late, gap = reach(first, second, judgments, rules, depth)
    blocks = rank_bands(first, second, judgments, rules, depth)
    return _gain(measure, holes, scores), Bias(early, late, *gap), blocks


def _gain(measure: Measure, holes: Measure, scores: Sequence[Scores]) -> Gain:
    before, after = (one.in_id_order(str(measure)) for one in scores)
    judged = [float(one.mean_values()[one.measures.index(str(holes))]) for one in scores]
    defined = ~(np.isnan(before) | np.isnan(after))
    before, after = before[defined], after[defined]
    count = len(before)
    if not count:
        raise BadValue(f"{measure} is defined for no query that both answer")
    change, way = after - before, direction(str(measure))
    p = float(p_values("permutation", np.stack([after, before]))[0]) if count > 1 else math.nan
    first, last = (averaged(exact_mean(values), measure.geometric) for values in (before, after))
    return Gain(
        str(measure),
        count,
        first,
        last,
        last - first if measure.geometric else exact_mean(change),
        *((math.nan, math.nan) if measure.geometric else interval(change)),
        p,
        p,
        float((way * change < HURT_BELOW).mean()),
        float((way * change > -HURT_BELOW).mean()),
        *judged,
    )
