"""BEIR's lexical baseline on live engines, document by document beside bm25("elastic"), and re-ranked.

`elasticsearch(...)` on Elasticsearch 7.10, OpenSearch 2.19 and 3.8, each started for this: nDCG@10 and R@100 with 95%
intervals, the share of judged documents among the first ten, and how far its scores for the first 1,000 documents are from those
of bm25("elastic") beside one factor. With --cross the first 100 documents are re-ranked by a cross-encoder, for the
first --cross-queries judged queries, by the last engine alone. One JSON line for each engine and collection.

    python benchmarks/elastic_row.py [--data FOLDER] [--collections scifact nfcorpus cranfield]
        [--engines elasticsearch opensearch opensearch3] [--cross WEIGHTS] [--cross-queries 30] [--depth 100]

The servers are those of ../shared/engines; an engine that is not here is left out and named.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import HERE, append, data_folder

K = 1000
MEASURES = ("nDCG@10", "R@100", "Judged@10")
TIE = 2e-6
"""Relative distance of two scores in float32 that are one."""


def measured(qrels: object, run: object) -> dict[str, list[float]]:
    """Mean and interval of each measure."""
    import weir
    from weir.stats.resampling import intervals

    rows = intervals(weir.evaluate(qrels, run, list(MEASURES)))
    return {name: [row.mean, row.low, row.high] for name, row in zip(MEASURES, rows, strict=True)}


def beside(run: object, ours: object) -> dict[str, object]:
    """How the scores of an engine lie beside those of BM25: the factor, and the largest relative distance from it."""
    pairs = ours.to_dict()
    ratios = np.array(
        [
            score / pairs[query][doc]
            for query, ranking in run.to_dict().items()
            for doc, score in ranking.items()
            if doc in pairs[query]
        ]
    )
    factor = float(np.median(ratios))
    # A document of the engine alone is a tie where BM25 cut its ranking among documents of the same score.
    alone = np.array(
        [
            score / factor / min(pairs[query].values())
            for query, ranking in run.to_dict().items()
            for doc, score in ranking.items()
            if doc not in pairs[query]
        ]
    )
    tied = np.abs(alone - 1) < TIE
    return {
        "scores": len(ratios), "factor": factor, "off": float(np.abs(ratios / factor - 1).max()),
        "documents_of_it_alone": len(alone), "tied_at_the_cut": int(tied.sum()),
        "off_at_the_cut": float(np.abs(alone - 1).max(initial=0.0)),
    }  # fmt: skip


def row(url: str, data: object) -> dict[str, object]:
    """The first stage on one collection."""
    import weir
    from weir.systems import SYSTEMS

    searcher = SYSTEMS.get("elasticsearch")(url=url).index(data.corpus)
    run = searcher.search(data.queries, K)
    ours = weir.BM25("elastic").index(data.corpus).search(data.queries, K)
    latency = searcher.costs().services[0].facts()["latency"][0]
    return {
        "versions": dict(searcher.use.versions), "queries": len(data.queries), "bytes": searcher.costs().external_bytes,
        "p50": latency["p50"], "p99": latency["p99"], **beside(run, ours), **measured(data.qrels, run.top(100)),
    }  # fmt: skip


def reranked(url: str, data: object, weights: str, queries: int, depth: int) -> dict[str, object]:
    """The first judged queries before and after a cross-encoder, and the difference with its interval."""
    import weir

    judged = dict(list(data.qrels.to_dict().items())[:queries])
    asked = data.queries.take(data.queries.ids.codes(weir.Queries.of(dict.fromkeys(judged, "")).ids.strings))
    first = weir.parse_system(f'elasticsearch(url="{url}")')
    system = weir.parse_system(
        f'elasticsearch(url="{url}") >> cross("{weights}", dtype="bf16", depth={depth})'
    )
    before = first.index(data.corpus).search(asked, 100)
    began = time.perf_counter()
    after = system.index(data.corpus).search(asked, 100)
    seconds = time.perf_counter() - began
    [pair] = weir.compare(judged, {"before": before, "after": after}, measures="nDCG@10").items[0].pairs
    return {
        "cross": Path(weights).name, "depth": depth, "cross_queries": len(judged), "seconds_a_query": seconds / len(judged),
        "before": measured(judged, before), "after": measured(judged, after), "difference": [pair.difference, pair.low, pair.high], "p": pair.p,
    }  # fmt: skip


def main() -> None:
    """Measure each engine that is here."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--collections", nargs="+", default=["scifact", "nfcorpus", "cranfield"])
    parser.add_argument("--engines", nargs="+", default=["elasticsearch", "opensearch", "opensearch3"])
    parser.add_argument("--cross", help="the folder of a cross-encoder")
    parser.add_argument("--cross-queries", type=int, default=30)
    parser.add_argument("--depth", type=int, default=100)
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    import pytest
    from tests.real.search_engine import engine_running

    import weir

    for engine in options.engines:
        with tempfile.TemporaryDirectory() as folder:
            try:
                with engine_running(engine, HERE.parents[1] / "shared", Path(folder) / "engine") as server:
                    for name in options.collections:
                        data = weir.load(data_folder(options.data) / name)
                        record = {"bench": "elastic_row", "engine": engine, "collection": name}
                        append("elastic_row", record | row(server.url, data))
                        if options.cross and engine == options.engines[-1]:
                            parts = (options.cross, options.cross_queries, options.depth)
                            append("elastic_row", record | reranked(server.url, data, *parts))
            except pytest.skip.Exception as reason:
                print(f"{engine} is left out: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
