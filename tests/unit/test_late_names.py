"""The system `colbert` as a name: everything that needs no model."""

from __future__ import annotations

import pytest

from weir.errors import BadValue, UnknownName, WeirError
from weir.systems import ColBERT, parse_system


@pytest.mark.parametrize(
    "text",
    [
        'colbert("colbert")',
        'colbert("answerdotai/answerai-colbert-small-v1", max_length=180, max_query=48, dtype="bf16")',
        'colbert("colbert", engine="torch", batch_tokens=4000, store="fp32", view="text")',
        'colbert("colbert-small", bits=2, candidates=1000, probes=2)',
        'colbert("colbert", candidates=None)',
        'bm25 >> score(colbert("colbert"), depth=50)',
        'rrf(bm25, colbert("colbert"))',
    ],
)
def test_a_name_prints_and_parses_back(text):
    system = parse_system(text)
    assert str(system) == text
    assert parse_system(str(system)) == system


def test_the_default_is_colbert_v2():
    assert parse_system("colbert") == ColBERT("colbert") == ColBERT(candidates="auto")


@pytest.mark.parametrize(
    ("candidates", "documents", "k", "limit"),
    [
        ("auto", 99_999, 10, 0),
        ("auto", 100_000, 10, 1024),
        ("auto", 100_000, 5000, 10_000),
        (None, 10**7, 10, 0),
        (300, 50, 10, 300),
        (300, 50, 1000, 1000),
    ],
)
def test_candidates_are_looked_for_where_there_are_many_documents(candidates, documents, k, limit):
    assert ColBERT(candidates=candidates).limit(documents, k) == limit


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("colbert(modell='x')", UnknownName, "did you mean model"),
        ("colbert(store='fp31')", UnknownName, "fp16"),
        ("colbert(bits=3)", BadValue, "bits is 3; expected 0, 1 or 2"),
        ("colbert(bits=True)", BadValue, "bits is True"),
        ("colbert(probes=0)", BadValue, "probes is 0"),
        ("colbert(candidates=0)", BadValue, "candidates is 0"),
        ("colbert(candidates='all')", BadValue, "candidates is 'all'"),
        ("colbert(7)", BadValue, "model is 7"),
        ("colbert(max_length=3)", BadValue, "max_length is 3"),
        ("colbert(dtype='fp8')", BadValue, "dtype is 'fp8'"),
        ("colbert(engine='quick')", BadValue, "engine is 'quick'"),
    ],
)
def test_wrong_settings_are_one_error(text, error, said):
    with pytest.raises(error, match=said) as found:
        parse_system(text)
    assert isinstance(found.value, WeirError)
    assert "\n" not in str(found.value)
