"""Write and convert rankings and judgments."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weir.core import results
from weir.core.qrels import WRITE_QRELS, Origins, Qrels, plain_grades
from weir.core.run import WRITE_RUN, Run
from weir.core.strings import Int64, Strings
from weir.core.tables import Table, sentences
from weir.errors import BadValue, LossWarning, UnknownName, require
from weir.files.atomic import atomic_file, is_stream
from weir.files.column_names import (
    BEIR_HEAD,
    ORIGIN,
    WRITTEN,
    Kind,
    origin_column,
    rank_column,
    row_columns,
)
from weir.files.formats import FORMATS, format_of, kind_of_file, named_format, names_of_columns
from weir.files.journal_labels import is_journal
from weir.files.json_files import json_rows
from weir.files.parents import read_parents
from weir.files.parsers import number_texts
from weir.files.paths import path_of
from weir.files.pickles import pickled_rows
from weir.files.runs import read_qrels_counted, read_run
from weir.files.tables import as_arrow
from weir.files.text_files import PACKED, is_pipe, packing, unpacked_name

Progress = Callable[[int, int], None]  # rows written, rows in all
_BREAKS = b" \t\n\r\v\f"
_BLOCK_ROWS = 1 << 17  # lines written at a time
_Texts = Iterator[tuple[str, int]]  # some lines, and how many rows they hold
_GROUP_ROWS = {True: 1 << 20, False: 1 << 16}  # rows of a row group of Parquet, of a batch of Arrow


def write_run(
    run: Run,
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    comments: Sequence[str] = (),
    lists: bool = False,
) -> None:
    """Write a run atomically in the format of the file's suffix (docs/formats.md), by default TREC.

    Scores read back equal. Queries without documents are written in JSON and pickles only.

    comments: first lines of a TREC file.
    lists: in JSON or a pickle, documents in rank order without scores.

    Raises BadValue for an identifier that TREC cannot hold (white space, a query with `#` first) and options that the
    format lacks; MissingExtra for a missing package.
    """
    run.refuse_nameless()
    form = named_format(path_of(path))
    if lists and (form is None or form.rows):
        raise BadValue(f"{path}: lists of documents need JSON or a pickle; write .json or .pickle")
    _write(run, path_of(path), progress, comments, lists)


WRITE_RUN.register(write_run)


def write_qrels(qrels: Qrels, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
    """Write judgments atomically in the format of the file's suffix (docs/formats.md), by default TREC.

    A TSV has BEIR's header. Only tables keep origins. Raises BadValue for an identifier that the format cannot hold,
    MissingExtra for a missing package.
    """
    _write(qrels, path_of(path), progress)


WRITE_QRELS.register(write_qrels)


@dataclass(frozen=True, repr=False)
class Conversion:
    """Counts of rows and losses of a conversion of rankings or judgments."""

    target: Path
    kind: str
    """"run" or "qrels"."""
    queries: int
    rows: int
    lists: bool = False
    """True if a run lost its scores."""
    repeated: int = 0
    """Number of repeated judgments left out."""
    without_origin: str = ""
    """Format that cannot hold the origins of judgments; "" if none are lost."""
    passages: int = 0
    """Number of passages collapsed into documents, 0 for none."""
    columns: tuple[str, ...] = ()
    """Columns of a table that were not read, and so are not written."""
    without_rows: int = 0
    """Number of queries without a document, which the format cannot hold."""

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        if self.kind == "run":
            text = f"a run of {self.queries:,} queries and {self.rows:,} documents returned"
            text += f", the best of {self.passages:,} passages" if self.passages else ""
        else:
            text = f"{self.rows:,} judgments of {self.queries:,} queries"
        text += "; without their scores" if self.lists else ""
        text += f"; {self.repeated:,} repeated judgments left out" if self.repeated else ""
        if self.without_origin:
            text += f"; where they come from is left out, as {self.without_origin} has no place for it"
        if self.without_rows:
            text += f"; queries without a document, which the format cannot hold, are left out: {self.without_rows:,}"
        text += f"; columns left out: {', '.join(self.columns)}" if self.columns else ""
        return (sentences(f"{self.target}: {text}"),)

    def notes(self) -> tuple[object, ...]:
        return ()


def convert(
    source: Path,
    target: Path,
    kind: Literal["run", "qrels"] | None = None,
    lists: bool = False,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    collapse: str | None = None,
) -> Conversion:
    """Write rankings or judgments atomically in the format that the target's name implies; return counts and losses.

    target: `-`, a pipe or a device without a known ending gets TREC lines.
    kind: "run" or "qrels", by default as the columns say.
    lists: write a run as lists of documents in rank order without scores, as BIRCO reads them (.json or .pickle).
    collapse: rank documents instead of their passages. It is the separator in identifiers such as d1#3, or a file
        that maps passages to documents.

    Raises UnknownName for a name without a format, BadValue for identical files and for judgments as lists, and the
    errors of reading and writing.
    """
    form = named_format(target)
    if form is None and not is_stream(target):
        suffixes = [suffix for known in FORMATS for suffix in known.suffixes]
        raise UnknownName("format", PurePath(unpacked_name(target)).suffix or target.name, suffixes)
    if target.exists() and source.exists() and target.samefile(source):
        raise BadValue(f"{target} is also the input; choose another name for the result")
    kind = kind or ("qrels" if is_journal(source) else kind_of_file(source))
    if lists and kind == "qrels":
        raise BadValue(f"{source} holds judgments; `lists` is about runs")
    if collapse is not None and kind == "qrels":
        raise BadValue(f"{source} holds judgments; `collapse` is about runs")
    parents = None if collapse is None else _parents(collapse)
    progress(f"reading {source.name}", 0, 1)
    written_rows = partial(progress, f"writing {target.name}")
    if kind == "run":
        with _said_by_conversion():
            run = read_run(source)
        passages = 0 if parents is None else len(run.doc)
        run = run if parents is None else run.collapsed(parents)
        write_run(run, target, written_rows, lists=lists)
        lost = _columns_lost(source, "run")
        as_rows = form is None or form.rows
        empty = int(np.count_nonzero(np.diff(run.ptr) == 0)) if as_rows else 0
        return Conversion(
            target, kind, len(run.queries) - empty, len(run.doc), lists,
            passages=passages, columns=lost, without_rows=empty,
        )  # fmt: skip
    with _said_by_conversion():
        qrels, repeated = read_qrels_counted(source)
    write_qrels(qrels, target, written_rows)
    name, rows = ("trec", True) if form is None else (form.name, form.rows)
    without = name if qrels.origin is not None and (name == "trec" or not rows) else ""
    count, lost = len(qrels.queries), _columns_lost(source, "qrels")
    return Conversion(target, kind, count, len(qrels.doc), False, repeated, without, columns=lost)


@contextmanager
def _said_by_conversion() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*: not read: \d+ column", LossWarning)
        yield


def _columns_lost(source: Path, kind: Kind) -> tuple[str, ...]:
    if is_pipe(source) or is_journal(source):
        return ()
    form = format_of(source, kind)
    columns = names_of_columns(source, form)
    if form.name == "jsonl":  # later rows may have more
        columns = list(dict.fromkeys([*columns, *(name for _, row in json_rows(source) for name in row)]))
    if not columns:
        return ()
    used = {*row_columns(columns, kind), rank_column(columns, kind), origin_column(columns, kind)}
    return tuple(name for n, name in enumerate(columns) if n not in used and name.strip())


def _parents(collapse: str) -> dict[str, str] | str:
    named = any(collapse.endswith(ending) for ending in (".tsv", ".csv", ".txt", *PACKED))
    return (
        read_parents(path_of(collapse))
        if named or "/" in collapse[1:] or Path(collapse).is_file()
        else collapse
    )


def _write(
    value: Run | Qrels,
    path: Path,
    progress: Progress | None,
    comments: Sequence[str] = (),
    lists: bool = False,
) -> None:
    form = named_format(path)
    name, total = form.name if form else "trec", len(value.doc)

    if form is not None and not form.packs and path.suffix in PACKED:
        raise BadValue(f"{path}: {name} files are packed inside; leave out {path.suffix}")
    if comments and name != "trec":
        raise BadValue(f"{path}: {name} files have no comments; write .trec")
    with atomic_file(path) as temporary:
        if name in ("parquet", "arrow"):
            _write_table(value, temporary, name == "parquet", progress)
            return
        with temporary.open("wb") as file, packing(path, file) as out:
            done = 0
            out.write("".join(f"# {line}\n" for line in comments).encode("utf-8"))
            pieces: Iterator[tuple[bytes, int]]
            if name == "pickle":
                counts = itertools.chain([0], np.diff(value.ptr).tolist(), [0])
                pieces = zip(pickled_rows(_nested_rows(value, lists)), counts, strict=True)
            else:
                texts = _json(value, lists) if name == "json" else _TEXTS[name](value)
                pieces = ((text.encode("utf-8"), rows) for text, rows in texts)
            for piece, rows in pieces:
                out.write(piece)
                done += rows
                if progress is not None:
                    progress(done, total)


def _nested_rows(value: Run | Qrels, lists: bool) -> Iterator[tuple[str, list[str] | dict[str, float]]]:
    queries = value.queries.tolist()
    for block in _ranked_blocks(value):
        docs, cuts = block.docs.tolist(), block.cuts.tolist()
        numbers = block.number.tolist() if isinstance(value, Run) else plain_grades(block.number)
        for q, a, b in zip(block.queries, cuts[:-1], cuts[1:], strict=True):
            yield queries[q], docs[a:b] if lists else dict(zip(docs[a:b], numbers[a:b], strict=True))


@dataclass(frozen=True, eq=False)
class _QueryRows:
    queries: range
    docs: Strings
    number: NDArray[np.int16 | np.float64]
    cuts: Int64
    """int64: first row of each query."""
    origins: list[str] | None = None
    """None if not known."""

    def row_texts(self, ranked: bool) -> list[str]:
        texts = number_texts(self.number)
        return texts if ranked else [text.removesuffix(".0") for text in texts]

    def per_row(self, names: list[str]) -> Iterator[str]:
        counts = np.diff(self.cuts).tolist()
        return itertools.chain.from_iterable(map(itertools.repeat, names[self.queries.start :], counts))


def _ranked_blocks(value: Run | Qrels, rows: int = 0) -> Iterator[_QueryRows]:
    rows = rows or _BLOCK_ROWS
    number = value.score if isinstance(value, Run) else value.grade
    first, ptr = 0, value.ptr
    while first < len(value.queries):
        last = max(first + 1, int(ptr.searchsorted(ptr[first] + rows, side="right")) - 1)
        part = slice(int(ptr[first]), int(ptr[last]))
        docs = value.docs.take(value.doc[part]).strings
        origin = value.origin if isinstance(value, Qrels) else None
        origins = None if origin is None else Origins(origin.names, origin.code[part]).tolist()
        yield _QueryRows(range(first, last), docs, number[part], ptr[first : last + 1] - ptr[first], origins)
        first = last


def _trec(value: Run | Qrels) -> _Texts:
    _refuse_breaks(value.queries.strings, "query")
    queries = value.queries.tolist()
    odd = next((query for query in queries if query.startswith(("#", "\ufeff"))), None)
    if odd is not None:
        why = f"starts with {odd[0]!r}, as no line of a TREC file can"
        raise BadValue(f"query identifier {odd!r} {why}; write .csv or .json")
    tail = "-".join(value.name.split()) or "run" if isinstance(value, Run) else ""
    for block in _ranked_blocks(value):
        _refuse_breaks(block.docs, "document")
        docs, cuts = block.docs.tolist(), block.cuts.tolist()
        numbers = block.row_texts(isinstance(value, Run))
        lines = list[str]()
        if isinstance(value, Run):
            ranks = [f" {rank} " for rank in range(1, 1 + max(np.diff(block.cuts).tolist(), default=0))]
            # Head, document, rank, score and tail of each line are joined without a text for each line.
            for q, a, b in zip(block.queries, cuts[:-1], cuts[1:], strict=True):
                pieces = [f" {tail}\n{queries[q]} Q0 "] * (4 * (b - a))
                pieces[0::4], pieces[1::4], pieces[2::4] = docs[a:b], ranks[: b - a], numbers[a:b]
                if pieces:
                    pieces[0], pieces[-1] = f"{queries[q]} Q0 {docs[a]}", f" {tail}\n"
                lines.append("".join(pieces))
        else:
            rows = zip(block.per_row(queries), docs, numbers, strict=True)
            lines = [f"{query} 0 {doc} {number}\n" for query, doc, number in rows]
        yield "".join(lines), len(docs)


def _refuse_breaks(ids: Strings, what: str) -> None:
    at = _holding(ids, _BREAKS)
    if len(at):
        bad = ids[int(at[0])]
        why = "has white space, which TREC files cannot hold; write .csv or .json"
        raise BadValue(f"{what} identifier {bad!r} {why}")


def _holding(ids: Strings, any_of: bytes) -> Int64:
    table = np.zeros(256, np.bool_)
    table[list(any_of)] = True
    at = np.flatnonzero(table[ids.data[ids.ptr[0] : ids.ptr[-1]]])
    return np.unique(np.searchsorted(ids.ptr, ids.ptr[0] + at, side="right") - 1)


def _delimited(value: Run | Qrels, separator: str, head: tuple[str, ...]) -> _Texts:
    more = (ORIGIN,) if isinstance(value, Qrels) and value.origin is not None else ()
    yield separator.join([*head, *more]) + "\n", 0
    # A line may not begin with a byte order mark, which readers take for another file's.
    queries = [
        f'"{one}"' if one.startswith("\ufeff") else one for one in _quoted(value.queries.strings, separator)
    ]
    for block in _ranked_blocks(value):
        docs, numbers = _quoted(block.docs, separator), block.row_texts(isinstance(value, Run))
        if block.origins is not None:
            origins = _quoted(Strings.of(block.origins), separator)
            numbers = [f"{number}{separator}{one}" for number, one in zip(numbers, origins, strict=True)]
        rows = zip(block.per_row(queries), docs, numbers, strict=True)
        yield "".join(f"{separator.join(row)}\n" for row in rows), len(docs)


def _quoted(ids: Strings, separator: str) -> list[str]:
    texts = ids.tolist()
    for at in _holding(ids, f'{separator}"\r\n'.encode()).tolist():
        texts[at] = '"' + texts[at].replace('"', '""') + '"'
    return texts


def _json(value: Run | Qrels, lists: bool = False) -> _Texts:
    lead = "{"
    for query, row in _nested_rows(value, lists):
        name, numbers = json.dumps(query, ensure_ascii=False), json.dumps(row, ensure_ascii=False)
        yield f"{lead}{name}: {numbers}", len(row)
        lead = ", "
    yield "{}" if lead == "{" else "}", 0


def _json_rows(value: Run | Qrels) -> _Texts:
    queries, ranked = value.queries.tolist(), isinstance(value, Run)
    more = (ORIGIN,) if isinstance(value, Qrels) and value.origin is not None else ()
    names = (*WRITTEN["run" if ranked else "qrels"], *more)
    for block in _ranked_blocks(value):
        numbers = block.number.tolist() if ranked else plain_grades(block.number)
        columns = [block.per_row(queries), block.docs.tolist(), numbers]
        if block.origins is not None:
            columns.append(block.origins)
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        yield "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), len(block.docs)


def _write_table(value: Run | Qrels, path: Path, parquet: bool, progress: Progress | None = None) -> None:
    arrow, ranked = require("pyarrow", "run"), isinstance(value, Run)
    fractions = ranked or (isinstance(value, Qrels) and value.fractional)
    names, number = WRITTEN["run" if ranked else "qrels"], arrow.float64() if fractions else arrow.int32()
    fields = list(zip(names, (arrow.string(), arrow.string(), number), strict=True))
    if isinstance(value, Qrels) and value.origin is not None:
        fields.append((ORIGIN, arrow.string()))
    schema, done = arrow.schema(fields), 0
    with path.open("wb") as file:
        if parquet:
            # Queries repeat and documents hardly do: only the former are worth a dictionary. Numbers hardly shrink.
            writer = require("pyarrow.parquet", "run").ParquetWriter(
                file,
                schema,
                compression={names[0]: "zstd", names[1]: "zstd", names[2]: "none"},
                use_dictionary=[names[0], *schema.names[3:]],
            )
        else:
            writer = require("pyarrow.ipc", "run").new_file(file, schema)
        with writer:
            for block in _ranked_blocks(value, _GROUP_ROWS[parquet]):
                query = np.repeat(np.arange(block.queries.start, block.queries.stop), np.diff(block.cuts))
                grades = block.number.astype(np.float64 if block.number.dtype.kind == "f" else np.int32)
                columns = [_arrow_texts(value.queries.strings.take(query)), _arrow_texts(block.docs)]
                columns.append(as_arrow(grades))
                if block.origins is not None:
                    columns.append(arrow.array(block.origins, arrow.string()))
                writer.write_batch(arrow.record_batch(columns, schema=schema))
                done += len(block.docs)
                if progress is not None:
                    progress(done, len(value.doc))


def _arrow_texts(strings: Strings) -> Any:  # noqa: ANN401  pyarrow has no types
    arrow = require("pyarrow", "run")
    data, ptr = arrow.py_buffer(np.ascontiguousarray(strings.data)), arrow.py_buffer(strings.ptr)
    return arrow.LargeStringArray.from_buffers(len(strings), ptr, data).cast(arrow.string())


_TEXTS: dict[str, Callable[[Run | Qrels], _Texts]] = {
    "trec": _trec,
    "csv": lambda value: _delimited(value, ",", WRITTEN["run" if isinstance(value, Run) else "qrels"]),
    "tsv": lambda value: _delimited(value, "\t", WRITTEN["run"] if isinstance(value, Run) else BEIR_HEAD),
    "jsonl": _json_rows,
}
