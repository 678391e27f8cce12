"""Charts as values: what is drawn, without a library, and how it is written as SVG for a page, a notebook or a paper.

A chart knows its numbers and the systems that they are of. A system keeps its colour and its mark in all charts of
the same systems: number 0 is bm25, which is grey and a diamond. A filled mark says that a difference is separable
from the baseline. Sources of the rules: docs/decisions/019-report.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weir.core.rounding import change, score, short_change, short_score
from weir.core.tables import html_escaped

# ----------
# What is drawn.


@dataclass(frozen=True)
class Interval:
    """A value with its interval, None where it has none.

    system: the number of the system that it is of; filled: whether it is separable from the baseline, or stands for
    itself; ticks: names and values of what it is the mean of; together: the interval that holds for all comparisons
    together, drawn as a thin line.
    """

    value: float
    low: float | None = None
    high: float | None = None
    system: int = 1
    filled: bool = True
    ticks: tuple[tuple[str, float], ...] = ()
    together: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """A column of intervals under a heading; None where a row has no value. system: its number, None for no mark."""

    title: str
    intervals: tuple[Interval | None, ...]
    system: int | None = None


@dataclass(frozen=True)
class Intervals:
    """Rows of intervals, in one panel or several beside one another.

    axis: what the numbers are; signed: they are differences, drawn about a line at zero; bar: what an interval is;
    ends: numbers stand at its ends.
    """

    title: str
    axis: str
    rows: tuple[str, ...]
    panels: tuple[Panel, ...]
    signed: bool = False
    bar: str = "95% interval"
    ends: bool = False


@dataclass(frozen=True)
class Point:
    """A system at two numbers, with an interval upwards; filled as in `Interval`."""

    name: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    system: int = 1
    filled: bool = True


@dataclass(frozen=True)
class Points:
    """Points over a logarithmic axis, and the front of those that no other beats.

    front: numbers of the points on it from left to right, each with whether its step from the one before is separable.
    """

    title: str
    x_axis: str
    y_axis: str
    points: tuple[Point, ...]
    front: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """A value for each row and column, None for a hole.

    verdicts: of each, better, worse or ""; changes: the differences whose size the tint shows; both are empty where
    the tint shows the place of a value among all.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    verdicts: tuple[tuple[str, ...], ...] = ()
    changes: tuple[tuple[float | None, ...], ...] = ()


@dataclass(frozen=True)
class Spread:
    """Several numbers of each row on one line, such as the median and the 95th percentile, over a logarithmic axis.

    parts: what they are, from left to right; systems: the number of each row's system, None for no mark.
    """

    title: str
    axis: str
    rows: tuple[str, ...]
    parts: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    systems: tuple[int | None, ...]


Chart: TypeAlias = "Intervals | Points | HeatMap | Spread"


