"""Search by another library's approximate index, and measure its loss against exact search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir.core.order import ranked
from weir.core.strings import Float32, Int32, Int64
from weir.errors import BadValue
from weir.registry import Registry
from weir.systems.vectors.exact_search import Found, VectorSource, query_dot_products, search


class Approximate(Protocol):
    """An approximate vector index built by another library, such as FAISS."""

    def near(self, queries: Float32, k: int) -> Int64:
        """Return up to k document numbers for each query, best first, int64[Q, k], padded with -1."""

    def decoded(self, start: int, stop: int) -> Float32:
        """Return vectors start..stop-1 as the index stores them, decoded, float32[n, d]."""

    def size(self) -> int:
        """Return the index's size in bytes."""

    def write(self, path: Path) -> None:
        """Write the index to a file in the library's format."""


@runtime_checkable
class FilteringIndex(Protocol):
    """An approximate vector index whose searches can be restricted to some documents."""

    def efforts(self) -> tuple[int, int]:
        """Return the (default, largest) search effort, such as efSearch of HNSW; (0, 0) if there is none."""

    def can_filter(self) -> bool:
        """Return True if `near_among` can filter while it searches."""

    def near_among(
        self, query: Float32, k: int, effort: int, permitted: NDArray[np.bool_] | None
    ) -> tuple[Int64, float]:
        """Return (up to k document numbers, int64, best first; number of vectors compared, NaN if unknown)
        for a query.

        effort: how much of the index to visit.
        permitted: bool[N]; None for all documents.
        """


class ApproximateIndex(Protocol):
    """A kind of approximate index with settings, such as "HNSW32" of FAISS."""

    @property
    def arguments(self) -> dict[str, object]:
        """The settings `index` and `effort`, as printed in the system's name."""

    def describe(self) -> dict[str, object]:
        """Return everything that decides the results; "engine" is None without the library."""

    def require(self) -> None:
        """Raise MissingExtra if the library is not installed."""

    def build(self, rows: VectorSource) -> Approximate:
        """Return an index of vectors by dot product; raises BadValue if the library cannot make it."""

    def open(self, path: Path, dimensions: int) -> Approximate:
        """Return the index in a file that `Approximate.write` wrote."""


class IndexMaker(Protocol):
    """A function that returns a kind of approximate index."""

    def __call__(self, name: str, effort: int, /) -> ApproximateIndex:
        """Return the kind of index of this name; raises BadValue for a bad name or effort."""


INDEX_LIBRARIES = Registry[IndexMaker]("approximate index", group="weir.approximate_indexes")


def approximate_index(name: str | None, effort: int = 0) -> ApproximateIndex | None:
    """Return the kind of index of a FAISS name, None for exact search; raises BadValue for a bad name, or an
    effort without name."""
    if name is not None:
        return INDEX_LIBRARIES.get("faiss")(name, effort)
    if effort:
        raise BadValue(f"effort is {effort!r}; expected a whole number from 0, beside index")
    return None


def search_with(index: Approximate, rows: VectorSource, queries: Float32, k: int, tie_rank: Int32) -> Found:
    """Return up to k documents that an index finds for each query, float32[Q, d], with exact scores.

    tie_rank: int32[N], order of equal scores, ascending.
    """
    near = index.near(np.ascontiguousarray(queries, np.float32), min(k, len(rows)))
    ptr, docs, scores = np.zeros(len(queries) + 1, np.int64), [], []
    for q, numbers in enumerate(near):
        some = np.unique(numbers[numbers >= 0])
        score = query_dot_products(rows.take(some), queries[q])
        order = ranked(np.zeros(len(some), np.int32), score, tie_rank[some])
        docs.append(some[order].astype(np.int32))
        scores.append(score[order].astype(np.float32))
        ptr[q + 1] = ptr[q] + len(some)
    return Found(ptr, np.concatenate(docs), np.concatenate(scores), int(ptr[-1]))


@dataclass(frozen=True)
class Loss:
    """Mean shares of the exact k best documents that an approximate index misses, by cause."""

    quantisation: float
    """Share missed even by an exact search of the vectors as the index stores them."""
    graph: float
    """Remaining share, missed because the search visits only a part; below 0 if it offsets quantisation
    errors."""

    @property
    def total(self) -> float:
        """Share of the exact k best documents that is missed."""
        return self.quantisation + self.graph


def index_loss(index: Approximate, rows: VectorSource, queries: Float32, k: int) -> Loss:
    """Return the share of the exact k best documents that an index misses, by cause, over queries, float32[Q,
    d]."""
    k = min(k, len(rows))
    exact = search(rows, queries, k).doc.reshape(-1, k)
    remembered = _Remembered(index, len(rows), rows.dimensions)
    remembered_best = search(remembered, queries, k).doc.reshape(-1, k)
    near = index.near(np.ascontiguousarray(queries, np.float32), k)
    quantisation = 1 - _shared(exact, remembered_best)
    return Loss(quantisation, 1 - _shared(exact, near) - quantisation)


@dataclass(frozen=True, eq=False)
class _Remembered:
    index: Approximate
    count: int
    dimensions: int

    def __len__(self) -> int:
        return self.count

    def block(self, start: int, stop: int) -> Float32:
        return np.ascontiguousarray(self.index.decoded(start, stop), np.float32)

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        return np.concatenate([self.block(int(run[0]), int(run[-1]) + 1) for run in runs])

    def release(self) -> None:
        pass  # each block is a copy


def _shared(a: NDArray[np.integer], b: NDArray[np.integer]) -> float:
    return float(np.mean([len(np.intersect1d(x, y)) / len(x) for x, y in zip(a, b, strict=True)]))
