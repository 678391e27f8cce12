"""The stages of a composed system, each with the ranking after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from weir.api.given import all_rankings
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists, parse_filter
from weir.core.qrels import Qrels
from weir.core.roles import judged_run
from weir.core.rounding import counted, part_of
from weir.core.run import Named, Run
from weir.core.scores import Note
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue
from weir.experiment.experiment import Experiment
from weir.experiment.stage_store import silent
from weir.files.frames import qrels_from, refuse_mismatched, run_from
from weir.files.paths import path_of
from weir.measures.evaluate import distinct_names
from weir.plugins.questions.funnel import FUNNELS, Funnel, FunnelRules, StageRanking, funnel_of, judged_rows
from weir.plugins.questions.spans import GoldSpans, read_spans
from weir.systems.compose import Filtered, Pipeline, narrowed
from weir.systems.composite import folder_name, indexed, rankings, renumbered
from weir.systems.fused import Fused
from weir.systems.fusion.fuse import Pool, fused
from weir.systems.lexical.passages import Chunked
from weir.systems.protocol import ANSWERS, IN_MEMORY, Context, Costs, Retriever, Searcher, Shelf
from weir.systems.rerank.reranking import (
    rerank_depths,
    rerank_room,
    reranked_rows,
    rows_of_run,
)
from weir.systems.restricted import restricted_search

# ----------
# Rankings of parts, each searched once.


Asking: TypeAlias = Callable[[Retriever, Queries, int], Run]
"""Returns the k best documents of each query by a part of a system."""


@runtime_checkable
class Staged(Protocol):
    """A system that can answer from its earlier stages, too."""

    def earlier_stages(self) -> tuple[tuple[str, Retriever], ...]:
        """Return (name, system) of each stage before the last, in order."""


@dataclass(frozen=True, eq=False)
class MemoryShelf:
    """Indexes and rankings of a system's parts in memory, each computed once."""

    searchers: dict[str, Searcher] = field(default_factory=dict)
    runs: dict[tuple[str, int, int], tuple[Queries, Run]] = field(default_factory=dict)

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        name = f"{id(corpus)} {folder_name(part)}"
        if name not in self.searchers:
            own = replace(context, folder=None, shelf=self)
            self.searchers[name] = indexed(part, corpus, own)
        return self.searchers[name]

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        return _Remembering(self, folder_name(part), self.index(part, corpus, context))


@dataclass(frozen=True, eq=False)
class _Remembering:
    shelf: MemoryShelf
    name: str
    searcher: Searcher

    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        key = self.name, id(queries), k
        if key not in self.shelf.runs:  # the queries are held, so that no others get their id
            self.shelf.runs[key] = queries, restricted_search(self.searcher, queries, k, context)
        return self.shelf.runs[key][1]

    search_restricted = search

    def costs(self) -> Costs:
        return self.searcher.costs()


# ----------
# From a system to its stages.


@dataclass(frozen=True, eq=False)
class _Walk:
    corpus: Corpus
    qrels: Qrels
    ask: Asking
    look: Asking
    """Like `ask`, but at least as deep, to find the losses of a cut."""
    spans: GoldSpans | None = None

    def stages(self, system: Retriever, queries: Queries, k: int) -> tuple[StageRanking, ...]:
        if isinstance(system, Filtered):
            fitting = parse_filter(system.filter).mask(self.corpus)
            permitted = narrowed(queries, self.corpus, fitting)
            stage = StageRanking(f"filter {system.filter}", "filter", self.judged.allowed(permitted))
            if not isinstance(system.system, COMPOSED):  # the filtered system is one that may be kept
                return (stage, StageRanking(str(system.system), "search", self.look(system, queries, k)))
            return (stage, *self.stages(system.system, permitted, k))
        if isinstance(system, Fused):
            return (self._fusion(system, queries, k),)
        if isinstance(system, Pipeline):
            return self._reranked(system, queries, k)
        if isinstance(system, Chunked) and self.spans is not None:
            whole = self.judged.without(self.spans.cut_by(system, self.corpus, self.judged.queries))
            chunker = StageRanking(f"passages of {system.words} words", "chunker", whole)
            return (chunker, *self._searched(system, queries, k))
        return self._searched(system, queries, k)

    @property
    def judged(self) -> Run:
        qrels = self.qrels
        return Run.from_columns(
            qrels.queries,
            qrels.docs,
            qrels.query_of_row(),
            qrels.doc,
            np.zeros(len(qrels.doc)),
            Named("judged"),
        )

    def _searched(self, system: Retriever, queries: Queries, k: int) -> tuple[StageRanking, ...]:
        before = system.earlier_stages() if isinstance(system, Staged) else ()
        runs = [(name, self.look(one, queries, k)) for name, one in (*before, (str(system), system))]
        return tuple(
            StageRanking(name, "rerank" if n else "search", run) for n, (name, run) in enumerate(runs)
        )

    def _fusion(self, system: Fused, queries: Queries, k: int) -> StageRanking:
        depth = system.part_depth(k)
        runs = {name: self.ask(part, queries, depth) for name, part in system.distinct.items()}
        branches = [
            _with_cut(self.stages(part, queries, depth), runs[name], depth)
            for name, part in system.distinct.items()
        ]
        pool = Pool.of([runs[folder_name(part)] for part in system.parts])
        whole = renumbered(fused(pool, system.fusion), self.corpus)
        return StageRanking(f"{system.fusion} of {len(system.parts)}", "fusion", whole, tuple(branches))

    def _reranked(self, system: Pipeline, queries: Queries, k: int) -> tuple[StageRanking, ...]:
        room = rerank_room(system, queries, k, self.corpus)
        first = self.ask(system.first, queries, room)
        scored = reranked_rows(system, first, queries, self.corpus)
        # Scored documents stand first, so that others matter only where fewer are scored than answered.
        count = np.maximum(np.bincount(first.query_of_row()[scored], minlength=len(first)), k)
        after = self.ask(system, queries, room)
        after = rows_of_run(after, np.flatnonzero(after.ranks() <= count[after.query_of_row()]))
        reached = first.among(DocumentLists(after.docs, after.ptr, after.doc))
        # The query's own document is scored besides; it is not counted here either.
        depth = max(min(rerank_depths(system, queries).max(initial=0), count.max(initial=0)), k)
        stages = _with_cut(self.stages(system.first, queries, room), reached, int(depth))
        return (*stages, StageRanking(str(system.reranker), "rerank", after))


