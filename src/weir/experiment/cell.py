"""One cell of the grid, a system on a dataset: stages that each appear whole on disk, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weir.core.judged import Judged
from weir.core.row import Row
from weir.core.run import Run
from weir.core.scores import Scores
from weir.datasets.load import Dataset
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning, StoreError
from weir.experiment.environment import environment
from weir.experiment.meter import charged, metered
from weir.io.atomic import locked, sweep, write_json
from weir.io.scores import read_scores, write_scores
from weir.io.trec import judge_file, write_run
from weir.measures import Measure, measures_of, scores_of
from weir.stats.summary import rows

if TYPE_CHECKING:  # indexing needs the `run` extra, reading results does not
    from weir.systems import Retriever, Searcher

__all__ = ["Cell", "Watch"]

FORMAT = 1
WRITTEN = ("index", "index.json", "run.trec", "run.json", "search.json", "scores.jsonl", "manifest.json")
CLOCK = 0.05
"""Seconds by which the times of files may lag behind the clock."""
LATENCY_QUERIES = 100
LATENCY_SECONDS = 5.0
COMPARED = 100
"""Queries for which an approximate search is compared with the exact one."""

Watch = Callable[[str, int, int], None]
"""Told (what is being done, how much is done, how much there is)."""


@dataclass(frozen=True, eq=False)
class Cell:
    """A system on a dataset, answering each query with up to k documents.

    root: the results folder. The cell's own folder bears the dataset's name, the system's, and a hash
    of everything that decides the rankings, so that another setting is another cell.
    """

    root: Path
    dataset: Dataset
    system: Retriever
    k: int

    @cached_property
    def suited(self) -> Retriever:
        """The system as it runs on this collection; in tables and files it bears its own name."""
        from weir.systems.parts import suited  # it needs the `run` extra

        return suited(self.system, self.dataset.name, self.dataset.instruction)

    @cached_property
    def identity(self) -> dict[str, object]:
        """Everything that decides the rankings."""
        return {
            "format": FORMAT,
            "dataset": self.dataset.name,
            "split": self.dataset.split,
            "fingerprint": self.dataset.fingerprint,
            "self_match": self.dataset.self_match,
            "system": self.suited.describe(),
            "k": self.k,
        }

    @cached_property
    def folder(self) -> Path:
        """Where the cell lives."""
        text = json.dumps(self.identity, sort_keys=True, default=str)
        key = hashlib.blake2b(text.encode("utf-8"), digest_size=5).hexdigest()
        return self.root / _slug(self.dataset.name) / f"{_slug(str(self.system))}-{key}"

    def complete(self, measures: tuple[Measure, ...], watch: Watch, wait: bool = True) -> list[Row] | None:
        """Do what is missing of the cell and return its rows for these measures.

        None where another process is at work on the cell and this one should not wait for it.
        """
        found = self._finished(measures)
        if found is not None:
            return found
        with locked(self.folder.with_name(f".{self.folder.name}.lock"), wait) as held:
            if not held:
                return None
            found = self._finished(measures)  # by the process that was waited for
            return self._made(measures, watch) if found is None else found

    def _finished(self, measures: tuple[Measure, ...]) -> list[Row] | None:
        """The rows for these measures, None where one of them is missing."""
        by_name = {r.measure: r for r in finished_rows(self.folder) or []}
        wanted = [str(m) for m in measures]
        return [by_name[name] for name in wanted] if set(wanted) <= set(by_name) else None

    def _made(self, measures: tuple[Measure, ...], watch: Watch) -> list[Row]:
        wanted = [str(m) for m in measures]
        for name in WRITTEN:
            sweep(self.folder / name)
        known = [r.measure for r in finished_rows(self.folder) or [] if r.measure not in wanted]
        self._score(self._judged(watch), measures_of([*wanted, *known]))
        made = self._finished(measures)
        assert made is not None  # it was just written
        return made

    def _judged(self, watch: Watch) -> Judged:
        """The run, from disk or made now, joined with the judgments."""
        record = _record(self.folder / "search.json")
        if record is not None:
            try:
                return judge_file(self.folder / str(record["run"]), self.dataset.qrels)
            except (FormatError, BadRanking, KeyError):
                watch("run is damaged, searching again", 0, 1)
        return Judged.of(self._searched(watch), self.dataset.qrels)

    def _searched(self, watch: Watch) -> Run:
        """The run, made now and written."""
        from weir.systems.system import Outside, fresh, watched

        searcher = self._searcher(watch)
        timed, told = fresh(searcher), watched(searcher, lambda done, total: watch("score", done, total))
        depth = self.k + (1 if self.dataset.self_match == "drop" else 0)
        queries = self.dataset.queries
        watch("search", 0, len(queries))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)  # it will be said of all queries
            with charged() as first:
                timed.search(
                    queries.take(np.arange(min(1, len(queries)))), depth
                )  # loads what is loaded once
        with _noted() as notes, charged() as paid, metered() as cost:
            run = told.search(queries, depth)
        kept = Outside.of(searcher)
        if self.dataset.self_match == "drop":
            run = run.without_self().top(self.k)
        watch("search", len(queries), len(queries))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)  # it was said of all queries
            # Answers that an API gave before come from the store: that is no time of theirs.
            latency = {} if kept.queries else _latencies(timed, self.dataset, depth)
        facts = {
            "run": _write(run, self.folder),
            "seconds": cost.seconds,
            "queries_per_second": len(queries) / cost.seconds,
            "peak_mb": cost.peak_mb,
            "single_query_ms": latency,
            "notes": notes,
        }
        if first or paid:
            facts["api"] = {name: first.get(name, 0) + paid.get(name, 0) for name in first | paid}
        if kept.asked:
            facts["scores"] = {"asked": kept.asked, "computed": kept.computed}
        lost = _lost(searcher, self.dataset, depth)
        if lost is not None:
            facts["lost"] = lost
        write_json(self.folder / "search.json", facts)
        return run

    def _searcher(self, watch: Watch) -> Searcher:
        """The index from disk, or built now."""
        at, corpus = self.folder / "index", self.dataset.corpus
        if _record(self.folder / "index.json") is not None:
            try:
                return self.suited.open(at, corpus)
            except StoreError:
                watch("index is damaged, building again", 0, 1)
        begun = time.time()
        with charged() as paid, metered() as cost:
            searcher = self.suited.index(corpus, at, lambda done, total: watch("index", done, total))
        files = _files(at)
        size = sum(f.st_size for f in files)
        # Parts that a killed process left complete were opened, not made: their time is not known.
        resumed = any(f.st_mtime < begun - CLOCK for f in files)
        facts: dict[str, object] = {"seconds": cost.seconds, "peak_mb": cost.peak_mb}
        facts |= {"bytes": size, "documents": len(corpus)}
        facts |= {"resumed": resumed} if resumed else {}
        facts |= {"api": paid} if paid else {}
        outside = getattr(searcher, "outside", None)  # see weir.systems.system.Outside
        if outside is not None:
            kept = outside()
            facts |= {"bytes": size + kept.bytes, "reused": kept.reused, "cached_queries": kept.queries}
        write_json(self.folder / "index.json", facts)
        return searcher

    def _score(self, judged: Judged, measures: tuple[Measure, ...]) -> list[Row]:
        scores = scores_of(judged, measures)
        found = rows(scores, self.dataset.name, str(self.system))
        write_scores(scores, self.folder / "scores.jsonl")
        write_json(self.folder / "manifest.json", self._manifest(scores, found))
        return found

    def _manifest(self, scores: Scores, found: list[Row]) -> dict[str, object]:
        return {
            **self.identity,
            "queries": len(self.dataset.qrels.queries),
            "answered": int(np.count_nonzero(scores.answered)),
            "unjudged_queries": scores.ignored,
            "tied_share": scores.tied,
            "rows": [r.to_dict() for r in found],
            "cost": {
                "index": _record(self.folder / "index.json"),
                "search": _record(self.folder / "search.json"),
            },
            "environment": environment(),
        }


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Keep the texts of warnings about rankings, for the record; all warnings are given when the block ends."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", RankingWarning)
        yield texts
    for warning in given:
        if issubclass(warning.category, RankingWarning):
            texts.append(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _files(folder: Path) -> list[os.stat_result]:
    """Size and time of every file in a folder; another process may be replacing them meanwhile."""
    found = []
    for inside, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                found.append((Path(inside) / name).stat())
    return found


def finished_rows(folder: Path) -> list[Row] | None:
    """The rows of a finished cell, None where it is not finished or its manifest is damaged."""
    manifest = _record(folder / "manifest.json")
    if manifest is None or not (folder / "scores.jsonl").exists():
        return None
    try:
        return [Row.of(row) for row in manifest["rows"]]
    except (KeyError, TypeError):
        return None


def member_values(folder: Path) -> Scores:
    """The per-query scores of a finished cell."""
    return read_scores(folder / "scores.jsonl")


def _record(path: Path) -> dict[str, Any] | None:
    """A JSON object written by a finished stage."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _write(run: Run, folder: Path) -> str:
    """Write the run and return the file's name: JSON where an identifier does not fit TREC's format."""
    try:
        write_run(run, folder / "run.trec")
    except BadValue:
        write_run(run, folder / "run.json")
        return "run.json"
    return "run.trec"


