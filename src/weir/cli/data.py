"""The commands of `weir data`."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import FOLDER, NAME, OUTPUT, PATH, dataset_names, measure_names, system_names
from weir.cli.terminal import say, say_notes, show, show_result, show_tables
from weir.errors import BadValue
from weir.files.paths import path_of


@click.command("fetch")
@click.argument("names", type=NAME, shell_complete=dataset_names, nargs=-1, required=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def fetch_command(names: tuple[str, ...], quiet: bool) -> None:
    """Download collections, verify them, and prepare them.

    NAMES: collections or groups of the catalogue (see weir list datasets), or references such as hf:mteb/nfcorpus, of
    which the newest commit is fetched. An interrupted download continues. For a collection under licence, how to obtain
    it is printed.
    """
    from weir.api.progress import Progress
    from weir.datasets import catalogue
    from weir.datasets.fetch import fetch
    from weir.datasets.references import is_reference

    for name in names:  # before anything is downloaded
        if not is_reference(name):
            catalogue.group(name) if catalogue.is_group(name) else catalogue.get(name)
    progress = Progress(quiet)
    for name in names:

        def advance(done: int, total: int | None, stage: str = f"fetch {name}") -> None:
            progress(stage, done, total or 0)

        with progress:
            fetched = fetch(name, advance)
        for dataset in fetched:
            click.echo(f"{dataset.name}: {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries")


@click.command("convert")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=OUTPUT)
@click.option("--kind", type=click.Choice(["run", "qrels"]),
              help="What IN holds; otherwise its columns say.")  # fmt: skip
@click.option(
    "--lists",
    is_flag=True,
    help="Of a run, lists of documents in rank order without scores, as BIRCO reads them; .json or .pickle.",
)
@click.option("--collapse", metavar="SEP|FILE",
              help="Of passages their documents: the separator in d1#3, or a table of both.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def convert_command(
    source: Path, target: Path, kind: str | None, lists: bool, collapse: str | None, quiet: bool
) -> None:
    """Convert rankings or judgments between formats.

    The formats are those of the names: .trec (.txt, .run, .qrels), .json, .csv, .tsv, .parquet, .arrow (.feather,
    .ipc), .pickle; .gz or .zst behind any but tables packs the file. Of a pickle nothing is run. Every number survives
    in full. OUT appears whole or not at all; what its format cannot hold is refused, but for a column of origins of
    judgments and columns of other matters, whose loss is said. --collapse '#' makes documents of passages, each with
    the score of its best passage.
    """
    from weir.api.progress import Progress
    from weir.files.write import convert

    with Progress(quiet) as progress:
        conversion = convert(source, target, kind, lists, progress, collapse)
    show_tables(conversion.tables())


@click.command("stats")
@click.argument("names", type=NAME, shell_complete=dataset_names, nargs=-1, required=True)
@click.option("--split", help="Whose judgments; by default those everyone reports on.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def stats_command(names: tuple[str, ...], split: str | None, as_json: bool) -> None:
    """Describe collections: sizes, judgments, duplicates, damage.

    NAMES: catalogue names, groups, folders, golden sets, references, or files of judgments alone. Of a collection
    without documents, queries or judgments the rest is described. Everything is counted from the files, nothing is
    quoted.
    """
    from weir.api.result_set import ResultSet
    from weir.api.results_folder import describe
    from weir.core.frames import plain
    from weir.core.results import json_lines
    from weir.datasets.card import judgments_card, judgments_table
    from weir.files.runs import read_qrels

    for path in (path_of(name) for name in names if _is_judgments(name)):
        card = judgments_card(path.name, read_qrels(path))
        if as_json:
            show(json_lines([plain(card)]))
        else:
            show_tables([judgments_table(card)])
            click.echo()
    for name in (name for name in names if not _is_judgments(name)):
        cards = describe(name, split=split)
        for one in cards:
            show_result(ResultSet("card", (one,)), "json" if as_json else None)
            if not as_json:
                click.echo()
        say_notes(cards.notes(), details=True)


def _is_judgments(name: str) -> bool:
    """Whether a name is that of a file that is no collection: a zip, a TOML file or a golden set is one."""
    from weir.datasets.load import catalogue_name
    from weir.errors import FormatError
    from weir.files.runs import read_qrels

    path = path_of(name)
    if (
        catalogue_name(name)
        or not path.is_file()
        or path.suffix.lower() in (".zip", ".toml")
        or path.with_suffix(".toml").is_file()
    ):
        return False
    if path.suffix.lower() not in (".json", ".jsonl", ".yaml", ".yml"):
        return True
    try:
        read_qrels(path)
    except FormatError:
        return False
    return True


@click.command("subset")
@click.argument("dataset", type=NAME)
@click.option("--docs", type=int, required=True, help="Documents of the mini collection.")
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder to write.")
@click.option("-s", "--system", "systems", multiple=True,
              help="A system to prove it by; repeatable.  [default: seven lexical ones]")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, help="Of what is drawn.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def subset_command(
    dataset: str, docs: int, out: Path, systems: tuple[str, ...], measure: str, seed: int, as_json: bool
) -> None:
    """Write a small collection, and report how well it ranks systems.

    Queries are drawn as long as their judged documents take half of the room; BM25's first answers and documents drawn
    at random fill the rest. Then systems run on both, and their orders are compared over resamples of the queries.
    """
    from weir.api.auditing import subset

    show_result(subset(dataset, docs, out, systems, seed, measure, say), "json" if as_json else None)


@click.command("align")
@click.argument("dataset", type=NAME, shell_complete=dataset_names)
@click.argument("others", type=NAME, nargs=-1, shell_complete=dataset_names)
@click.option("--task", help="Task of the collection, as weir list datasets names tasks.")
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option("--results", type=PATH, help="A results folder whose systems to set beside.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def align_command(
    dataset: str, others: tuple[str, ...], task: str | None, measure: str, results: Path | None, as_json: bool
) -> None:
    """List the benchmark collections that are most like yours.

    Scores are averaged by likeness. DATASET: a collection by name or path; OTHERS: collections to compare it with,
    whose texts are read, so that shared words count. Without any, those of the catalogue with published lengths and
    many published scores, by the lengths of queries and documents and the task. Systems are those with published scores
    on all of them.
    """
    from weir.api.auditing import align

    show_result(
        align(dataset, *others, task=task, measure=measure, results=results), "json" if as_json else None
    )


@click.command("drop")
@click.argument("system", shell_complete=system_names)
def drop_command(system: str) -> None:
    """Remove the tables and indexes that systems made on a server.

    SYSTEM: such as 'postgres("shop.toml")'; every table or index that Weir made on its server goes, whichever
    collection or setting it was made for. Nothing else there is touched; what was answered and scored stays.
    """
    from weir.systems import parse_system
    from weir.systems.composite import parts_of
    from weir.systems.protocol import Installed

    installed = [part for part in parts_of(parse_system(system)) if isinstance(part, Installed)]
    if not installed:
        raise BadValue(f"{system} makes nothing on a server")
    for part in installed:
        for name in part.uninstall():
            click.echo(name)
