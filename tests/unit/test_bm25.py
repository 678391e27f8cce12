from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.unit.brooklet import DOCUMENTS, QUERIES
from weir.core.corpus import Corpus, Queries
from weir.datasets.load import load
from weir.errors import BadValue, StoreError
from weir.settings import settings
from weir.systems import BM25, parse_system
from weir.systems.lexical.analyzer import analyzers
from weir.systems.protocol import Context

SYSTEMS = [
    "bm25",
    'bm25("lucene-multifield")',
    'bm25("elastic")',
    'bm25("bm25s")',
    "bm25(k1=1.2, b=0.75)",
    "rm3",
]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.of({i: {"title": title, "text": text} for i, (title, text) in DOCUMENTS.items()})


@pytest.fixture
def queries() -> Queries:
    return Queries.of(QUERIES)


def bm25_by_hand(texts: dict[str, str], query: str, system: BM25) -> dict[str, float]:
    """The textbook formula in doubles over the analyzer's tokens, with exact lengths."""
    recipe = system.recipe
    tokens = {i: analyzers.get(recipe.analyzer).tokens(text) for i, text in texts.items()}
    filled = [t for t in tokens.values() if t]
    average = sum(map(len, filled)) / len(filled)
    scores: dict[str, float] = {}
    for term in analyzers.get(recipe.analyzer).tokens(query):
        df = sum(term in t for t in tokens.values())
        idf = math.log(1 + (len(filled) - df + 0.5) / (df + 0.5))
        for i, words in tokens.items():
            tf = words.count(term)
            if tf:
                norm = recipe.k1 * (1 - recipe.b + recipe.b * len(words) / average)
                scores[i] = scores.get(i, 0.0) + idf * tf / (tf + norm)
    return scores


# Lengths up to 40 tokens or so are exact in Lucene's byte: the two encodings agree on these documents.
@pytest.mark.parametrize(
    "query", ["river dam", "river river flow", "The dam holds the river back.", "dough oven oven oven"]
)
@pytest.mark.parametrize(
    "name", ["bm25", "bm25(k1=1.2, b=0.75)", 'bm25(lengths="exact", b=1.0)', 'bm25("bm25s")']
)
def test_one_field_is_the_formula(corpus, name, query):
    system = parse_system(name)
    assert isinstance(system, BM25)
    texts = {i: f"{title} {text}" for i, (title, text) in DOCUMENTS.items()}
    expected = bm25_by_hand(texts, query, system)
    found = system.index(corpus).search(Queries.of({"q": query}), 10).to_dict()["q"]
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("query", ["river dam", "bread rise", "copy of the weir"])
def test_fields_have_their_own_statistics_and_add_up(corpus, query):
    system = BM25("lucene-multifield")
    by_field = [bm25_by_hand({i: d[f] for i, d in DOCUMENTS.items()}, query, system) for f in (0, 1)]
    expected = {i: sum(scores.get(i, 0.0) for scores in by_field) for i in by_field[0] | by_field[1]}
    found = system.index(corpus).search(Queries.of({"q": query}), 10).to_dict()["q"]
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("query", ["river dam", "bread rise", "copy of the weir", "dam dam river"])
@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_best_field_and_a_share_of_the_others(corpus, query, k):
    system = BM25("elastic")
    by_field = [bm25_by_hand({i: d[f] for i, d in DOCUMENTS.items()}, query, system) for f in (0, 1)]
    expected = {}
    for i in by_field[0] | by_field[1]:
        both = [scores.get(i, 0.0) for scores in by_field]
        expected[i] = max(both) + 0.5 * min(both)
    best = sorted(expected, key=lambda i: (np.float32(expected[i]), i), reverse=True)[:k]
    found = system.index(corpus).search(Queries.of({"q": query}), k).to_dict()["q"]
    assert list(found) == best
    assert found == pytest.approx({i: expected[i] for i in best}, rel=1e-6)


