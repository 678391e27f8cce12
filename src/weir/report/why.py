"""Why two numbers differ, as people read it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.rounding import change, count, score
from weir.core.tables import columns, paragraph
from weir.experiment.why import Effect, Why

WIDEST = 44


def why_text(why: Why, width: int | None = None) -> str:
    """The gap, the settings that differ, what scoring again says of it, and a conclusion."""
    second = f"{_mean(why, why.second_mean)} {why.second}" + (" (published)" if why.published else "")
    parts = [
        paragraph(
            f"{why.measure}: {score(why.first_mean)} {why.first}, {second}: gap {change(why.gap)}", width
        ),
        _settings(why, width),
    ]
    if (why.effects or why.without) and not why.agree:
        parts.append(_effects(why, width))
    parts.append("\n".join(paragraph(line, width) for line in _conclusion(why)))
    return "\n\n".join(part for part in parts if part)


def why_json(why: Why) -> str:
    """One JSON object at full precision; undefined numbers are null."""
    fields = asdict(why) | {"gap": why.gap, "unexplained": why.unexplained}
    return json.dumps(_defined(fields), ensure_ascii=False)


def _settings(why: Why, width: int | None) -> str:
    if not why.settings:
        return "no setting differs"
    lines = [["setting that differs", "first", "second", "likely effect"]]
    lines += [[d.setting, _short(d.first), _short(d.second), f"{d.weight:3g}  {d.why}"] for d in why.settings]
    return columns(lines, width=width)


def _effects(why: Why, width: int | None) -> str:
    """Changes that leave less of the gap than there is, or all of them where there are two rankings."""
    near = [e for e in why.effects if why.published is None or e.closes or abs(e.gap) < abs(why.gap)]
    far = _kinds([e.kind for e in why.effects if e not in near], [e.kind for e in near])
    nothing = _kinds([w.partition(" (")[0] for w in why.without], [e.kind for e in why.effects])
    parts = []
    if near:
        lines = [["scored again, each change alone", "first", "second", "gap left", "explains"]]
        lines += [_effect(why, e) for e in near]
        parts.append(columns(lines, 4, width))
    if far:
        parts.append(paragraph(f"further away: {far}", width))
    if nothing:
        parts.append(paragraph(f"no effect: {nothing}", width))
    return "\n".join(parts)


def _kinds(kinds: Sequence[str], besides: Sequence[str]) -> str:
    """The kinds of change that are not among others, each once."""
    return ", ".join(k for k in dict.fromkeys(kinds) if k not in besides)


def _effect(why: Why, e: Effect) -> list[str]:
    explains = "-" if math.isnan(e.explains) else f"{e.explains:.0%}"
    mark = " *" if e.documented else ""
    return [f"{e.kind}: {e.change}{mark}", score(e.first), _mean(why, e.second), change(e.gap), explains]


def _conclusion(why: Why) -> Sequence[str]:
    lines = [_verdict(why)]
    if why.shared:
        lines.append(
            f"rankings: {count(why.same_top)} of {count(why.shared)} queries that both answer begin with the same "
            "ten documents"
        )
    if any(e.documented for e in why.effects) and not why.agree:
        lines.append("*: the publisher is known to score so")
    if why.settings:
        lines.append("likely effect: 100 most; an order from experience, measured only where it says so")
    if why.published is not None:
        note = f" ({why.published.note})" if why.published.note else ""
        lines.append(f"source: {why.published.source}{note}")
    return [*lines, *(f"note: {note}" for note in why.notes)]


def _verdict(why: Why) -> str:
    closing = [e for e in why.effects if e.closes]
    if why.agree:
        same = "the published score, to the last printed digit" if why.published else "the same number"
        return f"no gap: {same}"
    if closing:
        best = closing[0]
        left = f"; {change(best.gap)} is left" + (
            ", less than the printed digits show" if why.published else ""
        )
        return f"explained: {best.kind}: with {best.change} the gap closes{left}"
    if not (why.effects or why.without):
        return f"unexplained: {change(why.gap)}; only the settings can be compared"
    if why.published is not None:
        nearest = f"; the nearest change leaves {change(why.unexplained)}" if why.effects else ""
        return f"not explained by scoring{nearest}: the rankings differ, or a rule that is not known here"
    gaps = [why.gap, *(e.gap for e in why.effects)]
    return (
        f"no change of scoring closes the gap: it lies between {change(min(gaps))} and {change(max(gaps))}, "
        "so the rankings differ: see the settings"
    )


def _mean(why: Why, value: float) -> str:
    return why.published.printed if why.published is not None else score(value)


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _defined(value: object) -> object:
    """The same with None for undefined numbers, as JSON has no NaN."""
    if isinstance(value, dict):
        return {k: _defined(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_defined(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
