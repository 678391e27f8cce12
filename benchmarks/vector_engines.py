"""What engines lose by their approximate index: recall against exact search at equal k, latency, size of the index.

The documents of a collection as vectors in OpenSearch (k-NN, Lucene's graph), PostgreSQL (pgvector) and Weaviate, each
started for this; every query alone, one after the other. The exact best are those of `dense`. The graphs have m = 16 and
ef_construction = 64. OpenSearch and PostgreSQL are filled and asked by Weir's own systems, Weaviate by its GraphQL,
without Weir. Prints a table, and writes one JSON line for each row.

    python benchmarks/vector_engines.py [--data FOLDER] [--collection scifact] [--engines opensearch pgvector weaviate]
                                        [--encoder minilm] [--k 10] [--ef 10 20 50 100 200]

The servers of OpenSearch and Weaviate are those of ../shared/engines; an engine that is not here is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common import HERE, append, data_folder

GRAPH = "[vector]\nm = 16\nef_construction = 64\n"
BATCH = 500


class Drawn:
    """An encoder without a model: a direction drawn by the characters of a text."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """The vectors of some texts."""
        drawn = [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts]
        return np.array(drawn, np.float32)


def by_weir(name: str, settings: str, dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """A row for the exact search and for each ef of a system of Weir's."""
    from weir.systems import SYSTEMS

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "engine.toml"
        file.write_text(settings + "concurrency = 1\n" + GRAPH, encoding="utf-8")
        made = SYSTEMS.get(name)
        for ef in (None, *efs):
            named = {} if ef is None else {"index": "hnsw", "ef_search": ef}
            began = time.perf_counter()
            searcher = made(str(file), encoder=dense, **named).index(data.corpus)
            seconds = time.perf_counter() - began
            run = searcher.search(data.queries, k)
            costs = searcher.costs()
            latency = costs.services[0].facts()["latency"][0]
            yield {
                "ef": ef, "run": run, "bytes": costs.external_bytes, "seconds": seconds,
                "versions": dict(searcher.use.versions), **{p: latency[p] for p in ("p50", "p95", "p99")},
            }  # fmt: skip


