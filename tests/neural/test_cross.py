"""Scores of pairs against transformers' own forward pass, and cross-encoders in pipelines."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import WORDS, configs, write_tokenizer  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.models.cross_encoder import CrossEncoder  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

OWN = ["bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"]


def written(folder, config, classes=1, noise=0.1):
    config.num_labels = classes
    torch.manual_seed(11)
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():  # norms and biases too: fresh ones are all 1 and 0 and would hide mistakes
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """A function: the folder of a small cross-encoder of an architecture."""
    made = {}

    def make(name, classes=1):
        if (name, classes) not in made:
            made[name, classes] = written(tmp_path_factory.mktemp("cross"), configs()[name], classes)
        return made[name, classes]

    return make


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """Random weights in the true shape of MiniLM-L6 but for its vocabulary, which is that of the small tokenizer."""
    shape = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    config = transformers.BertConfig(vocab_size=64, max_position_embeddings=512, **shape)
    return written(tmp_path_factory.mktemp("minilm"), config, noise=0.02)


@pytest.fixture
def pairs():
    """Pairs of many lengths: an empty query, an empty document, one that is longer than the limit."""
    rng = np.random.default_rng(5)
    lengths = [(3, 20), (0, 9), (5, 0), (4, 600), (90, 90), *rng.integers(1, 60, (30, 2)).tolist()]
    return [tuple(" ".join(rng.choice(WORDS, n)) for n in pair) for pair in lengths]


def theirs(folder, pairs, limit):
    """What transformers says of each pair alone, without padding."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), model_input_names=["input_ids", "token_type_ids"]
    )
    kinds = int(model.config.to_dict().get("type_vocab_size") or 0)
    found = []
    for pair in pairs:
        given = tokenizer([pair], truncation="longest_first", max_length=limit, return_tensors="pt")
        if kinds < 2:
            given.pop("token_type_ids")
        with torch.inference_mode():
            found.append(model(**given).logits[0].numpy())
    return np.stack(found)


def ours(pairs, folder, **settings):
    loaded = CrossEncoder(str(folder), **settings).load("cpu")
    return np.concatenate(list(loaded.scores(iter(pairs))))


@pytest.mark.parametrize("engine", ["torch", "transformers"])
def test_minilm_equals_transformers_own_forward_pass(minilm, pairs, engine):
    expected = theirs(minilm, pairs, 512)[:, 0]
    found = ours(pairs, minilm, engine=engine, max_length=512)
    assert found.dtype == np.float32
    assert expected.std() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_openvino_equals_transformers_own(folder_of, pairs, name):
    """With two kinds of segments, and with one. Of int8 nothing can be said here: its ranges are taken from real texts."""
    pytest.importorskip("openvino", reason="needs the `neural` extra")
    expected = theirs(folder_of(name), pairs, 60)[:, 0]
    found = ours(pairs, folder_of(name), engine="openvino", max_length=60)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", OWN)
def test_every_head_equals_transformers_own(folder_of, pairs, name):
    folder = folder_of(name)
    expected = theirs(folder, pairs, 60)[:, 0]
    assert expected.std() > 1e-3
    np.testing.assert_allclose(ours(pairs, folder, engine="torch", max_length=60), expected, atol=2e-5)
    np.testing.assert_allclose(ours(pairs, folder, engine="transformers", max_length=60), expected, atol=2e-5)


def test_an_architecture_without_a_head_here_takes_transformers(folder_of, pairs):
    folder = folder_of("mpnet")
    encoder = CrossEncoder(str(folder), max_length=60)
    assert encoder.describe("cpu")["engine"].startswith("transformers cpu fp32, ")
    expected = theirs(folder, pairs, 60)[:, 0]
    np.testing.assert_allclose(ours(pairs, folder, max_length=60), expected, atol=2e-5)
    with pytest.raises(BadValue, match="take 'transformers'"):
        CrossEncoder(str(folder), engine="torch").load("cpu")


@pytest.mark.parametrize("name", ["deberta-v2", "modernbert"])
def test_re_rankers_of_today_equal_transformers_own(tmp_path, pairs, name):
    """The architectures of mxbai-rerank-base-v1 and gte-reranker-modernbert-base, small."""
    small = dict(
        vocab_size=64, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96
    )
    if name == "deberta-v2":
        distance = dict(relative_attention=True, position_buckets=16, pos_att_type=["p2c", "c2p"])
        config = transformers.DebertaV2Config(
            **small, **distance, norm_rel_ebd="layer_norm", share_att_key=True, type_vocab_size=0
        )
    else:
        config = transformers.ModernBertConfig(**small, pad_token_id=0, classifier_pooling="cls")
    folder = written(tmp_path, config)
    assert (
        CrossEncoder(str(folder), max_length=60)
        .describe("cpu")["engine"]
        .startswith("transformers cpu fp32, ")
    )
    expected = theirs(folder, pairs, 60)[:, 0]
    assert expected.std() > 1e-3
    np.testing.assert_allclose(ours(pairs, folder, max_length=60), expected, atol=5e-5)


