"""MaxSim search: the k best documents for queries of several vectors, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weir.core.strings import Float32, Float64, Int32, Int64, in_range, valid_offsets
from weir.errors import BadValue, StoreError
from weir.files.integrity import read_array
from weir.settings import require_memory, settings
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.store import GatheredRagged, spans

Progress: TypeAlias = Callable[[int, int], None]
Tokens: TypeAlias = tuple[Int64, NDArray[np.floating]]
"""The token vectors of some documents: those of document i are values[ptr[i]:ptr[i + 1]], ptr from 0."""

BLOCK_TOKENS = 1 << 17
"""Tokens of documents that all queries pass before the next ones."""
QUERY_TOKENS = 2048
"""Tokens of queries that pass them together: what the caches hold beside the documents."""
MAX_OPEN_SHARE = 0.4
"""Share of pairs that a first pass in bytes leaves open beyond which it does not pay."""


class TokenRows(Protocol):
    """Token vectors of documents that can be read in blocks."""

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def lengths(self) -> Int64:
        """Tokens of each document: int64[N]."""
        ...

    @property
    def whole(self) -> Tokens | None:
        """The vectors of all documents where they can be had without copying, else None."""
        ...

    def __len__(self) -> int: ...

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1."""
        ...

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        ...

    def release(self) -> None:
        """Give back what memory blocks read before still take."""
        ...


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Token vectors in a store, as fp16 or fp32. rows: their bytes; dtype: float16 or float32."""

    rows: GatheredRagged
    dtype: type[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.rows.snapshot.raw.shape[1]) // np.dtype(self.dtype).itemsize

    @property
    def lengths(self) -> Int64:
        """Tokens of each document: int64[N]."""
        return self.rows.lengths

    @cached_property
    def whole(self) -> Tokens | None:
        """The vectors of all documents where they follow each other in the file, else None."""
        return self.block(0, len(self)) if (np.diff(self.rows.numbers) == 1).all() else None

    def __len__(self) -> int:
        return len(self.rows)

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1; a view of the file where they follow each other in it."""
        ptr, raw = self.rows.block(start, stop)
        return ptr, np.asarray(raw).view(self.dtype)

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        ptr, raw = self.rows.take(numbers)
        return ptr, np.ascontiguousarray(raw).view(self.dtype)

    def release(self) -> None:
        """Let the system take back the memory of blocks read before."""
        self.rows.release()


@dataclass(frozen=True, eq=False)
class HeldTokens:
    """Token vectors in memory. lengths: int64[N], tokens of each document; values: any float array [T, d]."""

    lengths: Int64
    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.values.shape[1])

    @cached_property
    def _ptr(self) -> Int64:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    @property
    def whole(self) -> Tokens | None:
        """The vectors of all documents."""
        return self._ptr, self.values

    def __len__(self) -> int:
        return len(self.lengths)

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1, a view."""
        low, high = int(self._ptr[start]), int(self._ptr[stop])
        return self._ptr[start : stop + 1] - low, self.values[low:high]

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents, copied."""
        lengths = self.lengths[numbers]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return ptr, self.values[np.repeat(self._ptr[numbers] - ptr[:-1], lengths) + np.arange(ptr[-1])]

    def release(self) -> None:
        """Nothing: the array is the caller's."""


@dataclass(frozen=True, eq=False)
class TokenQueries:
    """The token vectors of queries: those of query q are values[ptr[q]:ptr[q + 1]]; values float32[any, d]."""

    ptr: Int64
    values: Float32

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def of(self, q: int) -> Float32:
        """The vectors of one query."""
        return self.values[self.ptr[q] : self.ptr[q + 1]]

    def slice(self, start: int, stop: int) -> TokenQueries:
        """Queries start..stop-1."""
        low, high = self.ptr[start], self.ptr[stop]
        return TokenQueries(self.ptr[start : stop + 1] - low, self.values[low:high])


