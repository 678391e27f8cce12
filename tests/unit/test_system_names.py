from __future__ import annotations

import inspect

import pytest

from weir.errors import BadValue, UnknownName, WeirError
from weir.fusion import METHODS
from weir.systems import BM25, RM3, SYSTEMS, parse_system

NAMES = [
    "bm25",
    "bm25(k1=1.2)",
    "bm25(k1=1.2, b=0.75)",
    'bm25("lucene-multifield")',
    'bm25("elastic", b=0.3)',
    'bm25("bm25s", lengths="byte")',
    'bm25(analyzer="whitespace")',
    "rm3",
    "rm3(docs=5)",
    "rm3(bm25(k1=1.2), terms=20, weight=0.7)",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_and_parses_back(name):
    system = parse_system(name)
    assert str(system) == name
    assert parse_system(str(system)) == system
    assert hash(parse_system(name)) == hash(system)


@pytest.mark.parametrize(
    "name",
    [  # a system that has a model, a file, a command or a filter names it
        n
        for n in SYSTEMS
        if n not in METHODS
        and not {"model", "path", "command", "file", "filter"}
        & set(inspect.signature(SYSTEMS.get(n)).parameters)
    ],
)
def test_every_registered_system_stands_by_its_bare_name(name):
    assert str(parse_system(name)) == name
    assert parse_system(name).describe()["system"] == name


def test_settings_equal_to_the_preset_are_the_preset():
    assert parse_system("bm25(k1=0.9, b=0.4)") == BM25()
    assert parse_system('bm25("lucene")') == BM25()
    assert parse_system("bm25(k1=1)") == BM25(k1=1.0)
    assert parse_system("rm3(bm25, docs=10)") == RM3()
    assert parse_system("bm25(b=0)") == BM25(b=0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm52", "did you mean bm25"),
        ("bm25(k2=1)", "did you mean k1"),
        ('bm25("lucene-multi")', "did you mean lucene-multifield"),
        ('bm25(analyzer="lucene-englsh")', "did you mean lucene-english"),
        ("bm25(k1=-1)", "expected a number from 0"),
        ('bm25(k1="big")', "expected a number from 0"),
        ("bm25(b=1.5)", "from 0 to 1"),
        ('bm25(lengths="half")', "'byte' or 'exact'"),
        ("rm3(docs=0)", "whole numbers from 1"),
        ("rm3(weight=2)", "from 0 to 1"),
        ('rm3(bm25("elastic"))', "one field"),
        ("rm3(rm3)", "one field"),
        ("bm25(", "is not a system"),
        ("bm25 + bm25", "is not a system"),
        ("__import__('os').system('true')", "is not a system"),
        ("bm25(k1=open('x'))", "no system named 'open'"),
        ("bm25(**{'k1': 1})", "is not a system"),
        ("bm25(1, 2, 3, 4, 5, 6, 7)", "too many positional"),
        ("", "is not a system"),
    ],
)
def test_a_bad_name_says_what_is_wrong(text, message):
    with pytest.raises((BadValue, UnknownName)) as caught:
        parse_system(text)
    assert message in str(caught.value)
    assert isinstance(caught.value, WeirError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minilm", 'a model, not a system; write dense("minilm")'),
        ("minilm-cross", 'a model, not a system; write bm25 >> cross("minilm-cross")'),
        ("bm25 >> minilm-cross", 'a model, not a reranker; write cross("minilm-cross")'),
        ("bm25 >> e5-base", 'a model, not a reranker; write score(dense("e5-base"))'),
        ("rrf(bm25, splade-v3)", 'a model, not a system; write splade("splade-v3")'),
    ],
)
def test_a_model_in_the_place_of_a_system_is_told_how_it_is_written(text, message):
    with pytest.raises(BadValue) as error:
        parse_system(text)
    assert message in str(error.value)


def test_a_name_in_other_letters_is_the_system():
    assert parse_system("BM25") == BM25()
    assert (
        str(parse_system("RRF(BM25, Dense('minilm')) >> Score(RM3)"))
        == 'rrf(bm25, dense("minilm")) >> score(rm3)'
    )
