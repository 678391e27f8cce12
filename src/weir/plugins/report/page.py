"""The report as one HTML file that loads nothing; only the query browser needs JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from weir.api.charts import MANY_SYSTEMS, SEPARABLE
from weir.audit import Audit
from weir.core.charts import (
    LARGE_PX,
    MIDDLE_PX,
    NARROW_PX,
    WIDE_PX,
    Chart,
    Interval,
    Intervals,
    Points,
    Spread,
    css,
    icon_svg,
    key_html,
    legend,
    mark_svg,
    strip_svg,
    strips,
    svg,
    tint,
)
from weir.core.rounding import (
    bytes_text,
    counted,
    figure,
    score,
    short_score,
    typeset,
    typeset_change,
)
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64, Strings
from weir.core.tables import JOINED, Cell, Table, excerpt, html_escaped, table_of
from weir.datasets.load import Dataset
from weir.errors import WeirError
from weir.experiment.results import ResultCell
from weir.files.runs import read_run
from weir.measures.measure import direction, is_best
from weir.plugins.report.sections import (
    SEVERITIES,
    Question,
    Section,
    Statement,
    and_,
    constructed_notes,
    ranges_differ,
    severities_counted,
    tally,
    uneven_depths,
)
from weir.plugins.report.study import FEW_QUERIES, RUN_BYTES, Study
from weir.stats.compare import Comparison, Standing, rank_text

PAGE_BYTES = 9_500_000
"""Size up to which rankings and texts of queries are packed."""
EXCERPT_CHARACTERS, QUERY_CHARACTERS = 400, 160
"""Characters of a document and of a query in the query browser."""
SHOWN_RANKS, SHOWN_MOVES = 10, 12
"""Documents of a ranking in the query browser; queries in the table of the largest differences."""
VALUE_STEPS = 10_000
"""Steps between 0 and 1 in which scores are packed, as tables print them."""
MISSING = 65_535
UNBROKEN_CHARACTERS = 16
"""Characters of a name up to which it stands on one line."""
_BREAKS = re.compile(r"(?<=[-(/_])|(?<=, )|(?<=\.)(?!\d)")


def isolated_html(value: str, most: int = 300) -> str:
    """Return a text as escaped HTML, cut to `most` characters, with isolated writing direction."""
    return f"<bdi>{html_escaped(excerpt(value, most))}</bdi>"


def _name_html(name: str, most: int = 120, before: str = "", whole: int = UNBROKEN_CHARACTERS) -> str:
    shown = excerpt(name, most)
    first, *others = _BREAKS.split(shown) if len(shown) > whole else [shown]
    first = f'<span class="weir-whole">{before}{html_escaped(first)}</span>'
    return f"<bdi>{'<wbr>'.join([first, *map(html_escaped, others)])}</bdi>"


def page(
    study: Study, sections: Sequence[Section], answered: Sequence[Question], audits: Sequence[Audit] = ()
) -> str:
    """Return the whole report as HTML: sections, query browser, names of sections left out."""
    packed = Packed.of(study)
    by_name = {section.name: section for section in sections}
    order = [s.name for s in sections if s.name not in ("short", "reviewer", "reproduce")]
    titles = {name: by_name[name].title for name in order}
    titles |= {
        "queries": "Queries",
        "reviewer": by_name["reviewer"].title,
        "reproduce": by_name["reproduce"].title,
    }
    body = [opening(study, by_name["short"], answered, audits)]
    for name in titles:
        html = (
            _queries_html(study, packed)
            if name == "queries"
            else _section_html(study, by_name[name], answered)
        )
        body.append(html)
    absent = [
        f"{named.lower()} (needs {needed})" for name, (named, needed) in USUAL.items() if name not in titles
    ]
    left_out = f'<p class="weir-soft weir-end">Left out: {"; ".join(absent)}.</p>' if absent else ""
    called = {name: USUAL[name][0] if name in USUAL else name.capitalize() for name in titles}
    links = "".join(f'<a href="#{name}">{html_escaped(called[name])}</a>' for name in titles)
    style = style_sheet()
    script = page_script()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{html_escaped(by_name['short'].title)} – Weir report</title>\n<style>{style}</style>\n<body>\n",
            '<a class="weir-skip" href="#main">Skip to the results</a>',
            '<header class="weir-top"><div><strong>Weir</strong>',
            f'<nav aria-label="Sections">{links}</nav></div></header>',
            f'<main id="main">{"".join(body)}{left_out}</main>\n',
            *packed._elements(),
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def _section_html(study: Study, section: Section, answered: Sequence[Question]) -> str:
    match section.name:
        case "leaderboard":
            return _leaderboard_html(study, section)
        case "collections":
            return _grid_html(study, section)
        case "audit":
            return _findings_html(section)
        case "reviewer":
            return _reviewer_html(section, answered)
        case "reproduce":
            code = "".join(
                f'<pre class="weir-code" tabindex="0">{html_escaped(one, lines=True)}</pre>'
                for one in section.notes
            )
            return _framed(section, code + details(section), lead_below=True)
        case _:
            inside = drawn(section.charts) + _others_printed(section) + notes(section) + details(section)
            return _framed(section, inside)


USUAL: Mapping[str, tuple[str, str]] = {
    "leaderboard": ("Leaderboard", "several systems"),
    "collections": ("Collections", "several collections"),
    "baseline": ("Differences", "a baseline"),
    "cost": ("Time", "several systems with times on one machine"),
    "judged": ("Judged", "judgments"),
    "bounds": ("Score bounds", "the audit, with judgments that are here"),
    "audit": ("Findings", "the audit"),
    "overlap": ("Overlap", "documents of three collections or more"),
    "lengths": ("Lengths", "documents that are here"),
    "slices": ("Groups", f"groups of {FEW_QUERIES} queries"),
    "models": ("Models", "language models"),
    "funnel": ("Losses", "systems of several stages whose rankings are kept"),
    "open": ("Open", "judgments of two systems"),
    "queries": ("Queries", "texts that are here"),
    "reviewer": ("Questions", "verdicts"),
    "reproduce": ("Reproduce", "a record"),
}
"""{section of a report: its name in the menu, what it needs}."""


def resource(name: str) -> str:
    """Return the text of a file in the package `weir.plugins.report`."""
    return files("weir.plugins.report").joinpath(name).read_text(encoding="utf-8")


def page_script() -> str:
    """Return the script of a page in one file."""
    return resource("frames.js") + resource("page.js")


def style_sheet(font: str = "") -> str:
    """Return the page's style sheet.

    font: URL of the font; "" embeds it.
    """
    if not font:
        inter = files("weir.plugins.report").joinpath("inter.woff2").read_bytes()
        font = f"data:font/woff2;base64,{base64.b64encode(inter).decode()}"
    face = f"@font-face{{font-family:Inter;font-weight:400 700;src:url({font}) format('woff2')}}"
    return face + css() + resource("page.css")


def digest(source: str) -> str:
    """Return the base64 of a script's or style's SHA-256, without "sha256-" before it."""
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


# ----------
# Sections.


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def _prose_html(text: str) -> str:
    return _OPTION.sub(r'<span class="weir-whole">\g<0></span>', html_escaped(text))


def _framed(section: Section, inside: str, lead_below: bool = False) -> str:
    said = f"{section.lead} {section.board}".strip()
    lead = f'<p class="weir-lead">{_prose_html(said)}</p>' if said else ""
    head = f'<h2 id="{section.name}-title">{html_escaped(section.title)}</h2>'
    inner = inside + lead if lead_below else lead + inside
    return f'<section id="{section.name}" aria-labelledby="{section.name}-title">{head}{inner}</section>\n'


def drawn(charts: Sequence[Chart]) -> str:
    """Return charts as HTML figures, small ones (Points, Spread) side by side."""
    small = [isinstance(chart, Points | Spread) for chart in charts]
    figures = "".join(_figure_html(chart, len(charts) > 1) for chart in charts)
    return f'<div class="weir-two">{figures}</div>' if len(charts) > 1 and all(small) else figures


def _figure_html(chart: Chart, titled: bool) -> str:
    widths = {"wide": WIDE_PX, "large": LARGE_PX, "middle": MIDDLE_PX, "thin": NARROW_PX}
    title = f"<figcaption>{html_escaped(caption(chart))}</figcaption>" * titled
    of_width = "".join(
        f'<div class="weir-{name}">'
        + "".join(svg(strip, width, True, inter=True) for strip in strips(chart, width))
        + "</div>"
        for name, width in widths.items()
    )
    return f'<figure class="weir-drawn">{title}{of_width}{key_html(chart)}</figure>'


def _others_printed(section: Section) -> str:
    if section.name != "baseline":
        return ""
    tables = "".join(
        table_of(
            [
                ["collection" if chart.panels[0].title else "system", *(p.title or chart.axis for p in chart.panels)],
                *(
                    [row, *("–" if (one := p.intervals[n]) is None else Cell(
                        typeset_change(one.value), best=one.filled) for p in chart.panels)]
                    for n, row in enumerate(chart.rows)
                ),
            ],
            right=None,
            title=caption(chart),
        ).html_body()
        for chart in section.charts[1:]
        if isinstance(chart, Intervals)
    )  # fmt: skip
    return (
        f'<div class="weir-paper">{tables}<p class="weir-soft">Bold: separable.</p></div>' if tables else ""
    )


def caption(chart: Chart) -> str:
    """Return a chart's caption: its title, or the measure of a chart of differences."""
    if isinstance(chart, Intervals) and chart.signed:
        return chart.axis.removeprefix("difference of ")
    return chart.title


