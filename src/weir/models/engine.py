"""The engine that turns tokens into hidden states and vectors, and how it is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weir.core.strings import Int64
from weir.errors import BadValue, require
from weir.models.checkpoints import Checkpoint, Head
from weir.models.hardware import ComputePlace, declared_device, instructions, package_version
from weir.models.tokens import Tokens
from weir.models.torch_engine import Tensor, linear
from weir.models.weights import read_state, read_weights, supported
from weir.settings import settings

# ----------
# Pooling: hidden states to one float32 vector for each text.


@dataclass(frozen=True, eq=False)
class Projection:
    """A layer behind pooling or behind the states of tokens: a norm, or a matrix [d, h] and an activation.

    added: a matrix [d, h] whose product with the input is added, an empty one where the input itself is, or None.
    """

    kind: str
    weight: Tensor
    bias: Tensor | None = None
    activation: str = ""
    added: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The vectors [n, d] after this layer."""
        torch = require("torch", extra="neural")
        if self.kind == "LayerNorm":
            return torch.nn.functional.layer_norm(x, (x.shape[1],), self.weight, self.bias)
        y = linear(x, self.weight, self.bias)
        y = torch.tanh(y) if self.activation == "Tanh" else y
        if self.added is None:
            return y
        return y + (linear(x, self.added) if self.added.numel() else x)


def read_projection(head: Head, device: str) -> Projection:
    """The layer behind pooling that a checkpoint's files hold; raises StoreError where they do not."""
    torch = require("torch", extra="neural")
    tensors = {
        name.rpartition(".")[2]: torch.from_numpy(array).to(device, torch.float32, copy=True)
        for name, array in read_state(head.folder).items()
    }
    if "weight" not in tensors:
        raise BadValue(f"{head.folder}: the layer behind pooling has no weight")
    return Projection(head.kind, tensors["weight"], tensors.get("bias"), head.activation)


def pool(h: Tensor, ptr: Int64, pooling: str) -> Tensor:
    """One vector for each text, float32[n, H], from the hidden states [T, H] of its tokens, ptr[i]:ptr[i + 1].

    A text without tokens (a tokenizer without special ones, an empty text) becomes zeros.
    """
    torch = require("torch", extra="neural")
    bounds = torch.from_numpy(ptr).to(h.device)
    lengths = bounds.diff()
    some = slice(None) if (ptr[1:] > ptr[:-1]).all() else lengths > 0
    vectors = h.new_zeros(len(lengths), h.shape[1], dtype=torch.float32)
    if h.shape[0]:
        states, starts, sizes = h.float(), bounds[:-1][some], lengths[some]
        if pooling == "cls":
            vectors[some] = states[starts]
        elif pooling == "last":
            vectors[some] = states[starts + sizes - 1]
        else:
            how = "sum" if pooling == "mean" else pooling
            rows = torch.segment_reduce(states, how, lengths=sizes, axis=0, unsafe=True)
            vectors[some] = rows / sizes[:, None] if pooling == "mean" else rows
    return vectors


def unit(x: Tensor) -> Tensor:
    """Each row divided by its length; zeros stay zeros."""
    torch = require("torch", extra="neural")
    return torch.nn.functional.normalize(x, dim=1)


# ----------
# Engines, which turn a batch of tokens into hidden states, and the rule that chooses one.
#
# Nothing is measured: the rule looks at what is installed, the device and the instruction set, so that the same
# settings on the same machine always name the same engine. `weir list models NAME` prints its choice, and why.


DTYPES = ("fp32", "bf16", "fp16", "int8")
ENGINES = ("torch", "openvino", "transformers")
NEEDED = {
    "torch": ("torch", "safetensors", "tokenizers"),
    "transformers": ("torch", "transformers", "tokenizers"),
    "openvino": ("torch", "openvino", "safetensors", "tokenizers"),
}
"""Distributions without which an engine cannot run."""


