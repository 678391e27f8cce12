"""Search by MaxSim: the k best documents for queries of several vectors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weir.core.strings import Float32, Float64, Int32, Int64, in_range, offsets, valid_offsets
from weir.errors import BadValue, StoreError
from weir.files.integrity import read_array
from weir.models.batching import Ragged
from weir.plugins import encoders
from weir.settings import require_memory, settings
from weir.systems.protocol import Progress
from weir.systems.vectors.exact_search import Found
from weir.systems.vectors.store import spans

BLOCK_TOKENS = 1 << 17
QUERY_TOKENS = 2048
"""Query tokens scored together, by the size of the caches."""
MAX_OPEN_SHARE = 0.4
"""Share of pairs left undecided by bounds beyond which the bounds cost more than they save."""


class TokenRows(Protocol):
    """The token vectors of documents, read in blocks."""

    @property
    def dimensions(self) -> int:
        """The length of a token vector."""

    @property
    def lengths(self) -> Int64:
        """Each document's number of token vectors, int64[documents]."""

    @property
    def all_rows(self) -> Ragged | None:
        """All vectors if that takes no copy, else None."""

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> Ragged:
        """Return the token vectors of documents start..stop-1."""

    def rows_of(self, numbers: NDArray[np.integer]) -> Ragged:
        """Return the token vectors of these documents, in this order."""

    def release(self) -> None:
        """Free the memory of earlier blocks."""


def search_tokens(
    rows: TokenRows,
    query: Ragged,
    k: int,
    tie_rank: Int32,
    progress: Progress | None = None,
    first_pass: bool = True,
) -> Found:
    """Return the k best documents of each query by exact MaxSim, best first, without documents that have no
    tokens.

    tie_rank: order of documents of equal score, int32[documents] (Ids.tie_ranks).
    first_pass: skip documents by int8 bounds; the result is the same.

    Raises BadValue for other dimensions and for numbers that are not finite.
    """
    _refuse_other(rows, query)
    best, read, exact = np.zeros((len(query), 0), np.uint64), 0, 0
    looseness = 1.0
    for start, stop in spans(rows.lengths, BLOCK_TOKENS):
        some = np.flatnonzero(rows.lengths[start:stop] > 0)
        block = _Block(rows.rows(start, stop), some, tie_rank[start + some])
        # So many of a block would be among the best so far by chance; more stay open, as bounds are wide.
        chance = k / (read + len(some) + 1)
        keys = None
        quantisable = len(some) > 0 and encoders.maxsim.can_quantise(block.tokens.values)
        if first_pass and chance * looseness < MAX_OPEN_SHARE and quantisable:
            keys, share = block.undecided(query, best, k)
            looseness = max(1.0, share / chance)
        if keys is None and len(some):
            keys = _keys(block.block_scores(query, some), block.tie_rank)
        if keys is not None:
            best, exact = _top_keys(best, keys, k), exact + int(np.count_nonzero(keys))
        rows.release()
        read += len(some)
        if progress is not None:
            progress(stop, len(rows))
    return _results(best, tie_rank, exact)


def search_chosen(rows: TokenRows, query: Ragged, chosen: list[Int64], k: int, tie_rank: Int32) -> Found:
    """Return each query's k best of its chosen documents by MaxSim, best first, without documents that have no
    tokens.

    chosen: document numbers of each query, ascending.
    tie_rank: see `search_tokens`.
    """
    _refuse_other(rows, query)
    parts = []
    for q, docs in enumerate(chosen):
        some = docs[rows.lengths[docs] > 0]
        score = pair_maxsim(rows, query.of(q), some).astype(np.float32)[None]
        keys = _top_keys(np.zeros((1, 0), np.uint64), _keys(score, tie_rank[some]), k)
        parts.append(_results(keys, tie_rank, len(some)))
    counts, exact = [len(part.doc) for part in parts], sum(part.exact for part in parts)
    ptr = offsets(np.array(counts, np.int64))
    doc = np.concatenate([np.zeros(0, np.int32), *(part.doc for part in parts)])
    return Found(ptr, doc, np.concatenate([np.zeros(0, np.float32), *(p.score for p in parts)]), exact)


