"""Exact values of every measure from its definition; shares no code with weir.measures."""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from weir.errors import BadValue, UnknownName

# Exact numbers: fractions where a value is rational, decimals of sixty digits with logarithms.

Exact: TypeAlias = Fraction | Decimal
# A sum of gains / log2(rank + 1), as the coefficient of each 1 / log2(m).
Discounted: TypeAlias = Mapping[int, Fraction]

_WORK = Context(prec=60, Emin=-999999, Emax=999999)
_SHOWN = Context(prec=30, Emin=-999999, Emax=999999)
_LONGEST = 100  # characters of a fraction that is still written out


def over(above: int | Fraction, below: int | Fraction) -> Fraction:
    """Return above / below as a fraction; 0 if `below` is 0."""
    return Fraction(above) / below if below else Fraction(0)


def discounted(gains: Sequence[int | Fraction], ahead: int = 1) -> Discounted:
    """Return the sum of gain / log2(rank + ahead) as {m: coefficient of 1 / log2(m)}, gains by rank from 1."""
    # log2(m^e) is e log2(m), so 1 / log2(9) is half of 1 / log2(3): each m is taken to its smallest root, so that
    # sums that are multiples of each other are recognised.
    coefficients: dict[int, Fraction] = {}
    for rank, gain in enumerate(gains, 1):
        if gain:
            root, power = _root(rank + ahead)
            coefficients[root] = coefficients.get(root, Fraction(0)) + Fraction(gain, power)
    return coefficients


def value(terms: Discounted) -> Exact:
    """Return the number that a discounted sum is: a fraction if only log2(2) occurs, else a decimal."""
    if set(terms) <= {2}:
        return terms.get(2, Fraction(0))
    return total([_WORK.divide(_as_decimal(c), _log2(Fraction(m))) for m, c in terms.items()])


def quotient(above: Discounted, below: Discounted) -> Exact:
    """Return the quotient of two discounted sums: a fraction if one is a multiple of the other, else a
    decimal; 0 if either is empty."""
    if not below or not above:
        return Fraction(0)
    ratios = {above.get(m, Fraction(0)) / coefficient for m, coefficient in below.items()}
    if len(ratios) == 1 and set(above) <= set(below):
        return ratios.pop()
    return ratio(value(above), value(below))


