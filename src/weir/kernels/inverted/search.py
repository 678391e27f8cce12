"""Find the exact top k in an impact index (postings.py describes its layout).

    index = Impacts(n_docs, ptr, stored(ptr, doc, impact, n_docs))
    count, doc, score = search(index, qptr, qterm, qweight, k, threads=1).

A score is float32(sum over query terms, in float64, of weight * impact). Order: score descending, internal
number ascending; only scores above 0 are returned.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.arrays import Float32, Int32, Int64
from weir.kernels.inverted.block_bounds import RANKS, BlockBounds
from weir.kernels.inverted.bound_scan import BoundSums, search_by_bounds
from weir.kernels.inverted.byte_bounds import WINDOW, ByteBounds, KeptWindows, in_memory
from weir.kernels.inverted.exhaustive import search_exhaustively
from weir.kernels.inverted.maxscore import WindowSums, search_by_postings
from weir.kernels.inverted.packed import PackedLists, PlainLists, look_up, unpacked, write_list
from weir.kernels.inverted.query_plan import Postings, QueryTerms, SparseQueries
from weir.kernels.inverted.top_k import Hits, Selection

Scratch: TypeAlias = tuple[Any, ...]

_SLACK_KEYS = 64
_SPACE_KEYS = 512  # beyond twice k: the best are selected that much more rarely
DEEPEST_BOUND_SCAN = 1000  # documents of a query beyond which byte bounds leave out too little
_scratch = threading.local()  # one thread's memory between calls; its accumulators are zero between calls


def _read_only(array: NDArray[Any], dtype: type[np.generic] | None = None) -> NDArray[Any]:
    view = np.ascontiguousarray(np.asarray(array), dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Impacts:
    """An impact index ready to search, perhaps memory-mapped; raises ValueError if packed arrays' sizes
    disagree.
    """

    n_docs: int
    ptr: Int64
    stored: PlainLists | PackedLists
    """As `packed.stored` returns them: plain for so few documents that a search adds all postings."""
    columns: ByteBounds | None = None
    """Bounds for a model's weights, whose frequent terms make `bounds` loose; None searches by postings
    alone."""
    arrays: tuple[Any, ...] = field(init=False, repr=False)
    """Read-only arrays for kernels: postings, bounds or the largest impact of each term, columns."""

    def __post_init__(self) -> None:
        ptr = _read_only(self.ptr, np.int64)
        if isinstance(self.stored, PlainLists):
            doc, impact = _read_only(self.stored.doc, np.int32), _read_only(self.stored.impact, np.float32)
            found: Scratch = (Postings(ptr, doc, impact), _largest(ptr, impact))
        else:
            given = (
                *unpacked(ptr, self.stored, self.n_docs),
                *([] if self.columns is None else [self.columns]),
            )
            found = tuple(type(some)(*map(_read_only, some)) for some in given)
        object.__setattr__(self, "arrays", found)

    @property
    def bounds(self) -> BlockBounds | None:
        """Upper bounds of packed lists; None for plain lists."""
        return None if isinstance(self.stored, PlainLists) else self.arrays[1]

    def with_columns(self, kept: KeptWindows = in_memory) -> Impacts:
        """Return the index with byte bounds of its frequent terms; the same index for few documents.

        kept: see `ByteBounds.of`.
        """
        if isinstance(self.stored, PlainLists):
            return self
        return replace(self, columns=ByteBounds.of(*self.arrays[:2], self.n_docs, kept))

    def list_of(self, term: int) -> tuple[Int32, Float32]:
        """Return (documents with a term, ascending; its impacts in them)."""
        start, stop = self.ptr[term], self.ptr[term + 1]
        if isinstance(self.stored, PlainLists):
            return self.stored.doc[start:stop], self.stored.impact[start:stop]
        doc, impact = np.empty(stop - start, np.int32), np.empty(stop - start, np.float32)
        write_list(*self.arrays[:2], term, doc, impact)
        return doc, impact

    def largest_of(self, term: int) -> np.float32:
        """Return the largest impact of a term that some document has."""
        bounds = self.bounds
        if bounds is not None and bounds.listed[term] >= 0:
            return np.float32(bounds.top[bounds.listed[term], 0])
        return np.float32(self.list_of(term)[1].max())

    def impacts_in(self, term: int, docs: Int32) -> Float32:
        """Return a term's impacts in these documents, float32[docs]; 0 where a document lacks it."""
        impact = np.zeros(len(docs), np.float32)
        if isinstance(self.stored, PlainLists):
            doc, own = self.list_of(term)
            at = np.minimum(np.searchsorted(doc, docs), len(doc) - 1)
            hit = doc[at] == docs
            impact[hit] = own[at[hit]]
        else:
            look_up(*self.arrays[:2], term, np.ascontiguousarray(docs), impact)
        return impact


def _largest(ptr: Int64, impact: Float32) -> Float32:
    found = np.zeros(len(ptr) - 1, np.float32)
    some = np.flatnonzero(np.diff(ptr))
    if len(some):
        found[some] = np.maximum.reduceat(impact, ptr[some])
    found.flags.writeable = False
    return found


def _window(n_docs: int) -> int:
    return min(max(12, (n_docs >> 4).bit_length()), 16)