def by_weaviate(engine: object, dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The same of Weaviate: a flat index, then a graph, whose ef is changed in place."""
    from weir.core.run import Named, Run

    corpus, ids = data.corpus, data.corpus.ids.tolist()
    searcher = dense.index(corpus)
    vectors, queries = searcher.vectors.values, searcher.encoded(data.queries)
    version = engine.ask("GET", "/v1/meta")["version"]
    config = {"distance": "dot", "efConstruction": 64, "maxConnections": 16}
    size = 0
    for kind in ("flat", "hnsw"):
        name, began = kind.capitalize(), time.perf_counter()
        schema = {"class": name, "vectorizer": "none", "vectorIndexType": kind}
        schema["properties"] = [{"name": "number", "dataType": ["int"]}]
        schema["vectorIndexConfig"] = {"distance": "dot"} if kind == "flat" else config
        engine.ask("POST", "/v1/schema", schema)
        for start in range(0, len(ids), BATCH):
            numbers = range(start, min(start + BATCH, len(ids)))
            objects = [
                {"class": name, "properties": {"number": n}, "vector": vectors[n].tolist()} for n in numbers
            ]
            answers = engine.ask("POST", "/v1/batch/objects", {"objects": objects})
            assert all("errors" not in one["result"] for one in answers)
        seconds = time.perf_counter() - began
        before, size = size, sum(path.stat().st_size for path in engine.folder.rglob("*") if path.is_file())
        for ef in (None,) if kind == "flat" else efs:
            if ef is not None:
                schema["vectorIndexConfig"] = {**config, "ef": ef}
                engine.ask("PUT", f"/v1/schema/{name}", schema)
            query, doc, score, taken = [], [], [], []
            for number, vector in enumerate(queries.tolist()):
                near = f"nearVector: {{vector: {json.dumps(vector)}}}, limit: {k}"
                text = f"{{Get {{{name}({near}) {{number _additional {{distance}}}}}}}}"
                began = time.perf_counter()
                hits = engine.ask("POST", "/v1/graphql", {"query": text})["data"]["Get"][name]
                taken.append(1000 * (time.perf_counter() - began))
                query += [number] * len(hits)
                doc += [hit["number"] for hit in hits]
                score += [-hit["_additional"]["distance"] for hit in hits]
            columns = (np.array(query, np.int32), np.array(doc, np.int32), np.array(score))
            run = Run.from_columns(data.queries.ids, corpus.ids, *columns, Named(name))
            percentiles = {f"p{p}": float(np.percentile(taken, p)) for p in (50, 95, 99)}
            yield {
                "ef": ef, "run": run, "bytes": size - before, "seconds": seconds,
                "versions": {"Weaviate": version}, **percentiles,
            }  # fmt: skip


def rows(engine: str, dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The rows of an engine, which runs as long as they are made; skips where it is not here."""
    from tests.real.search_engine import engine_running
    from tests.unit.postgres_place import postgres_running

    if engine == "pgvector":
        with postgres_running() as place:
            os.environ["PGURL"] = place.url
            yield from by_weir("postgres", 'dsn = "${PGURL}"\n', dense, data, k, efs)
        return
    shared = HERE.parents[1] / "shared"
    with (
        tempfile.TemporaryDirectory() as folder,
        engine_running(engine, shared, Path(folder) / "engine") as server,
    ):
        if engine == "weaviate":
            yield from by_weaviate(server, dense, data, k, efs)
        else:
            yield from by_weir("elasticsearch", f'url = "{server.url}"\n', dense, data, k, efs)


def main() -> None:
    """Measure each engine that is here."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--collection", default="scifact")
    parser.add_argument("--engines", nargs="+", default=["opensearch", "pgvector", "weaviate"])
    parser.add_argument(
        "--encoder", default="minilm", help="a model as dense takes it, or drawn: no model at all"
    )
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--ef", type=int, nargs="+", default=[10, 20, 50, 100, 200])
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    import pytest

    import weir
    from weir.core.tables import table_of, written
    from weir.plugins.servers.vectors import lost
    from weir.settings import settings

    data = weir.load(data_folder(options.data) / options.collection)
    dense = weir.Dense(weir.encoder(Drawn(), version="1") if options.encoder == "drawn" else options.encoder)
    exact = dense.index(data.corpus).search(data.queries, options.k)
    home, lines = (
        settings().home,
        [["engine", "search", "of exact", "p50 ms", "p95 ms", "p99 ms", "index MB"]],
    )
    with tempfile.TemporaryDirectory() as place:  # the vectors stay, no answer does
        Path(place, "vectors").symlink_to(home / "vectors")
        os.environ["WEIR_HOME"] = place
        settings.cache_clear()
        for engine in options.engines:
            try:
                for row in rows(engine, dense, data, options.k, options.ef):
                    share = 1 - lost(exact, row.pop("run")).total
                    search = "exact" if row["ef"] is None else f"hnsw, ef {row['ef']}"
                    times = [f"{row[p]:.1f}" for p in ("p50", "p95", "p99")]
                    version = next(iter(row["versions"].items()))
                    size = f"{row['bytes'] / 1e6:.1f}"
                    lines.append([" ".join(version), search, f"{share:.1%}", *times, size])
                    append("vector_engines", {
                        "bench": "vector_engines", "engine": engine, "collection": options.collection,
                        "encoder": options.encoder, "documents": len(data.corpus), "queries": len(data.queries),
                        "k": options.k, "of_exact": share, **row,
                    })  # fmt: skip
            except pytest.skip.Exception as reason:
                print(f"{engine} is left out: {reason}", file=sys.stderr)
    print(written([table_of(lines)], "text"))


if __name__ == "__main__":
    main()
