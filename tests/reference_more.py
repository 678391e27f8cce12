"""More of the family of measures, slowly: plain loops over lists, exact fractions but for logarithms.

Written from the papers' and programs' definitions, not from Weir's code. A ranking is a list of documents, `grades`
what the query's judgments say; a document that is not in it, or has a grade below 0, was not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from tests import reference_family as family

__all__ = ["INTENT_VALUES", "MORE", "ideal_of_intents"]

Grades = Mapping[str, int]


def worth(grade: int | None, gain: str) -> Fraction:
    """Linear, exponential, or as a table says."""
    if grade is None or grade < 0:
        return Fraction(0)
    if gain in ("linear", "exp"):
        return Fraction(grade if gain == "linear" else 2**grade - 1)
    table = {float(of): float(worth) for of, worth in (pair.split("=") for pair in gain.split(","))}
    return Fraction(table.get(grade, grade))


def gains(ranked, grades, gain):
    return [worth(grades.get(document), gain) for document in ranked]


def best_gains(grades, gain):
    return sorted((g for g in gains(grades, grades, gain) if g > 0), reverse=True)


def discounted(values, base=2.0, discount="trec"):
    total = []
    for rank, value in enumerate(values, 1):
        divisor = math.log(rank + 1, base) if discount == "trec" else max(1.0, math.log(rank, base))
        total.append(float(value) / divisor)
    return math.fsum(total)


def dcg(ranked, grades, k, gain="linear", base=2.0, discount="trec"):
    return discounted(gains(ranked[:k], grades, gain), base, discount)


def idcg(ranked, grades, k, gain="linear", base=2.0, discount="trec"):
    return discounted(best_gains(grades, gain)[:k], base, discount)


def ndcg(ranked, grades, k, gain="linear", base=2.0, discount="trec"):
    best = idcg(ranked, grades, k, gain, base, discount)
    return dcg(ranked, grades, k, gain, base, discount) / best if best else 0


def ncg(ranked, grades, k, gain="linear"):
    best = sum(best_gains(grades, gain)[:k])
    return sum(gains(ranked[:k], grades, gain)) / best if best else 0


def sdcg(ranked, grades, k, max_grade=4):
    return dcg(ranked, grades, k) / max_grade / discounted([1] * k)


def normalised_gain(ranked, grades, k, gain="linear"):
    best = best_gains(grades, gain)
    cost, so_far, total = Fraction(0), Fraction(0), 0.0
    for i, value in enumerate(gains(ranked[:k], grades, gain)):
        cost += max(best[i] if i < len(best) else 0, 1)
        so_far += value
        if value:
            total += float(value) / math.log2(2 + cost - so_far)
    return total / float(sum(best)) if best else 0


def binary_gain(ranked, grades, k, rel=1):
    relevant = [d for d in grades if grades[d] >= rel]
    total, wrong = 0.0, 0
    for document in ranked[:k]:
        if document in relevant:
            total += 1 / math.log2(2 + wrong)
        else:
            wrong += 1
    return total / len(relevant) if relevant else 0


def _ndcg_at(ranked, grades, rank, k, gain):
    return ndcg(ranked[:k], grades, rank, gain)


def ndcg_at_relevant(ranked, grades, k, gain="linear"):
    total, found = 0.0, 0
    for rank, value in enumerate(gains(ranked[:k], grades, gain), 1):
        if value > 0:
            total += _ndcg_at(ranked, grades, rank, k, gain)
            found += 1
    count = len(best_gains(grades, gain))
    return (total + (count - found) * _ndcg_at(ranked, grades, None, k, gain)) / count if count else 0


def ndcg_at_levels(ranked, grades, k, gain="linear"):
    best = best_gains(grades, gain)
    levels = [i for i in range(1, len(best) + 1) if i == len(best) or best[i] != best[i - 1]]
    points = [_ndcg_at(ranked, grades, level, k, gain) for level in levels]
    if points and len(ranked[:k]) > len(best) + 1:
        points.append(_ndcg_at(ranked, grades, None, k, gain))
    return math.fsum(points) / len(points) if points else 0


def r_precision(ranked, grades, k, rel=1, times=1.0):
    relevant = [d for d in grades if grades[d] >= rel]
    depth = math.floor(times * len(relevant) + 0.9)
    hits = sum(document in relevant for document in ranked[:k][:depth])
    return Fraction(hits, depth) if depth else 0


def reciprocal_rank(ranked, grades, k, rel=1, of="relevant"):
    wanted = [d for d in grades if grades[d] >= rel]
    if of == "best":
        wanted = [d for d in wanted if grades[d] == max(0, *grades.values())]
    ranks = [rank for rank, document in enumerate(ranked[:k], 1) if document in wanted]
    return Fraction(1, ranks[0]) if ranks else 0


def capped_set_recall(ranked, grades, k, rel=1):
    most = min(len(ranked[:k]), sum(grade >= rel for grade in grades.values()))
    return Fraction(family.relevant_returned(ranked, grades, k, rel), most) if most else 0


def nonrelevant_returned(ranked, grades, k, rel=1):
    return sum(0 <= grades[d] < rel for d in ranked[:k] if d in grades)


def utility(ranked, grades, k, rel=1, hit=1.0, noise=-1.0, miss=0.0):
    hits = family.relevant_returned(ranked, grades, k, rel)
    relevant = sum(grade >= rel for grade in grades.values())
    others, missed = len(ranked[:k]) - hits, relevant - hits
    return Fraction(hit) * hits + Fraction(noise) * others + Fraction(miss) * missed


def geometric(of: Callable[..., Fraction]) -> Callable[..., float]:
    def value(ranked, grades, k, rel=1):
        return math.log(max(float(of(ranked, grades, k, rel)), 0.00001))

    return value


def average_precision(ranked, grades, k, rel=1):
    relevant = [d for d in grades if grades[d] >= rel]
    hits = [rank for rank, document in enumerate(ranked[:k], 1) if document in relevant]
    total = sum((Fraction(n, rank) for n, rank in enumerate(hits, 1)), Fraction(0))
    return total / len(relevant) if relevant else Fraction(0)


def reader(continues: Callable[..., float]) -> Callable[..., float]:
    """C/W/L: the gains seen, by the chance that the reader comes so far; 1,000 ranks without a cut-off."""

    def value(ranked, grades, k, max_grade=4, **settings):
        reached, so_far, seen, all_reached = Fraction(1), Fraction(0), [], []
        for rank in range(1, (k or 1000) + 1):
            grade = grades.get(ranked[rank - 1], 0) if rank <= len(ranked) else 0
            gain = Fraction(max(grade, 0)) / max_grade
            so_far += gain
            seen.append(float(reached * gain))
            all_reached.append(float(reached))
            # Exact fractions of a thousand factors take minutes; 60 digits are as good.
            reached = (reached * continues(rank, gain, so_far, **settings)).limit_denominator(10**60)
        return math.fsum(seen) / math.fsum(all_reached)

    return value


def _square(rank: Fraction) -> Fraction:
    return ((rank - 1) / rank) ** 2


READERS = {
    "BPM": reader(lambda rank, gain, so_far, T=1.0: Fraction(float(so_far) < T)),
    "INSQ": reader(lambda rank, gain, so_far, T=1.0: _square(rank + 2 * Fraction(T))),
    "INST": reader(lambda rank, gain, so_far, T=1.0: _square(rank + 2 * Fraction(T) - so_far)),
    "NERR8": reader(lambda rank, gain, so_far: 1 - gain),
    "NERR9": reader(lambda rank, gain, so_far: Fraction(rank, rank + 1) * (1 - gain)),
    "NERR10": reader(lambda rank, gain, so_far, p=0.9: Fraction(p) * (1 - gain)),
    "NERR11": reader(lambda rank, gain, so_far, T=1.0: _square(rank + 2 * Fraction(T)) * (1 - gain)),
}


def accuracy(ranked, grades, k, rel=1):
    relevant = [grades.get(d, rel - 1) >= rel for d in ranked[:k]]
    pairs = [(i, j) for i, a in enumerate(relevant) for j, b in enumerate(relevant) if a and not b]
    if not pairs:
        return int(any(relevant))
    return Fraction(sum(i < j for i, j in pairs), len(pairs))


def _overlap(first, second, depth, p):
    return sum(
        Fraction(p) ** (d - 1) * Fraction(len(set(first[:d]) & set(second[:d])), d)
        for d in range(1, depth + 1)
    )


def compatibility(ranked, grades, k, p=0.95, over="ideal"):
    ranked = ranked[:k]
    place = {document: rank for rank, document in enumerate(ranked)}
    ideal = [d for d in grades if grades[d] > 0]
    ideal.sort(key=lambda d: (-grades[d], place.get(d, len(ranked))))
    depth = max(len(ranked), len(ideal))
    weights = sum(Fraction(p) ** (d - 1) for d in range(1, depth + 1))
    best = _overlap(ideal, ideal, depth, p) if over == "ideal" else weights
    return _overlap(ranked, ideal, depth, p) / best if best else 0


def context_precision(ranked, grades, k, rel=1):
    """ragas' loop over verdicts, in fractions."""
    verdicts = [grades.get(d, rel - 1) >= rel for d in ranked[:k]]
    precision = [Fraction(sum(verdicts[: i + 1]), i + 1) for i, relevant in enumerate(verdicts) if relevant]
    return sum(precision) / len(precision) if precision else 0


