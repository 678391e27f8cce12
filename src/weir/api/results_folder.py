"""What stands in a results folder or a collection, whether it is sound, and what it cost; and plans."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from weir.api.result_set import ResultSet
from weir.core.scores import Note
from weir.datasets.load import Dataset

if TYPE_CHECKING:
    from weir.core.scores import Row
    from weir.datasets.card import CollectionCard
    from weir.experiment.efficiency import Efficiency
    from weir.experiment.llm_answers import ModelUse, QueryTrace
    from weir.experiment.plan import Planned
    from weir.experiment.reproduce import PublishedCheck
    from weir.experiment.results import ResultCell
    from weir.experiment.verify import Verdict
    from weir.measures import Measure
    from weir.systems import Retriever


FolderPath: TypeAlias = "str | os.PathLike[str]"
Systems: TypeAlias = "str | Retriever | Sequence[str | Retriever] | None"


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
    from weir.errors import UnknownName
    from weir.experiment.results import cell_notes, rows_with_groups
    from weir.measures import measures_of

    cells, damaged = _cells_of(folder, systems, datasets)
    rows = rows_with_groups(cells)
    wanted = [str(measure) for measure in measures_of(measures)] if measures else []
    known = {row.measure for row in rows}
    for measure in wanted:
        if measure not in known:
            raise UnknownName("measure among these results", measure, known)
    rows = [row for measure in wanted for row in rows if row.measure == measure] if wanted else rows
    return ResultSet("results", tuple(rows), (*cell_notes(cells), *damaged))


def verify(folder: FolderPath, fetch: bool = False) -> ResultSet[Verdict]:
    """Whether a results folder is what its records say: true where every file and every score is, and all was checked.

    fetch: whether the collections that its records name may be brought here; else nothing is asked of the network and
    nothing is written, as the folder may be somebody else's. Raises FormatError for a folder without results.
    """
    from weir.experiment.verify import verified

    return ResultSet("verify", tuple(verified(Path(folder), fetch=fetch)))


def efficiency(folder: FolderPath, measure: Measure | str | None = None) -> ResultSet[Efficiency]:
    """What each system of a results folder costs, next to its quality by a measure, by default the first.

    Raises FormatError where the folder holds no finished cell, UnknownName for a measure that is not there.
    """
    from weir.experiment.efficiency import efficiency as costs_of
    from weir.experiment.efficiency import efficiency_notes
    from weir.measures import measures_of

    costs = tuple(costs_of(Path(folder), None if measure is None else str(measures_of(measure)[0])))
    return ResultSet("efficiency", costs, tuple(efficiency_notes(costs)))


def llm_use(folder: FolderPath, system: Systems = None, datasets: Sequence[str] = ()) -> ResultSet[ModelUse]:
    """What language models were asked in making the results of a folder: answers by verdict, tokens, dollars, faults.

    system: of this one alone, or of several; datasets: on these alone, or on the members of groups. Raises FormatError
    where the folder holds no finished cell, UnknownName for a system or dataset that is not there.
    """
    from weir.experiment.llm_answers import model_uses

    cells, damaged = _cells_of(folder, system, datasets)
    return ResultSet("llm_use", tuple(model_uses(cells)), damaged)


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
    """The cells of a results folder that are wanted, and a note for each record that cannot be read."""
    from weir.experiment.results import chosen_cells, damaged_records, finished_cells

    several = () if systems is None else (systems,) if not isinstance(systems, (list, tuple)) else systems
    cells = chosen_cells(finished_cells(Path(folder)), datasets, [str(system) for system in several])
    return cells, tuple(map(Note, damaged_records(Path(folder))))


def reproduce(
    folder: FolderPath, model: str | None = None, tolerance: int | None = None, nearest: bool = False
) -> ResultSet[PublishedCheck]:
    """The results of a folder beside the published scores that their systems claim to be.

    model: the published model that the systems are taken to be; tolerance: decimals to compare; nearest: also the
    nearest scores of other systems. Raises UnknownName for an unknown model, FormatError for a folder without results.
    """
    from weir.experiment.reproduce import reproduce as checks

    return ResultSet("reproduce", tuple(checks(Path(folder), model, tolerance, nearest)))


def plan(
    datasets: str | Dataset | Iterable[str | Dataset],
    systems: str | Retriever | Iterable[str | Retriever],
    k: int = 1000,
    precise: bool = False,
) -> ResultSet[Planned]:
    """What `benchmark` would take: time, disk, memory and tokens of each system on each dataset, from small probes.

    precise: whether each system is probed by itself on growing samples; else all probes end within a
    minute. Raises UnknownName and BadValue as running the grid would.
    """
    from weir.experiment.experiment import Experiment
    from weir.experiment.plan import plan_notes, planned

    named = [datasets] if isinstance(datasets, (str, Dataset)) else list(datasets)
    several = tuple(systems) if isinstance(systems, Iterable) and not isinstance(systems, str) else (systems,)
    names = tuple(d if isinstance(d, str) else d.entry.name if d.entry else str(d.layout.root) for d in named)
    plans = tuple(planned(Experiment(names, several, k=k), lambda stage, done, total: None, precise))
    return ResultSet("plan", plans, tuple(plan_notes(plans)))


def describe(*collections: str | Path | Dataset, split: str | None = None) -> ResultSet[CollectionCard]:
    """Sizes, judgments, duplicates and damage of collections, counted from their files, as `weir data stats`.

    Raises UnknownName, DownloadError or FormatError as `load`.
    """
    from weir.datasets.load import load_group

    found = [
        d for one in collections for d in ([one] if isinstance(one, Dataset) else load_group(one, split))
    ]
    return ResultSet("card", tuple(dataset.card for dataset in found))
