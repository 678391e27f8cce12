"""Factorial studies: effects of the settings in which systems differ, and shares of variance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from weir.core.colours import STYLES
from weir.core.frames import json_value
from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import between, change, count, effect, percent, probability, score
from weir.core.scores import averaged
from weir.core.short_names import short_names
from weir.core.strings import Float64
from weir.core.tables import Cell, Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.measure import direction, direction_notes
from weir.stats.compare import (
    ComparisonMethod,
    ScoreTable,
    Verdict,
    equivalences,
    hedges_g,
    pooled,
    signs,
    verdict_of,
)
from weir.stats.power import Family, Reach, reach
from weir.stats.resampling import BLOCK_CELLS, RESAMPLES, Draws, fewest, simultaneous_bounds, two_level_bounds
from weir.stats.significance import TESTS, adjusted, deviation_of, exact_mean, p_values

OTHERS = "others"
"""Name of the mean of all other levels, with which each level of three or more is compared."""


@dataclass(frozen=True)
class Factor:
    """A setting, or a part of systems, with its levels; the first level is the reference."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class FactorialDesign:
    """A full factorial design: a system for each combination of levels, the last factor varying fastest.

    Raises BadValue for a factor of fewer than two levels or a wrong number of systems.
    """

    factors: tuple[Factor, ...]
    systems: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.factors or min(self.shape) < 2:
            raise BadValue("a factorial study needs a factor, and each factor two levels or more")
        if math.prod(self.shape) != len(self.systems):
            raise BadValue(
                f"{len(self.systems)} systems do not fill the {math.prod(self.shape)} cells of a design"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @cached_property
    def contrasts(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...], Float64], ...]:
        """(factor positions, level positions, weights of the systems) of each main effect, then each
        interaction of two factors.

        weights @ means is the effect. A factor of two levels has one, second minus first; of more, one for
        each level, minus the mean of the others.
        """
        # Effects average over all other factors. An interaction is the change of one factor's effect
        # between levels of the other.
        count, contrasts = len(self.factors), []
        for numbers in [*((number,) for number in range(count)), *itertools.combinations(range(count), 2)]:
            choices = [[1] if self.shape[n] == 2 else list(range(self.shape[n])) for n in numbers]
            for levels in itertools.product(*choices):
                chosen, axes = dict(zip(numbers, levels, strict=True)), []
                for n, size in enumerate(self.shape):
                    if n in chosen:  # one level against the others
                        weights = np.full(size, -1 / (size - 1))
                        weights[chosen[n]] = 1
                    else:
                        weights = np.full(size, 1 / size)
                    axes.append(weights)
                contrasts.append((numbers, levels, reduce(np.multiply.outer, axes).reshape(-1)))
        return tuple(contrasts)


@dataclass(frozen=True)
class FactorEffect:
    """The effect of a factor's level, or the interaction of two factors' levels."""

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    """For each factor the level compared with, OTHERS if it has more than two."""
    mean: float | None
    """Mean of the systems with the level, `other` of all others; None for an interaction."""
    other: float | None
    difference: float
    low: float | None
    """`low` to `high` is an interval valid for all effects together; both None for fewer queries than `fewest`."""
    high: float | None
    p: float
    adjusted: float
    """p corrected over all effects."""
    effect: float | None
    """Hedges' g; None across collections."""
    won: int
    """Queries with a better value; `lost` with a worse, `tied` with an equal value."""
    lost: int
    tied: int
    verdict: Verdict


@dataclass(frozen=True)
class VarianceSource:
    """A source of variance among all systems' scores on all queries, with its share."""

    source: str
    df: int
    squares: float
    """Sum of squares."""
    share: float
    """Share of the total sum of squares."""
    eta: float | None
    """Generalised eta squared; None if the source is no effect of factors."""
    p: float | None
    """From permuting the levels at random within each query; None, like `adjusted`, if not tested."""
    adjusted: float | None


