"""Arithmetic that measures share: quotients, sums and products along each ranking, query by query."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64

__all__ = ["place", "product_before", "ratio", "sum_until", "sum_within"]


def place(query: NDArray[np.integer]) -> Int64:
    """The place, from 0, of each row among the rows of its query; rows are sorted by query."""
    return np.arange(len(query)) - np.searchsorted(query, query, side="left")


def sum_until(query: Int32, values: Float64) -> Float64:
    """For each row the sum of its query's values up to and including it, added in that order."""
    sums = values.astype(np.float64)
    for rows in _by_place(query):
        sums[rows] += sums[rows - 1]
    return sums


def sum_within(
    query: Int32, rank: NDArray[np.integer], values: Float64, of: Int32, until: NDArray[np.integer]
) -> Float64:
    """For each (of, until) the sum of the values of that query down to that rank; rows by query, then rank."""
    sums = np.append(0.0, sum_until(query, values))
    stop = np.searchsorted(_position(query, rank), _position(of, until), side="right")
    return np.where(stop > np.searchsorted(query, of), sums[stop], 0.0)


def _position(query: Int32, rank: NDArray[np.integer]) -> Int64:
    """Ascends with the query, and within it with the rank."""
    return (query.astype(np.int64) << 32) + rank


def product_before(query: Int32, values: Float64) -> Float64:
    """For each row the product of its query's values before it; 1 for the first."""
    products = np.ones(len(values))
    for rows in _by_place(query):
        products[rows] = products[rows - 1] * values[rows - 1]
    return products


def _by_place(query: Int32) -> list[Int64]:
    """Row numbers of all second rows, of all third rows, and so on."""
    at = place(query)
    order = np.argsort(at, kind="stable")
    cuts = np.cumsum(np.bincount(at))
    return [order[a:b] for a, b in pairwise(cuts)]


def ratio(above: NDArray[np.number], below: NDArray[np.number]) -> Float64:
    """above / below, and 0 where below is 0: a query with nothing to find scores 0, as in trec_eval."""
    values = np.zeros(len(above), np.float64)
    np.divide(above, below, out=values, where=np.asarray(below) != 0)
    return values
