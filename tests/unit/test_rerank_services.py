"""Re-ranking services against a local server that checks what it is asked and misbehaves on purpose."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.kills import killed_unanswered
from tests.unit.brooklet import write_collection
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import cut, rerank_serving, score_of, status
from weir.cli.main import main
from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists
from weir.core.query_metadata import QueryMetadata
from weir.errors import BadValue, ServiceError, UnknownName
from weir.experiment.experiment import Experiment
from weir.plugins.servers.service_reranker import PROBE_QUERY, ServiceReranker
from weir.services.requests import Limits, paid
from weir.settings import settings
from weir.systems import BM25, Context, parse_system

KEY = "sk-very-secret-0123456789"
CORPUS = Corpus.of({f"d{n:03}": f"river weir {n} " + "dam " * (n % 7) for n in range(150)})
ASKED = Queries.of({"q1": "river", "q2": "weir 7", "q3": "xylophone", "q4": "river"})
SERVICES = {
    "cohere:rerank-v3.5": "/cohere/v2",
    "voyage:rerank-2.5": "/voyage/v1",
    "jina:jina-reranker-v2-base-multilingual": "/jina/v1",
    "tei:bge": "/tei",
    "vllm:BAAI/bge-reranker-v2-m3": "/vllm",
}


@pytest.fixture
def server(monkeypatch):
    """(address, manners); nothing was asked or spent before, and nobody waits between attempts."""
    monkeypatch.setenv("WEIR_KEY_TEST", KEY)
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(attempts=3, pause=0.001, timeout=20)))
    forget_spending()
    with rerank_serving() as found:
        yield found
    forget_spending()


def system(url, model="cohere:rerank-v3.5", depth=20, **given):
    given = {"base": url + SERVICES.get(model, ""), "key": "WEIR_KEY_TEST"} | given
    return BM25() >> weir.systems.RERANKERS.get("rerank")(model, depth=depth, **given)


def expected(ranking, query, model="m"):
    text = ASKED.text[ASKED.ids.tolist().index(query)]
    texts = dict(zip(CORPUS.ids.tolist(), CORPUS.text.tolist(), strict=True))
    return {doc: np.float32(score_of(text, texts[doc], model)) for doc in ranking}


@pytest.mark.parametrize("model", SERVICES)
def test_every_service_is_asked_as_it_describes_itself_and_read(server, model):
    url, manners = server
    searcher = system(url, model, depth=100).index(CORPUS)
    run = searcher.search(ASKED, 100).to_dict()
    name = "m" if model.startswith("tei") else model.partition(":")[2]
    for query, ranking in run.items():
        assert ranking == expected(ranking, query, name), query
    assert [len(ranking) for ranking in run.values()] == [100, 100, 0, 100]
    assert manners.wrong == []
    assert {(path, key) for path, key, _ in manners.asked} == {(SERVICES[model] + "/rerank", f"Bearer {KEY}")}
    assert len(manners.pairs()) == len(set(manners.pairs())) == 200  # q4 asks what q1 asked
    [use] = [use.facts() for use in searcher.costs().services]
    assert use["answered"] == len(manners.asked) - 1 == (8 if model.startswith("tei") else 2)
    assert use["latency"][0]["answers"] == use["answered"]
    billed = sum(len(d) for _, _, body in manners.asked for d in body.get("documents", []))
    assert use["tokens"] == (billed if billed else paid().tokens)
    assert use["dollars"] is None
    assert searcher.costs().computed_pairs == 200
    assert parse_system(str(searcher.system)) == searcher.system


def test_no_pair_is_asked_twice_at_any_depth_or_order(server):
    url, manners = server
    for depth in (20, 10, 20, 30):
        system(url, depth=depth).index(CORPUS).search(ASKED, 30)
    assert len(manners.pairs()) == len(set(manners.pairs())) == 60
    probes = [body for _, _, body in manners.asked if body["query"] == PROBE_QUERY]
    assert len(probes) == 2  # once to begin with, and once before more is asked by another searcher
    before = len(manners.asked)
    system(url, depth=30).index(CORPUS).search(ASKED, 30, Context(reuse=False))
    assert len(manners.pairs()) == 60 + 90
    assert len(manners.asked) == before + 4


def test_documents_that_are_read_together_have_scores_of_their_company(server):
    url, manners = server
    SERVICES["jina:jina-reranker-v3"] = "/jina/v1"
    first = system(url, "jina:jina-reranker-v3", depth=10).index(CORPUS).search(ASKED, 10)
    again = system(url, "jina:jina-reranker-v3", depth=10).index(CORPUS).search(ASKED, 10)
    assert first.to_dict() == again.to_dict()
    asked = [body["documents"] for _, _, body in manners.asked[1:]]
    assert [len(documents) for documents in asked] == [10, 10]
    system(url, "jina:jina-reranker-v3", depth=12).index(CORPUS).search(ASKED, 12)
    assert [len(body["documents"]) for _, _, body in manners.asked[-2:]] == [12, 12]
    with pytest.raises(BadValue, match="reads all documents of a query together: depth is at most 100"):
        system(url, "jina:jina-reranker-v3", depth=101)
    large = replace(
        ASKED.take(np.arange(1)), metadata=QueryMetadata(candidates=DocumentLists.of([CORPUS.ids]))
    )
    before, pool = (
        len(manners.asked),
        parse_system("pool") >> system(url, "jina:jina-reranker-v3", depth=None).reranker,
    )
    with pytest.raises(
        BadValue, match=r"has \d+ candidates, and .* reads at most 100 together; name a depth"
    ):
        pool.index(CORPUS).search(large, 10)
    assert len(manners.asked) <= before + 1  # the probe


FAULTS = {
    "429": status(429, {"message": "slow down"}, Retry_After="0"),
    "500": status(500, b"oops"),
    "cut": cut,
    "garbage": status(200, b"<html>"),
    "missing": lambda handler, body: handler.reply(200, {"results": []}),
    "twice": lambda handler, body: handler.reply(
        200, {"results": [{"index": 0, "relevance_score": 1.0}] * 20}
    ),
    "nan": status(200, b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
    **{
        f"{digits} digits": lambda handler, body, digits=digits: handler.reply(
            200, {"results": [{"index": n, "relevance_score": int("9" * digits)} for n in range(20)]}
        )
        for digits in (50, 4000)
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_is_asked_again_and_counted(server, fault):
    url, manners = server
    searcher = system(url, concurrency=1).index(CORPUS)  # which asks the probe
    manners.faults = [FAULTS[fault]]
    run = searcher.search(ASKED, 20).to_dict()
    assert run["q1"] == expected(run["q1"], "q1", "rerank-v3.5")
    [use] = [use.facts() for use in searcher.costs().services]
    assert (use["retried"], use["answered"], use["unanswered"]) == (1, 2, {})
    kind = {"429": "refused", "500": "failed"}.get(fault, "malformed")
    assert use["faults"] == {kind: 1}
    assert paid().retries == 1


def test_a_pair_without_an_answer_is_never_zero(server):
    url, manners = server
    searcher = system(url, concurrency=1).index(CORPUS)
    manners.faults = [FAULTS["500"]] * 3
    with pytest.raises(
        ServiceError, match=r"20 of 60 pairs have no score \(requests: 1 failed\); the first, query 'q1'"
    ) as caught:
        searcher.search(ASKED, 20)
    assert "the same command to resume" in str(caught.value)
    assert KEY not in str(caught.value)
    before = set(manners.pairs())
    manners.asked.clear()
    run = system(url).index(CORPUS).search(ASKED, 20).to_dict()
    assert run["q1"] == expected(run["q1"], "q1", "rerank-v3.5")
    assert len(manners.pairs()) == 20  # those of q1 alone
    assert set(manners.pairs()) < before


def test_a_refused_key_and_a_spent_budget_end_it(server, monkeypatch):
    url, manners = server
    searcher = system(url).index(CORPUS)
    manners.faults = [status(401, {"message": f"bad key {KEY}"})] * 9
    with pytest.raises(ServiceError, match=r"401.*bad key.*WEIR_KEY_TEST") as caught:
        searcher.search(ASKED, 20)
    assert KEY not in str(caught.value)
    manners.faults = []
    forget_spending()
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(requests=2, price=2.0)))
    with pytest.raises(ServiceError, match="the budget of 2 requests ends here"):
        system(url, concurrency=1).index(CORPUS).search(ASKED, 20)
    forget_spending()
    monkeypatch.delenv("WEIR_KEY_TEST")
    with pytest.raises(ServiceError, match="environment variable WEIR_KEY_TEST"):
        system(url, "voyage:rerank-2.5").index(CORPUS)


def test_another_model_behind_the_address_is_noticed(server):
    url, manners = server
    system(url, "tei:bge").index(CORPUS).search(ASKED, 20)
    manners.model = "another"
    assert system(url, "tei:bge").index(CORPUS).search(ASKED, 20) is not None  # all of it is kept
    with pytest.raises(ServiceError, match=r"has changed since .* remove .* to begin anew"):
        system(url, "tei:bge", depth=30).index(CORPUS).search(ASKED, 20)
    for path in (settings().home / "encoders").glob("rerank-*.json"):
        path.unlink()
    run = system(url, "tei:bge", depth=30).index(CORPUS).search(ASKED, 20).to_dict()
    assert run["q1"] == expected(run["q1"], "q1", "another")


def test_long_documents_are_cut_and_empty_ones_are_a_space(server):
    url, manners = server
    corpus = Corpus.of({"d1": "river " * 5000, "d2": {"title": "river", "text": ""}})
    everything = weir.system(
        lambda queries, k: {query: ["d1", "d2"] for query in queries}, name="all", version="1"
    )
    reranker = weir.systems.RERANKERS.get("rerank")
    hosted = reranker("vllm:m", base=url + "/vllm", max_length=100)
    (everything >> hosted).index(corpus).search(Queries.of({"q": "river", "none": ""}), 2)
    sent = dict(pair[::-1] for pair in manners.pairs())
    assert max(map(len, sent)) < 300
    assert manners.wrong == []
    assert {body["query"] for _, _, body in manners.asked} == {"What is a weir?", "river", " "}
    assert {key for _, key, _ in manners.asked} == {None}


def test_names_and_addresses():
    assert (
        str(parse_system('bm25 >> rerank("tei:http://localhost:8080")'))
        == 'bm25 >> rerank("tei:http://localhost:8080")'
    )
    assert ServiceReranker("tei:http://localhost:8080").address == "http://localhost:8080"
    assert ServiceReranker("cohere:rerank-v3.5").address == "https://api.cohere.com/v2"
    wrong = {
        'rerank("cohre:x")': (UnknownName, "did you mean cohere"),
        'rerank("plain")': (BadValue, "expected service:model"),
        'rerank("vllm:model")': (BadValue, "has no address of its own"),
        'rerank("tei:http://example.org")': (BadValue, "http is allowed for localhost only"),
        'rerank("cohere:m", key="AWS_SECRET")': (BadValue, "'AWS_SECRET' is not sent anywhere"),
        'rerank("cohere:m", base="https://example.org", key="COHERE_API_KEY")': (
            BadValue,
            "goes to the provider's own",
        ),
        'rerank("cohere:m", concurrency=0)': (BadValue, "concurrency is 0"),
        'rerank("cohere:m", max_length=0)': (BadValue, "max_length is 0"),
    }
    for name, (kind, said) in wrong.items():
        with pytest.raises(kind, match=said):
            parse_system(f"bm25 >> {name}")


def test_killed_in_the_middle_it_asks_only_for_what_is_missing(server, tmp_path, home):
    url, manners = server
    collection = write_collection(tmp_path / "mine", {f"d{n:03}": ("", f"river {n}") for n in range(60)})
    asked = {f"q{n}": f"river {n}" for n in range(40)}
    lines = [json.dumps({"_id": i, "text": text}) for i, text in asked.items()]
    (collection / "queries.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{q}\td001\t1" for q in asked]
    (collection / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    name = f'bm25 >> rerank("tei:{url}/tei", depth=16, concurrency=2)'
    command = [sys.executable, "-m", "weir", "run", "-d", str(collection), "-s", name, "-m", "AP", "-q"]
    command += ["-o", str(tmp_path / "out")]
    killed_unanswered(command, manners, answers=8, at_once=2)
    before = len(manners.asked)
    [journal] = (home / "scores").rglob("journal.bin")
    assert main(command[3:]) == 0
    again = len(manners.asked) - before
    assert (
        41 <= before + again - 1 <= 43 + 1
    )  # each query once, the probe again, and what was out when it was killed
    counts = [manners.pairs().count(pair) for pair in set(manners.pairs())]
    assert len(counts) == 40 * 16
    assert sum(count > 1 for count in counts) <= 2 * 16
    assert journal.exists()


def test_a_grid_says_what_a_service_was_asked(server, tmp_path):
    url, _ = server
    folder = write_collection(tmp_path / "mine")
    name = f'bm25 >> rerank("vllm:m", base="{url}/vllm")'
    Experiment([folder], [name], ["AP"]).execute(tmp_path / "out")
    records = [json.loads(p.read_text()) for p in (tmp_path / "out" / "mine").glob("*/stage.json")]
    [facts] = [record["facts"] for record in records if record["name"] == name]
    assert facts["scores"]["asked"] == facts["scores"]["computed"] > 0
    assert facts["services"][0]["answered"] == 3
