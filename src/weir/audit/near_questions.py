"""Leakage by meaning: judged queries whose vectors lie next to those of training queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Queries
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject, TextEncoder, Training

__all__ = ["NEAR_COSINE", "nearest_training", "unit_rows"]

NEAR_COSINE = 0.95
"""Cosine of two queries' vectors from which they are said to mean the same."""
BLOCK_QUERIES = 1024


def nearest_training(queries: Queries, training: Training, encode: TextEncoder) -> tuple[Float64, Int64]:
    """(cosine of each query to the nearest training query, which one that is); -1 where there is none."""
    mine, theirs = unit_rows(encode(queries)), unit_rows(encode(training.queries))
    cosine, at = np.full(len(mine), -1.0), np.full(len(mine), -1, np.int64)
    for start in range(0, len(mine) if len(theirs) else 0, BLOCK_QUERIES):
        found = mine[start : start + BLOCK_QUERIES] @ theirs.T
        best = found.argmax(axis=1)
        at[start : start + len(best)] = best
        cosine[start : start + len(best)] = found[np.arange(len(best)), best]
    return cosine, at


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows divided by their lengths; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0), np.float32)


@check("leakage by meaning", needs=["queries", "qrels", "training", "encoder"])
def leakage_by_meaning(subject: Subject) -> Iterator[Finding]:
    """Judged queries that an encoder puts next to a training query, in other words than `leakage` finds.

    Paraphrases of what was trained on are known too; how far a cosine of 0.95 is apart depends on the encoder.
    """
    qrels, every, encode = subject.need_qrels(), subject.need_queries(), subject.need_encoder()
    codes = every.ids.codes(qrels.queries.strings)
    queries = every.take(codes[codes >= 0])
    for training in subject.training:
        cosine, at = nearest_training(queries, training, encode)
        near = np.flatnonzero(cosine >= NEAR_COSINE)
        near = near[np.argsort(-cosine[near], kind="stable")]
        if len(near):
            yield Finding(
                "caution",
                f"{rounding.count(len(near))} of {rounding.count(len(queries))} judged queries mean nearly the "
                f"same as one in {training.name}, by a cosine of {NEAR_COSINE} or more",
                "read them: what a system was trained on it answers better than it can",
                (("queries", float(len(near))), ("largest cosine", float(cosine[near[0]]))),
                tuple(f"{queries.ids[int(q)]} ~ {training.queries.ids[int(at[q])]}" for q in near),
            )
