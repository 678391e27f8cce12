"""infAP over all orders of tied documents: mean, worst and best."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import ratio
from weir.measures.library.incomplete import EPSILON
from weir.measures.ties.documents_above import mean_over_orders, per_query
from weir.measures.ties.tie_groups import Groups, over_ties


def _extremes(j: Judged, *, k: int | None, rel: float = 1) -> tuple[Float64, Float64]:
    # A relevant document at place i adds (1 + p w) / i, with p pooled documents above and w the relevant share
    # of the judged ones above. An unjudged document above lowers that, a judged non-relevant one more so, but a
    # pooled unjudged one may raise it, so that the best order need not have the relevant documents first.
    # Groups add up, so each has its own extremes.
    groups = Groups.in_join(j)
    right, wrong = groups.sum(j.grade >= rel), groups.sum((j.grade < rel) & (j.grade >= 0))
    pooled = groups.sum((j.grade < rel) & (j.grade < 0))
    other = groups.size - right - wrong - pooled
    other_above = groups.first - 1 - sum(groups.before(v) for v in (right, wrong, pooled))
    within = [np.array([v, groups.before(v)]) for v in (right, wrong, pooled)]
    within.append(np.array([other, other_above]))
    low, high = np.zeros(len(groups)), np.zeros(len(groups))
    for g in np.flatnonzero((right > 0) & ((groups.first <= k) if k is not None else True)):
        counts, above = np.array([pair[:, g] for pair in within]).T
        places = groups.size[g] if k is None else min(groups.size[g], k - groups.first[g] + 1)
        low[g], high[g] = _worst(counts, above, int(places)), _best(counts, above, int(places))
    count = j.relevant(rel)
    return ratio(per_query(j, groups, low), count), ratio(per_query(j, groups, high), count)


def _best(counts: Float64, above: Float64, places: int) -> float:
    # Others and those judged not relevant come last. A relevant document gains by a pooled one that moves above
    # it if (1 + others above) * w exceeds 1, and w grows with each relevant one above: first some relevant
    # ones, then pooled ones, then the rest. All numbers of pooled ones are tried; each may push one beyond the
    # cut.
    right, _, pooled, _ = counts
    m = np.arange(int(right))
    share = (above[0] + m + EPSILON) / (above[0] + m + above[1] + 2 * EPSILON)
    first = np.count_nonzero((1.0 + above[3]) * share <= 1.0)
    before = np.arange(min(int(pooled), places) + 1)[:, None]
    added = _adds(m, above + np.zeros(4), before * (m >= first))
    return float(np.where(m < places - before, added, 0.0).sum(axis=1).max())


def _worst(counts: Float64, above: Float64, places: int) -> float:
    # Non-relevant documents come first, but for pooled ones, each before or after all.
    right, wrong, pooled, other = counts
    left = int(right - (counts.sum() - places))  # as few relevant ones as the cut leaves
    if left <= 0:
        return 0.0
    added = _adds(
        np.arange(left), above + np.array([0.0, wrong, 0.0, other]), np.arange(int(pooled) + 1)[:, None]
    )
    return float(added.sum(axis=1).min())


def _adds(m: Int64, above: Float64, pooled: Int64) -> Float64:
    right, judged = above[0] + m, above[0] + m + above[1]
    depth = judged + above[2] + pooled
    added: Float64 = (1.0 + depth * (right + EPSILON) / (judged + 2 * EPSILON)) / (1.0 + depth + above[3])
    return added


@over_ties("infAP", ends=_extremes)
def _inf_ap(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    groups = Groups.in_join(j)
    right, wrong = groups.sum(j.grade >= rel), groups.sum((j.grade < rel) & (j.grade >= 0))
    pooled = groups.sum((j.grade < rel) & (j.grade < 0))
    others = np.maximum(right + wrong - 1, 0)
    rest = groups.size - right - wrong
    right_above, wrong_above, all_above = (groups.before(v) for v in (right, wrong, right + wrong + pooled))

    def adds(group: Int64, place: Int64, above: Int64) -> Float64:
        # Above stand `above` judged ones of the group, a fixed share of them relevant, and a share of the pooled.
        hits = right_above[group] + above * (right[group] - 1) / np.maximum(others[group], 1)
        seen = right_above[group] + wrong_above[group] + above
        drawn = place - groups.first[group] - above
        depth = all_above[group] + above + drawn * pooled[group] / np.maximum(rest[group], 1)
        return (1.0 + depth * (hits + EPSILON) / (seen + 2 * EPSILON)) / place

    return ratio(per_query(j, groups, mean_over_orders(groups, right, others, adds, k)), j.relevant(rel))
