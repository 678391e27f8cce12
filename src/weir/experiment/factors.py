"""Study the effects of settings in which systems' names differ."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from weir.core.scores import Scores
from weir.core.strings import Int64
from weir.errors import BadValue, UnknownName, WeirError
from weir.experiment.comparing import measures_wanted, units_across
from weir.experiment.results import ResultCell, search_cost
from weir.files.runs import read_run
from weir.measures import Measure
from weir.registry import printed
from weir.stats.compare import ComparisonMethod, table
from weir.stats.factors import Factor, FactorialDesign, FactorStudy, factor_study, factor_study_across
from weir.systems.expression import expression_tree, parse_system
from weir.systems.protocol import RERANKERS, SYSTEMS

# ----------
# The factors of a grid, their levels, and the combinations that are missing.


MISSING = "default"
"""Level of a setting that a name omits and whose default is unknown."""
NONE = "none"
"""Level of systems without a re-ranker that others have."""
_SHOWN_CELLS = 3  # missing combinations that a sentence names


@dataclass(frozen=True)
class _Column:
    path: tuple[str, ...]
    """Outermost part first."""
    values: tuple[str, ...]
    """Its text in each name."""


@dataclass(frozen=True, eq=False)
class _Grid:
    factors: tuple[Factor, ...]
    systems: tuple[str, ...]
    codes: Int64
    """int64[systems, factors]: positions in `Factor.levels`."""

    @property
    def grid_shape(self) -> tuple[int, ...]:
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def lacking(self) -> int:
        return math.prod(self.grid_shape) - len(self.systems)

    def without(self, axis: int, level: int) -> _Grid:
        rows = np.flatnonzero(self.codes[:, axis] != level)
        columns = [
            (factor.name, [factor.levels[code] for code in self.codes[rows, number]], factor.levels)
            for number, factor in enumerate(self.factors)
        ]
        varying = [(name, values, levels) for name, values, levels in columns if len(set(values)) > 1]
        factors = [Factor(name, tuple(v for v in levels if v in values)) for name, values, levels in varying]
        return _numbered(factors, [values for _, values, _ in varying], [self.systems[k] for k in rows])


def factorial_grid(systems: Sequence[str]) -> tuple[FactorialDesign, tuple[str, ...]]:
    """Return (design with a system for each combination of settings, sentences on systems and levels left
    out).

    Factors are settings in systems' names. Raises BadValue if none remains, or two systems have the same
    levels.
    """
    # Omitted settings have their default. Systems of an unusual number of parts are left out, unless they only
    # lack the last re-ranker of a complete grid; so are systems of other kinds, if the commonest kind alone
    # gives more factors. Levels then go, largest share of missing combinations first, until none is missing.
    stages = {name: parts for name in systems if (parts := _stages_of(name))}
    lengths = Counter(len(one) for one in stages.values())
    usual = max(lengths, key=lambda length: (lengths[length], length), default=0)
    grid = _grid({name: one for name, one in stages.items() if len(one) == usual})
    every = _grid(stages) if len(lengths) > 1 else grid
    if every and not every.lacking and (grid is None or len(every.factors) >= len(grid.factors)):
        grid = every
    # Of several kinds of parts the commonest may differ in more settings than all of them in kinds.
    kinds = {
        name: tuple(_head(part) for part in one if isinstance(part, (ast.Call, ast.Name)))
        for name, one in stages.items()
    }
    commonest = max(Counter(kinds.values()).items(), key=lambda one: one[1], default=((), 0))[0]
    alike = _grid({name: one for name, one in stages.items() if kinds[name] == commonest})
    if grid is not None and alike is not None and len(alike.factors) > len(grid.factors):
        grid = alike
    if grid is None:
        raise BadValue(
            "no factors: expected two or more systems whose names differ in settings, such as bm25 and bm25(k1=1.2)"
        )
    outside = [name for name in systems if name not in grid.systems]
    names = ", ".join(outside[:_SHOWN_CELLS])
    names += f" and {len(outside) - _SHOWN_CELLS} more" if len(outside) > _SHOWN_CELLS else ""
    notes = [f"left out, as the grid is of systems in other parts: {names}"] if outside else []
    complete, sentences = _complete(grid)
    order = np.ravel_multi_index(tuple(complete.codes.T), complete.grid_shape).argsort()
    design = FactorialDesign(complete.factors, tuple(complete.systems[k] for k in order))
    return design, (*notes, *sentences)


def chosen_factors(names: Iterable[str], factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the names as a tuple; raises UnknownName for a name that is no factor."""
    chosen, available = tuple(names), [factor.name for factor in factors]
    for name in chosen:
        if name not in available:
            raise UnknownName("factor of these systems", name, available)
    return chosen


