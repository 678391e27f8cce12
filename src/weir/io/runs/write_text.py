"""Rankings and judgments as lines of text: TREC's, CSV, TSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int64, Strings
from weir.errors import BadValue
from weir.io.runs.column_names import BEIR_HEAD, WRITTEN
from weir.io.runs.decimals import written

__all__ = ["TEXTS", "QueryRows", "Texts", "ranked_blocks"]

_BREAKS = b" \t\n\r\v\f"
_BLOCK = 1 << 17  # lines written at a time
Texts = Iterator[tuple[str, int]]  # some lines, and how many rows they hold


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Rows of some whole queries: first and last + 1 of the queries, cuts: int64 the first row of each."""

    queries: range
    docs: Strings
    number: Float64 | NDArray[np.integer]
    cuts: Int64


def ranked_blocks(value: Run | Qrels, rows: int = 0) -> Iterator[QueryRows]:
    """About `rows` rows at a time: the text of a large run would take gigabytes."""
    rows = rows or _BLOCK
    number = value.score if isinstance(value, Run) else value.grade
    first, ptr = 0, value.ptr
    while first < len(value.queries):
        last = max(first + 1, int(ptr.searchsorted(ptr[first] + rows, side="right")) - 1)
        part = slice(int(ptr[first]), int(ptr[last]))
        docs = value.docs.take(value.doc[part]).strings
        yield QueryRows(range(first, last), docs, number[part], ptr[first : last + 1] - ptr[first])
        first = last


def _trec(value: Run | Qrels) -> Texts:
    """TREC's lines; raises BadValue for an identifier with white space, or a query that would be a comment."""
    _refuse_breaks(value.queries.strings, "query")
    queries = value.queries.tolist()
    odd = next((query for query in queries if query.startswith(("#", "\ufeff"))), None)
    if odd is not None:
        why = f"starts with {odd[0]!r}, as no line of a TREC file can"
        raise BadValue(f"query identifier {odd!r} {why}; write .csv or .json")
    tail = "-".join(value.name.split()) or "run" if isinstance(value, Run) else ""
    for block in ranked_blocks(value):
        _refuse_breaks(block.docs, "document")
        docs, numbers, cuts = block.docs.tolist(), written(block.number), block.cuts.tolist()
        each = zip(block.queries, cuts[:-1], cuts[1:], strict=True)
        if isinstance(value, Run):
            ranks = [f" {rank} " for rank in range(1, 1 + max(np.diff(block.cuts).tolist(), default=0))]
            lines = [_ranking(f"{queries[q]} Q0 ", docs[a:b], ranks, numbers[a:b], tail) for q, a, b in each]
        else:
            lines = [
                f"{queries[q]} 0 {docs[row]} {numbers[row]}\n" for q, a, b in each for row in range(a, b)
            ]
        yield "".join(lines), len(docs)


def _ranking(head: str, docs: list[str], ranks: list[str], scores: list[str], tail: str) -> str:
    """The lines of a query: head, document, rank, score and tail of each, joined without a text for each line."""
    count = len(docs)
    pieces = [f" {tail}\n{head}"] * (4 * count)
    pieces[0::4], pieces[1::4], pieces[2::4] = docs, ranks[:count], scores
    if count:
        pieces[0], pieces[-1] = head + docs[0], f" {tail}\n"
    return "".join(pieces)


def _refuse_breaks(ids: Strings, what: str) -> None:
    at = _holding(ids, _BREAKS)
    if len(at):
        bad = ids[int(at[0])]
        raise BadValue(
            f"{what} identifier {bad!r} has white space, which TREC files cannot hold; write .csv or .json"
        )


def _holding(ids: Strings, any_of: bytes) -> Int64:
    """The strings that hold one of some bytes."""
    table = np.zeros(256, np.bool_)
    table[list(any_of)] = True
    at = np.flatnonzero(table[ids.data[ids.ptr[0] : ids.ptr[-1]]])
    return np.unique(np.searchsorted(ids.ptr, ids.ptr[0] + at, side="right") - 1)


def _csv(value: Run | Qrels) -> Texts:
    """Cells between commas, quoted where they must be, below a header."""
    return _delimited(value, ",", WRITTEN["run" if isinstance(value, Run) else "qrels"])


def _tsv(value: Run | Qrels) -> Texts:
    """Cells between tabs, quoted where they must be, below a header; that of judgments is BEIR's."""
    return _delimited(value, "\t", WRITTEN["run"] if isinstance(value, Run) else BEIR_HEAD)


def _delimited(value: Run | Qrels, separator: str, head: tuple[str, ...]) -> Texts:
    yield separator.join(head) + "\n", 0
    queries = _quoted(value.queries.strings, separator)
    for block in ranked_blocks(value):
        docs, numbers, cuts = _quoted(block.docs, separator), written(block.number), block.cuts.tolist()
        lines = [
            f"{queries[q]}{separator}{docs[row]}{separator}{numbers[row]}\n"
            for q, a, b in zip(block.queries, cuts[:-1], cuts[1:], strict=True)
            for row in range(a, b)
        ]
        yield "".join(lines), len(docs)


def _quoted(ids: Strings, separator: str) -> list[str]:
    texts = ids.tolist()
    for at in _holding(ids, f'{separator}"\r\n'.encode()).tolist():
        texts[at] = '"' + texts[at].replace('"', '""') + '"'
    return texts


def _json(value: Run | Qrels) -> Texts:
    """One object {query: {document: number}}."""
    queries, lead = value.queries.tolist(), "{"
    for block in ranked_blocks(value):
        docs, numbers, cuts = block.docs.tolist(), block.number.tolist(), block.cuts.tolist()
        for q, a, b in zip(block.queries, cuts[:-1], cuts[1:], strict=True):
            row = json.dumps(dict(zip(docs[a:b], numbers[a:b], strict=True)), ensure_ascii=False)
            yield f"{lead}{json.dumps(queries[q], ensure_ascii=False)}: {row}", b - a
            lead = ", "
    yield "{}" if lead == "{" else "}", 0


TEXTS: dict[str, Callable[[Run | Qrels], Texts]] = {"trec": _trec, "csv": _csv, "tsv": _tsv, "json": _json}
