"""BM25, exactly as the tools whose name a preset bears."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue, UnknownName
from weir.systems.compose import shown, then
from weir.systems.lexical.bm25_presets import PRESETS, BM25Preset, Lengths
from weir.systems.lexical.field_weights import (
    FieldNumbers,
    FieldsGiven,
    field_weights,
    names_of,
    written,
)
from weir.systems.lexical.inverted_index import (
    ForwardIndex,
    ImpactIndex,
    TopDocuments,
    best_field,
    best_field_scores,
    load_index_of,
    pair_scores,
    save_index,
    top,
)
from weir.systems.lexical.term_weights import build, query_terms
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, called, folder_of
from weir.text import analyzers
from weir.text.terms import TermTable

__all__ = ["BM25", "BM25Searcher", "check_recipe"]

LARGEST_K1 = 1e6
"""Scores are computed in single precision, where larger ones leave nothing of a frequency."""


@SYSTEMS.register("bm25")
@dataclass(frozen=True)
class BM25:
    """BM25 ranking; a preset names the tool it reproduces, settings override the preset.

    preset: "lucene" (Anserini's flat index, the default), "lucene-multifield", "elastic", "bm25s";
    k1, b, analyzer, lengths: see BM25Preset; None takes the preset's; fields: what is searched, a list of fields or
    views ("title text" is one field), each with statistics of its own, or what the score of each counts,
    {"title": 3, "text": 1}: scores are added, or the best taken, as the preset does. Source: Robertson et al. 1994;
    Lucene BM25Similarity; Kamphuis et al. 2020 on the variants. Raises UnknownName or BadValue.
    """

    preset: str = "lucene"
    k1: float | None = None
    b: float | None = None
    analyzer: str | None = None
    lengths: Lengths | None = None
    fields: FieldsGiven | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str) or self.preset not in PRESETS:
            raise UnknownName("BM25 preset", str(self.preset), PRESETS)
        preset = PRESETS[self.preset]
        for name in ("k1", "b", "analyzer", "lengths"):
            given = getattr(self, name)
            if name in ("k1", "b") and type(given) is int and abs(given) <= LARGEST_K1:
                object.__setattr__(self, name, float(given))
            if given == getattr(preset, name):
                object.__setattr__(self, name, None)  # equal systems compare and print equal
        if self.fields is not None:
            given = field_weights("bm25", self.fields)
            usual = tuple((name, 1.0) for name in preset.fields)
            object.__setattr__(self, "fields", None if given == usual else given)
        check_recipe("bm25", self.recipe)

    __repr__ = shown
    __rshift__ = then

    @cached_property
    def recipe(self) -> BM25Preset:
        """The preset with the overrides applied."""
        preset = PRESETS[self.preset]
        given = {n: getattr(self, n) for n in ("k1", "b", "analyzer", "lengths")}
        fields = preset.fields if self.fields is None else names_of(self.weights)
        return replace(preset, **{n: v for n, v in given.items() if v is not None}, fields=fields)

    @property
    def weights(self) -> FieldNumbers:
        """What the score of each field counts."""
        if self.fields is None:
            return tuple((name, 1.0) for name in PRESETS[self.preset].fields)
        return self.fields  # type: ignore[return-value]  # made so when it was given

    def __str__(self) -> str:
        given: dict[str, object] = {n: getattr(self, n) for n in ("k1", "b", "analyzer", "lengths")}
        given["fields"] = None if self.fields is None else written(self.weights)
        first: list[object] = [] if self.preset == "lucene" else [self.preset]
        return called("bm25", first, {n: v for n, v in given.items() if v is not None})

    def describe(self) -> dict[str, object]:
        """Everything that decides its rankings."""
        recipe, weights = self.recipe, dict(self.weights)
        weighted = {} if set(weights.values()) == {1.0} else {"weights": weights}
        return {
            "system": str(self),
            "idf": "ln(1 + (N - df + 0.5) / (df + 0.5))",
            **asdict(recipe),
            **weighted,
            "analysis": analyzers.get(recipe.analyzer).describe(),
            "algorithms": {name: algorithm(name) for name in ("sparse index", "sparse search")},
        }

    def fields_read(self) -> tuple[str, ...]:
        """The fields that are indexed."""
        return self.recipe.fields

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> BM25Searcher:
        """Index a corpus, in memory or into the context's folder."""
        return self.indexed(corpus, context, keep_terms=False)

    def indexed(self, corpus: Corpus, context: Context, keep_terms: bool) -> BM25Searcher:
        """As `index`; keep_terms also keeps each document's terms, which query expansion needs."""
        recipe = self.recipe
        fields = [f for f in self.weights if f[0] != "title" or corpus.title is not None] or self.weights
        groups = [fields] if recipe.tie_breaker is None else [[field] for field in fields]
        parts = tuple(build(corpus, recipe, group, keep_terms, context.progress) for group in groups)
        if context.folder is not None:
            known = corpus.fingerprint_with(recipe.fields)
            facts = {"system": str(self), "corpus": known, "documents": len(corpus)}
            save_index(parts, context.folder, facts)
            return self.open(corpus, context)
        return BM25Searcher(self, corpus, parts)

    def open(self, corpus: Corpus, context: Context) -> BM25Searcher:
        """Open an index that `index` wrote for the same corpus; raises StoreError where it is damaged."""
        return BM25Searcher(self, corpus, load_index_of(corpus, folder_of(context), self.recipe.fields))


@dataclass(frozen=True, eq=False)
class BM25Searcher:
    """An index of a corpus, ready to answer."""

    system: BM25
    corpus: Corpus
    parts: tuple[ImpactIndex, ...]

    @cached_property
    def name(self) -> str:
        """What its runs are called."""
        return str(self.system)

    @cached_property
    def tables(self) -> tuple[tuple[TermTable, ...], ...]:
        """The vocabularies of each part's fields, ready to look words up."""
        words = analyzers.get(self.system.recipe.analyzer)
        return tuple(tuple(TermTable(words, terms) for terms in part.vocabularies) for part in self.parts)

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; none for a query without a known term.

        Raises BadValue for k below 1.
        """
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        hits = self._hits(queries, min(k, max(len(self.corpus), 1)))
        return Run(queries.ids, self.corpus.ids, hits.ptr, hits.doc, hits.score, self.name)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them; 0 for one without a term of the query."""
        asked = [query_terms(tables, queries.text) for tables in self.tables]
        share = self.system.recipe.tie_breaker
        if share is None or len(self.parts) == 1:
            return pair_scores(self.parts[0], asked[0], candidates)
        return best_field_scores(self.parts, asked, share, candidates)

    def weighted(self, ptr: Int64, term: Int32, weight: np.ndarray, k: int) -> TopDocuments:
        """The k best documents for queries given as weighted terms of the first part."""
        return top(self.parts[0], ptr, term, weight.astype(np.float32), k)

    @property
    def forward(self) -> ForwardIndex | None:
        """Each document's terms, where the index keeps them."""
        return self.parts[0].forward

    def costs(self) -> Costs:
        """Time alone: nothing is kept."""
        return Costs(repeatable=True)

    def _hits(self, queries: Queries, k: int) -> TopDocuments:
        asked = [query_terms(tables, queries.text) for tables in self.tables]
        share = self.system.recipe.tie_breaker
        if share is None or len(self.parts) == 1:
            return top(self.parts[0], *asked[0], k)
        return best_field(self.parts, asked, share, k)


def check_recipe(system: str, recipe: BM25Preset) -> None:
    """Raise BadValue, naming the system, for settings out of range; UnknownName for an analyzer that is none."""
    analyzers.get(recipe.analyzer)
    if not (isinstance(recipe.k1, float) and 0 <= recipe.k1 <= LARGEST_K1):
        raise BadValue(f"{system}: k1 is {recipe.k1!r}; expected a number from 0 to {LARGEST_K1:g}")
    if not (isinstance(recipe.b, float) and 0 <= recipe.b <= 1):
        raise BadValue(f"{system}: b is {recipe.b!r}; expected a number from 0 to 1")
    if recipe.lengths not in ("byte", "exact"):
        raise BadValue(f"{system}: lengths is {recipe.lengths!r}; expected 'byte' or 'exact'")
