"""The data of a report: a folder's results, compared once, so that all verdicts agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from weir.api.charts import system_numbers
from weir.api.collection_notes import collection_notes, complete_cutoffs, construction_notes
from weir.api.rows import labels_of
from weir.core.charts import SystemNumbers
from weir.core.scores import Note, Row, Scores
from weir.core.short_names import systems_called
from weir.datasets.load import Dataset
from weir.errors import BadValue, UnknownName, WeirError
from weir.experiment.comparing import (
    compare_cells,
    compared_tables,
    comparison_cost,
    datasets_left_out,
    scores_of_cells,
    unit_names,
)
from weir.experiment.efficiency import Efficiency, efficiency
from weir.experiment.results import (
    ResultCell,
    cell_collection,
    cell_notes,
    check_scored,
    chosen_cells,
    current_cells,
    finished_and_lacking,
    largest_k,
    removed_answers,
    rows_with_groups,
    scored_measures,
    system_titles,
    without_results,
)
from weir.measures import measures_of
from weir.measures.measure import direction
from weir.stats.compare import Comparison, ComparisonMethod, Pair, Standing, with_wider_pairs
from weir.stats.resampling import DRAWS

MOST_PAIRWISE_SYSTEMS = 6
"""Systems up to which all pairs are compared; of more, each is compared with the baseline."""
RUN_BYTES = 600_000_000
"""Size up to which run files are read for rankings."""
FEW_QUERIES = 25
"""Queries below which a dataset or a slice is called small."""
MOST_DRAWN = 3e10
"""Signs of differences that permutation tests draw in some 30 seconds; beyond, they draw FEWER_DRAWS permutations."""
FEWER_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class Study:
    """The results of a folder with scores and comparisons, computed once."""

    folder: Path
    cells: tuple[ResultCell, ...]
    """One for each dataset and system, of the largest depth."""
    measures: tuple[str, ...]
    numbers: SystemNumbers
    scores: dict[tuple[str, str], Scores]
    """Scores by query, by dataset and system."""
    comparisons: tuple[Comparison, ...]
    """Of each measure on each dataset, and across datasets."""
    remarks: tuple[str, ...] = ()
    """Sentences on cells that were left out."""

    @staticmethod
    def of(
        folder: Path,
        baseline: str | None = None,
        measures: Iterable[str] = (),
        datasets: Sequence[str] = (),
        systems: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Study:
        """Return the data of a report from a results folder.

        baseline: name or label, by default bm25, else the first system.

        Raises FormatError for a folder without results, UnknownName for an absent name, BadValue for a label
        without a system, and if all were scored by outdated judgments.
        """
        finished, lacking = finished_and_lacking(folder, datasets, systems)
        current, outdated = current_cells(chosen_cells(finished, datasets, systems))
        if not current:
            raise BadValue("; ".join(outdated))
        cells, depths = largest_k(current)
        remarks = [*outdated, *depths, *lacking]
        names = list(dict.fromkeys(cell.label for cell in cells))
        label_of = labels_of(labels, names)
        first = next((name for name in names if name == "bm25" or name.startswith("bm25(")), names[0])
        titles = {**dict.fromkeys(names, ""), **system_titles(cells), **label_of}
        found = systems_called(baseline, titles) if baseline else {first}
        chosen = found.pop() if len(found) == 1 else baseline or first
        if chosen not in names:
            raise UnknownName("system to be the baseline", chosen, names)
        # Those with verdicts first.
        available = sorted(scored_measures(cells), key=lambda name: not direction(name))
        wanted = [str(one) for one in measures_of(tuple(measures))] if tuple(measures) else available
        check_scored(wanted, available)
        numbers = system_numbers(names, chosen, {**system_titles(cells), **label_of})
        scores, comparisons = scores_of_cells(cells), list[Comparison]()
        try:
            family = None if len(names) <= MOST_PAIRWISE_SYSTEMS else chosen
            drawn = comparison_cost(cells, wanted) * DRAWS / (1 if family is None else len(names) / 2)
            draws = DRAWS if drawn <= MOST_DRAWN else FEWER_DRAWS
            comparisons = _compared(scores, wanted, family, ComparisonMethod(draws=draws))
            remarks += datasets_left_out(cells, wanted, family)
        except BadValue as error:  # one system alone, or one query
            remarks = [*remarks, str(error)]
        made = Study(folder, tuple(cells), tuple(wanted), numbers, scores, tuple(comparisons), tuple(remarks))
        whole = made.ranking_comparison(wanted[0])
        if whole is None:
            return made
        place = {one.system: n for n, one in enumerate(whole.standings)}
        ranked = sorted(names, key=lambda name: place.get(name, len(place)))
        datasets = list(dict.fromkeys(cell.dataset for cell in cells))
        cells.sort(key=lambda cell: (datasets.index(cell.dataset), ranked.index(cell.label)))
        numbers = system_numbers(ranked, chosen, {**system_titles(cells), **label_of})
        return replace(made, cells=tuple(cells), numbers=numbers)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, best first by the first measure."""
        return self.numbers.names

    @property
    def baseline(self) -> str:
        """The system that others are compared with."""
        return self.numbers.baseline

    @property
    def pairwise(self) -> bool:
        """True if all pairs of systems are compared, False if each is with the baseline alone."""
        return any(one.baseline is None for one in self.comparisons)

    @cached_property
    def together(self) -> dict[tuple[str, str], Comparison]:
        """{(measure, dataset): comparison with Student's intervals of pairs at Bonferroni's level}, {}
        without comparisons.

        An interval is None for too few queries; verdicts do not change.
        """
        if not self.comparisons:
            return {}
        method = self.comparisons[0].method
        tests = max((pair.comparisons for one in self.comparisons for pair in one.pairs), default=1)
        level = 1 - method.alpha / tests
        family = None if self.pairwise else self.baseline
        tables = compared_tables(self.scores, self.measures, family)
        return {
            (one.measure, one.dataset): with_wider_pairs(one, of, level)
            for one, of in zip(self.comparisons, tables, strict=True)
        }

    @property
    def family(self) -> str:
        """The test, its correction and the pairs that it covers, in words."""
        first = self.comparisons[0]
        which = (
            "all pairs of systems" if self.pairwise else f"each system with {self.short_name(self.baseline)}"
        )
        return (
            f"{first.method.test} test, {first.method.correction} over {which}, level {first.method.alpha:g}"
        )

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The datasets in the order of the experiment."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The collections of the datasets; splits of one collection count once."""
        return tuple(dict.fromkeys(c.unit or c.collection for c in self.cells if c.dataset in self.unit_of))

    @property
    def noun(self) -> str:
        """ "collections", or "datasets" if some are splits of one collection."""
        return "collections" if len(self.units) == len(self.unit_of) else "datasets"

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The mean of each result by each measure, then of each group of datasets."""
        return tuple(row for row in rows_with_groups(self.cells) if row.measure in self.measures)

    @cached_property
    def cell_rows(self) -> tuple[Row, ...]:
        """The mean of each result by each measure, without groups of datasets."""
        return tuple(row for row in self.rows if row.dataset in self.datasets)

    @cached_property
    def unit_of(self) -> dict[str, str]:
        """{dataset: group or collection as which it counts over datasets}, without datasets that repeat
        another's queries and judgments."""
        return unit_names({c.dataset: c.unit for c in self.cells if not c.origin.uncounted})

    @cached_property
    def mean_of(self) -> dict[tuple[str, str, str], Row]:
        """{(dataset, system, measure): row with the mean}."""
        return {(row.dataset, row.system, row.measure): row for row in self.rows}

    def short_name(self, system: str) -> str:
        """Return a system's short name in the report, by its full name."""
        return self.numbers.label(system)

    def on(self, measure: str) -> list[Comparison]:
        """Return the comparisons over queries by a measure, one for each dataset that has one."""
        own = {c.dataset: c for c in self.comparisons if c.measure == measure and c.unit == "queries"}
        return [own[dataset] for dataset in self.datasets if dataset in own]

    def across(self, measure: str) -> Comparison | None:
        """Return the comparison across datasets; None for a single dataset."""
        return next((c for c in self.comparisons if c.measure == measure and c.unit == "datasets"), None)

    def ranking_comparison(self, measure: str) -> Comparison | None:
        """Return the comparison that ranks the systems: across datasets, or on the only one; None without
        either.

        A system with the same mean on all datasets gets no interval.
        """
        across, single = self.across(measure), [c for c in self.on(measure) if c.dataset in self.unit_of]
        if across is None:
            return single[0] if len(single) == 1 else None
        means: dict[str, set[float]] = {}
        for one in single:
            for standing in one.standings:
                means.setdefault(standing.system, set()).add(standing.mean)
        standings = (
            replace(one, low=None, high=None) if len(means.get(one.system, ())) == 1 else one
            for one in across.standings
        )
        return replace(across, standings=tuple(standings))

    def standing(self, comparison: Comparison, system: str) -> Standing | None:
        """Return a system's standing in a comparison; None if absent."""
        return next((one for one in comparison.standings if one.system == system), None)

    def against(self, comparison: Comparison, system: str, other: str = "") -> Pair | None:
        """Return the comparison of a system with another, by default the baseline; None if they were not
        compared."""
        return comparison.against(system, other or self.baseline)

    @cached_property
    def costs(self) -> tuple[Efficiency, ...]:
        """The cost of each result that the first measure scored."""
        return tuple(one for one in self.every_cost if one.quality.measure == self.measures[0])

    @cached_property
    def every_cost(self) -> tuple[Efficiency, ...]:
        """The cost of each result, with its mean by the first measure that scored it."""
        place = {(cell.dataset, cell.label): n for n, cell in enumerate(self.cells)}
        found = dict[tuple[str, str], Efficiency]()
        for measure in self.measures:
            if len(found) < len(place):
                for one in efficiency(self.folder, measure):
                    found.setdefault((one.quality.dataset, one.quality.system), one)
        return tuple(found[key] for key in place if key in found)

    @cached_property
    def collections(self) -> dict[str, Dataset]:
        """{dataset: collection} of those on this machine that are unchanged since measured."""
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
    def named_cells(self) -> tuple[ResultCell, ...]:
        """The results, with systems named as in the report."""
        named = ((cell, self.short_name(cell.label)) for cell in self.cells)
        return tuple(replace(cell, label=name, title=name) for cell, name in named)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Notes on results left out, scores, collections and measures that are 1 by construction."""
        notes = [*map(Note, self.remarks), *cell_notes(self.named_cells, self.measures)]
        for dataset in self.collections.values():
            with suppress(WeirError):  # a part of the collection is not here
                notes += collection_notes(dataset, ())
        with suppress(WeirError):
            notes += construction_notes(self.collections.values(), self.measures)
        return tuple(dict.fromkeys(notes))

    @cached_property
    def removed(self) -> dict[tuple[str, str], str]:
        """{(dataset, short name of a system): sentence} for rankings from which documents outside the collection were
        removed."""
        return removed_answers(self.named_cells)

    @cached_property
    def constructed(self) -> tuple[tuple[str, str], ...]:
        """(measure, dataset) of each measure that is 1 for any system that returns all documents."""
        pairs = []
        for name, dataset in self.collections.items():
            with suppress(WeirError):
                pairs += [(measure, name) for measure, *_ in complete_cutoffs(dataset, self.measures)]
        return tuple(pairs)

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """The measures that are not 1 by construction on every dataset; if there are none, all measures."""
        everywhere = [
            m for m in self.measures if all((m, name) in self.constructed for name in self.datasets)
        ]
        return tuple(m for m in self.measures if m not in everywhere) or self.measures

    def without_results(self, dataset: str) -> tuple[str, ...]:
        """Return one sentence that names the systems without results on a dataset; () if there are none."""
        return without_results(self.cells, dataset, self.short_name)

    def query_count(self, dataset: str) -> int:
        """Return the largest number of judged queries among a dataset's results."""
        return max(cell.queries for cell in self.cells if cell.dataset == dataset)

    def documents(self, dataset: str) -> int | None:
        """Return the number of documents of a dataset; None if not recorded."""
        return next(
            (one.documents for one in self.costs if one.quality.dataset == dataset and one.documents), None
        )

    @cached_property
    def largest(self) -> str:
        """The dataset with most documents, among those timed if any was."""
        return max(self.timed or self.datasets, key=lambda name: self.documents(name) or 0)

    @cached_property
    def timed(self) -> tuple[str, ...]:
        """The datasets on which a system was timed."""
        own = {one.quality.dataset for one in self.costs if one.p50_ms is not None or one.mean_ms is not None}
        return tuple(name for name in self.datasets if name in own)

    @property
    def why_largest(self) -> str:
        """Return, as a clause, why `largest` is shown."""
        some = 0 < len(self.timed) < len(self.datasets)
        return f"which has most documents{' of those that were timed' * some}"

    def tested(self) -> list[str]:
        """Return the measures whose comparisons have verdicts: all with a direction."""
        return [measure for measure in self.measures if direction(measure)]

    def singly_best(self, measure: str, system: str) -> int:
        """Return the number of datasets on which a system has the verdict "better" against every other."""
        return sum(
            all(
                (pair := self.against(one, system, other)) is not None and pair.verdict == "better"
                for other in self.systems
                if other != system
            )
            for one in self.on(measure)
        )

    def detectable(self, comparison: Comparison) -> dict[str, float]:
        """Return {system: detectable difference to the baseline}, smallest first, where known."""
        values = {
            system: pair.detectable
            for system in self.systems
            if (pair := self.against(comparison, system)) is not None and pair.detectable is not None
        }
        return dict(sorted(values.items(), key=lambda one: one[1]))

    def cell_mean(self, dataset: str, system: str, measure: str) -> float:
        """Return a system's mean on a dataset by a measure; NaN if unknown."""
        row = self.mean_of.get((dataset, system, measure))
        return math.nan if row is None else row.mean


def _compared(
    scores: Mapping[tuple[str, str], Scores],
    measures: Sequence[str],
    baseline: str | None,
    method: ComparisonMethod,
) -> list[Comparison]:
    return [
        replace(one, dataset=f"{one.count} collections") if one.unit == "datasets" else one
        for one in compare_cells(scores, measures, baseline, method)
    ]
