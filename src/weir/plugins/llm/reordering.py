"""Compare re-rankings with their first stage, by run files alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.qrels import Qrels
from weir.core.roles import judged_run
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
"""Persistence p of rank-biased overlap."""


@dataclass(frozen=True)
class WindowShape:
    """The sliding windows of one listwise pass, from the last candidates to the first; raises BadValue for bad
    sizes."""

    window: int = 20
    """Documents of a listwise window; 2 or more."""
    step: int = 10
    """Ranks between the starts of neighbouring windows; at most `window`."""

    def __post_init__(self) -> None:
        if self.window < 2 or not 1 <= self.step <= self.window:
            raise BadValue(
                f"windows of {self.window} every {self.step}: a window has 2 documents or more, and a step is no "
                "longer than it"
            )

    def deepest(self, count: int) -> Int64:
        """Return the deepest rank, int64[count], to which the document at each rank can fall in one pass."""
        behind = np.maximum(0, count - self.window - np.arange(count))
        return count - self.step * -(-behind // self.step)

    def borders(self, count: int) -> Int64:
        """Return the ranks after which windows end, int64, ascending: count - step * n, above half a step."""
        half = self.step // 2
        ends = count - self.step * np.arange(1, count // self.step + 1)
        return ends[(ends > half) & (half > 0)][::-1]


@named_arguments
@dataclass(frozen=True)
class ReorderRules:
    """Settings of a comparison of re-rankings; raises BadValue for numbers below 1."""

    k: int = 10
    """First ranks that are compared."""
    depth: int | None = None
    """Candidates of each query; by default the longest re-ranking."""
    block: int = 10
    """First-stage ranks in each block (RankBand)."""
    rel: float = 1
    """Lowest relevant grade."""
    shape: WindowShape = field(default_factory=WindowShape)
    """Windows whose traces are looked for."""

    def __post_init__(self) -> None:
        for name in ("k", "depth", "block"):
            if name != "depth" or self.depth is not None:
                check_whole(name, getattr(self, name))
        if not self.rel > 0:
            raise BadValue(f"rel is {self.rel}; expected a grade above 0")


@dataclass(frozen=True, eq=False)
class OrderChanges:
    """Changes of order by query, as arrays aligned with `queries`; NaN where undefined."""

    queries: Ids
    """Queries that the first stage answers, by identifier."""
    candidates: Int64
    answered: NDArray[np.bool_]
    """True if the second run ranks a document."""
    kept_first: NDArray[np.bool_]
    """True if the first k are the same in the same order."""
    kept: NDArray[np.bool_]
    """True if all candidates are in the same order."""
    lost: Int64
    """Candidates missing from the second run within the depth."""
    new: Int64
    """Documents of the second run that are no candidates."""
    moved: Float64
    """Mean absolute difference of ranks of common documents."""
    tau: Float64
    """Kendall's tau-b of the common documents."""
    rbo: Float64
    """Rank-biased overlap of both orders."""
    last_moved: Int64
    """Deepest rank with another document; 0 for none."""
    sealed: Float64
    """Share of window borders that no document crossed, minus the mean share half a step above and below."""
    beyond: Int64
    """Documents deeper than one pass can move them."""
    sources: Int64
    """int64[queries, k]: first-stage ranks of the new first k; 0 for a new or missing document."""

    def _commonest(self) -> tuple[tuple[int, ...], int]:
        """Return (most frequent changed order of the first k as first-stage ranks, number of queries with it); ((),
        0) if none changed."""
        orders = Counter(map(tuple, self.sources[self.answered & ~self.kept_first].tolist()))
        return min(orders.items(), key=lambda item: (-item[1], item[0]), default=((), 0))


def order_changes(first: Run, second: Run, rules: ReorderRules, depth: int) -> OrderChanges:
    """Return how a re-ranking changed the first `depth` documents of each query; raises BadValue if the first stage
    answers none."""
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


