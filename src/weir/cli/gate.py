"""weir gate: may this change be merged?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]

UNDECIDED = 3
"""Exit code where the queries cannot tell."""
LOST = 3
"""Queries named that lost most."""


@click.command("gate")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("-m", "--measure", "measures", shell_complete=measure_names, multiple=True,
              default=("nDCG@10",), show_default=True, help="A measure such as nDCG@10; repeatable.")  # fmt: skip
@click.option("--max-drop", type=float, default=0.01, show_default=True,
              help="The largest drop of the mean that is accepted.")  # fmt: skip
@click.option("--confidence", type=float, default=0.95, show_default=True,
              help="How certain it must be that the drop is no larger.")  # fmt: skip
@click.option("--interval", default="t", show_default=True, help="t, percentile, bca or studentised.")
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--allow-undecided", is_flag=True,
              help="Exit with 0 where no mean dropped by more but queries are too few to be sure.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option, as click passes them
    qrels: Path,
    baseline: Path,
    candidate: Path,
    measures: tuple[str, ...],
    max_drop: float,
    confidence: float,
    interval: str,
    drop_self: bool,
    allow_undecided: bool,
    as_json: bool,
) -> None:
    """Fail when a candidate may have become worse than allowed.

    QRELS: judgments. BASELINE, CANDIDATE: two runs. The exit code is 0 when the lower confidence bound of candidate
    minus baseline is at least minus the allowed drop, for every measure; 1 when the mean of one dropped by more; 3 when
    no mean did but the queries are too few to be sure; 2 for bad input. The bound is one-sided: with a confidence of
    0.95 a drop larger than allowed passes at most 1 time in 20. The queries that lost most are named.
    """
    import json
    from dataclasses import asdict

    from weir.measures.conventions import Conventions
    from weir.measures.files import scores_of_files
    from weir.report.compare import answer_notes
    from weir.report.gate import gate_text
    from weir.stats.compare import table
    from weir.stats.gate import gate
    from weir.stats.query_differences import moved

    conventions = Conventions(self_matches="drop" if drop_self else "keep")
    scores = scores_of_files(qrels, (baseline, candidate), measures, conventions)
    for note in answer_notes(scores):
        say(note)
    verdicts = set()
    before, after = scores.values()
    for measure in before.measures:
        one, other = table(qrels.name, measure, scores).values
        found = gate(measure, other - one, max_drop, confidence, interval)
        verdicts.add(found.verdict)
        if as_json:
            click.echo(json.dumps(asdict(found) | {"verdict": found.verdict}))
        else:
            lost = () if found.passed else moved(measure, ("baseline", "candidate"), before, after, LOST).down
            show(gate_text(found, lost, output_width()))
    undecided = 0 if allow_undecided else UNDECIDED
    click.get_current_context().exit(1 if "fail" in verdicts else undecided if "undecided" in verdicts else 0)
