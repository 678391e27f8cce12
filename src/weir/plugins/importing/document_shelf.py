"""The documents of an import, on disk: a corpus of millions is imported in the memory that a small one takes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from weir.errors import StoreError
from weir.plugins.importing.found import Document

__all__ = ["DocumentShelf", "document_shelf"]

_CACHE_KIB = 64 << 10  # of the database that is held in memory; the rest is in a file that goes with it
_BATCH_ROWS = 4096

_TABLE = """create table documents (n integer primary key, id blob unique not null, title blob not null,
    text blob not null, metadata blob not null, hash integer not null)"""


class DocumentShelf(Mapping[str, tuple[str, str]]):
    """Documents by identifier, (title, text) of each, in the order in which they came.

    They lie in a temporary database that is gone with the process, however that ends. Raises StoreError where the disk
    refuses.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._indexed = False

    def __len__(self) -> int:
        (count,) = self._database.execute("select count(*) from documents").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[str]:
        yield from (_text(row[0]) for row in self._rows("id"))

    def __getitem__(self, name: str) -> tuple[str, str]:
        row = self._one("title, text", name)
        if row is None:
            raise KeyError(name)
        return _text(row[0]), _text(row[1])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._one("1", name) is not None

    def __bool__(self) -> bool:
        return self._database.execute("select 1 from documents limit 1").fetchone() is not None

    def add(self, name: str, document: Document) -> Literal["new", "same", "other"]:
        """Put a document there under its identifier.

        "same" where one of this identifier and text is there, "other" where it has another text; both leave it.
        """
        text, packed = _bytes(document.key.text), _packed(document.metadata)
        row = (_bytes(name), _bytes(document.title), text, packed, _hash(document.key.text))
        added = self._database.execute(
            "insert or ignore into documents (id, title, text, metadata, hash) values (?, ?, ?, ?, ?)", row
        )
        if added.rowcount:
            return "new"
        known = self._one("text", name)
        return "same" if known is not None and known[0] == text else "other"

    def ids_of(self, text: str) -> set[str]:
        """The identifiers of the documents that have this text."""
        if not self._indexed:
            self._database.execute("create index by_text on documents (hash)")
            self._indexed = True
        found = self._database.execute("select id, text from documents where hash = ?", (_hash(text),))
        wanted = _bytes(text)
        return {_text(name) for name, held in found if held == wanted}

    def lines(self) -> Iterator[str]:
        """The documents as lines of corpus.jsonl."""
        for name, title, text, metadata in self._rows("id, title, text, metadata"):
            row = {"_id": _text(name), "title": _text(title), "text": _text(text)}
            line = json.dumps(row)
            yield f'{line[:-1]}, "metadata": {metadata.decode()}}}' if metadata else line

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """What was added in the block leaves again where it ends in an error."""
        self._database.execute("savepoint file")
        try:
            yield
        except BaseException:
            self._database.execute("rollback to file")
            raise
        finally:
            self._database.execute("release file")

    def _one(self, columns: str, name: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(
            f"select {columns} from documents where id = ?", (_bytes(name),)
        ).fetchone()
        return row

    def _rows(self, columns: str) -> Iterator[tuple[Any, ...]]:
        found = self._database.execute(f"select {columns} from documents order by n")
        while batch := found.fetchmany(_BATCH_ROWS):
            yield from batch


@contextmanager
def document_shelf() -> Iterator[DocumentShelf]:
    """An empty shelf; raises StoreError where the disk refuses while it is filled or read."""
    database = sqlite3.connect(
        "", isolation_level=None
    )  # no name: a file that nobody sees and that goes by itself
    try:
        for setting in (f"cache_size = -{_CACHE_KIB}", "journal_mode = memory", "synchronous = off"):
            database.execute(f"pragma {setting}")
        database.execute(_TABLE)
        database.execute("begin")
        yield DocumentShelf(database)
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot keep the documents of an import in the temporary folder: {error}") from None
    finally:
        database.close()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _hash(text: str) -> int:
    return hash(text)  # of one process, as the shelf is


def _packed(metadata: Mapping[str, Any]) -> bytes:
    return json.dumps(metadata, default=str).encode() if metadata else b""
