"""Results folders: what shared stages save, and how long `weir verify` takes over a large folder.

    python benchmarks/results_folder.py shared [--weir PYTHON ...] [--json out.jsonl]
    python benchmarks/results_folder.py verify [--datasets 18] [--systems 30] [--folder /somewhere/roomy] [--json out.jsonl]

shared: one first stage and six re-rankers on SciFact, each in a process of its own with a fresh results folder, once
for each interpreter that is named (another version of Weir beside this one); processor seconds, medians of five.
verify: a folder of copies of the real collections x BM25 with other settings, made once and then verified; seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import data_folder

FIRST = "bm25"
RERANKERS = [f"score(rm3(terms={n}), depth=50)" for n in (5, 10, 15, 20, 25, 30)]
REAL = ("scifact", "nfcorpus", "cranfield", "vaswani")
REPETITIONS = 5


def spent(command: list[str]) -> tuple[float, float]:
    """(processor seconds, wall seconds) of a process that must succeed."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - begun


def report(record: dict[str, object], out: str | None) -> None:
    """Print a figure, and append it to a file of JSON lines."""
    print(json.dumps(record), flush=True)
    if out is not None:
        with Path(out).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def shared(pythons: list[str], data: Path, out: str | None, repetitions: int) -> None:
    systems = [part for one in (FIRST, *(f"{FIRST} >> {r}" for r in RERANKERS)) for part in ("-s", one)]
    taken: dict[str, list[float]] = {python: [] for python in pythons}
    with tempfile.TemporaryDirectory() as place:
        for repetition in range(
            repetitions + 1
        ):  # the first compiles kernels and builds the store of documents
            for python in pythons:
                folder = Path(place) / "results"
                command = [python, "-m", "weir", "run", "-q", "-d", str(data / "scifact"), *systems]
                seconds, _ = spent([*command, "-m", "nDCG@10", "-o", str(folder)])
                stages = len(list(folder.rglob("indexes/*"))) or len(list(folder.rglob("0-ptr.npy")))
                if repetition:
                    taken[python].append(seconds)
                shutil.rmtree(folder)
                if repetition == repetitions:
                    median = sorted(taken[python])[repetitions // 2]
                    report(
                        {
                            "bench": "shared stages",
                            "python": python,
                            "indexes": stages,
                            "cpu_seconds": median,
                        },
                        out,
                    )


def verify(datasets: int, systems: int, place: Path, data: Path, out: str | None) -> None:
    results, names = place / "results", []
    for number in range(datasets):
        real = REAL[number % len(REAL)]
        names.append(place / f"{real}-{number}")
        if not names[-1].exists():
            shutil.copytree(data / real, names[-1], ignore=shutil.ignore_patterns("*.zip", "*.weir"))
    asked = [part for name in names for part in ("-d", str(name))]
    asked += [part for n in range(systems) for part in ("-s", f"bm25(k1={0.5 + n / 50:.2f})")]
    weir = [sys.executable, "-m", "weir"]
    made, _ = spent([*weir, "run", "-q", *asked, "-m", "nDCG@10", "-m", "R@100", "-o", str(results)])
    cpu, wall = spent([*weir, "verify", "-q", str(results)])
    size = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    cells = {"datasets": datasets, "systems": systems, "megabytes": size / 1e6}
    report(
        {"bench": "verify", **cells, "made_cpu_seconds": made, "cpu_seconds": cpu, "wall_seconds": wall}, out
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("shared", "verify"))
    parser.add_argument("--weir", nargs="*", default=[sys.executable])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--datasets", type=int, default=18)
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--folder")
    parser.add_argument("--data")
    parser.add_argument("--json")
    given = parser.parse_args()
    data = data_folder(given.data)
    if given.what == "shared":
        shared(given.weir, data, given.json, given.repetitions)
        return
    with tempfile.TemporaryDirectory() as place:
        verify(given.datasets, given.systems, Path(given.folder or place), data, given.json)


if __name__ == "__main__":
    main()
