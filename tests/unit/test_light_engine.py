"""Models without PyTorch: the four kinds of encoders on the light engine, against a plain forward pass in NumPy."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("openvino", reason="needs the `neural` extra (openvino)")
numpy_files = pytest.importorskip("safetensors.numpy", reason="needs the `neural` extra (safetensors)")

from tests.neural.conftest import WORDS, sentence_transformer, write_tokenizer  # noqa: E402 - behind the skip
from weir.errors import BadValue, MissingExtra, StoreError  # noqa: E402 - behind the skip
from weir.models import Encoder  # noqa: E402 - behind the skip
from weir.models.cross_encoder import CrossEncoder  # noqa: E402 - behind the skip
from weir.models.term_maxima import TermMaxima  # noqa: E402 - behind the skip
from weir.plugins.encoders.late import LateEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.sparse import SparseEncoder  # noqa: E402 - behind the skip

V, H, LAYERS, HEADS, F, P = 64, 48, 3, 4, 96, 80
CONFIG = {
    "model_type": "bert", "vocab_size": V, "hidden_size": H, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": F, "max_position_embeddings": P, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    "type_vocab_size": 2, "pad_token_id": 0,
}  # fmt: skip
TEXTS = ["the cat", "", "a red fish flows under the stone bridge " * 20, "one two three", "the cat"]
ERF = np.vectorize(math.erf)


def drawn():
    """The weights of a small BERT with its heads, norms and biases too: all 1 and 0 would hide mistakes."""
    rng = np.random.default_rng(4)
    sizes = {"embeddings.word_embeddings.weight": (V, H), "embeddings.position_embeddings.weight": (P, H),
             "embeddings.token_type_embeddings.weight": (2, H), "embeddings.LayerNorm": (H,)}  # fmt: skip
    for n in range(LAYERS):
        at = f"encoder.layer.{n}."
        sizes |= {
            f"{at}attention.{name}": (H, H)
            for name in ("self.query", "self.key", "self.value", "output.dense")
        }
        sizes |= {f"{at}attention.output.LayerNorm": (H,), f"{at}intermediate.dense": (F, H),
                  f"{at}output.dense": (H, F), f"{at}output.LayerNorm": (H,)}  # fmt: skip
    sizes |= {"pooler.dense": (H, H)}
    state = {}
    for name, size in sizes.items():
        if name.endswith(".weight"):
            state[f"bert.{name}"] = rng.normal(0, 0.5, size)
            continue
        state[f"bert.{name}.weight"] = rng.normal(0, 0.2, size) + (len(size) == 1)
        state[f"bert.{name}.bias"] = rng.normal(0, 0.1, size[0])
    head = "cls.predictions."
    state |= {"classifier.weight": rng.normal(0, 0.3, (1, H)), "classifier.bias": rng.normal(0, 0.3, 1),
              f"{head}transform.dense.weight": rng.normal(0, 0.3, (H, H)),
              f"{head}transform.dense.bias": rng.normal(0, 0.1, H),
              f"{head}transform.LayerNorm.weight": rng.normal(1, 0.1, H),
              f"{head}transform.LayerNorm.bias": rng.normal(0, 0.1, H),
              f"{head}bias": rng.normal(0, 0.1, V), "linear.weight": rng.normal(0, 0.3, (16, H))}  # fmt: skip
    return {name: array.astype(np.float32) for name, array in state.items()}


STATE = drawn()


def linear(x, name):
    return x @ STATE[f"{name}.weight"].T + STATE[f"{name}.bias"]


def norm(x, name):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return y * STATE[f"{name}.weight"] + STATE[f"{name}.bias"]


def gelu(x):
    return 0.5 * x * (1 + ERF(x / np.sqrt(2)))


def states(ids, segments=None):
    """The hidden states [T, H] of one text, in double."""
    e = "bert.embeddings."
    x = STATE[f"{e}word_embeddings.weight"][ids].astype(np.float64)
    x += STATE[f"{e}position_embeddings.weight"][: len(ids)]
    x += STATE[f"{e}token_type_embeddings.weight"][np.zeros(len(ids), int) if segments is None else segments]
    x = norm(x, f"{e}LayerNorm")
    for n in range(LAYERS):
        at = f"bert.encoder.layer.{n}."
        q, k, v = (linear(x, f"{at}attention.self.{name}").reshape(-1, HEADS, H // HEADS).swapaxes(0, 1)
                   for name in ("query", "key", "value"))  # fmt: skip
        scores = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(H // HEADS))
        context = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(-1, H)
        x = norm(linear(context, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        inside = gelu(linear(x, f"{at}intermediate.dense"))
        x = norm(linear(inside, f"{at}output.dense") + x, f"{at}output.LayerNorm")
    return x


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("bert"), "BertModel")


def written(folder, trained):
    numpy_files.save_file(STATE, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG | {"architectures": [trained]}))
    write_tokenizer(folder)
    return folder


def tokens(folder, text, limit, pair=None):
    import tokenizers

    inner = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    inner.enable_truncation(limit)
    encoding = inner.encode(text, pair) if pair is not None else inner.encode(text)
    return encoding.ids, encoding.type_ids


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "max"])
def test_vectors_equal_a_plain_forward_pass(folder, tmp_path, pooling):
    own = sentence_transformer(shutil.copytree(folder, tmp_path / "own"), pooling=pooling)
    pooled = {
        "mean": lambda x: x.mean(0),
        "cls": lambda x: x[0],
        "last": lambda x: x[-1],
        "max": lambda x: x.max(0),
    }
    expected = np.stack([pooled[pooling](states(tokens(own, text, 40)[0])) for text in TEXTS])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    loaded = Encoder(str(own)).load("cpu")
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=1e-5)
    assert loaded.encode([]).shape == (0, H)


def test_scores_of_pairs_equal_a_plain_forward_pass(tmp_path):
    folder = written(tmp_path, "BertForSequenceClassification")
    pairs = [(a, b) for a in TEXTS for b in TEXTS[::-1]]
    expected = []
    for query, document in pairs:
        first = states(*tokens(folder, query, 80, document))[0]
        inside = np.tanh(linear(first, "bert.pooler.dense"))
        expected.append((STATE["classifier.weight"] @ inside + STATE["classifier.bias"])[0])
    scores = np.concatenate(list(CrossEncoder(str(folder)).load("cpu").scores(pairs)))
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(("pooling", "by_bytes"), [("max", True), ("max", False), ("sum", True)])
def test_weights_of_terms_equal_a_plain_forward_pass(tmp_path, monkeypatch, pooling, by_bytes):
    if not by_bytes:  # as on a processor without products of bytes: the graph computes all logits
        monkeypatch.setattr(TermMaxima, "of", lambda *_: None)
    folder = written(tmp_path, "BertForMaskedLM")
    block = SparseEncoder("splade", str(folder), pooling=pooling).load("cpu").encode(TEXTS)
    for number, text in enumerate(TEXTS):
        at = "cls.predictions.transform."
        x = norm(gelu(linear(states(tokens(folder, text, 80)[0]), f"{at}dense")), f"{at}LayerNorm")
        words = STATE["bert.embeddings.word_embeddings.weight"]
        weights = np.log1p(np.maximum(x @ words.T + STATE["cls.predictions.bias"], 0))
        expected = weights.max(0) if pooling == "max" else weights.sum(0)
        rows = block.values[block.ptr[number] : block.ptr[number + 1]]
        dense = np.zeros(V)
        dense[rows["term"]] = rows["weight"]
        np.testing.assert_allclose(dense, expected, atol=5e-5)


def test_vectors_of_tokens_equal_a_plain_forward_pass(tmp_path):
    folder = written(tmp_path, "HF_ColBERT")
    facts = {"query_token_id": "[UNK]", "doc_token_id": "[UNK]", "mask_punctuation": False, "doc_maxlen": 30}
    (folder / "artifact.metadata").write_text(json.dumps(facts))
    block = LateEncoder(str(folder)).load("cpu").encode(TEXTS)
    for number, text in enumerate(TEXTS):
        ids = tokens(folder, text, 29)[0]
        x = states([ids[0], 1, *ids[1:]]) @ STATE["linear.weight"].T
        expected = x / np.linalg.norm(x, axis=1, keepdims=True)
        np.testing.assert_allclose(
            block.values[block.ptr[number] : block.ptr[number + 1]], expected, atol=1e-5
        )


def test_a_model_runs_without_torch_and_transformers(folder):
    code = (
        "import sys; from weir.models import Encoder\n"
        f"Encoder({str(folder)!r}, pooling='mean').load('cpu').encode(['a cat'])\n"
        "print([name for name in ('torch', 'transformers', 'nncf') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_half_precision_and_numbers_of_sixteen_bits(folder, tmp_path):
    """bf16 stays near, and a checkpoint that holds bfloat16 is read as the float32 that it stands for."""
    expected = Encoder(str(folder), pooling="mean", similarity="cosine").load("cpu").encode(TEXTS)
    found = Encoder(str(folder), pooling="mean", similarity="cosine", dtype="bf16").load("cpu").encode(TEXTS)
    assert (found * expected).sum(1).min() > 0.999
    own = shutil.copytree(folder, tmp_path / "own")
    bits = {name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in STATE.items()}
    header, data = {}, b""
    for name, array in bits.items():
        header[name] = {
            "dtype": "BF16",
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    (own / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    found = Encoder(str(own), pooling="mean", similarity="cosine").load("cpu").encode(TEXTS)
    assert 0.99 < (found * expected).sum(1).min() < 1 - 1e-9


def broken(folder, place, how):
    own = shutil.copytree(folder, place / how)
    if how == "no tokenizer":
        (own / "tokenizer.json").unlink()
    elif how == "other shapes":
        (own / "config.json").write_text(json.dumps(CONFIG | {"num_attention_heads": 5}))
    elif how == "not numbers":
        state = STATE | {"bert.encoder.layer.1.output.dense.weight": np.full((H, F), np.nan, np.float32)}
        numpy_files.save_file(state, own / "model.safetensors")
    elif how == "half a file":
        path = own / "model.safetensors"
        path.write_bytes(path.read_bytes()[:20_000])
    else:
        (own / "config.json").write_text(json.dumps(CONFIG | {"model_type": "albert"}))
    return own


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no tokenizer", "no tokenizer there"),
        ("other shapes", "do not fit"),
        ("not numbers", "is not finite"),
        ("half a file", "cannot be read"),
        ("another architecture", "torch|the weights have no"),
    ],
)
def test_a_broken_folder_is_one_line(folder, tmp_path, how, message):
    own = broken(folder, tmp_path, how)
    with pytest.raises((StoreError, BadValue, MissingExtra), match=message) as caught:
        Encoder(str(own), pooling="mean").load("cpu").encode(WORDS)
    assert "\n" not in str(caught.value)


def test_a_vocabulary_of_other_dimensions_is_one_line(tmp_path):
    folder = written(tmp_path, "BertForMaskedLM")
    config = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    decoder = {"cls.predictions.decoder.weight": np.ones((V, H // 2), np.float32)}
    numpy_files.save_file(STATE | decoder, folder / "model.safetensors")
    with pytest.raises(StoreError, match="cannot run it") as caught:
        SparseEncoder("splade", str(folder)).load("cpu")
    assert "\n" not in str(caught.value)
