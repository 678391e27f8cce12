"""Why an engine and BM25, or two engines, rank differently, by the live index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from weir.api.result_set import ResultSet
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import change, count, score
from weir.core.run import Named, Run
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import ScoringRules
from weir.errors import BadValue
from weir.experiment.why import (
    SHOWN_QUERIES,
    Effect,
    Scoring,
    SettingDifference,
    defined_mean,
    differences,
    rescored,
    same_top,
    settings_table,
)
from weir.measures import Measure
from weir.plugins.servers.live_index import BEST_FIELDS_TIE, Json, LiveIndex, LiveIndexed, Words
from weir.systems.composite import adapted_to
from weir.systems.lexical.analyzer import Analyzer, analyzers
from weir.systems.lexical.bm25 import BM25
from weir.systems.protocol import Retriever

DEPTH = 100
"""Documents of a ranking, unless the measure reads more."""
MOST_QUERIES = 1000
"""Most queries that are analysed, and asked again after a change."""
CLOSED = 5e-5
"""A gap too small to show in four decimals."""
SAME_FACTOR = 1e-3
SHOWN_TERMS = 4
"""Most terms of a field shown in the score of a document."""
Settings: TypeAlias = tuple[tuple[str, str], ...]

# ----------
# The two sides: an index on a server, or BM25.


@dataclass(frozen=True, eq=False)
class _Side:
    """One of two compared systems."""

    name: str
    run: Run
    value: Float64
    """float64[judged queries]."""
    settings: Settings
    words: Mapping[tuple[str, ...], Callable[[str], Words]]
    """Analysis of a text by the fields that share its analyzer."""
    index: LiveIndex | None = None
    """None for BM25."""
    bm25: BM25 | None = None
    """None for an engine."""


@dataclass(frozen=True)
class _Evaluation:
    dataset: Dataset
    measure: Measure
    rules: ScoringRules

    @cached_property
    def qrels(self) -> Qrels:
        return self.rules.counted(self.dataset.qrels)

    @cached_property
    def judged_queries(self) -> Queries:
        judged = np.flatnonzero(self.qrels.queries.codes(self.dataset.queries.ids.strings) >= 0)
        return self.dataset.queries.take(judged[:MOST_QUERIES])

    @property
    def k(self) -> int:
        return max(DEPTH, self.measure.cutoff or 0)

    def values_of_run(self, run: Run) -> Float64:
        """Return a run's value of each judged query, float64; NaN for queries after the first 1,000."""
        values = rescored(self.rules.ranked(run), self.qrels, Scoring(self.measure))
        return np.where(self.judged_queries.ids.codes(self.qrels.queries.strings) >= 0, values, np.nan)

    def mean_of_run(self, run: Run) -> float:
        return defined_mean(self.values_of_run(run), self.measure)


def _side(system: Retriever, evaluation: _Evaluation) -> _Side:
    dataset = evaluation.dataset
    adapted = adapted_to(system, dataset.name, dataset.instruction)
    if isinstance(adapted, BM25):
        recipe = adapted.recipe
        run = adapted.index(dataset.corpus).search(evaluation.judged_queries, evaluation.k)
        words = {recipe.fields: _analysed_by(recipe.analysis)}
        return _Side(
            str(system), run, evaluation.values_of_run(run), _bm25_settings(adapted), words, bm25=adapted
        )
    if not isinstance(adapted, LiveIndexed):
        raise BadValue(f"{system} is neither an engine that explains its scores nor bm25(...)")
    run = adapted.index(dataset.corpus).search(evaluation.judged_queries, evaluation.k)
    index = adapted.live_index(dataset.corpus)
    by_analyzer: dict[str, list[str]] = {}
    for name, _ in index.shape.fields:
        if analyzer := index.analyzer(name, search=True):
            by_analyzer.setdefault(analyzer, []).append(name)
    words = {tuple(names): partial(index.analysed, analyzer) for analyzer, names in by_analyzer.items()}
    return _Side(
        str(system),
        run,
        evaluation.values_of_run(run),
        _engine_settings(index, evaluation),
        words,
        index=index,
    )


def _analysed_by(analyzer: Analyzer) -> Callable[[str], Words]:
    def words(text: str) -> Words:
        surface = analyzer.words(text)
        return tuple(zip(surface, analyzer.normalise(surface), strict=True))

    return words


