"""Term weights of a SPLADE on one core, one thread: Weir beside sentence-transformers' SparseEncoder, on real documents.

    python benchmarks/sparse_encode.py --peers PEERS --data COLLECTIONS --model FOLDER --core 1

Every engine runs in a process of its own in PEERS/neural (torch, sentence-transformers and Weir), encodes the first
documents of NFCorpus (title, space, text, cut at 512 tokens) and leaves its weights, which are compared with those of
the first engine. One line for each run goes to results/sparse_encode.jsonl, with the rate at which OpenVINO multiplies
states by the vocabulary in fp32: `limit` is the documents a second at which all logits alone would be computed.
"""

from __future__ import annotations

import json
import os
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

ENGINES: dict[str, dict[str, str]] = {
    "sentence-transformers torch fp32": {},
    "weir fp32": {"engine": "openvino", "dtype": "fp32"},
    "weir bf16": {"engine": "openvino", "dtype": "bf16"},
    "weir torch fp32": {"engine": "torch", "dtype": "fp32"},
}
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "openvino", "numba", "numpy")
BATCH_TOKENS, TERM_BLOCK = 1000, 1024


def documents(folder: Path, count: int) -> list[str]:
    """NFCorpus' first documents."""
    with (folder / "nfcorpus" / "corpus.jsonl").open(encoding="utf-8") as file:
        found = [json.loads(line) for line, _ in zip(file, range(count), strict=False)]
    return [f"{d.get('title') or ''} {d['text']}".strip() for d in found]


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    texts = documents(Path(spec["data"]), spec["documents"])
    if spec["engine"] == "product":
        emit(product(Path(spec["model"]), texts))
        return
    encode = weir if spec["engine"].startswith("weir") else peer
    run = encode(spec)
    record = timed(lambda: run(texts), spec["repetitions"], budget=spec["budget"])
    record |= {"peak_mb": memory_mb("VmHWM"), "load": os.getloadavg()[0], "versions": versions(*PACKAGES)}
    text, term, weight = run(texts)
    np.savez(spec["file"], text=text, term=term, weight=weight)
    emit(record | {"terms": len(term) / len(texts)})


def peer(spec: dict[str, Any]) -> Any:
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling, Transformer

    torch.set_num_threads(1)
    body = Transformer(spec["model"], max_seq_length=512, transformer_task="fill-mask")
    model = SparseEncoder(modules=[body, SpladePooling("max")], device="cpu")

    def run(texts: list[str]) -> Any:
        found = model.encode(texts, show_progress_bar=False).coalesce()
        return (*found.indices().numpy(), found.values().numpy())

    return run


def weir(spec: dict[str, Any]) -> Any:
    import numpy as np

    from weir.plugins.encoders.sparse import SparseEncoder

    model = SparseEncoder("splade", spec["model"], **ENGINES[spec["engine"]]).load("cpu")

    def run(texts: list[str]) -> Any:
        found = model.encode(texts)
        return np.repeat(np.arange(len(found)), found.lengths), found.values["term"], found.values["weight"]

    return run


def product(folder: Path, texts: list[str]) -> dict[str, Any]:
    """The rate of a batch of states times a block of the vocabulary, and how many documents a second it allows."""
    import numpy as np
    import openvino
    import openvino.opset13 as op

    from weir.models.tokens import load_tokenizer

    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    terms, inner = facts["vocab_size"], facts["hidden_size"]
    draw = np.random.default_rng(0)
    states = op.parameter([BATCH_TOKENS, inner], np.float32)
    words = op.constant(draw.normal(size=(TERM_BLOCK, inner)).astype(np.float32))
    model = openvino.Model([op.matmul(states, words, False, True)], [states])
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    rows = draw.normal(size=(BATCH_TOKENS, inner)).astype(np.float32)
    seconds = timed(lambda: request.infer([rows], share_inputs=True), 100, warm=5)["cpu_median"]
    tokens = float(load_tokenizer(folder, 512)(texts).lengths.mean())
    rate = 2 * BATCH_TOKENS * TERM_BLOCK * inner / seconds
    return {
        "gflops": round(rate / 1e9, 1),
        "tokens": round(tokens, 1),
        "limit": rate / (2 * tokens * terms * inner),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default=str(Path.home() / ".cache" / "weir-weights" / "splade-tiny"))
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    options = begin(parser, child)
    python = interpreter(options.peers, "neural") or sys.executable
    spec = {
        "data": str(data_folder(options.data)),
        "model": options.model,
        "documents": options.documents,
        "repetitions": 2 if options.quick else options.repetitions,
        "budget": 600.0,
    }
    with tempfile.TemporaryDirectory() as folder:
        rate = run_child(__file__, spec | {"engine": "product"}, python)
        say("a product with the vocabulary:", rate)
        found = compare(options.engines, spec, python, Path(folder))
    if not options.quick:
        append(
            "sparse_encode",
            {"machine": machine(), "documents": options.documents, "product": rate, "engines": found},
        )


def compare(engines: list[str], spec: dict[str, Any], python: str, folder: Path) -> dict[str, Any]:
    """Every engine in turn, printed as it comes."""
    import numpy as np

    found: dict[str, Any] = {}
    first: dict[tuple[int, int], float] = {}
    print(f"{'engine':34} docs/s (cpu)   (wall)   terms   other terms   largest difference   MB")
    for name, file, record in each_engine(__file__, engines, spec, python, folder, timeout=3600):
        found[name] = record
        if "error" in record:
            continue
        record["docs_per_s"] = spec["documents"] / record["cpu_median"]
        stored = np.load(file)
        pairs = zip(stored["text"].tolist(), stored["term"].tolist(), strict=True)
        own = dict(zip(pairs, stored["weight"].tolist(), strict=True))
        first = first or own
        record["other_terms"] = len(own.keys() ^ first.keys())
        record["difference"] = max(abs(own.get(one, 0) - first.get(one, 0)) for one in {**own, **first})
        print(
            f"{name:34} {record['docs_per_s']:12.1f} {spec['documents'] / record['median']:8.1f} "
            f"{record['terms']:7.1f} {record['other_terms']:13} {record['difference']:20.1e} {record['peak_mb']:4.0f}",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
