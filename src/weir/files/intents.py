"""Judgments for each intent of a query, and nugget banks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.core.intents import READ_INTENTS, WRITE_INTENTS, IntentQrels
from weir.core.qrels import LARGEST, grade_of, plain_grades
from weir.errors import BadValue, FormatError
from weir.files.atomic import atomic_file
from weir.files.formats import NUGGETS, holds_nuggets
from weir.files.json_files import json_rows
from weir.files.parsers import parse_slowly
from weir.files.text_files import read_bytes

# Nugget banks as JSON lines: what a good answer says, how much each part counts, and which documents support it.

IMPORTANCE = {"vital": 1.0, "okay": 0.5}
"""How much a nugget counts, by TREC's words."""
SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
"""The grade of a document for a nugget, by nuggetizer's words."""
Key = TypeVar("Key", bound=tuple[str, ...])
_QUERY = ("qid", "query_id", "topic_id", "request_id", "narrative_id")
_NUGGET = ("text", "nugget", "question", "nugget_id", "id")
_DOCUMENTS = ("documents", "docids", "doc_ids", "docs", "supporting_documents")
_EXPECTED = 'such as {"qid": "q1", "nuggets": [{"text": "...", "importance": "vital", "documents": ["d1"]}]}'


def read_nuggets(path: Path) -> IntentQrels:
    """Read nuggets of queries as intents, and which documents support them.

    A line is a query with its nuggets, each a text with its importance (vital, or okay) and, if any are known, its
    `documents`, a list or {document: grade}; or a document (`docid`) with the nuggets assigned to it (support 1,
    partial_support 0.5, not_support 0), as nuggetizer writes them. Both may stand in one file. A nugget without
    importance is vital; one that no document supports counts all the same, where another of its query has a judged
    document. Raises FormatError, with the line, for anything else, for two grades or importances of one, for nuggets
    assigned to answers, and for a file that names no document at all.
    """
    named: dict[tuple[str, str], float] = {}
    bank: dict[tuple[str, str], float] = {}
    grades: dict[tuple[str, str, str], float] = {}
    for line, row in json_rows(path):
        query = _text(path, line, row, _QUERY, "query")
        for nugget in _listed(path, line, row):
            key = query, _text(path, line, nugget, _NUGGET, "nugget")
            weight = _importance(path, line, nugget)
            found = {(*key, document): grade for document, grade in _supports(path, line, row, nugget)}
            if weight is not None:
                _once(path, line, bank, {key: weight})
            _once(path, line, grades, found)
            named.setdefault(key, IMPORTANCE["vital"])
    if not grades:
        raise FormatError(
            path,
            "no document for any nugget",
            f"documents that support them, {_EXPECTED}, or assignments to them",
        )
    queries, nuggets, docs = ([key[at] for key in grades] for at in range(3))
    try:
        return IntentQrels.from_rows(queries, nuggets, docs, list(grades.values()), named | bank)
    except BadValue as error:
        raise FormatError(path, str(error), "fewer documents or smaller grades") from None


def nugget_lines(qrels: IntentQrels) -> Iterator[str]:
    """A line for each query, as `read_nuggets` reads them."""
    weight = np.ones(len(qrels.query)) if qrels.weight is None else qrels.weight
    words = {number: word for word, number in IMPORTANCE.items()}
    names, docs = qrels.numbered.queries.tolist(), qrels.numbered.docs
    documents: list[dict[str, float]] = [{} for _ in qrels.names]
    doc = docs.take(qrels.numbered.doc[qrels.row]).tolist()
    for intent, name, grade in zip(qrels.intent.tolist(), doc, plain_grades(qrels.grade), strict=True):
        documents[intent][name] = grade
    cuts = np.searchsorted(qrels.query, np.arange(len(names) + 1)).tolist()
    for query, begin, end in zip(names, cuts[:-1], cuts[1:], strict=True):
        nuggets = [
            {
                "text": qrels.names[at],
                "importance": words.get(weight[at], weight[at]),
                "documents": documents[at],
            }
            for at in range(begin, end)
        ]
        yield json.dumps({"qid": query, "nuggets": nuggets}, ensure_ascii=False) + "\n"


def _once(path: Path, line: int, known: dict[Key, float], found: Mapping[Key, float]) -> None:
    """Add what a line says; raises FormatError where an earlier one said otherwise."""
    for key, value in found.items():
        before = known.setdefault(key, value)
        if before != value:
            said = f"{value:g} for {', '.join(map(repr, key))[:120]}, which an earlier line gives {before:g}"
            raise FormatError(path, said, "one importance of a nugget, one grade of a document for it", line)


def _text(path: Path, line: int, row: Mapping[str, object], names: tuple[str, ...], what: str) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    raise FormatError(path, f"a {what} without {', '.join(names)}", _EXPECTED, line)


