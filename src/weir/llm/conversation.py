"""Many prompts to one model, side by side: each answer is kept by what was asked before the next is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from weir.errors import ServiceError
from weir.llm.chat_model import ChatClient, ChatModel
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.registry import declared_version
from weir.services.answers import AnswerKey, AnswerStore, answer_key, answer_store
from weir.services.asking import Outcome, Request, Retried, ServiceUse, Tally, Terms, ask_each
from weir.services.attempts import AttemptError
from weir.services.http import KeptConnection
from weir.services.limits import CONTINUES, Limits

__all__ = ["Conversation", "KeptReply", "conversation"]


@dataclass(frozen=True)
class KeptReply:
    """An answer, and when it was given, as a UTC time in ISO's form; "" where that was not kept."""

    reply: ChatReply
    time: str = ""


@contextmanager
def conversation(
    model: ChatModel, concurrency: int, use: ServiceUse, reuse: bool = True, limits: Limits | None = None
) -> Iterator[Conversation]:
    """A model and the answers that it gave so far, open for asking as long as the block.

    use: where what is asked is counted; reuse: whether answers from before are read, and those from now kept; limits:
    None for those of the environment. Waits for a process that asks the same model. Raises ServiceError for a missing
    key, StoreError where nothing can be written.
    """
    client = model.load(limits)
    about = {"kind": "chat", **model.describe()} | ({} if reuse else declared_version(None))
    with answer_store(f"chat-{model.name}", about) as store:
        yield Conversation(client, store, Terms(concurrency), use)


@dataclass(eq=False)
class Conversation:
    """A model that is asked, and what it answered; see `conversation`.

    versions: what said that it answered; read: what `kept` read, each counted once.
    """

    client: ChatClient
    store: AnswerStore
    terms: Terms
    use: ServiceUse
    versions: set[str] = field(default_factory=set)
    read: set[AnswerKey] = field(default_factory=set)

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The answers to so many prompts, in order; equal prompts of one sample are asked once.

        progress: told how many are done.
        Raises ServiceError where one stays without an answer, saying how many and why, once the others are asked.
        """
        keys: list[AnswerKey] = []

        def requests() -> Iterator[Request]:
            for number in range(count):
                key, asked = self._asked(prompt_of(number))
                keys.append(key)
                yield Request(number, key, asked)

        opened: Callable[[Retried], _ChatAsker] = lambda retried: _ChatAsker(self.client, retried)  # noqa: E731
        tally = ask_each(requests(), opened, self.store, self.terms, progress)
        self.use.tally.add(tally)
        self._refuse(tally, count)
        return self._read(keys)

    def kept(self, count: int, prompt_of: Callable[[int], ChatPrompt]) -> Iterator[KeptReply | None]:
        """The answers to so many prompts, in order, as far as they are kept, else None; nothing is asked."""
        for number in range(count):
            key, _ = self._asked(prompt_of(number))
            kept = self.store.get(key)
            if kept is None:
                yield None
                continue
            found = ChatReply.of(kept["answer"])
            if key not in self.read:
                self.read.add(key)
                self._count(kept, found)
            yield KeptReply(found, kept.get("time", ""))

    def _asked(self, prompt: ChatPrompt) -> tuple[AnswerKey, dict[str, Any]]:
        """What is sent for a prompt, and the key of its answer."""
        asked: dict[str, Any] = {"body": self.client.body(prompt), "max_tokens": prompt.max_tokens}
        asked |= {"sample": prompt.sample} if prompt.sample else {}
        return answer_key(asked), asked

    def _refuse(self, tally: Tally, count: int) -> None:
        if tally.first is None:
            return
        request, why = tally.first
        kinds = ", ".join(f"{many} {kind}" for kind, many in sorted(tally.unanswered.items()))
        row = (
            f"; {self.terms.failures} in a row failed, and no further one was asked" if tally.stopped else ""
        )
        said = f"{tally.failed:,} of {count:,} prompts have no answer ({kinds}){row}; the first, number "
        said += f"{request.number + 1}: {why}"
        raise ServiceError(said if CONTINUES in said else f"{said}; {CONTINUES}")

    def _read(self, keys: Sequence[AnswerKey]) -> Iterator[ChatReply]:
        counted: set[AnswerKey] = set()
        for key in keys:
            kept = self.store.get(key)
            found = ChatReply.of(kept["answer"])
            if key not in counted:
                counted.add(key)
                self._count(kept, found)
            yield found

    def _count(self, kept: dict[str, float], found: ChatReply) -> None:
        """What an answer took, whenever it was given."""
        self.use.answered(kept)
        self.use.empty += not found.text.strip()
        self.use.tokens += (found.tokens_in or 0) + (found.tokens_out or 0)
        self.use.answer_tokens += found.tokens_out or 0
        self.use.dollars = self.client.metered.limits.cost(self.use.tokens, self.use.answer_tokens)
        if found.model and found.model not in self.versions:
            self.versions.add(found.model)
            self.use.versions = {"model": ", ".join(sorted(self.versions))}


@dataclass(eq=False)
class _ChatAsker:
    """One connection to the model."""

    client: ChatClient
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
