"""The command `weir study adapt`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import FOLDER, PATH, Given, dataset_names, options, quiet_option
from weir.cli.terminal import say_notes, show_tables
from weir.errors import BadValue


@click.command("adapt")
@click.argument("source", type=click.Choice(["crops", "genq", "pairs"]))
@click.option("-d", "--dataset", required=True, shell_complete=dataset_names,
              help="The collection: a name of the catalogue or a folder.")  # fmt: skip
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder of the new checkpoint.")
@options("weir.plugins.training.pairs.Crops", "each", "crops", "crops: ")
@options("weir.plugins.training.pairs.WrittenQuestions", "model llm file n documents", "genq", "genq: ",
         llm={"metavar": "MODEL"},
         file={"type": PATH, "help": "a file that holds the questions; for pairs the pairs."},
         n={"flags": "-n"})  # fmt: skip
@options("weir.plugins.training.pairs.GivenPairs", "split", "pairs", "pairs: ")
@options("weir.plugins.training.training.AdaptRules",
         "base similarity negatives depth margins epochs batch rate dtype max_length most seed drop_known", "rules",
         base={"metavar": "MODEL"}, margins={"metavar": "MODEL"}, most={"metavar": "N"})  # fmt: skip
@options("weir.plugins.training.training.adapt", "evaluated", evaluated={"shell_complete": dataset_names})
@quiet_option
def command(
    source: str,
    dataset: str,
    out: Path,
    crops: Given,
    genq: Given,
    pairs: Given,
    rules: Given,
    given: Given,
    quiet: bool,
) -> None:
    """Train an encoder on a collection.

    SOURCE is where pairs come from. crops: two spans of a document, without queries or judgments. genq:
    questions that a T5 or a language model writes for documents, or that a file has. pairs: a query and a
    document of a grade above 0, or pairs of a file. A pair whose query is evaluated is an error, unless
    --drop-known leaves it out. The checkpoint is a folder for dense("FOLDER") with a record of pairs, seeds,
    versions and losses. The same command continues an interrupted training.
    """
    if source == "pairs" and "file" in genq:
        pairs["file"] = genq.pop("file")
    settings = {"crops": crops, "genq": genq, "pairs": pairs}
    for name in (name for other, names in settings.items() if other != source for name in names):
        raise BadValue(f"{'-n' if name == 'n' else f'--{name}'} means nothing with {source}")
    make = {"crops": weir.Crops, "genq": weir.WrittenQuestions, "pairs": weir.GivenPairs}[source]
    with api.progress.Progress(quiet) as progress:
        asked = weir.AdaptRules(**rules)
        trained = weir.adapt(make(**settings[source]), dataset, out, asked, progress=progress, **given)
    show_tables(trained.tables())
    say_notes(trained.notes())
