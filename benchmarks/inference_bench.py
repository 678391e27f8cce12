"""Paired permutation tests, randomised Tukey HSD and bootstrap intervals of many systems: Weir beside SciPy.

    python benchmarks/inference_bench.py [--core 1] [--large]

Scores are random numbers: 10 systems x 6,980 queries (MS MARCO dev); with --large also 10 x 10,000 with 100,000
permutations. Each job runs in a process of its own with one thread; processor seconds (a busy neighbour does not
count), the best of three, and the peak memory of the process. SciPy tests one pair of the 45, Weir all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from common import RESULTS, emit, memory_mb, pin, run_child, say

JOBS = {
    "weir permutation, 45 pairs, 10,000 draws": ("weir", "permutation", 6980, 10_000),
    "scipy permutation_test, 1 pair, 10,000 draws": ("scipy", "permutation", 6980, 10_000),
    "weir tukey, 45 pairs, 10,000 draws": ("weir", "tukey", 6980, 10_000),
    "weir bootstrap, 10 means, 10,000 samples": ("weir", "means", 6980, 10_000),
}
LARGE = {
    "weir permutation, 45 pairs x 10,000 queries, 100,000 draws": ("weir", "permutation", 10_000, 100_000)
}


def job(tool: str, what: str, queries: int, draws: int) -> float:
    """One p-value or mean, so that nothing can be skipped."""
    values = np.random.default_rng(0).random((10, queries))
    if tool == "scipy":
        from scipy.stats import permutation_test

        return permutation_test(
            (values[0], values[1]),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            n_resamples=draws,
            vectorized=True,
            batch=200,
            rng=np.random.default_rng(1),
        ).pvalue
    from weir.stats import compare  # noqa: F401 - it registers the tests
    from weir.stats.resampling import resampled_sums
    from weir.stats.significance import Draws, p_values

    if what == "means":
        blocks = list(resampled_sums(values, draws, np.random.default_rng(1)))
        return float(np.quantile(np.concatenate(blocks) / queries, 0.025, axis=0)[0])
    return float(p_values(what, values, draws=Draws(draws))[0])


def child(spec: dict) -> None:
    """Do one job three times and say how long the best took."""
    taken, value = [], 0.0
    for _ in range(spec["repeat"]):
        start = time.process_time()
        value = job(*spec["job"])
        taken.append(time.process_time() - start)
    emit({"seconds": min(taken), "value": value, "peak_mb": memory_mb("VmHWM")})


def main() -> None:
    """Every job, as a line of text and of benchmarks/results/inference.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--core", type=int)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
        return
    pin(given.core)
    lines = []
    for name, parts in (JOBS | (LARGE if given.large else {})).items():
        spec = {"job": parts, "repeat": 1 if parts[3] > 10_000 else 3}
        found = {"job": name} | run_child(str(Path(__file__).resolve()), spec, sys.executable)
        say(f"{name:62} {found.get('seconds', float('nan')):8.3f} s {found.get('peak_mb', 0):7.0f} MB")
        lines.append(json.dumps(found))
    (RESULTS / "inference.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
