"""A grid on a Ray cluster: its cells are tasks, which write to the results folder that all machines share.

Ray starts, places and repeats tasks. Vectors and rankings never pass through it: a task is given the names of a grid
and the number of a cell, and makes what `weir run` makes in one process. A stage that several cells need is made by the
first of them; the others start when it is finished. Documents to be encoded are shared first: actors, one a GPU, or one
a processor where there is none, load a model once and encode shares of a collection into folders beside its indexes, of
which the cell that makes the index takes them. Requests to services are counted by one actor for all tasks.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from weir.core.rounding import duration
from weir.errors import BadValue, ServiceError, WeirError, require
from weir.experiment.experiment import Capacity
from weir.experiment.plan import encoding_parts, stage_graph
from weir.experiment.stage_store import Watch
from weir.measures.evaluate import measures_of
from weir.services.requests import LEDGER, Clock, Ledger, Limits, paid
from weir.settings import settings

if TYPE_CHECKING:
    from weir.experiment.experiment import Cell, Experiment
    from weir.systems.protocol import Encoding, Retriever, ShareEncoder

RETRIES = 3
"""How often a task is started again whose worker or machine has gone."""
LOOK_SECONDS = 1.0
"""How often progress is shown while no cell ends."""
LOG_SECONDS = 10.0
"""How often a cell writes to its log while one stage goes on."""
STORE_BYTES = 80 << 20
"""Of Ray's object store on a cluster that this process starts: nothing large passes through it."""
SHARES_PER_ENCODER = 4
"""Shares of a collection for each actor, so that none waits long for the slowest."""
LEDGER_CALLS = 1000
"""Requests that may wait for the ledger at once."""
PASSED = (
    "WEIR_HOME",
    "WEIR_DEVICE",
    "WEIR_LLM",
    "WEIR_MIRROR",
    "WEIR_MAX_RAM",
    "WEIR_LEASE",
    "WEIR_API_BUDGET",
    "WEIR_API_PRICE",
    "WEIR_API_RATE",
)
"""Settings that tasks take from the process that starts them. Keys are none of them: each machine has its own."""


@dataclass(frozen=True)
class Grid:
    """An experiment as names, which every machine reads alike; the folders are absolute."""

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    k: int
    stages: str | None
    drop_self: bool
    at: str

    @staticmethod
    def of(experiment: Experiment, at: Path) -> Grid:
        """The names of an experiment; raises BadValue for a part that has none outside this process."""
        from weir.registry import session_only

        for system in experiment.parsed_systems():
            if session_only(system.describe()):
                raise BadValue(
                    f"{system} is an object of this process; a cluster runs systems that names describe"
                )
        stages = None if experiment.stages is None else _absolute(experiment.stages)
        return Grid(
            tuple(map(_place, experiment.datasets)),
            tuple(str(system) for system in experiment.parsed_systems()),
            tuple(str(measure) for measure in measures_of(experiment.measures)),
            experiment.k,
            stages,
            experiment.drop_self,
            str(at.resolve()),
        )

    def cells(self) -> list[Cell]:
        """The cells of the grid, in its order."""
        from weir.experiment.experiment import Experiment

        experiment = Experiment(
            self.datasets, self.systems, self.measures, self.k, self.stages, self.drop_self
        )
        return experiment.cells(Path(self.at), _log())


def _absolute(place: str | Path) -> str:
    return str(place) if "://" in str(place) else str(Path(place).resolve())


def _place(dataset: object) -> str:
    """A collection as every machine finds it: a name, a reference, or an absolute path."""
    if not isinstance(dataset, (str, Path)):
        raise BadValue(
            f"{dataset!r} is held by this process; a cluster reads collections from names and folders"
        )
    return str(Path(dataset).resolve()) if Path(dataset).exists() else str(dataset)


