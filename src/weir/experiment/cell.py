"""One cell of the grid, a system on a dataset: its rankings are a stage, and so is each set of scores beside them.

<results>/<collection>/<system>-<key>/
    run.trec               the rankings in trec order at full precision (run.json where an id has a blank)
    stage.json             what was declared for them, what made them, what they took
    scores-<key>.jsonl     one value for each measure and query
    scores-<key>.json      what was declared for the scores, what made them, the rows of a table
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weir.algorithms import ALGORITHMS, algorithm
from weir.core.judged import Judged
from weir.core.run import Run
from weir.core.scores import Row, Scores
from weir.errors import WeirError
from weir.experiment.stage_store import StageShelf, inputs_below, run_file
from weir.experiment.stages import (
    RECORD,
    Making,
    Record,
    Stage,
    made_now,
    read_record,
    record_of,
    records_in,
    write_record,
)
from weir.files.atomic import atomic_file, clear_lock, locked, sweep
from weir.files.integrity import Checksum
from weir.files.runs import join_run_file
from weir.files.score_files import write_scores
from weir.measures import Measure, parse_measure, scores_of
from weir.stats.calibration import uncalibrated
from weir.stats.score_rows import result_rows
from weir.systems.composite import adapted_to, titled
from weir.systems.protocol import Retriever

SCORES = "scores-*.json"


@dataclass(frozen=True, eq=False)
class Cell:
    """A system on a dataset, answering each query with up to k documents.

    shelf: the stages of the dataset; system: as it was named, which tables show.
    """

    shelf: StageShelf
    system: Retriever
    k: int

    @cached_property
    def adapted(self) -> Retriever:
        """The system as it runs on this collection; in tables and files it bears its own name."""
        return adapted_to(self.system, self.shelf.dataset.name, self.shelf.dataset.instruction)

    @cached_property
    def stage(self) -> Stage:
        """The rankings: what the system answers, without self-matches where the collection drops them."""
        declared: dict[str, Any] = {
            **self.shelf.asked_by(self.adapted),
            "k": self.k,
            "system": self.adapted.describe(),
        }
        if self.shelf.dataset.self_match == "drop":
            declared["self_match"] = "drop"
        return Stage("run", str(self.system), declared)

    def scored(self, measures: tuple[Measure, ...]) -> Stage:
        """The scores of the rankings by these measures."""
        declared = {
            "run": self.stage.key,
            "qrels": self.shelf.dataset.qrels_fingerprint,
            "measures": {str(m): measure_number(m) for m in measures},
            "interval": {**_interval(), "algorithm": algorithm("bootstrap interval")},
        }
        return Stage("scores", str(self.system), declared)

    def finished(self, measures: tuple[Measure, ...]) -> tuple[Path, list[Row]] | None:
        """(folder, rows for these measures), None where one of them is missing or not as today's Weir makes it."""
        found = self.stage.found(self.shelf.root)
        if found is None:
            return None
        folder, _ = found
        known = self._known(folder)
        wanted = [str(m) for m in measures]
        return (folder, [known[name] for name in wanted]) if known.keys() >= set(wanted) else None

    def complete(self, measures: tuple[Measure, ...], wait: bool = True) -> tuple[Path, list[Row]] | None:
        """Do what is missing of the cell; returns as `finished`.

        None where another process is at work on the cell and this one should not wait for it.
        """
        lock = self.shelf.root / f".{self.stage.folder_name}.cell.lock"
        found = self.finished(measures)
        if found is not None:
            for left in (lock, self.shelf.root / f".{self.stage.folder_name}.lock"):
                clear_lock(left)  # a process that was killed between its last file and letting go leaves it
            return found
        with locked(lock, wait) as held:
            if not held:
                return None
            found = self.finished(measures)  # by the process that was waited for
            if found is None:
                self._make(measures)
                clear_lock(self.shelf.root / f".{self.stage.folder_name}.lock")
                found = self.finished(measures)
        assert found is not None  # it was just written
        return found

    def _known(self, folder: Path) -> dict[str, Row]:
        """The rows of sound scores that are what would be made today, by measure."""
        found: dict[str, Row] = {}
        for _, record in self._sound(folder):
            numbers = record.declared["measures"]
            for row in rows_of(record):
                if numbers.get(row.measure) == measure_number(parse_measure(row.measure)):
                    found[row.measure] = row
        return found

    def _sound(self, folder: Path) -> Iterator[tuple[Path, Record]]:
        """The records of scores of these rankings by these judgments whose files are as they were written."""
        wanted = self.scored(()).declared
        for path, record in records_in(folder, SCORES):
            said = record.declared
            if all(said.get(name) == wanted[name] for name in ("run", "qrels", "interval")):
                try:
                    record.verify(folder)
                except WeirError as error:
                    self.shelf.note(f"scores are damaged, scoring again ({error})")
                    for left in (path, path.with_suffix(".jsonl")):
                        left.unlink(missing_ok=True)
                    continue
                yield path, record

    def _make(self, measures: tuple[Measure, ...]) -> None:
        """The rankings where they are missing, then the measures that are."""
        folder, judged = self._judged()
        self._drop_damaged(folder)
        known = self._known(folder)
        missing = tuple(m for m in measures if str(m) not in known)
        if missing:
            self._score(folder, judged, missing)

    def _drop_damaged(self, folder: Path) -> None:
        """Remove records of scores that are damaged, or another stage's, and values of which no record speaks."""
        for path in folder.glob(SCORES + "l"):
            if not path.with_suffix(".json").exists():
                path.unlink()
        for path in sorted(folder.glob(SCORES)):
            record = record_of(folder, path.name)
            own = record is not None and path.stem == f"scores-{record.stage.key}"
            if record is None or not own or record.declared.get("run") != self.stage.key:
                self.shelf.note(f"scores are damaged, scoring again ({path.name})")
                for left in (path, path.with_suffix(".jsonl")):
                    left.unlink(missing_ok=True)

    def _judged(self) -> tuple[Path, Judged]:
        """(folder of the rankings, their join with the judgments), read from disk or searched now."""
        shelf, stage = self.shelf, self.stage
        stored = shelf.sound(stage, shelf.root)
        if stored is not None and stage.key not in shelf.runs:
            return stored, join_run_file(run_file(stored), shelf.dataset.qrels)
        if shelf.dataset.self_match == "drop":
            folder, run = shelf.cached_run(stage, self._without_self, shelf.root)
        else:
            folder, run = shelf.cached_run(stage, lambda: shelf.searched(self.adapted, self.k), shelf.store)
        if folder.parent != shelf.root:
            folder = self._copied(folder)
        return folder, Judged.of(run, shelf.dataset.qrels)

    def _copied(self, shared: Path) -> Path:
        """Rankings from among what is shared, copied to the results, since scores stand beside their rankings."""
        shelf, folder = self.shelf, self.shelf.root / shared.name
        record = read_record(shared / RECORD)
        with atomic_file(folder / run_file(shared).name) as copy:
            shutil.copyfile(run_file(shared), copy)
        used = {(kind, str(shelf.store / name)): None for kind, name in record.inputs}
        write_record(folder / RECORD, replace(record, inputs=inputs_below(used, shelf.root)))
        return folder

    def _without_self(self) -> tuple[Run, dict[str, Any], Making]:
        """The system's rankings, one document deeper, without each query's own document."""
        with self.shelf.bench.making() as made:
            _, run = self.shelf.run(self.adapted, self.k + 1)
            with self.shelf.bench.timed():
                run = run.without_self().top(self.k)
        return run, {"queries": len(self.shelf.dataset.queries)}, made

    def _score(self, folder: Path, judged: Judged, measures: tuple[Measure, ...]) -> None:
        dataset, stage = self.shelf.dataset, self.scored(measures)
        path = folder / f"scores-{stage.key}.jsonl"
        for name in (path.name, f"scores-{stage.key}.json"):
            sweep(folder / name)
        with self.shelf.bench.making() as made, self.shelf.bench.timed():
            scores = replace(scores_of(judged, measures), labels=uncalibrated(dataset.qrels))
            title = titled(self.system)
            found = [replace(r, title=title) for r in result_rows(scores, dataset.name, str(self.system))]
        write_scores(scores, path)
        record = Record(
            "scores",
            stage.name,
            stage.declared,
            {path.name: Checksum.of(path)},
            (("run", folder.name),),
            made_now(),
            made.cost(),
            {**_collection(self), **outcome(scores), "rows": [row.to_dict() for row in found]},
        )
        write_record(path.with_suffix(".json"), record)


