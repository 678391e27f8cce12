"""Read rankings and judgments from files, and join them while they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.core.dangling import COMPOSITION, SAMPLE, TOP, composed_otherwise, parts_of_known, spelled_otherwise
from weir.core.judged import Judged, own_documents
from weir.core.order import Ties, close_as_floats, compared, float_ranks, ranks
from weir.core.qrels import LARGEST, READ_QRELS, Qrels, grade_column, shown_number
from weir.core.rank_order import HEAD_ROWS, ORDER_COUNTS, OrderCounts, counts_of_block, counts_of_scores
from weir.core.roles import refuse_grades_as_documents
from weir.core.rounding import counted
from weir.core.run import Named, Run
from weir.core.short_names import run_file_name
from weir.core.strings import Bytes, Float64, Ids, Int32, Int64, Strings, stretches, take_strings
from weir.core.tables import cell_text
from weir.errors import BadRanking, BadValue, FormatError, LossWarning, give_warning, warn_of_ranking
from weir.files.beside import with_beside
from weir.files.formats import (
    TREC_COLUMNS,
    bad_grade,
    begins_as_sheet,
    counting_up,
    file_source,
    format_of,
    head_of,
)
from weir.files.import_report import say_import_losses
from weir.files.journal_labels import is_journal, read_journal
from weir.files.json_files import OddJsonError, nested_source, read_nested
from weir.files.parsers import (
    EngineName,
    Lookup,
    ParsedRows,
    QuotedCellError,
    RankingBlock,
    ReadOptions,
    Source,
    choose_engine,
    distinct,
    distinct_strings,
    ranks_in,
)
from weir.files.paths import path_of

# Rankings are read in blocks of whole queries, from any format. A block is parsed, its rankings are sorted and its
# documents looked up while their identifiers are still in the buffer; only codes and scores are kept. Only a file
# with interleaved queries is read whole and sorted by query first.

T = TypeVar("T")
_COUNTED_DOCUMENTS = 3
"""Fewest rows of the longest ranking whose documents may count as ranks."""


@dataclass(frozen=True, eq=False)
class RankingPart:
    """Complete rankings of some queries of a file, in rank order."""

    query: Int64
    """int64[q] codes."""
    ptr: Int64
    """int64[q + 1]: row offsets."""
    doc: Int32
    """int32[n] codes; -1 outside the table."""
    score: Float64
    float_rank: Int32 | None
    """As `Run.float_rank`."""


class _InterleavedError(Exception):
    pass


@dataclass(eq=False)
class _IdentifierNumbers:
    queries: Ids | None
    """Queries with fixed codes; None to number all by appearance."""
    others: dict[bytes, int] = field(default_factory=dict)
    """Queries not in `queries`, numbered after them."""
    docs: list[Strings] = field(default_factory=list)
    doc_count: int = 0
    order: OrderCounts | None = None
    """Agreement of row order and scores so far."""
    own_first: int = 0
    """Rankings that begin with the identifier of their query."""
    own_near: int = 0
    """As in `Judged`."""
    alike: set[str] = field(default_factory=set)
    """Documents and queries that equal judged ones except for Unicode composition."""
    unjudged: set[str] = field(default_factory=set)
    """Some of the documents that are not judged."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences on the order of the rankings, as in `Run`."""
        return () if self.order is None else self.order.doubts()

    def query_codes(self, segments: Strings) -> Int64:
        which, strings = distinct_strings(segments)
        size = 0 if self.queries is None else len(self.queries)
        codes = (
            np.full(len(strings), -1)
            if self.queries is None
            else self.queries.codes(strings).astype(np.int64)
        )
        data, cuts = (
            strings.data.tobytes(),
            strings.ptr.tolist(),
        )  # bytes: identifiers need not be valid UTF-8
        unknown = np.flatnonzero(codes < 0)
        names = [data[cuts[at] : cuts[at + 1]] for at in unknown.tolist()]
        if self.others:
            codes[unknown] = [size + self.others.setdefault(name, len(self.others)) for name in names]
        else:  # each is new
            codes[unknown] = np.arange(size, size + len(names))
            self.others.update(zip(names, range(len(names)), strict=True))
        return codes[which]

    def query(self, code: int) -> str:
        if self.queries is not None and code < len(self.queries):
            return self.queries[code]
        return list(self.others)[code - len(self.queries or ())].decode("utf-8", "replace")

    def doc_codes(self, buf: Bytes, rows: ParsedRows) -> Int32:
        codes, first = distinct(buf, rows.start, rows.length, rows.hashes)
        self.docs.append(take_strings(buf, rows.start[first], rows.length[first]))
        self.doc_count += len(first)
        return (codes + (self.doc_count - len(first))).astype(np.int32)