def test_long_lengths_are_lucenes_one_byte(corpus):
    long = Corpus.of(
        {"a": "weir " + "water " * 1000, "b": "weir " + "water " * 1010, "c": "weir " + "water " * 1300}
    )
    byte = BM25().index(long).search(Queries.of({"q": "weir"}), 10).to_dict()["q"]
    exact = BM25(lengths="exact").index(long).search(Queries.of({"q": "weir"}), 10).to_dict()["q"]
    assert byte["a"] == byte["b"] > byte["c"]
    assert exact["a"] > exact["b"] > exact["c"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_order_and_ties(corpus, queries, name):
    """Scores fall; equal ones come by descending identifier: d2 and d6 hold the same text."""
    run = parse_system(name).index(corpus).search(Queries.of({"q": "meadow floods every spring"}), 10)
    found = list(run.to_dict()["q"].items())
    assert found == sorted(found, key=lambda item: (item[1], item[0]), reverse=True)
    by_text = parse_system('bm25(analyzer="lucene-standard")').index(
        Corpus.of({"a": "x", "c": "x", "b": "x"})
    )
    assert list(by_text.search(Queries.of({"q": "x"}), 2).to_dict()["q"]) == ["c", "b"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_nothing_is_found_for_nothing_known(corpus, name):
    """Empty, unknown and stopword-only queries have empty rankings, not arbitrary documents."""
    searcher = parse_system(name).index(corpus)
    run = searcher.search(
        Queries.of({"a": "", "b": "xylophone", "c": "the of and", "d": "dam", "e": "???"}), 3
    )
    assert {q: len(r) for q, r in run.to_dict().items()} == {"a": 0, "b": 0, "c": 0, "d": 2, "e": 0}


@pytest.mark.parametrize("name", SYSTEMS)
def test_k_beyond_the_matches_and_the_corpus(corpus, queries, name):
    searcher = parse_system(name).index(corpus)
    whole = searcher.search(queries, 1000).to_dict()
    assert all(len(r) < len(corpus) for r in whole.values())
    for k in (1, 2, 3):
        first = searcher.search(queries, k).to_dict()
        assert first == {q: dict(list(r.items())[:k]) for q, r in whole.items()}
    for k in (0, -1):
        with pytest.raises(BadValue, match="expected a whole number from 1"):
            searcher.search(queries, k)


@pytest.mark.parametrize("name", SYSTEMS)
def test_saved_batch_single_and_threads_are_one(corpus, queries, name, tmp_path, monkeypatch):
    system = parse_system(name)
    expected = system.index(corpus).search(queries, 5).to_dict()
    assert system.index(corpus, Context(tmp_path / "index")).search(queries, 5).to_dict() == expected
    opened = system.open(corpus, Context(tmp_path / "index"))
    assert opened.search(queries, 5).to_dict() == expected
    for q in range(len(queries)):
        assert opened.search(queries.take(np.array([q])), 5).to_dict().items() <= expected.items()
    for threads in ("1", "3"):
        monkeypatch.setenv("WEIR_THREADS", threads)
        settings.cache_clear()
        assert opened.search(queries, 5).to_dict() == expected


def test_an_index_of_another_corpus_or_a_damaged_one_is_refused(corpus, tmp_path):
    BM25().index(corpus, Context(tmp_path / "index"))
    with pytest.raises(BadValue, match="another corpus"):
        BM25().open(Corpus.of({"a": "b"}), Context(tmp_path / "index"))
    for file in sorted((tmp_path / "index").iterdir()):
        whole = file.read_bytes()
        file.write_bytes(b"damaged")
        with pytest.raises(StoreError, match="delete it to build it again"):
            BM25().open(corpus, Context(tmp_path / "index"))
        file.write_bytes(whole)
    with pytest.raises(StoreError):
        BM25().open(corpus, Context(Path(tmp_path / "none")))
    assert BM25().open(corpus, Context(tmp_path / "index")).search(Queries.of({"q": "dam"}), 5).to_dict()["q"]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("documents", [{}, {"a": ""}, {"a": "", "b": "the"}, {"a": "weir"}], ids=len)
def test_the_smallest_corpora(name, documents, tmp_path):
    corpus = Corpus.of(documents)
    searcher = parse_system(name).index(corpus, Context(tmp_path / "index"))
    found = searcher.search(Queries.of({"q": "weir"}), 5).to_dict()["q"]
    assert list(found) == [i for i, text in documents.items() if text == "weir"]


def test_a_description_holds_every_setting():
    about = parse_system("bm25(k1=1.2)").describe()
    for key in ("system", "analyzer", "k1", "b", "lengths", "fields", "idf", "tie_breaker", "analysis"):
        assert key in about
    assert about["k1"] == 1.2


def test_progress_reaches_the_end(corpus):
    seen: list[tuple[int, int]] = []
    BM25().index(corpus, Context(progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (len(corpus), len(corpus))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_order_of_the_corpus_and_the_queries_moves_nothing(name):
    """Shuffle the rows of corpus and queries: the same documents with the same bits of score."""
    dataset = load("brook-facts")
    rows = zip(dataset.corpus.ids, dataset.corpus.title or [], dataset.corpus.text, strict=True)
    documents = [(i, {"title": title, "text": text}) for i, title, text in rows]
    asked = list(zip(dataset.queries.ids, dataset.queries.text, strict=True))
    expected = parse_system(name).index(dataset.corpus).search(dataset.queries, 20).to_dict()
    generator = np.random.default_rng(7)
    generator.shuffle(documents)
    generator.shuffle(asked)
    found = parse_system(name).index(Corpus.of(dict(documents))).search(Queries.of(dict(asked)), 20).to_dict()
    assert {q: list(r.items()) for q, r in found.items()} == {q: list(r.items()) for q, r in expected.items()}


@pytest.mark.parametrize("name", ["bm25", "rm3", 'bm25("lucene-multifield")', 'bm25("bm25s")', "bm25f()"])
def test_what_terms_add_is_the_score(corpus, queries, name):
    searcher = parse_system(name).index(corpus)
    for number in range(len(queries)):
        one = queries.take(np.array([number]))
        run = searcher.search(one, 20)
        terms = searcher.term_scores(one, run)
        assert sum((term.scores for term in terms), np.zeros(len(run.doc))) == pytest.approx(
            run.score, rel=1e-6
        )
        assert {term.field for term in terms} <= ({"text", "title"} if "multifield" in name else {""})
        if "rm3" not in name:
            analysed = searcher.system.recipe.analysis.tokens(one.text[0])
            assert {term.term for term in terms} <= set(analysed)
