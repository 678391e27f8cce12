"""Elasticsearch and OpenSearch as a system, on an index that Weir makes there."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.errors import BadValue, FormatError, ServiceError, StoreError, StoreWarning, give_warning
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.files.network import KeptConnection
from weir.files.text_files import read_toml
from weir.models.hosted import LoadedEncoder
from weir.plugins.servers.live_index import ElasticLiveIndex
from weir.plugins.servers.vectors import MOST_CANDIDATES, VectorSearch, encoder_given, lost, vectors_of
from weir.registry import SESSION, check_whole, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried, ServiceUsage
from weir.services.requests import (
    CONTINUES,
    AnswerTooLargeError,
    AttemptError,
    Clock,
    HttpRequest,
    Key,
    Limits,
    check_address,
    check_key,
    error_text,
    exchange,
    parsed_answer,
    retry,
)
from weir.settings import settings as settings_of_weir
from weir.systems.compose import system_text, then
from weir.systems.dense_search import DenseRetriever
from weir.systems.protocol import ANSWERS, IN_MEMORY, Context, Costs, Progress, called, folder_of, index_repr
from weir.systems.remote.remote_searcher import (
    RemoteSearcher,
    RemoteService,
    check_choice,
    check_number,
    check_on_failure,
    check_text,
    content_of,
    kept_ranking,
    settings_value,
)
from weir.systems.restricted import permitted_only
from weir.systems.vectors.approximate import Loss
from weir.systems.vectors.store import StoredRows

# ----------
# Settings: a TOML file, or what a name says.


QUERIES = ("best_fields", "most_fields", "cross_fields", "bool")
SCHEMES = ("ApiKey", "Basic", "Bearer")
NONE: Mapping[str, Any] = MappingProxyType({})
VECTOR = "weir_vector"
"""The field that holds the vector of a document."""
SPACES = {"inner": "innerproduct", "cosine": "cosinesimil", "l2": "l2"}
"""Distance -> OpenSearch's name for it."""


