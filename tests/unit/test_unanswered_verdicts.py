"""A verdict names unanswered queries that may explain it."""

import pytest

import weir

QRELS = {f"q{n:03}": {"a": 1} for n in range(60)}


def system(answered, place):
    return {q: {f"d{k}": 9.0 - k for k in range(place)} | {"a": 1.0} for q in list(QRELS)[:answered]}


@pytest.mark.parametrize(("answered", "said"), [(40, True), (60, False)])
def test_a_verdict_says_how_many_queries_a_system_answered_if_that_may_explain_it(answered, said):
    runs = {"full": system(60, 1), "part": system(answered, 1)}
    assert ("; part answered 40 of 60 queries" in str(weir.compare(QRELS, runs, ["RR"]))) == said


def test_few_unanswered_queries_beside_a_large_difference_are_left_to_the_notes():
    text = str(weir.compare(QRELS, {"full": system(60, 0), "part": system(58, 4)}, ["RR"]))
    assert "worse" in text
    assert "; part answered" not in text


def test_collections_say_how_many_documents_and_queries_have_no_text():
    documents = {f"d{n}": {"title": "", "text": "a b" if n > 2 else " " * n} for n in range(9)} | {
        "t": {"title": "c"}
    }
    queries = {f"q{n}": "b" * (n > 0) for n in range(7)}
    judged = {q: {"d5": 1} for q in queries}
    notes = str(weir.benchmark({"mine": (documents, queries, judged)}, ["bm25"], ["RR"]))
    assert "mine: 3 of 10 documents have no text" in notes
    assert "mine: 1 of 7 queries has no text" in notes
    assert "no text" not in str(weir.benchmark("brook-news", ["bm25"], ["RR"]))
