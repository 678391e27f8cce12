"""An experiment on a Ray cluster: tasks write results to a folder that all machines share.

A task gets names and the number of a result, never vectors or rankings; before, actors encode the documents in
shares.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from weir.core.rounding import duration
from weir.errors import BadValue, ServiceError, WeirError, require
from weir.experiment.experiment import Capacity, Experiment
from weir.experiment.plan import encoding_parts, stage_graph
from weir.measures.evaluate import measures_of
from weir.registry import session_only
from weir.services.requests import LEDGER, Clock, Ledger, Limits, Spent, paid
from weir.settings import settings

if TYPE_CHECKING:  # and where they are used: the actor with the ledger is a process that needs none of them
    from weir.experiment.experiment import Capacity, Cell, Experiment
    from weir.files.text_files import Watch
    from weir.systems.protocol import Encoding, Retriever, ShareEncoder

RETRIES = 3
"""Restarts of a task whose worker or machine is lost."""
LOOK_SECONDS = 1.0
"""Seconds between reports of progress while no cell ends."""
LOG_SECONDS = 10.0
"""Seconds between lines of a cell's log within a stage."""
STORE_BYTES = 80 << 20
"""Ray's object store on a cluster started here; nothing large passes through it."""
SHARES_PER_ENCODER = 4
"""Shares of a collection for each actor, so that none waits long for the slowest."""
LEDGER_CALLS = 1000
"""Requests that may wait for the ledger."""
SLOW_FACTOR, SLOW_SECONDS, SLOW_BESIDE = 4.0, 60.0, 3
"""A job is slow after 4 times its group's median and 60 seconds, once 3 of the group have ended."""
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
"""Environment variables passed to tasks; keys are not among them."""


@dataclass(frozen=True)
class Grid:
    """An experiment by names and absolute folders that mean the same on every machine."""

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    k: int
    stages: str | None
    drop_self: bool
    at: str
    """The results folder."""
    variables: tuple[tuple[str, str], ...]
    """Environment variables; by Ray's own option they would cost extra workers."""

    @staticmethod
    def of(experiment: Experiment, at: Path) -> Grid:
        """Return an experiment by names; raises BadValue for a part that only this process has."""
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
            (*((n, os.environ[n]) for n in PASSED if n in os.environ), ("WEIR_THREADS", str(_threads()))),
        )

    def cells(self) -> list[Cell]:
        """Load the datasets, and return the experiment's cells, one for each system on each dataset."""
        experiment = Experiment(
            self.datasets, self.systems, self.measures, self.k, self.stages, self.drop_self
        )
        return experiment.cells(Path(self.at), _log())


def _absolute(place: str | Path) -> str:
    return str(place) if "://" in str(place) else str(Path(place).resolve())


def _place(dataset: object) -> str:
    if not isinstance(dataset, (str, Path)):
        raise BadValue(
            f"{dataset!r} is held by this process; a cluster reads collections from names and folders"
        )
    return str(Path(dataset).resolve()) if Path(dataset).exists() else str(dataset)


def _log() -> Watch:
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
    return f"weir {version('weir-ir')} on Python {platform.python_version()}"


Stage: TypeAlias = tuple[str, str]
"""(collection, system that indexes it)."""


@dataclass(frozen=True)
class _EncodingShare:
    """A part of the documents to encode before a result: share `number`, from 0, of `of`."""

    cell: int
    stage: Stage
    number: int
    of: int


Job: TypeAlias = int | _EncodingShare
"""A unit of work: the number of a cell, or a share."""


def _title(cells: Sequence[Cell], job: Job) -> str:
    if isinstance(job, int):
        return f"{cells[job].system} on {cells[job].stages.dataset.name}"
    collection, system = job.stage
    return f"share {job.number + 1} of {job.of} of the documents of {system} on {collection}"


class _GridActor:
    """The Ray actor that all workers share: it counts requests and knows which machine began which job."""

    def __init__(self, spent: Spent) -> None:
        self.ledger, self.begun = Ledger(spent, Clock()), deque[tuple[Job, str]]()

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        return self.ledger.reserve(service, limits, tokens)

    def settle(self, number: int, used: tuple[int, int]) -> None:
        self.ledger.settle(number, used)

    def begin(self, job: Job, machine: str) -> None:
        self.begun.append((job, machine))

    def take_begun(self) -> list[tuple[Job, str]]:
        """Return (job, machine) of the jobs begun since the last call."""
        return [self.begun.popleft() for _ in range(len(self.begun))]


