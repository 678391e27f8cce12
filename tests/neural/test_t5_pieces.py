"""SentencePiece models, read without SentencePiece.

Compared once with sentencepiece 0.2 and transformers on a model of 4,000 pieces and 3,633 documents of NFCorpus:
the same tokens for all of them.
"""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")

from tests.neural.t5_small import PIECES, write_pieces
from weir.encode.t5_pieces import load_pieces
from weir.encode.tokens import load_tokenizer
from weir.errors import BadValue, StoreError


def varint(value):
    low, rest = value & 127, value >> 7
    return bytes([low]) if not rest else bytes([low | 128]) + varint(rest)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model(pieces, kind=1):
    """A SentencePiece model as its own trainer writes it: pieces with scores and kinds, then settings."""
    kinds = {"<pad>": 3, "</s>": 3, "<unk>": 2}
    lines = [
        field(
            1, field(1, name.encode()) + field(2, score) + (field(3, kinds[name]) if name in kinds else b"")
        )
        for name, score in pieces
    ]
    trainer = field(1, b"corpus.txt") + field(3, kind) + field(4, 8000) + field(10, 0.9995)
    return b"".join(lines) + field(2, trainer) + field(3, field(1, b"nmt_nfkc"))


@pytest.fixture
def known(tmp_path):
    """The small tokenizer as tokenizer.json, and its pieces."""
    write_pieces(tmp_path)
    inner = load_tokenizer(tmp_path, 512).inner
    (tmp_path / "tokenizer.json").rename(tmp_path / "kept.json")
    scores = {"▁true": -1.0}
    names = [inner.id_to_token(i) for i in range(inner.get_vocab_size())]
    first = len(PIECES) + 3
    return inner, [
        (n, scores.get(n, 0.0 if i < 3 else -1.0 if i < first else -9.0 if len(n) == 1 else -2.0))
        for i, n in enumerate(names)
    ]


def test_it_cuts_as_the_same_pieces_in_a_tokenizer_file(tmp_path, known):
    inner, pieces = known
    (tmp_path / "spiece.model").write_bytes(model(pieces))
    found = load_pieces(tmp_path, 12)
    texts = [
        "the river flows",
        "",
        "  Query:  the   cat ",
        "abcabc weirs river",
        "x " * 30,
        "river </s> cat",
        "true",
    ]
    for text in texts:
        assert found([text]).ids.tolist() == inner.encode(text).ids[:11] + [1] * (
            len(inner.encode(text).ids) > 11
        )
    assert found.inner.token_to_id("▁true") == inner.token_to_id("▁true")
    assert found.inner.decode(inner.encode("the river flows").ids) == "the river flows"


def test_a_tokenizer_file_goes_first(tmp_path, known):
    (tmp_path / "kept.json").rename(tmp_path / "tokenizer.json")
    (tmp_path / "spiece.model").write_bytes(b"nothing")
    assert load_pieces(tmp_path, 12)(["the river"]).lengths.tolist() == [3]


def test_what_is_damaged_or_of_another_kind_is_named(tmp_path, known):
    path, whole = tmp_path / "spiece.model", model(known[1])
    for data in (whole[:-3], whole[:40], b"\x00\xff" * 9, b"\x0b", b"", model([("a", 0.0)])):
        path.write_bytes(data)
        with pytest.raises(StoreError, match=r"spiece.model: cannot be read"):
            load_pieces(tmp_path, 12)
    path.write_bytes(model(known[1], kind=2))
    with pytest.raises(BadValue, match="of the kind 2; expected Unigram"):
        load_pieces(tmp_path, 12)
