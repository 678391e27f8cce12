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
    """What evaluate says: the mean, and the values it stores in the run."""
    name = _name(measure)
    if name is None:
        return None
    qrels = ranx.Qrels({q: dict(row) for q, row in vector["qrels"].items()})
    run = ranx.Run({q: {d: float(s) for d, s in row} for q, row in vector["run"].items()})
    mean = ranx.evaluate(qrels, run, name)
    return {"mean": mean, "per_query": dict(run.scores[name])}


def _name(measure: dict[str, Any]) -> str | None:
    settings, k = dict(measure["settings"]), measure["k"]
    name = NAMES.get(measure["measure"])
    p, level = settings.pop("p", 0.8), settings.pop("rel", 1)
    steep = settings.get("gain") == "exp" and settings.pop("gain") == "exp"
    if (
        name is None
        or isinstance(level, float)
        or measure["condensed"]
        or settings
        or (k is not None and measure["measure"] in WHOLE)
    ):
        return None
    if steep:
        name += "_burges"
    if name == "rbp":
        name += "." + str(float(p))[2:]
    if k is not None:
        name += f"@{k}"
    return name if level == 1 else f"{name}-l{level}"