def _bm25_settings(system: BM25) -> Settings:
    recipe = system.recipe
    tie = recipe.tie_breaker
    adding = "added" if tie is None else f"the best field, and {tie:g} of the others"
    return (
        ("fields", _weighted(system.weights)),
        ("tie_breaker", adding if len(recipe.fields) > 1 else "one field"),
        ("analyzer", recipe.analyzer),
        ("k1, b", f"{recipe.k1:g}, {recipe.b:g}"),
        ("factor", "none"),
    )


def _engine_settings(index: LiveIndex, evaluation: _Evaluation) -> Settings:
    shape = index.shape
    names = [name for name, _ in shape.fields]
    constants, factors = _constants(index, evaluation), dict[str, str]()
    for name, weight in shape.fields:
        one = constants.get(name, {})
        factor = one.get("boost", weight) / weight
        k1 = one.get("k1", math.nan)
        factors[name] = "none" if abs(factor - 1) < SAME_FACTOR else f"{factor:.4g} times"
        if abs(factor - k1 - 1) < SAME_FACTOR:
            factors[name] = f"k1 + 1 = {factor:g} times"
    numbers = {
        name: f"{one['k1']:g}, {one['b']:g}" for name, one in constants.items() if {"k1", "b"} <= one.keys()
    }
    similarities = {name: index.similarity(name) for name in names}
    analysed = {
        which: _by_field({n: index.analyzer_text(index.analyzer(n, search) or "keyword") for n in names})
        for which, search in (("analyzer", False), ("search_analyzer", True))
    }
    if analysed["analyzer"] == analysed["search_analyzer"]:
        del analysed["search_analyzer"]
    entries = [
        ("fields", _weighted(shape.fields) if names else "not known"),
        ("tie_breaker", shape.adding),
        *analysed.items(),
        ("k1, b", _by_field(numbers) or "not known"),
        ("factor", _by_field({name: factors[name] for name in numbers}) or "not known"),
        *((f"query.{name}", value) for name, value in shape.options if name != "analyzer"),
    ]
    if not {*similarities.values()} <= {"BM25", "default"}:
        entries.append(("similarity of scores", _by_field(similarities)))
    if index.statistics:
        entries.append(("statistics", index.statistics))
    documents = {int(one["N"]) for one in constants.values() if "N" in one}
    if documents and max(documents) not in counts_of_documents(evaluation.dataset.corpus):
        entries.append(("documents", count(max(documents))))
    return tuple(entries)


def counts_of_documents(corpus: Corpus) -> set[int]:
    """Return the numbers of documents that Lucene may count in a field of this collection: all, and the documents whose
    title, text, or either is not empty."""
    texts = corpus.text.lengths() > 0
    titles = np.zeros(len(corpus), np.bool_) if corpus.title is None else corpus.title.lengths() > 0
    return {len(corpus), *(int(np.count_nonzero(one)) for one in (texts, titles, texts | titles))}


def _constants(index: LiveIndex, evaluation: _Evaluation) -> dict[str, dict[str, float]]:
    constants: dict[str, dict[str, float]] = {}
    for text in evaluation.judged_queries.text.tolist()[:SHOWN_QUERIES]:
        body = index.body(text, 1)
        for document, _ in index.hits(body)[:1]:
            explanation = index.explained(body, document)
            for name, numbers in {} if explanation is None else explanation.constants.items():
                constants.setdefault(name, dict(numbers))
        if constants.keys() >= dict(index.shape.fields).keys():
            break
    return constants


def _both(first: Settings, second: Settings) -> tuple[Settings, Settings]:
    names = dict.fromkeys(name for name, _ in (*first, *second))
    one, other = dict(first), dict(second)
    return tuple((n, one.get(n, "-")) for n in names), tuple((n, other.get(n, "-")) for n in names)


def _weighted(fields: Sequence[tuple[str, float]]) -> str:
    return ", ".join(name if weight == 1 else f"{name}^{weight:g}" for name, weight in fields)


def _by_field(values: Mapping[str, str]) -> str:
    if len(set(values.values())) <= 1:
        return next(iter(values.values()), "")
    fields: dict[str, list[str]] = {}
    for name, value in values.items():
        fields.setdefault(value, []).append(name)
    return "; ".join(f"{', '.join(names)}: {value}" for value, names in fields.items())


