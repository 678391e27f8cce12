"""Elasticsearch and OpenSearch as a system, against a stand-in that holds each request against the published API."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.kills import MOST_SECONDS, killed_when, struck
from tests.unit.brooklet import DOCUMENTS, QUERIES, write_collection
from tests.unit.model_servers import running
from tests.unit.search_servers import ElasticHandler, ElasticManners, Refused, elastic_serving
from weir.cli.main import main
from weir.core.corpus import Corpus, Queries
from weir.errors import BadValue, FormatError, ServiceError, StoreWarning, UnknownName
from weir.experiment.experiment import Experiment
from weir.plugins.servers import elasticsearch
from weir.services.answers import Request
from weir.services.requests import AttemptError, Limits
from weir.systems import SYSTEMS, Context, parse_system

CORPUS = Corpus.of({i: {"title": title, "text": text} for i, (title, text) in DOCUMENTS.items()})
ASKED = Queries.of(QUERIES)


@pytest.fixture
def server(monkeypatch):
    """(address, manners); nobody waits between attempts, and nothing was asked against the API."""
    monkeypatch.setattr(Limits.__init__, "__defaults__", _impatient())
    with elastic_serving() as (url, manners):
        yield url, manners
        assert manners.wrong == []


def _impatient() -> tuple:
    """The defaults of limits, with pauses of next to nothing."""
    names = list(Limits.__dataclass_fields__)
    values = [Limits.__dataclass_fields__[name].default for name in names]
    values[names.index("pause")] = 0.001
    return tuple(values)


def many(count: int) -> Corpus:
    return Corpus.of({f"d{n:05}": {"title": "weir", "text": f"river number {n}"} for n in range(count)})


def system(url, **given):
    return SYSTEMS.get("elasticsearch")(url=url, **given)


def answers(one, k=10, corpus=CORPUS, queries=ASKED):
    return one.index(corpus).search(queries, k).to_dict()


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({}, 'bm25("elastic")'),
        ({"fields": ["title^3", "text"]}, 'bm25("elastic", fields={"title": 3, "text": 1})'),
        ({"query": "bool"}, 'bm25("lucene-multifield", k1=1.2, b=0.75, fields=["title", "text"])'),
    ],
)
def test_it_is_beirs_baseline(server, given, ours):
    url, manners = server
    found = answers(system(url, **given))
    assert found == answers(weir.parse_system(ours))
    assert found["q1"]
    [index] = manners.indexes.values()
    assert index.settings["number_of_shards"] == 1
    assert index.settings["refresh_interval"] is None
    assert {p["analyzer"] for p in index.mappings["properties"].values() if p["type"] == "text"} == {
        "english"
    }
    assert index.mappings["dynamic"] is False


def test_names_print_and_say_what_decides(tmp_path):
    plain = system("http://localhost:9200", query="most_fields", fields=["title^2", "text"])
    assert (
        str(plain)
        == 'elasticsearch(url="http://localhost:9200", query="most_fields", fields=["title^2", "text"])'
    )
    assert parse_system(str(plain)) == plain
    file = tmp_path / "shop.toml"
    file.write_text(
        'url = "https://search.example.org"\nkey = "WEIR_KEY_ES"\nscheme = "Basic"\n[settings]\n"index.similarity.default.k1" = 0.9\n'
    )
    named = parse_system(f'elasticsearch("{file.as_posix()}")')
    assert str(named) == f'elasticsearch("{file.as_posix()}")'
    assert "example.org" not in json.dumps(named.describe())
    assert named.describe()["index"]["settings"] == {"index.similarity.default.k1": 0.9}
    wrong = {
        "elasticsearch": (BadValue, "give a file, or url="),
        'elasticsearch(url="http://example.org")': (BadValue, "http is allowed for localhost only"),
        'elasticsearch(url="http://localhost:9200", query="fuzzy")': (
            BadValue,
            "query is 'fuzzy'; expected best_fields",
        ),
        'elasticsearch(url="http://localhost:9200", fields=[])': (BadValue, "expected names of fields"),
    }
    for name, (kind, said) in wrong.items():
        with pytest.raises(kind, match=said):
            parse_system(name)
    for text, (kind, said) in {
        "batch = 1": (FormatError, "no url"),
        'url = "http://localhost:9200"\nbatch = 0': (FormatError, "batch is 0"),
        'url = "http://localhost:9200"\nindex = "x"': (UnknownName, "no setting in the file"),
        'url = "http://localhost:9200"\nkey = "AWS_SECRET"': (FormatError, "is not sent anywhere"),
        'url = "http://localhost:9200"\nprefix = "*"': (FormatError, "small letters"),
    }.items():
        file.write_text(text)
        with pytest.raises(kind, match=said):
            parse_system(f'elasticsearch("{file.as_posix()}")')


def test_no_room_for_a_document_and_too_large_a_request_are_waited_for_and_halved(server):
    url, manners = server
    manners.rejects = [700, 10, 0, 3]
    manners.most_bytes = 60_000
    manners.bulk = [
        None,
        lambda h: h.reply(429, {"error": "busy"}, {"Retry-After": "0"}),
        lambda h: h.reply(503, b""),
    ]
    corpus = many(1500)
    found = answers(system(url), 3, corpus, Queries.of({"q": "number 7"}))
    assert next(iter(found["q"])) == "d00007"
    [index] = manners.indexes.values()
    assert len(index.documents) == 1500
    assert set(manners.put.values()) == {1}  # what there was room for was not sent again


def test_a_refused_document_is_named(server):
    url, _ = server
    with pytest.raises(
        ServiceError, match=r"document 'd2' was refused: .*document_parsing_exception"
    ) as caught:
        answers(system(url), corpus=Corpus.of({"d1": "a", "d2": "refuse me"}))
    assert "\n" not in str(caught.value)
    with pytest.raises(BadValue, match="more than 512 bytes"):
        answers(system(url), corpus=Corpus.of({"x" * 600: "a"}))


def test_a_server_that_has_never_room_ends_it(server):
    url, manners = server
    manners.rejects = [1] * 100
    with pytest.raises(ServiceError, match="429: no room for 1 documents"):
        answers(system(url))


def test_search_faults_are_counted_and_never_empty_answers(server, tmp_path):
    url, manners = server
    searcher = system(url).index(CORPUS)
    half = {
        "responses": [
            {
                "timed_out": False,
                "_shards": {"total": 3, "successful": 2, "skipped": 1, "failed": 0},
                "hits": {"hits": []},
                "status": 200,
            }
        ]
    }
    manners.search = [lambda h: h.reply(200, half)]
    with pytest.raises(
        ServiceError, match=r"1 of 4 queries have no answer .*2 of 3 shards answered, 0 failed"
    ):
        searcher.search(ASKED, 10)
    manners.search = [lambda h: h.reply(429, b"busy"), lambda h: h.reply(502, b"")]
    run = searcher.search(ASKED, 10)
    assert run.to_dict() == answers(weir.BM25("elastic"))
    [use] = [use.facts() for use in searcher.costs().services]
    assert use["retried"] == 2
    [index] = manners.indexes.values()
    assert use["versions"] == {"Elasticsearch": "9.1.2", "index": index.uuid}
    assert sorted(manners.asked) == sorted(QUERIES.values())  # each answered once
    with pytest.raises(ServiceError, match="Result window is too large"):
        searcher.search(ASKED, 20_000)
    batched = tmp_path / "shop.toml"
    batched.write_text(f'url = "{url}"\nbatch = 3\nconcurrency = 1\n')
    together = parse_system(f'elasticsearch("{batched.as_posix()}", version="1")')
    manners.busy, manners.asked = (
        2,
        [],
    )  # two of three searches find the queue full, and are asked again alone
    searcher = together.index(CORPUS)
    assert searcher.search(ASKED, 10).to_dict() == run.to_dict()
    assert searcher.costs().services[0].facts()["retried"] == 2
    assert sorted(manners.asked) == sorted(QUERIES.values())
    manners.busy = 100
    with pytest.raises(ServiceError, match=r"429: rejected execution.*; a smaller concurrency and batch"):
        searcher.search(ASKED, 9)


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        ("rejected_execution_exception", True),
        ("es_rejected_execution_exception", True),
        ("node_disconnected_exception", True),
        ("corrupt_index_exception", False),
    ],
)
def test_a_shard_that_failed_is_asked_again_where_that_may_help(kind, again):
    failures = [{"shard": 0, "reason": {"type": kind, "reason": "why it failed"}}]
    shards = {"total": 2, "successful": 1, "failed": 1, "failures": failures}
    with pytest.raises(
        AttemptError, match=rf"1 of 2 shards answered, 1 failed: why it failed \({kind}\)"
    ) as caught:
        elasticsearch._ranking({"timed_out": False, "_shards": shards, "status": 200})
    assert caught.value.again == again


HITS = {"timed_out": False, "_shards": {"total": 1, "successful": 1, "failed": 0}, "status": 200}


class OddHandler(ElasticHandler):
    """Answers one call otherwise: `call`, and `change` of the right answer, are attributes of the server's own subclass."""

    call: str
    change: staticmethod

    def answer(self, path):
        right = super().answer(path)
        return self.change(right) if self.call == f"{self.command} {'/'.join(path.split('/')[2:])}" else right


