"""What nothing has scored stands in a drawn order: no identifier, no file and no failure decides a score."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving
from weir.core.order import drawn_keys
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import RankingWarning
from weir.measures import score_run
from weir.systems import Retriever, parse_system
from weir.systems.compose import as_reranker
from weir.systems.rerank.reranking import settled_by_place
from weir.systems.restricted import LOWEST_SCORE

QUERIES, POOL, RELEVANT = 150, 40, 4
MEASURES = ("nDCG@10", "RR", "AP")

NAMES = {
    "side": lambda q, n, good: f"{'pro' if good else 'con'}-{q:03}-{n:02}",
    "topic first": lambda q, n, good: f"{q:03}/{'yes' if good else 'no'}/{n}",
    "last letter": lambda q, n, good: f"d{q:03}{n:02}{'z' if good else 'a'}",
    "numbers": lambda q, n, good: str(1000 * q + n),  # the relevant ones are the first of each thousand
    "far apart": lambda q, n, good: f"{'z' * 9 if good else 'a' * 9}{q}.{n}",
    "long": lambda q, n, good: f"https://example.org/{'right' if good else 'wrong'}/{q}/{n}" + "x" * 40,
}


def betraying(name: str) -> weir.Dataset:
    """Pools of which the relevant documents have names of their own, and stand first in every list."""
    rule = NAMES[name]
    pools = {f"q{q}": [rule(q, n, n < RELEVANT) for n in range(POOL)] for q in range(QUERIES)}
    documents = dict.fromkeys((d for pool in pools.values() for d in pool), "a meadow")
    judged = {q: {d: int(n < RELEVANT) for n, d in enumerate(pool)} for q, pool in pools.items()}
    return weir.Dataset.of(documents, dict.fromkeys(pools, "river"), judged, name="pools", candidates=pools)


@cache
def chance(measure: str, seed: int = 5) -> tuple[float, float]:
    """Between which bounds 99.8 of 100 means lie of rankings in an order drawn by numpy's generator."""
    rng, names = np.random.default_rng(seed), [f"{n:02}" for n in range(POOL)]
    qrels = Qrels.of({f"q{q}": {d: int(n < RELEVANT) for n, d in enumerate(names)} for q in range(2000)})
    run = Run.of({q: rng.permutation(names).tolist() for q in qrels.queries})
    values = score_run(qrels, run, [measure]).values[0]
    means = rng.choice(values, (20_000, QUERIES)).mean(axis=1)
    low, high = np.quantile(means, [0.001, 0.999])
    return float(low), float(high)


