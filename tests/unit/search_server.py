"""A real HTTP server that stands in for search servers: it checks each request against the API, and misbehaves on demand.

What each API asks for and answers with is written from its published reference; tests/real asks live ones of
Elasticsearch, OpenSearch, Solr and Weaviate.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.unit.local_server import reply, running
from tests.unit.remote_place import answer


@dataclass(frozen=True)
class Sent:
    """One request as it arrived."""

    method: str
    path: str
    params: dict[str, str]
    headers: Mapping[str, str]
    body: dict


Found = list[tuple[str, float]]
Api = Callable[[Sent], tuple[str, int, int, Callable[[Found], object]]]
"""A request to (text, how many are skipped, how many are wanted, how the found ones are answered)."""
APIS: dict[str, Api] = {}


def api(name: str) -> Callable[[Api], Api]:
    return lambda function: APIS.setdefault(name, function)


def only(body: Mapping[str, object], *known: str) -> None:
    """Refuse an entry that the API does not document."""
    assert set(body) <= set(known), f"unknown: {set(body) - set(known)}"


@api("elasticsearch")
def elasticsearch(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/shop/_search")
    only(sent.body, "query", "size", "from", "_source", "track_total_hits", "sort", "search_after")
    only(sent.body["query"], "multi_match")
    match = sent.body["query"]["multi_match"]
    only(match, "query", "fields", "type", "operator")
    assert match["fields"] == ["title^2", "body"]
    assert type(sent.body["size"]) is int

    def hits(found: Found) -> list[object]:
        return [{"_index": "shop", "_id": d, "_score": s} for d, s in found]

    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return match["query"], 0, sent.body["size"], lambda found: {
        "took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": 1.0, "hits": hits(found)},
    }  # fmt: skip


APIS["opensearch"] = elasticsearch


@api("solr")
def solr(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/solr/shop/query")
    only(sent.body, "query", "limit", "offset", "fields", "filter", "sort", "params")
    assert sent.body["fields"] == ["id", "score"]
    # dismax confirms an empty answer: it refuses what edismax takes for an empty query
    assert sent.body["params"].pop("defType") in ("edismax", "dismax")
    assert sent.body["params"] == {"qf": "title^2 body", "q.op": "OR"}
    text = re.sub(r"\\(.)", r"\1", sent.body["query"])
    assert not re.search(r'(?<!\\)[+\-!(){}\[\]^"~*?:/]', sent.body["query"])
    return text, 0, sent.body["limit"], lambda found: {
        "responseHeader": {"status": 0, "QTime": 1},
        "response": {"numFound": 9, "start": 0, "docs": [{"id": d, "score": s} for d, s in found]},
    }  # fmt: skip


@api("vespa")
def vespa(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/search/")
    only(sent.body, "yql", "text", "hits", "offset", "ranking.profile", "timeout")
    assert sent.body["yql"] == (
        'select id from shop where {grammar: "weakAnd", defaultIndex: "default"}userInput(@text)'
    )
    assert sent.body["hits"] <= 400
    whole = {"id": "toplevel", "coverage": {"coverage": 100, "full": True}}

    def root(found: Found) -> dict[str, object]:
        hits = [{"id": "x", "relevance": s, "fields": {"id": d}} for d, s in found]
        return whole | ({"children": hits} if hits else {})

    return sent.body["text"], sent.body["offset"], sent.body["hits"], lambda found: {"root": root(found)}


@api("qdrant")
def qdrant(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/collections/shop/points/query")
    only(sent.body, "query", "using", "limit", "offset", "with_payload", "params")
    only(sent.body["query"], "text", "model", "options")
    assert (sent.body["query"]["model"], sent.body["using"]) == ("qdrant/bm25", "words")
    assert sent.body["with_payload"] == ["doc_id"]

    def points(found: Found) -> list[object]:
        return [{"id": 1, "version": 1, "score": s, "payload": {"doc_id": d}} for d, s in found]

    return sent.body["query"]["text"], 0, sent.body["limit"], lambda found: {
        "result": {"points": points(found)}, "status": "ok", "time": 0.001,
    }  # fmt: skip


@api("weaviate")
def weaviate(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/v1/graphql")
    only(sent.body, "query", "operationName", "variables")
    literal = r'"(?:[^"\\]|\\.)*"'
    shape = (
        rf"\{{ Get \{{ Shop\(bm25: \{{query: ({literal}), properties: (\[.*?\])\}}, limit: (\d+)\) "
        r"\{ doc_id _additional \{ score \} \} \} \}"
    )
    found = re.fullmatch(shape, sent.body["query"], re.DOTALL)
    assert found, sent.body["query"]
    assert json.loads(found[2]) == ["title", "body"]

    def rows(some: Found) -> list[object]:
        return [{"doc_id": d, "_additional": {"score": str(s)}} for d, s in some]

    return json.loads(found[1]), 0, int(found[3]), lambda some: {"data": {"Get": {"Shop": rows(some)}}}


@api("meilisearch")
def meilisearch(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/indexes/shop/search")
    only(sent.body, "q", "limit", "offset", "showRankingScore", "attributesToRetrieve", "filter")
    assert sent.body["showRankingScore"] is True
    return sent.body["q"], 0, sent.body["limit"], lambda found: {
        "hits": [{"id": d, "_rankingScore": s} for d, s in found], "query": "", "limit": 1, "offset": 0,
    }  # fmt: skip


@api("typesense")
def typesense(sent: Sent):
    assert (sent.method, sent.path) == ("GET", "/collections/shop/documents/search")
    only(sent.params, "q", "query_by", "include_fields", "per_page", "page", "filter_by")
    assert sent.params["query_by"] == "title,body"
    page, size = int(sent.params["page"]), int(sent.params["per_page"])
    assert size <= 250
    return sent.params["q"], (page - 1) * size, size, lambda found: {
        "hits": [{"document": {"id": d}, "text_match": 578730123365711993} for d, _ in found],
        "page": page, "search_cutoff": False,
    }  # fmt: skip


@api("algolia")
def algolia(sent: Sent):
    assert (sent.method, sent.path) == ("POST", "/1/indexes/shop/query")
    assert sent.headers["X-Algolia-Application-Id"] == "APP1"
    assert sent.headers["X-Algolia-API-Key"] == "a-secret"
    only(sent.body, "query", "hitsPerPage", "page", "attributesToRetrieve", "analytics")
    size, page = sent.body["hitsPerPage"], sent.body["page"]
    assert 1 <= size <= 1000
    return sent.body["query"], page * size, size, lambda found: {
        "hits": [{"objectID": d} for d, _ in found], "page": page, "nbPages": 1, "hitsPerPage": size,
    }  # fmt: skip


@dataclass
class SearchManners:
    """How the server behaves, and what it was asked.

    faults: what it does instead of answering a query, by its text, one after another; ranked: what it finds; fields:
    those that it says it has, None where it does not say them.
    """

    faults: dict[str, list[Callable[[Handler, object], None]]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    sent: list[Sent] = field(default_factory=list)
    ranked: Callable[[str, int], dict[str, float]] = answer
    wrong: list[str] = field(default_factory=list)
    fields: list[str] | None = field(default_factory=lambda: ["title", "body", "_id"])
    fields_asked: int = 0
    released: threading.Event = field(default_factory=threading.Event)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as `name` and `manners`, attributes of the server's own subclass, say."""

    protocol_version = "HTTP/1.1"
    name: str
    manners: SearchManners

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.asked("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        if urlsplit(self.path).path == "/shop/_field_caps":
            self.manners.fields_asked += 1
            if self.manners.fields is None:
                self.reply(405, {"error": {"type": "illegal_argument_exception", "reason": "not here"}})
            else:
                self.reply(200, {"indices": ["shop"], "fields": {name: {} for name in self.manners.fields}})
        else:
            self.asked("GET", b"{}")

    def asked(self, method: str, body: bytes) -> None:
        parts = urlsplit(self.path)
        params = {name: values[0] for name, values in parse_qs(parts.query).items()}
        sent = Sent(method, unquote(parts.path), params, self.headers, json.loads(body))
        self.manners.sent.append(sent)
        try:
            text, skip, count, shape = APIS[self.name](sent)
        except (AssertionError, KeyError, TypeError) as error:
            self.manners.wrong.append(f"{error!r}: {sent}")
            self.reply(400, {"error": {"type": "bad request", "reason": repr(error)}})
            return
        self.manners.asked[text] += 1
        found = list(self.manners.ranked(text, skip + count).items())[skip : skip + count]
        faults = self.manners.faults.get(text)
        with contextlib.suppress(OSError):  # the client may hang up
            if faults:
                faults.pop(0)(self, shape(found))
            else:
                self.reply(200, shape(found))

    reply = reply


def status(code: int, **headers: str) -> Callable[[Handler, object], None]:
    """Answers with an error; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(code, {"error": {"type": "no", "reason": "not now"}}, named)


def changed(change: Callable[[dict], object]) -> Callable[[Handler, object], None]:
    """Answers with 200 and what `change` makes of the right answer, in place or returned."""

    def fault(handler: Handler, answer: object) -> None:
        made = change(answer)
        handler.reply(200, answer if made is None else made)

    return fault


def cut(handler: Handler, answer: object) -> None:
    """Promises more bytes than it sends."""
    handler.reply(200, answer, cut=20)


def reset(handler: Handler, _: object) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


def hang(handler: Handler, _: object) -> None:
    """Says nothing until the test is over."""
    handler.manners.released.wait(60)
    handler.close_connection = True


@contextlib.contextmanager
def searching(name: str) -> Iterator[tuple[str, SearchManners]]:
    """(address, manners) of a server of an API that runs as long as the block."""
    manners = SearchManners()
    with running(Handler, manners=manners, name=name) as address:
        try:
            yield address, manners
        finally:
            manners.released.set()
