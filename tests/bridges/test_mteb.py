"""MTEB: its models here and systems there give one score, its files of results read back."""

from __future__ import annotations

import json
from string import ascii_lowercase

import pytest

from tests.bridges.conftest import foreign
from tests.neural.conftest import sentence_transformer

mteb = foreign("mteb")
library = foreign("sentence_transformers")

from datasets import Dataset  # noqa: E402 - behind the skip
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402 - behind the skip
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402 - behind the skip
from mteb.models import SearchEncoderWrapper  # noqa: E402 - behind the skip
from mteb.models.sentence_transformer_wrapper import (  # noqa: E402 - behind the skip
    CrossEncoderWrapper,
    SentenceTransformerEncoderWrapper,
)

import weir  # noqa: E402 - behind the skip
from weir.plugins.bridges import (  # noqa: E402 - behind the skip
    collections_from_mteb,
    from_mteb,
    to_mteb,
    write_mteb_results,
)

pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend
MEASURES = {"ndcg_at_10": "nDCG@10", "map_at_100": "AP@100", "recall_at_100": "R@100", "mrr_at_10": "RR@10"}
ABOUT = dict(task_metadata=None, hf_split="test", hf_subset="default", encode_kwargs={}, num_proc=None)


class BrookFacts(AbsTaskRetrieval):
    """A task of MTEB whose data are here."""

    metadata = TaskMetadata(
        name="BrookFacts",
        description="Facts.",
        type="Retrieval",
        category="t2t",
        main_score="ndcg_at_10",
        eval_langs=["eng-Latn"],
        eval_splits=["test"],
        dataset={"path": "weir/brook-facts", "revision": "1"},
        prompt={"query": "the weir", "document": "the stone"},
    )
    candidates = None

    def load_data(self, **about):
        brook = weir.load("brook-facts")
        corpus, queries = brook.corpus, brook.queries
        titles = {} if corpus.title is None else {"title": list(corpus.title)}
        rows = {"id": list(corpus.ids), "text": list(corpus.text)} | titles
        split = {
            "corpus": Dataset.from_dict(rows),
            "queries": Dataset.from_dict({"id": list(queries.ids), "text": list(queries.text)}),
            "relevant_docs": brook.qrels.to_dict(),
            "top_ranked": self.candidates,
        }
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


@pytest.fixture
def task():
    return BrookFacts()


@pytest.fixture
def encoder(checkpoint_of):
    model = library.SentenceTransformer(str(sentence_transformer(checkpoint_of("bert"))), device="cpu")
    prompts = {"query": "red ", "document": "blue ", "SciFact-query": "the cat flows over one bridge "}
    return SentenceTransformerEncoderWrapper(model, model_prompts=prompts)


def by_mteb(model, task):
    result = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results[0]
    assert result.task_name == "BrookFacts"
    scores = result.scores["test"][0]
    return [scores[name] for name in MEASURES]


def here(system, brook):
    run = system.index(brook.corpus).search(brook.queries, 1000)
    return list(weir.evaluate(brook.qrels, run, list(MEASURES.values())).means().values())


def test_a_system_scores_there_as_here(task, brook):
    model = to_mteb(weir.BM25(k1=1.2))
    assert model.mteb_model_meta.name == "weir/bm25-k1=1.2"
    assert by_mteb(model, task) == pytest.approx(here(weir.BM25(k1=1.2), brook), abs=1e-5)
    assert to_mteb(weir.BM25()).mteb_model_meta.revision != model.mteb_model_meta.revision


def test_an_encoder_of_theirs_scores_here_as_there(task, encoder, brook):
    system = from_mteb(encoder, task, name="theirs")
    assert str(system) == "dense(theirs)"
    assert here(system, brook) == pytest.approx(by_mteb(encoder, task), abs=1e-5)
    prompted, plain = (
        from_mteb(encoder, name, name="theirs").index(brook.corpus).search(brook.queries, 9).score
        for name in ("SciFact", "NFCorpus")
    )
    assert prompted.tolist() != pytest.approx(plain.tolist(), abs=1e-3)


