"""Numbers as people read them: the only place where Weir rounds."""

from __future__ import annotations

import math

__all__ = ["change", "count", "effect", "megabytes", "probability", "score", "seconds"]


def score(value: float) -> str:
    """A score with four decimals, as trec_eval prints it; a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def count(value: float, decimals: int = 0) -> str:
    """A count with thousands apart."""
    return f"{value:,.{decimals}f}"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def megabytes(value: float) -> str:
    """A size given in bytes, in MB."""
    return f"{value / 1e6:,.1f} MB"


def change(value: float) -> str:
    """A difference of scores with its sign and four decimals; a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:+.4f}"


def probability(value: float) -> str:
    """A p-value with four decimals; never as zero, which no p-value is."""
    if math.isnan(value):
        return "-"
    return "<0.0001" if value < 0.00005 else f"{value:.4f}"


def effect(value: float | None) -> str:
    """An effect size with two decimals; a dash where there is none."""
    return "-" if value is None else f"{value:+.2f}"
