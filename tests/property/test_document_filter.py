"""Filters of documents against plain Python, and what is none."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weir.core.corpus import Corpus
from weir.core.filters import parse_filter
from weir.errors import BadValue, UnknownName, WeirError

DOCUMENTS = {
    "a": {"text": "a low dam", "lang": "en", "year": 1999, "tags": ["dam", "old"], "day": "2024-02-01"},
    "b": {"text": "ein Wehr", "lang": "de", "year": 2020, "tags": "bach", "draft": True, "day": "2024-11-30"},
    "c": {"text": "nothing else"},
    "d": {
        "title": "T",
        "text": "x",
        "lang": "fr",
        "year": 0,
        "by": {"name": "Ada"},
        "draft": False,
        "a key": 1,
    },
    "e": {"text": "y", "year": -2.5, "tags": [1, "old"], "lang": "it's"},
}
CORPUS = Corpus.of(DOCUMENTS)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ('lang == "en"', "a"),
        ('"en" == lang', "a"),
        ('lang != "en"', "bcde"),
        ('not lang == "en"', "bcde"),
        ('lang in ["en", "de"]', "ab"),
        ('lang not in ("en", "de")', "cde"),
        ("year >= 2020", "b"),
        ("0 <= year < 2000", "ad"),
        ("year == -2.5", "e"),
        ("year < 0", "e"),
        ("year in [1999, 2020]", "ab"),
        ('lang == "en" and year >= 1999 or tags == "bach"', "ab"),
        ('(lang == "en" or lang == "de") and not (year > 2000)', "a"),
        ('tags == "old"', "ae"),
        ('tags != "old"', "bcd"),
        ('"old" in tags', "ae"),
        ('"old" not in tags', "bcd"),
        ("1 in tags", "e"),
        ("tags in [1, 'bach']", "be"),
        ("tags", "abe"),
        ("year", "abe"),
        ("not lang", "c"),
        ("draft", "b"),
        ("draft == true", "b"),
        ("draft == False", "d"),
        ('by.name == "Ada"', "d"),
        ('field("a key") == 1', "d"),
        ('field("by.name")', "d"),
        ('"dam" in text', "a"),
        ('title == "T"', "d"),
        ('_id in ["a", "zz"]', "a"),
        ('day >= "2024-06"', "b"),
        ('"2024-01-01" < day < "2024-06"', "a"),
        ('lang == "it\'s"', "e"),
    ],
)
def test_which_documents_fit(text, fit):
    wanted = parse_filter(text)
    assert "".join(name for name, fits in zip(CORPUS.ids, wanted.mask(CORPUS), strict=True) if fits) == fit
    assert parse_filter(str(wanted)) == wanted


numbers = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, -1.5, True, False]))
words = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab", "é"]))
rows = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.just("x"),
            "n": numbers,
            "w": words,
            "many": st.lists(st.sampled_from("abc")),
            "nums": st.lists(st.sampled_from([0, -0.0, 5, 5.0, -2, 2.5])),
        }
    ),
    min_size=1,
    max_size=9,
)
EVERY = {
    "text": "x",
    "n": 9,
    "w": "w",
    "many": ["a", "b"],
    "nums": [1, 2],
}  # so that fields are there, and of their kinds
comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
leaves = st.one_of(
    st.tuples(st.just("n"), comparisons, st.integers(-3, 3)),
    st.tuples(st.just("w"), comparisons, st.sampled_from(["a", "b", "ab", "zz"])),
    st.tuples(st.just("many"), st.sampled_from(["==", "!="]), st.sampled_from("abc")),
    st.tuples(st.just("nums"), st.sampled_from(["==", "!="]), st.sampled_from([0, 5, 5.0, -2.0, 2.5, 7])),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


def spelled(tree) -> str:
    if tree[0] == "not":
        return f"not ({spelled(tree[1])})"
    if tree[0] in ("and", "or"):
        return "(" + f" {tree[0]} ".join(map(spelled, tree[1])) + ")"
    return f"{tree[0]} {tree[1]} {tree[2]!r}"


def fits(row: dict, tree) -> bool:
    if tree[0] == "not":
        return not fits(row, tree[1])
    if tree[0] in ("and", "or"):
        return (all if tree[0] == "and" else any)(fits(row, one) for one in tree[1])
    name, compare, value = tree
    held = row[name] if isinstance(row[name], list) else [row[name]]
    held = [one for one in held if one not in (None, "") or one is False or one == 0]
    if compare == "!=":
        return value not in held
    return any(eval(f"one {compare} value", {"one": one, "value": value}) for one in held)


@given(rows, trees)
@example([{"text": "x", "n": False, "w": None, "many": []}], ("n", "==", 0))
def test_filters_mean_what_python_means(some, tree):
    documents = {str(number): row for number, row in enumerate([*some, EVERY])}
    found = parse_filter(spelled(tree)).mask(Corpus.of(documents))
    assert found.tolist() == [fits(row, tree) for row in documents.values()]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lang ==",
        "lang",
        "1",
        "'en'",
        "lang == 'en', 1",
        "lang + year",
        "lang == year",
        "1 == 1",
        "lang is None",
        "lang == None",
        "year == 1e999",
        "year == 10 ** 9",
        "year == " + "9" * 30,
        "lang in 'en,de'",
        "lang in []",
        "lang == ['en']",
        "['en'] == lang",
        "__import__('os').system('x')",
        "field(lang) == 1",
        "field('a', 'b')",
        "lambda: 1",
        "[x for x in tags]",
        "lang == f'{year}'",
        "-year > 1",
        "not " * 80 + "lang",
        "(" * 300 + "lang" + ")" * 300,
        "lang == 'x' or " * 2000 + "lang",
        "\ud800",
        b"lang",
    ],
)
def test_what_is_no_filter_is_one_line(text):
    if text == "lang":
        assert parse_filter(text).fields == ("lang",)
        return
    with pytest.raises(BadValue) as said:
        parse_filter(text)
    assert str(said.value).startswith(("filter", "a filter of"))
    assert len(str(said.value)) < 300
    assert "\n" not in str(said.value)


@given(st.text(st.sampled_from("ab12()[]'\"=<>!&|.,:{}*+- \nnotandorinfield"), max_size=40))
def test_any_text_is_a_filter_or_one_line(text):
    try:
        wanted = parse_filter(text)
    except BadValue:
        return
    ast.parse(str(wanted), mode="eval")
    assert parse_filter(str(wanted)) == wanted


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("langg == 'en'", UnknownName, "named 'langg'; did you mean lang"),
        ("year == '2020'", BadValue, "year is a number in these documents; '2020' is a text"),
        ("lang < 3", BadValue, "lang is a text in these documents; 3 is a number"),
        ("tags < 3", BadValue, "tags is a list in these documents; 3 is a number"),
        ("'2' in year", BadValue, "year is a number"),
        ("year > 1 and 2 in lang", BadValue, "lang is a text"),
    ],
)
def test_a_filter_that_does_not_fit_the_documents_is_one_line(text, kind, said):
    with pytest.raises(WeirError, match=said) as error:
        parse_filter(text).mask(CORPUS)
    assert isinstance(error.value, kind)
