"""Shared code of systems that compare encoded queries with encoded documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64, in_range, offsets
from weir.errors import BadValue, StoreError, UnusableText
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, read_array, seal_folder
from weir.models.encoder import ObjectEncoder
from weir.models.hardware import declared_kind
from weir.models.hosted import Hosted
from weir.settings import settings
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    Context,
    Costs,
    Progress,
    ShareEncoder,
    check_k,
    index_repr,
)
from weir.systems.restricted import deepened, permitted_only, scored_candidates
from weir.systems.vectors import store as stores
from weir.systems.vectors.approximate import Loss
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.store import Codec, Encode, EncodingBlocks, RowStore, StoredRows, TextSource

FORMAT = 1
BATCH_TEXTS = {"cpu": 128, "cuda": 8192}
"""Texts encoded and stored together; a killed process loses no more."""

L = TypeVar("L")  # a loaded encoder
L_co = TypeVar("L_co", covariant=True)
Q = TypeVar("Q")  # encoded queries
Q_co = TypeVar("Q_co", covariant=True)
Q_contra = TypeVar("Q_contra", contravariant=True)
D = TypeVar("D", bound="_Documents[Any]")


class _Encoder(Protocol[L_co]):
    def fetch(self) -> None: ...

    def load(self, device: str = "auto") -> L_co: ...


class _System(Protocol[L, Q_co]):
    @property
    def encoder(self) -> _Encoder[L]: ...

    @property
    def view(self) -> str: ...

    @property
    def between(self) -> str: ...  # what joins title and text

    @property
    def batch_texts(self) -> Mapping[str, int]: ...  # BATCH_TEXTS

    def document_encoding(self, loaded: L) -> DocumentEncoding: ...

    def encoded_queries(self, loaded: L, queries: Queries) -> Q_co: ...  # none of them empty


class _Documents(Protocol[Q_contra]):
    @property
    def stored(self) -> StoredRows | None: ...  # what the index refers to; None if it holds all itself

    def nearest(self, query: Q_contra, k: int, progress: Progress | None = None) -> Found: ...

    def pair_scores(self, query: Q_contra, numbers: Int64, candidates: Run) -> Float64: ...

    def nested(self, k: int) -> bool: ...

    def scores_all(self, k: int) -> bool: ...

    def search_loss(self, query: Callable[[], Q_contra], k: int) -> Loss | None: ...


# ----------
# Methods of the systems.


def fields_read(system: _System[Any, Any]) -> tuple[str, ...]:
    """Return the fields of documents that a system encodes, as a view in a tuple: ("title text",)."""
    return (system.view,)


def fetch(system: _System[Any, Any]) -> None:
    """Download the encoder's checkpoint unless it is on this machine."""
    system.encoder.fetch()


