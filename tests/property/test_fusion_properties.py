from __future__ import annotations

import math
import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fusions import naive, ordered
from tests.strategies import identifiers

from weir.core.order import arranged, ranked
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import BadValue
from weir.systems.fusion import METHODS, NORMS, fuse, parse_fusion
from weir.systems.fusion.methods import united, united_sorted

whole = st.integers(-6, 6).map(float)
finite = st.one_of(whole, st.floats(-1e6, 1e6, allow_nan=False))

pytestmark = pytest.mark.filterwarnings("ignore:.*shares no document")  # few documents are drawn


@st.composite
def several(draw: st.DrawFn, score: st.SearchStrategy[float] = finite):
    """Two to five runs, two of which answer one query at least; documents out of one small pool."""
    pool = st.sampled_from(draw(st.lists(identifiers, min_size=2, max_size=9, unique=True)))
    asked = draw(st.lists(identifiers, min_size=1, max_size=4, unique=True))
    rankings = st.dictionaries(st.sampled_from(asked), st.dictionaries(pool, score, max_size=8), max_size=4)
    runs = draw(st.lists(rankings, min_size=2, max_size=5))
    for run in runs[:2]:
        run[asked[0]] = draw(st.dictionaries(pool, score, min_size=1, max_size=8))
    return runs


texts = st.one_of(
    st.sampled_from([n for n in METHODS if not METHODS.get(n).scored]),
    st.builds(
        '{}(norm="{}")'.format,
        st.sampled_from([n for n in METHODS if METHODS.get(n).scored]),
        st.sampled_from(NORMS.names()),
    ),
)


def fused(runs, text, k=None):
    return fuse([Run.of(run) for run in runs], text, k).to_dict()


@given(several(), texts)
def test_fusion_is_what_loops_over_dicts_say(runs, text):
    how = parse_fusion(text)
    expected = naive(how.name, runs, how.norm)
    found = fused(runs, text)
    assert found.keys() == expected.keys()
    for query, ranking in found.items():
        assert ranking.keys() == expected[query].keys()
        for document, score in ranking.items():
            assert score == pytest.approx(expected[query][document], rel=1e-9, abs=1e-9)
        assert list(ranking) == ordered(ranking)


@given(several(), texts, st.randoms(use_true_random=False))
def test_no_order_of_rows_queries_or_runs_shows(runs, text, chance: random.Random):
    def shuffled(rows: dict) -> dict:
        return dict(chance.sample(list(rows.items()), len(rows)))

    first = fuse([Run.of(run) for run in runs], text)
    again = [shuffled({q: shuffled(row) for q, row in run.items()}) for run in chance.sample(runs, len(runs))]
    second = fuse([Run.of(run) for run in again], text)
    assert first.queries.tolist() == second.queries.tolist()
    assert [list(r.items()) for r in first.to_dict().values()] == [
        list(r.items()) for r in second.to_dict().values()
    ]
    assert first.score.tobytes() == second.score.tobytes()


@given(several(), texts, st.integers(1, 5))
def test_k_cuts_every_ranking(runs, text, k):
    whole_run, cut = fused(runs, text), fused(runs, text, k)
    assert {q: list(r.items()) for q, r in cut.items()} == {
        q: list(r.items())[:k] for q, r in whole_run.items()
    }


@given(
    several(whole), texts, st.integers(-4, 4), st.integers(-9, 9), st.sampled_from(["minmax", "sum", "rank"])
)
def test_scales_and_shifts_of_scores_change_nothing_under_these_norms(runs, text, power, shift, norm):
    how = parse_fusion(text)
    how = how.with_settings({"norm": norm}) if how.scored else how
    moved = [
        {q: {d: s * 2.0**power + shift for d, s in row.items()} for q, row in run.items()} for run in runs
    ]
    assert fused(runs, how) == fused(moved, how)


@given(several(whole), st.sampled_from(["max", "zscore"]), st.integers(-4, 4))
def test_scales_change_nothing_under_these_norms(runs, norm, power):
    how = parse_fusion(f'combsum(norm="{norm}")')
    assert fused(runs, how) == fused(
        [{q: {d: s * 2.0**power for d, s in row.items()} for q, row in r.items()} for r in runs], how
    )


@given(several(), st.data())
def test_weights_go_with_their_runs(runs, data):
    weights = data.draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.5]), min_size=len(runs), max_size=len(runs))
    )
    weights[0] = 0.7
    order = data.draw(st.permutations(range(len(runs))))
    how = parse_fusion("wsum").with_settings({"weights": weights})
    other = parse_fusion("wsum").with_settings({"weights": [weights[i] for i in order]})
    assert fused(runs, how) == fused([runs[i] for i in order], other)


@given(st.lists(st.lists(identifiers, max_size=6, unique=True), min_size=1, max_size=4))
def test_tables_of_identifiers_are_united(tables):
    given_ids = [Ids.of(table) for table in tables]
    for unite in (united, united_sorted):
        ids, codes = unite(given_ids)
        names = ids.tolist()
        assert sorted(names) == sorted({name for table in tables for name in table})
        for table, code in zip(tables, codes, strict=True):
            assert [names[c] for c in (range(len(table)) if code is None else code)] == table
    if len(tables) > 1:
        assert names == sorted(names, key=str.encode)


@given(several(st.sampled_from([1e308, -1e308, 1.7e308, 0.0])), texts)
def test_scores_too_large_are_refused_or_finite(runs, text):
    with suppress(BadValue):
        assert np.isfinite(fuse([Run.of(run) for run in runs], text).score).all()


@given(several())
def test_every_document_of_every_run_is_kept(runs):
    expected = {q: {d for run in runs for d in run.get(q, {})} for run in runs for q in run}
    assert {q: set(r) for q, r in fused(runs, "rrf").items()} == expected
    assert all(math.isfinite(s) for r in fused(runs, "rrf").values() for s in r.values())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=40), st.sampled_from([0, 70_000]))
def test_rows_are_arranged_as_sorting_says(rows, first):
    rows = sorted(rows, key=lambda row: row[0])
    query = np.array([q + first for q, _ in rows], np.int64)
    score, rank = np.array([float(s) for _, s in rows]), np.arange(len(rows))[::-1]
    found = arranged(query, score, lambda at: rank[at])
    assert found.tolist() == ranked(query, score, rank).tolist()
