"""Sums and products along each ranking, one query never touching another's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from weir.core.strings import Float64, Int32, Int64

__all__ = ["place", "product_before", "sum_until"]


def place(query: Int32) -> Int64:
    """The place, from 0, of each row among the rows of its query; rows are sorted by query."""
    return np.arange(len(query)) - np.searchsorted(query, query, side="left")


def sum_until(query: Int32, values: Float64) -> Float64:
    """For each row the sum of its query's values up to and including it, added in that order."""
    sums = values.astype(np.float64)
    for rows in _by_place(query):
        sums[rows] += sums[rows - 1]
    return sums


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
