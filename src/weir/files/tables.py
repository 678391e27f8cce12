"""Read Parquet files, Arrow files and frames in chunks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.qrels import Origins
from weir.core.roles import refuse_grades_as_documents
from weir.core.strings import Float64, Int64, Strings
from weir.errors import BadValue, FormatError, is_shortage, require
from weir.files.column_names import (
    Kind,
    origin_column,
    other_columns,
    part_columns,
    rank_column,
    row_columns,
    say_no_grades,
    say_unread,
)
from weir.files.one_system import MOST_ROWS, SystemRow, orders_apart
from weir.files.parsers import BLOCK_ROWS, RankingBlock, ReadOptions, Source, TableChunk, table_blocks
from weir.files.text_files import PACKED, check_unpacked, is_stream, open_bytes
from weir.settings import HARMLESS_BYTES, IDENTIFIER_BYTES, memory_budget, require_addresses, require_memory

Arrow: TypeAlias = Any  # pyarrow has no types
_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"
_PREFIX_BYTES = 8  # of an Arrow file, before what is in it as a stream
_BUFFER_BYTES = 1 << 20  # bytes read ahead
_CODED_BYTES = 1 << 24  # largest Parquet file whose texts are all read as codes, which would slow large ones


@dataclass(frozen=True)
class _Column:
    path: object
    name: str
    first: int

    def place_of_row(self, row: int) -> str:
        return f"{self.path}, row {self.first + row + 1}"


def table_columns(path: Path, parquet: bool) -> list[str]:
    """Return the column names of a Parquet (else Arrow) file; raises FormatError for a damaged file."""
    with table_errors(path):
        return list(_schema(path, parquet).names)


def whole_numbers(path: Path, column: str, parquet: bool) -> bool:
    """Return True if a column of a Parquet (else Arrow) file has an integer type."""
    with table_errors(path):
        kind = _schema(path, parquet).field(column).type
        return bool(require("pyarrow", "run").types.is_integer(kind))


def table_chunks(path: Path, kind: Kind, parquet: bool) -> Iterator[TableChunk]:
    """Yield the rows of a run or judgments in a Parquet (else Arrow) file, in chunks.

    Raises FormatError for a missing or damaged file, missing values and non-finite numbers, MissingExtra without
    pyarrow.
    """
    names = table_columns(path, parquet)
    columns = [names[at] for at in _read_columns(names, kind, path)]
    with table_errors(path):
        if parquet and path.stat().st_size > _CODED_BYTES:
            _refuse_long_identifiers(path, columns[:2])
        batches = _batches(path, columns, parquet, coded=columns[0])
        yield from _chunks(batches, columns, kind, path)


def frame_source(frame: Any, kind: Kind) -> Source:  # noqa: ANN401  any library's frame
    """Return the rows of a frame with `__arrow_c_stream__`, to be read in blocks.

    Reading raises FormatError for missing values and non-finite numbers, BadValue for several systems.
    """

    def frame_blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        read = require("pyarrow", "run").RecordBatchReader.from_stream
        names = list(read(frame).schema.names)
        columns = [names[at] for at in _read_columns(names, kind)]
        for at, _ in part_columns(names, kind):
            if _has_several(batch.select([at]) for batch in read(frame)):
                raise BadValue("rows of several systems")  # the slow path says which
        query, score, others = other_columns(names) if kind == "run" else (0, 0, [])
        for at in others:
            head = (batch.slice(0, MOST_ROWS) for batch in read(frame))
            cells = [
                part.column(one).to_pylist()
                for part in itertools.islice(head, 1)
                for one in (query, at, score)
            ]
            if orders_apart(names[at], zip(*cells, strict=True)):
                raise BadValue("rows of several systems")
        reader = read(frame)
        chunks = _chunks((piece for batch in reader for piece in _pieces(batch)), columns, kind, "frame")
        return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")

    def origins() -> Origins | None:
        reader = require("pyarrow", "run").RecordBatchReader.from_stream(frame)
        at = origin_column(list(reader.schema.names), kind)
        return None if at is None else _origins(batch.select([at]) for batch in reader)

    return Source("frame", 40 * len(frame), frame_blocks, origins)


def table_rows_by_system(path: Path, columns: list[str], parquet: bool) -> Iterator[SystemRow]:
    """Yield (place in the file, query, system, rank or "") of each row; nothing if there is only one system.

    columns: names of query, system and, if any, rank.

    Raises FormatError for a missing or damaged file.
    """
    with table_errors(path):
        if not _has_several(_batches(path, [columns[1]], parquet)):
            return
        row = 0
        for batch in _batches(path, columns, parquet, coded=columns[0]):
            values = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in columns]
            for cells in zip(*values, strict=True):
                row += 1
                query, system, *rank = ("" if cell is None else str(cell) for cell in cells)
                yield f", row {row}", query, system, rank[0] if rank else ""


def _has_several(batches: Iterable[Arrow]) -> bool:
    found = set[object]()
    return any(len(found := found | set(batch.column(0).unique().to_pylist())) > 1 for batch in batches)


def table_origins(path: Path, kind: Kind, parquet: bool) -> Origins | None:
    """Return each judgment's origin in a Parquet (else Arrow) file, "" for a missing one; None without a column of
    origins.
    """
    names = table_columns(path, parquet)
    at = origin_column(names, kind)
    if at is None:
        return None
    with table_errors(path):
        return _origins(_batches(path, [names[at]], parquet))


def _origins(batches: Iterable[Arrow]) -> Origins:
    return Origins.of(
        "" if text is None else str(text) for batch in batches for text in batch.column(0).to_pylist()
    )


def table_batches(path: Path, parquet: bool, rows: int) -> Iterator[Arrow]:
    """Yield the rows of a Parquet (else Arrow) file in Arrow batches of at most `rows`, to be read within
    `table_errors`.
    """
    return _batches(path, table_columns(path, parquet), parquet, rows)


@contextmanager
def table_errors(path: Path) -> Iterator[None]:
    """Raise FormatError in place of pyarrow's errors within the block."""
    arrow = require("pyarrow", "run")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
        size = re.search(r"alloc of size (\d+)", str(error))  # which a damaged file may ask for
        if is_shortage(error) and (size is None or int(size[1]) <= memory_budget().bytes):
            raise
        reason = str(error).partition("\n")[0][:160]
        raise FormatError(
            path, f"a damaged table ({reason})", "a complete Parquet or Arrow file; fetch or write it again"
        ) from error


