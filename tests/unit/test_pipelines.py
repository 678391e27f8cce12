from __future__ import annotations

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.brooklet import write_collection
from tests.unit.results import contents, finished_files
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Ids
from weir.datasets.load import load
from weir.errors import BadRanking, BadValue, RankingWarning, StoreError, StoreWarning
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.systems import BM25, Pipeline, Reranker, Retriever, Scorer, Searcher, parse_system
from weir.systems.protocol import Context, Costs


@dataclass(frozen=True)
class Listed:
    """A system that answers every query with the same documents, best first."""

    names: tuple[str, ...]

    def describe(self):
        return {"system": str(self)}

    def index(self, corpus, context=None):
        return ListedSearcher(self.names, corpus)

    def open(self, corpus, context):
        return ListedSearcher(self.names, corpus)


@dataclass(frozen=True)
class ListedSearcher:
    names: tuple[str, ...]
    corpus: Corpus

    def search(self, queries, k, context=None):
        names = self.names[:k]
        doc = np.tile(np.arange(len(names), dtype=np.int32), len(queries))
        score = np.tile(np.arange(len(names), 0, -1, dtype=np.float64), len(queries))
        ptr = np.arange(len(queries) + 1, dtype=np.int64) * len(names)
        return Run(queries.ids, Ids.of(names), ptr, doc, score, "listed")

    def costs(self):
        return Costs()


@dataclass(frozen=True)
class By:
    """A re-ranker that scores by a function of (query number, place from 0, document name)."""

    rule: object
    depth: int = 100

    def describe(self):
        return {"reranker": "by"}

    def ready(self, corpus, context=None):
        return self

    def costs(self):
        return Costs()

    def scores(self, queries, candidates, context=None):
        assert len(queries) == len(candidates)
        return np.array(
            [
                self.rule(int(q), int(r) - 1, candidates.docs[int(d)])
                for q, r, d in zip(candidates.query_of_row(), candidates.ranks(), candidates.doc, strict=True)
            ]
        )


CORPUS = Corpus.of({name: f"text {name}" for name in "abcdefgh"})
ORDER = tuple("hgfedcba")


def answers(first, reranker, queries=("q",), k=10, corpus=CORPUS):
    system = Pipeline(Listed(tuple(first)), reranker)
    run = system.index(corpus).search(Queries.of(dict.fromkeys(queries, "x")), k)
    return run


def ranking(run, query="q"):
    return list(run.to_dict()[query])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return load(str(write_collection(tmp_path_factory.mktemp("data") / "brooklet")))


def test_the_parts_are_what_they_claim_to_be():
    system = parse_system("bm25 >> score(rm3)")
    assert isinstance(system, Retriever)
    assert isinstance(system.reranker, Reranker)
    index = system.index(CORPUS)
    assert isinstance(index.scorer, Scorer)
    found: Searcher = index
    assert found is index


def test_describe_nests():
    described = parse_system("bm25 >> score(rm3, depth=7) >> score(bm25(b=0))").describe()
    assert described["first"]["first"] == BM25().describe()
    assert described["first"]["reranker"]["depth"] == 7
    assert described["reranker"]["system"] == BM25(b=0).describe()


@pytest.mark.parametrize("parts", [(3, By(lambda *_: 1)), (BM25(), BM25())])
def test_parts_of_another_kind_are_refused(parts):
    with pytest.raises(BadValue, match=r"is not a system|is not one"):
        Pipeline(*parts)


def test_candidates_below_the_depth_keep_their_order_behind():
    run = answers(ORDER, By(lambda q, place, name: place, depth=3))
    assert ranking(run) == list("fghedcba")
    assert run.to_dict()["q"] == dict(zip("fghedcba", [2, 1, 0, -1, -2, -3, -4, -5], strict=True))


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e9, -1e20, 3e38])
def test_what_stands_behind_is_strictly_lower_in_doubles_and_floats(size):
    run = answers(ORDER, By(lambda q, place, name: size * (1 + place), depth=2))
    score = run.score
    assert (np.diff(score[1:]) < 0).all()
    assert (np.diff(score[1:].astype(np.float32)) < 0).all()
    assert set(ranking(run)[:2]) == set("hg")
    assert ranking(run)[2:] == list("fedcba")


def test_k_cuts_after_the_re_ranking():
    reverse = By(lambda q, place, name: place, depth=5)
    assert ranking(answers(ORDER, reverse, k=2)) == list("de")
    assert ranking(answers(ORDER, reverse, k=6)) == list("defghc")
    assert ranking(answers(ORDER, By(lambda q, place, name: place, depth=1), k=3)) == list("hgf")


