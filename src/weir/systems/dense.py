"""Dense retrieval: texts and queries as vectors, the nearest found exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.corpus import VIEWS, Corpus, Queries
from weir.core.pointers import below
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.encode.api import Hosted, LoadedHosted, is_hosted
from weir.encode.encoder import Encoder, Kind, Loaded
from weir.encode.models.multi_device import AT_ONCE, devices, on_several
from weir.encode.recipes.cards import known
from weir.errors import BadValue, StoreError, UnknownName
from weir.io.storage.arrays import read_array
from weir.io.storage.atomic import atomic_dir
from weir.io.storage.sealed import open_folder, seal_folder
from weir.settings import settings
from weir.systems.protocol import SYSTEMS, ExternalStorage, Progress, called
from weir.vectors.ann import Approximate, Loss, build, library, loss, opened, search_with
from weir.vectors.encode_missing import Encode, EncodingBlocks, StoredVectors, TextSource, stored
from weir.vectors.exact_search import Found, pair_scores, search
from weir.vectors.gpu_search import search_on
from weir.vectors.vector_codec import codec
from weir.vectors.vector_source import ReportingSource, VectorSource
from weir.vectors.vector_store import VectorStore

__all__ = ["Dense", "DenseSearcher"]

FORMAT = 1
OWN = ("store", "view", "separator", "ann", "effort")
"""The settings that are not the encoder's."""
BATCH = {"cpu": 128, "cuda": 8192}
"""Texts encoded together and stored: what a killed process loses at most."""
ASKED = 256
"""Texts that an API is asked for before they are stored."""
OTHER = {"document": {"query", "max_query", "query revision"}, "query": {"document"}}
"""What in an encoder's description says nothing about the texts of a kind."""


