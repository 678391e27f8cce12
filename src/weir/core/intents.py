"""Judgments for each intent (subtopic) of a query."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked, named_arguments
from weir.core import frames
from weir.core.hooks import Hook
from weir.core.input_shapes import grades_of
from weir.core.qrels import Qrels, grade_column, grade_of, plain_grades
from weir.core.strings import Float64, Grades, Ids, Int32
from weir.core.tables import first_rows
from weir.errors import BadValue

_MOST_JUDGED = 2**15 - 1  # judged documents of a query: they are numbered by 16-bit grades


READ_INTENTS: Hook[[str | os.PathLike[str]], IntentQrels] = Hook("reading judgments for each intent")
WRITE_INTENTS: Hook[[IntentQrels, str | os.PathLike[str]], None] = Hook("writing judgments for each intent")


@dataclass(frozen=True, eq=False, repr=False)
class IntentQrels:
    """Judgments by intent: a grade for each judged (query, intent, document)."""

    numbered: Qrels
    """The judged documents of each query; the "grade" is a document's position among them, from 0."""
    query: Int32
    """int32[P]: query number of each intent, ascending; intents are numbered over all queries."""
    intent: Int32
    """int32[n]: intent number of each judgment; sorted by intent, then row."""
    row: Int32
    """int32[n]: the row of `numbered` of each judgment."""
    grade: Grades
    """[n]: the grade of each judgment, as in Qrels."""
    names: tuple[str, ...]
    """Name of each intent within its query."""
    weight: Float64 | None = None
    """float64[P]: weight of each intent (1 for a vital nugget, 0.5 for an okay nugget); None if all are equal."""

    @staticmethod
    @named_arguments
    def of(judgments: Mapping[Any, Any]) -> IntentQrels:
        """Return judgments from {query: {intent: {document: grade}}}, or with relevant documents as lists or sets.

        Queries without judgments are left out. Raises BadValue for a grade that is not a finite number and a document
        graded twice for an intent.
        """
        judged = [
            (str(q), str(i), str(d), grade_of(grade, f"query '{q}', intent '{i}', document '{d}'"))
            for q, intents in judgments.items()
            for i, grades in _mapping(intents, f"query '{q}'").items()
            for d, grade in grades_of(f"query '{q}', intent '{i}'", grades).items()
        ]
        queries, intents, docs, grades = map(list, zip(*judged, strict=True)) if judged else ([], [], [], [])
        return IntentQrels.from_rows(queries, intents, docs, grades)

    @staticmethod
    def from_rows(
        queries: list[str],
        intents: list[str],
        docs: list[str],
        grades: Sequence[float],
        bank: Mapping[tuple[str, str], float] | None = None,
    ) -> IntentQrels:
        """Return judgments from aligned lists with an entry for each judgment.

        bank: {(query, intent): weight}, default 1; its intents of judged queries count even without judged documents.

        Raises BadValue for a document judged twice for an intent, a grade beyond ±16384, and a query with over 32,767
        documents.
        """
        query_ids, query = _numbers(queries)
        doc_ids, doc = _numbers(docs)
        here = set(queries)
        alone = [key for key in bank or () if key[0] in here]
        every = [*queries, *(q for q, _ in alone)], [*intents, *(i for _, i in alone)]
        _, name = _numbers(every[1])
        pair = query.astype(np.int64) * len(doc_ids) + doc
        rows, row = np.unique(pair, return_inverse=True)
        of_row, doc_of_row = np.divmod(rows, max(len(doc_ids), 1))
        ptr = np.searchsorted(of_row, np.arange(len(query_ids) + 1)).astype(np.int64)
        if len(rows) and int(np.diff(ptr).max()) > _MOST_JUDGED:
            most = int(np.argmax(np.diff(ptr)))
            raise BadValue(f"query '{query_ids[most]}' has more than {_MOST_JUDGED:,} judged documents")
        place = (np.arange(len(rows)) - ptr[of_row]).astype(np.int16)
        numbered = Qrels(query_ids, doc_ids, ptr, doc_of_row.astype(np.int32), place)
        query_of_pair = query_ids.codes(every[0]) if alone else query
        _, first, intent = np.unique(
            query_of_pair.astype(np.int64) * (int(name.max(initial=0)) + 1) + name,
            return_index=True,
            return_inverse=True,
        )
        intent = intent[: len(row)]
        order = np.lexsort((row, intent))
        intent, row = intent[order].astype(np.int32), row[order].astype(np.int32)
        twice = np.flatnonzero((intent[1:] == intent[:-1]) & (row[1:] == row[:-1]))
        if len(twice):
            at = int(order[twice[0]])
            raise BadValue(
                f"query '{queries[at]}', intent '{intents[at]}' judges document '{docs[at]}' twice"
            )
        return IntentQrels(
            numbered,
            query_of_pair[first].astype(np.int32),
            intent,
            row,
            grade_column(np.array(grades))[order],
            tuple(every[1][at] for at in first.tolist()),
            None
            if bank is None
            else np.array([bank.get((every[0][at], every[1][at]), 1.0) for at in first.tolist()]),
        )

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> IntentQrels:
        """Return the judgments in a nugget bank (.jsonl), or in TREC's four columns with the intent in the second.

        Raises FormatError for a missing file and invalid content.
        """
        return READ_INTENTS(path)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a nugget bank if `path` ends in .jsonl, else TREC's four columns with the intent in the second.

        Raises BadValue if four columns cannot hold an identifier or weights.
        """
        WRITE_INTENTS(self, path)

    def __repr__(self) -> str:
        return f"<IntentQrels: {len(self):,} queries, {len(self.query):,} intents, {len(self.grade):,} judgments>"

    def _repr_html_(self) -> str:
        columns = self.columns()
        return first_rows(columns, repr(self)[1:-1], len(self.grade)).html()

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return {query: {intent: {document: grade}}}, without weights and intents without judged documents; whole
        grades are int.
        """
        by_query: dict[str, dict[str, dict[str, float]]] = {}
        columns = self.columns() | {"grade": plain_grades(self.grade)}
        for query, intent, document, grade in zip(*columns.values(), strict=True):
            by_query.setdefault(query, {}).setdefault(intent, {})[document] = grade
        return by_query

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Return {"query", "intent", "doc", "grade": a value for each judgment}."""
        queries = self.numbered.queries.tolist()
        return {
            "query": [queries[code] for code in self.query[self.intent].tolist()],
            "intent": [self.names[number] for number in self.intent.tolist()],
            "doc": self.numbered.docs.take(self.numbered.doc[self.row]).tolist(),
            "grade": self.grade,
        }

    def __len__(self) -> int:
        return len(self.numbered)

    def best(self) -> Grades:
        """Return each judged (query, document) pair's best grade over intents, aligned with the rows of `numbered`."""
        best: Grades = np.full(len(self.numbered.doc), np.iinfo(np.int16).min, self.grade.dtype)
        np.maximum.at(best, self.row, self.grade)
        return best

    def only(self, queries: NDArray[np.integer]) -> IntentQrels:
        """Return the judgments of the queries with these ascending numbers, renumbered from 0."""
        before, numbered = self.numbered.ptr, self.numbered.only(queries)
        number = np.full(len(self.numbered), -1, np.int32)
        number[queries] = np.arange(len(queries), dtype=np.int32)
        intents = np.flatnonzero(number[self.query] >= 0)
        place = np.full(len(self.query), -1, np.int32)
        place[intents] = np.arange(len(intents), dtype=np.int32)
        judged = np.flatnonzero(place[self.intent] >= 0)
        old = self.query[self.intent[judged]]
        row = self.row[judged] - before[old] + numbered.ptr[number[old]]
        return IntentQrels(
            numbered,
            number[self.query[intents]],
            place[self.intent[judged]],
            row.astype(np.int32),
            self.grade[judged],
            tuple(self.names[at] for at in intents.tolist()),
            None if self.weight is None else self.weight[intents],
        )

    def several(self) -> bool:
        """Return True if a query has several intents."""
        return len(self.query) > len(self)


def _numbers(names: list[str]) -> tuple[Ids, Int32]:
    number_of: dict[str, int] = {}
    numbers = np.array([number_of.setdefault(name, len(number_of)) for name in names], np.int32)
    return Ids.of(number_of), numbers


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadValue(f"{where}: found {type(value).__name__}; expected {{intent: {{document: grade}}}}")
    return value
