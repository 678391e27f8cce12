"""BM25 and BM25F, with the settings of other tools as presets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int32, Int64, Strings, offsets
from weir.errors import BadValue, UnknownName
from weir.kernels.inverted import postings
from weir.kernels.inverted.packed import PackedLists, PlainLists, joined, layout, stored
from weir.kernels.inverted.postings import Pairs
from weir.kernels.inverted.search import Impacts
from weir.systems.compose import system_text, then
from weir.systems.lexical.analyzer import Analyzer, analyzers, read_stopwords
from weir.systems.lexical.inversion import (
    BATCH_BYTES,
    Blocks,
    BlockSource,
    GrowingFiles,
    Spool,
    count_type,
    expected_pairs,
    fits_into_memory,
    index_in_files,
    merged,
    require_memory_for,
    work_files,
)
from weir.systems.lexical.inverted_index import (
    ForwardIndex,
    ImpactIndex,
    best_field,
    best_field_scores,
    candidate_scores,
    load_index_of,
    save_index_of,
    sparse_kernels,
    term_scores,
    tie_order,
    top_documents,
)
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    SYSTEMS,
    Context,
    Progress,
    TermScores,
    always_nested,
    called,
    check_k,
    folder_of,
    index_repr,
    only_time,
)
from weir.systems.restricted import permitted_only

# ----------
# Presets, by the tool that they reproduce.


Lengths: TypeAlias = Literal["byte", "exact"]


@dataclass(frozen=True)
class BM25Preset:
    """Settings of BM25 that reproduce another tool's scores."""

    reproduces: str
    analyzer: str = "lucene-english"
    """A name of `analyzers` in weir.systems.lexical.analyzer."""
    k1: float = 0.9
    b: float = 0.4
    lengths: Lengths = "byte"
    """"byte" stores document lengths in one byte, as Lucene does; "exact" keeps them."""
    fields: tuple[str, ...] = ("title text",)
    """Indexed views, each with its own statistics."""
    tie_breaker: float | None = None
    """None adds the scores of the fields; a number takes the best field plus this share of the others
    (best_fields of Elasticsearch).
    """
    stopwords: str | None = None
    """File of words dropped before stemming."""

    @property
    def analysis(self) -> Analyzer:
        """The analyzer, with stop words of the file; raises FormatError for an unreadable file."""
        words = analyzers.get(self.analyzer)
        return words if self.stopwords is None else replace(words, dropped=read_stopwords(self.stopwords))


PRESETS: dict[str, BM25Preset] = {
    "lucene": BM25Preset("Anserini, flat index: title and text as one field"),
    "lucene-multifield": BM25Preset(
        "Anserini, multifield index: title and text apart, added (the BEIR paper's BM25)",
        fields=("text", "title"),
    ),
    "elastic": BM25Preset(
        "Elasticsearch multi_match best_fields with its english analyzer",
        k1=1.2,
        b=0.75,
        fields=("text", "title"),
        tie_breaker=0.5,
    ),
    "bm25s": BM25Preset(
        "the bm25s library with its defaults and an English stemmer",
        analyzer="bm25s-english",
        k1=1.5,
        b=0.75,
        lengths="exact",
    ),
}

# ----------
# Texts to an index, queries to weighted terms.


Groups: TypeAlias = list[tuple[Int64, PlainLists | PackedLists]]
"""Posting lists of successive groups of terms: (offsets from 0, int64[terms + 1], the lists as stored)."""
Field: TypeAlias = tuple[Strings, Groups, ForwardIndex | None]
"""(terms of a field, its posting lists, the terms of each document if they are stored)."""

GROUP_POSTINGS = 1 << 22
"""Postings that are weighed and packed together."""


def analysed(
    table: TermTable, corpus: Corpus, view: str, progress: Progress | None = None
) -> Iterator[tuple[Int64, Int32]]:
    """Yield each batch of documents as term numbers, with repetitions: (ptr int64[documents + 1], term
    int32); adds new terms to the table."""
    for start, texts in corpus.batches(view, BATCH_BYTES):
        yield table.add(texts)
        if progress is not None:
            progress(start + len(texts), len(corpus))


