"""The engine torch: BERT-like encoders through torch's products, without padding, on a processor or a GPU.

Every linear layer works on all tokens of a batch at once, and each text attends to itself alone. On a processor the
rows are filled up to a multiple of ROWS, see weir.encode.models.linear, so that a text's states are the same bits
alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import numpy as np

from weir.core.strings import Int64
from weir.encode.models.attention import Attend, cpu_attention, cuda_attention, distance_bias
from weir.encode.models.bert_weights import BertLayer, Embedding, Tensor, Weights
from weir.encode.models.linear import ROWS
from weir.encode.models.tokens import Tokens
from weir.errors import BadValue, require

__all__ = ["TorchEngine", "to_device", "torch_engine"]


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """The engine with its weights in place.

    prepacked: whether the matrices are in oneDNN's own order (fp32 on a processor, where torch has it); varlen: whether
    the GPU's kernel for texts of different lengths is used; kept: work space that batches share.
    """

    weights: Weights
    device: Any
    dtype: Any
    prepacked: bool
    varlen: bool
    rest: Callable[..., Tensor] | None = None
    kept: dict[str, Tensor] = field(default_factory=dict)
    padded: bool = False

    @property
    def alone(self) -> bool:
        """Whether a text's states are the same bits whatever else is in the batch."""
        return str(self.device.type) == "cpu"

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            h = _embedded(self.weights.embedding, batch, self.device, self.weights.eps)
            attend = self._attention(batch)
            for layer in self.weights.layers:
                h = self._on_gpu(h, layer, attend) if self.rest else self._on_processor(h, layer, attend)
            return h[: int(batch.ptr[-1])]

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

    def _on_gpu(self, h: Tensor, layer: BertLayer, attend: Attend) -> Tensor:
        torch = require("torch", extra="neural")
        assert self.rest is not None
        context = attend(torch.nn.functional.linear(h, layer.qkv, layer.qkv_bias))
        return self.rest(torch, h, context, layer, self.weights.eps, self.weights.approximate)

    def _on_processor(self, h: Tensor, layer: BertLayer, attend: Attend) -> Tensor:
        """As `after_attention`, in work space that stays: fresh memory costs a tenth of the time."""
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
        if self.prepacked:
            after, form = ("gelu", approximate) if active else ("none", "")
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, after, [], form)
        space = self.kept.get(place)
        if space is None or space.shape[0] < x.shape[0]:
            space = self.kept[place] = x.new_empty(x.shape[0], weight.shape[0])
        y = torch.addmm(bias, x, weight.t(), out=space[: x.shape[0]])
        return torch.ops.aten.gelu_(y, approximate=approximate) if active else y


def torch_engine(weights: Weights, device: str, dtype: str, compiled: bool = False) -> TorchEngine:
    """The engine for these weights on a device ("cpu", "cuda", "cuda:1"), computing in fp32, bf16 or fp16.

    compiled: let torch fuse what stands between the products on a GPU (takes its compiler a while). Raises BadValue
    for another dtype.
    """
    torch = require("torch", extra="neural")
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if dtype not in kinds:
        raise BadValue(f"the engine 'torch' does not compute in {dtype}; expected {', '.join(kinds)}")
    place, kind = torch.device(device), kinds[dtype]
    placed = _placed(weights, place, kind)
    if place.type != "cpu":
        rest = torch.compile(after_attention, dynamic=True) if compiled else after_attention
        return TorchEngine(placed, place, kind, False, _has_varlen(device, dtype), rest)
    prepacked = dtype == "fp32" and torch.backends.mkldnn.is_available()
    if prepacked:
        placed = replace(placed, layers=tuple(_prepacked(layer) for layer in placed.layers))
    return TorchEngine(placed, place, kind, prepacked, varlen=False)


def _embedded(embedding: Embedding, batch: Tokens, device: Any, eps: float) -> Tensor:  # noqa: ANN401 - a torch.device
    """The tokens of a batch before the first layer: [T, H]; on a processor with rows behind them up to ROWS."""
    torch = require("torch", extra="neural")
    more = -int(batch.ptr[-1]) % ROWS if device.type == "cpu" else 0
    ids, positions = (np.pad(a.astype(np.int64), (0, more)) for a in (batch.ids, batch.positions))
    h = embedding.words[to_device(torch, ids, device)]
    h = h + embedding.positions[to_device(torch, positions + embedding.offset, device)]
    if embedding.segments is not None:
        if batch.segment is None or len(embedding.segments) == 1:
            h = h + embedding.segments[0]
        else:
            segment = np.pad(batch.segment.astype(np.int64), (0, more))
            h = h + embedding.segments[to_device(torch, segment, device)]
    h = torch.nn.functional.layer_norm(h, (h.shape[1],), embedding.norm, embedding.norm_bias, eps)
    if embedding.project is None:
        return h
    return torch.nn.functional.linear(h, embedding.project, embedding.project_bias)


def after_attention(
    torch: Any,  # noqa: ANN401 - the module
    h: Tensor,
    context: Tensor,
    layer: BertLayer,
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


def _prepacked(layer: BertLayer) -> BertLayer:
    """A layer whose matrices are in oneDNN's own order."""
    return replace(layer, **{n: getattr(layer, n).to_mkldnn() for n in ("qkv", "out", "up", "down")})


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
