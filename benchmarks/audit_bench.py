"""How long `weir audit` takes: each stored collection alone, and the results of four systems on SciFact.

    python benchmarks/audit_bench.py SHARED_DATA [--json out.jsonl]

Each audit is a fresh process, as a user starts it, indexing and reading of the store included; wall clock and the most
memory it held. The four systems are run first and not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLLECTIONS = (
    *("scifact", "nfcorpus", "cranfield", "vaswani"),
    *(f"small-beir-layout/{name}" for name in ("arcd", "business-reports", "dbpedia", "msmarco", "pg")),
    *(f"birco/beir/{name}" for name in ("clinical-trial-dev", "doris-mae-dev", "relic", "wtb", "wtb-dev")),
)
SYSTEMS = ("bm25", 'bm25("lucene-multifield")', "bm25(b=0.0)", "rm3")


def weir(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "weir", *arguments], check=True, text=True, stdout=subprocess.PIPE
    )
    return done.stdout


def measured(what: str, *arguments: str) -> dict[str, object]:
    begun = time.perf_counter()
    said = weir("audit", *arguments, "--json")
    seconds = time.perf_counter() - begun
    severities = [json.loads(line)["severity"] for line in said.splitlines()]
    found = {name: severities.count(name) for name in ("wrong", "serious", "caution", "note")}
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"audited": what, "seconds": round(seconds, 2), "peak_mb_so_far": round(most), **found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEIR_HOME"] = f"{folder}/home"
        for name in given.collections:
            rows.append(measured(name, str(given.data / name)))
            print(json.dumps(rows[-1]))
        scifact, results = str(given.data / "scifact"), f"{folder}/results"
        systems = [word for system in SYSTEMS for word in ("-s", system)]
        weir("run", "-d", scifact, *systems, "-m", "nDCG@10", "-o", results, "--quiet")
        rows.append(measured("four systems on scifact", results, "--collection", scifact))
        print(json.dumps(rows[-1]))
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
