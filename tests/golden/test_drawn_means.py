"""Means of samples drawn by strata, with known probabilities, and in parts: ppi-python 0.2.3, plain formulas, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reference_estimates import powered_mean, rogan_gladen

from weir.errors import BadValue
from weir.plugins.labels.estimates import corrected_precision
from weir.plugins.labels.sampling import (
    SampledMean,
    drawn_mean,
    partly_judged_mean,
    stratified_mean,
    weighted_mean,
)

HUMAN = np.array([0.1, 0.4, 0.2, 0.5, 0.3, 0.2, 0.7, 0.9, 0.6, 0.8, 1.0, 0.5, 0.8])
MODEL = np.array([0.2, 0.5, 0.2, 0.6, 0.3, 0.4, 0.6, 1.0, 0.8, 0.7, 0.9, 0.7, 0.6])
ALONE = np.array([0.3, 0.1, 0.5, 0.4, 0.6, 0.2, 0.3, 0.4, 0.2, 0.5, 0.9, 0.6, 0.7, 0.8, 0.5])
STRATA = np.repeat([0, 1], [6, 7]), np.repeat([0, 1], [10, 5])
WEIGHTS = np.array([8, 4, 5, 2, 4, 5, 1.5, 1, 2, 1.2, 1, 3, 1.1])
# ppi_mean_pointestimate of each stratum with the weight that is given, and of four times these items with the one
# that it finds.
BY_STRATUM = {0.0: (0.2833333333333333, 0.7571428571428571), 0.7: (0.27166666666666667, 0.7171428571428572)}
TUNED = 0.27521739130434786, 0.7446438420928218
REPETITIONS = 5000


@pytest.mark.parametrize("weight", BY_STRATUM)
def test_each_stratum_is_ppi_pythons_and_counts_by_its_share(weight):
    found = stratified_mean(HUMAN, MODEL, ALONE, STRATA, weight)
    one, other = BY_STRATUM[weight]
    assert found.value == pytest.approx((16 * one + 12 * other) / 28, abs=1e-12)


def test_each_stratum_finds_ppi_pythons_weight():
    four = [np.tile(values, 4) for values in (HUMAN, MODEL, ALONE)]
    found = stratified_mean(*four, (np.tile(STRATA[0], 4), np.tile(STRATA[1], 4)))
    assert found.value == pytest.approx((16 * TUNED[0] + 12 * TUNED[1]) / 28, abs=1e-12)


@pytest.mark.parametrize("weight", BY_STRATUM)
def test_the_error_of_strata_is_the_plain_formula(weight):
    found, total, within, between = stratified_mean(HUMAN, MODEL, ALONE, STRATA, weight), 28, 0.0, 0.0
    for number, value in enumerate(BY_STRATUM[weight]):
        rows = [row for row in range(len(HUMAN)) if STRATA[0][row] == number]
        others = [row for row in range(len(ALONE)) if STRATA[1][row] == number]
        rest = [HUMAN[row] - weight * MODEL[row] for row in rows]
        alone = [weight * ALONE[row] for row in others]
        error = spread(rest) / len(rest) + spread(alone) / len(alone)
        share = (len(rows) + len(others)) / total
        within += share**2 * error
        between += share * (value - found.value) ** 2 - share * (1 - share) * error
    assert found.error == pytest.approx(math.sqrt(within + between / total), abs=1e-12)


def spread(values):
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def test_one_stratum_is_the_plain_mean():
    rng = np.random.default_rng(1)
    human, model = drawn(rng, 400, 0.9)
    alone = drawn(rng, 900, 0.9)[1]
    zeros = np.zeros(400, int), np.zeros(900, int)
    found, plain = stratified_mean(human, model, alone, zeros), powered_mean(human, model, alone)
    assert found == drawn_mean(human, model, alone)
    assert found.value == pytest.approx(plain.value, abs=1e-12)
    assert found.weight == pytest.approx(plain.weight, abs=1e-12)
    assert found.error == pytest.approx(plain.error, rel=0.005)


@pytest.mark.parametrize(("weight", "expected"), [(0.0, 0.3631443298969072), (0.7, 0.4189432989690721)])
def test_weighted_points_are_ppi_pythons(weight, expected):
    """ppi_mean_pointestimate with w, the model's values of all items as those without labels."""
    assert weighted_mean(HUMAN, MODEL, ALONE, WEIGHTS, weight).value == pytest.approx(expected, abs=1e-12)
    assert weighted_mean(HUMAN, MODEL, ALONE, 9 * WEIGHTS, weight).value == pytest.approx(expected, abs=1e-12)


