"""Relevance judgments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.doors import opened
from weir.core.frame import FrameLibrary, frame_of
from weir.core.given import grades_of
from weir.core.ids import Ids
from weir.core.strings import Int16, Int32, Int64
from weir.errors import BadValue

__all__ = ["LARGEST", "Qrels"]

LARGEST = 2**14  # of a grade's absolute value


@dataclass(frozen=True, eq=False, repr=False)
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
    def of(judgments: Mapping[Any, Any]) -> Qrels:
        """Judgments from {query: {document: grade}}, as pytrec_eval, ranx and BEIR hold them.

        The relevant documents of a query may be a list or a set, too: {"q1": {"d1", "d2"}}; they have grade 1. So may
        a list of (document, grade) pairs or a pandas Series of grades by document. A query without any judgment is not
        a judged query, as in trec_eval and pytrec_eval: it is left out. Raises BadValue for a grade that is not a
        whole number, naming query and document.
        """
        judgments = {
            name: found for name, given in judgments.items() if (found := grades_of(f"query '{name}'", given))
        }
        names = list(judgments)
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

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Qrels:
        """The judgments in a file of any format (docs/formats.md); raises as `weir.io.runs.read.read_qrels`."""
        qrels: Qrels = opened("qrels of")(path)
        return qrels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the judgments in the format that the file's name says; raises as `write_qrels`."""
        opened("qrels save")(self, path)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        relevant = int(np.count_nonzero(self.grade > 0))
        return f"<Qrels: {len(self):,} queries, {len(self.doc):,} judgments, {relevant:,} of them relevant>"

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them."""
        part = self.only(np.arange(min(3, len(self))))
        columns = part.columns()
        rows = [
            list(map(str, row)) for row in zip(*(column[:10] for column in columns.values()), strict=True)
        ]
        html: str = opened("cells html")(repr(self)[1:-1], [list(columns), *rows], 2)
        return html

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:  # noqa: ANN401  any library's
        """A frame with the columns query, doc and grade.

        library: "pandas", "polars" or "arrow". Raises UnknownName for another, MissingExtra where it is not installed.
        """
        return frame_of(self.columns(), library)

    def columns(self) -> dict[str, Any]:
        """Aligned columns by name, as `to_frame` has them."""
        names = self.queries.tolist()
        return {
            "query": [names[code] for code in self.query_of_row().tolist()],
            "doc": self.docs.take(self.doc).tolist(),
            "grade": self.grade,
        }

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
