"""Weir's own kernels as an engine: the layers of BERT-like encoders on a processor, without padding.

fp32, bf16 and int8 share all but the products. Sums, norms and what passes from layer to layer are float32; bf16
rounds what products read; int8 writes it as bytes, row by row between the row's ends and matrices by column,
except for queries, keys and values, which are bfloat16.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.encode.attention import distance_bias
from weir.encode.tokens import Tokens
from weir.encode.weights import Embedding, Layer, Tensor, Weights
from weir.errors import MissingExtra, require
from weir.settings import settings

__all__ = ["Tiled", "tiled_engine"]

KINDS = {"fp32": 0, "bf16": 1, "int8": 2}
LOG2E = 1.4426950408889634
MUCH = 1.5
"""Times torch's product that one of tiles may take and still be chosen: norms, attention and GELU win it back."""
COMPUTES = {
    "fp32": "float32",
    "bf16": "bfloat16 products, float32 elsewhere",
    "int8": "int8 products by row and column, bfloat16 for attention, float32 elsewhere",
}


@dataclass(frozen=True, eq=False)
class Tiled:
    """An engine whose vectors are the same bits alone and in any batch; kept: work space, one for each thread.

    shape, layers: as kernels/layers.py takes them; held: what `layers` points to.
    """

    dtype: str
    shape: Any
    layers: Int64
    held: tuple[Tensor, ...]
    embedding: Embedding
    relative: Tensor | None
    threads: int
    kept: list[dict[str, Any]] = field(default_factory=list)
    padded: bool = False

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        return "packed (tiles)"

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        names = {"torch": "neural", "numba": "run", "llvmlite": "run"}
        found: dict[str, object] = {"engine": self.name, "computes in": COMPUTES[self.dtype]}
        return found | {n: str(require(n, extra=extra).__version__) for n, extra in names.items()}

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        parts = _parts(batch, self.threads)
        self.kept.extend({} for _ in range(len(parts) - len(self.kept)))
        if len(parts) == 1:
            return self._states(batch, self.kept[0])
        with ThreadPoolExecutor(len(parts)) as pool:
            return torch.cat(list(pool.map(self._states, parts, self.kept)))

    def _states(self, batch: Tokens, kept: dict[str, Any]) -> Tensor:
        """The states of a part of a batch, in the caller's thread."""
        torch, kernel = require("torch", extra="neural"), require("weir.kernels.layers", extra="run")
        longest, width = int(batch.lengths.max(initial=1)), self.shape.heads * self.shape.size
        states = torch.zeros(int(batch.ptr[-1]) + kernel.MORE, width)
        self._embed(batch, states, kernel)
        space = kept.get("space")
        if space is None or len(space.context) < len(states) or len(space.mask) < longest:
            space = kept["space"] = _space(kernel, self.shape, len(states), longest)
        bias = kept.get("bias")
        if bias is None or (self.relative is not None and bias.shape[2] < longest):
            bias = kept["bias"] = self._bias(longest, kernel.ROWS)
        kernel.forward(self.shape, self.layers, batch.ptr, states.numpy(), bias, space)
        return states[: int(batch.ptr[-1])]

    def _embed(self, batch: Tokens, states: Tensor, kernel: Any) -> None:  # noqa: ANN401 - the module
        """The tokens before the first layer, into `states`."""
        torch, e = require("torch", extra="neural"), self.embedding
        places = np.zeros((len(batch.ids), 2), np.int64)
        places[:, 0] = batch.positions + e.offset
        if batch.segment is not None and e.segments is not None and len(e.segments) > 1:
            places[:, 1] = batch.segment
        tables: tuple[Any, ...] = (e.words, e.positions, e.segments)
        narrow = states if e.project is None else torch.zeros(len(states), e.words.shape[1])
        kernel.embedded(batch.ids, places, *(t.numpy() for t in tables), narrow.numpy())
        kernel.norms(narrow.numpy(), len(batch.ids), e.norm.numpy(), e.norm_bias.numpy(), self.shape.eps)
        if e.project is not None:
            with torch.inference_mode():
                states[:] = torch.nn.functional.linear(narrow, e.project, e.project_bias)

    def _bias(self, longest: int, more: int) -> NDArray[np.float32]:
        """What is added to the scores, for powers of two; `more` rows of nothing behind the last."""
        if self.relative is None:
            return np.zeros((0, 0, 0), np.float32)
        found = np.zeros((self.shape.heads, longest + more, longest), np.float32)
        found[:, :longest] = distance_bias(self.relative, longest).numpy() * np.float32(LOG2E)
        return found


