"""Unjudged documents in rankings (holes): how many are relevant, and their effect on scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import between, change, count, percent, score
from weir.core.run import Run
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.measure import Measure, parse_measure
from weir.stats.label_agreement import bounds, bounds_shown, cohen_kappa, drawn_tables
from weir.stats.order_agreement import kendall_tau, order_interval
from weir.stats.resampling import interval, share_bounds
from weir.stats.score_bounds import Unjudged, score_bounds

NDCG_AT_10 = parse_measure("nDCG@10")
MEAN_DECIMALS = 12
PARTIES = ("people", "model")

Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class _Ratio:
    """A ratio of two counts with its 95% interval over queries; NaN if `of` is 0."""

    count: int
    of: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class _FilledScore:
    """A measure's mean if unjudged documents have the labels of `by`, "people" or "model"."""

    by: str
    mean: float
    change: float
    """Mean minus the mean with holes as not relevant, with its 95% interval over queries."""
    low: float
    high: float


@dataclass(frozen=True)
class HoleCounts:
    """Counts of the unjudged documents (holes) in the first k of a system, and its means; of all systems if `system`
    is ""."""

    system: str
    holes: int
    missed_by_people: _Ratio
    """Relevant share of the holes that people labelled."""
    missed_by_model: _Ratio
    """Relevant share of the holes that the model labelled."""
    agreement: _Ratio
    """Share of the holes labelled by both with the same verdict, relevant or not."""
    kappa: tuple[float, float, float]
    """(kappa, low, high) of these verdicts; NaN if undefined."""
    before: float = math.nan
    """Mean with holes as not relevant."""
    least: float = math.nan
    """Lower bound of the mean for any labels of the holes; `most` is the upper one."""
    most: float = math.nan
    filled: tuple[_FilledScore, ...] = ()
    """By people, by the model."""


@dataclass(frozen=True)
class FilledOrder:
    """The order of systems with unjudged documents labelled by `by`, compared with unjudged as not relevant."""

    by: str
    tau: float
    """Kendall's tau, with the interval of `order_interval`."""
    low: float
    high: float
    pairs: int
    turned: tuple[tuple[str, str], ...]
    """Pairs (above before, above after) whose order turns."""
    fewest: float
    """Interval, with `most`, of the number of turned pairs."""
    most: float


@dataclass(frozen=True)
class HoleStudy:
    """How many unjudged documents people and a model call relevant, and what that changes."""

    measure: str
    k: int
    rel: float
    """Lowest relevant grade."""
    queries: int
    found: tuple[HoleCounts, ...]
    """Of all systems together, then of each."""
    orders: tuple[FilledOrder, ...]
    """By people, by the model; () for one system."""