@dataclass(frozen=True, repr=False)
class FactorStudy:
    """Effects of factors on a measure, and shares of variance, on one or several collections."""

    dataset: str
    measure: str
    count: int
    """Number of queries."""
    collections: tuple[str, ...]
    """() for a single collection."""
    left_out: int
    """Queries dropped because a system has no value."""
    factors: tuple[Factor, ...]
    systems: int
    effects: tuple[FactorEffect, ...]
    sources: tuple[VarianceSource, ...]
    method: ComparisonMethod
    geometric: bool = False
    """True if values are logarithms."""
    notes: tuple[str, ...] = ()
    """Sentences on gaps in the design."""

    __repr__ = member_text
    _repr_html_ = member_html

    @property
    def unit(self) -> str:
        """The unit that tests permute: "collections" for two-level intervals over several, else "queries"."""
        return "collections" if self.method.interval == "two-level" and self.collections else "queries"

    @property
    def reach(self) -> Reach:
        """The smallest p-value that the effects' tests can give."""
        units = self.count if self.unit == "queries" else len(self.collections)
        m = self.method
        family = Family(len(self.effects), 1, m.correct)
        return reach(m.test, units, m.alpha, family, Draws(m.draws, m.seed))


# Shares of variance.

HIGHER = "higher interactions"
"""The interactions of three factors or more, together."""

_ROUNDING = 1e-11
_WORK_CELLS = 60_000_000  # values that the deals of one source move: about a second
_ALL_ORDERS = 6  # levels of which every order is laid out, 720 of them
_SOME_ORDERS = 5_000  # of more levels
_LEAST_DEALS = 999


def variance_shares(
    parts: Sequence[Float64], factors: Sequence[Factor], method: ComparisonMethod
) -> tuple[VarianceSource, ...]:
    """Return the sources of variance: collections, queries, factors, interactions, residual; NaN shares if
    all values are equal.

    parts: float64[systems, queries] for each collection, systems as in a `FactorialDesign`.
    """
    # Generalised eta squared is an effect's sum of squares over its own plus those of collections, queries and
    # the residual (Olejnik and Algina 2003). p-values deal the levels of a factor at random within each query,
    # and the residuals of an interaction by rows and columns (Pesarin and Salmaso 2010, chapter 6).
    values = np.concatenate(list(parts), axis=1)
    shape = tuple(len(factor.levels) for factor in factors)
    systems, queries = values.shape

    def of_systems(part: Float64) -> float:
        return float(np.square(part.mean(axis=1) - part.mean()).sum() * part.shape[1])

    squares: dict[str, tuple[int, float]] = {}  # degrees of freedom and sum of squares of each source
    if len(parts) > 1:
        among = systems * sum(p.shape[1] * float(p.mean() - values.mean()) ** 2 for p in parts)
        squares["collections"] = (len(parts) - 1, among)
    within = systems * sum(float(np.square(p.mean(axis=0) - p.mean()).sum()) for p in parts)
    squares["queries"] = (queries - len(parts), within)
    means, numbers = values.mean(axis=1).reshape(shape), range(len(factors))
    tested: dict[str, tuple[int, ...]] = {}  # the factors that each effect is of
    for axes in [*((axis,) for axis in numbers), *itertools.combinations(numbers, 2)]:
        name, sizes = " × ".join(factors[axis].name for axis in axes), [shape[axis] for axis in axes]
        apart = float(np.square(_projected(means, axes, len(shape))).sum()) * values.size / math.prod(sizes)
        squares[name], tested[name] = (math.prod(size - 1 for size in sizes), apart), axes
    if len(factors) > 2:
        df, effects = (sum(squares[name][n] for name in tested) for n in (0, 1))
        among = float(np.square(means - means.mean()).sum()) * queries
        squares[HIGHER] = (means.size - 1 - int(df), max(0.0, among - effects))
    if len(parts) > 1:  # how systems differ by collection, less how they differ on all queries
        apart = sum(map(of_systems, parts)) - of_systems(values)
        squares["systems × collections"] = ((systems - 1) * (len(parts) - 1), max(0.0, apart))
    total = float(np.square(values - values.mean()).sum())
    df, explained = (sum(one[n] for one in squares.values()) for n in (0, 1))
    squares["residual"] = (values.size - 1 - int(df), max(0.0, total - explained))
    by_chance = sum(size for name, (_, size) in squares.items() if name not in tested and name != HIGHER)
    p = np.array([randomised_p(values, shape, axes, method) for axes in tested.values()])
    p_of = dict(zip(tested, zip(p.tolist(), adjusted(p, method.correct).tolist(), strict=True), strict=True))
    sources = []
    for name, (df, size) in squares.items():
        eta = size / (size + by_chance) if name in tested and size + by_chance else None
        share = size / total if total else math.nan
        sources.append(VarianceSource(name, df, size, share, eta, *p_of.get(name, (None, None))))
    return tuple(sources)


