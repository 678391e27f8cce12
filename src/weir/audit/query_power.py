"""Power: what differences the queries at hand can show, and what ties at the cut-off leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.subject import Subject
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.power import POWER, detectable, excess_kurtosis, queries_needed

__all__ = ["WANTED_DIFFERENCE"]

MEASURE = parse_measure("nDCG@10")
WANTED_DIFFERENCE = 0.01
"""Of two means, the one that papers and releases argue about."""
TIE_BAND = 0.001
"""Width of the range of means over orders of tied documents from which it is said."""


@check("power", needs=["qrels", "runs"])
def power(subject: Subject) -> Iterator[Finding]:
    """The smallest difference of nDCG@10 that a permutation test would find with a probability of 80%, by pairs.

    From the spread of their differences between queries; and how many queries a difference of 0.01 would take.
    """
    scores = {n: scores_of(j, (MEASURE,)).values[0] for n, j in subject.joins.items() if j.answered.any()}
    found = {}
    for one, other in combinations(scores, 2):
        differences = scores[other] - scores[one]
        differences = differences[~np.isnan(differences)]
        deviation = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
        if deviation > 0:
            kurtosis = excess_kurtosis(differences[None])
            least = detectable(deviation, len(differences), kurtosis=kurtosis)
            found[one, other] = (least, deviation, len(differences), kurtosis)
    if not found:
        return
    pairs = sorted(found, key=lambda pair: found[pair][0])
    middle = pairs[len(pairs) // 2]
    least, deviation, queries, kurtosis = found[middle]
    needed = queries_needed(WANTED_DIFFERENCE, deviation, kurtosis=kurtosis)
    enough = least <= WANTED_DIFFERENCE
    take = "more than ten million" if needed is None else f"{needed:,}"
    shown = (
        f"show no difference of {MEASURE}, however large,"
        if least > 1
        else f"show a difference of {MEASURE} of {rounding.score(least)}"
    )
    yield Finding(
        "note" if enough else "caution",
        f"{queries:,} queries {shown} between systems such as {middle[0]} and {middle[1]} "
        f"with a probability of {rounding.share(POWER, 0)}; one of {WANTED_DIFFERENCE} takes {take} queries",
        "" if enough else "call smaller differences undecided, or add queries: weir power says how many",
        (
            ("queries", float(queries)),
            ("detectable", least if math.isfinite(least) else math.nan),
            ("queries needed", float("nan") if needed is None else float(needed)),
            ("pairs", float(len(found))),
        ),
    )


@check("tied scores", needs=["qrels", "runs"])
def tied_scores(subject: Subject) -> Iterator[Finding]:
    """How far nDCG@10 of a system depends on the order in which documents of equal score are put."""
    for name, join in subject.joins.items():
        if not join.answered.any():
            continue
        low, high = scores_of(join, (MEASURE,)).tie_bounds()[0].tolist()
        if high - low >= TIE_BAND:
            yield Finding(
                "caution",
                f"{MEASURE} is {rounding.score(low)} to {rounding.score(high)} by the order of "
                f"documents with equal scores",
                "write scores with more digits, or report the expected value: weir eval --ties expected",
                (("low", low), ("high", high)),
                system=name,
            )
