"""Lines 12 to 14 of the acceptance list ../shared/needs.md, part E: what systems must never answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit import model_servers as es
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.errors import BadRanking, RankingWarning
from weir.measures import score_run
from weir.systems.compose import Pipeline
from weir.systems.expression import parse_system
from weir.systems.lexical.bm25 import BM25
from weir.systems.protocol import Costs

TEXTS = {f"d{i}": f"river {'weir ' * (i % 3)}number{i}" for i in range(7)}
LONG = {f"d{i}": " ".join(f"river w{i}x{j}" for j in range(100)) for i in range(8)}
LEXICAL = ["bm25", "rm3", 'bm25("lucene-multifield")', "chunked(bm25, words=3, overlap=1)", "rrf(bm25, rm3)"]


@pytest.fixture
def served():
    with es.embedding_serving() as (url, manners):
        yield f'dense("openai:m", base="{url}/v1")', manners


def rankings(system: str, queries: dict[str, str], k: int) -> dict[str, list[str]]:
    run = parse_system(system).index(Corpus.of(TEXTS)).search(Queries.of(queries), k)
    found = {query: list(row) for query, row in run.to_dict().items()}
    return {query: found.get(query, []) for query in queries}


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")  # three words make many ties
@pytest.mark.parametrize("system", [*LEXICAL, "bm25 >> score(rm3, depth=3)"])
def test_e12_nothing_is_made_up(system):
    """E12: k beyond the corpus, an empty query, words that no document has: fewer answers or none, no others."""
    found = rankings(
        system, {"all": "river", "some": "weir", "empty": "", "blank": "  ", "new": "xylophone"}, 100
    )
    assert set(found["all"]) == set(TEXTS)
    assert {"d1", "d2", "d4", "d5"} <= set(found["some"])
    assert found["empty"] == found["blank"] == found["new"] == []


def test_e12_for_vectors(served):
    """E12: for vectors every document answers a query with text, and none one without."""
    system, manners = served
    found = rankings(system, {"all": "river", "empty": "", "blank": " "}, 100)
    assert sorted(found["all"]) == sorted(TEXTS)
    assert found["empty"] == found["blank"] == []
    assert "" not in manners.sent()


@pytest.mark.parametrize("collapse", ["max", "first", "sum"])
def test_e13_passages_never_count_twice(collapse):
    """E13: k distinct documents, however many passages each has; recall of 1 at most."""
    system = parse_system(f'chunked(bm25, words=10, overlap=5, collapse="{collapse}")')
    run = system.index(Corpus.of(LONG)).search(Queries.of({"q": "river"}), 8)
    assert sorted(run.to_dict()["q"]) == sorted(LONG)
    scores = score_run(Qrels.of({"q": dict.fromkeys(LONG, 1)}), run, ["R@5", "R@8"])
    assert scores.mean_values().tolist() == [5 / 8, 1.0]


@dataclass(frozen=True)
class Answers:
    """A re-ranker that answers with what it is given, whatever was asked."""

    values: tuple[float, ...]
    depth: int = 7

    def describe(self):
        return {}

    def ready(self, corpus, context=None):
        return self

    def costs(self):
        return Costs()

    def scores(self, queries, candidates, context=None):
        return np.array(self.values)


def reranked(*values: float) -> dict[str, float]:
    system = Pipeline(BM25(), Answers(values))
    return system.index(Corpus.of(TEXTS)).search(Queries.of({"q": "river"}), 10).to_dict()["q"]


def test_e14_a_reranker_that_answers_too_little_is_refused():
    """E14: 4 scores for 7 candidates, or one that is no number: counted, and an error; nothing is filled up."""
    with pytest.raises(BadRanking, match="4 scores for 7 candidates"):
        reranked(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(BadRanking, match=r"1 of 7 scores are not finite.*query 'q', document 'd"):
        reranked(1.0, 2.0, float("nan"), 4.0, 5.0, 6.0, 7.0)


def test_e14_a_reranker_that_says_nothing_says_so():
    """E14: constants are loud, and their order is that of identifiers, not the one they were given in."""
    with pytest.warns(RankingWarning, match="scores all candidates of 1 of 1 queries the same"):
        found = reranked(*[0.5] * 7)
    assert list(found) == sorted(TEXTS, reverse=True)
