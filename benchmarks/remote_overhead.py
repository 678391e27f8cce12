"""What asking another's search engine costs beside the engine's own time, and what a kill -9 in the middle costs.

The 323 queries of NFCorpus, 100 documents each, through MiniSearch (npm) in Node: behind pipes, command(...), and
behind HTTP, http(...), each with eight queries out at a time. Weir asks in turn with a bare client, which sends the
same requests and throws the answers away; the overhead is what a query takes more with Weir, from the first query to the
run. Then a results folder is killed in the middle and continued: queries that were answered and asked again, and
whether the rankings are the same. One JSON line for each measurement.

    npm install --prefix FOLDER minisearch
    python benchmarks/remote_overhead.py --modules FOLDER [--data FOLDER] [--repeats 5]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from common import HERE, append, data_folder, machine, say

K, TOGETHER = 100, 8


class Engine:
    """MiniSearch over a corpus, in a folder of its own."""

    def __init__(self, folder: Path, modules: Path, data: Path) -> None:
        self.folder, self.corpus, self.notes = folder, data / "nfcorpus" / "corpus.jsonl", folder / "notes"
        shutil.copy(HERE / "remote" / "search.mjs", folder)
        (folder / "node_modules").symlink_to(modules.resolve() / "node_modules")

    @property
    def line(self) -> str:
        """The command that starts it on pipes."""
        return f"node {self.folder / 'search.mjs'} {self.corpus} {self.notes}"

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Its port while it serves HTTP; search.toml then describes it."""
        process = subprocess.Popen([*self.line.split(), "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            (self.folder / "search.toml").write_text(
                f'url = "http://127.0.0.1:{port}"\nbody = {{id = "{{id}}", text = "{{query}}", k = "{{k}}"}}\n'
                'answer = {results = "results", id = "id", score = "score"}\n'
                f"limits = {{concurrency = {TOGETHER}}}\n"
            )
            yield port
        finally:
            process.kill()
            process.wait()

    def asked(self) -> Counter[str]:
        """How often each query was seen."""
        return Counter(line.split()[0] for line in self.notes.read_text().splitlines())

    def own_ms(self) -> float:
        """The engine's own milliseconds of a query, of those noted."""
        return statistics.mean(float(line.split()[1]) for line in self.notes.read_text().splitlines())


Bare = Callable[[list[bytes]], float]
"""Asks all of these, and throws the answers away; seconds from the first question, the engine being ready."""


def bare_pipes(engine: Engine) -> Bare:
    """Through pipes, eight at a time."""

    def ask(lines: list[bytes]) -> float:
        process = subprocess.Popen(engine.line.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        began = time.perf_counter()
        for start in range(0, len(lines), TOGETHER):
            some = lines[start : start + TOGETHER]
            process.stdin.write(b"\n".join(some) + b"\n")
            process.stdin.flush()
            for _ in some:
                process.stdout.readline()
        taken = time.perf_counter() - began
        process.kill()
        process.communicate()
        return taken

    return ask


def bare_http(port: int) -> Bare:
    """Through eight connections that stay open."""

    def ask(bodies: list[bytes]) -> float:
        waiting, turn = iter(bodies), threading.Lock()

        def one() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            while True:
                with turn:
                    body = next(waiting, None)
                if body is None:
                    break
                connection.request("POST", "/", body, {"Content-Type": "application/json"})
                connection.getresponse().read()
            connection.close()

        began = time.perf_counter()
        threads = [threading.Thread(target=one) for _ in range(TOGETHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began

    return ask


def overhead(engine: Engine, name: str, system: object, bare: Bare, repeats: int) -> None:
    """Ask in turn with Weir and with the bare client."""
    from weir.datasets.load import load

    dataset = load(str(engine.corpus.parent))
    queries = dataset.queries
    asked = [
        json.dumps({"id": query, "text": text, "k": K}).encode()
        for query, text in zip(queries.ids, queries.text, strict=True)
    ]
    count, weir, plain, cpu = len(asked), [], [], []
    for repeat in range(repeats + 1):
        engine.notes.write_text("")
        plainly = bare(asked)
        engine.notes.write_text("")
        searcher = system.index(dataset.corpus)
        began, used = time.perf_counter(), time.process_time()
        searcher.search(queries, K)
        taken, used = time.perf_counter() - began, time.process_time() - used
        if repeat:  # the first time Node compiles
            weir.append(1000 * taken / count)
            plain.append(1000 * plainly / count)
            cpu.append(1000 * used / count)
    differences = [a - b for a, b in zip(weir, plain, strict=True)]
    (latency,) = searcher.costs().services[0].facts()["latency"]
    _note(
        {
            "bench": "remote_overhead", "system": name, "queries": count, "k": K, "concurrency": TOGETHER,
            "engine_ms": engine.own_ms(), "weir_ms": statistics.median(weir), "bare_ms": statistics.median(plain),
            "overhead_ms": statistics.median(differences), "overhead_ms_all": differences,
            "weir_cpu_ms": statistics.median(cpu), "p50_ms": latency["p50"], "p99_ms": latency["p99"],
        }
    )  # fmt: skip


def killed(engine: Engine, name: str, system: str) -> None:
    """Kill a run in the middle, continue it, and compare with one that was left alone."""
    results, home = engine.folder / f"results-{name}", engine.folder / f"home-{name}"
    data = str(engine.corpus.parent)
    command = [sys.executable, "-m", "weir", "run", "-d", data, "-s", system, "-k", str(K), "-q", "-o"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"WEIR_HOME": str(home)}
    engine.notes.write_text("")
    process = subprocess.Popen([*command, str(results)], env=environment, **quiet)
    while len(engine.asked()) < 150:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1.0)  # what it had sent is seen
    kept = next(home.glob("answers/*/answers.jsonl")).read_text(encoding="utf-8").splitlines()
    answered = {json.loads(line)["value"]["asked"]["id"] for line in kept if line.endswith("}}")}
    engine.notes.write_text("")
    subprocess.run([*command, str(results)], env=environment, check=True, **quiet)
    again = engine.asked()
    environment["WEIR_HOME"] += "-whole"
    subprocess.run([*command, f"{results}-whole"], env=environment, check=True, **quiet)
    runs = [next(Path(f).glob("*/*/run.trec")).read_bytes() for f in (str(results), f"{results}-whole")]
    _note(
        {
            "bench": "remote_kill", "system": name, "answered_when_killed": len(answered),
            "asked_afterwards": again.total(), "answered_and_asked_again": len(answered & set(again)),
            "neither": 323 - len(answered | set(again)), "same_rankings": runs[0] == runs[1],
        }
    )  # fmt: skip


def _note(record: dict[str, object]) -> None:
    say(record)
    append("remote_overhead", record | machine())


def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--modules", required=True, type=Path)
    parser.add_argument("--data")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEIR_HOME"] = f"{folder}/home"
        from weir.plugins.servers.endpoint import Http
        from weir.systems.remote.command import Command

        engine = Engine(Path(folder), given.modules, data_folder(given.data))
        engine.notes.touch()
        toml = f"{folder}/search.toml"
        overhead(engine, "command", Command(engine.line, batch=TOGETHER), bare_pipes(engine), given.repeats)
        killed(engine, "command", str(Command(engine.line, version="1", batch=TOGETHER)))
        with engine.serving() as port:
            overhead(engine, "http", Http(toml), bare_http(port), given.repeats)
            killed(engine, "http", str(Http(toml, version="1")))


if __name__ == "__main__":
    main()
