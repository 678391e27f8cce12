"""What a message advises can be done, and says what is so."""

from __future__ import annotations

import pytest

import weir
from tests.unit.cells import MANIFEST, changed, write_cell
from weir.cli.main import main
from weir.core.tables import Cell, Table
from weir.errors import BadValue, DownloadError, WeirError
from weir.experiment.results import cell_notes, finished_cells
from weir.models import checkpoints
from weir.plugins.llm.prompts import checked_template
from weir.systems import parse_system
from weir.systems.compose import as_system

DOCUMENTS = {"d1": "red wine", "d2": "white wine", "d3": "bread"}


def ones(texts):
    return [[1.0, 0.0]] * len(texts)


@pytest.mark.parametrize(
    ("made", "adapter"),
    [
        (lambda: weir.Dense(lambda texts: [*ones(texts)]), "encoder"),
        (lambda: weir.system(lambda queries, k: {}), "system"),
        (lambda: weir.reranker(lambda queries, texts: [*ones(texts)]), "reranker"),
        (lambda: weir.BM25() >> (lambda queries, texts: [*ones(texts)]), "reranker"),
    ],
)
def test_a_function_without_a_name_is_told_who_gives_it_one(made, adapter):
    with pytest.raises(BadValue) as refused:
        made()
    assert (
        str(refused.value) == f"a lambda has no name of its own; give one: weir.{adapter}(..., name='mine')"
    )
    assert "mine" in str(getattr(weir, adapter)(lambda texts, *_: [*ones(texts)], name="mine"))


@pytest.mark.parametrize("lacking", ["system", "user", "objective", "max_tokens"])
def test_an_entry_that_a_prompt_lacks_is_named_as_lacking(tmp_path, lacking):
    entries = {"system": "", "user": "{query} {passage}", "objective": "", "max_tokens": 10}
    del entries[lacking]
    with pytest.raises(BadValue, match=f"no entry {lacking}; expected a "):
        checked_template(tmp_path / "mine.toml", entries, ())


def test_an_error_of_the_hub_is_not_cut_within_a_sentence(monkeypatch):
    class Hub:
        def snapshot_download(self, *_, **__):
            raise OSError("Cannot find a folder. To enable look-ups, set 'HF_HUB_OFFLINE=0'. " + "more " * 99)

    monkeypatch.setattr(checkpoints, "require", lambda *_, **__: Hub())
    for offline, said in (
        (True, "(HF_HUB_OFFLINE forbids asking the hub)"),
        (False, "(OSError: Cannot find a folder)"),
    ):
        monkeypatch.setattr(checkpoints, "hub_offline", lambda offline=offline: offline)
        with pytest.raises(DownloadError) as refused:
            checkpoints.fetch("a/b")
        assert said in str(refused.value)


def test_a_star_is_explained_where_there_is_one():
    rows = ((Cell("a"), Cell("0.5", best=True)), (Cell("b"), Cell("0.4")))
    table = Table("", ("system", "AP"), rows, ("* the best of its dataset",))
    assert "* the best" in table.text()
    for written in (table.html_body(), table.markdown(), table.latex()):
        assert "bold: the best" in written
        assert "* the best" not in written


class Beir:
    """A model as BEIR's dense search takes it, which has a plain `encode` too."""

    def encode_queries(self, queries, batch_size=16, **_):
        return [[float("wine" in text), float("bread" in text)] for text in queries]

    def encode_corpus(self, corpus, batch_size=8, **_):
        return self.encode_queries([f"{one['title']} {one['text']}".strip() for one in corpus])

    def encode(self, texts):
        raise AssertionError("without the prompts of queries and documents")


def test_a_model_of_beir_is_a_system():
    found = weir.Dense(Beir()).index(DOCUMENTS).search({"q": "bread"}, 1).to_dict()
    assert found == {"q": {"d3": 1.0}}
    assert str(weir.system(Beir())) == "dense(Beir)"
    assert str(weir.rrf(weir.BM25(), Beir())) == "rrf(bm25, dense(Beir))"
    rows = weir.benchmark(
        weir.Dataset.of(DOCUMENTS, {"q": "bread"}, {"q": ["d3"]}), [Beir(), "bm25"], "RR"
    ).rows
    assert [(row.system, row.mean) for row in rows if row.measure == "RR"] == [
        ("dense(Beir)", 1.0),
        ("bm25", 1.0),
    ]


class BeirSearch:
    """A search as BEIR's are: documents come with the queries, and what is required is passed."""

    def search(self, corpus, queries, top_k, score_function, return_sorted=False, **_):
        assert (top_k, score_function, return_sorted) == (2, "cos_sim", False)
        assert corpus["d1"] == {"title": "", "text": DOCUMENTS["d1"]}
        words = {doc: set(f"{one['title']} {one['text']}".split()) for doc, one in corpus.items()}
        return {
            q: {d: float(len(words[d] & set(text.split()))) for d in words} for q, text in queries.items()
        }


class BeirRetrieval:
    """EvaluateRetrieval, which holds its depth and its similarity."""

    def retrieve(self, corpus, queries, **_):
        return BeirSearch().search(corpus, queries, 2, "cos_sim")


class Retrieves:
    def retrieve(self, text):
        return [text]


