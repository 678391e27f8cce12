"""Small T5 checkpoints with random weights, and a tokenizer with the pieces that theirs has."""

from __future__ import annotations

import pytest

from tests.neural.conftest import WORDS

PIECES = ["▁Query", "▁Document", "▁Relevant", ":", "▁true", "▁false", "▁yes", "▁no", "▁"]
SHAPE = dict(
    d_model=48, d_kv=12, num_heads=6, d_ff=96, num_layers=3, num_decoder_layers=2, decoder_start_token_id=0
)
"""Heads of 12 side by side are wider than the model, and there are fewer layers to write than to read."""


def configs():
    """The first T5, T5 v1.1 and mT5, in the true shape but small."""
    t = pytest.importorskip("transformers", reason="needs the `neural` extra")
    shape = SHAPE | {"vocab_size": 80}
    return {
        "t5": t.T5Config(**shape),
        "t5-v1.1": t.T5Config(**shape, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        "mt5": t.MT5Config(**shape),
    }


def write_t5(folder, name="t5", pieces=PIECES, noise=0.1):
    """A checkpoint of that kind in a folder."""
    torch = pytest.importorskip("torch", reason="needs the `torch` extra")
    t = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    torch.manual_seed(7)
    kind = t.MT5ForConditionalGeneration if name == "mt5" else t.T5ForConditionalGeneration
    model = kind(configs()[name])
    with torch.no_grad():  # norms too: fresh ones are all 1 and would hide mistakes
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    write_pieces(folder, pieces)
    return folder


def write_pieces(folder, pieces=PIECES):
    """A tokenizer that cuts at blanks and marks where a word begins, as T5's."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")
    known = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    known += [(p, -1.0) for p in pieces] + [(f"▁{w}", -2.0) for w in WORDS] + [(c, -9.0) for c in "abcdefgh"]
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram(known, unk_id=2))
    split = tokenizers.pre_tokenizers.WhitespaceSplit()
    marked = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, marked])
    inner.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always")
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    inner.add_special_tokens(["<pad>", "</s>", "<unk>"])
    inner.save(str(folder / "tokenizer.json"))
