"""Late-interaction encoders: a vector for each token of a text."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.strings import Strings, offsets
from weir.errors import BadValue, StoreError, UnusableText
from weir.models.batching import BatchPlan, Ragged, gather_ragged, results
from weir.models.checkpoints import (
    Checkpoint,
    Head,
    ModelCard,
    check_least,
    check_model,
    checkpoint_fingerprint,
    fetch,
    find_card,
    locate,
    open_checkpoint,
    read_object,
    text_limit,
)
from weir.models.encoder import BATCH_TOKENS, Kind
from weir.models.engine import Engine, build, check_engine, declare
from weir.models.hardware import ComputePlace
from weir.models.heads import Layer, TokenHead
from weir.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer
from weir.models.weights import read_state

# ----------
# The three layouts of late-interaction checkpoints.
#
# ColBERT's own: one folder, the projection among the weights as linear.weight, settings in artifact.metadata.
# PyLate's: modules.json with a Dense after the transformer, settings in config_sentence_transformers.json. Layout of
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
"""Default numbers of tokens."""


@dataclass(frozen=True, eq=False)
class _LateRecipe:
    checkpoint: Checkpoint
    query_marker: str = ""
    """Token after the first token of a query; "" for none."""
    document_marker: str = ""
    """Token after the first token of a document; "" for none."""
    query_prompt: str = ""
    """Prefix of a query, before it is cut to tokens."""
    document_prompt: str = ""
    max_query: int = QUERY
    """Tokens of a query with special ones; `max_document` for a document."""
    max_document: int = DOCUMENT
    fill: bool = True
    """Fill queries up to max_query with `filler`."""
    cut: bool = True
    """Cut longer queries at max_query."""
    attended: bool = False
    """True if the tokens of a query attend to the filler."""
    filler: str = ""
    skipped: tuple[str, ...] = ()
    """Tokens of documents without a vector."""
    skipped_in_queries: bool = False

    def describe(self) -> dict[str, object]:
        filled = f"{self.filler} to {self.max_query}, {'' if self.attended else 'not '}attended"
        return {
            "encoding": algorithm("encoding"),
            "revision": checkpoint_fingerprint(self.checkpoint),
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
        } | self.checkpoint.graph_name


def _resolve_late(encoder: LateEncoder) -> _LateRecipe:
    card = find_card(encoder.model) or ModelCard(encoder.model, encoder.model, kind="late", source="")
    folder = locate(encoder.model)
    checkpoint = open_checkpoint(encoder.model)
    if (folder / "modules.json").exists():
        if checkpoint.pooling is not None:
            raise BadValue(
                f"'{encoder.model}' pools the vectors of tokens into one; write dense(\"{encoder.model}\")"
            )
        if not any(head.kind == "Dense" for head in checkpoint.heads):
            raise BadValue(
                f"'{encoder.model}' has no layer that makes vectors of its tokens; expected a Dense module"
            )
        recipe = _of_modules(folder, checkpoint)
    else:
        recipe = _of_colbert(encoder.model, folder, checkpoint)
    filler: object = recipe.filler
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        filler = filler or read_object(checkpoint.folder / name).get("mask_token")
    filler = filler.get("content") if isinstance(filler, dict) else filler
    max_query, max_document = card.max_query or recipe.max_query, card.max_document or recipe.max_document
    return replace(
        recipe,
        max_query=text_limit(encoder.model, checkpoint, encoder.max_query, max_query),
        max_document=text_limit(encoder.model, checkpoint, encoder.max_length, max_document),
        filler=str(filler or "[MASK]"),
    )


def _of_colbert(model: str, folder: Path, checkpoint: Checkpoint) -> _LateRecipe:
    facts = read_object(folder / "artifact.metadata")
    if not facts and checkpoint.trained != "HF_ColBERT":
        raise BadValue(
            f"'{model}' is a {checkpoint.trained or 'model'}, which gives no vectors of tokens to compare; "
            "expected ColBERT's own layout (artifact.metadata), PyLate's or that of sentence-transformers"
        )
    return _LateRecipe(
        checkpoint,
        query_marker=str(facts.get("query_token_id") or "[unused0]"),
        document_marker=str(facts.get("doc_token_id") or "[unused1]"),
        max_query=int(facts.get("query_maxlen") or QUERY),
        max_document=int(facts.get("doc_maxlen") or DOCUMENT),
        attended=bool(facts.get("attend_to_mask_tokens")),
        skipped=tuple(string.punctuation) if facts.get("mask_punctuation", True) else (),
    )


def _of_modules(folder: Path, checkpoint: Checkpoint) -> _LateRecipe:
    facts = read_object(folder / "config_sentence_transformers.json")
    own = read_object(checkpoint.folder / "sentence_bert_config.json")
    pylate = any(name in facts for name in PYLATE)
    mask = next((read_object(p) for p in sorted(folder.glob("*_MultiVectorMask/config.json"))), None)
    if mask is None and not pylate and facts.get("model_type") != "ColBERT":
        raise BadValue(f"{folder}: nothing says how its vectors of tokens are to be used")
    if mask is not None and mask.get("keep_only_token_ids"):
        raise BadValue(f"{folder}: it keeps the vectors of certain tokens only, as models of images do")
    words = (mask or {}).get("skiplist_words")
    if words is None:
        words = facts.get("skiplist_words")
    tasks = (mask or {}).get("skiplist_tasks") or ["document"]
    # How queries are filled up, as sentence-transformers writes it; empty where they are not.
    expansion: Mapping[str, Any] = {}
    written = next((source for source in (own, facts) if "query_expansion" in source), None)
    if written is not None:
        expansion = written["query_expansion"] or {}
    elif pylate and facts.get("do_query_expansion") is not False:
        attend = facts.get("attend_to_expansion_tokens", facts.get("attend_to_mask_tokens"))
        expansion = {"length": facts.get("query_length") or QUERY, "attend": bool(attend)}
    query_prompt, document_prompt = checkpoint.query_prompt or "", checkpoint.document_prompt or ""
    unnamed = pylate and "query_prefix" not in facts, pylate and "document_prefix" not in facts
    query_marker = str(facts.get("query_prefix") or ("[Q] " if unnamed[0] else ""))
    document_marker = str(facts.get("document_prefix") or ("[D] " if unnamed[1] else ""))
    if not pylate:  # prompts that are one token in brackets, such as "[unused0] ", are markers

        def split(prompt: str) -> tuple[str, str]:
            alone = prompt.strip()
            marks = alone.startswith("[") and alone.endswith("]") and " " not in alone
            return (prompt, "") if marks else ("", prompt)

        query_marker, query_prompt = split(query_prompt)
        document_marker, document_prompt = split(document_prompt)
    return _LateRecipe(
        checkpoint,
        query_marker=query_marker,
        document_marker=document_marker,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        max_query=int(
            expansion.get("length") or facts.get("query_length") or own.get("query_length") or QUERY
        ),
        max_document=int(facts.get("document_length") or own.get("document_length") or checkpoint.limit),
        fill=bool(expansion),
        cut=expansion.get("strategy") != "min",
        attended=bool(expansion.get("attend")),
        filler=str(expansion.get("token") or ""),
        skipped=tuple(string.punctuation if words is None and mask is None else words or ()),
        skipped_in_queries="query" in tasks,
    )


# ----------
# Encoders that make a vector for each token, such as ColBERT.
#
# A text is its tokens with a marker after the first, [Q] or [D]. A query is filled up with the mask token, which has
# vectors too; punctuation of documents has none. A vector is the token's hidden state through a matrix, scaled to
# length 1. Source: Khattab and Zaharia 2020; Santhanam et al. 2022.


QUERY_GROWTH = 2
"""Factor by which query batches are smaller, since they are planned before queries are filled up."""


@dataclass(frozen=True)
class LateEncoder:
    """An encoder of texts to token vectors, with the settings of `colbert`; None takes the model's own.

    Raises BadValue for an unsuitable model or setting.
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
        check_least(self, {"max_length": 4, "max_query": 4, "batch_tokens": 0})

    def describe(self, device: str = "auto") -> dict[str, object]:
        recipe = _resolve_late(self)
        declared = declare(recipe.checkpoint, self.engine, self.dtype, device)
        return recipe.describe() | {"dtype": self.dtype, "engine": declared.label}

    def fetch(self) -> None:
        fetch(self.model)

    def load(self, device: str = "auto") -> LoadedLate:
        self.fetch()
        recipe = _resolve_late(self)
        declared = declare(recipe.checkpoint, self.engine, self.dtype, device)
        place = declared.place
        graph = recipe.checkpoint.graph is not None  # its outputs are the vectors of tokens
        head = TokenHead(() if graph else _layers(recipe), normalise=True)
        engine = build(recipe.checkpoint, declared, head)
        query, document = _part(recipe, "query", engine), _part(recipe, "document", engine)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        return LoadedLate(self, place, query, document, head, budget)


