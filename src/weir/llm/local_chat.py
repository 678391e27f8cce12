"""A chat model in this process: prompts of like length side by side, answers kept batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Int64
from weir.encode.batching import out_of_memory
from weir.encode.models.causal import CausalModel, Continuation, declare_causal, load_causal, read_causal
from weir.encode.models.token_draws import WritingOrder
from weir.encode.recipes.checkpoint import Checkpoint, read_object
from weir.encode.recipes.fingerprint import fingerprint
from weir.llm.chat_form import ChatForm, chat_form
from weir.llm.chat_provider import LOCAL, chat_providers
from weir.llm.chat_shapes import ChatPrompt, ChatReply, Finish
from weir.services.asking import Outcome, Request, Retried, Terms
from weir.services.attempts import AttemptError

__all__ = ["LocalChat", "describe_local"]

BATCH_TOKENS = {"cpu": 1 << 14, "cuda": 1 << 17}
"""Tokens of prompts and answers that are read together; less where memory is short."""
WINDOW_BATCHES = 16
"""Batches whose prompts are sorted by length together."""


def describe_local(model: str, device: str) -> dict[str, object]:
    """What decides an answer besides a prompt: files of the checkpoint by one hash, and what computes.

    Reads the checkpoint's files and nothing else. Raises as read_causal.
    """
    checkpoint = read_causal(model)
    return {
        "shape": LOCAL,
        "revision": fingerprint(checkpoint),
        "architecture": checkpoint.architecture,
        "engine": declare_causal(checkpoint, device).label,
        "algorithm": algorithm("local chat"),
    }


@dataclass(eq=False)
class LocalChat:
    """A ChatClient of a causal model, which is loaded when it is first asked.

    model: a folder, or a name on the hub whose files are here; name: how its answers name it.
    """

    model: str
    name: str
    device: str
    _loaded: _LoadedChat | None = field(default=None, repr=False)

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is asked; JSON is not held to."""
        most = min(prompt.log_probabilities, chat_providers()[LOCAL].log_probabilities)
        asked: dict[str, object] = {"system": prompt.system, "user": prompt.user}
        return asked | {"temperature": prompt.temperature, "log_probabilities": most}

    def terms(self, concurrency: int) -> Terms:
        """One thread that is handed some batches of so many prompts."""
        return Terms(1, WINDOW_BATCHES * concurrency, together=concurrency)

    def asker(self, retried: Retried, terms: Terms) -> _LocalAsker:
        """What asks the model; it has one attempt, so that there is nothing to tell of others."""
        return _LocalAsker(self, terms.together)

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """What is computed here has no price."""
        return None

    def loaded(self) -> _LoadedChat:
        """The model in memory; raises StoreError and BadValue where its files cannot be used."""
        if self._loaded is None:
            self._loaded = _LoadedChat.of(read_causal(self.model), self.name, self.device)
        return self._loaded


@dataclass(frozen=True, eq=False)
class _LoadedChat:
    """A causal model in memory; drawn: temperature, top_k and top_p where none is named; version: its name in answers;
    budget: tokens of a batch."""

    engine: CausalModel
    form: ChatForm
    drawn: tuple[float, int, float]
    version: str
    budget: int

    @staticmethod
    def of(checkpoint: Checkpoint, name: str, device: str) -> _LoadedChat:
        """The model of a checkpoint."""
        form, end = chat_form(checkpoint)
        engine = load_causal(checkpoint, declare_causal(checkpoint, device).place, end)
        facts = read_object(checkpoint.folder / "generation_config.json")
        warmth = float(facts.get("temperature") or 1.0) if facts.get("do_sample") is True else 0.0
        drawn = (warmth, int(facts.get("top_k") or 0), float(facts.get("top_p") or 1.0))
        version = f"{name}@{fingerprint(checkpoint)[:12]}"
        return _LoadedChat(engine, form, drawn, version, BATCH_TOKENS[engine.place.kind])

    def order(self, request: Request, length: int) -> WritingOrder:
        """How a request is answered whose prompt has so many tokens; the draws are the request's own."""
        asked, bound = request.asked["body"], self.engine.positions
        most = int(request.asked["max_tokens"])
        most = min(most, bound - length) if bound else most
        warmth, top_k, top_p = asked["temperature"], 0, 1.0
        if warmth is None:
            warmth, top_k, top_p = self.drawn
        return WritingOrder(most, float(warmth), top_k, top_p, request.key, asked["log_probabilities"])

    def replies(self, jobs: list[tuple[Request, Int64]], stopped: Callable[[], bool]) -> list[ChatReply]:
        """The answers to requests with the tokens of their prompts, read side by side."""
        orders = [self.order(request, len(prompt)) for request, prompt in jobs]
        found = self.engine.continued([prompt for _, prompt in jobs], orders, stopped)
        each = zip(jobs, found, strict=True)
        return [self._reply(prompt, written) for (_, prompt), written in each]

    def _reply(self, prompt: Int64, written: Continuation) -> ChatReply:
        choices = self.form.choices(written.ids, written.others, written.odds)
        finish: Finish = "stop" if written.ended else "length"
        text, counts = self.form.text(written.ids), (len(prompt), len(written.ids))
        return ChatReply(text, finish, self.version, *counts, choices)


@dataclass(eq=False)
class _LocalAsker:
    """Asks the model in this process, batch by batch; rows: prompts of a batch at most."""

    client: LocalChat
    rows: int
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """An outcome for each request, the longest prompts first."""
        loaded = self.client.loaded()
        bodies = [request.asked["body"] for request in requests]
        prompts = [loaded.form.tokens(body["system"], body["user"]) for body in bodies]
        bound = loaded.engine.positions
        fits = [not bound or len(prompt) < bound for prompt in prompts]
        for request, prompt, fit in zip(requests, prompts, fits, strict=True):
            if not fit:
                said = f"the prompt has {len(prompt):,} tokens, and the model reads {bound:,} with its answer"
                reason = f"{said}; max_length cuts documents"
                yield Outcome(request, error=AttemptError("refused", reason, again=False))
        jobs = zip(requests, prompts, fits, strict=True)
        yield from self._answered(loaded, [(request, prompt) for request, prompt, fit in jobs if fit])

    def close(self) -> None:
        """Stop before the next token."""
        self.ended.set()

    def _answered(self, loaded: _LoadedChat, jobs: list[tuple[Request, Int64]]) -> Iterator[Outcome]:
        """The outcomes of requests with the tokens of their prompts."""
        lengths = np.array([len(prompt) + request.asked["max_tokens"] for request, prompt in jobs], np.int64)
        waiting = np.argsort(-lengths, kind="stable").tolist()
        while waiting:
            room = max(1, loaded.budget // int(lengths[waiting[0]]))
            places = waiting[: min(room, self.rows)]
            del waiting[: len(places)]
            own, start = [jobs[place] for place in places], perf_counter()
            try:
                replies = loaded.replies(own, self.ended.is_set)
            except Exception as error:
                if not out_of_memory(error):
                    raise
                if len(places) > 1:
                    self.rows = (len(places) + 1) // 2  # for those behind it, too
                    waiting[:0] = places
                    continue
                said = f"a prompt of {len(own[0][1]):,} tokens does not fit into memory; max_length cuts documents"
                yield Outcome(own[0][0], error=AttemptError("failed", said, again=False))
                continue
            seconds = perf_counter() - start
            for (request, _), reply in zip(own, replies, strict=True):
                yield Outcome(request, reply.kept(), seconds)
