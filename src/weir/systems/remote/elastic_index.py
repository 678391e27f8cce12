"""An index of Weir's own on an Elasticsearch or OpenSearch server: made, filled in bulk, found again, removed.

Documents go in order, and the next batch goes when all of the one before are there; each is put under its identifier,
so that what a killed process sent last can be sent again. The mapping's _meta says what decides the index, and, last of
all, that it is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weir.core.corpus import Corpus
from weir.errors import BadValue, ServiceError
from weir.services.attempts import AttemptError
from weir.systems.protocol import Progress
from weir.systems.remote.elastic_server import ElasticCall, ElasticServer, TooLargeError, elastic_connected
from weir.systems.remote.elastic_settings import ElasticSettings

__all__ = ["ElasticIndex", "elastic_versions", "filled_index", "index_documents", "removed_indexes"]

NUMBER = "weir_number"
"""The field with the number of a document in the collection."""
BATCH_DOCUMENTS, BATCH_BYTES = 1000, 5 << 20
MOST_ID_BYTES = 512
"""Of a document's identifier, which Elasticsearch takes at most."""
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, eq=False)
class ElasticIndex:
    """A collection as an index; about: everything that decides it, what its name is made of."""

    settings: ElasticSettings
    corpus: Corpus
    about: dict[str, object]

    @property
    def name(self) -> str:
        """The name of the index: a hash of what decides it."""
        text = json.dumps(self.about, sort_keys=True, default=str)
        return self.settings.prefix + hashlib.blake2b(text.encode("utf-8"), digest_size=10).hexdigest()

    def meta(self, complete: bool) -> dict[str, Any]:
        """What the mapping says of it."""
        return {"weir": {"about": self.about, "documents": len(self.corpus), "complete": complete}}


def elastic_versions(server: ElasticServer) -> dict[str, str]:
    """What the server says it is; raises BadValue where it is neither."""
    said = server.call(ElasticCall("GET", "/"))
    version = said.get("version") if isinstance(said, dict) else None
    number = version.get("number") if isinstance(version, dict) else None
    if not isinstance(version, dict) or not isinstance(number, str):
        raise BadValue(f"{server.settings.url} does not answer as Elasticsearch or OpenSearch do")
    name = "OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch"
    return {name: number}


def index_documents(server: ElasticServer, name: str) -> int | None:
    """How many documents a complete index of Weir's has, None where it is not there or not complete."""
    found = server.call(ElasticCall("GET", f"/{name}/_mapping", missing=True))
    said = _meta(found.get(name)) if isinstance(found, dict) else None
    if said is None or said.get("complete") is not True:
        return None
    count = server.call(ElasticCall("GET", f"/{name}/_count"))["count"]
    return int(count)


def filled_index(index: ElasticIndex, progress: Progress | None) -> dict[str, str]:
    """Make the index, go on with it, or find it complete; the server's versions.

    Raises ServiceError where the server refuses, naming the document where it is one.
    """
    with elastic_connected(index.settings) as server:
        versions = elastic_versions(server)
        if index_documents(server, index.name) != len(index.corpus):
            _make(server, index)
            _fill(server, index, _begun(server, index), progress)
            _finish(server, index)
    return versions


def removed_indexes(settings: ElasticSettings) -> list[str]:
    """Remove every index of the prefix that Weir made, complete or not; their names. Raises ServiceError."""
    with elastic_connected(settings) as server:
        found = server.call(ElasticCall("GET", f"/{settings.prefix}*/_mapping", missing=True)) or {}
        names = sorted(name for name, mapping in found.items() if _meta(mapping) is not None)
        for name in names:
            server.call(ElasticCall("DELETE", f"/{name}", missing=True))
    return names


def _meta(mapping: Any) -> dict[str, Any] | None:  # noqa: ANN401  whatever the server says
    """What Weir wrote into an index's mapping, None where that is nothing."""
    for name in ("mappings", "_meta", "weir"):
        mapping = mapping.get(name) if isinstance(mapping, dict) else None
    return mapping if isinstance(mapping, dict) else None


def _make(server: ElasticServer, index: ElasticIndex) -> None:
    """Create the index where it is not there."""
    if server.call(ElasticCall("GET", f"/{index.name}/_mapping", missing=True)) is not None:
        return
    settings = index.settings
    text = {"type": "text", "analyzer": settings.analyzer}
    properties: dict[str, Any] = dict.fromkeys(settings.names, text)
    properties[NUMBER] = {"type": "integer"}
    # One shard, so that statistics are those of the collection; what is there is seen when all is there.
    given = {"number_of_shards": 1, "refresh_interval": "-1", **settings.settings}
    mappings = {"dynamic": False, "_meta": index.meta(complete=False), "properties": properties}
    try:
        server.call(ElasticCall("PUT", f"/{index.name}", {"settings": given, "mappings": mappings}))
    except AttemptError as error:
        if "resource_already_exists_exception" not in str(error):  # another process made it meanwhile
            raise