def search_tokens(
    rows: TokenRows,
    query: TokenQueries,
    k: int,
    tie_rank: Int32,
    progress: Progress | None = None,
    first_pass: bool = True,
) -> Found:
    """The k best documents for each query by MaxSim, fewer where there are fewer; exact, in trec order.

    tie_rank: int32[N], distinct, places of documents of equal score (Ids.tie_ranks). A document without tokens is
    never returned. progress: called with (documents read, all); first_pass: whether bounds in bytes may show which
    scores need not be computed, which decides the time and never the result. Raises BadValue for other dimensions and
    for numbers that are not finite.
    """
    from weir.kernels.maxsim import can_quantise

    _refuse_other(rows, query)
    best, read, exact = np.zeros((len(query), 0), np.uint64), 0, 0
    looseness = 1.0
    for start, stop in spans(rows.lengths, BLOCK_TOKENS):
        some = np.flatnonzero(rows.lengths[start:stop] > 0)
        block = _Block(rows.block(start, stop), some, tie_rank[start + some])
        # So many of a block would be among the best so far by chance; more stay open, as bounds are wide.
        chance = k / (read + len(some) + 1)
        keys = None
        quantisable = len(some) > 0 and can_quantise(block.tokens[1])
        if first_pass and chance * looseness < MAX_OPEN_SHARE and quantisable:
            keys, share = block.undecided(query, best, k)
            looseness = max(1.0, share / chance)
        if keys is None and len(some):
            keys = _keys(block.scored(query, some), block.tie_rank)
        if keys is not None:
            best, exact = _top_keys(best, keys, k), exact + int(np.count_nonzero(keys))
        rows.release()
        read += len(some)
        if progress is not None:
            progress(stop, len(rows))
    return _results(best, tie_rank, exact)


def search_chosen(
    rows: TokenRows, query: TokenQueries, chosen: list[Int64], k: int, tie_rank: Int32
) -> Found:
    """As `search_tokens`, of each query's own documents only, whose numbers ascend."""
    _refuse_other(rows, query)
    parts = []
    for q, docs in enumerate(chosen):
        some = docs[rows.lengths[docs] > 0]
        score = pair_maxsim(rows, query.of(q), some).astype(np.float32)[None]
        keys = _top_keys(np.zeros((1, 0), np.uint64), _keys(score, tie_rank[some]), k)
        parts.append(_results(keys, tie_rank, len(some)))
    counts, exact = [len(part.doc) for part in parts], sum(part.exact for part in parts)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    doc = np.concatenate([np.zeros(0, np.int32), *(part.doc for part in parts)])
    return Found(ptr, doc, np.concatenate([np.zeros(0, np.float32), *(p.score for p in parts)]), exact)


def pair_maxsim(rows: TokenRows, query: Float32, docs: NDArray[np.integer]) -> Float64:
    """The score of each of these documents, which have tokens, for one query: the same bits as searching gives."""
    from weir.kernels.maxsim import maxsim

    if len(docs) == 0:
        return np.zeros(0)
    picked = None if rows.whole is None else docs
    ptr, values = rows.take(docs) if rows.whole is None else rows.whole
    place = np.array([0, len(query)], np.int64)
    score: Float32 = maxsim(query, place, values, ptr, picked, settings().threads)[0]
    return score.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Block:
    """Documents `some` of a block, which have tokens, and their places in a tie."""

    tokens: Tokens
    some: Int64
    tie_rank: Int32

    def scored(self, query: TokenQueries, docs: Int64) -> Float32:
        """float32[Q, n]: the scores of these documents."""
        from weir.kernels.maxsim import maxsim

        ptr, values = self.tokens
        parts = []
        for start, stop in spans(np.diff(query.ptr), QUERY_TOKENS):
            part = query.slice(start, stop)
            parts.append(maxsim(part.values, part.ptr, values, ptr, docs, settings().threads))
        return np.concatenate(parts)

    def undecided(
        self, query: TokenQueries, best: NDArray[np.uint64], k: int
    ) -> tuple[NDArray[np.uint64] | None, float]:
        """(keys of the documents that may be among the k best, 0 for none, and the share of pairs that these are);
        None where there are too many of them. best: the keys of those before; with this block at least k."""
        from weir.kernels.maxsim import bounds

        ptr, values = self.tokens
        starts, ends = ptr[self.some], ptr[self.some + 1]
        parts = []
        for start, stop in spans(np.diff(query.ptr), QUERY_TOKENS):
            part = query.slice(start, stop)
            parts.append(bounds(part.values, part.ptr, values, starts, ends, settings().threads))
        about, off = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        least = np.concatenate([_scores(best), about - off], axis=1)
        bar = np.partition(least, least.shape[1] - k, axis=1)[:, -k]
        undecided = ~(about + off < bar[:, None])  # what is not a number is looked at exactly
        share = float(undecided.mean())
        if share > MAX_OPEN_SHARE:
            return None, share
        keys = np.zeros((len(query), int(undecided.sum(axis=1).max())), np.uint64)
        for q in range(len(query)):
            docs = np.flatnonzero(undecided[q])
            if len(docs):
                score = self.scored(query.slice(q, q + 1), self.some[docs])
                keys[q, : len(docs)] = _keys(score, self.tie_rank[docs])[0]
        return keys, share