@dataclass(frozen=True, eq=False)
class _ClusterLedger:
    """All tasks' requests to services, counted by an actor; methods raise ServiceError if the actor is lost."""

    actor: Any
    ray: Any

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        number, waited = self._answer(self.actor.reserve.remote(service, limits, tokens))
        paid().requests += 1
        return int(number), float(waited)

    def settle(self, number: int, used: tuple[int, int]) -> None:
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
    return grid.cells()


def complete_cell(grid: Grid, number: int, software: str, actor: Any) -> str:  # noqa: ANN401 - Ray's handle
    """Compute the grid's result `number` in a worker; return "" or the failure as one line."""
    return _logged(grid, number, software, actor, lambda cell: cell.complete(measures_of(grid.measures)))


def _logged(
    grid: Grid,
    job: Job,
    software: str,
    actor: Any,  # noqa: ANN401 - Ray's handle
    work: Callable[[Cell], object],
) -> str:
    ray = require("ray", extra="ray")
    if _software() != software:
        return (
            f"{platform.node()} has {_software()}, the grid was started by {software}; install the same there"
        )
    os.environ.update(grid.variables)
    settings.cache_clear()
    LEDGER.set(_ClusterLedger(actor, ray))
    actor.begin.remote(job, platform.node())  # nobody waits for it: work goes on without the actor
    start = time.monotonic()
    try:
        cells = _cells(grid)
        title = _title(cells, job)
        _write(f"{title} begins")
        work(cells[job if isinstance(job, int) else job.cell])
    except WeirError as error:
        failure = str(error) or type(error).__name__
        _write(failure)
        return failure
    _write(f"{title} is finished after {duration(time.monotonic() - start)}")
    return ""


class _ShareWorker:
    """A Ray actor that encodes shares of documents and keeps the last model loaded."""

    def __init__(self) -> None:
        self.system, self.encoder = "", cast("ShareEncoder | None", None)

    def encode(self, share: _EncodingShare, grid: Grid, software: str, actor: Any) -> str:  # noqa: ANN401 - Ray's handle
        """Encode a share of the documents; return "" or the failure as one line."""

        def work(cell: Cell) -> None:
            system, encoding = _encodings(cell)[share.stage]
            if self.encoder is None or self.system != share.stage[1]:
                self.encoder, self.system = encoding.share_encoder(), share.stage[1]
            cell.stages.named(self.system).encode_share(system, self.encoder, (share.number, share.of))

        return _logged(grid, share, software, actor, work)


