"""The engine transformers, which any checkpoint can use: its own forward pass over padded tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.core.strings import Float32, Int64
from weir.errors import StoreError, require
from weir.models.checkpoints import Checkpoint, refuse_own_code
from weir.models.heads import OwnHead
from weir.models.tokens import Tokens, quiet
from weir.models.torch_engine import (
    Tensor,
    activated,
    tensor_above,
    tensors_as_array,
    to_device,
    torch_dtype,
)


@dataclass(frozen=True, eq=False)
class Padded:
    """An engine around a torch module that takes padded tables as transformers' models do."""

    module: Any
    device: Any
    fill: int
    segments: bool
    padded: bool = True
    alone: bool = False

    def tables(self, batch: Tokens) -> dict[str, Tensor]:
        """The padded tables of a batch, on the device."""
        torch = require("torch", extra="torch")
        tables = inputs(batch, self.fill, self.segments)
        return {name: to_device(torch, table, self.device) for name, table in tables.items()}

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            states = last_states(self.module, self.tables(batch))
            return states[torch.from_numpy(batch.mask()).to(self.device)]


CLASSES = {"classes": "AutoModelForSequenceClassification", "terms": "AutoModelForMaskedLM"}
"""transformers' automatic class for each kind of own head."""


@dataclass(frozen=True, eq=False)
class OwnModel:
    """transformers' own class with its own head, as an engine."""

    body: Padded
    head: OwnHead
    padded: bool = True
    alone: bool = False

    def rows(self, batch: Tokens) -> Tensor:
        """The outputs of classes [n, classes], or the weights of terms [n, V], as `TermHead` gives them."""
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            tables = self.body.tables(batch)
            x = self.body.module(**tables).logits.float()
            if self.head.kind == "classes":
                return x
            x = x.clamp_(min=0.0) * tables["attention_mask"][:, :, None]
            if x.shape[1] == 0:
                return torch.zeros(len(batch), x.shape[2])
            by_sum = self.head.pooling == "sum"
            return (
                activated(x, self.head.activation).sum(1)
                if by_sum
                else activated(x.amax(1), self.head.activation)
            )

    def array(self, parts: Sequence[Tensor]) -> Float32:
        """The rows of several batches, one behind the other."""
        return tensors_as_array(parts)

    def above(self, rows: Tensor, threshold: float) -> tuple[Int64, Int64, Float32]:
        """As `tensor_above`."""
        return tensor_above(rows, threshold)


def last_states(module: Any, tables: dict[str, Any]) -> Tensor:  # noqa: ANN401 - a module or what it is called by
    """The last hidden states [n, longest, H] that a model gives for padded tables."""
    output = module(**tables)
    if "last_hidden_state" in output:
        return output.last_hidden_state
    return module(**tables, output_hidden_states=True).hidden_states[-1]  # DPR's models return what they pool


def inputs(batch: Tokens, fill: int, segments: bool) -> dict[str, Any]:
    """The padded tables that transformers' models take: int64 [n, longest] each."""
    tables = {
        "input_ids": batch.padded(batch.ids, fill),
        "attention_mask": batch.attended().astype(np.int64),
    }
    if segments and batch.segment is not None:
        tables["token_type_ids"] = batch.padded(batch.segment, 0)
    return tables


def transformers_engine(checkpoint: Checkpoint, device: str, dtype: str, head: str = "") -> Padded:
    """The reference engine; dtype fp32, bf16 or fp16; head: see `load_model`.

    Raises BadValue for another dtype, StoreError where transformers cannot read the checkpoint.
    """
    torch = require("torch", extra="torch")
    place, kind = torch.device(device), torch_dtype("transformers", dtype)
    module = load_model(checkpoint, kind, head).to(place)
    config = checkpoint.config
    segments = int(config.get("type_vocab_size") or 0) > 1
    return Padded(module, place, int(config.get("pad_token_id") or 0), segments)


def load_model(
    checkpoint: Checkpoint,
    dtype: Any,  # noqa: ANN401 - a torch.dtype
    head: str = "",
    attention: str | None = None,
    safe: bool = False,
) -> Any:  # noqa: ANN401 - transformers' types
    """transformers' model of a checkpoint, ready for inference.

    head: its automatic class for a model with a head; attention: how it is computed, None for transformers' choice;
    safe: whether weights are read as safetensors or not at all. Raises StoreError where it cannot be read, and where
    the files lack weights that the model has: transformers would make them up.
    """
    transformers = require("transformers", extra="torch")
    # "dpr" is three models under one name, and the automatic choice is always the one for questions.
    name = head or (checkpoint.trained if checkpoint.architecture == "dpr" else "")
    kind = getattr(transformers, name, None) if name else None
    options: dict[str, Any] = {} if attention is None else {"attn_implementation": attention}
    options |= {"use_safetensors": True} if safe else {}
    try:
        with quiet(transformers):
            # Code that a checkpoint brings is never run, and nobody is asked whether it may be.
            model, loading = (kind or transformers.AutoModel).from_pretrained(
                str(checkpoint.folder),
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
                **options,
            )
    except Exception as error:  # noqa: BLE001 - the library raises errors of many families for a damaged file
        reason = " ".join(str(error).split())[:200]
        refuse_own_code(checkpoint, reason)
        raise StoreError(f"{checkpoint.folder}: transformers cannot read it ({reason})") from None
    missing = sorted(name for name in loading["missing_keys"] if head or "pooler" not in name)
    if missing:
        reason = f"the weights have no '{missing[0]}' ({len(missing)} are missing)"
        refuse_own_code(checkpoint, reason)
        raise StoreError(f"{checkpoint.folder}: {reason}")
    return model.to(dtype).eval()
