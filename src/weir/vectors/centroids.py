"""Token vectors grouped by centroids: compressed to one or two bits a number, and candidates without looking at all.

A token vector is stored as the number of its centroid and the bucket, of 2 or 4, that each number of the rest falls
into; buckets hold equally many and stand for their middle. Candidates of a query are the documents with a token among
the centroids nearest to one of its tokens; the best of them, each token taken for its centroid, are scored in full.
Sources: Santhanam et al. 2022, ColBERTv2, section 3.3; Santhanam et al. 2022, PLAID, sections 4.2 to 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weir.core.pointers import below, cuts
from weir.core.strings import Int32, Int64
from weir.errors import BadValue, StoreError
from weir.io.storage.arrays import read_array
from weir.vectors.maxsim_search import TokenQueries, TokenRows, Tokens

__all__ = [
    "CentroidLists",
    "Centroids",
    "Compressed",
    "clustered",
    "compressed",
    "listed",
    "near",
    "read_clusters",
    "refuse_odd",
    "write_clusters",
]

Float32: TypeAlias = NDArray[np.float32]

KMEANS_SEED = 0
KMEANS_ITERATIONS = 6
"""Iterations of k-means; one seed for its sample and its starts."""
TRAINING_VECTORS_PER_CENTROID = 32
"""Vectors for each centroid in the sample of k-means, evenly spaced over the collection."""
BLOCK_VECTORS = 1 << 14
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


def clustered(rows: TokenRows, count: int = 0) -> Centroids:
    """Centroids of token vectors, and which is nearest to each; the same for the same vectors.

    count: of centroids; 0 takes the power of two below 16 times the root of the number of tokens (PLAID's rule).
    """
    total = int(rows.lengths.sum())
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.lengths)])
    if total == 0:
        return Centroids(np.zeros((0, rows.dimensions), np.float32), np.zeros(0, np.int32), ptr)
    wanted = count or 1 << int(np.log2(16 * np.sqrt(total)))
    wanted = max(1, min(wanted, total // 4))
    centroids = _kmeans(_sample(rows, min(total, TRAINING_VECTORS_PER_CENTROID * wanted)), wanted)
    code = np.empty(total, np.int32)
    for start, stop in _token_blocks(rows.lengths, BLOCK_VECTORS):
        code[ptr[start] : ptr[stop]] = _nearest(_floats(rows.block(start, stop)), centroids)
        rows.release()
    return Centroids(centroids, code, ptr)


def listed(clusters: Centroids) -> CentroidLists:
    """Inverted lists: the documents of each centroid."""
    documents = len(clusters.ptr) - 1
    doc = np.repeat(np.arange(documents), np.diff(clusters.ptr))
    pair = np.unique(clusters.code.astype(np.int64) * max(documents, 1) + doc)
    owner, found = np.divmod(pair, max(documents, 1))
    ptr = np.searchsorted(owner, np.arange(len(clusters.centroids) + 1))
    return CentroidLists(ptr.astype(np.int64), found.astype(np.int32))


def near(
    clusters: Centroids, lists: CentroidLists, query: TokenQueries, probes: int, count: int
) -> list[Int64]:
    """For each query up to `count` documents, ascending: of those that `probes` centroids of each of its tokens have,
    the best where every token is taken for its centroid; among equals those of lower number."""
    from weir.kernels.maxsim.residual_codec import centroid_maxsim

    found = []
    probes = min(probes, len(clusters.centroids))
    for q in range(len(query)):
        product = query.of(q) @ clusters.centroids.T
        if product.size == 0:
            found.append(np.zeros(0, np.int64))
            continue
        first = product.shape[1] - probes
        asked = np.unique(np.argpartition(product, first, axis=1)[:, first:])
        parts = [lists.doc[lists.ptr[c] : lists.ptr[c + 1]] for c in asked.tolist()]
        docs = np.unique(np.concatenate(parts)).astype(np.int64)
        if len(docs) > count:
            guess, score = np.empty(len(docs), np.float32), np.ascontiguousarray(product.T)
            centroid_maxsim(score, clusters.code, clusters.ptr[docs], clusters.ptr[docs + 1], guess)
            docs = np.sort(docs[np.argsort(-guess, kind="stable")[:count]])
        found.append(docs)
    return found


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
        return self.clusters.ptr[start : stop + 1] - low, self._wide(np.arange(low, high))

    def take(self, numbers: NDArray[np.integer]) -> Tokens:
        """The vectors of these documents."""
        starts, ends = self.clusters.ptr[numbers], self.clusters.ptr[numbers + 1]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])
        return ptr, self._wide(np.repeat(starts - ptr[:-1], ends - starts) + np.arange(ptr[-1]))

    def release(self) -> None:
        """Nothing: the files are small."""

    def _wide(self, tokens: Int64) -> Float32:
        from weir.kernels.maxsim.residual_codec import decompress

        out = np.empty((len(tokens), self.dimensions), np.float32)
        decompress(
            self.clusters.code[tokens],
            self.packed[tokens],
            self.clusters.centroids,
            _table(self.buckets),
            out,
        )
        return out


def compressed(rows: TokenRows, clusters: Centroids, bits: int) -> Compressed:
    """Token vectors by the residual codec of 1 or 2 bits; raises BadValue where a vector does not fill whole bytes."""
    refuse_odd(rows.dimensions, bits)
    ptr, whole = clusters.ptr, int(clusters.ptr[-1])
    cuts, buckets = _quantiles(_residuals(rows, clusters, max(1, whole // CALIBRATION_VECTORS)), 1 << bits)
    packed = np.empty((whole, rows.dimensions * bits // 8), np.uint8)
    found = Compressed(clusters, packed, buckets, 0.0, 0.0)
    total, largest = 0.0, 0.0
    for start, stop in _token_blocks(rows.lengths, BLOCK_VECTORS):
        low, high = int(ptr[start]), int(ptr[stop])
        vectors = _floats(rows.block(start, stop))
        rest = vectors - clusters.centroids[clusters.code[low:high]]
        bucket = np.zeros(rest.shape, np.uint8)
        for cut in cuts:
            bucket += rest > cut
        packed[low:high] = _packed(bucket, bits)
        off = np.linalg.norm(found.block(start, stop)[1] - vectors, axis=1)
        total, largest = total + float(off.sum()), max(largest, float(off.max(initial=0)))
        rows.release()
    return Compressed(clusters, packed, buckets, total / max(whole, 1), largest)


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

    code = mapped("clusters-code", np.int32, -1)
    centroids, ptr = mapped("clusters-centroids", np.float32, -1, -1), mapped("clusters-ptr", np.int64, -1)
    clusters, lists, documents = Centroids(centroids, code, ptr), None, len(ptr) - 1
    _refuse_senseless(folder, "clusters", below(code, len(centroids)) and cuts(ptr, len(code)))
    if (folder / "lists-ptr.npy").exists():
        lists = CentroidLists(
            mapped("lists-ptr", np.int64, len(centroids) + 1), mapped("lists-doc", np.int32, -1)
        )
        _refuse_senseless(folder, "lists", below(lists.doc, documents) and cuts(lists.ptr, len(lists.doc)))
    if not bits:
        return clusters, lists, None
    mean, largest = mapped("error", np.float64, 2).tolist()
    packed = mapped("packed", np.uint8, len(code), centroids.shape[1] * bits // 8)
    return (
        clusters,
        lists,
        Compressed(clusters, packed, mapped("buckets", np.float32, 1 << bits), mean, largest),
    )


def _refuse_senseless(folder: Path, name: str, sound: bool) -> None:
    if not sound:
        raise StoreError(f"{folder}: the index is damaged ({name}); delete it to build it again")


def _table(buckets: Float32) -> Float32:
    """Lookup table float32[256, 8 / bits]: the codewords of the buckets that a byte packs."""
    bits = int(np.log2(len(buckets)))
    shifts = np.arange(8 - bits, -1, -bits)
    found: Float32 = buckets[(np.arange(256)[:, None] >> shifts) & (len(buckets) - 1)]
    return found


def _packed(bucket: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    each = 8 // bits
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    parts = bucket.reshape(len(bucket), bucket.shape[1] // each, each) << shifts
    whole: NDArray[np.uint8] = np.bitwise_or.reduce(parts, axis=2)
    return whole


def _residuals(rows: TokenRows, clusters: Centroids, step: int) -> Float32:
    """Residuals of every step-th token: the vector less its centroid."""
    parts = [np.zeros(0, np.float32)]
    for start, stop in _token_blocks(rows.lengths, BLOCK_VECTORS):
        low, high = int(clusters.ptr[start]), int(clusters.ptr[stop])
        picked = np.arange(-low % step, high - low, step)
        vectors = _floats(rows.block(start, stop))[picked]
        parts.append((vectors - clusters.centroids[clusters.code[low:high][picked]]).ravel())
    return np.concatenate(parts)


def _quantiles(rest: Float32, count: int) -> tuple[Float32, Float32]:
    """(cut points, codewords) of a quantile codec: buckets that hold equally many residuals, and the mean of each."""
    if rest.size == 0:
        return np.zeros(count - 1, np.float32), np.zeros(count, np.float32)
    found = np.quantile(rest, np.arange(1, 2 * count) / (2 * count)).astype(np.float32)
    return found[1::2], found[::2]


def _token_blocks(lengths: Int64, tokens: int) -> list[tuple[int, int]]:
    """(start, stop) of documents with about so many tokens together."""
    ends, spans, start = np.cumsum(lengths), [], 0
    while start < len(lengths):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + tokens, side="right")))
        spans.append((start, stop))
        start = stop
    return spans


def _floats(tokens: Tokens) -> Float32:
    return np.ascontiguousarray(tokens[1], np.float32)


def _sample(rows: TokenRows, count: int) -> Float32:
    """So many token vectors, evenly spaced."""
    total = int(rows.lengths.sum())
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.lengths)])
    picked = np.arange(count) * total // count
    parts = []
    for start, stop in _token_blocks(rows.lengths, BLOCK_VECTORS):
        low, high = np.searchsorted(picked, [ptr[start], ptr[stop]])
        if high > low:
            parts.append(_floats(rows.block(start, stop))[picked[low:high] - ptr[start]])
        rows.release()
    return np.concatenate(parts)


def _kmeans(sample: Float32, count: int) -> Float32:
    """Spherical k-means: centroids of length 1, assignment by the greatest product.

    A centroid that loses all its vectors begins again at a vector of the sample.
    """
    rng = np.random.default_rng(KMEANS_SEED)
    centroids = sample[np.sort(rng.choice(len(sample), count, replace=False))].copy()
    for _ in range(KMEANS_ITERATIONS):
        code = _nearest(sample, centroids)
        order = np.argsort(code, kind="stable")
        held, first = np.unique(code[order], return_index=True)
        centroids[held] = np.add.reduceat(sample[order], first, axis=0)
        empty = np.setdiff1d(np.arange(count), held)
        centroids[empty] = sample[rng.integers(0, len(sample), len(empty))]
        centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    return centroids


def _nearest(vectors: Float32, centroids: Float32) -> Int32:
    """The centroid of greatest product for each vector; the first of equals."""
    found = np.empty(len(vectors), np.int32)
    step = max(1, (1 << 25) // max(len(centroids), 1))
    for start in range(0, len(vectors), step):
        found[start : start + step] = (vectors[start : start + step] @ centroids.T).argmax(axis=1)
    return found
