"""Methods that go by ranks: how high each run places a document, whatever its scores."""

from __future__ import annotations

import math

import numpy as np

from weir.core.strings import Float64, Int32
from weir.fusion.candidates import Candidates, total
from weir.fusion.method import fusion

__all__ = ["borda", "condorcet", "isr", "logisr", "rbc", "rrf"]

CELLS = 1 << 17
"""Pairs of documents compared at once: they stay near the processor."""

LARGEST = 1_000_000


@fusion(
    "rrf", within={"k": (0, LARGEST)}, grid={"k": (60, 1, 2, 5, 10, 20, 30, 40, 80, 100, 150, 200, 300, 500)}
)
def rrf(found: Candidates, *, k: int = 60) -> Float64:
    """Reciprocal rank fusion: the sum of 1 / (k + rank) over the runs that return the document.

    Source: Cormack, Clarke and Büttcher 2009.
    """
    return total(found.by_rank(lambda rank: 1 / (k + rank)))


@fusion("isr")
def isr(found: Candidates) -> Float64:
    """Inverse square rank: the sum of 1 / rank², times the number of runs that return the document.

    Source: Mourão, Martins and Magalhães 2014.
    """
    return total(found.by_rank(lambda rank: 1 / rank**2)) * found.count()


@fusion("logisr", within={"sigma": (0, 1)}, grid={"sigma": (0.0, 0.01, 0.1, 1.0)})
def logisr(found: Candidates, *, sigma: float = 0.0) -> Float64:
    """Log inverse square rank: the sum of 1 / rank², times ln(sigma + the number of runs that return the document).

    With sigma = 0 every document that one run alone returns scores 0. Source: Mourão, Martins and Magalhães 2014.
    """
    factor: Float64 = np.array([0.0] + [math.log(sigma + n) for n in range(1, found.runs + 1)])
    return total(found.by_rank(lambda rank: 1 / rank**2)) * factor[found.count()]


@fusion("rbc", within={"p": (0, 1)}, grid={"p": (0.8, 0.5, 0.6, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995)})
def rbc(found: Candidates, *, p: float = 0.8) -> Float64:
    """Rank-biased centroid: the sum of (1 - p) p^(rank - 1) over the runs that return the document.

    p: how likely a reader goes on to the next document. Source: Bailey, Moffat, Scholer and Thomas 2017.
    """
    return total(found.by_rank(lambda rank: (1 - p) * p ** (rank - 1)))


@fusion("borda")
def borda(found: Candidates) -> Float64:
    """Borda count: of c documents that the runs return, a run gives its first c points, its next c - 1, and so on.

    c counts the documents of one query. Those that a run does not return share what is left of its points equally.
    Source: Aslam and Montague 2001.
    """
    pooled = found.pooled()
    left = (pooled - found.sizes + 1) / 2
    points = np.where(found.returned, pooled[found.query] - found.rank + 1, left[:, found.query])
    return total(points)


@fusion("condorcet")
def condorcet(found: Candidates) -> Float64:
    """Majority of the runs, pair by pair: how many documents of the query a document beats, ties counted half.

    One document beats another where more runs place it above than below; a run places what it returns above what
    it does not, and says nothing of two that it does not return. The count (Copeland's) puts the strongly
    connected parts of the majority graph in order as Condorcet-fuse does; where majorities go in circles that
    algorithm's order depends on where its sort began, this one does not. Takes time in the square of the number of
    documents. Source: Montague and Aslam 2002.
    """
    score = np.zeros(len(found.query))
    cuts = np.searchsorted(found.query, np.arange(found.sizes.shape[1] + 1))
    for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if stop > start:
            score[start:stop] = _beaten(found.rank[:, start:stop])
    return score


def _beaten(rank: Int32) -> Float64:
    """How many columns each column beats by majority of the rows, ties counted half; rank: int32[R, n], 0 last."""
    count, last = rank.shape[1], int(rank.max()) + 1
    places = np.where(rank > 0, rank, last).astype(np.int16 if last < 2**15 else np.int32)
    votes = np.int8 if len(rank) < 2**7 else np.int32
    step = max(1, CELLS // count)
    found = np.empty(count)
    for start in range(0, count, step):
        own = places[:, start : start + step, None]
        margin = np.zeros((own.shape[1], count), votes)
        for mine, other in zip(own, places, strict=True):
            margin += mine < other
            margin -= (mine > other).view(np.int8)
        wins, losses = np.count_nonzero(margin > 0, axis=1), np.count_nonzero(margin < 0, axis=1)
        found[start : start + step] = (count - 1 + wins - losses) / 2
    return found
