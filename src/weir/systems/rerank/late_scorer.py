"""Late interaction as a re-ranker: only the documents asked about are encoded, and kept for whoever asks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64, Strings
from weir.encode.late.late_encoder import LateEncoder, LoadedLate
from weir.settings import settings
from weir.systems.protocol import IN_MEMORY, Context, Costs
from weir.systems.rerank.score_cache import CacheCounts
from weir.systems.restricted import LOWEST_SCORE
from weir.vectors.encode_missing import EncodingBlocks, TextSource
from weir.vectors.maxsim_search import HeldTokens, TokenQueries, TokenRows, TokenVectors, pair_maxsim
from weir.vectors.ragged_store import Block, RaggedStore, stored_ragged

__all__ = [
    "BATCH_TEXTS",
    "DTYPES",
    "LateScorer",
    "asked_of",
    "documents_store",
    "encoded_blocks",
    "score_candidates",
]

DTYPES: dict[str, type[np.floating]] = {"fp16": np.float16, "fp32": np.float32}
BATCH_TEXTS = {"cpu": 128, "cuda": 4096}
"""Texts encoded together and stored: what a killed process loses at most."""
QUERY_ENTRIES = {"query", "max_query", "filled", "cut", "left out of queries"}
"""What in an encoder's description says nothing about documents."""


def documents_store(loaded: LoadedLate, kept: str) -> RaggedStore:
    """The store of documents' token vectors by this encoder; kept: fp16 or fp32."""
    described = loaded.encoder.describe(settings().device)
    about = {name: value for name, value in described.items() if name not in QUERY_ENTRIES}
    width = loaded.dimensions * np.dtype(DTYPES[kept]).itemsize
    about |= {"kind": "tokens", "stored": kept}
    return RaggedStore.of(settings().home / "vectors", about, width, np.dtype(DTYPES[kept]).name)


def encoded_blocks(loaded: LoadedLate, kept: str, texts: list[str]) -> Iterator[Block]:
    """The token vectors of documents as the store takes them, block by block."""
    for block in loaded.stream(texts):
        rows = np.ascontiguousarray(block.values, DTYPES[kept])
        yield block.ptr, rows.view(np.uint8).reshape(len(rows), -1)


def asked_of(queries: Queries) -> Int64:
    """The numbers of queries that have a text."""
    return np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)


def score_candidates(rows: TokenRows, asked: Int64, query: TokenQueries, candidates: Run) -> Float64:
    """The score of each candidate of the queries asked, whose vectors `query` has in their order; the lowest there is
    for the others, and for documents without tokens."""
    score = np.full(len(candidates.doc), LOWEST_SCORE)
    for at, q in enumerate(asked.tolist()):
        own = np.arange(candidates.ptr[q], candidates.ptr[q + 1])
        own = own[rows.lengths[candidates.doc[own]] > 0]
        score[own] = pair_maxsim(rows, query.of(at), candidates.doc[own])
    return score


@dataclass(frozen=True, eq=False)
class LateScorer:
    """An encoder and the documents it may be asked about.

    kept: fp16 or fp32; view: what of a document is encoded; name: in messages.
    """

    encoder: LateEncoder
    corpus: Corpus
    kept: str
    view: str
    name: str
    tally: CacheCounts = field(default_factory=CacheCounts)

    @cached_property
    def loaded(self) -> LoadedLate:
        """The encoder, loaded when it is first needed."""
        return self.encoder.load(settings().device)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The score of each candidate, the same bits as searching gives."""
        asked = asked_of(queries)
        found = self.loaded.encode(queries.take(asked).text, "query")
        docs, place = np.unique(candidates.doc, return_inverse=True)
        rows = self._vectors(docs.astype(np.int64), place, context)
        there = replace(candidates, doc=place.astype(np.int32))
        return score_candidates(rows, asked, TokenQueries(found.ptr, found.values), there)

    def costs(self) -> Costs:
        """How many scores were asked for, and of how many the document had to be encoded, so far; without reuse every
        document is encoded and nothing kept."""
        return Costs(requested_pairs=self.tally.asked, computed_pairs=self.tally.computed, repeatable=True)

    def _vectors(self, docs: Int64, place: Int64, context: Context) -> TokenRows:
        """The token vectors of these documents; place: which of them each candidate is."""
        texts = TextSource(
            len(docs), lambda a, b: self._texts(docs[a:b]), lambda i: self.corpus.ids[int(docs[i])]
        )
        if not context.reuse:
            blocks = list(
                self.loaded.stream(t for i in range(len(docs)) for t in texts.block(i, i + 1).tolist())
            )
            lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(b.ptr) for b in blocks)])
            values = [np.zeros((0, self.loaded.dimensions), np.float32), *(b.values for b in blocks)]
            return HeldTokens(lengths, np.concatenate(values).astype(DTYPES[self.kept]))
        store = documents_store(self.loaded, self.kept)
        before = store.snapshot()
        new = np.ones(len(docs), np.bool_) if before is None else before.find(texts.hashes()) < 0
        self.tally.asked += len(place)
        self.tally.computed += int(new[place].sum())
        cut = EncodingBlocks(BATCH_TEXTS[self.loaded.place.kind], whole=not self.loaded.document.engine.alone)
        encode = partial(encoded_blocks, self.loaded, self.kept)
        return TokenVectors(stored_ragged(store, texts, encode, context.progress, cut), DTYPES[self.kept])

    def _texts(self, docs: Int64) -> Strings:
        return self.corpus.view_of(self.view, docs)
