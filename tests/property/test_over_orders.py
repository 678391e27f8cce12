"""Means and extremes over orders of tied documents against every order, one by one."""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
import tests.strategies  # noqa: F401 - the profile without deadlines
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from tests.conformance.test_measures import variants

from weir.core.intents import IntentQrels
from weir.core.judged import Judged, joined
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import MEASURES, condensed
from weir.measures.ties.over_orders import Tied, expected_values, extreme_values

DOCUMENTS = 7


@st.composite
def tied_trials(draw):
    """A ranking of few documents in groups of equal score, and grades of some of them and of some others."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda s: sum(s) <= DOCUMENTS))
    groups, number = [], 0
    for size in sizes:
        groups.append([f"d{n}" for n in range(number, number + size)])
        number += size
    names = [f"d{n}" for n in range(number + 2)]
    grade = draw(st.sampled_from([st.integers(-1, 3), st.sampled_from([-0.5, 0, 0.25, 0.5, 1, 2.75])]))
    grades = draw(st.dictionaries(st.sampled_from(names), grade, min_size=1))
    return groups, grades


def every_order(groups):
    """Each order of the documents of each group, as rankings without ties."""
    for order in product(*(permutations(group) for group in groups)):
        documents = [document for group in order for document in group]
        yield {document: float(-place) for place, document in enumerate(documents)}


def as_tied(groups):
    return {document: float(-number) for number, group in enumerate(groups) for document in group}


def many(groups, grades, measures):
    """Values of measures for every order, float64[M, orders]: each order is a query of its own."""
    rankings = dict(enumerate(every_order(groups)))
    judged = Judged.of(
        Run.of({str(q): r for q, r in rankings.items()}), Qrels.of({str(q): grades for q in rankings})
    )
    return np.stack([measure.per_query(judged) for measure in measures])


OF_DOCUMENTS = [name for name in MEASURES.names() if MEASURES.get(name).of not in ("intents", "rules")]


@cache
def both_lists(name):
    """Its variants on whole and on condensed lists; of two cut-offs that cut nothing off, one is enough."""
    nothing_off = {10, 1000} if MEASURES.get(name).cutoff == "optional" else {1000}
    return [m for one in variants(name) if one.cutoff not in nothing_off for m in (one, condensed(one))]


@pytest.mark.parametrize("name", OF_DOCUMENTS)
@budget(max_examples=12)
@given(trial=tied_trials())
def test_mean_and_extremes_are_those_of_every_order(name, trial):
    groups, grades = trial
    if MEASURES.get(name).of == "whole grades":
        grades = {document: math.floor(grade) for document, grade in grades.items()}
    measures = both_lists(name)
    orders = many(groups, grades, measures)
    judged = Judged.of(Run.of({"q": as_tied(groups)}), Qrels.of({"q": grades}))
    for measure, values in zip(measures, orders, strict=True):
        here = measure.per_query(judged)
        tied = Tied.of(judged)
        low, high = extreme_values(measure, tied, here, strict=True)
        found = [float(one[0]) for one in (expected_values(measure, tied, here), low, high)]
        wanted = [float(one) for one in (values.mean(), values.min(), values.max())]
        for one, true in zip(found, wanted, strict=True):
            assert math.isclose(one, true, rel_tol=1e-12, abs_tol=1e-13), (measure, found, wanted)


OF_INTENTS = [name for name in MEASURES.names() if MEASURES.get(name).of == "intents"]
intents = st.dictionaries(
    st.sampled_from(["1", "2", "3"]),
    st.dictionaries(st.sampled_from([f"d{n}" for n in range(DOCUMENTS + 2)]), st.integers(-1, 2), min_size=1),
    min_size=1,
)


@pytest.mark.parametrize("name", OF_INTENTS)
@budget(max_examples=12)
@given(trial=tied_trials(), judgments=intents)
def test_means_of_diversity_are_those_of_every_order(name, trial, judgments):
    groups, _ = trial
    rankings = {str(number): ranking for number, ranking in enumerate(every_order(groups))}
    every = joined(Run.of(rankings), IntentQrels.of(dict.fromkeys(rankings, judgments)))
    judged = joined(Run.of({"q": as_tied(groups)}), IntentQrels.of({"q": judgments}))
    for measure in both_lists(name):
        here, tied = measure.per_query(judged), Tied.of(judged)
        mean = expected_values(measure, tied, here)[0]
        assert mean == pytest.approx(measure.per_query(every).mean(), rel=1e-12, abs=1e-13), measure
        low, high = extreme_values(measure, tied, here, strict=False)
        assert np.isnan(low[0]) or low[0] == high[0] == here[0] == pytest.approx(mean, abs=1e-13)
        if np.isnan(low[0]):
            with pytest.raises(BadValue, match="only its mean over orders of ties is known"):
                extreme_values(measure, tied, here, strict=True)
