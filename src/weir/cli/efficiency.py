"""weir efficiency: what the systems of a results folder cost, next to their quality."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("efficiency")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="The quality shown, such as nDCG@10.  [default: nDCG@10, or the first]",
)
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="Comma-separated values, at full precision.")
@click.option("--latex", "form", flag_value="latex", help="A LaTeX table.")
@click.option("--markdown", "form", flag_value="markdown", help="A Markdown table.")
def command(folder: Path, measure: str | None, form: str | None) -> None:
    """Report speed and memory.

    What each system costs, next to its quality. FOLDER: a results folder of weir run. Documents indexed and queries
    answered in a second, size of the index, milliseconds of single queries, memory; marked are the systems that no
    other beats, and times that leave out work which was done before.
    """
    from weir.experiment.efficiency import efficiency
    from weir.measures import measures_of
    from weir.report import efficiency as report

    wanted = None if measure is None else str(measures_of([measure])[0])
    found = efficiency(folder, wanted)
    shown = {
        "json": report.efficiency_json,
        "csv": report.efficiency_csv,
        "latex": report.efficiency_latex,
        "markdown": report.efficiency_markdown,
    }
    show(shown[form](found) if form else report.efficiency_text(found, output_width()))
    for note in report.efficiency_notes(found):
        say(note)
