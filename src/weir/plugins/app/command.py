"""The command `weir open`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import NAME, PATH, Given, options
from weir.cli.terminal import say
from weir.errors import BadValue, require

PORT = 4747


@click.command("open")
@click.argument("folder", type=PATH, default=Path("results"))
@click.argument("runs", type=PATH, nargs=-1)
@options("weir.api.benchmark.benchmark", "measures", measures={"help": "Of RUNS: a measure; repeatable."})
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Listen here; another than loopback needs --token."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"Listen here.  [default: {PORT}, or any free one]"
)
@click.option(
    "--token", default="", help="What opens the pages, 16 characters at least.  [default: drawn anew]"
)
@click.option(
    "--judge",
    "judges",
    type=NAME,
    multiple=True,
    metavar="NAME",
    help="Who judges; repeatable, each with an address.  [default: me]",
)
@click.option("--collection", type=NAME,
              help="The collection with the texts of a pool.  [default: those on its sheet]")  # fmt: skip
@click.option("--suggest", "suggestions", type=NAME, metavar="LABELS",
              help="A model's labels to offer to judges, kept apart.  [default: none]")  # fmt: skip
@click.option("--read-only", is_flag=True, help="Take no judgments.")
@click.option("--no-browser", is_flag=True, help="Print the address alone.")
def command(
    folder: Path,
    runs: tuple[Path, ...],
    given: Given,
    host: str,
    port: int | None,
    token: str,
    judges: tuple[str, ...],
    collection: str | None,
    suggestions: str | None,
    read_only: bool,
    no_browser: bool,
) -> None:
    """Show results on a page.

    FOLDER: a results folder of weir run. The browser shows the systems, the queries, and the documents that
    each system ranks for a query, with judgments and with the reasons of scores. Every page is also there as
    JSON, with .json after its path. Other machines are not contacted, and the folder is never written to:
    pools that people judge from its pages lie in a folder beside it, whose name ends in -judging. A folder of
    weir labels pool opens for judging: the next pair, a key for each grade, and answers in its
    judgments.sqlite, which weir eval and weir labels read.

    With RUNS, rankings in files, FOLDER is their judgments, a file or a collection with texts: before it
    opens, weir run makes their results in a folder here, named after the judgments and ending in -results.
    """
    for module in ("jinja2", "markdown_it", "starlette", "uvicorn"):
        require(module, "app")
    if runs:
        folder = _results(folder, runs, given)
    elif given:
        raise BadValue("found measures without files of rankings; a results folder has its own")
    elif folder.is_file():
        raise BadValue(
            f"found {folder} alone; expected a results folder, or judgments and one or more files of rankings, such as "
            f"{folder} after.csv"
        )
    from weir.plugins.app.serving import serve

    serve(
        folder,
        host,
        (PORT, 0) if port is None else (port,),
        token,
        judges,
        read_only,
        not no_browser,
        collection,
        suggestions,
        say,
    )


def _results(judgments: Path, runs: tuple[Path, ...], given: Given) -> Path:
    if api.given.is_results_folder(judgments):
        raise BadValue(
            f"found the results folder {judgments} and {len(runs)} more; expected one, or judgments and files of "
            "rankings"
        )
    folder = Path(f"{judgments.stem.replace(':', '-')}-results")
    systems = [weir.systems.StoredRun(str(path)) for path in api.given.run_paths(runs)]
    weir.benchmark(judgments, systems, out=folder, **given)
    say(f"results: {folder}")
    return folder
