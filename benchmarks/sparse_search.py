"""Exact search of learned sparse vectors: Weir beside scipy, sentence-transformers and BEIR, one thread.

    python benchmarks/sparse_search.py --peers PEERS --core 1 [--documents 100000 1000000] [--k 100] [--work FOLDER]

Vectors are synthetic and shaped as SPLADE's: 30,522 terms whose popularity falls as 1 / (rank + 50), 2,000 topics of 400
terms, 144 terms a document and 38 a query on average, gamma weights; a query touches 2.4 postings for each document.
One process in PEERS/neural (scipy, torch, sentence-transformers, and Weir) runs all engines in turn, several times
over, in processor seconds. sentence-transformers' way is util.semantic_search over a sparse tensor, of 200,000
documents at most; BEIR's (not imported) SparseSearch's: the matrix times one dense query, then argpartition. `reading`
takes the largest of as many postings as a query touches, wherever they stand: what memory gives one core. The answers
of every engine are compared with a product in double. FOLDER keeps the vectors for later runs. One line a size goes to
results/sparse_search.jsonl.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import append, arguments, begin, emit, interpreter, machine, memory_mb, run_child, say, versions

TERMS, TOPICS, QUERIES, CHECKED = 30522, 2000, 1000, 20
MOST = 200_000
"""Documents that sentence-transformers is asked to search: its memory grows to some 20 GB for a million."""
ASKED = {"weir": 400, "weir, postings only": 400, "scipy, sparse product": 64, "BEIR's way": 20}
ASKED |= {"sentence-transformers": 20, "reading": 400}


def make(folder: Path, n: int) -> None:
    """Write d-*.npy and q-*.npy (ptr, term, weight), the same for the same size."""
    import numpy as np

    rng = np.random.default_rng(3)
    popular = np.cumsum(1 / (np.arange(TERMS) + 50.0))
    popular /= popular[-1]
    names = rng.permutation(TERMS)
    topics = np.searchsorted(popular, rng.random((TOPICS, 400))).clip(0, TERMS - 1)
    for kind, count, mean, seed in (("d", n, 120, 11), ("q", QUERIES, 30, 99)):
        draw = np.random.default_rng(seed)
        sizes = (np.clip(draw.normal(mean, 0.3 * mean, count), 5, 3 * mean) * 1.35).astype(int)
        topic, parts, lengths = draw.integers(0, TOPICS, count), [], []
        for start in range(0, count, 20_000):
            own = sizes[start : start + 20_000]
            row = np.repeat(np.arange(len(own)), own)
            near = draw.random(len(row)) < 0.6
            far = np.searchsorted(popular, draw.random(len(row))).clip(0, TERMS - 1)
            term = np.where(
                near, topics[topic[start : start + 20_000][row], draw.integers(0, 400, len(row))], far
            )
            weight = (draw.gamma(1.2, 0.45, len(row)) + 0.02) * np.where(near, 1.3, 0.6)
            key, at = np.unique(row * TERMS + names[term], return_index=True)
            lengths.append(np.bincount(key // TERMS, minlength=len(own)))
            parts.append((key % TERMS, weight[at]))
        np.save(folder / f"{kind}-ptr.npy", np.concatenate([[0], np.cumsum(np.concatenate(lengths))]))
        np.save(folder / f"{kind}-term.npy", np.concatenate([t for t, _ in parts]).astype(np.int32))
        np.save(folder / f"{kind}-weight.npy", np.concatenate([w for _, w in parts]).astype(np.float32))


def child(spec: dict[str, Any]) -> None:
    import numpy as np
    import scipy.sparse as sp

    folder, n, k = Path(spec["folder"]), spec["documents"], spec["k"]
    tables = []
    for kind, rows in (("d", n), ("q", QUERIES)):
        ptr, term, weight = (np.load(folder / f"{kind}-{x}.npy") for x in ("ptr", "term", "weight"))
        tables.append(sp.csr_matrix((weight, term, ptr), shape=(rows, TERMS)))
    documents, queries = tables
    postings = documents.tocsc()
    ptr = postings.indptr.astype(np.int64)
    touched = float(np.diff(ptr)[queries.indices].sum() / QUERIES)
    actions, sizes = engines(documents, postings, queries, k, touched)
    exact = (
        (queries[:CHECKED].astype(np.float64) @ documents.T.astype(np.float64)).toarray().astype(np.float32)
    )
    kth = np.partition(exact, n - k, axis=1)[:, n - k]
    found = {}
    for name, action in actions.items():
        answer = action(CHECKED)  # compiles, allocates
        record: dict[str, Any] = {"queries": ASKED[name], "index_mb": sizes.get(name), "cpu": []}
        if answer is not None:
            good = [(exact[q][np.asarray(answer[q])] >= kth[q] * (1 - 1e-6)).all() for q in range(CHECKED)]
            record["recall"] = sum(bool(g) for g in good) / CHECKED
        found[name] = record
    for _ in range(spec["repetitions"]):  # in turn, so that what else the machine does falls on all of them
        for name, action in actions.items():
            begun = time.process_time()
            action(ASKED[name])
            found[name]["cpu"].append(time.process_time() - begun)
    for record in found.values():
        taken = record.pop("cpu")
        record |= {"queries_per_s": record["queries"] / median(taken), "best": record["queries"] / min(taken)}
    emit(
        {
            "engines": found,
            "postings": int(ptr[-1]),
            "touched": touched,
            "peak_mb": memory_mb("VmHWM"),
            "versions": versions("numpy", "scipy", "numba", "torch", "sentence-transformers"),
        }
    )


def engines(
    documents: Any, postings: Any, queries: Any, k: int, touched: float
) -> tuple[dict[str, Any], dict[str, float]]:
    """Every way as a function of how many queries, and the size of its index in MB."""
    import numpy as np

    from weir.kernels.inverted.packed import packed
    from weir.kernels.inverted.search import Impacts, search

    n = documents.shape[0]
    arrays = postings.indptr.astype(np.int64), postings.indices, postings.data, n
    plain = Impacts(n, arrays[0], packed(*arrays))
    index = plain.with_columns()
    asked = queries.indptr.astype(np.int64), queries.indices, queries.data
    transposed = documents.T.tocsr()
    base = 8e-6 * len(arrays[1])
    sizes = {
        "weir, postings only": sum(array.nbytes for array in plain.stored) / 1e6,
        "scipy, sparse product": base,
        "BEIR's way": base,
    }
    more = 0 if index.columns is None else index.columns.values.nbytes / 1e6
    sizes |= {"weir": sizes["weir, postings only"] + more, "sentence-transformers": 20e-6 * len(arrays[1])}

    def weir(which: Impacts) -> Any:
        return lambda count: search(which, asked[0][: count + 1], *asked[1:], k)[1]

    def scipy_product(count: int) -> list[Any]:
        found = []
        for start in range(0, count, 16):
            scores = queries[start : min(start + 16, count)] @ transposed
            for row in range(scores.shape[0]):
                part = slice(scores.indptr[row], scores.indptr[row + 1])
                data, place = scores.data[part], scores.indices[part]
                best = np.argpartition(data, len(data) - k)[-k:]
                found.append(place[best[np.argsort(-data[best])]])
        return found

    def beir(count: int) -> list[Any]:
        scores = (documents.dot(queries[q].toarray().ravel()) for q in range(count))
        return [np.argpartition(s, -k)[-k:] for s in scores]

    def reading(count: int) -> None:
        size = int(touched)
        for q in range(count):
            start = q * size % max(len(arrays[1]) - size, 1)
            arrays[1][start : start + size].max()
            arrays[2][start : start + size].max()

    actions = {
        "weir": weir(index),
        "weir, postings only": weir(plain),
        "scipy, sparse product": scipy_product,
    }
    actions |= {"BEIR's way": beir, "reading": reading}
    peer = sentence_transformers(documents, queries, k) if n <= MOST else None
    return actions | ({} if peer is None else {"sentence-transformers": peer}), sizes


def sentence_transformers(documents: Any, queries: Any, k: int) -> Any:
    import numpy as np

    try:
        import torch
        from sentence_transformers import util
    except ImportError:
        return None
    torch.set_num_threads(1)

    def tensor(table: Any) -> Any:
        table = table.tocoo()
        place = torch.from_numpy(np.stack([table.row, table.col]).astype(np.int64))
        return torch.sparse_coo_tensor(place, torch.from_numpy(table.data), table.shape).coalesce()

    whole = tensor(documents)

    def search(count: int) -> list[Any]:
        found = util.semantic_search(tensor(queries[:count]), whole, top_k=k, score_function=util.dot_score)
        return [[hit["corpus_id"] for hit in hits] for hits in found]

    return search


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--work", help="folder that keeps the vectors")
    options = begin(parser, child)
    python = interpreter(options.peers, "neural") or sys.executable
    with tempfile.TemporaryDirectory() as made:
        for n in options.documents:
            folder = Path(options.work or made) / f"sparse-{n}"
            if not (folder / "q-weight.npy").exists():
                folder.mkdir(parents=True, exist_ok=True)
                make(folder, n)
            spec = {"folder": str(folder), "documents": n, "k": options.k, "repetitions": options.repetitions}
            found = run_child(__file__, spec, python, timeout=3000)
            if "error" in found:
                say(found["error"])
                sys.exit(1)
            print(f"{n} documents, k = {options.k}: a query touches {found['touched']:,.0f} postings")
            for name, record in found["engines"].items():
                size = "" if record["index_mb"] is None else f"{record['index_mb']:,.0f} MB"
                recall = record.get("recall", "")
                print(
                    f"  {name:24} {record['queries_per_s']:10,.1f} queries/s   {size:>10}   recall {recall}"
                )
            if not options.quick:
                del spec["folder"]
                append("sparse_search", {"machine": machine(), **spec, **found})


if __name__ == "__main__":
    main()
