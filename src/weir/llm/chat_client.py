"""The protocol of what answers prompts: a service, or a model in this process."""

from __future__ import annotations

from typing import Protocol

from weir.llm.chat_shapes import ChatPrompt
from weir.services.asking import Asker, Retried, Terms

__all__ = ["ChatClient"]


class ChatClient(Protocol):
    """A chat model as one process asks it; threads share it."""

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is asked for a prompt, as JSON: with max_tokens and the sample it decides the answer."""
        ...

    def terms(self, concurrency: int) -> Terms:
        """How requests are handed over where so many prompts may be out at a time."""
        ...

    def asker(self, retried: Retried, terms: Terms) -> Asker:
        """What asks for one thread. It takes requests of {"body", "max_tokens"}, "sample" where that is not 0, and
        answers with what ChatReply.kept gives; retried: told each attempt that is followed by another; terms: what
        `terms` gave."""
        ...

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """What so many tokens cost, of which so many are answers; None where no price is stated."""
        ...
