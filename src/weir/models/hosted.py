"""Encode texts with an embedding API, and queries with instructions of their own."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weir.core.corpus import Queries
from weir.core.strings import Float32, Strings
from weir.errors import BadValue, FormatError, ServiceError, StoreError, give_warning
from weir.files.atomic import write_json
from weir.files.json_record import read_json
from weir.files.leases import locked
from weir.files.network import KeptConnection
from weir.models.checkpoints import model_arguments, without_prompts_note
from weir.models.encoder import (
    TASK,
    Encoder,
    Kind,
    Loaded,
    LoadedObject,
    Progress,
    filled_prompt,
    resolve,
)
from weir.registry import Registry
from weir.services.requests import (
    MAYBE_SMALLER,
    AttemptError,
    Clock,
    HttpRequest,
    Key,
    Limits,
    MeteredClient,
    MeteredRequest,
    Spent,
    UnusableAnswerError,
    check_address,
    check_key,
    estimated,
    is_believed,
    paid,
    shortened,
)
from weir.settings import settings

# ----------
# Embedding APIs: address, limits, format of requests and answers.


Json: TypeAlias = Any
"""Parsed JSON of a response, not validated yet."""


@dataclass(frozen=True)
class Ask:
    """Texts to embed by an API, with the model and the form of the vectors."""

    model: str
    texts: Sequence[str]
    kind: Kind
    dimensions: int | None
    """None for the model's own."""


@dataclass(frozen=True)
class _ProviderAnswer:
    vectors: list[Json]
    """In the order of the texts, not validated yet."""
    tokens: int | None
    """As the provider counts them; None if it does not."""


@dataclass(frozen=True)
class Provider:
    """An embedding API: its limits and the format of requests and answers."""

    base: str
    path: str
    """Path of requests, appended to `base`."""
    variable: str
    """Environment variable with the key."""
    texts: int
    """Most texts of a request."""
    tokens: int
    """Most estimated tokens of a request."""
    longest: int | None
    """Estimated tokens after which a text is cut; None leaves cutting to the provider."""
    texts_entry: str
    """Name of the request's entry for texts."""
    size_entry: str
    """Name of the request's entry for dimensions."""
    sent: Mapping[str, Json]
    """Further entries of a request."""
    kinds: Mapping[Kind, str]
    """The "input_type" of documents and queries."""
    read: Callable[[Json], _ProviderAnswer]
    """Reads an answer; raises UnusableAnswerError."""

    def body(self, ask: Ask) -> dict[str, Json]:
        kind = {"input_type": self.kinds[ask.kind]} if self.kinds else {}
        size = {} if ask.dimensions is None else {self.size_entry: ask.dimensions}
        return {"model": ask.model, self.texts_entry: list(ask.texts), **kind, **self.sent, **size}


PROVIDERS: Registry[Provider] = Registry("provider")


def rows(vectors: list[Json], count: int, dimensions: int | None) -> Float32:
    """Return an API's vectors as float32[count, dimensions].

    dimensions: None takes the first vector's size.

    Raises UnusableAnswerError for another number of vectors, and for a vector that is no list of finite numbers
    of this size, or all zeros.
    """
    if len(vectors) != count:
        raise UnusableAnswerError(f"the answer has {len(vectors)} vectors for {count} texts")
    for at, vector in enumerate(vectors):
        if not isinstance(vector, list) or not vector or not set(map(type, vector)) <= {float, int}:
            raise UnusableAnswerError(f"vector {at + 1} of the answer is no list of numbers", at)
        size = dimensions or len(vectors[0])
        if len(vector) != size:
            raise UnusableAnswerError(
                f"vector {at + 1} of the answer has {len(vector)} dimensions, not {size}", at
            )
    try:
        with np.errstate(over="ignore"):
            table: Float32 = np.array(vectors, np.float64).astype(np.float32)
    except OverflowError:  # a whole number beyond any float
        raise UnusableAnswerError("a number of the answer is out of range") from None
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise UnusableAnswerError(f"vector {int(bad[0]) + 1} of the answer is not finite", int(bad[0]))
    empty = np.flatnonzero(~table.any(axis=1))
    if len(empty):
        raise UnusableAnswerError(f"vector {int(empty[0]) + 1} of the answer is all zeros", int(empty[0]))
    return table


