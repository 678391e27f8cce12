"""The options -m, -d, -s, --collection and --by, and what the shell offers: measures, collections and systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from click import Context, Parameter, option
from click.shell_completion import CompletionItem

__all__ = [
    "by_option",
    "collection_option",
    "collections_option",
    "dataset_names",
    "datasets_option",
    "fetch_option",
    "measure_names",
    "measures_option",
    "system_names",
    "systems_option",
]

F = TypeVar("F", bound=Callable[..., object])

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
    """Collections and groups of the catalogue, references, or the folders that a path begins."""
    from weir.datasets import catalogue
    from weir.datasets.references import SCHEMES

    if begun.startswith((".", "/", "~")):
        return [CompletionItem(begun, type="dir")]
    return _items([*catalogue.groups(), *catalogue.names(), *SCHEMES], begun) or [
        CompletionItem(begun, type="dir")
    ]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


def measures_option(help: str = "A measure such as nDCG@10; repeatable.") -> Callable[[F], F]:
    """-m as the argument `measures`."""
    return option("-m", "--measure", "measures", shell_complete=measure_names, multiple=True, help=help)


def datasets_option(help: str) -> Callable[[F], F]:
    """-d as the argument `datasets`."""
    return option("-d", "--dataset", "datasets", shell_complete=dataset_names, multiple=True, help=help)


def systems_option(help: str) -> Callable[[F], F]:
    """-s as the argument `systems`."""
    return option("-s", "--system", "systems", shell_complete=system_names, multiple=True, help=help)


def collection_option(command: F) -> F:
    """--collection as the argument `collection`: what the runs are of."""
    return option("--collection", shell_complete=dataset_names,
        help="The collection of the runs, a name or a path: its rules hold (self-matches, candidates, queries without "
             "an answer).")(command)  # fmt: skip


def collections_option(command: F) -> F:
    """--collection as the argument `collections`: what run files are of, or where those of a results folder lie."""
    return option("--collection", "collections", multiple=True, shell_complete=dataset_names,
        metavar="[NAME=]COLLECTION",
        help="Documents, queries and rules of run files: a name or a path. Of a results folder: where a collection "
             "lies now, if not where it was; repeatable.")(command)  # fmt: skip


def fetch_option(command: F) -> F:
    """--fetch as the argument `fetch`."""
    return option("--fetch", is_flag=True,
        help="Let the collections that records of results name be brought here, over the network too; by default "
             "nothing is asked for and nothing is written.")(command)  # fmt: skip


def by_option(command: F) -> F:
    """--by as the argument `by`."""
    return option("--by", metavar="GROUPS",
        help="Groups of queries: prefix:_ or stem:- (the identifier up to the first or last such sign), a file of "
             "queries and groups, or a column of the collection.")(command)  # fmt: skip