class Engine(Protocol):
    """A model ready to compute: the seam between batching and whatever multiplies the matrices."""

    @property
    def padded(self) -> bool:
        """Whether a batch costs its texts times the longest of them."""
        ...

    @property
    def alone(self) -> bool:
        """Whether a text's states are the same bits whatever else is in the batch."""
        ...

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states of the tokens of a batch: a torch tensor [T, H], without padding."""
        ...


@dataclass(frozen=True)
class Declared:
    """The engine that settings come to on this machine, before anything is loaded; why: the reason, for people."""

    engine: str
    place: ComputePlace
    why: str

    @property
    def label(self) -> str | None:
        """What stands under "engine" in a description, such as "torch cpu fp32, tokenizers 0.23"; None where a package
        that it needs is not installed.

        It holds what can move a number beyond its last bits and is not in the checkpoint: the engine, the kind of
        device, what it computes in, the version of the tokenizer's library, and for int8 of what chose the bytes.
        """
        needed = [*NEEDED[self.engine], *(["nncf"] if self.place.dtype == "int8" else [])]
        if any(package_version(name) is None for name in needed):
            return None
        deciding = ["tokenizers", *(["openvino", "nncf"] if self.place.dtype == "int8" else [])]
        versions = [f"{name} {package_version(name)}" for name in deciding]
        return ", ".join([f"{self.engine} {self.place.kind} {self.place.dtype}", *versions])


def check_engine(engine: object, dtype: object, engines: tuple[str, ...] = ENGINES) -> None:
    """Raise BadValue for an engine or a dtype that is not known, and for two that do not go together."""
    for name, value, allowed in (("dtype", dtype, DTYPES), ("engine", engine, ("auto", *engines))):
        if value not in allowed:
            raise BadValue(f"{name} is {value!r}; expected {', '.join(allowed)}")
    if dtype == "int8" and engine in ("torch", "transformers"):
        raise BadValue(f"the engine '{engine}' does not compute in int8; take 'openvino', bf16 or fp32")


def declare(
    checkpoint: Checkpoint, engine: str, dtype: str, device: str, own: bool | None = None
) -> Declared:
    """The engine that these settings come to here, by a fixed rule.

    engine: a name of ENGINES, which then is taken, or auto; dtype: the least precision to compute in; device: auto,
    cpu, cuda or cuda:1; own: whether the engine torch serves, None for what `supported` says. On a GPU, and in fp32
    anywhere, it is torch without padding, or transformers where that does not know the architecture. On a processor
    bf16 is computed where there are instructions for it, int8 by OpenVINO where it, nncf and the instructions are
    there, and fp32, which is then no slower, in all other cases. Raises BadValue for int8 on a GPU.
    """
    served = supported(checkpoint) if own is None else own
    lacking = None if served else f"torch without padding does not know '{checkpoint.architecture}'"
    return ruled(engine, dtype, device, lacking)


def ruled(engine: str, dtype: str, device: str, lacking: str | None = None) -> Declared:
    """As `declare`, for a model that torch serves, or for one that it does not, with the reason; raises as it does."""
    place = ComputePlace(declared_device(device), dtype)
    if engine == "openvino" and device == "auto":
        place = ComputePlace("cpu", dtype)
    if place.kind != "cpu" and (dtype == "int8" or engine == "openvino"):
        raise BadValue(
            "int8 and the engine 'openvino' are for the processor; on a GPU take torch in bf16 or fp16"
        )
    if engine != "auto":
        return Declared(engine, place, f"engine={engine!r} was asked for")
    default, why = ("torch", "without padding") if lacking is None else ("transformers", lacking)
    if place.kind != "cpu":
        return Declared(default, place, f"a GPU is there; {why}")
    if dtype == "int8" and default == "torch":
        missing = [name for name in ("openvino", "nncf") if package_version(name) is None]
        if not missing and "int8" in instructions():
            return Declared("openvino", place, "openvino, nncf and instructions for int8 are there")
        reason = f"{missing[0]} is not installed" if missing else "no instructions for int8 here"
        why = f"{reason}; {why}"
    if dtype in ("bf16", "int8") and "bf16" in instructions():
        return Declared(default, ComputePlace("cpu", "bf16"), why)
    if dtype != "fp32":
        why = f"no instructions for {dtype} here, so that fp32 is no slower; {why}"
    return Declared(default, ComputePlace("cpu", "fp32"), why)


def prepare(device: str) -> None:
    """Let torch compute on a device with the threads of the settings; raises BadValue where it does not have it."""
    torch = require("torch", extra="neural")
    kind, _, number = device.partition(":")
    if kind == "cpu":
        torch.set_num_threads(settings().threads)
    elif not (torch.cuda.is_available() and int(number or 0) < torch.cuda.device_count()):
        raise BadValue(f"device is '{device}', which torch {torch.__version__} does not find here; take cpu")


def build(checkpoint: Checkpoint, place: ComputePlace, engine: str, segments: bool = False) -> Engine:
    """The engine of that name, loaded; raises BadValue where it cannot serve this checkpoint or device.

    segments: whether batches will say which of two texts a token belongs to.
    """
    if engine == "transformers":
        from weir.models.transformers_engine import transformers_engine

        return transformers_engine(checkpoint, place.device, place.dtype)
    if engine == "openvino":
        from weir.models.openvino_engine import openvino_engine

        return openvino_engine(checkpoint, place, segments)
    if not supported(checkpoint):
        raise BadValue(
            f"{checkpoint.folder}: the engine 'torch' does not know '{checkpoint.architecture}'; take 'transformers'"
        )
    from weir.models.torch_engine import torch_engine

    return torch_engine(read_weights(checkpoint), place.device, place.dtype)