def _lost(searcher: Searcher, dataset: Dataset, k: int) -> dict[str, float] | None:
    """What an approximate search loses of the exact k best, over the first queries; None where it is exact.

    A searcher that may lose something has a method loss(queries, k), which raises BadValue where it does not.
    """
    how = getattr(searcher, "loss", None)
    some = dataset.queries.take(np.arange(min(COMPARED, len(dataset.queries))))
    if how is None or len(some) == 0:
        return None
    try:
        found = how(some, k)
    except BadValue:
        return None
    return {"queries": len(some), "k": k, "share": found.total, "by what is kept": found.quantisation}


def _latencies(searcher: Searcher, dataset: Dataset, k: int) -> dict[str, float]:
    """Milliseconds of single queries, one after the other: the middle, the slow and the slowest ones."""
    count = min(LATENCY_QUERIES, len(dataset.queries))
    taken: list[float] = []
    begun = time.perf_counter()
    for q in np.linspace(0, len(dataset.queries) - 1, count).astype(np.int64):
        query = dataset.queries.take(np.array([q]))
        start = time.perf_counter()
        searcher.search(query, k)
        taken.append(1000 * (time.perf_counter() - start))
        if time.perf_counter() - begun > LATENCY_SECONDS:
            break
    if not taken:
        return {}
    found = {f"p{p}": float(np.percentile(taken, p)) for p in (50, 95, 99)}
    return found | {"mean": float(np.mean(taken)), "queries": float(len(taken))}


def _slug(text: str) -> str:
    """A short name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.=_-]+", "-", text).strip("-.")[:80] or "unnamed"