def hole_study(
    runs: Mapping[str, Run],
    qrels: Qrels,
    people: Qrels | None = None,
    model: Qrels | None = None,
    measure: Measure = NDCG_AT_10,
    rel: float = 1,
) -> HoleStudy:
    """Return how many unjudged documents (holes) within the measure's cut-off are relevant, and how scores change.

    people, model: labels of holes; at least one is needed.

    Raises BadValue without runs, holes or labels, if people and model labelled no hole in common, and for a measure
    without score bounds.
    """
    if not runs:
        raise BadValue("there is no ranking whose holes could be studied")
    parties = {by: labels for by, labels in zip(PARTIES, (people, model), strict=True) if labels is not None}
    if not parties:
        raise BadValue("holes are studied by labels of people, of a model, or of both; none are given")
    highest = max(float(labels.grade.max(initial=0)) for labels in parties.values())
    certain = score_bounds(runs, qrels, measure, highest)
    k = measure.cutoff or 0
    holes = Unjudged.of(list(runs.values()), qrels, k)
    if not len(holes.query):
        raise BadValue(
            f"everything among the first {k} documents of each system is judged; nothing is left to study"
        )
    docs = len(holes.qrels.docs)
    own = holes.query.astype(np.int64) * docs + holes.doc
    grades: dict[str, Float64] = {}  # of each hole by who labelled it, NaN without a label
    for by, labels in parties.items():
        query = holes.qrels.queries.codes(labels.queries.strings)[labels.query_of_row()].astype(np.int64)
        doc = holes.qrels.docs.codes(labels.docs.strings)[labels.doc].astype(np.int64)
        pair = np.where((query >= 0) & (doc >= 0), query * docs + doc, -1)
        at = np.minimum(np.searchsorted(own, pair), len(own) - 1)
        is_hole = own[at] == pair
        column = np.full(len(own), np.nan)
        column[at[is_hole]] = labels.grade[is_hole]
        grades[by] = column
    if np.isnan(list(grades.values())).any(axis=0).all():
        everyone = " and by ".join(_labeller(by) for by in grades)
        raise BadValue(
            f"none of the {len(holes.query):,} unjudged documents is judged by {everyone}; write a sheet with weir "
            f"labels pool, and have it judged"
        )
    before = _values(runs, qrels, measure)
    after: dict[str, Float64] = {}  # with the labelled holes among the judgments
    for by, column in grades.items():
        labelled, old = ~np.isnan(column), holes.qrels
        filled = Qrels.from_columns(
            old.queries,
            old.docs,
            np.concatenate([old.query_of_row(), holes.query[labelled]]),
            np.concatenate([old.doc, holes.doc[labelled]]),
            np.concatenate([old.grade.astype(np.float64), column[labelled]]),
        )
        after[by] = _values(runs, filled, measure)
    counted = [_hole_counts("", np.ones(len(holes.query), np.bool_), holes, grades, rel)]
    for number, (name, run) in enumerate(runs.items()):
        one = _hole_counts(name, holes.ranks_in(run, k) <= k, holes, grades, rel)
        scores = []
        for by, values in after.items():
            old_values, new = before[number], values[number]
            low, high = interval(new - old_values)
            scores.append(
                _FilledScore(by, float(new.mean()), float(new.mean() - old_values.mean()), low, high)
            )
        least, most = (float(np.nanmean(end)) for end in (certain[name].low, certain[name].high))
        mean = float(before[number].mean())
        counted.append(replace(one, before=mean, least=least, most=most, filled=tuple(scores)))
    orders = tuple(_filled_order(by, list(runs), before, one) for by, one in after.items())
    return HoleStudy(str(measure), k, rel, len(qrels), tuple(counted), orders if len(runs) > 1 else ())


def _values(runs: Mapping[str, Run], qrels: Qrels, measure: Measure) -> Float64:
    order = np.argsort(qrels.queries.tie_ranks)
    return np.array([measure.per_query(Judged.of(run, qrels))[order] for run in runs.values()])


def _hole_counts(
    system: str, flags: Flags, holes: Unjudged, grades: Mapping[str, Float64], rel: float
) -> HoleCounts:
    nobody = np.full(len(flags), np.nan)
    columns = [grades.get(by, nobody) for by in PARTIES]
    labelled = [flags & ~np.isnan(column) for column in columns]
    relevant = [column >= rel for column in columns]
    both = labelled[0] & labelled[1]
    cells = [
        _by_query(holes, both & (relevant[0] == one) & (relevant[1] == other))
        for one, other in product((False, True), repeat=2)
    ]
    table = np.stack(cells, axis=1)
    drawn = [cohen_kappa(cells.reshape(2, 2)) if cells.any() else math.nan for cells in drawn_tables(table)]
    whole = table.sum(axis=0).reshape(2, 2)
    kappa = cohen_kappa(whole) if both.any() else math.nan
    return HoleCounts(
        system,
        int(flags.sum()),
        _ratio(holes, labelled[0] & relevant[0], labelled[0]),
        _ratio(holes, labelled[1] & relevant[1], labelled[1]),
        _ratio(holes, both & (relevant[0] == relevant[1]), both),
        (kappa, *bounds(drawn)),
    )


def _by_query(holes: Unjudged, flags: Flags) -> NDArray[np.int64]:
    counts = np.bincount(holes.query[flags], minlength=len(holes.qrels))
    return counts[np.argsort(holes.qrels.queries.tie_ranks)].astype(np.int64)


def _ratio(holes: Unjudged, part: Flags, whole: Flags) -> _Ratio:
    counts = np.stack([_by_query(holes, part), _by_query(holes, whole)], axis=1)
    count, of = counts.sum(axis=0).tolist()
    if of and count in (0, of):  # queries drawn anew would all say the same
        return _Ratio(count, of, count / of, *share_bounds(count, of))
    drawn = [float(c[0] / c[1]) if c[1] else math.nan for c in drawn_tables(counts)]
    return _Ratio(count, of, count / of if of else math.nan, *bounds(drawn))