def details(section: Section) -> str:
    """Return a section's tables as HTML, folded under charts that show the same numbers; "" without tables."""
    behind, tables = (
        "".join(_printed(one).html_body() for one in some) for some in (section.behind, section.tables)
    )
    if not section.tables:
        return ""
    if not section.charts and section.name not in ("reproduce", "bounds"):
        return tables
    name = "Fingerprints and keys" if section.name == "reproduce" else "The numbers as a table"
    return f"<details><summary>{name}</summary>{behind}{tables}</details>"


def _printed(table: Table) -> Table:
    rows = (tuple(replace(c, text=typeset(c.text), more=typeset(c.more)) for c in row) for row in table.rows)
    above, notes = (tuple(map(typeset, sentences)) for sentences in (table.above, table.notes))
    return replace(table, rows=tuple(rows), above=above, notes=notes)


def notes(section: Section) -> str:
    """Return a section's notes as HTML."""
    return _soft(section.notes)


def _soft(lines: Iterable[str]) -> str:
    return "".join(f'<p class="weir-soft">{_prose_html(line)}</p>' for line in lines)


def statement(one: Statement) -> str:
    """Return a statement as an HTML paragraph, its first words in bold."""
    return f"<p><strong>{html_escaped(one.head)}</strong> {html_escaped(one.text)}</p>"


