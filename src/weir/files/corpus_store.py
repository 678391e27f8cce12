"""Keep a collection's documents in memory-mapped column files."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.filters import FieldColumn, FieldKind, KindsSeen, Scalar, cells, flattened, unknown_field
from weir.core.strings import (
    Bytes,
    HashIndex,
    Ids,
    Int64,
    StringColumn,
    Strings,
    hash_strings,
    shown_beginning,
)
from weir.errors import FormatError, StoreError, StoreWarning, give_warning, is_shortage
from weir.files.atomic import atomic_dir, storing, writable
from weir.files.integrity import (
    BLOCK_BYTES,
    SEAL,
    Checksum,
    checksums_read,
    content_hash_of,
    open_folder,
    read_array,
    read_sealed,
    seal_folder,
    write_sealed,
)
from weir.files.json_files import parse_block
from weir.files.json_record import read_json
from weir.files.layouts import CollectionPart
from weir.files.leases import locked
from weir.files.records import duplicate, read_documents
from weir.settings import settings

# Text columns in files: written as they grow, memory-mapped, verified by checksum before first use.
#
# A column is two files: `<name>.utf8`, the concatenated bytes of its texts, and `<name>.offsets`, little-endian
# int64[n + 1], the start of each text and the end of the last.

BATCH_STRINGS = 4096
"""Strings read at a time."""


def _column_files(name: str) -> tuple[str, str]:
    return f"{name}.utf8", f"{name}.offsets"


class _ColumnHash:
    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self._hash = (hashlib.sha256(), hashlib.sha256())

    @staticmethod
    def of(column: StringColumn) -> bytes:
        whole = _ColumnHash()
        for start in range(0, len(column), BATCH_STRINGS):
            whole.append(column.slice(start, start + BATCH_STRINGS))
        return whole.digest()

    def append(self, texts: Strings) -> tuple[bytes, bytes]:
        """Add texts; return the bytes for the column's text file and for its offsets file."""
        first = int(texts.ptr[0])
        offsets = (texts.ptr[1:] + (self.bytes - first)).astype("<i8", copy=False).tobytes()
        data = texts.data[first : int(texts.ptr[-1])].tobytes()
        for digest, part in zip(self._hash, (data, offsets), strict=True):
            digest.update(part)
        self.bytes += len(data)
        self.rows += len(texts)
        return data, offsets

    def digest(self) -> bytes:
        return self._hash[0].digest() + self._hash[1].digest()


class ColumnWriter:
    """Writes a text column to two new files, in batches, and hashes it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._paths = tuple(folder / file for file in _column_files(name))
        self._data, self._offsets = (path.open("wb") for path in self._paths)
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self.hash = _ColumnHash()

    def append(self, texts: Strings) -> None:
        """Write a batch of texts."""
        for file, part in zip((self._data, self._offsets), self.hash.append(texts), strict=True):
            file.write(part)

    def close(self) -> None:
        try:
            self._data.close()
        finally:
            self._offsets.close()

    def remove(self) -> None:
        """Delete the column's two files."""
        for path in self._paths:
            path.unlink()


