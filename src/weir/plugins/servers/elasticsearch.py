"""Elasticsearch and OpenSearch as a system: an index of Weir's own, filled in bulk and searched by _msearch."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from weir.core.corpus import Corpus
from weir.errors import BadValue, ServiceError, StoreError
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.plugins.servers.elastic_index import (
    CompleteIndex,
    ElasticCall,
    ElasticIndex,
    ElasticServer,
    ElasticSettings,
    IndexIdentity,
    complete_index,
    elastic_connected,
    elastic_versions,
    filled_index,
    read_elastic_settings,
    removed_indexes,
)
from weir.registry import declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried, ServiceUsage
from weir.services.requests import AttemptError, error_text
from weir.systems.compose import shown, then
from weir.systems.protocol import IN_MEMORY, Context, Costs, called, folder_of
from weir.systems.remote.remote_searcher import RemoteSearcher, RemoteService, content_of, kept_ranking

FORMAT = 2
"""Of an index: 1 was filled by writing again what may have been there, which BM25 counts twice."""
SHOWN_CHARACTERS = 400
"""Of what the server says, in a message."""
ADVICE = {
    "max_result_window": "; max_result_window = NUMBER under [settings] of the file makes an index that allows it",
    "maxClauseCount": "; the server's own indices.query.bool.max_clause_count allows longer queries",
}
"""What helps, by words of what the server says."""


@dataclass(frozen=True)
class Elasticsearch:
    """A collection in an index that Weir makes on a server, searched by the server.

    arguments: how it was written, positional and named; version: what stands for the server's own version in keys.
    """

    arguments: tuple[tuple[str, ...], tuple[tuple[str, object], ...]]
    settings: ElasticSettings
    version: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        positional, named = self.arguments
        return called("elasticsearch", list(positional), dict(named))

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives."""
        return "".join(self.arguments[0]), self.settings.name

    @property
    def service(self) -> str:
        """The server that is asked."""
        return f"the server {self.settings.url}"

    def describe(self) -> dict[str, object]:
        """What decides the rankings; the server is the declared version, else a hash of its address."""
        index = {"format": FORMAT, **self.settings.index_facts()}
        description: dict[str, object] = {"system": "elasticsearch", "index": index}
        description["search"] = self.settings.search_facts()
        address = hashlib.blake2b(self.settings.url.encode(), digest_size=8).hexdigest()
        return description | {"server": self.version or address}

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are indexed."""
        return self.settings.names

    def indexed_as(self) -> Elasticsearch:
        """The index, however it is searched."""
        plain = ElasticSettings(self.settings.url)
        settings = replace(
            self.settings,
            fields=self.settings.names,
            query=plain.query,
            tie_breaker=plain.tie_breaker,
            on_failure=plain.on_failure,
        )
        positional, named = self.arguments
        index_arguments = tuple(
            (name, value) for name, value in named if name in ("url", "analyzer", "fields")
        )
        return replace(self, settings=settings, arguments=(positional, index_arguments))

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RemoteSearcher:
        """Send the collection to the server, all that is not there; the folder notes the index.

        Raises ServiceError where the server refuses or cannot be reached.
        """
        index = self._index(corpus)
        versions, complete = filled_index(index, context.progress)
        if context.folder is not None:
            with atomic_dir(context.folder) as folder:
                facts = {
                    "format": FORMAT,
                    "index": index.name,
                    "identity": asdict(complete.identity),
                    "versions": versions,
                }
                seal_folder(folder, "index.json", facts)
        return self._searcher(index, complete, versions)

    def open(self, corpus: Corpus, context: Context) -> RemoteSearcher:
        """Open the index that `index` made of the same corpus; raises StoreError where it is not there any more."""
        at, index = folder_of(context), self._index(corpus)
        open_folder(at, "index.json")
        with elastic_connected(self.settings) as server:
            versions, complete = elastic_versions(server), complete_index(server, index)
        if complete is None:
            raise StoreError(f"{at}: the server has no complete index {index.name}; it is made again")
        return self._searcher(index, complete, versions)

    def uninstall(self) -> list[str]:
        """Remove every index of the prefix that Weir made on this server; their names. Raises ServiceError."""
        return removed_indexes(self.settings)

    def _searcher(
        self, index: ElasticIndex, complete: CompleteIndex, versions: Mapping[str, str]
    ) -> RemoteSearcher:
        settings, corpus, identity = self.settings, index.corpus, complete.identity
        content = content_of(corpus, self.fields_read())
        about = {**self.describe(), "corpus": content, "versions": versions, "answered by": asdict(identity)}
        policy = RequestPolicy(settings.concurrency, settings.batch)
        opened = partial(ElasticAsker, settings, index.name)
        service = RemoteService(
            str(self),
            about,
            opened,
            policy,
            settings.on_failure,
            partial(_check_same, index, identity),
        )
        costs = Costs(external_bytes=complete.bytes, reused_documents=complete.reused)
        return RemoteSearcher(service, corpus, ServiceUsage("", {**versions, "index": identity.uuid}), costs)

    def _index(self, corpus: Corpus) -> ElasticIndex:
        """The index of a corpus; what decides it is its name."""
        facts, content = self.settings.index_facts(), content_of(corpus, self.fields_read())
        return ElasticIndex(self.settings, corpus, {"format": FORMAT, "corpus": content, **facts})


@dataclass(eq=False)
class ElasticAsker:
    """One connection that sends some searches together."""

    settings: ElasticSettings
    index: str
    retried: Retried
    server: ElasticServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ElasticServer(self.settings, self.retried)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """One outcome for each search of a request."""
        lines: list[Any] = []
        for request in requests:
            body = self.settings.body(request.asked["text"], request.asked["k"])
            lines += [{"search_type": "dfs_query_then_fetch"}, body]
        start = time.perf_counter()
        try:
            answer = self.server.call(ElasticCall("POST", f"/{self.index}/_msearch", lines=lines))
            responses = answer.get("responses") if isinstance(answer, dict) else None
            if not isinstance(responses, list) or len(responses) != len(requests):
                raise AttemptError("malformed", f"the answer has no {len(requests)} responses", again=False)
        except AttemptError as error:
            yield from (Outcome(request, error=error) for request in requests)
            return
        seconds = time.perf_counter() - start
        for request, response in zip(requests, responses, strict=True):
            try:
                yield Outcome(request, _ranking(response), seconds)
            except AttemptError as error:
                yield Outcome(request, error=error)

    def close(self) -> None:
        """Close the connection."""
        self.server.connection.close()


def _check_same(index: ElasticIndex, identity: IndexIdentity) -> None:
    """Raise ServiceError where the index is not the one any more that the answers are kept for."""
    with elastic_connected(index.settings) as server:
        complete = complete_index(server, index)
        if complete is None or complete.identity != identity:
            raise ServiceError(
                f"{index.settings.url}: {index.name} was changed while it was searched; the same command makes it again"
            )


def _ranking(response: Any) -> dict[str, object]:  # noqa: ANN401  whatever the server says
    """The ranking of one response; raises AttemptError where it is an error, or not of all shards."""
    if not isinstance(response, dict) or response.get("error") is not None:
        reason = " ".join(error_text(response, "no response").split())[:SHOWN_CHARACTERS]
        advice = next((one for words, one in ADVICE.items() if words in reason), "")
        raise AttemptError("refused", f"the search was refused: {reason}{advice}", again=False)
    shards = response.get("_shards", {})
    total, failed = shards.get("total"), shards.get("failed")
    # What is skipped, since it can hold no result, is among the successful.
    if response.get("timed_out") is not False or failed != 0 or shards.get("successful") != total:
        whole = f"{shards.get('successful')} of {total} shards answered, {failed} failed"
        raise AttemptError("failed", f"the answer is not whole: {whole}", again=False)
    try:
        return kept_ranking([(hit["_id"], hit["_score"]) for hit in response["hits"]["hits"]])
    except (KeyError, TypeError, ValueError) as found:
        raise AttemptError("malformed", f"the answer is no list of hits ({found})", again=False) from None


def elasticsearch(
    file: str | None = None,
    url: str | None = None,
    query: str | None = None,
    analyzer: str | None = None,
    fields: list[str] | tuple[str, ...] | None = None,
    version: str | None = None,
) -> Elasticsearch:
    """Elasticsearch or OpenSearch: BM25 on an index that Weir makes there, as BEIR's lexical baseline does.

    file: TOML that names the server and how is searched, see docs/servers.md, or url: its address; query:
    best_fields, most_fields, cross_fields or bool; analyzer: of the server, for every field; fields: of a document, a
    weight behind ^; version: what stands for the server in keys. What is None is taken from the file, or is BEIR's:
    title and text by the english analyzer, best_fields with a tie breaker of 0.5. Raises FormatError for the file,
    BadValue and UnknownName for settings.
    """
    if (file is None) == (url is None):
        raise BadValue('elasticsearch: give a file, or url="http://localhost:9200"')
    declared_version(version)
    weighted = None if fields is None else tuple(fields)
    overrides = {"url": url, "query": query, "analyzer": analyzer, "fields": weighted}
    settings = ElasticSettings(str(url)) if file is None else read_elastic_settings(Path(file))
    own: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    named = tuple({**own, **({} if version is None else {"version": version})}.items())
    return Elasticsearch((() if file is None else (file,), named), replace(settings, **own), version)