def _log() -> Watch:
    """What a cell does, as lines of the worker's log, which Ray keeps and shows by task, and so by cell."""
    line, since = "", 0.0

    def watch(stage: str, done: int, total: int) -> None:
        nonlocal line, since
        now = time.monotonic()
        if stage != line or now - since >= LOG_SECONDS:
            line, since = stage, now
            _write(f"{stage} {done:,} of {total:,}" if total else stage)

    return watch


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _software() -> str:
    """What has to be the same on all machines."""
    return f"weir {version('weir-ir')} on Python {platform.python_version()}"


@dataclass(frozen=True, eq=False)
class ClusterLedger:
    """The ledger of all tasks, held by an actor; what this process spends is also counted here, for its records."""

    actor: Any
    ray: Any

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        """As `BudgetLedger` says; raises ServiceError where the actor has gone, as nobody knows what was spent."""
        number, waited = self._answer(self.actor.reserve.remote(service, limits, tokens))
        paid().requests += 1
        return int(number), float(waited)

    def settle(self, number: int, used: tuple[int, int]) -> None:
        """As `BudgetLedger` says."""
        self._answer(self.actor.settle.remote(number, used))
        paid().tokens += used[0]
        paid().answer_tokens += used[1]

    def _answer(self, reference: Any) -> Any:  # noqa: ANN401 - Ray's references have no types
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:  # its own text is the traceback of the actor
            raise ServiceError(str(error.cause)) from None
        except self.ray.exceptions.RayError as error:
            raise ServiceError(f"the ledger of the cluster is gone ({type(error).__name__})") from None


@lru_cache(maxsize=1)
def _cells(grid: Grid) -> list[Cell]:
    """The cells of the grid that this worker is at: collections and indexes that it opened stay open."""
    return grid.cells()


def complete_cell(grid: Grid, number: int, software: str, actor: Any, *made: object) -> str:  # noqa: ANN401 - Ray's handle
    """Finish a cell in a worker; "" or, in one line, why that failed. made: cells that had to be made before."""
    return _logged(grid, number, "", software, actor, lambda cell: cell.complete(measures_of(grid.measures)))


def _logged(
    grid: Grid,
    number: int,
    part: str,
    software: str,
    actor: Any,  # noqa: ANN401 - Ray's handle
    work: Callable[[Cell], object],
) -> str:
    """Do the work of a cell, or a part of it, in a worker; "" or, in one line, why that failed."""
    ray = require("ray", extra="ray")
    if _software() != software:
        return (
            f"{platform.node()} has {_software()}, the grid was started by {software}; install the same there"
        )
    LEDGER.set(ClusterLedger(actor, ray))
    start = time.monotonic()
    try:
        cell = _cells(grid)[number]
        title = f"{part}{_title(cell)}"
        _write(f"{title} begins")
        work(cell)
    except WeirError as error:
        failure = str(error) or type(error).__name__
        _write(failure)
        return failure
    _write(f"{title} is finished after {duration(time.monotonic() - start)}")
    return ""


Stage: TypeAlias = tuple[str, str]
"""The name of a collection, and that of a system which indexes it."""


@dataclass(frozen=True)
class EncodingShare:
    """Documents to encode before a cell is made. cell: its number; stage: what it needs them for; number, of: share i,
    from 0, of n."""

    cell: int
    stage: Stage
    number: int
    of: int


class ShareWorker:
    """An actor that encodes shares of collections, with the model of the last one loaded."""

    def __init__(self) -> None:
        self.system, self.encoder = "", cast("ShareEncoder | None", None)

    def encode(self, share: EncodingShare, grid: Grid, software: str, actor: Any) -> str:  # noqa: ANN401 - Ray's handle
        """Encode a share; "" or, in one line, why that failed."""

        def work(cell: Cell) -> None:
            system, encoding = _encodings(cell)[share.stage]
            if self.encoder is None or self.system != share.stage[1]:
                self.encoder, self.system = encoding.share_encoder(), share.stage[1]
            cell.stages.named(self.system).encode_share(system, self.encoder, (share.number, share.of))

        part = f"share {share.number + 1} of {share.of} of the documents of "
        return _logged(grid, share.cell, part, software, actor, work)


