"""Read labels by people and models from any tool's tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from weir.core.qrels import LARGEST, Origins, Qrels, shown_number
from weir.core.strings import first_repeated
from weir.core.tables import cell_text
from weir.errors import BadValue, FormatError, LossWarning, give_warning
from weir.files.column_names import (
    is_label,
    is_sheet,
    of_role,
    origin_column,
    pair_columns,
    part_columns,
    rater_columns,
    say_left_out,
    usual,
)
from weir.files.formats import ARROW_TABLES, MISSING, cells_of, csv_separator, format_of, number_records
from weir.files.frames import qrels_from
from weir.files.journal_labels import SHEET, is_journal, read_journal, read_judges
from weir.files.json_files import json_rows, once, whole_json
from weir.files.json_record import json_fault
from weir.files.one_system import REMEDIES, refuse_several_systems
from weir.files.parsers import BLOCK_ROWS, parse_slowly
from weir.files.paths import path_of
from weir.files.runs import read_qrels, run_name
from weir.files.tables import table_batches, table_columns, table_errors
from weir.files.text_files import is_stream, read_bytes

# Tables of labels as other judges write them: columns of many names, several raters side by side, labels as words.

BINARY_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("relevant", "yes", "y", "true", "positive"), 1.0),
    **dict.fromkeys(("not relevant", "non relevant", "nonrelevant", "irrelevant", "no", "n", "false", "negative"), 0.0),
}  # fmt: skip
"""Words with the same meaning in every file; the user must give grades of others, such as "partially"."""
_HEAD_BYTES = 1 << 16
_MOST_VALUES = 100  # different values of a column of labels


@dataclass(frozen=True, eq=False)
class _LabelTable:
    """A table of labels read from a file."""

    path: Path
    names: tuple[str, ...]
    query: int
    """Column of the query; `doc` and `origin` likewise."""
    doc: int
    origin: int | None
    """None without such a column."""
    rows: Sequence[tuple[object, ...]]
    """Cells of each row, None for a missing one."""
    lines: Sequence[int]
    """Line number of each row."""
    words: Mapping[str, float]
    """Grades of labels that are no numbers."""
    unit: str = "line"
    """What the line numbers count, for messages."""
    who: int | None = None
    """Column that tells the rows of several raters apart; None without one."""

    def raters(self, least: int = 1) -> tuple[list[str], list[str]]:
        """Return (columns of labels, other columns left out because few of their values are labels).

        Counts columns with usual names; if fewer than `least`, also columns of few values, most of them labels.
        """
        apart = {self.query, self.doc, self.origin, self.who}
        others = [at for at in range(len(self.names)) if at not in apart]
        found = [self.names[at] for at in others if is_label(self.names[at]) is True]
        if len(found) >= least:
            return found, []
        left_out: list[str] = []
        for at in others:
            values = {_folded(row[at]) for row in self.rows} - MISSING
            if values and is_label(self.names[at]) is None:
                odd = [self._number(value) for value in values].count(None)
                fits = len(values) <= _MOST_VALUES and 2 * odd < len(values)
                (found if fits else left_out).append(self.names[at])
        return sorted(found, key=self.names.index), left_out

    def labels(self, rater: str | None = None) -> Qrels:
        """Return the labels in a column, or of a rater; by default those of the only column, without empty cells.

        Raises FormatError for an unknown or ambiguous column, an unreadable cell, two labels of a pair, and no label.
        """
        if rater is not None and rater not in self.names:
            if labels := self.by_rater().get(rater):
                return labels
            named = "" if self.who is None else f", or a rater in '{self.names[self.who]}'"
            expected = f"one of {', '.join(self.names)}{named}"
            raise FormatError(self.path, f"no column '{rater}'", expected)
        raters, others = self.raters() if rater is None else ([rater], [])
        _say_left_out(self.path, others if raters else [])
        if len(raters) > 1:
            names = ", ".join(raters[:6]) + (" ..." if len(raters) > 6 else "")
            expected = f"one of them, as in {self.path.name}#{raters[0]}"
            raise FormatError(self.path, f"{len(raters)} columns that may be labels ({names})", expected)
        if not raters:
            raise FormatError(
                self.path,
                f"the columns {', '.join(self.names)}: none holds labels",
                "numbers, or words with grades, as in `words='partly=1'`; name the column as in FILE#COLUMN",
            )
        at = self.names.index(raters[0])
        pairs: dict[tuple[str, str], tuple[float, int, str]] = {}
        for line, row in zip(self.lines, self.rows, strict=True):
            text = _folded(row[at])
            if text in MISSING:
                continue
            grade = self._number(text)
            if grade is None:
                word = str(row[at]).strip()[:40]
                expected = f"a number within ±{LARGEST}, or what it means: `words={f'{word}=1'!r}`"
                raise self._refused(line, f"'{word}' in the column '{self.names[at]}'", expected)
            pair = (self._identifier(row[self.query], line), self._identifier(row[self.doc], line))
            origin = "" if self.origin is None else str(row[self.origin] or "")
            before = pairs.setdefault(pair, (grade, line, origin))
            if before[0] != grade:
                raise self._refused(
                    line,
                    f"label {grade:g} for a pair that {self.unit} {before[1]} gives label {before[0]:g}",
                    "one label for each query, document and rater, whom a column such as 'rater' or 'origin' names; "
                    "weir data import FILE -o DIR --judges majority joins the labels of several",
                )
        if not pairs:
            raise FormatError(
                self.path, f"no label in the column '{self.names[at]}'", "numbers or known words"
            )
        grades: dict[str, dict[str, float]] = {}
        for (query, doc), (grade, _, _) in pairs.items():
            grades.setdefault(query, {})[doc] = grade
        qrels = Qrels.of(grades)
        if self.origin is None:
            return qrels
        columns = qrels.columns()
        origins = Origins.of(pairs[pair][2] for pair in zip(columns["query"], columns["doc"], strict=True))
        return replace(qrels, origin=origins)

    def by_rater(self) -> dict[str, Qrels]:
        """Return {rater: labels} by the column that names raters, "" for rows without one; {} without such a column.

        Raises the errors of `labels`.
        """
        if self.who is None:
            return {}
        parts: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            name = "" if _folded(row[self.who]) in MISSING else str(row[self.who])
            parts.setdefault(name, []).append(number)
        return {
            name: replace(
                self, rows=[self.rows[n] for n in rows], lines=[self.lines[n] for n in rows]
            ).labels()
            for name, rows in parts.items()
        }

    def _number(self, text: str) -> float | None:
        return _label_of(text, self.words)

    def _refused(self, line: int, found: str, expected: str) -> FormatError:
        if self.unit == "line":
            return FormatError(self.path, found, expected, line)
        return FormatError(f"{self.path}, {self.unit} {line}", found, expected)

    def say_unread(self, raters: Sequence[str]) -> None:
        own = (self.query, self.doc, self.origin, self.who)
        read = {*raters, *(self.names[at] for at in own if at is not None)}
        say_left_out(self.path, [name for name in self.names if name not in read], is_sheet(self.names))

    def _identifier(self, cell: object, line: int) -> str:
        text = str(cell) if type(cell) is int else cell
        if not isinstance(text, str) or not text:
            shown = "an empty cell" if text in (None, "") else shown_number(text)
            raise self._refused(line, shown, "an identifier of query and document in every row")
        return text


def _label_of(text: str, words: Mapping[str, float]) -> float | None:
    if text in words:
        return words[text]
    value = parse_slowly(text.encode("utf-8", "surrogatepass"))
    return value if abs(value) <= LARGEST else None  # also of NaN


def _column_of_raters(table: _LabelTable) -> int | None:
    """Return the column that tells the rows of several raters apart; None without one.

    A column called so whose values are labels is a rater's own, unless pairs come again.
    """
    pairs = [(row[table.query], row[table.doc]) for row in table.rows]
    again = len(set(pairs)) < len(pairs)
    for at in rater_columns(table.names):
        values = {_folded(row[at]) for row in table.rows}
        labels = all(_label_of(value, table.words) is not None for value in values - MISSING)
        if at not in (table.query, table.doc) and len(values) > 1 and (again or not labels):
            return at
    return None


def _say_left_out(path: Path, columns: Sequence[str]) -> None:
    if columns:
        lost = f"{path}: no labels are read from {', '.join(columns)}: too few are numbers or known words"
        give_warning(LossWarning(lost))


def _read_label_table(
    path: Path, words: Mapping[str, float] = BINARY_WORDS, rater: str | None = None
) -> _LabelTable | None:
    head = read_bytes(path, _HEAD_BYTES)
    unit, objects = "line", list[tuple[int, dict[str, object]]]()
    is_json = False
    if is_arrow := head.startswith(ARROW_TABLES):
        unit, names = "row", tuple(table_columns(path, head.startswith(b"PAR1")))
    elif is_json := head.lstrip().startswith((b"{", b"[")):
        unit = "line" if head.lstrip().startswith(b"{") else "entry"
        objects = list(json_rows(path) if unit == "line" else _listed_objects(path))
        names = tuple(dict.fromkeys(name for _, row in objects for name in row))
    else:
        first = head.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        separator = "\t" if "\t" in first else csv_separator(first)
        names = tuple(cell.strip() for cell in cells_of(first, separator))
    pair = pair_columns(names, path) if len(names) > 2 else None
    if pair is None:
        return None
    if (twice := first_repeated(filter(None, names))) is not None:
        raise FormatError(path, f"two columns named '{twice[:60]}'", "each name once", 1)
    numbered: list[tuple[int, tuple[object, ...]]]
    if is_arrow:
        objects = list(_table_rows(path, head.startswith(b"PAR1")))
    if is_arrow or is_json:
        numbered = [(line, tuple(row.get(name) for name in names)) for line, row in objects]
    else:
        columns = _label_columns(names, set(pair), rater)
        other = "" if len(columns) < 2 else "; or another column as the label, as in FILE#COLUMN"
        records = number_records(path, separator, columns, other)
        numbered = [(line, tuple(cells)) for line, cells in records if cells]
        for line, row in numbered:
            if len(row) != len(names):
                shown, expected = (
                    separator.join(map(str, row))[:80],
                    f"{len(names)} cells: {', '.join(names)}",
                )
                raise FormatError(path, f"{len(row)} cells in '{shown}'", expected, line)
    origin = origin_column(names, "qrels")
    folded = {_folded(word): grade for word, grade in words.items()}
    rows, lines = [row for _, row in numbered], [line for line, _ in numbered]
    for at, part in part_columns(names, "qrels"):
        parts = [(f", {unit} {line}", str(row[pair[0]]), str(row[at] or ""), "") for line, row in numbered]
        refuse_several_systems(path, partial(iter, parts), REMEDIES[part], names[at])
    table = _LabelTable(path, names, *pair, origin, rows, lines, folded, unit)
    return replace(table, who=_column_of_raters(table))


def _label_columns(names: Sequence[str], apart: set[int], rater: str | None) -> list[int]:
    # Of others, numbers are not read: any marks may stand in them.
    if rater in names:
        return [names.index(rater)]
    free = [at for at in range(len(names)) if at not in apart]
    usual = [at for at in free if is_label(names[at]) is True]
    return usual or [at for at in free if is_label(names[at]) is None]


def _table_rows(path: Path, is_parquet: bool) -> Iterator[tuple[int, dict[str, object]]]:
    with table_errors(path):
        batches = table_batches(path, is_parquet, BLOCK_ROWS)
        yield from enumerate((row for batch in batches for row in batch.to_pylist()), 1)


def _listed_objects(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    def refuse(name: str) -> FormatError:
        return FormatError(path, f"'{name}' twice in one object", "each name once")

    try:
        entries = json.loads(whole_json(path), object_pairs_hook=once(refuse))
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"no JSON ({json_fault(error)[:60]})", "a list of objects") from None
    for number, row in enumerate(entries, 1):
        if not isinstance(row, dict):
            raise FormatError(path, f"'{str(row)[:40]}' as entry {number}", "an object for each label")
        yield number, row


def _folded(cell: object) -> str:
    text = " ".join(str("" if cell is None else cell).casefold().split()).rstrip(".!")
    return text if text[:1] in "-+.0123456789" else text.replace("_", " ").replace("-", " ")


# Labels of people or models from any source: the one way in for a judge's labels, Weir's own or foreign.

LABELS = "labels.tsv"
"""The labels in a folder of `weir judge`."""


def read_labels(path: str | os.PathLike[str], words: Mapping[str, float] = BINARY_WORDS) -> Qrels:
    """Return relevance labels from a folder of `weir judge`, judgments of any format, or another tool's table.

    Tables (CSV, TSV, JSON, Parquet, Arrow) need usual names for query, document and label. FILE#NAME chooses a column
    of labels, or a rater that a column or a journal names. Empty cells are skipped.

    words: {text: grade} of labels that are no numbers, by default yes, no and the like.

    Raises FormatError for a missing file, other content and two labels of a pair. Warns (LossWarning) of unread
    columns.
    """
    file, column = _located(path_of(path))
    if is_journal(file):
        if column is None:
            return read_journal(file)
        judges = read_judges(file)
        if column not in judges:
            raise FormatError(file, f"no judge '{column}'", f"one of {', '.join(judges)}")
        return judges[column]
    if column is None and words is BINARY_WORDS:
        try:
            return read_qrels(file)
        except FormatError:
            table = _table(file, words)
            if table is None:
                raise
            raters, others = table.raters()
            labels = table.labels()
            table.say_unread([*raters, *others])
            return labels
    table = _table(file, words, column)
    if table is None:
        expected = "CSV, TSV, JSON lines or Parquet that name their columns"
        raise FormatError(file, "no table with columns for query and document", expected)
    return table.labels(column)


@dataclass(frozen=True, eq=False)
class LabelTexts:
    """Texts of queries and documents, by identifier."""

    queries: Mapping[str, str]
    """{identifier: text}."""
    documents: Mapping[str, str]


def label_texts(labels: object) -> LabelTexts:
    """Return the texts in a file of labels, or on the sheet of a journal; empty without any, and if `labels` is no
    path.
    """
    file = _located(path_of(labels))[0] if isinstance(labels, (str, os.PathLike)) else None
    table = None
    if file is not None and not is_stream(file) and is_journal(file):
        file = file.with_name(SHEET) if file.with_name(SHEET).is_file() else None
    if file is not None and not is_stream(file) and _may_hold_texts(file):
        with suppress(FormatError):  # judgments of another layout
            table = _table(file, BINARY_WORDS)
    if table is None:
        return LabelTexts({}, {})

    def texts(key: int, roles: Sequence[str]) -> dict[str, str]:
        names = [name for at, name in enumerate(table.names) if at not in (table.query, table.doc)]
        columns = [table.names.index(name) for role in roles for name in of_role(names, role)[:1]]
        joined = (
            (str(row[key]), " ".join(cell_text(str(row[at] or "")) for at in columns)) for row in table.rows
        )
        return {name: text for name, text in joined if text.strip()}

    return LabelTexts(texts(table.query, ("query",)), texts(table.doc, ("title", "text")))


_WORD = re.compile(r"[^\t,;:\"{}]+")


def _may_hold_texts(file: Path) -> bool:
    form = format_of(file, "qrels")
    first = form.head.decode("utf-8", "replace").partition("\n")[0]
    return form.rows and bool(usual(map(str.strip, _WORD.findall(first)), "query", "title", "text"))


def read_raters(path: str | os.PathLike[str], words: Mapping[str, float] = BINARY_WORDS) -> dict[str, Qrels]:
    """Return {rater: labels} of a file.

    Raters are a journal's judges, else of a column of raters or origins, else several label columns, else the file.

    words: {text: grade}.

    Raises FormatError without labels, and for two labels of a pair by one rater.
    """
    file, column = _located(path_of(path))
    if column is None and is_journal(file):
        return read_judges(file)
    table = None if column is not None else _table(file, words)
    if table is not None:
        parts = table.by_rater()
        if len(parts) > 1:
            columns, others = table.raters()
            table.say_unread([*columns, *others])
            return {name or "of no named origin": labels for name, labels in parts.items()}
        raters, others = table.raters(least=2)
        if len(raters) > 1:
            _say_left_out(file, others)
            table.say_unread([*raters, *others])
            return {rater: table.labels(rater) for rater in raters}
    return {rater_name(path): read_labels(path, words)}


def labels_from(value: object) -> Qrels:
    """Return labels from a path, as `read_labels`, or from judgments as `weir.evaluate` takes them; raises their
    errors.
    """
    return read_labels(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else qrels_from(value)


def rater_name(path: str | os.PathLike[str]) -> str:
    """Return the rater that a path names: the column of FILE#COLUMN, else the folder or file without suffixes."""
    path = path_of(path)
    if path.exists():
        return path.resolve().name if path.is_dir() else run_name(path)
    return path.name.rpartition("#")[2] if "#" in path.name else run_name(path)


