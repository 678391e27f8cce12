"""Analyzers by name: their steps, and what they say of themselves."""

from __future__ import annotations

import dataclasses

import pytest

from weir.errors import BadValue, MissingExtra, UnknownName
from weir.systems.lexical.analyzer import SNOWBALL, analyzers, stem_all, stopword_list


@pytest.mark.parametrize(
    ("name", "text", "terms"),
    [
        ("lucene-english", "The Dogs' toys, the cat’s and NASA'S", ["dog", "toi", "cat", "nasa"]),
        ("lucene-english", "the and of", []),
        ("lucene-english", "İO ΣΑΣ ﬁ", ["io", "σασ", "ﬁ"]),
        ("lucene-english", "as as's by ay is sky", ["ay", "sky"]),
        ("lucene-standard", "The Dogs' toys", ["the", "dogs", "toys"]),
        ("bm25s-english", "The Dogs' toys, a I x", ["dog", "toy"]),
        ("bm25s-english", "ΣΑΣ aaİbb", ["σας", "aai", "bb"]),
        ("whitespace", " The  Dogs'\ttoys,", ["The", "Dogs'", "toys,"]),
        ("snowball-german", "Die Häuser der Stadt", ["die", "haus", "der", "stadt"]),
        ("snowball-french", "Les chevaux continuellement", ["le", "cheval", "continuel"]),
    ],
)
def test_terms(name: str, text: str, terms: list[str]):
    assert analyzers.get(name).tokens(text) == terms


def test_dropped_words_keep_their_place():
    assert analyzers.get("lucene-english").normalise(["The", "cats", "of", "it's"]) == ["", "cat", "", ""]
    assert analyzers.get("lucene-english").normalise([]) == []


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("possibly", "possibl"),  # "bli" -> "ble"
        ("psychology", "psycholog"),  # "logi" -> "log"
        ("eulogious", "eulogi"),  # "logi" appears only when -ous is gone
        ("trekking", "trek"),
        ("revved", "rev"),
        ("acyyed", "aci"),
        ("theology", "theologi"),  # nothing but a consonant and a vowel before it
        ("ably", "abli"),
        ("as", "as"),
        ("ay", "ay"),
        ("𝐀s", "𝐀"),  # three UTF-16 units
        ("És", "És"),
    ],
)
def test_where_lucenes_porter_is_not_snowballs(word: str, stem: str):
    assert stem_all("lucene-porter", [word]) == [stem]


def test_every_name_works_and_describes_itself():
    import Stemmer

    installed = set(Stemmer.algorithms())
    assert {f"snowball-{language}" for language in SNOWBALL} < set(analyzers.names())
    for name in analyzers:
        analyzer = analyzers.get(name)
        if analyzer.stemmer is None or analyzer.stemmer in installed | {"lucene-porter"}:
            assert analyzer.tokens("weir")
        says = analyzer.describe()
        assert says["analyzer"] == name
        assert {"algorithm", "tokenizer", "stopwords", "stemmer", "unicode"} <= set(says)
    says = analyzers.get("lucene-english").describe()
    assert says["stopwords"].startswith("english-33: a an and are")
    assert Stemmer.version() in says["stemmer"]
    assert len(stopword_list("english-33")) == 33


def test_unknown_analyzer_and_stemmer(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UnknownName, match="did you mean lucene-english"):
        analyzers.get("lucene-englisch")
    klingon = dataclasses.replace(analyzers.get("snowball-german"), stemmer="klingon")
    with pytest.raises(BadValue, match="no stemmer 'klingon'"):
        klingon.tokens("qapla")
    monkeypatch.setitem(__import__("sys").modules, "Stemmer", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[run\]"):
        analyzers.get("lucene-english").tokens("dogs")
    assert analyzers.get("lucene-standard").tokens("Dogs") == ["dogs"]