def _listed(answer: Json) -> _ProviderAnswer:
    data = _entry(answer, "data")
    if not isinstance(data, list) or not all(isinstance(d, dict) and "embedding" in d for d in data):
        raise UnusableAnswerError("the answer has no list 'data' of embeddings")
    places = [d.get("index", at) for at, d in enumerate(data)]
    if not all(type(p) is int for p in places) or sorted(places) != list(range(len(data))):
        raise UnusableAnswerError("the answer's 'index' does not name every text once")
    ordered = sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
    return _ProviderAnswer([d["embedding"] for _, d in ordered], _tokens(answer, "usage", "total_tokens"))


def _entry(answer: Json, *names: str) -> Json:
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def _tokens(answer: Json, *names: str) -> int | None:
    count = _entry(answer, *names)
    return int(count) if type(count) is int or (type(count) is float and math.isfinite(count)) else None


def _cohere_read(answer: Json) -> _ProviderAnswer:
    vectors = _entry(answer, "embeddings", "float")
    if not isinstance(vectors, list):
        raise UnusableAnswerError("the answer has no list 'embeddings.float'")
    return _ProviderAnswer(vectors, _tokens(answer, "meta", "billed_units", "input_tokens"))


# The limits are well below what each provider states (OpenAI 2,048 texts, 300,000 tokens and 8,192 of one text;
# Cohere 96 texts; Voyage 1,000 texts and, for its large models, 120,000 tokens): an answer stays of some megabytes,
# and what a crash may lose small.
PROVIDERS.add(
    "openai",
    Provider(
        base="https://api.openai.com/v1",
        path="/embeddings",
        variable="OPENAI_API_KEY",
        texts=256,
        tokens=200_000,
        longest=8_000,
        texts_entry="input",
        size_entry="dimensions",
        sent={"encoding_format": "float"},
        kinds={},
        read=_listed,
    ),
)
PROVIDERS.add(
    "cohere",
    Provider(
        base="https://api.cohere.com/v2",
        path="/embed",
        variable="COHERE_API_KEY",
        texts=96,
        tokens=200_000,
        longest=None,
        texts_entry="texts",
        size_entry="output_dimension",
        sent={"embedding_types": ["float"], "truncate": "END"},
        kinds={"document": "search_document", "query": "search_query"},
        read=_cohere_read,
    ),
)
PROVIDERS.add(
    "voyage",
    Provider(
        base="https://api.voyageai.com/v1",
        path="/embeddings",
        variable="VOYAGE_API_KEY",
        texts=128,
        tokens=100_000,
        longest=None,
        texts_entry="input",
        size_entry="output_dimension",
        sent={"truncation": True},
        kinds={"document": "document", "query": "query"},
        read=_listed,
    ),
)

# ----------
# Requests to an embedding API, with retries and within the budget.


_BATCH_STATUS = 500  # llama.cpp's answer to a text beyond its physical batch size
_BATCH_WORDS = "too large to process"
_MOST_DIMENSIONS = 16_384  # of a vector whose dimension is not known yet
_NUMBER_BYTES = 64  # a number of an answer takes at most, its place on an indented line included
_TEXT_BYTES = 1 << 12  # an answer has at most for each text, beside its numbers
_REST_BYTES = 1 << 16  # an answer has at most beside what it has for each text


class _TooMuchError(Exception):
    """An API refuses texts, too many or one that it cannot process, or takes too long."""


