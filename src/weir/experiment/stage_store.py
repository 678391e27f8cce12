"""Find a collection's stages on disk, or compute them once."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.datasets.load import Dataset
from weir.errors import BadValue, RankingWarning, WeirError, give_warning, warn_of_ranking
from weir.experiment.stages import (
    RECORD,
    Making,
    Record,
    Stage,
    Stopwatch,
    current_environment,
    record_of,
    setting_changes,
    slug,
    write_record,
)
from weir.files.atomic import sweep
from weir.files.integrity import Checksum, checksums_of
from weir.files.leases import clear_lock, locked
from weir.files.runs import read_run, read_run_against
from weir.files.text_files import Watch
from weir.files.write import write_run
from weir.registry import Registry, session_only, sessions
from weir.systems.composite import asked_depth, fields_of, folder_name, indexed, objects_in, rankings
from weir.systems.dense_search import DenseRetriever
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    ApproximateSearcher,
    Composite,
    Context,
    Costs,
    DocumentKeeper,
    Exported,
    Indexed,
    Installed,
    NestedSearcher,
    Retriever,
    Searcher,
    ShareEncoder,
)
from weir.systems.restricted import restricted_search
from weir.systems.warm import kernels_of, prepare

# ----------
# What a stage records besides rankings: warnings, times of single queries, losses, costs.


LATENCY_QUERIES, LATENCY_SECONDS = 100, 5.0
"""Most queries that are timed singly, and seconds after which timing stops."""
TIED_BEYOND_K = "tied beyond k"
"""Fact of a run: number of queries whose k-th score continues beyond k; absent if the search did not record it."""
IN_MEMORY_INDEXES = "indexes in memory"
"""Fact of a run: {key: documents and cost} of the indexes that it used and that no stage records."""
COMPARED_QUERIES = 100
"""Queries for which an approximate search is compared with the exact one."""


@contextmanager
def _ranking_warnings(told: set[str]) -> Iterator[list[str]]:
    texts, before = list[str](), set(told)  # warnings of a stage within this one are in `told` at the end
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always", RankingWarning)
        yield texts
    for warning in recorded:
        ranking, text = issubclass(warning.category, RankingWarning), str(warning.message)
        if not ranking:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif text not in before:  # such as of each batch of an encoder, on each collection
            give_warning(warning.message)
        if ranking:
            before.add(text)
            told.add(text)
            texts.extend([text] * (text not in texts))


CONSTANT_ROWS = 20
"""Fewest answers for which constant scores are warned about."""


def _warn_of_constant_scores(run: Run, depth: int) -> None:
    first, last = run.ptr[:-1], run.ptr[1:] - 1
    whole = depth > 1 and len(run.doc) >= CONSTANT_ROWS and (last - first + 1 == depth).all()
    if whole and (run.score[first] == run.score[last]).all():
        what = (
            f"all documents of each of {len(run):,} rankings have one score, and stand by their identifiers"
        )
        warn_of_ranking(f"{run.name}: {what}; an encoder may give all texts the same vector, or zeros")


@contextmanager
def silent() -> Iterator[None]:
    """Suppress RankingWarnings within the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        yield


def latencies(searcher: Searcher, queries: Queries, k: int) -> dict[str, float]:
    """Return {"p50", "p95", "p99", "mean": milliseconds, "queries": number} of single searches; {} without
    queries.

    Times up to LATENCY_QUERIES queries, evenly spread, until LATENCY_SECONDS, without stored results.
    """
    count = min(LATENCY_QUERIES, len(queries))
    milliseconds: list[float] = []
    begun = time.perf_counter()
    for q in np.linspace(0, len(queries) - 1, count).astype(np.int64):
        query = queries.take(np.array([q]))
        start = time.perf_counter()
        restricted_search(searcher, query, k, Context(reuse=False))
        milliseconds.append(1000 * (time.perf_counter() - start))
        if time.perf_counter() - begun > LATENCY_SECONDS:
            break
    if not milliseconds:
        return {}
    percentiles = {f"p{p}": float(np.percentile(milliseconds, p)) for p in (50, 95, 99)}
    return percentiles | {"mean": float(np.mean(milliseconds)), "queries": float(len(milliseconds))}


