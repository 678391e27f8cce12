"""What would be gained by not answering the queries that a system is least sure of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import numpy as np

from weir.core.ids import Ids
from weir.core.notes import Note
from weir.core.results import result
from weir.core.rounding import score, share
from weir.core.run import Run
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64, Int64
from weir.core.tables import Cell, Table
from weir.errors import BadValue
from weir.registry import Registry

__all__ = ["CONFIDENCES", "RATES", "Abstention", "abstention", "confidence_of", "curve", "nauc"]

RATES: Float64 = np.linspace(0, 1, 11)[:-1]
_RELATIVE_ROUNDING = 1e-12
_SHOWN = (0, 3, 6, 9)  # of the rates

Ties: TypeAlias = Literal["mean", "order"]
Confidence: TypeAlias = Callable[[Float64, Int64], Float64]
"""From scores, float64[n], those of each query falling, and int64[Q + 1] where each begins, float64[Q]."""

CONFIDENCES: Registry[Confidence] = Registry("confidence")


@result("abstention")
@dataclass(frozen=True)
class Abstention:
    """The mean of a measure over the queries that are answered, when more and more of them are not.

    rates: the shares left out, least confident first; curve: the means; oracle: the means when those with the
    lowest values are left out; nauc: the area between the curve and the mean over all, as a share of the
    oracle's, 1 at best and below 0 where the confidence misleads; NaN where all queries have one value.
    """

    measure: str
    confidence: str
    rates: tuple[float, ...]
    curve: tuple[float, ...]
    oracle: tuple[float, ...]
    nauc: float

    def to_dict(self) -> dict[str, object]:
        """The same as plain values; undefined numbers are None."""
        return {k: None if v != v else v for k, v in asdict(self).items()}  # noqa: PLR0124 - NaN alone differs from itself

    def tables(self) -> tuple[Table, ...]:
        """Its nAUC, and its mean when ever fewer queries are answered."""
        return Abstention.tables_of((self,))

    def notes(self) -> tuple[Note, ...]:
        """None."""
        return ()

    @classmethod
    def tables_of(cls, results: Sequence[Abstention]) -> tuple[Table, ...]:
        """One table with a line for each measure."""
        if not results:
            return ()
        first = results[0]
        shares = (f"{share(first.rates[i])} left out" for i in _SHOWN)
        rows = tuple(
            tuple(map(Cell, (one.measure, score(one.nauc), *(score(one.curve[i]) for i in _SHOWN))))
            for one in results
        )
        return (Table("", (f"confidence {first.confidence}", "nAUC", *shares), rows),)


def abstention(run: Run, scores: Scores, confidence: str = "max", ties: Ties = "mean") -> list[Abstention]:
    """The abstention curve of each measure, with its normalised area (nAUC), as MTEB computes them.

    run: what was scored, whose scores say how sure the system is of each query; a query that it does not answer
    has the confidence 0 and counts. confidence: "max", the best score, "std", the standard deviation of the scores,
    or "diff1", the best less the second. Where values are logarithms the means are geometric, the area is not. ties:
    what counts for queries of equal confidence, their "mean" or each in turn in the "order" of the scores (MTEB
    before its issue 5613). Queries where a measure is undefined are left out of it.
    Raises UnknownName for another confidence, BadValue for another rule of ties. Source: Gisserot-Boukhlef et al.
    2024; mteb retrieval_metrics.py.
    """
    sure = confidence_of(run, scores.queries, confidence)
    found = []
    for measure, values in zip(scores.measures, scores.values, strict=True):
        known = ~np.isnan(values)
        own, oracle = (
            curve(by[known], values[known], ties) if known.any() else np.full(len(RATES), np.nan)
            for by in (sure, values)
        )
        geometric = measure in scores.geometric
        found.append(
            Abstention(
                measure,
                confidence,
                tuple(RATES.tolist()),
                tuple(averaged(mean, geometric) for mean in own.tolist()),
                tuple(averaged(mean, geometric) for mean in oracle.tolist()),
                _normalised(own, oracle),
            )
        )
    return found


def confidence_of(run: Run, queries: Ids, how: str) -> Float64:
    """How sure the run is of each of these queries, float64[Q]; 0 where it returned nothing. Raises UnknownName."""
    confidence = CONFIDENCES.get(how)
    order = np.lexsort((-run.score, run.query_of_row()))
    codes = run.queries.codes(queries.strings)
    some = np.flatnonzero(codes >= 0)
    some = some[np.diff(run.ptr)[codes[some]] > 0]
    sure = np.zeros(len(codes))
    sure[some] = confidence(run.score[order], run.ptr)[codes[some]]
    return sure


def nauc(sure: Float64, values: Float64, ties: Ties = "mean") -> float:
    """The normalised area of the abstention curve of values, float64[Q], by confidences, float64[Q].

    NaN where all values are equal, but for rounding; raises BadValue as `curve`.
    """
    return _normalised(curve(sure, values, ties), curve(values, values, ties))


def curve(sure: Float64, values: Float64, ties: Ties = "mean") -> Float64:
    """Means of the values of the queries that are left when shares RATES of the least sure ones are not answered.

    Of n queries round(rate * n) are left out, halves rounded to even, and at least one is kept.
    Raises BadValue for no queries, another number of confidences than of values, or another rule of ties.
    """
    n = len(values)
    if n == 0 or len(sure) != n or ties not in ("mean", "order"):
        raise BadValue(
            f"{len(sure)} confidences for {n} values with ties '{ties}'; expected one each, and 'mean' or 'order'"
        )
    order = np.argsort(sure, kind="stable")
    sure, values = sure[order], values[order]
    if ties == "mean":
        begin = np.flatnonzero(np.append(True, sure[1:] != sure[:-1]))
        size = np.diff(np.append(begin, n))
        values = np.repeat(np.add.reduceat(values, begin) / size, size)
    return np.array([values[min(round(rate * n), n - 1) :].mean() for rate in RATES.tolist()])


@CONFIDENCES.register("max")
def best(score: Float64, ptr: Int64) -> Float64:
    """The best score."""
    return _at(score, ptr, 0)


@CONFIDENCES.register("std")
def spread(score: Float64, ptr: Int64) -> Float64:
    """The standard deviation of all scores, divided by their number and not by one less."""
    cuts = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    return np.array([float(np.std(score[a:b])) if b > a else 0.0 for a, b in cuts])


@CONFIDENCES.register("diff1")
def lead(score: Float64, ptr: Int64) -> Float64:
    """The best score less the second; 0 where there is one only."""
    return np.where(np.diff(ptr) > 1, _at(score, ptr, 0) - _at(score, ptr, 1), 0.0)


def _at(score: Float64, ptr: Int64, place: int) -> Float64:
    """The score at a place, from 0, of each ranking; 0 where it is shorter."""
    found = np.zeros(len(ptr) - 1)
    longer = np.diff(ptr) > place
    found[longer] = score[ptr[:-1][longer] + place]
    return found


def _normalised(own: Float64, oracle: Float64) -> float:
    flat = float(oracle[0]) * (RATES[-1] - RATES[0])
    room = _area(oracle) - flat
    if not room > _RELATIVE_ROUNDING * max(abs(flat), _RELATIVE_ROUNDING):  # NaN, too
        return math.nan
    return float((_area(own) - flat) / room)


def _area(values: Float64) -> float:
    return float(np.sum(np.diff(RATES) * (values[1:] + values[:-1]) / 2))
