"""Numbers of ranx, ir-measures and BEIR under their own names: tests/golden/aliases.json.

    .venv/peers/bin/python scripts/make_golden_aliases.py     # an environment with ranx, ir_measures and beir

The grades are 0 to 2 and no scores are tied, so that only definitions can differ.
"""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "tests" / "golden" / "aliases.json"
RANX = [
    "ndcg@10",
    "ndcg",
    "map@5",
    "map",
    "mrr",
    "mrr@3",
    "hit_rate@5",
    "precision@5",
    "precision",
    "recall@10",
    "recall",
    "r-precision",
    "f1",
    "f1@10",
    "ndcg_burges@10",
    "dcg@10",
    "dcg",
    "dcg_burges@5",
    "dcg_burges",
    "map@10-l2",
    "precision@5-l2",
    "recall@10-l2",
    "mrr-l2",
    "hit_rate@3-l2",
    "f1@10-l2",
]
IR_MEASURES = [
    "nDCG@10",
    "NDCG",
    "P(judged_only=True)@5",
    "IPrec@0.3",
    "MAP(rel=2)@10",
    "MAP",
    "MRR@5",
    "Judged@10",
    "Success@5",
    "SetF",
    "SetP",
    "SetR",
    "Bpref",
    "Rprec",
    "R(judged_only=True)@10",
    "infAP",
    "NumRet",
    "NumRel",
    "NumRelRet",
    "SetAP",
    "nDCG(judged_only=True)@10",
]


def data() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgments and a run of 12 queries."""
    chosen = random.Random(7)
    qrels = {
        f"q{i}": {"d0": 1} | {f"d{j}": chosen.choice([0, 1, 1, 2]) for j in chosen.sample(range(1, 40), 8)}
        for i in range(12)
    }
    run = {
        f"q{i}": {f"d{j}": float(24 - n) for n, j in enumerate(chosen.sample(range(40), 25)[::-1])}
        for i in range(12)
    }
    return qrels, run


def main() -> None:
    qrels, run = data()
    ranx, irm = importlib.import_module("ranx"), importlib.import_module("ir_measures")
    beir = importlib.import_module("beir.retrieval.evaluation").EvaluateRetrieval
    held, ranked = ranx.Qrels(qrels), ranx.Run(run)
    found: dict[str, dict[str, Any]] = {"ranx": {}, "ir-measures": {}, "beir": {}}
    for name in RANX:
        ranx.evaluate(held, ranked, name)
        found["ranx"][name] = {q: float(v) for q, v in ranked.scores[name].items()}
    for name in IR_MEASURES:
        values = irm.iter_calc([irm.parse_measure(name)], qrels, run)
        found["ir-measures"][name] = {m.query_id: float(m.value) for m in values}
    for means in beir.evaluate(qrels, run, [1, 10], ignore_identical_ids=False):
        found["beir"] |= means
    for metric in ("mrr", "recall_cap"):
        found["beir"] |= beir.evaluate_custom(qrels, run, [10], metric=metric)
    text = json.dumps({"qrels": qrels, "run": run, "values": found}, indent=None)
    OUT.write_text(text.replace('}, "', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