def _approximation_loss(searcher: Searcher, queries: Queries, k: int) -> dict[str, object]:
    some = queries.take(np.arange(min(COMPARED_QUERIES, len(queries))))
    if not isinstance(searcher, ApproximateSearcher) or len(some) == 0:
        return {}
    try:
        loss = searcher.loss(some, k)
    except BadValue:
        return {}
    share = {"share": loss.total, "by what is kept": loss.quantisation}
    return {"lost": {"queries": len(some), "k": k, **share}}


def _cost_facts(costs: Costs, index_bytes: int | None = None) -> dict[str, object]:
    if index_bytes is None:
        pairs = {"asked": costs.requested_pairs, "computed": costs.computed_pairs}
        services = [use.facts() for use in costs.services]
        reranked = {"candidates": costs.candidates, "unscored": costs.unscored}
        return (
            ({"scores": pairs} if costs.requested_pairs else {})
            | ({"reranked": reranked} if costs.candidates else {})
            | ({"services": services} if services else {})
            | ({} if costs.measured else {"measured": False})
        )
    facts: dict[str, object] = {"bytes": index_bytes + costs.external_bytes}
    facts |= {"reused": costs.reused_documents} if costs.reused_documents else {}
    return facts | ({"cached_queries": True} if costs.cached_queries else {})


# ----------
# Indexes and rankings of a collection, each made once and used by every system that needs it.
#
# <results>/<collection>/indexes/<system>-<key>/   an index, and stage.json
# <results>/<collection>/<system>-<key>/           rankings, and stage.json; scores stand beside them, see experiment.py


T = TypeVar("T")

INDEXES, VECTORS = "indexes", ".vectors"
Search: TypeAlias = Callable[[], tuple[Run, dict[str, Any], Making]]
"""Makes rankings; returns the run, the facts of its record, and the measurement."""
OPENED_INDEXES, HELD_RUNS = 3, 4
"""Most indexes and runs held in memory."""


class StageSharing(Protocol):
    """A store of stages (indexes, rankings) that machines share; methods raise StoreError if unreachable.

    root: local folder that holds the stage's folder.
    """

    def try_out(self) -> None:
        """Write, read and remove an object, to test access."""

    def fetch(self, stage: Stage, root: Path, watch: Watch) -> bool:
        """Download a stage and return True; False if it is missing or, with a note, damaged."""

    def has(self, stage: Stage, root: Path) -> bool:
        """Return True if the shared store has the stage."""

    def publish(self, stage: Stage, root: Path, watch: Watch) -> None:
        """Upload a complete stage, unless the store has it."""

    def tell(self, stage: Stage, root: Path) -> None:
        """Upload a stage's record without its files."""

    def withdraw(self, stage: Stage, root: Path) -> None:
        """Remove the records of a damaged stage from the store."""

    def lease(self, stage: Stage, root: Path, watch: Watch) -> AbstractContextManager[None]:
        """Return a context manager that waits for the exclusive right to compute a stage."""


STAGE_STORES = Registry[Callable[[str, Path], StageSharing]]("stage store", group="weir.stage_stores")
"""Makers of shared stages from an address and the results folder."""


