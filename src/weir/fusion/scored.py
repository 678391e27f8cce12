"""Methods that go by scores, normalised for each query (see norms.py)."""

from __future__ import annotations

import numpy as np

from weir.core.strings import Float64
from weir.fusion.candidates import Candidates, ascending, total
from weir.fusion.method import fusion

__all__ = ["combanz", "combmax", "combmed", "combmin", "combmnz", "combsum", "wsum"]


@fusion("combsum", scored=True)
def combsum(found: Candidates) -> Float64:
    """The sum of the scores; a run that does not return the document adds nothing.

    Source: Fox and Shaw 1994.
    """
    return total(found.score)


@fusion("combmnz", scored=True)
def combmnz(found: Candidates) -> Float64:
    """The sum of the scores, times the number of runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return total(found.score) * found.count()


@fusion("combanz", scored=True)
def combanz(found: Candidates) -> Float64:
    """The mean of the scores over the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return total(found.score) / found.count()


@fusion("combmin", scored=True)
def combmin(found: Candidates) -> Float64:
    """The least of the scores that runs give the document.

    Source: Fox and Shaw 1994.
    """
    least: Float64 = np.where(found.returned, found.score, np.inf).min(axis=0)
    return least


@fusion("combmax", scored=True)
def combmax(found: Candidates) -> Float64:
    """The greatest of the scores that runs give the document.

    Source: Fox and Shaw 1994.
    """
    greatest: Float64 = np.where(found.returned, found.score, -np.inf).max(axis=0)
    return greatest


@fusion("combmed", scored=True)
def combmed(found: Candidates) -> Float64:
    """The median of the scores that runs give the document, or the mean of the two middle ones.

    Source: Fox and Shaw 1994.
    """
    rows = np.stack(ascending(np.where(found.returned, found.score, np.inf)))
    count, column = found.count(), np.arange(rows.shape[1])
    return (rows[(count - 1) // 2, column] + rows[count // 2, column]) / 2


@fusion("wsum", scored=True)
def wsum(found: Candidates, *, weights: tuple[float, ...] = ()) -> Float64:
    """The weighted sum of the scores; a run that does not return the document adds nothing.

    weights: one for each run in their order, from 0; by default all are 1 / number of runs. Called linear
    combination or interpolation too. Source: Vogt and Cottrell 1999.
    """
    given = np.array(weights) if weights else np.full(found.runs, 1 / found.runs)
    return total(given[:, None] * found.score)
