"""Read and write documents, queries and judgments in BEIR's layout."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from weir.core.corpus import Corpus, Queries
from weir.core.filters import records
from weir.core.qrels import Qrels
from weir.core.query_metadata import MetadataError, QueryMetadata
from weir.core.strings import Ids, Strings, first_repeated
from weir.errors import FormatError
from weir.files.atomic import temporary_folder
from weir.files.column_names import field_names, fold, identifier_names, of_role
from weir.files.formats import HEADER_AGAIN
from weir.files.json_files import PlainReader, Records, parse_block, read_blocks, read_records
from weir.files.layouts import CollectionPart
from weir.files.runs import read_qrels_counted
from weir.files.text_files import check_regular, check_unpacked, damaged, decoded, unquoted
from weir.files.write import write_qrels
from weir.kernels.jit import available, is_compiled
from weir.settings import IDENTIFIER_BYTES

# Documents and queries in BEIR's layout (`_id`, `title`, `text`, `metadata`), and as TSV.
#
# A text may have another usual name (column_names.toml), such as `contents` in Pyserini's collections. All other keys
# of a record are metadata too: {"lang": "en"} beside the text, or within `metadata`, which takes precedence.

_WORTH_LOADING, _WORTH_COMPILING = 16 << 20, 1 << 30
"""Bytes of a file from which loading, or compiling, the compiled reader saves time."""
_PLAIN = {"_id", "title", "text"}
_LONGEST_NAME = 20  # words of an identifier or title
_NEARLY_ALL = 0.9
_OTHER_KEYS = "others are read by: weir data import FILE -o DIR --columns doc=NAME,text=NAME"


@dataclass(frozen=True)
class Batch:
    """Consecutive documents or queries of a file, as columns."""

    ids: Strings
    titles: Strings
    texts: Strings
    metadata: Strings | None = None
    """JSON objects, "" for none; None if no document of the batch has any."""
    null_texts: int = 0
    """Number of documents whose text was null, NaN or missing, read as empty."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """{field: number of records that lack a text but hold one there}."""

    def __len__(self) -> int:
        return len(self.ids)


def read_documents(part: CollectionPart, roles: tuple[str, ...] = ("text",)) -> Iterator[Batch]:
    """Yield the documents of a file in batches, repeated ones too.

    roles: kinds of fields that hold the text if there is no field `text`; the first present counts.

    Raises FormatError for an invalid line, a too long identifier, an empty file, and texts in another field.
    """
    rows, empty, elsewhere = 0, 0, Counter[str]()
    with reading(part) as source:
        read = _from_tsv if part.name.endswith(".tsv") else _from_json
        for batch in read(source, part, roles):
            check_unpacked(part.path, source.tell())
            length = batch.ids.lengths()
            if length.max(initial=0) > IDENTIFIER_BYTES:
                at = int(length.argmax())
                long = f"an identifier of {length[at]:,} bytes, '{batch.ids[at][:40]}...'"
                raise FormatError(part, long, f"at most {IDENTIFIER_BYTES:,}")
            rows += len(batch)
            empty += int((batch.texts.lengths() == 0).sum())
            elsewhere.update(batch.elsewhere)
            yield batch
    if not rows:
        raise FormatError(part, "an empty file", "at least one record")
    if name := text_elsewhere(rows, empty, elsewhere):
        found = f"no text in {empty:,} of {rows:,} records, and texts in their field '{name}'"
        expected = f"texts under the key 'text'; {_OTHER_KEYS}"
        raise FormatError(part, found, expected)


def text_elsewhere(rows: int, empty: int, fields: Mapping[str, int]) -> str:
    """Return the field that holds the texts of a collection if its own are nearly all empty, else "".

    rows, empty: numbers of records, and of records without a text.
    fields: {field: number of records that have a text only there}.
    """
    name = max(fields, key=lambda name: fields[name], default="")
    return name if empty >= _NEARLY_ALL * rows and fields.get(name, 0) >= _NEARLY_ALL * empty else ""


def holds_text(value: object) -> bool:
    """Return True for a text of more than 20 words."""
    return isinstance(value, str) and len(value.split()) > _LONGEST_NAME


def _from_json(source: BinaryIO, part: CollectionPart, roles: tuple[str, ...]) -> Iterator[Batch]:
    line, size = 1, 0  # the number of the next line, bytes read
    worth = _WORTH_LOADING if is_compiled("json_text") else _WORTH_COMPILING
    plain: PlainReader | None = None
    for block in read_blocks(source, name=part):
        if plain is None and size >= worth and available():
            plain = PlainReader()
        columns = plain.read(block) if plain else None
        if columns is not None:
            yield Batch(*columns)
            line += len(columns[0])
        else:
            records = parse_block(block, line, part)
            yield _batch(records, part, roles)
            line += len(records.rows) if records.lines is None else block.count(b"\n")
        size += len(block)


def read_queries(part: CollectionPart) -> Queries:
    """Return all queries of a file, in its order, with metadata; some may lack a text.

    Raises FormatError for an invalid line or metadata, a repeated identifier, and a file where no query has a text.
    """
    batches = list(read_documents(part, ("text", "query")))
    if sum(batch.null_texts for batch in batches) == sum(map(len, batches)):
        raise FormatError(part, "no query with a 'text'", "texts under that key, or 'query', 'question' ...")
    ids = Strings.concatenated([batch.ids for batch in batches])
    names = ids.tolist()
    if len(set(names)) != len(names):
        raise duplicate(part, first_repeated(names) or "")
    metadata = None
    if any(batch.metadata is not None for batch in batches):
        packed = (batch.metadata or [""] * len(batch) for batch in batches)
        try:
            metadata = QueryMetadata.of(
                [json.loads(one) if one else None for column in packed for one in column]
            )
        except MetadataError as error:
            line = _lines_of_id(part, names[error.row])[0]
            raise FormatError(part, error.found, error.expected, line) from None
    return Queries(Ids(ids), Strings.concatenated([batch.texts for batch in batches]), metadata)


def duplicate(part: CollectionPart, name: str) -> FormatError:
    """Return the FormatError for a repeated identifier, with both line numbers."""
    first, second = [*_lines_of_id(part, name), 0, 0][:2]
    return FormatError(part, f"the id '{name}' again (first on line {first})", "each id once", second)


def _lines_of_id(part: CollectionPart, name: str) -> list[int]:
    lines: list[int] = []
    with reading(part) as stream:
        if part.name.endswith(".tsv"):
            for number, cells in _tsv_rows(stream, part):
                if cells[0] == name.encode() and not (number == 1 and _is_header(cells)):
                    lines.append(number)
        else:
            for records in read_records(stream, part):
                ids = enumerate(_batch(records, part).ids.tolist())
                lines += [records.line_number(i) for i, other in ids if other == name]
    return lines


@contextmanager
def reading(part: CollectionPart) -> Iterator[BinaryIO]:
    """Yield a stream of a collection's file; raises FormatError for damaged compression, also within the block."""
    try:
        with unquoted(part.path, part.within), part.open() as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        raise damaged(part, error) from None


