"""Causal language models as chat models in this process, by transformers."""

from __future__ import annotations

import inspect
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
from weir.errors import BadValue, StoreError, require
from weir.models.batching import out_of_memory
from weir.models.checkpoints import Checkpoint, checkpoint_fingerprint, open_checkpoint, read_object
from weir.models.engine import Declared, declare, prepare
from weir.models.hardware import ComputePlace, declared_device
from weir.models.tokens import declared_tokenizer, load_tokenizer
from weir.plugins.encoders.torch_engine import Tensor, to_device
from weir.plugins.encoders.transformers_engine import load_model
from weir.plugins.llm.prompts import ChatPrompt
from weir.plugins.llm.verdicts import ChatReply, Finish, TokenChoice
from weir.services.answers import Outcome, Request, RequestPolicy, Retried
from weir.services.requests import AttemptError

# ----------
# Drawing the next token.


@dataclass(frozen=True)
class WritingOrder:
    """Settings for continuing a text."""

    tokens: int
    """Most new tokens."""
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    top_k: int = 0
    """Draw among the k likeliest tokens; 0 for all."""
    top_p: float = 1.0
    """Draw among the likeliest tokens of this total probability; 1 for all."""
    seed: tuple[int, int] = (0, 0)
    """Two 64-bit numbers."""
    alternatives: int = 0
    """Number of likeliest tokens to report at each position."""


def drawn(scores: Tensor, orders: Sequence[WritingOrder], draws: Sequence[np.random.Generator]) -> Int64:
    """Return the next token of each row, int64[rows], from logits float32[rows, vocabulary].

    The likeliest at temperature 0, else sampled within `top_k` and `top_p` by the row's generator in `draws`.
    """
    torch = require("torch", extra="torch")
    tokens: Int64 = scores.argmax(-1).cpu().numpy()
    for row, (order, draw) in enumerate(zip(orders, draws, strict=True)):
        if order.temperature == 0:
            continue
        # The token at which the probabilities, the likeliest first, add up to more than a draw from [0, 1).
        ordered = torch.sort(scores[row].double() / order.temperature, descending=True, stable=True)
        odds = ordered.values.softmax(-1)
        if order.top_k:
            odds = odds[: order.top_k]
        before = odds.cumsum(-1) / odds.sum() - odds / odds.sum()
        odds = odds[before < order.top_p]  # the one that passes it is among them
        ends = odds.cumsum(-1)
        at = int(torch.searchsorted(ends, draw.random() * ends[-1], right=True))
        tokens[row] = int(ordered.indices[min(at, len(odds) - 1)])
    return tokens


# ----------
# Causal language models through transformers, which continue many texts side by side.
#
# A batch is padded on the left and every text keeps its own positions, so that what is beside a text moves its scores
# by rounding alone. Texts that have ended leave the batch.


WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""Endings of class names of models that write text."""
KEPT_AS = {"bfloat16": "bf16", "float16": "fp16"}


class _StoppedError(Exception):
    """Raised once nobody waits for the text."""


@dataclass(frozen=True, eq=False)
class _Continuation:
    """The tokens that a model wrote after a text, with alternatives."""

    ids: Int64
    """int64[tokens]; the last one ends the text if `ended`."""
    ended: bool
    others: Int64
    """int64[tokens, k]: the likeliest tokens at each position, then the chosen one; k is 0 without alternatives."""
    odds: Float64
    """float64[tokens, k]: log-probabilities of `others` before any temperature."""


@dataclass(frozen=True, eq=False)
class CausalModel:
    """A causal language model on a device."""

    module: Any
    place: ComputePlace
    ends: frozenset[int]
    """Tokens that end a text."""
    positions: int
    """Most tokens of a text with its continuation; 0 for no limit."""
    one_at_a_time: bool
    """True if padding would change the model's state, so that texts are read singly."""

    def continued(
        self, texts: Sequence[Int64], orders: Sequence[WritingOrder], stopped: Callable[[], bool]
    ) -> list[_Continuation]:
        """Return the continuation of each text, which has one token or more, int64[tokens].

        Raises _StoppedError once `stopped`, called before each token, returns True; torch's error if memory is short.
        """
        if self.one_at_a_time and len(texts) > 1:
            each = zip(texts, orders, strict=True)
            return [self.continued([text], [order], stopped)[0] for text, order in each]
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            return _continued(_Reading.of(self, texts), orders, stopped)


