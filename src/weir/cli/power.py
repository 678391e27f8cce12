"""weir power: how small a difference can these queries show?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import collection_option, measures_option
from weir.cli.table_options import notes_option
from weir.cli.terminal import output_width, say_notes, show

__all__ = ["command"]


@click.command("power")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@measures_option()
@click.option("--effect", "effects", multiple=True, type=float,
              help="A difference to plan for; repeatable.  [default: 0.01, 0.02, 0.05]")  # fmt: skip
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the two-sided test.")
@click.option("--test", default="permutation", show_default=True, help="permutation, t or bootstrap-shift.")
@click.option("--power", "wanted", type=float, default=0.8, show_default=True,
              help="Probability with which a true difference shall be found.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@collection_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@notes_option
def command(
    qrels: Path,
    first: Path,
    second: Path,
    measures: tuple[str, ...],
    effects: tuple[float, ...],
    alpha: float,
    test: str,
    wanted: float,
    drop_self: bool,
    collection: str | None,
    as_json: bool,
    notes: bool,
) -> None:
    """Report detectable effects.

    The smallest difference that these queries can detect, and how many queries a smaller one needs. QRELS:
    judgments. FIRST, SECOND: two runs, such as a baseline and a variant; how much their differences vary from
    query to query decides. The difference is SECOND minus FIRST. Of one test alone; weir compare says what its test can
    show with its correction, which is less.
    """
    import json

    from weir.api.comparisons import power
    from weir.measures import DEFAULT_MEASURES
    from weir.measures.conventions import Conventions
    from weir.report.power import power_text

    plans = power(
        qrels,
        first,
        second,
        measures or DEFAULT_MEASURES,
        effects=effects or (0.01, 0.02, 0.05),
        alpha=alpha,
        power=wanted,
        test=test,
        conventions=Conventions(self_matches="drop" if drop_self else "keep"),
        collection=collection,
    )
    say_notes(plans.notes, notes)
    for plan in plans:
        show(json.dumps(plan.to_dict()) if as_json else power_text(plan, output_width()))