@dataclass(frozen=True)
class SystemNumbers:
    """Numbers and short names of the systems of a page, so that one looks the same in all of its charts.

    names: in the order of the experiment; labels: what charts call them; baseline: what others are compared with, ""
    for none.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    baseline: str = ""

    def number(self, name: str) -> int:
        """0 for bm25, else the place among the others by label, from 1, whatever the order and the baseline are.

        Systems beyond the palette share its last.
        """
        own = [one for one in self.names if one == "bm25" or (one.startswith("bm25(") and ">>" not in one)]
        grey = min(own, key=lambda one: (one != "bm25", one), default=None)
        others = sorted((one for one in self.names if one != grey), key=self.label)
        return 0 if name == grey else min([*others, name].index(name) + 1, len(LIGHT))

    def label(self, name: str) -> str:
        """The short name of a system."""
        return dict(zip(self.names, self.labels, strict=True)).get(name, name)


# ----------
# Colours and marks.

LIGHT = [
    "#3d3dd2",
    "#d95281",
    "#a1950c",
    "#9c76ff",
    "#519eaf",
    "#7b0640",
    "#598549",
    "#452e77",
    "#945c01",
    "#655c8a",
    "#950914",
    "#2b7153",
]
DARK = [
    "#81b4ff",
    "#ea8495",
    "#f5d84a",
    "#7b6ff5",
    "#267590",
    "#9e5a61",
    "#c9efa9",
    "#a38db8",
    "#b79763",
    "#e1cfff",
    "#f05910",
    "#a3edcd",
]
"""Colours of systems 1 to 12 on a light and on a dark page, apart for readers of every colour vision."""


def _luminance(ink: str) -> float:
    parts = [int(ink[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _readable(colour: str, paper: str, ink: str) -> str:
    """The colour with as much ink in it as text on this paper needs for AA."""
    mixed = [
        "#" + "".join(
            f"{round(int(colour[at : at + 2], 16) * (1 - part / 20) + int(ink[at : at + 2], 16) * part / 20):02x}"
            for at in (1, 3, 5)
        )
        for part in range(21)
    ]  # fmt: skip
    return next(one for one in mixed if contrast(one, paper) >= 4.6)


INKS = {
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1a1e23", "#e8ebee"),
    "soft": ("#555e68", "#a3adb8"),
    "axis": ("#8a929b", "#6d7680"),
    "line": ("#e3e6ea", "#2c3238"),
    "panel": ("#f4f6f8", "#1d2126"),
    "link": ("#2450b8", "#8ab4ff"),
    "s0": ("#434a52", "#c3cad2"),
    "better": ("#0b6b5c", "#4fc3ad"),
    "worse": ("#9a4a10", "#e79a5b"),
    "serious": ("#9b1c1c", "#ff8f85"),
    **{f"s{n + 1}": pair for n, pair in enumerate(zip(LIGHT, DARK, strict=True))},
    **{f"better{n}": pair for n, pair in enumerate(zip(["#e2f3ef", "#c3e6de", "#9fd6ca", "#78c4b4"],
        ["#19332f", "#1b443d", "#1c564c", "#1b695c"], strict=True))},
    **{f"worse{n}": pair for n, pair in enumerate(zip(["#fbeadb", "#f8dcc3", "#f2c6a0", "#ecb27f"],
        ["#38281b", "#4a3019", "#5f3a18", "#764617"], strict=True))},
    **{f"place{n}": pair for n, pair in enumerate(zip(["#eef3fb", "#dbe6f7", "#c2d5f1", "#a5c0e9", "#86a9df"],
        ["#1b2330", "#1f2c42", "#243757", "#29436d", "#2f5085"], strict=True))},
}  # fmt: skip
INKS |= {
    f"n{n}": (
        _readable(INKS[f"s{n}"][0], "#ffffff", "#1a1e23"),
        _readable(INKS[f"s{n}"][1], "#15181c", "#e8ebee"),
    )
    for n in range(len(LIGHT) + 1)
}
"""Every colour by its name, on a light page and on a dark one; n0, n1 ... are those of names of systems."""

_MARKS = (
    "M0-6 6 0 0 6-6 0Z",  # bm25's diamond
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M0-5.5 5.5 4.5h-11Z",
    "M0 5.5 5.5-4.5h-11Z",
    "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6Z",
    "M-5-3-3-5 0-2 3-5 5-3 2 0 5 3 3 5 0 2-3 5-5 3-2 0Z",
    "M0-6 1.7-2 6-1.8 2.7 1 3.8 5.2 0 2.8-3.8 5.2-2.7 1-6-1.8-1.7-2Z",
    "M0-5.6 5.4-1.7 3.3 4.6h-6.6L-5.4-1.7Z",
    "M-5.5 0 4.5-5.5v11Z",
    "M5.5 0-4.5-5.5v11Z",
    "M-5.5 2.5a5.5 5.5 0 0 1 11 0Z",
    "M-5-5.5h10L1 0l4 5.5h-10L-1 0Z",
)
"""Outlines of the marks of systems 0 to 12, about the origin."""
ICONS = {
    "better": "M0-4.6 4.6 3.8h-9.2Z",
    "worse": "M0 4.6 4.6-3.8h-9.2Z",
    "": "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0Z",
}
"""Outlines of verdicts: better, worse, not separable."""
TINT_STEPS = (0.1, 0.2, 0.3)
"""Differences from which a tint of a verdict is the next darker one."""

FONT = "Inter, 'Helvetica Neue', Arial, sans-serif"
LONGEST_LABEL = 60
"""Characters of a name in a chart."""
WIDE_PX, MIDDLE_PX, NARROW_PX = 1080, 672, 328
"""Widths at which a page draws each chart: for screens, for tablets and paper, and for telephones."""
WIDTHS_PX = {"page": 672, "column": 320}
"""Widths of figures of a paper: 7 inches and 3.33 inches at 96 pixels an inch."""


@dataclass(frozen=True)
class Look:
    """How elements are painted: by classes, which the style sheet of a page colours, or by attributes of a file."""

    classes: bool
    size: float = 13.0

    def fill(self, name: str) -> str:
        """Attributes of what is filled with a colour."""
        return f'class="weir-f-{name}"' if self.classes else f'fill="{INKS[name][0]}"'

    def stroke(self, name: str, width: float, dash: str = "") -> str:
        """Attributes of a line in a colour."""
        ink = f'class="weir-l-{name}"' if self.classes else f'stroke="{INKS[name][0]}"'
        return f'{ink} stroke-width="{width:g}"' + (f' stroke-dasharray="{dash}"' if dash else "")

    def mark(self, name: str, filled: bool) -> str:
        """Attributes of a mark in a colour, filled or hollow."""
        if self.classes:
            return f'class="{"weir-f" if filled else "weir-h"}-{name}"'
        ink, paper = INKS[name][0], INKS["paper"][0]
        inside = ink if filled else paper
        return f'fill="{inside}" stroke="{ink}" stroke-width="1.6"'


def css() -> str:
    """The style sheet of charts: their colours on a light and on a dark page, and on paper."""
    names = [name for name in INKS if not name[-1].isdigit() or name[0] in "nsbwp"]
    light = "".join(f"--weir-{name}:{INKS[name][0]};" for name in names)
    dark = "".join(f"--weir-{name}:{INKS[name][1]};" for name in names)
    rules = "".join(
        f".weir-f-{name}{{fill:var(--weir-{name})}}.weir-l-{name}{{stroke:var(--weir-{name})}}"
        + (
            f".weir-h-{name}{{fill:var(--weir-paper);stroke:var(--weir-{name});stroke-width:1.6}}"
            * (name[0] == "s")
        )
        for name in names
    )
    grounds = "".join(
        f".weir-t-{n}{{background:var(--weir-{n})}}" for n in names if n[-1].isdigit() and n[0] in "bw"
    )
    return (
        f":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}@media print{{:root:root{{{light}}}}}{rules}{grounds}"
        f".weir-chart{{display:block;font-family:{FONT};max-width:100%;height:auto}}"
    )


def svg(chart: Chart, width: int = WIDE_PX, classes: bool = False, key: bool = False) -> str:
    """A chart as an SVG element of this width in pixels; classes: painted by `css()` of a page instead of itself.

    It has a title and a description that says its numbers in words. key: say below it what its marks mean.
    """
    look = Look(classes, 13 if width > 400 else 12)
    height, body = _drawn(chart, width, look)
    if key:
        more, said = _key(chart, width, look)
        height, body = height + more, f'{body}<g transform="translate(0 {height:.1f})">{said}</g>'
    text = html_escaped(description(chart))
    own = 'class="weir-chart"' if classes else f'font-family="{html_escaped(FONT)}"'
    ground = "" if classes else f'<rect width="{width}" height="{height:.0f}" fill="{INKS["paper"][0]}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {own} width="{width}" height="{height:.0f}" '
        f'viewBox="0 0 {width} {height:.0f}" font-size="{look.size:g}" role="img">'
        f"<title>{html_escaped(chart.title)}</title><desc>{text}</desc>{ground}{body}</svg>"
    )


def _drawn(chart: Chart, width: int, look: Look) -> tuple[float, str]:
    match chart:
        case Intervals():
            return _intervals(chart, width, look)
        case Points():
            return _points(chart, width, look)
        case HeatMap():
            return _heat_map(chart, width, look)
        case Spread():
            return _spread(chart, width, look)


def height(chart: Chart, width: int) -> float:
    """The height of a chart of this width, in pixels."""
    return _drawn(chart, width, Look(True, 13 if width > 400 else 12))[0]


def description(chart: Chart) -> str:
    """The numbers of a chart in words, for who does not see it."""

    def shown(one: Interval | Point, value: float, signed: bool = False) -> str:
        form: Callable[[float], str] = change if signed else score
        ends = "" if one.low is None or one.high is None else f" [{form(one.low)}, {form(one.high)}]"
        return form(value) + ends

    match chart:
        case Intervals():
            parts = [
                f"{panel.title + ', ' if panel.title else ''}{row} {shown(one, one.value, chart.signed)}"
                + ("" if one.filled else " (not separable)")
                for panel in chart.panels
                for row, one in zip(chart.rows, panel.intervals, strict=True)
                if one is not None
            ]
            return f"{chart.axis}: " + "; ".join(parts)
        case Points():
            return f"{chart.y_axis} against {chart.x_axis}: " + "; ".join(
                f"{one.name} {shown(one, one.y)} at {one.x:.3g}" for one in chart.points
            )
        case HeatMap():
            rows = zip(chart.rows, chart.values, strict=True)
            return "; ".join(
                f"{row}: " + ", ".join("none" if v is None else score(v) for v in values)
                for row, values in rows
            )
        case Spread():
            return f"{chart.axis}, {', '.join(chart.parts)}: " + "; ".join(
                f"{row} {', '.join(f'{v:.3g}' for v in values)}"
                for row, values in zip(chart.rows, chart.values, strict=True)
            )


# ----------
# Parts of drawings.


def text_width(text: str, size: float) -> float:
    """About how wide a text in Inter is, in pixels."""
    narrow = sum(c in "iljtfr.,:;'|![]() " for c in text)
    wide = sum(c in "mwMW@%" or c.isupper() for c in text)
    return size * (0.56 * (len(text) - narrow - wide) + 0.31 * narrow + 0.76 * wide)


def cut(text: str, room: float = math.inf, size: float = 13) -> str:
    """A text that fits the room in pixels and LONGEST_LABEL, with its middle left out where it does not."""
    characters = LONGEST_LABEL
    shown = text if len(text) <= characters else f"{text[: characters - 9]}…{text[-8:]}"
    while text_width(shown, size) > room and characters > 5:
        characters -= 1
        shown = (
            text
            if len(text) <= characters
            else f"{text[: characters - 1 - characters // 3]}…{text[-(characters // 3) :]}"
        )
    return shown


def _text(
    look: Look,
    x: float,
    y: float,
    text: str,
    ink: str = "ink",
    anchor: str = "",
    size: float = 0,
    bold: bool = False,
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-size="{size:g}"' if size else "")
    more += ' font-weight="620"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" {look.fill(ink)}{more} unicode-bidi="isolate">{html_escaped(text)}</text>'


def _line(
    look: Look, x1: float, y1: float, x2: float, y2: float, ink: str, width: float = 1, dash: str = ""
) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look.stroke(ink, width, dash)}/>'


def _mark(look: Look, x: float, y: float, system: int, filled: bool = True) -> str:
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{_MARKS[system]}" {look.mark(f"s{system}", filled)}/>'


def mark_svg(system: int, filled: bool = True) -> str:
    """The mark of a system as an element of a page, beside its name."""
    inside = _mark(Look(True), 8, 8, system, filled)
    return (
        f'<svg class="weir-mark" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">{inside}</svg>'
    )


def icon_svg(verdict: str) -> str:
    """The icon of a verdict as an element of a page: better, worse, or "" for not separable."""
    ink = verdict if verdict in ("better", "worse") else ""
    paint = f'class="weir-f-{ink}"' if ink else 'class="weir-l-soft" fill="none" stroke-width="1.6"'
    path = f'<path transform="translate(7 7)" d="{ICONS[ink]}" {paint}/>'
    return (
        f'<svg class="weir-icon" width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">{path}</svg>'
    )


def strip_svg(one: Interval | None, low: float, high: float, axis: str = "") -> str:
    """An interval on an axis of its own row, as an element of a table in a page; None draws the axis, with its name.

    It is as wide as its cell: places are percentages, so that texts and marks keep their sizes.
    """
    look, height = Look(True, 11.5), 34

    def at(value: float) -> str:
        return f"{4 + 92 * (value - low) / (high - low):.2f}%"

    def line(x: str, y1: float, y2: float, ink: str, width: float) -> str:
        return f'<line x1="{x}" x2="{x}" y1="{y1:g}" y2="{y2:g}" {look.stroke(ink, width)}/>'

    marks, parts = ticks(low, high, 5), list[str]()
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    if one is None:
        parts.append(_text(look, 0, 11, axis, "soft"))
        for tick in marks:
            text = _tick_text(tick, False, step)
            parts.append(
                f'<text x="{at(tick)}" y="28" {look.fill("soft")} text-anchor="middle">{text}</text>'
            )
    else:
        ink = f"s{one.system}"
        parts += [line(at(tick), 0, height, "line", 1) for tick in marks]
        if one.low is not None and one.high is not None:
            paint = look.stroke(ink, 2.5 if one.filled else 1.2)
            parts.append(f'<line x1="{at(one.low)}" x2="{at(one.high)}" y1="13" y2="13" {paint}/>')
        for name, value in one.ticks:
            title = html_escaped(f"{cut(name)} {short_score(value)}")
            parts.append(f"<g><title>{title}</title>{line(at(value), 22, 29, ink, 1.6)}</g>")
        parts.append(
            f'<svg x="{at(one.value)}" y="13" overflow="visible">{_mark(look, 0, 0, one.system, one.filled)}</svg>'
        )
    size = f'width="100%" height="{height}" font-size="{look.size:g}"'
    return f'<svg class="weir-chart weir-strip" {size} aria-hidden="true">{"".join(parts)}</svg>'


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers that divide a range: at most so many, and two at least."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    largest = next(n for n, m in enumerate((1, 2, 5, 10)) if span / (power * m) <= most)
    for step in (power * m for m in (0.5, 1, 2, 5, 10)[largest + 1 :: -1]):
        first = math.ceil(low / step - 1e-9)
        values = [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]
        if len(values) > 1:
            break
    return values


def _tick_text(value: float, signed: bool, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 1
    if value == 0 or abs(value) < step / 1e6:
        return "0"
    return f"{value:{'+' if signed else ''},.{digits}f}".replace("-", "−")


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten in a range; with multiples of these where there are few; round numbers where there is none."""
    if high < 4 * low:
        return ticks(low, high, most)
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [10.0**n * f for n in tens for f in factors if low * 0.999 <= 10.0**n * f <= high * 1.001]
        if len(values) <= most:
            return values
    return values[:: math.ceil(len(values) / most)]


