"""Arithmetic that measures share: quotients, sums along each ranking, what grades are worth, the scale of grades."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Grades, Int32, Int64
from weir.errors import BadValue

__all__ = [
    "GAINS",
    "SCALE",
    "TABLE",
    "best_grades",
    "found_gains",
    "gain_of",
    "gain_table",
    "ideal_gains",
    "place",
    "powers",
    "product_before",
    "ratio",
    "refuse_beyond",
    "sum_until",
    "sum_within",
]

_STEEPEST = 500  # a sum of gains 2**grade stays far inside the range of a double
_LARGEST = 1e9  # of a gain

_NAMED = ("linear", "exp")

GAINS = {"gain": _NAMED}


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


def gain_table(text: str) -> str:
    """A table such as "1=1,2=3" with its grades in order and its gains as short as can be.

    Raises ValueError, naming what is expected, for anything but grades from 0, each once, with gains from 0.
    """
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
    """What documents of these grades are worth: the grade itself, 2^grade - 1 for "exp", or as a table says.

    A grade below 0 is worth nothing; one that a table leaves out is worth itself. Raises BadValue for grades that
    "exp" would lift beyond the range of a double.
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
    """Query, rank and gain of the documents within the first k that are worth anything, by query then rank."""
    rows = j.found_above_zero(k) if gain in _NAMED else j.found(k, 0)
    query, rank, worth = j.query[rows], j.rank[rows], gain_of(j.grade[rows], gain)
    if gain in _NAMED:
        return query, rank, worth
    some = worth > 0
    return query[some], rank[some], worth[some]


def ideal_gains(j: Judged, k: int | None, gain: str) -> tuple[Int32, Int64, Float64]:
    """As found_gains for the best possible ranking: every judged document, most gain first."""
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
    """Raise BadValue where a judgment lies beyond the highest grade of the scale, found or not."""
    highest = j.ideal.max(initial=0)
    if highest > max_grade:
        raise BadValue(
            f"a grade of {highest} with max_grade={max_grade}; write max_grade={math.ceil(highest)}"
        )


def best_grades(j: Judged) -> NDArray[np.int64 | np.float64]:
    """The highest grade among the judgments of each query, [Q]; 0 where none is above."""
    best = np.zeros(len(j), np.result_type(j.ideal, np.int64))
    some = np.flatnonzero(np.diff(j.ideal_ptr))
    best[some] = np.maximum(j.ideal[j.ideal_ptr[some]], 0)
    return best


def powers(base: float, exponent: NDArray[np.number]) -> Float64:
    """The base to these whole powers from 0, float64[n].

    By multiplications alone, whose bits are the same on every processor; those of np.power are not.
    """
    left, square = exponent.astype(np.int64), base
    power = np.ones(left.shape)
    while left.any():
        power[(left & 1) == 1] *= square
        square *= square
        left >>= 1
    return power