def _stages_of(name: str) -> list[ast.expr]:
    try:
        tree = expression_tree(name)
    except WeirError:
        return []
    parts: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.RShift):
        parts.insert(0, tree.right)
        tree = tree.left
    parts.insert(0, tree)
    return parts if all(isinstance(one, (ast.Call, ast.Name)) for one in parts) else []


def _grid(stages: Mapping[str, Sequence[ast.expr]]) -> _Grid | None:
    longest = max(map(len, stages.values()), default=0)
    columns: list[_Column] = []
    for number in range(longest):
        nodes = [one[number] if number < len(one) else None for one in stages.values()]
        first, reranker = number == 0, "reranker" if longest == 2 else f"reranker {number}"
        columns += _columns(nodes, (("system" if longest == 1 else "first") if first else reranker,))
    # Columns of which one follows from another become one: they cannot be told apart.
    same: dict[tuple[int, ...], list[_Column]] = {}
    for column in columns:
        levels = list(dict.fromkeys(column.values))
        same.setdefault(tuple(levels.index(value) for value in column.values), []).append(column)
    columns = [
        several[0]
        if len(several) == 1
        else _Column(
            (" & ".join(_column_names([c.path for c in several])),),
            tuple(", ".join(parts) for parts in zip(*(c.values for c in several), strict=True)),
        )
        for several in same.values()
    ]
    if not columns:
        return None
    names = _column_names([column.path for column in columns])
    factors = [Factor(name, _ordered(c.values)) for name, c in zip(names, columns, strict=True)]
    return _numbered(factors, [column.values for column in columns], list(stages))


def _columns(nodes: Sequence[ast.expr | None], path: tuple[str, ...]) -> Iterator[_Column]:
    if len({_text(node) for node in nodes}) == 1:
        return
    calls = [node for node in nodes if isinstance(node, (ast.Call, ast.Name))]
    heads = {_head(call) for call in calls}
    if len(calls) < len(nodes) or len(heads) > 1:
        yield _Column(path, tuple(map(_text, nodes)))
        return
    head, settings = heads.pop(), []
    parameters = _parameters(head)
    order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    several = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
    for call in calls:  # by name; of several systems in a row by their number
        arguments = [] if isinstance(call, ast.Name) else call.args
        names = [order[n] if n < len(order) else f"{several} {n + 1}".strip() for n in range(len(arguments))]
        keywords = [] if isinstance(call, ast.Name) else call.keywords
        settings.append(
            dict(zip(names, arguments, strict=True)) | {k.arg: k.value for k in keywords if k.arg}
        )
    for setting in dict.fromkeys(name for one in settings for name in one):
        values = [
            one[setting] if setting in one else _default(call, setting)
            for call, one in zip(calls, settings, strict=True)
        ]
        yield from _columns(values, (*path, head, setting))