@dataclass(frozen=True)
class RayCluster:
    """The cluster at an address: "ray" for RAY_ADDRESS, else for one that starts here and ends with this process."""

    address: str

    def complete(self, experiment: Experiment, at: Path, watch: Watch) -> None:
        """Finish all cells of the grid.

        Raises MissingExtra, BadValue where the cluster cannot be reached or the grid is not one of names, and
        WeirError, when all other cells are finished, for cells that failed.
        """
        grid, ray = Grid.of(experiment, at), require("ray", extra="ray")
        cells, measures = experiment.cells(at, watch), measures_of(experiment.measures)
        missing = [number for number, cell in enumerate(cells) if cell.finished(measures) is None]
        if not missing:
            return
        with self._connected(ray):
            failures = _completed(ray, grid, cells, missing, watch)
        if failures:
            others = "" if len(failures) == 1 else f" (cells that failed: {len(failures):,})"
            raise WeirError(failures[min(failures)] + others)

    def capacity(self) -> Capacity:
        """The machines that are alive, and their processors."""
        ray = require("ray", extra="ray")
        with self._connected(ray):
            machines = sum(node["Alive"] for node in ray.nodes())
            processors = int(ray.cluster_resources().get("CPU", 0))
        if not processors:
            raise BadValue(f"{self.address}: the cluster has no processor for a cell")
        return Capacity(machines, processors)

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:  # noqa: ANN401 - a module
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS", "local") if self.address == "ray" else self.address
        own = {"object_store_memory": STORE_BYTES, "include_dashboard": False} if address == "local" else {}
        variables = {name: os.environ[name] for name in PASSED if name in os.environ}
        if ray.is_initialized():
            yield
            return
        try:
            ray.init(
                address,
                log_to_driver=False,
                logging_level="error",
                runtime_env={"env_vars": {**variables, "WEIR_THREADS": "1"}},
                **own,
            )
        except Exception as error:  # noqa: BLE001 - Ray raises errors of many kinds for what it cannot reach
            text = " ".join(str(error).split())[:300] or type(error).__name__
            ray.shutdown()  # what is left of an attempt hinders the next one in this process
            raise BadValue(f"{self.address}: the cluster cannot be reached: {text}") from None
        try:
            yield
        finally:
            ray.shutdown()


def _title(cell: Cell) -> str:
    return f"{cell.system} on {cell.stages.dataset.name}"


def _makers(cells: Sequence[Cell], missing: Sequence[int]) -> dict[int, set[int]]:
    """For each cell the cells before it that make what it needs too."""
    first: dict[tuple[str, str], int] = {}
    needs: dict[int, set[int]] = {}
    for number in missing:
        cell = cells[number]
        stages = [(cell.stages.dataset.name, str(node)) for node in stage_graph([cell.system])]
        needs[number] = {first[stage] for stage in stages if stage in first}
        for stage in stages:
            first.setdefault(stage, number)
    return needs


def _encodings(cell: Cell) -> dict[Stage, tuple[Retriever, Encoding]]:
    """What a cell needs whose documents several workers may encode."""
    name = cell.stages.dataset.name
    return {(name, str(parts[0])): parts for parts in encoding_parts(cell.adapted)}


def _shares(cells: Sequence[Cell], missing: Sequence[int], encoders: int) -> dict[Stage, list[EncodingShare]]:
    """What has to be encoded, each once, in shares for so many actors."""
    shares = dict[Stage, list[EncodingShare]]()
    for number in missing:
        stages = cells[number].stages
        for stage, (system, encoding) in _encodings(cells[number]).items():
            blocks = encoding.encoding_blocks(len(stages.dataset.corpus))
            of = min(blocks, SHARES_PER_ENCODER * encoders)
            if stage not in shares and of > 1 and not stages.encoded(system):
                shares[stage] = [EncodingShare(number, stage, i, of) for i in range(of)]
    return shares


