"""The speed of this checkout beside another one, such as the one before a rebuilding: nothing may be lost.

    python benchmarks/two_versions.py --other CHECKOUT [--repetitions 5] [--data ../shared/data] [--work FOLDER] [--core 1]

Each task runs in processes of the two versions in turn, one thread; within a process it runs once before it is taken,
so that kernels are loaded. Figures are the processor's seconds, medians over the processes, with peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import score_run

TASKS = {
    "score": "7 million lines of a run file scored with eight measures",
    "index": "bm25 over SciFact and NFCorpus, from memory to an index",
    "search": "1,423 queries of both, 1,000 documents each",
    "rm3": "rm3 for the same",
    "dense": "100 queries in 200,000 vectors of 128 numbers, exactly, 100 documents each",
}
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
task, data, run = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

def score():
    import weir
    return lambda: weir.evaluate(run / "qrels.trec", run / "run.trec", json.loads(sys.argv[4]))

def lexical(searched):
    import weir
    from weir.systems import parse_system
    sets = [weir.load(data / name) for name in ("scifact", "nfcorpus")]
    system = parse_system(searched or "bm25")
    if not searched:
        return lambda: [system.index(ds.corpus) for ds in sets]
    indexes = [system.index(ds.corpus) for ds in sets]
    return lambda: [one.search(ds.all_queries, 1000) for one, ds in zip(indexes, sets)]

def dense():
    import numpy as np
    try:
        from weir.systems.vectors import exact_search as vectors
    except ImportError:  # of version 0.2
        import weir.vectors as vectors
    rng = np.random.default_rng(1)
    rows, queries = (rng.standard_normal((n, 128)).astype(np.float32) for n in (200_000, 100))
    source = getattr(vectors, "ArraySource", None) or vectors.Array
    return lambda: vectors.search(source(rows), queries, 100)

made = {"score": score, "index": lambda: lexical(""), "search": lambda: lexical("bm25"), "rm3": lambda: lexical("rm3"),
        "dense": dense}[task]()
made()
taken = []
for _ in range(3):
    begun = time.process_time()
    made()
    taken.append(time.process_time() - begun)
print(json.dumps([sorted(taken)[1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def once(source: Path, task: str, data: Path, run: Path, home: Path) -> tuple[float, float]:
    """(processor seconds, peak MB) of a task in a process of one version."""
    env = os.environ | common.ONE_THREAD | {"PYTHONPATH": str(source / "src"), "WEIR_HOME": str(home)}
    env |= {"PYTHONWARNINGS": "ignore", "NUMBA_CACHE_DIR": str(home / "kernels")}
    measures = json.dumps(list(score_run.MEASURES))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, task, str(data), str(run), measures],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{source.name}, {task}: {done.stderr[-800:]}")
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--data")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--core", type=int, default=None)
    options = parser.parse_args()
    common.pin(options.core)
    data = common.data_folder(options.data)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        if "score" in options.tasks:
            score_run.make("a", work / "a")
        sources = {"here": common.HERE.parent, "other": options.other.resolve()}
        for task in options.tasks.split(","):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
            for _ in range(options.repetitions):
                for name, source in sources.items():
                    found[name].append(once(source, task, data, work / "a", work / name))
            row = {"benchmark": "two_versions", "task": task, "what": TASKS[task]}
            for name, values in found.items():
                row |= {f"{name} seconds": round(statistics.median(s for s, _ in values), 4)}
                row |= {f"{name} MB": round(statistics.median(m for _, m in values), 1)}
            row["ratio"] = round(row["here seconds"] / row["other seconds"], 3)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
