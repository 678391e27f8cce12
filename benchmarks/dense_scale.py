"""Vectors beyond memory: stores of 100,000 to 15 million vectors built, opened and searched exactly under a cap.

    python benchmarks/dense_scale.py --work FOLDER [--sizes 100000 1000000 5000000 15000000] [--dtype int8] [--cap 4G]

Vectors are synthetic, of length 1: one of 4,096 centres and two of 65,536 residuals, all with a spectrum that falls
off; a query is a document with noise. A store is built from vectors (no model runs) in batches as a GPU adds them.
Each step is a process of its own. The cap is `ulimit -d`, which the system enforces on memory that is not a mapped
file. Peaks: `anonymous` is the peak of that memory (RssAnon), `resident` that of all, mapped pages included (VmHWM).
A search is `cold` where the file was dropped from the cache of the disk before it. The disk's pace is that of reading
the file in order after that; the arithmetic's pace is that of the same search among vectors held in memory, in bytes of
the store. `loss` is the share of the 100 best by float32 that the store's vectors, or the approximate index, miss.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import common

DIMENSIONS, K = 384, 100
QUERIES = (100, 1000)
BATCH = 8192
"""Vectors added together."""
HELD = 200_000
"""Vectors held in memory for the pace of the arithmetic."""
APPROXIMATE = (("IVF1024,SQ8", 64),)
"""Approximate indexes and how much of them a query looks at."""


class Vectors:
    """Vectors made block by block, the same for the same numbers."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        import numpy as np

        rng = np.random.default_rng(7)
        spectrum = (1 / (1 + np.arange(dimensions) / 16)).astype(np.float32)  # about 45 effective dimensions
        turn = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))[0].astype(np.float32)
        self.centres, self.rest = (
            (rng.standard_normal((n, dimensions), dtype=np.float32) * (weight * spectrum)) @ turn
            for n, weight in ((4096, 0.7), (65_536, 0.5**0.5))
        )

    def batch(self, number: int, size: int):
        """The first `size` vectors of a batch."""
        import numpy as np

        rng = np.random.default_rng((7, number))
        centre, a, b = (rng.integers(0, n, BATCH)[:size] for n in (4096, 65_536, 65_536))
        block = self.centres[centre]
        block += self.rest[a]
        block += self.rest[b]
        return block / np.linalg.norm(block, axis=1, keepdims=True)

    def first(self, count: int):
        """The first vectors, float32[count, d]."""
        import numpy as np

        out = np.empty((count, DIMENSIONS), np.float32)
        for start in range(0, count, BATCH):
            out[start : start + BATCH] = self.batch(start // BATCH, min(BATCH, count - start))
        return out

    def queries(self):
        """float32[1000, d]: documents among the first with noise."""
        import numpy as np

        rng = np.random.default_rng(8)
        near = self.batch(0, BATCH)[rng.choice(BATCH // 8, max(QUERIES), replace=False)]
        asked = near + 0.9 * rng.standard_normal(near.shape, dtype=np.float32) / np.sqrt(DIMENSIONS)
        return (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32)


class Peak:
    """The most memory, of no mapped file, that this process took since it was begun."""

    def __init__(self) -> None:
        common.reset_peak()
        self.anonymous, self.ended = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        while not self.ended.wait(0.02):
            self.anonymous = max(self.anonymous, common.memory_mb("RssAnon"))

    def end(self) -> dict:
        self.ended.set()
        self.thread.join()
        return {"anonymous_mb": round(self.anonymous), "resident_mb": round(common.memory_mb("VmHWM"))}


def store_of(spec: dict):
    from weir.systems.vectors.store import RowStore

    return RowStore.of(Path(spec["folder"]), {"model": "synthetic"}, spec["dtype"])


def build(spec: dict) -> dict:
    """Add vectors to a store; what making them takes is not counted."""
    import numpy as np

    from weir.systems.vectors.journal import locked_store

    vectors, store, taken, n = Vectors(), store_of(spec), 0.0, spec["vectors"]
    peak = Peak()
    with locked_store(store.folder):
        for start in range(0, n, BATCH):
            block = vectors.batch(start // BATCH, min(BATCH, n - start))
            numbers = np.arange(start, start + len(block), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            begun = time.perf_counter()
            store.add(np.stack([numbers, numbers], axis=1), block)
            taken += time.perf_counter() - begun
    size = sum(path.stat().st_size for path in store.folder.iterdir())
    return {"seconds": round(taken, 2), "disk_bytes": size} | peak.end()


def drop(path: Path) -> None:
    """Let the system forget what it keeps of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> float:
    """Seconds of reading a file in order."""
    buffer, begun = bytearray(1 << 22), time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - begun


def opened(spec: dict):
    import numpy as np

    from weir.systems.vectors.store import StoredRows

    snapshot = store_of(spec).snapshot()
    return StoredRows(snapshot, np.arange(len(snapshot.texts)))


def search(spec: dict) -> dict:
    """Open the store and search it exactly: the first time cold, then as the cache happens to be."""
    from weir.systems.vectors.exact_search import ArraySource, search

    vectors = Vectors()
    queries, path = vectors.queries(), store_of(spec).folder / "vectors.bin"
    held = ArraySource(vectors.first(min(HELD, spec["vectors"])))
    del vectors
    width = path.stat().st_size / spec["vectors"]
    found: dict = {}
    for count in QUERIES:
        search(held, queries[:count], K)
        begun = time.perf_counter()
        search(held, queries[:count], K)
        seconds = time.perf_counter() - begun
        found[f"arithmetic_gb_per_s_{count}"] = round(len(held) * width / seconds / 1e9, 3)
    del held
    drop(path)
    found["disk_gb_per_s"] = round(path.stat().st_size / read(path) / 1e9, 3)
    found["cache_gb_per_s"] = round(path.stat().st_size / read(path) / 1e9, 3)
    peak, begun = Peak(), time.perf_counter()
    rows = opened(spec)
    found["open_seconds"] = round(time.perf_counter() - begun, 2)
    for count in QUERIES:
        for state in ("cold", "warm"):
            if state == "cold":
                rows.release()
                drop(path)
            begun = time.perf_counter()
            answers = search(rows, queries[:count], K)
            found[f"{state}_{count}_seconds"] = round(time.perf_counter() - begun, 2)
    assert len(answers.doc) == max(QUERIES) * min(K, len(rows))
    return found | peak.end()


def loss(spec: dict) -> dict:
    """What the store's bytes lose, and what approximate indexes of them lose beyond that."""
    import numpy as np

    from weir.plugins.encoders.ann import FaissIndex
    from weir.systems.vectors.approximate import search_with
    from weir.systems.vectors.exact_search import ArraySource, search

    vectors = Vectors()
    queries = vectors.queries()[:100]
    whole = ArraySource(vectors.first(spec["vectors"]))
    best = search(whole, queries, K).doc.reshape(len(queries), -1)
    del whole

    def missed(docs) -> float:
        shared = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(best, docs, strict=True)]
        return round(1 - float(np.mean(shared)), 4)

    rows = opened(spec)
    stored = search(rows, queries, K).doc.reshape(len(queries), -1)
    found: dict = {"store_loss": missed(stored), "indexes": []}
    for name, effort in APPROXIMATE if spec["approximate"] else ():
        try:
            begun = time.perf_counter()
            index = FaissIndex(name, effort).build(rows)
            built = time.perf_counter() - begun
            begun = time.perf_counter()
            near = search_with(index, rows, queries, K, np.arange(len(rows), dtype=np.int32))
            seconds = time.perf_counter() - begun
            docs = [near.doc[a:b] for a, b in zip(near.ptr[:-1], near.ptr[1:], strict=True)]
            found["indexes"].append({
                "index": name, "effort": effort, "build_seconds": round(built, 1),
                "queries_100_seconds": round(seconds, 2), "loss": missed(docs),
            })  # fmt: skip
        except Exception as error:  # noqa: BLE001 - a library that is not here, or a name it does not know
            found["indexes"].append({"index": name, "error": str(error)[:200]})
    return found | {"resident_mb": round(common.memory_mb("VmHWM"))}


def child(spec: dict) -> None:
    """One step, in a process whose memory is limited."""
    from weir.settings import size_of

    cap = size_of(spec["cap"])
    resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    common.emit({"build": build, "search": search, "loss": loss}[spec["step"]](spec))


def main() -> None:
    """Build, search and compare a store of each size; a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child")
    parser.add_argument(
        "--work", type=Path, help="where stores are made and deleted; by default a temporary folder"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000, 15_000_000])
    parser.add_argument("--dtype", default="int8")
    parser.add_argument("--cap", default="4G", help="ulimit -d of every process")
    parser.add_argument(
        "--loss-up-to", type=int, default=1_000_000, help="vectors up to which losses are measured"
    )
    parser.add_argument("--exact-only", action="store_true", help="build no approximate index")
    parser.add_argument("--quick", action="store_true", help="record nothing")
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
        return
    measured: list[dict] = []
    for n in given.sizes:
        with tempfile.TemporaryDirectory(dir=given.work) as folder:
            free = shutil.disk_usage(folder).free
            if free < 3 * n * DIMENSIONS:
                common.say(n, "left out:", round(free / 1e9), "GB of disk are free")
                continue
            spec = {"folder": folder, "vectors": n, "dtype": given.dtype, "cap": given.cap}
            spec |= {"approximate": not given.exact_only}
            record: dict = {"vectors": n, "dimensions": DIMENSIONS, "dtype": given.dtype, "cap": given.cap}
            for step in ("build", "search", "loss"):
                if step == "loss" and n > given.loss_up_to:
                    continue
                record[step] = common.run_child(__file__, spec | {"step": step}, sys.executable, 3600)
                common.say(n, step, record[step])
        measured.append(record)
        if not given.quick:
            versions = common.versions("weir-ir", "numpy", "numba", "faiss-cpu")
            common.append("dense_scale", record | {"versions": versions, "machine": common.machine()})
    whole = [r for r in measured if "seconds" in r["build"] and "cold_1000_seconds" in r["search"]]
    if len(whole) > 1:
        sizes = [r["vectors"] for r in whole]
        series = {"build seconds": ("build", "seconds"), "disk": ("build", "disk_bytes"),
                  "anonymous memory": ("search", "anonymous_mb"), "100 queries": ("search", "cold_100_seconds"),
                  "1,000 queries": ("search", "cold_1000_seconds")}  # fmt: skip
        found = {
            name: round(common.exponent(sizes, [r[a][b] for r in whole]), 2)
            for name, (a, b) in series.items()
        }
        common.say("exponents", found)
        if not given.quick:
            common.append("dense_scale", {"exponents": found, "sizes": sizes, "dtype": given.dtype})


if __name__ == "__main__":
    main()
