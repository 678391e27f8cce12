"""weir eval: score run files against judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import dataset_names, measures_option
from weir.cli.table_options import label_option, table_options
from weir.cli.terminal import output_width, say, show

if TYPE_CHECKING:
    from weir.core.intents import IntentQrels
    from weir.core.qrels import Qrels
    from weir.core.result_row import Row
    from weir.core.scores import Scores
    from weir.measures import Measure
    from weir.measures.conventions import Conventions
    from weir.report.display import Display

__all__ = ["command"]


@click.command("eval")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="RUN...")
@measures_option()
@click.option("--per-query", is_flag=True, help="One line for each query and measure instead of the means.")
@label_option
@table_options
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected", "bounds"]), default="trec", show_default=True,
              help="Equal scores stand by identifier, compared as doubles or (trec9) as floats; or the exact mean over "
                   "all their orders; or trec with the worst and the best order.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Judged queries that the run does not answer score 0, or leave the mean.")  # fmt: skip
@click.option("--empty", type=click.Choice(["zero", "left-out"]), default="zero", show_default=True,
              help="Queries without a relevant document score 0, or leave the mean.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option(
    "--collection",
    shell_complete=dataset_names,
    help="The collection of the run, a name or a path, to say what it makes of the scores.",
)
@click.option("--abstention", type=click.Choice(["max", "std", "diff1"]),
              help="Show what leaving out the least sure queries gains (nAUC), by this confidence.")  # fmt: skip
def command(  # noqa: PLR0913, PLR0917 - click passes each option as an argument
    qrels: Path,
    runs: tuple[Path, ...],
    measures: tuple[str, ...],
    per_query: bool,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    ties: str,
    missing: str,
    empty: str,
    drop_self: bool,
    collection: str | None,
    abstention: str | None,
) -> None:
    """Score run files against judgments.

    QRELS: judgments, RUN: one ranking or several, each in TREC's format, JSON, CSV, TSV, Parquet or Arrow; texts also
    as .gz or .zst. Every judged query counts unless told otherwise. For a measure of diversity the
    second column of QRELS names the intent. Judged@10 is always said too; which of several runs is better, weir
    compare says.
    """
    from weir.cli.table_options import display_of
    from weir.errors import BadValue
    from weir.measures import DEFAULT_MEASURES, measures_of
    from weir.measures.conventions import Conventions
    from weir.measures.files import judgments_for, names_of_runs
    from weir.report.notes import judged_notes
    from weir.stats.score_rows import rows

    if per_query and form not in (None, "json"):
        raise BadValue(f"--per-query writes lines with tabs, or --json; found --{form}")
    wanted = measures_of(measures or DEFAULT_MEASURES)
    conventions = Conventions(ties, missing, empty, "drop" if drop_self else "keep")
    names = names_of_runs(runs)
    display = display_of(form, long, labels, names)
    judgments = judgments_for(qrels, wanted)
    scored = [_scored(run, judgments, wanted, conventions) for run in runs]
    found = [row for name, (one, _) in zip(names, scored, strict=True) for row in rows(one, qrels.name, name)]
    if per_query:
        _per_query({n: one for n, (one, _) in zip(names, scored, strict=True)}, form == "json")
    else:
        _means(found, display)
    for name, run, (scores, notes) in zip(names, runs, scored, strict=True):
        if abstention:
            _abstention(run, scores, abstention, form == "json")
        for note in notes:
            say(note.replace("note: ", f"note: {name}: ", 1) if len(runs) > 1 else note)
    for note in [*judged_notes(found), *_collection_notes(collection, wanted, drop_self)]:
        say(note)


def _scored(
    run: Path, judgments: Qrels | IntentQrels, wanted: tuple[Measure, ...], conventions: Conventions
) -> tuple[Scores, list[str]]:
    """The scores of a run file, and what has to be said beside them."""
    from dataclasses import replace

    from weir.measures import scores_of
    from weir.measures.files import judge
    from weir.report.notes import float_tie_notes, score_notes

    judged = judge(run, judgments, conventions)
    scores = scores_of(judged, wanted, conventions)
    notes = score_notes(scores)
    if judged.close and conventions.ties == "trec":  # else trec_eval 9 puts every ranking in the same order
        nine = replace(conventions, ties="trec9")
        notes += float_tie_notes(scores, scores_of(judge(run, judgments, nine), wanted, nine))
    return scores, notes


def _collection_notes(collection: str | None, wanted: tuple[Measure, ...], drop_self: bool) -> list[str]:
    from weir.datasets.load import load
    from weir.report.collection import collection_notes

    return [] if collection is None else collection_notes(load(collection), map(str, wanted), drop_self)


def _per_query(scored: dict[str, Scores], as_json: bool) -> None:
    """Lines of measure, query and value, behind the name of the run where there are several."""
    import json

    from weir.io.runs.scores_file import score_lines

    for name, scores in scored.items():
        head = [name] if len(scored) > 1 else []
        if as_json:
            lines = score_lines(scores)
            told = (json.dumps({"system": name} | json.loads(li), ensure_ascii=False) for li in lines)
            click.echo("\n".join(told if head else lines))
            continue
        ends = [scores.values]
        if "ties=bounds" in scores.conventions and scores.low is not None and scores.high is not None:
            ends += [scores.low, scores.high]
        for measure, *rows in zip(scores.measures, *(end.tolist() for end in ends), strict=True):
            for query, *values in zip(scores.queries.tolist(), *rows, strict=True):
                click.echo("\t".join([*head, measure, query, *map(repr, values)]))


def _means(found: list[Row], display: Display) -> None:
    from weir.cli.terminal import show
    from weir.report.display import rows_shown

    show(rows_shown(found, display))


def _abstention(run: Path, scores: Scores, confidence: str, as_json: bool) -> None:
    import json

    from weir.io.runs.read import read_run
    from weir.report.abstention import abstention_text
    from weir.stats.abstention import abstention

    found = abstention(read_run(run), scores, confidence)
    if as_json:
        click.echo("\n".join(json.dumps(one.to_dict()) for one in found))
    else:
        show("\n" + abstention_text(found, output_width()))