def test_a_server_that_accepts_connections_and_never_answers_ends_it_in_one_line(monkeypatch, tmp_path):
    """As one does whose process is stopped."""
    monkeypatch.setattr(Limits.__init__, "__defaults__", _impatient())
    monkeypatch.setattr(elasticsearch, "SILENT_SECONDS", 0.25)
    file = tmp_path / "deaf.toml"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        file.write_text(f'url = "http://127.0.0.1:{deaf.getsockname()[1]}"\ntimeout_s = 0.1\n')
        with pytest.raises(
            ServiceError, match=r"no answer in time, for . s: the node hangs .*; timeout_s waits"
        ):
            SYSTEMS.get("elasticsearch")(str(file)).index(CORPUS)
        deaf.setblocking(False)
        attempts = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                deaf.accept()[0].close()
                attempts += 1
        assert attempts < 8


def test_a_shard_that_the_server_gave_up_is_told_with_what_brings_it_back(monkeypatch):
    """As OpenSearch 3.8 says it of a shard on a node that hung: its old searches still hold the lock of the shard."""
    details = (
        "failed shard on node [n]: ShardLockObtainFailedException[[i][1]: obtaining shard lock timed out]"
    )
    gave_up = {
        "current_state": "unassigned",
        "unassigned_info": {
            "reason": "ALLOCATION_FAILED",
            "failed_allocation_attempts": 5,
            "details": details,
        },
        "allocate_explanation": "cannot allocate because allocation is not permitted to any of the nodes",
        "explanation": "manually call [/_cluster/reroute?retry_failed=true] to retry",
    }
    settings = elasticsearch.ElasticSettings("http://localhost:1")
    server, index = elasticsearch.ElasticServer(settings), elasticsearch.ElasticIndex(settings, CORPUS, {})
    asked = iter([{"current_state": "started"}, gave_up])
    monkeypatch.setattr(server, "call", lambda *_, **__: next(asked))
    remedy = "POST /_cluster/reroute?retry_failed=true has the server try again, or weir data drop removes it"
    assert elasticsearch._recovery_hint(server, index, 2) == f"{remedy}; the server says: {details}"


