"""Add up how often the bound of a share of queries that leak holds the truth.

python scripts/make_calibration.py --leaks   # seconds; writes docs/calibration.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, takewhile
from math import comb, fsum

from weir.stats.resampling import share_below, share_bounds

QUERIES = (30, 100, 300, 1000)
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
KINDS = ("leaks",)
BOUNDS = {
    "exact": share_below,
    # The upper end of an interval of 90% is a bound of 95%.
    "Wilson": lambda leaks, count: share_bounds(leaks, count, 0.9)[1],
}


def measured() -> Iterator[dict]:
    """How often the share of all queries that leak is at most the bound of those that are seen."""
    for n in QUERIES:
        for share in SHARES:
            chance = [comb(n, seen) * share**seen * (1 - share) ** (n - seen) for seen in range(n + 1)]
            for name, bound in BOUNDS.items():
                missed = takewhile(
                    lambda seen, bound=bound, n=n, share=share: bound(seen, n) < share, count()
                )
                rate = 1 - fsum(chance[seen] for seen in missed)  # bounds grow with the leaks that are seen
                yield {"kind": "leaks", "source": f"{share:.1%}", "queries": n, "name": name, "rate": rate}


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
often the true share is at most it, added up over the numbers of leaks that can be seen. It is never fewer than 95 times
in 100; with shares so small that no leak is seen it is more. The bound of an approximate interval (Wilson) falls to
94.1% here."""
