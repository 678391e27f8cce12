"""Late-interaction encoders: a vector for each token of a text."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.strings import Int64, Strings
from weir.errors import BadValue, StoreError, require
from weir.models.batching import BatchPlan, Ragged, gather_ragged, results
from weir.models.checkpoints import (
    Checkpoint,
    Head,
    ModelCard,
    check_least,
    check_model,
    fetch,
    fingerprint,
    known,
    locate,
    read_checkpoint,
    read_object,
)
from weir.models.encoder import BATCH_TOKENS, Kind
from weir.models.engine import Declared, Engine, build, check_engine, declare, prepare, unit
from weir.models.hardware import ComputePlace
from weir.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer
from weir.models.torch_engine import Tensor, linear, read_state

# ----------
# What a late-interaction checkpoint says about itself, in the three layouts that such checkpoints come in.
#
# ColBERT's own: one folder, the projection among the weights as linear.weight, settings in artifact.metadata.
# PyLate's: modules.json with a Dense behind the transformer, settings in config_sentence_transformers.json. That of
# sentence-transformers' MultiVectorEncoder: modules.json with Dense and MultiVectorMask, settings with the modules.
# Sources: stanford-futuredata/ColBERT colbert/infra/config, lightonai/pylate pylate/models/colbert.py, sentence-
# transformers sentence_transformers/multi_vector_encoder/model.py.


PYLATE = (
    "query_prefix",
    "document_prefix",
    "do_query_expansion",
    "attend_to_expansion_tokens",
    "query_length",
)
QUERY, DOCUMENT = 32, 300
"""Tokens where nothing says how many."""


@dataclass(frozen=True)
class _Says:
    """What files say. marker: the token set behind a text's first one; prompt: text put before a text."""

    query_marker: str = ""
    document_marker: str = ""
    query_prompt: str = ""
    document_prompt: str = ""
    max_query: int = QUERY
    max_document: int = DOCUMENT
    fill: bool = True
    cut: bool = True
    attended: bool = False
    filler: str = ""
    skipped: tuple[str, ...] = ()
    skipped_in_queries: bool = False


@dataclass(frozen=True, eq=False)
class LateRecipe:
    """Everything decided, nothing loaded.

    heads: the layers behind the transformer, none where the projection lies among its weights; query_marker,
    document_marker: tokens set behind the first one of a text, "" for none; query_prompt, document_prompt: put before a
    text; max_query, max_document: tokens with special ones; fill: whether queries are filled up to max_query with
    `filler`; cut: whether longer ones are cut there; attended: whether the other tokens see what fills up;
    skipped: tokens of documents that have no vector.
    """

    model: str
    checkpoint: Checkpoint
    heads: tuple[Head, ...]
    query_marker: str
    document_marker: str
    query_prompt: str
    document_prompt: str
    max_query: int
    max_document: int
    fill: bool
    cut: bool
    attended: bool
    filler: str
    skipped: tuple[str, ...]
    skipped_in_queries: bool

    def describe(self) -> dict[str, object]:
        """What decides the vectors, the engine aside."""
        filled = f"{self.filler} to {self.max_query}, {'' if self.attended else 'not '}attended"
        return {
            "encoding": algorithm("encoding"),
            "revision": fingerprint(self.checkpoint),
            "architecture": self.checkpoint.architecture,
            "query": f"{self.query_marker}{self.query_prompt}{{text}}",
            "document": f"{self.document_marker}{self.document_prompt}{{text}}",
            "max_query": self.max_query,
            "max_length": self.max_document,
            "filled": filled if self.fill else "no",
            "cut": self.cut,
            "left out": "".join(self.skipped),
            "left out of queries": self.skipped_in_queries,
            "normalised": True,
        }


def resolve_late(encoder: LateEncoder) -> LateRecipe:
    """What an encoder comes to; reads the files of its checkpoint that say how to use it.

    Raises BadValue for a checkpoint that gives one vector for a text or none, and for lengths beyond the architecture;
    DownloadError and StoreError for one that is not here or damaged.
    """
    card = known(encoder.model) or ModelCard(encoder.model, encoder.model, kind="late", source="")
    folder = locate(encoder.model)
    checkpoint = read_checkpoint(folder)
    if (folder / "modules.json").exists():
        _refuse_other_modules(encoder.model, checkpoint)
        says = _of_modules(folder, checkpoint)
    else:
        says = _of_colbert(encoder.model, folder, checkpoint)
    bound = checkpoint.positions
    query, document = (
        _length(own, by_card, stated, bound, encoder.model)
        for own, by_card, stated in (
            (encoder.max_query, card.max_query, says.max_query),
            (encoder.max_length, card.max_document, says.max_document),
        )
    )
    says = replace(says, filler=says.filler or _mask_token(checkpoint.folder))
    if says.fill and not says.filler:
        raise BadValue(f"{checkpoint.folder}: queries are filled up with the mask token, and there is none")
    facts = {**vars(says), "max_query": query, "max_document": document}
    return LateRecipe(encoder.model, checkpoint, checkpoint.heads, **facts)


def _refuse_other_modules(model: str, checkpoint: Checkpoint) -> None:
    if checkpoint.pooling is not None:
        raise BadValue(f"'{model}' pools the vectors of tokens into one; write dense(\"{model}\")")
    if not any(head.kind == "Dense" for head in checkpoint.heads):
        raise BadValue(f"'{model}' has no layer that makes vectors of its tokens; expected a Dense module")