def _ranks_of(rows: ParsedRows, order: Int64 | None, count: int) -> Float64 | None:
    if rows.ranks is None:
        return None
    return rows.ranks(count) if order is None else rows.ranks(len(rows.score))[order[:count]]


def _grouped(query: Int64, lengths: Int64) -> tuple[Int64, Int64, Int64]:
    of_row = np.repeat(query, lengths)
    order = np.argsort(of_row, kind="stable")
    query, lengths = np.unique(of_row[order], return_counts=True)
    return query, lengths, order


def _rows_at(rows: ParsedRows, order: Int64) -> ParsedRows:
    start, length, hashes = rows.start[order], rows.length[order], rows.hashes[order]
    return replace(rows, start=start, length=length, hashes=hashes, score=rows.score[order])


def _float_ranks(buf: Bytes, rows: ParsedRows, ranking: Int64, cuts: Int64) -> Int32 | None:
    close = close_as_floats(cuts, rows.score[ranking])
    at = ranking[close[0]]
    return float_ranks(cuts, close, take_strings(buf, rows.start[at], rows.length[at])) if len(at) else None


def _of_first_queries(part: RankingPart, count: int) -> RankingPart:
    inside = np.flatnonzero(part.query < count)
    if len(inside) == len(part.query):
        return part
    at, _ = stretches(part.ptr[inside], part.ptr[inside + 1])
    ptr = np.append(0, np.cumsum(np.diff(part.ptr)[inside]))
    float_rank = None if part.float_rank is None else part.float_rank[at]
    return RankingPart(part.query[inside], ptr, part.doc[at], part.score[at], float_rank)


def _refuse_ranks_as_documents(name: object, block: RankingBlock) -> None:
    # In the file's first rows. Rankings that are not in rank order, or without ranks, are told once none is judged.
    rows, count = block.rows, min(len(block.rows.score), HEAD_ROWS)
    if rows.ranks is None or block.buf[rows.start[0]] not in b"01":
        return
    place, longest = counting_up(rows)
    place = place[:count]
    documents = ranks_in(block.buf, rows.start[:count], rows.length[:count])
    if longest < _COUNTED_DOCUMENTS or not (documents == documents[0] + place).all():
        return
    ranks = rows.ranks(count)
    if (np.diff(ranks)[place[1:] > 0] < 0).any() and 2 * int((ranks > longest).sum()) > count:
        found = f"documents that count up in each ranking, as ranks do, and ranks such as {ranks.max():.0f}"
        raise FormatError(name, found, f"{TREC_COLUMNS}; documents and ranks look exchanged")


def _repeated_document(where: str, query: str, buf: Bytes, rows: ParsedRows, row: int) -> BadRanking:
    document = take_strings(buf, rows.start[row : row + 1], rows.length[row : row + 1])[0]
    return BadRanking(
        f"{where}: query '{query}' ranks document '{document}' twice; remove the duplicates first"
    )


