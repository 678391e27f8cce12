"""weir list systems: what can be run."""

from __future__ import annotations

import click

from weir.cli.completion import system_names

__all__ = ["command"]


@click.command("systems")
@click.argument("system", shell_complete=system_names, required=False)
def command(system: str | None) -> None:
    """List the systems and their presets with every setting.

    SYSTEM: a name such as bm25 or cross, which is explained, or with settings, such as 'bm25(k1=1.2)'; then everything
    that can move its numbers is shown.
    """
    import inspect
    import json

    from weir.systems import PRESETS, RERANKERS, SYSTEMS, parse_system, usage

    registry = RERANKERS if system in RERANKERS else SYSTEMS
    if system is not None and system in registry:
        click.echo(f"{usage(system)}\n")
        click.echo(inspect.getdoc(registry.get(system)) or "")
        return
    if system is not None:
        click.echo(json.dumps(parse_system(system).describe(), indent=1))
        return
    for name in SYSTEMS:
        click.echo(usage(name))
        click.echo("    " + (inspect.getdoc(SYSTEMS.get(name)) or "").partition("\n")[0])
    click.echo("\nre-rankers, behind a system: bm25 >> score(rm3)")
    for name in RERANKERS:
        click.echo("    " + usage(name))
        click.echo("        " + (inspect.getdoc(RERANKERS.get(name)) or "").partition("\n")[0])
    click.echo("\npresets of bm25")
    for preset, recipe in PRESETS.items():
        click.echo(f'    bm25("{preset}"): {recipe.reproduces}')
        fields = " | ".join(recipe.fields)
        rule = "one field" if len(recipe.fields) == 1 else "summed"
        rule = rule if recipe.tie_breaker is None else f"best field, tie breaker {recipe.tie_breaker}"
        click.echo(
            f"        {recipe.analyzer}, k1={recipe.k1}, b={recipe.b}, lengths {recipe.lengths}, {fields} ({rule})"
        )