def opening(
    study: Study, section: Section, answered: Sequence[Question], audits: Sequence[Audit] = ()
) -> str:
    """Return the top of the page as HTML: systems, conclusions, numbers of questions and findings by
    severity."""
    made = sorted({str(cell.ranked.made.get("when"))[:10] for cell in study.cells})
    versions = sorted({f"weir {cell.ranked.made.get('weir')}" for cell in study.cells})
    machines = sorted(
        {f"{c.ranked.made.get('processor')}, {c.ranked.made.get('cores')} cores" for c in study.cells}
    )
    about = " · ".join(["Weir report", made[-1], *versions, *machines[:2]])
    columns = "".join(
        f"<div><h2>{html_escaped(heading)}</h2>{''.join(map(statement, statements))}</div>"
        for heading, statements in section.lists
    )
    tallies = _tallied("reviewer", "questions of a reviewer", [one.severity for one in answered])
    if audits:
        found = [finding.severity for one in audits for finding in one.findings]
        tallies += _tallied("audit", "findings of the audit", found)
    keys = "".join(
        f"<li>{mark_svg(number)}{isolated_html(label)}</li>" for number, label in legend(study.numbers)
    )
    grey = len(study.systems) - len(legend(study.numbers))
    keys += f'<li class="weir-soft">in grey: {counted(grey, "other")}</li>' if grey else ""
    return (
        f'<section id="short"><p class="weir-soft">{html_escaped(about)}</p><h1>{html_escaped(section.title)}</h1>'
        f'<p class="weir-lede">{html_escaped(section.lead)}</p><ul class="weir-keys">{keys}</ul>'
        f'<div class="weir-short">{columns}</div><div class="weir-tallies">{tallies}</div></section>\n'
    )


def _tallied(section: str, what: str, severities: Sequence[str]) -> str:
    counts = Counter(severities)
    parts = "".join(
        f"<span>{_severity_svg(severity)}{severities_counted([severity] * counts[severity])}</span>"
        for severity in SEVERITIES
        if counts[severity]
    )
    return f'<p><a href="#{section}">{len(severities)} {what}</a>{parts}</p>'


def _severity_svg(severity: str) -> str:
    shapes = {
        "wrong": '<path d="M2 2 12 12M12 2 2 12" class="weir-l-serious" fill="none" stroke-width="2.4"/>',
        "serious": '<path d="M4 1V8.5M4 11V13.4M10 1V8.5M10 11V13.4" class="weir-l-serious" stroke-width="2.6"/>',
        "caution": '<path d="M7 1V8.5M7 11V13.4" class="weir-l-worse" stroke-width="2.6"/>',
        "note": '<path d="M7 1V3.4M7 5.5V13" class="weir-l-soft" stroke-width="2.2"/>',
        "checked": '<path d="M1.5 7.5 5.5 11.5 12.5 3" class="weir-l-better" fill="none" stroke-width="2"/>',
    }
    size = 'width="14" height="14" viewBox="0 0 14 14"'
    return f'<svg class="weir-icon" {size} aria-hidden="true">{shapes[severity]}</svg>'


def _leaderboard_html(study: Study, section: Section) -> str:
    standings = [
        whole for measure in study.measures if (whole := study.ranking_comparison(measure)) is not None
    ]
    boards = [
        f'<div class="weir-board" data-measure="{html_escaped(whole.measure)}">{board(study, whole, chart)}</div>'
        for whole, chart in zip(standings, section.charts, strict=True)
        if isinstance(chart, Intervals) and whole.measure in study.telling
    ]
    shown = zip(standings, section.tables, strict=True)
    of_page = [table for whole, table in shown if whole.measure in study.telling]
    printed = "".join(table.html_body() for table in of_page[1:])
    inside = (
        f'<div class="weir-boards weir-first">{"".join(boards)}</div><div class="weir-paper">{printed}</div>'
    )
    return _framed(section, inside + notes(section) + details(section))