@dataclass(eq=False)
class _CheckedFile:
    """A memory-mapped file whose blocks are checked before their first use."""

    path: Path
    checksum: Checksum
    mend: Callable[[StoreError], None]
    """Rebuilds the damaged file with the same bytes, or raises StoreError."""
    raw: Bytes = field(init=False)
    _undamaged_store: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        empty = self.checksum.bytes == 0  # which cannot be mapped
        self.raw = np.empty(0, np.uint8) if empty else np.asarray(np.memmap(self.path, np.uint8, "r"))
        self._undamaged_store = np.zeros(len(self.checksum.blocks), np.bool_)

    def need(self, start: int, stop: int) -> None:
        """Verify the blocks with bytes start..stop-1 before they are read.

        A damaged file is rebuilt; raises StoreError if that fails.
        """
        first, last = start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)
        if stop <= start or self._undamaged_store[first:last].all():
            return
        damage = self._damage(first, last)
        if damage is None:
            return
        self.mend(StoreError(f"{self.path}: changed since it was written, {damage}"))
        self.__post_init__()
        damage = self._damage(first, last)
        if damage is not None:
            raise StoreError(f"{self.path}: damaged again, {damage}; is the disk failing?")

    def need_all(self, starts: Int64, stops: Int64) -> None:
        some = stops > starts
        first, last = starts[some] // BLOCK_BYTES, (stops[some] - 1) // BLOCK_BYTES
        for start, stop in {*zip(first.tolist(), last.tolist(), strict=True)}:
            self.need(start * BLOCK_BYTES, (stop + 1) * BLOCK_BYTES)

    def _damage(self, first: int, last: int) -> str | None:
        for number in (first + np.flatnonzero(~self._undamaged_store[first:last])).tolist():
            at = number * BLOCK_BYTES
            if zlib.crc32(self.raw[at : at + BLOCK_BYTES].data) != self.checksum.blocks[number]:
                return f"in bytes {at} and following"
            self._undamaged_store[number] = True
        return None


@dataclass(frozen=True, eq=False, repr=False)
class _StoredStrings:
    """Texts in two memory-mapped files; reading raises StoreError for damage that cannot be repaired."""

    data: _CheckedFile
    offsets: _CheckedFile

    def __repr__(self) -> str:
        return f"<StoredStrings: {shown_beginning(self)}>"

    def __len__(self) -> int:
        return self.offsets.checksum.bytes // 8 - 1

    def __getitem__(self, i: int) -> str:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.slice(i, i + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BATCH_STRINGS):
            yield from self.slice(start, start + BATCH_STRINGS)

    def lengths(self) -> Int64:
        return np.diff(self._cuts(0, len(self)))

    def slice(self, start: int, stop: int) -> Strings:
        start, stop, _ = slice(start, stop).indices(len(self))
        ptr = self._cuts(start, max(start, stop))
        self.data.need(int(ptr[0]), int(ptr[-1]))
        return Strings(self.data.raw, ptr)

    def take(self, codes: NDArray[np.integer]) -> Strings:
        at = np.asarray(codes, np.int64)
        at = np.where(at < 0, at + len(self), at)
        if len(at) and not 0 <= at.min() <= at.max() < len(self):
            raise IndexError(int(at.max()))
        self.offsets.need_all(8 * at, 8 * at + 16)
        ptr = self._ptr
        starts, stops = ptr[at], ptr[at + 1]
        if len(at) and not (
            starts.min() >= 0 and (starts <= stops).all() and stops.max() <= self.data.checksum.bytes
        ):
            raise self._senseless()
        self.data.need_all(starts, stops)
        return Strings(self.data.raw, ptr).take(at)

    def tolist(self) -> list[str]:
        return self.slice(0, len(self)).tolist()

    @property
    def _ptr(self) -> Int64:
        return self.offsets.raw.view("<i8")

    def _cuts(self, start: int, stop: int) -> Int64:
        self.offsets.need(8 * start, 8 * stop + 8)
        ptr = self._ptr[start : stop + 1]
        if not (ptr[0] >= 0 and ptr[-1] <= self.data.checksum.bytes and (ptr[1:] >= ptr[:-1]).all()):
            raise self._senseless()
        return ptr

    def _senseless(self) -> StoreError:
        return StoreError(f"{self.offsets.path}: its offsets are invalid; delete it to build it again")


# Metadata of stored documents as columns in files, each made when it is first asked for.
#
# They are in a folder `<file>.fields.weir` beside the store of the documents, which holds metadata as written:
#
#     fields.json          names and kinds of all fields, and the identity of the metadata
#     <hash of a name>/    a field: value.utf8 and value.offsets, number.npy if all values are numbers,
#                          field.json with its digest, and the checksums of its files
#
# All of it is derived data: damaged files and files of other metadata are made again. If nothing may be written, a
# field is made in memory, with the same digest.