# ----------
# Words that become other terms.


@dataclass(frozen=True)
class _TermDifference:
    """A word of queries that two systems turn into different terms; "" for no term."""

    word: str
    first: str
    second: str
    fields: str
    """Fields of the first system; "" if all share an analyzer."""
    queries: int
    """Number of queries with the word."""


def _other_terms(first: Words, second: Words) -> list[tuple[str, str, str]]:
    sides = [{word.casefold(): term for word, term in words} for words in (first, second)]
    return [
        (word, one, other)
        for word in dict.fromkeys([*sides[0], *sides[1]])
        if (one := sides[0].get(word, "")) != (other := sides[1].get(word, ""))
    ]


@dataclass(frozen=True, eq=False)
class _AnalysedQueries:
    """Words of each query that two systems turn into different terms, and Weir's analyzer nearest to an engine's."""

    by_query: tuple[tuple[tuple[str, str, str, str], ...], ...]
    """For each query (word, first term, second term, fields) of words with different terms."""
    nearest: str = ""
    """Weir's analyzer with the engine's terms for most queries; "" for two engines or several analyzers."""
    nearest_misses: int = 0
    """Queries for which its terms are different."""

    @property
    def different_queries(self) -> int:
        return sum(map(bool, self.by_query))

    @property
    def terms(self) -> tuple[_TermDifference, ...]:
        """The differences, most frequent first."""
        counts = Counter(one for words in self.by_query for one in set(words))
        return tuple(
            _TermDifference(word, first, second, fields, n)
            for (word, first, second, fields), n in sorted(
                counts.items(), key=lambda item: (-item[1], item[0])
            )
        )


def _analysed(first: _Side, second: _Side, queries: Queries) -> _AnalysedQueries:
    texts = queries.text.tolist()
    analysed = [
        {fields: [words(text) for text in texts] for fields, words in side.words.items()}
        for side in (first, second)
    ]
    by_query: list[tuple[tuple[str, str, str, str], ...]] = []
    for number in range(len(texts)):
        rows = []
        for fields, words in analysed[0].items():
            beside = next((f for f in analysed[1] if set(f) & set(fields)), next(iter(analysed[1]), None))
            if beside is not None:
                label = ", ".join(fields) if len(analysed[0]) > 1 else ""
                rows += [(*row, label) for row in _other_terms(words[number], analysed[1][beside][number])]
        by_query.append(tuple(rows))
    engine = analysed[0] if second.bm25 is not None else analysed[1]
    if (first.bm25 is None) == (second.bm25 is None) or len(engine) != 1:
        return _AnalysedQueries(tuple(by_query))
    [words_of_queries] = engine.values()
    terms = [[term for _, term in words if term] for words in words_of_queries]
    misses = {}
    for name in analyzers:
        analyzer = analyzers.get(name)
        misses[name] = sum(analyzer.tokens(text) != own for text, own in zip(texts, terms, strict=True))
    # On Latin letters, analyzers that cut other scripts into pairs equal the analyzer of words.
    nearest = min(misses, key=lambda name: (misses[name], analyzers.get(name).cut is not None))
    return _AnalysedQueries(tuple(by_query), nearest, misses[nearest])


# ----------
# Changes, each made alone: of a search, which the live index answers again; of BM25, towards the index.


def _searched_again(index: LiveIndex, evaluation: _Evaluation, changed: Mapping[str, Json]) -> Run:
    queries, corpus = evaluation.judged_queries, evaluation.dataset.corpus
    numbers: list[int] = []
    names: list[str] = []
    scores: list[float] = []
    for number, text in enumerate(queries.text.tolist()):
        for document, value in index.hits(index.changed(index.body(text, evaluation.k), changed)):
            numbers.append(number)
            names.append(document)
            scores.append(value)
    code = corpus.ids.codes(names).astype(np.int32)
    there = code >= 0
    columns = (np.array(numbers, np.int32)[there], code[there], np.array(scores, np.float64)[there])
    return Run.from_columns(queries.ids, corpus.ids, *columns, Named("asked again"))


