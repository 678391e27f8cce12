"""The page of re-rankings is made of the stored figures, and says of them what they say.

tests/real/test_rerankings_real.py holds the figures against the files that they were made from.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("make_rerankings", ROOT / "scripts" / "make_rerankings.py")
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
RECORDS = [json.loads(line) for line in made.STORED.read_text(encoding="utf-8").splitlines()]


def test_the_page_is_made_of_the_stored_figures():
    assert made.PAGE.read_text(encoding="utf-8") == made.page(made.STORED), (
        "run scripts/make_rerankings.py --page"
    )


def test_what_the_page_says_in_words_holds():
    assert len(RECORDS) == 23
    strong = [r for r in RECORDS if r["gain"]["before"] > made.STRONG_SCORE]
    assert {r["first"] for r in RECORDS if r not in strong} == {"BM25", "BM25_RM3"}
    failed = [r for r in RECORDS if r["system"] in ("vicuna-7b-v1.5", "vicuna-13b-v1.5")]
    assert len(failed) == 2
    for one in failed:
        assert all(block["reach"]["reached"] == 0 for block in one["blocks"] if block["start"] > 20)
    for one in RECORDS:
        gain = one["gain"]
        real = gain["change"] > 0 and gain["p"] * len(RECORDS) <= made.LEVEL
        assert real == (one["first"].startswith("BM25") and one not in failed) or one in strong
        assert one["bias"]["high"] < 0
        assert one["tied"] > 0 or one["beyond"] == 0
