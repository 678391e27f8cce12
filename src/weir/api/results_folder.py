"""What stands in a results folder or a collection, whether it is sound, and what it cost; and plans."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from weir.api.auditing import Places, places_of
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.scores import Note
from weir.datasets.load import Dataset, query_groups
from weir.errors import BadValue
from weir.files.paths import path_of

if TYPE_CHECKING:
    from weir.api.rows import Display
    from weir.core.scores import Row, Scores
    from weir.datasets.card import CollectionCard
    from weir.experiment.beside import BesideScore
    from weir.experiment.efficiency import Efficiency
    from weir.experiment.experiment import Experiment
    from weir.experiment.llm_answers import ModelUse, QueryTrace
    from weir.experiment.plan import Node, Planned
    from weir.experiment.published import PublishedScore
    from weir.experiment.reproduce import PublishedCheck
    from weir.experiment.results import Provenance, ResultCell
    from weir.experiment.verify import Verdict
    from weir.measures import Measure
    from weir.stats.birco import BircoScore
    from weir.stats.compare import Comparison
    from weir.systems import Retriever


FolderPath: TypeAlias = "str | os.PathLike[str]"
Systems: TypeAlias = "str | Retriever | Sequence[str | Retriever] | None"


@dataclass(frozen=True)
class ShownResults:
    """Finished cells as `weir results` shows them.

    rows: their means, groups of datasets after their members; by: whether these are of groups of queries.
    """

    cells: Sequence[ResultCell]
    rows: ResultSet[Row]
    by: bool = False

    @staticmethod
    def of(
        cells: Sequence[ResultCell], measures: Sequence[str] = (), more: Iterable[Note] = ()
    ) -> ShownResults:
        """All that has to be shown of cells; measures: these alone, in this order, by default all; more: last notes."""
        from weir.experiment.results import by_split, cell_notes, current_cells, rows_with_groups

        # Nothing is shown of what nobody judged.
        scored = [cell for cell in cells if cell.rows]
        named = all(cell.unit for cell in scored)  # as among the cells of which these were chosen
        cells, outdated = current_cells(scored if named else by_split(scored))
        if outdated and not cells:
            raise BadValue("; ".join(outdated))
        rows = rows_with_groups(cells)
        if measures:
            rows = [row for measure in measures for row in rows if row.measure == measure]
        notes = tuple(cell_notes(cells))
        if len(cells) > 1:
            from weir.experiment.factors import twin_notes, twin_systems

            notes = (*notes, *map(Note, twin_notes(twin_systems(cells))))
        return ShownResults(cells, ResultSet("results", tuple(rows), (*notes, *map(Note, outdated), *more)))

    def scores(self) -> dict[tuple[str, ...], Scores]:
        """The values by query of each dataset and system, of the measures of the rows."""
        scores: dict[tuple[str, ...], Scores] = {}
        for cell in self.cells:
            names = [
                row.measure for row in self.rows if (row.dataset, row.system) == (cell.dataset, cell.label)
            ]
            values = cell.values()
            columns = np.array([values.of(name) for name in names])
            scores[cell.dataset, cell.label] = replace(values, measures=tuple(names), values=columns)
        return scores

    def shown(self, display: Display) -> tuple[str, tuple[Note, ...]]:
        """(the rows in the form of the display, all notes); a grid has tie groups where these do not take long."""
        from weir.api.rows import rows_shown
        from weir.experiment.comparing import MOST_COMPARED, compare_grid, comparison_cost
        from weir.experiment.results import largest_k

        left_out: list[Note] = []

        def compared() -> Sequence[Comparison]:
            measures = list(dict.fromkeys(row.measure for row in self.rows))
            if comparison_cost(self.cells, measures) > MOST_COMPARED:
                left_out.append(
                    Note("tie groups are left out, as they take long here: weir compare FOLDER shows them")
                )
                return ()
            current = largest_k(self.cells)[0]
            several = len({cell.dataset for cell in current}) < len(current)
            grid = {(cell.dataset, cell.label or cell.system): cell.values() for cell in current}
            return compare_grid(grid, measures) if several else ()

        text = rows_shown(self.rows.items, display, None if self.by else compared) if self.cells else ""
        return text, (*left_out, *self.rows.notes())


@checked
def results(
    folder: FolderPath,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
) -> ResultSet[Row]:
    """The rows of every finished cell of a results folder, groups of datasets after their members.

    measures, datasets, systems: these alone, by default all; a group of datasets stands for its members. Raises
    FormatError where the folder holds no finished cell, UnknownName for a measure, dataset or system that is not there.
    """
    return results_shown(folder, measures, datasets, systems).rows


def results_shown(
    folder: FolderPath,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
    by: object = None,
    collection: Places = None,
    fetch: bool = False,
) -> ShownResults:
    """As `results`, with the tables of `weir results`; by: groups of queries, whose means are the rows.

    collection: where collections whose column `by` may be lie now; fetch: whether they may be brought here.
    Raises as `results`, and BadValue for groups that are not there.
    """
    from weir.core.scores import GroupedScores
    from weir.errors import UnknownName
    from weir.experiment.results import current_cells, mixed_provenance, with_collections
    from weir.measures import measures_of
    from weir.stats.score_rows import rows_by_group

    cells, damaged = _cells_of(folder, systems, datasets)
    names = [str(measure) for measure in measures_of(measures)] if measures else []
    available = {row.measure for cell in cells for row in cell.rows}
    for measure in names:
        if measure not in available:
            raise UnknownName("measure among these results", measure, available)
    if by is None:
        return ShownResults.of(cells, names, damaged)
    rows: list[Row] = []
    notes: list[Note] = []
    cells, outdated = current_cells(cells)
    with_column, left_out = with_collections(cells, by, places_of(collection), fetch)
    for cell, dataset in with_column:
        scores = cell.values()
        grouped = GroupedScores.of(scores, query_groups(by, scores.queries, dataset))
        of_cell = rows_by_group(grouped, cell.dataset, cell.label)
        notes += grouped.notes()
        rows += [row for row in of_cell if not names or row.measure in names]
    cells = [cell for cell, _ in with_column]
    notes += [*map(Note, (*outdated, *left_out)), *damaged, *map(Note, mixed_provenance(cells))]
    return ShownResults(cells, ResultSet("results", tuple(rows), tuple(notes)), by=True)


def run_shown(
    grid: Experiment,
    folder: FolderPath,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    share: str | None = None,
    on: str | None = None,
    fetch: bool = False,
) -> ShownResults:
    """Run an experiment into a results folder: what `weir run` shows; killed at any moment, the same call continues.

    progress: is called with what is being done, how much of it, of how much; share: "I/N" to be one of N processes on
    one folder, whose tables then hold what is finished; on: a cluster, such as "ray"; fetch: whether collections of the
    catalogue that are not here are fetched first. Raises the WeirErrors of the parts.
    """
    from weir.api.collection_notes import dataset_notes, language_notes
    from weir.experiment.experiment import Share

    if fetch:
        from weir.datasets.fetch import fetch_missing

        fetch_missing([name for name in grid.datasets if isinstance(name, str)], progress)
    cells = grid.complete(path_of(folder), progress, None if share is None else Share.parse(share), on)
    loaded, measures = grid.loaded_datasets(), [str(measure) for measure in grid.measures]
    judged = [one for one in loaded if not one.unjudged]
    systems = grid.parsed_systems()
    notes = dataset_notes(judged, measures, grid.k, grid.drop_self or None) + language_notes(loaded, systems)
    if unjudged := [one.name for one in loaded if one.unjudged]:
        begin = f"weir labels pool {folder} -o pool/ writes a sheet to judge"
        notes.append(
            Note(f"{', '.join(unjudged)}: no judgments, so rankings are kept and nothing is scored; {begin}")
        )
    elsewhere = len(loaded) * len(systems) - len(cells)
    if elsewhere:
        notes.append(
            Note(f"other processes are at work on {elsewhere:,} cells; the tables show what is finished")
        )
    return ShownResults.of(cells, (), notes)


def provenance(
    folder: FolderPath, datasets: Sequence[str] = (), systems: Sequence[str | Retriever] = ()
) -> ResultSet[Provenance]:
    """What made each result of a folder, stage by stage: `weir results --provenance`; arguments as `results`."""
    from weir.experiment.results import mixed_provenance, provenance_of

    cells, damaged = _cells_of(folder, systems, datasets)
    notes = (*damaged, *map(Note, mixed_provenance(cells)))
    return ResultSet("provenance", tuple(map(provenance_of, cells)), notes)


@checked
def verify(
    folder: FolderPath, fetch: bool = False, progress: Callable[[str, int, int], None] | None = None
) -> ResultSet[Verdict]:
    """Whether a results folder is what its records say: true where every file and every score is, and all was checked.

    progress: is called with a folder, how many are checked, and how many there are; fetch: whether the collections that
    its records name may be brought here; else nothing is asked of the network and nothing is written, as the folder may
    be somebody else's. Raises FormatError for a folder without results.
    """
    from weir.experiment.verify import verified

    return ResultSet("verify", tuple(verified(path_of(folder), progress, fetch)))


@checked
def efficiency(folder: FolderPath, measure: Measure | str | None = None) -> ResultSet[Efficiency]:
    """What each system of a results folder costs, next to its quality by a measure, by default the first.

    Raises FormatError where the folder holds no finished cell, UnknownName for a measure that is not there.
    """
    from weir.experiment.efficiency import efficiency as costs_of
    from weir.experiment.efficiency import efficiency_notes
    from weir.experiment.results import by_split, current_cells, finished_cells
    from weir.measures import measures_of

    costs = costs_of(path_of(folder), None if measure is None else str(measures_of(measure)[0]))
    _, outdated = current_cells(by_split(finished_cells(path_of(folder))))
    return ResultSet("efficiency", tuple(costs), (*efficiency_notes(costs), *map(Note, outdated)))


@checked
def llm_use(folder: FolderPath, system: Systems = None, datasets: Sequence[str] = ()) -> ResultSet[ModelUse]:
    """What language models were asked in making the results of a folder: answers by verdict, tokens, dollars, faults.

    system: of this one alone, or of several; datasets: on these alone, or on the members of groups. Raises FormatError
    where the folder holds no finished cell, UnknownName for a system or dataset that is not there.
    """
    from weir.experiment.llm_answers import model_uses

    cells, damaged = _cells_of(folder, system, datasets)
    return ResultSet("llm_use", tuple(model_uses(cells)), damaged)


@checked
def llm_trace(
    folder: FolderPath,
    query: str | None = None,
    system: Systems = None,
    verdicts: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> ResultSet[QueryTrace]:
    """Every prompt about a query in making the results of a folder, with its answer and what was read from it.

    query: None for all; system, datasets: as `llm_use`; verdicts: only prompts whose answers are such, as "refused".
    From kept answers: nobody is asked. Raises FormatError where the folder holds no finished cell, UnknownName for a
    system, dataset, query or verdict that is not there, BadValue where no system asks a language model, where the
    collection is not here as it was, and where settings or prompts are others now.
    """
    from weir.experiment.llm_answers import query_traces

    cells, damaged = _cells_of(folder, system, datasets)
    return ResultSet("llm_trace", tuple(query_traces(cells, query, verdicts)), damaged)


def _cells_of(
    folder: FolderPath, systems: Systems, datasets: Sequence[str]
) -> tuple[list[ResultCell], tuple[Note, ...]]:
    """The cells of a results folder that are wanted, and notes on what cannot be read or has no scores."""
    from weir.experiment.results import chosen_cells, damaged_records, finished_cells, systems_without_scores

    several = () if systems is None else (systems,) if not isinstance(systems, (list, tuple)) else systems
    root, finished = path_of(folder), finished_cells(path_of(folder))
    cells = chosen_cells(finished, datasets, [str(system) for system in several])
    return cells, tuple(
        map(Note, (*damaged_records(root), *systems_without_scores(root, finished, datasets)))
    )


@checked
def published(
    dataset: str | None = None, model: str | None = None, measure: str | None = None
) -> ResultSet[PublishedScore]:
    """The published scores of a collection, a model, a measure, or all of them.

    model: the whole name or enough of its words. Nothing is returned where nothing is published; raises UnknownName for
    a model that is not there, BadValue for words that fit several.
    """
    from weir.experiment.published import published as scores

    return ResultSet("published", scores(dataset, model, measure))


@checked
def reproduce(
    folder: FolderPath, model: str | None = None, tolerance: int | None = None, nearest: bool = False
) -> ResultSet[PublishedCheck]:
    """The results of a folder beside the published scores that their systems claim to be.

    model: the published model that the systems are taken to be; tolerance: decimals to compare; nearest: also the
    nearest scores of other systems. Raises UnknownName for an unknown model, FormatError for a folder without results.
    """
    from weir.experiment.reproduce import reproduce as checks

    return ResultSet("reproduce", tuple(checks(path_of(folder), model, tolerance, nearest)))


def reproduction_page(
    folder: FolderPath, checks: ResultSet[PublishedCheck], page: Path, model: str | None = None
) -> None:
    """Write a page of the checks of a results folder: two commands for each result, and what came of them.

    page: HTML where its name ends in .html, else Markdown; model: as `reproduce`.
    """
    from weir.core.tables import written
    from weir.experiment.reproductions import TITLE, reproduction_tables
    from weir.files.atomic import write_text

    tables = reproduction_tables(path_of(folder), checks.items, model)
    write_text(page, written(tables, "html" if page.suffix == ".html" else "markdown", title=TITLE) + "\n")


@checked
def results_beside(
    folder: FolderPath,
    published: str,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
) -> ResultSet[BesideScore]:
    """The means of a results folder, and the published scores on its collections, splits and measures beside them.

    published: a publisher, such as "MTEB" or "BEIR paper", or words that names of published models have; other
    arguments as `results`, which raises the same. Raises UnknownName for a publisher that is not there, BadValue where
    nothing of it is published for these results.
    """
    from weir.experiment.beside import beside

    shown = results_shown(folder, measures, datasets, systems)
    return ResultSet("beside", tuple(beside(shown.rows.items, shown.cells, published)), shown.rows.notes())


def birco_of_runs(
    qrels: FolderPath, runs: Sequence[FolderPath]
) -> tuple[ResultSet[BircoScore], tuple[Note, ...]]:
    """(what BIRCO's own program prints for run files, beside Weir's scores, a note on each file that is left out).

    Raises FormatError and the like of reading where no file is left.
    """
    from weir.api.given import run_paths
    from weir.datasets.scoring_rules import judged_by
    from weir.experiment.reproduce import birco_of_files
    from weir.files.frames import qrels_from

    judgments = qrels_from(judged_by(qrels)[0])
    figures, remarks, refused = birco_of_files(judgments, Path(qrels).name, run_paths(runs))
    left_out = tuple(Note(f"left out: {reason}") for reason in refused)
    return ResultSet("official", tuple(figures), (*map(Note, remarks), *left_out)), left_out


def birco_of_folder(
    folder: FolderPath,
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
    collection: Places = None,
    fetch: bool = False,
) -> ResultSet[BircoScore]:
    """What BIRCO's own program prints for the cells of a results folder, beside Weir's scores.

    datasets, systems: as `results`; collection: where collections lie now; fetch: whether they may be brought
    here. Raises as `results`, BadValue where no cell ranks whole pools.
    """
    from weir.experiment.reproduce import birco_of_cells

    cells, damaged = _cells_of(folder, systems, datasets)
    figures, remarks = birco_of_cells(cells, places_of(collection), fetch)
    return ResultSet("official", tuple(figures), (*map(Note, remarks), *damaged))


@checked
def plan(
    datasets: str | Path | Dataset | Iterable[str | Path | Dataset],
    systems: str | Retriever | Iterable[str | Retriever],
    k: int = 1000,
    precise: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    on: str | None = None,
    machine_price: float | None = None,
) -> ResultSet[Planned]:
    """What `benchmark` would take: time, disk, memory and tokens of each system on each dataset, from small probes.

    precise: whether each system is probed by itself on growing samples; else all probes end within a
    minute; progress: is called with what is being done, how much of it, of how much; on: a cluster, as for
    `benchmark`: a note says how long its machines take together, and with machine_price, dollars for an hour of a
    machine, what they cost. Raises UnknownName and BadValue as running the grid would.
    """
    from weir.errors import BadValue
    from weir.experiment.experiment import Experiment, cluster_at
    from weir.experiment.plan import cluster_note, plan_notes, planned

    if machine_price is not None and on is None:
        raise BadValue("the price of a machine is that of a cluster's; name one (--on ray)")
    if machine_price is not None and not 0 <= machine_price < math.inf:
        raise BadValue(f"a machine's price is {machine_price} dollars an hour; expected a number from 0")
    capacity = None if on is None else cluster_at(on).capacity()

    several_datasets = [datasets] if isinstance(datasets, (str, Path, Dataset)) else list(datasets)
    several = tuple(systems) if isinstance(systems, Iterable) and not isinstance(systems, str) else (systems,)
    names = tuple(
        str(d) if not isinstance(d, Dataset) else d.entry.name if d.entry else str(d.layout.root)
        for d in several_datasets
    )
    plans = tuple(planned(Experiment(names, several, k=k), progress or (lambda *_: None), precise))
    notes = plan_notes(plans)
    if capacity is not None:
        notes.append(cluster_note(plans, capacity, machine_price))
    return ResultSet("plan", plans, tuple(notes))


def plan_stages(systems: str | Retriever | Iterable[str | Retriever]) -> ResultSet[Node]:
    """The stages that `benchmark` would make on each collection, each once: `weir plan --only-stages`.

    Raises UnknownName or BadValue for a system that is none.
    """
    from weir.experiment.experiment import Experiment
    from weir.experiment.plan import stage_graph

    several = tuple(systems) if isinstance(systems, Iterable) and not isinstance(systems, str) else (systems,)
    return ResultSet("stages", tuple(stage_graph(Experiment((), several).parsed_systems())))


@checked
def describe(*collections: str | Path | Dataset, split: str | None = None) -> ResultSet[CollectionCard]:
    """Sizes, judgments, duplicates and damage of collections, counted from their files, as `weir data stats`.

    Raises UnknownName, DownloadError or FormatError as `load`.
    """
    from weir.api.collection_notes import collection_notes, judgment_notes
    from weir.datasets.load import load_group

    cards: list[CollectionCard] = []
    notes: list[Note] = []
    for one in collections:
        for dataset in [one] if isinstance(one, Dataset) else load_group(one, split):
            cards.append(dataset.card)
            notes += judgment_notes(dataset, ()) if "judgments" not in dataset.card.lacks else []
            notes += collection_notes(dataset, ())
    return ResultSet("card", tuple(cards), tuple(notes))
