"""Real HTTP servers that stand in for search servers: they hold each request against the API, and misbehave on demand.

What each API asks for and answers with is written from its published reference; tests/real asks live ones. In place of
Elasticsearch, where Weir fills an index, Weir's own BM25 answers: what the reference does not allow is written down in
`wrong` and refused with 400, as the server would.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from tests.unit.model_servers import Fault, LocalHandler, running
from tests.unit.model_servers import status as answered
from tests.unit.remote_place import answer
from weir.core.corpus import Corpus, Queries
from weir.systems import BM25


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
    only(sent.body, "query", "size", "from", "_source", "track_total_hits", "sort", "search_after", "rescore")
    only(sent.body["query"], "multi_match")
    match = sent.body["query"]["multi_match"]
    only(match, "query", "fields", "type", "operator")
    assert match["fields"] == ["title^2", "body"]
    assert type(sent.body["size"]) is int

    window = sent.body.get("rescore", {"window_size": 0})["window_size"]

    def hits(found: Found) -> list[object]:
        """What was found; the documents of a window to rescore in reverse."""
        names = [d for d, _ in found]
        names[:window] = names[:window][::-1]
        shown = zip(names, found, strict=True)
        return [{"_index": "shop", "_id": d, "_score": s} for d, (_, s) in shown][: sent.body["size"]]

    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return match["query"], 0, max(window, sent.body["size"]), lambda found: {
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

    faults: dict[str, list[Fault]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    sent: list[Sent] = field(default_factory=list)
    ranked: Callable[[str, int], dict[str, float]] = answer
    wrong: list[str] = field(default_factory=list)
    fields: list[str] | None = field(default_factory=lambda: ["title", "body", "_id"])
    fields_asked: int = 0
    released: threading.Event = field(default_factory=threading.Event)


class SearchHandler(LocalHandler):
    """Answers as `name` and `manners`, attributes of the server's own subclass, say."""

    name: str
    manners: SearchManners

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


def status(code: int, **headers: str) -> Fault:
    """Answers with an error; header names are written with underscores."""
    return answered(code, {"error": {"type": "no", "reason": "not now"}}, **headers)


@contextlib.contextmanager
def searching(name: str) -> Iterator[tuple[str, SearchManners]]:
    """(address, manners) of a server of an API that runs as long as the block."""
    manners = SearchManners()
    with running(SearchHandler, manners=manners, name=name) as address:
        try:
            yield address, manners
        finally:
            manners.released.set()


# An index that Weir fills

INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
MULTI_MATCH = {"query", "type", "fields", "tie_breaker"}
TYPES = ("best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix")
RESULT_WINDOW = 10_000


