"""MaxSim on one core: Weir's kernels beside the padded einsum that PyLate computes, and sentence-transformers' own.

    python benchmarks/maxsim_bench.py --peers PEERS --core 1 [--texts 1000]

Synthetic unit vectors of 128 dimensions: 8 queries of 32 tokens, 2,000 documents of 121 tokens on average (8 to 300,
lognormal). One process in PEERS/neural (torch, sentence-transformers, and Weir) times all engines in turn, several
times over, in processor seconds, beside the product of the same matrices alone (GEMM) by numpy and by torch. PyLate
multiplies what is padded by 0 and lets it compete; sentence-transformers and Weir leave it out, so that errors are
against the definition in double. "Bounds in bytes" are what Weir's search takes first: scores that are about right,
each with a proved bound of its error.

--texts N: also the search for the 10 best of N documents of SciFact for 100 of its queries. There the vectors are
MiniLM's states of tokens through a random matrix to 128 dimensions, since no late-interaction checkpoint comes as a
package: real words in context, but not trained for MaxSim. All ways must find the same documents. One line goes to
results/maxsim_bench.jsonl.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import (
    append,
    arguments,
    begin,
    data_folder,
    emit,
    interpreter,
    machine,
    memory_mb,
    run_child,
    say,
    versions,
)

DIMENSIONS, QUERIES, LENGTH, K = 128, 8, 32, 10
PEER = "padded einsum (PyLate's way)"


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(4.7, 0.5, spec["documents"]), 8, 300).astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    tokens = unit(rng.standard_normal((int(ptr[-1]), DIMENSIONS), dtype=np.float32))
    query = unit(rng.standard_normal((QUERIES * LENGTH, DIMENSIONS), dtype=np.float32))
    flops = 2.0 * len(query) * len(tokens) * DIMENSIONS
    actions = engines(query, tokens, ptr)
    found: dict[str, Any] = {}
    exact = query.astype(np.float64) @ tokens.T.astype(np.float64)
    exact = np.maximum.reduceat(exact, ptr[:-1], axis=1).reshape(QUERIES, LENGTH, -1).sum(1)
    for name, action in actions.items():
        scores = action()  # compiles, allocates
        error = None if "product" in name else float(np.abs(scores - exact).max())
        found[name] = {"error": error}
    timed(actions, found, spec["repetitions"])
    for record in found.values():
        record["gflops"] = flops / record["seconds"] / 1e9
        record["pairs_per_s"] = QUERIES * spec["documents"] / record["seconds"]
    emit(
        {
            "tokens": int(ptr[-1]),
            "engines": found,
            "peak_mb": memory_mb("VmHWM"),
            "versions": versions("torch", "sentence-transformers", "numpy"),
        }
    )


def timed(actions: dict[str, Any], found: dict[str, Any], repetitions: int) -> None:
    """Processor seconds of each, in turn, so that what else the machine does falls on all of them."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repetitions):
        for name, action in actions.items():
            begun = time.process_time()
            action()
            taken[name].append(time.process_time() - begun)
    for name, seconds in taken.items():
        found.setdefault(name, {}).update(seconds=median(seconds), least=min(seconds))


def search_child(spec: dict[str, Any]) -> None:
    """The k best documents of a real collection."""
    import numpy as np
    import torch

    from weir.models.batching import Ragged
    from weir.plugins.encoders.maxsim_search import search_tokens

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    query_ptr, query, ptr, tokens = encoded(spec["data"], spec["texts"])
    rank = np.arange(len(ptr) - 1, dtype=np.int32)
    rows = Ragged(ptr, tokens.astype(np.float16))
    asked = Ragged(query_ptr, query)
    padded = torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(tokens[a:b]) for a, b in itertools.pairwise(ptr)], batch_first=True
    )
    mask = torch.arange(padded.shape[1])[None] < torch.from_numpy(np.diff(ptr))[:, None]

    def einsum(q: int) -> Any:
        own, parts = torch.from_numpy(asked.of(q)), []
        for at in range(0, len(padded), 500):
            score = torch.einsum("sh,bth->bst", own, padded[at : at + 500])
            parts.append((score * mask[at : at + 500][:, None]).max(-1).values.sum(-1))
        return torch.topk(torch.cat(parts), K).indices.tolist()

    few = range(8)
    actions = {
        PEER: lambda: [einsum(q) for q in few],
        "weir, all scores": lambda: search_tokens(rows, asked, K, rank, first_pass=False),
        "weir": lambda: search_tokens(rows, asked, K, rank),
    }
    whole, quick = actions["weir, all scores"](), actions["weir"]()
    same = np.array_equal(whole.doc, quick.doc) and np.array_equal(whole.score, quick.score)
    theirs = [set(whole.doc[whole.ptr[q] : whole.ptr[q + 1]].tolist()) == set(einsum(q)) for q in few]
    found: dict[str, Any] = {}
    timed(actions, found, spec["repetitions"])
    for name, record in found.items():
        record["pairs_per_s"] = (len(few) if name == PEER else len(asked)) * len(rows) / record["seconds"]
    facts = {"documents": len(rows), "queries": len(asked), "tokens": int(ptr[-1]), "k": K}
    facts |= {"query tokens": int(query_ptr[-1]), "same bits": same, "same sets as the peer": theirs}
    emit(facts | {"computed": quick.exact / whole.exact, "engines": found, "peak_mb": memory_mb("VmHWM")})


