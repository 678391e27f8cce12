"""Chat models as values, and those that services run."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from time import perf_counter

from weir.errors import BadValue, UnknownName
from weir.models.chat_shapes import (
    LOCAL,
    SHAPES,
    ChatClient,
    ChatPrompt,
    ChatProvider,
    ChatReply,
    chat_providers,
)
from weir.models.checkpoints import fetch
from weir.models.local_chat import LocalChat, describe_local
from weir.services.answers import Outcome, Request, Retried, Terms
from weir.services.keys import Key
from weir.services.requests import (
    MOST_COUNTED,
    AttemptError,
    Clock,
    HttpRequest,
    KeptConnection,
    Limits,
    MeteredClient,
    MeteredRequest,
    Spent,
    check_base,
    check_key,
    estimated,
    paid,
)
from weir.settings import secret, settings

# ----------
# A chat model that a service runs: prompts over HTTP, in the provider's own shape, within the budget.


ANSWER_BYTES, TOKEN_BYTES = 1 << 18, 1 << 12
"""An answer has at most: beside its tokens, and for each of them with its alternatives."""
UNPROCESSED_STATUSES = (400, 422)
"""What servers answer to a body that they do not understand."""


@dataclass(frozen=True, eq=False)
class HostedChat:
    """A ChatClient of a service. name: of the model, as the provider calls it; address: up to the version; carried: the
    header with the key; refused: whether it turned out to take no JSON schema."""

    name: str
    address: str
    provider: ChatProvider
    metered: MeteredClient = field(repr=False)
    carried: Mapping[str, str] = field(repr=False)
    refused: threading.Event = field(default_factory=threading.Event, repr=False)

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is sent for a prompt; log-probabilities and JSON are asked for where the provider offers them."""
        provider = self.provider
        held = replace(
            prompt,
            log_probabilities=min(prompt.log_probabilities, provider.log_probabilities),
            json=(prompt.json or bool(prompt.schema)) and provider.json,
            schema=prompt.schema if provider.schema else "",
        )
        return SHAPES[self.provider.shape].body(held, self.name, self.provider.length)

    def terms(self, concurrency: int) -> Terms:
        """So many connections, each with one prompt at a time."""
        return Terms(concurrency)

    def asker(self, retried: Retried, terms: Terms) -> _HostedAsker:
        """One connection to the service."""
        return _HostedAsker(self, retried)

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """What so many tokens cost by WEIR_API_PRICE."""
        return self.metered.limits.cost(tokens, answer_tokens)

    def reply(
        self, connection: KeptConnection, body: dict[str, object], max_tokens: int, retrying: Retried
    ) -> ChatReply:
        """The answer to what is sent.

        A body whose schema is refused (400, 422) is sent once more without it, which `retrying` is told; where that is
        answered, no further schema is sent. Raises ServiceError and AttemptError as MeteredClient.answered.
        """
        loose = SHAPES[self.provider.shape].loose(body)
        if loose is not None and self.refused.is_set():
            return self._reply(connection, loose, max_tokens, retrying)
        try:
            return self._reply(connection, body, max_tokens, retrying)
        except AttemptError as error:
            if loose is None or error.status not in UNPROCESSED_STATUSES:
                raise
            retrying(error)
            found = self._reply(connection, loose, max_tokens, retrying)
            self.refused.set()
            return found

    def _reply(
        self, connection: KeptConnection, body: dict[str, object], max_tokens: int, retrying: Retried
    ) -> ChatReply:
        shape = SHAPES[self.provider.shape]
        sent = json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        headers |= {**self.provider.headers, **self.carried}
        url = self.address + shape.path(self.name)
        tokens = estimated(json.dumps(body, ensure_ascii=False)) + max_tokens

        def read(answer: object) -> tuple[ChatReply, tuple[int, int] | None]:
            found = shape.read(answer)
            said = found.tokens_out or 0
            if found.tokens_in is None or found.tokens_in + said > MOST_COUNTED * tokens:
                return replace(found, tokens_in=None, tokens_out=None), None
            return found, (found.tokens_in + said, said)

        most = ANSWER_BYTES + TOKEN_BYTES * max_tokens
        request = MeteredRequest(HttpRequest("POST", url, headers, sent), tokens, max_tokens, most, read)
        return self.metered.answered(connection, request, retrying)


@dataclass(eq=False)
class _HostedAsker:
    """One connection to the service."""

    client: HostedChat
    retried: Retried
    connection: KeptConnection = field(default_factory=KeptConnection)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """The answer to each request."""
        for request in requests:
            start = perf_counter()
            body, most = request.asked["body"], request.asked["max_tokens"]
            try:
                found = self.client.reply(self.connection, body, most, self.retried)
                yield Outcome(request, found.kept(), perf_counter() - start)
            except AttemptError as error:
                yield Outcome(request, error=error)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()