def _power_of_two(exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
        return Fraction(2) ** exponent.numerator
    return Fraction(_WORK.power(Decimal(2), _as_decimal(exponent)))


def in_base(number: Exact, base: Fraction) -> Exact:
    """Convert a discounted sum from binary logarithms to another base."""
    return number if base == 2 or not number else _WORK.multiply(_as_decimal(number), _log2(base))


def total(values: Sequence[Exact]) -> Exact:
    """Return the sum, a fraction if all values are, else a decimal."""
    fractions = [v for v in values if isinstance(v, Fraction)]
    if len(fractions) == len(values):
        return sum(fractions, Fraction(0))
    decimal = Decimal(0)
    for v in values:
        decimal = _WORK.add(decimal, _as_decimal(v))
    return decimal


def ratio(above: Exact, below: Exact) -> Exact:
    """Return above / below, a fraction if both are; 0 for a zero denominator."""
    if not below or not above:
        return Fraction(0)
    if above == below:
        return Fraction(1)
    if isinstance(above, Fraction) and isinstance(below, Fraction):
        return above / below
    return _WORK.divide(_as_decimal(above), _as_decimal(below))


def fraction_mean(values: Sequence[Exact]) -> Exact:
    """Return the mean, a fraction if all values are; 0 without values."""
    return ratio(total(values), Fraction(len(values)))


def _as_decimal(number: Exact) -> Decimal:
    if isinstance(number, Decimal):
        return number
    return _WORK.divide(Decimal(number.numerator), Decimal(number.denominator))


def exact_text(number: Exact) -> dict[str, str]:
    """Return {"decimal": the number to 30 digits}, with "fraction" for a fraction of at most 100 characters."""
    forms = {"decimal": str(_SHOWN.plus(_as_decimal(number)))}
    if isinstance(number, Fraction) and len(str(number)) <= _LONGEST:
        forms["fraction"] = str(number)
    return forms


def _log2(number: Fraction) -> Decimal:
    return _WORK.divide(_WORK.ln(_as_decimal(number)), _WORK.ln(Decimal(2)))


def _root(n: int) -> tuple[int, int]:
    for power in range(n.bit_length(), 1, -1):
        near = round(n ** (1 / power))
        for m in (near - 1, near, near + 1):
            if m > 1 and m**power == n:
                return m, power
    return n, 1


# Definitions of measures, from a ranking and grades to one exact number. They share nothing with weir.measures.
# `ranked`: documents, best first; `grades`: of this query; `k`: the cut-off, None for all. A document without a grade
# is unjudged; one with a grade below 0 is in the pool and not judged.

Ranked: TypeAlias = Sequence[str]
Level: TypeAlias = int | Fraction
Grades: TypeAlias = Mapping[str, Level]
Cut: TypeAlias = int | None

Definition: TypeAlias = Callable[..., Exact]
DEFINITIONS: dict[str, Definition] = {}
VARIANTS: dict[str, Definition] = {}
"""Other tools' definitions, under names of their own, that explain their values."""
_EPSILON = Fraction(1, 100000)


def definition(*names: str, of: dict[str, Definition] = DEFINITIONS) -> Callable[[Definition], Definition]:
    """Return a decorator that registers a function as the definition of these measures."""

    def add_definition(function: Definition) -> Definition:
        of.update(dict.fromkeys(names, function))
        return function

    return add_definition


def _relevant(grades: Grades, rel: Level) -> set[str]:
    return {d for d, grade in grades.items() if grade >= rel}


def _not_relevant(grades: Grades, rel: Level) -> set[str]:
    return {d for d, grade in grades.items() if 0 <= grade < rel}


def _hits(ranked: Ranked, grades: Grades, k: Cut, rel: Level) -> list[int]:
    relevant = _relevant(grades, rel)
    return [rank for rank, d in enumerate(ranked[:k], 1) if d in relevant]


def _gains(ranked: Ranked, grades: Grades, k: Cut, gain: str) -> list[Fraction]:
    pairs = [] if gain in ("linear", "exp") else [pair.split("=") for pair in gain.split(",")]
    table = {Fraction(of): Fraction(worth) for of, worth in pairs}
    gains = []
    for grade in (Fraction(grades.get(d, -1)) for d in ranked[:k]):
        if grade < 0:
            gains.append(Fraction(0))
        else:
            gains.append(_power_of_two(grade) - 1 if gain == "exp" else table.get(grade, grade))
    return gains


def _best_gains(grades: Grades, k: Cut, gain: str) -> list[Fraction]:
    return sorted(_gains(list(grades), grades, None, gain), reverse=True)[:k]


@definition("P")
def _p(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return Fraction(len(_hits(ranked, grades, k, rel)), k)


@definition("R", "SetR")
def _r(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), len(_relevant(grades, rel)))


@definition("R_cap")
def _r_cap(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), min(k, len(_relevant(grades, rel))))


@definition("Success")
def _success(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    return Fraction(bool(_hits(ranked, grades, k, rel)))


@definition("AP")
def _ap(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    hits = _hits(ranked, grades, k, rel)
    precisions = [Fraction(count, rank) for count, rank in enumerate(hits, 1)]
    return over(sum(precisions, Fraction(0)), len(_relevant(grades, rel)))


@definition("RR")
def _rr(ranked: Ranked, grades: Grades, k: Cut, *, of: str = "relevant", rel: Level = 1) -> Exact:
    hits = _hits(ranked, grades, k, rel)
    if of == "best":
        highest = max([0, *grades.values()])
        hits = [rank for rank in hits if grades[ranked[rank - 1]] == highest]
    return Fraction(1, hits[0]) if hits else Fraction(0)


def _cumulated(gains: list[Fraction], base: Fraction = Fraction(2), discount: str = "trec") -> Exact:
    if discount == "trec":
        return in_base(value(discounted(gains)), base)
    late = [gain if rank >= base else Fraction(0) for rank, gain in enumerate(gains, 1)]
    early = sum(gains, Fraction(0)) - sum(late, Fraction(0))
    return total([early, in_base(value(discounted(late, ahead=0)), base)])


@definition("DCG")
def _dcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    **discount: Any,  # noqa: ANN401  see _cumulated
) -> Exact:
    return _cumulated(_gains(ranked, grades, k, gain), **discount)


@definition("IDCG")
def _idcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    **discount: Any,  # noqa: ANN401  see _cumulated
) -> Exact:
    return _cumulated(_best_gains(grades, k, gain), **discount)


