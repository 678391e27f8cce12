"""Encoders trained further: what is learned, what is refused, and what a kill costs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.bridges.conftest import foreign
from tests.neural.conftest import WORDS, sentence_transformer, write_tokenizer

library = foreign("sentence_transformers")

import torch  # noqa: E402 - behind the skip
import transformers  # noqa: E402 - behind the skip

import weir  # noqa: E402 - behind the skip
from weir.cli.main import main  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.models import Encoder  # noqa: E402 - behind the skip
from weir.models.checkpoints import trained_on  # noqa: E402 - behind the skip
from weir.plugins.training import training  # noqa: E402 - behind the skip
from weir.plugins.training.pairs import Crops, GivenPairs  # noqa: E402 - behind the skip
from weir.plugins.training.training import AdaptRules, adapt  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend
CONFIG = dict(vocab_size=64, hidden_size=48, num_hidden_layers=1, num_attention_heads=4, intermediate_size=96)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A small BERT with random weights, by sentence-transformers' files."""
    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(3)
    transformers.BertModel(transformers.BertConfig(**CONFIG)).save_pretrained(folder)
    write_tokenizer(folder)
    return str(sentence_transformer(folder))


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Documents of four words each, queries of two of them; the splits train and test share no query."""
    folder, rng = tmp_path_factory.mktemp("mine"), np.random.default_rng(1)
    words = WORDS[2:]
    documents = {f"d{i}": " ".join(rng.choice(words, 8)) for i in range(60)}
    queries = {f"q{i}": " ".join(documents[f"d{i}"].split()[:2]) for i in range(60)}
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels").mkdir()
    seen = {queries[f"q{i}"] for i in range(40)}
    parts = {"train": range(40), "test": [i for i in range(40, 60) if queries[f"q{i}"] not in seen]}
    for split, numbers in parts.items():
        lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in numbers)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return weir.load(folder)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_pairs_are_learned_and_the_folder_is_a_checkpoint(base, collection, tmp_path, home):
    rules = AdaptRules(base, epochs=12, batch=10, rate=5e-3, negatives=2)
    result = adapt(GivenPairs(), collection, tmp_path / "new", rules)
    assert (result.pairs, result.steps, result.dropped) == (40, 48, 0)
    assert result.losses[-1][1] < 0.7 * result.losses[0][1]
    encoder = Encoder(str(tmp_path / "new"))
    assert encoder.describe("cpu")["similarity"] == "cosine"
    system = weir.systems.parse_system(f'dense("{tmp_path / "new"}")')
    run = system.index(collection.corpus).search(collection.queries, 5)
    assert len(run.queries) == len(collection.queries)
    text = repr(result)
    assert 'dense("' in text
    assert "loss" in text
    again = adapt(GivenPairs(), collection, tmp_path / "new", rules)
    assert again == replace(result, reused=True)
    with pytest.raises(BadValue, match=r"holds another training \(its rules differ\)"):
        adapt(GivenPairs(), collection, tmp_path / "new", AdaptRules(base, epochs=2))
    (tmp_path / "other").mkdir()
    with pytest.raises(BadValue, match="no training wrote it"):
        adapt(GivenPairs(), collection, tmp_path / "other", rules)
    (tmp_path / "new" / "config.json").write_text("{}")
    with pytest.raises(StoreError, match=r"config\.json"):
        adapt(GivenPairs(), collection, tmp_path / "new", rules)


def test_what_is_stopped_goes_on_to_the_same_weights(base, collection, tmp_path, home, monkeypatch):
    rules = AdaptRules(base, epochs=3, batch=8)
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    adapt(Crops(words=6, deleted=0), collection, tmp_path / "whole", rules)
    steps = []

    def stop(what, done, total):
        if what == "training":
            steps.append(done)
            if done == 10:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(Crops(words=6, deleted=0), collection, tmp_path / "parts", rules, progress=stop)
    assert not (tmp_path / "parts").exists()
    steps.clear()
    result = adapt(
        Crops(words=6, deleted=0), collection, tmp_path / "parts", rules, progress=lambda *a: steps.append(a)
    )
    assert min(done for what, done, _ in steps if what == "training") == 10  # the ninth step was kept
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert result.steps == 24
    assert not list((home / "training").iterdir())


def test_evaluated_queries_are_not_learned(base, collection, tmp_path, home, capsys):
    test = len(collection.qrels.queries)
    with pytest.raises(
        BadValue, match=rf"{test} of the {test} evaluated queries .* are among the training pairs"
    ):
        adapt(GivenPairs("test"), collection, tmp_path / "new", AdaptRules(base))
    assert not (tmp_path / "new").exists()
    lines = [{"query": collection.queries.text.tolist()[0].upper(), "positive": "cat"}]
    lines += [{"query": f"the {word}", "positive": f"{word} river"} for word in WORDS]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = str(collection.layout.root)
    command = [
        "study",
        "adapt",
        "pairs",
        "-d",
        folder,
        "--base",
        base,
        "--file",
        str(tmp_path / "own.jsonl"),
        "--batch",
        "4",
    ]
    command += ["-o", str(tmp_path / "new"), "-q"]
    assert main(command) == 2
    assert "1 of the" in capsys.readouterr().err
    assert main([*command, "--each", "2"]) == 2
    assert "--each means nothing with pairs" in capsys.readouterr().err
    assert main([*command, "--drop-known"]) == 0
    out = capsys.readouterr()
    assert "1 pair left out" in out.err
    assert len(out.err.strip().split("\n")) == 2  # that, and how to search: no bars of other libraries
    assert trained_on(str(tmp_path / "new")) is None  # nothing says on what the base was trained
    facts = json.loads((tmp_path / "new" / "weir-training.json").read_text())
    assert (facts["trained_on"], facts["pairs"], facts["dropped"]) == ([collection.name], len(WORDS), 1)


def test_lengths_count_where_vectors_are_compared_by_dot(base, collection, tmp_path, home):
    adapt(GivenPairs(), collection, tmp_path / "dot", AdaptRules(base, similarity="dot", batch=10))
    encoder = Encoder(str(tmp_path / "dot"))
    assert encoder.describe("cpu")["similarity"] == "dot"
    lengths = np.linalg.norm(encoder.load("cpu").encode(["cat", "red fish river"]), axis=1)
    assert np.abs(lengths - 1).min() > 1e-3


def test_margins_of_a_cross_encoder(base, collection, tmp_path, home):
    torch.manual_seed(5)
    config = transformers.BertConfig(**CONFIG, num_labels=1)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path / "cross")
    write_tokenizer(tmp_path / "cross")
    rules = AdaptRules(base, margins=str(tmp_path / "cross"), negatives=2, batch=10, rate=1e-3, epochs=4)
    result = adapt(GivenPairs(), collection, tmp_path / "new", rules)
    assert result.losses[-1][1] < result.losses[0][1]
    assert (result.pairs, result.steps) == (40, 16)


def test_rules_say_what_is_wrong():
    for rules, message in (
        ({"similarity": "l2"}, "cosine or dot"), ({"rate": 0.0}, "a number above 0"), ({"batch": 1}, "from 2"),
        ({"margins": "x", "negatives": 0}, "take negatives from 1"), ({"dtype": "fp16"}, "fp32 or bf16"),
    ):  # fmt: skip
        with pytest.raises(BadValue, match=message):
            AdaptRules(**rules)
