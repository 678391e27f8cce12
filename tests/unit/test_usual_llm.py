"""The language model of whoever names none."""

from __future__ import annotations

import pytest

import weir
from weir.errors import BadValue
from weir.systems import parse_system


def test_a_model_may_be_named_for_all(monkeypatch, home):
    with pytest.raises(
        BadValue, match=r"no language model is named; name one, such as model=.*or set WEIR_LLM"
    ):
        parse_system('bm25 >> llm("listwise")')
    monkeypatch.setenv("WEIR_LLM", "http://localhost:8000/v1#usual")
    weir.settings.settings.cache_clear()
    found = parse_system('bm25 >> llm("listwise", window=5, step=2)')
    assert str(found) == 'bm25 >> llm("listwise", model="http://localhost:8000/v1#usual", window=5, step=2)'
    assert parse_system(str(found)) == found
