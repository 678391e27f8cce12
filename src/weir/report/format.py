"""Numbers as people read them: the only place where Weir rounds."""

from __future__ import annotations

import math

__all__ = ["change", "count", "effect", "figure", "probability", "score", "share"]


def score(value: float) -> str:
    """A score with four decimals, as trec_eval prints it; a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def count(value: float, decimals: int = 0) -> str:
    """A count with thousands apart."""
    return f"{value:,.{decimals}f}"


def share(value: float) -> str:
    """A share of 1 in per cent."""
    return f"{value:.1%}"


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


def figure(value: float | None) -> str:
    """A measured quantity with about three digits; a dash where it was not measured."""
    if value is None or math.isnan(value):
        return "-"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"
