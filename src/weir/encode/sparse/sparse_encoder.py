"""Encoders that weigh words: texts in, terms with weights out.

SPLADE (Formal et al. 2021, 2024) gives every term of the vocabulary a weight through the model's head for masked
words; SPARTA (Zhao et al. 2021) through the vectors of the words themselves; uniCOIL (Lin and Ma 2021) and DeepCT
(Dai and Callan 2020) weigh the words that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Strings
from weir.encode.batching import BatchPlan, Ragged, gather_ragged, results
from weir.encode.encoder import BATCH_TOKENS, Kind
from weir.encode.models.bert_weights import supported
from weir.encode.models.engine import ComputePlace, Declared, check_engine, declare, prepare
from weir.encode.models.tokens import Tokens, load_tokenizer
from weir.encode.recipes.cards import check_kind, known
from weir.encode.recipes.checkpoint import Checkpoint
from weir.encode.recipes.fingerprint import fingerprint
from weir.encode.recipes.hub import fetch, locate
from weir.encode.recipes.model_settings import check_least
from weir.encode.sparse.sparse_checkpoint import (
    SparseCheckpoint,
    SparseModel,
    TokenWeights,
    read_layout,
    table_weights,
)
from weir.encode.sparse.sparse_heads import ACTIVATED, MLM, POOLED, TERM, Keep, merged, pooled, rows_of
from weir.encode.sparse.sparse_models import TermEncoder, model, without_special
from weir.errors import BadValue, require

__all__ = ["FAMILIES", "LoadedSparse", "SparseEncoder"]

FAMILIES = ("splade", "sparta", "unicoil", "deepct")
SPARTA_TOP = 2000
"""Terms of a document that BEIR keeps."""
IMPACT_STEPS, IMPACT_RANGE = 256, 5.0
"""Pyserini's impacts: whole 256ths of 5."""


@dataclass(frozen=True)
class SparseEncoder:
    """How texts become weighted terms: a checkpoint, and whatever should differ from what it and its card say.

    family: splade, sparta, unicoil or deepct; model: a name of `weir models`, a name on the Hugging Face hub, or a
    folder. query: what weighs the terms of queries, None leaves it to checkpoint and card: "model", "tokens" (each
    token once, with weight 1), "idf" (the weights in the checkpoint's idf.json), or another checkpoint. pooling: max
    or sum over tokens; activation: relu for log(1 + relu(x)), log1p_relu for the logarithm of one and that (both of
    SPLADE only; None leaves them to the checkpoint, else max and relu). top, top_query: the heaviest terms of a
    document and a query that are kept; threshold: a weight that kept terms exceed; quantised: weights are rounded to
    256ths of 5, as whole numbers. max_length, max_query: tokens at most; dtype, engine, batch_tokens: see Encoder.
    Raises BadValue for settings out of range.
    """

    family: str
    model: str
    query: str | None = None
    pooling: str | None = None
    activation: str | None = None
    top: int | None = None
    top_query: int | None = None
    threshold: float = 0.0
    quantised: bool = False
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        who = self.family
        for name in ("model", "query"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value.strip()) and not (name == "query" and value is None):
                raise BadValue(f"{who}: {name} is {value!r}; expected a hub name or a folder")
        check_kind(self.model, "sparse", "which gives no weights of terms")
        among: dict[str, tuple[object, ...]] = {
            "pooling": (None, *POOLED),
            "activation": (None, *ACTIVATED),
            "family": FAMILIES,
        }
        among |= {"quantised": (False, True)}
        for name, allowed in among.items():
            if getattr(self, name) not in allowed:
                shown = ", ".join(str(a) for a in allowed if a is not None)
                raise BadValue(f"{who}: {name} is {getattr(self, name)!r}; expected {shown}")
        check_engine(self.engine, self.dtype)
        check_least({"top": (self.top, 1), "top_query": (self.top_query, 1)})
        check_least({"max_length": (self.max_length, 3), "max_query": (self.max_query, 3)})
        check_least({"batch_tokens": (self.batch_tokens, 0)}, optional=False)
        if isinstance(self.threshold, bool) or not 0 <= self.threshold < float("inf"):
            raise BadValue(f"{who}: threshold is {self.threshold!r}; expected a number from 0")

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the weights, and under "engine" what computes them on a device, None where it is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        return self._resolved().describe(device)

    def fetch(self) -> None:
        """Download the checkpoints that are not here, of documents and of queries."""
        fetch(self.model)
        other = self._asked()
        if other is not None and other not in ("model", "tokens", "idf"):
            fetch(other)

    def load(self, device: str = "auto") -> LoadedSparse:
        """The encoder in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of another kind.
        """
        self.fetch()
        recipe = self._resolved()
        place = recipe.declared(recipe.layout.document.checkpoint, device).place
        prepare(place.device)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        document = recipe.part("document", device)
        query = recipe.part("query", device, document)
        return LoadedSparse(recipe, place, query, document, budget)

    def _resolved(self) -> SparseRecipe:
        card = known(self.model)
        layout = read_layout(locate(self.model))
        limits = {"document": self.max_length, "query": self.max_query or self.max_length}
        stated = {} if card is None else {"document": card.max_document, "query": card.max_query}
        return SparseRecipe(self, _with_query(layout, self._asked()), limits, stated)

    def _asked(self) -> str | None:
        """What weighs queries: what was given, else what the card says."""
        card = known(self.model)
        return self.query or (None if card is None else card.query or card.query_hub) or None