def _schema(path: Path, parquet: bool) -> Arrow:
    if parquet:
        return _opened_parquet(path, []).schema_arrow
    with _arrow_reader(path, None) as reader:
        return reader.schema


def _batches(
    path: Path, columns: list[str], parquet: bool, rows: int = BLOCK_ROWS, coded: str = ""
) -> Iterator[Arrow]:
    if parquet:
        # A query fills many rows: its code is read instead of its text. Texts that differ from row to row would all
        # be held as codes; in small files a text that stands in many rows is counted as often before it is copied.
        plain = _opened_parquet(path, [])
        leaves = [plain.schema.column(at) for at in range(len(plain.schema))]
        small = path.stat().st_size <= _CODED_BYTES
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        file = _opened_parquet(path, [one for one in texts if small or one == coded])
        facts = file.metadata
        # Of a group, not of its columns: asked for a damaged one of these, pyarrow ends the process.
        sizes = (facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
        check_unpacked(path, sum(sizes))
        yield from _counted(path, file.iter_batches(rows, columns=columns, use_threads=False))
        return
    unpacked = _unpacked_size(path)
    if unpacked > HARMLESS_BYTES:
        require_memory(
            unpacked, f"unpacking the largest record batch of {path}", "write it in smaller batches"
        )
    fields = [i for i, name in enumerate(_schema(path, parquet).names) if name in columns]
    # Where nothing is packed, columns are views of the mapped file; Arrow would copy those that it is asked for.
    with _arrow_reader(path, fields if unpacked else None) as reader:
        whole = hasattr(reader, "num_record_batches")
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if whole else iter(reader)
        # Offsets of a damaged file would lead anywhere, also where its bytes are counted.
        for batch in _counted(path, (_valid(batch.select(columns)) for batch in batches)):
            yield from _pieces(batch, rows)


def _refuse_long_identifiers(path: Path, columns: list[str]) -> None:
    compute = require("pyarrow.compute", "run")
    file = _opened_parquet(path, columns)
    for group in range(file.metadata.num_row_groups):
        for batch in itertools.islice(file.iter_batches(1, [group], columns, use_threads=False), 1):
            for values in (one.dictionary for one in batch.columns if hasattr(one, "dictionary")):
                longest = compute.max(compute.binary_length(values)).as_py() or 0
                if longest > IDENTIFIER_BYTES:
                    size = f"an identifier of {longest:,} bytes"
                    raise FormatError(path, size, f"at most {IDENTIFIER_BYTES:,}")


def _valid(batch: Arrow) -> Arrow:
    batch.validate(full=True)
    return batch


def _unpacked_size(path: Path) -> int:
    dictionaries = largest = 0
    with _mapped(path) as (file, has_index):
        file.seek(_PREFIX_BYTES if has_index else 0)  # from there on it is a stream
        for message in require("pyarrow.ipc", "run").MessageReader.open_stream(file):
            if message.type == "dictionary":
                dictionaries += _unpacked_bytes(message)
            elif message.type == "record batch":
                largest = max(largest, _unpacked_bytes(message))
    return dictionaries + largest


def _unpacked_bytes(message: Arrow) -> int:
    data, body = memoryview(message.metadata), memoryview(message.body)

    def follow(at: int) -> int:
        return at + int.from_bytes(data[at : at + 4], "little")

    def field(table: int, number: int) -> int:
        slots = table - int.from_bytes(data[table : table + 4], "little", signed=True)
        at = slots + 4 + 2 * number
        end = slots + int.from_bytes(data[slots : slots + 2], "little")
        offset = int.from_bytes(data[at : at + 2], "little") if at < end else 0
        return table + offset if offset else 0

    batch = follow(field(follow(0), 2))
    if message.type == "dictionary":
        batch = follow(field(batch, 1))
    if not field(batch, 3):
        return 0
    buffers = follow(field(batch, 2))
    count = int.from_bytes(data[buffers : buffers + 4], "little")
    offsets = np.frombuffer(data, "<i8", 2 * count, buffers + 4)[::2].tolist()
    sizes = (int.from_bytes(body[at : at + 8], "little", signed=True) for at in offsets)
    return sum(size for size in sizes if size > 0)


def unpacked_bytes(column: Arrow) -> int:
    """Return the bytes of a column with every value written out, also of a dictionary."""
    arrow = require("pyarrow", "run")
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        values = column.dictionary
        if not len(values):
            return 0
        if types.is_nested(values.type) or types.is_dictionary(values.type):
            return len(column) * unpacked_bytes(values)  # at most
        if types.is_primitive(values.type):
            return len(column) * int(values.nbytes) // len(values)
        sizes = require("pyarrow.compute", "run").binary_length(values).fill_null(0)
        return int(_values(sizes, np.int64)[_values(column.indices.fill_null(0), np.int64)].sum())
    if types.is_struct(kind):
        return sum(map(unpacked_bytes, column.flatten()))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        inner = column.items if types.is_map(kind) else column.flatten()
        return int(column.nbytes) + unpacked_bytes(inner)
    return int(column.nbytes)


def _counted(path: Path, batches: Iterable[Arrow]) -> Iterator[Arrow]:
    length = 0
    for batch in batches:
        length += sum(map(unpacked_bytes, batch.columns))
        check_unpacked(path, length)
        yield batch


def _checked(path: Path) -> str:
    if path.suffix in PACKED:
        expected = "the file unpacked: Parquet and Arrow files are packed inside"
        raise FormatError(path, "a packed table", expected)
    if is_stream(path):
        raise FormatError(path, "a table in a stream", "a file: Parquet and Arrow are read from their ends")
    open_bytes(path).close()  # what is wrong with a path is said as for every other format
    return str(path)


def _opened_parquet(path: Path, dictionary: list[str]) -> Arrow:
    file = require("pyarrow.parquet", "run").ParquetFile
    return file(_checked(path), read_dictionary=dictionary, buffer_size=_BUFFER_BYTES, pre_buffer=False)


@contextmanager
def _mapped(path: Path) -> Iterator[tuple[Arrow, bool]]:
    name = _checked(path)
    require_addresses(path.stat().st_size, f"mapping {path}")
    with require("pyarrow", "run").memory_map(name) as file:
        magic = file.read(len(_FILE))
        file.seek(0)
        if magic.startswith(_FEATHER_1):
            expected = "version 2, which is an Arrow file; write it again"
            raise FormatError(path, "Feather of version 1", expected)
        yield file, magic == _FILE


@contextmanager
def _arrow_reader(path: Path, fields: list[int] | None) -> Iterator[Arrow]:
    ipc = require("pyarrow.ipc", "run")
    options = ipc.IpcReadOptions(included_fields=fields)
    with _mapped(path) as (file, has_index):
        yield (ipc.open_file if has_index else ipc.open_stream)(file, options=options)


def _pieces(batch: Arrow, rows: int = BLOCK_ROWS) -> Iterator[Arrow]:
    return (batch.slice(begin, rows) for begin in range(0, batch.num_rows, rows))


def _chunks(batches: Iterator[Arrow], columns: list[str], kind: Kind, path: object) -> Iterator[TableChunk]:
    row = 0
    for batch in batches:
        query_at, doc_at, *_ = where = [_Column(path, name, row) for name in columns[:3]]
        query, doc, *numbers = (batch.column(batch.schema.get_field_index(name)) for name in columns)
        if batch.num_rows:
            if kind == "qrels" and path != "frame" and numbers:
                _refuse_exchanged(doc, numbers[0], path)
            score = _numbers(numbers[0], where[2], kind) if numbers else np.ones(batch.num_rows)
            query = _plain(query, query_at)
            first = _changes(query)
            queries = _texts(_plain(query.take(as_arrow(first)), query_at), query_at)
            rank = _ranks(numbers[1]) if len(numbers) > 1 else None
            yield TableChunk(queries, first, _texts(_plain(doc, doc_at), doc_at), score, rank)
        row += batch.num_rows


def _refuse_exchanged(doc: Arrow, number: Arrow, path: object) -> None:
    text = require("pyarrow", "run").types
    if text.is_string(number.type) or text.is_large_string(number.type) or text.is_dictionary(number.type):
        docs = Strings.of([str(one) for one in doc.to_pylist()])
        refuse_grades_as_documents(docs, [str(one) for one in number.to_pylist()], path)


def _read_columns(names: list[str], kind: Kind, path: object = None) -> tuple[int, ...]:
    rank, positions = rank_column(names, kind), row_columns(names, kind, path)
    if path is not None:
        say_unread(path, names, kind)
    elif len(positions) == 2:
        say_no_grades("the judgments")
    return *positions, *(() if rank is None else (rank,))


def _ranks(column: Arrow) -> Float64 | None:
    arrow = require("pyarrow", "run")
    if not (arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)):
        return None
    column = column.cast(arrow.float64(), safe=False)
    ranks: Float64 = _values(column.fill_null(np.nan), np.float64)
    return ranks