# ----------
# A chat model as a value: its name, where it is reached, and how it is asked.


def usual_model() -> str:
    """The model of whoever names none, from WEIR_LLM; raises BadValue where none is set."""
    if settings().llm is None:
        raise BadValue(
            'no language model is named; name one, such as model="http://localhost:8000/v1#llama3", or set WEIR_LLM'
        )
    return str(settings().llm)


@dataclass(frozen=True)
class ChatModel:
    """A language model that answers prompts.

    model: address#name of a server that speaks OpenAI's API, such as http://localhost:8000/v1#llama3, or provider:name,
    such as openai:gpt-4o-mini, anthropic:... or gemini:..., or transformers: and the folder of a causal model or its
    name on the hub, which then runs in this process; base: another address of a provider, up to the version. key: the
    environment variable that holds the key, WEIR_KEY_ and a name; None for the provider's usual one at its own address,
    and for none at any other. version: what stands for a model that may answer otherwise tomorrow, "" for its name
    alone. Plain http reaches this machine only. Raises UnknownName for an unknown provider, BadValue for settings.
    """

    model: str
    base: str | None = None
    key: str | None = None
    version: str = ""

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
        check_base(self.address)
        if self.key is not None:
            usual = self.provider.key or "WEIR_KEY_NAME"
            check_key(self.key, usual, None if self._at_home() else self.address)

    @property
    def given(self) -> dict[str, object]:
        """What is not by default, besides the model."""
        others = [f for f in fields(self) if f.name != "model" and getattr(self, f.name) != f.default]
        return {f.name: getattr(self, f.name) for f in others}

    @property
    def provider(self) -> ChatProvider:
        """Who is asked; raises UnknownName."""
        name = "server" if "://" in self.model else self.model.partition(":")[0]
        known = chat_providers()
        if name not in known:
            raise UnknownName("provider of chat models", name, known)
        return known[name]

    @property
    def local(self) -> bool:
        """Whether it runs in this process."""
        return self.model.startswith(f"{LOCAL}:")

    @property
    def name(self) -> str:
        """The model, as whoever answers calls it; of one in this process the last part of its place."""
        named = self.model.partition("#" if "://" in self.model else ":")[2]
        return Path(named).name if self.local else named

    @property
    def address(self) -> str:
        """The address up to the version; raises BadValue where nothing names one."""
        own = self.model.partition("#")[0] if "://" in self.model else self.provider.base
        found = self.base or own
        if not found:
            raise BadValue(
                f'{self.model} has no address of its own: write "http://localhost:8000/v1#{self.name}"'
            )
        return found.rstrip("/")

    def describe(self) -> dict[str, object]:
        """Everything besides a prompt that decides an answer; of a model in this process its files, wherever they lie.

        Raises BadValue, StoreError and DownloadError for files that are not here or of another kind.
        """
        if self.local:
            return describe_local(self._place, settings().device) | {"version": self.version}
        return {
            "model": self.name,
            "base": self.address,
            "shape": self.provider.shape,
            "version": self.version,
        }

    def fetch(self) -> None:
        """Download the files of a model in this process where they are not here; raises DownloadError."""
        if self.local:
            fetch(self._place)

    def load(
        self, limits: Limits | None = None, clock: Clock | None = None, silent: bool = False
    ) -> ChatClient:
        """The model, ready to be asked; limits: None for the environment's; silent: it only says what it would be
        asked, which takes no key. Raises ServiceError for a missing key, DownloadError for files that cannot be had."""
        if self.local:
            if not silent:
                self.fetch()
            return LocalChat(self._place, self.name, settings().device)
        if silent:
            nobody = MeteredClient(Key(None, None), Limits(), Clock(), Spent())
            return HostedChat(self.name, self.address, self.provider, nobody, {})
        variable = self.key or (self.provider.key if self._at_home() else "") or None
        key = Key(variable, secret(variable) if variable else None)
        metered = MeteredClient(key, limits or Limits.of(settings()), clock or Clock(), paid())
        kind = self.provider.key_header
        carried = {kind: key.checked()} if kind and variable else key.header()
        return HostedChat(self.name, self.address, self.provider, metered, carried)

    @property
    def _place(self) -> str:
        """The folder or the hub's name of a model in this process."""
        return self.model.partition(":")[2]

    def _at_home(self) -> bool:
        return self.address == self.provider.base