def assembled(fields: list[Field], order: Int32) -> ImpactIndex:
    """Return an index over several fields, whose scores add up and whose term numbers continue.

    order: int32[documents], corpus number of each internal number.
    """
    groups = [group for _, own, _ in fields for group in own]
    sizes = np.concatenate([np.diff(ptr) for ptr, _ in groups])
    impacts = Impacts(len(order), offsets(sizes), joined([lists for _, lists in groups]))
    return ImpactIndex(impacts, tuple(terms for terms, _, _ in fields), order, fields[0][2])


def _stored(
    pairs: list[Pairs], order: Int32, weights: tuple[Float32, Float32], formula: int = postings.LUCENE
) -> Groups:
    if layout(len(order)) is PlainLists:
        ptr, doc, impact = postings.invert(pairs.pop(), order, weights, formula)
        return [(ptr, PlainLists(doc, impact))]
    counted = postings.inverted(pairs.pop(), order, len(weights[0]))  # the pairs are not held any longer
    return [
        (ptr, stored(ptr, doc, impact, len(order)))
        for ptr, doc, impact in postings.weighed_groups(counted, weights, formula, GROUP_POSTINGS)
    ]


def query_terms(tables: tuple[TermTable, ...], texts: Strings) -> tuple[Int64, Int32, Float32]:
    """Return each query's known terms with counts: (ptr int64[queries + 1], term int32, ascending in a query,
    count float32).

    tables: vocabularies of the fields, with continued term numbers.
    """
    if len(texts) == 1:
        text = texts[0]
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
    pairs, offset = [], 0
    width = max(sum(map(len, tables)), 1)
    for table in tables:
        ptr, term = table.lookup(texts)
        pair = np.repeat(np.arange(0, len(texts) * width, width), ptr[1:] - ptr[:-1])
        pair += term
        pair += offset
        pairs.append(pair[term >= 0])
        offset += len(table)
    pair = pairs[0] if len(pairs) == 1 else np.concatenate(pairs)
    pair.sort()
    fresh = np.ones(len(pair) + 1, np.bool_)
    np.not_equal(pair[1:], pair[:-1], out=fresh[1:-1])
    at = fresh.nonzero()[0]
    query, term = np.divmod(pair[at[:-1]], width)
    ptr = query.searchsorted(np.arange(len(texts) + 1))
    return ptr, term.astype(np.int32), (at[1:] - at[:-1]).astype(np.float32)


def weighed(
    table: TermTable,
    batches: Iterable[tuple[Int64, Int32]],
    recipe: BM25Preset,
    order: Int32,
    keep_terms: bool = False,
    weight: float = 1.0,
) -> Field:
    """Return a field's (terms, postings, each document's terms or None).

    batches: (ptr int64[n + 1], term int32, with repetitions) in corpus order.
    order: int32[documents], corpus number of each internal number.
    keep_terms: also return each document's terms.
    weight: factor of the idf.
    """
    collected, lengths = postings.ForwardBuilder(), []
    for ptr, term in batches:
        lengths.append(collected.add(ptr, term, len(table)))
    pairs = [collected.finish()]
    forward = ForwardIndex(*pairs[0]) if keep_terms else None
    length = np.concatenate(lengths) if lengths else np.empty(0, np.int64)
    df = postings.document_frequencies(pairs[0][1], len(table))
    return table.terms(), _stored(pairs, order, _term_weights(df, length, recipe, order, weight)), forward


def _term_weights(
    df: Int32, length: NDArray[np.integer], recipe: BM25Preset, order: Int32, weight: float
) -> tuple[Float32, Float32]:
    idf = postings.lucene_idf(df, int(np.count_nonzero(length))) * np.float32(weight)
    average, exact = postings.average_length(length), recipe.lengths == "exact"
    norm = postings.lucene_inverse_norms(length, average, recipe.k1, recipe.b, exact)
    return idf, norm[order]


