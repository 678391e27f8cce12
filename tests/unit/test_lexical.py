"""Queries as weighted terms, and searching them block by block."""

from __future__ import annotations

import numpy as np
import pytest

from weir.core.corpus import Corpus, Queries
from weir.core.strings import Strings
from weir.systems import parse_system
from weir.systems.lexical import inverted_index as impact
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.bm25 import query_terms
from weir.systems.lexical.terms import TermTable


def table(words: str) -> TermTable:
    made = TermTable(analyzers.get("whitespace"))
    made.add(Strings.of([words]))
    return made


def found(tables: tuple[TermTable, ...], texts: list[str]) -> list[dict[int, float]]:
    ptr, term, weight = query_terms(tables, Strings.of(texts))
    assert (ptr.dtype, term.dtype, weight.dtype) == (np.int64, np.int32, np.float32)
    spans = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    return [dict(zip(term[a:b].tolist(), weight[a:b].tolist(), strict=True)) for a, b in spans]


def test_repeated_words_are_counted_and_unknown_ones_left_out():
    one = table("a b c")
    assert found((one,), ["c a c x", "", "x", "b"]) == [{0: 1.0, 2: 2.0}, {}, {}, {1: 1.0}]


def test_the_terms_of_a_second_field_are_numbered_after_the_first():
    assert found((table("a b"), table("c b")), ["b b", "c", "a"]) == [{1: 2.0, 3: 2.0}, {2: 1.0}, {0: 1.0}]


@pytest.mark.parametrize("texts", [[], [""], ["x y"]])
def test_nothing_known_asks_nothing(texts: list[str]):
    assert found((table("a b"),), texts) == [{}] * len(texts)
    assert found((table(""),), texts) == [{}] * len(texts)


def test_searching_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    texts = {f"d{i}": " ".join("abcdefg"[: 1 + i % 7]) + " z" * (i % 3) for i in range(50)}
    queries = Queries.of({str(i): text for i, text in enumerate(["a", "g z", "", "nothing", "c c b", "e f"])})
    searcher = parse_system('bm25(analyzer="whitespace")').index(Corpus.of(texts))
    whole = searcher.search(queries, 7).to_dict()
    assert {q: len(docs) for q, docs in whole.items()} == {"0": 7, "1": 7, "2": 0, "3": 0, "4": 7, "5": 7}
    for places in (1, 14, 21):
        monkeypatch.setattr(impact, "BLOCK_ANSWERS", places)
        assert searcher.search(queries, 7).to_dict() == whole


def test_no_queries_have_no_answers():
    searcher = parse_system("bm25").index(Corpus.of({"a": "some words"}))
    assert len(searcher.search(Queries.of({}), 10).doc) == 0