def _places_of(run: Run, depth: int) -> dict[str, dict[str, int]]:
    return {q: {d: i for i, d in enumerate(docs, 1)} for q, docs in _tops(run, depth).items()}


def _tops(run: Run, depth: int) -> dict[str, tuple[str, ...]]:
    return {query: tuple(ranking) for query, ranking in run.top(depth).to_dict().items()}


def _changes(before: tuple[str, ...], after: tuple[str, ...], rules: ReorderRules) -> tuple[float, ...]:
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
# Position bias: which relevant documents reach the first ranks, by their first-stage place.


@dataclass(frozen=True)
class ReachedDocuments:
    """The relevant documents from some first-stage ranks, and how many a re-ranking moved into the first k."""

    relevant: int
    """Number of relevant candidates."""
    reached: int
    """Of these, those in the first k after the re-ranking."""
    ideal: float
    """Expected number in the first k of a perfect order."""
    ratio: float
    """reached / ideal with its interval over queries; NaN if ideal is 0."""
    low: float
    high: float


@dataclass(frozen=True)
class RankBand:
    """How a re-ranking moved the candidates of first-stage ranks `start` to `stop`, from 1, both included."""

    start: int
    stop: int
    documents: int
    """Candidates in the block."""
    promoted: float
    """Share of them in the first k after the re-ranking."""
    raised: float
    """Mean ranks by which they rose, without lost documents; negative if they fell."""
    reach: ReachedDocuments
    """Counts of the relevant documents in the block."""


