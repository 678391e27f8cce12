"""Conventions as a value: what ties, missing queries, empty queries and self-matches do to a score.

What counts as relevant and what unjudged documents do is said by each measure: `AP(rel=2)`, `condensed(AP)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from weir.core.order import Ties
from weir.errors import BadValue, UnknownName

__all__ = ["CHOICES", "DEFAULT", "Conventions", "parse_conventions"]

CHOICES: Mapping[str, Mapping[str, str]] = {
    "ties": {
        "trec": "scores compare as doubles, equal ones stand by document identifier, descending (trec_eval 10)",
        "trec9": "the same with scores compared as floats (trec_eval 9, pytrec_eval)",
        "expected": "the exact mean over all orders of documents with equal scores",
        "bounds": "as trec, with the values of the worst and the best order",
    },
    "missing": {
        "zero": "a judged query that the run does not answer scores 0",
        "answered-only": "queries that the run does not answer leave the mean",
    },
    "empty": {
        "zero": "a query without a document of grade 1 or better scores 0",
        "left-out": "queries without a document of grade 1 or better leave the mean",
    },
    "self_matches": {
        "keep": "a document with the identifier of its query counts like any other",
        "drop": "a document with the identifier of its query leaves the ranking first (ArguAna, Quora)",
    },
}


@dataclass(frozen=True)
class Conventions:
    """What decides a score besides the run, the judgments and the measure.

    It prints as what differs from the default, such as `ties=expected, missing=answered-only`, or `default`, and
    `parse_conventions` reads that. ties: trec, trec9, expected or bounds; missing: zero or answered-only, what
    becomes of judged queries that the run does not answer; empty: zero or left-out, what becomes of queries
    without a document of grade 1 or better; self_matches: keep or drop, documents with the identifier of their
    query. Raises UnknownName for any other word.
    """

    ties: str = "trec"
    missing: str = "zero"
    empty: str = "zero"
    self_matches: str = "keep"

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise UnknownName(f"convention for {name}", str(getattr(self, name)), words)

    def __str__(self) -> str:
        if self == DEFAULT:
            return "default"
        changed = [
            (f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default
        ]
        return ", ".join(f"{name}={word}" for name, word in changed)

    @property
    def order(self) -> Ties:
        """The rule by which a run is put in order (see core/order.py)."""
        return "trec9" if self.ties == "trec9" else "trec"

    @property
    def over_orders(self) -> bool:
        """Whether ties are taken in all their orders, not in one."""
        return self.ties in ("expected", "bounds")

    def sentences(self) -> list[str]:
        """What each convention that differs from the default means."""
        changed = [
            (f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default
        ]
        return [f"{name}={word}: {CHOICES[name][word]}" for name, word in changed]


DEFAULT = Conventions()


def parse_conventions(text: str) -> Conventions:
    """The conventions that a text such as "ties=expected, missing=answered-only" names; "default" is all defaults.

    Raises UnknownName for a word that does not exist, BadValue for a malformed text.
    """
    given: dict[str, str] = {}
    for part in [] if text.strip() == "default" else text.split(","):
        name, found, word = (piece.strip() for piece in part.partition("="))
        if not found or name in given:
            raise BadValue(
                f"'{text[:80]}' names no conventions; expected such as ties=expected, missing=answered-only"
            )
        if name not in CHOICES:
            raise UnknownName("convention", name, CHOICES)
        given[name] = word
    return Conventions(**given)
