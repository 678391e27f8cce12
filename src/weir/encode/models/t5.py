"""T5 and mT5 through transformers: what re-ranking and writing questions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.encode.models.bert_weights import Tensor
from weir.encode.models.engine import ComputePlace, Declared, declare, prepare
from weir.encode.models.tokens import Tokens
from weir.encode.models.torch_engine import to_device
from weir.encode.models.transformers_engine import inputs, load_model
from weir.encode.recipes.checkpoint import Checkpoint, read_checkpoint
from weir.encode.recipes.hub import locate
from weir.errors import BadValue, require

__all__ = ["DTYPES", "T5", "check_t5", "declare_t5", "load_t5", "read_t5"]

DTYPES = ("fp32", "bf16")
"""The states of T5 leave the range of fp16."""


@dataclass(frozen=True, eq=False)
class T5:
    """An encoder and decoder in memory; start, end: the tokens that an answer begins and ends with."""

    module: Any
    place: ComputePlace
    start: int
    end: int

    def encoded(self, batch: Tokens) -> tuple[Any, Tensor]:
        """(what the encoder makes of a batch, where its padded table holds a token: int64[n, longest])."""
        torch = require("torch", extra="neural")
        given = inputs(batch, 0, segments=False)
        device = torch.device(self.place.device)
        tables = {name: to_device(torch, table, device) for name, table in given.items()}
        return self.module.get_encoder()(**tables), tables["attention_mask"]

    def first_words(self, batch: Tokens, wanted: list[int]) -> Tensor:
        """The scores of these words to begin each text's answer: float32[n, wanted]."""
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            states, mask = self.encoded(batch)
            begun = torch.full((len(batch), 1), self.start, device=mask.device)
            found = self.module(encoder_outputs=states, attention_mask=mask, decoder_input_ids=begun)
            return found.logits[:, 0, wanted].float()


def read_t5(model: str) -> Checkpoint:
    """The files of a T5; raises BadValue for a checkpoint of another kind, DownloadError for one that is not here."""
    checkpoint = read_checkpoint(locate(model))
    check_t5(checkpoint, model)
    return checkpoint


def check_t5(checkpoint: Checkpoint, model: str) -> None:
    """Raise BadValue for a checkpoint that is no T5 or mT5 with an encoder and a decoder that writes words."""
    named = str((checkpoint.config.get("architectures") or [""])[0])
    if checkpoint.architecture not in ("t5", "mt5") or not named.endswith("ForConditionalGeneration"):
        kind = named or checkpoint.architecture or "model of an unknown kind"
        raise BadValue(
            f"'{model}' is a {kind}; expected a T5 or mT5 that writes (T5ForConditionalGeneration)"
        )


def declare_t5(checkpoint: Checkpoint, dtype: str, device: str) -> Declared:
    """The engine that a T5 runs on: transformers, on a device."""
    return declare(checkpoint, "auto", dtype, device, own=False)


def load_t5(checkpoint: Checkpoint, place: ComputePlace) -> T5:
    """A T5 or mT5 in memory, computing in fp32 or bf16.

    Raises BadValue for another dtype, StoreError where a weight is missing.
    """
    torch = require("torch", extra="neural")
    if place.dtype not in DTYPES:
        raise BadValue(f"T5 computes in {' or '.join(DTYPES)} here, not in {place.dtype}")
    prepare(place.device)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[place.dtype]
    module = load_model(checkpoint, kind, "AutoModelForSeq2SeqLM").to(torch.device(place.device))
    config = checkpoint.config
    end = np.ravel(config.get("eos_token_id", 1))
    return T5(module, place, int(config.get("decoder_start_token_id") or 0), int(end[0]))