FIELD_FORMAT = 1
CATALOGUE, FIELD_RECORD, VALUE, NUMBERS = "fields.json", "field.json", "value", "number.npy"
BATCH_DOCUMENTS = 4096
KINDS: tuple[FieldKind, ...] = ("text", "number", "list")


@dataclass(frozen=True, eq=False)
class _MetadataColumn:
    column: StringColumn | None
    """A JSON object for each document, "" for none; None if no document has any."""
    folder: Path | None
    """None if nothing may be written."""
    source: str
    """Name of the documents' file in messages."""

    @property
    def identity(self) -> str:
        if not isinstance(self.column, _StoredStrings):
            return ""
        files = (self.column.data.checksum, self.column.offsets.checksum)
        return hashlib.sha256(repr([file.to_json() for file in files]).encode()).hexdigest()[:32]

    def document_batches(self) -> Iterator[list[dict[str, tuple[list[Scalar], bool]]]]:
        """Yield batches of documents, each as {field: (values, True if they were a list)}."""
        for start in range(0, len(self.column or ()), BATCH_DOCUMENTS):
            assert self.column is not None
            texts = self.column.slice(start, start + BATCH_DOCUMENTS).tolist()
            block = "\n".join(text or "{}" for text in texts).encode()
            yield [flattened(row) for row in parse_block(block, start + 1, self.source).rows]


@dataclass(frozen=True, eq=False)
class _StoredFields:
    """The metadata fields of a stored corpus, read on first use; raises StoreError if their files cannot be
    written.
    """

    opened: Callable[[], _MetadataColumn]
    """Opens the metadata when a field is first asked for."""
    columns: dict[str, FieldColumn] = field(default_factory=dict)
    """Fields read so far."""

    def names(self) -> tuple[str, ...]:
        return tuple(self._kinds)

    def column(self, name: str) -> FieldColumn:
        if name not in self._kinds:
            raise unknown_field(name, self.names())
        if name in self.columns:
            return self.columns[name]
        metadata, kind = self._metadata, self._kinds[name]
        if metadata.folder is None:
            parts = [cells(documents, name, kind) for documents in metadata.document_batches()]
            texts, numbers = Strings.concatenated([part for part, _ in parts]), [part for _, part in parts]
            column = FieldColumn(
                texts,
                np.concatenate(numbers) if kind == "number" else None,
                kind == "list",
                _field_digest(kind, _ColumnHash.of(texts)),
            )
        else:
            key = hashlib.blake2b(name.encode("utf-8"), digest_size=8).hexdigest()
            place = metadata.folder / key
            about = {"format": FIELD_FORMAT, "metadata": metadata.identity, "field": name, "kind": kind}
            with locked(place.with_name(f".{key}.lock")):
                column = _read(place, about) or self._write(place, about)
        self.columns[name] = column
        return column

    @cached_property
    def _metadata(self) -> _MetadataColumn:
        return self.opened()

    @cached_property
    def _kinds(self) -> dict[str, FieldKind]:
        metadata, fields = self._metadata, KindsSeen()
        if metadata.column is None:
            return {}
        path = None if metadata.folder is None else metadata.folder / CATALOGUE
        if path is not None and path.exists():
            try:
                about = read_sealed(path)
                if (about.get("format"), about.get("metadata")) == (FIELD_FORMAT, metadata.identity):
                    kinds: dict[str, FieldKind] = about["kinds"]
                    if all(kind in KINDS for kind in kinds.values()):
                        return kinds
            except StoreError as error:
                _say_damaged(error)
        for documents in metadata.document_batches():
            for document in documents:
                fields.add(document)
        if path is not None:
            with storing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            about = {"format": FIELD_FORMAT, "metadata": metadata.identity, "kinds": fields.kinds()}
            write_sealed(path, about)
        return fields.kinds()

    def _write(self, place: Path, about: Mapping[str, object]) -> FieldColumn:
        name, kind = str(about["field"]), cast(FieldKind, about["kind"])
        with atomic_dir(place) as folder:
            writer, numbers = ColumnWriter(folder, VALUE), [np.empty(0)]
            try:
                for documents in self._metadata.document_batches():
                    texts, values = cells(documents, name, kind)
                    writer.append(texts)
                    numbers += [values] if kind == "number" else []
            finally:
                writer.close()
            if kind == "number":
                np.save(folder / NUMBERS, np.concatenate(numbers), allow_pickle=False)
            digest = _field_digest(kind, writer.hash.digest())
            seal_folder(folder, FIELD_RECORD, {**about, "digest": digest, "documents": writer.hash.rows})
        column = _read(place, about)
        if column is None:
            raise StoreError(f"{place} cannot be read back after it was written; is the disk failing?")
        return column


