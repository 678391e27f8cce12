"""Draw charts of results, with one function for each kind."""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from weir.argument_types import checked
from weir.core.charts import (
    MIDDLE_PX,
    WIDTHS_PX,
    Chart,
    HeatMap,
    Interval,
    Intervals,
    Panel,
    Point,
    Points,
    Spread,
    SystemNumbers,
    description,
    sheets,
    svg,
)
from weir.core.colours import LIGHT
from weir.core.rounding import counted
from weir.core.scores import PLOT_SCORES, GroupedScores
from weir.core.short_names import short_names
from weir.core.tables import html_escaped
from weir.errors import BadValue, UnknownName, require
from weir.files.atomic import write_bytes
from weir.files.paths import path_of
from weir.measures.measure import direction
from weir.stats.compare import shown_pairs
from weir.stats.score_rows import result_rows, rows_by_group

if TYPE_CHECKING:
    from weir.core.scores import Row, Scores
    from weir.datasets.card import CollectionCard
    from weir.experiment.efficiency import Efficiency
    from weir.stats.compare import Comparison
    from weir.stats.factors import FactorStudy
    from weir.stats.label_agreement import Agreement
    from weir.stats.query_differences import QueryDifferences


ChartsOf: TypeAlias = Callable[[Sequence[Any]], tuple[Chart, ...]]
F = TypeVar("F", bound=ChartsOf)
CHARTS: dict[str, ChartsOf] = {}
"""Functions that draw results, by the kind of results."""
SEPARABLE = ("better", "worse")
MANY_SYSTEMS = len(LIGHT)
"""Number of systems up to which each has a colour; of more systems, charts show a selection."""
QUERY_LETTERS = 48
"""Characters of a query, identifier and text, beside its row of a chart."""
MANY_QUERIES = 40
"""Number of queries up to which a chart of queries draws all that differ."""


def _charts_of(kind: str) -> Callable[[F], F]:
    def registered(function: F) -> F:
        CHARTS[kind] = function
        return function

    return registered


_DARK_PAGES = (
    ":is([data-jp-theme-light=false],.vscode-dark,html[theme=dark])"  # of JupyterLab, VS Code, Colab
)
NOTEBOOK_CSS = (
    ".weir-figure{break-inside:avoid}.weir-dark{display:none}@media screen{"
    f"{_DARK_PAGES} .weir-light{{display:none}}"
    f"{_DARK_PAGES} .weir-dark{{display:inline;width:{MIDDLE_PX}px;max-width:100%;height:auto}}}}"
)
"""Style sheet of `notebook_chart`: the drawing in the colours of the notebook; on paper the light one."""


def notebook_chart(chart: Chart, title: str) -> str:
    """Return a titled chart as HTML for notebooks, in light and dark colours."""
    heading = f'<p style="margin:16px 0 4px"><strong>{html_escaped(title)}</strong></p>'
    said = html_escaped(f"{chart.title}. {description(chart)}")
    drawn = (
        f'<img class="weir-{theme}" alt="{alt}" {size} src="data:image/svg+xml;base64,{_base64(chart, dark)}"/>'
        for theme, dark, alt, size in (
            ("light", False, said, f'width="{MIDDLE_PX}"'),
            ("dark", True, "", 'width="0" height="0"'),
        )
    )
    return f'<div class="weir-figure">{heading}{"".join(drawn)}</div>'


def _base64(chart: Chart, dark: bool) -> str:
    return base64.b64encode(svg(chart, MIDDLE_PX, key=True, dark=dark).encode()).decode()


@dataclass(frozen=True, repr=False)
class Figure:
    """Charts, one below the other, for notebooks and files."""

    charts: tuple[Chart, ...]

    def __repr__(self) -> str:
        return "\n".join(chart.title for chart in self.charts)

    def _repr_html_(self) -> str:
        drawn = "".join(notebook_chart(chart, chart.title) for chart in self.charts)
        return f"<style>{NOTEBOOK_CSS}</style>{drawn}"

    @checked
    def save(self, path: str | os.PathLike[str], width: Literal["page", "column"] = "page") -> list[Path]:
        """Write each chart as .svg, .png or .pdf, by the suffix, and return the paths.

        width: "page", 7 inches, or "column", 3.33 inches.

        Several charts, and parts of a tall one, get numbers and titles: a.png becomes a-1-ndcg-10-on-scifact.png.
        Raises UnknownName for another suffix or width, MissingExtra for .png or .pdf without vl-convert-python.
        """
        whole = path_of(path)
        px = figure_px(width, [whole.suffix[1:]])
        parts = [sheet for chart in self.charts for sheet in sheets(chart, px)]
        names = [whole] if len(parts) == 1 else [
            whole.with_name(f"{'-'.join([whole.stem, str(n), *_WORD.findall(part.title.lower())])}{whole.suffix}")
            for n, part in enumerate(parts, 1)
        ]  # fmt: skip
        for name, chart in zip(names, parts, strict=True):
            write_figure(chart, name, width)
        return names


