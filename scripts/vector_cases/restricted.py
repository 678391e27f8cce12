"""Documents that alone may be ranked for a query, and that may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vector_cases.writing import Judged, Ranked, case, tied
from weir.plugins.conform.vectors import Vector

ABOUT = (
    "A query's candidates, which alone may be ranked (BIRCO, FollowIR), and documents excluded for it (BRIGHT): "
    "the others leave the ranking before any cut-off, whatever their grade; the judgments stay as they are."
)
ALL = "nDCG@1 nDCG@3 nDCG@10 AP RR P@1 P@3 R@1 R@3 Success@1 Judged@3"


def cases() -> Iterator[Vector]:
    yield excluding("excluded-first", "An excluded document is returned first", "d1", "x d1", "x")
    yield excluding("excluded-at-cut", "It stands above the document at rank k + 1", "d3", "d1 x d2 d3", "x")
    yield excluding("excluded-relevant", "It is judged relevant: recall still counts it", "x d1", "d1 x", "x")
    yield excluding("excluded-judged-zero", "It is judged not relevant", "x:0 d1", "x d1", "x")
    yield excluding(
        "excluded-all", "All that is returned is excluded: 0, as without an answer", "d1", "x y", "x y"
    )
    yield excluding("excluded-absent", "It is not returned", "d1", "d2 d1", "x")
    yield excluding("excluded-prefix", "Identifiers are compared whole", "d1", "d d1 d11", "d")
    yield choosing(
        "candidates-some", "Others are returned between candidates", "d1 d2", "a d1 b d2 c", "d1 d2 d3"
    )
    yield choosing(
        "candidates-judged",
        "The candidates are the judged documents",
        "d1:2 d2:1 d3:0",
        "a d3 d2 d1",
        "d1 d2 d3",
    )
    yield choosing(
        "candidates-missed", "A candidate is not returned: it is not ranked", "d1 d2", "d2 a", "d1 d2"
    )
    yield choosing(
        "candidates-without-relevant", "The relevant document is no candidate", "d1", "d1 d2", "d2 d3"
    )
    yield choosing(
        "candidates-ties", "Tied with documents that are none", "d1", {"q1": tied("d3 d1 a d2")}, "d1 d2"
    )
    yield of_one(case("candidates-of-one", "Only one of two queries has candidates: the other ranks any document.",
                      {"q1": "d1", "q2": "d1"}, {"q1": "a d1", "q2": "a d1"}, ALL))  # fmt: skip
    both = choosing("candidates-and-excluded", "A candidate is excluded", "d1 d2", "d2 a d1", "d1 d2")
    yield replace(both, case=replace(both.case, excluded={"q1": ["d2"]}))
    own = excluding("excluded-and-self", "The query itself is dropped too", "d1", "q1 x d1", "x")
    yield replace(own, case=replace(own.case, conventions=replace(own.case.conventions, self_matches="drop")))
    every = choosing(
        "candidates-expected",
        "The mean over the orders of the candidates that tie",
        "d1",
        {"q1": tied("d1 a d2 d3")},
        "d1 d2 d3",
    )
    yield replace(
        every, case=replace(every.case, conventions=replace(every.case.conventions, ties="expected"))
    )


def excluding(name: str, shows: str, qrels: Judged, run: Ranked, excluded: str) -> Vector:
    """A vector of one query with documents that may not be ranked."""
    made = case(name, f"{shows}.", qrels, run, ALL)
    return replace(made, case=replace(made.case, excluded={"q1": excluded.split()}))


def choosing(name: str, shows: str, qrels: Judged, run: Ranked, candidates: str) -> Vector:
    """A vector of one query with candidates."""
    made = case(name, f"{shows}.", qrels, run, ALL)
    return replace(made, case=replace(made.case, candidates={"q1": candidates.split()}))


def of_one(made: Vector) -> Vector:
    """The vector with candidates of its first query alone."""
    return replace(made, case=replace(made.case, candidates={"q1": ["d1", "d2"]}))
