"""Mean over all orders of tied documents, for measures that sum over ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import (
    best_grades,
    gain_of,
    ideal_gains,
    powers,
    ratio,
    refuse_beyond,
    returned_counts,
)
from weir.measures.library.cwl import DEPTH, patience
from weir.measures.library.gains import divisor_at
from weir.measures.measure import Measure
from weir.measures.ties.tie_groups import TIED, Groups, OverTies, over_ties

# In a random order each document of a group of s is at each of its places with probability 1 / s. So a sum over
# documents of worth times a weight of the place has as its mean the sum over places of the group's average worth
# times that weight, also for cut-offs inside a group.
Cut: TypeAlias = int | Int64 | None
Weight: TypeAlias = Callable[[Int64], Float64]

for _name in ("NumRet", "NumRel", "IDCG"):  # they look at no order
    TIED.add(_name, OverTies(worth="nothing"))
for _name in ("gmAP", "gmbpref"):  # the mean of a logarithm is taken over every order
    TIED.add(_name, OverTies(worth="relevant"))
for _name in ("nDCG_rel", "RnDCG"):
    TIED.add(_name, OverTies(worth="gain"))
TIED.add("Compat", OverTies(worth="grade"))


def added(j: Judged, k: Cut, worth: NDArray[np.generic], weight: Weight | None = None) -> Float64:
    """Return the mean, over all orders of tied documents, of the sum of worth * weight(rank),
    float64[queries].

    k: last rank that counts, for all queries or for each, None for all ranks.
    worth: of each judged document, float64[n].
    weight: maps ranks to weights, None for 1.
    """
    groups = Groups.in_join(j)
    total = groups.sum(worth)
    place, of = groups.places(total != 0)
    if k is not None:
        within = place <= (k if isinstance(k, int) else k[groups.query[of]])
        place, of = place[within], of[within]
    counts = np.bincount(of, None if weight is None else weight(place), len(groups))
    return j.total(groups.query.astype(np.int32), total * counts / groups.size)


def _hits(j: Judged, k: Cut, rel: float) -> Float64:
    return added(j, k, j.grade >= rel)


@over_ties("P", "relevant")
def _p(j: Judged, *, k: int, rel: float = 1) -> Float64:
    return _hits(j, k, rel) / k


@over_ties("R", "relevant")
def _r(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return ratio(_hits(j, k, rel), j.relevant(rel))


@over_ties("R_cap", "relevant")
def _r_cap(j: Judged, *, k: int, rel: float = 1) -> Float64:
    return ratio(_hits(j, k, rel), np.minimum(j.relevant(rel), k))


@over_ties("Rprec", "relevant")
def _rprec(j: Judged, *, k: int | None, times: float = 1.0, rel: float = 1) -> Float64:
    count = np.floor(times * j.relevant(rel) + 0.9).astype(np.int64)
    return ratio(_hits(j, count if k is None else np.minimum(count, k), rel), count)


@over_ties("F", "relevant")
def _f(j: Judged, *, k: int, beta: float = 1.0, rel: float = 1) -> Float64:
    # With h hits, P = h/k and R = h/r the formula is (1 + b²) h / (b² r + k): linear in h.
    return ratio((1.0 + beta * beta) * _hits(j, k, rel), beta * beta * j.relevant(rel) + k)


@over_ties("SetP", "relevant")
def _set_p(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return ratio(_hits(j, k, rel), returned_counts(j, k))


@over_ties("SetR", "relevant")
def _set_r(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return ratio(_hits(j, k, rel), j.relevant(rel))


@over_ties("SetR_cap", "relevant")
def _set_r_cap(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return ratio(_hits(j, k, rel), np.minimum(returned_counts(j, k), j.relevant(rel)))


@over_ties("SetF", "relevant")
def _set_f(j: Judged, *, k: int | None, beta: float = 1.0, rel: float = 1) -> Float64:
    return ratio(
        (1.0 + beta * beta) * _hits(j, k, rel), beta * beta * j.relevant(rel) + returned_counts(j, k)
    )


@over_ties("SetAP", "relevant")
def _set_ap(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    hits = _hits(j, k, rel)
    # The mean of a square is the square of the mean and the variance: of one group, the one that k divides.
    square = hits * hits + (0.0 if k is None else _variance(j, k, rel))
    return ratio(square, returned_counts(j, k) * j.relevant(rel))


def _variance(j: Judged, k: int, rel: float) -> Float64:
    # That of a hypergeometric draw.
    groups = Groups.in_join(j)
    size, drawn = groups.size, k - groups.first + 1
    cut = (drawn > 0) & (drawn < size)
    share, drawn, size = (groups.sum(j.grade >= rel) / size)[cut], drawn[cut], size[cut]
    variance = drawn * share * (1.0 - share) * (size - drawn) / (size - 1)
    return j.total(groups.query[cut].astype(np.int32), variance)


@over_ties("NumRelRet", "relevant")
def _num_rel_ret(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return _hits(j, k, rel)


@over_ties("NumNonrelRet", "wrong")
def _num_nonrel_ret(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return added(j, k, (j.grade >= 0) & (j.grade < rel))


@over_ties("Utility", "relevant")
def _utility(
    j: Judged, *, k: int | None, hit: float = 1.0, noise: float = -1.0, miss: float = 0.0, rel: float = 1
) -> Float64:
    hits = _hits(j, k, rel)
    worth: Float64 = hit * hits + noise * (returned_counts(j, k) - hits) + miss * (j.relevant(rel) - hits)
    return worth


@over_ties("Judged", "judged")
def _judged(j: Judged, *, k: int) -> Float64:
    return ratio(added(j, k, np.ones(len(j.query))), returned_counts(j, k))


@over_ties("Hole", "judged")
def _hole(j: Judged, *, k: int) -> Float64:
    return np.maximum(returned_counts(j, k) - added(j, k, np.ones(len(j.query))), 0.0) / k


@over_ties("DCG", "gain")
def _dcg(
    j: Judged, *, k: int | None, gain: str = "linear", base: float = 2.0, discount: str = "trec"
) -> Float64:
    return added(j, k, gain_of(j.grade, gain), lambda place: 1.0 / divisor_at(place, base, discount))


@over_ties("nDCG", "gain")
def _ndcg(
    j: Judged, *, k: int | None, gain: str = "linear", base: float = 2.0, discount: str = "trec"
) -> Float64:
    ideal = Measure("IDCG", cutoff=k)(gain=gain, base=base, discount=discount)
    return ratio(_dcg(j, k=k, gain=gain, base=base, discount=discount), ideal.per_query(j))


@over_ties("SDCG", "gain")
def _sdcg(j: Judged, *, k: int, max_grade: int = 4) -> Float64:
    refuse_beyond(j, max_grade)
    best = math.fsum((1.0 / np.log2(np.arange(k) + 2.0)).tolist())
    return _dcg(j, k=k) / max_grade / best


@over_ties("NCG", "gain")
def _ncg(j: Judged, *, k: int | None, gain: str = "linear") -> Float64:
    query, _, ideal = ideal_gains(j, k, gain)
    return ratio(added(j, k, gain_of(j.grade, gain)), j.total(query, ideal))


@over_ties("RBP", "persistent")
def _rbp(j: Judged, *, k: int | None, p: float = 0.8, gain: str = "binary", rel: float = 1) -> Float64:
    worth = (j.grade >= rel).astype(np.float64)
    if gain == "scaled":
        worth *= ratio(np.maximum(j.grade, 0), best_grades(j)[j.query])
    return (1.0 - p) * added(j, k, worth, lambda place: powers(p, place - 1.0))


@over_ties("RBP_residual", "assessed")
def _rbp_residual(j: Judged, *, k: int | None, p: float = 0.8) -> Float64:
    known = (1.0 - p) * added(j, k, j.grade >= 0, lambda place: powers(p, place - 1.0))
    residual: Float64 = np.maximum(1.0 - known, 0.0)
    return residual


@over_ties("INSQ", "grade")
def _insq(j: Judged, *, k: int | None, T: float = 1.0, max_grade: int = 4) -> Float64:
    refuse_beyond(j, max_grade)
    depth = DEPTH if k is None else k
    rank = np.arange(1.0, depth)
    reached: Float64 = np.append(1.0, np.cumprod(patience(rank + 2 * T)))
    worth = np.maximum(j.grade, 0) / max_grade
    return added(j, depth, worth, lambda place: reached[place - 1]) / float(reached.sum())