def test_what_searches_a_corpus_given_with_the_queries_is_a_system():
    bread = weir.Dataset.of(DOCUMENTS, {"q": "bread"}, {"q": ["d3"]})
    for made in (BeirSearch, BeirRetrieval):
        found = weir.system(made()).index(bread.corpus).search({"q": "bread"}, 2).to_dict()
        assert found["q"]["d3"] == 1.0
    rows = weir.benchmark(bread, {"one": BeirSearch(), "two": BeirSearch(), "bm25": "bm25"}, "RR", k=2).rows
    assert [(row.system, row.mean) for row in rows] == [("one", 1.0), ("two", 1.0), ("bm25", 1.0)]
    with pytest.raises(BadValue, match="a Retrieves is not a system"):
        weir.system(Retrieves())


def test_collections_in_memory_go_by_the_names_that_they_are_given():
    parts = DOCUMENTS, {"q": "bread"}, {"q": ["d3"]}
    one = weir.Dataset.of(*parts, "two")
    table = weir.benchmark({"one": parts, "two": one, "brook-news": "brook-news"}, "bm25", "RR")
    assert table.datasets == ("one", "two", "brook-news")
    assert weir.benchmark({"one": parts}, "bm25", "RR").datasets == ("one",)
    for other in (one, "brook-news"):
        with pytest.raises(BadValue, match="has a name and is not called 'mine'"):
            weir.benchmark({"mine": other}, "bm25", "RR")


@pytest.mark.parametrize(
    ("view", "separator"), [("title text", None), ("title text", " - "), ("title", None)]
)
def test_a_model_of_beir_gets_title_and_text_apart_and_the_arguments_that_it_takes(view, separator):
    documents = {
        "d1": {"title": "red", "text": "wine"},
        "d2": {"title": "white", "text": ""},
        "d3": {"text": "bread"},
    }
    asked = []

    class Joins(Beir):
        def encode_queries(self, queries, batch_size=16, **more):
            asked.append((batch_size, more))
            return super().encode_queries(queries)

        def encode_corpus(self, corpus, batch_size=8, show_progress_bar=True):
            asked.append((batch_size, show_progress_bar, corpus))
            return [[1.0, 0.0]] * len(corpus)

    system = weir.Dense(weir.encoder(Joins(), version="1"), view=view, separator=separator)
    system.index(weir.Corpus.of(documents)).search({"q": "wine"}, 1)
    pairs = {
        ("title text", None): [("red", "wine"), ("white", ""), ("", "bread")],
        ("title text", " - "): [("", "red - wine"), ("", "white - "), ("", "bread")],
        ("title", None): [("", "red"), ("", "white"), ("", "")],
    }[view, separator]
    given = [{"title": title, "text": text} for title, text in pairs]
    assert asked == [
        (128, False, given),
        (128, {"show_progress_bar": False, "convert_to_tensor": False}),
    ]
    apart = (view, separator) == ("title text", None)
    joined = weir.Dense(weir.encoder(ones), view=view, separator=separator).describe()["separator"]
    assert (system.describe()["separator"] != joined) == apart  # which the keys of stages are made of


class Encodes:
    """A model with sentence-transformers' oldest interface, which may also be called."""

    def encode(self, sentences, batch_size=32):
        assert batch_size == 32
        return Beir().encode_queries(sentences)

    def __call__(self, features):
        raise AssertionError("a layer's own call")


def test_an_object_that_encodes_is_a_system_and_a_text_is_none():
    assert str(weir.system(Encodes())) == "dense(Encodes)"
    found = weir.system(Encodes()).index(DOCUMENTS).search({"q": "bread"}, 1).to_dict()
    assert found == {"q": {"d3": 1.0}}
    for none in (object(), "bm25"):
        with pytest.raises(BadValue, match=r"is not a system; .* or encode\(texts\)"):
            as_system(none)


def test_an_object_that_searches_and_encodes_is_asked_to_search():
    class Both(Beir):
        def search(self, queries, k):
            return {query: ["d1"] for query in queries}

    assert str(weir.system(Both())) == "Both"


def test_answers_that_cannot_be_read_are_said_beside_the_scores(tmp_path, capsys):
    for name, verdicts in (("bm25", {"missing": 500}), ("other", {"ok": 498, "missing": 2})):
        use = {
            "service": "x",
            "verdicts": verdicts,
            "latency": [],
            "stored": 0,
            "retried": 0,
            "unanswered": {},
        }
        manifest = changed("system.system", name) | {"cost": {"search": {"services": [use | {"empty": 0}]}}}
        write_cell(tmp_path / "mine" / name, manifest=manifest)
    (said,) = [str(note) for note in cell_notes(finished_cells(tmp_path)) if "verdict" in str(note)]
    what = "500 of 500 answers of a language model have no whole verdict (500 missing); weir study llm shows them"
    assert said == f"note: mine, bm25: {what}"
    for command in ("results", "compare"):
        assert main([command, str(tmp_path)]) == 0
        assert "500 of 500 answers" in capsys.readouterr().err


def test_how_often_is_a_count(tmp_path, capsys):
    use = {"requests": 5062.0, "tokens": 1_234_567.0}
    index = {"seconds": 1.0, "bytes": 10, "documents": 5, "peak_mb": 1.0, "api": use}
    write_cell(tmp_path / "mine" / "bm25", manifest={**MANIFEST, "cost": {"index": index}})
    assert main(["study", "efficiency", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "an API was asked 5,062 times for 1,234,567 tokens" in out + err


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("dense(mybert)", 'stands in quotes: model="mybert"'),
        ('dense("./no-folder")', "no checkpoint there; expected a folder"),
        ("bm26", "did you mean bm25"),
    ],
)
def test_a_model_that_is_not_there_is_said_so(system, said):
    with pytest.raises(WeirError, match=said):
        parse_system(system).describe()
