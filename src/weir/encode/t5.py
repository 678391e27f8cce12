"""T5 and mT5 as Weir computes them: an encoder without padding, and a decoder whose work the texts share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from weir.core.strings import Int64
from weir.encode.attention import Attend, cpu_attention, cuda_attention, distance_bias
from weir.encode.checkpoint import Checkpoint
from weir.encode.engine import Place
from weir.encode.packed import to_device
from weir.encode.tokens import Tokens
from weir.encode.weights import Tensor, read_state
from weir.errors import BadValue, StoreError, require

__all__ = ["T5", "check_t5", "load_t5"]

DTYPES = ("fp32", "bf16")
ACTIVATIONS = {
    "relu": (False, "relu"),
    "gated-gelu": (True, "tanh"),
    "gated-gelu_new": (True, "tanh"),
    "gated-silu": (True, "silu"),
}
"""`feed_forward_proj`: whether one half gates the other, and what is done to the one that gates."""
DISTANCE = 128


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention within a text and two wide products: qkv [3I, H], out [H, I], up [F or 2F, H], down [H, F]."""

    norm: Tensor
    qkv: Tensor
    out: Tensor
    norm2: Tensor
    up: Tensor
    down: Tensor


@dataclass(frozen=True, eq=False)
class Reading:
    """How a layer of the decoder reads the text: query, key, value [heads, I / heads, H], out [H, I]."""

    norm: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor


