"""Search servers that run here: what they answer is that of the index that Weir believes they have, or it is told."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.real.search_engine import SearchEngine, engine_running
from tests.unit.brooklet import DOCUMENTS, QUERIES

import weir
from weir.cli.main import main
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue, RankingWarning, ServiceError, StoreError, StoreWarning, UnknownName
from weir.plugins.servers import elasticsearch as elastic_index
from weir.plugins.servers.elasticsearch import Elasticsearch
from weir.plugins.servers.endpoint import Http
from weir.systems import SYSTEMS, Context

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("engines")]

FACTOR = {"elasticsearch": 2.2, "opensearch": 2.2, "opensearch3": 1.0}
"""Lucene's BM25 left the factor k1 + 1 out in its version 8; Elasticsearch 7 and OpenSearch 2 put it back."""
BROOK = Corpus.of({i: {"title": title, "text": text} for i, (title, text) in DOCUMENTS.items()})
ASKED = Queries.of(QUERIES)


@pytest.fixture(params=["elasticsearch", "opensearch3"])
def engine(request: pytest.FixtureRequest, started: Callable[[str], SearchEngine]) -> SearchEngine:
    """A server without any index."""
    return started(request.param)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not there is not waited for, unless a test does."""
    monkeypatch.setattr(elastic_index, "SHARD_PAUSE_SECONDS", 0.01)


@pytest.fixture(scope="module")
def scifact(shared: Path) -> weir.Dataset:
    return weir.load(shared / "data" / "scifact")


def system(engine: SearchEngine, tmp_path: Path | None = None, more: str = "") -> Elasticsearch:
    """`elasticsearch(...)` at a server; more: of its file."""
    if tmp_path is None:
        return SYSTEMS.get("elasticsearch")(url=engine.url)
    file = tmp_path / "elastic.toml"
    file.write_text(f'url = "{engine.url}"\n{more}')
    return SYSTEMS.get("elasticsearch")(file=str(file))


def only_index(engine: SearchEngine, prefix: str = "weir-") -> str:
    [name] = engine.ask("GET", f"/{prefix}*")
    return name


def held_to_bm25(engine: SearchEngine, run: Run, corpus: Corpus, queries: Queries, k: int) -> None:
    """The scores are those of BM25 on the collection, and on nothing else."""
    ours = weir.BM25("elastic").index(corpus).search(queries, k)
    theirs, wanted = (
        np.concatenate([np.sort(r.score[a:b]) for a, b in zip(r.ptr, r.ptr[1:], strict=False)])
        for r in (run, ours)
    )
    np.testing.assert_allclose(theirs, wanted * FACTOR[engine.name], rtol=2e-6)


def file_of(tmp_path: Path, engine: SearchEngine, template: str, values: str, more: str = "") -> str:
    file = tmp_path / "search.toml"
    file.write_text(
        f'extends = "{template}"\nurl = "{engine.url}"\n[values]\n{values}\n[limits]\nattempts = 2\npause_s = 0.01\n{more}'
    )
    return str(file)


def test_solr_never_answers_too_many_words_with_nothing(started, tmp_path):
    """E5: edismax takes more than 1,024 words for an empty query, status 0; a query of stop words is empty."""
    engine = started("solr")
    engine.ask("GET", "/solr/admin/cores?action=CREATE&name=shop&configSet=english")
    documents = [{"id": i, "title": title, "text": text} for i, (title, text) in DOCUMENTS.items()]
    engine.ask("POST", "/solr/shop/update?commit=true", documents)
    file = file_of(tmp_path, engine, "solr", 'collection = "shop"\nfields = "text"')
    queries = {**QUERIES, "stop": "the", "long": "river " * 1100}
    searcher = Http(file, version="1", on_failure="missing").index(BROOK)
    with pytest.warns(
        RankingWarning, match=r"1 of 6 queries have no answer .*'long'.* 1,100 words is empty, and"
    ):
        run = searcher.search(Queries.of(queries), 5).to_dict()
    assert run["q1"]
    assert run["stop"] == run["long"] == {}
    facts = searcher.costs().services[0].facts()
    assert (facts["answered"], facts["unanswered"]) == (5, {"refused": 1})
    assert facts["empty"] == sum(not found for found in run.values()) - 1
    with pytest.warns(RankingWarning, match="1 of 6 queries have no answer"):  # it was not kept
        Http(file, version="1", on_failure="missing").index(BROOK).search(Queries.of(queries), 5)
    wrong = file_of(tmp_path, engine, "solr", 'collection = "shop"\nfields = "titel text"')
    with pytest.raises(ServiceError, match="Query Field 'titel' is not a valid field name"):
        Http(wrong).index(BROOK).search(ASKED, 5)


def test_weaviate_says_what_it_does_not_know(shared, tmp_path):
    """E11: an error of GraphQL comes with status 200."""
    with engine_running("weaviate", shared, tmp_path / "engine") as engine:
        properties = [{"name": name, "dataType": ["text"]} for name in ("doc_id", "title", "text")]
        engine.ask("POST", "/v1/schema", {"class": "Shop", "vectorizer": "none", "properties": properties})
        objects = [
            {"class": "Shop", "properties": {"doc_id": i, "title": title, "text": text}}
            for i, (title, text) in DOCUMENTS.items()
        ]
        engine.ask("POST", "/v1/batch/objects", {"objects": objects})

        def answers(collection: str, fields: str, identifier: str) -> dict:
            values = f'collection = "{collection}"\nfields = ["{fields}"]\nid_field = "{identifier}"'
            file = file_of(tmp_path, engine, "weaviate", values)
            return Http(file).index(BROOK).search(ASKED, 5).to_dict()

        assert answers("Shop", "text", "doc_id")["q1"]
        for wrong, message in {
            ("Shop", "txt", "doc_id"): "Searching by property 'txt' requires inverted index",
            ("Shap", "text", "doc_id"): 'Cannot query field "Shap".* Did you mean "Shop"',
            ("Shop", "text", "docid"): 'Cannot query field "docid".* Did you mean "doc_id"',
        }.items():
            with pytest.raises(ServiceError, match=message) as caught:
                answers(*wrong)
            assert "attempts" not in str(caught.value)


def test_why_an_index_of_somebodys_own_ranks_otherwise(engine, tmp_path):
    """Another analyzer, a weight, no tie breaker: each change alone, and all of them close the gap."""
    brook = weir.load("brook-medical")
    shop(engine, documents=brook.corpus, text={"type": "text", "analyzer": "whitespace"})
    file = file_of(tmp_path, engine, "opensearch", 'index = "shop"\nfields = ["title^2", "text"]')
    [why] = weir.why(f'http("{file}")', "bm25", collection=brook).items
    settings = {d.setting: (d.first, d.second) for d in why.settings}
    k1 = FACTOR[engine.name] - 1
    assert settings == {
        "fields": ("title^2, text", "title text"),
        "tie_breaker": ("the best field alone", "one field"),
        "analyzer": ("title: standard; text: whitespace", "lucene-english"),
        "k1, b": ("1.2, 0.75", "0.9, 0.4"),
        **({"factor": (f"k1 + 1 = {k1 + 1:g} times", "none")} if k1 else {}),
    }
    assert any(
        (t.word, t.first, t.second, t.fields) == ("tablets", "tablets", "tablet", "title") for t in why.terms
    )
    assert {q.query for q in why.queries} <= set(brook.queries.ids)
    moved = why.queries[0]
    assert moved.ranks[0] != moved.ranks[1]
    assert re.match(r"\d+\.\d\d from (title|text) \d+\.\d\d \(", moved.parts)
    gap = {(e.kind, e.change.partition(":")[0]): e.gap for e in why.effects}
    assert gap["first", "fields without weights"] != why.gap
    # With one analyzer of both fields BM25 can be made the same.
    engine.ask("DELETE", "/shop")
    shop(engine, documents=brook.corpus)
    [same] = weir.why("bm25", f'http("{file}")', collection=brook).items
    assert (same.nearest, same.nearest_misses) == ("lucene-standard", 0)
    last = same.effects[-1]
    assert (last.kind, last.closes) == ("both", True)
    assert last.change.endswith('bm25("elastic", analyzer="lucene-standard", fields={"text": 1, "title": 2})')
    assert abs(same.gap) > 0.01


def test_why_a_collection_of_solr_ranks_otherwise(started, tmp_path):
    """Its schema, its analysis and its explanations: all that differs from BM25 is named and closes the gap."""
    brook = weir.load("brook-medical")
    engine = started("solr")
    engine.ask("GET", "/solr/admin/cores?action=CREATE&name=medical&configSet=english")
    columns = (brook.corpus.view(name).tolist() for name in ("title", "text"))
    documents = [
        {"id": name, "title": title, "text": text}
        for name, title, text in zip(brook.corpus.ids, *columns, strict=True)
    ]
    engine.ask("POST", "/solr/medical/update?commit=true", documents)
    file = file_of(tmp_path, engine, "solr", 'collection = "medical"\nfields = "title^2 text"')
    [why] = weir.why("bm25", f'http("{file}")', collection=brook).items
    settings = {d.setting: (d.first, d.second) for d in why.settings}
    assert settings == {
        "fields": ("title text", "title^2, text"),
        "tie_breaker": ("one field", "of each word the best field"),
        "k1, b": ("0.9, 0.4", "1.2, 0.75"),
    }
    assert (why.analysed, why.nearest, why.nearest_misses) == (0, "lucene-english", 0)
    last = why.effects[-1]
    assert (last.kind, last.closes, last.change.partition(":")[0]) == ("both", True, "tie = 1")
    assert abs(last.first - why.first_mean) > 0.003
    assert any(q.parts.endswith("of each word the largest alone counts") for q in why.queries)
    assert re.match(r"\d+\.\d\d from (title|text) \d+\.\d\d \(", why.queries[0].parts)


def test_why_weirs_own_index_differs_from_bm25_by_fields_alone(engine):
    brook = weir.load("brook-medical")
    name = f'elasticsearch(url="{engine.url}")'
    [why] = weir.why(name, "bm25", collection=brook).items
    assert (why.analysed, why.nearest, why.nearest_misses) == (0, "lucene-english", 0)
    assert (
        {"fields", "tie_breaker", "k1, b"}
        <= {d.setting for d in why.settings}
        <= {"fields", "tie_breaker", "k1, b", "factor"}
    )
    assert [e.change for e in why.effects if e.closes] == ['all of these: bm25("elastic")']
    with pytest.raises(BadValue, match="name it with `collection`"):
        weir.why(name, "bm25")
    with pytest.raises(BadValue, match="neither an engine that explains its scores nor bm25"):
        weir.why(name, "rm3", collection=brook)


class Drawn:
    """An encoder: a direction drawn by a text's characters."""

    def encode(self, texts):
        return np.array(
            [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts], np.float32
        )


