"""Weir's own forward pass of BERT-like encoders: only real tokens are computed, on a processor or a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import numpy as np

from weir.core.strings import Int64
from weir.encode.attention import Attend, cpu_attention, cuda_attention, distance_bias
from weir.encode.tokens import Tokens
from weir.encode.weights import Embedding, Layer, Tensor, Weights
from weir.errors import require

__all__ = ["Packed", "embed", "pack", "to_device"]


@dataclass(frozen=True, eq=False)
class Packed:
    """An engine: tokens to hidden states, every linear layer over all tokens of the batch at once.

    product: "torch" or "onednn", whichever multiplies faster here (processor only); varlen: whether the GPU's
    kernel for texts of different lengths is used; kept: work space that batches share.
    """

    weights: Weights
    device: Any
    dtype: Any
    product: str
    varlen: bool
    rest: Callable[..., Tensor] | None = None
    kept: dict[str, Tensor] = field(default_factory=dict)
    padded: bool = False

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        kind = "cuda" if self.device.type == "cuda" else self.product
        attention = ", varlen attention" if self.varlen else ""
        return f"packed ({kind}{attention})"

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        torch = require("torch", extra="neural")
        return {
            "engine": self.name,
            "computes in": str(self.dtype).removeprefix("torch."),
            "torch": str(torch.__version__),
        }

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            h = embed(self.weights.embedding, batch, self.device, self.weights.eps)
            attend = self._attention(batch)
            for layer in self.weights.layers:
                h = self._on_gpu(h, layer, attend) if self.rest else self._on_processor(h, layer, attend)
            return h

    def _attention(self, batch: Tokens) -> Attend:
        bias = None
        if self.weights.relative is not None:
            length = int(batch.lengths.max(initial=1))
            bias = self.kept.get("bias")
            if bias is None or bias.shape[1] < length:
                bias = self.kept["bias"] = distance_bias(self.weights.relative, length)
        if self.device.type == "cpu":
            return cpu_attention(batch, self.weights.heads, bias)
        return cuda_attention(batch, self.weights.heads, bias, self.varlen, self.device)

    def _on_gpu(self, h: Tensor, layer: Layer, attend: Attend) -> Tensor:
        torch = require("torch", extra="neural")
        assert self.rest is not None
        context = attend(torch.nn.functional.linear(h, layer.qkv, layer.qkv_bias))
        return self.rest(torch, h, context, layer, self.weights.eps, self.weights.approximate)

    def _on_processor(self, h: Tensor, layer: Layer, attend: Attend) -> Tensor:
        """As `after_attention`, in work space that stays: fresh memory costs a tenth of the time here."""
        torch = require("torch", extra="neural")
        norm, shape, eps = torch.nn.functional.layer_norm, (h.shape[1],), self.weights.eps
        context = attend(self._linear(h, layer.qkv, layer.qkv_bias, "qkv"))
        y = self._linear(context, layer.out, layer.out_bias, "out").add_(h)
        h = norm(y, shape, layer.norm1, layer.norm1_bias, eps)
        up = self._linear(h, layer.up, layer.up_bias, "up", active=True)
        y = self._linear(up, layer.down, layer.down_bias, "out")
        return norm(y.add_(h), shape, layer.norm2, layer.norm2_bias, eps)

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor, place: str, active: bool = False) -> Tensor:
        """x times a matrix, plus its bias, and then GELU where `active`."""
        torch = require("torch", extra="neural")
        approximate = self.weights.approximate
        if self.product == "onednn":
            after, form = ("gelu", approximate) if active else ("none", "")
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, after, [], form)
        space = self.kept.get(place)
        if space is None or space.shape[0] < x.shape[0]:
            space = self.kept[place] = x.new_empty(x.shape[0], weight.shape[0])
        y = torch.addmm(bias, x, weight.t(), out=space[: x.shape[0]])
        return torch.ops.aten.gelu_(y, approximate=approximate) if active else y


def pack(weights: Weights, device: str, dtype: str, compiled: bool = False) -> Packed:
    """The engine for these weights on a device ("cpu", "cuda", "cuda:1"), computing in fp32, bf16 or fp16.

    compiled: let torch fuse what stands between the products on a GPU (takes its compiler a while).
    """
    torch = require("torch", extra="neural")
    place = torch.device(device)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    placed = _placed(weights, place, kind)
    if place.type != "cpu":
        rest = torch.compile(after_attention, dynamic=True) if compiled else after_attention
        return Packed(placed, place, kind, "torch", _has_varlen(device, dtype), rest)
    product = _faster_product(str(dtype), placed.layers[0].up.shape) if placed.layers else "torch"
    if product == "onednn":
        placed = replace(placed, layers=tuple(_prepacked(layer) for layer in placed.layers))
    return Packed(placed, place, kind, product, varlen=False)


def embed(embedding: Embedding, batch: Tokens, device: Any, eps: float) -> Tensor:  # noqa: ANN401 - a torch.device
    """The tokens of a batch before the first layer: [T, H]."""
    torch = require("torch", extra="neural")
    ids = to_device(torch, batch.ids.astype(np.int64), device)
    places = to_device(torch, batch.positions + embedding.offset, device)
    h = embedding.words[ids] + embedding.positions[places]
    if embedding.segments is not None:
        if batch.segment is None or len(embedding.segments) == 1:
            h = h + embedding.segments[0]
        else:
            h = h + embedding.segments[to_device(torch, batch.segment.astype(np.int64), device)]
    h = torch.nn.functional.layer_norm(h, (h.shape[1],), embedding.norm, embedding.norm_bias, eps)
    if embedding.project is None:
        return h
    return torch.nn.functional.linear(h, embedding.project, embedding.project_bias)


def after_attention(
    torch: Any,  # noqa: ANN401 - the module
    h: Tensor,
    context: Tensor,
    layer: Layer,
    eps: float,
    approximate: str,
) -> Tensor:
    """What a layer does with its contexts: a product, and the two wide ones, each with sum and norm."""
    linear, norm, shape = torch.nn.functional.linear, torch.nn.functional.layer_norm, (h.shape[1],)
    h = norm(h + linear(context, layer.out, layer.out_bias), shape, layer.norm1, layer.norm1_bias, eps)
    up = torch.nn.functional.gelu(linear(h, layer.up, layer.up_bias), approximate=approximate)
    return norm(h + linear(up, layer.down, layer.down_bias), shape, layer.norm2, layer.norm2_bias, eps)


def to_device(torch: Any, values: Int64, device: Any) -> Tensor:  # noqa: ANN401 - a module and its device
    """An array as a tensor on a device, on its way while Python goes on."""
    tensor = torch.from_numpy(values)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def _placed(weights: Weights, device: Any, dtype: Any) -> Weights:  # noqa: ANN401 - torch's own types
    def moved(tensor: Tensor) -> Tensor:
        return None if tensor is None else tensor.to(device, dtype).contiguous()

    def each(part: Any) -> Any:  # noqa: ANN401 - an Embedding or a Layer
        tensors = {f.name: getattr(part, f.name) for f in fields(part) if f.name != "offset"}
        return replace(part, **{name: moved(t) for name, t in tensors.items()})

    return replace(
        weights,
        embedding=each(weights.embedding),
        layers=tuple(each(layer) for layer in weights.layers),
        relative=moved(weights.relative),
    )


def _prepacked(layer: Layer) -> Layer:
    """A layer whose matrices are in oneDNN's own order."""
    return replace(layer, **{n: getattr(layer, n).to_mkldnn() for n in ("qkv", "out", "up", "down")})


