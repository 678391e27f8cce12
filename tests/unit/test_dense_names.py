"""The system `dense` as a name: everything that needs no model."""

from __future__ import annotations

import pytest

from weir.errors import BadValue, UnknownName, WeirError
from weir.systems import Dense, parse_system


@pytest.mark.parametrize(
    "text",
    [
        'dense("minilm")',
        'dense("facebook/contriever", pooling="mean", similarity="dot", batch_tokens=16384)',
        'dense("minilm", document_prompt="passage: ", max_length=128, dtype="bf16", store="int8", view="text")',
        'dense("openai:text-embedding-3-small", dimensions=256)',
        'dense("minilm", index="HNSW32,SQ8", effort=100)',
        'rrf(bm25, dense("minilm"))',
        'bm25 >> score(dense("minilm"), depth=50)',
    ],
)
def test_a_name_prints_and_parses_back(text):
    system = parse_system(text)
    assert str(system) == text
    assert parse_system(str(system)) == system


def test_the_default_is_minilm():
    assert parse_system("dense") == Dense("minilm") == Dense(store="fp32")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("dense(modell='x')", UnknownName, "did you mean model"),
        ("dense(store='fp31')", UnknownName, "fp32"),
        ("dense(pooling='sum')", BadValue, "pooling is 'sum'"),
        ("dense(index='HNSW32', effort=-1)", BadValue, "effort is -1"),
        ("dense(effort=5)", BadValue, "expected a whole number from 0, beside index"),
        ("dense(index=3)", BadValue, "index is 3"),
        ("dense(7)", BadValue, "model is 7"),
        ("dense(max_length=0)", BadValue, "max_length is 0"),
        ("dense(dimensions=5)", BadValue, "dimensions means nothing for a checkpoint"),
        ("dense('openai:x', pooling='mean')", BadValue, "pooling means nothing for an embedding API"),
    ],
)
def test_wrong_settings_are_one_error(text, error, said):
    with pytest.raises(error, match=said) as found:
        parse_system(text)
    assert isinstance(found.value, WeirError)
    assert "\n" not in str(found.value)
