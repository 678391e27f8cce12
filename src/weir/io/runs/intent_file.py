"""Judgments for each intent (subtopic) of a query: TREC's four columns with the intent in the second, nugget banks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from weir.core.intents import IntentQrels
from weir.core.qrels import LARGEST, grade_of
from weir.errors import BadValue, FormatError
from weir.io.runs.decimals import parse_slowly
from weir.io.runs.nugget_file import holds_nuggets, nugget_lines, read_nuggets
from weir.io.storage.atomic import atomic_file
from weir.io.storage.text_files import read_bytes

__all__ = ["intents_from", "read_intents", "write_intents"]

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
