"""Weir's own int8 forward pass of BERT-like encoders on a processor: no calibration, no padding.

Matrices are rounded to bytes by column of the product, what flows into them row by row as it comes. Queries,
keys and values decide most of what is lost, so their input is written in two bytes. Attention, norms and sums
stay float32, and so does every vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.encode.attention import cpu_attention, distance_bias
from weir.encode.packed import embed
from weir.encode.tokens import Tokens
from weir.encode.weights import Embedding, Tensor, Weights
from weir.errors import require

__all__ = ["Int8Packed", "pack_int8"]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix in bytes [n, m], transposed for the product, with a scale and a bias for each column [m]."""

    values: Tensor
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Int8Layer:
    """One layer: four matrices in bytes, and two norms (gain, shift)."""

    qkv: Matrix
    out: Matrix
    up: Matrix
    down: Matrix
    norm1: tuple[NDArray[np.float32], NDArray[np.float32]]
    norm2: tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Int8Packed:
    """An engine for processors that multiply bytes quickly; kept: work space that batches share."""

    embedding: Embedding
    layers: tuple[Int8Layer, ...]
    heads: int
    eps: float
    relative: Tensor | None
    kept: dict[str, Any] = field(default_factory=dict)
    padded: bool = False

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        return "packed (int8)"

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        torch = require("torch", extra="neural")
        return {
            "engine": self.name,
            "computes in": "int8 by row and column, 15 bits before attention, float32 elsewhere",
            "torch": str(torch.__version__),
            "numba": str(require("numba", extra="run").__version__),
        }

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        kernel: Any = require("weir.kernels.quantised", extra="run")
        with torch.inference_mode():
            states = embed(self.embedding, batch, torch.device("cpu"), self.eps)
            bias = None if self.relative is None else distance_bias(self.relative, int(batch.lengths.max()))
            attend = cpu_attention(batch, self.heads, bias)
            h = states.numpy()
            rows, width = h.shape
            scale = np.empty(rows, np.float32)
            twice = self._space("twice", 2 * rows, width, torch.int8)
            for layer in self.layers:
                kernel.rows_to_bytes_twice(h, twice.numpy(), scale)
                qkv = self._space("qkv", rows, 3 * width, torch.float32)
                product = self._product(twice, layer.qkv)
                kernel.scaled_twice(product, scale, layer.qkv.scale, layer.qkv.bias, qkv.numpy())
                kernel.rows_to_bytes(attend(qkv).numpy(), twice.numpy(), scale)
                self._sum(kernel, twice[:rows], scale, layer.out, h, layer.norm1)
                kernel.rows_to_bytes(h, twice.numpy(), scale)
                product = self._product(twice[:rows], layer.up)
                wide = self._space("wide", rows, product.shape[1], torch.int8)
                kernel.gelu_rows(product, scale, layer.up.scale, layer.up.bias, wide.numpy(), scale)
                self._sum(kernel, wide, scale, layer.down, h, layer.norm2)
            return states

    def _sum(
        self,
        kernel: Any,  # noqa: ANN401 - the module of kernels
        rows: Tensor,
        scale: NDArray[np.float32],
        matrix: Matrix,
        h: NDArray[np.float32],
        norm: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> None:
        """h plus rows times a matrix, normalised, in place."""
        product = self._product(rows, matrix)
        kernel.sum_and_norm(product, scale, matrix.scale, matrix.bias, h, *norm, self.eps)

    def _product(self, rows: Tensor, matrix: Matrix) -> NDArray[np.int32]:
        torch = require("torch", extra="neural")
        out = self._space("product", rows.shape[0], matrix.values.shape[1], torch.int32)
        torch._int_mm(rows, matrix.values, out=out)
        found: NDArray[np.int32] = out.numpy()
        return found

    def _space(self, name: str, rows: int, columns: int, dtype: Any) -> Tensor:  # noqa: ANN401 - torch's type
        """A table that batches share, grown when one needs more."""
        torch = require("torch", extra="neural")
        space = self.kept.get(name)
        if space is None or space.numel() < rows * columns:
            space = self.kept[name] = torch.empty(rows * columns, dtype=dtype)
        return space[: rows * columns].view(rows, columns)


def pack_int8(weights: Weights) -> Int8Packed:
    """The engine for these weights; needs numba beside torch."""
    require("numba", extra="run")
    layers = tuple(
        Int8Layer(
            qkv=_matrix(x.qkv, x.qkv_bias),
            out=_matrix(x.out, x.out_bias),
            up=_matrix(x.up, x.up_bias),
            down=_matrix(x.down, x.down_bias),
            norm1=(_array(x.norm1), _array(x.norm1_bias)),
            norm2=(_array(x.norm2), _array(x.norm2_bias)),
        )
        for x in weights.layers
    )
    embedding = weights.embedding
    return Int8Packed(embedding, layers, weights.heads, weights.eps, weights.relative)


def _matrix(weight: Tensor, bias: Tensor) -> Matrix:
    torch = require("torch", extra="neural")
    scale = weight.float().abs().amax(1).clamp(min=1e-30) / 127
    values = torch.round(weight.float() / scale[:, None]).to(torch.int8)
    return Matrix(values.t().contiguous(), _array(scale), _array(bias))


def _array(tensor: Tensor) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.ascontiguousarray(tensor.float().numpy())
    return found
