"""Scores: a value for each measure and query, and the rows of result tables."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core import frames, results
from weir.core.hooks import Hook
from weir.core.origin import Origin
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table
from weir.errors import BadValue, UnknownName, WeirError

if TYPE_CHECKING:
    from weir.core.charts import Plot
    from weir.core.query_metadata import QueryGroups

# Notes beside results.


@dataclass(frozen=True)
class Note:
    """A sentence that qualifies a result, printed below it."""

    text: str
    """One line."""
    details: str = ""
    """Explanation that `--notes` appends."""
    decisive: bool = False
    """True if the numbers say little without it, as where nothing matched; notebooks then do not fold it."""

    def __str__(self) -> str:
        return f"note: {self.text}"

    @property
    def with_details(self) -> str:
        """The note and its details."""
        return f"{self}; {self.details}" if self.details else str(self)

    def about(self, name: str) -> Note:
        """Return the note with `name: ` before its text, once."""
        return self if self.text.startswith(f"{name}: ") else replace(self, text=f"{name}: {self.text}")


def decisive_first(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes, decisive ones first."""
    return tuple(sorted(notes, key=lambda note: not note.decisive))


# Labels by a model, and the scores by people's labels alone.


@dataclass(frozen=True, eq=False)
class LabelUse:
    """How scores used a model's labels besides people's."""

    sentence: str
    """Printed beside the table."""
    calibrated: bool
    """True if they were compared with people's labels and count."""
    share: float = math.nan
    """Share of a model's labels among the judged documents in the top 10; NaN if none counts or unknown."""
    people: Float64 | None = None
    """float64[M, Q]: values by people's labels alone; None if equal to the scores or unknown."""

    def take(self, rows: Int64) -> LabelUse:
        """Return the use for the queries at these positions; `share` becomes NaN."""
        people = None if self.people is None else self.people[:, rows]
        return replace(self, people=people, share=math.nan)


# One line of a result table.


@dataclass(frozen=True)
class Row:  # noqa: PLW1641  the dataclass makes the hash
    """A measure's mean over a dataset's judged queries with its confidence interval: a line of a result table."""

    dataset: str
    system: str
    measure: str
    mean: float
    low: float
    high: float
    queries: int
    """Judged queries."""
    answered: int
    """Queries for which the system returned anything."""
    conventions: str = "default"
    counted: int | None = None
    """Queries in the mean; None for all judged ones."""
    movable: int = 0
    """Queries whose value depends on the order of tied documents."""
    lowest: float | None = None
    """Mean under the worst order of ties (`highest` under the best); None if not known."""
    highest: float | None = None
    judged_at_10: float | None = None
    """Mean share of judged documents in the top 10, for any measure; None if not known."""
    group: str = ""
    """"" for all queries."""
    groups: int | None = None
    """Groups in a macro mean."""
    labels: str = ""
    """Sentence on a model's labels."""
    people: float | None = None
    """Mean by people's labels alone, if a model's labels count too; else None."""
    model_share: float | None = None
    """Share of a model's labels among the judged documents in the top 10."""
    title: str = ""
    """Name that readers are shown: a title instead of a settings file, a run file's own name; "" for `system`."""
    unit: str = ""
    """Collection that the dataset belongs to in means over datasets; "" for the dataset itself."""
    repeats: str = ""
    """The dataset that means over datasets count instead: a newer version, or one of the same queries and judgments; ""
    if none."""
    older: bool = False
    """True for an older version of a collection, which counts in no mean over datasets."""

    def __eq__(self, other: object) -> bool:
        # As up to Python 3.12: a NaN equals itself; else rows without an interval would equal none, not even as read.
        if not isinstance(other, Row):
            return NotImplemented
        return tuple(vars(self).values()) == tuple(vars(other).values())

    @property
    def called(self) -> str:
        """Title, or the system's name without one."""
        return self.title or self.system

    @property
    def marks(self) -> tuple[str, str]:
        """(queries and judgments, newer version) of the dataset, by names, for `counted_once`."""
        return (self.dataset, self.repeats) if self.older else (self.repeats or self.dataset, "")

    @property
    def uncounted(self) -> bool:
        """True if means over datasets omit the dataset."""
        return bool(self.repeats) or self.older

    @staticmethod
    def of(fields: dict[str, Any]) -> Row:
        """Return the row of a dict from `to_dict`. Raises KeyError or TypeError for another dict."""
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
        """Return {field: value} without fields at their defaults; NaN becomes None."""
        defaults = {name: field.default for name, field in self.__dataclass_fields__.items()}
        values = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}


