"""weir why: why do these two numbers differ?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import dataset_names, measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("why")
@click.argument("results", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--published", "model", help="A published model to compare one result with, such as 'anserini bm25 flat'."
)
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="A measure such as nDCG@10.  [default: the first that both have]",
)
@click.option("--qrels", type=click.Path(path_type=Path), help="Judgments to score folders again with.")
@click.option(
    "--collection",
    shell_complete=dataset_names,
    help="The collection, a name or a path: of folders with the judgments, of run files with the rules that hold.  "
    "[default: as recorded]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    results: tuple[Path, ...],
    model: str | None,
    measure: str | None,
    qrels: Path | None,
    collection: str | None,
    as_json: bool,
) -> None:
    """Explain a difference.

    Two numbers differ: the settings that can be the reason. RESULTS: two folders such as
    results/scifact/bm25-fa19b4d424; or one, which is compared with the published model that its system claims to be, or
    with the one named; or judgments and two run files. The gap is the second minus the first. Settings that differ come
    in the order of their likely effect. What can be scored again is: tie rule, self-matches, unanswered queries, depth,
    and for a published number cut-off, capped recall, relevance level and gains. Nothing is downloaded.
    """
    from weir.datasets.scoring_rules import ScoringRules
    from weir.errors import BadValue
    from weir.experiment.explain.two_results import Judgments, explain_cells, explain_published, explain_runs
    from weir.report.why import why_json, why_text

    given = Judgments(qrels, collection)
    match results:
        case (one,):
            found = explain_published(one, model, measure, given)
        case (_, _) if model is not None:
            raise BadValue("--published takes one result; two results are compared with each other")
        case (one, other) if one.is_file() and other.is_file():
            raise BadValue("two run files need their judgments before them: weir why QRELS RUN RUN")
        case (one, other):
            found = explain_cells(one, other, measure, given)
        case (judgments, one, other) if not (one.is_dir() or model or qrels):
            found = explain_runs(judgments, one, other, measure, ScoringRules.of(collection))
        case _:
            raise BadValue(
                f"found {len(results)} paths; expected one or two result folders, or judgments and two run files alone"
            )
    show(why_json(found) if as_json else why_text(found, output_width()))
