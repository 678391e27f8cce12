"""Approximate search through FAISS and usearch, and what it loses against exact search.

An index is named as FAISS's own factory names it: "Flat", "IVF1024,Flat", "HNSW32", "IVF1024,PQ48", "SQ8", ...; or
"usearch", or "usearch-i8". The effort is how much of it a query looks at: IVF's lists, or the candidates of a graph.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weir.core.order import ranked
from weir.core.strings import Float32, Int32, Int64
from weir.errors import BadValue, StoreError, require
from weir.registry import check_whole
from weir.settings import require_memory
from weir.systems.vectors.exact_search import Found, VectorSource, pair_scores, search, spread

DISTRIBUTIONS = {"faiss": ("faiss-cpu", "faiss-gpu"), "usearch": ("usearch",)}
"""Module -> the distributions that may bring it."""

BLOCK_VECTORS = 1 << 14
"""Vectors handed to a library together."""
TRAINING_VECTORS = 1 << 17
"""Vectors from which lists and codebooks are learned, evenly spaced."""


class Approximate(Protocol):
    """An index of another library."""

    def near(self, queries: Float32, k: int) -> Int64:
        """The numbers of up to k documents for each query, int64[Q, k], -1 where there are fewer."""
        ...

    def decoded(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1 as the index remembers them."""
        ...

    def size(self) -> int:
        """Its bytes."""
        ...

    def write(self, path: Path) -> None:
        """Write the index to a file."""
        ...


@dataclass(frozen=True, eq=False)
class Faiss:
    """An index of FAISS, built and searched on one thread so that it is the same every time."""

    index: Any

    def near(self, queries: Float32, k: int) -> Int64:
        """See Approximate."""
        numbers: Int64 = self.index.search(queries, k)[1]
        return numbers

    def decoded(self, start: int, stop: int) -> Float32:
        """See Approximate."""
        inner = require("faiss", extra="ann").try_extract_index_ivf(self.index)
        if inner is not None:
            inner.make_direct_map()
        vectors: Float32 = self.index.reconstruct_n(start, stop - start)
        return vectors

    def size(self) -> int:
        """See Approximate."""
        return int(require("faiss", extra="ann").serialize_index(self.index).nbytes)

    def write(self, path: Path) -> None:
        """See Approximate."""
        require("faiss", extra="ann").write_index(self.index, str(path))


@dataclass(frozen=True, eq=False)
class Usearch:
    """An index of usearch."""

    index: Any

    def near(self, queries: Float32, k: int) -> Int64:
        """See Approximate."""
        hits: Any = self.index.search(queries, k, threads=1)
        numbers: Int64 = np.atleast_2d(np.asarray(hits.keys)).astype(np.int64)
        counts = np.atleast_1d(hits.counts if numbers.shape[0] > 1 else numbers.shape[1])
        numbers[np.arange(numbers.shape[1]) >= counts[:, None]] = -1
        return numbers

    def decoded(self, start: int, stop: int) -> Float32:
        """See Approximate."""
        return np.asarray(self.index.get(np.arange(start, stop), np.float32), np.float32)

    def size(self) -> int:
        """See Approximate."""
        return int(self.index.serialized_length)

    def write(self, path: Path) -> None:
        """See Approximate."""
        self.index.save(str(path))