@dataclass(frozen=True, eq=False)
class StageCache:
    """A collection's stages (indexes, rankings, scores), each read from disk or computed once; keeps the last
    used in memory.
    """

    root: Path
    """The folder <results>/<collection>."""
    store: Path
    """Folder of indexes and shared rankings; `root` unless the user names another."""
    dataset: Dataset
    watch: Watch
    bench: Stopwatch = field(default_factory=Stopwatch)
    opened: dict[str, Searcher] = field(default_factory=dict)
    """The last indexes used, for the systems that share them; `runs` likewise."""
    runs: dict[str, Run] = field(default_factory=dict)
    in_memory: dict[str, dict[str, object]] = field(default_factory=dict)
    """{key: documents and cost} of the indexes made in memory."""
    shared: StageSharing | None = None
    """The store that machines share."""
    depths: Mapping[str, int] = field(default_factory=dict)
    """From `depths_asked`."""
    told: set[str] = field(default_factory=set)
    """Warnings that were issued, shared by the collections of a grid, so that each is printed once."""

    def named(self, name: str) -> StageCache:
        """Return a copy whose progress messages begin with the dataset and `name`."""
        watch = self.watch

        def watch_cell(stage: str, done: int, total: int) -> None:
            watch(f"{self.dataset.name}  {name}  {stage}", done, total)

        return replace(self, watch=watch_cell)

    def release(self) -> None:
        self.opened.clear()
        self.runs.clear()

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        if isinstance(part, Composite):
            return indexed(part, corpus, replace(context, folder=None, shelf=self))
        stage = index_stage(part, corpus)
        name = f"{stage.key} {part}"
        if name not in self.opened:
            if session_only(stage.declared):  # without a version: in memory
                searcher = self._built(part, corpus, stage, None)
            else:
                root = self.store / INDEXES
                searcher = self._made_once(
                    stage,
                    root,
                    lambda: self._opened(part, corpus, stage),
                    lambda: self._built(part, corpus, stage, root / stage.folder_name),
                    None if isinstance(part, Installed) else self.shared,
                )
            _keep(self.opened, name, searcher, OPENED_INDEXES)
        if stage.key in self.in_memory:
            self.bench.used_in_memory(stage.key, self.in_memory[stage.key])
        stored = stage.found(self.store / INDEXES)
        if stored is not None:
            self.bench.used("index", str(stored[0]))
        return self.opened[name]

    def encoded(self, part: Retriever) -> bool:
        """Return True if the retriever's index is stored here, or its document vectors in the shared store."""
        stage = index_stage(part, self.dataset.corpus)
        if stage.found(self.store / INDEXES) is not None:
            return True
        return self.shared is not None and self.shared.has(_vectors_of(stage), self.store / VECTORS)

    def encode_share(self, part: Retriever, encode: ShareEncoder, share: tuple[int, int]) -> None:
        """Encode one share, (number from 0, number of shares), of the documents for the index of `part`,
        unless all are encoded.
        """
        if self.encoded(part):
            return
        number, of = share
        folder = self._shares(index_stage(part, self.dataset.corpus)) / f"{number:04}-of-{of:04}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        label = f"share {number + 1} of {of} of the documents"
        encode(self.dataset.corpus, share, folder, lambda done, total: self.watch(label, done, total))

    def _shares(self, stage: Stage) -> Path:
        return self.store / VECTORS / f"{_vectors_of(stage).folder_name}-shares"

    def note(self, text: str) -> None:
        """Show a note to the user."""
        self.watch(text, 0, 0)

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        return _CachedRankings(self, part, corpus)

    def run_stage(self, part: Retriever, k: int) -> Stage:
        """Return the description that identifies a system's stored rankings of all queries, self-matches
        included.
        """
        return Stage("run", str(part), {**self.asked_by(part), "k": k, "system": part.describe()})

    def asked_by(self, part: Retriever) -> dict[str, object]:
        """Return the documents, queries, restrictions and metadata that decide a system's rankings besides
        its settings.
        """
        asked = self.asked
        deep = asked_depth(part) if "restricted" in asked else {}
        return {**asked, **deep, **_metadata(part, self.dataset.corpus)}

    @property
    def asked(self) -> dict[str, str]:
        """Fingerprints of documents and queries, and restrictions, which decide any system's rankings."""
        declared = {"corpus": self.dataset.corpus.fingerprint, "queries": self.dataset.queries_fingerprint}
        metadata = self.dataset.queries.metadata
        if metadata is not None and (metadata.lists() or metadata.permitted is not None):
            declared["restricted"] = str(algorithm("restricted search"))
        if metadata is not None and "candidates" in dict(metadata.lists()):
            declared["candidates"] = str(algorithm("candidates"))
        return declared

    def read_or_search(self, part: Retriever, k: int) -> tuple[Path, Run]:
        """Return (folder, run) of a system's rankings, read if undamaged on disk, else searched and stored."""
        return self.cached_run(self.run_stage(part, k), lambda: self.searched(part, k), self.store)

    def cached_run(self, stage: Stage, search: Search, root: Path) -> tuple[Path, Run]:
        """Return (folder, run) of a stage, read if undamaged on disk, else computed by `search` and stored."""
        root = self.root if session_only(stage.declared) else root
        folder = self._made_once(
            stage,
            root,
            lambda: self._sound_run(stage),
            lambda: self._make_run(stage, search, root),
            None if session_only(stage.declared) else self.shared,
        )
        self.bench.used("run", str(folder))
        if stage.key not in self.runs:
            _keep(self.runs, stage.key, self.read(folder), HELD_RUNS)
        return folder, self.runs[stage.key]

    def _made_once(
        self,
        stage: Stage,
        root: Path,
        opened: Callable[[], T | None],
        made: Callable[[], T],
        shared: StageSharing | None,
    ) -> T:
        lock, vectors = root / f".{stage.folder_name}.lock", _vectors_of(stage)
        value = opened()
        if value is not None and shared is None:
            clear_lock(lock)
            return value
        with locked(lock):
            value = opened() if value is None else value  # another process may have made it meanwhile
            if shared is None:
                return made() if value is None else value
            if value is not None:
                self._publish(stage, root, value, shared)
                return value

            def fetched() -> T | None:
                if shared.fetch(stage, root, self.watch):
                    return opened()
                if stage.kind == "index" and shared.fetch(vectors, self.store / VECTORS, self.watch):
                    return made()  # of these vectors
                return None

            value = fetched()
            if value is None:
                with shared.lease(stage, root, self.watch):
                    value = fetched()  # what the machine that was waited for made
                    if value is None:
                        shared.withdraw(stage, root)
                        shared.withdraw(vectors, self.store / VECTORS)
                        value = made()
                        self._publish(stage, root, value, shared)
            return value

    def _publish(self, stage: Stage, root: Path, value: object, shared: StageSharing) -> None:
        if not isinstance(value, Exported):
            shared.publish(stage, root, self.watch)
            return
        vectors, place = _vectors_of(stage), self.store / VECTORS
        if shared.has(vectors, place):
            return
        folder = place / vectors.folder_name
        rmtree(folder, ignore_errors=True)
        if value.export(folder):
            record = Record(vectors.kind, vectors.name, vectors.declared, checksums_of(folder))
            write_record(folder / RECORD, record)
            shared.publish(vectors, place, self.watch)
            shared.tell(stage, root)
        else:
            shared.publish(stage, root, self.watch)
        rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            place.rmdir()

    def _sound_run(self, stage: Stage) -> Path | None:
        places = (self.sound(stage, root) for root in dict.fromkeys((self.root, self.store)))
        return next((place for place in places if place is not None), None)

    def _note_reason(self, stage: Stage, root: Path) -> None:
        for folder in root.glob(f"{slug(stage.name)}-*"):
            record = record_of(folder)
            if record is None or (record.kind, record.name) != (stage.kind, stage.name):
                continue
            changed = setting_changes(record.stage, stage)
            if changed and not {name.partition(".")[0] for name, *_ in changed} & {
                *self.asked,
                "metadata",
                "k",
                "self_match",
            }:
                name, before, now = changed[0]
                self.note(
                    f"{stage.kind} made again: {name} was {before or 'not there'}, is {now or 'not there'}"
                )
                return

    def sound(self, stage: Stage, root: Path) -> Path | None:
        """Return the folder of an undamaged stage below `root`; None if missing, damaged, or only its record
        is here.

        Deletes a damaged stage's record, with a note.
        """
        stored = stage.found(root)
        if stored is None:
            if (root / stage.folder_name / RECORD).exists():
                self.note(f"{stage.kind} of {stage.name} is damaged, making it again")
            return None
        folder, record = stored
        try:
            record.verify(folder)
        except WeirError as error:
            if self.shared is not None and not any((folder / name).exists() for name in record.files):
                return None  # a record alone: its files are in the store that machines share
            self.note(f"{stage.kind} of {stage.name} is damaged, making it again ({error})")
            (folder / RECORD).unlink(missing_ok=True)
            return None
        return folder

    def read(self, folder: Path) -> Run:
        path, dataset = run_file(folder), self.dataset
        if path.suffix == ".json" or dataset.undocumented:
            run = read_run(path)
            query = dataset.queries.ids.codes(run.queries.strings)[run.query_of_row()].astype(np.int32)
            if dataset.undocumented:
                return Run.from_columns(dataset.queries.ids, run.docs, query, run.doc, run.score)
            doc = dataset.corpus.ids.codes(run.docs.strings)[run.doc]
            return Run.from_columns(dataset.queries.ids, dataset.corpus.ids, query, doc, run.score)
        return read_run_against(path, dataset.queries.ids, dataset.corpus.ids)[0]

    def _opened(self, part: Retriever, corpus: Corpus, stage: Stage) -> Searcher | None:
        folder = self.sound(stage, self.store / INDEXES)
        if folder is None:
            return None
        try:
            return part.open(corpus, Context(folder))
        except WeirError as error:
            self.note(f"index of {stage.name} is damaged, building it again ({error})")
            (folder / RECORD).unlink(missing_ok=True)
            return None

    def _built(self, part: Retriever, corpus: Corpus, stage: Stage, folder: Path | None) -> Searcher:
        if folder is not None:
            sweep(folder)
            self._note_reason(stage, folder.parent)
            rmtree(folder, ignore_errors=True)  # damaged, or never finished: no system has to expect it
        label = "index" if corpus is self.dataset.corpus else "index of parts"
        vectors, shares = self.store / VECTORS / _vectors_of(stage).folder_name, self._shares(stage)
        elsewhere = [vectors] if (vectors / RECORD).exists() else sorted(shares.glob("[0-9]*"))
        with self.bench.making() as making:
            making.objects |= objects_in(part)
            self._prepare(part, corpus, making)
            with self.bench.timed():
                searcher = indexed(
                    part,
                    corpus,
                    Context(
                        folder,
                        lambda done, total: self.watch(label, done, total),
                        vectors=tuple(elsewhere),
                    ),
                )
        if folder is not None and vectors.parent.exists():
            for taken in (vectors, shares):
                rmtree(taken, ignore_errors=True)
            with suppress(OSError):
                vectors.parent.rmdir()
        if folder is None:
            if not (isinstance(part, DocumentKeeper) and part.keeps_documents()):
                self.in_memory[stage.key] = {"documents": len(corpus), **making.cost()}
            return searcher
        files = checksums_of(folder) if folder.exists() else {}
        facts: dict[str, object] = {"documents": len(corpus)}
        size = sum(checksum.bytes for checksum in files.values())
        record = Record(
            "index",
            stage.name,
            stage.declared,
            files,
            inputs_below(making.inputs, self.store),
            current_environment(stage, making.objects),
            making.cost(),
            facts | _cost_facts(searcher.costs(), size),
        )
        write_record(folder / RECORD, record)
        return searcher

    def _prepare(self, part: Retriever, corpus: Corpus, making: Making) -> None:
        making.prepared += prepare(kernels_of(part, len(corpus)), lambda line: self.watch(line, 0, 1))

    def searched(self, part: Retriever, k: int) -> tuple[Run, dict[str, Any], Making]:
        """Search all queries; return (run, facts for the record, time and memory).

        A system without a version is searched once, at the largest depth that the grid needs, then cut at k.
        """
        queries, corpus = self.dataset.queries, self.dataset.corpus
        with self.bench.making() as making:
            making.objects |= objects_in(part)
            with _ranking_warnings(self.told) as opening:  # such as of a file of rankings
                searcher = self.index(part, corpus)
            costs = searcher.costs()
            repeatable = costs.repeatable
            deepest = self.depths.get(folder_name(part), k) if self.depths and not repeatable else k
            if deepest > k:
                with self.bench.aside():
                    run = self.read_or_search(part, deepest)[1]
                with self.bench.timed():
                    cut = {"queries": len(queries), TIED_BEYOND_K: int(run.tied_beyond(k).sum())}
                    return run.top(k), cut, making
            self._prepare(part, corpus, making)
            context = Context(progress=lambda done, total: self.watch("score", done, total))
            nested = isinstance(searcher, NestedSearcher) and searcher.nested(queries, k)
            self.watch("search", 0, len(queries))
            if repeatable and costs.measured:
                with silent():  # what is loaded once is loaded now
                    one = queries.take(np.arange(min(1, len(queries))))
                    restricted_search(searcher, one, k, Context(reuse=False))
            with _ranking_warnings(self.told) as notes, self.bench.timed():
                run = rankings(searcher, queries, k + nested, part, self.dataset.name, context, int(nested))
                if isinstance(part, DenseRetriever):
                    _warn_of_constant_scores(run, min(k + nested, len(corpus)))
        goes_on = run.tied_beyond(k)
        run = run.top(k) if nested and (np.diff(run.ptr) > k).any() else run
        self.watch("search", len(queries), len(queries))
        single, failed = dict[str, float](), {}
        try:
            with silent():
                single = latencies(searcher, queries, k) if costs.timeable else {}
        except Exception as error:  # a user's object may answer all queries and not one
            if repeatable:
                raise
            failed = {"untimed": f"{type(error).__name__}: {error}"}
        warned = list(dict.fromkeys([*opening, *notes]))
        facts: dict[str, Any] = {"queries": len(queries), "notes": warned, "single_query_ms": single} | failed
        facts |= {TIED_BEYOND_K: int(goes_on.sum())} if nested else {}
        facts |= {IN_MEMORY_INDEXES: making.in_memory} if making.in_memory else {}
        return run, facts | _approximation_loss(searcher, queries, k) | _cost_facts(searcher.costs()), making

    def _make_run(self, stage: Stage, search: Search, root: Path) -> Path:
        folder, replaced = root / stage.folder_name, False
        if own := {*sessions(stage.declared)}:  # another process, or another object, left rankings of its own
            for other in root.glob(f"{slug(stage.name)}-*"):
                record = record_of(other)
                theirs = (
                    set() if record is None or record.name != stage.name else {*sessions(record.declared)}
                )
                if theirs and theirs != own:
                    rmtree(other, ignore_errors=True)
                    replaced = True
        else:
            self._note_reason(stage, root)
        for name in ("run.trec", "run.json", RECORD):
            sweep(folder / name)
        run, facts, making = search()
        if replaced:
            facts |= {"notes": [*facts.get("notes", ()), f"{stage.name}: {_REPLACED}"]}
        path = _write_rankings(run, folder)
        files, inputs = {path.name: Checksum.of(path)}, inputs_below(making.inputs, root)
        made = current_environment(stage, making.objects)
        record = Record("run", stage.name, stage.declared, files, inputs, made, making.cost(), facts)
        write_record(folder / RECORD, record)
        _keep(self.runs, stage.key, run, HELD_RUNS)
        return folder


