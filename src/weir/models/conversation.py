"""Many prompts to one model, each answered once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from weir.errors import ServiceError
from weir.models.chat import ChatModel
from weir.models.chat_shapes import ChatClient, ChatPrompt, ChatReply
from weir.registry import declared_version
from weir.services.answers import (
    AnswerKey,
    AnswerStore,
    Request,
    ServiceUse,
    Tally,
    Terms,
    answer_key,
    answer_store,
    ask_each,
    kept_answers,
)
from weir.services.requests import CONTINUES, Limits

# ----------
# Many prompts to one model, side by side: each answer is kept by what was asked before the next is asked.


@dataclass(frozen=True)
class TimedReply:
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
    name, about = kept_about(model)
    with answer_store(name, about | ({} if reuse else declared_version(None))) as store:
        yield Conversation(client, store, client.terms(concurrency), use)


def kept_about(model: ChatModel) -> tuple[str, dict[str, object]]:
    """(the name under which a model's answers are kept, what they are about), see `answer_store`."""
    return f"chat-{model.name}", {"kind": "chat", **model.describe()}


def asked_for(client: ChatClient, prompt: ChatPrompt) -> dict[str, object]:
    """What is asked for a prompt: its key is that of the answer."""
    asked: dict[str, object] = {"body": client.body(prompt), "max_tokens": prompt.max_tokens}
    return asked | ({"sample": prompt.sample} if prompt.sample else {})


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
                asked = asked_for(self.client, prompt_of(number))
                keys.append(answer_key(asked))
                yield Request(number, keys[-1], asked)

        asker = partial(self.client.asker, terms=self.terms)
        tally = ask_each(requests(), asker, self.store, self.terms, progress)
        self.use.tally.add(tally)
        self._refuse(tally, count)
        self.use.prompts.update(keys)
        return self._read(keys)

    def kept(self, count: int, prompt_of: Callable[[int], ChatPrompt]) -> Iterator[TimedReply | None]:
        """The answers to so many prompts, in order, as far as they are kept, else None; nothing is asked."""
        for number in range(count):
            key = answer_key(asked_for(self.client, prompt_of(number)))
            kept = self.store.get(key)
            if kept is None:
                yield None
                continue
            found = ChatReply.of(kept["answer"])
            if key not in self.read:
                self.read.add(key)
                self._count(kept, found)
            yield TimedReply(found, kept.get("time", ""))

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
        self.use.dollars = self.client.dollars(self.use.tokens, self.use.answer_tokens)
        if found.model and found.model not in self.versions:
            self.versions.add(found.model)
            self.use.versions = {"model": ", ".join(sorted(self.versions))}


# ----------
# What a model was asked and answered before, read again: nobody is asked, nothing is written, no key is needed.


class UnknownAnswerError(Exception):
    """What would be asked next follows from an answer that is not kept."""


@dataclass(frozen=True)
class KeptReply:
    """A prompt and its answer, None where it is not kept.

    milliseconds: that the answer took; time: when it came, UTC in ISO's form, "" where that is not kept; about: what
    the prompt shows, as whoever made it says.
    """

    prompt: ChatPrompt
    reply: ChatReply | None
    milliseconds: float | None
    time: str = ""
    about: tuple[int, ...] = ()


@contextmanager
def kept_conversation(model: ChatModel) -> Iterator[KeptConversation]:
    """The answers that a model gave so far, open for reading as long as the block; waits for nobody."""
    with kept_answers(*kept_about(model)) as store:
        yield KeptConversation(model.load(silent=True), store)


@dataclass(eq=False)
class KeptConversation:
    """A model's kept answers, in the place of a Conversation.

    showing: what the prompt shows that was made last; said: every prompt so far with its answer.
    """

    client: ChatClient
    store: AnswerStore | None
    showing: Callable[[], tuple[int, ...]] = tuple
    said: list[KeptReply] = field(default_factory=list)

    def anew(self) -> KeptConversation:
        """The same answers, of which nothing was read yet."""
        return KeptConversation(self.client, self.store)

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The kept answers to so many prompts, in order; an empty one for what is not kept.

        Raises UnknownAnswerError where an answer to an earlier round is not kept, since prompts follow from answers;
        StoreError for an answer that is damaged.
        """
        if count and any(one.reply is None for one in self.said):
            raise UnknownAnswerError
        return self._each(count, prompt_of)

    def _each(self, count: int, prompt_of: Callable[[int], ChatPrompt]) -> Iterator[ChatReply]:
        for number in range(count):
            prompt = prompt_of(number)
            key = answer_key(asked_for(self.client, prompt))
            kept = None if self.store is None else self.store.get(key)
            if kept is None:
                self.said.append(KeptReply(prompt, None, None, about=self.showing()))
                yield ChatReply("")
            else:
                reply = ChatReply.of(kept["answer"])
                self.said.append(KeptReply(prompt, reply, kept["ms"], kept.get("time", ""), self.showing()))
                yield reply
