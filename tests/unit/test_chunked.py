from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.datasets.load import load
from weir.errors import BadValue, StoreError
from weir.measures import score_run
from weir.systems import BM25, Chunked, parse_system
from weir.systems.lexical.analyzer import WHITE_SPACE, spaces
from weir.systems.lexical.passages import passages_of
from weir.systems.protocol import Context

WORDS = [
    "river",
    "dam",
    "weir",
    "stone",
    "bridge",
    "water",
    "meadow",
    "bread",
    "oven",
    "dough",
    "flood",
    "bank",
]


def corpus_of(count=30, seed=0, titles=True):
    """Documents of one word to some hundred; one is empty, one has far more passages about rivers than any."""
    rng = np.random.default_rng(seed)
    documents = {
        f"d{n}": {
            "title": WORDS[n % 12] if titles else "",
            "text": " ".join(rng.choice(WORDS, rng.integers(1, 90))),
        }
        for n in range(count)
    }
    documents["long"] = {"title": "", "text": "river dam " * 400}
    documents["empty"] = {"title": "", "text": ""}
    return Corpus.of(documents)


QUERIES = Queries.of({"q1": "river dam", "q2": "bread oven", "q3": "xylophone", "q4": ""})


def cut(text, words, overlap, first=False):
    """The passages of a text by definition, in plain Python; one that is short enough stays as it is."""
    split = text.split()
    if len(split) <= words:
        return [text]
    starts = range(0, len(split) - overlap, words - overlap)
    return [" ".join(split[s : s + words]) for s in (starts[:1] if first else starts)]


@pytest.mark.parametrize(("words", "overlap"), [(5, 0), (5, 2), (7, 6), (1, 0)])
@pytest.mark.parametrize("length", [0, 1, 5, 6, 7, 8, 50])
def test_passages_cover_every_word_in_order(words, overlap, length):
    text = " ".join(f"w{n}" for n in range(length))
    passages, _ = passages_of(Corpus.of({"d": text}), words, overlap)
    pieces = [p.split() for p in passages.text]
    assert all(len(p) <= words for p in pieces)
    joined = pieces[0] + [w for p in pieces[1:] for w in p[overlap:]]
    assert joined == text.split()
    assert all(a[len(a) - overlap :] == b[:overlap] for a, b in zip(pieces[:-1], pieces[1:], strict=True))


TEXTS = st.lists(
    st.text(st.sampled_from([*WHITE_SPACE, "a", "é", "二", "\U0001f600", "\u200b", "\x00"]), max_size=40),
    max_size=8,
)


@given(TEXTS, st.integers(1, 6), st.data(), st.booleans(), st.booleans())
@settings(max_examples=150)
def test_passages_are_those_of_str_split_however_they_are_asked_for(texts, words, data, first, titles):
    overlap = data.draw(st.integers(0, words - 1))
    documents = {f"d{n}": {"title": f"t{n}" if titles else "", "text": t} for n, t in enumerate(texts)}
    made, owner = passages_of(Corpus.of(documents), words, overlap, first)
    pieces = [cut(text, words, overlap, first) for text in texts]
    expected = [piece for each in pieces for piece in each]
    assert made.text.tolist() == list(made.text) == expected
    assert owner.tolist() == [n for n, each in enumerate(pieces) for _ in each]
    assert made.ids.tolist() == [f"{n}:{i}" for n, each in enumerate(pieces) for i in range(len(each))]
    assert made.text.lengths().tolist() == [len(piece.encode()) for piece in expected]
    assert (made.title is not None) == (titles and bool(texts))
    some = np.array(
        data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=9)) if expected else [], np.int64
    )
    assert made.text.take(some).tolist() == [expected[i] for i in some]
    assert made.ids.take(some).tolist() == [made.ids[int(i)] for i in some]
    low, high = sorted((data.draw(st.integers(0, len(expected))), data.draw(st.integers(0, len(expected)))))
    view = made.view("title text", low, high).tolist()
    assert view == [f"t{owner[i]} {expected[i]}" if titles else expected[i] for i in range(low, high)]
    assert made.ids.codes(made.ids.tolist()).tolist() == list(range(len(expected)))


