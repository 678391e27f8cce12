"""Agreement of the labels of two or more raters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np

from weir.core.dangling import dangling
from weir.core.frames import json_value
from weir.core.judged import Judged
from weir.core.pairs import pair_rows
from weir.core.qrels import Qrels
from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import change, count, percent, score
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, Int64, Strings
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, UnknownName
from weir.files.parsers import distinct_strings
from weir.measures.measure import Measure
from weir.stats.resampling import SEED, fewest, or_nan, percentiles, share_bounds


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """The (query, document) pairs in a ranking's top k that a model labelled, with people's grades if known."""

    query: Int32
    """int32[pairs]: numbers in the model's queries."""
    rank: Int64
    model: Float64
    """float64[pairs]: the model's grades."""
    human: Float64
    """float64[pairs]: people's grades; NaN if unjudged."""
    drawn: Float64
    """float64[pairs]: 1 / the share of the query's labelled pairs that people judged; infinite for none."""

    @property
    def judged(self) -> Int64:
        """Row numbers of the pairs that people judged, int64."""
        return np.flatnonzero(~np.isnan(self.human))

    def worth(self, measure: Measure, grades: Float64, queries: Ids) -> Float64:
        """Return the value that each pair alone adds to a measure that sums over documents, float64[pairs].

        grades: of each pair.
        queries: the model's queries.
        """
        count = len(grades)
        rank, zeros = self.rank.astype(np.int32), np.zeros(count, np.int32)
        each, ptr = np.arange(count, dtype=np.int32), np.arange(count + 1, dtype=np.int64)
        names = queries.take(self.query)
        return measure.per_query(Judged(names, rank, zeros, each, rank, grades, rank, rank, ptr, grades))


def label_pairs(runs: Sequence[Run], human: Qrels, model: Qrels, k: int) -> list[LabelPairs]:
    """Return, for each ranking, the pairs in its top k that the model labelled, with people's grades (NaN if
    unjudged).
    """
    both = pair_rows(model, human.queries, human.docs, human.query_of_row(), human.doc)
    grade = np.full(len(model.doc), np.nan)
    grade[both[both >= 0]] = human.grade[both >= 0]
    query_of_row = model.query_of_row()
    returned, pooled = [], np.zeros(len(model.doc), np.bool_)
    for run in runs:
        top = run.top(k)
        row = pair_rows(model, top.queries, top.docs, top.query_of_row(), top.doc)
        returned.append((row[row >= 0], top.ranks()[row >= 0]))
        pooled[row[row >= 0]] = True
    labelled, judged = (
        np.bincount(query_of_row[rows], minlength=len(model)) for rows in (pooled, pooled & ~np.isnan(grade))
    )
    drawn = np.divide(labelled, judged, out=np.full(len(model), np.inf), where=judged > 0)
    pairs = []
    for row, rank in returned:
        query = query_of_row[row]
        by_model = model.grade[row].astype(np.float64)
        pairs.append(LabelPairs(query, rank, by_model, grade[row], drawn[query]))
    return pairs


# Agreement of two raters.

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = get_args(Level)
Summed = TypeVar("Summed", Int64, Float64)
MOST_LABELS = 100
"""Largest number of distinct grades; with more, a confusion table says nothing."""
_RATERS_SHOWN = 4  # with the most grades
GRADES_SHOWN = 10
"""Most distinct grades whose every pair is shown in a table; of more, such as means of several raters, whole ones."""
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class LabelTables:
    """A confusion table of two raters' labels for each query."""

    queries: Ids
    labels: Float64
    """float64[labels]: the grades that occur, ascending."""
    table: Int64
    """int64[queries, labels, labels]: number of pairs by the first and the second rater's grade."""
    only_first: int
    """Number of pairs that only the first rater labelled; `only_second` that only the second labelled."""
    only_second: int


@dataclass(frozen=True)
class QueryAgreement:
    """The agreement of two raters on a query; kappa is NaN if both give the same grade throughout."""

    query: str
    pairs: int
    accuracy: float
    kappa: float
    bias: float
    """The second rater's mean grade minus the first's."""