def _keys(score: Float32, tie_rank: Int32) -> NDArray[np.uint64]:
    """Whole numbers in the order of results, the best greatest: the score's bits above, the place in a tie below."""
    bits = np.ascontiguousarray(score + np.float32(0)).view(np.uint32)  # -0 and 0 are equal
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    return ordered << np.uint64(32) | (0xFFFFFFFF - tie_rank.astype(np.uint64))


def _top_keys(best: NDArray[np.uint64], keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """The k greatest of each row."""
    both = np.concatenate([best, keys], axis=1)
    if both.shape[1] <= k:
        return both
    return np.partition(both, both.shape[1] - k, axis=1)[:, -k:]


def _scores(keys: NDArray[np.uint64]) -> Float32:
    """The scores in keys."""
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered >> 31, ordered & np.uint32(0x7FFFFFFF), ~ordered).view(np.float32)


def _results(best: NDArray[np.uint64], tie_rank: Int32, exact: int) -> Found:
    count = best.shape[1]
    keys = np.sort(best, axis=1)[:, ::-1].ravel()
    by_rank = np.empty(len(tie_rank), np.int32)
    by_rank[tie_rank] = np.arange(len(tie_rank), dtype=np.int32)
    doc = by_rank[(0xFFFFFFFF - (keys & np.uint64(0xFFFFFFFF))).astype(np.int64)]
    return Found(np.arange(len(best) + 1, dtype=np.int64) * count, doc, _scores(keys), exact)


def _refuse_other(rows: TokenRows, query: TokenQueries) -> None:
    if len(rows) and query.values.shape[1] != rows.dimensions:
        raise BadValue(
            f"queries have vectors of {query.values.shape[1]} numbers, documents of {rows.dimensions}"
        )


# ----------
# Token vectors as a centroid and one or two bits for each number of the rest, and candidates found by centroids.
#
# A token vector is stored as the number of its centroid and, for each number of the residual, one of 2 or 4 buckets,
# which hold equally many numbers and stand for their middle. The candidates of a query are the documents with a token
# near one of its tokens, by centroids. The best of them by centroids alone are scored in full. Sources: Santhanam et
# al. 2022, ColBERTv2, section 3.3; Santhanam et al. 2022, PLAID, sections 4.2 to 4.4.


KMEANS_SEED = 0
KMEANS_ITERATIONS = 6
"""Iterations of k-means; one seed for its sample and its starts."""
TRAINING_VECTORS_PER_CENTROID = 32
"""Vectors for each centroid in the sample of k-means, evenly spaced over the collection."""
BLOCK_VECTORS = 1 << 14
CLUSTERED_BYTES, LISTED_BYTES = 4, 80
"""Memory of a token: the number of its centroid, and while it is put into the lists; measured."""
CALIBRATION_VECTORS = 1 << 15
"""Residuals from which the quantiles of the codec are taken."""


@dataclass(frozen=True, eq=False)
class Centroids:
    """centroids: float32[C, d], of length 1; code: int32[T], that of each token; ptr: int64[N + 1], documents."""

    centroids: Float32
    code: Int32
    ptr: Int64


