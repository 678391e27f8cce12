"""What a stage notes besides rankings: warnings, times of single queries, losses, costs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from weir.core.corpus import Queries
from weir.errors import BadValue, RankingWarning
from weir.systems.protocol import ApproximateSearcher, Context, Costs, Searcher
from weir.systems.restricted import restricted_search

__all__ = ["approximation_loss", "cost_facts", "latencies", "noted", "silent"]

LATENCY_QUERIES, LATENCY_SECONDS = 100, 5.0
"""Single queries that are timed, and the time after which no further one is."""
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
    """Milliseconds of single queries, one after the other, each computed anew: p50, p95, p99 and the mean."""
    count = min(LATENCY_QUERIES, len(queries))
    taken: list[float] = []
    begun = time.perf_counter()
    for q in np.linspace(0, len(queries) - 1, count).astype(np.int64):
        query = queries.take(np.array([q]))
        start = time.perf_counter()
        restricted_search(searcher, query, k, Context(reuse=False))
        taken.append(1000 * (time.perf_counter() - start))
        if time.perf_counter() - begun > LATENCY_SECONDS:
            break
    if not taken:
        return {}
    found = {f"p{p}": float(np.percentile(taken, p)) for p in (50, 95, 99)}
    return found | {"mean": float(np.mean(taken)), "queries": float(len(taken))}


def approximation_loss(searcher: Searcher, queries: Queries, k: int) -> dict[str, object]:
    """What an approximate search loses of the exact k best, over the first queries; nothing where it is exact."""
    some = queries.take(np.arange(min(COMPARED_QUERIES, len(queries))))
    if not isinstance(searcher, ApproximateSearcher) or len(some) == 0:
        return {}
    try:
        found = searcher.loss(some, k)
    except BadValue:
        return {}
    share = {"share": found.total, "by what is kept": found.quantisation}
    return {"lost": {"queries": len(some), "k": k, **share}}


def cost_facts(costs: Costs, index_bytes: int | None = None) -> dict[str, object]:
    """The costs of a searcher as a record keeps them: an index's with the bytes of its folder, else a run's."""
    if index_bytes is None:
        pairs = {"asked": costs.requested_pairs, "computed": costs.computed_pairs}
        services = [use.facts() for use in costs.services]
        given = {"candidates": costs.candidates, "unscored": costs.unscored}
        return (
            ({"scores": pairs} if costs.requested_pairs else {})
            | ({"reranked": given} if costs.candidates else {})
            | ({"services": services} if services else {})
        )
    found: dict[str, object] = {"bytes": index_bytes + costs.external_bytes}
    found |= {"reused": costs.reused_documents} if costs.reused_documents else {}
    return found | ({"cached_queries": True} if costs.cached_queries else {})
