"""Learned sparse systems end to end, with random weights: what is found is what a product of matrices gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import SPECIAL, WORDS, configs  # noqa: E402 - behind the skip
from tests.neural.test_sparse import headed, mark_special, mlm, shaken  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.core.run import Run  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.experiment.experiment import Experiment  # noqa: E402 - behind the skip
from weir.plugins.encoders.sparse import LoadedSparse  # noqa: E402 - behind the skip
from weir.settings import MemoryBudget, settings  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip
from weir.systems.protocol import Context  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a small checkpoint for each family."""
    found = {family: tmp_path_factory.mktemp(family) for family in ("splade", "sparta", "unicoil", "deepct")}
    mlm(found["splade"], configs()["bert"])
    shaken(transformers.AutoModel.from_config(configs()["distilbert"])).save_pretrained(found["sparta"])
    headed(found["unicoil"], "tok_proj")
    headed(found["deepct"], "classifier")
    for family in ("sparta", "deepct"):
        (found[family] / "tokenizer.json").write_text((found["splade"] / "tokenizer.json").read_text())
    mark_special(found["sparta"])
    in_pieces(found["deepct"])
    return found


def in_pieces(folder):
    """A tokenizer that cuts words into pieces: flow ##s, bridge, ##s."""
    import tokenizers

    pieces = [w for w in WORDS if w not in ("flows", "under")]
    vocabulary = {w: i for i, w in enumerate([*SPECIAL, *pieces, "flow", "und", "##s", "##er", "##ton"])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.Lowercase()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    inner.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(2)
    documents = {
        f"d{n:02}": {"title": "weir" if n % 3 else "", "text": " ".join(rng.choice(WORDS, n % 17))}
        for n in range(60)
    }
    documents["d99"] = dict(documents["d07"])  # the same text twice: a tie
    asked = {"q1": "river water", "q2": "stone bridge bridge", "q3": "  ", "q4": "xylophone"}
    return Corpus.of(documents), Queries.of(asked)


def named(family, folder, more=""):
    return parse_system(f'{family}("{folder}"{more}, engine="torch")')


def table_of(block, size):
    table = np.zeros((len(block.ptr) - 1, size))
    table[np.repeat(np.arange(len(table)), np.diff(block.ptr)), block.values["term"]] = block.values["weight"]
    return table


@pytest.mark.parametrize("family", ["splade", "sparta", "unicoil"])
def test_the_best_documents_are_those_of_the_product(home, folders, collection, family):
    corpus, queries = collection
    system = named(family, folders[family])
    assert parse_system(str(system)) == system
    json.dumps(system.describe())
    searcher = system.index(corpus, Context(home / "index"))
    loaded = searcher.loaded
    size = loaded.vocabulary
    documents = table_of(loaded.encode(corpus.view("title text")), size)
    asked = table_of(loaded.encode(queries.text, "query"), size)
    asked[2] = 0  # a query without text is not asked
    expected = asked @ documents.T
    run = searcher.search(queries, 1000)
    for q in range(len(queries)):
        rows = slice(run.ptr[q], run.ptr[q + 1])
        assert len(run.doc[rows]) == (expected[q] > 0).sum()
        np.testing.assert_allclose(run.score[rows], expected[q, run.doc[rows]], rtol=1e-6)
        keys = [
            (-s, [-ord(c) for c in corpus.ids[int(d)]])
            for s, d in zip(run.score[rows], run.doc[rows], strict=True)
        ]
        assert keys == sorted(keys)
    assert len(run.top(3).doc) == len(searcher.search(queries, 3).doc)
    np.testing.assert_array_equal(run.top(3).doc, searcher.search(queries, 3).doc)
    with pytest.raises(BadValue, match="k is 0"):
        searcher.search(queries, 0)
    again = system.open(corpus, Context(home / "index"))
    assert again.search(queries, 1000).to_dict() == run.to_dict()


def test_scores_of_candidates_are_the_bits_of_searching(home, folders, collection):
    corpus, queries = collection
    searcher = named("splade", folders["splade"]).index(corpus)
    run = searcher.search(queries, 1000)
    np.testing.assert_array_equal(searcher.scores(queries, run), run.score)
    every = Run.of({q: dict.fromkeys(corpus.ids.strings.tolist(), 1.0) for q in queries.ids.strings.tolist()})
    system = parse_system(f"bm25 >> score({named('splade', folders['splade'])}, depth=7)")
    assert len(system.index(corpus).search(queries, 20).doc) > 0
    assert len(every.doc) == 4 * len(corpus)


@pytest.mark.parametrize("family", ["splade", "unicoil"])
def test_memory_decides_no_byte_of_an_index(home, folders, collection, family, monkeypatch):
    corpus, _ = collection
    system, folder = named(family, folders[family]), home / "index"
    system.index(corpus, Context(folder))
    in_memory = {path.name: path.read_bytes() for path in folder.iterdir()}
    for module in ("plugins.encoders.learned_sparse", "systems.lexical.inversion"):
        monkeypatch.setattr(f"weir.{module}.memory_budget", lambda: MemoryBudget(300, "the test"))
    monkeypatch.setattr("weir.plugins.encoders.learned_sparse._inverted", None)  # it is not made in memory
    system.index(corpus, Context(folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == in_memory
    assert [path.name for path in home.iterdir() if "index" in path.name] == ["index"]


def test_nothing_is_encoded_twice_and_a_killed_run_goes_on(home, folders, collection, monkeypatch):
    corpus, queries = collection
    system = named("splade", folders["splade"])
    monkeypatch.setattr("weir.plugins.encoders.learned_sparse.BATCH_TEXTS", {"cpu": 10})
    whole = LoadedSparse.encode
    seen: list[int] = []

    def counted(self, texts, kind="document"):
        seen.append(len(texts))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return whole(self, texts, kind)

    monkeypatch.setattr(LoadedSparse, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        system.index(corpus, Context(home / "first"))
    assert not (home / "first").exists()
    found = system.index(corpus, Context(home / "first"))
    assert sum(seen) - seen[3] == len({*corpus.view("title text").tolist()})  # the batch it was at, again
    assert found.costs().reused_documents >= 30
    monkeypatch.setattr(LoadedSparse, "encode", whole)
    before = sorted((p, p.stat().st_mtime_ns) for p in (home / "home").rglob("*.bin"))
    other = system.index(corpus, Context(home / "second"))
    assert before == sorted((p, p.stat().st_mtime_ns) for p in (home / "home").rglob("*.bin"))
    assert other.costs().reused_documents == len(corpus)
    assert found.search(queries, 9).to_dict() == other.search(queries, 9).to_dict()
    monkeypatch.setenv("WEIR_HOME", str(home / "elsewhere"))
    settings.cache_clear()
    system.index(corpus, Context(home / "third"))
    for path in (home / "first").glob("*.npy"):
        assert path.read_bytes() == (home / "third" / path.name).read_bytes()


def test_an_index_that_is_damaged_or_of_another_corpus(home, folders, collection):
    corpus, _ = collection
    system = named("unicoil", folders["unicoil"])
    system.index(corpus, Context(home / "index"))
    other = Corpus.of({"x": {"text": "river"}})
    with pytest.raises(BadValue, match="made from another corpus"):
        system.open(other, Context(home / "index"))
    (home / "index" / "0-doc.npy").write_bytes(b"")
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(home / "index"))


def test_documents_and_queries_without_terms(home, folders):
    system = named("splade", folders["splade"], ", threshold=100.0")
    corpus = Corpus.of({"a": {"text": "river"}, "b": {"text": ""}})
    searcher = system.index(corpus, Context(home / "index"))
    queries = Queries.of({"q": "river"})
    assert searcher.search(queries, 5).to_dict() == {"q": {}}
    assert len(named("splade", folders["splade"]).index(Corpus.of({})).search(queries, 5).doc) == 0


def test_deepct_is_bm25_over_words_as_often_as_they_matter(home, folders, collection):
    corpus, _ = collection
    queries = Queries.of({"q1": "river waters", "q2": "flowing under", "q3": "stone"})
    for smoothing, keep in (("sqrt", True), ("none", False)):
        more = f', m=20, smoothing="{smoothing}", keep={keep}, max_length=60'
        system = named("deepct", folders["deepct"], more)
        assert parse_system(str(system)) == system
        json.dumps(system.describe())
        loaded = system.encoder.load("cpu")
        texts = corpus.view("title text").tolist()
        written = [
            " ".join(w for w, n in counts(loaded, text, smoothing, keep).items() for _ in range(n))
            for text in texts
        ]
        named_texts = zip(corpus.ids.strings.tolist(), written, strict=True)
        pseudo = Corpus.of({name: {"text": text} for name, text in named_texts})
        expected = parse_system("bm25(k1=18.0, b=0.7)").index(pseudo).search(queries, 100)
        searcher = system.index(corpus, Context(home / smoothing))
        run = searcher.search(queries, 100)
        assert any(" ".join(["river"] * 2) in text for text in written)
        assert run.to_dict() == expected.to_dict()
        assert len(run.doc) > 10
        np.testing.assert_array_equal(searcher.scores(queries, run), run.score)
        assert system.open(corpus, Context(home / smoothing)).search(queries, 100).to_dict() == run.to_dict()


def counts(loaded, text, smoothing, keep):
    """The words of a text and how often DeepCT's rule lets them occur, word by word."""
    inner = loaded.document.tokenizer.inner
    row = loaded.encode([text]).values
    words: list[str] = []
    weights: list[float] = []
    for number, weight in zip(row["term"].tolist(), row["weight"].tolist(), strict=True):
        piece = inner.id_to_token(number)
        if piece.startswith("##"):
            words[-1] += piece[2:]
        else:
            words.append(piece)
            weights.append(weight)
    found: dict[str, int] = {}
    for word, weight in zip(words, weights, strict=True):
        if word in ("[CLS]", "[SEP]"):
            continue
        much = max(weight, 0.0) ** (0.5 if smoothing == "sqrt" else 1.0)
        times = int(np.round(20 * much))
        if times >= 1 or keep:
            found[word] = max(times, 1, found.get(word, 0))
    return found


def test_deepct_refuses_what_it_cannot_use(home, folders, collection):
    whole_words(folders["deepct"], home / "words", folders["splade"] / "tokenizer.json")
    with pytest.raises(BadValue, match="pieces that begin with ##"):
        named("deepct", home / "words", ", max_length=60").index(collection[0])
    with pytest.raises(StoreError, match=r"no 'classifier.weight'"):
        named("deepct", folders["splade"], ", max_length=60").index(collection[0])
    with pytest.raises(BadValue, match="over one field"):
        parse_system('deepct("x", bm25("lucene-multifield"))')


def whole_words(folder, to, tokenizer):
    """A copy of DeepCT's checkpoint with a tokenizer that knows no pieces."""
    to.mkdir()
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    (to / "tokenizer.json").write_text(tokenizer.read_text())


def test_brook_end_to_end(home, folders):
    families = ("splade", "sparta", "unicoil", "deepct")
    names = tuple(f'{f}("{folders[f]}", max_length=60, engine="torch")' for f in families)
    grid = Experiment(("brook-facts",), names, ("nDCG@10",), k=10)
    rows = grid.execute(home / "results")
    answered = [row.answered for row in rows]
    assert answered[0] == answered[2] == rows[0].queries  # [SEP] is a term there, whatever a query's words
    assert min(answered) > 0
    assert grid.execute(home / "results") == rows
