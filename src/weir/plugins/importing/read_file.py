"""One file of an import: its reader, what that finds, and its documents on the shelf."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from weir.errors import FormatError, WeirError
from weir.io.collections.layout import CollectionPart, find_layout
from weir.io.collections.records import read_documents
from weir.io.watch import Watch, unwatched
from weir.plugins.importing.contents import Contents, read_contents
from weir.plugins.importing.document_shelf import DocumentShelf
from weir.plugins.importing.found import Document, FileRemark, Item, ItemKey, Refused, Used
from weir.plugins.importing.merge import FileCounts, FileFound, keep_document
from weir.plugins.importing.policies import Choices
from weir.plugins.importing.readers import Reader, ReadRequest, chosen
from weir.plugins.importing.row_batches import row_batches

__all__ = [
    "FileAsked",
    "FileRead",
    "ImportRequest",
    "read_file",
    "shelve_corpus",
    "shelved",
]

_TOLD_ROWS = 100_000  # documents between two words to who watches


@dataclass(frozen=True)
class FileAsked:
    """A file to import.

    columns: role -> column; kind: its reader, "" where its content says it; split: of its judgments.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    split: str = ""


@dataclass(frozen=True)
class ImportRequest:
    """Files to import together.

    corpus: a collection or a file of documents beside them; keep_corpus: whether its documents are written too, or
    only looked into where judgments go by words or texts; about: what collection.toml says of the collection.
    """

    files: tuple[FileAsked, ...]
    corpus: Path | None = None
    choices: Choices = field(default_factory=Choices)
    keep_corpus: bool = True
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FileRead:
    """A file that was read: what was found, and what the report says of it."""

    found: FileFound
    record: dict[str, Any]


def read_file(
    asked: FileAsked, shelf: DocumentShelf, choices: Choices, watch: Watch = unwatched
) -> FileRead | WeirError:
    """What a reader found, its documents on the shelf; or why the file is refused, the shelf as before."""
    path, told = asked.path, FileCounts()
    try:
        with shelf.all_or_none():
            known, evidence, parts = _parts(asked)
            first = next(parts)
            request = ReadRequest(choices=choices)
            found = chain.from_iterable(known.read(part, request) for part in chain([first], parts))
            items = tuple(_items(path, shelved(found, path.name, (told, shelf), watch), told))
    except WeirError as error:
        return error
    except RecursionError:
        return FormatError(path, "data nested too deeply", "some 200 levels")
    record: dict[str, Any] = {
        "file": str(path),
        "kind": known.name,
        "what": known.title,
        "evidence": evidence,
        "columns": {item.role: item.field for item in items if isinstance(item, Used)},
        "notes": list(dict.fromkeys(item.text for item in items if isinstance(item, FileRemark))),
    }
    split = asked.split or _split(first.stem)
    if split != "test" and not asked.split:
        record["notes"].append(f"the split {split}, by the file's name")
    return FileRead(FileFound(str(path), first.stem, items, told, split), record)


def _parts(asked: FileAsked) -> tuple[Reader, str, Iterator[Contents]]:
    """The reader of a file, the evidence, and what it holds: in batches where it is large and rows stand alone."""
    batches = row_batches(asked.path, asked.columns)
    if batches is not None:
        head = next(batches)
        known, evidence = chosen(head, asked.kind)
        if known.by_row:
            return known, evidence, chain([head], batches)
    contents = read_contents(asked.path, asked.columns)
    return *chosen(contents, asked.kind), iter([contents])


def shelved(
    found: Iterable[Item], name: str, into: tuple[FileCounts, DocumentShelf], watch: Watch
) -> Iterator[Item]:
    """What was found but for documents with an identifier, which go on the shelf; name: of the file, for the watch."""
    told, shelf = into
    count = 0
    for item in found:
        if not isinstance(item, Document) or not item.key.id:
            yield item
            continue
        keep_document(item, item.key.id, told, shelf)
        count += 1
        if count % _TOLD_ROWS == 0:
            watch(f"{name}: {count:,} documents", 0, 1)


def _split(stem: str) -> str:
    """The split that a file's name is: "train" of train.tsv and train-00000-of-00001.parquet; "test" for others."""
    named = re.fullmatch(r"(train|dev|valid|validation|val|test)(-\d+-of-\d+)?", stem.lower())
    return named[1] if named else "test"


def _items(path: Path, items: Iterator[Item], told: FileCounts) -> Iterator[Item]:
    """The items; raises FormatError where there is nothing among them but notes and refusals, and no document."""
    something, first = False, ""
    for item in items:
        something = something or not isinstance(item, (FileRemark, Used, Refused))
        if not first and isinstance(item, (FileRemark, Refused)):
            first = item.text if isinstance(item, FileRemark) else f"{item.where}: {item.reason}"
        yield item
    if not something and not told.counts and not told.left_out:
        raise FormatError(path, f"nothing to import ({first or 'no row'})", "queries, judgments or rankings")


def shelve_corpus(path: Path, shelf: DocumentShelf, watch: Watch = unwatched) -> None:
    """Put the documents of a collection, or of one file of them, on the shelf; raises FormatError."""
    single = path.is_file() and path.suffix not in (".toml", ".zip")
    part = CollectionPart(path) if single else find_layout(path).need_documents()
    for count, item in enumerate(_documents(part), 1):
        shelf.add(item.key.id, item)
        if count % _TOLD_ROWS == 0:
            watch(f"{part.name}: {count:,} documents", 0, 1)


def _documents(part: CollectionPart) -> Iterator[Document]:
    for batch in read_documents(part):
        metadata = batch.metadata.tolist() if batch.metadata is not None else [""] * len(batch)
        columns = (batch.ids.tolist(), batch.titles.tolist(), batch.texts.tolist(), metadata)
        for name, title, text, more in zip(*columns, strict=True):
            yield Document(ItemKey(name, text), "", title, json.loads(more) if more else {})
