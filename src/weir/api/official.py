"""The figures that a benchmark's own program prints, beside the scores that their names promise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning, UnknownName, WeirError
from weir.files.frames import qrels_from, run_from

if TYPE_CHECKING:
    from weir.stats.birco import BircoScore


def official_scores(
    qrels: object, *runs: object, scorer: str = "birco", collection: str | Path | None = None
) -> ResultSet[BircoScore]:
    """The official figures of runs, or of every cell of a results folder: `weir eval --scorer`, `weir results` with it.

    qrels, runs: as `evaluate` takes them; without runs a folder that `weir run` wrote, and collection: whose judgments
    it is scored by, where its own are not here. What the program does not take as it should is a RankingWarning, and so
    is one of several runs that cannot be scored, which is left out. Raises UnknownName for another scorer than "birco",
    BadValue for rankings of less or more than whole candidate pools, and the WeirErrors of reading.
    """
    from weir.experiment.reproduce import birco_of_cells
    from weir.experiment.results import finished_cells
    from weir.stats.birco import BircoScore, birco_remarks, birco_scores

    if scorer != "birco":
        raise UnknownName("scorer", scorer, ["birco"])
    if runs:
        judgments, scores, refused = qrels_from(qrels), list[BircoScore](), list[WeirError]()
        dataset = Path(qrels).name if isinstance(qrels, (str, Path)) else ""
        for run in runs:
            try:
                scores += birco_scores(judgments, run_from(run), dataset)
            except (BadRanking, BadValue, FormatError) as error:
                refused.append(error)
        if refused and not scores:
            raise refused[0]
        remarks = [*(f"left out: {error}" for error in refused), *birco_remarks(judgments)]
    else:
        where = None if collection is None else str(collection)
        scores, remarks = birco_of_cells(finished_cells(Path(str(qrels))), where)
    for one in remarks:
        warnings.warn(RankingWarning(one), stacklevel=2)
    return ResultSet("official", tuple(scores))