def test_equal_weights_and_whole_queries_are_the_plain_mean():
    """All are the difference estimator: with n of N items drawn, a weight there is (N - n) / N of one here."""
    rng = np.random.default_rng(2)
    human, model = drawn(rng, 300, 0.9)
    alone = drawn(rng, 700, 0.9)[1]
    plain = powered_mean(human, model, alone, 0.7 * 0.6)
    for found in (
        weighted_mean(human, model, alone, np.full(300, 5.0), 0.6),
        partly_judged_mean(human, model, model, alone, 0.6),
    ):
        assert found.value == pytest.approx(plain.value, abs=1e-12)
        assert found.error == pytest.approx(plain.error, rel=0.01)


def test_every_part_of_two_of_four_documents_gives_the_mean_together():
    """Horvitz and Thompson's sums over all ways to draw are the whole, so the estimate is unbiased."""
    grades, labels = np.array([1, 0, 1, 1.0]), np.array([1, 1, 0, 1.0])
    ways = [(i, j) for i in range(4) for j in range(i)]
    whole = np.full(len(ways), labels.mean())
    by_human, by_model = (
        np.array([sum(of[list(way)]) * (4 / 2) / 4 for way in ways]) for of in (grades, labels)
    )
    for weight in (0.0, 0.5, 1.0):
        found = partly_judged_mean(by_human, by_model, whole, np.empty(0), weight)
        assert found.value == pytest.approx(grades.mean(), abs=1e-12)


def drawn(rng, n, skill):
    """Values of queries like P@10: shares of 10, and a model's that follow them by its skill; their mean is 0.4."""
    human = rng.binomial(10, rng.beta(1.2, 1.8, n)) / 10
    follows = rng.binomial(10, np.clip(human + 0.05, 0, 1))
    return human, np.where(rng.random(n) < skill, follows, rng.binomial(10, 0.5, n)) / 10


def by_chance(rng, skill):
    human, model = drawn(rng, 20, skill)
    alone = drawn(rng, 300, skill)[1]
    return lambda weight: drawn_mean(human, model, alone, weight)


def by_strata(rng, skill):
    human, model = drawn(rng, 400, skill)
    stratum = np.searchsorted([0.35, 0.55], model)
    judged = np.zeros(400, bool)
    for number, count in enumerate((15, 25, 40)):
        judged[rng.permutation(np.flatnonzero(stratum == number))[:count]] = True
    given = human[judged], model[judged], model[~judged], (stratum[judged], stratum[~judged])
    return lambda weight: stratified_mean(*given, weight)


def by_weights(rng, skill):
    human, model = drawn(rng, 600, skill)
    chance = 120 * (0.2 + model) / (0.2 + model).sum()
    judged = rng.random(600) < chance
    given = human[judged], model[judged], model[~judged], 1 / chance[judged]
    return lambda weight: weighted_mean(*given, weight)


def pairs(rng, queries, skill):
    """Labels of ten documents of each query by people and a model that follows them by its skill, and is lenient."""
    human = rng.random((queries, 10)) < rng.beta(1.2, 1.8, queries)[:, None]
    lenient = human | (rng.random((queries, 10)) < 0.2)
    return human, np.where(rng.random((queries, 10)) < skill, lenient, rng.random((queries, 10)) < 0.5)


def by_parts(rng, skill):
    human, model = pairs(rng, 400, skill)
    part = rng.random((100, 10)).argsort(axis=1) < 3
    by_human, by_model = ((of[:100] * part).sum(axis=1) / 3 for of in (human, model))
    given = by_human, by_model, model[:100].mean(axis=1), model[100:].mean(axis=1)
    return lambda weight: partly_judged_mean(*given, weight)


@pytest.mark.parametrize("design", [by_chance, by_strata, by_weights, by_parts])
@pytest.mark.parametrize("skill", [0.9, 0.0])
def test_intervals_cover_as_promised_narrow_with_a_good_model_and_never_widen_much(design, skill):
    rng, inside, ratio = np.random.default_rng(5), 0, []
    for number in range(REPETITIONS):
        mean = design(rng, skill)
        found = mean(None).estimate()
        inside += found.low <= 0.4 <= found.high
        if number % 10 == 0:
            plain = mean(0.0).estimate()
            ratio.append((found.high - found.low) / (plain.high - plain.low))
    assert 0.94 <= inside / REPETITIONS <= 0.96
    assert max(ratio) <= 1.05
    assert (np.mean(ratio) < 0.95) == (skill > 0)


