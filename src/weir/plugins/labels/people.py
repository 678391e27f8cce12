"""Agreement of people with others and themselves, and the human ceiling of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import between, count, counted, percent, score
from weir.core.run import Run
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import Conventions, score_run
from weir.measures.measure import Measure, within_unit
from weir.stats.label_agreement import (
    ManyRaters,
    bounds,
    bounds_shown,
    cohen_kappa,
    drawn_tables,
    label_tables,
    many_raters,
    rater_tables,
    shared_pairs,
    without_interval,
)
from weir.stats.preferences import Preference, PreferenceOrder, preference_order, preference_tables
from weir.stats.resampling import interval


@dataclass(frozen=True)
class Kappa:
    """The agreement of two judges on the pairs that both graded, with 95% intervals from resampled queries."""

    first: str
    second: str
    pairs: int
    same: float
    """Share of equal grades."""
    kappa: float
    """NaN if both gave one grade throughout."""
    low: float
    high: float
    weighted: float
    """Kappa with quadratic weights, and its interval."""
    weighted_low: float
    weighted_high: float


def kappas_of(labels: Mapping[str, Qrels]) -> list[Kappa]:
    """Return the agreement of each two judges who graded a common pair."""
    return [
        _kappa_of(labels[one], labels[other], (one, other))
        for one, other in combinations(labels, 2)
        if len(shared_pairs(labels[one], labels[other])[0])
    ]


def _kappa_of(first: Qrels, second: Qrels, names: tuple[str, str]) -> Kappa:
    tables = label_tables(first, second)
    whole, labels = tables.table.sum(axis=0), tables.labels
    drawn = list(drawn_tables(tables.table))
    plain, weighted = (
        (cohen_kappa(whole, weights, labels), *bounds([cohen_kappa(one, weights, labels) for one in drawn]))
        for weights in ("", "quadratic")
    )
    return Kappa(*names, int(whole.sum()), float(np.trace(whole)) / float(whole.sum()), *plain, *weighted)


EXPECTED = Conventions(ties="expected")


@dataclass(frozen=True)
class HumanCeiling:
    """The score of a ranking by one person's grades under another person's labels."""

    ranked_by: str
    """"" for the mean over all pairs of judges; `scored_by` is "" then, too."""
    scored_by: str
    measure: str
    queries: int
    pairs: int
    """Pairs of query and document that both graded."""
    mean: float
    low: float
    """95% interval over queries, with `high`."""
    high: float


def human_ceilings(labels: Mapping[str, Qrels], measure: Measure) -> list[HumanCeiling]:
    """Return the mean score, then the score of each judge's order of documents by each other judge's labels.

    Only documents that both graded are ranked; ties count as the mean over their orders. Raises BadValue if no two
    judges share a pair, and for a measure without such a mean.
    """
    found: list[HumanCeiling] = []
    by_query: dict[str, list[float]] = {}
    pairs = 0
    for first, second in permutations(labels, 2):
        rows, others = shared_pairs(labels[first], labels[second])
        if not len(rows):
            continue
        ranking, judgments = (
            one.of_rows(np.isin(np.arange(len(one.doc)), of))
            for one, of in ((labels[first], rows), (labels[second], others))
        )
        columns = ranking.query_of_row(), ranking.doc, ranking.grade.astype(np.float64)
        run = Run.from_columns(ranking.queries, ranking.docs, *columns)
        scores = score_run(judgments, run, measure, EXPECTED)
        values = scores.in_id_order(str(measure))
        names = np.array(scores.queries.tolist())[scores.id_order()].tolist()
        for name, value in zip(names, values.tolist(), strict=True):
            by_query.setdefault(name, []).append(value)
        found.append(_ceiling(first, second, measure, values, len(rows)))
        pairs += len(rows)
    if not found:
        raise BadValue(
            "no two judges graded a pair in common, so nobody's order can be scored by another's labels"
        )
    means = np.array([np.nanmean(by_query[name]) for name in sorted(by_query)])
    return [_ceiling("", "", measure, means, pairs // 2), *found]


def _ceiling(first: str, second: str, measure: Measure, values: Float64, pairs: int) -> HumanCeiling:
    low, high = interval(values, unit=within_unit(str(measure)))
    queries = int(np.count_nonzero(~np.isnan(values)))
    return HumanCeiling(first, second, str(measure), queries, pairs, float(np.nanmean(values)), low, high)


@dataclass(frozen=True)
class People:
    """Agreement and consistency of the people who judged."""

    labels: int
    """Grades of all judges, without those of pairs seen again."""
    kappas: tuple[Kappa, ...]
    """Of each two judges with pairs in common."""
    again: tuple[Kappa, ...]
    """Of each judge with the own grades of pairs seen again."""
    together: ManyRaters | None
    """Of all judges; None if no pair has two grades."""
    ceilings: tuple[HumanCeiling, ...]
    preferences: PreferenceOrder | None
    """None if nobody compared anything."""


def people_of(
    labels: Mapping[str, Qrels],
    again: Mapping[str, Qrels],
    preferences: Sequence[Preference],
    measure: Measure,
) -> People:
    """Return agreement, consistency, human ceiling and preferences of the people who judged.

    labels, again: {judge: first grades}, {judge: second grades}.

    Raises BadValue for a measure without a mean over the orders of tied documents.
    """
    kappas = kappas_of(labels)
    own = [
        _kappa_of(labels[name], second, (name, name))
        for name, second in again.items()
        if name in labels and len(shared_pairs(labels[name], second)[0])
    ]
    return People(
        sum(len(one.doc) for one in labels.values()),
        tuple(kappas),
        tuple(own),
        many_raters(labels) if kappas else None,
        tuple(human_ceilings(labels, measure)) if kappas else (),
        preference_order(preferences) if preferences else None,
    )


def _people_tables(results: Sequence[People]) -> tuple[Table, ...]:
    tables: list[Table] = []
    for one in results:
        for kappas, head in ((one.kappas, "judges"), (one.again, "seen again by")):
            if kappas:
                lines = [
                    [head, "pairs", "same grade", "kappa", "95% interval", "quadratic kappa", "95% interval"]
                ]
                lines += [
                    [
                        k.first if k.first == k.second else f"{k.first}, {k.second}",
                        count(k.pairs),
                        percent(k.same),
                        score(k.kappa),
                        bounds_shown(k.low, k.high),
                        score(k.weighted),
                        bounds_shown(k.weighted_low, k.weighted_high),
                    ]
                    for k in kappas
                ]
                tables.append(table_of(lines, notes=without_interval(lines)))
        tables += rater_tables([] if one.together is None else [one.together])
        if one.together is None:
            said = f"{counted(one.labels, 'grade')}; no pair of query and document has those of two people"
            tables.append(sentences(said))
        tables += _ceiling_tables(one.ceilings)
        tables += preference_tables([] if one.preferences is None else [one.preferences])
    return tuple(tables)


PEOPLE = ResultKind("people", People, _people_tables)


def _ceiling_tables(ceilings: Sequence[HumanCeiling]) -> tuple[Table, ...]:
    if not ceilings:
        return ()
    lines = [["order of", "labels of", "pairs", "queries", ceilings[0].measure, "95% interval"]]
    lines += [
        [
            one.ranked_by or "each",
            one.scored_by or "each other",
            count(one.pairs),
            count(one.queries),
            score(one.mean),
            between(one.low, one.high),
        ]
        for one in ceilings
    ]
    note = "the human ceiling: a system that ranks as one person grades scores so by the labels of another"
    return (table_of(lines, notes=[note], keys=2),)
