"""Run systems, and read results folders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir import api, experiment
from weir.cli.options import (
    FOLDER,
    OUTPUT,
    PATH,
    Given,
    budget_option,
    device_option,
    forms,
    max_ram_option,
    notes_option,
    option_of,
    options,
    price_option,
    published_as_option,
    quiet_option,
    refuse_beside,
    scorer_option,
    table_options,
)
from weir.cli.terminal import as_cell, present, say, show, tell, warnings_shown
from weir.errors import BadValue, WeirError

if TYPE_CHECKING:
    from weir.experiment.experiment import Experiment


@click.command("run")
@click.argument("experiment", required=False, type=PATH)
@options("weir.experiment.experiment.Experiment", "datasets systems measures k stages drop_self", "grid",
         datasets={"required": False}, systems={"required": False}, stages={"metavar": "PATH"})  # fmt: skip
@click.option("-o", "--out", type=FOLDER, default=Path("results"), show_default=True,
              help="The results folder; what is finished there is not repeated.")  # fmt: skip
@options("weir.api.results_folder.run_grid", "fetch on share labels", on={"metavar": "CLUSTER"},
         share={"metavar": "I/N"})  # fmt: skip
@device_option
@max_ram_option
@budget_option
@price_option
@table_options
@quiet_option
@notes_option
def run_command(
    experiment: Path | None,
    grid: Given,
    out: Path,
    given: Given,
    form: str | None,
    long: bool,
    explain: bool,
    quiet: bool,
    notes: bool,
) -> int:
    """Run systems on collections, and show their scores.

    EXPERIMENT: a TOML file with the keys datasets, systems, measures and k; options replace its entries.
    Every system runs on every dataset. Values in braces, such as 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})', give a
    system for each combination. After an interruption the same command continues. The tables are the same as
    of weir results. For a collection without judgments only the rankings are kept.
    """
    from weir.experiment.results import missing_results

    plan = _experiment(experiment, grid)
    names = [str(system) for system in plan.parsed_systems()]
    options = {"long": long, "explain": explain}
    titles = api.rows.labels_of(given.get("labels", ()), names)
    if experiment is not None and "systems" not in grid and not quiet:  # the file may be somebody else's
        for system in names:
            if "command(" in system:
                say(f"note: {experiment} starts a program: {system}")
    try:
        with api.progress.Progress(quiet) as progress, warnings_shown() as warned:
            _, rows = api.results_folder.run_grid(plan, out, progress, **given)
    except WeirError:
        with suppress(WeirError):  # what is wrong may be the grid itself
            finished = plan.finished(out) if out.exists() else []
            if finished:
                shown = api.results_folder.shown_rows(finished, titles=titles)[1]
                present(replace(shown, remarks=()), form, options=options)
                for missing in missing_results(out):
                    say(f"note: {missing}")
        raise
    told = tuple(note for note in rows.remarks if not note.text.endswith(tuple(warned)))
    code = present(replace(rows, remarks=told), form, notes, options)
    say(f"results: {out}")
    return code


def _experiment(path: Path | None, grid: Given) -> Experiment:
    context, of = click.get_current_context(), experiment.experiment.Experiment
    if path is not None and not path.is_file() and option_of(str(path), context.command) not in ("", "-o"):
        raise click.UsageError(f"Got unexpected extra argument ({path})", context)
    return replace(of.read(path) if path is not None else of((), ()), **grid)


@click.command("plan")
@click.argument("experiment", required=False, type=PATH)
@options("weir.experiment.experiment.Experiment", "datasets systems k", "grid",
         datasets={"required": False}, systems={"required": False})  # fmt: skip
@device_option
@max_ram_option
@price_option
@forms("json")
@click.option("--only-stages", is_flag=True, help="Only the stages and what they share; nothing is probed.")
@options("weir.api.results_folder.plan", "precise on machine_price", on={"metavar": "CLUSTER"})
@quiet_option
def plan_command(
    experiment: Path | None, grid: Given, form: str | None, only_stages: bool, given: Given, quiet: bool
) -> None:
    """Estimate time and cost.

    Lists the stages that weir run would compute, with their time, disk and memory. EXPERIMENT: a TOML file as weir
    run takes it. Each stage runs once on a few documents of each collection, or on texts of the published length if
    it is not here, all within a minute; the cost is extrapolated to the whole collection, as a range. Embedding APIs
    and language models are not called: prompts and tokens are estimated, and requests that several systems share
    count once in the last line.
    """
    asked = _experiment(experiment, grid)
    systems = asked.parsed_systems()
    if systems:
        present(api.results_folder.plan_stages(systems), form)
    if only_stages:
        return
    with api.progress.Progress(quiet) as progress:
        plans = api.results_folder.plan(asked.datasets, systems, asked.k, progress=progress, **given)
    present(plans, form)


@click.command("results")
@click.argument("folder", type=PATH, default=Path("results"))
@options("weir.api.results_folder.results", "measures datasets systems by collection fetch labels",
         collection={"metavar": "[NAME=]COLLECTION"})  # fmt: skip
@table_options
@click.option(
    "--per-query", is_flag=True, help="A line for each dataset, system, measure and query, at full precision."
)
@click.option("--provenance", is_flag=True, help="What made each result, stage by stage; with --json whole.")
@click.option("--published", metavar="NAME",
              help="Lay the published scores of NAME beside: a publisher such as MTEB or 'BEIR paper', words that "
                   "names of published models have, or a file or folder of MTEB's results.")  # fmt: skip
@published_as_option
@scorer_option
@notes_option
def results_command(
    folder: Path,
    given: Given,
    form: str | None,
    long: bool,
    explain: bool,
    per_query: bool,
    provenance: bool,
    published: str | None,
    names: Given,
    scorer: str | None,
    notes: bool,
) -> int:
    """Show the scores in a folder written by weir run.

    Several datasets and systems make a grid for each measure: the best of each dataset is marked, systems
    that share a letter cannot be told apart, and the last column is the mean over datasets, a group counting
    as one. Otherwise, and with --long, each mean has its own line, with its 95% interval over
    queries. Datasets and systems are in the order in which they were first finished. Tables fit the terminal;
    a pipe gets whole rows unless COLUMNS is set. --per-query, --provenance, --published and --scorer replace
    the tables.
    """
    face, chosen = (
        api.results_folder,
        {name: given[name] for name in ("datasets", "systems") if name in given},
    )
    measures = {"measures": given["measures"]} if "measures" in given else {}
    for option, used in (
        ("--scorer", scorer is not None),
        ("--published", published is not None),
        ("--provenance", provenance),
        ("--per-query", per_query),
    ):
        if used:
            refuse_beside(option, {"--long": long and option != "--published", "--explain": explain})
    if names and published is None:
        raise BadValue("--published-as names what --published lays beside; give both")
    if scorer is not None:
        if measures or given.keys() & {"by", "labels"} or provenance or form not in (None, "json"):
            raise BadValue(
                "--scorer birco has measures of its own and writes text or --json; leave out the rest"
            )
        return present(face.birco_of_folder(folder, **given), form, notes)
    if published is not None:
        if "by" in given or per_query or provenance or "labels" in given:
            raise BadValue("--published lays scores of all queries beside each other; leave out the rest")
        beside = face.results_beside(folder, published, **measures, **chosen, **names)
        return present(beside, form, notes, {"long": long})
    if provenance:
        return present(face.provenance(folder, **chosen), form, notes)
    if per_query:
        if "by" in given or form not in (None, "json", "csv"):
            raise BadValue(
                "--per-query writes plain lines, --csv or --json, of all queries; leave out the rest"
            )
        scores, remarks = face.results_by_query(folder, **measures, **chosen)
        show(api.scoring.values_text(scores.items(), form, as_cell), styled=False)
        return tell(remarks, details=notes)
    rows = face.results(folder, **given)
    return present(rows, form, notes, {"long": long, "explain": explain})


@click.command("efficiency")
@click.argument("folder", type=PATH, default=Path("results"))
@options("weir.api.results_folder.efficiency", "measure")
@forms("json", "csv", "latex", "markdown")
def efficiency_command(folder: Path, given: Given, form: str | None) -> int:
    """Report speed and memory.

    Lists the cost of each system beside its quality. FOLDER: a results folder of weir run. Columns are
    documents indexed and queries answered in a second, size of the index, milliseconds of single queries, and
    memory. Marks show the systems that no other beats, and times that leave out work done earlier.
    """
    return present(api.results_folder.efficiency(folder, **given), form)


@click.command("verify")
@click.argument("folder", type=PATH, default=Path("results"))
@forms("json")
@options("weir.api.results_folder.verify", "fetch collection", collection={"metavar": "[NAME=]COLLECTION"})
@quiet_option
def verify_command(folder: Path, form: str | None, given: Given, quiet: bool) -> int:
    """Check a results folder.

    Hashes every file again, and checks every mean against the values of its queries and every name against
    the declared settings. Scores every ranking again if its collection is on this machine with the same
    documents, queries and judgments. Prints a line for each result: sound, or its mismatches. The folder may
    be somebody else's. The network is not used and nothing is written. Exit code 1 if something does not
    match, 3 if not all could be checked.
    """
    with api.progress.Progress(quiet) as progress:
        verdicts = api.results_folder.verify(folder, progress=progress, **given)
    return present(verdicts, form)


@click.command("reproduce")
@click.argument("folder", type=PATH, default=Path("results"))
@options("weir.api.results_folder.reproduce", "model tolerance nearest datasets systems collection",
         model={"flags": "--published"}, tolerance={"metavar": "DECIMALS"}, nearest={"flags": "--all"},
         collection={"metavar": "[NAME=]COLLECTION"})  # fmt: skip
@click.option("--page", type=OUTPUT, metavar="FILE",
              help="Write a page, .md or .html: two commands for each result that claims a published score, what came "
                   "out, when, where and by which version, from the folder's records.")  # fmt: skip
@published_as_option
@forms("json", "latex", "markdown")
def reproduce_command(folder: Path, given: Given, names: Given, page: Path | None, form: str | None) -> int:
    """Check published scores.

    FOLDER: a results folder. Each mean is compared with the published scores that its system should
    reproduce, on the same collection and split. It is reproduced if the two agree to the last printed
    decimal, and explained if they agree after scoring by a rule that the publisher documents, such as another
    order of ties. The exit code is 0 if every score is reproduced or explained or nothing is published, 1 if a score
    differs, 2 for bad input. It is 3 if no score differs but some are left open: on other data than the published,
    or on a collection that is not here to be scored again, unless the rankings show that neither ties nor the
    publisher's rules can explain the difference.
    """
    checks = api.results_folder.reproduce(folder, **given, **names)
    code = present(checks, form)
    if page is not None:
        api.results_folder.reproduction_page(folder, checks, page, given.get("model"), **names)
        say(f"page: {page}")
    return code