@definition("nDCG")
def _ndcg(
    ranked: Ranked,
    grades: Grades,
    k: Cut,
    *,
    gain: str = "linear",
    **discount: Any,  # noqa: ANN401  see _cumulated
) -> Exact:
    gains, best = _gains(ranked, grades, k, gain), _best_gains(grades, k, gain)
    if discount.get("discount", "trec") == "trec":  # the base cancels
        return quotient(discounted(gains), discounted(best))
    return ratio(_cumulated(gains, **discount), _cumulated(best, **discount))


@definition("NCG")
def _ncg(ranked: Ranked, grades: Grades, k: Cut, *, gain: str = "linear") -> Exact:
    return over(sum(_gains(ranked, grades, k, gain)), sum(_best_gains(grades, k, gain)))


@definition("Q")
def _q(
    ranked: Ranked, grades: Grades, k: Cut, *, beta: Fraction = Fraction(1), gain: str = "linear"
) -> Exact:
    total, relevant = Fraction(0), {d for d, grade in grades.items() if grade > 0}
    hits = [rank for rank, d in enumerate(ranked[:k], 1) if d in relevant]
    for count, rank in enumerate(hits, 1):
        gained = sum(_gains(ranked, grades, rank, gain))
        most = sum(_best_gains(grades, rank, gain))
        total += (count + beta * gained) / (rank + beta * most)
    return over(total, len(relevant))


