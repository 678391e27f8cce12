"""Fuse rankings into one, and fit fusions on judged queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from weir.api.evaluation import conventions_of
from weir.api.given import all_rankings, copy_notes, run_paths
from weir.argument_types import checked
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.tables import Table
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue, warn_of_ranking
from weir.files.frames import qrels_from, run_from
from weir.files.runs import read_run
from weir.files.write import write_run
from weir.measures import Measure, score_run
from weir.measures.evaluate import DEFAULT, Conventions, names_of_runs
from weir.systems import fusion
from weir.systems.fusion import Fusion
from weir.systems.fusion.fit import (
    FOLDS,
    SEED,
    STEP,
    Fit,
    candidates,
    cross_validated,
    fit,
    fold_of,
    fused_by,
    held_out_tables,
    trials,
)
from weir.systems.fusion.fuse import Pool, apart_notes, check_shared_queries, depth_note, fused, refuse_depth
from weir.systems.fusion.methods import parse_fusion


@checked
def fuse(
    runs: Iterable[object] | Mapping[str, object], method: Fusion | str = "rrf", k: int | None = None
) -> Run:
    """Return one run fused from several, with all documents that any returns: fuse([a, b], "rrf(k=10)").

    runs: two or more rankings as `evaluate` takes them, or {name: ranking}.
    method: a fusion method with its settings, see docs/fusion.md.
    k: documents kept for each query, by default all.

    Raises BadValue for fewer than two rankings, and rankings without a common query, UnknownName for a method or
    setting. Warns (RankingWarning) of a ranking without a common document, and if `k` cuts and the method's own `k`
    is not set.
    """
    given = all_rankings(_listed(runs))
    ranked = [run_from(run) for run in given]
    fused_run = fusion.fuse(ranked, method, k)
    if note := depth_note(ranked, method if isinstance(method, Fusion) else parse_fusion(method), k):
        warn_of_ranking(note)
    for copy in copy_notes((str(one), one) for one in given if isinstance(one, Path)):
        warn_of_ranking(copy.text)
    return fused_run


@checked
def fit_fusion(
    qrels: object,
    runs: Iterable[object] | Mapping[str, object],
    method: Fusion | str,
    measure: Measure | str = "nDCG@10",
    folds: int = 5,
) -> Fit:
    """Return the settings of a fusion that score best on judged queries, by cross-validation.

    qrels, runs: in any form of `evaluate`.
    method: a fusion method. Settings that it names stay.
    measure: the measure to maximise.
    folds: number of folds.

    `.chosen` is the fusion for new queries, `.held_out` the scores of each judged query with settings chosen without
    it. Raises BadValue if no setting is left to choose, and for fewer judged queries than folds.
    """
    judgments, collection = judged_by(qrels)
    rules = ScoringRules.of(collection)
    ranked = [rules.ranked(run_from(run)) for run in all_rankings(_listed(runs), collection)]
    judged = qrels_from(judgments)
    fitted = fit(method, ranked, rules.counted(judged), measure, folds)
    return replace(fitted, remarks=tuple(rules.dangling_notes(judged)))


def _listed(runs: Iterable[object] | Mapping[str, object]) -> tuple[object, ...]:
    return tuple(runs.values() if isinstance(runs, Mapping) else runs)


@dataclass(frozen=True)
class Search:
    """Settings of the search for a fusion's settings on judged queries."""

    measure: str = "nDCG@10"
    """The measure to maximise."""
    folds: int = FOLDS
    """Folds of queries."""
    seed: int = SEED
    """Seed of the draw of folds."""
    step: float = STEP
    """Step between the weights that are tried."""
    train_queries: bool = False
    """One choice for all queries, the judged ones too: do not score it on them."""


@dataclass(frozen=True)
class FusedFiles:
    """Tables and notes on a fusion of files."""

    tables: tuple[tuple[Table, ...], ...]
    """The chosen settings, and their scores on queries that did not choose them; empty without judgments."""
    notes: tuple[Note, ...]
    warning: str = ""
    """Why the ranking must not be scored on the judgments; "" if it may be."""


