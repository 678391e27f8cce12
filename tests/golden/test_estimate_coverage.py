"""How often intervals of estimates hold the truth: a part of what scripts/simulate_estimates.py simulates."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures.measure import parse_measure
from weir.plugins.labels.sampling import corrected_share
from weir.stats.order_agreement import order_agreement, order_interval

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location(
    "simulate_estimates", ROOT / "scripts" / "simulate_estimates.py"
)
assert spec is not None
assert spec.loader is not None
simulated = importlib.util.module_from_spec(spec)
spec.loader.exec_module(simulated)


@pytest.mark.parametrize(("systems", "queries", "bias"), [(5, 30, 0.02), (12, 50, 0.1)])
def test_intervals_of_orders_hold_the_mean_over_other_draws_of_queries(systems, queries, bias):
    for held, width in simulated.orders(systems, queries, bias, 50).values():
        assert held >= 0.88
        assert width < 1.5


@given(
    st.floats(-1, 1),
    st.lists(st.floats(-1, 1), min_size=1, max_size=20),
    st.integers(2, 50),
    st.sampled_from([1, 3, 190]),
)
def test_the_interval_of_an_order_holds_its_value_within_the_limits(value, drawn, queries, steps):
    low, high = order_interval(value, drawn, queries, steps)
    assert -1 <= low <= value <= high <= 1
    low, high = order_interval((value + 1) / 2, [(one + 1) / 2 for one in drawn], queries, steps, (0.0, 1.0))
    assert 0 <= low <= (value + 1) / 2 <= high <= 1
    assert np.isnan(order_interval(np.nan, drawn, queries, steps)).all()
    assert np.isnan(order_interval(value, [np.nan], queries, steps)).all()


@pytest.mark.parametrize("seed", range(4))
def test_agreement_of_orders_lies_within_its_own_interval(seed):
    """Of close systems resampled orders agree less than the measured ones: percentiles would leave the value out."""
    rng = np.random.default_rng(seed)
    queries, docs = [f"q{n}" for n in range(25)], [f"d{n}" for n in range(12)]
    first = {q: {d: int(g) for d, g in zip(docs, rng.integers(0, 3, 12), strict=True)} for q in queries}
    second = {q: {d: g if rng.random() < 0.97 else 2 - g for d, g in of.items()} for q, of in first.items()}
    runs = {f"s{n}": Run.of({q: rng.permutation(docs).tolist() for q in queries}) for n in range(14)}
    found = order_agreement(runs, Qrels.of(first), Qrels.of(second), parse_measure("nDCG@5"))
    values = (found.tau, found.tau_ap, found.spearman, found.rbo, found.top, found.top_tau)
    for value, (name, low, high) in zip(values, found.intervals, strict=True):
        assert low <= value <= high, name


@pytest.mark.parametrize(("errors", "least", "most"), [((0.5, 0.5), 0.0, 0.1), ((0.9, 0.7), 0.99, 1.0)])
def test_precision_by_a_models_errors_is_refused_near_chance_and_holds_the_truth_else(errors, least, most):
    given, held = simulated.precision(60, 0.4, errors, 400)
    assert least <= given <= most
    assert held >= 0.93 or given < 0.1


def test_a_corrected_share_is_fiellers_interval_cut_at_what_a_share_can_be():
    found = corrected_share(0.30, 0.6, (0.02**2, 0.0, 0.03**2), 1.96)
    for end in (found.low, found.high):  # where above - share * slope is as far from 0 as its error allows
        assert abs(0.30 - end * 0.6) == pytest.approx(1.96 * np.hypot(0.02, end * 0.03), abs=1e-12)
    assert found.value == pytest.approx(0.5)
    edge = corrected_share(0.59, 0.6, (0.02**2, 0.0, 0.03**2), 1.96)
    assert (edge.high, edge.value <= 1) == (1.0, True)
    with pytest.raises(BadValue, match="cannot be told from chance"):
        corrected_share(0.02, 0.05, (0.02**2, 0.0, 0.03**2), 1.96)
    with pytest.raises(BadValue, match="errs otherwise"):
        corrected_share(0.9, 0.6, (0.02**2, 0.0, 0.03**2), 1.96)


def test_clicks_find_the_attraction_that_they_were_made_of():
    found = simulated.clicks(4, favour=0.0)
    assert all(0.93 <= found[name][2] <= 0.97 for name in ("pbm, given", "pbm, estimated"))
    assert all(abs(found[name][1]) < 0.01 for name in ("pbm, given", "pbm, estimated"))
    assert found["ctr"][2] < 0.5  # position is not divided out
    assert found["coec"][0] > found["ctr"][0] + 0.1


def test_few_queries_hold_the_truth_as_often_as_the_page_says():
    held = simulated.few_queries(20, 800, ("P@10", "RR@10", "DCG@10"))
    assert all(0.9 <= share <= 0.98 for share in held.values()), held
