"""Writes a golden set of 35 queries on five topics, out of the embedded collections: the story of docs/gate.md.

python scripts/golden_story.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import weir
from weir.datasets import catalogue

TOPICS = ("medical", "answers", "tweets", "news", "arguments")
EACH = 7


def main(folder: Path) -> None:
    """All documents of the embedded collections; the first queries of five of them, named by topic."""
    (folder / "qrels").mkdir(parents=True)
    documents, queries, judgments = [], [], ["query-id\tcorpus-id\tscore"]
    for member in catalogue.group("brook").members:
        dataset, topic = weir.load(member), member.removeprefix("brook-")
        texts = zip(dataset.corpus.ids.tolist(), dataset.corpus.text.tolist(), strict=True)
        documents += [{"_id": f"{topic}:{name}", "text": text} for name, text in texts]
        if topic not in TOPICS:
            continue
        asked = list(zip(dataset.queries.ids.tolist(), dataset.queries.text.tolist(), strict=True))[:EACH]
        queries += [
            {"_id": f"{topic}_{name}", "text": text, "metadata": {"topic": topic}} for name, text in asked
        ]
        grades = dataset.qrels.to_dict()
        judgments += [
            f"{topic}_{q}\t{topic}:{d}\t{grade}" for q, _ in asked for d, grade in grades[q].items()
        ]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
