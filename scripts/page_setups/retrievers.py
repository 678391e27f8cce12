"""The collection mine."""

import json
from pathlib import Path

DOCS = {
    "d1": "A weir is a low dam across a river",
    "d2": "The river floods the meadow",
    "d3": "Bread rises near the oven",
}
QUERIES = {"q1": "river dam", "q2": "bread oven", "q3": "flooded meadow"}
QRELS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}, "q3": {"d2": 1}}
Path("mine/qrels").mkdir(parents=True)
Path("mine/corpus.jsonl").write_text(
    "".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in DOCS.items())
)
Path("mine/queries.jsonl").write_text(
    "".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in QUERIES.items())
)
rows = [f"{q}\t{d}\t{g}\n" for q, grades in QRELS.items() for d, g in grades.items()]
Path("mine/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
Path("docs.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in DOCS.items()))
