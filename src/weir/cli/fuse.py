"""weir fuse: several rankings to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, say, show

if TYPE_CHECKING:
    from weir.core.run import Run
    from weir.fusion.pool import Pool

__all__ = ["command"]


@dataclass(frozen=True)
class Search:
    """How settings are chosen, as the options say it."""

    method: str
    measure: str
    folds: int
    seed: int
    step: float
    depth: int | None
    on_all: bool


@click.command("fuse")
@click.argument("method")
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-o", "--out", "output", type=click.Path(path_type=Path), required=True,
              help="The fused ranking; its ending says the format, as .trec, .trec.gz or .json.")  # fmt: skip
@click.option("-k", "depth", type=int, help="Documents kept for each query, at most.  [default: all]")
@click.option("--fit", "qrels", type=click.Path(path_type=Path),
              help="Judgments to choose the method's open settings on, by cross-validation.")  # fmt: skip
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="With --fit: the measure to do best on.  [default: nDCG@10]",
)
@click.option("--folds", type=int, help="With --fit: folds of queries.  [default: 5]")
@click.option("--seed", type=int, help="With --fit: deals the queries out to the folds.")
@click.option("--step", type=float, help="With --fit: between the weights that are tried.  [default: 0.1]")
@click.option("--drop-self", is_flag=True,
              help="Leave out first documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--train-queries", is_flag=True,
              help="With --fit: one choice for all queries, the judged ones too: do not score it on them.")  # fmt: skip
def command(
    method: str,
    runs: tuple[Path, ...],
    output: Path,
    depth: int | None,
    qrels: Path | None,
    measure: str | None,
    folds: int | None,
    seed: int | None,
    step: float | None,
    drop_self: bool,
    train_queries: bool,
) -> None:
    """Fuse rankings into one.

    METHOD: rrf, combsum, combmnz, wsum ... with its settings, such as 'rrf(k=10)' or 'wsum(weights=[0.7, 0.3])'; all
    are in docs/fusion.md. RUNS: two or more rankings. With --fit the settings that METHOD does not give are chosen on
    judged queries; each of these is fused with what the other folds chose, so that scoring the result on them is fair.
    """
    from weir.errors import BadValue
    from weir.fusion.fit import FOLDS, SEED
    from weir.fusion.fuse import fused, refuse_depth
    from weir.fusion.grid import STEP
    from weir.fusion.method import parse_fusion
    from weir.io.runs.read import write_run

    how = parse_fusion(method)
    if qrels is None and (train_queries or any(o is not None for o in (measure, folds, seed, step))):
        raise BadValue("--measure, --folds, --seed, --step and --train-queries go with --fit")
    refuse_depth(depth)
    pool = _pooled(runs, how.refuse_other_than, drop_self)
    if qrels is None:
        write_run(fused(pool, how, depth), output)
        return
    search = Search(method, measure or "nDCG@10", FOLDS if folds is None else folds, SEED if seed is None else seed,
                    STEP if step is None else step, depth, train_queries)  # fmt: skip
    write_run(_fitted(pool, runs, qrels, search), output)


def _pooled(paths: tuple[Path, ...], check: Callable[[int], None], drop_self: bool) -> Pool:
    """The runs of the files side by side, with a note on all that is uncommon about them."""
    from weir.errors import BadValue
    from weir.fusion.pool import Pool, refuse_strangers
    from weir.io.runs.read import read_run

    if len(paths) < 2:
        raise BadValue(f"a fusion takes two or more rankings; found {len(paths)}")
    check(len(paths))
    for path in dict.fromkeys(p for p in paths if paths.count(p) > 1):
        _note(f"{path} is given {paths.count(path)} times and counts as often")
    runs = [read_run(path) for path in paths]
    pool = Pool.of([run.without_self() for run in runs] if drop_self else runs)
    refuse_strangers(pool)
    for path, length in zip(paths, pool.length, strict=True):
        missing = int((length == 0).sum())
        if missing:
            _note(f"{path} does not answer {missing} of the {len(pool.queries)} queries; others decide there")
    return pool


def _fitted(pool: Pool, paths: tuple[Path, ...], judged: Path, search: Search) -> Run:
    """The run fused with fitted settings; how they do on queries they were not fitted on goes to standard output."""
    from weir.fusion.fit import cross_validated, fold_of, fused_by, trials
    from weir.fusion.fuse import fused
    from weir.fusion.grid import candidates
    from weir.io.runs.read import read_qrels
    from weir.measures import evaluate
    from weir.measures.files import names_of_runs
    from weir.report.fusion import fit_text, standing_text
    from weir.report.progress import Progress

    qrels, tried = read_qrels(judged), candidates(search.method, len(pool.runs), search.step)
    fold_of(qrels.queries, search.folds, search.seed)  # refuses what will not do before anything takes long
    progress = Progress()
    try:
        made = trials(tried, pool, qrels, search.measure, lambda done, total: progress("fit", done, total))
    finally:
        progress.close()
    found = cross_validated(made, search.folds, search.seed)
    honest = fused_by(found, pool, search.depth)
    runs = dict(zip(paths, pool.runs, strict=True))
    names = names_of_runs(list(runs))
    single = {
        name: evaluate(qrels, run, [made.measure]) for name, run in zip(names, runs.values(), strict=True)
    }
    show(fit_text(found, output_width()))
    fused_scores = evaluate(qrels, honest, [made.measure])
    show("\n" + standing_text(fused_scores, single, judged.name, output_width()))
    if search.on_all:
        warning = f"every query is fused with {found.chosen}, chosen on these very judgments: do not score the result"
        _note(f"{warning} against {judged}; the held-out score above is what it is worth", "WARNING")
        return fused(pool, found.chosen, search.depth)
    other = int((qrels.queries.codes(pool.queries.strings) < 0).sum())
    _note(
        "each judged query is fused with settings that other folds chose: scoring the result on them is fair"
    )
    if other:
        _note(f"{other} queries without judgments are fused with {found.chosen}, chosen on all judged ones")
    return honest


def _note(text: str, kind: str = "note") -> None:
    say(f"{kind}: {text}")
