"""Commands that compare systems, and explain and gate differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weir.cli.options import (
    NAME,
    OUTPUT,
    PATH,
    by_option,
    collection_option,
    dataset_names,
    fetch_option,
    label_option,
    measure_names,
    measures_option,
    notes_option,
    systems_option,
)
from weir.cli.terminal import output_width, say, say_left_out, say_notes, show_result

if TYPE_CHECKING:
    from weir.core.scores import Scores
    from weir.measures.evaluate import Conventions


def _no_path(context: click.Context, option: click.Parameter, names: str | None) -> str | None:
    """The names behind --factors; what is there as a file or folder was not meant as such."""
    if names and (Path(names).is_file() or next(Path(names).glob("*/*/stage.json"), None)):
        raise click.BadParameter(f"{names} is a path; write what is compared before --factors")
    return names


def _by_pair(
    paths: tuple[str, ...],
    pairs: str,
    conventions: Conventions,
    collections: tuple[str, ...],
    measures: object,
) -> dict[str, Scores]:
    """p-MRR of run files by name; raises BadValue without judgments and two runs, and with other measures."""
    from weir.api.auditing import place_of
    from weir.api.comparisons import p_mrr_of_files
    from weir.api.given import run_paths
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.errors import BadValue

    if len(paths) < 3 or measures:
        raise BadValue("--p-mrr takes judgments and run files, and no other measure beside it")
    judged, collection = judged_by(paths[0], place_of(collections))
    rules = ScoringRules.of(collection, conventions)
    return p_mrr_of_files(judged, run_paths(paths[1:]), pairs, rules)


@click.command("compare")
@click.argument("paths", type=NAME, nargs=-1, required=True)
@measures_option()
@click.option("--baseline", help="The system that the others are compared with, instead of each with each.")
@click.option("--test", default="permutation", show_default=True,
              help="permutation, t, tukey (randomised HSD), bootstrap-shift, wilcoxon or sign.")  # fmt: skip
@click.option("--correct", help="holm, bonferroni, bh or none.  [default: holm; with --by bh]")
@click.option("--factors", is_flag=False, flag_value="", metavar="[NAMES]", callback=_no_path,
              help="Effects of settings in which systems differ, all or those named: objective,depth.")  # fmt: skip
@by_option
@click.option("--collection", "collections", type=NAME, shell_complete=dataset_names, multiple=True,
              metavar="[NAME=]COLLECTION",
              help="The collection of the runs, a name or a path, whose rules hold (self-matches, candidates, queries "
                   "without an answer) and whose column --by may name; of a results folder where such a collection "
                   "lies now, repeatable.")  # fmt: skip
@click.option("--interval", default="t", show_default=True,
              help="Of a difference: t, percentile, bca, studentised; two-level for datasets.")  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True,
              help="Level of the intervals; tests use 1 minus it.")  # fmt: skip
@click.option(
    "--margin", type=float, help="A difference that counts as none: systems within it are equivalent."
)
@click.option("--draws", type=int, help="Draws of a test that draws.  [default: 100000]")
@click.option("--seed", type=int, help="Seed of the draws.")
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected"]), default="trec", show_default=True,
              help="Equal scores: by identifier, so compared as floats, or the mean over their orders.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Queries that a run does not answer score 0, or leave the comparison.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--p-mrr", "pairs", metavar="ORIGINAL:CHANGED",
              help="Of QRELS and runs: by p-MRR, of queries under two instructions, whose identifiers end so, such as "
                   "-og:-changed.")  # fmt: skip
@click.option("-d", "--dataset", "datasets", type=NAME, shell_complete=dataset_names, multiple=True,
              help="Of a results folder: this dataset or group; repeatable.")  # fmt: skip
@systems_option("Of a results folder: this system; repeatable.")
@label_option
@click.option("--json", "form", flag_value="json", help="One JSON object per comparison, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="One line per pair, at full precision.")
@click.option(
    "--latex",
    "form",
    flag_value="latex",
    help="LaTeX: the means with the markers papers use, and each pair with its verdict.",
)
@click.option("--markdown", "form", flag_value="markdown", help="The same as Markdown tables.")
@click.option("--html", "form", flag_value="html", help="The same as a page of HTML.")
@click.option("--long", is_flag=True, help="Every pair on every dataset, also where there are many.")
@click.option("--explain", is_flag=True, help="Say how the numbers were made.")
@notes_option
def compare_command(
    paths: tuple[str, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    test: str,
    correct: str | None,
    factors: str | None,
    by: str | None,
    collections: tuple[str, ...],
    interval: str,
    level: float,
    margin: float | None,
    draws: int | None,
    seed: int | None,
    ties: str,
    missing: str,
    drop_self: bool,
    pairs: str | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    explain: bool,
    notes: bool,
) -> None:
    """Compare systems, with significance tests.

    PATHS: judgments and two or more runs; or a results folder, whose systems are compared on each dataset and
    across datasets. A difference is the second system minus the first: the later given minus the earlier, or each
    minus the baseline, as in weir diff, weir gate and weir power. Each verdict is better, worse or not separable, with
    the smallest difference that the queries could have shown. Of three or more runs one that cannot be scored is named
    and left out; the exit code is 2 then. Tables are sorted by value; systems that share a letter
    cannot be told apart. With --by follow the macro mean over the groups and each group, the share of false verdicts
    on groups held at 1 minus the level. Several datasets make a grid for each measure, followed by the comparison
    across them; --long shows that of each dataset.

    With --factors the systems are cells of a grid, such as weir run -s 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})' makes:
    each level of a factor is set against the others, averaged over the other factors, every two factors are looked at
    for an interaction, and intervals and tests hold for all effects together; then follow shares of the variance.
    """
    from weir.api.comparisons import compare_shown
    from weir.errors import BadValue
    from weir.files.paths import path_of
    from weir.measures.evaluate import Conventions
    from weir.stats.compare import ComparisonMethod
    from weir.stats.resampling import SEED
    from weir.stats.significance import DRAWS

    if len(paths) == 2 and not path_of(paths[1]).is_dir():  # a folder of results holds several runs
        raise BadValue("expected judgments and two or more runs, or one results folder")
    method = ComparisonMethod(test, correct or ("holm" if by is None else "bh"), interval, level, margin=margin,
                    draws=DRAWS if draws is None else draws, seed=SEED if seed is None else seed)  # fmt: skip
    conventions = Conventions(ties, missing, self_matches="drop" if drop_self else "keep")
    compared = compare_shown(
        *(paths if pairs is None else [_by_pair(paths, pairs, conventions, collections, measures)]),
        measures=measures,
        baseline=baseline,
        method=method,
        conventions=conventions,
        by=by,
        factors=factors,
        collection=collections,
        datasets=datasets,
        only=systems,
        labels=labels,
    )
    say_notes((note for note in compared.results.notes() if note not in compared.left_out), notes)
    say_left_out(compared.left_out)
    tables = compared.tables(long, explain, output_width()) if form is None else None
    show_result(compared.results, form, tables)
    if compared.left_out:
        click.get_current_context().exit(2)


@click.command("diff")
@click.argument("paths", type=NAME, nargs=-1, required=True)
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="A measure.  [default: nDCG@10, or the first that both folders have]",
)
@click.option(
    "--collection",
    type=NAME,
    shell_complete=dataset_names,
    help="The collection, a name or a path: its texts are shown, and its rules hold for run files.",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=10, show_default=True, help="Moves shown each way."
)
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def diff_command(
    paths: tuple[str, ...],
    measure: str | None,
    collection: str | None,
    top: int,
    drop_self: bool,
    as_json: bool,
) -> None:
    """List queries won and lost.

    One run is set against another. PATHS: judgments and two runs, or two folders such as
    results/scifact/bm25-fa19b4d424; differences are the second minus the first. Each of the largest moves names the
    relevant documents whose ranks moved most. Texts are shown where the collection is given or, for folders, on this
    machine; nothing is downloaded.
    """
    from weir.api.comparisons import diff
    from weir.errors import BadValue
    from weir.measures.evaluate import Conventions

    if not 2 <= len(paths) <= 3:
        raise BadValue(f"found {len(paths)} paths; expected judgments and two runs, or two result folders")
    rules = Conventions(self_matches="drop" if drop_self else "keep")
    differences = diff(*paths, measure=measure, collection=collection, top=top, conventions=rules)
    show_result(differences, "json" if as_json else None)


@click.command("why")
@click.argument("results", type=NAME, nargs=-1, required=True)
@click.option(
    "--published", "model", help="A published model to compare one result with, such as 'anserini bm25 flat'."
)
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="A measure such as nDCG@10.  [default: the first that both have]",
)
@click.option("--qrels", type=NAME, help="Judgments to score folders again with.")
@click.option(
    "--collection",
    type=NAME,
    shell_complete=dataset_names,
    help="The collection, a name or a path: of folders with the judgments, of run files with the rules that hold.  "
    "[default: as recorded]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def why_command(
    results: tuple[str, ...],
    model: str | None,
    measure: str | None,
    qrels: str | None,
    collection: str | None,
    as_json: bool,
) -> None:
    """Explain a difference.

    Two numbers differ: the settings that can be the reason. RESULTS: two folders such as
    results/scifact/bm25-fa19b4d424; or one, which is compared with the published model that its system claims to be, or
    with the one named; or judgments and two run files; or with --collection two systems, of which one at least is an
    index of Elasticsearch, OpenSearch or Solr and the other may be bm25(...): it is asked for its analyzers and terms,
    its scores, and other searches. The gap is the second minus the first. Settings that differ come
    in the order of their likely effect. What can be scored again is: tie rule, self-matches, unanswered queries, depth,
    and for a published number cut-off, capped recall, relevance level and gains. Nothing is downloaded.
    """
    from weir.api.comparisons import why

    explanation = why(*results, published=model, measure=measure, qrels=qrels, collection=collection)
    show_result(explanation, "json" if as_json else None)


UNDECIDED = 3
"""Exit code where the queries cannot tell."""


@click.command("gate")
@click.argument("paths", type=NAME, nargs=-1, required=True,
                metavar="[QRELS] BASELINE CANDIDATE")  # fmt: skip
@click.option("-m", "--measure", "measures", shell_complete=measure_names, multiple=True, metavar="MEASURE[:DROP]",
              help="A measure such as nDCG@10, with the drop that is accepted where it is another; repeatable.  "
                   "[default: those of a saved baseline, else nDCG@10]")  # fmt: skip
@click.option("--max-drop", type=float, default=0.01, show_default=True,
              help="The largest drop of a mean that is accepted.")  # fmt: skip
@click.option("--level", "confidence", type=float, default=0.95, show_default=True,
              help="How certain a pass and a failure must be.")  # fmt: skip
@click.option("--interval", default="t", show_default=True, help="t, percentile, bca or studentised.")
@by_option
@click.option("--collection", "collections", type=NAME, shell_complete=dataset_names, multiple=True,
              metavar="[NAME=]COLLECTION",
              help="The collection of run files, a name or a path, whose rules hold (self-matches, candidates, queries "
                   "without an answer) and whose column --by may name; of results folders where such a collection "
                   "lies now, repeatable.")  # fmt: skip
@fetch_option
@click.option("--common", is_flag=True,
              help="Compare on the queries that both sides have with the same judgments.")  # fmt: skip
@systems_option("Of results folders: this system; repeatable.")
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--p-mrr", "pairs", metavar="ORIGINAL:CHANGED",
              help="Of QRELS and runs: by p-MRR, of queries under two instructions, whose identifiers end so, such as "
                   "-og:-changed.")  # fmt: skip
@click.option("--allow-undecided", is_flag=True,
              help="Exit with 0 where no mean dropped by more but queries are too few to be sure.")  # fmt: skip
@click.option("--save", type=OUTPUT, metavar="FILE",
              help="Write the scores of [QRELS] CANDIDATE as a baseline to commit, and gate nothing.")  # fmt: skip
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--markdown", "form", flag_value="markdown", help="Tables for a pull request.")
@click.option("--junit", type=OUTPUT, metavar="FILE", help="Also write JUnit's XML there.")
@notes_option
def gate_command(
    paths: tuple[str, ...],
    measures: tuple[str, ...],
    max_drop: float,
    confidence: float,
    interval: str,
    by: str | None,
    collections: tuple[str, ...],
    fetch: bool,
    common: bool,
    systems: tuple[str, ...],
    drop_self: bool,
    pairs: str | None,
    allow_undecided: bool,
    save: Path | None,
    form: str | None,
    junit: Path | None,
    notes: bool,
) -> None:
    """Fail on a regression.

    A candidate fails where it is worse than the baseline by more than is allowed. BASELINE, CANDIDATE: each a run file,
    a results folder (or one cell of it), or a baseline that --save wrote; QRELS, the judgments, stand first where there
    is a run file. The exit code is 0 for pass: the one-sided lower bound of candidate minus baseline is at least minus
    the allowed drop, for every measure and dataset, so that a larger drop passes at most 1 time in 20. It is 1 for
    fail: a mean dropped by more, and that it dropped is certain, corrected for all that is gated together, so that
    where nothing dropped at most 1 gate in 20 fails. It is 3 where the queries are too few to tell, with how many would
    do; 2 for bad input. --by gates groups of queries too: a group can fail the gate, and need not pass it. Sides of
    different judgments are refused. The queries that lost most are named.
    """
    from weir.api.auditing import place_of
    from weir.api.comparisons import gate, save_baseline
    from weir.errors import BadValue
    from weir.experiment.comparing import GRAMMAR
    from weir.files.atomic import is_stream, write_text
    from weir.measures import Measure, parse_measure
    from weir.measures.evaluate import DEFAULT, Conventions
    from weir.stats.gate import gate_junit, gate_outcome

    parsed, drops = list[Measure](), dict[str, float]()
    for text in measures:
        name, colon, drop = text.rpartition(":")
        parsed.append(parse_measure(name if colon else text))
        if colon:
            try:
                drops[str(parsed[-1])] = float(drop)
            except ValueError:
                raise BadValue(f"-m {text}: the drop is '{drop}'; expected such as {name}:0.01") from None
    parsed = list(dict.fromkeys(parsed))
    conventions = Conventions(self_matches="drop") if drop_self else None
    if save is not None:
        if not 1 <= len(paths) <= 2:
            raise BadValue("--save takes judgments and a run, or one results folder")
        run = paths[1] if len(paths) == 2 else None
        saved = save_baseline(save, paths[0], run, measures=parsed or "nDCG@10", conventions=conventions or DEFAULT,
                              collection=place_of(collections), systems=systems, fetch=fetch)  # fmt: skip
        queries = sum(len(one.scores.queries) for one in saved.datasets.values())
        say(f"{save}: {saved.system} on {len(saved.datasets)} dataset{'s' * (len(saved.datasets) != 1)}, "
            f"{queries:,} queries" + ("" if is_stream(save) else f", {save.stat().st_size:,} bytes"))  # fmt: skip
        return
    if not 2 <= len(paths) <= 3:
        raise BadValue(f"found {len(paths)} paths; expected {GRAMMAR}")
    third = paths[2] if len(paths) == 3 else None
    allowed = {str(measure): drops.get(str(measure), max_drop) for measure in parsed} if drops else max_drop
    sides: tuple[Any, Any, Any] = (paths[0], paths[1], third)
    if pairs is not None:
        before, after = _by_pair(paths, pairs, conventions or DEFAULT, collections, measures).values()
        sides = (paths[0], before, after)
    verdicts = gate(
        *sides, parsed, max_drop=allowed, confidence=confidence, interval=interval, by=by,
        common=common, fetch=fetch, conventions=conventions, collection=collections, systems=systems,
    )  # fmt: skip
    say_notes(verdicts.notes(), notes)
    if junit is not None:
        write_text(junit, gate_junit(verdicts) + "\n")
    show_result(verdicts, form)
    outcome = gate_outcome(verdicts)
    undecided = outcome == "undecided" and not (
        allow_undecided and all(one.within for one in verdicts if not one.group)
    )
    click.get_current_context().exit(1 if outcome == "fail" else UNDECIDED if undecided else 0)


@click.command("power")
@click.argument("qrels", type=NAME)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@measures_option()
@click.option("--effect", "effects", multiple=True, type=float,
              help="A difference to plan for; repeatable.  [default: 0.01, 0.02, 0.05]")  # fmt: skip
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the two-sided test.")
@click.option("--test", default="permutation", show_default=True, help="permutation, t or bootstrap-shift.")
@click.option("--power", "wanted", type=float, default=0.8, show_default=True,
              help="Probability with which a true difference shall be found.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@collection_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@notes_option
def power_command(
    qrels: str,
    first: Path,
    second: Path,
    measures: tuple[str, ...],
    effects: tuple[float, ...],
    alpha: float,
    test: str,
    wanted: float,
    drop_self: bool,
    collection: str | None,
    as_json: bool,
    notes: bool,
) -> None:
    """Report detectable effects.

    The smallest difference that these queries can detect, and how many queries a smaller one needs. QRELS:
    judgments. FIRST, SECOND: two runs, such as a baseline and a variant; how much their differences vary from
    query to query decides. The difference is SECOND minus FIRST. Of one test alone; weir compare says what its test can
    show with its correction, which is less.
    """
    from weir.api.comparisons import power
    from weir.measures import DEFAULT_MEASURES
    from weir.measures.evaluate import Conventions

    plans = power(
        qrels,
        first,
        second,
        measures or DEFAULT_MEASURES,
        effects=effects or (0.01, 0.02, 0.05),
        alpha=alpha,
        power=wanted,
        test=test,
        conventions=Conventions(self_matches="drop" if drop_self else "keep"),
        collection=collection,
    )
    say_notes(plans.notes(), notes)
    show_result(plans, "json" if as_json else None)
