"""Weir's own kernels as an engine: against transformers, alone and in batches, and with threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `neural` extra (torch)")
transformers = pytest.importorskip("transformers", reason="needs the `neural` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from weir.encode import tiled  # noqa: E402 - behind the skip
from weir.encode.checkpoint import read_checkpoint  # noqa: E402
from weir.encode.engine import Place, build  # noqa: E402
from weir.encode.tokens import Tokens  # noqa: E402
from weir.encode.weights import read_weights  # noqa: E402
from weir.kernels.lanes import FAST, HAS_BF16, HAS_INT8  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not FAST, reason="this processor has no fused multiply-add"),
]
SHAPE = dict(
    vocab_size=64,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=192,
    max_position_embeddings=150,
)
SHIFTED = SHAPE | {"max_position_embeddings": 152, "pad_token_id": 1, "type_vocab_size": 1}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**SHAPE),
    "bert, heads of 64, tanh": lambda: transformers.BertConfig(
        **(SHAPE | {"num_attention_heads": 2, "hidden_act": "gelu_new"})
    ),
    "bert, heads of 16": lambda: transformers.BertConfig(**(SHAPE | {"num_attention_heads": 8})),
    "bert, a head of 128": lambda: transformers.BertConfig(**(SHAPE | {"num_attention_heads": 1})),
    "roberta": lambda: transformers.RobertaConfig(**SHIFTED),
    "mpnet": lambda: transformers.MPNetConfig(**(SHAPE | {"max_position_embeddings": 152, "pad_token_id": 1})),
    "electra": lambda: transformers.ElectraConfig(**SHAPE, embedding_size=64),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=64, dim=128, n_layers=2, n_heads=4, hidden_dim=192, max_position_embeddings=150
    ),
}  # fmt: skip
DTYPES = [
    ("fp32", 2e-5),
    pytest.param(
        ("bf16", 0.15), marks=pytest.mark.skipif(not HAS_BF16, reason="no bfloat16 instructions here")
    ),
    pytest.param(
        ("int8", 0.4),
        marks=pytest.mark.skipif(not (HAS_INT8 and HAS_BF16), reason="no int8 instructions here"),
    ),
]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Whatever is faster here."""
    monkeypatch.setattr(tiled, "_near", lambda *_: True)


@pytest.fixture(scope="module")
def checkpoint_of(tmp_path_factory):
    made = {}

    def make(name):
        if name not in made:
            torch.manual_seed(7)
            model = transformers.AutoModel.from_config(CONFIGS[name]())
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
            made[name] = tmp_path_factory.mktemp("tiled")
            model.eval().save_pretrained(made[name])
        return read_checkpoint(made[name])

    return make


@pytest.fixture
def batch():
    """Lengths around what a tile, a panel and a chunk hold; an empty text; more rows than a chunk."""
    rng = np.random.default_rng(3)
    lengths = np.array([5, 17, 1, 150, 0, 17, 64, 65, 6, 2, 63])
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(rng.integers(5, 64, ptr[-1]).astype(np.int32), ptr)


def engine_of(checkpoint, dtype):
    found = tiled.tiled_engine(read_weights(checkpoint), dtype)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_states_equal_those_of_transformers(checkpoint_of, batch, name, dtype):
    checkpoint, (kind, tolerance) = checkpoint_of(name), dtype
    some = batch.take(np.flatnonzero(batch.lengths))  # transformers knows no empty text
    expected = build(checkpoint, Place("cpu", "fp32"), "transformers").hidden(some).numpy()
    found = engine_of(checkpoint, kind).hidden(batch).numpy()
    np.testing.assert_allclose(found, expected, atol=tolerance)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > {"fp32": 1 - 1e-9, "bf16": 0.9999}.get(
        kind, 0.998
    )


@pytest.mark.parametrize("name", ["bert", "mpnet"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_text_is_the_same_bits_alone_in_batches_and_with_threads(checkpoint_of, batch, name, dtype):
    engine = engine_of(checkpoint_of(name), dtype[0])
    together = engine.hidden(batch).numpy()
    for i in range(len(batch)):
        alone = engine.hidden(batch.take(np.array([i]))).numpy()
        np.testing.assert_array_equal(alone, together[batch.ptr[i] : batch.ptr[i + 1]])
    for threads in (2, 3, 30):
        several = replace(engine, threads=threads, kept=[])
        np.testing.assert_array_equal(several.hidden(batch).numpy(), together)


def test_pairs_have_segments(checkpoint_of, batch):
    checkpoint = checkpoint_of("bert")
    pairs = Tokens(batch.ids, batch.ptr, (batch.positions >= 4).astype(np.uint8))
    some = pairs.take(np.flatnonzero(pairs.lengths))
    expected = build(checkpoint, Place("cpu", "fp32"), "transformers").hidden(some).numpy()
    found = engine_of(checkpoint, "fp32").hidden(pairs).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.abs(found - engine_of(checkpoint, "fp32").hidden(batch).numpy()).max() > 0.01


def test_what_does_not_fit_is_left_to_torch(checkpoint_of, batch, monkeypatch):
    weights = read_weights(checkpoint_of("bert"))
    assert tiled.tiled_engine(weights, "fp16") is None
    assert tiled.tiled_engine(replace(weights, layers=()), "fp32") is None
    assert tiled.tiled_engine(replace(weights, heads=32), "fp32") is None  # heads of 4
    assert build(checkpoint_of("bert"), Place("cpu", "fp32"), "packed").name == "packed (tiles)"
    monkeypatch.setattr(tiled, "_near", lambda *_: False)
    other = build(checkpoint_of("bert"), Place("cpu", "fp32"), "packed")
    assert "tiles" not in other.name
    some = batch.take(np.flatnonzero(batch.lengths))
    expected = engine_of_any(weights, monkeypatch).hidden(some).numpy()
    np.testing.assert_allclose(other.hidden(some).numpy(), expected, atol=2e-5)


def engine_of_any(weights, monkeypatch):
    monkeypatch.setattr(tiled, "_near", lambda *_: True)
    return tiled.tiled_engine(weights, "fp32")


def test_the_measurement_of_products_ends_quickly(monkeypatch):
    monkeypatch.undo()
    assert tiled._near("fp32", 192, 128) in (True, False)


def test_descriptions_say_what_can_move_a_number(checkpoint_of):
    found = engine_of(checkpoint_of("bert"), "fp32").describe()
    assert found["engine"] == "packed (tiles)"
    assert found["computes in"] == "float32"
    assert {"torch", "numba", "llvmlite"} <= set(found)


@pytest.mark.usefixtures("home")
def test_where_the_kernels_serve_nothing_else_is_built_to_be_measured(checkpoint_of, monkeypatch):
    from weir.encode import engine

    built = []
    whole = engine.build
    monkeypatch.setattr(engine, "_able", lambda *_: [("packed", "fp32"), ("openvino", "fp32")])
    monkeypatch.setattr(engine, "build", lambda *given: built.append(given[2]) or whole(*given))
    assert engine.choose(checkpoint_of("bert"), Place("cpu", "fp32"), "some revision") == ("packed", "fp32")
    assert built == ["packed"]