def _read_parts(
    source: Source,
    step: Callable[[RankingPart], T],
    queries: Ids | None = None,
    docs: Ids | None = None,
    ties: Ties = "trec",
    engine: EngineName = "auto",
) -> tuple[list[T], _IdentifierNumbers]:
    parser = choose_engine(engine, source.size)
    how = ReadOptions(parser)
    forms, others = (composed_otherwise(ids) if ids is not None else Ids.of([]) for ids in (docs, queries))
    while True:  # twice or thrice at most: a way of reading that did not do is not tried again
        numbers, lookup, results, earlier = (
            _IdentifierNumbers(queries),
            Lookup.of(docs),
            list[T](),
            set[int](),
        )
        try:
            for block in source.blocks(how):
                query, rows, order = numbers.query_codes(block.queries), block.rows, None
                codes = set(query.tolist())
                if not how.whole and (len(codes) < len(query) or not earlier.isdisjoint(codes)):
                    raise _InterleavedError
                earlier |= codes
                lengths = np.diff(rows.first, append=len(rows.score))
                segments = block.queries
                if len(codes) < len(query):
                    segments = segments.take(np.unique(query, return_index=True)[1])
                    query, lengths, order = _grouped(query, lengths)
                    rows = _rows_at(rows, order)
                if len(query) == 0:
                    continue
                if numbers.order is None:
                    _refuse_ranks_as_documents(source.name, block)
                cuts = np.append(0, np.cumsum(lengths))

                more = counts_of_block(cuts, rows.score, partial(_ranks_of, block.rows, order), numbers.order)
                numbers.order = more if numbers.order is None else numbers.order + more
                key = compared(rows.score, ties)
                ranking, doc, twice = parser.rank(block.buf, rows, cuts, key, lookup)
                if twice >= 0:
                    name = numbers.query(int(query[np.searchsorted(cuts, twice, side="right") - 1]))
                    where = f"{source.name}{block.place(twice if order is None else int(order[twice]))}"
                    raise _repeated_document(where, name, block.buf, rows, twice)
                if len(forms):
                    at = ranking[doc < 0]
                    found = forms.codes(take_strings(block.buf, rows.start[at], rows.length[at]))
                    numbers.alike.update(forms.take(np.unique(found[found >= 0])).tolist())
                if docs is not None and len(numbers.unjudged) < SAMPLE:
                    at = ranking[_top_unjudged(doc, cuts)]
                    numbers.unjudged.update(take_strings(block.buf, rows.start[at], rows.length[at]).tolist())
                texts = (block.buf, rows.start, rows.length)
                own_first, own_near = own_documents(*texts, ranking, cuts, segments)
                numbers.own_first += own_first
                numbers.own_near += own_near
                score = rows.score[ranking]
                float_rank = _float_ranks(block.buf, rows, ranking, cuts) if ties == "trec" else None
                if docs is None:
                    doc = numbers.doc_codes(block.buf, rows)[ranking]
                part = RankingPart(query, cuts, doc, score, float_rank)
                if queries is not None:
                    part = _of_first_queries(part, len(queries))
                if len(part.query):
                    results.append(step(part))
            say_order(source.name, numbers.order or OrderCounts())
            numbers.alike.update(name for name in others.tolist() if name.encode() in numbers.others)
            strangers = [name.decode("utf-8", "replace") for name in numbers.others]
            _say_alike(source.name, numbers.alike, (numbers.unjudged, docs), (strangers, queries))
            return results, numbers
        except _InterleavedError:
            how = replace(how, whole=True)
        except QuotedCellError:
            how = replace(how, quoted=True)


