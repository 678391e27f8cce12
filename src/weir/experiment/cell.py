"""One cell of the grid, a system on a dataset: its rankings are a stage, and so is each set of scores beside them.

<results>/<collection>/<system>-<key>/
    run.trec               the rankings in trec order at full precision (run.json where an id has a blank)
    stage.json             what was declared for them, what made them, what they took
    scores-<key>.jsonl     one value for each measure and query
    scores-<key>.json      what was declared for the scores, what made them, the rows of a table
"""

from __future__ import annotations

import shutil
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
from weir.experiment.stage_store import StageCache, inputs_below, run_file
from weir.experiment.stages import (
    RECORD,
    Making,
    Record,
    Stage,
    current_environment,
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

    stages: the stages of the dataset; system: as it was named, which tables show.
    """

    stages: StageCache
    system: Retriever
    k: int

    @cached_property
    def adapted(self) -> Retriever:
        """The system as it runs on this collection; in tables and files it bears its own name."""
        return adapted_to(self.system, self.stages.dataset.name, self.stages.dataset.instruction)

    @cached_property
    def stage(self) -> Stage:
        """The rankings: what the system answers, without self-matches where the collection drops them."""
        declared: dict[str, Any] = {
            **self.stages.asked_by(self.adapted),
            "k": self.k,
            "system": self.adapted.describe(),
        }
        if self.stages.dataset.self_match == "drop":
            declared["self_match"] = "drop"
        return Stage("run", str(self.system), declared)

    def scored(self, measures: tuple[Measure, ...]) -> Stage:
        """The scores of the rankings by these measures."""
        from weir.stats.resampling import LEVEL, RESAMPLES, SEED

        declared = {
            "run": self.stage.key,
            "qrels": self.stages.dataset.qrels_fingerprint,
            "measures": {str(m): measure_number(m) for m in measures},
            "interval": {
                "method": "percentile bootstrap",
                "level": LEVEL,
                "resamples": RESAMPLES,
                "seed": SEED,
                "algorithm": algorithm("bootstrap interval"),
            },
        }
        return Stage("scores", str(self.system), declared)

    def finished(self, measures: tuple[Measure, ...]) -> tuple[Path, list[Row]] | None:
        """(folder, rows for these measures), None where one of them is missing or not as today's Weir makes it."""
        stored = self.stage.found(self.stages.root)
        if stored is None:
            return None
        known, names = self._known(stored[0]), [str(m) for m in measures]
        return (stored[0], [known[name] for name in names]) if known.keys() >= set(names) else None

    def complete(self, measures: tuple[Measure, ...], wait: bool = True) -> tuple[Path, list[Row]] | None:
        """Do what is missing of the cell; returns as `finished`.

        None where another process is at work on the cell and this one should not wait for it.
        """
        lock = self.stages.root / f".{self.stage.folder_name}.cell.lock"
        cell = self.finished(measures)
        if cell is not None:
            for stale in (lock, self.stages.root / f".{self.stage.folder_name}.lock"):
                clear_lock(stale)  # a process that was killed between its last file and letting go leaves it
            return cell
        with locked(lock, wait) as held:
            if not held:
                return None
            cell = self.finished(measures)  # by the process that was waited for
            if cell is None:
                folder, judged = self._judged()
                self._drop_damaged(folder)
                known = self._known(folder)
                missing = tuple(m for m in measures if str(m) not in known)
                if missing:
                    self._score(folder, judged, missing)
                clear_lock(self.stages.root / f".{self.stage.folder_name}.lock")
                cell = self.finished(measures)
        assert cell is not None  # it was just written
        return cell

    def _known(self, folder: Path) -> dict[str, Row]:
        """The rows by measure of sound scores of these rankings by these judgments, made by today's algorithms."""
        current, rows = self.scored(()).declared, dict[str, Row]()
        for path, record in records_in(folder, SCORES):
            declared = record.declared
            if any(declared.get(name) != current[name] for name in ("run", "qrels", "interval")):
                continue
            try:
                record.verify(folder)
            except WeirError as error:
                self._drop_scores(path, str(error))
                continue
            for row in rows_of(record):
                if declared["measures"].get(row.measure) == measure_number(parse_measure(row.measure)):
                    rows[row.measure] = row
        return rows

    def _drop_scores(self, path: Path, reason: str) -> None:
        """Remove a record of scores and its values."""
        self.stages.note(f"scores are damaged, scoring again ({reason})")
        for damaged in (path, path.with_suffix(".jsonl")):
            damaged.unlink(missing_ok=True)

    def _drop_damaged(self, folder: Path) -> None:
        """Remove damaged records of scores, those of another stage, and values without a record."""
        for path in folder.glob(SCORES + "l"):
            if not path.with_suffix(".json").exists():
                path.unlink()
        for path in sorted(folder.glob(SCORES)):
            record = record_of(folder, path.name)
            own = record is not None and path.stem == f"scores-{record.stage.key}"
            if record is None or not own or record.declared.get("run") != self.stage.key:
                self._drop_scores(path, path.name)

    def _judged(self) -> tuple[Path, Judged]:
        """(folder of the rankings, their join with the judgments), read from disk or searched now."""
        stages, stage = self.stages, self.stage
        stored = stages.sound(stage, stages.root)
        if stored is not None and stage.key not in stages.runs:
            return stored, join_run_file(run_file(stored), stages.dataset.qrels)
        if stages.dataset.self_match == "drop":
            folder, run = stages.cached_run(stage, self._without_self, stages.root)
        else:
            folder, run = stages.cached_run(
                stage, lambda: stages.searched(self.adapted, self.k), stages.store
            )
        if folder.parent != stages.root:
            folder = self._copied(folder)
        return folder, Judged.of(run, stages.dataset.qrels)

    def _copied(self, shared: Path) -> Path:
        """Rankings from among what is shared, copied to the results, since scores stand beside their rankings."""
        stages, folder = self.stages, self.stages.root / shared.name
        record = read_record(shared / RECORD)
        with atomic_file(folder / run_file(shared).name) as copy:
            shutil.copyfile(run_file(shared), copy)
        used = {(kind, str(stages.store / name)): None for kind, name in record.inputs}
        write_record(folder / RECORD, replace(record, inputs=inputs_below(used, stages.root)))
        return folder

    def _without_self(self) -> tuple[Run, dict[str, Any], Making]:
        """The system's rankings, one document deeper, without each query's own document."""
        with self.stages.bench.making() as made:
            _, run = self.stages.run(self.adapted, self.k + 1)
            with self.stages.bench.timed():
                run = run.without_self().top(self.k)
        return run, {"queries": len(self.stages.dataset.queries)}, made

    def _score(self, folder: Path, judged: Judged, measures: tuple[Measure, ...]) -> None:
        """Write the scores of the rankings by these measures, then their record."""
        dataset, stage = self.stages.dataset, self.scored(measures)
        path = folder / f"scores-{stage.key}.jsonl"
        for name in (path.name, f"scores-{stage.key}.json"):
            sweep(folder / name)
        with self.stages.bench.making() as made, self.stages.bench.timed():
            scores = replace(scores_of(judged, measures), labels=uncalibrated(dataset.qrels))
            title = titled(self.system)
            rows = [replace(r, title=title) for r in result_rows(scores, dataset.name, str(self.system))]
        write_scores(scores, path)
        place = dataset.entry.name if dataset.entry else dataset.source or str(dataset.layout.root.resolve())
        facts = {
            "dataset": dataset.name,
            "split": dataset.split,
            "collection": place,
            "fingerprint": dataset.fingerprint,
            "self_match": dataset.self_match,
            "k": self.k,
            **outcome(scores),
            "rows": [row.to_dict() for row in rows],
        }
        files, inputs = {path.name: Checksum.of(path)}, (("run", folder.name),)
        record = Record(
            "scores", stage.name, stage.declared, files, inputs, current_environment(), made.cost(), facts
        )
        write_record(path.with_suffix(".json"), record)


def rows_of(record: Record) -> list[Row]:
    """The rows that a record of scores holds."""
    return [Row.of(row) for row in record.facts["rows"]]


def measure_number(measure: Measure) -> int:
    """The number of a measure's algorithm: its own where it has one, else that of all measures."""
    return ALGORITHMS.get(f"measure {measure.name}", ALGORITHMS["measures"])


def outcome(scores: Scores) -> dict[str, object]:
    """How many queries are judged, answered and unjudged, and the share of tied documents."""
    return {
        "queries": len(scores.queries),
        "answered": int(np.count_nonzero(scores.answered)),
        "unjudged_queries": scores.ignored,
        "tied_share": scores.tied,
    }
