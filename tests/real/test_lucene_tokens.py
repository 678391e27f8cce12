"""Lucene's own terms for real texts: no difference is allowed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from weir.core.strings import Strings
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.terms import TermTable

pytestmark = pytest.mark.real
ENGLISH = analyzers.get("lucene-english")


def lines(path: Path) -> Iterator[list]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield json.loads(line)


def differences(texts: list[str], expected: list[list[str]]) -> list[tuple[str, list[str], list[str]]]:
    """(text, Lucene's terms, ours) where the compiled path differs."""
    table = TermTable(ENGLISH)
    ptr, numbers = table.add(Strings.of(texts))
    terms = table.terms().tolist()
    cuts = zip(texts, expected, ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    found = ((text, right, [terms[n] for n in numbers[a:b]]) for text, right, a, b in cuts)
    return [(text, right, ours) for text, right, ours in found if right != ours]


def test_words_and_hard_texts(shared: Path):
    golden = list(lines(shared / "data/lucene-golden/lucene-english-analyzer.jsonl.gz"))
    assert len(golden) == 146_129 + 38
    assert differences([g[0] for g in golden], [g[1] for g in golden]) == []
    assert [ENGLISH.tokens(text) for text, _ in golden[:200]] == [right for _, right in golden[:200]]


@pytest.mark.parametrize(("name", "documents"), [("scifact", 208), ("nfcorpus", 146), ("cranfield", 56)])
def test_documents(shared: Path, name: str, documents: int):
    golden = dict(lines(shared / f"data/lucene-golden/{name}.lucene-english-tokens.jsonl.gz"))
    assert len(golden) == documents
    text = (shared / f"data/{name}/corpus.jsonl").read_text(encoding="utf-8")
    rows = (json.loads(line) for line in text.split("\n") if line)
    texts = {row["_id"]: f"{row['title']} {row['text']}" for row in rows if row["_id"] in golden}
    ids = sorted(golden)
    assert differences([texts[i] for i in ids], [golden[i] for i in ids]) == []
