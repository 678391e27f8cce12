"""Costs next to quality as text, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from weir.core.rounding import figure, score
from weir.core.tables import Cell, Table, csv_text
from weir.experiment.efficiency import Efficiency

HEAD = (
    "docs/s",
    "index MB",
    "MB/1M docs",
    "queries/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "peak MB",
)
BEST, MARK = "+", "*"


def efficiency_text(found: Sequence[Efficiency], width: int | None = None) -> str:
    """A table for the terminal: quality with its interval, then what it cost."""
    return _table(found).text(width)


def efficiency_markdown(found: Sequence[Efficiency]) -> str:
    """The same as a Markdown table."""
    return _table(found).markdown()


def efficiency_latex(found: Sequence[Efficiency]) -> str:
    """The same as a LaTeX tabular for the booktabs package."""
    return _table(found).latex()


def efficiency_html(found: Sequence[Efficiency]) -> str:
    """The same as HTML, for a notebook, with what has to be said below."""
    notes = tuple(note.removeprefix("note: ") for note in efficiency_notes(found))
    return replace(_table(found), notes=notes).html()


def efficiency_json(found: Sequence[Efficiency]) -> str:
    """One JSON object per line at full precision."""
    return "\n".join(json.dumps(_record(one), ensure_ascii=False) for one in found)


def efficiency_csv(found: Sequence[Efficiency]) -> str:
    """Comma-separated values at full precision, with a header."""
    records = [_record(one) for one in found]
    joined = [["; ".join(v) if isinstance(v, list) else v for v in record.values()] for record in records]
    return csv_text([list(records[0]), *joined])


def efficiency_notes(found: Sequence[Efficiency]) -> list[str]:
    """What has to be said beside the figures; each begins with "note: "."""
    notes = [
        f"note: {BEST} no other system on the collection is as good in quality, time of a query (p50) and size "
        "of the index, and better in one of them",
        "note: docs/s is indexing, encoding included; queries/s is all queries asked together; "
        f"p50, p95, p99 are {_singles(found)} asked one after the other, after one that is not counted",
    ]
    if any(one.concurrency is not None for one in found):
        notes.append(
            f"note: where a service is asked, they are its answers, several asked for at a time ({MARK})"
        )
    notes += [f"note: measured on {hardware}" for hardware in dict.fromkeys(one.hardware for one in found)]
    return notes + _marked(found)


def _marked(found: Sequence[Efficiency]) -> list[str]:
    """Each mark once for a system, with the datasets it holds for."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        for stage, marks in (("indexing", one.index_marks), ("searching", one.search_marks)):
            for mark in marks:
                where.setdefault((one.quality.system, stage, mark), []).append(one.quality.dataset)
    return [
        f"note: {MARK} {datasets[0] if len(datasets) == 1 else f'{len(datasets)} datasets'}, {system}: {stage}: {mark}"
        for (system, stage, mark), datasets in where.items()
    ]


def _singles(found: Sequence[Efficiency]) -> str:
    counts = sorted({one.singles for one in found if one.singles is not None})
    if not counts:
        return "single queries"
    return f"{counts[0]} queries" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} queries"


def _table(found: Sequence[Efficiency]) -> Table:
    rows = []
    for one in found:
        row = one.quality
        index, search = (MARK if marks else "" for marks in (one.index_marks, one.search_marks))
        cells = [
            row.dataset,
            f"{row.system} {BEST}" if one.best else row.system,
            f"{score(row.mean)} [{score(row.low)}, {score(row.high)}]",
            figure(one.documents_per_second) + index,
            figure(_megabytes(one.index_bytes)),
            figure(_megabytes(one.bytes_per_million)),
            figure(one.queries_per_second) + search,
            *(figure(p) for p in (one.p50_ms, one.p95_ms, one.p99_ms)),
            figure(one.peak_mb),
        ]
        rows.append(tuple(map(Cell, cells)))
    return Table("", ("dataset", "system", found[0].quality.measure, *HEAD), tuple(rows), keys=2)


def _megabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e6


def _record(one: Efficiency) -> dict[str, object]:
    row = one.quality
    quality = {"mean": row.mean, "low": row.low, "high": row.high}
    found: dict[str, object] = {
        "dataset": row.dataset,
        "system": row.system,
        "measure": row.measure,
        **{k: None if math.isnan(v) else v for k, v in quality.items()},
        "documents": one.documents,
        "index_seconds": one.index_seconds,
        "documents_per_second": one.documents_per_second,
        "index_bytes": one.index_bytes,
        "bytes_per_million": one.bytes_per_million,
        "queries": one.queries,
        "search_seconds": one.search_seconds,
        "queries_per_second": one.queries_per_second,
        "mean_ms": one.mean_ms,
        "single_queries": one.singles,
        "single_mean_ms": one.single_mean_ms,
        "p50_ms": one.p50_ms,
        "p95_ms": one.p95_ms,
        "p99_ms": one.p99_ms,
        "peak_mb": one.peak_mb,
        "hardware": one.hardware,
        "index_marks": list(one.index_marks),
        "search_marks": list(one.search_marks),
        "concurrency": one.concurrency,
        "best": one.best,
    }
    return found
