"""The engine torch: BERT-like encoders over packed tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weir.core.strings import Int64
from weir.errors import BadValue, StoreError, require
from weir.models.checkpoints import ROBERTA, Checkpoint
from weir.models.tokens import Tokens

# ----------
# Weights of BERT-like checkpoints under one set of names.


Tensor: TypeAlias = Any
"""A torch tensor; torch is an optional part."""

ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
"""Names in configurations, and how torch calls the approximation."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """What a token becomes: words [V, E]; positions [P, E], from row `offset`; segments [2, E] or None.

    project, project_bias: [H, E], [H] where the embeddings are narrower than the layers, else None.
    """

    words: Tensor
    positions: Tensor
    offset: int
    segments: Tensor | None
    norm: Tensor
    norm_bias: Tensor
    project: Tensor | None
    project_bias: Tensor | None


@dataclass(frozen=True, eq=False)
class BertLayer:
    """One layer: qkv [3H, H], out [H, H], up [F, H], down [H, F], with their biases and two norms."""

    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    out_bias: Tensor
    norm1: Tensor
    norm1_bias: Tensor
    up: Tensor
    up_bias: Tensor
    down: Tensor
    down_bias: Tensor
    norm2: Tensor
    norm2_bias: Tensor


@dataclass(frozen=True, eq=False)
class Weights:
    """A model whose layers normalise behind each sum: BERT and its relatives.

    relative: [buckets, heads] of MPNet's bias by distance, or None; approximate: torch's name for the form of
    the activation (GELU); eps: of the norms.
    """

    embedding: Embedding
    layers: tuple[BertLayer, ...]
    heads: int
    eps: float
    approximate: str
    relative: Tensor | None


@dataclass(frozen=True)
class _Names:
    """What an architecture calls its parts; {} is the number of the layer."""

    layer: str
    query: str
    key: str
    value: str
    out: str
    norm1: str
    up: str
    down: str
    norm2: str
    dims: tuple[str, str] = ("num_hidden_layers", "num_attention_heads")


BERT = _Names(
    "encoder.layer.{}.",
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
MPNET = replace(
    BERT,
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    out="attention.attn.o",
    norm1="attention.LayerNorm",
)
DISTILBERT = _Names(
    "transformer.layer.{}.",
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
    ("n_layers", "n_heads"),
)
NAMES = dict.fromkeys(("bert", "dpr", "roberta", "xlm-roberta", "camembert", "electra"), BERT)
NAMES |= {"mpnet": MPNET, "distilbert": DISTILBERT}


def supported(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint has an architecture that `read_weights` knows, in all its settings."""
    config = checkpoint.config
    activation = config.get("hidden_act", config.get("activation", "gelu"))
    return (
        checkpoint.architecture in NAMES
        and activation in ACTIVATIONS
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
        and not config.get("projection_dim")
    )


def read_weights(checkpoint: Checkpoint) -> Weights:
    """The weights of a supported checkpoint, as its files hold them.

    Raises StoreError where a tensor is missing or the file is damaged.
    """
    torch = require("torch", extra="neural")
    config, names = checkpoint.config, NAMES[checkpoint.architecture]
    state = ModelState(checkpoint.folder)
    activation = config.get("hidden_act", config.get("activation", "gelu"))
    shifted = checkpoint.architecture in ROBERTA
    embedding = Embedding(
        words=state["embeddings.word_embeddings.weight"],
        positions=state["embeddings.position_embeddings.weight"],
        offset=int(config.get("pad_token_id", 1)) + 1 if shifted else 0,
        segments=state.get("embeddings.token_type_embeddings.weight"),
        norm=state["embeddings.LayerNorm.weight"],
        norm_bias=state["embeddings.LayerNorm.bias"],
        project=state.get("embeddings_project.weight"),
        project_bias=state.get("embeddings_project.bias"),
    )
    count, heads = (int(config[n]) for n in names.dims)
    layers = []
    for number in range(count):
        at = names.layer.format(number)
        parts = [at + p for p in (names.query, names.key, names.value)]
        layers.append(
            BertLayer(
                qkv=torch.cat([state[p + ".weight"] for p in parts]),
                qkv_bias=torch.cat([state[p + ".bias"] for p in parts]),
                **{
                    f"{field}{suffix}": state[f"{at}{getattr(names, field)}.{kind}"]
                    for field in ("out", "norm1", "up", "down", "norm2")
                    for suffix, kind in (("", "weight"), ("_bias", "bias"))
                },
            )
        )
    return Weights(
        embedding=embedding,
        layers=tuple(layers),
        heads=heads,
        eps=float(config.get("layer_norm_eps", 1e-12)),
        approximate=ACTIVATIONS[activation],
        relative=state.get("encoder.relative_attention_bias.weight"),
    )


