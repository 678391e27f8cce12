"""How long until there is something to see: whole processes, in the processor's seconds.

    python benchmarks/cold_start.py [--repetitions 5] [--data ../shared/data] [--other CHECKOUT]

--other: another checkout, such as an older one, measured in turn with this one; each repetition turns the order, for
what runs first is slower (the same code twice: 5.64 and 4.81 s). One process, one thread. A process without Weir,
which imports numpy, shows what is beneath all others.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

WEIR = ("-m", "weir", "run", "-q", "-s", "bm25")
CLAIMS = {
    "numpy": "a process that imports numpy",
    "first table": "weir run -d brook-medical -s bm25, no kernel compiled yet",
    "next table": "the same, kernels compiled, another results folder",
    "scifact": "weir run on SciFact's JSON lines with bm25: store, index, search, table; kernels compiled",
    "finished": "the same command again: nothing is to be done",
}


def seconds(arguments: tuple[str, ...], env: dict[str, str]) -> tuple[float, float]:
    """(wall, processor) seconds of a process of Python; the processor's are those of the processes it starts, too."""
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - begun, os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr[-800:]}")
    user = after.children_user - before.children_user
    return wall, user + after.children_system - before.children_system


def measured(source: Path, data: Path, folder: Path) -> dict[str, tuple[float, float]]:
    """Each claim once, in a folder of its own."""
    collection = folder / "scifact"
    collection.mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(data / "scifact" / name, collection / name)
    shutil.copytree(data / "scifact" / "qrels", collection / "qrels")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | common.ONE_THREAD
    env |= {
        "PYTHONPATH": str(source / "src"),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "WEIR_HOME": str(folder / "home"),
    }
    # Python's own compiled files are made while a package is installed.
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(source / "src" / "weir")], check=True, env=env
    )

    def run(where: str | Path, results: str) -> tuple[float, float]:
        return seconds((*WEIR, "-d", str(where), "-o", str(folder / results)), env)

    found = {"numpy": seconds(("-c", "import numpy"), env)}
    found["first table"] = run("brook-medical", "first")
    found["next table"] = run("brook-medical", "second")
    run(collection, "warm")  # compiles what only larger collections use
    shutil.rmtree(collection / "corpus.jsonl.weir", ignore_errors=True)
    found["scifact"] = run(collection, "scifact")
    found["finished"] = run(collection, "scifact")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--data")
    parser.add_argument("--other", type=Path)
    given = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    sources = {"this": here} | ({"other": given.other.resolve()} if given.other else {})
    times: dict[str, dict[str, list[tuple[float, float]]]] = {
        name: {claim: [] for claim in CLAIMS} for name in sources
    }
    for repetition in range(given.repetitions):
        for name, source in list(sources.items())[:: -1 if repetition % 2 else 1]:
            with tempfile.TemporaryDirectory() as folder:
                for claim, pair in measured(source, common.data_folder(given.data), Path(folder)).items():
                    times[name][claim].append(pair)
                    common.say(f"{name:6} {claim:12} {pair[1]:6.2f} s of the processor, {pair[0]:6.2f} s")
    machine = common.machine() | {"versions": common.versions("numpy", "numba", "llvmlite", "orjson")}
    for claim, what in CLAIMS.items():
        record = {"claim": claim, "what": what, "machine": machine}
        for name in sources:
            wall, cpu = (list(column) for column in zip(*times[name][claim], strict=True))
            record[name] = common.summary(wall, cpu)
        common.append("cold_start", record)
        print(
            claim,
            *(f"{n} {record[n]['cpu_median']:.2f} s, least {record[n]['cpu_min']:.2f}" for n in sources),
        )


if __name__ == "__main__":
    main()
