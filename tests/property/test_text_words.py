"""The compiled path against the plain one, and both against UAX #29 written down as rules between characters."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.core.strings import Strings
from weir.systems.lexical.analyzer import analyzers, tokenizer
from weir.systems.lexical.terms import TermTable

# Characters by word break property. Emoji and Hebrew are left out: for UTS #51 sequences and for quotes after Hebrew
# letters Lucene's grammar is not the rules (it cuts a:\u05d0' before the quote); tests/golden has Lucene's own words.
KIND = {
    **dict.fromkeys("abZ\u00df\u0416\u03a3", "letter"),
    **dict.fromkeys("0\u0665", "digit"),
    **dict.fromkeys("カ\uff76", "katakana"),
    **dict.fromkeys(":\u00b7", "midletter"),
    **dict.fromkeys(",;", "midnum"),
    **dict.fromkeys(".\u2019", "midnumlet"),
    "'": "quote",
    **dict.fromkeys("_\u203f", "joiner"),
    **dict.fromkeys("\u0301\u00ad\u200d", "ignored"),
    **dict.fromkeys("\u0e01\u0e32", "southeast"),
    **dict.fromkeys("漢ひ", "single"),
    **dict.fromkeys(" -\n\u0085\u200b", "other"),
}
WORDLIKE = {"letter", "digit", "katakana"}


def joined(before: list[str], after: list[str]) -> bool:
    """Whether no boundary stands between; the kinds on both sides, ignored characters taken out (WB4)."""
    a, b = before[-1], after[0]
    a2, b2 = (before[-2:-1] or [""])[0], (after[1:2] or [""])[0]
    letters = {"midletter", "midnumlet", "quote"}
    numbers = {"midnum", "midnumlet", "quote"}
    return (
        (a in ("letter", "digit") and b in ("letter", "digit"))  # WB5, 8, 9, 10
        or (a == b2 == "letter" and b in letters)  # WB6
        or (a2 == b == "letter" and a in letters)  # WB7
        or (a2 == b == "digit" and a in numbers)  # WB11
        or (a == b2 == "digit" and b in numbers)  # WB12
        or (a == b == "katakana")  # WB13
        or (a in WORDLIKE | {"joiner"} and b == "joiner")  # WB13a
        or (a == "joiner" and b in WORDLIKE)  # WB13b
        or (a == b == "southeast")  # Lucene: runs of South East Asian letters stay together
    )


def by_rules(text: str) -> list[str]:
    """Words as the rules cut them; segments without a letter, digit or ideograph are dropped."""
    bases: list[list] = []  # [kind, text of the character and what is ignored after it]
    for letter in text:
        kind = KIND[letter]
        if kind == "ignored" and bases and bases[-1][0] not in ("start", "newline"):
            bases[-1][1] += letter
        elif kind == "ignored":
            bases.append(["start", letter])
        else:
            bases.append(["newline" if letter in "\n\u0085" else kind, letter])
    kinds = [kind for kind, _ in bases]
    words: list[list] = []
    for i, (kind, piece) in enumerate(bases):
        if i and joined(kinds[:i], kinds[i:]):
            words[-1][0].add(kind)
            words[-1][1] += piece
        else:
            words.append([{kind}, piece])
    return [word for kinds, word in words if kinds & (WORDLIKE | {"southeast", "single"})]


@settings(max_examples=1500)
@given(st.text(st.sampled_from(sorted(KIND)), max_size=14))
@example("a.'b")
def test_words_are_those_of_the_rules(text: str):
    assert tokenizer("uax29").words(text) == by_rules(text)


def unicode_texts() -> st.SearchStrategy[list[str]]:
    """Any characters, with those that rules treat apart drawn often."""
    special = sorted(KIND) + list("sS'’＇İΣςK#*1👨👩🏽🇩\ufe0f\u20e3©ℹ\U000e0067\U000e007f")
    letter = st.one_of(
        st.sampled_from(special),
        st.characters(exclude_categories=("Cs",)),
        st.sampled_from("abcdefgstyXYZ .,-0189_ "),
    )
    long = st.builds(lambda a, n, b: a * n + b, letter, st.integers(100, 300), st.text(letter, max_size=4))
    return st.lists(st.one_of(st.text(letter, max_size=40), long), max_size=6)


@settings(max_examples=150)
@given(
    st.sampled_from(["lucene-english", "lucene-standard", "bm25s-english", "whitespace", "snowball-greek"]),
    unicode_texts(),
)
@example("bm25s-english", ["ΑΣ'Α ΑΣ.", "Σ"])
def test_compiled_path_is_the_plain_path_in_any_batches(name: str, texts: list[str]):
    analyzer = analyzers.get(name)
    table, piecewise = TermTable(analyzer), TermTable(analyzer)
    ptr, numbers = table.add(Strings.of(texts))
    terms = table.terms().tolist()
    assert len(set(terms)) == len(terms)
    found = [[terms[n] for n in numbers[a:b]] for a, b in zip(ptr[:-1], ptr[1:], strict=True)]
    assert found == [analyzer.tokens(text) for text in texts]
    one_by_one = [n for text in texts for n in piecewise.add(Strings.of([text]))[1].tolist()]
    assert one_by_one == numbers.tolist()
    assert piecewise.terms().tolist() == terms
    again = TermTable(analyzer, table.terms())
    assert again.lookup(Strings.of(texts))[1].tolist() == numbers.tolist()
