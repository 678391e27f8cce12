"""MaxSim search: the k best documents for queries of several vectors, exactly, streamed in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.settings import settings
from weir.vectors.exact_search import Found
from weir.vectors.ragged_store import GatheredRagged

__all__ = [
    "HeldTokens",
    "TokenQueries",
    "TokenRows",
    "TokenVectors",
    "Tokens",
    "pair_maxsim",
    "search_chosen",
    "search_tokens",
]

Float32: TypeAlias = NDArray[np.float32]
Progress: TypeAlias = Callable[[int, int], None]
Tokens: TypeAlias = tuple[Int64, NDArray[np.floating]]
"""The token vectors of some documents: those of document i are values[ptr[i]:ptr[i + 1]], ptr from 0."""

BLOCK_TOKENS = 1 << 17
"""Tokens of documents that all queries pass before the next ones."""
QUERY_TOKENS = 2048
"""Tokens of queries that pass them together: what the caches hold beside the documents."""
MAX_OPEN_SHARE = 0.4
"""Share of pairs that a first pass in bytes leaves open beyond which it does not pay."""


class TokenRows(Protocol):
    """Token vectors of documents that can be read in blocks."""

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def lengths(self) -> Int64:
        """Tokens of each document: int64[N]."""
        ...

    @property
    def whole(self) -> Tokens | None:
        """The vectors of all documents where they can be had without copying, else None."""
        ...

    def __len__(self) -> int: ...

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1."""
        ...

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        ...

    def release(self) -> None:
        """Give back what memory blocks read before still take."""
        ...


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Token vectors in a store, as fp16 or fp32. rows: their bytes; dtype: float16 or float32."""

    rows: GatheredRagged
    dtype: type[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.rows.snapshot.raw.shape[1]) // np.dtype(self.dtype).itemsize

    @property
    def lengths(self) -> Int64:
        """Tokens of each document: int64[N]."""
        return self.rows.lengths

    @cached_property
    def whole(self) -> Tokens | None:
        """The vectors of all documents where they follow each other in the file, else None."""
        return self.block(0, len(self)) if (np.diff(self.rows.numbers) == 1).all() else None

    def __len__(self) -> int:
        return len(self.rows)

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1; a view of the file where they follow each other in it."""
        ptr, raw = self.rows.block(start, stop)
        return ptr, np.asarray(raw).view(self.dtype)

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        ptr, raw = self.rows.take(numbers)
        return ptr, np.ascontiguousarray(raw).view(self.dtype)

    def release(self) -> None:
        """Let the system take back the memory of blocks read before."""
        self.rows.release()


@dataclass(frozen=True, eq=False)
class HeldTokens:
    """Token vectors in memory. lengths: int64[N], tokens of each document; values: any float array [T, d]."""

    lengths: Int64
    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.values.shape[1])

    @cached_property
    def _ptr(self) -> Int64:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    @property
    def whole(self) -> Tokens | None:
        """The vectors of all documents."""
        return self._ptr, self.values

    def __len__(self) -> int:
        return len(self.lengths)

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1, a view."""
        low, high = int(self._ptr[start]), int(self._ptr[stop])
        return self._ptr[start : stop + 1] - low, self.values[low:high]

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents, copied."""
        lengths = self.lengths[numbers]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return ptr, self.values[np.repeat(self._ptr[numbers] - ptr[:-1], lengths) + np.arange(ptr[-1])]

    def release(self) -> None:
        """Nothing: the array is the caller's."""


@dataclass(frozen=True, eq=False)
class TokenQueries:
    """The token vectors of queries: those of query q are values[ptr[q]:ptr[q + 1]]; values float32[any, d]."""

    ptr: Int64
    values: Float32

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def of(self, q: int) -> Float32:
        """The vectors of one query."""
        return self.values[self.ptr[q] : self.ptr[q + 1]]

    def slice(self, start: int, stop: int) -> TokenQueries:
        """Queries start..stop-1."""
        low, high = self.ptr[start], self.ptr[stop]
        return TokenQueries(self.ptr[start : stop + 1] - low, self.values[low:high])

    def parts(self, tokens: int) -> list[tuple[int, int]]:
        """(start, stop) of queries with about so many tokens together."""
        found, start = [], 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(self.ptr, self.ptr[start] + tokens, side="right")) - 1)
            found.append((start, stop))
            start = stop
        return found


