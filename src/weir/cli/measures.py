"""weir measures: what can be measured."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("measures")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def command(as_json: bool) -> None:
    """List the measures, their settings and where they come from.

    Any of them can be condensed, as in condensed(nDCG@10): documents that nobody judged leave the ranking first.
    """
    import inspect
    import json

    from weir.measures import MEASURES

    for name in MEASURES:
        known = MEASURES.get(name)
        cut = "@k" if known.cutoff == "required" else "[@k]"
        if as_json:
            about = {
                "measure": name,
                "cutoff": known.cutoff,
                "settings": known.defaults(),
                "summary": known.summary,
            }
            click.echo(json.dumps(about))
            continue
        settings = ", ".join(f"{key}={value!r}" for key, value in known.defaults().items())
        click.echo(f"{name}{cut}" + (f"   settings: {settings}" if settings else ""))
        for line in (inspect.getdoc(known.function) or "").split("\n"):
            click.echo(f"    {line}".rstrip())
        click.echo()
