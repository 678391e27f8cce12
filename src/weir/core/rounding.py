"""Format numbers as text: the only module that rounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

NO_INTERVAL = "[-]"


def score(value: float) -> str:
    """Return a score with four decimals; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def between(low: float | None, high: float | None, shown: Callable[[float], str] = score) -> str:
    """Return "[low, high]", each bound as text by `shown`; "[-]" if one is None or NaN."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return NO_INTERVAL
    return f"[{shown(low)}, {shown(high)}]"


def short_score(value: float) -> str:
    """Return a score with three decimals; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def typeset_change(value: float) -> str:
    """Return a signed difference with four decimals and a true minus sign; "0" if rounded to 0, "-" for NaN."""
    shown = f"{value:+.4f}"
    return "-" if math.isnan(value) else "0" if float(shown) == 0 else typeset(shown)


def coarse_score(value: float) -> str:
    """Return a number with two decimals; "nan" for NaN."""
    return f"{value:.2f}"


def share_change(ratio: float) -> str:
    """Return a ratio minus 1 as signed percentage, such as "+5.0%"; "0%" if rounded to 0."""
    shown = f"{ratio - 1:+.1%}"
    return "0%" if shown in ("+0.0%", "-0.0%") else shown


def typeset(sentence: str) -> str:
    """Return a sentence with true minus signs and signed zeros as 0."""
    return _MINUS.sub("−", _ZERO.sub("0", sentence))


_ZERO = re.compile(r"(?<![\w)\]+-])[+-]0\.0+(?![\d%])")
_MINUS = re.compile(r"(?<![\w)\]-])-(?=\.?\d)")


def count(value: float, decimals: int = 0) -> str:
    """Return a number with thousands separators, such as "1,234"."""
    return f"{value:,.{decimals}f}"


def percent(value: float, decimals: int = 1) -> str:
    """Return a share (0 to 1) as percentage, such as "5.0%"; "nan%" for NaN."""
    return f"{round(value, 12):.{decimals}%}"  # one share summed in two ways is one text, also halfway


def percent_points(value: float) -> str:
    """Return a score times 100 with three decimals."""
    return f"{100 * value:.3f}"


def percent_step(value: float) -> str:
    """Return a signed difference times 100 with three decimals."""
    return f"{100 * value:+.3f}"


def change(value: float) -> str:
    """Return a signed difference with four decimals; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:+.4f}".replace("-0.0000", "+0.0000")


def probability(value: float) -> str:
    """Return a p-value with four decimals; "<0.0001" below, "-" for NaN."""
    if math.isnan(value):
        return "-"
    return "<0.0001" if value < 0.00005 else f"{value:.4f}"


def effect(value: float | None) -> str:
    """Return an effect size, signed, with two decimals; "-" for None or NaN."""
    return "-" if value is None or math.isnan(value) else f"{value:+.2f}"


def exact(value: float) -> str:
    """Return the shortest text that reads back as the same float."""
    return repr(value)


def figure(value: float | None) -> str:
    """Return a number with about three digits; "-" for None or NaN."""
    if value is None or math.isnan(value):
        return "-"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"


def money(value: float) -> str:
    """Return an amount with up to four significant digits."""
    return f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """Return a time with two digits, in s, min, h or days; "-" for None."""
    if seconds is None:
        return "-"
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{_two(seconds / length)} {unit}"
    return f"{_two(seconds)} s"


def bytes_text(count: float | None) -> str:
    """Return bytes with two digits, in kB, MB, GB or TB; "-" for None."""
    if count is None:
        return "-"
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= length:
            return f"{_two(count / length)} {unit}"
    return f"{_two(count / 1e3)} kB"


def _two(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def one_or_more(count: int, one: str, more: str) -> str:
    """Return `one` for a count of 1, else `more`."""
    return one if count == 1 else more


def counted(count: int, one: str, more: str = "") -> str:
    """Return a count with its noun, such as "2 queries"; `more` defaults to `one` + "s"."""
    return f"{count:,} {one_or_more(count, one, more or one + 's')}"


def times(count: int) -> str:
    """Return "once" or "2 times"."""
    return one_or_more(count, "once", f"{count:,} times")


def part_of(count: int, total: int, nouns: str, one: str, more: str) -> str:
    """Return a phrase such as "1 of 5 documents is", by `total` nouns."""
    return f"{count:,} of {total:,} {nouns} {one_or_more(count, one, more)}"
