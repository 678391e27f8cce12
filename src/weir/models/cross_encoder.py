"""Cross-encoders: a query and a document read together, one score for the pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Int64
from weir.errors import BadValue, StoreError, require
from weir.models.batching import BatchPlan, results
from weir.models.checkpoints import (
    Checkpoint,
    check_least,
    check_model,
    fetch,
    fingerprint,
    known,
    locate,
    model_arguments,
    read_checkpoint,
)
from weir.models.encoder import BATCH_TOKENS, Float32
from weir.models.engine import Declared, Engine, build, check_engine, declare, prepare
from weir.models.hardware import ComputePlace
from weir.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer
from weir.models.torch_engine import Tensor, linear, read_state, supported, to_device
from weir.models.transformers_engine import Padded, inputs, refuse_own_code, transformers_engine

HEADS = {
    "bert": ("bert.pooler.dense", "tanh", "classifier"),
    "roberta": ("classifier.dense", "tanh", "classifier.out_proj"),
    "xlm-roberta": ("classifier.dense", "tanh", "classifier.out_proj"),
    "camembert": ("classifier.dense", "tanh", "classifier.out_proj"),
    "electra": ("classifier.dense", "gelu", "classifier.out_proj"),
    "distilbert": ("pre_classifier", "relu", "classifier"),
}
"""What stands behind the first token's state: a layer, its activation, and the layer that gives the score."""


@dataclass(frozen=True)
class CrossEncoder:
    """How pairs of texts become scores: a checkpoint for sequence classification, and how to compute.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder; max_length: tokens of a pair at
    most, of which the longer text loses first, None leaves it to the checkpoint; dtype: fp32, bf16, fp16 or int8;
    engine: auto takes one by a fixed rule, see weir.models.engine, or torch, openvino, transformers;
    batch_tokens: 0
    takes what suits the device. A score is the model's own number before any activation, so that no two become equal
    by rounding; of a model with two classes it is the second's less the first's. Raises BadValue for settings out of
    range.
    """

    model: str = "minilm-cross"
    max_length: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        check_model(self.model, "cross", "which does not score pairs of texts")
        check_engine(self.engine, self.dtype)
        check_least({"max_length": (self.max_length, 5)})
        check_least({"batch_tokens": (self.batch_tokens, 0)}, optional=False)

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a re-ranker that takes these settings prints them."""
        return model_arguments(self, self.model)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides a score, and under "engine" what computes it on a device, None where that is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        checkpoint = self.checkpoint()
        return {
            "encoding": algorithm("encoding"),
            "revision": fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "max_length": self._limit(checkpoint),
            "score": "the model's output before any activation",
            "dtype": self.dtype,
            "engine": self._declared(checkpoint, device).label,
        }

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        fetch(self.model)

    def checkpoint(self) -> Checkpoint:
        """The checkpoint's files; raises BadValue for one that does not score pairs."""
        checkpoint = read_checkpoint(locate(self.model))
        named = checkpoint.config.get("architectures") or [""]
        if not str(named[0]).endswith("ForSequenceClassification"):
            raise BadValue(f"'{self.model}' is a {named[0] or 'model'}, which does not score pairs of texts")
        return checkpoint

    def load(self, device: str = "auto") -> LoadedCross:
        """The model in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of a kind
        that Weir cannot use.
        """
        self.fetch()
        checkpoint = self.checkpoint()
        declared = self._declared(checkpoint, device)
        place = declared.place
        prepare(place.device)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        tokenizer = load_tokenizer(checkpoint.folder, self._limit(checkpoint))
        outputs, engine = _outputs(checkpoint, declared)
        return LoadedCross(self, place, engine, tokenizer, outputs, budget)

    def _declared(self, checkpoint: Checkpoint, device: str) -> Declared:
        own = supported(checkpoint) and checkpoint.architecture in HEADS
        return declare(checkpoint, self.engine, self.dtype, device, own)

    def _limit(self, checkpoint: Checkpoint) -> int:
        bound, card = checkpoint.positions, known(self.model)
        if self.max_length is not None and bound and self.max_length > bound:
            raise BadValue(f"'{self.model}' reads {bound} tokens at most, not {self.max_length}")
        stated = checkpoint.limit if card is None else min(card.max_document, bound or card.max_document)
        return self.max_length or stated


