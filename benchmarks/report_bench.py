"""The report of a large results folder: time and memory to build it, and how fast its page answers in a browser.

    python benchmarks/report_bench.py [--systems 30] [--scale 1.0] [--repetitions 5] [--work FOLDER]

The folder is synthetic: datasets with BEIR's numbers of test queries (scale: times so many, 10,000 at most), systems of
unlike strength, one measure. Each build is a process of its own with one thread, in seconds of wall time with its peak memory. In
Chromium: milliseconds from the navigation to the first row of the query browser, and to draw another query and another
collection. Without playwright or Chromium the page is not opened. One line goes to results/report_bench.jsonl.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ONE_THREAD, append, machine, versions

QUERIES = {
    "msmarco": 6980, "trec-covid": 50, "nfcorpus": 323, "bioasq": 500, "nq": 3452, "hotpotqa": 7405, "fiqa": 648,
    "signal1m": 97, "trec-news": 57, "robust04": 249, "arguana": 1406, "touche": 49, "cqadupstack": 10000,
    "quora": 10000, "dbpedia": 400, "scidocs": 1000, "fever": 6666, "climate-fever": 1535, "scifact": 300,
}  # fmt: skip
BUILD = """
import resource, sys, time
from weir.plugins.report.report import report
begun = time.perf_counter()
report(sys.argv[1], audit=False).save(sys.argv[2])
print(time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def make(folder: Path, systems: int, scale: float) -> int:
    """Write finished cells with drawn scores; returns the number of values."""
    import numpy as np

    from weir.core.run import Run
    from weir.core.scores import Scores
    from weir.core.strings import Ids
    from weir.experiment.stages import Record, write_record
    from weir.files.integrity import Checksum
    from weir.files.score_files import write_scores
    from weir.files.write import write_run
    from weir.stats.score_rows import result_rows

    rng = np.random.default_rng(1)
    gains = 1 / np.log2(np.arange(2, 12))
    total = 0
    for number, (dataset, known) in enumerate(QUERIES.items()):
        count = max(4, min(10_000, int(known * scale)))
        names = [f"{dataset}-{q}" for q in range(count)]
        run = Run.of({name: {"d": 1.0} for name in names})
        hardness = rng.normal(0, 1, count)
        for system in range(systems):
            name = f"system-{system:02}" if system else "bm25"
            place = folder / dataset / name
            place.mkdir(parents=True)
            write_run(run, place / "run.trec")
            strength = rng.normal(0.05 * system, 0.3) - hardness + rng.normal(0, 0.7, count)
            rank = np.clip((8 - 4 * strength).astype(int), 0, 10)
            values = np.where(rank < 10, gains[np.minimum(rank, 9)], 0.0)
            scores = Scores(("nDCG@10",), Ids.of(names), values[None], np.ones(count, bool), judged_at_10=0.3)
            write_scores(scores, place / "scores-1.jsonl")
            made = {"when": "2026-11-26T00:00:00", "weir": "0.2.0", "processor": "synthetic", "cores": 2}
            cost = {"seconds": 1.0, "peak_mb": 1.0, "queries": count, "single_query_ms": {"p50": 1.0 + system, "p95": 2.0 + system,
                    "p99": 3.0 + system, "mean": 1.0, "queries": 100}}  # fmt: skip
            declared = {"corpus": f"c{number}", "queries": "q", "k": 1000, "system": {"system": name}}
            ran = Record(
                "run", name, declared, {"run.trec": Checksum.of(place / "run.trec")}, (), made, cost, cost
            )
            write_record(place / "stage.json", ran)
            facts = {"dataset": dataset, "split": "test", "fingerprint": "f", "self_match": "keep", "k": 1000,
                     "queries": count, "answered": count,
                     "rows": [row.to_dict() for row in result_rows(scores, dataset, name)]}  # fmt: skip
            scored = {
                "run": ran.stage.key,
                "qrels": "j",
                "interval": {"level": 0.95},
                "measures": {"nDCG@10": 1},
            }
            files = {"scores-1.jsonl": Checksum.of(place / "scores-1.jsonl")}
            inputs = (("run", place.name),)
            write_record(
                place / "scores-1.json", Record("scores", name, scored, files, inputs, made, {}, facts)
            )
            total += count
    return total


def opened(page_file: Path, repetitions: int) -> dict[str, Any]:
    """Milliseconds until the page can be used, and to show another query and another collection."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    chromium = shutil.which("chromium")
    if chromium is None:
        return {}
    taken: dict[str, list[float]] = {"interactive ms": [], "query ms": [], "collection ms": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(repetitions):
            page = browser.new_page()
            begun = time.perf_counter()
            page.goto(page_file.as_uri())
            page.wait_for_selector(".weir-row", timeout=60_000)
            taken["interactive ms"].append(1e3 * (time.perf_counter() - begun))
            press = "() => { const l = document.querySelector('.weir-list'); const t = performance.now();"
            press += "l.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}));"
            taken["query ms"].append(
                page.evaluate(press + "void l.offsetHeight; return performance.now() - t; }")
            )
            turn = "async () => { const s = document.querySelector('.weir-tools select'); s.value = s.options.length - 1;"
            turn += "const before = document.querySelector('.weir-view h3').textContent; const t = performance.now();"
            turn += "s.dispatchEvent(new Event('change')); while (document.querySelector('.weir-view h3').textContent === before)"
            turn += "await new Promise(requestAnimationFrame); return performance.now() - t; }"
            taken["collection ms"].append(page.evaluate(turn))
            page.close()
        browser.close()
    return {name: round(statistics.median(values), 1) for name, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.work or Path(temporary)) / "results"
        values = make(folder, options.systems, options.scale)
        page = folder.parent / "report.html"
        seconds, memory = [], []
        for _ in range(options.repetitions):
            done = subprocess.run(
                [sys.executable, "-c", BUILD, str(folder), str(page)],
                env=os.environ | ONE_THREAD,
                capture_output=True,
                text=True,
                check=True,
            )
            one, peak = map(float, done.stdout.split())
            seconds.append(one)
            memory.append(peak)
        row = {
            "datasets": len(QUERIES), "systems": options.systems, "values": values,
            "build s": round(statistics.median(seconds), 2), "peak MB": round(max(memory)),
            "page MB": round(page.stat().st_size / 1e6, 2), **opened(page, options.repetitions),
        }  # fmt: skip
    print(row)
    append("report_bench", {"machine": machine(), **row, "versions": versions("weir-ir", "playwright")})


if __name__ == "__main__":
    main()
