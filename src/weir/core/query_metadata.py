"""Metadata of queries: groups, weights, candidates, exclusions, filters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.filters import DocumentLists, DocumentMasks, parse_filter
from weir.core.rounding import counted, one_or_more
from weir.core.strings import Float64, Ids, Int32, Int64, Strings
from weir.errors import BadValue

# Weights of queries: one over the probability with which each was drawn to be judged.


@dataclass(frozen=True, eq=False)
class QueryWeights:
    """A weight for each query, such as 1 / its sampling probability; only ratios matter."""

    queries: Ids
    weight: Float64
    """float64[Q], finite and above 0."""

    @staticmethod
    def of(weights: Mapping[str, object]) -> QueryWeights:
        """Return weights from {query: weight}. Raises BadValue unless each is finite and above 0."""
        numbers = []
        for query, weight in weights.items():
            number = float(weight) if isinstance(weight, (int, float, np.number)) else math.nan
            if not (math.isfinite(number) and number > 0):
                raise BadValue(
                    f"query '{query}': the weight is {weight!r}; expected a number above 0, one over the probability "
                    "with which the query was drawn"
                )
            numbers.append(number)
        return QueryWeights(Ids.of(str(query) for query in weights), np.array(numbers, np.float64))

    def of_queries(self, queries: Ids) -> Float64:
        """Return each query's weight, float64[n]. Raises BadValue if one has none."""
        codes = self.queries.codes(queries.strings)
        if (codes < 0).any():
            missing = queries[int(np.flatnonzero(codes < 0)[0])]
            raise BadValue(f"query '{missing}' is judged by people and has no weight; give each of them one")
        return self.weight[codes]


# Queries in groups: slices of a collection, paraphrases of one question, one query under several instructions.

RULES = ("prefix:", "stem:")


@dataclass(frozen=True, eq=False, repr=False)
class QueryGroups:
    """The group of each query, if it has any."""

    name: str
    """Name of the grouping, such as "topic" or "prefix:_"."""
    queries: Ids
    labels: tuple[str, ...]
    """Names of the groups, sorted."""
    group: Int32
    """int32[Q]: positions in `labels`, -1 for no group."""

    @staticmethod
    @named_arguments
    def of(groups: Mapping[str, object], name: str = "group") -> QueryGroups:
        """Return groups from {query: label}; None and "" are no group. Raises BadValue for an invalid identifier."""
        texts = ["" if label is None else str(label) for label in groups.values()]
        labels = tuple(sorted(set(texts) - {""}))
        number = {label: n for n, label in enumerate(labels)} | {"": -1}
        return QueryGroups(name, Ids.of(groups), labels, np.array([number[t] for t in texts], np.int32))

    @staticmethod
    def by_identifier(queries: Ids, rule: str) -> QueryGroups:
        """Return groups of queries by the part of their identifier before a separator; no group without it.

        rule: "prefix:_" for the part before the first "_", "stem:_" before the last.

        Raises BadValue for another rule, and if no query has a group.
        """
        kind, _, sign = rule.partition(":")
        if not (sign and rule.startswith(RULES)):
            raise BadValue(f"`by={rule!r}`: expected a sign after it, such as prefix:_ or stem:-")
        names = queries.tolist()
        found = {q: (q.partition(sign) if kind == "prefix" else q.rpartition(sign))[0] for q in names}
        groups = QueryGroups.of({q: label if sign in q else "" for q, label in found.items()}, rule)
        if not groups.labels:
            example = f"; one is '{names[0]}'" if names else ""
            raise BadValue(f"`by={rule!r}`: no query identifier has '{sign}' in it{example}")
        return groups

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<QueryGroups by {self.name}: {len(self.queries):,} queries in {len(self.labels):,} groups>"

    def rows(self, queries: Ids) -> dict[str, Int64]:
        """Return {label: positions of the group's queries in `queries`, int64}, without empty groups."""
        codes = self.queries.codes(queries.strings)
        at = np.where(codes >= 0, self.group[codes], -1) if len(self.queries) else codes
        found = {label: np.flatnonzero(at == number) for number, label in enumerate(self.labels)}
        return {label: rows for label, rows in found.items() if len(rows)}

    def lacking(self, queries: Ids) -> list[str]:
        """Return sentences on `queries` without a group, and on grouped queries not in `queries`; [] if each has a
        group.
        """
        count = len(queries) - sum(map(len, self.rows(queries).values()))
        if not count:
            return []
        grouped = self.queries.take(np.flatnonzero(self.group >= 0))
        strange = int((queries.codes(grouped.strings) < 0).sum())
        have, counts = counted(count, "query has", "queries have"), one_or_more(count, "counts", "count")
        others = counted(strange, "query with a group is", "queries with a group are")
        told = [f"{have} no group and {counts} among all queries alone"]
        return told + [f"{others} not among them"] * (strange > 0)


