"""Documents that are the query."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "A document whose identifier is the query's: kept (self_matches=keep), or dropped before the cut-off (drop)."
ALL = "nDCG@1 nDCG@10 AP RR P@1 P@3 R@1 R@3 Success@1"
ARGUANA = "beir#206 ir_datasets#219 sprint#2"


def cases() -> Iterator[Vector]:
    for rule in ("keep", "drop"):

        def one(
            name: str, shows: str, qrels: dict[str, str], run: dict[str, str], rule: str = rule
        ) -> Vector:
            what = "it stays" if rule == "keep" else "it leaves before the cut-off"
            return case(f"{name}-{rule}", f"{shows}: {what}.", qrels, run, ALL, ARGUANA, self_matches=rule)

        yield one(
            "self-first", "The query itself is returned first, as in ArguAna", {"q1": "d1"}, {"q1": "q1 d1"}
        )
        yield one(
            "self-inside", "The query itself is returned between others", {"q1": "d1 d2"}, {"q1": "d1 q1 d2"}
        )
        yield one(
            "self-at-cut",
            "The query itself stands above the document at rank k + 1",
            {"q1": "d3"},
            {"q1": "d1 q1 d2 d3"},
        )
        yield one("self-only", "The query itself is all that is returned", {"q1": "d1"}, {"q1": "q1"})
        yield one("self-absent", "The query itself is not returned", {"q1": "d1"}, {"q1": "d2 d1"})
        yield one(
            "self-of-another",
            "Another query's identifier is returned, which is no self match",
            {"q1": "d1", "q2": "q1"},
            {"q1": "q2 d1", "q2": "q1 d1"},
        )
        yield one("self-judged", "The query itself is judged relevant", {"q1": "q1 d1"}, {"q1": "d1 q1"})
        yield one(
            "self-of-several",
            "Two queries return themselves, one does not",
            {"q1": "d1", "q2": "d2", "q3": "d3"},
            {"q1": "q1 d1", "q2": "d2 q2", "q3": "d3"},
        )
