"""What the shell offers behind <Tab>: names of measures, systems and collections; nothing is loaded for them."""

from __future__ import annotations

from collections.abc import Iterable

from click import Context, Parameter
from click.shell_completion import CompletionItem

__all__ = ["dataset_names", "measure_names", "system_names"]

CUTS = ("@10", "@100")


def measure_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Measures by name, with the usual cut-offs; behind @ the cut-offs."""
    from weir.measures import MEASURES

    if "@" in begun:
        return _items((begun.partition("@")[0] + cut for cut in CUTS), begun)
    names = []
    for name in MEASURES:
        known = MEASURES.get(name)
        names += [name] if known.cutoff != "required" else []
        names += [f"{name}@10"] if known.cutoff is not None else []
    return _items(names, begun)


def system_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Systems by name."""
    from weir.systems.protocol import SYSTEMS

    return _items(SYSTEMS, begun)


def dataset_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Collections and groups of the catalogue, or the folders that a path begins."""
    from weir.datasets import catalogue

    if begun.startswith((".", "/", "~")):
        return [CompletionItem(begun, type="dir")]
    return _items([*catalogue.groups(), *catalogue.names()], begun) or [CompletionItem(begun, type="dir")]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]
