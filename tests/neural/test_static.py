"""Checkpoints that are a table of vectors by token: the mean of a text's, as sentence-transformers has it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weir.errors import BadValue, StoreError
from weir.models.encoder import Encoder
from weir.systems import parse_system

tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra")
safetensors = pytest.importorskip("safetensors.numpy", reason="needs the `neural` extra")

WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "weir": 4, "over": 5, "water": 6}
TEXTS = ["a weir", "water water over a weir", "", "nothing known", "a " * 900]


def tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


def checkpoint(folder, table, normalise=True, name="embedding.weight", **more):
    """A checkpoint as sentence-transformers writes one."""
    inner = folder / "0_StaticEmbedding"
    inner.mkdir(parents=True)
    tokenizer().save(str(inner / "tokenizer.json"))
    safetensors.save_file({name: table, **more}, inner / "model.safetensors")
    kinds = [("0_StaticEmbedding", "StaticEmbedding"), *([("1_Normalize", "Normalize")] if normalise else [])]
    steps = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": "cosine"}))
    return folder


@pytest.fixture
def table():
    return np.random.default_rng(1).normal(size=(len(WORDS), 12)).astype(np.float32)


def by_hand(table, text):
    """The mean of the vectors of a text's words, without special ones, of length 1."""
    vectors = [table[WORDS.get(word, 0)].astype(float) for word in text.split()]
    mean = np.sum(vectors, axis=0) / len(vectors) if vectors else np.zeros(table.shape[1])
    return mean / max(np.linalg.norm(mean), 1e-12)


def test_a_text_is_the_mean_of_its_tokens_uncut_and_without_special_ones(tmp_path, table):
    encoder = Encoder(str(checkpoint(tmp_path / "model", table)))
    expected = np.array([by_hand(table, text) for text in TEXTS])
    for kind in ("query", "document"):
        np.testing.assert_allclose(encoder.load("cpu").encode(TEXTS, kind), expected, atol=1e-6)
    about = encoder.describe("cpu")
    assert about["architecture"] == "static"
    assert about["engine"].startswith("static cpu fp32, tokenizers ")
    cut = Encoder(str(tmp_path / "model"), max_length=3).load("cpu")
    np.testing.assert_allclose(
        cut.encode(["water water over a weir"]), [by_hand(table, "water water over")], atol=1e-6
    )


def test_a_table_of_model2vec_is_read(tmp_path, table):
    encoder = Encoder(str(checkpoint(tmp_path / "model", table, name="embeddings")))
    np.testing.assert_allclose(encoder.load("cpu").encode(["a weir"]), [by_hand(table, "a weir")], atol=1e-6)


def test_sentence_transformers_gives_the_same_vectors(tmp_path, table):
    library = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    at = str(checkpoint(tmp_path / "model", table, normalise=False))
    expected = library.SentenceTransformer(at, device="cpu").encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(
        Encoder(at).load("cpu").encode(TEXTS), expected, atol=1e-5
    )  # it adds up in float32


def test_it_searches(tmp_path, table):
    from weir.core.corpus import Corpus, Queries

    system = parse_system(f'dense("{checkpoint(tmp_path / "model", table)}")')
    corpus = Corpus.of({"d1": "water over water", "d2": "a weir", "d3": ""})
    run = system.index(corpus).search(Queries.of({"q": "weir"}), 2)
    assert next(iter(run.to_dict()["q"])) == "d2"


def test_what_no_table_is_refused_for(tmp_path, table):
    at = checkpoint(tmp_path / "model", table)
    with pytest.raises(BadValue, match="is a table of vectors by token; no engine computes it"):
        Encoder(str(at), engine="openvino").load("cpu")
    with pytest.raises(BadValue, match="a mean for each text, and nothing else"):
        Encoder(str(at), pooling="cls").load("cpu")
    more = checkpoint(tmp_path / "more", table, name="embeddings", weights=np.ones(len(WORDS), np.float32))
    with pytest.raises(BadValue, match="its table has weights beside it"):
        Encoder(str(more)).load("cpu")
    other = checkpoint(tmp_path / "other", table, name="something")
    with pytest.raises(StoreError, match="no table of vectors there"):
        Encoder(str(other)).load("cpu")
