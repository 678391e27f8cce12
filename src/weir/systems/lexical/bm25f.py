"""BM25F: one BM25 over several fields, in which an occurrence counts as much as its field weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.kernels.inverted import postings
from weir.systems.compose import shown, then
from weir.systems.lexical.bm25 import check_recipe
from weir.systems.lexical.bm25_presets import BM25Preset, Lengths
from weir.systems.lexical.field_weights import (
    FieldNumbers,
    FieldsGiven,
    field_numbers,
    field_weights,
    names_of,
    written,
)
from weir.systems.lexical.inverted_index import (
    ForwardIndex,
    ImpactIndex,
    load_index_of,
    pair_scores,
    save_index,
    top,
)
from weir.systems.lexical.term_weights import analysed, assembled, query_terms, tie_order
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, called, folder_of
from weir.text import analyzers
from weir.text.terms import TermTable

__all__ = ["BM25F", "BM25FSearcher"]

NAME = "bm25f"
DEFAULT = BM25Preset("")
"""The analyzer, k1, b and lengths of bm25, to which bm25f over one field of weight 1 is equal."""


@SYSTEMS.register(NAME)
@dataclass(frozen=True)
class BM25F:
    """BM25 over fields: occurrences are normalised by the length of their field, weighted, added up, and saturate once.

    fields: the weight of each field, {"title": 3, "text": 1}, or a list of fields that weigh 1; k1: saturation; b: how
    much the length of a field counts, a number for all or {"title": 0.3, "text": 0.75}; analyzer, lengths: as bm25's.
    A term adds idf * w / (k1 + w), where w sums weight * tf / (1 - b + b * length / average) over the fields, average
    is over the documents that have the field, and idf counts documents that hold the term in any of them. Source:
    Zaragoza et al. 2004; Robertson and Zaragoza 2009. Raises UnknownName or BadValue.
    """

    fields: FieldsGiven = ("text", "title")
    k1: float = DEFAULT.k1
    b: float | Mapping[str, float] | FieldNumbers = DEFAULT.b
    analyzer: str = DEFAULT.analyzer
    lengths: Lengths = DEFAULT.lengths

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", field_weights(NAME, self.fields))
        if type(self.k1) is int:
            object.__setattr__(self, "k1", float(self.k1))
        object.__setattr__(self, "b", _by_field(self.b, names_of(self.weights)))
        check_recipe(NAME, BM25Preset("", self.analyzer, self.k1, DEFAULT.b, self.lengths))

    __repr__ = shown
    __rshift__ = then

    @property
    def weights(self) -> FieldNumbers:
        """The weight of each field."""
        return self.fields  # type: ignore[return-value]  # made so when it was given

    def b_of(self, field: str) -> float:
        """How much the length of a field counts."""
        return self.b if isinstance(self.b, float) else dict(self.b)[field]

    def __str__(self) -> str:
        b = self.b if isinstance(self.b, float) else dict(self.b)
        own: dict[str, object] = {"k1": self.k1, "b": b, "analyzer": self.analyzer, "lengths": self.lengths}
        given = {name: value for name, value in own.items() if value != getattr(DEFAULT, name)}
        fields = written(self.weights)
        return called(NAME, [], ({} if fields == ["text", "title"] else {"fields": fields}) | given)

    def describe(self) -> dict[str, object]:
        """Everything that decides its rankings."""
        return {
            "system": str(self),
            "fields": {name: {"weight": weight, "b": self.b_of(name)} for name, weight in self.weights},
            "k1": self.k1,
            "lengths": self.lengths,
            "idf": "ln(1 + (N - df + 0.5) / (df + 0.5)), a document counted once",
            "analysis": analyzers.get(self.analyzer).describe(),
            "algorithms": {name: algorithm(name) for name in ("sparse index", "sparse search", NAME)},
        }

    def fields_read(self) -> tuple[str, ...]:
        """The fields that are indexed."""
        return names_of(self.weights)

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> BM25FSearcher:
        """Index a corpus, in memory or into the context's folder."""
        index = _built(self, corpus, context)
        if context.folder is None:
            return BM25FSearcher(self, corpus, index)
        known = corpus.fingerprint_with(self.fields_read())
        facts: dict[str, object] = {"system": str(self), "corpus": known, "documents": len(corpus)}
        save_index((index,), context.folder, facts)
        return self.open(corpus, context)

    def open(self, corpus: Corpus, context: Context) -> BM25FSearcher:
        """Open an index that `index` wrote for the same corpus; raises StoreError where it is damaged."""
        (index,) = load_index_of(corpus, folder_of(context), self.fields_read())
        return BM25FSearcher(self, corpus, index)


