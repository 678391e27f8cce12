"""Judgments and scores of 240 simulated queries, a third of them without an answer."""

import random
from pathlib import Path

draw = random.Random(7)
rows = [(f"q{n:03}", n % 3 != 0) for n in range(240)]
Path("golden.tsv").write_text("".join(f"{q}\tx\t{int(has)}\n" for q, has in rows))
Path("answers.trec").write_text(
    "".join(f"{q} Q0 x 1 {draw.gauss(14 if has else 10, 2):.3f} mine\n" for q, has in rows)
)
