"""Read, verify and check results folders, plan runs, and count collections."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from weir import experiment
from weir.api.auditing import Places, places_of
from weir.api.collection_notes import (
    collection_notes,
    construction_notes_of,
    dataset_notes,
    judgment_notes,
    language_notes,
)
from weir.api.given import all_rankings, run_paths
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, labels_of, row_tables
from weir.argument_types import checked
from weir.core.scores import GroupedScores, Note, Row, Scores
from weir.core.tables import tables_as_text
from weir.datasets.card import CARDS, JUDGMENTS_CARDS, CollectionCard, JudgmentsCard, judgments_card
from weir.datasets.fetch import fetch_missing
from weir.datasets.load import Dataset, load_group, query_groups
from weir.datasets.names import catalogue_name
from weir.datasets.scoring_rules import judged_by
from weir.errors import (
    BadRanking,
    BadValue,
    FormatError,
    UnknownName,
    WeirError,
    warn_of_ranking,
)
from weir.experiment.comparing import MOST_COMPARED, compare_grid, comparison_cost, scores_of_cells
from weir.experiment.factors import twin_notes, twin_systems
from weir.experiment.results import (
    ResultCell,
    by_split,
    cell_notes,
    check_scored,
    chosen_cells,
    collection_places,
    current_cells,
    damaged_records,
    each_result_once,
    finished_and_lacking,
    finished_cells,
    given_objects,
    keep_order,
    largest_k,
    missing_results,
    mixed_provenance,
    provenance_of,
    rows_with_groups,
    scored_measures,
    stages_of_object,
    system_titles,
    with_collections,
)
from weir.files.atomic import write_text
from weir.files.frames import qrels_from, run_from
from weir.files.paths import path_of
from weir.files.runs import read_qrels
from weir.measures import Measure, measures_of
from weir.stats.birco import BIRCO_SCORES, BircoScore, birco_remarks, birco_scores
from weir.stats.compare import Comparison
from weir.stats.score_rows import rows_by_group

if TYPE_CHECKING:
    from weir.experiment.beside import BesideScore
    from weir.experiment.efficiency import Efficiency
    from weir.experiment.experiment import Experiment
    from weir.experiment.plan import Node, Planned
    from weir.experiment.published import PublishedScore
    from weir.experiment.reproduce import PublishedCheck
    from weir.experiment.results import Provenance
    from weir.experiment.verify import Verdict
    from weir.systems import Retriever


FolderPath: TypeAlias = "str | os.PathLike[str]"
Systems: TypeAlias = "str | Retriever | Sequence[str | Retriever] | None"
ShownRows: TypeAlias = "tuple[list[ResultCell], ResultSet[Row]]"
"""The results of a folder that are shown, and their means."""


@checked
def results(
    folder: FolderPath,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
    by: object = None,
    collection: Places = None,
    fetch: bool = False,
    labels: Sequence[str] = (),
) -> ResultSet[Row]:
    """Return a mean score for every dataset, system and measure of a results folder, complete groups last.

    measures: only these measures, by default all.
    datasets: only these datasets, by default all. A group means its members, NAME:SPLIT one split.
    systems: only these systems, by default all.
    by: groups of queries. Their means, the macro mean and the mean of all queries are the rows.
    collection: the present path of a collection with the column `by`, by its name.
    fetch: download the collections that records of results name.
    labels: names to show for systems, such as "tuned=bm25(k1=1.2)".

    Omits scores by outdated judgments, with a note. Raises FormatError for a folder without a finished result,
    UnknownName for an unknown measure, dataset or system, BadValue for unknown groups of queries.
    """
    cells, damaged = cells_of(folder, systems, datasets)
    names = _measures_among(cells, measures)
    titles = labels_of(labels, [cell.label for cell in cells])
    if by is None:
        return _rows_by_name(cells, names, damaged, titles)[1]
    rows, notes = list[Row](), list[Note]()
    cells, outdated = current_cells(cells)
    with_column, left_out = with_collections(cells, by, places_of(collection), fetch)
    datasets_of = {cell.folder: dataset for cell, dataset in with_column}
    for cell in _titled([cell for cell, _ in with_column], titles):
        scores = cell.values()
        grouped = GroupedScores.of(scores, query_groups(by, scores.queries, datasets_of[cell.folder]))
        of_cell = [replace(row, title=cell.title) for row in rows_by_group(grouped, cell.dataset, cell.label)]
        notes += grouped.notes()
        rows += [row for row in of_cell if not names or row.measure in names]
    notes += [*map(Note, (*outdated, *left_out)), *damaged]
    notes += map(Note, mixed_provenance([cell for cell, _ in with_column]))
    return ResultSet(ROWS, tuple(rows), tuple(notes))


def results_by_query(
    folder: FolderPath,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
) -> tuple[dict[tuple[str, str], Scores], tuple[Note, ...]]:
    """Return ({(dataset, system): scores by query}, notes) of a results folder.

    Arguments and errors as for `results`.
    """
    cells, damaged = cells_of(folder, systems, datasets)
    cells, rows = _rows_by_name(cells, _measures_among(cells, measures), damaged)
    scores: dict[tuple[str, str], Scores] = {}
    for cell in cells:
        names = [row.measure for row in rows if (row.dataset, row.system) == (cell.dataset, cell.label)]
        values = cell.values()
        columns = np.array([values.of(name) for name in names])
        scores[cell.dataset, cell.label] = replace(values, measures=tuple(names), values=columns)
    return scores, rows.notes()


def _measures_among(
    cells: Sequence[ResultCell], measures: Measure | str | Iterable[Measure | str]
) -> list[str]:
    names = [str(measure) for measure in measures_of(measures)] if measures else []
    check_scored(names, scored_measures(cells))
    return names


def _rows_by_name(
    cells: Sequence[ResultCell],
    names: Sequence[str],
    damaged: Iterable[Note],
    titles: Mapping[str, str] | None = None,
) -> ShownRows:
    measures = names or scored_measures(cells)
    return shown_rows(cells, names, [*damaged, *construction_notes_of(cells, measures)], titles)


def shown_rows(
    cells: Sequence[ResultCell],
    measures: Sequence[str] = (),
    more: Iterable[Note] = (),
    titles: Mapping[str, str] | None = None,
) -> ShownRows:
    """Return (judged results with current scores, their means with notes).

    measures: in this order, if there, by default all.
    more: notes to put last.
    titles: {system: name to show}.

    Outdated results become notes; raises BadValue if all are.
    """
    scored = [cell for cell in cells if cell.rows]  # nothing is shown of what nobody judged
    named = all(cell.unit for cell in scored)  # as among the cells of which these were chosen
    current, outdated = current_cells(scored if named else by_split(scored))
    if outdated and not current:
        raise BadValue("; ".join(outdated))
    current = _titled(current, titles or {})
    rows = rows_with_groups(current)
    if measures:
        rows = [row for measure in measures for row in rows if row.measure == measure]
    notes = list(cell_notes(current, measures))
    if len(current) > 1:
        notes += map(Note, twin_notes(twin_systems(current), system_titles(current)))
    notes += [*map(Note, outdated), *more]
    measured = list(dict.fromkeys(row.measure for row in rows))
    if costly := comparison_cost(current, measured) > MOST_COMPARED:
        notes.insert(0, Note("tie groups are left out, as they take long here: weir compare shows them"))
    groups = None if costly else partial(_tie_groups, current, measured)
    tables = partial(row_tables, rows, groups) if rows else None
    return current, ResultSet(ROWS, tuple(rows), tuple(notes), maker=tables)


def _titled(cells: Sequence[ResultCell], titles: Mapping[str, str]) -> list[ResultCell]:
    return [replace(cell, title=titles.get(cell.label, cell.title)) for cell in cells]


def _tie_groups(cells: Sequence[ResultCell], measures: Sequence[str]) -> Sequence[Comparison]:
    current = largest_k(cells)[0]
    several = len({cell.dataset for cell in current}) < len(current)
    return compare_grid(scores_of_cells(current), measures) if several else ()


def run_grid(
    grid: Experiment,
    folder: FolderPath,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    share: str | None = None,
    on: str | None = None,
    fetch: bool = False,
    labels: Sequence[str] | Mapping[str, str] = (),
) -> ShownRows:
    """Run an experiment into a results folder; return (its results, their means with notes).

    grid: the experiment.
    progress: receives (stage, done, total).
    share: work as one of N processes on one folder, as "I/N": begin with the I-th part, then help the others.
        Finished results are shown.
    on: a cluster to run on: ray (RAY_ADDRESS, else one on this machine), or ray://HOST:10001.
    fetch: download collections of the catalogue that are not on this machine.
    labels: names to show for systems, such as "tuned=bm25(k1=1.2)". In Python also {label: system}.

    The same call continues after an interruption. Raises the WeirErrors of collections and systems.
    """
    if fetch:
        fetch_missing([name for name in grid.datasets if isinstance(name, str)], progress)
    part = None if share is None else experiment.experiment.Share.parse(share)
    titles = labels_of(labels, [str(system) for system in grid.parsed_systems()])
    begun = datetime.now(UTC).isoformat(timespec="milliseconds")  # as in records
    loaded = grid.loaded_datasets(progress)
    here = grid if on is not None else replace(grid, datasets=tuple(loaded))  # a cluster loads them by name
    cells = here.complete(path_of(folder), progress, part, on)
    if titles:
        keep_order(path_of(folder), labels=titles)
    measures = [str(measure) for measure in measures_of(grid.measures)]
    called = zip(loaded, experiment.experiment.split_names(loaded), strict=True)
    loaded = [one if one.name == name else replace(one, name=name) for one, name in called]  # as tables do
    judged = [one for one in loaded if not one.unjudged]
    systems = grid.parsed_systems()
    notes = dataset_notes(judged, measures, grid.k, grid.drop_self or None) + language_notes(loaded, systems)
    notes += _kept_notes(cells, begun)
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
    cells = each_result_once(cells)
    with suppress(WeirError):  # damaged results of others are no matter of these
        notes += _other_names(cells, finished_cells(path_of(folder), unjudged=True))
    return shown_rows(cells, (), notes, titles)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {len(names) - 2} others"


def _kept_notes(cells: Sequence[ResultCell], begun: str) -> Iterator[Note]:
    # That an object is the one that made them is the user's word, by its version.
    systems_of: dict[tuple[str, str, str], dict[str, None]] = {}
    since: dict[tuple[str, str, str], str] = {}
    for cell in cells:
        for one in given_objects(cell):
            made = [] if one.version is None else stages_of_object(cell, one)
            if kept := [record for record in made if str(record.made.get("when")) < begun]:
                stages = dict.fromkeys("rankings" if record.kind == "run" else record.kind for record in kept)
                key = one.name, str(one.version), " and ".join(stages)
                systems_of.setdefault(key, {})[cell.called] = None
                since[key] = max(since.get(key, ""), experiment.reproductions.when(kept[-1].made))
    for (name, version, parts), systems in systems_of.items():
        kept_from = f"{parts} of {_few(list(systems))} as kept from {since[name, version, parts]}"
        yield Note(
            f"{name}: {kept_from}; the object was not asked for them, as its version is still {version}"
        )


def _other_names(cells: Sequence[ResultCell], whole: Sequence[ResultCell]) -> Iterator[Note]:
    # Such as of a split, if another one was run into the folder before.
    if len(whole) > len(cells):
        named = {(cell.folder, cell.split): cell.dataset for cell in by_split(whole)}
        names = {cell.dataset: named.get((cell.folder, cell.split), cell.dataset) for cell in cells}
        said = ", ".join(f"{name} is {other}" for name, other in names.items() if name != other)
        if said:
            yield Note(f"among all results of the folder {said}, as weir results calls it")


def provenance(
    folder: FolderPath, datasets: Sequence[str] = (), systems: Sequence[str | Retriever] = ()
) -> ResultSet[Provenance]:
    """Return the records of the stages (index, rankings, scores) that gave each result of a folder.

    datasets, systems: only these, by default all.

    Raises FormatError without a result, UnknownName for an absent dataset or system.
    """
    cells, damaged = cells_of(folder, systems, datasets)
    notes = (*damaged, *map(Note, mixed_provenance(cells)))
    return ResultSet(experiment.results.PROVENANCES, tuple(map(provenance_of, cells)), notes)


@checked
def verify(
    folder: FolderPath,
    fetch: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    collection: Places = None,
) -> ResultSet[Verdict]:
    """Return a verdict for each stage of a results folder, after checking every file and score; true if all is sound.

    progress: receives (folder, number checked, number in all).
    fetch: download the collections that records name.
    collection: the present path of a collection, by its name, if it is not where the records say.

    Raises FormatError for a folder without results, UnknownName for a collection that it does not have.
    """
    root, given = path_of(folder), places_of(collection)
    found = collection_places(finished_cells(root, unjudged=True), given) if given else {}
    places = {name: place for name, place in found.items() if isinstance(place, (str, Path))}
    verdicts = experiment.verify.verified(root, progress, fetch, places)
    return ResultSet(experiment.verify.VERDICTS, tuple(verdicts), tuple(map(Note, missing_results(root))))


@checked
def efficiency(folder: FolderPath, measure: Measure | str | None = None) -> ResultSet[Efficiency]:
    """Return time, memory and disk use of each system on each collection of a results folder, and its quality.

    measure: the quality shown, by default nDCG@10, else the first measure.

    Raises FormatError without a finished result, UnknownName for an unknown measure.
    """
    costs = experiment.efficiency.efficiency(
        path_of(folder), None if measure is None else str(measures_of(measure)[0])
    )
    current, outdated = current_cells(by_split(finished_cells(path_of(folder))))
    about_scores = cell_notes(current, [one.quality.measure for one in costs])
    return ResultSet(
        experiment.efficiency.EFFICIENCIES,
        tuple(costs),
        (
            *experiment.efficiency.efficiency_notes(costs),
            *map(Note, [*outdated, *missing_results(path_of(folder))]),
            *about_scores,
        ),
    )


def cells_of(
    folder: FolderPath, systems: Systems, datasets: Sequence[str]
) -> tuple[list[ResultCell], tuple[Note, ...]]:
    """Return (results of a folder, notes on damaged or unscored ones).

    systems, datasets: only these; None or () for all.

    Raises FormatError without a result, UnknownName for an absent system or dataset.
    """
    several = () if systems is None else (systems,) if not isinstance(systems, (list, tuple)) else systems
    names = [str(system) for system in several]
    finished, lacking = finished_and_lacking(path_of(folder), datasets, names)
    cells = chosen_cells(finished, datasets, names)
    return cells, tuple(map(Note, dict.fromkeys((*damaged_records(path_of(folder)), *lacking))))


@checked
def published(
    dataset: str | Path | None = None, model: str | None = None, measure: str | None = None
) -> ResultSet[PublishedScore]:
    """Return the published scores of a collection, model and measure, by default all; with a note if there are none, or
    if the collection is published by another name.

    dataset: a name or reference, or the path of a collection, which is known by its judgments.
    model: the whole name, or words that only its name has.

    Raises UnknownName for an unknown model, BadValue for ambiguous words, FormatError for a path without a
    collection.
    """
    scores = experiment.published.published(dataset, model, measure)
    asked = ", ".join(str(one) for one in (model, measure, dataset) if one)
    none = Note(f"nothing is published of {asked}; weir.published() lists all", decisive=True)
    known = experiment.published.known_as(str(dataset), scores[0].dataset) if dataset and scores else ""
    notes = () if scores else (none,)
    return ResultSet(experiment.published.PUBLISHED_SCORES, scores, (Note(known),) if known else notes)


@checked
def reproduce(
    folder: FolderPath,
    model: str | None = None,
    tolerance: int | None = None,
    nearest: bool = False,
    systems: Sequence[str] = (),
    datasets: Sequence[str] = (),
    published_as: Sequence[str] = (),
    collection: Places = None,
) -> ResultSet[PublishedCheck]:
    """Return comparisons of a folder's means with the published scores that they should reproduce, or why not.

    model: compare the only system with this published model, such as "baseline bm25s".
    tolerance: number of decimals to compare, if more are printed.
    nearest: add the published scores of other systems that are nearest.
    systems: only these systems, by default all.
    datasets: only these datasets, by default all. A group means its members.
    published_as: systems and collections by their published names, such as "mine=all-MiniLM-L6-v2".
    collection: the present path of a collection, by its name, if it is not where the records say.

    The result is true if no score is off or left open. Raises UnknownName for an unknown model, system, dataset or
    collection, BadValue for a model and several systems, or a collection of other judgments, FormatError for a folder
    without results.
    """
    return ResultSet(
        experiment.reproduce.CHECKS,
        tuple(
            experiment.reproduce.reproduce(
                path_of(folder),
                model,
                tolerance,
                nearest,
                systems,
                datasets,
                published_as,
                places_of(collection),
            )
        ),
    )


def reproduction_page(
    folder: FolderPath,
    checks: ResultSet[PublishedCheck],
    page: Path,
    model: str | None = None,
    published_as: Sequence[str] = (),
) -> None:
    """Write a page on how well a results folder reproduces published scores, with commands.

    checks: from `reproduce`, with the same `model` and `published_as`.
    page: a path; .html for HTML, else Markdown.
    """
    tables = experiment.reproductions.reproduction_tables(path_of(folder), checks.items, model, published_as)
    form = "html" if page.suffix == ".html" else "markdown"
    write_text(page, tables_as_text(tables, form, title=experiment.reproductions.TITLE) + "\n")


@checked
def results_beside(
    folder: FolderPath,
    published: str | Path,
    measures: Measure | str | Iterable[Measure | str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
    published_as: Sequence[str] = (),
) -> ResultSet[BesideScore]:
    """Return the means of a results folder beside published scores on the same collections, splits and measures.

    published: a publisher, such as "MTEB" or "BEIR paper", words in names of published models, or a file or folder of
        MTEB's results ("mteb/SciFact.json", "./mteb").
    measures, datasets, systems: only these, by default all.
    published_as: systems, collections, and models of MTEB's results by their published names, such as
        "mine=all-MiniLM-L6-v2" or "shop=scifact"; the scores of such models are laid beside too.

    Raises UnknownName for an unknown publisher or name, BadValue if it published nothing for these results, and the
    errors of `results`.
    """
    cells, damaged = cells_of(folder, systems, datasets)
    cells, rows = _rows_by_name(cells, _measures_among(cells, measures), damaged)
    scores = experiment.beside.beside(rows.items, cells, published, published_as)
    return ResultSet(experiment.beside.BESIDE_SCORES, tuple(scores), rows.notes())


@checked
def official_scores(
    qrels: object, *runs: object, scorer: str = "birco", collection: str | Path | None = None
) -> ResultSet[BircoScore]:
    """Return the scores that a benchmark's own program would print for runs, or for all results of a folder.

    qrels, runs: in any form of `evaluate`, or a results folder as `qrels` without runs.
    scorer: only "birco" is known.
    collection: the collection whose judgments score a folder, if its own is not on this machine.

    Warns (RankingWarning) of input that the program reads in another way, and of runs that cannot be scored. Raises
    UnknownName for another scorer, BadValue for rankings of incomplete pools.
    """
    if scorer != "birco":
        raise UnknownName("scorer", scorer, ["birco"])
    if runs:
        dataset = Path(qrels).name if isinstance(qrels, (str, Path)) else ""
        given, about = judged_by(qrels, collection)
        judgments, scores, refused = qrels_from(given), list[BircoScore](), list[WeirError]()
        for run in all_rankings(runs, about):
            try:
                scores += birco_scores(judgments, run_from(run), dataset)
            except (BadRanking, BadValue, FormatError) as error:
                refused.append(error)
        if refused and not scores:
            raise refused[0]
        remarks = [*(f"left out: {error}" for error in refused), *birco_remarks(judgments)]
    else:
        places = () if collection is None else (collection,)
        scores, remarks = experiment.reproduce.birco_of_cells(finished_cells(path_of(str(qrels))), places)
    for one in remarks:
        warn_of_ranking(one)
    return ResultSet(BIRCO_SCORES, tuple(scores))


def birco_of_runs(qrels: FolderPath, runs: Sequence[FolderPath]) -> ResultSet[BircoScore]:
    """Return the scores of run files as BIRCO's own program prints them, with notes on omitted files.

    Raises a file's error if all fail.
    """
    judgments, collection = judged_by(qrels)
    files = run_paths(runs, collection)
    figures, remarks, refused = experiment.reproduce.birco_of_files(
        qrels_from(judgments), Path(qrels).name, files
    )
    left_out = tuple(Note(f"left out: {reason}") for reason in refused)
    return ResultSet(BIRCO_SCORES, tuple(figures), tuple(map(Note, remarks)), left_out)


def birco_of_folder(
    folder: FolderPath,
    datasets: Sequence[str] = (),
    systems: Sequence[str | Retriever] = (),
    collection: Places = None,
    fetch: bool = False,
) -> ResultSet[BircoScore]:
    """Return the scores of a folder's results as BIRCO's own program prints them.

    datasets, systems: only these, by default all.
    collection: present paths, by name.
    fetch: download missing collections.

    Raises BadValue if no result ranks whole pools, and the errors of `results`.
    """
    cells, damaged = cells_of(folder, systems, datasets)
    figures, remarks = experiment.reproduce.birco_of_cells(cells, places_of(collection), fetch)
    return ResultSet(BIRCO_SCORES, tuple(figures), (*map(Note, remarks), *damaged))


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
    """Return estimates, from small probes, of time, disk, memory and tokens that `benchmark` would take for each
    system and collection.

    datasets, systems, k: arguments of `benchmark`.
    precise: probe each system by itself on growing samples, however long that takes; otherwise all probes end within
        a minute.
    progress: receives (stage, done, total).
    on: estimate for a cluster: ray (RAY_ADDRESS, else this machine), or ray://HOST:10001.
    machine_price: dollars for an hour of a machine of the cluster.

    Raises the errors of `benchmark`.
    """
    if machine_price is not None and on is None:
        raise BadValue("the price of a machine is that of a cluster's; name one (`on='ray'`)")
    if machine_price is not None and not 0 <= machine_price < math.inf:
        raise BadValue(f"a machine's price is {machine_price} dollars an hour; expected a number from 0")
    capacity = None if on is None else experiment.experiment.cluster_at(on).capacity()

    several_datasets = [datasets] if isinstance(datasets, (str, Path, Dataset)) else list(datasets)
    several = tuple(systems) if isinstance(systems, Iterable) and not isinstance(systems, str) else (systems,)
    names = tuple(
        str(d) if not isinstance(d, Dataset) else d.entry.name if d.entry else str(d.layout.root)
        for d in several_datasets
    )
    grid = experiment.experiment.Experiment(names, several, k=k)
    plans = tuple(experiment.plan.planned(grid, progress or (lambda *_: None), precise))
    notes = experiment.plan.plan_notes(plans)
    if capacity is not None:
        notes.append(experiment.plan.cluster_note(plans, capacity, machine_price))
    return ResultSet(experiment.plan.PLANS, plans, tuple(notes))


def plan_stages(systems: str | Retriever | Iterable[str | Retriever]) -> ResultSet[Node]:
    """Return the indexes and rankings that `benchmark` would compute on each collection, shared ones once.

    Raises UnknownName or BadValue for an invalid system.
    """
    several = tuple(systems) if isinstance(systems, Iterable) and not isinstance(systems, str) else (systems,)
    grid = experiment.experiment.Experiment((), several)
    return ResultSet(experiment.plan.NODES, tuple(experiment.plan.stage_graph(grid.parsed_systems())))


@checked
def describe(*collections: str | Path | Dataset, split: str | None = None) -> ResultSet[CollectionCard]:
    """Return sizes, judgments, duplicates and damage of each collection, counted from its files.

    split: the split of the judgments; by default the usual one.

    Raises the errors of `load`.
    """
    cards: list[CollectionCard] = []
    notes: list[Note] = []
    for one in collections:
        for dataset in [one] if isinstance(one, Dataset) else load_group(one, split):
            cards.append(dataset.card)
            notes += judgment_notes(dataset, ()) if "judgments" not in dataset.card.lacks else []
            notes += collection_notes(dataset, ())
    return ResultSet(CARDS, tuple(cards), tuple(notes))


def is_judgments(name: str) -> bool:
    """Return True for a file of judgments, False for a missing one and a collection (name, folder, zip, TOML file).

    JSON and YAML are read, as they may be golden sets; any other file is taken for judgments.
    """
    path = path_of(name)
    if (
        catalogue_name(name)
        or not path.is_file()
        or path.suffix.lower() in (".zip", ".toml")
        or path.with_suffix(".toml").is_file()
    ):
        return False
    if path.suffix.lower() not in (".json", ".jsonl", ".yaml", ".yml"):
        return True
    try:
        read_qrels(path)
    except FormatError:
        return False
    return True


def describe_judgments(name: str) -> ResultSet[JudgmentsCard]:
    """Return counts of the judgments in a file; raises FormatError for a missing or other file."""
    path = path_of(name)
    return ResultSet(JUDGMENTS_CARDS, (judgments_card(path.name, read_qrels(path)),))
