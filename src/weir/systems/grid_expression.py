"""Grids of systems in one text: `bm25(k1={0.6, 0.9}, b={0.4, 0.75})` names four systems.

Braces stand for several values of a setting, or several systems, in one place of an expression. Each combination is a
system of its own, which prints without braces.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, overload

from weir.errors import BadValue
from weir.systems.expression import expression_tree, parse_system
from weir.systems.protocol import Retriever

__all__ = ["MOST_SYSTEMS", "factorial", "parse_systems", "single_names"]

MOST_SYSTEMS = 1024  # that one text stands for

T = TypeVar("T")


def parse_systems(text: str) -> tuple[Retriever, ...]:
    """The systems that a text stands for: one, or every combination of the values in braces, the last varying fastest.

    Raises what `parse_system` raises of each, and BadValue for a value that stands twice in braces, for combinations
    that are the same system, and for more than MOST_SYSTEMS of them.
    """
    names = single_names(text)
    if len(names) == 1:
        return (parse_system(names[0]),)
    found: dict[str, Retriever] = {}
    for name in names:
        try:
            system = parse_system(name)
        except BadValue as error:
            raise BadValue(f"{error}; it is one of the grid: {name}") from None
        if str(system) in found:
            raise BadValue(f"the grid has {system} twice; expected values in braces that differ")
        found[str(system)] = system
    return tuple(found.values())


def single_names(text: str) -> tuple[str, ...]:
    """The texts of single systems that a text stands for, itself where it has no braces; none of them is built.

    Raises BadValue as `parse_systems` does.
    """
    tree = expression_tree(text)
    if not _has_braces(tree):
        return (text,)
    count = _count(tree)
    if count > MOST_SYSTEMS:
        raise BadValue(f"a grid of {count:,} systems; expected at most {MOST_SYSTEMS:,} in one text")
    return tuple(ast.unparse(one) for one in _alternatives(tree))


@overload
def factorial(given: str) -> tuple[Retriever, ...]: ...
@overload
def factorial(given: Callable[..., T], settings: Mapping[str, Iterable[object]]) -> tuple[T, ...]: ...
def factorial(
    given: str | Callable[..., T], settings: Mapping[str, Iterable[object]] | None = None
) -> tuple[Retriever, ...] | tuple[T, ...]:
    """Every combination of some values of settings, the last setting varying fastest: a factorial design.

    given: a text with values in braces, such as 'bm25(k1={0.6, 0.9}, b={0.4, 0.75})', or what makes a system or a
    re-ranker, such as weir.BM25, with the values of its settings by name. Raises BadValue for a setting without
    values and for too many combinations, and what making one of them raises.
    """
    if isinstance(given, str):
        return parse_systems(given)
    values = {name: tuple(several) for name, several in (settings or {}).items()}
    for name, several in values.items():
        if not several:
            raise BadValue(f"{name} has no value; expected one or more")
    if (count := math.prod(map(len, values.values()))) > MOST_SYSTEMS:
        raise BadValue(f"{count:,} combinations of settings; expected at most {MOST_SYSTEMS:,}")
    return tuple(given(**dict(zip(values, one, strict=True))) for one in itertools.product(*values.values()))


def _has_braces(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Set) for one in ast.walk(node))


def _count(node: ast.AST) -> int:
    """How many trees without braces a tree stands for."""
    inside = [_count(child) for child in ast.iter_child_nodes(node)]
    return sum(inside) if isinstance(node, ast.Set) else math.prod(inside)


def _alternatives(node: ast.AST) -> list[ast.AST]:
    """The trees without braces that a tree stands for, the last braces varying fastest."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Set):
        _refuse_repeated(node)
        return [one for child in children for one in _alternatives(child)]
    if not _has_braces(node):
        return [node]
    several = [_alternatives(child) for child in children]
    return [
        _with_children(node, dict(zip(map(id, children), one, strict=True)))
        for one in itertools.product(*several)
    ]


def _with_children(node: ast.AST, instead: Mapping[int, ast.AST]) -> ast.AST:
    """A copy of a node with others in the place of its children, by their identity."""
    found = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(found, name, [instead.get(id(one), one) for one in value])
        elif isinstance(value, ast.AST):
            setattr(found, name, instead.get(id(value), value))
    return found


def _refuse_repeated(node: ast.Set) -> None:
    """Raise BadValue for a value that stands twice in braces."""
    texts = [ast.unparse(one) for one in node.elts]
    repeated = next((text for text in texts if texts.count(text) > 1), None)
    if repeated is not None:
        raise BadValue(f"{ast.unparse(node)} has {repeated} twice; expected values that differ")