@dataclass(frozen=True, eq=False)
class TokenEncoder:
    """An engine and tokenizer for documents or for queries."""

    engine: Engine
    tokenizer: ModelTokenizer
    marker: int | None
    """Number of the token put after the first one of each text; None for none."""
    skipped: NDArray[np.int32]
    """int32, tokens without a vector."""
    prompt: str = ""
    fill: int = 0
    """Tokens to fill up to with `filler`; 0 for none."""
    filler: int = 0
    attended: bool = True
    """True if the other tokens attend to fillers."""

    def tokens(self, texts: Sequence[Text]) -> Tokens:
        """Return the token numbers of texts, with the marker, if any, after each text's first token."""
        tokens = self.tokenizer(texts)
        if self.marker is None:
            return tokens
        ptr = tokens.ptr + np.arange(len(tokens) + 1)
        ids = np.empty(len(tokens.ids) + len(tokens), np.int32)
        at = ptr[:-1] + np.minimum(tokens.lengths, 1)  # after the first token; in front if there is none
        free = np.ones(len(ids), np.bool_)
        free[at] = False
        ids[at], ids[free] = self.marker, tokens.ids
        return Tokens(ids, ptr)

    def filled(self, batch: Tokens) -> Tokens:
        """Return the batch with each text filled up with `filler` to `fill` tokens; unchanged if `fill` is 0."""
        if not self.fill:
            return batch
        lengths = batch.lengths
        full = np.maximum(lengths, self.fill)
        ptr = offsets(full)
        ids = np.full(int(ptr[-1]), self.filler, np.int32)
        ids[np.repeat(ptr[:-1], lengths) + batch.positions] = batch.ids
        return Tokens(ids, ptr, visible=None if self.attended else lengths)


