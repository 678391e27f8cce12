"""A collection's documents as columns in files that open in milliseconds, whatever their size.

A store is a folder `<file>.weir` beside the documents, or in Weir's home where that place is read-only:

    _id.utf8 _id.offsets     the texts of a column and where each begins (see stored_strings.py); likewise
                             title, text, and metadata, JSON objects, where documents have any
    ids.hash.npy             the sorted 64-bit hashes of the ids
    ids.code.npy             the document each of them belongs to
    store.json               format, source, fingerprint, number of documents, columns,
                             the length and the checksums of each file, and a checksum of its own

It is derived data: one whose source has changed is rebuilt without a question, one that is damaged or of another
version with one line (StoreWarning). The source is known by its size, its times and its place on the disk; where only
the size and the time of its last change are as they were, as after a copy, it is read and compared with its SHA-256.
The fields of its metadata stand beside it (field_store.py). Lengths are compared when it is opened; bytes, a block at a
time, when they are first used: opening five million documents takes milliseconds, and what decides a number was
verified before.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.corpus import Corpus
from weir.core.hashing import hash_strings
from weir.core.ids import HashIndex, Ids
from weir.core.strings import StringColumn, Strings
from weir.errors import FormatError, StoreError, StoreWarning, is_shortage
from weir.io.collections.field_store import MetadataColumn, StoredFields
from weir.io.collections.layout import CollectionPart
from weir.io.collections.records import duplicate, read_documents
from weir.io.collections.stored_strings import (
    CheckedFile,
    ColumnHash,
    ColumnWriter,
    StoredStrings,
    column_files,
)
from weir.io.storage.arrays import read_array
from weir.io.storage.atomic import atomic_dir, locked, writable
from weir.io.storage.checksums import Checksum, checksums_read
from weir.io.storage.sealed import read_sealed, seal_folder, write_sealed
from weir.settings import settings

__all__ = ["CorpusStore", "fingerprint_of", "open_corpus", "open_store", "source_fingerprint", "store_paths"]

FORMAT, FINGERPRINT = 3, 1
RECORD, HASHES, CODES = "store.json", "ids.hash.npy", "ids.code.npy"
SOURCE, CONTENT = "source", "content"
_DOCUMENT_COLUMNS = ("_id", "title", "text")
_COLUMNS = (*_DOCUMENT_COLUMNS, "metadata")
_HASH_BLOCK = 1 << 20  # ids hashed at a time


@dataclass(frozen=True, eq=False)
class CorpusStore:
    """An opened store: where it is, its documents, its metadata column, and what reading the source met.

    path: of the store, or of the documents' file where they are held in memory;
    metadata: JSON objects ("" where a document has none), or None when no document has any; all_keys: whether it holds
    all that documents have beside identifier, title and text, as every store does that was built since fields can be
    searched. null_texts: documents whose text was null, NaN or absent, and is empty here.
    """

    path: Path
    corpus: Corpus
    metadata: StringColumn | None
    all_keys: bool
    null_texts: int


def open_corpus(part: CollectionPart, beside: bool = True) -> Corpus:
    """The documents of a file, through its store; see `open_store`."""
    return open_store(part, beside).corpus


def open_store(part: CollectionPart, beside: bool = True, read_only: bool = False) -> CorpusStore:
    """Open the store of a documents file, building it on the first call or when the file has changed.

    beside: keep the store next to the file where that is possible; read_only: write nothing, and hold the documents in
    memory where there is no store of them. Warns (StoreWarning) where it was damaged, or of another version, and is
    built again. Raises FormatError for a file that is no collection, StoreError when the store cannot be written, or is
    damaged with no file to rebuild it from.
    """
    if read_only:
        store = _sound(part, beside) or _held(part)
        column = MetadataColumn(store.metadata, None, str(part))
        return replace(store, corpus=replace(store.corpus, metadata=StoredFields(lambda: column)))
    store = _open(part, beside)
    fields = StoredFields(partial(_metadata, part, beside))
    return replace(store, corpus=replace(store.corpus, metadata=fields))


def source_fingerprint(part: CollectionPart) -> str:
    """The fingerprint of the documents of a file as they stand there now, whatever a store says; nothing is written.

    Raises FormatError for a file that is no collection.
    """
    hashes = {name: ColumnHash() for name in _DOCUMENT_COLUMNS}
    for batch in read_documents(part):
        for name, column in zip(_DOCUMENT_COLUMNS, (batch.ids, batch.titles, batch.texts), strict=True):
            hashes[name].append(column)
    rows, titled = hashes["_id"].rows, hashes["title"].bytes > 0
    return _fingerprint(rows, {n: h.digest() for n, h in hashes.items() if n != "title" or titled})


def _sound(part: CollectionPart, beside: bool) -> CorpusStore | None:
    """The store of a documents file where there is one, with all metadata, as the file is now."""
    for place in store_paths(part, beside):
        with suppress(StoreError):
            store = _opened(place, part, read_only=True)
            if store is not None and store.all_keys:
                return store
    return None


def _held(part: CollectionPart) -> CorpusStore:
    """The documents of a file in memory."""
    batches = list(read_documents(part))
    ids, titles, texts = (
        Strings.concatenated([getattr(batch, name) for batch in batches])
        for name in ("ids", "titles", "texts")
    )
    empty = [Strings.packed([b""] * len(batch)) for batch in batches]
    metadata = Strings.concatenated([b.metadata or none for b, none in zip(batches, empty, strict=True)])
    title = titles if len(titles.data) else None
    columns = {"_id": ids, "text": texts} | ({} if title is None else {"title": title})
    digests = {name: ColumnHash.of(column) for name, column in columns.items()}
    corpus = Corpus(Ids.of(ids), texts, title, _fingerprint(len(ids), digests))
    nulls = sum(batch.null_texts for batch in batches)
    return CorpusStore(part.path, corpus, metadata if len(metadata.data) else None, True, nulls)


def _metadata(part: CollectionPart, beside: bool) -> MetadataColumn:
    """The metadata of a documents file, whose store is built again where it was built without all of it."""
    store = _open(part, beside, all_keys=True)
    name = store.path.name.removesuffix(".weir") + ".fields.weir"
    place = store.path.with_name(name)
    if not (place.is_dir() or writable(place.parent)):
        place = store_paths(part, beside=False)[0].with_name(name)
    return MetadataColumn(store.metadata, place, str(place))


def _open(part: CollectionPart, beside: bool, all_keys: bool = False) -> CorpusStore:
    places, damage = store_paths(part, beside), list[StoreError]()
    for place in places:
        try:
            store = _opened(place, part)
        except StoreError as error:
            damage.append(error)
            continue
        if store is not None and (store.all_keys or not all_keys):
            return store
    if not part.path.exists():
        if damage or any(place.exists() for place in places):
            raise _unmendable(damage[0] if damage else f"{places[0]} is of another version", part)
        raise FormatError(part, "no such file", "the documents of a collection")
    place = next((p for p in places if writable(p.parent)), places[-1])
    with _alone(place):
        store = _again(place, part, damage, all_keys)
    if store is None:
        raise StoreError(f"{place} cannot be read back after it was written; is the disk failing?")
    return store


def _again(place: Path, part: CollectionPart, damage: list[StoreError], all_keys: bool) -> CorpusStore | None:
    """The store, which another process may have built meanwhile, else built now; the caller holds the place."""
    try:
        store = _opened(place, part)
    except StoreError as error:
        store, damage = None, [error]
    if store is not None and (store.all_keys or not all_keys):
        return store
    if not damage and place.is_dir() and _record(place) is None:
        damage = [StoreError(f"{place} is of another version")]
    if damage:
        warnings.warn(StoreWarning(f"{damage[0]}; the store is built again"), stacklevel=5)
    _build(place, part)
    return _opened(place, part)


def _alone(place: Path) -> AbstractContextManager[bool]:
    return locked(place.with_name(f".{place.name}.lock"))


def _unmendable(what: object, part: CollectionPart) -> StoreError:
    return StoreError(f"{what}, and {part} is not there to rebuild it")


def store_paths(part: CollectionPart, beside: bool = True) -> list[Path]:
    """Where the store of a file may lie, the preferred place first."""
    inner = "" if part.member is None else "." + part.member.replace("/", "-")
    name = f"{part.path.name}{inner}.weir"
    key = hashlib.blake2b(
        str(part.path.resolve()).encode("utf-8", "surrogateescape"), digest_size=8
    ).hexdigest()
    home = settings().home / "stores" / f"{key}-{name}"
    return [part.path.with_name(name), home] if beside else [home]


def fingerprint_of(store: Path) -> str:
    """Hash a store's columns again, to compare with the fingerprint it records; raises StoreError."""
    opened = _opened(store, None)
    if opened is None:
        raise StoreError(f"{store} is of another version")
    corpus = opened.corpus
    columns = (("_id", corpus.ids.column), ("title", corpus.title), ("text", corpus.text))
    whole = {name: column.slice(0, len(corpus)) for name, column in columns if column is not None}
    return _fingerprint(len(corpus), {name: ColumnHash.of(column) for name, column in whole.items()})


