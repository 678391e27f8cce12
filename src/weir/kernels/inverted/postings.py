"""Build an impact index from documents' terms: counting, inversion, BM25 impacts.

Arrays of an impact index of V terms, N documents, P postings:

    ptr     int64[V + 1]   offsets of each term's postings.
    doc     int32[P]       internal document numbers, ascending within a term.
    impact  float32[P]     score that one occurrence of the term in a query adds.

Internal numbers are in tie order: 0 is the document whose id sorts last. `order int32[N]` maps them to corpus
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.arrays import Float32, Float64, Int32, Int64
from weir.kernels.jit import jit

Counts: TypeAlias = NDArray[Any]  # uint16, int32 or float32

Pairs: TypeAlias = tuple[Int64, Int32, Counts]
"""Documents as pairs of a term and its count or weight: ptr int64[N + 1], term int32, count."""


class TermPairs(NamedTuple):
    """Documents' (term, count) pairs, as `Pairs`, for kernels."""

    ptr: Int64
    term: Int32
    count: Counts


class TermWeights(NamedTuple):
    """Term weights, document norms and the formula that turns counts into impacts."""

    weight: Float32
    """float32[V]: idf of each term times its factors."""
    norm: Float32
    """float32[N] by internal number: inverse norms for LUCENE, k1 * ((1 - b) + b * length / average) for
    RATIO."""
    formula: int
    """LUCENE, RATIO or VALUE."""


LUCENE, RATIO, VALUE = 0, 1, 2
"""Formulas of impacts: w - w/(1 + tf*norm) in float32; w*tf/(tf + norm) in float64; w*value in float64."""

_EXACT_CODES = 24
"""Shorter lengths have their own code; longer ones keep three bits after the leading bit."""


def _decode(code: int) -> int:
    if code < _EXACT_CODES:
        return code
    bits, shift = (code - _EXACT_CODES) & 7, ((code - _EXACT_CODES) >> 3) - 1
    return _EXACT_CODES + (bits if shift < 0 else (bits | 8) << shift)


_DECODED: Int64 = np.array([_decode(code) for code in range(256)], np.int64)
DECODED_LENGTHS: Float32 = _DECODED.astype(np.float32)
"""float32[256]: length with which Lucene scores each stored byte (org.apache.lucene.util.SmallFloat)."""


