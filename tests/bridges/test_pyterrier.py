"""PyTerrier: transformers here and systems there give one score, in its pipelines and experiments."""

from __future__ import annotations

import pytest

from tests.bridges.conftest import foreign

pt = foreign("pyterrier")

import pandas as pd  # noqa: E402 - behind the skip
from pyterrier.measures import AP, nDCG  # noqa: E402 - behind the skip

import weir  # noqa: E402 - behind the skip
from weir.plugins.bridges import from_pyterrier, to_pyterrier  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend
WANTED = ["nDCG@10", "AP"]


@pytest.fixture
def topics(brook):
    return pd.DataFrame({"qid": list(brook.queries.ids), "query": list(brook.queries.text), "kind": "fact"})


def here(system, brook):
    run = system.index(brook.corpus).search(brook.queries, 1000)
    return list(weir.evaluate(brook.qrels, run, WANTED).means().values())


def there(transformer, brook, topics):
    qrels = brook.qrels.to_frame().rename(columns={"query": "qid", "doc": "docno", "grade": "label"})
    found = pt.Experiment([transformer], topics, qrels, [nDCG @ 10, AP], names=["one"])
    return [found["nDCG@10"][0], found["AP"][0]]


def test_a_system_scores_in_an_experiment_as_here(brook, topics):
    transformer = to_pyterrier(weir.BM25(), brook)
    assert there(transformer, brook, topics) == pytest.approx(here(weir.BM25(), brook), abs=1e-9)
    frame = transformer(topics)
    assert list(frame.columns) == ["qid", "docno", "score", "rank", "query", "kind"]
    assert frame.groupby("qid")["rank"].min().eq(0).all()
    assert pt.inspect.transformer_inputs(transformer) == [
        ["qid", "docno", "query", "score"],
        ["qid", "query"],
    ]


def test_frames_with_documents_are_ordered_by_the_systems_own_scores(brook, topics):
    first, second = to_pyterrier(weir.BM25(), brook.corpus, 20), to_pyterrier(weir.RM3(), brook)
    run = weir.BM25().index(brook.corpus).search(brook.queries, 20)
    expected = weir.system(lambda queries, k: run, name="first") >> weir.Score(weir.RM3())
    assert there(first >> second, brook, topics) == pytest.approx(here(expected, brook), abs=1e-9)
    alone = to_pyterrier(weir.Score(weir.RM3()), brook)
    assert there(first >> alone, brook, topics) == pytest.approx(here(expected, brook), abs=1e-9)
    assert len((first % 3)(topics)) == 3 * len(topics)
    with pytest.raises(pt.validate.InputValidationError):
        alone(topics)


def test_a_transformer_scores_here_as_there(brook, topics):
    transformer = to_pyterrier(weir.RM3(), brook) % 10
    system = from_pyterrier(transformer, name="theirs")
    assert str(system) == "theirs"
    assert here(system, brook) == pytest.approx(there(transformer, brook, topics), abs=1e-9)


def test_a_transformer_of_documents_is_a_reranker(brook):
    lengths = pt.apply.doc_score(lambda row: float(len(row["text"])))
    pipeline = weir.BM25() >> from_pyterrier(lengths, reranks=True, name="longest")

    def longest(queries, documents):
        return [float(len(text)) for text in documents]

    assert here(pipeline, brook) == here(weir.BM25() >> weir.reranker(longest), brook)


def test_what_is_no_transformer_is_refused():
    with pytest.raises(weir.WeirError, match="found 3; expected a transformer of PyTerrier"):
        from_pyterrier(3)
    with pytest.raises(weir.WeirError, match=r"is a class|found <class"):
        from_pyterrier(pt.Transformer)
