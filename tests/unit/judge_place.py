"""A small collection to be judged, and a judge that looks at nothing but the passage."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import weir

DOCUMENTS = {f"d{n:02}": f"River number {n}. Its weir stands {n} metres high. It rains." for n in range(30)}
QUERIES = {
    f"q{n}": {"text": f"weir {n} metres", "instruction": "Find heights."} if n % 2 else f"weir {n} metres"
    for n in range(6)
}
JUDGED = {q: {f"d{n:02}": 2, f"d{n + 6:02}": 0, f"d{n + 12:02}": 1} for n, q in enumerate(QUERIES)}
RUN = {q: [f"d{(n + i) % 30:02}" for i in range(5)] for n, q in enumerate(QUERIES)}
RUN_GRADES = {q: {d: 3 for d in docs if d not in JUDGED[q]} for q, docs in RUN.items()}
PASSAGES = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)


def grade_of(passage):
    """The server's grade of a passage, 0 to 3."""
    return hashlib.blake2b(passage.strip().encode(), digest_size=2).digest()[0] % 4


def judging(_, user):
    """A judge that follows its prompt and looks at nothing but the passage."""
    grade = grade_of(PASSAGES.findall(user)[-1])
    if "##final score" in user:
        return f"##final score: {grade}"
    if ': yes"' in user:
        return "yes" if grade > 1 else "no"
    word = "Relevant" if grade > 1 else "Not relevant"
    return (
        f"Intent: a height\nAnswer: {word}"
        if "four fields" in user
        else word
        if "elevant" in user
        else f"{grade}"
    )


def write_place(folder: Path) -> Path:
    """A collection in mine/, judgments people.tsv, and ranker.trec, a run that finds what nobody judged."""
    mine = folder / "mine"
    (mine / "qrels").mkdir(parents=True)
    rows = [{"_id": i, "text": text} for i, text in DOCUMENTS.items()]
    (mine / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"_id": i, **({"text": q} if isinstance(q, str) else q)} for i, q in QUERIES.items()]
    (mine / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    weir.Qrels.of(JUDGED).save(mine / "qrels" / "test.tsv")
    weir.Qrels.of(JUDGED).save(folder / "people.tsv")
    weir.Run.of(RUN).save(folder / "ranker.trec")
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def unjudged():
    return {(q, d) for q, docs in RUN.items() for d in docs if d not in JUDGED[q]}
