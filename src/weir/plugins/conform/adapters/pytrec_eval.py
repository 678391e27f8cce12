"""pytrec_eval-terrier: trec_eval 9 in a module. The mean is its own, over the queries it returns."""

from __future__ import annotations

import importlib
from typing import Any

pytrec_eval = importlib.import_module("pytrec_eval")

PACKAGE = "pytrec_eval-terrier"
FOLLOWS = {"ties=trec9", "missing=answered-only"}
HOLDS = {"unanswered"}

# Name -> without a cut-off, with one; None where trec_eval has none.
NAMES = {
    "AP": ("map", "map_cut"),
    "IAP": ("11pt_avg", None),
    "IPrec": ("iprec_at_recall", None),
    "NumRel": ("num_rel", None),
    "NumRelRet": ("num_rel_ret", None),
    "NumRet": ("num_ret", None),
    "P": (None, "P"),
    "R": ("set_recall", "recall"),
    "RR": ("recip_rank", None),
    "R_cap": (None, "relative_P"),
    "Rprec": ("Rprec", None),
    "SetAP": ("set_map", None),
    "SetF": ("set_F", None),
    "SetP": ("set_P", None),
    "SetR": ("set_recall", None),
    "Success": (None, "success"),
    "bpref": ("bpref", None),
    "infAP": ("infAP", None),
    "nDCG": ("ndcg", "ndcg_cut"),
}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"per_query": pytrec_eval's values of a measure on a test vector, "mean": its aggregate, except
    of counts}; None if it lacks the measure."""
    settings, k = measure["settings"], measure["k"]
    name = NAMES.get(measure["measure"], (None, None))[k is not None]
    if (
        name is None
        or not set(settings) <= {"rel", "recall", "beta"}
        or isinstance(settings.get("rel"), float)
    ):
        return None
    request = name if k is None else f"{name}.{k}"
    answer = request.replace(".", "_")
    if name == "iprec_at_recall":
        request = f"{name}.{settings.get('recall', 0.1):.2f}"
        answer = request.replace(".", "_", 1)
    elif name == "set_F":
        request = f"{name}.{float(settings.get('beta', 1)) ** 2}"
    flags = {"judged_docs_only_flag": True} if measure["condensed"] else {}
    level = settings.get("rel", 1)
    evaluator = pytrec_eval.RelevanceEvaluator(vector["grades"], {request}, relevance_level=level, **flags)
    per_query = {q: row[answer] for q, row in evaluator.evaluate(vector["scores"]).items()}
    if name.startswith("num_"):  # it adds counts up, as trec_eval prints them
        return {"per_query": per_query}
    return {
        "per_query": per_query,
        "mean": pytrec_eval.compute_aggregated_measure(name, list(per_query.values())),
    }
