"""Candidates and exclusions: every system answers as if it had ranked all documents and the others had left before k."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.systems import parse_system, restricted
from weir.systems.composite import rankings
from weir.systems.fusion.fuse import Pool, fused
from weir.systems.fusion.methods import Fusion
from weir.systems.protocol import Retriever

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*its vectors are compared by cosine:weir.errors.RankingWarning"
)

WORDS = ("weir", "dam", "river", "flow", "level", "gate")
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
documents = st.lists(texts, min_size=1, max_size=24).map(
    lambda rows: {f"d{n}": row for n, row in enumerate(rows)}
)
listed = st.one_of(st.none(), st.lists(st.integers(0, 26).map("d{}".format), max_size=30))
asked = st.lists(st.tuples(texts, listed, listed), min_size=1, max_size=5)


def vectors(given: list[str]) -> np.ndarray:
    """Counts of words: many documents tie."""
    return np.array([[1.0 + text.split().count(word) for word in WORDS] for text in given])


class Shortest:
    """Another's object, which is asked once: the shortest documents first, all of the same score tied."""

    def index(self, given: dict[str, str]) -> None:
        self.given = given

    def search(self, queries: dict[str, str], k: int) -> dict[str, dict[str, float]]:
        best = sorted(self.given, key=lambda name: (-len(self.given[name]), name), reverse=True)[:k]
        return {query: {name: -float(len(self.given[name])) for name in best} for query in queries}


SYSTEMS: Mapping[str, Retriever] = {
    "bm25": parse_system("bm25"),
    "multifield": parse_system('bm25("lucene-multifield")'),
    "rm3": parse_system("rm3(terms=4)"),
    "chunked": parse_system("chunked(bm25, words=2, overlap=1)"),
    "dense": weir.Dense(vectors),
    "function": weir.system(Shortest()),
}


def queries_of(rows: list[tuple[str, list[str] | None, list[str] | None]]) -> tuple[Queries, Queries]:
    """(with lists, without)."""
    made: dict[str, object] = {}
    for n, (text, candidates, excluded) in enumerate(rows):
        lists = {"candidates": candidates, "excluded": excluded}
        made[f"q{n}"] = {"text": text} | {name: one for name, one in lists.items() if one is not None}
    plain = {f"q{n}": text for n, (text, *_) in enumerate(rows)}
    return Queries.of(made), Queries.of(plain)


def ranked(run: Mapping[str, Mapping[str, float]]) -> dict[str, list[tuple[str, float]]]:
    """Documents and scores in their order."""
    return {query: list(ranking.items()) for query, ranking in run.items()}


def naive(run: Run, rows: list[tuple[str, list[str] | None, list[str] | None]], k: int) -> dict[str, dict]:
    """The ranking of everything without what may not be ranked, cut at k."""
    kept = {}
    for (query, ranking), (_, candidates, excluded) in zip(run.to_dict().items(), rows, strict=True):
        left = {
            d: s
            for d, s in ranking.items()
            if (not candidates or d in candidates) and d not in (excluded or ())
        }
        kept[query] = dict(list(left.items())[:k])
    return kept


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=60)
@given(corpus=documents, rows=asked, k=st.integers(1, 30))
def test_a_system_ranks_what_may_be_ranked_as_if_it_had_ranked_everything(name, corpus, rows, k):
    system, (restricting, plain) = SYSTEMS[name], queries_of(rows)
    with pytest.MonkeyPatch.context() as patched:  # so that a few documents take several steps and blocks
        patched.setattr(restricted, "CANDIDATE_DEPTH", 1)
        patched.setattr(restricted, "GROWTH_FACTOR", 2)
        patched.setattr(restricted, "BLOCK_ROWS", 8)
        searcher = system.index(Corpus.of(corpus))
        everything = searcher.search(plain, len(corpus))
        found = rankings(searcher, restricting, k, system)
    assert ranked(found.to_dict()) == ranked(naive(everything, rows, k))
    assert found.name == everything.name


@settings(max_examples=60)
@given(corpus=documents, rows=asked, k=st.integers(1, 30))
def test_a_fusion_fuses_what_may_be_ranked(corpus, rows, k):
    held, (restricting, plain) = Corpus.of(corpus), queries_of(rows)
    every = [parse_system(name).index(held).search(plain, len(corpus)) for name in ("bm25", "rm3(terms=4)")]
    left = Pool.of([Run.of(naive(run, rows, len(corpus))) for run in every])
    system = parse_system("rrf(bm25, rm3(terms=4))")
    found = rankings(system.index(held), restricting, k, system)
    assert ranked(found.to_dict()) == ranked(fused(left, Fusion("rrf"), k, str(system)).to_dict())


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
@settings(max_examples=60)
@given(corpus=documents, rows=asked.filter(lambda rows: any(row[1] for row in rows)), k=st.integers(1, 30))
def test_a_pool_is_of_the_candidates_and_a_reranker_orders_all_of_it(corpus, rows, k):
    held, (restricting, _) = Corpus.of(corpus), queries_of(rows)
    known = [
        [d for d in dict.fromkeys(candidates or ()) if d in corpus and d not in (excluded or ())]
        for _, candidates, excluded in rows
    ]
    pool = rankings(parse_system("pool").index(held), restricting, k, "pool").to_dict()
    assert [len(ranking) for ranking in pool.values()] == [min(k, len(docs)) for docs in known]
    assert all(set(ranking) <= set(docs) for ranking, docs in zip(pool.values(), known, strict=True))
    scored = parse_system("pool >> score(bm25)")
    answer = rankings(scored.index(held), restricting, len(corpus), scored).to_dict()
    assert [set(ranking) for ranking in answer.values()] == list(map(set, known))
