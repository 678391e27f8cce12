"""Set results' costs beside their quality."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weir.core.frames import json_value
from weir.core.results import ResultKind
from weir.core.rounding import between, count, figure, percent, score, times
from weir.core.scores import Note, Row
from weir.core.short_names import short_legend, short_names
from weir.core.tables import Table, table_of
from weir.errors import FormatError
from weir.experiment.results import (
    ResultCell,
    by_split,
    check_scored,
    current_cells,
    finished_cells,
    index_cost,
    scored_measures,
    search_cost,
)
from weir.experiment.stages import RECORD
from weir.measures.measure import direction
from weir.registry import SESSION
from weir.stats.resampling import has_percentile

DEFAULT = "nDCG@10"

COUNTED = (
    *("documents", "index_seconds", "index_bytes", "queries", "search_seconds"),
    *("single_mean_ms", "p50_ms", "p95_ms", "p99_ms", "peak_mb"),
)
"""Fields checked to be numbers, as the record may be from another machine."""


@dataclass(frozen=True)
class Efficiency:
    """Quality and costs of a system on a collection; None for an unrecorded figure."""

    quality: Row
    """The mean with its interval."""
    documents: int | None
    index_seconds: float | None
    """None if all encodings were reused."""
    index_bytes: int | None
    queries: int | None
    search_seconds: float | None
    """For all `queries`, searched in one call."""
    singles: int | None
    """Number of queries searched one after the other with everything loaded; the four times below are theirs."""
    single_mean_ms: float | None
    """Mean time of single queries, or of a service's answers if `concurrency` is not None; the percentiles are
    of the same times."""
    p50_ms: float | None
    p95_ms: float | None
    """None for fewer than 20 times."""
    p99_ms: float | None
    """None for fewer than 100 times."""
    peak_mb: float | None
    """Peak memory of the whole process, libraries included, in indexing or searching, whichever is larger."""
    hardware: str
    index_marks: tuple[str, ...] = ()
    """Reasons why `index_seconds` does not cover all work, and requests to an API."""
    search_marks: tuple[str, ...] = ()
    """Likewise for `search_seconds`."""
    best: bool = False
    """True if no system measured by the same machine on the collection, to the same depth, is as good in quality,
    query time and index size, and better in one; systems of unknown time or size do not count."""
    untimed: str = ""
    """The reason why there is no time of single queries; "" if there is one."""
    unkept: str = ""
    """"no size" or "neither size nor time" of an index of objects without a version, which is not kept; else ""."""
    concurrency: int | None = None
    """Concurrent requests to a service; None if no service was timed."""
    exact_share: float | None = None
    """Share of the exact k best that an approximate search finds."""
    depth: int | None = None
    """Documents per query requested (k); times of different depths do not compare."""

    @property
    def timed(self) -> bool:
        """True if a search time was measured."""
        return self.search_seconds is not None or self.p50_ms is not None

    @property
    def compared(self) -> bool:
        """True if enough single queries were timed for a p95, so that medians may be compared."""
        return self.p50_ms is not None and self.singles is not None and has_percentile(95, self.singles)

    @property
    def machine(self) -> str:
        """Processor and cores, such as "Xeon, 8 cores"."""
        return ", ".join(self.hardware.split(", ")[:2])

    @property
    def documents_per_second(self) -> float | None:
        """Documents encoded and indexed in a second; None if not timed, or encoded earlier."""
        return _ratio(self.documents, self.index_seconds)

    @property
    def bytes_per_million(self) -> float | None:
        """The index's bytes for a million documents; None if unknown."""
        each = _ratio(self.index_bytes, self.documents)
        return None if each is None else 1e6 * each

    @property
    def queries_per_second(self) -> float | None:
        """Queries answered in a second if searched together; None if not timed."""
        return _ratio(self.queries, self.search_seconds)

    @property
    def mean_ms(self) -> float | None:
        """Milliseconds per query if searched together; None if not timed."""
        seconds = _ratio(self.search_seconds, self.queries)
        return None if seconds is None else 1e3 * seconds


