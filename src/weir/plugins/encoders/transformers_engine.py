"""The engine "transformers", for any checkpoint: transformers' own forward pass over padded batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.errors import StoreError, require
from weir.models.checkpoints import Checkpoint, refuse_own_code
from weir.models.engine import Declared, Engine, prepare
from weir.models.heads import AnyHead, OwnHead
from weir.models.tokens import Tokens, quiet
from weir.plugins.encoders.torch_engine import (
    Tensor,
    TorchModel,
    activated,
    tensor_above,
    tensors_as_array,
    to_device,
    torch_dtype,
    torch_head,
)


@dataclass(frozen=True, eq=False)
class Padded:
    """A torch module that takes padded batches, as the body of an engine."""

    module: Any
    device: Any
    fill: int
    segments: bool
    padded: bool = True
    batch_independent: bool = False

    def tables(self, batch: Tokens) -> dict[str, Tensor]:
        """Return a batch as padded int64 tensors on the device, by names of the model's arguments."""
        torch = require("torch", extra="torch")
        tables = inputs(batch, self.fill, self.segments)
        return {name: to_device(torch, table, self.device) for name, table in tables.items()}

    def hidden(self, batch: Tokens) -> Tensor:
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            states = _last_states(self.module, self.tables(batch))
            return states[torch.from_numpy(batch.mask()).to(self.device)]


CLASSES = {"classes": "AutoModelForSequenceClassification", "terms": "AutoModelForMaskedLM"}
"""transformers' automatic class for each kind of own head."""


@dataclass(frozen=True, eq=False)
class _OwnModel:
    """A model of transformers with its own head, as an engine."""

    body: Padded
    head: OwnHead
    padded: bool = True
    batch_independent: bool = False

    def rows(self, batch: Tokens) -> Tensor:
        """Return scores of classes, [texts, classes], or weights of terms, [texts, vocabulary]."""
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

    array = staticmethod(tensors_as_array)
    above = staticmethod(tensor_above)


def _last_states(module: Any, tables: dict[str, Any]) -> Tensor:  # noqa: ANN401 - a module or what it is called by
    output = module(**tables)
    if "last_hidden_state" in output:
        return output.last_hidden_state
    return module(**tables, output_hidden_states=True).hidden_states[-1]  # DPR's models return what they pool


def inputs(batch: Tokens, fill: int, segments: bool) -> dict[str, Any]:
    """Return a batch as padded inputs of transformers' models, {argument: int64[texts, longest]}.

    fill: token of the padding.
    segments: include token types if the batch has them.
    """
    tables = {
        "input_ids": batch.padded(batch.ids, fill),
        "attention_mask": batch.attended().astype(np.int64),
    }
    if segments and batch.segment is not None:
        tables["token_type_ids"] = batch.padded(batch.segment, 0)
    return tables


def transformers_engine(checkpoint: Checkpoint, device: str, dtype: str, head: str = "") -> Padded:
    """Return a checkpoint loaded by transformers in fp32, bf16 or fp16, as the body of an engine.

    head: transformers' automatic class for a model with a head; "" for none.

    Raises BadValue for another dtype, StoreError if transformers cannot read the checkpoint.
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
    safe: bool = False,
) -> Any:  # noqa: ANN401 - transformers' types
    """Return a checkpoint as transformers' model, ready for inference.

    head: transformers' automatic class for a model with a head.
    safe: read only safetensors.

    Raises StoreError if it cannot be read or lacks weights.
    """
    transformers = require("transformers", extra="torch")
    # "dpr" is three models under one name, and the automatic choice is always the one for questions.
    name = head or (checkpoint.trained if checkpoint.architecture == "dpr" else "")
    kind = getattr(transformers, name, None) if name else None
    options = {"use_safetensors": True} if safe else {}
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
    # transformers draws missing weights at random.
    missing = sorted(name for name in loading["missing_keys"] if head or "pooler" not in name)
    if missing:
        reason = f"the weights have no '{missing[0]}' ({len(missing)} are missing)"
        refuse_own_code(checkpoint, reason)
        raise StoreError(f"{checkpoint.folder}: {reason}")
    return model.to(dtype).eval()


def build_transformers(checkpoint: Checkpoint, declared: Declared, head: AnyHead) -> Engine:
    """Return the engine of a checkpoint loaded by transformers with a head; an OwnHead is the checkpoint's own."""
    place = declared.place
    prepare(place.device)
    own = CLASSES[head.kind] if isinstance(head, OwnHead) else ""
    body = transformers_engine(checkpoint, place.device, place.dtype, own)
    if isinstance(head, OwnHead):
        return _OwnModel(body, head)
    return TorchModel(body, torch_head(head, place.device, place.dtype))
