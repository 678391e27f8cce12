"""BIRCO: evaluation/rank2metric.py of a checkout, run as its users run it, without resampling; means alone.

It takes rankings of whole pools, lists without scores, of at least ten documents. So equal scores stay in the order of
the input, documents that were not returned stand at the end, unjudged ones belong to the pool with grade 0, and pools
are filled up to ten with documents of grade 0 at the very end, which change no measure. It is run in a copy of the
checkout's evaluation folder, beside which datasets/relic/test_set.pickle holds the judgments of a vector.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

PROGRAM = "rank2metric.py"
if len(sys.argv) < 3:
    raise ImportError("it is a checkout and no package: name its folder with --checkout")
SOURCES = pathlib.Path(sys.argv[2]) / "evaluation"
if not (SOURCES / PROGRAM).is_file():
    raise ImportError(f"no evaluation/{PROGRAM} in {sys.argv[2]}")

PACKAGE = "BIRCO"
VERSION = "sha256 " + hashlib.sha256((SOURCES / PROGRAM).read_bytes()).hexdigest()[:12]
FOLLOWS: set[str] = set()
HOLDS = {"unanswered"}

NAMES = {
    "R@5": "r@5",
    "R@10": "r@10",
    "R@20": "r@20",
    "R@100": "r@100",
    "nDCG@10": "ndcg@10",
    "RR@10": "mrr@10",
    "AP": "map",
}
LEAST_POOL = 10
LINE = re.compile(
    r"\b(r(?:ecall)?@\d+|ndcg(?:@10)?|mrr(?:@10)?|map)\b[^\d\n]*?(nan|\d+(?:\.\d+)?)", re.IGNORECASE
)
SPELLED = {"ndcg": "ndcg@10", "mrr": "mrr@10"}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """What the program prints of these rankings, as shares of 1."""
    name = NAMES.get(measure["name"])
    if name is None or measure["condensed"]:
        return None
    qrel, ranks = pools(vector)
    said = printed(
        pickle.dumps({"query": dict.fromkeys(qrel, ""), "corpus": {}, "qrel": qrel}), pickle.dumps(ranks)
    )
    return {"mean": said[name] / 100, "decimals": 5}


def pools(vector: dict[str, Any]) -> tuple[dict[str, dict[str, float]], dict[str, list[str]]]:
    """(grades of each pool, its ranking) as the program takes them."""
    qrel, ranks = {}, {}
    for query, judged in vector["qrels"].items():
        scored = sorted(vector["run"].get(query, []), key=lambda one: -one[1])
        returned = [document for document, _ in scored]
        grades = {**dict(judged), **{d: 0 for d in returned if d not in dict(judged)}}
        rest = [document for document in grades if document not in returned]
        filling = [f"filling {n}" for n in range(LEAST_POOL - len(grades))]
        if judged:
            qrel[query] = {**grades, **dict.fromkeys(filling, 0)}
            ranks[query] = [*returned, *rest, *filling]
    return qrel, ranks


@functools.cache
def printed(test_set: bytes, ranks: bytes) -> dict[str, float]:
    """The figures of the program by their names; what it raises is raised here."""
    with tempfile.TemporaryDirectory() as scratch:
        here = pathlib.Path(scratch) / "evaluation"
        here.mkdir()
        for source in SOURCES.glob("*.py"):
            shutil.copy(source, here)
        (pathlib.Path(scratch) / "datasets" / "relic").mkdir(parents=True)
        (pathlib.Path(scratch) / "datasets" / "relic" / "test_set.pickle").write_bytes(test_set)
        (here / "ranks.pickle").write_bytes(ranks)
        command = [sys.executable, PROGRAM, "--dataset_name", "relic", "--boot", "false"]
        done = subprocess.run(
            [*command, "--rank_path", "ranks.pickle"], cwd=here, capture_output=True, text=True, check=False
        )
    if done.returncode:
        kind, _, said = (done.stderr.strip().split("\n")[-1] or f"exit code {done.returncode}").partition(
            ": "
        )
        raise type(kind.rpartition(".")[2], (Exception,), {})(said)
    found = {label.lower().replace("recall", "r"): float(text) for label, text in LINE.findall(done.stdout)}
    return {SPELLED.get(label, label): number for label, number in found.items()}
