"""From hidden states to one vector for each text, in float32 whatever the engine computed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weir.core.strings import Int64
from weir.encode.models.bert_weights import Tensor, read_state
from weir.encode.models.linear import linear
from weir.encode.recipes.checkpoint import Head
from weir.errors import BadValue, require

__all__ = ["POOLINGS", "Projection", "pool", "read_projection", "unit"]


def _mean(h: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    torch = require("torch", extra="neural")
    total = torch.segment_reduce(h, "sum", lengths=lengths, axis=0, unsafe=True)
    return total / lengths.clamp(min=1)[:, None]


def _first(h: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    return h[starts]


def _last(h: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    return h[starts + lengths - 1]


def _most(h: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    torch = require("torch", extra="neural")
    return torch.segment_reduce(h, "max", lengths=lengths, axis=0, unsafe=True)


POOLINGS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "mean": _mean,
    "cls": _first,
    "last": _last,
    "max": _most,
}


@dataclass(frozen=True, eq=False)
class Projection:
    """A layer behind pooling: a matrix, a norm, or both a matrix and an activation."""

    kind: str
    weight: Tensor
    bias: Tensor | None
    activation: str

    def __call__(self, x: Tensor) -> Tensor:
        """The vectors [n, d] after this layer."""
        torch = require("torch", extra="neural")
        if self.kind == "LayerNorm":
            return torch.nn.functional.layer_norm(x, (x.shape[1],), self.weight, self.bias)
        y = linear(x, self.weight, self.bias)
        return torch.tanh(y) if self.activation == "Tanh" else y


def read_projection(head: Head, device: str) -> Projection:
    """The layer behind pooling that a checkpoint's files hold; raises StoreError where they do not."""
    state = read_state(head.folder)
    tensors = {name.rpartition(".")[2]: t.float().to(device) for name, t in state.items()}
    if "weight" not in tensors:
        raise BadValue(f"{head.folder}: the layer behind pooling has no weight")
    return Projection(head.kind, tensors["weight"], tensors.get("bias"), head.activation)


def pool(h: Tensor, ptr: Int64, pooling: str) -> Tensor:
    """One vector for each text [n, H] from the hidden states [T, H] of its tokens, ptr[i]:ptr[i + 1].

    A text without tokens (a tokenizer without special ones, an empty text) becomes zeros.
    """
    torch = require("torch", extra="neural")
    bounds = torch.from_numpy(ptr).to(h.device)
    lengths = bounds.diff()
    if int((ptr[1:] == ptr[:-1]).sum()) == 0:
        return POOLINGS[pooling](h.float(), bounds[:-1], lengths)
    some = lengths > 0
    found = h.new_zeros(len(lengths), h.shape[1], dtype=torch.float32)
    if h.shape[0]:
        found[some] = POOLINGS[pooling](h.float(), bounds[:-1][some], lengths[some])
    return found


def unit(x: Tensor) -> Tensor:
    """Each row divided by its length; zeros stay zeros."""
    torch = require("torch", extra="neural")
    return torch.nn.functional.normalize(x, dim=1)