def encoding_blocks(system: _System[Any, Any], documents: int) -> int:
    """Return the number of blocks in which `documents` documents are encoded."""
    return -(-documents // system.batch_texts[declared_kind(settings().device)])


def share_encoder(system: _System[Any, Any]) -> ShareEncoder:
    """Load the encoder, and return a function that encodes a share of a corpus into a store."""
    how = system.document_encoding(system.encoder.load(settings().device))
    texts = partial(texts_of, view=system.view, between=system.between)
    return stores.share_encoder(how.store, texts, how.encode, how.blocks, how.full)


# ----------
# Documents to rows, and an index that names its rows in the store.


@dataclass(frozen=True, eq=False)
class DocumentEncoding:
    """How documents are encoded, and where their vectors are stored."""

    store: RowStore
    encode: Encode
    blocks: EncodingBlocks
    full: RowStore | None = None
    """A store in fp32, whose vectors are converted into `store` instead of being encoded again."""
    in_memory: bool = False
    """Keep rows in memory and store nothing."""


def texts_of(corpus: Corpus, view: str, between: str = " ") -> TextSource:
    """Return the texts of all documents, read on demand.

    view: joined fields, such as "title text".
    between: characters between title and text.
    """
    return TextSource(len(corpus), partial(corpus.view, view, separator=between), corpus.ids.__getitem__)


def encoded_documents(how: DocumentEncoding, texts: TextSource, context: Context) -> tuple[StoredRows, int]:
    """Encode the documents that the store lacks; return (rows of all documents, number stored before)."""
    store = how.store
    if how.in_memory:
        return stores.encoded_in_memory(store.codec, texts, how.encode, context.progress, how.blocks), 0
    for elsewhere in context.vectors:
        store.take_in(elsewhere)
    if how.full is not None:
        store.convert(how.full, texts)
    before = store.snapshot()
    rows = stores.encoded_rows(store, texts, how.encode, context.progress, how.blocks)
    return rows, 0 if before is None else int(np.count_nonzero(rows.numbers < len(before.texts)))


def _numbers_file(row_bytes: int) -> str:
    return "numbers.npy" if row_bytes else "rows.npy"


def write_rows(
    system: _System[Any, Any],
    corpus: Corpus,
    at: Path,
    store: RowStore,
    rows: StoredRows,
    write: Callable[[Path], Mapping[str, object]],
) -> None:
    """Write an index atomically into the folder `at`: each document's row number in the store, and the files
    of `write`.

    write: writes into a folder, and returns entries for the index's record.
    """
    facts: dict[str, object] = {"format": FORMAT, "system": str(system), "store": store.folder.name}
    facts |= {"width": store.row_bytes} if store.row_bytes else {}
    facts |= {"corpus": corpus.fingerprint_with(fields_read(system)), "documents": len(corpus)}
    facts |= {"texts": rows.digest()}
    with atomic_dir(at) as folder:
        np.save(folder / _numbers_file(store.row_bytes), rows.numbers)
        seal_folder(folder, "index.json", {**facts, **write(folder)})


def open_rows(
    system: _System[Any, Any], corpus: Corpus, at: Path, codec: str, needed: bool = True
) -> StoredRows | None:
    """Return the stored rows of the documents of the index in the folder `at`.

    codec: format of the rows, such as "fp32".
    needed: raise StoreError if the store lacks the rows; False returns None.

    Raises StoreError for a missing or damaged index, BadValue for another corpus.
    """
    try:
        facts = open_folder(at, "index.json")
        row_bytes = int(facts.get("width", 0))
        numbers = read_array(at / _numbers_file(row_bytes), np.int64)
        corpus_key = facts["corpus"], facts["documents"]
        store = RowStore(settings().home / "vectors" / Path(facts["store"]).name, "", Codec(codec), row_bytes)
    except (StoreError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None
    if corpus_key != (corpus.fingerprint_with(fields_read(system)), len(corpus)):
        raise BadValue(f"{at}: this index was made from another corpus; delete it to build it again")
    snapshot, readable = store.snapshot(), facts.get("format") == FORMAT and len(numbers) == len(corpus)
    if readable and snapshot is not None and in_range(numbers, len(snapshot.texts)):
        rows = StoredRows(snapshot, numbers)
        if rows.digest() == facts["texts"]:
            return rows
    if readable and not needed:
        return None
    raise StoreError(f"{at}: its vectors are not in {store.folder} any more; they are encoded again")


# ----------
# Searching.


@dataclass(frozen=True, eq=False)
class EncodedSearcher(Generic[L, Q, D]):
    """Encodes queries and searches encoded documents.

    A blank query finds nothing; a text that the encoder refuses raises BadValue.
    """

    system: _System[L, Q]
    corpus: Corpus
    documents: D
    opened: L | None = None
    """The loaded encoder; None to load it on first use."""
    reused: int = 0
    """Documents whose rows were stored before."""
    read_bytes: int = 0
    """Bytes of stored rows that were copied into the index; 0 if it refers to them."""

    __repr__ = index_repr

    @cached_property
    def loaded(self) -> L:
        """The query encoder, loaded on first use."""
        return self.opened or self.system.encoder.load(settings().device)

    def encoded(self, queries: Queries) -> Q:
        """Return queries, none of them blank, encoded; raises BadValue, naming the query, for a text that the
        encoder refuses."""
        try:
            return self.system.encoded_queries(self.loaded, queries)
        except UnusableText as error:
            raise error.of(queries.ids[error.number]) from None

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        filled = with_text(queries)
        count = np.zeros(len(queries), np.int64)
        doc, score = np.zeros(0, np.int32), np.zeros(0)
        if len(filled) and len(self.corpus):
            hits = self.documents.nearest(self.encoded(queries.take(filled)), k, context.progress)
            count[filled] = np.diff(hits.ptr)
            doc, score = hits.doc, hits.score.astype(np.float64)
        return Run(queries.ids, self.corpus.ids, offsets(count), doc, score, str(self.system))

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        if not self.documents.scores_all(k):
            return deepened(self, queries, k, context)
        return replace(scored_candidates(self, self, queries, self.corpus, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return each candidate's score, float64[candidates], bit-equal to `search`; for an empty query or
        document LOWEST_SCORE, or 0 if scores are sums over terms."""
        filled = with_text(queries)
        return self.documents.pair_scores(self.encoded(queries.take(filled)), filled, candidates)

    def nested(self, queries: Queries, k: int) -> bool:
        return self.documents.nested(k)

    def loss(self, queries: Queries, k: int) -> Loss:
        filled = queries.take(with_text(queries))
        lost = self.documents.search_loss(lambda: self.encoded(filled), k) if len(filled) else None
        if lost is None:
            raise BadValue(f"{self.system} searches exactly, or no query has a text: nothing is lost")
        return lost

    def costs(self) -> Costs:
        rows, encoder = self.documents.stored, self.system.encoder
        read = self.read_bytes if rows is None else rows.stored_bytes()
        hosted, own = isinstance(encoder, Hosted), isinstance(encoder, ObjectEncoder)
        return Costs(
            read, self.reused, cached_queries=hosted, repeatable=not (hosted or own), asked_again=own
        )

    def export(self, folder: Path) -> bool:
        rows = self.documents.stored
        if rows is not None:
            rows.export(folder)
        return rows is not None


def with_text(queries: Queries) -> Int64:
    """Return the positions of queries whose text is not blank, int64."""
    return np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)
