"""Rankings and judgments from files, and their join while they are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.core.judged import Judged, stretches
from weir.core.order import Ties, compared
from weir.core.qrels import LARGEST, READ_QRELS, Origins, Qrels, grade_column, shown_number
from weir.core.run import READ_RUN, Run
from weir.core.strings import Bytes, Float64, Ids, Int32, Int64, Strings, hash_strings
from weir.errors import BadRanking, BadValue, FormatError
from weir.files.blocks import (
    EngineName,
    LongIdentifierError,
    Lookup,
    ParsedRows,
    Parser,
    QuotedCellError,
    RankingBlock,
    as_bytes,
    differs_from_previous,
    distinct,
    distinct_strings,
    long_identifier,
    refuse_long,
    take_strings,
)
from weir.files.formats import ReadOptions, Source, file_source, format_of, named_format, nested_source
from weir.files.json_runs import OddJsonError, read_nested
from weir.files.parsers import choose_engine, parse_decimals, split_cells, split_columns
from weir.files.text_files import LineBuffer, read_bytes, unpacked_name

# Rankings are read block by block of whole queries, whatever they are stored as. A block that holds several queries is
# parsed, its rankings are put in order and its documents are looked up while their identifiers are still in the buffer;
# only codes and scores are kept. A file whose queries are interleaved is the exception: it is read whole and sorted by
# query first.

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RankingPart:
    """The rankings of some queries of a file, each complete and in result order.

    query: int64[q] codes; ptr: int64[q + 1]; doc: int32[n] codes, -1 outside the table; score: float64[n].
    """

    query: Int64
    ptr: Int64
    doc: Int32
    score: Float64


@dataclass(frozen=True, eq=False)
class RunFile:
    """What to read: a source, the identifiers to number by (None: as they appear), the tie rule, the engine."""

    source: Source
    queries: Ids | None = None
    docs: Ids | None = None
    ties: Ties = "trec"
    engine: EngineName = "auto"


class _InterleavedError(Exception):
    """A query came back after another one."""


class IdentifierNumbers:
    """Numbers queries and documents of one file."""

    def __init__(self, file: RunFile) -> None:
        """Start with nothing numbered."""
        self.queries = file.queries
        self.numbered: dict[bytes, int] = {}
        self.ignored: dict[bytes, int] = {}
        self.seen: set[int] = set()
        self.docs: list[Strings] = []
        self.doc_count = 0

    def query_codes(self, wanted: Strings) -> Int64:
        """Codes of the queries of segments; those outside the table are ignored, and numbered behind it."""
        which, strings = distinct_strings(wanted)
        if self.queries is not None:
            codes = self.queries.codes(strings).astype(np.int64)
            others = np.flatnonzero(codes < 0)
            number, known = self.ignored, len(self.queries)
            codes[others] = [
                known + number.setdefault(q, len(number)) for q in as_bytes(strings.take(others))
            ]
        else:
            number = self.numbered
            codes = np.array([number.setdefault(q, len(number)) for q in as_bytes(strings)], np.int64)
        return codes[which]

    def query(self, code: int) -> str:
        """The identifier of a numbered query."""
        if self.queries is None:
            return self.all_queries()[code]
        known = len(self.queries)
        return (
            self.queries[code]
            if code < known
            else list(self.ignored)[code - known].decode("utf-8", "replace")
        )

    def doc_codes(self, buf: Bytes, rows: ParsedRows) -> Int32:
        """Codes of the documents of rows, numbered as they appear (with repetitions between blocks)."""
        codes, first = distinct(buf, rows.start, rows.length, rows.hashes)
        self.docs.append(take_strings(buf, rows.start[first], rows.length[first]))
        self.doc_count += len(first)
        return (codes + (self.doc_count - len(first))).astype(np.int32)

    def all_queries(self) -> Ids:
        """The queries numbered so far."""
        return Ids(Strings.packed(list(self.numbered)))

    def all_docs(self) -> tuple[Int64, Ids]:
        """The new code of each code given so far, and the distinct documents."""
        codes, strings = distinct_strings(Strings.concatenated(self.docs))
        return codes, Ids(strings)


def read_parts(file: RunFile, step: Callable[[RankingPart], T]) -> tuple[list[T], IdentifierNumbers]:
    """Read rankings and apply `step`, a pure function, to each part: the rankings of some of the queries.

    Memory: one block and what `step` keeps, unless the file's queries are interleaved; then the file is read
    whole. Raises FormatError for a line that is no row and BadRanking for a duplicate, with the line.
    """
    engine = choose_engine(file.engine, file.source.size)
    how = ReadOptions(engine)
    while True:  # twice or thrice at most: a way of reading that did not do is not tried again
        names = IdentifierNumbers(file)
        lookup = Lookup.of(file.docs)
        results = []
        try:
            for block in file.source.blocks(how):
                part = _part(block, file, names, (engine, lookup, how.whole))
                if part is not None:
                    results.append(step(part))
            return results, names
        except _InterleavedError:
            how = replace(how, whole=True)
        except QuotedCellError:
            how = replace(how, quoted=True)


def _part(
    block: RankingBlock, file: RunFile, names: IdentifierNumbers, by: tuple[Parser, Lookup, bool]
) -> RankingPart | None:
    """The rankings of a block, None where none of its queries is known; ignored ones are checked all the same."""
    engine, lookup, whole = by
    query = names.query_codes(block.queries)
    numbers = query.tolist()
    again = len(set(numbers)) < len(numbers) or not names.seen.isdisjoint(numbers)
    names.seen.update(numbers)
    if again and not whole:
        raise _InterleavedError
    lengths, order = block.rows.segment_lengths(), None
    if len(np.unique(query)) < len(query):
        of_row = np.repeat(query, lengths)
        order = np.argsort(of_row, kind="stable")
        query, lengths = np.unique(of_row[order], return_counts=True)
    cuts = np.zeros(len(query) + 1, np.int64)
    np.cumsum(lengths, out=cuts[1:])
    if len(query) == 0:
        return None
    rows = block.rows if order is None else block.rows.take(order)
    ranked = engine.rank(block.buf, rows, cuts, compared(rows.score, file.ties), lookup)
    if ranked.twice >= 0:
        row = ranked.twice
        document = take_strings(block.buf, rows.start[row : row + 1], rows.length[row : row + 1])[0]
        name = names.query(int(query[np.searchsorted(cuts, row, side="right") - 1]))
        where = f"{file.source.name}{block.place(row if order is None else int(order[row]))}"
        raise BadRanking(
            f"{where}: query '{name}' ranks document '{document}' twice; remove the duplicates first"
        )
    doc = ranked.doc if file.docs is not None else names.doc_codes(block.buf, rows)[ranked.order]
    score = rows.score[ranked.order]
    if file.queries is None or not (query >= len(file.queries)).any():
        return RankingPart(query, cuts, doc, score)
    judged = np.flatnonzero(query < len(file.queries))
    if not len(judged):
        return None
    at, _ = stretches(cuts[judged], cuts[judged + 1])
    ptr = np.append(0, np.cumsum(np.diff(cuts)[judged]))
    return RankingPart(query[judged], ptr, doc[at], score[at])


CERTAIN_RANKS = 5
"""Documents of a query whose grades count up by one, from which on they are ranks."""
_COLUMNS = "4 columns (query 0 document grade), or query, document and grade between tabs"


def judgments_of(source: Source) -> tuple[Qrels, int]:
    """The judgments of a source, and how many rows only repeated an earlier one.

    Raises FormatError as `weir.files.runs.read_qrels` does.
    """
    how = ReadOptions(choose_engine("auto", source.size), whole=True)
    try:
        block = next(source.blocks(how), None)
    except QuotedCellError:
        block = next(source.blocks(ReadOptions(how.engine, whole=True, quoted=True)), None)
    if block is None:
        return Qrels.of({}), 0
    return _assembled(source.name, block, source.origins())


def _assembled(name: object, block: RankingBlock, origins: Origins | None) -> tuple[Qrels, int]:
    """The judgments in a block, each pair once, and how many rows only repeat an earlier one."""
    rows, value = block.rows, block.rows.score
    beyond = np.flatnonzero(np.abs(value) > LARGEST)
    if len(beyond):
        row = int(beyond[0])
        raise _bad_grade(f"{name}{block.place(row)}", shown_number(value[row]).removesuffix(".0"))
    grade = grade_column(value)
    segment, queries = distinct_strings(block.queries)
    query = np.repeat(segment, rows.segment_lengths())
    doc, first = distinct(block.buf, rows.start, rows.length, rows.hashes)
    docs = take_strings(block.buf, rows.start[first], rows.length[first])
    pair = query * (int(doc.max(initial=0)) + 1) + doc
    order = np.argsort(pair, kind="stable")
    again = np.zeros(len(pair), np.bool_)
    again[1:] = pair[order][1:] == pair[order][:-1]
    later = np.flatnonzero(again)
    clash = later[grade[order[later]] != grade[order[later - 1]]]
    if len(clash):
        at = clash[np.argmin(order[clash])]
        one, other = int(order[at - 1]), int(order[at])
        raise FormatError(
            f"{name}{block.place(other)}",
            f"grade {grade[other]} for a pair that {block.place(one).removeprefix(', ')} gives grade {grade[one]}",
            "one grade for each query and document; remove one of the two lines",
        )
    first_rows = np.sort(order[~again])  # of each pair
    codes = query[first_rows].astype(np.int32), doc[first_rows].astype(np.int32)
    named = None if origins is None else origins.take(first_rows)
    qrels = Qrels.from_columns(Ids(queries), Ids(docs), *codes, grade[first_rows], named)
    return qrels, len(grade) - len(first_rows)


def _bad_grade(where: str, shown: str) -> FormatError:
    return FormatError(where, f"the grade '{shown}'", f"a number within ±{LARGEST}; scale the grades first")


def read_trec_qrels(path: Path) -> tuple[Qrels, int]:
    """Read TREC's four columns, or tab-separated ones without a header; raises as `judgments_of`."""
    with LineBuffer(path, 1 << 16) as buffer:
        while not buffer.ended:
            buffer.grow()
            stop = buffer.fill()
        line, at = "", 0  # the first that is neither blank nor a comment
        while at < stop and (not line or line.startswith("#")):
            line = buffer.line_text(at)
            at = buffer.end_of_line(at) + 1
        cells = len(line.split("\t"))
        # Cut at tabs when the first line has some: identifiers may hold blanks.
        cut_at_tabs = cells in (3, 4) and not line.startswith("#")
        table = split_cells(buffer.buf, stop, cells) if cut_at_tabs else split_columns(buffer.buf, stop, 4, 4)
        if table.bad >= 0:
            line = buffer.line_text(table.bad)
            run = "; this looks like a run, and judgments come first" if len(line.split()) == 6 else ""
            raise FormatError(path, f"'{line[:80]}'", _COLUMNS + run, buffer.line_of(table.bad))
        column = [np.ascontiguousarray(table.start[:, c]) for c in (0, -2, -1)]
        length = [np.ascontiguousarray(table.end[:, c]) - s for c, s in zip((0, -2, -1), column, strict=True)]
        for start, size in zip(column, length, strict=True):
            empty = np.flatnonzero(size == 0)
            if len(empty):
                raise FormatError(path, "an empty column", _COLUMNS, buffer.line_of(int(start[empty[0]])))
        try:
            refuse_long(column[0], length[0])
            refuse_long(column[1], length[1])
        except LongIdentifierError as error:
            raise long_identifier(buffer, error) from None
        grade = _grades(buffer, column[2], length[2])
        each = np.arange(len(grade))
        hashes = hash_strings(buffer.buf, column[1], length[1])
        rows = ParsedRows(column[1], length[1], hashes, grade, each, column[0], length[0])
        queries = take_strings(buffer.buf, column[0], length[0])
        if table.start.shape[1] == 3:
            _refuse_ranks(path, queries, grade)

        def place(row: int) -> str:
            return f", line {buffer.line_of(int(column[2][row]))}"

        return _assembled(path, RankingBlock(buffer.buf, rows, queries, place), None)


