"""Every measure once more, straight from its definition: a ranking and grades to one exact number.

Nothing here is shared with weir.measures, and nothing is fast. `ranked` is the list of documents returned,
best first; `grades` what the judgments say of this query; `k` the cut-off, None for all. A document without a
grade is unjudged; one with a grade below 0 is in the pool and not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from weir.errors import BadValue
from weir.plugins.conform.exact_arithmetic import (
    Exact,
    discounted,
    in_base,
    over,
    power_of_two,
    quotient,
    ratio,
    total,
    value,
)

__all__ = ["DEFINITIONS", "VARIANTS", "Grades", "Ranked", "condensed"]

Ranked: TypeAlias = Sequence[str]
Level: TypeAlias = int | Fraction
Grades: TypeAlias = Mapping[str, Level]
Cut: TypeAlias = int | None

_EPSILON = Fraction(1, 100000)


def condensed(ranked: Ranked, grades: Grades) -> list[str]:
    """The ranking without the documents that nobody judged."""
    return [d for d in ranked if d in grades and grades[d] >= 0]


def _relevant(grades: Grades, rel: Level) -> set[str]:
    return {d for d, grade in grades.items() if grade >= rel}


def _not_relevant(grades: Grades, rel: Level) -> set[str]:
    return {d for d, grade in grades.items() if 0 <= grade < rel}


def _hits(ranked: Ranked, grades: Grades, k: Cut, rel: Level) -> list[int]:
    """The ranks, from 1, of the relevant documents among the first k."""
    relevant = _relevant(grades, rel)
    return [rank for rank, d in enumerate(ranked[:k], 1) if d in relevant]


def _above_zero(grades: Grades) -> set[str]:
    return {d for d, grade in grades.items() if grade > 0}


def _worth(grade: Level, gain: str) -> Fraction:
    """What a judged document is worth; a table such as "1=1,2=3" says it of some grades."""
    if grade < 0:
        return Fraction(0)
    if gain == "exp":
        return power_of_two(Fraction(grade)) - 1
    pairs = [] if gain == "linear" else [pair.split("=") for pair in gain.split(",")]
    return {Fraction(of): Fraction(worth) for of, worth in pairs}.get(Fraction(grade), Fraction(grade))


def _gains(ranked: Ranked, grades: Grades, k: Cut, gain: str) -> list[Fraction]:
    return [_worth(grades[d], gain) if d in grades else Fraction(0) for d in ranked[:k]]


def _best_gains(grades: Grades, k: Cut, gain: str) -> list[Fraction]:
    """The gains of all judged documents in the best order there is."""
    return sorted(_gains(list(grades), grades, None, gain), reverse=True)[:k]


def _p(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return Fraction(len(_hits(ranked, grades, k, rel)), k)


def _r(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), len(_relevant(grades, rel)))


def _r_cap(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), min(k, len(_relevant(grades, rel))))


def _success(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return Fraction(bool(_hits(ranked, grades, k, rel)))


def _ap(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    hits = _hits(ranked, grades, k, rel)
    precisions = [Fraction(count, rank) for count, rank in enumerate(hits, 1)]
    return over(sum(precisions, Fraction(0)), len(_relevant(grades, rel)))


def _rr(ranked: Ranked, grades: Grades, k: Cut, *, of: str = "relevant", rel: Level = 1) -> Exact:
    hits = _hits(ranked, grades, k, rel)
    if of == "best":
        highest = max([0, *grades.values()])
        hits = [rank for rank in hits if grades[ranked[rank - 1]] == highest]
    return Fraction(1, hits[0]) if hits else Fraction(0)


def _cumulated(gains: list[Fraction], base: Fraction, discount: str) -> Exact:
    """Gains divided by log(rank + 1); or, "original", by log(rank) from the rank that is the base on."""
    if discount == "trec":
        return in_base(value(discounted(gains)), base)
    late = [gain if rank >= base else Fraction(0) for rank, gain in enumerate(gains, 1)]
    early = sum(gains, Fraction(0)) - sum(late, Fraction(0))
    return total([early, in_base(value(discounted(late, ahead=0)), base)])


def _dcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    base: Fraction = Fraction(2),
    discount: str = "trec",
) -> Exact:
    return _cumulated(_gains(ranked, grades, k, gain), base, discount)


def _idcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    base: Fraction = Fraction(2),
    discount: str = "trec",
) -> Exact:
    return _cumulated(_best_gains(grades, k, gain), base, discount)


def _ndcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    base: Fraction = Fraction(2),
    discount: str = "trec",
) -> Exact:
    found, best = _gains(ranked, grades, k, gain), _best_gains(grades, k, gain)
    if discount == "trec":  # where the base cancels
        return quotient(discounted(found), discounted(best))
    return ratio(_cumulated(found, base, discount), _cumulated(best, base, discount))


def _ncg(ranked: Ranked, grades: Grades, k: Cut, *, gain: str = "linear") -> Exact:
    return over(sum(_gains(ranked, grades, k, gain)), sum(_best_gains(grades, k, gain)))


def _q(
    ranked: Ranked, grades: Grades, k: Cut, *, beta: Fraction = Fraction(1), gain: str = "linear"
) -> Exact:
    total, wanted = Fraction(0), _above_zero(grades)
    hits = [rank for rank, d in enumerate(ranked[:k], 1) if d in wanted]
    for count, rank in enumerate(hits, 1):
        gained = sum(_gains(ranked, grades, rank, gain))
        most = sum(_best_gains(grades, rank, gain))
        total += (count + beta * gained) / (rank + beta * most)
    return over(total, len(wanted))


def _rprec(ranked: Ranked, grades: Grades, k: Cut, *, times: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    count = _needed(times, len(_relevant(grades, rel)), "up")
    return over(len(_hits(ranked[:k], grades, count, rel)), count)


def _bpref(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    relevant, wrong = _relevant(grades, rel), _not_relevant(grades, rel)
    total = Fraction(0)
    for rank in _hits(ranked, grades, k, rel):
        above = len(wrong.intersection(ranked[: rank - 1]))
        total += 1 - over(min(above, len(relevant)), min(len(wrong), len(relevant)))
    return over(total, len(relevant))


def _infap(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    relevant, wrong = _relevant(grades, rel), _not_relevant(grades, rel)
    total = Fraction(0)
    for rank in _hits(ranked, grades, k, rel):
        above = ranked[: rank - 1]
        pooled = sum(d in grades for d in above)
        right, not_right = len(relevant.intersection(above)), len(wrong.intersection(above))
        share = (right + _EPSILON) / (right + not_right + 2 * _EPSILON)
        # 1/rank + (rank - 1)/rank * pooled/(rank - 1) * share; at rank 1 nothing is above.
        total += Fraction(1, rank) + Fraction(pooled, rank) * share
    return over(total, len(relevant))


def _needed(recall: Fraction, relevant: int, rounding: str) -> int:
    # trec_eval's own expression decides where a product such as 0.7 * 3 falls, and that is in doubles.
    exact = float(recall) * relevant
    return int(exact + 0.9) if rounding == "up" else int(exact) + (exact % 1.0 >= 0.5)


def _iprec(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    recall: Fraction = Fraction(1, 10),
    rounding: str = "up",
    rel: Level = 1,
) -> Exact:
    needed = _needed(recall, len(_relevant(grades, rel)), rounding)
    hits = _hits(ranked, grades, k, rel)
    return max((Fraction(n, rank) for n, rank in enumerate(hits, 1) if n >= needed), default=Fraction(0))


def _iap(ranked: Ranked, grades: Grades, k: Cut, *, rounding: str = "up", rel: Level = 1) -> Exact:
    points = [
        _iprec(ranked, grades, k, recall=Fraction(n, 10), rounding=rounding, rel=rel) for n in range(11)
    ]
    return sum((Fraction(p) for p in points), Fraction(0)) / 11


def _err(ranked: Ranked, grades: Grades, k: Cut, *, max_grade: int = 4) -> Exact:
    highest = max([0, *grades.values()])
    if highest > max_grade:
        raise BadValue(f"a grade of {highest} on a scale that ends at {max_grade}")
    total, goes_on = Fraction(0), Fraction(1)
    for rank, gain in enumerate(_gains(ranked, grades, k, "exp"), 1):
        satisfied = gain / 2**max_grade
        total += goes_on * satisfied / rank
        goes_on *= 1 - satisfied
    return total


def _nerr(ranked: Ranked, grades: Grades, k: Cut, *, max_grade: int = 4) -> Exact:
    found = Fraction(_err(ranked, grades, k, max_grade=max_grade))
    best = sorted(grades, key=lambda d: grades[d], reverse=True)
    return over(found, Fraction(_err(best, grades, k, max_grade=max_grade)))


def _rbp(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    p: Fraction = Fraction(4, 5),
    gain: str = "binary",
    rel: Level = 1,
) -> Exact:
    highest = max([0, *grades.values()])
    total = Fraction(0)
    for rank in _hits(ranked, grades, k, rel):
        grade = max(grades[ranked[rank - 1]], 0)
        total += (over(grade, highest) if gain == "scaled" else 1) * p ** (rank - 1)
    return (1 - p) * total


def _rbp_residual(ranked: Ranked, grades: Grades, k: Cut, *, p: Fraction = Fraction(4, 5)) -> Exact:
    seen = ranked[:k]
    unknown = [rank for rank, d in enumerate(seen, 1) if grades.get(d, -1) < 0]
    return p ** len(seen) + (1 - p) * sum((p ** (rank - 1) for rank in unknown), Fraction(0))


def _judged(ranked: Ranked, grades: Grades, k: int) -> Exact:
    return over(sum(d in grades for d in ranked[:k]), len(ranked[:k]))


def _hole(ranked: Ranked, grades: Grades, k: int) -> Exact:
    return Fraction(sum(d not in grades for d in ranked[:k]), k)


def _set_p(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), len(ranked[:k]))


def _harmonic(precision: Fraction, recall: Fraction, beta: Fraction) -> Fraction:
    return over((1 + beta**2) * precision * recall, beta**2 * precision + recall)


def _set_f(ranked: Ranked, grades: Grades, k: Cut, *, beta: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    precision, recall = _set_p(ranked, grades, k, rel=rel), _r(ranked, grades, k, rel=rel)
    return _harmonic(Fraction(precision), Fraction(recall), beta)


def _f(ranked: Ranked, grades: Grades, k: int, *, beta: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    precision, recall = _p(ranked, grades, k, rel=rel), _r(ranked, grades, k, rel=rel)
    return _harmonic(Fraction(precision), Fraction(recall), beta)


def _set_ap(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return Fraction(_set_p(ranked, grades, k, rel=rel)) * Fraction(_r(ranked, grades, k, rel=rel))


def _num_ret(ranked: Ranked, grades: Grades, k: Cut) -> Exact:
    return Fraction(len(ranked[:k]))


def _num_rel(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    count = len(_relevant(grades, rel))
    return Fraction(count if k is None else min(count, k))


def _num_rel_ret(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return Fraction(len(_hits(ranked, grades, k, rel)))


DEFINITIONS: Mapping[str, Callable[..., Exact]] = {
    "AP": _ap,
    "DCG": _dcg,
    "ERR": _err,
    "F": _f,
    "Hole": _hole,
    "IAP": _iap,
    "IDCG": _idcg,
    "IPrec": _iprec,
    "Judged": _judged,
    "NCG": _ncg,
    "NumRel": _num_rel,
    "NumRelRet": _num_rel_ret,
    "NumRet": _num_ret,
    "P": _p,
    "Q": _q,
    "R": _r,
    "RBP": _rbp,
    "RBP_residual": _rbp_residual,
    "RR": _rr,
    "R_cap": _r_cap,
    "Rprec": _rprec,
    "SetAP": _set_ap,
    "SetF": _set_f,
    "SetP": _set_p,
    "SetR": _r,
    "Success": _success,
    "bpref": _bpref,
    "infAP": _infap,
    "nDCG": _ndcg,
    "nERR": _nerr,
}


def _ap_within(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return over(
        Fraction(_ap(ranked, grades, k)) * len(_relevant(grades, rel)), min(k, len(_relevant(grades, rel)))
    )


def _dcg_signed(ranked: Ranked, grades: Grades, k: Cut) -> Exact:
    return value(discounted([grades.get(d, 0) for d in ranked[:k]]))


def _rbp_raw(ranked: Ranked, grades: Grades, k: Cut, *, p: Fraction = Fraction(4, 5)) -> Exact:
    gains = _gains(ranked, grades, k, "linear")
    return (1 - p) * sum((g * p**above for above, g in enumerate(gains)), Fraction(0))


# Definitions that other tools keep under these names, to explain what they say: not Weir's.
VARIANTS: Mapping[str, Callable[..., Exact]] = {
    "AP_within_k": _ap_within,
    "DCG_signed": _dcg_signed,
    "RBP_raw": _rbp_raw,
}
