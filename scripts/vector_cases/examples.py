"""Small cases on which released tools were seen to differ."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case, tied
from weir.plugins.conform.vectors import Vector

ABOUT = "Worked examples on which released tools give different numbers."


def cases() -> Iterator[Vector]:
    yield case(
        "tie-docid-desc",
        "Equal scores: d2, d10, d1 by descending identifier.",
        {"1": "d1"},
        {"1": tied("d1 d2 d10")},
        "RR nDCG@1 nDCG@3 RR@3",
        "beir#105",
    )
    yield case(
        "tie-string-order",
        "Identifiers compare as text: 9 before 10.",
        {"1": "9"},
        {"1": tied("10 9")},
        "RR nDCG@1",
    )
    yield case(
        "float32-scores",
        "Scores that are equal in 32 bits only; trec_eval 9 sees a tie.",
        {"1": "a"},
        {"1": [("a", 0.1234567891), ("b", 0.123456789)]},
        "RR nDCG@10",
    )
    yield case(
        "graded-ndcg",
        "Linear and exponential gains, condensed list, ERR.",
        {"1": "a:2 b:1 c:0 d:1"},
        {"1": "b x a"},
        "nDCG@3 nDCG@10 nDCG nDCG(gain='exp')@3 condensed(nDCG@3) ERR@3",
    )
    yield case(
        "linear-vs-exponential",
        "One ranking: .6138 with linear gains, .5478 with exponential ones.",
        {"1": "a:3 b:2 c:1 d:0"},
        {"1": "d c b a"},
        "nDCG@2 nDCG@10 nDCG(gain='exp')@2 nDCG(gain='exp')@10 ERR@10",
        "RankGPT#18",
    )
    yield case(
        "negative-judgment",
        "A grade of -1 is pooled and not judged.",
        {"1": "a:-1 b:1 c:2"},
        {"1": "a b c"},
        "AP bpref infAP nDCG@10",
    )
    yield case(
        "incomplete-judgments",
        "Judged, pooled and unseen documents in one ranking.",
        {"1": "r1 r2 n1:0 n2:0 n3:0 u2:-1"},
        {"1": "n1 r1 u1 u2 r2 n2"},
        "AP bpref P@5 infAP condensed(AP) condensed(nDCG@10)",
    )
    yield case(
        "bpref-no-judged-nonrelevant",
        "No document is judged not relevant.",
        {"1": "r1 r2"},
        {"1": "r1 x r2"},
        "bpref AP",
    )
    yield case(
        "rbp-and-residual",
        "Persistence .8: .2 (1 + .8^3), and .8^4 + .2 x .8 unknown.",
        {"1": "a b:0 c"},
        {"1": "a u b c"},
        "RBP(p=0.8) RBP_residual(p=0.8) Judged@2 Judged@4 Judged@10 Hole@2 Hole@4 Hole@10 ERR@10",
    )
    yield case(
        "judged-tie-order",
        "One order for every measure: Judged@1 and P@1 look at the same document.",
        {"1": "a b:0"},
        {"1": tied("a z")},
        "Judged@1 P@1 RR Hole@1",
        "ir_measures#18",
    )
    yield case(
        "cut-normalisation",
        "AP@k and R@k divide by all relevant documents, R_cap@k by at most k.",
        {"1": "a b c"},
        {"1": "a x b"},
        "R@1 R@2 R@3 AP@1 AP@2 AP@3 nDCG@2 Rprec R_cap@1 R_cap@2 R_cap@10",
    )
    yield case(
        "relevance-level-2",
        "A relevance level of 2 changes binary measures, not nDCG.",
        {"1": "a:1 b:2"},
        {"1": "a b"},
        "AP(rel=2) RR(rel=2) R(rel=2)@1 nDCG@10",
        "ranx#29",
    )
    yield case(
        "hole-vs-judged",
        "Judged for this query, not for any query.",
        {"1": "a b:0", "2": "c"},
        {"1": "a c z", "2": "c"},
        "Hole@1 Hole@2 Hole@3 Hole@5 Judged@2 Judged@3 Judged@5",
    )
    yield case(
        "one-divisor",
        "A missing query counts in every measure alike.",
        {"1": "b", "2": "c"},
        {"1": "b"},
        "RR@10 nDCG@10 RR AP",
    )
    for rule, value in (("keep", ".6309"), ("drop", "1")):
        yield case(
            f"identical-ids-{rule}",
            f"The query's own document first: nDCG@10 is {value} where self matches are {rule}ped."
            if rule == "drop"
            else f"The query's own document first: nDCG@10 is {value} where self matches are kept.",
            {"q1": "d1"},
            {"q1": [("q1", 9.0), ("d1", 1.0)]},
            "nDCG@10",
            "beir#206",
            self_matches=rule,
        )
    yield case(
        "graded-rbp",
        "RBP of grades: binary, or the grade as a share of the highest; never the raw sum.",
        {"1": "a:2 b:1 c:0"},
        {"1": "b a c"},
        "RBP(p=0.8) RBP(p=0.8,gain='scaled')",
    )
    yield case(
        "seven-of-ten",
        "Relevant documents at 1, 3, 4, 6, 7, 9 and 10 of ten.",
        "a c d f g i j",
        "a b c d e f g h i j",
        "AP nDCG@10 P@10 R@5 RR Rprec bpref",
    )
