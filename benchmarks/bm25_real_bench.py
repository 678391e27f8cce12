"""BM25 on SciFact and NFCorpus, Weir beside its peers in one run: indexing, queries per second, latency, quality.

    python benchmarks/bm25_real_bench.py --peers FOLDER [--data FOLDER] [--core 1] [--quick]

See README.md here for what is measured and how the peers are installed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
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
    out: dict[str, Any] = {}
    folder = Path(spec["work"])
    engine = make(spec["engine"])
    in_memory = ENGINES[spec["engine"]][3]
    baseline = memory_mb()
    for kind in (("memory",) if in_memory else ()) + (("disk",) if spec["disk"] else ()):
        times, cpu, peaks = [], [], []
        for number in range(spec["repetitions"] + 1):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            source = Path(shutil.copy(Path(spec["collection"]) / "corpus.jsonl", folder / "corpus.jsonl"))
            reset_peak()
            c, t = time.process_time(), time.perf_counter()
            engine.build(source, folder / "index" if kind == "disk" else None)
            if number:  # the first one compiles and warms
                times.append(time.perf_counter() - t)
                cpu.append(time.process_time() - c)
                peaks.append(memory_mb("VmHWM"))
        out[kind] = summary(times, cpu) | {"peak_mb": max(peaks), "above_baseline_mb": max(peaks) - baseline}
    size = sum(f.stat().st_size for f in (folder / "index").rglob("*") if f.is_file())
    return out | {"index_bytes": size, "versions": common.versions(*engine.distributions)}


def run_first(spec: dict[str, Any]) -> dict[str, Any]:
    """A fresh process: from corpus.jsonl to the first answer, with whatever was compiled before."""
    start = time.perf_counter()
    engine = make(spec["engine"])
    imported = time.perf_counter()
    folder = Path(spec["work"])
    engine.build(folder / "corpus.jsonl", folder / "index" if not ENGINES[spec["engine"]][3] else None)
    engine.one("a first question", 10)
    return {"import": imported - start, "rest": time.perf_counter() - imported, "peak_mb": memory_mb("VmHWM")}


def run_search(spec: dict[str, Any]) -> dict[str, Any]:
    """Batches and single queries on the index that `run_build` left."""
    engine = make(spec["engine"])
    folder = Path(spec["work"])
    engine.open(folder / "index", folder / "corpus.jsonl")
    names, texts = (long_queries if spec["queries"] == "long" else queries_of)(Path(spec["collection"]))
    # A slow engine is asked fewer queries.
    engine.search(engine.prepare(texts[:3]), 10)
    t = time.perf_counter()
    engine.search(engine.prepare(texts[:5]), 1000)
    each = (time.perf_counter() - t) / 5
    asked = texts[: max(5, min(len(texts), int(spec["seconds"] / each)))]
    out: dict[str, Any] = {"queries": len(asked), "batch": {}, "single_ms": {}}
    for k in KS:
        out["batch"][k] = batch_times(engine, asked, k, spec["repetitions"])
    for k in KS:
        out["single_ms"][k] = latencies(engine, asked, k)
    if spec["queries"] == "test" and spec["run"]:
        every = engine.answers(engine.search(engine.prepare(texts), 1000), 1000)
        Path(spec["run"]).write_text(json.dumps(dict(zip(names, every, strict=True))), encoding="utf-8")
    return out | {"peak_mb": memory_mb("VmHWM")}


def batch_times(engine: Any, texts: list[str], k: int, repetitions: int) -> dict[str, Any]:
    """Queries per second for all queries at once, their analysis left out and included."""
    prepared = engine.prepare(texts)
    search = timed(lambda: engine.search(prepared, k), repetitions)

    def whole() -> None:
        if hasattr(engine, "whole"):
            engine.whole(texts, k)
        else:
            engine.search(engine.prepare(texts), k)

    both = timed(whole, repetitions)
    rates = {"search": len(texts) / search["median"], "whole": len(texts) / both["median"]}
    return rates | {"search_seconds": search, "whole_seconds": both}


def latencies(engine: Any, texts: list[str], k: int, most: int = 300) -> dict[str, float]:
    """Milliseconds from a query's text to its answer, one query after the other."""
    taken = []
    for text in texts[:10]:
        engine.one(text, k)
    for text in texts[:most]:
        start = time.perf_counter()
        engine.one(text, k)
        taken.append(1000 * (time.perf_counter() - start))
    return {"p50": percentile(taken, 50), "p99": percentile(taken, 99), "n": len(taken)}


# In the parent


def quality(collection: Path, run: Path) -> dict[str, float]:
    """nDCG@10 and R@100 of an engine's own order, by Weir."""
    from weir.core.run import Run
    from weir.datasets.load import load
    from weir.measures import evaluate

    answers = json.loads(run.read_text(encoding="utf-8"))
    rankings = {q: {d: float(-rank) for rank, d in enumerate(docs)} for q, docs in answers.items()}
    scores = evaluate(Run.of(rankings), load(collection, "test").qrels, MEASURES)
    return dict(zip(MEASURES, scores.means().tolist(), strict=True))