def _begun(server: ElasticServer, index: ElasticIndex) -> int:
    """The first document that may not be there: what was sent last is sent again."""
    server.call(ElasticCall("POST", f"/{index.name}/_refresh"))
    asked = {"size": 0, "aggs": {"last": {"max": {"field": NUMBER}}}}
    last = server.call(ElasticCall("POST", f"/{index.name}/_search", asked))["aggregations"]["last"]["value"]
    return 0 if last is None else max(0, int(last) + 1 - BATCH_DOCUMENTS)


def _fill(server: ElasticServer, index: ElasticIndex, start: int, progress: Progress | None) -> None:
    total, most = len(index.corpus), BATCH_DOCUMENTS
    while start < total:
        batch = list(_batch(index, start, most))
        try:
            _put(server, index, batch)
        except TooLargeError as error:
            if len(batch) == 1:
                raise ServiceError(f"{index.settings.url}: document '{batch[0][0]}': {error}") from None
            most = len(batch) // 2
            continue
        start += len(batch)
        if progress is not None:
            progress(start, total)


def _batch(index: ElasticIndex, start: int, most: int) -> Iterator[tuple[str, dict[str, object]]]:
    """The next documents, (identifier, fields)."""
    corpus, names, size = index.corpus, index.settings.names, 0
    stop = min(start + most, len(corpus))
    columns = [corpus.view(name, start, stop).tolist() for name in names]
    for at in range(stop - start):
        name = corpus.ids[start + at]
        if len(name.encode("utf-8")) > MOST_ID_BYTES:
            raise BadValue(f"document '{name[:60]}...' has an identifier of more than {MOST_ID_BYTES} bytes")
        texts = {field: column[at] for field, column in zip(names, columns, strict=True)}
        yield name, {**texts, NUMBER: start + at}
        size += sum(map(len, texts.values()))
        if size > BATCH_BYTES:
            return


def _put(server: ElasticServer, index: ElasticIndex, batch: list[tuple[str, dict[str, object]]]) -> None:
    """Index documents, those again that the server had no room for; raises AttemptError where it never has."""
    waiting, attempt = dict(batch), 1
    while waiting:
        lines = [line for name, fields in waiting.items() for line in ({"index": {"_id": name}}, fields)]
        answer = server.call(ElasticCall("POST", f"/{index.name}/_bulk", lines=lines))
        waiting = _rejected(server, answer, waiting)
        if waiting:
            _pause(server, attempt, len(waiting))
            attempt += 1


def _rejected(
    server: ElasticServer,
    answer: Any,  # noqa: ANN401  whatever the server says
    sent: dict[str, dict[str, object]],
) -> dict[str, dict[str, object]]:
    """What the server had no room for; raises ServiceError, naming the document, for one that it refuses."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != len(sent):
        raise AttemptError(
            "malformed", f"the answer does not speak of each of {len(sent)} documents", again=False
        )
    again: dict[str, dict[str, object]] = {}
    for item, (name, fields) in zip(items, sent.items(), strict=True):
        said = item.get("index", {})
        if said.get("status") == TOO_MANY_REQUESTS:
            again[name] = fields
        elif said.get("status") not in (200, 201):
            reason = json.dumps(said.get("error"))[:300]
            raise ServiceError(f"{server.settings.url}: document '{name}' was refused: {reason}")
    return again


def _pause(server: ElasticServer, attempt: int, count: int) -> None:
    """Wait for room, longer each time; raises AttemptError where there was none often enough."""
    limits, clock = server.limits, server.clock
    error = AttemptError("refused", f"429: no room for {count} documents")
    if attempt >= limits.attempts:
        raise AttemptError("refused", f"{error} ({attempt} attempts)", again=False)
    server.retried(error)
    clock.sleep(min(limits.longest, limits.pause * 2.0 ** (attempt - 1) * (0.5 + clock.chance())))


def _finish(server: ElasticServer, index: ElasticIndex) -> None:
    """Let everything be seen, count it, and say that it is complete."""
    server.call(ElasticCall("PUT", f"/{index.name}/_settings", {"index": {"refresh_interval": None}}))
    server.call(ElasticCall("POST", f"/{index.name}/_refresh"))
    count = int(server.call(ElasticCall("GET", f"/{index.name}/_count"))["count"])
    if count != len(index.corpus):
        raise ServiceError(
            f"{index.settings.url}: {index.name} has {count:,} documents, the collection {len(index.corpus):,}; "
            f"weir drop removes it"
        )
    server.call(ElasticCall("PUT", f"/{index.name}/_mapping", {"_meta": index.meta(complete=True)}))