def test_vectors_of_opensearch_and_what_its_graph_loses(started, tmp_path, monkeypatch):
    """The exact search ranks as `dense` does; a graph that looks at few loses more, by the same index."""
    dense = weir.Dense(weir.encoder(Drawn(), similarity="cosine", version="1"))
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    corpus = Corpus.of({f"d{n:04}": f"text {n}" for n in range(1500)})
    asked = Queries.of({f"q{n}": f"query {n}" for n in range(40)} | {"empty": " "})
    ours = dense.index(corpus).search(asked, 10)
    engine = started("opensearch")
    file = tmp_path / "vectors.toml"
    file.write_text(f'url = "{engine.url}"\n[vector]\nm = 4\nef_construction = 16\n')
    made = SYSTEMS.get("elasticsearch")
    exact = made(str(file), encoder=dense)
    run = exact.index(corpus, Context(tmp_path / "exact")).search(asked, 10)
    assert [list(docs) for docs in run.to_dict().values()] == [list(docs) for docs in ours.to_dict().values()]
    inner = np.where(ours.score < 0, 1 / (1 - ours.score), 1 + ours.score)  # as Lucene has it
    np.testing.assert_allclose(run.score, inner, rtol=1e-5)
    again = exact.open(corpus, Context(tmp_path / "exact"))
    assert again.search(asked, 10).to_dict() == run.to_dict()
    with pytest.raises(BadValue, match="searches exactly"):
        again.loss(asked, 10)
    lost = []
    for ef_search in (10, 400):
        near = made(str(file), encoder=dense, index="hnsw", ef_search=ef_search).index(corpus)
        lost.append(near.loss(asked, 10).total)
        best, found = run.to_dict(), near.search(asked, 10).to_dict()
        missed = sum(len(best[q].keys() - found[q].keys()) for q in best)
        assert lost[-1] == pytest.approx(missed / len(run.doc))
    assert lost[0] > lost[1] >= 0
    assert near.costs().reused_documents == len(corpus)  # of one index, whatever is looked at
    assert len(engine.ask("GET", "/weir-*")) == 2
    words = made(str(file)).index(BROOK).search(ASKED, 5)
    held_to_bm25(engine, words, BROOK, ASKED, 5)
    assert len(made(str(file)).uninstall()) == 3