def _refuse_ranks(path: Path, queries: Strings, grade: Float64) -> None:
    """Raise FormatError where three columns without a header hold ranks, as PyTerrier writes results."""
    first = np.flatnonzero(differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths()))
    count = np.diff(np.append(first, len(grade)))
    if count.max(initial=0) < CERTAIN_RANKS or grade[0] not in (0, 1):
        return
    if (grade == grade[0] + np.arange(len(grade)) - np.repeat(first, count)).all():
        ranks = f"numbers that count up from {grade[0]:g} for each query, as ranks do"
        expected = "grades; a run of ranks is read by: weir data import FILE -o DIR --as run-ranks"
        raise FormatError(path, ranks, expected)


def _grades(buffer: LineBuffer, start: Int64, length: Int64) -> Float64:
    """The grades in a column of text; raises FormatError for what is no number within the range of grades."""
    if length.max(initial=0) == 1:  # as nearly always: one digit
        digit = buffer.buf[start] - np.uint8(48)
        if digit.max(initial=0) < 10:
            return digit.astype(np.float64)
    value, wrong = parse_decimals(buffer.buf, start, length)
    odd = np.union1d(wrong, np.flatnonzero(np.abs(value) > LARGEST))
    if len(odd):
        at = int(start[odd[0]])
        shown = buffer.text(at, int(length[odd[0]]))
        raise _bad_grade(f"{buffer.path}, line {buffer.line_of(at)}", shown)
    return value


