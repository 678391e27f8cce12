"""How fast text becomes term numbers, one thread: whole corpora, queries, and a process's first call.

    python benchmarks/analysis.py [--data ../shared/data] [--peers folder of environments] [--core 1] [--save]

`add` is everything from UTF-8 bytes to term numbers with a new table: words, stopwords, stems, vocabulary. With an
environment `bm25s` among the peers, its tokenizer with PyStemmer runs beside it. The synthetic corpus is Zipfian,
60 words a document, 0.3 kB each, as in a whitespace-separated collection.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

import common

ANALYZERS = ("lucene-english", "bm25s-english", "lucene-standard", "whitespace")


def scifact(data: str) -> tuple[list[str], list[str]]:
    """Title and text of each document; the queries."""
    rows = [json.loads(x) for x in (Path(data) / "scifact/corpus.jsonl").open(encoding="utf-8")]
    queries = [json.loads(x)["text"] for x in (Path(data) / "scifact/queries.jsonl").open(encoding="utf-8")]
    return [f"{row['title']} {row['text']}" for row in rows], queries[:300]


def synthetic(documents: int) -> list[str]:
    """Documents of 60 words drawn from a Zipf-Mandelbrot distribution."""
    import numpy as np

    vocabulary = int(30 * (60 * documents) ** 0.5)
    weights = 1 / (np.arange(vocabulary) + 2.7) ** 1.08
    rng = np.random.default_rng(documents)
    names = [f"q{rank:x}x" for rank in range(vocabulary)]
    drawn = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random((documents, 60)) * 0.999999)
    return [" ".join([names[rank] for rank in row]) for row in drawn.tolist()]


def child_weir(spec: dict) -> dict:
    """Times of one analyzer on one corpus, and of the first call in this process."""
    start, cpu = time.perf_counter(), time.process_time()
    from weir.core.strings import Strings
    from weir.systems.lexical.analyzer import analyzers
    from weir.systems.lexical.terms import TermTable

    analyzer = analyzers.get(spec["analyzer"])
    TermTable(analyzer).add(Strings.of(["The dogs run"]))
    first = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    texts, queries = scifact(spec["data"]) if spec["documents"] == 0 else (synthetic(spec["documents"]), [])
    column = Strings.of(texts)
    found = {"megabytes": len(column.data) / 1e6, "first_call": first}
    found["add"] = common.timed(lambda: TermTable(analyzer).add(column), spec["repetitions"])
    found["megabytes_per_s"] = found["megabytes"] / found["add"]["cpu_median"]
    table = TermTable(analyzer)
    found["tokens"], found["terms"] = len(table.add(column)[1]), len(table)
    if queries:
        asked, one = Strings.of(queries), Strings.of(queries[:1])
        found["lookup_300"] = common.timed(lambda: table.lookup(asked), 50)["median"]
        found["lookup_1"] = common.timed(lambda: table.lookup(one), 200)["median"]
        vocabulary = table.terms()

        def reopened() -> None:
            TermTable(analyzer, vocabulary).lookup(asked)

        found["open_and_lookup_300"] = common.timed(reopened, 10)["median"]
    return found


def child_bm25s(spec: dict) -> dict:
    """The same corpora through bm25s' own tokenizer."""
    import bm25s
    import Stemmer

    texts = scifact(spec["data"])[0] if spec["documents"] == 0 else synthetic(spec["documents"])
    plain = {"stopwords": None, "stemmer": None, "token_pattern": "[^ ]+", "lower": False}
    options = plain if spec["documents"] else {"stopwords": "en", "stemmer": Stemmer.Stemmer("english")}
    action = partial(bm25s.tokenize, texts, show_progress=False, **options)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    add = common.timed(action, spec["repetitions"])
    return {"megabytes": megabytes, "add": add, "megabytes_per_s": megabytes / add["cpu_median"]}


def main() -> int:
    """Run the children and say what they found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--child")
    parser.add_argument("--data")
    parser.add_argument("--peers")
    parser.add_argument("--core", type=int)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--save", action="store_true", help="add the figures to benchmarks/results")
    given = parser.parse_args()
    if given.child:
        spec = json.loads(given.child)
        common.emit((child_bm25s if spec["engine"] == "bm25s" else child_weir)(spec))
        return 0
    common.pin(given.core)
    base = {"data": str(common.data_folder(given.data)), "repetitions": given.repetitions}
    specs = [base | {"engine": "weir", "analyzer": name, "documents": 0} for name in ANALYZERS]
    specs.append(base | {"engine": "weir", "analyzer": "whitespace", "documents": given.documents})
    runs = [(sys.executable, spec) for spec in specs]
    peer = common.interpreter(given.peers, "bm25s")
    if peer:
        runs += [
            (peer, base | {"engine": "bm25s", "analyzer": "bm25s", "documents": n, "repetitions": 3})
            for n in (0, given.documents)
        ]
    for python, spec in runs:
        found = common.run_child(__file__, spec, python)
        record = {k: spec[k] for k in ("engine", "analyzer", "documents")} | found
        print(json.dumps(record))
        if given.save:
            common.append("analysis", record | {"machine": common.machine()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
