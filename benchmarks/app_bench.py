"""The page of a large results folder: how long the server takes to answer, and how much memory.

    python benchmarks/app_bench.py [--systems 30] [--queries 10000] [--depth 1000] [--repetitions 20] [--work FOLDER]

The folder is that of report_bench.py with 19 datasets of so many queries each; on one of them four systems have
rankings of so many documents. With --work it is made once. The server runs in a process of its own; each address is
asked once, and then so many times: the first answer and the median and 99th percentile of the others, in milliseconds.
One line goes to results/app_bench.jsonl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np

from common import append, machine, versions
from report_bench import QUERIES, make

TOKEN = "benchmarkbenchmark"
DEEP = "quora"


def deepen(folder: Path, systems: int, queries: int, depth: int) -> None:
    """Give some systems rankings of many documents on one dataset."""
    from weir.core.run import Run
    from weir.core.strings import Ids
    from weir.experiment.stages import read_record, write_record
    from weir.files.integrity import Checksum
    from weir.files.write import write_run

    names, documents = (
        Ids.of(f"{DEEP}-{q}" for q in range(queries)),
        Ids.of(f"document-{n}" for n in range(100_000)),
    )
    rng = np.random.default_rng(2)
    for place in sorted((folder / DEEP).iterdir())[:systems]:
        first = rng.integers(0, len(documents), queries)[:, None]
        doc = ((first + np.arange(depth) * 7919) % len(documents)).astype(np.int32)
        query = np.repeat(np.arange(queries, dtype=np.int32), depth)
        score = np.tile(np.linspace(30, 1, depth), queries)
        write_run(Run.from_columns(names, documents, query, doc.reshape(-1), score), place / "run.trec")
        record = read_record(place / "stage.json")
        files = {"run.trec": Checksum.of(place / "run.trec")}
        write_record(place / "stage.json", replace(record, files=files))


def resident_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def asked(base: str, path: str, repetitions: int) -> dict[str, float]:
    """Milliseconds of the first answer, and of the others."""
    taken = []
    for _ in range(repetitions + 1):
        request = urllib.request.Request(
            base + path, headers={"Cookie": f"weir-{base.rpartition(':')[2]}={TOKEN}"}
        )
        begun = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answer.read()
        taken.append(1000 * (time.perf_counter() - begun))
    again = taken[1:] or taken
    return {"first": taken[0], "median": float(np.median(again)), "p99": float(np.percentile(again, 99))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--port", type=int, default=4790)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = (given.work or Path(place)) / "results"
        if not folder.exists():
            for name in QUERIES:
                QUERIES[name] = given.queries
            making = folder.with_name("making")
            make(making, given.systems, 1.0)
            deepen(making, 4, given.queries, given.depth)
            making.rename(folder)
        begun = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "weir",
            "open",
            str(folder),
            "--port",
            str(given.port),
            "--token",
            TOKEN,
            "--no-browser",
        ]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            server.stderr.readline()
            started = time.perf_counter() - begun
            base, names = (
                f"http://127.0.0.1:{given.port}",
                sorted(p.name for p in (folder / DEEP).iterdir())[:4],
            )
            four = f"systems={','.join(names)}"
            pages = {
                "start": "/",
                "list": f"/c/{DEEP}?systems={','.join(names[:2])}",
                "query": f"/c/{DEEP}/q/{DEEP}-77?{four}",
                "another query": f"/c/{DEEP}/q/{DEEP}-78?{four}",
            }
            row = {"bench": "app", **machine(), **versions(), "systems": given.systems, "queries": given.queries,
                   "depth": given.depth, "start_seconds": started}  # fmt: skip
            row |= {name: asked(base, path, given.repetitions) for name, path in pages.items()}
            row["peak_mb"] = resident_mb(server.pid)
        finally:
            server.terminate()
            server.wait()
    print(json.dumps(row))
    append("app_bench", row)


if __name__ == "__main__":
    main()