def test_ties_are_in_trec_order():
    run = answers("abcde", By(lambda q, place, name: 0 if name in "bd" else 1 + place, depth=4))
    assert ranking(run) == list("cadbe")


def test_the_querys_own_document_does_not_count_towards_the_depth():
    reverse = By(lambda q, place, name: place, depth=2)
    with_own = answers("hgfed", reverse, queries=("h",), k=5).without_self()
    assert ranking(with_own, "h") == ranking(answers("gfed", reverse, k=4))
    # Behind the depth, or not found, it is like any other.
    assert ranking(answers("hgfed", reverse, queries=("e",), k=4), "e") == list("ghfe")
    assert ranking(answers("hgf", reverse, queries=("a",), k=4), "a") == list("ghf")


def test_a_document_twice_in_the_first_ranking_is_an_error():
    @dataclass(frozen=True)
    class Twice(Listed):
        def index(self, corpus, context=None):
            return TwiceSearcher(self.names, corpus)

    class TwiceSearcher(ListedSearcher):
        def search(self, queries, k, context=None):
            return Run(
                queries.ids, CORPUS.ids, np.array([0, 2]), np.array([1, 1], np.int32), np.array([2.0, 1.0])
            )

    index = Pipeline(Twice(ORDER), By(lambda q, place, name: place)).index(CORPUS)
    with pytest.raises(BadRanking, match="query 'q' ranks document 'b' twice"):
        index.search(Queries.of({"q": "x"}), 5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_with_their_count(bad):
    with pytest.raises(BadRanking) as error:
        answers(ORDER, By(lambda q, place, name: bad if place % 2 else 1.0))
    assert "4 of 8 scores are not finite, the first that of query 'q', document 'g'" in str(error.value)


def test_too_few_scores_are_refused_with_their_count():
    @dataclass(frozen=True)
    class Short(By):
        def scores(self, queries, candidates, context=None):
            return super().scores(queries, candidates, context)[:7]

    with pytest.raises(BadRanking, match="7 scores for 8 candidates"):
        answers(ORDER, Short(lambda q, place, name: place))


def test_constant_scores_are_said_loudly():
    with pytest.warns(RankingWarning, match="all candidates of 2 of 3 queries the same") as said:
        run = answers(ORDER, By(lambda q, place, name: q == 1 and place), queries=("q", "r", "s"))
    assert len(said) == 1
    assert ranking(run, "q") == sorted(ORDER, reverse=True)


def test_an_order_that_mostly_stays_is_said_loudly():
    asked = [f"q{n}" for n in range(20)]
    with pytest.warns(RankingWarning, match="leaves the order of 11 of 20 queries as it was"):
        answers(ORDER, By(lambda q, place, name: -place if q < 11 else place), queries=asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers(ORDER, By(lambda q, place, name: -place if q < 10 else place), queries=asked)
        answers(ORDER, By(lambda q, place, name: -place), queries=asked[:3])
        answers(ORDER[:1], By(lambda q, place, name: 1.0), queries=asked)


def test_no_queries_and_no_answers():
    assert len(answers(ORDER, By(lambda q, place, name: place), queries=()).doc) == 0
    run = answers((), By(lambda q, place, name: place), queries=("q", "r"))
    assert run.to_dict() == {"q": {}, "r": {}}
    index = parse_system("bm25 >> score(rm3)").index(CORPUS)
    assert index.search(Queries.of({"none": "xylophone", "empty": ""}), 5).to_dict() == {
        "none": {},
        "empty": {},
    }
    with pytest.raises(BadValue, match="k is 0"):
        index.search(Queries.of({"q": "text"}), 0)


@pytest.mark.parametrize(
    "name", ['bm25("elastic")', 'bm25("lucene-multifield")', "bm25", "rm3", 'bm25("bm25s")']
)
def test_scores_of_given_documents_are_those_of_searching(dataset, name):
    index = parse_system(name).index(dataset.corpus)
    run = index.search(dataset.queries, len(dataset.corpus))
    assert len(run.doc) > 4
    assert np.array_equal(index.scores(dataset.queries, run), run.score)
    every = len(dataset.corpus)
    doc = np.tile(np.arange(every, dtype=np.int32), len(dataset.queries))
    whole = Run(run.queries, run.docs, np.arange(len(run) + 1) * every, doc, np.zeros(len(doc)))
    found = index.scores(dataset.queries, whole).reshape(len(run), every)
    assert found[run.query_of_row(), run.doc].tolist() == run.score.tolist()
    assert np.count_nonzero(found) == len(run.doc)


def test_re_ranking_everything_by_a_system_is_that_system(dataset):
    first, second = (
        parse_system(n).index(dataset.corpus) for n in ("bm25", "bm25 >> score(bm25(b=0), depth=9)")
    )
    expected = parse_system("bm25(b=0)").index(dataset.corpus).search(dataset.queries, 9)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RankingWarning
        )  # two documents are copies, the only answers to one query
        run = second.search(dataset.queries, 9)
    assert run.to_dict() == expected.to_dict()
    assert run.to_dict() != first.search(dataset.queries, 9).to_dict()


def test_an_index_on_disk_is_opened_again_and_damage_is_seen(dataset, tmp_path):
    system = parse_system("bm25 >> score(bm25(b=0)) >> score(rm3)")
    made = system.index(dataset.corpus, Context(tmp_path / "index"))
    asked = dataset.queries.take(np.array([0, 3]))
    expected = made.search(asked, 5).to_dict()
    assert system.open(dataset.corpus, Context(tmp_path / "index")).search(asked, 5).to_dict() == expected
    [part] = (tmp_path / "index").glob("rm3-*")
    (part / "index.json").unlink()
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(dataset.corpus, Context(tmp_path / "index"))
    with pytest.warns(StoreWarning, match="rm3 is indexed again"):
        again = system.index(dataset.corpus, Context(tmp_path / "index"))
    assert again.search(asked, 5).to_dict() == expected


KILLED = """
import os, sys
from weir.experiment.experiment import Experiment
from weir.systems import BM25
BM25.index = lambda *given: os.kill(os.getpid(), 9)
Experiment((sys.argv[1],), ("bm25 >> score(rm3)",), k=10).execute(sys.argv[2])
"""


def test_killed_between_the_parts_it_goes_on_where_it_was(dataset, tmp_path):
    folder = str(write_collection(tmp_path / "brooklet"))
    quiet = {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, folder, str(tmp_path / "cut")], env=os.environ | quiet, check=False
    )
    assert done.returncode == -9
    stamps = finished_files(tmp_path / "cut")
    assert len({p.parent for p in stamps}) == 1
    grid = Experiment((folder,), ("bm25 >> score(rm3)",), k=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        resumed, whole = grid.execute(tmp_path / "cut"), grid.execute(tmp_path / "whole")
    assert resumed == whole
    assert stamps.items() <= finished_files(tmp_path / "cut").items()
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_the_record_keeps_what_was_said(tmp_path):
    copies = {name: ("", "The river and the dam") for name in ("d1", "d2", "d3", "d4", "d5")}
    folder = str(write_collection(tmp_path / "copies", copies))
    with pytest.warns(RankingWarning) as said:
        Experiment((folder,), ("bm25 >> score(bm25(b=0))",), k=10).execute(tmp_path / "results")
    [cell] = finished_cells(tmp_path / "results")
    notes = cell.ranked.facts["notes"]
    assert notes == [str(w.message) for w in said]
    assert len(notes) == 1
    assert "all candidates of 2 of 2 queries the same" in notes[0]


TEXTS = {f"d{i}": f"river {'weir ' * (i % 3)}number{i}" for i in range(7)}


LEXICAL = ["bm25", "rm3", 'bm25("lucene-multifield")', "chunked(bm25, words=3, overlap=1)", "rrf(bm25, rm3)"]


def rankings(system: str, queries: dict[str, str], k: int) -> dict[str, list[str]]:
    run = parse_system(system).index(Corpus.of(TEXTS)).search(Queries.of(queries), k)
    found = {query: list(row) for query, row in run.to_dict().items()}
    return {query: found.get(query, []) for query in queries}


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")  # three words make many ties
@pytest.mark.parametrize("system", [*LEXICAL, "bm25 >> score(rm3, depth=3)"])
def test_nothing_is_made_up(system):
    """k beyond the corpus, an empty query, words that no document has: fewer answers or none, no others."""
    found = rankings(
        system, {"all": "river", "some": "weir", "empty": "", "blank": "  ", "new": "xylophone"}, 100
    )
    assert set(found["all"]) == set(TEXTS)
    assert {"d1", "d2", "d4", "d5"} <= set(found["some"])
    assert found["empty"] == found["blank"] == found["new"] == []


@pytest.fixture
def served():
    with es.embedding_serving() as (url, manners):
        yield f'dense("openai:m", base="{url}/v1")', manners


def test_every_document_answers_a_query_of_vectors_that_has_text(served):
    system, manners = served
    found = rankings(system, {"all": "river", "empty": "", "blank": " "}, 100)
    assert sorted(found["all"]) == sorted(TEXTS)
    assert found["empty"] == found["blank"] == []
    assert "" not in manners.sent()