def _field_digest(kind: FieldKind, texts: bytes) -> str:
    return hashlib.sha256(kind.encode() + texts).hexdigest()[:32]


def _read(place: Path, about: Mapping[str, object]) -> FieldColumn | None:
    if not place.is_dir():
        return None
    try:
        record = open_folder(place, FIELD_RECORD)
        if any(record.get(key) != value for key, value in about.items()):
            return None
        data, offsets = _column_files(VALUE)
        empty = record["files"][data].bytes == 0  # which cannot be mapped
        raw = np.empty(0, np.uint8) if empty else np.memmap(place / data, np.uint8, "r")
        texts = Strings(np.asarray(raw), np.asarray(np.memmap(place / offsets, "<i8", "r")))
        numbers = None
        if about["kind"] == "number":
            numbers = read_array(place / NUMBERS, np.float64, (len(texts),))
        return FieldColumn(texts, numbers, about["kind"] == "list", str(record["digest"]))
    except (StoreError, KeyError, ValueError) as error:
        _say_damaged(error)
        return None


def _say_damaged(error: Exception) -> None:
    give_warning(StoreWarning(f"{error}; the field is read again"))


# A collection's documents as columns in files that open in milliseconds at any size.
#
# A store is a folder `<file>.weir` beside the documents, or in Weir's home if that place is read-only:
#
#     _id.utf8 _id.offsets     the texts of a column and their offsets; likewise title, text, and metadata (JSON
#                              objects), if documents have any
#     ids.hash.npy             the sorted 64-bit hashes of the ids
#     ids.code.npy             the document number of each hash
#     store.json               format, source, fingerprint, number of documents, columns,
#                              the length and the checksums of each file, and a checksum of its own
#
# It is derived data: a store whose source has changed is rebuilt silently, a damaged or older one with a
# StoreWarning. The source is identified by size, times and inode; if only size and modification time are equal, as
# after a copy, its SHA-256 is compared. Lengths are verified on opening, bytes block by block on first use: opening
# five million documents takes milliseconds, and no unverified byte decides a number.

FORMAT, FINGERPRINT = 3, 1
RECORD, HASHES, CODES = "store.json", "ids.hash.npy", "ids.code.npy"
SOURCE, CONTENT = "source", "content"
_DOCUMENT_COLUMNS = ("_id", "title", "text")
_COLUMNS = (*_DOCUMENT_COLUMNS, "metadata")
_HASH_BLOCK = 1 << 20  # ids hashed at a time


@dataclass(frozen=True, eq=False)
class CorpusStore:
    """An open store of a collection's documents."""

    path: Path
    """Path of the store; for documents in memory, of their file."""
    corpus: Corpus
    metadata: StringColumn | None
    """JSON objects, "" for none; None if no document has any."""
    all_keys: bool
    """True if metadata has all fields of the file; false in stores of older versions."""
    null_texts: int
    """Number of documents whose text was null, NaN or missing, and is empty here."""


