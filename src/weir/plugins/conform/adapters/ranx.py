"""ranx: Qrels, Run and evaluate, as its documentation shows them."""

from __future__ import annotations

import importlib
from typing import Any

ranx = importlib.import_module("ranx")

PACKAGE = "ranx"
FOLLOWS: set[str] = set()
HOLDS = {"unanswered"}

NAMES = {
    "AP": "map",
    "DCG": "dcg",
    "F": "f1",
    "NumRelRet": "hits",
    "P": "precision",
    "R": "recall",
    "RBP": "rbp",
    "RR": "mrr",
    "Rprec": "r-precision",
    "SetF": "f1",
    "SetP": "precision",
    "SetR": "recall",
    "Success": "hit_rate",
    "bpref": "bpref",
    "nDCG": "ndcg",
}
WHOLE = {"SetF", "SetP", "SetR", "Rprec", "bpref", "RBP"}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"mean": ..., "per_query": ...} of a measure on a test vector, by ranx; None if ranx lacks the
    measure."""
    settings, k = dict(measure["settings"]), measure["k"]
    name = NAMES.get(measure["measure"])
    p, level = settings.pop("p", 0.8), settings.pop("rel", 1)
    steep = settings.get("gain") == "exp" and settings.pop("gain") == "exp"
    rest = settings or measure["condensed"] or (k is not None and measure["measure"] in WHOLE)
    if name is None or isinstance(level, float) or rest:
        return None
    name += ("_burges" if steep else "") + (f".{str(float(p))[2:]}" if name == "rbp" else "")
    name += (f"@{k}" if k is not None else "") + (f"-l{level}" if level != 1 else "")
    qrels, run = ranx.Qrels(vector["grades"]), ranx.Run(vector["scores"])
    mean = ranx.evaluate(qrels, run, name)
    return {"mean": mean, "per_query": dict(run.scores[name])}