def tiled_engine(weights: Weights, dtype: str) -> Tiled | None:
    """The engine for these weights, computing in fp32, bf16 or int8; None where it does not fit or would be slow.

    It needs numba, a processor with the instructions, widths that fill its tiles, and products that are not far
    behind torch's, which knows units (AMX) that these kernels do not.
    """
    try:
        lanes, tiles = (require(f"weir.kernels.{n}", extra="run") for n in ("lanes", "tiles"))
    except MissingExtra:
        return None
    there = {"fp32": lanes.FAST, "bf16": lanes.HAS_BF16, "int8": lanes.HAS_INT8 and lanes.HAS_BF16}
    if not there.get(dtype, False) or not weights.layers:
        return None
    inner, width = weights.layers[0].up.shape
    size = width // weights.heads
    if any(n % 64 for n in (width, inner, weights.embedding.words.shape[1])) or size % 16:
        return None
    if not _near(dtype, inner, width):
        return None
    return _pack(weights, dtype, lanes, tiles)


def _pack(weights: Weights, dtype: str, lanes: Any, tiles: Any) -> Tiled:  # noqa: ANN401 - modules of kernels
    kernel = require("weir.kernels.layers", extra="run")
    layers = [_laid_out(layer, weights.heads, KINDS[dtype], tiles.PANEL) for layer in weights.layers]
    inner, width = weights.layers[0].up.shape
    half = int(dtype != "fp32")
    tanh = int(weights.approximate == "tanh")
    size = width // weights.heads
    shape = kernel.Shape(KINDS[dtype], half, tanh, weights.heads, size, inner, weights.eps)
    facts = np.array([facts for facts, _ in layers], np.int64)
    held = tuple(tensor for _, tensors in layers for tensor in tensors)
    e = weights.embedding
    names = ("words", "positions", "segments", "norm", "norm_bias", "project", "project_bias")
    moved: dict[str, Any] = {
        n: None if getattr(e, n) is None else getattr(e, n).float().contiguous() for n in names
    }
    if moved["segments"] is None:
        moved["segments"] = moved["words"].new_zeros(1, moved["words"].shape[1])
    return Tiled(
        dtype, shape, facts, held, Embedding(offset=e.offset, **moved), weights.relative, settings().threads
    )