class Refused(Exception):
    """A status and an error as the server words it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason


@dataclass
class HeldIndex:
    """An index: its settings and mappings, documents, and those that a search sees."""

    settings: dict
    mappings: dict
    documents: dict[str, dict] = field(default_factory=dict)
    seen: dict[str, dict] = field(default_factory=dict)
    searchers: dict[str, object] = field(default_factory=dict)
    uuid: str = field(default_factory=lambda: uuid4().hex)
    writes: int = 0

    def refresh(self) -> None:
        self.seen = dict(self.documents)
        self.searchers.clear()


@dataclass
class ElasticManners:
    """How the server behaves, and what it was asked.

    version: what it says it is; wrong: what was asked against the API; bulk, search: what it does with the next such
    requests instead of answering, None for answering; rejects: documents of the next bulk requests for which it has no
    room; busy: how many of the next searches find the queue full; most_bytes: of a request; seconds: that a request of
    documents or a search takes; count: what it says instead of how many documents there are.
    """

    version: dict = field(default_factory=lambda: {"number": "9.1.2", "build_flavor": "default"})
    indexes: dict[str, HeldIndex] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    bulk: list[Callable[[ElasticHandler], None] | None] = field(default_factory=list)
    search: list[Callable[[ElasticHandler], None] | None] = field(default_factory=list)
    rejects: list[int] = field(default_factory=list)
    busy: int = 0
    most_bytes: int = 100 << 20
    seconds: float = 0.0
    count: object = None
    put: Counter = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    keys: set = field(default_factory=set)
    turn: threading.Lock = field(default_factory=threading.Lock)


class ElasticHandler(LocalHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    manners: ElasticManners

    def do_GET(self):
        self.route()

    do_PUT = do_POST = do_DELETE = do_GET

    def route(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        if len(self.body) < length:  # its client was killed while it asked
            self.close_connection = True
            return
        self.manners.keys.add(self.headers.get("Authorization"))
        with contextlib.suppress(OSError):  # the client may hang up
            try:
                with self.manners.turn:
                    answer = self.answer(urlsplit(self.path).path)
                if answer is not None:
                    self.reply(200, answer)
            except Refused as error:
                if error.status == 400:
                    self.manners.wrong.append(f"{self.command} {self.path}: {error.reason}")
                said = {"type": error.kind, "reason": error.reason}
                self.reply(error.status, {"error": {"root_cause": [said], **said}, "status": error.status})

    def answer(self, path: str) -> dict | None:
        if len(self.body) > self.manners.most_bytes:
            raise Refused(413, "content_too_long_exception", "entity content is too long")
        if path == "/":
            return {"name": "n", "version": self.manners.version, "tagline": "You Know, for Search"}
        _, name, *rest = path.split("/")
        if "*" in name:
            return {
                n: {"mappings": i.mappings}
                for n, i in self.manners.indexes.items()
                if n.startswith(name[:-1])
            }
        call = f"{self.command} {'/'.join(rest)}"
        if call == "PUT ":
            return self.create(name)
        index = self.manners.indexes.get(name)
        if index is None:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        calls = {
            "GET ": lambda: {name: self.described(index)},
            "GET _stats/docs": lambda: self.stats(name, index),
            "GET _segments": lambda: self.segments(name, index),
            "PUT _mapping": lambda: self.mapped(index),
            "PUT _settings": lambda: self.set(index),
            "POST _refresh": lambda: index.refresh() or {"_shards": {"failed": 0}},
            "POST _search": lambda: self.numbers(index),
            "POST _bulk": lambda: self.put(index),
            "POST _msearch": lambda: self.searched(index),
            "DELETE ": lambda: self.manners.indexes.pop(name) and {"acknowledged": True},
        }
        if call not in calls:
            raise Refused(400, "illegal_argument_exception", f"no handler found for {call}")
        return calls[call]()

    def json(self, *known: str) -> dict:
        body = json.loads(self.body)
        self.check(self.headers["Content-Type"] == "application/json", "Content-Type is no JSON")
        self.check(isinstance(body, dict) and set(body) <= set(known), f"unknown key of {sorted(body)}")
        return body

    def lines(self) -> list[dict]:
        self.check(self.headers["Content-Type"] == "application/x-ndjson", "Content-Type is not ndjson")
        self.check(self.body.endswith(b"\n"), "must be terminated by a new line [\\n]")
        return [json.loads(line) for line in self.body.split(b"\n")[:-1]]

    def check(self, fits: bool, reason: str) -> None:
        if not fits:
            raise Refused(400, "illegal_argument_exception", reason)

    def create(self, name: str) -> dict:
        body = self.json("settings", "mappings", "aliases")
        self.check(INDEX_NAME.fullmatch(name) is not None, f"Invalid index name [{name}]")
        if name in self.manners.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}] already exists")
        mappings = body["mappings"]
        self.check(set(mappings) <= {"dynamic", "_meta", "properties"}, "unknown part of mappings")
        for one in mappings["properties"].values():
            self.check(
                set(one) <= {"type", "analyzer"} and one["type"] in ("text", "integer"), f"mapping {one}"
            )
            self.check(one.get("analyzer", "english") in ("english", "standard"), f"no analyzer {one}")
        self.manners.indexes[name] = HeldIndex(body["settings"], mappings)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def mapped(self, index: HeldIndex) -> dict:
        index.mappings = {**index.mappings, **self.json("_meta", "properties")}
        return {"acknowledged": True}

    def set(self, index: HeldIndex) -> dict:
        index.settings |= self.json("index")["index"]
        return {"acknowledged": True}

    def described(self, index: HeldIndex) -> dict:
        flat = {n if n.startswith("index.") else f"index.{n}": str(v) for n, v in index.settings.items()}
        return {"aliases": {}, "mappings": index.mappings, "settings": flat | {"index.uuid": index.uuid}}

    def stats(self, name: str, index: HeldIndex) -> dict:
        copy = {
            "routing": {"primary": True},
            "docs": {
                "count": self.manners.count or len(index.seen),
                "deleted": index.writes - len(index.documents),
            },
            "seq_no": {"max_seq_no": index.writes - 1},
        }
        return {"indices": {name: {"shards": {"0": [copy]}}}}

    def segments(self, name: str, index: HeldIndex) -> dict:
        size = sum(len(json.dumps(one)) for one in index.seen.values())
        copy = {"routing": {"primary": True}, "segments": {"_0": {"size_in_bytes": size}}}
        return {"indices": {name: {"shards": {"0": [copy]}}}}

    def numbers(self, index: HeldIndex) -> dict:
        body = self.json("size", "aggs", "query")
        if "query" in body:
            missing = body["query"]["bool"]["must_not"]["exists"]["field"]
            names = [name for name, one in index.seen.items() if missing not in one][: body["size"]]
            return {"hits": {"hits": [{"_id": name} for name in names]}}
        (wanted,) = body["aggs"].values()
        ((kind, place),) = wanted.items()
        self.check(index.mappings["properties"][place["field"]]["type"] == "integer", "no number")
        numbers = [one[place["field"]] for one in index.seen.values() if place["field"] in one]
        name = next(iter(body["aggs"]))
        most = float(max(numbers)) if numbers else None
        if kind == "max":
            return {"aggregations": {name: {"value": most}}}
        least = float(min(numbers)) if numbers else None
        stats = {"count": len(numbers), "min": least, "max": most, "sum": float(sum(numbers))}
        return {"aggregations": {name: stats}}

    def put(self, index: HeldIndex) -> dict | None:
        time.sleep(self.manners.seconds)
        if self.manners.bulk and (fault := self.manners.bulk.pop(0)):
            fault(self)
            return None
        lines, items = self.lines(), []
        reject = self.manners.rejects.pop(0) if self.manners.rejects else 0
        for at in range(0, len(lines), 2):
            action, source = lines[at], lines[at + 1]
            self.check(set(action) == {"create"} and set(action["create"]) == {"_id"}, f"action {action}")
            name = action["create"]["_id"]
            self.check(0 < len(name.encode()) <= 512, "id is too long")
            if at // 2 < reject:
                error = {"type": "es_rejected_execution_exception", "reason": "rejected execution"}
                items.append({"create": {"_id": name, "status": 429, "error": error}})
            elif "refuse me" in json.dumps(source):
                error = {"type": "document_parsing_exception", "reason": "failed to parse"}
                items.append({"create": {"_id": name, "status": 400, "error": error}})
            elif name in index.documents:
                error = {"type": "version_conflict_engine_exception", "reason": "document already exists"}
                items.append({"create": {"_id": name, "status": 409, "error": error}})
            else:
                items.append({"create": {"_id": name, "status": 201}})
                index.documents[name] = source
                index.writes += 1
                self.manners.put[name] += 1
        return {"took": 1, "errors": any(i["create"]["status"] > 299 for i in items), "items": items}

    def searched(self, index: HeldIndex) -> dict | None:
        time.sleep(self.manners.seconds)
        if self.manners.search and (fault := self.manners.search.pop(0)):
            fault(self)
            return None
        lines = self.lines()
        pairs = [(lines[at], lines[at + 1]) for at in range(0, len(lines), 2)]
        return {"took": 1, "responses": [self.response(index, *pair) for pair in pairs]}

    def response(self, index: HeldIndex, header: dict, body: dict) -> dict:
        self.check(set(header) <= {"index", "search_type"}, f"header {header}")
        self.check(set(body) <= {"query", "size", "_source", "track_total_hits"}, f"search {sorted(body)}")
        if body["size"] > RESULT_WINDOW:
            error = {"type": "illegal_argument_exception", "reason": "Result window is too large"}
            return {"error": error, "status": 400}
        if self.manners.busy > 0:
            self.manners.busy -= 1
            reason = "rejected execution of TimedRunnable on QueueResizingEsThreadPoolExecutor[queue capacity = 1000]"
            return {"error": {"type": "es_rejected_execution_exception", "reason": reason}, "status": 429}
        text, system = self.system(index, body["query"])
        self.manners.asked.append(text)
        key = str(system)
        if key not in index.searchers:
            index.searchers[key] = system.index(Corpus.of(index.seen))
        run = index.searchers[key].search(Queries.of({"q": text}), body["size"]).to_dict()["q"]
        hits = [{"_index": "i", "_id": name, "_score": score} for name, score in run.items()]
        return {
            "took": 1,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {"hits": hits},
            "status": 200,
        }

    def system(self, index: HeldIndex, query: dict) -> tuple[str, BM25]:
        """(the text that is asked for, what Weir has for such a query)."""
        properties = index.mappings["properties"]
        if "multi_match" in query:
            asked = query["multi_match"]
            self.check(set(query) == {"multi_match"} and set(asked) <= MULTI_MATCH, f"query {query}")
            self.check(asked["type"] in TYPES, f"type {asked['type']}")
            weights = {n.partition("^")[0]: float(n.partition("^")[2] or 1) for n in asked["fields"]}
            self.check(all(properties[name]["type"] == "text" for name in weights), "no text field")
            return asked["query"], BM25("elastic", fields=weights)
        self.check(set(query) == {"bool"} and set(query["bool"]) == {"should"}, f"query {query}")
        matches = [one["match"] for one in query["bool"]["should"]]
        weights = {name: match.get("boost", 1.0) for one in matches for name, match in one.items()}
        (text,) = {match["query"] for one in matches for match in one.values()}
        return text, BM25("lucene-multifield", k1=1.2, b=0.75, fields=weights)

    def reply(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        super().reply(status, body, (headers or {}) | {"Content-Type": "application/json"})


@contextlib.contextmanager
def elastic_serving() -> Iterator[tuple[str, ElasticManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = ElasticManners()
    with running(ElasticHandler, manners=manners) as address:
        yield address, manners
