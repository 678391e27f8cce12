"""Several runs to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from weir.core.order import arranged
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.fusion.method import Fusion, parse_fusion
from weir.fusion.pool import CandidateBlock, Pool, refuse_strangers

__all__ = ["fuse", "fused", "fused_block", "refuse_depth"]

Rankings = tuple[Int64, Int32, Float64]
"""Rankings of some queries: ptr int64[Q + 1], document int32[n], score float64[n], in result order."""


def fuse(runs: Sequence[Run], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Fuse rankings into one, for every query that one of them answers.

    k: how many documents are kept for each query, by default all. The result does not depend on the order of rows,
    nor on that of the runs where they have no weights. One run given twice counts twice. Raises BadValue for fewer
    than two runs, for runs that share no query, and for settings that do not fit; UnknownName for a method that
    does not exist.
    """
    how = method if isinstance(method, Fusion) else parse_fusion(method)
    if len(runs) < 2:
        raise BadValue(f"a fusion takes two or more rankings; found {len(runs)}")
    pool = Pool.of(runs)
    refuse_strangers(pool)
    return fused(pool, how, k)


def fused(pool: Pool, how: Fusion, k: int | None = None, name: str | None = None) -> Run:
    """Fuse the runs of a pool; queries that no run answers keep an empty ranking. Errors as `fuse`."""
    how.refuse_other_than(len(pool.runs))
    refuse_depth(k)
    parts = list(_parts(pool, how, k))
    lengths = [np.diff(ptr) for ptr, _, _ in parts]
    ptr = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))]
    )
    doc = np.concatenate([np.empty(0, np.int32), *(doc for _, doc, _ in parts)])
    score = np.concatenate([np.empty(0), *(score for _, _, score in parts)])
    return Run(pool.queries, pool.docs, ptr, doc, score, name or str(how))


def refuse_depth(k: int | None) -> None:
    """Raise BadValue for a number of documents below 1 or beyond any corpus; None stands for all."""
    if k is not None and not 1 <= k < 1 << 31:
        raise BadValue(f"k is {k}; expected a whole number from 1 to 2,147,483,647")


def _parts(pool: Pool, how: Fusion, k: int | None) -> Iterator[Rankings]:
    for block in pool.blocks():
        yield fused_block(pool, block, how, k)


def fused_block(pool: Pool, block: CandidateBlock, how: Fusion, k: int | None = None) -> Rankings:
    """The fused rankings of a block's queries, cut at k; raises BadValue where a score is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        score = how(block.candidates(how.norm if how.scored else None)) + 0.0  # one zero, not two
    bad = np.flatnonzero(~np.isfinite(score))
    if len(bad):
        query = pool.queries[block.first + int(block.query[bad[0]])]
        raise BadValue(
            f"{how}: a fused score of query '{query}' is not a finite number; the scores are too large"
        )
    order = arranged(block.query, score, lambda rows: pool.docs.tie_ranks[block.doc[rows]])
    ptr = np.searchsorted(block.query, np.arange(len(block) + 1)).astype(np.int64)
    if k is not None:
        length = np.minimum(np.diff(ptr), k)
        kept = np.repeat(ptr[:-1], length)
        ptr = np.concatenate([[0], np.cumsum(length)])
        order = order[kept + np.arange(ptr[-1]) - np.repeat(ptr[:-1], length)]
    return ptr, block.doc[order], score[order]
