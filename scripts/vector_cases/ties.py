"""Equal scores."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import Judged, Ranked, case, down, tied
from weir.plugins.conform.vectors import Vector

ABOUT = "Equal scores: by descending identifier (ties=trec), the mean over all orders (expected), the worst, the best."
ALL = "nDCG@1 nDCG@3 nDCG@10 AP RR P@1 P@3 R@1 R@3 Success@1"
FIVE = "d0 d1 d2 d3 d4"
CONSTANT = "beir#105 mteb#5092"


def cases() -> Iterator[Vector]:
    yield from constant_scorer()
    yield from cut_inside_a_tie()
    yield from order_of_identifiers()
    yield from groups_of_ties()
    yield from expected()
    yield from ends()


def constant_scorer() -> Iterator[Vector]:
    yield case(
        "constant-first",
        "A constant scorer whose one relevant document comes first in the input and last by identifier.",
        "d0",
        {"q1": tied(FIVE)},
        ALL + " AP@3 RR@3 R_cap@1",
        CONSTANT,
    )
    yield case(
        "constant-last",
        "A constant scorer whose one relevant document comes last in the input: the same value as when it comes first.",
        "d0",
        {"q1": tied("d1 d2 d3 d4 d0")},
        ALL + " AP@3 RR@3 R_cap@1",
        CONSTANT,
    )
    yield case(
        "constant-best-identifier",
        "A constant scorer whose relevant document has the largest identifier: it ranks first.",
        "d4",
        {"q1": tied(FIVE)},
        ALL,
        CONSTANT,
    )
    yield case(
        "constant-zero",
        "All scores are 0: a tie like any other.",
        "d1 d3",
        {"q1": tied(FIVE, 0.0)},
        ALL,
        "mteb#5092",
    )
    yield case(
        "constant-negative",
        "All scores are -1: a tie like any other.",
        "d1 d3",
        {"q1": tied(FIVE, -1.0)},
        ALL,
    )
    yield case(
        "constant-graded",
        "A constant scorer with graded judgments.",
        "d0:3 d1:2 d2:1 d3:0",
        {"q1": tied(FIVE)},
        "nDCG@2 nDCG@5 nDCG(gain='exp')@3 DCG@3 ERR@3 NCG@2 Q@3 RBP(p=0.8)",
        "mteb#5092",
    )
    yield case(
        "constant-two-queries",
        "A constant scorer is the same scorer whatever the relevant document is called.",
        {"q1": "d0", "q2": "d4"},
        {"q1": tied(FIVE), "q2": tied(FIVE)},
        ALL,
        CONSTANT,
    )
    yield case(
        "zeros-of-both-signs",
        "0.0 and -0.0 are equal, so the identifier decides.",
        "a",
        {"q1": [("a", 0.0), ("b", -0.0)]},
        "RR nDCG@1 nDCG@10 AP P@1",
    )


def cut_inside_a_tie() -> Iterator[Vector]:
    for k in range(1, 7):
        yield case(
            f"cut-inside-tie-{k}",
            f"The cut-off {k} falls into or beside a group of four documents with one score.",
            "b d f",
            {"q1": [("a", 3.0), *tied("b c d e", 2.0), ("f", 1.0)]},
            f"nDCG@{k} P@{k} R@{k} AP@{k} RR@{k} Success@{k} R_cap@{k} Judged@{k}",
            "trectools#26",
        )
    yield case(
        "cut-inside-tie-graded",
        "A cut-off inside a tie takes the graded documents with the largest identifiers.",
        "b:1 c:3 d:2",
        {"q1": tied("b c d e", 2.0)},
        "nDCG@1 nDCG@2 nDCG(gain='exp')@2 DCG@2 ERR@2 Q@2",
    )


def order_of_identifiers() -> Iterator[Vector]:
    pairs = {
        "strings-not-numbers": ("9", "10", "Identifiers compare as text: 9 stands before 10."),
        "prefix": ("ab", "a", "An identifier stands before its own beginning: ab before a."),
        "case": ("a", "A", "Small letters stand before capital ones, as bytes do."),
        "leading-zero": ("1", "01", "1 stands before 01."),
        "accent": ("\u00e9", "z", "Bytes beyond ASCII are the largest: é stands before z."),
        "composed": ("\u00e9", "e\u0301", "Two spellings of é; the composed one has the larger bytes."),
        "beyond-16-bits": ("\U00010000", "\uff5e", "Code points compare by their UTF-8 bytes, not by UTF-16 units."),
        "hyphen": ("a_1", "a-1", "An underscore stands before a hyphen."),
        "digits-and-letters": ("d10", "D9", "As bytes, d10 stands before D9."),
        "eight-bytes": ("abcdefghb", "abcdefgha", "Identifiers that differ in the ninth byte only."),
        "long-prefix": ("document-000000000002", "document-000000000001", "They differ in the last of 21 bytes."),
    }  # fmt: skip
    for name, (first, second, shows) in pairs.items():
        for relevant in (first, second):
            which = "first" if relevant == first else "second"
            yield case(
                f"tie-order-{name}-{which}",
                shows,
                {"q1": [(relevant, 1)]},
                {"q1": [(second, 1.0), (first, 1.0)]},
                "RR nDCG@1 nDCG@10 P@1 AP",
                "ir_measures#18" if name == "strings-not-numbers" else "",
            )


def groups_of_ties() -> Iterator[Vector]:
    blocks = [*tied("a b c", 3.0), *tied("d e", 2.0), *tied("f g h", 1.0)]
    yield case(
        "three-groups", "Three groups of ties, each put in order on its own.", "a d h", {"q1": blocks}, ALL
    )
    yield case(
        "three-groups-reversed",
        "The same three groups with the input in the opposite order: the same values.",
        "a d h",
        {"q1": blocks[::-1]},
        ALL,
    )
    yield case(
        "three-groups-interleaved",
        "The same three groups with the input interleaved: the same values.",
        "a d h",
        {"q1": blocks[::3] + blocks[1::3] + blocks[2::3]},
        ALL,
    )
    yield case(
        "tie-of-unjudged",
        "A tie between documents that nobody judged moves no value.",
        "a",
        {"q1": [("x", 2.0), ("y", 2.0), ("a", 1.0)]},
        ALL,
    )
    yield case(
        "tie-of-equal-grades",
        "A tie between documents of one grade moves no value.",
        "a:2 b:2 c",
        {"q1": [("a", 2.0), ("b", 2.0), ("c", 1.0)]},
        "nDCG@1 nDCG@3 AP RR",
    )
    yield case(
        "tie-judged-and-unjudged",
        "A relevant document tied with one that nobody judged.",
        "a b:0",
        {"q1": [("a", 1.0), ("z", 1.0)]},
        "Judged@1 P@1 RR Hole@1 nDCG@1 bpref",
        "ir_measures#18",
    )
    yield case(
        "binary-scores",
        "Scores of 0 and 1 only, as a classifier gives them.",
        "a c e",
        {"q1": [(d, float(n % 2)) for n, d in enumerate("abcdef")]},
        ALL,
        "mteb#5092",
    )
    yield case(
        "quantised-scores",
        "Scores rounded to a tenth, as int8 vectors give them.",
        "a d:2 f",
        {"q1": [("a", 0.3), ("b", 0.3), ("c", 0.2), ("d", 0.2), ("e", 0.2), ("f", 0.1)]},
        "nDCG@3 nDCG@10 AP RR P@3 R@3",
        "mteb#4932",
    )


def expected() -> Iterator[Vector]:
    every = "nDCG@1 nDCG@3 nDCG@10 AP RR P@1 P@3 R@3 Success@1"
    yield case(
        "expected-constant",
        "The mean over all orders of five tied documents, one relevant: RR is (1 + 1/2 + ... + 1/5) / 5.",
        "d0",
        {"q1": tied(FIVE)},
        every,
        "mteb#5092",
        ties="expected",
    )
    yield case(
        "expected-constant-two",
        "The mean over all orders of five tied documents, two relevant.",
        "d0 d3",
        {"q1": tied(FIVE)},
        every + " AP@2 RR@2",
        ties="expected",
    )
    yield case(
        "expected-all-relevant",
        "Where all tied documents are relevant the order does not matter.",
        "a b c",
        {"q1": tied("a b c")},
        every,
        ties="expected",
    )
    yield case(
        "expected-none-relevant",
        "Where no tied document is relevant every order scores 0.",
        "x",
        {"q1": tied("a b c")},
        every,
        ties="expected",
    )
    yield case(
        "expected-no-ties",
        "Without ties the mean over orders is the value of the only order.",
        "a c",
        "b a c d",
        every,
        ties="expected",
    )
    yield case(
        "expected-groups",
        "Two groups of ties, whose orders are independent of each other.",
        "a d",
        {"q1": [*tied("a b c", 2.0), *tied("d e", 1.0)]},
        every,
        ties="expected",
    )
    yield case(
        "expected-cut-inside",
        "A cut-off inside a tie counts each document by its chance to be above it.",
        "a c f",
        {"q1": [("f", 3.0), *tied("a b c d", 2.0)]},
        "P@2 R@2 nDCG@2 R_cap@2 Success@2 AP@2 RR@2 NumRelRet@2",
        ties="expected",
    )
    yield case(
        "expected-graded",
        "Graded documents tied: the mean gain falls on every rank of the tie.",
        "a:3 b:1 c:0",
        {"q1": tied("a b c d")},
        "nDCG@2 nDCG@10 DCG@3 nDCG(gain='exp')@3 NCG@2 DCG(gain='exp')@2",
        ties="expected",
    )
    yield case(
        "expected-cascade",
        "ERR, RBP and Q over all orders of a tie.",
        "a:3 b:1",
        {"q1": [("z", 2.0), *tied("a b c", 1.0)]},
        "ERR@3 RBP(p=0.8) Q Q@2 nERR@3",
        ties="expected",
    )
    yield case(
        "expected-incomplete",
        "bpref, infAP and judged shares over all orders of a tie.",
        "a b:0 c d:-1",
        {"q1": tied("a b c d u")},
        "bpref infAP Judged@2 Hole@2 RBP_residual(p=0.8)@2",
        ties="expected",
    )
    yield case(
        "expected-condensed",
        "A condensed list keeps the ties of the documents that are left.",
        "a b:0 c",
        {"q1": tied("a b c u v")},
        "condensed(AP) condensed(nDCG@2) condensed(RR) condensed(P@2)",
        ties="expected",
    )
    yield case(
        "expected-rprec",
        "R-precision and set measures over all orders of a tie.",
        "a b",
        {"q1": tied("a b c d")},
        "Rprec SetP@2 SetR@2 SetF@2 SetAP@2 F@2 IPrec(recall=0.5) IAP",
        ties="expected",
    )
    yield case(
        "expected-missing-query",
        "The mean over orders and a judged query without an answer, which counts 0.",
        {"q1": "a", "q2": "a"},
        {"q1": tied("a b")},
        every,
        ties="expected",
    )
    yield case(
        "expected-two-queries",
        "Each query's ties are its own.",
        {"q1": "a", "q2": "b:2 c"},
        {"q1": tied("a b"), "q2": [*tied("b x", 2.0), *down("c")]},
        every,
        ties="expected",
    )
    yield case(
        "expected-six",
        "All 720 orders of six tied documents.",
        "a:2 c d:0 f",
        {"q1": tied("a b c d e f")},
        "nDCG@3 AP RR P@3 R@3",
        ties="expected",
    )


def ends() -> Iterator[Vector]:
    every = "nDCG@1 nDCG@3 AP RR P@1 P@3 R@3 Success@1"
    for ties in ("worst", "best"):

        def one(
            name: str, shows: str, qrels: Judged, run: Ranked, measures: str = every, ties: str = ties
        ) -> Vector:
            return case(
                f"{ties}-{name}", f"The {ties} order: {shows}.", qrels, run, measures, "mteb#5092", ties=ties
            )

        yield one("constant", "five tied documents, one of them relevant", "d0", {"q1": tied(FIVE)})
        yield one("constant-two", "five tied documents, two of them relevant", "d0 d3", {"q1": tied(FIVE)})
        yield one("groups", "two groups of ties", "a d", {"q1": [*tied("a b c", 2.0), *tied("d e", 1.0)]})
        yield one("no-ties", "without ties there is one order", "a c", "b a c d")
        yield one(
            "graded",
            "documents of three grades tied",
            "a:3 b:1 c:0",
            {"q1": tied("a b c d")},
            "nDCG@2 nDCG@10 DCG@3 nDCG(gain='exp')@3 NCG@2 ERR@3 Q RBP(p=0.8)",
        )
        yield one(
            "incomplete",
            "judged, pooled and unseen documents tied",
            "a b:0 c d:-1",
            {"q1": tied("a b c d u")},
            "bpref infAP Judged@2 Hole@2 condensed(AP)",
        )
        yield one(
            "two-queries",
            "each query has its own, and an unanswered one counts 0",
            {"q1": "a", "q2": "b", "q3": "c"},
            {"q1": tied("a x"), "q2": tied("x b y")},
        )
