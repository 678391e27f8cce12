"""Chat models in this process."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Float64, Int64
from weir.errors import StoreError, require
from weir.models.batching import out_of_memory
from weir.models.causal import (
    CausalModel,
    WritingOrder,
    declare_causal,
    load_causal,
    read_causal,
)
from weir.models.chat_shapes import LOCAL, ChatPrompt, ChatReply, Finish, TokenChoice, chat_providers
from weir.models.checkpoints import Checkpoint, fingerprint, read_object
from weir.models.tokens import load_tokenizer, quiet
from weir.services.answers import Outcome, Request, RequestPolicy, Retried
from weir.services.requests import AttemptError

# ----------
# Prompts to tokens, by the model's chat template or in a plain form, and tokens to text.


PLAIN_CUE = "Answer:"
TEMPLATE_DAY = {
    "%Y": "2026",
    "%y": "26",
    "%m": "01",
    "%d": "01",
    "%B": "January",
    "%b": "Jan",
    "%A": "Thursday",
}
"""Today, to templates that print the day: the same prompt is the same tokens on any day."""
CONTEXT_TOKENS = 8
"""Tokens before one that its text may depend on."""
UNFINISHED = "\ufffd"
"""What stands for bytes that the next token completes."""


@dataclass(frozen=True, eq=False)
class ChatForm:
    """How prompts become tokens.

    template: a chat template, messages to text, or None for the plain form: system text, an empty line, user text, an
    empty line, "Answer:"; folded: whether the template has no place for a system text, which then stands before the
    user's; controls: the tokens by which the model tells turns and roles apart: where a prompt has their text they are
    taken apart by a blank, so that no passage ends its turn.
    """

    inner: Any
    template: Callable[[list[dict[str, str]]], str] | None
    folded: bool = False
    controls: tuple[str, ...] = field(default=(), repr=False)

    def tokens(self, system: str, user: str) -> Int64:
        """The tokens of a prompt, int64[n]."""
        system, user = self._apart(system), self._apart(user)
        together = f"{system}\n\n{user}" if system else user
        if self.template is None:
            ids = self.inner.encode(f"{together}\n\n{PLAIN_CUE}").ids
        else:
            messages = [{"role": "user", "content": together if self.folded else user}]
            if system and not self.folded:
                messages.insert(0, {"role": "system", "content": system})
            ids = self.inner.encode(self.template(messages), add_special_tokens=False).ids
        return np.array(ids, np.int64)

    def text(self, ids: Int64) -> str:
        """What tokens say, those that end a text left out."""
        return str(self.inner.decode(ids.tolist(), skip_special_tokens=True))

    def choices(self, ids: Int64, others: Int64, odds: Float64) -> tuple[TokenChoice, ...]:
        """Each token as text with its alternatives, those of equal text as one; the token that ends a text is "".

        ids, others, odds: as in Continuation; () where that has no alternatives.
        """
        choices = []
        for place in range(len(ids) if others.shape[1] else 0):
            before = ids[max(0, place - CONTEXT_TOKENS) : place].tolist()
            tokens = others[place].tolist()
            rows = [[*before, token] for token in [int(ids[place]), *tokens]]
            decoded = self.inner.decode_batch([before, *rows], skip_special_tokens=True)
            start, *texts = [text.rstrip(UNFINISHED) for text in decoded]
            own, *pieces = [text[len(start) :] for text in texts]
            by_token = dict(zip(tokens, zip(pieces, odds[place].tolist(), strict=True), strict=True))
            by_text: dict[str, float] = {}  # tokens of equal text have their odds together
            for piece, value in by_token.values():
                log_odds = by_text.get(piece, -math.inf)
                high, low = max(log_odds, value), min(log_odds, value)
                by_text[piece] = high if math.isinf(low) else high + math.log1p(math.exp(low - high))
            choices.append((own, by_text))
        return tuple(choices)

    def _apart(self, text: str) -> str:
        for control in self.controls:
            if control in text:
                text = text.replace(control, f"{control[0]} {control[1:]}")
        return text


def chat_form(checkpoint: Checkpoint) -> tuple[ChatForm, int | None]:
    """(the form that a checkpoint's files declare, the token that ends a text as its tokenizer says).

    Raises StoreError for a tokenizer or a template that cannot be read.
    """
    transformers = require("transformers", extra="neural")
    folder = checkpoint.folder
    inner = load_tokenizer(folder, checkpoint.limit).inner
    inner.no_truncation()
    try:
        with quiet(transformers):
            # Code that a checkpoint brings is never run; a template runs in the sandbox that jinja2 has.
            declared = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
    except Exception as error:  # noqa: BLE001 - the library raises errors of many families for a damaged file
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{folder}: the tokenizer cannot be read: {reason}") from None
    # The tokens that are no text, the longest first.
    added = inner.get_added_tokens_decoder().values()
    marks = {t.content for t in added if t.special or (t.content[:1] == "<" and t.content[-1:] == ">")}
    controls = tuple(sorted((mark for mark in marks if len(mark) > 1), key=lambda mark: (-len(mark), mark)))
    template = declared.chat_template
    template = template.get("default") if isinstance(template, dict) else template
    if not template:
        return ChatForm(inner, None, controls=controls), declared.eos_token_id
    if "strftime_now" in template:  # today is TEMPLATE_DAY: a macro hides transformers' function of that name
        steps = "".join(f"|replace('{code}', '{text}')" for code, text in TEMPLATE_DAY.items())
        template = f"{{% macro strftime_now(form) %}}{{{{ form{steps} }}}}{{% endmacro %}}{template}"
    render = partial(
        declared.apply_chat_template,
        chat_template=template,
        tokenize=False,
        add_generation_prompt=True,
        sanitize_control_tokens=False,  # done by ChatForm, the same under any version of transformers
    )
    require("jinja2", extra="neural")
    return ChatForm(inner, render, _folds(render, str(folder)), controls), declared.eos_token_id


def _folds(render: Callable[[list[dict[str, str]]], str], folder: str) -> bool:
    """Whether a template has no place for a system text; raises StoreError for one that renders nothing at all."""
    user = {"role": "user", "content": "weir-user"}
    try:
        text = render([{"role": "system", "content": "weir-system"}, user])
        if "weir-system" in text and "weir-user" in text:
            return False
    except Exception:  # noqa: BLE001 - templates raise what they like, such as "no system role"
        text = ""
    try:
        text = render([user])
    except Exception as error:  # noqa: BLE001 - templates raise what they like, such as "no system role"
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{folder}: the chat template cannot be rendered: {reason}") from None
    if "weir-user" not in text:
        raise StoreError(f"{folder}: the chat template leaves out what the user says")
    return True


# ----------
# A chat model in this process: prompts of similar length side by side.


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
    """A chat model in this process, which is loaded when it is first asked.

    model: a folder, or a name on the hub whose files are here; name: how its answers name it.
    """

    model: str
    name: str
    device: str
    _loaded: _LoadedChat | None = field(default=None, repr=False)

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is asked; JSON is not held to."""
        most = min(prompt.log_probabilities, chat_providers()[LOCAL].log_probabilities)
        request: dict[str, object] = {"system": prompt.system, "user": prompt.user}
        return request | {"temperature": prompt.temperature, "log_probabilities": most}

    def policy(self, concurrency: int) -> RequestPolicy:
        """One thread that is handed some batches of so many prompts."""
        return RequestPolicy(1, WINDOW_BATCHES * concurrency, together=concurrency)

    def worker(self, retried: Retried, policy: RequestPolicy) -> _LocalWorker:
        """One thread; each request has one attempt, so that nothing is retried."""
        return _LocalWorker(self, policy.together)

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
        body, bound = request.asked["body"], self.engine.positions
        most = int(request.asked["max_tokens"])
        most = min(most, bound - length) if bound else most
        warmth, top_k, top_p = body["temperature"], 0, 1.0
        if warmth is None:
            warmth, top_k, top_p = self.drawn
        return WritingOrder(most, float(warmth), top_k, top_p, request.key, body["log_probabilities"])

    def replies(self, jobs: list[tuple[Request, Int64]], stopped: Callable[[], bool]) -> list[ChatReply]:
        """The answers to requests with the tokens of their prompts, read side by side."""
        orders = [self.order(request, len(prompt)) for request, prompt in jobs]
        written = self.engine.continued([prompt for _, prompt in jobs], orders, stopped)
        replies = []
        for (_, prompt), one in zip(jobs, written, strict=True):
            choices = self.form.choices(one.ids, one.others, one.odds)
            finish: Finish = "stop" if one.ended else "length"
            counts = (len(prompt), len(one.ids))
            replies.append(ChatReply(self.form.text(one.ids), finish, self.version, *counts, choices))
        return replies


@dataclass(eq=False)
class _LocalWorker:
    """Asks the model in this process, batch by batch; rows: prompts of a batch at most."""

    client: LocalChat
    rows: int
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """An outcome for each request, the longest prompts first."""
        loaded = self.client.loaded()
        bound = loaded.engine.positions
        jobs: list[tuple[Request, Int64]] = []
        for request in requests:
            body = request.asked["body"]
            prompt = loaded.form.tokens(body["system"], body["user"])
            if not bound or len(prompt) < bound:
                jobs.append((request, prompt))
                continue
            reason = f"the prompt has {len(prompt):,} tokens, and the model reads {bound:,} with its answer"
            reason += "; max_length cuts documents"
            yield Outcome(request, error=AttemptError("refused", reason, again=False))
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
                reason = f"a prompt of {len(own[0][1]):,} tokens does not fit into memory; max_length cuts documents"
                yield Outcome(own[0][0], error=AttemptError("failed", reason, again=False))
                continue
            seconds = perf_counter() - start
            for (request, _), reply in zip(own, replies, strict=True):
                yield Outcome(request, reply.kept(), seconds)

    def close(self) -> None:
        """Stop before the next token."""
        self.ended.set()
