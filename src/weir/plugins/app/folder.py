"""A results folder as pages read it, with a cache of computed values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from weir.api.charts import system_numbers
from weir.core.charts import SystemNumbers
from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.core.scores import Scores
from weir.datasets.load import Dataset
from weir.errors import StoreError, UnknownName, WeirError
from weir.experiment.comparing import MOST_COMPARED, compare_cells, comparison_cost
from weir.experiment.results import (
    ORDER,
    ResultCell,
    cell_collection,
    cell_notes,
    chosen_cells,
    current_cells,
    finished_cells,
    largest_k,
    missing_results,
    rankings_file,
    recorded_place,
    scored_measures,
    system_titles,
    without_results,
)
from weir.experiment.stage_store import INDEXES, index_stage
from weir.experiment.stages import SCORES, record_of
from weir.files.ranking_file import RankingFile
from weir.files.runs import read_run
from weir.plugins.app.judging.tasks import query_key
from weir.plugins.app.kept import Kept
from weir.stats.compare import Comparison
from weir.systems.composite import adapted_to, indexed, rankings
from weir.systems.expression import parse_system
from weir.systems.protocol import IN_MEMORY, Composite, Context, Retriever, Searcher

STAMP_SECONDS = 1.0
"""Seconds for which a folder counts as unchanged after a look at its files."""


@dataclass(frozen=True, eq=False)
class WholeRun:
    """Rankings in memory, for files that cannot be read query by query."""

    run: Run

    def ranking(self, query: str, k: int | None = None) -> tuple[tuple[str, float], ...]:
        """Return the first k (document, score) pairs of a query, all for None; () if it has no ranking."""
        return tuple((self.run.get(query) or {}).items())[:k]

    def top(self, k: int) -> Run:
        """Return the first k documents of every query."""
        return self.run.top(k)


@dataclass(frozen=True, eq=False)
class Results:
    """The results in a folder at one moment, with cached values."""

    cells: tuple[ResultCell, ...]
    """At least one; one for each dataset and system, of the largest depth and the current judgments."""
    remarks: tuple[str, ...]
    """Sentences on results left out."""
    kept: Kept
    """The cache; its keys contain file hashes, so entries stay valid if the folder changes."""

    @staticmethod
    def read(root: Path, kept: Kept) -> Results:
        """Return the results of current judgments and largest depth in a folder; raises FormatError if it has
        none."""
        current, outdated = current_cells(chosen_cells(finished_cells(root, unjudged=True)))
        cells, depths = largest_k(current)
        return Results(tuple(cells), (*outdated, *depths, *missing_results(root)), kept)

    @cached_property
    def numbers(self) -> SystemNumbers:
        """The systems' short names and colour numbers; the first bm25 system, else the first system, is the
        baseline."""
        names = list(dict.fromkeys(cell.label for cell in self.cells))
        first = next((name for name in names if name == "bm25" or name.startswith("bm25(")), names[0])
        return system_numbers(names, first, system_titles(self.cells))

    @cached_property
    def collections(self) -> dict[str, tuple[ResultCell, ...]]:
        """{dataset: its results, one a system}, in the order of the experiment."""
        names = dict.fromkeys(cell.dataset for cell in self.cells)
        return {name: tuple(cell for cell in self.cells if cell.dataset == name) for name in names}

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The names of all measures, in the order of the experiment."""
        return scored_measures(self.cells)

    def of(self, collection: str) -> tuple[ResultCell, ...]:
        """Return a dataset's results, one a system; raises UnknownName for an unknown dataset."""
        if collection not in self.collections:
            raise UnknownName("collection of these results", collection, self.collections)
        return self.collections[collection]

    def without(self, collection: str) -> tuple[str, ...]:
        """Return one sentence that names the systems without results on a dataset; () if there are none."""
        return without_results(self.cells, collection, self.numbers.label)

    def scores(self, cell: ResultCell) -> Scores:
        """Return the scores of a system on a dataset, by query."""
        return self.kept.value_of(("scores", scored_by(cell)), cell.values)

    def rankings(self, cell: ResultCell, stage: Path | None = None) -> RankingFile | WholeRun:
        """Return a result's rankings.

        stage: folder of a part of the system, whose rankings are returned instead.

        Raises StoreError for a file that is missing or has changed.
        """
        folder = cell.folder if stage is None else stage
        return self.kept.value_of(("rankings", folder), lambda: _rankings(folder, self._order(cell.dataset)))

    def _order(self, collection: str) -> Mapping[str, int]:
        first, dataset = self.of(collection)[0], self.dataset(collection)

        def query_places() -> Mapping[str, int]:
            names = self.scores(first).queries if first.rows else dataset.queries.ids if dataset else ()
            return {name: place for place, name in enumerate(names)}

        return self.kept.value_of(("order", scored_by(first)), query_places)

    def dataset(self, collection: str) -> Dataset | None:
        """Return a dataset; None if it is not on this machine or has changed since."""
        cell = self.of(collection)[0]
        key = recorded_place(cell), cell.split, cell.judgments
        return self.kept.value_of(("dataset", key), lambda: cell_collection(cell))

    def query_of_text(self, collection: str, text: str) -> str:
        """Return the identifier of the collection's first query with this text, ignoring case and blanks; ""
        if none is on this machine."""
        dataset = self.dataset(collection)
        if dataset is None or dataset.layout.queries is None:
            return ""
        queries = dataset.all_queries
        cell = self.of(collection)[0]

        def by_text() -> dict[str, str]:
            texts = [*zip(queries.text.tolist(), queries.ids.tolist(), strict=True)]
            return {query_key(text): name for text, name in reversed(texts)}  # of equal ones the first

        return self.kept.value_of(("texts", recorded_place(cell)), by_text).get(query_key(text), "")

    def readable(self, collection: str) -> bool:
        """Return True if a dataset's documents are on this machine."""
        dataset = self.dataset(collection)
        return dataset is not None and dataset.layout.documents is not None

    def comparison(self, collection: str, measure: str) -> tuple[Comparison | None] | None:
        """Return (comparison of a dataset's systems,); (None,) if impossible, None while it is being
        computed."""
        cells = [cell for cell in self.of(collection) if cell.mean(measure) is not None]
        key = measure, tuple(map(scored_by, cells))
        return self.kept.soon(("comparison", key), lambda: (_compared(cells, measure),))

    def notes(self, measure: str) -> tuple[str, ...]:
        """Return notes on the results and on their scores by a measure; "" leaves the scores out."""
        key = measure, tuple(map(scored_by, self.cells))
        measures = [measure] if measure else []
        return self.kept.value_of(("notes", key), lambda: tuple(map(str, cell_notes(self.cells, measures))))

    def searcher(self, cell: ResultCell) -> Searcher:
        """Return a result's system, ready to search; raises StoreError if its collection or a built index is
        missing."""
        return self.kept.value_of(("searcher", cell.folder), lambda: self._opened(cell))

    def _opened(self, cell: ResultCell) -> Searcher:
        dataset = self.dataset(cell.dataset)
        if dataset is None:
            raise StoreError(f"the documents of {cell.dataset} are not here as they were measured")
        system = adapted_to(parse_system(cell.system), dataset.name, dataset.instruction)
        searcher = _BuiltIndexes(cell.folder.parent, self.kept).index(system, dataset.corpus)
        if searcher.costs().repeatable:  # what is loaded once is loaded now
            rankings(searcher, dataset.queries.take(np.arange(1)), 1, system, context=Context(reuse=False))
        return searcher


