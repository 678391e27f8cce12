"""Where rankings and judgments come from: a file of any format, or a frame in memory, as blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.io.runs.block_parser import Parser
from weir.io.runs.blocks import RankingBlock, RowScanner, table_blocks, text_blocks
from weir.io.runs.column_names import Kind
from weir.io.runs.delimited import SEPARATORS, delimited_blocks, quoted_blocks, read_layout
from weir.io.runs.formats import Format
from weir.io.runs.parsed_rows import ParsedRows
from weir.io.runs.tables import frame_chunks, table_chunks
from weir.io.storage.compression import PACKED
from weir.io.storage.lines import LineBuffer

__all__ = ["ReadOptions", "Source", "file_source", "frame_source"]

# A file's text is about this much larger than the file itself.
_TIMES = {"parquet": 3, "arrow": 1}
_TIMES_PACKED = 5


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read: with which engine, in one block, and with attention to quotation marks."""

    engine: Parser
    whole: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class Source:
    """Something that holds rows: its name for messages, about how many bytes as text, and its blocks."""

    name: object
    size: int
    blocks: Callable[[ReadOptions], Iterator[RankingBlock]]


def file_source(path: Path, form: Format, kind: Kind) -> Source:
    """The rows of a file of any format but JSON; of TREC's, a run's."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # opening it will say what is wrong
    size *= _TIMES_PACKED if path.suffix in PACKED else _TIMES.get(form.name, 1)
    blocks = {"trec": _trec_blocks, "parquet": _table_blocks, "arrow": _table_blocks}
    read = blocks.get(form.name, _delimited_blocks)
    return Source(path, size, partial(read, (path, form, kind), size))


def frame_source(frame: Any, kind: Kind) -> Source:  # noqa: ANN401  any library's frame
    """The rows of a frame that has Arrow's stream interface."""

    def blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        return table_blocks(frame_chunks(frame, kind), how.engine, how.whole, lambda row: f", row {row + 1}")

    rows = len(frame) if hasattr(frame, "__len__") else 0
    return Source("frame", 40 * rows, blocks)


def _trec_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    return text_blocks(file[0], RowScanner(how.engine.scan, _bad_line), _block(size, how), how.whole)


def _table_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    path, form, kind = file
    chunks = table_chunks(path, kind, form.name == "parquet")
    return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")


def _delimited_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    path, form, kind = file
    layout = read_layout(path, kind, SEPARATORS[form.name])
    read = quoted_blocks if how.quoted else partial(delimited_blocks, size=_block(size, how))
    return read(path, layout, kind, how.engine, how.whole)


def _block(size: int, how: ReadOptions) -> int:
    return size + 64 if how.whole else min(size + 64, how.engine.block)


def _bad_line(buffer: LineBuffer, rows: ParsedRows) -> FormatError:
    end = buffer.end_of_line(rows.bad)
    text = buffer.text(rows.bad, end - rows.bad).strip()
    shown = f"'{text[:80]}{'...' if len(text) > 80 else ''}'"
    line = buffer.line_of(rows.bad)
    if rows.bad_score:
        return FormatError(buffer.path, shown, "a finite number as the score, in column 5", line)
    columns = "column" if len(text.split()) == 1 else "columns"
    expected = "6 columns: query Q0 document rank score tag"
    if len(text.split()) == 4:
        expected += "; 4 are judgments, which stand before the run"
    return FormatError(buffer.path, f"{len(text.split())} {columns} in {shown}", expected, line)
