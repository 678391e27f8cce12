"""A query asked alone is analysed and answered as among others, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import texts

from weir.core.corpus import Corpus, Queries
from weir.core.strings import Strings
from weir.systems import parse_system
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.bm25 import query_terms
from weir.systems.lexical.terms import TermTable

VOCABULARY = "weir rivers don't e.g. a.b.c 3.14 1,000 flow_rate co-op x86 u.s.a naïve Σ ΟΔΟΣ the of dam's' 'quoted' 漢字 weir"
plain = st.lists(
    st.sampled_from([*VOCABULARY.split(), "unknown", "'", "-", "_", ".", "", "\t", "a\u0301", "İ"]),
    max_size=8,
).map(" ".join)


@pytest.mark.parametrize("name", analyzers.names())
@settings(max_examples=25)
@given(st.lists(st.one_of(plain, texts, st.text("ab '.,-_1 ", max_size=12)), min_size=2, max_size=4))
def test_the_terms_of_a_text_are_found_stretch_by_stretch_as_in_whole(name, asked):
    table = TermTable(analyzers.get(name))
    table.add(Strings.of([VOCABULARY]))
    ptr, term = table.lookup(Strings.of(asked))
    for text, start, stop in zip(asked, ptr[:-1], ptr[1:], strict=True):
        whole = [number for number in term[start:stop].tolist() if number >= 0]
        assert table.known(text) == whole
        assert table.known(text) == whole  # from what was kept
    tables = (table, table)  # of two fields
    together = query_terms(tables, Strings.of(asked))
    for at, text in enumerate(asked):
        alone, span = query_terms(tables, Strings.of([text])), slice(together[0][at], together[0][at + 1])
        assert [a.dtype for a in alone] == [t.dtype for t in together]
        assert alone[0].tolist() == [0, span.stop - span.start]
        assert (alone[1].tolist(), alone[2].tolist()) == (
            together[1][span].tolist(),
            together[2][span].tolist(),
        )


def test_words_that_are_added_are_known_from_then_on():
    table = TermTable(analyzers.get("lucene-english"))
    table.add(Strings.of(["weir"]))
    assert table.known("weir dam") == [0]
    table.add(Strings.of(["dam"]))
    assert table.known("weir dam") == [0, 1]


@pytest.mark.parametrize("system", ["bm25", 'bm25("elastic")', "bm25(fields={'title': 2.0, 'text': 1.0})"])
@given(st.lists(plain, min_size=2, max_size=5, unique=True), st.integers(1, 12))
def test_a_query_alone_has_the_answers_it_has_among_others(system, asked, k):
    documents = {
        f"d{n}": {"title": word, "text": f"{VOCABULARY[n:]} {word}"}
        for n, word in enumerate(VOCABULARY.split())
    }
    searcher = parse_system(system).index(Corpus.of(documents))
    together = searcher.search(Queries.of({text + "?": text for text in asked}), k)
    for at, text in enumerate(asked):
        alone, rows = (
            searcher.search(Queries.of({text + "?": text}), k),
            slice(together.ptr[at], together.ptr[at + 1]),
        )
        assert alone.ptr.tolist() == [0, rows.stop - rows.start]
        for mine, theirs in ((alone.doc, together.doc[rows]), (alone.score, together.score[rows])):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
