"""Re-ranking services: what they differ in, and how they are asked."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue, ServiceError, StoreError, UnknownName
from weir.files.atomic import locked, write_json
from weir.files.text_files import read_toml
from weir.models.checkpoints import model_arguments
from weir.models.prompts import shortened
from weir.services.answers import Retried
from weir.services.requests import (
    MOST_COUNTED,
    AttemptError,
    Clock,
    HttpRequest,
    KeptConnection,
    Key,
    Limits,
    MeteredClient,
    MeteredRequest,
    UnusableAnswerError,
    check_address,
    check_key,
    estimated,
    paid,
)
from weir.settings import settings

# ----------
# Re-ranking services, from rerank_services.toml: format of requests and answers.


Json: TypeAlias = Any
"""Whatever a server sent: nothing about it is known before it is looked at."""
Float32 = NDArray[np.float32]
DATA = Path(__file__).with_name("rerank_services.toml")


@dataclass(frozen=True)
class RerankService:
    """A re-ranking service; rerank_services.toml says what each entry means."""

    base: str
    path: str
    key: str
    documents: int
    tokens: int
    texts: str
    names_model: bool
    results: str
    score: str
    sent: Mapping[str, Json] = field(default_factory=dict)
    counted: Sequence[str] = ()
    together: Sequence[str] = ()

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Json]:
        """A request, as JSON."""
        model_entry = {"model": model} if self.names_model else {}
        return {**model_entry, "query": query, self.texts: list(documents), **self.sent}

    def read(self, answer: Json, count: int) -> tuple[Float32, int | None]:
        """(scores in the order of the documents, float32[n]; the tokens that the service counted, None where none).

        count: documents of the request. Raises UnusableAnswerError.
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
def rerank_services() -> dict[str, RerankService]:
    """The services by name."""
    return {name: RerankService(**facts) for name, facts in read_toml(DATA, "re-ranking services").items()}


# ----------
# Requests to a re-ranking service, with retries, halved where they are too large, within the budget.


MAYBE_SMALLER = {400, 413, 422}
"""What servers answer to more documents or tokens at once than they take."""
ANSWER_BYTES, DOCUMENT_BYTES = 1 << 16, 1 << 15
"""An answer has at most: beside what it has for each document, and for each of them, where it repeats its text."""


@dataclass(frozen=True, eq=False)
class RerankClient:
    """A re-ranking service as one process uses it; threads share it, each with a connection of its own.

    model: as the service calls it; url: where it is asked; metered: keeps to the budget and the rate, and counts.
    """

    service: RerankService
    model: str
    url: str
    metered: MeteredClient

    def scores(
        self, connection: KeptConnection, query: str, documents: Sequence[str], retried: Retried
    ) -> Float32:
        """A score for each document, in their order; what is too much at once is asked in halves.

        retried: called after each failed attempt that is retried. Raises ServiceError where the budget ends or the
        service refuses whoever asks, AttemptError where no attempt brings a usable answer.
        """
        body = json.dumps(self.service.body(self.model, query, documents)).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        tokens = estimated_tokens(query, documents)

        def read(answer: object) -> tuple[Float32, tuple[int, int] | None]:
            scores, counted = self.service.read(answer, len(documents))
            self.metered.count_texts(len(documents))
            return scores, None if counted is None or counted > MOST_COUNTED * tokens else (counted, 0)

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


def estimated_tokens(query: str, documents: Sequence[str]) -> int:
    """Tokens of a request by estimate: those of the query once for each document, and of the documents."""
    return math.ceil(estimated(query) * len(documents) + sum(map(estimated, documents)))


# ----------
# Re-ranking services as values.


PROBE_QUERY = "What is a weir?"
PROBE_DOCUMENTS = (
    "A weir is a low dam across a river; the water that runs over it can be measured.",
    "Knead the dough and let it rise near the oven.",
)
"""The pairs whose scores tell whether the model behind an address is still the same."""
TOLERANCE = 5e-3
"""Difference of a score, relative where it is above 1, up to which two answers count as the same model's."""


