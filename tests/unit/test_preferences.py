"""Win rates, and the order of Bradley and Terry against published and against numerically found values."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.errors import BadValue
from weir.stats.preferences import Preference, bradley_terry, preference_order, win_rates

# Wins of the row over the column, American League 1987: Agresti, Categorical Data Analysis, table 10.10.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = [
    [0, 7, 9, 7, 7, 9, 11],
    [6, 0, 7, 5, 11, 9, 9],
    [4, 6, 0, 7, 7, 8, 12],
    [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12],
    [4, 4, 5, 6, 6, 0, 6],
    [2, 4, 1, 3, 1, 7, 0],
]
PUBLISHED = (1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0)


def games():
    rows = [
        (winner, loser)
        for i, winner in enumerate(TEAMS)
        for j, loser in enumerate(TEAMS)
        for _ in range(WINS[i][j])
    ]
    return [Preference(f"q{n}", winner, loser, 1) for n, (winner, loser) in enumerate(rows)]


def test_strengths_are_those_that_were_published():
    strengths, note = bradley_terry(games())
    assert note == ""
    assert [one.name for one in strengths] == list(TEAMS)
    value = {one.name: one.value for one in strengths}
    assert sum(value.values()) == pytest.approx(0, abs=1e-12)
    assert [value[name] - value["Baltimore"] for name in TEAMS] == pytest.approx(PUBLISHED, abs=5e-5)


def test_strengths_are_the_maximum_that_scipy_finds_and_its_sandwich():
    optimize = pytest.importorskip("scipy.optimize")
    rng = random.Random(1)
    names = "abcd"
    given_ = [
        Preference(f"q{rng.randrange(30)}", *rng.sample(names, 2), rng.choice((1, 1, 0, -1)))
        for _ in range(200)
    ]
    rows = np.array([(names.index(one.first), names.index(one.second)) for one in given_])
    won = np.array([(1 + one.outcome) / 2 for one in given_])

    def loss(free):
        value = np.append(free, -free.sum())
        apart = value[rows[:, 0]] - value[rows[:, 1]]
        return float(np.sum(won * np.logaddexp(0, -apart) + (1 - won) * np.logaddexp(0, apart)))

    found = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-10})
    strengths, _ = bradley_terry(given_)
    value = [next(one for one in strengths if one.name == name) for name in names]
    assert [one.value for one in value] == pytest.approx([*found.x, -found.x.sum()], abs=1e-6)

    def gradient(free, chosen, step=1e-5):
        value = np.append(free, -free.sum())

        def part(at):
            apart = at[rows[chosen, 0]] - at[rows[chosen, 1]]
            return np.sum(won[chosen] * np.logaddexp(0, -apart) + (1 - won[chosen]) * np.logaddexp(0, apart))

        return np.array(
            [(part(value + step * axis) - part(value - step * axis)) / (2 * step) for axis in np.eye(4)]
        )

    queries = sorted({one.query for one in given_})
    sums = np.array(
        [gradient(found.x, [n for n, one in enumerate(given_) if one.query == query]) for query in queries]
    )
    chance = 1 / (1 + np.exp([value[j].value - value[i].value for i, j in rows]))
    laplacian = np.zeros((4, 4))
    for (i, j), p in zip(rows, chance, strict=True):
        laplacian[[i, j], [i, j]] += p * (1 - p)
        laplacian[[i, j], [j, i]] -= p * (1 - p)
    bread = np.linalg.pinv(laplacian)
    covariance = bread @ (sums.T @ sums) @ bread * len(queries) / (len(queries) - 1)
    reach = pytest.importorskip("scipy.stats").t.ppf(0.975, len(queries) - 1) * np.sqrt(np.diag(covariance))
    assert [one.high - one.value for one in value] == pytest.approx(reach.tolist(), abs=1e-5)


def test_two_have_the_logarithm_of_their_odds():
    strengths, _ = bradley_terry([Preference(f"q{n}", "a", "b", 1 if n < 9 else -1) for n in range(12)])
    assert strengths[0].value - strengths[1].value == pytest.approx(math.log(3))
    assert strengths[0].low < strengths[0].value < strengths[0].high


def test_without_a_loss_there_is_no_finite_strength_and_it_is_said():
    order = preference_order([Preference(f"q{n}", "a", "b", 1) for n in range(8)])
    assert order.strengths == ()
    assert "lost each time" in order.note
    assert order.rates[0].rate == 1
    assert order.rates[0].low < 1
    with pytest.raises(BadValue, match="nobody has preferred"):
        preference_order([])


@given(
    st.lists(
        st.tuples(st.sampled_from("pqrst"), st.permutations("abc"), st.sampled_from((1, 0, -1))), min_size=1
    )
)
def test_sides_and_order_of_judgments_change_nothing(drawn):
    given_ = [Preference(query, names[0], names[1], outcome) for query, names, outcome in drawn]
    turned = [Preference(one.query, one.second, one.first, -one.outcome) for one in reversed(given_)]
    assert str(win_rates(given_)) == str(win_rates(turned))  # NaN is not NaN
    one, other = bradley_terry(given_), bradley_terry(turned)
    assert one[1] == other[1]
    assert {s.name: s.value for s in one[0]} == pytest.approx({s.name: s.value for s in other[0]}, abs=1e-9)


def test_a_rate_is_the_mean_over_queries_and_not_over_judges():
    given_ = [Preference("q1", "a", "b", 1)] * 9 + [Preference("q2", "b", "a", 1)]
    [rate] = win_rates(given_)
    assert (rate.wins, rate.ties, rate.losses, rate.queries, rate.rate) == (9, 0, 1, 2, 0.5)
