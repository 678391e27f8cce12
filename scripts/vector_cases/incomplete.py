"""Unjudged documents."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "Unjudged is not judged non-relevant: bpref, infAP, condensed lists, judged and unjudged shares."
SHARES = "Judged@1 Judged@3 Judged@10 Hole@1 Hole@3 Hole@10"
LISTS = "condensed(AP) condensed(nDCG@3) condensed(nDCG@10) condensed(P@3) condensed(RR) condensed(Rprec)"
MADE = "bpref infAP RBP(p=0.8) RBP_residual(p=0.8) AP nDCG@10"
COVERAGE = "search-relevance#25 search-relevance#407"


def cases() -> Iterator[Vector]:
    everything = f"{SHARES} {LISTS} {MADE}"
    for name, qrels, run, shows in [
        ("all-judged", "a b:0 c", "b a c", "Every document returned is judged"),
        ("none-judged", "a b:0", "x y z", "No document returned is judged"),
        ("unjudged-first", "a b:0", "x y a b", "Two unjudged documents stand first"),
        ("unjudged-between", "a b:0 c", "a x b y c", "Unjudged documents stand between judged ones"),
        ("unjudged-last", "a b", "a b x y z", "Unjudged documents stand last"),
        (
            "pooled-and-outside",
            "a b:0 c:-1 d",
            "b c x a d",
            "One pooled and one outside the pool stand above a hit",
        ),
        ("short-list", "a b:0 c", "x", "One unjudged document is all that is returned"),
        ("empty-list", "a b:0", "", "Nothing is returned"),
        (
            "negative-is-judged",
            "a:-1 b",
            "a b",
            "A grade below 0 is a judgment, of a document that condensing drops",
        ),
    ]:
        yield case(name, f"{shows}.", qrels, run, everything, COVERAGE)
    yield from preferences()
    yield from of_queries()


def preferences() -> Iterator[Vector]:
    for name, qrels, run, shows in [
        (
            "bpref-none-not-relevant",
            "a b",
            "a x b",
            "No document is judged not relevant: bpref is 1, not undefined",
        ),
        (
            "bpref-one-above-all",
            "a b c d:0",
            "d a b c",
            "One judged non-relevant document above all relevant ones",
        ),
        (
            "bpref-more-wrong-than-right",
            "a b:0 c:0 d:0 e:0",
            "b c a d e",
            "More judged non-relevant than relevant documents",
        ),
        (
            "bpref-more-right-than-wrong",
            "a b c d e:0",
            "a e b c d",
            "More relevant than judged non-relevant documents",
        ),
        ("bpref-not-found", "a b c:0", "c a", "A relevant document that is not returned adds nothing"),
        (
            "bpref-unjudged-above",
            "a b:0",
            "x y z a",
            "Unjudged documents above a hit do not count against it",
        ),
        (
            "bpref-bounded",
            "a b c:0 d:0 e:0 f:0",
            "c d e f a b",
            "No more than R wrong documents count: bpref is 0, not below",
        ),
    ]:
        yield case(name, f"{shows}.", qrels, run, "bpref infAP AP condensed(AP)")
    yield case("infap-first", "A hit at rank 1 adds 1.", "a", "a b", "infAP AP")
    yield case(
        "infap-pool",
        "Pooled documents above a hit, none of them judged.",
        "a b:-1 c:-1 d:0",
        "b c a d",
        "infAP bpref AP",
    )
    yield case(
        "infap-no-pool", "Above a hit stand only documents outside the pool.", "a", "x y a", "infAP bpref AP"
    )
    yield case(
        "condensed-then-cut",
        "A condensed list is cut after condensing: the third judged document is at rank 3.",
        "a b:0 c",
        "x y b z a c",
        "condensed(P@2) condensed(nDCG@2) condensed(AP@2) condensed(R@3) P@2",
        "pytrec_eval#29",
    )
    yield case(
        "condensed-ideal-stays",
        "Condensing shortens the ranking, not the ideal: a relevant document not returned still counts.",
        "a b",
        "x a",
        "condensed(nDCG@10) condensed(AP) condensed(R@10)",
    )


def of_queries() -> Iterator[Vector]:
    yield case(
        "judged-for-another-query",
        "A document judged for another query only is unjudged for this one.",
        {"q1": "a b:0", "q2": "c"},
        {"q1": "a c z", "q2": "c"},
        SHARES + " Judged@2 Hole@2 bpref",
        COVERAGE,
    )
    yield case(
        "shares-of-missing",
        "A query without an answer has a judged share of 0 and no hole.",
        {"q1": "a", "q2": "b"},
        {"q1": "a x"},
        SHARES,
    )
    yield case(
        "residual-of-missing",
        "Where nothing is returned everything is unknown: the residual is 1.",
        {"q1": "a", "q2": "b"},
        {"q1": "a x"},
        "RBP(p=0.8) RBP_residual(p=0.8) RBP_residual(p=0.8)@1",
    )
