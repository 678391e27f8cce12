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
    "late": "20 queries of 32 tokens in 5,000 documents of 40 tokens of 64 numbers, by MaxSim, 100 documents each",
    "rerank": "the first 100 documents of 323 queries of NFCorpus scored again by rm3",
    "fuse": "rrf of two rankings of 323 queries of NFCorpus, 1,000 documents each",
    "dicts": "dicts of 300 queries, 100 documents each, scored with three measures, ten times",
    "compare": "three systems on 300 queries, 100,000 permutations each pair",
    "cell": "weir run of bm25 on brook-news into a new folder, three measures",
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

def late():
    import numpy as np
    try:
        from weir.plugins.encoders import maxsim_search as vectors
    except ImportError:  # where it stood before
        from weir.systems.vectors import maxsim_search as vectors
    rng = np.random.default_rng(1)
    tokens, queries = (rng.standard_normal((n, 64)).astype(np.float32) for n in (200_000, 640))
    if hasattr(vectors, "HeldTokens"):  # of version 0.2
        rows = vectors.HeldTokens(np.full(5_000, 40, np.int64), tokens)
        query = vectors.TokenQueries(np.arange(0, 641, 32), queries)
    else:
        rows = vectors.Ragged(np.arange(0, 200_001, 40), tokens)
        query = vectors.Ragged(np.arange(0, 641, 32), queries)
    return lambda: vectors.search_tokens(rows, query, 100, np.arange(5_000, dtype=np.int32))

def rankings(*names):
    import weir
    from weir.systems import parse_system
    ds = weir.load(data / "nfcorpus")
    return ds, [parse_system(name).index(ds.corpus) for name in names]

def rerank():
    ds, (system,) = rankings("bm25 >> score(rm3)")
    return lambda: system.search(ds.queries, 100)

def fuse():
    import weir
    ds, systems = rankings("bm25", "rm3")
    runs = [system.search(ds.queries, 1000) for system in systems]
    return lambda: weir.fuse(runs, "rrf", 1000)

def dicts():
    import random
    import weir
    draw = random.Random(1)
    qrels = {f"q{q}": {f"d{draw.randrange(500)}": draw.randrange(3) for _ in range(30)} for q in range(300)}
    found = {q: {f"d{d}": draw.random() for d in draw.sample(range(500), 100)} for q in qrels}
    measures = ["nDCG@10", "R@100", "AP@1000"]
    return lambda: [weir.evaluate(qrels, found, measures) for _ in range(10)]

def compare():
    import random
    import weir
    draw = random.Random(1)
    qrels = {f"q{q}": {f"d{d}": 1 for d in range(3)} for q in range(300)}
    runs = {s: {q: {f"d{d}": draw.random() for d in range(20)} for q in qrels} for s in "abc"}
    return lambda: weir.compare(qrels, runs, ["nDCG@10"])

def cell():
    import contextlib
    import io
    import tempfile
    from weir.cli.main import main
    def made():
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            main(["run", "-q", "-d", "brook-news", "-s", "bm25", "-m", "nDCG@10", "-m", "R@100", "-m", "RR", "-o", folder + "/r"])
    return made

made = {"score": score, "index": lambda: lexical(""), "search": lambda: lexical("bm25"), "rm3": lambda: lexical("rm3"),
        "dense": dense, "late": late, "rerank": rerank, "fuse": fuse, "dicts": dicts, "compare": compare,
        "cell": cell}[task]()
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
        if "score" in options.tasks.split(","):
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