@dataclass(frozen=True, eq=False)
class BM25FSearcher:
    """An index of fields, ready to answer."""

    system: BM25F
    corpus: Corpus
    impacts: ImpactIndex

    @cached_property
    def table(self) -> TermTable:
        """The terms of all fields, ready to look words up."""
        return TermTable(analyzers.get(self.system.analyzer), self.impacts.vocabularies[0])

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; none for a query without a known term. Raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        asked = query_terms((self.table,), queries.text)
        hits = top(self.impacts, *asked, min(k, max(len(self.corpus), 1)))
        return Run(queries.ids, self.corpus.ids, hits.ptr, hits.doc, hits.score, str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them; 0 for one without a term of the query."""
        return pair_scores(self.impacts, query_terms((self.table,), queries.text), candidates)

    def costs(self) -> Costs:
        """Time alone: nothing is kept."""
        return Costs(repeatable=True)


def _built(system: BM25F, corpus: Corpus, context: Context) -> ImpactIndex:
    """The index: the fields share one numbering of terms, and each document's occurrences of a term are one posting."""
    table, order = TermTable(analyzers.get(system.analyzer)), tie_order(corpus)
    pairs, filled = list[tuple[ForwardIndex, Float64]](), np.zeros(len(corpus), np.bool_)
    weights = [
        (f, w) for f, w in system.weights if f != "title" or corpus.title is not None
    ] or system.weights
    for number, (name, weight) in enumerate(weights):
        part = context.for_part(number, len(weights))
        collected, lengths = postings.ForwardBuilder(), [np.empty(0, np.int64)]
        for ptr, term in analysed(table, corpus, name, part.progress):
            lengths.append(collected.add(ptr, term, len(table)))
        forward, length = ForwardIndex(*collected.finish()), np.concatenate(lengths)
        average, exact = postings.average_length(length), system.lengths == "exact"
        norm = postings.lucene_inverse_norms(length, average, system.k1, system.b_of(name), exact)
        share = weight * forward.count.astype(np.float64)
        share *= np.repeat(norm, np.diff(forward.ptr))
        pairs.append((forward, share))
        filled |= length > 0
    ptr, term, share = postings.added_up([(f.ptr, f.term, values) for f, values in pairs], len(table))
    df = postings.document_frequencies(term, len(table))
    idf = postings.lucene_idf(df, int(np.count_nonzero(filled)))
    ones = np.ones(len(corpus), np.float32)
    made = postings.invert(ptr, term, share.astype(np.float32), order, idf, ones, postings.LUCENE)
    return assembled([(table.terms(), made, None)], order)


def _by_field(b: object, fields: tuple[str, ...]) -> float | FieldNumbers:
    """b, or the b of each field where they differ; raises BadValue for what gives no b, or none to a field."""
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        ((_, number),) = field_numbers(NAME, "b", [("every field", b)], 1)
        return number
    if not isinstance(b, (Mapping, tuple)):
        raise BadValue(
            f'{NAME}: b is {b!r}; expected a number from 0 to 1, or such as {{"title": 0.3, "text": 0.75}}'
        )
    found = field_numbers(NAME, "b", list(b.items()) if isinstance(b, Mapping) else list(b), 1)
    if names_of(found) != fields:
        raise BadValue(
            f"{NAME}: b names {', '.join(names_of(found))}; expected each field: {', '.join(fields)}"
        )
    alike = {number for _, number in found}
    return found[0][1] if len(alike) == 1 else found
