"""Binary measures, sets, counts and interpolated precision."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "Binary measures, set measures, counts, points of the precision-recall curve."
POINT = " ".join(f"IPrec(recall={n / 10})" for n in range(11))
SETS = "SetP SetR SetF SetF(beta=2.0) SetAP NumRet NumRel NumRelRet F@3 F(beta=0.5)@3"


def cases() -> Iterator[Vector]:
    for name, qrels, run, shows in [
        ("hits-1-3", "a b c", "a x b", "Hits at ranks 1 and 3, one relevant document not found"),
        ("hits-2-4-5", "a b c", "x a y b c", "Hits at ranks 2, 4 and 5, all found"),
        ("hits-last", "a", "x y z a", "One hit in the last place"),
        ("hits-all", "a b c", "a b c", "Nothing but hits"),
        ("hits-none", "a b", "x y", "No hit"),
        ("hits-after-judged", "a b:0 c:0 d", "b c a d", "Hits after judged documents that are not relevant"),
    ]:
        yield case(
            f"binary-{name}",
            f"{shows}.",
            qrels,
            run,
            "AP AP@3 RR P@1 P@3 R@3 R R_cap@3 Success@1 Success@3 Rprec bpref",
        )
        yield case(f"sets-{name}", f"{shows}: as a set.", qrels, run, SETS)
        yield case(
            f"curve-{name}",
            f"{shows}: the points of the curve.",
            qrels,
            run,
            f"{POINT} IAP IAP(rounding='nearest')",
        )
    yield case(
        "curve-rounding",
        "Two and a tenth of three documents: trec_eval's arithmetic in doubles says two.",
        "a b c",
        "a b x c",
        "IPrec(recall=0.7) IPrec(recall=0.7,rounding='nearest') IPrec(recall=0.3) IPrec(recall=0.4)",
    )
    yield case(
        "curve-half",
        "Half of five documents: up is three, the nearest too.",
        "a b c d e",
        "a b x c y d",
        "IPrec(recall=0.5) IPrec(recall=0.5,rounding='nearest') "
        "IPrec(recall=0.25) IPrec(recall=0.25,rounding='nearest')",
    )
    yield case(
        "curve-cut",
        "The curve of the first three documents.",
        "a b",
        "x a y b",
        "IAP@3 IPrec(recall=0.5)@3 IPrec(recall=1.0)@3 IAP@4",
    )
    yield case(
        "rprec-fewer-returned",
        "R-precision divides by 4 relevant documents, although 2 are returned.",
        "a b c d",
        "a b",
        "Rprec P@4 R@4",
    )
    yield case(
        "rprec-more-returned", "R-precision looks at the first 2 of 4.", "a b", "a x b y", "Rprec P@2 R@2"
    )
    yield case(
        "f-weights",
        "F with recall weighing half, as much and twice.",
        "a b c d",
        "a x b",
        "F(beta=0.5)@3 F@3 F(beta=2.0)@3 SetF(beta=0.5) SetF SetF(beta=2.0) F(beta=0.0)@3",
    )
    yield case(
        "counts-of-two",
        "Counts of two queries: Weir means them, trec_eval adds them up.",
        {"q1": "a b", "q2": "c"},
        {"q1": "a x y", "q2": "z"},
        "NumRet NumRel NumRelRet NumRet@2 NumRel@1 NumRelRet@1",
    )
    yield case(
        "counts-missing",
        "Counts of a query without an answer: nothing returned, its relevant ones stay.",
        {"q1": "a", "q2": "b c"},
        {"q1": "a"},
        "NumRet NumRel NumRelRet SetP SetR SetF",
    )
    for p in ("0.0", "0.5", "0.8", "0.95"):
        yield case(
            f"rbp-{p}",
            f"Rank-biased precision with persistence {p}.",
            "a b c:0",
            "a x b c",
            f"RBP(p={p}) RBP_residual(p={p}) RBP(p={p})@2 RBP_residual(p={p})@2",
        )
    for beta in ("0.0", "1.0", "10.0"):
        yield case(
            f"q-beta-{beta}",
            f"Q-measure whose gains weigh {beta}.",
            "a:3 b:1 c:2",
            "b x a c",
            f"Q(beta={beta}) Q(beta={beta})@2 Q(beta={beta},gain='exp')",
        )
