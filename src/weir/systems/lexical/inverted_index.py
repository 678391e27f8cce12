"""The inverted index of term impacts that every sparse system uses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.order import best_of
from weir.core.run import Run
from weir.core.strings import (
    Float32,
    Float64,
    Ids,
    Int32,
    Int64,
    Strings,
    in_range,
    is_permutation,
    offsets,
    valid_offsets,
)
from weir.errors import BadValue, StoreError
from weir.files.atomic import atomic_dir
from weir.files.integrity import Checksum, open_folder, read_array, seal_folder
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS
from weir.kernels.inverted.byte_bounds import ByteBounds, column_shape, frequent_terms
from weir.kernels.inverted.packed import ARRAYS, PackedLists, PlainLists, flaw, layout
from weir.kernels.inverted.search import Impacts, search
from weir.settings import settings
from weir.systems.protocol import TermScores

# ----------
# Validate arrays before unchecked loops. Compiled loops test no bounds. Once arrays pass these checks, every position
# that a search computes lies inside its array: a file that was changed on purpose can give other scores, and never end
# the process.


PIECE_ENTRIES = 1 << 20
"""Entries checked together, to fit into the processor's cache."""


def _postings_flaw(impacts: Impacts) -> str:
    ptr, stored, columns = impacts.ptr, impacts.stored, impacts.columns
    if isinstance(stored, PlainLists):
        if not _ascends(ptr, stored.doc, impacts.n_docs):
            return "doc"
        return "" if stored.impact.shape == stored.doc.shape and _weights(stored.impact) else "impact"
    for name in ("value", "top", "peak"):
        if not _weights(getattr(stored, name)):
            return name
    lists, bounds = impacts.arrays[:2]
    if found := flaw(lists, bounds, impacts.n_docs):
        return ("", "offset", "low", "code")[found]
    if columns is not None:
        frequent, number = frequent_terms(ptr, impacts.n_docs)
        if not np.array_equal(columns.number, number):
            return "columns-number"
        if len(columns.step) != len(frequent) or not _weights(columns.step):
            return "columns-step"
        if columns.values.shape != column_shape(impacts.n_docs, len(frequent)):
            return "columns-values"
    return ""


def _words_flaw(
    documents: int, ptr: Int64, order: Int32, vocabularies: tuple[Strings, ...], forward: ForwardIndex | None
) -> str:
    if len(order) != documents or not is_permutation(order):
        return "order"
    for field, terms in enumerate(vocabularies):
        if not valid_offsets(terms.ptr, len(terms.data)):
            return f"terms{field}-ptr"
    sizes = [len(terms) for terms in vocabularies]
    if sizes and sum(sizes) != len(ptr) - 1:  # a learned index has the encoder's vocabulary
        return "ptr"
    if forward is None:
        return ""
    if len(forward.ptr) != documents + 1 or not valid_offsets(forward.ptr, len(forward.term)):
        return "forward-ptr"
    if not sizes or not in_range(forward.term, sizes[0]):
        return "forward-term"
    count = forward.count
    whole = count.dtype.kind in "iu" and count.shape == forward.term.shape and count.min(initial=0) >= 0
    return "" if whole else "forward-count"


def _ascends(ptr: Int64, doc: Int32, n_docs: int) -> bool:
    for start in range(0, len(doc), PIECE_ENTRIES):
        some = doc[start : start + PIECE_ENTRIES + 1]
        if int(some.min()) < 0 or int(some.max()) >= n_docs:
            return False
        falls = start + 1 + np.flatnonzero(some[1:] <= some[:-1])
        if not (ptr[np.searchsorted(ptr, falls)] == falls).all():  # only where another list begins
            return False
    return True


def _weights(values: NDArray[Any]) -> bool:
    return values.size == 0 or bool(values.min() >= 0 and values.max() < np.inf)


# ----------
# The index: postings with impacts, search, scores of given documents, several fields.


FORMAT, PLAIN_FORMAT = 3, 2
"""Of indexes with packed lists, and with plain ones."""
RECORD = "index.json"
BLOCK_ANSWERS = 1 << 24
"""Results (queries x k) in memory at once."""

BLOCK_SCORES = 1 << 23
"""Scores of (query, document) pairs in memory at once, when fields are combined."""


QueryTerms = tuple[Int64, Int32, Float32]
"""Queries as terms: ptr int64[queries + 1], term int32, weight float32; see query_terms."""


