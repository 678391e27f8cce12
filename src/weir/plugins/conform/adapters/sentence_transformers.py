"""sentence-transformers: InformationRetrievalEvaluator.compute_metrics on given rankings; relevant is a set."""

from __future__ import annotations

import importlib
from typing import Any

evaluation = importlib.import_module("sentence_transformers.sentence_transformer.evaluation")

PACKAGE = "sentence-transformers"
FOLLOWS: set[str] = set()
HOLDS = {"twice ranked", "unanswered"}

NAMES = {
    "AP": "map",
    "P": "precision",
    "R": "recall",
    "RR": "mrr",
    "Success": "accuracy",
    "nDCG": "ndcg",
}
EVERYTHING = 1_000_000


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"mean": ...} of a measure on a test vector, by InformationRetrievalEvaluator; None if it lacks
    the measure."""
    name = NAMES.get(measure["measure"])
    if name is None or measure["settings"] or measure["condensed"]:
        return None
    k = measure["k"] or EVERYTHING
    relevant = {q: {d for d, g in row if g >= 1} for q, row in vector["qrels"].items()}
    corpus = {d: d for row in vector["run"].values() for d, _ in row}
    evaluator = evaluation.InformationRetrievalEvaluator(
        {q: q for q in vector["qrels"]},
        corpus,
        relevant,
        mrr_at_k=[k],
        ndcg_at_k=[k],
        accuracy_at_k=[k],
        precision_recall_at_k=[k],
        map_at_k=[k],
        write_csv=False,
    )
    ranked = [
        [{"corpus_id": d, "score": s} for d, s in vector["run"].get(q, [])] for q in evaluator.queries_ids
    ]
    return {"mean": evaluator.compute_metrics(ranked)[f"{name}@k"][k]}