COMPOSED = (Filtered, Fused, Pipeline, Chunked, Staged)
"""Systems of several stages."""


def _with_cut(
    stages: tuple[StageRanking, ...], run: Run, depth: int, always: bool = False
) -> tuple[StageRanking, ...]:
    if not always and len(run.doc) >= len(stages[-1].run.doc):
        return stages
    return (*stages, StageRanking(f"first {depth:,}", "cut", run))


def _may_be_ranked(dataset: Dataset, judged: Run) -> tuple[StageRanking, ...]:
    stages, allowed = list[StageRanking](), judged
    there = np.flatnonzero(dataset.corpus.ids.codes(judged.docs.strings)[judged.doc] >= 0)
    for name, left in (
        ("documents of the collection", rows_of_run(judged, there)),
        ("documents that the queries permit", judged.allowed(dataset.queries)),
        (
            "documents that are not the query",
            judged.without_self() if dataset.self_match == "drop" else judged,
        ),
    ):
        if len(left.doc) < len(judged.doc):
            allowed = allowed.among(DocumentLists(left.docs, left.ptr, left.doc))
            stages.append(StageRanking(name, "documents", allowed))
    return tuple(stages)


def stages_on(
    dataset: Dataset, system: Retriever, k: int, ask: Asking, look: Asking, spans: GoldSpans | None = None
) -> tuple[StageRanking, ...]:
    """Return a system's stages on a collection, first to last; the last is the cut at k.

    ask, look: return rankings of the system's parts; `look` goes at least as deep, to see what a cut loses.
    """
    walk = _Walk(dataset.corpus, dataset.qrels, ask, look, spans)
    drops = dataset.self_match == "drop"
    whole = ask(system, dataset.queries, k + drops)
    stages = _with_cut(walk.stages(system, dataset.queries, k + drops), whole, k, always=True)
    if drops:
        stages = tuple(map(_without_self, stages))
    last = replace(stages[-1], run=stages[-1].run.top(k))
    return (*_may_be_ranked(dataset, walk.judged), *stages[:-1], last)


def _without_self(stage: StageRanking) -> StageRanking:
    branches = tuple(tuple(map(_without_self, branch)) for branch in stage.branches)
    return replace(stage, run=stage.run.without_self(), branches=branches)


# ----------
# The functions of Python.


