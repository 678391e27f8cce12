"""Weir's own forward pass against transformers', for every architecture it knows."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")

from tests.neural.conftest import built, padded_attention, states  # noqa: E402 - behind the skip
from weir.models.checkpoints import read_checkpoint  # noqa: E402 - behind the skip
from weir.models.tokens import Tokens  # noqa: E402 - behind the skip
from weir.models.weights import supported  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

NAMES = ["bert", "bert-tanh", "roberta", "xlm-roberta", "camembert", "mpnet", "electra", "dpr", "distilbert"]


@pytest.fixture(params=NAMES)
def checkpoint(request, checkpoint_of):
    return read_checkpoint(checkpoint_of(request.param))


def test_states_equal_those_of_transformers(checkpoint, batch):
    assert supported(checkpoint)
    expected = states(built(checkpoint, "transformers"), batch)
    found = states(built(checkpoint, "torch"), batch)
    assert found.shape == (batch.ptr[-1], 48)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_text_alone_equals_the_text_in_a_batch(checkpoint, batch):
    engine = built(checkpoint, "torch")
    together = states(engine, batch)
    for i in range(len(batch)):
        alone = states(engine, batch.take(np.array([i])))
        np.testing.assert_allclose(alone, together[batch.ptr[i] : batch.ptr[i + 1]], atol=2e-5)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_stays_near(checkpoint, batch, dtype):
    expected = states(built(checkpoint, "transformers"), batch)
    found = states(built(checkpoint, "torch", dtype), batch)
    assert correlation(found, expected) > 0.999


def test_openvino_equals_transformers(checkpoint, batch):
    pytest.importorskip("openvino", reason="needs the `neural` extra")
    expected = states(built(checkpoint, "transformers"), batch)
    np.testing.assert_allclose(states(built(checkpoint, "openvino"), batch), expected, atol=1e-4)


@pytest.mark.parametrize(("dtype", "near"), [("bf16", 0.999), ("int8", 0.98)])
def test_openvino_stays_near_in_lower_precision(checkpoint_of, batch, dtype, near):
    for name in ("openvino", "nncf"):
        pytest.importorskip(name, reason=f"needs the `neural` extra ({name})")
    checkpoint = read_checkpoint(checkpoint_of("bert"))
    expected = states(built(checkpoint, "transformers"), batch)
    assert correlation(states(built(checkpoint, "openvino", dtype), batch), expected) > near


def correlation(a, b):
    return np.corrcoef(a.ravel(), b.ravel())[0, 1]


def test_pairs_have_segments(checkpoint_of, batch):
    checkpoint = read_checkpoint(checkpoint_of("bert"))
    segment = (batch.positions >= 4).astype(np.uint8)
    pairs = Tokens(batch.ids, batch.ptr, segment)
    expected = states(built(checkpoint, "transformers"), pairs)
    np.testing.assert_allclose(states(built(checkpoint, "torch"), pairs), expected, atol=2e-5)
    assert np.abs(states(built(checkpoint, "torch"), batch) - expected).max() > 0.01


def test_both_products_agree(checkpoint_of, batch):
    from dataclasses import replace

    from weir.models.weights import read_weights
    from weir.plugins.encoders.torch_engine import _placed, _prepacked, torch_engine

    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    weights = read_weights(read_checkpoint(checkpoint_of("bert")))
    engine = torch_engine(weights, "cpu", "fp32")
    assert engine.prepacked
    plain = replace(engine, prepacked=False, weights=_placed(weights, engine.device, engine.dtype), space={})
    expected = engine.hidden(batch).numpy().copy()
    np.testing.assert_allclose(plain.hidden(batch).numpy(), expected, atol=2e-5)
    assert _prepacked(plain.weights.layers[0]).qkv.is_mkldnn


def test_an_unknown_architecture_falls_to_transformers(tmp_path, batch):
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    config = transformers.AlbertConfig(
        vocab_size=64, embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=80,
    )  # fmt: skip
    transformers.AlbertModel(config).eval().save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert not supported(checkpoint)
    assert states(built(checkpoint, "transformers"), batch).shape == (batch.ptr[-1], 32)


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_what_a_gpu_without_the_packed_kernel_does(checkpoint_of, batch, name, monkeypatch):
    """The padded table for attention, and the layer as the GPU computes it, here on the processor."""
    from dataclasses import replace

    from weir.models.weights import read_weights
    from weir.plugins.encoders import torch_engine as module
    from weir.plugins.encoders.torch_engine import cuda_attention

    weights = read_weights(read_checkpoint(checkpoint_of(name)))
    engine = module.torch_engine(weights, "cpu", "fp32")
    expected = engine.hidden(batch).numpy().copy()
    monkeypatch.setattr(
        module, "cpu_attention", lambda b, heads, bias: padded_attention(b, heads, bias, cuda_attention)
    )
    np.testing.assert_allclose(engine.hidden(batch).numpy(), expected, atol=2e-5)
    placed = module._placed(weights, engine.device, engine.dtype)
    monkeypatch.setattr(module.TorchEngine, "_on_processor", module.TorchEngine._on_gpu)
    other = replace(engine, weights=placed, prepacked=False)
    np.testing.assert_allclose(other.hidden(batch).numpy(), expected, atol=2e-5)


BASE = dict(vocab_size=1000, num_hidden_layers=2)
"""Two layers and few words; all else is the configuration's own: 768 wide, 12 heads, 3,072 inside."""
RETRIEVERS = {
    "facebook/contriever": lambda t: t.BertModel(t.BertConfig(**BASE)),
    "facebook/dpr-ctx_encoder": lambda t: t.DPRContextEncoder(t.DPRConfig(**BASE)),
    "castorini/ance": lambda t: t.RobertaModel(
        t.RobertaConfig(**BASE, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
    ),
    "sebastian-hofstaetter/distilbert-dot-tas_b": lambda t: t.DistilBertModel(
        t.DistilBertConfig(vocab_size=1000, n_layers=2)
    ),
    "answerdotai/ModernBERT-base": lambda t: t.ModernBertModel(
        t.ModernBertConfig(
            vocab_size=1000, num_hidden_layers=4, pad_token_id=0, bos_token_id=2, eos_token_id=3,
            cls_token_id=2, sep_token_id=3,
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RETRIEVERS)
def test_shapes_of_known_retrievers(tmp_path, name):
    """Random weights in the true shape: states equal transformers' one text at a time, in any company.

    5e-5 in fp32, of states of about 1: another order of sums, and padding.
    """
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    torch.manual_seed(3)
    model = RETRIEVERS[name](transformers).eval()
    model.save_pretrained(tmp_path)
    checkpoint, engine = read_checkpoint(tmp_path), "transformers" if "Modern" in name else "torch"
    assert supported(checkpoint) == (engine == "torch")
    lengths = np.array([40, 7, 130, 40, 1])
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    batch = Tokens(np.random.default_rng(1).integers(5, 1000, ptr[-1]).astype(np.int32), ptr)
    ready = built(checkpoint, engine)
    together = states(ready, batch)
    inner = getattr(getattr(model, "ctx_encoder", None), "bert_model", model)
    for i, (start, stop) in enumerate(zip(ptr[:-1], ptr[1:], strict=True)):
        ids = torch.from_numpy(batch.ids[None, start:stop].astype(np.int64))
        with torch.inference_mode():
            expected = inner(input_ids=ids).last_hidden_state[0].numpy()
        np.testing.assert_allclose(together[start:stop], expected, atol=5e-5)
        alone = states(ready, batch.take(np.array([i])))
        np.testing.assert_allclose(alone, expected, atol=5e-5)
