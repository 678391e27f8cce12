"""The figures that a benchmark's own program prints, beside the scores that their names promise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet
from weir.errors import RankingWarning, UnknownName
from weir.io.runs.frames import qrels_from, run_from

if TYPE_CHECKING:
    from weir.stats.birco import BircoScore

__all__ = ["official"]


def official(
    qrels: object, *runs: object, scorer: str = "birco", collection: str | Path | None = None
) -> ResultSet[BircoScore]:
    """The official figures of runs, or of every cell of a results folder: `weir eval --scorer`, `weir results` with it.

    qrels, runs: as `evaluate` takes them; without runs a folder that `weir run` wrote, and collection: whose judgments
    it is scored by, where its own are not here. What the program does not take as it should is a RankingWarning. Raises
    UnknownName for another scorer than "birco", BadValue for rankings of less or more than whole candidate pools, and
    the WeirErrors of reading.
    """
    from weir.experiment.finished import finished_cells
    from weir.experiment.official_figures import birco_of_cells
    from weir.stats.birco import birco_remarks, birco_scores

    if scorer != "birco":
        raise UnknownName("scorer", scorer, ["birco"])
    if runs:
        judgments = qrels_from(qrels)
        dataset = Path(qrels).name if isinstance(qrels, (str, Path)) else ""
        found = [one for run in runs for one in birco_scores(judgments, run_from(run), dataset)]
        said = birco_remarks(judgments)
    else:
        where = None if collection is None else str(collection)
        found, said = birco_of_cells(finished_cells(Path(str(qrels))), where)
    for one in said:
        warnings.warn(RankingWarning(one), stacklevel=2)
    return ResultSet("official", tuple(found))
