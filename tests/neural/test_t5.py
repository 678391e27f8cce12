"""T5 against transformers' own forward pass, and monoT5 in pipelines."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import WORDS  # noqa: E402 - behind the skip
from tests.neural.t5_small import PIECES, write_pieces, write_t5  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.errors import BadRanking, BadValue, StoreError  # noqa: E402 - behind the skip
from weir.models.checkpoints import read_checkpoint  # noqa: E402 - behind the skip
from weir.models.hardware import ComputePlace  # noqa: E402 - behind the skip
from weir.models.tokens import Tokens, load_tokenizer  # noqa: E402 - behind the skip
from weir.plugins.encoders.t5 import (  # noqa: E402 - behind the skip
    MonoT5,
    _Decoder,
    load_t5,
)
from weir.settings import settings  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

KINDS = ["t5", "t5-v1.1", "mt5"]


@pytest.fixture(autouse=True)
def one_thread(home, monkeypatch):
    """Models of toys' size gain nothing from several threads, and lose much where other work goes on."""
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings.cache_clear()


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    made = {}

    def make(name):
        if name not in made:
            made[name] = write_t5(tmp_path_factory.mktemp(name), name)
        return made[name]

    return make


@pytest.fixture(scope="module")
def theirs_of(folder_of):
    return lambda name: transformers.AutoModelForSeq2SeqLM.from_pretrained(folder_of(name)).eval()


@pytest.fixture
def pairs():
    """Pairs of many lengths: an empty query, an empty document, one longer than the limit, two that are equal."""
    rng = np.random.default_rng(5)
    lengths = [(3, 20), (0, 9), (5, 0), (4, 400), (0, 0), *rng.integers(1, 60, (25, 2)).tolist()]
    found = [tuple(" ".join(rng.choice(WORDS, n)) for n in pair) for pair in lengths]
    return [*found, found[0]]


def ours(pairs, folder, **settings):
    return np.concatenate(list(MonoT5(str(folder), **settings).load("cpu").scores(iter(pairs))))


