"""Systems that compose with >>, and functions and objects as systems, re-rankers and encoders."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import write_collection
from weir.core.corpus import Corpus, Queries
from weir.errors import BadRanking, BadValue, PluginError, StoreError
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.settings import settings
from weir.systems import Context, parse_system

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*its vectors are compared by cosine:weir.errors.RankingWarning"
)

CORPUS = Corpus.of(
    {"d1": "a dam", "d2": {"title": "weir", "text": "in a river"}, "d3": "a meadow with a weir"}
)
QUERIES = Queries.of({"q1": "weir", "q2": "meadow"})
LONGEST = {"d1": 5, "d2": 15, "d3": 20}


def longest(queries, k):
    """The longest documents, as identifiers."""
    assert all(isinstance(text, str) for text in queries.values())
    return {query: sorted(LONGEST, key=LONGEST.get, reverse=True)[:k] for query in queries}


def by_length(queries, documents):
    """A score for each pair: the length of the document, title and text."""
    assert len(set(queries)) == 1
    return [len(document) for document in documents]


class Lengths:
    """An encoder: two numbers for a text."""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.array([[len(text), text.count("e") + 1] for text in texts], np.float64)


SAME = Lengths()


class Twofold(Lengths):
    """As a SentenceTransformer: queries and documents apart, and a similarity of its own."""

    similarity_fn_name = "dot"

    def encode_query(self, texts):
        return self.encode(texts) + 1

    def encode_document(self, texts):
        return self.encode(texts)


class Held:
    """An object that is given the documents first."""

    def index(self, documents):
        self.documents = documents

    def search(self, queries, k):
        return [[(name, float(len(text))) for name, text in self.documents.items()] for _ in queries]


def answered(system, k=3):
    return weir.system(system).index(CORPUS).search(QUERIES, k).to_dict()


def test_what_is_composed_prints_and_compares_as_what_is_written():
    first = weir.BM25(k1=1.2)
    composed = {
        first >> weir.Cross("minilm-cross", depth=50): 'bm25(k1=1.2) >> cross("minilm-cross", depth=50)',
        first >> weir.MonoT5(depth=7) >> weir.Score(weir.RM3(), depth=5): (
            'bm25(k1=1.2) >> monot5("monot5", depth=7) >> score(rm3, depth=5)'
        ),
        weir.rrf(first, weir.Dense("minilm"), k=10): 'rrf(bm25(k1=1.2), dense("minilm"), k=10)',
        weir.systems.wsum(first, weir.RM3(), weights=[0.3, 0.7]) >> weir.Score(first): (
            "wsum(bm25(k1=1.2), rm3, weights=[0.3, 0.7]) >> score(bm25(k1=1.2))"
        ),
        weir.ColBERT("colbert", bits=2): 'colbert("colbert", bits=2)',
        weir.Sparse("splade"): 'splade("splade")',
        weir.Dense("minilm", store="int8", index="HNSW32"): 'dense("minilm", store="int8", index="HNSW32")',
    }
    for system, text in composed.items():
        assert str(system) == text
        assert parse_system(text) == system == weir.system(text)
        assert str(system >> weir.Score(weir.RM3())) == f"{text} >> score(rm3)"


def test_functions_and_objects_answer_in_every_shape():
    scored = {"d1": 1.0, "d3": 2.5}
    expected = {"q1": {"d3": 2.5, "d1": 1.0}, "q2": {}}
    shapes = {
        "dict of dicts": {"q1": scored},
        "pairs": {"q1": list(scored.items()), "q2": []},
        "in the order of the queries": [scored, []],
        "numpy": {"q1": {name: np.float32(value) for name, value in scored.items()}},
        "a run": weir.BM25().index(CORPUS).search(QUERIES, 0 + 1),
    }
    for shape, answer in shapes.items():
        found = answered(weir.system(lambda queries, k, answer=answer: answer, name="mine"))
        assert found == (answer.to_dict() if shape == "a run" else expected), shape
    assert answered(longest, 2) == {"q1": {"d3": 2.0, "d2": 1.0}, "q2": {"d3": 2.0, "d2": 1.0}}
    assert answered(weir.system(lambda q, k: {"q1": np.array(["d2", "d1"])}, name="m"))["q1"] == {
        "d2": 2,
        "d1": 1,
    }
    assert list(answered(Held())["q1"].items()) == [("d3", 20.0), ("d2", 15.0), ("d1", 5.0)]


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ({"zz": ["d1"]}, BadRanking, "answered query 'zz', which was not asked"),
        ({"q1": ["d9"]}, BadRanking, "does not have, the first 'd9' to query 'q1'"),
        ({"q2": ["d1", "d1"]}, BadRanking, "query 'q2' ranks document 'd1' twice"),
        ({"q1": {"d1": float("nan")}}, BadRanking, "query 'q1', document 'd1': the score is nan"),
        (
            {"q1": {"d1": "much"}},
            BadRanking,
            "query 'q1', document 'd1': the score 'much' is str; expected a number",
        ),
        ({"q1": [1, 2]}, BadRanking, "does not have, the first '1' to query 'q1'"),
        ({"q1": "d1"}, BadRanking, "query 'q1': found str"),
        ({"q1": {"d2", "d1"}}, BadRanking, "query 'q1': found set, which has no order"),
        (object(), PluginError, "answered with an object: "),
        ([["d1"]], PluginError, "1 rankings for 2 queries"),
        (7, PluginError, "answered with an int"),
        (None, PluginError, "answered with nothing"),
        (
            ZeroDivisionError("oh"),
            PluginError,
            "asked 2 queries, the first 'q1': failed with ZeroDivisionError: oh",
        ),
    ],
)
def test_what_is_no_answer_is_one_line_naming_system_and_query(answer, error, said):
    def mine(queries, k):
        if isinstance(answer, Exception):
            raise answer
        return answer

    searcher = weir.rrf(mine, weir.BM25()).index(CORPUS)
    with pytest.raises(error, match=said) as found:
        searcher.search(QUERIES, 3)
    assert str(found.value).startswith("mine")
    assert "\n" not in str(found.value)


def test_a_function_of_pairs_re_ranks_whatever_stands_before_it():
    class Predicting:
        def predict(self, pairs):
            return np.array([-len(document) for _, document in pairs])

    expected = {"q1": {"d3": 20.0, "d2": 15.0}, "q2": {"d3": 20.0}}
    assert (weir.BM25() >> by_length).index(CORPUS).search(QUERIES, 3).to_dict() == expected
    both = longest >> weir.reranker(by_length, depth=2)
    assert str(both) == "longest >> by_length(depth=2)"
    assert list(both.index(CORPUS).search(QUERIES, 3).to_dict()["q1"]) == ["d3", "d2", "d1"]
    turned = weir.BM25() >> Predicting()
    assert list(turned.index(CORPUS).search(QUERIES, 3).to_dict()["q1"]) == ["d2", "d3"]
    few = weir.BM25() >> weir.reranker(lambda queries, documents: [1.0], name="few")
    searcher = few.index(CORPUS)
    with pytest.raises(BadRanking, match=r"few: query 'q1': scores of shape \(1,\) for 2 documents"):
        searcher.search(QUERIES, 3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: weir.system(lambda queries, k: {}), "a lambda has no name"),
        (lambda: weir.system(partial(longest, k=3)), "a partial has no name"),
        (lambda: weir.system(longest, name="bm25"), "'bm25' is the name of a registered system"),
        (lambda: weir.system(longest, name="a\nb"), "expected a text of printable characters"),
        (lambda: weir.system(longest, name="x" * 81), "a name of 81 characters"),
        (lambda: weir.system(longest, version=3), "version is 3"),
        (lambda: weir.system(weir.BM25(), version="1"), "bm25 has a name and describes itself"),
        (lambda: weir.system(weir.BM25), r"give a value of it, such as BM25\(\)"),
        (lambda: weir.system(object()), r"a function that encodes into weir.Dense"),
        (lambda: weir.BM25() >> weir.RM3(), "a re-ranker follows >>"),
        (lambda: weir.BM25() >> 3, "a re-ranker follows >>"),
        (lambda: weir.system(weir.Cross()), "re-ranks what a system finds"),
        (lambda: weir.reranker(by_length, depth=0), "depth is 0"),
        (lambda: weir.reranker(lambda pairs: [], name="own"), "does not take two arguments; .*query texts, document"),
        (lambda: weir.Dense(object()), r"expected a name of `weir list models`.*encode\(texts\)"),
        (lambda: weir.Dense(Lengths), "Lengths is a class"),
        (lambda: weir.Dense(Lengths(), pooling="cls"), "pooling does not apply to an object such as Lengths"),
        (lambda: weir.Dense(weir.encoder(Lengths()), similarity="dot"), "similarity does not apply to .* of its own"),
        (lambda: weir.Dense(weir.models.Encoder("minilm"), max_length=9), "max_length does not apply to .* of its own"),
        (lambda: weir.encoder(Lengths(), similarity="euclid"), "expected cosine or dot"),
        (lambda: Experiment(("brook-news",), (longest, weir.system(Held(), name="longest"))).parsed_systems(),
         "two objects are named 'longest'; give one .*weir.system"),
        (lambda: Experiment(("brook-news",), (weir.Dense(SAME), weir.Dense(weir.encoder(SAME, similarity="dot"))))
         .parsed_systems(), r"two different systems are named 'dense\(Lengths\)'; .*weir.encoder"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_system_is_one_line(make, said):
    with pytest.raises(BadValue, match=said) as found:
        make()
    assert "\n" not in str(found.value)


def test_an_object_encodes_as_it_declares():
    model = Twofold()
    system = weir.Dense(model)
    assert str(system) == "dense(Twofold)"
    run = system.index(CORPUS).search(QUERIES, 3)
    texts = CORPUS.view("title text").tolist()
    for q, text in enumerate(QUERIES.text):
        products = (model.encode_query([text]) @ model.encode_document(texts).T)[0]
        expected = dict(zip(CORPUS.ids, products.astype(np.float32).astype(np.float64), strict=True))
        assert run.to_dict()[QUERIES.ids[q]] == expected
    cosine = weir.Dense(Lengths()).index(CORPUS).search(QUERIES, 3).to_dict()["q1"]
    assert all(0.9 < value <= 1 for value in cosine.values())
    halved = weir.Dense(Lengths(), store="binary").index(CORPUS).search(QUERIES, 3)
    assert halved.to_dict() != weir.Dense(Lengths()).index(CORPUS).search(QUERIES, 3).to_dict()
    reranked = (longest >> weir.Score(weir.Dense(Lengths()))).index(CORPUS).search(QUERIES, 3).to_dict()["q1"]
    assert reranked == cosine


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.full((1, 2), np.nan), "the vector of 'q1' is not finite"),
        (np.zeros(3), r"2 texts gave vectors of shape \(3,\)"),
        ([["a"]], "Odd, asked for 2 vectors: could not convert"),
    ],
)
def test_vectors_that_are_none_are_named(answer, said):
    class Odd(Lengths):
        def encode(self, texts):
            rows = np.repeat(answer, len(texts), axis=0) if np.ndim(answer) == 2 else answer
            return rows if texts[0] in QUERIES.text.tolist() else super().encode(texts)

    searcher = weir.Dense(Odd()).index(CORPUS)
    with pytest.raises(BadValue, match=said):
        searcher.search(QUERIES, 3)


@pytest.mark.parametrize("name", ["d1", "d2", "d3", "q1", "q2"])
def test_a_text_without_a_finite_vector_is_named_by_its_identifier(name):
    text = dict(
        zip(
            [*CORPUS.ids, *QUERIES.ids],
            [*CORPUS.view("title text").tolist(), *QUERIES.text.tolist()],
            strict=True,
        )
    )[name]

    class Odd(Lengths):
        def encode(self, texts):
            return super().encode(texts) * np.array([[np.nan if text == one else 1.0] for one in texts])

    with pytest.raises(BadValue, match=f"^Odd: the vector of '{name}' is not finite$"):
        weir.Dense(Odd()).index(CORPUS).search(QUERIES, 3)


def test_vectors_are_kept_under_a_version_and_not_without_one(tmp_path):
    collection = write_collection(tmp_path / "data")
    kept, forgotten = Lengths(), Lengths()
    for results in ("one", "two"):
        systems = (weir.Dense(weir.encoder(kept, version="1")), weir.Dense(weir.encoder(forgotten, name="F")))
        Experiment((str(collection),), systems, ("AP",)).execute(tmp_path / results)
    documents = [text for text in kept.asked if len(text) > 30]
    assert len(documents) == len(set(documents)) > 0
    again = [text for text in forgotten.asked if len(text) > 30]
    assert sorted(again) == sorted(2 * documents)
    assert len(list((settings().home / "vectors").iterdir())) == 1


def test_without_a_version_results_are_made_again_and_say_so(tmp_path):
    collection, asked = write_collection(tmp_path / "data"), []

    def counted(queries, k):
        asked.append(len(queries))
        return {}

    names = ("mine", "rrf(bm25, mine)")
    for round_ in (1, 2):
        mine = weir.system(counted, name="mine")
        grid = Experiment((str(collection),), (mine, weir.rrf(weir.BM25(), mine)), ("AP",))
        grid.execute(tmp_path / "results")
        assert len(asked) == round_  # once for both: the fusion takes what was answered
        grid.execute(tmp_path / "results")
        assert len(asked) == round_
    cells = finished_cells(tmp_path / "results")
    assert sorted(cell.system for cell in cells) == sorted(names)
    record = json.loads((cells[0].folder / "stage.json").read_text())
    assert record["declared"]["system"]["version"] is None
    assert len(record["declared"]["system"]["session"]) == 16
    versioned = weir.system(counted, name="mine", version="2026-11")
    for _ in range(2):
        Experiment((str(collection),), (weir.system(counted, name="mine", version="2026-11"),)).execute(
            tmp_path / "v"
        )
    assert len(asked) == 3
    assert versioned.describe() == {"system": "object", "name": "mine", "version": "2026-11"}


@pytest.mark.parametrize(
    ("version", "depths", "kept"),
    [
        ("1", (5, 5), ("index and rankings of dense(mine), rrf(bm25, dense(mine))",)),
        (
            "1",
            (5, 3),
            ("index of dense(mine)", "index and rankings of rrf(bm25, dense(mine))"),
        ),  # fused deeper
        ("1", (5,), ()),
        (None, (5, 5), ()),  # the same object, as its session says
    ],
)
def test_what_is_kept_of_an_object_with_a_version_is_said(tmp_path, version, depths, kept):
    collection = write_collection(tmp_path / "data")
    for depth in depths:  # another object each time, but without a version
        encoder = weir.encoder(SAME if version is None else Lengths(), name="mine", version=version)
        systems = ["bm25", weir.Dense(encoder), weir.rrf(weir.BM25(), weir.Dense(encoder))]
        found = weir.benchmark(collection, systems, "AP", tmp_path / "results", k=depth)
    told = [note.text.partition(" as kept from 2") for note in found.notes() if " as kept " in note.text]
    assert [before for before, _, _ in told] == [f"mine: {one}" for one in kept]
    assert all("the object was not asked for them" in after for _, _, after in told)


def test_an_index_folder_of_a_composite_leaves_objects_out(tmp_path):
    system = weir.rrf(weir.BM25(), Held())
    made = system.index(CORPUS, Context(tmp_path / "index")).search(QUERIES, 3)
    assert [path.name[:4] for path in (tmp_path / "index").iterdir()] == ["bm25"]
    assert system.open(CORPUS, Context(tmp_path / "index")).search(QUERIES, 3).to_dict() == made.to_dict()


class Predicts:
    """A cross-encoder: the longer document is better."""

    def predict(self, pairs):
        return [float(len(document)) for _, document in pairs]


ONE_OBJECT = {
    "encoder": (Lengths, lambda st: [weir.Dense(st), weir.rrf(weir.BM25(), weir.Dense(st))]),
    "encoder scores": (Lengths, lambda st: [weir.BM25() >> weir.Score(weir.Dense(st)), weir.Dense(st)]),
    "method": (Lengths, lambda st: [weir.Dense(st.encode), weir.rrf(weir.BM25(), weir.Dense(st.encode))]),
    "cross-encoder": (Predicts, lambda ce: [weir.BM25() >> ce, weir.rrf(weir.BM25() >> ce, weir.RM3())]),
    "depths": (Predicts, lambda ce: [weir.BM25() >> weir.reranker(ce, depth=d) for d in (2, 3)]),
    "function": (lambda: first_ones, lambda fn: [weir.system(fn), weir.rrf(fn, weir.BM25())]),
}


def first_ones(queries, k):
    """The first two documents of the collection."""
    return {query: ["d1", "d2"][:k] for query in queries}


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
@pytest.mark.parametrize("kind", ONE_OBJECT)
def test_one_object_may_stand_in_several_systems_of_a_grid(kind, tmp_path):
    make, systems = ONE_OBJECT[kind]
    folder, given = str(write_collection(tmp_path / "brooklet")), make()
    table = weir.benchmark(folder, systems(given), "nDCG@10", out=tmp_path / "results")
    assert table.systems == tuple(map(str, systems(given)))
    for system in systems(given):
        alone = weir.benchmark(folder, [system], "nDCG@10")
        assert alone.rows[0].mean == table.scores["brooklet", str(system)].mean_values()[0]
    assert len(finished_cells(tmp_path / "results")) == 2
    if kind == "encoder":
        asked = [text for text in given.asked if text not in [*weir.load(folder).queries.text]]
        assert len(asked) == 3 * len(set(asked))  # each document is encoded once in a grid


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
@pytest.mark.parametrize("order", [("mine", "fused"), ("fused", "mine")])
def test_an_object_is_one_stage_whether_or_not_a_benchmark_names_it(order, tmp_path):
    folder, counts = str(write_collection(tmp_path / "brooklet")), []
    for named in (False, True):
        given = Lengths()
        systems = {"mine": given, "fused": weir.rrf(given, weir.BM25())}
        chosen = {name: systems[name] for name in order}
        table = weir.benchmark(folder, chosen if named else list(chosen.values()), "nDCG@10")
        counts.append(len(given.asked))
        own = "dense(mine)" if named else "dense(Lengths)"
        assert set(table.systems) == {own, f"rrf({own}, bm25)"}
    assert counts[0] == counts[1]
    dot = weir.rrf(weir.encoder(given, similarity="dot"), weir.BM25())  # another use of it keeps its own name
    assert set(weir.benchmark(folder, {"mine": given, "dot": dot}, "nDCG@10").systems) == {
        "dense(mine)",
        "rrf(dense(Lengths), bm25)",
    }


@pytest.mark.parametrize("kind", ONE_OBJECT)
def test_two_objects_of_one_name_are_told_what_names_them(kind, tmp_path):
    make, systems = ONE_OBJECT[kind]
    one, other = (
        make(),
        make() if make is Lengths or make is Predicts else weir.system(longest, name="first_ones"),
    )
    if kind == "function":
        mixed = [systems(one)[0], weir.rrf(other, weir.BM25())]
    else:
        mixed = [systems(one)[0], systems(other)[1]]
    grid = Experiment((str(write_collection(tmp_path / "brooklet")),), tuple(mixed), ("nDCG@10",))
    with pytest.raises(BadValue, match="two objects are named") as found:
        grid.execute(tmp_path / "results")
    name = str(found.value).rpartition(": ")[2]
    call = {
        "weir.encoder": lambda: weir.encoder(make(), name="other"),
        "weir.reranker": lambda: weir.reranker(make(), name="other"),
        "weir.system": lambda: weir.system(longest, name="other"),
    }[name.partition("(")[0]]
    assert str(call()) == "other"


def test_a_cell_that_another_process_removed_is_told(tmp_path):
    from weir.experiment.results import cell_of

    with pytest.raises(StoreError, match="removed while the grid ran"):
        cell_of(tmp_path, [], "test")
