"""Whether a results folder is what its records say: every file hashed again, every ranking scored again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.datasets.load import Dataset, load
from weir.errors import FormatError, StoreError, WeirError
from weir.experiment.stage_store import INDEXES, run_file
from weir.experiment.task import SCORES, measure_number, rows_of
from weir.io.runs.read import judge_file
from weir.io.runs.scores_file import read_scores
from weir.measures import Measure, parse_measure, scores_of
from weir.stages.stage import RECORD, Record, read_record
from weir.stats.score_rows import rows

__all__ = ["Verdict", "verified"]

Told: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Verdict:
    """What was found of one stage folder.

    kind: "cell", rankings with scores; "run", rankings that other systems use; or "index". problems: what does not
    match; unchecked: what could not be checked, and why.
    """

    folder: str
    kind: str
    name: str
    problems: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing was found that does not match."""
        return not self.problems


@dataclass
class _Finding:
    """What is being found of one folder."""

    kind: str
    name: str = ""
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def verified(root: Path | str, watch: Told | None = None) -> list[Verdict]:
    """Check every stage of a results folder: files against their checksums, scores against rankings and judgments.

    The collections are opened where they were when they were measured; nothing is downloaded and nothing is written.
    watch: told (folder, how many are done, how many there are). Raises FormatError for a folder without results.
    """
    root = Path(root)
    folders = sorted(_stage_folders(root))
    if not folders:
        here = "no stage of weir run" if root.is_dir() else "a file" if root.exists() else "no such folder"
        raise FormatError(root, here, "a results folder of this version")
    datasets: dict[tuple[str, str], Dataset | str] = {}
    found = []
    for number, folder in enumerate(folders):
        if watch is not None:
            watch(folder.name, number, len(folders))
        one = _checked(folder, datasets)
        name = folder.relative_to(root).as_posix()
        found.append(Verdict(name, one.kind, one.name, tuple(one.problems), tuple(one.unchecked)))
    return found


def _stage_folders(root: Path) -> Iterator[Path]:
    """The folders below a results folder that hold a stage, or were about to."""
    for dataset in (path for path in root.glob("*") if path.is_dir()):
        for folder in (*dataset.glob("*"), *(dataset / INDEXES).glob("*")):
            if folder.is_dir() and not folder.name.startswith(".") and folder.name != INDEXES:
                yield folder


def _checked(folder: Path, datasets: dict[tuple[str, str], Dataset | str]) -> _Finding:
    scores = sorted(folder.glob(SCORES))
    kind = "index" if folder.parent.name == INDEXES else "cell" if scores else "run"
    found = _Finding(kind, folder.name)
    record = _read(folder / RECORD, found)
    if record is None:
        return found
    found.name = record.name
    sound = _files_sound(folder, record, found)
    for path in scores:
        scored = _read(path, found)
        if scored is not None and _files_sound(folder, scored, found) and sound:
            _score_again(folder, record, scored, found, datasets)
    return found


def _read(path: Path, found: _Finding) -> Record | None:
    try:
        return read_record(path)
    except StoreError as error:
        missing = not path.exists()
        found.problems.append(
            f"{path.name} is missing: it was not finished" if missing else _said(error, path.parent)
        )
        return None


def _files_sound(folder: Path, record: Record, found: _Finding) -> bool:
    try:
        record.verify(folder)
    except StoreError as error:
        found.problems.append(_said(error, folder))
        return False
    return True


def _score_again(
    folder: Path,
    ran: Record,
    scored: Record,
    found: _Finding,
    datasets: dict[tuple[str, str], Dataset | str],
) -> None:
    """Compare stored scores and rows with what the rankings and judgments give now."""
    if scored.declared["run"] != ran.stage.key:
        found.problems.append("its scores are of other rankings")
        return
    where = str(scored.facts["collection"]), str(scored.facts["split"])
    if where not in datasets:
        datasets[where] = _opened(*where)
    dataset = datasets[where]
    if isinstance(dataset, str):
        found.unchecked.append(f"not scored again: {dataset}")
        return
    if dataset.qrels_fingerprint != scored.declared["qrels"]:
        found.problems.append(f"the judgments of {where[0]} are not those it was scored with")
        return
    if dataset.corpus.fingerprint != ran.declared["corpus"]:
        found.problems.append(f"the documents of {where[0]} are not those that were searched")
        return
    found.problems += _differences(folder, scored, dataset, _todays(scored, found))


def _opened(where: str, split: str) -> Dataset | str:
    """A collection, or why it is not here."""
    try:
        dataset = load(where, split)
        dataset.fingerprint  # noqa: B018  (reads its parts)
    except WeirError as error:
        return str(error)
    return dataset


def _todays(scored: Record, found: _Finding) -> tuple[Measure, ...]:
    """The measures of scores that were made by the algorithms of this version."""
    measures = [(parse_measure(name), number) for name, number in scored.declared["measures"].items()]
    for one, number in measures:
        if number != measure_number(one):
            found.unchecked.append(
                f"{one} was made by algorithm {number}, this version has {measure_number(one)}"
            )
    return tuple(one for one, number in measures if number == measure_number(one))


def _differences(
    folder: Path, scored: Record, dataset: Dataset, measures: tuple[Measure, ...]
) -> Iterator[str]:
    """Which measures score otherwise now."""
    if not measures:
        return
    again = scores_of(judge_file(run_file(folder), dataset.qrels), measures)
    (name,) = scored.files
    stored = read_scores(folder / name)
    known = {row.measure: row for row in rows_of(scored)}
    at = stored.queries.codes(again.queries.strings)
    means = {row.measure: row for row in rows(again, str(scored.facts["dataset"]), scored.name)}
    for measure in again.measures:
        if (at < 0).any() or not np.array_equal(stored.of(measure)[at], again.of(measure), equal_nan=True):
            yield f"{measure} of its queries is not what the rankings score"
        elif known[measure] != means[measure] and str(known[measure]) != str(means[measure]):
            yield f"the row of {measure} is not what its scores give"


def _said(error: StoreError, folder: Path) -> str:
    return str(error).replace(f"{folder}/", "")
