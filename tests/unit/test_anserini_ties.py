"""How Anserini breaks ties: float arithmetic that a naive loop states again, and what it makes of large scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.experiment.published import close_queries, lowered
from weir.experiment.why import Scoring, rescored
from weir.measures import parse_measure

F = np.float32


def naive(score: list[float]) -> list[float]:
    """One ranking after the other, one row after the other, as the reranker's loop has it."""
    found: list[np.float32] = []
    dup = 0
    for n, value in enumerate(score):
        one = F(np.floor(float(F(value) * F(1e4)) + 0.5)) / F(1e4)
        dup = 0 if n == 0 or found[n - 1] - one > F(1e-4) else dup + 1
        found.append(one - F(1e-6) * F(dup) if dup else one)
    return [float(F(f"{float(value):.6f}")) for value in found]


steps = st.lists(st.sampled_from([0.0, 0.0, 1e-5, 9e-5, 1e-4, 1.1e-4, 2e-4, 0.3]), max_size=12)


@given(st.lists(st.tuples(st.floats(0.01, 500), steps), max_size=4))
def test_it_is_the_loop_written_out(rankings):
    scores = [np.cumsum([top, *(-s for s in falls)]).tolist() for top, falls in rankings]
    ptr = np.cumsum([0, *map(len, scores)])
    found = lowered(ptr, np.array([s for row in scores for s in row], np.float64))
    assert found.tolist() == [s for row in scores for s in naive(row)]


@given(st.floats(0.01, 500), steps, st.none() | st.integers(1, 12))
def test_unequal_scores_that_are_not_close_keep_their_order(top, falls, cutoff):
    scores = np.cumsum([top, *(-fall for fall in falls if fall)])
    run = Run.of({"q": {f"d{n}": score for n, score in enumerate(scores.tolist())}})
    tied = np.diff(lowered(np.array([0, len(scores)]), scores))[:cutoff] >= 0
    assert close_queries(run, "anserini", cutoff) >= tied.any()
    assert close_queries(run, "trec9", cutoff) >= (np.diff(scores.astype(F))[:cutoff] >= 0).any()
    assert close_queries(run, "trec", cutoff) == 0


@pytest.mark.parametrize(
    ("score", "first"),
    [(4.2583, "a"), (31.9, "a"), (40.0, "b"), (100.0, "b")],  # from 32 a step of 1e-6 is lost in a float
)
def test_large_scores_stay_tied_and_trec_eval_decides(score, first):
    run = Run.of({"q": {"a": score, "b": score, "c": score - 1}})
    for relevant in "ab":
        values = rescored(run, Qrels.of({"q": {relevant: 1}}), Scoring(parse_measure("RR"), ties="anserini"))
        assert values[0] == (1.0 if relevant == first else 0.5)
        ascending = rescored(
            run, Qrels.of({"q": {relevant: 1}}), Scoring(parse_measure("RR"), ties="ascending")
        )
        assert ascending[0] == (1.0 if relevant == "a" else 0.5)


def test_a_lowered_score_is_the_one_in_anserinis_files():
    """CACM's query 6 in a run that Anserini wrote: three tied documents."""
    assert lowered(np.array([0, 3]), np.full(3, 5.56541)).tolist() == [
        float(F(s)) for s in (5.5654, 5.565399, 5.565398)
    ]