def test_a_search_and_an_encoder_of_another_similarity_answer_by_themselves(task, encoder, brook):
    search = from_mteb(SearchEncoderWrapper(encoder), task, name="searching")
    assert here(search, brook) == pytest.approx(by_mteb(encoder, task), abs=1e-5)
    encoder.model.similarity_fn_name = "euclidean"
    encoder.mteb_model_meta = encoder.mteb_model_meta.model_copy(update={"similarity_fn_name": "euclidean"})
    far = from_mteb(encoder, task, name="far")
    assert str(far) == "far"
    assert here(far, brook) == pytest.approx(by_mteb(encoder, task), abs=1e-5)


@pytest.fixture
def cross(checkpoint_of, tmp_path):
    import transformers

    from tests.neural.conftest import COMMON, write_tokenizer

    config = transformers.BertConfig(**COMMON, num_labels=1)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    return CrossEncoderWrapper(library.CrossEncoder(str(tmp_path), device="cpu"))


def test_a_cross_encoder_of_theirs_orders_what_a_system_finds(task, cross, brook):
    first = weir.BM25().index(brook.corpus).search(brook.queries, 20)
    task.candidates = {query: list(ranking) for query, ranking in first.to_dict().items()}

    def found(queries, k):
        return first

    assert here(weir.system(found) >> from_mteb(cross, task), brook) == pytest.approx(
        by_mteb(cross, task), abs=1e-5
    )


def test_candidates_of_a_task_are_ordered_by_the_systems_own_scores(task, brook):
    run = weir.RM3().index(brook.corpus).search(brook.queries, 30)
    task.candidates = {query: sorted(ranking) for query, ranking in run.to_dict().items()}
    expected = here(weir.system(lambda queries, k: run, name="given") >> weir.Score(weir.BM25()), brook)
    assert by_mteb(to_mteb(weir.BM25()), task) == pytest.approx(expected, abs=1e-5)
    assert by_mteb(to_mteb(weir.Score(weir.BM25())), task) == pytest.approx(expected, abs=1e-5)
    assert by_mteb(to_mteb(weir.RM3() >> weir.Score(weir.BM25())), task) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("own", ["plain", "candidates", "self-matches", "instructions"])
def test_a_task_is_a_collection_that_scores_here_as_there(task, brook, own):
    loaded = task.load_data

    def load_data(**about):
        loaded(**about)
        split = task.dataset["default"]["test"]
        queries, documents = (split[part]["id"] for part in ("queries", "corpus"))
        if own == "candidates":
            split["top_ranked"] = {query: sorted(documents)[n::3] for n, query in enumerate(queries)}
        if own == "self-matches":
            names = dict(zip(documents, queries, strict=False))  # documents with the identifiers of queries
            ids = [names.get(one, one) for one in documents]
            split["corpus"] = split["corpus"].remove_columns("id").add_column("id", ids)
            judged = split["relevant_docs"].items()
            split["relevant_docs"] = {q: {names.get(d, d): g for d, g in row.items()} for q, row in judged}
        if own == "instructions":
            split["queries"] = split["queries"].add_column("instruction", ["water"] * len(queries))

    task.load_data, task.ignore_identical_ids = load_data, own == "self-matches"
    [collection] = collections_from_mteb(task)
    assert (collection.name, collection.split) == ("BrookFacts", "test")
    letters = weir.encoder(
        lambda texts: [[text.count(letter) + 1.0 for letter in ascii_lowercase] for text in texts],
        name="letters",
        similarity="cosine",
    )
    system = weir.Dense(letters)  # it scores all documents, as MTEB has all candidates scored
    rows = weir.benchmark(collection, system, list(MEASURES.values())).rows
    assert [row.mean for row in rows] == pytest.approx(by_mteb(to_mteb(system), task), abs=1e-5)
    split = task.dataset["default"]["test"]
    task.dataset = {"default": {"test": split, "dev": split}, "de": {"test": split}}
    assert [(one.name, one.split) for one in collections_from_mteb(task)] == [
        ("BrookFacts", "test"),
        ("BrookFacts", "dev"),
        ("BrookFacts#de", "test"),
    ]


