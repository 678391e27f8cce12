"""The gate of a change and the baselines it is held against."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.comparisons import Collection, FolderPath, Wanted
from weir.api.evaluation import conventions_of, evaluate, judgments_from
from weir.api.result_set import ResultSet
from weir.core.scores import JudgedScores, Scores, SystemScores, judgment_marks
from weir.datasets.scoring_rules import ScoringRules
from weir.errors import BadValue
from weir.files.frames import refuse_mismatched
from weir.files.score_files import is_baseline, read_baseline
from weir.measures import Measure, measures_of, parse_measure
from weir.measures.evaluate import DEFAULT, Conventions

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.stats.gate import Gate


MAX_DROP = 0.01
NAME = "the judged queries"


def gate(
    first: object,
    second: object,
    third: object = None,
    measures: Wanted = (),
    *,
    max_drop: float | Mapping[str, float] = MAX_DROP,
    confidence: float = 0.95,
    interval: str = "t",
    by: object = None,
    common: bool = False,
    fetch: bool = False,
    conventions: Conventions | str | None = None,
    collection: Collection = None,
    systems: Sequence[str] = (),
) -> ResultSet[Gate]:
    """Whether a candidate may have become worse than allowed: `assert weir.gate(qrels, old, new)` stops a change.

    gate(qrels, baseline, candidate) of rankings as `evaluate` takes them, where Scores or a saved baseline may stand
    for one; gate(baseline, candidate) of results folders and baselines that `save_baseline` wrote. measures: by default
    those of a saved baseline, else nDCG@10; max_drop: one for all or {measure: drop}, 0.01 for those it does not name;
    interval: t, percentile, bca or studentised; by: groups of queries as `Scores.by` takes them, each of which can fail
    the gate too; common: compare on the queries that both have with the same judgments; fetch: whether the
    collections that records of results name may be brought here, else nothing is asked of the network; collection: of
    rankings, whose rules hold, as in `evaluate`, and whose columns `by` may name; systems: of results folders, these
    alone. A measure passes where the one-sided
    lower bound of candidate minus baseline is at least minus its drop with that confidence; it fails where the mean
    dropped by more and the drop is certain; else it is undecided. The result is true where all of it passes.
    Raises BadValue for a negative drop, a confidence outside 0.5..1, fewer than two queries and sides of different
    judgments, UnknownName for another interval, and the WeirErrors of the parts.
    """
    from weir.experiment.comparing import collections_of, gate_cases, gate_inputs
    from weir.stats.gate import GateRules, gates

    allowed = GateRules(*_drops(max_drop), confidence, interval)
    requested = measures_of(measures) if isinstance(measures, (str, Measure)) or measures else ()
    inputs = [one for one in (first, second, third) if one is not None]
    paths = [Path(one) for one in inputs if isinstance(one, (str, os.PathLike))]
    grounds: dict[str, Dataset] = {}
    if len(paths) == len(inputs):
        chosen = None if conventions is None else conventions_of(conventions)
        baseline, candidate, names = gate_inputs(paths, tuple(requested), chosen, systems, collection, fetch)
        grounds = collections_of(paths, collection, fetch) if by is not None else {}
    else:
        scores = _scores_of_side(second) or _scores_of_side(third)
        requested = requested or measures_of(scores.measures if scores else "nDCG@10")
        usual = conventions or (scores.conventions if scores else DEFAULT)
        rules = ScoringRules.of(collection, conventions_of(usual))
        baseline, candidate = ([one] for one in _sides(first, (second, third), requested, rules))
        names = list(map(str, requested))
        grounds = {} if rules.dataset is None else {"": rules.dataset}
    pairs = gate_cases((baseline, candidate), names, by, common, grounds)
    return ResultSet("gate", tuple(gates(pairs.cases, allowed)), pairs.notes)


def save_baseline(
    path: FolderPath,
    results: object,
    run: object = None,
    measures: Wanted = "nDCG@10",
    conventions: Conventions | str = DEFAULT,
    collection: Collection = None,
    systems: Sequence[str] = (),
    fetch: bool = False,
) -> SystemScores:
    """Write the scores of a system by query as a baseline to commit, and return them: `weir gate --save`.

    results, run: judgments and a ranking as `evaluate` takes them, or the path of a results folder with one system;
    conventions, collection: of a ranking, as in `evaluate`; systems: one of a folder with several; fetch: as `gate`.
    Raises BadValue for a folder with several systems or
    whose judgments are not here, StoreError, and the WeirErrors of the parts.
    """
    from weir.experiment.comparing import system_of
    from weir.files.score_files import write_baseline

    requested = measures_of(measures)
    how = conventions_of(conventions)
    paths = [Path(one) for one in (results, run) if isinstance(one, (str, os.PathLike))]
    if run is None and not paths:
        raise BadValue(
            f"found {type(results).__name__} alone; expected judgments and a run, or a results folder"
        )
    if run is None or (len(paths) == 2 and not is_baseline(paths[1])):
        system = system_of(paths, requested, how, systems, collection, fetch)
    else:
        system = _system(results, run, requested, ScoringRules.of(collection, how))
    write_baseline(system, Path(path))
    return system


def _drops(max_drop: float | Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The drop accepted of measures that are not named, and those of others by name."""
    if isinstance(max_drop, Mapping):
        return MAX_DROP, {str(parse_measure(str(measure))): drop for measure, drop in max_drop.items()}
    return max_drop, {}


def _scores_of_side(side: object) -> Scores | None:
    """The scores that a side holds already, of its first dataset."""
    if isinstance(side, Scores):
        return side
    if isinstance(side, (str, os.PathLike)) and is_baseline(Path(side)):
        return next(iter(read_baseline(Path(side)).datasets.values())).scores
    return None


def _sides(
    qrels: object, pair: tuple[object, object], measures: tuple[Measure, ...], rules: ScoringRules
) -> list[SystemScores]:
    """Baseline and candidate from values; Scores that stand for both are taken to be of the same judgments."""
    if all(isinstance(one, Scores) for one in pair):
        scores = [one for one in pair if isinstance(one, Scores)]
        return [SystemScores("", {NAME: JudgedScores(one, judgments="as given")}) for one in scores]
    return [_system(qrels, one, measures, rules) for one in pair]


def _system(qrels: object, run: object, measures: tuple[Measure, ...], rules: ScoringRules) -> SystemScores:
    """A ranking as `evaluate` takes it, scored; or its Scores, or a baseline that was saved."""
    if isinstance(run, (str, os.PathLike)) and is_baseline(Path(run)):
        return read_baseline(Path(run))
    judgments = rules.counted(judgments_from(qrels, measures))
    if not isinstance(run, Scores):
        refuse_mismatched(qrels, run)
        run = evaluate(judgments, run, measures, rules.conventions, collection=rules.dataset)
    name = Path(qrels).name if isinstance(qrels, (str, os.PathLike)) else NAME
    return SystemScores("candidate", {name: JudgedScores(run, judgment_marks(judgments))})
