"""weir models: the encoders known by name."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("models")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def command(as_json: bool) -> None:
    """List the encoders that Weir knows.

    Any other name on the Hugging Face hub, and any folder with a checkpoint, works too: its own files say
    how it pools, what it puts before a text and how long a text may be.
    """
    import json
    from dataclasses import asdict

    from weir.encode.cards import cards
    from weir.report.table import columns

    if as_json:
        for entry in cards():
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
        return
    lines = [["name", "kind", "million", "pooling", "similarity", "tokens", "prompts", "checkpoint"]]
    for entry in cards():
        prompts = [p for p in (entry.query_prompt, entry.document_prompt) if p]
        tokens = sorted({entry.max_query, entry.max_document})
        lines.append(
            [
                entry.name,
                entry.kind,
                f"{entry.parameters:g}",
                entry.pooling or "-",
                entry.similarity or "-",
                "/".join(map(str, tokens)),
                str(len(prompts)) if prompts else "-",
                entry.hub,
            ]
        )
    click.echo(columns(lines))
    click.echo("\nany name on the Hugging Face hub and any folder with a checkpoint works too")