@dataclass(eq=False)
class EmbeddingClient:
    """A client of an embedding API that keeps to a budget and a rate."""

    provider: Provider
    url: str
    metered: MeteredClient
    dense: float = 1.0
    """Largest ratio so far of the provider's token count to the estimate, at least 1."""

    def room(self) -> int:
        """Return the most tokens, by estimate, that the next request may have."""
        most, tokens_left = self.provider.tokens, self.metered.limits.remaining(self.metered.spent)
        return int((most if tokens_left is None else min(most, tokens_left)) / self.dense)

    def ask(self, ask: Ask, dimensions: int | None) -> Float32:
        """Return a vector per text from one request, float32[n, dimensions] (None: any size).

        Raises _TooMuchError if fewer texts may succeed, ServiceError for other failures.
        """

        def too_much(error: AttemptError) -> None:
            slow = error.kind == "timed out" and len(ask.texts) > 1
            if slow or (error.status == _BATCH_STATUS and _BATCH_WORDS in str(error)):
                raise _TooMuchError(f"{self.url}: {error}")

        tokens = math.ceil(sum(map(estimated, ask.texts)) * self.dense)

        def read(answer: Json) -> tuple[Float32, tuple[int, int] | None]:
            listed = self.provider.read(answer)
            try:
                vectors = rows(listed.vectors, len(ask.texts), dimensions)
            except UnusableAnswerError as error:
                if error.text is None:
                    raise
                raise UnusableAnswerError(
                    f"{error}; its text begins {ask.texts[error.text][:60]!r}"
                ) from None
            self.metered.count_texts(len(ask.texts))
            if listed.tokens is None or not is_believed(listed.tokens, tokens):
                return vectors, None
            self.dense = max(self.dense, self.dense * listed.tokens / tokens)
            return vectors, (listed.tokens, 0)

        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        headers |= self.metered.key.header()
        numbers = _NUMBER_BYTES * (dimensions or _MOST_DIMENSIONS)
        max_bytes = _REST_BYTES + len(ask.texts) * (numbers + _TEXT_BYTES)
        http = HttpRequest("POST", self.url, headers, json.dumps(self.provider.body(ask)).encode("ascii"))
        try:
            with closing(KeptConnection()) as connection:
                request = MeteredRequest(http, tokens, 0, max_bytes, read)
                return self.metered.answered(connection, request, too_much)
        except AttemptError as error:
            message = f"{self.url}: {error}"
            raise (_TooMuchError if error.status in MAYBE_SMALLER else ServiceError)(message) from None


# ----------
# Probes: what a service first answered tells whether the model behind it is still the same.


@dataclass(eq=False)
class ServiceProbe:
    """A service's first response to a fixed probe text, stored to notice a changed model."""

    path: Path
    values: Float32
    date: str
    moved: float | None = None
    """Distance of today's response from the stored one; None if not measured yet."""

    @property
    def revision(self) -> str:
        """Hash of the response, which identifies the model in stored results."""
        return hashlib.blake2b(self.values.tobytes(), digest_size=8).hexdigest()


def probe_path(kind: str, decisive: list[object]) -> Path:
    """Return the path of a service's stored probe response; its file name begins with `kind`.

    decisive: settings that identify service and model.
    """
    digest = hashlib.blake2b(json.dumps(decisive).encode("utf-8"), digest_size=8).hexdigest()
    return settings().home / "encoders" / f"{kind}-{digest}.json"


def service_probe(
    path: Path,
    about: Mapping[str, object],
    entry: str,
    checked: Callable[[Any], Float32],
    answer: Callable[[], Float32],
    clock: Clock,
) -> ServiceProbe:
    """Return a service's stored probe response; if there is none, ask for it and store it.

    about: facts to store with it.
    entry: name of the vectors in the file.
    checked: returns that entry as vectors, or raises an error.
    answer: sends the request.

    Raises StoreError for a damaged file.
    """

    def stored_probe() -> ServiceProbe | None:
        try:
            record = read_json(path)
            return ServiceProbe(path, checked(record[entry]), str(record["seen"]))
        except FileNotFoundError:
            return None
        except (OSError, FormatError, ValueError, KeyError, TypeError, UnusableAnswerError) as error:
            message = f"cannot read {path}: {error}; remove it, and the probe is asked for anew"
            raise StoreError(message) from None

    if (probe := stored_probe()) is not None:
        return probe
    with locked(path.with_suffix(".lock")):
        if (probe := stored_probe()) is not None:
            return probe
        values = answer()
        date = time.strftime("%Y-%m-%d", time.gmtime(clock.wall()))
        write_json(path, {**about, "seen": date, entry: values.tolist()})
    return ServiceProbe(path, values, date, moved=0.0)


# ----------
# Encoders behind an embedding API.


PROBE = "A weir is a low dam across a river; the water that runs over it can be measured."
"""Text whose vector shows if a URL still serves the same model."""
TOLERANCE = 1e-3
"""Largest cosine distance between two responses of one model to the probe; other precisions differ by
less."""

