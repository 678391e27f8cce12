"""The report as one HTML file that asks for nothing; without JavaScript only the query browser is absent."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from weir.core.charts import (
    MIDDLE_PX,
    NARROW_PX,
    WIDE_PX,
    Chart,
    Intervals,
    css,
    height,
    icon_svg,
    legend,
    mark_svg,
    strip_svg,
    svg,
    tint,
)
from weir.core.rounding import coarse_score, figure, short_change, short_score
from weir.core.strings import Float64, Int64
from weir.core.tables import excerpt, html_escaped, table_of
from weir.datasets.load import Dataset
from weir.errors import WeirError
from weir.experiment.results import ResultCell
from weir.files.runs import read_run
from weir.measures.measure import best_of, direction
from weir.plugins.report.sections import (
    SEVERITIES,
    Question,
    Section,
    Statement,
    tally,
)
from weir.plugins.report.study import FEW_QUERIES, RUN_BYTES, Study
from weir.stats.compare import Comparison, rank_text

PAGE_BYTES = 9_500_000
"""Size up to which rankings and texts of queries are packed."""
EXCERPT_CHARACTERS, QUERY_CHARACTERS = 400, 160
"""Characters of a document and of a query in the query browser."""
SHOWN_RANKS, SHOWN_MOVES = 10, 12
"""Documents of a ranking in the query browser; queries in the table of the largest differences."""
VALUE_STEPS = 10_000
"""Steps between 0 and 1 in which scores are packed, as tables print them."""
MISSING = 65_535
FITTED_PX = 1300
"""Height up to which a chart is made to fit one page of paper below its heading; a taller one goes over several."""
SEVERITY_WORDS = {
    "serious": ("serious question", "serious questions"),
    "caution": ("caution", "cautions"),
    "note": ("note", "notes"),
    "checked": ("checked", "checked"),
}


def text(value: str, most: int = 300) -> str:
    """A text from data as HTML: escaped, apart from the direction of what is around it, and cut."""
    return f"<bdi>{html_escaped(excerpt(value, most))}</bdi>"


def page(study: Study, sections: Sequence[Section], answered: Sequence[Question]) -> str:
    """The report as HTML; answered: the questions of the reviewer's section."""
    packed = Packed.of(study)
    by_name = {section.name: section for section in sections}
    order = [s.name for s in sections if s.name not in ("short", "reviewer", "reproduce")]
    titles = {name: by_name[name].title for name in order}
    titles |= {
        "queries": "Queries",
        "reviewer": by_name["reviewer"].title,
        "reproduce": by_name["reproduce"].title,
    }
    body = [opening(study, by_name["short"], answered)]
    for name in titles:
        match name:
            case "queries":
                body.append(queries_html(study, packed))
            case "leaderboard":
                body.append(leaderboard_html(study, by_name[name]))
            case "collections":
                body.append(grid_html(study, by_name[name]))
            case "reviewer":
                body.append(reviewer_html(by_name[name], answered))
            case "reproduce":
                section = by_name[name]
                inside = (
                    f'<pre class="weir-code" tabindex="0">{html_escaped(section.notes[0], lines=True)}</pre>'
                    + details(section)
                )
                body.append(framed(section, inside, lead_below=True))
            case _:
                body.append(
                    framed(
                        by_name[name],
                        drawn(by_name[name].charts) + notes(by_name[name]) + details(by_name[name]),
                    )
                )
    absent = [name.lower() for section, name in SHORT.items() if section not in titles]
    left_out = f'<p class="weir-soft">Left out, for want of data: {", ".join(absent)}.</p>' if absent else ""
    links = "".join(f'<a href="#{name}">{html_escaped(SHORT[name])}</a>' for name in titles)
    style = style_sheet()
    script = resource("page.js")
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
            f'<header class="weir-top"><nav aria-label="Sections"><strong>Weir</strong>{links}</nav></header>',
            f'<main id="main">{"".join(body)}{left_out}</main>\n',
            *packed.elements(),
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


SHORT = {
    "leaderboard": "Leaderboard", "collections": "Collections", "baseline": "Baseline", "cost": "Cost",
    "judged": "Judged", "bounds": "Bounds", "audit": "Audit", "overlap": "Overlap", "lengths": "Lengths",
    "slices": "Slices", "models": "Models", "queries": "Queries", "reviewer": "Reviewer", "reproduce": "Reproduce",
}  # fmt: skip
"""What the head of the page calls its sections."""


