"""A bank of nuggets for one query, and a run."""

import json
from pathlib import Path

rows = [
    {
        "qid": "weir",
        "nuggets": [
            {"text": "A weir is a low dam", "importance": "vital", "documents": ["d2", "d5"]},
            {
                "text": "It measures the flow of a river",
                "importance": "vital",
                "documents": {"d2": 0.5, "d7": 1},
            },
            {"text": "Some are made of reeds", "importance": "okay", "documents": ["d4"]},
            {"text": "The word is Old English", "importance": "okay"},
        ],
    },
]
Path("nuggets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
Path("run.trec").write_text(
    "".join(f"weir Q0 {d} {i} {-i} one\n" for i, d in enumerate(["d2", "d9", "d4", "d7"], 1))
)
