"""weir labels holes: what people and a model say of the documents that nobody had judged."""

from __future__ import annotations

import click

from weir.cli.completion import collection_option, measure_names
from weir.cli.terminal import output_width, say_notes, show

__all__ = ["command"]


@click.command("holes")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--human-labels", "human", required=True, metavar="LABELS",
              help="What people say of them: a sheet of weir labels pool, filled in, or a file of labels.")  # fmt: skip
@click.option("--model-labels", "model", metavar="LABELS",
              help="What a model says of them: a folder of weir judge, or a file of labels; optional.")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What systems are ordered by; its cut-off says how deep holes are looked for.")  # fmt: skip
@click.option("--rel", default=1.0, show_default=True, help="The grade from which a document is relevant.")
@collection_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    human: str,
    model: str | None,
    measure: str,
    rel: float,
    collection: str | None,
    as_json: bool,
) -> None:
    """Report how many unjudged documents are relevant.

    QRELS: judgments, RUN: rankings, as weir eval takes them. The documents among the first of each ranking that QRELS
    does not judge are holes, which count as not relevant. Of those that people, and a model, judged: how many are
    relevant (false negatives), how far both agree, each system's score with the holes judged, and whether the order of
    systems changes; intervals by resampling queries. A sheet to judge comes from: weir labels pool QRELS RUN... -o
    pool/
    """
    from weir.api.labelling import holes
    from weir.report.holes import holes_json, holes_text

    found = holes(qrels, *runs, human=human, model=model, measure=measure, rel=rel, collection=collection)
    say_notes(found.notes)
    show(holes_json(found) if as_json else holes_text(found, output_width()))
