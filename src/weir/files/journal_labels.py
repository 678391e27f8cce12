"""Read people's labels from a journal of `weir open --judge`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from weir.core.qrels import Origins, Qrels
from weir.errors import BadValue, FormatError, warn_of_ranking
from weir.files.text_files import JOURNAL_HEAD, first_bytes

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION_ID, JOURNAL_VERSION = 0x57656972, 1
"""The application id in SQLite's header that marks a journal, and the version of its tables and views."""
SHEET = "to_judge.tsv"
"""The sheet of a pool, beside its journal, with the texts of queries and documents."""
HUMAN, ACCEPTED = "human", "human (suggested)"
"""Origins of a grade: given by a person, or by a model and accepted by a person."""
Kind: TypeAlias = Literal[
    "graded", "accepted", "unable", "later", "preferred", "noted", "withdrawn", "undone"
]
"""A kind of event: a grade, an accepted suggestion, "cannot tell" (with the reason), a pair deferred, a preference, a
note, a withdrawn label, or an undo.
"""
Task: TypeAlias = Literal["judge", "again", "decide", "documents", "rankings"]
"""A task: a first judgment, a second one of the same pair, the decision of a disagreement, or the comparison
of two documents or two rankings.
"""


def is_journal(path: Path, head: bytes | None = None) -> bool:
    """Return True if a file is a journal of people's labels."""
    if head is None:
        head = first_bytes(path, 128) if path.is_file() else b""
    return JOURNAL_HEAD.match(head) is not None


def read_journal(path: Path) -> Qrels:
    """Return the judgments in a journal, a grade for each pair, with their origins.

    Where judges differ, a later decision counts, else the most frequent, lowest grade, with a RankingWarning. Raises
    FormatError for a missing, damaged or empty file.
    """
    qrels, contested = settled_judgments(path)
    if contested:
        said = (
            f"{path}: judges differ on {contested:,} pairs that nobody has decided yet: the most frequent grade "
            "counts, of several such the lowest"
        )
        warn_of_ranking(said)
    return qrels


def settled_judgments(path: Path) -> tuple[Qrels, int]:
    """Return (judgments of `read_journal`, number of pairs on which judges differ and nobody decided), without a
    warning.

    Raises the errors of `read_journal`.
    """
    rows = _rows(path, "SELECT query, document, grade, accepted, decided, votes < judges FROM settled")
    return _qrels(path, [row[:4] for row in rows]), sum(not row[4] and row[5] for row in rows)


def read_judges(path: Path, task: str = "judge") -> dict[str, Qrels]:
    """Return {judge: judgments} of a journal.

    task: "judge" for first labels, "again" for repeated ones ({} without any).

    Raises FormatError for a missing or damaged file, and without first labels.
    """
    sql = "SELECT judge, query, document, grade, accepted FROM judgments WHERE task = ? ORDER BY judge"
    rows = _rows(path, sql, task)
    names = dict.fromkeys(row[0] for row in rows)
    if not names and task == "judge":
        _qrels(path, [])
    return {name: _qrels(path, [row[1:] for row in rows if row[0] == name]) for name in names}


def read_preferences(path: Path) -> list[tuple[str, str, str, float]]:
    """Return (query, first system, second system, outcome) of each comparison of two rankings in a journal.

    outcome is 1 if the first is preferred, -1 for the second, 0 for neither. Raises FormatError for damage.
    """
    sql = "SELECT query, document, other, grade FROM labels WHERE kind = 'preferred' AND task = ? ORDER BY number"
    rows = _rows(path, sql, "rankings")
    if not all(isinstance(outcome, (int, float)) for *_, outcome in rows):
        raise _damaged(path, "a preference that is no number")
    return [(str(query), str(first), str(second), float(outcome)) for query, first, second, outcome in rows]


def _rows(path: Path, sql: str, *values: str) -> list[tuple[Any, ...]]:
    import sqlite3  # every file of judgments is asked whether it is a journal

    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            _refuse_other_events(path, connection)
            rows = connection.execute(sql, values).fetchall()
        finally:
            connection.close()
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise _damaged(path, str(error)) from None
    return rows


_GRADES, _PREFERENCES = tuple(range(10)), (-1, 0, 1)


def _refuse_other_events(path: Path, connection: Connection) -> None:
    [stored] = connection.execute("SELECT value FROM settings WHERE name = 'grades'").fetchone() or ["null"]
    grades = json.loads(stored) or _GRADES
    for number, kind, task, grade in connection.execute("SELECT number, kind, task, grade FROM events"):
        scale = _PREFERENCES if kind == "preferred" else grades
        foreign = kind not in get_args(Kind) or task not in get_args(Task)
        if foreign or (kind in ("graded", "accepted", "preferred") and grade not in scale):
            expected = f"events that weir open wrote, with grades of {', '.join(map(str, scale))}"
            raise FormatError(path, f"event {number}: {kind}, {task}, grade {grade}", expected)


def _damaged(path: Path, why: str) -> FormatError:
    expected = (
        "the journal of weir open --judge, with the files ending in -wal and -shm beside it if there are any"
    )
    return FormatError(path, f"a journal that cannot be read ({why})", expected)


def _qrels(path: Path, rows: Sequence[tuple[str, str, float, int]]) -> Qrels:
    if not rows:
        raise FormatError(path, "no grade yet", "a journal in which somebody has judged")
    if not all(
        type(query) is type(doc) is str and isinstance(grade, (int, float)) for query, doc, grade, _ in rows
    ):
        raise _damaged(path, "an identifier that is no text, or a grade that is no number")
    grades: dict[str, dict[str, float]] = {}
    for query, document, grade, _ in rows:
        grades.setdefault(query, {})[document] = grade
    try:
        qrels = Qrels.of(grades)
    except BadValue as error:
        raise _damaged(path, str(error)) from None
    accepted = {(query, document) for query, document, _, suggested in rows if suggested}
    columns = qrels.columns()
    origins = (
        ACCEPTED if pair in accepted else HUMAN
        for pair in zip(columns["query"], columns["doc"], strict=True)
    )  # fmt: skip
    return replace(qrels, origin=Origins.of(origins))
