"""A grid on a Ray cluster beside two processes that share it, and with a machine that is killed in the middle.

    python benchmarks/cluster.py [--collections a,b,c] [--data FOLDER] [--tries 3]

Six collections x six systems. Compared are two processes (`weir run --share 1/2` and `2/2`) and two nodes of one core
each on this machine; then four nodes of which one is killed after a third of the cells. `equal`: every ranking and every
value by query has the bytes that the two processes wrote. Times of records differ by nature and are not compared. The
start of the cluster is told apart. With several tries the two take turns; the least of each is compared; processor
seconds are those of all processes that a way starts, as a busy machine stretches its times. Needs the `ray` extra.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common

COLLECTIONS = "scifact,nfcorpus,cranfield,brook-facts,brook-news,brook-medical"
SYSTEMS = (
    "bm25",
    'bm25("elastic")',
    "bm25f",
    "rm3",
    "rm3(bm25(k1=1.2, b=0.75))",
    "rrf(bm25, rm3)",
)
CPU_FILES = (
    (Path("/sys/fs/cgroup/cpuacct"), "cpuacct.usage", 1e9),
    (Path("/sys/fs/cgroup"), "cpu.stat", 1e6),
)
"""Folders of cgroups, the first and the second kind, the file with the time of their processes, and its unit."""
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


def results_of(folder: Path) -> dict[str, bytes]:
    """The bytes of every ranking and of all values by query."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in ("run.trec", "scores-*.jsonl")
        for path in folder.rglob(pattern)
        if "indexes" not in path.parts
    }


def used_of(file: Path, unit: float) -> float:
    """The processor seconds that a file of a cgroup tells."""
    return int(file.read_text(encoding="ascii").removeprefix("usage_usec").split()[0]) / unit


@contextlib.contextmanager
def counted() -> Iterator[Callable[[], float]]:
    """What tells the processor seconds of this process and of all it starts, by a cgroup; NaN where there is none."""
    for root, name, unit in CPU_FILES:
        group = root / f"weir-{os.getpid()}"
        try:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        except OSError:
            continue
        yield partial(used_of, group / name, unit)
        (root / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        with contextlib.suppress(OSError):  # a process of Ray is still there
            group.rmdir()
        return
    yield lambda: math.nan


def shared(collections: tuple[str, ...], work: Path, used: Callable[[], float]) -> tuple[float, float]:
    """(seconds, processor seconds) of two processes that share the grid."""
    grid = [word for name in collections for word in ("-d", name)]
    grid += [word for name in SYSTEMS for word in ("-s", name)]
    command = [sys.executable, "-m", "weir", "run", *grid, "-m", "nDCG@10", "-q", "-o", str(work / "shares")]
    env = os.environ | common.ONE_THREAD | {"WEIR_HOME": str(work / "home-shares")}
    start, before = time.perf_counter(), used()
    both = [
        subprocess.Popen([*command, "--share", f"{number}/2"], env=env, stdout=subprocess.DEVNULL)
        for number in (1, 2)
    ]
    if any(process.wait() for process in both):
        raise SystemExit("a process failed")
    return time.perf_counter() - start, used() - before


def on_ray(
    collections: tuple[str, ...], out: Path, nodes: int, kill_after: int | None, used: Callable[[], float]
) -> tuple[float, float, float]:
    """(seconds until the cluster stands, seconds of the grid, processor seconds of the grid)."""
    import ray
    from ray.cluster_utils import Cluster

    from weir.experiment.experiment import Experiment

    start = time.perf_counter()
    machines = Cluster(initialize_head=True, head_node_args=NODE)
    others = [machines.add_node(**NODE) for _ in range(nodes - 1)]
    machines.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = machines.address
    begun, before = time.perf_counter(), used()

    def watch(stage: str, done: int, total: int) -> None:
        if kill_after is not None and done >= kill_after and others:
            machines.remove_node(others.pop(), allow_graceful=False)
            others.clear()

    try:
        Experiment(collections, SYSTEMS, ("nDCG@10",)).execute(out, watch, on="ray")
        return begun - start, time.perf_counter() - begun, used() - before
    finally:
        ray.shutdown()
        machines.shutdown()


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--collections", default=COLLECTIONS)
    parser.add_argument("--data")
    parser.add_argument("--tries", type=int, default=1)
    options = parser.parse_args()
    data = common.data_folder(options.data)
    named = options.collections.split(",")
    collections = tuple(str(data / name) if (data / name).exists() else name for name in named)
    with tempfile.TemporaryDirectory(prefix="weir-cluster-") as folder, counted() as used:
        work = Path(folder)
        record: dict[str, Any] = {"collections": named, "systems": SYSTEMS, **common.machine()}
        names = ("shares", "shares_processor", "start", "ray", "ray_processor")
        tries: dict[str, list[float]] = {name: [] for name in names}
        for number in range(options.tries):
            here = work / str(number)
            alone = shared(collections, here, used)
            expected = results_of(here / "shares")
            os.environ["WEIR_HOME"] = str(here / "home-ray")
            for name, seconds in zip(
                names, alone + on_ray(collections, here / "ray", 2, None, used), strict=True
            ):
                tries[name].append(round(seconds, 2))
            record["equal"] = record.get("equal", True) and results_of(here / "ray") == expected
        record |= {f"{name}_seconds": min(seconds) for name, seconds in tries.items()} | {"tries": tries}
        cells = len(collections) * len(SYSTEMS)
        os.environ["WEIR_HOME"] = str(work / "home-killed")
        _, record["killed_seconds"], _ = on_ray(collections, work / "killed", 4, cells // 3, used)
        record["killed_equal"] = results_of(work / "killed") == expected
    print(json.dumps(record))
    common.append("cluster", record)


if __name__ == "__main__":
    main()