@dataclass(frozen=True, repr=False)
class Agreement:
    """The agreement of two raters on the pairs that both labelled; 95% intervals resample queries."""

    first: str
    second: str
    pairs: int
    queries: int
    only_first: int
    only_second: int
    labels: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Number of pairs by the first rater's grade (row) and the second's."""
    values: tuple[tuple[str, float, float, float], ...]
    """(statistic of STATISTICS, value, low, high)."""
    binary: tuple[tuple[float, float, float, float, float, float], ...]
    """(lowest relevant grade, Cohen's kappa, low, high, share relevant by the first, by the second)."""
    by_query: tuple[QueryAgreement, ...] = ()
    """Worst kappa first, undefined kappas last."""

    __repr__ = member_text
    _repr_html_ = member_html

    def value(self, statistic: str) -> float:
        """Return the value of a statistic; raises UnknownName for another name."""
        values = {name: value for name, value, *_ in self.values}
        if statistic not in values:
            raise UnknownName("statistic", statistic, values)
        return values[statistic]


def label_tables(first: Qrels, second: Qrels, names: tuple[str, str] = ("first", "second")) -> LabelTables:
    """Return a confusion table for each query, of the pairs that both raters labelled.

    names: of the raters, for messages.

    Raises BadValue if there are none, or for more than MOST_LABELS grades.
    """
    both, at = shared_pairs(first, second)
    if not len(both):
        strange = dangling(second, first.docs)
        cause = (
            f" (documents of the second: {strange.cause})" if strange is not None and strange.cause else ""
        )
        raise BadValue(f"no pair of query and document is judged by both{cause}")
    pair = (first.grade[both].astype(np.float64), second.grade[at].astype(np.float64))
    labels = np.unique(np.concatenate(pair))
    _check_number(labels, dict(zip(names, (first, second), strict=True)))
    row, column = (np.searchsorted(labels, grades) for grades in pair)
    shared, query = np.unique(first.query_of_row()[both], return_inverse=True)
    order = np.argsort(
        first.queries.take(shared).tie_ranks
    )  # so that draws do not depend on the file's order
    place = np.empty(len(shared), np.int64)
    place[order] = np.arange(len(shared))
    table = np.zeros((len(shared), len(labels), len(labels)), np.int64)
    np.add.at(table, (place[query], row, column), 1)
    queries = first.queries.take(shared[order].astype(np.int64))
    return LabelTables(queries, labels, table, len(first.doc) - len(both), len(second.doc) - len(both))


def _check_number(grades: Float64, raters: Mapping[str, Qrels]) -> None:
    if len(grades) > MOST_LABELS:
        numbers = Counter({name: len(np.unique(labels.grade)) for name, labels in raters.items()})
        most = ", ".join(f"{name} has {number:,}" for name, number in numbers.most_common(_RATERS_SHOWN))
        raise BadValue(
            f"{len(grades):,} different grades ({most}); agreement is of at most {MOST_LABELS}: round them first, or "
            "name other labels (FILE#COLUMN is one of several columns)"
        )


def shared_pairs(first: Qrels, second: Qrels) -> tuple[Int64, Int64]:
    """Return the rows in `first` and in `second` of the pairs judged in both, int64[pairs] each, ascending in
    `first`.
    """
    row = pair_rows(second, first.queries, first.docs, first.query_of_row(), first.doc)
    both = np.flatnonzero(row >= 0)
    return both, row[both]


def cohen_kappa(
    table: Int64, weights: Literal["", "linear", "quadratic"] = "", labels: Float64 | None = None
) -> float:
    """Return Cohen's kappa of a confusion table that is not all 0; NaN if both raters give one grade
    throughout.

    weights: "" counts all differences alike, "linear" or "quadratic" by the distance of grades.
    labels: the grades, by default 0, 1, 2 and so on.
    """
    # Cohen 1960, 1968.
    places = np.arange(len(table), dtype=np.float64) if labels is None else labels
    apart = np.abs(places[:, None] - places)
    cost = (apart > 0).astype(np.float64) if not weights else apart if weights == "linear" else apart**2
    total = float(table.sum())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chance = float((cost * expected).sum())
    return 1 - float((cost * table).sum()) / chance if chance else math.nan


def ac1(table: Int64) -> float:
    """Return Gwet's AC1 of a confusion table that is not all 0; 1 for a single grade."""
    # Gwet 2008.
    total = float(table.sum())
    share = (table.sum(axis=0) + table.sum(axis=1)) / (2 * total)
    if len(table) < 2:
        return 1.0
    chance = float((share * (1 - share)).sum()) / (len(table) - 1)
    return (float(np.trace(table)) / total - chance) / (1 - chance)


def coincidences(ratings: Float64, labels: Float64) -> Float64:
    """Return Krippendorff's coincidence matrix, float64[labels, labels]; items with fewer than two ratings
    are ignored.

    ratings: float64[raters, items]; NaN for a missing rating.
    labels: grades that may occur.
    """
    # Each item weighs as many as rated it; items with fewer than two ratings count for nothing.
    counts = (
        np.array([(ratings == label).sum(axis=0) for label in labels], np.int64).reshape(len(labels), -1).T
    )
    each = counts.sum(axis=1)
    counts, each = counts[each > 1], each[each > 1]
    weighted = counts / (each - 1)[:, None]
    return np.asarray(counts.T @ weighted - np.diag(weighted.sum(axis=0)), np.float64)


def alpha_of(coincidence: Int64 | Float64, labels: Float64, level: Level) -> float:
    """Return Krippendorff's alpha of a coincidence matrix; NaN if all ratings are equal.

    level: "nominal", "ordinal" or "interval"; raises UnknownName for another.
    """
    if level not in LEVELS:
        raise UnknownName("level", level, LEVELS)
    # Krippendorff 2011.
    number = coincidence.sum(axis=0)
    if level == "nominal":
        apart = np.asarray(labels[:, None] != labels, np.float64)
    else:
        at = labels if level == "interval" else np.cumsum(number) - number / 2
        apart = (at[:, None] - at) ** 2
    expected = float((apart * np.outer(number, number)).sum()) / (float(number.sum()) - 1)
    return 1 - float((apart * coincidence).sum()) / expected if expected else math.nan


def _mean_over_pairs(table: Int64, of_grades: Float64) -> float:
    return float((of_grades * table).sum()) / float(table.sum())


Statistic: TypeAlias = Callable[[Int64, Float64], float]
STATISTICS: dict[str, Statistic] = {
    "accuracy": lambda table, labels: float(np.trace(table)) / float(table.sum()),
    "kappa": lambda table, labels: cohen_kappa(table),
    "linear kappa": lambda table, labels: cohen_kappa(table, "linear", labels),
    "quadratic kappa": lambda table, labels: cohen_kappa(table, "quadratic", labels),
    "nominal alpha": lambda table, labels: alpha_of(table + table.T, labels, "nominal"),
    "ordinal alpha": lambda table, labels: alpha_of(table + table.T, labels, "ordinal"),
    "interval alpha": lambda table, labels: alpha_of(table + table.T, labels, "interval"),
    "AC1": lambda table, labels: ac1(table),
    "mean absolute error": lambda table, labels: _mean_over_pairs(table, np.abs(labels - labels[:, None])),
    "bias": lambda table, labels: _mean_over_pairs(table, labels - labels[:, None]),
}
"""Functions of a confusion table and its grades; bias is the second rater's mean grade minus the first's."""


def agreement(first: Qrels, second: Qrels, names: tuple[str, str] = ("first", "second")) -> Agreement:
    """Return the agreement of two raters on the pairs that both labelled; intervals NaN for fewer queries
    than `fewest`.

    Raises BadValue for no shared pair, or more than MOST_LABELS grades.
    """
    tables = label_tables(first, second, names)
    whole, count = tables.table.sum(axis=0), len(tables.table)
    drawn = list(drawn_tables(tables.table))
    values = []
    for name, statistic in STATISTICS.items():
        low, high = bounds([statistic(table, tables.labels) for table in drawn])
        if name == "accuracy":
            low, high = accuracy_bounds(whole, drawn)
        values.append((name, statistic(whole, tables.labels), low, high))
    binary: list[tuple[float, float, float, float, float, float]] = []
    for cut in range(1, len(tables.labels)):
        low, high = bounds([cohen_kappa(binary_table(table, cut)) for table in drawn])
        halves = binary_table(whole, cut)
        one, other = float(halves[1].sum() / halves.sum()), float(halves[:, 1].sum() / halves.sum())
        binary.append((float(tables.labels[cut]), cohen_kappa(halves), low, high, one, other))
    by_query = []
    for query, table in zip(tables.queries.tolist(), tables.table, strict=True):
        accuracy, bias = (STATISTICS[name](table, tables.labels) for name in ("accuracy", "bias"))
        by_query.append(QueryAgreement(query, int(table.sum()), accuracy, cohen_kappa(table), bias))
    return Agreement(
        *names,
        *(int(whole.sum()), count, tables.only_first, tables.only_second),
        tuple(tables.labels.tolist()),
        tuple(map(tuple, whole.tolist())),
        tuple(values),
        tuple(binary),
        tuple(sorted(by_query, key=lambda q: (math.isnan(q.kappa), q.kappa, q.accuracy, q.query))),
    )


def drawn_tables(by_query: Summed, least: int | None = None) -> Iterator[Summed]:
    """Yield sums of the queries' tables over RESAMPLES bootstrap samples of the queries.

    least: queries below which nothing is yielded, by default `fewest`.
    """
    rng, count = np.random.default_rng(SEED), len(by_query)
    for _ in range(RESAMPLES if count >= (least or fewest()) else 0):
        yield np.tensordot(np.bincount(rng.integers(0, count, count), minlength=count), by_query, 1)


def binary_table(table: Int64, cut: int) -> Int64:
    """Return the confusion table, int64[2, 2], of labels below and from position `cut`."""
    return np.array([[part[:, :cut].sum(), part[:, cut:].sum()] for part in (table[:cut], table[cut:])])


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of resampled values, ignoring NaN; (NaN, NaN) if all are NaN or equal."""
    defined = [value for value in values if not math.isnan(value)]
    return or_nan(percentiles(np.array(defined)).tolist()) if defined else (math.nan, math.nan)


def accuracy_bounds(whole: Int64, drawn: Sequence[Int64]) -> tuple[float, float]:
    """Return the 95% interval of a confusion table's share of equal labels, by Wilson where all or none are;
    (NaN, NaN) without resampled tables.
    """
    equal, total = int(np.trace(whole)), int(whole.sum())
    if len(drawn) and equal in (0, total):
        return share_bounds(equal, total)
    return bounds([float(np.trace(table)) / float(table.sum()) for table in drawn])


# Agreement of several raters.


@dataclass(frozen=True)
class RaterBase:
    """A rater's numbers of labels and queries, mean grade, and share of grades of 1 or more."""

    name: str
    labels: int
    queries: int
    mean: float
    """NaN, like `relevant`, without labels."""
    relevant: float


@dataclass(frozen=True)
class ManyRaters:
    """Krippendorff's alpha of all raters together, with 95% intervals from resampled queries."""

    raters: tuple[RaterBase, ...]
    pairs: int
    """Pairs with two or more labels, to which `queries` and `missing` refer."""
    queries: int
    missing: float
    """Share of these pairs' labels that are missing."""
    alone: int
    """Pairs with a single label, which say nothing about agreement."""
    values: tuple[tuple[str, float, float, float], ...]
    """(level, alpha, low, high)."""


def many_raters(labels: Mapping[str, Qrels]) -> ManyRaters:
    """Return Krippendorff's alpha of several raters, {rater: judgments}; intervals are NaN for fewer queries
    than `fewest`.

    Raises BadValue for fewer than two raters, no pair with two labels, or more than MOST_LABELS grades.
    """
    if len(labels) < 2:
        raise BadValue(f"{len(labels)} rater has nobody to agree with; name two or more")
    raters = list(labels.values())
    of_query, names = distinct_strings(Strings.concatenated([one.queries.strings for one in raters]))
    place = Ids(names).tie_ranks  # by identifier: draws do not depend on the files' order
    of_doc, docs = distinct_strings(Strings.concatenated([one.docs.strings for one in raters]))
    pairs, queries_before, docs_before = [], 0, 0
    for one in raters:
        query = place[of_query[queries_before + one.query_of_row().astype(np.int64)]].astype(np.int64)
        pairs.append(query * len(docs) + of_doc[docs_before + one.doc.astype(np.int64)])
        queries_before, docs_before = queries_before + len(one.queries), docs_before + len(one.docs)
    pair, column = np.unique(np.concatenate(pairs), return_inverse=True)
    ratings = np.full((len(raters), len(pair)), np.nan)  # NaN where a rater left a pair out
    ends = np.cumsum([len(one) for one in pairs])[:-1]
    for number, (one, columns) in enumerate(zip(raters, np.split(column, ends), strict=True)):
        ratings[number, columns] = one.grade
    query = pair // max(1, len(docs))
    several = np.count_nonzero(~np.isnan(ratings), axis=0) > 1
    if not several.any():
        raise BadValue("no pair of query and document has two labels")
    query, shared = query[several], ratings[:, several]
    grades = np.unique(shared[~np.isnan(shared)])
    _check_number(grades, labels)
    judged, at = np.unique(query, return_inverse=True)
    order = np.argsort(at, kind="stable")
    cuts = np.searchsorted(at[order], np.arange(1, len(judged)))
    by_query: Float64 = np.array(
        [coincidences(part, grades) for part in np.split(shared[:, order], cuts, axis=1)]
    )
    drawn = list(drawn_tables(by_query))
    whole = by_query.sum(axis=0)
    bases = []
    for name, one in labels.items():
        grade = one.grade.astype(np.float64)
        mean, relevant = (float(v.mean()) if len(v) else math.nan for v in (grade, grade >= 1))
        bases.append(RaterBase(name, len(grade), len(one), mean, relevant))
    return ManyRaters(
        tuple(bases),
        int(several.sum()),
        len(judged),
        float(np.isnan(shared).mean()),
        int((~several).sum()),
        tuple(
            (level, alpha_of(whole, grades, level), *bounds([alpha_of(one, grades, level) for one in drawn]))
            for level in LEVELS
        ),
    )


# Tables.


def _without_queries(one: Agreement) -> list[dict[str, object]]:
    return [json_value(one) | {"by_query": []}]


def _agreement_tables(pairs: Sequence[Agreement]) -> tuple[Table, ...]:
    tables = []
    for one in pairs:
        values = [["statistic", "value", "95% interval"]]
        values += [[name, score(value), bounds_shown(low, high)] for name, value, low, high in one.values]
        binary = [["relevant from", "kappa", "95% interval", one.first, one.second]]
        binary += [
            [f"{cut:g}", score(kappa), bounds_shown(low, high), percent(first), percent(second)]
            for cut, kappa, low, high, first, second in one.binary
            if len(one.labels) <= GRADES_SHOWN or (cut.is_integer() and cut < GRADES_SHOWN)
        ]
        single = ", ".join(f"{count(n)} only by {name}" for n, name in
                           ((one.only_first, one.first), (one.only_second, one.second)) if n)  # fmt: skip
        head = (
            f"{count(one.pairs)} pairs of {count(one.queries)} queries are labelled by both{few(one.queries)}"
        )
        tables.append(sentences(f"{head}; {single}" if single else head))
        tables.append(_confusion_table(one))
        tables += [table_of(part, notes=without_interval(part, one.queries)) for part in (values, binary)]
    return tuple(tables)


def _confusion_table(one: Agreement) -> Table:
    labels, pairs, notes = np.array(one.labels), np.array(one.confusion), list[str]()
    if len(labels) > GRADES_SHOWN:
        whole, at = np.unique(np.floor(labels + 0.5), return_inverse=True)
        of = f"{len(labels):,} distinct grades"
        if len(whole) > GRADES_SHOWN:
            return sentences(f"{of}: every pair of grades stands in the JSON alone")
        membership = np.equal.outer(np.arange(len(whole)), at).astype(np.int64)
        labels, pairs = whole, membership @ pairs @ membership.T
        notes = [f"{of}, rounded to whole ones in this table alone; the JSON has each"]
    grades = [f"{label:g}" for label in labels.tolist()]
    lines = [[f"{one.first} \\ {one.second}", *grades]]
    lines += [[grade, *map(count, row)] for grade, row in zip(grades, pairs.tolist(), strict=True)]
    return table_of(lines, notes=notes)


AGREEMENTS = ResultKind("agree", Agreement, _agreement_tables, records=_without_queries)


def _with_queries(pairs: Sequence[Agreement]) -> tuple[Table, ...]:
    tables = list(_agreement_tables(pairs))
    for one in pairs:
        lines = [[f"{one.first} and {one.second}", "pairs", "accuracy", "kappa", "bias"]]
        lines += [
            [q.query, count(q.pairs), percent(q.accuracy), score(q.kappa), change(q.bias)]
            for q in one.by_query
        ]
        tables.append(table_of(lines, right=4))
    return tuple(tables)


AGREEMENTS_BY_QUERY = ResultKind("agree", Agreement, _with_queries)


def rater_tables(results: Sequence[ManyRaters]) -> tuple[Table, ...]:
    """Return, for each result, a sentence of counts and tables of the raters' base rates and of
    Krippendorff's alpha.
    """
    tables = []
    for one in results:
        rates = [["rater", "labels", "queries", "mean grade", "1 or more"]]
        rates += [
            [r.name, count(r.labels), count(r.queries), score(r.mean), percent(r.relevant)]
            for r in one.raters
        ]
        values = [["alpha of all raters", "value", "95% interval"]]
        values += [[level, score(value), bounds_shown(low, high)] for level, value, low, high in one.values]
        head = (
            f"{count(len(one.raters))} raters: {count(one.pairs)} pairs of {count(one.queries)} queries have two "
            f"labels or more, {percent(one.missing)} of theirs are missing; {count(one.alone)} pairs have one alone"
            f"{few(one.queries)}"
        )
        tables += [
            sentences(head),
            table_of(rates),
            table_of(values, notes=without_interval(values, one.queries)),
        ]
    return tuple(tables)


RATERS = ResultKind("raters", ManyRaters, rater_tables)


def few(queries: int) -> str:
    """Return a clause, "; no interval: ...", for too few queries; else ""."""
    return "" if queries >= fewest() else f"; no interval: fewer than {fewest()} queries"


def without_interval(lines: Sequence[Sequence[str]], queries: int | None = None) -> list[str]:
    """Return a note on values without an interval in a table's lines, header first; [] if none, or for too
    few queries.

    queries: None if they differ.
    """
    places = [place for place, name in enumerate(lines[0]) if name == "95% interval"]
    why = "no resample of the queries changes the value"
    if queries is None:
        why = f"fewer than {fewest()} queries, or {why}"
    lacking = any(line[place] == "-" != line[place - 1] for line in lines[1:] for place in places)
    return [f"-: no interval: {why}"] * (lacking and (queries is None or queries >= fewest()))


def bounds_shown(low: float, high: float) -> str:
    """Return an interval as text; "-" if it is NaN."""
    return "-" if math.isnan(low) else f"[{score(low)}, {score(high)}]"