_WORD = re.compile(r"[^\W_]+")
PNG_DPI = 288
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def figure_px(width: str, endings: Iterable[str]) -> int:
    """Return a figure's width in pixels.

    width: "page" or "column".
    endings: svg, png or pdf.

    Raises UnknownName for others.
    """
    if width not in WIDTHS_PX:
        raise UnknownName("width of a figure", width, WIDTHS_PX)
    for ending in endings:
        if ending not in ("svg", "png", "pdf"):
            raise UnknownName("ending of a figure", ending, {"svg", "png", "pdf"})
    return WIDTHS_PX[width]


def write_figure(chart: Chart, path: Path, width: str = "page") -> None:
    """Write a chart as .svg or .pdf, by the suffix, else as PNG.

    width: "page" or "column".

    Raises MissingExtra for all but .svg without vl-convert-python.
    """
    text = svg(chart, WIDTHS_PX[width], key=True)
    data = text.encode()
    suffix = path.suffix.lower()
    if suffix != ".svg":
        vl_convert = require("vl_convert", package="vl-convert-python")
        # The converter has 72 pixels in an inch, SVG has 96.
        sized = _SIZE.sub(
            lambda m: f'width="{float(m[1]) * 0.75:g}" height="{float(m[2]) * 0.75:g}"', text, 1
        )
        data = vl_convert.svg_to_pdf(sized) if suffix == ".pdf" else vl_convert.svg_to_png(sized, ppi=PNG_DPI)
    write_bytes(path, data)


def charts(kind: str, items: Sequence[Any]) -> tuple[Chart, ...]:
    """Return the charts of results of a kind, such as "compare"; raises BadValue if there are none."""
    if kind not in CHARTS:
        raise BadValue(
            f"results of the kind '{kind}' have no chart; there are charts of {', '.join(sorted(CHARTS))}"
        )
    drawn = CHARTS[kind](items) if items else ()
    if not drawn:
        raise BadValue(f"these results of the kind '{kind}' hold nothing to draw")
    return drawn


def system_numbers(
    names: Iterable[str], baseline: str = "", labels: Mapping[str, str] | None = None
) -> SystemNumbers:
    """Return the distinct systems with their numbers, which decide colours, and short names.

    labels: {system: chosen name}.
    """
    distinct = tuple(dict.fromkeys(names))
    return SystemNumbers(distinct, short_names(distinct, labels), baseline)


# ----------
# Kinds of results.


