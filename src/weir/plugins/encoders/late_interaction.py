"""Late interaction, `colbert`: search and re-ranking by MaxSim over token vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int64
from weir.errors import BadValue, StoreError, UnknownName
from weir.models.batching import Ragged
from weir.plugins.encoders.late import LateEncoder, LoadedLate
from weir.plugins.encoders.maxsim_search import (
    KMEANS_ITERATIONS,
    KMEANS_SEED,
    CentroidLists,
    Centroids,
    Compressed,
    TokenRows,
    clustered,
    compressed,
    listed,
    near,
    pair_maxsim,
    read_clusters,
    refuse_odd,
    require_memory_for,
    search_chosen,
    search_tokens,
    write_clusters,
)
from weir.registry import changed_settings, check_whole
from weir.settings import settings
from weir.systems import encoded
from weir.systems.compose import system_text, then
from weir.systems.encoded import DocumentEncoding, EncodedSearcher
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, Progress, Scorer, called, folder_of
from weir.systems.rerank.reranking import CacheCounts
from weir.systems.restricted import LOWEST_SCORE
from weir.systems.vectors.approximate import Loss
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.store import (
    FLOATS,
    Codec,
    EncodingBlocks,
    RowStore,
    StoredRows,
    TextSource,
    encoded_rows,
)

BATCH_TEXTS = {"cpu": 128, "cuda": 4096}
"""Texts encoded and stored together: the most that a killed process loses."""
QUERY_ENTRIES = {"query", "max_query", "filled", "cut", "left out of queries"}
"""Entries of an encoder's description that do not affect documents."""
STORED = ("fp16", "fp32")
CANDIDATES_FROM_DOCUMENTS = 100_000
"""Documents from which candidates save time on a CPU."""
CANDIDATES = 1024
"""PLAID's number of fully scored candidates for up to a hundred results."""


