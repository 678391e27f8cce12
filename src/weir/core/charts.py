"""Charts as values, drawn as SVG."""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from weir.core.colours import INKS, LIGHT, UNCOLOURED
from weir.core.rounding import change, percent, score, short_score, typeset, typeset_change
from weir.core.strings import Float64
from weir.core.tables import html_escaped

# ----------
# The kinds of charts.


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval, in one row of a chart."""

    value: float
    low: float | None = None
    high: float | None = None
    system: int = 1
    """Number of the system, as in `SystemNumbers.number`."""
    filled: bool = True
    """True if separable from the baseline, or compared with nothing."""
    ticks: tuple[tuple[str, float], ...] = ()
    """(name, value) of each part whose mean is `value`."""
    together: tuple[float, float] | None = None
    """Simultaneous interval over all comparisons, drawn as a thin line."""


@dataclass(frozen=True)
class Panel:
    """A titled column of a chart: an interval or None for each row."""

    title: str
    intervals: tuple[Interval | None, ...]
    system: int | None = None
    """Number of the system in the heading; None for no mark."""


def _kind_and_title(chart: Chart) -> str:
    return f"<{type(chart).__name__}: {chart.title}>"


@dataclass(frozen=True, repr=False)
class Intervals:
    """A chart of confidence intervals: named rows in one or more panels."""

    title: str
    axis: str
    rows: tuple[str, ...]
    panels: tuple[Panel, ...]
    signed: bool = False
    """True for differences, drawn about a line at zero."""
    bar: str = "95% interval"
    """Name of the intervals in the key."""
    ends: bool = False
    """True to print the numbers at both ends of each interval, with a line instead of a mark at its value."""
    whole: Intervals | None = None
    """The chart of which this is a part, to share its axis and width of names; None for a chart of its own."""

    __repr__ = _kind_and_title


@dataclass(frozen=True)
class Point:
    """A system at (x, y) of a scatter plot, with a vertical interval."""

    name: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    system: int = 1
    """`system` and `filled` are as in `Interval`."""
    filled: bool = True
    named: bool = True
    """True to print the name beside the point; else a number, explained in a list below."""


@dataclass(frozen=True, repr=False)
class Points:
    """A scatter plot of systems and their Pareto front; the x axis is logarithmic."""

    title: str
    x_axis: str
    y_axis: str
    points: tuple[Point, ...]
    front: tuple[tuple[int, bool], ...] = ()
    """(index of the point, True if separable from the point before) for each point of the front, left to right."""
    tested: bool = True
    """False if the steps of the front were not tested: it is dotted, and the key says so."""
    left_out: tuple[str, ...] = ()
    """A sentence for each reason why systems have no point."""

    __repr__ = _kind_and_title


@dataclass(frozen=True, repr=False)
class HeatMap:
    """A heat map of numbers; None is an empty cell."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    verdicts: tuple[tuple[str, ...], ...] = ()
    """ "better", "worse" or "" for each value; empty if tints show the value itself."""
    changes: tuple[tuple[float | None, ...], ...] = ()
    """Differences whose size the tint shows; empty if `verdicts` is."""
    percent: bool = False
    """True for shares, printed in per cent."""
    whole: HeatMap | None = None
    """The chart of which this is a part, to share its columns and tints; None for a chart of its own."""

    @property
    def turned(self) -> HeatMap:
        """Return the heat map with rows and columns exchanged."""

        def other(cells: Sequence[Sequence[T]]) -> tuple[tuple[T, ...], ...]:
            return tuple(zip(*cells, strict=True))

        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            values=other(self.values),
            verdicts=other(self.verdicts),
            changes=other(self.changes),
        )

    __repr__ = _kind_and_title


@dataclass(frozen=True, repr=False)
class Spread:
    """A chart of several numbers in each row, on a logarithmic axis."""

    title: str
    axis: str
    rows: tuple[str, ...]
    parts: tuple[str, ...]
    """Names of the numbers, left to right."""
    values: tuple[tuple[float, ...], ...]
    systems: tuple[int | None, ...]
    """Number of each row's system; None for a row that is no system."""
    mark: int = 0
    """Position in `parts` of the number that gets the system's mark."""
    joined: bool = True
    """True for a line from the first to the last number, False for a dot at each."""
    whole: Spread | None = None
    """The chart of which this is a part, to share its axis; None for a chart of its own."""

    __repr__ = _kind_and_title


_Place: TypeAlias = tuple[float, float]
Chart: TypeAlias = "Intervals | Points | HeatMap | Spread"
T = TypeVar("T")


class Plot(Protocol):
    """One or more charts, as `plot()` of results returns them."""

    def save(self, path: str | os.PathLike[str], width: Literal["page", "column"] = "page") -> list[Path]:
        """Write each chart as .svg, .png or .pdf, by the ending of `path`; return the paths.

        Several charts get numbered names. A "page" is 7 inches wide, a "column" 3.33.
        """


@dataclass(frozen=True)
class SystemNumbers:
    """Colour numbers and short names of the systems on a page."""

    names: tuple[str, ...]
    """In the order of the experiment."""
    labels: tuple[str, ...]
    """Short names, aligned with `names`."""
    baseline: str = ""

    def number(self, name: str) -> int:
        """Return a system's colour number: 0 for bm25, from 1 for others, UNCOLOURED for an unknown system or if no
        colour is left.
        """
        return self._numbers.get(name, UNCOLOURED)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        shown = {one: self.label(one) for one in self.names}  # alike in a chart that knows labels alone
        own = [
            one
            for one, label in shown.items()
            if label.lower() == "bm25" or (label.startswith("bm25(") and ">>" not in label)
        ]
        grey = min(own, key=lambda one: (shown[one].lower() != "bm25", one), default=None)
        others = [one for one in self.names if one != grey]
        if len(others) > len(LIGHT):
            others = sorted(others, key=lambda one: (self.label(one).count("="), self.label(one)))[
                : len(LIGHT)
            ]
        numbers = {one: n for n, one in enumerate(sorted(others, key=self.label), 1)}
        return numbers if grey is None else {grey: 0, **numbers}

    def label(self, name: str) -> str:
        """Return a system's short name; an unknown name unchanged."""
        return self._labels.get(name, name)

    @cached_property
    def _labels(self) -> dict[str, str]:
        return dict(zip(self.names, self.labels, strict=True))


# ----------
# Marks.