def rank_bands(
    first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int
) -> tuple[RankBand, ...]:
    """Return a RankBand for each block of first-stage ranks down to `depth`; raises BadValue if no judged query has
    candidates."""
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
    """Return how many relevant documents a re-ranking moved into the first k: (from ranks up to k, from deeper ranks,
    difference).

    The difference is (value, low, high) of the ratios to a perfect order, deeper minus first.
    """
    rows = _Candidates.of(first, second, qrels, rules, depth)
    early = rows.place <= rules.k
    sums = [rows.by_query(values, own) for own in (early, ~early) for values in (rows.hit, rows.chance)]
    one, other = rows.reach(early), rows.reach(~early)
    low, high = ratio_interval((sums[2], sums[3]), less=(sums[0], sums[1]))
    return one, other, (other.ratio - one.ratio, low, high)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The candidates of all judged queries, as columns with ranks before and after the re-ranking."""

    queries: int
    query: Int64
    place: Int64
    now: Int64
    """Rank after the re-ranking; 0 if lost."""
    top: Float64
    """1 if among the first k after."""
    hit: Float64
    """1 if relevant and among the first k after."""
    relevant: Float64
    chance: Float64
    """If relevant, the probability of being in the first k of a perfect order; else 0."""

    @staticmethod
    def of(first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int) -> _Candidates:
        before, after, grades = _places_of(first, depth), _places_of(second, depth), qrels.to_dict()
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
        return np.asarray(np.bincount(self.query, values * own, minlength=self.queries), np.float64)

    def reach(self, own: NDArray[np.bool_]) -> ReachedDocuments:
        hit, chance = self.by_query(self.hit, own), self.by_query(self.chance, own)
        reached, ideal = float(hit.sum()), float(chance.sum())
        low, high = ratio_interval((hit, chance))
        ratio = reached / ideal if ideal else float("nan")
        return ReachedDocuments(int((self.relevant * own).sum()), int(reached), ideal, ratio, low, high)


def ideal_chances(grade: Float64, k: int) -> Float64:
    """Return each document's probability, float64[n], of being in the first k when sorted by grade, ties at random.

    Negative grades count as 0.
    """
    grade = np.maximum(grade, 0)
    levels, level, size = np.unique(-grade, return_inverse=True, return_counts=True)
    above = np.cumsum(size) - size
    share = np.clip((k - above) / size, 0, 1)
    return np.asarray(share[level], np.float64) if len(levels) else np.zeros(0)


# ----------
# The whole comparison: order, lost documents, places of relevant documents, and gain.


HURT_BELOW = -1e-9
"""A change between this and 0 is rounding, not a loss."""


@dataclass(frozen=True)
class MeanOverQueries:
    """The mean of a statistic over the queries where it is defined, with its 95% interval."""

    name: str
    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Gain:
    """A measure before and after a re-ranking on the judged queries."""

    measure: str
    queries: int
    before: float
    after: float
    change: float
    """After minus before, with its 95% interval; NaN bounds for geometric means."""
    low: float
    high: float
    p: float
    """p-value of the paired permutation test."""
    adjusted: float
    """p by Holm over all re-rankings of the call."""
    hurt: float
    """Share of queries that lost; 0 for a measure without a direction."""
    helped: float
    """Share of queries that gained; 0 for a measure without a direction."""
    judged_before: float
    """Mean Judged@k of the first stage; `judged_after` of the re-ranking."""
    judged_after: float


@dataclass(frozen=True)
class Bias:
    """How many relevant documents reach the first k, from within the first k and from deeper."""

    early: ReachedDocuments
    late: ReachedDocuments
    difference: float
    """Deeper ratio minus first ratio; negative if deep documents are promoted too rarely."""
    low: float
    high: float


@dataclass(frozen=True)
class Reordering:
    """How a re-ranking changed its first stage."""

    first: str
    system: str
    """Name of the re-ranking."""
    k: int
    depth: int
    """Candidates of each query."""
    queries: int
    """Queries that the first stage answers."""
    unanswered: int
    """Of these, queries that the re-ranking does not answer."""
    candidates: int
    tied: float
    """Share of its documents tied with another of the query."""
    lost: int
    new: int
    beyond: int
    """Documents deeper than one pass can move them."""
    repeated: int
    """Queries whose first k came from the ranks `pattern`."""
    pattern: tuple[int, ...]
    """The most frequent changed order."""
    means: tuple[MeanOverQueries, ...]
    """One for each name in MEANS."""
    gain: Gain | None = None
    """None without judgments; `bias` is None then, too."""
    bias: Bias | None = None
    blocks: tuple[RankBand, ...] = ()
    duplicates: int = 0
    """Rows that repeated a document, of which the highest score counts."""

    def mean_of(self, name: str) -> MeanOverQueries:
        """Return the mean of a statistic; raises BadValue for a name not in MEANS."""
        mean = next((one for one in self.means if one.name == name), None)
        if mean is None:
            raise BadValue(f"'{name}' is no statistic of a re-ranking; expected {', '.join(MEANS)}")
        return mean


MEANS = ("kept first", "kept", "moved", "tau", "rbo", "last moved", "sealed")
"""Columns of OrderChanges that are averaged over queries."""
SHARES = ("kept first", "kept")
"""Columns within 0 and 1."""


def reorderings(
    first: Run,
    others: Mapping[str, Run],
    qrels: Qrels | None,
    measure: Measure,
    rules: ReorderRules | None = None,
    repeated_rows: Mapping[str, int] | None = None,
) -> list[Reordering]:
    """Return how each re-ranking changed its first stage, in the given order.

    qrels: None leaves out gain, position bias and blocks of ranks.
    repeated_rows: {re-ranking: number of rows that repeated a document}.

    Raises BadValue if the first stage answers no query, a re-ranking none of its queries, or no query is judged.
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
    pattern, repeated = changes._commonest()
    cut = second.top(depth)
    means = []
    for statistic in MEANS:
        values = np.asarray(vars(changes)[statistic.replace(" ", "_")], np.float64)
        values = np.where(changes.answered, values, np.nan)
        defined = values[~np.isnan(values)]
        mean = math.fsum(defined.tolist()) / len(defined) if len(defined) else math.nan
        bounds = interval(values, unit=statistic in SHARES)
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
    judged_run(first, judgments)
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
