"""Vectors of tokens against transformers' own forward pass with ColBERT's rules written out."""

from __future__ import annotations

import json
import string

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural import late_checkpoint  # noqa: E402 - behind the skip
from tests.neural.conftest import WORDS, built, padded_attention, states  # noqa: E402 - behind the skip
from tests.neural.late_checkpoint import NUMBER, D, saved  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.models.checkpoints import read_checkpoint  # noqa: E402 - behind the skip
from weir.models.tokens import Tokens  # noqa: E402 - behind the skip
from weir.models.weights import read_weights  # noqa: E402 - behind the skip
from weir.plugins.encoders import torch_engine as module  # noqa: E402 - behind the skip
from weir.plugins.encoders.late import LateEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.torch_engine import cuda_attention  # noqa: E402 - behind the skip

colbert, made, one_thread = (getattr(late_checkpoint, name) for name in ("colbert", "made", "one_thread"))
pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.fixture
def texts():
    """Texts of many lengths with punctuation: an empty one, one of punctuation alone, some beyond the limits."""
    rng = np.random.default_rng(5)
    words = [*WORDS, ",", ".", "!", "?"]
    return ["", "...", *(" ".join(rng.choice(words, n)) for n in rng.integers(1, 60, 30))]


def plainly(model, matrix, text, kind, length, attend=False, fill=True, skip=True):
    """ColBERT's rules, one text at a time: the vectors of its tokens."""
    words = [w for w in text.lower().replace("...", ". . .").split()]
    ids = [NUMBER[w] for w in words][: length - 3]
    marker = "[unused0]" if kind == "query" else "[unused1]"
    ids = [NUMBER["[CLS]"], NUMBER[marker], *ids, NUMBER["[SEP]"]]
    mask = [1] * len(ids)
    if kind == "query" and fill:
        mask += [int(attend)] * (length - len(ids))
        ids += [NUMBER["[MASK]"]] * (length - len(ids))
    with torch.inference_mode():
        states = model(torch.tensor([ids]), attention_mask=torch.tensor([mask])).last_hidden_state[0]
        vectors = torch.nn.functional.normalize(states @ matrix.T, dim=1).numpy()
    if kind == "document" and skip:
        left = {NUMBER[c] for c in string.punctuation}
        vectors = vectors[[i not in left for i in ids]]
    return vectors


def compare(ragged, expected, atol=3e-6):
    assert np.diff(ragged.ptr).tolist() == [len(v) for v in expected]
    assert ragged.values.dtype == np.float32
    np.testing.assert_allclose(ragged.values, np.concatenate(expected), atol=atol)


@pytest.mark.parametrize("engine", ["torch", "transformers"])
@pytest.mark.parametrize("attend", [False, True])
def test_vectors_equal_transformers_own_forward_pass(colbert, texts, engine, attend):
    folder, model, matrix = colbert(attend_to_mask_tokens=attend)
    loaded = LateEncoder(str(folder), engine=engine).load("cpu")
    assert loaded.dimensions == D
    compare(loaded.encode(texts), [plainly(model, matrix, t, "document", 40) for t in texts])
    compare(loaded.encode(texts, "query"), [plainly(model, matrix, t, "query", 12, attend) for t in texts])


def test_the_mask_tokens_that_fill_a_query_are_not_seen_by_the_others(colbert):
    folder, model, matrix = colbert()
    short = LateEncoder(str(folder), engine="torch").load("cpu").encode(["red cat"], "query").values
    long = LateEncoder(str(folder), engine="torch", max_query=30).load("cpu").encode(["red cat"], "query")
    assert len(long.values) == 30
    np.testing.assert_allclose(long.values[:5], short[:5], atol=3e-6)
    seen = plainly(model, matrix, "red cat", "query", 12, attend=True)
    assert np.abs(seen[:5] - short[:5]).max() > 1e-3


@pytest.mark.parametrize("engine", ["torch", "transformers"])
def test_alone_or_in_a_batch(colbert, texts, engine):
    folder, _, _ = colbert()
    loaded = LateEncoder(str(folder), engine=engine, batch_tokens=200).load("cpu")
    for kind in ("document", "query"):
        together = loaded.encode(texts, kind)
        for i, text in enumerate(texts):
            alone = loaded.encode([text], kind).values
            np.testing.assert_allclose(
                alone, together.values[together.ptr[i] : together.ptr[i + 1]], atol=3e-6
            )