@dataclass(frozen=True)
class ApproximateIndex:
    """A kind of index: name: as the library's factory names it; effort: how much of it a query looks at, 0 takes the
    library's default. Raises BadValue for a name or effort that is none."""

    name: str
    effort: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BadValue(f"index is {self.name!r}; expected the name of an index, such as HNSW32")
        check_whole("effort", self.effort, 0)

    @staticmethod
    def of(name: str | None, effort: int = 0) -> ApproximateIndex | None:
        """The index of that name, None for exact search; raises BadValue for an effort without an index."""
        if name is not None:
            return ApproximateIndex(name, effort)
        if effort:
            raise BadValue(f"effort is {effort!r}; expected a whole number from 0, beside index")
        return None

    @property
    def arguments(self) -> dict[str, object]:
        """The settings of a system that is searched by it."""
        return {"index": self.name} | ({"effort": self.effort} if self.effort else {})

    def describe(self) -> dict[str, object]:
        """What decides which documents it finds; engine: the library and its version, None where it is not here."""
        library = None
        for distribution in DISTRIBUTIONS[self._package]:  # without importing it
            with suppress(PackageNotFoundError):
                library = library or f"{self._package} {version(distribution)}"
        return {"search": self.name, "effort": self.effort, "engine": library}

    def require(self) -> None:
        """Raise MissingExtra where its library is not installed."""
        require(self._package, extra="ann")

    @property
    def _package(self) -> str:
        return "usearch" if self.name.startswith("usearch") else "faiss"

    def build(self, rows: VectorSource) -> Approximate:
        """Index vectors for search by dot product.

        Raises BadValue for a name the library does not know, and, by the size of the first vectors' index, where
        memory does not hold that of all; MissingExtra without the library.
        """
        if self._package == "usearch":
            graph = Usearch(_empty(self.name, self.effort, rows.dimensions))
            for start, block in self._blocks(graph, rows):
                graph.index.add(np.arange(start, start + len(block)), block, threads=1)
            return graph
        faiss = require("faiss", extra="ann")
        faiss.omp_set_num_threads(1)
        try:
            index = faiss.index_factory(rows.dimensions, self.name, faiss.METRIC_INNER_PRODUCT)
            if not index.is_trained:
                index.train(rows.take(spread(len(rows), min(len(rows), TRAINING_VECTORS), 1)))
            for _, block in self._blocks(Faiss(index), rows):
                index.add(block)
        except RuntimeError as error:
            raise BadValue(f"FAISS cannot build the index '{self.name}': {_line(error)}") from None
        return _with_effort(faiss, index, self.effort)

    def _blocks(self, index: Approximate, rows: VectorSource) -> Iterator[tuple[int, Float32]]:
        """(number of the first, vectors) in order, given back when the index has them."""
        empty = index.size()
        for start in range(0, len(rows), BLOCK_VECTORS):
            yield start, np.ascontiguousarray(rows.block(start, min(start + BLOCK_VECTORS, len(rows))))
            rows.release()
            if start == 0 and len(rows) > BLOCK_VECTORS:
                needed = empty + (index.size() - empty) * len(rows) // BLOCK_VECTORS
                require_memory(
                    needed,
                    f"the index {self.name} of {len(rows):,} vectors",
                    "exact search reads them from disk",
                )

    def open(self, path: Path, dimensions: int) -> Approximate:
        """An index written before; raises StoreError where it cannot be read."""
        try:
            if self._package == "usearch":
                index = _empty(self.name, self.effort, dimensions)
                index.load(str(path))
                return Usearch(index)
            faiss = require("faiss", extra="ann")
            faiss.omp_set_num_threads(1)
            return _with_effort(faiss, faiss.read_index(str(path)), self.effort)
        except (RuntimeError, OSError) as error:
            raise StoreError(
                f"{path}: the index is damaged ({_line(error)}); delete it to build it again"
            ) from None


def search_with(index: Approximate, rows: VectorSource, queries: Float32, k: int, tie_rank: Int32) -> Found:
    """The documents an index finds, scored anew as exact search scores them, in trec order."""
    near = index.near(np.ascontiguousarray(queries, np.float32), min(k, len(rows)))
    ptr, docs, scores = np.zeros(len(queries) + 1, np.int64), [], []
    for q, numbers in enumerate(near):
        some = np.unique(numbers[numbers >= 0])
        score = pair_scores(rows.take(some), queries[q])
        order = ranked(np.zeros(len(some), np.int32), score, tie_rank[some])
        docs.append(some[order].astype(np.int32))
        scores.append(score[order].astype(np.float32))
        ptr[q + 1] = ptr[q] + len(some)
    return Found(ptr, np.concatenate(docs), np.concatenate(scores), int(ptr[-1]))


@dataclass(frozen=True)
class Loss:
    """Shares of the exact k best that an index does not find. quantisation: those that an exact search of the vectors
    as the index remembers them misses too; graph: the rest, what not looking everywhere costs (below 0 where
    it happens to make up for errors of quantisation)."""

    quantisation: float
    graph: float

    @property
    def total(self) -> float:
        """The share of the exact k best that is not found, for whatever reason."""
        return self.quantisation + self.graph


def loss(index: Approximate, rows: VectorSource, queries: Float32, k: int) -> Loss:
    """What an index loses against exact search, on average over queries."""
    k = min(k, len(rows))
    exact = search(rows, queries, k).doc.reshape(-1, k)
    remembered = _Remembered(index, len(rows), rows.dimensions)
    remembered_best = search(remembered, queries, k).doc.reshape(-1, k)
    near = index.near(np.ascontiguousarray(queries, np.float32), k)
    quantisation = 1 - _shared(exact, remembered_best)
    return Loss(quantisation, 1 - _shared(exact, near) - quantisation)


@dataclass(frozen=True, eq=False)
class _Remembered:
    """Vectors as an index remembers them, for an exact search; see VectorSource."""

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


def _with_effort(faiss: Any, index: Any, effort: int) -> Faiss:  # noqa: ANN401 - FAISS has no types
    inner = faiss.downcast_index(index)
    if effort and isinstance(inner, faiss.IndexHNSW):
        inner.hnsw.efSearch = effort
    elif effort and isinstance(inner, faiss.IndexIVF):
        inner.nprobe = effort
    elif effort:
        raise BadValue("effort applies to IVF and HNSW indexes only")
    return Faiss(index)


def _empty(name: str, effort: int, d: int) -> Any:  # noqa: ANN401 - usearch has no types
    with suppress(ImportError):  # FAISS crashes where usearch was imported before it
        importlib.import_module("faiss")
    module = require("usearch.index", extra="ann")
    kind = name.partition("-")[2] or "f32"
    if kind not in ("f32", "f16", "bf16", "i8"):
        raise BadValue(
            f"'{name}' is no index of usearch; expected usearch, usearch-f16, usearch-bf16 or usearch-i8"
        )
    return module.Index(ndim=d, metric="ip", dtype=kind, expansion_search=effort or 64)


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[-1][-200:]
