"""RM3 against weights worked out by hand and against Anserini's own output for invented documents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from weir.core.corpus import Corpus, Queries
from weir.errors import BadValue, StoreError
from weir.systems import BM25, RM3, parse_system
from weir.systems.lexical import rm3
from weir.systems.protocol import Context

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/rm3/anserini.json").read_text(encoding="utf-8"))
PLAIN = BM25(analyzer="whitespace")

# Eighteen more documents, so that a word of two documents is in a tenth of them: still addable.
FILLING = {f"f{i}": f"filling{i} common" for i in range(18)}


def fruit(**more: str) -> Corpus:
    return Corpus.of({"d1": "apple pear pear plum", "d2": "apple fig fig fig"} | FILLING | more)


def expansion(system: RM3, corpus: Corpus, query: str) -> dict[str, float]:
    """The enlarged query as {word: weight}."""
    searcher = system.index(corpus)
    ptr, term, weight = searcher.enlarged(Queries.of({"other": "filling3", "q": query}))
    words = searcher.first.parts[0].vocabularies[0].tolist()
    here = slice(int(ptr[1]), int(ptr[2]))
    return {words[t]: float(w) for t, w in zip(term[here].tolist(), weight[here], strict=True)}


# Both answers score alike. Kept: d1 pear 2/4, apple 1/4, plum 1/4; d2 fig 3/4, apple 1/4. Their mixture:
# fig .75, apple .5, pear .5, plum .25, together 2; the query keeps half of the weight.
def test_weights_worked_out_by_hand():
    want = {"apple": 0.625, "fig": 0.1875, "pear": 0.125, "plum": 0.0625}
    assert expansion(RM3(PLAIN), fruit(), "apple") == pytest.approx(want, abs=1e-7)


# d1 keeps pear 2/3 and apple 1/3, which is before plum; d2 fig 3/4, apple 1/4. Of fig 9/12, pear 8/12 and
# apple 7/12 two stay, and share 17/12.
def test_answers_and_mixture_keep_their_heaviest_words_ties_alphabetical():
    want = {"apple": 0.5, "fig": 0.5 * 9 / 17, "pear": 0.5 * 8 / 17}
    assert expansion(RM3(PLAIN, terms=2), fruit(), "apple") == pytest.approx(want, abs=1e-7)


def test_of_equal_answers_the_smaller_id_is_looked_at():
    want = {"apple": 0.625, "pear": 0.25, "plum": 0.125}
    assert expansion(RM3(PLAIN, docs=1), fruit(), "apple") == pytest.approx(want, abs=1e-7)


@pytest.mark.parametrize("equals", [3, 9, 40])
def test_equal_answers_beyond_the_first_ones_are_compared_too(equals):
    far = {f"e{i:02}": f"kiwi word{i:02}x same" for i in reversed(range(equals))}
    found = expansion(
        RM3(PLAIN, docs=2), Corpus.of(far | {f"g{i}": f"filling{i}" for i in range(400)}), "kiwi"
    )
    assert {"word00x", "word01x"} <= set(found)
    assert not {f"word{i:02}x" for i in range(2, equals)} & set(found)


def test_a_word_that_no_document_has_takes_its_share():
    want = {"apple": 0.25 + 0.125, "fig": 0.1875, "pear": 0.125, "plum": 0.0625}
    assert expansion(RM3(PLAIN), fruit(), "unheard apple") == pytest.approx(want, abs=1e-7)


def test_a_repeated_word_counts_each_time():
    found = expansion(RM3(PLAIN, weight=0.75), fruit(), "apple fig apple")
    assert found["apple"] > 0.5
    assert 0.25 < found["fig"] < 0.5
    assert sum(found.values()) == pytest.approx(1)


def test_answers_weigh_by_their_scores():
    corpus = fruit(d3="apple apple date")
    searcher = RM3(PLAIN, weight=0.0).index(corpus)
    score = searcher.first.search(Queries.of({"q": "apple"}), 10).to_dict()["q"]
    assert score["d3"] > score["d1"] == score["d2"]
    # apple is in 3 of 21 documents, more than a tenth; d1 keeps pear 2/3 and plum 1/3, d2 fig, d3 date.
    total = sum(score.values())
    want = {"date": score["d3"], "fig": score["d2"], "pear": score["d1"] * 2 / 3, "plum": score["d1"] / 3}
    found = expansion(RM3(PLAIN, weight=0.0), corpus, "apple")
    assert found == pytest.approx({word: value / total for word, value in want.items()}, rel=1e-6)


@pytest.mark.parametrize("word", ["x", "a" * 21, "naïve", "o'neil", "co-op", "common"])
def test_words_that_are_never_added(word):
    found = expansion(RM3(PLAIN), fruit(d3=f"melon {word} seed"), "melon")
    assert set(found) == {"melon", "seed"}


@pytest.mark.parametrize("word", ["x7", "a" * 20, "42"])
def test_words_that_are_added(word):
    assert word in expansion(RM3(PLAIN), fruit(d3=f"melon {word} seed"), "melon")


def test_a_common_word_stays_in_the_query_it_was_asked_in():
    found = expansion(RM3(PLAIN, docs=1), fruit(), "common")
    assert found == pytest.approx({"common": 0.5, "filling0": 0.5})


def test_weight_one_is_bm25():
    corpus, queries = Corpus.of(GOLDEN["documents"]), Queries.of(GOLDEN["queries"])
    ours = RM3(weight=1).index(corpus).search(queries, 50)
    plain = BM25().index(corpus).search(queries, 50)
    assert {q: list(r) for q, r in ours.to_dict().items()} == {q: list(r) for q, r in plain.to_dict().items()}


def test_queries_without_known_words_answer_nothing():
    searcher = RM3(PLAIN).index(fruit())
    run = searcher.search(Queries.of({"q1": "unheard", "q2": "", "q3": "apple"}), 5)
    assert np.diff(run.ptr).tolist() == [0, 0, 2]
    assert np.diff(searcher.search(Queries.of({}), 5).ptr).tolist() == []


def test_answers_without_addable_words_leave_the_query_alone():
    corpus = Corpus.of({"a": "é x", "b": "x y z"} | {f"c{i}": "y z" for i in range(3)})
    assert expansion(RM3(PLAIN), corpus, "é") == {"é": 0.5}


def test_an_empty_corpus_answers_nothing():
    run = RM3().index(Corpus.of({})).search(Queries.of({"q": "apple"}), 5)
    assert np.diff(run.ptr).tolist() == [0]


@pytest.mark.parametrize("name", GOLDEN["runs"])
def test_expansions_and_scores_are_anserinis(name):
    want = GOLDEN["runs"][name]
    searcher = parse_system(name).index(Corpus.of(GOLDEN["documents"]))
    queries = Queries.of(GOLDEN["queries"])
    ptr, term, weight = searcher.enlarged(queries)
    words = searcher.first.parts[0].vocabularies[0].tolist()
    run = searcher.search(queries, 1000).to_dict()
    for i, query in enumerate(GOLDEN["queries"]):
        here = slice(int(ptr[i]), int(ptr[i + 1]))
        ours = {words[t]: w for t, w in zip(term[here].tolist(), weight[here].tolist(), strict=True)}
        theirs = {w: v for w, v in want["expansions"][query].items() if w in words}
        assert ours == pytest.approx(theirs, abs=1e-7), query
        # Their scores are rounded to 4 decimals, and equal ones lowered by a millionth each.
        assert run.get(query, {}) == pytest.approx(want["scores"].get(query, {}), abs=1.5e-4), query


def test_one_query_at_a_time_and_in_small_blocks_gives_the_same(monkeypatch):
    corpus, queries = Corpus.of(GOLDEN["documents"]), Queries.of(GOLDEN["queries"])
    searcher = RM3().index(corpus)
    together = searcher.search(queries, 20).to_dict()
    for i, query in enumerate(queries.ids):
        assert searcher.search(queries.take(np.array([i])), 20).to_dict().get(query) == together.get(query)
    monkeypatch.setattr(rm3, "BLOCK_ANSWERS", 30)
    assert searcher.search(queries, 20).to_dict() == together


def test_an_index_on_disk_answers_the_same(tmp_path):
    corpus, queries = Corpus.of(GOLDEN["documents"]), Queries.of(GOLDEN["queries"])
    made = RM3().index(corpus, Context(tmp_path / "index")).search(queries, 20)
    opened = RM3().open(corpus, Context(tmp_path / "index")).search(queries, 20)
    assert made.to_dict() == opened.to_dict() == RM3().index(corpus).search(queries, 20).to_dict()


def test_an_index_without_documents_terms_is_refused(tmp_path):
    BM25().index(fruit(), Context(tmp_path / "index"))
    with pytest.raises(StoreError, match="no terms by document"):
        RM3().open(fruit(), Context(tmp_path / "index"))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"first": BM25("lucene-multifield")}, "one field"),
        ({"first": "bm25"}, "one field"),
        ({"docs": 0}, "docs=0"),
        ({"docs": True}, "docs=True"),
        ({"terms": 2.5}, "terms=2.5"),
        ({"weight": 1.01}, "1.01"),
        ({"weight": float("nan")}, "nan"),
        ({"weight": "half"}, "half"),
    ],
)
def test_settings_out_of_range_are_named(settings, complaint):
    with pytest.raises(BadValue, match=complaint):
        RM3(**settings)


def test_k_below_one_is_refused():
    with pytest.raises(BadValue, match="k is 0"):
        RM3(PLAIN).index(fruit()).search(Queries.of({"q": "apple"}), 0)


def test_names_print_parse_back_and_compare():
    assert RM3(weight=1) == RM3(weight=1.0) == parse_system("rm3(weight=1)")
    assert str(RM3(weight=1)) == "rm3(weight=1.0)"
    system = RM3(BM25(k1=1.2), docs=5, terms=20, weight=0.7)
    assert parse_system(str(system)) == system
    described = system.describe()
    assert described["system"] == "rm3(bm25(k1=1.2), docs=5, terms=20, weight=0.7)"
    assert {"docs": 5, "terms": 20, "weight": 0.7}.items() <= described["expansion"].items()
    assert described["first"] == BM25(k1=1.2).describe()
