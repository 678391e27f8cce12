"""Learned sparse retrieval, `splade`, `sparta` and `unicoil`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int32, Int64, offsets
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS
from weir.kernels.inverted.packed import stored
from weir.kernels.inverted.postings import VALUE, Pairs, document_frequencies, write_postings
from weir.kernels.inverted.search import DEEPEST_BOUND_SCAN, Impacts
from weir.models.batching import Ragged
from weir.plugins.encoders.sparse import TERM, LoadedSparse, SparseEncoder
from weir.registry import changed_settings
from weir.settings import memory_budget, settings
from weir.systems import encoded
from weir.systems.compose import system_text, then
from weir.systems.encoded import BATCH_TEXTS, DocumentEncoding, EncodedSearcher
from weir.systems.lexical.inversion import (
    Blocks,
    BlockSource,
    GrowingFiles,
    index_in_files,
    merged,
    work_files,
)
from weir.systems.lexical.inverted_index import (
    ImpactIndex,
    candidate_scores,
    load_index_of,
    save_index_of,
    sparse_kernels,
    tie_order,
    top_documents,
)
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Progress, called, folder_of
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.store import RAW, EncodingBlocks, RowStore, StoredRows

VIEW = "title text"
POSTING_BYTES = 12
"""Memory of a weight while an index is built: its posting, and bounds."""
BLOCK_WEIGHTS = 1 << 20
"""Weights read from the store at once."""


@named_arguments
@dataclass(frozen=True)
class Sparse:
    """Learned sparse retrieval with exact search; raises UnknownName or BadValue for settings out of range."""

    encoder: SparseEncoder
    """A SparseEncoder, or the name of a SPLADE checkpoint."""
    view: str = VIEW
    """The encoded field of a document."""

    __repr__ = system_text
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
        numbers = {name: algorithm(name) for name in ("sparse index", "sparse search")}
        about = {"encoder": self.encoder.describe(settings().device), "view": self.view}
        search = {"search": "exact, in double, rounded to float"}
        return {"system": self.encoder.family, **about, **numbers, **search}

    def kernels(self, documents: int) -> tuple[str, ...]:
        many = documents > EXHAUSTIVE_DOCUMENTS
        of_terms = self.encoder.family in ("splade", "sparta")
        groups = (("learned sparse search", many), ("term weights", of_terms))
        return (*sparse_kernels(documents), *(name for name, used in groups if used))

    between = " "
    batch_texts = BATCH_TEXTS
    fields_read = encoded.fields_read
    fetch = encoded.fetch
    encoding_blocks = encoded.encoding_blocks
    share_encoder = encoded.share_encoder

    def document_encoding(self, loaded: LoadedSparse) -> DocumentEncoding:
        """Return the encoding function of documents, the store of their weighted terms, and the block size."""
        return term_encoding(loaded)

    def encoded_queries(self, loaded: LoadedSparse, queries: Queries) -> Ragged:
        """Return the weighted terms of each query (rows of TERM)."""
        return loaded.encode(queries.text, "query")

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> SparseSearcher:
        loaded = self.encoder.load(settings().device)
        texts = encoded.texts_of(corpus, self.view)
        terms, reused = encoded.encoded_documents(term_encoding(loaded), texts, context)
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
        size = int(terms.lengths.sum()) * TERM.itemsize
        return EncodedSearcher(self, corpus, _Terms(index), loaded, reused, size)

    def open(self, corpus: Corpus, context: Context) -> SparseSearcher:
        (index,) = load_index_of(corpus, folder_of(context), self.fields_read())
        return EncodedSearcher(self, corpus, _Terms(index))


def term_encoding(loaded: LoadedSparse) -> DocumentEncoding:
    """Return the encoding function of documents (rows of TERM), the store of the terms, and the block size."""
    described = loaded.recipe.encoder.describe(settings().device)
    about = {"kind": "terms"} | {name: value for name, value in described.items() if name != "query"}
    store = RowStore.of(settings().home / "vectors", about, RAW, TERM.itemsize)
    encode = partial(loaded.encode, kind="document")
    return DocumentEncoding(store, encode, EncodingBlocks(BATCH_TEXTS[loaded.place.kind]))


@dataclass(frozen=True, eq=False)
class _Terms:
    index: ImpactIndex
    stored: None = None

    def nearest(self, query: Ragged, k: int, progress: Progress | None = None) -> Found:
        hits = top_documents(self.index, query.ptr, *_terms(query), min(k, len(self.index.order)))
        return Found(hits.ptr, hits.doc, hits.score.astype(np.float32), 0)

    def pair_scores(self, query: Ragged, numbers: Int64, candidates: Run) -> Float64:
        count = np.zeros(len(candidates.ptr) - 1, np.int64)
        count[numbers] = query.lengths
        return candidate_scores(self.index, (offsets(count), *_terms(query)), candidates)

    def nested(self, k: int) -> bool:
        return k != DEEPEST_BOUND_SCAN  # beyond it the search changes

    def scores_all(self, k: int) -> bool:
        return False  # documents without a common term are not found

    def search_loss(self, query: Callable[[], Ragged], k: int) -> None:
        return None


SparseSearcher: TypeAlias = EncodedSearcher[LoadedSparse, Ragged, _Terms]


def _frequencies(terms: StoredRows, vocabulary: int) -> Int64:
    count = np.zeros(vocabulary, np.int64)
    for _, _, block in terms.blocks(BLOCK_WEIGHTS):
        count += document_frequencies(_terms(block)[0], vocabulary)
    return count


def _inverted(terms: StoredRows, corpus: Corpus, vocabulary: int) -> ImpactIndex:
    order = tie_order(corpus)
    ptr = offsets(_frequencies(terms, vocabulary))
    doc, impact, cursor = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32), ptr[:-1].copy()
    size = max(1, BLOCK_WEIGHTS * len(corpus) // max(int(ptr[-1]), 1))
    for start in range(0, len(corpus), size):
        block = terms.rows_of(order[start : start + size])
        write_postings(block.ptr, *_terms(block), start, cursor, doc, impact)
    terms.release()
    impacts = Impacts(len(corpus), ptr, stored(ptr, doc, impact, len(corpus)))
    return ImpactIndex(impacts.with_columns(), (), order)


def _inverted_on_disk(
    files: GrowingFiles, terms: StoredRows, corpus: Corpus, vocabulary: int, progress: Progress | None
) -> ImpactIndex:
    order, count = tie_order(corpus), _frequencies(terms, vocabulary).astype(np.int32)
    blocks = Blocks.planned(files, order, int(count.sum(dtype=np.int64)))

    def block_pairs(block: int) -> Pairs:
        rows = terms.rows_of(blocks.documents_of_block(block))
        return (rows.ptr, *_terms(rows))

    def weights(df: Int32) -> tuple[Float32, Float32]:
        return np.ones(len(df), np.float32), np.ones(len(order), np.float32)

    ptr = merged(
        files, "terms", BlockSource(blocks, count, block_pairs, lambda _: []), weights, VALUE, progress
    )
    terms.release()
    return index_in_files(files, ptr, (), order, learned=True)


def _terms(rows: Ragged) -> tuple[Int32, Float32]:
    values = np.ascontiguousarray(rows.values).reshape(-1).view(TERM)
    return np.ascontiguousarray(values["term"]), np.ascontiguousarray(values["weight"])


@SYSTEMS.register("splade")
@named_arguments
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
    """Search by SPLADE: terms predicted by a masked-word model, weighted by the largest log(1 + relu) over
    tokens.

    Raises BadValue for settings out of range.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder.
    query: weights of query terms: "model", "tokens" (1 for each distinct token), "idf" (the checkpoint's
        idf.json) or another checkpoint. None leaves it to the checkpoint.
    pooling: max or sum over tokens, by default as the checkpoint.
    activation: relu, or log1p_relu for the logarithm twice, by default as the checkpoint.
    top, top_query: number of heaviest terms kept of a document and a query, by default all.
    threshold: terms of at most this weight are dropped.
    quantised: weights become round(weight * 256 / 5), as Pyserini's impacts.
    view: fields of a document that are encoded.
    max_length, max_query: tokens of a document and a query.
    dtype, engine, batch_tokens: see `dense`.

    Source: Formal et al. 2021 and 2024.
    """
    weighing = query, pooling, activation, top, top_query, threshold, quantised
    encoder = SparseEncoder("splade", model, *weighing, max_length, max_query, dtype, engine, batch_tokens)
    return Sparse(encoder, view)


@SYSTEMS.register("sparta")
@named_arguments
def sparta(
    model: str = "sparta",
    top: int | None = None,
    view: str = VIEW,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> Sparse:
    """Search by SPARTA: a term's weight is log(1 + relu) of its vector's largest product with a token state.

    A query's tokens weigh 1 for each occurrence. Raises BadValue for settings out of range.

    top: number of heaviest terms kept of a document. None is 2,000, as in BEIR.
    model, view, max_length, dtype, engine, batch_tokens: see `splade`.

    Source: Zhao et al. 2021.
    """
    # BEIR's code includes the states of padding, so that weights depend on the batch; here only tokens count.
    encoder = SparseEncoder("sparta", model, top=top, max_length=max_length)
    return Sparse(replace(encoder, dtype=dtype, engine=engine, batch_tokens=batch_tokens), view)


@SYSTEMS.register("unicoil")
@named_arguments
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
    """Search by uniCOIL: each token of a text is a term with a weight from its state; no other terms are added.

    Equal tokens take the largest weight in a document and the sum in a query; [SEP] is a term, too, as in Pyserini.
    Raises BadValue for settings out of range.

    quantised: weights become round(weight * 256 / 5), as Pyserini's impacts.
    model, view, max_length, max_query, dtype, engine, batch_tokens: see `splade`.

    Source: Lin and Ma 2021.
    """
    encoder = SparseEncoder("unicoil", model, quantised=quantised, max_length=max_length, max_query=max_query)
    return Sparse(replace(encoder, dtype=dtype, engine=engine, batch_tokens=batch_tokens), view)
