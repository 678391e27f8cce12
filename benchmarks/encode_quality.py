"""What computing in bf16 or int8 costs in quality, beside the scores that MTEB's results repository publishes.

    python benchmarks/encode_quality.py --data COLLECTIONS --output results/
    python benchmarks/encode_quality.py --data COLLECTIONS --output results/ --model mpnet --weights FOLDER

Runs `dense(MODEL, dtype=...)` through `weir run` (title, space, text), resumably in the folder given, and appends each
mean with its difference from the published one to results/encode_quality.jsonl; MTEB has none of gte-small among the
published scores that come with Weir, and none of Cranfield. One thread; MiniLM takes an hour of one core for all,
all-mpnet-base-v2 some eight.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from common import ONE_THREAD, append, data_folder, machine, say, versions

PUBLISHED = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2 [MTEB]",
    "mpnet": "sentence-transformers/all-mpnet-base-v2 [MTEB]",
    "gte-small": None,
}
"""What Weir's published scores call a model."""
SETTINGS = {"gte-small": ', pooling="mean", similarity="cosine"'}
"""What a folder does not say."""
ALLOWED = {"fp32": 0.00001, "bf16": 0.0015, "int8": 0.004}
"""Of nDCG@10, in either direction."""


def published_scores(model: str) -> dict[tuple[str, str], float]:
    """The published mean of each collection and measure."""
    from weir.experiment.published import published

    name = PUBLISHED[model]
    rows = () if name is None else published(model=name)
    return {(row.dataset, row.measure): row.value for row in rows}


def scores(data: Path, collection: str, system: str, output: str) -> list[dict[str, object]]:
    """The lines that `weir run` prints."""
    command = [sys.executable, "-m", "weir", "run", "-d", str(data / collection), "-s", system]
    command += ["-m", "nDCG@10", "-m", "R@100", "-o", output, "--device", "cpu", "--json", "-q"]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data")
    parser.add_argument("--output", required=True)
    parser.add_argument("--model", choices=list(PUBLISHED), default="minilm")
    parser.add_argument(
        "--weights", type=Path, help="The folder of the checkpoint, where it is none of Weir's names."
    )
    parser.add_argument("--dtypes", nargs="*", default=list(ALLOWED))
    parser.add_argument("--collections", nargs="*", default=["scifact", "nfcorpus", "cranfield"])
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    known = published_scores(options.model)
    for dtype in options.dtypes:
        for collection in options.collections:
            place = options.weights or options.model
            own = SETTINGS.get(options.model, "")
            system = f'dense("{place}"{own}, dtype="{dtype}", engine="{options.engine}")'
            for line in scores(data_folder(options.data), collection, system, options.output):
                measure, mean = str(line["measure"]), float(str(line["mean"]))
                value = known.get((collection, measure))
                away = None if value is None else mean - value
                shown = "" if away is None else f"  {100 * away:+.3f} points"
                say(f"{options.model} {dtype:5} {collection:9} {measure:8} {mean:.5f}{shown}")
                record = {
                    "model": options.model,
                    "dtype": dtype,
                    "collection": collection,
                    "measure": measure,
                }
                kept = None if away is None or measure != "nDCG@10" else abs(away) <= ALLOWED[dtype]
                packages = versions("openvino", "nncf", "torch", "numba", "weir-ir")
                found = record | {"mean": mean, "difference": away, "within": kept, "versions": packages}
                append("encode_quality", {"machine": machine()} | found)


if __name__ == "__main__":
    main()
