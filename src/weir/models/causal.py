"""Causal language models through transformers, and how the next token is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weir.core.strings import Float64, Int64
from weir.errors import BadValue, StoreError, require
from weir.models.checkpoints import Checkpoint, locate, read_checkpoint
from weir.models.engine import Declared, declare, prepare
from weir.models.hardware import ComputePlace, declared_device
from weir.models.torch_engine import Tensor, to_device
from weir.models.transformers_engine import load_model

# ----------
# Drawing the next token.


@dataclass(frozen=True)
class WritingOrder:
    """How a text is continued.

    tokens: at most; temperature: 0 for the likeliest token each time; top_k, top_p: among which tokens one is drawn,
    the likeliest by their number and by the probability that they have together, 0 and 1 for all; seed: of the draws,
    two numbers of 64 bits; alternatives: the likeliest tokens to tell at each place.
    """

    tokens: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: tuple[int, int] = (0, 0)
    alternatives: int = 0


def drawn(scores: Tensor, orders: Sequence[WritingOrder], draws: Sequence[np.random.Generator]) -> Int64:
    """A token for each row of scores float32[n, V]; draws: a generator for each row, asked for one number where its
    temperature is above 0, so that what is drawn belongs to the row and not to those beside it."""
    torch = require("torch", extra="neural")
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
"""How classes of models are called that write text; AutoModelForCausalLM has the last word."""
KEPT_AS = {"bfloat16": "bf16", "float16": "fp16"}


class StoppedError(Exception):
    """Nobody waits for the texts any more."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """What a text was continued with.

    ids: int64[n], the last of them the token that ends a text where `ended`; others: int64[n, k], the likeliest tokens
    at each place and the one that was written, odds: float64[n, k], their log-probabilities before any temperature; k
    is 0 where no alternatives were asked for.
    """

    ids: Int64
    ended: bool
    others: Int64
    odds: Float64


@dataclass(frozen=True, eq=False)
class CausalModel:
    """A causal model in memory.

    ends: the tokens that end a text; positions: tokens of a text with its continuation at most, 0 for no bound; alone:
    whether it carries a state from token to token, to which padding would be text: it then reads one text at a time,
    from its first token.
    """

    module: Any
    place: ComputePlace
    ends: frozenset[int]
    positions: int
    alone: bool

    def continued(
        self, texts: Sequence[Int64], orders: Sequence[WritingOrder], stopped: Callable[[], bool]
    ) -> list[Continuation]:
        """Each text's continuation; texts: tokens, int64[n] with n from 1.

        stopped: asked before each token. Raises StoppedError once it says so, and what torch raises where memory is
        short.
        """
        if self.alone and len(texts) > 1:
            each = zip(texts, orders, strict=True)
            return [self.continued([text], [order], stopped)[0] for text, order in each]
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            return _Batch(self, _Reading.of(self, texts), list(orders)).written(stopped)


@dataclass(eq=False)
class _Reading:
    """What a model has read: ids, mask: int64[n, longest], padded on the left; kept: its keys and values."""

    model: CausalModel
    ids: Tensor
    mask: Tensor
    kept: Any = None

    @staticmethod
    def of(model: CausalModel, texts: Sequence[Int64]) -> _Reading:
        """Nothing read yet."""
        torch = require("torch", extra="neural")
        longest = max(len(text) for text in texts)
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, longest - len(text) :] = text
            mask[row, longest - len(text) :] = 1
        device = torch.device(model.place.device)
        return _Reading(model, to_device(torch, ids, device), to_device(torch, mask, device))

    def scores(self) -> Tensor:
        """Read what was not read yet: the scores of all tokens to follow, float32[n, V]."""
        fresh = self.ids.shape[1] if self.kept is None else 1
        inputs: dict[str, Any] = {"input_ids": self.ids[:, -fresh:], "use_cache": not self.model.alone}
        inputs["attention_mask"] = self.mask
        takes = inspect.signature(self.model.module.forward).parameters
        if "position_ids" in takes:
            inputs["position_ids"] = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -fresh:]
        if "logits_to_keep" in takes:
            inputs["logits_to_keep"] = 1
        if self.kept is not None:
            inputs["past_key_values"] = self.kept
        output = self.model.module(**inputs)
        self.kept = None if self.model.alone else output.past_key_values
        return output.logits[:, -1].float()

    def add(self, tokens: Int64) -> None:
        """Put a token behind each text."""
        torch = require("torch", extra="neural")
        column = to_device(torch, np.ascontiguousarray(tokens[:, None]), self.ids.device)
        self.ids = torch.cat([self.ids, column], 1)
        self.mask = torch.cat([self.mask, torch.ones_like(column)], 1)

    def keep(self, rows: Int64) -> None:
        """Forget all but these texts."""
        torch = require("torch", extra="neural")
        chosen = torch.from_numpy(rows).to(self.ids.device)
        self.ids, self.mask = self.ids[chosen], self.mask[chosen]
        if self.kept is not None:
            self.kept.batch_select_indices(chosen)


@dataclass(frozen=True, eq=False)
class _Step:
    """What was written at one place: alive, ids: int64[m], of which texts, which tokens; others, odds: [m, k]."""

    alive: Int64
    ids: Int64
    others: Int64
    odds: Float64


@dataclass(eq=False)
class _Batch:
    """Texts that are being continued."""

    model: CausalModel
    reading: _Reading
    orders: list[WritingOrder]
    steps: list[_Step] = field(default_factory=list)

    def written(self, stopped: Callable[[], bool]) -> list[Continuation]:
        """All of them, to the end."""
        most = np.array([order.tokens for order in self.orders])
        draws = [np.random.Generator(np.random.Philox(key=np.array(o.seed, np.uint64))) for o in self.orders]
        alive = np.arange(len(self.orders))
        while len(alive):
            if stopped():
                raise StoppedError
            scores = self.reading.scores()
            ids = drawn(scores, [self.orders[i] for i in alive], [draws[i] for i in alive])
            self.steps.append(_Step(alive, ids, *self._alternatives(scores, ids)))
            going = (len(self.steps) < most[alive]) & ~np.isin(ids, list(self.model.ends))
            alive = alive[going]
            if len(alive):
                self.reading.add(ids)
            if 0 < len(alive) < len(going):
                self.reading.keep(np.flatnonzero(going))
        return [self._continuation(row) for row in range(len(self.orders))]

    def _alternatives(self, scores: Tensor, ids: Int64) -> tuple[Int64, Float64]:
        """(tokens, their log-probabilities) of a place: the likeliest, and behind them the one that was written."""
        torch = require("torch", extra="neural")
        count = min(max(order.alternatives for order in self.orders), scores.shape[-1])
        if not count:
            return np.empty((len(ids), 0), np.int64), np.empty((len(ids), 0))
        odds = scores.log_softmax(-1)
        best = odds.topk(count)
        own = torch.from_numpy(ids[:, None]).to(odds.device)
        others = torch.cat([best.indices, own], 1)
        return others.cpu().numpy(), torch.gather(odds, 1, others).double().cpu().numpy()

    def _continuation(self, row: int) -> Continuation:
        """What was written of one text."""
        places = [(step, int(np.searchsorted(step.alive, row))) for step in self.steps]
        own = [(step, at) for step, at in places if at < len(step.alive) and step.alive[at] == row]
        ids = np.array([step.ids[at] for step, at in own], np.int64)
        ended = int(ids[-1]) in self.model.ends
        others = np.stack([step.others[at] for step, at in own])
        odds = np.stack([step.odds[at] for step, at in own])
        most = self.orders[row].alternatives
        columns = [*range(min(most, others.shape[1] - 1)), others.shape[1] - 1] if most else []
        return Continuation(ids, ended, others[:, columns], odds[:, columns])


def read_causal(model: str) -> Checkpoint:
    """The files of a model that writes text.

    Raises BadValue for a checkpoint of another kind, StoreError for one without weights as safetensors, DownloadError
    for one that is not here.
    """
    checkpoint = read_checkpoint(locate(model))
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
    """The engine on a device: transformers, in fp32 on a processor, on a GPU in what the weights are kept in."""
    stored_dtype = str(checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype"))
    on_processor = declared_device(device).startswith("cpu")
    return declare(
        checkpoint, "auto", "fp32" if on_processor else KEPT_AS.get(stored_dtype, "fp32"), device, own=False
    )


def load_causal(checkpoint: Checkpoint, place: ComputePlace, end: int | None = None) -> CausalModel:
    """A causal model in memory; end: a token that ends a text, besides those that its settings name.

    Raises StoreError where its files cannot be read or lack weights.
    """
    torch = require("torch", extra="neural")
    prepare(place.device)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[place.dtype]
    module = load_model(checkpoint, kind, "AutoModelForCausalLM", safe=True).to(torch.device(place.device))
    ends = module.generation_config.eos_token_id
    end_tokens = frozenset(
        int(end) for end in [*np.ravel([] if ends is None else ends), *([] if end is None else [end])]
    )
    alone = bool(getattr(module, "_is_stateful", False))  # transformers' own mark of such models
    return CausalModel(module, place, end_tokens, checkpoint.positions, alone)
