"""Graded judgments."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case, down
from weir.plugins.conform.vectors import Vector

ABOUT = "Grades: linear and exponential gains, relevance levels, negative and huge grades."
GAINS = "nDCG@3 nDCG@10 nDCG nDCG(gain='exp')@3 nDCG(gain='exp')@10 DCG@3 DCG(gain='exp')@3"
BINARY = "AP RR P@3 R@3 Success@3 Rprec"
CASCADE = "ERR@3 ERR@10 nERR@10 RBP(p=0.8) RBP(p=0.8,gain='scaled') Q NCG@3"


def cases() -> Iterator[Vector]:
    yield from gains()
    yield from negative()
    yield from levels()
    yield from huge()
    yield from other_gains()


def gains() -> Iterator[Vector]:
    everything = f"{GAINS} {BINARY} {CASCADE}"
    yield case(
        "graded-worst-order",
        "Grades 3, 2, 1, 0 in the worst order.",
        "a:3 b:2 c:1 d:0",
        "d c b a",
        everything,
    )
    yield case(
        "graded-best-order",
        "Grades 3, 2, 1, 0 in the best order: every normalised gain is exactly 1.",
        "a:3 b:2 c:1 d:0",
        "a b c d",
        everything,
    )
    yield case(
        "graded-swap", "Two neighbours of different grade swapped.", "a:3 b:2 c:1", "b a c", everything
    )
    yield case("graded-gap", "Grades 1 and 3 without a 2 between them.", "a:1 b:3", "a b", everything)
    yield case(
        "graded-with-unjudged",
        "An unjudged document between graded ones gains nothing and takes its place.",
        "a:2 b:1 c:0 d",
        "b x a",
        everything,
    )
    yield case(
        "graded-all-one",
        "Grades that are all 2: gains are not normalised to 1.",
        "a:2 b:2",
        "x a b",
        everything,
    )
    yield case(
        "graded-binary",
        "Binary judgments give one nDCG with linear and exponential gains.",
        "a b:0 c",
        "b a c",
        everything,
    )
    yield case(
        "graded-scale-of-five",
        "The five grades of TREC's deep learning and web tracks.",
        "a:4 b:3 c:2 d:1 e:0",
        "c e a d b",
        everything,
    )
    yield case(
        "graded-not-a-set",
        "Graded judgments are not a set: the order of two relevant documents matters.",
        "a:3 b:1",
        "b a",
        everything,
        "sentence-transformers#1349",
    )
    yield case(
        "graded-steep",
        "A grade of 10 outweighs all others with exponential gains.",
        "a:10 b:1 c:1",
        "b c a",
        GAINS + " NCG(gain='exp')@2 Q(gain='exp')",
    )
    for scale in (1, 2, 5, 100):
        yield case(
            f"err-scale-{scale}",
            f"ERR on a scale whose highest grade is {scale}, whatever the judgments hold.",
            "a b",
            "x a b",
            f"ERR(max_grade={scale})@10 nERR(max_grade={scale})@10 ERR(max_grade={scale})@2",
        )


def negative() -> Iterator[Vector]:
    everything = f"{GAINS} {BINARY} bpref infAP Judged@3 NCG@3 Q ERR@10"
    yield case(
        "negative-first",
        "A grade of -1 at rank 1 gains nothing, and takes nothing away.",
        "a:-1 b:1 c:2",
        "a b c",
        everything,
    )
    yield case("negative-lowers-nothing", "A grade of -2 at rank 2.", "a:2 b:-2 c:1", "a b c", everything)
    yield case(
        "negative-in-ideal",
        "A negative grade that is not returned leaves the ideal ranking alone.",
        "a:2 b:-1",
        "a",
        everything,
    )
    yield case(
        "negative-only-returned",
        "Only documents with negative grades are returned: 0, not below 0.",
        "a:-1 b:-3 c:2",
        "a b",
        everything,
    )
    yield case(
        "negative-many",
        "Many negative grades, as in a filter for spam.",
        "a:-2 b:-2 c:-2 d:1 e:-2",
        "a b d c e",
        everything,
    )
    yield case(
        "pooled-not-judged",
        "A grade of -1 is pooled and not judged: bpref passes over it.",
        "a:1 b:-1 c:0",
        "b c a",
        everything,
    )
    yield case(
        "minus-one-is-not-zero",
        "The same with 0 in place of -1: now bpref counts it.",
        "a:1 b:0 c:0",
        "b c a",
        everything,
    )


def levels() -> Iterator[Vector]:
    at = "AP{} RR{} P{}@2 R{}@2 Success{}@1 Rprec{} R_cap{}@1 SetP{} SetF{} NumRel{} NumRelRet{} IAP{}"
    for level in (1, 2, 3):
        inside = f"(rel={level})" if level > 1 else ""
        yield case(
            f"relevant-from-{level}",
            f"Binary measures where grades from {level} are relevant.",
            "a:1 b:2 c:3 d:0",
            "a d b c",
            at.replace("{}", inside) + " nDCG@3",
            "ranx#29",
        )
    yield case(
        "level-leaves-gains",
        "The relevance level belongs to binary measures: nDCG still counts grade 1.",
        "a:1 b:2",
        "a b",
        "AP(rel=2) RR(rel=2) R(rel=2)@1 nDCG@10",
        "ranx#29",
    )
    yield case(
        "level-above-all",
        "No grade reaches the level: 0.",
        "a:1 b:1",
        "a b",
        "AP(rel=2) RR(rel=2) P(rel=2)@2 R(rel=2)@2 Rprec(rel=2)",
    )
    yield case(
        "level-zero",
        "From grade 0 every judged document is relevant, and no unjudged one.",
        "a:0 b:1 c:-1",
        "x a c b",
        "AP(rel=0) P(rel=0)@3 R(rel=0)@3 NumRel(rel=0) RR(rel=0)",
    )
    yield case(
        "level-bpref",
        "Below the level and from 0 on is judged not relevant: grade 1 counts against bpref(rel=2).",
        "a:2 b:1 c:0 d:2",
        "b a c d",
        "bpref bpref(rel=2) infAP(rel=2)",
    )
    yield case(
        "partly-relevant-first",
        "MS MARCO's scale: grade 1 is related, from 2 it answers.",
        "a:1 b:3 c:2 d:0",
        "a b d c",
        "AP(rel=2) RR(rel=2)@10 R(rel=2)@100 nDCG@10 RR@10",
    )


def huge() -> Iterator[Vector]:
    yield case(
        "huge-grade",
        "A grade of 10000 is one grade among others.",
        "a:10000 b:1",
        "b a",
        "nDCG@2 nDCG@10 DCG@2 AP NCG@1",
    )
    yield case(
        "huge-and-small",
        "Small gains beside a huge one are not lost.",
        "a:16384 b:1 c:1",
        "a x b c",
        "nDCG@10 DCG@10 nDCG@1 NCG@2",
    )
    yield case(
        "huge-exponential",
        "Exponential gains of a grade of 60 need 61 bits.",
        "a:60 b:59",
        "b a",
        "nDCG(gain='exp')@2 NCG(gain='exp')@1",
    )
    yield case(
        "grade-of-hundred",
        "A scale from 0 to 100, as of percentages.",
        "a:100 b:75 c:50 d:25",
        "b a d c",
        "nDCG@4 nDCG@2 DCG@4 AP(rel=50) P(rel=75)@2",
    )
    yield case(
        "many-documents",
        "Forty judged documents of four grades, returned in an order that mixes them.",
        {"q1": [(f"d{n}", n % 4) for n in range(40)]},
        {"q1": down(" ".join(f"d{n * 7 % 40}" for n in range(40)))},
        f"{GAINS} AP RR P@10 R@10 Rprec bpref IAP ERR@20 RBP(p=0.95) Q NCG@10",
    )


def other_gains() -> Iterator[Vector]:
    yield case(
        "gain-table",
        "Gains from a table: grade 1 is worth 1, grade 2 worth 3, others themselves.",
        "a:2 b:1 c:3",
        "b a c",
        "nDCG(gain='1=1,2=3')@3 nDCG(gain='1=1,2=3') DCG(gain='1=1,2=3')@2 NCG(gain='1=1,2=3')@1",
    )
    yield case(
        "gain-table-turned",
        "A table that values a lower grade more: the ideal ranking begins with it.",
        "a:2 b:1",
        "a b",
        "nDCG(gain='1=5,2=1')@2 nDCG(gain='1=5,2=1')@1 DCG(gain='1=5,2=1')@2",
    )
    yield case(
        "discount-original",
        "Divided by log2(rank) from rank 2 on: ranks 1 and 2 count alike.",
        "a:2 b:1 c:1",
        "b a c",
        "DCG(discount='original')@3 nDCG(discount='original')@3 nDCG(discount='original')",
    )
    yield case(
        "base-ten",
        "Logarithms to the base 10: the first ten ranks are not discounted by the original rule.",
        "a:2 l:1",
        "a b c d e f g h i j k l",
        "DCG(base=10.0) DCG(base=10.0,discount='original') nDCG(base=10.0,discount='original') IDCG IDCG@1",
    )
    yield case(
        "rr-of-best",
        "The first document of the highest grade, in place of the first relevant one.",
        "a:1 b:3 c:3",
        "a b c",
        "RR RR(of='best') RR(of='best')@1",
    )
    yield case(
        "rprec-times",
        "Precision after half, and after twice as many documents as are relevant.",
        "a b c",
        "a x b y z c",
        "Rprec Rprec(times=0.5) Rprec(times=2.0)",
    )