def _nearer(
    system: BM25, index: LiveIndex, analysed: _AnalysedQueries, settings: Mapping[str, str], corpus: Corpus
) -> list[tuple[str, BM25]]:
    recipe, shape = system.recipe, index.shape
    own = {"k1": recipe.k1, "b": recipe.b, "analyzer": recipe.analyzer}
    changes: list[tuple[str, dict[str, object]]] = []
    numbers = settings.get("k1, b", "").split(", ")
    if (
        len(numbers) == 2
        and ":" not in settings["k1, b"]
        and settings["k1, b"] != f"{recipe.k1:g}, {recipe.b:g}"
    ):
        changes.append(
            (f"k1 = {numbers[0]}, b = {numbers[1]}", {"k1": float(numbers[0]), "b": float(numbers[1])})
        )
    if analysed.nearest and analysed.nearest != recipe.analyzer and analysed.different_queries:
        changes.append((f"analyzer {analysed.nearest}", {"analyzer": analysed.nearest}))
    known = set(corpus.field_names)
    preset = shape.preset
    if {name for name, _ in shape.fields} <= known and (
        tuple(shape.fields) != system.weights or recipe.tie_breaker is None
    ):
        adding = (
            "added" if preset == "lucene-multifield" else f"the best, and {BEST_FIELDS_TIE:g} of the others"
        )
        changes.append(
            (f"fields {_weighted(shape.fields)}: {adding}", {"preset": preset, "fields": dict(shape.fields)})
        )
    together = {key: value for _, one in changes for key, value in one.items()}

    def changed_system(changed: Mapping[str, object]) -> BM25:
        if "preset" not in changed:
            return replace(system, **changed)  # type: ignore[arg-type]  # settings of BM25
        return BM25(**{**own, **changed})  # type: ignore[arg-type]  # settings of BM25

    alone = [(text, changed_system(one)) for text, one in changes]
    return [*alone, ("all of these", changed_system(together))] if len(alone) > 1 else alone


# ----------
# The queries that differ most, and the document that moved.


@dataclass(frozen=True)
class _QueryDifference:
    """A query with different values in two systems, and its relevant document that moved most."""

    query: str
    text: str
    first: float
    second: float
    words: tuple[tuple[str, str, str, str], ...]
    """(word, first term, second term, fields) of words with different terms."""
    document: str = ""
    ranks: tuple[int | None, int | None] = (None, None)
    """The document's rank in both; None if it is not returned."""
    parts: str = ""
    """The engine's score of the document, by fields and terms."""


def _differing(
    first: _Side, second: _Side, evaluation: _Evaluation, analysed: _AnalysedQueries
) -> Iterator[_QueryDifference]:
    qrels, queries = evaluation.qrels, evaluation.judged_queries
    grades = qrels.to_dict()
    gap = np.nan_to_num(np.abs(second.value - first.value))
    at = queries.ids.codes(qrels.queries.strings)
    places = [_ranks(side.run) for side in (first, second)]
    for judged in np.argsort(-gap, kind="stable")[:SHOWN_QUERIES].tolist():
        if gap[judged] == 0:
            return
        number, name = int(at[judged]), qrels.queries[judged]
        relevant = [doc for doc, grade in grades[name].items() if grade > 0]
        ranks = {doc: tuple(place.get((name, doc)) for place in places) for doc in relevant}
        moved = max(
            relevant, key=lambda doc: abs(np.diff([1 / r if r else 0.0 for r in ranks[doc]])[0]), default=""
        )
        text = queries.text.tolist()[number]
        words = analysed.by_query[number]
        values = float(first.value[judged]), float(second.value[judged])
        if not moved:
            yield _QueryDifference(name, text, *values, words)
            continue
        one, other = (
            "" if side.index is None else _parts(side.index, text, evaluation.k, moved)
            for side in (first, second)
        )
        parts = f"first: {one}; second: {other}" if one and other else one or other
        before, after = ranks[moved]
        yield _QueryDifference(name, text, *values, words, moved, (before, after), parts)


def _ranks(run: Run) -> dict[tuple[str, str], int]:
    return {(query, doc): rank for query, docs in run.to_dict().items() for rank, doc in enumerate(docs, 1)}