def plain(value: float) -> str:
    """A number of an axis with unequal steps, without needless digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _intervals(chart: Intervals, width: int, look: Look) -> tuple[float, str]:
    size = look.size
    tall = any(one is not None and one.ticks for panel in chart.panels for one in panel.intervals)
    row = 34.0 if tall else 25.0
    labels = [cut(name, width * 0.4, size) for name in chart.rows]
    marked = all(panel.system is None for panel in chart.panels)  # then rows are systems, each with its mark
    left = max((text_width(name, size) for name in labels), default=0) + (26 if marked else 12)
    value_room, end_room = (12.0 if chart.ends and width < 400 else 58.0), 34.0 * chart.ends
    beside = max(1, min(len(chart.panels), int((width - left) // (230 + 12 * chart.ends))))
    beside = math.ceil(len(chart.panels) / -(-len(chart.panels) // beside)) if chart.panels else 1
    ends: list[float] = [
        v
        for panel in chart.panels
        for one in panel.intervals
        if one is not None
        for v in (one.value, one.low, one.high, *(value for _, value in one.ticks), *(one.together or ()))
        if v is not None and math.isfinite(v)
    ] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    low, high = (min(low, 0.0), max(high, 0.0)) if chart.signed else (low, high)
    margin = 0.04 * (high - low) or 0.05
    low, high = low - margin * (low != 0 or not chart.signed), high + margin
    room = (width - left) / beside
    parts, top = list[str](), 0.0
    for start in range(0, len(chart.panels), beside):
        heading = 26.0 if any(panel.title for panel in chart.panels) else 6.0
        bottom = top + heading + row * len(labels)
        for n, panel in enumerate(chart.panels[start : start + beside]):
            x0 = left + n * room + 8 + end_room
            x1 = left + (n + 1) * room - value_room - 8 - end_room

            def at(value: float, x0: float = x0, x1: float = x1) -> float:
                return x0 + (x1 - x0) * (value - low) / (high - low)

            if panel.title:
                at_text = left + n * room + 8
                if panel.system is not None:
                    parts.append(_mark(look, at_text + 6, top + 9, panel.system))
                    at_text += 18
                parts.append(_text(look, at_text, top + 14, cut(panel.title, room - 30, size), bold=True))
            marks = ticks(low, high, max(2, int((x1 - x0) // 55)))
            step = marks[1] - marks[0] if len(marks) > 1 else 0.1
            for tick in marks:
                zero = chart.signed and abs(tick) < step / 1e6
                parts.append(
                    _line(look, at(tick), top + heading, at(tick), bottom, "axis" if zero else "line")
                )
                parts.append(
                    _text(
                        look,
                        at(tick),
                        bottom + 15,
                        _tick_text(tick, chart.signed, step),
                        "soft",
                        "middle",
                        11.5,
                    )
                )
            for number, one in enumerate(panel.intervals):
                y = top + heading + row * (number + 0.5) - (3 if tall else 0)
                if one is None:
                    parts.append(_text(look, x1 + end_room + value_room, y + 4.5, "–", "soft", "end"))
                    continue
                ink = f"s{one.system}"
                if one.together is not None:
                    parts.append(_line(look, at(one.together[0]), y, at(one.together[1]), y, ink))
                if one.low is not None and one.high is not None:
                    ends_x = [min(max(at(v), x0 - 6), x1 + 6) for v in (one.low, one.high)]
                    parts.append(
                        _line(
                            look, ends_x[0], y, ends_x[1], y, ink, 2.5 if one.filled or one.together else 1.2
                        )
                    )
                    for v, end, anchor in (
                        (one.low, ends_x[0] - 5, "end"),
                        (one.high, ends_x[1] + 5, "start"),
                    ):
                        if chart.ends:
                            parts.append(_text(look, end, y + 4, short_score(v), "soft", anchor, 11))
                parts += [_line(look, at(v), y + 8, at(v), y + 13, ink, 1.1) for _, v in one.ticks]
                parts.append(_mark(look, at(one.value), y, one.system, one.filled))
                if value_room < 50:
                    continue
                number_text = short_change(one.value) if chart.signed else short_score(one.value)
                parts.append(
                    _text(
                        look,
                        x1 + end_room + value_room,
                        y + 4.5,
                        number_text,
                        "ink" if one.filled else "soft",
                        "end",
                    )
                )
        for number, name in enumerate(labels):
            y = top + heading + row * (number + 0.5)
            x = 18.0 * marked
            own = [one for panel in chart.panels if (one := panel.intervals[number]) is not None]
            if marked and own:
                parts.append(_mark(look, 7, y, own[0].system))
            parts.append(_text(look, x, y + 4.5, name))
        top = bottom + 26
    parts.append(_text(look, left + 8, top + 8, chart.axis, "soft", size=12))
    return top + 16, "".join(parts)


def _points(chart: Points, width: int, look: Look) -> tuple[float, str]:
    height = max(260.0, min(380.0, width * 0.7), 120.0 + 22 * len(chart.points))
    left, right, top, bottom = 46.0, width - 16.0, 26.0, height - 44.0
    xs = [p.x for p in chart.points if p.x > 0]
    ends = [v for p in chart.points for v in (p.y, p.low, p.high) if v is not None]
    if not xs or not ends:
        return 20, ""
    x_low, x_high = min(xs) / 1.8, max(xs) * (4 if width > 400 else 6)
    y_low, y_high = min(ends), max(ends)
    margin = 0.06 * (y_high - y_low) or 0.05
    y_low, y_high = y_low - margin, y_high + margin

    def at_x(value: float) -> float:
        return left + (right - left) * math.log(max(value, x_low) / x_low) / math.log(x_high / x_low)

    def at_y(value: float) -> float:
        return bottom - (bottom - top) * (value - y_low) / (y_high - y_low)

    parts = [_text(look, 0, 12, chart.y_axis, "soft", size=12)]
    marks = ticks(y_low, y_high, 6)
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    for tick in marks:
        parts.append(_line(look, left, at_y(tick), right, at_y(tick), "line"))
        parts.append(
            _text(look, left - 8, at_y(tick) + 4, _tick_text(tick, False, step), "soft", "end", 11.5)
        )
    for tick in log_ticks(x_low, x_high, max(3, int((right - left) // 70))):
        parts.append(_line(look, at_x(tick), top, at_x(tick), bottom, "line"))
        parts.append(_text(look, at_x(tick), bottom + 16, plain(tick), "soft", "middle", 11.5))
    parts.append(_text(look, (left + right) / 2, height - 8, chart.x_axis, "soft", "middle", 12))
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in ((at_x(one.x), at_y(one.y)) for one in chart.points)]
    for (before, _), (number, separable) in zip(chart.front, [*chart.front[1:], (-1, True)], strict=False):
        x, y, dash = at_x(chart.points[before].x), at_y(chart.points[before].y), "" if separable else "3 4"
        end = right if number < 0 else at_x(chart.points[number].x)
        parts.append(_line(look, x, y, end, y, "ink", 1.4, dash))
        taken.append((x, y - 0.5, end, y + 0.5))
        if number >= 0:
            parts.append(_line(look, end, y, end, at_y(chart.points[number].y), "ink", 1.4, dash))
    for one in chart.points:
        x, ink = at_x(one.x), f"s{one.system}"
        if one.low is not None and one.high is not None:
            taken.append((x - 2, at_y(one.high), x + 2, at_y(one.low)))
            parts.append(_line(look, x, at_y(one.low), x, at_y(one.high), ink, 2.5 if one.filled else 1.2))
    named = list[str]()
    for one in chart.points:
        x, y = at_x(one.x), at_y(one.y)
        name = cut(one.name, width * 0.4, 12.5)
        wide = text_width(name, 12.5) * 1.08 + 2
        box = _place(x, y, wide, taken, (0, top - 8, width, bottom + 2))
        taken.append(box)
        to_x, to_y = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        away = math.hypot(to_x - x, to_y - y)
        label = _text(look, box[0] + 1, box[3] - 4, name, f"n{one.system}", bold=True, size=12.5)
        if away > _TOUCHING:
            part = 7 / away
            begin = x + (to_x - x) * part, y + (to_y - y) * part
            label = _line(look, *begin, to_x, to_y, f"s{one.system}") + label
        named.append(
            f'<g data-label="{html_escaped(cut(one.name))}" data-x="{x:.1f}" data-y="{y:.1f}">{label}</g>'
        )
    parts += [_mark(look, at_x(one.x), at_y(one.y), one.system, one.filled) for one in chart.points]
    return height, "".join([*parts, *named])


_TOUCHING = 14.0
"""Pixels from the middle of a mark within which its label needs no line to it."""
_SIDES = (
    (1, -1),
    (1, 1),
    (-1, -1),
    (-1, 1),
    (1, 0),
    (-1, 0),
    (0, -1),
    (0, 1),
    (2, -1),
    (-2, -1),
    (2, 1),
    (-2, 1),
)


def _place(
    x: float,
    y: float,
    wide: float,
    taken: Sequence[tuple[float, float, float, float]],
    room: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    """A box for the label of a mark at x, y: the nearest that lies in the room and on nothing that is taken.

    Where there is none, the one that covers least. Boxes are left, top, right, bottom.
    """
    best, least = (x + 8, y - 8, x + 8 + wide, y + 8), math.inf
    for distance in range(0, 400, 10):
        for side, up in _SIDES:
            far = distance / math.hypot(side, up)
            a, b = x + 8 * (side > 0) - 8 * (side < 0) + side * far, y + (1 if side else 8) * up + up * far
            a -= wide * (side < 0) + wide / 2 * (side == 0)
            b -= 16 * (up < 0) + 8 * (up == 0)
            box = (a, b, a + wide, b + 16)
            if box[0] < room[0] or box[1] < room[1] or box[2] > room[2] or box[3] > room[3]:
                continue
            covered = sum(
                max(0.0, min(box[2], c[2]) - max(box[0], c[0]))
                * max(0.0, min(box[3], c[3]) - max(box[1], c[1]))
                for c in taken
            )
            if covered < least:
                best, least = box, covered
            if covered == 0:
                return best
    return best


def tint(verdict: str, difference: float) -> str:
    """The name of the tint of a verdict and the size of its difference; "" for none."""
    if verdict not in ("better", "worse"):
        return ""
    return f"{verdict}{sum(abs(difference) >= step for step in TINT_STEPS)}"


def _heat_map(chart: HeatMap, width: int, look: Look) -> tuple[float, str]:
    size, row = look.size, 28.0
    labels = [cut(name, width * 0.35, size) for name in chart.rows]
    left = max((text_width(name, size) for name in labels), default=0) + 14
    column = min(150.0, (width - left) / max(len(chart.columns), 1))
    slanted = any(text_width(cut(name, 400, 12), 12) > column - 6 for name in chart.columns)
    top = 118.0 if slanted else 26.0
    if slanted:  # the last name ends within the width
        column = min(
            column,
            (width - left - 0.65 * text_width(cut(chart.columns[-1], 125, 12), 12))
            / (len(chart.columns) - 0.5),
        )
    values = [v for of_row in chart.values for v in of_row if v is not None]
    edges = np.quantile(values, [0.2, 0.4, 0.6, 0.8]) if values else np.empty(0)
    parts = []
    for n, name in enumerate(chart.columns):
        x = left + column * (n + 0.5)
        if slanted:
            text = _text(look, 0, 0, cut(name, 125, 12), size=12)
            parts.append(f'<g transform="translate({x:.1f} {top - 8:.1f}) rotate(-50)">{text}</g>')
        else:
            parts.append(_text(look, x, 16, cut(name, column - 6, 12), "ink", "middle", 12, True))
    digits = column >= 44
    icons = bool(chart.verdicts) and column >= 76
    for i, (name, of_row) in enumerate(zip(labels, chart.values, strict=True)):
        y = top + row * i
        parts.append(_text(look, 0, y + row / 2 + 4.5, name))
        for j, value in enumerate(of_row):
            x = left + column * j
            if value is None:
                parts.append(_text(look, x + column / 2, y + row / 2 + 4.5, "–", "soft", "middle"))
                continue
            verdict = chart.verdicts[i][j] if chart.verdicts else ""
            if chart.verdicts:
                ink = tint(verdict, chart.changes[i][j] or 0.0)
            else:
                ink = f"place{int(np.searchsorted(edges, value, side='right'))}"
            if ink:
                size_px = f'width="{column - 2:.1f}" height="{row - 2:.1f}"'
                parts.append(f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" {size_px} {look.fill(ink)}/>')
            shown = short_score(value) if digits else short_score(value).removeprefix("0")
            if text_width(shown, size if digits else 11) > column - 1:  # the tint alone
                shown = ""
            parts.append(
                _text(
                    look,
                    x + column / 2 - (8 if icons else 0),
                    y + row / 2 + 4.5,
                    shown,
                    "ink",
                    "middle",
                    0 if digits else 11,
                )
            )
            if icons and verdict in ("better", "worse"):
                place = f"translate({x + column / 2 + 22:.1f} {y + row / 2:.1f})"
                parts.append(f'<path transform="{place}" d="{ICONS[verdict]}" {look.fill(verdict)}/>')
    return top + row * len(labels) + 8, "".join(parts)


def _spread(chart: Spread, width: int, look: Look) -> tuple[float, str]:
    size, row, heading = look.size, 25.0, 20.0
    labels = [cut(name, width * 0.4, size) for name in chart.rows]
    marked = any(system is not None for system in chart.systems)
    left = max((text_width(name, size) for name in labels), default=0) + (30 if marked else 12)
    right, bottom = width - 14.0, heading + row * len(labels)
    numbers = [v for of_row in chart.values for v in of_row if v > 0]
    if not numbers:
        return 20, ""
    low, high = min(numbers) / 1.3, max(numbers) * 1.3

    def at(value: float) -> float:
        return left + (right - left) * math.log(max(value, low) / low) / math.log(high / low)

    parts = [_text(look, left, 12, ", then ".join(chart.parts), "soft", size=12)]
    for tick in log_ticks(low, high, max(3, int((right - left) // 70))):
        parts.append(_line(look, at(tick), heading, at(tick), bottom, "line"))
        parts.append(_text(look, at(tick), bottom + 15, plain(tick), "soft", "middle", 11.5))
    for number, (name, of_row, system) in enumerate(zip(labels, chart.values, chart.systems, strict=True)):
        y, ink = heading + row * (number + 0.5), "soft" if system is None else f"s{system}"
        parts.append(_text(look, 18 if marked else 0, y + 4.5, name))
        parts.append(_line(look, at(of_row[0]), y, at(of_row[-1]), y, ink, 2))
        parts += [_line(look, at(v), y - 5, at(v), y + 5, ink, 2) for v in of_row[system is not None :]]
        if system is not None:
            parts += [_mark(look, x, y, system) for x in (7, at(of_row[0]))]
    parts.append(_text(look, left, bottom + 34, chart.axis, "soft", size=12))
    return bottom + 42, "".join(parts)


def _key(chart: Chart, width: int, look: Look) -> tuple[float, str]:
    """What marks, bars, lines and tints of a chart mean, as the height and body of lines that stand below it."""

    def line(ink: str, thick: float, dash: str = "") -> str:
        return _line(look, 0, 0, 20, 0, ink, thick, dash)

    def swatches(*names: str) -> str:
        wide = 20 / len(names)
        return "".join(
            f'<rect x="{n * wide:g}" y="-6" width="{wide:g}" height="12" {look.fill(name)}/>'
            for n, name in enumerate(names)
        )

    items: list[tuple[str, str]] = []
    match chart:
        case Intervals(panels=panels):
            marks: list[Interval | Point] = [
                one for panel in panels for one in panel.intervals if one is not None
            ]
            if any(one.low is not None for one in marks):
                items.append((line("soft", 2.5), chart.bar))
            if any(one.together for panel in panels for one in panel.intervals if one is not None):
                items.append((line("soft", 1), "for all comparisons together"))
            if any(one.ticks for panel in panels for one in panel.intervals if one is not None):
                items.append((_line(look, 10, -4, 10, 4, "soft", 1.1), "mean on one collection"))
        case Points(points=points):
            marks = list(points)
            if any(one.low is not None for one in marks):
                items.append((line("soft", 2.5), "95% interval"))
            if len(chart.front) > 1:
                items.append((line("ink", 1.4), "the best for the time"))
            if not all(separable for _, separable in chart.front):
                items.append((line("ink", 1.4, "3 4"), "a gain that is not separable"))
        case HeatMap(verdicts=verdicts):
            marks = []
            for verdict in ("better", "worse"):
                if any(verdict in of_row for of_row in verdicts):
                    shape = f'<path transform="translate(10 0)" d="{ICONS[verdict]}" {look.fill(verdict)}/>'
                    items.append((shape, verdict))
            if items:
                steps = ("by under 0.1", "0.1 to 0.2", "0.2 to 0.3", "over 0.3")
                there = [words for _, words in items]
                items += [(swatches(*(f"{v}{n}" for v in there)), words) for n, words in enumerate(steps)]
            elif not verdicts:
                items.append((swatches(*(f"place{n}" for n in range(5))), "lower to higher"))
        case Spread():
            marks = []
    if not all(one.filled for one in marks):
        items += [(_mark(look, 10, 0, 1, filled), words) for filled, words in
                  ((True, "separable"), (False, "not separable"))]  # fmt: skip
    parts, x, y = list[str](), 0.0, 14.0
    for shape, words in items:
        wide = 44 + text_width(words, 11.5)
        if x and x + wide > width:
            x, y = 0.0, y + 20
        text = _text(look, 26, 4, words, "soft", size=11.5)
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{shape}{text}</g>')
        x += wide
    return (y + 12, "".join(parts)) if items else (0.0, "")


def legend(systems: SystemNumbers) -> Iterable[tuple[int, str]]:
    """The number and the short name of each system, bm25 first."""
    return sorted((systems.number(name), systems.label(name)) for name in systems.names)
