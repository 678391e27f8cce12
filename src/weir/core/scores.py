"""Scores: one value for each measure and query, and the rows of a result table."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core import frames, results
from weir.core.hooks import Hook
from weir.core.origin import Origin
from weir.core.query_metadata import QueryGroups
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table
from weir.errors import BadValue, UnknownName, WeirError

# What has to be said beside a result.


@dataclass(frozen=True)
class Note:
    """A sentence beside a result, and what explains it.

    text: the sentence, on one line; details: what `--notes` adds behind it, "" for nothing.
    """

    text: str
    details: str = ""

    def __str__(self) -> str:
        return f"note: {self.text}"

    @property
    def whole(self) -> str:
        """The sentence with its details."""
        return f"{self}; {self.details}" if self.details else str(self)

    def about(self, name: str) -> Note:
        """The same, said of a system or a collection by its name."""
        return replace(self, text=f"{name}: {self.text}")


# What a model's labels have to do with scores: whether they count, why, and what people's labels alone would say.


@dataclass(frozen=True, eq=False)
class LabelUse:
    """How scores stand to the labels of a model.

    sentence: what stands beside the table; calibrated: whether they count and were held against people's; share: of the
    judged places among the first 10 returned, those that a model judged, NaN where none counts or it is not known;
    people: float64[M, Q], the values by people's labels alone, None where they are the scores themselves or not known.
    """

    sentence: str
    calibrated: bool
    share: float = math.nan
    people: Float64 | None = None

    def take(self, rows: Int64) -> LabelUse:
        """The same of some queries, whose share is not known."""
        people = None if self.people is None else self.people[:, rows]
        return replace(self, people=people, share=math.nan)


# One line of a result table.


@dataclass(frozen=True)
class Row:
    """The mean of a measure over the judged queries of a dataset, with its interval.

    queries: judged queries; answered: those for which the system returned anything. Where it is not the plain case:
    conventions: those in force, as they print; counted: how many queries the mean is over, None: all judged ones;
    movable: how many could have another value by the order of tied documents, and lowest, highest: the means that
    worst and best orders give, None where they are not known. judged_at_10: the mean share of the first 10 documents
    returned that were judged, whatever the measure; None where it is not known. group: the group of queries that it is
    about, "" for all; groups: of a macro mean, over how many means of groups it is. labels: a sentence on a model's
    labels, "" where there are none; people: the mean by people's labels alone, where a model's count too; model_share:
    of the judged places among the first 10, those that a model judged. title: the system's name with what files of
    systems call them in the place of the files, "" where they say nothing; unit: what the dataset counts as in a mean
    over datasets, the collection whose split it is, "" for itself.
    """

    dataset: str
    system: str
    measure: str
    mean: float
    low: float
    high: float
    queries: int
    answered: int
    conventions: str = "default"
    counted: int | None = None
    movable: int = 0
    lowest: float | None = None
    highest: float | None = None
    judged_at_10: float | None = None
    group: str = ""
    groups: int | None = None
    labels: str = ""
    people: float | None = None
    model_share: float | None = None
    title: str = ""
    unit: str = ""

    @staticmethod
    def of(fields: dict[str, Any]) -> Row:
        """The row that `to_dict` wrote; raises KeyError or TypeError for another dict."""
        values: dict[str, Any] = {}
        for name, column in Row.__dataclass_fields__.items():
            if name in fields or column.default is MISSING:
                values[name] = math.nan if fields[name] is None else fields[name]
                if isinstance(values[name], str) != (column.type == "str") or isinstance(
                    values[name], (dict, list)
                ):
                    raise TypeError(f"{name} of a row is {str(values[name])[:40]!r}")
        return Row(**values)

    def to_dict(self) -> dict[str, object]:
        """The row as a dict, without what is as always; an undefined number is None, as JSON has no NaN."""
        defaults = {name: field.default for name, field in self.__dataclass_fields__.items()}
        values = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}


# What the measures say: one value for each measure and query.


@dataclass(frozen=True, eq=False, repr=False)
class MeasureScores(Mapping[str, float]):
    """The values of one measure by query: a mapping, NaN where the measure is undefined.

    measure: its name; queries: Ids[Q]; array: float64[Q]; mean: over the queries where it is defined.
    """

    measure: str
    queries: Ids
    array: Float64
    mean: float

    def __getitem__(self, query: str) -> float:
        code = int(self.queries.codes([str(query)])[0])
        if code < 0:
            raise KeyError(query)
        return float(self.array[code])

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<{self.measure}: mean {self.mean:.4f} over {int(np.sum(~np.isnan(self.array))):,} queries>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401  numpy's protocol
        return np.array(self.array, dtype)

    def to_numpy(self) -> Float64:
        """The values in the order of the queries, float64[Q]."""
        return self.array.copy()

    def to_dict(self) -> dict[str, float]:
        """{query: value}."""
        return dict(zip(self.queries.tolist(), self.array.tolist(), strict=True))

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """The column query, and one of the measure's name."""
        return {"query": self.queries.tolist(), self.measure: self.array}


