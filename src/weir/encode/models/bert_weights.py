"""The weights of BERT-like checkpoints under one set of names, whatever the architecture calls them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from weir.encode.recipes.checkpoint import Checkpoint
from weir.errors import StoreError, require

__all__ = ["BertLayer", "Embedding", "Tensor", "Weights", "read_state", "read_weights", "supported"]

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
MPNET = _Names(
    "encoder.layer.{}.",
    "attention.attn.q",
    "attention.attn.k",
    "attention.attn.v",
    "attention.attn.o",
    "attention.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
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
NAMES = {
    "bert": BERT,
    "dpr": BERT,
    "roberta": BERT,
    "xlm-roberta": BERT,
    "camembert": BERT,
    "electra": BERT,
    "mpnet": MPNET,
    "distilbert": DISTILBERT,
}
POSITIONS_BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Positions start behind the number of the padding token."""


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
    state = _Stripped(read_state(checkpoint.folder), checkpoint.folder)
    activation = config.get("hidden_act", config.get("activation", "gelu"))
    shifted = checkpoint.architecture in POSITIONS_BEHIND_PADDING
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
    layers, heads = (int(config[n]) for n in names.dims)
    return Weights(
        embedding=embedding,
        layers=tuple(_layer(torch, state, names, number) for number in range(layers)),
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


class _Stripped:
    """Tensors by the names of the bare model: without the prefix that a model with a head puts before them."""

    def __init__(self, state: dict[str, Tensor], folder: Path) -> None:
        anchor = "embeddings.word_embeddings.weight"
        found = min((n for n in state if n.endswith(anchor)), key=len, default=anchor)
        self._prefix, self._folder = found.removesuffix(anchor), folder
        self._state = {_modern(n): t for n, t in state.items()}

    def get(self, name: str) -> Tensor | None:
        return self._state.get(self._prefix + name)

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        if found is None:
            raise StoreError(f"{self._folder}: the weights have no '{self._prefix}{name}'")
        return found


def _modern(name: str) -> str:
    """Norms of the first checkpoints are called gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _layer(torch: Any, state: _Stripped, names: _Names, number: int) -> BertLayer:  # noqa: ANN401 - a module
    at = names.layer.format(number)
    parts = [at + p for p in (names.query, names.key, names.value)]
    return BertLayer(
        qkv=torch.cat([state[p + ".weight"] for p in parts]),
        qkv_bias=torch.cat([state[p + ".bias"] for p in parts]),
        **{
            f"{field}{suffix}": state[f"{at}{getattr(names, field)}.{kind}"]
            for field in ("out", "norm1", "up", "down", "norm2")
            for suffix, kind in (("", "weight"), ("_bias", "bias"))
        },
    )
