"""From texts to an impact index, and from queries to weighted terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.strings import Int32, Int64, Strings
from weir.kernels import postings
from weir.kernels.bounds import Bounds
from weir.kernels.search import Impacts
from weir.systems.impact import Forward, ImpactIndex
from weir.systems.recipe import Recipe
from weir.systems.system import Progress
from weir.text import analyzers
from weir.text.terms import TermTable

__all__ = ["build", "query_terms"]

BATCH = 1 << 24
"""Bytes of text analysed at once."""

Float32 = NDArray[np.float32]


def build(
    corpus: Corpus,
    recipe: Recipe,
    views: list[str],
    keep_terms: bool = False,
    progress: Progress | None = None,
) -> ImpactIndex:
    """Index views of a corpus as fields with statistics of their own; scores of the fields add up."""
    order = np.argsort(corpus.ids.tie_ranks).astype(np.int32)
    fields = [_field(corpus, recipe, view, order, keep_terms, progress) for view in views]
    ptr, doc, impact = fields[0][1]
    for _, (more_ptr, more_doc, more_impact), _ in fields[1:]:
        ptr = np.concatenate([ptr, more_ptr[1:] + ptr[-1]])
        doc, impact = np.concatenate([doc, more_doc]), np.concatenate([impact, more_impact])
    impacts = Impacts(len(corpus), ptr, doc, impact, Bounds.of(ptr, doc, impact, len(corpus)))
    return ImpactIndex(impacts, tuple(terms for terms, _, _ in fields), order, fields[0][2])


def query_terms(tables: tuple[TermTable, ...], texts: Strings) -> tuple[Int64, Int32, Float32]:
    """(ptr int64[Q + 1], term int32, weight float32): the known terms of each query; weight is the count.

    With several tables the terms of each are numbered after those of the table before.
    """
    queries, terms, offset = [], [], 0
    for table in tables:
        ptr, term = table.lookup(texts)
        query = np.repeat(np.arange(len(texts)), np.diff(ptr))
        known = term >= 0
        queries.append(query[known])
        terms.append(term[known] + offset)
        offset += len(table)
    width = max(offset, 1)
    pair, count = np.unique(np.concatenate(queries) * width + np.concatenate(terms), return_counts=True)
    query, term = np.divmod(pair, width)
    ptr = np.searchsorted(query, np.arange(len(texts) + 1)).astype(np.int64)
    return ptr, term.astype(np.int32), count.astype(np.float32)


def _field(
    corpus: Corpus, recipe: Recipe, view: str, order: Int32, keep_terms: bool, progress: Progress | None
) -> tuple[Strings, tuple[Int64, Int32, Float32], Forward | None]:
    table = TermTable(analyzers.get(recipe.analyzer))
    collected, lengths = postings.Forward(), []
    for start, texts in corpus.batches(view, BATCH):
        ptr, term = table.add(texts)
        lengths.append(collected.add(ptr, term, len(table)))
        if progress is not None:
            progress(start + len(texts), len(corpus))
    forward = Forward(*collected.finish())
    length = np.concatenate(lengths) if lengths else np.empty(0, np.int64)
    df = postings.document_frequencies(forward.term, len(table))
    idf = postings.lucene_idf(df, int(np.count_nonzero(length)))
    average = postings.average_length(length)
    norm = postings.lucene_inverse_norms(length, average, recipe.k1, recipe.b, recipe.lengths == "exact")
    made = postings.invert(forward.ptr, forward.term, forward.count, order, idf, norm[order], postings.LUCENE)
    return table.terms(), made, forward if keep_terms else None