def board(study: Study, whole: Comparison, chart: Intervals) -> str:
    """Return a comparison's standings as an HTML table with an interval drawn in each row."""
    rows = [one for one in chart.panels[0].intervals if one is not None]
    low, high = _axis_ends(rows)
    letters = sorted({c for one in whole.standings for c in one.letters.split() or one.letters}, key=str)
    grouped = any(one.letters for one in whole.standings) and len(letters) <= 26
    known = any(one.low is not None for one in whole.standings)
    ranked, tested = ranges_differ(whole), bool(direction(whole.measure))
    against = f"against {study.short_name(study.baseline)}"
    timed = whole.dataset if whole.unit == "queries" else study.largest
    times = {
        c.quality.system: c.p50_ms for c in study.costs if c.p50_ms is not None and c.quality.dataset == timed
    }
    heads = [("rank", "rank")] * ranked
    heads += [("name", "system"), ("mean weir-number", f"mean{'<small>95% interval</small>' * known}")]
    heads += [
        ("strip-cell", f'{strip_svg(None, low, high, whole.measure)}<span class="weir-hidden">drawn</span>')
    ]
    heads += [("groups", "tie groups")] * grouped
    heads += [("against", isolated_html(against, 40))] * tested
    heads += [("ms weir-number", f"ms<small>{_name_html(timed, 30, whole=30)}</small>")] * bool(times)
    lines = []
    for one, interval in zip(whole.standings, rows, strict=True):
        cells = [f'<td class="weir-rank">{rank_text(one, "–")}</td>'] * ranked
        cells += _standing_cells(study, one, known)
        cells.append(f'<td class="weir-strip-cell">{strip_svg(interval, low, high)}</td>')
        if grouped:
            mine = one.letters.split() or list(one.letters)
            bars = "".join(
                f'<span class="{"weir-on" if c in mine else "weir-off"}">{c if c in mine else ""}</span>'
                for c in letters
            )
            cells.append(f'<td class="weir-groups">{bars}</td>')
        if tested:
            verdicts = "baseline"
            if one.system != study.baseline:
                verdicts = f'<span class="weir-unit">{isolated_html(against, 40)} </span>'
                verdicts += f'<span class="weir-verdicts">{_verdict(study, whole, one.system)}</span>'
            cells.append(f'<td class="weir-against">{verdicts}</td>')
        if times:
            ms = times.get(one.system)
            unit = '<span class="weir-unit"> ms</span>'
            cells.append(
                f'<td class="weir-number weir-ms">{"" if ms is None else f"{figure(ms)}{unit}"}</td>'
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    header = "".join(f'<th scope="col" class="weir-{kind}">{name}</th>' for kind, name in heads)
    kind = "weir-leaders" + " weir-unranked" * (not ranked)
    return (
        f'<div class="weir-frame" tabindex="0" role="region" aria-label="Leaderboard by {html_escaped(whole.measure)}">'
        f'<table class="{kind}"><caption>{html_escaped(whole.measure)} on {isolated_html(whole.dataset)}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f"{_soft(uneven_depths(study, whole.measure))}{key_html(chart)}"
        + f'<p class="weir-soft weir-unit">ms: of a query on {isolated_html(timed, 30)}</p>'
        * bool(times)
    )


def _axis_ends(intervals: Sequence[Interval]) -> tuple[float, float]:
    ends = [
        v
        for one in intervals
        for v in (one.value, one.low, one.high, *(value for _, value in one.ticks))
        if v is not None
    ]
    low, high = min(ends), max(ends)
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def _standing_cells(study: Study, one: Standing, known: bool) -> list[str]:
    label = study.short_name(one.system)
    mark = mark_svg(study.numbers.number(one.system))
    full = f"<code>{_name_html(one.system)}</code>" if label.replace("'", '"') != one.system else ""
    bounds = " <small>–</small>" * known
    if one.low is not None and one.high is not None:
        bounds = f" <small>{score(one.low)}–{score(one.high)}</small>"
    return [
        f'<th scope="row">{_name_html(label, before=mark)}{full}</th>',
        f'<td class="weir-number weir-mean" data-value="{one.mean!r}">{score(one.mean)}{bounds}</td>',
    ]


def _verdict(study: Study, whole: Comparison, system: str) -> str:
    if whole.unit != "datasets":
        pair = study.against(whole, system)
        return "" if pair is None else f"<span>{icon_svg(pair.verdict)}{html_escaped(pair.verdict)}</span>"
    counts = zip(
        ("better", "", "worse"),
        ("better on", "not separable on", "worse on"),
        tally(study, whole.measure, system),
        strict=True,
    )
    return "".join(
        f'<span>{icon_svg(icon)}<span class="weir-hidden">{words} </span>{count}</span>'
        for icon, words, count in counts
    )


def _grid_html(study: Study, section: Section) -> str:
    boards = [
        f'<div class="weir-board" data-measure="{html_escaped(measure)}">{_grid(study, measure)}</div>'
        for measure in study.telling
    ]
    inside = f'<div class="weir-boards">{"".join(boards)}</div>' + _soft(constructed_notes(study))
    return _framed(section, inside + details(section))


def _grid(study: Study, measure: str) -> str:
    single = {c.dataset: c for c in study.on(measure)}
    tested = bool(direction(measure))
    by_system = len(study.systems) > MANY_SYSTEMS
    wide = by_system or len(study.systems) > 8
    cells = {
        (dataset, name): _grid_cell(study, single.get(dataset), dataset, measure, name, wide)
        for dataset in study.datasets
        for name in study.systems
    }
    heads = {
        name: _name_html(study.short_name(name), 60, mark_svg(study.numbers.number(name)))
        for name in sorted(study.systems, key=lambda name: name != study.baseline)
    }
    facts: dict[str, list[str]] = {"queries": [], "detectable": [], "documents": []}
    for dataset in study.datasets:
        comparison = single.get(dataset)
        differences = {} if comparison is None else study.detectable(comparison)
        count, size = study.query_count(dataset), study.documents(dataset)
        facts["queries"].append(f"{count:,}{' (few)' * (count < FEW_QUERIES)}")
        facts["detectable"].append(_detectable_html(study, differences))
        facts["documents"].append("" if size is None else f"{size:,}")
    if not tested:
        del facts["detectable"]
    facts = {name: of for name, of in facts.items() if any(one not in ("", "–") for one in of)}

    def column(name: str) -> str:
        return f'<th scope="col">{name}</th>'

    def row(name: str, inside: Iterable[str]) -> str:
        return f'<tr><th scope="row">{name}</th>{"".join(inside)}</tr>'

    def fact(name: str, value: str) -> str:
        return f'<td class="weir-number weir-soft weir-fact-{name}">{value}</td>'

    if by_system:
        head = "".join(map(column, ("system", *(_name_html(name, whole=8) for name in study.datasets))))
        body = [row(name, (cells[d, s] for d in study.datasets)) for s, name in heads.items()]
        foot = "".join(row(name, (fact(name, one) for one in values)) for name, values in facts.items())
    else:
        head = "".join(map(column, ("collection", *heads.values())))
        head += "".join(f'<th scope="col" class="weir-fact-{name}">{name}</th>' for name in facts)
        body = [
            row(
                f"{isolated_html(d)}<small>queries: {facts['queries'][n]}</small>",
                [*(cells[d, s] for s in heads), *(fact(name, of[n]) for name, of in facts.items())],
            )
            for n, d in enumerate(study.datasets)
        ]
        foot = ""
    kind = "weir-grid" + " weir-many" * wide
    name = html_escaped(measure)
    return (
        f'<div class="weir-frame" tabindex="0" role="region" aria-label="{name} by collection and system">'
        f'<table class="{kind} weir-sortable"><caption>{name}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody>{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>"
        + _soft(uneven_depths(study, measure))
        + _grid_key(study, "".join(cells.values()))
    )


def _detectable_html(study: Study, differences: Mapping[str, float]) -> str:
    """Return the smallest and largest detectable difference as HTML, naming systems if there are several; "–"
    for none."""
    ends = dict.fromkeys([*list(differences)[:1], *list(differences)[-1:]])
    named = len(study.systems) > 2
    return (
        "<br>".join(
            score(differences[name]) + f" <small>{_name_html(study.short_name(name), 60)}</small>" * named
            for name in ends
        )
        or "–"
    )


def _grid_key(study: Study, cells: str) -> str:
    baseline = study.short_name(study.baseline)
    icons = {"better": f"better than {baseline}", "worse": f"worse than {baseline}", "": "not separable"}
    there = [verdict for verdict in icons if icon_svg(verdict) in cells]
    words = "".join(f"<span>{icon_svg(icon)}{html_escaped(icons[icon])}</span>" for icon in there)
    tints = [verdict for verdict in there if verdict]
    steps = enumerate(("by under 0.1", "0.1 to 0.2", "0.2 to 0.3", "over 0.3"))
    words += "".join(
        "<span>" + "".join(f'<i class="weir-swatch weir-t-{verdict}{n}"></i>' for verdict in tints) + f"{size}</span>"
        for n, size in steps
        if tints
    )  # fmt: skip
    return f'<p class="weir-key">{words}</p>' if words else ""


def _grid_cell(
    study: Study, comparison: Comparison | None, dataset: str, measure: str, system: str, wide: bool
) -> str:
    row = study.mean_of.get((dataset, system, measure))
    if row is None:
        return '<td class="weir-number">–</td>'
    shown = short_score(row.mean).removeprefix("0") if wide else score(row.mean)
    if (
        comparison is None
        or (standing := study.standing(comparison, system)) is None
        or not direction(measure)
    ):
        return f'<td class="weir-number" data-value="{row.mean!r}">{shown}</td>'
    pair = study.against(comparison, system)
    verdict = pair.verdict if pair is not None else ""
    ground = tint(verdict, pair.difference if pair is not None else 0.0)
    means = [one.mean for one in comparison.standings]
    highest = is_best(measure, row.mean, means, short_score if wide else score)
    best = " weir-best" * ((standing.best == 1 and comparison.reach.possible) if study.pairwise else highest)
    icon = "" if system == study.baseline or (wide and verdict not in SEPARABLE) else icon_svg(verdict)
    words = ""
    if pair is not None:
        words = f'<span class="weir-hidden">{verdict} {typeset_change(pair.difference)}</span>'
    kinds = f"weir-number{best}" + (f" weir-t-{ground}" if ground else "")
    return f'<td class="{kinds}" data-value="{row.mean!r}">{shown}{icon}{words}</td>'


def _reviewer_html(section: Section, answered: Sequence[Question]) -> str:
    lines = "".join(
        f'<div class="weir-question"><div>{_severity_svg(one.severity)}<span class="weir-soft">{one.severity}</span>'
        f"<h3>{html_escaped(one.question)}</h3></div>"
        f"<p><strong>{html_escaped(one.answer.head)}</strong> {isolated_html(one.answer.text, 900)}"
        + (f' <code class="weir-whole">{html_escaped(one.command)}</code>' if one.command else "")
        + "</p></div>"
        for one in answered
    )
    return _framed(section, lines)


def _findings_html(section: Section) -> str:
    summary, kinds = section.tables[0], section.tables[0].header[3:-1]
    lines = [] if summary.header else [summary.html_body()]
    for row in summary.rows:
        worst, severity, check, *counts, places = (cell.text for cell in row)
        of_kind = [(n, kind) for n, kind in zip(counts, kinds, strict=True) if n != "0"]
        found = and_([counted(int(n), kind) if kind == "caution" else f"{n} {kind}" for n, kind in of_kind])
        where = (
            f"{found[:1].upper()}{found[1:]}, on {counted(int(places), 'collection').replace(' ', JOINED)}"
        )
        lines.append(
            f'<div class="weir-question"><div>{_severity_svg(severity)}<span class="weir-soft">{severity}</span>'
            f"<h3>{html_escaped(check[:1].upper() + check[1:])}</h3></div><p>{isolated_html(typeset(worst), 900)}. "
            f'<span class="weir-soft">{where}</span></p></div>'
        )
    behind = "".join(_printed(one).html_body() for one in section.behind)
    folded = f"<details><summary>All of it</summary>{behind}</details>" if behind else ""
    return _framed(section, "".join(lines) + folded)


# ----------
# Queries: values packed in the page, unpacked when a collection is opened.


@dataclass(frozen=True, eq=False)
class QueryScores:
    """All systems' values by query on a dataset, hardest queries first."""

    dataset: str
    systems: tuple[str, ...]
    """Names, in the order of `values`."""
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    """Texts of the queries; () without the collection."""
    values: Float64
    """float64[measures, systems, queries]; NaN for no value."""
    moved: Int64
    """Positions of queries, the largest difference to the baseline by the first measure first."""
    gaps: Float64
    """float64[systems, queries], differences to the baseline by the first measure; 0 without a value."""

    @staticmethod
    def of(study: Study, dataset: str) -> QueryScores:
        """Return the values on a dataset, NaN if missing, with the hardest queries by the first measure
        first."""
        cells = [cell for cell in study.cells if cell.dataset == dataset]
        scores = [study.scores[dataset, cell.label] for cell in cells]
        queries = scores[0].queries
        values = np.full((len(study.measures), len(cells), len(queries)), np.nan)
        for s, one in enumerate(scores):
            at = queries.codes(one.queries.strings)
            for m, measure in enumerate(study.measures):
                if measure in one.measures:
                    values[m, s, at[at >= 0]] = one.of(measure)[at >= 0]
        way = direction(study.measures[0]) or 1
        hardest = np.argsort(way * np.nan_to_num(values[0]).mean(axis=0), kind="stable")
        names = queries.tolist()
        values, ids = values[:, :, hardest], tuple(names[n] for n in hardest.tolist())
        systems = tuple(cell.label for cell in cells)
        base = systems.index(study.baseline) if study.baseline in systems else 0
        gaps = np.nan_to_num(values[0] - values[0, base])
        moved = np.argsort(-np.abs(gaps).max(axis=0), kind="stable")
        return QueryScores(dataset, systems, ids, _query_texts(study, dataset, ids), values, moved, gaps)

    def packed(self) -> tuple[bytes, list[float], list[float]]:
        """Return (values in 16 bits as two deflated byte planes, each measure's minimum, each measure's
        range)."""
        lows, spans, steps = list[float](), list[float](), []
        for of_measure in self.values:
            known = of_measure[np.isfinite(of_measure)]
            low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
            low, high = (0.0, 1.0) if 0 <= low <= high <= 1 else (low, max(high, low + 1e-9))
            share = np.where(np.isfinite(of_measure), (of_measure - low) / (high - low), 0)
            steps.append(np.where(np.isfinite(of_measure), np.rint(share * VALUE_STEPS), MISSING))
            lows.append(low)
            spans.append(high - low)
        raw = np.ascontiguousarray(np.array(steps).astype("<u2")).view(np.uint8).reshape(-1, 2)
        return zlib.compress(raw[:, 0].tobytes() + raw[:, 1].tobytes(), 6), lows, spans

    def largest(self, baseline: str) -> Iterator[tuple[str, str, str, str, float]]:
        """Yield (dataset, query, text, system, difference) of each system's largest gain and loss against the
        baseline."""
        for system, gaps in zip(self.systems, self.gaps, strict=True):
            for n in sorted({int(np.argmax(gaps)), int(np.argmin(gaps))}):
                if system != baseline and gaps[n] != 0:
                    yield (
                        self.dataset,
                        self.ids[n],
                        self.texts[n] if self.texts else "",
                        system,
                        float(gaps[n]),
                    )


def _query_texts(study: Study, dataset: str, ids: Sequence[str]) -> tuple[str, ...]:
    try:
        queries = study.collections[dataset].all_queries
    except (KeyError, WeirError):
        return ()
    codes = queries.ids.codes(ids)
    texts = queries.text.take(np.maximum(codes, 0)).tolist()
    return tuple(
        excerpt(t, QUERY_CHARACTERS) if c >= 0 else "" for t, c in zip(texts, codes.tolist(), strict=True)
    )


@dataclass(frozen=True, eq=False)
class Packed:
    """The compressed data of the page's query browser."""

    index: dict[str, Any]
    """Systems, measures and counts of each dataset."""
    values: tuple[bytes, ...]
    """For each dataset, the bytes of `QueryScores.packed`."""
    texts: tuple[bytes, ...]
    """Of each dataset, deflated JSON of queries, rankings, documents and grades."""
    top: tuple[tuple[str, str, str, str, float], ...]
    """(dataset, query, text, system, difference) of the largest differences to the baseline, for readers without
    JavaScript."""
    unread: tuple[tuple[str, int], ...] = ()
    """Datasets whose rankings are too large to read, with their bytes."""

    @staticmethod
    def of(study: Study) -> Packed:
        """Return the values of all queries, and rankings with excerpts of as many queries as fit.

        PAGE_BYTES bounds the packed data, RUN_BYTES the run files that are read, small datasets first.
        """
        all_scores = [QueryScores.of(study, dataset) for dataset in study.datasets]
        packed = [one.packed() for one in all_scores]
        texts: list[dict[str, Any]] = [{"ids": one.ids, "texts": one.texts} for one in all_scores]
        entries: list[dict[str, Any]] = [
            {
                "name": one.dataset,
                "systems": [study.systems.index(label) for label in one.systems],
                "queries": len(one.ids),
                "lows": lows,
                "spans": spans,
            }
            for one, (_, lows, spans) in zip(all_scores, packed, strict=True)
        ]
        room = PAGE_BYTES - sum(len(data) * 4 // 3 for data, *_ in packed)
        room -= sum(len(json.dumps(one)) // 2 for one in texts)
        files = [(cell.dataset, cell.run) for cell in study.cells]
        sizes = [
            sum(run.stat().st_size for dataset, run in files if dataset == one.dataset and run.exists())
            for one in all_scores
        ]
        read, unread = 0, list[int]()
        for left, n in enumerate(
            sorted(range(len(all_scores)), key=sizes.__getitem__)
        ):  # the small ones first
            one, budget = all_scores[n], room // (len(all_scores) - left)
            read += sizes[n]
            if read > RUN_BYTES:
                unread.append(n)
            elif budget > 0:
                cells = [cell for cell in study.cells if cell.dataset == one.dataset]
                rankings, used = with_rankings(study, one, cells, budget)
                texts[n] |= rankings
                entries[n]["ranked"] = len(rankings["rankings"])
                room -= used
        index = {
            "systems": [study.short_name(name) for name in study.systems],
            "baseline": study.systems.index(study.baseline),
            "measures": list(study.measures),
            "datasets": entries,
            "steps": VALUE_STEPS,
            "missing": MISSING,
        }
        top = sorted((t for one in all_scores for t in one.largest(study.baseline)), key=lambda t: -abs(t[4]))
        deflated = tuple(zlib.compress(json.dumps(one, ensure_ascii=False).encode(), 9) for one in texts)
        return Packed(
            index,
            tuple(data for data, *_ in packed),
            deflated,
            tuple(top[:SHOWN_MOVES]),
            tuple((all_scores[n].dataset, sizes[n]) for n in sorted(unread)),
        )

    def _elements(self) -> Iterator[str]:
        index = json.dumps(self.index, ensure_ascii=False).replace("<", "\\u003c")
        yield f'<script type="application/json" id="weir-index">{index}</script>\n'
        for kind, parts in (("values", self.values), ("texts", self.texts)):
            for n, part in enumerate(parts):
                data = base64.b64encode(part).decode()
                yield f'<script type="application/octet-stream" id="weir-{kind}-{n}">{data}</script>\n'


def with_rankings(
    study: Study, scores: QueryScores, cells: Sequence[ResultCell], budget: int
) -> tuple[dict[str, Any], int]:
    """Return (rankings of the queries whose values differ most, their estimated bytes: about `budget` at
    most).

    "rankings" has for each query's position "r", numbers of each system's first documents or None; "g",
    grades by document number; "o", their origins if known. "documents" has names and texts; "judged" is True
    if judgments are on this machine.
    """
    queries = Strings.of(scores.ids[int(place)] for place in scores.moved)
    runs, codes = list[Run | None](), list[Int32 | None]()
    for cell in cells:
        run = _ranking(cell)
        last = runs[-1] if runs else None
        alike = run is not None and last is not None and run.queries == last.queries
        codes.append(codes[-1] if alike else None if run is None else run.queries.codes(queries))
        runs.append(run)
    collection = study.collections.get(scores.dataset)
    judged = None if collection is None else collection.qrels
    judged_codes = None if judged is None else judged.queries.codes(queries)
    numbers = dict[str, int]()
    rankings, used = dict[str, dict[str, Any]](), 0
    each = 90 if collection is None else EXCERPT_CHARACTERS * 3 // 4
    for n, place in enumerate(scores.moved.tolist()):
        if used > budget:
            break
        before, ranked = len(numbers), list[list[int] | None]()
        for run, code in zip(runs, codes, strict=True):
            if run is None or code is None or code[n] < 0:
                ranked.append(None)
                continue
            names = (run.docs[d] for d in run.doc[run.ptr[code[n]] : run.ptr[code[n] + 1]].tolist())
            ranked.append([numbers.setdefault(name, len(numbers)) for name in names])
        grades, origins = dict[str, float](), dict[str, str]()
        if judged is not None and judged_codes is not None and judged_codes[n] >= 0:
            part = slice(judged.ptr[judged_codes[n]], judged.ptr[judged_codes[n] + 1])
            rows = zip(
                range(part.start, part.stop),
                judged.doc[part].tolist(),
                judged.grade[part].tolist(),
                strict=True,
            )
            for row, doc, grade in rows:
                if (name := judged.docs[doc]) in numbers:
                    grades[str(numbers[name])] = grade
                    if judged.origin is not None and (origin := judged.origin.names[judged.origin.code[row]]):
                        origins[str(numbers[name])] = origin[:80]
        rankings[str(place)] = {"r": ranked, "g": grades} | ({"o": origins} if origins else {})
        used += (len(numbers) - before) * each + 60 * len(cells)
    documents = _documents(collection, list(numbers))
    return {"rankings": rankings, "documents": documents, "judged": judged is not None}, used


def _ranking(cell: ResultCell) -> Run | None:
    try:
        path = cell.run
        return read_run(path).top(SHOWN_RANKS) if path.exists() else None
    except WeirError:
        return None


def _documents(collection: Dataset | None, names: Sequence[str]) -> list[list[str]]:
    documents = [[name, "", ""] for name in names]
    if collection is not None and collection.layout.documents is not None and names:
        corpus = collection.corpus
        codes = corpus.ids.codes(names)
        here = np.flatnonzero(codes >= 0)
        for column, (field, characters) in enumerate((("title", 120), ("text", EXCERPT_CHARACTERS)), start=1):
            for n, value in zip(here.tolist(), corpus.view_of(field, codes[here]).tolist(), strict=True):
                documents[n][column] = excerpt(value, characters)
    return documents


def _queries_html(study: Study, packed: Packed) -> str:
    lines = [
        [
            "collection",
            "query",
            "text",
            "system",
            f"{study.measures[0]} against {study.short_name(study.baseline)}",
        ]
    ]
    lines += [
        [dataset, query[:80], excerpt(words, 80), study.short_name(system), typeset_change(gap)]
        for dataset, query, words, system, gap in packed.top
    ]
    table = table_of(lines, right=1, keys=4, title="Largest differences").html_body() if packed.top else ""
    datasets = packed.index["datasets"]
    total, ranked = sum(d["queries"] for d in datasets), sum(d.get("ranked", 0) for d in datasets)
    left = how = ""
    if ranked:
        how = " Choose a query to see documents side by side, and a document to read on; matched words are underlined."
        if ranked < total:
            left = (
                f" Rankings of {ranked:,} of {total:,} queries are packed in this page, those that moved most"
            )
    elif total:
        left = " No rankings are packed in this page"
    if packed.unread:
        names = and_([name for name, _ in packed.unread], 3)
        large = bytes_text(max(bytes_of for _, bytes_of in packed.unread))
        most = "up to " * (len(packed.unread) > 1)
        left += f"{'; none' if ranked else ', none'} of {names}, whose rankings are {most}{large}"
    left += "; of the others, weir diff shows them." if left else ""
    section = Section(
        "queries",
        "Queries",
    )
    every = f"Every query with the scores of all systems.{left}"
    if len(study.datasets) > 1:
        every += f" It begins with {study.datasets[0]}, the first of the results."
    inside = f'<p class="weir-lead weir-screen">{html_escaped(every)}{how}</p>'
    if table:
        moved = (
            f"The {counted(len(packed.top), 'largest gain or loss', 'largest gains and losses')} of a query"
        )
        inside += f'<p class="weir-lead weir-paper">{moved}; the page on a screen has every query.</p>'
    inside += '<div id="weir-browser" class="weir-browser" hidden></div>'
    if table:
        inside += f"<details><summary>The largest differences as a table</summary>{table}</details>"
    return _framed(section, inside)
