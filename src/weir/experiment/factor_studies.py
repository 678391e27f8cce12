"""Factorial studies of the systems of a results folder or of given scores, on each collection and over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from weir.core.scores import Scores
from weir.errors import BadValue
from weir.experiment.compare import measures_wanted, units_across
from weir.experiment.costs import search_cost
from weir.experiment.factor_levels import chosen_factors, factorial_grid
from weir.experiment.finished import Finished
from weir.io.runs.read import read_run
from weir.measures import Measure
from weir.stats.compare import table
from weir.stats.comparison import ComparisonMethod
from weir.stats.factor_effects import factor_study, factor_study_across
from weir.stats.factorial import FactorialDesign, FactorStudy

__all__ = [
    "Twins",
    "factor_names",
    "refuse_beside_factors",
    "study_cells",
    "study_factors",
    "twin_notes",
    "twin_systems",
]

Twins: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""By dataset, pairs of systems that ask and read exactly the same there."""


def factor_names(given: str | Iterable[str] | bool) -> tuple[str, ...]:
    """The factors that are asked for: names with commas between, or several; () for all, which True and "" are."""
    if isinstance(given, bool):
        return ()
    names = given.split(",") if isinstance(given, str) else list(given)
    return tuple(name.strip() for name in names if name.strip())


def refuse_beside_factors(baseline: str | None, by: object) -> None:
    """Raise BadValue for what a factorial study does not take."""
    if baseline is not None:
        raise BadValue("factors: levels are set against each other, so there is no baseline; leave it out")
    if by is not None:
        raise BadValue(
            "factors are analysed over all queries, not by groups of them; leave one of the two out"
        )


def twin_systems(cells: Sequence[Finished]) -> dict[str, list[tuple[str, str]]]:
    """The systems that ask and read exactly the same, by dataset.

    They are those of one key, and those that asked a language model the same prompts and made the same rankings of the
    answers: a setting in which they differ has no meaning there, as an objective where nothing has an instruction.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    alike: dict[tuple[object, ...], list[Finished]] = {}
    for cell in cells:
        uses = search_cost(cell)["services"]
        asked = tuple(sorted((use["service"], use["prompts"]) for use in uses if "prompts" in use))
        others = alike.setdefault((cell.dataset, cell.depth, asked or cell.ranked.stage.key), [])
        own = read_run(cell.run).to_dict() if asked and others else None
        twin = next((one for one in others if own is None or read_run(one.run).to_dict() == own), None)
        if twin is None:
            others.append(cell)
        else:
            found.setdefault(cell.dataset, []).append((twin.label or twin.system, cell.label or cell.system))
    return found


def twin_notes(twins: Twins) -> list[str]:
    """A sentence for each two systems that ask and read the same."""
    return [
        f"{one} and {other} ask and read exactly the same on {dataset}: what they differ in has no meaning there"
        for dataset, pairs in twins.items()
        for one, other in pairs
    ]


def _refuse_twins(
    dataset: str, pairs: Sequence[tuple[str, str]], design: FactorialDesign, wanted: Sequence[str]
) -> None:
    """Raise BadValue for two levels of a factor whose systems, each beside its like, ask and read the same."""
    group: dict[str, str] = {}
    for one, other in pairs:
        group[other] = group.setdefault(one, one)
    shape = tuple(len(factor.levels) for factor in design.factors)
    systems = np.array(design.systems, object).reshape(shape)
    for axis, factor in enumerate(design.factors):
        if wanted and factor.name not in wanted:
            continue
        rows = np.moveaxis(systems, axis, 0).reshape(shape[axis], -1).tolist()
        by_level = [[group.get(name, name) for name in row] for row in rows]
        for a, b in combinations(range(shape[axis]), 2):
            if by_level[a] == by_level[b]:
                raise BadValue(
                    f"{factor.name}={factor.levels[a]} and {factor.name}={factor.levels[b]} are no levels of a factor "
                    f"on {dataset}: their systems ask and read exactly the same there; leave one out with -s, or the "
                    "collection with -d"
                )


def study_cells(
    cells: Sequence[Finished],
    factors: Iterable[str] = (),
    measures: Iterable[Measure | str] = (),
    method: ComparisonMethod | None = None,
) -> list[FactorStudy]:
    """A study for each measure and dataset of finished cells, and over datasets where there are several.

    factors: their names, by default all in which the systems differ; measures: by default all that the cells have.
    Raises as `study_factors`.
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
    """As `study_cells`, of scores by dataset and system; twins: systems that ask and read the same.

    The systems are those that each dataset has by the measure. A group whose members are all there, such as
    cqadupstack, counts as one collection if there are others. Raises BadValue where their names do not make a grid, and
    for two levels whose systems ask and read the same, UnknownName for a factor or measure that is not there.
    """
    datasets = list(dict.fromkeys(dataset for dataset, _ in scores))
    found = []
    for measure in measures_wanted([m for of in scores.values() for m in of.measures], measures):
        having = {key: one for key, one in scores.items() if measure in one.measures}
        there = [d for d in datasets if any(dataset == d for dataset, _ in having)]
        everywhere = [s for s in dict.fromkeys(s for _, s in having) if all((d, s) in having for d in there)]
        if not everywhere:
            raise BadValue(f"{measure}: the datasets have no system in common; choose some with -d")
        grid = factorial_grid(everywhere)
        chosen = chosen_factors(factors, grid.design.factors)
        for dataset in there:
            _refuse_twins(dataset, (twins or {}).get(dataset, ()), grid.design, chosen)
        lacking = [s for s in dict.fromkeys(s for _, s in having) if s not in everywhere]
        notes = (*grid.notes, *(f"left out, not being there for each dataset: {name}" for name in lacking))
        tables = [table(d, measure, {s: having[d, s] for s in grid.design.systems}) for d in there]
        studies = [factor_study(one, grid.design, chosen, method) for one in tables]
        units = units_across(tables)
        if len(units) > 1:
            studies.append(
                factor_study_across(units, f"{len(units)} collections", grid.design, chosen, method)
            )
        found += [replace(study, notes=notes) for study in studies]
    return found
