"""What fitting a fusion found, as people read it."""

from __future__ import annotations

from collections.abc import Mapping

from weir.core.rounding import count, score
from weir.core.scores import Scores
from weir.core.tables import columns, paragraph
from weir.report.compare import compare_text
from weir.stats.compare import compare_scores
from weir.systems.fusion.fit import Fit


def fit_text(found: Fit, width: int | None = None) -> str:
    """A line for each fold: what the other folds chose, its mean there, and its mean on the fold itself."""
    lines = [["settings chosen without the fold", "fold", "queries", f"{found.measure} there", "on the fold"]]
    for fold in found.folds:
        numbers = [str(fold.number), str(fold.queries), score(fold.fitted), score(fold.held_out)]
        lines.append([str(fold.chosen), *numbers])
    lines.append([str(found.chosen), "all", str(len(found.queries)), score(found.fitted), ""])
    tried = f"{count(found.tried)} settings tried; a mean where the settings were chosen says little of other queries"
    return f"{columns(lines, 4, width)}\n{paragraph(tried, width)}"


def standing_text(
    held_out: Scores, single: Mapping[str, Scores], dataset: str, width: int | None = None
) -> str:
    """The fusion on queries that its settings have not seen, beside the best of the runs by itself.

    held_out: scores of the cross-validated run; single: those of each run by name. The best is picked on these very
    queries, which favours it.
    """
    best = max(single, key=lambda name: float(single[name].mean_values()[0]))
    found = compare_scores({"fused, held out": held_out, best: single[best]}, dataset, best)
    said = f"{best}: the best of {len(single)} runs, picked on these queries, which favours it"
    return f"{compare_text(found, width)}\n{paragraph(said, width)}"