def _batch(records: Records, part: CollectionPart, roles: tuple[str, ...] = ("text",)) -> Batch:
    rows = records.rows
    ids: list[Any] = [row["_id"] if "_id" in row else row.get(_id_key(tuple(row), part)) for row in rows]
    titles: list[Any] = [row.get("title", "") for row in rows]
    texts: list[Any] = [
        row["text"] if "text" in row else row.get(_text_key(tuple(row), roles, part)) for row in rows
    ]
    nulls = 0
    if set(map(type, ids)) != {str} or "" in ids:
        for i, value in enumerate(ids):
            if isinstance(value, int) and not isinstance(value, bool):
                ids[i] = str(value)
            elif not isinstance(value, str) or not value:
                keys = ", ".join(f"'{key}'" for key in list(rows[i])[:6])
                shown = f"no '_id' among the keys {keys}" if value is None else f"the _id {value!r}"
                raise FormatError(
                    part, shown, "an '_id' that is a text (or a whole number)", records.line_number(i)
                )
    if set(map(type, titles)) != {str}:
        titles = [_text(value, records, i, part, "title") or "" for i, value in enumerate(titles)]
    if set(map(type, texts)) != {str}:
        mended = [_text(value, records, i, part, "text") for i, value in enumerate(texts)]
        nulls = mended.count(None)
        texts = [text or "" for text in mended]
    batch = Batch(_encoded(ids), _encoded(titles), _encoded(texts), null_texts=nulls)
    others = [_others(row, roles) for row in rows]
    if not any(others):
        return batch
    silent = (other for text, other in zip(texts, others, strict=True) if not text and other)
    elsewhere = Counter(name for other in silent for name, value in other.items() if holds_text(value))
    packed: list[str] = []
    for i, other in enumerate(others):
        try:
            packed.append(json.dumps(other, ensure_ascii=False) if other else "")
        except RecursionError:
            expected, line = "at most some hundred levels", records.line_number(i)
            raise FormatError(part, "metadata nested too deeply", expected, line) from None
    return replace(batch, metadata=_encoded(packed), elsewhere=elsewhere)


