"""A results folder against what others have published of the same systems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from weir.core.qrels import Qrels
from weir.core.result_row import Row
from weir.core.run import Run
from weir.datasets import catalogue
from weir.errors import BadValue
from weir.experiment.explain.what_if import Scoring, mean, rescored
from weir.experiment.finished import Finished, dataset_of, finished_cells
from weir.experiment.published.published_scores import (
    PublishedScore,
    Publisher,
    claimed,
    model_named,
    published,
    publisher_of,
)
from weir.experiment.results import group_rows
from weir.io.runs.read import read_run
from weir.measures import Measure, parse_measure

__all__ = ["Neighbour", "Outcome", "PublishedCheck", "reproduce"]

Outcome: TypeAlias = Literal["reproduced", "explained", "off", "not published", "other data"]
NEAREST = 3


@dataclass(frozen=True)
class Neighbour:
    """A published score of another system near ours."""

    model: str
    printed: str
    source: str


@dataclass(frozen=True)
class PublishedCheck:
    """One mean of ours beside the published score that it claims to be.

    outcome: "reproduced" where the two agree to the last decimal that is compared; "explained" where they do once our
    rankings are scored by a rule that the publisher documents, named in `because`; "off" where they do not; "not
    published"; or "other data" where the collection has another number of judged queries than the published one;
    difference: ours minus published, NaN where there is none; decimals: how many are compared; nearest: other systems.
    """

    folder: str
    dataset: str
    split: str
    system: str
    measure: str
    ours: float
    outcome: Outcome
    published: PublishedScore | None = None
    difference: float = math.nan
    decimals: int = 0
    nearest: tuple[Neighbour, ...] = ()
    because: str = ""


def reproduce(
    root: Path, model: str | None = None, decimals: int | None = None, nearest: bool = False
) -> list[PublishedCheck]:
    """Check every finished cell of a results folder, and whole groups, against the published scores they claim to be.

    model: a published model that the systems are taken to be, instead of what they claim, see `model_named`; decimals:
    compare so many decimals, where more are printed; nearest: add the three nearest published scores of other systems.
    A cell that is off is scored again by the publisher's rules where its collection is on this machine.
    Raises FormatError where the folder holds no finished cell, UnknownName or BadValue for the model.
    """
    if decimals is not None and decimals < 0:
        raise BadValue(f"the tolerance is {decimals} decimals; expected a whole number from 0")
    name = None if model is None else model_named(model)
    cells = finished_cells(root)
    found = []
    for cell in cells:
        same_data = _same_data(cell)
        again = Rescored(cell)
        for row in cell.rows:
            checks = _checks(
                row, cell.split, _models(row, name), same_data, decimals, nearest, str(cell.folder)
            )
            found += [_explained(check, again, decimals) for check in checks]
    for row in group_rows([replace(cell, label="") for cell in cells]):
        found += _checks(row, _split(cells, row), _models(row, name), True, decimals, nearest, str(root))
    return found


def _models(row: Row, name: str | None) -> tuple[str, ...]:
    return claimed(row.system, row.dataset) if name is None else (name,)


def _same_data(cell: Finished) -> bool:
    """Whether a cell has as many judged queries as the catalogue says of the collection of that name."""
    if cell.dataset not in catalogue.names():
        return False
    entry = catalogue.get(cell.dataset)
    return cell.split != entry.split or cell.queries == entry.queries


def _split(cells: Iterable[Finished], row: Row) -> str:
    members = catalogue.group(row.dataset).members
    return next((c.split for c in cells if c.dataset in members), "test")


def _checks(
    row: Row,
    split: str,
    models: Sequence[str],
    same_data: bool,
    decimals: int | None,
    nearest: bool,
    folder: str,
) -> list[PublishedCheck]:
    """A check for each published score that a row claims to be, or one that says why there is none."""
    scores = [s for s in published(row.dataset, measure=row.measure) if s.split == split]
    others = _nearest(row.mean, [s for s in scores if s.model not in models]) if nearest else ()
    claims = [s for s in scores if s.model in models]
    ours = (folder, row.dataset, split, row.system, row.measure, row.mean)
    if not claims:
        return [PublishedCheck(*ours, "not published", nearest=others)]
    found = []
    for score in claims:
        outcome: Outcome = "reproduced" if score.agrees(row.mean, decimals) else "off"
        compared = score.decimals if decimals is None else min(decimals, score.decimals)
        difference = row.mean - score.value
        found.append(
            PublishedCheck(*ours, outcome if same_data else "other data", score, difference, compared, others)
        )
    return found


def _explained(check: PublishedCheck, again: Rescored, decimals: int | None) -> PublishedCheck:
    """The check as explained where it is off and a documented rule of the publisher makes the two agree."""
    score = check.published
    if check.outcome != "off" or score is None:
        return check
    for because, scoring in documented(publisher_of(score.model), parse_measure(check.measure)):
        value = again.mean(scoring)
        if value is not None and score.agrees(value, decimals):
            return replace(check, outcome="explained", because=because)
    return check


def _nearest(value: float, scores: Iterable[PublishedScore]) -> tuple[Neighbour, ...]:
    ordered = sorted(scores, key=lambda s: abs(s.value - value))
    return tuple(Neighbour(s.model, s.printed, s.source) for s in ordered[:NEAREST])


def documented(rules: Publisher, measure: Measure) -> Iterator[tuple[str, Scoring]]:
    """The ways in which a publisher is known to score otherwise than Weir, by what differs: each alone, then all."""
    usual = Scoring(measure)
    together = Scoring(measure, rules.ties or "trec", rules.self_match or "keep", rules.missing or "zero")
    alone = {
        "ties": replace(usual, ties=together.ties),
        "self-matches": replace(usual, self_match=together.self_match),
        "missing queries": replace(usual, missing=together.missing),
    }
    changed = {name: scoring for name, scoring in alone.items() if scoring != usual}
    yield from changed.items()
    if len(changed) > 1:
        yield " and ".join(changed), together


@dataclass(frozen=True)
class Rescored:
    """A cell whose rankings and judgments are read when a score by other rules is first asked for."""

    cell: Finished

    def mean(self, scoring: Scoring) -> float | None:
        """The mean by other rules, None where the collection of the cell is not on this machine."""
        if self._read is None:
            return None
        return mean(rescored(*self._read, scoring), scoring.measure)

    @cached_property
    def _read(self) -> tuple[Run, Qrels] | None:
        dataset = dataset_of(self.cell)
        return None if dataset is None else (read_run(self.cell.run), dataset.qrels)