READ_SCORES: Hook[[str | os.PathLike[str]], Scores] = Hook("reading scores")
WRITE_SCORES: Hook[[Scores, str | os.PathLike[str]], None] = Hook("writing scores")
SCORE_TABLES: Hook[[Scores], tuple[Table, ...]] = Hook("tables of scores")
SCORE_NOTES: Hook[[Scores], tuple[Note, ...]] = Hook("notes on scores")
SCORES_BY: Hook[[Scores, object], GroupedScores] = Hook("groups of queries")
GROUP_TABLES: Hook[[GroupedScores], tuple[Table, ...]] = Hook("tables of groups of queries")
GROUP_NOTES: Hook[[GroupedScores], tuple[Note, ...]] = Hook("notes on groups of queries")
MEASURE_NAME: Hook[[str], str] = Hook("names of measures")


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Values of measures on queries; nothing is rounded. It prints as a table of means with their intervals.

    `scores["nDCG@10"]` (or `scores[nDCG @ 10]`) are the values of a measure by query, `scores.means()` the means by
    measure, and iterating goes over the names. measures: their names; queries: Ids[Q], all judged queries; values:
    float64[M, Q], NaN where a measure is undefined; answered: bool[Q], whether the run returned anything; tied: share
    of returned documents whose score is another's too; ignored: queries of the run that nobody judged; geometric:
    measures whose values are logarithms; conventions: those in force, as they print; low, high: float64[M, Q] the
    least and the greatest value that another order of tied documents gives, NaN where it is not known; None: not
    looked at (no intervals, which `Row.low` and `Row.high` are); asked: other names by which measures were asked for,
    such as "AP(rel=1)", with those in `measures`;
    judged_at_10: the mean share of the first 10 documents returned that were judged, NaN where it is not known;
    labels: what a model's labels have to do with them, None where all are people's as far as is known; remarks: notes
    of what was seen while scoring alone, of grades and of scores that are equal as floats; origin: of which collection,
    judgments and system they are, which every statement over several scores looks at.
    """

    measures: tuple[str, ...]
    queries: Ids
    values: Float64
    answered: NDArray[np.bool_]
    tied: float = 0.0
    ignored: int = 0
    geometric: tuple[str, ...] = ()
    conventions: str = "default"
    low: Float64 | None = None
    high: Float64 | None = None
    asked: tuple[tuple[str, str], ...] = ()
    judged_at_10: float = math.nan
    labels: LabelUse | None = None
    remarks: tuple[Note, ...] = ()
    origin: Origin = field(default_factory=Origin)

    def __getitem__(self, measure: object) -> MeasureScores:
        """The values of a measure by query, by any name of it; raises UnknownName where it is not among these."""
        number = self._number(str(measure))
        return MeasureScores(
            self.measures[number], self.queries, self.values[number], float(self.mean_values()[number])
        )

    def __contains__(self, measure: object) -> bool:
        return str(measure) in self.measures or str(measure) in dict(self.asked)

    def __iter__(self) -> Iterator[str]:
        return iter(self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def keys(self) -> tuple[str, ...]:
        """The names of the measures, so that `dict(scores)` is the values of each by query."""
        return self.measures

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        """A line for each measure: its mean, a 95% bootstrap interval over queries, and over how many."""
        return SCORE_TABLES(self)

    def notes(self) -> tuple[Note, ...]:
        """What has to be said beside the scores, as `weir eval` says it: unanswered and unjudged, ties, conventions."""
        return SCORE_NOTES(self)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{measure: {query: value}}."""
        return {measure: self[measure].to_dict() for measure in self.measures}

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """The column query, and one for each measure."""
        return {"query": self.queries.tolist(), **dict(zip(self.measures, self.values, strict=True))}

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> Scores:
        """The scores that `save` wrote; raises FormatError for another file."""
        return READ_SCORES(path)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all values and what is known of them as JSON, at full precision; raises StoreError."""
        WRITE_SCORES(self, path)

    def take(self, rows: Int64) -> Scores:
        """The scores of these queries alone, by number; what is known of all queries together is not of these."""
        ends = [None if end is None else end[:, rows] for end in (self.low, self.high)]
        return Scores(
            self.measures,
            self.queries.take(rows),
            self.values[:, rows],
            self.answered[rows],
            geometric=self.geometric,
            conventions=self.conventions,
            low=ends[0],
            high=ends[1],
            asked=self.asked,
            labels=None if self.labels is None else self.labels.take(rows),
            origin=self.origin,
        )

    def by(self, groups: object) -> GroupedScores:
        """The scores of each group of queries, with macro and micro means; it prints as a table.

        groups: a rule on identifiers such as "prefix:_" or "stem:-", {query: label}, weir.stats.QueryGroups, or the
        path of a file of queries and labels. Raises BadValue for a rule that finds no group, FormatError for another
        file.
        """
        return SCORES_BY(self, groups)

    def of(self, measure: object) -> Float64:
        """The values of one measure, by any name of it, float64[Q]; raises UnknownName where it is not among these."""
        values: Float64 = self.values[self._number(str(measure))]
        return values

    def _number(self, name: str) -> int:
        measure = dict(self.asked).get(name, name)
        if measure not in self.measures:
            try:
                measure = MEASURE_NAME(name)
            except WeirError:
                measure = name
        if measure not in self.measures:
            raise UnknownName("measure among these scores", name, self.measures)
        return self.measures.index(measure)

    def id_order(self) -> Int64:
        """The queries by identifier: the order in which they are resampled, whatever order a file lists them in."""
        return np.argsort(self.queries.tie_ranks)

    def in_id_order(self, measure: str) -> Float64:
        """The values of one measure by query identifier, float64[Q]; raises UnknownName."""
        return self.of(measure)[self.id_order()]

    def mean(self, measure: object) -> float:
        """The mean of one measure, by any name of it; raises UnknownName where it is not among these."""
        return float(self.mean_values()[self._number(str(measure))])

    def means(self) -> dict[str, float]:
        """The mean of each measure by its name, as `mean_values`."""
        return dict(zip(self.measures, self.mean_values().tolist(), strict=True))

    def mean_values(self) -> Float64:
        """The mean of each measure over the queries where it is defined, float64[M]; NaN where there is none.

        Where the values are logarithms it is the geometric mean of what they are logarithms of.
        """
        return self._means(self.values)

    def people_means(self) -> Float64:
        """The mean of each measure by people's labels alone, float64[M]; NaN where that is not known."""
        if self.labels is None or self.labels.people is None:
            return np.full(len(self.measures), np.nan)
        return self._means(self.labels.people)

    def remarked(self, notes: Iterable[Note]) -> Scores:
        """The same with further remarks."""
        more = tuple(notes)
        return replace(self, remarks=(*self.remarks, *more)) if more else self

    def counted(self) -> Int64:
        """How many queries the mean of each measure is over, int64[M]."""
        counts: Int64 = np.sum(~np.isnan(self.values), axis=1, dtype=np.int64)
        return counts

    def movable(self) -> Int64:
        """How many queries could have another value by the order of their tied documents, int64[M]."""
        if self.low is None or self.high is None:
            return np.zeros(len(self.measures), np.int64)
        changes = (self.low != self.high) & ~np.isnan(self.values)  # NaN differs from itself: it is not known
        counts: Int64 = np.sum(changes, axis=1, dtype=np.int64)
        return counts

    def tie_bounds(self) -> Float64:
        """The least and the greatest mean that orders of ties give each measure, float64[M, 2]; NaN: not known."""
        if self.low is None or self.high is None:
            return np.full((len(self.measures), 2), np.nan)
        ends = np.stack(
            [self._means(np.where(np.isnan(self.values), np.nan, v)) for v in (self.low, self.high)]
        )
        unknown = np.sum(np.isnan(self.low) & ~np.isnan(self.values), axis=1, keepdims=True)
        return np.where(unknown > 0, np.nan, ends.T)

    def _means(self, values: Float64) -> Float64:
        means = np.full(len(values), np.nan)
        for number, (measure, row) in enumerate(zip(self.measures, values, strict=True)):
            defined = row[~np.isnan(row)]
            if len(
                defined
            ):  # fsum is exact, so the order of the queries in a file cannot move the last digit
                mean = math.fsum(defined.tolist()) / len(defined)
                means[number] = averaged(mean, measure in self.geometric)
        return means


