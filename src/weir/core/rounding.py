"""Numbers as people read them, alone and in sentences: the only place where Weir rounds."""

from __future__ import annotations

import math
from collections.abc import Callable


def score(value: float) -> str:
    """A score with four decimals, as trec_eval prints it; a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def between(low: float | None, high: float | None, shown: Callable[[float], str] = score) -> str:
    """An interval in brackets; a dash in them where there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "[-]"
    return f"[{shown(low)}, {shown(high)}]"


def short_score(value: float) -> str:
    """A score with three decimals, for charts; a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def short_change(value: float) -> str:
    """A difference of scores with its sign and three decimals, with a real minus, for charts."""
    return "-" if math.isnan(value) else f"{value:+.3f}".replace("-", "−")


def coarse_score(value: float) -> str:
    """A score or a difference with two decimals, for what is known no better."""
    return f"{value:.2f}"


def share_change(ratio: float) -> str:
    """How far a ratio is from 1, in per cent with its sign."""
    return f"{ratio - 1:+.1%}"


def count(value: float, decimals: int = 0) -> str:
    """A count with thousands apart."""
    return f"{value:,.{decimals}f}"


def share(value: float, decimals: int = 1) -> str:
    """A share of 1 in per cent."""
    return f"{value:.{decimals}%}"


def percent_points(value: float) -> str:
    """A score times 100 with three decimals, as BIRCO prints it."""
    return f"{100 * value:.3f}"


def percent_step(value: float) -> str:
    """A difference of scores times 100 with its sign and three decimals, beside `percent_points`."""
    return f"{100 * value:+.3f}"


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
    return "-" if value is None or math.isnan(value) else f"{value:+.2f}"


def exact(value: float) -> str:
    """A number that is to be typed again: the shortest decimals that read back as it."""
    return repr(value)


def figure(value: float | None) -> str:
    """A measured quantity with about three digits; a dash where it was not measured."""
    if value is None or math.isnan(value):
        return "-"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"


def money(value: float) -> str:
    """An amount of money with up to four digits that count."""
    return f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """A time with two digits, in the unit that suits it; a dash where it is not known."""
    if seconds is None:
        return "-"
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{_two(seconds / length)} {unit}"
    return f"{_two(seconds)} s"


def size(count: float | None) -> str:
    """A number of bytes with two digits, in the unit that suits it; a dash where it is not known."""
    if count is None:
        return "-"
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= length:
            return f"{_two(count / length)} {unit}"
    return f"{_two(count / 1e3)} kB"


def _two(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def one_or_more(count: int, one: str, more: str) -> str:
    """The form of a word that goes with a count: `one` with 1, `more` with any other."""
    return one if count == 1 else more


def counted(count: int, one: str, more: str = "") -> str:
    """A count and its noun; more: the plural, by default the noun with an s."""
    return f"{count:,} {one_or_more(count, one, more or one + 's')}"


def times(count: int) -> str:
    """How often: once, 2 times."""
    return one_or_more(count, "once", f"{count:,} times")


def part_of(count: int, total: int, nouns: str, one: str, more: str) -> str:
    """How many of all, and the verb: 1 of 5 documents is, 2 of 5 documents are."""
    return f"{count:,} of {total:,} {nouns} {one_or_more(count, one, more)}"
