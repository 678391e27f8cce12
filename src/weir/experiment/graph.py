"""The stages of a grid before it is run: what each is made from, and which systems share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from weir.systems import Retriever

__all__ = ["Node", "stage_graph"]

Kind: TypeAlias = Literal["index", "run"]


@dataclass(frozen=True)
class Node:
    """A stage that a grid makes once for each collection.

    kind: "index" or "run", the rankings of a system; name: the system; inputs: the stages it is made from, as
    "kind name"; systems: those of the grid that need it.
    """

    kind: Kind
    name: str
    inputs: tuple[str, ...]
    systems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def stage_graph(systems: Sequence[Retriever]) -> list[Node]:
    """The stages of these systems, each once, after those that it is made from."""
    found: dict[str, Node] = {}
    for system in systems:
        for node in _walk(system):
            known = found.setdefault(str(node), node)
            users = tuple(dict.fromkeys((*known.systems, str(system))))
            found[str(node)] = Node(known.kind, known.name, known.inputs, users)
    return list(found.values())


def _walk(system: Retriever) -> Iterator[Node]:
    """The stages of a system, its own rankings last."""
    inputs = []
    for part in _parts(system):
        if isinstance(part, str):
            inputs.append(f"index {part}")
            yield Node("index", part, (), ())
        else:
            inputs.append(f"run {part}")
            yield from _walk(part)
    yield Node("run", str(system), tuple(inputs), ())


def _parts(system: Retriever) -> list[Retriever | str]:
    """What a system is made from: others whose rankings it takes, and names of indexes."""
    from weir.systems import Chunked, Fused, Pipeline, Score

    if isinstance(system, Pipeline):
        by = system.reranker
        return [system.first, *(_indexes(by.system) if isinstance(by, Score) else [])]
    if isinstance(system, Fused):
        return list(system.distinct.values())
    if isinstance(system, Chunked):
        pieces = f"passages of {system.words} words, {system.overlap} shared"
        return [f"{name} over {pieces}" for name in _indexes(system.system)]
    return [_index_name(system)]


def _indexes(system: Retriever) -> list[str]:
    """The indexes behind a system whose scores are asked for, its parts' where it has none of its own."""
    return [node.name for node in _walk(system) if node.kind == "index"]


def _index_name(system: Retriever) -> str:
    from weir.systems.protocol import Indexed

    return str(system.indexed_as() if isinstance(system, Indexed) else system)
