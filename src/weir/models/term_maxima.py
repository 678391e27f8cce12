"""Compute each vocabulary term's largest logit over a text's tokens, at least 0."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir import kernels
from weir.core.strings import Float32, Int64, offsets
from weir.kernels.jit import available
from weir.models.weights import Array
from weir.settings import settings

LARGEST_NORM = 1e15
"""States with a larger norm are not compared by bytes, since squares and sums of floats could overflow."""
SMALLEST_UNIT = 1e-30
"""A smaller unit of bytes is taken as 0."""
PADDING = -1e30
"""Bias of the padding terms of the last panel."""
MOST_DIMENSIONS = 1 << 15
"""Most dimensions whose byte products add up in 32 bits."""


@dataclass(frozen=True, eq=False)
class TermMaxima:
    """A model's output layer, packed to find each term's largest logit in a text."""

    weight: Float32
    """float32[terms, d]."""
    bias: Float32
    panels: NDArray[np.uint32]
    """`weight` as bytes, in panels of the processor's width."""
    unit: Float32
    """float32[panels, width], like the fields below: value of one unit of a term's bytes."""
    length: Float32
    """Norm of a term's weights."""
    error: Float32
    """Norm of the difference between a term's weights and its bytes."""
    shift: Float32
    """Bias, very small for padding."""

    @staticmethod
    def of(weight: Array, bias: Array) -> TermMaxima | None:
        """Return an output layer, weight [terms, d] and bias [terms], packed; None if the processor lacks byte
        products, for infinite numbers and too many dimensions.
        """
        weight, bias = (np.ascontiguousarray(array, np.float32) for array in (weight, bias))
        (terms, d), length = weight.shape, _norms(weight)
        fits = bias.shape == length.shape and d <= MOST_DIMENSIONS
        finite = np.isfinite(length).all() and np.isfinite(bias).all()
        if not (fits and finite and available() and kernels.simd.BYTE_PRODUCTS):
            return None
        width = kernels.simd.WIDTH
        panels, groups = -(-terms // width), -(-d // 4)
        whole, unit, error = _quantised(weight, 127)
        bytes_ = np.full((panels * width, 4 * groups), 128, np.uint8)
        bytes_[:terms, :d] = whole.astype(np.int16) + 128
        words = bytes_.view(np.uint32).reshape(panels, width, groups).transpose(0, 2, 1)

        def by_panel(values: Float32, fill: float = 0.0) -> Float32:
            table = np.full(panels * width, fill, np.float32)
            table[:terms] = values
            return table.reshape(panels, width)

        facts = by_panel(unit), by_panel(length), by_panel(error), by_panel(bias, PADDING)
        return TermMaxima(weight, bias, np.ascontiguousarray(words), *facts)

    def of_texts(self, states: Float32, lengths: Int64) -> Float32:
        """Return each term's largest logit over each text's tokens, at least 0, float32[texts, terms].

        states: float32[tokens, d], text by text.
        lengths: each text's number of tokens.
        """
        states, rows = np.ascontiguousarray(states), kernels.simd.ROWS
        d, ptr, packed_ptr = states.shape[1], offsets(lengths), offsets(-(-lengths // rows) * rows)
        norm = _norms(states)
        usable = norm <= LARGEST_NORM
        whole, unit, error = _quantised(np.where(usable[:, None], states, 0), kernels.simd.LARGEST_BYTE)
        place = np.repeat(packed_ptr[:-1] - ptr[:-1], lengths) + np.arange(len(states))
        packed = np.zeros((packed_ptr[-1], 4 * self.panels.shape[1]), np.int8)
        packed[place, :d] = whole
        facts = np.zeros((len(packed), 3), np.float32)
        facts[:, 2] = np.inf
        facts[place, 2] = 0
        facts[place, 1] = np.where(usable, unit, np.nan)  # what is no number is computed in any case
        facts.view(np.int32)[place, 0] = -128 * whole.sum(1, dtype=np.int32)
        longest, away = np.max(norm, initial=0, where=usable), np.max(error, initial=0)
        rounding = (d + 32) * 2.0**-22 * (longest * self.length + np.abs(self.shift))
        bound = self.shift + longest * self.error + away * (self.length + self.error) + rounding
        best = np.zeros((len(lengths), len(self.weight)), np.float32)

        def raised(first: int, stop: int) -> None:
            kernels.term_maxima.raise_maxima(
                self.panels, self.unit, bound, self.weight, self.bias, states, ptr, packed, facts, packed_ptr,
                first, stop, best,
            )  # fmt: skip

        cuts = np.linspace(0, len(self.panels), settings().threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(settings().threads) as pool:
            list(pool.map(raised, cuts[:-1], cuts[1:]))
        return best


def _norms(rows: Float32) -> Float32:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32)


def _quantised(rows: Float32, largest: int) -> tuple[NDArray[np.int8], Float32, Float32]:
    unit = np.abs(rows).max(1, initial=0) / np.float32(largest)
    unit[unit < SMALLEST_UNIT] = 0
    whole = np.rint(np.divide(rows, unit[:, None], out=np.zeros_like(rows), where=unit[:, None] > 0))
    return whole.astype(np.int8), unit, _norms(rows - whole * unit[:, None])
