"""Chat models as values, the services that answer them, and their stored answers."""

from __future__ import annotations

import copy
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from weir.argument_types import named_arguments
from weir.errors import BadValue, ServiceError, UnknownName
from weir.files.network import KeptConnection
from weir.files.text_files import read_toml
from weir.models.checkpoints import fetch
from weir.plugins.llm.local_chat import LOCAL, LocalChat, describe_local
from weir.plugins.llm.prompts import ChatPrompt
from weir.plugins.llm.verdicts import ChatReply, Finish, TokenChoice
from weir.registry import changed_settings, declared_version
from weir.services.answers import (
    AnswerKey,
    AnswerStore,
    ConnectionWorker,
    Request,
    RequestPolicy,
    Retried,
    ServiceUsage,
    answer_key,
    answer_store,
    kept_answers,
    run_requests,
)
from weir.services.requests import (
    CONTINUES,
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
)
from weir.settings import settings

# ----------
# Providers of chat models, from chat_providers.toml.


PROVIDERS = Path(__file__).with_name("chat_providers.toml")


@dataclass(frozen=True)
class ChatProvider:
    """A provider of chat models: address, request format and supported settings, as chat_providers.toml explains."""

    shape: str
    base: str
    key: str
    """Environment variable with the key; "" for none."""
    log_probabilities: int
    json: bool
    schema: bool
    key_header: str = ""
    length: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@cache
def _chat_providers() -> dict[str, ChatProvider]:
    return {name: ChatProvider(**facts) for name, facts in read_toml(PROVIDERS, "providers").items()}


# ----------
# Formats of requests and answers: OpenAI's, Anthropic's and Gemini's.


Json: TypeAlias = Any
"""JSON of a server, of unknown shape."""

_ANY_JSON = {"type": "json_object"}


@dataclass(frozen=True)
class _ChatShape:
    """A format of chat APIs, as functions that write requests and read answers."""

    path: Callable[[str], str]
    """Model -> path of the request."""
    body: Callable[[ChatPrompt, str, str], dict[str, Json]]
    """(prompt, model, the provider's name for max_tokens) -> body."""
    read: Callable[[Json], ChatReply]
    """Reads an answer; raises UnusableAnswerError."""
    schemas: tuple[str, ...]
    """Nested keys of a body that lead to the JSON schema."""

    def without_schema(self, body: dict[str, Json]) -> dict[str, Json] | None:
        """Return a copy of a request body without its JSON schema (OpenAI's still asks for JSON); None if it has
        none."""
        *outer, last = self.schemas

        def holder(whole: dict[str, Json]) -> dict[str, Json]:
            return reduce(lambda inner, name: inner.get(name, {}), outer, whole)

        if holder(body).get(last, _ANY_JSON) == _ANY_JSON:
            return None
        plain = copy.deepcopy(body)
        del holder(plain)[last]
        if self.schemas == ("response_format",):
            plain[last] = _ANY_JSON
        return plain


