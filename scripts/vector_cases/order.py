"""What decides the order, other than ties."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case, down
from weir.plugins.conform.vectors import Vector

ABOUT = "Scores decide the order: not the rank column, not the order of the input, not fewer digits."
ALL = "nDCG@3 nDCG@10 AP RR P@1 P@3 R@2 Success@1"


def cases() -> Iterator[Vector]:
    yield case(
        "worst-first-input",
        "The input lists the worst document first: the scores decide, not the lines.",
        "a b",
        {"q1": down("a b c d")[::-1]},
        ALL,
    )
    yield case(
        "shuffled-input",
        "The input is in no order at all.",
        "a b",
        {"q1": [("c", 2.0), ("a", 4.0), ("d", 1.0), ("b", 3.0)]},
        ALL,
    )
    yield case(
        "negative-scores",
        "Negative scores, as of logarithms of probabilities: -1 is better than -2.",
        "a c",
        {"q1": [("a", -1.0), ("b", -2.0), ("c", -3.5)]},
        ALL,
    )
    yield case(
        "negative-and-positive",
        "Scores on both sides of zero.",
        "a c",
        {"q1": [("c", -0.5), ("b", 0.0), ("a", 0.5)]},
        ALL,
    )
    yield case(
        "distances",
        "Distances given as they are rank the farthest document first; a tool does not guess.",
        "near",
        {"q1": [("near", 0.1), ("far", 0.9)]},
        ALL,
    )
    yield case(
        "tiny-scores",
        "Scores far below what a float can hold.",
        "a c",
        {"q1": [("a", 3e-300), ("b", 2e-300), ("c", 1e-300)]},
        ALL,
    )
    yield case(
        "tiny-negative-scores",
        "Negative scores far below what a float can hold.",
        "a",
        {"q1": [("b", -2e-300), ("a", -1e-300)]},
        ALL,
    )
    yield case(
        "large-scores",
        "Scores far beyond what a float can hold.",
        "a c",
        {"q1": [("a", 3e300), ("b", 2e300), ("c", 1e300)]},
        ALL,
    )
    yield case(
        "smallest-double",
        "The smallest positive double is larger than zero.",
        "a",
        {"q1": [("b", 0.0), ("a", 5e-324)]},
        ALL,
    )
    yield case(
        "beyond-24-bits",
        "16777217 and 16777216 are one number as floats, two as doubles.",
        "a",
        {"q1": [("b", 16777216.0), ("a", 16777217.0)]},
        ALL,
    )
    yield case(
        "adjacent-doubles",
        "0.1 + 0.2 is larger than 0.3, by the last bit.",
        "a",
        {"q1": [("b", 0.3), ("a", 0.1 + 0.2)]},
        ALL,
    )
    yield case(
        "whole-scores",
        "Scores that are whole numbers, as quantised impacts.",
        "a b",
        {"q1": [("a", 3), ("c", 2), ("b", 1)]},
        ALL,
    )
    yield case(
        "seconds-since-1970",
        "Scores of a large common size, apart by less than a float can tell.",
        "b",
        {"q1": [("a", 1700000000.25), ("b", 1700000000.5), ("c", 1700000000.0)]},
        ALL,
    )
    yield case(
        "cosines",
        "Cosines that differ in the eighth digit.",
        "a",
        {"q1": [("b", 0.87654321), ("a", 0.876543211)]},
        ALL,
        "mteb#4932",
    )
    yield case(
        "order-of-queries",
        "Queries in different orders in the two files.",
        {"q2": "a", "q1": "b", "q10": "c"},
        {"q10": "a b c", "q1": "b", "q2": "b a"},
        ALL,
    )
    yield case("single-document", "One document, relevant.", "a", "a", ALL + " Rprec bpref IAP")
    yield case("single-wrong-document", "One document, not relevant.", "a", "b", ALL + " Rprec bpref IAP")
    for ties, bits in (("trec", 64), ("trec9", 32)):
        pair = {"q1": [("a", 0.1234567891), ("b", 0.123456789)]}
        yield case(
            f"float32-tie-{bits}",
            f"Scores equal in 32 bits and not in 64, compared in {bits} bits.",
            "a",
            pair,
            ALL,
            "mteb#4932",
            ties=ties,
        )
    yield case(
        "single-precision-large",
        "As floats 3e300 and 2e300 are both infinite, hence tied.",
        "a",
        {"q1": [("a", 3e300), ("b", 2e300)]},
        ALL,
        ties="trec9",
    )
    yield case(
        "single-precision-tiny",
        "As floats 2e-300 and 1e-300 are both zero, hence tied.",
        "a",
        {"q1": [("a", 2e-300), ("b", 1e-300)]},
        ALL,
        ties="trec9",
    )
    yield case(
        "single-precision-24-bits",
        "As floats 16777217 and 16777216 are tied.",
        "a c",
        {"q1": [("a", 16777217.0), ("b", 16777216.0), ("c", 1.0)]},
        ALL,
        ties="trec9",
    )
    yield case(
        "single-precision-apart",
        "Scores that floats can tell keep their order.",
        "a c",
        {"q1": [("a", 0.5), ("b", 0.25), ("c", 0.125)]},
        ALL,
        ties="trec9",
    )
