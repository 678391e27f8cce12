"""Permutation tests, randomised Tukey HSD and bootstrap intervals of many systems: Weir beside SciPy, ranx and numpy.

    python benchmarks/inference_bench.py [--core 1] [--repeat 5] [--peers FOLDER] [--jobs tukey] [--large] [--quick]

Scores are random numbers: 10 systems x 6,980 queries (MS MARCO dev); with --large also 10 x 10,000 with 100,000 draws.
Each job runs in a process of its own with one thread, after one time that is not counted: medians of the processor's
seconds, and the peak memory of the process beside what it held before. SciPy and ranx test one pair of the 45, Weir all
of them; "numpy by hand" draws numbers of queries and counts them. ranx comes from its environment among the peers.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import common
from common import memory_mb, say, timed, versions

JOBS = {
    "weir permutation, 45 pairs, 10,000 draws": ("weir", "permutation", 6980, 10_000),
    "scipy permutation_test, 1 pair, 10,000 draws": ("scipy", "permutation", 6980, 10_000),
    "ranx Fisher's test, 1 pair, 1,000 draws": ("ranx", "permutation", 6980, 1_000),
    "weir bootstrap, 10 means, 10,000 samples": ("weir", "means", 6980, 10_000),
    "numpy by hand, 10 means, 10,000 samples": ("numpy", "means", 6980, 10_000),
    "scipy bootstrap, 1 mean, 10,000 samples": ("scipy", "means", 6980, 10_000),
    "weir bootstrap-shift, 45 pairs, 10,000 draws": ("weir", "bootstrap-shift", 6980, 10_000),
    "weir tukey, 45 pairs, 10,000 draws": ("weir", "tukey", 6980, 10_000),
}
LARGE = {
    "weir permutation, 45 pairs x 10,000 queries, 100,000 draws": ("weir", "permutation", 10_000, 100_000),
    "weir tukey, 45 pairs x 10,000 queries, 100,000 draws": ("weir", "tukey", 10_000, 100_000),
}


TINY_QUERIES, TINY_DRAWS = 50, 100


def job(tool: str, what: str, queries: int, draws: int) -> float:
    """One p-value or bound, so that nothing can be skipped."""
    values = np.random.default_rng(0).random((10, queries))
    if tool == "weir":
        return weir(values, what, draws)
    if tool == "ranx":
        from ranx.statistical_tests import fisher_randomization_test

        return float(fisher_randomization_test(values[0], values[1], n_permutations=draws)[0])
    if tool == "numpy":
        return by_hand(values, draws)
    if what == "means":
        from scipy.stats import bootstrap

        rng = np.random.default_rng(1)
        found = bootstrap((values[0],), np.mean, n_resamples=draws, method="percentile", batch=200, rng=rng)
        return float(found.confidence_interval.low)
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


def weir(values: np.ndarray, what: str, draws: int) -> float:
    """All pairs, or the intervals of all means."""
    from weir.stats import compare  # noqa: F401 - it registers the tests
    from weir.stats.resampling import Draws, resampled_sums
    from weir.stats.significance import p_values

    if what == "means":
        sums = np.concatenate(list(resampled_sums(values, draws, np.random.default_rng(1))))
        return float(np.quantile(sums / values.shape[1], [0.025, 0.975], axis=0)[0, 0])
    return float(p_values(what, values, draws=Draws(draws))[0])


def by_hand(values: np.ndarray, draws: int) -> float:
    """Sample numbers, count them, multiply; one sample at a time, which numpy does fastest."""
    draw, queries = np.random.default_rng(1), values.shape[1]
    counts, sums = np.empty((50, queries)), []
    for _ in range(draws // 50):
        for row in counts:
            row[:] = np.bincount(draw.integers(0, queries, queries), minlength=queries)
        sums.append(counts @ values.T)
    return float(np.quantile(np.concatenate(sums) / queries, [0.025, 0.975], axis=0)[0, 0])


def child(spec: dict[str, Any]) -> None:
    """Do one job some times and say how long it took."""
    value = job(*spec["job"][:3], 100)  # everything imported and compiled
    ready = memory_mb()
    common.reset_peak()
    found = timed(lambda: job(*spec["job"]), spec["repeat"], warm=0 if spec["repeat"] == 1 else 1, budget=120)
    record = found | {"value": job(*spec["job"]) if found["n"] > 1 else value}
    common.emit(
        record | {"ready_mb": ready, "peak_mb": memory_mb("VmHWM")} | versions("scipy", "ranx", "numpy")
    )


def main() -> None:
    """Every job, as a line of text and of benchmarks/results/inference.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peers", help="folder of the peers' environments")
    parser.add_argument("--jobs", default="", help="only jobs whose names hold this")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--quick", action="store_true", help="once, and record nothing")
    parser.add_argument("--tiny", action="store_true", help="a few queries and draws, for tests")
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
        return
    common.pin(given.core)
    machine = common.machine()
    for name, parts in (JOBS | (LARGE if given.large else {})).items():
        python = common.interpreter(given.peers, "ranx") if parts[0] == "ranx" else sys.executable
        if given.jobs not in name:
            continue
        if python is None:
            say(f"{name:62} no environment of that peer")
            continue
        tiny = (*parts[:2], TINY_QUERIES, TINY_DRAWS)
        spec = {"job": tiny if given.tiny else parts, "repeat": 1 if given.quick else given.repeat}
        found = {"job": name} | common.run_child(str(Path(__file__).resolve()), spec, python)
        seconds, peak = found.get("cpu_median", float("nan")), found.get("peak_mb", 0)
        say(f"{name:62} {seconds:8.3f} s {peak:7.0f} MB {found.get('error', '')}")
        if not given.quick:
            common.append("inference", found | {"machine": machine})


if __name__ == "__main__":
    main()