@_charts_of("results")
def row_charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Return, for each measure, a chart of means with 95% intervals, a panel for each dataset, without groups."""
    numbers, charts = system_numbers(row.system for row in rows), list[Chart]()
    for measure in dict.fromkeys(row.measure for row in rows):
        of_measure = {
            (row.dataset, row.system): row for row in rows if row.measure == measure and not row.group
        }
        panels = tuple(
            Panel(dataset if len({d for d, _ in of_measure}) > 1 else "", tuple(
                None if (row := of_measure.get((dataset, system))) is None
                else Interval(row.mean, _end(row.low), _end(row.high), numbers.number(system))
                for system in numbers.names
            ))
            for dataset in dict.fromkeys(dataset for dataset, _ in of_measure)
        )  # fmt: skip
        charts.append(Intervals(f"{measure} with 95% intervals", measure, numbers.labels, panels))
    return tuple(charts)


def _end(value: float) -> float | None:
    return None if math.isnan(value) else value


def _group_name(row: Row) -> str:
    return row.group or (
        "all queries" if row.groups is None else f"macro mean of {counted(row.groups, 'group')}"
    )


def _score_charts(scores: Scores | GroupedScores) -> tuple[Chart, ...]:
    grouped = isinstance(scores, GroupedScores)
    rows = rows_by_group(scores, "", "") if isinstance(scores, GroupedScores) else result_rows(scores, "", "")
    known = [row for row in rows if not math.isnan(row.mean)]
    measures = dict.fromkeys(row.measure for row in known)
    return tuple(
        Intervals(
            f"{measure or 'Means'} with 95% intervals",
            measure or "mean",
            tuple(_group_name(row) if grouped else row.measure for row in own),
            (Panel("", tuple(Interval(row.mean, _end(row.low), _end(row.high)) for row in own)),),
        )
        for measure in (measures if grouped else [""])
        if (own := [row for row in known if not grouped or row.measure == measure])
    )


def _score_figure(scores: Scores | GroupedScores) -> Figure:
    drawn = _score_charts(scores)
    if not drawn:
        raise BadValue("no measure has a mean here, so there is nothing to draw")
    return Figure(drawn)


PLOT_SCORES.register(_score_figure)


@_charts_of("compare")
def comparison_charts(comparisons: Sequence[Comparison]) -> tuple[Chart, ...]:
    """Return, for each measure, charts of means, and of differences to the baseline, without one of all pairs."""
    baseline = comparisons[0].baseline or ""
    numbers = system_numbers((s.system for c in comparisons for s in c.standings), baseline)
    charts: list[Chart] = []
    for measure in dict.fromkeys(one.measure for one in comparisons):
        own = [one for one in comparisons if one.measure == measure]
        across = [one for one in own if one.unit == "datasets"]
        single = [one for one in own if one.unit != "datasets"]
        charts += [standings_chart(one, single, numbers) for one in (across or single)]
        if baseline and single:
            charts += [difference_chart(single, numbers)] if direction(measure) else []
        else:
            charts += [_pairs_chart(one, numbers) for one in (across or single)]
    return tuple(charts)


def _subject(comparison: Comparison) -> str:
    return f"{comparison.dataset}, {comparison.group}" if comparison.group else comparison.dataset


def standings_chart(whole: Comparison, parts: Sequence[Comparison], numbers: SystemNumbers) -> Intervals:
    """Return a chart of mean scores with intervals, best first, with ticks for the means on single datasets.

    whole, parts: the comparison over all datasets, and on each.

    With a baseline, marks of better or worse systems are filled.
    """

    def filled(name: str) -> bool:
        pair = whole.against(name, numbers.baseline) if numbers.baseline else None
        return pair is None or pair.verdict not in ("not separable", "equivalent")

    means = [(part.dataset, {s.system: s.mean for s in part.standings}) for part in parts]
    rows = tuple(
        Interval(
            *(one.mean, one.low, one.high, numbers.number(one.system), filled(one.system)),
            ticks=tuple(
                (name, of[one.system]) for name, of in means if one.system in of and whole.unit == "datasets"
            ),
        )
        for one in whole.standings
    )
    names = tuple(numbers.label(one.system) for one in whole.standings)
    return Intervals(f"{whole.measure} on {_subject(whole)}", whole.measure, names, (Panel("", rows),))


def difference_chart(
    comparisons: Sequence[Comparison], numbers: SystemNumbers, together: Sequence[Comparison] = ()
) -> Intervals:
    """Return a chart of systems' differences from the baseline on each dataset, filled if better or worse.

    numbers: colours and short names.
    together: comparisons with simultaneous intervals.

    With many systems and datasets, shows only systems that are better or worse somewhere.
    """

    def wide(name: str, number: int) -> tuple[float, float] | None:
        pair = together[number].against(name, numbers.baseline) if together else None
        return None if pair is None or pair.low is None or pair.high is None else (pair.low, pair.high)

    others = [name for name in numbers.names if name != numbers.baseline]
    if len(others) >= MANY_SYSTEMS and len(comparisons) > 1:
        others = [
            name
            for name in others
            if any((p := c.against(name, numbers.baseline)) and p.verdict in SEPARABLE for c in comparisons)
        ]
    found = {
        name: tuple(
            None if (pair := one.against(name, numbers.baseline)) is None
            else Interval(pair.difference, pair.low, pair.high, numbers.number(name), pair.verdict in SEPARABLE,
                          together=wide(name, number))
            for number, one in enumerate(comparisons)
        )
        for name in others
    }  # fmt: skip
    rows = tuple(map(_subject, comparisons))
    panels = tuple(Panel(numbers.label(name), of, numbers.number(name)) for name, of in found.items())
    if len(comparisons) == 1 and others:
        rows = tuple(map(numbers.label, others))
        panels = (Panel("", tuple(one for of in found.values() for one in of)),)
    title = f"Better or worse than {numbers.label(numbers.baseline)}"
    return Intervals(title, f"difference of {comparisons[0].measure}", rows, panels, signed=True)


def _pairs_chart(comparison: Comparison, numbers: SystemNumbers) -> Intervals:
    way = direction(comparison.measure) or 1
    turned = (pair if way * pair.difference >= 0 else pair.reversed for pair in shown_pairs(comparison))
    pairs = sorted(turned, key=lambda pair: -abs(pair.difference))  # each the better less the worse
    names = tuple(f"{numbers.label(p.second)} − {numbers.label(p.first)}" for p in pairs)
    rows = tuple(
        Interval(p.difference, p.low, p.high, numbers.number(p.second), p.verdict in SEPARABLE) for p in pairs
    )
    best = "" if len(pairs) == len(comparison.pairs) else ", of pairs with the best"
    title = f"Differences of {comparison.measure} on {_subject(comparison)}{best}"
    return Intervals(title, f"difference of {comparison.measure}", names, (Panel("", rows),), signed=True)


def _query_label(query: str, text: str) -> str:
    label = f"{query}: {' '.join(text.split())}" if text and text != query else query
    return label if len(label) <= QUERY_LETTERS or not text else f"{label[: QUERY_LETTERS - 1].rstrip()}…"


@_charts_of("diff")
def query_charts(differences: Sequence[QueryDifferences]) -> tuple[Chart, ...]:
    """Return a chart of the MANY_QUERIES largest differences by query for each pair of systems that differ."""
    drawn = []
    for one in differences:
        way = direction(one.measure) or 1
        moved = sorted((q for q in one.queries if q.difference), key=lambda q: -way * q.difference)
        shown = moved
        if len(moved) > MANY_QUERIES:
            largest = sorted(moved, key=lambda q: -abs(q.difference))[:MANY_QUERIES]
            shown = [q for q in moved if q in largest]
        numbers = system_numbers((one.first, one.second))
        of = {way > 0: numbers.number(one.second), way < 0: numbers.number(one.first)}
        title = f"{one.second} against {one.first}: {len(one.won)} won, {len(one.lost)} lost, {len(one.tied)} tied"
        title += f"; the {MANY_QUERIES} largest differences" * (shown is not moved)
        rows = tuple(Interval(q.difference, system=of[q.difference > 0]) for q in shown)
        names = tuple(_query_label(q.query, one.texts.get(q.query, "")) for q in shown)
        if shown:
            drawn.append(
                Intervals(title, f"difference of {one.measure}", names, (Panel("", rows),), signed=True)
            )
    return tuple(drawn)


@_charts_of("efficiency")
def cost_charts(costs: Sequence[Efficiency], numbers: SystemNumbers | None = None) -> tuple[Chart, ...]:
    """Return, for each dataset, a chart of quality against query time, if two systems are timed, and of the spread of
    times.
    """
    from weir.experiment.efficiency import timed_singly

    names = numbers or system_numbers(one.quality.system for one in costs)
    drawn: list[Chart] = []
    for dataset in dict.fromkeys(one.quality.dataset for one in costs):
        own = [one for one in costs if one.quality.dataset == dataset]
        single = timed_singly(own)
        timed = [(one, ms) for one in own if (ms := one.p50_ms if single else one.mean_ms)]
        points = tuple(
            Point(
                names.label(one.quality.system),
                *(ms, one.quality.mean, _end(one.quality.low), _end(one.quality.high)),
                names.number(one.quality.system),
            )
            for one, ms in timed
        )
        if len(points) > 1:
            measure = own[0].quality.measure
            same = len({(one.machine, one.depth) for one, _ in timed}) == 1  # else no time is better
            drawn.append(
                Points(
                    f"Quality against time on {dataset}",
                    "milliseconds of a query" + ", all asked together" * (not single),
                    measure,
                    points,
                    front(points, way=direction(measure)) if same else (),
                    tested=False,
                    left_out=_left_out(own, single, names),
                )
            )
        spread = [
            (one, tuple(ms for ms in (one.p50_ms, one.p95_ms, one.p99_ms) if ms))
            for one in own
            if one.p50_ms and one.p95_ms
        ]
        if spread:
            drawn.append(
                Spread(
                    f"Time of single queries on {dataset}",
                    "milliseconds",
                    tuple(names.label(one.quality.system) for one, _ in spread),
                    ("median", "95%", "99%")[: max(len(times) for _, times in spread)],
                    tuple(times for _, times in spread),
                    tuple(names.number(one.quality.system) for one, _ in spread),
                )
            )
    return tuple(drawn)


def _left_out(own: Sequence[Efficiency], single: bool, names: SystemNumbers) -> tuple[str, ...]:
    by_reason: dict[str, list[str]] = {}
    for one in own:
        if (one.p50_ms if single else one.mean_ms) is None:
            by_reason.setdefault(one.untimed, []).append(names.label(one.quality.system))
    return tuple(f"Without a point: {', '.join(who)}: {reason}." for reason, who in by_reason.items())


def front(
    points: Sequence[Point], separable: Callable[[int, int], bool] = lambda *_: True, way: int = 1
) -> tuple[tuple[int, bool], ...]:
    """Return the Pareto front of points with small x and good y, left to right: ((index of a point, True if it is the
    first or separable from the one before), ...).

    separable: returns True if two points, by index, surely differ.
    way: 1 if more y is better, -1 if less; () for 0.

    Of equal points the first stands there. No coordinate may be NaN.
    """
    on_front: list[tuple[int, bool]] = []
    for number in sorted(range(len(points) if way else 0), key=lambda n: (points[n].x, -way * points[n].y)):
        if not on_front or way * (points[number].y - points[on_front[-1][0]].y) > 0:
            on_front.append((number, not on_front or separable(on_front[-1][0], number)))
    return tuple(on_front)


@_charts_of("card")
def length_charts(cards: Sequence[CollectionCard]) -> tuple[Chart, ...]:
    """Return a chart of each collection's mean words per query and per document; () if none are known."""
    known = [card for card in cards if card.words_per_query > 0 and card.words_per_document > 0]
    values = tuple((card.words_per_query, card.words_per_document) for card in known)
    names, systems = tuple(card.name for card in known), (None,) * len(known)
    if not known:
        return ()
    return (
        Spread(
            "Lengths of queries and documents",
            "words",
            names,
            ("a query", "a document"),
            values,
            systems,
            joined=False,
        ),
    )