def test_a_task_is_a_collection_wherever_one_is_given(task):
    [collection] = collections_from_mteb(task)
    expected = weir.benchmark(collection, "bm25", "nDCG@10").rows[0].mean
    assert weir.load(task).name == weir.load(collection).name == "BrookFacts"
    for given in (task, [task], {"BrookFacts": task}, [collection]):
        [row] = weir.benchmark(given, "bm25", "nDCG@10").rows
        assert (row.dataset, row.mean) == ("BrookFacts", expected)
    ranking = {query: list(judged) for query, judged in collection.qrels.to_dict().items()}
    scored = [weir.evaluate(one, ranking, "nDCG@10").to_dict() for one in (task, collection)]
    assert scored[0] == scored[1]
    split = task.dataset["default"]["test"]
    task.dataset = {"default": {"test": split, "dev": split}}
    assert {row.dataset for row in weir.benchmark(task, "bm25", "nDCG@10").rows} == {
        "BrookFacts:test",
        "BrookFacts:dev",
    }
    for call in (lambda: weir.load(task), lambda: weir.evaluate(task, ranking)):
        with pytest.raises(
            weir.WeirError, match=r"is 2 values \(BrookFacts:test, BrookFacts:dev\); expected one"
        ):
            call()


def test_what_mteb_wrote_of_a_task_stands_beside_ones_own_scores_of_it(task, tmp_path):
    """Of each subset and split, without another name."""
    loaded = task.load_data

    def load_data(**about):
        loaded(**about)
        split = task.dataset["default"]["test"]
        fewer = split | {"relevant_docs": dict(list(split["relevant_docs"].items())[:30])}
        task.dataset = {name: {"test": split, "dev": fewer} for name in ("default", "de")}

    task.load_data = load_data
    weir.benchmark(task, "bm25", "nDCG@10", tmp_path / "results")
    places = [(subset, split) for subset in ("default", "de") for split in ("dev", "test")]
    scores = {split: [{"hf_subset": subset, "ndcg_at_10": 0.1 * at}
                      for at, (subset, of) in enumerate(places) if of == split]
              for split in ("dev", "test")}  # fmt: skip
    written = tmp_path / "BrookFacts.json"
    written.write_text(json.dumps({"task_name": "BrookFacts", "scores": scores}))
    found = weir.results_beside(tmp_path / "results", written)
    theirs = {one.dataset: one.value for one in found if one.source}
    assert theirs == pytest.approx(
        {"BrookFacts:dev": 0.0, "BrookFacts:test": 0.1, "BrookFacts#de:dev": 0.2, "BrookFacts#de:test": 0.3}
    )


def test_a_task_that_is_no_collection_of_weirs_is_refused(task):
    task.skip_first_result = True
    for other in (task, BrookFacts, "BrookFacts"):
        with pytest.raises(
            weir.WeirError, match=r"leaves out the first document|expected a retrieval task of MTEB"
        ):
            collections_from_mteb(other)
    with pytest.raises(weir.WeirError, match="leaves out the first document"):
        weir.load(task)


def test_instructions_stand_behind_queries_and_what_cannot_be_asked_is_refused():
    corpus = Dataset.from_dict({"id": ["a", "b"], "text": ["a weir", "a river"]})
    model = to_mteb(weir.BM25())
    queries = Dataset.from_dict({"id": ["1"], "text": ["weir"], "instruction": ["near rivers or the river"]})
    with pytest.raises(weir.WeirError, match="bm25 has no corpus yet"):
        model.search(queries, top_k=2, **ABOUT)
    model.index(corpus, **ABOUT)
    assert list(model.search(queries, top_k=2, **ABOUT)["1"]) == ["b", "a"]
    alone = to_mteb(weir.Score(weir.BM25()))
    alone.index(corpus, **ABOUT)
    with pytest.raises(
        weir.WeirError, match=r"only re-ranks the results of a system; give such as weir.BM25"
    ):
        alone.search(queries, top_k=2, **ABOUT)
    talk = Dataset.from_dict({"id": ["1"], "text": [["weir", "river"]]})
    with pytest.raises(weir.WeirError, match="conversations"):
        model.search(talk, top_k=2, **ABOUT)
    with pytest.raises(weir.WeirError, match=r"found {} \(dict\); expected a model of MTEB"):
        from_mteb({})