@pytest.mark.parametrize(("silent", "asked"), [({"q1"}, 5), ({"q1", "q2"}, 4)])
def test_searches_that_are_not_answered_together_in_time_are_asked_one_by_one(silent, asked):
    """Until two in a row are silent alone: then the server is, and the others are not asked."""
    asker = elasticsearch.ElasticAsker(
        elasticsearch.ElasticSettings("http://localhost:1"), "i", None, lambda _: None
    )
    sent: list[list[str]] = []

    def responses(requests):
        sent.append([request.body["id"] for request in requests])
        if len(requests) > 1 or sent[-1][0] in silent:
            raise AttemptError("timed out", "no answer in time", again=False)
        shards = {"total": 1, "successful": 1, "failed": 0}
        return [{"timed_out": False, "_shards": shards, "hits": {"hits": [{"_id": "d1", "_score": 1.0}]}}]

    asker._responses = responses
    requests = [Request(n, (n, n), {"id": f"q{n}", "text": "river", "k": 5}) for n in range(4)]
    outcomes = list(asker.ask(requests))
    assert [one.request for one in outcomes] == requests
    failed = {one.request.body["id"] for one in outcomes if one.error is not None}
    assert failed == (silent if len(silent) == 1 else {"q1", "q2", "q3"})
    assert len(sent) == asked


def too_large(_: object):
    raise Refused(413, "content_too_long_exception", "entity content is too long")


