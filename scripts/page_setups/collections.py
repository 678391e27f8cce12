"""Two collections: mine, whose metadata says something of its queries, and guide, whose documents have fields."""

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

Path("guide/qrels").mkdir(parents=True)
guide_documents = [
    {
        "_id": "d1",
        "title": "Weirs",
        "text": "A low dam across a river measures its flow.",
        "lang": "en",
        "year": 1999,
        "tags": ["dam", "flow"],
    },
    {
        "_id": "d2",
        "title": "Dams",
        "text": "How the river was tamed.",
        "lang": "en",
        "year": 2021,
        "tags": ["history"],
    },
    {
        "_id": "d3",
        "title": "Wehre",
        "text": "Am river Inn steht ein dam.",
        "metadata": {"lang": "de", "year": 2022, "author": {"name": "Ada"}},
    },
    {
        "_id": "d4",
        "title": "Rivers",
        "text": "Floods of the river, and no dam.",
        "lang": "en",
        "tags": ["flood"],
    },
]
Path("guide/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in guide_documents))
guide_queries = [
    {"_id": "q1", "text": "river dam"},
    {"_id": "q2", "text": "river dam", "metadata": {"filter": "lang == 'de'"}},
]
Path("guide/queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in guide_queries))
Path("guide/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\nq2\td3\t1\n")