@dataclass(frozen=True, eq=False)
class CentroidLists:
    """The documents with a token of each centroid, ascending: doc[ptr[c]:ptr[c + 1]]."""

    ptr: Int64
    doc: Int32


def require_memory_for(tokens: int, dimensions: int, bits: int, lists: bool) -> None:
    """Raise BadValue where memory does not suffice to cluster so many token vectors.

    bits: of the residual codec, 0 for none; lists: whether candidates are found by centroids.
    """
    sample = min(tokens, TRAINING_VECTORS_PER_CENTROID * _centroids(tokens))
    k_means = 3 * 4 * dimensions * sample  # the sample, sorted by centroid, and while it is put together
    after = LISTED_BYTES * tokens if lists else 0
    needed = CLUSTERED_BYTES * tokens + max(k_means, after, dimensions * bits * tokens // 8)
    require_memory(
        needed, f"an index of {tokens:,} token vectors", "candidates=None with bits=0 reads them from disk"
    )


def _centroids(tokens: int) -> int:
    return 1 << int(np.log2(16 * np.sqrt(max(tokens, 1))))


def clustered(rows: TokenRows, count: int = 0) -> Centroids:
    """Centroids of token vectors, and which is nearest to each; the same for the same vectors.

    count: of centroids; 0 takes the power of two below 16 times the root of the number of tokens (PLAID's rule).
    """
    total = int(rows.lengths.sum())
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.lengths)])
    if total == 0:
        return Centroids(np.zeros((0, rows.dimensions), np.float32), np.zeros(0, np.int32), ptr)
    count = max(1, min(count or _centroids(total), total // 4))
    size = min(total, TRAINING_VECTORS_PER_CENTROID * count)
    sampled, sample = np.arange(size) * total // size, []  # evenly spaced
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        low, high = np.searchsorted(sampled, [ptr[start], ptr[stop]])
        if high > low:
            sample.append(_floats(rows.block(start, stop))[sampled[low:high] - ptr[start]])
        rows.release()
    centroids = _kmeans(np.concatenate(sample), count)
    code = np.empty(total, np.int32)
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        code[ptr[start] : ptr[stop]] = _nearest(_floats(rows.block(start, stop)), centroids)
        rows.release()
    return Centroids(centroids, code, ptr)


def listed(clusters: Centroids) -> CentroidLists:
    """Inverted lists: the documents of each centroid."""
    documents = len(clusters.ptr) - 1
    doc = np.repeat(np.arange(documents), np.diff(clusters.ptr))
    pair = np.unique(clusters.code.astype(np.int64) * max(documents, 1) + doc)
    owner, doc_of_pair = np.divmod(pair, max(documents, 1))
    ptr = np.searchsorted(owner, np.arange(len(clusters.centroids) + 1))
    return CentroidLists(ptr.astype(np.int64), doc_of_pair.astype(np.int32))


def near(
    clusters: Centroids, lists: CentroidLists, query: TokenQueries, probes: int, count: int
) -> list[Int64]:
    """For each query up to `count` documents, ascending: of those that `probes` centroids of each of its tokens have,
    the best where every token is taken for its centroid; among equals those of lower number."""
    from weir.kernels.maxsim import centroid_maxsim

    candidates = []
    probes = min(probes, len(clusters.centroids))
    for q in range(len(query)):
        product = query.of(q) @ clusters.centroids.T
        if product.size == 0:
            candidates.append(np.zeros(0, np.int64))
            continue
        first = product.shape[1] - probes
        centroids = np.unique(np.argpartition(product, first, axis=1)[:, first:])
        parts = [lists.doc[lists.ptr[c] : lists.ptr[c + 1]] for c in centroids.tolist()]
        docs = np.unique(np.concatenate(parts)).astype(np.int64)
        if len(docs) > count:
            guess, score = np.empty(len(docs), np.float32), np.ascontiguousarray(product.T)
            centroid_maxsim(score, clusters.code, clusters.ptr[docs], clusters.ptr[docs + 1], guess)
            docs = np.sort(docs[np.argsort(-guess, kind="stable")[:count]])
        candidates.append(docs)
    return candidates


@dataclass(frozen=True, eq=False)
class Compressed:
    """Residual codec (ColBERTv2): a centroid and 1 or 2 bits for each residual of a token vector.

    clusters: whose centroids they are near; packed: uint8[T, d * bits / 8]; buckets: float32[2**bits], what each
    stands for; error, largest: the mean and the largest distance of a vector to what is stored of it, so that no score
    is further off than `largest` times the tokens of the query.
    """

    clusters: Centroids
    packed: NDArray[np.uint8]
    buckets: Float32
    error: float
    largest: float

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.clusters.centroids.shape[1])

    @cached_property
    def lengths(self) -> Int64:
        """Tokens of each document."""
        return np.diff(self.clusters.ptr)

    @property
    def whole(self) -> Tokens | None:
        """None: vectors are decompressed when they are asked for."""
        return None

    def __len__(self) -> int:
        return len(self.clusters.ptr) - 1

    def block(self, start: int, stop: int) -> Tokens:
        """The vectors of documents start..stop-1."""
        low, high = int(self.clusters.ptr[start]), int(self.clusters.ptr[stop])
        return self.clusters.ptr[start : stop + 1] - low, self._decompressed(np.arange(low, high))

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        starts, ends = self.clusters.ptr[numbers], self.clusters.ptr[numbers + 1]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])
        return ptr, self._decompressed(np.repeat(starts - ptr[:-1], ends - starts) + np.arange(ptr[-1]))

    def release(self) -> None:
        """Nothing: the files are small."""

    def _decompressed(self, tokens: Int64) -> Float32:
        from weir.kernels.maxsim import decompress

        out = np.empty((len(tokens), self.dimensions), np.float32)
        bits = int(np.log2(len(self.buckets)))
        shifts = np.arange(8 - bits, -1, -bits)
        codewords: Float32 = self.buckets[(np.arange(256)[:, None] >> shifts) & (len(self.buckets) - 1)]
        code, packed = self.clusters.code[tokens], self.packed[tokens]
        decompress(code, packed, self.clusters.centroids, codewords, out)
        return out


