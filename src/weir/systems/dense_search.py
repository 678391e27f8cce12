"""Dense retrieval: the nearest vectors, exactly or by an approximate index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Ids, Int64
from weir.errors import BadValue
from weir.models.checkpoints import find_card
from weir.models.encoder import Encoder, Kind, Loaded, ObjectEncoder, as_encoder
from weir.models.hosted import Hosted, LoadedEncoder, LoadedHosted, instructed, is_hosted
from weir.models.multi_device import PIECES_PER_DEVICE, devices, on_several
from weir.registry import changed_settings, session_only
from weir.settings import settings
from weir.systems import encoded
from weir.systems.compose import VIEW, system_text, then
from weir.systems.encoded import BATCH_TEXTS, DocumentEncoding, EncodedSearcher
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Progress, called, folder_of
from weir.systems.restricted import LOWEST_SCORE
from weir.systems.vectors.approximate import (
    Approximate,
    ApproximateIndex,
    Loss,
    approximate_index,
    index_loss,
    search_with,
)
from weir.systems.vectors.exact_search import Found, query_dot_products, search
from weir.systems.vectors.gpu_search import search_on
from weir.systems.vectors.store import (
    Encode,
    EncodingBlocks,
    RowStore,
    StoredRows,
    TextSource,
    codec,
    encoded_rows,
)

API_TEXTS = 256
"""Texts requested from an API before their vectors are stored."""
OTHER_KIND = {"document": {"query", "max_query", "query revision"}, "query": {"document"}}
"""Entries of an encoder's description that do not affect texts of a kind."""

VectorEncoder: TypeAlias = Encoder | Hosted | ObjectEncoder


@dataclass(frozen=True)
class DenseRetriever:
    """Dense retrieval by an encoder; `dense` explains the settings.

    Raises UnknownName for an unknown store, BadValue for a bad view or separator.
    """

    encoder: VectorEncoder
    store: str = "fp32"
    nearest: ApproximateIndex | None = None
    """None searches exactly."""
    view: str = VIEW
    separator: str | None = None

    __repr__ = system_text
    __rshift__ = then

    def __post_init__(self) -> None:
        codec(self.store)
        check_view(self.view)
        if not isinstance(self.separator, (str, type(None))):
            raise BadValue(f"separator is {self.separator!r}; expected a text")

    @property
    def between(self) -> str:
        """Text between a document's title and text: the setting, else the encoder's, else a space."""
        if self.separator is None and isinstance(self.encoder, ObjectEncoder) and self.view == VIEW:
            return self.encoder.separator
        card = find_card(self.encoder.model) if isinstance(self.encoder, Encoder) else None
        return self.separator if self.separator is not None else " " if card is None else card.separator

    def __str__(self) -> str:
        model, settings_ = self.encoder.arguments
        own = changed_settings(self, leave_out=("encoder", "nearest"))
        index = {} if self.nearest is None else self.nearest.arguments
        return called("dense", model, {**settings_, **own, **index})

    def describe(self) -> dict[str, object]:
        search: dict[str, object] = {"search": "exact, in double, rounded to float"}
        if self.nearest is not None:
            search = self.nearest.describe() | {"scored": "in double, rounded to float"}
        return {
            "system": "dense",
            "dense search": algorithm("dense search"),
            "encoder": self.encoder.describe(settings().device),
            "store": self.store,
            "view": self.view,
            "separator": self.between,
            **search,
        }

    def kernels(self, documents: int) -> tuple[str, ...]:
        return ("dense search",)

    batch_texts = BATCH_TEXTS
    fields_read = encoded.fields_read
    fetch = encoded.fetch
    share_encoder = encoded.share_encoder

    def encoding_blocks(self, documents: int) -> int:
        whole = not isinstance(self.encoder, Encoder) or len(devices(settings().device)) > 1
        return 1 if whole else encoded.encoding_blocks(self, documents)

    def document_encoding(self, loaded: LoadedEncoder) -> DocumentEncoding:
        """Return how one device encodes documents, and the store of their vectors."""
        about, home = _about(self.encoder, loaded, "document"), settings().home / "vectors"
        encode: Encode = partial(loaded.encode, kind="document")
        blocks = EncodingBlocks()
        if isinstance(loaded, LoadedHosted):
            encode, blocks = partial(loaded.stream, kind="document"), EncodingBlocks(API_TEXTS, whole=False)
        elif isinstance(loaded, Loaded):
            blocks = EncodingBlocks(self.batch_texts[loaded.place.kind])
        store, full = RowStore.of(home, about, self.store), RowStore.of(home, about)
        return DocumentEncoding(store, encode, blocks, full, in_memory=session_only(about))

    def encoded_queries(self, loaded: LoadedEncoder, queries: Queries) -> Float32:
        """Return the vectors of queries, float32[queries, d]."""
        return query_vectors(self.encoder, loaded, queries)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> DenseSearcher:
        loaded = self.encoder.load(settings().device)
        with _on_devices(loaded, self.document_encoding(loaded)) as how:
            texts = encoded.texts_of(corpus, self.view, self.between)
            vectors, reused = encoded.encoded_documents(how, texts, context)
        near = None if self.nearest is None else self.nearest.build(vectors)

        def write_index(folder: Path) -> dict[str, object]:
            if near is not None:
                near.write(folder / "ann.bin")
            return {}

        if context.folder is not None:
            encoded.write_rows(self, corpus, context.folder, how.store, vectors, write_index)
        return EncodedSearcher(self, corpus, _Vectors(self, corpus.ids, vectors, near), loaded, reused)

    def open(self, corpus: Corpus, context: Context) -> DenseSearcher:
        at = folder_of(context)
        vectors = encoded.open_rows(self, corpus, at, self.store)
        assert vectors is not None  # they are needed
        near = None if self.nearest is None else self.nearest.open(at / "ann.bin", vectors.dimensions)
        return EncodedSearcher(self, corpus, _Vectors(self, corpus.ids, vectors, near))


