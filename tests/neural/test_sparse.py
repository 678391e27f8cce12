"""Weights of terms against transformers' own forward pass and sentence-transformers' SparseEncoder."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import SPECIAL, WORDS, configs, write_tokenizer  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.plugins.encoders.sparse import SparseEncoder  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

OWN = ["bert", "bert-tanh", "roberta", "xlm-roberta", "camembert", "mpnet", "electra", "distilbert"]
VOCABULARY = 64


def shaken(model, noise=0.1, seed=11):
    torch.manual_seed(seed)
    with torch.no_grad():  # norms and biases too: fresh ones are all 1 and 0 and would hide mistakes
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return model.eval()


def mlm(folder, config, seed=11):
    torch.manual_seed(seed)
    shaken(transformers.AutoModelForMaskedLM.from_config(config), seed=seed).save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def mlm_of(tmp_path_factory):
    """A function: the folder of a small model with a head for masked words."""
    made = {}

    def make(name, seed=11):
        if (name, seed) not in made:
            made[name, seed] = mlm(tmp_path_factory.mktemp("mlm"), configs()[name], seed)
        return made[name, seed]

    return make


@pytest.fixture(scope="module")
def sparta_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparta")
    shaken(transformers.AutoModel.from_config(configs()["distilbert"])).save_pretrained(folder)
    write_tokenizer(folder)
    mark_special(folder)
    return folder


def mark_special(folder):
    """As the tokenizers on the hub: [CLS] and the others are declared special."""
    path = folder / "tokenizer.json"
    facts = json.loads(path.read_text())
    common = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    facts["added_tokens"] = [
        {"id": i, "content": w, "special": True, **common} for i, w in enumerate(SPECIAL)
    ]
    path.write_text(json.dumps(facts))


def headed(folder, name, size=48, prefix=""):
    """A BERT with a layer that gives each token a number."""
    from safetensors.torch import save_file

    model = shaken(transformers.AutoModel.from_config(configs()["bert"]))
    torch.manual_seed(5)
    state = {f"{prefix}bert.{k}": v.contiguous() for k, v in model.state_dict().items()}
    state |= {f"{prefix}{name}.weight": torch.randn(1, size) * 0.3, f"{prefix}{name}.bias": torch.randn(1)}
    model.config.save_pretrained(folder)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    write_tokenizer(folder)
    return model, state[f"{prefix}{name}.weight"], state[f"{prefix}{name}.bias"]


@pytest.fixture
def texts():
    """Texts of many lengths: an empty one, one that is longer than the limit, a repeated one."""
    rng = np.random.default_rng(5)
    lengths = [3, 0, 1, 200, 40, 3, *rng.integers(1, 60, 24).tolist()]
    return [" ".join(rng.choice(WORDS, n)) for n in lengths]


def tokens_of(folder, texts, limit, special=True):
    import tokenizers

    inner = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    inner.enable_truncation(limit)
    return [e.ids for e in inner.encode_batch(texts, add_special_tokens=special)]


def dense(block, size=VOCABULARY):
    """float32[n, V] of rows of terms."""
    table = np.zeros((len(block.ptr) - 1, size), np.float32)
    text = np.repeat(np.arange(len(table)), np.diff(block.ptr))
    assert (np.diff(text * size + block.values["term"]) > 0).all()  # ascending, and no term twice
    table[text, block.values["term"]] = block.values["weight"]
    return table


def splade(folder, texts, limit, pooling="max", twice=False):
    """SPLADE by transformers' own model, each text alone."""
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    found = []
    for ids in tokens_of(folder, texts, limit):
        with torch.inference_mode():
            x = torch.log1p(torch.relu(model(input_ids=torch.tensor([ids])).logits[0]))
            x = torch.log1p(x) if twice else x
            found.append((x.amax(0) if pooling == "max" else x.sum(0)).numpy())
    return np.stack(found)


def ours(texts, family, folder, kind="document", **settings):
    return SparseEncoder(family, str(folder), **settings).load("cpu").encode(texts, kind)


@pytest.mark.parametrize("name", OWN)
def test_every_head_equals_transformers_own(mlm_of, texts, name):
    folder = mlm_of(name)
    expected = splade(folder, texts, 60)
    assert 0.1 < (expected > 0).mean() < 1.0
    for engine in ("torch", "transformers"):
        found = ours(texts, "splade", folder, engine=engine, max_length=60)
        np.testing.assert_allclose(dense(found), expected, atol=2e-5)


@pytest.mark.parametrize("engine", ["torch", "transformers"])
@pytest.mark.parametrize(
    ("pooling", "activation"), [("sum", "relu"), ("max", "log1p_relu"), ("sum", "log1p_relu")]
)
def test_other_poolings(mlm_of, texts, engine, pooling, activation):
    folder = mlm_of("distilbert")
    expected = splade(folder, texts, 60, pooling, activation == "log1p_relu")
    found = ours(
        texts, "splade", folder, engine=engine, pooling=pooling, activation=activation, max_length=60
    )
    np.testing.assert_allclose(dense(found), expected, atol=5e-5)