@lru_cache(256)
def _id_key(keys: tuple[str, ...], part: CollectionPart | None = None) -> str:
    found = [key for key in keys if fold(key) == "id"] or identifier_names(keys, "doc", "query_id")
    if len(found) > 1:
        several = " and ".join(sorted(found))
        raise FormatError(part, f"{several}, which could each be the identifier", "one of them called '_id'")
    return next(iter(found), "")


@lru_cache(256)
def _text_key(keys: tuple[str, ...], roles: tuple[str, ...], part: CollectionPart | None = None) -> str:
    found = next((found for role in roles if (found := of_role(keys, role))), [])
    if len(found) > 1:
        several = " and ".join(sorted(found))
        raise FormatError(part, f"{several}, which could each be the text", "one of them called 'text'")
    return next(iter(found), "")


def _text(value: object, records: Records, i: int, part: CollectionPart, key: str) -> str | None:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (int, float)):
        return str(value)
    raise FormatError(part, f"a {type(value).__name__} as '{key}'", "a text", records.line_number(i))


def _encoded(texts: list[str]) -> Strings:
    try:
        return Strings.packed([text.encode() for text in texts])
    except UnicodeEncodeError:
        # Half a surrogate pair is no character: it becomes U+FFFD, as readers of broken UTF-16 show it.
        whole = [t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in texts]
        return Strings.packed([text.encode() for text in whole])


def _others(row: dict[str, Any], roles: tuple[str, ...]) -> dict[str, Any]:
    if len(row) <= len(_PLAIN) and row.keys() <= _PLAIN:
        return {}
    inner = row.get("metadata")
    rest = {key: row[key] for key in row if key not in _PLAIN and key != "metadata"}
    if "text" not in row:
        rest.pop(_text_key(tuple(row), roles), None)
    if "_id" not in row:
        rest.pop(_id_key(tuple(row)), None)
    return {**rest, **inner} if isinstance(inner, dict) else rest | ({"metadata": inner} if inner else {})


