"""The compiled search: windows of documents, essential terms, a rising limit. See search.py for the whole."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.inverted.maxscore_window import score_window
from weir.kernels.inverted.query_plan import enter_window, plan
from weir.kernels.inverted.top_k import keep_largest, sort_descending
from weir.kernels.jit import jit

__all__ = ["search_chunk"]

Bytes: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOW = 0xFFFFFFFF


@jit
def _write(
    keys: Int64,
    n_keys: int,
    q: int,
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
    f32: Float32,
    u32: NDArray[np.uint32],
) -> None:
    """Unpack a query's sorted keys into its row of the results."""
    out_count[q] = n_keys
    for i in range(n_keys):
        u32[0] = np.uint32(keys[i] >> 32)
        out_score[q, i] = f32[0]
        out_doc[q, i] = _LOW - (keys[i] & _LOW)
    for i in range(n_keys, out_doc.shape[1]):
        out_score[q, i] = 0.0
        out_doc[q, i] = -1


@jit
def search_chunk(
    n_docs: int,
    ptr: Int64,
    doc: Int32,
    impact: Float32,
    listed: Int32,
    top: Float32,
    shift: Bytes,
    base: Int64,
    offset: Int32,
    peak: Float32,
    qptr: Int64,
    qterm: Int32,
    qweight: Float32,
    k: int,
    rank: int,
    window: int,
    acc: Float64,
    bits: Int64,
    cval: Float64,
    cdoc: Int32,
    keys: Int64,
    spare: Int64,
    counts: Int64,
    live: Int64,
    order: Int64,
    other: Int64,
    term: Int64,
    value: Float64,
    f32: Float32,
    u32: NDArray[np.uint32],
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
) -> int:
    """Search a chunk of queries; 0, or 1 when a weight is negative or not finite (nothing is searched then).

    rank: the column of `top` for this k (0: none). 1 << window: documents of a window. acc: one accumulator
    more than that, zero before and after; bits: the same memory. The others are scratch: cval, cdoc as long as a
    window; keys, spare: the best k are selected whenever keys, longer than k, is full; counts: int64[2048]; live,
    order, other, and the rows of term (6) and value (4) as long as the longest query; f32: one number, u32: its bits.
    """
    for j in range(qptr[0], qptr[len(qptr) - 1]):
        if not 0.0 <= qweight[j] < np.inf:
            return 1
    width, room = 1 << window, len(keys)
    for q in range(len(qptr) - 1):
        n_terms, limit = plan(
            ptr, impact, listed, top, shift, base, qterm, qweight, qptr[q], qptr[q + 1],
            rank, window, order, other, counts, term, value, f32, u32,
        )  # fmt: skip
        n_keys, least = int(np.int64(0)), np.int64(-1)
        for begin in range(0, n_docs if n_terms > 0 else 0, width):
            finish = min(begin + width, n_docs)
            n_live, total = enter_window(doc, offset, term, value, n_terms, finish, n_docs, live)
            n = 0
            if total > limit:
                n = score_window(
                    doc, impact, offset, peak, term, value, live, n_live,
                    begin, finish - begin, limit, acc, bits, cdoc, cval,
                )  # fmt: skip
            for c in range(n):
                f32[0] = np.float32(cval[c])
                key = (np.int64(u32[0]) << 32) | (_LOW - np.int64(cdoc[c]))
                if key > least and u32[0] > 0:
                    keys[n_keys] = key
                    n_keys += 1
                    if n_keys == room:
                        least = keep_largest(keys, spare, n_keys, k, counts)
                        n_keys = k
            if n_keys > k + (k >> 3) and finish < n_docs:
                least = keep_largest(keys, spare, n_keys, k, counts)
                n_keys = k
            if least >= 0:
                u32[0] = np.uint32((least >> 32) - 1)
                limit = max(limit, np.float64(f32[0]))
            for i in range(n_terms):
                term[2, i] = term[3, i]
        if n_keys > k:
            keep_largest(keys, spare, n_keys, k, counts)
            n_keys = k
        sort_descending(keys, spare, n_keys, counts)
        _write(keys, n_keys, q, out_count, out_doc, out_score, f32, u32)
    return 0
