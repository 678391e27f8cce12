"""Late interaction: a vector for each token of a text, as ColBERT and its kin make them.

A text is its tokens with a marker behind the first, [Q] or [D]. A query is filled up with the mask token, and what
fills it up has vectors too; of a document those of punctuation are left out. A vector is the token's hidden state
through a matrix, of length 1. Source: Khattab and Zaharia 2020; Santhanam et al. 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64, Strings
from weir.encode.batching import BatchPlan, Ragged, gather_ragged, results
from weir.encode.encoder import BATCH_TOKENS, Kind
from weir.encode.late.late_checkpoint import LateRecipe, resolve_late
from weir.encode.models.bert_weights import Tensor, read_state
from weir.encode.models.engine import ComputePlace, Declared, Engine, build, check_engine, declare, prepare
from weir.encode.models.linear import linear
from weir.encode.models.pooling import unit
from weir.encode.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer
from weir.encode.recipes.checkpoint import read_object
from weir.encode.recipes.hub import fetch
from weir.encode.recipes.model_settings import check_least, check_model
from weir.errors import BadValue, StoreError, require

__all__ = ["LateEncoder", "LoadedLate"]

QUERY_GROWTH = 2
"""Queries grow when they are filled up: their batches are counted before, and are smaller by this."""


@dataclass(frozen=True)
class LateEncoder:
    """How texts become vectors of their tokens: a checkpoint, and whatever should differ from what it says.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; max_length, max_query: tokens of a
    document and a query at most, marker and special ones included, None leaves each to card and checkpoint; dtype:
    fp32, bf16, fp16 or int8, the least precision to compute in; engine: auto takes one by a fixed rule, see
    weir.encode.models.engine, or torch, openvino, transformers; batch_tokens: 0 takes what suits the device. Raises
    BadValue for settings out of range.
    """

    model: str = "colbert"
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        check_model(self.model, "late", "which gives no vectors of tokens")
        check_engine(self.engine, self.dtype)
        check_least({"max_length": (self.max_length, 4), "max_query": (self.max_query, 4)})
        check_least({"batch_tokens": (self.batch_tokens, 0)}, optional=False)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the vectors, and under "engine" what computes them on a device, None where it is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        recipe = resolve_late(self)
        return recipe.describe() | {"dtype": self.dtype, "engine": self._declared(recipe, device).label}

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        fetch(self.model)

    def load(self, device: str = "auto") -> LoadedLate:
        """The encoder in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of a kind that
        gives no vectors of tokens.
        """
        self.fetch()
        recipe = resolve_late(self)
        declared = self._declared(recipe, device)
        place = declared.place
        prepare(place.device)
        projections = _projections(recipe, place.device)
        engine = build(recipe.checkpoint, place, declared.engine)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        return LoadedLate(
            self,
            recipe,
            place,
            _part(recipe, "query", engine),
            _part(recipe, "document", engine),
            projections,
            budget,
        )

    def _declared(self, recipe: LateRecipe, device: str) -> Declared:
        return declare(recipe.checkpoint, self.engine, self.dtype, device)


@dataclass(frozen=True, eq=False)
class ProjectionLayer:
    """A layer behind the transformer: a matrix [d, h], a bias or None, whether tanh follows, and what is added.

    added: the matrix [d, h] whose product with the input is added, an empty one where the input itself is, or None.
    """

    weight: Tensor
    bias: Tensor | None = None
    bent: bool = False
    added: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The vectors [n, d] after this layer."""
        y = linear(x, self.weight, self.bias)
        y = y.tanh() if self.bent else y
        if self.added is None:
            return y
        return y + (linear(x, self.added) if self.added.numel() else x)


@dataclass(frozen=True, eq=False)
class TokenEncoder:
    """What encodes one kind of text. marker: the token set behind the first one, or None; skipped: int32, tokens
    whose vectors are left out; fill: tokens that a text is filled up to with `filler`, 0 for none."""

    engine: Engine
    tokenizer: ModelTokenizer
    marker: int | None
    skipped: NDArray[np.int32]
    prompt: str = ""
    fill: int = 0
    filler: int = 0
    attended: bool = True

    def tokens(self, texts: Sequence[Text]) -> Tokens:
        """The tokens of texts, the marker among them."""
        found = self.tokenizer(texts)
        return found if self.marker is None else _marked(found, self.marker)

    def filled(self, batch: Tokens) -> Tokens:
        """Texts filled up, where they are to be."""
        if not self.fill:
            return batch
        lengths = batch.lengths
        full = np.maximum(lengths, self.fill)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(full)])
        ids = np.full(int(ptr[-1]), self.filler, np.int32)
        ids[np.repeat(ptr[:-1], lengths) + batch.positions] = batch.ids
        return Tokens(ids, ptr, seen=None if self.attended else lengths)