def read_state(folder: Path) -> dict[str, Tensor]:
    """All tensors in a checkpoint's files, by name, read without running anything they may hold.

    Raises StoreError where there are none, or where they cannot be read.
    """
    files = sorted(folder.glob("*.safetensors"))
    state: dict[str, Tensor] = {}
    try:
        if files:
            load = require("safetensors.torch", extra="neural").load_file
            for path in files:
                state |= load(str(path))
        else:
            torch = require("torch", extra="neural")
            for path in sorted(folder.glob("pytorch_model*.bin")):
                state |= torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - each library has errors of its own for damaged files
        raise StoreError(
            f"{folder}: the weights cannot be read ({error}); fetch the checkpoint again"
        ) from None
    if not state:
        raise StoreError(f"{folder}: no weights there; expected *.safetensors or pytorch_model.bin")
    return state


class ModelState:
    """The tensors of a model's files by their names in the bare model, whatever prefix stands before them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tensors = {  # norms of the first checkpoints are called gamma and beta
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): t
            for name, t in read_state(folder).items()
        }
        self._names = sorted(self._tensors, key=len)

    def get(self, *names: str) -> Tensor | None:
        """The tensor of the first of these names that is there, the shortest that ends in it; None where none is."""
        for name in names:
            inner = f".{name}"
            for full in self._names:
                if full == name or full.endswith(inner):
                    return self._tensors[full]
        return None

    def __getitem__(self, names: str | tuple[str, ...]) -> Tensor:
        """As `get`; raises StoreError where none is there."""
        names = (names,) if isinstance(names, str) else names
        tensor = self.get(*names)
        if tensor is None:
            raise StoreError(f"{self._folder}: the weights have no '{names[0]}'")
        return tensor


# ----------
# Products of rows with a matrix; on a processor a row's result does not depend on the number of rows.


ROWS = 16
"""Products on a processor get a multiple of so many rows. Those of one or two rows go another way through the
libraries, which sums in another order; from four on a row had the same bits in every test (fp32 and bf16, MKL and
oneDNN, AVX2 and AVX-512, one to eight threads)."""


def filled_up(x: Tensor) -> Tensor:
    """Rows [n, d] with rows of zeros behind them up to a multiple of ROWS; as they are on a GPU."""
    more = -x.shape[0] % ROWS
    if more == 0 or x.device.type != "cpu":
        return x
    return require("torch", extra="neural").nn.functional.pad(x, (0, 0, 0, more))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [n, d] times a matrix [m, d], plus a bias [m]: [n, m]."""
    return require("torch", extra="neural").nn.functional.linear(filled_up(x), weight, bias)[: x.shape[0]]


# ----------
# Attention over packed tokens, without padding.


Attend: TypeAlias = Callable[[Tensor], Tensor]
"""Queries, keys and values [T, 3H] to contexts [T, H]."""

MAX_DISTANCE = 128


