"""Late interaction over all documents: stores of token vectors built and searched exactly.

    python benchmarks/late_scale.py --work FOLDER [--sizes 10000 100000] [--queries 20]

Documents have 121 tokens on average (8 to 300, lognormal) of 128 numbers in fp16. Token vectors are synthetic, made as
those of dense_scale.py; the 32 tokens of a query are tokens of one document with noise. A search returns the 100 best. It
is `cold` where the file was dropped from the cache of the disk before it. Each step is a process of its own on one
thread. A line for each size.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import common
from dense_scale import BATCH, Peak, Vectors, drop

DIMENSIONS, QUERY_TOKENS, K = 128, 32, 100


def lengths_of(spec: dict):
    """Tokens of each document."""
    import numpy as np

    lengths = np.random.default_rng(3).lognormal(4.7, 0.5, spec["documents"])
    return np.clip(lengths, 8, 300).astype(np.int64)


def store_of(spec: dict):
    from weir.systems.vectors.store import RowStore

    return RowStore.of(Path(spec["folder"]), {"model": "synthetic"}, "fp16", 2 * DIMENSIONS)


def build(spec: dict) -> dict:
    """Add documents to a store; what making their vectors takes is not counted."""
    import numpy as np

    from weir.systems.vectors.journal import locked_store
    from weir.systems.vectors.store import spans

    vectors, store, taken, lengths = Vectors(DIMENSIONS), store_of(spec), 0.0, lengths_of(spec)
    with locked_store(store.folder):
        for number, (start, stop) in enumerate(spans(lengths, BATCH - 300)):
            tokens = vectors.batch(number, int(lengths[start:stop].sum())).astype(np.float16)
            hashes = np.arange(start, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            begun = time.perf_counter()
            store.add(np.stack([hashes, hashes], axis=1), tokens, lengths[start:stop])
            taken += time.perf_counter() - begun
    size = sum(path.stat().st_size for path in store.folder.iterdir())
    return {"seconds": round(taken, 2), "tokens": int(lengths.sum()), "disk_bytes": size}


def search(spec: dict) -> dict:
    """Search the store cold, then warm."""
    import numpy as np

    from weir.models.batching import Ragged
    from weir.plugins.encoders.maxsim_search import search_tokens
    from weir.systems.vectors.store import StoredRows

    store, n, count = store_of(spec), spec["documents"], spec["queries"]
    rows = StoredRows(store.snapshot(), np.arange(n))
    rng = np.random.default_rng(8)
    asked = []
    for document in rng.integers(0, n, count).tolist():
        own = rows.rows(document, document + 1).values.astype(np.float32)
        near = own[rng.integers(0, len(own), QUERY_TOKENS)]
        near += 0.5 * rng.standard_normal(near.shape, dtype=np.float32) / np.sqrt(DIMENSIONS)
        asked.append(near / np.linalg.norm(near, axis=1, keepdims=True))
    queries = Ragged(np.arange(count + 1) * QUERY_TOKENS, np.concatenate(asked))
    rank = np.arange(n, dtype=np.int32)
    search_tokens(rows, queries.rows(0, 1), min(K, n), rank)
    record, peak = {}, Peak()
    for state in ("cold", "warm"):
        if state == "cold":
            rows.release()
            drop(store.folder / "rows.bin")
        begun, used = time.perf_counter(), time.process_time()
        found = search_tokens(rows, queries, min(K, n), rank)
        record[f"{state}_seconds"] = round(time.perf_counter() - begun, 2)
        used = time.process_time() - used
        record[f"{state}_processor_seconds"] = round(used, 2)
    record["pairs_per_processor_second"] = round(count * n / used)
    return record | {"computed": round(found.exact / (count * n), 4)} | peak.end()


def main() -> None:
    """Build and search a store of each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child")
    parser.add_argument(
        "--work", type=Path, help="where stores are made and deleted; by default a temporary folder"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="record nothing")
    given = parser.parse_args()
    if given.child:
        spec = json.loads(given.child)
        common.emit({"build": build, "search": search}[spec["step"]](spec))
        return
    for n in given.sizes:
        with tempfile.TemporaryDirectory(dir=given.work) as folder:
            spec = {"folder": folder, "documents": n, "queries": given.queries}
            record: dict = {"documents": n, "queries": given.queries}
            for step in ("build", "search"):
                record[step] = common.run_child(__file__, spec | {"step": step}, sys.executable, 3600)
                common.say(n, step, record[step])
        if not given.quick:
            versions = common.versions("weir-ir", "numpy", "numba")
            common.append("late_scale", record | {"versions": versions, "machine": common.machine()})


if __name__ == "__main__":
    main()
