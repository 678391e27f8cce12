"""Labels of people or models from whatever holds them: the one way in for a judge's labels, Weir's own or foreign."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from weir.core.qrels import Qrels
from weir.errors import BadValue, FormatError
from weir.io.runs.formats import format_of
from weir.io.runs.frames import qrels_from
from weir.io.runs.label_table import BINARY_WORDS, LabelTable, read_label_table
from weir.io.runs.read import read_qrels, run_name

__all__ = ["LABELS", "labels_from", "parse_words", "rater_name", "read_labels", "read_raters"]

LABELS = "labels.tsv"
"""The labels in a folder of `weir judge`."""


def read_labels(path: Path | str, words: Mapping[str, float] = BINARY_WORDS) -> Qrels:
    """The labels of a judge: a folder of `weir judge`, judgments of any format, or another judge's table.

    A table is CSV, TSV, JSON lines or a JSON list of objects, with columns for query, document and label under any
    usual name; FILE#COLUMN names the column of the label where several could be it. Labels are numbers, or words of
    `words`, whatever their case; empty cells are no labels. Origins are kept. Raises FormatError, with what to do, for
    anything else, for a pair with two labels, and for a folder without labels.
    """
    file, column = _located(Path(path))
    if column is None and words is BINARY_WORDS:
        try:
            return read_qrels(file)
        except FormatError:
            table = _table(file, words)
            if table is None:
                raise
            return table.labels()
    return _needed(file, words).labels(column)


def read_raters(path: Path | str, words: Mapping[str, float] = BINARY_WORDS) -> dict[str, Qrels]:
    """The labels of each rater of one file, by name: of each origin, or of each column of labels, else those there are.

    Raises as `read_labels`.
    """
    file, column = _located(Path(path))
    table = None if column is not None else _table(file, words)
    if table is not None:
        parts = table.by_origin()
        if len(parts) > 1:
            return {name or "of no named origin": labels for name, labels in parts.items()}
        raters = table.raters()
        if len(raters) > 1:
            return {rater: table.labels(rater) for rater in raters}
    return {rater_name(path): read_labels(path, words)}


def labels_from(value: object) -> Qrels:
    """Labels from a path, as `read_labels` has it, or from what `weir.evaluate` takes as judgments; raises as both."""
    return read_labels(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else qrels_from(value)


def rater_name(path: Path | str) -> str:
    """What labels are called: by their column, their folder, or their file without its endings."""
    path = Path(path)
    if path.exists():
        return path.resolve().name if path.is_dir() else run_name(path)
    return path.name.rpartition("#")[2] if "#" in path.name else run_name(path)


def parse_words(given: Sequence[str]) -> Mapping[str, float]:
    """What labels mean, from texts such as "partly relevant=1", with the words that always mean the same.

    Raises BadValue for a text without a number behind its last "=".
    """
    if not given:
        return BINARY_WORDS
    found = dict(BINARY_WORDS)
    for one in given:
        word, equals, grade = one.rpartition("=")
        try:
            found[word.strip()] = float(grade)
        except ValueError:
            equals = ""
        if not equals or not word.strip():
            raise BadValue(
                f"--label-grade: found '{one}'; expected a label and its grade, as in 'partly relevant=1'"
            )
    return found


def _located(path: Path) -> tuple[Path, str | None]:
    """The file, and the column named behind "#"; raises FormatError for a folder without labels."""
    if not path.exists() and "#" in path.name:
        name, _, column = path.name.rpartition("#")
        return path.with_name(name), column
    if not path.is_dir():
        return path, None
    if not (path / LABELS).is_file():
        raise FormatError(path, f"no {LABELS}", "a folder that weir judge wrote, or a file of labels")
    return path / LABELS, None


def _table(file: Path, words: Mapping[str, float]) -> LabelTable | None:
    """The table in a file of text; None where it holds none."""
    form = format_of(file, "qrels")
    return None if form.name in ("parquet", "arrow", "pickle") else read_label_table(file, words)


def _needed(file: Path, words: Mapping[str, float]) -> LabelTable:
    table = _table(file, words)
    if table is None:
        raise FormatError(
            file,
            "no table with columns for query and document",
            "CSV, TSV or JSON lines that name their columns",
        )
    return table