@checked
def funnel(
    dataset: str | Path | Dataset,
    system: object,
    rules: FunnelRules | None = None,
    spans: str | Path | None = None,
    results: str | Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[Funnel]:
    """Return at which stages a system loses relevant documents (`weir study funnel`).

    dataset: a catalogue name, a folder, a golden set, hf:... or irds:...
    system: such as 'rrf(bm25, dense("minilm")) >> cross("minilm")', with braces for several systems.
    rules: weir.FunnelRules.
    spans: gold passages, lines of JSON with query (its identifier or text), document and either text or start
        and end in characters. A document whose passages a chunker cuts in two is lost there.
    results: a results folder, where the parts' indexes and rankings are read and stored, by default in
        memory.
    progress: called with (stage, amount done, total).

    Raises BadValue for a collection without judgments and rules out of range.
    """
    rules = rules or FunnelRules()
    watch = progress or (lambda stage, done, total: None)
    experiment = Experiment((dataset,), (system,), k=rules.k)
    found, notes = [], dict[Note, None]()
    memory = MemoryShelf()
    for cell in experiment.cells(None if results is None else path_of(results), watch):
        collection, shelf = cell.stages.dataset, memory if results is None else cell.stages
        if collection.unjudged:
            raise BadValue(
                f"{collection.name} has no judgments; a funnel follows documents that are relevant"
            )
        given = (
            None if spans is None else read_spans(path_of(spans), collection.corpus, collection.all_queries)
        )
        ask = _asking(shelf, collection, watch)
        look = looking(ask, min(rules.depth, len(collection.corpus)))
        stages = stages_on(collection, cell.adapted, rules.k, ask, look, given)
        made = funnel_of(stages, collection.qrels, rules, (collection.corpus, collection.queries))
        found.append(replace(made, dataset=collection.name, system=str(cell.system)))
        notes |= dict.fromkeys(ScoringRules(dataset=collection).dangling_notes(collection.all_qrels))
    return ResultSet(FUNNELS, tuple(found), tuple(notes))


def _asking(shelf: Shelf, dataset: Dataset, watch: Callable[[str, int, int], None]) -> Asking:
    def ask(system: Retriever, queries: Queries, k: int) -> Run:
        context = Context(progress=lambda done, total: watch(f"{dataset.name}  {system}", done, total))
        searcher = shelf.answers(system, dataset.corpus, context)
        run = rankings(searcher, queries, k, system, dataset.name, context)
        return renumbered(run, dataset.corpus)

    return ask


def looking(ask: Asking, depth: int) -> Asking:
    """Return a function that searches like `ask`, but at least `depth` documents deep and without warnings."""

    def look(system: Retriever, queries: Queries, k: int) -> Run:
        with silent():
            return ask(system, queries, max(depth, k))

    return look


@checked
def funnel_of_rankings(
    qrels: object,
    *rankings: object,
    rules: FunnelRules | None = None,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[Funnel]:
    """Return at which stages a pipeline loses relevant documents, by each stage's ranking (`weir study
    funnel`).

    qrels: judgments, or a collection.
    rankings: first to last, as `weir.evaluate` takes runs; each stage gets the ranking before it.
    rules: weir.FunnelRules.
    collection: the rankings' collection, by name or path. Its rules hold, and its texts are shown.

    Raises BadValue without rankings and for rankings of other queries.
    """
    rules = rules or FunnelRules()
    judgments, collection = judged_by(qrels, collection)
    given = list(all_rankings(rankings, collection))
    for one in given:
        refuse_mismatched(judgments, one)
    scoring = ScoringRules.of(collection)
    runs = [scoring.ranked(run_from(one)) for one in given]
    long = [str(one) if isinstance(one, (str, Path)) else f"ranking {n}" for n, one in enumerate(given, 1)]
    names = distinct_names([run.name for run in runs], long)
    every = qrels_from(judgments)
    counting = scoring.counted(every)
    unanswered = list[Note]()
    for name, run in zip(names, runs, strict=True):
        answered = int(np.count_nonzero(run.queries.codes(counting.queries.strings) >= 0))
        if not answered:
            raise BadValue(f"{name} answers none of the {len(counting):,} judged queries")
        if answered < len(counting):
            answers = part_of(answered, len(counting), "judged queries", "is", "are")
            unanswered.append(
                Note(f"{name}: {answers} answered; all relevant documents of the others count as lost there")
            )
        judged_run(run, counting, f"{name}: ")
    stages = tuple(
        StageRanking(name, "rerank" if n else "search", run)
        for n, (name, run) in enumerate(zip(names, runs, strict=True))
    )
    if stages:
        stages = _with_cut(stages, runs[-1].top(rules.k), rules.k, True)
    dataset = scoring.dataset
    documented = dataset is not None and dataset.layout.documents is not None
    texts = (dataset.corpus if dataset is not None and documented else None, scoring.queries)
    made = funnel_of(stages, counting, rules, texts)
    name = "" if dataset is None else dataset.name
    found = [judged_rows(run, counting) >= 0 for run in runs]
    added = [int(np.count_nonzero(new & ~old)) for old, new in pairwise(found)]
    notes = [
        Note(
            f"{new} returns {counted(count, 'judged document')} that {old} before it does not, as no stage of one "
            "pipeline does; such documents count as left before it"
        )
        for old, new, count in zip(names, names[1:], added, strict=False)
        if count
    ]
    return ResultSet(
        FUNNELS,
        (replace(made, dataset=name, system=" > ".join(names)),),
        (*scoring.notes, *unanswered, *notes, *scoring.dangling_notes(every)),
    )
