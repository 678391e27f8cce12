"""A finished cell scored again by the rules that a publisher documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.experiment.explain.what_if import Scoring, mean, rescored
from weir.experiment.finished import Finished, dataset_of
from weir.experiment.published.published_scores import Publisher
from weir.io.runs.read import read_run
from weir.measures import Measure

__all__ = ["Rescored", "documented"]


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