def _weighed_on_disk(
    files: GrowingFiles,
    corpus: Corpus,
    recipe: BM25Preset,
    weights: FieldNumbers,
    order: Int32,
    keep_terms: bool,
    context: Context,
) -> ImpactIndex:
    blocks = Blocks.planned(files, order, expected_pairs(corpus))
    ptr, vocabularies, forward = np.zeros(1, np.int64), list[Strings](), None
    for number, (view, weight) in enumerate(weights):
        spool = Spool(files, f"field{number}", blocks, f"field{number}", count_type(corpus, view))
        table = TermTable(recipe.analysis, spool.terms)
        spool.fill(corpus, view, table, context.for_part(2 * number, 2 * len(weights)).progress, keep_terms)
        length = spool.lengths
        source = BlockSource(blocks, spool.frequencies(), spool.block, spool.block_files, spool.count)
        own = merged(
            files,
            spool.name,
            source,
            partial(_term_weights, length=length, recipe=recipe, order=order, weight=weight),
            postings.LUCENE,
            context.for_part(2 * number + 1, 2 * len(weights)).progress,
        )
        ptr = np.concatenate([ptr, own[1:] + ptr[-1]])
        vocabularies.append(spool.terms)
        if keep_terms and number == 0:
            forward = ForwardIndex(*spool.forward())
    return index_in_files(files, ptr, tuple(vocabularies), order, forward)


# ----------
# Fields of documents and their weights.


FieldNumbers: TypeAlias = tuple[tuple[str, float], ...]
"""Pairs of a field and its number, sorted by field."""
FieldSettings: TypeAlias = Mapping[str, float] | Sequence[str] | FieldNumbers
"""Fields as a user writes them: {"title": 3, "text": 1}, or ["title", "text"] for equal weights."""

LARGEST_WEIGHT = 1e6


def field_weights(system: str, fields: object) -> FieldNumbers:
    """Return (field, weight) pairs sorted by field, weight 1 by default; raises BadValue for no or repeated
    fields, and weights not above 0."""
    if isinstance(fields, str) or not isinstance(fields, (Mapping, Sequence)) or not fields:
        expected = '["title", "text"] or {"title": 3, "text": 1}'
        raise BadValue(f"{system}: fields is {fields!r}; expected such as {expected}")
    pairs = (
        list(fields.items())
        if isinstance(fields, Mapping)
        else [(one if isinstance(one, tuple) and len(one) == 2 else (one, 1.0)) for one in fields]
    )
    weights = _field_numbers(system, "fields", pairs, LARGEST_WEIGHT)
    if len(dict(weights)) < len(weights):
        raise BadValue(f"{system}: fields names a field twice")
    if any(weight == 0 for _, weight in weights):
        raise BadValue(f"{system}: a field weighs 0; leave it out")
    return weights


def _field_numbers(
    system: str, setting: str, pairs: Sequence[tuple[object, object]], most: float
) -> FieldNumbers:
    numbers = []
    for name, number in pairs:
        check_view(name)
        if not (type(number) in (int, float) and isinstance(number, (int, float)) and 0 <= number <= most):
            raise BadValue(
                f"{system}: {setting} gives '{name}' {number!r}; expected a number up to {most:,.0f}"
            )
        numbers.append((str(name), float(number)))
    return tuple(sorted(numbers))


def _names_of(numbers: FieldNumbers) -> tuple[str, ...]:
    return tuple(name for name, _ in numbers)


def _existing_fields(weights: FieldNumbers, corpus: Corpus) -> FieldNumbers:
    return tuple(f for f in weights if f[0] != "title" or corpus.title is not None) or weights


def _weights_as_given(numbers: FieldNumbers) -> list[str] | dict[str, float]:
    if all(number == 1 for _, number in numbers):
        return list(_names_of(numbers))
    return {name: int(number) if number.is_integer() else number for name, number in numbers}


# ----------
# BM25.


LARGEST_K1 = 1e6
"""Beyond it the term frequency is lost in single precision."""


OVERRIDES = ("k1", "b", "analyzer", "lengths", "stopwords")
"""Settings that override the preset."""


