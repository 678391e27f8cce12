"""Exact top-k over an impact index.

    index = Impacts(n_docs, ptr, doc, impact, bounds)      bounds = Bounds.of(ptr, doc, impact, n_docs)
    or for few documents: Impacts(n_docs, ptr, doc, impact, None), see exhaustive.py
    or with learned weights: Impacts(..., columns)          columns = Columns.of(ptr, doc, impact, n_docs)
    count, doc, score = search(index, qptr, qterm, qweight, k, threads=1)

ptr int64[V+1], doc int32[P] ascending in a term, impact float32[P] >= 0 (see postings.py); queries as
qptr int64[Q+1], qterm int32[], qweight float32[]; results count int32[Q], doc int32[Q, k], score
float32[Q, k]. Read-only views are taken of every index array, so memory-mapped files serve as they are.

A score is float32(sum over the query's terms, in float64, of weight * impact); order: score descending,
internal number ascending; a row holds -1 and 0 beyond count[q]. Terms outside 0..V-1 and weights of 0 are
ignored; a repeated term counts each time. Only documents with a score above 0 are returned.

How it works. Documents are visited in windows that fit the cache. A window's terms are split as in MaxScore
(Turtle and Flood 1995): the terms whose largest impacts together cannot reach the k-th best score so far
are only looked up for documents that the other terms brought close enough. The k-th best score starts at
the k-th largest impact of a single term. Everything is skipped on proof only, so results are exact. An index with
columns is searched by upper bounds of all documents' scores instead, see tally.py; the results are the same bits.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.inverted.block_bounds import RANKS, BlockBounds
from weir.kernels.inverted.bound_scan import tally_chunk
from weir.kernels.inverted.byte_bounds import WINDOW, ByteBounds
from weir.kernels.inverted.exhaustive import exhaust_chunk
from weir.kernels.inverted.maxscore import search_chunk

__all__ = ["Impacts", "search"]

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Hits: TypeAlias = tuple[Int32, Int32, Float32]

_SLACK = 64
_SPACE = 512  # keys beyond twice k: the best are selected that much more rarely
_DEEPEST = 1000  # beyond, bounds by columns leave out too little
_WEIGHTS = "weights of query terms must be finite and not negative"
_scratch = threading.local()  # one thread's memory between calls; its accumulators are zero between calls


def _read_only(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    view = np.ascontiguousarray(np.asarray(array), dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Impacts:
    """An impact index ready to be searched: postings by term and their bounds.

    n_docs documents, ptr int64[V+1], doc int32[P], impact float32[P]; arrays may be memory-mapped. bounds: None where
    documents are so few that all postings are added. columns: where frequent terms say little alone, as learned
    weights do; None: searched by the postings only.
    """

    n_docs: int
    ptr: Int64
    doc: Int32
    impact: Float32
    bounds: BlockBounds | None
    columns: ByteBounds | None = None
    arrays: tuple[NDArray[Any], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        b = self.bounds
        arrays: tuple[NDArray[Any], ...] = (
            _read_only(self.ptr, np.int64),
            _read_only(self.doc, np.int32),
            _read_only(self.impact, np.float32),
        )
        if b is None:
            arrays += (_largest(arrays[0], arrays[2]),)
        else:
            arrays += (
                _read_only(b.listed, np.int32),
                _read_only(b.top, np.float32),
                _read_only(b.shift, np.uint8),
                _read_only(b.base, np.int64),
                _read_only(b.offset, np.int32),
                _read_only(b.peak, np.float32),
            )
        object.__setattr__(self, "arrays", arrays)


def _largest(ptr: Int64, impact: Float32) -> Float32:
    """The largest impact of each term, 0 for one without postings."""
    found = np.zeros(len(ptr) - 1, np.float32)
    some = np.flatnonzero(np.diff(ptr))
    if len(some):
        found[some] = np.maximum.reduceat(impact, ptr[some])
    found.flags.writeable = False
    return found


def _window(n_docs: int) -> int:
    """Sixteen windows or more, each of 4,096 to 65,536 documents."""
    return min(max(12, (n_docs >> 4).bit_length()), 16)


def search(index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, k: int, threads: int = 1) -> Hits:
    """The k best documents of each query: (count int32[Q], doc int32[Q, k], score float32[Q, k]).

    qptr: int64[Q+1]; qterm: int32, unknown terms are -1; qweight: float32, >= 0. Results do not depend on
    threads or on which queries are searched together. Raises BadValue for k < 1, for arrays of
    contradictory sizes, and for weights that are negative or not finite.
    """
    if k < 1:
        raise BadValue(f"k must be at least 1, not {k}")
    qptr = np.ascontiguousarray(qptr, np.int64)
    qterm = np.ascontiguousarray(qterm, np.int32)
    qweight = np.ascontiguousarray(qweight, np.float32)
    n = len(qptr) - 1
    if (
        n < 0
        or len(qterm) != len(qweight)
        or not (qptr[0] >= 0 and qptr[n] <= len(qterm) and (qptr[1:] >= qptr[:-1]).all())
    ):
        raise BadValue("search: one weight per query term, one pointer more than queries")
    hits = np.empty(n, np.int32), np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    parts = min(threads, n)
    if parts <= 1:
        _chunk(index, qptr, qterm, qweight, hits)
        return hits
    # Several chunks a thread, because queries differ in cost.
    cuts = np.linspace(0, n, 1 + min(n, 4 * parts)).astype(np.int64).tolist()
    with ThreadPoolExecutor(parts) as pool:
        jobs = [
            pool.submit(
                _chunk, index, qptr[a : b + 1], qterm, qweight, (hits[0][a:b], hits[1][a:b], hits[2][a:b])
            )
            for a, b in itertools.pairwise(cuts)
        ]
        for job in jobs:
            job.result()
    return hits


def _chunk(index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, hits: Hits) -> None:
    depth = min(hits[1].shape[1], max(1, index.n_docs))
    if index.bounds is None:
        _exhaustively(index, qptr, qterm, qweight, hits)
    elif index.columns is None or depth > _DEEPEST:
        _by_postings(index, qptr, qterm, qweight, hits)
    else:
        for q in _by_columns(index, index.columns, qptr, qterm, qweight, hits).tolist():
            one = hits[0][q : q + 1], hits[1][q : q + 1], hits[2][q : q + 1]
            _by_postings(index, qptr[q : q + 2], qterm, qweight, one)


def _exhaustively(index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, hits: Hits) -> None:
    """Search few documents."""
    depth = min(hits[1].shape[1], max(1, index.n_docs))
    room = max(2 * depth + _SPACE, _longest(qptr))
    sizes = -(-index.n_docs // 64) * 64, room
    scratch = _taken("exhaustive", sizes, _exhaustive_scratch)
    status = exhaust_chunk(*index.arrays, qptr, qterm, qweight, depth, *scratch, *hits)
    _left("exhaustive", sizes, scratch)
    if status:
        raise BadValue(_WEIGHTS)


def _exhaustive_scratch(width: int, room: int) -> tuple[NDArray[Any], ...]:
    sums = np.zeros(width + 1)
    return sums, sums.view(np.int64), *np.empty((2, room), np.int64), np.empty(2048, np.int64), *_cell()


def _by_columns(
    index: Impacts, columns: ByteBounds, qptr: Int64, qterm: Int32, qweight: Float32, hits: Hits
) -> Int64:
    """Search by upper bounds; the queries for which these left too many documents."""
    depth = min(hits[1].shape[1], index.n_docs)
    left = np.zeros(len(qptr) - 1, np.bool_)
    sizes = 8 * depth + 1024, _longest(qptr)
    scratch = _taken("columns", sizes, _columns_scratch)
    status = tally_chunk(
        index.n_docs, *index.arrays, *columns.arrays, qptr, qterm, qweight, depth, _rank(depth), WINDOW,
        *scratch, *hits, left,
    )  # fmt: skip
    _left("columns", sizes, scratch)
    if status:
        raise BadValue(_WEIGHTS)
    return np.flatnonzero(left)


def _columns_scratch(room: int, longest: int) -> tuple[NDArray[Any], ...]:
    sums = np.zeros(1 << WINDOW, np.float32)
    return (
        sums, sums.view(np.int32), *np.empty((3, room), np.int64), np.empty(2048, np.int64),
        *np.empty((2, longest), np.int64), np.empty((7, longest), np.int64), np.empty((4, longest)),
        np.empty(longest, np.float32), np.empty(room, np.int32), np.empty(room), *_cell(),
    )  # fmt: skip


def _by_postings(index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, hits: Hits) -> None:
    k = hits[1].shape[1]
    window = _window(index.n_docs)
    depth = min(k, max(1, index.n_docs))
    sizes = 1 << window, 2 * depth + _SLACK, _longest(qptr)
    scratch = _taken("postings", sizes, _postings_scratch)
    status = search_chunk(
        index.n_docs, *index.arrays, qptr, qterm, qweight, depth, _rank(k), window, *scratch, *hits
    )
    _left("postings", sizes, scratch)
    if status:
        raise BadValue(_WEIGHTS)


def _postings_scratch(width: int, room: int, longest: int) -> tuple[NDArray[Any], ...]:
    sums = np.zeros(width + 1)
    return (
        sums, sums.view(np.int64), np.empty(width), np.empty(width, np.int32), *np.empty((2, room), np.int64),
        np.empty(2048, np.int64), *np.empty((3, longest), np.int64), np.empty((6, longest), np.int64),
        np.empty((4, longest)), *_cell(),
    )  # fmt: skip


def _cell() -> tuple[Float32, NDArray[np.uint32]]:
    """One float and its bits."""
    number = np.empty(1, np.float32)
    return number, number.view(np.uint32)


def _longest(qptr: Int64) -> int:
    """Room for the terms of the longest query, in steps that let most calls use the memory of the last."""
    longest = int(qptr[1] - qptr[0]) if len(qptr) == 2 else int((qptr[1:] - qptr[:-1]).max(initial=0))
    return max(64, 1 << longest.bit_length())


def _taken(
    kind: str, sizes: tuple[int, ...], make: Callable[..., tuple[NDArray[Any], ...]]
) -> tuple[NDArray[Any], ...]:
    """One thread's scratch arrays, those of the last call where they are of these sizes.

    They are given back by `_left`, after use: should a call be interrupted, the next one starts from clean memory.
    """
    held = _scratch.__dict__.pop(kind, None)
    return held[1] if held is not None and held[0] == sizes else make(*sizes)


def _left(kind: str, sizes: tuple[int, ...], arrays: tuple[NDArray[Any], ...]) -> None:
    _scratch.__dict__[kind] = sizes, arrays


def _rank(k: int) -> int:
    """The column of `BlockBounds.top` that bounds the k-th best score; 0: none."""
    return next((i + 1 for i, r in enumerate(RANKS) if k <= r), 0)
