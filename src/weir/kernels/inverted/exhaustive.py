"""Search few documents by adding up every posting of every query term."""

from __future__ import annotations

import numpy as np

from weir.kernels.arrays import Float32, Float64, Int64
from weir.kernels.inverted.query_plan import Postings, SparseQueries
from weir.kernels.inverted.top_k import LOW, Hits, Selection, keep_largest, sort_descending, write_hits
from weir.kernels.jit import jit


# Terms are added in the order of query_plan.py, by decreasing bound, so that scores have the same bits as elsewhere.
@jit
def search_exhaustively(
    postings: Postings, most: Float32, queries: SparseQueries, k: int, acc: Float64, acc_bits: Int64, best: Selection,
    hits: Hits,
) -> int:  # fmt: skip
    """Write each query's k best documents to `hits`; return 0, or 1 without searching if a weight is negative
    or not finite.

    most: largest impact of each term, float32[V].
    acc: scratch of zeros, one more than the documents padded to a multiple of 64, zero again at the end.
    acc_bits: `acc` viewed as int64.
    best: scratch for more than k + 64 keys and for a query's terms.
    """
    for j in range(queries.ptr[0], queries.ptr[len(queries.ptr) - 1]):
        if not 0.0 <= queries.weight[j] < np.inf:
            return 1
    doc, impact, keys, number, bits = postings.doc, postings.impact, best.keys, best.number, best.bits
    width, room = len(acc) - 1, len(keys) - 64
    for q in range(len(queries.ptr) - 1):
        first, n = queries.ptr[q], np.int64(0)
        for j in range(first, queries.ptr[q + 1]):
            t = queries.term[j]
            if 0 <= t < len(most) and queries.weight[j] > 0:
                number[0] = np.float32(np.float64(queries.weight[j]) * np.float64(most[t]))
                key, at = (np.int64(bits[0]) << 32) | (LOW - (j - first)), n
                while at > 0 and keys[at - 1] < key:  # queries are short
                    keys[at] = keys[at - 1]
                    at -= 1
                keys[at] = key
                n += 1
        for i in range(n):
            j = first + (LOW - (keys[i] & LOW))
            t, weight = queries.term[j], np.float64(queries.weight[j])
            for p in range(np.uint64(postings.ptr[t]), np.uint64(postings.ptr[t + 1])):
                acc[np.uint64(doc[p])] += weight * np.float64(impact[p])
        # Positive doubles order as their bits do, and compilers vectorise comparisons of integers.
        n, edge = np.int64(0), np.int64(0)
        for b in range(0, width + 1, 64):
            some = np.int64(0)
            if b < width:
                for d in range(np.uint64(b), np.uint64(b + 64)):
                    some |= np.int64(acc_bits[d] > edge)
            if some != 0:
                for d in range(np.uint64(b), np.uint64(b + 64)):
                    # Written either way and kept by counting: a branch would be mispredicted every other time.
                    number[0] = np.float32(acc[d])
                    keys[np.uint64(n)] = (np.int64(bits[0]) << 32) | (LOW - np.int64(d))
                    n += np.int64(acc_bits[d] > edge)
            if n >= room or (n > k and b == width):
                least = keep_largest(keys, best.spare, n, k, best.counts) >> 32
                n = np.int64(k)
                if least > 0:
                    # The next float below the k-th best: none that ties with it is left out.
                    bits[0] = np.uint32(least - 1)
                    acc[width] = np.float64(number[0])
                    edge = acc_bits[width]
        for d in range(np.uint64(len(acc))):
            acc[d] = 0.0
        sort_descending(keys, best.spare, n, best.counts)
        while n > 0 and keys[n - 1] >> 32 == 0:  # so small that a float does not hold it
            n -= 1
        write_hits(best, n, q, hits)
    return 0