def measure(name: str, python: str, collection: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one engine on one collection."""
    record: dict[str, Any] = {"engine": name, "collection": collection.name}
    with tempfile.TemporaryDirectory(prefix="bm25-") as work:
        spec = {"engine": name, "work": work, "collection": str(collection), "run": f"{work}/run.json"}
        spec |= {"repetitions": options.repetitions, "seconds": options.seconds, "disk": name != "weir without store"}

        def child(phase: str, **more: Any) -> dict[str, Any]:
            return common.run_child(__file__, spec | {"phase": phase} | more, python)

        record["build"] = child("build")
        if "error" in record["build"] or not spec["disk"]:
            return record
        kinds = ("test", "long") if collection.name == "scifact" else ("test",)
        for queries in kinds:
            record[queries] = child("search", queries=queries)
        if Path(spec["run"]).exists():
            record["quality"] = quality(collection, Path(spec["run"]))
        return record | {"first": starts(child, Path(work), collection, options)}


def starts(child: Any, work: Path, collection: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Three fresh processes from corpus.jsonl to a first answer."""
    found = []
    for _ in range(3 if collection.name == "scifact" and not options.quick else 1):
        shutil.rmtree(work)
        work.mkdir()
        shutil.copy(collection / "corpus.jsonl", work)
        found.append(child("first"))
    if any("error" in f for f in found):
        return found[-1]
    return {
        "process_seconds": summary([f["process_seconds"] for f in found]),
        "import_seconds": summary([f["import"] for f in found]),
        "peak_mb": max(f["peak_mb"] for f in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", help="folder with scifact/ and nfcorpus/ (else WEIR_BENCH_DATA)")
    parser.add_argument("--peers", help="folder of the peers' virtual environments (else WEIR_BENCH_PEERS)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, comma-separated")
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--core", type=int, help="the core everything runs on")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="most seconds for one batch of queries")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; writes no results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        spec = json.loads(options.child)
        phases = {"build": run_build, "first": run_first, "search": run_search}
        common.emit(phases[spec["phase"]](spec))
        return
    if options.quick:
        options.repetitions, options.seconds = 2, 0.2
    common.pin(options.core)
    run_all(options)


def run_all(options: argparse.Namespace) -> None:
    """Every engine that is installed, on every collection; prints a line for each."""
    about = common.machine() | {"core": options.core, "repetitions": options.repetitions}
    records = []
    for collection in options.collections.split(","):
        folder = common.data_folder(options.data) / collection
        if not (folder / "corpus.jsonl").exists():
            say(f"{folder} is not here; name the folder of collections with --data")
            continue
        for name in options.engines.split(","):
            venv = ENGINES[name][0]
            python = common.interpreter(options.peers, venv) if venv else sys.executable
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


def line(record: dict[str, Any]) -> str:
    """What was found, in a line."""
    build = record["build"]
    if "error" in build:
        return f"{record['collection']} {record['engine']}: {build['error']}"
    words = [f"{kind} {build[kind]['median']:.3f} s" for kind in ("memory", "disk") if kind in build]
    for queries in ("test", "long"):
        found = record.get(queries, {})
        words.append(found.get("error", ""))
        words += [f"{queries}@{k} {v['search']:,.0f}" for k, v in found.get("batch", {}).items()]
    return f"{record['collection']} {record['engine']}: " + " ".join(w for w in words if w)


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Markdown tables of everything measured."""
    out = []
    for collection in dict.fromkeys(r["collection"] for r in records):
        of = [r for r in records if r["collection"] == collection and "error" not in r["build"]]
        out += ["", f"### {collection}: index", "", *index_table(of)]
        for queries in ("test", "long"):
            searched = [r for r in of if "batch" in r.get(queries, {})]
            if searched:
                out += ["", f"### {collection}: {queries} queries", "", *search_table(searched, queries)]
    return out


def index_table(records: list[dict[str, Any]]) -> list[str]:
    rows = ["| engine | in memory, s | on disk, s | peak MB (above the imports) | index MB | fresh process, s | its peak MB |"]
    rows.append("|---" * 7 + "|")
    for r in records:
        build, first = r["build"], r.get("first", {})
        kinds = [k for k in ("memory", "disk") if k in build]
        seconds = [f"{build[k]['median']:.3f}" if k in build else "" for k in ("memory", "disk")]
        peak = build[kinds[0]]
        cells = [*seconds, f"{peak['peak_mb']:.0f} ({peak['above_baseline_mb']:.0f})", f"{build['index_bytes'] / 1e6:.1f}"]
        cells += [f"{first['process_seconds']['median']:.2f}", f"{first['peak_mb']:.0f}"] if "process_seconds" in first else ["", ""]
        rows.append(f"| {r['engine']} | " + " | ".join(cells) + " |")
    return rows


def search_table(records: list[dict[str, Any]], queries: str) -> list[str]:
    rows = ["| engine | queries/s at k = " + " / ".join(map(str, KS)) + " | with analysis | p50 / p99 ms at k = 10 | at k = 1000 | nDCG@10 | R@100 |"]
    rows.append("|---" * 7 + "|")
    for r in records:
        found = r[queries]
        rates = [" / ".join(f"{found['batch'][str(k)][kind]:,.0f}" for k in KS) for kind in ("search", "whole")]
        single = [f"{found['single_ms'][k]['p50']:.3f} / {found['single_ms'][k]['p99']:.3f}" for k in ("10", "1000")]
        scores = r.get("quality", {}) if queries == "test" else {}
        shown = [f"{scores[m]:.4f}" if m in scores else "" for m in MEASURES]
        rows.append(f"| {r['engine']} | " + " | ".join([*rates, *single, *shown]) + " |")
    return rows


if __name__ == "__main__":
    main()
