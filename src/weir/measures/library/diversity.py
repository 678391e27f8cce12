"""Measures of serving every intent (subtopic) of a query. Relevant: the grade is `rel` or better.

Only intents with a relevant document count, all alike; a query without any scores 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from weir.core.judged import Judged, JudgedIntents
from weir.core.strings import Float64, Int32
from weir.errors import BadValue
from weir.measures.library.arithmetic import place_in_query, powers, ratio
from weir.measures.measure import measure

__all__ = [
    "AP_IA",
    "ERR_IA",
    "NRBP",
    "P_IA",
    "StRecall",
    "alpha_DCG",
    "alpha_nDCG",
    "nERR_IA",
    "nNRBP",
]

_ALPHA = {"alpha": (0.0, 1.0)}
_BOTH = _ALPHA | {"beta": (0.0, 0.9999)}
Discount: TypeAlias = Callable[[Float64], Float64]


@measure("alpha_nDCG", values="any", within=_ALPHA, of="intents")
def alpha_nDCG(j: Judged, *, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> Float64:
    """Gain of documents that serve intents not served before, divided by that of a near-ideal ranking.

    A document adds (1 - alpha)^s / log2(rank + 1) for each intent it serves, if s documents above serve it
    too. The ideal ranking is greedy, so values may slightly exceed 1.

    alpha: loss of worth by each such document, 0 to 1.

    Source: Clarke et al. 2008; ndeval 4.5.
    """
    return _normalised(intents_of(j), k, rel, alpha, logarithmic)


@measure("alpha_DCG", cutoff="required", within=_ALPHA, of="intents")
def alpha_DCG(j: Judged, *, k: int, alpha: float = 0.5, rel: float = 1) -> Float64:
    """Gain of documents that serve intents not served before, divided by that of serving all at every rank.

    The gain is as in alpha_nDCG. ndeval does not divide at k = 1.

    alpha: loss of worth by each document above that serves the intent too, 0 to 1.

    Source: Clarke et al. 2008; ndeval 4.5.
    """
    return _by_perfect(intents_of(j), k, rel, alpha, logarithmic)


@measure("ERR_IA", cutoff="required", within=_ALPHA, of="intents")
def ERR_IA(j: Judged, *, k: int, alpha: float = 0.5, rel: float = 1) -> Float64:
    """Expected reciprocal rank averaged over intents, divided by that of serving all of them at every rank.

    A document adds (1 - alpha)^s / rank for each intent it serves, if s documents above serve it too. ndeval
    does not divide at k = 1.

    alpha: probability that one document satisfies, 0 to 1.

    Source: Chapelle et al. 2009; ndeval 4.5.
    """
    return _by_perfect(intents_of(j), k, rel, alpha, reciprocal)


@measure("nERR_IA", values="any", within=_ALPHA, of="intents")
def nERR_IA(j: Judged, *, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> Float64:
    """Expected reciprocal rank averaged over intents, divided by that of a near-ideal ranking.

    ERR_IA with the ideal ranking of alpha_nDCG: values may slightly exceed 1.
    alpha: probability that one document satisfies, 0 to 1.

    Source: Chapelle et al. 2009; ndeval 4.5.
    """
    return _normalised(intents_of(j), k, rel, alpha, reciprocal)


@measure("NRBP", within=_BOTH, of="intents")
def NRBP(
    j: Judged, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1
) -> Float64:
    """Novelty- and rank-biased precision: RBP averaged over intents, where repetition counts less.

    A document adds (1 - alpha)^s beta^(rank - 1) for each intent it serves, if s documents above serve it
    too; the sum is multiplied by 1 - (1 - alpha) beta and divided by the number of intents.

    alpha: loss by repetition, 0 to 1.
    beta: probability of going on to the next rank.

    Source: Clarke et al. 2009; ndeval 4.5.
    """
    seen = intents_of(j)
    gained = gained_by(seen, seen.found(k, rel), alpha, lambda rank: powers(beta, rank - 1.0))
    return ratio((1.0 - (1.0 - alpha) * beta) * gained, seen.intents(rel))


@measure("nNRBP", values="any", within=_BOTH, of="intents")
def nNRBP(
    j: Judged, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1
) -> Float64:
    """Novelty- and rank-biased precision divided by that of a near-ideal ranking.

    NRBP with the ideal ranking of alpha_nDCG: values may slightly exceed 1.
    alpha: loss by repetition, 0 to 1.
    beta: probability of going on to the next rank.

    Source: Clarke et al. 2009; ndeval 4.5.
    """
    return _normalised(intents_of(j), k, rel, alpha, lambda rank: powers(beta, rank - 1.0))


@measure("P_IA", cutoff="required", of="intents")
def P_IA(j: Judged, *, k: int, rel: float = 1) -> Float64:
    """Precision at k averaged over the query's intents that have a relevant document; 0 without one.

    Source: Agrawal et al. 2009; ndeval 4.5.
    """
    seen = intents_of(j)
    hits = np.bincount(seen.found(k, rel)[0], minlength=len(seen.qrels.query))
    return ratio(seen.total(hits.astype(np.float64)), seen.intents(rel) * k)


@measure("AP_IA", of="intents")
def AP_IA(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Average precision, averaged over the query's intents that have a relevant document; 0 without one.

    Its mean over queries is MAP-IA.

    Source: Agrawal et al. 2009; ndeval 4.5.
    """
    seen = intents_of(j)
    intent, rank = seen.found(k, rel)
    precision = np.bincount(intent, (place_in_query(intent) + 1) / rank, minlength=len(seen.qrels.query))
    return ratio(seen.total(ratio(precision, seen.relevant(rel))), seen.intents(rel))


