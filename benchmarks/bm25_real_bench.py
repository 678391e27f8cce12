"""BM25 on SciFact and NFCorpus, Weir beside its peers in one run: indexing, queries per second, latency, quality.

    python benchmarks/bm25_real_bench.py --peers FOLDER [--data FOLDER] [--core 1] [--quick]

See README.md here for what is measured and how the peers are installed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
from bm25_engines import ENGINES, make, read_jsonl
from common import memory_mb, percentile, reset_peak, say, summary, timed

KS = (10, 100, 1000)
COLLECTIONS = ("scifact", "nfcorpus")
MEASURES = ("nDCG@10", "R@100")
LONG = 190  # words, as ArguAna's queries have


def queries_of(folder: Path) -> tuple[list[str], list[str]]:
    """Names and texts of the test queries."""
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        judged = {line.split("\t", 1)[0] for line in file}
    found = {}
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        for line in file:
            query = json.loads(line)
            if query["_id"] in judged:
                found[query["_id"]] = " ".join(query["text"].split())
    return list(found), list(found.values())


def long_queries(folder: Path, count: int = 300) -> tuple[list[str], list[str]]:
    """The first 190 words of documents: as in ArguAna, a query is a passage of the collection."""
    whole = [(name, text.split()) for name, text in read_jsonl(folder / "corpus.jsonl")]
    chosen = random.Random(0).sample([(n, w) for n, w in whole if len(w) >= LONG], count)
    return [n for n, _ in chosen], [" ".join(w[:LONG]) for _, w in chosen]


# In the child: one engine, one collection


def run_build(spec: dict[str, Any]) -> dict[str, Any]:
    """From corpus.jsonl to a searchable index, again and again; the last one stays for the searches."""
    entry, folder = ENGINES[spec["engine"]], Path(spec["work"])
    engine = make(spec["engine"])
    out: dict[str, Any] = {"versions": common.versions(*entry.kind.distributions)}
    for kind in ("memory",) * entry.in_memory + ("disk",) * entry.on_disk:
        wall, cpu, peaks = [], [], []
        for _ in range(spec["repetitions"] + 1):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            source = Path(shutil.copy(Path(spec["collection"]) / "corpus.jsonl", folder / "corpus.jsonl"))
            reset_peak()
            c, t = time.process_time(), time.perf_counter()
            engine.build(source, folder / "index" if kind == "disk" else None)
            wall.append(time.perf_counter() - t)
            cpu.append(time.process_time() - c)
            peaks.append(memory_mb("VmHWM"))
        # The first one loads, or compiles, what the others find ready.
        out[kind] = summary(wall[1:] or wall, cpu[1:] or cpu) | {"peak_mb": max(peaks[1:] or peaks)}
    out["index_bytes"] = sum(f.stat().st_size for f in (folder / "index").rglob("*") if f.is_file())
    return out


def run_first(spec: dict[str, Any]) -> dict[str, Any]:
    """A fresh process: from corpus.jsonl to the first answer, with whatever was compiled before."""
    entry, folder = ENGINES[spec["engine"]], Path(spec["work"])
    engine = make(spec["engine"])
    engine.build(tiny(folder), None if entry.in_memory else folder / "tiny")
    engine.one("a first question", 10)
    ready, seconds = memory_mb(), time.process_time()
    reset_peak()
    engine.build(folder / "corpus.jsonl", None if entry.in_memory else folder / "index")
    engine.one("a second question", 10)
    peak = memory_mb("VmHWM")
    return {"ready_seconds": seconds, "seconds": time.process_time(), "ready_mb": ready, "peak_mb": peak}


def tiny(folder: Path) -> Path:
    """A collection of a few documents, to make an engine load all it needs."""
    path = folder / "tiny.jsonl"
    documents = [{"_id": str(n), "title": "", "text": f"a first question and word {n}"} for n in range(20)]
    path.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    return path


def run_search(spec: dict[str, Any]) -> dict[str, Any]:
    """Batches and single queries on the index that `run_build` left."""
    engine, folder = make(spec["engine"]), Path(spec["work"])
    engine.open(folder / "index", folder / "corpus.jsonl")
    names, texts = (long_queries if spec["queries"] == "long" else queries_of)(Path(spec["collection"]))
    engine.search(engine.prepare(texts[:2]), 10)
    start = time.process_time()
    engine.search(engine.prepare(texts[:2]), 1000)
    each = (time.process_time() - start) / 2
    asked = texts[: max(2, min(len(texts), int(spec["seconds"] / each)))]  # a slow engine is asked fewer
    out: dict[str, Any] = {"queries": len(asked), "batch": {}, "single_ms": {}}
    for k in KS:
        out["batch"][k] = batch_times(engine, asked, k, spec["repetitions"])
    for k in KS:
        out["single_ms"][k] = latencies(engine, asked, k, 2 * spec["seconds"])
    if spec["queries"] == "test":
        every = engine.answers(engine.search(engine.prepare(texts), 1000), 1000)
        Path(spec["run"]).write_text(json.dumps(dict(zip(names, every, strict=True))), encoding="utf-8")
    return out | {"peak_mb": memory_mb("VmHWM")}


def batch_times(engine: Any, texts: list[str], k: int, repetitions: int) -> dict[str, Any]:
    """Seconds for all queries at once, their analysis left out (search) and included (whole)."""
    prepared = engine.prepare(texts)

    def whole() -> None:
        if hasattr(engine, "whole"):
            engine.whole(texts, k)
        else:
            engine.search(engine.prepare(texts), k)

    found = {
        "search": timed(lambda: engine.search(prepared, k), repetitions),
        "whole": timed(whole, repetitions),
    }
    return found | {f"{name}_per_second": len(texts) / times["cpu_median"] for name, times in found.items()}


def latencies(engine: Any, texts: list[str], k: int, budget: float) -> dict[str, float]:
    """Milliseconds from a query's text to its answer, one query after the other: of the processor, and of the wall."""
    cpu, wall, begun = [], [], time.process_time()
    for number, text in enumerate([*texts[:2], *texts]):
        c, t = time.process_time(), time.perf_counter()
        engine.one(text, k)
        if number >= min(2, len(texts)):
            cpu.append(1000 * (time.process_time() - c))
            wall.append(1000 * (time.perf_counter() - t))
        if cpu and time.process_time() - begun > budget:
            break
    found = {f"p{p}": percentile(cpu, p) for p in (50, 99)}
    return found | {f"wall_p{p}": percentile(wall, p) for p in (50, 99)} | {"n": len(cpu)}