@dataclass(frozen=True, eq=False)
class ForwardIndex:
    """Each document's terms and counts: document d has term[ptr[d]:ptr[d + 1]]."""

    ptr: Int64
    term: Int32
    count: NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class ImpactIndex:
    """Postings of terms with impacts (score contributions); internal document numbers are in tie order."""

    impacts: Impacts
    vocabularies: tuple[Strings, ...]
    """Terms of each field; numbers continue from field to field."""
    order: Int32
    """int32[documents]: corpus number of each internal number."""
    forward: ForwardIndex | None = None
    """The terms of each document, for query expansion."""


@dataclass(frozen=True, eq=False)
class TopDocuments:
    """Rankings: ptr int64[queries + 1], doc int32[n] in corpus numbers, score float64[n]."""

    ptr: Int64
    doc: Int32
    score: Float64


def tie_order(corpus: Corpus) -> Int32:
    """Return all documents' corpus numbers in tie order, int32[documents]."""
    order = np.empty(len(corpus), np.int32)
    order[corpus.ids.tie_ranks] = np.arange(len(corpus), dtype=np.int32)
    return order


def sparse_kernels(documents: int) -> tuple[str, ...]:
    """Return the groups of compiled kernels that a search of `documents` documents calls."""
    if documents > EXHAUSTIVE_DOCUMENTS:
        return "sparse index", "sparse index on disk", "sparse search of many"
    return "sparse index", "sparse search"


