"""What computing in bf16 or int8 costs in quality: MiniLM on SciFact and NFCorpus, beside the published scores.

    python benchmarks/encode_quality.py --data COLLECTIONS --output results/

Runs `dense("minilm", dtype=...)` through `weir run` (title, space, text, 256 tokens), resumably in the folder
given, and appends each mean with its difference from the published one (MTEB's results repository, revision
8b3219a of the model) to results/encode_quality.jsonl. One thread; an hour of one core for all.
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
    ("scifact", "nDCG@10"): 0.64508,
    ("scifact", "R@100"): 0.925,
    ("nfcorpus", "nDCG@10"): 0.31594,
    ("nfcorpus", "R@100"): 0.31151,
}
ALLOWED = {"fp32": 0.00001, "bf16": 0.0015, "int8": 0.003}
"""Of nDCG@10, in either direction."""


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
    parser.add_argument("--dtypes", nargs="*", default=list(ALLOWED))
    parser.add_argument("--collections", nargs="*", default=["scifact", "nfcorpus"])
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    for dtype in options.dtypes:
        for collection in options.collections:
            system = f'dense("minilm", dtype="{dtype}", engine="{options.engine}")'
            for line in scores(data_folder(options.data), collection, system, options.output):
                measure, mean = str(line["measure"]), float(str(line["mean"]))
                away = mean - PUBLISHED[collection, measure]
                say(f"{dtype:5} {collection:9} {measure:8} {mean:.5f}  {100 * away:+.3f} points")
                record = {"collection": collection, "system": system, "measure": measure, "mean": mean}
                kept = measure != "nDCG@10" or abs(away) <= ALLOWED[dtype]
                packages = versions("torch", "numba", "weir-ir")
                found = record | {"difference": away, "within": kept, "versions": packages}
                append("encode_quality", {"machine": machine()} | found)


if __name__ == "__main__":
    main()
