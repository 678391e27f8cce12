"""Two orders of the same candidates, query by query: what was lost, what moved, how far, and across which borders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.stats.rank_stability import kendall_tau, rbo

__all__ = ["OrderChanges", "ReorderRules", "WindowShape", "order_changes", "places_of"]

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
        found = count - self.step * np.arange(1, count // self.step + 1)
        return found[(found > half) & (half > 0)][::-1]


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
            value = getattr(self, name)
            if not (name == "depth" and value is None) and not (type(value) is int and value >= 1):
                raise BadValue(f"{name} is {value!r}; expected a whole number from 1")
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
        seen = Counter(map(tuple, self.sources[self.answered & ~self.kept_first].tolist()))
        best = min(seen.items(), key=lambda item: (-item[1], item[0]), default=((), 0))
        return best


def order_changes(first: Run, second: Run, rules: ReorderRules, depth: int) -> OrderChanges:
    """How the first `depth` documents of each ranking changed.

    first, second: the rankings before and after. A query without an answer in the second has lost all its candidates;
    its other statistics are NaN. Raises BadValue where the first stage answers no query.
    """
    before, after = _tops(first, depth), _tops(second, depth)
    asked = sorted(query for query, ranking in before.items() if ranking)
    if not asked:
        raise BadValue("the first stage answers no query, so nothing can be compared with it")
    rows = [_changes(before[query], after.get(query, ()), rules) for query in asked]
    sources = np.array([_sources(before[query], after.get(query, ()), rules.k) for query in asked], np.int64)
    types = (np.int64, bool, bool, bool, np.int64, np.int64, float, float, float, np.int64, float, np.int64)
    columns = [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    columns.append(sources)
    return OrderChanges(Ids.of(asked), *columns)


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
    was = np.array([i for i, document in enumerate(before) if document in new])
    at = {document: i for i, document in enumerate(after)}
    now = np.array([at[before[i]] for i in was])
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


def _sources(before: tuple[str, ...], after: tuple[str, ...], k: int) -> list[int]:
    at = {document: i for i, document in enumerate(before, 1)}
    found = [at.get(document, 0) for document in after[: min(k, len(before))]]
    return found + [0] * (k - len(found))


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
