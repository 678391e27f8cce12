"""Models that weigh words: a batch of tokens to weights, by an engine and the head behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from weir.encode.models.bert_weights import Tensor
from weir.encode.models.engine import ComputePlace, Engine, build
from weir.encode.models.tokens import ModelTokenizer, Tokens
from weir.encode.models.torch_engine import to_device
from weir.encode.models.transformers_engine import Padded, inputs, transformers_engine
from weir.encode.recipes.checkpoint import Checkpoint
from weir.encode.sparse.sparse_heads import (
    MLM,
    TokenHead,
    VocabularyHead,
    activated,
    mlm_head,
    token_head,
    word_head,
)
from weir.errors import BadValue, require

__all__ = ["TermEncoder", "Weigh", "model", "special_tokens", "without_special"]

Weigh: TypeAlias = Callable[[Tokens], Any]
"""A batch to weights [n, V] (SPLADE, SPARTA: a tensor) or [T] (uniCOIL, DeepCT: an array)."""


@dataclass(frozen=True, eq=False)
class TermEncoder:
    """What encodes one kind of text: a model, or a table of the weights of tokens."""

    tokenizer: ModelTokenizer
    engine: Engine | None
    weigh: Weigh | None
    table: Any


def model(
    family: str,
    name: str,
    checkpoint: Checkpoint,
    how: tuple[ComputePlace, str],
    pooling: tuple[str, str],
    tokenizer: ModelTokenizer,
) -> tuple[Weigh, Engine]:
    """(batch to weights, the engine behind it) of a checkpoint.

    name: of the model, for messages; how: where, and by which engine; pooling: and activation, of SPLADE. Raises
    BadValue for a checkpoint without the family's head, StoreError where the head's weights are missing.
    """
    torch = require("torch", extra="neural")
    place, engine_name = how
    if family == "splade":
        _refuse_without_head(checkpoint, name)
        if engine_name == "transformers":
            return _whole(checkpoint, place, *pooling)
        if checkpoint.architecture not in MLM:
            raise BadValue(
                f"the engine '{engine_name}' has no head for '{checkpoint.architecture}'; take 'transformers'"
            )
    dtype = _head_dtype(torch, place, engine_name)
    if family in ("unicoil", "deepct"):
        layer = "tok_proj" if family == "unicoil" else "classifier"
        numbers = token_head(checkpoint, place.device, dtype, layer)
        engine = build(checkpoint, place, engine_name)
        return partial(_tokens, engine, numbers), engine
    head = (
        mlm_head(checkpoint, place.device, dtype, *pooling)
        if family == "splade"
        else word_head(checkpoint, place.device, dtype, special_tokens(tokenizer))
    )
    engine = build(checkpoint, place, engine_name)
    return partial(_headed, engine, head), engine


def special_tokens(tokenizer: ModelTokenizer) -> list[int]:
    """The numbers of special tokens, such as [CLS] and [MASK]."""
    return sorted(n for n, token in tokenizer.inner.get_added_tokens_decoder().items() if token.special)


def without_special(tokenizer: ModelTokenizer, texts: Sequence[Any]) -> Tokens:
    """The tokens of texts without those that a model wants around them."""
    found = tokenizer.inner.encode_batch_fast(
        [t.lower() for t in texts] if tokenizer.lower else list(texts), add_special_tokens=False
    )
    ptr = np.zeros(len(found) + 1, np.int64)
    np.cumsum(np.fromiter((len(e) for e in found), np.int64, len(found)), out=ptr[1:])
    ids = np.fromiter((i for e in found for i in e.ids), np.int32, int(ptr[-1]))
    return Tokens(ids, ptr)


def _headed(engine: Engine, head: VocabularyHead, batch: Tokens) -> Tensor:
    return head(engine.hidden(batch).to(head.weight.dtype), batch.ptr)


def _tokens(engine: Engine, head: TokenHead, batch: Tokens) -> Any:  # noqa: ANN401 - float32
    return head(engine.hidden(batch).to(head.weight.dtype))


def _head_dtype(torch: Any, place: ComputePlace, engine: str) -> Any:  # noqa: ANN401 - torch's
    """What the head computes in: as the engine where that multiplies such numbers, else float32."""
    if engine == "openvino":
        return torch.float32
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(place.dtype, torch.float32)


def _whole(
    checkpoint: Checkpoint, place: ComputePlace, pooling: str, activation: str
) -> tuple[Weigh, Engine]:
    """transformers' own model with its own head."""
    engine = transformers_engine(checkpoint, place.device, place.dtype, "AutoModelForMaskedLM")
    return partial(_logits, engine, pooling, activation), engine


def _logits(engine: Padded, pooling: str, activation: str, batch: Tokens) -> Tensor:
    """As VocabularyHead, of the numbers that transformers' own model gives."""
    torch = require("torch", extra="neural")
    tables = inputs(batch, engine.fill, engine.segments)
    given = {name: to_device(torch, table, engine.device) for name, table in tables.items()}
    x = engine.module(**given).logits.float().clamp_(min=0.0) * given["attention_mask"][:, :, None]
    if x.shape[1] == 0:
        return torch.zeros(len(batch), x.shape[2])
    return activated(x, activation).sum(1) if pooling == "sum" else activated(x.amax(1), activation)


def _refuse_without_head(checkpoint: Checkpoint, model: str) -> None:
    """Raise BadValue for a model that was trained without a head for masked words."""
    named = str((checkpoint.config.get("architectures") or [""])[0])
    if named and not named.endswith(("ForMaskedLM", "ForPreTraining")):
        raise BadValue(f"'{model}' is a {named}, which has no head for masked words, as SPLADE needs")
