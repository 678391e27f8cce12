"""Tables of labels as other judges write them: columns of many names, several raters side by side, labels as words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.core.origins import Origins
from weir.core.qrels import LARGEST, Qrels, shown_number
from weir.errors import FormatError
from weir.io.runs.column_names import ORIGIN, is_label, pair_columns
from weir.io.runs.formats import cells_of
from weir.io.runs.json_rows import json_records
from weir.io.runs.sources import table_records
from weir.io.storage.text_files import read_bytes

__all__ = ["BINARY_WORDS", "LabelTable", "read_label_table"]

BINARY_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("relevant", "yes", "true", "positive"), 1.0),
    **dict.fromkeys(("not relevant", "non relevant", "nonrelevant", "irrelevant", "no", "false", "negative"), 0.0),
}  # fmt: skip
"""Words that mean the same in every file; what "partially" is worth, only its user knows."""
_MISSING = {"", "nan", "none", "null", "n/a", "na"}
_HEAD_BYTES = 1 << 16
_MOST_VALUES = 100  # different values of a column of labels


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The cells of a table of labels.

    path: of its file; names: of the columns; query, doc: which of them name the pair; origin: which says where a label
    comes from, None where none does; rows: a tuple of cells for each row, None for one that is not there; lines: on
    which each stands; words: what labels mean that are no numbers.
    """

    path: Path
    names: tuple[str, ...]
    query: int
    doc: int
    origin: int | None
    rows: Sequence[tuple[object, ...]]
    lines: Sequence[int]
    words: Mapping[str, float]

    def raters(self) -> list[str]:
        """Columns that hold labels: those called as labels usually are, else all whose cells can be read as labels."""
        apart = {self.query, self.doc, self.origin}
        others = [at for at in range(len(self.names)) if at not in apart]
        usual = [self.names[at] for at in others if is_label(self.names[at]) is True]
        maybe = [
            self.names[at] for at in others if is_label(self.names[at]) is None and self._may_be_labels(at)
        ]
        return usual or maybe

    def labels(self, rater: str | None = None) -> Qrels:
        """The labels of a column, by default of the only one that holds some; empty cells are no labels.

        Raises FormatError where it is open which column that is, for a column that is not there, for a cell that is
        neither a number nor one of the known words, for a pair with two labels, and where there is no label at all.
        """
        at = self._column(rater)
        pairs: dict[tuple[str, str], tuple[float, int, str]] = {}
        for line, row in zip(self.lines, self.rows, strict=True):
            grade = self._grade(row[at], line, self.names[at])
            if grade is None:
                continue
            pair = (self._identifier(row[self.query], line), self._identifier(row[self.doc], line))
            origin = "" if self.origin is None else str(row[self.origin] or "")
            before = pairs.setdefault(pair, (grade, line, origin))
            if before[0] != grade:
                raise FormatError(
                    self.path,
                    f"label {grade:g} for a pair that line {before[1]} gives label {before[0]:g}",
                    "one label for each query and document, or a column 'origin' that tells raters apart",
                    line,
                )
        if not pairs:
            raise FormatError(
                self.path, f"no label in the column '{self.names[at]}'", "numbers or known words"
            )
        return _qrels(pairs, self.origin is not None)

    def by_origin(self) -> dict[str, Qrels]:
        """The labels of each origin, which may be of the same pairs; {} without such a column. Raises as `labels`."""
        if self.origin is None:
            return {}
        parts: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            parts.setdefault(str(row[self.origin] or ""), []).append(number)
        return {name: self._only(rows).labels() for name, rows in parts.items()}

    def _only(self, rows: Sequence[int]) -> LabelTable:
        cells, lines = [self.rows[n] for n in rows], [self.lines[n] for n in rows]
        return LabelTable(self.path, self.names, self.query, self.doc, self.origin, cells, lines, self.words)

    def _column(self, rater: str | None) -> int:
        if rater is not None:
            if rater not in self.names:
                raise FormatError(self.path, f"no column '{rater}'", f"one of {', '.join(self.names)}")
            return self.names.index(rater)
        found = self.raters()
        if len(found) == 1:
            return self.names.index(found[0])
        if found:
            listed = ", ".join(found[:6]) + (" ..." if len(found) > 6 else "")
            expected = f"one of them, as in {self.path.name}#{found[0]}"
            raise FormatError(self.path, f"{len(found)} columns that may be labels ({listed})", expected)
        raise FormatError(
            self.path,
            f"the columns {', '.join(self.names)}: none holds labels",
            "numbers, or words that are told, as in --label-grade partly=1; name the column as in FILE#COLUMN",
        )

    def _may_be_labels(self, at: int) -> bool:
        values = {_folded(row[at]) for row in self.rows} - _MISSING
        return 0 < len(values) <= _MOST_VALUES and all(self._number(value) is not None for value in values)

    def _number(self, text: str) -> float | None:
        """The grade that a folded cell stands for, None where it stands for none."""
        if text in self.words:
            return self.words[text]
        try:
            value = float(text) if "_" not in text else math.nan
        except ValueError:
            return None
        return value if abs(value) <= LARGEST else None  # also of NaN

    def _grade(self, cell: object, line: int, column: str) -> float | None:
        text = _folded(cell)
        if text in _MISSING:
            return None
        value = self._number(text)
        if value is None:
            word = str(cell).strip()[:40]
            expected = f"a number within ±{LARGEST}, or what it means: --label-grade '{word}=1'"
            raise FormatError(self.path, f"'{word}' in the column '{column}'", expected, line)
        return value

    def _identifier(self, cell: object, line: int) -> str:
        text = str(cell) if type(cell) is int else cell
        if not isinstance(text, str) or not text:
            shown = "an empty cell" if text in (None, "") else shown_number(text)
            raise FormatError(self.path, shown, "an identifier of query and document in every row", line)
        return text


