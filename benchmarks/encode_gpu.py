"""Encoding on a GPU: a BERT-base encoder with random weights on texts of natural length, and what bounds it.

    python benchmarks/encode_gpu.py --out "$OUT"

Self-contained: it makes its own checkpoint, vocabulary and texts (lengths as those of Wikipedia passages: about
a hundred words, log-normal), downloads nothing, and prints what is installed first. It needs torch with CUDA,
tokenizers, safetensors and Weir's source (found beside this script); with transformers, its padded way is measured
too.
Writes encode_gpu.json: the best bf16 rate of a product on this GPU (`peak`), and for each way of encoding the
documents and tokens a second from texts to vectors in memory, with tokenisation running ahead, the useful work a
second (tokens of padding not counted) and its share of `peak`; the same for tokens alone, and for tokenisation
alone; and the time that Natural Questions' 2.68 million passages would take.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

LAYERS, WIDTH, WIDE, HEADS, VOCABULARY = 12, 768, 3072, 12, 30522
NQ_PASSAGES = 2_681_468
NEEDED = ("torch", "tokenizers", "safetensors", "numpy", "click")


def installed() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in (*NEEDED, "transformers", "numba", "triton"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def checkpoint(folder: Path) -> None:
    """A BERT-base with random weights, and a tokenizer that splits words into pieces as BERT's does."""
    import tokenizers
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)

    def table(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator) * 0.02

    state = {
        "embeddings.word_embeddings.weight": table(VOCABULARY, WIDTH),
        "embeddings.position_embeddings.weight": table(512, WIDTH),
        "embeddings.token_type_embeddings.weight": table(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        at = f"encoder.layer.{number}."
        for part in ("query", "key", "value"):
            state[f"{at}attention.self.{part}.weight"] = table(WIDTH, WIDTH)
            state[f"{at}attention.self.{part}.bias"] = table(WIDTH)
        shapes = {"attention.output": (WIDTH, WIDTH), "intermediate": (WIDE, WIDTH), "output": (WIDTH, WIDE)}
        for part, shape in shapes.items():
            state[f"{at}{part}.dense.weight"] = table(*shape)
            state[f"{at}{part}.dense.bias"] = table(shape[0])
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
    for norm in norms:
        state |= {f"{norm}.weight": torch.ones(WIDTH), f"{norm}.bias": torch.zeros(WIDTH)}
    save_file(state, str(folder / "model.safetensors"))
    facts = {
        "model_type": "bert", "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": WIDE, "max_position_embeddings": 512,
        "type_vocab_size": 2, "pad_token_id": 0, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(facts))
    pieces = [f"{a}{b}{c}" for a in "bcdfghklmnprstvw" for b in "aeiou" for c in "bcdfghklmnprst"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *(f"##{p}" for p in pieces)]
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    inner.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    inner.save(str(folder / "tokenizer.json"))


def texts(count: int) -> list[str]:
    """Passages: words of one piece mostly, of two now and then; about 100 words, spread as natural texts are."""
    rng = np.random.default_rng(1)
    pieces = np.array([f"{a}{b}{c}" for a in "bcdfghklmnprstvw" for b in "aeiou" for c in "bcdfghklmnprst"])
    lengths = np.clip(rng.lognormal(np.log(95), 0.45, count), 8, 400).astype(int)
    words = pieces[np.minimum(rng.zipf(1.3, int(lengths.sum())) - 1, len(pieces) - 1)]
    second = np.where(rng.random(len(words)) < 0.2, pieces[rng.integers(0, len(pieces), len(words))], "")
    joined = np.char.add(words, second)
    return [" ".join(part) for part in np.split(joined, np.cumsum(lengths)[:-1])]


def work(lengths: Any) -> float:
    """Useful operations: every product and attention over real tokens only."""
    linear = 2 * (4 * WIDTH * WIDTH + 2 * WIDTH * WIDE) * lengths.sum()
    attention = 4 * WIDTH * (lengths.astype(np.float64) ** 2).sum()
    return float(LAYERS * (linear + attention))


def peak(torch: Any) -> dict[str, float]:
    """Best bf16 rates of products, in trillions of operations a second."""
    found = {}
    for name, (m, k, n) in {
        "8192 cubed": (8192, 8192, 8192), "32768 x 768 x 3072": (32768, 768, 3072),
        "32768 x 3072 x 768": (32768, 3072, 768), "32768 x 768 x 768": (32768, 768, 768),
    }.items():  # fmt: skip
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        seconds = on_gpu(torch, lambda a=a, b=b: a @ b.t(), 20)
        found[name] = 2 * m * k * n / seconds / 1e12
    return found


def on_gpu(torch: Any, action: Any, repetitions: int) -> float:
    """Median seconds of an action by the GPU's own clock."""
    taken = []
    for _ in range(repetitions + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / 1000)
    return float(np.median(taken[3:]))


def measured(torch: Any, folder: Path, passages: list[str], options: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import replace

    from weir.models import Encoder
    from weir.models.batching import batches
    from weir.models.checkpoints import read_checkpoint
    from weir.models.engine import pool
    from weir.models.weights import read_weights
    from weir.plugins.encoders.torch_engine import torch_engine

    encoder = Encoder(
        str(folder), pooling="mean", similarity="dot", dtype="bf16", engine="torch", max_length=512
    )
    base = encoder.load("cuda")
    tokens = base.document.tokenizer(passages[:64])
    begun = time.perf_counter()
    tokens = base.document.tokenizer(passages)
    tokenising = time.perf_counter() - begun
    useful = work(tokens.lengths)
    found: dict[str, Any] = {
        "texts": len(passages),
        "tokens": int(tokens.ptr[-1]),
        "mean_length": float(tokens.lengths.mean()),
        "useful_tflop": useful / 1e12,
        "tokenise_texts_per_s": len(passages) / tokenising,
        "tokenise_tokens_per_s": int(tokens.ptr[-1]) / tokenising,
        "ways": {},
    }
    weights = read_weights(read_checkpoint(folder))
    ways = {"packed": torch_engine(weights, "cuda", "bf16")}
    ways["padded attention"] = replace(ways["packed"], varlen=False)
    if importlib.util.find_spec("transformers") is not None:
        from weir.plugins.encoders.transformers_engine import transformers_engine

        ways["transformers, padded"] = transformers_engine(read_checkpoint(folder), "cuda", "bf16")
    for name, engine in ways.items():
        for budget in options.budgets:
            key = f"{name}, {budget} tokens"
            try:
                found["ways"][key] = one_way(
                    torch, engine, budget, base, passages, tokens, batches, pool, useful
                )
            except Exception as error:  # noqa: BLE001 - one way that fails must not lose the others
                found["ways"][key] = {"error": f"{type(error).__name__}: {error}"[:400]}
            print(key, json.dumps(found["ways"][key]), flush=True)
    return found | {"agreement": agreement(base, ways, passages)}


def one_way(
    torch: Any, engine: Any, budget: int, base: Any, passages: list[str], tokens: Any, batches: Any, pool: Any,
    useful: float,
) -> dict[str, Any]:  # fmt: skip
    """The model alone over tokens at hand, then from texts to vectors."""
    from dataclasses import replace

    plans = [tokens.take(b) for b in batches(tokens.lengths, budget, engine.padded)]
    torch.cuda.reset_peak_memory_stats()

    def model() -> None:
        for batch in plans:
            pool(engine.hidden(batch), batch.ptr, "mean")

    model()
    alone = on_gpu(torch, model, 3)
    part = replace(base.document, engine=engine)
    encoder = replace(base, document=part, query=part, batch_tokens=budget)
    encoder.encode(passages[:2000])
    whole = []
    for _ in range(3):
        begun = time.perf_counter()
        encoder.encode(passages)
        whole.append(time.perf_counter() - begun)
    seconds = float(np.median(whole))
    return {
        "model_texts_per_s": len(passages) / alone,
        "model_tflops": useful / alone / 1e12,
        "texts_per_s": len(passages) / seconds,
        "tokens_per_s": int(tokens.ptr[-1]) / seconds,
        "tflops": useful / seconds / 1e12,
        "gpu_memory_mb": torch.cuda.max_memory_allocated() / 2**20,
        "nq_seconds": NQ_PASSAGES * seconds / len(passages),
    }


def agreement(base: Any, ways: dict[str, Any], passages: list[str]) -> dict[str, Any]:
    """Smallest cosine of each way's vectors to those computed in fp32 on the processor, and alone to together."""
    from dataclasses import replace

    from weir.models import Encoder, stability

    few = passages[:48]
    exact = Encoder(
        base.recipe.model, pooling="mean", similarity="dot", dtype="fp32", engine="torch", max_length=512
    ).load("cpu")
    expected = exact.encode(few)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found: dict[str, Any] = {}
    for name, engine in ways.items():
        part = replace(base.document, engine=engine)
        encoder = replace(base, document=part, query=part)
        try:
            vectors = encoder.encode(few)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            found[name] = {
                "cosine_min": float((vectors * expected).sum(1).min()),
                "stability": str(stability(encoder, few[:16])),
            }
        except Exception as error:  # noqa: BLE001 - one way that fails must not lose the others
            found[name] = {"error": f"{type(error).__name__}: {error}"[:400]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--budgets", type=int, nargs="*", default=[16384, 65536])
    options = parser.parse_args()
    found: dict[str, Any] = {"installed": installed(), "cores": os.cpu_count()}
    print(json.dumps(found["installed"]), flush=True)
    missing = [n for n in NEEDED if importlib.util.find_spec(n) is None]
    if missing:
        sys.exit(f"not installed here: {', '.join(missing)}; pip install them first")
    import torch

    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no GPU")
    found["device"] = torch.cuda.get_device_name()
    found["peak_tflops"] = peak(torch)
    print(found["device"], json.dumps(found["peak_tflops"]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(Path(folder))
        found |= measured(torch, Path(folder), texts(options.texts), options)
    best = max(found["peak_tflops"].values())
    for record in found["ways"].values():
        if "tflops" in record:
            record["share_of_peak"] = record["tflops"] / best
            record["model_share_of_peak"] = record["model_tflops"] / best
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "encode_gpu.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