MORE = {
    "Accuracy": accuracy,
    "Compat": compatibility,
    "ContextPrecision": context_precision,
    "DCG": dcg,
    "G": normalised_gain,
    "IDCG": idcg,
    "NCG": ncg,
    "NumNonrelRet": nonrelevant_returned,
    "RR": reciprocal_rank,
    "RnDCG": ndcg_at_levels,
    "Rprec": r_precision,
    "SDCG": sdcg,
    "SetR_cap": capped_set_recall,
    "Utility": utility,
    "binG": binary_gain,
    "gmAP": geometric(average_precision),
    "gmbpref": geometric(family.bpref),
    "nDCG": ndcg,
    "nDCG_rel": ndcg_at_relevant,
    **READERS,
}

# Of intents: `wanted` is {intent: set of documents relevant to it}, intents without any left out.
Wanted = Mapping[str, set[str]]


def _novelty(ranked, wanted: Wanted, k, alpha, discount):
    """Each document counts less for an intent that was served before."""
    total, served = Fraction(0), dict.fromkeys(wanted, 0)
    values = []
    for rank, document in enumerate(ranked[:k], 1):
        for intent, documents in wanted.items():
            if document in documents:
                total += (1 - Fraction(alpha)) ** served[intent]
                values.append(float((1 - Fraction(alpha)) ** served[intent]) * discount(rank))
                served[intent] += 1
    return math.fsum(values)


