"""Fusion spelled out with dicts and loops, to test the arrays against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from functools import cmp_to_key

__all__ = ["NAIVE", "naive", "ordered"]

Ranking = Mapping[str, float]


def ordered(ranking: Ranking) -> list[str]:
    """Documents by falling score, equal ones by falling identifier as bytes."""
    return sorted(ranking, key=lambda d: (ranking[d], d.encode()), reverse=True)


def normalised(norm: str, ranking: Ranking) -> dict[str, float]:
    """A ranking's scores under a normalisation."""
    scores = list(ranking.values())
    low, high, n = min(scores, default=0), max(scores, default=0), len(scores)
    mean = sum(ranking[d] for d in ordered(ranking)) / n if n else 0
    spread = math.sqrt(sum((s - mean) ** 2 for s in scores) / n) if n else 0
    raised, most = sum(s - low for s in scores), max(abs(low), abs(high))
    rule: dict[str, Callable[[int, float], float]] = {
        "none": lambda i, s: s,
        "minmax": lambda i, s: (s - low) / (high - low) if high > low else 1.0,
        "zscore": lambda i, s: (s - mean) / spread if high > low and spread else 0.0,
        "rank": lambda i, s: 1 - i / n,
        "sum": lambda i, s: (s - low) / raised if raised else 1 / n,
        "max": lambda i, s: s / most if most else 0.0,
    }
    return {d: rule[norm](i, ranking[d]) for i, d in enumerate(ordered(ranking))}


def _borda(rankings: list[Ranking], pool: list[str]) -> dict[str, float]:
    points = dict.fromkeys(pool, 0.0)
    for ranking in rankings:
        for place, document in enumerate(ordered(ranking)):
            points[document] += len(pool) - place
        left = [d for d in pool if d not in ranking]
        for document in left:
            points[document] += sum(range(1, len(left) + 1)) / len(left)
    return points


def _condorcet(rankings: list[Ranking], pool: list[str]) -> dict[str, float]:
    def beats(a: str, b: str) -> int:
        votes = 0
        for ranking in rankings:
            places = {d: i for i, d in enumerate(ordered(ranking))}
            votes += (places.get(a, 10**9) < places.get(b, 10**9)) - (
                places.get(a, 10**9) > places.get(b, 10**9)
            )
        return (votes > 0) - (votes < 0)

    return {a: sum((beats(a, b) + 1) / 2 for b in pool if b != a) for a in pool}


Shares = list[tuple[int, float]]
NAIVE: dict[str, Callable[..., float]] = {
    "rrf": lambda at, n, k=60: math.fsum(1 / (k + r) for r, _ in at),
    "isr": lambda at, n: len(at) * math.fsum(1 / r**2 for r, _ in at),
    "logisr": lambda at, n, sigma=0.0: math.log(len(at) + sigma) * math.fsum(1 / r**2 for r, _ in at),
    "rbc": lambda at, n, p=0.8: math.fsum((1 - p) * p ** (r - 1) for r, _ in at),
    "combsum": lambda at, n: math.fsum(s for _, s in at),
    "combmnz": lambda at, n: len(at) * math.fsum(s for _, s in at),
    "combanz": lambda at, n: math.fsum(s for _, s in at) / len(at),
    "combmin": lambda at, n: min(s for _, s in at),
    "combmax": lambda at, n: max(s for _, s in at),
    "combmed": lambda at, n: statistics.median(s for _, s in at),
    "wsum": lambda at, n: math.fsum(s / n for _, s in at),
}
"""From the (rank, normalised score) that runs give a document and the number of runs to its fused score."""

WHOLE = {"borda": _borda, "condorcet": _condorcet}


def naive(
    method: str, runs: list[Mapping[str, Ranking]], norm: str = "none", **given: float
) -> dict[str, dict[str, float]]:
    """{query: {document: fused score}} of dicts of dicts."""
    found = {}
    for query in dict.fromkeys(q for run in runs for q in run):
        rankings = [run.get(query, {}) for run in runs]
        pool = list(dict.fromkeys(d for ranking in rankings for d in ranking))
        if method in WHOLE:
            found[query] = WHOLE[method](rankings, pool)
            continue
        shares = [{d: (i + 1, s) for i, (d, s) in enumerate(normalised(norm, r).items())} for r in rankings]
        found[query] = {
            d: NAIVE[method]([share[d] for share in shares if d in share], len(runs), **given) for d in pool
        }
    return found


def hamiltonian(rankings: list[Ranking]) -> list[str]:
    """Documents sorted by majority, as Condorcet-fuse does; meaningful where no majorities go in circles or tie."""

    def compared(a: str, b: str) -> int:
        votes = sum(
            (ordered(r).index(a) < ordered(r).index(b)) - (ordered(r).index(a) > ordered(r).index(b))
            for r in rankings
        )
        return -1 if votes > 0 else 1

    return sorted(rankings[0], key=cmp_to_key(compared))
