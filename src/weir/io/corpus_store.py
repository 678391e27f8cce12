"""A collection's documents as an Arrow file that opens in milliseconds, whatever its size.

A store is a folder `<file>.weir` beside the documents, or in Weir's home where that place is read-only:

    corpus.arrow     columns _id, title, text (and metadata where documents have any); one record batch
    ids.hash.npy     the sorted 64-bit hashes of the ids
    ids.code.npy     the document each of them belongs to
    store.json       format, source, fingerprint, number of documents, where each column lies in corpus.arrow

It is derived data: a damaged, outdated or foreign one is rebuilt from its source without a question.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.hashing import hash_strings
from weir.core.ids import HashIndex, Ids
from weir.core.strings import Strings
from weir.errors import FormatError, StoreError
from weir.io.arrow import Extent, write_strings
from weir.io.atomic import atomic_dir, locked, writable, write_json
from weir.io.beir import duplicate, read_documents
from weir.io.layout import Part
from weir.io.spool import ColumnSpool
from weir.settings import settings

__all__ = ["Store", "fingerprint_of", "open_corpus", "open_store", "store_paths"]

FORMAT = 1
_COLUMNS = ("_id", "title", "text", "metadata")
_HASH_BLOCK = 1 << 20  # ids hashed at a time


@dataclass(frozen=True, eq=False)
class Store:
    """An opened store: where it is, its documents, its metadata column, and what reading the source met.

    metadata: JSON objects ("" where a document has none), or None when no document has any.
    null_texts: documents whose text was null, NaN or absent, and is empty here.
    """

    path: Path
    corpus: Corpus
    metadata: Strings | None
    null_texts: int


def open_corpus(part: Part, beside: bool = True) -> Corpus:
    """The documents of a file, through its store; see `open_store`."""
    return open_store(part, beside).corpus


def open_store(part: Part, beside: bool = True) -> Store:
    """Open the store of a documents file, building it on the first call or when the file has changed.

    beside: keep the store next to the file where that is possible. Raises FormatError for a file that is no
    collection, StoreError when the store cannot be written, or is damaged with no file to rebuild it from.
    """
    places = store_paths(part, beside)
    for place in places:
        store = _opened(place, part)
        if store is not None:
            return store
    if not part.path.exists():
        if any(place.exists() for place in places):
            raise StoreError(
                f"{places[0]} is damaged or of another version, and {part} is not there to rebuild it"
            )
        raise FormatError(part, "no such file", "the documents of a collection")
    place = next((p for p in places if writable(p.parent)), places[-1])
    with locked(place.with_name(f".{place.name}.lock")):
        store = _opened(place, part)  # another process may have built it meanwhile
        if store is None:
            _build(place, part)
            store = _opened(place, part)
    if store is None:
        raise StoreError(f"{place} cannot be read back after it was written; is the disk failing?")
    return store


def store_paths(part: Part, beside: bool = True) -> list[Path]:
    """Where the store of a file may lie, the preferred place first."""
    inner = "" if part.member is None else "." + part.member.replace("/", "-")
    name = f"{part.path.name}{inner}.weir"
    key = hashlib.blake2b(
        str(part.path.resolve()).encode("utf-8", "surrogateescape"), digest_size=8
    ).hexdigest()
    home = settings().home / "stores" / f"{key}-{name}"
    return [part.path.with_name(name), home] if beside else [home]


def fingerprint_of(store: Path) -> str:
    """Hash a store's columns again, to compare with the fingerprint it records (reads everything)."""
    opened = _opened(store, None)
    if opened is None:
        raise StoreError(f"{store} is damaged or of another version")
    corpus = opened.corpus
    columns = (("_id", corpus.ids.strings), ("title", corpus.title), ("text", corpus.text))
    return _fingerprint(len(corpus), {n: _digest(c) for n, c in columns if c is not None})


def _digest(column: Strings) -> bytes:
    hashes = (hashlib.sha256(), hashlib.sha256())
    for at in range(0, len(column.data), _HASH_BLOCK):
        hashes[0].update(column.data[at : at + _HASH_BLOCK].tobytes())
    for at in range(1, len(column.ptr), _HASH_BLOCK):
        hashes[1].update(column.ptr[at : at + _HASH_BLOCK].tobytes())
    return hashes[0].digest() + hashes[1].digest()


