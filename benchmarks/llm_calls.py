"""Calls a second of the chat client against a server that answers at once, and what a second time costs.

A server in a process of its own reads a request and writes the same answer. Weir re-ranks: pointwise, with prompts,
log-probabilities not told, each answer kept before the next is counted; then everything again from what was kept. In
turn with it, a bare client sends the same requests and throws the answers away. One JSON line for each measurement.

    python benchmarks/llm_calls.py [--calls 4000] [--concurrency 8] [--repeats 3]
    python benchmarks/llm_calls.py --method '"setwise", sort="tournament", window=8'

--calls is of documents where another method than "score" is named: it asks as many prompts as its sort needs.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from common import append, machine, say

DOCUMENTS, WORDS = 100, 60
ANSWER = {
    "model": "instant",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "7"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 150, "completion_tokens": 1},
}


class Instant(asyncio.Protocol):
    """Answers each request as soon as all of it is there."""

    def __init__(self) -> None:
        self.held = b""
        body = json.dumps(ANSWER).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.answer = head.encode() + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody asks."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Part of a request, or more than one."""
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.held) < end + 4 + length:
                return
            self.held = self.held[end + 4 + length :]
            self.transport.write(self.answer)  # type: ignore[attr-defined]  # asyncio says which transport


async def serve() -> None:
    """Serve until the process ends; the port is the first line of the output."""
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving() -> Iterator[int]:
    """The port of the server, in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def bare_seconds(port: int, body: bytes, calls: int, concurrency: int) -> float:
    """Seconds of a client that keeps and counts nothing."""

    def ask(count: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(count):
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            json.loads(connection.getresponse().read())
        connection.close()

    threads = [threading.Thread(target=ask, args=(calls // concurrency,)) for _ in range(concurrency)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def weir_seconds(port: int, calls: int, concurrency: int, method: str) -> tuple[int, float, float]:
    """Prompts and seconds of a re-ranking in a new home, and of the same again."""
    import numpy as np

    from weir.core.corpus import Corpus, Queries
    from weir.core.run import Run
    from weir.settings import settings
    from weir.systems import parse_system

    queries = calls // DOCUMENTS
    words = ["river", "weir", "dam", "flow", "meadow", "bread", "oven", "stream", "gauge", "bridge"]
    texts = {f"d{n}": f"{n} " + " ".join(words[(n + i) % 10] for i in range(WORDS)) for n in range(DOCUMENTS)}
    corpus = Corpus.of(texts)
    asked = Queries.of({f"q{n}": f"river {n}" for n in range(queries)})
    doc = np.tile(np.arange(DOCUMENTS), queries)
    row = np.repeat(np.arange(queries), DOCUMENTS)
    run = Run.from_columns(asked.ids, corpus.ids, row, doc, -doc.astype(np.float64))
    name = f'bm25 >> llm({method}, model="http://127.0.0.1:{port}/v1#instant", concurrency={concurrency})'
    with tempfile.TemporaryDirectory() as home:
        os.environ["WEIR_HOME"] = home
        settings.cache_clear()
        taken = []
        for _ in range(2):
            scorer = parse_system(name).reranker.ready(corpus)
            begin = time.perf_counter()
            scorer.scores(asked, run)
            taken.append(time.perf_counter() - begin)
            counts = scorer.costs().services[0].counts
        assert counts.answered == 0, counts
        assert counts.stored == calls or "score" not in method, counts
    return counts.stored, taken[0], taken[1]


def main() -> None:
    """Measure, print and append."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--method", default='"score"', help="The method and its settings, as in llm(...).")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    message = {"role": "user", "content": "weir " * (WORDS + 40)}
    body = json.dumps({"model": "instant", "messages": [message], "max_tokens": 16}).encode()
    rates: dict[str, list[float]] = {"bare": [], "asked": [], "kept": []}
    calls = given.calls
    with serving() as port:
        for _ in range(given.repeats):
            rates["bare"].append(given.calls / bare_seconds(port, body, given.calls, given.concurrency))
            calls, asked, kept = weir_seconds(port, given.calls, given.concurrency, given.method)
            rates["asked"].append(calls / asked)
            rates["kept"].append(calls / kept)
    for what, found in rates.items():
        median = statistics.median(found)
        say(f"{what}: {median:,.0f} calls a second ({min(found):,.0f} to {max(found):,.0f})")
        line = {"what": what, "calls": given.calls, "concurrency": given.concurrency, "per second": median}
        line |= (
            {}
            if given.method == '"score"'
            else {"method": given.method, "documents": given.calls, "calls": calls}
        )
        append("llm_calls", line | {"runs": found, "machine": machine()})


if __name__ == "__main__":
    main()