def test_settings_of_the_checkpoint_and_of_the_user(colbert, texts):
    folder, model, matrix = colbert(mask_punctuation=False, query_maxlen=9, doc_maxlen=20)
    loaded = LateEncoder(str(folder), engine="torch").load("cpu")
    compare(loaded.encode(texts), [plainly(model, matrix, t, "document", 20, skip=False) for t in texts])
    compare(loaded.encode(texts, "query"), [plainly(model, matrix, t, "query", 9) for t in texts])
    told = loaded.encoder.describe("cpu")
    assert (told["max_query"], told["max_length"], loaded.dimensions) == (9, 20, D)
    assert told["filled"] == "[MASK] to 9, not attended"
    own = LateEncoder(str(folder), engine="torch", max_length=33, max_query=7).load("cpu")
    compare(own.encode(texts), [plainly(model, matrix, t, "document", 33, skip=False) for t in texts])
    with pytest.raises(BadValue, match="reads 80 tokens at most, not 81"):
        LateEncoder(str(folder), max_length=81).describe("cpu")


def test_nothing_to_encode(colbert):
    folder, _, _ = colbert()
    found = LateEncoder(str(folder), engine="torch").load("cpu").encode([])
    assert found.ptr.tolist() == [0]
    assert found.values.shape == (0, D)


def test_vectors_that_are_no_numbers_are_refused_by_their_text(colbert):
    folder, _, _ = colbert()
    load, save = late_checkpoint.load, late_checkpoint.save
    state = load(folder / "model.safetensors")
    state["bert.embeddings.word_embeddings.weight"][NUMBER["cat"]] = float("nan")
    save(state, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = LateEncoder(str(folder), engine="torch").load("cpu")
    assert len(loaded.encode(["dog"]).values) == 4
    with pytest.raises(BadValue, match="a vector of text 2 is not finite"):
        loaded.encode(["dog", "cat dog", "fish"])


def test_what_is_no_late_interaction_is_refused(colbert, tmp_path):
    from tests.neural.conftest import sentence_transformer

    with pytest.raises(BadValue, match="of the kind 'dense', which gives no vectors of tokens"):
        LateEncoder("contriever").describe("cpu")
    plain = tmp_path / "plain"
    saved(plain)
    with pytest.raises(BadValue, match=r"is a BertModel, which gives no vectors of tokens"):
        LateEncoder(str(plain)).describe("cpu")
    with pytest.raises(BadValue, match=r"pools the vectors of tokens into one; write dense"):
        LateEncoder(str(sentence_transformer(plain))).describe("cpu")
    folder, _, _ = colbert(query_token_id="[Q]")
    with pytest.raises(BadValue, match=r"tokenizer does not know '\[Q\]'"):
        LateEncoder(str(folder), engine="torch").load("cpu")
    folder, _, _ = colbert()
    save = late_checkpoint.save
    load = late_checkpoint.load
    state = load(folder / "model.safetensors")
    wrong = state | {"linear.weight": torch.ones(D, 40)}
    save(wrong, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StoreError, match=r"a layer of shape \(16, 40\) stands after states of 48 numbers"):
        LateEncoder(str(folder), engine="torch").load("cpu")
    state.pop("linear.weight")
    save(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StoreError, match=r"no 'linear\.weight'"):
        LateEncoder(str(folder), engine="torch").load("cpu")
    (folder / "artifact.metadata").write_text("{")
    with pytest.raises(StoreError, match=r"artifact\.metadata: found no valid JSON"):
        LateEncoder(str(folder), engine="torch").load("cpu")
    for wrong in ({"dtype": "fp8"}, {"engine": "fast"}, {"max_query": 1}, {"model": " "}):
        with pytest.raises(BadValue):
            LateEncoder(**({"model": "colbert"} | wrong))


def dense_module(folder, matrix, bias=None, kind="pylate.models.Dense.Dense", **facts):
    """A Dense behind the transformer, as PyLate and sentence-transformers write it."""
    save = late_checkpoint.save
    steps = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    steps.append({"idx": 1, "name": "1", "path": "1_Dense", "type": kind})
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "1_Dense").mkdir()
    told = {"in_features": matrix.shape[1], "out_features": len(matrix), "bias": bias is not None}
    told |= {"activation_function": "torch.nn.modules.linear.Identity"} | facts
    (folder / "1_Dense" / "config.json").write_text(json.dumps(told))
    state = {"linear.weight": matrix} | ({} if bias is None else {"linear.bias": bias})
    save(state, folder / "1_Dense" / "model.safetensors")
    return folder


