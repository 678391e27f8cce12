"""Prompts a second of a causal model in this process: Weir's asking, transformers' generate and its pipeline.

A Llama with random weights (weights move no clock) in the shape of a small chat model reads prompts of a re-ranker:
passages of mixed length, answers of at most --tokens tokens, none of which ends early. Weir sorts prompts by length,
keeps each answer, and is asked as a re-ranker asks; `generate` gets the same batch size, padded on the left, once in
the order given and once sorted by length; the pipeline is transformers' own for text. In turn, --repeats times, one
JSON line for each. Weir's greedy answers are compared with those of generate, text by text.

    python benchmarks/llm_local.py [--prompts 96] [--batch 8] [--tokens 8] [--repeats 3] [--note "..."]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import HERE, append, machine, say

sys.path.insert(0, str(HERE.parent))
SHAPE = dict(hidden_size=256, intermediate_size=688, num_hidden_layers=6, num_attention_heads=8)
WORDS = ["river", "weir", "dam", "flow", "meadow", "bread", "oven", "stream", "gauge", "bridge"]


def model_folder(folder: Path) -> Path:
    """A checkpoint of that shape with a tokenizer of bytes and a chat template, whose answers do not end."""
    import torch
    import transformers
    from tests.neural.causal_small import write_byte_tokenizer

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=32000, num_key_value_heads=4, max_position_embeddings=4096, **SHAPE
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    write_byte_tokenizer(folder)
    return folder


def prompts_of(count: int) -> list[Any]:
    """Prompts of 10 to 60 words."""
    from weir.plugins.llm.prompts import ChatPrompt

    def passage(n: int) -> str:
        return " ".join(WORDS[(n * 7 + i) % 10] for i in range(10 + (n * 37) % 50))

    system = "You judge how well a passage serves a search."
    return [ChatPrompt(system, f"Search: weir {n}\n\n{passage(n)}\n\n0 to 10?", 0, 0.0) for n in range(count)]


def asked(folder: Path, prompts: list[Any], batch: int) -> tuple[float, list[str]]:
    """Seconds of Weir in a new home, the model loaded within, and the answers."""
    from weir.plugins.llm.chat import ChatModel, cached_chat
    from weir.services.answers import ServiceUsage
    from weir.settings import settings

    with tempfile.TemporaryDirectory() as home:
        os.environ["WEIR_HOME"] = home
        settings.cache_clear()
        use = ServiceUsage("")
        begin = time.perf_counter()
        with cached_chat(ChatModel(f"transformers:{folder}"), batch, use) as talk:
            found = [reply.text for reply in talk.replies(len(prompts), prompts.__getitem__)]
        return time.perf_counter() - begin, found


def peers(folder: Path, prompts: list[Any], batch: int, tokens: int) -> dict[str, Callable[[], list[str]]]:
    """transformers' own ways; each loads the model within its time, as Weir does."""
    import torch
    import transformers

    told = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left")
    messages = [
        [{"role": "system", "content": p.system}, {"role": "user", "content": p.user}] for p in prompts
    ]
    texts = [told.apply_chat_template(m, tokenize=False, add_generation_prompt=True) for m in messages]

    def generated(order: list[int]) -> list[str]:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        found = [""] * len(texts)
        for start in range(0, len(order), batch):
            own = order[start : start + batch]
            given = told([texts[i] for i in own], return_tensors="pt", padding=True, add_special_tokens=False)
            given.pop("token_type_ids", None)
            with torch.inference_mode():
                out = model.generate(**given, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
            said = told.batch_decode(out[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
            for place, text in zip(own, said, strict=True):
                found[place] = text
        return found

    def piped() -> list[str]:
        pipe = transformers.pipeline("text-generation", model=str(folder), tokenizer=told, batch_size=batch)
        settings = dict(max_new_tokens=tokens, do_sample=False, return_full_text=False, pad_token_id=0)
        return [out[0]["generated_text"] for out in pipe(texts, add_special_tokens=False, **settings)]

    order = list(range(len(texts)))
    by_length = sorted(order, key=lambda i: -len(texts[i]))
    return {
        "generate": lambda: generated(order),
        "generate, sorted": lambda: generated(by_length),
        "pipeline": piped,
    }


def main() -> None:
    """Measure, print and append."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prompts", type=int, default=96)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--note", default="")
    given = parser.parse_args()
    from dataclasses import replace

    import torch

    from weir.settings import settings

    torch.set_num_threads(settings().threads)
    rates: dict[str, list[float]] = {"weir": []}
    with tempfile.TemporaryDirectory() as place:
        folder = model_folder(Path(place))
        prompts = [replace(p, max_tokens=given.tokens) for p in prompts_of(given.prompts)]
        ways = peers(folder, prompts, given.batch, given.tokens)
        asked(folder, prompts[:8], given.batch)  # what is imported and made once
        answers: dict[str, list[str]] = {}
        for _ in range(given.repeats):
            seconds, answers["weir"] = asked(folder, prompts, given.batch)
            rates["weir"].append(given.prompts / seconds)
            for name, run in ways.items():
                begin = time.perf_counter()
                answers[name] = run()
                rates.setdefault(name, []).append(given.prompts / (time.perf_counter() - begin))
    for name, found in rates.items():
        equal = sum(a == b for a, b in zip(answers[name], answers["generate"], strict=True))
        median = statistics.median(found)
        say(f"{name}: {median:.2f} prompts a second, {equal} of {given.prompts} answers those of generate")
        line = {"what": name, "prompts": given.prompts, "batch": given.batch, "tokens": given.tokens}
        line |= {"per second": median, "runs": found, "equal": equal, "note": given.note}
        append("llm_local", line | {"machine": machine()})


if __name__ == "__main__":
    main()
