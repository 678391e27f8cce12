"""Exact top-k over an impact index.

    index = Impacts(n_docs, ptr, doc, impact, bounds)      bounds = Bounds.of(ptr, doc, impact, n_docs)
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
the k-th largest impact of a single term. Everything is skipped on proof only, so results are exact.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.bounds import RANKS, Bounds
from weir.kernels.jit import jit
from weir.kernels.select import keep_largest, sort_descending

__all__ = ["Impacts", "search"]

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Keys: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]

_MAX_WINDOW = 16
_SLACK = 64
_MERGE = 16  # looking a term up in a document costs as much as adding this many postings


@jit
def _first_at(doc: Int32, low: int, high: int, number: int) -> int:
    """First position in doc[low:high] holding at least `number`; doubles its steps, as it is usually near."""
    step = np.int64(1)
    while low + step < high and doc[np.uint64(low + step)] < number:
        low += step
        step += step
    top = min(low + step, high)
    while low < top:
        middle = (low + top) >> 1
        if doc[np.uint64(middle)] < number:
            low = middle + 1
        else:
            top = middle
    return low


@jit
def _limit_below(key: np.uint64, f32: Float32, u32: NDArray[np.uint32]) -> float:
    """A value no float64 sum may stay at or under if, rounded to float32, it is to reach this key's score.

    It is the next smaller float32, so it also absorbs rounding in sums of upper bounds.
    """
    u32[0] = np.uint32((key >> np.uint64(32)) - np.uint64(1))
    return np.float64(f32[0])


@jit
def _near(doc: Int32, acc: Float64, low: int, high: int, origin: np.uint64, bar: float) -> float:
    """Share of a list's documents whose sum passes the bar, from a sample of at most 64."""
    step = max(np.int64(1), (high - low) >> 6)
    seen, passed = 0, 0
    for p in range(low, high, step):
        seen += 1
        passed += acc[np.uint64(doc[np.uint64(p)]) - origin] > bar
    return passed / seen


@jit
def _look_up(
    doc: Int32,
    impact: Float32,
    offset: Int32,
    peak: Float32,
    start: int,
    low: int,
    high: int,
    blocks: int,
    shift: int,
    weight: float,
    bound: float,
    rest: float,
    limit: float,
    cdoc: Int32,
    cval: Float64,
    n: int,
) -> int:
    """Add one term to the candidates that can still pass the limit and drop the others; how many remain.

    blocks: first range of the term in offset/peak, or -1; bound: its largest contribution; rest: that of the
    terms after it. low:high are the term's postings inside the window.
    """
    m = np.int64(0)
    for c in range(n):
        value = cval[c]
        if value + bound + rest <= limit:
            continue
        d = cdoc[c]
        if blocks >= 0:
            r = np.uint64(blocks + (np.int64(d) >> shift))
            if value + weight * np.float64(peak[r]) + rest <= limit:
                continue
            p, stop = start + np.int64(offset[r]), start + np.int64(offset[r + np.uint64(1)])
            while p < stop and doc[np.uint64(p)] < d:
                p += 1
        else:
            stop = high
            p = _first_at(doc, low, high, d)
        if p < stop and doc[np.uint64(p)] == d:
            value += weight * np.float64(impact[np.uint64(p)])
        if value + rest > limit:
            cdoc[m] = d
            cval[m] = value
            m += 1
    return m


