"""Re-ranking by a service: side by side, each answer kept before the next is paid for, and never a pair without one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, ServiceError
from weir.models.rerank_services import HostedReranker, LoadedReranker
from weir.services.answers import (
    AnswerKey,
    ConnectionWorker,
    Request,
    RequestPolicy,
    Retried,
    ServiceUsage,
    run_requests,
)
from weir.services.requests import CONTINUES, KeptConnection
from weir.settings import settings
from weir.systems.compose import behind, shown
from weir.systems.protocol import IN_MEMORY, RERANKERS, Context, Costs, called, check_depth, described_depth
from weir.systems.rerank.reranking import VIEW, CacheCounts, Pairs
from weir.systems.vectors.journal import alone, hash_texts
from weir.systems.vectors.store import VectorStore

CONCURRENCY = 4
"""Requests that are out at a time, unless another number is named."""


@dataclass(frozen=True)
class ServiceReranker:
    """A re-ranking service that scores the first `depth` documents of each ranking; concurrency: requests at a time."""

    hosted: HostedReranker
    depth: int | None = None
    concurrency: int = CONCURRENCY

    def __post_init__(self) -> None:
        check_depth("rerank", self.depth)
        if not (type(self.concurrency) is int and 1 <= self.concurrency <= 64):
            raise BadValue(
                f"rerank: concurrency is {self.concurrency!r}; expected a whole number from 1 to 64"
            )
        most = self.hosted.service.documents
        if self.hosted.together and self.depth is not None and self.depth > most:
            raise BadValue(
                f"{self.hosted.model} reads all documents of a query together: depth is at most {most}"
            )

    __repr__ = shown
    __rrshift__ = behind

    def __str__(self) -> str:
        first, options = self.hosted.arguments
        own = {} if self.depth is None else {"depth": self.depth}
        own |= {} if self.concurrency == CONCURRENCY else {"concurrency": self.concurrency}
        return called("rerank", first, own | options)

    @property
    def service(self) -> str:
        """The service that is asked."""
        return self.hosted.model

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; asks the service once for a probe where that was never done."""
        own: dict[str, object] = {"reranker": "rerank", **described_depth(self.depth), "document": VIEW}
        return own | self.hosted.describe()

    def fetch(self) -> None:
        """Ask the service once for the probe, where that was never done; raises ServiceError."""
        self.hosted.fetch()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> ServiceScorer:
        """The service, ready; scores are kept in Weir's home."""
        return ServiceScorer(str(self), self.hosted.load(), corpus, self.concurrency)


@dataclass(frozen=True, eq=False)
class ServiceScorer:
    """A re-ranking service and the documents it reads; name: of the re-ranker, in messages."""

    name: str
    loaded: LoadedReranker
    corpus: Corpus
    concurrency: int
    counts: CacheCounts = field(default_factory=CacheCounts)
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The service's score of every candidate with its query; what was scored before is read.

        Raises ServiceError where a pair stays without a score, saying how many and why: it is never taken for 0.
        """
        pairs = Pairs(queries, candidates, self.corpus)
        if len(pairs) == 0:
            return np.empty(0)
        reranker, lengths = self.loaded.reranker, np.diff(candidates.ptr)
        hashes = pairs.hashes()
        if reranker.together:
            most = reranker.service.documents
            if lengths.max() > most:
                query = candidates.queries[int(lengths.argmax())]
                raise BadValue(
                    f"{self.name}: query '{query}' has {lengths.max():,} candidates, and {reranker.model} reads at "
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

            def hold(rows: Int64, values: NDArray[np.float32]) -> None:
                scores[rows] = values

            self._ask(pairs, np.ones(len(pairs), np.bool_), hold, context)
            return scores.astype(np.float64)
        store = VectorStore.of(settings().home / "scores", self.loaded.identity())
        snapshot = store.snapshot()
        if snapshot is None or (snapshot.texts.find(hashes) < 0).any():
            with alone(store.folder):
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
        """How many scores were asked for, and computed, what the service was asked and how long it took."""
        return Costs(
            requested_pairs=self.counts.requested,
            computed_pairs=self.counts.computed,
            services=(self.use.named(self.name),),
        )

    def _ask(self, pairs: Pairs, lacking: NDArray[np.bool_], keep: _Keep, context: Context) -> None:
        """Ask for what is lacking; raises ServiceError where a pair stays without a score."""
        if not lacking.any():
            return
        self.loaded.check_probe()
        # A request is about one query: about all of its documents where they are read together and one is lacking.
        ptr, reranker, jobs = pairs.candidates.ptr, self.loaded.reranker, list[_Job]()
        for q, query in enumerate(pairs.queries.text.tolist()):
            rows = np.arange(ptr[q], ptr[q + 1])
            unscored = lacking[rows]
            rows = rows if reranker.together and unscored.any() else rows[unscored]
            documents = [reranker.sent(document) for _, document in pairs.take(rows)]
            for piece in self.loaded.pieces(query or " ", documents):
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
                scores = self.loaded.client.scores(connection, job.query, job.documents, retried)
                return list(map(float, scores))

            return ConnectionWorker(send)

        counts = run_requests(requests, new_worker, scored, RequestPolicy(self.concurrency), progress)
        self.use.counts.add(counts)
        self.use.tokens = self.loaded.client.metered.tokens
        self.use.dollars = self.loaded.client.metered.limits.cost(self.use.tokens)
        if counts.first is not None:
            request, reason = counts.first
            message = f"{total - scored.done:,} of {total:,} pairs have no score (requests: {counts.failed_by_kind})"
            message += f"; the first, {request.body}: {reason}"
            raise ServiceError(message if CONTINUES in message else f"{message}; {CONTINUES}")


_Keep = Callable[[Int64, NDArray[np.float32]], None]
"""Keeps the scores of these rows."""


@dataclass(frozen=True, eq=False)
class _Job:
    """One request: the query's text, the documents as they are sent, and which rows of the candidates they are."""

    name: str
    query: str
    documents: Sequence[str]
    rows: Int64


@dataclass(eq=False)
class _ScoreStore:
    """Where answers go; done: pairs that have a score."""

    scorer: ServiceScorer
    jobs: Sequence[_Job]
    keep: _Keep
    done: int
    turn: Lock = field(default_factory=Lock, repr=False)

    def __contains__(self, key: AnswerKey) -> bool:
        return False

    def add(self, key: AnswerKey, value: Any) -> None:  # noqa: ANN401  as run_requests keeps it
        """Keep the scores of a request; the next is not counted before this returns."""
        rows = self.jobs[key[1]].rows
        with self.turn:
            self.keep(rows, np.array(value["answer"], np.float32))
            self.done += len(rows)
            self.scorer.counts.computed += len(rows)
            self.scorer.use.answered(value)


@RERANKERS.register("rerank")
def rerank(
    model: str,
    depth: int | None = None,
    base: str | None = None,
    max_length: int | None = None,
    key: str | None = None,
    concurrency: int = CONCURRENCY,
) -> ServiceReranker:
    """Order the first documents by a re-ranking service, whose scores are kept.

    model: service:model, such as cohere:rerank-v3.5, voyage:rerank-2.5 or jina:jina-reranker-v2-base-multilingual; or a
    server of one's own, tei:http://localhost:8080, or vllm:model with base="http://localhost:8000". depth: how many
    documents, None for 100, and for all candidates; base: the address up to the version; max_length: tokens of a
    document at most, by estimate; key: the environment variable with the key; concurrency: requests at a time. Raises
    UnknownName and BadValue.
    """
    return ServiceReranker(HostedReranker(model, base, max_length, key), depth, concurrency)