def search_tokens(
    rows: TokenRows,
    query: TokenQueries,
    k: int,
    tie_rank: Int32,
    progress: Progress | None = None,
    first_pass: bool = True,
) -> Found:
    """The k best documents for each query by MaxSim, fewer where there are fewer; exact, in trec order.

    tie_rank: int32[N], distinct, places of documents of equal score (Ids.tie_ranks). A document without tokens is
    never found. progress: told (documents looked at, all); first_pass: whether bounds in bytes may show which scores
    need not be computed, which decides the time and never the answer. Raises BadValue for other dimensions and for
    numbers that are not finite.
    """
    _refuse_other(rows, query)
    best, seen, exact = np.zeros((len(query), 0), np.uint64), 0, 0
    looseness = 1.0
    for start, stop in _spans(rows.lengths):
        some = np.flatnonzero(rows.lengths[start:stop] > 0)
        block = _Block(rows.block(start, stop), some, tie_rank[start + some])
        # So many of a block would be among the best so far by chance; more stay open, as bounds are wide.
        chance = k / (seen + len(some) + 1)
        keys = None
        if first_pass and chance * looseness < MAX_OPEN_SHARE and block.able:
            keys, share = block.open_ones(query, best, k)
            looseness = max(1.0, share / chance)
        if keys is None and len(some):
            keys = _keys(block.scored(query, some), block.tie_rank)
        if keys is not None:
            best, exact = _kept(best, keys, k), exact + int(np.count_nonzero(keys))
        rows.release()
        seen += len(some)
        if progress is not None:
            progress(stop, len(rows))
    return _found(best, tie_rank, exact)


def search_chosen(
    rows: TokenRows, query: TokenQueries, chosen: list[Int64], k: int, tie_rank: Int32
) -> Found:
    """As `search_tokens`, of each query's own documents only, whose numbers ascend."""
    _refuse_other(rows, query)
    parts = []
    for q, docs in enumerate(chosen):
        some = docs[rows.lengths[docs] > 0]
        score = pair_maxsim(rows, query.of(q), some).astype(np.float32)[None]
        keys = _kept(np.zeros((1, 0), np.uint64), _keys(score, tie_rank[some]), k)
        parts.append(_found(keys, tie_rank, len(some)))
    counts, exact = [len(part.doc) for part in parts], sum(part.exact for part in parts)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    doc = np.concatenate([np.zeros(0, np.int32), *(part.doc for part in parts)])
    return Found(ptr, doc, np.concatenate([np.zeros(0, np.float32), *(p.score for p in parts)]), exact)


