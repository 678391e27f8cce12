"""weir compare: which of several systems is better, and is that certain?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from weir.cli.completion import by_option, dataset_names, measures_option, systems_option
from weir.cli.table_options import label_option, notes_option
from weir.cli.terminal import say_left_out, say_notes

if TYPE_CHECKING:
    from weir.experiment.finished import Finished
    from weir.measures.conventions import Conventions
    from weir.report.display import Display
    from weir.stats.comparison import Comparison, ComparisonMethod
    from weir.stats.factorial import FactorStudy

__all__ = ["command"]

Asked: TypeAlias = "tuple[tuple[str, ...], str | None, ComparisonMethod, str | None]"
"""Measures, baseline, method, factors."""
Shown: TypeAlias = tuple[tuple[str, ...], str | None, bool, bool]  # labels, form, long, explain


def _no_path(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """The names behind --factors; what is there as a file or folder was not meant as such."""
    if given and (Path(given).is_file() or next(Path(given).glob("*/*/stage.json"), None)):
        raise click.BadParameter(f"{given} is a path; write what is compared before --factors")
    return given


@click.command("compare")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@measures_option()
@click.option("--baseline", help="The system that the others are compared with, instead of each with each.")
@click.option("--test", default="permutation", show_default=True,
              help="permutation, t, tukey (randomised HSD), bootstrap-shift, wilcoxon or sign.")  # fmt: skip
@click.option("--correct", help="holm, bonferroni, bh or none.  [default: holm; with --by bh]")
@click.option("--factors", is_flag=False, flag_value="", metavar="[NAMES]", callback=_no_path,
              help="Effects of settings in which systems differ, all or those named: objective,depth.")  # fmt: skip
@by_option
@click.option("--collection", shell_complete=dataset_names,
              help="The collection of the runs, a name or a path, whose rules hold (self-matches, candidates, queries "
                   "without an answer) and whose column --by may name; of a results folder its own.")  # fmt: skip
@click.option("--interval", default="t", show_default=True,
              help="Of a difference: t, percentile, bca, studentised; two-level for datasets.")  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True,
              help="Level of the intervals; tests use 1 minus it.")  # fmt: skip
@click.option(
    "--margin", type=float, help="A difference that counts as none: systems within it are equivalent."
)
@click.option("--draws", type=int, help="Draws of a test that draws.  [default: 100000]")
@click.option("--seed", type=int, help="Seed of the draws.")
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected"]), default="trec", show_default=True,
              help="Equal scores: by identifier, so compared as floats, or the mean over their orders.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Queries that a run does not answer score 0, or leave the comparison.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("-d", "--dataset", "datasets", shell_complete=dataset_names, multiple=True,
              help="Of a results folder: this dataset or group; repeatable.")  # fmt: skip
@systems_option("Of a results folder: this system; repeatable.")
@label_option
@click.option("--json", "form", flag_value="json", help="One JSON object per comparison, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="One line per pair, at full precision.")
@click.option("--latex", "form", flag_value="latex", help="A LaTeX table with the markers papers use.")
@click.option("--markdown", "form", flag_value="markdown", help="The same as a Markdown table.")
@click.option("--html", "form", flag_value="html", help="The same as a page of HTML.")
@click.option("--long", is_flag=True, help="Every pair on every dataset, also where there are many.")
@click.option("--explain", is_flag=True, help="Say how the numbers were made.")
@notes_option
def command(
    paths: tuple[Path, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    test: str,
    correct: str | None,
    factors: str | None,
    by: str | None,
    collection: str | None,
    interval: str,
    level: float,
    margin: float | None,
    draws: int | None,
    seed: int | None,
    ties: str,
    missing: str,
    drop_self: bool,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    explain: bool,
    notes: bool,
) -> None:
    """Compare systems, with significance tests.

    PATHS: judgments and two or more runs; or a results folder, whose systems are compared on each dataset and
    across datasets. A difference is the second system minus the first: the later given minus the earlier, or each
    minus the baseline, as in weir diff, weir gate and weir power. Each verdict is better, worse or not separable, with
    the smallest difference that the queries could have shown. Of three or more runs one that cannot be scored is named
    and left out; the exit code is 2 then. Tables are sorted by value; systems that share a letter
    cannot be told apart. With --by follow the macro mean over the groups and each group, the share of false verdicts
    on groups held at 1 minus the level. Several datasets make a grid for each measure, followed by the comparison
    across them; --long shows that of each dataset.

    With --factors the systems are cells of a grid, such as weir run -s 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})' makes:
    each level of a factor is set against the others, averaged over the other factors, every two factors are looked at
    for an interaction, and intervals and tests hold for all effects together; then follow shares of the variance.
    """
    from weir.errors import BadValue, FormatError
    from weir.experiment.factor_studies import refuse_beside_factors
    from weir.measures.conventions import DEFAULT, Conventions
    from weir.stats.bootstrap import SEED
    from weir.stats.comparison import ComparisonMethod
    from weir.stats.significance import DRAWS

    correction = correct or ("holm" if by is None else "bh")
    method = ComparisonMethod(test, correction, interval, level, margin=margin,
                    draws=DRAWS if draws is None else draws, seed=SEED if seed is None else seed)  # fmt: skip
    conventions = Conventions(ties, missing, self_matches="drop" if drop_self else "keep")
    if factors is not None:
        refuse_beside_factors(baseline, by)
    if len(paths) == 1 and paths[0].is_dir():
        if conventions != DEFAULT:
            raise BadValue(
                f"{conventions}: a results folder holds scores already; pass judgments and runs instead"
            )
        _folder(
            paths[0],
            (datasets, systems),
            (measures, baseline, method, factors),
            (labels, form, long, explain),
            (by, collection),
            notes,
        )
    elif len(paths) == 1 and not paths[0].exists():
        raise FormatError(paths[0], "no such folder", "a results folder, or judgments and two or more runs")
    elif len(paths) < 3:
        raise BadValue("expected judgments and two or more runs, or one results folder")
    elif datasets or systems:
        raise BadValue("-d and -s choose from a results folder; run files are named one by one")
    else:
        _files(
            paths,
            conventions,
            (measures, baseline, method, factors),
            (labels, form, long, explain),
            (by, collection),
            notes,
        )


def _files(
    paths: Sequence[Path],
    conventions: Conventions,
    asked: Asked,
    shown: Shown,
    groups: tuple[str | None, str | None],
    notes: bool,
) -> None:
    """Compare run files by judgments."""
    from weir.cli.table_options import display_of
    from weir.datasets.query_grouping import query_groups
    from weir.datasets.scoring_rules import ScoringRules, judged_collection
    from weir.experiment.factor_studies import factor_names, study_factors
    from weir.experiment.run_files import scores_of_files
    from weir.stats.compare import compare_scores
    from weir.stats.compare_groups import compare_scores_by_group
    from weir.stats.score_notes import system_notes

    measures, baseline, method, factors = asked
    by, collection = groups
    qrels, collection = judged_collection(paths[0], collection)
    rules = ScoringRules.of(collection, conventions)
    scores, refused = scores_of_files(qrels, paths[1:], measures, rules)
    labels, form, long, explain = shown
    display = display_of(form, long, labels, scores)
    baseline = _named(baseline, display)
    say_notes(system_notes(scores), notes)
    say_left_out(refused)  # before a baseline that is one of them is missed
    if factors is not None:
        of = {(paths[0].name, name): one for name, one in scores.items()}
        _show_factors(study_factors(of, factor_names(factors), measures, method), display)
    elif by is None:
        _show(compare_scores(scores, paths[0].name, baseline, method), display, explain)
    else:
        parts = query_groups(by, next(iter(scores.values())).queries, rules.dataset)
        _show(compare_scores_by_group(scores, paths[0].name, parts, baseline, method), display, explain)
    if refused:
        click.get_current_context().exit(2)


def _folder(
    folder: Path,
    chosen: tuple[tuple[str, ...], tuple[str, ...]],
    asked: Asked,
    shown: Shown,
    groups: tuple[str | None, str | None],
    notes: bool,
) -> None:
    """Compare the systems of a results folder, on each dataset and across them."""
    from weir.cli.table_options import chosen_cells, display_of
    from weir.core.notes import Note
    from weir.experiment.compare import lacking_notes
    from weir.experiment.factor_studies import factor_names, study_factors, twin_notes, twin_systems
    from weir.experiment.finished import deepest, finished_cells, system_titles
    from weir.experiment.results import cell_notes

    measures, baseline, method, factors = asked
    labels, form, long, explain = shown
    cells, said = chosen_cells(finished_cells(folder), *chosen), list[str]()
    if not any("#" in system for system in chosen[1]):  # who names a label means that cell
        cells, said = deepest(cells)
    display = display_of(form, long, labels, [c.label for c in cells])
    display = replace(display, labels={**system_titles(cells), **display.labels})
    baseline, twins = _named(baseline, display), twin_systems(cells)
    said += twin_notes(twins)
    if factors is not None:
        scores = {(c.dataset, c.label or c.system): c.values() for c in cells}
        _show_factors(study_factors(scores, factor_names(factors), measures, method, twins), display)
    else:
        _compare_cells(cells, asked, groups, display, explain)
    lacking = [*said, *lacking_notes(cells, measures, baseline)]
    say_notes([*map(Note, lacking), *cell_notes(cells)], notes)


def _compare_cells(
    cells: Sequence[Finished],
    asked: Asked,
    groups: tuple[str | None, str | None],
    display: Display,
    explain: bool,
) -> None:
    """The comparisons of finished cells, those of several datasets behind a grid."""
    from weir.cli.terminal import show
    from weir.experiment.compare import compare_cells, compare_cells_by_group
    from weir.experiment.finished import cell_groups
    from weir.experiment.results import rows_with_groups
    from weir.report.grid_table import grid_tables, write_grids

    (measures, baseline, method, _), (by, collection) = asked, groups
    baseline = _named(baseline, display)
    if by is None:
        found = compare_cells(cells, measures, baseline, method)
    else:
        found = compare_cells_by_group(
            cells,
            lambda cell, queries: cell_groups(cell, by, queries, collection),
            measures,
            baseline,
            method,
        )
    across = [c for c in found if c.unit == "datasets"]
    if across and display.form == "text" and not display.long:
        compared = {c.measure for c in found}
        rows = [row for row in rows_with_groups(cells) if row.measure in compared]
        tables = grid_tables(rows, found, display.labels)
        grid = [table for table in tables if table.measure in compared]
        show(write_grids(grid, "text", display.width, display.colour, legend=False))
        click.echo()
        found = across
    _show(found, display, explain)


def _show_factors(found: Sequence[FactorStudy], display: Display) -> None:
    """Print the factorial studies of systems."""
    from weir.cli.terminal import show
    from weir.report import factors as report

    shown = {
        "json": report.factors_json,
        "csv": report.factors_csv,
        "latex": report.factors_latex,
        "markdown": report.factors_markdown,
        "html": report.factors_page,
    }
    if display.form == "text":
        show(report.factors_text(found, display.width, display.colour, display.long))
    else:
        click.echo(shown[display.form](found))


def _named(baseline: str | None, display: Display) -> str | None:
    """The baseline's own name where it was given by its label."""
    return next((name for name, label in display.labels.items() if label == baseline), baseline)


def _show(found: Sequence[Comparison], display: Display, explain: bool) -> None:
    from weir.cli.terminal import show
    from weir.report import compare as report

    found = report.relabelled(found, display.labels)
    shown = {
        "json": report.compare_json,
        "csv": report.compare_csv,
        "latex": report.compare_latex,
        "markdown": report.compare_markdown,
        "html": report.compare_page,
    }
    if display.form == "text":
        show(report.compare_text(found, display.width, display.colour, display.long, explain))
    else:
        click.echo(shown[display.form](found))