@pytest.mark.parametrize(
    ("call", "change", "said"),
    [
        ("POST _search", lambda _: {"aggregations": 1}, "is not what the API"),
        ("POST _search", lambda _: {"aggregations": {"last": {"value": [1]}}}, "is not what the API"),
        ("POST _bulk", lambda right: {"items": [1] * len(right["items"])}, "is not what the API"),
        ("POST _bulk", lambda right: {"items": [{"create": None}] * len(right["items"])}, "is not what the API"),
        ("GET ", lambda right: right if "version" in right else {n: i | {"mappings": i["mappings"] | {"properties": [1]}} for n, i in right.items()}, "is not what the API"),
        ("PUT _settings", too_large, "413"),
        ("POST _msearch", too_large, "queries have no answer .*413"),
    ],
)  # fmt: skip
def test_an_answer_unlike_those_of_the_api_ends_it_in_one_line(call, change, said):
    odd = {"manners": ElasticManners(), "call": call, "change": staticmethod(change)}
    with running(OddHandler, **odd) as url, pytest.raises(ServiceError, match=said):
        answers(system(url))


@pytest.mark.parametrize(
    "count", [float("nan"), float("inf"), int("9" * 100), int("9" * 4000), "many", [1], 0.5], ids=repr
)
def test_a_count_that_is_none_ends_it_in_one_line(server, count):
    url, manners = server
    manners.count = count
    with pytest.raises(ServiceError, match=r"is not what the API|not JSON|not of the collection"):
        answers(system(url))


@pytest.mark.parametrize("score", [None, float("nan"), int("9" * 4000), "x", {}], ids=repr)
def test_a_hit_without_a_score_is_no_answer(server, score):
    url, manners = server
    searcher = system(url).index(CORPUS)
    hits = {**HITS, "hits": {"hits": [{"_id": "d1", "_score": score}]}}
    manners.search = [lambda h: h.reply(200, {"responses": [hits]})] * 9
    with pytest.raises(ServiceError, match=r"4 of 4 queries have no answer .*malformed"):
        searcher.search(ASKED, 10)


def test_an_answer_is_bounded_by_what_was_asked_for(server):
    url, manners = server
    searcher = system(url).index(CORPUS)
    hits = {**HITS, "hits": {"hits": [{"_id": "d" * 500, "_score": 1.0}] * 9000}}
    manners.search = [lambda h: h.reply(200, {"responses": [hits]})] * 9
    with pytest.raises(ServiceError, match=r"the answer has more than 1,0\d\d,\d{3} bytes"):
        searcher.search(ASKED, 10)


def test_a_key_is_sent_as_the_file_says_and_never_shown(server, tmp_path, monkeypatch):
    url, manners = server
    monkeypatch.setenv("WEIR_KEY_ES", "user:very-secret")
    file = tmp_path / "shop.toml"
    for scheme in ("Basic", "ApiKey"):
        file.write_text(f'url = "{url}"\nkey = "WEIR_KEY_ES"\nscheme = "{scheme}"\n')
        answers(parse_system(f'elasticsearch("{file.as_posix()}")'))
    assert manners.keys == {"Basic dXNlcjp2ZXJ5LXNlY3JldA==", "ApiKey user:very-secret"}
    manners.search = [lambda h: h.reply(401, {"error": {"reason": "user:very-secret"}})] * 9
    with pytest.raises(ServiceError, match=r"401.*WEIR_KEY_ES") as caught:
        parse_system(f'elasticsearch("{file.as_posix()}")').index(CORPUS).search(ASKED, 3)
    assert "very-secret" not in str(caught.value)


def test_one_index_serves_every_query_and_is_dropped(server, tmp_path, capsys):
    url, manners = server
    manners.version = {"number": "3.2.0", "distribution": "opensearch"}
    folder = write_collection(tmp_path / "mine")
    names = [str(system(url)), str(system(url, query="bool"))]
    Experiment([folder], names, ["AP"]).execute(tmp_path / "out")
    assert len(manners.indexes) == 1
    records = [json.loads(p.read_text()) for p in (tmp_path / "out" / "mine").glob("*/stage.json")]
    [index] = manners.indexes.values()
    versions = {"OpenSearch": "3.2.0", "index": index.uuid}
    assert [r["facts"]["services"][0]["versions"] for r in records] == [versions] * 2
    made = system(url).index(CORPUS, Context(tmp_path / "index"))
    opened = system(url).open(CORPUS, Context(tmp_path / "index"))
    assert opened.search(ASKED, 3).to_dict() == made.search(ASKED, 3).to_dict()
    manners.indexes["weir-of-somebody-else"] = type(next(iter(manners.indexes.values())))({}, {})
    assert main(["data", "drop", names[0]]) == 0
    assert len(capsys.readouterr().out.split()) == 2
    assert list(manners.indexes) == ["weir-of-somebody-else"]
    Experiment([folder], [names[0]], ["RR"], k=3).execute(tmp_path / "out")  # noticed, and made again
    assert len(manners.indexes) == 2
    Experiment([folder], names[:1], ["AP"]).execute(tmp_path / "other")
    [cell] = [path.parent for path in (tmp_path / "other" / "mine").glob("elastic*/run.trec")]
    why = weir.why(
        tmp_path / "out" / "mine" / cell.name, cell
    )  # what answered is not what answered before, and that is told
    assert "environment.index" in {one.setting for one in why[0].settings}