@dataclass(frozen=True, eq=False)
class LoadedCross:
    """A cross-encoder in memory; outputs: a batch of tokens to a tensor [n, classes]."""

    encoder: CrossEncoder
    place: ComputePlace
    engine: Engine
    tokenizer: ModelTokenizer
    outputs: Callable[[Tokens], Tensor]
    batch_tokens: int

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.place.device

    @property
    def alone(self) -> bool:
        """Whether a pair's score is the same bits whatever else is scored with it."""
        return self.engine.alone

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        """The scores of a stream of (query, document), some thousand at a time and in order, in bounded memory.

        done: told the number of pairs finished so far. Raises BadValue for a pair that does not fit into memory.
        """
        plan = BatchPlan(self.batch_tokens, padded=self.engine.padded)
        yield from results(pairs, self.tokenizer, self._scored, gathered, plan, done)

    def _scored(self, batch: Tokens) -> Tensor:
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            found = self.outputs(batch).float()
            if found.shape[1] > 2:
                raise BadValue(f"'{self.encoder.model}' has {found.shape[1]} classes; expected one or two")
            return found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]


def gathered(parts: Sequence[tuple[Int64, Tensor]], count: int) -> Float32:
    """Scores of batches, wherever they are, in the order of the pairs: one transfer."""
    torch = require("torch", extra="neural")
    whole = np.empty(count, np.float32)
    places = np.fromiter(chain.from_iterable(p.tolist() for p, _ in parts), np.int64, count)
    whole[places] = torch.cat([scores for _, scores in parts]).cpu().numpy()
    return whole


def _outputs(checkpoint: Checkpoint, declared: Declared) -> tuple[Callable[[Tokens], Tensor], Engine]:
    """(what makes the classes' outputs of a batch, the engine in it)."""
    place = declared.place
    if declared.engine == "transformers":
        return _whole(checkpoint, place)
    try:
        engine = build(checkpoint, place, declared.engine, segments=True)
        return partial(_headed, engine, _head(checkpoint, place)), engine
    except StoreError as error:
        refuse_own_code(checkpoint, str(error))
        raise


@dataclass(frozen=True, eq=False)
class _Head:
    """Layer, activation, layer: what makes a score of the first token's state."""

    weight: Tensor
    bias: Tensor
    activation: Callable[[Tensor], Tensor]
    last: Tensor
    last_bias: Tensor


def _head(checkpoint: Checkpoint, place: ComputePlace) -> _Head:
    torch = require("torch", extra="neural")
    names = HEADS.get(checkpoint.architecture)
    if names is None:
        raise BadValue(
            f"the engines torch and openvino have no head for '{checkpoint.architecture}'; take 'transformers'"
        )
    state, device = read_state(checkpoint.folder), torch.device(place.device)
    inner, activation, outer = names
    wanted = [f"{name}.{kind}" for name in (inner, outer) for kind in ("weight", "bias")]
    missing = [name for name in wanted if name not in state]
    if missing:
        raise StoreError(f"{checkpoint.folder}: the weights have no '{missing[0]}'")
    first, bias, last, last_bias = (state[name].to(device, torch.float32) for name in wanted)
    known_as = {"tanh": torch.tanh, "relu": torch.relu, "gelu": torch.nn.functional.gelu}
    return _Head(first, bias, known_as[activation], last, last_bias)


def _headed(engine: Engine, head: _Head, batch: Tokens) -> Tensor:
    """The outputs for a batch: the head over the state of each pair's first token, in float32."""
    torch = require("torch", extra="neural")
    states = engine.hidden(batch)
    first = states[torch.from_numpy(batch.ptr[:-1]).to(states.device)].float()
    return linear(head.activation(linear(first, head.weight, head.bias)), head.last, head.last_bias)


def _whole(checkpoint: Checkpoint, place: ComputePlace) -> tuple[Callable[[Tokens], Tensor], Engine]:
    """transformers' own model with its own head."""
    engine = transformers_engine(checkpoint, place.device, place.dtype, "AutoModelForSequenceClassification")
    return partial(_logits, engine), engine


def _logits(engine: Padded, batch: Tokens) -> Tensor:
    torch = require("torch", extra="neural")
    tables = inputs(batch, engine.fill, engine.segments)
    given = {name: to_device(torch, table, engine.device) for name, table in tables.items()}
    return engine.module(**given).logits