@cache
def _faster_product(dtype: str, shape: tuple[int, int]) -> str:
    """Which of torch's two libraries multiplies faster on this processor: "torch" (MKL) or "onednn"."""
    torch = require("torch", extra="neural")
    if not torch.backends.mkldnn.is_available() or dtype == "fp16":
        return "torch"
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    x, w, b = (torch.ones(s, dtype=kind) for s in ((512, shape[1]), shape, (shape[0],)))
    with torch.inference_mode():
        packed = w.to_mkldnn()
        plain = _seconds(lambda: torch.addmm(b, x, w.t()))
        other = _seconds(lambda: torch.ops.mkldnn._linear_pointwise(x, packed, b, "none", [], ""))
    return "onednn" if other < 0.9 * plain else "torch"  # the other way reuses its work space


def _seconds(action: Callable[[], object]) -> float:
    """Of the best of some repetitions: other work on the machine only ever adds."""
    taken = []
    for _ in range(20):
        begun = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begun)
    return min(taken)


@cache
def _has_varlen(device: str, dtype: str) -> bool:
    """Whether torch's kernel for texts of different lengths works here."""
    torch = require("torch", extra="neural")
    if dtype == "fp32":
        return False
    try:
        kernel = require("torch.nn.attention.varlen", extra="neural").varlen_attn
        x = torch.zeros(4, 1, 64, device=device, dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[dtype])
        ends = torch.tensor([0, 3, 4], dtype=torch.int32, device=device)
        with torch.inference_mode():
            kernel(x, x, x, ends, ends, 3, 3)
    except Exception:  # noqa: BLE001 - whatever it is, the padded way works
        return False
    return True