@dataclass(eq=False)
class _Reading:
    model: CausalModel
    ids: Tensor
    mask: Tensor
    cache: Any = None

    @staticmethod
    def of(model: CausalModel, texts: Sequence[Int64]) -> _Reading:
        torch = require("torch", extra="torch")
        longest = max(len(text) for text in texts)
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, longest - len(text) :] = text
            mask[row, longest - len(text) :] = 1
        device = torch.device(model.place.device)
        return _Reading(model, to_device(torch, ids, device), to_device(torch, mask, device))

    def scores(self) -> Tensor:
        fresh = self.ids.shape[1] if self.cache is None else 1
        inputs: dict[str, Any] = {
            "input_ids": self.ids[:, -fresh:],
            "use_cache": not self.model.one_at_a_time,
        }
        inputs["attention_mask"] = self.mask
        takes = inspect.signature(self.model.module.forward).parameters
        if "position_ids" in takes:
            inputs["position_ids"] = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -fresh:]
        if "logits_to_keep" in takes:
            inputs["logits_to_keep"] = 1
        if self.cache is not None:
            inputs["past_key_values"] = self.cache
        output = self.model.module(**inputs)
        self.cache = None if self.model.one_at_a_time else output.past_key_values
        return output.logits[:, -1].float()

    def add(self, tokens: Int64) -> None:
        torch = require("torch", extra="torch")
        column = to_device(torch, np.ascontiguousarray(tokens[:, None]), self.ids.device)
        self.ids = torch.cat([self.ids, column], 1)
        self.mask = torch.cat([self.mask, torch.ones_like(column)], 1)

    def keep_rows(self, rows: Int64) -> None:
        torch = require("torch", extra="torch")
        chosen = torch.from_numpy(rows).to(self.ids.device)
        self.ids, self.mask = self.ids[chosen], self.mask[chosen]
        if self.cache is not None:
            self.cache.batch_select_indices(chosen)


def _continued(
    reading: _Reading, orders: Sequence[WritingOrder], stopped: Callable[[], bool]
) -> list[_Continuation]:
    most, ends = np.array([order.tokens for order in orders]), list(reading.model.ends)
    draws = [np.random.Generator(np.random.Philox(key=np.array(o.seed, np.uint64))) for o in orders]
    alternatives = max(order.alternatives for order in orders)
    alive, length = np.arange(len(orders)), 0
    written: list[list[tuple[int, Int64, Float64]]] = [[] for _ in orders]  # the token, others and their odds
    while len(alive):
        if stopped():
            raise _StoppedError
        scores = reading.scores()
        ids = drawn(scores, [orders[int(i)] for i in alive], [draws[i] for i in alive])
        for text, *place in zip(alive, ids.tolist(), *_alternatives(scores, ids, alternatives), strict=True):
            written[text].append(tuple(place))
        length += 1
        going = (length < most[alive]) & ~np.isin(ids, ends)
        alive = alive[going]
        if len(alive):
            reading.add(ids)
        if 0 < len(alive) < len(going):
            reading.keep_rows(np.flatnonzero(going))
    found = []
    for order, places in zip(orders, written, strict=True):
        tokens, others, odds = (np.array(column) for column in zip(*places, strict=True))
        last = others.shape[1] - 1
        columns = [*range(min(order.alternatives, last)), last] if order.alternatives else []
        found.append(_Continuation(tokens, int(tokens[-1]) in ends, others[:, columns], odds[:, columns]))
    return found


def _alternatives(scores: Tensor, ids: Int64, most: int) -> tuple[Int64, Float64]:
    """Return (token numbers, log-probabilities), [texts, most + 1] each: the `most` likeliest tokens, then the chosen
    one; [texts, 0] if `most` is 0."""
    torch = require("torch", extra="torch")
    count = min(most, scores.shape[-1])
    if not count:
        return np.empty((len(ids), 0), np.int64), np.empty((len(ids), 0))
    odds = scores.log_softmax(-1)
    best = odds.topk(count)
    own = torch.from_numpy(ids[:, None]).to(odds.device)
    others = torch.cat([best.indices, own], 1)
    return others.cpu().numpy(), torch.gather(odds, 1, others).double().cpu().numpy()