def test_a_server_without_vectors_is_told(engine):
    dense = weir.Dense(weir.encoder(Drawn(), similarity="cosine", version="1"))
    with pytest.raises(BadValue, match="has no k-NN plugin of OpenSearch, which searches vectors"):
        SYSTEMS.get("elasticsearch")(url=engine.url, encoder=dense).index(BROOK)
    assert engine.ask("GET", "/*") == {}


def test_interrupted_indexing_gives_the_scores_of_an_undisturbed_one(engine, scifact):
    """E1: what was sent last is sent again, and no copy of it counts."""

    def interrupt(done: int, _: int) -> None:
        if done >= 3000:
            raise KeyboardInterrupt

    corpus, queries = scifact.corpus, scifact.queries.take(np.arange(60))
    with pytest.raises(KeyboardInterrupt):
        system(engine).index(corpus, Context(progress=interrupt))
    # A batch that was on its way when Weir was killed arrives later, in part.
    lines = []
    for at in range(2500, 3300):
        fields = {name: corpus.view(name, at, at + 1).tolist()[0] for name in ("title", "text")}
        lines += [{"create": {"_id": corpus.ids[at]}}, {**fields, elastic_index.NUMBER: at}]
    engine.ask("POST", f"/{only_index(engine)}/_bulk", lines=lines)
    run = system(engine).index(corpus).search(queries, 100)
    held_to_bm25(engine, run, corpus, queries, 100)
    docs = engine.ask("GET", f"/{only_index(engine)}/_stats/docs")["_all"]["primaries"]["docs"]
    assert (docs["count"], docs["deleted"]) == (len(corpus), 0)


