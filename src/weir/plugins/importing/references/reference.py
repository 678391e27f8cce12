"""References, files and folders of other layouts, opened as collections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from weir.datasets.names import is_reference
from weir.datasets.references import Materialized
from weir.errors import BadValue, FormatError, UnknownName
from weir.files.layouts import CHOICES, CollectionPart, find_layout
from weir.files.paths import path_of, subset_of
from weir.files.text_files import Watch, named_file, read_toml
from weir.plugins.importing.contents import check_roles
from weir.plugins.importing.importer import ImportRequest, InputFile, import_request, request_for
from weir.plugins.importing.items import LEAST_IMPRESSIONS, Choices
from weir.plugins.importing.readers import READERS
from weir.plugins.importing.references.materialize import identity, materialized

# ----------
# A TOML file that describes a collection of another layout:
#
# name = "shop"                 the collection; by default the name of the file
# documents = "products.jsonl"  a file of documents, or a collection
# split = "test"                of the judgments that count
# self_match = "drop"           or "keep"
# candidates = "judged"         only judged documents may be ranked
# instruction = "..."           for embedding models that follow instructions
# grades = "scale=10"           as weir data import --grades; likewise judges, words, clicks and impressions
#
# [[files]]
# path = "clicks/*.csv"
# columns = { query = "q", doc = "url", grade = "ctr" }
# kind = "qrels"                as weir data import --as
# split = "train"               of these judgments


EXPECTED = "a table of files, or the columns of the file it stands beside"
_ABOUT = ("name", "documents", "split", "instruction", *CHOICES)
_TEXTS = (*_ABOUT, "grades", "judges", "words", "clicks", "kind", "path")
_FILE_KEYS = ("path", "columns", "kind", "split")
_KEYS = (*_TEXTS, "impressions", "columns", "files")


@dataclass(frozen=True)
class _Description:
    """The content of a TOML file that describes a collection."""

    path: Path
    files: tuple[InputFile, ...]
    """The files of its tables, or the file of its name."""
    choices: Choices = field(default_factory=lambda: Choices(strict=True))
    name: str = ""
    documents: str = ""
    """A file or a collection; "" for none."""
    split: str = ""
    instruction: str = ""
    self_match: str = ""
    candidates: str = ""


def _read_description(path: Path, beside: Path | None = None) -> _Description:
    entries = read_toml(path, EXPECTED)
    _check_keys(path, entries, _KEYS)
    listed = entries.get("files", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise FormatError(path, "files that are no tables", "[[files]] with path, columns, kind, split")
    shared: dict[str, Any] = {key: entries[key] for key in ("columns", "kind") if key in entries}
    tables: list[dict[str, Any]] = listed or ([{"path": beside.name}] if beside is not None else [])
    if not tables:
        raise FormatError(path, "no files", '[[files]], each with path = "..."')
    files = tuple(one for table in tables for one in _files(path, {**shared, **table}))
    texts = {key: entries.get(key, "") for key in ("grades", "judges", "words", "clicks")}
    impressions = entries.get("impressions", LEAST_IMPRESSIONS)
    if not isinstance(impressions, int):
        raise FormatError(path, f"impressions = {impressions!r}"[:80], "a whole number")
    choices = Choices(**texts, impressions=impressions, strict=True)
    for key, words in CHOICES.items():
        if entries.get(key, "") not in ("", *words):
            raise FormatError(path, f"{key} = '{entries[key]}'", f"{key} = " + " or ".join(map(repr, words)))
    return _Description(path, files, choices, **{key: entries.get(key, "") for key in _ABOUT})


def request_of(path: Path) -> ImportRequest:
    """Return the import that a TOML description asks for.

    Raises FormatError for a malformed file or a missing input file, UnknownName for an unknown entry.
    """
    description = _read_description(path)
    corpus = named_file(path.parent, description.documents, path) if description.documents else None
    facts = {"name": description.name, "split": description.split, "instruction": description.instruction}
    facts |= {"self_match": description.self_match, "candidates": description.candidates}
    about = {key: value for key, value in facts.items() if value}
    return ImportRequest(description.files, corpus, description.choices, about=about)


def _check_keys(path: Path, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key, value in table.items():
        if key not in keys:
            raise UnknownName(f"key of {path}", key, keys)
        if key in _TEXTS and not isinstance(value, str):
            raise FormatError(path, f"{key} = {value!r}"[:80], "a text in quotes")


def _files(path: Path, table: Mapping[str, Any]) -> list[InputFile]:
    _check_keys(path, table, _FILE_KEYS)
    if not table.get("path"):
        raise FormatError(path, "a table of files without a path", 'path = "..."')
    columns = table.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(one, (str, int)) for one in columns.values()):
        raise FormatError(path, f"columns = {columns!r}"[:80], 'columns = { query = "q", doc = "url" }')
    check_roles(columns)
    if table.get("kind"):
        READERS.get(table["kind"])
    pattern, roles = table["path"], {role: str(column) for role, column in columns.items()}
    paths = sorted(path.parent.glob(pattern)) if set("*?[") & set(pattern) else [path.parent / pattern]
    if not paths or not all(one.is_file() for one in paths):
        raise FormatError(path, f"no file {pattern}", f"an existing file, by its path from {path.parent}")
    return [InputFile(one, roles, table.get("kind", ""), table.get("split", "")) for one in paths]


# ----------
# Files and descriptions as collections, for `weir.datasets.references`.


BIRCO_SETS = ("test_set.pickle", "dev_set.pickle", "test_set.json", "dev_set.json")
"""Files that are the collection of a folder of BIRCO's repository; the first that exists is read."""


