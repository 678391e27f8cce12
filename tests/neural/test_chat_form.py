"""Tokens as text where a token is no text by itself: bytes of a character, blanks at the beginning, ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")

from weir.plugins.llm.local_chat import ChatForm  # noqa: E402 - behind the skip

PIECES = ["▁", "▁7", "7", "0", "▁10", "weir", "▁weir", "é"]
BYTES = 2
"""The token of the byte 0; before it stand the unknown one and the end."""
FIRST = BYTES + 256


@pytest.fixture(scope="module")
def form():
    """A tokenizer as Llama 2 has it: bytes for what is not in it, the first blank left out."""
    names = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    vocabulary = {name: number for number, name in enumerate(names)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    inner.add_special_tokens(["</s>"])
    d = tokenizers.decoders
    steps = [d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]
    inner.decoder = d.Sequence(steps)
    return ChatForm(inner, None)


def test_tokens_are_the_pieces_of_the_text(form):
    rng = np.random.default_rng(1)
    for turn in range(200):
        ids = [FIRST + int(n) for n in rng.integers(0, len(PIECES), 12)]
        if turn % 3 == 0:
            place = int(rng.integers(0, 12))
            ids[place:place] = [
                BYTES + byte for byte in "漢".encode()[: 1 + turn % 2 * 2]
            ]  # whole, or its first byte
        ids += [1] * (turn % 2)
        tokens = np.array(ids)
        choices = form.choices(tokens, tokens[:, None], np.full((len(ids), 1), -0.5))
        pieces = [piece for piece, _ in choices]
        if turn % 3 or turn % 2:
            assert "".join(pieces) == form.text(tokens)
        assert not turn % 2 or pieces[-1] == ""
        assert [list(known) for _, known in choices] == [[piece] for piece in pieces]
    assert form.choices(tokens, np.empty((len(ids), 0), np.int64), np.empty((len(ids), 0))) == ()


def test_alternatives_of_equal_text_are_one(form):
    seven, blank_seven, ten = (FIRST + PIECES.index(piece) for piece in ("7", "▁7", "▁10"))
    others = np.array([[blank_seven, seven, ten]])
    [(said, known)] = form.choices(np.array([seven]), others, np.log([[0.5, 0.25, 0.125]]))
    assert said == "7"  # at the beginning the blank is left out
    assert {piece: round(math.exp(value), 6) for piece, value in known.items()} == {"7": 0.75, "10": 0.125}
