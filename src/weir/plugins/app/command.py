"""The command `weir open`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import NAME, PATH, Given, options
from weir.cli.terminal import say
from weir.errors import BadValue, require


@click.command("open")
@click.argument("folder", type=PATH, default=Path("results"))
@click.argument("runs", type=PATH, nargs=-1)
@options("weir.api.benchmark.benchmark", "measures", measures={"help": "Of RUNS: a measure; repeatable."})
@click.option("--port", type=click.IntRange(0, 65535), help="Listen here.  [default: 4747, or any free one]")
@options(
    "weir.plugins.app.serving.serve",
    "host token judges collection suggestions read_only browser",
    "serving",
    judges={"flags": "--judge", "type": NAME, "metavar": "NAME"},
    suggestions={"flags": "--suggest", "type": NAME, "metavar": "LABELS"},
    browser={"flags": "--no-browser", "flag_value": False, "help": "Print the address alone."},
)
def command(folder: Path, runs: tuple[Path, ...], given: Given, port: int | None, serving: Given) -> None:
    """Show results on a page.

    FOLDER: a results folder of weir run. The browser shows systems, queries, and the documents that each
    system ranks for a query, with judgments and with the reasons of scores; .json after a page's path gives
    JSON. No other machine is contacted, and the folder is never written to: pools that people judge lie in a
    folder beside it, whose name ends in -judging. A folder of weir labels pool opens for judging: the next
    pair, a key for each grade, and answers in its judgments.sqlite, which weir eval and weir labels read.

    With RUNS, rankings in files, FOLDER is their judgments, a file or a collection with texts: weir run makes
    their results first, in a folder here named after the judgments and ending in -results.
    """
    for module in ("jinja2", "markdown_it", "starlette", "uvicorn"):
        require(module, "app")
    if runs:
        folder = _results(folder, runs, given)
    elif given:
        raise BadValue("found measures without files of rankings; a results folder has its own")
    elif folder.is_file():
        from weir.files.text_files import refuse_pack

        refuse_pack(folder)
        raise BadValue(
            f"found {folder} alone; expected a results folder, or judgments and one or more files of rankings, such as "
            f"{folder} after.csv"
        )
    from weir.plugins.app.serving import serve

    if port is not None:
        serving["ports"] = (port,)
    serve(folder, say, **serving)


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