def reference(name: str | Path, watch: Watch, again: bool, fetch: bool) -> Materialized | None:
    """Return the collection of a reference, file or folder, imported if necessary; None for Weir's own layout.

    again: look up again which commit a branch names.
    fetch: False for no network access and no writing.

    Raises FormatError if nothing is there, DownloadError if `fetch` is False and it was not imported before.
    """
    text = str(name)
    if is_reference(text):
        if text.startswith("hf:"):
            from weir.plugins.importing.references.hub import from_hub, hub_name

            return from_hub(hub_name(text), watch, again, fetch)
        from weir.plugins.importing.references.from_irds import from_irds, irds_name

        return from_irds(irds_name(text), watch, fetch)
    path, subset = subset_of(path_of(name))
    if path.is_file():
        is_description = path.suffix == ".toml"
        if is_description and not {"files", "columns", "kind"} & set(read_toml(path, EXPECTED)):
            return None
        with _advising(f"{path}"):
            return from_file(path, watch, fetch)
    test_set = next((path / one for one in BIRCO_SETS if (path / one).is_file()), None)
    if test_set is not None and not subset:
        return replace(from_file(test_set, watch, fetch), name=path.resolve().name)
    from weir.plugins.importing.references.hub import folder_patterns, from_folder, is_hub_folder

    if not is_hub_folder(path):
        return None
    with _advising(" ".join(f"{path / one}" for one in folder_patterns(path, subset))):
        return from_folder(path, subset, watch, fetch)


@contextmanager
def _advising(files: str) -> Iterator[None]:
    """Name, in an error that advises settings of an import, the import that takes them."""
    try:
        yield
    except (BadValue, FormatError) as error:
        if re.search(r"`(columns|as_kind|choices)\b", str(error)):
            error.args = (f"{error} (of weir.import_files, or of weir data import {files} -o FOLDER)",)
        raise


def birco(pickle: Path, to: Path) -> None:
    """Write a pickle of BIRCO as a collection into `to`; raises BadValue or FormatError for another file."""
    import_request(request_for(pickle, as_kind="birco", choices=Choices(strict=True)), to)


def from_file(path: Path, watch: Watch, fetch: bool = True) -> Materialized:
    """Return a file, or the files of a TOML description, as a collection imported once.

    fetch: False raises DownloadError unless it was imported before.

    A TOML file of the same name beside a file settles its open questions. Raises FormatError or BadValue for an
    unreadable file or an open question.
    """
    beside = path.with_suffix(".toml")
    if beside.is_file():
        description = _read_description(beside, None if beside == path else path)
    else:
        description = _Description(path, (InputFile(path),))
    first, documents = description.files[0].path, None
    if description.documents:
        about = description.path
        corpus = named_file(about.parent, description.documents, about)
        is_file = corpus.is_file() and corpus.suffix not in (".toml", ".zip")
        documents = (
            CollectionPart(corpus, within=about.parent) if is_file else find_layout(corpus).need_documents()
        )
    choices = description.choices
    request = ImportRequest(
        description.files, documents.path if documents else None, choices, keep_corpus=False
    )
    files = [[identity(one.path), dict(one.columns), one.kind, one.split] for one in description.files]
    settings = [choices.grades, choices.judges, choices.words, choices.clicks, str(choices.impressions)]
    key = ["files", files, settings, identity(documents.path) if documents else None]
    name = description.name or path.stem
    make = partial(import_request, request, watch=watch)
    place = materialized(name, key, make if fetch else None)
    try:
        layout = find_layout(place)
    except FormatError:  # the files hold rankings alone, as a collection has none
        raise FormatError(
            first, "rankings and no part of a collection", "queries, documents or judgments"
        ) from None
    if documents is not None:
        if layout.documents is not None:
            places = f"documents in {first.name} and in {description.documents}"
            raise FormatError(description.path, places, "documents in one place")
        layout = replace(layout, documents=documents)
    if not layout.qrels:
        raise FormatError(first, "no judgments", "queries with relevant documents, or grades")
    toml = description.path if description.path.suffix == ".toml" else first.with_suffix(".toml")
    layout = replace(
        layout,
        root=description.path,
        name=name,
        split=description.split or layout.split,
        instruction=description.instruction,
        self_match=description.self_match,
        candidates=description.candidates,
        documents_expected=f'documents = "FILE OR FOLDER" in {toml.name} beside it',
    )
    return Materialized(layout, name, str(path.resolve()))
