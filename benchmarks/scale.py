"""BM25 of up to 15 million documents under a cap on memory: time, memory and disk of each stage, and how they grow.

    python benchmarks/scale.py [--sizes 100000,1000000,5000000,15000000] [--max-ram 8G] [--work FOLDER] [--keep]

Documents have 60 words on average (normal, deviation 22, at least 12). Words are those of SciFact with its frequencies;
at the pace at which its vocabulary grows (Heaps' law, fitted) words come that it lacks. Identifiers stand in no order, so
that no stage gains by theirs. Each stage is a process of its own, under a memory cgroup of the cap where one can be made
(root, version 1 or 2), which counts the pages of files too; else its largest resident size stands in the results. Queries
are 2 to 8 words of the same distribution that are no stopwords. What is compared over sizes is the exponent of a line
fitted to logarithms: 1 where cost grows as the work does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import common
from common import exponent, percentile, say

WORDS, QUERIES, K = 60, 1000, 100
SYSTEMS = {"bm25": "bm25", "rm3": "rm3(bm25)"}
CGROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak"),
)


# The collections


def statistics_of(data: Path) -> tuple[list[str], list[int], float, float]:
    """(words of SciFact, how often each occurs, K and beta of V = K n^beta)."""
    counts: Counter[str] = Counter()
    growth = []
    with (data / "scifact" / "corpus.jsonl").open(encoding="utf-8") as file:
        for line in file:
            document = json.loads(line)
            counts.update(re.findall(r"[a-z]+", f"{document['title']} {document['text']}".lower()))
            growth.append((counts.total(), len(counts)))
    (n, v), (more, larger) = growth[min(500, len(growth) // 10)], growth[min(5000, len(growth) - 1)]
    beta = math.log(larger / v) / math.log(more / n)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return words, [counts[word] for word in words], larger / more**beta, beta


def make_collection(size: int, folder: Path, data: Path) -> None:
    """A collection in BEIR's layout; made once."""
    import numba
    import numpy as np

    if (folder / "DONE").exists():
        return
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    words, counts, heaps, beta = statistics_of(data)
    cumulated = np.cumsum(np.array(counts, np.float64))
    cumulated /= cumulated[-1]
    letters = np.frombuffer("".join(words).encode(), np.uint8)
    ends = np.concatenate([[0], np.cumsum([len(word) for word in words])])

    @numba.njit(cache=False)
    def write(first, lengths, number, out, known, letters, ends, heaps, beta, rng):
        at = 0
        for i in range(len(lengths)):
            for byte in b'{"_id": "d':
                out[at] = byte
                at += 1
            name = (np.uint64(first + i) * np.uint64(2654435761)) % np.uint64(4294967296)
            for place in range(8):
                digit = (name >> np.uint64(4 * (7 - place))) & np.uint64(15)
                out[at] = digit + (48 if digit < 10 else 87)
                at += 1
            for byte in b'", "text": "':
                out[at] = byte
                at += 1
            for j in range(lengths[i]):
                if j:
                    out[at] = 32
                    at += 1
                number += 1
                vocabulary = heaps * number**beta
                if vocabulary > len(known) and rng.random() < 2 * beta * vocabulary / number:
                    rest = np.int64(rng.random() * (vocabulary - len(known)))
                    for byte in b"zq":
                        out[at] = byte
                        at += 1
                    while True:
                        out[at] = 97 + rest % 26
                        at += 1
                        rest //= 26
                        if rest == 0:
                            break
                    out[at] = 120
                    at += 1
                else:
                    word = min(np.searchsorted(known, rng.random()), len(known) - 1)
                    for p in range(ends[word], ends[word + 1]):
                        out[at] = letters[p]
                        at += 1
            for byte in b'"}\n':
                out[at] = byte
                at += 1
        return at, number

    rng = np.random.default_rng(size)
    number, out = 0, np.empty(20000 * 200 * 30, np.uint8)
    with (folder / "corpus.jsonl").open("wb") as file:
        for start in range(0, size, 20000):
            rows = min(20000, size - start)
            lengths = np.clip(np.round(rng.normal(WORDS, 22, rows)), 12, 150).astype(np.int64)
            used, number = write(start, lengths, number, out, cumulated, letters, ends, heaps, beta, rng)
            file.write(out[:used].data)
    from weir.systems.lexical.analyzer import analyzers

    stopwords = set(analyzers.get("lucene-english").describe().get("stopwords", ()))
    content = [n for n, word in enumerate(words) if word not in stopwords and len(word) > 2]
    share = np.array(counts, np.float64)[content]
    with (
        (folder / "queries.jsonl").open("w", encoding="utf-8") as queries,
        (folder / "qrels/test.tsv").open("w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for q in range(QUERIES):
            chosen = rng.choice(len(content), int(rng.integers(2, 9)), False, share / share.sum())
            queries.write(
                json.dumps({"_id": f"q{q}", "text": " ".join(words[content[c]] for c in chosen)}) + "\n"
            )
            name = (int(rng.integers(size)) * 2654435761) % 4294967296
            qrels.write(f"q{q}\td{name:08x}\t1\n")
    (folder / "DONE").touch()


# A stage in a process of its own, under a cgroup


def limited(limit: int) -> tuple[Path, str] | None:
    """A new memory cgroup of this limit and the file with its peak; None where none can be made."""
    for root, cap, peak in CGROUPS:
        group = root / f"weir-{os.getpid()}-{time.monotonic_ns()}"
        with suppress(OSError):
            group.mkdir()
            (group / cap).write_text(str(limit), encoding="ascii")
            if (group / peak).exists():
                return group, peak
            group.rmdir()
    return None


def run_stage(spec: dict[str, Any], limit: int) -> dict[str, Any]:
    """Run a stage by itself; its record, with the peak of its cgroup."""
    group = limited(limit)

    def enter() -> None:
        if group is not None:
            (group[0] / "cgroup.procs").write_text("0", encoding="ascii")

    env = os.environ | common.ONE_THREAD | {"WEIR_MAX_RAM": str(limit)}
    command = [sys.executable, __file__, "--child", json.dumps(spec)]
    done = subprocess.run(command, env=env, preexec_fn=enter, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    record = common.failed(f"exit code {done.returncode}") if done.returncode else json.loads(lines[-1])
    if group is not None:
        record["cgroup_peak_mb"] = int((group[0] / group[1]).read_text()) / (1 << 20)
        with suppress(OSError):
            group[0].rmdir()
    return record


def folder_bytes(folder: Path) -> int:
    """What a folder takes on the disk, and the hidden ones beside it in which it is made."""
    sizes = dict[int, int]()  # by inode: a file may be renamed meanwhile
    for part in (folder, *folder.parent.glob(f".{folder.name}.*")):
        for path in part.rglob("*"):
            with suppress(FileNotFoundError):
                facts = path.stat()
                sizes[facts.st_ino] = 512 * facts.st_blocks
    return sum(sizes.values())


@contextmanager
def largest(folder: Path) -> Iterator[list[int]]:
    """The sizes of a folder, taken twenty times a second while the block runs."""
    sizes, ended = list[int](), threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            sizes.append(folder_bytes(folder))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


def child(spec: dict[str, Any]) -> dict[str, Any]:
    """One stage: store the collection, index it, search the index."""
    import numpy as np

    from weir.datasets.load import load
    from weir.systems.expression import parse_system
    from weir.systems.protocol import Context
    from weir.systems.warm import kernels_of, prepare

    folder, stage, at = Path(spec["folder"]), spec["stage"], Path(spec["at"])
    system = parse_system(spec.get("system", "bm25"))
    if stage != "store":
        prepare(kernels_of(system, 1 << 20), lambda line: None)
    start = time.perf_counter()
    dataset = load(folder)
    documents = len(dataset.corpus)
    if stage == "store":
        return {
            "documents": documents,
            "seconds": time.perf_counter() - start,
            "peak_rss_mb": common.memory_mb("VmHWM"),
        }
    opened = time.perf_counter() - start
    start, cpu = time.perf_counter(), time.process_time()
    if stage == "index":
        with largest(at) as disk:
            system.index(dataset.corpus, Context(at))
        size = folder_bytes(at)
        postings = 8 * int(np.load(at / "0-ptr.npy")[-1])
        return {
            "seconds": time.perf_counter() - start,
            "cpu": time.process_time() - cpu,
            "opened": opened,
            "index_bytes": size,
            "disk_peak": max([*disk, size]) / size,
            "posting_bytes": postings,
            "peak_rss_mb": common.memory_mb("VmHWM"),
        }
    searcher = system.open(dataset.corpus, Context(at))
    opened += time.perf_counter() - start
    searcher.search(dataset.queries, K)
    start = time.perf_counter()
    run = searcher.search(dataset.queries, K)
    seconds = time.perf_counter() - start
    single = []
    for q in range(0, len(dataset.queries), 5):
        begun = time.perf_counter()
        searcher.search(dataset.queries.take(np.array([q])), K)
        single.append(1000 * (time.perf_counter() - begun))
    return {
        "opened": opened,
        "queries_per_second": len(dataset.queries) / seconds,
        "p50_ms": percentile(single, 50),
        "p99_ms": percentile(single, 99),
        "results": len(run.doc),
        "peak_rss_mb": common.memory_mb("VmHWM"),
    }


def main() -> None:
    """Measure all sizes; the last line holds the exponents."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="100000,1000000,5000000,15000000")
    parser.add_argument("--max-ram", default="8G")
    parser.add_argument("--systems", default="bm25")
    parser.add_argument("--data")
    parser.add_argument("--work", help="where collections are kept for later runs")
    parser.add_argument("--keep", action="store_true", help="keep indexes too")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        common.emit(child(json.loads(options.child)))
        return
    from weir.settings import size_of

    limit = size_of(options.max_ram)
    work = Path(options.work or tempfile.mkdtemp(prefix="weir-scale-"))
    sizes, records = [int(size) for size in options.sizes.split(",")], []
    for size in sizes:
        folder = work / str(size)
        make_collection(size, folder, common.data_folder(options.data))
        say(f"{size:,} documents, {(folder / 'corpus.jsonl').stat().st_size / 1e9:.2f} GB")
        shutil.rmtree(folder / "corpus.jsonl.weir", ignore_errors=True)
        record: dict[str, Any] = {"documents": size, "max_ram": limit, **common.machine()}
        record["text_bytes"] = (folder / "corpus.jsonl").stat().st_size
        record["store"] = run_stage({"stage": "store", "folder": str(folder), "at": str(work)}, limit)
        for name in options.systems.split(","):
            at = work / f"{size}-{name}"
            spec = {"folder": str(folder), "at": str(at), "system": SYSTEMS[name]}
            shutil.rmtree(at, ignore_errors=True)
            record[f"{name}_index"] = run_stage(spec | {"stage": "index"}, limit)
            record[f"{name}_search"] = run_stage(spec | {"stage": "search"}, limit)
            if not options.keep:
                shutil.rmtree(at, ignore_errors=True)
        say(json.dumps(record))
        common.append("scale", record)
        records.append(record)
    for stage, what in (("store", "seconds"), ("bm25_index", "seconds"), ("bm25_index", "index_bytes")):
        values = [record[stage][what] for record in records if what in record.get(stage, {})]
        if len(values) == len(sizes):
            say(f"{stage} {what}: exponent {exponent(sizes, values):.3f}")
    if not options.work:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
