"""Read and write judgments by intent, and nugget banks."""

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
from weir.files.atomic import write_text
from weir.files.formats import NUGGETS, bad_grade, columns_of, holds_nuggets
from weir.files.json_files import json_rows
from weir.files.parsers import parse_slowly
from weir.files.paths import path_of
from weir.files.text_files import read_text

# Nugget banks as JSON lines: the parts of a good answer, their weights, and the documents that support them.

IMPORTANCE = {"vital": 1.0, "okay": 0.5}
"""Weight of a nugget by TREC's words."""
SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
"""Grade of a document for a nugget by the words of TREC's nuggetizer."""
Key = TypeVar("Key", bound=tuple[str, ...])
_QUERY = ("qid", "query_id", "topic_id", "request_id", "narrative_id")
_NUGGET = ("text", "nugget", "question", "nugget_id", "id")
_DOCUMENTS = ("documents", "docids", "doc_ids", "docs", "supporting_documents")
_EXPECTED = 'such as {"qid": "q1", "nuggets": [{"text": "...", "importance": "vital", "documents": ["d1"]}]}'


def _read_nuggets(path: Path) -> IntentQrels:
    weights: dict[tuple[str, str], float] = {}
    default: dict[tuple[str, str], float] = {}
    grades: dict[tuple[str, str, str], float] = {}
    for line, row in json_rows(path):
        query = _text(path, line, row, _QUERY, "query")
        nuggets = next((row[name] for name in NUGGETS if name in row), None)  # objects, in a list or by name
        nuggets = list(nuggets.values()) if isinstance(nuggets, Mapping) else nuggets
        if not isinstance(nuggets, list) or not all(isinstance(one, Mapping) for one in nuggets):
            raise FormatError(path, "no list of nuggets", _EXPECTED, line)
        for nugget in nuggets:
            key = query, _text(path, line, nugget, _NUGGET, "nugget")
            default.setdefault(key, IMPORTANCE["vital"])
            importance = nugget.get("importance")
            if importance is not None:
                word = importance.strip().lower() if isinstance(importance, str) else None
                number = isinstance(importance, (int, float)) and not isinstance(importance, bool)
                if word not in IMPORTANCE and not (number and 0 <= importance <= 1):
                    shown = f"the importance {importance!r}"
                    raise FormatError(path, shown, "vital, okay, or a number within 0..1", line)
                _once(path, line, weights, {key: IMPORTANCE[word] if word else float(importance)})
            _once(
                path, line, grades, {(*key, doc): grade for doc, grade in _supports(path, line, row, nugget)}
            )
    if not grades:
        expected = f"documents that support them, {_EXPECTED}, or assignments to them"
        raise FormatError(path, "no document for any nugget", expected)
    queries, intents, docs = ([key[at] for key in grades] for at in range(3))
    try:
        return IntentQrels.from_rows(queries, intents, docs, list(grades.values()), default | weights)
    except BadValue as error:
        raise FormatError(path, str(error), "fewer documents or smaller grades") from None


def _nugget_lines(qrels: IntentQrels) -> Iterator[str]:
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


def _once(path: Path, line: int, values: dict[Key, float], more: Mapping[Key, float]) -> None:
    for key, value in more.items():
        before = values.setdefault(key, value)
        if before != value:
            shown = f"{value:g} for {', '.join(map(repr, key))[:120]}, which an earlier line gives {before:g}"
            raise FormatError(path, shown, "one importance of a nugget, one grade of a document for it", line)


def _text(path: Path, line: int, row: Mapping[str, object], names: tuple[str, ...], what: str) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    raise FormatError(path, f"a {what} without {', '.join(names)}", _EXPECTED, line)