_SETTINGS: list[tuple[str, Callable[[object], bool], str]] = [
    ("similarity", lambda v: v in ("cosine", "dot"), "cosine or dot"),
    ("query_prompt", lambda v: isinstance(v, str), "a text"),
    ("document_prompt", lambda v: isinstance(v, str), "a text"),
    ("dimensions", lambda v: type(v) is int and v > 0, "a whole number from 1"),
    ("max_length", lambda v: type(v) is int and v > 0, "a whole number from 1"),
]


def is_hosted(model: str) -> bool:
    """Return True if a model name has the form provider:model, such as openai:text-embedding-3-small."""
    return re.match(r"[A-Za-z][\w-]+:[^\\/]", model) is not None


@dataclass(frozen=True)
class Hosted:
    """An encoder that calls an embedding API; http is allowed for localhost only.

    Raises UnknownName for an unknown provider, BadValue for bad settings.
    """

    model: str
    """provider:model, with the provider openai (or a compatible server, by `base`), cohere or voyage."""
    base: str | None = None
    """Address up to the version, such as "http://localhost:8080/v1"; None for the provider's."""
    dimensions: int | None = None
    """Requested from the provider; None for the model's own."""
    similarity: str = "cosine"
    """"cosine" scales vectors to length 1; "dot" keeps them."""
    query_prompt: str = ""
    """Text before each query."""
    document_prompt: str = ""
    """Text before each document."""
    max_length: int | None = None
    """Most tokens of a text, by estimate; longer texts are cut. None leaves it to the provider."""
    key: str | None = None
    """Environment variable with the key, WEIR_KEY_ and a name, so an experiment file cannot send other secrets away.
    None for the provider's usual variable at its own address, and for no key elsewhere.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not is_hosted(self.model):
            raise BadValue(
                f"model is {self.model!r}; expected provider:model, such as openai:text-embedding-3-small"
            )
        PROVIDERS.get(self.model.partition(":")[0])
        if self.base is not None:
            check_address("base", self.base)
        for name, fits, expected in _SETTINGS:
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise BadValue(f"{name} is {value!r}; expected {expected}")
        if self.key is not None:
            check_key(self.key, self.provider.variable, self.base)

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        return model_arguments(self, self.model)

    @property
    def provider(self) -> Provider:
        """The embedding API that the model names; raises UnknownName for an unknown one."""
        return PROVIDERS.get(self.model.partition(":")[0])

    @property
    def address(self) -> str:
        """URL up to the version, such as https://api.openai.com/v1."""
        return (self.base or self.provider.base).rstrip("/")

    def describe(self, device: str = "auto") -> dict[str, object]:
        """Return all settings that decide the vectors; calls the API as `load` does."""
        return self.load(device).identity()

    def fetch(self) -> None:
        """Ask the API for a probe response if none is stored; raises ServiceError if it fails."""
        self.load()

    def adapted_to(self, collection: str, instruction: str) -> Hosted:
        query, document = (
            filled_prompt(prompt, instruction) for prompt in (self.query_prompt, self.document_prompt)
        )
        return replace(self, query_prompt=query, document_prompt=document)

    def load(
        self, device: str = "auto", limits: Limits | None = None, clock: Clock | None = None
    ) -> LoadedHosted:
        """Return the encoder ready for texts; asks the API for a probe response if none is stored.

        device: not used.
        limits: None takes the environment's, shared by all encoders of the process.

        Warns if prompts of a known model are not used. Raises ServiceError for a missing key or bad response,
        StoreError for a damaged stored response.
        """
        budget = shared_budget() if limits is None else SharedBudget()
        key = Key.of(self.key or (self.provider.variable if self.base is None else None))
        name = (self.model, self.address, key.variable)
        if name not in budget.clients:
            if not (self.query_prompt or self.document_prompt or self.provider.kinds):
                note = without_prompts_note(self.model)
                if note:
                    give_warning(note)
            bounds, url = limits or Limits.of(settings()), self.address + self.provider.path
            metered = MeteredClient(key, bounds, clock or Clock(), budget.spent)
            budget.clients[name] = EmbeddingClient(self.provider, url, metered)
        client = budget.clients[name]
        client.metered.key = key  # it may have been set, or changed, since
        path = probe_path("api", [self.model, self.address, self.dimensions, PROBE])
        if path not in budget.probes:
            budget.probes[path] = service_probe(
                path,
                {"probe": PROBE, "model": self.model, "base": self.address},
                "vector",
                lambda vector: rows([vector], 1, None)[0],
                lambda: _probe_vector(self, client),
                client.metered.clock,
            )
        return LoadedHosted(self, client, budget.probes[path])


