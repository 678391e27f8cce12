"""A TOML file that describes a collection of an unusual layout: which files, which columns, what is the text.

name = "shop"                         # of the collection; by default the file's
documents = "products.jsonl"          # a file of documents, or a collection, as it is
split = "test"                        # whose judgments count
self_match = "drop"                   # or "keep"
candidates = "judged"                 # only the judged documents may be ranked
instruction = "..."                   # what embedding models that follow instructions are told
grades = "scale=10"                   # as weir import --grades, and likewise judges, words, clicks and impressions
[[files]]
path = "clicks/*.csv"
columns = { query = "q", doc = "url", grade = "ctr" }
kind = "qrels"                        # as weir import --as
split = "train"                       # of these judgments
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.errors import FormatError, UnknownName
from weir.io.collections.layout import CHOICES
from weir.io.storage.toml_file import read_toml
from weir.plugins.importing.names import refuse_other_roles
from weir.plugins.importing.policies import LEAST_IMPRESSIONS, Choices
from weir.plugins.importing.read_file import FileAsked, ImportRequest
from weir.plugins.importing.readers import READERS

__all__ = ["Described", "described", "is_description", "request_of"]

EXPECTED = "a table of files, or the columns of the file it stands beside"
_ABOUT = ("name", "documents", "split", "instruction", *CHOICES)
_TEXTS = (*_ABOUT, "grades", "judges", "words", "clicks", "kind", "path")
_FILE_KEYS = ("path", "columns", "kind", "split")
_KEYS = (*_TEXTS, "impressions", "columns", "files")


@dataclass(frozen=True)
class Described:
    """What a description says; files: those of the table, or the one it stands beside; documents: "" where none."""

    path: Path
    files: tuple[FileAsked, ...]
    choices: Choices = field(default_factory=lambda: Choices(strict=True))
    name: str = ""
    documents: str = ""
    split: str = ""
    instruction: str = ""
    self_match: str = ""
    candidates: str = ""


def is_description(path: Path) -> bool:
    """Whether a TOML file describes files to import, and not the parts of a collection in Weir's layout."""
    given = read_toml(path, EXPECTED)
    return bool({"files", "columns", "kind"} & set(given))


def described(path: Path, beside: Path | None = None) -> Described:
    """What a description says; beside: the file that it stands beside, where it names none.

    Raises FormatError for what is no description, and for files that are not there; UnknownName for another key.
    """
    given = read_toml(path, EXPECTED)
    _checked(path, given, _KEYS)
    listed = given.get("files", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise FormatError(path, "files that are no tables", "[[files]] with path, columns, kind, split")
    shared: dict[str, Any] = {key: given[key] for key in ("columns", "kind") if key in given}
    tables: list[dict[str, Any]] = listed or ([{"path": beside.name}] if beside is not None else [])
    if not tables:
        raise FormatError(path, "no files", '[[files]], each with path = "..."')
    files = tuple(one for table in tables for one in _files(path, {**shared, **table}))
    said = {key: given.get(key, "") for key in ("grades", "judges", "words", "clicks")}
    impressions = given.get("impressions", LEAST_IMPRESSIONS)
    if not isinstance(impressions, int):
        raise FormatError(path, f"impressions = {impressions!r}"[:80], "a whole number")
    choices = Choices(**said, impressions=impressions, strict=True)
    for key, words in CHOICES.items():
        if given.get(key, "") not in ("", *words):
            raise FormatError(path, f"{key} = '{given[key]}'", f"{key} = " + " or ".join(map(repr, words)))
    about = {key: given.get(key, "") for key in _ABOUT}
    return Described(path, files, choices, **about)


def request_of(path: Path) -> ImportRequest:
    """What to import for a description, so that the folder holds all that it says; raises as `described`."""
    said = described(path)
    corpus = path.parent / said.documents if said.documents else None
    facts = {"name": said.name, "split": said.split, "instruction": said.instruction}
    facts |= {"self_match": said.self_match, "candidates": said.candidates}
    return ImportRequest(said.files, corpus, said.choices, about={key: v for key, v in facts.items() if v})


def _checked(path: Path, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key, value in given.items():
        if key not in known:
            raise UnknownName(f"key of {path}", key, known)
        if key in _TEXTS and not isinstance(value, str):
            raise FormatError(path, f"{key} = {value!r}"[:80], "a text in quotes")


def _files(path: Path, table: Mapping[str, Any]) -> list[FileAsked]:
    """The files of a table: path may be a pattern such as products/*.parquet."""
    _checked(path, table, _FILE_KEYS)
    if not table.get("path"):
        raise FormatError(path, "a table of files without a path", 'path = "..."')
    columns = table.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(one, (str, int)) for one in columns.values()):
        raise FormatError(path, f"columns = {columns!r}"[:80], 'columns = { query = "q", doc = "url" }')
    refuse_other_roles(columns)
    if table.get("kind"):
        READERS.get(table["kind"])
    pattern, named = table["path"], {role: str(column) for role, column in columns.items()}
    found = sorted(path.parent.glob(pattern)) if set("*?[") & set(pattern) else [path.parent / pattern]
    if not found or not all(one.is_file() for one in found):
        raise FormatError(path, f"no file {pattern}", f"a file that is there, seen from {path.parent}")
    return [FileAsked(one, named, table.get("kind", ""), table.get("split", "")) for one in found]
