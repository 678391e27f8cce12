"""The oracle: what the exact value of a measure is, on rankings and judgments as people hold them.

It is written to be read beside the definitions and shares nothing with weir.measures or weir.core.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from weir.errors import BadValue, UnknownName
from weir.plugins.conform.definitions import DEFINITIONS, VARIANTS, Grades, Level, condensed
from weir.plugins.conform.exact_arithmetic import Exact, as_decimal, mean

__all__ = ["Answer", "Asked", "Case", "OracleConventions", "answer", "asked", "orders", "ranking", "refusal"]

Grade: TypeAlias = int | float
Judgments: TypeAlias = Mapping[str, Sequence[tuple[str, Grade]]]
Rankings: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
Lists: TypeAlias = Mapping[str, Sequence[str]]

_MOST_ORDERS = 5_040
_KNOWN = {**DEFINITIONS, **VARIANTS}


@dataclass(frozen=True)
class OracleConventions:
    """What a definition leaves open.

    ties: "trec" puts equal scores in descending order of the bytes of the identifier, "trec9" the same after scores
    were rounded to 32-bit floats; "expected" is the exact mean over all orders of equal scores, "worst" and "best"
    the least and the greatest value of each query. missing: a judged query without an answer counts "zero", or only
    answered ones count ("answered-only"). empty: a judged query without a document of grade 1 or better counts
    "zero", or not at all ("left-out"). self_matches: "keep" or "drop" documents with the identifier of their query.
    """

    ties: Literal["trec", "trec9", "expected", "worst", "best"] = "trec"
    missing: Literal["zero", "answered-only"] = "zero"
    empty: Literal["zero", "left-out"] = "zero"
    self_matches: Literal["keep", "drop"] = "keep"


@dataclass(frozen=True)
class Case:
    """Judgments and rankings as pairs in the order in which a file would list them, and the conventions.

    candidates: by query, the documents that alone may be ranked; a query that is not there, or has none, may rank any.
    excluded: by query, documents that may not be ranked. The others leave the ranking before any cut-off.
    """

    qrels: Judgments
    run: Rankings
    conventions: OracleConventions = OracleConventions()
    candidates: Lists = field(default_factory=dict)
    excluded: Lists = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A measure's name taken apart: nDCG(gain='exp')@10 is nDCG, gain exp, k 10."""

    measure: str
    k: int | None
    settings: tuple[tuple[str, Fraction | str], ...] = ()
    condensed: bool = False


@dataclass(frozen=True)
class Answer:
    """The exact value of one measure for each query that counts, and their mean."""

    per_query: Mapping[str, Exact]
    mean: Exact


def asked(text: str) -> Asked:
    """A measure's name taken apart; raises BadValue for a malformed one, UnknownName for an unknown one."""
    if text.startswith("condensed(") and text.endswith(")"):
        return replace(asked(text[len("condensed(") : -1]), condensed=True)
    match = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?(?:@([1-9][0-9]*))?", text)
    if match is None:
        raise BadValue(f"'{text}' is not a measure; expected such as nDCG@10 or nDCG(gain='exp')@10")
    name, inside, cut = match.groups()
    if name not in _KNOWN:
        raise UnknownName("measure of the oracle", name, DEFINITIONS)
    pairs = re.findall(r"(\w+) *= *('[^']*'|[^,' ]+)", inside or "")
    settings = tuple((key, _setting(found)) for key, found in pairs)
    return Asked(name, int(cut) if cut else None, settings)


def _setting(text: str) -> Fraction | str:
    """0.8 is four fifths, not the double nearest to it."""
    return text[1:-1] if text[0] == "'" else Fraction(text)


def refusal(case: Case) -> str | None:
    """Why this input has no right answer and must be refused; None where it has one."""
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


def answer(case: Case, measure: str) -> Answer:
    """The exact value of a measure for each query that counts, and their mean.

    Raises BadValue where the input must be refused, or has too many tied documents to go through every order.
    """
    reason = refusal(case)
    if reason is not None:
        raise BadValue(reason)
    wanted = asked(measure)
    per_query = {query: _of_query(case, query, wanted) for query in _counted(case)}
    if not per_query:
        raise BadValue("no query counts")
    return Answer(per_query, mean(list(per_query.values())))


def _counted(case: Case) -> list[str]:
    found = [query for query, judged in case.qrels.items() if judged]
    if case.conventions.missing == "answered-only":
        found = [query for query in found if case.run.get(query)]
    if case.conventions.empty == "left-out":
        found = [query for query in found if any(grade >= 1 for _, grade in case.qrels[query])]
    return found


def _of_query(case: Case, query: str, wanted: Asked) -> Exact:
    scored = [(d, s) for d, s in case.run.get(query, ()) if _stays(d, query, case)]
    grades = {d: _exact(grade) for d, grade in case.qrels[query]}
    ties = case.conventions.ties
    if ties in ("trec", "trec9"):
        return of_ranking(ranking(scored, case.conventions), grades, wanted)
    values = [of_ranking(order, grades, wanted) for order in orders(scored, case.conventions)]
    if ties == "expected":
        return mean(values)
    return (min if ties == "worst" else max)(values, key=as_decimal)


def _exact(grade: Grade) -> Level:
    """0.1 is a tenth, not the double nearest to it."""
    return int(grade) if grade == int(grade) else Fraction(repr(float(grade)))


def of_ranking(ranked: list[str], grades: Grades, wanted: Asked) -> Exact:
    """The exact value of a measure for one ranking, best first."""
    seen = condensed(ranked, grades) if wanted.condensed else ranked
    settings = {
        key: int(found) if isinstance(found, Fraction) and key == "max_grade" else found
        for key, found in wanted.settings
    }
    return _KNOWN[wanted.measure](seen, grades, wanted.k, **settings)


def _stays(document: str, query: str, case: Case) -> bool:
    if case.conventions.self_matches == "drop" and document == query:
        return False
    candidates = case.candidates.get(query)
    return (not candidates or document in candidates) and document not in case.excluded.get(query, ())


def ranking(scored: Sequence[tuple[str, float]], conventions: OracleConventions) -> list[str]:
    """Documents by score, then by the bytes of their identifier, both descending."""
    by_identifier = sorted((d for d, _ in scored), key=lambda d: d.encode(), reverse=True)
    compared = {d: _compared(s, conventions) for d, s in scored}
    return sorted(by_identifier, key=lambda d: -compared[d])


def orders(scored: Sequence[tuple[str, float]], conventions: OracleConventions) -> Iterator[list[str]]:
    """Every order that the scores allow; raises BadValue where they are too many to go through."""
    compared = {d: _compared(s, conventions) for d, s in scored}
    tied = [list(group) for _, group in itertools.groupby(ranking(scored, conventions), compared.__getitem__)]
    count = math.prod(math.factorial(len(group)) for group in tied)
    if count > _MOST_ORDERS:
        raise BadValue(f"the ties allow {count} orders; expected at most {_MOST_ORDERS}")
    for groups in itertools.product(*map(itertools.permutations, tied)):
        yield [d for group in groups for d in group]


def _compared(score: float, conventions: OracleConventions) -> float:
    if conventions.ties != "trec9":
        return score
    try:
        found: float = struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return math.copysign(math.inf, score)
    return found
