"""A funnel accounts for every relevant document, once, and its ceiling is what an oracle reaches."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.measures import score_run
from weir.plugins.questions.funnel import RANKING_KINDS, FunnelRules, StageRanking, funnel_of
from weir.systems.compose import Filtered, Pipeline

# Functions that find little are asked on, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
DOCUMENTS = [f"d{n:02}" for n in range(12)]
QUERIES = ["q1", "q2", "q3", "q4"]
gold = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1, max_size=9),
    min_size=1,
).filter(lambda qrels: any(max(grades.values()) > 0 for grades in qrels.values()))


def pairs(qrels: dict, rel: int = 1) -> set[tuple[str, str]]:
    return {(q, d) for q, grades in qrels.items() for d, grade in grades.items() if grade >= rel}


def run_with(documents: set[tuple[str, str]], draw: np.random.Generator) -> Run:
    """Rankings of these documents, in any order, for all queries."""
    return Run.of({q: {d: float(draw.random()) for p, d in documents if p == q} for q in QUERIES})


def named(stages) -> Counter:
    return Counter((lost.query, lost.document) for one in stages for lost in one.losses)


@given(gold, st.data(), st.integers(0, 2**32 - 1))
def test_planted_losses_are_found_to_the_document(qrels, data, seed):
    """Each relevant document is lost where the plan says: in a branch or in all, at a cut, at a stage, or nowhere."""
    draw = np.random.default_rng(seed)
    relevant, depth = pairs(qrels), data.draw(st.integers(2, 5))
    plan = {pair: int(draw.integers(-1, depth)) for pair in sorted(relevant)}
    branch = {
        pair: int(draw.integers(0, 4)) for pair in sorted(relevant)
    }  # bits: which of two branches has it
    noise = {(q, d) for q in QUERIES for d in DOCUMENTS} - {
        (q, d) for q, grades in qrels.items() for d in grades
    }
    alive = [{pair for pair, at in plan.items() if at < 0 or at > n} for n in range(depth)]
    found = {pair for pair in alive[0] if branch[pair]}
    parts = [{pair for pair in found if branch[pair] & bit} for bit in (1, 2)]
    branches = tuple(
        (StageRanking(f"b{n}", "search", run_with(part | noise, draw)),) for n, part in enumerate(parts)
    )
    stages = [StageRanking("fusion", "fusion", run_with(found | noise, draw), branches)]
    kinds = data.draw(st.lists(st.sampled_from(["cut", "rerank"]), min_size=depth, max_size=depth))
    for n in range(1, depth):
        stages.append(StageRanking(f"s{n}", kinds[n], run_with((alive[n] & found) | noise, draw)))
    funnel = funnel_of(stages, Qrels.of(qrels))
    assert named(funnel.whole) == Counter(relevant - (alive[-1] & found))
    for n, one in enumerate(funnel.whole):
        lost = (relevant - found) if n == 0 else (alive[n - 1] - alive[n]) & found
        assert named([one]) == Counter(lost)
        assert one.lost == len(lost)
    for one, part, other in zip(funnel.stages, parts, reversed(parts), strict=False):
        assert (one.left, one.lost, one.only) == (len(part), len(relevant - part), len(part - other))
    assert funnel.relevant == funnel.whole[-1].left + sum(one.lost for one in funnel.whole) == len(relevant)


@st.composite
def systems(draw, levels: int = 3):
    """A system of functions, fusions, filters and re-rankers, whose functions order documents by a drawn table."""
    seed = draw(st.integers(0, 10**9))
    kind = draw(st.sampled_from(["function", "fusion", "filter", "rerank"])) if levels else "function"
    if kind == "function":
        return searching(seed, draw(st.integers(1, 12)))
    first = draw(systems(levels - 1))
    if kind == "fusion":
        depth = draw(st.sampled_from([None, 2, 5]))
        return weir.rrf(first, draw(systems(levels - 1)), depth=depth)
    if kind == "filter":
        return Filtered(first, draw(st.sampled_from(["half == 0", "third != 1"])))
    return first >> weir.reranker(
        scoring(seed), depth=draw(st.sampled_from([None, 1, 3, 6])), name=f"by{seed}", version="1"
    )


def searching(seed: int, most: int):
    """A system that ranks the first documents of a drawn table."""

    def search(queries, k):
        table = np.random.default_rng(seed).random((len(QUERIES), len(DOCUMENTS)))
        return {
            q: dict(zip(DOCUMENTS[:most], table[QUERIES.index(q)].tolist(), strict=False)) for q in queries
        }

    return weir.system(search, name=f"find{seed}n{most}", version="1")


def scoring(seed: int):
    def score(queries, documents):
        table = np.random.default_rng(seed + 1).random((len(QUERIES), len(DOCUMENTS)))
        return [table[QUERIES.index(q), DOCUMENTS.index(d)] for q, d in zip(queries, documents, strict=True)]

    return score


def collection(qrels: dict) -> weir.Dataset:
    """A collection whose texts are its identifiers, so that a re-ranker knows what it scores."""
    documents = {d: {"text": d, "half": n % 2, "third": n % 3} for n, d in enumerate(DOCUMENTS)}
    return weir.Dataset.of(documents, {q: q for q in qrels}, qrels)


def really_run(system, dataset: weir.Dataset, k: int) -> Run:
    return system.index(dataset.corpus).search(dataset.queries, k)


@settings(max_examples=40)
@given(gold, systems(), st.integers(1, 6), st.sampled_from([1, 2]))
def test_losses_and_recall_add_up_to_one_and_scores_are_those_of_the_system_run(qrels, system, k, rel):
    if not pairs(qrels, rel):
        return
    dataset, rules = collection(qrels), weir.FunnelRules(k=k, measure=f"nDCG@{k}", rel=rel)
    [funnel] = weir.funnel(dataset, system, rules)
    run = really_run(system, dataset, k)
    found = pairs(qrels, rel) & {(q, d) for q, ranking in run.to_dict().items() for d in ranking}
    last = funnel.whole[-1]
    assert last.left == len(found)
    assert last.left + sum(one.lost for one in funnel.whole) == funnel.relevant == len(pairs(qrels, rel))
    assert named(funnel.whole) == Counter(pairs(qrels, rel) - found)
    scores = score_run(dataset.qrels, run, [f"R(rel={rel})", f"nDCG@{k}"])
    assert last.share * funnel.queries / len(qrels) == pytest.approx(scores.mean_values()[0], abs=1e-12)
    assert last.value == scores.mean_values()[1]
    ceilings = [one.ceiling for one in funnel.whole]
    assert all(low <= high for high, low in zip(ceilings, ceilings[1:], strict=False))
    for branch in {one.branch for one in funnel.stages} - {""}:
        own = [one for one in funnel.stages if one.branch == branch]
        assert own[-1].left + sum(one.lost for one in own) == own[0].left + own[0].lost


@settings(max_examples=40)
@given(gold, systems(levels=2), st.integers(1, 3), st.sampled_from([None, 3, 6]))
def test_the_ceiling_is_the_score_of_an_oracle_that_is_run(qrels, system, k, depth):
    def oracle(queries, documents):
        return [qrels[q].get(d, 0) for q, d in zip(queries, documents, strict=True)]

    dataset, name = collection(qrels), f"nDCG@{k}"
    whole = Pipeline(system, weir.reranker(oracle, depth=depth, name="oracle", version="1"))
    [funnel] = weir.funnel(dataset, whole, weir.FunnelRules(k=k, measure=name))
    *_, reaching, reranked, last = funnel.whole
    reached = score_run(dataset.qrels, really_run(whole, dataset, k), [name]).mean_values()[0]
    assert reaching.ceiling == pytest.approx(reached, abs=1e-12)
    assert reranked.value == reranked.ceiling == last.value == reached


@given(
    gold,
    st.integers(0, 2**32 - 1),
    st.sampled_from(["nDCG@3", "AP@3", "RR@3", "P@3", "R@3", "Success@3", "ERR@3"]),
)
def test_no_order_beats_the_perfect_one(qrels, seed, measure):
    draw = np.random.default_rng(seed)
    every = {(q, d) for q in qrels for d in draw.choice(DOCUMENTS, 5, replace=False).tolist()}
    rules = FunnelRules(k=3, measure=measure)
    ceiling = (
        funnel_of([StageRanking("s", "search", run_with(every, draw))], Qrels.of(qrels), rules)
        .whole[0]
        .ceiling
    )
    for _ in range(10):
        value = score_run(Qrels.of(qrels), run_with(every, draw).top(3), [measure]).mean_values()[0]
        assert value <= ceiling + 1e-12


def test_a_document_that_a_later_stage_has_was_not_lost_before():
    stages = [
        StageRanking(str(n), "rerank", Run.of(run))
        for n, run in enumerate(({"q": ["a"]}, {"q": ["b"]}, {"q": ["c"]}))
    ]
    funnel = funnel_of(stages, Qrels.of({"q": {"a": 1, "b": 1, "c": 1, "d": 1}}))
    assert [(one.left, one.lost) for one in funnel.whole] == [(3, 1), (2, 1), (1, 1)]
    assert [[lost.document for lost in one.losses] for one in funnel.whole] == [["d"], ["a"], ["b"]]
    assert math.isnan(funnel.whole[0].low)  # one query has no interval
    assert set(RANKING_KINDS) == {"search", "fusion", "rerank"}


@settings(max_examples=40)
@given(
    gold,
    st.lists(
        st.sets(st.tuples(st.sampled_from(QUERIES), st.sampled_from(DOCUMENTS)), min_size=4),
        min_size=2,
        max_size=3,
    ),
)
def test_rankings_that_are_no_pipeline_are_called_so(qrels, found):
    found = [one | {(query, "z") for query in QUERIES} for one in found]
    runs = [run_with(one, np.random.default_rng(1)) for one in found]
    judged = {(query, doc) for query, grades in qrels.items() for doc in grades}
    grows = [len((new - old) & judged) for old, new in zip(found, found[1:], strict=False)]
    said = [
        str(note)
        for note in weir.funnel_of_rankings(qrels, *runs).notes()
        if "no stage of one pipeline" in str(note)
    ]
    assert len(said) == sum(map(bool, grows))
    assert all(
        f"returns {count} judged document" in note
        for count, note in zip(filter(None, grows), said, strict=True)
    )
