"""`search` of an index ranks what the queries permit, as a run does."""

from dataclasses import replace

import numpy as np
import pytest

import weir
from weir.systems.restricted import restricted_search, unrestricted

NUMBERS = range(40)
CORPUS = {f"d{n}": {"text": f"alpha word{n % 7} {'beta ' * (n % 3)}text", "year": 2000 + n} for n in NUMBERS}
QUERIES = {
    "candidates": {"text": "alpha word3", "candidates": ["d7", "d30", "d31"]},
    "excluded": {"text": "beta text", "excluded": ["d2", "d5", "d8"]},
    "filtered": {"text": "alpha", "filter": "year > 2033"},
    "free": {"text": "word5"},
}
RANKED = {query: {doc: 40.0 - n for n, doc in enumerate(CORPUS)} for query in QUERIES}


class Model:
    def encode(self, texts, **_):
        return np.array([[len(text) % 7, len(text) % 5, 1.0] for text in texts], np.float32)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    import json

    folder = tmp_path_factory.mktemp("permitted")
    rows = {
        "corpus.jsonl": [
            {"_id": doc, "text": one["text"], "metadata": {"year": one["year"]}}
            for doc, one in CORPUS.items()
        ],
        "queries.jsonl": [
            {"_id": query, "text": one["text"], "metadata": {k: v for k, v in one.items() if k != "text"}}
            for query, one in QUERIES.items()
        ],
    }
    for name, listed in rows.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in listed))
    (folder / "qrels").mkdir()
    pairs = "".join(f"{query}\td30\t1\n" for query in QUERIES)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{pairs}")
    weir.Run.of(RANKED, "stored").save(folder.parent / "stored.trec")
    return weir.load(str(folder))


SYSTEMS = {
    "bm25": weir.BM25,
    "bm25f": lambda: weir.parse_system("bm25f"),
    "rm3": weir.RM3,
    "dense": lambda: weir.Dense(weir.encoder(Model(), similarity="dot", version="1")),
    "function": lambda: weir.system(lambda queries, k: {q: RANKED[q] for q in RANKED}, name="own"),
    "chunked": lambda: weir.parse_system("chunked(bm25, words=2, overlap=0)"),
    "rrf": lambda: weir.parse_system("rrf(bm25, rm3)"),
    "filtered": lambda: weir.parse_system('filtered(bm25, "year > 2003")'),
    "reranked": lambda: weir.parse_system("bm25 >> score(rm3)"),
    "run": None,
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.filterwarnings("ignore")
def test_a_search_in_python_ranks_only_what_may_be_ranked(dataset, name):
    stored = dataset.layout.root.parent / "stored.trec"
    system = weir.parse_system(f'run("{stored}")') if name == "run" else SYSTEMS[name]()
    searcher, queries = system.index(dataset.corpus), dataset.queries
    run = searcher.search(queries, k=5)
    assert set(run["candidates"]) <= {"d7", "d30", "d31"}
    assert set(run["excluded"]).isdisjoint(QUERIES["excluded"]["excluded"])
    assert {CORPUS[doc]["year"] > 2033 for doc in run["filtered"]} == {True}
    assert run.to_dict() == restricted_search(searcher, queries, 5).to_dict()
    free = searcher.search(unrestricted(queries), k=40)
    for query in ("excluded", "free"):
        allowed = [doc for doc in free[query] if doc not in QUERIES[query].get("excluded", ())]
        assert list(run[query])[:5] == allowed[:5]


def test_filters_that_no_document_answered_are_refused(dataset):
    queries = replace(dataset.queries, metadata=replace(dataset.queries.metadata, permitted=None))
    with pytest.raises(weir.errors.BadValue, match="take them from a Dataset"):
        weir.BM25().index(dataset.corpus).search(queries)
