"""Re-ranking by services: concurrent requests, answers stored at once, an error for a pair without a score."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int64
from weir.errors import BadValue, ServiceError, UnknownName
from weir.files.network import KeptConnection
from weir.files.text_files import read_toml
from weir.models.hosted import ServiceProbe, probe_path, service_probe
from weir.registry import changed_settings, check_whole
from weir.services.answers import (
    AnswerKey,
    ConnectionWorker,
    Request,
    RequestPolicy,
    Retried,
    ServiceUsage,
    run_requests,
)
from weir.services.requests import (
    CONTINUES,
    MAYBE_SMALLER,
    AttemptError,
    Clock,
    HttpRequest,
    Key,
    Limits,
    MeteredClient,
    MeteredRequest,
    UnusableAnswerError,
    check_address,
    check_key,
    estimated,
    is_believed,
    paid,
    shortened,
)
from weir.settings import settings
from weir.systems.compose import behind, system_text
from weir.systems.protocol import IN_MEMORY, RERANKERS, Context, Costs, called, check_depth, described_depth
from weir.systems.rerank.reranking import VIEW, CacheCounts, Pairs
from weir.systems.vectors.journal import hash_texts, locked_store
from weir.systems.vectors.store import RowStore

# ----------
# Re-ranking services, from rerank_services.toml: format of requests and answers.


Json: TypeAlias = Any
"""Unchecked JSON of a server."""
DATA = Path(str(files("weir.plugins.servers") / "rerank_services.toml"))


@dataclass(frozen=True)
class RerankService:
    """A re-ranking service's address, limits and format of requests."""

    base: str
    path: str
    key: str
    """Environment variable with the key; "" for none."""
    documents: int
    """Most documents of a request; `tokens` likewise, estimated."""
    tokens: int
    texts: str
    """Name of the documents' list in a request."""
    names_model: bool
    results: str
    """Name of the list of results in an answer; "" if it is the answer."""
    score: str
    sent: Mapping[str, Json] = field(default_factory=dict)
    """Further entries of a request."""
    counted: Sequence[str] = ()
    """Path to the number of tokens in an answer; () for none."""
    together: Sequence[str] = ()
    """Models that read all documents of a query in one request."""

    def request_body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Json]:
        """Return the JSON body of a request to score documents for a query."""
        model_entry = {"model": model} if self.names_model else {}
        return {**model_entry, "query": query, self.texts: list(documents), **self.sent}

    def read(self, answer: Json, count: int) -> tuple[Float32, int | None]:
        """Return (scores in the documents' order, float32[count]; the service's count of tokens or None).

        Raises UnusableAnswerError unless each document has one finite score.
        """
        results = answer.get(self.results) if self.results and isinstance(answer, dict) else answer
        if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
            where = f"'{self.results}'" if self.results else "of results"
            raise UnusableAnswerError(f"the answer has no list {where}")
        places, values = [one.get("index") for one in results], [one.get(self.score) for one in results]
        if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
            raise UnusableAnswerError(f"the answer's 'index' does not name each of {count} documents once")
        if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
            raise UnusableAnswerError(f"'{self.score}' of the answer is not a number for each document")
        scores = np.empty(count, np.float32)
        with np.errstate(over="ignore"):
            scores[np.array(places, np.int64)] = np.array(values, np.float64)
        if not np.isfinite(scores).all():
            raise UnusableAnswerError(f"'{self.score}' of the answer is out of range")
        for name in self.counted:
            answer = answer.get(name) if isinstance(answer, dict) else None
        counted = bool(self.counted) and type(answer) is int and answer >= 0
        return scores, answer if counted else None


@cache
def _rerank_services() -> dict[str, RerankService]:
    return {name: RerankService(**facts) for name, facts in read_toml(DATA, "re-ranking services").items()}


# ----------
# Requests to a re-ranking service, with retries, halved where they are too large, within the budget.


