"""Maxima of a vocabulary's logits over texts' tokens; upper bounds spare most products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Float32, Int64
from weir.kernels.jit import jit
from weir.kernels.simd import ROWS, WIDTH, dot32, int8_tile, lowest_bit


@jit
def raise_maxima(
    panels: NDArray[np.uint32], worth: Float32, bound: Float32, weight: Float32, bias: Float32,
    states: Float32, ptr: Int64, packed: NDArray[np.int8], facts: Float32, packed_ptr: Int64, first: int,
    stop: int, best: Float32,
) -> None:  # fmt: skip
    """Raise `best`, float32[texts, terms], to each term's largest logit over each text's tokens, for terms of
    panels first..stop-1.

    A logit is a token's state times a term's weights, plus the term's bias. NaN replaces the maximum.

    panels: uint32[panels, groups, WIDTH], the terms' bytes in the layout of `int8_tile`.
    worth: float32[panels, WIDTH], the value of one unit of a term's bytes.
    bound: float32[panels, WIDTH], a term's bias plus the largest error of a logit from bytes, very small for
        padding.
    weight, bias: float32[terms, d], float32[terms].
    states: float32[tokens, d], of text i states[ptr[i]:ptr[i + 1]].
    packed, facts: int8[rows, 4 * groups], float32[rows, 3] in the layout of `int8_tile`.
    packed_ptr: text i has the packed rows packed_ptr[i]:packed_ptr[i + 1], padded to a multiple of ROWS.
    """
    d, groups, stride = states.shape[1], packed.shape[1] // 4, packed.strides[0]
    lane, masks = np.empty((2, WIDTH), np.float32), np.zeros(ROWS, np.int64)
    states_at, weight_at, packed_at = states.ctypes.data, weight.ctypes.data, packed.ctypes.data
    facts_at, lane_at, masks_at = facts.ctypes.data, lane.ctypes.data, masks.ctypes.data
    for p in range(first, stop):
        panel = panels.ctypes.data + p * panels.strides[0]
        last = min(WIDTH, len(weight) - p * WIDTH)
        for text in range(len(ptr) - 1):
            for i in range(WIDTH):
                lane[0, i], lane[1, i] = worth[p, i], bound[p, i]
            for i in range(last):
                lane[1, i] -= best[text, p * WIDTH + i]
            for q in range(packed_ptr[text], packed_ptr[text + 1], ROWS):
                hits = int8_tile(
                    panel, packed_at + q * stride, groups, stride, facts_at + q * facts.strides[0], lane_at,
                    masks_at,
                )  # fmt: skip
                while hits:
                    r = lowest_bit(hits)
                    hits &= hits - 1
                    token, mask = ptr[text] + q - packed_ptr[text] + r, masks[r]
                    while mask:
                        i = lowest_bit(mask)
                        mask &= mask - 1
                        if token >= ptr[text + 1] or i >= last:
                            continue
                        term = p * WIDTH + i
                        logit = bias[term] + dot32(
                            states_at + token * states.strides[0], weight_at + term * weight.strides[0], d
                        )
                        if logit > best[text, term] or np.isnan(logit):
                            best[text, term] = logit
                            lane[1, i] = bound[p, i] - logit