def _filled_order(by: str, names: Sequence[str], before: Float64, after: Float64) -> FilledOrder:

    def rounded(sums: Float64) -> tuple[Float64, Float64]:
        means = np.round(sums / before.shape[1], MEAN_DECIMALS)
        return means[0], means[1]

    both = np.stack([before.T, after.T], axis=1)
    one, other = rounded(both.sum(axis=0))
    drawn = [rounded(sums) for sums in drawn_tables(both)]
    turned = [
        (names[i], names[j]) if one[i] > one[j] else (names[j], names[i])
        for i, j in combinations(range(len(names)), 2)
        if (one[i] - one[j]) * (other[i] - other[j]) < 0
    ]
    pairs, queries, tau = math.comb(len(names), 2), len(both), kendall_tau(one, other)
    ends = order_interval(tau, [kendall_tau(*means) for means in drawn], queries, pairs)
    signs = [np.sign(a[:, None] - a) * np.sign(b[:, None] - b) for a, b in drawn]
    counts = [float((apart < 0).sum()) / 2 for apart in signs]
    fewest, most = order_interval(len(turned), counts, queries, pairs, (0.0, max(1.0, pairs)))
    return FilledOrder(by, tau, *ends, pairs, tuple(turned), float(np.floor(fewest)), float(np.ceil(most)))


# Tables.


def _hole_tables(studies: Sequence[HoleStudy]) -> tuple[Table, ...]:
    tables = []
    for study in studies:
        by_model = any(filled.by == "model" for one in study.found for filled in one.filled)
        both = any(len(one.filled) > 1 for one in study.found)
        parties = PARTIES if both else PARTIES[1:] if by_model else PARTIES[:1]
        judges = [_labeller(by) for by in parties]
        shares = [[f"first {study.k}", "unjudged", f"relevant by {judges[0]}"]]
        if len(parties) > 1:
            shares[0] += [f"by {judges[1]}", "same verdict", "kappa"]
        for one in study.found:
            missed = dict(zip(PARTIES, (one.missed_by_people, one.missed_by_model), strict=True))
            line = [
                one.system or "all systems",
                count(one.holes),
                *(_ratio_shown(missed[by]) for by in parties),
            ]
            if len(parties) > 1:
                kappa, low, high = one.kappa
                kappas = "-" if math.isnan(kappa) else f"{score(kappa)} {bounds_shown(low, high)}"
                line += [_ratio_shown(one.agreement), kappas]
            shares.append(line)
        names = [name for judge in judges for name in (f"by {judge}", "change")]
        scores = [["system", f"{study.measure} now", "may be", *names]]
        for one in sorted((one for one in study.found if one.system), key=lambda one: -one.before):
            line = [one.system, score(one.before), f"{score(one.least)} to {score(one.most)}"]
            for filled in one.filled:
                bounds = between(filled.low, filled.high, change)
                line += [score(filled.mean), f"{change(filled.change)} {bounds}"]
            scores.append(line)
        tables += [
            table_of(shares),
            table_of(scores),
            sentences(*(map(_order_shown, study.orders) if study.orders else ["one system has no order"])),
            sentences(
                f"documents of grade {study.rel:g} or more are relevant; shares are of the unjudged documents that "
                f"{'each' if len(judges) > 1 else judges[0]} judged, those judged by nobody still count as not "
                f"relevant; intervals of 95% over {count(study.queries)} queries"
            ),
        ]
    return tuple(tables)


HOLE_STUDIES = ResultKind("holes", HoleStudy, _hole_tables, parts="found")


def _labeller(by: str) -> str:
    return "the model" if by == "model" else by


def _ratio_shown(ratio: _Ratio) -> str:
    if not ratio.of:
        return "-"
    parts = f"{count(ratio.count)} of {count(ratio.of)}"
    interval = "" if math.isnan(ratio.low) else f" {between(ratio.low, ratio.high, percent)}"
    return f"{parts}, {percent(ratio.value)}{interval}"


def _order_shown(one: FilledOrder) -> str:
    pairs = "; ".join(f"{better} was above {worse}" for better, worse in one.turned)
    return (
        f"order of systems by {_labeller(one.by)}: tau {score(one.tau)} {between(one.low, one.high)} with the "
        f"order now, {count(len(one.turned))} of {count(one.pairs)} pairs change places [{one.fewest:g}, {one.most:g}]"
        + (f": {pairs}" if pairs else "")
    )
