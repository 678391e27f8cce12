"""Judgments of 300 queries with rules of documents in the folder shop, and a ranking that breaks one of them."""

from pathlib import Path

import weir

rows = [
    "forbidden\tcontract\tgroup:guests\t",
    "is\t\tquery:q1\tgroup:guests",
    "valid-until\tprices-2024\t\t2024-12-31",
    "asked\t\t*\t2026-11-30",
]
queries = [f"q{n}" for n in range(1, 301)]
Path("shop").mkdir()
Path("shop/qrels.tsv").write_text("".join(f"{q}\tanswer\t1\n" for q in queries))
Path("shop/document-rules.tsv").write_text("\n".join(["rule\tdocument\tfor\tvalue", *rows]) + "\n")
old = {q: ["prices-2024", "answer"] for q in queries[:2]}
weir.Run.of({q: ["answer", "other"] for q in queries} | old).save("bm25.trec")