@pytest.mark.parametrize("budget", [1, 100, 100_000])
def test_weights_do_not_depend_on_the_batches(mlm_of, texts, budget, monkeypatch):
    folder = mlm_of("bert")
    expected = dense(ours(texts, "splade", folder, engine="torch"))
    monkeypatch.setattr(
        "weir.plugins.encoders.torch_engine.BLOCK_TOKENS", 7
    )  # a text's tokens fall into several pieces
    found = ours(texts, "splade", folder, engine="torch", batch_tokens=budget)
    np.testing.assert_allclose(dense(found), expected, atol=2e-5)
    turned = ours(texts[::-1], "splade", folder, engine="torch", batch_tokens=budget)
    np.testing.assert_allclose(dense(turned)[::-1], expected, atol=2e-5)
    summed = ours(texts, "splade", folder, engine="torch", batch_tokens=budget, pooling="sum")
    np.testing.assert_allclose(dense(summed), splade(folder, texts, 80, "sum"), atol=1e-4)


@pytest.mark.parametrize(("dtype", "near"), [("bf16", 0.99), ("fp16", 0.999)])
def test_lower_precision_stays_near(mlm_of, texts, dtype, near):
    expected = dense(ours(texts, "splade", mlm_of("bert"), engine="torch"))
    found = dense(ours(texts, "splade", mlm_of("bert"), dtype=dtype))
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > near


def test_the_heaviest_terms_above_a_threshold(mlm_of, texts):
    folder = mlm_of("bert")
    whole = dense(ours(texts, "splade", folder, engine="torch"))
    few = dense(ours(texts, "splade", folder, engine="torch", top=5, threshold=0.3))
    for row, all_of_it in zip(few, whole, strict=True):
        best = [t for t in np.argsort(-all_of_it, kind="stable")[:5] if all_of_it[t] > np.float32(0.3)]
        assert np.flatnonzero(row).tolist() == sorted(best)
        np.testing.assert_allclose(row[best], all_of_it[best], atol=1e-6)
    query = dense(ours(texts, "splade", folder, "query", engine="torch", top_query=2))
    assert ((query > 0).sum(1) <= 2).all()


def test_pyserinis_impacts(mlm_of, texts):
    plain = dense(ours(texts, "splade", mlm_of("bert"), engine="torch"))
    found = dense(ours(texts, "splade", mlm_of("bert"), engine="torch", quantised=True))
    np.testing.assert_array_equal(found, np.rint(plain.astype(np.float64) / 5 * 256))


def test_sparta_weighs_as_beir_defines_it(sparta_model, texts):
    model = transformers.AutoModel.from_pretrained(sparta_model).eval()
    words = model.embeddings.word_embeddings.weight.detach().clone()
    words[: len(SPECIAL)] = 0
    expected = []
    for ids in tokens_of(sparta_model, texts, 60):
        with torch.inference_mode():
            states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            expected.append(torch.log1p(torch.relu((words @ states.T).amax(1))).numpy())
    expected = np.stack(expected)
    for engine in ("torch", "transformers"):
        found = dense(ours(texts, "sparta", sparta_model, engine=engine, max_length=60))
        np.testing.assert_allclose(found, expected, atol=2e-5)
        assert not found[:, : len(SPECIAL)].any()
    cut = dense(ours(texts, "sparta", sparta_model, engine="torch", max_length=60, top=3))
    assert ((cut > 0).sum(1) == np.minimum((expected > 0).sum(1), 3)).all()
    counted = dense(ours(["cat cat dog", ""], "sparta", sparta_model, "query", engine="torch"))
    ids = tokens_of(sparta_model, ["cat dog"], 60, special=False)[0]
    assert counted[0, ids].tolist() == [2.0, 1.0]  # BEIR adds up a term's row for each token
    assert counted.sum() == 3.0


@pytest.mark.parametrize("prefix", ["", "coil_encoder."])
def test_unicoil_weighs_as_pyserini_defines_it(tmp_path, texts, prefix):
    model, weight, bias = headed(tmp_path, "tok_proj", prefix=prefix)
    for kind, add in (("document", False), ("query", True)):
        found = dense(ours(texts, "unicoil", tmp_path, kind, engine="torch", max_length=60))
        for row, ids in zip(found, tokens_of(tmp_path, texts, 60), strict=True):
            with torch.inference_mode():
                states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
                numbers = torch.relu(states @ weight[0] + bias).numpy()
            expected = np.zeros(VOCABULARY)
            for token, number in zip(ids[1:], numbers[1:], strict=True):  # without [CLS], with [SEP]
                expected[token] = expected[token] + number if add else max(expected[token], number)
            np.testing.assert_allclose(row, expected, atol=5e-5)


