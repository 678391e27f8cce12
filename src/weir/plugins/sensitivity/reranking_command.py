"""weir study reranking: what did re-rankings do to their first stage?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import collection_option, measure_names
from weir.cli.terminal import output_width, say_notes, show

__all__ = ["command"]


@click.command("reranking")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("reranked", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--qrels", type=click.Path(path_type=Path), help="Judgments, for scores and position bias.")
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What is gained or lost.")  # fmt: skip
@click.option("-k", "first_ranks", type=int, default=10, show_default=True, help="First ranks.")
@click.option("--depth", type=int, help="Candidates of each query.  [default: the longest re-ranking]")
@click.option("--rel", type=float, default=1, show_default=True, help="Least relevant grade.")
@click.option("--block", type=int, default=10, show_default=True, help="Places of a block.")
@click.option("--window", type=int, default=20, show_default=True, help="Documents of a listwise window.")
@click.option(
    "--window-step",
    "step",
    type=int,
    default=10,
    show_default=True,
    help="How far the next window is from it.",
)
@collection_option
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--markdown", "form", flag_value="markdown", help="Markdown tables.")
def command(
    first: Path,
    reranked: tuple[Path, ...],
    qrels: Path | None,
    measure: str,
    first_ranks: int,
    depth: int | None,
    rel: float,
    block: int,
    window: int,
    step: int,
    collection: str | None,
    form: str | None,
) -> None:
    """Report what re-rankers changed, from run files alone.

    FIRST: the rankings whose first documents were ordered anew; RERANKED: re-rankings of it. Kept orders, lost and new
    documents, how far documents moved, traces of windows; with --qrels what was gained, on how many queries it hurt,
    and how many relevant documents reached the first ranks by the place from which they came.
    """
    from weir.plugins.sensitivity.order_changes import ReorderRules, WindowShape
    from weir.plugins.sensitivity.reranking_tables import reranking_json, reranking_markdown, reranking_text
    from weir.plugins.sensitivity.rerankings import reranking

    rules = ReorderRules(first_ranks, depth, block, rel, WindowShape(window, step))
    found = reranking(first, *reranked, qrels=qrels, measure=measure, rules=rules, collection=collection)
    say_notes(found.notes)
    if form == "json":
        show(reranking_json(found))
    elif form == "markdown":
        show(reranking_markdown(found))
    else:
        show(reranking_text(found, output_width()))