_MARKS = (
    "M0-6 6 0 0 6-6 0Z",  # bm25's diamond
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M-6 3a6 6 0 0 1 12 0Z",
    "M-5-5.5h10L1 0l4 5.5h-10L-1 0Z",
    "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6Z",
    "M-5-3-3-5 0-2 3-5 5-3 2 0 5 3 3 5 0 2-3 5-5 3-2 0Z",
    "M0-6 1.7-2 6-1.8 2.7 1 3.8 5.2 0 2.8-3.8 5.2-2.7 1-6-1.8-1.7-2Z",
    "M0-5.6 5.4-1.7 3.3 4.6h-6.6L-5.4-1.7Z",
    "M-2.5-4.5h8.5l-3.5 9h-8.5Z",
    "M-5.5-5.2h11v3.6h-3.7v7h-3.6v-7h-3.7Z",
    "M-6-3a6 6 0 0 0 12 0Z",
    "M-5.5-5v10L0 1l5.5 4v-10L0-1Z",
    "M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0Z",
)
"""Outlines of the marks of systems 0 to 12 and of UNCOLOURED, about the origin: no triangles, which are verdicts."""
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
"""Most characters of a name in a chart."""
WIDE_PX, LARGE_PX, MIDDLE_PX, NARROW_PX = 1080, 856, 672, 328
"""Widths at which a page draws each chart: for screens, for small ones, for tablets and paper, for telephones."""
MARGIN_PX = 8.0
"""About the drawing in a file."""
STRIP_PX, SHEET_PX = 440.0, 880.0
"""Height of the parts between which a page breaks, and of a figure that fits a sheet of paper with its caption."""
OTHER_FONT_WIDTH = 1.14
"""Width of substitute fonts relative to Inter."""
WIDTHS_PX = {"page": 672, "column": 320}
"""Widths of figures of a paper: 7 inches and 3.33 inches at 96 pixels an inch."""


@dataclass(frozen=True)
class Look:
    """How SVG elements are painted: by classes of the page's style sheet, or by attributes."""

    classes: bool
    size: float = 13.0
    room: float = 1.0
    """Factor on text widths in Inter: above 1 if another font may replace it."""
    dark: bool = False
    """True to paint by the colours of a dark page, where no classes do."""

    def width(self, text: str, size: float = 0) -> float:
        """Return the width of a text in pixels; `size` is the font's, 0 meaning `self.size`."""
        return self.room * text_width(text, size or self.size)

    def cuts(self, names: Iterable[str], room: float, size: float = 0) -> dict[str, str]:
        """Return {name: name shortened to `room` pixels}; different names stay different."""
        return cuts(names, room / self.room, size or self.size)

    def fill(self, name: str) -> str:
        """Return the SVG attribute that fills an area with the colour `INKS[name]`."""
        return f'class="weir-f-{name}"' if self.classes else f'fill="{self.ink(name)}"'

    def ink(self, name: str) -> str:
        """Return the CSS colour `INKS[name]` for the light or dark page."""
        return INKS[name][self.dark]

    def stroke(self, name: str, width: float, dash: str = "") -> str:
        """Return the SVG attributes of a line in the colour `INKS[name]`, `width` pixels wide."""
        ink = f'class="weir-l-{name}"' if self.classes else f'stroke="{self.ink(name)}"'
        return f'{ink} stroke-width="{width:g}"' + (f' stroke-dasharray="{dash}"' if dash else "")

    def over(self) -> str:
        """Return SVG attributes that outline text in the background colour."""
        edge = f'paint-order="stroke" stroke="{self.ink("paper")}" stroke-width="3"'
        return 'class="weir-over"' if self.classes else edge

    def mark(self, name: str, filled: bool) -> str:
        """Return the SVG attributes of a mark in the colour `INKS[name]`, filled or hollow."""
        if self.classes:
            return f'class="{"weir-f" if filled else "weir-h"}-{name}"'
        ink, paper = self.ink(name), self.ink("paper")
        inside = ink if filled else paper
        return f'fill="{inside}" stroke="{ink}" stroke-width="1.6"'


def css() -> str:
    """Return the charts' style sheet, for light and dark pages and print."""
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
    themes = (
        f":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}@media print{{:root:root{{{light}}}}}"
    )
    return (
        f"{themes}{rules}{grounds}"
        f".weir-chart{{display:block;font-family:{FONT};max-width:100%;height:auto}}"
        ".weir-over text{paint-order:stroke;stroke:var(--weir-paper);stroke-width:3px}"
    )


def svg(
    chart: Chart,
    width: int = WIDE_PX,
    classes: bool = False,
    key: bool = False,
    inter: bool = False,
    dark: bool = False,
) -> str:
    """Return a chart as an SVG element, `width` pixels wide, with its numbers in words as description.

    classes: paint by the classes of `css()`, not by attributes.
    key: explain the marks below the chart.
    inter: the page has the font Inter, so that text widths are exact.
    dark: use the colours of a dark page in attributes.
    """
    look = replace(_look(width, classes, inter), dark=dark)
    margin = 0.0 if classes else MARGIN_PX
    inside = width - 2 * margin
    height, body = _drawn(chart, inside, look)
    if key:
        more, said = _key(chart, inside, look)
        height, body = height + more, f'{body}<g transform="translate(0 {height:.1f})">{said}</g>'
    height += 2 * margin
    text = html_escaped(description(chart))
    own = 'class="weir-chart"' if classes else f'font-family="{html_escaped(FONT)}"'
    ground = "" if classes else f'<rect width="{width}" height="{height:.0f}" fill="{look.ink("paper")}"/>'
    if margin:
        body = f'<g transform="translate({margin:g} {margin:g})">{body}</g>'
    smaller = 1.0 if classes else min(1.0, SHEET_PX / height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {own} width="{width * smaller:g}" height="{height * smaller:.0f}" '
        f'viewBox="0 0 {width} {height:.0f}" font-size="{look.size:g}" role="img">'
        f"<title>{html_escaped(chart.title)}</title><desc>{text}</desc>{ground}{body}</svg>"
    )


def key_html(chart: Chart) -> str:
    """Return an HTML paragraph that explains a chart's marks, "" if none need it."""
    items = "".join(
        f'<span><svg class="weir-icon" width="22" height="14" viewBox="-1 -7 22 14" aria-hidden="true">{shape}</svg>'
        f"{html_escaped(words)}</span>"
        for shape, words in _key_items(chart, Look(True))
    )
    return f'<p class="weir-key">{items}</p>' if items else ""


def _look(width: int, classes: bool, inter: bool) -> Look:
    return Look(classes, 13 if width > 400 else 12, 1.0 if inter else OTHER_FONT_WIDTH)


def strips(chart: Chart, width: int) -> tuple[Chart, ...]:
    """Return the parts of a chart between which a page may break, top to bottom; each has the headings."""
    look = _look(width, True, True)
    match chart:
        case Intervals(panels=panels) if panels:
            beside = _beside(chart, width, look)
            groups = (panels[at : at + beside] for at in range(0, len(panels), beside))
            of = (replace(chart, panels=group, whole=chart) for group in groups)
            parts = [part for one in of for part in _by_rows(one, width, look, STRIP_PX)]
            return (*(replace(part, axis="") for part in parts[:-1]), parts[-1])
        case HeatMap(columns=columns):
            if width < 400:  # of a telephone, which has no pages
                return (chart,)
            stacked = _heat_map_plan(chart, width, look).per < len(columns)
            return _by_rows(chart, width, look, SHEET_PX if stacked else STRIP_PX)
        case Spread():
            return _by_rows(chart, width, look, STRIP_PX)
    return (chart,)