def _of_colbert(model: str, folder: Path, checkpoint: Checkpoint) -> _Says:
    named = checkpoint.config.get("architectures") or [""]
    said = read_object(folder / "artifact.metadata")
    if not said and named[0] != "HF_ColBERT":
        raise BadValue(
            f"'{model}' is a {named[0] or 'model'}, which gives no vectors of tokens to compare; expected ColBERT's "
            "own layout (artifact.metadata), PyLate's or that of sentence-transformers"
        )
    return _Says(
        query_marker=str(said.get("query_token_id") or "[unused0]"),
        document_marker=str(said.get("doc_token_id") or "[unused1]"),
        max_query=int(said.get("query_maxlen") or QUERY),
        max_document=int(said.get("doc_maxlen") or DOCUMENT),
        attended=bool(said.get("attend_to_mask_tokens")),
        skipped=tuple(string.punctuation) if said.get("mask_punctuation", True) else (),
    )


def _of_modules(folder: Path, checkpoint: Checkpoint) -> _Says:
    said = read_object(folder / "config_sentence_transformers.json")
    own = read_object(checkpoint.folder / "sentence_bert_config.json")
    prompts = checkpoint.query_prompt or "", checkpoint.document_prompt or ""
    pylate = any(name in said for name in PYLATE)
    mask = next((read_object(p) for p in sorted(folder.glob("*_MultiVectorMask/config.json"))), None)
    if mask is None and not pylate and said.get("model_type") != "ColBERT":
        raise BadValue(f"{folder}: nothing says how its vectors of tokens are to be used")
    if mask is not None and mask.get("keep_only_token_ids"):
        raise BadValue(f"{folder}: it keeps the vectors of certain tokens only, as models of images do")
    words = (mask or {}).get("skiplist_words")
    if words is None:
        words = said.get("skiplist_words")
    skipped = tuple(string.punctuation if words is None and mask is None else words or ())
    tasks = (mask or {}).get("skiplist_tasks") or ["document"]
    expansion = _expansion(said, own, pylate)
    found = _Says(
        query_marker=str(
            said.get("query_prefix") or ("[Q] " if pylate and "query_prefix" not in said else "")
        ),
        document_marker=str(
            said.get("document_prefix") or ("[D] " if pylate and "document_prefix" not in said else "")
        ),
        query_prompt=prompts[0],
        document_prompt=prompts[1],
        max_query=int(
            expansion.get("length") or said.get("query_length") or own.get("query_length") or QUERY
        ),
        max_document=int(said.get("document_length") or own.get("document_length") or checkpoint.limit),
        fill=bool(expansion),
        cut=expansion.get("strategy") != "min",
        attended=bool(expansion.get("attend")),
        filler=str(expansion.get("token") or ""),
        skipped=skipped,
        skipped_in_queries="query" in tasks,
    )
    return found if pylate else _with_markers(found)


def _expansion(said: Mapping[str, Any], own: Mapping[str, Any], pylate: bool) -> Mapping[str, Any]:
    """How queries are filled up, as sentence-transformers writes it; empty where they are not."""
    for facts in (own, said):
        if "query_expansion" in facts:
            return facts["query_expansion"] or {}
    if not pylate or said.get("do_query_expansion") is False:
        return {}
    attend = said.get("attend_to_expansion_tokens", said.get("attend_to_mask_tokens"))
    return {"length": said.get("query_length") or QUERY, "attend": bool(attend)}


def _with_markers(says: _Says) -> _Says:
    """Prompts that are one token in brackets, such as "[unused0] ", as what they are: markers."""

    def split(prompt: str) -> tuple[str, str]:
        alone = prompt.strip()
        marks = alone.startswith("[") and alone.endswith("]") and " " not in alone
        return (prompt, "") if marks else ("", prompt)

    query, document = split(says.query_prompt), split(says.document_prompt)
    return replace(
        says,
        query_marker=query[0],
        query_prompt=query[1],
        document_marker=document[0],
        document_prompt=document[1],
    )


def _length(own: int | None, by_card: int, stated: int, bound: int, model: str) -> int:
    if own is not None and bound and own > bound:
        raise BadValue(f"'{model}' reads {bound} tokens at most, not {own}")
    return own if own is not None else min(by_card or stated, bound or by_card or stated)


def _mask_token(folder: Path) -> str:
    """The token that masks others, as the tokenizer's settings name it."""
    said = read_object(folder / "tokenizer_config.json").get("mask_token")
    said = said or read_object(folder / "special_tokens_map.json").get("mask_token")
    named = said.get("content") if isinstance(said, dict) else said
    return str(named or "[MASK]")


# ----------
# Late interaction: a vector for each token of a text, as ColBERT and its kin make them.
#
# A text is its tokens with a marker behind the first, [Q] or [D]. A query is filled up with the mask token, and what
# fills it up has vectors too; of a document those of punctuation are left out. A vector is the token's hidden state
# through a matrix, of length 1. Source: Khattab and Zaharia 2020; Santhanam et al. 2022.


QUERY_GROWTH = 2
"""Queries grow when they are filled up: their batches are counted before, and are smaller by this."""


@dataclass(frozen=True)
class LateEncoder:
    """How texts become vectors of their tokens: a checkpoint, and whatever should differ from what it says.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder; max_length, max_query: tokens of a
    document and a query at most, marker and special ones included, None leaves each to card and checkpoint; dtype:
    fp32, bf16, fp16 or int8, the least precision to compute in; engine: auto takes one by a fixed rule, see
    weir.models.engine, or torch, openvino, transformers; batch_tokens: 0 takes what suits the device. Raises
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
