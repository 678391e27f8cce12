"""Two runs or two cells, query by query, with the texts of the collection where they are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.core.ids import Ids
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.errors import BadValue
from weir.experiment.finished import Finished, dataset_of, open_cell
from weir.io.runs.formats import format_of
from weir.io.runs.read import read_qrels, read_run, read_run_against, run_name
from weir.measures import Measure, parse_measure, scores_of
from weir.measures.conventions import Conventions
from weir.measures.files import distinct_names
from weir.stats.query_differences import Moves, moved, with_documents, with_texts
from weir.stats.score_notes import noted

__all__ = ["diff_cells", "diff_files", "diff_runs"]


def diff_files(
    qrels: Path, paths: tuple[Path, Path], measure: str, rules: ScoringRules = NO_COLLECTION, top: int = 10
) -> Moves:
    """Which queries one run file wins and loses against another.

    rules: conventions and the collection, whose texts are shown. Raises the WeirErrors of reading and measuring;
    BadValue for a run that answers none of the judged queries.
    """
    first, second = paths
    names = _names((run_name(first), run_name(second)), paths)
    judgments = read_qrels(qrels)
    runs = [
        read_run(path, rules.conventions.order) if rules.remove_documents else _run(path, judgments)
        for path in paths
    ]
    files = dict(zip(names, paths, strict=True))
    return _moves(
        judgments,
        dict(zip(names, runs, strict=True)),
        measure,
        rules,
        top,
        lambda name, other: other.judge(files[name], other.counted(judgments)),
    )


def diff_runs(
    qrels: Qrels, runs: Mapping[str, Run], measure: str, rules: ScoringRules = NO_COLLECTION, top: int = 10
) -> Moves:
    """As `diff_files`, of two runs by name."""
    return _moves(
        qrels,
        runs,
        measure,
        rules,
        top,
        lambda name, other: Judged.of(other.ranked(runs[name]), other.counted(qrels)),
    )


def _moves(
    qrels: Qrels,
    runs: Mapping[str, Run],
    measure: str,
    rules: ScoringRules,
    top: int,
    join: Callable[[str, ScoringRules], Judged],
) -> Moves:
    """The moves between two runs by name; join: joins the run of a name with the judgments by other rules."""
    wanted, judgments = parse_measure(measure), rules.counted(qrels)

    def scored(name: str, run: Run) -> Scores:
        def rescored(conventions: Conventions) -> Scores:
            return scores_of(join(name, replace(rules, conventions=conventions)), (wanted,), conventions)

        judged = Judged.of(run, judgments)
        scores = scores_of(judged, (wanted,), rules.conventions)
        return noted(scores, judged, judgments, (wanted,), rescored)

    ranked = {name: rules.ranked(run) for name, run in runs.items()}
    one, other = (scored(name, run) for name, run in ranked.items())
    first, second = runs
    moves = moved(str(wanted), (first, second), one, other, top)
    return _texted(with_documents(moves, judgments, *ranked.values()), rules.dataset)


def diff_cells(
    first: Path,
    second: Path,
    measure: str | None = None,
    collection: str | Path | Dataset | None = None,
    top: int = 10,
) -> Moves:
    """Which queries one cell of a results folder wins and loses against another.

    measure: by default the first that both have. Documents and texts are shown where the collection is given or on this
    machine. Raises FormatError for a folder that is no finished cell, BadValue for cells of different collections or
    without a measure in common.
    """
    cells = open_cell(first), open_cell(second)
    one, other = cells
    if (one.dataset, one.split) != (other.dataset, other.split):
        raise BadValue(f"{one.dataset} {one.split} and {other.dataset} {other.split} share no queries")
    names = _names((one.system, other.system), (first, second))
    dataset = dataset_of(one, collection)
    if dataset is None:
        wanted = _stored(one, other, measure)
        return moved(str(wanted), names, _scores(one), _scores(other), top)
    wanted = parse_measure(measure) if measure else _stored(one, other, None)
    runs = _run(one.run, dataset.qrels), _run(other.run, dataset.qrels)
    scores = [scores_of(Judged.of(run, dataset.qrels), (wanted,)) for run in runs]
    found = moved(str(wanted), names, scores[0], scores[1], top)
    return _texted(with_documents(found, dataset.qrels, *runs), dataset)


def _stored(first: Finished, second: Finished, measure: str | None) -> Measure:
    """A measure that both cells have; raises BadValue where there is none."""
    theirs = {r.measure for r in second.rows}
    both = [r.measure for r in first.rows if r.measure in theirs]
    if measure is None and both:
        return parse_measure(both[0])
    if measure is None:
        raise BadValue(f"{first.folder} and {second.folder} have no measure in common; name one with -m")
    if str(parse_measure(measure)) not in both:
        raise BadValue(
            f"{measure} is not in both folders, and {first.dataset} is not on this machine to compute it; "
            f"in both: {', '.join(both) or 'none'}; or pass --collection"
        )
    return parse_measure(measure)


def _scores(cell: Finished) -> Scores:
    """The stored values of a cell; who was answered is in its rankings."""
    stored = cell.values()
    run = _run(cell.run, None, stored.queries)
    answered = np.diff(run.ptr)[run.queries.codes(stored.queries.strings)] > 0
    return replace(stored, answered=answered, remarks=())  # the stored remark says how many are not answered


def _run(path: Path, qrels: Qrels | None, queries: Ids | None = None) -> Run:
    """The rankings of a file, with the identifiers of the judged documents only where the format allows it."""
    if not format_of(path, "run").rows:
        return read_run(path)
    docs = Ids.of([]) if qrels is None else qrels.docs
    known = qrels.queries if qrels is not None else queries
    return read_run(path) if known is None else read_run_against(path, known, docs)[0]


def _names(short: tuple[str, str], long: tuple[Path, Path]) -> tuple[str, str]:
    folders = [f"{path.parent.name}/{path.name}" for path in long]
    longer = folders if len(set(folders)) == len(folders) else [str(path) for path in long]
    one, other = distinct_names(short, longer)
    return one, other


def _texted(found: Moves, dataset: Dataset | None) -> Moves:
    return found if dataset is None else with_texts(found, dataset.all_queries, dataset.corpus)