@dataclass(frozen=True, eq=False)
class _Vectors:
    system: DenseRetriever
    ids: Ids
    stored: StoredRows
    near: Approximate | None

    @cached_property
    def device(self) -> str:  # a GPU that encodes queries searches too
        encoder = self.system.encoder
        return encoder.declared(settings().device).place.device if isinstance(encoder, Encoder) else "cpu"

    def nearest(self, query: Float32, k: int, progress: Progress | None = None) -> Found:
        if self.near is not None:
            return search_with(self.near, self.stored, query, k, self.ids.tie_ranks)
        if self.device.startswith("cuda"):
            return search_on(self.device, self.stored, query, k, self.ids.tie_ranks, progress)
        return search(self.stored, query, k, "dot", self.ids.tie_ranks, progress=progress)

    def pair_scores(self, query: Float32, numbers: Int64, candidates: Run) -> Float64:
        score = np.full(len(candidates.doc), LOWEST_SCORE)
        for q, vector in zip(numbers.tolist(), query, strict=True):
            own = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
            score[own] = query_dot_products(self.stored.take(candidates.doc[own]), vector)
        return score

    def nested(self, k: int) -> bool:
        return self.near is None

    scores_all = nested

    def search_loss(self, query: Callable[[], Float32], k: int) -> Loss | None:
        return None if self.near is None else index_loss(self.near, self.stored, query(), k)


DenseSearcher: TypeAlias = EncodedSearcher[LoadedEncoder, Float32, _Vectors]


def query_vectors(encoder: VectorEncoder, loaded: LoadedEncoder, queries: Queries) -> Float32:
    """Return the vectors of queries, float32[queries, d]; those from an API are stored and reused."""
    loaded, text = instructed(loaded, queries)
    if not isinstance(loaded, LoadedHosted):
        return loaded.encode(text, "query")
    store = RowStore.of(settings().home / "vectors", _about(encoder, loaded, "query"))
    texts = TextSource(len(queries), text.slice, queries.ids.__getitem__)
    blocks = EncodingBlocks(API_TEXTS, whole=False)
    return encoded_rows(store, texts, partial(loaded.stream, kind="query"), None, blocks).values


def _about(encoder: VectorEncoder, loaded: LoadedEncoder, kind: Kind) -> dict[str, object]:
    device = settings().device
    description = loaded.identity() if isinstance(loaded, LoadedHosted) else encoder.describe(device)
    return {"kind": kind} | {
        name: value for name, value in description.items() if name not in OTHER_KIND[kind]
    }