def test_queries_by_their_tokens_or_another_model(mlm_of, texts):
    folder = mlm_of("distilbert")
    by_token = dense(
        ours(["cat cat river", "", "xylophone"], "splade", folder, "query", query="tokens", engine="torch")
    )
    assert by_token.sum() == 3.0  # two words, and one that is unknown
    assert set(np.flatnonzero(by_token[0])) == set(tokens_of(folder, ["cat river"], 60, special=False)[0])
    (folder / "idf.json").write_text(json.dumps({"cat": 2.5, "river": 0.0, "of another vocabulary": 3.0}))
    weighed = dense(ours(["cat cat river dog"], "splade", folder, "query", query="idf", engine="torch"))
    assert weighed[0].sum() == 2.5
    (folder / "idf.json").unlink()
    other = mlm_of("bert", seed=3)
    encoder = SparseEncoder("splade", str(folder), query=str(other), engine="torch", max_length=60).load(
        "cpu"
    )
    np.testing.assert_allclose(dense(encoder.encode(texts)), splade(folder, texts, 60), atol=2e-5)
    np.testing.assert_allclose(dense(encoder.encode(texts, "query")), splade(other, texts, 60), atol=2e-5)
    with pytest.raises(BadValue, match=r"no idf.json there"):
        SparseEncoder("splade", str(folder), query="idf", engine="torch").load("cpu")


def test_what_weighs_no_terms_is_refused(checkpoint_of, mlm_of, tmp_path):
    from safetensors.torch import load_file, save_file

    with pytest.raises(BadValue, match="BertModel, which has no head for masked words"):
        SparseEncoder("splade", str(checkpoint_of("bert")), engine="torch").load("cpu")
    with pytest.raises(BadValue, match="of the kind 'dense'"):
        SparseEncoder("splade", "minilm").load("cpu")
    with pytest.raises(BadValue, match="reads 80 tokens at most"):
        SparseEncoder("splade", str(mlm_of("bert")), max_length=81).load("cpu")
    with pytest.raises(StoreError, match=r"no 'tok_proj.weight'"):
        SparseEncoder("unicoil", str(mlm_of("bert")), engine="torch").load("cpu")
    for path in mlm_of("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    state = load_file(tmp_path / "model.safetensors")
    some = {k: v for k, v in state.items() if "transform" not in k}
    save_file(some, tmp_path / "model.safetensors", {"format": "pt"})
    for engine in ("torch", "transformers"):
        with pytest.raises(StoreError, match=r"no 'cls.predictions.transform"):
            SparseEncoder("splade", str(tmp_path), engine=engine).load("cpu")


def test_weights_that_are_not_numbers_name_the_text(mlm_of, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in mlm_of("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    state = load_file(tmp_path / "model.safetensors")
    state["cls.predictions.bias"][7] = float("nan")
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    for engine in ("torch", "transformers"):
        with pytest.raises(BadValue, match="a weight of text 1 is not finite"):
            ours(["cat", "dog"], "splade", tmp_path, engine=engine)


def saved_sparse_encoder(folder, mlm_folder, query=None, **pooling):
    """A checkpoint as sentence-transformers writes it; query: "static", a folder, or None for one model."""
    st = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers, a peer")
    if not hasattr(st, "SparseEncoder"):
        pytest.skip("needs sentence-transformers 5 or later")
    from sentence_transformers.models import Router
    from sentence_transformers.sparse_encoder.models import (
        MLMTransformer,
        SparseStaticEmbedding,
        SpladePooling,
    )

    def model(path):
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(path / "tokenizer.json"),
            pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
            model_max_length=60,
        )  # fmt: skip
        fast.save_pretrained(path)
        return [MLMTransformer(str(path)), SpladePooling(**pooling)], fast

    document, fast = model(mlm_folder)
    if query is None:
        made = st.SparseEncoder(modules=document, device="cpu")
    else:
        asked = model(query)[0]
        if query == mlm_folder:
            rng = np.random.default_rng(2)
            weight = torch.from_numpy(rng.random(len(fast.get_vocab())).astype(np.float32))
            asked = [SparseStaticEmbedding(tokenizer=fast, weight=weight)]
        made = st.SparseEncoder(
            modules=[Router.for_query_document(query_modules=asked, document_modules=document)], device="cpu"
        )
    made.save_pretrained(str(folder))
    return st.SparseEncoder(str(folder), device="cpu")


@pytest.mark.parametrize("kind", ["one model", "static queries", "two models"])
def test_sentence_transformers_own_checkpoints_and_weights(tmp_path, texts, kind):
    document = mlm(tmp_path / "document", configs()["bert"])
    query = {"one model": None, "static queries": document}.get(kind, tmp_path / "query")
    if kind == "two models":
        mlm(query, configs()["distilbert"], 5)
    activation = "log1p_relu" if kind == "static queries" else "relu"
    theirs = saved_sparse_encoder(tmp_path / "saved", document, query, activation_function=activation)
    loaded = SparseEncoder("splade", str(tmp_path / "saved"), engine="torch").load("cpu")
    for which, encode in (("document", theirs.encode_document), ("query", theirs.encode_query)):
        given = texts if which == "document" else texts[:8]
        expected = encode(given, convert_to_sparse_tensor=False).cpu().numpy()
        found = dense(loaded.encode(given, which), expected.shape[1])
        assert (expected > 0).any()
        np.testing.assert_allclose(found, expected, atol=2e-5)