def encoded(data: str, count: int) -> tuple[Any, Any, Any, Any]:
    """(ptr, vectors) of queries and of documents: MiniLM's states of tokens through a random matrix."""
    import numpy as np
    import torch

    from weir.models.batching import BatchPlan, Ragged, gather_ragged, results
    from weir.models.checkpoints import locate, read_checkpoint
    from weir.models.engine import build
    from weir.models.hardware import ComputePlace
    from weir.models.tokens import load_tokenizer

    checkpoint = read_checkpoint(locate("minilm"))
    engine = build(checkpoint, ComputePlace("cpu", "fp32"), "torch")
    rng = np.random.default_rng(0)
    matrix = torch.from_numpy(rng.standard_normal((DIMENSIONS, 384)).astype(np.float32))

    def run(batch: Any) -> Ragged:
        return Ragged(batch.ptr, unit((engine.hidden(batch) @ matrix.T).numpy()))

    found: list[Any] = []
    for name, limit, size in (("queries", LENGTH, 100), ("corpus", 180, count)):
        with (Path(data) / "scifact" / f"{name}.jsonl").open(encoding="utf-8") as file:
            lines = [json.loads(line) for line in itertools.islice(file, size)]
        texts = [f"{line.get('title', '')} {line['text']}".strip() for line in lines]
        blocks = list(
            results(texts, load_tokenizer(checkpoint.folder, limit), run, gather_ragged, BatchPlan(1000))
        )
        lengths = np.concatenate([np.diff(b.ptr) for b in blocks])
        found += [np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([b.values for b in blocks])]
    return tuple(found)  # type: ignore[return-value]  # two arrays for each name, so four


def unit(rows: Any) -> Any:
    import numpy as np

    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def engines(query: Any, tokens: Any, ptr: Any) -> dict[str, Any]:
    """Every way as a function without arguments."""
    import numpy as np
    import torch
    from sentence_transformers.util import similarity

    from weir.kernels.simd import HAS_INT8
    from weir.plugins.encoders.maxsim import bounds, maxsim

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
    first = {"weir, bounds in bytes": lambda: bounds(query, place, half, ptr[:-1], ptr[1:])[0]}
    return (first if HAS_INT8 else {}) | {
        PEER: einsum,
        "sentence-transformers": lambda: similarity.maxsim(asked, documents).numpy(),
        "weir": lambda: maxsim(query, place, tokens, ptr),
        "weir, float16 tokens": lambda: maxsim(query, place, half, ptr),
        "the product alone, numpy": lambda: product(lambda x: x @ turned, tokens),
        "the product alone, torch": lambda: product(lambda x: x @ asked_t, whole),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--texts", type=int, default=0, help="documents of SciFact to search; 0 for none")
    options = begin(parser, lambda spec: (search_child if "texts" in spec else child)(spec))
    python = interpreter(options.peers, "neural") or sys.executable
    spec = {"documents": options.documents, "repetitions": options.repetitions}
    found = run_child(__file__, spec, python)
    if options.texts and "error" not in found:
        asked = {"texts": options.texts, "repetitions": options.repetitions}
        found["search"] = run_child(__file__, asked | {"data": str(data_folder(options.data))}, python, 1800)
    if "error" in found:
        say(found["error"])
        sys.exit(1)
    print(f"{'engine':30} pairs/s      GFLOP/s   times peer   largest error")
    show(found["engines"])
    if "engines" in found.get("search", {}):
        told = found["search"]
        print(
            f"\n{K} best of {told['documents']:,} documents; {told['computed']:.1%} of scores computed",
            end="",
        )
        print(f"; the same bits: {told['same bits']}")
        show(told["engines"])
    elif "search" in found:
        say(found["search"]["error"])
    if not options.quick:
        append("maxsim_bench", {"machine": machine(), **spec, **found})


def show(engines: dict[str, Any]) -> None:
    base = engines[PEER]["pairs_per_s"]
    for name, record in engines.items():
        error = "" if record.get("error") is None else f"{record['error']:.1e}"
        flops = f"{record['gflops']:9.1f}" if "gflops" in record else " " * 9
        rate = record["pairs_per_s"]
        print(f"{name:30} {rate:10,.0f} {flops} {rate / base:12.1f}   {error}")


if __name__ == "__main__":
    main()