@SYSTEMS.register("bm25")
@named_arguments
@dataclass(frozen=True)
class BM25:
    """Rank by BM25; a preset names the tool to reproduce, and other settings override the preset's.

    A term adds idf * tf / (tf + k1 * (1 - b + b * length / average)). Its idf is ln(1 + (N - df + 0.5) / (df
    + 0.5)).

    Sources: Robertson et al. 1994; BM25Similarity of Lucene; Kamphuis et al. 2020 on the variants. Raises
        UnknownName for an unknown preset or analyzer, BadValue for a value out of range, FormatError for an
        unreadable file of stop words.
    """

    preset: str = "lucene"
    """"lucene" (Anserini's flat index), "lucene-multifield", "elastic" or "bm25s"."""
    k1: float | None = None
    """Saturation of the term frequency. None, for this and all settings below, takes the preset's."""
    b: float | None = None
    """Length normalisation, from 0 to 1."""
    analyzer: str | None = None
    """How texts become terms, such as "lucene-english"; docs/analyzers.md lists the names."""
    lengths: Lengths | None = None
    """"byte" stores document lengths in one byte, as Lucene does; "exact" keeps them."""
    fields: FieldSettings | None = None
    """A list of fields or views ("title text" is one field), or their weights, {"title": 3, "text": 1}. Each has
    statistics of its own; their scores are added, or the best is taken, as the preset does. `title` may be
    missing; another unknown field raises UnknownName at indexing.
    """
    stopwords: str | None = None
    """File of words dropped before stemming."""

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str) or self.preset not in PRESETS:
            raise UnknownName("BM25 preset", str(self.preset), PRESETS)
        preset = PRESETS[self.preset]
        for name in OVERRIDES:
            value = getattr(self, name)
            if name in ("k1", "b") and type(value) is int and abs(value) <= LARGEST_K1:
                object.__setattr__(self, name, float(value))
            if value == getattr(preset, name):
                object.__setattr__(self, name, None)  # equal systems compare and print equal
        if self.fields is not None:
            value = field_weights("bm25", self.fields)
            usual = tuple((name, 1.0) for name in preset.fields)
            object.__setattr__(self, "fields", None if value == usual else value)
        _check_recipe("bm25", self.recipe)

    __repr__ = system_text
    __rshift__ = then

    @cached_property
    def recipe(self) -> BM25Preset:
        """The preset with the settings that override it."""
        preset = PRESETS[self.preset]
        overrides = {n: getattr(self, n) for n in OVERRIDES}
        fields = preset.fields if self.fields is None else _names_of(self.weights)
        return replace(preset, **{n: v for n, v in overrides.items() if v is not None}, fields=fields)

    @property
    def weights(self) -> FieldNumbers:
        """(field, weight) of each indexed field."""
        if self.fields is None:
            return tuple((name, 1.0) for name in PRESETS[self.preset].fields)
        return self.fields  # type: ignore[return-value]  # made so when it was given

    def __str__(self) -> str:
        own: dict[str, object] = {n: getattr(self, n) for n in OVERRIDES}
        own["fields"] = None if self.fields is None else _weights_as_given(self.weights)
        preset: list[object] = [] if self.preset == "lucene" else [self.preset]
        return called("bm25", preset, {n: v for n, v in own.items() if v is not None})

    def describe(self) -> dict[str, object]:
        recipe, weights = self.recipe, dict(self.weights)
        weighted = {} if set(weights.values()) == {1.0} else {"weights": weights}
        return {
            "system": str(self),
            "idf": "ln(1 + (N - df + 0.5) / (df + 0.5))",
            **{name: value for name, value in asdict(recipe).items() if name != "stopwords"},
            **weighted,
            "analysis": recipe.analysis.describe(),
            "algorithms": {name: algorithm(name) for name in ("sparse index", "sparse search")},
        }

    def kernels(self, documents: int) -> tuple[str, ...]:
        return sparse_kernels(documents)

    def fields_read(self) -> tuple[str, ...]:
        return self.recipe.fields

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> BM25Searcher:
        return self.indexed(corpus, context, keep_terms=False)

    def indexed(self, corpus: Corpus, context: Context, keep_terms: bool) -> BM25Searcher:
        """Return the searcher of a corpus, with its index stored in the context's folder, if any.

        keep_terms: also store each document's terms, for query expansion.

        Raises BadValue for an index in memory above the memory limit.
        """
        recipe = self.recipe
        fields, order, parts = _existing_fields(self.weights, corpus), tie_order(corpus), list[ImpactIndex]()
        groups = [fields] if recipe.tie_breaker is None else [(field,) for field in fields]
        if context.folder is not None and not fits_into_memory(corpus):
            with ExitStack() as stack:
                for number, group in enumerate(groups):
                    about = {"system": self.describe(), "corpus": corpus.fingerprint, "part": number}
                    files = stack.enter_context(work_files(context.folder, number, about))
                    part = context.for_part(number, len(groups))
                    parts.append(_weighed_on_disk(files, corpus, recipe, group, order, keep_terms, part))
                save_index_of(self, corpus, recipe.fields, context.folder, tuple(parts))
            return self.open(corpus, context)
        if context.folder is None:
            require_memory_for(corpus)
        for group in groups:
            postings_of_fields = list[Field]()
            for view, weight in group:
                table = TermTable(recipe.analysis)
                batches = analysed(table, corpus, view, context.progress)
                postings_of_fields.append(weighed(table, batches, recipe, order, keep_terms, weight))
            parts.append(assembled(postings_of_fields, order))
        if context.folder is None:
            return BM25Searcher(self, corpus, tuple(parts))
        save_index_of(self, corpus, recipe.fields, context.folder, tuple(parts))
        return self.open(corpus, context)

    def open(self, corpus: Corpus, context: Context) -> BM25Searcher:
        return BM25Searcher(self, corpus, load_index_of(corpus, folder_of(context), self.recipe.fields))


