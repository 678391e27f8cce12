"""The command `weir study adapt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from weir.cli.options import FOLDER, PATH, dataset_names
from weir.cli.terminal import say_notes, show_tables
from weir.errors import BadValue

OPTIONS_OF = {
    "crops": ("each",),
    "genq": ("model", "llm", "file", "n", "documents"),
    "pairs": ("split", "file"),
}
"""The options that only one source of pairs takes."""


@click.command("adapt")
@click.argument("source", type=click.Choice(list(OPTIONS_OF)))
@click.option(
    "-d",
    "--dataset",
    required=True,
    shell_complete=dataset_names,
    help="The collection: a name of the catalogue or a folder.",
)
@click.option(
    "--base",
    default="minilm",
    show_default=True,
    metavar="MODEL",
    help="The checkpoint to begin from: a name of weir list models, of the hub, or a folder.",
)
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder of the new checkpoint.")
@click.option("--each", type=int, help="crops: pairs of a document.  [default: 1]")
@click.option("--model", help="genq: a T5 that writes questions.  [default: doc2query]")
@click.option(
    "--llm",
    metavar="MODEL",
    help="genq: a language model that writes them, such as http://localhost:8000/v1#llama3.",
)
@click.option("--file", type=PATH, help="genq, pairs: a file that holds the questions, or the pairs.")
@click.option("-n", "n", type=int, help="genq: questions for a document.  [default: 3]")
@click.option("--documents", type=int, help="genq: documents that get questions, drawn.  [default: all]")
@click.option("--split", help="pairs: the split whose judgments are learned.  [default: train]")
@click.option(
    "--similarity",
    type=click.Choice(["cosine", "dot"]),
    default="cosine",
    show_default=True,
    help="How vectors are compared; with dot their length counts.",
)
@click.option(
    "--negatives",
    type=int,
    default=1,
    show_default=True,
    help="Documents for each pair that BM25 finds and that do not answer it.",
)
@click.option(
    "--depth",
    type=int,
    default=100,
    show_default=True,
    help="Negatives are drawn from so many of BM25's first.",
)
@click.option(
    "--margins",
    default="",
    metavar="MODEL",
    help="A cross-encoder whose differences of scores are learned (MarginMSE).",
)
@click.option("--epochs", type=int, default=1, show_default=True, help="Passes over the pairs.")
@click.option("--batch", type=int, default=32, show_default=True, help="Pairs of a step.")
@click.option("--rate", type=float, default=2e-5, show_default=True, help="The largest learning rate.")
@click.option(
    "--dtype",
    type=click.Choice(["fp32", "bf16"]),
    default="fp32",
    show_default=True,
    help="What products are computed in.",
)
@click.option("--max-length", type=int, default=0, help="Tokens of a text.  [default: the checkpoint's own]")
@click.option("--most", type=int, default=0, metavar="N", help="Pairs at most, drawn.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all draws.")
@click.option(
    "--evaluated",
    multiple=True,
    shell_complete=dataset_names,
    help="A further collection whose queries must not be learned; repeatable.",
)
@click.option("--drop-known", is_flag=True,
              help="Leave out pairs whose query is evaluated, instead of stopping.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    source: str,
    dataset: str,
    out: Path,
    evaluated: tuple[str, ...],
    quiet: bool,
    **options: Any,  # noqa: ANN401 - those of the sources, and the fields of AdaptRules
) -> None:
    """Train an encoder on a collection.

    SOURCE makes the pairs. crops: two spans of a document, which needs neither queries nor judgments. genq: questions
    that a T5 or a language model writes for documents, or that a file has. pairs: a query and a document of a grade
    above 0, or pairs of a file. Pairs whose query is evaluated are refused. The new checkpoint is a folder for
    dense("FOLDER") with a record of its pairs, seeds, versions and losses. The same command continues what was stopped.
    """
    from weir.api.progress import Progress
    from weir.plugins.adapting.pairs import Crops, GivenPairs, WrittenQuestions
    from weir.plugins.adapting.training import AdaptRules, adapt

    names = dict.fromkeys(name for own in OPTIONS_OF.values() for name in own)
    given = {name: value for name in names if (value := options.pop(name)) is not None}
    for name in given:
        if name not in OPTIONS_OF[source]:
            raise BadValue(f"{'-n' if name == 'n' else f'--{name}'} means nothing with {source}")
    make = {"crops": Crops, "genq": WrittenQuestions, "pairs": GivenPairs}[source]
    with Progress(quiet) as progress:
        trained = adapt(make(**given), dataset, out, AdaptRules(**options), evaluated, progress)
    show_tables(trained.tables())
    say_notes(trained.notes())
