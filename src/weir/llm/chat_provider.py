"""Providers of chat models as data; chat_providers.toml says what each entry means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from weir.io.storage.toml_file import read_toml

__all__ = ["LOCAL", "ChatProvider", "chat_providers"]

PROVIDERS = Path(__file__).with_name("chat_providers.toml")
LOCAL = "transformers"
"""The provider that is this process itself."""


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


@cache
def chat_providers() -> dict[str, ChatProvider]:
    """Every provider by name; "server" is a server of one's own."""
    return {name: ChatProvider(**facts) for name, facts in read_toml(PROVIDERS, "providers").items()}
