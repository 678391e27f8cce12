"""scikit-learn: ndcg_score and dcg_score over all documents returned or judged.

A document that was not returned gets a score below all others, the same for all.
"""

from __future__ import annotations

import importlib
from typing import Any

metrics = importlib.import_module("sklearn.metrics")

PACKAGE = "scikit-learn"
FOLLOWS = {"ties=expected"}  # ignore_ties=False, its default
HOLDS: set[str] = set()


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"per_query": ...} of a measure on a test vector's judged queries, by scikit-learn; None if it
    lacks the measure."""
    score = {"nDCG": metrics.ndcg_score, "DCG": metrics.dcg_score}.get(measure["measure"])
    if score is None or measure["settings"] or measure["condensed"]:
        return None
    values = {}
    for query, judged in vector["qrels"].items():
        if judged:
            scores, grades = dict(vector["run"][query]), dict(judged)
            lowest = min(scores.values()) - 1
            names = [*scores, *(d for d in grades if d not in scores)]
            row = [scores.get(d, lowest) for d in names]
            values[query] = score([[grades.get(d, 0) for d in names]], [row], k=measure["k"])
    return {"per_query": values}
