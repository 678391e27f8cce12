"""Compare systems, and explain and gate differences."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

import weir
from weir import api, experiment
from weir.cli.options import (
    NAME,
    OUTPUT,
    PATH,
    Given,
    forms,
    notes_option,
    options,
    refuse_beside,
)
from weir.cli.terminal import EXIT_CODES, present, say, say_notes
from weir.core.rounding import counted
from weir.errors import BadValue
from weir.files.atomic import is_stream


def _no_path(context: click.Context, option: click.Parameter, names: str | None) -> str | None:
    if names and (Path(names).is_file() or next(Path(names).glob("*/*/stage.json"), None)):
        raise click.BadParameter(f"{names} is a path; write what is compared before --factors")
    return names


p_mrr_option = click.option(
    "--p-mrr", "signs", metavar="ORIGINAL:CHANGED",
    help="Of QRELS and runs: by p-MRR, of queries under two instructions, whose identifiers end so, such as "
         "-og:-changed.")  # fmt: skip


@click.command("compare")
@click.argument("paths", type=NAME, nargs=-1, required=True)
@options(
    "weir.api.comparisons.compare",
    "measures baseline factors by collection datasets only labels noise",
    factors={"multiple": False, "is_flag": False, "flag_value": "", "metavar": "[NAMES]", "callback": _no_path,
             "help": "Effects of settings in which systems differ, all or those named: objective,depth."},
    collection={"metavar": "[NAME=]COLLECTION"},
)  # fmt: skip
@options("weir.stats.compare.ComparisonMethod", "test correct interval level margin draws seed", "method",
         correct={"show_default": "holm; with --by bh"})  # fmt: skip
@options("weir.measures.evaluate.Conventions", "ties missing self_matches", "conventions",
         ties={"type": click.Choice(["trec", "trec9", "expected"]),
               "help": "Equal scores: by identifier, so as floats, or the mean over their orders."})  # fmt: skip
@p_mrr_option
@forms("json", "csv", "latex", "markdown", "html")
@click.option("--long", is_flag=True, help="Every pair on every dataset, also where there are many.")
@click.option("--explain", is_flag=True, help="Say how the numbers were made.")
@notes_option
def compare_command(
    paths: tuple[str, ...],
    given: Given,
    method: Given,
    conventions: Given,
    signs: str | None,
    form: str | None,
    long: bool,
    explain: bool,
    notes: bool,
) -> int:
    """Compare systems, with significance tests.

    PATHS: judgments and two or more runs, or a folder of them; or a table of values by query, as weir eval
    --per-query --csv writes it; or a results folder, whose systems are compared on each dataset and across
    datasets. A difference is the later system minus the earlier, or each minus the baseline. Each verdict
    is better, worse or not separable, with the smallest difference that the queries could have shown. Of
    three or more runs, one that cannot be scored is named and left out; the exit code is 2 then. Systems
    that share a letter cannot be told apart. With --by, the macro mean over the groups and each group
    follow, and the share of false verdicts on groups is held at 1 minus the level. Several datasets make a
    grid for each measure, followed by the comparison across them; --long shows each dataset.

    With --factors the systems are a grid, such as weir run -s 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})' makes. Each level
    of a factor is compared with the others, averaged over the other factors, and every pair of factors is tested for
    an interaction. Intervals and tests hold for all effects together. Shares of the variance follow.
    """
    compared: tuple[object, ...] = paths
    if signs is not None:
        compared = (
            api.comparisons.p_mrr_beside(
                paths, signs, conventions, given.get("collection"), given.get("measures", ())
            ),
        )
    comparisons = api.comparisons.compare(*compared, **given, method=method, conventions=conventions)
    if "factors" in given:
        refuse_beside("--factors", {"--explain": explain})
    detail = {"long": long} if "factors" in given else {"long": long, "explain": explain}
    return present(comparisons, form, notes, detail)


@click.command("diff")
@click.argument("paths", type=NAME, nargs=-1, required=True, metavar="[QRELS] FIRST SECOND")
@options("weir.api.comparisons.diff", "measure collection top", top={"type": click.IntRange(min=0)})
@options("weir.measures.evaluate.Conventions", "self_matches", "conventions")
@forms("json")
def diff_command(paths: tuple[str, ...], given: Given, conventions: Given, form: str | None) -> int:
    """List queries won and lost.

    Compares judgments and two runs, or two folders such as results/scifact/bm25-fa19b4d424; differences are
    the second minus the first. Each of the largest differences names the relevant documents whose ranks
    changed most. Texts are shown if the collection is given or, for folders, on this machine; nothing is
    downloaded.
    """
    if not 2 <= len(paths) <= 3:
        raise BadValue(
            f"found {counted(len(paths), 'path')}; expected judgments and two runs, or two result folders"
        )
    return present(api.comparisons.diff(*paths, **given, conventions=conventions), form)


@click.command("why")
@click.argument("results", type=NAME, nargs=-1, required=True)
@options("weir.api.comparisons.why", "published measure qrels collection", qrels={"type": NAME})
@forms("json")
def why_command(results: tuple[str, ...], given: Given, form: str | None) -> int:
    """Explain a difference.

    Lists the settings that can be the reason why two numbers differ, likeliest first. RESULTS: two folders such as
    results/scifact/bm25-fa19b4d424, or judgments and two runs, files or such folders. A single folder is compared
    with the published model that its system should reproduce, or that --published names. With --collection, RESULTS
    are two systems: an index of Elasticsearch, OpenSearch or Solr, which is asked for its analyzers, terms and
    scores, and bm25(...) or another such index. The gap is the second minus the first. Results are scored again by
    other rules if possible: tie rule, self-matches, unanswered queries, depth, and for a published number cut-off,
    capped recall, relevance level and gains. Nothing is downloaded.
    """
    return present(api.comparisons.why(*results, **given), form)


@click.command("gate")
@click.argument("paths", type=NAME, nargs=-1, required=True, metavar="[QRELS] BASELINE CANDIDATE")
@options(
    "weir.api.comparisons.gate",
    "measures max_drop confidence interval by collection fetch common systems noise",
    measures={"metavar": "MEASURE[:DROP]",
              "help": "A measure such as nDCG@10, with the drop that is accepted where it is another; repeatable.  "
                      "[default: those of a saved baseline, else nDCG@10]"},
    confidence={"flags": "--level"},
    collection={"metavar": "[NAME=]COLLECTION"},
)  # fmt: skip
@options("weir.measures.evaluate.Conventions", "self_matches", "conventions")
@p_mrr_option
@click.option("--allow-undecided", is_flag=True,
              help="Exit with 0 where no mean dropped by more but queries are too few to be sure.")  # fmt: skip
@click.option("--save", type=OUTPUT, metavar="FILE",
              help="Write the scores of [QRELS] CANDIDATE as a baseline to commit, and gate nothing.")  # fmt: skip
@click.option("--sequential", "state", type=PATH, metavar="FILE",
              help="Look as often as you want while queries come in: FILE keeps what was seen, and verdicts hold over "
                   "all looks.")  # fmt: skip
@forms("json", "markdown")
@click.option("--junit", type=OUTPUT, metavar="FILE", help="Also write JUnit's XML there.")
@notes_option
def gate_command(
    paths: tuple[str, ...],
    given: Given,
    conventions: Given,
    signs: str | None,
    allow_undecided: bool,
    save: Path | None,
    state: Path | None,
    form: str | None,
    junit: Path | None,
    notes: bool,
) -> int:
    """Fail on a regression.

    A candidate fails if it is worse than the baseline by more than is allowed. BASELINE, CANDIDATE: each a
    run file, a folder of run files (paired by name), a results folder (or one result in it), or a baseline
    that --save wrote; QRELS, the judgments, come first if there is a run file.

    Exit code 0, pass: for every measure and dataset, the one-sided lower bound of candidate minus baseline is at
    least minus the allowed drop, so that a larger drop passes at most 1 time in 20. 1, fail: a mean surely dropped,
    by more than is allowed; if nothing dropped, at most 1 gate in 20 fails. 2: bad input.
    3: too few queries to tell, with the number that would do. If all of 5 or more queries changed alike, that change
    decides.

    --by gates groups of queries too: a group can fail the gate, and need not pass it. Sides of different
    judgments are refused. The queries that lost most are named.
    """
    names, drops = api.comparisons.measures_with_drops(given.pop("measures", ()))
    if save is not None:
        return _save(paths, save, names, conventions, given)
    if drops:
        others = given.get("max_drop", api.comparisons.MAX_DROP)
        given["max_drop"] = {name: drops.get(name, others) for name in names}
    if not 2 <= len(paths) <= 3:
        raise BadValue(f"found {counted(len(paths), 'path')}; expected {experiment.comparing.GRAMMAR}")
    first, second, third = cast("tuple[object, ...]", (*paths, None))[:3]
    if signs is not None:
        by_run = api.comparisons.p_mrr_beside(paths, signs, conventions, given.get("collection"), names)
        second, third = by_run.values()
    sides, rules = (first, second, third, names), {**given, "conventions": conventions or None}
    if state is not None:
        if junit is not None or given.keys() & {"interval", "noise"}:
            raise BadValue("--sequential has bounds of its own: leave out --interval, --noise and --junit")
        looked_at = weir.gate_sequentially(state, *sides, **rules)
        code, within = present(looked_at, form, notes), [one.within for one in looked_at if not one.group]
    else:
        verdicts = api.comparisons.gate(*sides, **rules)
        if junit is not None:
            api.comparisons.write_junit(verdicts, junit)
        code, within = present(verdicts, form, notes), [one.within for one in verdicts if not one.group]
    return 0 if allow_undecided and code == EXIT_CODES["undecided"] and all(within) else code


def _save(
    paths: tuple[str, ...], save: Path, names: tuple[str, ...], conventions: Given, given: Given
) -> int:
    if not 1 <= len(paths) <= 2:
        raise BadValue("--save takes judgments and a run, or one results folder")
    judgments, run = (*paths, None)[:2]
    kept = {name: given[name] for name in ("systems", "fetch") if name in given}
    place = api.auditing.place_of(given.get("collection"))
    saved = api.comparisons.save_baseline(save, judgments, run, names, conventions, place, **kept)
    queries = sum(len(one.scores.queries) for one in saved.datasets.values())
    size = "" if is_stream(save) else f", {save.stat().st_size:,} bytes"
    datasets = f"{counted(len(saved.datasets), 'dataset')}, {counted(queries, 'query', 'queries')}"
    say(f"{save}: {saved.system} on {datasets}{size}")
    say_notes(api.comparisons.baseline_notes(saved))
    return 0


@click.command("power")
@click.argument("qrels", type=NAME)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@options(
    "weir.api.comparisons.power",
    "measures effects alpha test power collection",
    effects={"flags": "--effect"},
)
@options("weir.measures.evaluate.Conventions", "self_matches", "conventions")
@forms("json")
@notes_option
def power_command(
    qrels: str, first: Path, second: Path, given: Given, conventions: Given, form: str | None, notes: bool
) -> int:
    """Report detectable effects.

    Reports the smallest difference that these queries can detect, and how many queries a smaller one needs. QRELS:
    judgments. FIRST, SECOND: two runs, such as a baseline and a variant; differences are SECOND minus FIRST, and
    their variance over queries decides. This holds for a single test; weir compare reports what its test can show
    with its correction, which is less.
    """
    plans = api.comparisons.power(qrels, first, second, **given, conventions=conventions)
    return present(plans, form, notes)