def test_white_space_is_what_str_split_cuts_at():
    assert "".join(map(chr, (c for c in range(0x110000) if chr(c).isspace()))) == WHITE_SPACE
    every = "".join(map(chr, (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)))
    encoded = [c.encode() for c in every]
    found = spaces(np.frombuffer(b"".join(encoded), np.uint8))
    assert found.tolist() == [c.isspace() for c, e in zip(every, encoded, strict=True) for _ in e]
    for broken in (b"\xe3\x80", b"\xe1", b"\xc2", b"\xe2\x80\x80"[:2] + b"a", b""):
        assert not spaces(np.frombuffer(broken, np.uint8)).any()


@pytest.mark.parametrize("collection", ["brook-news", "brook-citations", "brook-questions"])
def test_rankings_of_the_collections_are_those_of_passages_held_in_memory(collection):
    dataset = load(collection)
    corpus = dataset.corpus
    system = Chunked(words=20, overlap=7)
    run = system.index(corpus).search(dataset.queries, 20)
    held = {
        f"{n}:{i}": {"title": "" if corpus.title is None else corpus.title[n], "text": piece}
        for n, text in enumerate(corpus.text)
        for i, piece in enumerate(cut(text, 20, 7))
    }
    passages, owner = passages_of(corpus, system.words, system.overlap)
    found = BM25().index(Corpus.of(held)).search(dataset.queries, len(held))
    again = BM25().index(passages).search(dataset.queries, len(held))
    for name in ("ptr", "doc", "score"):
        assert getattr(found, name).tobytes() == getattr(again, name).tobytes()
    assert len(run.doc) > 0
    assert len(owner) > len(corpus)


def by_definition(corpus, system, k):
    """Every passage scored, then collapsed, in plain Python."""
    passages, owner = passages_of(corpus, system.words, system.overlap, system.collapse == "first")
    run = system.system.index(passages).search(QUERIES, len(passages)).to_dict()
    of = dict(zip(passages.ids.tolist(), [corpus.ids[int(o)] for o in owner], strict=True))
    found = {}
    for query, ranking in run.items():
        scores = {}
        for passage, score in ranking.items():
            scores.setdefault(of[passage], []).append(score)
        collapse = sum if system.collapse == "sum" else max
        best = sorted(((collapse(s), d) for d, s in scores.items()), reverse=True)[:k]
        found[query] = {d: s for s, d in best}
    return found


@pytest.mark.parametrize("collapse", ["max", "first", "sum"])
@pytest.mark.parametrize("k", [1, 3, 10, 31, 100])
@pytest.mark.parametrize("words", [4, 40])
def test_k_distinct_documents_are_certain_and_exact(collapse, k, words):
    corpus = corpus_of()
    system = Chunked(BM25(), words, words // 4, collapse)
    run = system.index(corpus).search(QUERIES, k).to_dict()
    expected = by_definition(corpus, system, k)
    assert {q: list(r) for q, r in run.items()} == {q: list(r) for q, r in expected.items()}
    for query, ranking in expected.items():
        assert run[query] == pytest.approx(ranking)
    matching = len(by_definition(corpus, system, 1000)["q1"])
    assert len(run["q1"]) == min(k, matching)
    assert run["q3"] == run["q4"] == {}


def test_equal_scores_at_the_cut_are_in_trec_order():
    corpus = Corpus.of({f"d{n}": "river " * 8 for n in range(9)})
    run = Chunked(words=2, overlap=0).index(corpus).search(Queries.of({"q": "river"}), 3)
    assert list(run.to_dict()["q"]) == ["d8", "d7", "d6"]


def test_short_documents_are_as_without_passages():
    corpus = corpus_of()
    plain = BM25().index(corpus).search(QUERIES, 10).to_dict()
    assert Chunked(words=1000).index(corpus).search(QUERIES, 10).to_dict() == plain


def test_an_index_on_disk_is_opened_again(tmp_path):
    corpus = corpus_of()
    system = parse_system("chunked(words=10, overlap=3)")
    expected = system.index(corpus, Context(tmp_path / "index")).search(QUERIES, 5).to_dict()
    assert system.open(corpus, Context(tmp_path / "index")).search(QUERIES, 5).to_dict() == expected
    next((tmp_path / "index").glob("bm25-*")).joinpath("index.json").unlink()
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(tmp_path / "index"))
    with pytest.raises(BadValue, match="k is 0"):
        system.index(corpus).search(QUERIES, 0)


