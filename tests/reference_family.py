"""The rest of the family of measures, slowly: plain loops over lists, exact fractions throughout.

Written from the papers' and programs' definitions, not from Weir's code; `tests/reference.py` holds the
first ten. A ranking is a list of documents, `grades` what the query's judgments say; a document that is not
in it, or has a grade below 0, was not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

Grades = Mapping[str, int]


def _relevant(grades: Grades, rel: int) -> list[str]:
    return [document for document in grades if grades[document] >= rel]


def _hits(ranked: list[str], grades: Grades, k: int | None, rel: int) -> list[str]:
    relevant = set(_relevant(grades, rel))
    return [document for document in ranked[:k] if document in relevant]


def _over(a: int | Fraction, b: int | Fraction) -> Fraction:
    return Fraction(a) / b if b else Fraction(0)


def set_precision(ranked, grades, k, rel=1):
    return _over(len(_hits(ranked, grades, k, rel)), len(ranked[:k]))


def set_recall(ranked, grades, k, rel=1):
    return _over(len(_hits(ranked, grades, k, rel)), len(_relevant(grades, rel)))


def _effectiveness(precision, recall, beta):
    """van Rijsbergen's form: 1 / (a / P + (1 - a) / R) with a = 1 / (beta² + 1)."""
    if precision == 0 or recall == 0:
        return Fraction(0)
    a = 1 / (Fraction(beta) ** 2 + 1)
    return 1 / (a / precision + (1 - a) / recall)


def set_f(ranked, grades, k, rel=1, beta=1.0):
    return _effectiveness(set_precision(ranked, grades, k, rel), set_recall(ranked, grades, k, rel), beta)


def f_at_k(ranked, grades, k, rel=1, beta=1.0):
    precision = Fraction(len(_hits(ranked, grades, k, rel)), k)
    return _effectiveness(precision, set_recall(ranked, grades, k, rel), beta)


def set_ap(ranked, grades, k, rel=1):
    return set_precision(ranked, grades, k, rel) * set_recall(ranked, grades, k, rel)


def returned(ranked, grades, k):
    return len(ranked[:k])


def relevant_count(ranked, grades, k, rel=1):
    count = len(_relevant(grades, rel))
    return count if k is None or count < k else k


def relevant_returned(ranked, grades, k, rel=1):
    return len(_hits(ranked, grades, k, rel))


def r_precision(ranked, grades, k, rel=1):
    count = len(_relevant(grades, rel))
    return _over(len(_hits(ranked[:k], grades, count, rel)), count)


def _interpolated(ranked, grades, k, rel, recall, rounding):
    count = len(_relevant(grades, rel))
    exact = recall * count  # in doubles, as trec_eval computes it
    needed = int(exact + 0.9) if rounding == "up" else math.floor(Fraction(exact) + Fraction(1, 2))
    best, seen = Fraction(0), 0
    relevant = set(_relevant(grades, rel))
    for rank, document in enumerate(ranked[:k], 1):
        seen += document in relevant
        if seen >= max(needed, 1):
            best = max(best, Fraction(seen, rank))
    return best


def interpolated(ranked, grades, k, rel=1, recall=0.1, rounding="up"):
    return _interpolated(ranked, grades, k, rel, recall, rounding)


def eleven_points(ranked, grades, k, rel=1, rounding="up"):
    points = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    return sum(_interpolated(ranked, grades, k, rel, point, rounding) for point in points) / 11


def _kind(document: str, grades: Grades, rel: int) -> str:
    if document not in grades:
        return "outside the pool"
    if grades[document] >= rel:
        return "relevant"
    return "not relevant" if grades[document] >= 0 else "pooled only"


def bpref(ranked, grades, k, rel=1):
    count = len(_relevant(grades, rel))
    wrong = sum(_kind(d, grades, rel) == "not relevant" for d in grades)
    total = Fraction(0)
    for i, document in enumerate(ranked[:k]):
        if _kind(document, grades, rel) == "relevant":
            above = sum(_kind(d, grades, rel) == "not relevant" for d in ranked[:i])
            total += 1 - (Fraction(min(above, count), min(wrong, count)) if above else 0)
    return _over(total, count)