def _fingerprint(documents: int, digests: dict[str, bytes]) -> str:
    whole = hashlib.sha256(f"weir documents {FORMAT} {documents}".encode())
    for name, digest in sorted(digests.items()):
        whole.update(name.encode() + b"\0" + digest)
    return whole.hexdigest()[:32]


# Building


def _build(place: Path, part: Part) -> None:
    with atomic_dir(place) as folder:
        stat = part.path.stat()
        columns = {name: ColumnSpool(folder, name) for name in _COLUMNS}
        try:
            nulls = _fill(columns, part)
            rows = columns["_id"].rows
            kept = [columns[n] for n in _COLUMNS if n in ("_id", "text") or not columns[n].empty]
            with (folder / "corpus.arrow").open("wb") as file:
                extents = write_strings(file, [c.column() for c in kept], rows)
                size = file.tell()
        finally:
            for column in columns.values():
                column.close()
        _write_index(folder, extents["_id"], part)
        about = {
            "format": FORMAT,
            "documents": rows,
            "fingerprint": _fingerprint(rows, {c.name: c.digest() for c in kept if c.name != "metadata"}),
            "source": {"name": str(part.member or part.path.name), "size": stat.st_size,
                       "mtime_ns": stat.st_mtime_ns},
            "null_texts": nulls,
            "bytes": size,
            "columns": {name: [[e.start, e.size] for e in pair] for name, pair in extents.items()},
        }  # fmt: skip
        write_json(folder / "store.json", about, durable=False)


def _fill(columns: dict[str, ColumnSpool], part: Part) -> int:
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


def _write_index(folder: Path, where: tuple[Extent, Extent], part: Part) -> None:
    """Hash and sort the ids, block by block; raises FormatError for an id that occurs twice."""
    ids = _strings(np.memmap(folder / "corpus.arrow", np.uint8, "r"), where)
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
    np.save(folder / "ids.hash.npy", hashes, allow_pickle=False)
    np.save(folder / "ids.code.npy", order, allow_pickle=False)


# Opening


def _opened(place: Path, part: Part | None) -> Store | None:
    """The store at a place, or None where there is none, it is not whole, or its source has changed."""
    try:
        about = json.loads((place / "store.json").read_text(encoding="utf-8"))
        if about["format"] != FORMAT or (part is not None and not _fresh(about, part)):
            return None
        raw = np.asarray(np.memmap(place / "corpus.arrow", np.uint8, "r"))
        rows = int(about["documents"])
        columns = {}
        for name, ((start, size), (data_start, data_size)) in about["columns"].items():
            columns[name] = _strings(raw, (Extent(start, size), Extent(data_start, data_size)))
        hashes = np.load(place / "ids.hash.npy", mmap_mode="r", allow_pickle=False)
        codes = np.load(place / "ids.code.npy", mmap_mode="r", allow_pickle=False)
        whole = (
            len(raw) == about["bytes"] and raw[-6:].tobytes() == b"ARROW1" and raw[:6].tobytes() == b"ARROW1"
        )
        if not whole or not all(_sound(c, rows) for c in columns.values()):
            return None
        if not _is(hashes, rows, np.dtype(np.uint64)) or not _is(codes, rows, np.dtype(np.int32)):
            return None
        ids = Ids(columns["_id"], HashIndex(np.asarray(hashes), np.asarray(codes)))
        corpus = Corpus(ids, columns["text"], columns.get("title"), str(about["fingerprint"]))
        return Store(place, corpus, columns.get("metadata"), int(about["null_texts"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


def _fresh(about: dict[str, Any], part: Part) -> bool:
    """Whether the source is the one the store was built from; one that is gone does not age its store."""
    try:
        stat = part.path.stat()
    except FileNotFoundError:
        return True
    source = about["source"]
    return bool(stat.st_size == source["size"] and stat.st_mtime_ns == source["mtime_ns"])


def _strings(raw: NDArray[np.uint8], extents: tuple[Extent, Extent]) -> Strings:
    offsets, data = (raw[e.start : e.start + e.size] for e in extents)
    return Strings(data, offsets.view("<i8"))


def _sound(column: Strings, rows: int) -> bool:
    return len(column) == rows and int(column.ptr[0]) == 0 and int(column.ptr[-1]) == len(column.data)


def _is(values: NDArray[Any], rows: int, dtype: np.dtype[Any]) -> bool:
    return values.shape == (rows,) and values.dtype == dtype