# Values of measures by query.


@dataclass(frozen=True, eq=False, repr=False)
class MeasureScores(Mapping[str, float]):
    """Values of one measure by query: NaN if undefined, logarithms for geometric measures."""

    measure: str
    queries: Ids
    array: Float64
    """float64[Q]."""
    mean: float
    """Mean of the defined values, geometric for geometric measures."""

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
        """Return a copy of the values, float64[Q]."""
        return self.array.copy()

    def to_dict(self) -> dict[str, float]:
        """Return {query id: value}, NaN if undefined."""
        return dict(zip(self.queries.tolist(), self.array.tolist(), strict=True))

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        return {"query": self.queries.tolist(), self.measure: self.array}


READ_SCORES: Hook[[str | os.PathLike[str]], Scores] = Hook("reading scores")
WRITE_SCORES: Hook[[Scores, str | os.PathLike[str]], None] = Hook("writing scores")
SCORE_TABLES: Hook[[Scores], tuple[Table, ...]] = Hook("tables of scores")
SCORE_NOTES: Hook[[Scores], tuple[Note, ...]] = Hook("notes on scores")
SCORES_BY: Hook[[Scores, object], GroupedScores] = Hook("groups of queries")
GROUP_TABLES: Hook[[GroupedScores], tuple[Table, ...]] = Hook("tables of groups of queries")
GROUP_NOTES: Hook[[GroupedScores], tuple[Note, ...]] = Hook("notes on groups of queries")
PLOT_SCORES: Hook[[Scores | GroupedScores], Plot] = Hook("charts of scores")
MEASURE_NAME: Hook[[str], str] = Hook("names of measures")
GEOMETRIC: Hook[[str], bool] = Hook("measures with geometric means")


