"""Every measure once more, slowly: plain loops over dicts, exact fractions where there are no logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from tests.reference_family import FAMILY
from tests.reference_more import MORE
from weir.measures import parse_measure

__all__ = ["VALUES", "ranking", "score_all", "value"]

Grades = Mapping[str, int]


def ranking(scores: Mapping[str, float], ties: str = "trec") -> list[str]:
    """Documents by score, then by the bytes of their identifier, both descending."""

    def key(document: str) -> tuple[float, bytes]:
        score = float(scores[document])
        if ties == "trec9":
            with np.errstate(over="ignore"):
                score = float(np.float32(score))
        return score, document.encode("utf-8")

    return sorted(scores, key=key, reverse=True)


def _hits(ranked: list[str], grades: Grades, k: int | None, rel: int) -> list[int]:
    """Ranks, from 1, of the relevant documents among the first k."""
    hits = []
    for rank, document in enumerate(ranked, 1):
        if (k is None or rank <= k) and document in grades and grades[document] >= rel:
            hits.append(rank)
    return hits


def _relevant(grades: Grades, rel: int) -> int:
    return sum(1 for grade in grades.values() if grade >= rel)


def _over(a: int | Fraction, b: int) -> Fraction:
    return Fraction(a) / b if b else Fraction(0)


def precision(ranked, grades, k, rel=1):
    return Fraction(len(_hits(ranked, grades, k, rel)), k)


def recall(ranked, grades, k, rel=1):
    return _over(len(_hits(ranked, grades, k, rel)), _relevant(grades, rel))


def capped_recall(ranked, grades, k, rel=1):
    return _over(len(_hits(ranked, grades, k, rel)), min(k, _relevant(grades, rel)))


def success(ranked, grades, k, rel=1):
    return int(bool(_hits(ranked, grades, k, rel)))


def average_precision(ranked, grades, k, rel=1):
    total = Fraction(0)
    for count, rank in enumerate(_hits(ranked, grades, k, rel), 1):
        total += Fraction(count, rank)
    return _over(total, _relevant(grades, rel))


def reciprocal_rank(ranked, grades, k, rel=1):
    hits = _hits(ranked, grades, k, rel)
    return Fraction(1, hits[0]) if hits else 0


def _gain(grade: int, gain: str) -> int:
    if grade <= 0:
        return 0
    return 2**grade - 1 if gain == "exp" else grade


def dcg(ranked, grades, k, gain="linear"):
    return math.fsum(
        _gain(grades.get(document, 0), gain) / math.log2(rank + 1)
        for rank, document in enumerate(ranked[:k], 1)
    )


def ndcg(ranked, grades, k, gain="linear"):
    best = dcg(sorted(grades, key=grades.get, reverse=True), grades, k, gain)
    return dcg(ranked, grades, k, gain) / best if best else 0


def judged_share(ranked, grades, k):
    return _over(sum(document in grades for document in ranked[:k]), len(ranked[:k]))


def hole(ranked, grades, k):
    return Fraction(sum(document not in grades for document in ranked[:k]), k)


VALUES: dict[str, Callable[..., float | Fraction]] = {
    "AP": average_precision,
    "DCG": dcg,
    "Hole": hole,
    "Judged": judged_share,
    "P": precision,
    "R": recall,
    "RR": reciprocal_rank,
    "R_cap": capped_recall,
    "Success": success,
    "nDCG": ndcg,
    **FAMILY,
    **MORE,
}


def value(text: str, scores: Mapping[str, float], grades: Grades, ties: str = "trec") -> float:
    """One measure for one query."""
    measure = parse_measure(text)
    ranked = ranking(scores, ties)
    if measure.condensed:
        ranked = [document for document in ranked if grades.get(document, -1) >= 0]
    found = VALUES[measure.name](ranked, grades, measure.cutoff, **dict(measure.settings))
    return float(found)


def score_all(
    text: str, run: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Grades], ties: str = "trec"
) -> dict[str, float]:
    """{query: value} for every query that has judgments."""
    return {q: value(text, run.get(q, {}), grades, ties) for q, grades in qrels.items() if grades}