@dataclass(frozen=True, eq=False)
class BM25Searcher:
    """Searches by BM25 or BM25F."""

    system: BM25 | BM25F
    corpus: Corpus
    parts: tuple[ImpactIndex, ...]

    __repr__ = index_repr

    @cached_property
    def name(self) -> str:
        """The system's name, and its runs'."""
        return str(self.system)

    @cached_property
    def tables(self) -> tuple[tuple[TermTable, ...], ...]:
        words = self.system.recipe.analysis
        return tuple(tuple(TermTable(words, terms) for terms in part.vocabularies) for part in self.parts)

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        terms = [query_terms(tables, queries.text) for tables in self.tables]
        k = min(k, max(len(self.corpus), 1))
        share = self.system.recipe.tie_breaker
        if share is None or len(self.parts) == 1:
            hits = top_documents(self.parts[0], *terms[0], k)
        else:
            hits = best_field(self.parts, terms, share, k)
        return Run(queries.ids, self.corpus.ids, hits.ptr, hits.doc, hits.score, self.name)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return each candidate's score, float64[candidates]; 0 without a query term."""
        terms = [query_terms(tables, queries.text) for tables in self.tables]
        share = self.system.recipe.tie_breaker
        if share is None or len(self.parts) == 1:
            return candidate_scores(self.parts[0], terms[0], candidates)
        return best_field_scores(self.parts, terms, share, candidates)

    def term_scores(self, queries: Queries, candidates: Run) -> list[TermScores]:
        names = _names_of(_existing_fields(self.system.weights, self.corpus))
        apart = iter(names if 1 < len(names) == sum(map(len, self.tables)) else ())
        return [
            one
            for part, tables in zip(self.parts, self.tables, strict=True)
            for one in term_scores(
                part, query_terms(tables, queries.text), candidates, [*islice(apart, len(tables))]
            )
        ]

    nested = always_nested
    costs = only_time


def _check_recipe(system: str, recipe: BM25Preset) -> None:
    _ = recipe.analysis  # raises
    if not (isinstance(recipe.k1, float) and 0 <= recipe.k1 <= LARGEST_K1):
        raise BadValue(f"{system}: k1 is {recipe.k1!r}; expected a number from 0 to {LARGEST_K1:g}")
    if not (isinstance(recipe.b, float) and 0 <= recipe.b <= 1):
        raise BadValue(f"{system}: b is {recipe.b!r}; expected a number from 0 to 1")
    if recipe.lengths not in ("byte", "exact"):
        raise BadValue(f"{system}: lengths is {recipe.lengths!r}; expected 'byte' or 'exact'")


# ----------
# BM25F: one BM25 over several weighted fields.


NAME = "bm25f"
DEFAULT = BM25Preset("")
"""Analyzer, k1, b and lengths of bm25, to which bm25f over one field of weight 1 is equal."""