def _fingerprint(documents: int, digests: dict[str, bytes]) -> str:
    whole = hashlib.sha256(f"weir documents {FINGERPRINT} {documents}".encode())
    for name, digest in sorted(digests.items()):
        whole.update(name.encode() + b"\0" + digest)
    return whole.hexdigest()[:32]


# Building


def _build(place: Path, part: CollectionPart) -> None:
    with atomic_dir(place) as folder:
        now = _source(part, part.path.stat())
        source = now | {CONTENT: _content(part.path, tuple(now.values()))}
        columns: dict[str, ColumnWriter] = {}
        with ExitStack() as opened:
            for name in _COLUMNS:
                columns[name] = ColumnWriter(folder, name)
                opened.callback(columns[name].close)
            nulls = _fill(columns, part)
        rows = columns["_id"].rows
        for name in ("title", "metadata"):
            if columns[name].bytes == 0:
                columns.pop(name).remove()
        _write_index(folder, part)
        digests = {name: column.digest() for name, column in columns.items() if name != "metadata"}
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


def _source(part: CollectionPart, stat: os.stat_result) -> dict[str, object]:
    """What tells that a file is still the one that was read, without reading it.

    No program sets the time at which a file's place or times were changed, whatever it does to the others.
    """
    told: dict[str, object] = {"name": str(part.member or part.path.name), "size": stat.st_size}
    return told | {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns, "inode": stat.st_ino}