_REPLACED = (
    "its rankings replaced earlier ones of this name, as no version says that its object is still the same; "
    "of an object with a version, as in weir.encoder(model, version='1'), they are kept until it changes"
)


@dataclass(frozen=True, eq=False)
class _CachedRankings:
    cache: StageCache
    part: Retriever
    corpus: Corpus

    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        if (
            context.reuse
            and queries.ids is self.cache.dataset.queries.ids
            and queries.metadata is self.cache.dataset.queries.metadata
            and self.corpus is self.cache.dataset.corpus
        ):
            with self.cache.bench.aside():
                return replace(self.cache.read_or_search(self.part, k)[1], name=str(self.part))
        return restricted_search(self.cache.index(self.part, self.corpus), queries, k, context)

    search_restricted = search

    def costs(self) -> Costs:
        costs = self.cache.index(self.part, self.corpus).costs()
        return Costs(repeatable=costs.repeatable, asked_again=costs.asked_again, measured=costs.measured)


def _keep(cached: dict[str, T], name: str, value: T, most: int) -> None:
    cached[name] = value
    if len(cached) > most:
        del cached[next(iter(cached))]


def depths_asked(systems: Iterable[Retriever], dataset: Dataset, k: int) -> dict[str, int]:
    """Return {folder name: largest depth that a grid needs} of systems without a version, which are searched
    once.
    """
    depths = dict[str, int]()

    def ask(system: Retriever, depth: int) -> None:
        if session_only(system.describe()):
            name = folder_name(system)
            depths[name] = max(depth, depths.get(name, 0))
            for part in system.components() if isinstance(system, Composite) else ():
                if part.takes == "run":
                    ask(part.system, part.depth(dataset.queries, depth, dataset.corpus))

    for system in systems:
        ask(system, k)
    return depths


