"""What holds of any grid of settings and of the effects of any factors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.experiment.factors import factorial_grid
from weir.stats.compare import ComparisonMethod, ScoreTable
from weir.stats.factors import Factor, FactorialDesign, factor_study, variance_shares
from weir.systems.expression import single_names

FAST = ComparisonMethod("t", draws=50)
VALUES = st.one_of(
    st.integers(-99, 99).map(repr),
    st.floats(-9, 9).map(repr),
    st.sampled_from(["True", "False", "None", "'a'", "'b c'", "x", "x(y=1)", "[1, 2]", "{'t': 1}"]),
)
GRIDS = st.dictionaries(
    st.sampled_from(["alpha", "beta", "gamma", "delta"]),
    st.lists(VALUES, min_size=1, max_size=4, unique_by=lambda text: text.strip("'")),
    min_size=1,
    max_size=4,
)
SHAPES = st.lists(st.integers(2, 3), min_size=1, max_size=3).map(tuple)


@given(GRIDS, st.booleans())
def test_a_grid_names_every_combination_and_its_factors_are_found_again(grid, piped):
    inside = ", ".join(f"{name}={{{', '.join(values)}}}" for name, values in grid.items())
    text = f"first >> mine({inside})" if piped else f"mine({inside})"
    names = single_names(text)
    assert len(names) == len(set(names)) == np.prod([len(values) for values in grid.values()])
    varying = {name: values for name, values in grid.items() if len(values) > 1}
    if not varying:
        return
    # Values that are parts of their own, as x and x(y=1) alone, differ in what stands within them.
    if any({v.partition("(")[0] for v in values} == {"x"} for values in varying.values()):
        return
    found, notes = factorial_grid(names)
    assert not notes
    assert {f.name: set(f.levels) for f in found.factors} == {
        name: {value.strip("'") for value in values} for name, values in varying.items()
    }
    assert sorted(found.systems) == sorted(names)


def of(shape, seed, queries=7):
    values = np.random.default_rng(seed).beta(1, 2, (int(np.prod(shape)), queries))
    factors = tuple(Factor("abc"[n], tuple(map(str, range(size)))) for n, size in enumerate(shape))
    names = tuple("-".join(cell) for cell in itertools.product(*(f.levels for f in factors)))
    return FactorialDesign(factors, names), values


@settings(max_examples=25)
@given(SHAPES, st.integers(0, 2**32))
def test_effects_see_differences_of_systems_alone(shape, seed):
    design, values = of(shape, seed)
    draw = np.random.default_rng(seed + 1)

    def effects(given):
        return factor_study(ScoreTable("d", "m", design.systems, given), design, (), FAST).effects

    found, order = effects(values), draw.permutation(values.shape[1])
    for other, sign in (
        (values + draw.normal(0, 1, values.shape[1]), 1),
        (values[:, order], 1),
        (-values, -1),
    ):
        for one, moved in zip(found, effects(other), strict=True):
            assert moved.difference == pytest.approx(sign * one.difference, abs=1e-12)
            assert moved.p == pytest.approx(one.p, abs=1e-9)
            assert (moved.won, moved.lost) == ((one.won, one.lost) if sign > 0 else (one.lost, one.won))
    for one in found:
        assert one.low <= one.difference <= one.high
        assert one.p <= one.adjusted <= 1


@settings(max_examples=25)
@given(SHAPES, st.integers(0, 2**32), st.integers(1, 3))
def test_sources_share_all_of_the_variance(shape, seed, collections):
    design, values = of(shape, seed, 4 * collections)
    parts = np.split(values, collections, axis=1)
    found = variance_shares(parts, design.factors, FAST)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.squares for one in found) == pytest.approx(float(np.square(values - values.mean()).sum()))
    assert sum(one.df for one in found) == values.size - 1
    assert all(one.squares >= 0 and one.df >= 0 for one in found)