@jit
def _search(
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
    cdoc: Int32,
    cval: Float64,
    keys: Keys,
    spare: Keys,
    terms: Int64,
    bounds: Float64,
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
) -> None:
    """Search a chunk of queries; `rank` is the column of `top` for this k (0: none), 1 << window the range."""
    f32 = np.zeros(1, np.float32)
    u32 = f32.view(np.uint32)
    counts = np.empty(2048, np.int64)
    width = np.int64(1) << window
    acc_bits = acc.view(np.int64)
    # Rows of scratch, one column per query term.
    t_start, t_end, t_now, t_stop, t_blocks, t_shift, live = (
        terms[0],
        terms[1],
        terms[2],
        terms[3],
        terms[4],
        terms[5],
        terms[6],
    )
    t_weight, t_bound = bounds[0], bounds[1]
    room = np.int64(len(keys))
    low_mask = np.uint64(0xFFFFFFFF)
    for q in range(len(qptr) - 1):
        # 1. The query's lists, by decreasing largest contribution.
        n_terms = np.int64(0)
        limit = 0.0
        for j in range(qptr[q], qptr[q + 1]):
            t = np.int64(qterm[j])
            w = np.float64(qweight[j])
            if t < 0 or t >= len(ptr) - 1 or not w > 0.0:
                continue
            start, end = ptr[t], ptr[t + 1]
            if start == end:
                continue
            row = np.int64(listed[t])
            blocks, s = np.int64(-1), np.int64(0)
            if row >= 0:
                bound = w * np.float64(top[row, 0])
                if rank > 0:
                    # k documents have at least this score, so a lower one cannot be among the best k.
                    f32[0] = np.float32(w * np.float64(top[row, rank]))
                    if u32[0] > 0:
                        u32[0] -= np.uint32(1)
                        limit = max(limit, np.float64(f32[0]))
                if shift[row] <= window:
                    blocks, s = base[row], np.int64(shift[row])
            else:
                most = np.float32(0)
                for p in range(start, end):
                    most = max(most, impact[p])
                bound = w * np.float64(most)
            i = n_terms
            while i > 0 and t_bound[i - 1] < bound:
                t_start[i], t_end[i], t_blocks[i], t_shift[i] = (
                    t_start[i - 1],
                    t_end[i - 1],
                    t_blocks[i - 1],
                    t_shift[i - 1],
                )
                t_weight[i], t_bound[i] = t_weight[i - 1], t_bound[i - 1]
                i -= 1
            t_start[i], t_end[i], t_blocks[i], t_shift[i] = start, end, blocks, s
            t_weight[i], t_bound[i] = w, bound
            n_terms += 1
        for i in range(n_terms):
            t_now[i] = t_start[i]
        n_keys = np.int64(0)
        least = np.uint64(0)
        # 2. Window by window.
        for begin in range(0, n_docs, width):
            finish = min(begin + width, np.int64(n_docs))
            n_live, total = np.int64(0), 0.0
            for i in range(n_terms):
                p, end = t_now[i], t_end[i]
                if p == end or doc[p] >= finish:
                    t_stop[i] = p
                    continue
                if finish == n_docs:
                    t_stop[i] = end
                elif t_blocks[i] >= 0:
                    t_stop[i] = t_start[i] + np.int64(offset[t_blocks[i] + (finish >> t_shift[i])])
                else:
                    t_stop[i] = _first_at(doc, p, end, finish)
                live[n_live] = i
                n_live += 1
                total += t_bound[i]
            if total <= limit or n_live == 0:
                for i in range(n_terms):
                    t_now[i] = t_stop[i]
                continue
            # live[:needed] are essential: the others alone cannot pass the limit.
            needed, rest = n_live, 0.0
            while needed > 0 and rest + t_bound[live[needed - 1]] <= limit:
                needed -= 1
                rest += t_bound[live[needed]]
            origin = np.uint64(begin)
            touched = np.int64(0)
            for x in range(needed):
                touched += t_stop[live[x]] - t_now[live[x]]
            n = np.int64(0)
            added = needed
            if needed > 1 or (n_live > 1 and t_stop[live[1]] - t_now[live[1]] < _MERGE * touched):
                for x in range(needed):
                    i = live[x]
                    w = t_weight[i]
                    for p in range(np.uint64(t_now[i]), np.uint64(t_stop[i])):
                        acc[np.uint64(doc[p]) - origin] += w * np.float64(impact[p])
                # Other terms are added to the documents found when that is cheaper than looking them up.
                while added < n_live:
                    i = live[added]
                    size = t_stop[i] - t_now[i]
                    if size > touched:
                        near = _near(doc, acc, t_now[live[0]], t_stop[live[0]], origin, limit - rest)
                        if np.float64(size) > _MERGE * near * touched:
                            break
                    w = t_weight[i]
                    for p in range(np.uint64(t_now[i]), np.uint64(t_stop[i])):
                        at = np.uint64(doc[p]) - origin
                        value = acc[at]
                        acc[at] = value + (w * np.float64(impact[p]) if value != 0.0 else 0.0)
                    added += 1
                    rest = max(rest - t_bound[i], 0.0)
                bar = limit - rest
                if touched * 4 > finish - begin:
                    for d in range(finish - begin):
                        value = acc[d]
                        if value > bar:
                            cdoc[n] = d + begin
                            cval[n] = value
                            n += 1
                    acc_bits[: finish - begin] = 0
                else:
                    for x in range(needed):
                        i = live[x]
                        for p in range(np.uint64(t_now[i]), np.uint64(t_stop[i])):
                            at = np.uint64(doc[p]) - origin
                            value = acc[at]
                            acc[at] = 0.0
                            if value > bar:
                                cdoc[n] = doc[p]
                                cval[n] = value
                                n += 1
            else:
                i = live[0]
                w, bar = t_weight[i], limit - rest
                for p in range(np.uint64(t_now[i]), np.uint64(t_stop[i])):
                    value = w * np.float64(impact[p])
                    if value > bar:
                        cdoc[n] = doc[p]
                        cval[n] = value
                        n += 1
            # 3. Look the other terms up for the candidates.
            for x in range(added, n_live):
                if n == 0:
                    break
                i = live[x]
                rest -= t_bound[i]
                left = max(rest, 0.0)
                n = _look_up(
                    doc,
                    impact,
                    offset,
                    peak,
                    t_start[i],
                    t_now[i],
                    t_stop[i],
                    t_blocks[i],
                    t_shift[i],
                    t_weight[i],
                    t_bound[i],
                    left,
                    limit,
                    cdoc,
                    cval,
                    n,
                )
            # 4. Collect; the k-th best raises the limit.
            for c in range(n):
                f32[0] = np.float32(cval[c])
                key = (np.uint64(u32[0]) << np.uint64(32)) | (low_mask - np.uint64(cdoc[c]))
                if key > least and u32[0] > 0:
                    keys[n_keys] = key
                    n_keys += 1
                    if n_keys == room:
                        least = keep_largest(keys, n_keys, k)
                        n_keys = np.int64(k)
                        limit = max(limit, _limit_below(least, f32, u32))
            if n_keys > k + (k >> 3) and finish < n_docs:
                least = keep_largest(keys, n_keys, k)
                n_keys = np.int64(k)
                limit = max(limit, _limit_below(least, f32, u32))
            for i in range(n_terms):
                t_now[i] = t_stop[i]
        # 5. The best k in order.
        if n_keys > k:
            keep_largest(keys, n_keys, k)
            n_keys = np.int64(k)
        sort_descending(keys, spare, n_keys, counts)
        out_count[q] = n_keys
        for i in range(n_keys):
            u32[0] = np.uint32(keys[i] >> np.uint64(32))
            out_score[q, i] = f32[0]
            out_doc[q, i] = np.int32(low_mask - (keys[i] & low_mask))
        for i in range(n_keys, k):
            out_score[q, i] = 0.0
            out_doc[q, i] = -1