def read_run(path: Path | str, ties: Ties = "trec", engine: EngineName = "auto") -> Run:
    """Read a run: TREC, JSON, CSV, TSV, Parquet, Arrow or a pickle; queries and documents are numbered as they appear.

    The format is told by the file's name, or by how it begins (docs/formats.md). TREC lines are `query Q0 document
    rank score [tag]`, separated by blanks or tabs; the rank column is ignored, and so is what follows the tag; lines
    that start with `#` are comments, as in trec_eval 10. JSON is {query: {document: score}}, or lists of documents
    in rank order, and so is a pickle, in which nothing is run. Tables have a column
    each for query, document and score, called as is usual. `.gz` and `.zst` are unpacked. ties: see core/order.py;
    engine: "numpy", "numba" or "auto", the faster of those installed; the result is the same.
    Raises FormatError for a line that is no such row, BadRanking for a document twice in one ranking.
    """
    path = Path(path)
    return _read_rows(
        path, ties, engine, lambda source: run_of(source, run_name(path), ties, engine), lambda run: run
    )


READ_RUN.register(read_run)


def run_of(source: Source, name: str, ties: Ties = "trec", engine: EngineName = "auto") -> Run:
    """The run that a source holds; arguments and errors otherwise as read_run."""
    parts, names = read_parts(RunFile(source, None, None, ties, engine), lambda part: part)
    new, docs = names.all_docs()
    query, ptr, doc, score = _assembled_parts(parts)
    queries = names.all_queries()
    ptr, doc, score = _by_query(len(queries), query, ptr, new.astype(np.int32)[doc], score)
    return Run(queries, docs, ptr, doc, score, name, ties)