def test_an_index_that_was_there_is_said_to_have_been_there(engine):
    """E13: else `weir study efficiency` prints the speed of finding it."""
    costs = [system(engine).index(BROOK).costs() for _ in range(2)]
    assert [one.reused_documents for one in costs] == [0, len(BROOK)]
    assert costs[0].external_bytes == costs[1].external_bytes > 1000


def test_a_changed_index_is_made_again_and_its_answers_are_asked_again(engine, scifact):
    """E1 and E2: documents deleted or written again by somebody; kept answers belong to one index's content."""
    corpus, queries = scifact.corpus, scifact.queries.take(np.arange(50))
    searcher = system(engine).index(corpus)
    clean = searcher.search(queries, 10).to_dict()
    name = only_index(engine)
    lines = [{"delete": {"_id": corpus.ids[at]}} for at in range(1000)]
    engine.ask("POST", f"/{name}/_bulk?refresh=true", lines=lines)
    later = Queries.of({"later": "vitamin"})
    with pytest.raises(ServiceError, match="was changed while it was searched"):
        searcher.search(later, 10)
    with pytest.warns(StoreWarning, match=rf"{name} .*; it is made again"):
        again = system(engine).index(corpus)
    assert again.search(queries, 10).to_dict() == clean
    facts = again.costs().services[0].facts()
    assert facts["answered"] == len(queries)  # and none of them stored for the index that was
    # Overwritten and merged away: no copy counts any more, only the number of writes tells.
    source = {"title": "vitamin", "text": "vitamin"}
    engine.ask("POST", f"/{name}/_bulk", lines=[{"index": {"_id": corpus.ids[0]}}, source])
    engine.ask("POST", f"/{name}/_forcemerge?max_num_segments=1&flush=true")
    with pytest.warns(StoreWarning, match="it is made again"):
        assert system(engine).index(corpus).search(queries, 10).to_dict() == clean
    third = system(engine).index(corpus)  # nothing changed: nothing is made or asked again
    assert third.search(queries, 10).to_dict() == clean
    assert third.costs().services[0].facts()["stored"] == len(queries)


@pytest.mark.parametrize("engine", ["elasticsearch"], indirect=True)
def test_a_server_killed_while_it_is_filled(engine, scifact):
    """E1: kill -9 of the server in the middle, and it comes back: the same scores, nothing twice."""
    back: list[threading.Thread] = []

    def kill(done: int, _: int) -> None:
        if done >= 2000 and not back:
            engine.stop(signal.SIGKILL)
            back.append(threading.Thread(target=engine.start))
            back[0].start()

    corpus, queries = scifact.corpus, scifact.queries.take(np.arange(50))
    run = system(engine).index(corpus, Context(progress=kill)).search(queries, 20)
    back[0].join()
    held_to_bm25(engine, run, corpus, queries, 20)


@pytest.mark.parametrize("engine", ["opensearch3"], indirect=True)
def test_a_server_killed_while_it_is_searched(engine):
    """Eight queries at once, kill -9 among them, and it comes back: no query is lost or answered otherwise."""
    back: list[threading.Thread] = []

    def kill(done: int, _: int) -> None:
        if done >= 40 and not back:
            engine.stop(signal.SIGKILL)
            back.append(threading.Thread(target=engine.start))
            back[0].start()

    words = [word for text in QUERIES.values() for word in text.split()]
    queries = Queries.of({f"q{n}": f"river {words[n % len(words)]}" for n in range(200)})
    searcher = system(engine).index(BROOK)
    run = searcher.search(queries, 5, Context(progress=kill))
    back[0].join()
    held_to_bm25(engine, run, BROOK, queries, 5)
    facts = searcher.costs().services[0].facts()
    assert (facts["answered"], facts["unanswered"]) == (200, {})
    assert facts["retried"] > 0


