"""Which settings the names of systems differ in: the factors of a grid, their levels, and what is missing of it."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from weir.core.strings import Int64
from weir.errors import BadValue, UnknownName, WeirError
from weir.registry import printed
from weir.stats.factorial import Factor, FactorialDesign
from weir.systems.expression import expression_tree, parse_system
from weir.systems.protocol import RERANKERS, SYSTEMS

__all__ = ["FactorialGrid", "chosen_factors", "factorial_grid"]

MISSING = "default"
"""The level of a setting that a name leaves out and of which the default is not known."""
NONE = "none"
"""The level of a re-ranker where another system has one more."""
_SHOWN_CELLS = 3  # missing combinations that a sentence names


@dataclass(frozen=True)
class FactorialGrid:
    """A complete design among some systems, and sentences on what was left out to get there."""

    design: FactorialDesign
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Column:
    """A place in which names differ: the path to it, outermost first, and what stands there in each name."""

    path: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Grid:
    """Factors, and the number of the level that each system has of each, int64[K, F]."""

    factors: tuple[Factor, ...]
    systems: tuple[str, ...]
    codes: Int64

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each factor has."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def lacking(self) -> int:
        """How many combinations of levels have no system."""
        return math.prod(self.shape) - len(self.systems)

    def without(self, axis: int, level: int) -> _Grid:
        """The grid without the systems of a level, and without factors of which one level is left."""
        kept = np.flatnonzero(self.codes[:, axis] != level)
        columns = [
            (factor.name, [factor.levels[code] for code in self.codes[kept, number]], factor.levels)
            for number, factor in enumerate(self.factors)
        ]
        varying = [(name, values, levels) for name, values, levels in columns if len(set(values)) > 1]
        factors = [Factor(name, tuple(v for v in levels if v in values)) for name, values, levels in varying]
        return _numbered(factors, [values for _, values, _ in varying], [self.systems[k] for k in kept])


def factorial_grid(systems: Sequence[str]) -> FactorialGrid:
    """The factors in which the names of systems differ, as a complete design of all systems or of most of them.

    A setting that a name leaves out has its default's level. What has more or fewer parts than most systems is left
    out, but for systems that lack the last re-ranker of an otherwise complete grid. Of an incomplete grid the levels
    with the largest share of missing combinations go, until each combination that is left has a system. Raises
    BadValue where no factor is left, and where two systems have the same levels.
    """
    stages = {name: found for name in systems if (found := _stages_of(name))}
    lengths = Counter(len(one) for one in stages.values())
    usual = max(lengths, key=lambda length: (lengths[length], length), default=0)
    grid = _grid({name: one for name, one in stages.items() if len(one) == usual})
    every = _grid(stages) if len(lengths) > 1 else grid
    if every and not every.lacking and (grid is None or len(every.factors) >= len(grid.factors)):
        grid = every
    if grid is None:
        raise BadValue(
            "no factors: expected two or more systems whose names differ in settings, such as bm25 and bm25(k1=1.2)"
        )
    left = [name for name in systems if name not in grid.systems]
    notes = [f"left out, as the grid is of systems in other parts: {_listed(left)}"] if left else []
    complete, said = _complete(grid)
    order = np.ravel_multi_index(tuple(complete.codes.T), complete.shape).argsort()
    design = FactorialDesign(complete.factors, tuple(complete.systems[k] for k in order))
    return FactorialGrid(design, (*notes, *said))


def chosen_factors(asked: Iterable[str], factors: Sequence[Factor]) -> tuple[str, ...]:
    """The names of the factors that are asked for; raises UnknownName for one that is not there."""
    wanted, known = tuple(asked), [factor.name for factor in factors]
    for name in wanted:
        if name not in known:
            raise UnknownName("factor of these systems", name, known)
    return wanted


def _stages_of(name: str) -> list[ast.expr]:
    """The first system of a name and its re-rankers, as trees; [] where the name is no expression."""
    try:
        tree = expression_tree(name)
    except WeirError:
        return []
    found: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.RShift):
        found.insert(0, tree.right)
        tree = tree.left
    found.insert(0, tree)
    return found if all(isinstance(one, (ast.Call, ast.Name)) for one in found) else []


def _grid(stages: Mapping[str, Sequence[ast.expr]]) -> _Grid | None:
    """The grid that systems are in, None where their names do not differ in settings."""
    longest = max(map(len, stages.values()), default=0)
    columns: list[_Column] = []
    for number in range(longest):
        nodes = [one[number] if number < len(one) else None for one in stages.values()]
        columns += _columns(nodes, (_stage_name(number, longest),))
    columns = _merged(columns)
    if not columns:
        return None
    names = _column_names([column.path for column in columns])
    factors = [Factor(name, _ordered(c.values)) for name, c in zip(names, columns, strict=True)]
    return _numbered(factors, [column.values for column in columns], list(stages))


def _stage_name(number: int, count: int) -> str:
    if number == 0:
        return "system" if count == 1 else "first"
    return "reranker" if count == 2 else f"reranker {number}"


def _columns(nodes: Sequence[ast.expr | None], path: tuple[str, ...]) -> Iterator[_Column]:
    """The places below here in which the nodes differ, the same place of each name."""
    if len({_text(node) for node in nodes}) == 1:
        return
    calls = [node for node in nodes if isinstance(node, (ast.Call, ast.Name))]
    heads = {_head(call) for call in calls}
    if len(calls) < len(nodes) or len(heads) > 1:
        yield _Column(path, tuple(map(_text, nodes)))
        return
    head, given = heads.pop(), [_settings(call) for call in calls]
    for setting in dict.fromkeys(name for one in given for name in one):
        values = [
            one[setting] if setting in one else _default(call, setting)
            for call, one in zip(calls, given, strict=True)
        ]
        yield from _columns(values, (*path, head, setting))


def _head(node: ast.Call | ast.Name) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _settings(node: ast.Call | ast.Name) -> dict[str, ast.expr]:
    """The settings that a part names, by their names; of several systems in a row by their number."""
    if isinstance(node, ast.Name):
        return {}
    known = _parameters(_head(node))
    order = [p.name for p in known if p.kind is p.POSITIONAL_OR_KEYWORD]
    first = next((p.name for p in known if p.kind is p.VAR_POSITIONAL), "")
    names = [order[at] if at < len(order) else f"{first} {at + 1}".strip() for at in range(len(node.args))]
    return dict(zip(names, node.args, strict=True)) | {k.arg: k.value for k in node.keywords if k.arg}


def _parameters(head: str) -> list[inspect.Parameter]:
    """The settings that a part can have; [] for one that this machine does not know."""
    registry = RERANKERS if head in RERANKERS else SYSTEMS
    try:
        return list(inspect.signature(registry.get(head)).parameters.values())
    except WeirError:
        return []


def _default(node: ast.Call | ast.Name, setting: str) -> ast.expr:
    """What a setting is that the part does not name: by its preset, or its default."""
    known = {p.name: p.default for p in _parameters(_head(node))}
    value = known.get(setting, inspect.Parameter.empty)
    if value is None and _head(node) in SYSTEMS:
        try:
            value = parse_system(ast.unparse(node)).describe().get(setting)
        except WeirError:
            value = None
    return (
        ast.Name(MISSING) if value is inspect.Parameter.empty else ast.parse(printed(value), mode="eval").body
    )


def _text(node: ast.expr | None) -> str:
    """A value as it is written, a text without its quotes."""
    if node is None:
        return NONE
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _merged(columns: Sequence[_Column]) -> list[_Column]:
    """The columns, those of which one follows from another as one: they cannot be told apart."""
    found: dict[tuple[int, ...], list[_Column]] = {}
    for column in columns:
        levels = list(dict.fromkeys(column.values))
        found.setdefault(tuple(levels.index(value) for value in column.values), []).append(column)
    return [
        several[0]
        if len(several) == 1
        else _Column(
            (" & ".join(_column_names([c.path for c in several])),),
            tuple(", ".join(parts) for parts in zip(*(c.values for c in several), strict=True)),
        )
        for several in found.values()
    ]


def _column_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """As much of the end of each path as tells it from the others."""
    return [".".join(_shortest(path, paths)) for path in paths]


def _shortest(path: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    for length in range(1, len(path)):
        if sum(other[-length:] == path[-length:] for other in paths) == 1:
            return path[-length:]
    return path


def _ordered(values: Iterable[str]) -> tuple[str, ...]:
    """The levels: what is not there first, False before True, numbers ascending, else as they come."""
    found = list(dict.fromkeys(values))
    absent = [value for value in found if value in (NONE, "None")]
    rest = [value for value in found if value not in absent]
    if set(rest) == {"True", "False"}:
        rest = ["False", "True"]
    with suppress(ValueError):
        rest = sorted(rest, key=float)
    return (*absent, *rest)


def _numbered(factors: Sequence[Factor], columns: Sequence[Sequence[str]], systems: Sequence[str]) -> _Grid:
    codes = [[f.levels.index(value) for value in column] for f, column in zip(factors, columns, strict=True)]
    return _Grid(
        tuple(factors), tuple(systems), np.array(codes, np.int64).reshape(len(factors), len(systems)).T
    )


def _complete(given: _Grid) -> tuple[_Grid, list[str]]:
    """The grid without the levels that lack most combinations, until none is lacking, and a sentence on them."""
    _refuse_twins(given)
    grid, dropped = given, list[str]()
    while grid.factors and grid.lacking:
        axis, level = _emptiest(grid)
        dropped.append(f"{grid.factors[axis].name}={grid.factors[axis].levels[level]}")
        grid = grid.without(axis, level)
    if not grid.factors:
        raise BadValue(f"no factors: {_incomplete(given)}, and without its levels nothing differs")
    if not dropped:
        return grid, []
    kept = f"{len(grid.systems)} of {len(given.systems)} systems, without {', '.join(dropped)}"
    return grid, [f"{_incomplete(given)}; analysed on {kept}"]


def _refuse_twins(grid: _Grid) -> None:
    """Raise BadValue for two systems of the same levels."""
    seen: dict[tuple[int, ...], str] = {}
    for name, codes in zip(grid.systems, grid.codes.tolist(), strict=True):
        other = seen.setdefault(tuple(codes), name)
        if other != name:
            raise BadValue(f"{other} and {name} have the same levels of all factors; leave one of them out")


def _emptiest(grid: _Grid) -> tuple[int, int]:
    """The factor and level that lack the largest share of their combinations; of equals of the factor with more."""
    found = []
    for axis, size in enumerate(grid.shape):
        counts = np.bincount(grid.codes[:, axis], minlength=size)
        share = 1 - counts * size / math.prod(grid.shape)
        found += [(share[level], size, axis, level) for level in range(size)]
    return max(found)[2:]


def _incomplete(grid: _Grid) -> str:
    """How many combinations have no system, and some of them."""
    there = {tuple(codes) for codes in grid.codes.tolist()}
    every = itertools.product(*map(range, grid.shape))
    lacking = itertools.islice((cell for cell in every if cell not in there), _SHOWN_CELLS)
    named = [
        ", ".join(f"{f.name}={f.levels[level]}" for f, level in zip(grid.factors, cell, strict=True))
        for cell in lacking
    ]
    count, cells = math.prod(grid.shape) - len(there), math.prod(grid.shape)
    return f"{count:,} of {cells:,} combinations have no system, such as {'; '.join(named)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_CELLS])
    return shown if len(names) <= _SHOWN_CELLS else f"{shown} and {len(names) - _SHOWN_CELLS} more"