def rows_of(record: Record) -> list[Row]:
    """The rows that a record of scores holds."""
    return [Row.of(row) for row in record.facts["rows"]]


def measure_number(measure: Measure) -> int:
    """The number of a measure's algorithm: its own where it has one, else that of all measures."""
    return ALGORITHMS.get(f"measure {measure.name}", ALGORITHMS["measures"])


def _interval() -> dict[str, object]:
    from weir.stats.resampling import LEVEL, RESAMPLES, SEED

    return {"method": "percentile bootstrap", "level": LEVEL, "resamples": RESAMPLES, "seed": SEED}


def _collection(cell: Cell) -> dict[str, object]:
    """Which collection was measured, and where it was."""
    dataset = cell.shelf.dataset
    where = dataset.entry.name if dataset.entry else dataset.source or str(dataset.layout.root.resolve())
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        "collection": where,
        "fingerprint": dataset.fingerprint,
        "self_match": dataset.self_match,
        "k": cell.k,
    }


def outcome(scores: Scores) -> dict[str, object]:
    """What was found besides the values: how many queries are judged, answered and unjudged, and tied documents."""
    return {
        "queries": len(scores.queries),
        "answered": int(np.count_nonzero(scores.answered)),
        "unjudged_queries": scores.ignored,
        "tied_share": scores.tied,
    }
