"""Judgments and a run given for each other are refused, however the run is made; data that only look so are scored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.cli.main import main
from weir.errors import BadValue, RankingWarning

REFUSED = "its scores are grades such as"
SCALES = {"binary": [1], "zeros": [0, 1], "graded": [-1, 0, 1, 2, 3], "halves": [0, 0.5, 1], "thirds": [0, 0.33, 0.67, 1]}  # fmt: skip


def ranked(rng, queries, depth, tied):
    """Rankings with unlike scores, of which a share equals the score before."""
    found = {}
    for query in range(queries):
        scores = np.sort(rng.gamma(2, 5, depth))[::-1]
        for place in np.flatnonzero(rng.random(depth) < tied):
            scores[place] = scores[max(place - 1, 0)]
        found[f"q{query}"] = {
            f"d{n}": float(s) for n, s in zip(rng.permutation(3 * depth), scores, strict=False)
        }
    return found


def judged(rng, run, scale, most):
    """Judgments of some of the documents ranked, and of others, on a scale."""
    grades = SCALES[scale]
    return {
        query: {
            doc: float(rng.choice(grades))
            for doc in [
                *rng.choice(list(row), rng.integers(1, 1 + min(most, len(row))), replace=False),
                "other",
            ]
        }
        for query, row in run.items()
    }


@given(
    st.integers(0, 2**31),
    st.integers(5, 12),
    st.sampled_from([10, 40, 150]),
    st.sampled_from([0, 0.1, 0.3, 0.5]),
    st.sampled_from(["binary", "zeros", "graded"]),
    st.sampled_from([1, 4, 60]),
)
def test_a_run_in_the_place_of_judgments_is_refused_at_any_depth_with_ties(
    seed, queries, depth, tied, scale, most
):
    rng = np.random.default_rng(seed)
    run = ranked(rng, queries, depth, tied)
    qrels = judged(rng, run, scale, most)
    weir.evaluate(qrels, run, ["nDCG@10"])
    with pytest.raises(BadValue, match=REFUSED):
        weir.evaluate(run, qrels, ["nDCG@10"])
    with pytest.raises(BadValue, match=REFUSED):
        weir.evaluate(weir.Qrels.of(run), weir.Run.of(qrels), ["nDCG@10"])


@given(st.integers(0, 2**31), st.sampled_from(["halves", "thirds"]), st.sampled_from([0, 0.3]))
def test_short_judgments_with_fractions_are_known_in_the_place_of_a_run(seed, scale, tied):
    rng = np.random.default_rng(seed)
    run = ranked(rng, 8, 100, tied)
    with pytest.raises(BadValue, match=REFUSED):
        weir.evaluate(run, judged(rng, run, scale, 5), ["nDCG@10"])


@given(
    st.integers(0, 2**31), st.sampled_from([*SCALES]), st.sampled_from([*SCALES]), st.sampled_from([5, 40])
)
def test_grades_of_raters_and_runs_of_few_scores_are_taken_in_order(seed, grades, scores, depth):
    rng = np.random.default_rng(seed)
    run = ranked(rng, 8, depth, 0)
    few = {query: {doc: rng.choice(SCALES[scores]) / 1.0 for doc in row} for query, row in run.items()}
    weir.evaluate(judged(rng, run, grades, depth), few, ["nDCG@10"])
    listed = {query: {doc: float(depth - n) for n, doc in enumerate(row)} for query, row in run.items()}
    continuous = {query: {doc: float(rng.random() * 3) for doc in row} for query, row in run.items()}
    weir.evaluate(continuous, listed, ["nDCG@10"])
    weir.evaluate(continuous, run, ["nDCG@10"])


@given(st.integers(0, 2**31), st.sampled_from([1, 10]), st.sampled_from(["zeros", "graded"]))
def test_a_run_of_few_scores_in_the_place_of_judgments_is_said(seed, steps, scale):
    """As of a language model that answers 0 to 10, or of scores of one decimal, nearly all of them tied."""
    rng = np.random.default_rng(seed)
    run = {
        q: {doc: float(rng.integers(0, 10 * steps + 1)) / steps for doc in row}
        for q, row in ranked(rng, 8, 100, 0).items()
    }
    qrels = judged(rng, run, scale, 5)
    weir.evaluate(qrels, run, ["nDCG@10"])
    with pytest.warns(RankingWarning, match="judgments come first, then the run"):
        weir.evaluate(run, qrels, ["nDCG@10"])


@pytest.mark.parametrize("grade", [1, 0.5])
def test_judgments_given_as_the_run_too_are_said(grade, tmp_path):
    qrels = {f"q{n}": {"b": 2 * grade, "a": grade, "c": 0} for n in range(6)}
    weir.Qrels.of(qrels).save(tmp_path / "q.json")
    relevant = {query: {"b": 2 * grade, "a": grade} for query in qrels}
    for judgments, run in ((qrels, qrels), (qrels, relevant), (tmp_path / "q.json", tmp_path / "q.json")):
        with pytest.warns(RankingWarning, match="every score is its document's grade"):
            assert weir.evaluate(judgments, run, ["nDCG@10"]).mean("nDCG@10") == 1
    weir.evaluate(qrels, {query: {"b": 3 * grade, "a": grade} for query in qrels}, ["nDCG@10"])


def test_every_function_that_takes_both_refuses_the_exchange(tmp_path):
    rng = np.random.default_rng(1)
    run = ranked(rng, 12, 40, 0.3)
    qrels = judged(rng, run, "graded", 4)
    weir.Run.of(run).save(tmp_path / "run.json")
    paths = [tmp_path / name for name in ("run.json", "qrels.json", "again.json")]
    for path in paths[1:]:
        weir.Qrels.of(qrels).save(path)
    for first, second, third in ((run, qrels, qrels), (weir.Qrels.of(run), *[weir.Run.of(qrels)] * 2), paths):
        for call in (weir.compare, weir.diff, weir.why):
            with pytest.raises(BadValue, match=REFUSED):
                call(first, second, third)
        with pytest.raises(BadValue, match=REFUSED):
            weir.power(first, {"a": second, "b": third}, "nDCG@10")
        with pytest.raises(BadValue, match=REFUSED):
            weir.gate(first, second, third, max_drop=0.1)
        for one_run in (weir.threshold, weir.funnel_of_rankings, weir.save_baseline):
            with pytest.raises(BadValue, match=REFUSED):
                one_run(*([tmp_path / "b.json"] * (one_run is weir.save_baseline)), first, second)
        with pytest.raises(BadValue, match=REFUSED):
            weir.reranking(second, third, qrels=first)
        pairs = [
            ({q + end: of for q, of in one.items() for end in ("-og", "-changed")}) for one in (run, qrels)
        ]
        with pytest.raises(BadValue, match=REFUSED):
            weir.p_mrr(*pairs)
    assert main(["audit", *map(str, paths[:2])]) == 2