def sheets(chart: Chart, width: int) -> tuple[Chart, ...]:
    """Return parts of a chart that each fit a sheet of paper; `Points` are never split."""
    look, inside = _look(width, False, False), width - 2 * MARGIN_PX
    most = SHEET_PX - 2 * MARGIN_PX - _key(chart, inside, look)[0]
    match chart:
        case HeatMap():
            per = _heat_map_plan(chart, inside, look).per
            each = per * max(1, int(most // _drawn(_columns(chart, 0, per), inside, look)[0]))
            groups = (_columns(chart, at, each) for at in range(0, len(chart.columns), each))
            return tuple(part for group in groups for part in _by_rows(group, inside, look, most))
        case Intervals(panels=panels) if panels:
            beside = _beside(chart, inside, look)
            first = _drawn(replace(chart, panels=panels[:beside], whole=chart), inside, look)[0]
            each = beside * max(1, int(most // first))
            of = (
                replace(chart, panels=panels[at : at + each], whole=chart)
                for at in range(0, len(panels), each)
            )
            return tuple(part for one in of for part in _by_rows(one, inside, look, most))
        case Spread():
            return _by_rows(chart, inside, look, most)
    return (chart,)


R = TypeVar("R", Intervals, HeatMap, Spread)


def _by_rows(chart: R, width: float, look: Look, most: float) -> tuple[R, ...]:
    count = len(chart.rows)
    high, one = (_drawn(_rows(chart, slice(0, n)), width, look)[0] for n in (count, 1))
    if high <= most or count < 2:
        return (chart,)
    each = max(4, int((most - one) * (count - 1) / (high - one)) + 1)
    each = math.ceil(count / math.ceil(count / each))
    return tuple(_rows(chart, slice(at, at + each)) for at in range(0, count, each))


def _rows(chart: R, part: slice) -> R:
    axis = part.stop >= len(chart.rows)
    match chart:
        case Intervals(whole=whole):
            panels = tuple(replace(one, intervals=one.intervals[part]) for one in chart.panels)
            named = chart.axis if axis else ""
            return replace(chart, rows=chart.rows[part], panels=panels, axis=named, whole=whole or chart)
        case HeatMap(whole=whole):
            values, verdicts, changes = chart.values[part], chart.verdicts[part], chart.changes[part]
            return replace(chart, rows=chart.rows[part], values=values, verdicts=verdicts, changes=changes,
                           whole=whole or chart)  # fmt: skip
        case Spread(whole=whole):
            values, systems = chart.values[part], chart.systems[part]
            named = chart.axis if axis else ""
            return replace(chart, rows=chart.rows[part], values=values, systems=systems, axis=named,
                           whole=whole or chart)  # fmt: skip


def _columns(drawn: HeatMap, at: int, count: int) -> HeatMap:
    turned, part = drawn.turned, slice(at, at + count)
    return replace(
        turned,
        rows=turned.rows[part],
        values=turned.values[part],
        verdicts=turned.verdicts[part],
        changes=turned.changes[part],
    ).turned


def _drawn(chart: Chart, width: float, look: Look) -> tuple[float, str]:
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
    """Return the height in pixels of a chart drawn `width` pixels wide."""
    return _drawn(chart, width, _look(width, True, True))[0]


def description(chart: Chart) -> str:
    """Return the numbers of a chart in words."""

    def value_text(one: Interval | Point, value: float, signed: bool = False) -> str:
        form: Callable[[float], str] = _change if signed else score
        ends = "" if one.low is None or one.high is None else f" [{form(one.low)}, {form(one.high)}]"
        return form(value) + ends

    match chart:
        case Intervals():
            parts = [
                f"{panel.title + ', ' if panel.title else ''}{row} {value_text(one, one.value, chart.signed)}"
                + ("" if one.filled else " (not separable)")
                for panel in chart.panels
                for row, one in zip(chart.rows, panel.intervals, strict=True)
                if one is not None
            ]
            return f"{chart.axis}: " * bool(chart.axis) + "; ".join(parts)
        case Points():
            return f"{chart.y_axis} against {chart.x_axis}: " + "; ".join(
                [
                    *(f"{one.name} {value_text(one, one.y)} at {one.x:.3g}" for one in chart.points),
                    *chart.left_out,
                ]
            )
        case HeatMap():
            rows = zip(chart.rows, chart.values, strict=True)
            return "; ".join(
                f"{row}: "
                + ", ".join(
                    "none" if v is None else percent(v) if chart.percent else score(v) for v in values
                )
                for row, values in rows
            )
        case Spread():
            return f"{chart.axis}, {', '.join(chart.parts)}: " + "; ".join(
                f"{row} {', '.join(f'{v:.3g}' for v in values)}"
                for row, values in zip(chart.rows, chart.values, strict=True)
            )


def _change(value: float) -> str:
    return typeset(change(value))


# ----------
# Parts of drawings.


def text_width(text: str, size: float) -> float:
    """Return the approximate width of a text in pixels, in the font Inter."""
    narrow = sum(c in "iljtfr.,:;'|![]() " for c in text)
    wide = sum(c in "mwMW@%" or c.isupper() for c in text)
    return size * (0.56 * (len(text) - narrow - wide) + 0.31 * narrow + 0.76 * wide)


def cut(text: str, room: float = math.inf, size: float = 13) -> str:
    """Return a text with "…" in its middle if it is wider than `room` pixels or longer than LONGEST_LABEL characters;
    `size` is the font's, in pixels.
    """
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


def cuts(names: Iterable[str], room: float = math.inf, size: float = 13) -> dict[str, str]:
    """Return {name: name shortened to `room` pixels}; different names stay different. `size` is the font's, in
    pixels.
    """
    shown = {name: cut(name, room, size) for name in names}
    return shown | _apart(shown, room, size)


def _apart(shown: dict[str, str], room: float, size: float) -> dict[str, str]:
    alike: dict[str, list[str]] = {}
    for name, text in shown.items():
        alike.setdefault(text, []).append(name)
    apart: dict[str, str] = {}
    for same in alike.values():
        if len(same) > 1:
            first, last = min(same), max(same)
            differ = (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
            begin = max(next(differ, len(first)) - 6, 6)
            found = {name: _ended(f"{name[:6]}…{name[begin:]}", room, size) for name in same}
            apart |= found | (_apart(found, room, size) if len(set(found.values())) > 1 else {})
    return apart


def _ended(text: str, room: float, size: float) -> str:
    shown = text[:LONGEST_LABEL]
    while len(shown) > 5 and text_width(shown, size) > room:
        shown = shown[:-1]
    return shown if shown == text else f"{shown[:-1]}…"


def _text(
    look: Look, at: _Place, text: str, ink: str = "ink", anchor: str = "", size: float = 0, bold: bool = False
) -> str:
    x, y = at
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-size="{size:g}"' if size else "")
    more += ' font-weight="620"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" {look.fill(ink)}{more} unicode-bidi="isolate">{html_escaped(text)}</text>'


def _line(look: Look, start: _Place, end: _Place, ink: str, width: float = 1, dash: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look.stroke(ink, width, dash)}/>'


def _mark(look: Look, x: float, y: float, system: int, filled: bool = True, scale: float = 1) -> str:
    place = f' transform="translate({x:.1f} {y:.1f}){f" scale({scale:g})" * (scale != 1)}"' if x or y else ""
    return f'<path{place} d="{_MARKS[system]}" {look.mark(f"s{system}", filled)}/>'


def mark_svg(system: int) -> str:
    """Return a system's coloured mark as an SVG element, empty for UNCOLOURED."""
    # No `transform`: Chromium leaves such shapes out of a table header that it repeats on paper.
    inside = "" if system == UNCOLOURED else _mark(Look(True), 0, 0, system)
    return f'<svg class="weir-mark" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true">{inside}</svg>'


def icon_svg(verdict: str) -> str:
    """Return an icon as an SVG element: for "better", "worse" or, with any other text, not separable."""
    ink = verdict if verdict in ("better", "worse") else ""
    paint = f'class="weir-f-{ink}"' if ink else 'class="weir-l-soft" fill="none" stroke-width="1.6"'
    path = f'<path d="{ICONS[ink]}" {paint}/>'
    return (
        f'<svg class="weir-icon" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">{path}</svg>'
    )


def strip_svg(one: Interval | None, low: float, high: float, axis: str = "") -> str:
    """Return an interval as SVG for a table cell, on an axis from `low` to `high`, which must differ.

    one: None draws only the axis, labelled `axis`.
    """
    look, height = Look(True, 11.5), 34

    def at(value: float) -> str:
        return f"{4 + 92 * (value - low) / (high - low):.2f}%"

    def line(x: str, y1: float, y2: float, ink: str, width: float) -> str:
        return f'<line x1="{x}" x2="{x}" y1="{y1:g}" y2="{y2:g}" {look.stroke(ink, width)}/>'

    marks, parts = ticks(low, high, 5), list[str]()
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    if one is None:
        parts.append(_text(look, (0, 11), axis, "soft"))
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
            title = html_escaped(f"{cut(name)} {score(value)}")
            parts.append(f"<g><title>{title}</title>{line(at(value), 22, 29, ink, 1.6)}</g>")
        parts.append(
            f'<svg x="{at(one.value)}" y="13" overflow="visible">{_mark(look, 0, 0, one.system, one.filled)}</svg>'
        )
    size = f'width="100%" height="{height}" font-size="{look.size:g}"'
    return f'<svg class="weir-chart weir-strip" {size} aria-hidden="true">{"".join(parts)}</svg>'


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round, evenly spaced numbers in [low, high]: at least three, if possible at most `most`; [low] if the
    range is empty.
    """
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    largest = next(n for n, m in enumerate((1, 2, 5, 10)) if span / (power * m) <= most)
    for step in (power * m for m in (0.1, 0.2, 0.5, 1, 2, 5, 10)[largest + 3 :: -1]):
        first = math.ceil(low / step - 1e-9)
        values = [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]
        if len(values) > 2:
            break
    return values


def _tick_text(value: float, signed: bool, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 1
    if value == 0 or abs(value) < step / 1e6:
        return "0"
    return f"{value:{'+' if signed else ''},.{digits}f}".replace("-", "−")


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from `low` (above 0) to `high` for a logarithmic axis: at least three, if possible at most
    `most`; evenly spaced on a short range.
    """
    if high < 4 * low:
        return ticks(low, high, most)
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [10.0**n * f for n in tens for f in factors if low * 0.999 <= 10.0**n * f <= high * 1.001]
        if len(values) <= most:
            return values if len(values) > 2 else ticks(low, high, max(3, most))
    fewer = values[:: math.ceil(len(values) / most)]
    return fewer if len(fewer) > 2 else values


def _plain_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _axis_texts(
    look: Look, marks: Sequence[float], at: Callable[[float], float], y: float, shown: Callable[[float], str]
) -> list[str]:
    parts, end = list[str](), -math.inf
    for tick in marks:
        text = shown(tick)
        wide = look.width(text, 11.5)
        if at(tick) - wide / 2 > end:
            parts.append(_text(look, (at(tick), y), text, "soft", "middle", 11.5))
            end = at(tick) + wide / 2 + 3
    return parts


def _labels(
    names: Sequence[str], whole: Sequence[str], marked: bool, width: float, look: Look, most: float = 0.4
) -> _Labels:
    before, room = 18.0 * marked, width * most
    shown = look.cuts(whole, room)
    if width < 400 and any(text != name for name, text in shown.items()):
        shown = look.cuts(whole, width - before)
        return _Labels(
            [shown[name] for name in names], before, before, 17.0
        )  # no mark at the axis, as if a value
    left = max(map(look.width, shown.values()), default=0) + before + (8 if marked else 12)
    return _Labels([shown[name] for name in names], before, left, 0.0)


@dataclass(frozen=True)
class _Labels:
    texts: list[str]
    before: float
    """X of the names, after marks."""
    left: float
    """X of the drawing."""
    line: float
    """Height of a line above each row for its label, on a telephone; 0 if labels stand beside rows."""


def _labels_of(chart: Intervals, width: float, look: Look) -> _Labels:
    marked = all(panel.system is None for panel in chart.panels)  # then rows are systems, each with its mark
    whole = chart.whole or chart
    most = 0.5 if len(whole.panels) == 1 and width > 400 else 0.4
    most *= width >= 400 or not chart.ends  # numbers at both ends leave no room beside names on a telephone
    return _labels(chart.rows, whole.rows, marked, width, look, most)


def _beside(chart: Intervals, width: float, look: Look) -> int:
    chart = chart.whole or chart
    room = width - _labels_of(chart, width, look).left
    beside = max(1, min(len(chart.panels), int(room // (216 + 34 * chart.ends))))
    return math.ceil(len(chart.panels) / -(-len(chart.panels) // beside)) if chart.panels else 1


def _span(chart: Intervals) -> tuple[float, float]:
    chart = chart.whole or chart
    few = len(chart.panels) <= FEW_PANELS
    ends: list[float] = [
        v
        for panel in chart.panels
        for one in panel.intervals
        if one is not None
        for v in (one.value, one.low, one.high, *(value for _, value in one.ticks), *(few * (one.together or ())))
        if v is not None and math.isfinite(v)
    ] or [0.0, 1.0]  # fmt: skip
    low, high = min(ends), max(ends)
    low, high = (min(low, 0.0), max(high, 0.0)) if chart.signed else (low, high)
    margin = 0.04 * (high - low) or 0.05
    return low - margin * (low != 0 or not chart.signed), high + margin


FEW_PANELS, FEW_ROWS = 6, 16
"""Panels up to which an axis holds all intervals; rows up to which they stand far apart."""


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        x = self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)
        return min(max(x, self.start - 6), self.end + 6)


def _intervals(chart: Intervals, width: float, look: Look) -> tuple[float, str]:
    whole = chart.whole or chart
    tall = any(one is not None and one.ticks for panel in whole.panels for one in panel.intervals)
    labels = _labels_of(chart, width, look)
    row = labels.line + ((34.0 if len(whole.rows) <= FEW_ROWS else 26.0) if tall else 25.0)
    scale = 1.0 if len(whole.panels) <= FEW_PANELS else 0.75
    left = labels.left
    valued = width >= 400 or not chart.ends
    value_room, end_room = 58.0 if valued else 12.0, 40.0 * chart.ends
    beside, (low, high) = _beside(chart, width, look), _span(chart)
    gap = 30.0 * (beside > 1)
    room = (width - left + gap) / beside
    titles = look.cuts((panel.title for panel in whole.panels), 0.92 * (room - gap - 26))  # bold is wider
    parts, top = list[str](), 0.0
    for start in range(0, len(chart.panels), beside):
        heading = 26.0 if any(panel.title for panel in chart.panels) else 6.0
        bottom = top + heading + row * len(labels.texts)
        for n, panel in enumerate(chart.panels[start : start + beside]):
            parts += _panel_title(panel, titles[panel.title], left + n * room + 8, top, look)
            end = left + (n + 1) * room - value_room - gap - end_room
            axis = _Axis(low, high, left + n * room + 8 + end_room, end)
            parts += _interval_grid(chart.signed, axis, top + heading, bottom, look)
            value_end = end + end_room + value_room
            for number, one in enumerate(panel.intervals):
                y = top + heading + row * (number + 0.5) + labels.line / 2 - (3 if tall else 0)
                if one is None:
                    parts.append(_text(look, (value_end, y + 4.5), "–", "soft", "end"))
                    continue
                parts += _interval(one, chart.ends, axis, y, scale, look)
                if valued:
                    said = typeset_change(one.value) if chart.signed else score(one.value)
                    parts.append(
                        _text(look, (value_end, y + 4.5), said, "ink" if one.filled else "soft", "end")
                    )
        parts += _row_names(chart, labels, top + heading, row, look)
        top = bottom + 26
    if not chart.axis:
        return top, "".join(parts)
    parts.append(_text(look, (left + 8, top + 8), chart.axis, "soft", size=12))
    return top + 16, "".join(parts)


def _panel_title(panel: Panel, title: str, x: float, top: float, look: Look) -> Iterator[str]:
    if not panel.title:
        return
    if panel.system not in (None, UNCOLOURED):
        yield _mark(look, x + 6, top + 9, panel.system or 0)
        x += 18
    yield _text(look, (x, top + 14), title, bold=True)


def _interval_grid(signed: bool, axis: _Axis, top: float, bottom: float, look: Look) -> list[str]:
    marks = ticks(axis.low, axis.high, min(8, max(3, int((axis.end - axis.start) // 55))))
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    lines = [
        _line(look, (axis.at(tick), top), (axis.at(tick), bottom), "axis" if zero else "line")
        for tick in marks
        for zero in [signed and abs(tick) < step / 1e6]
    ]
    return lines + _axis_texts(
        look, marks, axis.at, bottom + 15, lambda value: _tick_text(value, signed, step)
    )


def _interval(one: Interval, ends: bool, axis: _Axis, y: float, scale: float, look: Look) -> Iterator[str]:
    ink, at = f"s{one.system}", axis.at
    if one.together is not None:
        yield _line(look, (at(one.together[0]), y), (at(one.together[1]), y), ink)
        for end, side in zip(one.together, (-1, 1), strict=True):
            if not axis.low <= end <= axis.high:  # it goes on beyond the axis
                arrow = f"M{at(end):.1f} {y - 3:.1f}l{3 * side} 3l{-3 * side} 3"
                yield f'<path d="{arrow}" fill="none" {look.stroke(ink, 1)}/>'
    if one.low is not None and one.high is not None:
        thick = 2.5 if one.filled or one.together else 1.2
        yield _line(look, (at(one.low), y), (at(one.high), y), ink, thick)
        for v, side, anchor in ((one.low, -5, "end"), (one.high, 5, "start")):
            if ends:
                yield _text(look, (at(v) + side, y + 4), score(v), "soft", anchor, 11)
    for _, v in one.ticks:
        yield _line(look, (at(v), y + 8), (at(v), y + 13), ink, 1.1)
    if ends:
        yield _line(look, (at(one.value), y - 6), (at(one.value), y + 6), ink, 2.5)
    else:
        yield _mark(look, at(one.value), y, one.system, one.filled, scale)


def _row_names(chart: Intervals, labels: _Labels, top: float, row: float, look: Look) -> Iterator[str]:
    for number, name in enumerate(labels.texts):
        y = top + (row * number + 9 if labels.line else row * (number + 0.5))
        own = [one for panel in chart.panels if (one := panel.intervals[number]) is not None]
        if labels.before and own and own[0].system != UNCOLOURED:
            yield _mark(look, 7, y, own[0].system)
        yield f"<g {look.over()}>{_text(look, (labels.before, y + 4.5), name)}</g>"


@dataclass(frozen=True)
class _Plane:
    box: _Box
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        left, _, right, _ = self.box
        return left + (right - left) * math.log(max(value, self.x_low) / self.x_low) / math.log(
            self.x_high / self.x_low
        )

    def y(self, value: float) -> float:
        _, top, _, bottom = self.box
        return bottom - (bottom - top) * (value - self.y_low) / (self.y_high - self.y_low)

    def place(self, point: Point) -> tuple[float, float]:
        return self.x(point.x), self.y(point.y)


def _points(chart: Points, width: float, look: Look) -> tuple[float, str]:
    height = max(260.0, min(340.0, width * 0.7))
    if len(chart.points) > len(LIGHT):
        height = 400.0 if width > MIDDLE_PX else 300.0
    height = max(height, 120.0 + 22 * sum(one.named for one in chart.points))
    xs = [p.x for p in chart.points if p.x > 0]
    ends = [v for p in chart.points for v in (p.y, p.low, p.high) if v is not None]
    if not xs or not ends:
        return 20, ""
    y_low, y_high = min(ends), max(ends)
    margin = 0.06 * (y_high - y_low) or 0.05
    box = 46.0, 26.0, width - 16.0, height - 44.0
    x_high = max(xs) * (4 if width > 400 else 6)
    plane = _Plane(box, min(xs) / 1.8, x_high, y_low - margin, y_high + margin)
    parts = [*_plane_grid(chart, plane, height, look)]
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in map(plane.place, chart.points)]
    lines = list[_Box]()
    for line, shape in [*_front_lines(chart, plane, look), *_point_intervals(chart, plane, look)]:
        lines.append(line)
        parts.append(shape)
    named, listed = _point_labels(chart, plane, width, taken, lines, look)
    parts += [_mark(look, *plane.place(one), one.system, one.filled) for one in chart.points]
    more, below = _listed(listed, width, look)
    room = int(width // look.width("n", 11.5))
    out = [line for one in chart.left_out for line in textwrap.wrap(one, room)]
    told = "".join(_text(look, (0, more + 12 + 17 * n), one, "soft", size=11.5) for n, one in enumerate(out))
    more += 17 * len(out) + 8 * bool(out)
    below = f'<g transform="translate(0 {height:.1f})">{below}{told}</g>'
    return height + more, "".join([*parts, *named, below])


def _plane_grid(chart: Points, plane: _Plane, height: float, look: Look) -> Iterator[str]:
    left, top, right, bottom = plane.box
    yield _text(look, (0, 12), chart.y_axis, "soft", size=12)
    marks = ticks(plane.y_low, plane.y_high, 6)
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    for tick in marks:
        y = plane.y(tick)
        yield _line(look, (left, y), (right, y), "line")
        yield _text(look, (left - 8, y + 4), _tick_text(tick, False, step), "soft", "end", 11.5)
    steps = log_ticks(plane.x_low, plane.x_high, max(4, int((right - left) // 70)))
    for tick in steps:
        yield _line(look, (plane.x(tick), top), (plane.x(tick), bottom), "line")
    yield from _axis_texts(look, steps, plane.x, bottom + 16, _plain_number)
    yield _text(look, ((left + right) / 2, height - 8), chart.x_axis, "soft", "middle", 12)


def _front_lines(chart: Points, plane: _Plane, look: Look) -> Iterator[tuple[_Box, str]]:
    for (before, _), (number, separable) in zip(chart.front, [*chart.front[1:], (-1, True)], strict=False):
        x, y = plane.place(chart.points[before])
        dash = "" if separable and (chart.tested or number < 0) else "3 4"
        end = plane.box[2] if number < 0 else plane.x(chart.points[number].x)
        yield (x, y - 0.5, end, y + 0.5), _line(look, (x, y), (end, y), "ink", 1.4, dash)
        if number >= 0:
            up = plane.y(chart.points[number].y)
            box = end - 0.5, min(y, up), end + 0.5, max(y, up)
            yield box, _line(look, (end, y), (end, up), "ink", 1.4, dash)


def _point_intervals(chart: Points, plane: _Plane, look: Look) -> Iterator[tuple[_Box, str]]:
    for one in chart.points:
        if one.low is not None and one.high is not None:
            x, low, high = plane.x(one.x), plane.y(one.low), plane.y(one.high)
            line = _line(look, (x, low), (x, high), f"s{one.system}", 2.5 if one.filled else 1.2)
            yield (x - 1.5, high, x + 1.5, low), line


def _point_labels(
    chart: Points, plane: _Plane, width: float, taken: list[_Box], lines: Sequence[_Box], look: Look
) -> tuple[list[str], list[str]]:
    left, top, _, bottom = plane.box
    named, listed = list[str](), list[str]()
    room = width > 400 or len(chart.points) <= len(LIGHT)
    shown = look.cuts((one.name for one in chart.points), width * 0.4, 12.5)
    for one in sorted(chart.points, key=lambda point: not point.named):
        (x, y), named_here = plane.place(one), one.named and room
        if named_here:
            name, points = shown[one.name], 12.5
        else:
            listed.append(one.name)
            name, points = str(len(listed)), 11.0
        wide = look.width(name, points) * 1.15 + 2  # bold is wider
        box = _place(x, y, wide, taken, lines, (left, top - 8, width, bottom + 2), 400 if named_here else 60)
        taken.append(box)
        to_x, to_y = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        away = math.hypot(to_x - x, to_y - y)
        ink = f"n{one.system}" if named_here else "soft"
        begins, side = (box[2] - 1, "end") if box[2] <= x else (box[0] + 1, "")
        label = _text(look, (begins, box[3] - 4), name, ink, side, points, named_here)
        line = ""
        if away > _TOUCHING:
            part = 7 / away
            begin = x + (to_x - x) * part, y + (to_y - y) * part
            line = _line(look, begin, (to_x, to_y), f"s{one.system}")
            for n in range(1, 8):  # no other label on the line
                a, b = (start + (end - start) * n / 8 for start, end in zip(begin, (to_x, to_y), strict=True))
                taken.append((a - 2, b - 2, a + 2, b + 2))
        named.append(
            f'<g data-label="{html_escaped(cut(one.name))}" data-x="{x:.1f}" data-y="{y:.1f}">{line}'
            f"<g {look.over()}>{label}</g></g>"
        )
    return named, listed


def _listed(names: Sequence[str], width: float, look: Look) -> tuple[float, str]:
    shown = cuts(names)
    texts = [f"{n} {shown[name]}" for n, name in enumerate(names, 1)]
    if not texts:
        return 0.0, ""
    across = max(1, int(width // (max(look.width(one, 11.5) for one in texts) + 20)))
    down = -(-len(texts) // across)
    places = ((n // down * width / across, n % down * 17 + 12.0, one) for n, one in enumerate(texts))
    return down * 17 + 8.0, "".join(_text(look, (x, y), one, "soft", size=11.5) for x, y, one in places)


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


_Box: TypeAlias = "tuple[float, float, float, float]"


def _covered(box: _Box, others: Float64) -> float:
    wide = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    high = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float(np.sum(np.maximum(wide, 0) * np.maximum(high, 0)))


def _place(
    x: float,
    y: float,
    wide: float,
    taken: Sequence[_Box],
    lines: Sequence[_Box],
    room: _Box,
    farthest: int = 400,
) -> _Box:
    marks, crossed = (np.array(boxes, np.float64).reshape(-1, 4) for boxes in (taken, lines))
    begin = max(room[0], min(x + 8, room[2] - wide))
    best, least = (begin, y - 8, begin + wide, y + 8), (math.inf, math.inf)
    for distance in range(0, farthest, 10):
        if least <= (0.0, distance):
            break
        for side, up in _SIDES:
            far = distance / math.hypot(side, up)
            a, b = x + 8 * (side > 0) - 8 * (side < 0) + side * far, y + (1 if side else 8) * up + up * far
            a -= wide * (side < 0) + wide / 2 * (side == 0)
            b -= 16 * (up < 0) + 8 * (up == 0)
            box = (a, b, a + wide, b + 16)
            if box[0] < room[0] or box[1] < room[1] or box[2] > room[2] or box[3] > room[3]:
                continue
            found = _covered(box, marks), distance + _covered(box, crossed) * 1.5
            if found < least:
                best, least = box, found
    return best


def tint(verdict: str, difference: float) -> str:
    """Return a table cell's background: "better0" to "worse3", darker for larger differences; "" for other verdicts."""
    if verdict not in ("better", "worse"):
        return ""
    return f"{verdict}{sum(abs(difference) >= step for step in TINT_STEPS)}"


@dataclass(frozen=True)
class _HeatMapPlan:
    left: float
    per: int
    """Columns beside one another; further ones stand in blocks below."""
    column: float
    headings: list[list[str]]
    """Lines of each column's heading; none if one does not fit, and all are turned."""
    turned: int
    """Degrees by which headings are turned."""
    heading: float


def _edges(chart: HeatMap) -> tuple[float, ...]:
    values = [v for of_row in (chart.whole or chart).values for v in of_row if v is not None]
    unit = all(0 <= v <= 1 for v in values)
    return (0.2, 0.4, 0.6, 0.8) if unit else tuple(map(float, np.quantile(values, (0.2, 0.4, 0.6, 0.8))))


def _label_room(chart: HeatMap, width: float) -> float:
    return max(width * 0.35, width - 72 * len((chart.whole or chart).columns))


def _heat_map_plan(chart: HeatMap, width: float, look: Look) -> _HeatMapPlan:
    chart = chart.whole or chart
    left = max(map(look.width, look.cuts(chart.rows, _label_room(chart, width)).values()), default=0) + 14
    values = [v for of_row in chart.values for v in of_row if v is not None]
    least = max([26.0, *(look.width(_brief(v, chart.percent), 11) + 6 for v in values)])
    count = max(1, len(chart.columns))
    blocks = math.ceil(count / max(1, int((width - left) // least)))
    per = math.ceil(count / blocks)
    column = min(150.0, (width - left) / per)
    headings = [_wrapped(name, column - 8, look) for name in chart.columns]
    heading, turned = 15.0 * max(map(len, headings), default=1) + 11, 0
    if any(not lines or len(lines) > _HEADING_LINES for lines in headings):
        headings, turned = [], -50
        shown = look.cuts(chart.columns, 200, 12)
        wide = [look.width(shown[name], 12) for name in chart.columns]
        heading = 0.77 * max(wide, default=0) + 22
        slanted = min(
            [column, *((width - left - 0.65 * w - 10) / (n % per + 0.5) for n, w in enumerate(wide))]
        )
        if slanted < 0.85 * column:  # the last names would take too much of the width
            turned, heading = -90, max(wide, default=0) + 14
        else:
            column = slanted
    return _HeatMapPlan(left, per, column, headings, turned, heading)


_HEADING_LINES = 3
_BREAKS = re.compile(r"(?<=[(,/= -])")


def _wrapped(name: str, room: float, look: Look) -> list[str]:
    lines = [""]
    for part in _BREAKS.split(cut(name)):
        if look.width(part.strip(), 12) * 1.06 > room:
            return []
        fits = look.width((lines[-1] + part).strip(), 12) * 1.06 <= room
        lines = [*lines[:-1], lines[-1] + part] if fits else [*lines, part]
    return [line.strip() for line in lines]


def _full(value: float, in_percent: bool) -> str:
    return percent(value) if in_percent else score(value)


def _brief(value: float, in_percent: bool) -> str:
    return percent(value, 0) if in_percent else short_score(value).removeprefix("0")


def _heat_map(chart: HeatMap, width: float, look: Look) -> tuple[float, str]:
    plan = _heat_map_plan(chart, width, look)
    whole = chart.whole or chart
    row = 28.0 if width > MIDDLE_PX and len(whole.rows) <= FEW_ROWS else 23.0
    column, parts, top = plan.column, list[str](), 0.0
    values = [v for of_row in whole.values for v in of_row if v is not None]
    rows, edges = look.cuts(whole.rows, _label_room(chart, width)), _edges(chart)
    labels, columns = [rows[name] for name in chart.rows], look.cuts(whole.columns, 200, 12)
    digits = all(look.width(_full(v, chart.percent)) <= column - 8 for v in values)
    beside = column >= _ICON_PX
    for start in range(0, len(chart.columns), plan.per):
        shown = range(start, min(start + plan.per, len(chart.columns)))
        for n in shown:
            x = plan.left + column * (n - start + 0.5)
            if plan.headings:
                lines = plan.headings[n]
                for i, line in enumerate(lines):
                    y = top + plan.heading - 10 - 15 * (len(lines) - 1 - i)
                    parts.append(_text(look, (x, y), line, "ink", "middle", 12, True))
            else:
                text = _text(look, (0, 0), columns[chart.columns[n]], size=12)
                at = x + 4 * (plan.turned == -90), top + plan.heading - 8
                place = f"translate({at[0]:.1f} {at[1]:.1f}) rotate({plan.turned})"
                parts.append(f'<g transform="{place}">{text}</g>')
        for i, (name, of_row) in enumerate(zip(labels, chart.values, strict=True)):
            y = top + plan.heading + row * i
            parts.append(_text(look, (0, y + row / 2 + 4.5), name))
            for n in shown:
                x, value = plan.left + column * (n - start), of_row[n]
                if value is None:
                    parts.append(_text(look, (x + column / 2, y + row / 2 + 4.5), "–", "soft", "middle"))
                    continue
                verdict = chart.verdicts[i][n] if chart.verdicts else ""
                ink = (
                    tint(verdict, chart.changes[i][n] or 0.0)
                    if chart.verdicts
                    else f"place{sum(value >= edge for edge in edges)}"
                )
                if ink:
                    size_px = f'width="{column - 2:.1f}" height="{row - 2:.1f}"'
                    parts.append(f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" {size_px} {look.fill(ink)}/>')
                marked = verdict in ("better", "worse")
                said = _full(value, chart.percent) if digits else _brief(value, chart.percent)
                at_x = x + column / 2 - (8 if beside and chart.verdicts else 0)
                parts.append(
                    _text(look, (at_x, y + row / 2 + 4.5), said, "ink", "middle", 0 if digits else 11)
                )
                if marked:
                    at_x, at_y = (x + column / 2 + 22, y + row / 2) if beside else (x + column - 5, y + 5)
                    place = f"translate({at_x:.1f} {at_y:.1f})" + " scale(.7)" * (not beside)
                    parts.append(f'<path transform="{place}" d="{ICONS[verdict]}" {look.fill(verdict)}/>')
        top += plan.heading + row * len(labels) + 12
    return top, "".join(parts)


_ICON_PX = 76
"""Width of a column in which the icon of a verdict stands beside the number."""


def _spread(chart: Spread, width: float, look: Look) -> tuple[float, str]:
    whole = chart.whole or chart
    marked = any(system is not None for system in whole.systems)
    labels = _labels(chart.rows, whole.rows, marked, width, look)
    row, heading = labels.line + (25.0 if len(whole.rows) <= FEW_ROWS else 19.0), 20.0
    left, right, bottom = labels.left + 4, width - 14.0, heading + row * len(labels.texts)
    numbers = [v for of_row in whole.values for v in of_row if v > 0]
    if not numbers:
        return 20, ""
    low, high = min(numbers) / 1.3, max(numbers) * 1.3

    def at(value: float) -> float:
        return left + (right - left) * math.log(max(value, low) / low) / math.log(high / low)

    words = ", then ".join(chart.parts)
    at_words = max(0, min(left, width - look.width(words, 12)))
    parts = [_text(look, (at_words, 12), words, "soft", size=12)] * chart.joined
    steps = log_ticks(low, high, max(4, int((right - left) // 70)))
    parts += [_line(look, (at(tick), heading), (at(tick), bottom), "line") for tick in steps]
    parts += _axis_texts(look, steps, at, bottom + 15, _plain_number)
    for number, (name, of_row, system) in enumerate(
        zip(labels.texts, chart.values, chart.systems, strict=True)
    ):
        y = heading + row * (number + 0.5) + labels.line / 2
        at_name = heading + row * number + 9 if labels.line else y
        ink = "soft" if system is None else f"s{system}"
        parts.append(f"<g {look.over()}>{_text(look, (labels.before, at_name + 4.5), name)}</g>")
        if chart.joined:
            parts.append(_line(look, (at(of_row[0]), y), (at(of_row[-1]), y), ink, 2))
            parts += [
                _line(look, (at(v), y - 5), (at(v), y + 5), ink, 2)
                for n, v in enumerate(of_row)
                if n != chart.mark
            ]
        else:
            parts += [
                _dot(look, at(v), y, n > 0) for n, v in enumerate(of_row) if n != chart.mark or system is None
            ]
        if system is not None:
            parts += [_mark(look, 7, at_name, system)] * (system != UNCOLOURED)
            parts.append(_mark(look, at(of_row[chart.mark]), y, system))
        elif chart.joined:
            parts.append(_dot(look, at(of_row[chart.mark]), y, True))
    if not chart.axis:
        return bottom + 26, "".join(parts)
    parts.append(_text(look, (left, bottom + 34), chart.axis, "soft", size=12))
    return bottom + 42, "".join(parts)


def _dot(look: Look, x: float, y: float, filled: bool) -> str:
    rings = ((4.5, "soft"),) + ((2.9, "paper"),) * (not filled)
    return "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {look.fill(ink)}/>' for r, ink in rings)


def _key(chart: Chart, width: float, look: Look) -> tuple[float, str]:
    items = _key_items(chart, look)
    parts, x, y = list[str](), 0.0, 14.0
    for shape, words in items:
        wide = 44 + look.width(words, 11.5)
        if x and x + wide > width:
            x, y = 0.0, y + 20
        text = _text(look, (26, 4), words, "soft", size=11.5)
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{shape}{text}</g>')
        x += wide
    return (y + 12, "".join(parts)) if items else (0.0, "")


def _key_items(chart: Chart, look: Look) -> list[tuple[str, str]]:
    def line(ink: str, thick: float, dash: str = "") -> str:
        return _line(look, (0, 0), (20, 0), ink, thick, dash)

    def swatches(*names: str) -> str:
        wide = 20 / len(names)
        return "".join(
            f'<rect x="{n * wide:g}" y="-6" width="{wide:g}" height="12" {look.fill(name)}/>'
            for n, name in enumerate(names)
        )

    items, marks, together = list[tuple[str, str]](), list[Interval | Point](), False
    match chart:
        case Intervals(panels=panels):
            own = [one for panel in panels for one in panel.intervals if one is not None]
            marks = list(own)
            if any(one.low is not None for one in own):
                items.append((line("soft", 2.5), chart.bar))
            together = any(one.together for one in own)
            if together:
                items.append((line("soft", 1), "for all comparisons together"))
            if any(one.ticks for one in own):
                items.append((_line(look, (10, -4), (10, 4), "soft", 1.1), "mean on one collection"))
            if chart.ends:
                items.append((_line(look, (10, -6), (10, 6), "soft", 2.5), "as judged"))
        case Points(points=points):
            marks = list(points)
            if any(one.low is not None for one in marks):
                items.append((line("soft", 2.5), "95% interval"))
            if len(chart.front) > 1 and not chart.tested:
                items.append(
                    (line("ink", 1.4, "3 4"), "the best for the time; its gains are not tested here")
                )
            elif len(chart.front) > 1:
                items.append((line("ink", 1.4), "the best for the time"))
            if chart.tested and not all(separable for _, separable in chart.front):
                items.append((line("ink", 1.4, "3 4"), "a gain that is not separable"))
        case HeatMap(verdicts=verdicts):
            there = [v for v in ("better", "worse") if any(v in of_row for of_row in verdicts)]
            for verdict in there:
                shape = f'<path transform="translate(10 0)" d="{ICONS[verdict]}" {look.fill(verdict)}/>'
                items.append((shape, verdict))
            if there:
                steps = ("by under 0.1", "0.1 to 0.2", "0.2 to 0.3", "over 0.3")
                items += [(swatches(*(f"{v}{n}" for v in there)), words) for n, words in enumerate(steps)]
            elif not verdicts:
                form = "{:.0%}" if chart.percent else "{:.2g}"
                edges = list(map(form.format, _edges(chart)))
                said = [f"under {edges[0]}", *map(" to ".join, pairwise(edges)), f"over {edges[-1]}"]
                items += [(swatches(f"place{n}"), words) for n, words in enumerate(said)]
        case Spread(joined=False):
            items = [(_dot(look, 10, 0, n > 0), part) for n, part in enumerate(chart.parts)]
    if not all(one.filled for one in marks):
        for filled, words in ((True, "separable"), (False, "not separable")):
            shape = (
                f'<path transform="translate(10 0)" d="{_MARKS[1]}" {look.mark(f"s{UNCOLOURED}", filled)}/>'
            )
            if any(one.low is not None for one in marks):
                shape = line(f"s{UNCOLOURED}", 2.5 if filled or together else 1.2) + shape
            items.append((shape, words))
    return items


def legend(systems: SystemNumbers) -> list[tuple[int, str]]:
    """Return (colour number, short name) for each system with a colour."""
    return [(n, systems.label(name)) for name in systems.names if (n := systems.number(name)) != UNCOLOURED]
