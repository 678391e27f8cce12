"""Numbers as people read them: the only place where Weir rounds."""

from __future__ import annotations

import math

__all__ = ["count", "megabytes", "score", "seconds"]


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