def read_run_against(
    path: Path | str, queries: Ids, docs: Ids, ties: Ties = "trec", engine: EngineName = "auto"
) -> tuple[Run, int]:
    """Read a run, of any format but JSON, in terms of known queries and documents, in little memory.

    Documents outside `docs` get the code -1 and keep their place; queries outside `queries` are left out.
    Returns the run, its queries in the order of `queries`, and how many queries of the file were left out.
    Arguments and errors otherwise as read_run.
    """
    source = file_source(Path(path), format_of(Path(path), "run"), "run")
    parts, names = read_parts(RunFile(source, queries, docs, ties, engine), lambda part: part)
    query, ptr, doc, score = _assembled_parts(parts)
    ptr, doc, score = _by_query(len(queries), query, ptr, doc, score)
    return Run(queries, docs, ptr, doc, score, run_name(Path(path)), ties), len(names.ignored)


def join_run_file(path: Path | str, qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto") -> Judged:
    """Join a run file with judgments; only a JSON file is ever held, so a few megabytes do for any other size.

    The result equals Judged.of(read_run(path), qrels). Arguments and errors as read_run.
    """
    return _read_rows(
        Path(path),
        ties,
        engine,
        lambda source: join_source(source, qrels, ties, engine),
        lambda run: Judged.of(run, qrels),
    )


def join_source(source: Source, qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto") -> Judged:
    """Join the rankings of a source with judgments; arguments and errors otherwise as read_run."""

    def join(part: RankingPart) -> tuple[Int64, Judged]:
        judgments = qrels.only(part.query)
        run = Run(judgments.queries, judgments.docs, part.ptr, part.doc, part.score, ties=ties)
        return part.query, Judged.of(run, judgments)

    parts, names = read_parts(RunFile(source, qrels.queries, qrels.docs, ties, engine), join)
    none = np.zeros(len(qrels.queries) + 1, np.int64)
    empty = Run(qrels.queries, qrels.docs, none, np.empty(0, np.int32), np.empty(0, np.float64))
    judged = Judged.of(empty, qrels)
    retrieved, tied = judged.retrieved.copy(), judged.tied.copy()
    for codes, part in parts:
        retrieved[codes], tied[codes] = part.retrieved, part.tied
    query = np.concatenate([judged.query, *(codes[p.query] for codes, p in parts)])
    order = np.argsort(query, kind="stable")
    return replace(
        judged,
        retrieved=retrieved,
        tied=tied,
        query=query[order].astype(np.int32),
        rank=np.concatenate([judged.rank, *(p.rank for _, p in parts)])[order],
        grade=np.concatenate([judged.grade, *(p.grade for _, p in parts)])[order],
        first=np.concatenate([judged.first, *(p.first for _, p in parts)])[order],
        last=np.concatenate([judged.last, *(p.last for _, p in parts)])[order],
        ignored=len(names.ignored),
        close=sum(p.close for _, p in parts),
        stranger=min(names.ignored, default=b"").decode("utf-8", "replace"),
    )


def read_qrels(path: Path | str) -> Qrels:
    """Read judgments: TREC (`query 0 document grade`), BEIR's TSV, JSON, CSV, TSV, Parquet, Arrow or a pickle.

    The format is told by the file's name, or by how it begins (docs/formats.md). Tables have a column each for
    query, document and grade, called as is usual, and may have one called `origin`, which says where each judgment
    comes from. Without a header, columns are cut at tabs where the first line has two or three, so that identifiers
    may hold blanks, and at blanks otherwise. Grades are numbers within ±16384, with fractions or without. A pair
    judged twice with one grade counts once. Raises FormatError, with the line, for another number of columns, for
    anything but a finite number as a grade, and for a pair with two grades.
    """
    return read_qrels_counted(path)[0]


READ_QRELS.register(read_qrels)


def read_qrels_counted(path: Path | str) -> tuple[Qrels, int]:
    """As `read_qrels`, and how many lines only repeated an earlier judgment; raises as it does."""
    path = Path(path)
    form = format_of(path, "qrels")
    if form.name == "trec":
        return read_trec_qrels(path)
    if form.rows:
        return judgments_of(file_source(path, form, "qrels"))
    judgments = read_nested(path, "qrels")
    try:
        return Qrels.of(judgments), 0
    except BadValue as error:
        raise FormatError(path, str(error), '{"query": {"document": grade}}') from None


def run_name(path: Path) -> str:
    """What a run read from a file is called: the file's name without its endings."""
    name = unpacked_name(path)
    form = named_format(path)
    for ending in form.suffixes if form else ():
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name or path.name


def _read_rows(
    path: Path, ties: Ties, engine: EngineName, of_rows: Callable[[Source], T], of_run: Callable[[Run], T]
) -> T:
    """What `of_rows` makes of a run file as rows, or `of_run` of the run in JSON or a pickle, which is read whole."""
    form = format_of(path, "run")
    if form.rows:
        return of_rows(file_source(path, form, "run"))
    source = nested_source(path) if engine != "numpy" else None
    if source is not None:
        # The general parser below says what is wrong, if anything is.
        with suppress(OddJsonError, BadRanking):
            return of_rows(source)
    rankings = read_nested(path, "run")
    try:
        run = Run.of(rankings, run_name(path), ties)
    except (BadRanking, BadValue) as error:
        raise type(error)(f"{path}: {error}") from None
    return of_run(run)


def _assembled_parts(parts: list[RankingPart]) -> tuple[Int64, Int64, Int32, Float64]:
    """One column of query codes, one of lengths, one of documents and one of scores, in file order."""
    query = np.concatenate([np.empty(0, np.int64), *(p.query for p in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(p.ptr) for p in parts)])
    doc = np.concatenate([np.empty(0, np.int32), *(p.doc for p in parts)])
    score = np.concatenate([np.empty(0, np.float64), *(p.score for p in parts)])
    return query, lengths, doc, score


def _by_query(
    count: int, query: Int64, lengths: Int64, doc: Int32, score: Float64
) -> tuple[Int64, Int32, Float64]:
    """Rankings in the order of their query codes: ptr, documents, scores."""
    ptr = np.zeros(count + 1, np.int64)
    ptr[query + 1] = lengths
    np.cumsum(ptr, out=ptr)
    if (query[1:] > query[:-1]).all():
        return ptr, doc, score
    order = np.argsort(query)
    begin = (np.cumsum(lengths) - lengths)[order]
    rows = np.repeat(begin - (np.cumsum(lengths[order]) - lengths[order]), lengths[order]) + np.arange(
        len(doc)
    )
    return ptr, doc[rows], score[rows]


_SCORE_COLUMN, _FEWEST_COLUMNS = 4, 5


def read_repeating_run(path: Path | str) -> tuple[Run, int]:
    """A run, and how many of its rows name a document that the same ranking names elsewhere, which count no further.

    Carelessly parsed answers of language models repeat documents. Of a document's rows the one with the highest score
    is kept. Only files in TREC's format may repeat documents. For what looks into rankings: measures are not defined
    on such, and `read_run` refuses them. Raises as `read_run`.
    """
    path = Path(path)
    try:
        return read_run(path), 0
    except BadRanking:
        if format_of(path, "run").name != "trec":
            raise
    rankings: dict[str, dict[str, float]] = {}
    repeated = 0
    for number, line in enumerate(read_bytes(path).decode("utf-8", "surrogateescape").split("\n"), 1):
        cells = line.split()
        if not cells or line.startswith("#"):
            continue
        try:
            score = float(cells[_SCORE_COLUMN]) if len(cells) >= _FEWEST_COLUMNS else math.nan
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise FormatError(path, f"'{line.strip()[:80]}'", "query Q0 document rank score tag", number)
        ranking, document = rankings.setdefault(cells[0], {}), cells[2]
        repeated += document in ranking
        ranking[document] = max(score, ranking.get(document, -math.inf))
    return Run.of(rankings, run_name(path)), repeated
