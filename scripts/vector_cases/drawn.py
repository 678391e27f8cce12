"""Cases drawn at random from a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "Drawn at random: rankings and judgments of one to four queries with ties, holes, grades and gaps."
SEED = 20261
COUNT = 120
EVERYWHERE = ("nDCG@{}", "AP", "RR", "P@{}", "R@{}")
OTHERS = (
    *(
        "AP@{}",
        "RR@{}",
        "Success@{}",
        "R_cap@{}",
        "nDCG",
        "nDCG(gain='exp')@{}",
        "DCG@{}",
        "DCG(gain='exp')@{}",
    ),
    *(
        "Rprec",
        "bpref",
        "infAP",
        "IPrec(recall=0.3)",
        "IAP",
        "ERR@{}",
        "nERR@{}",
        "RBP(p=0.8)",
        "RBP(p=0.5)@{}",
    ),
    *(
        "RBP(p=0.8,gain='scaled')",
        "RBP_residual(p=0.8)",
        "NCG@{}",
        "Q",
        "Q@{}",
        "Judged@{}",
        "Hole@{}",
        "SetP",
        "SetR",
    ),
    *("SetF", "SetAP", "F@{}", "NumRet", "NumRel", "NumRelRet", "AP(rel=2)", "RR(rel=2)", "P(rel=2)@{}"),
    *("condensed(nDCG@{})", "condensed(AP)", "condensed(RR)", "condensed(P@{})", "condensed(bpref)"),
)


def cases() -> Iterator[Vector]:
    draw = random.Random(SEED)
    for number in range(COUNT):
        yield _one(draw, number)


def _one(draw: random.Random, number: int) -> Vector:
    pool = [f"d{n}" for n in range(1, draw.choice([3, 6, 12]) + 1)]
    grades = draw.choice([[0, 1], [0, 1, 2, 3], [-1, 0, 1, 2], [0, 0, 0, 1, 4], [-2, -1, 0, 1, 2, 3, 4]])
    scores, what = draw.choice([
        (lambda: draw.randint(-2, 2) / 2, "many ties"),
        (lambda: round(draw.gauss(0, 1), 2), "few ties"),
        (draw.random, "no ties"),
        (lambda: 1.0, "one score"),
    ])  # fmt: skip
    asked = [f"q{n}" for n in range(1, draw.randint(1, 4) + 1)]
    qrels = {
        q: [(d, draw.choice(grades)) for d in draw.sample(pool, draw.randint(1, len(pool)))] for q in asked
    }
    run = {
        q: [(d, scores()) for d in draw.sample(pool, draw.randint(1, len(pool)))]
        for q in draw.sample(asked, draw.randint(1, len(asked)))
    }
    k = draw.choice([1, 2, 3, 5, 10])
    chosen = [*EVERYWHERE, *draw.sample(OTHERS, 7)]
    ties = "expected" if number % 6 == 5 and max(map(len, run.values())) <= 6 else "trec"
    shows = f"Case {number} of seed {SEED}: {len(asked)} queries, grades from {min(grades)} to {max(grades)}, {what}."
    measures = " ".join(dict.fromkeys(name.replace("{}", str(k)) for name in chosen))
    return case(f"drawn-{number:03d}", shows, qrels, run, measures, ties=ties)
