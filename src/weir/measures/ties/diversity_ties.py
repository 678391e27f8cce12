"""Mean over all orders of tied documents, for measures of diversity."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged, JudgedIntents
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import powers, ratio
from weir.measures.library.contexts import nuggets_found
from weir.measures.library.diversity import (
    Discount,
    gained_by,
    intents_of,
    logarithmic,
    perfect_gain,
    reciprocal,
)
from weir.measures.ties.documents_above import Adds, mean_by_marked_above
from weir.measures.ties.tie_groups import Groups, over_ties


@over_ties("alpha_nDCG")
def _alpha_ndcg(j: Judged, *, k: int | None, alpha: float = 0.5, rel: float = 1) -> Float64:
    return _normalised(j, k, rel, alpha, logarithmic)


@over_ties("nERR_IA")
def _nerr_ia(j: Judged, *, k: int | None, alpha: float = 0.5, rel: float = 1) -> Float64:
    return _normalised(j, k, rel, alpha, reciprocal)


@over_ties("nNRBP")
def _nnrbp(j: Judged, *, k: int | None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Float64:
    return _normalised(j, k, rel, alpha, lambda rank: powers(beta, rank - 1.0))


@over_ties("NRBP")
def _nrbp(j: Judged, *, k: int | None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Float64:
    seen = intents_of(j)
    gained = _gain(seen, k, rel, alpha, lambda rank: powers(beta, rank - 1.0))
    return ratio((1.0 - (1.0 - alpha) * beta) * gained, seen.intents(rel))


@over_ties("alpha_DCG")
def _alpha_dcg(j: Judged, *, k: int, alpha: float = 0.5, rel: float = 1) -> Float64:
    seen = intents_of(j)
    perfect = perfect_gain(k, alpha, logarithmic)
    return ratio(_gain(seen, k, rel, alpha, logarithmic), seen.intents(rel) * perfect)


@over_ties("ERR_IA")
def _err_ia(j: Judged, *, k: int, alpha: float = 0.5, rel: float = 1) -> Float64:
    seen = intents_of(j)
    perfect = perfect_gain(k, alpha, reciprocal)
    return ratio(_gain(seen, k, rel, alpha, reciprocal), seen.intents(rel) * perfect)


@over_ties("P_IA")
def _p_ia(j: Judged, *, k: int, rel: float = 1) -> Float64:
    seen = intents_of(j)
    hits = _by_intent(
        seen, k, rel, lambda _, place, above: np.ones(np.broadcast_shapes(place.shape, above.shape))
    )
    return ratio(seen.total(hits), seen.intents(rel) * k)


@over_ties("AP_IA")
def _ap_ia(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    seen = intents_of(j)
    precision = _by_intent(seen, k, rel, lambda _, place, above: (above + 1) / place)
    return ratio(seen.total(ratio(precision, seen.relevant(rel))), seen.intents(rel))


@over_ties("StRecall")
def _st_recall(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    seen = intents_of(j)
    served = _by_intent(seen, k, rel, lambda _, place, above: (above == 0) * np.ones(place.shape))
    return ratio(seen.total(served), seen.intents(rel))


@over_ties("NuggetRecall")
def _nugget_recall(
    j: Judged, *, k: int | None, importance: str = "all", partial: float = 0.0, rel: float = 1
) -> Float64:
    seen = intents_of(j)

    def served(least: float) -> Float64:
        return _by_intent(seen, k, least, lambda _, place, above: (above == 0) * np.ones(place.shape))

    return nuggets_found(seen, served, importance, partial, rel)


def _normalised(j: Judged, k: int | None, rel: float, alpha: float, discount: Discount) -> Float64:
    seen = intents_of(j)
    ideal = gained_by(seen, seen.ideal(k, rel, alpha), alpha, discount)
    return ratio(_gain(seen, k, rel, alpha, discount), ideal)


def _gain(seen: JudgedIntents, k: int | None, rel: float, alpha: float, discount: Discount) -> Float64:
    def adds(_: Int64, place: Int64, above: Int64) -> Float64:
        return powers(1.0 - alpha, above) * discount(place.astype(np.float64))

    return seen.total(_by_intent(seen, k, rel, adds))


def _by_intent(seen: JudgedIntents, k: int | None, rel: float, adds: Adds) -> Float64:
    # Each intent is a ranking of its own: the worth of a document depends on the number above that serve the
    # intent, too.
    qrels, joined = seen.qrels, seen.joined
    row = qrels.numbered.ptr[joined.query] + joined.grade
    ends = np.zeros((2, len(qrels.numbered.doc)), np.int64)
    ends[:, row] = joined.first, joined.last
    first, last = ends[:, qrels.row]
    kept = np.flatnonzero((qrels.grade >= rel) & (first > 0))
    kept = kept[np.lexsort((first[kept], qrels.intent[kept]))]
    groups = Groups.of(qrels.intent[kept], first[kept], last[kept])
    values = mean_by_marked_above(groups, np.ones(len(kept), np.bool_), adds, k)
    return np.bincount(groups.query, values, len(qrels.query)).astype(np.float64, copy=False)
