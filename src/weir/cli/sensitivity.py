"""weir sensitivity: what does re-ranking by a language model depend on?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import dataset_names, measure_names, system_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("sensitivity")
@click.option("-d", "--dataset", required=True, shell_complete=dataset_names,
              help="A catalogue name, a folder, a golden set, hf:... or irds:...")  # fmt: skip
@click.option("-s", "--system", required=True, shell_complete=system_names,
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
    "-o", "--output", type=click.Path(path_type=Path), help="Where the records go.  [default: nowhere]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    dataset: str,
    system: str,
    measure: str,
    orders: int,
    samples: int,
    depths: str,
    queries: int | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what re-ranking by a language model depends on.

    The candidates of the system's first stage are re-ranked in random orders (what should not matter), every prompt is
    asked again (chance), and fewer or more candidates are re-ranked (cost against quality). Places in prompts and pairs
    in both orders are counted on the way. Answers are kept: interrupted, the same command continues.
    """
    from weir.datasets.load import load
    from weir.errors import BadValue
    from weir.measures.measure import parse_measure
    from weir.report.progress import Progress
    from weir.report.sensitivity import sensitivity_json, sensitivity_text
    from weir.sensitivity.studies import StudyRules
    from weir.sensitivity.studies import sensitivity as studied
    from weir.systems import parse_system

    wanted = [part.strip() for part in depths.split(",") if part.strip()]
    if odd := [part for part in wanted if not part.isdecimal()]:
        raise BadValue(f"--depths: found '{odd[0]}'; expected whole numbers such as 5,10,20")
    rules = StudyRules(orders, samples, tuple(map(int, wanted)), queries)
    progress = Progress(quiet)
    try:
        found = studied(load(dataset), parse_system(system), parse_measure(measure), rules, output, progress)
    finally:
        progress.close()
    show(sensitivity_json(found) if as_json else sensitivity_text(found, output_width()))
    if output is not None:
        say(f"records: {output}")
