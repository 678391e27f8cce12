"""The commands of `weir submit`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import FOLDER, NAME, OUTPUT, PATH, Given, options, quiet_option
from weir.cli.terminal import say_notes, show_tables
from weir.errors import BadValue

REFUSED, NOT_WHOLE = 1, 3
"""Exit codes: a pack that does not match; a pack of which only a part could be checked, which matches."""


def _places(_: click.Context, __: click.Parameter, collections: tuple[str, ...]) -> dict[str, str]:
    places = dict[str, str]()
    for one in collections:
        name, sign, place = one.partition("=")
        if not (name and sign and place):
            raise BadValue(f"--collection {one}: expected NAME=PATH, such as scifact=data/scifact")
        places[name] = place
    return places


PLACES = {"flags": "--collection", "type": NAME, "multiple": True, "metavar": "NAME=PATH", "callback": _places,
          "help": "Where a collection lies here; repeatable."}  # fmt: skip


@click.command("pack")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("-o", "--out", type=OUTPUT, default=Path("submission.weir.zip"), show_default=True,
              help="The pack.")  # fmt: skip
@options("weir.plugins.submissions.packs.pack_results", "datasets systems note")
def pack_command(folder: Path, out: Path, given: Given) -> None:
    """Pack results for a leaderboard or a reviewer.

    FOLDER: a results folder of weir run. The pack holds rankings, scores of every query, records of how they
    were made and what they cost, and a hash of everything; no texts and no judgments. It is a zip: its folder
    results/ is a results folder. The same folder gives the same bytes.
    """
    packed = weir.pack_results(folder, out, **given)
    show_tables(packed.tables())
    say_notes(packed.notes())


@click.command("leaderboard")
@click.argument("folder", type=PATH)
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder of the site.")
@options("weir.plugins.submissions.site.leaderboard", "measure places fetch", places=PLACES)
@quiet_option
def leaderboard_command(folder: Path, out: Path, given: Given, quiet: bool) -> None:
    """Write a leaderboard of packs as a static site.

    FOLDER: packs of weir submit pack. Each is verified; refused packs are named with the reason and left out.
    An older leaderboard at -o is replaced, anything else refused.
    The site has ranges of ranks for all collections and by task, domain, size and licence, a page for each
    system and collection, the numbers as JSON, and published scores.
    """
    with api.progress.Progress(quiet) as progress:
        made = weir.leaderboard(folder, out, progress=progress, **given)
    show_tables(made.tables())
    say_notes(made.notes())


@click.command("verify")
@click.argument("file", type=PATH)
@options("weir.plugins.submissions.packs.verify_pack", "places fetch", places=PLACES)
@quiet_option
def verify_command(file: Path, given: Given, quiet: bool) -> int:
    """Verify a pack by computing its scores again.

    Checks files against the manifest, means against values, scores against the rankings and the collection's
    judgments, names and keys against the declarations. Each difference is named. Exit code 1: the pack has
    one and is refused; 2: no pack, or a zip that cannot be unpacked; 3: not all was checked, since a
    collection is not on this machine.
    """
    with api.progress.Progress(quiet) as progress:
        verification = weir.verify_pack(file, progress=progress, **given)
    show_tables(verification.tables())
    say_notes(verification.notes())
    return REFUSED if not verification.sound else 0 if verification else NOT_WHOLE