def _with_query(layout: SparseCheckpoint, asked: str | None) -> SparseCheckpoint:
    """The layout with the queries' side that was asked for."""
    own = layout.document.checkpoint
    if asked is None:
        return layout
    if asked == "model":
        return replace(layout, query=layout.document)
    if asked == "tokens":
        return replace(layout, query=TokenWeights(own, None))
    if asked == "idf":
        if isinstance(layout.query, TokenWeights):
            return layout
        if not (own.folder / "idf.json").exists():
            raise BadValue(f"{own.folder}: no idf.json there; give query='tokens', or another checkpoint")
        return replace(layout, query=TokenWeights(own, own.folder / "idf.json"))
    return replace(layout, query=read_layout(locate(asked)).query)


@dataclass(frozen=True, eq=False)
class SparseRecipe:
    """Everything decided, nothing loaded. limits: tokens asked for; stated: those of the card."""

    encoder: SparseEncoder
    layout: SparseCheckpoint
    limits: dict[str, int | None]
    stated: dict[str, int]

    def side(self, kind: Kind) -> SparseModel | TokenWeights:
        """What encodes one kind of text; SPARTA reads no query and DeepCT is asked for none."""
        document = self.layout.document
        if kind == "query" and self.encoder.family == "sparta" and self.encoder.query is None:
            return TokenWeights(document.checkpoint, None)
        return self.layout.query if kind == "query" else document

    def limit(self, kind: Kind) -> int:
        """Tokens of a text at most."""
        side = self.side(kind)
        checkpoint = side.checkpoint if isinstance(side, SparseModel) else side.tokenizer
        own, bound = self.limits[kind], checkpoint.positions
        if own is not None and bound and own > bound:
            raise BadValue(f"'{self.encoder.model}' reads {bound} tokens at most, not {own}")
        stated = self.stated.get(kind) or checkpoint.limit
        return own or (min(stated, bound) if bound else stated)

    def keep(self, kind: Kind) -> Keep:
        """Which terms are kept."""
        given = self.encoder
        top = given.top_query if kind == "query" else given.top
        if top is None and kind == "document" and given.family == "sparta":
            top = SPARTA_TOP
        return Keep(top, given.threshold)

    def how(self, side: SparseModel) -> tuple[str, str]:
        """(pooling, activation) of a vocabulary's weights."""
        given = self.encoder
        return given.pooling or side.pooling or "max", given.activation or side.activation or "relu"

    def describe(self, device: str) -> dict[str, object]:
        """What decides the weights, and the engine on a device."""
        document = self.layout.document.checkpoint
        return {
            "encoding": algorithm("encoding"),
            "family": self.encoder.family,
            "revision": fingerprint(document),
            "architecture": document.architecture,
            "dtype": self.encoder.dtype,
            "quantised": self.encoder.quantised,
            "document": self._described("document"),
            "query": self._described("query"),
            "engine": self.declared(document, device).label,
        }

    def _described(self, kind: Kind) -> dict[str, object]:
        side, keep = self.side(kind), self.keep(kind)
        about: dict[str, object] = {
            "max_length": self.limit(kind),
            "top": keep.top,
            "threshold": keep.threshold,
        }
        if isinstance(side, TokenWeights):
            counted = "each time" if self.encoder.family == "sparta" else "once"
            about |= {"weighed by": "token", "weights": side.weights, "counted": counted}
            return about | {"revision": fingerprint(side.tokenizer)}
        prompt = side.checkpoint.query_prompt if kind == "query" else side.checkpoint.document_prompt
        about |= {"weighed by": "model", "revision": fingerprint(side.checkpoint), "prompt": prompt or ""}
        if self.encoder.family == "splade":
            about |= dict(zip(("pooling", "activation"), self.how(side), strict=True))
        return about

    def declared(self, checkpoint: Checkpoint, device: str) -> Declared:
        """The engine that weighs the texts of a side on a device."""
        headed = self.encoder.family != "splade" or checkpoint.architecture in MLM
        own = headed and supported(checkpoint)
        return declare(checkpoint, self.encoder.engine, self.encoder.dtype, device, own)

    def part(self, kind: Kind, device: str, document: TermEncoder | None = None) -> TermEncoder:
        """What encodes one kind of text, in memory; document: what is loaded for documents already."""
        side, limit = self.side(kind), self.limit(kind)
        if isinstance(side, TokenWeights):
            tokenizer = load_tokenizer(side.tokenizer.folder, limit)
            return TermEncoder(tokenizer, None, None, table_weights(side, tokenizer))
        if document is not None and side is self.layout.document:
            return replace(document, tokenizer=document.tokenizer.with_limit(limit))
        declared = self.declared(side.checkpoint, device)
        tokenizer = load_tokenizer(side.checkpoint.folder, limit)
        how, at = self.how(side), (declared.place, declared.engine)
        weigh, engine = model(self.encoder.family, self.encoder.model, side.checkpoint, at, how, tokenizer)
        return TermEncoder(tokenizer, engine, weigh, None)


