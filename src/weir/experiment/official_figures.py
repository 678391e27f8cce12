"""The official figures of BIRCO's program, of files and of the finished cells of a results folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.core.qrels import Qrels
from weir.errors import BadValue
from weir.experiment.finished import Finished, given_or_own
from weir.io.runs.read import read_qrels, read_run
from weir.measures.files import names_of_runs
from weir.stats.birco import BircoScore, birco_remarks, birco_scores

__all__ = ["birco_of_cells", "birco_of_files"]


def birco_of_files(qrels: Path, runs: Sequence[Path]) -> tuple[list[BircoScore], list[str]]:
    """(the figures of each run file, what has to be said of the judgments); raises as `birco_scores` and readers."""
    judgments = read_qrels(qrels)
    found = [
        one
        for name, path in zip(names_of_runs(runs), runs, strict=True)
        for one in birco_scores(judgments, read_run(path), qrels.name, name)
    ]
    return found, birco_remarks(judgments)


def birco_of_cells(
    cells: Sequence[Finished], collection: str | None = None, fetch: bool = False
) -> tuple[list[BircoScore], list[str]]:
    """(the figures of each finished cell, what has to be said of judgments and of cells that were left out).

    collection: whose judgments they are scored by, by default those of each cell, where they are on this machine;
    fetch: as `cell_collection` takes it. A cell that does not rank whole pools is left out. Raises BadValue where that
    leaves none, StoreError for rankings that are not as they were written, and as `load` for the collection.
    """
    found, said = [], []
    judgments: dict[tuple[str, str], Qrels | None] = {}
    for cell in cells:
        about = cell.dataset, cell.split
        if about not in judgments:
            dataset = given_or_own(cell, collection, fetch)
            judgments[about] = None if dataset is None else dataset.qrels
        qrels = judgments[about]
        try:
            if qrels is None:
                raise BadValue(
                    f"{cell.label}: its judgments are not on this machine as they were used; name their collection"
                )
            cell.ranked.verify(cell.folder)
            found += birco_scores(qrels, read_run(cell.run), cell.dataset, cell.label)
        except BadValue as error:
            said.append(f"{cell.dataset}: {error}")
    if not found:
        raise BadValue(said[0] if said else "no cell to score")
    remarks = {name: birco_remarks(qrels) for (name, _), qrels in judgments.items() if qrels is not None}
    return found, [*said, *(f"{name}: {one}" for name, several in remarks.items() for one in several)]
