"""The engine "torch": BERT-like encoders over packed tokens, and heads in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from weir.core.strings import Float32, Int64
from weir.errors import BadValue, require
from weir.models.checkpoints import Checkpoint
from weir.models.engine import Declared, prepare
from weir.models.heads import AnyHead, ClassHead, Layer, OwnHead, TermHead, TokenHead, VectorHead
from weir.models.tokens import Tokens
from weir.models.weights import Array, BertLayer, Weights, distance_bias, read_weights, supported

Tensor: TypeAlias = Any
"""A torch tensor; torch is optional."""


# ----------
# Products of rows with a matrix; on a CPU a row's result does not depend on the number of rows.


ROWS = 16
"""CPU products are padded to a multiple of this number of rows.

Products of one or two rows sum in another order; from four on a row had the same bits in every test (fp32 and bf16,
MKL and oneDNN, AVX2 and AVX-512, one to eight threads).
"""


def _filled_up(x: Tensor) -> Tensor:
    more = -x.shape[0] % ROWS
    if more == 0 or x.device.type != "cpu":
        return x
    return require("torch", extra="torch").nn.functional.pad(x, (0, 0, 0, more))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ weight.T + bias, [n, m], for x [n, d], weight [m, d], bias [m]."""
    return require("torch", extra="torch").nn.functional.linear(_filled_up(x), weight, bias)[: x.shape[0]]


# ----------
# Attention over packed tokens, without padding.


Attend: TypeAlias = Callable[[Tensor], Tensor]
"""Queries, keys and values [tokens, 3 * width] to contexts [tokens, width]."""