def top_documents(index: ImpactIndex, query: Int64, term: Int32, weight: Float32, k: int) -> TopDocuments:
    """Return the k best documents of each query, among those with a query term.

    query: int64[queries + 1], offsets of each query's terms.
    term, weight: int32 and float32, of all queries.
    """
    count, block = len(query) - 1, max(1, BLOCK_ANSWERS // k)
    if count <= block:
        return _block(index, query, term, weight, k)
    parts = []
    for start in range(0, count, block):
        ptr = query[start : start + block + 1]
        span = slice(int(ptr[0]), int(ptr[-1]))
        parts.append(_block(index, ptr - ptr[0], term[span], weight[span], k))
    starts = np.cumsum([0, *(len(part.doc) for part in parts)])
    ends = [part.ptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    doc, score = (np.concatenate(column) for column in zip(*((p.doc, p.score) for p in parts), strict=True))
    return TopDocuments(np.concatenate([np.zeros(1, np.int64), *ends]), doc, score)


def _block(index: ImpactIndex, query: Int64, term: Int32, weight: Float32, k: int) -> TopDocuments:
    counts, doc, score = search(index.impacts, query, term, weight, k, settings().threads)
    if len(counts) == 1:
        n = int(counts[0])
        return TopDocuments(
            np.array([0, n], np.int64), index.order[doc[0, :n]], score[0, :n].astype(np.float64)
        )
    filled = np.arange(k) < counts[:, None]
    ptr = offsets(counts)
    return TopDocuments(ptr, index.order[doc[filled]], score[filled].astype(np.float64))


def work_folder(at: Path, part: str) -> Path:
    """Return the folder in which part `part` of an index larger than memory is made."""
    return at.with_name(f".{at.name}.blocks-{part}")


def save_index(indexes: tuple[ImpactIndex, ...], at: Path, facts: dict[str, object]) -> None:
    """Write indexes and facts atomically into the folder `at`, which is replaced, then delete its `work_folder`s."""
    with atomic_dir(at) as folder:
        for number, index in enumerate(indexes):
            arrays: dict[str, NDArray[np.generic]] = {
                "ptr": index.impacts.ptr,
                "order": index.order,
                **index.impacts.stored._asdict(),
            }
            if (columns := index.impacts.columns) is not None:
                arrays |= {f"columns-{name}": np.asarray(a) for name, a in columns._asdict().items()}
            for n, terms in enumerate(index.vocabularies):
                arrays |= {f"terms{n}-data": terms.data, f"terms{n}-ptr": terms.ptr}
            if index.forward is not None:
                arrays |= {f"forward-{f.name}": getattr(index.forward, f.name) for f in fields(ForwardIndex)}
            for name, array in arrays.items():
                _save_array(folder / f"{number}-{name}.npy", array)
        head = {
            "format": FORMAT
            if any(isinstance(i.impacts.stored, PackedLists) for i in indexes)
            else PLAIN_FORMAT,
            "parts": len(indexes),
            "fields": [len(i.vocabularies) for i in indexes],
        }
        seal_folder(folder, RECORD, head | facts)
    for made_of in at.parent.iterdir():
        if made_of.name.startswith(work_folder(at, "").name):
            shutil.rmtree(made_of, ignore_errors=True)


def _save_array(path: Path, array: NDArray[np.generic]) -> None:
    source = Path(str(array.filename)) if isinstance(array, np.memmap) else Path()
    if source.suffix == ".npy":
        try:
            os.link(source, path)
        except OSError:  # another disk, or one without links
            shutil.copyfile(source, path)
    else:
        np.save(path, array)


def save_index_of(
    system: object, corpus: Corpus, fields: tuple[str, ...], at: Path, indexes: tuple[ImpactIndex, ...]
) -> None:
    """Write a system's indexes of a corpus atomically into the folder `at`."""
    facts = {"system": str(system), "corpus": corpus.fingerprint_with(fields), "documents": len(corpus)}
    save_index(indexes, at, facts)


def load_index(at: Path) -> tuple[tuple[ImpactIndex, ...], dict[str, object]]:
    """Return (memory-mapped indexes, facts) that `save_index` wrote; raises StoreError if missing, damaged or
    of another format."""
    try:
        facts = open_folder(at, RECORD)
        files, documents, found = facts.pop("files"), facts["documents"], facts.get("format")
        expected = FORMAT if layout(documents) is PackedLists else PLAIN_FORMAT
        if found in (FORMAT, expected):
            kind = PackedLists if found == FORMAT else PlainLists
            return tuple(
                _open_index(at, n, some, documents, files, kind) for n, some in enumerate(facts["fields"])
            ), facts
    except (StoreError, KeyError, TypeError) as error:
        raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None
    raise StoreError(
        f"{at}: the index was made by another version of weir (format {found}, expected {expected}); delete it to "
        "build it again"
    )


def load_index_of(corpus: Corpus, at: Path, fields: tuple[str, ...]) -> tuple[ImpactIndex, ...]:
    """Return a corpus's indexes in a folder; raises StoreError for damage, BadValue for another corpus."""
    parts, facts = load_index(at)
    if facts.get("corpus") != corpus.fingerprint_with(fields) or facts.get("documents") != len(corpus):
        raise BadValue(f"{at}: this index was made from another corpus; delete it to build it again")
    return parts


KINDS: dict[str, tuple[type[np.generic] | None, tuple[int, ...]]] = {
    **ARRAYS,
    "ptr": (np.int64, (-1,)),
    "order": (np.int32, (-1,)),
    "columns-number": (np.int32, (-1,)),
    "columns-step": (np.float32, (-1,)),
    "columns-values": (np.uint8, (-1, -1, -1)),
    "terms-data": (np.uint8, (-1,)),
    "terms-ptr": (np.int64, (-1,)),
    "forward-ptr": (np.int64, (-1,)),
    "forward-term": (np.int32, (-1,)),
    "forward-count": (None, (-1,)),
}
"""dtype and shape of each array on disk; None: any numbers, -1: any length."""


def _open_index(
    at: Path, number: int, vocabularies: int, documents: int, files: Mapping[str, Checksum],
    kind: type[PlainLists] | type[PackedLists],
) -> ImpactIndex:  # fmt: skip

    def mapped(name: str, kind: str = "") -> Any:  # noqa: ANN401 - the dtype is what was saved
        return read_array(at / f"{number}-{name}.npy", *KINDS[kind or name])

    order, ptr = mapped("order"), mapped("ptr")
    lists = kind(*map(mapped, kind._fields))
    columns = forward = None
    if f"{number}-columns-number.npy" in files:
        columns = ByteBounds(*(mapped(f"columns-{name}") for name in ByteBounds._fields))
    terms = tuple(
        Strings(mapped(f"terms{n}-data", "terms-data"), mapped(f"terms{n}-ptr", "terms-ptr"))
        for n in range(vocabularies)
    )
    if f"{number}-forward-ptr.npy" in files:
        forward = ForwardIndex(**{f.name: mapped(f"forward-{f.name}") for f in fields(ForwardIndex)})
    if not valid_offsets(ptr, len(lists[0])):
        raise StoreError(f"{number}-ptr.npy holds what was never written there")
    try:
        impacts = Impacts(documents, ptr, lists, columns)
        wrong = _postings_flaw(impacts)
    except ValueError as error:
        wrong = str(error)
    if wrong := wrong or _words_flaw(documents, ptr, order, terms, forward):
        raise StoreError(f"{number}-{wrong}.npy holds what was never written there")
    return ImpactIndex(impacts, terms, order, forward)


def candidate_scores(index: ImpactIndex, query: QueryTerms, candidates: Run) -> Float64:
    """Return each candidate's score, float64[candidates] rounded to float32; 0 without a query term."""
    ptr, term, weight = query
    inside = np.empty(len(index.order), np.int32)
    inside[index.order] = np.arange(len(index.order), dtype=np.int32)
    impacts, total = index.impacts, np.zeros(len(candidates.doc))
    for q in np.flatnonzero(np.diff(candidates.ptr)):
        rows = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
        docs, score = inside[candidates.doc[rows]], total[rows]
        # Terms add up as in a search, by descending bound (kernels/inverted/query_plan.py): where weights are no whole
        # numbers, a sum of doubles can depend on the order.
        by_bound = []
        for i in range(int(ptr[q]), int(ptr[q + 1])):
            t = int(term[i])
            if not (0 <= t < len(impacts.ptr) - 1 and weight[i] > 0 and impacts.ptr[t] < impacts.ptr[t + 1]):
                continue
            most = np.float64(impacts.largest_of(t))
            by_bound.append((-np.float32(np.float64(weight[i]) * most), t, i))
        for _, t, i in sorted(by_bound):
            score += np.float64(weight[i]) * impacts.impacts_in(t, docs).astype(np.float64)
    return total.astype(np.float32).astype(np.float64)


def term_scores(
    index: ImpactIndex, query: QueryTerms, candidates: Run, fields: Sequence[str] = ()
) -> list[TermScores]:
    """Return for each term of a single query the score that it adds to each candidate.

    fields: names of the index's fields; () reports "".
    """
    _, term, weight = query
    count, documents = len(term), len(candidates.doc)
    cuts = np.arange(count + 1, dtype=np.int64)
    tiled, zero = np.tile(candidates.doc, count), np.zeros(count * documents)
    alone = Run(Ids.of(range(count)), candidates.docs, cuts * documents, tiled, zero)
    scores = candidate_scores(index, (cuts, term, weight), alone).reshape(count, documents)
    starts = offsets(np.array([len(words) for words in index.vocabularies]))
    of_field = np.searchsorted(starts, term, side="right") - 1
    return [
        TermScores(
            index.vocabularies[field][int(number - starts[field])], fields[field] if fields else "", row
        )
        for number, field, row in zip(term, of_field.tolist(), scores, strict=True)
    ]


def best_field_scores(
    parts: tuple[ImpactIndex, ...], query: list[QueryTerms], share: float, candidates: Run
) -> Float64:
    """Return each candidate's score, float64[candidates] rounded to float32: its best field's, plus `share`
    of the others' sum."""
    fields = np.stack(
        [candidate_scores(part, one, candidates) for part, one in zip(parts, query, strict=True)]
    )
    best = fields.max(axis=0)
    score: Float64 = (best + share * (fields.sum(axis=0) - best)).astype(np.float32).astype(np.float64)
    return score


def best_field(
    parts: tuple[ImpactIndex, ...], queries: list[QueryTerms], share: float, k: int
) -> TopDocuments:
    """Return each query's k best documents by the score of the best field, plus `share` of the others' sum
    (Lucene's DisjunctionMaxQuery).

    parts, queries: for each field, its index and the queries' terms.
    """
    count, documents = len(queries[0][0]) - 1, len(parts[0].order)
    rank = np.empty(documents, np.int32)
    rank[parts[0].order] = np.arange(documents, dtype=np.int32)
    block = max(1, BLOCK_SCORES // max(documents, 1))
    ptr, docs, scores = [0], [np.empty(0, np.int32)], [np.empty(0)]
    for start in range(0, count, block):
        stop = min(start + block, count)
        total, best = np.zeros((stop - start, documents)), np.zeros((stop - start, documents))
        for part, (query, term, weight) in zip(parts, queries, strict=True):
            span = slice(int(query[start]), int(query[stop]))
            hits = top_documents(
                part, query[start : stop + 1] - query[start], term[span], weight[span], documents
            )
            where = np.repeat(np.arange(stop - start), np.diff(hits.ptr)), hits.doc
            total[where] += hits.score
            best[where] = np.maximum(best[where], hits.score)
        score = (best + share * (total - best)).astype(np.float32)
        for row in score:
            doc = best_of(row.astype(np.float64), rank, k)
            docs.append(doc)
            scores.append(row[doc].astype(np.float64))
            ptr.append(ptr[-1] + len(doc))
    return TopDocuments(np.array(ptr, np.int64), np.concatenate(docs), np.concatenate(scores))
