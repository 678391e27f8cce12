"""Relevance judgments, their origins, and layers of judgments."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked, named_arguments
from weir.core import frames, mapping_views
from weir.core.hooks import Hook
from weir.core.input_shapes import grades_of
from weir.core.strings import Grades, Ids, Int32, Int64, Strings, offsets, stretches
from weir.core.tables import first_rows
from weir.errors import BadValue, conversion

if TYPE_CHECKING:
    from weir.core.run import Run

# Origins of judgments: "human", "duplicate", "llm:..."; and layers of judgments.

MODEL = "llm:"
"""Prefix of the origin of a model's judgments; its name follows."""


@dataclass(frozen=True, eq=False)
class Origins:
    """The source of each judgment: a person, a model, or unknown."""

    names: tuple[str, ...]
    """Distinct origins; "" for judgments without one."""
    code: Int32
    """int32[n]: position in `names` of each judgment's origin."""

    @staticmethod
    def of(texts: Iterable[str]) -> Origins:
        """Return origins from a name for each judgment, "" if it has none."""
        numbers: dict[str, int] = {}
        code = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int32)
        return Origins(tuple(numbers), code)

    @staticmethod
    def alike(name: str, count: int) -> Origins:
        """Return the origin `name` for each of `count` judgments."""
        return Origins((name,), np.zeros(count, np.int32))

    def take(self, rows: NDArray[np.integer]) -> Origins:
        return Origins(self.names, self.code[rows])

    def then(self, other: Origins) -> Origins:
        """Return these origins followed by `other`'s."""
        names = tuple(dict.fromkeys([*self.names, *other.names]))
        number = np.array([names.index(name) for name in other.names], np.int32)
        return Origins(names, np.concatenate([self.code, number[other.code]]))

    def tolist(self) -> list[str]:
        return [self.names[code] for code in self.code.tolist()]

    def of_models(self) -> NDArray[np.bool_]:
        """Return True for each judgment by a model (origin "llm:..."), bool[n]."""
        models = np.array([name.startswith(MODEL) for name in self.names], np.bool_)
        return np.asarray(models[self.code], np.bool_)

    def counts(self, rows: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """Return {origin: number of judgments}, most frequent first, of all or of the True `rows`, bool[n]."""
        code = self.code if rows is None else self.code[rows]
        number = np.bincount(code, minlength=len(self.names)).tolist()
        counts = {name: n for name, n in zip(self.names, number, strict=True) if n}
        return dict(sorted(counts.items(), key=lambda one: -one[1]))

    def counts_in_words(self, rows: NDArray[np.bool_] | None = None) -> str:
        """Return the `counts` as text, such as "9 human, 2 llm:judge"."""
        return ", ".join(f"{n:,} {name or 'of no named origin'}" for name, n in self.counts(rows).items())


# Relevance judgments.

LARGEST = 2**14  # of a grade's absolute value


READ_QRELS: Hook[[str | os.PathLike[str]], Qrels] = Hook("reading judgments")
WRITE_QRELS: Hook[[Qrels, str | os.PathLike[str]], None] = Hook("writing judgments")


class Beside(Protocol):
    """Rules on documents, from a file beside the judgments."""

    @property
    def digest(self) -> str:
        """Hash of all rules, for keys of scores."""

    @property
    def docs(self) -> Ids:
        """Documents named by the rules."""

    @property
    def queries(self) -> Ids:
        """Queries named by the rules."""

    def join(self, run: Run, queries: Ids) -> object:
        """Return the rules matched with a run, for the judged `queries`."""


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Relevance judgments: a grade for each judged (query, document) pair; 0 or less is not relevant."""

    queries: Ids
    docs: Ids
    ptr: Int64
    """int64[Q + 1]: row offsets of each query."""
    doc: Int32
    """int32[n]: codes into `docs`, ascending within a query."""
    grade: Grades
    """int16[n] if all grades are whole, else float64[n]."""
    origin: Origins | None = None
    """None if not known."""
    name: str = ""
    """Name of the judged collection or file, as tables show it; "" if not known."""
    beside: Beside | None = None
    """Rules on documents from a file that accompanies the judgments; None without one."""

    @staticmethod
    @named_arguments
    def of(judgments: Mapping[Any, Any]) -> Qrels:
        """Return judgments from {query: {document: grade}}, the form of pytrec_eval, ranx and BEIR.

        A query may also have a list or set of relevant documents, (document, grade) pairs or a pandas Series; queries
        without judgments are left out. Raises BadValue for another form, a grade that is not a finite number and a
        document with two grades.
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
        """Return judgments from each one's query number, document number and grade, in any order.

        Raises BadValue for a pair judged twice and a grade that is not finite or beyond ±16384.
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
        """Return the judgments in a file of any format (docs/formats.md).

        Warns (LossWarning) of unread columns; raises FormatError for a missing file and invalid content.
        """
        return replace(READ_QRELS(path), name=os.path.basename(path))  # noqa: PTH119  pathlib takes long to import

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the judgments in the format of the file name's ending, by default TREC; only tables keep origins.

        Raises BadValue for an identifier that the format cannot hold.
        """
        WRITE_QRELS(self, path)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, query: str) -> dict[str, float]:
        code = self.queries.code(query, "judged query")
        rows = slice(*self.ptr[code : code + 2].tolist())
        return dict(zip(self.docs.take(self.doc[rows]).tolist(), plain_grades(self.grade[rows]), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and bool(self.queries.codes([query])[0] >= 0)

    keys, values, items = mapping_views.keys, mapping_views.values, mapping_views.items
    get = mapping_views.get

    def __repr__(self) -> str:
        above = int(np.count_nonzero(self.grade > 0))
        kind = "above 0, with fractions" if self.fractional else "relevant"
        origins = "" if self.origin is None else f"; {self.origin.counts_in_words()}"
        return (
            f"<Qrels: {len(self):,} queries, {len(self.doc):,} judgments, {above:,} of them {kind}{origins}>"
        )

    def _repr_html_(self) -> str:
        part = self.only(np.arange(min(3, len(self))))
        return first_rows(part.columns(), repr(self)[1:-1], len(self.doc)).html()

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Return {"query", "doc", "grade": a value for each judgment}, and "origin" if known."""
        names = self.queries.tolist()
        return {
            "query": [names[code] for code in self.query_of_row().tolist()],
            "doc": self.docs.take(self.doc).tolist(),
            "grade": self.grade,
            **({} if self.origin is None else {"origin": self.origin.tolist()}),
        }

    def query_of_row(self) -> Int32:
        """Return the query number of each judgment, int32[n]."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.ptr))

    def grade_counts(self) -> dict[float, int]:
        """Return {grade: number of judgments}, ascending; {} if grades have fractions."""
        grades, counts = np.unique(self.grade, return_counts=True)
        return {} if self.fractional else dict(zip(grades.tolist(), counts.tolist(), strict=True))

    @property
    def fractional(self) -> bool:
        """True if some grade is not whole."""
        return self.grade.dtype.kind == "f"

    @property
    def own_relevant(self) -> bool:
        """True if a document is relevant to the query with the same identifier."""
        relevant, own = self.grade > 0, self.docs.codes(self.queries.strings)
        return bool((self.doc[relevant] == own[self.query_of_row()[relevant]]).any())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all judgments, in order, and the document rules: 32 hexadecimal digits."""
        whole = hashlib.sha256()
        for column in (self.queries.strings, self.docs.strings):
            column.feed(whole.update)
        for values in (self.ptr, self.doc, self.grade):
            whole.update(values.tobytes())
        if self.beside is not None:
            whole.update(self.beside.digest.encode())
        return whole.hexdigest()[:32]

    def rounded(self) -> Qrels:
        """Return the judgments with grades rounded to whole numbers, halves up."""
        return replace(self, grade=np.floor(self.grade + 0.5).astype(np.int16)) if self.fractional else self

    def labelled(self, origin: str) -> Qrels:
        """Return the judgments, all with this origin, such as "human" or "llm:judge-1"."""
        return replace(self, origin=Origins.alike(origin, len(self.doc)))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return {query: {document: grade}}; whole grades are int."""
        docs, grades, cuts = self.docs.take(self.doc).tolist(), plain_grades(self.grade), self.ptr.tolist()
        return {
            name: dict(zip(docs[a:b], grades[a:b], strict=True))
            for name, a, b in zip(self.queries.tolist(), cuts[:-1], cuts[1:], strict=True)
        }

    def of_rows(self, rows: NDArray[np.bool_]) -> Qrels:
        """Return the judgments at the True `rows`, bool[n], without a name and without queries left empty."""
        query = self.query_of_row()[rows]
        judged, renumbered = np.unique(query, return_inverse=True)
        origins = None if self.origin is None else self.origin.take(np.flatnonzero(rows))
        of_rows = Qrels.from_columns(
            self.queries.take(judged), self.docs, renumbered, self.doc[rows], self.grade[rows], origins
        )
        return replace(of_rows, beside=self.beside)

    def only(self, queries: NDArray[np.integer]) -> Qrels:
        """Return the judgments of the queries with these numbers, renumbered from 0 in this order."""
        ptr = offsets(np.diff(self.ptr)[queries])
        rows, _ = stretches(self.ptr[:-1][queries], self.ptr[1:][queries])
        origins = None if self.origin is None else self.origin.take(rows)
        return Qrels(
            *(self.queries.take(queries), self.docs, ptr, self.doc[rows], self.grade[rows]),
            *(origins, self.name, self.beside),
        )


def grade_of(value: object, where: str) -> float:
    """Return a grade as int if whole, else float. Raises BadValue, naming `where`, for text, NaN, infinity and values
    beyond ±16384.
    """
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        grade: float = int(value)
    elif isinstance(value, (Real, Decimal)) and math.isfinite(value):
        number = float(value)
        grade = int(number) if number.is_integer() else number
    else:
        raise BadValue(f"{where}: grade {shown_number(value)} is not a finite number{conversion(value)}")
    if abs(grade) > LARGEST:
        raise BadValue(f"{where}: the grade is beyond ±{LARGEST}; scale the grades first")
    return grade


def plain_grades(grade: Grades) -> list[float]:
    """Return grades as Python numbers: int if whole, else float."""
    if grade.dtype.kind != "f":
        whole: list[float] = grade.tolist()
        return whole
    return [int(one) if one.is_integer() else one for one in grade.tolist()]


def grade_column(grade: NDArray[np.integer | np.floating]) -> Grades:
    """Return grades as int16[n] if all are whole, else float64[n]. Raises BadValue for a grade not finite or beyond
    ±16384.
    """
    fractions = grade.dtype.kind == "f"
    if fractions and not np.isfinite(grade).all():
        raise BadValue(f"a grade is {grade[~np.isfinite(grade)][0]}; expected finite numbers")
    if len(grade) and (grade.min() < -LARGEST or grade.max() > LARGEST):
        raise BadValue(f"grades run from {grade.min()} to {grade.max()}; expected within ±{LARGEST}")
    if fractions and (grade != np.rint(grade)).any():
        return grade.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    return grade.astype(np.int16)


def shown_number(value: object) -> str:
    """Return a value's repr, for NumPy floats a Python float's."""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else repr(value)


# Layers of judgments: those that count first, and others where these say nothing.


@checked
def merge_qrels(base: Qrels, other: Qrels) -> Qrels:
    """Return `base`'s judgments and document rules, with `other`'s judgments of pairs that `base` does not judge."""
    queries, of_query = _joined(base.queries, other.queries, np.arange(len(other.queries)))
    docs, of_doc = _joined(base.docs, other.docs, np.unique(other.doc))
    query = np.concatenate([base.query_of_row(), of_query[other.query_of_row()]])
    doc = np.concatenate([base.doc, of_doc[other.doc]])
    _, first = np.unique(query.astype(np.int64) * len(docs) + doc, return_index=True)
    grade = np.concatenate([base.grade, other.grade])
    origin = None
    if base.origin is not None or other.origin is not None:
        origin = _named(base).then(_named(other)).take(first)
    merged = Qrels.from_columns(queries, docs, query[first], doc[first], grade[first], origin)
    return replace(merged, beside=base.beside)


def _named(qrels: Qrels) -> Origins:
    return qrels.origin if qrels.origin is not None else Origins.alike("", len(qrels.doc))


def _joined(ours: Ids, theirs: Ids, used: NDArray[np.integer]) -> tuple[Ids, Int32]:
    names = theirs.strings.take(used)
    codes = ours.codes(names)
    new = np.flatnonzero(codes < 0)
    codes[new] = len(ours) + np.arange(len(new), dtype=np.int32)
    number = np.full(len(theirs), -1, np.int32)
    number[used] = codes
    return (Ids(Strings.concatenated([ours.strings, names.take(new)])) if len(new) else ours), number
