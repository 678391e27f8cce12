"""Read checkpoints' weights as NumPy arrays, named alike for all BERT-like models."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import MissingExtra, StoreError, require
from weir.models.checkpoints import ROBERTA, Checkpoint

Array: TypeAlias = NDArray[Any]

ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
"""{name of GELU in config.json: its approximation, none or tanh}."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """A checkpoint's embedding tables."""

    words: Array
    """[V, E]."""
    positions: Array
    """[P, E], from row `offset`."""
    offset: int
    segments: Array | None
    """[2, E] or None."""
    norm: Array
    norm_bias: Array
    project: Array | None
    """[H, E] if embeddings are narrower than layers, else None."""
    project_bias: Array | None


@dataclass(frozen=True, eq=False)
class BertLayer:
    """A layer's matrices qkv [3H, H], out [H, H], up [F, H] and down [H, F], with biases and two norms."""

    qkv: Array
    qkv_bias: Array
    out: Array
    out_bias: Array
    norm1: Array
    norm1_bias: Array
    up: Array
    up_bias: Array
    down: Array
    down_bias: Array
    norm2: Array
    norm2_bias: Array


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of BERT, or of a relative that normalises after each sum."""

    embedding: Embedding
    layers: tuple[BertLayer, ...]
    heads: int
    eps: float
    """Epsilon of the norms."""
    approximate: str
    """Approximation of GELU: none or tanh."""
    relative: Array | None
    """[buckets, heads]: MPNet's distance bias, or None."""


@dataclass(frozen=True)
class _Names:
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
MPNET = replace(
    BERT,
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    out="attention.attn.o",
    norm1="attention.LayerNorm",
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
NAMES = dict.fromkeys(("bert", "dpr", "roberta", "xlm-roberta", "camembert", "electra"), BERT)
NAMES |= {"mpnet": MPNET, "distilbert": DISTILBERT}


def supported(checkpoint: Checkpoint) -> bool:
    """Return True if Weir's own engines know a checkpoint's architecture and settings."""
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
    """Return a supported checkpoint's weights; raises StoreError for missing or damaged tensors."""
    config, names = checkpoint.config, NAMES[checkpoint.architecture]
    state = ModelState(checkpoint.folder)
    activation = config.get("hidden_act", config.get("activation", "gelu"))
    shifted = checkpoint.architecture in ROBERTA
    embedding = Embedding(
        words=state["embeddings.word_embeddings.weight"],
        positions=state["embeddings.position_embeddings.weight"],
        offset=int(config.get("pad_token_id", 1)) + 1 if shifted else 0,
        segments=state.tensor("embeddings.token_type_embeddings.weight"),
        norm=state["embeddings.LayerNorm.weight"],
        norm_bias=state["embeddings.LayerNorm.bias"],
        project=state.tensor("embeddings_project.weight"),
        project_bias=state.tensor("embeddings_project.bias"),
    )
    count, heads = (int(config[n]) for n in names.dims)
    layers = []
    for number in range(count):
        at = names.layer.format(number)
        parts = [at + p for p in (names.query, names.key, names.value)]
        layers.append(
            BertLayer(
                qkv=np.concatenate([state[p + ".weight"] for p in parts]),
                qkv_bias=np.concatenate([state[p + ".bias"] for p in parts]),
                **{
                    f"{field}{suffix}": state[f"{at}{getattr(names, field)}.{kind}"]
                    for field in ("out", "norm1", "up", "down", "norm2")
                    for suffix, kind in (("", "weight"), ("_bias", "bias"))
                },
            )
        )
    return Weights(
        embedding=embedding,
        layers=tuple(layers),
        heads=heads,
        eps=float(config.get("layer_norm_eps", 1e-12)),
        approximate=ACTIVATIONS[activation],
        relative=state.tensor("encoder.relative_attention_bias.weight"),
    )


def read_state(folder: Path) -> dict[str, Array]:
    """Return all tensors of a checkpoint by name, without running its code.

    bfloat16, and floats of .bin files, become float32. Raises StoreError for missing or unreadable weights,
    MissingExtra without safetensors (.bin: torch).
    """
    files = sorted(folder.glob("*.safetensors"))
    state: dict[str, Array] = {}
    try:
        for path in files:
            state |= _read_safetensors(path)
        for path in () if files else sorted(folder.glob("pytorch_model*.bin")):
            tensors = require("torch", extra="torch").load(path, map_location="cpu", weights_only=True)
            state |= {
                n: (t.float() if not t.is_complex() and t.is_floating_point() else t).numpy()
                for n, t in tensors.items()
            }
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - each library has errors of its own for damaged files
        raise StoreError(
            f"{folder}: the weights cannot be read ({error}); fetch the checkpoint again"
        ) from None
    if not state:
        raise StoreError(f"{folder}: no weights there; expected *.safetensors or pytorch_model.bin")
    return state


def _read_safetensors(path: Path) -> dict[str, Array]:
    opened = require("safetensors", extra="neural").safe_open(str(path), "numpy")
    with opened as file:
        names = list(file.keys())
        kinds = {name: file.get_slice(name).get_dtype() for name in names}
        tensors = {name: file.get_tensor(name) for name in names if kinds[name] != "BF16"}
    if len(tensors) == len(names):
        return tensors
    with path.open("rb") as raw:
        size = int.from_bytes(raw.read(8), "little")
        header = json.loads(raw.read(size))
        for name in names:
            if name not in tensors:
                begin, end = header[name]["data_offsets"]
                raw.seek(8 + size + begin)
                halves = np.frombuffer(raw.read(end - begin), "<u2").astype(np.uint32)
                tensors[name] = (halves << 16).view(np.float32).reshape(header[name]["shape"])
    return tensors


class ModelState:
    """A model's tensors by name, with or without a prefix."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tensors = {  # norms of the first checkpoints are called gamma and beta
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): t
            for name, t in read_state(folder).items()
        }
        self._names = sorted(self._tensors, key=len)

    def tensor(self, *names: str) -> Array | None:
        """Return the tensor of the first name that exists, perhaps after a dotted prefix (the shortest); None
        without one.
        """
        for name in names:
            inner = f".{name}"
            for full in self._names:
                if full == name or full.endswith(inner):
                    return self._tensors[full]
        return None

    def __getitem__(self, names: str | tuple[str, ...]) -> Array:
        """Return a tensor by name, or the first existing name of a tuple; raises StoreError without one."""
        names = (names,) if isinstance(names, str) else names
        tensor = self.tensor(*names)
        if tensor is None:
            raise StoreError(f"{self._folder}: the weights have no '{names[0]}'")
        return tensor


# ----------
# MPNet's bias by distance.


MAX_DISTANCE = 128
"""Distance in tokens from which all distances share a bucket."""


def distance_bias(table: Array, length: int) -> NDArray[np.float32]:
    """Return MPNet's attention bias by token distance, float32[heads, length, length].

    table: [buckets, heads], with wider buckets for larger distances.
    """
    place = np.arange(length)
    distance = place[:, None] - place[None, :]
    half = len(table) // 2
    near = half // 2
    size = np.abs(distance)
    scale = np.log(np.float32(MAX_DISTANCE / near))
    widened = np.log(np.maximum(size, 1).astype(np.float32) / near) / scale * (half - near)
    far = np.minimum(near + np.maximum(widened, 0).astype(np.int64), half - 1)
    bucket = np.where(size < near, size, far) + (distance < 0) * half
    return np.ascontiguousarray(table[bucket].transpose(2, 0, 1), np.float32)
