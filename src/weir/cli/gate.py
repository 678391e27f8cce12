"""weir gate: may this change be merged?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import by_option, dataset_names, fetch_option, measure_names, systems_option
from weir.cli.table_options import notes_option
from weir.cli.terminal import output_width, say, say_notes, show

if TYPE_CHECKING:
    from weir.measures import Measure
    from weir.measures.conventions import Conventions
    from weir.stats.comparison import ScoreTable
    from weir.stats.gate import Gate

__all__ = ["command"]

UNDECIDED = 3
"""Exit code where the queries cannot tell."""


@click.command("gate")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True,
                metavar="[QRELS] BASELINE CANDIDATE")  # fmt: skip
@click.option("-m", "--measure", "measures", shell_complete=measure_names, multiple=True, metavar="MEASURE[:DROP]",
              help="A measure such as nDCG@10, with the drop that is accepted where it is another; repeatable.  "
                   "[default: those of a saved baseline, else nDCG@10]")  # fmt: skip
@click.option("--max-drop", type=float, default=0.01, show_default=True,
              help="The largest drop of a mean that is accepted.")  # fmt: skip
@click.option("--level", "confidence", type=float, default=0.95, show_default=True,
              help="How certain a pass and a failure must be.")  # fmt: skip
@click.option("--interval", default="t", show_default=True, help="t, percentile, bca or studentised.")
@by_option
@click.option("--collection", shell_complete=dataset_names,
              help="The collection of run files, a name or a path, whose rules hold (self-matches, candidates, queries "
                   "without an answer) and whose column --by may name; of results folders their own.")  # fmt: skip
@fetch_option
@click.option("--common", is_flag=True,
              help="Compare on the queries that both sides have with the same judgments.")  # fmt: skip
@systems_option("Of results folders: this system; repeatable.")
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--allow-undecided", is_flag=True,
              help="Exit with 0 where no mean dropped by more but queries are too few to be sure.")  # fmt: skip
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the scores of [QRELS] CANDIDATE as a baseline to commit, and gate nothing.")  # fmt: skip
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--markdown", "form", flag_value="markdown", help="Tables for a pull request.")
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write JUnit's XML there."
)
@notes_option
def command(
    paths: tuple[Path, ...],
    measures: tuple[str, ...],
    max_drop: float,
    confidence: float,
    interval: str,
    by: str | None,
    collection: str | None,
    fetch: bool,
    common: bool,
    systems: tuple[str, ...],
    drop_self: bool,
    allow_undecided: bool,
    save: Path | None,
    form: str | None,
    junit: Path | None,
    notes: bool,
) -> None:
    """Fail on a regression.

    A candidate fails where it is worse than the baseline by more than is allowed. BASELINE, CANDIDATE: each a run file,
    a results folder (or one cell of it), or a baseline that --save wrote; QRELS, the judgments, stand first where there
    is a run file. The exit code is 0 for pass: the one-sided lower bound of candidate minus baseline is at least minus
    the allowed drop, for every measure and dataset, so that a larger drop passes at most 1 time in 20. It is 1 for
    fail: a mean dropped by more, and that it dropped is certain, corrected for all that is gated together, so that
    where nothing dropped at most 1 gate in 20 fails. It is 3 where the queries are too few to tell, with how many would
    do; 2 for bad input. --by gates groups of queries too: a group can fail the gate, and need not pass it. Sides of
    different judgments are refused. The queries that lost most are named.
    """
    from weir.io.storage.atomic import write_text
    from weir.measures.conventions import Conventions
    from weir.report import gate as report
    from weir.stats.gate import GateRules, gates

    wanted, drops = _measures(measures)
    conventions = Conventions(self_matches="drop") if drop_self else None
    if save is not None:
        _save(save, paths, wanted, conventions, systems, collection, fetch)
        return
    rules = GateRules(max_drop, drops, confidence, interval)
    cases = _cases(paths, wanted, conventions, systems, (by, collection, common), fetch, notes)
    found = gates(cases, rules)
    if junit is not None:
        write_text(junit, report.gate_junit(found) + "\n")
    if form is None:
        show(report.gate_text(found, output_width()))
    else:
        click.echo(report.gate_json(found) if form == "json" else report.gate_markdown(found))
    click.get_current_context().exit(_code(found, allow_undecided))


def _measures(given: Sequence[str]) -> tuple[tuple[Measure, ...], dict[str, float]]:
    """The measures, and the drops that some of them name behind a colon; raises BadValue for what is no number."""
    from weir.errors import BadValue
    from weir.measures import parse_measure

    measures, drops = [], {}
    for text in given:
        name, colon, drop = text.rpartition(":")
        measure = parse_measure(name if colon else text)
        measures.append(measure)
        if colon:
            try:
                drops[str(measure)] = float(drop)
            except ValueError:
                raise BadValue(f"-m {text}: the drop is '{drop}'; expected such as {name}:0.01") from None
    return tuple(dict.fromkeys(measures)), drops


def _cases(
    paths: Sequence[Path],
    measures: Sequence[Measure],
    conventions: Conventions | None,
    systems: Sequence[str],
    groups: tuple[str | None, str | None, bool],
    fetch: bool,
    details: bool,
) -> tuple[tuple[str, ScoreTable], ...]:
    """What is gated; what has to be said of it goes to standard error."""
    from weir.experiment.gate_sides import collections_of, gate_cases, sides_of

    by, collection, common = groups
    baseline, candidate, names = sides_of(paths, measures, conventions, systems, collection, fetch)
    grounds = collections_of(paths, collection, fetch) if by is not None else {}
    found = gate_cases((baseline, candidate), names, by, common, grounds)
    say_notes(found.notes, details)
    return found.cases


def _save(
    path: Path,
    paths: Sequence[Path],
    measures: Sequence[Measure],
    conventions: Conventions | None,
    systems: Sequence[str],
    collection: str | None,
    fetch: bool,
) -> None:
    from weir.experiment.gate_sides import system_of
    from weir.io.runs.baseline_file import write_baseline
    from weir.measures.conventions import DEFAULT

    found = system_of(paths, measures, conventions or DEFAULT, systems, collection, fetch)
    write_baseline(found, path)
    queries = sum(len(one.scores.queries) for one in found.datasets.values())
    say(f"{path}: {found.system} on {len(found.datasets)} dataset{'s' * (len(found.datasets) != 1)}, "
        f"{queries:,} queries, {path.stat().st_size:,} bytes")  # fmt: skip


def _code(found: Sequence[Gate], allow_undecided: bool) -> int:
    """0 for pass, 1 for fail, UNDECIDED else, unless that is allowed and no mean dropped by more."""
    from weir.report.gate import gate_outcome

    outcome = gate_outcome(found)
    allowed = allow_undecided and all(one.within for one in found if not one.group)
    return 1 if outcome == "fail" else UNDECIDED if outcome == "undecided" and not allowed else 0
