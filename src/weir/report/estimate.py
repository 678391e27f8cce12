"""Scores corrected by few human judgments, as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from weir.core.plain_values import plain
from weir.core.rounding import count, score, share
from weir.report.terminal_layout import columns, paragraph
from weir.stats.corrected_scores import CorrectedScore
from weir.stats.prediction_powered import Estimate

__all__ = ["estimate_json", "estimate_text"]


def estimate_text(found: Sequence[CorrectedScore], width: int | None = None) -> str:
    """A line for each system: by people alone, by the model alone, and corrected; what the columns rest on."""
    if not found:
        return ""
    first = found[0]
    lines = [["system", f"{first.measure} by people", "by the model", "corrected", "weight"]]
    lines += [
        [
            one.system,
            _interval(one.human),
            score(one.model),
            _interval(one.corrected),
            f"{one.corrected.weight:.2f}",
        ]
        for one in found
    ]
    said = (
        f"people judged {count(first.human_queries)} of {count(first.model_queries)} queries, "
        f"{share(min(one.judged for one in found))} or more of the documents that are scored there; intervals of 95% "
        "over queries; weight: how much the model's labels count (PPI++)"
    )
    return columns(lines, width=width) + "\n\n" + paragraph(said, width)


def estimate_json(found: Sequence[CorrectedScore]) -> str:
    """One JSON object for each system, at full precision."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)


def _interval(found: Estimate) -> str:
    return f"{score(found.value)} [{score(found.low)}, {score(found.high)}]"
