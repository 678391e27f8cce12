"""Grids of datasets x systems x measures, and how they are run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from weir.algorithms import algorithm
from weir.argument_types import checked_fields
from weir.core.judged import Judged
from weir.core.run import Run
from weir.core.scores import Row
from weir.datasets import catalogue
from weir.datasets.load import Dataset, judged_or_not, load_group, without_documents
from weir.datasets.names import catalogue_name
from weir.datasets.scoring_rules import ScoringRules
from weir.errors import (
    BadValue,
    FormatError,
    LossWarning,
    StoreError,
    UnknownName,
    WeirError,
    give_warning,
    require,
    warn_of_ranking,
)
from weir.experiment.results import (
    GridOrder,
    ResultCell,
    cell_of,
    each_result_once,
    keep_order,
    rows_with_groups,
    split_mark,
    take_back_order,
)
from weir.experiment.stage_store import (
    STAGE_STORES,
    StageCache,
    depths_asked,
    inputs_below,
    run_file,
    silent,
)
from weir.experiment.stages import (
    RECORD,
    SCORES,
    Making,
    Record,
    Stage,
    current_environment,
    measure_number,
    outcome,
    read_record,
    record_of,
    records_in,
    slug,
    stored_rows,
    write_record,
)
from weir.files.atomic import atomic_file, make_folder, refuse_ways_out, sweep, writable
from weir.files.integrity import Checksum
from weir.files.leases import clear_lock, locked
from weir.files.paths import is_address, path_of
from weir.files.runs import join_run_file
from weir.files.score_files import write_scores
from weir.files.text_files import Watch, read_toml
from weir.kernels.jit import check_available
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, parse_measure, scores_of
from weir.measures.evaluate import warn_without_relevant
from weir.registry import Registry
from weir.stats.resampling import LEVEL, RESAMPLES, SEED
from weir.stats.score_rows import cut_depth, own_counts, result_rows, uncalibrated
from weir.systems import SYSTEMS
from weir.systems.compose import FunctionSystem
from weir.systems.composite import (
    adapted_to,
    indexed,
    objects_in,
    one_session,
    parts_of,
    rankings,
    titled,
)
from weir.systems.expression import parse_systems
from weir.systems.expression import system as system_of
from weir.systems.own_copies import is_shared
from weir.systems.protocol import Composite, DocumentKeeper, Fetched, Retriever
from weir.systems.stored_run import StoredRun

# ----------
# A cell of the grid, a system on a dataset: its rankings are a stage, and so is each set of scores beside them.
#
# <results>/<collection>/<system>-<key>/
#     run.trec               the rankings in trec order at full precision (run.json where an id has a blank)
#     stage.json             what was declared for them, what made them, what they took
#     scores-<key>.jsonl     one value for each measure and query
#     scores-<key>.json      what was declared for the scores, what made them, the rows of a table;
#                            none, and no values, of a collection that nobody judged


@dataclass(frozen=True, eq=False)
class Cell:
    """A system on a dataset, with at most k documents for each query."""

    stages: StageCache
    system: Retriever
    """As the user named it, which tables show."""
    k: int

    @cached_property
    def adapted(self) -> Retriever:
        """The system with the collection's instruction and settings."""
        return adapted_to(self.system, self.stages.dataset.name, self.stages.dataset.instruction)

    @cached_property
    def stage(self) -> Stage:
        """The description (kind, name, settings) that identifies the stored rankings."""
        declared: dict[str, Any] = {
            **self.stages.asked_by(self.adapted),
            "k": self.k,
            "system": self.adapted.describe(),
        }
        if self.stages.dataset.self_match == "drop":
            declared["self_match"] = "drop"
        return Stage("run", str(self.system), declared)

    def scores_stage(self, measures: tuple[Measure, ...]) -> Stage:
        """Return the description that identifies stored scores by these measures."""
        declared = {
            "run": self.stage.key,
            "qrels": self.stages.dataset.qrels_fingerprint,
            "split": self._split,
            "measures": {str(m): measure_number(m) for m in measures},
            "interval": {
                "method": "percentile bootstrap",
                "level": LEVEL,
                "resamples": RESAMPLES,
                "seed": SEED,
                "algorithm": algorithm("bootstrap interval"),
            },
        }
        return Stage("scores", str(self.system), declared)

    @property
    def _split(self) -> str:
        return f"{self.stages.dataset.name}:{self.stages.dataset.split}"

    def standing_name(self) -> str:
        """Return the results folder's name of these rankings, as of a copied run file, else the system's own."""
        stored = self.stage.found(self.stages.root)
        scored = [] if stored is None else [record for _, record in records_in(stored[0], SCORES)]
        names = {
            str(record.made.get("when")): record.name
            for record in scored
            if f"{record.facts.get('dataset')}:{record.facts.get('split')}" == self._split
        }
        return names[max(names)] if names else str(self.system)

    def finished(self, measures: tuple[Measure, ...]) -> tuple[Path, list[Row]] | None:
        """Return (folder, rows of means); None if a ranking or score is missing or outdated."""
        stored = self.stage.found(self.stages.root)
        if stored is None or not stored[1].is_whole(stored[0]):
            return None
        rows, names = self._known(stored[0]), [str(m) for m in self._computed(measures)]
        if rows is None or not rows.keys() >= {*names}:
            return None
        return stored[0], [rows[name] for name in names]

    def complete(self, measures: tuple[Measure, ...], wait: bool = True) -> tuple[Path, list[Row]] | None:
        """Compute missing rankings and scores under a lock, delete outdated scores; return (folder, rows of
        means).

        wait: False returns None at once if another process computes the cell.
        """
        lock = self.stages.root / f".{self.stage.folder_name}.cell.lock"
        run_lock = self.stages.root / f".{self.stage.folder_name}.lock"
        cell = self.finished(measures)
        if cell is not None:
            for stale in (lock, run_lock):
                clear_lock(stale)  # a process that was killed between its last file and letting go leaves it
            return cell
        with locked(lock, wait) as locked_here:
            if not locked_here:
                return None
            cell = self.finished(measures)  # by the process that was waited for
            if cell is None:
                folder, judged = self._judged()
                for path in folder.glob(SCORES + "l"):
                    if not path.with_suffix(".json").exists():
                        path.unlink()
                for path in sorted(folder.glob(SCORES)):
                    record = record_of(folder, path.name)
                    own = record is not None and path.stem == f"scores-{record.stage.key}"
                    if record is None or not own or record.declared.get("run") != self.stage.key:
                        self._drop_scores(path, path.name)
                rows = self._known(folder)
                missing = tuple(m for m in self._computed(measures) if str(m) not in (rows or {}))
                if missing or rows is None:
                    self._score(folder, judged, missing)
                clear_lock(run_lock)
                cell = self.finished(measures)
        assert cell is not None  # it was just written
        return cell

    def _computed(self, measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
        return () if self.stages.dataset.unjudged else measures

    def _known(self, folder: Path) -> dict[str, Row] | None:
        current, rows = self.scores_stage(()).declared, None
        for path, record in records_in(folder, SCORES):
            declared = record.declared
            of = f"{record.facts.get('dataset')}:{record.facts.get('split')}"  # another split may be judged alike
            if of != self._split or any(declared.get(n) != current[n] for n in ("run", "qrels", "interval")):
                continue
            try:
                record.verify(folder)
            except WeirError as error:
                self._drop_scores(path, str(error))
                continue
            rows = {} if rows is None else rows
            for row in stored_rows(record):
                if declared["measures"].get(row.measure) == measure_number(parse_measure(row.measure)):
                    rows[row.measure] = row
        return rows

    def _drop_scores(self, path: Path, reason: str) -> None:
        self.stages.note(f"scores are damaged, scoring again ({reason})")
        for damaged in (path, path.with_suffix(".jsonl")):
            damaged.unlink(missing_ok=True)

    def _judged(self) -> tuple[Path, Judged]:
        stages, stage = self.stages, self.stage
        stored = stages.sound(stage, stages.root)
        if stored is not None and stage.key not in stages.runs:
            return stored, join_run_file(run_file(stored), stages.dataset.qrels)

        def without_self() -> tuple[Run, dict[str, Any], Making]:
            with stages.bench.making() as making:
                making.objects |= objects_in(self.adapted)
                _, run = stages.read_or_search(self.adapted, self.k + 1)
                with stages.bench.timed():
                    run = run.without_self().top(self.k)
            return run, {"queries": len(stages.dataset.queries)}, making

        if stages.dataset.self_match == "drop":
            folder, run = stages.cached_run(stage, without_self, stages.root)
        else:
            folder, run = stages.cached_run(
                stage, lambda: stages.searched(self.adapted, self.k), stages.store
            )
        if (
            folder.parent != stages.root
        ):  # shared: copied to the results, as scores stand beside their rankings
            shared, folder = folder, stages.root / folder.name
            record = read_record(shared / RECORD)
            with atomic_file(folder / run_file(shared).name) as copy:
                shutil.copyfile(run_file(shared), copy)
            inputs = {(kind, str(stages.store / name)): None for kind, name in record.inputs}
            write_record(folder / RECORD, replace(record, inputs=inputs_below(inputs, stages.root)))
        return folder, Judged.of(run, stages.dataset.qrels)

    def _cut(self, judged: Judged) -> int | None:
        dataset, cut = self.stages.dataset, cut_depth(judged.retrieved)
        metadata = dataset.queries.metadata
        rules = metadata is not None and (dict(metadata.lists()) or metadata.filter is not None)
        if cut is None or rules or dataset.self_match == "drop":  # which may shorten rankings too
            return None
        return cut if cut < min(self.k, len(dataset.corpus) or self.k) else None

    def _score(self, folder: Path, judged: Judged, measures: tuple[Measure, ...]) -> None:
        dataset, stage, name = self.stages.dataset, self.scores_stage(measures), self.standing_name()
        path = folder / f"scores-{stage.key}.jsonl"
        for file in (path.name, f"scores-{stage.key}.json"):
            sweep(folder / file)
        rows: list[Row] = []
        warn_without_relevant(judged)
        files, figures = dict[str, Checksum](), dict[str, object](queries=0)
        with self.stages.bench.making() as making, self.stages.bench.timed():
            if measures:
                scores = replace(scores_of(judged, measures), labels=uncalibrated(dataset.qrels))
                title = titled(self.system) if name == str(self.system) else ""
                rows = [replace(r, title=title) for r in result_rows(scores, dataset.name, name)]
        if measures:
            write_scores(scores, path)
            files, figures = {path.name: Checksum.of(path)}, outcome(scores)
            if (cut := self._cut(judged)) is not None:
                figures["cut"] = cut
            figures["query_marks"] = " ".join(dataset.query_marks)
            figures["without_relevant"] = judged.without_relevant
            if dataset.layout.self_match != "keep":
                figures["own"] = own_counts(judged)
        facts = {
            "dataset": dataset.name,
            "split": dataset.split,
            "collection": _place(dataset),
            **({} if dataset.folder else {"started_in": str(Path.cwd())}),
            "fingerprint": dataset.fingerprint,
            "self_match": dataset.self_match,
            "k": self.k,
            "documents": len(dataset.corpus) or None,
            "grades": {f"{grade:g}": n for grade, n in dataset.qrels.grade_counts().items()},
            **figures,
            "rows": [row.to_dict() for row in rows],
        }
        inputs = (("run", folder.name),)
        made = current_environment(stage, {})
        record = Record("scores", name, stage.declared, files, inputs, made, making.cost(), facts)
        write_record(path.with_suffix(".json"), record)


def _place(dataset: Dataset) -> str:
    return dataset.entry.name if dataset.entry else dataset.source or str(dataset.layout.root.resolve())


# ----------
# The grid.


DEPTH = 1000


@dataclass(frozen=True)
class Share:
    """The part of a grid that one of several processes computes first; raises BadValue unless `number` is
    from 1 to `of`.
    """

    number: int
    """From 1 to `of`."""
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise BadValue(
                f"a share of {self}; expected two whole numbers such as 3/8, the first from 1 to the second"
            )

    @staticmethod
    def parse(text: str) -> Share:
        """Return the share in a text such as "3/8"; raises BadValue for other texts."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal()):
            raise BadValue(f"a share of {text!r}; expected two whole numbers such as 3/8")
        return Share(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def order(self, cells: int) -> list[int]:
        """Return the positions of all cells in the order to compute them: from the share's on, then the
        earlier.
        """
        start = cells * (self.number - 1) // self.of
        return [*range(start, cells), *range(start)]


@dataclass(frozen=True)
class Capacity:
    """Numbers of a cluster's machines, and of cells (a system on a dataset) that they compute at once."""

    machines: int
    cells: int


class Cluster(Protocol):
    """Machines that compute a grid together, in a shared results folder."""

    def capacity(self) -> Capacity:
        """Return the current size; raises BadValue if the cluster cannot be reached or is empty."""

    def complete(self, experiment: Experiment, at: Path, watch: Watch) -> None:
        """Compute an experiment's unfinished cells in the folder `at`; raises a failed cell's WeirError."""


CLUSTERS: Registry[Callable[[str], Cluster]] = Registry("cluster")
"""Makers of clusters from an address, by the name before its colon."""


def cluster_at(address: str) -> Cluster:
    """Return the cluster at an address such as ray or ray://host:10001; raises UnknownName for an
    unregistered scheme.
    """
    return CLUSTERS.get(address.partition(":")[0])(address)


def _silent(stage: str, done: int, total: int) -> None: ...


def distinct_datasets(loaded: Iterable[Dataset]) -> list[Dataset]:
    """Return the datasets, each split once; raises BadValue for two of one name, except splits in memory."""
    distinct: dict[tuple[str, str], Dataset] = {}
    for dataset in loaded:
        distinct.setdefault((dataset.name, dataset.split), dataset)
        for other in distinct.values():
            parts = other.folder and dataset.folder and other.split != dataset.split
            if other.name != dataset.name or other.layout == dataset.layout or parts:
                continue
            raise BadValue(
                f"two different datasets are named '{dataset.name}'; rename one of the folders, or give a Dataset "
                "another name"
            )
    return list(distinct.values())


def split_names(datasets: Sequence[Dataset]) -> list[str]:
    """Return each dataset's name, followed by its split, as in scifact:dev, if several splits have the name."""
    splits = Counter(dataset.name for dataset in datasets)
    return [one.name + f":{one.split}" * (splits[one.name] > 1) for one in datasets]


@checked_fields
@dataclass(frozen=True)
class Experiment:
    """A grid: every system answers the queries of every dataset, and every measure scores the answers."""

    datasets: tuple[str | Path | Dataset, ...]
    """A catalogue name, a group, a folder, a golden set, hf:... or irds:..., the split after a colon if it is not the
    usual one, as in scifact:train.
    """
    systems: tuple[object, ...]
    """A system such as 'bm25(k1=1.2, b=0.75)', or a grid such as 'bm25(k1={0.9, 1.2})'. In Python also a function or an
    object of one's own (see weir.system).
    """
    measures: tuple[str | Measure, ...] = DEFAULT_MEASURES
    """A measure such as nDCG@10."""
    k: int = DEPTH
    """Documents returned for each query, at most."""
    stages: str | Path | None = None
    """Where other grids too find indexes and rankings: a folder, or s3://bucket/prefix; by default the results folder.
    """
    drop_self: bool = False
    """Leave out documents that are the query itself (ArguAna, Quora), also if the collection does not say so."""

    def __post_init__(self) -> None:
        _refuse_exchanged_arguments(self.datasets, self.systems)
        # Each adaptation of an object without a version is a stage of its own: it is adapted once.
        adapted = tuple(one if isinstance(one, str) else system_of(one) for one in self.systems)
        object.__setattr__(self, "systems", adapted)

    @staticmethod
    def read(path: Path | str) -> Experiment:
        """Return the experiment in a TOML file with datasets, systems, measures and k, each optional.

        Raises FormatError for other values, UnknownName for another key.
        """
        path = path_of(path)
        table = read_toml(path, "an experiment file", pipes=True)
        keys = ("datasets", "systems", "measures", "k")
        for key in table:
            if key not in keys:
                raise UnknownName(f"key of an experiment file ({path})", key, keys)
        lists: dict[str, tuple[str, ...]] = {}
        for key in keys[:3]:
            if key in table:
                texts = [table[key]] if isinstance(table[key], str) else table[key]
                if not (isinstance(texts, Sequence) and all(isinstance(one, str) for one in texts)):
                    raise FormatError(path, f"{key} = {texts!r}", "a list of texts")
                lists[key] = tuple(texts)
        return Experiment(
            lists.get("datasets", ()),
            lists.get("systems", ()),
            lists.get("measures", DEFAULT_MEASURES),
            table.get("k", DEPTH),
        )

    def execute(self, at: Path | str, watch: Watch = _silent, on: str | None = None) -> list[Row]:
        """Compute missing results of the grid in the folder `at`; return its rows of means, groups of
        datasets last.

        on: address of a cluster, such as ray or ray://host:10001.

        The same call continues after an interruption; processes may share a folder. Raises the errors of
        `complete`.
        """
        cells = self.complete(at, watch, on=on)
        return rows_with_groups([cell for cell in each_result_once(cells) if cell.rows])

    def complete(
        self, at: Path | str, watch: Watch = _silent, share: Share | None = None, on: str | None = None
    ) -> list[ResultCell]:
        """Compute missing results of the grid in the folder `at`; return a result for each dataset and
        system.

        share: cells to begin with; results that other processes still compute are then left out.
        on: address of a cluster, such as ray.

        Raises the WeirErrors of datasets, systems and searches, BadValue for an address as folder, StoreError
        for an unwritable one.
        """
        if is_address(at):
            raise BadValue(
                f"{at}: results stand in a folder; stages may stand in a store (`stages='s3://...'`)"
            )
        at, measures = path_of(at), measures_of(self.measures)
        # The folder comes first: hours of indexing must not end at one that cannot be written.
        fresh, done = not at.exists(), dict[int, tuple[Path, list[Row]]]()
        begun: tuple[GridOrder, GridOrder] | None = None
        make_folder(at)
        if not writable(at):
            raise StoreError(f"cannot write {at}: no permission to write there")
        try:
            cells = self.cells(at, watch)
            for cell in cells:
                if cell.finished(measures) is None:
                    _require_parts(cell)
                    if cell.stages.shared is not None:
                        cell.stages.shared.try_out()  # before anything starts
            of = {id(c.stages.dataset): c.stages.dataset for c in cells}.values()
            names = _names_of_results(cells)
            splits = [f"{c.stages.dataset.name}:{c.stages.dataset.split}" for c in cells]
            asked = zip(splits, names, strict=True)
            begun = keep_order(at, (d.name for d in of), names, asked=asked)
            if on is not None:
                cluster_at(on).complete(self, at, watch)
            last = cells[0].stages
            for wait in (False, share is None):
                for number in range(len(cells)) if share is None else share.order(len(cells)):
                    if cells[number].stages.dataset is not last.dataset:
                        last.release()
                    last = cells[number].stages
                    completed = None if number in done else cells[number].complete(measures, wait)
                    if completed is not None:
                        if not done:
                            marks = (split_mark(d.name, d.split, d.corpus.fingerprint) for d in of)
                            judged = dict(zip(marks, (d.qrels_fingerprint for d in of), strict=True))
                            versions = {
                                split_mark(
                                    d.name, d.split, _place(d)
                                ): f"{d.corpus.fingerprint} {d.queries_fingerprint}"
                                for d in of
                            } | {split_mark(d.name, "", _place(d)): d.corpus.fingerprint for d in of}
                            keep_order(at, judgments=judged, versions=versions)
                        done[number] = completed
            return [cell_of(*done[n], cells[n].stages.dataset.split) for n in sorted(done)]
        except Exception:  # raised again; what cannot be made, for whatever reason, is not missing
            if begun is not None and not done:
                take_back_order(at, *begun)
            raise
        finally:
            if fresh:
                with suppress(OSError):  # it holds results
                    at.rmdir()

    def finished(self, at: Path | str) -> list[ResultCell]:
        """Return the finished results in the folder `at`, computing none; raises the WeirErrors of datasets
        and systems.
        """
        measures = measures_of(self.measures)
        cells = [(cell.finished(measures), cell) for cell in self.cells(path_of(at), _silent)]
        return [cell_of(*one, cell.stages.dataset.split) for one, cell in cells if one is not None]

    def loaded_datasets(self, watch: Watch = _silent) -> list[Dataset]:
        """Return the distinct datasets, with groups replaced by their members.

        Raises the errors of `load`, FormatError for damaged or missing documents, BadValue for two datasets
        or splits of one name.
        """
        loaded: list[Dataset] = []
        for reference in self.datasets:
            loaded += [reference] if isinstance(reference, Dataset) else load_group(reference, None, watch)
        loaded = [without_documents(judged_or_not(dataset)) for dataset in loaded]
        for dataset in loaded:
            if dataset.undocumented:
                self._refuse_searches(dataset)
        for dataset in loaded:
            dataset.fingerprint  # noqa: B018  reads all parts, so that what is wrong with one is known at once
            ScoringRules(dataset=dataset).refuse_strangers(dataset.qrels)
        datasets = distinct_datasets(loaded)
        if self.drop_self:
            return [replace(d, layout=replace(d.layout, self_match="drop")) for d in datasets]
        return datasets

    def _refuse_searches(self, undocumented: Dataset) -> None:
        for one in self.parsed_systems():
            if not (isinstance(one, DocumentKeeper) and one.keeps_documents()):
                raise FormatError(
                    undocumented.layout.root,
                    f"no documents, which {one} searches",
                    "corpus.jsonl, docs.jsonl, corpus.tsv or docs.tsv; systems with documents of their own need none: "
                    'run("bm25.trec"), http("search.toml"), command("..."), functions of Python',
                )
            if undocumented.layout.queries is None and not isinstance(one, StoredRun):
                raise FormatError(
                    undocumented.layout.root,
                    f"no queries, which {one} is asked",
                    "queries.jsonl or queries.tsv",
                )

    def parsed_systems(self) -> list[Retriever]:
        """Return the distinct systems; raises UnknownName or BadValue for an invalid one, BadValue for two of
        one name.
        """
        by_name: dict[str, Retriever] = {}
        systems = one_session(
            one for s in self.systems for one in (parse_systems(s) if isinstance(s, str) else (system_of(s),))
        )
        for system in systems:
            other = by_name.setdefault(str(system), system)
            if other != system:
                raise BadValue(
                    f"two different systems are named '{system}'; give the object in one of them another name: "
                    'weir.encoder(..., name="other"), weir.reranker or weir.system'
                )
        return list(by_name.values())

    def refuse_empty(self) -> None:
        """Raise BadValue if there is no dataset or no system."""
        needed = (("dataset", self.datasets), ("system", self.systems))
        if missing := [what for what, several in needed if not several]:
            raise BadValue(
                f"found no {' and no '.join(missing)}; expected one or more, as in `datasets='scifact'` and "
                "`systems='bm25'`"
            )

    def cells(self, at: Path | None, watch: Watch = _silent) -> list[Cell]:
        """Return the cells, dataset by dataset, not computed; loads datasets and checkpoints.

        at: results folder; None stores nothing.

        Raises BadValue for an empty grid or a bad k, UnknownName for an unknown name, and the errors of
        loading.
        """
        self.refuse_empty()
        systems = self.parsed_systems()
        for part in (part for system in systems for part in parts_of(system)):
            if isinstance(part, Fetched):
                part.fetch()
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 0 < self.k < 1 << 31:
            raise BadValue(f"k is {str(self.k)[:40]}; expected a whole number from 1")
        datasets = self.loaded_datasets(watch)
        _warn_of_shared(systems, len(datasets))
        _warn_of_repeated(self.systems)
        written, at = at is not None, at or Path()
        store, shared = at if self.stages is None else Path(self.stages), None
        if self.stages is not None and is_address(self.stages):
            store, shared = at, STAGE_STORES.get("shared")(str(self.stages), at)
        for place in (at, store) if written else ():
            refuse_ways_out(place, [slug(d.name) for d in datasets])
        cells, told = list[Cell](), set[str]()
        for d in datasets:
            cache = StageCache(at / slug(d.name), store / slug(d.name), d, watch, shared=shared, told=told)
            adapted = [adapted_to(system, d.name, d.instruction) for system in systems]
            cache = replace(cache, depths=depths_asked(adapted, d, self.k + (d.self_match == "drop")))
            cells += [Cell(cache.named(str(system)), system, self.k) for system in systems]
        return cells


def _refuse_exchanged_arguments(datasets: Sequence[object], systems: Sequence[object]) -> None:
    wrong = [
        (name, "system", "dataset")
        for name in datasets
        if isinstance(name, str) and name.partition("(")[0] in SYSTEMS and not _is_dataset(name)
    ]
    wrong += [
        (name, "dataset", "system")
        for name in systems
        if isinstance(name, str) and name not in SYSTEMS and _is_dataset(name)
    ]
    for name, found, expected in wrong:
        raise BadValue(f"'{name}' is a {found}; expected a {expected} there: datasets come before systems")


def _is_dataset(name: str) -> bool:
    return bool(catalogue_name(name)) or catalogue.is_group(name) or Path(name).is_dir()


def _warn_of_shared(systems: Iterable[Retriever], collections: int) -> None:
    for part in (part for system in systems for part in parts_of(system)):
        if collections > 1 and isinstance(part, FunctionSystem) and is_shared(part.answer):
            warn_of_ranking(
                f"{part}: the object cannot be copied, and the same one answers for all {collections} collections; "
                "if it keeps an index, run each collection by itself with an object of its own"
            )


def _warn_of_repeated(systems: Iterable[object]) -> None:
    first: dict[str, str] = {}
    for text in (one.strip() for one in systems if isinstance(one, str)):
        for system in parse_systems(text):
            if (other := first.setdefault(str(system), text)) != text:
                said = f"{text} and {other} are one system, {system}: it runs once"
                give_warning(LossWarning(said))


def _names_of_results(cells: Sequence[Cell]) -> list[str]:
    names, told = dict[tuple[int, str], str](), dict[tuple[str, str], None]()
    for cell in cells:
        key = id(cell.stages.dataset), cell.stage.key
        if key not in names:
            names[key] = cell.standing_name()
        if names[key] != str(cell.system):
            told[str(cell.system), names[key]] = None
    for own, name in told:
        said = "differ in nothing but their names, as a file and its copy: one result stands for both, as"
        give_warning(LossWarning(f"{own} and {name} {said} {name}"))
    return [names[id(cell.stages.dataset), cell.stage.key] for cell in cells]


MODEL_PACKAGES = (
    ("tokenizers", "neural"), ("openvino", "neural"), ("torch", "torch"), ("transformers", "torch"), ("nncf", "torch"),
)  # fmt: skip
"""Modules of engines for models, each with the extra that installs it."""


OPENED_FIRST_BYTES = 1 << 24
"""Size up to which a file of rankings is held against the collection before a grid begins."""


def refuse_other_runs(system: Retriever, dataset: Dataset) -> None:
    """Raise BadRanking or FormatError if rankings that a system reads from a file are of another dataset.

    Raises the reader's errors for a missing file; does not read files above OPENED_FIRST_BYTES.
    """
    if isinstance(system, StoredRun):
        adapted = system.adapted_to(dataset.name, dataset.instruction)
        path = Path(adapted.path)
        if not path.is_file() or path.stat().st_size <= OPENED_FIRST_BYTES:
            with silent():
                rankings(indexed(adapted, dataset.corpus), dataset.queries, 1, system, dataset.name)
    for part in system.components() if isinstance(system, Composite) else ():
        if not part.over:
            refuse_other_runs(part.system, dataset)


def _require_parts(cell: Cell) -> None:
    refuse_other_runs(cell.system, cell.stages.dataset)
    check_available()  # kernels that are kept compiled need not have numba imported
    if None not in cell.stage.engines:
        return
    from weir.systems.dense_search import DenseRetriever

    for part in parts_of(cell.system):
        if isinstance(part, DenseRetriever) and part.nearest is not None:
            part.nearest.require()
    for module, extra in MODEL_PACKAGES:
        require(module, extra=extra)
