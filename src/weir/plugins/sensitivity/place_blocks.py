"""Who reaches the first ranks, by the place from which a document came: what position bias looks like from outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.plugins.sensitivity.order_changes import ReorderRules, places_of
from weir.stats.bootstrap import SEED, ratio_interval

__all__ = ["PlaceBlock", "ReachedDocuments", "ideal_chances", "place_blocks", "reach"]


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
class PlaceBlock:
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


def place_blocks(
    first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int
) -> tuple[PlaceBlock, ...]:
    """The blocks of places over the first `depth` of each judged query's ranking; see PlaceBlock.

    rules: first ranks, places of a block, the least relevant grade. A perfect order sorts the candidates by grade,
    unjudged ones as grade 0, and orders equal grades at random, so that where a tie spans rank k each of its documents
    has the same chance. A re-ranker that is as good as perfect and blind to places therefore has a ratio of 1 in each
    block, and one that is worse alike everywhere the same ratio everywhere. Raises BadValue where no query with
    candidates is judged.
    """
    rows, block = _Candidates.of(first, second, qrels, rules, depth), rules.block
    found = []
    for start in range(1, int(rows.place.max()) + 1, block):
        own = (rows.place >= start) & (rows.place < start + block)
        stop = min(start + block - 1, depth)
        kept = own & (rows.now > 0)
        found.append(
            PlaceBlock(
                start,
                stop,
                int(own.sum()),
                float(rows.top[own].mean()),
                float((rows.place - rows.now)[kept].mean()) if kept.any() else float("nan"),
                rows.reach(own),
            )
        )
    return tuple(found)


def reach(
    first: Run, second: Run, qrels: Qrels, rules: ReorderRules, depth: int
) -> tuple[ReachedDocuments, ReachedDocuments, tuple[float, float, float]]:
    """Of relevant documents from the first k places, of those from behind them, and (difference, low, high) of the
    ratios, behind less first: what a document loses by coming from behind. Raises as `place_blocks`."""
    rows = _Candidates.of(first, second, qrels, rules, depth)
    early = rows.place <= rules.k
    sums = [rows.by_query(values, own) for own in (early, ~early) for values in (rows.hit, rows.chance)]
    one, other = rows.reach(early), rows.reach(~early)
    low, high = ratio_interval((sums[2], sums[3]), np.random.default_rng(SEED), (sums[0], sums[1]))
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
        asked = sorted(query for query in before if before[query] and query in grades)
        if not asked:
            raise BadValue("no query of the first stage is judged; are these judgments of other queries?")
        count = np.array([len(before[query]) for query in asked])
        place = np.concatenate([np.arange(1, one + 1) for one in count])
        now = np.array([after.get(query, {}).get(d, 0) for query in asked for d in before[query]])
        by_query = [np.array([float(grades[q].get(d, 0)) for d in before[q]]) for q in asked]
        relevant = (np.concatenate(by_query) >= rules.rel).astype(np.float64)
        chance = np.concatenate([ideal_chances(grade, rules.k) for grade in by_query]) * relevant
        top = ((now > 0) & (now <= rules.k)).astype(np.float64)
        number = np.repeat(np.arange(len(asked)), count)
        return _Candidates(len(asked), number, place, now, top, top * relevant, relevant, chance)

    def by_query(self, values: Float64, own: NDArray[np.bool_]) -> Float64:
        """Sums of the rows that count, by query."""
        return np.asarray(np.bincount(self.query, values * own, minlength=self.queries), np.float64)

    def reach(self, own: NDArray[np.bool_]) -> ReachedDocuments:
        """Of the relevant documents among some rows."""
        hit, chance = self.by_query(self.hit, own), self.by_query(self.chance, own)
        reached, ideal = float(hit.sum()), float(chance.sum())
        low, high = ratio_interval((hit, chance), np.random.default_rng(SEED))
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