def known_mean(values: Float64) -> float:
    """Return the mean without NaN; NaN if none is left."""
    known = values[~np.isnan(values)]
    return math.fsum(known.tolist()) / len(known) if len(known) else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Unrounded values of measures for each query; prints as a table of means with intervals.

    `scores["nDCG@10"]` or `scores[nDCG @ 10]` gives a measure's values.
    """

    measures: tuple[str, ...]
    queries: Ids
    """All Q judged queries."""
    values: Float64
    """float64[M, Q], NaN if a measure is undefined."""
    answered: NDArray[np.bool_]
    """bool[Q]: True if the run returned a document."""
    tied: float = 0.0
    """Share of returned documents that are tied."""
    ignored: int = 0
    """Queries in the run without judgments."""
    geometric: tuple[str, ...] = ()
    """Measures whose values are logarithms."""
    conventions: str = "default"
    low: Float64 | None = None
    """float64[M, Q]: lowest value over all orders of ties, `high` the highest; NaN if unknown, None if not
    computed."""
    high: Float64 | None = None
    asked: tuple[tuple[str, str], ...] = ()
    """(requested name, name in `measures`) of measures requested by an alias, such as "AP(rel=1)"."""
    judged_at_10: float = math.nan
    """Mean share of judged documents in the top 10; NaN if not known."""
    judged: Float64 | None = None
    """float64[Q]: share of judged documents in the top 10, NaN for a query that does not count; None if not known."""
    labels: LabelUse | None = None
    """None if all labels are people's, or taken to be."""
    remarks: tuple[Note, ...] = ()
    """Notes from scoring, such as on grades or on scores equal as floats."""
    origin: Origin = field(default_factory=Origin)
    """Collection, judgments and system, which decide whether scores may be combined."""

    def __getitem__(self, measure: object) -> MeasureScores:
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
        """Return the names of the measures."""
        return self.measures

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        """Return a table with each measure's mean, 95% interval and number of queries."""
        return SCORE_TABLES(self)

    def notes(self) -> tuple[Note, ...]:
        return decisive_first(SCORE_NOTES(self))

    def plot(self) -> Plot:
        """Return a chart of means with intervals. Raises BadValue if no mean is known."""
        return PLOT_SCORES(self)

    @staticmethod
    @checked
    def from_dict(values: Mapping[str, Mapping[str, float]]) -> Scores:
        """Return scores from {measure: {query: value}}: NaN if undefined, logarithms for geometric measures.

        Any names of measures are taken. Raises BadValue for no values, measures of different queries, and a geometric
        measure with a value above 0 and none below.
        """
        first = next(iter(values.values()), {})
        if not first:
            raise BadValue("found no values; expected {measure: {query: value}}")
        for measure, of in values.items():
            if of.keys() != first.keys():
                raise BadValue(
                    f"{measure} has other queries than {next(iter(values))}; expected the same for each"
                )
        rows = np.array([[float(of[query]) for query in first] for of in values.values()])
        names = tuple(map(str, values))
        geometric = tuple(name for name in names if GEOMETRIC(name))
        for name, row in zip(names, rows, strict=True):
            if name in geometric and np.nanmax(row, initial=0.0) > 0 <= np.nanmin(row, initial=math.inf):
                found = np.nanmax(row)
                raise BadValue(
                    f"found {name} of {found:g}; its values are logarithms, as its mean is geometric"
                )
        return Scores(names, Ids.of(first), rows, np.ones(len(first), np.bool_), geometric=geometric)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return {measure: {query id: value}}, NaN if undefined."""
        return {measure: self[measure].to_dict() for measure in self.measures}

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Return {"query": identifiers, and each measure: its values}."""
        return {"query": self.queries.tolist(), **dict(zip(self.measures, self.values, strict=True))}

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> Scores:
        """Return the scores in a file. Raises FormatError for a missing or other file."""
        return READ_SCORES(path)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all values and metadata to a JSON file, at full precision."""
        WRITE_SCORES(self, path)

    def take(self, rows: Int64) -> Scores:
        """Return the scores of the queries at these positions, without `tied`, `ignored` and `remarks`."""
        ends = [None if end is None else end[:, rows] for end in (self.low, self.high)]
        judged = None if self.judged is None else self.judged[rows]
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
            judged_at_10=math.nan if judged is None else known_mean(judged),
            judged=judged,
            labels=None if self.labels is None else self.labels.take(rows),
            origin=self.origin,
        )

    def by(self, groups: object) -> GroupedScores:
        """Return the scores of each group of queries, with macro and micro means.

        groups: "prefix:_" or "stem:-" for parts of identifiers, {query: label}, QueryGroups, or a file of queries and
            labels.

        Raises BadValue if no query has a group, FormatError for an invalid file.
        """
        return SCORES_BY(self, groups)

    def of(self, measure: object) -> Float64:
        """Return a measure's values, float64[Q]. Raises UnknownName if absent."""
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
        """Return the positions of queries by descending identifier, int64[Q]."""
        return np.argsort(self.queries.tie_ranks)

    def in_id_order(self, measure: str) -> Float64:
        """Return a measure's values in `id_order`, float64[Q]. Raises UnknownName if absent."""
        return self.of(measure)[self.id_order()]

    def mean(self, measure: object) -> float:
        """Return a measure's mean over queries where it is defined, NaN if nowhere; geometric for geometric measures.

        Raises UnknownName if absent.
        """
        return float(self.mean_values()[self._number(str(measure))])

    def means(self) -> dict[str, float]:
        """Return {measure: mean}, as from `mean`."""
        return dict(zip(self.measures, self.mean_values().tolist(), strict=True))

    def mean_values(self) -> Float64:
        """Return each measure's `mean`, float64[M]."""
        return self._means(self.values)

    def people_means(self) -> Float64:
        """Return each measure's mean by people's labels alone, float64[M]; NaN if unknown."""
        if self.labels is None or self.labels.people is None:
            return np.full(len(self.measures), np.nan)
        return self._means(self.labels.people)

    def remarked(self, notes: Iterable[Note]) -> Scores:
        """Return the scores with more `remarks`."""
        more = tuple(notes)
        return replace(self, remarks=(*self.remarks, *more)) if more else self

    def counted(self) -> Int64:
        """Return each measure's number of queries with a value, int64[M]."""
        counts: Int64 = np.sum(~np.isnan(self.values), axis=1, dtype=np.int64)
        return counts

    def movable(self) -> Int64:
        """Return each measure's number of queries whose value depends on the order of ties, int64[M]; 0 if not
        computed.
        """
        if self.low is None or self.high is None:
            return np.zeros(len(self.measures), np.int64)
        changes = (self.low != self.high) & ~np.isnan(self.values)  # NaN differs from itself: it is not known
        counts: Int64 = np.sum(changes, axis=1, dtype=np.int64)
        return counts

    def tie_bounds(self) -> Float64:
        """Return each measure's (lowest, highest) mean over orders of ties, float64[M, 2]; NaN if unknown."""
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
    """Scores of groups of queries, by label; prints as a table with the groups' mean and the queries' mean."""

    name: str
    whole: Scores
    """Scores of all queries."""
    parts: Mapping[str, Scores]
    ungrouped: int
    """Queries without a group; they count only in `whole`."""
    lacking: tuple[str, ...] = ()
    """`QueryGroups.lacking` of all queries."""

    @staticmethod
    def of(scores: Scores, groups: QueryGroups) -> GroupedScores:
        """Return the scores of each nonempty group. Raises BadValue if no query has a group."""
        rows = groups.rows(scores.queries)
        if not rows:
            raise BadValue(f"`by={groups.name!r}`: none of the {len(scores.queries)} queries has a group")
        parts = {group: scores.take(at) for group, at in rows.items()}
        ungrouped = len(scores.queries) - sum(map(len, rows.values()))
        return GroupedScores(groups.name, scores, parts, ungrouped, tuple(groups.lacking(scores.queries)))

    def __getitem__(self, label: str) -> Scores:
        return self.parts[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        return GROUP_TABLES(self)

    def notes(self) -> tuple[Note, ...]:
        return decisive_first(GROUP_NOTES(self))

    def plot(self) -> Plot:
        """Return a chart for each measure, a row for each group."""
        return PLOT_SCORES(self)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """Return {"group", "query", each measure: a value for each query of each group}."""
        lines = [
            {"group": group, "query": query} | dict(zip(one.measures, values, strict=True))
            for group, one in self.items()
            for query, values in zip(one.queries.tolist(), one.values.T.tolist(), strict=True)
        ]
        return frames.columns_of(lines)

    def micro(self) -> dict[str, float]:
        """Return {measure: mean over all queries}, including those without a group."""
        return self.whole.means()

    def macro(self) -> dict[str, float]:
        """Return {measure: mean of the groups' defined means}; NaN if none is."""
        means = np.array([part.mean_values() for part in self.parts.values()])
        defined = [column[~np.isnan(column)] for column in means.T]
        return {
            m: float(np.mean(k)) if len(k) else float("nan")
            for m, k in zip(self.whole.measures, defined, strict=True)
        }


def averaged(mean: float, geometric: bool) -> float:
    """Return a mean as reported: exponentiated if `geometric`."""
    return math.exp(mean) if geometric else mean


# Scores of one system on several collections, with hashes of their judgments.


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """A system's scores on one collection, with hashes of the judgments."""

    scores: Scores
    marks: Mapping[str, str] = field(default_factory=dict)
    """Hash of the judgments of each query, from `judgment_marks`; empty if not known."""
    judgments: str = ""
    """Hash of all judgments, as stored with results; "" if not known."""

    @property
    def fingerprint(self) -> str:
        """Hash of `marks` in any order, 16 hexadecimal digits."""
        text = json.dumps(sorted(self.marks.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores:
    """A system's scores on each of its collections."""

    system: str
    datasets: Mapping[str, JudgedScores]
    version: str = ""
    """The version of Weir that saved them; "" if just made."""
    remarks: tuple[str, ...] = ()
    """Notes on how the rankings were made."""

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        return tuple(
            replace(table, title=name) for name, one in self.datasets.items() for table in one.scores.tables()
        )

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """Return {"dataset", "query", each measure: a value for each query of each collection}; None for a measure
        that a collection lacks.
        """
        lines = [
            {"dataset": name, "query": query} | dict(zip(one.scores.measures, values, strict=True))
            for name, one in self.datasets.items()
            for query, values in zip(one.scores.queries.tolist(), one.scores.values.T.tolist(), strict=True)
        ]
        return frames.columns_of(lines)

    def notes(self) -> tuple[Note, ...]:
        several = len(self.datasets) > 1
        notes = [
            note.about(name) if several else note
            for name, one in self.datasets.items()
            for note in one.scores.notes()
        ]
        return decisive_first(dict.fromkeys([*map(Note, self.remarks), *notes]))
