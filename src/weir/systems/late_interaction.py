"""Late interaction: a vector for each token, and for each token of a query the best of a document's, added up."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float64, in_range
from weir.errors import BadValue, StoreError, UnknownName
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, read_array, seal_folder
from weir.models.hardware import declared_kind
from weir.models.late import LateEncoder, LoadedLate
from weir.registry import changed_settings, check_whole
from weir.settings import settings
from weir.systems.compose import shown, then
from weir.systems.protocol import (
    IN_MEMORY,
    SYSTEMS,
    Context,
    Costs,
    Progress,
    Scorer,
    ShareEncoder,
    called,
    check_k,
    folder_of,
)
from weir.systems.rerank.scorers import (
    BATCH_TEXTS,
    DTYPES,
    LateScorer,
    documents_store,
    encoded_blocks,
    score_candidates,
    with_text,
)
from weir.systems.restricted import deepened, scored_candidates
from weir.systems.vectors.ann import Loss
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.maxsim_search import (
    KMEANS_ITERATIONS,
    KMEANS_SEED,
    CentroidLists,
    Centroids,
    Compressed,
    TokenQueries,
    TokenRows,
    TokenVectors,
    clustered,
    compressed,
    listed,
    near,
    read_clusters,
    refuse_odd,
    require_memory_for,
    search_chosen,
    search_tokens,
    write_clusters,
)
from weir.systems.vectors.store import (
    EncodingBlocks,
    GatheredRagged,
    RaggedStore,
    TextSource,
    share_encoder,
    stored_ragged,
)

FORMAT = 1
CANDIDATES_FROM_DOCUMENTS = 100_000
"""Documents from which looking at candidates alone saves time on a processor."""
CANDIDATES = 1024
"""As many as PLAID scores in full for up to a hundred answers."""


@SYSTEMS.register("colbert")
@dataclass(frozen=True)
class ColBERT:
    """Late interaction by an encoder of tokens, as ColBERT: MaxSim over all documents, or over candidates.

    model: a name of `weir list models` of the kind late, a name on the Hugging Face hub, or a folder, in ColBERT's own
    layout, PyLate's, or that of sentence-transformers' multi-vector encoders; max_length, max_query: tokens of a
    document and a query at most; dtype, engine, batch_tokens: see weir.models.Encoder. store: how token vectors are
    kept, fp16 or fp32. bits: 0 scores those; 1 or 2 scores what so many bits for each number beside a centroid keep,
    in the index's own folder. candidates: None scores all documents; a number only so many, found by centroids; "auto"
    all below 100,000 documents, else 1,024 or 2 k; probes: centroids looked at for each token of a query.
    view: what of a document is encoded. Sources: Khattab and Zaharia 2020; Santhanam et al. 2022 (ColBERTv2, PLAID).
    Raises UnknownName or BadValue.
    """

    model: str = "colbert"
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0
    store: str = "fp16"
    bits: int = 0
    candidates: int | str | None = "auto"
    probes: int = 4
    view: str = "title text"

    def __post_init__(self) -> None:
        if self.store not in DTYPES:
            raise UnknownName("way to store token vectors", str(self.store), DTYPES)
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
        """What turns texts into vectors of their tokens."""
        return LateEncoder(**{f.name: getattr(self, f.name) for f in fields(LateEncoder)})

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        own = changed_settings(self, leave_out=tuple(f.name for f in fields(LateEncoder)))
        return called("colbert", [self.model], changed_settings(self.encoder, leave_out=("model",)) | own)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
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
        """Those of late search."""
        return ("late search",)

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are encoded."""
        return (self.view,)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> LateSearcher:
        """Encode the corpus into the store, all that is not there; the folder notes which, and holds centroids."""
        loaded, texts = self.encoder.load(settings().device), self._texts(corpus)
        refuse_odd(loaded.dimensions, self.bits)
        store = documents_store(loaded, self.store)
        for elsewhere in context.vectors:
            store.take_in(elsewhere)
        before = store.snapshot()
        encode, cut = (
            partial(encoded_blocks, loaded, self.store),
            EncodingBlocks(BATCH_TEXTS[loaded.place.kind]),
        )
        rows = stored_ragged(store, texts, encode, context.progress, cut)
        tokens = TokenVectors(rows, DTYPES[self.store])
        limit = self.limit(len(tokens))
        token_index = TokenIndex()
        if self.bits or limit:
            require_memory_for(int(tokens.lengths.sum()), tokens.dimensions, self.bits, limit > 0)
            clusters = clustered(tokens)
            small = compressed(tokens, clusters, self.bits) if self.bits else None
            token_index = TokenIndex(clusters, listed(clusters) if limit else None, small)
        if context.folder is not None:
            facts = {"format": FORMAT, "system": str(self), "store": store.folder.name, "width": store.width}
            facts |= {"corpus": corpus.fingerprint_with(self.fields_read()), "documents": len(corpus)}
            facts |= {"texts": rows.digest()}
            if token_index.small is not None:
                facts |= {"error": token_index.small.error, "largest": token_index.small.largest}
            with atomic_dir(context.folder) as folder:
                np.save(folder / "numbers.npy", rows.numbers)
                if token_index.clusters is not None:
                    write_clusters(folder, token_index.clusters, token_index.lists, token_index.small)
                seal_folder(folder, "index.json", facts)
        reused = 0 if before is None else int(np.count_nonzero(rows.numbers < len(before.texts)))
        return LateSearcher(self, corpus, tokens, token_index, loaded, reused)

    def encoding_blocks(self, documents: int) -> int:
        """See `Encoding`."""
        return -(-documents // BATCH_TEXTS[declared_kind(settings().device)])

    def share_encoder(self) -> ShareEncoder:
        """See `Encoding`."""
        loaded = self.encoder.load(settings().device)
        encode = partial(encoded_blocks, loaded, self.store)
        return share_encoder(
            documents_store(loaded, self.store),
            self._texts,
            lambda store, texts, hashes: store.keeper(texts, hashes, encode),
            EncodingBlocks(BATCH_TEXTS[loaded.place.kind]),
        )

    def _texts(self, corpus: Corpus) -> TextSource:
        return TextSource(len(corpus), partial(corpus.view, self.view), corpus.ids.__getitem__)

    def open(self, corpus: Corpus, context: Context) -> LateSearcher:
        """Open what `index` noted about the same corpus; the vectors lie in the store, those of few bits in the folder.

        Raises StoreError where it, or the store, is damaged or gone, BadValue where it is of another corpus.
        """
        at = folder_of(context)
        try:
            facts = open_folder(at, "index.json")
            numbers = read_array(at / "numbers.npy", np.int64)
            corpus_key = facts["corpus"], facts["documents"]
            folder = settings().home / "vectors" / Path(facts["store"]).name
            store = RaggedStore(folder, "", int(facts["width"]))
        except (StoreError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None
        if corpus_key != (corpus.fingerprint_with(self.fields_read()), len(corpus)):
            raise BadValue(f"{at}: this index was made from another corpus; delete it to build it again")
        snapshot, vectors = store.snapshot(), None
        if snapshot is not None and in_range(numbers, len(snapshot.texts)):
            rows = GatheredRagged(snapshot, numbers)
            if rows.digest() == facts["texts"]:
                vectors = TokenVectors(rows, DTYPES[self.store])
        if (
            facts.get("format") != FORMAT
            or len(numbers) != len(corpus)
            or (vectors is None and not self.bits)
        ):
            raise StoreError(f"{at}: its vectors are not in {store.folder} any more; they are encoded again")
        token_index = TokenIndex()
        if self.bits or self.limit(len(corpus)):
            token_index = TokenIndex(*read_clusters(at, self.bits))
            if token_index.clusters is None or len(token_index.clusters.ptr) != len(corpus) + 1:
                raise StoreError(f"{at}: the index is damaged; delete it to build it again")
        return LateSearcher(self, corpus, vectors, token_index)

    def scorer(self, corpus: Corpus) -> Scorer | None:
        """What scores given documents without an index, encoding those that the store does not have; None with bits,
        whose centroids are those of a whole collection."""
        return None if self.bits else LateScorer(self.encoder, corpus, self.store, self.view, str(self))

    def limit(self, documents: int, k: int = 1) -> int:
        """How many candidates are scored for the k best of so many documents, 0 for all."""
        if self.candidates is None or (self.candidates == "auto" and documents < CANDIDATES_FROM_DOCUMENTS):
            return 0
        return max(CANDIDATES, 2 * k) if self.candidates == "auto" else max(int(self.candidates), k)


@dataclass(frozen=True, eq=False)
class TokenIndex:
    """What an index holds beside the store; see weir.systems.vectors.maxsim_search."""

    clusters: Centroids | None = None
    lists: CentroidLists | None = None
    small: Compressed | None = None


@dataclass(frozen=True, eq=False)
class LateSearcher:
    """Token vectors of a corpus and the encoder of queries, ready to answer.

    vectors: those in the store; None where they are gone, and those of few bits in the index are not.
    """

    system: ColBERT
    corpus: Corpus
    vectors: TokenVectors | None
    token_index: TokenIndex = field(default_factory=TokenIndex)
    opened: LoadedLate | None = None
    reused: int = 0

    @property
    def rows(self) -> TokenRows:
        """The token vectors that are scored."""
        tokens = self.vectors if self.token_index.small is None else self.token_index.small
        assert tokens is not None  # one of them is there
        return tokens

    def costs(self) -> Costs:
        """The vectors in the store that are searched, and how many were there before this index was made."""
        if self.token_index.small is not None or self.vectors is None:
            return Costs(0, self.reused, repeatable=True)
        rows = self.vectors.rows
        once = np.unique(rows.numbers)
        tokens = (rows.snapshot.ptr[once + 1] - rows.snapshot.ptr[once]).sum()
        return Costs(int(tokens) * rows.snapshot.raw.shape[1], self.reused, repeatable=True)

    def export(self, folder: Path) -> bool:
        """Write the vectors into a folder; see `Exported`. Those of few bits stand in the index."""
        if self.token_index.small is not None or self.vectors is None:
            return False
        self.vectors.rows.export(folder)
        return True

    @cached_property
    def loaded(self) -> LoadedLate:
        """The encoder, loaded when it is first needed."""
        return self.opened or self.system.encoder.load(settings().device)

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; none for a query without text. Raises BadValue for k below 1."""
        check_k(k)
        filled = with_text(queries)
        count = np.zeros(len(queries), np.int64)
        doc, score = np.zeros(0, np.int32), np.zeros(0)
        if len(filled) and len(self.corpus):
            hits = self._nearest(self._encoded(queries.take(filled)), k, context.progress)
            count[filled] = np.diff(hits.ptr)
            doc, score = hits.doc, hits.score.astype(np.float64)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        return Run(queries.ids, self.corpus.ids, ptr, doc, score, str(self.system))

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents that may be ranked: candidates are scored alone, where all documents would be."""
        if self.system.limit(len(self.corpus), k):
            return deepened(self, queries, k, context)
        return replace(scored_candidates(self, self, queries, self.corpus, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The score of each candidate, the same bits as searching gives; the lowest for a query without text and a
        document without tokens."""
        filled = with_text(queries)
        return score_candidates(self.rows, filled, self._encoded(queries.take(filled)), candidates)

    def loss(self, queries: Queries, k: int) -> Loss:
        """What compression and candidates lose of the exact k best of these queries, on average over them.

        Raises BadValue where nothing is compressed and all documents are scored, and where the vectors in full are
        not in the store any more.
        """
        if self.token_index.small is None and not self.system.limit(len(self.corpus), k):
            raise BadValue(f"{self.system} searches exactly; only bits or candidates lose anything")
        if self.vectors is None:
            raise BadValue(
                f"{self.system}: the vectors it was made of are gone; index again to compare with them"
            )
        query = self._encoded(queries.take(with_text(queries)))
        rank = self.corpus.ids.tie_ranks
        exact = search_tokens(self.vectors, query, k, rank)
        remembered = exact if self.token_index.small is None else search_tokens(self.rows, query, k, rank)
        quantisation = 1 - _overlap(exact, remembered)
        return Loss(quantisation, 1 - _overlap(exact, self._nearest(query, k)) - quantisation)

    def _nearest(self, query: TokenQueries, k: int, progress: Progress | None = None) -> Found:
        limit, rank = self.system.limit(len(self.corpus), k), self.corpus.ids.tie_ranks
        if not limit or self.token_index.clusters is None or self.token_index.lists is None:
            return search_tokens(self.rows, query, k, rank, progress)
        chosen = near(self.token_index.clusters, self.token_index.lists, query, self.system.probes, limit)
        return search_chosen(self.rows, query, chosen, k, rank)

    def _encoded(self, queries: Queries) -> TokenQueries:
        """The queries' vectors: computed each time, since how long an answer takes is measured."""
        block = self.loaded.encode(queries.text, "query")
        return TokenQueries(block.ptr, block.values)


def _overlap(exact: Found, other: Found) -> float:
    """The share of exact answers that others have too, on average over queries."""
    shares = []
    for q in range(len(exact.ptr) - 1):
        a, b = (f.doc[f.ptr[q] : f.ptr[q + 1]] for f in (exact, other))
        shares.append(len(np.intersect1d(a, b)) / max(len(a), 1))
    return float(np.mean(shares)) if shares else 1.0