def index_stage(part: Retriever, corpus: Corpus) -> Stage:
    """Return the description that identifies a system's index over a corpus; equal descriptions share an
    index.
    """
    whole = part.indexed_as() if isinstance(part, Indexed) else part
    about = {"corpus": corpus.fingerprint, **_metadata(whole, corpus), "system": whole.describe()}
    return Stage("index", str(whole), about)


def _vectors_of(stage: Stage) -> Stage:
    return Stage("vectors", stage.name, stage.declared)


def _metadata(part: Retriever, corpus: Corpus) -> dict[str, object]:
    read = corpus.metadata_digests(fields_of(part))
    return {"metadata": read} if read else {}


def inputs_below(used: Iterable[tuple[str, str]], root: Path) -> tuple[tuple[str, str], ...]:
    """Return the (kind, folder) pairs with folders relative to `root`."""
    return tuple((kind, Path(os.path.relpath(folder, root)).as_posix()) for kind, folder in used)


def run_file(folder: Path) -> Path:
    """Return the run file in a folder: run.json if it alone exists, else run.trec."""
    path, other = folder / "run.trec", folder / "run.json"
    return path if path.exists() or not other.exists() else other


def _write_rankings(run: Run, folder: Path) -> Path:
    for name in ("run.trec", "run.json"):
        (folder / name).unlink(missing_ok=True)
    try:
        write_run(run, folder / "run.trec")
    except BadValue:
        write_run(run, folder / "run.json")
    return run_file(folder)