def _top_unjudged(doc: Int32, cuts: Int64) -> Int64:
    rank = np.minimum(np.diff(cuts), TOP)
    top = np.repeat(cuts[:-1] - (np.cumsum(rank) - rank), rank) + np.arange(rank.sum())
    unjudged: Int64 = top[doc[top] < 0]
    return unjudged[:: len(unjudged) // SAMPLE + 1]


def _say_alike(
    name: object,
    composed: set[str],
    docs: tuple[Collection[str], Ids | None],
    queries: tuple[Collection[str], Ids | None],
) -> None:
    kinds = {COMPOSITION: composed}
    unjudged, judged = docs
    for mark, parts in ({} if judged is None else parts_of_known(unjudged, judged)).items():
        one, several = (
            "document that counts as unjudged is a part",
            "documents that count as unjudged are parts",
        )
        warn_of_ranking(
            f"{name}: at least {counted(len(parts), one, several)} of judged ones, such as {min(parts)!a}; "
            f"weir data convert RUN OUT --collapse '{mark}' ranks whole documents"
        )
    for names, judged in (docs, queries):
        for words, found in ({} if judged is None else spelled_otherwise(names, judged)).items():
            kinds.setdefault(words, set()).update(found)
    for words, alike in kinds.items():
        if alike:
            are = counted(
                len(alike),
                "identifier that counts as unjudged is a judged one",
                "identifiers that count as unjudged are judged ones",
            )
            at_least = "at least " * (words != COMPOSITION)  # of a sample
            said = f"{name}: {at_least}{are} but for {words}, such as {min(alike)!a}"
            warn_of_ranking(f"{said}; write both in one form")


def refuse_misplaced_ranks(name: object, order: OrderCounts) -> None:
    """Raise FormatError if the columns of ranks and scores are exchanged, or ranks stand in both."""
    if order.swapped():
        found = "scores in the place of ranks, and ranks in the place of scores"
        raise FormatError(name, found, "the rank before the score: query Q0 document rank score tag")
    if order.scores_are_ranks():
        found, expected = "ranks in the place of scores, which would rank the last first", "scores"
        if isinstance(name, Path):
            expected += (
                "; weir data import FILE -o DIR --as run-ranks ranks by rank, with --columns rank=NAME for the column "
                "of another name; scores written from the worst on need a column of ranks"
            )
        else:
            expected += " that fall from rank to rank, such as negated ranks"
        raise FormatError(name, found, expected)


def say_order(name: object, order: OrderCounts) -> tuple[str, ...]:
    """Warn (RankingWarning) if scores seem not to descend by relevance, and return the reasons as sentences, () for
    none.

    Raises FormatError if the columns of ranks and scores are exchanged, or ranks stand in both.
    """
    refuse_misplaced_ranks(name, order)
    doubts = order.doubts()
    if doubts:
        isfile = isinstance(name, Path)
        advice = (
            "weir data import FILE -o DIR --as run-ranks ranks by rank" if isfile and order.contrary else ""
        )
        advice = advice or "distances have to be negated"
        warn_of_ranking(f"{name}: {'; '.join(doubts)}; {ORDER_COUNTS}; {advice}")
    return doubts


def judgments_of(source: Source) -> tuple[Qrels, int]:
    """Return (judgments, number of repeated rows).

    Raises FormatError for an unreadable file, an invalid row, and two grades of a pair. Warns (LossWarning) of unread
    columns.
    """
    how = ReadOptions(choose_engine("auto", source.size), whole=True)
    try:
        block = next(source.blocks(how), None)
    except QuotedCellError:
        block = next(source.blocks(ReadOptions(how.engine, whole=True, quoted=True)), None)
    if block is None:
        return Qrels.of({}), 0
    name, rows, value = source.name, block.rows, block.rows.score

    def refuse_grades_elsewhere() -> None:
        grades = [shown_number(one).removesuffix(".0") for one in value]
        refuse_grades_as_documents(take_strings(block.buf, rows.start, rows.length), grades, name)

    beyond = np.flatnonzero(np.abs(value) > LARGEST)
    if len(beyond):
        row = int(beyond[0])
        refuse_grades_elsewhere()
        raise bad_grade(f"{name}{block.place(row)}", shown_number(value[row]).removesuffix(".0"))
    grade = grade_column(value)
    segment, queries = distinct_strings(block.queries)
    query = np.repeat(segment, np.diff(rows.first, append=len(value)))
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
        refuse_grades_elsewhere()
        raise FormatError(
            f"{name}{block.place(other)}",
            f"grade {grade[other]} for a pair that {block.place(one).removeprefix(', ')} gives grade {grade[one]}",
            "one grade for each query and document; remove one of the two lines",
        )
    first_rows = np.sort(order[~again])  # of each pair
    codes = query[first_rows].astype(np.int32), doc[first_rows].astype(np.int32)
    origins = None if source.origins is None else source.origins()
    origin = None if origins is None else origins.take(first_rows)
    qrels = Qrels.from_columns(Ids(queries), Ids(docs), *codes, grade[first_rows], origin)
    if rows.unread:
        give_warning(LossWarning(f"{name}: not read: {rows.unread}"))
    return qrels, len(grade) - len(first_rows)


def read_run(path: str | os.PathLike[str], ties: Ties = "trec", engine: EngineName = "auto") -> Run:
    """Return a run from a file: TREC, JSON, CSV, TSV, Parquet, Arrow or a pickle, plain, `.gz` or `.zst`.

    Suffix or first bytes decide the format (docs/formats.md). TREC lines are `query Q0 document rank score [tag]`;
    ranks and comments (#) are ignored. JSON and pickles are {query: {document: score}} or lists in rank order. Tables
    need usual names for query, document and score.

    ties: "trec", or "trec9" to compare scores as 32-bit floats.
    engine: "numpy", "numba", or "auto" for the faster; results are equal.

    Raises FormatError for a missing file and an invalid line, BadRanking for a repeated document. Warns
    (RankingWarning) if ranks contradict scores, (LossWarning) of unread columns and comments.
    """
    path = path_of(path)
    form = format_of(path, "run")
    if form.rows:
        return run_of(file_source(path, form, "run"), run_name(path), ties, engine)
    source = nested_source(path) if engine != "numpy" else None
    if source is not None:
        with suppress(OddJsonError, BadRanking):  # the general reader says what is wrong
            return run_of(source, run_name(path), ties, engine)
    return _nested_run(path, ties)


def run_of(source: Source, name: str, ties: Ties = "trec", engine: EngineName = "auto") -> Run:
    """Return the run in a source of rows.

    ties, engine, errors: see `read_run`.
    """
    parts, numbers = _read_parts(source, lambda part: part, None, None, ties, engine)
    codes, strings = distinct_strings(Strings.concatenated(numbers.docs))
    run = _run_of_parts(parts, Ids(Strings.packed(list(numbers.others))), Ids(strings), name, ties)
    return replace(run, doc=codes.astype(np.int32)[run.doc], doubts=numbers.doubts)


def read_run_against(
    path: str | os.PathLike[str], queries: Ids, docs: Ids, ties: Ties = "trec", engine: EngineName = "auto"
) -> tuple[Run, int]:
    """Return (run of these queries, number of other queries in the file), in little memory; JSON is not read.

    docs: number the documents; any other document has code -1.
    ties, engine, errors: see `read_run`.
    """
    path = path_of(path)
    source = file_source(path, format_of(path, "run"), "run")
    parts, numbers = _read_parts(source, lambda part: part, queries, docs, ties, engine)
    run = _run_of_parts(parts, queries, docs, run_name(path), ties)
    return replace(run, doubts=numbers.doubts), len(numbers.others)


def _run_of_parts(parts: list[RankingPart], queries: Ids, docs: Ids, name: str, ties: Ties) -> Run:
    query = np.concatenate([np.empty(0, np.int64), *(p.query for p in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(p.ptr) for p in parts)])
    doc = np.concatenate([np.empty(0, np.int32), *(p.doc for p in parts)])
    score = np.concatenate([np.empty(0, np.float64), *(p.score for p in parts)])
    float_rank = None
    if any(p.float_rank is not None for p in parts):
        float_rank = np.concatenate(
            [ranks(p.ptr).astype(np.int32) if p.float_rank is None else p.float_rank for p in parts]
        )
    ptr = np.zeros(len(queries) + 1, np.int64)
    ptr[query + 1] = lengths
    np.cumsum(ptr, out=ptr)
    if not (query[1:] > query[:-1]).all():
        order = np.argsort(query)
        begin = (np.cumsum(lengths) - lengths)[order]
        ends = np.cumsum(lengths[order])
        rows = np.repeat(begin - (ends - lengths[order]), lengths[order]) + np.arange(len(doc))
        doc, score = doc[rows], score[rows]
        float_rank = None if float_rank is None else float_rank[rows]
    return Run(queries, docs, ptr, doc, score, name, ties, float_rank)


def _nested_run(path: Path, ties: Ties) -> Run:
    rankings = read_nested(path, "run")
    try:
        run = Run.of(rankings, run_name(path), ties)
    except (BadRanking, BadValue) as error:
        raise type(error)(f"{path}: {error}") from None
    return replace(run, doubts=say_order(path, counts_of_scores(row.values() for row in rankings.values())))


def join_run_file(
    path: str | os.PathLike[str], qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto"
) -> Judged:
    """Return a run file joined with judgments, as `Judged.of(read_run(path), qrels)` in less memory; raises its
    errors.
    """
    path = path_of(path)
    if qrels.beside is not None:  # its rules may name documents that nobody judged
        return Judged.of(read_run(path, ties, engine), qrels)
    form = format_of(path, "run")
    if form.rows:
        return join_source(file_source(path, form, "run"), qrels, ties, engine)
    source = nested_source(path) if engine != "numpy" else None
    if source is not None:
        with suppress(OddJsonError, BadRanking):
            return join_source(source, qrels, ties, engine)
    run = _nested_run(path, ties)
    say_spelled_otherwise(path, run, qrels)
    return Judged.of(run, qrels)


def say_spelled_otherwise(name: object, run: Run, qrels: Qrels) -> None:
    """Warn (RankingWarning) of a run's identifiers that are judged under another spelling."""
    found = ((composed_otherwise(qrels.docs), run.docs), (composed_otherwise(qrels.queries), run.queries))
    composed = {one for forms, own in found for one in forms.tolist() if own.codes([one])[0] >= 0}
    codes = qrels.docs.codes(run.docs.strings)[run.doc]
    docs = run.docs.take(np.unique(run.doc[_top_unjudged(codes, run.ptr)])).tolist()
    queries = run.queries.take(np.flatnonzero(qrels.queries.codes(run.queries.strings) < 0)).tolist()
    _say_alike(name, composed, (docs, qrels.docs), (queries, qrels.queries))


def join_source(source: Source, qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto") -> Judged:
    """Return the run in a source of rows, joined with judgments.

    ties, engine, errors: see `read_run`.
    """

    def join(part: RankingPart) -> tuple[Int64, Judged]:
        judgments = qrels.only(part.query)
        run = Run(
            judgments.queries,
            judgments.docs,
            part.ptr,
            part.doc,
            part.score,
            ties=ties,
            float_rank=part.float_rank,
        )
        return part.query, Judged.of(run, judgments)

    parts, numbers = _read_parts(source, join, qrels.queries, qrels.docs, ties, engine)
    none = np.zeros(len(qrels.queries) + 1, np.int64)
    empty = Run(qrels.queries, qrels.docs, none, np.empty(0, np.int32), np.empty(0, np.float64))
    judged = Judged.of(empty, qrels)
    retrieved, tied = judged.retrieved.copy(), judged.tied.copy()
    tied_end = np.zeros(len(retrieved), np.bool_)
    columns = [(judged.query.astype(np.int64), *(judged.rank,) * 2, judged.grade, judged.first, judged.last)]
    for codes, part in parts:
        retrieved[codes], tied[codes], tied_end[codes] = part.retrieved, part.tied, part.tied_end
        float_rank = part.rank if part.float_rank is None else part.float_rank
        columns.append((codes[part.query], part.rank, float_rank, part.grade, part.first, part.last))
    query, rank, float_rank, grade, first, last = map(np.concatenate, zip(*columns, strict=True))
    order = np.argsort(query, kind="stable")
    return replace(
        judged,
        retrieved=retrieved,
        tied=tied,
        query=query[order].astype(np.int32),
        rank=rank[order],
        grade=grade[order],
        first=first[order],
        last=last[order],
        ignored=len(numbers.others),
        float_rank=None if (float_rank == rank).all() else float_rank[order],
        stranger=min(numbers.others, default=b"").decode("utf-8", "replace"),
        tied_end=tied_end,
        own_first=numbers.own_first,
        own_near=numbers.own_near,
        doubts=numbers.doubts,
    )


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Return judgments from a file: TREC, BEIR's TSV, JSON, CSV, TSV, Parquet, Arrow, a pickle, or a journal of `weir
    open`.

    Suffix or first bytes decide the format (docs/formats.md). Tables need usual names for query, document and grade,
    and may have `origin`. Without a header, columns are split at tabs if the first line has two or three, else at
    blanks. Equal repetitions count once. The rules in a document-rules.tsv beside the file are added.

    Raises FormatError for a missing file, other columns, grades beyond ±16384, and two grades of a pair. Warns
    (LossWarning) of unread columns, and of losses of an import.
    """
    say_import_losses(path_of(path))
    return read_qrels_counted(path)[0]


READ_QRELS.register(read_qrels)


def read_qrels_counted(path: str | os.PathLike[str], head: bytes | None = None) -> tuple[Qrels, int]:
    """Return (judgments of a file, number of repeated lines), without warnings of an import.

    head: first bytes of the file, if known.

    Raises the errors of `read_qrels`.
    """
    path = path_of(path)
    qrels, repeated = _qrels_alone(path, head_of(path) if head is None else head)
    return with_beside(qrels, path), repeated


def _qrels_alone(path: Path, head: bytes) -> tuple[Qrels, int]:
    if is_journal(path, head):
        return read_journal(path), 0
    form = format_of(path, "qrels", head)
    if form.rows:
        found, repeated = judgments_of(file_source(path, form, "qrels"))
        return (_of_sheet(found) if begins_as_sheet(path, head) else found), repeated
    judgments = read_nested(path, "qrels")
    try:
        return Qrels.of(judgments), 0
    except BadValue as error:
        raise FormatError(path, str(error), '{"query": {"document": grade}}') from None


def _of_sheet(judgments: Qrels) -> Qrels:
    queries, docs = (
        [cell_text(name) for name in ids.tolist()] for ids in (judgments.queries, judgments.docs)
    )
    return replace(judgments, queries=Ids.of(queries), docs=Ids.of(docs))


RESULT_RUNS, RESULT_RECORD = ("run.trec", "run.json"), "stage.json"
"""The files of rankings, and the record, in a system's results folder."""


def run_name(path: Path) -> str:
    """Return a run file's name without suffixes; for a run in a results folder, the name of its folder."""
    if path.name in RESULT_RUNS and (path.parent / RESULT_RECORD).exists():
        return path.parent.name
    return run_file_name(path.name)


def judgments_name(path: str | os.PathLike[str]) -> str:
    """Return the collection that a path of judgments implies, such as dl19 for dl19/qrels/test.tsv or dl19:dev for
    dl19/qrels/dev.tsv, else the file's name.
    """
    file = Path(path)
    ending = ".tsv.gz" if file.name.endswith(".tsv.gz") else file.suffix
    if file.parent.name == "qrels" and ending in (".tsv", ".tsv.gz"):
        split, folder = file.name.removesuffix(ending), file.absolute().parent.parent.name
        if split and folder:
            return folder if split == "test" else f"{folder}:{split}"
    return file.name or file.absolute().name


def read_repeating_run(path: str | os.PathLike[str]) -> tuple[Run, int]:
    """Return (run, number of rows dropped), with the best row of each document that a TREC file repeats.

    Raises FormatError for a missing file and an invalid line, BadRanking for another fault.
    """
    path = path_of(path)
    try:
        return read_run(path), 0
    except BadRanking:
        if format_of(path, "run").name != "trec":
            raise
    source = file_source(path, format_of(path, "run"), "run")
    block = next(source.blocks(ReadOptions(choose_engine("auto", source.size), whole=True)))
    rows = block.rows
    segment, queries = distinct_strings(block.queries)
    query = np.repeat(segment, np.diff(rows.first, append=len(rows.score)))
    doc, first = distinct(block.buf, rows.start, rows.length, rows.hashes)
    docs = take_strings(block.buf, rows.start[first], rows.length[first])
    order = np.lexsort((-rows.score, doc, query))
    again = (np.diff(query[order]) == 0) & (np.diff(doc[order]) == 0)
    kept = order[np.append(True, ~again)]
    columns = query[kept].astype(np.int32), doc[kept].astype(np.int32), rows.score[kept]
    run = Run.from_columns(Ids(queries), Ids(docs), *columns, Named(run_name(path)))
    return run, int(again.sum())
