"""Metadata of stored documents as columns in files, each made when it is first asked for.

They stand in a folder `<file>.fields.weir` beside the store of the documents, which holds metadata as it was written:

    fields.json          the names and kinds of all fields, and of which metadata
    <hash of a name>/    a field: value.utf8 and value.offsets (see stored_strings.py), number.npy where all are
                         numbers, field.json with its digest, and the checksums of its files

All of it is derived data: what is damaged, or of other metadata, is made again. Where nothing may be written, a field
is made in memory, with the same digest.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from weir.core.document_fields import (
    FieldColumn,
    FieldKind,
    KindsSeen,
    Scalar,
    cells,
    flattened,
    unknown_field,
)
from weir.core.strings import StringColumn, Strings
from weir.errors import StoreError, StoreWarning
from weir.io.collections.json_lines import parse_block
from weir.io.collections.stored_strings import ColumnHash, ColumnWriter, StoredStrings, column_files
from weir.io.storage.arrays import read_array
from weir.io.storage.atomic import atomic_dir, locked, storing
from weir.io.storage.sealed import open_folder, read_sealed, seal_folder, write_sealed

__all__ = ["MetadataColumn", "StoredFields"]

FORMAT = 1
CATALOGUE, RECORD, VALUE, NUMBERS = "fields.json", "field.json", "value", "number.npy"
BATCH_DOCUMENTS = 4096
KINDS: tuple[FieldKind, ...] = ("text", "number", "list")


@dataclass(frozen=True, eq=False)
class MetadataColumn:
    """The metadata of documents as it was written, and the folder in which its fields may stand.

    column: a JSON object for each document, "" for one without; None where no document has any; folder: None where
    nothing may be written; source: what messages call the documents.
    """

    column: StringColumn | None
    folder: Path | None
    source: str

    @property
    def identity(self) -> str:
        """What tells this metadata from other: a hash of the checksums of its files."""
        if not isinstance(self.column, StoredStrings):
            return ""
        files = (self.column.data.checksum, self.column.offsets.checksum)
        return hashlib.sha256(repr([file.to_json() for file in files]).encode()).hexdigest()[:32]

    def documents(self) -> Iterator[list[dict[str, tuple[list[Scalar], bool]]]]:
        """The fields of all documents, some thousand documents at a time."""
        for start in range(0, len(self.column or ()), BATCH_DOCUMENTS):
            assert self.column is not None
            texts = self.column.slice(start, start + BATCH_DOCUMENTS).tolist()
            block = "\n".join(text or "{}" for text in texts).encode()
            yield [flattened(row) for row in parse_block(block, start + 1, self.source).rows]


@dataclass(frozen=True, eq=False)
class StoredFields:
    """The fields of a stored corpus; opened: gives its metadata, when a field is first asked for.

    Raises StoreError, when a field is read, where its files cannot be written.
    """

    opened: Callable[[], MetadataColumn]
    held: dict[str, FieldColumn] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """See DocumentFields."""
        return tuple(self._kinds)

    def column(self, name: str) -> FieldColumn:
        """See DocumentFields."""
        if name not in self._kinds:
            raise unknown_field(name, self.names())
        folder = self._metadata.folder
        if name not in self.held and folder is None:
            self.held[name] = self._in_memory(name, self._kinds[name])
        elif name not in self.held and folder is not None:
            key = hashlib.blake2b(name.encode("utf-8"), digest_size=8).hexdigest()
            place, about = folder / key, self._about(name)
            with locked(place.with_name(f".{key}.lock")):
                self.held[name] = _read(place, about) or self._made(place, about)
        return self.held[name]

    @cached_property
    def _metadata(self) -> MetadataColumn:
        return self.opened()

    @cached_property
    def _kinds(self) -> dict[str, FieldKind]:
        metadata, seen = self._metadata, KindsSeen()
        if metadata.column is None:
            return {}
        path = None if metadata.folder is None else metadata.folder / CATALOGUE
        known = None if path is None else _catalogue(path, metadata.identity)
        if known is not None:
            return known
        for documents in metadata.documents():
            for document in documents:
                seen.add(document)
        if path is None:
            return seen.kinds()
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"format": FORMAT, "metadata": metadata.identity, "kinds": seen.kinds()})
        return seen.kinds()

    def _about(self, name: str) -> dict[str, object]:
        """What the record of a field says of where it is from."""
        identity = self._metadata.identity
        return {"format": FORMAT, "metadata": identity, "field": name, "kind": self._kinds[name]}

    def _in_memory(self, name: str, kind: FieldKind) -> FieldColumn:
        """A field where nothing may be written."""
        parts = [cells(documents, name, kind) for documents in self._metadata.documents()]
        texts, numbers = Strings.concatenated([part for part, _ in parts]), [part for _, part in parts]
        digest = hashlib.sha256(kind.encode() + ColumnHash.of(texts)).hexdigest()[:32]
        return FieldColumn(
            texts, np.concatenate(numbers) if kind == "number" else None, kind == "list", digest
        )

    def _made(self, place: Path, about: Mapping[str, object]) -> FieldColumn:
        """Write a field, and open it."""
        name, kind = str(about["field"]), cast(FieldKind, about["kind"])
        with atomic_dir(place) as folder:
            writer, numbers = ColumnWriter(folder, VALUE), [np.empty(0)]
            try:
                for documents in self._metadata.documents():
                    texts, values = cells(documents, name, kind)
                    writer.append(texts)
                    numbers += [values] if kind == "number" else []
            finally:
                writer.close()
            if kind == "number":
                np.save(folder / NUMBERS, np.concatenate(numbers), allow_pickle=False)
            digest = hashlib.sha256(kind.encode() + writer.digest()).hexdigest()[:32]
            seal_folder(folder, RECORD, {**about, "digest": digest, "documents": writer.rows})
        found = _read(place, about)
        if found is None:
            raise StoreError(f"{place} cannot be read back after it was written; is the disk failing?")
        return found


def _catalogue(path: Path, identity: str) -> dict[str, FieldKind] | None:
    """The kinds of all fields by name, as they were written; None where they were not, or for other metadata."""
    if not path.exists():
        return None
    try:
        about = read_sealed(path)
    except StoreError as error:
        _say_damaged(error)
        return None
    if (about.get("format"), about.get("metadata")) != (FORMAT, identity):
        return None
    kinds: dict[str, FieldKind] = about["kinds"]
    return kinds if all(kind in KINDS for kind in kinds.values()) else None


def _read(place: Path, about: Mapping[str, object]) -> FieldColumn | None:
    """A field as it was written, every byte compared; None where it was not, is damaged, or of other metadata."""
    if not place.is_dir():
        return None
    try:
        found = open_folder(place, RECORD)
        if any(found.get(key) != value for key, value in about.items()):
            return None
        return _opened(place, about["kind"], found)
    except (StoreError, KeyError, ValueError) as error:
        _say_damaged(error)
        return None


def _opened(place: Path, kind: object, found: dict[str, Any]) -> FieldColumn:
    data, offsets = column_files(VALUE)
    size = found["files"][data].bytes
    raw = np.memmap(place / data, np.uint8, "r") if size else np.empty(0, np.uint8)
    texts = Strings(np.asarray(raw), np.asarray(np.memmap(place / offsets, "<i8", "r")))
    numbers = read_array(place / NUMBERS, np.float64, (len(texts),)) if kind == "number" else None
    return FieldColumn(texts, numbers, kind == "list", str(found["digest"]))


def _say_damaged(error: Exception) -> None:
    warnings.warn(StoreWarning(f"{error}; the field is read again"), stacklevel=4)