@lru_cache(maxsize=256)
def _content(path: Path, seen: object) -> str:
    """The SHA-256 of a file; seen: what tells that it was not touched since it was read; a process reads it once.

    A CRC would not do: a packed file ends in that of its content, so that a change of both leaves its own as it was.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fill(columns: dict[str, ColumnWriter], part: CollectionPart) -> int:
    """Append every document of the file to the columns; returns how many had no text."""
    nulls = 0
    for batch in read_documents(part):
        columns["_id"].append(batch.ids)
        columns["title"].append(batch.titles)
        columns["text"].append(batch.texts)
        columns["metadata"].append(batch.metadata or Strings.packed([b""] * len(batch)))
        nulls += batch.null_texts
    if nulls and nulls == columns["_id"].rows:
        raise FormatError(part, "no document with a 'text'", "texts under the key 'text'")
    return nulls


def _write_index(folder: Path, part: CollectionPart) -> None:
    """Hash and sort the ids, block by block; raises FormatError for an id that occurs twice."""
    data, offsets = (np.memmap(folder / file, np.uint8, "r") for file in column_files("_id"))
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


def _opened(place: Path, part: CollectionPart | None, read_only: bool = False) -> CorpusStore | None:
    """The store at a place; None where there is none, it is of another version, or its source has changed.

    Raises StoreError where it is damaged, as far as that is seen without reading the documents.
    """
    about = _record(place) if place.is_dir() else None
    if about is None or (part is not None and not _fresh(place, about, part, read_only)):
        return None
    try:
        files = checksums_read(about["files"])
        rows, mend = int(about["documents"]), _refused if read_only else partial(_mend, place, part, about)
        for name in (HASHES, CODES):
            files[name].verify(place / name, 0, 0)  # its length
        columns = {name: _column(place, name, files, mend) for name in about["columns"]}
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
    """What store.json says, None where it is of another version; raises StoreError for damage."""
    path = place / RECORD
    try:
        about = read_sealed(path)
    except StoreError:
        if _of_first_version(path):
            return None
        raise
    return about if about.get("format") == FORMAT else None


def _of_first_version(path: Path) -> bool:
    """Whether a record is of the version that did not seal its records."""
    with suppress(OSError, ValueError, RecursionError):
        about = json.loads(path.read_text(encoding="utf-8"))
        return isinstance(about, dict) and about.get("format") == 1 and "seal" not in about
    return False


def _column(
    place: Path, name: str, files: dict[str, Checksum], mend: Callable[[StoreError], None]
) -> StoredStrings:
    data, offsets = column_files(name)
    for file in (data, offsets):
        files[file].verify(place / file, 0, 0)  # its length
    return StoredStrings(*(CheckedFile(place / file, files[file], mend) for file in (data, offsets)))


def _index(
    place: Path, rows: int, files: dict[str, Checksum], mend: Callable[[StoreError], None]
) -> HashIndex:
    """Where the ids are found by their hashes, compared with its checksums."""
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
        raise StoreError(f"{place / CODES}: its numbers were never written so; delete it to build it again")
    return HashIndex(hashes, codes)


def _refused(error: StoreError) -> None:
    """Where nothing may be written, what is damaged stays so."""
    raise error


def _mend(place: Path, part: CollectionPart | None, about: dict[str, Any], error: StoreError) -> None:
    """Build a store again of which a part was found damaged while it was in use; the same bytes come back.

    Raises StoreError where the source is gone or is another one by now.
    """
    if part is None or not part.path.exists():
        raise _unmendable(error, part) if part is not None else error
    if not _fresh(place, about, part, read_only=True):
        raise StoreError(f"{error}, and {part} has changed since; start again to read it anew")
    with _alone(place):
        warnings.warn(StoreWarning(f"{error}; the store is built again"), stacklevel=2)
        _build(place, part)
    built = _record(place)
    if built is None or {**built, SOURCE: None} != {**about, SOURCE: None}:
        raise StoreError(f"{error}; built again it is another one: start again")


def _fresh(place: Path, about: dict[str, Any], part: CollectionPart, read_only: bool) -> bool:
    """Whether the source is the one the store was built from; one that is gone does not age its store.

    A file that was moved or copied, or written with its time kept, is read, and noted where it is the same.
    """
    try:
        now = _source(part, part.path.stat())
    except FileNotFoundError:
        return True
    source = about.get(SOURCE)
    if not isinstance(source, dict) or any(
        source.get(name) != now[name] for name in ("name", "size", "mtime_ns")
    ):
        return False
    if all(source.get(name) == value for name, value in now.items()):
        return True
    if source.get(CONTENT) != _content(part.path, tuple(now.values())):
        return False
    if not read_only and writable(place):
        with locked(place.with_name(f".{place.name}.lock"), wait=False) as alone:
            if alone and _record(place) == about:
                write_sealed(place / RECORD, {**about, SOURCE: {**source, **now}}, durable=False)
    return True