def test_a_small_server_is_asked_for_less_or_named(shared, tmp_path):
    """413 for documents and queries, alone and among others; 429 of a full queue, also of one shard of two."""
    long = {f"d{n}": {"title": f"t{n}", "text": f"river weir stream {n} " * 300} for n in range(60)}
    small = {
        "http__max_content_length": "64kb",
        "thread_pool__search__size": "1",
        "thread_pool__search__queue_size": "4",
    }
    with engine_running(
        "opensearch3", shared, tmp_path / "engine", discovery__type="single-node", **small
    ) as engine:
        large = Corpus.of(
            {"d": {"title": "", "text": "river"}, "large": {"title": "", "text": "weir " * 20_000}}
        )
        with pytest.raises(
            ServiceError, match=r"'large': 413 .*http\.max_content_length allows larger documents"
        ):
            system(engine).index(large)
        corpus = Corpus.of(long)
        sharded = system(engine, tmp_path, "concurrency = 8\n[settings]\nnumber_of_shards = 2\n")
        searcher = sharded.index(corpus)  # in requests of less than 64 KiB
        asked = Queries.of({f"q{n}": f"river weir {n}" for n in range(64)})
        run = searcher.search(asked, 20)
        facts = searcher.costs().services[0].facts()
        assert (facts["answered"], facts["unanswered"], len(run.doc)) == (64, {}, 64 * 20)
        assert facts["retried"] > 0
        queries = Queries.of({"a": "river", "b": "stream " * 12_000, "c": "weir"})
        with pytest.raises(
            ServiceError, match=r"1 of 3 queries .*'b': 413 .*max_content_length allows longer queries"
        ):
            sharded.index(corpus).search(queries, 5)


@pytest.mark.parametrize("engine", ["opensearch3"], indirect=True)
def test_answers_as_large_as_a_server_gives_are_whole(engine, tmp_path):
    """k is max_result_window, identifiers have almost 512 bytes, and a request has several such answers."""
    corpus = Corpus.of({f"{n:05}" + 'é"<' * 120: "river " + "dam " * (n % 50) for n in range(10_050)})
    asked = Queries.of({f"q{n}": "river" + " dam" * n for n in range(3)})
    one = system(engine).index(corpus).search(asked, 10_000)
    together = system(engine, tmp_path, "batch = 3\n").index(corpus)
    assert together.costs().reused_documents == len(corpus)
    later = Queries.of({f"later-{name}": text for name, text in asked.to_dict().items()})
    whole = one.to_dict()
    assert without("later-", together.search(later, 10_000)) == whole
    assert {len(docs) for docs in whole.values()} == {10_000}
    file = file_of(tmp_path, engine, "opensearch", f'index = "{only_index(engine)}"\nfields = "text"')
    assert len(Http(file).index(corpus).search(asked, 10_000).doc) == 3 * 10_000
    for searcher in (together, Http(file).index(corpus)):
        with pytest.raises(
            ServiceError, match=r"3 of 3 queries .*Result window is too large.*max_result_window"
        ):
            searcher.search(asked, 10_001)


BRISK = {
    "cluster__fault_detection__follower_check__timeout": "1s",
    "cluster__fault_detection__follower_check__retry_count": "2",
    "search__default_keep_alive": "5s",
    "search__keep_alive_interval": "1s",
}
"""A cluster that gives a silent node up after two seconds, not thirty, and its searches after five, not 300."""


def settled(engine: SearchEngine) -> None:
    """Wait until both nodes hold what they should."""
    answer = engine.ask("GET", "/_cluster/health?wait_for_nodes=2&wait_for_status=green&timeout=60s")
    assert (answer["number_of_nodes"], answer["status"]) == (2, "green")


def signalled(process: subprocess.Popen, how: signal.Signals, seconds: float = 0) -> Context:
    """A search in whose middle a server gets a signal, once; seconds: after which a stopped one goes on."""
    sent: list[signal.Signals] = []

    def send(done: int, _: int) -> None:
        if done >= 10 and not sent:
            sent.append(how)
            process.send_signal(how)
            if seconds:
                threading.Timer(seconds, process.send_signal, [signal.SIGCONT]).start()

    return Context(progress=send)


MANY = Queries.of({f"q{n}-{name}": f"river {text}" for n in range(40) for name, text in QUERIES.items()})