def read_label_table(path: Path, words: Mapping[str, float] = BINARY_WORDS) -> LabelTable | None:
    """The table of labels in a CSV, TSV or JSON lines file, or in a JSON list of objects; None for another file.

    The first line, or the objects, name the columns; a separator is the tab where the first line has one. words: what
    labels mean that are no numbers, whatever their case. Raises FormatError where it is open which columns name query
    and document, and for rows that cannot be read.
    """
    head = read_bytes(path, _HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    names: tuple[str, ...] = ()
    if head.startswith((b"{", b"[")):
        names, rows, lines = _columns_of(_objects(path, head.startswith(b"[")))
    else:
        first = head.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        separator = "\t" if "\t" in first else ","
        names = tuple(cell.strip() for cell in cells_of(first, separator))
    found = pair_columns(names, path) if len(names) > 2 else None
    if found is None:
        return None
    if not head.startswith((b"{", b"[")):
        rows, lines = _cells(path, separator, names)
    lowered = [name.lower() for name in names]
    origin = lowered.index(ORIGIN) if ORIGIN in lowered else None
    folded = {_folded(word): grade for word, grade in words.items()}
    return LabelTable(path, names, *found, origin, rows, lines, folded)


def _cells(path: Path, separator: str, names: Sequence[str]) -> tuple[list[tuple[object, ...]], list[int]]:
    rows: list[tuple[object, ...]] = []
    lines = []
    for line, cells in table_records(path, separator):
        if not cells:
            continue
        if len(cells) != len(names):
            expected = f"{len(names)} cells: {', '.join(names)}"
            raise FormatError(path, f"{len(cells)} cells in '{separator.join(cells)[:80]}'", expected, line)
        rows.append(tuple(cells))
        lines.append(line)
    return rows, lines


def _objects(path: Path, listed: bool) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a list, with their numbers from 1, or of lines, with those of the lines."""
    if not listed:
        yield from ((part.line(i), row) for part in json_records(path) for i, row in enumerate(part.rows))
        return
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"no JSON ({str(error)[:60]})", "a list of objects") from None
    for number, row in enumerate(found, 1):
        if not isinstance(row, dict):
            raise FormatError(path, f"'{str(row)[:40]}' as entry {number}", "an object for each label")
        yield number, row


def _columns_of(
    objects: Iterable[tuple[int, dict[str, object]]],
) -> tuple[tuple[str, ...], list[tuple[object, ...]], list[int]]:
    held = list(objects)
    names = tuple(dict.fromkeys(name for _, row in held for name in row))
    return names, [tuple(row.get(name) for name in names) for _, row in held], [line for line, _ in held]


def _folded(cell: object) -> str:
    """A label as it is compared: without case, underscores and hyphens between words, and points at its end."""
    text = " ".join(str("" if cell is None else cell).casefold().split()).rstrip(".!")
    return text if text[:1] in "-+.0123456789" else text.replace("_", " ").replace("-", " ")


def _qrels(pairs: Mapping[tuple[str, str], tuple[float, int, str]], origins: bool) -> Qrels:
    grades: dict[str, dict[str, float]] = {}
    for (query, doc), (grade, _, _) in pairs.items():
        grades.setdefault(query, {})[doc] = grade
    found = Qrels.of(grades)
    if not origins:
        return found
    columns = found.columns()
    named = Origins.of(pairs[pair][2] for pair in zip(columns["query"], columns["doc"], strict=True))
    return Qrels(found.queries, found.docs, found.ptr, found.doc, found.grade, named)