# Metadata that a collection has of its queries besides their texts.

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class QueryMetadata:
    """Metadata of queries, one column for each kind; None for an empty column."""

    instruction: Strings | None = None
    """Definition of relevance for systems that follow instructions; "" for none."""
    candidates: DocumentLists | None = None
    """The only documents that may be ranked; an empty list allows all."""
    excluded: DocumentLists | None = None
    """Documents that may not be ranked."""
    unanswerable: NDArray[np.bool_] | None = None
    """bool[Q]: nothing in the collection answers the query."""
    groups: Mapping[str, Strings] = field(default_factory=dict)
    """Labels of each query by column, "" for none."""
    filter: Strings | None = None
    """Condition on the fields of rankable documents (core/filters.py); "" for none."""
    permitted: DocumentMasks | None = None
    """Documents that fit `filter`; None before it is evaluated."""

    @staticmethod
    def of(rows: Sequence[object]) -> QueryMetadata | None:
        """Return metadata from a dict for each query; None if all are empty.

        `instruction` and `filter` are texts, `candidates` and `excluded` lists of identifiers, `unanswerable` a bool;
        raises MetadataError for another type. Other single values are group labels.
        """
        records = [row if isinstance(row, Mapping) else {} for row in rows]
        candidates: list[list[str]] | None = _column(records, "candidates", _identifiers, [])
        excluded: list[list[str]] | None = _column(records, "excluded", _identifiers, [])
        instruction = _column(records, "instruction", _text, "")
        unanswerable = _column(records, "unanswerable", _flag, False)
        filters = _column(records, "filter", _filter, "")
        own = {"instruction", "candidates", "excluded", "unanswerable", "filter"}
        # One pass over what is there: SciFact's queries have hundreds of names, each in a query or two.
        labels: dict[str, list[str]] = {}
        for number, row in enumerate(records):
            for name, value in row.items():
                if name not in own and (label := _label(value)):
                    labels.setdefault(str(name), [""] * len(records))[number] = label
        groups = {name: Strings.of(column) for name, column in labels.items()}
        metadata = QueryMetadata(
            None if instruction is None else Strings.of(instruction),
            None if candidates is None else DocumentLists.of(candidates),
            None if excluded is None else DocumentLists.of(excluded),
            None if unanswerable is None else np.array(unanswerable, np.bool_),
            groups,
            None if filters is None else Strings.of(filters),
        )
        return metadata if groups or metadata._columns() else None

    def __repr__(self) -> str:
        return f"<QueryMetadata: {', '.join([*self._columns(), *self.groups]) or 'nothing'}>"

    def _columns(self) -> dict[str, Strings | DocumentLists | NDArray[np.bool_]]:
        columns = {
            "instruction": self.instruction,
            "candidates": self.candidates,
            "excluded": self.excluded,
            "filter": self.filter,
            "unanswerable": self.unanswerable,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def lists(self) -> list[tuple[str, DocumentLists]]:
        """Return the nonempty of ("candidates", lists) and ("excluded", lists)."""
        both = (("candidates", self.candidates), ("excluded", self.excluded))
        return [(name, lists) for name, lists in both if lists is not None and lists.listed()]

    def fitting(self) -> DocumentMasks | None:
        """Return the documents that pass each query's filter; None without filters. Raises BadValue before filters
        are evaluated.
        """
        if self.filter is not None and self.permitted is None:
            raise BadValue(
                "queries have filters, which are read with the documents: take them from a Dataset, dataset.queries"
            )
        return self.permitted

    def rows(self) -> list[dict[str, object]]:
        """Return {column: value} of each query, without empty values; inverts `QueryMetadata.of`."""
        columns = {name: column.tolist() for name, column in {**self.groups, **self._columns()}.items()}
        return [
            {name: value for name, value in zip(columns, row, strict=True) if value}
            for row in zip(*columns.values(), strict=True)
        ]

    def take(self, codes: NDArray[np.integer]) -> QueryMetadata:
        """Return the metadata of the queries at these positions."""
        instruction = None if self.instruction is None else self.instruction.take(codes)
        flags = None if self.unanswerable is None else self.unanswerable[codes]
        groups = {name: labels.take(codes) for name, labels in self.groups.items()}
        return QueryMetadata(
            None if instruction is None or not instruction.lengths().any() else instruction,
            None if self.candidates is None else self.candidates.take(codes),
            None if self.excluded is None else self.excluded.take(codes),
            None if flags is None or not flags.any() else flags,
            {name: labels for name, labels in groups.items() if labels.lengths().any()},
            None if self.filter is None else self.filter.take(codes),
            None if self.permitted is None else self.permitted.take(codes),
        )


class MetadataError(ValueError):
    """Raised for a metadata value of the wrong type; `row` is the query's position."""

    def __init__(self, row: int, found: str, expected: str) -> None:
        super().__init__(f"{found}; expected {expected}")
        self.row, self.found, self.expected = row, found, expected


def _column(
    rows: Sequence[Mapping[str, Any]], name: str, read: Callable[[object], T], absent: T
) -> list[T] | None:
    if not any(name in row for row in rows):
        return None
    column = []
    for number, row in enumerate(rows):
        value = row.get(name)
        try:
            column.append(absent if value is None else read(value))
        except ValueError as error:
            text = json.dumps(value, ensure_ascii=False, default=repr)[:60]
            raise MetadataError(number, f"the {name} {text} of a query", str(error)) from None
    return column if any(column) else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _filter(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text such as 'lang == \"en\"'")
    try:
        return str(parse_filter(value)) if value.strip() else ""
    except BadValue as error:
        raise ValueError(f"one that can be read: {error}") from None


def _identifiers(value: object) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(_is_identifier(one) for one in value):
        raise ValueError("a list of identifiers of documents")
    return [str(one) for one in value]


def _is_identifier(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or (
        isinstance(value, int) and not isinstance(value, bool)
    )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _label(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, (str, int)) else ""