def renamed(prefix: str) -> Queries:
    """The many queries under names that nothing is kept of."""
    return Queries.of({prefix + name: text for name, text in MANY.to_dict().items()})


def without(prefix: str, run: Run) -> dict[str, dict[str, float]]:
    """Rankings by the plain names."""
    return {name.removeprefix(prefix): docs for name, docs in run.to_dict().items()}


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch3"])
def test_a_node_that_hangs_or_stops_loses_no_answer_and_changes_none(name, shared, tmp_path):
    """SIGSTOP of the node that is asked, then of another, with and without copies of its documents; then kill -9."""
    both: dict[str, str] = {"cluster__name": "weir-two", "discovery__type": "zen", **BRISK}
    managers = "master" if name == "elasticsearch" else "cluster_manager"
    first = {"node__name": "A", f"cluster__initial_{managers}_nodes": "A", **both}
    with engine_running(name, shared, tmp_path / "a", **first) as a:
        second = {"node__name": "B", "node__roles": "data", **both}
        second["discovery__seed_hosts"] = f"127.0.0.1:{a.port + 100}"
        with engine_running(name, shared, tmp_path / "b", **second) as b:
            assert a.process is not None
            assert b.process is not None
            copies = "[settings]\nnumber_of_shards = 2\nnumber_of_replicas = {}\n"
            copied = system(a, tmp_path, copies.format(1)).index(BROOK)
            alone = system(a, tmp_path, "timeout_s = 1\n" + copies.format(0))
            searcher = alone.index(BROOK)
            settled(a)
            whole = copied.search(MANY, 5).to_dict()
            run = searcher.search(renamed("asked-"), 5, signalled(a.process, signal.SIGSTOP, 2.5))
            assert without("asked-", run) == whole
            facts = searcher.costs().services[0].facts()
            assert (facts["answered"], facts["unanswered"]) == (len(MANY), {})
            assert facts["faults"]["timed out"] > 0
            # The other is silent until the first gives it up: a copy answers, and without one no half of an answer counts.
            run = copied.search(renamed("copied-"), 5, signalled(b.process, signal.SIGSTOP))
            assert without("copied-", run) == whole
            queries = renamed("alone-")
            reason = r"1 of 2 shards answered, 0 failed; the nodes of .* run the same"
            with pytest.raises(ServiceError, match=reason):
                searcher.search(queries, 5)
            b.process.send_signal(signal.SIGCONT)
            settled(a)
            assert without("alone-", alone.index(BROOK).search(queries, 5)) == whole
            run = copied.search(renamed("later-"), 5, signalled(b.process, signal.SIGKILL))
            assert without("later-", run) == whole
            assert a.ask("GET", "/_cluster/health")["number_of_nodes"] == 1


def shop(engine: SearchEngine, shards: int = 1, documents: Corpus = BROOK, **fields: object) -> None:
    """An index of somebody's own, of the documents of the brook by default."""
    properties = {"title": {"type": "text"}, "text": {"type": "text"}, **fields}
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    engine.ask("PUT", "/shop", {"settings": settings, "mappings": {"properties": properties}})
    lines = []
    columns = (documents.view(view).tolist() for view in ("title", "text"))
    for name, title, text in zip(documents.ids, *columns, strict=True):
        lines += [{"index": {"_id": name}}, {"title": title, "text": text}]
    engine.ask("POST", "/shop/_bulk?refresh=true", lines=lines)


def lose_a_shard(engine: SearchEngine, index: str) -> None:
    """Take the files of the first of an index's shards away, and let the server look for them."""
    stats = engine.ask("GET", f"/{index}/_stats/docs?level=shards")["indices"][index]
    [copy] = stats["shards"]["0"]
    shutil.rmtree(Path(copy["shard_path"]["data_path"]) / "indices" / stats["uuid"] / "0")
    cancel = {"index": index, "shard": 0, "node": copy["routing"]["node"], "allow_primary": True}
    engine.ask("POST", "/_cluster/reroute", {"commands": [{"cancel": cancel}]})
    assert engine.ask("GET", f"/_cluster/health/{index}")["status"] == "red"


