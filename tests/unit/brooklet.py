"""Small collections in BEIR layout, written into a folder of a test."""

from __future__ import annotations

import json
from pathlib import Path

DOCUMENTS = {
    "d1": ("The weir", "A weir is a low dam across a river that measures its flow."),
    "d2": ("", "The river floods the meadow every spring."),
    "d3": ("Bread", "Knead the dough and let it rise near the oven."),
    "d4": ("Dam", "The dam holds the river back."),
    "d5": ("", ""),
    "d6": ("Copy", "The river floods the meadow every spring."),
}
QUERIES = {"q1": "river dam", "q2": "rising dough", "q3": "xylophone", "d4": "The dam holds the river back."}
QRELS = {"q1": {"d1": 2, "d4": 1, "d3": 0}, "q2": {"d3": 1}, "q3": {"d5": 1}, "d4": {"d1": 1}}

SMALL_QRELS = "q1 0 d1 1\nq2 0 d3 2\n"
SMALL_RUN = "q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\nq2 Q0 d3 1 1.0 x\n"
"""Judgments and a run in TREC's columns."""


def written_files(folder: Path, **files: str) -> list[Path]:
    """Write texts into files of these names, in which `__` is a point; return their paths."""
    paths = [folder / name.replace("__", ".") for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def write_collection(folder: Path, documents: dict[str, tuple[str, str]] = DOCUMENTS, mark: str = "") -> Path:
    """A folder in BEIR layout; of other documents, the first is judged too, as a grid needs one.

    mark: put after each query, such as "?": a collection that counts beside others, with the same rankings.
    """
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": i, "title": title, "text": text}) for i, (title, text) in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = [json.dumps({"_id": i, "text": text + mark}) for i, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n", encoding="utf-8")
    rows = [f"{q}\t{d}\t{g}" for q, grades in QRELS.items() for d, g in grades.items()]
    if documents and documents.keys().isdisjoint(doc for grades in QRELS.values() for doc in grades):
        rows.append(f"{next(iter(QRELS))}\t{next(iter(documents))}\t0")
    head = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / "test.tsv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return folder