@dataclass(frozen=True)
class HostedReranker:
    """How a re-ranking service scores pairs.

    model: service:model, such as cohere:rerank-v3.5; or service:address for a server of one model, such as
    tei:http://localhost:8080. base: the address up to the version, None for the service's own. max_length: tokens of a
    document at most, estimated as a third of its bytes; what is longer is cut; None leaves it to the service. key: the
    environment variable that holds the key, WEIR_KEY_ and a name; None for the service's usual one at its own address,
    and for none at any other. http is allowed for localhost only. Raises UnknownName for an unknown service, BadValue
    for settings.
    """

    model: str
    base: str | None = None
    max_length: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not re.match(r"[A-Za-z][\w-]*:.", self.model):
            raise BadValue(f"model is {self.model!r}; expected service:model, such as cohere:rerank-v3.5")
        check_address("base", self.address)
        if self.key is not None:
            usual = self.service.key or "WEIR_KEY_NAME"
            check_key(self.key, usual, None if self.address == self.service.base else self.address)
        if self.max_length is not None and not (type(self.max_length) is int and self.max_length > 0):
            raise BadValue(f"max_length is {self.max_length!r}; expected a whole number from 1")

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How it prints: the model, and what is not by default."""
        return model_arguments(self, self.model)

    @property
    def service(self) -> RerankService:
        """The service that is asked."""
        name, services = self.model.partition(":")[0], rerank_services()
        if name not in services:
            raise UnknownName("re-ranking service", name, services)
        return services[name]

    @property
    def address(self) -> str:
        """The address up to the version."""
        place = self.model.partition(":")[2]
        address = self.base or (place if "://" in place else "") or self.service.base
        if not address:
            raise BadValue(f'{self.model} has no address of its own: base="http://localhost:8000" names one')
        return address.rstrip("/")

    @property
    def together(self) -> bool:
        """Whether a document's score depends on the others that are asked about with it."""
        return self.model.partition(":")[2] in self.service.together

    def describe(self) -> dict[str, object]:
        """Everything that decides a score; asks the service once for the probe where that was never done."""
        return self.load().identity()

    def fetch(self) -> None:
        """Ask the service once for the probe, where that was never done; `describe` then asks nothing."""
        self.load()

    def load(self, limits: Limits | None = None, clock: Clock | None = None) -> LoadedReranker:
        """The service, ready: the scores of the probe are known from before, or asked for now.

        limits: None for the environment's. Raises ServiceError where the key is missing or the service does not answer
        as it should, StoreError where what is known of the probe cannot be read.
        """
        service, (_, _, model) = self.service, self.model.partition(":")
        key = Key.of(self.key or (service.key if self.address == service.base else ""))
        metered = MeteredClient(key, limits or Limits.of(settings()), clock or Clock(), paid())
        client = RerankClient(service, model, self.address + service.path, metered)
        about = json.dumps([self.model, self.address, PROBE_QUERY, PROBE_DOCUMENTS]).encode("utf-8")
        digest = hashlib.blake2b(about, digest_size=8).hexdigest()
        path = settings().home / "encoders" / f"rerank-{digest}.json"
        return LoadedReranker(self, client, _stored_probe(path) or self._new_probe(path, client))

    def sent(self, document: str) -> str:
        """A document as it is sent: cut, and a space where it is empty."""
        return shortened(document, self.max_length) or " "

    def _new_probe(self, path: Path, client: RerankClient) -> ProbeScores:
        """The probe, asked for and kept; processes that begin together keep the same."""
        with locked(path.with_suffix(".lock")):
            if (stored := _stored_probe(path)) is not None:
                return stored
            scores = _probe_scores(self, client)
            date = time.strftime("%Y-%m-%d", time.gmtime(client.metered.clock.wall()))
            about = {"query": PROBE_QUERY, "documents": PROBE_DOCUMENTS, "model": self.model}
            about |= {"base": self.address, "seen": date}
            write_json(path, about | {"scores": [float(score) for score in scores]})
        return ProbeScores(path, scores, date, checked=True)


@dataclass(eq=False)
class ProbeScores:
    """The scores of the probe when it was first asked for; checked: whether they were asked for again since."""

    path: Path
    scores: Float32
    date: str
    checked: bool = False

    @property
    def fingerprint(self) -> str:
        """What stands for the model in names of what is kept."""
        return hashlib.blake2b(self.scores.tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class LoadedReranker:
    """A re-ranking service ready to be asked."""

    reranker: HostedReranker
    client: RerankClient = field(repr=False)
    probe: ProbeScores

    def identity(self) -> dict[str, object]:
        """Everything that can move a number, the same before and after anything is asked."""
        reranker = self.reranker
        return {
            "model": reranker.model,
            "base": reranker.address,
            "revision": self.probe.fingerprint,
            "max_length": reranker.max_length,
            "sent": dict(reranker.service.sent),
        }

    def check_probe(self) -> None:
        """Compare the model with the one first seen, once and before anything else is paid for.

        Raises ServiceError where it is another: scores kept from then and asked for now do not belong together.
        """
        probe = self.probe
        if probe.checked:
            return
        today = _probe_scores(self.reranker, self.client)
        moved = np.abs(today - probe.scores) / np.maximum(1.0, np.abs(probe.scores))
        if float(moved.max()) > TOLERANCE:
            at = int(moved.argmax())
            raise ServiceError(
                f"{self.reranker.model} has changed since {probe.date}: it scored a pair {probe.scores[at]:.6g}, "
                f"now {today[at]:.6g}; scores kept from then and asked for now do not belong together; remove "
                f"{probe.path} to begin anew"
            )
        probe.checked = True

    def pieces(self, query: str, documents: list[str]) -> Iterator[slice]:
        """The documents of a query in as many requests as the service takes; one where it reads them together."""
        service, start, size = self.reranker.service, 0, 0
        most = len(documents) if self.reranker.together else service.documents
        for at, document in enumerate(documents):
            tokens = estimated_tokens(query, [document])
            full = size + tokens > service.tokens and not self.reranker.together
            if at > start and (at - start >= most or full):
                yield slice(start, at)
                start, size = at, 0
            size += tokens
        if len(documents) > start:
            yield slice(start, len(documents))


def _probe_scores(reranker: HostedReranker, client: RerankClient) -> Float32:
    try:
        with closing(KeptConnection()) as connection:
            return client.scores(connection, PROBE_QUERY, PROBE_DOCUMENTS, lambda _: None)
    except AttemptError as error:
        raise ServiceError(
            f"{reranker.model}, asked for the score of a probe: {client.url}: {error}"
        ) from None


def _stored_probe(path: Path) -> ProbeScores | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        scores = np.array(record["scores"], np.float32)
        if scores.shape != (len(PROBE_DOCUMENTS),) or not np.isfinite(scores).all():
            raise ValueError("scores of another number")
        return ProbeScores(path, scores, str(record["seen"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {error}; remove it, and the probe is asked for anew") from None