@dataclass(frozen=True, eq=False, repr=False)
class GroupedScores(Mapping[str, Scores]):
    """Scores by group: a mapping from the label of a group to the scores of its queries.

    It prints as a table: each group, their macro mean (every group weighs the same) and the mean over all queries.
    name: what the groups are; whole: the scores of all queries; parts: those of each group; ungrouped: queries
    without a group, which count in the mean over all queries alone.
    """

    name: str
    whole: Scores
    parts: Mapping[str, Scores]
    ungrouped: int

    @staticmethod
    def of(scores: Scores, groups: QueryGroups) -> GroupedScores:
        """The scores of each group; raises BadValue where no query of the scores has a group."""
        rows = groups.rows(scores.queries)
        if not rows:
            raise BadValue(f"--by {groups.name}: none of the {len(scores.queries)} queries has a group")
        ungrouped = len(scores.queries) - sum(map(len, rows.values()))
        return GroupedScores(groups.name, scores, {g: scores.take(at) for g, at in rows.items()}, ungrouped)

    def __getitem__(self, label: str) -> Scores:
        return self.parts[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        """A line for each group, the macro mean and all queries, a column for each measure."""
        return GROUP_TABLES(self)

    def notes(self) -> tuple[Note, ...]:
        """What has to be said of groups that are too small, and of queries without a group."""
        return GROUP_NOTES(self)

    def micro(self) -> dict[str, float]:
        """The mean of each measure over all queries, those without a group too."""
        return self.whole.means()

    def macro(self) -> dict[str, float]:
        """The mean of each measure over the means of the groups; groups where it is undefined are left out."""
        means = np.array([part.mean_values() for part in self.parts.values()])
        defined = [column[~np.isnan(column)] for column in means.T]
        return {
            m: float(np.mean(k)) if len(k) else float("nan")
            for m, k in zip(self.whole.measures, defined, strict=True)
        }


def averaged(mean: float, geometric: bool) -> float:
    """What a mean of values is reported as, and a bound of it: the exponential where values are logarithms."""
    return math.exp(mean) if geometric else mean


# The scores of one system on several collections, with what identifies the judgments they were made by.


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores on a collection and what tells its judgments apart.

    marks: for each query a hash of its judgments, as `judgment_marks`, empty where they are not known; judgments: a
    hash of all of them as records of stages have it, "" where that is not known.
    """

    scores: Scores
    marks: Mapping[str, str] = field(default_factory=dict)
    judgments: str = ""

    @property
    def fingerprint(self) -> str:
        """A hash of the marks of all queries, whatever their order."""
        text = json.dumps(sorted(self.marks.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores:
    """The scores of a system by the name of the collection.

    version: of the Weir that saved them, "" if just made; remarks: what has to be said of how its rankings were made.
    """

    system: str
    datasets: Mapping[str, JudgedScores]
    version: str = ""
    remarks: tuple[str, ...] = ()

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        """The tables of the scores on each collection, under its name."""
        return tuple(
            replace(table, title=name) for name, one in self.datasets.items() for table in one.scores.tables()
        )

    def notes(self) -> tuple[Note, ...]:
        """What has to be said of the rankings, and of the scores on each collection."""
        several = len(self.datasets) > 1
        notes = [
            note.about(name) if several else note
            for name, one in self.datasets.items()
            for note in one.scores.notes()
        ]
        return tuple(dict.fromkeys([*map(Note, self.remarks), *notes]))
