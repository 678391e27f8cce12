"""Exact search among a million vectors: Weir beside FAISS, numpy, torch, sentence-transformers and BEIR.

    python benchmarks/dense_search.py --peers PEERS --core 1 [--documents 1000000] [--dimensions 384 768] [--k 100 1000]

Vectors are synthetic and of length 1: 4,096 clusters, a spectrum that falls off; a query is a document with noise.
Each engine runs in a process of its own on one core with one thread. Rates count the products' operations over the
whole time, selection included. `gemm ...` rows are the products alone, the ceiling of whoever multiplies in floats;
COOPERLAKE and SKYLAKEX name the kernels that OpenBLAS then uses. Weir and the best product are timed 5 times after a first time,
peers twice, or once where that takes long.
PEERS/vec holds faiss-cpu, torch, sentence-transformers and beir. The answers of every engine are compared with
those of a computation in double.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import common

QUERIES = 1000
FIRST = 10.0
"""Seconds beyond which a peer's search is not repeated; Weir and the products are, always."""
KERNELS = ("COOPERLAKE", "SKYLAKEX")
OFTEN = ("weir", "weir from disk", "gemm numpy COOPERLAKE")
ENGINES = (
    *OFTEN,
    "weir fp32 pass",
    "faiss SKYLAKEX",
    "faiss",
    "gemm numpy",
    "gemm torch",
    "torch",
    "numpy",
    "sentence-transformers",
    "beir",
)


