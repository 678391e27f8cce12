"""Encoders end to end on small checkpoints: pooling, prompts, lengths, order, streams, bad input."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `neural` extra (torch)")
pytest.importorskip("transformers", reason="needs the `neural` extra (transformers)")

from tests.neural.conftest import sentence_transformer  # noqa: E402 - behind the skip
from weir.core.strings import Strings  # noqa: E402
from weir.encode import Encoder, stability  # noqa: E402
from weir.encode.engine import choose  # noqa: E402
from weir.encode.recipe import resolve  # noqa: E402
from weir.errors import BadValue, DownloadError, StoreError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def folder(checkpoint_of, tmp_path):
    """A fresh copy of the small BERT."""
    return shutil.copytree(checkpoint_of("bert"), tmp_path / "bert")


def loaded(folder, engine="packed", **settings):
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
    assert encoder.describe()["query"] == "red blue {text}"
    assert plain.describe()["query"] == "green {text}"


def test_a_warning_when_declared_prompts_are_not_used(folder):
    sentence_transformer(folder, prompts={"query": "red ", "document": ""})
    with pytest.warns(UserWarning, match="declares prompts .'red '. and none is used"):
        silent = loaded(folder, query_prompt="")
    assert silent.describe()["notes"]


def test_lengths(folder):
    sentence_transformer(folder, limit=12)
    encoder = loaded(folder)
    long, cut = " ".join(["cat"] * 10 + ["dog"] * 30), " ".join(["cat"] * 10)
    np.testing.assert_allclose(encoder.encode([long]), encoder.encode([cut]), atol=2e-6)
    assert loaded(folder, max_length=30).describe()["max_length"] == 30
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
    with pytest.raises(DownloadError, match="nobody/nothing"):
        loaded("nobody/nothing")


def test_the_revision_follows_the_weights(folder):
    sentence_transformer(folder)
    before = resolve(Encoder(str(folder))).describe()
    assert before == resolve(Encoder(str(folder))).describe()
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(facts | {"layer_norm_eps": 1e-3}))
    assert resolve(Encoder(str(folder))).describe()["revision"] != before["revision"]


def test_the_engine_is_measured_once_and_remembered(folder, home, monkeypatch):
    from weir.encode import engine

    sentence_transformer(folder)
    checkpoint = resolve(Encoder(str(folder))).document
    place = engine.Place("cpu", "bf16")
    first = choose(checkpoint, place, "some revision")
    records = list((home / "engines").glob("*.json"))
    assert len(records) == 1
    assert {"engine", "dtype", "measured"} <= set(json.loads(records[0].read_text()))
    monkeypatch.setattr(engine, "_measured", None)  # measuring again would fail
    assert choose(checkpoint, place, "some revision") == first
    described = Encoder(str(folder), dtype="fp32", engine="packed").describe("cpu")
    assert described["engine"] == "packed"


def test_devices_that_are_not_there(folder):
    sentence_transformer(folder)
    with pytest.raises(BadValue, match="expected auto, cpu, cuda"):
        Encoder(str(folder)).load("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(BadValue, match="does not find here"):
            Encoder(str(folder)).load("cuda")
