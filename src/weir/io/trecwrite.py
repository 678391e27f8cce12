"""Writing rankings and judgments, whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Strings
from weir.errors import BadValue
from weir.io.atomic import atomic_file

__all__ = ["write_qrels", "write_run"]

_BREAKS = b" \t\n\r\v\f"
_BLOCK = 1 << 17  # lines written at a time


def write_run(run: Run, path: Path | str) -> None:
    """Write a run in TREC format, or as JSON when the name ends in `.json`; `.gz` packs either.

    Scores are written in full: the shortest text that reads back as the same double. The file appears
    complete or not at all. Raises BadValue for an identifier that TREC format cannot hold (white space, or a
    query that starts with `#`), StoreError when the disk refuses.
    """
    path = Path(path)
    if _is_json(path):
        _write(path, [json.dumps(run.to_dict(), ensure_ascii=False)])
        return
    run.refuse_nameless()
    _refuse_breaks(run.queries.strings, "query")
    if any(query.startswith("#") for query in run.queries):
        raise BadValue("a query identifier starts with '#', a comment in TREC files; write the run as .json")
    _write(path, _lines(run))


def _lines(run: Run) -> Iterator[str]:
    """The lines of a run, some queries at a time: the text of a large run would take gigabytes."""
    queries, tail = run.queries.tolist(), "-".join(run.name.split()) or "run"
    first = 0
    while first < len(queries):
        last = max(first + 1, int(run.ptr.searchsorted(run.ptr[first] + _BLOCK, side="right")) - 1)
        rows = slice(int(run.ptr[first]), int(run.ptr[last]))
        documents = run.docs.strings.take(run.doc[rows])
        _refuse_breaks(documents, "document")
        docs, scores = documents.tolist(), run.score[rows].tolist()
        cuts = (run.ptr[first : last + 1] - run.ptr[first]).tolist()
        yield "".join(
            [
                f"{query} Q0 {docs[row]} {row - a + 1} {scores[row]!r} {tail}\n"
                for query, a, b in zip(queries[first:last], cuts[:-1], cuts[1:], strict=True)
                for row in range(a, b)
            ]
        )
        first = last


def write_qrels(qrels: Qrels, path: Path | str) -> None:
    """Write judgments as TREC's four columns, or as BEIR's three with a header when the name ends in `.tsv`.

    `.gz` packs either. Raises BadValue for an identifier the format cannot hold, StoreError when the disk
    refuses.
    """
    path = Path(path)
    tabbed = path.name.removesuffix(".gz").endswith(".tsv")
    between, head = ("\t", "query-id\tcorpus-id\tscore\n") if tabbed else (" 0 ", "")
    breaks = _BREAKS[1:] if tabbed else _BREAKS
    queries, docs = qrels.queries.tolist(), qrels.docs.tolist()
    _refuse_breaks(qrels.queries.strings, "query", breaks)
    _refuse_breaks(qrels.docs.strings, "document", breaks)
    gap = "\t" if tabbed else " "
    rows = zip(qrels.query_of_row().tolist(), qrels.doc.tolist(), qrels.grade.tolist(), strict=True)
    _write(path, [head, *(f"{queries[q]}{between}{docs[d]}{gap}{g}\n" for q, d, g in rows)])


def _refuse_breaks(ids: Strings, what: str, breaks: bytes = _BREAKS) -> None:
    table = np.zeros(256, np.bool_)
    table[list(breaks)] = True
    at = np.flatnonzero(table[ids.data[ids.ptr[0] : ids.ptr[-1]]])
    if len(at):
        bad = ids[int(np.searchsorted(ids.ptr, ids.ptr[0] + at[0], side="right")) - 1]
        raise BadValue(
            f"{what} identifier {bad!r} has white space, which TREC files cannot hold; write .json"
        )


def _is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".json")


def _write(path: Path, texts: Iterable[str]) -> None:
    with atomic_file(path) as temporary, temporary.open("wb") as file, ExitStack() as stack:
        out: IO[bytes] = file
        if path.suffix == ".gz":
            # No time of writing and no name inside: equal runs are equal files.
            out = cast("IO[bytes]", stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)))
        for text in texts:
            out.write(text.encode("utf-8"))
