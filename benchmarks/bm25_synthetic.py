"""BM25 on synthetic Zipfian collections, Weir beside its peers in one run: indexing, queries per second, latency.

    python benchmarks/bm25_synthetic.py --peers FOLDER [--sizes 100000,1000000] [--work FOLDER] [--core 1]

Documents have 60 words on average (normal, deviation 22, at least 12), drawn with p(rank) ~ 1 / (rank + 2.7)^1.08
from 30 * sqrt(60 * documents) words; one word in five repeats an earlier one of its document. Queries are 2 to 8
distinct words: "same" from the same distribution, "stop" without the 100 most frequent words. Text is split at
blanks and nothing else, so every engine sees the same terms. The folder of work keeps the collections for later runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
from bm25_synthetic_engines import ENGINES, KS
from common import memory_mb, percentile, reset_peak, say, summary, timed

KINDS = ("stop", "same")
WORDS = 60
CHECKED = 50


# The collections


def name_of(rank: int) -> str:
    """A word of letters only, which no analyzer cuts."""
    letters = ""
    while rank or not letters:
        rank, digit = divmod(rank, 26)
        letters = chr(97 + digit) + letters
    return f"q{letters}x"


def make_collection(size: int, work: Path) -> Path:
    """Folder with corpus.txt (a document a line) and queries.json ({kind: {"text": [...]}}); made once."""
    import numpy as np

    folder = work / str(size)
    if (folder / "DONE").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(size)
    weights = 1.0 / (np.arange(int(30 * (WORDS * size) ** 0.5)) + 2.7) ** 1.08
    cumulated = np.cumsum(weights / weights.sum())
    names = np.array([name_of(rank) for rank in range(len(weights))], object)
    used = np.zeros(len(weights), bool)

    def draw(shape: Any) -> Any:
        return np.minimum(np.searchsorted(cumulated, rng.random(shape) * cumulated[-1]), len(names) - 1)

    with (folder / "corpus.txt").open("w", encoding="utf-8") as file:
        for start in range(0, size, 20000):
            rows = min(20000, size - start)
            lengths = np.clip(np.round(rng.normal(WORDS, 22, rows)), 12, 150).astype(int)
            words = draw((rows, 150))
            again = rng.random(words.shape) < 0.2
            source = (rng.random(words.shape) * np.arange(150)).astype(int)
            for j in range(1, 150):
                words[:, j] = np.where(again[:, j], words[np.arange(rows), source[:, j]], words[:, j])
            for row, length in zip(words, lengths, strict=True):
                used[row[:length]] = True
                file.write(" ".join(names[row[:length]]) + "\n")
    queries = {kind: {"text": make_queries(kind == "stop", rng, draw, names, used)} for kind in KINDS}
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    (folder / "DONE").touch()
    return folder


def make_queries(stop: bool, rng: Any, draw: Any, names: Any, used: Any) -> list[str]:
    """A thousand queries of 2 to 8 distinct words that occur; stop: none of the 100 most frequent."""
    texts = []
    for _ in range(1000):
        chosen: list[int] = []
        wanted = int(rng.integers(2, 9))
        while len(chosen) < wanted:
            rank = int(draw(None))
            if used[rank] and rank not in chosen and not (stop and rank < 100):
                chosen.append(rank)
        texts.append(" ".join(names[chosen]))
    return texts


# In the child: one engine, one collection


def run_build(spec: dict[str, Any]) -> dict[str, Any]:
    """From a file of lines to an index on disk; the collection is far too large to warm up on."""
    _, kind, arguments, _ = ENGINES[spec["engine"]]
    engine, folder, at = kind(*arguments), Path(spec["folder"]), Path(spec["at"])
    if spec["engine"] == "weir":  # numba compiles on a machine's first run only; that time is not indexing
        small = at.parent / "small"
        small.mkdir(exist_ok=True)
        (small / "corpus.txt").write_text("a b\nb c\n", encoding="utf-8")
        engine.build(small, small / "index")
    times, cpu = [], []
    baseline = memory_mb()
    reset_peak()
    for _ in range(spec["builds"]):
        shutil.rmtree(at, ignore_errors=True)
        c, t = time.process_time(), time.perf_counter()
        engine.build(folder, at)
        times.append(time.perf_counter() - t)
        cpu.append(time.process_time() - c)
    size = sum(f.stat().st_size for f in at.rglob("*") if f.is_file())
    memory = {"baseline_mb": baseline, "peak_mb": memory_mb("VmHWM"), "index_bytes": size}
    return summary(times, cpu) | memory | {"versions": common.versions(*engine.distributions)}


def run_search(spec: dict[str, Any]) -> dict[str, Any]:
    """Batches and single queries on the index that `run_build` left."""
    _, kind, arguments, _ = ENGINES[spec["engine"]]
    engine, folder = kind(*arguments), Path(spec["folder"])
    engine.open(Path(spec["at"]), folder)
    queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    out: dict[str, Any] = {"resident_mb": memory_mb(), "k": {}}
    for what in KINDS:
        texts = queries[what]["text"]
        engine.search(engine.prepare(texts[:10]), 10)
        for k in KS:
            t = time.perf_counter()
            engine.search(engine.prepare(texts[10:30]), k)
            each = (time.perf_counter() - t) / 20
            asked = texts[: max(20, min(len(texts), int(spec["seconds"] / each)))]
            prepared = engine.prepare(asked)
            times = timed(lambda p=prepared, k=k: engine.search(p, k), spec["repetitions"])
            rate = {"queries": len(asked), "qps": len(asked) / times["cpu_median"], "seconds": times}
            out["k"][f"{what}@{k}"] = rate | latencies(engine, asked[:300], k)
            found = engine.scores(engine.search(engine.prepare(texts[:CHECKED]), k))
            out["k"][f"{what}@{k}"]["scores"] = [
                [row[0], row[min(len(row), k) - 1], len(row)] for row in found
            ]
    return out | {"peak_mb": memory_mb("VmHWM")}


def latencies(engine: Any, texts: list[str], k: int) -> dict[str, float]:
    """Milliseconds from a query's text to its answer, one query after the other."""
    taken = []
    for text in texts:
        start = time.perf_counter()
        engine.one(text, k)
        taken.append(1000 * (time.perf_counter() - start))
    return {"p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99)}


# In the parent


def disagreement(record: dict[str, Any], reference: dict[str, Any] | None) -> float | None:
    """Largest relative difference to the reference's best and k-th scores; None where formulas differ."""
    if reference is None or record["engine"] not in ("bm25s numba",):
        return None
    worst = 0.0
    for key, found in record["search"]["k"].items():
        for mine, theirs in zip(found["scores"], reference["search"]["k"][key]["scores"], strict=True):
            worst = max(worst, *(abs(a - b) / b for a, b in zip(mine, theirs, strict=True)))
    return worst


def measure(name: str, python: str, folder: Path, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one engine on one collection; engines of one class share an index."""
    kind = ENGINES[name][1].__name__
    spec = {"engine": name, "folder": str(folder), "at": str(work / folder.name / kind)}
    spec |= {"builds": options.builds, "repetitions": options.repetitions, "seconds": options.seconds}
    record: dict[str, Any] = {"engine": name, "documents": int(folder.name)}
    if not Path(spec["at"]).exists():
        Path(spec["at"]).parent.mkdir(exist_ok=True)
        record["build"] = common.run_child(__file__, spec | {"phase": "build"}, python, 1800)
        if "error" in record["build"]:
            return record
    record["search"] = common.run_child(__file__, spec | {"phase": "search"}, python, 1800)
    return record


def without_scores(record: dict[str, Any]) -> dict[str, Any]:
    """The record to keep: scores serve the comparison only."""
    search = record.get("search", {})
    kept = {
        key: {f: v for f, v in found.items() if f != "scores"} for key, found in search.get("k", {}).items()
    }
    return record | {"search": search | {"k": kept}}


def line(record: dict[str, Any]) -> str:
    """What was found, in a line."""
    words = [f"{record['documents']:,} {record['engine']}:"]
    build, search = record.get("build", {}), record.get("search", {})
    words += [x["error"] for x in (build, search) if "error" in x]
    if "median" in build:
        size, peak = build["index_bytes"] / 1e6, build["peak_mb"]
        words.append(f"indexed in {build['median']:.2f} s, {size:.0f} MB, peak {peak:.0f} MB;")
    for key, found in search.get("k", {}).items():
        words.append(f"{key} {found['qps']:,.0f}/s ({found['p50_ms']:.2f}, {found['p99_ms']:.2f} ms)")
    if record.get("disagreement") is not None:
        words.append(f"scores differ by at most {record['disagreement']:.1e}")
    return " ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", help="folder of the peers' virtual environments (else WEIR_BENCH_PEERS)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, comma-separated")
    parser.add_argument("--sizes", default="100000", help="documents, comma-separated")
    parser.add_argument("--work", help="folder that keeps the collections; else a temporary one")
    parser.add_argument("--core", type=int, help="the core everything runs on")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--builds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="most seconds for one batch of queries")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; writes no results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        spec = json.loads(options.child)
        common.emit({"build": run_build, "search": run_search}[spec["phase"]](spec))
        return
    if options.quick:
        options.repetitions, options.seconds = 2, 0.3
    common.pin(options.core)
    with tempfile.TemporaryDirectory(prefix="bm25-synthetic-") as temporary:
        for size in options.sizes.split(","):
            folder = make_collection(int(size), Path(options.work or temporary))
            run_size(folder, Path(temporary), options)


def run_size(folder: Path, work: Path, options: argparse.Namespace) -> None:
    """Every engine that is installed, on one collection."""
    about = common.machine() | {"core": options.core, "repetitions": options.repetitions}
    reference = None
    for name in options.engines.split(","):
        venv, _, _, largest = ENGINES[name]
        python = common.interpreter(options.peers, venv) if venv else sys.executable
        if python is None or int(folder.name) > largest:
            say(f"{name}: {'not installed' if python is None else 'cannot index this many'}; left out")
            continue
        record = measure(name, python, folder, work, options) | {"machine": about}
        if "k" in record.get("search", {}):
            record["disagreement"] = disagreement(record, reference)
            reference = record if name == "weir" else reference
        print(line(record), flush=True)
        if not options.quick:
            common.append("bm25_synthetic", without_scores(record))


if __name__ == "__main__":
    main()
