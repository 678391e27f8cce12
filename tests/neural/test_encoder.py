"""Encoders end to end on small checkpoints: pooling, prompts, lengths, order, streams, bad input."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")

from tests.neural.conftest import sentence_transformer  # noqa: E402 - behind the skip
from weir.core.strings import Strings  # noqa: E402 - behind the skip
from weir.errors import BadValue, DownloadError, StoreError  # noqa: E402 - behind the skip
from weir.models import Encoder, stability  # noqa: E402 - behind the skip
from weir.models.encoder import resolve  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def folder(checkpoint_of, tmp_path):
    """A fresh copy of the small BERT."""
    return shutil.copytree(checkpoint_of("bert"), tmp_path / "bert")


def loaded(folder, engine="torch", **settings):
    return Encoder(str(folder), engine=engine, **settings).load("cpu")


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_vectors_equal_those_of_sentence_transformers(folder, words, pooling):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    sentence_transformer(folder, pooling)
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(words)
    found = loaded(folder).encode(words)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_dense_layers_behind_pooling(folder, words):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    sentence_transformer(folder, normalise=False)
    model = library.SentenceTransformer(str(folder), device="cpu")
    modules = pytest.importorskip(
        "sentence_transformers.models", reason="sentence-transformers is not installed"
    )
    model.append(modules.Dense(48, 20, activation_function=torch.nn.Tanh()))
    at = folder.parent / "with-dense"
    model.save(str(at))
    expected = model.encode(words)
    np.testing.assert_allclose(loaded(at, similarity="dot").encode(words), expected, atol=2e-6)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(loaded(at).encode(words), expected, atol=2e-6)  # saved as cosine, the default


def test_order_and_batches_do_not_matter(folder, words):
    sentence_transformer(folder)
    whole = loaded(folder).encode(words)
    order = np.random.default_rng(0).permutation(len(words))
    small = loaded(folder, batch_tokens=50).encode([words[i] for i in order])
    np.testing.assert_allclose(small, whole[order], atol=2e-6)
    np.testing.assert_array_equal(loaded(folder).encode(Strings.of(words)), whole)
    assert stability(loaded(folder), words[:10]).holds


@pytest.mark.parametrize("kind", ["transformers fp32", "openvino fp32", "openvino bf16", "openvino int8"])
def test_company_moves_a_vector_by_no_more_than_is_said(folder, words, kind):
    engine, dtype = kind.split()
    for name in ("openvino", "nncf") if engine == "openvino" else ():
        pytest.importorskip(name, reason=f"needs the `neural` extra ({name})")
    sentence_transformer(folder)
    found = stability(loaded(folder, engine, dtype=dtype), words[:20])
    assert found.holds, str(found)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_on_a_processor_a_vector_is_the_same_bits_in_any_company(folder, words, dtype, threads, monkeypatch):
    """Also behind a layer after pooling; with another number of threads it is the same but for rounding."""
    dense = folder / "2_Dense"
    sentence_transformer(folder, normalise=False)
    steps = json.loads((folder / "modules.json").read_text())
    steps.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(steps))
    dense.mkdir()
    (dense / "config.json").write_text(
        json.dumps({"activation_function": "torch.nn.modules.activation.Tanh"})
    )
    save = pytest.importorskip("safetensors.torch", reason="needs safetensors").save_file
    generator = torch.Generator().manual_seed(0)
    tensors = {"linear.weight": torch.randn(20, 48, generator=generator), "linear.bias": torch.zeros(20)}
    save(tensors, dense / "model.safetensors")
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings.cache_clear()
    by_one = loaded(folder, dtype=dtype).encode(words)
    monkeypatch.setenv("WEIR_THREADS", str(threads))
    settings.cache_clear()
    own, small = loaded(folder, dtype=dtype), loaded(folder, dtype=dtype, batch_tokens=70)
    whole = own.encode(words)
    np.testing.assert_allclose(whole, by_one, atol=1e-5 if dtype == "fp32" else 3e-2)
    assert np.array_equal(small.encode(words[::-1])[::-1], whole)
    for text, vector in zip(words, whole, strict=True):
        assert np.array_equal(own.encode([text])[0], vector)


def test_streams_come_in_order_and_piece_by_piece(folder, words):
    sentence_transformer(folder)
    encoder = loaded(folder)
    texts = words * 30
    told = []
    blocks = list(encoder.stream(iter(texts), done=told.append))
    assert len(blocks) > 1
    np.testing.assert_allclose(np.concatenate(blocks), np.tile(encoder.encode(words), (30, 1)), atol=2e-6)
    assert told[-1] == len(texts)
    assert told == sorted(told)


def test_prompts_declared_are_used_and_rendered(folder, words):
    sentence_transformer(folder, prompts={"query": "red blue ", "document": ""})
    encoder = loaded(folder)
    plain = loaded(folder, query_prompt="green ")
    np.testing.assert_array_equal(
        encoder.encode(["the cat"], "query"), encoder.encode(["red blue the cat"], "document")
    )
    assert encoder.encoder.describe()["query"] == "red blue {text}"
    assert plain.encoder.describe()["query"] == "green {text}"


def test_a_warning_when_declared_prompts_are_not_used(folder):
    sentence_transformer(folder, prompts={"query": "red ", "document": ""})
    with pytest.warns(UserWarning, match="declares prompts .'red '. and none is used"):
        silent = loaded(folder, query_prompt="")
    assert silent.recipe.notes


def test_lengths(folder):
    sentence_transformer(folder, limit=12)
    encoder = loaded(folder)
    long, cut = " ".join(["cat"] * 10 + ["dog"] * 30), " ".join(["cat"] * 10)
    np.testing.assert_allclose(encoder.encode([long]), encoder.encode([cut]), atol=2e-6)
    assert loaded(folder, max_length=30).encoder.describe()["max_length"] == 30
    short = loaded(folder, max_query=4)
    np.testing.assert_allclose(short.encode(["cat dog fish"], "query"), short.encode(["cat dog"]), atol=2e-6)
    with pytest.raises(BadValue, match="reads 80 tokens at most, not 81"):
        loaded(folder, max_length=81)


def test_empty_texts_and_no_texts(folder):
    sentence_transformer(folder)
    encoder = loaded(folder)
    assert encoder.encode([]).shape == (0, 48)
    assert np.isfinite(encoder.encode(["", " ", "cat"])).all()


def test_similarity_decides_the_length_of_vectors(folder, words):
    sentence_transformer(folder, normalise=False)
    lengths = np.linalg.norm(loaded(folder).encode(words), axis=1)
    assert np.abs(lengths - 1).max() > 0.1
    unit = loaded(folder, similarity="cosine").encode(words)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-5)


def test_nothing_says_how_to_pool(folder):
    with pytest.raises(BadValue, match="give pooling="):
        resolve(Encoder(str(folder)))
    assert resolve(Encoder(str(folder), pooling="cls")).pooling == "cls"


def test_vectors_that_are_no_numbers_are_refused(folder):
    sentence_transformer(folder)
    load, save = (
        pytest.importorskip("safetensors.torch", reason="safetensors is not installed").load_file,
        pytest.importorskip("safetensors.torch", reason="safetensors is not installed").save_file,
    )
    state = load(folder / "model.safetensors")
    state["embeddings.word_embeddings.weight"][7] = float("nan")  # the word "dog"... is number 8; "cat" is 7
    save(state, folder / "model.safetensors", metadata={"format": "pt"})
    encoder = loaded(folder)
    assert np.isfinite(encoder.encode(["dog"])).all()
    with pytest.raises(BadValue, match="vector of text 2 is not finite"):
        encoder.encode(["dog", "cat dog"])


def test_damaged_and_missing_checkpoints(folder, monkeypatch):
    sentence_transformer(folder)
    (folder / "model.safetensors").write_bytes(b"half of a file")
    with pytest.raises(StoreError, match="weights cannot be read"):
        loaded(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(StoreError):
        loaded(folder)
    with pytest.raises(StoreError, match="no checkpoint there"):
        loaded(folder.parent)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for ask in (Encoder("nobody/nothing").describe, Encoder("nobody/nothing").load):
        with pytest.raises(DownloadError, match="nobody/nothing") as found:
            ask()
        assert "\n" not in str(found.value)


def test_the_revision_follows_the_weights(folder):
    sentence_transformer(folder)
    before = resolve(Encoder(str(folder))).describe()
    assert before == resolve(Encoder(str(folder))).describe()
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(facts | {"layer_norm_eps": 1e-3}))
    assert resolve(Encoder(str(folder))).describe()["revision"] != before["revision"]


def test_the_engine_is_declared_and_nothing_is_measured(folder, home):
    """The same settings name the same engine in every process: no file in the home says which."""
    sentence_transformer(folder)
    for given in ({}, {"dtype": "bf16"}, {"engine": "transformers"}):
        encoder = Encoder(str(folder), **given)
        label = encoder.describe("cpu")["engine"]
        assert label is not None
        assert f"{label.split(' ')[0]} cpu {encoder.load('cpu').place.dtype}, tokenizers " in label
    assert not (home / "engines").exists()


def test_devices_that_are_not_there(folder):
    sentence_transformer(folder)
    with pytest.raises(BadValue, match="expected auto, cpu, cuda"):
        Encoder(str(folder)).load("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(BadValue, match="does not find here; take cpu"):
            Encoder(str(folder)).load("cuda")
