"""Which queries count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "Every judged query counts: one without an answer scores 0 (missing=zero), or does not count (answered-only)."
ALL = "nDCG@10 AP RR R@10 P@1 Success@10"
UNANSWERED = "spiceai#12277 trectools#24 ranx#27"


def cases() -> Iterator[Vector]:
    for missing in ("zero", "answered-only"):
        yield from of(missing)
    for empty in ("zero", "left-out"):
        yield from of_nothing_relevant(empty)
    yield case(
        "query-without-judgments",
        "A query of the run that nobody judged is ignored.",
        "a",
        {"q1": "a", "q9": "z"},
        ALL,
        "mteb#5092",
    )
    yield case(
        "only-unknown-queries",
        "The run answers other queries than the judged ones: 0, not an empty mean.",
        "a",
        {"q9": "a"},
        ALL,
    )
    yield case(
        "query-with-empty-judgments",
        "A query that the judgments name without judging anything is not a judged query.",
        {"q1": "a", "q2": []},
        {"q1": "a", "q2": "b"},
        ALL,
        "pytrec_eval#49",
    )
    yield case(
        "empty-judgments-before",
        "A query without judgments does not change the ones after it.",
        {"q1": [], "q2": "a:0 b", "q3": "c"},
        {"q1": "x", "q2": "a b", "q3": "d c"},
        ALL + " bpref",
        "pytrec_eval#49",
    )
    yield case(
        "no-relevant-document",
        "A query whose judged documents are all not relevant counts 0.",
        {"q1": "a", "q2": "b:0"},
        {"q1": "a", "q2": "b"},
        ALL + " Rprec bpref R_cap@10 IAP nERR@10 NCG@10",
    )
    yield case(
        "no-relevant-document-found",
        "All judged documents are not relevant and none is returned.",
        {"q1": "a", "q2": "b:0"},
        {"q1": "a", "q2": "c"},
        ALL + " Rprec bpref",
    )
    yield case(
        "only-no-relevant",
        "The only query has no relevant document: 0, not an error and not 1.",
        "a:0 b:0",
        "a b",
        ALL + " Rprec bpref R_cap@10 NCG@10 Q",
        "catboost/benchmarks#19",
    )
    yield case(
        "only-negative-judgments",
        "The only judgments are negative: nothing is relevant.",
        "a:-1 b:-2",
        "a b",
        ALL + " Rprec bpref",
    )
    yield case(
        "which-queries-count",
        "One query answered, one missing, one without a relevant document, one unknown.",
        {"1": "a", "2": "b", "3": "c:0"},
        {"1": "a", "3": "c", "9": "z"},
        ALL + " Judged@10",
        UNANSWERED,
    )


def of(missing: str) -> Iterator[Vector]:
    def one(
        name: str, shows: str, qrels: dict[str, str], run: dict[str, Any], source: str = UNANSWERED
    ) -> Vector:
        counts = "it counts 0" if missing == "zero" else "it does not count"
        return case(f"{name}-{missing}", f"{shows}: {counts}.", qrels, run, ALL, source, missing=missing)

    yield one(
        "two-of-three",
        "Two of three queries are answered, both perfectly, the third is missing",
        {"q1": "a", "q2": "b", "q3": "c"},
        {"q1": "a", "q2": "b"},
    )
    yield one(
        "one-of-two-wrong",
        "One query is answered wrongly, the other is missing",
        {"q1": "a", "q2": "b"},
        {"q1": "x"},
    )
    yield one(
        "first-missing", "The first of the judged queries is missing", {"q1": "a", "q2": "b"}, {"q2": "x b"}
    )
    yield one(
        "empty-ranking",
        "A query is there with an empty ranking",
        {"q1": "a", "q2": "b"},
        {"q1": "a", "q2": []},
    )
    yield one(
        "missing-and-no-relevant",
        "A missing query has no relevant document either",
        {"q1": "a b", "q2": "c:0"},
        {"q1": "x a"},
    )
    yield one(
        "many-missing", "Nine of ten queries are missing", {f"q{n}": "a" for n in range(10)}, {"q3": "a b"}
    )
    yield one(
        "missing-and-unknown",
        "A judged query is missing and an unknown one is answered",
        {"q1": "a", "q2": "b"},
        {"q1": "b a", "q7": "b"},
    )
    yield one(
        "missing-graded",
        "A missing query with graded judgments",
        {"q1": "a:3 b:1", "q2": "c:2 d:1"},
        {"q1": "b a"},
    )


def of_nothing_relevant(empty: str) -> Iterator[Vector]:
    counts = "it counts 0" if empty == "zero" else "it does not count"
    for name, shows, qrels, run in [
        ("wrong", "A judged document that is not relevant is returned",
         {"q1": "a", "q2": "b:0"}, {"q1": "x a", "q2": "b"}),
        ("unanswered", "A query without a relevant document is not answered", {"q1": "a", "q2": "b:0"}, {"q1": "x a"}),
        ("negative", "All judgments of a query are negative", {"q1": "a:2", "q2": "b:-1"}, {"q1": "x a", "q2": "b"}),
        ("many", "Three of four queries have no relevant document",
         {"q1": "a:0", "q2": "b:0", "q3": "c", "q4": "d:0"}, {"q1": "a", "q2": "b", "q3": "x y c", "q4": "x"}),
    ]:  # fmt: skip
        yield case(
            f"nothing-relevant-{name}-{empty}",
            f"{shows}: {counts}.",
            qrels,
            run,
            ALL,
            "catboost/benchmarks#19",
            empty=empty,
        )
