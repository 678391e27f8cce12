"""Reads a collection's judgments: BEIR's tab-separated files, with or without header, and TREC's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.errors import BadValue, FormatError
from weir.io.beir import reading
from weir.io.jsonl import read_blocks
from weir.io.layout import Part
from weir.io.spool import packed

__all__ = ["read_judgments"]

_HEADS = {b"query-id", b"query_id", b"queryid", b"query", b"qid", b"topic", b"topic_id", b"topic-id"}
_GRADES = {b"score", b"relevance", b"rel", b"label", b"grade", b"judgment", b"judgement"}
_EXPECTED = "query, document, grade (or query, 0, document, grade) between tabs"


def read_judgments(part: Part) -> Qrels:
    """The judgments of one file: query, document, grade, or query, 0, document, grade.

    Columns are cut at tabs, so that identifiers may hold blanks, or at blanks in a line without any tab. A
    first line of column names is skipped; lines may end in CRLF. Raises FormatError, naming file and line,
    for another number of columns and for a grade that is no whole number, and for a pair judged twice.
    """
    queries: dict[bytes, int] = {}
    docs: dict[bytes, int] = {}
    query: list[int] = []
    doc: list[int] = []
    grade: list[int] = []
    with reading(part) as stream:
        for number, cells in _rows(stream):
            if len(cells) not in (3, 4) or not cells[0] or not cells[-2]:
                raise FormatError(part, f"{len(cells)} columns", _EXPECTED, number)
            if number == 1 and (cells[0].lower() in _HEADS or cells[-1].lower() in _GRADES):
                continue
            query.append(queries.setdefault(cells[0], len(queries)))
            doc.append(docs.setdefault(cells[-2], len(docs)))
            grade.append(_grade(cells[-1], part, number))
    columns = (np.array(query, np.int32), np.array(doc, np.int32), np.array(grade, np.int64))
    try:
        return Qrels.from_columns(Ids(packed(list(queries))), Ids(packed(list(docs))), *columns)
    except BadValue as error:
        raise FormatError(part, str(error), "each pair judged once, by a small whole number") from None


def _rows(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """The lines that hold something, numbered from 1 and cut into cells."""
    number = 0
    for block in read_blocks(stream):
        lines = block.split(b"\n")
        for line in lines[:-1] if not lines[-1] else lines:
            number += 1
            text = line.strip(b"\r")
            cells = [cell.strip() for cell in text.split(b"\t")] if b"\t" in text else text.split()
            if cells and cells != [b""]:
                yield number, cells


def _grade(cell: bytes, part: Part, number: int) -> int:
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        shown = cell.decode("utf-8", "replace")
        raise FormatError(
            part, f"the grade '{shown}'", "a whole number; scale or round the grades first", number
        )
    return int(value)
