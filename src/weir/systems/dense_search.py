"""Dense retrieval: texts and queries as vectors, the nearest found exactly, or by an approximate index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float64, in_range
from weir.errors import BadValue, StoreError
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, read_array, seal_folder
from weir.models.checkpoints import find_card
from weir.models.encoder import Encoder, Kind, Loaded, LoadedObject, ObjectEncoder, as_encoder
from weir.models.hardware import declared_kind
from weir.models.hosted import Hosted, LoadedEncoder, LoadedHosted, instructed, is_hosted
from weir.models.multi_device import PIECES_PER_DEVICE, devices, on_several
from weir.registry import changed_settings, session_only
from weir.settings import settings
from weir.systems.compose import shown, then
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
from weir.systems.restricted import LOWEST_SCORE, deepened, scored_candidates
from weir.systems.vectors.ann import Approximate, ApproximateIndex, Loss, loss, search_with
from weir.systems.vectors.exact_search import Found, pair_scores, search
from weir.systems.vectors.gpu_search import search_on
from weir.systems.vectors.store import (
    Encode,
    EncodingBlocks,
    StoredVectors,
    TextSource,
    VectorStore,
    codec,
    encoded_in_memory,
    share_encoder,
    stored,
)

FORMAT = 1
BATCH_TEXTS = {"cpu": 128, "cuda": 8192}
"""Texts encoded together and stored: what a killed process loses at most."""
API_TEXTS = 256
"""Texts that an API is asked for before they are stored."""
OTHER_KIND = {"document": {"query", "max_query", "query revision"}, "query": {"document"}}
"""Entries of an encoder's description that say nothing about the texts of a kind."""

VectorEncoder: TypeAlias = Encoder | Hosted | ObjectEncoder