def _listed(path: Path, line: int, row: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The nuggets of a line: a list of objects, or an object of them by name."""
    found = next((row[name] for name in NUGGETS if name in row), None)
    if isinstance(found, Mapping):
        found = list(found.values())
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise FormatError(path, "no list of nuggets", _EXPECTED, line)
    return found


def _importance(path: Path, line: int, nugget: Mapping[str, object]) -> float | None:
    given = nugget.get("importance")
    if given is None:
        return None
    if isinstance(given, str) and given.strip().lower() in IMPORTANCE:
        return IMPORTANCE[given.strip().lower()]
    if isinstance(given, (int, float)) and not isinstance(given, bool) and 0 <= given <= 1:
        return float(given)
    raise FormatError(path, f"the importance {given!r}", "vital, okay, or a number within 0..1", line)


def _supports(
    path: Path, line: int, row: Mapping[str, object], nugget: Mapping[str, object]
) -> list[tuple[str, float]]:
    """Documents and their grades for a nugget."""
    if "assignment" in nugget:
        return [_assigned(path, line, row, nugget["assignment"])]
    given = next((nugget[name] for name in _DOCUMENTS if name in nugget), [])
    if not isinstance(given, (Mapping, list)):
        raise FormatError(path, f"documents that are {type(given).__name__}", _EXPECTED, line)
    odd = [one for one in given if isinstance(one, bool) or not isinstance(one, (str, int))]
    if odd:
        raise FormatError(path, f"a document that is {type(odd[0]).__name__}", "identifiers", line)
    pairs = given.items() if isinstance(given, Mapping) else ((one, 1) for one in given)
    try:
        return [(str(name), float(grade_of(grade, f"document '{name}'"))) for name, grade in pairs]
    except BadValue as error:
        raise FormatError(path, str(error), "grades that are numbers", line) from None


def _assigned(path: Path, line: int, row: Mapping[str, object], assignment: object) -> tuple[str, float]:
    """The document of a line, and its grade by nuggetizer's word."""
    if "docid" not in row:
        said = "nuggets assigned to an answer" if "answer_text" in row else "an assignment without docid"
        raise FormatError(path, said, "assignments to documents; no generated text is judged here", line)
    word = str(assignment).strip().lower()
    if word not in SUPPORT:
        raise FormatError(path, f"the assignment {assignment!r}", ", ".join(SUPPORT), line)
    return _text(path, line, row, ("docid",), "document"), SUPPORT[word]


# Judgments for each intent (subtopic) of a query: TREC's four columns with the intent in the second, nugget banks.

_COLUMNS = "4 columns (query intent document grade) between blanks or tabs"


def read_intents(path: Path | str) -> IntentQrels:
    """Read judgments such as those of TREC's Web track: `query intent document grade`, plain or compressed.

    JSON lines are read as a nugget bank (`read_nuggets`). Empty lines and those that start with `#` are left out; a
    line that repeats an earlier one counts once. Raises FormatError, with the line, for another number of columns, a
    grade that is no number within ±16384, and a second grade for the same query, intent and document.
    """
    path = Path(path)
    if holds_nuggets(path):
        return read_nuggets(path)
    grades: dict[tuple[str, str, str], tuple[float, int]] = {}
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"bytes that are not UTF-8 ({error.reason})", "a UTF-8 text file") from None
    for number, line in enumerate(lines, 1):
        columns = line.split()
        if not columns or line.startswith("#"):
            continue
        if len(columns) != 4:
            raise FormatError(path, f"'{line.strip()[:80]}'", _COLUMNS, number)
        query, intent, document, text = columns
        grade = _grade(path, text, number)
        before, first = grades.setdefault((query, intent, document), (grade, number))
        if before != grade:
            found = f"grade {grade} for a document that line {first} gives grade {before} for the same intent"
            raise FormatError(path, found, "one grade for each; remove one of the two lines", number)
    queries, intents, docs = ([key[at] for key in grades] for at in range(3))
    return IntentQrels.from_rows(queries, intents, docs, [grade for grade, _ in grades.values()])


READ_INTENTS.register(read_intents)


def write_intents(qrels: IntentQrels, path: Path | str) -> None:
    """Write judgments as `read_intents` reads them; the file appears when it is complete.

    A file called .jsonl becomes a nugget bank, which alone holds how much each intent counts.

    Raises BadValue for an identifier that the columns cannot hold (with white space, or a query that begins with `#`),
    and for weights in columns.
    """
    if Path(path).suffix == ".jsonl":
        with atomic_file(Path(path)) as temporary:
            temporary.write_text("".join(nugget_lines(qrels)), encoding="utf-8")
        return
    if qrels.weight is not None and (qrels.weight != 1).any():
        raise BadValue(f"{path}: four columns do not hold how much a nugget counts; name a file .jsonl")
    lines = []
    for query, intents in qrels.to_dict().items():
        for intent, grades in intents.items():
            for document, grade in grades.items():
                line = f"{query} {intent} {document} {grade}"
                if len(line.split()) != 4 or line.startswith("#"):
                    raise BadValue(
                        f"'{line}': the format cannot hold white space, nor a query that begins with #"
                    )
                lines.append(line)
    with atomic_file(Path(path)) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")


WRITE_INTENTS.register(write_intents)


def intents_from(given: object) -> IntentQrels:
    """Judgments of intents from what people hold: IntentQrels, {query: {intent: {document: grade}}}, a path.

    Raises BadValue for anything else.
    """
    if isinstance(given, IntentQrels):
        return given
    if isinstance(given, Mapping):
        return IntentQrels.of(given)
    if isinstance(given, (str, os.PathLike)):
        return read_intents(os.fspath(given))
    raise BadValue(
        f"judgments of intents are {type(given).__name__}; expected IntentQrels, a path, or "
        "{query: {intent: {document: grade}}}"
    )


def _grade(path: Path, text: str, line: int) -> float:
    value = parse_slowly(text.encode())
    if not abs(value) <= LARGEST:  # NaN is no number
        expected = f"a number within ±{LARGEST}; scale the grades first"
        raise FormatError(path, f"the grade '{text[:40]}'", expected, line)
    return grade_of(value, str(path))
