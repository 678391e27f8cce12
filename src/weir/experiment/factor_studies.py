"""Factorial studies of the systems of a results folder or of given scores, on each collection and over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weir.core.scores import Scores
from weir.errors import BadValue
from weir.experiment.compare import measures_wanted, units_across
from weir.experiment.factor_levels import chosen_factors, factorial_grid
from weir.experiment.finished import Finished
from weir.measures import Measure
from weir.stats.compare import table
from weir.stats.comparison import ComparisonMethod
from weir.stats.factor_effects import factor_study, factor_study_across
from weir.stats.factorial import FactorStudy

__all__ = ["factor_names", "refuse_beside_factors", "study_cells", "study_factors"]


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
        {(c.dataset, c.label or c.system): c.values() for c in cells}, factors, measures, method
    )


def study_factors(
    scores: Mapping[tuple[str, str], Scores],
    factors: Iterable[str] = (),
    measures: Iterable[Measure | str] = (),
    method: ComparisonMethod | None = None,
) -> list[FactorStudy]:
    """As `study_cells`, of scores by dataset and system.

    The systems are those that each dataset has by the measure. A group whose members are all there, such as
    cqadupstack, counts as one collection if there are others. Raises BadValue where their names do not make a grid,
    UnknownName for a factor or measure that is not there.
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
