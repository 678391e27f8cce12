"""Terms that Lucene and bm25s made of invented texts, against the plain and the compiled path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.core.strings import Strings
from weir.systems.lexical.analyzer import Analyzer, analyzers, stem_all
from weir.systems.lexical.terms import TermTable

HERE = Path(__file__).parent / "text"


def rows(name: str) -> list[list]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").split("\n") if line]


def compiled(analyzer: Analyzer, texts: list[str]) -> list[list[str]]:
    table = TermTable(analyzer)
    ptr, numbers = table.add(Strings.of(texts))
    terms = table.terms().tolist()
    return [[terms[n] for n in numbers[a:b]] for a, b in zip(ptr[:-1], ptr[1:], strict=True)]


def test_porter_is_lucenes():
    text = (HERE / "lucene-porter.tsv").read_text(encoding="utf-8")
    words, stems = zip(*(line.split("\t") for line in text.split("\n") if line), strict=True)
    assert len(words) > 1600
    assert dict(zip(words, stem_all("lucene-porter", list(words)), strict=True)) == dict(
        zip(words, stems, strict=True)
    )
    assert sum(a != b for a, b in zip(stem_all("porter", list(words)), stems, strict=True)) > 800


@pytest.mark.parametrize(("name", "column"), [("lucene-english", 1), ("lucene-standard", 2)])
def test_unicode_words_are_lucenes(name: str, column: int):
    golden = rows("lucene-unicode.jsonl")
    texts, expected = [r[0] for r in golden], [r[column] for r in golden]
    assert [analyzers.get(name).tokens(t) for t in texts] == expected
    assert compiled(analyzers.get(name), texts) == expected


def test_terms_are_bm25s_own():
    golden = rows("bm25s.jsonl")
    texts, expected = [r[0] for r in golden], [r[1] for r in golden]
    assert [analyzers.get("bm25s-english").tokens(t) for t in texts] == expected
    assert compiled(analyzers.get("bm25s-english"), texts) == expected