def _completed(
    ray: Any,  # noqa: ANN401 - a module
    grid: Grid,
    cells: Sequence[Cell],
    missing: Sequence[int],
    watch: Watch,
) -> dict[int, str]:
    """Run the cells as tasks; why cells failed, by their numbers."""
    ledger = ray.remote(Ledger).options(max_concurrency=LEDGER_CALLS, num_cpus=0)
    actor = ledger.remote(replace(paid()), Clock())  # probes of services were asked by this process
    task, resources = ray.remote(complete_cell), ray.cluster_resources()
    gpus = int(resources.get("GPU", 0)) if settings().device != "cpu" else 0
    machines = len([node for node in ray.nodes() if node["Alive"]])
    where = f"on {machines:,} machine{'s' if machines > 1 else ''}"
    label = f"cells {where}"
    watch(label, 0, len(missing))

    shares = _shares(cells, missing, gpus or int(resources.get("CPU", 1)))
    waiting = deque(share for stage in shares.values() for share in stage)  # for an actor
    total = len(waiting)
    unencoded = {
        number: {share for stage in _encodings(cells[number]) for share in shares.get(stage, ())}
        for number in missing
    }
    makers = _makers(cells, missing)
    tasks: dict[int, Any] = {}
    at_work: dict[Any, int | tuple[Any, EncodingShare]] = {}  # cells by number, shares with their actors
    failures: dict[int, str] = {}

    def feed(encoder: Any) -> None:  # noqa: ANN401 - Ray's handle
        if waiting:
            share = waiting.popleft()
            at_work[encoder.encode.remote(share, grid, _software(), actor)] = encoder, share
        else:
            ray.kill(encoder)

    def start() -> None:
        for number in missing:
            if number in tasks or unencoded[number] or not makers[number] <= tasks.keys():
                continue
            cell = cells[number]
            options = {"num_cpus": 1, "max_retries": RETRIES, "name": _title(cell)}
            options |= {"num_gpus": 1} if gpus and cell.stage.engines else {}
            made = [tasks[maker] for maker in sorted(makers[number])]
            tasks[number] = task.options(**options).remote(grid, number, _software(), actor, *made)
            at_work[tasks[number]] = number

    worker = ray.remote(ShareWorker)
    for _ in range(min(len(waiting), gpus or int(resources.get("CPU", 1)))):
        options = {"num_cpus": 1, "max_restarts": RETRIES, "max_task_retries": -1}
        options |= {"num_gpus": 1} if gpus else {}
        feed(worker.options(**options).remote())
    start()
    try:
        while at_work:
            ended, _ = ray.wait(list(at_work), timeout=LOOK_SECONDS)
            for reference in ended:
                job = at_work.pop(reference)
                failure, gone = _outcome(ray, reference)
                if isinstance(job, int):
                    title = _title(cells[job])
                    if failure:
                        failures[job] = failure if failure.startswith(title) else f"{title}: {failure}"
                        watch(failures[job], 0, 0)
                    continue
                encoder, share = job
                if failure:
                    watch(f"share {share.number + 1} of {share.of} of {share.stage[1]}: {failure}", 0, 0)
                if gone and any(not isinstance(other, int) for other in at_work.values()):
                    waiting.appendleft(share)  # for another actor
                    continue
                for left in unencoded.values():
                    left.discard(share)  # after a failure the cell encodes it, or says what is wrong
                feed(encoder)
            start()
            encoding = sum(not isinstance(job, int) for job in at_work.values()) + len(waiting)
            if encoding:
                watch(f"shares of documents encoded {where}", total - encoding, total)
            done = sum(number not in at_work.values() for number in tasks)
            watch(label, done, len(missing))
    except BaseException:
        for reference, job in at_work.items():
            if isinstance(job, int):
                ray.cancel(reference, force=True)
            else:
                ray.kill(job[0])
        raise
    return failures


def _outcome(ray: Any, reference: Any) -> tuple[str, bool]:  # noqa: ANN401 - Ray has no types
    """(what a task says of its work, or why it ended without a word; whether it did)."""
    try:
        return str(ray.get(reference)), False
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"{type(error).__name__}: {lines[-1].strip()[:300]}", True