@SYSTEMS.register("dense")
@dataclass(frozen=True)
class Dense:
    """Dense retrieval by an encoder of texts, searched exactly.

    model: a name of `weir models`, a name on the Hugging Face hub, a folder, or provider:model for an embedding API;
    pooling, similarity, query_prompt, document_prompt, max_length, max_query, dtype, engine, batch_tokens: see
    weir.encode.Encoder, None takes the checkpoint's. store: how vectors are kept, fp32, fp16, bf16, int8 or binary;
    scores are computed in full precision from what is kept. ann: None searches exactly; or an approximate index,
    named as FAISS's factory names it ("HNSW32", "IVF1024,PQ48") or usearch; effort: how much of that index a query
    looks at, 0 takes the library's default. view: what of a document is encoded; separator: between its title and
    text, None takes the model's card's, or one space. base, dimensions, key: address, size and environment variable
    with the key of an API.
    Raises UnknownName or BadValue.
    """

    model: str = "minilm"
    pooling: str | None = None
    similarity: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0
    store: str = "fp32"
    view: str = "title text"
    separator: str | None = None
    ann: str | None = None
    effort: int = 0
    base: str | None = None
    dimensions: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        codec(self.store)
        if self.view not in VIEWS:
            raise UnknownName("view", str(self.view), VIEWS)
        if not isinstance(self.separator, (str, type(None))):
            raise BadValue(f"separator is {self.separator!r}; expected a text")
        if not (self.ann is None or (isinstance(self.ann, str) and self.ann)):
            raise BadValue(f"ann is {self.ann!r}; expected the name of an index, such as HNSW32")
        if type(self.effort) is not int or self.effort < 0 or (self.effort and self.ann is None):
            raise BadValue(f"effort is {self.effort!r}; expected a whole number from 0, beside ann")
        _ = self.encoder

    @cached_property
    def encoder(self) -> Encoder | Hosted:
        """What turns texts into vectors."""
        given = {n: v for n, v in self._given.items() if n not in OWN}
        kind = Hosted if isinstance(self.model, str) and is_hosted(self.model) else Encoder
        known = {f.name for f in fields(kind)}
        for name in given:
            if name not in known:
                what = "an embedding API" if kind is Hosted else "a checkpoint"
                raise BadValue(f"dense: {name} means nothing for {what} such as {self.model}")
        return kind(self.model, **given)  # type: ignore[arg-type]  # each checks the values it is given

    @property
    def _given(self) -> dict[str, object]:
        """The settings that are not by default."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name != "model" and getattr(self, f.name) != f.default
        }

    @property
    def between(self) -> str:
        """What stands between a document's title and its text."""
        card = known(self.model)
        return self.separator if self.separator is not None else " " if card is None else card.separator

    def on_collection(self, collection: str, instruction: str) -> Dense:
        """The system with the prompts its encoder uses on a collection; see Encoder.on_collection."""
        there = self.encoder.on_collection(collection, instruction)
        prompts = {n: getattr(there, n) for n in ("query_prompt", "document_prompt")}
        return replace(self, **{n: p for n, p in prompts.items() if p != getattr(self.encoder, n)})

    def __str__(self) -> str:
        return called("dense", [self.model], self._given)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        how: dict[str, object] = {"search": "exact, in double, rounded to float"}
        if self.ann is not None:
            how = {"search": self.ann, "effort": self.effort, "scored": "in double, rounded to float"}
            how |= {"engine": library(self.ann)}
        return {
            "system": "dense",
            "dense search": algorithm("dense search"),
            "encoder": self.encoder.describe(settings().device),
            "store": self.store,
            "view": self.view,
            "separator": self.between,
            **how,
        }

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    def index(
        self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None
    ) -> DenseSearcher:
        """Encode the corpus into the store of vectors, all that is not there; `at` notes which rows are whose."""
        loaded = self.encoder.load(settings().device)
        store = VectorStore.of(
            settings().home / "vectors", _about(self.encoder, loaded, "document"), self.store
        )
        texts = TextSource(
            len(corpus), partial(corpus.view, self.view, separator=self.between), corpus.ids.__getitem__
        )
        before = store.snapshot()
        with _encoding(loaded) as (encode, cut):
            vectors = stored(store, texts, encode, progress, cut)
        near = build(self.ann, self.effort, vectors) if self.ann is not None else None
        if at is not None:
            facts = {"format": FORMAT, "system": str(self), "store": store.folder.name}
            facts |= {"corpus": corpus.fingerprint, "documents": len(corpus), "texts": _digest(vectors)}
            with atomic_dir(at) as folder:
                np.save(folder / "rows.npy", vectors.rows)
                if near is not None:
                    near.write(folder / "ann.bin")
                seal_folder(folder, "index.json", facts)
        reused = 0 if before is None else int(np.count_nonzero(vectors.rows < len(before)))
        return DenseSearcher(self, corpus, vectors, loaded, reused, near)

    def open(self, at: Path, corpus: Corpus) -> DenseSearcher:
        """Open what `index` noted about the same corpus; the vectors lie in the store.

        Raises StoreError where it, or the store, is damaged or gone, BadValue where it is of another corpus.
        """
        try:
            facts = open_folder(at, "index.json")
            rows = read_array(at / "rows.npy", np.int64)
            known = facts["format"], facts["corpus"], facts["documents"]
            store = VectorStore(settings().home / "vectors" / Path(facts["store"]).name, "", self.store)
        except (StoreError, KeyError, TypeError) as error:
            raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None
        if known[1:] != (corpus.fingerprint, len(corpus)):
            raise BadValue(f"{at}: this index was made from another corpus; delete it to build it again")
        snapshot = store.snapshot()
        if known[0] != FORMAT or snapshot is None or len(rows) != len(corpus):
            raise StoreError(f"{at}: its vectors are not in {store.folder} any more; they are encoded again")
        vectors = StoredVectors(snapshot, rows)
        if not below(rows, len(snapshot)) or _digest(vectors) != facts["texts"]:
            raise StoreError(f"{at}: {store.folder} holds other vectors now; they are encoded again")
        near = None
        if self.ann is not None:
            near = opened(at / "ann.bin", self.ann, self.effort, vectors.dimensions)
        return DenseSearcher(self, corpus, vectors, None, near=near)


