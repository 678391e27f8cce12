"""BIRCO: evaluation/rank2metric.py of a checkout, without resampling; means only.

It takes rankings without scores, so that ties stay in the order of the input.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import os
import pathlib
import pickle
import re
import runpy
import shutil
import sys
import tempfile
from typing import Any

PROGRAM = "rank2metric.py"
if len(sys.argv) < 3:
    raise ImportError("it is a checkout and no package: name its folder with `checkout`")
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
    """Return {"mean": BIRCO's mean of a measure on a test vector, in 0..1, "decimals": 5}; None if BIRCO
    lacks the measure.

    Raises RuntimeError if it prints none.
    """
    name = NAMES.get(measure["name"])
    if name is None or measure["condensed"]:
        return None
    qrel, ranks = pools(vector)
    test_set = {"query": dict.fromkeys(qrel, ""), "corpus": {}, "qrel": qrel}
    figures = printed(pickle.dumps(test_set), pickle.dumps(ranks))
    if name not in figures:
        raise RuntimeError(f"it prints no {name} among {', '.join(figures) or 'nothing'}")
    return {"mean": figures[name] / 100, "decimals": 5}


def pools(vector: dict[str, Any]) -> tuple[dict[str, dict[str, float]], dict[str, list[str]]]:
    """Return (grades, rankings) of a test vector's judged queries, filled up to 10 documents each.

    Documents not returned follow in the ranking; unjudged and added documents have grade 0.
    """
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
def beside() -> pathlib.Path:
    """Copy BIRCO's program into a temporary folder, make that the working folder and the first of sys.path,
    and return it."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="birco-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    (scratch / "datasets" / "relic").mkdir(parents=True)
    (scratch / "evaluation").mkdir()
    for source in SOURCES.glob("*.py"):
        shutil.copy(source, scratch / "evaluation")
    sys.path.insert(0, str(scratch / "evaluation"))
    os.chdir(scratch / "evaluation")
    return scratch


@functools.cache
def printed(test_set: bytes, ranks: bytes) -> dict[str, float]:
    """Run BIRCO's program on pickled test set and rankings; return {measure: printed figure}. Raises
    RuntimeError if it fails."""
    scratch = beside()
    (scratch / "datasets" / "relic" / "test_set.pickle").write_bytes(test_set)
    (scratch / "evaluation" / "ranks.pickle").write_bytes(ranks)
    output, arguments = io.StringIO(), sys.argv
    sys.argv = [PROGRAM, "--dataset_name", "relic", "--boot", "false", "--rank_path", "ranks.pickle"]
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(PROGRAM, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"it ended with {end.code}") from None
    finally:
        sys.argv = arguments
    labels = [(label.lower().replace("recall", "r"), text) for label, text in LINE.findall(output.getvalue())]
    return {SPELLED.get(label, label): float(text) for label, text in labels}
