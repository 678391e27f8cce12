"""MTEB: RetrievalEvaluator.evaluate, which its retrieval tasks call, and recall_cap, which some of them add."""

from __future__ import annotations

import importlib
from typing import Any

evaluator = importlib.import_module("mteb._evaluators.retrieval_evaluator").RetrievalEvaluator
recall_cap = importlib.import_module("mteb._evaluators.retrieval_metrics").recall_cap

PACKAGE = "mteb"
FOLLOWS = {"self_matches=drop", "missing=answered-only"}
HOLDS = {"unanswered"}

NAMES = {
    "nDCG": ("ndcg", "NDCG"),
    "AP": ("map", "MAP"),
    "R": ("recall", "Recall"),
    "P": ("precision", "P"),
    "RR": ("mrr", "MRR"),
    "Success": ("hit_rate", "HitRate"),
}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"mean": MTEB's mean of a measure on a test vector}, with "decimals": 5 if rounded; None if MTEB
    lacks the measure."""
    k, name = measure["k"], measure["measure"]
    if k is None or measure["settings"] or measure["condensed"]:
        return None
    grades, scores = vector["grades"], vector["scores"]
    if name == "R_cap":
        defined = [v for v in recall_cap(grades, scores, [k])[f"R_cap_at_{k}"] if v is not None]
        return {"mean": sum(defined) / len(defined)}
    if name not in NAMES:
        return None
    field, called = NAMES[name]
    drop = vector["conventions"]["self_matches"] == "drop"
    # The method does not look at its object, which would need a model.
    result = evaluator.evaluate(None, grades, scores, [k], ignore_identical_ids=drop)
    mean = getattr(result, field)[f"{called}@{k}"]
    return {"mean": mean} if name == "RR" else {"mean": mean, "decimals": 5}