def efficiency(root: Path, measure: str | None = None) -> list[Efficiency]:
    """Return quality and costs of all systems on all collections of a results folder, with `best` marked.

    measure: by default nDCG@10, else the first.

    Leaves out results by outdated judgments or without the measure. Raises FormatError without a result,
    UnknownName for an unscored measure.
    """
    cells, _ = current_cells(by_split(finished_cells(root)))
    available = scored_measures(cells)
    quality = measure or (DEFAULT if DEFAULT in available or not available else available[0])
    check_scored([quality], available)
    systems = [_cost(cell, row) for cell in cells for row in cell.named_rows() if row.measure == quality]
    places: dict[tuple[object, ...], list[Efficiency]] = {}
    for one in systems:
        places.setdefault(_place(one), []).append(one)
    # What is not known of a system is no reason for a sign, nor against another's.
    known = [
        (one, _place(one), (direction(quality) * one.quality.mean, -cost, -size))
        for one in systems
        if (cost := one.p50_ms if timed_singly(places[_place(one)]) else one.mean_ms) is not None
        and (size := one.index_bytes) is not None
    ]
    best = [
        one
        for one, place, mine in known
        # Another system at the same place that is as good in everything, and better in something.
        if not any(
            there == place and other != mine and all(a >= b for a, b in zip(other, mine, strict=True))
            for _, there, other in known
        )
    ]
    return [replace(one, best=any(one is found for found in best)) for one in systems]


def timed_singly(systems: Sequence[Efficiency]) -> bool:
    """Return True if more than one system, or as many as have a time of all queries together, has times of
    single queries.
    """
    singly, together = (
        sum(1 for one in systems if getattr(one, name) is not None) for name in ("p50_ms", "mean_ms")
    )
    return singly > 1 or singly >= together


def _place(one: Efficiency) -> tuple[object, ...]:
    return one.quality.dataset, one.machine, one.depth