ANSWER_BYTES, DOCUMENT_BYTES = 1 << 16, 1 << 15
"""Largest answer: ANSWER_BYTES, and DOCUMENT_BYTES for each document, whose text it may repeat."""


@dataclass(frozen=True, eq=False)
class RerankClient:
    """A client of a re-ranking service for one model; threads share it, each with its own connection."""

    service: RerankService
    model: str
    """The model's name at the service."""
    url: str
    metered: MeteredClient
    """Keeps to the budget and the rate, and counts."""

    def scores(
        self, connection: KeptConnection, query: str, documents: Sequence[str], retried: Retried
    ) -> Float32:
        """Return a score for each document, float32[documents]; a request refused as too large is sent in
        halves.

        Not halved if the model reads all documents together. Raises ServiceError if the budget ends or the
        key is refused, AttemptError if no attempt succeeds.
        """
        body = json.dumps(self.service.request_body(self.model, query, documents)).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        tokens = _estimated_tokens(query, documents)

        def read(answer: object) -> tuple[Float32, tuple[int, int] | None]:
            scores, counted = self.service.read(answer, len(documents))
            self.metered.count_texts(len(documents))
            return scores, None if counted is None or not is_believed(counted, tokens) else (counted, 0)

        http = HttpRequest("POST", self.url, headers | self.metered.key.header(), body)
        max_bytes = ANSWER_BYTES + len(documents) * DOCUMENT_BYTES + len(body)
        try:
            request = MeteredRequest(http, tokens, 0, max_bytes, read)
            return self.metered.answered(connection, request, retried)
        except AttemptError as error:
            if error.status not in MAYBE_SMALLER:
                raise
            if len(documents) == 1 or self.model in self.service.together:
                raise AttemptError("refused", f"{self.url}: {error}", again=False) from None
        half = (len(documents) + 1) // 2
        halves = (documents[:half], documents[half:])
        return np.concatenate([self.scores(connection, query, some, retried) for some in halves])


def _estimated_tokens(query: str, documents: Sequence[str]) -> int:
    return math.ceil(estimated(query) * len(documents) + sum(map(estimated, documents)))


# ----------
# The re-ranker.


PROBE_QUERY = "What is a weir?"
PROBE_DOCUMENTS = (
    "A weir is a low dam across a river; the water that runs over it can be measured.",
    "Knead the dough and let it rise near the oven.",
)
"""Documents whose scores for PROBE_QUERY tell if the model at an address is still the same."""
TOLERANCE = 5e-3
"""Largest difference of a score, relative if it is above 1, between two answers of the same model."""
CONCURRENCY = 4
"""Default number of requests at a time."""