@pytest.mark.parametrize("n", [4, 6, 12])
def test_however_few_no_interval_is_wider_than_of_people_alone_by_more_than_5_percent(n):
    rng = np.random.default_rng(n)
    for _ in range(60):
        human, model = drawn(rng, n, 0.3)
        alone = drawn(rng, 40, 0.3)[1]
        strata = rng.permutation(np.arange(n) % 2), np.arange(40) % 2
        whole = rng.permutation(model)
        for mean in (
            lambda weight: drawn_mean(human, model, alone, weight),  # noqa: B023  called within the loop
            lambda weight: stratified_mean(human, model, alone, strata, weight),  # noqa: B023  the same
            lambda weight: weighted_mean(human, model, alone, 0.1 + model, weight),  # noqa: B023  the same
            lambda weight: partly_judged_mean(human, model, whole, alone, weight),  # noqa: B023  the same
        ):
            found, plain = mean(None).estimate(), mean(0.0).estimate()
            assert found.high - found.low <= 1.05 * (plain.high - plain.low) + 1e-12


def confusion(human, model):
    rows = [[(human == one) & (model == other) for other in (0, 1)] for one in (0, 1)]
    return np.moveaxis(np.array([[cell.sum(axis=1) for cell in row] for row in rows], float), 2, 0)


def test_the_corrected_precision_covers_as_promised_and_is_narrower_than_people_alone():
    rng, inside, narrower = np.random.default_rng(6), 0, []
    for number in range(REPETITIONS):
        human, model = pairs(rng, 300, 0.8)
        cells = np.zeros((300, 2, 2))
        cells[:100] = confusion(human[:100], model[:100])
        found = corrected_precision(np.full(300, 10.0), model.sum(axis=1).astype(float), cells, 10)
        inside += found.low <= 0.4 <= found.high
        if number % 10 == 0:
            few = human[:100].mean(axis=1)
            narrower.append((found.high - found.low) / (3.92 * few.std() / 10))
    assert 0.94 <= inside / REPETITIONS <= 0.96
    assert np.mean(narrower) < 0.95


def test_the_corrected_precision_is_rogan_and_gladens_where_every_query_has_one_document():
    human = np.repeat([1.0, 0.0], [40, 60])
    model = np.concatenate([np.repeat([1.0, 0.0], [32, 8]), np.repeat([1.0, 0.0], [6, 54])])
    alone = np.repeat([1.0, 0.0], [310, 690])
    cells = np.zeros((1100, 2, 2))
    cells[:100] = confusion(human[:, None], model[:, None])
    # The item-wise estimate takes the model's share of those alone, this one of all: give both the same.
    everywhere = np.concatenate([model, alone])
    found = corrected_precision(np.ones(1100), everywhere, cells, 1)
    assert found.value == pytest.approx(rogan_gladen(human, model, everywhere).value, abs=1e-12)
    half = corrected_precision(np.ones(1100), everywhere, cells, 2)
    assert half.value == pytest.approx(found.value / 2, abs=1e-12)


def test_what_cannot_be_estimated_is_refused():
    few = np.array([0.1, 0.2])
    one, other = np.array([0, 0, 1]), np.array([0, 1, 1])
    with pytest.raises(BadValue, match="stratum number 1 has 1"):
        stratified_mean(HUMAN[:3], MODEL[:3], ALONE[:3], (one, other))
    with pytest.raises(BadValue, match="4 at least"):
        weighted_mean(few, few, ALONE, few)
    with pytest.raises(BadValue, match="above 0"):
        weighted_mean(HUMAN, MODEL, ALONE, 0 * WEIGHTS)
    with pytest.raises(BadValue, match="documents of 2 queries"):
        partly_judged_mean(few, few, few, ALONE)
    with pytest.raises(BadValue, match="one label alone"):
        corrected_precision(np.ones(2), np.ones(2), np.ones((2, 1, 2)) * [[[0.0], [1.0]]], 1)
    with pytest.raises(BadValue, match="cannot be told from chance"):
        corrected_precision(np.ones(2), np.ones(2), np.ones((2, 2, 2)), 1)


def test_a_mean_of_equal_values_has_neither_interval_nor_p_unless_all_are_zero():
    equal = SampledMean(0.1, 0.0, 5, 0.0)
    assert math.isnan(equal.p)
    assert math.isnan(equal.estimate().low)
    assert SampledMean(0.0, 0.0, 5, 0.0).p == 1


def test_p_is_that_of_students_t():
    assert SampledMean(1.96, 1.0, math.inf, 1.0).p == pytest.approx(0.05, abs=1e-4)
    assert SampledMean(2.228, 1.0, 10, 1.0).p == pytest.approx(0.05, abs=1e-4)