@_charts_of("factors")
def factor_charts(studies: Sequence[FactorStudy]) -> tuple[Chart, ...]:
    """Return, for each study with effects, a chart of the effects of levels with simultaneous intervals."""
    return tuple(
        Intervals(
            f"Effects on {one.measure}, {one.dataset}",
            f"difference of {one.measure}",
            tuple(
                " x ".join(f"{f} {a} − {b}" for f, a, b in zip(e.factors, e.levels, e.against, strict=True))
                for e in one.effects
            ),
            (
                Panel(
                    "",
                    tuple(
                        Interval(e.difference, e.low, e.high, 1, e.verdict in SEPARABLE) for e in one.effects
                    ),
                ),
            ),
            signed=True,
        )
        for one in studies
        if one.effects
    )


@_charts_of("agree")
def agreement_charts(agreements: Sequence[Agreement]) -> tuple[Chart, ...]:
    """Return, for each pair of raters, a chart of the statistics of agreement with intervals."""
    return tuple(
        Intervals(
            f"Agreement of {one.first} and {one.second}",
            "agreement",
            tuple(name for name, *_ in one.values),
            (Panel("", tuple(Interval(value, low, high) for _, value, low, high in one.values)),),
        )
        for one in agreements
    )


def verdict_map(comparisons: Sequence[Comparison], numbers: SystemNumbers) -> HeatMap:
    """Return a heat map of means, datasets x systems, with verdicts against the baseline; many systems become rows.

    comparisons: of one measure; without a better direction there are no verdicts.
    numbers: labels of the systems, and the baseline.
    """
    means, verdicts, changes = [], [], []
    for one in comparisons:
        mean_of = {s.system: s.mean for s in one.standings}
        pairs = [one.against(name, numbers.baseline) for name in numbers.names]
        means.append(tuple(mean_of.get(name) for name in numbers.names))
        verdicts.append(tuple("" if pair is None else pair.verdict for pair in pairs))
        changes.append(tuple(None if pair is None else pair.difference for pair in pairs))
    rows, measure = tuple(one.dataset for one in comparisons), comparisons[0].measure
    drawn = HeatMap(f"{measure} by dataset", rows, numbers.labels, tuple(means))
    tested = replace(drawn, verdicts=tuple(verdicts), changes=tuple(changes))
    return by_system(tested if direction(measure) else drawn, numbers)


def by_system(drawn: HeatMap, numbers: SystemNumbers) -> HeatMap:
    """Return the heat map, with rows and columns exchanged for more than MANY_SYSTEMS systems."""
    return drawn.turned if len(numbers.names) > MANY_SYSTEMS else drawn
