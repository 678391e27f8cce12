"""Relevance judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.strings import Int16, Int32, Int64
from weir.errors import BadValue

__all__ = ["LARGEST", "Qrels"]

LARGEST = 2**14  # of a grade's absolute value


@dataclass(frozen=True, eq=False)
class Qrels:
    """Who judged what: one grade for each judged (query, document) pair.

    queries: the judged queries; docs: the judged documents; ptr: int64[Q + 1]; doc: int32[n] numbers
    in `docs`, ascending within a query; grade: int16[n]. An absent pair is unjudged; grade 0 (or less)
    is judged and not relevant: the two are never conflated.
    """

    queries: Ids
    docs: Ids
    ptr: Int64
    doc: Int32
    grade: Int16

    @staticmethod
    def of(judgments: Mapping[str, Mapping[str, object]]) -> Qrels:
        """Judgments from {query: {document: grade}}, as pytrec_eval, ranx and BEIR hold them.

        A query without any judgment is not a judged query, as in trec_eval and pytrec_eval: it is left out.
        Raises BadValue for a grade that is not a whole number, naming query and document.
        """
        names = [name for name, grades in judgments.items() if _checked(name, grades)]
        documents: dict[str, int] = {}
        query, doc, grade = [], [], []
        for q, name in enumerate(names):
            for document, value in judgments[name].items():
                query.append(q)
                doc.append(documents.setdefault(str(document), len(documents)))
                grade.append(whole_grade(value, f"query '{name}', document '{document}'"))
        return Qrels.from_columns(
            Ids.of(names),
            Ids.of(documents),
            np.array(query, np.int32),
            np.array(doc, np.int32),
            np.array(grade, np.int64),
        )

    @staticmethod
    def from_columns(
        queries: Ids,
        docs: Ids,
        query: NDArray[np.integer],
        doc: NDArray[np.integer],
        grade: NDArray[np.integer],
    ) -> Qrels:
        """Judgments from aligned columns of query numbers, document numbers and grades.

        Raises BadValue for a pair judged twice or a grade beyond 16 bits.
        """
        order = np.lexsort((doc, query))
        query, doc, grade = query.astype(np.int32)[order], doc[order], grade[order]
        twice = np.flatnonzero((query[1:] == query[:-1]) & (doc[1:] == doc[:-1]))
        if len(twice):
            at = int(twice[0])
            raise BadValue(f"query '{queries[int(query[at])]}' judges document '{docs[int(doc[at])]}' twice")
        if len(grade) and (grade.min() < -LARGEST or grade.max() > LARGEST):
            raise BadValue(f"grades run from {grade.min()} to {grade.max()}; expected within ±{LARGEST}")
        ptr = np.searchsorted(query, np.arange(len(queries) + 1, dtype=query.dtype)).astype(np.int64)
        return Qrels(queries, docs, ptr, doc.astype(np.int32), grade.astype(np.int16))

    def __len__(self) -> int:
        return len(self.queries)

    def query_of_row(self) -> Int32:
        """The query number of each row."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.ptr))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """{query: {document: grade}}."""
        docs, grades, cuts = self.docs.take(self.doc).tolist(), self.grade.tolist(), self.ptr.tolist()
        return {
            name: dict(zip(docs[a:b], grades[a:b], strict=True))
            for name, a, b in zip(self.queries.tolist(), cuts[:-1], cuts[1:], strict=True)
        }

    def only(self, queries: NDArray[np.integer]) -> Qrels:
        """The judgments of these queries, renumbered from 0 in the given order."""
        lengths = np.diff(self.ptr)[queries]
        ptr = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(lengths, out=ptr[1:])
        rows = np.repeat(self.ptr[:-1][queries] - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Qrels(self.queries.take(queries), self.docs, ptr, self.doc[rows], self.grade[rows])


def whole_grade(value: object, where: str) -> int:
    """A relevance grade as a whole number; raises BadValue for text, NaN, a fraction or more than 16 bits."""
    if isinstance(value, (bool, np.bool_, int, np.integer)) or (
        isinstance(value, (float, np.floating)) and float(value).is_integer()
    ):
        grade = int(value)
    else:
        raise BadValue(
            f"{where}: grade {shown_number(value)} is not a whole number; scale or round the grades first"
        )
    if abs(grade) > LARGEST:
        raise BadValue(f"{where}: the grade is beyond ±{LARGEST}; scale the grades first")
    return grade


def shown_number(value: object) -> str:
    """A number in a message: the shortest decimals that read back as it, 0.141 and not 0.14099999999999999."""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else repr(value)


def _checked(name: object, grades: object) -> bool:
    if not isinstance(grades, Mapping):
        raise BadValue(f"query '{name}': found {type(grades).__name__}; expected {{document: grade}}")
    return len(grades) > 0
