"""Re-rankers that score pairs: another system, cross-encoders, late interaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.models.cross_encoder import CrossEncoder
from weir.models.late import LateEncoder, LoadedLate
from weir.models.t5 import MAX_TOKENS, MonoT5
from weir.settings import settings
from weir.systems.compose import Pipeline, behind, shown
from weir.systems.composite import shelf_of
from weir.systems.fused import Fused
from weir.systems.protocol import (
    IN_MEMORY,
    RERANKERS,
    Component,
    Context,
    Costs,
    IndexFree,
    Retriever,
    Scorer,
    called,
    check_depth,
    described_depth,
)
from weir.systems.rerank.reranking import VIEW, CacheCounts, PairScorer
from weir.systems.restricted import LOWEST_SCORE
from weir.systems.vectors.maxsim_search import HeldTokens, TokenQueries, TokenRows, TokenVectors, pair_maxsim
from weir.systems.vectors.store import Block, EncodingBlocks, RaggedStore, TextSource, stored_ragged

# ----------
# Re-ranking by the scores of another system.


@RERANKERS.register("score")
@dataclass(frozen=True)
class Score:
    """Order the first documents by the scores that another system gives them.

    system: any whose index can score given documents: bm25, rm3, an encoder; depth: how many documents, None
    for 100, and for all candidates. Raises BadValue for a system that scores only what it finds, as fusions do.
    """

    system: Retriever
    depth: int | None = None

    __repr__ = shown
    __rrshift__ = behind

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"score takes a system, such as score(rm3); {self.system!r} is none")
        if isinstance(self.system, (Fused, Pipeline)):
            raise BadValue(f"score: {self.system} scores only what it finds; give a single system")
        check_depth("score", self.depth)

    def __str__(self) -> str:
        return called("score", [self.system], {} if self.depth is None else {"depth": self.depth})

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        return {"reranker": str(self), **described_depth(self.depth), "system": self.system.describe()}

    def components(self) -> tuple[Component, ...]:
        """The index that scores."""
        return (Component(self.system, "index"),)

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """The system's index, or what scores without one."""
        alone = self.system.scorer(corpus) if isinstance(self.system, IndexFree) else None
        if alone is not None:
            return alone
        searcher = shelf_of(context).index(self.system, corpus, context)
        if not isinstance(searcher, Scorer):
            raise BadValue(f"score: {self.system} scores only what it finds; give another system")
        return searcher


# ----------
# Re-ranking by models that read a query and a document together: cross-encoders and T5.


@dataclass(frozen=True)
class PairReranker:
    """A model of pairs that scores the first `depth` documents of each ranking; name: as it is registered."""

    name: str
    encoder: CrossEncoder | MonoT5
    depth: int | None = None

    def __post_init__(self) -> None:
        check_depth(self.name, self.depth)

    __repr__ = shown
    __rrshift__ = behind

    def __str__(self) -> str:
        first, options = self.encoder.arguments
        return called(self.name, first, ({} if self.depth is None else {"depth": self.depth}) | options)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        own: dict[str, object] = {"reranker": self.name, **described_depth(self.depth), "document": VIEW}
        return own | self.encoder.describe(settings().device)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> PairScorer:
        """The model, loaded; scores are kept in Weir's home."""
        device = settings().device
        return PairScorer(str(self), self.encoder.load(device), self.encoder.describe(device), corpus)


@RERANKERS.register("cross")
@checked
def cross(
    model: str = "minilm-cross",
    depth: int | None = None,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> PairReranker:
    """Order the first documents by a cross-encoder, which reads query and document together.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder; depth: how many documents, None
    for 100, and for all candidates; max_length: tokens of a pair at most, of which the longer text loses first; dtype:
    fp32, bf16, fp16 or int8; engine: auto, openvino, torch or transformers, see weir.models.engine;
    batch_tokens: 0 takes what suits the device.
    The score is the model's own number before any activation, and is kept. Source: Nogueira and Cho 2019. Raises
    BadValue for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"cross: model is {model!r}; expected a hub name or a folder")
    return PairReranker("cross", CrossEncoder(model, max_length, dtype, engine, batch_tokens), depth)


@RERANKERS.register("monot5")
@checked
def monot5(
    model: str = "monot5",
    depth: int | None = None,
    max_length: int = MAX_TOKENS,
    dtype: str = "fp32",
    token_false: str | None = None,
    token_true: str | None = None,
    batch_tokens: int = 0,
) -> PairReranker:
    """Order the first documents by a T5 that answers whether a document is relevant.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder; depth: how many documents, None
    for 100, and for all candidates; max_length: tokens of a pair at most, of which the document loses first; dtype:
    fp32 or bf16; token_false, token_true: the words the checkpoint was taught, None takes what its makers say;
    batch_tokens: 0 takes what suits the device. A score is the logarithm of the share that "true" has of both words; it
    is kept: no pair is scored twice. Source: Nogueira et al. 2020; castorini/pygaggle. Raises BadValue for settings out
    of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"monot5: model is {model!r}; expected a hub name or a folder")
    return PairReranker(
        "monot5", MonoT5(model, max_length, dtype, token_false, token_true, batch_tokens), depth
    )


