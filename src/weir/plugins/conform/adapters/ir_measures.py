"""ir-measures: its default pipeline of providers, each with its own order of ties.

ERR and exponential gains run gdeval.pl, which takes only numbers as query identifiers.
"""

from __future__ import annotations

import importlib
from typing import Any

irm = importlib.import_module("ir_measures")

PACKAGE = "ir_measures"
FOLLOWS: set[str] = set()
HOLDS = {"twice ranked", "twice judged", "unanswered"}

NAMES = {
    "AP": "AP",
    "ERR": "ERR",
    "IPrec": "IPrec",
    "Judged": "Judged",
    "NumRel": "NumRel",
    "NumRelRet": "NumRelRet",
    "NumRet": "NumRet",
    "P": "P",
    "R": "R",
    "RBP": "RBP",
    "RR": "RR",
    "Rprec": "Rprec",
    "SetAP": "SetAP",
    "SetF": "SetF",
    "SetP": "SetP",
    "SetR": "SetR",
    "Success": "Success",
    "bpref": "Bpref",
    "infAP": "infAP",
    "nDCG": "nDCG",
}
# What it must be told; without `rel`, grades count in RBP.
DEFAULTS: dict[str, dict[str, Any]] = {"RBP": {"rel": 1, "p": 0.8}, "IPrec": {"recall": 0.1}}


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any] | None:
    """Return {"per_query": ir-measures' values of a measure on a test vector, "mean": its aggregate, except
    of counts}; None if it lacks the measure."""
    own = measure_object(measure)
    if own is None or not irm.DefaultPipeline.supports(own):
        return None
    qrels = [irm.Qrel(q, d, g) for q, row in vector["qrels"].items() for d, g in row]
    run = [irm.ScoredDoc(q, d, s) for q, row in vector["run"].items() for d, s in row]
    result = irm.calc([own], qrels, run)
    per_query = {m.query_id: m.value for m in result.per_query}
    answer: dict[str, Any] = {"per_query": per_query}
    if not measure["measure"].startswith("Num"):  # counts are added up
        answer["mean"] = result.aggregated[own]
    if measure["measure"] == "ERR" or measure["settings"].get("gain") == "exp":
        answer["decimals"] = 5  # of gdeval.pl
    return answer


def measure_object(measure: dict[str, Any]) -> Any:  # noqa: ANN401 - of an untyped package
    """Return ir-measures' object of a measure given as {measure, settings, k, condensed}; None if it has
    none."""
    name, settings = NAMES.get(measure["measure"]), dict(measure["settings"])
    if name == "R" and measure["k"] is None:
        name = "SetR"  # its R needs a cut-off
    if name is None or settings.pop("max_grade", 4) != 4 or settings.get("gain") == "scaled":
        return None
    if isinstance(settings.get("rel"), float) or "." in settings.get("gain", ""):
        return None  # its levels and tables are of whole grades
    settings = {**DEFAULTS.get(name, {}), **settings}
    settings |= {key: float(settings[key]) for key in ("p", "recall") if key in settings}
    gain = settings.pop("gain", "linear")
    if gain == "exp":
        settings["dcg"] = "exp-log2"
    elif gain != "linear":
        pairs = (pair.split("=") for pair in gain.split(","))
        settings["gains"] = {int(grade): int(worth) for grade, worth in pairs}
    if "beta" in settings:
        settings["beta"] = float(settings["beta"]) ** 2  # its parameter is the square
    if measure["condensed"]:
        settings["judged_only"] = True
    if measure["k"] is not None:
        settings["cutoff"] = measure["k"]
    of_name = getattr(irm, name)
    return of_name(**settings) if set(settings) <= set(of_name.SUPPORTED_PARAMS) else None