def _openai_body(prompt: ChatPrompt, model: str, length: str) -> dict[str, Json]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: dict[str, Json] = {"model": model, "messages": [*system, {"role": "user", "content": prompt.user}]}
    body[length] = prompt.max_tokens
    if prompt.temperature is not None:
        body["temperature"] = prompt.temperature
    if prompt.log_probabilities:
        body |= {"logprobs": True, "top_logprobs": prompt.log_probabilities}
    if prompt.schema:
        schema = {"name": "answer", "strict": True, "schema": json.loads(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif prompt.json:
        body["response_format"] = _ANY_JSON
    return body


def _openai_read(answer: Json) -> ChatReply:
    choice = _first(answer, "choices")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableAnswerError("the answer's first choice has no 'message'")
    text = _text(message.get("content"))
    refused = choice.get("finish_reason") == "content_filter" or (not text and bool(message.get("refusal")))
    finish: Finish = "length" if choice.get("finish_reason") == "length" else "stop"
    usage = answer.get("usage")
    logprobs = choice.get("logprobs")
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    choices = [
        _choice(row.get("token"), row.get("top_logprobs"), "logprob")
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]
    return ChatReply(
        text,
        "refused" if refused else finish,
        _text(answer.get("model")),
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        tuple(choices),
    )


def _anthropic_body(prompt: ChatPrompt, model: str, _: str) -> dict[str, Json]:
    body: dict[str, Json] = {"model": model, "max_tokens": prompt.max_tokens}
    body["messages"] = [{"role": "user", "content": prompt.user}]
    if prompt.system:
        body["system"] = prompt.system
    if prompt.temperature is not None:
        body["temperature"] = prompt.temperature
    if prompt.schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": json.loads(prompt.schema)}}
    return body


def _anthropic_read(answer: Json) -> ChatReply:
    blocks = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(blocks, list):
        raise UnusableAnswerError("the answer has no list 'content'")
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    why, usage = answer.get("stop_reason"), answer.get("usage")
    finish: Finish = "refused" if why == "refusal" else "length" if why == "max_tokens" else "stop"
    text = "".join(t for t in texts if isinstance(t, str))
    counts = (_count(usage, "input_tokens"), _count(usage, "output_tokens"))
    return ChatReply(text, finish, _text(answer.get("model")), *counts)


def _gemini_body(prompt: ChatPrompt, _: str, __: str) -> dict[str, Json]:
    settings: dict[str, Json] = {"maxOutputTokens": prompt.max_tokens}
    if prompt.temperature is not None:
        settings["temperature"] = prompt.temperature
    if prompt.log_probabilities:
        settings |= {"responseLogprobs": True, "logprobs": prompt.log_probabilities}
    if prompt.json or prompt.schema:
        settings["responseMimeType"] = "application/json"
    if prompt.schema:
        settings["responseJsonSchema"] = json.loads(prompt.schema)
    body: dict[str, Json] = {"contents": [{"role": "user", "parts": [{"text": prompt.user}]}]}
    if prompt.system:
        body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    return body | {"generationConfig": settings}


def _gemini_read(answer: Json) -> ChatReply:
    usage = answer.get("usageMetadata") if isinstance(answer, dict) else None
    out = _count(usage, "candidatesTokenCount")
    thought = _count(usage, "thoughtsTokenCount") or 0
    counts = (_count(usage, "promptTokenCount"), None if out is None else out + thought)
    feedback = answer.get("promptFeedback") if isinstance(answer, dict) else None
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return ChatReply("", "refused", _text(answer.get("modelVersion")), *counts)
    candidate = _first(answer, "candidates")
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts = [p.get("text") for p in parts or [] if isinstance(p, dict) and not p.get("thought")]
    why, logprobs = candidate.get("finishReason"), candidate.get("logprobsResult")
    finish: Finish = "length" if why == "MAX_TOKENS" else "stop" if why in ("STOP", None) else "refused"
    text = "".join(t for t in texts if isinstance(t, str))
    choices: list[TokenChoice] = []
    logprobs = logprobs if isinstance(logprobs, dict) else {}
    chosen, top = logprobs.get("chosenCandidates"), logprobs.get("topCandidates")
    if isinstance(chosen, list) and isinstance(top, list) and len(chosen) == len(top):
        for one, others in zip(chosen, top, strict=True):
            if isinstance(one, dict) and isinstance(others, dict):
                choices.append(_choice(one.get("token"), others.get("candidates"), "logProbability"))
    return ChatReply(text, finish, _text(answer.get("modelVersion")), *counts, tuple(choices))


def _choice(token: Json, others: Json, value: str) -> TokenChoice:
    rows = [row for row in others if isinstance(row, dict)] if isinstance(others, list) else []
    alternatives = {
        row["token"]: row[value] for row in rows if isinstance(row.get("token"), str) and value in row
    }
    finite = {k: float(v) for k, v in alternatives.items() if type(v) in (int, float) and math.isfinite(v)}
    return _text(token), finite


def _first(answer: Json, name: str) -> dict[str, Json]:
    entries = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not entries or not isinstance(entries[0], dict):
        raise UnusableAnswerError(f"the answer has no '{name}'")
    return entries[0]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _count(usage: Json, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and count >= 0 else None


SHAPES = {
    "openai": _ChatShape(lambda _: "/chat/completions", _openai_body, _openai_read, ("response_format",)),
    "anthropic": _ChatShape(lambda _: "/messages", _anthropic_body, _anthropic_read, ("output_config",)),
    "gemini": _ChatShape(
        lambda model: f"/models/{quote(model, safe='')}:generateContent",
        _gemini_body,
        _gemini_read,
        ("generationConfig", "responseJsonSchema"),
    ),
}

# ----------
# Chat models of services: prompts over HTTP in the provider's own format.


ANSWER_BYTES, TOKEN_BYTES = 1 << 18, 1 << 12
"""Most bytes of an answer: besides its tokens, and for each token with its alternatives."""
UNPROCESSED_STATUSES = (400, 422)
"""HTTP statuses for a body that a server does not understand."""


@dataclass(frozen=True, eq=False)
class _HostedChat:
    """A client of a chat model over HTTP; threads may share it."""

    name: str
    address: str
    """Up to the API's version."""
    provider: ChatProvider
    metered: MeteredClient = field(repr=False)
    auth_headers: Mapping[str, str] = field(repr=False)
    schema_refused: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set once the service has refused a JSON schema."""

    def request_body(self, prompt: ChatPrompt) -> dict[str, object]:
        """Return the request body of a prompt, without log-probabilities and JSON that the provider does not support;
        an unsupported schema becomes plain JSON."""
        provider = self.provider
        offered = replace(
            prompt,
            log_probabilities=min(prompt.log_probabilities, provider.log_probabilities),
            json=(prompt.json or bool(prompt.schema)) and provider.json,
            schema=prompt.schema if provider.schema else "",
        )
        return SHAPES[provider.shape].body(offered, self.name, provider.length)

    def policy(self, concurrency: int) -> RequestPolicy:
        return RequestPolicy(concurrency)

    def worker(self, retried: Retried, policy: RequestPolicy) -> ConnectionWorker:
        def send(connection: KeptConnection, request: Request) -> dict[str, Json]:
            body, max_tokens = request.body["body"], request.body["max_tokens"]
            return self.reply(connection, body, max_tokens, retried).to_json()

        return ConnectionWorker(send)

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """Return the cost of all tokens, including `answer_tokens`; None if WEIR_API_PRICE is not set."""
        return self.metered.limits.cost(tokens, answer_tokens)

    def reply(
        self, connection: KeptConnection, body: dict[str, object], max_tokens: int, retried: Retried
    ) -> ChatReply:
        """Send a request body and return the answer; raises AttemptError if no attempt succeeds.

        Once the service has answered only without the JSON schema, this client sends none again.
        """
        shape = SHAPES[self.provider.shape]
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        headers |= {**self.provider.headers, **self.auth_headers}
        url = self.address + shape.path(self.name)

        def post(body: dict[str, object]) -> ChatReply:
            sent = json.dumps(body)
            text = json.dumps(body, ensure_ascii=False) if r"\u" in sent else sent
            tokens = estimated(text) + max_tokens

            def read(answer: object) -> tuple[ChatReply, tuple[int, int] | None]:
                reply = shape.read(answer)
                answer_tokens = reply.tokens_out or 0
                if reply.tokens_in is None or not is_believed(reply.tokens_in + answer_tokens, tokens):
                    return replace(reply, tokens_in=None, tokens_out=None), None
                return reply, (reply.tokens_in + answer_tokens, answer_tokens)

            http = HttpRequest("POST", url, headers, sent.encode("ascii"))
            max_bytes = ANSWER_BYTES + TOKEN_BYTES * max_tokens
            request = MeteredRequest(http, tokens, max_tokens, max_bytes, read)
            return self.metered.answered(connection, request, retried)

        plain = shape.without_schema(body)
        if plain is None:
            return post(body)
        if not self.schema_refused.is_set():
            try:
                return post(body)
            except AttemptError as error:
                if error.status not in UNPROCESSED_STATUSES:
                    raise
                retried(error)
        reply = post(plain)
        self.schema_refused.set()
        return reply


ChatClient: TypeAlias = _HostedChat | LocalChat
"""A chat model ready to answer."""

# ----------
# Chat models as values.


def default_model() -> str:
    """Return the model in WEIR_LLM; raises BadValue if it is not set."""
    model = settings().llm
    if model is None:
        raise BadValue(
            'no language model is named; name one, such as model="http://localhost:8000/v1#llama3", or set WEIR_LLM'
        )
    return model


@named_arguments
@dataclass(frozen=True)
class ChatModel:
    """A language model that answers prompts; raises UnknownName for an unknown provider, BadValue for settings."""

    model: str
    """ADDRESS#NAME of a server that speaks OpenAI's API, such as http://localhost:8000/v1#llama3 (http only for
    localhost); PROVIDER:NAME, such as openai:gpt-4o-mini; or transformers: and a folder or a name on the Hugging Face
    hub, run in this process.
    """
    base: str | None = None
    """Another address of a provider, up to the API's version."""
    key: str | None = None
    """The environment variable that holds the key, WEIR_KEY_ and a name; by default the provider's usual one at its own
    address, and no key elsewhere.
    """
    version: str = ""
    """Your label for a version of a model that may change."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not re.fullmatch(
            r"https?://[^#]+#.+|[A-Za-z]\w*:[^/].*|transformers:.+", self.model
        ):
            raise BadValue(
                f"model is {self.model!r}; expected address#name, such as http://localhost:8000/v1#llama3, or "
                "provider:name, such as openai:gpt-4o-mini or transformers:/path/to/folder"
            )
        if not (self.base is None or isinstance(self.base, str)):
            raise BadValue(f"base is {self.base!r}; expected an address such as https://example.org/v1")
        if "://" in self.model and self.base is not None:
            raise BadValue("model names an address already; base is for a provider:name")
        if not isinstance(self.version, str):
            raise BadValue(f"version is {self.version!r}; expected a text, such as '2026-11'")
        if self.local:
            if self.base is not None or self.key is not None:
                raise BadValue(f"{self.model} runs in this process; base and key are for services")
            return
        check_address("base", self.address)
        if self.key is not None:
            usual = self.provider.key or "WEIR_KEY_NAME"
            check_key(self.key, usual, None if self._is_default_base else self.address)

    @property
    def options(self) -> dict[str, object]:
        """The settings, besides the model, that differ from their defaults."""
        return changed_settings(self, ("model",))

    @property
    def provider(self) -> ChatProvider:
        """The provider that the model's name has before ":", "server" for an address; raises UnknownName."""
        name = "server" if "://" in self.model else self.model.partition(":")[0]
        providers = _chat_providers()
        if name not in providers:
            raise UnknownName("provider of chat models", name, providers)
        return providers[name]

    @property
    def local(self) -> bool:
        return self.model.startswith(f"{LOCAL}:")

    @property
    def name(self) -> str:
        """The model's name at its provider, or the last part of a path."""
        name = self.model.partition("#" if "://" in self.model else ":")[2]
        return Path(name).name if self.local else name

    @property
    def address(self) -> str:
        """The address up to the API's version; raises BadValue if there is none."""
        own = self.model.partition("#")[0] if "://" in self.model else self.provider.base
        if not (address := self.base or own):
            raise BadValue(
                f'{self.model} has no address of its own: write "http://localhost:8000/v1#{self.name}"'
            )
        return address.rstrip("/")

    def describe(self) -> dict[str, object]:
        """Return the settings that decide an answer, apart from the prompt; for a local model a hash of its files."""
        if self.local:
            return describe_local(self._place, settings().device) | {"version": self.version}
        return {
            "model": self.name,
            "base": self.address,
            "shape": self.provider.shape,
            "version": self.version,
        }

    def fetch(self) -> None:
        """Download the missing files of a local model."""
        if self.local:
            fetch(self._place)

    def load(self, limits: Limits | None = None, silent: bool = False) -> ChatClient:
        """Return a client that answers prompts; a local model is downloaded if missing.

        limits: of cost and rate; None takes the environment's.
        silent: the client only makes request bodies, without key or files.
        """
        if self.local:
            if not silent:
                self.fetch()
            return LocalChat(self._place, self.name, settings().device, self.provider.log_probabilities)
        if silent:
            silent_client = MeteredClient(Key(None, None), Limits(), Clock(), Spent())
            return _HostedChat(self.name, self.address, self.provider, silent_client, {})
        variable = self.key or (self.provider.key if self._is_default_base else "") or None
        key = Key.of(variable)
        limits = limits or Limits.of(settings())
        # An answer that is not streamed sends no byte before all of it is said.
        metered = MeteredClient(key, replace(limits, timeout=limits.whole), Clock(), paid())
        header = self.provider.key_header
        auth_headers = {header: key.checked()} if header and variable else key.header()
        return _HostedChat(self.name, self.address, self.provider, metered, auth_headers)

    @property
    def _place(self) -> str:
        return self.model.partition(":")[2]

    @property
    def _is_default_base(self) -> bool:
        return self.address == self.provider.base


# ----------
# Chat models with their stored answers: the key of an answer is its request, so equal requests are sent once.


@contextmanager
def cached_chat(
    model: ChatModel, concurrency: int, usage: ServiceUsage, reuse: bool = True, limits: Limits | None = None
) -> Iterator[CachedChatClient]:
    """Yield a client that answers prompts from stored answers, and asks the model for the others.

    reuse: read answers of earlier runs, and store new ones for later.
    limits: of cost and rate; None takes the environment's.

    Waits while another process asks the same model.
    """
    client = model.load(limits)
    name, about = answers_about(model)
    with answer_store(name, about | ({} if reuse else declared_version(None))) as store:
        yield CachedChatClient(client, store, client.policy(concurrency), usage)


def answers_about(model: ChatModel) -> tuple[str, dict[str, object]]:
    """Return (name, settings that decide a model's answers), the arguments of `answer_store`."""
    return f"chat-{model.name}", {"kind": "chat", **model.describe()}


def _request_of(client: ChatClient, prompt: ChatPrompt) -> dict[str, object]:
    request: dict[str, object] = {"body": client.request_body(prompt), "max_tokens": prompt.max_tokens}
    return request | ({"sample": prompt.sample} if prompt.sample else {})


_TOO_LONG = re.compile(
    r"context (?:size|length|window)|too (?:long|many tokens)|maximum .{0,40}(?:tokens|length)", re.I
)
"""Matches a server's error that a prompt exceeds the context."""


@dataclass(eq=False)
class CachedChatClient:
    """A chat client that reads stored answers, asks the model for the others, and counts tokens and dollars."""

    client: ChatClient
    store: AnswerStore
    policy: RequestPolicy
    usage: ServiceUsage
    versions: set[str] = field(default_factory=set)
    """The answering models' names for themselves."""
    counted: set[AnswerKey] = field(default_factory=set)
    """Keys that `stored_replies` has counted in `usage`."""

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """Ask for the answers that are not stored, then return an iterator over all answers in order.

        prompt_of: number from 0 to `count` - 1 -> prompt.
        progress: called with the number of prompts done.

        Equal prompts are sent once. Raises ServiceError, after trying all or many failures in a row, if one has no
        answer.
        """
        keys: list[AnswerKey] = []

        def requests() -> Iterator[Request]:
            for number in range(count):
                request_body = _request_of(self.client, prompt_of(number))
                keys.append(answer_key(request_body))
                yield Request(number, keys[-1], request_body)

        new_worker = partial(self.client.worker, policy=self.policy)
        counts = run_requests(requests(), new_worker, self.store, self.policy, progress)
        self.usage.counts.add(counts)
        if counts.first is not None:
            request, reason = counts.first
            message = f"{counts.failed:,} of {count:,} prompts have no answer ({counts.failed_by_kind})"
            if counts.stopped:
                message += f"; {self.policy.failures} in a row failed, and no further one was asked"
            message += f"; the first, number {request.number + 1}: {reason}"
            if set(counts.unanswered) == {"refused"} and _TOO_LONG.search(reason):
                message += "; the same prompt is refused again: `max_length` cuts documents"
            raise ServiceError(message if CONTINUES in message else f"{message}; {CONTINUES}")
        self.usage.prompts.update(keys)
        return self._read(keys)

    def _read(self, keys: Sequence[AnswerKey]) -> Iterator[ChatReply]:
        counted: set[AnswerKey] = set()
        for key in keys:
            stored = self.store.answer(key)
            reply = ChatReply.of(stored["answer"])
            if key not in counted:
                counted.add(key)
                self._count(stored, reply)
            yield reply

    def stored_replies(
        self, count: int, prompt_of: Callable[[int], ChatPrompt]
    ) -> Iterator[tuple[ChatReply, str] | None]:
        """Yield (stored answer, its time in UTC or "") for each prompt, None if not stored; sends no request, counts
        an answer in `usage` once."""
        for number in range(count):
            key = answer_key(_request_of(self.client, prompt_of(number)))
            stored = self.store.answer(key)
            if stored is None:
                yield None
                continue
            reply = ChatReply.of(stored["answer"])
            if key not in self.counted:
                self.counted.add(key)
                self._count(stored, reply)
            yield reply, stored.get("time", "")

    def _count(self, stored: dict[str, float], reply: ChatReply) -> None:
        usage = self.usage
        usage.answered(stored)
        usage.empty += not reply.text.strip()
        usage.tokens += (reply.tokens_in or 0) + (reply.tokens_out or 0)
        usage.answer_tokens += reply.tokens_out or 0
        usage.dollars = self.client.dollars(usage.tokens, usage.answer_tokens)
        if reply.model and reply.model not in self.versions:
            self.versions.add(reply.model)
            usage.versions = {"model": ", ".join(sorted(self.versions))}


# ----------
# Stored answers alone: nothing is asked, nothing is written, no key is needed.


class UnknownAnswerError(Exception):
    """Raised if the next prompt depends on an answer that is not stored."""


@dataclass(frozen=True)
class RecordedReply:
    """A prompt of an earlier run with its stored answer."""

    prompt: ChatPrompt
    reply: ChatReply | None
    """None if not stored."""
    milliseconds: float | None
    """Time that the answer took."""
    time: str = ""
    """UTC, ISO 8601; "" if not stored."""
    about: tuple[int, ...] = ()
    """Candidates in the prompt."""


@contextmanager
def recorded_chat(model: ChatModel) -> Iterator[RecordedChat]:
    """Yield a client that only reads stored answers, perhaps not another process's latest."""
    with kept_answers(*answers_about(model)) as store:
        yield RecordedChat(model.load(silent=True), store)


@dataclass(eq=False)
class RecordedChat:
    """A client that only reads stored answers: it sends and writes nothing, and needs no key."""

    client: ChatClient
    store: AnswerStore | None
    showing: Callable[[], tuple[int, ...]] = tuple
    """Returns the candidates in the latest prompt."""
    exchanges: list[RecordedReply] = field(default_factory=list)
    """All prompts so far, with answers."""

    def anew(self) -> RecordedChat:
        """Return a client of the same stored answers, with `exchanges` empty and `showing` as by default."""
        return RecordedChat(self.client, self.store)

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """Return an iterator over the stored answers, an empty reply for a missing one, that adds them to `exchanges`.

        Raises UnknownAnswerError if an answer to an earlier call was missing.
        """
        if count and any(exchange.reply is None for exchange in self.exchanges):
            raise UnknownAnswerError
        return self._read(count, prompt_of)

    def _read(self, count: int, prompt_of: Callable[[int], ChatPrompt]) -> Iterator[ChatReply]:
        for number in range(count):
            prompt = prompt_of(number)
            key = answer_key(_request_of(self.client, prompt))
            stored = None if self.store is None else self.store.answer(key)
            if stored is None:
                self.exchanges.append(RecordedReply(prompt, None, None, about=self.showing()))
                yield ChatReply("")
                continue
            reply = ChatReply.of(stored["answer"])
            time = stored.get("time", "")
            self.exchanges.append(RecordedReply(prompt, reply, stored["ms"], time, self.showing()))
            yield reply
