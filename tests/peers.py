"""What trec_eval says: Weir's measures asked of pytrec_eval-terrier, at full precision.

pytrec_eval is trec_eval 9 in a module: it compares scores as 32-bit floats (Weir's ties="trec9") and leaves
out queries that the run does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pytrec_eval

from weir.measures import Measure, parse_measure

__all__ = ["by_trec_eval", "differences", "float32_ties", "has_peer"]

Judgments = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Mapping[str, float]]

# Weir's name: trec_eval's without a cut-off, and with one. None: trec_eval has no such measure.
NAMES: dict[str, tuple[str | None, str | None]] = {
    "AP": ("map", "map_cut"),
    "P": (None, "P"),
    "R": ("set_recall", "recall"),
    "R_cap": (None, "relative_P"),
    "Success": (None, "success"),
    "nDCG": ("ndcg", "ndcg_cut"),
}
# Those that know no cut-off in trec_eval (that is its option -M): the ranking itself is cut.
WHOLE = {
    "G": "G",
    "IAP": "11pt_avg",
    "IPrec": "iprec_at_recall",
    "NumNonrelRet": "num_nonrel_judged_ret",
    "NumRelRet": "num_rel_ret",
    "NumRet": "num_ret",
    "RR": "recip_rank",
    "RnDCG": "Rndcg",
    "Rprec": "Rprec",
    "SetAP": "set_map",
    "SetF": "set_F",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetR_cap": "set_relative_P",
    "Utility": "utility",
    "binG": "binG",
    "bpref": "bpref",
    "gmAP": "gm_map",
    "gmbpref": "gm_bpref",
    "infAP": "infAP",
    "nDCG_rel": "ndcg_rel",
}
GEOMETRIC = {"gm_map", "gm_bpref"}


def _name(measure: Measure) -> str | None:
    if measure.name in WHOLE:
        return WHOLE[measure.name]
    whole, cut = NAMES.get(measure.name, (None, None))
    return whole if measure.cutoff is None else cut


@dataclass(frozen=True)
class Asked:
    """What one evaluator of pytrec_eval is made for."""

    rel: int
    gain: str  # "linear", "exp" or a table: linear gains of other grades
    cut: int | None
    condensed: bool
    one_of: str  # pytrec_eval computes set_F with one parameter only

    @staticmethod
    def of(measure: Measure) -> tuple[Asked, str, str]:
        """The evaluator, what to ask it, and what it calls the answer."""
        name, settings = _name(measure), dict(measure.settings)
        if name is None:
            raise ValueError(f"trec_eval has no {measure}")
        cut = measure.cutoff if measure.name in WHOLE else None
        key = name if measure.cutoff is None or cut is not None else f"{name}.{measure.cutoff}"
        answer = key.replace(".", "_")
        if name == "iprec_at_recall":
            key = f"{name}.{settings.get('recall', 0.1):.2f}"
            answer = key.replace(".", "_", 1)
        elif "times" in settings:
            key = f"Rprec_mult.{settings['times']:.2f}"
            answer = key.replace(".", "_", 1)
        elif name == "set_F":
            key = f"{name}.{float(settings.get('beta', 1.0)) ** 2}"
        one_of = key if name == "set_F" else ""
        gain = str(settings.get("gain", "linear"))
        return Asked(int(settings.get("rel", 1)), gain, cut, measure.condensed, one_of), key, answer


def has_peer(measure: Measure | str) -> bool:
    """Whether trec_eval can be asked for this measure; it is version 9."""
    one = parse_measure(measure) if isinstance(measure, str) else measure
    others = {("rounding", "nearest"), ("discount", "original"), ("of", "best")}
    if one.name == "Utility" and {"hit", "noise", "miss"} & dict(one.settings).keys():
        return False  # pytrec_eval cannot tell it four weights
    # A gain is asked for as the grade that is worth it: a whole one, and none for 0, which is not relevant.
    gain = str(dict(one.settings).get("gain", "linear"))
    asked = "=" not in gain or not ("." in gain or gain.startswith("0=") or "e" in gain)
    return _name(one) is not None and asked and not others & set(one.settings)


def by_trec_eval(qrels: Judgments, run: Rankings, measures: Iterable[str]) -> dict[str, dict[str, float]]:
    """{measure: {query: value}} as pytrec_eval computes them, for the queries it returns."""
    asked: dict[Asked, list[tuple[str, str, str]]] = {}
    for text in measures:
        measure = parse_measure(text)
        group, key, answer = Asked.of(measure)
        asked.setdefault(group, []).append((str(measure), key, answer))
    found: dict[str, dict[str, float]] = {}
    for group, several in asked.items():
        judged = _worth(qrels, group.gain)
        ranked = _judged_only(run, qrels) if group.condensed and group.cut else run
        ranked = ranked if group.cut is None else _cut(ranked, group.cut)
        evaluator = pytrec_eval.RelevanceEvaluator(
            _plain(judged), {key for _, key, _ in several}, group.rel, judged_docs_only_flag=group.condensed
        )
        # An empty ranking makes it read memory it never wrote, and crash now and then.
        values = evaluator.evaluate({q: row for q, row in _plain(ranked).items() if row})
        for text, _, answer in several:
            # It divides by the number returned before it looks at it: 0 / 0 where the list is empty.
            found[text] = {q: 0.0 if math.isnan(row[answer]) else row[answer] for q, row in values.items()}
            if answer in GEOMETRIC:  # a query that the run does not answer has the least value, not 0
                found[text] = dict.fromkeys(qrels, math.log(0.00001)) | found[text]
    return found


def float32_ties(run: Rankings) -> bool:
    """Whether scores of one ranking are equal as 32-bit floats but not as they stand."""
    for ranking in run.values():
        scores = np.array(list(ranking.values()), np.float64)
        with np.errstate(over="ignore"):
            if len(np.unique(scores.astype(np.float32))) < len(np.unique(scores)):
                return True
    return False


def differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[int, float]:
    """How many queries were compared and the largest difference; a query they lack counts 0."""
    largest = max((abs(value - theirs.get(q, 0.0)) for q, value in ours.items()), default=0.0)
    return len(ours), largest


def _plain(table: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    return {q: dict(row) for q, row in table.items()}


def _worth(qrels: Judgments, gain: str) -> Judgments:
    """Other gains are linear gains of other grades."""
    if gain == "linear":
        return qrels
    table = dict(map(int, pair.split("=")) for pair in gain.split(",")) if gain != "exp" else {}

    def worth(grade: int) -> int:
        return table.get(grade, grade) if table else 2**grade - 1

    return {q: {d: worth(g) if g > 0 else g for d, g in row.items()} for q, row in qrels.items()}


def _judged_only(run: Rankings, qrels: Judgments) -> dict[str, dict[str, float]]:
    """Condensed before it is cut; trec_eval's -M cuts before -J condenses."""
    return {q: {d: s for d, s in row.items() if qrels.get(q, {}).get(d, -1) >= 0} for q, row in run.items()}


def _cut(run: Rankings, k: int) -> dict[str, dict[str, float]]:
    def order(item: tuple[str, float]) -> tuple[np.float32, bytes]:
        return np.float32(item[1]), item[0].encode("utf-8")

    return {q: dict(sorted(row.items(), key=order, reverse=True)[:k]) for q, row in run.items()}