def cpu_attention(batch: Tokens, heads: int, bias: Tensor | None) -> Attend:
    """Return a function that computes each text's attention on a CPU, from queries, keys and values, [tokens, 3
    * width], to [tokens, width].

    bias: [heads, longest, longest], added to the scores; a text of n tokens takes [:, :n, :n].
    """
    torch = require("torch", extra="torch")
    bounds, runs, first = batch.ptr.tolist(), list[tuple[int, int, int, Tensor | None]](), 0
    while first < len(bounds) - 1:  # neighbouring texts of equal length, and what is added to their scores
        length, last = bounds[first + 1] - bounds[first], first
        while last < len(bounds) - 1 and bounds[last + 1] - bounds[last] == length:
            last += 1
        if length:
            mask = None if bias is None else bias[:, :length, :length]
            if batch.visible is not None:  # nothing of tokens that are not visible
                visible = torch.from_numpy(np.arange(length) < batch.visible[first:last, None])[
                    :, None, None, :
                ]
                mask = visible if mask is None else mask.masked_fill(~visible, float("-inf"))
            runs.append((bounds[first], bounds[last], length, mask))
        first = last

    def attend(qkv: Tensor) -> Tensor:
        width = qkv.shape[1] // 3
        context = qkv.new_empty(qkv.shape[0], width)
        context[int(batch.ptr[-1]) :] = 0  # rows after the last token
        for start, stop, length, mask in runs:
            count = (stop - start) // length
            part = qkv[start:stop].view(count, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            contexts = torch.nn.functional.scaled_dot_product_attention(*part, attn_mask=mask)
            context[start:stop].view(count, length, heads, -1).copy_(contexts.transpose(1, 2))
        return context

    return attend


def cuda_attention(batch: Tokens, heads: int, bias: Tensor | None, varlen: bool, device: Any) -> Attend:  # noqa: ANN401 - a torch.device
    """Return the function of `cpu_attention` for a GPU, by torch's variable-length kernel or on padded texts.

    varlen: the kernel may be used (half precision); a bias or hidden tokens exclude it.
    """
    torch = require("torch", extra="torch")
    longest = int(batch.lengths.max(initial=1))
    if varlen and bias is None and batch.visible is None:
        kernel = require("torch.nn.attention.varlen", extra="torch").varlen_attn
        ends = torch.from_numpy(batch.ptr).to(device, torch.int32, non_blocking=True)

        def attend_packed(qkv: Tensor) -> Tensor:
            q, k, v = qkv.view(qkv.shape[0], 3, heads, -1).unbind(1)
            return kernel(q, k, v, ends, ends, longest, longest).reshape(qkv.shape[0], -1)

        return attend_packed
    mask, visible = (
        torch.from_numpy(m).to(device, non_blocking=True) for m in (batch.mask(), batch.attended())
    )

    def attend_padded(qkv: Tensor) -> Tensor:
        table = qkv.new_zeros(*mask.shape, qkv.shape[1])
        table[mask] = qkv
        part = table.view(*mask.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)
        added = torch.zeros(mask.shape, dtype=qkv.dtype, device=device).masked_fill(~visible, float("-inf"))
        scores = added[:, None, None, :]
        if bias is not None:
            scores = scores + bias[:, :longest, :longest]
        contexts = torch.nn.functional.scaled_dot_product_attention(*part, attn_mask=scores)
        return contexts.transpose(1, 2).reshape(*mask.shape, -1)[mask]

    return attend_padded


# ----------
# The engine.
#
# Every linear layer works on all tokens of a batch at once, and each text attends to itself alone. On a CPU the rows
# are filled up to a multiple of ROWS, so that a text's states have the same bits in any batch.


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """A transformer on a device, computed by Weir's own PyTorch code."""

    weights: Weights
    device: Any
    dtype: Any
    prepacked: bool
    """Matrices are in oneDNN's order (fp32 on a CPU)."""
    varlen: bool
    """Use the GPU's variable-length kernel."""
    space: dict[str, Tensor] = field(default_factory=dict)
    """Work space shared by batches."""
    padded: bool = False

    @property
    def batch_independent(self) -> bool:
        return str(self.device.type) == "cpu"

    def hidden(self, batch: Tokens) -> Tensor:
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            h = self._embedded(batch)
            bias, heads = None, self.weights.heads
            if self.weights.relative is not None:
                length = int(batch.lengths.max(initial=1))
                bias = self.space.get("bias")
                if bias is None or bias.shape[1] < length:
                    table = distance_bias(self.weights.relative, length)
                    bias = self.space["bias"] = torch.from_numpy(table).to(self.device, self.dtype)
            if self.device.type == "cpu":
                attend, after_layer = cpu_attention(batch, heads, bias), self._on_processor
            else:
                attend = cuda_attention(batch, heads, bias, self.varlen, self.device)
                after_layer = self._on_gpu
            for layer in self.weights.layers:
                h = after_layer(h, layer, attend)
            return h[: int(batch.ptr[-1])]

    def _embedded(self, batch: Tokens) -> Tensor:
        torch, embedding, device = require("torch", extra="torch"), self.weights.embedding, self.device
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
        norms = (embedding.norm, embedding.norm_bias, self.weights.eps)
        h = torch.nn.functional.layer_norm(h, (h.shape[1],), *norms)
        if embedding.project is None:
            return h
        return torch.nn.functional.linear(h, embedding.project, embedding.project_bias)

    def _on_gpu(self, h: Tensor, layer: BertLayer, attend: Attend) -> Tensor:
        f = require("torch", extra="torch").nn.functional
        shape, eps = (h.shape[1],), self.weights.eps
        context = attend(f.linear(h, layer.qkv, layer.qkv_bias))
        y = h + f.linear(context, layer.out, layer.out_bias)
        h = f.layer_norm(y, shape, layer.norm1, layer.norm1_bias, eps)
        up = f.gelu(f.linear(h, layer.up, layer.up_bias), approximate=self.weights.approximate)
        y = h + f.linear(up, layer.down, layer.down_bias)
        return f.layer_norm(y, shape, layer.norm2, layer.norm2_bias, eps)

    def _on_processor(self, h: Tensor, layer: BertLayer, attend: Attend) -> Tensor:
        torch = require("torch", extra="torch")
        norm, shape, eps = torch.nn.functional.layer_norm, (h.shape[1],), self.weights.eps
        context = attend(self._linear(h, layer.qkv, layer.qkv_bias, "qkv"))
        y = self._linear(context, layer.out, layer.out_bias, "out").add_(h)
        h = norm(y, shape, layer.norm1, layer.norm1_bias, eps)
        up = self._linear(h, layer.up, layer.up_bias, "up", active=True)
        y = self._linear(up, layer.down, layer.down_bias, "out")
        return norm(y.add_(h), shape, layer.norm2, layer.norm2_bias, eps)

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor, place: str, active: bool = False) -> Tensor:
        torch = require("torch", extra="torch")
        approximate = self.weights.approximate
        if self.prepacked:
            after, form = ("gelu", approximate) if active else ("none", "")
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, after, [], form)
        space = self.space.get(place)
        if space is None or space.shape[0] < x.shape[0]:
            space = self.space[place] = x.new_empty(x.shape[0], weight.shape[0])
        y = torch.addmm(bias, x, weight.t(), out=space[: x.shape[0]])
        return torch.ops.aten.gelu_(y, approximate=approximate) if active else y


