"""A chat model as a value: its name, where it is reached, and how it is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

from weir.errors import BadValue, UnknownName
from weir.llm.chat_client import ChatClient
from weir.llm.chat_provider import LOCAL, ChatProvider, chat_providers
from weir.llm.hosted_chat import HostedChat
from weir.llm.local_chat import LocalChat, describe_local
from weir.services.http import check_base, check_key
from weir.services.keys import Key
from weir.services.limits import Clock, Limits, Spent, paid
from weir.services.metered import MeteredClient
from weir.settings import secret, settings

__all__ = ["ChatModel"]


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

    def load(
        self, limits: Limits | None = None, clock: Clock | None = None, silent: bool = False
    ) -> ChatClient:
        """The model, ready to be asked; limits: None for the environment's; silent: it only says what it would be
        asked, which takes no key. Raises ServiceError for a missing key."""
        if self.local:
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