def compressed(rows: TokenRows, clusters: Centroids, bits: int) -> Compressed:
    """Token vectors by the residual codec of 1 or 2 bits; raises BadValue where a vector does not fill whole bytes."""
    refuse_odd(rows.dimensions, bits)
    ptr, total = clusters.ptr, int(clusters.ptr[-1])
    # Buckets hold equally many residuals, vectors less their centroids; every step-th token is looked at.
    step, residuals = max(1, total // CALIBRATION_VECTORS), [np.zeros(0, np.float32)]
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        low, high = int(ptr[start]), int(ptr[stop])
        picked = np.arange(-low % step, high - low, step)
        vectors = _floats(rows.block(start, stop))[picked]
        residuals.append((vectors - clusters.centroids[clusters.code[low:high][picked]]).ravel())
        rows.release()
    rest, count = np.concatenate(residuals), 1 << bits
    quantiles = np.zeros(2 * count - 1, np.float32)
    if rest.size:
        quantiles = np.quantile(rest, np.arange(1, 2 * count) / (2 * count)).astype(np.float32)
    cuts, buckets = quantiles[1::2], quantiles[::2]
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    packed = np.empty((total, rows.dimensions * bits // 8), np.uint8)
    codec = Compressed(clusters, packed, buckets, 0.0, 0.0)
    error, largest = 0.0, 0.0
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        low, high = int(ptr[start]), int(ptr[stop])
        vectors = _floats(rows.block(start, stop))
        rest = vectors - clusters.centroids[clusters.code[low:high]]
        bucket = np.zeros(rest.shape, np.uint8)
        for cut in cuts:
            bucket += rest > cut
        parts = bucket.reshape(len(bucket), packed.shape[1], len(shifts)) << shifts
        packed[low:high] = np.bitwise_or.reduce(parts, axis=2)
        off = np.linalg.norm(codec.block(start, stop)[1] - vectors, axis=1)
        error, largest = error + float(off.sum()), max(largest, float(off.max(initial=0)))
        rows.release()
    return Compressed(clusters, packed, buckets, error / max(total, 1), largest)


def refuse_odd(dimensions: int, bits: int) -> None:
    """Raise BadValue where vectors of so many numbers do not fill whole bytes."""
    if dimensions * bits % 8:
        raise BadValue(
            f"vectors of {dimensions} numbers do not fill whole bytes with {bits} bits each; take bits=0"
        )


def write_clusters(
    folder: Path, clusters: Centroids, lists: CentroidLists | None, small: Compressed | None
) -> None:
    """Write what was made of token vectors into a folder."""
    for name, part in (("clusters", clusters), ("lists", lists)):
        if part is not None:
            for field in fields(part):
                np.save(folder / f"{name}-{field.name}.npy", getattr(part, field.name))
    if small is not None:
        np.save(folder / "packed.npy", small.packed)
        np.save(folder / "buckets.npy", small.buckets)
        np.save(folder / "error.npy", np.array([small.error, small.largest]))


def read_clusters(folder: Path, bits: int) -> tuple[Centroids, CentroidLists | None, Compressed | None]:
    """What `write_clusters` wrote, memory-mapped; raises StoreError, naming the file, where it is damaged."""

    def mapped(name: str, dtype: DTypeLike, *shape: int) -> Any:  # noqa: ANN401 - the dtype is what was saved
        return read_array(folder / f"{name}.npy", dtype, shape)

    def refuse(name: str, sound: bool) -> None:
        if not sound:
            raise StoreError(f"{folder}: the index is damaged ({name}); delete it to build it again")

    code, ptr = mapped("clusters-code", np.int32, -1), mapped("clusters-ptr", np.int64, -1)
    centroids = mapped("clusters-centroids", np.float32, -1, -1)
    clusters, lists, documents = Centroids(centroids, code, ptr), None, len(ptr) - 1
    refuse("clusters", in_range(code, len(centroids)) and valid_offsets(ptr, len(code)))
    if (folder / "lists-ptr.npy").exists():
        doc = mapped("lists-doc", np.int32, -1)
        lists = CentroidLists(mapped("lists-ptr", np.int64, len(centroids) + 1), doc)
        refuse("lists", in_range(doc, documents) and valid_offsets(lists.ptr, len(doc)))
    if not bits:
        return clusters, lists, None
    mean, largest = mapped("error", np.float64, 2).tolist()
    packed = mapped("packed", np.uint8, len(code), centroids.shape[1] * bits // 8)
    buckets = mapped("buckets", np.float32, 1 << bits)
    return clusters, lists, Compressed(clusters, packed, buckets, mean, largest)


def _floats(tokens: Tokens) -> Float32:
    return np.ascontiguousarray(tokens[1], np.float32)


def _kmeans(sample: Float32, count: int) -> Float32:
    """Spherical k-means: centroids of length 1, assignment by the greatest product.

    A centroid that loses all its vectors begins again at a vector of the sample.
    """
    rng = np.random.default_rng(KMEANS_SEED)
    centroids = sample[np.sort(rng.choice(len(sample), count, replace=False))].copy()
    for _ in range(KMEANS_ITERATIONS):
        code = _nearest(sample, centroids)
        order = np.argsort(code, kind="stable")
        filled, first = np.unique(code[order], return_index=True)
        centroids[filled] = np.add.reduceat(sample[order], first, axis=0)
        empty = np.setdiff1d(np.arange(count), filled)
        centroids[empty] = sample[rng.integers(0, len(sample), len(empty))]
        centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    return centroids


def _nearest(vectors: Float32, centroids: Float32) -> Int32:
    """The centroid of greatest product for each vector; the first of equals."""
    nearest = np.empty(len(vectors), np.int32)
    step = max(1, (1 << 25) // max(len(centroids), 1))
    for start in range(0, len(vectors), step):
        nearest[start : start + step] = (vectors[start : start + step] @ centroids.T).argmax(axis=1)
    return nearest
