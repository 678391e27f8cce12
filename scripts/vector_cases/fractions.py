"""Judgments with fractions: averaged raters, click models, gains kept as grades.

Until 0.2 a fraction was input to refuse, as no measure said what it made of one. Now each says it: gains take the
grade as it is, relevance begins at the level, which is 1 unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case, tied
from weir.plugins.conform.vectors import Vector

ABOUT = "Grades with fractions: gains take them as they are, what asks for relevance begins at its level."
GAINS = "nDCG@10 nDCG@1 nDCG DCG@2 NCG@2 nDCG(gain='exp')@10 DCG(gain='exp')@2"
BINARY = "AP RR P@2 R@2 Success@2 Rprec SetP SetF"
CASCADE = "ERR@10 nERR@10 Q RBP(p=0.8) RBP(p=0.8,gain='scaled') RBP_residual Judged@2"


def cases() -> Iterator[Vector]:
    yield from sizes()
    yield from relevance()
    yield from conventions()


def sizes() -> Iterator[Vector]:
    everything = f"{GAINS} {BINARY} {CASCADE}"
    yield case(
        "grade-half",
        "A grade of 0.5 gains one half, and is below 1, where relevance begins.",
        "a:0.5 b:1",
        "a b",
        everything,
    )
    yield case(
        "fractions-only",
        "No grade reaches 1: gains count, and nothing is relevant.",
        "a:0.25 b:0.5 c:0",
        "a c b",
        everything,
    )
    yield case(
        "gains-as-grades",
        "Gains of 1, 0.1, 0.01 and 0 in the place of grades, as of shopping queries.",
        "a:0.01 b:1 c:0.1 d:0",
        "a c b d",
        everything,
    )
    yield case(
        "averaged-raters",
        "The mean of three raters on a scale from 0 to 3.",
        "a:2.3333333333333335 b:1.6666666666666667 c:0.3333333333333333 d:0 e:3",
        "c a x e b d",
        everything,
    )
    yield case(
        "cut-would-tie",
        "Grades 1.9 and 1.1: who cuts fractions off has both as 1.",
        "a:1.9 b:1.1",
        "b a",
        everything,
    )
    yield case(
        "cut-would-vanish",
        "Grades of 0.999 and 0.001: who cuts fractions off has nothing left.",
        "a:0.999 b:0.001",
        "b a",
        everything,
    )
    yield case(
        "whole-as-double",
        "Grades 2.0 and 1.0 are 2 and 1.",
        {"q1": [("a", 2.0), ("b", 1.0), ("c", 0.0)]},
        "b c a",
        everything,
    )
    yield case(
        "fraction-table",
        "A table of gains for grades with fractions, those left out worth themselves.",
        "a:0.5 b:1 c:1.5",
        "a b c",
        "nDCG(gain='0.5=2,1=3')@3 DCG(gain='0.5=2,1=3')@3 NCG(gain='0.5=2')@1",
    )
    yield case(
        "fraction-discounts",
        "Fractions under the other discount and another base.",
        "a:0.5 b:1.5 c:2.5",
        "a b c",
        "DCG(discount='original') nDCG(discount='original')@2 DCG(base=10.0) IDCG@2",
    )


def relevance() -> Iterator[Vector]:
    at = "AP{} RR{} P{}@2 R{}@2 Success{}@1 Rprec{} R_cap{}@1 SetP{} SetF{} NumRel{} NumRelRet{} IAP{} bpref{} infAP{}"
    for level in ("0.5", "0.1", "1.5"):
        yield case(
            f"relevant-from-{level}",
            f"Binary measures where grades from {level} are relevant.",
            "a:0.1 b:0.5 c:1.5 d:0 e:0.4999",
            "e a d b c",
            at.replace("{}", f"(rel={level})"),
        )
    yield case(
        "best-of-fractions",
        "The first document of the highest grade, which is below 1.",
        "a:0.2 b:0.7 c:0.7",
        "a b c",
        "RR RR(of='best') RR(of='best',rel=0.01)",
    )
    yield case(
        "negative-fraction",
        "A grade of -0.5 is pooled and not judged, as -1 is; 0.5 is judged, not relevant.",
        "a:1 b:-0.5 c:0.5 d:0",
        "b c a d",
        f"{GAINS} {BINARY} bpref infAP condensed(AP) condensed(nDCG@2)",
    )


def conventions() -> Iterator[Vector]:
    asked = "nDCG@2 DCG@2 NCG@1 AP(rel=0.5) RR(rel=0.5) ERR@10 Q nDCG(gain='exp')@2"
    for rule in ("expected", "worst", "best"):
        yield case(
            f"fractions-ties-{rule}",
            f"Tied documents with fractions: {rule}.",
            "a:0.5 b:1.5 c:0.25",
            {"q1": tied("a b c x")},
            asked,
            ties=rule,
        )
    yield case(
        "fractions-empty-left-out",
        "A query whose best grade is 0.5 has nothing relevant, and leaves the mean.",
        {"q1": "a:0.5 b:0", "q2": "a:1 b:0.5"},
        {"q1": "a b", "q2": "b a"},
        "nDCG@10 AP P@2",
        empty="left-out",
    )
    yield case(
        "fractions-unanswered",
        "A judged query with fractions that nobody answers scores 0.",
        {"q1": "a:0.5", "q2": "a:0.5 b:1"},
        {"q2": "a b"},
        "nDCG@10 AP(rel=0.5) R@2",
    )