def inferred_ap(ranked, grades, k, rel=1):
    small = Fraction(1, 100000)
    total = Fraction(0)
    for rank, document in enumerate(ranked[:k], 1):
        if _kind(document, grades, rel) != "relevant":
            continue
        kinds = [_kind(d, grades, rel) for d in ranked[: rank - 1]]
        right, wrong = kinds.count("relevant"), kinds.count("not relevant")
        pooled = len(kinds) - kinds.count("outside the pool")
        total += Fraction(1, rank)
        if rank > 1:
            share = (right + small) / (right + wrong + 2 * small)
            total += Fraction(rank - 1, rank) * Fraction(pooled, rank - 1) * share
    return _over(total, len(_relevant(grades, rel)))


def err(ranked, grades, k, max_grade=4):
    total, still_reading = Fraction(0), Fraction(1)
    for rank, document in enumerate(ranked[:k], 1):
        satisfied = Fraction(2 ** max(grades.get(document, 0), 0) - 1) / 2**max_grade
        total += still_reading * satisfied / rank
        still_reading *= 1 - satisfied
    return total


def normalised_err(ranked, grades, k, max_grade=4):
    best = sorted(grades, key=grades.get, reverse=True)
    return _over(err(ranked, grades, k, max_grade), err(best, grades, k, max_grade))


def rbp(ranked, grades, k, rel=1, p=0.8, gain="binary"):
    p, best, total = Fraction(p), max(grades.values()), Fraction(0)
    for rank, document in enumerate(ranked[:k], 1):
        if document in grades and grades[document] >= rel:
            worth = 1 if gain == "binary" else _over(max(grades[document], 0), max(best, 0))
            total += worth * p ** (rank - 1)
    return (1 - p) * total


def rbp_residual(ranked, grades, k, p=0.8):
    """The paper's form: the tail behind the list, and every unjudged document in it."""
    p, ranked = Fraction(p), ranked[:k]
    unjudged = [i for i, document in enumerate(ranked) if grades.get(document, -1) < 0]
    return p ** len(ranked) + (1 - p) * sum(p**i for i in unjudged)


def _gain(grade: int, gain: str) -> int:
    if grade <= 0:
        return 0
    return 2**grade - 1 if gain == "exp" else grade


def _gains(documents: list[str], grades: Grades, gain: str) -> int:
    return sum(_gain(grades.get(document, 0), gain) for document in documents)


def ncg(ranked, grades, k, gain="linear"):
    best = sorted(grades, key=grades.get, reverse=True)
    return _over(_gains(ranked[:k], grades, gain), _gains(best[:k], grades, gain))


def q_measure(ranked, grades, k, beta=1.0, gain="linear"):
    beta, total = Fraction(beta), Fraction(0)
    best = sorted(grades, key=grades.get, reverse=True)
    for rank, document in enumerate(ranked[:k], 1):
        if grades.get(document, 0) > 0:
            count = sum(grades.get(above, 0) > 0 for above in ranked[:rank])
            top = count + beta * _gains(ranked[:rank], grades, gain)
            total += top / (rank + beta * _gains(best[:rank], grades, gain))
    return _over(total, sum(grade > 0 for grade in grades.values()))


FAMILY = {
    "ERR": err,
    "F": f_at_k,
    "IAP": eleven_points,
    "IPrec": interpolated,
    "NCG": ncg,
    "NumRel": relevant_count,
    "NumRelRet": relevant_returned,
    "NumRet": returned,
    "Q": q_measure,
    "RBP": rbp,
    "RBP_residual": rbp_residual,
    "Rprec": r_precision,
    "SetAP": set_ap,
    "SetF": set_f,
    "SetP": set_precision,
    "SetR": set_recall,
    "bpref": bpref,
    "infAP": inferred_ap,
    "nERR": normalised_err,
}
