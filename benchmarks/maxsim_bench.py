"""MaxSim on one core: Weir's kernel beside the padded einsum that PyLate computes, and sentence-transformers' own.

    python benchmarks/maxsim_bench.py --peers PEERS --core 1

Synthetic unit vectors of 128 dimensions: 8 queries of 32 tokens, 2,000 documents of 121 tokens on average (8 to 300,
lognormal). One process in PEERS/neural (torch, sentence-transformers, and Weir) times all engines in turn, several
times over, in processor seconds, beside the product of the same matrices alone (GEMM) by numpy and by torch. PyLate
multiplies what is padded by 0 and lets it compete; sentence-transformers and Weir leave it out, so that errors are
against the definition in double. One line goes to results/maxsim_bench.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from statistics import median
from typing import Any

from common import append, emit, interpreter, machine, pin, run_child, say, versions

DIMENSIONS, QUERIES, LENGTH = 128, 8, 32
PEER = "padded einsum (PyLate's way)"


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(4.7, 0.5, spec["documents"]), 8, 300).astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    tokens = unit(rng.standard_normal((int(ptr[-1]), DIMENSIONS), dtype=np.float32))
    query = unit(rng.standard_normal((QUERIES * LENGTH, DIMENSIONS), dtype=np.float32))
    found, flops = {}, 2.0 * len(query) * len(tokens) * DIMENSIONS
    actions = engines(query, tokens, ptr)
    exact = query.astype(np.float64) @ tokens.T.astype(np.float64)
    exact = np.maximum.reduceat(exact, ptr[:-1], axis=1).reshape(QUERIES, LENGTH, -1).sum(1)
    for name, action in actions.items():
        scores = action()  # compiles, allocates
        error = None if "product" in name else float(np.abs(scores - exact).max())
        found[name] = {"error": error, "cpu": []}
    for _ in range(spec["repetitions"]):  # in turn, so that what else the machine does falls on all of them
        for name, action in actions.items():
            begun = time.process_time()
            action()
            found[name]["cpu"].append(time.process_time() - begun)
    for record in found.values():
        taken = record.pop("cpu")
        record |= {"seconds": median(taken), "least": min(taken), "gflops": flops / median(taken) / 1e9}
        record["pairs_per_s"] = QUERIES * spec["documents"] / median(taken)
    emit(
        {
            "tokens": int(ptr[-1]),
            "engines": found,
            "versions": versions("torch", "sentence-transformers", "numpy"),
        }
    )


def unit(rows: Any) -> Any:
    import numpy as np

    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def engines(query: Any, tokens: Any, ptr: Any) -> dict[str, Any]:
    """Every way as a function without arguments."""
    import numpy as np
    import torch
    from sentence_transformers.util import similarity

    from weir.kernels.maxsim import maxsim

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    place, half = np.arange(QUERIES + 1) * LENGTH, tokens.astype(np.float16)
    asked = torch.from_numpy(query).reshape(QUERIES, LENGTH, DIMENSIONS)
    documents = [torch.from_numpy(tokens[a:b]) for a, b in itertools.pairwise(ptr)]
    padded = torch.nn.utils.rnn.pad_sequence(documents, batch_first=True)
    mask = torch.arange(padded.shape[1])[None] < torch.from_numpy(np.diff(ptr))[:, None]
    whole, turned = torch.from_numpy(tokens), np.ascontiguousarray(query.T)

    def einsum() -> Any:
        parts = []
        for at in range(0, len(padded), 500):
            score = torch.einsum("ash,bth->abst", asked, padded[at : at + 500])
            score = score * mask[at : at + 500][None, :, None, :]
            parts.append(score.max(-1).values.sum(-1))
        return torch.cat(parts, 1).numpy()

    def product(multiply: Any, rows: Any) -> None:
        for at in range(0, len(rows), 2048):
            multiply(rows[at : at + 2048])

    asked_t = torch.from_numpy(turned)
    return {
        PEER: einsum,
        "sentence-transformers": lambda: similarity.maxsim(asked, documents).numpy(),
        "weir": lambda: maxsim(query, place, tokens, ptr),
        "weir, float16 tokens": lambda: maxsim(query, place, half, ptr),
        "the product alone, numpy": lambda: product(lambda x: x @ turned, tokens),
        "the product alone, torch": lambda: product(lambda x: x @ asked_t, whole),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child")
    parser.add_argument("--peers")
    parser.add_argument("--core", type=int)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="record nothing")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    pin(options.core)
    python = interpreter(options.peers, "neural") or sys.executable
    spec = {"documents": options.documents, "repetitions": options.repetitions}
    found = run_child(__file__, spec, python)
    if "error" in found:
        say(found["error"])
        sys.exit(1)
    print(f"{'engine':30} pairs/s      GFLOP/s   times peer   largest error")
    base = found["engines"][PEER]["pairs_per_s"]
    for name, record in found["engines"].items():
        error = "" if record["error"] is None else f"{record['error']:.1e}"
        rate = record["pairs_per_s"]
        print(f"{name:30} {rate:10,.0f} {record['gflops']:9.1f} {rate / base:12.1f}   {error}")
    if not options.quick:
        append("maxsim_bench", {"machine": machine(), **spec, **found})


if __name__ == "__main__":
    main()