def make(folder: Path, n: int, d: int) -> None:
    """Write documents.npy and queries.npy, float32 of length 1, the same for the same sizes."""
    import numpy as np

    rng = np.random.default_rng(7)
    spectrum = (1 / np.sqrt(1 + np.arange(d) / 24)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    centres = rng.standard_normal((4096, d), dtype=np.float32)
    rows = np.lib.format.open_memmap(folder / "documents.npy", "w+", np.float32, (n, d))
    for start in range(0, n, 20_000):
        size = min(20_000, n - start)
        block = 0.7 * centres[rng.integers(0, 4096, size)] + rng.standard_normal((size, d), dtype=np.float32)
        block = (block * spectrum) @ turn
        rows[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    chosen = rows[np.sort(rng.choice(min(n, 100_000), QUERIES, replace=False))]
    asked = chosen + 0.9 * rng.standard_normal((QUERIES, d), dtype=np.float32) / np.sqrt(d)
    np.save(folder / "queries.npy", (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32))


def truth(documents, queries, k: int):
    """The k best documents of the first 20 queries, in double."""
    import numpy as np

    asked = queries[:20].astype(np.float64).T
    parts = [documents[s : s + 20_000].astype(np.float64) @ asked for s in range(0, len(documents), 20_000)]
    score = np.concatenate(parts).T.astype(np.float32)
    kth = np.partition(score, score.shape[1] - k, axis=1)[:, score.shape[1] - k]
    return [set(np.flatnonzero(row >= least).tolist()) for row, least in zip(score, kth, strict=True)]


def weir(documents, queries, k: int, engine: str):
    from weir.systems.vectors.exact_search import ArraySource, search

    way = "fp32" if "fp32" in engine else "auto"
    return lambda: search(ArraySource(documents), queries, k, first_pass=way).doc.reshape(len(queries), -1)


def weir_from_disk(folder: Path, queries, k: int):
    """Through the embedding store, so that what was read is given back."""
    import numpy as np

    from weir.systems.vectors.exact_search import search
    from weir.systems.vectors.journal import locked_store
    from weir.systems.vectors.store import RowStore, StoredRows

    store = RowStore.of(folder / "store", {"model": "synthetic"})
    if store.snapshot(check=False) is None:
        documents = np.load(folder / "documents.npy", mmap_mode="r")
        with locked_store(store.folder):
            for start in range(0, len(documents), 50_000):
                numbers = np.arange(start, min(start + 50_000, len(documents)), dtype=np.uint64)
                store.add(np.stack([numbers, numbers], axis=1), documents[start : start + 50_000])
    snapshot = store.snapshot(check=False)
    gathered = StoredRows(snapshot, np.arange(len(snapshot.texts)))
    return lambda: search(gathered, queries, k).doc.reshape(len(queries), -1)


def faiss_flat(documents, queries, k: int):
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(documents.shape[1])
    for start in range(0, len(documents), 50_000):
        index.add(documents[start : start + 50_000])
    return lambda: index.search(queries, k)[1]


def gemm_numpy(documents, queries):
    import numpy as np

    out = np.empty((len(queries), 10_000), np.float32)

    def multiply():
        for start in range(0, len(documents), 10_000):
            np.matmul(queries, documents[start : start + 10_000].T, out=out[:, : len(documents) - start])

    return multiply


def gemm_torch(documents, queries):
    import torch

    torch.set_num_threads(1)
    rows, asked, out = (
        torch.from_numpy(documents),
        torch.from_numpy(queries),
        torch.empty(len(queries), 10_000),
    )

    def multiply():
        for start in range(0, len(documents), 10_000):
            torch.matmul(asked, rows[start : start + 10_000].T, out=out)

    return multiply


def numpy_search(documents, queries, k: int):
    import numpy as np

    def find():
        doc, score = np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32)
        for start in range(0, len(documents), 16_384):
            part = queries @ documents[start : start + 16_384].T
            best = np.argpartition(part, max(0, part.shape[1] - k), axis=1)[:, -k:]
            score = np.concatenate([score, np.take_along_axis(part, best, 1)], axis=1)
            doc = np.concatenate([doc, best + start], axis=1)
            kept = np.argpartition(score, max(0, score.shape[1] - k), axis=1)[:, -k:]
            score, doc = np.take_along_axis(score, kept, 1), np.take_along_axis(doc, kept, 1)
        return np.take_along_axis(doc, np.argsort(-score, axis=1, kind="stable"), 1)

    return find


def torch_search(documents, queries, k: int):
    import torch

    torch.set_num_threads(1)
    rows, asked = torch.from_numpy(documents), torch.from_numpy(queries)

    def find():
        score, doc = torch.zeros(len(queries), 0), torch.zeros(len(queries), 0, dtype=torch.long)
        for start in range(0, len(rows), 50_000):
            part = asked @ rows[start : start + 50_000].T
            value, at = torch.topk(part, min(k, part.shape[1]), dim=1)
            score, doc = torch.cat([score, value], 1), torch.cat([doc, at + start], 1)
            score, at = torch.topk(score, min(k, score.shape[1]), dim=1)
            doc = torch.gather(doc, 1, at)
        return doc.numpy()

    return find


def sentence_transformers(documents, queries, k: int):
    import numpy as np
    import torch
    from sentence_transformers import util

    torch.set_num_threads(1)
    rows, asked = torch.from_numpy(documents), torch.from_numpy(queries)

    def find():
        # Its default of 500,000 documents at once needs 2 GB for scores at 1,000 queries; its own default of queries.
        hits = util.semantic_search(
            asked, rows, top_k=k, corpus_chunk_size=100_000, score_function=util.dot_score
        )
        return np.array([[hit["corpus_id"] for hit in found] for found in hits])

    return find


def beir(documents, queries, k: int):
    import numpy as np
    import torch
    from beir.retrieval.search.dense import DenseRetrievalExactSearch

    torch.set_num_threads(1)
    rows, asked = torch.from_numpy(documents), torch.from_numpy(queries)

    class Given:
        at = 0

        def encode_queries(self, texts, **_):
            self.at = 0
            return asked

        def encode_corpus(self, texts, **_):
            self.at += len(texts)
            return rows[self.at - len(texts) : self.at]

    corpus = {f"{i:07d}": {"title": "", "text": "x"} for i in range(len(rows))}
    texts = {f"q{i}": "x" for i in range(len(queries))}

    def find():
        found = DenseRetrievalExactSearch(Given(), show_progress_bar=False).search(corpus, texts, k, "dot")
        ordered = [sorted(found[q].items(), key=lambda hit: (-hit[1], hit[0]))[:k] for q in texts]
        return np.array([[int(doc) for doc, _ in hits] for hits in ordered])

    return find


def action(engine: str, folder: Path, k: int):
    """What to time, and the memory of the vectors it holds."""
    import numpy as np

    queries = np.load(folder / "queries.npy")
    if engine == "weir from disk":
        return weir_from_disk(folder, queries, k)
    documents = np.load(folder / "documents.npy")
    if engine.startswith("weir"):
        return weir(documents, queries, k, engine)
    if engine.startswith("faiss"):
        mapped = np.load(folder / "documents.npy", mmap_mode="r")
        del documents  # the index has its own copy
        return faiss_flat(mapped, queries, k)
    if engine.startswith("gemm"):
        return (gemm_torch if "torch" in engine else gemm_numpy)(documents, queries)
    makers = {"numpy": numpy_search, "torch": torch_search, "beir": beir}
    return makers.get(engine, sentence_transformers)(documents, queries, k)


def child(spec: dict) -> None:
    """One engine: its times, its memory, and whether its answers are right."""
    import numpy as np

    folder, k, engine = Path(spec["folder"]), spec["k"], spec["engine"]
    before = common.memory_mb()
    run = action(engine, folder, k)
    common.reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    answers = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    times = common.summary([wall], [cpu]) | {"first": True}
    if engine in OFTEN or cpu < FIRST:
        common.reset_peak()
        times = common.timed(run, 5 if engine in OFTEN else 2, warm=0, budget=600)
    found = {"seconds": times, "peak_mb": common.memory_mb("VmHWM"), "imported_mb": before}
    if answers is not None:
        best = truth(np.load(folder / "documents.npy", mmap_mode="r"), np.load(folder / "queries.npy"), k)
        same = [len(b.intersection(a.tolist())) / k for a, b in zip(answers, best, strict=False)]
        found["recall"] = min(1.0, float(np.mean(same)))
    names = ("weir-ir", "numpy", "numba", "faiss-cpu", "torch", "sentence-transformers", "beir")
    common.emit(found | {"versions": common.versions(*names)})


def main() -> None:
    """Make vectors, run every engine, append a line for each."""
    parser = common.arguments(__doc__)
    parser.add_argument("--folder", type=Path, help="where vectors are kept; by default a temporary folder")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[384, 768])
    parser.add_argument("--k", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    given = common.begin(parser, child)
    with tempfile.TemporaryDirectory() as temporary:
        for d in given.dimensions:
            folder = (given.folder or Path(temporary)) / f"{given.documents}x{d}"
            if not (folder / "queries.npy").exists():
                folder.mkdir(parents=True, exist_ok=True)
                common.say("making", folder.name)
                make(folder, given.documents, d)
            for k in given.k:
                for engine in given.engines:
                    measure(
                        given,
                        folder,
                        {"documents": given.documents, "dimensions": d, "k": k, "engine": engine},
                    )


def measure(given: argparse.Namespace, folder: Path, case: dict) -> None:
    """Run one engine in its interpreter, say what was found and append it."""
    engine = case["engine"]
    python = sys.executable if engine.startswith("weir") else common.interpreter(given.peers, "vec")
    if python is None:
        common.say(engine, "left out: no environment")
        return
    # The wheel's OpenBLAS may pick slow kernels on a processor it does not know; told which, it is at its best.
    os.environ.pop("OPENBLAS_CORETYPE", None)
    if engine.split()[-1] in KERNELS:
        os.environ["OPENBLAS_CORETYPE"] = engine.split()[-1]
    spec = case | {"folder": str(folder)}
    found = common.run_child(__file__, spec, python, timeout=1200)
    if "seconds" in found:
        work = 2e-9 * case["documents"] * case["dimensions"] * QUERIES
        found["gops"] = round(work / found["seconds"]["cpu_median"], 1)
        size = 4e-6 * case["documents"] * case["dimensions"] / 1.048576
        found["peak_of_vectors"] = round(found["peak_mb"] / size, 3)
        seconds = found["seconds"]
        common.say(
            f"{case['documents']} x {case['dimensions']}, k={case['k']:5d} {engine:22s} {seconds['cpu_median']:8.2f} s "
            f"(wall {seconds['median']:.2f}, n={seconds['n']}) {found['gops']:7.1f} GOP/s  peak "
            f"{found['peak_of_vectors']:.2f} of the vectors  recall {found.get('recall')}"
        )
    else:
        common.say(engine, found.get("error"))
    if not given.quick:
        common.append("dense_search", case | found | {"machine": common.machine()})


if __name__ == "__main__":
    main()