@dataclass(frozen=True)
class RayCluster:
    """The Ray cluster at an address; "ray" means RAY_ADDRESS, else one started for this process."""

    address: str

    def complete(self, experiment: Experiment, at: Path, watch: Watch) -> None:
        """Compute all unfinished results of an experiment.

        Raises MissingExtra without Ray, BadValue for an unreachable cluster or parts that only this process
        has, and the first failure as WeirError after the other results have ended.
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
        ray = require("ray", extra="ray")
        with self._connected(ray):
            nodes = _nodes(ray)
        return Capacity(len(nodes), _at_once(nodes))

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:  # noqa: ANN401 - a module
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS", "local") if self.address == "ray" else self.address
        own = {"object_store_memory": STORE_BYTES, "include_dashboard": False} if address == "local" else {}
        if ray.is_initialized():
            yield
            return
        try:
            ray.init(address, log_to_driver=False, logging_level="error", **own)
        except Exception as error:  # noqa: BLE001 - Ray raises errors of many kinds for what it cannot reach
            text = " ".join(str(error).split())[:300] or type(error).__name__
            ray.shutdown()  # what is left of an attempt hinders the next one in this process
            raise BadValue(f"{self.address}: the cluster cannot be reached: {text}") from None
        try:
            yield
        finally:
            ray.shutdown()


def _threads() -> int:
    return settings().threads if "WEIR_THREADS" in os.environ else 1


def _nodes(ray: Any) -> list[dict[str, float]]:  # noqa: ANN401 - a module
    return [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _at_once(nodes: Sequence[dict[str, float]]) -> int:
    cells = sum(int(node["CPU"]) // _threads() for node in nodes)
    if not cells:
        most = max((int(node["CPU"]) for node in nodes), default=0)
        raise BadValue(
            f"a cell takes {_threads():,} processors (WEIR_THREADS); the largest machine of the cluster has {most:,}"
        )
    return cells


def _makers(cells: Sequence[Cell], missing: Sequence[int]) -> dict[int, set[int]]:
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
    name = cell.stages.dataset.name
    return {(name, str(parts[0])): parts for parts in encoding_parts(cell.adapted)}


def _shares(
    cells: Sequence[Cell], missing: Sequence[int], encoders: int
) -> dict[Stage, list[_EncodingShare]]:
    shares = dict[Stage, list[_EncodingShare]]()
    for number in missing:
        stages = cells[number].stages
        for stage, (system, encoding) in _encodings(cells[number]).items():
            blocks = encoding.encoding_blocks(len(stages.dataset.corpus))
            of = min(blocks, SHARES_PER_ENCODER * encoders)
            if stage not in shares and of > 1 and not stages.encoded(system):
                shares[stage] = [_EncodingShare(number, stage, i, of) for i in range(of)]
    return shares


@dataclass(eq=False)
class _Work:
    ray: Any
    task: Any
    """`complete_cell` as Ray's task; `worker` is `_ShareWorker` as Ray's actor."""
    worker: Any
    grid: Grid
    cells: Sequence[Cell]
    missing: Sequence[int]
    """Cells to finish."""
    watch: Watch
    actor: Any
    machines: int
    processors: int
    """CPUs of a cell."""
    widest: int
    """CPUs of the smallest machine, given to a cell that ran out of memory."""
    gpus: int
    makers: dict[int, set[int]]
    """For each cell the cells that must end before it."""
    unencoded: dict[int, set[_EncodingShare]]
    """For each cell the shares that must end before it."""
    waiting: deque[_EncodingShare]
    """Shares without an actor."""
    shares: int
    running: dict[Any, tuple[Job, Any]] = field(default_factory=dict)
    """Ray's reference -> (job, actor of a share)."""
    ended: set[int] = field(default_factory=set)
    """Finished and failed cells."""
    started: Counter[Job] = field(default_factory=Counter)
    crowded: set[Job] = field(default_factory=set)
    """Jobs that ran out of memory."""
    since: dict[Job, tuple[str, float]] = field(default_factory=dict)
    """Machine and start time of running jobs."""
    took: dict[object, list[float]] = field(default_factory=dict)
    """Seconds of ended jobs by `like`."""
    slow: set[Job] = field(default_factory=set)
    failures: dict[int, str] = field(default_factory=dict)
    """Reasons of failed cells."""

    def start(self) -> None:
        begun = self.ended | {job for job, _ in self.running.values()}
        for number in self.missing:
            if number in begun or self.unencoded[number] or not self.makers[number] <= self.ended:
                continue
            engines = bool(self.cells[number].stage.engines)
            options = self.resources(number, engines) | {"max_retries": 0, "name": _title(self.cells, number)}
            reference = self.task.options(**options).remote(self.grid, number, _software(), self.actor)
            self.running[reference] = number, None
            self.started[number] += 1

    def hire(self) -> None:
        options = self.resources(self.waiting[0], True) | {"max_restarts": 0}
        self.feed(self.worker.options(**options).remote())

    def feed(self, encoder: Any) -> None:  # noqa: ANN401 - Ray's handle
        if not self.waiting:
            self.ray.kill(encoder)
            return
        share = self.waiting.popleft()
        encode = encoder.encode.options(name=_title(self.cells, share))
        self.running[encode.remote(share, self.grid, _software(), self.actor)] = share, encoder
        self.started[share] += 1

    def resources(self, job: Job, model: bool) -> dict[str, Any]:
        processors = self.widest if job in self.crowded else self.processors
        return {"num_cpus": processors} | ({"num_gpus": 1} if model and self.gpus else {})

    def look(self) -> None:
        ended, _ = self.ray.wait(list(self.running), timeout=LOOK_SECONDS)
        with suppress(self.ray.exceptions.RayError):  # without the actor nothing is known of what runs where
            now, at_work = time.monotonic(), {job for job, _ in self.running.values()}
            begun = self.ray.get(self.actor.take_begun.remote())
            self.since |= {job: (machine, now) for job, machine in begun if job in at_work}
        for reference in ended:
            self.end(reference)
        self.start()
        self.tell_slow()
        encoding = len(self.waiting) + sum(not isinstance(job, int) for job, _ in self.running.values())
        if encoding:
            self.watch(f"shares of documents encoded {self.where()}", self.shares - encoding, self.shares)
        self.watch(f"cells {self.where()}", len(self.ended), len(self.missing))

    def where(self) -> str:
        return f"on {self.machines:,} machine{'s' if self.machines > 1 else ''}"

    def end(self, reference: Any) -> None:  # noqa: ANN401 - Ray's handle
        job, encoder = self.running.pop(reference)
        title = _title(self.cells, job)
        machine, begun = self.since.pop(job, ("", None))
        failure, lost = _outcome(self.ray, reference, title, machine)
        if begun is not None and not failure:
            self.took.setdefault(self.like(job), []).append(time.monotonic() - begun)
        crowded = isinstance(lost, self.ray.exceptions.OutOfMemoryError)
        if lost is not None and self.started[job] <= RETRIES:
            if crowded:
                self.crowded.add(job)
            alone = " with all processors of a machine" if job in self.crowded else ""
            again = f"it is started again{alone} ({self.started[job]} of {RETRIES})"
            self.watch(f"{title}: {failure}; {again}", 0, 0)
            if not isinstance(job, int):
                self.waiting.appendleft(job)
                self.hire()
            return
        if crowded:
            failure += "; use machines with more memory, or name less for a cell with WEIR_MAX_RAM"
        if failure:
            failure = failure if failure.startswith(title) else f"{title}: {failure}"
            self.watch(failure, 0, 0)
        if isinstance(job, int):
            self.ended.add(job)
            if failure:
                self.failures[job] = failure
            return
        for left in self.unencoded.values():
            left.discard(job)  # after a failure the cell encodes it, or says what is wrong
        if lost is None:
            self.feed(encoder)
        elif self.waiting:
            self.hire()

    def like(self, job: Job) -> object:
        if not isinstance(job, int):
            return job.stage
        return self.cells[job].stages.dataset.name, type(self.cells[job].system).__name__

    def tell_slow(self) -> None:
        for job, (machine, begun) in self.since.items():
            seconds, others = time.monotonic() - begun, self.took.get(self.like(job), [])
            if job in self.slow or len(others) < SLOW_BESIDE:
                continue
            if seconds > max(SLOW_SECONDS, SLOW_FACTOR * median(others)):
                self.slow.add(job)
                beside = f"the {len(others):,} like it that ended took {duration(median(others))} (median)"
                title = _title(self.cells, job)
                self.watch(f"{title}: at work for {duration(seconds)} on {machine}; {beside}", 0, 0)

    def stop(self) -> None:
        for reference, (_, encoder) in self.running.items():
            if encoder is None:
                self.ray.cancel(reference, force=True)
            else:
                self.ray.kill(encoder)


