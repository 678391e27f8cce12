"""A stand-in for Elasticsearch: it holds every request against the published API, and Weir's own BM25 answers.

What the API's reference does not allow is written down in `wrong` and refused with 400, as the server would; tests/real
asks live servers. This one misbehaves on demand.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import uuid4

from tests.unit.local_server import reply, running
from weir.core.corpus import Corpus, Queries
from weir.systems import BM25

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
    room; most_bytes: of a request; seconds: that a request of documents or a search takes.
    """

    version: dict = field(default_factory=lambda: {"number": "9.1.2", "build_flavor": "default"})
    indexes: dict[str, HeldIndex] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    bulk: list[Callable[[ElasticHandler], None] | None] = field(default_factory=list)
    search: list[Callable[[ElasticHandler], None] | None] = field(default_factory=list)
    rejects: list[int] = field(default_factory=list)
    most_bytes: int = 100 << 20
    seconds: float = 0.0
    put: Counter = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    keys: set = field(default_factory=set)
    turn: threading.Lock = field(default_factory=threading.Lock)


class ElasticHandler(http.server.BaseHTTPRequestHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    protocol_version = "HTTP/1.1"
    manners: ElasticManners

    def log_message(self, *_):
        pass

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
            "docs": {"count": len(index.seen), "deleted": index.writes - len(index.documents)},
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
        reply(self, status, body, (headers or {}) | {"Content-Type": "application/json"})


@contextlib.contextmanager
def elastic_serving() -> Iterator[tuple[str, ElasticManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = ElasticManners()
    with running(ElasticHandler, manners=manners) as address:
        yield address, manners