@definition("Rprec")
def _rprec(ranked: Ranked, grades: Grades, k: Cut, *, times: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    count = _needed(times, len(_relevant(grades, rel)), "up")
    return over(len(_hits(ranked[:k], grades, count, rel)), count)


@definition("bpref")
def _bpref(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    relevant, wrong = _relevant(grades, rel), _not_relevant(grades, rel)
    total = Fraction(0)
    for rank in _hits(ranked, grades, k, rel):
        above = len(wrong.intersection(ranked[: rank - 1]))
        total += 1 - over(min(above, len(relevant)), min(len(wrong), len(relevant)))
    return over(total, len(relevant))


@definition("infAP")
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


@definition("IPrec")
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


@definition("IAP")
def _iap(ranked: Ranked, grades: Grades, k: Cut, *, rounding: str = "up", rel: Level = 1) -> Exact:
    points = [
        _iprec(ranked, grades, k, recall=Fraction(n, 10), rounding=rounding, rel=rel) for n in range(11)
    ]
    return sum((Fraction(p) for p in points), Fraction(0)) / 11


@definition("ERR")
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


@definition("nERR")
def _nerr(ranked: Ranked, grades: Grades, k: Cut, *, max_grade: int = 4) -> Exact:
    best = sorted(grades, key=lambda d: grades[d], reverse=True)
    own, ideal = (Fraction(_err(order, grades, k, max_grade=max_grade)) for order in (ranked, best))
    return over(own, ideal)


@definition("RBP")
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


@definition("RBP_residual")
def _rbp_residual(ranked: Ranked, grades: Grades, k: Cut, *, p: Fraction = Fraction(4, 5)) -> Exact:
    top = ranked[:k]
    unknown = [rank for rank, d in enumerate(top, 1) if grades.get(d, -1) < 0]
    return p ** len(top) + (1 - p) * sum((p ** (rank - 1) for rank in unknown), Fraction(0))


@definition("Judged")
def _judged(ranked: Ranked, grades: Grades, k: int) -> Exact:
    return over(sum(d in grades for d in ranked[:k]), len(ranked[:k]))


@definition("Hole")
def _hole(ranked: Ranked, grades: Grades, k: int) -> Exact:
    return Fraction(sum(d not in grades for d in ranked[:k]), k)


@definition("SetP")
def _set_p(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return over(len(_hits(ranked, grades, k, rel)), len(ranked[:k]))


def _harmonic(precision: Exact, recall: Exact, beta: Fraction) -> Fraction:
    p, r = Fraction(precision), Fraction(recall)
    return over((1 + beta**2) * p * r, beta**2 * p + r)


@definition("SetF")
def _set_f(ranked: Ranked, grades: Grades, k: Cut, *, beta: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    return _harmonic(_set_p(ranked, grades, k, rel=rel), _r(ranked, grades, k, rel=rel), beta)


@definition("F")
def _f(ranked: Ranked, grades: Grades, k: int, *, beta: Fraction = Fraction(1), rel: Level = 1) -> Exact:
    return _harmonic(_p(ranked, grades, k, rel=rel), _r(ranked, grades, k, rel=rel), beta)


@definition("SetAP")
def _set_ap(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return Fraction(_set_p(ranked, grades, k, rel=rel)) * Fraction(_r(ranked, grades, k, rel=rel))


@definition("NumRet")
def _num_ret(ranked: Ranked, grades: Grades, k: Cut) -> Exact:
    return Fraction(len(ranked[:k]))


@definition("NumRel")
def _num_rel(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    count = len(_relevant(grades, rel))
    return Fraction(count if k is None else min(count, k))


@definition("NumRelRet")
def _num_rel_ret(ranked: Ranked, grades: Grades, k: Cut, *, rel: Level = 1) -> Exact:
    return Fraction(len(_hits(ranked, grades, k, rel)))


@definition("AP_within_k", of=VARIANTS)
def _ap_within(ranked: Ranked, grades: Grades, k: int, *, rel: Level = 1) -> Exact:
    relevant = len(_relevant(grades, rel))
    return over(Fraction(_ap(ranked, grades, k)) * relevant, min(k, relevant))


@definition("DCG_signed", of=VARIANTS)
def _dcg_signed(ranked: Ranked, grades: Grades, k: Cut) -> Exact:
    return value(discounted([grades.get(d, 0) for d in ranked[:k]]))


@definition("RBP_raw", of=VARIANTS)
def _rbp_raw(ranked: Ranked, grades: Grades, k: Cut, *, p: Fraction = Fraction(4, 5)) -> Exact:
    gains = _gains(ranked, grades, k, "linear")
    return (1 - p) * sum((g * p**above for above, g in enumerate(gains)), Fraction(0))


# The oracle: exact values of measures for rankings and judgments. It shares nothing with weir.core.

Grade: TypeAlias = int | float
Judgments: TypeAlias = Mapping[str, Sequence[tuple[str, Grade]]]
Rankings: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
Lists: TypeAlias = Mapping[str, Sequence[str]]

_MOST_ORDERS = 5_040
_KNOWN = {**DEFINITIONS, **VARIANTS}


@dataclass(frozen=True)
class OracleConventions:
    """The conventions that definitions of measures leave open."""

    ties: Literal["trec", "trec9", "expected", "worst", "best"] = "trec"
    """"trec" orders equal scores by descending bytes of the identifier, "trec9" likewise after rounding scores to
    32-bit floats; "expected", "worst" and "best" are the mean, least and greatest value of each query over all orders
    of ties.
    """
    missing: Literal["zero", "answered-only"] = "zero"
    """Judged queries without an answer count "zero", or only answered ones count."""
    empty: Literal["zero", "left-out"] = "zero"
    """Judged queries without a document of grade 1 or more count "zero", or not at all."""
    self_matches: Literal["keep", "drop"] = "keep"
    """"drop" removes documents with the identifier of their query."""


@dataclass(frozen=True)
class Case:
    """Judgments, rankings and conventions on which a measure is computed."""

    qrels: Judgments
    run: Rankings
    conventions: OracleConventions = OracleConventions()
    candidates: Lists = field(default_factory=dict)
    """By query, the only documents that may be ranked; a query without any may rank all."""
    excluded: Lists = field(default_factory=dict)
    """By query, documents that may not be ranked; they leave the ranking before any cut-off."""


@dataclass(frozen=True)
class MeasureName:
    """The parts of a measure's name such as nDCG(gain='exp')@10."""

    measure: str
    k: int | None
    settings: tuple[tuple[str, Fraction | str], ...] = ()
    condensed: bool = False


@dataclass(frozen=True)
class Answer:
    """A measure's exact values for the queries that count, and their mean."""

    per_query: Mapping[str, Exact]
    mean: Exact


def parse_name(text: str) -> MeasureName:
    """Parse a measure's name; raises BadValue if it is malformed, UnknownName for an unknown measure."""
    if text.startswith("condensed(") and text.endswith(")"):
        return replace(parse_name(text[len("condensed(") : -1]), condensed=True)
    match = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?(?:@([1-9][0-9]*))?", text)
    if match is None:
        raise BadValue(f"'{text}' is not a measure; expected such as nDCG@10 or nDCG(gain='exp')@10")
    name, inside, cut = match.groups()
    if name not in _KNOWN:
        raise UnknownName("measure of the oracle", name, DEFINITIONS)
    pairs = re.findall(r"(\w+) *= *('[^']*'|[^,' ]+)", inside or "")
    # 0.8 is four fifths, not the double nearest to it.
    settings = tuple((key, one[1:-1] if one[0] == "'" else Fraction(one)) for key, one in pairs)
    return MeasureName(name, int(cut) if cut else None, settings)


def refusal(case: Case) -> str | None:
    """Return why judgments or rankings must be refused; None if they are valid."""
    if not any(case.qrels.values()):
        return "the judgments are empty"
    for query, pairs in case.qrels.items():
        if len({d for d, _ in pairs}) < len(pairs):
            return f"a document is judged twice (query {query})"
        if not all(math.isfinite(grade) for _, grade in pairs):
            return f"a grade is not a finite number (query {query})"
    for query, scored in case.run.items():
        if len({d for d, _ in scored}) < len(scored):
            return f"a document stands twice in a ranking (query {query})"
        if not all(math.isfinite(score) for _, score in scored):
            return f"a score is not a finite number (query {query})"
    return None


def exact_answer(case: Case, measure: str) -> Answer:
    """Return the exact value of a measure for each query that counts, and their mean.

    Raises BadValue for input that must be refused, if no query counts, and if ties have more than 5,040
    orders.
    """
    reason = refusal(case)
    if reason is not None:
        raise BadValue(reason)
    name, rules = parse_name(measure), case.conventions
    queries = [query for query, judged in case.qrels.items() if judged]
    if rules.missing == "answered-only":
        queries = [query for query in queries if case.run.get(query)]
    if rules.empty == "left-out":
        queries = [query for query in queries if any(grade >= 1 for _, grade in case.qrels[query])]
    per_query: dict[str, Exact] = {}
    for query in queries:
        candidates, excluded = case.candidates.get(query), case.excluded.get(query, ())
        scored = [
            (d, s)
            for d, s in case.run.get(query, ())
            if (rules.self_matches == "keep" or d != query)
            and (not candidates or d in candidates)
            and d not in excluded
        ]
        # 0.1 is a tenth, not the double nearest to it.
        grades = {d: int(g) if g == int(g) else Fraction(repr(float(g))) for d, g in case.qrels[query]}
        if rules.ties in ("trec", "trec9"):
            per_query[query] = _of_ranking(sorted_documents(scored, rules), grades, name)
            continue
        values = [_of_ranking(order, grades, name) for order in orders(scored, rules)]
        extreme = min if rules.ties == "worst" else max
        per_query[query] = (
            fraction_mean(values) if rules.ties == "expected" else extreme(values, key=_as_decimal)
        )
    if not per_query:
        raise BadValue("no query counts")
    return Answer(per_query, fraction_mean(list(per_query.values())))


def _of_ranking(ranked: list[str], grades: Grades, name: MeasureName) -> Exact:
    # "condensed" leaves out the documents that nobody judged.
    ranked = [d for d in ranked if grades.get(d, -1) >= 0] if name.condensed else ranked
    settings = {key: int(value) if key == "max_grade" else value for key, value in name.settings}
    return _KNOWN[name.measure](ranked, grades, name.k, **settings)


def sorted_documents(scored: Sequence[tuple[str, float]], conventions: OracleConventions) -> list[str]:
    """Return documents by descending score (in 32-bit floats for "trec9"), ties by descending bytes of the
    identifier."""
    by_identifier = sorted((d for d, _ in scored), key=lambda d: d.encode(), reverse=True)
    compared = {d: _compared(s, conventions) for d, s in scored}
    return sorted(by_identifier, key=lambda d: -compared[d])


def orders(scored: Sequence[tuple[str, float]], conventions: OracleConventions) -> Iterator[list[str]]:
    """Yield every ranking that the scores allow, with ties in each order; raises BadValue for more than
    5,040."""
    compared = {d: _compared(s, conventions) for d, s in scored}
    tied = [
        list(group)
        for _, group in itertools.groupby(sorted_documents(scored, conventions), compared.__getitem__)
    ]
    count = math.prod(math.factorial(len(group)) for group in tied)
    if count > _MOST_ORDERS:
        raise BadValue(f"the ties allow {count} orders; expected at most {_MOST_ORDERS}")
    for groups in itertools.product(*map(itertools.permutations, tied)):
        yield [d for group in groups for d in group]


def _compared(score: float, conventions: OracleConventions) -> float:
    if conventions.ties != "trec9":
        return score
    try:
        rounded: float = struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return math.copysign(math.inf, score)
    return rounded
