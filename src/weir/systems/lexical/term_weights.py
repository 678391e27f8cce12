"""From texts to an impact index, and from queries to weighted terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.strings import Int32, Int64, Strings
from weir.kernels.inverted import postings
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.search import Impacts
from weir.systems.lexical.bm25_presets import BM25Preset
from weir.systems.lexical.inverted_index import ForwardIndex, ImpactIndex
from weir.systems.protocol import Progress
from weir.text import analyzers
from weir.text.terms import TermTable

__all__ = ["Field", "analysed", "assembled", "build", "query_terms", "tie_order", "weighed"]

BATCH_BYTES = 1 << 21
"""Bytes of text analysed at once: more would leave the processor's cache, and take memory."""

Float32 = NDArray[np.float32]
Field: TypeAlias = tuple[Strings, tuple[Int64, Int32, Float32], ForwardIndex | None]
"""The terms of a field, its postings with impacts, and each document's terms where they are kept."""


def build(
    corpus: Corpus,
    recipe: BM25Preset,
    fields: Sequence[tuple[str, float]],
    keep_terms: bool = False,
    progress: Progress | None = None,
) -> ImpactIndex:
    """Index views of a corpus as fields with statistics of their own; scores of the fields, times weights, add up."""
    order, made = tie_order(corpus), list[Field]()
    for view, weight in fields:
        table = TermTable(analyzers.get(recipe.analyzer))
        batches = analysed(table, corpus, view, progress)
        made.append(weighed(table, batches, recipe, order, keep_terms, weight))
    return assembled(made, order)


def analysed(
    table: TermTable, corpus: Corpus, view: str, progress: Progress | None = None
) -> Iterator[tuple[Int64, Int32]]:
    """The terms of a view of all documents, batch by batch, as `weighed` takes them; the table grows."""
    for start, texts in corpus.batches(view, BATCH_BYTES):
        yield table.add(texts)
        if progress is not None:
            progress(start + len(texts), len(corpus))


def tie_order(corpus: Corpus) -> Int32:
    """The corpus number of each internal number: int32[N]."""
    order = np.empty(len(corpus), np.int32)
    order[corpus.ids.tie_ranks] = np.arange(len(corpus), dtype=np.int32)
    return order


def assembled(fields: list[Field], order: Int32) -> ImpactIndex:
    """One index of several fields, whose scores add up."""
    ptr, doc, impact = fields[0][1]
    for _, (more_ptr, more_doc, more_impact), _ in fields[1:]:
        ptr = np.concatenate([ptr, more_ptr[1:] + ptr[-1]])
        doc, impact = np.concatenate([doc, more_doc]), np.concatenate([impact, more_impact])
    impacts = Impacts(len(order), ptr, doc, impact, BlockBounds.where_needed(ptr, doc, impact, len(order)))
    return ImpactIndex(impacts, tuple(terms for terms, _, _ in fields), order, fields[0][2])


def query_terms(tables: tuple[TermTable, ...], texts: Strings) -> tuple[Int64, Int32, Float32]:
    """(ptr int64[Q + 1], term int32, weight float32): the known terms of each query; weight is the count.

    With several tables the terms of each are numbered after those of the table before.
    """
    if len(texts) == 1:
        return _terms_of_one(tables, texts[0])
    found, offset = [], 0
    width = max(sum(map(len, tables)), 1)
    for table in tables:
        ptr, term = table.lookup(texts)
        pair = np.repeat(np.arange(0, len(texts) * width, width), ptr[1:] - ptr[:-1])
        pair += term
        pair += offset
        found.append(pair[term >= 0])
        offset += len(table)
    pair = found[0] if len(found) == 1 else np.concatenate(found)
    pair.sort()
    fresh = np.ones(len(pair) + 1, np.bool_)
    np.not_equal(pair[1:], pair[:-1], out=fresh[1:-1])
    at = fresh.nonzero()[0]
    query, known = np.divmod(pair[at[:-1]], width)
    ptr = query.searchsorted(np.arange(len(texts) + 1))
    return ptr, known.astype(np.int32), (at[1:] - at[:-1]).astype(np.float32)


def _terms_of_one(tables: tuple[TermTable, ...], text: str) -> tuple[Int64, Int32, Float32]:
    """As `query_terms`, for one query, where arrays would take longer than what they hold."""
    every = tables[0].known(text)
    offset = 0
    for before, table in pairwise(tables):
        offset += len(before)
        every += [offset + term for term in table.known(text)]
    terms = sorted(set(every))
    if len(terms) == len(every):
        weight = np.ones(len(terms), np.float32)
    else:
        weight = np.array([every.count(term) for term in terms], np.float32)
    return np.array([0, len(terms)], np.int64), np.array(terms, np.int32), weight


def weighed(
    table: TermTable,
    batches: Iterable[tuple[Int64, Int32]],
    recipe: BM25Preset,
    order: Int32,
    keep_terms: bool = False,
    weight: float = 1.0,
) -> Field:
    """A field whose documents are given as terms of a table, batch by batch in the order of the corpus.

    weight: what its score counts, as Lucene's boost multiplies a term's idf.

    A batch is (ptr int64[n + 1], term int32), a term standing as often as it occurs; the table may grow meanwhile.
    """
    collected, lengths = postings.ForwardBuilder(), []
    for ptr, term in batches:
        lengths.append(collected.add(ptr, term, len(table)))
    forward = ForwardIndex(*collected.finish())
    length = np.concatenate(lengths) if lengths else np.empty(0, np.int64)
    df = postings.document_frequencies(forward.term, len(table))
    idf = postings.lucene_idf(df, int(np.count_nonzero(length))) * np.float32(weight)
    average = postings.average_length(length)
    norm = postings.lucene_inverse_norms(length, average, recipe.k1, recipe.b, recipe.lengths == "exact")
    made = postings.invert(forward.ptr, forward.term, forward.count, order, idf, norm[order], postings.LUCENE)
    return table.terms(), made, forward if keep_terms else None