@dataclass
class SharedBudget:
    """Spending, clients and probe responses of encoders that share a budget."""

    spent: Spent = field(default_factory=Spent)
    clients: dict[tuple[str, str, str | None], EmbeddingClient] = field(default_factory=dict)
    probes: dict[Path, ServiceProbe] = field(default_factory=dict)


@cache
def shared_budget() -> SharedBudget:
    """Return the budget of tokens and money that all hosted encoders of this process share."""
    return SharedBudget(paid())


@dataclass(frozen=True, eq=False)
class LoadedHosted:
    """An embedding API ready for texts."""

    encoder: Hosted
    client: EmbeddingClient = field(repr=False)
    probe: ServiceProbe

    @property
    def dimensions(self) -> int:
        return len(self.probe.values)

    def identity(self) -> dict[str, object]:
        """Return everything that can change a vector, including the probe response's hash."""
        encoder, kinds = self.encoder, self.encoder.provider.kinds
        identity: dict[str, object] = {
            "model": encoder.model,
            "base": encoder.address,
            "revision": self.probe.revision,
            "dimensions": self.dimensions,
            "similarity": encoder.similarity,
            "normalised": encoder.similarity == "cosine",
            "query": filled_prompt(encoder.query_prompt, "") + "{text}",
            "document": filled_prompt(encoder.document_prompt, "") + "{text}",
            "max_length": self._longest(),
        }
        return identity | {f"{kind} type": name for kind, name in sorted(kinds.items())}

    def describe(self) -> dict[str, object]:
        """Return `identity`, "moved" (the cosine distance from the stored probe response, None if not
        measured), and "spent".
        """
        metered = self.client.metered
        spent, cost = metered.spent, metered.limits.cost(metered.spent.tokens)
        use = {f.name: getattr(spent, f.name) for f in fields(spent)}
        return self.identity() | {"moved": self.probe.moved} | {"spent": use | {"dollars": cost}}

    def encode(
        self, texts: Strings | Sequence[str], kind: Kind = "document", progress: Progress | None = None
    ) -> Float32:
        """Return a vector per text, float32[texts, dimensions]; raises ServiceError if one is missing."""
        total = len(texts)
        done = None if progress is None else lambda count: progress(count, total)
        blocks = list(self.stream(texts.tolist() if isinstance(texts, Strings) else texts, kind, done))
        return np.concatenate([np.zeros((0, self.dimensions), np.float32), *blocks])

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Float32]:
        """Yield the vectors of texts in order, a block for each response, float32[n, dimensions], of length 1
        for cosine.

        done: called after each response with the number of texts finished so far.

        A request is sent when its block is consumed, and halved if too large or slow. Warns if the model has
        changed since its first probe response. Raises ServiceError if the service fails or a single text is too
        large.
        """
        source, waiting, finished = iter(texts), deque[str](), 0
        most = self.encoder.provider.texts
        while batch := self._batch(source, waiting, kind, most):
            if self.probe.moved is None:
                self._check_probe()
                waiting.extendleft(reversed(batch))  # the probe took its share of the budget
                continue
            try:
                vectors = self.client.ask(_ask(self.encoder, batch, kind), self.dimensions)
            except _TooMuchError as error:
                if len(batch) == 1:
                    tokens = f"{estimated(batch[0]):,} tokens (max_length cuts)"
                    message = f"{error}; the text begins {batch[0][:60]!r} and has about {tokens}"
                    raise ServiceError(message) from None
                waiting.extendleft(reversed(batch))
                most = (len(batch) + 1) // 2
                continue
            except ServiceError as error:
                begins = f"the {kind} that begins {batch[0][:60]!r}"
                texts_asked = begins if len(batch) == 1 else f"{len(batch)} {kind} texts, the first {begins}"
                raise ServiceError(f"{self.encoder.model}, asked for {texts_asked}: {error}") from None
            finished += len(batch)
            if done is not None:
                done(finished)
            if self.encoder.similarity == "cosine":
                length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
                vectors = (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)
            yield vectors

    def _batch(self, source: Iterator[str], waiting: deque[str], kind: Kind, most: int) -> list[str]:
        budget, encoder = self.client.room(), self.encoder
        batch: list[str] = []
        while len(batch) < most:
            if not waiting:
                text = next(source, None)
                if text is None:
                    break
                # Behind its prompt, cut, and a space where it is empty, which providers refuse.
                prompt = encoder.query_prompt if kind == "query" else encoder.document_prompt
                text = shortened(filled_prompt(prompt, "") + text, self._longest())
                waiting.append(text or " ")
            budget -= estimated(waiting[0])
            if batch and budget < 0:
                break
            batch.append(waiting.popleft())
        return batch

    def _longest(self) -> int | None:
        return self.encoder.max_length or self.encoder.provider.longest

    def _check_probe(self) -> None:
        probe = self.probe
        today = _probe_vector(self.encoder, self.client).astype(np.float64)
        first = probe.values.astype(np.float64)
        if len(today) != len(first):
            raise ServiceError(
                f"{self.encoder.model} now answers with {len(today)} dimensions, on {probe.date} with "
                f"{len(first)}; remove {probe.path} to begin anew with the new model"
            )
        length = float(np.linalg.norm(today) * np.linalg.norm(first))
        probe.moved = max(0.0, 1.0 - float(today @ first) / length) if length else 0.0
        if probe.moved > TOLERANCE:
            give_warning(
                f"{self.encoder.model} has changed since {probe.date}: the vector of the probe text lies "
                f"{probe.moved:.2g} (cosine distance; {TOLERANCE:g} is allowed) from where it lay; vectors kept "
                f"from then and asked for now do not belong together; remove {probe.path} to begin anew"
            )


