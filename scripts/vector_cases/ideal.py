"""Cut-offs, short lists, and what the ideal ranking holds."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case, down
from weir.plugins.conform.vectors import Vector

ABOUT = "The ideal ranking holds every judged document, cut at k; divisors do not shrink with short lists."
ALL = "nDCG@3 nDCG@10 nDCG nDCG(gain='exp')@10 AP AP@3 RR R@3 R@10 R_cap@3 P@3 P@10 Rprec"
FROM_RETRIEVED = "mlflow#24541 AskOFF-Search#4 search-relevance#191"


def cases() -> Iterator[Vector]:
    yield from retrieved_only()
    yield from cut_offs()
    yield from long_lists()


def retrieved_only() -> Iterator[Vector]:
    yield case(
        "ideal-not-retrieved",
        "One of three relevant documents is returned, at rank 1: nDCG is not 1.",
        "a b c",
        "a",
        ALL,
        FROM_RETRIEVED,
    )
    yield case(
        "ideal-graded-not-retrieved",
        "The best document is not returned: the ideal ranking still begins with it.",
        "a:3 b:1 c:1",
        "b c",
        ALL,
        FROM_RETRIEVED,
    )
    yield case(
        "ideal-short-list",
        "One document is returned where five are relevant: nDCG@10 is 0.339, not 1.",
        "a b c d e",
        "a",
        ALL + " nDCG@5",
        "mlflow#24541",
    )
    yield case(
        "ideal-best-of-list",
        "The list is in its best order, and better documents exist.",
        "a:3 b:2 c:1",
        "b c x",
        ALL,
        FROM_RETRIEVED,
    )
    yield case(
        "ideal-beyond-cut",
        "The ideal ranking is cut at k as well: three relevant ones in three places are perfect.",
        "a b c d e",
        "a b c x y",
        "nDCG@3 nDCG@5 R@3 R_cap@3 P@3 AP@3 NCG@3",
    )
    yield case(
        "ideal-order-of-judgments",
        "The ideal ranking is by grade, not in the order of the judgments.",
        "c:1 a:3 b:2",
        "a b c",
        ALL,
    )
    yield case(
        "nothing-relevant-returned",
        "Nothing relevant is returned: 0, although the ideal of the list would be 0 too.",
        "a b",
        "x y z",
        ALL,
        "catboost/benchmarks#19",
    )
    yield case(
        "above-one",
        "Ten relevant documents in ten places: 1, and not above it.",
        "a b c d e f g h i j",
        "a b c d e f g h i j",
        ALL,
        "search-relevance#191",
    )
    yield case(
        "recall-is-not-hit",
        "Recall is a share of the relevant documents; a hit is not a recall of 1.",
        "a b c d",
        "a x y z",
        "R@1 R@4 Success@1 Success@4 R",
        "memorybench#67",
    )
    yield case(
        "chunks-collapsed",
        "Documents collapsed from three chunks count once: recall is 1, not 3.",
        "a",
        {"q1": [("a", 3.0)]},
        "R@1 R@10 R_cap@10 P@1",
        "FlowCraft#128",
    )


def cut_offs() -> Iterator[Vector]:
    for k in (1, 2, 3, 4, 5, 6, 100, 1000):
        yield case(
            f"cut-at-{k}",
            f"Every measure that has a cut-off, cut at {k}, on a list of five with hits at ranks 2 and 4.",
            "b d z:2",
            "a b c d e",
            f"P@{k} R@{k} R_cap@{k} F@{k} Success@{k} AP@{k} RR@{k} nDCG@{k} "
            f"Judged@{k} Hole@{k} NCG@{k} RBP(p=0.8)@{k} ERR@{k}",
        )
    yield case(
        "relevant-beyond-cut",
        "The only relevant document stands one place below the cut-off.",
        "k",
        "a b c d e f g h i j k",
        "nDCG@10 RR@10 AP@10 R@10 Success@10 P@10 RR AP nDCG@11 nDCG",
    )
    yield case(
        "relevant-at-cut",
        "The only relevant document stands in the last place that counts.",
        "j",
        "a b c d e f g h i j k",
        "nDCG@10 RR@10 AP@10 R@10 Success@10 P@10",
    )
    yield case(
        "precision-of-short-list",
        "P@10 divides by 10, also where 2 documents are returned.",
        "a b",
        "a b",
        "P@10 P@2 SetP SetP@10 F@10 SetF@10",
    )
    yield case(
        "ap-divides-by-all",
        "AP@2 divides by all three relevant documents, not by those within reach.",
        "a b c",
        "a x b",
        "AP@1 AP@2 AP@3 AP R@2 R_cap@2 R_cap@10 Rprec nDCG@2",
        "pyserini#1527",
    )
    yield case(
        "capped-recall",
        "Two places, five relevant documents: R@2 is 2/5, R_cap@2 is 1.",
        "a b c d e",
        "a b c",
        "R@2 R_cap@2 R_cap@5 R_cap@10 NCG@2",
        "pyserini#1527",
    )
    yield case(
        "beyond-the-corpus",
        "The cut-off is larger than the list and than everything judged.",
        "a b:0",
        "b a",
        "P@1000 R@1000 nDCG@1000 AP@1000 RR@1000 Success@1000 R_cap@1000 Judged@1000 Hole@1000 ERR@1000",
    )
    yield case(
        "first-of-many",
        "The first hit at ranks 1, 2, 3 and 4 of four queries: RR is their mean.",
        {f"q{n}": "a" for n in range(1, 5)},
        {"q1": "a", "q2": "x a", "q3": "x y a", "q4": "x y z a"},
        "RR RR@3 nDCG@10 AP Success@2 P@1",
    )


def long_lists() -> Iterator[Vector]:
    names = [f"d{n:04d}" for n in range(1, 1201)]
    listed = [(d, float(len(names) - n)) for n, d in enumerate(names)]
    at = {1, 10, 11, 100, 101, 999, 1000, 1001, 1200}
    yield case(
        "thousand-and-more",
        "1200 documents with hits on both sides of the usual cut-offs.",
        {"q1": [(f"d{n:04d}", 1) for n in sorted(at)]},
        {"q1": listed},
        "P@10 P@100 P@1000 R@10 R@100 R@1000 R AP AP@1000 nDCG@10 nDCG@1000 nDCG RR NumRet NumRelRet",
    )
    yield case(
        "last-of-thousand",
        "The only relevant document stands at rank 1000.",
        {"q1": [("d1000", 1)]},
        {"q1": down(" ".join(names[:1000]))},
        "AP RR nDCG@1000 R@1000 R@999 nDCG RR@1000",
    )