def torch_engine(weights: Weights, device: str, dtype: str) -> TorchEngine:
    """Return an engine on a device ("cpu", "cuda", "cuda:1") in fp32, bf16 or fp16; raises BadValue for another
    dtype.
    """
    torch = require("torch", extra="torch")
    place, kind = torch.device(device), torch_dtype("torch", dtype)
    placed = _placed(weights, place, kind)
    if place.type != "cpu":
        return TorchEngine(placed, place, kind, False, _has_varlen(device, dtype))
    prepacked = dtype == "fp32" and torch.backends.mkldnn.is_available()
    if prepacked:
        placed = replace(placed, layers=tuple(_prepacked(layer) for layer in placed.layers))
    return TorchEngine(placed, place, kind, prepacked, varlen=False)


def torch_dtype(engine: str, dtype: str) -> Any:  # noqa: ANN401 - a torch.dtype
    """Return torch's type for "fp32", "bf16" or "fp16"; raises BadValue, naming the engine, for another."""
    torch = require("torch", extra="torch")
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if dtype not in dtypes:
        raise BadValue(f"the engine '{engine}' does not compute in {dtype}; expected {', '.join(dtypes)}")
    return dtypes[dtype]


def to_device(torch: Any, values: Int64, device: Any) -> Tensor:  # noqa: ANN401 - a module and its device
    """Return an array as a tensor on a device; a CPU tensor shares its memory, a GPU copy is asynchronous."""
    tensor = torch.from_numpy(values)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def _placed(weights: Weights, device: Any, dtype: Any) -> Weights:  # noqa: ANN401 - torch's own types
    torch = require("torch", extra="torch")

    # Copied into torch's own memory: products on a processor may depend on where a row begins.
    def moved(array: Tensor) -> Tensor:
        return None if array is None else torch.from_numpy(array).to(device, dtype, copy=True).contiguous()

    def each(part: Any) -> Any:  # noqa: ANN401 - an Embedding or a Layer
        tensors = {f.name: getattr(part, f.name) for f in fields(part) if f.name != "offset"}
        return replace(part, **{name: moved(t) for name, t in tensors.items()})

    return replace(
        weights,
        embedding=each(weights.embedding),
        layers=tuple(each(layer) for layer in weights.layers),
    )


def _prepacked(layer: BertLayer) -> BertLayer:
    return replace(layer, **{n: getattr(layer, n).to_mkldnn() for n in ("qkv", "out", "up", "down")})


@cache
def _has_varlen(device: str, dtype: str) -> bool:
    torch = require("torch", extra="torch")
    if dtype == "fp32":
        return False
    try:
        kernel = require("torch.nn.attention.varlen", extra="torch").varlen_attn
        x = torch.zeros(4, 1, 64, device=device, dtype=torch_dtype("torch", dtype))
        ends = torch.tensor([0, 3, 4], dtype=torch.int32, device=device)
        with torch.inference_mode():
            kernel(x, x, x, ends, ends, 3, 3)
    except Exception:  # noqa: BLE001 - whatever it is, the padded way works
        return False
    return True


# ----------
# Heads in torch.


