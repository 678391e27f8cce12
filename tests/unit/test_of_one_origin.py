"""Scores of different origin meet in no statement: other judgments, other collections of one name, splits as datasets."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.errors import BadValue

QUERIES = [f"q{n}" for n in range(8)]
FIRST = {q: {"a": 2.0, "b": 1.0} for q in QUERIES}
SECOND = {q: {"b": 2.0, "a": 1.0} for q in QUERIES}


def judged(grades):
    return {q: {"a": int(g), "b": 1} for q, g in zip(QUERIES, grades, strict=True)}


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.booleans(), min_size=8, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8),
       st.sampled_from(["dict", "qrels", "mutated"]))  # fmt: skip
def test_scores_compare_only_where_every_judgment_is_the_same(one, other, kind):
    """Whatever the judgments came in, and whichever function is asked."""
    before, after = judged(one), judged(other)
    first = weir.evaluate(weir.Qrels.of(before) if kind == "qrels" else before, FIRST, "nDCG@10")
    if kind == "mutated":
        for query in QUERIES:
            before[query]["a"] = after[query]["a"]
        after = before
    second = weir.evaluate(after, SECOND, "nDCG@10")
    asked = [
        lambda: weir.compare(first, second),
        lambda: weir.compare({"a": first, "b": second}),
        lambda: weir.power(after, first, second),
        lambda: weir.gate(after, first, second),
        lambda: weir.gate(after, first, SECOND),
    ]
    for ask in asked:
        if one == other:
            ask()
        else:
            with pytest.raises(BadValue, match="judg"):
                ask()


def test_saved_scores_remember_their_judgments(tmp_path):
    by_one, by_other = judged([0] * 8), judged([1] * 8)
    weir.evaluate(by_one, FIRST).save(tmp_path / "one.json")
    loaded = weir.Scores.load(tmp_path / "one.json")
    weir.compare(loaded, weir.evaluate(copy.deepcopy(by_one), SECOND))
    with pytest.raises(BadValue, match="8 queries"):
        weir.compare(loaded, weir.evaluate(by_other, SECOND))


def test_scores_by_two_conventions_do_not_compare():
    qrels = judged([1] * 8)
    with pytest.raises(BadValue, match="conventions default and"):
        weir.compare(weir.evaluate(qrels, FIRST), weir.evaluate(qrels, SECOND, conventions="ties=expected"))


def test_p_mrr_knows_who_answered():
    qrels = {
        f"q{n}{sign}": {"a": int(sign == "-og"), "b": 1} for n in range(3) for sign in ("-og", "-changed")
    }
    scores = weir.p_mrr(qrels, {q: {"a": 2.0, "b": 1.0} for q in qrels})
    assert scores.answered.dtype == np.bool_
    assert scores.answered.all()
    assert not any("not answered" in note.text for note in scores.notes())
