"""Names of measures in other tools; a name that its tool defines otherwise than Weir is refused with the
reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from weir.errors import BadValue, nearest_names

# Looked up in lower case, without blanks, `_` and `-`.
# Names with a rank to cut at, such as ndcg_cut_10, recall@100, map_at_10 or P.5.
CUT = {
    "accuracy": "Success@{}",
    "contextrecall": "NuggetRecall@{}",
    "contextualprecision": "ContextPrecision@{}",
    "contextualrecall": "NuggetRecall@{}",
    "dcgburges": "DCG(gain='exp')@{}",
    "f1": "F@{}",
    "hit": "Success@{}",
    "hitrate": "Success@{}",
    "hitratio": "Success@{}",
    "hr": "Success@{}",
    "map": "AP@{}",
    "mapcut": "AP@{}",
    "mapia": "AP_IA@{}",
    "mrr": "RR@{}",
    "ndcgburges": "nDCG(gain='exp')@{}",
    "ndcgcut": "nDCG@{}",
    "precision": "P@{}",
    "recall": "R@{}",
    "recallcap": "R_cap@{}",
    "recallcapped": "R_cap@{}",
    "reciprank": "RR@{}",
    "reciprocalrank": "RR@{}",
    "relativep": "R_cap@{}",
    "subtopicrecall": "StRecall@{}",
    "topkaccuracy": "Success@{}",
    "αdcg": "alpha_DCG@{}",
    "αndcg": "alpha_nDCG@{}",
}
# Names without one.
WHOLE = {
    "11ptavg": "IAP",
    "averageprecision": "AP",
    "contextrecall": "NuggetRecall",
    "contextualprecision": "ContextPrecision",
    "contextualrecall": "NuggetRecall",
    "dcgburges": "DCG(gain='exp')",
    "f1": "SetF",
    "gmmap": "gmAP",
    "idbasedcontextprecision": "SetP",
    "idbasedcontextrecall": "R",
    "map": "AP",
    "mapia": "AP_IA",
    "meanaverageprecision": "AP",
    "meanreciprocalrank": "RR",
    "mrr": "RR",
    "ndcgburges": "nDCG(gain='exp')",
    "numnonreljudgedret": "NumNonrelRet",
    "precision": "SetP",
    "recall": "R",
    "reciprank": "RR",
    "reciprocalrank": "RR",
    "rprecision": "Rprec",
    "setmap": "SetAP",
    "setrecall": "SetR",
    "setrelativep": "SetR_cap",
    "setrelp": "SetR_cap",
    "αndcg": "alpha_nDCG",
}
# Names with a number that is no rank, such as iprec_at_recall_0.10.
VALUE = {
    "iprec": "IPrec(recall={})",
    "iprecatrecall": "IPrec(recall={})",
    "rprecmult": "Rprec(times={})",
}
# Our measures with a cut-off whose names others give to another one.
ALIKE = {
    "Accuracy": "compares pairs of documents; what BEIR and sentence-transformers call so is Success@{}",
    "Hole": "counts documents that their query has no judgment for; BEIR's counts those that no query has one for: "
    "weir audit has that of the first 10, in JSON",
}
REFUSED = {
    "hits": "ranx counts the relevant documents (here NumRelRet), other tools ask whether there is one (here Success)",
    "nauc.*": "it is no measure but the area under an abstention curve; see weir eval --abstention",
    "numq": "it counts queries; every table says over how many a mean is",
    "prefs.*": "preferences between documents are not judged here",
    "rbp[@.]": "ranx gains by the grade itself; for binary judgments write RBP(p=0.95), a rank to cut at RBP@95",
    "relstring": "it is a text, no number",
    "runid": "it is a text, no number",
}
_SIMILARITIES = re.compile(
    r"(?:cosine|cos_sim|dot|dot_score|euclidean|manhattan|max)[_-](?=[a-z])", re.IGNORECASE
)
_NUMBERED = re.compile(r"(.*?[^\W\d].*?)(?:[_@. -]at[_@. -]?|[_@. -])?(\d+(?:\.\d+)?|\.\d+)", re.IGNORECASE)
_LEVEL = re.compile(r"(.+)-l(\d+)", re.IGNORECASE)  # ranx's least relevant grade, as in map@10-l2


def canonical(text: str, ours: Iterable[str]) -> str | None:
    """Return Weir's text of the measure that another tool names, such as "map@10-l2"; None if unknown.

    ours: Weir's names.

    Raises BadValue if the tool computes it otherwise, or names no measure.
    """
    level = _LEVEL.fullmatch(text.strip())
    plain = level[1] if level else text.strip()
    if not plain.isprintable():
        return None
    short = _SIMILARITIES.sub("", plain, count=1) if _SIMILARITIES.match(plain) else plain
    measure = _measure_of(short, {_folded(name): name for name in ours})
    if measure is not None and short != plain and measure.startswith("AP@"):
        raise BadValue(
            f"{text}: sentence-transformers divides by the relevant documents or k, whichever is less; {measure} "
            "divides by all of them"
        )
    if measure is None or level is None:
        return measure
    if measure == "bpref":
        raise BadValue(
            f"{text}: ranx counts documents below the level otherwise than trec_eval; bpref(rel={level[2]}) is its"
        )
    return with_setting(measure, f"rel={level[2]}")


def translated(
    name: str, settings: dict[str, object], cut: str | None
) -> tuple[dict[str, object], str | None, bool]:
    """Return (settings, cut-off, condensed) in Weir's terms of a measure with ir-measures' settings.

    cut: text after "@"; for IPrec it becomes the setting `recall`.
    condensed: True to remove unjudged documents first (judged_only=True).
    """
    # nDCG(dcg='exp-log2') is nDCG(gain='exp'), nDCG(gains={1: 3}) is nDCG(gain='1=3'),
    # P(judged_only=True)@5 is
    # condensed(P@5), IPrec@0.1 is IPrec(recall=0.1).
    ours = dict(settings)
    condensed = ours.pop("judged_only", False) is True
    if "dcg" in ours and name in ("nDCG", "DCG"):
        ours["gain"] = {"log2": "linear", "exp-log2": "exp"}.get(str(ours["dcg"]), ours["dcg"])
        del ours["dcg"]
    if isinstance(ours.get("gains"), dict) and name in ("nDCG", "DCG"):
        ours["gain"] = ",".join(f"{grade}={gain}" for grade, gain in ours.pop("gains").items())  # type: ignore[attr-defined]  # a mapping, as was just asked
    if name == "IPrec" and cut is not None and re.fullmatch(r"0?\.\d+|1\.0+", cut):
        ours["recall"], cut = float(cut), None
    return ours, cut, condensed


def suggestion(text: str, ours: Iterable[str]) -> str | None:
    """Return Weir's text of the measure that a mistyped name probably means; None if none is similar.

    ours: Weir's names.
    """
    match = _NUMBERED.fullmatch(text.strip())
    name = _folded(match[1] if match else text)
    names = {_folded(one): one for one in ours}
    near = nearest_names(name, [*names, *CUT, *WHOLE, *VALUE], 1)
    if not near:
        return None
    texts = [*_written(near[0], match[2] if match else None, names), *_written(near[0], None, names)]
    return texts[0] if texts else CUT.get(near[0], "IPrec").format(10)


def with_setting(text: str, setting: str) -> str:
    """Return a measure's text with a setting added: "AP@10" and "rel=2" give "AP(rel=2)@10"."""
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?(@\d+)?", text)
    assert match is not None  # the tables above hold nothing else
    inside = ", ".join(part for part in (match[2], setting) if part)
    return f"{match[1]}({inside}){match[3] or ''}"


def _measure_of(text: str, ours: dict[str, str]) -> str | None:
    folded = _folded(text)
    refused = next(
        (why for name, why in REFUSED.items() if re.fullmatch(rf"{name}(?:[@.]?\d+)?", folded)), None
    )
    if refused is not None:
        number = re.search(r"\d+$", folded)
        raise BadValue(f"{text}: {refused.replace('95', number[0]) if number else refused}")
    for one in _written(folded, None, ours):
        return one
    match = _NUMBERED.fullmatch(text)
    return next(_written(_folded(match[1]), match[2], ours), None) if match else None


def _written(folded: str, number: str | None, ours: dict[str, str]) -> Iterator[str]:
    if number is None:
        if folded in ours or folded in WHOLE:
            yield ours.get(folded) or WHOLE[folded]
        return
    if folded in VALUE and "." in number:
        yield VALUE[folded].format(float(number))
    if number.isdigit() and int(number) > 0 and (folded in ours or folded in CUT):
        yield CUT.get(folded, f"{ours.get(folded)}@{{}}").format(int(number))


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