def as_arrow(values: NDArray[Any]) -> Arrow:
    """Return numbers as an Arrow array that shares their memory."""
    arrow = require("pyarrow", "run")
    kind = getattr(arrow, values.dtype.name)()
    return arrow.Array.from_buffers(kind, len(values), [None, arrow.py_buffer(np.ascontiguousarray(values))])


def _values(column: Arrow, kind: type[np.generic]) -> Any:  # noqa: ANN401  an array of that kind
    arrow = require("pyarrow", "run")
    target = getattr(arrow, np.dtype(kind).name)()
    column = column if column.type == target else column.cast(target, safe=False)
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * np.dtype(kind).itemsize)


def _present(column: Arrow, where: _Column) -> None:
    if column.null_count:
        row = int(_values(column.is_null(), np.uint8).argmax())
        raise FormatError(where.place_of_row(row), f"no value in column {where.name}", "a value in every row")


def _plain(column: Arrow, where: _Column) -> Arrow:
    arrow = require("pyarrow", "run")
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        if len(column.dictionary) > len(column) or column.dictionary.null_count:
            return _plain(column.dictionary_decode(), where)
        _plain(column.dictionary, where)
    elif not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        texts = (types.is_string_view, types.is_binary, types.is_large_binary, types.is_null)
        if not any(is_text(kind) for is_text in texts):
            shown = f"column {where.name} of type {kind}"
            raise FormatError(where.path, shown, "identifiers as text or whole numbers")
        column = column.cast(arrow.large_string())
    _present(column, where)
    return column


