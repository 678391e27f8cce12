"""The engine that any checkpoint can use: transformers' own forward pass over padded tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.encode.checkpoint import Checkpoint
from weir.encode.packed import to_device
from weir.encode.tokens import Tokens
from weir.encode.weights import Tensor
from weir.errors import BadValue, StoreError, require

__all__ = ["Padded", "inputs", "load_model", "quiet", "transformers_engine"]


@dataclass(frozen=True, eq=False)
class Padded:
    """An engine around a torch module that takes padded tables as transformers' models do."""

    module: Any
    device: Any
    dtype: Any
    fill: int
    segments: bool
    padded: bool = True

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        return "transformers"

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        names = ("torch", "transformers")
        versions = {n: str(require(n, extra="neural").__version__) for n in names}
        return {
            "engine": self.name,
            "computes in": str(self.dtype).removeprefix("torch."),
            "attention": str(getattr(self.module.config, "_attn_implementation", None)),
            **versions,
        }

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        given = {
            name: to_device(torch, table, self.device)
            for name, table in inputs(batch, self.fill, self.segments).items()
        }
        with torch.inference_mode():
            found = self.module(**given)
            states = getattr(found, "last_hidden_state", None)
            if states is None:  # DPR's models return what they pool, and all states only when asked
                states = self.module(**given, output_hidden_states=True).hidden_states[-1]
            return states[torch.from_numpy(batch.mask()).to(self.device)]


def inputs(batch: Tokens, fill: int, segments: bool) -> dict[str, Any]:
    """The padded tables that transformers' models take: int64 [n, longest] each."""
    tables = {
        "input_ids": batch.padded(batch.ids, fill),
        "attention_mask": batch.attended().astype(np.int64),
    }
    if segments and batch.segment is not None:
        tables["token_type_ids"] = batch.padded(batch.segment, 0)
    return tables


def transformers_engine(checkpoint: Checkpoint, device: str, dtype: str) -> Padded:
    """The reference engine; dtype fp32, bf16 or fp16.

    Raises BadValue for another dtype, StoreError where transformers cannot read the checkpoint.
    """
    torch = require("torch", extra="neural")
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if dtype not in kinds:
        raise BadValue(f"the engine 'transformers' does not compute in {dtype}; expected {', '.join(kinds)}")
    place = torch.device(device)
    module = load_model(checkpoint, kinds[dtype]).to(place)
    config = checkpoint.config
    segments = int(config.get("type_vocab_size") or 0) > 1
    return Padded(module, place, kinds[dtype], int(config.get("pad_token_id") or 0), segments)


def load_model(checkpoint: Checkpoint, dtype: Any, head: str = "", **attention: str) -> Any:  # noqa: ANN401 - transformers' types
    """transformers' model of a checkpoint, ready for inference; head: its automatic class for a model with a head.

    Raises StoreError where it cannot be read, and where the files lack weights that the model has: transformers
    would make them up.
    """
    transformers = require("transformers", extra="neural")
    # "dpr" is three models under one name, and the automatic choice is always the one for questions.
    named = checkpoint.config.get("architectures") or [""]
    name = head or (named[0] if checkpoint.architecture == "dpr" else "")
    kind = getattr(transformers, name, None) if name else None
    try:
        with quiet(transformers):
            model, found = (kind or transformers.AutoModel).from_pretrained(
                str(checkpoint.folder), local_files_only=True, output_loading_info=True, **attention
            )
    except Exception as error:  # noqa: BLE001 - the library raises errors of many families for a damaged file
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{checkpoint.folder}: transformers cannot read it ({reason})") from None
    missing = sorted(name for name in found["missing_keys"] if head or "pooler" not in name)
    if missing:
        raise StoreError(
            f"{checkpoint.folder}: the weights have no '{missing[0]}' ({len(missing)} are missing)"
        )
    return model.to(dtype).eval()


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:  # noqa: ANN401 - the module
    """Without transformers' own notes and bars, and without its warnings to its own developers."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