@measure("StRecall", of="intents")
def StRecall(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of a query's intents with a relevant document that have one within the first k (subtopic recall).

    Source: Zhai et al. 2003; ndeval 4.5 (strec).
    """
    seen = intents_of(j)
    served = np.bincount(seen.found(k, rel)[0], minlength=len(seen.qrels.query)) > 0
    return ratio(seen.total(served.astype(np.float64)), seen.intents(rel))


def intents_of(j: Judged) -> JudgedIntents:
    """Return the ranks of each intent's judged documents; raises BadValue for judgments without intents."""
    if j.intents is None:
        raise BadValue(
            "the judgments are of documents, not of intents; a diversity measure needs lines such as "
            "'query intent document grade', or IntentQrels"
        )
    return j.intents


def logarithmic(rank: Float64) -> Float64:
    """Return 1 / log2(rank + 1) for each rank, float64[n]."""
    weight: Float64 = 1.0 / np.log2(rank + 1.0)
    return weight


def reciprocal(rank: Float64) -> Float64:
    """Return 1 / rank for each rank, float64[n]."""
    return 1.0 / rank


def gained_by(seen: JudgedIntents, found: tuple[Int32, Int32], alpha: float, discount: Discount) -> Float64:
    """Return each query's gain from (intent, rank) pairs, sorted by intent, then rank, float64[queries].

    A pair adds its rank's discount, times 1 - alpha for each earlier document of the intent.
    """
    intent, rank = found
    worth = powers(1.0 - alpha, place_in_query(intent)) * discount(rank.astype(np.float64))
    return seen.total(np.bincount(intent, worth, minlength=len(seen.qrels.query)).astype(np.float64))


def _normalised(seen: JudgedIntents, k: int | None, rel: float, alpha: float, discount: Discount) -> Float64:
    ideal = gained_by(seen, seen.ideal(k, rel, alpha), alpha, discount)
    return ratio(gained_by(seen, seen.found(k, rel), alpha, discount), ideal)


def _by_perfect(seen: JudgedIntents, k: int, rel: float, alpha: float, discount: Discount) -> Float64:
    gained = gained_by(seen, seen.found(k, rel), alpha, discount)
    return ratio(gained, seen.intents(rel) * perfect_gain(k, alpha, discount))


def perfect_gain(k: int, alpha: float, discount: Discount) -> float:
    """Return the gain of one intent to which each of the first k documents is relevant."""
    rank = np.arange(1, k + 1, dtype=np.float64)
    return float(np.sum(powers(1.0 - alpha, rank - 1.0) * discount(rank)))