def cpu_attention(batch: Tokens, heads: int, bias: Tensor | None) -> Attend:
    """Attention on the processor: one call for each run of texts of equal length.

    bias: [heads, L, L] added to the scores, L the longest length, or None.
    """
    torch = require("torch", extra="neural")
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
        context[int(batch.ptr[-1]) :] = 0  # rows behind the last token
        for start, stop, length, mask in runs:
            count = (stop - start) // length
            part = qkv[start:stop].view(count, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            contexts = torch.nn.functional.scaled_dot_product_attention(*part, attn_mask=mask)
            context[start:stop].view(count, length, heads, -1).copy_(contexts.transpose(1, 2))
        return context

    return attend


def cuda_attention(batch: Tokens, heads: int, bias: Tensor | None, varlen: bool, device: Any) -> Attend:  # noqa: ANN401 - a torch.device
    """Attention on a GPU: torch's kernel for texts of different lengths, or a padded table where it does not apply.

    varlen: whether that kernel may be used (half precision, no bias).
    """
    torch = require("torch", extra="neural")
    longest = int(batch.lengths.max(initial=1))
    if varlen and bias is None and batch.visible is None:
        kernel = require("torch.nn.attention.varlen", extra="neural").varlen_attn
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


def distance_bias(table: Tensor, length: int) -> Tensor:
    """MPNet's bias [heads, L, L] by the distance of two tokens, in buckets that widen with it (as T5's).

    table: [buckets, heads].
    """
    torch = require("torch", extra="neural")
    place = torch.arange(length, device=table.device)
    distance = place[:, None] - place[None, :]
    half = table.shape[0] // 2
    near = half // 2
    size = distance.abs()
    far = near + (
        torch.log(size.clamp(min=1).float() / near)
        / torch.log(torch.tensor(MAX_DISTANCE / near, device=table.device))
        * (half - near)
    ).long().clamp(max=half - 1 - near)
    bucket = torch.where(size < near, size, far) + (distance < 0) * half
    return table[bucket].permute(2, 0, 1).contiguous()


# ----------
# The engine.
#
# Every linear layer works on all tokens of a batch at once, and each text attends to itself alone. On a processor the
# rows are filled up to a multiple of ROWS (above), so that a text's states are the same bits
# alone and in any batch.


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """The engine with its weights in place.

    prepacked: whether the matrices are in oneDNN's own order (fp32 on a processor, where torch has it); varlen: whether
    the GPU's kernel for texts of different lengths is used; space: work space that batches share.
    """

    weights: Weights
    device: Any
    dtype: Any
    prepacked: bool
    varlen: bool
    space: dict[str, Tensor] = field(default_factory=dict)
    padded: bool = False

    @property
    def alone(self) -> bool:
        """Whether a text's states are the same bits whatever else is in the batch."""
        return str(self.device.type) == "cpu"

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            h = self._embedded(batch)
            bias, heads = None, self.weights.heads
            if self.weights.relative is not None:
                length = int(batch.lengths.max(initial=1))
                bias = self.space.get("bias")
                if bias is None or bias.shape[1] < length:
                    bias = self.space["bias"] = distance_bias(self.weights.relative, length)
            if self.device.type == "cpu":
                attend, after_layer = cpu_attention(batch, heads, bias), self._on_processor
            else:
                attend = cuda_attention(batch, heads, bias, self.varlen, self.device)
                after_layer = self._on_gpu
            for layer in self.weights.layers:
                h = after_layer(h, layer, attend)
            return h[: int(batch.ptr[-1])]

    def _embedded(self, batch: Tokens) -> Tensor:
        """The tokens of a batch before the first layer: [T, H]; on a processor with rows behind them up to ROWS."""
        torch, embedding, device = require("torch", extra="neural"), self.weights.embedding, self.device
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
        """The states [T, H] after a layer."""
        f = require("torch", extra="neural").nn.functional
        shape, eps = (h.shape[1],), self.weights.eps
        context = attend(f.linear(h, layer.qkv, layer.qkv_bias))
        y = h + f.linear(context, layer.out, layer.out_bias)
        h = f.layer_norm(y, shape, layer.norm1, layer.norm1_bias, eps)
        up = f.gelu(f.linear(h, layer.up, layer.up_bias), approximate=self.weights.approximate)
        y = h + f.linear(up, layer.down, layer.down_bias)
        return f.layer_norm(y, shape, layer.norm2, layer.norm2_bias, eps)

    def _on_processor(self, h: Tensor, layer: BertLayer, attend: Attend) -> Tensor:
        """As `_on_gpu`, in work space that stays: fresh memory costs a tenth of the time."""
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
        space = self.space.get(place)
        if space is None or space.shape[0] < x.shape[0]:
            space = self.space[place] = x.new_empty(x.shape[0], weight.shape[0])
        y = torch.addmm(bias, x, weight.t(), out=space[: x.shape[0]])
        return torch.ops.aten.gelu_(y, approximate=approximate) if active else y


def torch_engine(weights: Weights, device: str, dtype: str) -> TorchEngine:
    """The engine for these weights on a device ("cpu", "cuda", "cuda:1"), computing in fp32, bf16 or fp16.

    Raises BadValue for another dtype.
    """
    torch = require("torch", extra="neural")
    place, kind = torch.device(device), torch_dtype("torch", dtype)
    placed = _placed(weights, place, kind)
    if place.type != "cpu":
        return TorchEngine(placed, place, kind, False, _has_varlen(device, dtype))
    prepacked = dtype == "fp32" and torch.backends.mkldnn.is_available()
    if prepacked:
        placed = replace(placed, layers=tuple(_prepacked(layer) for layer in placed.layers))
    return TorchEngine(placed, place, kind, prepacked, varlen=False)


def torch_dtype(engine: str, dtype: str) -> Any:  # noqa: ANN401 - a torch.dtype
    """The dtype as torch has it; raises BadValue for one that the engine does not compute in."""
    torch = require("torch", extra="neural")
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if dtype not in dtypes:
        raise BadValue(f"the engine '{engine}' does not compute in {dtype}; expected {', '.join(dtypes)}")
    return dtypes[dtype]


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
        x = torch.zeros(4, 1, 64, device=device, dtype=torch_dtype("torch", dtype))
        ends = torch.tensor([0, 3, 4], dtype=torch.int32, device=device)
        with torch.inference_mode():
            kernel(x, x, x, ends, ends, 3, 3)
    except Exception:  # noqa: BLE001 - whatever it is, the padded way works
        return False
    return True