@dataclass(frozen=True, eq=False)
class LoadedSparse:
    """An encoder in memory; `encode` is all it does."""

    recipe: SparseRecipe
    place: ComputePlace
    query: TermEncoder
    document: TermEncoder
    batch_tokens: int

    @property
    def vocabulary(self) -> int:
        """Terms that there are: numbers of terms lie below."""
        sizes = [
            p.tokenizer.inner.get_vocab_size(with_added_tokens=True) for p in (self.query, self.document)
        ]
        found: int = max(*sizes, int(self.recipe.layout.document.checkpoint.config.get("vocab_size") or 0))
        return found

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Ragged:
        """The terms of each text, in their order: rows of TERM, ascending by term (DeepCT: token by token).

        Raises BadValue for a weight that is not finite and for a text that does not fit into memory.
        """
        given = texts.tolist() if isinstance(texts, Strings) else list(texts)
        whole = gather_ragged(list(self._numbered(self.stream(given, kind))), len(given)) if given else None
        return whole or Ragged(np.zeros(1, np.int64), np.zeros(0, TERM))

    @staticmethod
    def _numbered(blocks: Iterator[Ragged]) -> Iterator[tuple[Any, Ragged]]:
        at = 0
        for block in blocks:
            yield np.arange(at, at + len(block.ptr) - 1), block
            at += len(block.ptr) - 1

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Ragged]:
        """The terms of a stream of texts, some thousand at a time and in order, in bounded memory.

        done: told the number of texts finished so far. Raises as `encode` does.
        """
        part = self.query if kind == "query" else self.document
        side = self.recipe.side(kind)
        prompt = ""
        if isinstance(side, SparseModel):
            prompt = (
                side.checkpoint.query_prompt if kind == "query" else side.checkpoint.document_prompt
            ) or ""
        given = (prompt + t for t in texts) if prompt else texts
        run, tokenize = partial(self._rows, part, kind), part.tokenizer
        if part.table is not None:
            tokenize = partial(without_special, part.tokenizer)  # type: ignore[assignment]  # a function of texts like the one it takes the place of
        plan = BatchPlan(self.batch_tokens, padded=part.engine is not None and part.engine.padded)
        first = 0
        for block in results(given, tokenize, run, gather_ragged, plan, done):
            bad = np.flatnonzero(~np.isfinite(block.values["weight"]))
            if len(bad):
                text = first + int(np.searchsorted(block.ptr, bad[0], side="right"))
                raise BadValue(
                    f"a weight of text {text} is not finite (computed in {self.place.dtype}); take "
                    "dtype='fp32', or look at the checkpoint"
                )
            first += len(block.ptr) - 1
            yield self._quantised(block) if self.recipe.encoder.quantised else block

    def _rows(self, part: TermEncoder, kind: Kind, batch: Tokens) -> Ragged:
        family, keep = self.recipe.encoder.family, self.recipe.keep(kind)
        if part.table is not None:
            weights = part.table[batch.ids]
            once = _looked_up if family == "sparta" else _once
            return once(batch, weights, keep)
        assert part.weigh is not None
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            weights = part.weigh(batch)
            if family in ("splade", "sparta"):
                return pooled(weights, keep)
        if family == "deepct":
            rows = np.empty(len(batch.ids), TERM)
            rows["term"], rows["weight"] = batch.ids, weights
            return Ragged(batch.ptr, rows)
        first = batch.ids[batch.ptr[:-1][batch.lengths > 0]][:1]
        return merged(batch, np.maximum(weights, 0), first.tolist(), kind == "query", keep)

    @staticmethod
    def _quantised(block: Ragged) -> Ragged:
        """Whole numbers; what becomes 0 is left out."""
        rows = block.values.copy()
        rows["weight"] = np.rint(rows["weight"].astype(np.float64) / IMPACT_RANGE * IMPACT_STEPS)
        text = np.repeat(np.arange(len(block.ptr) - 1), np.diff(block.ptr))
        kept = rows["weight"] > 0
        return rows_of(text[kept], rows[kept], len(block.ptr) - 1)


def _once(batch: Tokens, weights: Any, keep: Keep) -> Ragged:  # noqa: ANN401 - float32
    """A token that is there weighs what the table says, however often it occurs."""
    return merged(batch, weights, [], False, keep)


def _looked_up(batch: Tokens, weights: Any, keep: Keep) -> Ragged:  # noqa: ANN401 - float32
    """As BEIR asks SPARTA's index: a token counts each time."""
    return merged(batch, weights, [], True, keep)
