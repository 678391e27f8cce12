"""The collection mine: five documents, three queries, what metadata says of them."""

import json
from pathlib import Path

documents = {
    "d1": ("The weir", "A weir is a low dam across a river that measures its flow."),
    "d2": ("", "The river floods the meadow every spring."),
    "d3": ("Bread", "Knead the dough and let it rise near the oven."),
    "d4": ("Dam", "The dam holds the river back."),
    "d5": ("Meadow", "Cows graze on the meadow beside the river."),
}
queries = {
    "q1": ("what holds a river back", {"candidates": ["d5", "d4", "d1"], "group": "long"}),
    "q2": ("river meadow", {"excluded": ["d5"], "group": "short"}),
    "q3": ("how long do I boil an egg", {"unanswerable": True, "group": "long"}),
}
folder = Path("mine")
(folder / "qrels").mkdir(parents=True)
rows = [json.dumps({"_id": i, "title": title, "text": text}) for i, (title, text) in documents.items()]
(folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
rows = [json.dumps({"_id": i, "text": text, "metadata": said}) for i, (text, said) in queries.items()]
(folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
(folder / "qrels" / "test.tsv").write_text(
    "query-id\tcorpus-id\tscore\nq1\td4\t2\nq1\td1\t1\nq1\td5\t0\nq2\td2\t1\n"
)