def parse_words(texts: Sequence[str]) -> Mapping[str, float]:
    """Return {label: grade}: the default words and those given as "partly relevant=1"; raises BadValue for another
    text, and for a grade beyond ±16384.
    """
    if not texts:
        return BINARY_WORDS
    words = dict(BINARY_WORDS)
    for text in texts:
        word, _, grade = text.rpartition("=")
        number = parse_slowly(grade.strip().encode("utf-8", "surrogatepass"))
        if not word.strip() or not abs(number) <= LARGEST:  # NaN is no number
            expected = f"a label and its grade within ±{LARGEST}, as in 'partly relevant=1'"
            raise BadValue(f"`words`: found '{text}'; expected {expected}")
        words[word.strip()] = number
    return words


def _located(path: Path) -> tuple[Path, str | None]:
    if not path.exists() and "#" in path.name:
        name, _, column = path.name.rpartition("#")
        return path.with_name(name), column
    if not path.is_dir():
        return path, None
    if not (path / LABELS).is_file():
        raise FormatError(path, f"no {LABELS}", "a folder that weir judge wrote, or a file of labels")
    return path / LABELS, None


def _table(file: Path, words: Mapping[str, float], rater: str | None = None) -> _LabelTable | None:
    form = format_of(file, "qrels")
    return None if form.name == "pickle" else _read_label_table(file, words, rater)
