"""The effects of factors on one collection or over several: differences, joint intervals, corrected tests, verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.scores import averaged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.across import pooled
from weir.stats.bootstrap import RESAMPLES
from weir.stats.compare import equivalences, hedges_g, signs, verdict_of
from weir.stats.comparison import ComparisonMethod, ScoreTable
from weir.stats.corrections import adjusted
from weir.stats.factorial import OTHERS, Contrast, FactorEffect, FactorialDesign, FactorStudy
from weir.stats.intervals import fewest
from weir.stats.significance import TESTS, Draws, p_values
from weir.stats.simultaneous_intervals import simultaneous_bounds, two_level_bounds
from weir.stats.variance_shares import variance_shares

__all__ = ["OWN_INTERVALS", "factor_study", "factor_study_across"]

OWN_INTERVALS = ("t", "two-level")
"""Kinds of intervals that effects take, all holding together: of queries drawn, and of collections and queries."""

_ROUNDING = 1e-12


def factor_study(
    table: ScoreTable,
    design: FactorialDesign,
    chosen: Sequence[str] = (),
    method: ComparisonMethod | None = None,
) -> FactorStudy:
    """The effects of a design's factors on one collection, and where the variance comes from.

    table: the values of the design's systems, in its order; chosen: factors whose effects are wanted, by default all:
    the correction and the intervals are for those together. Raises BadValue for systems in another order, and for a
    test or an interval that effects do not take.
    """
    return factor_study_across({table.dataset: [table]}, table.dataset, design, chosen, method)


def factor_study_across(
    datasets: Mapping[str, Sequence[ScoreTable]],
    name: str,
    design: FactorialDesign,
    chosen: Sequence[str] = (),
    method: ComparisonMethod | None = None,
) -> FactorStudy:
    """As `factor_study`, over several collections that weigh the same, each the mean of its parts where it has some.

    The collections are those of the study: intervals draw queries within each, tests swap levels on queries. With the
    interval "two-level" they are a sample too: intervals draw collections, then queries, and tests swap on
    collections. Raises as `factor_study` does.
    """
    method = method or ComparisonMethod()
    tables = [part for parts in datasets.values() for part in parts]
    if any(t.systems != design.systems for t in tables):
        raise BadValue("a factorial study needs the systems of its design, in its order, on each collection")
    if TESTS.get(method.test).familywise:
        raise BadValue(
            f"{method.test} is a test of all pairs of systems together; take permutation for effects of factors"
        )
    if method.interval not in OWN_INTERVALS:
        raise BadValue(
            f"{method.interval} intervals are of single differences; those of effects hold together: t or two-level"
        )
    wanted = [
        c for c in design.contrasts if not chosen or {design.factors[n].name for n in c.factors} <= {*chosen}
    ]
    effects = _effects(datasets, design, wanted, method)
    shares = variance_shares([t.values for t in tables], design.factors, method)
    first = tables[0]
    return FactorStudy(
        name,
        first.measure,
        sum(t.values.shape[1] for t in tables),
        tuple(datasets) if len(datasets) > 1 else (),
        sum(t.left_out for t in tables),
        design.factors,
        len(design.systems),
        effects,
        shares,
        method,
        first.geometric,
    )


@dataclass(frozen=True, eq=False)
class _Columns:
    """What effects are measured on: values of systems, float64[K, Q], by the parts that they come from.

    parts: for each collection those of its parts; tested: all of them as one, in which each collection weighs the
    same.
    """

    parts: list[list[Float64]]
    tested: Float64

    @property
    def weights(self) -> list[float]:
        """How much the mean of each part weighs."""
        return [1 / (len(self.parts) * len(one)) for one in self.parts for _ in one]


def _columns(datasets: Mapping[str, Sequence[ScoreTable]], two_level: bool) -> _Columns:
    names = sorted(datasets)  # so that no draw depends on the order that they are given in
    parts = [[t.values for t in sorted(datasets[name], key=lambda t: t.dataset)] for name in names]
    wholes = [pooled(datasets[name], name) for name in names]
    if two_level:
        return _Columns(parts, np.stack([whole.values.mean(axis=1) for whole in wholes], axis=1))
    return _Columns(parts, pooled(wholes, "").values)


def _effects(
    datasets: Mapping[str, Sequence[ScoreTable]],
    design: FactorialDesign,
    contrasts: Sequence[Contrast],
    method: ComparisonMethod,
) -> tuple[FactorEffect, ...]:
    """The effect of each contrast, with what holds for all of them together."""
    two_level = method.interval == "two-level" and len(datasets) > 1
    columns = _columns(datasets, two_level)
    weights = np.stack([c.weights for c in contrasts])
    rows = _differences(weights, columns.tested)
    nothing = np.zeros((1, rows.shape[1]))
    pairs = np.array([(number, len(rows)) for number in range(len(rows))])
    p = p_values(method.test, np.concatenate([rows, nothing]), pairs, Draws(method.draws, method.seed))
    corrected, same = adjusted(p, method.correct), equivalences(rows, method)
    limits = _bounds(columns, weights, method, two_level)
    geometric = next(iter(datasets.values()))[0].geometric
    found = []
    for number, contrast in enumerate(contrasts):
        row, difference = rows[number], _mean(rows[number])
        deviation = float(row.std(ddof=1))
        found.append(
            FactorEffect(
                *_names(design, contrast),
                *_sides(contrast, columns.tested, geometric),
                difference,
                *limits[number],
                float(p[number]),
                float(corrected[number]),
                None if len(datasets) > 1 else hedges_g(difference, deviation, len(row)),
                *signs(row),
                verdict_of(difference, float(corrected[number]), float(same[number]), method.alpha),
            )
        )
    return tuple(found)


def _differences(weights: Float64, values: Float64) -> Float64:
    """The effects on each query, float64[E, Q]; what is nothing but rounding is nothing."""
    rows = weights @ values
    return np.where(np.abs(rows) > _ROUNDING * np.abs(values).max(), rows, 0.0)


def _bounds(
    columns: _Columns, weights: Float64, method: ComparisonMethod, two_level: bool
) -> list[tuple[float | None, float | None]]:
    """The bounds of each effect, which hold for all together; None for too few queries or collections."""
    draws = Draws(RESAMPLES, method.seed)
    parts = [[_differences(weights, part) for part in dataset] for dataset in columns.parts]
    alone = [part for dataset in parts for part in dataset]
    fewest_columns = len(parts) if two_level else min(part.shape[1] for part in alone)
    if fewest_columns < fewest(method.level):
        return [(None, None)] * len(weights)
    if two_level:
        found = two_level_bounds(parts, method.level, draws)
    else:
        found = simultaneous_bounds(alone, columns.weights, method.level, draws)
    return [(low, high) for low, high in found.tolist()]


def _names(
    design: FactorialDesign, contrast: Contrast
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The names of the factors, their levels and what these are set against."""
    factors = [design.factors[number] for number in contrast.factors]
    levels = [factor.levels[level] for factor, level in zip(factors, contrast.levels, strict=True)]
    against = [factor.levels[0] if len(factor.levels) == 2 else OTHERS for factor in factors]
    return tuple(factor.name for factor in factors), tuple(levels), tuple(against)


def _sides(contrast: Contrast, values: Float64, geometric: bool) -> tuple[float | None, float | None]:
    """The means of the systems on either side of a main effect."""
    if len(contrast.factors) > 1:
        return None, None
    above, below = np.maximum(contrast.weights, 0), np.maximum(-contrast.weights, 0)
    return averaged(_mean(above @ values), geometric), averaged(_mean(below @ values), geometric)


def _mean(values: Float64) -> float:
    return math.fsum(values.tolist()) / len(values)