def _supports(
    path: Path, line: int, row: Mapping[str, object], nugget: Mapping[str, object]
) -> list[tuple[str, float]]:
    if "assignment" in nugget:
        if "docid" not in row:
            shown = "nuggets assigned to an answer" if "answer_text" in row else "an assignment without docid"
            raise FormatError(path, shown, "assignments to documents; no generated text is judged here", line)
        word = str(nugget["assignment"]).strip().lower()
        if word not in SUPPORT:
            raise FormatError(path, f"the assignment {nugget['assignment']!r}", ", ".join(SUPPORT), line)
        return [(_text(path, line, row, ("docid",), "document"), SUPPORT[word])]
    documents = next((nugget[name] for name in _DOCUMENTS if name in nugget), [])
    if not isinstance(documents, (Mapping, list)):
        raise FormatError(path, f"documents that are {type(documents).__name__}", _EXPECTED, line)
    for one in documents:
        if isinstance(one, bool) or not isinstance(one, (str, int)):
            raise FormatError(path, f"a document that is {type(one).__name__}", "identifiers", line)
    pairs = documents.items() if isinstance(documents, Mapping) else ((one, 1) for one in documents)
    try:
        return [(str(name), float(grade_of(grade, f"document '{name}'"))) for name, grade in pairs]
    except BadValue as error:
        raise FormatError(path, str(error), "grades that are numbers", line) from None


# Judgments for each intent (subtopic) of a query: TREC's four columns with the intent in the second, nugget banks.

_COLUMNS = "4 columns (query intent document grade) between blanks or tabs"


def read_intents(path: str | os.PathLike[str]) -> IntentQrels:
    """Return judgments of intents from lines `query intent document grade`, or from a nugget bank (JSON lines).

    Support counts 1, partial_support 0.5, not_support 0; comments (#) are skipped. Raises FormatError for a missing or
    invalid file and contradicting grades.
    """
    path = path_of(path)
    if holds_nuggets(path):
        return _read_nuggets(path)
    grades: dict[tuple[str, str, str], tuple[float, int]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        columns = columns_of(line)
        if not columns or line.startswith("#"):
            continue
        if len(columns) != 4:
            raise FormatError(path, f"'{line.strip()[:80]}'", _COLUMNS, number)
        query, intent, document, text = columns
        value = parse_slowly(text.encode())
        if not abs(value) <= LARGEST:  # NaN is no number
            raise bad_grade(f"{path}, line {number}", text[:40])
        grade = grade_of(value, str(path))
        before, first = grades.setdefault((query, intent, document), (grade, number))
        if before != grade:
            shown = f"grade {grade} for a document that line {first} gives grade {before} for the same intent"
            raise FormatError(path, shown, "one grade for each; remove one of the two lines", number)
    queries, intents, docs = ([key[at] for key in grades] for at in range(3))
    return IntentQrels.from_rows(queries, intents, docs, [grade for grade, _ in grades.values()])


READ_INTENTS.register(read_intents)


def _write_intents(qrels: IntentQrels, path: str | os.PathLike[str]) -> None:
    if path_of(path).suffix == ".jsonl":
        write_text(path_of(path), "".join(_nugget_lines(qrels)))
        return
    if qrels.weight is not None and (qrels.weight != 1).any():
        raise BadValue(f"{path}: four columns cannot hold the weights of nuggets; name a file .jsonl")
    lines = []
    for query, intents in qrels.to_dict().items():
        for intent, grades in intents.items():
            for document, grade in grades.items():
                line = f"{query} {intent} {document} {grade}"
                if len(columns_of(line)) != 4 or line.startswith("#"):
                    raise BadValue(
                        f"'{line}': the format cannot hold white space, nor a query that begins with #"
                    )
                lines.append(line)
    write_text(path_of(path), "\n".join([*lines, ""]))


WRITE_INTENTS.register(_write_intents)


def intents_from(value: object) -> IntentQrels:
    """Return judgments of intents from IntentQrels, {query: {intent: {document: grade}}} or a path; raises BadValue
    for anything else.
    """
    if isinstance(value, IntentQrels):
        return value
    if isinstance(value, Mapping):
        return IntentQrels.of(value)
    if isinstance(value, (str, os.PathLike)):
        return read_intents(os.fspath(value))
    raise BadValue(
        f"judgments of intents are {type(value).__name__}; expected IntentQrels, a path, or "
        "{query: {intent: {document: grade}}}"
    )
