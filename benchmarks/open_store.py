"""How long a built store takes to open, and how much memory: 5 million synthetic documents, a fresh process.

    python benchmarks/open_store.py [--documents 5000000] [--folder /somewhere/roomy] [--json out.jsonl]

The documents are made and their store built on the first run; with --folder they are kept for the next. Needs
about 2.5 GB of disk for 5 million documents of 20 words.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPEN = """
import json, sys, time
from pathlib import Path
from weir.files.corpus_store import open_store
from weir.files.layouts import CollectionPart


def resident():
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    values = dict(line.split(":", 1) for line in lines if line.startswith(("VmRSS", "VmHWM")))
    return {key: int(value.split()[0]) / 1024 for key, value in values.items()}


before = resident()["VmRSS"]
begin = time.perf_counter()
corpus = open_store(CollectionPart(Path(sys.argv[1]))).corpus
opened = time.perf_counter()
at_open = resident()
wanted = [f"doc-{i}" for i in range(0, len(corpus), max(1, len(corpus) // 1000))][:1000]
looked = time.perf_counter()
codes = corpus.ids.codes(wanted)  # compares the table of ids with its checksums
done = time.perf_counter()
assert (codes >= 0).all()
corpus.ids.codes(wanted)
again = time.perf_counter()
corpus.text.take(codes[:100])  # compares the blocks of a hundred documents
taken = time.perf_counter()
print(json.dumps({
    "documents": len(corpus), "open_seconds": opened - begin, "resident_mb": at_open["VmRSS"],
    "resident_mb_before": before, "thousand_ids_seconds": done - looked, "thousand_more_seconds": again - done,
    "hundred_texts_seconds": taken - again, "peak_mb": resident()["VmHWM"],
}))
"""

BUILD = """
import json, resource, sys, time
from pathlib import Path
from weir.files.corpus_store import open_store
from weir.files.layouts import CollectionPart

begin = time.perf_counter()
open_store(CollectionPart(Path(sys.argv[1])))
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"build_seconds": seconds, "build_peak_mb": peak}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, help="append the result to this file of JSON lines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        corpus = folder / f"synthetic-{given.documents}" / "corpus.jsonl"
        result = {"benchmark": "open_store", "when": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
        if not corpus.exists():
            make(corpus, given.documents)
            result |= child(BUILD, corpus)
        runs = [child(OPEN, corpus) for _ in range(given.repeat)]
        result |= sorted(runs, key=lambda run: run["open_seconds"])[len(runs) // 2]
    line = json.dumps(result)
    print(line)
    if given.json:
        with given.json.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def make(path: Path, documents: int) -> None:
    """Twenty-word documents with a title and an id that is not a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    words = " ".join(f"word{i * 7919 % 50_000}" for i in range(60_000))
    with path.open("w", encoding="utf-8") as file:
        for i in range(documents):
            at = i * 101 % (len(words) - 200)
            file.write(
                f'{{"_id": "doc-{i}", "title": "title {i % 1000}", "text": "{words[at : at + 180]}"}}\n'
            )


def child(code: str, corpus: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", code, str(corpus)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
