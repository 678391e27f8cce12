"""A million answers through command(...) and http(...): time, and the most memory that asking took.

The other side is a program, or a server, in Python that answers ten documents and computes nothing. Each size runs in
a process of its own. One JSON line for each: peak_mb of the process, run_mb of the rankings themselves.

    python benchmarks/remote_load.py [--queries 10000 1000000] [--ways command http]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import append, emit, machine, memory_mb, reset_peak, run_child, say

DOCUMENTS, RETURNED = 1000, 10
PROGRAM = """
import sys
body = '"results": [' + ", ".join('{"id": "d%d", "score": %d.5}' % (n, 100 - n) for n in range(10)) + "]}"
for line in sys.stdin:
    print(line[: line.index('"text"')] + body, flush=True)
"""
SERVER = """
import asyncio, json
results = [{"id": "d%d" % n, "score": 100.5 - n} for n in range(10)]
body = json.dumps({"results": results}).encode()
reply = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
async def talk(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\\r\\n")[0]))
            writer.write(reply)
            await writer.drain()
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def child(spec: dict[str, object]) -> None:
    """Ask so many queries one way, in this process."""
    from weir.core.corpus import Corpus, Queries
    from weir.core.strings import Ids, Strings
    from weir.systems import parse_system

    count = int(str(spec["queries"]))
    names = [f"d{n}" for n in range(DOCUMENTS)]
    corpus = Corpus(Ids.of(names), Strings.of(names))
    queries = Queries(
        Ids.of([f"q{n}" for n in range(count)]), Strings.of([f"what is asked {n}" for n in range(count)])
    )
    searcher = parse_system(str(spec["system"])).index(corpus)
    searcher.search(queries.take(range(16)), RETURNED)
    before = memory_mb()
    reset_peak()
    began = time.perf_counter()
    run = searcher.search(queries, RETURNED)
    seconds = time.perf_counter() - began
    facts = searcher.costs().services[0].facts()
    assert len(run.doc) == RETURNED * count
    emit(
        {
            "bench": "remote_load", "way": spec["way"], "queries": count, "seconds": seconds,
            "ms_of_a_query": 1000 * seconds / count, "before_mb": before, "peak_mb": memory_mb("VmHWM"),
            "run_mb": (run.doc.nbytes + run.score.nbytes + run.ptr.nbytes) / 2**20,
            "answered": facts["answered"], "faults": facts["faults"],
        }
    )  # fmt: skip


def main() -> None:
    """Every size, each way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--child")
    parser.add_argument("--queries", nargs="+", type=int, default=[10_000, 1_000_000])
    parser.add_argument("--ways", nargs="+", default=["command", "http"])
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
        return
    for way in given.ways:
        for count in given.queries:
            with tempfile.TemporaryDirectory() as folder:
                _measure(Path(folder), way, count)


def _measure(folder: Path, way: str, count: int) -> None:
    (folder / "program.py").write_text(PROGRAM)
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        (folder / "search.toml").write_text(
            f'url = "http://127.0.0.1:{int(server.stdout.readline())}"\nmethod = "POST"\nbody = {{q = "{{query}}"}}\n'
            'answer = {results = "results", id = "id", score = "score"}\nlimits = {concurrency = 8}\n'
        )
        system = f'http("{folder}/search.toml", version="1")'
        if way == "command":
            system = f'command("{sys.executable} {folder}/program.py", version="1", batch=64)'
        os.environ["WEIR_HOME"] = str(folder)
        spec = {"way": way, "queries": count, "system": system}
        found = run_child(__file__, spec, sys.executable, timeout=7200)
        say(found)
        append("remote_load", found | machine())
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