def length_codes(lengths: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return Lucene's one-byte code of each document length, uint8[N] (SmallFloat.intToByte4)."""
    return (np.searchsorted(_DECODED, lengths, side="right") - 1).astype(np.uint8)


def average_length(lengths: NDArray[np.integer]) -> float:
    """Return the mean length of documents with tokens, rounded to float32; 0.0 without any."""
    filled = int(np.count_nonzero(lengths))
    return float(np.float32(int(lengths.sum(dtype=np.int64)) / filled)) if filled else 0.0


def lucene_idf(df: NDArray[np.integer], n_docs: int) -> Float32:
    """Return Lucene's idf of each term, ln(1 + (n_docs - df + 0.5) / (df + 0.5)), float32[V].

    n_docs: documents whose field is not empty.
    """
    d = df.astype(np.float64)
    return np.log(1.0 + (n_docs - d + 0.5) / (d + 0.5)).astype(np.float32)


def lucene_inverse_norms(
    lengths: NDArray[np.integer], average: float, k1: float, b: float, exact: bool = False
) -> Float32:
    """Return 1 / (k1 * ((1 - b) + b * length / average)), float32[N]; zeros if `average` is 0.

    exact: use true lengths, not Lucene's one-byte lengths.
    """
    one, k, bb = np.float32(1), np.float32(k1), np.float32(b)
    used = lengths.astype(np.float32) if exact else DECODED_LENGTHS
    if average <= 0.0:
        return np.zeros(len(lengths), np.float32)
    with np.errstate(divide="ignore"):
        table = (one / (k * ((one - bb) + bb * used / np.float32(average)))).astype(np.float32)
    return table if exact else table[length_codes(lengths)]


@jit
def _count_batch(
    dptr: Int64,
    terms: Int32,
    first: int,
    stamp: Int32,  # last document with each term
    slot: Int64,  # position of that pair
    out_term: Int32,
    out_tf: Counts,
    out_ptr: Int64,
    out_length: Int64,
    at: int,
) -> int:
    n = at
    for d in range(len(dptr) - 1):
        number = np.int32(first + d)
        length = 0
        for j in range(dptr[d], dptr[d + 1]):
            t = terms[j]
            if t < 0:
                continue
            length += 1
            u = np.uint64(t)
            if stamp[u] == number:
                out_tf[np.uint64(slot[u])] += 1
            else:
                stamp[u] = number
                slot[u] = n
                out_term[np.uint64(n)] = t
                out_tf[np.uint64(n)] = 1
                n += 1
        out_ptr[d] = n
        out_length[d] = length
    return n


class ForwardBuilder:
    """Collects documents' (term, count) pairs, batch by batch."""

    # Takes 6 bytes a pair (10 once a document exceeds 65,535 tokens) and 8 a document.

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._term: Int32 = np.empty(0, np.int32)
        self._tf: NDArray[Any] = np.empty(0, np.uint16)
        self._ptr: list[Int64] = [np.zeros(1, np.int64)]
        self._used = 0
        self._docs = 0
        self._stamp: Int32 = np.empty(0, np.int32)
        self._slot: Int64 = np.empty(0, np.int64)

    def add(self, dptr: Int64, terms: Int32, n_terms: int) -> Int64:
        """Add documents, and return their lengths in tokens, int64[n].

        dptr: offsets of the documents in `terms`, int64[n + 1].
        terms: term numbers; negative for a dropped token, which is not counted.
        n_terms: greater than every term number so far.
        """
        self._reserve(len(terms), n_terms)
        longest = int(np.diff(dptr).max(initial=0))
        if longest > np.iinfo(np.uint16).max and self._tf.dtype == np.uint16:
            self._tf = self._tf.astype(np.int32)
        ends, lengths = np.empty(len(dptr) - 1, np.int64), np.empty(len(dptr) - 1, np.int64)
        self._used = _count_batch(
            dptr,
            terms,
            self._docs,
            self._stamp,
            self._slot,
            self._term,
            self._tf,
            ends,
            lengths,
            self._used,
        )
        self._docs += len(ends)
        self._ptr.append(ends)
        return lengths

    def finish(self) -> Pairs:
        """Return all documents' pairs, (ptr int64[N + 1], term int32[P], count uint16[P] or int32[P]), and
        start anew.
        """
        self._term.resize(self._used, refcheck=False)
        self._tf.resize(self._used, refcheck=False)
        result = np.concatenate(self._ptr), self._term, self._tf
        self._clear()
        return result

    def drained(self) -> tuple[Int64, Int32, Int32]:
        """Return the pairs of documents added since the last call, (ptr int64[n + 1], term int32[P], count
        int32[P]), and drop them.
        """
        result = (
            np.concatenate(self._ptr),
            self._term[: self._used].copy(),
            self._tf[: self._used].astype(np.int32),
        )
        self._ptr, self._used = [np.zeros(1, np.int64)], 0
        return result

    def _reserve(self, more: int, n_terms: int) -> None:
        need = self._used + more
        if need > len(self._term):
            room = max(need, self._used + self._used // 8, 1 << 16)
            self._term.resize(room, refcheck=False)
            self._tf.resize(room, refcheck=False)
        if n_terms > len(self._stamp):
            self._stamp = np.full(n_terms + n_terms // 4, -1, np.int32)
            self._slot = np.empty(len(self._stamp), np.int64)


@jit
def add_frequencies(fterm: Int32, df: Int32) -> None:
    """Add the occurrences of each term in `fterm` to `df`, int32[V]."""
    for j in range(len(fterm)):
        df[np.uint64(fterm[j])] += 1


def document_frequencies(fterm: Int32, n_terms: int) -> Int32:
    """Return the number of documents with each term, int32[n_terms].

    fterm: the distinct terms of each document, concatenated.
    """
    df = np.zeros(n_terms, np.int32)
    add_frequencies(fterm, df)
    return df


@jit
def _add_up(ptr: Int64, term: Int32, value: Float64, stamp: Int32, slot: Int64, ends: Int64) -> int:
    n = 0
    for d in range(len(ptr) - 1):
        for j in range(ptr[d], ptr[d + 1]):
            t = np.uint64(term[j])
            if stamp[t] == d:
                value[slot[t]] += value[j]
            else:
                stamp[t] = d
                slot[t] = n
                term[n] = term[j]
                value[n] = value[j]
                n += 1
        ends[d] = n
    return n


def added_up(fields: list[tuple[Int64, Int32, Float64]], n_terms: int) -> tuple[Int64, Int32, Float64]:
    """Return several fields' term values summed by document: (ptr int64[N + 1], term, value).

    fields: (ptr int64[N + 1], term, value) of each field, for the same documents.
    """
    ptr = np.sum([one for one, _, _ in fields], axis=0)
    term, value = np.empty(ptr[-1], np.int32), np.empty(ptr[-1])
    begin = ptr[:-1].copy()
    for own, some, values in fields:
        count = np.diff(own)
        at = np.repeat(begin - own[:-1], count) + np.arange(len(some))
        term[at], value[at] = some, values
        begin += count
    stamp, slot = np.full(n_terms, -1, np.int32), np.empty(n_terms, np.int64)
    ends = np.zeros(len(ptr), np.int64)
    left = _add_up(ptr, term, value, stamp, slot, ends[1:])
    return ends, term[:left], value[:left]


@jit
def _impact(formula: int, weight: np.float32, count: Any, scale: np.float32) -> np.float32:  # noqa: ANN401 - of any kind
    if formula == 0:
        return weight - weight / (np.float32(1) + np.float32(count) * scale)
    if formula == 1:
        tf = np.float64(count)
        return np.float32(np.float64(weight) * tf / (tf + np.float64(scale)))
    return np.float32(np.float64(weight) * np.float64(count))


@jit
def _invert(
    pairs: TermPairs, order: Int32, weights: TermWeights, cursor: Int64, doc: Int32, impact: Float32
) -> None:
    fptr, fterm, ftf = pairs
    weight, norm, formula = weights
    for i in range(len(order)):
        source = order[i]
        scale = norm[i]
        for j in range(fptr[source], fptr[source + 1]):
            t = np.uint64(fterm[j])
            at = np.uint64(cursor[t])
            cursor[t] += 1
            doc[at] = i
            impact[at] = _impact(formula, weight[t], ftf[j], scale)


def invert(
    pairs: Pairs, order: Int32, weights: tuple[Float32, Float32], formula: int = LUCENE
) -> tuple[Int64, Int32, Float32]:
    """Return postings with impacts, (ptr int64[V + 1], doc int32[P], impact float32[P]), of documents' terms.

    pairs: in corpus order, from `ForwardBuilder.finish`.
    order: corpus number of each internal number, int32[N].
    weights: weight and norm of `TermWeights`.

    Raises BadValue for inconsistent sizes or an unknown formula.
    """
    if formula not in (LUCENE, RATIO, VALUE):
        raise BadValue(f"no impact formula {formula}")
    (fptr, fterm, ftf), (weight, norm) = pairs, weights
    if len(order) != len(norm) or len(order) > len(fptr) - 1 or len(fterm) != len(ftf):
        raise BadValue("invert: order and norm are per document, fterm and ftf per pair")
    ptr = np.zeros(len(weight) + 1, np.int64)
    np.cumsum(document_frequencies(fterm, len(weight)), out=ptr[1:])
    doc, impact = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    _invert(TermPairs(*pairs), order, TermWeights(*weights, formula), ptr[:-1].copy(), doc, impact)
    return ptr, doc, impact


@jit
def _place(
    fptr: Int64, fterm: Int32, ftf: Counts, order: Int32, cursor: Int64, doc: Int32, count: Counts
) -> None:
    for i in range(len(order)):
        source = order[i]
        for j in range(fptr[source], fptr[source + 1]):
            t = np.uint64(fterm[j])
            at = np.uint64(cursor[t])
            cursor[t] += 1
            doc[at] = i
            count[at] = ftf[j]


@jit
def _weigh(ptr: Int64, doc: Int32, count: Counts, weights: TermWeights, impact: Float32) -> None:
    weight, norm, formula = weights
    for t in range(len(ptr) - 1):
        for p in range(np.uint64(ptr[t]), np.uint64(ptr[t + 1])):
            impact[p] = _impact(formula, weight[t], count[p], norm[np.uint64(doc[p])])


def inverted(pairs: Pairs, order: Int32, terms: int) -> tuple[Int64, Int32, Counts]:
    """Return postings with counts, (ptr int64[terms + 1], doc int32[P], count uint8[P] or as in `pairs`).

    pairs, order: as for `invert`.
    """
    fptr, fterm, ftf = pairs
    small = ftf.dtype == np.uint16 and ftf.max(initial=0) <= np.iinfo(np.uint8).max
    ptr = np.zeros(terms + 1, np.int64)
    np.cumsum(document_frequencies(fterm, terms), out=ptr[1:])
    doc, count = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.uint8 if small else ftf.dtype)
    _place(fptr, fterm, ftf, order, ptr[:-1].copy(), doc, count)
    return ptr, doc, count


def weighed_groups(
    lists: tuple[Int64, Int32, Counts], weights: tuple[Float32, Float32], formula: int, room: int
) -> Iterator[tuple[Int64, Int32, Float32]]:
    """Yield postings with impacts, as `invert` returns them, for groups of successive terms; offsets of each
    group start at 0.

    lists: postings with counts.
    room: most postings of a group of several terms.
    """
    (ptr, doc, count), (weight, norm) = lists, weights
    for first, last in pairwise(term_groups(ptr, room)):
        own, span = ptr[first : last + 1] - ptr[first], slice(int(ptr[first]), int(ptr[last]))
        impact = np.empty(own[-1], np.float32)
        _weigh(own, doc[span], count[span], TermWeights(weight[first:last], norm, formula), impact)
        yield own, doc[span], impact


def term_groups(ptr: Int64, room: int) -> list[int]:
    """Return the bounds of groups of successive terms: one term, or at most `room` postings.

    ptr: offsets of the terms' postings, int64[V + 1].
    """
    cuts, terms = [0], len(ptr) - 1
    while cuts[-1] < terms or len(cuts) == 1:
        most = int(np.searchsorted(ptr, ptr[cuts[-1]] + room, side="right")) - 1
        cuts.append(min(terms, max(cuts[-1] + 1, most)))
    return cuts


@jit
def write_postings(
    fptr: Int64, fterm: Int32, value: Float32, first: int, cursor: Int64, doc: Int32, impact: Float32
) -> None:
    """Write the postings of documents, numbered from `first`, to the terms' lists `doc` and `impact`.

    fptr, fterm, value: terms and impacts of each document.
    cursor: next position in each list, int64[V]; advanced.
    """
    for i in range(len(fptr) - 1):
        for j in range(fptr[i], fptr[i + 1]):
            t = np.uint64(fterm[j])
            at = np.uint64(cursor[t])
            cursor[t] += 1
            doc[at] = first + i
            impact[at] = value[j]


@jit
def _by_block(
    fptr: Int64, fterm: Int32, ftf: Int32, block: Int32, cursor: Int64, term: Int32, count: Int32
) -> None:
    for d in range(len(fptr) - 1):
        b = block[d]
        at = cursor[b]
        for j in range(fptr[d], fptr[d + 1]):
            term[at] = fterm[j]
            count[at] = ftf[j]
            at += 1
        cursor[b] = at


def by_block(fptr: Int64, fterm: Int32, ftf: Int32, block: Int32, blocks: int) -> tuple[Int64, Int32, Int32]:
    """Return documents' (term, count) pairs sorted stably by block: (ends int64[blocks + 1], term, count).

    fptr, fterm, ftf: each document's pairs.
    block: block of each document, int32[n].
    """
    ends = np.zeros(blocks + 1, np.int64)
    np.cumsum(np.bincount(block, np.diff(fptr), blocks), out=ends[1:])
    term, count = np.empty(len(fterm), np.int32), np.empty(len(ftf), np.int32)
    _by_block(fptr, fterm, ftf, block, ends[:-1].copy(), term, count)
    return ends, term, count


@jit
def append_lists(
    sizes: Int32,  # int32[T], lengths of the lists, contiguous from `at`
    cursor: Int64,  # int64[T], next free row of each term in the outputs, moved on
    doc: Int32,
    value: Counts,  # counts or weights
    at: int,
    weights: TermWeights,
    out_doc: Int32,
    out_impact: Float32,
) -> int:
    """Append the posting lists of a block of documents, with impacts, at the terms' cursors; return the next
    block's start in `doc`.
    """
    weight, norm, formula = weights
    for t in range(len(sizes)):
        to, w = cursor[t], weight[t]
        for _ in range(sizes[t]):
            out_doc[to] = doc[at]
            out_impact[to] = _impact(formula, w, value[at], norm[doc[at]])
            to += 1
            at += 1
        cursor[t] = to
    return at
