"""Factorial studies as people read them: a table of effects with their intervals, and where the variance comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from weir.core.frames import plain
from weir.core.rounding import change, count, effect, probability, score, share
from weir.core.tables import STYLES, Cell, Styled, Table, columns, csv_text, html_page, paragraph
from weir.report.short_names import short_names
from weir.stats.factors import HIGHER, FactorEffect, FactorStudy, VarianceSource
from weir.stats.intervals import fewest
from weir.stats.significance import TESTS


def factors_text(
    studies: Sequence[FactorStudy], width: int | None = None, colour: bool = False, long: bool = False
) -> str:
    """Tables for a terminal: of each measure the effects by collection, then the shares of variance.

    One collection's effects stand with their p-values and verdicts; so do all with `long`.
    """
    parts = []
    for of_measure in _by_measure(studies):
        if len(of_measure) == 1 or long:
            parts += [_detailed(study, width, colour) for study in of_measure]
        else:
            parts.append(_effects(of_measure).text(width, colour))
        parts.append(_sources(of_measure).text(width, colour))
    notes = "\n".join(paragraph(note, width) for note in _notes(studies))
    return "\n\n".join([*parts, notes])


def factors_json(studies: Sequence[FactorStudy]) -> str:
    """One JSON object for each measure and collection, and for all collections together, at full precision."""
    return "\n".join(json.dumps(plain(study), ensure_ascii=False) for study in studies)


def factors_csv(studies: Sequence[FactorStudy]) -> str:
    """Comma-separated values at full precision: a line for each effect."""
    names = ["dataset", "measure", "count", *FactorEffect.__dataclass_fields__]
    lines = [
        [s.dataset, s.measure, s.count, *(_joined(v) for v in plain(one).values())]
        for s in studies
        for one in s.effects
    ]
    return csv_text([names, *lines])


def factors_latex(studies: Sequence[FactorStudy]) -> str:
    """LaTeX tabulars for the booktabs and amssymb packages: the effects of each measure, then shares of variance."""
    return "\n\n".join(table.latex() for table in _tables(studies))


def factors_markdown(studies: Sequence[FactorStudy]) -> str:
    """The same as Markdown tables."""
    return "\n\n".join(table.markdown() for table in _tables(studies))


def factors_html(studies: Sequence[FactorStudy]) -> str:
    """The same as HTML with its own style, for a notebook or a page."""
    return "\n".join(table.html() for table in _tables(studies))


def factors_page(studies: Sequence[FactorStudy]) -> str:
    """A whole page of HTML with the same tables."""
    return html_page("factors", _tables(studies))


def _tables(studies: Sequence[FactorStudy]) -> list[Table]:
    """Of each measure a table of effects and one of shares; the sentences stand below the last."""
    found = [table for one in _by_measure(studies) for table in (_effects(one), _sources(one))]
    last = found[-1]
    notes = (*last.notes, *_notes(studies))
    return [*found[:-1], Table(last.title, last.header, last.rows, notes, last.keys)]


def _by_measure(studies: Sequence[FactorStudy]) -> list[list[FactorStudy]]:
    return [list(of) for _, of in groupby(studies, key=lambda study: study.measure)]


def _effects(studies: Sequence[FactorStudy]) -> Table:
    """A line for each effect, a column for each collection; with p-values for one alone, or all together."""
    first, last = studies[0], studies[-1]
    labels = _labels(studies)
    rows = []
    for number, one in enumerate(first.effects):
        cells = [_difference(study.effects[number]) for study in studies]
        p = Cell(probability(last.effects[number].adjusted))
        rows.append((Cell(" × ".join(one.factors)), Cell(_levels(one, labels)), *cells, p))
    header = ("factor", "levels", *(s.dataset for s in studies), "adjusted p")
    return Table(_title(studies), header, tuple(rows), keys=2)


def _detailed(study: FactorStudy, width: int | None, colour: bool) -> str:
    """A line for each effect with everything that is known of it."""
    labels = _labels([study])
    head = [
        "factor",
        "levels",
        "mean",
        "other",
        "difference",
        "p",
        "adjusted",
        "Hedges' g",
        "won/lost/tied",
        "verdict",
    ]
    lines: list[list[str | Styled]] = [[*head]]
    for one in study.effects:
        cell = _difference(one)
        said = _verdict(one)
        lines.append(
            [
                " × ".join(one.factors),
                _levels(one, labels),
                *("" if mean is None else score(mean) for mean in (one.mean, one.other)),
                f"{cell.text} {cell.more}".rstrip(),
                probability(one.p),
                probability(one.adjusted),
                effect(one.effect),
                f"{one.won}/{one.lost}/{one.tied}",
                Styled(said, one.verdict) if colour and one.verdict in STYLES else said,
            ]
        )
    return f"{paragraph(_title([study]), width)}\n\n{columns(lines, len(head) - 3, width, keys=2, tail=1)}"


def _sources(studies: Sequence[FactorStudy]) -> Table:
    """A line for each source of variance, a column for each collection, with generalised eta squared behind."""
    by_name = [{source.source: source for source in study.sources} for study in studies]
    names = dict.fromkeys(name for of in reversed(by_name) for name in of)
    rows = [
        (Cell(name), *(_source(of[name]) if name in of else Cell("") for of in by_name)) for name in names
    ]
    title = f"{studies[0].measure}: shares of the variance of all scores"
    return Table(title, ("source", *(s.dataset for s in studies)), tuple(rows))


def _source(one: VarianceSource) -> Cell:
    if one.eta is None or one.adjusted is None:
        return Cell(share(one.share))
    return Cell(share(one.share), more=f"({one.eta:.3f}, p {probability(one.adjusted)})")


def _title(studies: Sequence[FactorStudy]) -> str:
    first, last = studies[0], studies[-1]
    design = " × ".join(f"{len(f.levels)} {f.name}" for f in first.factors)
    where = first.dataset if len(studies) == 1 else f"{len(last.collections) or len(studies)} collections"
    left = f", {last.left_out} left out that not all systems have" if last.left_out else ""
    return (
        f"{first.measure} on {where}: {first.systems} systems ({design}), {count(last.count)} queries{left}"
    )


def _labels(studies: Sequence[FactorStudy]) -> dict[str, str]:
    """What levels are called: systems among them by their short names."""
    found: dict[str, str] = {}
    for factor in studies[0].factors:
        found |= dict(zip(factor.levels, short_names(factor.levels), strict=True))
    return found


def _levels(one: FactorEffect, labels: dict[str, str]) -> str:
    sides = [
        f"{labels.get(level, level)} - {labels.get(against, against)}"
        for level, against in zip(one.levels, one.against, strict=True)
    ]
    return " by ".join(f"({side})" for side in sides) if len(sides) > 1 else sides[0]


def _difference(one: FactorEffect) -> Cell:
    interval = "" if one.low is None or one.high is None else f"[{change(one.low)}, {change(one.high)}]"
    return Cell(change(one.difference), verdict=one.verdict, more=interval)


def _verdict(one: FactorEffect) -> str:
    """The verdict in words: an interaction is larger or smaller, not better or worse."""
    if len(one.factors) == 1:
        return one.verdict
    return {"better": "larger", "worse": "smaller"}.get(one.verdict, one.verdict)


def _notes(studies: Sequence[FactorStudy]) -> list[str]:
    """How the numbers were made, and what was left out of the design."""
    if not studies:
        return ["nothing to analyse"]
    first = studies[0]
    m = first.method
    drawn = f", {m.draws:,} draws, seed {m.seed}" if TESTS.get(m.test).drawn else ""
    family = len(first.effects)
    chance = _two_level(studies) or "queries drawn within each collection"
    said = [
        "difference: the systems of the first level minus those of the other, averaged over all other factors; an "
        "interaction, how much larger the first difference is at the one level of the second factor than at the other",
        f"{100 * m.level:g}% intervals hold for all {family} effects together (bootstrap of the largest deviation, "
        f"{chance}); p: {m.test}{drawn}, adjusted over {family} ({m.correct}); level {m.alpha:g}",
        "behind a share: generalised eta squared, and the p-value of dealing levels at random within each query, "
        f"adjusted over factors and interactions of two ({m.correct})",
    ]
    if any(len(s.collections) > 1 for s in studies):
        said.append("collections weigh the same in differences, queries in shares of variance")
    if any(source.source == HIGHER for source in first.sources):
        said.append(f"{HIGHER}: of three factors or more; they count among no test")
    if few := [s for s in studies if s.effects and s.effects[0].low is None]:
        said.append(f"too few queries or collections for an interval: {', '.join(s.dataset for s in few)}; "
                    f"at least {fewest(m.level)} are needed")  # fmt: skip
    said += [f"too few {s.unit} for a verdict on so many effects: {s.dataset}; --factors NAMES looks at fewer"
             for s in studies if s.effects and not s.reach.possible]  # fmt: skip
    if any(s.geometric for s in studies):
        said.append("geometric means: differences are those of logarithms")
    if m.margin is not None:
        said.append(f"equivalent: the difference lies within ±{m.margin:g} (two one-sided t-tests)")
    return [*said, *dict.fromkeys(f"note: {note}" for study in studies for note in study.notes)]


def _two_level(studies: Sequence[FactorStudy]) -> str:
    asked = studies[0].method.interval == "two-level" and any(s.collections for s in studies)
    return "over all collections: collections drawn, and queries within each" if asked else ""


def _joined(value: object) -> object:
    return " × ".join(map(str, value)) if isinstance(value, list) else value
