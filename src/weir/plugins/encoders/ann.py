"""Approximate vector search by FAISS, with its factory's index names, such as "IVF1024,Flat" or "HNSW32".

Effort is the number of lists (IVF) or candidates (graphs) that a query visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float32, Int64
from weir.errors import BadValue, StoreError, require
from weir.registry import check_whole
from weir.settings import require_memory
from weir.systems.vectors.approximate import Approximate
from weir.systems.vectors.exact_search import VectorSource, spread

DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu")
"""Distributions that can provide FAISS."""

BLOCK_VECTORS = 1 << 14
"""Vectors handed to FAISS at once."""
TRAINING_VECTORS = 1 << 17
"""Evenly spaced vectors that train lists and codebooks."""


@dataclass(frozen=True, eq=False)
class Faiss:
    """A FAISS index, built and searched by one thread."""

    index: Any

    def near(self, queries: Float32, k: int) -> Int64:
        numbers: Int64 = self.index.search(queries, k)[1]
        return numbers

    def efforts(self) -> tuple[int, int]:
        inner, faiss = self._inner()
        if isinstance(inner, faiss.IndexHNSW):
            return int(inner.hnsw.efSearch), int(inner.ntotal)
        return (int(inner.nprobe), int(inner.nlist)) if isinstance(inner, faiss.IndexIVF) else (0, 0)

    def can_filter(self) -> bool:
        inner, faiss = self._inner()
        return isinstance(
            inner, (faiss.IndexHNSW, faiss.IndexIVF, faiss.IndexFlat, faiss.IndexScalarQuantizer)
        )

    def near_among(
        self, query: Float32, k: int, effort: int, permitted: NDArray[np.bool_] | None
    ) -> tuple[Int64, float]:
        inner, faiss = self._inner()
        lists = isinstance(inner, faiss.IndexIVF)
        given: dict[str, object] = {}
        if permitted is not None:
            given["sel"] = faiss.IDSelectorBitmap(np.packbits(permitted, bitorder="little"))
        if lists:
            settings = faiss.SearchParametersIVF(nprobe=effort, **given)
        elif isinstance(inner, faiss.IndexHNSW):
            settings = faiss.SearchParametersHNSW(efSearch=effort, **given)
        else:
            settings = faiss.SearchParameters(**given) if given else None
        graph_use, list_use = faiss.cvar.hnsw_stats, faiss.cvar.indexIVF_stats
        graph_use.reset()
        list_use.reset()
        numbers = self.index.search(query[None], k, params=settings)[1][0]
        compared = graph_use.ndis + list_use.ndis + (inner.nlist if lists and not graph_use.ndis else 0)
        everything = self.index.ntotal if permitted is None else permitted.sum()
        return numbers[numbers >= 0], float(compared or everything)

    def _inner(self) -> tuple[Any, Any]:
        faiss = require("faiss", extra="neural")
        return faiss.downcast_index(self.index), faiss

    def decoded(self, start: int, stop: int) -> Float32:
        inner = require("faiss", extra="neural").try_extract_index_ivf(self.index)
        if inner is not None:
            inner.make_direct_map()
        vectors: Float32 = self.index.reconstruct_n(start, stop - start)
        return vectors

    def size(self) -> int:
        return int(require("faiss", extra="neural").serialize_index(self.index).nbytes)

    def write(self, path: Path) -> None:
        require("faiss", extra="neural").write_index(self.index, str(path))


@dataclass(frozen=True)
class FaissIndex:
    """The FAISS name of an approximate index, and a query's effort (0: its default).

    Raises BadValue for an empty name, or an effort that is no whole number from 0.
    """

    name: str
    effort: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BadValue(f"index is {self.name!r}; expected the name of an index, such as HNSW32")
        check_whole("effort", self.effort, 0)

    @property
    def arguments(self) -> dict[str, object]:
        return {"index": self.name} | ({"effort": self.effort} if self.effort else {})

    def describe(self) -> dict[str, object]:
        library = None
        for distribution in DISTRIBUTIONS:  # without importing it
            with suppress(PackageNotFoundError):
                library = library or f"faiss {version(distribution)}"
        return {"search": self.name, "effort": self.effort, "engine": library}

    def require(self) -> None:
        require("faiss", extra="neural")

    def build(self, rows: VectorSource) -> Approximate:
        faiss = require("faiss", extra="neural")
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
        try:
            faiss = require("faiss", extra="neural")
            faiss.omp_set_num_threads(1)
            return _with_effort(faiss, faiss.read_index(str(path)), self.effort)
        except (RuntimeError, OSError) as error:
            raise StoreError(
                f"{path}: the index is damaged ({_line(error)}); delete it to build it again"
            ) from None


def _with_effort(faiss: Any, index: Any, effort: int) -> Faiss:  # noqa: ANN401 - FAISS has no types
    inner = faiss.downcast_index(index)
    if effort and isinstance(inner, faiss.IndexHNSW):
        inner.hnsw.efSearch = effort
    elif effort and isinstance(inner, faiss.IndexIVF):
        inner.nprobe = effort
    elif effort:
        raise BadValue("effort applies to IVF and HNSW indexes only")
    return Faiss(index)


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[-1][-200:]
