"""Scores corrected by few human judgments, and what people should judge next, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import change, count, probability, score, share
from weir.core.tables import columns, paragraph
from weir.labels.estimates import CorrectedScore, QueryPlan
from weir.labels.sampling import Estimate

WHOLE_SHARE = 0.95
"""The share of documents judged by people below which a part of them may have been drawn."""


def estimate_text(found: Sequence[CorrectedScore], width: int | None = None) -> str:
    """A line for each system and each difference: by people, by the model, corrected; what the columns rest on."""
    if not found:
        return ""
    parts = [columns(_systems(found), width=width)]
    if any(one.differences for one in found):
        parts.append(columns(_differences(found), width=width))
    parts.append(paragraph(_said(found), width))
    parts += [paragraph(note, width) for note in _notes(found)]
    return "\n\n".join(parts)


def plan_text(plan: QueryPlan, width: int | None = None) -> str:
    """The queries to judge next by stratum, and how far that narrows the widest interval."""
    lines = [["stratum", "queries", "judged", "next", "weight then"]]
    lines += [
        [one.stratum, count(one.queries), count(one.judged), count(one.more), f"{one.weight:.2f}"]
        for one in plan.strata
    ]
    said = (
        f"judging {count(len(plan.queries))} more queries ({count(plan.pairs)} pairs) is expected to narrow "
        f"{plan.measure} from ±{score(plan.now)} to ±{score(plan.then)}, {score(_narrowing(plan))} for 100 pairs; "
        f"with every query judged it is ±{score(plan.best)}"
    )
    parts = [columns(lines, right=4, width=width), paragraph(said, width)]
    if not math.isnan(plan.width):
        parts.append(paragraph(_for_width(plan), width))
    return "\n\n".join(parts)


def estimate_json(found: Sequence[CorrectedScore | QueryPlan]) -> str:
    """One JSON object for each system, and for what to judge next, at full precision."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)


def _systems(found: Sequence[CorrectedScore]) -> list[list[str]]:
    by_errors = any(one.rogan_gladen is not None for one in found)
    certain = any(not math.isnan(one.least) for one in found)
    head = ["system", f"{found[0].measure} by people", "by the model", "corrected", "weight"]
    lines = [[*head, *["Rogan-Gladen"] * by_errors, *["certain"] * certain]]
    for one in found:
        line = [one.system, _interval(one.human), score(one.model), _interval(one.corrected)]
        line.append(f"{one.corrected.weight:.2f}")
        if by_errors:
            line.append("-" if one.rogan_gladen is None else _interval(one.rogan_gladen))
        lines.append([*line, *[f"{score(one.least)} to {score(one.most)}"] * certain])
    return lines


def _differences(found: Sequence[CorrectedScore]) -> list[list[str]]:
    several = sum(len(one.differences) for one in found) > 1
    lines = [["difference", "by people", "by the model", "corrected", "p", *["p (Holm)"] * several]]
    for one in found:
        lines += [
            [
                f"{other.other} - {one.system}",
                _interval(other.human, signed=True),
                change(other.model),
                _interval(other.corrected, signed=True),
                probability(other.p),
                *[probability(other.adjusted)] * several,
            ]
            for other in one.differences
        ]
    return lines


def _said(found: Sequence[CorrectedScore]) -> str:
    first = found[0]
    by_errors = any(one.rogan_gladen is not None for one in found)
    certain = any(not math.isnan(one.least) for one in found)
    return (
        f"people judged {count(first.human_queries)} of {count(first.model_queries)} queries ({first.drawn}), "
        f"{_of_documents(min(one.judged for one in found))} that are scored there; intervals of 95% "
        "over queries; weight: how much the model's labels count (PPI++)"
        + (
            "; Rogan-Gladen: by the model's sensitivity and specificity, if it errs alike everywhere"
            if by_errors
            else ""
        )
        + ("; certain: whatever the pairs are that people have not judged" if certain else "")
    )


def _of_documents(judged: float) -> str:
    return "all documents" if judged == 1 else f"{share(judged)} or more of the documents"


def _notes(found: Sequence[CorrectedScore]) -> list[str]:
    first, notes = found[0], []
    if first.left_out:
        notes.append(
            f"note: the model did not judge {count(first.left_out)} queries that people did; they are left out"
        )
    refused = [one for one in found if one.rogan_gladen_refused]
    if refused:
        names = ", ".join(one.system for one in refused)
        notes.append(f"note: no Rogan-Gladen for {names}: {refused[0].rogan_gladen_refused}")
    judged = min(one.judged for one in found)
    if judged < WHOLE_SHARE and "part" not in first.drawn:
        notes.append(
            f"note: people judged {share(judged)} of the documents that are scored in their queries, and the others "
            "count as not relevant; if they judged a random part of each query, say so: --pairs"
        )
    return notes


def _narrowing(plan: QueryPlan) -> float:
    return 100 * (plan.now - plan.then) / plan.pairs if plan.pairs else math.nan


def _for_width(plan: QueryPlan) -> str:
    if plan.needed < 0:
        return (
            f"±{plan.width:g} is out of reach: with all queries judged it is ±{score(plan.best)}; that takes more "
            "queries in the collection"
        )
    return f"±{plan.width:g} takes {count(plan.needed)} more queries"


def _interval(found: Estimate, signed: bool = False) -> str:
    shown = change if signed else score
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"
