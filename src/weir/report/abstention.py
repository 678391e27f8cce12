"""Abstention curves as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from weir.core.rounding import score, share
from weir.core.tables import columns
from weir.stats.abstention import Abstention

__all__ = ["abstention_text"]

_SHOWN = (0, 3, 6, 9)  # of the rates


def abstention_text(found: Sequence[Abstention], width: int | None = None) -> str:
    """A table for the terminal: nAUC of each measure, and its mean when ever fewer queries are answered."""
    if not found:
        return "nothing to abstain from"
    first = found[0]
    head = [f"confidence {first.confidence}", "nAUC", *(f"{share(first.rates[i])} left out" for i in _SHOWN)]
    lines = [[one.measure, score(one.nauc), *(score(one.curve[i]) for i in _SHOWN)] for one in found]
    return columns([head, *lines], len(head) - 1, width)
