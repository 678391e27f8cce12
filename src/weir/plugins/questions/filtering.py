"""`weir.filters`: studies of filtered vector search."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.corpus import Queries
from weir.core.filters import parse_filter
from weir.core.run import Named, Run
from weir.core.strings import Float32, Float64, Ids, Int64
from weir.datasets.load import Dataset
from weir.errors import BadValue
from weir.experiment.experiment import Experiment
from weir.files.paths import path_of
from weir.files.text_files import Watch
from weir.measures.evaluate import score_run
from weir.measures.measure import direction
from weir.plugins.questions.filter_recall import (
    EFFORTS,
    FILTER_STUDIES,
    KINDS,
    UNFILTERED,
    Applied,
    FilteredSearch,
    FilterRules,
    FilterStudy,
    Mask,
    admission_order,
    exact_first,
    first_of,
    recall_of,
)
from weir.plugins.questions.system_stages import MemoryShelf
from weir.stats.score_rows import shallow_notes
from weir.systems.composite import adapted_to, rankings, renumbered
from weir.systems.dense_search import DenseRetriever
from weir.systems.encoded import with_text
from weir.systems.expression import parse_system
from weir.systems.protocol import Context, Retriever, Searcher, Shelf
from weir.systems.restricted import unrestricted
from weir.systems.vectors.approximate import FilteringIndex
from weir.systems.vectors.exact_search import VectorSource, query_dot_products

BLOCK_VECTORS = 1 << 14
"""Vectors that are compared with a query at once."""


@checked
def filters(
    dataset: str | Path | Dataset,
    *systems: object,
    rules: FilterRules | None = None,
    filter: Sequence[str] = (),
    exact: object = None,
    results: str | Path | None = None,
    progress: Watch | None = None,
) -> ResultSet[FilterStudy]:
    """Return the recall that filters cost each vector search, applied during or after it (`weir study filters`).

    dataset: a catalogue name, a folder, a golden set, hf:... or irds:...
    systems: such as 'dense("minilm", index="HNSW32")'. Braces list several.
    rules: weir.FilterRules.
    filter: conditions on documents' fields that hold for every query, such as 'lang == "en"', beside made
        filters and the queries' own. Candidates, exclusions and self-matches hold under each.
    exact: the dense(...) whose vectors decide the exact answer, by default the system's.
    results: a results folder, where indexes are read and kept, by default all stay in memory.
    progress: called with (stage, amount done, total).

    Raises BadValue for a system without vectors unless `exact` is given.
    """
    rules, watch = rules or FilterRules(), progress or (lambda stage, done, total: None)
    experiment = Experiment((dataset,), systems, k=rules.k)
    memory, found = MemoryShelf(), []
    for cell in experiment.cells(None if results is None else path_of(results), watch):
        shelf: Shelf = memory if results is None else cell.stages
        collection = cell.stages.dataset
        decisive = adapted_to(_exact_of(cell.adapted, exact), collection.name, collection.instruction)
        found.append(_studied(collection, cell.adapted, decisive, shelf, rules, filter, watch))
    return ResultSet(FILTER_STUDIES, tuple(found))


def _exact_of(system: Retriever, exact: object) -> DenseRetriever:
    given = parse_system(exact) if isinstance(exact, str) else exact or _vectors_searched(system)
    if not isinstance(given, DenseRetriever):
        raise BadValue(
            f"{given or system} has no vectors that decide the exact answer; expected "
            "`exact='dense(\"minilm\")'`, with the model that the system searches by"
        )
    return replace(given, nearest=None)


def _vectors_searched(system: Retriever) -> DenseRetriever | None:
    dense = system if isinstance(system, DenseRetriever) else getattr(system, "dense", None)
    return replace(dense, nearest=None) if isinstance(dense, DenseRetriever) else None


# ----------
# Asking: an index by itself, or any system.


@dataclass(frozen=True, eq=False)
class _Asker:
    ask: Callable[[int, int, int, Mask | None], tuple[Int64, float]]
    """(query number, depth, effort, filter) -> (documents, best first; vectors compared, NaN if unknown)."""
    efforts: tuple[int, ...] = (0,)
    during: bool = False
    """True if filters can be applied during the search."""
    together: dict[int, Float64] = field(default_factory=dict)
    """Milliseconds of queries by depth, of systems that are asked for the answers to all queries together."""


def _index_asker(near: FilteringIndex, vectors: Float32, rules: FilterRules) -> _Asker:
    usual, most = near.efforts()
    tried = rules.effort or [usual * times for times in EFFORTS]

    def ask(number: int, depth: int, effort: int, permitted: Mask | None) -> tuple[Int64, float]:
        return near.near_among(vectors[number], depth, effort, permitted)

    return _Asker(
        ask, tuple(dict.fromkeys(min(effort, most) for effort in (usual, *tried))), near.can_filter()
    )


def _any_asker(
    searcher: Searcher, system: Retriever, dataset: Dataset, queries: Queries, context: Context
) -> _Asker:
    answers: dict[int, list[Int64]] = {}
    milliseconds: dict[int, Float64] = {}

    def ask(number: int, depth: int, _: int, permitted: Mask | None) -> tuple[Int64, float]:
        if depth not in answers:  # of all queries together
            before = _service_times(searcher)
            found = rankings(searcher, queries, depth, system, dataset.name, context)
            after = _service_times(searcher)
            new = [after[way][len(before.get(way, ())) :] for way in after]
            milliseconds[depth] = np.concatenate([np.empty(0), *new])
            run = renumbered(found, dataset.corpus)
            answers[depth] = np.split(run.doc.astype(np.int64), run.ptr[1:-1])
        return answers[depth][number], np.nan

    return _Asker(ask, together=milliseconds)


def _service_times(searcher: Searcher) -> dict[tuple[int, int], list[float]]:
    services = enumerate(searcher.costs().services)  # each with requests in so many threads
    return {(n, at): list(times) for n, use in services for at, times in use.milliseconds.items()}


# ----------
# One system on one collection.


@dataclass(frozen=True, eq=False)
class _Vectors:
    rows: VectorSource
    queries: Float32

    def scores(self, vector: Float32) -> Float32:
        scores = np.empty(len(self.rows), np.float32)
        for start in range(0, len(scores), BLOCK_VECTORS):
            block = self.rows.block(start, min(start + BLOCK_VECTORS, len(scores)))
            scores[start : start + len(block)] = query_dot_products(block, vector)
        self.rows.release()
        return scores

    def of_one_length(self) -> bool:
        starts = range(0, len(self.rows), BLOCK_VECTORS)
        blocks = (self.rows.block(start, min(start + BLOCK_VECTORS, len(self.rows))) for start in starts)
        return all(np.allclose(np.linalg.norm(block, axis=1), 1, atol=1e-3) for block in blocks)

    def similar(self, document: int) -> Float32:
        return self.scores(self.rows.take(np.array([document]))[0])


@dataclass(frozen=True, eq=False)
class _Tally:
    numbers: list[int] = field(default_factory=list)
    """Of the queries."""
    exact: list[Int64] = field(default_factory=list)
    answers: dict[Applied, list[Int64]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[Applied, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    """As `FilteredSearch.of` takes them."""
    milliseconds: dict[Applied, list[float]] = field(default_factory=lambda: defaultdict(list))
    judged: list[Int64] = field(default_factory=list)
    """Rows of the judgments of permitted documents, of queries with a relevant one."""


def _prepared(
    dataset: Dataset,
    queries: Queries,
    system: Retriever,
    exact: DenseRetriever,
    shelf: Shelf,
    rules: FilterRules,
    context: Context,
) -> tuple[_Vectors, _Asker]:
    reference: Any = shelf.index(exact, dataset.corpus, context)
    vectors = _Vectors(
        reference.documents.stored, np.ascontiguousarray(reference.encoded(queries), np.float32)
    )
    searcher: Any = shelf.index(system, dataset.corpus, context)
    own = isinstance(system, DenseRetriever)
    near = None  # searched by its own vectors
    if _vectors_searched(system) == exact:
        near = searcher.documents.near if own else searcher
    asker = (
        _index_asker(near, vectors.queries, rules)
        if isinstance(near, FilteringIndex) and (own or near.can_filter())
        else _any_asker(searcher, system, dataset, unrestricted(queries), context)
    )
    distance = getattr(getattr(getattr(system, "settings", None), "vector", None), "distance", "inner")
    if distance != "inner" and not vectors.of_one_length():
        raise BadValue(
            f"{system} compares vectors whose lengths differ by {distance}, exact answers are by dot product; expected "
            "distance = inner, or an encoder with similarity = cosine"
        )
    if rules.effort and not any(asker.efforts):
        raise BadValue(
            f"`effort` applies to graphs and lists only, such as HNSW32 and IVF64,Flat; {system} has neither"
        )
    return vectors, asker


def _studied(
    dataset: Dataset,
    system: Retriever,
    exact: DenseRetriever,
    shelf: Shelf,
    rules: FilterRules,
    given: Sequence[str],
    watch: Watch,
) -> FilterStudy:
    context = Context(progress=lambda done, total: watch(f"{dataset.name}  {system}", done, total))
    queries, corpus, k = dataset.queries.take(with_text(dataset.queries)), dataset.corpus, rules.k
    if not len(queries):
        raise BadValue(f"{dataset.name} has no query with a text")
    fixed = {str(one): one.mask(corpus) for one in map(parse_filter, given)}
    if empty := [text for text, mask in fixed.items() if not mask.any()]:
        raise BadValue(f"no document of {dataset.name} fits the filter {empty[0]}")
    vectors, asker = _prepared(dataset, queries, system, exact, shelf, rules, context)
    own = isinstance(system, DenseRetriever)
    qrels, places = dataset.qrels, corpus.ids.tie_ranks
    judged, of = corpus.ids.codes(qrels.docs.strings)[qrels.doc], qrels.queries.codes(queries.ids.strings)
    tallies: dict[tuple[str, int], _Tally] = defaultdict(_Tally)
    for number in range(len(queries)):
        watch(f"{dataset.name}  {system} under filters", number, len(queries))
        scores = vectors.scores(vectors.queries[number])
        allowed = _allowed(number, queries, dataset)
        unfiltered = exact_first(scores, allowed, k, places)
        rows = np.arange(*(qrels.ptr[of[number] : of[number] + 2] if of[number] >= 0 else (0, 0)))
        rows = rows[judged[rows] >= 0]
        after = {
            ("after", effort, times): _timed(asker, number, min(k * times, len(corpus)), effort, None)
            for effort in asker.efforts
            for times in rules.overfetch
        }
        for group, fitting in _groups(number, scores, vectors, queries, fixed, rules):
            mask = fitting & allowed
            if not mask.any():
                continue
            tally, best = tallies[group], exact_first(scores, mask, k, places)
            tally.numbers.append(number)
            tally.exact.append(best)
            permitted = rows[mask[judged[rows]]]
            tally.judged.extend([permitted] if (qrels.grade[permitted] > 0).any() else [])
            during = {
                ("during", effort, 1): _timed(asker, number, k, effort, mask)
                for effort in asker.efforts
                if asker.during
            }
            for setting, (docs, compared, ms) in (during | after).items():
                answer = docs[mask[docs]]
                if own:  # dense(index=...) scores anew what the index finds
                    answer = answer[np.lexsort((places[answer], -scores[answer]))]
                tally.answers[setting].append(answer[:k])
                recall, short = recall_of(answer[:k], scores, best), len(answer) < len(best)
                tally.facts[setting].append((recall, mask.sum(), mask[unfiltered].mean(), short, compared))
                tally.milliseconds[setting].append(ms)
    searches = _searches(dataset, queries.ids, tallies, asker, rules)
    remarks = [f"exact: all vectors of {exact} compared in double, of equal scores any counts"]
    remarks += [note.text for note in shallow_notes(k, [rules.measure])]
    remarks += [] if asker.during else [f"{system} is asked without filters, which are applied after it"]
    return FilterStudy(
        dataset.name, str(system), len(corpus), len(queries), k, rules.target, rules.measure, rules.seed, str(exact),
        tuple(searches), tuple(remarks),
    )  # fmt: skip


def _searches(
    dataset: Dataset,
    ids: Ids,
    tallies: Mapping[tuple[str, int], _Tally],
    asker: _Asker,
    rules: FilterRules,
) -> list[FilteredSearch]:
    searches, documents = list[FilteredSearch](), len(dataset.corpus)
    for (name, _), tally in tallies.items():
        facts = {setting: np.array(rows, np.float64).T for setting, rows in tally.facts.items()}
        times = [
            asker.together.get(min(rules.k * setting[2], documents), np.array(ms))
            for setting, ms in tally.milliseconds.items()
        ]
        lost = _lost(dataset, ids, tally, rules)
        searches += FilteredSearch.of(name, facts, lost, times, documents)
    return searches


def _groups(
    number: int,
    scores: Float32,
    vectors: _Vectors,
    queries: Queries,
    fixed: Mapping[str, Mask],
    rules: FilterRules,
) -> Iterator[tuple[tuple[str, int], Mask]]:
    for kind in KINDS:
        order = admission_order(kind, scores, vectors.similar, np.random.default_rng((rules.seed, number)))
        for at, share in enumerate(rules.selectivity):
            if share < 1:
                yield (kind, at), first_of(order, share)
            elif kind == KINDS[0]:
                yield (UNFILTERED, at), first_of(order, share)
    yield from (((text, 0), mask) for text, mask in fixed.items())
    metadata = queries.metadata
    permitted = None if metadata is None else metadata.fitting()
    if (
        permitted is not None
        and metadata is not None
        and metadata.filter is not None
        and metadata.filter[number]
    ):
        mask = permitted.allow(np.full(len(scores), number), np.arange(len(scores)))
        yield ("own", max(0, sum(mask.mean() <= share for share in rules.selectivity) - 1)), mask


def _allowed(number: int, queries: Queries, dataset: Dataset) -> Mask:
    ids, allowed = dataset.corpus.ids, np.ones(len(dataset.corpus), np.bool_)
    for name, lists in [] if queries.metadata is None else queries.metadata.lists():  # candidates come first
        some = lists.take(np.array([number])).codes_in(ids)
        if name == "candidates" and len(some):
            allowed[:] = False
        allowed[some[some >= 0]] = name == "candidates"
    if dataset.self_match == "drop":
        some = ids.codes(queries.ids.strings.take(np.array([number])))
        allowed[some[some >= 0]] = False
    return allowed


def _timed(
    asker: _Asker, number: int, depth: int, effort: int, permitted: Mask | None
) -> tuple[Int64, float, float]:
    started = time.perf_counter()
    docs, compared = asker.ask(number, depth, effort, permitted)
    return docs, compared, 1000 * (time.perf_counter() - started)


def _lost(dataset: Dataset, ids: Ids, tally: _Tally, rules: FilterRules) -> Float64:
    if not tally.judged:
        return np.zeros((len(tally.answers), 0))
    kept = np.zeros(len(dataset.qrels.doc), np.bool_)
    kept[np.concatenate(tally.judged)] = True
    left, values = dataset.qrels.of_rows(kept), []
    for answers in (tally.exact, *tally.answers.values()):
        lengths = [len(docs) for docs in answers]
        query, doc = np.repeat(tally.numbers, lengths), np.concatenate(answers).astype(np.int32)
        order = np.concatenate([-np.arange(length, dtype=np.float64) for length in lengths])
        run = Run.from_columns(ids, dataset.corpus.ids, query.astype(np.int32), doc, order, Named("found"))
        values.append(score_run(left, run, rules.measure).values[0])
    return direction(rules.measure) * np.array([values[0] - of for of in values[1:]])
