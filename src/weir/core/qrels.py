"""Relevance judgments, where they come from, and layers of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core import frames
from weir.core.hooks import Hook
from weir.core.input_shapes import grades_of
from weir.core.strings import Grades, Ids, Int32, Int64, Strings
from weir.core.tables import first_rows
from weir.errors import BadValue

# Where judgments come from: "human", "duplicate", "llm:...", whatever their file says; and layers of judgments.

MODEL = "llm:"
"""How the origin of a model's judgments begins; its name follows."""


@dataclass(frozen=True, eq=False)
class Origins:
    """The origin of each judgment.

    names: the different origins, "" for judgments that name none; code: int32[n] the number in `names` of each
    judgment.
    """

    names: tuple[str, ...]
    code: Int32

    @staticmethod
    def of(texts: Iterable[str]) -> Origins:
        """The origins of judgments, one text for each."""
        numbers: dict[str, int] = {}
        code = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int32)
        return Origins(tuple(numbers), code)

    @staticmethod
    def alike(name: str, count: int) -> Origins:
        """One origin for so many judgments."""
        return Origins((name,), np.zeros(count, np.int32))

    def take(self, rows: NDArray[np.integer]) -> Origins:
        """The origins of these judgments."""
        return Origins(self.names, self.code[rows])

    def then(self, other: Origins) -> Origins:
        """The origins of these judgments and then of others."""
        names = tuple(dict.fromkeys([*self.names, *other.names]))
        number = np.array([names.index(name) for name in other.names], np.int32)
        return Origins(names, np.concatenate([self.code, number[other.code]]))

    def tolist(self) -> list[str]:
        """The origin of each judgment."""
        return [self.names[code] for code in self.code.tolist()]

    def of_models(self) -> NDArray[np.bool_]:
        """Which judgments are a model's: those whose origin begins with "llm:", bool[n]."""
        models = np.array([name.startswith(MODEL) for name in self.names], np.bool_)
        return np.asarray(models[self.code], np.bool_)

    def counts(self, rows: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """How many judgments, or of these, come from where, the most first."""
        code = self.code if rows is None else self.code[rows]
        number = np.bincount(code, minlength=len(self.names)).tolist()
        counts = {name: n for name, n in zip(self.names, number, strict=True) if n}
        return dict(sorted(counts.items(), key=lambda one: -one[1]))

    def summary(self, rows: NDArray[np.bool_] | None = None) -> str:
        """The counts in words: "9 human, 2 llm:judge"."""
        return ", ".join(f"{n:,} {name or 'of no named origin'}" for name, n in self.counts(rows).items())


# Relevance judgments.

LARGEST = 2**14  # of a grade's absolute value


READ_QRELS: Hook[[str | os.PathLike[str]], Qrels] = Hook("reading judgments")
WRITE_QRELS: Hook[[Qrels, str | os.PathLike[str]], None] = Hook("writing judgments")


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Who judged what: one grade for each judged (query, document) pair.

    queries: the judged queries; docs: the judged documents; ptr: int64[Q + 1]; doc: int32[n] numbers
    in `docs`, ascending within a query; grade: int16[n] where all grades are whole, else float64[n]; origin: where
    each judgment comes from, where that is known. An absent pair is unjudged; grade 0 (or less)
    is judged and not relevant: the two are never conflated.
    """

    queries: Ids
    docs: Ids
    ptr: Int64
    doc: Int32
    grade: Grades
    origin: Origins | None = None

    @staticmethod
    def of(judgments: Mapping[Any, Any]) -> Qrels:
        """Judgments from {query: {document: grade}}, as pytrec_eval, ranx and BEIR hold them.

        The relevant documents of a query may be a list or a set, too: {"q1": {"d1", "d2"}}; they have grade 1. So may
        a list of (document, grade) pairs or a pandas Series of grades by document. A query without any judgment is not
        a judged query, as in trec_eval and pytrec_eval: it is left out. Raises BadValue for a grade that is no finite
        number, naming query and document.
        """
        if not isinstance(judgments, Mapping):
            raise BadValue(
                f"found {type(judgments).__name__} as the judgments; expected {{query: {{document: grade}}}}; a frame "
                "goes into weir.evaluate and weir.compare as it is"
            )
        judgments = {
            name: grades
            for name, of_query in judgments.items()
            if (grades := grades_of(f"query '{name}'", of_query))
        }
        names = list(judgments)
        documents: dict[str, int] = {}
        query, doc, grade = [], [], []
        for q, name in enumerate(names):
            for document, value in judgments[name].items():
                query.append(q)
                doc.append(documents.setdefault(str(document), len(documents)))
                grade.append(grade_of(value, f"query '{name}', document '{document}'"))
        return Qrels.from_columns(
            Ids.of(names),
            Ids.of(documents),
            np.array(query, np.int32),
            np.array(doc, np.int32),
            np.array(grade),
        )

    @staticmethod
    def from_columns(
        queries: Ids,
        docs: Ids,
        query: NDArray[np.integer],
        doc: NDArray[np.integer],
        grade: NDArray[np.integer | np.floating],
        origin: Origins | None = None,
    ) -> Qrels:
        """Judgments from aligned columns of query numbers, document numbers, grades and, where known, origins.

        Raises BadValue for a pair judged twice and for a grade that is not finite or beyond ±16384.
        """
        order = np.lexsort((doc, query))
        query, doc, grade = query.astype(np.int32)[order], doc[order], grade_column(grade[order])
        twice = np.flatnonzero((query[1:] == query[:-1]) & (doc[1:] == doc[:-1]))
        if len(twice):
            at = int(twice[0])
            raise BadValue(f"query '{queries[int(query[at])]}' judges document '{docs[int(doc[at])]}' twice")
        ptr = np.searchsorted(query, np.arange(len(queries) + 1, dtype=query.dtype)).astype(np.int64)
        origins = None if origin is None else origin.take(order)
        return Qrels(queries, docs, ptr, doc.astype(np.int32), grade, origins)

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> Qrels:
        """The judgments in a file of any format (docs/formats.md); raises as `weir.files.runs.read_qrels`."""
        return READ_QRELS(path)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the judgments in the format that the file's name says; raises as `write_qrels`."""
        WRITE_QRELS(self, path)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        above = int(np.count_nonzero(self.grade > 0))
        kind = "above 0, with fractions" if self.fractional else "relevant"
        origins = "" if self.origin is None else f"; {self.origin.summary()}"
        return (
            f"<Qrels: {len(self):,} queries, {len(self.doc):,} judgments, {above:,} of them {kind}{origins}>"
        )

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them."""
        part = self.only(np.arange(min(3, len(self))))
        columns = part.columns()
        return first_rows(columns, 2, repr(self)[1:-1]).html()

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Query, doc and grade, and origin where judgments have one."""
        names = self.queries.tolist()
        return {
            "query": [names[code] for code in self.query_of_row().tolist()],
            "doc": self.docs.take(self.doc).tolist(),
            "grade": self.grade,
            **({} if self.origin is None else {"origin": self.origin.tolist()}),
        }

    def query_of_row(self) -> Int32:
        """The query number of each row."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.ptr))

    @property
    def fractional(self) -> bool:
        """Whether grades may be fractions, and are held as doubles."""
        return self.grade.dtype.kind == "f"

    def rounded(self) -> Qrels:
        """The same with each grade rounded to the nearest whole number, halves upwards."""
        return replace(self, grade=np.floor(self.grade + 0.5).astype(np.int16)) if self.fractional else self

    def labelled(self, origin: str) -> Qrels:
        """The same judgments, all of this origin, such as "human" or "llm:judge-1"."""
        return replace(self, origin=Origins.alike(origin, len(self.doc)))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{query: {document: grade}}; a whole grade is an int."""
        docs, grades, cuts = self.docs.take(self.doc).tolist(), plain_grades(self.grade), self.ptr.tolist()
        return {
            name: dict(zip(docs[a:b], grades[a:b], strict=True))
            for name, a, b in zip(self.queries.tolist(), cuts[:-1], cuts[1:], strict=True)
        }

    def of_rows(self, rows: NDArray[np.bool_]) -> Qrels:
        """These judgments alone, bool[n]; a query without any is no judged query, the others keep their order."""
        query = self.query_of_row()[rows]
        judged, renumbered = np.unique(query, return_inverse=True)
        origins = None if self.origin is None else self.origin.take(np.flatnonzero(rows))
        return Qrels.from_columns(
            self.queries.take(judged), self.docs, renumbered, self.doc[rows], self.grade[rows], origins
        )

    def only(self, queries: NDArray[np.integer]) -> Qrels:
        """The judgments of these queries, renumbered from 0 in the given order."""
        lengths = np.diff(self.ptr)[queries]
        ptr = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(lengths, out=ptr[1:])
        rows = np.repeat(self.ptr[:-1][queries] - ptr[:-1], lengths) + np.arange(ptr[-1])
        origins = None if self.origin is None else self.origin.take(rows)
        return Qrels(self.queries.take(queries), self.docs, ptr, self.doc[rows], self.grade[rows], origins)


def grade_of(value: object, where: str) -> float:
    """A relevance grade, an int where it is whole; raises BadValue for text, NaN, infinity and more than ±16384."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        grade: float = int(value)
    elif isinstance(value, (float, np.floating)) and math.isfinite(value):
        grade = int(value) if float(value).is_integer() else float(value)
    else:
        raise BadValue(f"{where}: grade {shown_number(value)} is not a finite number")
    if abs(grade) > LARGEST:
        raise BadValue(f"{where}: the grade is beyond ±{LARGEST}; scale the grades first")
    return grade


def plain_grades(grade: Grades) -> list[float]:
    """Grades as Python's numbers, whole ones as int."""
    if grade.dtype.kind != "f":
        whole: list[float] = grade.tolist()
        return whole
    return [int(one) if one.is_integer() else one for one in grade.tolist()]


def grade_column(grade: NDArray[np.integer | np.floating]) -> Grades:
    """The column that holds these grades; raises BadValue for one that is not finite or too large."""
    fractions = grade.dtype.kind == "f"
    if fractions and not np.isfinite(grade).all():
        raise BadValue(f"a grade is {grade[~np.isfinite(grade)][0]}; expected finite numbers")
    if len(grade) and (grade.min() < -LARGEST or grade.max() > LARGEST):
        raise BadValue(f"grades run from {grade.min()} to {grade.max()}; expected within ±{LARGEST}")
    if fractions and (grade != np.rint(grade)).any():
        return grade.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    return grade.astype(np.int16)


def shown_number(value: object) -> str:
    """A number in a message: the shortest decimals that read back as it, 0.141 and not 0.14099999999999999."""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else repr(value)


# Layers of judgments: those that count first, and others where these say nothing.


@checked
def merge_qrels(base: Qrels, other: Qrels) -> Qrels:
    """The judgments of `base`, and those of `other` for the pairs that `base` does not judge.

    `merge_qrels(human, model)` fills what humans left open, `merge_qrels(corrections, old)` corrects. Origins are
    kept, "" for judgments of a layer that has none (`Qrels.labelled` gives one); queries and documents of `base` keep
    their numbers.
    """
    queries, of_query = _joined(base.queries, other.queries, np.arange(len(other.queries)))
    docs, of_doc = _joined(base.docs, other.docs, np.unique(other.doc))
    query = np.concatenate([base.query_of_row(), of_query[other.query_of_row()]])
    doc = np.concatenate([base.doc, of_doc[other.doc]])
    _, first = np.unique(query.astype(np.int64) * len(docs) + doc, return_index=True)
    grade = np.concatenate([base.grade, other.grade])
    origin = None
    if base.origin is not None or other.origin is not None:
        origin = _named(base).then(_named(other)).take(first)
    return Qrels.from_columns(queries, docs, query[first], doc[first], grade[first], origin)


def _named(qrels: Qrels) -> Origins:
    return qrels.origin if qrels.origin is not None else Origins.alike("", len(qrels.doc))


def _joined(ours: Ids, theirs: Ids, used: NDArray[np.integer]) -> tuple[Ids, Int32]:
    """Our identifiers and then those used that only they have, and the number of each of theirs, -1 if not used."""
    names = theirs.strings.take(used)
    codes = ours.codes(names)
    new = np.flatnonzero(codes < 0)
    codes[new] = len(ours) + np.arange(len(new), dtype=np.int32)
    number = np.full(len(theirs), -1, np.int32)
    number[used] = codes
    return (Ids(Strings.concatenated([ours.strings, names.take(new)])) if len(new) else ours), number