def _head(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _parameters(head: str) -> list[inspect.Parameter]:
    registry = RERANKERS if head in RERANKERS else SYSTEMS
    try:
        return list(inspect.signature(registry.get(head)).parameters.values())
    except WeirError:
        return []


def _default(node: ast.Call | ast.Name, setting: str) -> ast.expr:
    defaults = {p.name: p.default for p in _parameters(_head(node))}
    value = defaults.get(setting, inspect.Parameter.empty)
    if value is None and _head(node) in SYSTEMS:
        try:
            value = parse_system(ast.unparse(node)).describe().get(setting)
        except WeirError:
            value = None
    return (
        ast.Name(MISSING) if value is inspect.Parameter.empty else ast.parse(printed(value), mode="eval").body
    )


def _text(node: ast.expr | None) -> str:
    if node is None:
        return NONE
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _column_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    # The shortest end of each path that no other path shares.
    ends = [[path[-length:] for length in range(1, len(path))] for path in paths]
    unique = [(end for end in of if sum(other[-len(end) :] == end for other in paths) == 1) for of in ends]
    return [".".join(next(of, path)) for of, path in zip(unique, paths, strict=True)]


def _ordered(values: Iterable[str]) -> tuple[str, ...]:
    levels = list(dict.fromkeys(values))
    absent = [value for value in levels if value in (NONE, "None")]
    rest = [value for value in levels if value not in absent]
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


def _complete(incomplete: _Grid) -> tuple[_Grid, list[str]]:
    first_of: dict[tuple[int, ...], str] = {}
    for name, codes in zip(incomplete.systems, incomplete.codes.tolist(), strict=True):
        other = first_of.setdefault(tuple(codes), name)
        if other != name:
            raise BadValue(f"{other} and {name} have the same levels of all factors; leave one of them out")
    grid, dropped = incomplete, list[str]()
    # Drop levels until every combination of the others has a system.
    while grid.factors and grid.lacking:
        # The level that lacks the largest share of its combinations goes; of equals one of the factor with most.
        shares = []
        for number, size in enumerate(grid.grid_shape):
            counts = np.bincount(grid.codes[:, number], minlength=size)
            share = 1 - counts * size / math.prod(grid.grid_shape)
            shares += [(share[level], size, number, level) for level in range(size)]
        axis, level = max(shares)[2:]
        dropped.append(f"{grid.factors[axis].name}={grid.factors[axis].levels[level]}")
        grid = grid.without(axis, level)
    if not grid.factors:
        raise BadValue(f"no factors: {_incomplete(incomplete)}, and without its levels nothing differs")
    if not dropped:
        return grid, []
    remaining = f"{len(grid.systems)} of {len(incomplete.systems)} systems, without {', '.join(dropped)}"
    return grid, [f"{_incomplete(incomplete)}; analysed on {remaining}"]


def _incomplete(grid: _Grid) -> str:
    there = {tuple(codes) for codes in grid.codes.tolist()}
    every = itertools.product(*map(range, grid.grid_shape))
    lacking = itertools.islice((cell for cell in every if cell not in there), _SHOWN_CELLS)
    examples = [
        ", ".join(f"{f.name}={f.levels[level]}" for f, level in zip(grid.factors, cell, strict=True))
        for cell in lacking
    ]
    count, cells = math.prod(grid.grid_shape) - len(there), math.prod(grid.grid_shape)
    verb = "has" if count == 1 else "have"
    return f"{count:,} of {cells:,} combinations {verb} no system, such as {'; '.join(examples)}"


# ----------
# Factorial studies on each collection and over all of them.


Twins: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""{dataset: pairs of systems that send and receive exactly the same there}."""


def factor_names(factors: str | Iterable[str] | bool) -> tuple[str, ...]:
    """Return the factors in a comma-separated text or list; () for True, False and "", which mean all."""
    if isinstance(factors, bool):
        return ()
    names = factors.split(",") if isinstance(factors, str) else list(factors)
    return tuple(name.strip() for name in names if name.strip())


def refuse_beside_factors(baseline: str | None, by: object) -> None:
    """Raise BadValue if a study of factors is combined with a baseline or groups of queries."""
    if baseline is not None:
        raise BadValue("factors: levels are set against each other, so there is no baseline; leave it out")
    if by is not None:
        raise BadValue(
            "factors are analysed over all queries, not by groups of them; leave one of the two out"
        )


def twin_systems(cells: Sequence[ResultCell]) -> dict[str, list[tuple[str, str]]]:
    """Return {dataset: pairs of systems with the same prompts and rankings there, despite different
    settings}.
    """
    pairs: dict[str, list[tuple[str, str]]] = {}
    alike: dict[tuple[object, ...], list[ResultCell]] = {}
    for cell in cells:
        uses = search_cost(cell)["services"]
        prompts = tuple(sorted((use["service"], use["prompts"]) for use in uses if "prompts" in use))
        others = alike.setdefault((cell.dataset, cell.depth, prompts or cell.ranked.stage.key), [])
        own = read_run(cell.run).to_dict() if prompts and others else None
        twin = next((one for one in others if own is None or read_run(one.run).to_dict() == own), None)
        if twin is None:
            others.append(cell)
        else:
            pairs.setdefault(cell.dataset, []).append((twin.label or twin.system, cell.label or cell.system))
    return pairs


def twin_notes(twins: Twins, titles: Mapping[str, str]) -> list[str]:
    """Return a sentence for each pair from `twin_systems`; `titles` is {system: name to show}."""
    return [
        f"{titles.get(one, one)} and {titles.get(other, other)} ask and read exactly the same on {dataset}: what they "
        "differ in has no meaning there"
        for dataset, pairs in twins.items()
        for one, other in pairs
    ]


def _refuse_twin_levels(
    dataset: str, pairs: Sequence[tuple[str, str]], design: FactorialDesign, chosen: Sequence[str]
) -> None:
    group: dict[str, str] = {}
    for one, other in pairs:
        group[other] = group.setdefault(one, one)
    shape = tuple(len(factor.levels) for factor in design.factors)
    systems = np.array(design.systems, object).reshape(shape)
    for axis, factor in enumerate(design.factors):
        if chosen and factor.name not in chosen:
            continue
        rows = np.moveaxis(systems, axis, 0).reshape(shape[axis], -1).tolist()
        by_level = [[group.get(name, name) for name in row] for row in rows]
        for a, b in combinations(range(shape[axis]), 2):
            if by_level[a] == by_level[b]:
                raise BadValue(
                    f"{factor.name}={factor.levels[a]} and {factor.name}={factor.levels[b]} are no levels of a factor "
                    f"on {dataset}: their systems ask and read exactly the same there; leave one out with `only`, or "
                    "the collection with `datasets`"
                )


def study_cells(
    cells: Sequence[ResultCell],
    factors: Iterable[str] = (),
    measures: Iterable[Measure | str] = (),
    method: ComparisonMethod | None = None,
) -> list[FactorStudy]:
    """Return a study of factors, by default all, for each measure and dataset, and across datasets, of the
    systems that all have.

    Raises BadValue if systems form no grid, levels have equal results, or no dataset has two shared queries;
    UnknownName for a factor or measure.
    """
    return study_factors(
        {(c.dataset, c.label or c.system): c.values() for c in cells},
        factors,
        measures,
        method,
        twin_systems(cells),
    )


def study_factors(
    scores: Mapping[tuple[str, str], Scores],
    factors: Iterable[str] = (),
    measures: Iterable[Measure | str] = (),
    method: ComparisonMethod | None = None,
    twins: Twins | None = None,
) -> list[FactorStudy]:
    """Return a study of factors for each measure and dataset, and across datasets, from {(dataset, system):
    scores}.

    twins: from `twin_systems`.

    A complete group counts as one collection. Raises the errors of `study_cells`.
    """
    datasets = list(dict.fromkeys(dataset for dataset, _ in scores))
    all_studies = []
    for measure in measures_wanted([m for of in scores.values() for m in of.measures], measures):
        having = {key: one for key, one in scores.items() if measure in one.measures}
        there = [d for d in datasets if any(dataset == d for dataset, _ in having)]
        everywhere = [s for s in dict.fromkeys(s for _, s in having) if all((d, s) in having for d in there)]
        if not everywhere:
            raise BadValue(f"{measure}: the datasets have no system in common; choose some with `datasets`")
        design, omissions = factorial_grid(everywhere)
        chosen = chosen_factors(factors, design.factors)
        for dataset in there:
            _refuse_twin_levels(dataset, (twins or {}).get(dataset, ()), design, chosen)
        lacking = [s for s in dict.fromkeys(s for _, s in having) if s not in everywhere]
        every = [table(d, measure, {s: having[d, s] for s in design.systems}, least=1) for d in there]
        if not (tables := [one for one in every if one.comparable]):
            raise BadValue(
                f"{measure}: no dataset has two queries with a value of every system, as effects need"
            )
        notes = (
            *omissions,
            *(f"left out, not being there for each dataset: {name}" for name in lacking),
            *(f"left out, having one query: {one.dataset}" for one in every if not one.comparable),
        )
        studies = [factor_study(one, design, chosen, method) for one in tables]
        units = units_across(tables)
        if len(units) > 1:
            studies.append(factor_study_across(units, f"{len(units)} collections", design, chosen, method))
        all_studies += [replace(study, notes=notes) for study in studies]
    return all_studies
