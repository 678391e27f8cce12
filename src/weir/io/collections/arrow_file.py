"""Writes one table of text columns as an Arrow IPC file, without any Arrow library.

The layout is the published one (Arrow columnar format, "IPC File Format"; metadata version 5): a schema, one
record batch, a footer, the metadata in FlatBuffers. A collection's store needs one shape only, columns of
`large_string` without nulls, and a first open should neither wait for a large library nor hold its memory.
Every Arrow reader opens the result; the tests do so with pyarrow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TypeAlias

__all__ = ["Column", "Extent", "Pourable", "write_strings"]

_MAGIC = b"ARROW1"
_ALIGN = 64
_V5, _SCHEMA, _RECORD_BATCH, _LARGE_UTF8 = 4, 1, 3, 20

# A field of a FlatBuffers table: struct format and value, a writer of something placed later, or absent.
_Writer: TypeAlias = Callable[[bytearray], int]
_Field: TypeAlias = tuple[str, int] | _Writer | None


class Pourable(Protocol):
    """Bytes kept somewhere, of known size, that can be written into a file."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def pour(self, into: BinaryIO) -> None:
        """Write all of them."""
        ...


@dataclass(frozen=True)
class Column:
    """A text column: n + 1 little-endian int64 offsets, and the UTF-8 bytes they cut."""

    name: str
    offsets: Pourable
    data: Pourable


@dataclass(frozen=True)
class Extent:
    """Where a buffer lies in the file: first byte and number of bytes."""

    start: int
    size: int


def write_strings(into: BinaryIO, columns: Sequence[Column], rows: int) -> dict[str, tuple[Extent, Extent]]:
    """Write the file; returns for each column where its offsets and its bytes lie (64-byte aligned)."""
    names = [c.name for c in columns]
    buffers = [buffer for c in columns for buffer in (c.offsets, c.data)]
    places, at = [], 0
    for buffer in buffers:
        places.append(Extent(at, buffer.size))
        at += _padded(buffer.size)
    into.write(_MAGIC + b"\0\0")
    schema = _message(_SCHEMA, lambda b: _schema(b, names), 0)
    into.write(_framed(schema, into.tell()))
    batch_at = into.tell()
    batch = _framed(_message(_RECORD_BATCH, lambda b: _batch(b, rows, places), at), batch_at)
    into.write(batch)
    body = into.tell()
    for buffer in buffers:
        buffer.pour(into)
        into.write(bytes(_padded(buffer.size) - buffer.size))
    into.write(b"\xff\xff\xff\xff\0\0\0\0")
    footer = _footer(names, batch_at, len(batch), at)
    into.write(footer + struct.pack("<i", len(footer)) + _MAGIC)
    extents = [Extent(body + p.start, p.size) for p in places]
    return {name: (extents[2 * i], extents[2 * i + 1]) for i, name in enumerate(names)}


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _framed(metadata: bytes, at: int) -> bytes:
    """A message behind its mark and length, padded so that what follows is aligned in the file."""
    end = _padded(at + 8 + len(metadata))
    return struct.pack("<Ii", 0xFFFFFFFF, end - at - 8) + metadata.ljust(end - at - 8, b"\0")


def _message(kind: int, header: _Writer, body: int) -> bytes:
    return _root([("<h", _V5), ("<B", kind), header, ("<q", body)])


def _footer(names: list[str], batch_at: int, metadata: int, body: int) -> bytes:
    block = struct.pack("<qi4xq", batch_at, metadata, body)
    return _root(
        [
            ("<h", _V5),
            lambda b: _schema(b, names),
            lambda b: _structs(b, []),
            lambda b: _structs(b, [block]),
        ]
    )


def _schema(buffer: bytearray, names: list[str]) -> int:
    return _table(buffer, [("<h", 0), lambda b: _references(b, [_column_field(name) for name in names])])


def _column_field(name: str) -> _Writer:
    def write(buffer: bytearray) -> int:
        return _table(
            buffer,
            [
                lambda b: _string(b, name),
                ("<B", 0),  # not nullable
                ("<B", _LARGE_UTF8),
                lambda b: _table(b, []),
                None,
                lambda b: _references(b, []),
            ],
        )

    return write


def _batch(buffer: bytearray, rows: int, places: list[Extent]) -> int:
    nodes = [struct.pack("<qq", rows, 0)] * (len(places) // 2)
    spans = []
    for offsets, data in zip(places[::2], places[1::2], strict=True):
        spans.append(struct.pack("<qq", offsets.start, 0))  # validity: none, there are no nulls
        spans.append(struct.pack("<qq", offsets.start, offsets.size))
        spans.append(struct.pack("<qq", data.start, data.size))
    return _table(buffer, [("<q", rows), lambda b: _structs(b, nodes), lambda b: _structs(b, spans)])


# FlatBuffers: everything is written front to back; a reference is a forward distance from where it stands.


def _root(fields: Sequence[_Field]) -> bytes:
    buffer = bytearray(4)
    struct.pack_into("<I", buffer, 0, _table(buffer, fields))
    return bytes(buffer.ljust(-(-len(buffer) // 8) * 8, b"\0"))


def _table(buffer: bytearray, fields: Sequence[_Field]) -> int:
    """A table behind its vtable; fields stand at slots of eight bytes, which aligns every kind."""
    vtable_size = 4 + 2 * len(fields)
    _pad(buffer, 8, vtable_size)
    vtable = len(buffer)
    table = vtable + vtable_size
    slots = [8 * (i + 1) if field is not None else 0 for i, field in enumerate(fields)]
    buffer += struct.pack(f"<HH{len(fields)}H", vtable_size, 8 * (len(fields) + 1), *slots)
    buffer += struct.pack("<i4x", vtable_size) + bytes(8 * len(fields))
    for slot, field in zip(slots, fields, strict=True):
        if isinstance(field, tuple):
            struct.pack_into(field[0], buffer, table + slot, field[1])
        elif field is not None:
            struct.pack_into("<I", buffer, table + slot, field(buffer) - (table + slot))
    return table


def _references(buffer: bytearray, writers: Sequence[_Writer]) -> int:
    _pad(buffer, 4, 0)
    at = len(buffer)
    buffer += struct.pack("<I", len(writers)) + bytes(4 * len(writers))
    for i, write in enumerate(writers):
        slot = at + 4 + 4 * i
        struct.pack_into("<I", buffer, slot, write(buffer) - slot)
    return at


def _structs(buffer: bytearray, items: Sequence[bytes]) -> int:
    _pad(buffer, 8, 4)
    at = len(buffer)
    buffer += struct.pack("<I", len(items)) + b"".join(items)
    return at


def _string(buffer: bytearray, text: str) -> int:
    _pad(buffer, 4, 0)
    at = len(buffer)
    encoded = text.encode("utf-8")
    buffer += struct.pack("<I", len(encoded)) + encoded + b"\0"
    return at


def _pad(buffer: bytearray, to: int, after: int) -> None:
    """Grow the buffer until `after` more bytes end on a multiple of `to`."""
    buffer += bytes(-(len(buffer) + after) % to)
