"""Attention over packed tokens: every text attends to itself alone, and no place is spent on padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from weir.core.strings import Int64
from weir.encode.models.bert_weights import Tensor
from weir.encode.models.tokens import Tokens
from weir.errors import require

__all__ = ["Attend", "cpu_attention", "cuda_attention", "distance_bias"]

Attend: TypeAlias = Callable[[Tensor], Tensor]
"""Queries, keys and values [T, 3H] to contexts [T, H]."""

MAX_DISTANCE = 128


def cpu_attention(batch: Tokens, heads: int, bias: Tensor | None) -> Attend:
    """Attention on the processor: one call for each run of texts of equal length.

    bias: [heads, L, L] added to the scores, L the longest length, or None.
    """
    torch = require("torch", extra="neural")
    runs = [(*run, _mask(batch, *run, bias)) for run in _runs(batch.ptr)]

    def attend(qkv: Tensor) -> Tensor:
        width = qkv.shape[1] // 3
        context = qkv.new_empty(qkv.shape[0], width)
        context[int(batch.ptr[-1]) :] = 0  # rows behind the last token
        for start, stop, length, mask in runs:
            count = (stop - start) // length
            part = qkv[start:stop].view(count, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            found = torch.nn.functional.scaled_dot_product_attention(*part, attn_mask=mask)
            context[start:stop].view(count, length, heads, -1).copy_(found.transpose(1, 2))
        return context

    return attend


def cuda_attention(batch: Tokens, heads: int, bias: Tensor | None, varlen: bool, device: Any) -> Attend:  # noqa: ANN401 - a torch.device
    """Attention on a GPU: torch's kernel for texts of different lengths, or a padded table where it does not apply.

    varlen: whether that kernel may be used (half precision, no bias).
    """
    torch = require("torch", extra="neural")
    longest = int(batch.lengths.max(initial=1))
    if varlen and bias is None and batch.seen is None:
        kernel = require("torch.nn.attention.varlen", extra="neural").varlen_attn
        ends = torch.from_numpy(batch.ptr).to(device, torch.int32, non_blocking=True)

        def attend_packed(qkv: Tensor) -> Tensor:
            q, k, v = qkv.view(qkv.shape[0], 3, heads, -1).unbind(1)
            return kernel(q, k, v, ends, ends, longest, longest).reshape(qkv.shape[0], -1)

        return attend_packed
    mask, seen = (torch.from_numpy(m).to(device, non_blocking=True) for m in (batch.mask(), batch.attended()))

    def attend_padded(qkv: Tensor) -> Tensor:
        table = qkv.new_zeros(*mask.shape, qkv.shape[1])
        table[mask] = qkv
        part = table.view(*mask.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)
        added = torch.zeros(mask.shape, dtype=qkv.dtype, device=device).masked_fill(~seen, float("-inf"))
        scores = added[:, None, None, :]
        if bias is not None:
            scores = scores + bias[:, :longest, :longest]
        found = torch.nn.functional.scaled_dot_product_attention(*part, attn_mask=scores)
        return found.transpose(1, 2).reshape(*mask.shape, -1)[mask]

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


def _mask(batch: Tokens, start: int, stop: int, length: int, bias: Tensor | None) -> Tensor | None:
    """What is added to the scores of a run of texts, see `_runs`: the bias, and nothing of tokens that are not seen."""
    torch = require("torch", extra="neural")
    own = None if bias is None else bias[:, :length, :length]
    if batch.seen is None:
        return own
    first = int(np.searchsorted(batch.ptr, start, side="right")) - 1
    seen = batch.seen[first : first + (stop - start) // length]
    table = torch.from_numpy(np.arange(length) < seen[:, None])[:, None, None, :]
    return table if own is None else own.masked_fill(~table, float("-inf"))


def _runs(ptr: Int64) -> Iterator[tuple[int, int, int]]:
    """(first token, one past the last, length) of each run of neighbouring texts of equal length."""
    bounds = ptr.tolist()
    i, count = 0, len(bounds) - 1
    while i < count:
        length, j = bounds[i + 1] - bounds[i], i
        while j < count and bounds[j + 1] - bounds[j] == length:
            j += 1
        if length:
            yield bounds[i], bounds[j], length
        i = j
