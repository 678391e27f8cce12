"""Where words begin and end: one small case for each rule."""

from __future__ import annotations

import pytest

from weir.errors import UnknownName
from weir.systems.lexical.analyzer import TOKENIZERS, tokenizer
from weir.systems.lexical.terms import BEGINS, MIDDLE, SIMPLE, STOP, word_automaton


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,-!'", []),
        ("can't O’Neill 'tis dogs'", ["can't", "O’Neill", "tis", "dogs"]),
        ("a.b a,b a:b a;b a·b", ["a.b", "a", "b", "a:b", "a", "b", "a·b"]),
        ("1,000.5 1;2 1:2 1.a a.1", ["1,000.5", "1;2", "1", "2", "1", "a", "a", "1"]),
        ("a..b 1,,2 a.'b", ["a", "b", "1", "2", "a", "b"]),
        ("_a_b_ __ _ 1_2", ["_a_b_", "1_2"]),
        ("x\u0301y \u0301z a\u00adb", ["x\u0301y", "z", "a\u00adb"]),
        ("zero\u200bwidth jo\u200diner", ["zero", "width", "jo\u200diner"]),
        ("日本ごカタカナ한글", ["日", "本", "ご", "カタカナ", "한글"]),
        ("カa カ_a", ["カ", "a", "カ_a"]),
        ("ภาษาไทยabc", ["ภาษาไทย", "abc"]),
        ('צה"ל א\' ב"', ['צה"ל', "א'", "ב"]),
        ("👨\u200d👩\u200d👧👍🏽 ok☺\ufe0f", ["👨\u200d👩\u200d👧", "👍🏽", "ok", "☺\ufe0f"]),
        ("🇩🇪🇫🇷🇩 #\ufe0f\u20e3 1\u20e3", ["🇩🇪", "🇫🇷", "#\ufe0f\u20e3", "1\u20e3"]),
        ("a\u0085b\r\nc\rd\x00e\u2028f", ["a", "b", "c", "d", "e", "f"]),
        ("½ ² Ⅳ ª µ", ["Ⅳ", "ª", "µ"]),
        ("１２ａ", ["１２ａ"]),
    ],
)
def test_uax29(text: str, words: list[str]):
    assert tokenizer("uax29").words(text) == words


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("a" * 255, [255]),
        ("a" * 256, [255, 1]),
        ("a" * 600, [255, 255, 90]),
        ("a" * 254 + "'b", [254, 1]),
        ("a" * 253 + "'b", [255]),
        ("a" * 254 + "𝐀𝐀", [254, 2]),
        ("𝐀" * 130, [127, 3]),
    ],
)
def test_words_are_cut_at_255_utf16_units(text: str, lengths: list[int]):
    assert [len(w) for w in tokenizer("uax29").words(text)] == lengths


def test_plain_tokenizers():
    text = "Ab1_c d, é\u0301f 日本\u00a0x\x1cy\u0085zz"
    assert tokenizer("whitespace").words(text) == text.split()
    assert tokenizer("words").words(text) == ["Ab1_c", "日本", "zz"]
    assert tokenizer("lines").words("a b\n\nc\r\n") == ["a b", "c\r"]


def test_unknown_tokenizer_gets_a_suggestion():
    assert all(tokenizer(name).words("one") == ["one"] for name in TOKENIZERS)
    with pytest.raises(UnknownName, match="did you mean uax29"):
        tokenizer("uax-29")


def test_what_single_bytes_decide():
    """The scanner's shortcuts are worked out from the automaton; here they are spelled out."""
    kinds = word_automaton(tokenizer("uax29"), True).kinds
    with_kind = {k: bytes(b for b in range(128) if kinds[b] & k) for k in (SIMPLE, BEGINS, STOP, MIDDLE)}
    letters = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    assert with_kind[SIMPLE] == letters
    assert set(with_kind[BEGINS]) == set(letters + b"_#*")
    assert set(with_kind[MIDDLE]) == set(b"',.:;")
    assert set(with_kind[STOP]) == set(range(128)) - set(letters + b"_',.:;")
    assert set(kinds[128:].tolist()) == {BEGINS}