@dataclass(frozen=True, eq=False)
class LoadedLate:
    """A late-interaction encoder in memory."""

    encoder: LateEncoder
    recipe: LateRecipe
    place: ComputePlace
    query: TokenEncoder
    document: TokenEncoder
    layers: tuple[ProjectionLayer, ...]
    batch_tokens: int

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.layers[-1].weight.shape[0])

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Ragged:
        """The vectors of each text's tokens, in the order of the texts: values float32[any, d], each of length 1.

        Raises BadValue for a vector that is not finite and for a text that does not fit into memory.
        """
        blocks = list(self.stream(texts.tolist() if isinstance(texts, Strings) else texts, kind))
        if not blocks:
            return Ragged(np.zeros(1, np.int64), np.zeros((0, self.dimensions), np.float32))
        lengths = np.concatenate([np.diff(b.ptr) for b in blocks])
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        values = np.concatenate([b.values for b in blocks])
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            text = int(np.searchsorted(ptr, bad[0], side="right"))
            raise BadValue(
                f"a vector of text {text} is not finite (computed in {self.place.dtype}); take dtype='fp32', or look "
                "at the checkpoint"
            )
        return Ragged(ptr, values)

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Ragged]:
        """The vectors of a stream of texts, some thousand at a time and in order, in bounded memory.

        done: told the number of texts finished so far. Vectors are not looked at: whoever keeps them does. Raises
        BadValue for a text that does not fit into memory.
        """
        part = self.query if kind == "query" else self.document
        given: Iterable[Text] = (part.prompt + t for t in texts) if part.prompt else texts
        budget = max(1, self.batch_tokens // QUERY_GROWTH) if part.fill else self.batch_tokens
        plan = BatchPlan(budget, padded=part.engine.padded and not part.fill)
        yield from results(given, part.tokens, partial(self._vectors, part), gather_ragged, plan, done)

    def _vectors(self, part: TokenEncoder, batch: Tokens) -> Ragged:
        torch = require("torch", extra="neural")
        whole = part.filled(batch)
        kept = ~np.isin(whole.ids, part.skipped)
        ptr: Int64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[whole.ptr]
        with torch.inference_mode():
            x = part.engine.hidden(whole)
            if not kept.all():
                x = x[torch.from_numpy(kept).to(x.device)]
            x = x.float()
            for layer in self.layers:
                x = layer(x)
            return Ragged(ptr, unit(x).cpu().numpy())


def _marked(tokens: Tokens, marker: int) -> Tokens:
    """Texts with a marker behind their first token; in front where there is no token."""
    count = len(tokens)
    ptr = tokens.ptr + np.arange(count + 1)
    ids = np.empty(len(tokens.ids) + count, np.int32)
    at = ptr[:-1] + np.minimum(tokens.lengths, 1)
    free = np.ones(len(ids), np.bool_)
    free[at] = False
    ids[at], ids[free] = marker, tokens.ids
    return Tokens(ids, ptr)


def _part(recipe: LateRecipe, kind: Kind, engine: Engine) -> TokenEncoder:
    asked = kind == "query"
    text = recipe.query_marker if asked else recipe.document_marker
    limit = recipe.max_query if asked else recipe.max_document
    if asked and not recipe.cut:
        limit = recipe.checkpoint.limit
    tokenizer = load_tokenizer(recipe.checkpoint.folder, limit - int(bool(text)))
    ids = [tokenizer.inner.token_to_id(word) for word in recipe.skipped]
    skipped = np.array([i for i in ids if i is not None], np.int32)
    if asked and not recipe.skipped_in_queries:
        skipped = skipped[:0]
    fill = recipe.max_query if asked and recipe.fill else 0
    return TokenEncoder(
        engine,
        tokenizer,
        None if not text else _number(tokenizer, text, recipe),
        skipped,
        recipe.query_prompt if asked else recipe.document_prompt,
        fill,
        _number(tokenizer, recipe.filler, recipe) if fill else 0,
        recipe.attended,
    )


def _number(tokenizer: ModelTokenizer, token: str, recipe: LateRecipe) -> int:
    """The number of a token that a text never spells, with or without the blank behind it."""
    found = tokenizer.inner.token_to_id(token)
    found = tokenizer.inner.token_to_id(token.strip()) if found is None else found
    if found is None:
        raise BadValue(f"{recipe.checkpoint.folder}: its tokenizer does not know '{token.strip()}'")
    return int(found)


def _projections(recipe: LateRecipe, device: str) -> tuple[ProjectionLayer, ...]:
    """The layers from hidden states to vectors; raises StoreError where they do not fit each other."""
    folder, width = recipe.checkpoint.folder, recipe.checkpoint.config.get("hidden_size")
    if recipe.heads:
        layers = tuple(_layer(head.folder, head.kind, head.activation, device) for head in recipe.heads)
    else:
        state = read_state(folder)
        if "linear.weight" not in state:
            raise StoreError(
                f"{folder}: the weights have no 'linear.weight', which makes the vectors of tokens"
            )
        layers = (ProjectionLayer(state["linear.weight"].float().to(device)),)
    for layer in layers:
        if layer.weight.ndim != 2 or (width is not None and layer.weight.shape[1] != width):
            raise StoreError(
                f"{folder}: a layer of shape {tuple(layer.weight.shape)} stands behind states of {width} numbers"
            )
        width = layer.weight.shape[0]
    return layers


def _layer(folder: Path, kind: str, activation: str, device: str) -> ProjectionLayer:
    if kind != "Dense":
        raise BadValue(f"{folder}: a step '{kind}' behind the transformer is not supported; expected Dense")
    state = {name: t.float().to(device) for name, t in read_state(folder).items()}
    if "linear.weight" not in state:
        raise StoreError(f"{folder}: the weights have no 'linear.weight', which makes the vectors of tokens")
    added = state.get("residual.weight")
    if added is None and read_object(folder / "config.json").get("use_residual"):
        added = state["linear.weight"].new_empty(0)
    return ProjectionLayer(state["linear.weight"], state.get("linear.bias"), activation == "Tanh", added)
