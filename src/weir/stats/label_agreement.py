"""Agreement of labels: two raters from their confusion table, several with missing values by Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np

from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, UnknownName
from weir.stats.bootstrap import SEED

__all__ = [
    "STATISTICS",
    "Agreement",
    "LabelTables",
    "Level",
    "QueryAgreement",
    "ac1",
    "agreement",
    "alpha_of",
    "binary_table",
    "bounds",
    "cohen_kappa",
    "coincidences",
    "drawn_tables",
    "krippendorff_alpha",
    "label_tables",
    "shared_pairs",
]

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
Summed = TypeVar("Summed", Int64, Float64)
MOST_LABELS = 100
"""Different grades; with more a confusion table says nothing."""
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class LabelTables:
    """Confusion of two raters' labels of the same pairs, for each query.

    queries: Ids[Q]; labels: float64[L], the grades that occur, ascending; table: int64[Q, L, L], pairs by first and
    second rater's grade; only_first, only_second: pairs that only one of them labelled.
    """

    queries: Ids
    labels: Float64
    table: Int64
    only_first: int
    only_second: int


@dataclass(frozen=True)
class QueryAgreement:
    """How well two raters agree on the pairs of one query; kappa is NaN where both are constant."""

    query: str
    pairs: int
    accuracy: float
    kappa: float
    bias: float


@dataclass(frozen=True)
class Agreement:
    """How well two raters agree on the pairs that both labelled; intervals are of 95%, by resampling queries.

    labels: the grades; confusion: pairs by the first rater's grade (row) and the second's; values: (statistic, value,
    low, high), see STATISTICS; binary: (grade from which a pair is relevant, Cohen's kappa, low, high, the share that
    the first rater calls relevant, the second's); by_query: each query, the worst kappa first, then those without one.
    """

    first: str
    second: str
    pairs: int
    queries: int
    only_first: int
    only_second: int
    labels: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    values: tuple[tuple[str, float, float, float], ...]
    binary: tuple[tuple[float, float, float, float, float, float], ...]
    by_query: tuple[QueryAgreement, ...] = ()

    def value(self, statistic: str) -> float:
        """A statistic by name; raises UnknownName for another."""
        found = {name: value for name, value, *_ in self.values}
        if statistic not in found:
            raise UnknownName("statistic", statistic, found)
        return found[statistic]


def label_tables(first: Qrels, second: Qrels) -> LabelTables:
    """The tables of the pairs that both judge, queries that share none left out.

    Raises BadValue where no pair is judged by both, and for more than MOST_LABELS different grades.
    """
    both, at = shared_pairs(first, second)
    if not len(both):
        raise BadValue("no pair of query and document is judged by both")
    pair = (first.grade[both].astype(np.float64), second.grade[at].astype(np.float64))
    labels = np.unique(np.concatenate(pair))
    if len(labels) > MOST_LABELS:
        raise BadValue(
            f"{len(labels):,} different grades; agreement is of at most {MOST_LABELS}: round them first"
        )
    row, column = (np.searchsorted(labels, grades) for grades in pair)
    asked, query = _in_id_order(first, both)
    table = np.zeros((len(asked), len(labels), len(labels)), np.int64)
    np.add.at(table, (query, row, column), 1)
    return LabelTables(
        first.queries.take(asked), labels, table, len(first.doc) - len(both), len(second.doc) - len(both)
    )


def _in_id_order(qrels: Qrels, rows: Int64) -> tuple[Int64, Int64]:
    """(the queries of these judgments by identifier, the place of each judgment's query among them).

    So resampling draws the same, whatever order a file lists queries in.
    """
    asked, query = np.unique(qrels.query_of_row()[rows], return_inverse=True)
    order = np.argsort(qrels.queries.take(asked).tie_ranks)
    place = np.empty(len(asked), np.int64)
    place[order] = np.arange(len(asked))
    return asked[order].astype(np.int64), place[query]


def shared_pairs(first: Qrels, second: Qrels) -> tuple[Int64, Int64]:
    """The judgments of pairs that both judge: their rows in the first, ascending, and in the second."""
    docs = second.docs.codes(first.docs.strings)[first.doc].astype(np.int64)
    queries = second.queries.codes(first.queries.strings)[first.query_of_row()].astype(np.int64)
    here = second.query_of_row().astype(np.int64) * max(1, len(second.docs)) + second.doc
    wanted = np.where((docs >= 0) & (queries >= 0), queries * max(1, len(second.docs)) + docs, -1)
    at = np.minimum(np.searchsorted(here, wanted), max(0, len(here) - 1))
    both = np.flatnonzero(here[at] == wanted) if len(here) else np.zeros(0, np.int64)
    return both, at[both]


def cohen_kappa(
    table: Int64, weights: Literal["", "linear", "quadratic"] = "", labels: Float64 | None = None
) -> float:
    """Cohen's kappa: agreement beyond what the raters' shares of each grade give by chance; NaN if both are constant.

    table: [L, L], pairs by both grades; weights: "" counts any difference alike, "linear" and "quadratic" by the
    distance of the grades' places, or of `labels` where they are given. Source: Cohen 1960, 1968.
    """
    places = np.arange(len(table), dtype=np.float64) if labels is None else labels
    apart = np.abs(places[:, None] - places)
    cost = (apart > 0).astype(np.float64) if not weights else apart if weights == "linear" else apart**2
    total = float(table.sum())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chance = float((cost * expected).sum())
    return 1 - float((cost * table).sum()) / chance if chance else math.nan


def ac1(table: Int64) -> float:
    """Gwet's AC1: agreement beyond chance, where chance falls as grades are used unevenly; 1 for one grade alone.

    Source: Gwet 2008.
    """
    total = float(table.sum())
    share = (table.sum(axis=0) + table.sum(axis=1)) / (2 * total)
    if len(table) < 2:
        return 1.0
    chance = float((share * (1 - share)).sum()) / (len(table) - 1)
    return (float(np.trace(table)) / total - chance) / (1 - chance)


def krippendorff_alpha(ratings: Float64, level: Level = "nominal") -> float:
    """Krippendorff's alpha of several raters, 1 for perfect agreement and 0 for chance; NaN where all values are equal.

    ratings: float64[raters, items], NaN for an item that a rater left out; items with fewer than two ratings count
    for nothing. level: how far two grades are apart. Raises UnknownName for another level, BadValue where no item has
    two ratings. Source: Krippendorff 2011.
    """
    labels = np.unique(ratings[~np.isnan(ratings)])
    found = coincidences(ratings, labels)
    if not found.any():
        raise BadValue("no item has two ratings")
    return alpha_of(found, labels, level)


def coincidences(ratings: Float64, labels: Float64) -> Float64:
    """How often two ratings of one item are these two labels, float64[L, L]; an item weighs as many as rated it.

    ratings: as `krippendorff_alpha`; labels: the grades that may occur. Those of several sets of items are summed.
    """
    counts = (
        np.array([(ratings == label).sum(axis=0) for label in labels], np.int64).reshape(len(labels), -1).T
    )
    each = counts.sum(axis=1)
    counts, each = counts[each > 1], each[each > 1]
    weighted = counts / (each - 1)[:, None]
    return np.asarray(counts.T @ weighted - np.diag(weighted.sum(axis=0)), np.float64)


def alpha_of(coincidence: Float64, labels: Float64, level: Level) -> float:
    """Alpha from `coincidences`; NaN where all values are equal. Raises UnknownName for another level."""
    if level not in get_args(Level):
        raise UnknownName("level", level, get_args(Level))
    number = coincidence.sum(axis=0)
    apart = _distance(labels, number, level)
    expected = float((apart * np.outer(number, number)).sum()) / (float(number.sum()) - 1)
    return 1 - float((apart * coincidence).sum()) / expected if expected else math.nan


def _distance(labels: Float64, number: Float64, level: Level) -> Float64:
    if level == "nominal":
        return np.asarray(labels[:, None] != labels, np.float64)
    if level == "interval":
        return np.asarray((labels[:, None] - labels) ** 2, np.float64)
    middle = np.cumsum(number) - number / 2
    return np.asarray((middle[:, None] - middle) ** 2, np.float64)


def _moments(table: Int64, labels: Float64) -> tuple[float, float]:
    """(mean absolute difference, mean difference second minus first)."""
    apart = labels[None, :] - labels[:, None]
    total = float(table.sum())
    return float((np.abs(apart) * table).sum()) / total, float((apart * table).sum()) / total


Statistic: TypeAlias = Callable[[Int64, Float64], float]
STATISTICS: dict[str, Statistic] = {
    "accuracy": lambda table, labels: float(np.trace(table)) / float(table.sum()),
    "kappa": lambda table, labels: cohen_kappa(table),
    "linear kappa": lambda table, labels: cohen_kappa(table, "linear", labels),
    "quadratic kappa": lambda table, labels: cohen_kappa(table, "quadratic", labels),
    "nominal alpha": lambda table, labels: alpha_of((table + table.T).astype(np.float64), labels, "nominal"),
    "ordinal alpha": lambda table, labels: alpha_of((table + table.T).astype(np.float64), labels, "ordinal"),
    "interval alpha": lambda table, labels: alpha_of(
        (table + table.T).astype(np.float64), labels, "interval"
    ),
    "AC1": lambda table, labels: ac1(table),
    "mean absolute error": lambda table, labels: _moments(table, labels)[0],
    "bias": lambda table, labels: _moments(table, labels)[1],
}
"""Each from a confusion table and its grades; bias is the second rater's mean grade minus the first's."""


def agreement(first: Qrels, second: Qrels, names: tuple[str, str] = ("first", "second")) -> Agreement:
    """How well two raters agree, with intervals by resampling queries; raises as `label_tables`."""
    tables = label_tables(first, second)
    whole, count = tables.table.sum(axis=0), len(tables.table)
    drawn = list(drawn_tables(tables.table))
    values = []
    for name, statistic in STATISTICS.items():
        low, high = bounds([statistic(table, tables.labels) for table in drawn])
        values.append((name, statistic(whole, tables.labels), low, high))
    binary: list[tuple[float, float, float, float, float, float]] = []
    for cut in range(1, len(tables.labels)):
        low, high = bounds([cohen_kappa(binary_table(table, cut)) for table in drawn])
        halves = binary_table(whole, cut)
        one, other = float(halves[1].sum() / halves.sum()), float(halves[:, 1].sum() / halves.sum())
        binary.append((float(tables.labels[cut]), cohen_kappa(halves), low, high, one, other))
    return Agreement(
        *names,
        int(whole.sum()),
        count,
        tables.only_first,
        tables.only_second,
        tuple(tables.labels.tolist()),
        tuple(map(tuple, whole.tolist())),
        tuple(values),
        tuple(binary),
        _by_query(tables),
    )


def drawn_tables(by_query: Summed) -> Iterator[Summed]:
    """Sums over queries drawn with replacement, of what the first axis has for each query, RESAMPLES of them."""
    rng, count = np.random.default_rng(SEED), len(by_query)
    for _ in range(RESAMPLES):
        yield np.tensordot(np.bincount(rng.integers(0, count, count), minlength=count), by_query, 1)


def _by_query(tables: LabelTables) -> tuple[QueryAgreement, ...]:
    found = [
        QueryAgreement(
            query,
            int(table.sum()),
            float(np.trace(table)) / float(table.sum()),
            cohen_kappa(table),
            _moments(table, tables.labels)[1],
        )
        for query, table in zip(tables.queries.tolist(), tables.table, strict=True)
    ]
    return tuple(sorted(found, key=lambda q: (math.isnan(q.kappa), q.kappa, q.accuracy, q.query)))


def binary_table(table: Int64, cut: int) -> Int64:
    """The table of below and from a grade's place on, [2, 2]."""
    return np.array(
        [
            [table[:cut, :cut].sum(), table[:cut, cut:].sum()],
            [table[cut:, :cut].sum(), table[cut:, cut:].sum()],
        ]
    )


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of resampled values, those that are undefined left out; NaN where all are."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan, math.nan
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    return low, high
