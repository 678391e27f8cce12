"""A chat model as a value: its name, where it is reached, and how it is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path

from weir.errors import BadValue, UnknownName
from weir.io.storage.toml_file import read_toml
from weir.llm.chat_shapes import SHAPES, ChatPrompt, ChatReply
from weir.services.asking import Retried
from weir.services.http import HttpRequest, KeptConnection, check_base, check_key
from weir.services.keys import Key
from weir.services.limits import Clock, Limits, estimated, paid
from weir.services.metered import MOST_COUNTED, MeteredClient, MeteredRequest
from weir.settings import secret, settings

__all__ = ["ChatClient", "ChatModel", "ChatProvider", "usual_model"]

PROVIDERS = Path(__file__).with_name("chat_providers.toml")
ANSWER_BYTES, TOKEN_BYTES = 1 << 18, 1 << 12
"""An answer has at most: beside its tokens, and for each of them with its alternatives."""


@dataclass(frozen=True)
class ChatProvider:
    """Who answers; chat_providers.toml says what each entry means."""

    shape: str
    base: str
    key: str
    log_probabilities: int
    json: bool
    key_header: str = ""
    length: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def usual_model() -> str:
    """The model of whoever names none, from WEIR_LLM; raises BadValue where none is set."""
    if settings().llm is None:
        raise BadValue(
            'no language model is named; name one, such as model="http://localhost:8000/v1#llama3", or set WEIR_LLM'
        )
    return str(settings().llm)


@cache
def _providers() -> dict[str, ChatProvider]:
    return {name: ChatProvider(**facts) for name, facts in read_toml(PROVIDERS, "providers").items()}


@dataclass(frozen=True)
class ChatModel:
    """A language model that answers prompts.

    model: address#name of a server that speaks OpenAI's API, such as http://localhost:8000/v1#llama3, or provider:name,
    such as openai:gpt-4o-mini, anthropic:... or gemini:...; base: another address of a provider, up to the version.
    key: the environment variable that holds the key, WEIR_KEY_ and a name; None for the provider's usual one at its own
    address, and for none at any other. version: what stands for a model that may answer otherwise tomorrow, "" for its
    name alone. Plain http reaches this machine only. Raises UnknownName for an unknown provider, BadValue for settings.
    """

    model: str
    base: str | None = None
    key: str | None = None
    version: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not re.fullmatch(
            r"https?://[^#]+#.+|[A-Za-z]\w*:[^/].*", self.model
        ):
            raise BadValue(
                f"model is {self.model!r}; expected address#name, such as http://localhost:8000/v1#llama3, or "
                "provider:name, such as openai:gpt-4o-mini"
            )
        if not (self.base is None or isinstance(self.base, str)):
            raise BadValue(f"base is {self.base!r}; expected an address such as https://example.org/v1")
        if "://" in self.model and self.base is not None:
            raise BadValue("model names an address already; base is for a provider:name")
        if not isinstance(self.version, str):
            raise BadValue(f"version is {self.version!r}; expected a text, such as '2026-11'")
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
        known = _providers()
        if name not in known:
            raise UnknownName("provider of chat models", name, known)
        return known[name]

    @property
    def name(self) -> str:
        """The model, as whoever answers calls it."""
        return self.model.partition("#" if "://" in self.model else ":")[2]

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
        """Everything besides a prompt that decides an answer."""
        return {
            "model": self.name,
            "base": self.address,
            "shape": self.provider.shape,
            "version": self.version,
        }

    def load(self, limits: Limits | None = None, clock: Clock | None = None) -> ChatClient:
        """The model, ready to be asked; limits: None for the environment's. Raises ServiceError for a missing key."""
        variable = self.key or (self.provider.key if self._at_home() else "") or None
        key = Key(variable, secret(variable) if variable else None)
        metered = MeteredClient(key, limits or Limits.of(settings()), clock or Clock(), paid())
        kind = self.provider.key_header
        carried = {kind: key.checked()} if kind and variable else key.header()
        return ChatClient(self, metered, carried)

    def _at_home(self) -> bool:
        return self.address == self.provider.base


@dataclass(frozen=True, eq=False)
class ChatClient:
    """A chat model as one process asks it; threads share it. carried: the header with the key."""

    model: ChatModel
    metered: MeteredClient = field(repr=False)
    carried: Mapping[str, str] = field(repr=False)

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is sent for a prompt; log-probabilities and JSON are asked for where the provider offers them."""
        provider = self.model.provider
        most = min(prompt.log_probabilities, provider.log_probabilities)
        held = ChatPrompt(
            prompt.system,
            prompt.user,
            prompt.max_tokens,
            prompt.temperature,
            most,
            prompt.json and provider.json,
        )
        return SHAPES[provider.shape].body(held, self.model.name, provider.length)

    def reply(
        self, connection: KeptConnection, body: dict[str, object], max_tokens: int, retrying: Retried
    ) -> ChatReply:
        """The answer to what is sent. Raises ServiceError and AttemptError as MeteredClient.answered."""
        shape = SHAPES[self.model.provider.shape]
        sent = json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        headers |= {**self.model.provider.headers, **self.carried}
        url = self.model.address + shape.path(self.model.name)
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