def pair_maxsim(rows: TokenRows, query: Float32, docs: NDArray[np.integer]) -> Float64:
    """Return a query's MaxSim with each document, float64[documents], the same bits as in a search; raises
    BadValue for a document without tokens.
    """
    if len(docs) == 0:
        return np.zeros(0)
    picked = None if rows.all_rows is None else docs
    tokens = rows.rows_of(docs) if rows.all_rows is None else rows.all_rows
    place = np.array([0, len(query)], np.int64)
    score: Float32 = encoders.maxsim.maxsim(
        query, place, tokens.values, tokens.ptr, picked, settings().threads
    )[0]
    return score.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Block:
    tokens: Ragged
    some: Int64
    tie_rank: Int32

    def block_scores(self, query: Ragged, docs: Int64) -> Float32:
        tokens, parts = self.tokens, []
        for start, stop in spans(query.lengths, QUERY_TOKENS):
            part = query.rows(start, stop)
            parts.append(
                encoders.maxsim.maxsim(
                    part.values, part.ptr, tokens.values, tokens.ptr, docs, settings().threads
                )
            )
        return np.concatenate(parts)

    def undecided(
        self, query: Ragged, best: NDArray[np.uint64], k: int
    ) -> tuple[NDArray[np.uint64] | None, float]:
        tokens, parts = self.tokens, []
        starts, ends = tokens.ptr[self.some], tokens.ptr[self.some + 1]
        for start, stop in spans(query.lengths, QUERY_TOKENS):
            part = query.rows(start, stop)
            parts.append(
                encoders.maxsim.bounds(part.values, part.ptr, tokens.values, starts, ends, settings().threads)
            )
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
                score = self.block_scores(query.rows(q, q + 1), self.some[docs])
                keys[q, : len(docs)] = _keys(score, self.tie_rank[docs])[0]
        return keys, share


def _keys(score: Float32, tie_rank: Int32) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(score + np.float32(0)).view(np.uint32)  # -0 and 0 are equal
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    return ordered << np.uint64(32) | (0xFFFFFFFF - tie_rank.astype(np.uint64))


def _top_keys(best: NDArray[np.uint64], keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    both = np.concatenate([best, keys], axis=1)
    if both.shape[1] <= k:
        return both
    return np.partition(both, both.shape[1] - k, axis=1)[:, -k:]


def _scores(keys: NDArray[np.uint64]) -> Float32:
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered >> 31, ordered & np.uint32(0x7FFFFFFF), ~ordered).view(np.float32)


def _results(best: NDArray[np.uint64], tie_rank: Int32, exact: int) -> Found:
    count = best.shape[1]
    keys = np.sort(best, axis=1)[:, ::-1].ravel()
    by_rank = np.empty(len(tie_rank), np.int32)
    by_rank[tie_rank] = np.arange(len(tie_rank), dtype=np.int32)
    doc = by_rank[(0xFFFFFFFF - (keys & np.uint64(0xFFFFFFFF))).astype(np.int64)]
    return Found(np.arange(len(best) + 1, dtype=np.int64) * count, doc, _scores(keys), exact)


def _refuse_other(rows: TokenRows, query: Ragged) -> None:
    if len(rows) and query.dimensions != rows.dimensions:
        raise BadValue(f"queries have vectors of {query.dimensions} numbers, documents of {rows.dimensions}")


# ----------
# Token vectors as a centroid and one or two bits for each number of the rest, and candidates found by centroids.
#
# A token vector is stored as the number of its centroid and, for each number of the residual, one of 2 or 4 buckets,
# which hold equally many numbers and decode to their median. The candidates of a query are the documents with a token
# near one of its tokens, by centroids. The best of them by centroids alone are scored in full. Sources: Santhanam et
# al. 2022, ColBERTv2, section 3.3; Santhanam et al. 2022, PLAID, sections 4.2 to 4.4.


KMEANS_SEED = 0
KMEANS_ITERATIONS = 6
TRAINING_VECTORS_PER_CENTROID = 32
"""Evenly spaced vectors for each centroid in the sample of k-means."""
BLOCK_VECTORS = 1 << 14
CLUSTERED_BYTES, LISTED_BYTES = 4, 80
"""Memory of a token: the number of its centroid, and while it is put into the lists; measured."""
CALIBRATION_VECTORS = 1 << 15
"""Residuals that give the codec's quantiles."""


@dataclass(frozen=True, eq=False)
class Centroids:
    """Clusters of token vectors: centroids of length 1, each token's centroid, and offsets of documents."""

    centroids: Float32
    code: Int32
    ptr: Int64


@dataclass(frozen=True, eq=False)
class CentroidLists:
    """The documents with a token in cluster c, ascending: doc[ptr[c]:ptr[c + 1]]."""

    ptr: Int64
    doc: Int32


