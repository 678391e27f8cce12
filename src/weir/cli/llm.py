"""weir study llm: what language models were asked and answered in making results."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import datasets_option, systems_option
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("llm")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
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
def command(
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
    from weir.cli.table_options import chosen_cells
    from weir.experiment.finished import damaged_records, finished_cells
    from weir.experiment.llm_answers import model_uses, query_traces
    from weir.report import llm as report

    cells = chosen_cells(finished_cells(folder), datasets, systems)
    if query is None and not verdicts:
        uses = model_uses(cells)
        if uses:
            show(report.use_json(uses) if as_json else report.use_text(uses, output_width()))
        else:
            say("note: no language model was asked for these results")
    else:
        found = query_traces(cells, query, verdicts)
        if found:
            texts = [report.trace_text(one, output_width()) for one in found]
            show(report.trace_json(found) if as_json else "\n\n".join(texts))
        else:
            say(f"note: no answer is {' or '.join(verdicts)}")
    for note in damaged_records(folder):
        say(f"note: {note}")
