"""Writing rankings and judgments, whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Strings
from weir.errors import BadValue
from weir.io.atomic import write_bytes

__all__ = ["write_qrels", "write_run"]

_BREAKS = b" \t\n\r\v\f"


def write_run(run: Run, path: Path | str) -> None:
    """Write a run in TREC format, or as JSON when the name ends in `.json`; `.gz` packs either.

    Scores are written in full: the shortest text that reads back as the same double. The file appears
    complete or not at all. Raises BadValue for an identifier that TREC format cannot hold (white space, or a
    query that starts with `#`), StoreError when the disk refuses.
    """
    path = Path(path)
    if _is_json(path):
        _write(path, json.dumps(run.to_dict(), ensure_ascii=False))
        return
    run.refuse_nameless()
    documents = run.docs.strings.take(run.doc)
    _refuse_breaks(run.queries.strings, "query")
    _refuse_breaks(documents, "document")
    queries, cuts = run.queries.tolist(), run.ptr.tolist()
    if any(query.startswith("#") for query in queries):
        raise BadValue("a query identifier starts with '#', a comment in TREC files; write the run as .json")
    tail = "-".join(run.name.split()) or "run"
    docs, scores = documents.tolist(), run.score.tolist()
    lines = [
        f"{query} Q0 {docs[row]} {row - a + 1} {scores[row]!r} {tail}\n"
        for query, a, b in zip(queries, cuts[:-1], cuts[1:], strict=True)
        for row in range(a, b)
    ]
    _write(path, "".join(lines))


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
    _write(path, head + "".join([f"{queries[q]}{between}{docs[d]}{gap}{g}\n" for q, d, g in rows]))


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


def _write(path: Path, text: str) -> None:
    data = text.encode("utf-8")
    # No time of writing and no name inside: equal runs are equal files.
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
