from __future__ import annotations

import json

import pytest

from weir.encode.pairs.cross_encoder import CrossEncoder
from weir.encode.recipes.checkpoint import read_checkpoint
from weir.errors import BadValue, UnknownName
from weir.systems import parse_system, usage

NAMES = [
    'bm25 >> cross("cross-encoder/ms-marco-MiniLM-L-6-v2")',
    'bm25 >> cross("minilm-cross", depth=50, max_length=256, dtype="int8")',
    'bm25 >> score(rm3) >> cross("folder", engine="torch", batch_tokens=4000)',
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_and_parses_back(name):
    system = parse_system(name)
    assert str(system) == name
    assert parse_system(str(system)) == system
    assert hash(parse_system(name)) == hash(system)


def test_settings_equal_to_the_default_are_the_default():
    assert parse_system('bm25 >> cross("minilm-cross", None, dtype="fp32")') == parse_system("bm25 >> cross")
    assert usage("cross").startswith('cross(model="minilm-cross", depth=None, max_length=None')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cross", "write such as bm25 >> cross(...)"),
        ('bm25 >> cross("x", depth=0)', "whole number from 1"),
        ('bm25 >> cross("x", dtype="fp8")', "expected fp32, bf16, fp16, int8"),
        ('bm25 >> cross("x", engine="onnx")', "expected auto, torch, openvino, transformers"),
        ('bm25 >> cross("x", max_length=4)', "whole number from 5"),
        ('bm25 >> cross("x", batch_tokens=-1)', "whole number from 0"),
        ('bm25 >> cross("x", batch=3)', "did you mean batch_tokens"),
        ("bm25 >> cross(3)", "a hub name or a folder"),
        ('bm25 >> cross(" ")', "a hub name or a folder"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(text, message):
    with pytest.raises((BadValue, UnknownName)) as error:
        parse_system(text)
    assert message in str(error.value)


def test_arguments_are_what_differs():
    assert CrossEncoder("x", max_length=9).arguments == (["x"], {"max_length": 9})


def test_a_pair_is_as_long_as_the_card_says(tmp_path):
    """bge-reranker-v2-m3 could read 8192 tokens and was taught with 1024."""
    facts = {"model_type": "xlm-roberta", "max_position_embeddings": 8194, "pad_token_id": 1}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    checkpoint = read_checkpoint(tmp_path)
    assert CrossEncoder("bge-reranker-m3")._limit(checkpoint) == 1024
    assert CrossEncoder("bge-reranker-m3", max_length=8192)._limit(checkpoint) == 8192
    assert CrossEncoder("gte-reranker")._limit(checkpoint) == 8192
    assert CrossEncoder(str(tmp_path))._limit(checkpoint) == 8192
    with pytest.raises(BadValue, match="reads 8192 tokens at most"):
        CrossEncoder("bge-reranker-m3", max_length=8193)._limit(checkpoint)
