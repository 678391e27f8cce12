"""Notebooks: notes without which the numbers say little are open, and many pairs are folded."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.errors import BadValue, RankingWarning

DOCUMENTS = {f"d{n}": f"weir number {n}" for n in range(30)}
QUERIES = {f"q{n}": "weir" for n in range(8)}
QRELS = {query: {"d1": 1, "d25": 1} for query in QUERIES}


def few(queries, k):
    return {query: {f"d{n}": 1.0 - n for n in range(min(k, 5))} for query in queries}


def every(queries, k):
    return {query: {f"d{n}": 1.0 - n for n in range(min(k, 30))} for query in queries}


def opened(result):
    """The HTML of a result without what a click unfolds."""
    return re.sub(r"<details>.*?</details>", "", result._repr_html_(), flags=re.DOTALL)


def test_a_run_that_matches_nothing_says_so_unfolded():
    others = {q: {f"doc/{n}": 1.0 for n in range(5)} for q in QUERIES}
    with pytest.warns(RankingWarning, match="no document that was returned is judged"):
        foreign = weir.evaluate(QRELS, others, ["nDCG@10"])
    assert "no document that was returned is judged" in opened(foreign)
    missing = weir.evaluate(QRELS, {"q0": {"d1": 1.0}, "q1": {"d1": 1.0}}, ["nDCG@10"])
    assert "6 of 8 judged queries are not answered" in opened(missing)
    whole = weir.evaluate(QRELS, {q: {"d1": 2.0, "d25": 1.0, "d7": 0.5} for q in QUERIES}, ["nDCG@10"])
    assert "note:" not in opened(whole)


@pytest.mark.parametrize(("systems", "folded"), [(3, False), (7, True), (20, True)])
def test_pairs_of_many_systems_are_folded_and_drawn_with_the_best(systems, folded):
    rng = np.random.default_rng(1)
    runs = {
        f"s{n}": {q: dict(zip(DOCUMENTS, rng.random(30).tolist(), strict=True)) for q in QUERIES}
        for n in range(systems)
    }
    table = weir.compare(QRELS, runs, ["nDCG@10"])
    pairs = systems * (systems - 1) // 2
    assert (f"{pairs} pairs, each with its verdict" in table._repr_html_()) == folded
    drawn = table.charts()[1].panels[0].intervals
    assert len(drawn) == (systems - 1 if folded else pairs)
    assert ("of pairs with the best" in table.charts()[1].title) == folded


def test_a_system_that_returns_few_documents_is_told_as_few_that_were_asked_for():
    table = weir.benchmark({"mine": (DOCUMENTS, QUERIES, QRELS)}, [few, every], ["R@20"])
    assert [str(n) for n in table.notes() if "at most" in str(n)] == [
        "note: few: rankings have at most 5 documents, and R@20 looks no deeper"
    ]
    alone = weir.benchmark({"mine": (DOCUMENTS, QUERIES, QRELS)}, ["bm25"], ["R@20"], k=5)
    assert "note: rankings have at most 5 documents, and R@20 looks no deeper" in map(str, alone.notes())


@pytest.mark.parametrize("named", [True, False])
def test_a_collection_without_judgments_is_one_short_line(named):
    texts = {f"d{n}": "weir " * 100 for n in range(500)}
    given = {"mine": (texts, QUERIES)} if named else [(texts, QUERIES)]
    with pytest.raises(
        BadValue, match=r"documents and queries without judgments; expected .*judgments"
    ) as refused:
        weir.benchmark(given, ["bm25"], ["R@20"])
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("wrong", [{"a": "b" * 1000}, ["b" * 1000], ("b" * 1000,), 7, None, "b" * 1000])
def test_a_wrong_collection_is_one_short_line(wrong):
    with pytest.raises(weir.WeirError) as refused:
        weir.benchmark({"mine": wrong}, ["bm25"], ["R@20"])
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_a_chart_of_queries_has_their_texts_where_the_collection_is_known():
    texts = {**QUERIES, "q1": "a text of many words, " * 9}
    mine = weir.Dataset.of(DOCUMENTS, texts, QRELS, "mine")
    runs = {"old": {q: {"d2": 1.0} for q in QUERIES}, "new": {q: {"d1": 1.0} for q in QUERIES}}
    bare, told = (weir.diff(QRELS, runs, **more).charts()[0].rows for more in ({}, {"collection": mine}))
    assert sorted(bare) == sorted(QUERIES)
    assert {"q0: weir", "q7: weir"} < set(told)
    assert max(map(len, told)) == 48


def test_systems_are_listed_with_whole_sentences():
    from weir.api.listings import first_sentence

    for listed in weir.listings.systems():
        sentence = first_sentence(listed["about"])
        assert sentence.endswith((".", ")", ":")), sentence
        assert sentence in str(weir.listings.systems())


def test_the_name_of_a_column_stands_above_its_values():
    scores = weir.evaluate(QRELS, {q: {"d1": 2.0, "d25": 1.0} for q in QUERIES}, ["nDCG@10"])
    rows = re.findall(r"<tr>(.*?)</tr>", scores._repr_html_())
    cells = [len(re.findall(r"<t[hd]\b", row)) for row in rows]
    assert len(set(cells)) == 1
    assert "colspan" not in scores._repr_html_()