def test_a_lost_shard_is_no_whole_answer(engine, tmp_path):
    """E3: total 3, successful 2, failed 0."""
    shop(engine, shards=3)
    file = file_of(tmp_path, engine, "opensearch", 'index = "shop"\nfields = ["title", "text"]')
    whole = Http(file, version="1").index(BROOK).search(ASKED, 5).to_dict()
    assert whole["q1"]
    sharded = system(engine, tmp_path, "[settings]\nnumber_of_shards = 3\n")
    searcher = sharded.index(BROOK)
    for index in ("shop", only_index(engine)):
        lose_a_shard(engine, index)
    answer = engine.ask("POST", "/shop/_search", {"query": {"match": {"text": "river"}}})["_shards"]
    assert (answer["total"], answer["successful"], answer["failed"]) == (3, 2, 0)
    with pytest.raises(ServiceError, match=r"_shards\.successful: 2, not 3 as _shards\.total"):
        Http(file, version="2").index(BROOK).search(ASKED, 5)
    with pytest.raises(ServiceError, match="2 of 3 shards answered, 0 failed"):
        searcher.search(ASKED, 5)
    with (
        pytest.warns(StoreWarning, match=r"1 of 3 shards of weir-.* are not there; waiting"),
        pytest.raises(ServiceError, match=r"shards of weir-.* are lost: bring their nodes back"),
    ):
        sharded.index(BROOK)


@pytest.mark.parametrize(
    ("fields", "misspelt"),
    [('"titel", "txt"', "titel"), ('"title^2", "txt^3"', "txt"), ('"title*", "body*"', r"body\*")],
)
def test_a_misspelt_field_is_named(engine, tmp_path, fields, misspelt):
    """E4: both misspelt gave 0.0000, one of two another number."""
    shop(engine)
    with pytest.raises(
        UnknownName, match=f"no field that .* searches named '{misspelt}'; did you mean|known"
    ):
        Http(file_of(tmp_path, engine, "elasticsearch", f'index = "shop"\nfields = [{fields}]')).index(
            BROOK
        ).search(ASKED, 5)
    for right in ('["title^2", "te*"]', '["*"]', '["title"]'):
        file = file_of(tmp_path, engine, "elasticsearch", f'index = "shop"\nfields = {right}')
        assert Http(file).index(BROOK).search(ASKED, 5).to_dict()["q1"]


def test_fields_of_an_own_body_that_do_not_exist_are_no_low_score(engine, tmp_path):
    """E4: what is asked otherwise is told when no query is answered."""
    shop(engine)
    body = '[body]\nsize = "{size}"\n[body.query.match]\ntitel = "{query}"\n'
    file = file_of(tmp_path, engine, "elasticsearch", 'index = "shop"', body)
    with pytest.raises(ServiceError, match="none of 4 queries is answered with any document"):
        Http(file).index(BROOK).search(ASKED, 5)
    with pytest.warns(RankingWarning, match="none of 4 queries is answered"):
        Http(file, on_failure="missing").index(BROOK).search(ASKED, 5)


ANALYZER = {"analysis": {"analyzer": {"english": {"type": "whitespace"}}}}
SIMILARITY = {"index.similarity.default.type": "boolean"}


def test_nothing_that_weir_did_not_make_is_filled_or_dropped(engine, tmp_path, capsys):
    """E6: an index of Weir's name, an alias of it."""
    one = system(engine)
    one.index(BROOK)
    name = only_index(engine)
    engine.ask("DELETE", f"/{name}")
    properties = {f: {"type": "text", "analyzer": "whitespace"} for f in ("title", "text")}
    engine.ask("PUT", f"/{name}", {"mappings": {"properties": properties}})
    before = engine.ask("GET", f"/{name}")
    with pytest.raises(
        ServiceError, match=f"{name} is there without Weir's mark in its _meta; nothing was written"
    ):
        one.index(BROOK)
    assert engine.ask("GET", f"/{name}") == before
    assert engine.ask("GET", f"/{name}/_count")["count"] == 0
    assert one.uninstall() == []
    engine.ask("DELETE", f"/{name}")
    shop(engine)
    engine.ask("PUT", f"/shop/_alias/{name}")
    with pytest.raises(ServiceError, match=f"{name} is an alias of shop; nothing was written"):
        one.index(BROOK)
    assert "_meta" not in engine.ask("GET", "/shop")["shop"]["mappings"]
    assert main(["data", "drop", str(one)]) == 0
    capsys.readouterr()
    assert list(engine.ask("GET", "/*")) == ["shop"]