@SYSTEMS.register("colbert")
@named_arguments
@dataclass(frozen=True)
class ColBERT:
    """Search by late interaction: MaxSim over token vectors, of all documents or of candidates.

    Raises UnknownName or BadValue for settings out of range. Sources: Khattab and Zaharia 2020, Santhanam et
    al. 2022 (ColBERTv2, PLAID).
    """

    model: str = "colbert"
    """Name of `weir list models` of the kind late, a name on the Hugging Face hub, or a folder, in the layout of
    ColBERT, PyLate or sentence-transformers' multi-vector encoders.
    """
    max_length: int | None = None
    """Tokens of a document, with marker and special ones; `max_query` for a query. None takes the model's own."""
    max_query: int | None = None
    dtype: str = "fp32"
    """See `dense`, also for engine and batch_tokens."""
    engine: str = "auto"
    batch_tokens: int = 0
    store: str = "fp16"
    """Type of the stored token vectors, fp16 or fp32."""
    bits: int = 0
    """0 scores full vectors; 1 or 2 scores vectors compressed to a centroid and this many bits for each number."""
    candidates: int | str | None = "auto"
    """Documents to score, found by centroids.

    None scores all; "auto" all below 100,000 documents, else the larger of 1,024 and 2 k.
    """
    probes: int = 4
    """Centroids for each token of a query that give candidates."""
    view: str = "title text"
    """The field of a document that is encoded."""

    def __post_init__(self) -> None:
        if self.store not in STORED:
            raise UnknownName("way to store token vectors", str(self.store), STORED)
        check_view(self.view)
        if type(self.bits) is not int or self.bits not in (0, 1, 2):
            raise BadValue(f"bits is {self.bits!r}; expected 0, 1 or 2")
        check_whole("probes", self.probes)
        count = type(self.candidates) is int and self.candidates > 0
        if self.candidates not in (None, "auto") and not count:
            raise BadValue(
                f'candidates is {self.candidates!r}; expected None, "auto" or a whole number from 1'
            )
        _ = self.encoder

    @cached_property
    def encoder(self) -> LateEncoder:
        """The encoder that these settings choose."""
        return LateEncoder(**{f.name: getattr(self, f.name) for f in fields(LateEncoder)})

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        own = changed_settings(self, leave_out=tuple(f.name for f in fields(LateEncoder)))
        return called("colbert", [self.model], changed_settings(self.encoder, leave_out=("model",)) | own)

    def describe(self) -> dict[str, object]:
        described: dict[str, object] = {"system": "colbert", "late search": algorithm("late search")}
        described |= {
            "encoder": self.encoder.describe(settings().device),
            "store": self.store,
            "view": self.view,
        }
        described |= {"search": "exact MaxSim, float32 products, sums in double"}
        if self.bits:
            described |= {"bits": self.bits}
        if self.bits or self.candidates is not None:
            rounds = f"k-means, {KMEANS_ITERATIONS} rounds, seed {KMEANS_SEED}"
            described |= {"centroids": f"16 times the root of the tokens, {rounds}"}
        if self.candidates is not None:
            limit = f"all below {CANDIDATES_FROM_DOCUMENTS} documents, else {CANDIDATES} or twice the depth"
            described |= {"candidates": limit if self.candidates == "auto" else self.candidates}
            described |= {"probes": self.probes}
        return described

    def kernels(self, documents: int) -> tuple[str, ...]:
        return ("late search",)

    between = " "
    batch_texts = BATCH_TEXTS
    fields_read = encoded.fields_read
    fetch = encoded.fetch
    encoding_blocks = encoded.encoding_blocks
    share_encoder = encoded.share_encoder

    def document_encoding(self, loaded: LoadedLate) -> DocumentEncoding:
        """Return the encoding function of documents, the store of their vectors, and the block size."""
        described = loaded.encoder.describe(settings().device)
        about = {name: value for name, value in described.items() if name not in QUERY_ENTRIES}
        about |= {"kind": "tokens", "stored": self.store}
        row_bytes = Codec(self.store).width(loaded.dimensions)
        store = RowStore.of(settings().home / "vectors", about, self.store, row_bytes)
        return DocumentEncoding(store, loaded.stream, EncodingBlocks(self.batch_texts[loaded.place.kind]))

    def encoded_queries(self, loaded: LoadedLate, queries: Queries) -> Ragged:
        """Return the token vectors of each query."""
        return loaded.encode(queries.text, "query")

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> LateSearcher:
        loaded = self.encoder.load(settings().device)
        refuse_odd(loaded.dimensions, self.bits)
        how = self.document_encoding(loaded)
        tokens, reused = encoded.encoded_documents(how, encoded.texts_of(corpus, self.view), context)
        limit, clusters, lists, small = self.limit(len(tokens)), None, None, None
        if self.bits or limit:
            require_memory_for(int(tokens.lengths.sum()), tokens.dimensions, self.bits, limit > 0)
            clusters = clustered(tokens)
            lists = listed(clusters) if limit else None
            small = compressed(tokens, clusters, self.bits) if self.bits else None

        def write_index(folder: Path) -> Mapping[str, object]:
            if clusters is not None:
                write_clusters(folder, clusters, lists, small)
            return {} if small is None else {"error": small.error, "largest": small.largest}

        if context.folder is not None:
            encoded.write_rows(self, corpus, context.folder, how.store, tokens, write_index)
        documents = _Tokens(self, corpus.ids, tokens, clusters, lists, small)
        return EncodedSearcher(self, corpus, documents, loaded, reused)

    def open(self, corpus: Corpus, context: Context) -> LateSearcher:
        at = folder_of(context)
        tokens = encoded.open_rows(self, corpus, at, self.store, needed=not self.bits)
        documents = _Tokens(self, corpus.ids, tokens)
        if self.bits or self.limit(len(corpus)):
            clusters, lists, small = read_clusters(at, self.bits)
            if len(clusters.ptr) != len(corpus) + 1:
                raise StoreError(f"{at}: the index is damaged; delete it to build it again")
            documents = _Tokens(self, corpus.ids, tokens, clusters, lists, small)
        return EncodedSearcher(self, corpus, documents)

    def scorer(self, corpus: Corpus) -> Scorer | None:
        return None if self.bits else _LateScorer(self, corpus)

    def limit(self, documents: int, k: int = 1) -> int:
        """Return the number of candidates to score for the k best of `documents` documents; 0 means all."""
        if self.candidates is None or (self.candidates == "auto" and documents < CANDIDATES_FROM_DOCUMENTS):
            return 0
        return max(CANDIDATES, 2 * k) if self.candidates == "auto" else max(int(self.candidates), k)