def resource(name: str) -> str:
    """A text file of this package."""
    return files("weir.plugins.report").joinpath(name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """The style of the page: its font, the colours of charts, and the rules of page.css."""
    font = base64.b64encode(files("weir.plugins.report").joinpath("inter.woff2").read_bytes()).decode()
    face = f"@font-face{{font-family:Inter;font-weight:400 700;src:url(data:font/woff2;base64,{font}) format('woff2')}}"
    return face + css() + resource("page.css")


def digest(source: str) -> str:
    """The hash of a script or a style, as a content security policy names it."""
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


# ----------
# Sections.


def framed(section: Section, inside: str, lead_below: bool = False) -> str:
    """A section with its heading and how to read it."""
    lead = f'<p class="weir-lead">{html_escaped(section.lead)}</p>' if section.lead else ""
    head = f'<h2 id="{section.name}-title">{html_escaped(section.title)}</h2>'
    inner = inside + lead if lead_below else lead + inside
    return f'<section id="{section.name}" aria-labelledby="{section.name}-title">{head}{inner}</section>\n'


def drawn(charts: Sequence[Chart]) -> str:
    """Charts as figures, each in three widths of which the style sheet shows one."""
    titled = len(charts) > 1
    return "".join(
        f'<figure class="weir-drawn{" weir-fitted" * (height(chart, MIDDLE_PX) <= FITTED_PX)}">'
        + (f"<figcaption>{html_escaped(caption(chart))}</figcaption>" if titled else "")
        + f'<div class="weir-wide">{svg(chart, WIDE_PX, True)}</div>'
        + f'<div class="weir-middle">{svg(chart, MIDDLE_PX, True)}</div>'
        + f'<div class="weir-thin">{svg(chart, NARROW_PX, True)}</div></figure>'
        for chart in charts
    )


def caption(chart: Chart) -> str:
    """What stands above a chart: its title, or its axis where several share a title."""
    return chart.axis if isinstance(chart, Intervals) and chart.signed else chart.title


def details(section: Section) -> str:
    """The numbers behind charts, behind a click."""
    if not section.tables:
        return ""
    tables = "".join(table.html_body() for table in section.tables)
    if not section.charts and section.name != "reproduce":
        behind = "".join(table.html_body() for table in section.behind)
        return tables + (f"<details><summary>All of it</summary>{behind}</details>" if behind else "")
    return f"<details><summary>The numbers as a table</summary>{tables}</details>"


def notes(section: Section) -> str:
    """Sentences below a chart."""
    return "".join(f'<p class="weir-soft">{html_escaped(note)}</p>' for note in section.notes)


def statement(one: Statement) -> str:
    """A statement with its head in bold."""
    return f"<p><strong>{html_escaped(one.head)}</strong> {html_escaped(one.text)}</p>"


def opening(study: Study, section: Section, answered: Sequence[Question]) -> str:
    """The head of the page: what was compared, what can be concluded and what cannot, how many findings there are."""
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
    counts = {severity: sum(one.severity == severity for one in answered) for severity in SEVERITIES}
    tallies = "".join(
        f"<span>{severity_svg(severity)}{count} {SEVERITY_WORDS[severity][count != 1]}</span>"
        for severity, count in counts.items()
        if count
    )
    keys = "".join(f"<li>{mark_svg(number)}{text(label)}</li>" for number, label in legend(study.numbers))
    return (
        f'<section id="short"><p class="weir-soft">{html_escaped(about)}</p><h1>{html_escaped(section.title)}</h1>'
        f'<p class="weir-lede">{html_escaped(section.lead)}</p><ul class="weir-keys">{keys}</ul>'
        f'<div class="weir-short">{columns}</div><p class="weir-tallies">{tallies}</p></section>\n'
    )


def severity_svg(severity: str) -> str:
    """The icon of a severity."""
    shapes = {
        "serious": '<path d="M7 1 13 7 7 13 1 7Z" class="weir-f-serious"/>',
        "caution": '<path d="M7 1.8 12.8 12H1.2Z" class="weir-l-worse" fill="none" stroke-width="1.6"/>',
        "note": '<circle cx="7" cy="7" r="5" class="weir-l-soft" fill="none" stroke-width="1.6"/>',
        "checked": '<path d="M1.5 7.5 5.5 11.5 12.5 3" class="weir-l-better" fill="none" stroke-width="2"/>',
    }
    size = 'width="14" height="14" viewBox="0 0 14 14"'
    return f'<svg class="weir-icon" {size} aria-hidden="true">{shapes[severity]}</svg>'


def leaderboard_html(study: Study, section: Section) -> str:
    """The standings of each measure; a script shows one at a time."""
    standings = [whole for measure in study.measures if (whole := study.whole(measure)) is not None]
    boards = [
        f'<div class="weir-board" data-measure="{html_escaped(whole.measure)}">{board(study, whole, chart)}</div>'
        for whole, chart in zip(standings, section.charts, strict=True)
        if isinstance(chart, Intervals)
    ]
    return framed(
        section, f'<div class="weir-boards">{"".join(boards)}</div>' + notes(section) + details(section)
    )


def board(study: Study, whole: Comparison, chart: Intervals) -> str:
    """The standings of one comparison as a table with its row of the chart in each row."""
    rows = [one for one in chart.panels[0].intervals if one is not None]
    ends = [
        v
        for one in rows
        for v in (one.value, one.low, one.high, *(value for _, value in one.ticks))
        if v is not None
    ]
    low, high = min(ends), max(ends)
    margin = 0.05 * (high - low) or 0.05
    low, high = low - margin, high + margin
    letters = sorted({c for one in whole.standings for c in one.letters.split() or one.letters}, key=str)
    grouped = any(one.letters for one in whole.standings) and len(letters) <= 26
    known = any(one.low is not None for one in whole.standings)
    axis = f"{whole.measure}{', ticks for each collection' if whole.unit == 'datasets' else ''}"
    heads = [
        ("rank", "rank"),
        ("name", "system"),
        ("mean weir-number", f"mean{'<small>95% interval</small>' * known}"),
    ]
    heads += [("strip-cell", strip_svg(None, low, high, axis))]
    heads += [("groups", "tie groups")] * grouped
    heads += [("against", f"against {text(study.label(study.baseline), 40)}")]
    times = {
        c.quality.system: c.p50_ms
        for c in study.costs
        if c.p50_ms is not None and c.quality.dataset == largest(study)
    }
    heads += [("ms weir-number", f"ms, {text(largest(study), 30)}")] * bool(times)
    lines = []
    for one, interval in zip(whole.standings, rows, strict=True):
        number = study.numbers.number(one.system)
        tallied = tally(study, whole.measure, one.system)
        verdicts = "".join(
            f'<span>{icon_svg(icon)}<span class="weir-hidden">{words} </span>{count}</span>'
            for icon, words, count in zip(
                ("better", "", "worse"), ("better on", "not separable on", "worse on"), tallied, strict=True
            )
        )
        verdicts = (
            "baseline" if one.system == study.baseline else f'<span class="weir-verdicts">{verdicts}</span>'
        )
        label = study.label(one.system)
        full = f"<code>{text(one.system, 120)}</code>" if label != one.system else ""
        bounds = (
            ""
            if one.low is None or one.high is None
            else f" <small>{short_score(one.low)}–{short_score(one.high)}</small>"
        )
        cells = [
            f"<td>{rank_text(one, '–')}</td>",
            f'<th scope="row">{mark_svg(number)}{text(label)}{full}</th>',
            f'<td class="weir-number weir-mean" data-value="{one.mean!r}">{short_score(one.mean)}{bounds}</td>',
            f'<td class="weir-strip-cell">{strip_svg(interval, low, high)}</td>',
        ]
        if grouped:
            mine = one.letters.split() or list(one.letters)
            bars = "".join(
                f'<span class="{"weir-on" if c in mine else "weir-off"}">{c if c in mine else ""}</span>'
                for c in letters
            )
            cells.append(f'<td class="weir-groups">{bars}</td>')
        cells.append(f'<td class="weir-against">{verdicts}</td>')
        if times:
            ms = times.get(one.system)
            unit = '<span class="weir-unit"> ms</span>'
            cells.append(
                f'<td class="weir-number weir-ms">{"" if ms is None else f"{figure(ms)}{unit}"}</td>'
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    header = "".join(f'<th scope="col" class="weir-{kind}">{name}</th>' for kind, name in heads)
    return (
        f'<div class="weir-frame" tabindex="0" role="region" aria-label="Leaderboard by {html_escaped(whole.measure)}">'
        f'<table class="weir-leaders"><caption>{html_escaped(whole.measure)} on {text(whole.dataset)}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def largest(study: Study) -> str:
    """The dataset with most documents."""
    return max(study.datasets, key=lambda name: study.documents(name) or 0)


def grid_html(study: Study, section: Section) -> str:
    """Datasets x systems for each measure, with a tint and an icon for each verdict against the baseline."""
    boards = []
    for measure in study.measures:
        single = {c.dataset: c for c in study.on(measure)}
        names = study.systems
        wide = len(names) > 8
        head = "".join(
            f'<th scope="col">{mark_svg(study.numbers.number(n))}<span>{text(study.label(n), 60)}</span></th>'
            for n in names
        )
        lines = []
        for dataset in study.datasets:
            comparison = single.get(dataset)
            cells = [grid_cell(study, comparison, dataset, measure, n, wide) for n in names]
            span = None if comparison is None else study.detectable(comparison)
            ends = dict.fromkeys(map(coarse_score, span or ()))
            count, size = study.query_count(dataset), study.documents(dataset)
            few = ' <span class="weir-soft">few</span>' if count < FEW_QUERIES else ""
            tail = [
                f'<td class="weir-number">{count:,}{few}</td>',
                f'<td class="weir-number weir-soft">{"–".join(ends)}</td>',
            ]
            tail.append(f'<td class="weir-number weir-soft">{"" if size is None else f"{size:,}"}</td>')
            lines.append(f'<tr><th scope="row">{text(dataset)}</th>{"".join(cells)}{"".join(tail)}</tr>')
        kind = "weir-grid" + " weir-many" * wide + " weir-most" * (len(names) > 20)
        name = html_escaped(measure)
        more = "".join(f'<th scope="col">{column}</th>' for column in ("queries", "detectable", "documents"))
        boards.append(
            f'<div class="weir-board" data-measure="{name}">'
            f'<div class="weir-frame" tabindex="0" role="region" aria-label="{name} by collection and system">'
            f'<table class="{kind} weir-sortable"><caption>{name}</caption>'
            f'<thead><tr><th scope="col">collection</th>{head}{more}</tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div></div>"
        )
    baseline = html_escaped(study.label(study.baseline))
    steps = zip(("under 0.1", "0.1 to 0.2", "0.2 to 0.3", "over 0.3"), range(4), strict=True)
    swatches = "".join(
        f'<span><i class="weir-swatch weir-t-better{n}"></i>{words}</span>' for words, n in steps
    )
    icons = {"better": f"better than {baseline}", "": "not separable", "worse": "worse"}
    words = "".join(f"<span>{icon_svg(icon)}{meaning}</span>" for icon, meaning in icons.items())
    key = f'<p class="weir-key">{words}{swatches}</p>'
    return framed(section, f'<div class="weir-boards">{"".join(boards)}</div>{key}' + details(section))


def grid_cell(
    study: Study, comparison: Comparison | None, dataset: str, measure: str, system: str, wide: bool
) -> str:
    """A cell of the grid: the mean, bold where no system is better, and the verdict against the baseline."""
    row = study.mean_of.get((dataset, system, measure))
    if row is None:
        return '<td class="weir-number">–</td>'
    shown = short_score(row.mean).removeprefix("0") if wide else short_score(row.mean)
    if comparison is None or (standing := study.standing(comparison, system)) is None:
        return f'<td class="weir-number" data-value="{row.mean!r}">{shown}</td>'
    pair = study.against(comparison, system)
    verdict = pair.verdict if pair is not None else ""
    ground = tint(verdict, pair.difference if pair is not None else 0.0)
    highest = row.mean == best_of(measure, [one.mean for one in comparison.standings])
    best = " weir-best" * ((standing.best == 1 and comparison.reach.possible) if study.pairwise else highest)
    icon = (
        "" if system == study.baseline or (wide and verdict not in ("better", "worse")) else icon_svg(verdict)
    )
    words = (
        f'<span class="weir-hidden">{verdict} {short_change(pair.difference)}</span>'
        if pair is not None
        else ""
    )
    kinds = f"weir-number{best}" + (f" weir-t-{ground}" if ground else "")
    return f'<td class="{kinds}" data-value="{row.mean!r}">{shown}{icon}{words}</td>'


def reviewer_html(section: Section, answered: Sequence[Question]) -> str:
    """The questions with their answers, the most serious first."""
    lines = "".join(
        f'<div class="weir-question"><div>{severity_svg(one.severity)}<span class="weir-soft">{one.severity}</span>'
        f"<h3>{html_escaped(one.question)}</h3></div>"
        f"<p><strong>{html_escaped(one.answer.head)}</strong> {text(one.answer.text, 900)}"
        + (f" <code>{html_escaped(one.command)}</code>" if one.command else "")
        + "</p></div>"
        for one in answered
    )
    return framed(section, lines)


# ----------
# Queries: values packed in the page, unpacked when a collection is opened.


@dataclass(frozen=True, eq=False)
class QueryScores:
    """The queries of a dataset, the hardest first, with the values of all systems.

    systems: labels, in the order of values; values: float64[measures, systems, Q], NaN where there is none; texts: of
    the queries, () where the collection is not here; moved: places of queries, the largest difference to the baseline
    first, by the first measure; gaps: these differences, float64[systems, Q].
    """

    dataset: str
    systems: tuple[str, ...]
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    values: Float64
    moved: Int64
    gaps: Float64

    @staticmethod
    def of(study: Study, dataset: str) -> QueryScores:
        """The queries of a dataset of the study."""
        cells = [cell for cell in study.cells if cell.dataset == dataset]
        scores = [cell.values() for cell in cells]
        queries = scores[0].queries
        values = np.full((len(study.measures), len(cells), len(queries)), np.nan)
        for s, one in enumerate(scores):
            at = queries.codes(one.queries.strings)
            for m, measure in enumerate(study.measures):
                if measure in one.measures:
                    values[m, s, at[at >= 0]] = one.of(measure)[at >= 0]
        way = direction(study.measures[0]) or 1
        hardest = np.argsort(way * np.nan_to_num(values[0]).mean(axis=0), kind="stable")
        values, ids = values[:, :, hardest], tuple(queries[int(n)] for n in hardest)
        systems = tuple(cell.label for cell in cells)
        base = systems.index(study.baseline) if study.baseline in systems else 0
        gaps = np.nan_to_num(values[0] - values[0, base])
        moved = np.argsort(-np.abs(gaps).max(axis=0), kind="stable")
        return QueryScores(dataset, systems, ids, _query_texts(study, dataset, ids), values, moved, gaps)

    def packed(self) -> tuple[bytes, list[float], list[float]]:
        """(the values as two byte planes of steps, deflated; of each measure the least value and the range).

        The range of a measure within 0 and 1 is all of that, so that a step is the last decimal that tables print.
        """
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
        """The largest gain and loss of each system: dataset, query, its text, system, difference."""
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
    """The texts of queries, cut; () where the collection is not here."""
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
    """What the query browser reads.

    index: of each dataset its systems, measures and counts; values: as `QueryScores.packed`; texts: of each dataset,
    deflated JSON with queries, rankings, documents and grades; top: the largest differences to the baseline, for
    readers without JavaScript.
    """

    index: dict[str, Any]
    values: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    top: tuple[tuple[str, str, str, str, float], ...]

    @staticmethod
    def of(study: Study) -> Packed:
        """The values of all queries, and as many rankings with excerpts as PAGE_BYTES leave room for."""
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
        run_bytes = sum(cell.run.stat().st_size for cell in study.cells if cell.run.exists())
        for n, one in enumerate(all_scores if run_bytes <= RUN_BYTES else ()):
            budget = room // (len(all_scores) - n)
            if budget > 0:
                cells = [cell for cell in study.cells if cell.dataset == one.dataset]
                rankings, used = with_rankings(study, one, cells, budget)
                texts[n] |= rankings
                entries[n]["ranked"] = len(rankings["rankings"])
                room -= used
        index = {
            "systems": [study.label(name) for name in study.systems],
            "baseline": study.systems.index(study.baseline),
            "measures": list(study.measures),
            "datasets": entries,
            "steps": VALUE_STEPS,
            "missing": MISSING,
        }
        top = sorted((t for one in all_scores for t in one.largest(study.baseline)), key=lambda t: -abs(t[4]))
        deflated = tuple(zlib.compress(json.dumps(one, ensure_ascii=False).encode(), 9) for one in texts)
        return Packed(index, tuple(data for data, *_ in packed), deflated, tuple(top[:SHOWN_MOVES]))

    def elements(self) -> Iterator[str]:
        """The data as elements that no browser runs."""
        index = json.dumps(self.index, ensure_ascii=False).replace("<", "\\u003c")
        yield f'<script type="application/json" id="weir-index">{index}</script>\n'
        for kind, parts in (("values", self.values), ("texts", self.texts)):
            for n, part in enumerate(parts):
                data = base64.b64encode(part).decode()
                yield f'<script type="application/octet-stream" id="weir-{kind}-{n}">{data}</script>\n'


def with_rankings(
    study: Study, scores: QueryScores, cells: Sequence[ResultCell], budget: int
) -> tuple[dict[str, Any], int]:
    """(the first documents of each system for as many queries as the budget allows, the bytes that they take).

    The queries that moved most come first. Documents come with an excerpt where the collection is here; grades are
    those of its judgments. rankings: by the place of a query, "r" for each system the numbers of documents, None where
    its ranking is not here, "g" the grades by the number of a document, and "o" who judged it where the judgments say
    it. judged: whether the judgments are here.
    """
    runs = []
    for cell in cells:
        try:
            runs.append(read_run(cell.run).top(SHOWN_RANKS) if cell.run.exists() else None)
        except WeirError:
            runs.append(None)
    collection = study.collections.get(scores.dataset)
    judged = None if collection is None else collection.qrels
    queries = [scores.ids[int(place)] for place in scores.moved]
    codes = [None if run is None else run.queries.codes(queries) for run in runs]
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


def _documents(collection: Dataset | None, names: Sequence[str]) -> list[list[str]]:
    """The name, the title and an excerpt of documents, "" where the collection is not here."""
    documents = [[name, "", ""] for name in names]
    if collection is not None and collection.layout.documents is not None and names:
        corpus = collection.corpus
        codes = corpus.ids.codes(names)
        here = np.flatnonzero(codes >= 0)
        for column, (field, characters) in enumerate((("title", 120), ("text", EXCERPT_CHARACTERS)), start=1):
            for n, value in zip(here.tolist(), corpus.view_of(field, codes[here]).tolist(), strict=True):
                documents[n][column] = excerpt(value, characters)
    return documents


def queries_html(study: Study, packed: Packed) -> str:
    """The query browser, which a script fills, and the largest differences as a table."""
    lines = [
        [
            "collection",
            "query",
            "text",
            "system",
            f"{study.measures[0]} against {study.label(study.baseline)}",
        ]
    ]
    lines += [
        [dataset, query[:80], excerpt(words, 80), study.label(system), short_change(gap)]
        for dataset, query, words, system, gap in packed.top
    ]
    table = table_of(lines, right=1, keys=4, title="Largest differences").html_body() if packed.top else ""
    datasets = packed.index["datasets"]
    total, ranked = sum(d["queries"] for d in datasets), sum(d.get("ranked", 0) for d in datasets)
    left = "" if ranked == total else (
        f" Rankings of {ranked:,} of {total:,} queries are packed in this page, those that moved most; of the others, "
        "weir diff shows them."
    )  # fmt: skip
    section = Section(
        "queries",
        "Queries",
        f"Every query with the scores of all systems; the table has those that moved most.{left}",
    )
    how = "Choose a query to see documents side by side: matched words are underlined."
    inside = f'<p class="weir-lead weir-screen">{how}</p>'
    inside += '<div id="weir-browser" class="weir-browser" hidden></div>'
    return framed(
        section, f"{inside}<details><summary>The largest differences as a table</summary>{table}</details>"
    )
