"""Exact search with candidates found on a GPU, bit-equal to `search`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.order import ranked
from weir.core.strings import Float32, Int32
from weir.errors import require
from weir.systems.protocol import Progress
from weir.systems.vectors.exact_search import Found, VectorSource, checked, places, query_dot_products, search

BLOCK_DOCUMENTS = 1 << 16
"""Documents multiplied at once."""
BLOCK_QUERIES = 2048
"""Queries searched together; their scores of a block take half a gigabyte."""

RELEASE_QUERIES = 64
"""Queries re-scored before document memory is released."""


def search_on(
    device: str,
    rows: VectorSource,
    queries: Float32,
    k: int,
    tie_rank: Int32 | None = None,
    progress: Progress | None = None,
) -> Found:
    """Return the exact k best documents of each query by dot product, from candidates found on a torch device.

    queries: float32[Q, d].
    tie_rank: int32[N], a permutation that orders equal scores; None for document numbers.

    Raises BadValue for k below 1, unequal dimensions, and numbers that are not finite; MissingExtra without
    torch.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    checked(rows, queries, k)
    rank, _ = places(tie_rank, len(rows))
    count = min(k, len(rows))
    more = min(len(rows), count + max(64, count // 4))
    if count == 0 or len(queries) == 0:
        return search(rows, queries, k, "dot", rank)
    doc, score = np.empty((len(queries), count), np.int32), np.empty((len(queries), count), np.float32)
    d, unsure = rows.dimensions, []
    for at in range(0, len(queries), BLOCK_QUERIES):
        some = queries[at : at + BLOCK_QUERIES]
        near, numbers, longest = _candidates(device, rows, some, more, progress)
        # What float sums cannot see of very small numbers, squared or multiplied, is added.
        length = np.linalg.norm(some.astype(np.float64), axis=1)
        error = (d + 32) * 2.0**-22 * (longest + 1e-18 * d**0.5) * length + 1e-37 * d
        for i, number in enumerate(numbers):
            q, exact = at + i, query_dot_products(rows.take(number), some[i])
            order = ranked(np.zeros(more, np.int32), exact, rank[number])[:count]
            doc[q], score[q] = number[order], exact[order]
            enough = more == len(rows) or score[q, -1] > near[i] + error[i]
            # Numbers that are not finite, or too large, are for `search` to refuse.
            if not (enough and np.isfinite(error[i]) and np.isfinite(score[q]).all()):
                unsure.append(q)
            if i % RELEASE_QUERIES == RELEASE_QUERIES - 1:
                rows.release()
    if unsure:
        again = search(rows, queries[unsure], k, "dot", rank)
        doc[unsure], score[unsure] = again.doc.reshape(-1, count), again.score.reshape(-1, count)
    ptr = np.arange(len(queries) + 1, dtype=np.int64) * count
    return Found(ptr, doc.ravel(), score.ravel(), more * len(queries))


def _candidates(
    device: str, rows: VectorSource, queries: Float32, more: int, progress: Progress | None
) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
    torch: Any = require("torch", extra="torch")
    on_device = torch.from_numpy(np.ascontiguousarray(queries)).to(device)
    best = torch.empty((len(queries), 0), device=device)
    which = torch.empty((len(queries), 0), dtype=torch.int64, device=device)
    longest = torch.zeros((), device=device)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # TF32 has ten bits: its error would leave everything open
    try:
        for start in range(0, len(rows), BLOCK_DOCUMENTS):
            if progress is not None:
                progress(start, len(rows))
            block = rows.block(start, min(start + BLOCK_DOCUMENTS, len(rows)))
            vectors = torch.from_numpy(block if block.flags.writeable else block.copy()).to(device)
            longest = torch.maximum(longest, torch.linalg.vector_norm(vectors, dim=1).max())
            value, at = torch.topk(on_device @ vectors.T, min(more, len(block)), dim=1, sorted=False)
            best, which = torch.cat([best, value], 1), torch.cat([which, at + start], 1)
            best, at = torch.topk(best, min(more, best.shape[1]), dim=1)
            which = torch.gather(which, 1, at)
            rows.release()
    finally:
        torch.set_float32_matmul_precision(precision)
    return best[:, -1].double().cpu().numpy(), which.cpu().numpy(), float(longest)