@dataclass(frozen=True)
class ServiceReranker:
    """A re-ranker that scores the first `depth` documents of each ranking by a service; raises BadValue for a
    value out of range."""

    model: str
    """service:model, such as cohere:rerank-v3.5, or service:address of a server with one model, such as
    tei:http://localhost:8080.
    """
    depth: int | None = None
    """Documents re-ranked for each query; None is 100, or all given candidates."""
    concurrency: int = CONCURRENCY
    """Requests at a time."""
    base: str | None = None
    """The address up to the version; None for the service's own."""
    max_length: int | None = None
    """Documents are cut to this many tokens, estimated as a third of their bytes; None does not cut."""
    key: str | None = None
    """The environment variable that holds the key, WEIR_KEY_ and a name; None for the service's usual one at its own
    address, and for no key elsewhere.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not re.match(r"[A-Za-z][\w-]*:.", self.model):
            raise BadValue(f"model is {self.model!r}; expected service:model, such as cohere:rerank-v3.5")
        check_address("base", self.address)
        if self.key is not None:
            usual = self.provider.key or "WEIR_KEY_NAME"
            check_key(self.key, usual, None if self.address == self.provider.base else self.address)
        if self.max_length is not None:
            check_whole("max_length", self.max_length)
        check_depth("rerank", self.depth)
        check_whole("rerank: concurrency", self.concurrency, 1, 64)
        most = self.provider.documents
        if self.together and self.depth is not None and self.depth > most:
            raise BadValue(f"{self.model} reads all documents of a query together: depth is at most {most}")

    __repr__ = system_text
    __rrshift__ = behind

    def __str__(self) -> str:
        return called("rerank", [self.model], changed_settings(self, ("model",)))

    @property
    def service(self) -> str:
        return self.model

    @property
    def provider(self) -> RerankService:
        """The format of the service's requests; raises UnknownName for an unknown service."""
        name, services = self.model.partition(":")[0], _rerank_services()
        if name not in services:
            raise UnknownName("re-ranking service", name, services)
        return services[name]

    @property
    def address(self) -> str:
        """The service's address, to which version and path are appended; raises BadValue if it has none."""
        place = self.model.partition(":")[2]
        address = self.base or (place if "://" in place else "") or self.provider.base
        if not address:
            raise BadValue(f'{self.model} has no address of its own: base="http://localhost:8000" names one')
        return address.rstrip("/")

    @property
    def together(self) -> bool:
        """True if a score depends on the other documents of the request."""
        return self.model.partition(":")[2] in self.provider.together

    def describe(self) -> dict[str, object]:
        """Return the settings that decide the rankings, with the scores of two fixed pairs (`probe`)."""
        own: dict[str, object] = {"reranker": "rerank", **described_depth(self.depth), "document": VIEW}
        return own | self.identity(self.probe(self.client()))

    def fetch(self) -> None:
        self.probe(self.client())

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> ServiceScorer:
        client = self.client()
        return ServiceScorer(self, client, self.probe(client), corpus)

    def client(self) -> RerankClient:
        """Return a new client of the service."""
        provider, (_, _, model) = self.provider, self.model.partition(":")
        key = Key.of(self.key or (provider.key if self.address == provider.base else ""))
        metered = MeteredClient(key, Limits.of(settings()), Clock(), paid())
        return RerankClient(provider, model, self.address + provider.path, metered)

    def probe(self, client: RerankClient) -> ServiceProbe:
        """Return the scores of two fixed pairs, stored or requested now, which reveal a changed model; raises
        ServiceError if the service fails."""

        def checked(scores: Json) -> Float32:
            values = np.array(scores, np.float32)
            if values.shape != (len(PROBE_DOCUMENTS),) or not np.isfinite(values).all():
                raise ValueError("scores of another number")
            return values

        return service_probe(
            probe_path("rerank", [self.model, self.address, PROBE_QUERY, PROBE_DOCUMENTS]),
            {"query": PROBE_QUERY, "documents": PROBE_DOCUMENTS, "model": self.model, "base": self.address},
            "scores",
            checked,
            lambda: self.probe_scores(client),
            client.metered.clock,
        )

    def probe_scores(self, client: RerankClient) -> Float32:
        """Return the service's scores of the two fixed pairs, float32[2]; raises ServiceError if it fails."""
        try:
            with closing(KeptConnection()) as connection:
                return client.scores(connection, PROBE_QUERY, PROBE_DOCUMENTS, lambda _: None)
        except AttemptError as error:
            message = f"{self.model}, asked for the score of a probe: {client.url}: {error}"
            raise ServiceError(message) from None

    def identity(self, probe: ServiceProbe) -> dict[str, object]:
        """Return the key of stored scores: all settings that decide a score, with the scores of two fixed
        pairs."""
        return {
            "model": self.model,
            "base": self.address,
            "revision": probe.revision,
            "max_length": self.max_length,
            "sent": dict(self.provider.sent),
        }

    def pieces(self, query: str, documents: list[str]) -> Iterator[slice]:
        """Yield the slice of documents for each request, in order, within the service's limits of documents
        and tokens.

        A service that scores documents together gets all in one request.
        """
        provider, start, size = self.provider, 0, 0
        most = len(documents) if self.together else provider.documents
        for at, document in enumerate(documents):
            tokens = _estimated_tokens(query, [document])
            full = size + tokens > provider.tokens and not self.together
            if at > start and (at - start >= most or full):
                yield slice(start, at)
                start, size = at, 0
            size += tokens
        if len(documents) > start:
            yield slice(start, len(documents))