@dataclass(frozen=True, eq=False)
class _Tokens:
    system: ColBERT
    ids: Ids
    full: StoredRows | None
    """None if the store lost them and the index holds compressed ones."""
    clusters: Centroids | None = None
    lists: CentroidLists | None = None
    """Documents by centroid, from which candidates are taken."""
    small: Compressed | None = None

    @property
    def stored(self) -> StoredRows | None:
        return self.full if self.small is None else None

    @property
    def scored(self) -> TokenRows:
        tokens = self.full if self.small is None else self.small
        assert tokens is not None  # one of them is there
        return tokens

    def nearest(self, query: Ragged, k: int, progress: Progress | None = None) -> Found:
        limit, rank = self._limit(k), self.ids.tie_ranks
        if not limit or self.clusters is None or self.lists is None:
            return search_tokens(self.scored, query, k, rank, progress)
        chosen = near(self.clusters, self.lists, query, self.system.probes, limit)
        return search_chosen(self.scored, query, chosen, k, rank)

    def pair_scores(self, query: Ragged, numbers: Int64, candidates: Run) -> Float64:
        return _score_candidates(self.scored, query, numbers, candidates)

    def nested(self, k: int) -> bool:
        return False  # how many candidates are scored depends on k

    def scores_all(self, k: int) -> bool:
        return not self._limit(k)

    def search_loss(self, query: Callable[[], Ragged], k: int) -> Loss | None:
        if self.small is None and not self._limit(k):
            return None
        if self.full is None:
            raise BadValue(
                f"{self.system}: the vectors it was made of are gone; index again to compare with them"
            )
        asked, rank = query(), self.ids.tie_ranks
        exact = search_tokens(self.full, asked, k, rank)
        remembered = exact if self.small is None else search_tokens(self.small, asked, k, rank)
        quantisation = 1 - _overlap(exact, remembered)
        return Loss(quantisation, 1 - _overlap(exact, self.nearest(asked, k)) - quantisation)

    def _limit(self, k: int) -> int:
        return self.system.limit(len(self.ids), k)


LateSearcher: TypeAlias = EncodedSearcher[LoadedLate, Ragged, _Tokens]


def _overlap(exact: Found, other: Found) -> float:
    shares = []
    for q in range(len(exact.ptr) - 1):
        a, b = (f.doc[f.ptr[q] : f.ptr[q + 1]] for f in (exact, other))
        shares.append(len(np.intersect1d(a, b)) / max(len(a), 1))
    return float(np.mean(shares)) if shares else 1.0


# ----------
# Late interaction as a re-ranker: the candidates alone are encoded, and their vectors stored.


def _score_candidates(rows: TokenRows, query: Ragged, numbers: Int64, candidates: Run) -> Float64:
    score = np.full(len(candidates.doc), LOWEST_SCORE)
    for at, q in enumerate(numbers.tolist()):
        own = np.arange(candidates.ptr[q], candidates.ptr[q + 1])
        own = own[rows.lengths[candidates.doc[own]] > 0]
        score[own] = pair_maxsim(rows, query.of(at), candidates.doc[own])
    return score


@dataclass(frozen=True, eq=False)
class _LateScorer:
    """A scorer by MaxSim that encodes the candidates alone, without an index."""

    system: ColBERT
    corpus: Corpus
    counts: CacheCounts = field(default_factory=CacheCounts)

    @cached_property
    def loaded(self) -> LoadedLate:
        return self.system.encoder.load(settings().device)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        numbers = encoded.with_text(queries)
        docs, place = np.unique(candidates.doc, return_inverse=True)
        rows = self._rows(docs.astype(np.int64), place, context)
        query = self.system.encoded_queries(self.loaded, queries.take(numbers))
        return _score_candidates(rows, query, numbers, replace(candidates, doc=place.astype(np.int32)))

    def costs(self) -> Costs:
        return self.counts.costs()

    def _rows(self, docs: Int64, place: Int64, context: Context) -> TokenRows:
        corpus, how = self.corpus, self.system.document_encoding(self.loaded)
        texts = TextSource(
            len(docs),
            lambda start, stop: corpus.view_of(self.system.view, docs[start:stop]),
            lambda i: corpus.ids[int(docs[i])],
        )
        if not context.reuse:
            nothing = np.zeros((0, self.loaded.dimensions), np.float32)
            tokens = Ragged.joined(list(self.loaded.stream(texts.take(np.arange(len(docs))))), nothing)
            return replace(tokens, values=tokens.values.astype(FLOATS[self.system.store]))
        before = how.store.snapshot()
        new = np.ones(len(docs), np.bool_) if before is None else before.texts.find(texts.hashes()) < 0
        self.counts.requested += len(place)
        self.counts.computed += int(new[place].sum())
        blocks = replace(how.blocks, whole=not self.loaded.document.engine.batch_independent)
        return encoded_rows(how.store, texts, how.encode, context.progress, blocks)