def randomised_p(
    values: Float64, shape: tuple[int, ...], axes: tuple[int, ...], method: ComparisonMethod
) -> float:
    """Return the p-value of a main effect or interaction, permuting its factors' levels within each query.

    values: float64[systems, queries].
    shape: number of levels of each factor.
    axes: positions of the effect's one or two factors.
    """
    # For factors of two levels this is the paired randomisation test of the contrast. Otherwise deals are
    # limited by the work they take.
    effect = _projected(values.reshape(*shape, -1), axes, len(shape))
    sizes = tuple(shape[axis] for axis in axes)
    effect = effect.reshape(*sizes, -1)
    draws = Draws(min(method.draws, RESAMPLES), method.seed)
    if max(sizes) == 2:
        row = effect[(1,) * len(sizes)]
        row = np.where(np.abs(row) > _ROUNDING * np.abs(values).max(), row, 0.0)
        return float(p_values("permutation", np.stack([row, np.zeros_like(row)]), draws=draws)[0])
    observed = float(np.square(effect.sum(axis=-1)).sum())
    most = max(_LEAST_DEALS, min(draws.count, _WORK_CELLS // effect.size))
    threshold = observed - _ROUNDING * float(np.abs(effect).sum()) ** 2
    dealt = _dealt(effect, Draws(most, draws.seed))
    return (sum(int(np.count_nonzero(block >= threshold)) for block in dealt) + 1) / (most + 1)


def _dealt(effect: Float64, draws: Draws) -> Iterator[Float64]:
    # All orders of a factor's levels are tabulated; for more than six levels a random choice of orders.
    generator = draws.generator()
    cells, queries = effect.size // effect.shape[-1], effect.shape[-1]
    tables = []  # orders of each factor's levels, int64[N, size]
    for size in effect.shape[:-1]:
        if size <= _ALL_ORDERS:
            tables.append(np.array(list(itertools.permutations(range(size)))))
        else:
            tables.append(generator.permuted(np.tile(np.arange(size), (_SOME_ORDERS, 1)), axis=1))
    numbers = np.arange(cells).reshape(effect.shape[:-1])
    by_query = np.ascontiguousarray(effect.reshape(cells, queries).T)
    rows = max(1, BLOCK_CELLS // effect.size)
    for start in range(0, draws.count, rows):
        count = min(rows, draws.count - start)
        places = numbers
        for axis, table in enumerate(tables):
            order = table[generator.integers(0, len(table), (count, queries))]
            places = order if axis == 0 else places[..., :, None] * len(numbers[0]) + order[..., None, :]
        at = places.reshape(count, queries, cells) + np.arange(queries)[:, None] * cells
        sums = by_query.reshape(-1).take(at).sum(axis=1)
        yield np.asarray(np.square(sums).sum(axis=1))


def _projected(table: Float64, axes: Sequence[int], factors: int) -> Float64:
    for axis in range(factors):
        mean = table.mean(axis=axis, keepdims=True)
        table = table - mean if axis in axes else mean
    return table


# Effects of factors.

OWN_INTERVALS = ("t", "two-level")
"""Kinds of intervals that hold for all effects together: over queries, or over collections and queries."""

_EFFECT_ROUNDING = 1e-12


def factor_study(
    table: ScoreTable,
    design: FactorialDesign,
    chosen: Sequence[str] = (),
    method: ComparisonMethod | None = None,
) -> FactorStudy:
    """Return the effects of a design's factors on a collection, and the shares of variance.

    table: the design's systems, in its order.
    chosen: factors to estimate and correct together, by default all; interactions only among them.

    Raises BadValue for systems in another order, or a test or interval that does not apply to effects.
    """
    return factor_study_across({table.dataset: [table]}, table.dataset, design, chosen, method)


def factor_study_across(
    datasets: Mapping[str, Sequence[ScoreTable]],
    name: str,
    design: FactorialDesign,
    chosen: Sequence[str] = (),
    method: ComparisonMethod | None = None,
) -> FactorStudy:
    """Return the effects of a design's factors over collections of equal weight, as a study called `name`.

    datasets: {collection: its parts}.
    chosen: as for `factor_study`, which raises the same errors.

    The interval "two-level" resamples collections too, and permutes levels by collection.
    """
    method = method or ComparisonMethod()
    tables = [part for parts in datasets.values() for part in parts]
    _check(tables, design, method)
    contrasts = [
        c for c in design.contrasts if not chosen or {design.factors[n].name for n in c[0]} <= {*chosen}
    ]
    first, several = tables[0], len(datasets) > 1
    two_level = method.interval == "two-level" and several
    parts, values = _parts_and_values(datasets, two_level)
    weights = np.stack([row for *_, row in contrasts])
    rows = _differences(weights, values)
    nothing = np.zeros((1, rows.shape[1]))
    pairs = np.array([(number, len(rows)) for number in range(len(rows))])
    p = p_values(method.test, np.concatenate([rows, nothing]), pairs, Draws(method.draws, method.seed))
    corrected, equal_p = adjusted(p, method.correct), adjusted(equivalences(rows, method), method.correct)
    limits = _effect_limits(weights, parts, method, two_level)
    effects = []
    for number, (axes, levels, row_weights) in enumerate(contrasts):
        row, effect_p = rows[number], float(corrected[number])
        difference, deviation = exact_mean(row), deviation_of(row)
        factors = [design.factors[n] for n in axes]
        mean, other = (None, None) if len(axes) > 1 else _side_means(row_weights, values, first.geometric)
        low, high = limits[number]
        way = direction(first.measure)
        effects.append(
            FactorEffect(
                tuple(factor.name for factor in factors),
                tuple(f.levels[level] for f, level in zip(factors, levels, strict=True)),
                tuple(f.levels[0] if len(f.levels) == 2 else OTHERS for f in factors),
                *(mean, other, difference, low, high, float(p[number]), effect_p),
                None if several else hedges_g(difference, deviation, len(row)),
                *signs(row * (way or 1)),
                verdict_of(difference, effect_p, float(equal_p[number]), method.alpha, way),
            )
        )
    return FactorStudy(
        name,
        first.measure,
        sum(t.values.shape[1] for t in tables),
        tuple(datasets) if several else (),
        sum(t.left_out for t in tables),
        design.factors,
        len(design.systems),
        tuple(effects),
        variance_shares([t.values for t in tables], design.factors, method),
        method,
        first.geometric,
    )


def _parts_and_values(
    datasets: Mapping[str, Sequence[ScoreTable]], two_level: bool
) -> tuple[list[list[Float64]], Float64]:
    names = sorted(datasets)  # draws do not depend on the order of the arguments
    parts = [[t.values for t in sorted(datasets[name], key=lambda t: t.dataset)] for name in names]
    wholes = [pooled(datasets[name], name) for name in names]
    if two_level:
        return parts, np.stack([whole.values.mean(axis=1) for whole in wholes], axis=1)
    return parts, pooled(wholes, "").values


def _side_means(weights: Float64, values: Float64, geometric: bool) -> tuple[float, float]:
    sides = (np.maximum(weights, 0), np.maximum(-weights, 0))
    mean, other = (averaged(exact_mean(side @ values), geometric) for side in sides)
    return mean, other


def _check(tables: Sequence[ScoreTable], design: FactorialDesign, method: ComparisonMethod) -> None:
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


def _effect_limits(
    weights: Float64, parts: Sequence[Sequence[Float64]], method: ComparisonMethod, two_level: bool
) -> list[list[float | None]]:
    units = len(parts) if two_level else min(part.shape[1] for dataset in parts for part in dataset)
    if units < fewest(method.level):
        return [[None, None]] * len(weights)
    draws = Draws(RESAMPLES, method.seed)
    by_part = [[_differences(weights, part) for part in dataset] for dataset in parts]
    if two_level:
        return two_level_bounds(by_part, method.level, draws).tolist()  # type: ignore[no-any-return]  # floats
    shares = [1 / (len(parts) * len(dataset)) for dataset in parts for _ in dataset]
    flat = [*itertools.chain(*by_part)]
    return simultaneous_bounds(flat, shares, method.level, draws).tolist()  # type: ignore[no-any-return]  # floats


def _differences(weights: Float64, values: Float64) -> Float64:
    rows = weights @ values
    return np.where(np.abs(rows) > _EFFECT_ROUNDING * np.abs(values).max(), rows, 0.0)


# Tables.


def _csv(study: FactorStudy) -> list[dict[str, object]]:
    about = {"dataset": study.dataset, "measure": study.measure, "count": study.count}
    return [
        about | {k: " × ".join(v) if isinstance(v, list) else v for k, v in json_value(one).items()}
        for one in study.effects
    ]


def _page(studies: Sequence[FactorStudy]) -> tuple[Table, ...]:
    tables = []
    for _, of_measure in itertools.groupby(studies, key=lambda study: study.measure):
        same = list(of_measure)
        groups = [same] if same[-1].collections else [[one] for one in same]  # splits of one share no p-value
        tables += [*map(_effect_table, groups), _source_table(same)]
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *_notes(studies)))
    return tuple(tables)


def _factor_tables(studies: Sequence[FactorStudy], long: bool = False) -> tuple[Table, ...]:
    tables = []
    for _, of_measure in itertools.groupby(studies, key=lambda study: study.measure):
        same = list(of_measure)
        tables += (
            [_detailed(study) for study in same]
            if long or not same[-1].collections
            else [_effect_table(same)]
        )
        tables.append(_source_table(same))
    return (*tables, sentences(*_notes(studies)))


FACTOR_STUDIES = ResultKind("factors", FactorStudy, _factor_tables, page=_page, parts="effects", csv=_csv)


def _effect_table(studies: Sequence[FactorStudy]) -> Table:
    first, last = studies[0], studies[-1]
    labels = _labels(studies)
    lines: list[Sequence[str | Cell]] = [["factor", "levels", *(s.dataset for s in studies), "adjusted p"]]
    for number, one in enumerate(first.effects):
        cells = [_difference(study.effects[number]) for study in studies]
        p = probability(last.effects[number].adjusted)
        lines.append([" × ".join(one.factors), _levels(one, labels), *cells, p])
    return table_of(lines, right=None, keys=2, title=_title(studies))


def _detailed(study: FactorStudy) -> Table:
    labels = _labels([study])
    head = ["factor", "levels", "mean", "other", "difference", "p", "adjusted", "Hedges' g", "won/lost/tied"]
    lines: list[Sequence[str | Cell]] = [[*head, "verdict"]]
    for one in study.effects:
        cell = _difference(one)
        verdict: str = one.verdict
        if len(one.factors) > 1:  # an interaction is larger or smaller, not better or worse
            verdict = {"better": "larger", "worse": "smaller"}.get(verdict, verdict)
        lines.append(
            [
                *(" × ".join(one.factors), _levels(one, labels)),
                *("" if mean is None else score(mean) for mean in (one.mean, one.other)),
                f"{cell.text} {cell.more}".rstrip(),
                *(probability(one.p), probability(one.adjusted), effect(one.effect)),
                f"{one.won}/{one.lost}/{one.tied}",
                Cell(verdict, style=one.verdict if one.verdict in STYLES else ""),
            ]
        )
    return table_of(lines, right=7, keys=2, tail=1, title=_title([study]))


def _source_table(studies: Sequence[FactorStudy]) -> Table:
    by_name = [{source.source: source for source in study.sources} for study in studies]
    names = dict.fromkeys(name for of in reversed(by_name) for name in of)
    lines: list[Sequence[str | Cell]] = [["source", *(s.dataset for s in studies)]]
    for name in names:
        cells = []
        for of in by_name:
            one = of.get(name)
            more = ""
            if one is not None and one.eta is not None and one.adjusted is not None:
                more = f"({one.eta:.3f}, p {probability(one.adjusted)})"
            cells.append(Cell("" if one is None else percent(one.share), more=more))
        lines.append([name, *cells])
    return table_of(lines, right=None, title=f"{studies[0].measure}: shares of the variance of all scores")


def _title(studies: Sequence[FactorStudy]) -> str:
    first, last = studies[0], studies[-1]
    design = " × ".join(f"{len(f.levels)} {f.name}" for f in first.factors)
    where = first.dataset if len(studies) == 1 else f"{len(last.collections) or len(studies)} collections"
    left = f", {last.left_out} left out that not all systems have" if last.left_out else ""
    return (
        f"{first.measure} on {where}: {first.systems} systems ({design}), {count(last.count)} queries{left}"
    )


def _labels(studies: Sequence[FactorStudy]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for factor in studies[0].factors:
        labels |= dict(zip(factor.levels, short_names(factor.levels), strict=True))
    return labels


def _levels(one: FactorEffect, labels: dict[str, str]) -> str:
    sides = [
        f"{labels.get(level, level)} - {labels.get(against, against)}"
        for level, against in zip(one.levels, one.against, strict=True)
    ]
    return " by ".join(f"({side})" for side in sides) if len(sides) > 1 else sides[0]


def _difference(one: FactorEffect) -> Cell:
    interval = "" if one.low is None or one.high is None else between(one.low, one.high, change)
    return Cell(change(one.difference), verdict=one.verdict, more=interval)


def _notes(studies: Sequence[FactorStudy]) -> list[str]:
    if not studies:
        return ["nothing to analyse"]
    first = studies[0]
    m = first.method
    drawn = f", {m.draws:,} draws, seed {m.seed}" if TESTS.get(m.test).drawn else ""
    family = len(first.effects)
    chance = "queries drawn within each collection"
    if m.interval == "two-level" and any(s.collections for s in studies):
        chance = "over all collections: collections drawn, and queries within each"
    lines = [
        "difference: the systems of the first level minus those of the other, averaged over all other factors; an "
        "interaction, how much larger the first difference is at the one level of the second factor than at the other",
        f"{100 * m.level:g}% intervals hold for all {family} effects together (bootstrap of the largest deviation, "
        f"{chance}); p: {m.test}{drawn}, adjusted over {family} ({m.correct}); level {m.alpha:g}",
        "after a share: generalised eta squared, and the p-value of dealing levels at random within each query, "
        f"adjusted over factors and interactions of two ({m.correct})",
    ]
    if any(len(s.collections) > 1 for s in studies):
        lines.append("collections weigh the same in differences, queries in shares of variance")
    if any(source.source == HIGHER for source in first.sources):
        lines.append(f"{HIGHER}: of three factors or more; they count among no test")
    if few := [s for s in studies if s.effects and s.effects[0].low is None]:
        lines.append(f"too few queries or collections for an interval: {', '.join(s.dataset for s in few)}; "
                    f"at least {fewest(m.level)} are needed")  # fmt: skip
    lines += [f"too few {s.unit} for a verdict on so many effects: {s.dataset}; name fewer factors"
             for s in studies if s.effects and not s.reach.possible]  # fmt: skip
    if any(s.geometric for s in studies):
        lines.append("geometric means, over systems and collections too: differences are those of logarithms")
    lines += direction_notes(study.measure for study in studies)
    if m.margin is not None:
        lines.append(
            f"equivalent: the difference lies within ±{m.margin:g} (two one-sided t-tests, "
            "and exact ones for few large differences)"
        )
    return [*lines, *dict.fromkeys(f"note: {note}" for study in studies for note in study.notes)]
