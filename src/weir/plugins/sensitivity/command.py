"""weir study sensitivity: what does re-ranking by a language model depend on?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import budget_option, dataset_names, measure_names, price_option, system_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("sensitivity")
@click.argument("folder", metavar="[RESULTS]", required=False, type=click.Path(path_type=Path))
@click.option("-d", "--dataset", shell_complete=dataset_names,
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
@click.option(
    "-o", "--out", "output", type=click.Path(path_type=Path), help="Where the records go.  [default: nowhere]"
)
@budget_option
@price_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each study, at full precision.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
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
    from weir.errors import BadValue
    from weir.plugins.sensitivity.rerankings import sensitivity_of
    from weir.plugins.sensitivity.sensitivity_tables import sensitivity_json, sensitivity_text
    from weir.plugins.sensitivity.studies import StudyRules
    from weir.report.progress import Progress
    from weir.settings import use_budget

    use_budget(budget, price)
    if folder is None and (dataset is None or system is None):
        raise click.UsageError("give a results folder, or a collection with -d and a system with -s")
    wanted = [part.strip() for part in depths.split(",") if part.strip()]
    if odd := [part for part in wanted if not part.isdecimal()]:
        raise BadValue(f"--depths: found '{odd[0]}'; expected whole numbers such as 5,10,20")
    rules = StudyRules(orders, samples, tuple(map(int, wanted)), queries)
    progress = Progress(quiet)
    try:
        found = sensitivity_of(dataset, system, measure, rules, output, results=folder, progress=progress)
    finally:
        progress.close()
    if as_json:
        show("\n".join(map(sensitivity_json, found)))
    else:
        show("\n\n".join(sensitivity_text(one, output_width()) for one in found))
    if output is not None:
        say(f"records: {output}")