def _ask(encoder: Hosted, texts: Sequence[str], kind: Kind) -> Ask:
    return Ask(encoder.model.partition(":")[2], texts, kind, encoder.dimensions)


def _probe_vector(encoder: Hosted, client: EmbeddingClient) -> Float32:
    try:
        vector: Float32 = client.ask(_ask(encoder, [PROBE], "document"), None)[0]
    except _TooMuchError as error:
        raise ServiceError(str(error)) from None
    if encoder.dimensions not in (None, len(vector)):
        raise ServiceError(
            f"{client.url}: asked for {encoder.dimensions} dimensions, got {len(vector)}; "
            f"leave dimensions out where the model has one size"
        )
    return vector


# ----------
# Queries with instructions of their own.


LoadedEncoder: TypeAlias = Loaded | LoadedHosted | LoadedObject


def instructed(loaded: LoadedEncoder, queries: Queries) -> tuple[LoadedEncoder, Strings]:
    """Return (encoder, query texts) with each query's own instruction in its prompt.

    If queries have instructions and the prompt has {task}, the texts begin with the filled prompt and the
    encoder's prompt is empty; else both are unchanged.
    """
    metadata = queries.metadata
    if metadata is None or metadata.instruction is None:
        return loaded, queries.text
    prompt = ""  # that of queries, with {task}
    if isinstance(loaded, Loaded):
        prompt = _template(loaded.encoder)
    elif isinstance(loaded, LoadedHosted):
        prompt = loaded.encoder.query_prompt
    if TASK not in prompt:
        return loaded, queries.text
    texts = Strings.of(
        filled_prompt(prompt, own) + text
        for own, text in zip(metadata.instruction, queries.text, strict=True)
    )
    if isinstance(loaded, Loaded):
        return replace(loaded, recipe=replace(loaded.recipe, query_prompt="")), texts
    if isinstance(loaded, LoadedHosted):
        return replace(loaded, encoder=replace(loaded.encoder, query_prompt="")), texts
    return loaded, texts


@lru_cache(maxsize=16)
def _template(encoder: Encoder) -> str:
    return resolve(encoder, "", TASK).query_prompt
