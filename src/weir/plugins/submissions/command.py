"""The commands of `weir submit`."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import (
    FOLDER,
    NAME,
    OUTPUT,
    PATH,
    datasets_option,
    fetch_option,
    measure_names,
    systems_option,
)
from weir.cli.terminal import say_notes, show_tables
from weir.errors import BadValue

REFUSED, NOT_WHOLE = 1, 3
"""Exit codes: something does not match; nothing was found that does not match, and not all could be checked."""


@click.command("pack")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("-o", "--out", type=OUTPUT, default=Path("submission.weir.zip"), show_default=True,
              help="The pack.")  # fmt: skip
@datasets_option("Pack this dataset or group; repeatable.")
@systems_option("Pack this system; repeatable.")
@click.option("--note", default="", help="A sentence for readers, such as who ran it.")
def pack_command(
    folder: Path, out: Path, datasets: tuple[str, ...], systems: tuple[str, ...], note: str
) -> None:
    """Pack results for a leaderboard or a reviewer.

    FOLDER: a results folder of weir run. The pack holds rankings, scores of every query, records of what made them and
    what they cost, and a hash of all that; no texts and no judgments. The same folder gives the same bytes.
    """
    from weir.plugins.submissions.packs import pack_results

    packed = pack_results(folder, out, datasets=datasets, systems=systems, note=note)
    show_tables(packed.tables())
    say_notes(packed.notes())


@click.command("leaderboard")
@click.argument("folder", type=PATH)
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder of the site.")
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="Rank by this measure.")  # fmt: skip
@click.option("--collection", "collections", type=NAME, multiple=True, metavar="NAME=PATH",
              help="Where a collection lies here; repeatable.")  # fmt: skip
@fetch_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def leaderboard_command(
    folder: Path, out: Path, measure: str, collections: tuple[str, ...], fetch: bool, quiet: bool
) -> None:
    """Write a leaderboard of packs as a static site.

    FOLDER: packs of weir submit pack. Each is verified; what is refused is named with its reason and counts nowhere.
    The site is plain files: ranges of ranks for all collections and by task, domain, size and licence, a page for each
    system and collection, the same numbers as JSON, and published scores on a page of their own.
    """
    from weir.api.progress import Progress
    from weir.plugins.submissions.site import leaderboard

    with Progress(quiet) as progress:
        made = leaderboard(
            folder, out, measure=measure, places=_places(collections), fetch=fetch, progress=progress
        )
    show_tables(made.tables())


@click.command("verify")
@click.argument("file", type=PATH)
@click.option("--collection", "collections", type=NAME, multiple=True, metavar="NAME=PATH",
              help="Where a collection lies here; repeatable.")  # fmt: skip
@fetch_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def verify_command(
    context: click.Context, file: Path, collections: tuple[str, ...], fetch: bool, quiet: bool
) -> None:
    """Verify a pack by computing its scores again.

    Every file is held against the manifest, every mean against its values, every score against the rankings and the
    judgments of its collection, every name and key against what was declared. What differs is named, and the pack is
    refused. Exit code 1 for a pack that is refused, 3 where a collection is not here, so that not all was checked.
    """
    from weir.api.progress import Progress
    from weir.plugins.submissions.packs import verify_pack

    with Progress(quiet) as progress:
        verification = verify_pack(file, places=_places(collections), fetch=fetch, progress=progress)
    show_tables(verification.tables())
    say_notes(verification.notes())
    if not verification.sound:
        context.exit(REFUSED)
    if not verification:
        context.exit(NOT_WHOLE)


def _places(collections: tuple[str, ...]) -> dict[str, str]:
    """NAME=PATH of each collection; raises BadValue for another text."""
    places = dict[str, str]()
    for one in collections:
        name, sign, place = one.partition("=")
        if not (name and sign and place):
            raise BadValue(f"--collection {one}: expected NAME=PATH, such as scifact=data/scifact")
        places[name] = place
    return places
