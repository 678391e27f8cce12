"""Comparisons as people read them: each ends with its verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from weir.core.rounding import change, count, effect, probability, score, share
from weir.core.tables import STYLES, Cell, Styled, Table, columns, csv_text, fits, html_page, paragraph
from weir.report.short_names import short_names
from weir.stats.compare import Comparison, DatasetCounts, Pair, Standing
from weir.stats.intervals import fewest
from weir.stats.score_rows import reach_note
from weir.stats.significance import TESTS

FEW_SYSTEMS = 3
"""Systems up to which a sentence says of each how it fares across datasets."""
SEVERAL = 6
"""Systems up to which every pair is listed unasked."""


def verdict(pair: Pair, c: Comparison) -> str:
    """What can be said of the second system against the first, in their comparison."""
    if pair.verdict != "not separable":
        return pair.verdict
    if pair.tied and not pair.won and not pair.lost:
        return "not separable (equal throughout)"
    if not c.reach.possible:
        return f"not separable (too few {c.unit if c.reach.fewest is not None else 'draws'})"
    if TESTS.get(c.method.test).detection is None:
        return "not separable"
    if pair.detectable is None:
        return "not separable (not even the largest difference would be found)"
    return f"not separable (minimum detectable effect {score(pair.detectable)})"


def family(c: Comparison) -> str:
    """Over which comparisons the verdicts of a table hold together."""
    tests = c.pairs[0].comparisons if c.pairs else 0
    if TESTS.get(c.method.test).familywise:
        return f"{c.method.test} over all {tests} pairs"
    if c.method.correct == "none":
        return "not adjusted"
    return f"{c.method.correct}, adjusted over {tests} comparison{'s' * (tests != 1)}"


def tally(found: DatasetCounts) -> str:
    """On how many datasets a system is higher than the baseline by its mean, and on how many by the verdict."""
    by_mean = [("higher", found.higher), ("lower", found.lower), ("equal", found.equal)]
    verdicts = [("better", found.better), ("worse", found.worse), ("equivalent", found.equivalent)]
    always = {"higher", "lower", "better", "worse"}
    means = ", ".join(f"{what} on {n}" for what, n in by_mean if n or what in always)
    certain = ", ".join(f"{what} on {n}" for what, n in verdicts if n or what in always)
    return (
        f"{found.system} against {found.baseline} on {found.datasets} datasets, by mean: {means} "
        f"({change(found.difference)} over all); by verdict: {certain}, not separable on {found.not_separable}"
    )


def compare_text(
    comparisons: Sequence[Comparison],
    width: int | None = None,
    colour: bool = False,
    long: bool = False,
    explain: bool = False,
) -> str:
    """Tables for a terminal: the systems by value with their groups, then the verdict on each pair.

    Of more than six systems only the pairs with the best are listed, unless `long`; letters tell of the others. Systems
    go by short names, which are explained below; explain: how the numbers were made, too.
    """
    systems = tuple(dict.fromkeys(s.system for c in comparisons for s in c.standings))
    labels = dict(zip(systems, short_names(systems), strict=True))
    comparisons = relabelled(comparisons, labels)
    parts = []
    grouped = [c for c in comparisons if c.group]
    for dataset, measure in dict.fromkeys((c.dataset, c.measure) for c in grouped):
        parts.append(
            _groups([c for c in comparisons if (c.dataset, c.measure) == (dataset, measure)], width, long)
        )
    for c in [] if grouped else comparisons:
        left_out = f", {c.left_out} left out that not all systems have" if c.left_out else ""
        title = f"{c.measure} on {c.dataset} ({count(c.count)} {c.unit}{left_out})"
        parts.append(paragraph(title, width))
        head = ["system", "mean", "rank", "group"][: 4 if _lettered(c) else 3]
        parts.append(columns([head, *(_standing(s)[: len(head)] for s in c.standings)], 0, width))
        listed = c.pairs if long or len(c.standings) <= SEVERAL else _with_best(c)
        parts.append(_verdicts(c, listed, width, colour))
        if len(listed) < len(c.pairs):
            parts.append(paragraph(_unlisted(c, len(listed)), width))
        if c.tallies:
            parts.append(_tally_table(c.tallies, width))
    legend = [f"{label}: {system}" for system, label in labels.items() if label != system]
    notes = "\n".join(paragraph(line, width) for line in [*_notes(comparisons, explain), *legend])
    return "\n\n".join([*parts, notes])


def relabelled(comparisons: Sequence[Comparison], labels: Mapping[str, str]) -> list[Comparison]:
    """The comparisons with labels in the place of names; no number depends on a label."""

    def named(system: str) -> str:
        return labels.get(system, system)

    return [
        replace(
            c,
            standings=tuple(replace(s, system=named(s.system)) for s in c.standings),
            pairs=tuple(replace(p, first=named(p.first), second=named(p.second)) for p in c.pairs),
            tallies=tuple(replace(t, system=named(t.system), baseline=named(t.baseline)) for t in c.tallies),
            baseline=None if c.baseline is None else named(c.baseline),
        )
        for c in comparisons
    ]


def _verdicts(c: Comparison, listed: Sequence[Pair], width: int | None, colour: bool) -> str:
    """The pairs with their verdicts behind them; in a narrow terminal two tables, the first with the verdicts."""
    header: list[str | Styled] = ["pair", "difference", "p", "adjusted", "Hedges' g", "won/lost/tied"]
    lines = [_pair(p, c, colour) for p in listed]
    whole = [[*header, f"verdict ({family(c)})"], *lines]
    if fits(whole, width):
        return columns(whole, 5, width, tail=1)
    first = columns(
        [["pair", "difference", "verdict"], *([*li[:2], li[-1]] for li in lines)], 1, width, tail=1
    )
    second = columns([["pair", *header[2:]], *([li[0], *li[2:-1]] for li in lines)], 4, width)
    return f"{first}\n\n{second}\n\n{paragraph(f'verdict: {family(c)}', width)}"


def _groups(comparisons: Sequence[Comparison], width: int | None, long: bool) -> str:
    """A line for each group and pair: all queries first, then the macro mean, then the groups."""
    first, last = comparisons[0], comparisons[-1]
    head = [
        "group",
        "pair",
        "queries",
        "first",
        "second",
        "difference",
        "adjusted",
        "won/lost/tied",
        "verdict",
    ]
    lines = []
    for c in comparisons:
        means = {s.system: score(s.mean) for s in c.standings}
        for p in c.pairs if long or len(c.standings) <= SEVERAL else _with_best(c):
            cells = _pair(p, c, colour=False)
            names = (c.group or "all queries", cells[0], count(c.count), means[p.first], means[p.second])
            said = p.verdict if c.reach.possible or p.verdict != "not separable" else verdict(p, c)
            lines.append([*names, cells[1], cells[3], cells[5], said])
    title = f"{first.measure} on {first.dataset}, by group; verdicts on groups: {family(last)}"
    return f"{paragraph(title, width)}\n\n{columns([head, *lines], 6, width, keys=2, tail=1)}"


def _tally_table(tallies: Sequence[DatasetCounts], width: int | None) -> str:
    """Sentences on a few systems, a table of many."""
    if len(tallies) <= FEW_SYSTEMS:
        return "\n".join(paragraph(tally(t), width) for t in tallies)
    first = tallies[0]
    head = [
        "system",
        "difference",
        "higher",
        "lower",
        "equal",
        "better",
        "worse",
        "equivalent",
        "not separable",
    ]
    lines = [
        [t.system, change(t.difference), *map(str, (t.higher, t.lower, t.equal)),
         *map(str, (t.better, t.worse, t.equivalent, t.not_separable))]
        for t in tallies
    ]  # fmt: skip
    title = f"against {first.baseline} on {first.datasets} datasets: on how many by mean, and by verdict"
    return f"{paragraph(title, width)}\n\n{columns([head, *lines], len(head) - 1, width)}"


def _with_best(c: Comparison) -> tuple[Pair, ...]:
    """The pairs of a comparison that the best system is in; all of those with a baseline."""
    best = c.standings[0].system
    return c.pairs if c.baseline is not None else tuple(p for p in c.pairs if best in (p.first, p.second))


def _unlisted(c: Comparison, listed: int) -> str:
    separable = sum(p.verdict in ("better", "worse") for p in c.pairs)
    return (
        f"{listed} of {len(c.pairs)} pairs are listed, those with the best system; {separable} of all are separable, "
        "which letters tell; --long lists them all"
    )


def compare_json(comparisons: Sequence[Comparison]) -> str:
    """One JSON object for each dataset and measure, at full precision; undefined numbers are null."""
    return "\n".join(json.dumps(_plain(asdict(c)), ensure_ascii=False) for c in comparisons)


def compare_csv(comparisons: Sequence[Comparison]) -> str:
    """Comma-separated values at full precision: a line for each dataset, measure and pair."""
    names = ["dataset", "group", "measure", "count", "unit", *Pair.__dataclass_fields__]
    lines = [
        [c.dataset, c.group, c.measure, c.count, c.unit, *_plain(asdict(pair)).values()]
        for c in comparisons
        for pair in c.pairs
    ]
    return csv_text([names, *lines])


def compare_latex(comparisons: Sequence[Comparison]) -> str:
    """A LaTeX tabular for the booktabs package, with the markers papers use.

    It takes amssymb too. The best mean is bold; superscript letters are groups: systems that share one cannot be
    told apart. Against a baseline, upward and downward triangles mark better and worse instead.
    """
    return _marked(comparisons).latex()


def compare_markdown(comparisons: Sequence[Comparison]) -> str:
    """A Markdown table: means with the letters of their groups, the best in bold, marks against the baseline."""
    return _marked(comparisons).markdown()


def compare_html(comparisons: Sequence[Comparison]) -> str:
    """The same table as HTML with its own style, for a notebook, and the pairs with their verdicts."""
    means = replace(_marked(comparisons), notes=())
    return f"{means.html()}\n{_pair_table(comparisons).html_body()}"


def compare_page(comparisons: Sequence[Comparison]) -> str:
    """A whole page of HTML with the same tables, and how the numbers were made."""
    pairs = replace(_pair_table(comparisons), notes=())
    return html_page("comparison", [pairs, _marked(comparisons)])


def _pair_table(comparisons: Sequence[Comparison]) -> Table:
    """A line for each dataset, measure and pair."""
    header = ("dataset", "measure", "pair", "difference", "p", "adjusted", "Hedges' g", "won/lost/tied")
    rows = tuple(
        tuple(map(Cell, (f"{c.dataset}, {c.group}" if c.group else c.dataset, c.measure, *cells)))
        for c in comparisons
        for cells in ([str(cell) for cell in _pair(p, c, colour=False)] for p in c.pairs)
    )
    return Table("", (*header, "verdict"), rows, tuple(_notes(comparisons)), keys=3)


def _marked(comparisons: Sequence[Comparison]) -> Table:
    """A line for each dataset and system, a column for each measure."""
    measures = list(dict.fromkeys(c.measure for c in comparisons))
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for c in comparisons:
        marks = {p.second: p.verdict for p in c.pairs} if c.baseline is not None else {}
        for s in c.standings:
            best = s.mean == c.standings[0].mean
            found = Cell(score(s.mean), best, s.letters, marks.get(s.system, ""))
            where = f"{c.dataset}, {c.group}" if c.group else c.dataset
            cells.setdefault((where, s.system), {})[c.measure] = found
    rows = tuple(
        (Cell(dataset), Cell(system), *(of.get(m, Cell("")) for m in measures))
        for (dataset, system), of in cells.items()
    )
    tallies = [f"{c.measure}: {tally(t)}" for c in comparisons for t in c.tallies]
    notes = (*tallies, *_notes(comparisons, explain=True))
    return Table("", ("dataset", "system", *measures), rows, notes, keys=2)


def _standing(s: Standing) -> list[str]:
    ranks = str(s.best) if s.best == s.worst else f"{s.best}-{s.worst}"
    return [s.system, score(s.mean) + _interval(score, s.low, s.high), ranks, s.letters]


def _lettered(c: Comparison) -> bool:
    """Whether letters tell which systems cannot be told apart."""
    return any(s.letters for s in c.standings)


def _pair(p: Pair, c: Comparison, colour: bool) -> list[str | Styled]:
    said = verdict(p, c)
    return [
        f"{p.second} - {p.first}",
        change(p.difference) + _interval(change, p.low, p.high),
        probability(p.p),
        probability(p.adjusted),
        effect(p.effect),
        f"{p.won}/{p.lost}/{p.tied}",
        Styled(said, p.verdict) if colour and p.verdict in STYLES else said,
    ]


def _notes(comparisons: Sequence[Comparison], explain: bool = False) -> list[str]:
    """What has to be known of the numbers; explain: how each was made."""
    if not comparisons:
        return ["nothing to compare"]
    first = comparisons[0]
    m = first.method
    drawn = f", {m.draws:,} draws, seed {m.seed}" if TESTS.get(m.test).drawn else ""
    test = f"{m.test} (randomised HSD)" if m.test == "tukey" else m.test
    lines = [f"{test} test at level {m.alpha:g}; --explain says how the numbers were made"]
    if explain:
        pairs = (
            "each minus the baseline" if first.baseline is not None else "the later given minus the earlier"
        )
        letters = "; group: systems that share a letter cannot be told apart"
        interval = f"its {100 * m.level:g}% interval ({m.interval})"
        lines = [
            f"difference: {pairs}, with {interval}; p: {test}{drawn}; level {m.alpha:g}",
            "rank, by the verdicts: 1 + the systems that are better, to all less those that are worse"
            + (letters if any(map(_lettered, comparisons)) else ""),
            *_effects(comparisons),
        ]
    lines += [*_unreachable(comparisons), *_too_few(comparisons)]
    if any(c.geometric for c in comparisons):
        names = ", ".join(sorted({c.measure for c in comparisons if c.geometric}))
        lines.append(f"{names}: means are geometric; differences are those of logarithms")
    if m.interval == "two-level":
        lines.append(
            "two-level: datasets drawn with replacement, and queries within each; on one dataset, queries"
        )
    if m.margin is not None:
        lines.append(f"equivalent: the difference lies within ±{m.margin:g} (two one-sided t-tests)")
    return lines


def _effects(comparisons: Sequence[Comparison]) -> list[str]:
    """What the minimum detectable effects are, where there are such."""
    m = comparisons[0].method
    if TESTS.get(m.test).detection is None:
        return [f"minimum detectable effect: none is known of {m.test}; permutation and t have one"]
    if not any(c.reach.possible for c in comparisons):
        return []
    corrected = "" if m.correction == "none" else f" with {m.correction}"
    return [
        f"minimum detectable effect: a true difference that {m.test}{corrected} finds {100 * m.power:g} times in 100 "
        "in new data (weir power: of one test alone)"
    ]


def _unreachable(comparisons: Sequence[Comparison]) -> list[str]:
    """Where nothing can be found at all, and how many queries or datasets it takes."""
    test = comparisons[0].method.test
    few = [c for c in comparisons if not c.reach.possible]
    notes = (
        reach_note(c.reach, test, c.count, c.unit, c.pairs[0].comparisons if c.pairs else 0) for c in few
    )
    return list(dict.fromkeys(notes))


def _too_few(comparisons: Sequence[Comparison]) -> list[str]:
    """A line for each number of queries or datasets that is too small for intervals."""
    level = comparisons[0].method.level
    few = dict.fromkeys((c.count, c.unit) for c in comparisons if c.count < fewest(level))
    return [
        f"too few {unit} for an interval: {n}, at least {fewest(level)} are needed; even the whole range of {n} holds "
        f"the median {share(1 - 2.0 ** (1 - n))} of the time only"
        for n, unit in few
    ]


def _interval(shown: Callable[[float], str], low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{shown(low)}, {shown(high)}]"


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with None for undefined numbers, as JSON has no NaN."""
    return {k: _defined(v) for k, v in fields.items()}


def _defined(value: object) -> object:
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, (list, tuple)):
        return [_defined(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