def open_store(part: CollectionPart, beside: bool = True, read_only: bool = False) -> CorpusStore:
    """Return the store of a file of documents, built first if missing or outdated.

    beside: put the store next to the file if possible, else into Weir's home.
    read_only: write nothing; without a store, load the documents into memory.

    Warns (StoreWarning) of a rebuilt store. Raises FormatError for other files, StoreError for a damaged store
    without its source.
    """
    if read_only:
        store = _undamaged_store(part, beside) or _in_memory(part)
        column = _MetadataColumn(store.metadata, None, str(part))
        return replace(store, corpus=replace(store.corpus, metadata=_StoredFields(lambda: column)))
    store = _open(part, beside)
    fields = _StoredFields(partial(_metadata, part, beside))
    return replace(store, corpus=replace(store.corpus, metadata=fields))


def source_fingerprint(part: CollectionPart) -> str:
    """Return the fingerprint of the documents in a file, without making a store; raises FormatError for a file that
    is no collection.
    """
    hashes = {name: _ColumnHash() for name in _DOCUMENT_COLUMNS}
    for batch in read_documents(part):
        for name, column in zip(_DOCUMENT_COLUMNS, (batch.ids, batch.titles, batch.texts), strict=True):
            hashes[name].append(column)
    rows, titled = hashes["_id"].rows, hashes["title"].bytes > 0
    return _fingerprint(rows, {n: h.digest() for n, h in hashes.items() if n != "title" or titled})


def _undamaged_store(part: CollectionPart, beside: bool) -> CorpusStore | None:
    for place in store_paths(part, beside):
        with suppress(StoreError):
            store = _opened_store(place, part, read_only=True)
            if store is not None and store.all_keys:
                return store
    return None


def _in_memory(part: CollectionPart) -> CorpusStore:
    batches = list(read_documents(part))
    ids, titles, texts = (
        Strings.concatenated([getattr(batch, name) for batch in batches])
        for name in ("ids", "titles", "texts")
    )
    empty = [Strings.packed([b""] * len(batch)) for batch in batches]
    metadata = Strings.concatenated([b.metadata or none for b, none in zip(batches, empty, strict=True)])
    title = titles if len(titles.data) else None
    columns = {"_id": ids, "text": texts} | ({} if title is None else {"title": title})
    digests = {name: _ColumnHash.of(column) for name, column in columns.items()}
    corpus = Corpus(Ids.of(ids), texts, title, _fingerprint(len(ids), digests))
    nulls = sum(batch.null_texts for batch in batches)
    return CorpusStore(part.path, corpus, metadata if len(metadata.data) else None, True, nulls)


def _metadata(part: CollectionPart, beside: bool) -> _MetadataColumn:
    store = _open(part, beside, all_keys=True)
    name = store.path.name.removesuffix(".weir") + ".fields.weir"
    place = store.path.with_name(name)
    if not (place.is_dir() or writable(place.parent)):
        place = store_paths(part, beside=False)[0].with_name(name)
    return _MetadataColumn(store.metadata, place, str(place))


def _open(part: CollectionPart, beside: bool, all_keys: bool = False) -> CorpusStore:
    places, damage = store_paths(part, beside), list[str]()
    for place in places:
        try:
            store = _opened_store(place, part)
        except StoreError as error:
            damage.append(str(error))  # the error itself would keep the damaged store mapped
            continue
        if store is not None and (store.all_keys or not all_keys):
            return store
    if not part.path.exists():
        if damage or any(place.exists() for place in places):
            raise _unmendable(damage[0] if damage else f"{places[0]} is of another version", part)
        raise FormatError(part, "no such file", "the documents of a collection")
    place = next((p for p in places if writable(p.parent)), places[-1])
    with _store_lock(place):
        try:
            store = _opened_store(place, part)  # which another process may have built meanwhile
        except StoreError as error:
            store, damage = None, [str(error)]
        if store is None or (all_keys and not store.all_keys):
            if not damage and place.is_dir() and _record(place) is None:
                damage = [f"{place} is of another version"]
            if damage:
                give_warning(StoreWarning(f"{damage[0]}; the store is built again"))
            _build(place, part)
            store = _opened_store(place, part)
    if store is None:
        raise StoreError(f"{place} cannot be read back after it was written; is the disk failing?")
    return store


