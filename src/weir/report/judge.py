"""What a judge's labels are and how far to trust them, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import count, money, score, share
from weir.core.tables import columns, paragraph
from weir.labels.judge_report import JudgeReport, LabelConsistency, ProbeResult


def judge_text(found: Sequence[JudgeReport], width: int | None = None) -> str:
    """Labels, verdicts, self-consistency, probes, agreement with people, cost and warnings of each judging."""
    return "\n\n".join(_one(one, width) for one in found)


def judge_json(found: Sequence[JudgeReport]) -> str:
    """One JSON object for each judging, at full precision; what is undefined is null."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)


def _one(found: JudgeReport, width: int | None) -> str:
    by = f"{found.model} with {found.prompt}-{found.digest}"
    said = [
        f"{count(found.labelled)} of {count(found.pairs)} pairs of {count(found.queries)} queries are labelled by {by}",
        "grades: " + (", ".join(f"{grade:g}: {count(n)}" for grade, n in found.grades) or "none"),
        "answers: " + (", ".join(f"{count(n)} {kind}" for kind, n in found.verdicts) or "none"),
    ]
    if found.unanswered:
        said[-1] += f"; {count(found.unanswered)} not asked yet"
    if found.tied:
        said.append(f"ties: {count(found.tied)} pairs have several grades equally often; the lowest counts")
    if found.consistency is not None:
        said.append(f"judged twice: {_consistency(found.consistency)}")
    lines = "\n".join(paragraph(one, width) for one in said)
    rest = [] if found.people is None else [f"with people: {_consistency(found.people)}"]
    rest.append(_cost(found))
    rest += [f"warning: {one}" for one in found.warnings]
    parts = [lines, _probes(found.probes, width), "\n".join(paragraph(one, width) for one in rest)]
    return "\n\n".join(part for part in parts if part)


def _consistency(found: LabelConsistency) -> str:
    bounds = f"[{share(found.equal_low)}, {share(found.equal_high)}]"
    kappa = "kappa undefined, as all labels are one"
    if not math.isnan(found.kappa):
        kappa = f"kappa {score(found.kappa)} [{score(found.kappa_low)}, {score(found.kappa_high)}]"
    what = "the same grade" if found.by == "grade" else f"the same, {found.by},"
    pairs = f"{count(found.pairs)} pairs" if found.pairs > 1 else "one pair"
    return f"{what} for {share(found.equal)} {bounds} of {pairs}, {kappa}"


def _probes(found: Sequence[ProbeResult], width: int | None) -> str:
    if not any(probe.pairs + probe.unread for probe in found):
        return ""
    rows = [["probe", "pairs", "grade rose", "95% interval", "fell", "no grade"]]
    for probe in found:
        known = probe.pairs > 0
        bounds = f"[{share(probe.low)}, {share(probe.high)}]" if known else "-"
        rose = share(probe.share) if known else "-"
        rows.append([probe.probe, count(probe.pairs), rose, bounds, count(probe.fell), count(probe.unread)])
    return columns(rows, width=width)


def _cost(found: JudgeReport) -> str:
    priced = "" if found.dollars is None else f", {money(found.dollars)} dollars"
    tokens = f"{count(found.tokens)} tokens" if found.tokens else "tokens not counted"
    return f"cost: {count(found.answers)} answers, {tokens}{priced}"
