"""Fetch, convert, describe and sample collections (`weir data`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from weir import api, datasets
from weir.cli.options import (
    FOLDER,
    NAME,
    OUTPUT,
    PATH,
    Given,
    dataset_names,
    forms,
    options,
    quiet_option,
    system_names,
)
from weir.cli.terminal import present, say, show_results, show_tables, tell


@click.command("fetch")
@click.argument("names", type=NAME, shell_complete=dataset_names, nargs=-1, required=True)
@quiet_option
def fetch_command(names: tuple[str, ...], quiet: bool) -> None:
    """Download collections, verify them, and prepare them.

    NAMES: collections or groups of the catalogue (weir list datasets), or references such as hf:mteb/nfcorpus,
    fetched at their newest commit. An interrupted download continues. For a collection under licence, how to
    obtain it is printed.
    """
    for name in names:  # before anything is downloaded
        datasets.fetch.refuse_unknown(name)
    progress = api.progress.Progress(quiet)
    for name in names:
        with progress:
            fetched = datasets.fetch.fetch(name, partial(progress, f"fetch {name}"))
        for dataset in fetched:
            click.echo(f"{dataset.name}: {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries")


@click.command("convert")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=OUTPUT)
@options("weir.files.write.convert", "kind lists collapse", collapse={"metavar": "SEP|FILE"})
@quiet_option
def convert_command(source: Path, target: Path, given: Given, quiet: bool) -> None:
    """Convert rankings or judgments between formats.

    The names give the formats: .trec (.txt, .run, .qrels), .json, .csv, .tsv, .parquet, .arrow (.feather,
    .ipc), .pickle; except for tables, .gz or .zst after them packs the file. No code in a pickle is run.
    Every number survives in full. OUT appears whole or not at all. Data that its format cannot hold is
    refused, except origins of judgments, unrelated columns and queries without documents, whose loss is reported.
    --collapse '#' makes documents of passages, each with the score of its best passage.
    """
    from weir.files.write import convert

    with api.progress.Progress(quiet) as progress:
        conversion = convert(source, target, progress=progress, **given)
    show_tables(conversion.tables())


@click.command("stats")
@click.argument("names", type=NAME, shell_complete=dataset_names, nargs=-1, required=True)
@options("weir.api.results_folder.describe", "split")
@forms("json")
def stats_command(names: tuple[str, ...], given: Given, form: str | None) -> None:
    """Describe collections: sizes, judgments, duplicates, damage.

    NAMES: catalogue names, groups, folders, golden sets, references, or files of judgments alone. A
    collection without documents, queries or judgments is described by its other parts. Everything is counted
    from the files.
    """
    alone = [name for name in names if api.results_folder.is_judgments(name)]
    for name in [*alone, *(name for name in names if name not in alone)]:
        face = api.results_folder
        cards = face.describe_judgments(name) if name in alone else face.describe(name, **given)
        for number in range(len(cards)):
            show_results(cards[number : number + 1], form)
            if form is None:
                click.echo()
        tell(cards.notes(), details=True)


@click.command("subset")
@click.argument("dataset", type=NAME)
@options("weir.api.auditing.subset", "docs out systems measure seed",
         out={"flags": "-o --out", "type": FOLDER})  # fmt: skip
@forms("json")
def subset_command(dataset: str, given: Given, form: str | None) -> int:
    """Write a small collection, and report how well it ranks systems.

    Queries are drawn as long as their judged documents take half of the room; BM25's first answers and documents drawn
    at random fill the rest. Then systems run on both, and their orders are compared over resamples of the queries.
    """
    return present(api.auditing.subset(dataset, **given, progress=say), form)


@click.command("align")
@click.argument("dataset", type=NAME, shell_complete=dataset_names)
@click.argument("others", type=NAME, nargs=-1, shell_complete=dataset_names)
@options("weir.api.auditing.align", "task measure results", results={"type": PATH})
@forms("json")
def align_command(dataset: str, others: tuple[str, ...], given: Given, form: str | None) -> int:
    """List the benchmark collections that are most like yours.

    DATASET: a collection by name or path; OTHERS: collections to compare it with, whose texts are read, so that
    shared words count. Without OTHERS, collections of the catalogue with published lengths and many published
    scores are compared by task and by lengths of queries and documents. Systems with published scores on all
    of the listed collections follow with their mean, weighted by likeness.
    """
    return present(api.auditing.align(dataset, *others, **given), form)


@click.command("drop")
@click.argument("system", shell_complete=system_names)
def drop_command(system: str) -> None:
    """Remove the tables and indexes that systems made on a server.

    SYSTEM: such as 'postgres("shop.toml")'; every table or index that Weir made on its server is removed, for
    any collection and setting. Nothing else on the server is touched; stored rankings and scores stay.
    """
    for name in api.benchmark.uninstall(system):
        click.echo(name)