@dataclass(frozen=True, eq=False)
class ServiceScorer:
    """A scorer of candidates by a re-ranking service; scores are stored."""

    reranker: ServiceReranker
    client: RerankClient
    probe: ServiceProbe
    corpus: Corpus
    counts: CacheCounts = field(default_factory=CacheCounts)
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return a score for each candidate, float64[candidates]; only pairs without a stored score are sent.

        If `context.reuse` is False, all are sent, and none stored. Raises ServiceError if a pair stays
        without a score, BadValue for more candidates than the model reads together.
        """
        pairs = Pairs(queries, candidates, self.corpus)
        if len(pairs) == 0:
            return np.empty(0)
        reranker, lengths = self.reranker, np.diff(candidates.ptr)
        hashes = pairs.hashes()
        if reranker.together:
            most = reranker.provider.documents
            if lengths.max() > most:
                query = candidates.queries[int(lengths.argmax())]
                raise BadValue(
                    f"{reranker}: query '{query}' has {lengths.max():,} candidates, and {reranker.model} reads at "
                    f"most {most} together; name a depth: depth={most}"
                )
            # The hash of each pair among the others of its query.
            spans = zip(candidates.ptr[:-1], candidates.ptr[1:], strict=True)
            lists = [hashlib.blake2b(hashes[a:b].tobytes(), digest_size=16).digest() for a, b in spans]
            queries_of_rows = candidates.query_of_row().tolist()
            hashes = hash_texts([hashes[row].tobytes() + lists[q] for row, q in enumerate(queries_of_rows)])
        self.counts.requested += len(pairs)
        if not context.reuse:
            scores = np.full(len(pairs), np.nan, np.float32)

            def hold(rows: Int64, values: Float32) -> None:
                scores[rows] = values

            self._ask(pairs, np.ones(len(pairs), np.bool_), hold, context)
            return scores.astype(np.float64)
        store = RowStore.of(settings().home / "scores", reranker.identity(self.probe))
        snapshot = store.snapshot()
        if snapshot is None or (snapshot.texts.find(hashes) < 0).any():
            with locked_store(store.folder):
                snapshot = store.snapshot(check=False)  # another process may have asked meanwhile
                lacking = np.zeros(len(hashes), np.bool_)  # of equal pairs the first alone
                lacking[np.unique(hashes, axis=0, return_index=True)[1]] = True
                lacking &= True if snapshot is None else snapshot.texts.find(hashes) < 0
                self._ask(
                    pairs, lacking, lambda rows, values: store.add(hashes[rows], values[:, None]), context
                )
                snapshot = store.snapshot(check=False)
        assert snapshot is not None  # something was added, or found
        return snapshot.vectors(snapshot.texts.find(hashes))[:, 0].astype(np.float64)

    def costs(self) -> Costs:
        return Costs(
            requested_pairs=self.counts.requested,
            computed_pairs=self.counts.computed,
            services=(self.use.named(str(self.reranker)),),
        )

    def _ask(self, pairs: Pairs, lacking: NDArray[np.bool_], keep: _Keep, context: Context) -> None:
        if not lacking.any():
            return
        probe, reranker = self.probe, self.reranker
        if probe.moved is None:  # once, and before other requests
            today = reranker.probe_scores(self.client)
            moved = np.abs(today - probe.values) / np.maximum(1.0, np.abs(probe.values))
            if float(moved.max()) > TOLERANCE:
                at = int(moved.argmax())
                raise ServiceError(
                    f"{reranker.model} has changed since {probe.date}: it scored a pair {probe.values[at]:.6g}, "
                    f"now {today[at]:.6g}; scores kept from then and asked for now do not belong together; remove "
                    f"{probe.path} to begin anew"
                )
            probe.moved = float(moved.max())
        # A request is about one query: about all of its documents where they are read together and one is lacking.
        ptr, jobs = pairs.candidates.ptr, list[_Job]()
        for q, query in enumerate(pairs.queries.text.tolist()):
            rows = np.arange(ptr[q], ptr[q + 1])
            unscored = lacking[rows]
            rows = rows if reranker.together and unscored.any() else rows[unscored]
            documents = [shortened(document, reranker.max_length) or " " for _, document in pairs.take(rows)]
            for piece in reranker.pieces(query or " ", documents):
                name = f"query '{pairs.queries.ids[q]}'"
                jobs.append(_Job(name, query or " ", documents[piece], rows[piece]))
        total, done = len(pairs), len(pairs) - sum(len(job.rows) for job in jobs)
        scored = _ScoreStore(self, jobs, keep, done)
        report = context.progress
        progress = None if report is None else lambda _: report(scored.done, total)
        requests = (Request(number, (0, number), job.name) for number, job in enumerate(jobs))

        def new_worker(retried: Retried) -> ConnectionWorker:
            def send(connection: KeptConnection, request: Request) -> list[float]:
                job = jobs[request.number]
                scores = self.client.scores(connection, job.query, job.documents, retried)
                return list(map(float, scores))

            return ConnectionWorker(send)

        counts = run_requests(requests, new_worker, scored, RequestPolicy(reranker.concurrency), progress)
        self.use.counts.add(counts)
        self.use.tokens = self.client.metered.tokens
        self.use.dollars = self.client.metered.limits.cost(self.use.tokens)
        if counts.first is not None:
            request, reason = counts.first
            message = f"{total - scored.done:,} of {total:,} pairs have no score (requests: {counts.failed_by_kind})"
            message += f"; the first, {request.body}: {reason}"
            raise ServiceError(message if CONTINUES in message else f"{message}; {CONTINUES}")


_Keep = Callable[[Int64, Float32], None]
"""Keeps the scores of these rows."""


@dataclass(frozen=True, eq=False)
class _Job:
    name: str
    query: str
    documents: Sequence[str]
    rows: Int64
    """The documents' rows among the candidates."""


