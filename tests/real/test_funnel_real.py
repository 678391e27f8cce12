"""Funnels of real collections: exact accounts, and the scores that the systems have."""

from __future__ import annotations

import pytest

import weir
from weir.measures import score_run

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.parametrize(("name", "relevant"), [("scifact", 339), ("nfcorpus", 12_334)])
def test_every_relevant_document_is_left_or_lost_once(shared, name, relevant):
    system = "rrf(bm25, rm3) >> score(rm3, depth=50)"
    dataset = weir.load(shared / "data" / name)
    [funnel] = weir.funnel(dataset, system)
    assert funnel.relevant == relevant
    assert funnel.whole[-1].left + sum(one.lost for one in funnel.whole) == relevant
    lost = [(one.query, one.document) for stage in funnel.whole for one in stage.losses]
    assert len(lost) == len(set(lost)) == relevant - funnel.whole[-1].left
    run = weir.systems.parse_system(system).index(dataset.corpus).search(dataset.queries, 10)
    recall, ndcg = score_run(dataset.qrels, run, ["R@10", "nDCG@10"]).mean_values()
    assert (funnel.whole[-1].share, funnel.whole[-1].value) == (pytest.approx(recall, abs=1e-12), ndcg)


# An oracle gives all documents of a query without a relevant one the same grade, which is said.
@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_the_ceiling_of_a_cut_is_what_an_oracle_reaches(shared):
    dataset = weir.load(shared / "data" / "scifact")
    asked = dict(zip(dataset.queries.text.tolist(), dataset.queries.ids.tolist(), strict=True))
    named = dict(zip(dataset.corpus.view("title text").tolist(), dataset.corpus.ids.tolist(), strict=True))
    grades = dataset.qrels.to_dict()

    def oracle(queries, documents):
        return [grades[asked[q]].get(named[d], 0) for q, d in zip(queries, documents, strict=True)]

    system = weir.BM25() >> weir.reranker(oracle, depth=100, name="oracle", version="1")
    [funnel] = weir.funnel(dataset, system)
    bm25, cut, reranked, last = funnel.whole
    assert (bm25.kind, cut.name, last.name) == ("search", "first 100", "first 10")
    run = system.index(dataset.corpus).search(dataset.queries, 10)
    assert (
        cut.ceiling
        == reranked.value
        == last.value
        == score_run(dataset.qrels, run, ["nDCG@10"]).mean_values()[0]
    )
