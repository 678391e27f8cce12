"""weir list datasets: the catalogue."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("datasets")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def command(as_json: bool) -> None:
    """List the collections of the catalogue.

    `here` says whether one is on this machine: yes, or how to get it: fetch, or by licence.
    """
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, show
    from weir.core.tables import columns, paragraph
    from weir.datasets import catalogue

    known = catalogue.entries()
    groups = [catalogue.group(name) for name in catalogue.groups()]
    if as_json:
        for entry in known:
            click.echo(json.dumps(asdict(entry) | {"here": entry.here}, ensure_ascii=False))
        return
    lines = [["name", "task", "domain", "documents", "queries", "licence", "here"]]
    for entry in known:
        here = "yes" if entry.here else "licence" if entry.obtain else "fetch"
        sizes = [f"{entry.documents:,}", f"{entry.queries:,}"]
        lines.append([entry.name, entry.task, entry.domain, *sizes, entry.licence, here])
    show(columns(lines, width=output_width()))
    for group in groups:
        text = f"{group.name}: the unweighted mean of {', '.join(group.members)}"
        click.echo("\n" + paragraph(text, output_width()))