def _store_lock(place: Path, wait: bool = True) -> AbstractContextManager[bool]:
    return locked(place.with_name(f".{place.name}.lock"), wait)


def _unmendable(what: object, part: CollectionPart) -> StoreError:
    return StoreError(f"{what}, and {part} is not there to rebuild it")


def store_paths(part: CollectionPart, beside: bool = True) -> list[Path]:
    """Return the possible paths of a file's document store, the preferred first.

    beside: False for the path in Weir's home alone.
    """
    inner = "" if part.member is None else "." + part.member.replace("/", "-")
    name = f"{part.path.name}{inner}.weir"
    key = hashlib.blake2b(
        str(part.path.resolve()).encode("utf-8", "surrogateescape"), digest_size=8
    ).hexdigest()
    home = settings().home / "stores" / f"{key}-{name}"
    return [part.path.with_name(name), home] if beside else [home]


def _fingerprint(documents: int, digests: dict[str, bytes]) -> str:
    whole = hashlib.sha256(f"weir documents {FINGERPRINT} {documents}".encode())
    for name, digest in sorted(digests.items()):
        whole.update(name.encode() + b"\0" + digest)
    return whole.hexdigest()[:32]


# Building


def _build(place: Path, part: CollectionPart) -> None:
    with atomic_dir(place) as folder:
        now = _file_identity(part, part.path.stat())
        # A CRC would not do: a gzip file ends in the CRC of its content, so a change of both can keep its own CRC.
        source = now | {CONTENT: content_hash_of(part.path, tuple(now.values()))}
        columns: dict[str, ColumnWriter] = {}
        with ExitStack() as opened:
            for name in _COLUMNS:
                columns[name] = ColumnWriter(folder, name)
                opened.callback(columns[name].close)
            nulls = 0
            for batch in read_documents(part):
                columns["_id"].append(batch.ids)
                columns["title"].append(batch.titles)
                columns["text"].append(batch.texts)
                columns["metadata"].append(batch.metadata or Strings.packed([b""] * len(batch)))
                nulls += batch.null_texts
        rows = columns["_id"].hash.rows
        if nulls and nulls == rows:
            raise FormatError(
                part, "no document with a 'text'", "texts under that key, or 'contents', 'body' ..."
            )
        for name in ("title", "metadata"):
            if columns[name].hash.bytes == 0:
                columns.pop(name).remove()
        _write_index(folder, part)
        digests = {name: column.hash.digest() for name, column in columns.items() if name != "metadata"}
        about = {
            "format": FORMAT,
            "documents": rows,
            "fingerprint": _fingerprint(rows, digests),
            SOURCE: source,
            "null_texts": nulls,
            "columns": list(columns),
            "all_keys": True,
        }
        seal_folder(folder, RECORD, about)


def _file_identity(part: CollectionPart, stat: os.stat_result) -> dict[str, object]:
    file: dict[str, object] = {"name": str(part.member or part.path.name), "size": stat.st_size}
    return file | {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns, "inode": stat.st_ino}


def _write_index(folder: Path, part: CollectionPart) -> None:
    data, offsets = (np.memmap(folder / file, np.uint8, "r") for file in _column_files("_id"))
    ids = Strings(data, offsets.view("<i8"))
    n = len(ids)
    hashes = np.empty(n, np.uint64)
    for at in range(0, n, _HASH_BLOCK):
        ptr = ids.ptr[at : at + _HASH_BLOCK + 1]
        hashes[at : at + _HASH_BLOCK] = hash_strings(ids.data, ptr[:-1], np.diff(ptr))
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    hashes = hashes[order]
    for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
        run = at + 1
        while run < n and hashes[run] == hashes[at]:
            if ids[int(order[run])] == ids[int(order[at])]:
                raise duplicate(part, ids[int(order[at])])
            run += 1
    np.save(folder / HASHES, hashes, allow_pickle=False)
    np.save(folder / CODES, order, allow_pickle=False)


# Opening


