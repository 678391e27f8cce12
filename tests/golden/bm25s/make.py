"""Make brook-medical.json: the scores of the bm25s library itself, with its defaults and PyStemmer's English stemmer.

    python tests/golden/bm25s/make.py        # needs bm25s 0.3 and PyStemmer

Scores are the library's own float32 values for every document that it scores above 0.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
BROOK = HERE.parents[2] / "src" / "weir" / "datasets" / "brook" / "medical"


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (BROOK / name).read_text(encoding="utf-8").split("\n") if line]


def main() -> None:
    import bm25s
    import Stemmer

    corpus, queries = lines("corpus.jsonl"), lines("queries.jsonl")
    stemmer = Stemmer.Stemmer("english")
    texts = [f"{d['title']} {d['text']}" for d in corpus]
    model = bm25s.BM25()
    model.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )
    found = {}
    for query in queries:
        tokens = bm25s.tokenize(
            query["text"], stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
        )[0]
        scores = model.get_scores(tokens)
        found[query["_id"]] = {d["_id"]: float(s) for d, s in zip(corpus, scores, strict=True) if s > 0}
    about = {"made_by": f"bm25s {bm25s.__version__}, defaults, PyStemmer english", "scores": found}
    (HERE / "brook-medical.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