def _laid_out(layer: Layer, heads: int, kind: int, panel: int) -> tuple[list[int], list[Tensor]]:
    """A layer as the kernels read it: addresses and sizes, and the tensors they point to."""
    qkv, qkv_bias = layer.qkv.float().clone(), layer.qkv_bias.float().clone()
    width = layer.out.shape[0]
    part = LOG2E / (width // heads) ** 0.5  # softmax in powers of two
    qkv[:width] *= part
    qkv_bias[:width] *= part
    facts, held = [], []
    pairs = (
        (qkv, qkv_bias),
        (layer.out, layer.out_bias),
        (layer.up, layer.up_bias),
        (layer.down, layer.down_bias),
    )
    # Queries, keys and values decide most of what bytes lose.
    for (weight, bias), into in zip(pairs, (min(kind, KINDS["bf16"]), kind, kind, kind), strict=True):
        values, columns = _panels(weight.float(), bias.float(), into, panel)
        facts += [values.data_ptr(), columns.data_ptr(), weight.shape[1] * (4 >> into), len(values)]
        held += [values, columns]
    norms = [t.float().contiguous() for t in (layer.norm1, layer.norm1_bias, layer.norm2, layer.norm2_bias)]
    return facts + [t.data_ptr() for t in norms], held + norms


def _panels(weight: Tensor, bias: Tensor, kind: int, panel: int) -> tuple[Tensor, Tensor]:
    """A matrix [n, m] in panels of columns of the product, and the facts of these columns, panel by panel."""
    torch = require("torch", extra="neural")
    columns = [bias]
    if kind == KINDS["int8"]:
        scale = weight.abs().amax(1).clamp(min=1e-30) / 127
        weight = torch.round(weight / scale[:, None])
        columns = [scale, weight.sum(1) * scale, bias]
    n, m = weight.shape
    together = 1 << kind
    values = weight.view(n // panel, panel, m // together, together).permute(0, 2, 1, 3)
    values = values.to((torch.float32, torch.bfloat16, torch.int8)[kind]).contiguous()
    return values, torch.stack([c.view(-1, panel) for c in columns], 1).contiguous()


def _space(kernel: Any, shape: Any, rows: int, longest: int) -> Any:  # noqa: ANN401 - the module, its Shape and Space
    """Work space for so many rows, and some more."""
    torch = require("torch", extra="neural")
    rows, longest = rows + rows // 4, -(-longest // 64) * 64
    width, item = shape.heads * shape.size, 4 >> shape.half

    def new(*sizes: int, dtype: Any = torch.float32) -> NDArray[Any]:  # noqa: ANN401 - torch's type
        made: NDArray[Any] = torch.zeros(*sizes, dtype=dtype).numpy()
        return made

    byte, word = torch.uint8, torch.int32
    return kernel.Space(
        rows=new(rows * width * item, dtype=byte),
        qkv=new(rows, 3 * width * item // 4, dtype=word),
        context=new(rows, width),
        chunk=new(kernel.CHUNK * width * 4, dtype=byte),
        wide=new(kernel.CHUNK * shape.inner * 4, dtype=byte),
        narrow=new(kernel.CHUNK * shape.inner, dtype=byte),
        facts=new(kernel.CHUNK, 2),
        keys=new((longest + 16) * max(shape.size, 16), dtype=word),
        values=new(longest * shape.size, dtype=word),
        scores=new(kernel.ROWS, longest),
        shares=new(kernel.ROWS, longest * item, dtype=byte),
        mask=new(longest),
        powers=new(kernel.ROWS),
    )


def _parts(batch: Tokens, threads: int) -> list[Tokens]:
    """A batch cut into runs of texts of about equal size, one for each thread."""
    count = min(threads, len(batch))
    if count < 2:
        return [batch]
    cuts = np.searchsorted(batch.ptr, np.arange(1, count) * int(batch.ptr[-1]) / count)
    bounds = np.unique(np.concatenate([[0], cuts, [len(batch)]]))
    return [batch.take(np.arange(a, z)) for a, z in pairwise(bounds.tolist())]


@cache
def _near(dtype: str, inner: int, width: int) -> bool:
    """Whether tiles multiply nearly as fast as torch here; what stands between the products is faster anyway."""
    torch, kernel = require("torch", extra="neural"), require("weir.kernels.layers", extra="run")
    tiles, kind, rows = require("weir.kernels.tiles", extra="run"), KINDS[dtype], 5 * kernel.CHUNK
    given, weight, bias = torch.ones(rows, width), torch.ones(inner, width), torch.ones(inner)
    values, columns = _panels(weight, bias, kind, tiles.PANEL)
    facts = np.array([values.data_ptr(), columns.data_ptr(), width * (4 >> kind), len(values)], np.int64)
    out, ones = torch.ones(rows, inner), torch.ones(rows, 2)
    addresses = (given.data_ptr(), ones.data_ptr(), out.data_ptr(), out.data_ptr(), 4 * inner)
    ways = [partial(kernel.multiplied, kind, tiles.ADD, 0, facts, (rows, *addresses))]
    if dtype == "int8":
        ways.append(partial(torch._int_mm, given.to(torch.int8), weight.to(torch.int8).t()))
    else:
        x, w, b = (t.to(torch.bfloat16 if kind else torch.float32) for t in (given, weight, bias))
        ways.append(partial(torch.nn.functional.linear, x, w, b))
        if torch.backends.mkldnn.is_available():
            onednn = torch.ops.mkldnn._linear_pointwise
            ways.append(partial(onednn, x, w.to_mkldnn(), b, "none", [], ""))
    with torch.inference_mode():
        own, *others = _seconds(ways)
    return own / settings().threads <= MUCH * min(others)


def _seconds(ways: Sequence[Callable[[], object]]) -> list[float]:
    """Of each way the best of some repetitions, taken in turn: other work on the machine only ever adds."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(15):
        for way, seconds in zip(ways, taken, strict=True):
            begun = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - begun)
    return [min(seconds) for seconds in taken]