# Documents are visited in windows that fit the cache. As in MaxScore (Turtle and Flood 1995), terms whose largest
# impacts together cannot reach the k-th best score so far are only looked up in candidates from the other terms. That
# score starts at the k-th largest impact of a single term. An index with columns is searched by upper bounds of all
# scores (bound_scan.py), with the same bits. All skipping is by proof.
def search(index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, k: int, threads: int = 1) -> Hits:
    """Return each query's k best documents of a score above 0, best first, ties by ascending number; unfilled
    places hold -1 and 0.

    qptr: offsets of the queries, int64[Q + 1].
    qterm, qweight: terms, each with its weight; terms outside the index are ignored, repeated ones count each
        time.

    Raises BadValue for k < 1, inconsistent sizes, and weights that are negative or not finite.
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
        or not (0 <= qptr.item(0) <= qptr.item(n) <= len(qterm) and (n == 1 or (qptr[1:] >= qptr[:-1]).all()))
    ):
        raise BadValue("search: one weight per query term, one pointer more than queries")
    hits = Hits(np.empty(n, np.int32), np.empty((n, k), np.int32), np.empty((n, k), np.float32))
    parts = min(threads, n)
    if parts <= 1:
        _chunk(index, SparseQueries(qptr, qterm, qweight), hits)
        return hits
    # Several chunks a thread, because queries differ in cost.
    cuts = np.linspace(0, n, 1 + min(n, 4 * parts)).astype(np.int64).tolist()
    with ThreadPoolExecutor(parts) as pool:
        jobs = [
            pool.submit(
                _chunk,
                index,
                SparseQueries(qptr[a : b + 1], qterm, qweight),
                Hits(*(array[a:b] for array in hits)),
            )
            for a, b in itertools.pairwise(cuts)
        ]
        for job in jobs:
            job.result()
    return hits


def _chunk(index: Impacts, queries: SparseQueries, hits: Hits) -> None:
    depth = min(hits.doc.shape[1], max(1, index.n_docs))
    if isinstance(index.stored, PlainLists):
        _exhaustively(index, queries, depth, hits)
    elif index.columns is None or depth > DEEPEST_BOUND_SCAN:
        _by_postings(index, queries, depth, hits)
    else:
        for q in _by_bounds(index, queries, depth, hits).tolist():
            one = Hits(*(array[q : q + 1] for array in hits))
            _by_postings(index, queries._replace(ptr=queries.ptr[q : q + 2]), depth, one)


def _exhaustively(index: Impacts, queries: SparseQueries, depth: int, hits: Hits) -> None:
    sizes = -(-index.n_docs // 64) * 64, max(2 * depth + _SPACE_KEYS, _longest(queries.ptr))

    def make_scratch() -> Scratch:
        sums = np.zeros(sizes[0] + 1)
        return sums, sums.view(np.int64), Selection.of(sizes[1])

    _with_scratch(
        "exhaustive",
        sizes,
        make_scratch,
        lambda *some: search_exhaustively(*index.arrays, queries, depth, *some, hits),
    )


def _by_bounds(index: Impacts, queries: SparseQueries, depth: int, hits: Hits) -> Int64:
    left = np.zeros(len(queries.ptr) - 1, np.bool_)
    room, longest = 8 * depth + 1024, _longest(queries.ptr)

    def make_scratch() -> Scratch:
        return BoundSums.of(1 << WINDOW, longest, room), Selection.of(room), QueryTerms.of(longest)

    _with_scratch(
        "bounds", (room, longest), make_scratch,
        lambda *some: search_by_bounds(
            index.n_docs, *index.arrays, queries, depth, _rank(depth), WINDOW, *some, hits, left
        ),
    )  # fmt: skip
    return np.flatnonzero(left)


def _by_postings(index: Impacts, queries: SparseQueries, depth: int, hits: Hits) -> None:
    window, longest = _window(index.n_docs), _longest(queries.ptr)
    rank, room = _rank(hits.doc.shape[1]), 2 * depth + _SLACK_KEYS

    def make_scratch() -> Scratch:
        sums, live = WindowSums.of(1 << window), np.empty(longest, np.int64)
        return sums, Selection.of(room), QueryTerms.of(longest), live

    _with_scratch(
        "postings", (window, room, longest), make_scratch,
        lambda *some: search_by_postings(
            index.n_docs, *index.arrays[:2], queries, depth, rank, window, *some, hits
        ),
    )  # fmt: skip


def _longest(qptr: Int64) -> int:
    longest = qptr.item(1) - qptr.item(0) if len(qptr) == 2 else int((qptr[1:] - qptr[:-1]).max(initial=0))
    return max(64, 1 << longest.bit_length())


def _with_scratch(
    kind: str, sizes: tuple[int, ...], make: Callable[[], Scratch], run: Callable[..., int]
) -> None:
    held = _scratch.__dict__.pop(kind, None)
    arrays = held[1] if held is not None and held[0] == sizes else make()
    status = run(*arrays)
    _scratch.__dict__[kind] = sizes, arrays
    if status:
        raise BadValue("weights of query terms must be finite and not negative")


def _rank(k: int) -> int:
    return next((i + 1 for i, r in enumerate(RANKS) if k <= r), 0)
