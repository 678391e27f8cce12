"""What a model was asked and answered before, read again: nobody is asked, nothing is written, no key is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from weir.llm.chat_client import ChatClient
from weir.llm.chat_model import ChatModel
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.conversation import asked_for, kept_about
from weir.services.answers import AnswerStore, answer_key, kept_answers

__all__ = ["KeptConversation", "KeptReply", "UnknownAnswerError", "kept_conversation"]


class UnknownAnswerError(Exception):
    """What would be asked next follows from an answer that is not kept."""


@dataclass(frozen=True)
class KeptReply:
    """A prompt and its answer, None where it is not kept; milliseconds: that the answer took."""

    prompt: ChatPrompt
    reply: ChatReply | None
    milliseconds: float | None


@contextmanager
def kept_conversation(model: ChatModel) -> Iterator[KeptConversation]:
    """The answers that a model gave so far, open for reading as long as the block; waits for nobody."""
    with kept_answers(*kept_about(model)) as store:
        yield KeptConversation(model.load(silent=True), store)


@dataclass(eq=False)
class KeptConversation:
    """A model's kept answers, in the place of a Conversation; said: every prompt so far with its answer."""

    client: ChatClient
    store: AnswerStore | None
    said: list[KeptReply] = field(default_factory=list)

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
            reply = None if kept is None else ChatReply.of(kept["answer"])
            self.said.append(KeptReply(prompt, reply, None if kept is None else kept["ms"]))
            yield reply or ChatReply("")
