"""Heads: what stands behind the hidden states of tokens, as values that each engine computes in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weir.errors import BadValue
from weir.models.checkpoints import Head
from weir.models.weights import Array, read_state


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer behind pooling or behind the states of tokens: "LayerNorm", or "Dense" [d, h] and an activation.

    activation: "", Identity, Tanh, relu or gelu. added: a matrix [d, h] whose product with the input is added, an empty
    one where the input itself is, or None.
    """

    kind: str
    weight: Array
    bias: Array | None = None
    activation: str = ""
    added: Array | None = None


@dataclass(frozen=True, eq=False)
class VectorHead:
    """One vector for each text, float32[n, d].

    pooling: mean, cls, last or max, of the states of its tokens; layers: behind pooling; normalise: whether vectors are
    brought to length 1. A text without tokens (a tokenizer without special ones, an empty text) pools to zeros.
    """

    pooling: str
    layers: tuple[Layer, ...] = ()
    normalise: bool = False


@dataclass(frozen=True, eq=False)
class TokenHead:
    """A vector for each token, float32[T, d]; of length 1 where `normalise`.

    precise: whether the layers compute in float32 whatever the engine computes in.
    """

    layers: tuple[Layer, ...] = ()
    normalise: bool = False
    precise: bool = True


@dataclass(frozen=True, eq=False)
class ClassHead:
    """The outputs of each text's classes, float32[n, classes]: two layers over the state of its first token."""

    layers: tuple[Layer, Layer]


@dataclass(frozen=True, eq=False)
class Transform:
    """What a head for masked words does first: a product, GELU (approximate: none or tanh), a norm."""

    weight: Array
    bias: Array
    approximate: str
    norm: Array
    norm_bias: Array
    eps: float


@dataclass(frozen=True, eq=False)
class TermHead:
    """What each term of a vocabulary weighs in each text, float32[n, V].

    weight: [V, E]; bias: [V]; transform: what comes before, or None; pooling: max or sum over tokens; activation:
    relu gives log(1 + relu(x)), log1p_relu the logarithm of one and that.
    """

    transform: Transform | None
    weight: Array
    bias: Array
    pooling: str
    activation: str


@dataclass(frozen=True)
class OwnHead:
    """The head that a checkpoint's own class or graph has: "classes", or "terms" with a pooling and an activation."""

    kind: str
    pooling: str = ""
    activation: str = ""


AnyHead: TypeAlias = VectorHead | TokenHead | ClassHead | TermHead | OwnHead


def read_layer(head: Head) -> Layer:
    """The layer behind pooling that the files of a checkpoint hold; raises BadValue where they do not."""
    tensors = {name.rpartition(".")[2]: array for name, array in read_state(head.folder).items()}
    if "weight" not in tensors:
        raise BadValue(f"{head.folder}: the layer behind pooling has no weight")
    return Layer(head.kind, tensors["weight"], tensors.get("bias"), head.activation)
