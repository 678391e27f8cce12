"""The table of terms: numbering, growth, look-ups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from weir.core.strings import Strings
from weir.errors import BadValue
from weir.systems.lexical import terms as terms_module
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.terms import TermTable

ENGLISH = analyzers.get("lucene-english")
WHITESPACE = analyzers.get("whitespace")


def test_numbers_follow_first_appearance_and_dropped_words_are_left_out():
    table = TermTable(ENGLISH)
    ptr, numbers = table.add(Strings.of(["The dogs run", "", "the of", "cats and DOG running"]))
    assert ptr.dtype == np.int64
    assert numbers.dtype == np.int32
    assert ptr.tolist() == [0, 2, 2, 2, 5]
    assert numbers.tolist() == [0, 1, 2, 0, 1]
    assert table.terms().tolist() == ["dog", "run", "cat"]
    assert len(table) == 3


def test_lookup_does_not_grow_and_unknown_is_minus_one():
    table = TermTable(ENGLISH)
    table.add(Strings.of(["dogs"]))
    ptr, numbers = table.lookup(Strings.of(["a zebra dogging", "the"]))
    assert (ptr.tolist(), numbers.tolist()) == ([0, 2, 2], [-1, 0])
    assert len(table) == 1
    assert table.add(Strings.of(["zebras dog zebra"]))[1].tolist() == [1, 0, 1]
    assert table.lookup(Strings.of(["zebra"]))[1].tolist() == [1]


def test_a_vocabulary_is_taken_up_where_it_ended():
    first = TermTable(ENGLISH)
    _, numbers = first.add(Strings.of(["ships sail far", "sails ship"]))
    again = TermTable(ENGLISH, first.terms())
    assert len(again) == 3
    assert again.terms().tolist() == ["ship", "sail", "far"]
    assert again.lookup(Strings.of(["ships sail far", "sails ship"]))[1].tolist() == numbers.tolist()
    assert again.add(Strings.of(["new ships"]))[1].tolist() == [3, 0]
    assert again.terms().tolist() == ["ship", "sail", "far", "new"]


@pytest.mark.parametrize("words", [["a", "a"], ["a", ""], ["a\nb"]])
def test_a_vocabulary_must_hold_each_term_once(words: list[str]):
    with pytest.raises(BadValue, match="twice, or an empty one"):
        TermTable(WHITESPACE, Strings.of(words)).lookup(Strings.of(["a"]))


def test_nothing_in_nothing_out():
    table = TermTable(ENGLISH)
    for texts in ([], [""], ["", ""], ["..."]):
        ptr, numbers = table.add(Strings.of(texts))
        assert ptr.tolist() == [0] * (len(texts) + 1)
        assert numbers.size == 0
    assert table.terms().tolist() == []


def test_many_words_of_every_length_get_their_own_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(terms_module, "PIECE_BYTES", 1 << 14)
    words = [f"{i:x}".rjust(n, "z") for i in range(3000) for n in (5, 8, 9, 16, 17, 24, 40, 300)]
    words = list(dict.fromkeys(words))
    rng = np.random.default_rng(7)
    order = rng.integers(0, len(words), 60_000)
    texts = [" ".join(words), *(" ".join(words[j] for j in part) for part in np.split(order, 600))]
    table = TermTable(WHITESPACE)
    early = table.terms()
    ptr, numbers = table.add(Strings.of(texts))
    assert table.terms().tolist() == words
    assert early.tolist() == []
    assert numbers[: ptr[1]].tolist() == list(range(len(words)))
    assert numbers[ptr[1] :].tolist() == order.tolist()
    assert len(ptr) == 602


def test_a_slice_of_a_column_and_a_read_only_one():
    column = Strings.of(["one", "two", "three", "four"]).slice(1, 3)
    raw = Strings(np.frombuffer(bytes(column.data), np.uint8), column.ptr)
    for texts in (column, raw):
        table = TermTable(WHITESPACE)
        assert table.add(texts)[0].tolist() == [0, 1, 2]
        assert table.terms().tolist() == ["two", "three"]


@pytest.mark.parametrize("name", ["lucene-english", "bm25s-english", "whitespace"])
def test_bytes_that_are_not_utf8_do_no_harm(name: str):
    rng = np.random.default_rng(3)
    raw = [rng.integers(0, 256, n, np.uint8).tobytes() for n in range(60)]
    raw += [b"ab\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80 ok", b"\xc0\x80", b"\xed\xa0\x80 ok"]
    ptr = np.cumsum([0, *map(len, raw)])
    texts = Strings(np.frombuffer(b"".join(raw), np.uint8), ptr)
    table = TermTable(analyzers.get(name))
    found, numbers = table.add(texts)
    assert len(found) == len(raw) + 1
    assert numbers.max() < len(table)
    ok = table.lookup(Strings.of(["ok"]))[1].tolist()
    assert numbers[found[-2] :].tolist()[-1:] == ok != [-1]


def test_threads_share_a_table():
    texts = [Strings.of([f"word{i} shared{j % 7}" for i in range(j, j + 50)]) for j in range(40)]
    table = TermTable(WHITESPACE)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(table.add, texts))
    terms = table.terms().tolist()
    assert len(set(terms)) == len(terms) == 89 + 7
    for column, (_, numbers) in zip(texts, results, strict=True):
        assert [terms[n] for n in numbers] == " ".join(column.tolist()).split()
