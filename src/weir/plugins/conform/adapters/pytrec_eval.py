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
    """What RelevanceEvaluator says of each query, and the mean by compute_aggregated_measure."""
    settings, k = measure["settings"], measure["k"]
    name = NAMES.get(measure["measure"], (None, None))[k is not None]
    if (
        name is None
        or not set(settings) <= {"rel", "recall", "beta"}
        or isinstance(settings.get("rel"), float)
    ):
        return None
    asked = name if k is None else f"{name}.{k}"
    answer = asked.replace(".", "_")
    if name == "iprec_at_recall":
        asked = f"{name}.{settings.get('recall', 0.1):.2f}"
        answer = asked.replace(".", "_", 1)
    elif name == "set_F":
        asked = f"{name}.{float(settings.get('beta', 1)) ** 2}"
    found = _asked(vector, asked, settings.get("rel", 1), measure["condensed"])
    per_query = {q: row[answer] for q, row in found.items()}
    if name.startswith("num_"):  # it adds counts up, as trec_eval prints them
        return {"per_query": per_query}
    return {
        "per_query": per_query,
        "mean": pytrec_eval.compute_aggregated_measure(name, list(per_query.values())),
    }


def _asked(vector: dict[str, Any], asked: str, rel: int, condensed: bool) -> Any:  # noqa: ANN401 - of an untyped package
    qrels = {q: dict(row) for q, row in vector["qrels"].items()}
    run = {q: {d: float(s) for d, s in row} for q, row in vector["run"].items()}
    flags = {"judged_docs_only_flag": True} if condensed else {}
    return pytrec_eval.RelevanceEvaluator(qrels, {asked}, relevance_level=rel, **flags).evaluate(run)