def _parts(index: LiveIndex, text: str, k: int, document: str) -> str:
    explanation = index.explained(index.body(text, k), document)
    if explanation is None:
        return ""
    by_field: dict[str, list[tuple[str, float]]] = {}
    for name, term, value in explanation.terms:
        by_field.setdefault(name, []).append((term, value))
    parts = []
    for name, terms in by_field.items():
        largest = sorted(terms, key=lambda one: -one[1])[:SHOWN_TERMS]
        more = f", {len(terms) - SHOWN_TERMS} more" if len(terms) > SHOWN_TERMS else ""
        total = sum(value for _, value in terms)
        parts.append(
            f"{name} {total:.2f} ({', '.join(f'{term} {value:.2f}' for term, value in largest)}{more})"
        )
    ending = f", {explanation.counting}" if explanation.counting and len(parts) > 1 else ""
    return f"{explanation.score:.2f} from {' and '.join(parts)}{ending}"


@dataclass(frozen=True)
class EngineWhy:
    """Why two systems, at least one a search engine, have different means."""

    dataset: str
    measure: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    asked: int
    """Number of queries asked."""
    settings: tuple[SettingDifference, ...]
    effects: tuple[Effect, ...]
    """Changes that were searched again; `kind` says on which side."""
    terms: tuple[_TermDifference, ...]
    analysed: int
    """Number of queries with a word in `terms`."""
    nearest: str
    """Weir's analyzer nearest to the engine's; "" if none was looked for."""
    nearest_misses: int
    """Queries for which its terms are different."""
    queries: tuple[_QueryDifference, ...]
    """Queries that differ most."""
    same_top: int
    """Of `shared` queries, those whose first ten documents are the same in the same order."""
    shared: int
    """Queries that both systems answer."""

    @property
    def gap(self) -> float:
        """The second mean minus the first."""
        return self.second_mean - self.first_mean


def _explain_engine(first: Retriever, second: Retriever, dataset: Dataset, measure: Measure) -> EngineWhy:
    if not (isinstance(first, LiveIndexed) or isinstance(second, LiveIndexed)):
        raise BadValue(
            f"neither {first} nor {second} is an engine that explains its scores; weir run both, then "
            "weir why with the folders of their results"
        )
    evaluation = _Evaluation(dataset, measure, ScoringRules.of(dataset))
    one, other = _side(first, evaluation), _side(second, evaluation)
    analysed = _analysed(one, other, evaluation.judged_queries)
    same, shared = same_top(one.run, other.run)
    settings = differences(*_both(one.settings, other.settings))
    if not analysed.different_queries:  # their names may differ, their terms do not
        settings = tuple(d for d in settings if d.setting not in ("analyzer", "search_analyzer"))
    return EngineWhy(
        dataset.name,
        str(measure),
        one.name,
        other.name,
        defined_mean(one.value, measure),
        defined_mean(other.value, measure),
        len(evaluation.judged_queries),
        settings,
        tuple(_effects(one, other, evaluation, analysed)),
        analysed.terms,
        analysed.different_queries,
        analysed.nearest,
        analysed.nearest_misses,
        tuple(_differing(one, other, evaluation, analysed)),
        same,
        shared,
    )


def _effects(
    first: _Side, second: _Side, evaluation: _Evaluation, analysed: _AnalysedQueries
) -> list[Effect]:
    before = defined_mean(first.value, evaluation.measure), defined_mean(second.value, evaluation.measure)
    sides = (first, second)

    def effect(kind: str, text: str, after: tuple[float, float]) -> Effect:
        gap, left = before[1] - before[0], after[1] - after[0]
        explains = (gap - left) / gap if abs(gap) > CLOSED else math.nan
        return Effect(kind, text, *after, left, explains, abs(left) < CLOSED)

    effects: list[Effect] = []
    tied: dict[int, tuple[float, str]] = {}
    for place, side in enumerate(sides):
        if side.index is None:
            continue
        for changed in side.index.changes():
            value = evaluation.mean_of_run(_searched_again(side.index, evaluation, changed.entries))
            if changed.as_bm25:
                tied[place] = value, changed.text.partition(",")[0]
            after = (value, before[1]) if place == 0 else (before[0], value)
            effects.append(effect("first" if place == 0 else "second", changed.text, after))
    for place, (side, other) in enumerate((sides, sides[::-1])):
        if side.bm25 is None or other.index is None:
            continue
        corpus, value = evaluation.dataset.corpus, math.nan
        nearer = _nearer(side.bm25, other.index, analysed, dict(other.settings), corpus)
        for text, system in nearer:
            value = evaluation.mean_of_run(
                system.index(corpus).search(evaluation.judged_queries, evaluation.k)
            )
            after = (value, before[1]) if place == 0 else (before[0], value)
            effects.append(effect("first" if place == 0 else "second", f"{text}: {system}", after))
        if nearer and 1 - place in tied:
            theirs, text = tied[1 - place]
            after = (value, theirs) if place == 0 else (theirs, value)
            effects.append(effect("both", f"{text}, and {nearer[-1][1]}", after))
    return effects