def _changes(column: Arrow) -> Int64:
    change = np.ones(len(column), np.bool_)
    codes = column.indices if hasattr(column, "indices") else column
    if require("pyarrow", "run").types.is_integer(codes.type):
        values = _values(codes, np.dtype(str(codes.type)).type)
        np.not_equal(values[1:], values[:-1], out=change[1:])
    else:
        differ = require("pyarrow.compute", "run").not_equal(codes.slice(1), codes.slice(0, len(codes) - 1))
        change[1:] = _values(differ, np.uint8)
    return np.flatnonzero(change)


def _texts(column: Arrow, where: _Column) -> Strings:
    arrow = require("pyarrow", "run")
    if hasattr(column, "indices"):
        texts = _texts(_plain(column.dictionary, where), where)
        return texts.take(_values(column.indices, np.int64))
    if arrow.types.is_integer(column.type):
        column = column.cast(arrow.string())
    _, offsets, data = column.buffers()
    width = np.int64 if arrow.types.is_large_string(column.type) else np.int32
    offsets = np.frombuffer(offsets, width, len(column) + 1, column.offset * np.dtype(width).itemsize)
    length = np.diff(offsets)
    if not length.all():
        row = int(np.flatnonzero(length == 0)[0])
        raise FormatError(where.place_of_row(row), f"an empty {where.name}", "an identifier in every row")
    row = int(length.argmax()) if len(length) else 0
    if len(length) and length[row] > IDENTIFIER_BYTES:
        size = f"an identifier of {length[row]:,} bytes"
        raise FormatError(where.place_of_row(row), size, f"at most {IDENTIFIER_BYTES:,}")
    return Strings(np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False))


def _numbers(column: Arrow, where: _Column, kind: Kind) -> Float64:
    arrow = require("pyarrow", "run")
    types, of = arrow.types, column.type
    if types.is_dictionary(of):
        column = column.dictionary_decode()
        of = column.type
    number = types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)
    if not number and not (kind == "qrels" and types.is_boolean(of)):
        raise FormatError(where.path, f"column {where.name} of type {of}", "a column of numbers")
    _present(column, where)
    if types.is_boolean(of):
        column = column.cast(arrow.uint8())
    value: Float64 = _values(column, np.float64)
    odd = np.flatnonzero(~np.isfinite(value))
    if len(odd):
        row = int(odd[0])
        shown = f"{value[row]} in column {where.name}"
        raise FormatError(where.place_of_row(row), shown, "a finite number in every row")
    return value
