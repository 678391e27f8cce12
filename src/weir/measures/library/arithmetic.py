"""Arithmetic for measures: quotients, sums along rankings, gains."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Grades, Int32, Int64
from weir.errors import BadValue

_STEEPEST = 500  # a sum of gains 2**grade stays far inside the range of a double
_LARGEST = 1e9  # of a gain

_NAMED = ("linear", "exp")

GAINS = {"gain": _NAMED}


def hit_counts(j: Judged, k: int | None, rel: float) -> Int64:
    """Return the number of relevant documents in the top k (None: all) of each query, int64[queries]."""
    return j.per_query(j.query, j.found(k, rel))


def returned_counts(j: Judged, k: int | None) -> Int64:
    """Return the number of documents returned for each query, at most k, int64[queries]."""
    return (j.retrieved if k is None else np.minimum(j.retrieved, k)).astype(np.int64)


def place_in_query(query: NDArray[np.integer]) -> Int64:
    """Return the position, from 0, of each row within its query, int64[n].

    query: of each row, ascending.
    """
    return np.arange(len(query)) - np.searchsorted(query, query, side="left")


def sum_until(query: Int32, values: Float64) -> Float64:
    """Return the running sum of values within each query, float64[n].

    query: of each row, ascending.
    """
    sums = values.astype(np.float64)
    for rows in _by_place(query):
        sums[rows] += sums[rows - 1]
    return sums


def sum_within(
    query: Int32, rank: NDArray[np.integer], values: Float64, of: Int32, until: NDArray[np.integer]
) -> Float64:
    """Return, for each i, the sum of values of query of[i] at ranks up to until[i], float64; 0 if none.

    query, rank, values: of rows sorted by query, then rank.
    """
    sums = np.append(0.0, sum_until(query, values))
    stop = np.searchsorted(_position(query, rank), _position(of, until), side="right")
    return np.where(stop > np.searchsorted(query, of), sums[stop], 0.0)


def _position(query: Int32, rank: NDArray[np.integer]) -> Int64:
    return (query.astype(np.int64) << 32) + rank


def product_before(query: Int32, values: Float64) -> Float64:
    """Return the product of the query's earlier values for each row, float64[n]; 1 for its first row.

    query: of each row, ascending.
    """
    products = np.ones(len(values))
    for rows in _by_place(query):
        products[rows] = products[rows - 1] * values[rows - 1]
    return products


def _by_place(query: Int32) -> list[Int64]:
    at = place_in_query(query)
    order = np.argsort(at, kind="stable")
    cuts = np.cumsum(np.bincount(at))
    return [order[a:b] for a, b in pairwise(cuts)]


def ratio(above: NDArray[np.number], below: NDArray[np.number]) -> Float64:
    """Return above / below, float64[n]; 0 where `below` is 0."""
    values = np.zeros(len(above), np.float64)
    np.divide(above, below, out=values, where=np.asarray(below) != 0)
    return values


def gain_table(text: str) -> str:
    """Return a gain table such as "1=1,2=3" sorted by grade, as text; raises ValueError for other text."""
    pairs = [
        re.fullmatch(r"\s*([0-9]{1,5}(?:\.[0-9]{1,16})?)\s*=\s*([0-9.eE+-]{1,25})\s*", part)
        for part in text.split(",")
    ]
    try:
        table = {float(pair[1]): float(pair[2]) for pair in pairs if pair is not None}
    except ValueError:
        table = {}
    good = all(0 <= gain <= _LARGEST and math.isfinite(gain) for gain in table.values())
    if not good or len(table) != len(pairs):
        raise ValueError("grades and their gains, such as '1=1,2=3'")
    return ",".join(f"{_short(grade)}={_short(table[grade])}" for grade in sorted(table))


TABLE = {"gain": gain_table}


def gain_of(grade: Grades, gain: str) -> Float64:
    """Return the gain of each grade, float64[n]: the grade for "linear", 2^grade - 1 for "exp", or from a
    table "1=2,3=9".

    A grade below 0 gains 0; one absent from the table, itself. Raises BadValue for "exp" above grade 500.
    """
    worth = np.maximum(grade, 0).astype(np.float64)
    if gain == "exp":
        if grade.max(initial=0) > _STEEPEST:
            raise BadValue(f"gain='exp' with a grade of {grade.max()}; expected grades up to {_STEEPEST}")
        return np.exp2(worth) - 1.0
    if gain != "linear":
        for pair in gain.split(","):
            of, _, value = pair.partition("=")
            worth[grade == float(of)] = float(value)
    return worth


def found_gains(j: Judged, k: int | None, gain: str) -> tuple[Int32, Int32, Float64]:
    """Return (query, rank, gain) of the documents in the top k with a gain above 0, n values each, by query,
    then rank.

    gain: "linear", "exp" or a table, as for `gain_of`.
    """
    rows = j.found_above_zero(k) if gain in _NAMED else j.found(k, 0)
    query, rank, worth = j.query[rows], j.rank[rows], gain_of(j.grade[rows], gain)
    if gain in _NAMED:
        return query, rank, worth
    some = worth > 0
    return query[some], rank[some], worth[some]


def ideal_gains(j: Judged, k: int | None, gain: str) -> tuple[Int32, Int64, Float64]:
    """Return (query, rank, gain) of the documents in the top k (None: all) of the ideal ranking with a gain
    above 0, n values each, by query, then rank.

    gain: "linear", "exp" or a table, as for `gain_of`.
    """
    query, rank = j.ideal_query(), j.ideal_rank()
    rows = (rank <= k) if k is not None else np.ones(len(rank), np.bool_)
    if gain in _NAMED:
        rows &= j.ideal > 0
        return query[rows], rank[rows], gain_of(j.ideal[rows], gain)
    worth = gain_of(j.ideal, gain)
    worth = worth[np.lexsort((-worth, query))]  # a table may value a lower grade more
    rows &= worth > 0
    return query[rows], rank[rows], worth[rows]


def _short(number: float) -> str:
    return str(int(number)) if number.is_integer() and number < 1e15 else repr(number)


SCALE = {"max_grade": (1.0, 100.0)}


def refuse_beyond(j: Judged, max_grade: int) -> None:
    """Raise BadValue if any judgment has a grade above `max_grade`."""
    highest = j.ideal.max(initial=0)
    if highest > max_grade:
        raise BadValue(
            f"a grade of {highest} with max_grade={max_grade}; write max_grade={math.ceil(highest)}"
        )


def best_grades(j: Judged) -> NDArray[np.int64 | np.float64]:
    """Return the highest grade of each query's judgments, int64 or float64[queries]; 0 if none is above 0."""
    best = np.zeros(len(j), np.result_type(j.ideal, np.int64))
    some = np.flatnonzero(np.diff(j.ideal_ptr))
    best[some] = np.maximum(j.ideal[j.ideal_ptr[some]], 0)
    return best


def powers(base: float, exponent: NDArray[np.number]) -> Float64:
    """Return base ** exponent for whole exponents from 0, float64[n]."""
    # By multiplications only: the bits of np.power differ between processors.
    left, square = exponent.astype(np.int64), base
    power = np.ones(left.shape)
    while left.any():
        power[(left & 1) == 1] *= square
        square *= square
        left >>= 1
    return power