def require_memory_for(tokens: int, dimensions: int, bits: int, lists: bool) -> None:
    """Raise BadValue if memory is too small to cluster and index `tokens` vectors.

    bits: bits for each number in compressed vectors; 0 without compression.
    lists: lists of documents by centroid are built too.
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


def clustered(rows: TokenRows) -> Centroids:
    """Return centroids of the token vectors by k-means, the same for the same input."""
    # Their number follows PLAID: the power of two below 16 * sqrt(tokens), at most a quarter of the tokens.
    total = int(rows.lengths.sum())
    ptr = offsets(rows.lengths)
    if total == 0:
        return Centroids(np.zeros((0, rows.dimensions), np.float32), np.zeros(0, np.int32), ptr)
    count = max(1, min(_centroids(total), total // 4))
    size = min(total, TRAINING_VECTORS_PER_CENTROID * count)
    sampled, sample = np.arange(size) * total // size, []  # evenly spaced
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        low, high = np.searchsorted(sampled, [ptr[start], ptr[stop]])
        if high > low:
            sample.append(_floats(rows.rows(start, stop))[sampled[low:high] - ptr[start]])
        rows.release()
    centroids = _kmeans(np.concatenate(sample), count)
    code = np.empty(total, np.int32)
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        code[ptr[start] : ptr[stop]] = _nearest(_floats(rows.rows(start, stop)), centroids)
        rows.release()
    return Centroids(centroids, code, ptr)


def listed(clusters: Centroids) -> CentroidLists:
    """Return the documents of each centroid, each document once."""
    documents = len(clusters.ptr) - 1
    doc = np.repeat(np.arange(documents), np.diff(clusters.ptr))
    pair = np.unique(clusters.code.astype(np.int64) * max(documents, 1) + doc)
    owner, doc_of_pair = np.divmod(pair, max(documents, 1))
    ptr = np.searchsorted(owner, np.arange(len(clusters.centroids) + 1))
    return CentroidLists(ptr.astype(np.int64), doc_of_pair.astype(np.int32))


def near(clusters: Centroids, lists: CentroidLists, query: Ragged, probes: int, count: int) -> list[Int64]:
    """Return up to `count` candidates of each query, document numbers, ascending: the best by MaxSim over
    centroids of documents with a token in one of the `probes` centroids nearest to a query token.
    """
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
            encoders.maxsim.centroid_maxsim(
                score, clusters.code, clusters.ptr[docs], clusters.ptr[docs + 1], guess
            )
            docs = np.sort(docs[np.argsort(-guess, kind="stable")[:count]])
        candidates.append(docs)
    return candidates


@dataclass(frozen=True, eq=False)
class Compressed:
    """Token vectors by ColBERTv2's residual codec: a centroid, and 1 or 2 bits for each number."""

    clusters: Centroids
    packed: NDArray[np.uint8]
    """uint8[tokens, dimensions * bits / 8]."""
    buckets: Float32
    """float32[2**bits], the residual that each code decodes to."""
    error: float
    """Mean distance of a vector to its decoded form."""
    largest: float
    """Largest such distance; times a query's tokens it bounds the error of a score."""

    @property
    def dimensions(self) -> int:
        return int(self.clusters.centroids.shape[1])

    @cached_property
    def lengths(self) -> Int64:
        return np.diff(self.clusters.ptr)

    @property
    def all_rows(self) -> None: ...

    def __len__(self) -> int:
        return len(self.clusters.ptr) - 1

    def rows(self, start: int, stop: int) -> Ragged:
        return self.rows_of(np.arange(start, stop))

    def rows_of(self, numbers: NDArray[np.integer]) -> Ragged:
        lengths = self.lengths[numbers]
        ptr = offsets(lengths)
        tokens = np.repeat(self.clusters.ptr[numbers] - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Ragged(ptr, self._decompressed(tokens))

    def release(self) -> None: ...

    def _decompressed(self, tokens: Int64) -> Float32:
        out = np.empty((len(tokens), self.dimensions), np.float32)
        bits = int(np.log2(len(self.buckets)))
        shifts = np.arange(8 - bits, -1, -bits)
        codewords: Float32 = self.buckets[(np.arange(256)[:, None] >> shifts) & (len(self.buckets) - 1)]
        code, packed = self.clusters.code[tokens], self.packed[tokens]
        encoders.maxsim.decompress(code, packed, self.clusters.centroids, codewords, out)
        return out


def compressed(rows: TokenRows, clusters: Centroids, bits: int) -> Compressed:
    """Return token vectors compressed to 1 or 2 bits a number, with the error; raises BadValue if a vector does
    not fill whole bytes.
    """
    refuse_odd(rows.dimensions, bits)
    ptr, total = clusters.ptr, int(clusters.ptr[-1])
    # Buckets hold equally many residuals, vectors less their centroids; every step-th token is looked at.
    step, residuals = max(1, total // CALIBRATION_VECTORS), [np.zeros(0, np.float32)]
    for start, stop in spans(rows.lengths, BLOCK_VECTORS):
        low, high = int(ptr[start]), int(ptr[stop])
        picked = np.arange(-low % step, high - low, step)
        vectors = _floats(rows.rows(start, stop))[picked]
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
        vectors = _floats(rows.rows(start, stop))
        rest = vectors - clusters.centroids[clusters.code[low:high]]
        bucket = np.zeros(rest.shape, np.uint8)
        for cut in cuts:
            bucket += rest > cut
        parts = bucket.reshape(len(bucket), packed.shape[1], len(shifts)) << shifts
        packed[low:high] = np.bitwise_or.reduce(parts, axis=2)
        off = np.linalg.norm(codec.rows(start, stop).values - vectors, axis=1)
        error, largest = error + float(off.sum()), max(largest, float(off.max(initial=0)))
        rows.release()
    return Compressed(clusters, packed, buckets, error / max(total, 1), largest)


def refuse_odd(dimensions: int, bits: int) -> None:
    """Raise BadValue if compressed vectors of this length do not fill whole bytes."""
    if dimensions * bits % 8:
        raise BadValue(
            f"vectors of {dimensions} numbers do not fill whole bytes with {bits} bits each; take bits=0"
        )


def write_clusters(
    folder: Path, clusters: Centroids, lists: CentroidLists | None, small: Compressed | None
) -> None:
    """Write centroids, and lists and compressed vectors unless None, to .npy files in a folder."""
    for name, part in (("clusters", clusters), ("lists", lists)):
        if part is not None:
            for field in fields(part):
                np.save(folder / f"{name}-{field.name}.npy", getattr(part, field.name))
    if small is not None:
        np.save(folder / "packed.npy", small.packed)
        np.save(folder / "buckets.npy", small.buckets)
        np.save(folder / "error.npy", np.array([small.error, small.largest]))


def read_clusters(folder: Path, bits: int) -> tuple[Centroids, CentroidLists | None, Compressed | None]:
    """Return memory-mapped (centroids, lists or None, compressed vectors or None); raises StoreError if missing
    or damaged.
    """

    def mapped(name: str, dtype: DTypeLike, *shape: int) -> Any:  # noqa: ANN401 - the dtype is what was saved
        return read_array(folder / f"{name}.npy", dtype, shape)

    def check_sound(name: str, sound: bool) -> None:
        if not sound:
            raise StoreError(f"{folder}: the index is damaged ({name}); delete it to build it again")

    code, ptr = mapped("clusters-code", np.int32, -1), mapped("clusters-ptr", np.int64, -1)
    centroids = mapped("clusters-centroids", np.float32, -1, -1)
    clusters, lists, documents = Centroids(centroids, code, ptr), None, len(ptr) - 1
    check_sound("clusters", in_range(code, len(centroids)) and valid_offsets(ptr, len(code)))
    if (folder / "lists-ptr.npy").exists():
        doc = mapped("lists-doc", np.int32, -1)
        lists = CentroidLists(mapped("lists-ptr", np.int64, len(centroids) + 1), doc)
        check_sound("lists", in_range(doc, documents) and valid_offsets(lists.ptr, len(doc)))
    if not bits:
        return clusters, lists, None
    mean, largest = mapped("error", np.float64, 2).tolist()
    packed = mapped("packed", np.uint8, len(code), centroids.shape[1] * bits // 8)
    buckets = mapped("buckets", np.float32, 1 << bits)
    return clusters, lists, Compressed(clusters, packed, buckets, mean, largest)


def _floats(tokens: Ragged) -> Float32:
    return np.ascontiguousarray(tokens.values, np.float32)


def _kmeans(sample: Float32, count: int) -> Float32:
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
    nearest = np.empty(len(vectors), np.int32)
    step = max(1, (1 << 25) // max(len(centroids), 1))
    for start in range(0, len(vectors), step):
        nearest[start : start + step] = (vectors[start : start + step] @ centroids.T).argmax(axis=1)
    return nearest