@pytest.mark.parametrize(
    ("template", "deviation"),
    [
        ({"settings": SIMILARITY}, r"index\.similarity\.default\.type is \"boolean\", not null"),
        ({"settings": ANALYZER}, r"index\.analysis\.analyzer\.english\.type is \"whitespace\", not null"),
        (
            {"mappings": {"properties": {"text": {"type": "text", "similarity": "boolean"}}}},
            "field text is .*boolean",
        ),
    ],
)
def test_an_index_template_that_scores_otherwise_is_told(engine, tmp_path, template, deviation):
    """E6: an index template `*` gave the index another similarity."""
    body = {"index_patterns": ["weir-*"], "order": 5, **template}
    engine.ask("PUT", "/_template/all", body)
    try:
        with pytest.raises(ServiceError, match=rf"another index than was asked for: {deviation}"):
            system(engine).index(BROOK)
        assert engine.ask("GET", "/*") == {}  # nothing half-made is left
        if template == {"settings": SIMILARITY}:  # asked for, it is no deviation
            file = '[settings]\n"index.similarity.default.type" = "boolean"\n'
            assert system(engine, tmp_path, file).index(BROOK).search(ASKED, 5).to_dict()["q1"]
    finally:
        engine.ask("DELETE", "/_template/all")


def test_an_index_that_weir_made_under_another_template_is_made_again(engine, tmp_path):
    """E6: held against what was asked before it is gone on with, and before it is taken as complete."""
    right = system(engine).index(BROOK).search(ASKED, 5).to_dict()
    name = only_index(engine)
    described = engine.ask("GET", f"/{name}")[name]
    engine.ask("DELETE", f"/{name}")
    settings = {"number_of_shards": 1, "index.similarity.default.type": "boolean"}
    engine.ask("PUT", f"/{name}", {"settings": settings, "mappings": described["mappings"]})
    with pytest.warns(StoreWarning, match=r"index\.similarity\.default\.type is \"boolean\".*made again"):
        assert system(engine).index(BROOK).search(ASKED, 5).to_dict() == right


def test_a_document_of_somebody_else_is_told_whether_it_ranks_or_not(engine, tmp_path):
    """E7: and the advice helps, through a clean rebuild."""
    right = system(engine).index(BROOK, Context(tmp_path / "made")).search(ASKED, 5).to_dict()
    name = only_index(engine)
    engine.ask("PUT", f"/{name}/_doc/zebra?refresh=true", {"text": "zebra"})
    with pytest.raises(StoreError, match="no complete index"):
        system(engine).open(BROOK, Context(tmp_path / "made"))
    with pytest.raises(
        ServiceError, match=r"holds 1 documents, such as 'zebra', that are not of the.*weir data drop"
    ):
        system(engine).index(BROOK)
    assert system(engine).uninstall() == [name]
    assert system(engine).index(BROOK).search(ASKED, 5).to_dict() == right


def test_a_blocked_index_is_named(engine, monkeypatch):
    """E8: the server's disk is full."""

    def block(done: int, _: int) -> None:
        if done == 1000:
            settings = {"index.blocks.read_only_allow_delete": True}
            engine.ask("PUT", f"/{only_index(engine)}/_settings", settings)

    corpus = Corpus.of({f"d{n}": f"river {n}" for n in range(1500)})
    with pytest.raises(ServiceError, match=r"nothing can be written: .*(read-only|disk).*the same command"):
        system(engine).index(corpus, Context(progress=block))
    engine.ask("PUT", f"/{only_index(engine)}/_settings", {"index.blocks.read_only_allow_delete": None})
    assert system(engine).index(corpus).search(Queries.of({"q": "river"}), 5).to_dict()["q"]


def test_what_the_server_refuses_is_said_in_its_words_and_with_what_helps(engine, tmp_path):
    """E9, E14: too many terms, too deep, too long an identifier."""
    words = Queries.of({"long": " ".join(f"word{n}" for n in range(1100))})
    searcher = system(engine).index(BROOK)
    with pytest.raises(ServiceError, match=r"maxClauseCount is set to 1024.*max_clause_count"):
        searcher.search(words, 5)
    with pytest.raises(
        ServiceError, match=r"Result window is too large.*max_result_window = NUMBER under \[settings\]"
    ):
        searcher.search(ASKED, 20_000)
    deep = system(engine, tmp_path, "[settings]\nmax_result_window = 30000\n").index(BROOK)
    assert deep.search(ASKED, 20_000).to_dict()["q1"]
    there = engine.ask("GET", "/*")
    with pytest.raises(BadValue, match=r"more than 512 bytes.*give the documents shorter ones"):
        system(engine).index(Corpus.of({"x" * 600: "river"}))
    assert engine.ask("GET", "/*") == there


def test_a_prefix_drops_its_own_indexes_alone(engine, tmp_path):
    """E10: `w` is the beginning of `weir-`."""
    system(engine).index(BROOK)
    short = system(engine, tmp_path, 'prefix = "w"\n')
    short.index(BROOK)
    names = sorted(engine.ask("GET", "/*"))
    assert len(names) == 2
    assert short.uninstall() == [name for name in names if not name.startswith("weir-")]
    assert [only_index(engine)] == sorted(engine.ask("GET", "/*"))
