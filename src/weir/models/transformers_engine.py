"""The engine transformers, which any checkpoint can use: its own forward pass over padded tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.errors import BadValue, StoreError, require
from weir.models.checkpoints import Checkpoint
from weir.models.tokens import Tokens, quiet
from weir.models.torch_engine import Tensor, to_device, torch_dtype


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
        torch = require("torch", extra="neural")
        tables = inputs(batch, self.fill, self.segments)
        return {name: to_device(torch, table, self.device) for name, table in tables.items()}

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            states = last_states(self.module, self.tables(batch))
            return states[torch.from_numpy(batch.mask()).to(self.device)]


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
    torch = require("torch", extra="neural")
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
    transformers = require("transformers", extra="neural")
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


def refuse_own_code(checkpoint: Checkpoint, reason: str) -> None:
    """Raise BadValue where a checkpoint that could not be read names code of its own (`auto_map`)."""
    if "auto_map" in checkpoint.config:
        raise BadValue(
            f"{checkpoint.folder}: it brings code of its own, which Weir never runs; without that: {reason}"
        )