def _opened_store(place: Path, part: CollectionPart | None, read_only: bool = False) -> CorpusStore | None:
    about = _record(place) if place.is_dir() else None
    if about is None or (part is not None and not _is_up_to_date(place, about, part, read_only)):
        return None
    try:
        files = checksums_read(about["files"])
        rows, mend = int(about["documents"]), partial(_mend, place, None if read_only else part, about)
        for name in (HASHES, CODES):
            files[name].verify(place / name, 0, 0)  # its length
        columns = {}
        for name in about["columns"]:
            for file in _column_files(name):
                files[file].verify(place / file, 0, 0)  # its length
            pair = (_CheckedFile(place / file, files[file], mend) for file in _column_files(name))
            columns[name] = _StoredStrings(*pair)
        if any(len(column) != rows for column in columns.values()):
            raise StoreError(f"{place}: columns of other lengths than {RECORD} says")
        ids = Ids(columns["_id"], partial(_index, place, rows, files, mend))
        corpus = Corpus(ids, columns["text"], columns.get("title"), str(about["fingerprint"]))
        whole = about.get("all_keys") is True
        return CorpusStore(place, corpus, columns.get("metadata"), whole, int(about["null_texts"]))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{place}: damaged ({type(error).__name__}: {error})") from None


def _record(place: Path) -> dict[str, Any] | None:
    path = place / RECORD
    try:
        about = read_sealed(path)
    except StoreError:
        with suppress(OSError, FormatError):  # the first version did not seal its records
            record = read_json(path)
            if isinstance(record, dict) and record.get("format") == 1 and SEAL not in record:
                return None
        raise
    return about if about.get("format") == FORMAT else None


def _index(
    place: Path, rows: int, files: dict[str, Checksum], mend: Callable[[StoreError], None]
) -> HashIndex:
    for name in (HASHES, CODES):
        try:
            files[name].verify(place / name)
        except StoreError as error:
            mend(error)
            files[name].verify(place / name)
    hashes, codes = (
        read_array(place / name, kind, (rows,)) for name, kind in ((HASHES, np.uint64), (CODES, np.int32))
    )
    if rows and not 0 <= int(codes.min()) <= int(codes.max()) < rows:
        raise StoreError(f"{place / CODES}: its document numbers are invalid; delete it to build it again")
    return HashIndex(hashes, codes)


def _mend(place: Path, part: CollectionPart | None, about: dict[str, Any], error: StoreError) -> None:
    if part is None or not part.path.exists():
        raise _unmendable(error, part) if part is not None else error
    if not _is_up_to_date(place, about, part, read_only=True):
        raise StoreError(f"{error}, and {part} has changed since; run the command again to read it")
    with _store_lock(place):
        give_warning(StoreWarning(f"{error}; the store is built again"))
        try:
            _build(place, part)
        except StoreError:
            if os.name == "posix":
                raise
            # Windows leaves a mapped file where it is: without its record, the next process does not map the store.
            (place / RECORD).unlink(missing_ok=True)
            raise StoreError(f"{error}; run it again, which builds the store anew") from None
    built = _record(place)
    if built is None or {**built, SOURCE: None} != {**about, SOURCE: None}:
        raise StoreError(f"{error}; the rebuilt store differs: run the command again")


def _is_up_to_date(place: Path, about: dict[str, Any], part: CollectionPart, read_only: bool) -> bool:
    try:
        now = _file_identity(part, part.path.stat())
    except FileNotFoundError:
        return True
    source = about.get(SOURCE)
    if not isinstance(source, dict) or any(
        source.get(name) != now[name] for name in ("name", "size", "mtime_ns")
    ):
        return False
    if all(source.get(name) == value for name, value in now.items()):
        return True
    if source.get(CONTENT) != content_hash_of(part.path, tuple(now.values())):
        return False
    if not read_only and writable(place):
        with _store_lock(place, wait=False) as alone:
            if alone and _record(place) == about:
                write_sealed(place / RECORD, {**about, SOURCE: {**source, **now}}, durable=False)
    return True