def scored_by(cell: ResultCell) -> tuple[Path, ...]:
    """Return the paths of a result's score files."""
    return tuple(path for path, _ in cell.scored)


def _rankings(folder: Path, order: Mapping[str, int]) -> RankingFile | WholeRun:
    record = record_of(folder)
    path = rankings_file(folder, None)  # a changed size is refused below
    size = path.stat().st_size if path.exists() else None
    if record is None or path.name not in record.files or record.files[path.name].bytes != size:
        raise StoreError(f"{path}: not as it was written; the same weir run makes it again")
    return RankingFile(path, order, size) if path.suffix == ".trec" else WholeRun(read_run(path))


def _compared(cells: Sequence[ResultCell], measure: str) -> Comparison | None:
    try:
        baseline = None if comparison_cost(cells, [measure]) <= MOST_COMPARED else cells[0].label
        return compare_cells(cells, [measure], baseline)[0]
    except WeirError:  # of no system with this measure, of one, or of one query
        return None


@dataclass(frozen=True, eq=False)
class _BuiltIndexes:
    """The stored indexes of a collection's results, opened when needed, never built."""

    root: Path
    """The folder <results>/<collection>."""
    kept: Kept

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        if isinstance(part, Composite):
            return indexed(part, corpus, Context(shelf=self))
        stage = index_stage(part, corpus)
        found = stage.found(self.root / INDEXES)
        if found is None:
            raise StoreError(f"{self.root} holds no index of {part}")
        return self.kept.value_of(("index", found[0]), lambda: part.open(corpus, Context(found[0])))

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        return self.index(part, corpus, context)


@dataclass(frozen=True, eq=False)
class Folder:
    """A results folder; changed files are noticed within a second."""

    root: Path
    kept: Kept = field(default_factory=Kept)
    _last: dict[str, tuple[float, object, Results]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def results(self) -> Results:
        """Return the results, at most a second old; raises FormatError if there are none."""
        with self._lock:
            looked, stamp, last = self._last.get("", (0.0, None, None))
            now = time.monotonic()
            if last is None or now - looked > STAMP_SECONDS:
                found = _stamp(self.root)
                if last is None or found != stamp:
                    last = Results.read(self.root, self.kept)
                self._last[""] = now, found, last
            return last


def _stamp(root: Path) -> object:
    paths = [root / ORDER, *root.glob(f"*/*/{SCORES}")]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths if path.exists()}