@dataclass(frozen=True, eq=False)
class T5:
    """An encoder and decoder in memory.

    words [V, H]; encoder, decoder: layers; reading: the decoder's attention to the text, for each layer; near,
    past [buckets, heads]: what distance adds to attention in encoder and decoder; norm, last: behind each of them,
    in float32 as every norm and sum; head [V, H]: states to words, after `scale`; start, end: the tokens a text
    begins and ends with; kept: work space that batches share.
    """

    words: Tensor
    encoder: tuple[Layer, ...]
    near: Tensor
    norm: Tensor
    decoder: tuple[Layer, ...]
    reading: tuple[Reading, ...]
    past: Tensor
    last: Tensor
    head: Tensor
    scale: float
    eps: float
    activation: str
    start: int
    end: int
    device: Any
    dtype: Any
    kept: dict[str, Tensor] = field(default_factory=dict)

    @property
    def heads(self) -> int:
        """Heads of attention."""
        return int(self.near.shape[1])

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        torch = require("torch", extra="neural")
        kind = str(self.dtype).removeprefix("torch.")
        product = "onednn" if self.encoder[0].up.is_mkldnn else "torch"
        return {"engine": f"packed t5 ({product})", "computes in": kind, "torch": str(torch.__version__)}

    def encoded(self, batch: Tokens) -> Tensor:
        """The encoder's states of the tokens of a batch, float32 [T, H]."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            h = self.words[to_device(torch, batch.ids.astype(np.int64), self.device)].float()
            attend = self._attention(batch)
            for layer in self.encoder:
                qkv = self.product(self.normed(h, layer.norm), layer.qkv, "qkv")
                self.add(h, attend(qkv), layer.out)
                self.widen(h, layer)
            return rms(torch, h, self.norm, self.eps)

    def normed(self, h: Tensor, weight: Tensor) -> Tensor:
        """States at length 1 on average, as the products take them."""
        return rms(require("torch", extra="neural"), h, weight, self.eps).to(self.dtype)

    def product(self, x: Tensor, weight: Tensor, place: str) -> Tensor:
        """x times a matrix: by oneDNN where it is in oneDNN's order, else on a processor in work space that stays."""
        torch = require("torch", extra="neural")
        if weight.is_mkldnn:
            return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
        if self.device.type != "cpu":
            return torch.nn.functional.linear(x, weight)
        space = self.kept.get(place)
        if space is None or space.shape[0] < x.shape[0] or space.shape[1] != weight.shape[0]:
            space = self.kept[place] = x.new_empty(x.shape[0], weight.shape[0])
        return torch.mm(x, weight.t(), out=space[: x.shape[0]])

    def add(self, h: Tensor, x: Tensor, weight: Tensor) -> None:
        """h plus x times a matrix, in place."""
        if h.dtype == x.dtype and not weight.is_mkldnn:
            h.addmm_(x, weight.t())
        else:
            h.add_(self.product(x, weight, "sum"))

    def widen(self, h: Tensor, layer: Layer) -> None:
        """h plus what the two wide products make of it, in place."""
        torch = require("torch", extra="neural")
        up = self.product(self.normed(h, layer.norm2), layer.up, "up")
        if self.activation == "relu":
            self.add(h, torch.relu_(up), layer.down)
            return
        gate, other = up.chunk(2, dim=1)
        function = torch.nn.functional
        gate = function.silu(gate) if self.activation == "silu" else function.gelu(gate, approximate="tanh")
        self.add(h, gate.mul_(other), layer.down)

    def first(self, states: Tensor, lengths: Int64) -> Tensor:
        """The decoder's state at the first token of each text's answer, float32 [n, H].

        states: what `encoded` gave; lengths: of each text. Keys and values of the text are never made: a text asks
        once, so that it is cheaper to bring its question, and the mean it takes, to the states themselves.
        """
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            table, closed = padded(torch, states.to(self.dtype), lengths)
            h = self.words[self.start].float().repeat(len(lengths), 1)
            for layer, reading in zip(self.decoder, self.reading, strict=True):
                alone = layer.qkv[2 * layer.qkv.shape[0] // 3 :]  # a single token attends to itself
                self.add(h, torch.nn.functional.linear(self.normed(h, layer.norm), alone), layer.out)
                x = self.normed(h, reading.norm)
                asked = torch.einsum("nk,hdk->hnd", x, reading.query)
                scores = (asked @ reading.key).transpose(0, 1) @ table.transpose(1, 2)
                share = torch.softmax(scores.float().masked_fill_(closed, float("-inf")), -1)
                mixed = (share.to(self.dtype) @ table).transpose(0, 1)
                context = (mixed @ reading.value.transpose(1, 2)).permute(1, 0, 2)
                self.add(h, context.reshape(len(lengths), -1), reading.out)
                self.widen(h, layer)
            return rms(torch, h, self.last, self.eps) * self.scale

    def words_of(self, states: Tensor, wanted: list[int] | None = None) -> Tensor:
        """The scores of words to follow a decoder's states, float32 [n, V], or [n, wanted]."""
        head = self.head if wanted is None else self.head[wanted]
        found: Tensor = (states.to(self.dtype) @ head.t()).float()
        return found

    def _attention(self, batch: Tokens) -> Attend:
        length = int(batch.lengths.max(initial=1))
        bias = self.kept.get("bias")
        if bias is None or bias.shape[1] < length:
            bias = self.kept["bias"] = distance_bias(self.near, length)
        if self.device.type == "cpu":
            return cpu_attention(batch, self.heads, bias)
        return cuda_attention(batch, self.heads, bias, varlen=False, device=self.device)


def rms(torch: Any, h: Tensor, weight: Tensor, eps: float) -> Tensor:  # noqa: ANN401 - the module
    """Each row divided by its root mean square, times a weight for each column."""
    return torch.nn.functional.rms_norm(h, (h.shape[-1],), weight, eps)


def padded(torch: Any, states: Tensor, lengths: Int64) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - the module
    """States as a table [n, longest, H], zero behind each text, and where it is closed [n, 1, longest]."""
    filled = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
    mask = torch.from_numpy(filled).to(states.device, non_blocking=True)
    table = states.new_zeros(*mask.shape, states.shape[1])
    table[mask] = states
    return table, ~mask[:, None, :]


def check_t5(checkpoint: Checkpoint, model: str) -> None:
    """Raise BadValue for a checkpoint that is no T5 or mT5 with an encoder and a decoder that writes words."""
    config = checkpoint.config
    named = str((config.get("architectures") or [""])[0])
    if checkpoint.architecture not in ("t5", "mt5") or not named.endswith("ForConditionalGeneration"):
        kind = named or checkpoint.architecture or "model of an unknown kind"
        raise BadValue(
            f"'{model}' is a {kind}; expected a T5 or mT5 that writes (T5ForConditionalGeneration)"
        )
    wide, distance = _wide(config), config.get("relative_attention_max_distance", DISTANCE)
    if wide not in ACTIVATIONS or distance != DISTANCE:
        raise BadValue(
            f"'{model}' has wide layers '{wide}' and distances to {distance}; Weir knows "
            f"{', '.join(ACTIVATIONS)} and distances to {DISTANCE}"
        )


def load_t5(checkpoint: Checkpoint, place: Place) -> T5:
    """A T5 or mT5 in memory, computing in fp32 or bf16; sums and norms are in fp32 always.

    Raises BadValue for another dtype (the states of T5 leave the range of fp16), StoreError where a weight is
    missing.
    """
    torch = require("torch", extra="neural")
    if place.dtype not in DTYPES:
        raise BadValue(f"T5 computes in {' or '.join(DTYPES)} here, not in {place.dtype}")
    config, state = checkpoint.config, read_state(checkpoint.folder)
    device = torch.device(place.device)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[place.dtype]
    full, part = (partial(_weight, checkpoint, state, device, kind) for kind in (torch.float32, dtype))
    shared = next(
        (n for n in ("shared.weight", "encoder.embed_tokens.weight") if n in state), "shared.weight"
    )
    words, width = part(shared), int(config["d_kv"])
    layers = int(config["num_layers"])
    written = config.get("num_decoder_layers")
    writing = range(layers if written is None else int(written))
    gated, activation = ACTIVATIONS[_wide(config)]
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    ordered = place.device == "cpu" and place.dtype == "fp32" and torch.backends.mkldnn.is_available()
    wide = ("out", "up", "down") if ordered else ()
    every = ("qkv", *wide) if ordered else ()  # the decoder also needs a part of its own
    end = config.get("eos_token_id", 1)
    return T5(
        words=words,
        encoder=tuple(
            _packed(_layer(full, part, f"encoder.block.{i}.layer", 1, width, gated), every)
            for i in range(layers)
        ),
        near=part(f"encoder.{bias}"),
        norm=full("encoder.final_layer_norm.weight"),
        decoder=tuple(
            _packed(_layer(full, part, f"decoder.block.{i}.layer", 2, width, gated), wide) for i in writing
        ),
        reading=tuple(_reading(full, part, f"decoder.block.{i}.layer.1", width) for i in writing),
        past=part(f"decoder.{bias}"),
        last=full("decoder.final_layer_norm.weight"),
        head=part("lm_head.weight") if "lm_head.weight" in state else words,
        scale=float(config["d_model"]) ** -0.5 if _scaled(config) else 1.0,
        eps=float(config.get("layer_norm_epsilon", 1e-6)),
        activation=activation,
        start=int(config.get("decoder_start_token_id") or 0),
        end=int(end[0] if isinstance(end, list) else end),
        device=device,
        dtype=dtype,
    )


def _wide(config: dict[str, Any]) -> str:
    """What the wide layers do; mT5's files may leave it to its default."""
    return str(config.get("feed_forward_proj", "gated-gelu" if config.get("model_type") == "mt5" else "relu"))


def _scaled(config: dict[str, Any]) -> bool:
    """Whether states are scaled before the words are scored, as the first T5, which shares its matrix of words."""
    if config.get("model_type") == "mt5":
        return False
    tied = config.get("tie_word_embeddings") is not False
    return bool(config.get("scale_decoder_outputs", tied))


def _weight(
    checkpoint: Checkpoint,
    state: dict[str, Tensor],
    device: Any,  # noqa: ANN401 - a torch.device
    dtype: Any,  # noqa: ANN401 - a torch.dtype
    name: str,
) -> Tensor:
    found = state.get(name)
    if found is None:
        raise StoreError(f"{checkpoint.folder}: the weights have no '{name}'")
    return found.to(device, dtype).contiguous()


def _layer(
    full: Callable[[str], Tensor], part: Callable[[str], Tensor], at: str, wide: int, width: int, gated: bool
) -> Layer:
    """The parts of a layer; `wide`: the number of its wide products, `width`: of a head."""
    torch = require("torch", extra="neural")
    own, dense = f"{at}.0.SelfAttention", f"{at}.{wide}.DenseReluDense"
    # T5 does not divide the products of attention by the root of a head's width, and the kernels do.
    query = part(f"{own}.q.weight") * width**0.5
    halves = ("wi_0", "wi_1") if gated else ("wi",)
    return Layer(
        norm=full(f"{at}.0.layer_norm.weight"),
        qkv=torch.cat([query, part(f"{own}.k.weight"), part(f"{own}.v.weight")]),
        out=part(f"{own}.o.weight"),
        norm2=full(f"{at}.{wide}.layer_norm.weight"),
        up=torch.cat([part(f"{dense}.{n}.weight") for n in halves]),
        down=part(f"{dense}.wo.weight"),
    )


def _packed(layer: Layer, names: tuple[str, ...]) -> Layer:
    """A layer whose matrices of these names are in oneDNN's own order, which multiplies faster in fp32."""
    return replace(layer, **{name: getattr(layer, name).to_mkldnn() for name in names})


def _reading(full: Callable[[str], Tensor], part: Callable[[str], Tensor], at: str, width: int) -> Reading:
    query, key, value = (part(f"{at}.EncDecAttention.{n}.weight").unflatten(0, (-1, width)) for n in "qkv")
    out = part(f"{at}.EncDecAttention.o.weight")
    return Reading(full(f"{at}.layer_norm.weight"), query, key, value, out)