@dataclass(frozen=True, eq=False)
class LoadedLate:
    """A late-interaction encoder loaded on a device."""

    encoder: LateEncoder
    place: ComputePlace
    query: TokenEncoder
    document: TokenEncoder
    head: TokenHead
    batch_tokens: int

    @property
    def dimensions(self) -> int:
        if not self.head.layers:
            return int(self.encode(["a"]).values.shape[1])
        return int(self.head.layers[-1].weight.shape[0])

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Ragged:
        """Return the token vectors of each text in order, float32[tokens, dimensions], of length 1.

        Raises BadValue for a vector that is not finite, and a text too large for memory.
        """
        rows = texts.tolist() if isinstance(texts, Strings) else texts
        blocks = list(self.stream(rows, kind))
        encoded = Ragged.joined(
            blocks, blocks[0].values[:0] if blocks else np.zeros((0, self.dimensions), np.float32)
        )
        bad = np.flatnonzero(~np.isfinite(encoded.values).all(axis=1))
        if len(bad):
            text = int(np.searchsorted(encoded.ptr, bad[0], side="right")) - 1
            advice = f"(computed in {self.place.dtype}); take dtype='fp32', or look at the checkpoint"
            raise UnusableText("a vector", text, f"is not finite {advice}")
        return encoded

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Ragged]:
        """Yield the token vectors of texts, in order, some thousand texts at a time; NaN is not refused.

        done: called with the number of finished texts.

        Raises BadValue for a text too large for memory.
        """
        part = self.query if kind == "query" else self.document
        prompted: Iterable[Text] = (part.prompt + t for t in texts) if part.prompt else texts
        budget = max(1, self.batch_tokens // QUERY_GROWTH) if part.fill else self.batch_tokens
        plan = BatchPlan(budget, padded=part.engine.padded and not part.fill)

        def run(batch: Tokens) -> Ragged:
            whole = part.filled(batch)
            used = ~np.isin(whole.ids, part.skipped)
            ptr = offsets(used)[whole.ptr]
            return Ragged(ptr, part.engine.array([part.engine.rows(whole)])[used])

        yield from results(prompted, part.tokens, run, gather_ragged, plan, done)


def _part(recipe: _LateRecipe, kind: Kind, engine: Engine) -> TokenEncoder:
    is_query = kind == "query"
    text = recipe.query_marker if is_query else recipe.document_marker
    limit = recipe.max_query if is_query else recipe.max_document
    if is_query and not recipe.cut:
        limit = recipe.checkpoint.limit
    tokenizer = load_tokenizer(recipe.checkpoint.folder, limit - int(bool(text)))
    ids = [tokenizer.inner.token_to_id(word) for word in recipe.skipped]
    skipped = np.array([i for i in ids if i is not None], np.int32)
    if is_query and not recipe.skipped_in_queries:
        skipped = skipped[:0]
    fill = recipe.max_query if is_query and recipe.fill else 0
    return TokenEncoder(
        engine,
        tokenizer,
        None if not text else _number(tokenizer, text, recipe),
        skipped,
        recipe.query_prompt if is_query else recipe.document_prompt,
        fill,
        _number(tokenizer, recipe.filler, recipe) if fill else 0,
        recipe.attended,
    )


def _number(tokenizer: ModelTokenizer, token: str, recipe: _LateRecipe) -> int:
    for text in (token, token.strip()):
        number = tokenizer.inner.token_to_id(text)
        if number is not None:
            return int(number)
    raise BadValue(f"{recipe.checkpoint.folder}: its tokenizer does not know '{token.strip()}'")


def _layers(recipe: _LateRecipe) -> tuple[Layer, ...]:
    width = recipe.checkpoint.config.get("hidden_size")
    heads, layers = recipe.checkpoint.heads, list[Layer]()
    for head in heads or (Head("Dense", recipe.checkpoint.folder),):
        folder = head.folder
        if head.kind != "Dense":
            raise BadValue(
                f"{folder}: a step '{head.kind}' behind the transformer is not supported; expected Dense"
            )
        state = read_state(folder)
        if "linear.weight" not in state:
            raise StoreError(
                f"{folder}: the weights have no 'linear.weight', which makes the vectors of tokens"
            )
        if heads:
            added = state.get("residual.weight")
            if added is None and read_object(folder / "config.json").get("use_residual"):
                added = np.empty(0, np.float32)
            bias = state.get("linear.bias")
            layers.append(Layer("Dense", state["linear.weight"], bias, head.activation, added))
        else:  # ColBERT's own layout: the projection lies among the transformer's weights
            layers.append(Layer("Dense", state["linear.weight"]))
    for layer in layers:
        if layer.weight.ndim != 2 or (width is not None and layer.weight.shape[1] != width):
            raise StoreError(
                f"{recipe.checkpoint.folder}: a layer of shape {tuple(layer.weight.shape)} stands after states of "
                f"{width} numbers"
            )
        width = layer.weight.shape[0]
    return tuple(layers)
