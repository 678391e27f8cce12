"""Files of rankings, judgments and topics, in TREC's formats and every other: one way in, one way out.

Everything a file may hold wrongly is refused with file, line, what was found and what to do. Which format a file
has is the business of `formats.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.core.ids import Ids
from weir.core.judged import Judged
from weir.core.order import Ties
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadRanking, BadValue, FormatError
from weir.io.collections.topics import read_topics
from weir.io.runs.blocks import EngineName
from weir.io.runs.formats import format_of, named_format
from weir.io.runs.json_runs import OddJsonError, read_nested
from weir.io.runs.qrels_file import judgments_of, read_trec_qrels
from weir.io.runs.run_file import RankingPart, RunFile, read_parts
from weir.io.runs.sources import Source, file_source, nested_source
from weir.io.runs.write import write_qrels, write_run
from weir.io.storage.text_files import unpacked_name

__all__ = [
    "judge_file",
    "judge_source",
    "read_qrels",
    "read_qrels_counted",
    "read_run",
    "read_run_against",
    "read_topics",
    "run_name",
    "run_of",
    "write_qrels",
    "write_run",
]


T = TypeVar("T")


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
    source = _source(path)
    if source is not None:
        return run_of(source, run_name(path), ties, engine)
    plain = _plainly(path, engine, lambda found: run_of(found, run_name(path), ties, engine))
    return _from_json(path, ties) if plain is None else plain


def run_of(source: Source, name: str, ties: Ties = "trec", engine: EngineName = "auto") -> Run:
    """The run that a source holds; arguments and errors otherwise as read_run."""
    parts, names = read_parts(RunFile(source, None, None, ties, engine), lambda part: part)
    new, docs = names.all_docs()
    query, ptr, doc, score = _assembled(parts)
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
    query, ptr, doc, score = _assembled(parts)
    ptr, doc, score = _by_query(len(queries), query, ptr, doc, score)
    return Run(queries, docs, ptr, doc, score, run_name(Path(path)), ties), len(names.ignored)


def judge_file(path: Path | str, qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto") -> Judged:
    """Join a run file with judgments; only a JSON file is ever held, so a few megabytes do for any other size.

    The result equals Judged.of(read_run(path), qrels). Arguments and errors as read_run.
    """
    source = _source(Path(path))
    if source is not None:
        return judge_source(source, qrels, ties, engine)
    plain = _plainly(Path(path), engine, lambda found: judge_source(found, qrels, ties, engine))
    return Judged.of(_from_json(Path(path), ties), qrels) if plain is None else plain


def judge_source(source: Source, qrels: Qrels, ties: Ties = "trec", engine: EngineName = "auto") -> Judged:
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


def _source(path: Path) -> Source | None:
    """A run file as rows; None for JSON and pickles, which are read as a whole."""
    form = format_of(path, "run")
    return file_source(path, form, "run") if form.rows else None


def _plainly(path: Path, engine: EngineName, use: Callable[[Source], T]) -> T | None:
    """What becomes of a large JSON run read as rows; None where it is small or in any way unusual."""
    source = nested_source(path) if engine != "numpy" else None
    if source is None:
        return None
    try:
        return use(source)
    except (OddJsonError, BadRanking):  # the general parser says what is wrong, if anything is
        return None


def _from_json(path: Path, ties: Ties) -> Run:
    rankings = read_nested(path, "run")
    try:
        return Run.of(rankings, run_name(path), ties)
    except (BadRanking, BadValue) as error:
        raise type(error)(f"{path}: {error}") from None


def _assembled(parts: list[RankingPart]) -> tuple[Int64, Int64, Int32, Float64]:
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