def of_transformers(model, folder, pairs, limit, words=("▁false", "▁true")):
    """log p(true) of each pair alone, by transformers, in double; the document cut so that the rest remains."""
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    answers = tokenizer.convert_tokens_to_ids(list(words))
    found = []
    for query, document in pairs:
        start = tokenizer(f"Query: {query} Document: {document}", add_special_tokens=False)["input_ids"]
        tail = tokenizer("Relevant:", add_special_tokens=False)["input_ids"] + [model.config.eos_token_id]
        ids = torch.tensor([start[: limit - len(tail)] + tail])
        with torch.inference_mode():
            logits = model(input_ids=ids, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits
        found.append(torch.log_softmax(logits[0, 0, answers].double(), 0)[1].item())
    return np.array(found)


@pytest.mark.parametrize("name", KINDS)
def test_scores_equal_transformers_own_forward_pass(folder_of, theirs_of, pairs, name):
    expected = of_transformers(theirs_of(name), folder_of(name), pairs, 128)
    found = ours(pairs, folder_of(name), max_length=128)
    assert found.dtype == np.float32
    assert expected.std() > 1e-2
    np.testing.assert_allclose(found, expected, atol=1e-4 if name != "t5" else 1e-5)
    assert found[0] == pytest.approx(found[-1], abs=1e-6)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("texts", [1, 3])
def test_every_word_of_the_decoder_equals_transformers_own(folder_of, theirs_of, name, texts):
    """Questions given word by word to the decoder with its memory, some of them left out on the way."""
    lengths, words, n = np.array([200, 3, 31])[:texts], 40, 5
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rng = np.random.default_rng(4)
    batch = Tokens(rng.integers(2, 80, ptr[-1]).astype(np.int32), ptr)
    given = rng.integers(2, 80, (texts * n, words))
    given[:, 0] = 0
    engine, model = load_t5(read_checkpoint(folder_of(name)), ComputePlace("cpu", "fp32")), theirs_of(name)
    rows, found = np.arange(texts * n), []
    with torch.inference_mode():
        decoder = _Decoder.of(engine, batch)
        found.append(decoder.step(np.zeros(texts, np.int64)).repeat_interleave(n, 0))
        decoder = decoder.widened(n)
        for step in range(1, words):
            if step == 13:
                rows = np.sort(rng.choice(len(rows), texts * 3, replace=False))
                decoder, found = decoder.with_rows(rows), [f[torch.from_numpy(rows)] for f in found]
            found.append(decoder.step(given[rows, step]))
        near = torch.stack(found, 1)
        for i, row in enumerate(rows.tolist()):
            ids = torch.from_numpy(batch.ids[ptr[row // n] : ptr[row // n + 1]].astype(np.int64))[None]
            expected = model(input_ids=ids, decoder_input_ids=torch.from_numpy(given[None, row])).logits
            np.testing.assert_allclose(near[i], expected[0], atol=2e-5 if name == "t5" else 1e-3)
            assert expected.std() > 0.5


@pytest.mark.parametrize("budget", [1, 100, 100_000])
def test_scores_do_not_depend_on_the_batches(folder_of, pairs, budget):
    expected = ours(pairs, folder_of("t5"), batch_tokens=1000)
    np.testing.assert_allclose(ours(pairs, folder_of("t5"), batch_tokens=budget), expected, atol=5e-6)
    turned = ours(pairs[::-1], folder_of("t5"), batch_tokens=budget)[::-1]
    np.testing.assert_allclose(turned, expected, atol=5e-6)


def test_a_long_document_is_cut_and_the_question_stays(folder_of):
    prompts = MonoT5(str(folder_of("t5")), max_length=16).load("cpu").prompts
    pairs = [("river water", "stone " * 100), ("river " * 50, "stone"), ("a", "the cat"), ("", "")]
    tokens = prompts(pairs)
    shown = [
        [prompts.inner.id_to_token(i) for i in tokens.ids[a:b].tolist()]
        for a, b in zip(tokens.ptr[:-1], tokens.ptr[1:], strict=True)
    ]
    assert tokens.lengths.tolist() == [16, 16, 10, 7]
    assert all(text[-3:] == ["▁Relevant", ":", "</s>"] for text in shown)
    assert shown[0][:6] == ["▁Query", ":", "▁river", "▁water", "▁Document", ":"]
    assert shown[0][6:13] == ["▁stone"] * 7
    assert shown[1][:13] == ["▁Query", ":", *["▁river"] * 11]


def test_scores_near_zero_are_told_apart(folder_of, pairs):
    loaded = MonoT5(str(folder_of("t5"))).load("cpu")
    plain = np.concatenate(list(loaded.scores(iter(pairs))))
    turned = loaded.answers[::-1]  # random weights happen to prefer the other word
    head = loaded.engine.module.lm_head
    head.weight = torch.nn.Parameter(60 * head.weight.detach())
    found = np.concatenate(list(replace(loaded, answers=turned).scores(iter(pairs))))
    assert found.max() > -1e-9  # which a softmax in float32 rounds to 1
    assert found.max() < 0
    assert np.array_equal(np.argsort(found[:-1]), np.argsort(-plain[:-1]))
    assert len(set(found.tolist())) >= len(pairs) - 1


def test_lower_precision_stays_near(folder_of, pairs):
    expected = ours(pairs, folder_of("t5"))
    assert np.corrcoef(ours(pairs, folder_of("t5"), dtype="bf16"), expected)[0, 1] > 0.99


def test_words_for_yes_and_no_are_those_the_checkpoint_was_taught(folder_of, theirs_of, pairs):
    given = {"token_false": "▁no", "token_true": "▁yes"}
    expected = of_transformers(theirs_of("t5"), folder_of("t5"), pairs, 512, ("▁no", "▁yes"))
    np.testing.assert_allclose(ours(pairs, folder_of("t5"), **given), expected, atol=1e-5)
    with pytest.raises(BadValue, match="has no '▁não'; give the words it was taught"):
        MonoT5(str(folder_of("t5")), token_false="▁não", token_true="▁sim").load("cpu")


def test_a_vocabulary_without_true_is_refused(folder_of, tmp_path):
    for path in folder_of("t5").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write_pieces(tmp_path, [p for p in PIECES if p != "▁true"])
    with pytest.raises(BadValue, match=r"the vocabulary of .* has no '▁true'"):
        MonoT5(str(tmp_path)).load("cpu")


def test_what_is_no_t5_is_refused(checkpoint_of, folder_of, tmp_path):
    with pytest.raises(BadValue, match="is a BertModel; expected a T5"):
        MonoT5(str(checkpoint_of("bert"))).load("cpu")
    with pytest.raises(BadValue, match="of the kind 'cross', and no T5 such as"):
        MonoT5("minilm-cross").load("cpu")
    with pytest.raises(BadValue, match="fp32 or bf16"):
        load_t5(read_checkpoint(folder_of("t5")), ComputePlace("cpu", "fp16"))
    facts = json.loads((folder_of("t5") / "config.json").read_text())
    for change, message in [
        ({"architectures": ["T5EncoderModel"]}, "is a T5EncoderModel"),
    ]:
        (tmp_path / "config.json").write_text(json.dumps(facts | change))
        with pytest.raises(BadValue, match=message):
            MonoT5(str(tmp_path)).describe()


def test_weights_that_are_missing_or_no_numbers_are_named(folder_of, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in folder_of("t5").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    state = load_file(tmp_path / "model.safetensors")
    name = "decoder.block.1.layer.1.EncDecAttention.k.weight"
    less = {k: v for k, v in state.items() if k != name}
    save_file(less, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(StoreError, match=f"no '{name}'"):
        MonoT5(str(tmp_path)).load("cpu")
    broken = state | {name: state[name] * float("nan")}
    save_file(broken, tmp_path / "model.safetensors", {"format": "pt"})
    system = parse_system(f'bm25 >> monot5("{tmp_path}")').index(Corpus.of({"d1": "river water"}))
    with pytest.raises(BadRanking, match="the score of query 'q1', document 'd1' is nan"):
        system.search(Queries.of({"q1": "river"}), 3)


def test_without_memory_the_batch_is_halved(folder_of, pairs):
    loaded = MonoT5(str(folder_of("t5")), batch_tokens=4000).load("cpu")
    sizes = []

    class Small:
        """The engine on a device that holds the tokens of one long text, or of a few short ones."""

        place = loaded.engine.place

        def first_words(self, batch, wanted):
            sizes.append(len(batch.ids))
            if len(batch.ids) > 520:
                raise MemoryError
            return loaded.engine.first_words(batch, wanted)

    found = np.concatenate(list(replace(loaded, engine=Small()).scores(iter(pairs))))
    assert max(sizes) > 520 > min(sizes)
    np.testing.assert_allclose(found, ours(pairs, folder_of("t5")), atol=5e-6)


def test_a_pipeline_orders_by_monot5_and_keeps_its_scores(folder_of, theirs_of, home):
    rng = np.random.default_rng(2)
    documents = {
        f"d{n}": {"title": "weir" if n % 2 else "", "text": " ".join(rng.choice(WORDS, 12))}
        for n in range(40)
    }
    queries = {"q1": "river water", "q2": "stone bridge", "q3": "xylophone"}
    corpus, asked = Corpus.of(documents), Queries.of(queries)
    folder = folder_of("t5")
    system = parse_system(f'bm25 >> monot5("{folder}", depth=7)')
    assert parse_system(str(system)) == system
    json.dumps(system.describe())
    first = parse_system("bm25").index(corpus).search(asked, 20).to_dict()
    run = system.index(corpus).search(asked, 20).to_dict()
    for name, text in queries.items():
        head, tail = list(first[name])[:7], list(first[name])[7:]
        assert set(list(run[name])[:7]) == set(head)
        assert list(run[name])[7:] == tail
        pairs = [(text, f"{documents[d]['title']} {documents[d]['text']}".strip()) for d in head]
        expected = of_transformers(theirs_of("t5"), folder, pairs, 512) if pairs else []
        np.testing.assert_allclose([run[name][d] for d in head], expected, atol=1e-5)
    searcher = system.index(corpus)
    assert searcher.search(asked, 20).to_dict() == run
    assert (searcher.costs().requested_pairs, searcher.costs().computed_pairs) == (14, 0)
    assert len(list((home / "scores").iterdir())) == 1


def test_a_sentencepiece_model_is_cut_as_sentencepiece_cuts_it(folder_of, tmp_path):
    """The older checkpoints bring spiece.model and no tokenizer.json."""
    library = pytest.importorskip("sentencepiece", reason="needs the `neural` extra (sentencepiece)")
    pytest.importorskip("google.protobuf", reason="needs the `neural` extra (protobuf)")
    rng = np.random.default_rng(6)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(1, 30, 300)]
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    (tmp_path / "texts").write_text("\n".join(texts))
    library.SentencePieceTrainer.train(
        input=str(tmp_path / "texts"), model_prefix=str(tmp_path / "m"), vocab_size=36, minloglevel=2, **ids
    )
    (tmp_path / "m.model").rename(tmp_path / "spiece.model")
    (tmp_path / "config.json").write_bytes((folder_of("t5") / "config.json").read_bytes())
    theirs = library.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    found = load_tokenizer(tmp_path, 512)
    for text in [*texts[:50], "", "  the   cat ", "Relevant:", "a\nweir"]:
        assert found([text]).ids.tolist() == [*theirs.encode(text), 1]
    (tmp_path / "spiece.model").write_bytes(b"\x00\xff" * 9)
    with pytest.raises(StoreError, match="the tokenizer cannot be read"):
        load_tokenizer(tmp_path, 512)