def test_an_object_that_is_a_system_without_mteb_is_told_how_to_be_given():
    for model, told in (
        (OwnEncoder(), r"found a value of type OwnEncoder; .* the object itself is a system: .*=\[model\]"),
        (weir.BM25(), r"of type BM25; .* the object itself is a system: .*=\[model\]"),
        (weir.Score(weir.BM25()), r"the object itself is a re-ranker: .* >> model"),
        (OwnEncoder, r"found the class OwnEncoder; .*; OwnEncoder\(\.\.\.\) makes an object$"),
        (PairScores(), r"found a value of type PairScores; .* the object itself is a re-ranker: .* >> model"),
    ):
        with pytest.raises(weir.WeirError, match=told):
            from_mteb(model)


class OwnEncoder:
    def encode(self, texts):
        return [[1.0] for _ in texts]


class PairScores:
    def predict(self, pairs):
        return [0.0 for _ in pairs]


def test_results_read_back_as_mtebs(tmp_path):
    weir.benchmark(
        ["brook-facts", "brook-news"],
        [weir.BM25(), weir.RM3()],
        ["nDCG@10", "AP@100", "Judged@10"],
        tmp_path / "r",
    )
    written = write_mteb_results(tmp_path / "r", tmp_path / "out")
    rows = {
        (row.dataset, row.measure): row.mean for row in weir.results(tmp_path / "r") if row.system == "bm25"
    }
    found = mteb.TaskResult.from_disk(written[0])
    assert found.get_score(splits=["test"]) == rows["brook-facts", "nDCG@10"]
    assert found.scores["test"][0]["map_at_100"] == rows["brook-facts", "AP@100"]
    assert found.scores["test"][0]["Judged@10"] == rows["brook-facts", "Judged@10"]
    loaded = mteb.ResultCache(tmp_path / "out").load_results(
        models=["weir/bm25"], include_remote=False, validate_and_filter=False
    )
    (model,) = loaded.model_results
    assert model.model_revision == to_mteb(weir.BM25()).mteb_model_meta.revision
    assert {task.task_name for task in model.task_results} == {"brook-facts", "brook-news"}
    one = write_mteb_results(
        [c for c in finished(tmp_path / "r") if c.system == "rm3"], tmp_path / "n", "me/mine"
    )
    assert {path.parts[-3] for path in one} == {"me__mine"}
    with pytest.raises(weir.WeirError, match="2 systems cannot all be me/mine"):
        write_mteb_results(tmp_path / "r", tmp_path / "n", "me/mine")


def finished(folder):
    from weir.experiment.results import finished_cells

    return finished_cells(folder)


def test_names_of_tasks_are_mtebs():
    from weir.datasets import catalogue
    from weir.plugins.bridges.export import task_of

    known = [task_of(name) for name in catalogue.collection_names() if task_of(name).hub]
    assert len(known) == 26
    for task in known:
        assert mteb.get_task(task.name).metadata.dataset["path"] == task.hub
        assert mteb.get_task(task.name).metadata.main_score == "ndcg_at_10"


@pytest.mark.parametrize("unanswered", ["absent", "empty"])
def test_conventions_are_as_the_page_says(unanswered):
    from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

    qrels = {"q1": {"a": 3, "b": 1, "c": 0}, "q2": {"x": 1}, "q3": {"z": 2}, "q4": {"z": 0}}
    run = {"q1": {"b": 1.0, "a": 1.0, "d": 1.0, "c": 0.5}, "q2": {"y": 1.0, "x": 1.0}, "q4": {"z": 1.0}}
    theirs = calculate_retrieval_scores(
        run | ({"q3": {}} if unanswered == "empty" else {}), qrels, [1, 3, 10]
    )
    rules = "default" if unanswered == "empty" else "missing=answered-only"
    here = weir.evaluate(qrels, run, ["nDCG@10", "RR@10", "AP@10"], rules).means()
    found = {"nDCG@10": theirs.ndcg["NDCG@10"], "RR@10": theirs.mrr["MRR@10"], "AP@10": theirs.map["MAP@10"]}
    assert found == pytest.approx(here, abs=1e-5)
