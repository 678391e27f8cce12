"""Commands that run systems and read results folders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.options import (
    FOLDER,
    NAME,
    OUTPUT,
    PATH,
    budget_option,
    by_option,
    dataset_names,
    datasets_option,
    fetch_option,
    label_option,
    max_ram_option,
    measure_names,
    measures_option,
    notes_option,
    price_option,
    scorer_option,
    systems_option,
    table_options,
)
from weir.cli.terminal import display_of, say, say_notes, show, show_result
from weir.errors import WeirError

if TYPE_CHECKING:
    from weir.experiment.experiment import Experiment


@click.command("run")
@click.argument("experiment", required=False, type=PATH)
@datasets_option(
    "A catalogue name, a group, a folder, a golden set, hf:... or irds:..., the split behind a colon where it is not "
    "the usual one, as in scifact:train; repeatable."
)
@systems_option(
    "A system such as 'bm25(k1=1.2, b=0.75)', or a grid such as 'bm25(k1={0.9, 1.2})'; repeatable."
)
@measures_option()
@click.option("-k", "depth", type=int, help="Documents returned for each query, at most.  [default: 1000]")
@click.option("-o", "--out", "output", type=FOLDER, default=Path("results"), show_default=True,
              help="The results folder; what is finished there is not repeated.")  # fmt: skip
@click.option(
    "--fetch", is_flag=True, help="Fetch collections that are not here first, as weir data fetch does."
)
@click.option("--stages", metavar="PATH",
              help="Where other grids too find indexes and rankings: a folder, or s3://bucket/prefix.  "
              "[default: the results folder]")  # fmt: skip
@click.option(
    "--drop-self", is_flag=True, help="Leave out documents that are the query itself (ArguAna, Quora)."
)
@click.option(
    "--device",
    help="Where neural models run: cpu, cuda, cuda:1, or several such as cuda:0,cuda:1, on which documents are "
    "encoded side by side.  [default: a GPU where there is one]",
)
@max_ram_option
@click.option("--on", metavar="CLUSTER",
              help="Run on a cluster: ray (RAY_ADDRESS, else one on this machine), or ray://HOST:10001.")  # fmt: skip
@click.option("--share", metavar="I/N",
              help="Be one of N processes on one folder: begin with the I-th part, then help the others.")  # fmt: skip
@budget_option
@price_option
@label_option
@table_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@notes_option
def run_command(
    experiment: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    depth: int | None,
    output: Path,
    fetch: bool,
    stages: str | None,
    drop_self: bool,
    device: str | None,
    on: str | None,
    share: str | None,
    budget: str | None,
    price: str | None,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    quiet: bool,
    notes: bool,
) -> None:
    """Run systems on collections, and show their scores.

    EXPERIMENT: a TOML file with the keys datasets, systems, measures and k; options replace its entries.
    Every dataset is answered by every system; values in braces, such as 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})', stand
    for a system of each combination. Killed at any moment, the same command continues. The tables are those
    of weir results. Of a collection without judgments the rankings are kept.
    """
    from weir.api.progress import Progress
    from weir.api.results_folder import ShownResults, run_shown
    from weir.settings import use_budget, use_device

    if device is not None:
        use_device(device)
    use_budget(budget, price)
    plan = replace(
        _experiment(experiment, datasets, systems, measures, depth), stages=stages, drop_self=drop_self
    )
    names = [str(system) for system in plan.parsed_systems()] if labels else []
    display = display_of(form, long, labels, names)
    if experiment is not None and not systems and not quiet:  # the file may be somebody else's
        for system in map(str, plan.parsed_systems()):
            if "command(" in system:
                say(f"note: {experiment} starts a program: {system}")
    try:
        with Progress(quiet) as progress:
            results = run_shown(plan, output, progress, share, on, fetch)
    except WeirError:
        with suppress(WeirError):  # what is wrong may be the grid itself
            finished = plan.finished(output) if output.exists() else []
            if finished:
                show(ShownResults.of(finished).shown(display)[0], display.form == "text")
        raise
    text, remarks = results.shown(display)
    if text:
        show(text, display.form == "text")
    say_notes(remarks, notes)
    say(f"results: {output}")


def _experiment(
    path: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    depth: int | None,
) -> Experiment:
    """The experiment of a file, or an empty one, with what the options say instead."""
    from weir.experiment.experiment import Experiment

    read = Experiment.read(path) if path is not None else Experiment((), ())
    return replace(
        read,
        datasets=datasets or read.datasets,
        systems=systems or read.systems,
        measures=measures or read.measures,
        k=read.k if depth is None else depth,
    )


@click.command("plan")
@click.argument("experiment", required=False, type=PATH)
@datasets_option("As for weir run; repeatable.")
@systems_option("As for weir run; repeatable.")
@click.option("-k", "depth", type=int, help="Documents returned for each query, at most.  [default: 1000]")
@click.option("--device", help="Where neural models run: cpu, cuda or cuda:1.")
@max_ram_option
@price_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@click.option(
    "--only-stages",
    "graph_only",
    is_flag=True,
    help="Only the stages and what they share; nothing is probed.",
)
@click.option("--precise", is_flag=True,
              help="Run each system by itself on growing samples, however long that takes.")  # fmt: skip
@click.option("--sbatch", type=OUTPUT,
              help="Write a script for Slurm whose jobs share the grid on one folder.")  # fmt: skip
@click.option("--jobs", type=int, default=8, show_default=True, help="How many jobs, with --sbatch.")
@click.option("-o", "--out", "output", type=FOLDER, default=Path("results"), show_default=True,
              help="The results folder of the jobs, with --sbatch.")  # fmt: skip
@click.option("--on", metavar="CLUSTER",
              help="Say what a cluster takes: ray (RAY_ADDRESS, else this machine), or ray://HOST:10001.")  # fmt: skip
@click.option("--machine-price", type=float, help="Dollars for an hour of a machine, with --on.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def plan_command(
    experiment: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    depth: int | None,
    device: str | None,
    price: str | None,
    as_json: bool,
    graph_only: bool,
    precise: bool,
    sbatch: Path | None,
    jobs: int,
    output: Path,
    on: str | None,
    machine_price: float | None,
    quiet: bool,
) -> None:
    """Estimate time and cost.

    The stages that weir run would make, and their time, disk and memory. EXPERIMENT: a TOML file as weir run takes it.
    The systems are run on a few documents of every collection, or on texts of the published length where the collection
    is not here, each stage once and all within a minute, and the cost is extended to all of it, with a range. Embedding
    APIs and language models are not asked: prompts and tokens are estimated, and the last line counts what several
    systems ask alike once.
    """
    from weir.api.progress import Progress
    from weir.api.results_folder import plan, plan_stages
    from weir.settings import use_budget, use_device

    if device is not None:
        use_device(device)
    use_budget(None, price)
    grid = _experiment(experiment, datasets, systems, (), depth)
    form = "json" if as_json else None
    every = grid.parsed_systems()
    if every:
        show_result(plan_stages(every), form)
    if graph_only:
        return
    with Progress(quiet) as progress:
        plans = plan(grid.datasets, every, grid.k, precise, progress, on, machine_price)
    show_result(plans, form)
    say_notes(plans.notes())
    if sbatch is not None:
        from weir.experiment.plan import slurm_script
        from weir.files.atomic import write_text

        words = ["weir", "run", *([str(experiment)] if experiment is not None else [])]
        words += [word for name in datasets for word in ("-d", name)]
        words += [word for name in systems for word in ("-s", name)]
        words += [
            *(["-k", str(depth)] if depth is not None else []),
            *(["--device", device] if device else []),
        ]
        write_text(sbatch, slurm_script(plans, [*words, "-o", str(output)], jobs))
        say(f"jobs: sbatch {sbatch}")


@click.command("results")
@click.argument("folder", type=PATH, default=Path("results"))
@measures_option("Show this measure; repeatable.")
@datasets_option("Show this dataset, one split of it (NAME:SPLIT) or group; repeatable.")
@systems_option("Show this system; repeatable.")
@by_option
@click.option("--collection", "collections", type=NAME, shell_complete=dataset_names, multiple=True,
              metavar="[NAME=]COLLECTION",
              help="Where a collection of --by's column or --scorer's judgments lies now, if not where it was; "
                   "repeatable.")  # fmt: skip
@fetch_option
@label_option
@table_options
@click.option(
    "--per-query", is_flag=True, help="A line for each dataset, system, measure and query, at full precision."
)
@click.option("--provenance", is_flag=True, help="What made each result, stage by stage; with --json whole.")
@click.option("--published", metavar="NAME",
              help="Lay the published scores of NAME beside: a publisher such as MTEB or 'BEIR paper', or words that "
                   "names of published models have.")  # fmt: skip
@scorer_option
@notes_option
def results_command(
    folder: Path,
    measures: tuple[str, ...],
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    by: str | None,
    collections: tuple[str, ...],
    fetch: bool,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    per_query: bool,
    provenance: bool,
    published: str | None,
    scorer: str | None,
    notes: bool,
) -> None:
    """Show the scores in a folder written by weir run.

    Several datasets and systems make a grid for each measure: the best of each dataset is marked, systems that share
    a letter cannot be told apart, and the last column is the mean over datasets, a group counting as one. Otherwise,
    and with --long, each mean stands with its 95% bootstrap interval over queries. Datasets and systems come in the
    order in which they were first finished. Tables fit the terminal; a pipe gets whole rows unless COLUMNS is set.
    """
    from weir.api.results_folder import birco_of_folder, results_beside, results_shown
    from weir.api.results_folder import provenance as provenance_of
    from weir.errors import BadValue

    if scorer is not None:
        if measures or by or provenance or form not in (None, "json"):
            raise BadValue(
                "--scorer birco has measures of its own and writes text or --json; leave out the rest"
            )
        figures = birco_of_folder(folder, datasets, systems, collections, fetch)
        show_result(figures, form)
        say_notes(figures.notes(), notes)
    elif published is not None:
        if by or per_query or provenance or labels:
            raise BadValue("--published lays scores of all queries beside each other; leave out the rest")
        scores = results_beside(folder, published, measures, datasets, systems)
        show_result(scores, form)
        say_notes(scores.notes(), notes)
    elif provenance:
        records = provenance_of(folder, datasets, systems)
        show_result(records, form)
        say_notes(records.notes(), notes)
    elif per_query:
        from weir.cli.scoring import say_per_query

        if by or form not in (None, "json"):
            raise BadValue("--per-query writes plain lines, or --json, of all queries; leave out the rest")
        shown_results = results_shown(folder, measures, datasets, systems)
        say_per_query(shown_results.scores(), form == "json")
        say_notes(shown_results.rows.notes(), notes)
    else:
        shown_results = results_shown(folder, measures, datasets, systems, by, collections, fetch)
        display = display_of(form, long, labels, [cell.label for cell in shown_results.cells])
        text, remarks = shown_results.shown(display)
        show(text, display.form == "text")
        say_notes(remarks, notes)


@click.command("efficiency")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="The quality shown, such as nDCG@10.  [default: nDCG@10, or the first]",
)
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="Comma-separated values, at full precision.")
@click.option("--latex", "form", flag_value="latex", help="A LaTeX table.")
@click.option("--markdown", "form", flag_value="markdown", help="A Markdown table.")
def efficiency_command(folder: Path, measure: str | None, form: str | None) -> None:
    """Report speed and memory.

    What each system costs, next to its quality. FOLDER: a results folder of weir run. Documents indexed and queries
    answered in a second, size of the index, milliseconds of single queries, memory; marked are the systems that no
    other beats, and times that leave out work which was done before.
    """
    from weir.api.results_folder import efficiency

    costs = efficiency(folder, measure)
    show_result(costs, form)
    say_notes(costs.notes())


NOT_WHOLE = 3
"""Exit code where nothing was found that does not match, and not all could be checked."""


@click.command("verify")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@fetch_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def verify_command(context: click.Context, folder: Path, as_json: bool, fetch: bool, quiet: bool) -> None:
    """Check a results folder.

    Every file is hashed again, every mean held against the values beside it, every name against what was declared, and
    every ranking scored again by the judgments of its collection, where that is on this machine with the same
    documents, queries and judgments. One line for each cell: sound, or what does not match. The folder may be somebody
    else's: nothing is asked of the network and nothing is written. Exit code 1 where something does not match, 3 where
    not all could be checked.
    """
    from weir.api.progress import Progress
    from weir.api.results_folder import verify

    with Progress(quiet) as progress:
        verdicts = verify(folder, fetch, progress)
    show_result(verdicts, "json" if as_json else None)
    if not all(one.sound for one in verdicts):
        context.exit(1)
    if not all(one.whole for one in verdicts):
        context.exit(NOT_WHOLE)


@click.command("reproduce")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option(
    "--published", "model", help="Take the systems to be this published model, such as 'baseline bm25s'."
)
@click.option(
    "--tolerance", type=int, metavar="DECIMALS", help="Compare so many decimals, where more are printed."
)
@click.option("--all", "nearest", is_flag=True, help="Also the nearest published scores of other systems.")
@click.option("--page", type=OUTPUT, metavar="FILE",
              help="Write a page, .md or .html: two commands for each result that claims a published score, what came "
                   "out, when, where and by which version, from the folder's records.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def reproduce_command(
    folder: Path, model: str | None, tolerance: int | None, nearest: bool, page: Path | None, as_json: bool
) -> None:
    """Check published scores.

    Results are compared with published scores. FOLDER: a results folder. Each mean is compared with the published
    scores that its system claims to be, on the same collection and split; it is reproduced when the two agree to the
    last printed decimal, and explained when they do after scoring by a rule that the publisher documents, such as
    another order of ties. The exit code is 0 when all that is claimed is reproduced or explained or nothing is
    published, 1 when something is off, 2 for bad input.
    """
    from weir.api.results_folder import reproduce, reproduction_page

    checks = reproduce(folder, model, tolerance, nearest)
    show_result(checks, "json" if as_json else None)
    if page is not None:
        reproduction_page(folder, checks, page, model)
        say(f"page: {page}")
    click.get_current_context().exit(1 if any(one.outcome == "off" for one in checks) else 0)
