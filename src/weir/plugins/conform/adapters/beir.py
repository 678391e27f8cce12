"""BEIR: EvaluateRetrieval.evaluate and evaluate_custom; means only, rounded to five decimals."""

from __future__ import annotations

import importlib
from typing import Any

EvaluateRetrieval = importlib.import_module("beir.retrieval.evaluation").EvaluateRetrieval

PACKAGE = "beir"
FOLLOWS = {"self_matches=drop", "missing=answered-only"}
HOLDS = {"unanswered"}

PLAIN = {"nDCG": (0, "NDCG"), "AP": (1, "MAP"), "R": (2, "Recall"), "P": (3, "P")}
CUSTOM = {
    "RR": ("mrr", "MRR"),
    "R_cap": ("recall_cap", "R_cap"),
    "Hole": ("hole", "Hole"),
    "Success": ("accuracy", "Accuracy"),
}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"mean": BEIR's mean of a measure on a test vector, "decimals": 5}; None if BEIR lacks the
    measure."""
    k, name = measure["k"], measure["measure"]
    if k is None or measure["settings"] or measure["condensed"]:
        return None
    grades, scores = vector["grades"], vector["scores"]
    if name in PLAIN:
        place, called = PLAIN[name]
        mean = EvaluateRetrieval.evaluate(grades, scores, [k])[place][f"{called}@{k}"]
    elif name in CUSTOM:
        metric, called = CUSTOM[name]
        mean = EvaluateRetrieval.evaluate_custom(grades, scores, [k], metric)[f"{called}@{k}"]
    else:
        return None
    return {"mean": mean, "decimals": 5}
