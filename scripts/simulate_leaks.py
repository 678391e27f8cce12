"""Simulate queries that leak: how often the bound of their share holds the truth.

python scripts/make_calibration.py --leaks [--repetitions 10000]   # seconds; writes docs/calibration.md
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from weir.stats.resampling import share_below, share_bounds

QUERIES = (30, 100, 300, 1000)
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
KINDS = ("leaks",)
BOUNDS = {
    "exact": share_below,
    # The upper end of an interval of 90% is a bound of 95%.
    "Wilson": lambda leaks, count: share_bounds(leaks, count, 0.9)[1],
}


def measured(repetitions: int) -> Iterator[dict]:
    """How often the share of all queries that leak is at most the bound of those that are seen."""
    for n in QUERIES:
        for share in SHARES:
            leaks = np.random.default_rng([14, n, int(share * 1000)]).binomial(n, share, repetitions)
            for name, bound in BOUNDS.items():
                of_count = cache(lambda seen, bound=bound, n=n: bound(seen, n))
                held = np.array([of_count(seen) >= share for seen in leaks.tolist()])
                yield {"kind": "leaks", "source": f"{share:.1%}", "queries": n, "name": name, "count": repetitions,
                       "rate": float(held.mean())}  # fmt: skip


def page(found: list[dict]) -> list[str]:
    """The section of docs/calibration.md."""
    at = {(r["source"], r["name"], r["queries"]): r["rate"] for r in found if r["kind"] == "leaks"}
    lines = ["## The bound of a share of leaks", "", LEAKS, ""]
    lines += ["| queries that leak | bound | " + " | ".join(f"{n:,}" for n in QUERIES) + " |"]
    lines += ["|---|---|" + "---|" * len(QUERIES)]
    for share, name in dict.fromkeys((share, name) for share, name, _ in at):
        rates = (f"{at[share, name, n]:.1%}" for n in QUERIES)
        lines.append(f"| {share} | {name} | " + " | ".join(rates) + " |")
    return [*lines, ""]


LEAKS = """`0 of 300 queries: below 1.0% at 95%` is an exact bound (Clopper and Pearson): by queries scored, how
often the true share is at most it. It should never be fewer than 95 times in 100; with shares so small that no leak is
seen it is more. The bound of an approximate interval (Wilson) falls to 94.1% here."""