def pylate_folder(folder, **settings):
    model, matrix = saved(folder)
    dense_module(folder, matrix)
    facts = {"model_type": "ColBERT", "query_prefix": "[unused0]", "document_prefix": "[unused1]"}
    facts |= {"query_length": 12, "document_length": 40, "attend_to_expansion_tokens": False}
    facts |= {"do_query_expansion": True, "skiplist_words": list(string.punctuation)}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(facts | settings))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 39}))
    return model, matrix


def test_the_layout_of_pylate(tmp_path, texts):
    model, matrix = pylate_folder(tmp_path)
    loaded = LateEncoder(str(tmp_path), engine="torch").load("cpu")
    compare(loaded.encode(texts), [plainly(model, matrix, t, "document", 40) for t in texts])
    compare(loaded.encode(texts, "query"), [plainly(model, matrix, t, "query", 12) for t in texts])


def test_queries_that_are_not_filled_up(tmp_path, texts):
    model, matrix = pylate_folder(tmp_path, do_query_expansion=False)
    loaded = LateEncoder(str(tmp_path), engine="torch").load("cpu")
    expected = [plainly(model, matrix, t, "query", 12, fill=False) for t in texts]
    compare(loaded.encode(texts, "query"), expected)
    assert loaded.encoder.describe("cpu")["filled"] == "no"


@pytest.mark.parametrize("layout", ["colbert", "pylate", "attended"])
def test_vectors_equal_those_of_sentence_transformers(colbert, tmp_path, texts, layout):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    if not hasattr(library, "MultiVectorEncoder"):
        pytest.skip("this sentence-transformers has no MultiVectorEncoder")
    folder = tmp_path / "pylate"
    if layout == "pylate":
        folder.mkdir()
        pylate_folder(folder)
    else:
        folder, _, _ = colbert(attend_to_mask_tokens=layout == "attended")
    theirs = library.MultiVectorEncoder(str(folder), device="cpu")
    own = tmp_path / "saved"
    theirs.save_pretrained(str(own))
    # Theirs sees no difference between a blank text and none, and so does Weir's; both keep the markers.
    queries, documents = theirs.encode_query(texts), theirs.encode_document(texts)
    for at in (folder, own):  # as it was, and in the layout that they write
        loaded = LateEncoder(str(at), engine="torch").load("cpu")
        compare(loaded.encode(texts, "query"), queries)
        compare(loaded.encode(texts), documents)


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_tokens_that_are_not_seen_on_every_path(checkpoint_of, batch, name, monkeypatch):
    """The processor's attention, the padded one that a GPU takes, and transformers': no state looks at them."""
    checkpoint = read_checkpoint(checkpoint_of(name))
    seen = np.maximum(batch.lengths - np.arange(len(batch)), 1)
    part = Tokens(batch.ids, batch.ptr, visible=seen)
    engine = module.torch_engine(read_weights(checkpoint), "cpu", "fp32")
    found = engine.hidden(part).numpy().copy()
    assert np.abs(engine.hidden(batch).numpy() - found).max() > 1e-3
    expected = states(built(checkpoint, "transformers"), part)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.array_equal(part.take(np.array([2, 0])).visible, seen[[2, 0]])
    monkeypatch.setattr(
        module, "cpu_attention", lambda b, heads, bias: padded_attention(b, heads, bias, cuda_attention)
    )
    np.testing.assert_allclose(engine.hidden(part).numpy(), expected, atol=2e-5)