def _cost(cell: ResultCell, row: Row) -> Efficiency:
    try:
        index, search = index_cost(cell), search_cost(cell)
        cached = index.get("cached_queries")
        services = search["services"]
        latency = services[0]["latency"] if len(services) == 1 else []
        served: dict[str, float] = max(latency, key=lambda one: one["answers"], default={})
        single = {} if cached else search.get("single_query_ms") or served
        measured_here = search.get("measured") is not False
        # Objects without a version keep no index stage, files none at all: the index of the other parts is not all.
        unversioned = _unversioned(cell.ranked.declared.get("system"))
        whole = measured_here and not unversioned
        timed = whole or (measured_here and bool(index.get("in_memory")))
        peaks = [p for p in (index.get("peak_mb"), search.get("peak_mb")) if p is not None]
        environment = cell.ranked.made
        hardware = [
            f"{environment.get('processor') or 'unknown processor'}, {environment.get('cores')} cores"
        ]
        lost = search.get("lost")
        measured = Efficiency(
            row,
            documents=index.get("documents"),
            index_seconds=None if _all_reused(index) or not timed else index.get("seconds"),
            index_bytes=index.get("bytes") if whole else None,
            queries=search.get("queries"),
            search_seconds=search.get("seconds"),
            concurrency=None if single is not served or not served else int(served["concurrency"]),
            singles=None if "queries" not in single else int(single["queries"]),
            single_mean_ms=single.get("mean"),
            p50_ms=single.get("p50"),
            p95_ms=single.get("p95"),
            p99_ms=single.get("p99"),
            peak_mb=max(peaks, default=None) if measured_here else None,
            hardware=", ".join(
                [*hardware, f"{environment.get('threads')} threads", *map(str, cell.ranked.engines)]
            ),
            index_marks=(*_index_marks(index), *_api_notes(index)),
            search_marks=tuple(_search_marks(search, bool(cached), measured_here)),
            exact_share=1 - lost["share"] if lost else None,
            depth=cell.depth,
            unkept=("no size" if timed else "neither size nor time") * (unversioned and measured_here),
            untimed="" if "p50" in single else _untimed(search, bool(cached), measured_here),
        )
        for name in COUNTED:
            value = getattr(measured, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise TypeError(f"{name} is {value!r}")
        answers = int(single.get("queries") or single.get("answers") or 0)
        return replace(
            measured,
            p95_ms=measured.p95_ms if has_percentile(95, answers) else None,
            p99_ms=measured.p99_ms if has_percentile(99, answers) else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise FormatError(cell.folder / RECORD, "another layout", "a record of weir run") from None


def _unversioned(described: object) -> bool:
    # A re-ranker has no index.
    if isinstance(described, Mapping):
        parts = [part for name, part in described.items() if name != "reranker"]
        return SESSION in described or any(map(_unversioned, parts))
    return isinstance(described, (list, tuple)) and any(map(_unversioned, described))


def _index_marks(index: dict[str, Any]) -> Iterator[str]:
    if index.get("reused"):
        which = "all" if _all_reused(index) else f"{index['reused']} of {index['documents']}"
        yield f"what is made of {which} documents was stored before"


def _untimed(search: dict[str, Any], cached: bool, measured: bool) -> str:
    if not measured:
        return "rankings of a file, whose time nobody measured"
    if cached:
        return "vectors of queries may come from a store"
    if failed := search.get("untimed"):
        return f"it answered all queries together and failed on a single one ({failed})"
    return "all queries are asked at once, as a call for one could cost money, or read all documents again"


def _search_marks(search: dict[str, Any], cached: bool, measured: bool) -> Iterator[str]:
    if not measured:
        yield "rankings of a file are among it, whose time nobody measured"
    if cached:
        yield "vectors of queries may come from a store; single queries were not measured"
    scores = search.get("scores") or {}
    if scores and scores["computed"] < scores["asked"]:
        stored = scores["asked"] - scores["computed"]
        yield f"{stored} of {scores['asked']} scores of pairs were stored before; single queries compute theirs"
    if lost := search.get("lost"):
        found = f"{1 - lost['share']:.1%} of the exact {lost['k']} best"
        by_index = f"{lost['by what is kept']:.1%} are lost by what the index keeps of vectors"
        yield f"finds {found}; {by_index} ({lost['queries']} queries)"
    yield from _api_notes(search)
    for use in search["services"]:
        yield from _service_marks(use)


def _all_reused(index: dict[str, Any]) -> bool:
    return bool(index.get("reused")) and index["reused"] == index["documents"]


def _api_notes(stage: dict[str, Any]) -> list[str]:
    use = stage.get("api")
    if not use:
        return []
    dollars = f", {use['dollars']:.4f} dollars" if "dollars" in use else ""
    return [f"an API was asked {times(int(use['requests']))} for {count(use['tokens'])} tokens{dollars}"]


def _service_marks(use: dict[str, Any]) -> Iterator[str]:
    for latency in use["latency"]:
        known = [p for p in (50, 95, 99) if has_percentile(p, latency["answers"])] or [50]
        percentiles = ", ".join(f"p{p} {figure(latency[f'p{p}'])} ms" for p in known)
        yield f"{latency['answers']} answers, {latency['concurrency']} asked for at a time: {percentiles}"
    if use["stored"]:
        yield f"{use['stored']} answers were stored before"
    if use["retried"]:
        yield f"{use['retried']} attempts failed and were repeated ({_counted(use['faults'])} in all)"
    if use["unanswered"]:
        yield f"queries without an answer: {_counted(use['unanswered'])}"
    if use["empty"]:
        yield f"{use['empty']} answers were empty"


def _counted(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


# ----------
# Tables.

BEST, MARK = "+", "*"


def _efficiency_record(one: Efficiency) -> dict[str, object]:
    row = one.quality
    quality = {"mean": row.mean, "low": row.low, "high": row.high}
    costs = ("documents", "index_seconds", "documents_per_second", "index_bytes", "bytes_per_million", "queries",
             "search_seconds", "queries_per_second", "mean_ms", "singles", "single_mean_ms", "p50_ms", "p95_ms",
             "p99_ms", "peak_mb", "hardware", "index_marks", "search_marks", "concurrency", "best",
             "exact_share")  # fmt: skip
    return {
        "dataset": row.dataset,
        "system": row.system,
        "measure": row.measure,
        **{name: None if math.isnan(value) else value for name, value in quality.items()},
        **{{"singles": "single_queries"}.get(name, name): json_value(getattr(one, name)) for name in costs},
    }


def efficiency_tables(results: Sequence[Efficiency]) -> tuple[Table, ...]:
    """Return one table: a row for each system and collection, with quality, its interval, and costs."""

    def megabytes(size: float | None) -> float | None:
        return None if size is None else size / 1e6

    costs = ["docs/s", "index MB", "MB/1M docs", "queries/s", "p50 ms", "p95 ms", "p99 ms", "peak MB"]
    unlike = len(_counts_timed(results)) > 1
    costs[4:4] = ["timed"] * unlike
    approximate = any(one.exact_share is not None for one in results)
    shares = ["of exact"] if approximate else []
    lines = [["dataset", "system", results[0].quality.measure, *shares, *costs]]
    for one in results:
        row = one.quality
        index, search = (MARK if marks else "" for marks in (one.index_marks, one.search_marks))
        lines.append(
            [
                row.dataset,
                f"{row.system} {BEST}" if one.best else row.system,
                f"{score(row.mean)} {between(row.low, row.high)}",
                *(["-" if one.exact_share is None else percent(one.exact_share)] if approximate else []),
                figure(one.documents_per_second) + index,
                figure(megabytes(one.index_bytes)),
                figure(megabytes(one.bytes_per_million)),
                figure(one.queries_per_second) + search,
                *["-" if one.singles is None else count(one.singles)] * unlike,
                *(figure(p) for p in (one.p50_ms, one.p95_ms, one.p99_ms)),
                figure(one.peak_mb),
            ]
        )
    return (table_of(lines, right=None, keys=2),)


def _efficiency_pages(results: Sequence[Efficiency]) -> tuple[Table, ...]:
    systems = list(dict.fromkeys(one.quality.system for one in results))
    short = dict(zip(systems, short_names(systems), strict=True))
    named = [replace(one, quality=replace(one.quality, system=short[one.quality.system])) for one in results]
    [table] = efficiency_tables(named)
    return (replace(table, notes=(*(note.text for note in efficiency_notes(named)), *short_legend(short))),)


EFFICIENCIES = ResultKind(
    "efficiency",
    Efficiency,
    efficiency_tables,
    page=_efficiency_pages,
    html=efficiency_tables,
    records=lambda one: [_efficiency_record(one)],
    csv=lambda one: [_efficiency_record(one)],
)


def _compared(results: Sequence[Efficiency]) -> str:
    machine = " that the same machine measured" * (len({one.machine for one in results}) > 1)
    return f"on the collection{machine}{', to the same depth,' * (len({one.depth for one in results}) > 1)}"


FEW_DOCUMENTS = 100_000
"""Documents below which the size of an index says little about a million."""


def extrapolation(results: Sequence[Efficiency]) -> str:
    """Return a sentence on sizes for a million documents extrapolated from few; "" without any."""
    few = [
        one.documents
        for one in results
        if one.index_bytes and one.documents and one.documents < FEW_DOCUMENTS
    ]
    if not few:
        return ""
    sizes = " to ".join(dict.fromkeys((count(min(few)), count(max(few)))))
    return (
        f"sizes for 1M documents are extrapolated from {sizes} documents: parts that do not grow with them, such as "
        "a table of words, make them too large"
    )


PROCESS = "peak MB is that of the whole process, with all that it held before"
"""Sentence on a column of costs."""


def timed_queries(results: Sequence[Efficiency]) -> str:
    """Return a clause on the queries that give percentiles: how many, if known, and how they were timed."""
    counts = _counts_timed(results)
    of = f"{' to '.join(map(count, dict.fromkeys((counts[0], counts[-1]))))} " if counts else ""
    return (
        f"percentiles (p95 from 20 queries, p99 from 100) are of {of}queries asked one after the other, after one that "
        "is not counted"
    )


def unkept_indexes(results: Sequence[Efficiency]) -> list[str]:
    """Return sentences on systems whose index is not kept because an object has no version."""
    systems: dict[str, dict[str, None]] = {}
    for one in results:
        if one.unkept:
            systems.setdefault(one.unkept, {})[one.quality.system] = None
    return [
        f"{lacking} is known of the index of {', '.join(names)}: none is kept for an object without a version; "
        "weir.encoder(model, version='1') gives it one, to be changed with the model"
        for lacking, names in systems.items()
    ]


def _counts_timed(results: Sequence[Efficiency]) -> list[int]:
    return sorted({one.singles for one in results if one.singles is not None})


def efficiency_notes(results: Sequence[Efficiency]) -> list[Note]:
    """Return notes on how costs were measured, on hardware, and on partial times."""
    lines = [
        *(
            [
                f"{BEST}: no other system {_compared(results)} is as good in quality, time of a query and size "
                "of the index, and better in one of them, where all three are known"
            ]
            * any(one.best for one in results)
        ),
        *([extrapolated] if (extrapolated := extrapolation(results)) else []),
        f"docs/s is indexing, encoding included; queries/s is all queries asked together; {timed_queries(results)}",
        PROCESS,
    ]
    if any(one.concurrency is not None for one in results):
        lines.append(f"where a service is asked, they are its answers, several asked for at a time ({MARK})")
    lines += [
        f"measured on {hardware}" for hardware in dict.fromkeys(one.hardware for one in results if one.timed)
    ]
    lines += unkept_indexes(results)
    untimed = dict.fromkeys((one.quality.system, one.untimed) for one in results if one.untimed)
    lines += [f"{system}: no time of single queries: {reason}" for system, reason in untimed]
    where: dict[tuple[str, str, str], list[str]] = {}  # the datasets of each mark of a system
    for one in results:
        for stage, marks in (("indexing", one.index_marks), ("searching", one.search_marks)):
            for mark in marks:
                where.setdefault((one.quality.system, stage, mark), []).append(one.quality.dataset)
    lines += [
        f"{MARK}: {datasets[0] if len(datasets) == 1 else f'{len(datasets)} datasets'}, {system}: {stage}: {mark}"
        for (system, stage, mark), datasets in where.items()
    ]
    return [Note(line) for line in lines]