def test_an_index_is_what_weir_wrote_or_it_is_made_again_or_left_alone(server):
    """The same on live servers: tests/real/test_search_engines_real.py."""
    url, manners = server
    right = answers(system(url))
    [(name, index)] = manners.indexes.items()

    def overwritten() -> None:
        index.writes += 2  # two documents again, the copies not yet merged away

    def lost() -> None:
        del index.documents["d1"]
        index.writes += 1
        index.refresh()

    def scored_otherwise() -> None:
        index.settings["index.similarity.default.type"] = "boolean"

    for change, fault in (
        (overwritten, "has 2 deleted copies"),
        (lost, "has 2 deleted copies"),
        (scored_otherwise, "index.similarity.default.type is"),
    ):
        change()
        with pytest.warns(StoreWarning, match=f"{name} {fault}.*; it is made again"):
            assert answers(system(url)) == right
        index = manners.indexes[name]
    index.documents["zebra"] = index.seen["zebra"] = {"text": "zebra"}
    index.writes += 1
    with pytest.raises(
        ServiceError,
        match="1 documents, such as 'zebra', that are not of the collection; weir data drop removes",
    ):
        answers(system(url))
    manners.indexes[name] = type(index)({}, {"properties": {}})
    with pytest.raises(ServiceError, match="is there without Weir's mark in its _meta; nothing was written"):
        answers(system(url))
    assert main(["data", "drop", str(system(url))]) == 0
    assert list(manners.indexes) == [name]
    assert manners.indexes[name].documents == {}


def test_killed_in_the_middle_it_goes_on(server, tmp_path, home):
    url, manners = server
    documents = {f"d{n:05}": ("", f"river number {n}") for n in range(6000)}
    collection = write_collection(tmp_path / "mine", documents)
    asked = {f"q{n}": f"river {n}" for n in range(30)}
    lines = [json.dumps({"_id": i, "text": text}) for i, text in asked.items()]
    (collection / "queries.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{q}\td00001\t1" for q in asked]
    (collection / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    (tmp_path / "one.toml").write_text(f'url = "{url}"\nconcurrency = 1\nbatch = 2\n')
    name = f'elasticsearch("{tmp_path / "one.toml"}")'
    command = [sys.executable, "-m", "weir", "run", "-d", str(collection), "-s", name, "-m", "AP", "-q"]
    command += ["-o", str(tmp_path / "out")]

    def kept() -> list[str]:
        files = list(Path(home).rglob("answers.jsonl"))
        lines = files[0].read_bytes().split(b"\n")[:-1] if files else []
        return [json.loads(line)["value"]["asked"]["text"] for line in lines]

    fourth = struck(command, "weir.plugins.servers.elasticsearch:_put", 4)
    assert subprocess.run(fourth, stdout=subprocess.DEVNULL, check=False).returncode == -9
    assert len(manners.put) == 3000
    killed, held = threading.Event(), []

    def hold(_):
        held.append(True)
        killed.wait(MOST_SECONDS)

    manners.search = [None] * 3 + [hold]
    killed_when(subprocess.Popen(command, stdout=subprocess.DEVNULL), lambda: held)
    killed.set()
    [index] = manners.indexes.values()
    assert len(index.documents) == 6000
    assert index.writes == sum(manners.put.values()) == 6000  # nothing twice
    before = kept()
    assert len(before) == 6
    manners.asked.clear()
    assert main(command[3:]) == 0
    assert sorted(manners.asked) == sorted(set(asked.values()) - set(before))
    assert sum(manners.put.values()) == 6000