def _read_only(array: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[np.generic]:
    view = np.ascontiguousarray(np.asarray(array), dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Impacts:
    """An impact index ready to be searched: postings by term and their bounds.

    n_docs documents, ptr int64[V+1], doc int32[P], impact float32[P]; arrays may be memory-mapped.
    """

    n_docs: int
    ptr: Int64
    doc: Int32
    impact: Float32
    bounds: Bounds
    arrays: tuple[NDArray[np.generic], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        b = self.bounds
        arrays = (
            _read_only(self.ptr, np.int64),
            _read_only(self.doc, np.int32),
            _read_only(self.impact, np.float32),
            _read_only(b.listed, np.int32),
            _read_only(b.top, np.float32),
            _read_only(b.shift, np.uint8),
            _read_only(b.base, np.int64),
            _read_only(b.offset, np.int32),
            _read_only(b.peak, np.float32),
        )
        object.__setattr__(self, "arrays", arrays)


def _window(n_docs: int) -> int:
    """Sixteen windows or more, each of 4,096 to 65,536 documents."""
    return min(max(12, (n_docs >> 4).bit_length()), _MAX_WINDOW)


def search(
    index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, k: int, threads: int = 1
) -> tuple[Int32, Int32, Float32]:
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
    if len(qterm) != len(qweight) or len(qptr) == 0 or qptr[-1] > len(qterm):
        raise BadValue("search: one weight per query term, one pointer more than queries")
    if len(qweight) and not (qweight.min() >= 0 and np.isfinite(qweight.max())):
        raise BadValue("weights of query terms must be finite and not negative")
    n = len(qptr) - 1
    results = np.empty(n, np.int32), np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    parts = min(threads, max(1, n))
    if parts == 1:
        _chunk(index, qptr, qterm, qweight, k, results)
        return results
    cuts = np.linspace(0, n, 1 + min(n, 4 * parts)).astype(np.int64).tolist()
    with ThreadPoolExecutor(parts) as pool:
        jobs = [
            pool.submit(
                _chunk,
                index,
                qptr[a : b + 1],
                qterm,
                qweight,
                k,
                (results[0][a:b], results[1][a:b], results[2][a:b]),
            )
            for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        ]
        for job in jobs:
            job.result()
    return results


def _chunk(
    index: Impacts, qptr: Int64, qterm: Int32, qweight: Float32, k: int, out: tuple[Int32, Int32, Float32]
) -> None:
    window = _window(index.n_docs)
    size = min(1 << window, max(1, index.n_docs))
    longest = max(1, int(np.diff(qptr).max(initial=0)))
    depth = min(k, max(1, index.n_docs))
    room = 2 * depth + _SLACK
    _search(
        index.n_docs,
        *index.arrays,
        qptr,
        qterm,
        qweight,
        k,
        next((i + 1 for i, r in enumerate(RANKS) if k <= r), 0),
        window,
        np.zeros(size, np.float64),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
        np.empty(room, np.uint64),
        np.empty(room, np.uint64),
        np.empty((7, longest), np.int64),
        np.empty((2, longest), np.float64),
        *out,
    )