def _from_tsv(stream: BinaryIO, part: CollectionPart, roles: tuple[str, ...]) -> Iterator[Batch]:
    ids, titles, texts, others = list[bytes](), list[bytes](), list[bytes](), list[bytes]()
    line, width, title_at, text_at = 0, 0, -1, 0  # by the first line
    columns: dict[int, str] = {}  # those of metadata
    header: list[bytes] | None = None

    def batch() -> Batch:
        more = Strings.packed(others) if any(others) else None
        return Batch(Strings.packed(ids), Strings.packed(titles), Strings.packed(texts), more)

    for number, cells in _tsv_rows(stream, part):
        if not line:
            head = [cell.decode("utf-8", "replace").strip() for cell in cells]
            line, width, header = number, len(cells), cells if _is_header(cells) else None
            title, text = next(iter(of_role(head[1:], "title")), ""), _text_key(tuple(head[1:]), roles, part)
            if header and text:
                title_at = head.index(title, 1) if title else -1
                text_at = head.index(text, 1)
                columns = {at: name for at, name in enumerate(head) if at not in (0, title_at, text_at)}
            elif width in (2, 3):
                title_at, text_at = (1, 2) if width == 3 else (-1, 1)
            else:
                raise FormatError(part, f"{width} cells", "id, text or id, title, text between tabs", number)
        if len(cells) != width or not cells[0]:
            shown = f"{len(cells)} cells" if cells[0] else "an empty id"
            expected = f"{width} with an id, as in line {line}; texts with tabs belong in a .jsonl"
            raise FormatError(part, shown, expected, number)
        if cells == header:
            if number > line:
                raise FormatError(part, *HEADER_AGAIN, number)
            continue
        ids.append(cells[0])
        titles.append(b"" if title_at < 0 else cells[title_at])
        texts.append(cells[text_at])
        kept = {name: cells[at].decode("utf-8", "replace") for at, name in columns.items() if cells[at]}
        others.append(json.dumps(kept, ensure_ascii=False).encode() if kept else b"")
        decoded(b"\t".join(cells), part, number)
        if len(ids) == 256:
            yield batch()
            ids, titles, texts, others = [], [], [], []
    if ids:
        yield batch()


def _tsv_rows(stream: BinaryIO, part: CollectionPart) -> Iterator[tuple[int, list[bytes]]]:
    number = 0
    for block in read_blocks(stream, name=part):
        lines = block.split(b"\n")
        for line in lines[:-1] if not lines[-1] else lines:
            number += 1
            cells = line.removesuffix(b"\r").split(b"\t")
            if cells != [b""]:
                yield number, cells


def _is_header(cells: list[bytes]) -> bool:
    return fold(cells[0].decode("utf-8", "replace").strip()) in field_names().ids("doc", "query_id") | {"id"}


# Reads a collection's judgments, on disk or in a zip.


def read_judgments(part: CollectionPart) -> Qrels:
    """Return the judgments in a collection's file, also in an archive; raises FormatError for a damaged file."""
    if part.member is None:
        if part.path.exists():
            check_regular(part.path)
        with unquoted(part.path, part.within):
            return read_qrels_counted(part.path)[0]
    with temporary_folder("part") as folder:
        unpacked = folder / part.name
        with reading(part) as stream, unpacked.open("wb") as file:
            shutil.copyfileobj(stream, file)
        try:
            return read_qrels_counted(unpacked)[0]
        except FormatError as error:
            error.args = (str(error).replace(str(unpacked), str(part)),)
            raise


# A collection from memory as files in BEIR's layout, which everything reads.


OWN_FOLDER = "weir-"
"""Beginning of the name of a temporary folder."""


class OwnFolder:
    """A temporary folder, removed with this object or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=OWN_FOLDER))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def write_collection(folder: Path, corpus: Corpus, queries: Queries, qrels: Qrels) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/test.tsv into an existing folder."""
    titles = corpus.title.tolist() if corpus.title is not None else None
    others = records(corpus.metadata, len(corpus))
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        columns = zip(corpus.ids.tolist(), corpus.text.tolist(), others, strict=True)
        for number, (name, text, other) in enumerate(columns):
            title = {"title": titles[number]} if titles is not None else {}
            own = {"metadata": other} if other else {}
            out.write(json.dumps({"_id": name, **title, "text": text, **own}, ensure_ascii=False) + "\n")
    with (folder / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        metadata = [] if queries.metadata is None else queries.metadata.rows()
        for number, (name, text) in enumerate(queries.to_dict().items()):
            own = {"metadata": metadata[number]} if metadata and metadata[number] else {}
            out.write(json.dumps({"_id": name, "text": text, **own}, ensure_ascii=False) + "\n")
    (folder / "qrels").mkdir()
    write_qrels(qrels, folder / "qrels" / "test.tsv")