def within_chance(dataset: weir.Dataset, system: Retriever) -> None:
    searcher = system.index(dataset.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        run = searcher.search(dataset.queries, 1000)
    assert (np.diff(run.ptr) == POOL).all()
    scores = score_run(dataset.qrels, run, list(MEASURES))
    assert scores.tied == 0  # another tool that reads the file scores the same order
    for measure, mean in zip(MEASURES, scores.mean_values(), strict=True):
        low, high = chance(measure)
        assert low < mean < high, (measure, mean, low, high)


def nothing(queries: list[str], documents: list[str]) -> list[float]:
    """A re-ranker that fails on every document, and says so by the same score."""
    return [-1.5] * len(documents)


def unable(queries: list[str], documents: list[str]) -> list[float]:
    """One that can score no pair, as an encoder to which all texts are empty."""
    return [LOWEST_SCORE] * len(documents)


@pytest.mark.parametrize("name", NAMES)
def test_a_pool_scores_as_chance_whatever_identifiers_and_lists_say(name: str) -> None:
    within_chance(betraying(name), parse_system("pool"))


@pytest.mark.parametrize("name", ["side", "numbers"])
@pytest.mark.parametrize(
    "reranker",
    ["score(bm25)", "score(bm25, depth=7)", "score(rm3) >> score(bm25)", nothing, unable],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_a_reranker_that_fails_on_every_document_scores_as_chance(name: str, reranker: object) -> None:
    named = isinstance(reranker, str)
    system = parse_system(f"pool >> {reranker}") if named else parse_system("pool") >> as_reranker(reranker)
    within_chance(betraying(name), system)


def test_a_stored_run_that_ranks_nothing_is_no_order_either(tmp_path) -> None:
    dataset = betraying("side")
    pools = dict(zip(dataset.queries.ids, dataset.queries.metadata.candidates.tolist(), strict=True))
    Run.of({q: dict.fromkeys(pool, 0.0) for q, pool in pools.items()}).save(tmp_path / "pool.trec")
    stored = parse_system(f'run("{tmp_path}/pool.trec")')
    within_chance(dataset, stored >> as_reranker(nothing))
    Run.of({q: pool[::-1] for q, pool in pools.items()}).save(tmp_path / "ranked.trec")
    ranked = parse_system(f'run("{tmp_path}/ranked.trec")')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        run = (ranked >> as_reranker(nothing, depth=3)).index(dataset.corpus).search(dataset.queries, POOL)
    assert all(list(run.to_dict()[q])[3:] == pool[::-1][3:] for q, pool in pools.items())


@pytest.mark.parametrize("method", ['"score"', '"listwise", window=8', '"setwise", top=3'])
@pytest.mark.parametrize("answer", ["", "I cannot say."])
def test_a_model_that_answers_nothing_scores_as_chance(tmp_path, monkeypatch, method, answer) -> None:
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    weir.settings.settings.cache_clear()
    forget_spending()
    with chat_serving() as (url, manners):
        manners.say = lambda system, user: answer
        named = f'pool >> llm({method}, depth=12, model="{url}/v1#m", concurrency=16)'
        within_chance(betraying("side"), parse_system(named))
        assert manners.asked
    weir.settings.settings.cache_clear()
    forget_spending()


def test_the_order_is_the_same_everywhere_and_another_for_each_query() -> None:
    queries, documents = Ids.of(["q1", "q2", "ü"]).strings, Ids.of([f"d{n}" for n in range(50)]).strings
    query, doc = np.repeat(np.arange(3), 50), np.tile(np.arange(50), 3)
    keys = drawn_keys(queries, documents, query, doc)
    assert len(np.unique(keys)) == 150
    orders = {tuple(np.argsort(keys[50 * q : 50 * q + 50]).tolist()) for q in range(3)}
    assert len(orders) == 3
    assert keys[:2].tolist() == [
        10724425227918990867,
        1566833587350550124,
    ]  # of any process, platform and version of numpy
    alone = drawn_keys(Ids.of(["q2"]).strings, Ids.of(["d7", "d3"]).strings, np.zeros(2, int), np.arange(2))
    assert alone.tolist() == [int(keys[57]), int(keys[53])]
    code = (
        "import weir; from weir.systems import parse_system; names = [f'd{n}' for n in range(9)];"
        "d = weir.Dataset.of(dict.fromkeys(names, 'x'), {'q': 'y'}, {'q': ['d1']}, candidates={'q': names});"
        "print(list(parse_system('pool').index(d.corpus).search(d.queries, 9).to_dict()['q']))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_documents_that_cannot_be_scored_stand_behind_those_that_can() -> None:
    dataset = betraying("side")

    def some(queries: list[str], documents: list[str]) -> list[float]:
        return [LOWEST_SCORE if n % 2 else float(n) - 9 for n, _ in enumerate(documents)]

    pool = parse_system("pool").index(dataset.corpus).search(dataset.queries, POOL)
    run = (parse_system("pool") >> as_reranker(some)).index(dataset.corpus).search(dataset.queries, POOL)
    drawn, ranked = (list(one.to_dict()["q3"]) for one in (pool, run))
    assert ranked == [*reversed(drawn[0::2]), *drawn[1::2]]
    assert (np.diff(run.score[:POOL].astype(np.float32)) < 0).all()


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e38, -1e20, 0.0])
def test_equal_scores_fall_in_the_order_given_and_others_stay(size: float) -> None:
    values = size * np.array([2, 2, 3, 1.75, 2, 1])
    settled = settled_by_place(values, np.array([0, 6]))
    assert np.argsort(-settled).tolist() == (
        [2, 0, 1, 4, 3, 5] if size > 0 else np.argsort(-values, kind="stable").tolist()
    )
    assert (np.diff(np.sort(settled.astype(np.float32))) > 0).all()
    if size > 0:
        assert settled[[2, 0, 3, 5]].tolist() == values[[2, 0, 3, 5]].tolist()
    assert settled_by_place(np.array([1.5, 1.0, 1.25]), np.array([0, 1, 1, 3])).tolist() == [1.5, 1.0, 1.25]
    assert settled_by_place(np.zeros(0), np.array([0, 0])).tolist() == []


def test_places_of_a_first_stage_that_ranked_stay_as_they_are() -> None:
    dataset = betraying("side")
    rule = as_reranker(nothing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        run = (weir.BM25() >> rule).index(dataset.corpus).search(weir.Queries.of({"x": "meadow"}), 10)
    assert list(run.to_dict()["x"]) == sorted(dataset.corpus.ids.tolist(), reverse=True)[:10]


@given(
    st.lists(
        st.lists(st.sampled_from([LOWEST_SCORE, -3e30, -1.0, 0.0, 1e-9, 0.1, 0.3, 7.25, 1e12]), max_size=9),
        max_size=5,
    )
)
def test_the_order_is_that_of_scores_then_places(queries: list[list[float]]) -> None:
    ptr = np.concatenate([[0], np.cumsum([len(q) for q in queries])]).astype(np.int64)
    settled = settled_by_place(np.array([v for q in queries for v in q], np.float64), ptr)
    for start, own in zip(ptr.tolist(), queries, strict=False):
        score = settled[start : start + len(own)]
        expected = sorted(range(len(own)), key=lambda place: (-own[place], place))
        assert np.argsort(-score).tolist() == expected
        assert (np.diff(score[expected].astype(np.float32)) < 0).all()
