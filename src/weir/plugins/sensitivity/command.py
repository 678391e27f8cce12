"""The commands `weir study reranking` and `weir study sensitivity`."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import (
    FOLDER,
    NAME,
    PATH,
    budget_option,
    collection_option,
    dataset_names,
    measure_names,
    price_option,
    system_names,
)
from weir.cli.terminal import say, say_notes, show_result

# ----------
# weir study reranking: what did re-rankings do to their first stage?


@click.command("reranking")
@click.argument("first", type=PATH)
@click.argument("reranked", type=PATH, nargs=-1, required=True)
@click.option("--qrels", type=NAME, help="Judgments, for scores and position bias.")
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
def reranking_command(
    first: Path,
    reranked: tuple[Path, ...],
    qrels: str | None,
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
    from weir.plugins.sensitivity.reordering import ReorderRules, WindowShape
    from weir.plugins.sensitivity.rerankings import reranking

    rules = ReorderRules(first_ranks, depth, block, rel, WindowShape(window, step))
    result = reranking(first, *reranked, qrels=qrels, measure=measure, rules=rules, collection=collection)
    say_notes(result.notes())
    show_result(result, form)


# ----------
# weir study sensitivity: what does re-ranking by a language model depend on?


@click.command("sensitivity")
@click.argument("folder", metavar="[RESULTS]", required=False, type=PATH)
@click.option("-d", "--dataset", type=NAME, shell_complete=dataset_names,
              help="A catalogue name, a folder, a golden set, hf:... or irds:...")  # fmt: skip
@click.option("-s", "--system", shell_complete=system_names,
              help="Such as 'bm25 >> llm(\"listwise\", model=...)'.")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What is compared.")  # fmt: skip
@click.option(
    "--orders", type=int, default=5, show_default=True, help="Random orders of the candidates; 0: none."
)
@click.option("--samples", type=int, default=5, show_default=True, help="Answers to each prompt; 0: none.")
@click.option("--depths", default="5,10,20,50", show_default=True, help="Candidates re-ranked; '': none.")
@click.option("--queries", type=int, help="Judged queries at most, drawn at random.  [default: all]")
@click.option("-o", "--out", "output", type=FOLDER, help="Where the records go.  [default: nowhere]")
@budget_option
@price_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each study, at full precision.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def sensitivity_command(
    folder: Path | None,
    dataset: str | None,
    system: str | None,
    measure: str,
    orders: int,
    samples: int,
    depths: str,
    queries: int | None,
    output: Path | None,
    budget: str | None,
    price: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report what re-ranking by a language model depends on.

    RESULTS: a results folder of weir run, of which each system with a language model at its end is studied on its
    collection; -d and -s choose some. Without one, -d and -s name a collection and a system.
    The candidates of the system's first stage are re-ranked in random orders (what should not matter), every prompt is
    asked again (chance), and fewer or more candidates are re-ranked (cost against quality). Places in prompts and pairs
    in both orders are counted on the way. Answers are kept: interrupted, the same command continues.
    """
    from weir.api.progress import Progress
    from weir.errors import BadValue
    from weir.plugins.sensitivity.rerankings import sensitivity_of
    from weir.plugins.sensitivity.studies import StudyRules
    from weir.settings import use_budget

    use_budget(budget, price)
    if folder is None and (dataset is None or system is None):
        raise click.UsageError("give a results folder, or a collection with -d and a system with -s")
    parts = [part.strip() for part in depths.split(",") if part.strip()]
    if odd := [part for part in parts if not part.isdecimal()]:
        raise BadValue(f"--depths: found '{odd[0]}'; expected whole numbers such as 5,10,20")
    rules = StudyRules(orders, samples, tuple(map(int, parts)), queries)
    with Progress(quiet) as progress:
        result = sensitivity_of(dataset, system, measure, rules, output, results=folder, progress=progress)
    show_result(result, "json" if as_json else None)
    if output is not None:
        say(f"records: {output}")
