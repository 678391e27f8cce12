"""The commands that score and fuse rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.options import (
    NAME,
    OUTPUT,
    PATH,
    by_option,
    dataset_names,
    label_option,
    measure_names,
    measures_option,
    notes_option,
    scorer_option,
    table_options,
)
from weir.cli.terminal import (
    as_cell,
    display_of,
    say,
    say_left_out,
    say_notes,
    show,
    show_result,
    show_tables,
)

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.run import Run
    from weir.core.scores import Scores
    from weir.datasets.load import Dataset
    from weir.datasets.scoring_rules import ScoringRules
    from weir.systems.fusion.fuse import Pool


@click.command("eval")
@click.argument("qrels", type=NAME)
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@measures_option()
@click.option("--per-query", is_flag=True, help="One line for each query and measure instead of the means.")
@by_option
@click.option("--within", is_flag=True,
              help="With --by: mean, worst, best and spread within a group, not a line for each.")  # fmt: skip
@click.option("--p-mrr", "pairs", metavar="ORIGINAL:CHANGED",
              help="Add p-MRR of queries under two instructions, by their ends, such as -og:-changed.")  # fmt: skip
@label_option
@table_options
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected", "bounds"]), default="trec", show_default=True,
              help="Equal scores stand by identifier, compared as doubles or (trec9) as floats; or the exact mean over "
                   "all their orders; or trec with the worst and the best order.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Judged queries that the run does not answer score 0, or leave the mean.")  # fmt: skip
@click.option("--empty", type=click.Choice(["zero", "left-out"]), default="zero", show_default=True,
              help="Queries without a relevant document score 0, or leave the mean.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option(
    "--collection",
    type=NAME,
    shell_complete=dataset_names,
    help="The collection of the run, a name or a path: its rules hold (self-matches, candidates, queries without an "
    "answer), what it makes of the scores is said, and --by may name its columns.",
)
@click.option("--abstention", type=click.Choice(["max", "std", "diff1"]),
              help="Show what leaving out the least sure queries gains (nAUC), by this confidence.")  # fmt: skip
@click.option("--model-labels", metavar="LABELS",
              help="Labels of a model, which count where people judged nothing if they pass --min-agreement; "
                   "a folder of weir judge, or a file.")  # fmt: skip
@click.option("--min-agreement", "least", default="binary kappa 0.4", show_default=True, metavar="STATISTIC NUMBER",
              help="What the interval of their agreement with people must reach, on pairs judged by both, such as "
                   "'quadratic kappa 0.6' or 'binary kappa from 2 0.5'.")  # fmt: skip
@scorer_option
@notes_option
def eval_command(
    qrels: str,
    runs: tuple[Path, ...],
    measures: tuple[str, ...],
    per_query: bool,
    by: str | None,
    within: bool,
    pairs: str | None,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    ties: str,
    missing: str,
    empty: str,
    drop_self: bool,
    collection: str | None,
    abstention: str | None,
    model_labels: str | None,
    least: str,
    scorer: str | None,
    notes: bool,
) -> None:
    """Score rankings against judgments.

    QRELS: judgments, RUN: one ranking or several, each in TREC's format, JSON, CSV, TSV, Parquet or Arrow; texts also
    as .gz or .zst. Every judged query counts unless told otherwise. For a measure of diversity the
    second column of QRELS names the intent. Judged@10 is always said too; which of several runs is better, weir
    compare says. Of several runs one that cannot be scored is named and left out; the exit code is 2 then.
    """
    from weir.api.given import run_paths
    from weir.api.rows import rows_shown
    from weir.cli.options import by_group
    from weir.core.scores import Note
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.errors import BadValue
    from weir.measures import DEFAULT_MEASURES, measures_of
    from weir.measures.evaluate import Conventions, each_file, judgments_for, names_of_runs
    from weir.stats.score_rows import result_rows, scored, system_notes

    for option, used in (("--per-query", per_query), ("--scorer", scorer is not None)):
        if used and form not in (None, "json"):
            raise BadValue(f"{option} writes plain lines, or --json; found --{form}")
    if within and pairs is not None:
        raise BadValue(
            "--p-mrr has a value for each pair of queries, which are in no group; leave out --within"
        )
    for option, used in (("--scorer", scorer is not None), ("--p-mrr", pairs is not None)):
        if used and model_labels is not None:
            raise BadValue(f"{option} takes the judgments as they are; found --model-labels too")
    if scorer is not None:
        from weir.api.results_folder import birco_of_runs

        figures, left_out = birco_of_runs(qrels, runs)
        show_result(figures, form)
        say_notes((note for note in figures.notes() if note not in left_out), notes)
        say_left_out(left_out)
        if left_out:
            click.get_current_context().exit(2)
        return
    requested = measures_of(measures or DEFAULT_MEASURES)
    files = run_paths(runs)
    names = dict(zip(files, names_of_runs(files), strict=True))
    display = display_of(form, long, labels, names.values())
    dataset_name = Path(qrels).name or Path(qrels).absolute().name
    given, about = judged_by(qrels, collection)
    conventions = Conventions(ties, missing, empty, "drop" if drop_self else "keep")
    rules = ScoringRules.of(about, conventions)
    judgments, gate = rules.counted(judgments_for(given, requested)), None
    if model_labels is not None:
        from weir.api.evaluation import gated_by

        gate = gated_by(judgments, model_labels, least)
        judgments = gate.qrels
    by_file, refused = each_file(
        files, lambda run: scored(judgments, partial(rules.join_run, run), requested, rules.conventions, gate)
    )
    by_name = {names[run]: scores for run, scores in by_file.items()}
    rows = []
    if by is not None and not within:
        rows = by_group(dataset_name, by_name, by, rules.dataset)
    elif by is None:
        rows = [row for name, scores in by_name.items() for row in result_rows(scores, dataset_name, name)]
    by_pair: dict[str, Scores] = {}
    if pairs is not None:
        from weir.api.comparisons import p_mrr_of_files

        by_pair = p_mrr_of_files(given, list(by_file), pairs, rules)
        rows += [row for name, scores in by_pair.items() for row in result_rows(scores, dataset_name, name)]
    if within:
        _within(by_name, by, rules.dataset, form == "json")
    elif per_query:
        for part in (by_name, by_pair):
            say_per_query({(name,) * (len(part) > 1): one for name, one in part.items()}, form == "json")
    else:
        show(rows_shown(rows, display), display.form == "text")
    if within or per_query:
        uses = (scores.labels for scores in by_name.values())
        for sentence in dict.fromkeys(use.sentence for use in uses if use is not None):
            say(f"note: labels: {sentence}")
    if abstention:
        for run, scores in by_file.items():
            _abstention(run, scores, abstention, form == "json", rules)
    notes_beside = system_notes(by_name)
    if rules.dataset is not None:
        from weir.api.collection_notes import collection_notes, restriction_notes

        notes_beside += restriction_notes(rules.dataset)
        notes_beside += collection_notes(rules.dataset, map(str, requested), drop_self)
        notes_beside += rules.dangling_notes(judgments)
    say_notes(notes_beside, notes)
    say_left_out(Note(f"left out: {reason}") for reason in refused)
    if refused:
        click.get_current_context().exit(2)


def say_per_query(scored: Mapping[tuple[str, ...], Scores], as_json: bool) -> None:
    """Print lines of measure, query and value after the system, or the dataset and the system, of each."""
    import json

    from weir.files.score_files import score_lines

    for head, scores in scored.items():
        if as_json:
            names = dict(zip(("dataset", "system")[2 - len(head) :], head, strict=True))
            lines = score_lines(scores)
            named = (json.dumps(names | json.loads(line), ensure_ascii=False) for line in lines)
            click.echo("\n".join(named if head else lines))
            continue
        ends = [scores.values]
        if "ties=bounds" in scores.conventions and scores.low is not None and scores.high is not None:
            ends += [scores.low, scores.high]
        for measure, *rows in zip(scores.measures, *(end.tolist() for end in ends), strict=True):
            for query, *values in zip(scores.queries.tolist(), *rows, strict=True):
                cells = (as_cell(cell) for cell in [*head, measure, query])
                click.echo("\t".join([*cells, *map(repr, values)]))


def _within(by_name: dict[str, Scores], by: str | None, collection: Dataset | None, as_json: bool) -> None:
    """What measures do within groups of queries; raises BadValue where no groups are named."""
    from weir.core.frames import plain
    from weir.core.results import json_lines
    from weir.core.scores import GroupedScores
    from weir.datasets.load import query_groups
    from weir.errors import BadValue
    from weir.stats.paired_sets import within_groups, within_tables_of

    if by is None:
        raise BadValue("--within needs groups; name them with --by, such as --by stem:-")
    groups = {
        name: within_groups(GroupedScores.of(one, query_groups(by, one.queries, collection)))
        for name, one in by_name.items()
    }
    if as_json:
        click.echo(json_lines({"system": name} | plain(one) for name, of in groups.items() for one in of))
    else:
        show_tables(within_tables_of(groups))


def _abstention(run: Path, scores: Scores, confidence: str, as_json: bool, rules: ScoringRules) -> None:
    from weir.api.result_set import ResultSet
    from weir.files.runs import read_run
    from weir.stats.threshold import abstention

    gains = abstention(rules.ranked(read_run(run)), scores, confidence)
    if not as_json:
        click.echo()
    show_result(ResultSet("abstention", tuple(gains)), "json" if as_json else None)


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
@click.argument("runs", type=PATH, nargs=-1, required=True)
@click.option("-o", "--out", "output", type=OUTPUT, required=True,
              help="The fused ranking; its ending says the format, as .trec, .trec.gz or .json.")  # fmt: skip
@click.option("-k", "depth", type=int, help="Documents kept for each query, at most.  [default: all]")
@click.option("--fit", "qrels", type=NAME,
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
def fuse_command(
    method: str,
    runs: tuple[Path, ...],
    output: Path,
    depth: int | None,
    qrels: str | None,
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
    from weir.api.given import run_paths
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.errors import BadValue
    from weir.files.frames import qrels_from
    from weir.files.write import write_run
    from weir.measures.evaluate import DEFAULT, Conventions
    from weir.systems.fusion.fit import FOLDS, SEED, STEP
    from weir.systems.fusion.fuse import fused, refuse_depth
    from weir.systems.fusion.methods import parse_fusion

    how = parse_fusion(method)
    if qrels is None and (train_queries or any(o is not None for o in (measure, folds, seed, step))):
        raise BadValue("--measure, --folds, --seed, --step and --train-queries go with --fit")
    refuse_depth(depth)
    judged, collection = judged_by(qrels)
    rules = ScoringRules.of(collection, Conventions(self_matches="drop") if drop_self else DEFAULT)
    files = run_paths(runs)
    if output.exists() and any(
        output.samefile(path) for path in (*files, judged) if isinstance(path, Path) and path.exists()
    ):
        raise BadValue(f"{output} is one of the files that are read; name another file with -o")
    pool = _pooled(files, how.refuse_other_than, rules)
    if qrels is None:
        write_run(fused(pool, how, depth), output)
        return
    search = Search(method, measure or "nDCG@10", FOLDS if folds is None else folds, SEED if seed is None else seed,
                    STEP if step is None else step, depth, train_queries)  # fmt: skip
    judgments = rules.counted(qrels_from(judged))
    say_notes(rules.dangling_notes(judgments))
    write_run(_fitted(pool, files, (Path(qrels).name, judgments), search), output)


def _pooled(paths: Sequence[Path], check: Callable[[int], None], rules: ScoringRules) -> Pool:
    """The runs of the files side by side, with a note on all that is uncommon about them."""
    from weir.errors import BadValue
    from weir.files.runs import read_run
    from weir.systems.fusion.fuse import Pool, check_shared_queries

    if len(paths) < 2:
        raise BadValue(f"a fusion takes two or more rankings; found {len(paths)}")
    check(len(paths))
    for path in dict.fromkeys(p for p in paths if paths.count(p) > 1):
        _note(f"{path} is given {paths.count(path)} times and counts as often")
    pool = Pool.of([rules.ranked(read_run(path)) for path in paths])
    check_shared_queries(pool)
    for path, length in zip(paths, pool.length, strict=True):
        missing = int((length == 0).sum())
        if missing:
            _note(f"{path} does not answer {missing} of the {len(pool.queries)} queries; others decide there")
    return pool


def _fitted(pool: Pool, paths: Sequence[Path], judged: tuple[str, Qrels], search: Search) -> Run:
    """The run fused with fitted settings; how they do on queries they were not fitted on goes to standard output.

    judged: the name of the judgments, and these.
    """
    from weir.api.progress import Progress
    from weir.measures import score_run
    from weir.measures.evaluate import names_of_runs
    from weir.systems.fusion.fit import (
        candidates,
        cross_validated,
        fold_of,
        fused_by,
        held_out_tables,
        trials,
    )
    from weir.systems.fusion.fuse import fused

    (called, qrels), tried = judged, candidates(search.method, len(pool.runs), search.step)
    fold_of(qrels.queries, search.folds, search.seed)  # refuses what will not do before anything takes long
    with Progress() as progress:
        measured = trials(
            tried, pool, qrels, search.measure, lambda done, total: progress("fit", done, total)
        )
    fit = cross_validated(measured, search.folds, search.seed)
    honest = fused_by(fit, pool, search.depth)
    runs = dict(zip(paths, pool.runs, strict=True))
    names = names_of_runs(list(runs))
    single = {
        name: score_run(qrels, run, [measured.measure])
        for name, run in zip(names, runs.values(), strict=True)
    }
    show_tables(fit.tables())
    fused_scores = score_run(qrels, honest, [measured.measure])
    click.echo()
    show_tables(held_out_tables(fused_scores, single, called))
    if search.on_all:
        warning = (
            f"every query is fused with {fit.chosen}, chosen on these very judgments: do not score the result"
        )
        _note(f"{warning} against {called}; the held-out score above is what it is worth", "WARNING")
        return fused(pool, fit.chosen, search.depth)
    other = int((qrels.queries.codes(pool.queries.strings) < 0).sum())
    say_notes(fit.notes())
    if other:
        _note(f"{other} queries without judgments are fused with {fit.chosen}, chosen on all judged ones")
    return honest


def _note(text: str, kind: str = "note") -> None:
    say(f"{kind}: {text}")
