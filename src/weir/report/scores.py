"""Scores as people read them: the mean of each measure with its interval."""

from __future__ import annotations

from weir.core.scores import Scores
from weir.report.format import count, score
from weir.report.html import html_table, html_text
from weir.report.notes import score_notes
from weir.report.table import columns
from weir.stats.score_rows import rows

__all__ = ["scores_html", "scores_text"]


def scores_text(scores: Scores) -> str:
    """A line for each measure: mean, 95% bootstrap interval over queries, and over how many; then what to know."""
    return "\n".join([columns(_lines(scores), right=3), *score_notes(scores)])


def scores_html(scores: Scores) -> str:
    """The same as HTML."""
    notes = score_notes(scores)
    return html_table(_lines(scores), right=3) + (html_text("\n".join(notes)) if notes else "")


def _lines(scores: Scores) -> list[list[str]]:
    lines = [["measure", "mean", "95% interval", "queries"]]
    for row, counted in zip(rows(scores, "", ""), scores.counted().tolist(), strict=True):
        lines.append([row.measure, score(row.mean), f"{score(row.low)} to {score(row.high)}", count(counted)])
    return lines
