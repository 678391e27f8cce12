"""What a report is about: the cells of a results folder, compared once, so that a page has one set of verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from weir.api.charts import system_numbers
from weir.api.collection_notes import collection_notes, complete_cutoffs, construction_notes
from weir.api.rows import labels_of
from weir.core.charts import SystemNumbers
from weir.core.scores import Note, Row
from weir.datasets.load import Dataset
from weir.errors import BadValue, UnknownName, WeirError
from weir.experiment.comparing import compare_cells, comparison_cost, unit_names
from weir.experiment.efficiency import Efficiency, efficiency
from weir.experiment.results import (
    ResultCell,
    cell_collection,
    cell_notes,
    chosen_cells,
    current_cells,
    finished_cells,
    largest_k,
    rows_with_groups,
    system_titles,
    systems_without_scores,
)
from weir.measures import measures_of
from weir.measures.measure import direction
from weir.stats.compare import Comparison, ComparisonMethod, Pair, Standing
from weir.stats.significance import DRAWS

MOST_PAIRWISE_SYSTEMS = 6
"""Systems up to which each is compared with each; of more, each is compared with the baseline."""
RUN_BYTES = 600_000_000
"""Size up to which run files are read for rankings."""
FEW_QUERIES = 25
"""Queries below which a dataset or a slice is called small."""
MOST_DRAWN = 3e10
"""Signs of differences that permutation tests draw in some 30 seconds; beyond, they draw FEWER_DRAWS permutations."""
FEWER_DRAWS = 10_000
MOVED_PART = 4
"""A pair tells what a dataset can show where it differs on one query of so many at least."""


@dataclass(frozen=True, eq=False)
class Study:
    """The cells of a folder and what one family of comparisons says about them.

    cells: one for each dataset and system, those of the largest depth; numbers: of the systems, by their labels in the
    cells; comparisons: of each measure and dataset, and across datasets; remarks: on cells that were left out.
    """

    folder: Path
    cells: tuple[ResultCell, ...]
    measures: tuple[str, ...]
    numbers: SystemNumbers
    comparisons: tuple[Comparison, ...]
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(
        folder: Path,
        baseline: str | None = None,
        measures: Iterable[str] = (),
        datasets: Sequence[str] = (),
        systems: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Study:
        """The study of a results folder.

        baseline: a system by its name or label, by default bm25 where it is there, else the first; labels: names for
        systems, such as "tuned=bm25(k1=1.2)". Raises FormatError for a folder without results, UnknownName for a
        dataset, system, measure or baseline that is not there, BadValue where all were scored by judgments that no
        longer count, and as `labels_of`.
        """
        finished = finished_cells(folder)
        current, outdated = current_cells(chosen_cells(finished, datasets, systems))
        if not current:
            raise BadValue("; ".join(outdated))
        cells, depths = largest_k(current)
        remarks = [*outdated, *depths, *systems_without_scores(folder, finished, datasets)]
        names = list(dict.fromkeys(cell.label for cell in cells))
        label_of = labels_of(labels, names)
        first = next((name for name in names if name == "bm25" or name.startswith("bm25(")), names[0])
        chosen = next((name for name, label in label_of.items() if label == baseline), baseline or first)
        if chosen not in names:
            raise UnknownName("system to be the baseline", chosen, names)
        available = list(dict.fromkeys(row.measure for cell in cells for row in cell.rows))
        available.sort(key=lambda name: not direction(name))  # those with verdicts first
        wanted = [str(one) for one in measures_of(tuple(measures))] if tuple(measures) else available
        for measure in wanted:
            if measure not in available:
                raise UnknownName("measure among these results", measure, available)
        numbers = system_numbers(names, chosen, {**system_titles(cells), **label_of})
        comparisons: list[Comparison] = []
        try:
            family = None if len(names) <= MOST_PAIRWISE_SYSTEMS else chosen
            drawn = comparison_cost(cells, wanted) * DRAWS / (1 if family is None else len(names) / 2)
            draws = DRAWS if drawn <= MOST_DRAWN else FEWER_DRAWS
            comparisons = _compared(cells, wanted, family, ComparisonMethod(draws=draws))
        except BadValue as error:  # one system alone, or one query
            remarks = [*remarks, str(error)]
        return Study(folder, tuple(cells), tuple(wanted), numbers, tuple(comparisons), tuple(remarks))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order of the experiment."""
        return self.numbers.names

    @property
    def baseline(self) -> str:
        """The system that others are compared with."""
        return self.numbers.baseline

    @property
    def pairwise(self) -> bool:
        """Whether each system is compared with each, not with the baseline alone."""
        return any(one.baseline is None for one in self.comparisons)

    @cached_property
    def together(self) -> dict[tuple[str, str], Comparison]:
        """By measure and dataset comparisons whose intervals hold for all that a correction counts together.

        They are Student's at the level that Bonferroni's correction leaves to each.
        """
        if not self.comparisons:
            return {}
        method = self.comparisons[0].method
        tests = max((pair.comparisons for one in self.comparisons for pair in one.pairs), default=1)
        level = 1 - method.alpha / tests
        family = None if self.pairwise else self.baseline
        wide = _compared(self.cells, self.measures, family, ComparisonMethod(test="t", level=level))
        return {(one.measure, one.dataset): one for one in wide}

    @property
    def family(self) -> str:
        """Which comparisons the corrections count, in words."""
        first = self.comparisons[0]
        which = "all pairs of systems" if self.pairwise else f"each system with {self.label(self.baseline)}"
        return (
            f"{first.method.test} test, {first.method.correction} over {which}, level {first.method.alpha:g}"
        )

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The datasets in the order of the experiment."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The means of all cells, those of groups of datasets behind their members."""
        return tuple(row for row in rows_with_groups(self.cells) if row.measure in self.measures)

    @cached_property
    def cell_rows(self) -> tuple[Row, ...]:
        """The means of all cells, without those of groups of datasets."""
        return tuple(row for row in self.rows if row.dataset in self.datasets)

    @cached_property
    def unit_of(self) -> dict[str, str]:
        """What each dataset counts as in a mean over datasets."""
        return unit_names({cell.dataset: cell.unit for cell in self.cells})

    @cached_property
    def mean_of(self) -> dict[tuple[str, str, str], Row]:
        """The row of each dataset, system and measure."""
        return {(row.dataset, row.system, row.measure): row for row in self.rows}

    def label(self, system: str) -> str:
        """The short name of a system."""
        return self.numbers.label(system)

    def on(self, measure: str) -> list[Comparison]:
        """The comparisons of a measure on each dataset, in the order of the experiment."""
        own = {c.dataset: c for c in self.comparisons if c.measure == measure and c.unit == "queries"}
        return [own[dataset] for dataset in self.datasets if dataset in own]

    def across(self, measure: str) -> Comparison | None:
        """The comparison across datasets; None where there is one dataset."""
        return next((c for c in self.comparisons if c.measure == measure and c.unit == "datasets"), None)

    def whole(self, measure: str) -> Comparison | None:
        """The comparison that ranks the systems: across datasets, or on the only one."""
        across, single = self.across(measure), self.on(measure)
        return across or (single[0] if len(single) == 1 else None)

    def standing(self, comparison: Comparison, system: str) -> Standing | None:
        """A system in a comparison, None where it is not there."""
        return next((one for one in comparison.standings if one.system == system), None)

    def against(self, comparison: Comparison, system: str, other: str = "") -> Pair | None:
        """A system against another one, by default the baseline; None where the two were not compared."""
        return comparison.against(system, other or self.baseline)

    @cached_property
    def costs(self) -> tuple[Efficiency, ...]:
        """What each cell cost, beside the first measure."""
        cells = {(cell.dataset, cell.label) for cell in self.cells}
        measured = efficiency(self.folder, self.measures[0])
        return tuple(one for one in measured if (one.quality.dataset, one.quality.system) in cells)

    @cached_property
    def collections(self) -> dict[str, Dataset]:
        """The collections of the cells that are on this machine as they were measured."""
        collections: dict[str, Dataset] = {}
        for cell in self.cells:
            if cell.dataset not in collections:
                try:
                    dataset = cell_collection(cell)
                except WeirError:
                    continue
                if dataset is not None:
                    collections[cell.dataset] = dataset
        return collections

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What has to be said beside the scores."""
        shown = [replace(cell, label=self.label(cell.label)) for cell in self.cells]
        notes = [*map(Note, self.remarks), *cell_notes(shown)]
        for dataset in self.collections.values():
            with suppress(WeirError):  # a part of the collection is not here
                notes += collection_notes(dataset, ())
        with suppress(WeirError):
            notes += construction_notes(self.collections.values(), self.measures)
        return tuple(dict.fromkeys(notes))

    @cached_property
    def constructed(self) -> tuple[tuple[str, str], ...]:
        """The measures that are 1 on a dataset for whatever returns all that may be ranked: (measure, dataset)."""
        pairs = []
        for name, dataset in self.collections.items():
            with suppress(WeirError):
                pairs += [(measure, name) for measure, *_ in complete_cutoffs(dataset, self.measures)]
        return tuple(pairs)

    def query_count(self, dataset: str) -> int:
        """Judged queries of a dataset."""
        return max(cell.queries for cell in self.cells if cell.dataset == dataset)

    def documents(self, dataset: str) -> int | None:
        """Documents of a dataset, None where no record says it."""
        return next(
            (one.documents for one in self.costs if one.quality.dataset == dataset and one.documents), None
        )

    def detectable(self, comparison: Comparison) -> tuple[float, float] | None:
        """The smallest and the largest difference to the baseline that the queries of a dataset can show."""
        values = [
            pair.detectable
            for system in self.systems
            if (pair := self.against(comparison, system)) is not None
            and pair.detectable is not None
            and pair.won + pair.lost
            >= comparison.count / MOVED_PART  # near-copies of the baseline say nothing
        ]
        return (min(values), max(values)) if values else None

    def mean(self, dataset: str, system: str, measure: str) -> float:
        """The mean of a cell, NaN where it is not there."""
        row = self.mean_of.get((dataset, system, measure))
        return math.nan if row is None else row.mean


def _compared(
    cells: Sequence[ResultCell], measures: Sequence[str], baseline: str | None, method: ComparisonMethod
) -> list[Comparison]:
    """As `compare_cells`, where the mean over datasets goes by how many collections they are."""
    count = len({cell.dataset for cell in cells})
    return [
        replace(one, dataset=f"{count} collections") if one.unit == "datasets" else one
        for one in compare_cells(cells, measures, baseline, method)
    ]