@SYSTEMS.register(NAME)
@named_arguments
@dataclass(frozen=True)
class BM25F:
    """Rank by BM25F: frequencies are normalised by field length, weighted and summed, then saturate once.

    A term adds idf * w / (k1 + w), in which w sums weight * tf / (1 - b + b * length / average) over fields.
    The average is over documents that have the field; idf counts documents with the term in any field.

    Sources: Zaragoza et al. 2004; Robertson and Zaragoza 2009. Raises UnknownName for an unknown analyzer,
        BadValue for a value out of range, FormatError for an unreadable file of stop words.
    """

    fields: FieldSettings = ("text", "title")
    """Weights, {"title": 3, "text": 1}, or a list of fields of weight 1; missing ones as for `BM25`."""
    k1: float = DEFAULT.k1
    """Saturation of the weighted frequency."""
    b: float | Mapping[str, float] | FieldNumbers = DEFAULT.b
    """Length normalisation: a number for all fields, or {"title": 0.3, "text": 0.75}."""
    analyzer: str = DEFAULT.analyzer
    """How texts become terms, such as "lucene-english"; docs/analyzers.md lists the names."""
    lengths: Lengths = DEFAULT.lengths
    """"byte" stores document lengths in one byte, as Lucene does; "exact" keeps them."""
    stopwords: str | None = None
    """File of words dropped before stemming."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", field_weights(NAME, self.fields))
        if type(self.k1) is int:
            object.__setattr__(self, "k1", float(self.k1))
        object.__setattr__(self, "b", _by_field(self.b, _names_of(self.weights)))
        _check_recipe(NAME, self.recipe)

    __repr__ = system_text
    __rshift__ = then

    @property
    def recipe(self) -> BM25Preset:
        """The settings except b, which may differ between fields."""
        names = _names_of(self.weights)
        return BM25Preset(
            "", self.analyzer, self.k1, DEFAULT.b, self.lengths, names, stopwords=self.stopwords
        )

    @property
    def weights(self) -> FieldNumbers:
        """(field, weight) of each indexed field."""
        return self.fields  # type: ignore[return-value]  # made so when it was given

    def b_of(self, field: str) -> float:
        """Return the length normalisation b of a field."""
        return self.b if isinstance(self.b, float) else dict(self.b)[field]

    def __str__(self) -> str:
        b = self.b if isinstance(self.b, float) else dict(self.b)
        own = {name: b if name == "b" else getattr(self, name) for name in OVERRIDES}
        own = {name: value for name, value in own.items() if value != getattr(DEFAULT, name)}
        fields = _weights_as_given(self.weights)
        return called(NAME, [], ({} if fields == ["text", "title"] else {"fields": fields}) | own)

    def describe(self) -> dict[str, object]:
        return {
            "system": str(self),
            "fields": {name: {"weight": weight, "b": self.b_of(name)} for name, weight in self.weights},
            "k1": self.k1,
            "lengths": self.lengths,
            "idf": "ln(1 + (N - df + 0.5) / (df + 0.5)), a document counted once",
            "analysis": self.recipe.analysis.describe(),
            "algorithms": {name: algorithm(name) for name in ("sparse index", "sparse search", NAME)},
        }

    def kernels(self, documents: int) -> tuple[str, ...]:
        return sparse_kernels(documents)

    def fields_read(self) -> tuple[str, ...]:
        return _names_of(self.weights)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> BM25Searcher:
        weights, order = _existing_fields(self.weights, corpus), tie_order(corpus)
        if context.folder is not None and not fits_into_memory(corpus):
            about = {"system": self.describe(), "corpus": corpus.fingerprint}
            with work_files(context.folder, 0, about) as files:
                index = self._index_on_disk(files, corpus, weights, order, context)
                save_index_of(self, corpus, self.fields_read(), context.folder, (index,))
            return self.open(corpus, context)
        if context.folder is None:
            require_memory_for(corpus)
        table = TermTable(self.recipe.analysis)
        forwards, columns = list[Pairs](), list[Int64]()
        for number, (name, _) in enumerate(weights):
            part = context.for_part(number, len(weights))
            collected, lengths = postings.ForwardBuilder(), [np.empty(0, np.int64)]
            for ptr, term in analysed(table, corpus, name, part.progress):
                lengths.append(collected.add(ptr, term, len(table)))
            forwards.append(collected.finish())
            columns.append(np.concatenate(lengths))
        ptr, term, share = self._shares(forwards, weights, self._norms(columns, weights), len(table))
        df = postings.document_frequencies(term, len(table))
        groups = _stored([(ptr, term, share)], order, _field_weights(df, columns))
        index = assembled([(table.terms(), groups, None)], order)
        if context.folder is None:
            return BM25Searcher(self, corpus, (index,))
        save_index_of(self, corpus, self.fields_read(), context.folder, (index,))
        return self.open(corpus, context)

    def _norms(self, lengths: Sequence[NDArray[np.integer]], weights: FieldNumbers) -> list[Float32]:
        exact = self.lengths == "exact"
        return [
            postings.lucene_inverse_norms(own, postings.average_length(own), self.k1, self.b_of(name), exact)
            for own, (name, _) in zip(lengths, weights, strict=True)
        ]

    def _shares(self, fields: list[Pairs], weights: FieldNumbers, norms: list[Float32], terms: int) -> Pairs:
        shares = []
        for (ptr, term, count), (_, weight), norm in zip(fields, weights, norms, strict=True):
            share = weight * count.astype(np.float64)
            share *= np.repeat(norm, np.diff(ptr))
            shares.append((ptr, term, share))
        ptr, term, total = postings.added_up(shares, terms)
        return ptr, term, total.astype(np.float32)

    def _index_on_disk(
        self, files: GrowingFiles, corpus: Corpus, weights: FieldNumbers, order: Int32, context: Context
    ) -> ImpactIndex:
        blocks, parts = Blocks.planned(files, order, expected_pairs(corpus)), len(weights) + 1
        spools = [
            Spool(files, f"field{number}", blocks, "all", count_type(corpus, name))
            for number, (name, _) in enumerate(weights)
        ]
        table = TermTable(self.recipe.analysis, spools[0].terms)
        for number, (spool, (name, _)) in enumerate(zip(spools, weights, strict=True)):
            spool.fill(corpus, name, table, context.for_part(number, parts).progress)
        lengths = [spool.lengths for spool in spools]
        norms, frequencies = self._norms(lengths, weights), np.zeros(len(table), np.int32)
        for spool in spools:
            own = spool.frequencies()
            frequencies[: len(own)] += own

        def term_pairs(block: int) -> Pairs:
            docs = blocks.documents_of_block(block)
            own = [norm[docs] for norm in norms]
            return self._shares([spool.block(block) for spool in spools], weights, own, len(table))

        source = BlockSource(
            blocks,
            frequencies,
            term_pairs,
            lambda block: [name for s in spools for name in s.block_files(block)],
        )
        progress = context.for_part(len(weights), parts).progress
        ptr = merged(
            files, "fields", source, lambda df: _field_weights(df, lengths), postings.LUCENE, progress
        )
        return index_in_files(files, ptr, (table.terms(),), order)

    def open(self, corpus: Corpus, context: Context) -> BM25Searcher:
        return BM25Searcher(self, corpus, load_index_of(corpus, folder_of(context), self.fields_read()))


def _field_weights(df: Int32, lengths: Sequence[NDArray[np.integer]]) -> tuple[Float32, Float32]:
    filled = np.zeros(len(lengths[0]), np.bool_)
    for length in lengths:
        filled |= length > 0
    return postings.lucene_idf(df, int(np.count_nonzero(filled))), np.ones(len(filled), np.float32)


def _by_field(b: object, fields: tuple[str, ...]) -> float | FieldNumbers:
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        ((_, number),) = _field_numbers(NAME, "b", [("every field", b)], 1)
        return number
    if not isinstance(b, (Mapping, tuple)):
        raise BadValue(
            f'{NAME}: b is {b!r}; expected a number from 0 to 1, or such as {{"title": 0.3, "text": 0.75}}'
        )
    numbers = _field_numbers(NAME, "b", list(b.items()) if isinstance(b, Mapping) else list(b), 1)
    if _names_of(numbers) != fields:
        raise BadValue(
            f"{NAME}: b names {', '.join(_names_of(numbers))}; expected each field: {', '.join(fields)}"
        )
    alike = {number for _, number in numbers}
    return numbers[0][1] if len(alike) == 1 else numbers
