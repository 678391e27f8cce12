"""What the benchmarks share: one process per engine, one core, one thread, medians, peak memory, JSON lines.

WEIR_BENCH_RESULTS is the folder of these lines, by default results/ beside the scripts.

Imports nothing but the standard library: a script starts itself again in each peer's own interpreter.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = Path(os.environ.get("WEIR_BENCH_RESULTS", HERE / "results"))
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "RAYON_NUM_THREADS",
        "ARROW_NUM_THREADS",
        "WEIR_THREADS",
    )
}


def arguments(about: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every script whose engines run in processes of their own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", help="what a process of its own measures, as JSON")
    parser.add_argument("--peers", help="folder of the peers' environments")
    parser.add_argument("--data", help="folder of collections")
    parser.add_argument("--core", type=int)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="record nothing")
    return parser


def begin(parser: argparse.ArgumentParser, child: Callable[[dict[str, Any]], None]) -> argparse.Namespace:
    """The options of a script, on its core; a process of its own runs `child` and ends."""
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        raise SystemExit(0)
    pin(options.core)
    return options


def data_folder(option: str | None) -> Path:
    """The folder of collections: the option, else WEIR_BENCH_DATA, else ../shared/data beside the checkout."""
    given = option or os.environ.get("WEIR_BENCH_DATA")
    return Path(given) if given else HERE.parents[1] / "shared" / "data"


def interpreter(peers: str | None, name: str) -> str | None:
    """The Python of a peer's virtual environment in the folder of peers (else WEIR_BENCH_PEERS), or None."""
    given = peers or os.environ.get("WEIR_BENCH_PEERS")
    python = Path(given or "nowhere") / name / "bin" / "python"
    return str(python) if given and python.exists() else None


def pin(core: int | None) -> None:
    """Keep this process and those it starts on one core; None leaves them where they are."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def run_child(script: str, spec: dict[str, Any], python: str, timeout: float = 600) -> dict[str, Any]:
    """Run `script --child SPEC` in another interpreter with one thread; what it emitted, or {"error": ...}."""
    start = time.perf_counter()
    env = os.environ | ONE_THREAD | {"PYTHONUNBUFFERED": "1"}
    try:
        done = subprocess.run(
            [python, script, "--child", json.dumps(spec)],
            env=env,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return failed(f"no end after {timeout:.0f} s")
    wall = time.perf_counter() - start
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    if done.returncode or not lines:
        return failed(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}")
    return json.loads(lines[-1]) | {"process_seconds": wall}


def each_engine(
    script: str, engines: list[str], spec: dict[str, Any], python: str, folder: Path, timeout: float
) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Every engine in turn with its record and the file that it left in the folder; a failure is said.

    spec: of all; each process gets its `engine` and its `file` too, which begins with its number in the order.
    """
    for number, name in enumerate(engines):
        file = folder / f"{number}.npz"
        record = run_child(script, spec | {"engine": name, "file": str(file)}, python, timeout)
        if "error" in record:
            say(f"{name}: {record['error'][-300:]}")
        yield name, file, record


def failed(why: str) -> dict[str, Any]:
    """{"error": why}, so that the others are still measured; under WEIR_BENCH_STRICT, as in tests, the end."""
    if os.environ.get("WEIR_BENCH_STRICT"):
        raise SystemExit(why)
    return {"error": why}


def emit(record: dict[str, Any]) -> None:
    """What a child found, to its parent: the last line of its output."""
    print("\n" + json.dumps(record), flush=True)


def timed(action: Callable[[], Any], repetitions: int, warm: int = 1, budget: float = 60.0) -> dict[str, Any]:
    """Wall and processor seconds of an action: medians, least and most; repeats less beyond the budget."""
    for _ in range(warm):
        action()
    wall, cpu, begun = [], [], time.perf_counter()
    for _ in range(repetitions):
        gc.collect()
        c, t = time.process_time(), time.perf_counter()
        action()
        wall.append(time.perf_counter() - t)
        cpu.append(time.process_time() - c)
        if time.perf_counter() - begun > budget:
            break
    return summary(wall, cpu)


def summary(wall: list[float], cpu: list[float] | None = None) -> dict[str, Any]:
    """Median, least, most and number of some times in seconds."""
    found = {"median": statistics.median(wall), "min": min(wall), "max": max(wall), "n": len(wall)}
    return found | ({"cpu_median": statistics.median(cpu), "cpu_min": min(cpu)} if cpu else {})


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of values against sizes, both as logarithms: 1 where cost grows as the work does.

    A value of zero (below the resolution of its measurement) has no logarithm and is left out; of fewer than two
    values that remain, NaN.
    """
    points = [
        (math.log(size), math.log(value)) for size, value in zip(sizes, values, strict=True) if value > 0
    ]
    return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else math.nan


def percentile(values: list[float], share: float) -> float:
    """The value that this share (0 to 100) of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share / 100 * (len(ordered) - 1)))]


def memory_mb(key: str = "VmRSS") -> float:
    """This process's resident memory in MB; key VmHWM: its peak since the start or `reset_peak`."""
    with contextlib.suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(key + ":"))
    return float("nan")


def reset_peak() -> None:
    """Let the peak of this process's memory start again."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def versions(*names: str) -> dict[str, str]:
    """The installed versions of some distributions."""
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was."""
    model = platform.processor()
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def append(name: str, record: dict[str, Any]) -> None:
    """Add a line to benchmarks/results/NAME.jsonl."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def say(*words: object) -> None:
    """A line of progress on stderr."""
    print(*words, file=sys.stderr, flush=True)