def test_no_documents_and_no_queries():
    assert Chunked().index(Corpus.of({})).search(QUERIES, 3).to_dict() == {q: {} for q in QUERIES.ids}
    assert len(Chunked().index(corpus_of()).search(Queries.of({}), 3)) == 0


def test_judgments_of_documents_in_a_collection_of_chunks_are_refused():
    chunks = {f"d{n}#{part}": f"word{n} part{part}" for n in range(4) for part in range(2)}
    mine = weir.Dataset.of(
        corpus=chunks, queries={"q1": "word1", "q2": "word2"}, qrels={"q1": ["d1"], "q2": ["d2"]}, name="mine"
    )
    with pytest.raises(
        BadValue,
        match=r"no document in common: .*; the collection has parts of them: .* RUN OUT --collapse '#'",
    ):
        weir.benchmark(mine, ["bm25"], ["nDCG@10"])


@pytest.mark.parametrize("mark", ["#", "::", "_", "-", "/", "/p"])
@pytest.mark.parametrize("given", ["dicts", "run", "file", "frame"])
def test_a_ranking_of_chunks_says_how_it_becomes_one_of_judged_documents(tmp_path, mark, given):
    chunks = {f"q{n}": {f"d{n}{mark}{part}": 9.0 - part for part in range(3)} for n in range(5)}
    qrels = weir.Qrels.of({f"q{n}": [f"d{n}"] for n in range(5)})
    weir.Run.of(chunks).save(tmp_path / "chunks.trec")
    rows = [(query, doc, score) for query, row in chunks.items() for doc, score in row.items()]
    values = {
        "dicts": chunks,
        "run": weir.Run.of(chunks),
        "file": tmp_path / "chunks.trec",
        "frame": dict(zip(("query_id", "doc_id", "score"), zip(*rows, strict=True), strict=True)),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weir.evaluate(qrels, values[given], ["R@5"])
    said = [str(one.message) for one in caught if "parts of judged ones" in str(one.message)]
    assert len(said) == (mark != "/p")
    for one in said:
        assert f"such as 'd0{mark}0'; weir data convert RUN OUT --collapse '{mark}'" in one
        documents = weir.Run.of(chunks).collapsed(mark)
        assert weir.evaluate(qrels, documents, ["R@5"]).mean_values().tolist() == [1.0]


def test_judged_chunks_are_no_parts_of_documents():
    judged, run = {"q1": {"d1": 1, "d2#0": 1}}, {"q1": {"d1#0": 2.0, "d1#1": 1.0}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weir.evaluate(judged, run, ["R@5"])
    assert not [one for one in caught if "parts" in str(one.message)]


LONG = {f"d{i}": " ".join(f"river w{i}x{j}" for j in range(100)) for i in range(8)}


@pytest.mark.parametrize("collapse", ["max", "first", "sum"])
def test_passages_never_count_twice(collapse):
    system = parse_system(f'chunked(bm25, words=10, overlap=5, collapse="{collapse}")')
    run = system.index(Corpus.of(LONG)).search(Queries.of({"q": "river"}), 8)
    assert sorted(run.to_dict()["q"]) == sorted(LONG)
    scores = score_run(Qrels.of({"q": dict.fromkeys(LONG, 1)}), run, ["R@5", "R@8"])
    assert scores.mean_values().tolist() == [5 / 8, 1.0]