@dataclass(frozen=True, eq=False)
class DenseSearcher:
    """Vectors of a corpus and the encoder of queries, ready to answer."""

    system: Dense
    corpus: Corpus
    vectors: StoredVectors
    opened: Loaded | LoadedHosted | None
    reused: int = 0
    near: Approximate | None = None
    progress: Progress | None = None

    def watched(self, progress: Progress) -> DenseSearcher:
        """The same, telling how many documents a search has read; with the encoder loaded."""
        return replace(self, opened=self.loaded, progress=progress)

    def fresh(self) -> DenseSearcher | None:
        """The same, since queries are encoded each time; None where an API encodes them, whose answers are kept."""
        return None if isinstance(self.loaded, LoadedHosted) else self

    def outside(self) -> ExternalStorage:
        """The vectors in the store, and how many were there before this index was made."""
        held = len(np.unique(self.vectors.rows)) * self.vectors.snapshot.raw.shape[1]
        return ExternalStorage(held, self.reused, isinstance(self.opened, LoadedHosted))

    @cached_property
    def loaded(self) -> Loaded | LoadedHosted:
        """The encoder, loaded when it is first needed."""
        return self.opened or self.system.encoder.load(settings().device)

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents for each query; none for a query without text. Raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        asked = [i for i, text in enumerate(queries.text.tolist()) if text.strip()]
        count = np.zeros(len(queries), np.int64)
        if asked and len(self.corpus):
            vectors = self._encoded(queries.take(np.array(asked)))
            found = self._found(vectors, k)
            count[asked] = np.diff(found.ptr)
            doc, score = found.doc, found.score.astype(np.float64)
        else:
            doc, score = np.zeros(0, np.int32), np.zeros(0)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        return Run(queries.ids, self.corpus.ids, ptr, doc, score, str(self.system))

    def scores(self, queries: Queries, candidates: Run) -> Float64:
        """The score of each candidate, the same bits as searching gives; the lowest for a query without text."""
        score = np.full(len(candidates.doc), -np.finfo(np.float32).max.astype(np.float64))
        texts = queries.text.tolist()
        asked = np.array([i for i, text in enumerate(texts) if text.strip()], np.int64)
        if len(asked) == 0:
            return score
        vectors = self._encoded(queries.take(asked))
        for q, vector in zip(asked.tolist(), vectors, strict=True):
            rows = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
            score[rows] = pair_scores(self.vectors.take(candidates.doc[rows]), vector)
        return score

    def loss(self, queries: Queries, k: int) -> Loss:
        """What the approximate index loses of the exact k best of these queries; raises BadValue without one."""
        if self.near is None:
            raise BadValue(f"{self.system} searches exactly; only an approximate index loses anything")
        return loss(self.near, self.vectors, self._encoded(queries), k)

    def _found(self, vectors: NDArray[np.float32], k: int) -> Found:
        """By the approximate index if there is one; else the same answers, to the bit, on GPU and processor."""
        places = self.corpus.ids.tie_ranks
        if self.near is not None:
            return search_with(self.near, self.vectors, vectors, k, places)
        rows: VectorSource = (
            self.vectors if self.progress is None else ReportingSource(self.vectors, self.progress)
        )
        if isinstance(self.loaded, Loaded) and self.loaded.place.device.startswith("cuda"):
            return search_on(self.loaded.place.device, rows, vectors, k, places)
        return search(rows, vectors, k, "dot", places)

    def _encoded(self, queries: Queries) -> NDArray[np.float32]:
        """The queries' vectors: computed each time, since how long an answer takes is measured, but for an API."""
        if not isinstance(self.loaded, LoadedHosted):
            return self.loaded.encode(queries.text, "query")
        about = _about(self.system.encoder, self.loaded, "query")
        store = VectorStore.of(settings().home / "vectors", about)
        texts = TextSource(len(queries), queries.text.slice, queries.ids.__getitem__)
        cut = EncodingBlocks(ASKED, whole=False)
        return stored(store, texts, partial(_encode, self.loaded, "query"), None, cut).values


def _about(encoder: Encoder | Hosted, loaded: Loaded | LoadedHosted, kind: Kind) -> dict[str, object]:
    """What decides the vector of a text of that kind, and the engine, whose bits may differ from another's."""
    device = settings().device
    found = loaded.identity() if isinstance(loaded, LoadedHosted) else encoder.describe(device)
    return {"kind": kind} | {name: value for name, value in found.items() if name not in OTHER[kind]}


@contextmanager
def _encoding(loaded: Loaded | LoadedHosted) -> Iterator[tuple[Encode, EncodingBlocks]]:
    """(what encodes documents, the blocks it takes): on one device, on several, or by an API."""
    if isinstance(loaded, LoadedHosted):
        yield partial(_encode, loaded, "document"), EncodingBlocks(ASKED, whole=False)
        return
    names, size = devices(settings().device), BATCH[loaded.place.kind]
    if len(names) == 1:
        yield partial(_encode, loaded, "document"), EncodingBlocks(size)
        return
    with on_several(loaded, names, size) as encode:
        yield encode, EncodingBlocks(size * AT_ONCE * len(names))


def _encode(
    loaded: Loaded | LoadedHosted, kind: Kind, texts: list[str]
) -> NDArray[np.float32] | Iterator[NDArray[np.float32]]:
    """Vectors; those of an API answer by answer, so that each is kept before the next is paid for."""
    return loaded.stream(texts, kind) if isinstance(loaded, LoadedHosted) else loaded.encode(texts, kind)


def _digest(vectors: StoredVectors) -> str:
    """A hash of whose vectors the rows are."""
    rows: Int64 = vectors.rows
    return hashlib.blake2b(vectors.snapshot.texts[rows].tobytes(), digest_size=16).hexdigest()
