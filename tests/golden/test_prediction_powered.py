"""Prediction-powered inference: worked cases of ppi-python 0.2.3, coverage and width by simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.reference_estimates import powered_mean, rogan_gladen

from weir.errors import BadValue


@pytest.mark.real
def test_the_worked_case_of_ppi_python_comes_out(shared):
    cases = json.loads((shared / "facts" / "judge-examples.json").read_text())["cases"]
    [case] = [one for one in cases if one["id"] == "ppi-mean"]
    alone = np.zeros(case["Yhat_unlabelled_n"])
    alone[: case["Yhat_unlabelled_positive"]] = 1
    human, model = np.array(case["Y"]), np.array(case["Yhat"])
    for name, weight in (("classical (lam 0)", 0.0), ("PPI (lam 1)", 1.0), ("PPI++ (tuned)", None)):
        found, expected = powered_mean(human, model, alone, weight).estimate(), case["expected"][name]
        assert found.value == pytest.approx(expected["estimate"], abs=1e-12), name
        assert [found.low, found.high] == pytest.approx(expected["ci95"], abs=1e-12), name


def drawn(rng, n, skill):
    """Values of queries like P@10: shares of 10, and a model's that follow them by its skill."""
    chance = rng.beta(1.2, 1.8, n)
    human = rng.binomial(10, chance) / 10
    model = (
        np.where(
            rng.random(n) < skill, rng.binomial(10, np.clip(human + 0.05, 0, 1)), rng.binomial(10, 0.5, n)
        )
        / 10
    )
    return human, model


@pytest.mark.parametrize(("skill", "narrower"), [(0.9, True), (0.0, False)])
def test_intervals_cover_as_often_as_promised_and_are_no_wider_than_people_alone(skill, narrower):
    rng, inside, ratio, repetitions = np.random.default_rng(8), 0, [], 5000
    truth = float(np.mean(rng.binomial(10, rng.beta(1.2, 1.8, 2_000_000)) / 10))
    for _ in range(repetitions):
        human, model = drawn(rng, 150, skill)
        _, alone = drawn(rng, 1000, skill)
        found = powered_mean(human, model, alone).estimate()
        plain = powered_mean(human, model, alone, weight=0.0).estimate()
        inside += found.low <= truth <= found.high
        ratio.append((found.high - found.low) / (plain.high - plain.low))
    assert 0.94 <= inside / repetitions <= 0.96
    assert max(ratio) <= 1.05
    assert (np.mean(ratio) < 0.75) == narrower


def test_rogan_and_gladens_share_is_the_true_one_for_known_errors():
    human = np.repeat([1.0, 0.0], [40, 60])
    model = np.concatenate([np.repeat([1.0, 0.0], [32, 8]), np.repeat([1.0, 0.0], [6, 54])])
    alone = np.repeat([1.0, 0.0], [310, 690])  # of 30% relevant: 0.3 * 0.8 + 0.7 * 0.1
    found = rogan_gladen(human, model, alone)
    assert found.value == pytest.approx(0.3, abs=1e-12)
    assert found.low < 0.3 < found.high
    with pytest.raises(BadValue):
        rogan_gladen(human, 1 - human, alone)
