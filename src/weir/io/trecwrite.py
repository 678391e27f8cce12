"""Writing rankings and judgments, whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.io.atomic import write_bytes

__all__ = ["write_qrels", "write_run"]

_BREAKS = (" ", "\t", "\n", "\r", "\v", "\f")


def write_run(run: Run, path: Path | str) -> None:
    """Write a run in TREC format, or as JSON when the name ends in `.json`; `.gz` packs either.

    Scores are written in full: the shortest text that reads back as the same double. The file appears
    complete or not at all. Raises BadValue for an identifier that TREC format cannot hold (white space, or a
    query that starts with `#`), StoreError when the disk refuses.
    """
    path = Path(path)
    docs, scores = _documents(run, path), map(repr, run.score.tolist())
    cuts, queries = run.ptr.tolist(), run.queries.tolist()
    if _is_json(path):
        nested = run.to_dict()
        _write(path, json.dumps(nested, ensure_ascii=False))
        return
    _refuse_breaks(queries, "query")
    if queries and any(q.startswith("#") for q in queries):
        raise BadValue("a query identifier starts with '#', a comment in TREC files; write the run as .json")
    tag = "-".join(run.name.split()) or "run"
    lines = []
    rows = zip(docs, scores, strict=True)
    for query, a, b in zip(queries, cuts[:-1], cuts[1:], strict=True):
        head, tail = f"{query} Q0 ", f" {tag}\n"
        lines.extend(
            [f"{head}{d} {rank} {s}{tail}" for rank, (d, s) in zip(range(1, b - a + 1), rows, strict=False)]
        )
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
    _refuse_breaks(queries, "query", breaks)
    _refuse_breaks(docs, "document", breaks)
    gap = "\t" if tabbed else " "
    rows = zip(qrels.query_of_row().tolist(), qrels.doc.tolist(), qrels.grade.tolist(), strict=True)
    _write(path, head + "".join([f"{queries[q]}{between}{docs[d]}{gap}{g}\n" for q, d, g in rows]))


def _documents(run: Run, path: Path) -> list[str]:
    if len(run.doc) and int(run.doc.min()) < 0:
        raise BadValue("this run was read against judgments only: it does not know all its documents' names")
    if not _is_json(path):
        _refuse_breaks(_used(run), "document")
    return run.docs.strings.take(run.doc).tolist()


def _used(run: Run) -> list[str]:
    used: Ids = run.docs
    if len(run.docs) > len(run.doc):
        return run.docs.strings.take(run.doc).tolist()
    return used.tolist()


def _refuse_breaks(ids: list[str], what: str, breaks: Iterable[str] = _BREAKS) -> None:
    text = "\0".join(ids)
    if not any(b in text for b in breaks):
        return
    bad = next(i for i in ids if any(b in i for b in breaks))
    raise BadValue(f"{what} identifier {bad!r} has white space, which TREC files cannot hold; write .json")


def _is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".json")


def _write(path: Path, text: str) -> None:
    data = text.encode("utf-8")
    # No time of writing and no name inside: equal runs are equal files.
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
