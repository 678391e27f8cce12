"""A golden set of questions with their chunks, as a team would export it."""

import json
from pathlib import Path

import weir

brook = weir.load("brook-answers")
grades = brook.qrels.to_dict()
asked = dict(zip(brook.queries.ids.tolist(), brook.queries.text.tolist(), strict=True))
golden = [
    {"question": text, "relevant_ids": [d for d, g in grades[q].items() if g > 1]}
    for q, text in asked.items()
]
golden += [
    {"question": q, "relevant_ids": [], "answerable": False}
    for q in ("how tall is the observatory on mars", "who won next year's regatta")
]
Path("golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golden))
parts = zip(brook.corpus.ids.tolist(), brook.corpus.title.tolist(), brook.corpus.text.tolist(), strict=True)
Path("chunks.jsonl").write_text(
    "".join(json.dumps({"id": i, "title": a, "text": b}) + "\n" for i, a, b in parts)
)