def pair_maxsim(rows: TokenRows, query: Float32, docs: NDArray[np.integer]) -> Float64:
    """The score of each of these documents, which have tokens, for one query: the same bits as searching gives."""
    from weir.kernels.maxsim.exact_maxsim import maxsim

    if len(docs) == 0:
        return np.zeros(0)
    picked = None if rows.whole is None else docs
    ptr, values = rows.take(docs) if rows.whole is None else rows.whole
    place = np.array([0, len(query)], np.int64)
    found: Float32 = maxsim(query, place, values, ptr, picked, settings().threads)[0]
    return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Block:
    """Documents `some` of a block, which have tokens, and their places in a tie."""

    tokens: Tokens
    some: Int64
    tie_rank: Int32

    @property
    def able(self) -> bool:
        """Whether a first pass in bytes is possible."""
        from weir.kernels.maxsim.maxsim_bounds import can_quantise

        return len(self.some) > 0 and can_quantise(self.tokens[1])

    def scored(self, query: TokenQueries, docs: Int64) -> Float32:
        """float32[Q, n]: the scores of these documents."""
        from weir.kernels.maxsim.exact_maxsim import maxsim

        ptr, values = self.tokens
        parts = []
        for start, stop in query.parts(QUERY_TOKENS):
            part = query.slice(start, stop)
            parts.append(maxsim(part.values, part.ptr, values, ptr, docs, settings().threads))
        return np.concatenate(parts)

    def open_ones(
        self, query: TokenQueries, best: NDArray[np.uint64], k: int
    ) -> tuple[NDArray[np.uint64] | None, float]:
        """(keys of the documents that may be among the k best, 0 for none, and the share of pairs that these are);
        None where there are too many of them. best: the keys of those before; with this block at least k."""
        ptr, values = self.tokens
        starts, ends = ptr[self.some], ptr[self.some + 1]
        parts = [
            self._estimated(query.slice(a, b), values, starts, ends) for a, b in query.parts(QUERY_TOKENS)
        ]
        about, off = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        least = np.concatenate([_scores(best), about - off], axis=1)
        bar = np.partition(least, least.shape[1] - k, axis=1)[:, -k]
        still = ~(about + off < bar[:, None])  # what is not a number is looked at exactly
        share = float(still.mean())
        if share > MAX_OPEN_SHARE:
            return None, share
        keys = np.zeros((len(query), int(still.sum(axis=1).max())), np.uint64)
        for q in range(len(query)):
            docs = np.flatnonzero(still[q])
            if len(docs):
                score = self.scored(query.slice(q, q + 1), self.some[docs])
                keys[q, : len(docs)] = _keys(score, self.tie_rank[docs])[0]
        return keys, share

    @staticmethod
    def _estimated(
        query: TokenQueries, values: NDArray[np.floating], starts: Int64, ends: Int64
    ) -> tuple[Float32, Float32]:
        from weir.kernels.maxsim.maxsim_bounds import bounds

        return bounds(query.values, query.ptr, values, starts, ends, settings().threads)


def _spans(lengths: Int64) -> Iterator[tuple[int, int]]:
    """(start, stop) of documents that pass together."""
    ends, start = np.cumsum(lengths), 0
    while start < len(lengths):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + BLOCK_TOKENS, side="right")))
        yield start, stop
        start = stop


def _keys(score: Float32, tie_rank: Int32) -> NDArray[np.uint64]:
    """Whole numbers in the order of results, the best greatest: the score's bits above, the place in a tie below."""
    bits = np.ascontiguousarray(score + np.float32(0)).view(np.uint32)  # -0 and 0 are equal
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    return ordered << np.uint64(32) | (0xFFFFFFFF - tie_rank.astype(np.uint64))


def _kept(best: NDArray[np.uint64], keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """The k greatest of each row."""
    both = np.concatenate([best, keys], axis=1)
    if both.shape[1] <= k:
        return both
    return np.partition(both, both.shape[1] - k, axis=1)[:, -k:]


def _scores(keys: NDArray[np.uint64]) -> Float32:
    """The scores in keys."""
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered >> 31, ordered & np.uint32(0x7FFFFFFF), ~ordered).view(np.float32)


def _found(best: NDArray[np.uint64], tie_rank: Int32, exact: int) -> Found:
    count = best.shape[1]
    keys = np.sort(best, axis=1)[:, ::-1].ravel()
    by_rank = np.empty(len(tie_rank), np.int32)
    by_rank[tie_rank] = np.arange(len(tie_rank), dtype=np.int32)
    doc = by_rank[(0xFFFFFFFF - (keys & np.uint64(0xFFFFFFFF))).astype(np.int64)]
    return Found(np.arange(len(best) + 1, dtype=np.int64) * count, doc, _scores(keys), exact)


def _refuse_other(rows: TokenRows, query: TokenQueries) -> None:
    if len(rows) and query.values.shape[1] != rows.dimensions:
        raise BadValue(
            f"queries have vectors of {query.values.shape[1]} numbers, documents of {rows.dimensions}"
        )
