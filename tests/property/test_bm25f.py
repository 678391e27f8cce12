"""BM25F against its definition, and against BM25 where the two are one formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from weir.core.corpus import Corpus, Queries
from weir.kernels.inverted.postings import DECODED_LENGTHS, length_codes
from weir.systems import BM25, BM25F, parse_system

WORDS = ["dam", "river", "weir", "flow", "ebb"]
words = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)
documents = st.lists(
    st.fixed_dictionaries(
        {"text": words}, optional={"title": words, "tags": st.lists(st.sampled_from(WORDS), max_size=3)}
    ),
    min_size=1,
    max_size=8,
)
weights = st.dictionaries(
    st.sampled_from(["title", "text", "tags"]), st.sampled_from([0.5, 1, 2, 3.7]), min_size=1
)
bs = st.sampled_from([0.0, 0.3, 0.75, 1.0])
asked = st.lists(st.sampled_from([*WORDS, "xylophone"]), max_size=5).map(" ".join)
LIKE = {"analyzer": "whitespace"}


def corpus_of(rows: list[dict]) -> Corpus:
    filled = [
        *rows,
        {"title": "ebb", "text": "ebb", "tags": ["ebb"]},
    ]  # so that each field is in some document
    return Corpus.of({f"d{number}": row for number, row in enumerate(filled)})


def found(system, corpus: Corpus, query: str) -> dict[str, float]:
    return system.index(corpus).search(Queries.of({"q": query}), len(corpus)).to_dict()["q"]


def by_definition(corpus: Corpus, query: str, system: BM25F, exactly: bool) -> dict[str, float]:
    """The sum over the words of the query of idf * w / (k1 + w), as written by Zaragoza et al.

    exactly: each step rounded to float as Lucene's BM25 rounds its own, so that scores are the same bits.
    """
    single = np.float32 if exactly else np.float64
    tokens = {name: [t.split() for t in corpus.view(name).tolist()] for name, _ in system.weights}
    lengths = {name: np.array([len(t) for t in some]) for name, some in tokens.items()}
    documents = int(sum(lengths.values()).astype(bool).sum())
    scores = np.zeros(len(corpus))
    for word in query.split():
        df = sum(any(word in some[d] for some in tokens.values()) for d in range(len(corpus)))
        if df == 0:
            continue
        idf = single(math.log(1 + (documents - df + 0.5) / (df + 0.5)))
        for d in range(len(corpus)):
            total = 0.0
            for name, weight in system.weights:
                own, b, tf = lengths[name], system.b_of(name), tokens[name][d].count(word)
                average = single(own.sum() / np.count_nonzero(own))
                byte = DECODED_LENGTHS[length_codes(own[d : d + 1])][0]
                length = single(own[d] if system.lengths == "exact" else byte)
                if tf:
                    share = (single(1) - single(b)) + single(b) * length / average
                    total += weight * tf * np.float64(single(1) / (single(system.k1) * share))
            scores[d] += idf - idf / (single(1) + single(total))
    kept = {name: float(np.float32(s)) for name, s in zip(corpus.ids, scores, strict=True) if s > 0}
    return dict(sorted(kept.items(), key=lambda pair: (pair[1], pair[0]), reverse=True))


@given(documents, asked, weights, bs, st.sampled_from([0.5, 0.9, 2.0]), st.sampled_from(["byte", "exact"]))
@example([{"text": "dam " * 60}], "dam dam", {"text": 1, "title": 2}, 1.0, 0.9, "byte")
def test_scores_are_those_of_the_definition(rows, query, fields, b, k1, lengths):
    corpus = corpus_of(rows)
    system = BM25F(fields, k1=k1, b={**dict.fromkeys(fields, 0.4), min(fields): b}, lengths=lengths, **LIKE)
    answer = found(system, corpus, query)
    assert list(answer.items()) == list(by_definition(corpus, query, system, exactly=True).items())
    if lengths == "exact":
        textbook = by_definition(corpus, query, system, exactly=False)
        assert answer == pytest.approx(textbook, rel=1e-5)


@given(documents, asked, st.sampled_from(["title", "text", "tags", "title text"]), bs)
def test_over_one_field_it_is_bm25_to_the_bit(rows, query, field, b):
    corpus = corpus_of(rows)
    flat = BM25(b=b, fields=[field], **LIKE)
    assert found(BM25F({field: 1}, b=b, **LIKE), corpus, query) == found(flat, corpus, query)


@given(documents, asked)
def test_without_length_a_weight_repeats_a_field(rows, query):
    """With b = 0, BM25F is BM25 of a text in which each field stands as often as it weighs; else it is another formula."""
    corpus = corpus_of(rows)
    weighed = BM25F({"title": 3, "text": 1}, b=0, **LIKE)
    repeated = BM25(b=0.0, fields=["title title title text"], **LIKE)
    assert found(weighed, corpus, query) == found(repeated, corpus, query)


def test_with_length_two_fields_are_not_one_text():
    corpus = Corpus.of(
        {"a": {"title": "dam", "text": "river flow ebb weir"}, "b": {"title": "river weir", "text": "dam"}}
    )
    two, one = (parse_system(name).index(corpus) for name in ("bm25f", "bm25"))
    query = Queries.of({"q": "dam"})
    assert two.search(query, 2).to_dict() != one.search(query, 2).to_dict()


@given(documents, asked, weights)
def test_scores_of_bm25_over_fields_are_weighted_and_added(rows, query, fields):
    corpus = corpus_of(rows)
    answer = found(BM25(fields=fields, **LIKE), corpus, query)
    parts = {name: found(BM25(fields=[name], **LIKE), corpus, query) for name in fields}
    expected = {}
    for name, weight in fields.items():
        for document, score in parts[name].items():
            expected[document] = expected.get(document, 0.0) + weight * score
    assert answer == pytest.approx(expected, rel=1e-6)
