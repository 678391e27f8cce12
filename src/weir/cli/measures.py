"""weir list measures: what can be measured."""

from __future__ import annotations

import click

from weir.cli.completion import measure_names
from weir.errors import WeirError

__all__ = ["command"]


@click.command("measures")
@click.argument("measure", shell_complete=measure_names, required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def command(measure: str | None, as_json: bool) -> None:
    """List the measures, their settings and their sources.

    MEASURE: one alone, by its name here or elsewhere, such as nDCG, 'AP(rel=2)' or ndcg_cut_10. Any of them can be
    condensed, as in condensed(nDCG@10): documents that nobody judged leave the ranking first.
    """
    import inspect
    import json

    from weir.measures import MEASURES

    for name in MEASURES if measure is None else [_name(measure)]:
        known = MEASURES.get(name)
        cut = "@k" if known.cutoff == "required" else "[@k]"
        if as_json:
            about = {
                "measure": name,
                "cutoff": known.cutoff,
                "settings": known.defaults(),
                "summary": known.summary,
                "grades": known.takes,
            }
            click.echo(json.dumps(about))
            continue
        settings = ", ".join(f"{key}={value!r}" for key, value in known.defaults().items())
        click.echo(f"{name}{cut}" + (f"   settings: {settings}" if settings else ""))
        for line in (inspect.getdoc(known.function) or "").split("\n"):
            click.echo(f"    {line}".rstrip())
        click.echo(f"    {known.takes}\n")


def _name(text: str) -> str:
    """The registered name of the measure that a text names, with settings, a cut-off or neither."""
    from weir.errors import UnknownName
    from weir.measures import MEASURES, parse_measure

    if text in MEASURES:
        return text
    try:
        return parse_measure(text).name
    except UnknownName:
        raise
    except WeirError:  # such as a cut-off that is missing: what is asked is which measure it is
        return parse_measure(f"{text}@10").name