def read_causal(model: str) -> Checkpoint:
    """Return the opened checkpoint of a causal language model.

    Raises BadValue for another kind, StoreError without *.safetensors, DownloadError if it is not on this machine.
    """
    checkpoint = open_checkpoint(model)
    architecture = str((checkpoint.config.get("architectures") or [""])[0])
    if not architecture.endswith(WRITERS):
        kind = architecture or checkpoint.architecture or "model of an unknown kind"
        raise BadValue(f"'{model}' is a {kind}; expected a causal language model, such as LlamaForCausalLM")
    if not any(checkpoint.folder.glob("*.safetensors")):
        raise StoreError(
            f"{checkpoint.folder}: no weights as *.safetensors; weights in other formats are not read, since a pickle "
            "may run code"
        )
    return checkpoint


def declare_causal(checkpoint: Checkpoint, device: str) -> Declared:
    """Return the engine for a causal model, without loading it: transformers, in fp32 on a CPU, else in the weights'
    dtype."""
    stored_dtype = str(checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype"))
    on_processor = declared_device(device).startswith("cpu")
    return declare(
        checkpoint, "auto", "fp32" if on_processor else KEPT_AS.get(stored_dtype, "fp32"), device, own=False
    )


def load_causal(checkpoint: Checkpoint, place: ComputePlace, end: int | None = None) -> CausalModel:
    """Load a causal model on a device.

    end: a token that ends a text, besides the model's own.
    """
    torch = require("torch", extra="torch")
    prepare(place.device)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[place.dtype]
    module = load_model(checkpoint, kind, "AutoModelForCausalLM", safe=True).to(torch.device(place.device))
    ends = module.generation_config.eos_token_id
    end_tokens = frozenset(
        int(end) for end in [*np.ravel([] if ends is None else ends), *([] if end is None else [end])]
    )
    one_at_a_time = bool(getattr(module, "_is_stateful", False))  # transformers' own mark of such models
    return CausalModel(module, place, end_tokens, checkpoint.positions, one_at_a_time)


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
"""The day in templates, so that prompts have the same tokens every day."""
CONTEXT_TOKENS = 8
"""Preceding tokens on which a token's text may depend."""
UNFINISHED = "\ufffd"
"""Decoding's character for bytes that the next token completes."""


@dataclass(frozen=True, eq=False)
class ChatForm:
    """Turns prompts into tokens by the model's chat template, and tokens into text."""

    inner: Any
    template: Callable[[list[dict[str, str]]], str] | None
    """None for system text, user text and "Answer:", separated by empty lines."""
    folded: bool = False
    """True if the template takes no system text, so that it precedes the user's."""
    controls: tuple[str, ...] = field(default=(), repr=False)
    """Tokens of turns and roles; a blank breaks them in prompts."""

    def tokens(self, system: str, user: str) -> Int64:
        """Return the ids of a prompt's tokens, int64[n]."""
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
        """Return the text of tokens, int64[n], without special tokens."""
        return str(self.inner.decode(ids.tolist(), skip_special_tokens=True))

    def choices(self, ids: Int64, others: Int64, odds: Float64) -> tuple[TokenChoice, ...]:
        """Return (text, {text of an alternative: log-odds}) of each token; () if no alternatives are given.

        ids: int64[n], the tokens.
        others, odds: int64[n, k] and float64[n, k], their alternatives with log-odds.

        Odds of alternatives with equal texts are added. The end of a text and a part of a character are "".
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
    """Return (how a checkpoint turns chats into tokens, its end-of-text token or None).

    Raises StoreError for an unreadable tokenizer or template.
    """
    folder = checkpoint.folder
    inner = load_tokenizer(folder, checkpoint.limit).inner
    inner.no_truncation()
    declared = declared_tokenizer(folder)  # its template runs in the sandbox that jinja2 has
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
    require("jinja2", extra="torch")
    return ChatForm(inner, render, _folds(render, str(folder)), controls), declared.eos_token_id


def _folds(render: Callable[[list[dict[str, str]]], str], folder: str) -> bool:
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


LOCAL = "transformers"
"""The provider of models in this process."""
BATCH_TOKENS = {"cpu": 1 << 14, "cuda": 1 << 17}
"""Tokens of prompts and answers in a batch; fewer if memory is short."""
WINDOW_BATCHES = 16
"""Batches whose prompts are sorted by length together."""


def describe_local(model: str, device: str) -> dict[str, object]:
    """Return the settings that decide an answer, apart from the prompt: a hash of the checkpoint's files, and the
    engine."""
    checkpoint = read_causal(model)
    return {
        "shape": LOCAL,
        "revision": checkpoint_fingerprint(checkpoint),
        "architecture": checkpoint.architecture,
        "engine": declare_causal(checkpoint, device).label,
        "algorithm": algorithm("local chat"),
    }


@dataclass(eq=False)
class LocalChat:
    """A chat model in this process, loaded at its first prompt."""

    model: str
    """A folder, or a downloaded name on the Hugging Face hub."""
    name: str
    """The name in its answers."""
    device: str
    log_probabilities: int
    """Most alternatives of a token."""
    _loaded: _LoadedChat | None = field(default=None, repr=False)

    def request_body(self, prompt: ChatPrompt) -> dict[str, object]:
        """Return the request of a prompt; JSON output is not enforced."""
        most = min(prompt.log_probabilities, self.log_probabilities)
        request: dict[str, object] = {"system": prompt.system, "user": prompt.user}
        return request | {"temperature": prompt.temperature, "log_probabilities": most}

    def policy(self, concurrency: int) -> RequestPolicy:
        """Return the requests' policy: one thread that takes 16 batches of `concurrency` prompts together."""
        return RequestPolicy(1, WINDOW_BATCHES * concurrency, together=concurrency)

    def worker(self, retried: Retried, policy: RequestPolicy) -> _LocalWorker:
        """Return the only worker, which retries nothing."""
        return _LocalWorker(self, policy.together)

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """Return None: local answers have no price."""
        return None

    def loaded_chat(self) -> _LoadedChat:
        """Return the model, loaded at the first call; raises BadValue for unusable files."""
        if self._loaded is None:
            self._loaded = _LoadedChat.of(read_causal(self.model), self.name, self.device)
        return self._loaded


@dataclass(frozen=True, eq=False)
class _LoadedChat:
    engine: CausalModel
    form: ChatForm
    drawn: tuple[float, int, float]
    """Default temperature, top_k and top_p."""
    version: str
    """The name in its answers."""
    budget: int
    """Tokens of a batch."""

    @staticmethod
    def of(checkpoint: Checkpoint, name: str, device: str) -> _LoadedChat:
        form, end = chat_form(checkpoint)
        engine = load_causal(checkpoint, declare_causal(checkpoint, device).place, end)
        facts = read_object(checkpoint.folder / "generation_config.json")
        warmth = float(facts.get("temperature") or 1.0) if facts.get("do_sample") is True else 0.0
        drawn = (warmth, int(facts.get("top_k") or 0), float(facts.get("top_p") or 1.0))
        version = f"{name}@{checkpoint_fingerprint(checkpoint)[:12]}"
        return _LoadedChat(engine, form, drawn, version, BATCH_TOKENS[engine.place.kind])

    def order(self, request: Request, length: int) -> WritingOrder:
        body, bound = request.body["body"], self.engine.positions
        most = int(request.body["max_tokens"])
        most = min(most, bound - length) if bound else most
        warmth, top_k, top_p = body["temperature"], 0, 1.0
        if warmth is None:
            warmth, top_k, top_p = self.drawn
        return WritingOrder(most, float(warmth), top_k, top_p, request.key, body["log_probabilities"])

    def written_replies(
        self, jobs: list[tuple[Request, Int64]], stopped: Callable[[], bool]
    ) -> list[ChatReply]:
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
    client: LocalChat
    rows: int
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        loaded = self.client.loaded_chat()
        bound = loaded.engine.positions
        jobs: list[tuple[Request, Int64]] = []
        for request in requests:
            body = request.body["body"]
            prompt = loaded.form.tokens(body["system"], body["user"])
            if not bound or len(prompt) < bound:
                jobs.append((request, prompt))
                continue
            reason = f"the prompt has {len(prompt):,} tokens, and the model reads {bound:,} with its answer"
            reason += "; max_length cuts documents"
            yield Outcome(request, error=AttemptError("refused", reason, again=False))
        lengths = np.array([len(prompt) + request.body["max_tokens"] for request, prompt in jobs], np.int64)
        waiting = np.argsort(-lengths, kind="stable").tolist()
        while waiting:
            room = max(1, loaded.budget // int(lengths[waiting[0]]))
            places = waiting[: min(room, self.rows)]
            del waiting[: len(places)]
            own, start = [jobs[place] for place in places], perf_counter()
            try:
                replies = loaded.written_replies(own, self.ended.is_set)
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
                yield Outcome(request, reply.to_json(), seconds)

    def close(self) -> None:
        self.ended.set()