BLOCK_TOKENS = 256
"""Tokens whose vocabulary scores are held at once: 30 MB for 30,000 terms."""
TorchHead: TypeAlias = Callable[[Tensor, Tokens], Tensor]
"""Hidden states [tokens, width] of a batch to the head's rows."""


class TorchBody(Protocol):
    """A model that returns hidden states as torch tensors."""

    @property
    def padded(self) -> bool:
        """True if a batch costs as much as its texts padded to the longest."""

    @property
    def batch_independent(self) -> bool:
        """True if a text's states have the same bits in any batch."""

    def hidden(self, batch: Tokens) -> Tensor:
        """Return the last hidden states of a batch, [tokens, width]."""


def tensors_as_array(parts: Sequence[Tensor]) -> Float32:
    """Return tensors, concatenated by rows, as one float32 array in host memory."""
    rows: Float32 = require("torch", extra="torch").cat(list(parts)).float().cpu().numpy()
    return rows


def tensor_above(rows: Tensor, threshold: float) -> tuple[Int64, Int64, Float32]:
    """Return (rows, columns, values) of entries above a threshold or NaN, in row order: int64, int64, float32."""
    there = ~(rows <= threshold)
    row, column = require("torch", extra="torch").nonzero(there, as_tuple=True)
    return row.cpu().numpy(), column.cpu().numpy(), rows[there].cpu().numpy()


@dataclass(frozen=True, eq=False)
class TorchModel:
    """A transformer and a head in torch, which together are an Engine."""

    body: TorchBody
    head: TorchHead

    @property
    def padded(self) -> bool:
        return self.body.padded

    @property
    def batch_independent(self) -> bool:
        return self.body.batch_independent

    def rows(self, batch: Tokens) -> Tensor:
        with require("torch", extra="torch").inference_mode():
            return self.head(self.body.hidden(batch), batch)

    array = staticmethod(tensors_as_array)
    above = staticmethod(tensor_above)


def torch_head(head: VectorHead | TokenHead | ClassHead | TermHead, device: str, dtype: str) -> TorchHead:
    """Return a head as a function (hidden states, batch) -> rows on a device.

    Vocabulary heads and TokenHeads that are not precise compute in `dtype`, others in float32.
    """
    torch = require("torch", extra="torch")
    place, kind = torch.device(device), torch_dtype("torch", dtype)

    def moved(array: Array, numbers: Any = torch.float32) -> Tensor:  # noqa: ANN401 - a torch.dtype
        return torch.from_numpy(array).to(place, numbers, copy=True).contiguous()

    def layer(one: Layer, numbers: Any = torch.float32) -> Callable[[Tensor], Tensor]:  # noqa: ANN401 - a torch.dtype
        weight = moved(one.weight, numbers)
        bias = None if one.bias is None else moved(one.bias, numbers)
        if one.kind == "LayerNorm":
            return lambda x: torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias)
        added = None if one.added is None else moved(one.added, numbers)
        activation = {"Tanh": torch.tanh, "relu": torch.relu, "gelu": torch.nn.functional.gelu}.get(
            one.activation
        )

        def computed(x: Tensor) -> Tensor:
            y = linear(x, weight, bias)
            y = y if activation is None else activation(y)
            if added is None:
                return y
            return y + (linear(x, added) if added.numel() else x)

        return computed

    if isinstance(head, ClassHead):
        hidden, last = (layer(one) for one in head.layers)

        def classes(h: Tensor, batch: Tokens) -> Tensor:
            return last(hidden(h[torch.from_numpy(batch.ptr[:-1]).to(h.device)].float()))

        return classes
    if isinstance(head, TermHead):
        return _terms_in_torch(head, lambda array: moved(array, kind), kind)
    numbers = kind if isinstance(head, TokenHead) and not head.precise else torch.float32
    layers = [layer(one, numbers) for one in head.layers]

    def vectors(h: Tensor, batch: Tokens) -> Tensor:
        x = pool(h, batch.ptr, head.pooling) if isinstance(head, VectorHead) else h.to(numbers)
        for one in layers:
            x = one(x)
        x = x.float()
        return torch.nn.functional.normalize(x, dim=1) if head.normalise else x

    return vectors