def test_code_that_a_checkpoint_brings_is_not_run_and_named(folder_of, tmp_path):
    """As jina-reranker-v2, whose weights bear the names of its own code."""
    from safetensors.torch import load_file, save_file

    for path in folder_of("xlm-roberta").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    facts = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(facts | {"auto_map": {"AutoModel": "own.Model"}}))
    state = load_file(tmp_path / "model.safetensors")
    renamed = {name.replace("attention.self", "mixer"): tensor for name, tensor in state.items()}
    save_file(renamed, tmp_path / "model.safetensors", {"format": "pt"})
    for engine in ("torch", "transformers"):
        with pytest.raises(BadValue, match="brings code of its own, which Weir never runs"):
            CrossEncoder(str(tmp_path), engine=engine).load("cpu")


def test_two_classes_give_the_second_less_the_first(folder_of, pairs):
    folder = folder_of("bert", classes=2)
    expected = theirs(folder, pairs, 60)
    found = ours(pairs, folder, max_length=60)
    np.testing.assert_allclose(found, expected[:, 1] - expected[:, 0], atol=2e-5)
    with pytest.raises(BadValue, match="has 3 classes"):
        ours(pairs, folder_of("bert", classes=3))


@pytest.mark.parametrize("budget", [1, 100, 100_000])
def test_scores_do_not_depend_on_the_batches(folder_of, pairs, budget):
    folder = folder_of("bert")
    expected = ours(pairs, folder, batch_tokens=1000)
    np.testing.assert_allclose(ours(pairs, folder, batch_tokens=budget), expected, atol=2e-5)
    turned = ours(pairs[::-1], folder, batch_tokens=budget)[::-1]
    np.testing.assert_allclose(turned, expected, atol=2e-5)


@pytest.mark.parametrize(("dtype", "near"), [("bf16", 0.99), ("fp16", 0.999)])
def test_lower_precision_stays_near(minilm, pairs, dtype, near):
    expected = ours(pairs, minilm)
    assert np.corrcoef(ours(pairs, minilm, dtype=dtype), expected)[0, 1] > near


def test_what_cannot_score_pairs_is_refused(checkpoint_of, folder_of, tmp_path):
    with pytest.raises(BadValue, match="BertModel, which does not score pairs"):
        CrossEncoder(str(checkpoint_of("bert"))).load("cpu")
    with pytest.raises(BadValue, match="of the kind 'dense'"):
        CrossEncoder("minilm").load("cpu")
    with pytest.raises(StoreError, match="no checkpoint there"):
        CrossEncoder(str(tmp_path / "none")).load("cpu")
    with pytest.raises(BadValue, match="reads 80 tokens at most"):
        CrossEncoder(str(folder_of("bert")), max_length=81).load("cpu")


def test_weights_that_are_missing_are_named(folder_of, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in folder_of("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    state = load_file(tmp_path / "model.safetensors")
    save_file(
        {k: v for k, v in state.items() if "pooler" not in k},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(StoreError, match=r"no 'bert.pooler.dense.weight'"):
        CrossEncoder(str(tmp_path), engine="torch").load("cpu")
    with pytest.raises(StoreError, match=r"no 'bert.pooler.dense"):
        CrossEncoder(str(tmp_path), engine="transformers").load("cpu")


def test_a_pipeline_orders_by_the_cross_encoder(folder_of):
    rng = np.random.default_rng(2)
    documents = {
        f"d{n}": {"title": "weir" if n % 2 else "", "text": " ".join(rng.choice(WORDS, 12))}
        for n in range(40)
    }
    queries = {"q1": "river water", "q2": "stone bridge", "q3": "xylophone"}
    corpus, asked = Corpus.of(documents), Queries.of(queries)
    folder = folder_of("bert")
    system = parse_system(f'bm25 >> cross("{folder}", depth=7)')
    assert parse_system(str(system)) == system
    json.dumps(system.describe())
    first = parse_system("bm25").index(corpus).search(asked, 20).to_dict()
    run = system.index(corpus).search(asked, 20).to_dict()
    for name, text in queries.items():
        head, tail = list(first[name])[:7], list(first[name])[7:]
        assert set(list(run[name])[:7]) == set(head)
        assert list(run[name])[7:] == tail
        pairs = [(text, f"{documents[d]['title']} {documents[d]['text']}".strip()) for d in head]
        expected = theirs(folder, pairs, 80)[:, 0] if pairs else []
        np.testing.assert_allclose([run[name][d] for d in head], expected, atol=2e-5)
