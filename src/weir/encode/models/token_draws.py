"""Which token follows: the likeliest one, or one drawn in proportion to its probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.strings import Int64
from weir.encode.models.bert_weights import Tensor
from weir.errors import require

__all__ = ["WritingOrder", "drawn"]


@dataclass(frozen=True)
class WritingOrder:
    """How a text is continued.

    tokens: at most; temperature: 0 for the likeliest token each time; top_k, top_p: among which tokens one is drawn,
    the likeliest by their number and by the probability that they have together, 0 and 1 for all; seed: of the draws,
    two numbers of 64 bits; alternatives: the likeliest tokens to tell at each place.
    """

    tokens: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: tuple[int, int] = (0, 0)
    alternatives: int = 0


def drawn(scores: Tensor, orders: Sequence[WritingOrder], draws: Sequence[np.random.Generator]) -> Int64:
    """A token for each row of scores float32[n, V]; draws: a generator for each row, asked for one number where its
    temperature is above 0, so that what is drawn belongs to the row and not to those beside it."""
    found: Int64 = scores.argmax(-1).cpu().numpy()
    for row, (order, draw) in enumerate(zip(orders, draws, strict=True)):
        if order.temperature > 0:
            found[row] = _one(scores[row], order, draw.random())
    return found


def _one(scores: Tensor, order: WritingOrder, draw: float) -> int:
    """The token at which the probabilities of a row, the likeliest first, add up to more than a draw from [0, 1)."""
    torch = require("torch", extra="neural")
    ordered = torch.sort(scores.double() / order.temperature, descending=True, stable=True)
    odds = ordered.values.softmax(-1)
    if order.top_k:
        odds = odds[: order.top_k]
    before = odds.cumsum(-1) / odds.sum() - odds / odds.sum()
    odds = odds[before < order.top_p]  # the one that passes it is among them
    ends = odds.cumsum(-1)
    at = int(torch.searchsorted(ends, draw * ends[-1], right=True))
    return int(ordered.indices[min(at, len(odds) - 1)])
