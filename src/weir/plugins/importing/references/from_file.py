"""A file of another tool, a golden set, or a description of several files, as a collection."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from weir.datasets.references import Brought
from weir.errors import FormatError
from weir.io.collections.layout import CollectionPart, find_layout
from weir.io.watch import Watch
from weir.plugins.importing.policies import Choices
from weir.plugins.importing.read_file import FileAsked, ImportRequest
from weir.plugins.importing.references.brought import identity, imported, kept
from weir.plugins.importing.references.described import Described, described

__all__ = ["from_description", "from_file"]


def from_file(path: Path, watch: Watch, fetch: bool = True) -> Brought:
    """Bring a file, as `weir import` reads it; a TOML file of its name beside it says what its columns leave open.

    fetch: whether it may be brought, see `brought`. Raises FormatError or BadValue where it cannot be read, or leaves
    something open.
    """
    beside = path.with_suffix(".toml")
    if beside.is_file():
        return _brought(described(beside, path), str(path.resolve()), path.stem, watch, fetch)
    asked = Described(path, (FileAsked(path),), Choices(strict=True))
    return _brought(asked, str(path.resolve()), path.stem, watch, fetch)


def from_description(path: Path, watch: Watch, fetch: bool = True) -> Brought:
    """Bring the files that a TOML file describes; raises as `from_file`."""
    return _brought(described(path), str(path.resolve()), path.stem, watch, fetch)


def _brought(said: Described, source: str, stem: str, watch: Watch, fetch: bool) -> Brought:
    documents = _documents(said)
    request = ImportRequest(
        said.files, documents.path if documents else None, said.choices, keep_corpus=False
    )
    files = [[identity(one.path), dict(one.columns), one.kind, one.split] for one in said.files]
    choices = [said.choices.grades, said.choices.judges, said.choices.words]
    choices += [said.choices.clicks, str(said.choices.impressions)]
    key = ["files", files, choices, identity(documents.path) if documents else None]
    name = said.name or stem
    place = kept(name, key, partial(imported, request, watch) if fetch else None)
    layout = find_layout(place)
    if layout.documents is not None and documents is not None:
        found = f"documents in {said.files[0].path.name} and in {said.documents}"
        raise FormatError(said.path, found, "documents in one place")
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
    return Brought(about, name, source)


def _documents(said: Described) -> CollectionPart | None:
    """The documents beside the files, where they are named."""
    if not said.documents:
        return None
    path = said.path.parent / said.documents
    if path.is_file() and path.suffix not in (".toml", ".zip"):
        return CollectionPart(path)
    return find_layout(path).need_documents()