def pool(h: Tensor, ptr: Int64, pooling: str) -> Tensor:
    """Return hidden states, [tokens, width], pooled to float32[texts, width]; zeros for a text without tokens.

    ptr: offsets of the texts' tokens.
    pooling: "mean", "cls", "last" or "max".
    """
    torch = require("torch", extra="torch")
    bounds = torch.from_numpy(ptr).to(h.device)
    lengths = bounds.diff()
    some = slice(None) if (ptr[1:] > ptr[:-1]).all() else lengths > 0
    vectors = h.new_zeros(len(lengths), h.shape[1], dtype=torch.float32)
    if h.shape[0]:
        states, starts, sizes = h.float(), bounds[:-1][some], lengths[some]
        if pooling == "cls":
            vectors[some] = states[starts]
        elif pooling == "last":
            vectors[some] = states[starts + sizes - 1]
        else:
            how = "sum" if pooling == "mean" else pooling
            rows = torch.segment_reduce(states, how, lengths=sizes, axis=0, unsafe=True)
            vectors[some] = rows / sizes[:, None] if pooling == "mean" else rows
    return vectors


def _terms_in_torch(head: TermHead, moved: Callable[[Array], Tensor], kind: Any) -> TorchHead:  # noqa: ANN401 - a torch.dtype
    torch = require("torch", extra="torch")
    weight, bias, before = moved(head.weight), moved(head.bias), head.transform
    parts = (
        []
        if before is None
        else [moved(a) for a in (before.weight, before.bias, before.norm, before.norm_bias)]
    )

    def transformed(h: Tensor) -> Tensor:
        if before is None:
            return h
        f = torch.nn.functional
        x = f.gelu(linear(h, parts[0], parts[1]), approximate=before.approximate)
        return f.layer_norm(x, (x.shape[1],), parts[2], parts[3], before.eps)

    def terms(h: Tensor, batch: Tokens) -> Tensor:
        h, ptr = h.to(kind), batch.ptr
        x = _filled_up(transformed(h))
        weights = torch.zeros(len(ptr) - 1, weight.shape[0], dtype=torch.float32, device=h.device)
        space = h.new_empty(min(BLOCK_TOKENS, len(x)), weight.shape[0])
        for start in range(0, len(h), BLOCK_TOKENS):
            stop = min(start + BLOCK_TOKENS, len(x))
            numbers = torch.addmm(bias, x[start:stop], weight.t(), out=space[: stop - start])
            own = numbers[: len(h) - start]
            first = int(np.searchsorted(ptr, start, side="right")) - 1
            last = int(np.searchsorted(ptr, start + len(own), side="left"))
            for text in range(first, last):
                rows = own[max(int(ptr[text]) - start, 0) : int(ptr[text + 1]) - start]
                if len(rows) == 0:
                    continue
                if head.pooling == "sum":
                    weights[text] += activated(rows.float().clamp_(min=0.0), head.activation).sum(0)
                else:  # from 0, so that this is the relu; what follows rises with it and can wait
                    torch.maximum(weights[text], rows.amax(0).float(), out=weights[text])
        return weights if head.pooling == "sum" else activated(weights, head.activation)

    return terms


def activated(x: Tensor, activation: str) -> Tensor:
    """Return log(1 + x), applied twice for log1p_relu, in place; x must not be negative."""
    return x.log1p_().log1p_() if activation == "log1p_relu" else x.log1p_()


def build_torch(checkpoint: Checkpoint, declared: Declared, head: AnyHead) -> TorchModel:
    """Return a checkpoint's engine in Weir's own torch layers; raises BadValue for an unknown architecture."""
    place = declared.place
    prepare(place.device)
    if isinstance(head, OwnHead) or not supported(checkpoint):
        raise BadValue(
            f"{checkpoint.folder}: the engine 'torch' does not know '{checkpoint.architecture}'; take 'transformers'"
        )
    engine = torch_engine(read_weights(checkpoint), place.device, place.dtype)
    return TorchModel(engine, torch_head(head, place.device, place.dtype))