@dataclass(frozen=True)
class ElasticSettings:
    """Address of an Elasticsearch or OpenSearch server, and settings of Weir's index and searches there.

    Raises BadValue for a value out of range.
    """

    url: str
    plain_http: bool = False
    """Allow plain http to hosts other than this machine."""
    key: str = ""
    """The environment variable that holds the secret, WEIR_KEY_ and a name; "" sends none."""
    scheme: str = "ApiKey"
    """ApiKey, Basic (the key is user:password) or Bearer."""
    prefix: str = "weir-"
    """The beginning of the names of Weir's indexes."""
    fields: tuple[str, ...] = ("title", "text")
    """Fields of a document; each becomes a field of the index. A number after ^ is its weight."""
    analyzer: str = "english"
    """The analyzer of every field."""
    settings: Mapping[str, Any] = field(default_factory=lambda: NONE, hash=False)
    """Settings of the index in the form of the server's API."""
    query: str = "best_fields"
    """A type of multi_match (best_fields, most_fields, cross_fields), or bool: one match for each field, scores
    added.
    """
    tie_breaker: float = 0.5
    """Share at which the scores of other fields are added to the best field's."""
    vector: VectorSearch = field(default_factory=VectorSearch)
    concurrency: int = 8
    """Requests at a time."""
    batch: int = 1
    """Searches in each request."""
    timeout_s: float = 60.0
    on_failure: str = "refuse"
    """How queries without an answer are treated: "refuse" or "missing"."""
    name: str = ""
    """The system's name in tables; "" takes the name of its file."""

    def __post_init__(self) -> None:
        check_address("url", self.url, self.plain_http is True)
        if self.key:
            check_key(self.key, "WEIR_KEY_NAME", self.url)
        check_choice("scheme", self.scheme, SCHEMES)
        check_choice("query", self.query, QUERIES)
        check_on_failure("elasticsearch", self.on_failure)
        check_text("analyzer", self.analyzer)
        if not (isinstance(self.prefix, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]*", self.prefix)):
            raise BadValue(f"prefix is {self.prefix!r}; expected small letters, digits and dashes")
        check_whole("concurrency", self.concurrency, 1, 256)
        check_whole("batch", self.batch, 1, 1000)
        check_number("tie_breaker", self.tie_breaker, 1.0)
        check_number("timeout_s", self.timeout_s, 1e6)
        if not isinstance(self.settings, Mapping):
            raise BadValue(f"settings are {self.settings!r}; expected a table")
        if not self.fields or not all(isinstance(one, str) for one in self.fields):
            raise BadValue(
                f"fields are {list(self.fields)!r}; expected names of fields, such as title and text"
            )
        for one in self.field_names:
            check_view(one)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the searched fields, without weights such as "^2"."""
        return tuple(one.partition("^")[0] for one in self.fields)

    def index_facts(self) -> dict[str, object]:
        """Return the settings that decide an index's contents."""
        return {"fields": list(self.field_names), "analyzer": self.analyzer, "settings": dict(self.settings)}

    def search_facts(self) -> dict[str, object]:
        """Return the settings that decide a search's results."""
        tie = {} if self.query == "bool" else {"tie_breaker": self.tie_breaker}
        return {"query": self.query, "fields": list(self.fields), **tie, "on_failure": self.on_failure}

    def search_body(self, text: str, k: int) -> dict[str, Any]:
        """Return the JSON body of a full-text search for the k best documents."""
        if self.query == "bool":
            weighted = [one.partition("^") for one in self.fields]
            matches = [
                {"match": {name: {"query": text} | ({"boost": float(weight)} if weight else {})}}
                for name, _, weight in weighted
            ]
            query: dict[str, Any] = {"bool": {"should": matches}}
        else:
            match = {"query": text, "type": self.query, "fields": list(self.fields)}
            query = {"multi_match": match | {"tie_breaker": self.tie_breaker}}
        return {"query": query, "size": k, "_source": False, "track_total_hits": False}

    def vector_body(self, vector: list[float], k: int, among: list[int] | None = None) -> dict[str, Any]:
        """Return the JSON body of a search by a vector, through the graph or exactly.

        among: numbers of the only documents that the graph may find, None for all; an exact search ignores
            it.
        """
        search = self.vector
        if search.index == "hnsw":
            asked = {"vector": vector, "k": k, "method_parameters": {"ef_search": max(search.ef_search, k)}}
            only = {} if among is None else {"filter": {"terms": {NUMBER: among}}}
            query: dict[str, Any] = {"knn": {VECTOR: asked | only}}
        else:
            params = {"field": VECTOR, "query_value": vector, "space_type": SPACES[search.distance]}
            script = {"lang": "knn", "source": "knn_score", "params": params}
            query = {"script_score": {"query": {"match_all": {}}, "script": script}}
        return {"query": query, "size": k, "_source": False, "track_total_hits": False}


def read_elastic_settings(path: Path) -> ElasticSettings:
    """Return the settings in a TOML file; raises FormatError for other content, UnknownName for an unknown key."""
    entries = read_toml(path, "the settings of an Elasticsearch server, see docs/retrievers.md")
    if isinstance(entries.get("fields"), list):
        entries["fields"] = tuple(entries["fields"])
    if "vector" in entries:
        entries["vector"] = settings_value(VectorSearch, path, "[vector]", entries["vector"])
    if "url" not in entries:
        raise FormatError(path, "no url", "the address of the server")
    return settings_value(ElasticSettings, path, "the file", entries)


# ----------
# One connection: calls of the API, and errors.


ANSWER_BYTES, HIT_BYTES = 32 << 20, 1 << 12
"""Limits on the size of an answer. For searches it is 1 MiB plus HIT_BYTES for each document asked for: an identifier
has at most 512 bytes, up to 3,072 as JSON.
"""
HTTP_NOT_FOUND, HTTP_TOO_LARGE = 404, 413
SILENT_SECONDS, MOST_SILENT = 120.0, 2
"""After SILENT_SECONDS without an answer a request is not sent again, since a hanging node accepts connections for
ever. After MOST_SILENT unanswered single searches in a row, the rest of their batch is not sent.
"""


@dataclass(eq=False)
class ElasticServer:
    """A connection to an Elasticsearch or OpenSearch server, for one thread."""

    settings: ElasticSettings
    retried: Retried = lambda _: None
    """Called after each failed attempt that is retried."""
    clock: Clock = field(default_factory=Clock)
    connection: KeptConnection = field(default_factory=KeptConnection)

    def __post_init__(self) -> None:
        self.key = Key.of(self.settings.key)
        seconds = self.settings.timeout_s
        self.limits = Limits(timeout=seconds, whole=max(Limits().whole, seconds), attempts=8)

    def call(
        self,
        method: str,
        path: str,
        content: Any = None,  # noqa: ANN401  any JSON, or lines of it as bytes
        missing: bool = False,
        max_bytes: int = ANSWER_BYTES,
        divisible: bool = False,
    ) -> Any:  # noqa: ANN401  whatever the server says
        """Send a request, with retries, and return the answer's JSON.

        content: any JSON, or `_json_lines` of several.
        missing: return None for status 404.
        divisible: do not retry after a timeout, since the caller then sends smaller requests.

        Raises ServiceError for a refused key; AttemptError if no attempt succeeds, and for an answer without
        JSON or above `max_bytes`.
        """
        several = isinstance(content, bytes)
        body = content if several or content is None else json.dumps(content).encode("ascii")
        kind = "application/x-ndjson" if several else "application/json"
        headers = {"Accept": "application/json", "User-Agent": "weir", "Content-Type": kind}
        if self.key.variable is not None:
            value = self.key.checked()
            value = b64encode(value.encode()).decode() if self.settings.scheme == "Basic" else value
            headers["Authorization"] = f"{self.settings.scheme} {value}"
        url = self.settings.url.rstrip("/") + path
        request = HttpRequest(method, url, headers, body, (self.key,))
        limits = (self.limits.timeout, self.limits.whole)
        begun = self.clock.now()

        def attempt() -> bytes:
            try:
                return exchange(self.connection, request, max_bytes, limits, self.key.masked, self.clock)
            except AnswerTooLargeError as error:
                raise AttemptError("malformed", str(error), again=False) from None
            except AttemptError as error:
                if error.kind != "timed out":
                    raise
                silent = self.clock.now() - begun
                reason = f"{error}, for {silent:,.0f} s: the node hangs or has too much to do; timeout_s waits longer"
                again = silent < SILENT_SECONDS and not divisible
                raise AttemptError("timed out", reason, again=again) from None

        try:
            answer = retry(attempt, self.limits, self.clock, lambda error, _: self.retried(error))
        except AttemptError as error:
            if error.status == HTTP_NOT_FOUND and missing:
                return None
            if error.status in (401, 403):
                raise ServiceError(f"{self.settings.url}: {error}; {self.key.hint()}") from None
            raise
        try:
            return parsed_answer(answer)
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut", again=False) from None

    def pause(self, attempt: int) -> None:
        """Sleep before a retry, longer with each attempt (from 1)."""
        limits, clock = self.limits, self.clock
        clock.sleep(min(limits.longest, limits.pause * 2.0 ** (attempt - 1) * (0.5 + clock.chance())))


def _json_lines(items: Iterable[Any]) -> bytes:
    """Return each item as a line of JSON, in ASCII."""
    return b"".join(json.dumps(item).encode("ascii") + b"\n" for item in items)


@contextmanager
def _elastic_connected(settings: ElasticSettings) -> Iterator[ElasticServer]:
    server = ElasticServer(settings)
    with closing(server.connection):
        try:
            yield server
        except AttemptError as error:
            raise ServiceError(f"{settings.url}: {error}") from None


# ----------
# The index. BM25 counts every copy of a document that the server has not yet purged, so no document is written twice:
# documents go in order, each is created under its identifier, and one that is there stays as it is. A batch is sent
# when all documents of the one before are there. The mapping's _meta is Weir's mark: what decides the index, and, last
# of all, that it is complete and how many writes it took. An index without the mark is never written or removed.


NUMBER = "weir_number"
"""The field that holds the position of a document in the collection."""
BATCH_DOCUMENTS, BATCH_BYTES = 1000, 5 << 20
NUMBER_BYTES = 20
"""Estimated bytes of one component of a vector as JSON."""
MOST_ID_BYTES = 512
"""Longest identifier of a document that Elasticsearch takes."""
CONFLICT, TOO_MANY_REQUESTS = 409, 429
PASSING = (TOO_MANY_REQUESTS, 503)
"""Statuses of a search in a batch for which the server has no room, or no shard yet."""
FULL = "rejected_execution_exception"
"""Error type of a shard whose queue is full; Elasticsearch puts es_ before it."""
GONE = ("node_disconnected_exception", "node_not_connected_exception", "node_closed_exception")
"""Error types of a shard whose node stopped during the request: another node may have a copy."""
MERGE_SECONDS = 3600.0
"""Timeout of the request that merges all vectors into one graph."""
SHOWN_CHARACTERS = 400
"""Most characters of a server's message that are shown."""
SHARD_ATTEMPTS, SHARD_PAUSE_SECONDS = 30, 1.0
"""How often and how far apart the server is asked for missing shards: it may just have been started."""
DECISIVE = (
    "index.analysis.",
    "index.default_pipeline",
    "index.final_pipeline",
    "index.knn",
    "index.mode",
    "index.number_of_shards",
    "index.search.default_pipeline",
    "index.similarity.",
    "index.sort.",
)
"""Prefixes of settings that decide how documents are indexed or scored."""
NEUTRAL = {
    "index.default_pipeline": "_none",
    "index.final_pipeline": "_none",
    "index.mode": "standard",
    "index.search.default_pipeline": "_none",
}
"""Values of decisive settings that mean the same as their absence."""


@dataclass(frozen=True, eq=False)
class ElasticIndex:
    """The index of a collection on the server, made by Weir."""

    settings: ElasticSettings
    corpus: Corpus
    about: dict[str, object]
    """Everything that decides the index; its hash is part of the name."""
    dimensions: int = 0
    """Dimensions of the vectors; 0 for an index of texts."""
    vectors: StoredRows | None = None
    """Vectors of the documents; None if there is nothing to fill."""

    @property
    def index_name(self) -> str:
        """A prefix and a hash of all that decides the index's contents."""
        return _index_name(self.settings.prefix, self.about)

    @property
    def properties(self) -> dict[str, Any]:
        """The fields of the index's mapping: a vector or the searched fields, and the document's number."""
        if self.dimensions:
            return {VECTOR: self._vector_field, NUMBER: {"type": "integer"}}
        text = {"type": "text", "analyzer": self.settings.analyzer}
        return {**dict.fromkeys(self.settings.field_names, text), NUMBER: {"type": "integer"}}

    @property
    def _vector_field(self) -> dict[str, Any]:
        search = self.settings.vector
        plain: dict[str, Any] = {"type": "knn_vector", "dimension": self.dimensions}
        if search.index == "exact":
            return plain
        parameters = {"m": search.m, "ef_construction": search.ef_construction}
        method = {"name": "hnsw", "engine": "lucene", "space_type": SPACES[search.distance]}
        return plain | {"method": method | {"parameters": parameters}}

    @property
    def is_graph(self) -> bool:
        """True if the index searches vectors by an HNSW graph."""
        return self.dimensions > 0 and self.settings.vector.index == "hnsw"

    @property
    def index_settings(self) -> dict[str, Any]:
        """The settings of the index, by default one shard."""
        # One shard, so that term statistics cover all documents.
        return {"number_of_shards": 1, **({"knn": True} if self.is_graph else {}), **self.settings.settings}

    def mark(self, writes: int | None) -> dict[str, Any]:
        """Return the entry in the index's mapping by which Weir recognises it.

        writes: number of writes to the complete index; None while incomplete.
        """
        done = {"complete": writes is not None} | ({} if writes is None else {"writes": writes})
        return {"weir": {"about": self.about, "documents": len(self.corpus), **done}}


@dataclass(frozen=True)
class _IndexState:
    uuid: str
    """The server gives each new index its own."""
    mark: Mapping[str, Any] | None
    """Weir's entry in the mapping; None if there is none."""
    mappings: Mapping[str, Any]
    settings: Mapping[str, Any]
    """Keys are full names, such as index.number_of_shards."""


@dataclass(frozen=True)
class _IndexIdentity:
    """The identity of an index's contents; equal identities have equal contents."""

    uuid: str
    documents: int
    """Documents that a search sees."""
    deleted: int
    """Deleted or overwritten copies, which still count in term statistics."""
    writes: int
    """Writes since the index was made."""


@dataclass(frozen=True)
class _CompleteIndex:
    """An index on the server with exactly the documents of the collection."""

    identity: _IndexIdentity
    bytes: int
    """Size on the server without replicas."""
    reused: int
    """Documents that were there before it was filled."""


def _elastic_versions(server: ElasticServer) -> dict[str, str]:
    answer = server.call("GET", "/")
    version = answer.get("version") if isinstance(answer, dict) else None
    number = version.get("number") if isinstance(version, dict) else None
    if not isinstance(version, dict) or not isinstance(number, str):
        raise BadValue(f"{server.settings.url} does not answer as Elasticsearch or OpenSearch do")
    name = "OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch"
    return {name: number}


def _complete_index(server: ElasticServer, index: ElasticIndex) -> _CompleteIndex | None:
    state = _state(server, index)
    if state is None or state.mark is None or state.mark.get("complete") is not True:
        return None
    identity, size = _identity(server, index, state)
    as_written = _IndexIdentity(state.uuid, len(index.corpus), 0, state.mark.get("writes", -1))
    if identity != as_written or _deviations(index, state):
        return None
    return _CompleteIndex(identity, size, len(index.corpus))


def _filled_index(index: ElasticIndex, progress: Progress | None) -> tuple[dict[str, str], _CompleteIndex]:
    with _elastic_connected(index.settings) as server:
        versions = _elastic_versions(server)
        complete = _complete_index(server, index)
        if complete is None:
            for name in index.corpus.ids:
                if len(name) * 4 > MOST_ID_BYTES and len(name.encode("utf-8")) > MOST_ID_BYTES:
                    raise BadValue(
                        f"document '{name[:60]}...' has an identifier of more than {MOST_ID_BYTES} bytes, which the "
                        f"server does not take; give the documents shorter ones, in the judgments too"
                    )
            complete, fault = _write_index(server, index, progress)
            if complete is None:  # what an earlier attempt left could not be mended by going on
                _warn_again(index, fault)
                complete, fault = _write_index(server, index, progress)
            if complete is None:
                raise ServiceError(
                    f"{index.settings.url}: {index.index_name} {fault}, although it was made again"
                )
    return versions, complete


def _removed_indexes(settings: ElasticSettings) -> list[str]:
    with _elastic_connected(settings) as server:
        mappings = server.call("GET", f"/{settings.prefix}*/_mapping", missing=True) or {}
        with _documented(settings.url):
            marks = {name: _mark(one.get("mappings")) for name, one in mappings.items()}
        names = sorted(
            name
            for name, mark in marks.items()
            if mark is not None and name == _index_name(settings.prefix, mark.get("about"))
        )
        for name in names:
            server.call("DELETE", f"/{name}", missing=True)
    return names


def _index_name(prefix: str, about: object) -> str:
    text = json.dumps(about, sort_keys=True, default=str)
    return prefix + hashlib.blake2b(text.encode("utf-8"), digest_size=10).hexdigest()


def _mark(mappings: Any) -> dict[str, Any] | None:  # noqa: ANN401  whatever the server says
    for name in ("_meta", "weir"):
        mappings = mappings.get(name) if isinstance(mappings, dict) else None
    return mappings if isinstance(mappings, dict) else None


def _state(server: ElasticServer, index: ElasticIndex) -> _IndexState | None:
    with _documented(index.settings.url):
        answer = server.call("GET", f"/{index.index_name}?flat_settings=true", missing=True)
        if answer is None:
            return None
        url, way_out = (
            index.settings.url,
            "nothing was written to it; set another prefix, or remove it yourself",
        )
        if set(answer) != {index.index_name}:
            raise ServiceError(
                f"{url}: {index.index_name} is an alias of {', '.join(sorted(answer))}; {way_out}"
            )
        facts = answer[index.index_name]
        mark = _mark(facts["mappings"])
        if mark is None or _index_name(index.settings.prefix, mark.get("about")) != index.index_name:
            raise ServiceError(
                f"{url}: {index.index_name} is there without Weir's mark in its _meta; {way_out}"
            )
        return _IndexState(facts["settings"]["index.uuid"], mark, facts["mappings"], facts["settings"])


def _identity(server: ElasticServer, index: ElasticIndex, state: _IndexState) -> tuple[_IndexIdentity, int]:
    with _documented(index.settings.url):
        total, url = int(state.settings["index.number_of_shards"]), index.settings.url
        for attempt in range(SHARD_ATTEMPTS):
            if missing := total - len(_primaries(_shards(server, index))):
                message = f"{url}: {missing} of {total} shards of {index.index_name} are not there"
                if attempt == 0:
                    seconds = SHARD_ATTEMPTS * SHARD_PAUSE_SECONDS
                    give_warning(StoreWarning(f"{message}; waiting up to {seconds:g} s"))
                server.clock.sleep(SHARD_PAUSE_SECONDS)
                continue
            server.call("POST", f"/{index.index_name}/_refresh")  # it would wait long for a shard
            shards = _shards(server, index)
            primaries = _primaries(shards)
            if len(primaries) == total:
                documents = sum(_count(copy["docs"]["count"]) for copy in primaries)
                deleted = sum(_count(copy["docs"]["deleted"]) for copies in shards for copy in copies)
                writes = sum(_count(copy["seq_no"]["max_seq_no"]) + 1 for copy in primaries)
                # Not from _stats, whose sizes may be ten seconds old.
                answer = server.call("GET", f"/{index.index_name}/_segments")
                copies = _primaries(
                    list(answer["indices"].get(index.index_name, {}).get("shards", {}).values())
                )
                size = sum(
                    _count(one["size_in_bytes"]) for copy in copies for one in copy["segments"].values()
                )
                return _IndexIdentity(state.uuid, documents, deleted, writes), size
        raise ServiceError(
            f"{url}: shards of {index.index_name} are lost: {_recovery_hint(server, index, total)}"
        )


def _recovery_hint(server: ElasticServer, index: ElasticIndex, total: int) -> str:
    remedy, reasons = "bring their nodes back", list[str]()
    for number in range(total):
        with suppress(AttemptError, ServiceError):  # not every user may ask
            shard = {"index": index.index_name, "shard": number, "primary": True}
            answer = server.call("POST", "/_cluster/allocation/explain", shard, missing=True)
            if not isinstance(answer, dict) or answer.get("current_state") != "unassigned":
                continue
            reason, info = answer.get("allocate_explanation"), answer.get("unassigned_info", {})
            if "retry_failed=true" in json.dumps(answer):  # it gave up
                remedy = "POST /_cluster/reroute?retry_failed=true has the server try again"
                reason = info.get("details", reason)
            reasons.append(str(reason))
    why = f"; the server says: {' '.join(reasons[0].split())[-SHOWN_CHARACTERS:]}" if reasons else ""
    return f"{remedy}, or weir data drop removes it{why}"


def _shards(server: ElasticServer, index: ElasticIndex) -> list[list[dict[str, Any]]]:
    stats = server.call("GET", f"/{index.index_name}/_stats/docs?level=shards")
    return list(stats["indices"].get(index.index_name, {}).get("shards", {}).values())


def _count(value: object) -> int:
    if not isinstance(value, (int, float)) or not float(value).is_integer():  # neither is NaN
        raise ValueError(f"the count {json.dumps(value)[:80]}")
    return int(value)


@contextmanager
def _documented(url: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ServiceError(
            f"{url}: an answer is not what the API of Elasticsearch and OpenSearch documents ({error})"
        ) from None


def _primaries(shards: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [copy for copies in shards for copy in copies if copy["routing"]["primary"]]


def _deviations(index: ElasticIndex, state: _IndexState) -> list[str]:
    deviations: list[str] = []
    with _documented(index.settings.url):
        properties, computed = state.mappings.get("properties", {}), state.mappings.get("runtime", {})
        for name, expected in index.properties.items():
            plain = {key: value for key, value in expected.items() if (key, value) != ("analyzer", "default")}
            if properties.get(name) != plain or name in computed:
                deviations.append(
                    f"field {name} is {json.dumps(properties.get(name))}, not {json.dumps(plain)}"
                )
    wanted_settings = dict(_flat_settings(index.index_settings, "index."))
    for name in sorted({*wanted_settings, *state.settings}):
        here, expected = state.settings.get(name), wanted_settings.get(name)
        if (
            name.startswith(DECISIVE)
            and here != expected
            and not (expected is None and here == NEUTRAL.get(name))
        ):
            deviations.append(f"{name} is {json.dumps(here)}, not {json.dumps(expected)}")
    return deviations


def _flat_settings(settings: Mapping[str, Any], within: str) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        full = name if name.startswith("index.") else within + name
        if isinstance(value, Mapping):
            yield from _flat_settings({full + "." + key: one for key, one in value.items()}, "")
        elif isinstance(value, list):
            yield full, [one if isinstance(one, str) else json.dumps(one) for one in value]
        else:
            yield full, value if isinstance(value, str) else json.dumps(value)


def _write_index(
    server: ElasticServer, index: ElasticIndex, progress: Progress | None
) -> tuple[_CompleteIndex | None, str]:
    state, reused = _begun(server, index)
    query = {"size": 0, "aggs": {"last": {"max": {"field": NUMBER}}}}
    answer = server.call("POST", f"/{index.index_name}/_search", query)
    with _documented(index.settings.url):
        last = answer["aggregations"]["last"]["value"]
        start = 0 if last is None else max(0, _count(last) + 1 - BATCH_DOCUMENTS)
    total, most = len(index.corpus), BATCH_DOCUMENTS
    while start < total:
        batch = list(_batch(index, start, most))
        try:
            _put(server, index, batch)
        except AttemptError as error:
            if error.status != HTTP_TOO_LARGE:
                raise
            if len(batch) == 1:
                raise ServiceError(
                    f"{index.settings.url}: document '{batch[0][0]}': {error}; the server's own "
                    "http.max_content_length allows larger documents"
                ) from None
            most = len(batch) // 2
            continue
        start += len(batch)
        if progress is not None:
            progress(start, total)
    if index.is_graph:  # one graph, so that the same documents are found each time
        merging = ElasticServer(replace(server.settings, timeout_s=MERGE_SECONDS), server.retried)
        with closing(merging.connection):
            merging.call("POST", f"/{index.index_name}/_forcemerge?max_num_segments=1")
    server.call("PUT", f"/{index.index_name}/_settings", {"index": {"refresh_interval": None}})
    after = _state(server, index)
    if after is None or after.uuid != state.uuid or _deviations(index, after):
        raise ServiceError(
            f"{index.settings.url}: {index.index_name} was removed or changed while it was filled"
        )
    identity, size = _identity(server, index, after)
    fault = _index_fault(server, index, identity)
    if not fault and identity.documents < len(index.corpus):
        fault = f"has {identity.documents:,} of {len(index.corpus):,} documents"
    if fault:
        return None, fault
    server.call("PUT", f"/{index.index_name}/_mapping", {"_meta": index.mark(identity.writes)})
    return _CompleteIndex(identity, size, reused), ""


def _begun(server: ElasticServer, index: ElasticIndex) -> tuple[_IndexState, int]:
    state = _state(server, index)
    if state is not None and state.mark is not None:
        identity, _ = _identity(server, index, state)
        fault = "; ".join(_deviations(index, state)) or _index_fault(server, index, identity)
        if not fault and state.mark.get("complete") is True:
            fault = "was changed since it was complete"
        if not fault:
            return state, identity.documents
        _warn_again(index, fault)
        server.call("DELETE", f"/{index.index_name}", missing=True)
    # What is there is seen when all is there.
    settings = {"refresh_interval": "-1", **index.index_settings}
    mappings = {"dynamic": False, "_meta": index.mark(None), "properties": index.properties}
    try:
        server.call("PUT", f"/{index.index_name}", {"settings": settings, "mappings": mappings})
    except AttemptError as error:
        if index.dimensions and "[knn_vector]" in str(error):
            raise BadValue(
                f"{index.settings.url} has no k-NN plugin of OpenSearch, which searches vectors"
            ) from None
        if "resource_already_exists_exception" not in str(error):  # another process made it meanwhile
            raise
    state = _state(server, index)
    deviations = ["it is not there"] if state is None else _deviations(index, state)
    if state is None or deviations:
        server.call("DELETE", f"/{index.index_name}", missing=True)
        raise ServiceError(
            f"{index.settings.url}: the server makes another index than was asked for: {'; '.join(deviations)}; an "
            f"index template may do that: say the same in [settings], or set a prefix that no template has"
        )
    return state, 0


def _warn_again(index: ElasticIndex, fault: str) -> None:
    give_warning(StoreWarning(f"{index.settings.url}: {index.index_name} {fault}; it is made again"))


def _index_fault(server: ElasticServer, index: ElasticIndex, identity: _IndexIdentity) -> str:
    with _documented(index.settings.url):
        if identity.deleted:
            return f"has {identity.deleted:,} deleted copies, which count in its scores"
        numbers = {"numbers": {"stats": {"field": NUMBER}}}
        unnumbered = {"bool": {"must_not": {"exists": {"field": NUMBER}}}}
        answer = server.call("POST", f"/{index.index_name}/_search", {"size": 0, "aggs": numbers})
        stats = answer["aggregations"]["numbers"]
        n, total = identity.documents, len(index.corpus)
        foreign = max(n - _count(stats["count"]), n - total)
        if foreign > 0:
            query = {"size": 1, "query": unnumbered}
            hits = server.call("POST", f"/{index.index_name}/_search", query)["hits"]["hits"]
            first = f", such as '{hits[0]['_id']}'," if hits else ""
            raise ServiceError(
                f"{index.settings.url}: {index.index_name} holds {foreign:,} documents{first} that are not of the "
                "collection; weir data drop removes the index, and the next run makes it anew"
            )
        whole = (
            n < total or n == 0 or (stats["min"], stats["max"], stats["sum"]) == (0, n - 1, n * (n - 1) / 2)
        )
        return "" if whole else "holds other documents than the collection"


def _batch(index: ElasticIndex, start: int, most: int) -> Iterator[tuple[str, dict[str, object]]]:
    corpus, size = index.corpus, 0
    stop = min(start + most, len(corpus))
    columns: dict[str, list[Any]] = {}
    if index.vectors is not None:
        columns[VECTOR] = index.vectors.block(start, stop).tolist()
    else:
        columns = {name: corpus.view(name, start, stop).tolist() for name in index.settings.field_names}
    for at in range(stop - start):
        values = {name: column[at] for name, column in columns.items()}
        yield corpus.ids[start + at], {**values, NUMBER: start + at}
        size += sum(NUMBER_BYTES * len(one) if name == VECTOR else len(one) for name, one in values.items())
        if size > BATCH_BYTES:
            return


def _put(server: ElasticServer, index: ElasticIndex, batch: list[tuple[str, dict[str, object]]]) -> None:
    waiting, attempt = dict(batch), 1
    while waiting:
        lines = [line for name, fields in waiting.items() for line in ({"create": {"_id": name}}, fields)]
        answer = server.call("POST", f"/{index.index_name}/_bulk", _json_lines(lines))
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list) or len(items) != len(waiting):
            raise AttemptError(
                "malformed", f"the answer does not list each of {len(waiting)} documents", again=False
            )
        again: dict[str, dict[str, object]] = {}
        reason = ""
        for item, (name, fields) in zip(items, waiting.items(), strict=True):
            with _documented(server.settings.url):
                outcome = item["create"]
                status, error = outcome["status"], outcome.get("error")
            if status in (200, 201, CONFLICT):
                continue
            reason = " ".join(error_text(outcome, f"status {status}").split())[:SHOWN_CHARACTERS]
            if isinstance(error, dict) and error.get("type") == "cluster_block_exception":
                raise ServiceError(f"{server.settings.url}: nothing can be written: {reason}; {CONTINUES}")
            if status != TOO_MANY_REQUESTS:
                raise ServiceError(f"{server.settings.url}: document '{name}' was refused: {reason}")
            again[name] = fields
        waiting = again
        if waiting:
            reason = f"429: no room for {len(waiting)} documents: {reason}"
            if attempt >= server.limits.attempts:
                raise AttemptError("refused", f"{reason} ({attempt} attempts)", again=False)
            server.retried(AttemptError("refused", reason))
            server.pause(attempt)
            attempt += 1


FORMAT = 2
"""Version of the index's layout. Format 1 wrote documents again, which BM25 counted twice."""
ADVICE = {
    "max_result_window": "; max_result_window = NUMBER under [settings] of the file makes an index that allows it",
    "maxClauseCount": "; the server's own indices.query.bool.max_clause_count allows longer queries",
    FULL: "; a smaller concurrency and batch in the file ask for less at once",
    "circuit_breaking_exception": "; a smaller k, concurrency and batch need less of its memory",
}
"""Words of a server's message -> advice."""


@dataclass(frozen=True)
class Elasticsearch:
    """A system that copies a collection to an Elasticsearch or OpenSearch server and searches it there."""

    arguments: tuple[tuple[str, ...], tuple[tuple[str, object], ...]]
    """The arguments of the written name: positional, named."""
    settings: ElasticSettings
    version: str | None = None
    """The user's label for the server in keys; None uses a hash of its address."""
    dense: DenseRetriever | None = None
    """The encoder of vectors; None for search by words."""

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        positional, options = self.arguments
        return called("elasticsearch", list(positional), dict(options))

    def title(self) -> tuple[str, str]:
        return "".join(self.arguments[0]), self.settings.name

    @property
    def service(self) -> str:
        return f"the server {self.settings.url}"

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {"system": "elasticsearch", "index": self._index_facts()}
        vectors = {**self.settings.vector.facts(), "on_failure": self.settings.on_failure}
        description["search"] = self.settings.search_facts() if self.dense is None else vectors
        address = hashlib.blake2b(self.settings.url.encode(), digest_size=8).hexdigest()
        return description | {"server": self.version or address}

    def fields_read(self) -> tuple[str, ...]:
        return self.settings.field_names if self.dense is None else self.dense.fields_read()

    def fetch(self) -> None:
        if self.dense is not None:
            self.dense.fetch()

    def _index_facts(self) -> dict[str, object]:
        if self.dense is None:
            return {"format": FORMAT, **self.settings.index_facts()}
        search = self.settings.vector.facts()
        search.pop("ef_search", None)
        settings = {"settings": dict(self.settings.settings)}
        return {"format": FORMAT, "vectors": search, "encoder": self.dense.describe(), **settings}

    def indexed_as(self) -> Elasticsearch:
        plain = ElasticSettings(self.settings.url)
        settings = replace(
            self.settings,
            fields=self.settings.field_names,
            query=plain.query,
            tie_breaker=plain.tie_breaker,
            vector=replace(self.settings.vector, ef_search=plain.vector.ef_search),
            on_failure=plain.on_failure,
        )
        positional, options = self.arguments
        index_arguments = tuple(
            (name, value)
            for name, value in options
            if name in ("url", "analyzer", "fields", "encoder", "index")
        )
        return replace(self, settings=settings, arguments=(positional, index_arguments))

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ElasticSearcher:
        """Send the documents, or their vectors, that the server lacks, and return the searcher; raises
        ServiceError if the server fails.

        The context's folder, if any, gets an index.json that names the index.
        """
        vectors = None
        if self.dense is not None:
            vectors = self.dense.index(corpus, replace(context, folder=None)).documents.stored
        index = self._index(corpus, 0 if vectors is None else vectors.dimensions, vectors)
        versions, complete = _filled_index(index, context.progress)
        if context.folder is not None:
            with atomic_dir(context.folder) as folder:
                facts = {
                    "format": FORMAT,
                    "index": index.index_name,
                    "identity": asdict(complete.identity),
                    "versions": versions,
                    "dimensions": index.dimensions,
                }
                seal_folder(folder, "index.json", facts)
        return self._searcher(index, complete, versions)

    def open(self, corpus: Corpus, context: Context) -> ElasticSearcher:
        """Return the searcher; raises StoreError if the server has no complete index, ServiceError if it fails."""
        at = folder_of(context)
        index = self._index(corpus, int(open_folder(at, "index.json").get("dimensions", 0)))
        with _elastic_connected(self.settings) as server:
            versions, complete = _elastic_versions(server), _complete_index(server, index)
        if complete is None:
            raise StoreError(f"{at}: the server has no complete index {index.index_name}; it is made again")
        return self._searcher(index, complete, versions)

    def live_index(self, corpus: Corpus) -> ElasticLiveIndex:
        """Return the server's index for `weir why`; raises BadValue for a search of vectors."""
        if self.dense is not None:
            raise BadValue(f"{self} searches vectors: it has no words to explain")
        name = self._index(corpus).index_name

        def ask(path: str, body: Any) -> Any:  # noqa: ANN401  any JSON
            with _elastic_connected(self.settings) as server:
                return server.call("GET" if body is None else "POST", f"/{name}{path}", body)

        return ElasticLiveIndex(
            name, ask, "/_search?search_type=dfs_query_then_fetch", self.settings.search_body
        )

    def uninstall(self) -> list[str]:
        return _removed_indexes(self.settings)

    def _searcher(
        self, index: ElasticIndex, complete: _CompleteIndex, versions: Mapping[str, str]
    ) -> ElasticSearcher:
        content = content_of(index.corpus, self.fields_read())
        about = {**self.describe(), "corpus": content, "versions": versions}
        about |= {"answered by": asdict(complete.identity)}
        use = ServiceUsage("", {**versions, "index": complete.identity.uuid})
        return ElasticSearcher(str(self), index, complete, about, self.dense, use)

    def _index(self, corpus: Corpus, dimensions: int = 0, vectors: StoredRows | None = None) -> ElasticIndex:
        content = content_of(corpus, self.fields_read())
        about = {"format": FORMAT, "corpus": content, **self._index_facts()}
        return ElasticIndex(self.settings, corpus, about, dimensions, vectors)


@dataclass(frozen=True, eq=False)
class ElasticSearcher:
    """A searcher of an index on a server, with the encoder of queries if it has vectors."""

    name: str
    index: ElasticIndex
    complete: _CompleteIndex
    about: Mapping[str, object]
    """Everything that decides an answer; the key of stored answers."""
    dense: DenseRetriever | None
    """The encoder of queries; None for search by words."""
    use: ServiceUsage
    """Counts of requests, for costs."""
    exactly: bool = False
    """Search vectors exactly, without the graph."""

    __repr__ = index_repr

    @cached_property
    def query_encoder(self) -> LoadedEncoder:
        """The encoder of queries, loaded at the first use."""
        assert self.dense is not None
        return self.dense.encoder.load(settings_of_weir().device)

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        index, settings = self.index, self.index.settings
        vectors = None if self.dense is None else vectors_of(self.dense, self.query_encoder, queries)
        if self.exactly:
            settings = replace(settings, vector=settings.vector.overridden("exact", None))
        service = RemoteService(
            self.name,
            self.about,
            partial(ElasticAsker, settings, index.index_name, vectors),
            RequestPolicy(settings.concurrency, settings.batch),
            settings.on_failure,
            partial(_check_same, index, self.complete.identity),
        )
        return RemoteSearcher(service, index.corpus, self.use).search(queries, k, context)

    def loss(self, queries: Queries, k: int) -> Loss:
        if not self.index.is_graph:
            raise BadValue(f"{self.name} searches exactly; only an approximate index loses anything")
        about = {**self.about, SESSION: "asked exactly"}
        exact = replace(self, about=about, use=ServiceUsage(""), exactly=True).search(queries, k)
        return lost(exact, replace(self, use=ServiceUsage("")).search(queries, k))

    def can_filter(self) -> bool:
        return self.index.is_graph

    def efforts(self) -> tuple[int, int]:
        return self.index.settings.vector.ef_search, MOST_CANDIDATES

    def near_among(
        self, query: NDArray[np.float32], k: int, effort: int, permitted: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], float]:
        settings = self.index.settings
        settings = replace(settings, vector=replace(settings.vector, ef_search=effort))
        among = None if permitted is None else np.flatnonzero(permitted).tolist()
        with _elastic_connected(settings) as server:
            body = settings.vector_body(query.tolist(), k, among)
            answer = server.call("POST", f"/{self.index.index_name}/_search", body)
        with _documented(settings.url):
            names = [hit["_id"] for hit in answer["hits"]["hits"]]
        return self.index.corpus.ids.codes(names).astype(np.int64), math.nan

    def costs(self) -> Costs:
        services = (self.use.named(self.name),)
        return Costs(self.complete.bytes, self.complete.reused, services=services)


@dataclass(eq=False)
class ElasticAsker:
    """A worker that sends searches in batches over one connection."""

    settings: ElasticSettings
    index: str
    vectors: NDArray[np.float32] | None
    """Vectors by the number of the request; None for search by words."""
    retried: Retried
    server: ElasticServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ElasticServer(self.settings, self.retried)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        waiting = list(requests)
        if self.vectors is not None:
            silent = [request for request in requests if not request.body["text"].strip()]
            yield from (Outcome(request, kept_ranking([])) for request in silent)
            waiting = [request for request in requests if request.body["text"].strip()]
        attempt = 1
        while waiting:
            start = time.perf_counter()
            try:
                responses = self._responses(waiting)
            except AttemptError as error:
                half = len(waiting) // 2 if error.status == HTTP_TOO_LARGE else 0
                if error.kind == "timed out" and len(waiting) > 1:
                    self.retried(error)
                    yield from self._one_by_one(waiting)
                elif half:
                    yield from self.ask(waiting[:half])
                    yield from self.ask(waiting[half:])
                elif error.status == HTTP_TOO_LARGE:
                    reason = f"{error}; the server's own http.max_content_length allows longer queries"
                    yield Outcome(waiting[0], error=AttemptError("refused", reason, again=False))
                else:
                    yield from (Outcome(request, error=error) for request in waiting)
                return
            seconds = time.perf_counter() - start
            again: list[Request] = []
            for request, response in zip(waiting, responses, strict=True):
                try:
                    yield Outcome(request, _ranking(response), seconds)
                except AttemptError as error:
                    if error.again and attempt < self.server.limits.attempts:
                        self.retried(error)
                        again.append(request)
                    else:
                        yield Outcome(request, error=error)
            waiting = again
            if waiting:
                self.server.pause(attempt)
                attempt += 1

    def _one_by_one(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        silent: list[AttemptError] = []
        for request in requests:
            if len(silent) == MOST_SILENT:
                yield Outcome(request, error=silent[-1])
                continue
            for outcome in self.ask([request]):
                error = outcome.error
                silent = [*silent, error] if error is not None and error.kind == "timed out" else []
                yield outcome

    def _responses(self, requests: Sequence[Request]) -> list[Any]:
        lines: list[Any] = []
        for request in requests:
            text, k = request.body["text"], request.body["k"]
            body = self.settings.search_body(text, k)
            if self.vectors is not None:
                body = self.settings.vector_body(self.vectors[request.number].tolist(), k)
            lines += [{"search_type": "dfs_query_then_fetch"}, body]
        max_bytes = (1 << 20) + HIT_BYTES * sum(request.body["k"] for request in requests)
        path, several = f"/{self.index}/_msearch", len(requests) > 1
        answer = self.server.call("POST", path, _json_lines(lines), max_bytes=max_bytes, divisible=several)
        responses = answer.get("responses") if isinstance(answer, dict) else None
        if not isinstance(responses, list) or len(responses) != len(requests):
            raise AttemptError("malformed", f"the answer has no {len(requests)} responses", again=False)
        return responses

    def close(self) -> None:
        self.server.connection.close()


def _check_same(index: ElasticIndex, identity: _IndexIdentity) -> None:
    with _elastic_connected(index.settings) as server:
        complete = _complete_index(server, index)
        if complete is None or complete.identity != identity:
            raise ServiceError(
                f"{index.settings.url}: {index.index_name} was changed while it was searched; the same command "
                "makes it again"
            )


def _ranking(response: Any) -> dict[str, object]:  # noqa: ANN401  whatever the server says
    if not isinstance(response, dict) or response.get("error") is not None:
        reason = _advised(response)
        status = response.get("status") if isinstance(response, dict) else None
        if status in PASSING or any(kind in reason for kind in (FULL, *GONE)):
            raise AttemptError("failed", f"{status}: {reason}")
        raise AttemptError("refused", f"the search was refused: {reason}", again=False)
    shards = response.get("_shards")
    shards = shards if isinstance(shards, dict) else {}
    total, failed = shards.get("total"), shards.get("failed")
    # What is skipped, since it can hold no result, is among the successful.
    if response.get("timed_out") is not False or failed != 0 or shards.get("successful") != total:
        whole = f"{shards.get('successful')} of {total} shards answered, {failed} failed"
        failures = shards.get("failures") or []
        reasons = [
            one["reason"] for one in failures if isinstance(one, dict) and isinstance(one.get("reason"), dict)
        ]
        whole += f": {_advised({'error': reasons[0]})}" if reasons else ""
        kinds = [str(one.get("type")).removeprefix("es_") for one in reasons]
        again = bool(kinds) and all(kind in (FULL, *GONE) for kind in kinds)
        if response.get("timed_out"):
            whole += "; the server's own search.default_search_timeout cut it short"
        elif not failed:
            whole += "; the nodes of the others have to be back"
        raise AttemptError("failed", f"the answer is not whole: {whole}", again=again)
    try:
        hits = [(hit["_id"], hit["_score"]) for hit in response["hits"]["hits"]]
        if any(score is None for _, score in hits):
            raise ValueError("a hit has no score")
        return kept_ranking(hits)
    except (KeyError, TypeError, ValueError) as found:
        raise AttemptError("malformed", f"the answer is no list of hits ({found})", again=False) from None


def _advised(response: Any) -> str:  # noqa: ANN401  whatever the server says
    reason = " ".join(error_text(response, "no response").split())
    return reason[:SHOWN_CHARACTERS] + next((one for words, one in ADVICE.items() if words in reason), "")


def elasticsearch(
    file: str | None = None,
    url: str | None = None,
    query: str | None = None,
    analyzer: str | None = None,
    fields: list[str] | tuple[str, ...] | None = None,
    version: str | None = None,
    encoder: str | DenseRetriever | None = None,
    index: str | None = None,
    ef_search: int | None = None,
) -> Elasticsearch:
    """Search by Elasticsearch or OpenSearch: BM25 on an index that Weir makes there, as BEIR's lexical
    baseline.

    Give `file` or `url`. Arguments that are None come from the file, else are BEIR's: title and text by the
    english analyzer, best_fields with a tie breaker of 0.5.
    file: TOML file that names the server and how it is searched, see docs/retrievers.md.
    url: the server's address.
    query: best_fields, most_fields, cross_fields or bool.
    analyzer: the server's analyzer for every field.
    fields: fields of a document, each perhaps with ^ and a weight.
    version: your label that identifies the server for stored results, None for its address.
    encoder: a model as dense takes it, or a dense(...), to search its vectors by OpenSearch's k-NN plugin
        instead of words.
    index: exact or hnsw, for vectors.
    ef_search: number of candidates that hnsw considers.
    Raises FormatError for the file, BadValue and UnknownName for settings.
    """
    if (file is None) == (url is None):
        raise BadValue('elasticsearch: give a file, or url="http://localhost:9200"')
    declared_version(version)
    dense = encoder_given("elasticsearch", encoder)
    weighted = None if fields is None else tuple(fields)
    overrides = {"url": url, "query": query, "analyzer": analyzer, "fields": weighted}
    vector = {"index": index, "ef_search": ef_search}
    for name, value in (
        vector if dense is None else {n: overrides[n] for n in ("query", "analyzer", "fields")}
    ).items():
        if value is not None:
            raise BadValue(
                f"elasticsearch: {name} does not apply to a search of {'words' if dense is None else 'vectors'}"
            )
    settings = ElasticSettings(str(url)) if file is None else read_elastic_settings(Path(file))
    own: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    written = {**own, "version": version, "encoder": encoder, **vector}
    arguments = tuple((name, value) for name, value in written.items() if value is not None)
    settings = replace(settings, **own, vector=settings.vector.overridden(index, ef_search))
    return Elasticsearch((() if file is None else (file,), arguments), settings, version, dense)
