"""Words and identifiers that look alike and are written with other characters are found by the audit."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.audit import Subject, audited
from weir.audit.spelling import DECOMPOSED, KINDS, folded, spellings_of
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run

WAYS = {
    DECOMPOSED: lambda word: unicodedata.normalize("NFD", word.replace("o", "ö", 1)),
    "soft hyphens": lambda word: word[:2] + "\u00ad" + word[2:],
    "zero-width signs": lambda word: word[:2] + "\u200b" + word[2:],
    "signs of writing direction": lambda word: "\u202e" + word,
    "ligatures and presentation forms, such as \ufb01": lambda word: word.replace("fi", "\ufb01"),
    "full-width letters or half-width kana": lambda word: "".join(chr(ord(c) + 0xFEE0) for c in word),
}
WORDS = ["final", "office", "profile", "config"]


def found_in(documents, queries, qrels=None, check="spelling", **parts):
    qrels = qrels or {"q": {next(iter(documents)): 1}}
    return audited(
        Subject("mine", Corpus.of(documents), Queries.of(queries), Qrels.of(qrels), **parts), [check]
    ).findings


@given(
    kind=st.sampled_from(sorted(WAYS)),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True),
    asked=st.sampled_from([0, 1]),
    title=st.booleans(),
)
@settings(max_examples=60)
def test_a_word_written_in_two_ways_is_found_on_whichever_side_it_is_changed(kind, words, asked, title):
    """The finding counts the side that holds the kind, names the query, and shows both spellings."""
    assert set(WAYS) == {DECOMPOSED, *KINDS}
    plain = " ".join(word.replace("o", "ö", 1) if kind == DECOMPOSED else word for word in words)
    changed = " ".join(map(WAYS[kind], words))
    if spellings_of(changed) != [kind]:  # no o, no fi
        return
    texts = (changed, plain) if asked == 0 else (plain, changed)
    document = {"title": texts[0], "text": "of water"} if title else {"title": "", "text": texts[0]}
    [finding] = found_in({"a": document, "b": {"title": "", "text": "rivers"}}, {"q": texts[1]})
    numbers = dict(finding.numbers)
    assert (numbers["documents"], numbers["queries"]) == ((1, 0) if asked == 0 else (0, 1))
    same_words = plain.split() == [folded(word) for word in changed.split()]
    assert (finding.severity, numbers["queries that lose matches"]) == (
        ("caution", 1) if same_words else ("note", 0)
    )
    assert kind in finding.statement
    assert not same_words or finding.examples[0].isascii()


@pytest.mark.parametrize(
    "text",
    [
        "naïve café Straße ½ №1 x² ™",
        "日本語の文章 ガギグ、「テスト」！",
        "می\u200cخواهم کتاب",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 family",
        "ภาษา\u200bไทย",
        "क्\u200dष",
        "한국어 tiếng Việt",
    ],
)
def test_sound_spellings_of_languages_are_no_finding(text):
    assert spellings_of(text) == []
    assert found_in({"a": {"title": "", "text": text}}, {"q": text}) == ()


def test_the_same_spelling_on_both_sides_is_a_note():
    text = "soft\u00adhyphen \uff21\uff22"
    assert {f.severity for f in found_in({"a": {"title": "", "text": text}}, {"q": text})} == {"note"}


@pytest.mark.parametrize(
    ("text", "qrels", "loses"),
    [
        ("\u200ein the river", {"q": {"b": 1}}, False),  # a document that is not relevant
        ("\u200ein the river", {"q": {"a": 0, "b": 1}}, False),
        ("\u200ein the river", {"q": {"a": 1}}, True),
        ("\u200ein the river, in the sea", {"q": {"a": 1}}, False),  # the word stands there as asked, too
    ],
)
def test_matches_are_lost_where_a_relevant_document_writes_a_word_in_another_way_alone(text, qrels, loses):
    documents = {"a": {"title": "", "text": text}, "b": {"title": "", "text": "in water"}}
    [finding] = found_in(documents, {"q": "in"}, qrels)
    assert dict(finding.numbers)["queries that lose matches"] == loses
    [unjudged] = audited(
        Subject("mine", Corpus.of(documents), Queries.of({"q": "in"})), ["spelling"]
    ).findings
    assert unjudged.severity == "caution"


@pytest.mark.parametrize("change", [lambda n: unicodedata.normalize("NFD", n), lambda n: "\ufeff" + n])
@pytest.mark.parametrize("side", ["collection", "judgments"])
def test_identifiers_spelled_otherwise_are_wrong(change, side):
    name = "café"
    of_document, of_query = (change(name), change("qé")) if side == "collection" else (name, "qé")
    judged = (name, "qé") if side == "collection" else (change(name), change("qé"))
    documents = {of_document: {"title": "", "text": "water"}}
    [finding] = found_in(documents, {of_query: "water"}, {judged[1]: {judged[0]: 1}})
    assert finding.severity == "wrong"
    assert "2 judged identifiers are spelled otherwise" in finding.statement
    same = found_in(documents, {of_query: "water"}, {of_query: {of_document: 1}})
    assert [f.severity for f in same] == (["note"] if side == "collection" else [])


@pytest.mark.parametrize(
    ("answered", "severity"), [(10, None), (9, "caution"), (5, "caution"), (4, "serious")]
)
def test_a_run_that_answers_few_judged_queries_is_found(answered, severity):
    qrels = Qrels.of({f"q{i}": {"a": 1} for i in range(10)})
    run = Run.of({f"q{i}": {"a": 1.0} for i in range(answered)} | {"other": {"a": 1.0}})
    found = audited(Subject("runs", qrels=qrels, runs={"short": run}), ["unanswered queries"]).findings
    assert [f.severity for f in found] == ([severity] if severity else [])
    if found:
        assert found[0].statement.startswith(f"it answers {answered} of 10 judged queries")
        assert dict(found[0].numbers) == {"answered": answered, "judged queries": 10}
        assert found[0].examples[0] == f"q{answered}"
