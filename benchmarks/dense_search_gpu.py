"""Exact search on a GPU: Weir's first pass there and double on the processor, beside plain torch.

    python benchmarks/dense_search_gpu.py [--device cuda] [--out FILE] [--documents 1000000] [--dimensions 768]

Needs torch with a device and Weir with the `run` extra (or its source folder on PYTHONPATH). Vectors are made as in
dense_search.py. Writes one JSON line for each engine to --out, or into the folder named by OUT, or to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path

import common
from dense_search import make


def torch_search(torch, device: str, documents, queries, k: int):
    """What a user writes: blocks, matmul, topk; documents on the processor, float32 and TF32 off."""
    asked = torch.from_numpy(queries).to(device)

    def find():
        best = torch.empty((len(queries), 0), device=device)
        which = torch.empty((len(queries), 0), dtype=torch.int64, device=device)
        for start in range(0, len(documents), 1 << 16):
            block = torch.from_numpy(documents[start : start + (1 << 16)]).to(device)
            value, at = torch.topk(asked @ block.T, k, dim=1)
            best, which = torch.cat([best, value], 1), torch.cat([which, at + start], 1)
            best, at = torch.topk(best, k, dim=1)
            which = torch.gather(which, 1, at)
        return which.cpu().numpy()

    return find


def main() -> None:
    """Time each engine on one device and compare their answers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[384, 768])
    parser.add_argument("--k", type=int, nargs="+", default=[100, 1000])
    given = parser.parse_args()

    import numpy as np
    import torch

    from weir.systems.vectors.exact_search import ArraySource, search
    from weir.systems.vectors.gpu_search import search_on

    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for d in given.dimensions:
            make(Path(temporary), given.documents, d)
            documents = np.load(Path(temporary) / "documents.npy")
            queries = np.load(Path(temporary) / "queries.npy")
            for k in given.k:
                exact = search(ArraySource(documents), queries, k)
                engines = {
                    "weir": partial(search_on, given.device, ArraySource(documents), queries, k),
                    "weir on the processor": partial(search, ArraySource(documents), queries, k),
                    "torch": torch_search(torch, given.device, documents, queries, k),
                }
                for engine, run in engines.items():
                    doc = getattr(run(), "doc", None) if engine != "torch" else run()
                    times = common.timed(run, 5, warm=0, budget=40)
                    lines.append(
                        {
                            "documents": given.documents, "dimensions": d, "k": k, "engine": engine, "seconds": times,
                            "same_order": float((doc.ravel() == exact.doc).mean()), "device": given.device,
                            "name": torch.cuda.get_device_name() if given.device != "cpu" else "cpu",
                            "versions": common.versions("torch", "numpy", "numba", "weir-ir"),
                            "machine": common.machine(),
                        }
                    )  # fmt: skip
                    common.say(engine, d, k, times["median"], lines[-1]["same_order"])
    folder = os.environ.get("OUT")
    out = given.out or (Path(folder) / "dense_search_gpu.jsonl" if folder else None)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
