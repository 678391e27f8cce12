"""C/W/L measures: the expected gain per document seen by a reader who goes on from each rank with some
probability.

A document's gain is grade / `max_grade`, 0 if unjudged. Without a cut-off the reader stops at rank 1,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.library.arithmetic import SCALE, refuse_beyond
from weir.measures.measure import measure

__all__ = ["BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11"]

DEPTH = 1000
_DEEPEST_RANK = 10_000
_CELLS = 1 << 21
_WANTED = SCALE | {"T": (0.001, 1000.0)}
GoesOn: TypeAlias = Callable[[Float64, Float64], Float64]
"""Maps gains float64[queries, n] and ranks float64[n] to probabilities of going on, float64[queries, n]."""


@measure("BPM", cutoff="required", within=_WANTED)
def BPM(j: Judged, *, k: int, T: float = 1.0, max_grade: int = 4) -> Float64:
    """Bejeweled player model: the mean gain of a reader who stops after k documents or once the gains reach T.

    T: wanted gain, in units of the highest grade.
    max_grade: highest grade of the scale; a higher grade is refused.

    Source: Zhang et al. 2017 (static form); cwl_eval cwl_bpm.py.
    """
    return _seen(j, k, max_grade, lambda gain, _: (np.cumsum(gain, axis=1) < T).astype(np.float64))


@measure("INSQ", within=_WANTED)
def INSQ(j: Judged, *, k: int | None = None, T: float = 1.0, max_grade: int = 4) -> Float64:
    """Mean gain of a reader who goes on from rank i with probability ((i + 2T - 1) / (i + 2T))^2.

    T: wanted number of documents of the highest grade.
    max_grade: highest grade of the scale; a higher grade is refused.

    Source: Moffat et al. 2012; cwl_eval cwl_insq.py.
    """
    return _seen(j, k, max_grade, lambda gain, rank: np.broadcast_to(patience(rank + 2 * T), gain.shape))


@measure("INST", within=_WANTED)
def INST(j: Judged, *, k: int | None = None, T: float = 1.0, max_grade: int = 4) -> Float64:
    """Mean gain of a reader who stops sooner the more of the wanted gain T was found.

    The probability of going on from rank i is ((x - 1) / x)^2, where x is i + T + the gain still wanted.
    T: wanted number of documents of the highest grade.
    max_grade: highest grade of the scale; a higher grade is refused.

    Source: Bailey et al. 2015; cwl_eval cwl_inst.py.
    """
    return _seen(j, k, max_grade, lambda gain, rank: patience(rank + T + (T - np.cumsum(gain, axis=1))))


@measure("NERR8", cutoff="required", within=SCALE)
def NERR8(j: Judged, *, k: int, max_grade: int = 4) -> Float64:
    """Nearly expected reciprocal rank: the mean gain of a reader who stops with a probability equal to the gain.

    k documents are seen at most. Equation 8 of the paper.

    max_grade: highest grade of the scale; a higher grade is refused.

    Source: Azzopardi et al. 2021; cwl_eval cwl_nerr.py.
    """
    return _seen(j, k, max_grade, lambda gain, _: 1.0 - gain)


@measure("NERR9", cutoff="required", within=SCALE)
def NERR9(j: Judged, *, k: int, max_grade: int = 4) -> Float64:
    """NERR8 of a reader whose probability of going on after rank i is multiplied by i / (i + 1).

    max_grade: highest grade of the scale; a higher grade is refused.

    Source: equation 9 of Azzopardi et al. 2021; cwl_eval cwl_nerr.py.
    """
    return _seen(j, k, max_grade, lambda gain, rank: rank / (rank + 1.0) * (1.0 - gain))


@measure("NERR10", within=SCALE | {"p": (0.0, 0.9999)})
def NERR10(j: Judged, *, k: int | None = None, p: float = 0.9, max_grade: int = 4) -> Float64:
    """NERR8 with the probability of continuing multiplied by p, as in RBP.

    p: factor of the probability, 0 to 0.9999.
    max_grade: highest grade of the scale; a higher grade is refused.

    Source: equation 10 of Azzopardi et al. 2021; cwl_eval cwl_nerr.py.
    """
    return _seen(j, k, max_grade, lambda gain, _: p * (1.0 - gain))


@measure("NERR11", within=_WANTED)
def NERR11(j: Judged, *, k: int | None = None, T: float = 1.0, max_grade: int = 4) -> Float64:
    """NERR8 with the probability of continuing multiplied by INSQ's.

    T: wanted number of documents of the highest grade.
    max_grade: highest grade of the scale; a higher grade is refused.

    Source: equation 11 of Azzopardi et al. 2021; cwl_eval cwl_nerr.py.
    """
    return _seen(j, k, max_grade, lambda gain, rank: patience(rank + 2 * T) * (1.0 - gain))


def patience(rank: Float64) -> Float64:
    """Return ((rank - 1) / rank)^2, the probability of going on in INSQ and INST, whose ranks are shifted, float64."""
    return np.square((rank - 1.0) / rank)


def _seen(j: Judged, k: int | None, max_grade: int, goes_on: GoesOn) -> Float64:
    refuse_beyond(j, max_grade)
    depth = DEPTH if k is None else k
    if depth > _DEEPEST_RANK:
        raise BadValue(f"the cut-off is {depth}; expected at most {_DEEPEST_RANK:,}: each rank is looked at")
    rows = j.found_above_zero(depth)
    queries, at = np.unique(j.query[rows], return_inverse=True)
    place, gains = j.rank[rows] - 1, j.grade[rows] / max_grade
    values, rank = np.zeros(len(j)), np.arange(1.0, depth + 1.0)
    step = max(1, _CELLS // depth)
    for start in range(0, len(queries), step):
        a, b = np.searchsorted(at, [start, start + step])
        gain = np.zeros((min(step, len(queries) - start), depth))
        gain[at[a:b] - start, place[a:b]] = gains[a:b]
        reached = np.ones_like(gain)
        np.cumprod(goes_on(gain, rank)[:, :-1], axis=1, out=reached[:, 1:])
        values[queries[start : start + step]] = (reached * gain).sum(axis=1) / reached.sum(axis=1)
    return values