# ----------
# Late interaction as a re-ranker: the candidates alone are encoded, and their vectors stored.


DTYPES: dict[str, type[np.floating]] = {"fp16": np.float16, "fp32": np.float32}
BATCH_TEXTS = {"cpu": 128, "cuda": 4096}
"""Texts encoded together and stored: what a killed process loses at most."""
QUERY_ENTRIES = {"query", "max_query", "filled", "cut", "left out of queries"}
"""What in an encoder's description says nothing about documents."""


def documents_store(loaded: LoadedLate, stored_as: str) -> RaggedStore:
    """The store of documents' token vectors by this encoder; stored_as: fp16 or fp32."""
    described = loaded.encoder.describe(settings().device)
    about = {name: value for name, value in described.items() if name not in QUERY_ENTRIES}
    width = loaded.dimensions * np.dtype(DTYPES[stored_as]).itemsize
    about |= {"kind": "tokens", "stored": stored_as}
    return RaggedStore.of(settings().home / "vectors", about, width, np.dtype(DTYPES[stored_as]).name)


def encoded_blocks(loaded: LoadedLate, stored_as: str, texts: list[str]) -> Iterator[Block]:
    """The token vectors of documents as the store takes them, block by block."""
    for block in loaded.stream(texts):
        rows = np.ascontiguousarray(block.values, DTYPES[stored_as])
        yield block.ptr, rows.view(np.uint8).reshape(len(rows), -1)


def with_text(queries: Queries) -> Int64:
    """The numbers of queries that have a text."""
    return np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)


def score_candidates(rows: TokenRows, numbers: Int64, query: TokenQueries, candidates: Run) -> Float64:
    """The score of each candidate of the queries asked, whose vectors `query` has in their order; the lowest there is
    for the others, and for documents without tokens."""
    score = np.full(len(candidates.doc), LOWEST_SCORE)
    for at, q in enumerate(numbers.tolist()):
        own = np.arange(candidates.ptr[q], candidates.ptr[q + 1])
        own = own[rows.lengths[candidates.doc[own]] > 0]
        score[own] = pair_maxsim(rows, query.of(at), candidates.doc[own])
    return score


@dataclass(frozen=True, eq=False)
class LateScorer:
    """An encoder and the documents it may be asked about.

    stored_as: fp16 or fp32; view: what of a document is encoded; name: in messages.
    """

    encoder: LateEncoder
    corpus: Corpus
    stored_as: str
    view: str
    name: str
    counts: CacheCounts = field(default_factory=CacheCounts)

    @cached_property
    def loaded(self) -> LoadedLate:
        """The encoder, loaded when it is first needed."""
        return self.encoder.load(settings().device)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The score of each candidate, the same bits as searching gives."""
        numbers = with_text(queries)
        encoded = self.loaded.encode(queries.take(numbers).text, "query")
        docs, place = np.unique(candidates.doc, return_inverse=True)
        rows = self._vectors(docs.astype(np.int64), place, context)
        numbered = replace(candidates, doc=place.astype(np.int32))
        return score_candidates(rows, numbers, TokenQueries(encoded.ptr, encoded.values), numbered)

    def costs(self) -> Costs:
        """How many scores were asked for, and of how many the document had to be encoded, so far; without reuse every
        document is encoded and nothing kept."""
        return Costs(
            requested_pairs=self.counts.requested, computed_pairs=self.counts.computed, repeatable=True
        )

    def _vectors(self, docs: Int64, place: Int64, context: Context) -> TokenRows:
        """The token vectors of these documents; place: which of them each candidate is."""
        corpus, view = self.corpus, self.view
        texts = TextSource(
            len(docs), lambda a, b: corpus.view_of(view, docs[a:b]), lambda i: corpus.ids[int(docs[i])]
        )
        if not context.reuse:
            blocks = list(
                self.loaded.stream(t for i in range(len(docs)) for t in texts.block(i, i + 1).tolist())
            )
            lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(b.ptr) for b in blocks)])
            values = [np.zeros((0, self.loaded.dimensions), np.float32), *(b.values for b in blocks)]
            return HeldTokens(lengths, np.concatenate(values).astype(DTYPES[self.stored_as]))
        store = documents_store(self.loaded, self.stored_as)
        before = store.snapshot()
        new = np.ones(len(docs), np.bool_) if before is None else before.texts.find(texts.hashes()) < 0
        self.counts.requested += len(place)
        self.counts.computed += int(new[place].sum())
        cut = EncodingBlocks(BATCH_TEXTS[self.loaded.place.kind], whole=not self.loaded.document.engine.alone)
        encode = partial(encoded_blocks, self.loaded, self.stored_as)
        return TokenVectors(
            stored_ragged(store, texts, encode, context.progress, cut), DTYPES[self.stored_as]
        )