def _completed(
    ray: Any,  # noqa: ANN401 - a module
    grid: Grid,
    cells: Sequence[Cell],
    missing: Sequence[int],
    watch: Watch,
) -> dict[int, str]:
    nodes = _nodes(ray)
    at_once = _at_once(nodes)
    gpus = int(ray.cluster_resources().get("GPU", 0)) if settings().device != "cpu" else 0
    actor = ray.remote(_GridActor).options(max_concurrency=LEDGER_CALLS, num_cpus=0)
    encoders = gpus or at_once
    shares = _shares(cells, missing, encoders)
    waiting = deque(share for stage in shares.values() for share in stage)
    work = _Work(
        ray=ray,
        task=ray.remote(complete_cell),
        worker=ray.remote(_ShareWorker),
        grid=grid,
        cells=cells,
        missing=missing,
        watch=watch,
        actor=actor.remote(replace(paid())),  # probes of services were asked by this process
        machines=len(nodes),
        processors=_threads(),
        widest=min(int(node["CPU"]) for node in nodes if node["CPU"] >= _threads()),
        gpus=gpus,
        makers=_makers(cells, missing),
        unencoded={
            n: {share for stage in _encodings(cells[n]) for share in shares.get(stage, ())} for n in missing
        },
        waiting=waiting,
        shares=len(waiting),
    )
    watch(f"cells {work.where()}", 0, len(missing))
    for _ in range(min(len(work.waiting), encoders)):
        work.hire()
    work.start()
    try:
        while work.running:
            work.look()
    except BaseException:
        work.stop()
        raise
    return work.failures


MEMORY = re.compile(r"was ([\d.]+)GB(?: used)? / ([\d.]+)GB")
"""Finds the machine's memory in Ray's out-of-memory error."""


def _outcome(
    ray: Any,  # noqa: ANN401 - Ray has no types
    reference: Any,  # noqa: ANN401 - Ray has no types
    title: str,
    machine: str,
) -> tuple[str, Exception | None]:
    errors = ray.exceptions
    place = f" on {machine}" if machine else ""
    try:
        return str(ray.get(reference)), None
    except errors.OutOfMemoryError as error:
        memory = MEMORY.search(str(error))
        share = re.search(rf"task name={re.escape(title)},.*?memory used=([\d.]+)GB", str(error))
        of_machine = f" ({memory[1]} of {memory[2]} GB in use)" if memory else ""
        of_task = f", of which it took {share[1]} GB" if share else ""
        return f"memory ran out{place}{of_machine}{of_task}", error
    except (
        errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError, errors.RayActorError,
    ) as error:  # fmt: skip
        return f"its worker{place} has gone: {_last_line(error)}", error
    except errors.RayError as error:
        return _last_line(error), None


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:300]}"