# ----------
# Tables.


def _engine_why_tables(results: Sequence[EngineWhy]) -> tuple[Table, ...]:
    tables = []
    for why in results:
        tables.append(
            sentences(
                f"{why.measure} on {why.dataset}, {count(why.asked)} queries: {score(why.first_mean)} {why.first}, "
                f"{score(why.second_mean)} {why.second}: gap {change(why.gap)}"
            )
        )
        tables.append(settings_table(why.settings))
        if why.effects:
            lines = [["searched again, each change alone", "first", "second", "gap left", "explains"]]
            for e in why.effects:
                lines.append(
                    [f"{e.kind}: {e.change}", score(e.first), score(e.second), change(e.gap), e.in_words]
                )
            tables.append(table_of(lines, right=4))
        if both := [t for t in why.terms if t.first and t.second][:SHOWN_QUERIES]:
            lines = [["words of queries with other terms", "first", "second", "queries"]]
            for t in both:
                word = f"{t.word} ({t.fields})" if t.fields else t.word
                lines.append([word, t.first, t.second, count(t.queries)])
            tables.append(table_of(lines, right=1))
        if why.queries:
            lines = [["query", "first", "second", "relevant document", "its rank: first", "second", "score"]]
            for q in why.queries:
                ranks = ("-" if rank is None else str(rank) for rank in q.ranks)
                lines.append([q.query, score(q.first), score(q.second), q.document, *ranks, q.parts])
            tables.append(table_of(lines))
        tables.append(sentences(*_below(why)))
    return tuple(tables)


ENGINE_WHYS = ResultKind("why-engine", EngineWhy, _engine_why_tables, parts="queries")


def _below(why: EngineWhy) -> Iterator[str]:
    closing = [e for e in why.effects if e.closes]
    if abs(why.gap) < CLOSED:
        yield "no gap: the same number"
    elif closing:
        yield f"explained: {closing[0].kind}: with {closing[0].change}, the gap closes"
    elif why.effects:
        best = min(why.effects, key=lambda e: abs(e.gap))
        yield f"not explained; {best.kind}: {best.change} leaves {change(best.gap)}"
    if why.analysed:
        yield f"other terms: {count(why.analysed)} of {count(why.asked)} queries, {count(len(why.terms))} words"
    else:
        yield f"the same terms in all {count(why.asked)} queries"
    for side, lacking in (("first", "second"), ("second", "first")):
        words = list(dict.fromkeys(t.word for t in why.terms if getattr(t, side) and not getattr(t, lacking)))
        if words:
            more = f", {count(len(words) - SHOWN_QUERIES)} more" if len(words) > SHOWN_QUERIES else ""
            yield f"words that the {lacking} drops or cuts otherwise: {', '.join(words[:SHOWN_QUERIES])}{more}"
    if why.nearest:
        misses = f"in all but {count(why.nearest_misses)} queries" if why.nearest_misses else "in every query"
        yield f"the engine's terms are those of Weir's {why.nearest} {misses}"
    yield (
        f"rankings: {count(why.same_top)} of {count(why.shared)} queries that both answer begin with the same "
        "ten documents"
    )


def engine_explanation(
    first: Retriever, second: Retriever, dataset: Dataset, measure: Measure
) -> ResultSet[EngineWhy]:
    """Return why a live search engine and another system have different means, as a single result.

    Raises BadValue if neither is a live engine.
    """
    return ResultSet(ENGINE_WHYS, (_explain_engine(first, second, dataset, measure),))
