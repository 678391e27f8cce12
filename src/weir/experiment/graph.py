"""The stages of a grid before it is run: what each is made from, and which systems share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weir.systems.protocol import Composite, Indexed, Retriever

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
    if isinstance(system, Composite):
        for part in system.components():
            if part.takes == "run":
                inputs.append(f"run {part.system}")
                yield from _walk(part.system)
            else:
                names = [f"{name} over {part.over}" if part.over else name for name in _indexes(part.system)]
                inputs += [f"index {name}" for name in names]
                yield from (Node("index", name, (), ()) for name in names)
    else:
        inputs.append(f"index {_index_name(system)}")
        yield Node("index", _index_name(system), (), ())
    yield Node("run", str(system), tuple(inputs), ())


def _indexes(system: Retriever) -> list[str]:
    """The indexes behind a system whose scores are asked for, its parts' where it has none of its own."""
    return [node.name for node in _walk(system) if node.kind == "index"]


def _index_name(system: Retriever) -> str:
    return str(system.indexed_as() if isinstance(system, Indexed) else system)