@contextmanager
def _on_devices(loaded: LoadedEncoder, how: DocumentEncoding) -> Iterator[DocumentEncoding]:
    names, size = devices(settings().device), how.blocks.size
    if not isinstance(loaded, Loaded) or len(names) == 1:
        yield how
        return
    with on_several(loaded, names, size) as encode:
        yield replace(how, encode=encode, blocks=EncodingBlocks(size * PIECES_PER_DEVICE * len(names)))


@SYSTEMS.register("dense")
@checked
def dense(
    model: str | object = "minilm",
    pooling: str | None = None,
    similarity: str | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    max_length: int | None = None,
    max_query: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
    store: str = "fp32",
    view: str = "title text",
    separator: str | None = None,
    index: str | None = None,
    effort: int = 0,
    base: str | None = None,
    dimensions: int | None = None,
    key: str | None = None,
) -> DenseRetriever:
    """Rank by the vectors of an encoder, exactly or by an approximate index. None leaves a setting to the model.

    model: a name of `weir list models`, a hub name, a folder, or provider:model for an embedding API. In
        Python also an object with encode(texts) or a function of texts, whose vectors are stored if
        weir.encoder gives it a version.
    pooling: mean, cls, last or max, or own for an ONNX graph with one vector per text.
    similarity: dot, or cosine, which scales vectors to length 1.
    query_prompt: text before each query, "" for none. {task} in it is the collection's instruction.
    document_prompt: text before each document, like query_prompt.
    max_length: tokens of a document at most.
    max_query: tokens of a query at most.
    dtype: lowest precision to compute in, fp32, bf16, fp16 or int8.
    engine: openvino, torch or transformers, or auto, which follows a fixed rule.
    batch_tokens: tokens of a batch, 0 to suit the device.
    store: format of stored vectors, fp32, fp16, bf16, int8 or binary. Scores are computed in full precision.
    view: fields of a document that are encoded.
    separator: text between title and text, None for the model's usual one. With None, an object with BEIR's
        encode_corpus gets them apart.
    index: None to search exactly, or an index of FAISS by its factory name ("HNSW32", "IVF1024,PQ48").
    effort: how much of the index a query visits, 0 for the library's default.
    base: URL of an API up to its version.
    dimensions: length of the vectors requested from an API.
    key: environment variable with an API's key.

    Raises UnknownName for an unknown store or provider, BadValue for other bad settings.
    """
    given = {
        "pooling": pooling,
        "similarity": similarity,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "max_length": max_length,
        "max_query": max_query,
        "dtype": dtype,
        "engine": engine,
        "batch_tokens": batch_tokens,
        "base": base,
        "dimensions": dimensions,
        "key": key,
    }
    return DenseRetriever(encoder_of(model, given), store, approximate_index(index, effort), view, separator)


def encoder_of(model: object, given: Mapping[str, object] | None = None) -> VectorEncoder:
    """Return the encoder of a model; raises BadValue for a setting that does not apply to it.

    model: a name as in `dense`, an encoder, or an object to encode with.
    given: {setting: value}; defaults of `dense` count as not given.
    """
    usual = {f.name: f.default for f in fields(Encoder)}
    changed: dict[str, Any] = {n: value for n, value in (given or {}).items() if value != usual.get(n)}
    kind: type[Encoder | Hosted] = Hosted if isinstance(model, str) and is_hosted(model) else Encoder
    applying, example = {f.name for f in fields(kind)}, f"a checkpoint such as {model}"
    if kind is Hosted:
        example = f"an embedding API such as {model}"
    elif isinstance(model, (Encoder, Hosted, ObjectEncoder)):
        applying, example = set(), f"{model!r}, which has settings of its own"
    elif not isinstance(model, (str, int, float, type(None))):
        applying, example = {"similarity"}, f"an object such as {type(model).__name__}"
    for setting in changed:
        if setting not in applying:
            raise BadValue(f"dense: {setting} does not apply to {example}")
    if isinstance(model, (Encoder, Hosted, ObjectEncoder)):
        return model
    if applying == {"similarity"}:
        return as_encoder(model, **changed)
    return kind(model, **changed)  # type: ignore[arg-type]  # it checks the model