@dataclass(frozen=True)
class DenseRetriever:
    """Dense retrieval, of values that compose; see `dense` for how they are written.

    encoder: what turns texts into vectors, a checkpoint, an API, or an object; store: how vectors are kept, fp32, fp16,
    bf16, int8 or binary; nearest: an approximate index, None for exact search; view: what of a document is encoded;
    separator: between its title and text, None takes the model's card's, or one space. Raises UnknownName or BadValue.
    """

    encoder: VectorEncoder
    store: str = "fp32"
    nearest: ApproximateIndex | None = None
    view: str = "title text"
    separator: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __post_init__(self) -> None:
        codec(self.store)
        check_view(self.view)
        if not isinstance(self.separator, (str, type(None))):
            raise BadValue(f"separator is {self.separator!r}; expected a text")

    @property
    def between(self) -> str:
        """What stands between a document's title and its text."""
        card = find_card(self.encoder.model) if isinstance(self.encoder, Encoder) else None
        return self.separator if self.separator is not None else " " if card is None else card.separator

    def __str__(self) -> str:
        model, settings_ = self.encoder.arguments
        own = changed_settings(self, leave_out=("encoder", "nearest"))
        index = {} if self.nearest is None else self.nearest.arguments
        return called("dense", model, {**settings_, **own, **index})

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
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
        """Those of dense search."""
        return ("dense search",)

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are encoded."""
        return (self.view,)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> DenseSearcher:
        """Encode the corpus into the store of vectors, all that is not there; the folder notes which rows are whose.

        Vectors by an object that declares no version are kept in memory alone.
        """
        loaded, texts = self.encoder.load(settings().device), self._texts(corpus)
        about = _about(self.encoder, loaded, "document")
        home = settings().home / "vectors"
        store = VectorStore.of(home, about, self.store)
        if not session_only(about):
            for elsewhere in context.vectors:
                store.take_in(elsewhere)
            store.convert(VectorStore.of(home, about), texts)
        before = store.snapshot()
        with _encoding(loaded) as (encode, cut):
            if session_only(about):
                vectors = encoded_in_memory(self.store, texts, encode, context.progress, cut)
            else:
                vectors = stored(store, texts, encode, context.progress, cut)
        near = None if self.nearest is None else self.nearest.build(vectors)
        if context.folder is not None:
            facts = {"format": FORMAT, "system": str(self), "store": store.folder.name}
            facts |= {"corpus": corpus.fingerprint_with(self.fields_read()), "documents": len(corpus)}
            facts |= {"texts": vectors.digest()}
            with atomic_dir(context.folder) as folder:
                np.save(folder / "rows.npy", vectors.rows)
                if near is not None:
                    near.write(folder / "ann.bin")
                seal_folder(folder, "index.json", facts)
        reused = 0 if before is None else int(np.count_nonzero(vectors.rows < len(before.texts)))
        return DenseSearcher(self, corpus, vectors, loaded, reused, near)

    def encoding_blocks(self, documents: int) -> int:
        """Of a checkpoint on one device several; an object may know nothing of other processes, an API is paid for."""
        setting = settings().device
        if not isinstance(self.encoder, Encoder) or len(devices(setting)) > 1:
            return 1
        return -(-documents // BATCH_TEXTS[declared_kind(setting)])

    def share_encoder(self) -> ShareEncoder:
        """See `Encoding`."""
        loaded = self.encoder.load(settings().device)
        folder, about = settings().home / "vectors", _about(self.encoder, loaded, "document")
        encode: Encode = partial(loaded.encode, kind="document")
        return share_encoder(
            VectorStore.of(folder, about, self.store),
            self._texts,
            lambda store, texts, hashes: store.keeper(texts, hashes, encode),
            EncodingBlocks(BATCH_TEXTS[declared_kind(settings().device)]),
            VectorStore.of(folder, about),
        )

    def _texts(self, corpus: Corpus) -> TextSource:
        view = partial(corpus.view, self.view, separator=self.between)
        return TextSource(len(corpus), view, corpus.ids.__getitem__)

    def open(self, corpus: Corpus, context: Context) -> DenseSearcher:
        """Open what `index` noted about the same corpus; the vectors lie in the store.

        Raises StoreError where it, or the store, is damaged or gone, BadValue where it is of another corpus.
        """
        at = folder_of(context)
        try:
            facts = open_folder(at, "index.json")
            rows = read_array(at / "rows.npy", np.int64)
            corpus_key = facts["corpus"], facts["documents"]
            store = VectorStore(settings().home / "vectors" / Path(facts["store"]).name, "", self.store)
        except (StoreError, KeyError, TypeError) as error:
            raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None
        if corpus_key != (corpus.fingerprint_with(self.fields_read()), len(corpus)):
            raise BadValue(f"{at}: this index was made from another corpus; delete it to build it again")
        snapshot = store.snapshot()
        if facts.get("format") != FORMAT or snapshot is None or len(rows) != len(corpus):
            raise StoreError(f"{at}: its vectors are not in {store.folder} any more; they are encoded again")
        vectors = StoredVectors(snapshot, rows)
        if not in_range(rows, len(snapshot.texts)) or vectors.digest() != facts["texts"]:
            raise StoreError(f"{at}: {store.folder} holds other vectors now; they are encoded again")
        near = None if self.nearest is None else self.nearest.open(at / "ann.bin", vectors.dimensions)
        return DenseSearcher(self, corpus, vectors, None, near=near)


@dataclass(frozen=True, eq=False)
class DenseSearcher:
    """Vectors of a corpus and the encoder of queries, ready to answer."""

    system: DenseRetriever
    corpus: Corpus
    vectors: StoredVectors
    opened: LoadedEncoder | None
    reused: int = 0
    near: Approximate | None = None

    def nested(self, queries: Queries, k: int) -> bool:
        """Whether it searches exactly."""
        return self.near is None

    def costs(self) -> Costs:
        """The vectors in the store, and how many were there before; an API's vectors of queries are kept too."""
        size = len(np.unique(self.vectors.rows)) * self.vectors.snapshot.raw.shape[1]
        encoder = self.system.encoder
        hosted, repeatable = isinstance(encoder, Hosted), isinstance(encoder, Encoder)
        return Costs(size, self.reused, cached_queries=hosted, repeatable=repeatable)

    def export(self, folder: Path) -> bool:
        """Write the vectors into a folder; see `Exported`."""
        self.vectors.export(folder)
        return True

    @cached_property
    def loaded(self) -> LoadedEncoder:
        """The encoder, loaded when it is first needed."""
        return self.opened or self.system.encoder.load(settings().device)

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; none for a query without text. Raises BadValue for k below 1."""
        check_k(k)
        filled = [i for i, text in enumerate(queries.text.tolist()) if text.strip()]
        count = np.zeros(len(queries), np.int64)
        doc, score = np.zeros(0, np.int32), np.zeros(0)
        if filled and len(self.corpus):
            vectors = self.encoded(queries.take(np.array(filled)))
            hits = self._nearest(vectors, k, context.progress)
            count[filled] = np.diff(hits.ptr)
            doc, score = hits.doc, hits.score.astype(np.float64)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        return Run(queries.ids, self.corpus.ids, ptr, doc, score, str(self.system))

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents that may be ranked: candidates are scored alone, where the search is exact."""
        if self.near is not None:
            return deepened(self, queries, k, context)
        return replace(scored_candidates(self, self, queries, self.corpus, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The score of each candidate, the same bits as searching gives; the lowest for a query without text."""
        score = np.full(len(candidates.doc), LOWEST_SCORE)
        texts = queries.text.tolist()
        filled = np.array([i for i, text in enumerate(texts) if text.strip()], np.int64)
        if len(filled) == 0:
            return score
        vectors = self.encoded(queries.take(filled))
        for q, vector in zip(filled.tolist(), vectors, strict=True):
            rows = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
            score[rows] = pair_scores(self.vectors.take(candidates.doc[rows]), vector)
        return score

    def loss(self, queries: Queries, k: int) -> Loss:
        """What the approximate index loses of the exact k best of these queries; raises BadValue without one."""
        if self.near is None:
            raise BadValue(f"{self.system} searches exactly; only an approximate index loses anything")
        return loss(self.near, self.vectors, self.encoded(queries), k)

    def _nearest(self, vectors: NDArray[np.float32], k: int, progress: Progress | None) -> Found:
        """By the approximate index if there is one; else the same answers, to the bit, on GPU and processor."""
        places = self.corpus.ids.tie_ranks
        if self.near is not None:
            return search_with(self.near, self.vectors, vectors, k, places)
        if isinstance(self.loaded, Loaded) and self.loaded.place.device.startswith("cuda"):
            return search_on(self.loaded.place.device, self.vectors, vectors, k, places, progress)
        return search(self.vectors, vectors, k, "dot", places, progress=progress)

    def encoded(self, queries: Queries) -> NDArray[np.float32]:
        """The queries' vectors, see `query_vectors`."""
        return query_vectors(self.system.encoder, self.loaded, queries)


def query_vectors(encoder: VectorEncoder, loaded: LoadedEncoder, queries: Queries) -> NDArray[np.float32]:
    """The queries' vectors: computed each time, since how long an answer takes is measured, but for an API."""
    loaded, text = instructed(loaded, queries)
    if not isinstance(loaded, LoadedHosted):
        return loaded.encode(text, "query")
    store = VectorStore.of(settings().home / "vectors", _about(encoder, loaded, "query"))
    texts = TextSource(len(queries), text.slice, queries.ids.__getitem__)
    cut = EncodingBlocks(API_TEXTS, whole=False)
    return stored(store, texts, partial(loaded.stream, kind="query"), None, cut).values


def _about(encoder: VectorEncoder, loaded: LoadedEncoder, kind: Kind) -> dict[str, object]:
    """What decides the vector of a text of that kind, and the engine, whose bits may differ from another's."""
    device = settings().device
    description = loaded.identity() if isinstance(loaded, LoadedHosted) else encoder.describe(device)
    return {"kind": kind} | {
        name: value for name, value in description.items() if name not in OTHER_KIND[kind]
    }


@contextmanager
def _encoding(loaded: LoadedEncoder) -> Iterator[tuple[Encode, EncodingBlocks]]:
    """(what encodes documents, the blocks it takes): on one device, on several, or by an API.

    An API gives vectors answer by answer, so that each is kept before the next is paid for.
    """
    if isinstance(loaded, LoadedHosted):
        yield partial(loaded.stream, kind="document"), EncodingBlocks(API_TEXTS, whole=False)
        return
    encode: Encode = partial(loaded.encode, kind="document")
    if isinstance(loaded, LoadedObject):
        yield encode, EncodingBlocks()
        return
    names, size = devices(settings().device), BATCH_TEXTS[loaded.place.kind]
    if len(names) == 1:
        yield encode, EncodingBlocks(size)
        return
    with on_several(loaded, names, size) as encode_on_several:
        yield encode_on_several, EncodingBlocks(size * PIECES_PER_DEVICE * len(names))


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
    """Dense retrieval by an encoder of texts, searched exactly or by an approximate index.

    model: a name of `weir list models`, a name on the Hugging Face hub, a folder, or provider:model for an embedding
    API; in Python also an object with encode(texts) -> vectors, such as a SentenceTransformer, or a function of texts;
    see weir.encoder for one with a version, whose vectors are kept.
    pooling, similarity, query_prompt, document_prompt, max_length, max_query, dtype, engine, batch_tokens: see
    weir.models.Encoder, None takes the checkpoint's. store: how vectors are kept, fp32, fp16, bf16, int8 or binary;
    scores are computed in full precision from what is kept. index: None searches exactly; or an approximate index,
    named as FAISS's factory names it ("HNSW32", "IVF1024,PQ48") or usearch; effort: how much of that index a query
    looks at, 0 takes the library's default. view: what of a document is encoded; separator: between its title and
    text, None takes the model's card's, or one space. base, dimensions, key: address, size and environment variable
    with the key of an API. Raises UnknownName or BadValue.
    """
    encoder_settings: dict[str, object] = {
        "pooling": pooling,
        "similarity": similarity,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "max_length": max_length,
        "max_query": max_query,
        "dtype": None if dtype == "fp32" else dtype,
        "engine": None if engine == "auto" else engine,
        "batch_tokens": batch_tokens or None,
        "base": base,
        "dimensions": dimensions,
        "key": key,
    }
    arguments = {setting: value for setting, value in encoder_settings.items() if value is not None}
    nearest = ApproximateIndex.of(index, effort)
    return DenseRetriever(encoder_of(model, arguments), store, nearest, view, separator)


def encoder_of(model: object, arguments: dict[str, object] | None = None) -> VectorEncoder:
    """The encoder that a model and its settings name; raises BadValue for a setting that it does not have."""
    if isinstance(model, (Encoder, Hosted, ObjectEncoder)):
        return model
    arguments, by_name = arguments or {}, isinstance(model, (str, int, float, type(None)))
    kind: type[Encoder | Hosted] = Hosted if isinstance(model, str) and is_hosted(model) else Encoder
    what = "an embedding API" if kind is Hosted else "a checkpoint"
    for setting in arguments:
        if by_name and setting not in {f.name for f in fields(kind)}:
            raise BadValue(f"dense: {setting} does not apply to {what} such as {model}")
        if not by_name and setting != "similarity":
            raise BadValue(f"dense: {setting} does not apply to an object such as {type(model).__name__}")
    if by_name:
        return kind(model, **arguments)  # type: ignore[arg-type]  # they check the values they are given
    return as_encoder(model, **arguments)  # type: ignore[arg-type]  # it checks the values it is given
