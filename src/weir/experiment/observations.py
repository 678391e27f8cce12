"""What a stage notes besides rankings: warnings, times of single queries, losses, what lies elsewhere."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from weir.core.corpus import Queries
from weir.errors import BadValue, RankingWarning

if TYPE_CHECKING:
    from weir.systems import Searcher

__all__ = ["latencies", "lost", "noted", "outside_facts", "silent"]

LATENCY_QUERIES = 100
LATENCY_SECONDS = 5.0
COMPARED_QUERIES = 100
"""Queries for which an approximate search is compared with the exact one."""


@contextmanager
def noted() -> Iterator[list[str]]:
    """Keep the texts of warnings about rankings; all warnings are given when the block ends."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", RankingWarning)
        yield texts
    for warning in given:
        if issubclass(warning.category, RankingWarning):
            texts.append(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


@contextmanager
def silent() -> Iterator[None]:
    """Hold back warnings about rankings: they are said of all queries together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        yield


def latencies(searcher: Searcher, queries: Queries, k: int) -> dict[str, float]:
    """Milliseconds of single queries, one after the other: the middle, the slow and the slowest ones."""
    count = min(LATENCY_QUERIES, len(queries))
    taken: list[float] = []
    begun = time.perf_counter()
    for q in np.linspace(0, len(queries) - 1, count).astype(np.int64):
        query = queries.take(np.array([q]))
        start = time.perf_counter()
        searcher.search(query, k)
        taken.append(1000 * (time.perf_counter() - start))
        if time.perf_counter() - begun > LATENCY_SECONDS:
            break
    if not taken:
        return {}
    found = {f"p{p}": float(np.percentile(taken, p)) for p in (50, 95, 99)}
    return found | {"mean": float(np.mean(taken)), "queries": float(len(taken))}


def lost(searcher: Searcher, queries: Queries, k: int) -> dict[str, object]:
    """What an approximate search loses of the exact k best, over the first queries; nothing where it is exact.

    A searcher that may lose something has a method loss(queries, k), which raises BadValue where it does not.
    """
    how = getattr(searcher, "loss", None)
    some = queries.take(np.arange(min(COMPARED_QUERIES, len(queries))))
    if how is None or len(some) == 0:
        return {}
    try:
        found = how(some, k)
    except BadValue:
        return {}
    share = {"share": found.total, "by what is kept": found.quantisation}
    return {"lost": {"queries": len(some), "k": k, **share}}


def outside_facts(searcher: Searcher, size: int | None) -> dict[str, object]:
    """What a searcher keeps outside its index. size: bytes of the index, for an index's record; None for a run's."""
    from weir.systems.protocol import ExternalStorage

    kept = ExternalStorage.of(searcher)
    if size is None:
        return {"scores": {"asked": kept.asked, "computed": kept.computed}} if kept.asked else {}
    found: dict[str, object] = {"bytes": size + kept.bytes}
    found |= {"reused": kept.reused} if kept.reused else {}
    return found | ({"cached_queries": True} if kept.queries else {})