def fuse_files(
    method: str,
    runs: Iterable[Path],
    output: Path,
    k: int | None = None,
    qrels: str | None = None,
    search: Search | None = None,
    conventions: Conventions | str | Mapping[str, Any] = DEFAULT,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> FusedFiles:
    """Fuse run files, write the fused run, and return tables and notes on the choice of settings.

    output: the file, whose ending says the format.
    method: such as "rrf(k=10)". With judgments, settings that it does not name are chosen.
    k: documents kept for each query at most, by default all.
    qrels: judgments to choose the method's open settings on, by cross-validation. A judged query is fused with
        settings chosen without it, unless `search` says otherwise.
    search: how settings are chosen.
    conventions: rules for the rankings.
    progress: receives (stage, done, total).

    Raises the errors of `fuse` and `fit_fusion`, and BadValue for an output that is one of the files read.
    """
    how, search = parse_fusion(method), search or Search()
    refuse_depth(k)
    judged, collection = judged_by(qrels)
    rules = ScoringRules.of(collection, conventions_of(conventions))
    paths = run_paths(runs, collection)
    read = [path for path in (*paths, judged) if isinstance(path, Path) and path.exists()]
    if output.exists() and any(map(output.samefile, read)):
        raise BadValue(f"{output} is one of the files that are read; write to another file")
    if len(paths) < 2:
        raise BadValue(f"a fusion takes two or more rankings; found {len(paths)}")
    how.refuse_other_than(len(paths))
    pool = Pool.of([rules.ranked(read_run(path)) for path in paths])
    check_shared_queries(pool)
    notes = tuple(_pool_notes(paths, pool))
    if cut := depth_note(pool.runs, how, k):
        notes = (*notes, Note(cut))
    if qrels is None:
        write_run(fused(pool, how, k), output)
        return FusedFiles((), notes)
    every = qrels_from(judged)
    judgments = rules.counted(every)
    tried = candidates(method, len(paths), search.step)
    fold_of(judgments.queries, search.folds, search.seed)  # refuses before anything takes long
    measured = trials(tried, pool, judgments, search.measure, partial(progress, "fit"))
    fitted = cross_validated(measured, search.folds, search.seed)
    honest, name, measures = fused_by(fitted, pool, k), Path(qrels).name, [fitted.measure]
    by_file = dict(zip(paths, pool.runs, strict=True))
    names = names_of_runs(list(by_file))
    single = {n: score_run(judgments, run, measures) for n, run in zip(names, by_file.values(), strict=True)}
    tables = (fitted.tables(), held_out_tables(score_run(judgments, honest, measures), single, name))
    notes = (*notes, *rules.dangling_notes(every))
    if search.train_queries:
        warning = (
            f"every query is fused with {fitted.chosen}, chosen on these very judgments: do not score the result "
            f"against {name}; the held-out score above is what it is worth"
        )
        write_run(fused(pool, fitted.chosen, k), output)
        return FusedFiles(tables, notes, warning)
    notes = (*notes, *fitted.notes())
    if other := int((judgments.queries.codes(pool.queries.strings) < 0).sum()):
        more = f"{other} queries without judgments are fused with {fitted.chosen}, chosen on all judged ones"
        notes = (*notes, Note(more))
    write_run(honest, output)
    return FusedFiles(tables, notes)


def _pool_notes(paths: Sequence[Path], pool: Pool) -> Iterator[Note]:
    for path in dict.fromkeys(path for path in paths if paths.count(path) > 1):
        yield Note(f"{path} is given {paths.count(path)} times and counts as often")
    yield from copy_notes((str(path), path) for path in paths)
    for path, length in zip(paths, pool.length, strict=True):
        if missing := int((length == 0).sum()):
            yield Note(
                f"{path} does not answer {missing} of the {len(pool.queries)} queries; others decide there"
            )
    yield from map(Note, apart_notes(pool, [str(path) for path in paths]))
