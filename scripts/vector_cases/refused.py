"""Input without a right answer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vector_cases.writing import case, down
from weir.plugins.conform.vectors import Vector

ABOUT = "Input without a right answer must be refused, not scored."
ALL = "nDCG@10 AP RR P@2 R@2"
TWICE = "mlflow#25965 mlflow#12361 llama_index#22683 gbrain#4607 pytrec_eval#50"


def cases() -> Iterator[Vector]:
    yield from duplicates()
    yield from scores()
    yield from judgments()


def duplicates() -> Iterator[Vector]:
    yield case(
        "twice-relevant",
        "A relevant document stands twice in a ranking: a recall of 2 is no recall.",
        "a",
        {"q1": [("a", 2.0), ("a", 1.0)]},
        ALL,
        TWICE,
    )
    yield case(
        "twice-not-relevant",
        "A document that is not relevant stands twice.",
        "a b:0",
        {"q1": [("b", 3.0), ("a", 2.0), ("b", 1.0)]},
        ALL,
        TWICE,
    )
    yield case(
        "twice-unjudged",
        "An unjudged document stands twice.",
        "a",
        {"q1": [("x", 3.0), ("x", 2.0), ("a", 1.0)]},
        ALL,
        TWICE,
    )
    yield case(
        "twice-same-score",
        "A document stands twice with one score.",
        "a",
        {"q1": [("a", 1.0), ("a", 1.0)]},
        ALL,
        TWICE,
    )
    yield case(
        "twice-apart",
        "A document stands twice, below the cut-off the second time.",
        "a",
        {"q1": [*down("a b c d e f g h i j k l"), ("a", 0.5)]},
        ALL,
        TWICE,
    )
    yield case(
        "twice-in-second-query",
        "The second query of two has a document twice.",
        {"q1": "a", "q2": "b"},
        {"q1": down("a"), "q2": [("b", 2.0), ("b", 1.0)]},
        ALL,
        TWICE,
    )
    yield case(
        "chunks-as-documents",
        "Chunks under the name of their document: recall of 3.0.",
        "a",
        {"q1": [("a", 3.0), ("a", 2.0), ("a", 1.0), ("b", 0.5)]},
        ALL + " R@3",
        "FlowCraft#128 late-chunking#18",
    )


def scores() -> Iterator[Vector]:
    for name, bad in (("nan", math.nan), ("inf", math.inf), ("minus-inf", -math.inf)):
        yield case(
            f"score-{name}-relevant",
            f"A score of {bad} for a relevant document.",
            "a",
            {"q1": [("a", bad), ("b", 1.0)]},
            ALL,
        )
        yield case(
            f"score-{name}-other",
            f"A score of {bad} for another document.",
            "a",
            {"q1": [("a", 1.0), ("b", bad)]},
            ALL,
        )
    yield case(
        "score-nan-all",
        "All scores are nan, as after a division by zero.",
        "a",
        {"q1": [("a", math.nan), ("b", math.nan)]},
        ALL,
    )
    yield case(
        "score-nan-unjudged",
        "A score of nan far down the list.",
        "a",
        {"q1": [*down("a b c d"), ("e", math.nan)]},
        ALL,
    )


def judgments() -> Iterator[Vector]:
    yield case("judgments-empty", "There are no judgments at all.", {}, {"q1": "a"}, ALL)
    yield case(
        "judgments-empty-query",
        "The judgments name one query and judge nothing.",
        {"q1": []},
        {"q1": "a"},
        ALL,
        "pytrec_eval#49",
    )
    yield case(
        "judged-twice-conflicting",
        "A document is judged twice, with two grades.",
        {"q1": [("a", 0), ("a", 1)]},
        "a b",
        ALL,
    )
    yield case(
        "judged-twice-agreeing",
        "A document is judged twice with one grade: its gain must not count twice.",
        {"q1": [("a", 1), ("a", 1), ("b", 1)]},
        "a b",
        ALL,
    )
    yield case("grade-nan", "A grade that is not a number.", {"q1": [("a", math.nan), ("b", 1)]}, "a b", ALL)
    yield case("grade-inf", "A grade that is infinite.", {"q1": [("a", math.inf), ("b", 1)]}, "a b", ALL)
    yield case(
        "err-beyond-scale",
        "A grade beyond the scale of ERR would satisfy with a chance above 1.",
        "a:5",
        "a",
        "ERR@10 nERR@10",
    )