@dataclass(eq=False)
class _ScoreStore:
    scorer: ServiceScorer
    jobs: Sequence[_Job]
    keep: _Keep
    done: int
    """Pairs that have a score."""
    turn: Lock = field(default_factory=Lock, repr=False)

    def __contains__(self, key: AnswerKey) -> bool:
        return False

    def add(self, key: AnswerKey, value: Any) -> None:  # noqa: ANN401  as run_requests keeps it
        rows = self.jobs[key[1]].rows
        with self.turn:
            self.keep(rows, np.array(value["answer"], np.float32))
            self.done += len(rows)
            self.scorer.counts.computed += len(rows)
            self.scorer.use.answered(value)


@RERANKERS.register("rerank")
@named_arguments
def rerank(
    model: str,
    depth: int | None = None,
    base: str | None = None,
    max_length: int | None = None,
    key: str | None = None,
    concurrency: int = CONCURRENCY,
) -> ServiceReranker:
    """Re-order the first documents of each ranking by a re-ranking service, whose scores are stored.

    model: service:model, such as cohere:rerank-v3.5, voyage:rerank-2.5 or
        jina:jina-reranker-v2-base-multilingual, or your own server, tei:http://localhost:8080, or vllm:model
        with base="http://localhost:8000".
    depth: documents re-ranked for each query, before the others in their order, by default 100, or all given
        candidates.
    base: URL of the service up to its version, by default its own.
    max_length: documents are cut to this many tokens, by estimate, by default never.
    key: the environment variable that holds the key, by default the service's at its own address, else none.
    concurrency: requests at a time.
    Raises UnknownName for an unknown service, BadValue for settings.
    """
    return ServiceReranker(model, depth, concurrency, base, max_length, key)