# In the parent


def quality(collection: Path, run: Path) -> dict[str, float]:
    """nDCG@10 and R@100 of an engine's own order, by Weir."""
    from weir.core.run import Run
    from weir.datasets.load import load
    from weir.measures import score_run

    answers = json.loads(run.read_text(encoding="utf-8"))
    rankings = {q: {d: float(-rank) for rank, d in enumerate(docs)} for q, docs in answers.items()}
    scores = score_run(load(collection, "test").qrels, Run.of(rankings), MEASURES)
    return dict(zip(MEASURES, scores.mean_values().tolist(), strict=True))


def measure(name: str, python: str, collection: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one engine on one collection."""
    entry = ENGINES[name]
    record: dict[str, Any] = {"engine": name, "collection": collection.name}
    with tempfile.TemporaryDirectory(prefix="bm25-") as folder:
        work = Path(folder)
        spec = {
            "engine": name,
            "work": f"{work}/work",
            "collection": str(collection),
            "run": f"{work}/run.json",
        }
        spec |= {"repetitions": options.repetitions, "seconds": options.seconds}

        def child(phase: str, **more: Any) -> dict[str, Any]:
            return common.run_child(__file__, spec | {"phase": phase} | more, python)

        record["build"] = child("build", **({"repetitions": 0} if entry.indexes_as else {}))
        if "error" in record["build"]:
            return record
        if entry.on_disk:
            for queries in ("test", "long") if collection.name == "scifact" else ("test",):
                record[queries] = child("search", queries=queries)
        if Path(spec["run"]).exists():
            record["quality"] = quality(collection, Path(spec["run"]))
        if not entry.indexes_as:
            record["first"] = starts(child, Path(spec["work"]), collection, 1 if options.quick else 3)
    return record


def starts(child: Any, work: Path, collection: Path, times: int) -> dict[str, Any]:
    """Fresh processes from corpus.jsonl to a first answer: medians."""
    found = []
    for _ in range(times):
        shutil.rmtree(work)
        work.mkdir()
        shutil.copy(collection / "corpus.jsonl", work)
        found.append(child("first"))
        if "error" in found[-1]:
            return found[-1]
    return {key: statistics.median(f[key] for f in found) for key in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", help="folder with scifact/ and nfcorpus/ (else WEIR_BENCH_DATA)")
    parser.add_argument("--peers", help="folder of the peers' virtual environments (else WEIR_BENCH_PEERS)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, comma-separated")
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--core", type=int, help="the core everything runs on")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="most seconds for one batch of queries")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; writes no results")
    parser.add_argument("--tables", action="store_true", help="only print the tables of the latest results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        spec = json.loads(options.child)
        phases = {"build": run_build, "first": run_first, "search": run_search}
        common.emit(phases[spec["phase"]](spec))
        return
    if options.tables:
        print("\n".join(latest()))
        return
    if options.quick:
        options.repetitions, options.seconds = 2, 0.2
    common.pin(options.core)
    run_all(options)


def run_all(options: argparse.Namespace) -> None:
    """Every engine that is installed, on every collection; a line for each as it ends, tables at the end."""
    about = common.machine() | {"core": options.core, "repetitions": options.repetitions}
    records = []
    for collection in options.collections.split(","):
        folder = common.data_folder(options.data) / collection
        if not (folder / "corpus.jsonl").exists():
            say(f"{folder} is not here; name the folder of collections with --data")
            continue
        for name in options.engines.split(","):
            venv = ENGINES[name].venv
            python = common.interpreter(options.peers, venv) or (sys.executable if venv == "weir" else None)
            if python is None:
                say(f"{name}: no virtual environment '{venv}' in the folder of peers; left out")
                continue
            record = measure(name, python, folder, options) | {"machine": about}
            records.append(record)
            say(line(record))
            if not options.quick:
                common.append("bm25_real", record)
    for text in tables(records):
        print(text)


def latest() -> list[str]:
    """The tables of each engine's newest results, and what they were measured on."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for text in (common.RESULTS / "bm25_real.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        found[record["collection"], record["engine"]] = record
    about = [r["machine"] for r in found.values()]
    days = sorted({m["time"][:10] for m in about})
    load = " to ".join(str(f(m["load"] for m in about)) for f in (min, max))
    installed = {n: v for r in found.values() for n, v in r["build"].get("versions", {}).items()}
    says = [
        f"{about[-1]['cpu']}, one core of {about[-1]['cores']}, load at the start {load}, {' to '.join(days)}."
    ]
    says.append(", ".join(f"{name} {version}" for name, version in sorted(installed.items())) + ".")
    return [*says, *tables(list(found.values()))]


def line(record: dict[str, Any]) -> str:
    """What was found, in a line."""
    build = record["build"]
    words = [build.get("error", "")]
    words += [f"{kind} {build[kind]['cpu_median']:.3f} s" for kind in ("memory", "disk") if kind in build]
    for queries in ("test", "long"):
        found = record.get(queries, {})
        words.append(found.get("error", ""))
        words += [f"{queries}@{k} {v['search_per_second']:,.0f}" for k, v in found.get("batch", {}).items()]
    words.append(record.get("first", {}).get("error", ""))
    return f"{record['collection']} {record['engine']}: " + " ".join(w for w in words if w)


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Markdown tables of everything measured."""
    out = []
    for collection in dict.fromkeys(r["collection"] for r in records):
        of = [r for r in records if r["collection"] == collection and "error" not in r["build"]]
        out += ["", f"### {collection}: from corpus.jsonl to a searchable index", ""]
        out += index_table([r for r in of if not ENGINES[r["engine"]].indexes_as])
        for queries in ("test", "long"):
            searched = [r for r in of if "batch" in r.get(queries, {})]
            if searched:
                out += ["", f"### {collection}: {queries} queries", "", *search_table(searched, queries)]
    return out


def index_table(records: list[dict[str, Any]]) -> list[str]:
    """Seconds and memory of indexing."""
    heads = [
        "engine",
        "in memory, s",
        "on disk, s",
        "index, MB",
        "fresh process: ready, s",
        "to the first answer, s",
    ]
    heads += ["ready, MB", "peak, MB", "taken by indexing, MB"]
    rows = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for r in records:
        build, first = r["build"], r.get("first", {})
        cells = [f"{build[kind]['cpu_median']:.3f}" if kind in build else "" for kind in ("memory", "disk")]
        cells.append(f"{build['index_bytes'] / 1e6:.1f}" if build["index_bytes"] else "")
        if "ready_mb" in first:
            cells += [f"{first['ready_seconds']:.2f}", f"{first['seconds']:.2f}", f"{first['ready_mb']:.0f}"]
            cells += [f"{first['peak_mb']:.0f}", f"{first['peak_mb'] - first['ready_mb']:.0f}"]
        rows.append(f"| {r['engine']} | " + " | ".join(cells) + " |")
    return rows


def search_table(records: list[dict[str, Any]], queries: str) -> list[str]:
    """Queries per second, milliseconds of single queries, and quality."""
    heads = ["engine", "queries/s, k = " + " / ".join(map(str, KS)), "with their analysis"]
    heads += ["one query, k = 10: p50 / p99 ms", "k = 1000", *(MEASURES if queries == "test" else ())]
    rows = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for r in records:
        found, scores = r[queries], r.get("quality", {})
        cells = [
            " / ".join(f"{found['batch'][str(k)][kind + '_per_second']:,.0f}" for k in KS)
            for kind in ("search", "whole")
        ]
        cells += [
            f"{found['single_ms'][k]['p50']:.3f} / {found['single_ms'][k]['p99']:.3f}" for k in ("10", "1000")
        ]
        cells += [f"{scores[m]:.4f}" for m in MEASURES] if queries == "test" and scores else []
        rows.append(f"| {r['engine']} | " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    main()
