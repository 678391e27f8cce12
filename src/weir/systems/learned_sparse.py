"""Learned sparse retrieval: texts as weighted terms, the best found exactly in an impact index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int32, Int64, offsets
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS, BlockBounds
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.postings import VALUE, document_frequencies, place
from weir.kernels.inverted.search import DEEPEST_BOUND_SCAN, Impacts
from weir.models.hardware import declared_kind
from weir.models.sparse import TERM, LoadedSparse, SparseEncoder
from weir.registry import changed_settings
from weir.settings import memory_budget, settings
from weir.systems.compose import shown, then
from weir.systems.lexical.inversion import (
    Blocks,
    BlockSource,
    GrowingFiles,
    Pairs,
    index_in_files,
    merged,
    work_files,
)
from weir.systems.lexical.inverted_index import (
    ImpactIndex,
    load_index_of,
    pair_scores,
    save_index_of,
    sparse_kernels,
    tie_order,
    top,
)
from weir.systems.protocol import (
    IN_MEMORY,
    SYSTEMS,
    Context,
    Costs,
    Progress,
    ShareEncoder,
    called,
    check_k,
    folder_of,
)
from weir.systems.vectors.store import (
    Block,
    EncodingBlocks,
    GatheredRagged,
    RaggedStore,
    TextSource,
    share_encoder,
    stored_ragged,
)

VIEW = "title text"
BATCH_TEXTS = {"cpu": 128, "cuda": 8192}
"""Texts encoded together and stored: what a killed process loses at most."""
POSTING_BYTES = 12
"""Memory of a weight while an index is made in memory: its posting, and bounds."""
BLOCK_WEIGHTS = 1 << 20
"""Weights read from the store at once."""


@dataclass(frozen=True)
class Sparse:
    """Learned sparse retrieval: an encoder of weighted terms, searched exactly; see `splade`, `sparta` and `unicoil`.

    encoder: a SparseEncoder, or the name of a SPLADE checkpoint; view: what of a document is encoded. Raises
    UnknownName or BadValue.
    """

    encoder: SparseEncoder
    view: str = VIEW

    __repr__ = shown
    __rshift__ = then

    def __post_init__(self) -> None:
        if isinstance(self.encoder, str):
            object.__setattr__(self, "encoder", SparseEncoder("splade", self.encoder))
        check_view(self.view)

    def __str__(self) -> str:
        encoder = changed_settings(self.encoder, leave_out=("family", "model"))
        return called(
            self.encoder.family,
            [self.encoder.model],
            encoder | changed_settings(self, leave_out=("encoder",)),
        )

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        numbers = {name: algorithm(name) for name in ("sparse index", "sparse search")}
        about = {"encoder": self.encoder.describe(settings().device), "view": self.view}
        search = {"search": "exact, in double, rounded to float"}
        return {"system": self.encoder.family, **about, **numbers, **search}

    def kernels(self, documents: int) -> tuple[str, ...]:
        """Those of a sparse index; another where weights are bounded block by block."""
        many = documents > EXHAUSTIVE_DOCUMENTS
        return (*sparse_kernels(documents), *(("learned sparse search",) if many else ()))

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are encoded."""
        return (self.view,)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> SparseSearcher:
        """Encode all that the store does not hold, and index the corpus, in memory or into the context's folder."""
        loaded = self.encoder.load(settings().device)
        terms, costs = stored_terms(loaded, corpus, self.view, context)
        if context.folder is None:
            index = _inverted(terms, corpus, loaded.vocabulary)
        else:
            about = {"system": self.describe(), "corpus": corpus.fingerprint}
            if POSTING_BYTES * int(terms.lengths.sum()) <= memory_budget().bytes:
                index = _inverted(terms, corpus, loaded.vocabulary)
                save_index_of(self, corpus, self.fields_read(), context.folder, (index,))
            else:
                with work_files(context.folder, 0, about) as files:
                    index = _inverted_on_disk(files, terms, corpus, loaded.vocabulary, context.progress)
                    save_index_of(self, corpus, self.fields_read(), context.folder, (index,))
            (index,) = load_index_of(corpus, context.folder, self.fields_read())
        return SparseSearcher(self, corpus, index, loaded, costs)

    def encoding_blocks(self, documents: int) -> int:
        """See `Encoding`."""
        return -(-documents // BATCH_TEXTS[declared_kind(settings().device)])

    def share_encoder(self) -> ShareEncoder:
        """See `Encoding`."""
        loaded = self.encoder.load(settings().device)
        encode = partial(_encoded_terms, loaded)
        return share_encoder(
            _terms_store(loaded),
            partial(_texts, view=self.view),
            lambda store, texts, hashes: store.keeper(texts, hashes, encode),
            _blocks(loaded),
        )

    def open(self, corpus: Corpus, context: Context) -> SparseSearcher:
        """Open an index that `index` wrote for the same corpus; raises StoreError where it is damaged."""
        (index,) = load_index_of(corpus, folder_of(context), self.fields_read())
        return SparseSearcher(self, corpus, index, None)


@dataclass(frozen=True, eq=False)
class SparseSearcher:
    """An index of a corpus and the encoder of queries, ready to answer."""

    system: Sparse
    corpus: Corpus
    impacts: ImpactIndex
    opened: LoadedSparse | None
    stored: Costs = Costs(repeatable=True)  # noqa: RUF009 - a frozen value

    def nested(self, queries: Queries, k: int) -> bool:
        """Whether one more is found by bounds as the k are."""
        return k != DEEPEST_BOUND_SCAN

    def costs(self) -> Costs:
        """The weights in the store from which the index was made; queries are encoded each time."""
        return self.stored

    @cached_property
    def loaded(self) -> LoadedSparse:
        """The encoder, loaded when it is first needed."""
        return self.opened or self.system.encoder.load(settings().device)

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; none for a query without text. Raises BadValue for k below 1."""
        check_k(k)
        hits = top(self.impacts, *self._query_terms(queries), min(k, max(len(self.corpus), 1)))
        return Run(queries.ids, self.corpus.ids, hits.ptr, hits.doc, hits.score, str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The score of each candidate, the same bits as searching gives; 0 for one without a term of the query."""
        return pair_scores(self.impacts, self._query_terms(queries), candidates)

    def _query_terms(self, queries: Queries) -> tuple[Int64, Int32, Float32]:
        """The queries' terms: (ptr int64[Q + 1], term int32, weight float32)."""
        texts = queries.text.tolist()
        filled = [i for i, text in enumerate(texts) if text.strip()]
        block = self.loaded.encode([texts[i] for i in filled], "query")
        count = np.zeros(len(texts), np.int64)
        count[filled] = np.diff(block.ptr)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        return ptr, np.ascontiguousarray(block.values["term"]), np.ascontiguousarray(block.values["weight"])


def stored_terms(
    loaded: LoadedSparse, corpus: Corpus, view: str, context: Context
) -> tuple[GatheredRagged, Costs]:
    """The rows of TERM of each document, from the store; what it lacks is encoded, and kept batch by batch."""
    store = _terms_store(loaded)
    for elsewhere in context.vectors:
        store.take_in(elsewhere)
    before, encode = store.snapshot(), partial(_encoded_terms, loaded)
    rows = stored_ragged(store, _texts(corpus, view), encode, context.progress, _blocks(loaded))
    reused = 0 if before is None else int(np.count_nonzero(rows.numbers < len(before.texts)))
    return rows, Costs(int(rows.lengths.sum()) * TERM.itemsize, reused, repeatable=True)


def _terms_store(loaded: LoadedSparse) -> RaggedStore:
    described = loaded.recipe.encoder.describe(settings().device)
    about = {"kind": "terms"} | {name: value for name, value in described.items() if name != "query"}
    return RaggedStore.of(settings().home / "vectors", about, TERM.itemsize)


def _texts(corpus: Corpus, view: str) -> TextSource:
    return TextSource(len(corpus), partial(corpus.view, view), corpus.ids.__getitem__)


def _blocks(loaded: LoadedSparse) -> EncodingBlocks:
    return EncodingBlocks(BATCH_TEXTS[loaded.place.kind])


def _encoded_terms(loaded: LoadedSparse, texts: list[str]) -> Block:
    """The weighted terms of documents as the store takes them."""
    block = loaded.encode(texts, "document")
    return block.ptr, np.ascontiguousarray(block.values).view(np.uint8).reshape(-1, TERM.itemsize)


def _frequencies(terms: GatheredRagged, vocabulary: int) -> Int64:
    """How many documents have each term."""
    count = np.zeros(vocabulary, np.int64)
    for _, _, (_, rows) in terms.blocks(BLOCK_WEIGHTS):
        count += document_frequencies(np.ascontiguousarray(_terms(rows)["term"]), vocabulary)
    return count


def _inverted(terms: GatheredRagged, corpus: Corpus, vocabulary: int) -> ImpactIndex:
    """The impact index of documents' terms; what a document weighs a term is the term's impact there."""
    order = tie_order(corpus)
    ptr = offsets(_frequencies(terms, vocabulary))
    doc, impact, cursor = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32), ptr[:-1].copy()
    size = max(1, BLOCK_WEIGHTS * len(corpus) // max(int(ptr[-1]), 1))
    for start in range(0, len(corpus), size):
        own, rows = terms.take(order[start : start + size])
        term, weight = (np.ascontiguousarray(_terms(rows)[name]) for name in ("term", "weight"))
        place(own, term, weight, start, cursor, doc, impact)
    terms.release()
    postings = ptr, doc, impact, len(corpus)
    impacts = Impacts(
        len(corpus), ptr, doc, impact, BlockBounds.where_needed(*postings), ByteBounds.of(*postings)
    )
    return ImpactIndex(impacts, (), order)


def _inverted_on_disk(
    files: GrowingFiles, terms: GatheredRagged, corpus: Corpus, vocabulary: int, progress: Progress | None
) -> ImpactIndex:
    """As `_inverted`, in files: for more weights than memory holds."""
    order, count = tie_order(corpus), _frequencies(terms, vocabulary).astype(np.int32)
    blocks = Blocks.planned(files, order, int(count.sum(dtype=np.int64)))

    def pairs(block: int) -> Pairs:
        own, rows = terms.take(blocks.documents(block))
        some = _terms(rows)
        return own, np.ascontiguousarray(some["term"]), np.ascontiguousarray(some["weight"])

    def weights(df: Int32) -> tuple[Float32, Float32]:
        return np.ones(len(df), np.float32), np.ones(len(order), np.float32)

    ptr = merged(files, "terms", BlockSource(blocks, count, pairs, lambda _: []), weights, VALUE, progress)
    terms.release()
    return index_in_files(files, ptr, (), order, learned=True)


def _terms(rows: Any) -> Any:  # noqa: ANN401 - uint8[n, 8] to TERM[n]
    return np.ascontiguousarray(rows).reshape(-1).view(TERM)


@SYSTEMS.register("splade")
def splade(
    model: str = "splade",
    query: str | None = None,
    pooling: str | None = None,
    activation: str | None = None,
    top: int | None = None,
    top_query: int | None = None,
    threshold: float = 0.0,
    quantised: bool = False,
    view: str = VIEW,
    max_length: int | None = None,
    max_query: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> Sparse:
    """SPLADE: terms that a model for masked words expects, weighed by log(1 + relu) and the largest over tokens.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder; query: what weighs a query's
    terms, "model", "tokens" (each token once, with weight 1), "idf" (the checkpoint's idf.json) or another checkpoint,
    None leaves it to the checkpoint; pooling: max or sum over tokens; activation: relu, or log1p_relu for the logarithm
    twice; top, top_query: the heaviest terms kept of a document and a query; threshold: what their weights exceed;
    quantised: weights as whole 256ths of 5, as Pyserini's impacts; view: what of a document is encoded; max_length,
    max_query, dtype, engine, batch_tokens: see weir.models.Encoder. Search is exact. Source: Formal et al. 2021 and
    2024; sentence-transformers' SparseEncoder. Raises BadValue for settings out of range.
    """
    weighing = query, pooling, activation, top, top_query, threshold, quantised
    encoder = SparseEncoder("splade", model, *weighing, max_length, max_query, dtype, engine, batch_tokens)
    return Sparse(encoder, view)


@SYSTEMS.register("sparta")
def sparta(
    model: str = "sparta",
    top: int | None = None,
    view: str = VIEW,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> Sparse:
    """SPARTA: a term weighs log(1 + relu) of the largest product of its own vector with a token's state.

    A query is its tokens, each with weight 1 each time it occurs. top: the heaviest terms kept of a document, 2,000 as
    BEIR does; other settings: see `splade`. BEIR's own code also takes the states of padding, so that a document's
    weights there depend on what stands in its batch; here only those of its tokens count. Source: Zhao et al. 2021;
    BEIR's models/sparta.py. Raises BadValue for settings out of range.
    """
    encoder = SparseEncoder("sparta", model, top=top, max_length=max_length)
    return Sparse(replace(encoder, dtype=dtype, engine=engine, batch_tokens=batch_tokens), view)


@SYSTEMS.register("unicoil")
def unicoil(
    model: str = "unicoil",
    quantised: bool = False,
    view: str = VIEW,
    max_length: int | None = None,
    max_query: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> Sparse:
    """uniCOIL: each token of a text weighs what one layer makes of its state; no other terms.

    Of a document's equal tokens the heaviest counts, of a query's their sum, as in Pyserini, which also keeps [SEP]
    as a term. quantised: weights as whole 256ths of 5, as Pyserini's impacts; other settings: see `splade`. Source:
    Lin and Ma 2021; Pyserini's encode/_unicoil.py. Raises BadValue for settings out of range.
    """
    encoder = SparseEncoder("unicoil", model, quantised=quantised, max_length=max_length, max_query=max_query)
    return Sparse(replace(encoder, dtype=dtype, engine=engine, batch_tokens=batch_tokens), view)
