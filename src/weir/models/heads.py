"""The computation after a model's token states, as values that each engine runs in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weir.errors import BadValue
from weir.models.checkpoints import Head
from weir.models.weights import Array, read_state


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer over vectors: "LayerNorm", or "Dense" with a [d, h] matrix and an activation."""

    kind: str
    weight: Array
    bias: Array | None = None
    activation: str = ""
    """"" for none, Identity, Tanh, relu or gelu."""
    added: Array | None = None
    """Matrix [d, h] whose product with the input is added to the output; an empty matrix adds the input
    itself."""


@dataclass(frozen=True, eq=False)
class VectorHead:
    """A head that gives a vector per text, float32[n, d]; zeros for a text without tokens."""

    pooling: str
    """mean, cls, last or max over token states."""
    layers: tuple[Layer, ...] = ()
    normalise: bool = False
    """Scale vectors to length 1."""


@dataclass(frozen=True, eq=False)
class TokenHead:
    """A head that gives a vector per token, float32[tokens, d]."""

    layers: tuple[Layer, ...] = ()
    normalise: bool = False
    """Scale vectors to length 1."""
    precise: bool = True
    """Compute the layers in float32 on every engine."""


@dataclass(frozen=True, eq=False)
class ClassHead:
    """A head that gives class scores per text, float32[n, classes], from the first token's state."""

    layers: tuple[Layer, Layer]


@dataclass(frozen=True, eq=False)
class Transform:
    """First step of a masked-language-model head: linear layer, GELU, layer normalisation."""

    weight: Array
    bias: Array
    approximate: str
    """"none" or "tanh"."""
    norm: Array
    norm_bias: Array
    eps: float


@dataclass(frozen=True, eq=False)
class TermHead:
    """A head that gives each vocabulary term's weight in each text, float32[n, terms]."""

    transform: Transform | None
    weight: Array
    """[terms, E]."""
    bias: Array
    """[terms]."""
    pooling: str
    """max or sum over tokens."""
    activation: str
    """relu: log(1 + relu(x)); log1p_relu: log(1 + log(1 + relu(x)))."""


@dataclass(frozen=True)
class OwnHead:
    """A head computed by the checkpoint's own class or graph."""

    kind: str
    """"classes", or "terms" with a pooling and an activation."""
    pooling: str = ""
    activation: str = ""


AnyHead: TypeAlias = VectorHead | TokenHead | ClassHead | TermHead | OwnHead


def read_layer(head: Head) -> Layer:
    """Return a layer after pooling from its files; raises BadValue without a weight, StoreError for missing or
    unreadable files.
    """
    tensors = {name.rpartition(".")[2]: array for name, array in read_state(head.folder).items()}
    if "weight" not in tensors:
        raise BadValue(f"{head.folder}: the layer after pooling has no weight")
    return Layer(head.kind, tensors["weight"], tensors.get("bias"), head.activation)