def ideal_of_intents(wanted: Wanted, alpha: float) -> list[str]:
    """Whatever adds most next, the larger identifier of equal ones."""
    left = {intent: 1.0 for intent in wanted}
    documents = sorted(set().union(*wanted.values()), key=lambda d: d.encode("utf-8"), reverse=True)
    ranked = []
    while documents:
        chosen = max(documents, key=lambda d: sum(left[i] for i in wanted if d in wanted[i]))
        ranked.append(chosen)
        documents.remove(chosen)
        for intent in wanted:
            left[intent] *= 1.0 - alpha if chosen in wanted[intent] else 1.0
    return ranked


def by_perfect(discount):
    def value(ranked, wanted, k, alpha=0.5):
        perfect = math.fsum((1 - alpha) ** (rank - 1) * discount(rank) for rank in range(1, k + 1))
        return _novelty(ranked, wanted, k, alpha, discount) / (len(wanted) * perfect) if wanted else 0

    return value


def by_ideal(discount):
    def value(ranked, wanted, k, alpha=0.5, **settings):
        weight = (lambda rank: discount(rank, **settings)) if settings else discount
        best = _novelty(ideal_of_intents(wanted, alpha), wanted, k, alpha, weight) if wanted else 0
        return _novelty(ranked, wanted, k, alpha, weight) / best if best else 0

    return value


def _logarithmic(rank):
    return 1 / math.log2(rank + 1)


def _reciprocal(rank):
    return 1 / rank


def _patient(rank, beta=0.5):
    return beta ** (rank - 1)


def nrbp(ranked, wanted, k, alpha=0.5, beta=0.5):
    total = _novelty(ranked, wanted, k, alpha, lambda rank: _patient(rank, beta))
    return (1 - (1 - alpha) * beta) * total / len(wanted) if wanted else 0


def mean_over_intents(of):
    def value(ranked, wanted, k):
        values = [of(ranked, {d: 1 for d in documents}, k) for documents in wanted.values()]
        return sum(values, Fraction(0)) / len(values) if values else 0

    return value


INTENT_VALUES = {
    "AP_IA": mean_over_intents(average_precision),
    "ERR_IA": by_perfect(_reciprocal),
    "NRBP": nrbp,
    "P_IA": mean_over_intents(lambda ranked, grades, k: Fraction(sum(d in grades for d in ranked[:k]), k)),
    "StRecall": mean_over_intents(lambda ranked, grades, k: Fraction(any(d in grades for d in ranked[:k]))),
    "alpha_DCG": by_perfect(_logarithmic),
    "alpha_nDCG": by_ideal(_logarithmic),
    "nERR_IA": by_ideal(_reciprocal),
    "nNRBP": by_ideal(_patient),
}
