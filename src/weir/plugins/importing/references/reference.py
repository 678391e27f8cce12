"""Collections by reference, and files of another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from weir.datasets.references import Materialized, is_reference
from weir.errors import FormatError, UnknownName
from weir.files.layouts import CHOICES, CollectionPart, find_layout
from weir.files.text_files import Watch, read_toml
from weir.plugins.importing.contents import refuse_other_roles
from weir.plugins.importing.importer import FileAsked, ImportRequest
from weir.plugins.importing.items import LEAST_IMPRESSIONS, Choices
from weir.plugins.importing.readers import READERS
from weir.plugins.importing.references.materialize import identity, imported, materialized

# ----------
# A TOML file that describes a collection of another layout:
#
# name = "shop"                 the collection; by default the name of the file
# documents = "products.jsonl"  a file of documents, or a collection
# split = "test"                whose judgments count
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
    table = read_toml(path, EXPECTED)
    return bool({"files", "columns", "kind"} & set(table))


def described(path: Path, beside: Path | None = None) -> Described:
    """What a description says; beside: the file that it stands beside, where it names none.

    Raises FormatError for what is no description, and for files that are not there; UnknownName for another key.
    """
    entries = read_toml(path, EXPECTED)
    _checked(path, entries, _KEYS)
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
    about = {key: entries.get(key, "") for key in _ABOUT}
    return Described(path, files, choices, **about)


def request_of(path: Path) -> ImportRequest:
    """What to import for a description, so that the folder holds all that it says; raises as `described`."""
    description = described(path)
    corpus = path.parent / description.documents if description.documents else None
    facts = {"name": description.name, "split": description.split, "instruction": description.instruction}
    facts |= {"self_match": description.self_match, "candidates": description.candidates}
    return ImportRequest(
        description.files, corpus, description.choices, about={key: v for key, v in facts.items() if v}
    )


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
    paths = sorted(path.parent.glob(pattern)) if set("*?[") & set(pattern) else [path.parent / pattern]
    if not paths or not all(one.is_file() for one in paths):
        raise FormatError(path, f"no file {pattern}", f"a file that is there, seen from {path.parent}")
    return [FileAsked(one, named, table.get("kind", ""), table.get("split", "")) for one in paths]


# ----------
# Files and descriptions as collections.


def from_file(path: Path, watch: Watch, fetch: bool = True) -> Materialized:
    """Bring a file, as `weir import` reads it; a TOML file of its name beside it says what its columns leave open.

    fetch: see `materialize`. Raises FormatError or BadValue where it cannot be read, or leaves
    something open.
    """
    beside = path.with_suffix(".toml")
    if beside.is_file():
        return _materialized(described(beside, path), str(path.resolve()), path.stem, watch, fetch)
    description = Described(path, (FileAsked(path),), Choices(strict=True))
    return _materialized(description, str(path.resolve()), path.stem, watch, fetch)


def from_description(path: Path, watch: Watch, fetch: bool = True) -> Materialized:
    """Bring the files that a TOML file describes; raises as `from_file`."""
    return _materialized(described(path), str(path.resolve()), path.stem, watch, fetch)


def _materialized(said: Described, source: str, stem: str, watch: Watch, fetch: bool) -> Materialized:
    documents = _documents(said)
    request = ImportRequest(
        said.files, documents.path if documents else None, said.choices, keep_corpus=False
    )
    files = [[identity(one.path), dict(one.columns), one.kind, one.split] for one in said.files]
    choices = [said.choices.grades, said.choices.judges, said.choices.words]
    choices += [said.choices.clicks, str(said.choices.impressions)]
    key = ["files", files, choices, identity(documents.path) if documents else None]
    name = said.name or stem
    place = materialized(name, key, partial(imported, request, watch) if fetch else None)
    layout = find_layout(place)
    if layout.documents is not None and documents is not None:
        both = f"documents in {said.files[0].path.name} and in {said.documents}"
        raise FormatError(said.path, both, "documents in one place")
    if documents is not None:
        layout = replace(layout, documents=documents)
    if not layout.qrels:
        raise FormatError(said.files[0].path, "no judgments", "queries with relevant documents, or grades")
    split = said.split or layout.split
    toml = said.files[0].path.with_suffix(".toml").name if said.path.suffix != ".toml" else said.path.name
    about = replace(
        layout,
        root=said.path,
        name=name,
        split=split,
        instruction=said.instruction,
        self_match=said.self_match,
        candidates=said.candidates,
        documents_wanted=f'documents = "FILE OR FOLDER" in {toml} beside it',
    )
    return Materialized(about, name, source)


def _documents(said: Described) -> CollectionPart | None:
    """The documents beside the files, where they are named."""
    if not said.documents:
        return None
    path = said.path.parent / said.documents
    if path.is_file() and path.suffix not in (".toml", ".zip"):
        return CollectionPart(path)
    return find_layout(path).need_documents()


# ----------
# The plug-in behind `weir.datasets.references`.


BIRCO_SETS = ("test_set.pickle", "dev_set.pickle", "test_set.json", "dev_set.json")
"""The file of a folder of BIRCO's repository that is its collection: the first of these."""


def reference(name: str | Path, watch: Watch, again: bool, fetch: bool) -> Materialized | None:
    """What `weir.datasets.references.materialize` asks for; None for a collection in Weir's layout after all."""
    text = str(name)
    if is_reference(text):
        if text.startswith("hf:"):
            from weir.plugins.importing.references.hub import from_hub, hub_name

            return from_hub(hub_name(text), watch, again, fetch)
        from weir.plugins.importing.references.from_irds import from_irds, irds_name

        return from_irds(irds_name(text), watch, fetch)
    plain, _, subset = text.partition("#")
    path = Path(name)
    if path.is_dir():
        return _of_folder(path, "", watch, fetch)
    return _of_file(path, watch, fetch) if path.is_file() else _of_folder(Path(plain), subset, watch, fetch)


def birco(pickle: Path, to: Path) -> None:
    """Write a pickle of BIRCO's as a collection; raises as `weir.import_files`."""
    from weir.plugins.importing.importer import import_request, requested
    from weir.plugins.importing.items import Choices

    import_request(requested(pickle, as_kind="birco", choices=Choices(strict=True)), to)


# What brings a collection imports the network, databases and readers of all formats: only where it is needed.


def _of_folder(path: Path, subset: str, watch: Watch, fetch: bool) -> Materialized | None:
    test_set = next((path / name for name in BIRCO_SETS if (path / name).is_file()), None)
    if test_set is not None and not subset:
        return replace(from_file(test_set, watch), name=path.resolve().name)
    from weir.plugins.importing.references.hub import from_folder, is_hub_folder

    return from_folder(path, subset, watch, fetch) if is_hub_folder(path) else None


def _of_file(path: Path, watch: Watch, fetch: bool) -> Materialized | None:
    if path.suffix == ".toml" and not is_description(path):
        return None

    return (from_description if path.suffix == ".toml" else from_file)(path, watch, fetch)
