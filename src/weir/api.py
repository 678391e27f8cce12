"""The public face: what `import weir` offers, taking what people already hold."""

from __future__ import annotations

from collections.abc import Iterable

from weir.core.scores import Scores
from weir.io.frames import qrels_from, run_from
from weir.measures import DEFAULT_MEASURES, Measure
from weir.measures import evaluate as evaluate_values

__all__ = ["evaluate"]


def evaluate(run: object, qrels: object, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Score a ranking against judgments: one value for each measure and judged query.

    run, qrels: Run and Qrels, dicts of dicts, pandas, polars or Arrow frames, or paths of files. Every judged
    query counts; one that the run does not answer scores 0. Raises the WeirErrors of the parts.
    """
    return evaluate_values(run_from(run), qrels_from(qrels), measures)
