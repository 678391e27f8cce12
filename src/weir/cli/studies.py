"""The commands of `weir study`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from weir.cli.options import NAME, PATH, dataset_names, datasets_option, measure_names, systems_option
from weir.cli.terminal import say, say_notes, show_result


@click.command("threshold")
@click.argument("qrels", type=NAME)
@click.argument("run", type=PATH)
@click.option("-m", "--measure", shell_complete=measure_names, default="R@10", show_default=True,
              help="What is kept of queries with an answer; a silent one scores 0.")  # fmt: skip
@click.option("--max-false", type=float, default=0.1, show_default=True,
              help="The largest share of queries without an answer that may be answered.")  # fmt: skip
@click.option("--abstention", "confidence", type=click.Choice(["max", "std", "diff1"]), default="max",
              show_default=True,
              help="How sure the run is: its best score, their deviation, or the best less the second.")  # fmt: skip
@click.option("--collection", type=NAME, shell_complete=dataset_names,
              help="The collection of the run: its rules hold, and it says what queries have no answer.")  # fmt: skip
@click.option("--seed", type=int, help="Seed of the split in halves.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def threshold_command(
    qrels: str,
    run: Path,
    measure: str,
    max_false: float,
    confidence: Literal["max", "std", "diff1"],
    collection: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Choose the score below which a system should not answer.

    QRELS: judgments, RUN: one ranking. A query has no answer where none of its judged documents has a grade above 0, or
    where the collection says so (unanswerable); answering it is a false answer. The least score that keeps false
    answers within --max-false is chosen on one half of the queries, drawn by a seed, and reported on the other, with
    what it leaves of the measure; so the shares are not those of the queries that chose it.
    """
    from weir.api.comparisons import threshold

    chosen = threshold(
        qrels, run, measure, max_false=max_false, confidence=confidence, seed=seed, collection=collection
    )
    say_notes(chosen.notes())
    show_result(chosen, "json" if as_json else None)


@click.command("llm")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("--trace", "query", metavar="QUERY", help="Every prompt about this query, with its answer.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="KIND",
    help="Only prompts whose answers are such: ok, repaired, refused, missing, duplicate, 'out of range' or "
    "'not kept here'; without --trace of all queries; repeatable.",
)
@datasets_option("Show this dataset or group; repeatable.")
@systems_option("Show this system; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def llm_command(
    folder: Path,
    query: str | None,
    verdicts: tuple[str, ...],
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the prompts and answers of language models.

    FOLDER: a results folder of weir run. A line for each model behind a system: answers by what became of them,
    tokens, dollars, failed attempts. With --trace every prompt about a query in the order asked, the answer as it was
    kept, what was read from it, and what it took: from kept answers alone, no model is asked.
    """
    from weir.api.results_folder import llm_trace, llm_use

    if query is None and not verdicts:
        uses = llm_use(folder, systems, datasets)
        notes = uses.notes()
        if uses:
            show_result(uses, "json" if as_json else None)
        else:
            say("note: no language model was asked for these results")
    else:
        traces = llm_trace(folder, query, systems, verdicts, datasets)
        notes = traces.notes()
        if traces:
            show_result(traces, "json" if as_json else None)
        else:
            say(f"note: no answer is {' or '.join(verdicts)}")
    say_notes(notes)
