"""What asking PostgreSQL through Weir costs beside the server's own time, and what a kill -9 in the middle costs.

The 323 queries of NFCorpus, full-text search for any of the words, 100 documents each, eight queries at a time, on a real
server that is started for this. Overhead: the wall time of Weir's search, from the first query to the run, without that of
the same statements over eight connections of the driver alone, divided by the queries. Then a run is killed in the
middle and continued: the server's own log says what it was asked. One JSON line for each measurement.

    python benchmarks/postgres_overhead.py [--data FOLDER] [--repeats 5]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from common import data_folder, emit

K, TOGETHER = 100, 8
SETTINGS = 'dsn = "${PGURL}"\nconcurrency = 8\n[text]\nquery = "or"\n'


def driver_alone(url: str, statement: object, texts: list[str]) -> float:
    """Milliseconds of the same statements over as many connections, without Weir."""
    import psycopg

    waiting, turn = iter(texts), threading.Lock()
    connections = [psycopg.connect(url, autocommit=True) for _ in range(TOGETHER)]

    def work(connection: psycopg.Connection) -> None:
        while True:
            with turn:
                text = next(waiting, None)
            if text is None:
                return
            connection.execute(statement, {"text": text, "k": K}, prepare=True, binary=True).fetchall()

    threads = [threading.Thread(target=work, args=(connection,)) for connection in connections]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = 1000 * (time.perf_counter() - began)
    for connection in connections:
        connection.close()
    return taken


def overhead(url: str, system: object, dataset: object, repeats: int) -> None:
    """Time Weir and the driver alone, one after the other."""
    from weir.settings import settings

    searcher = system.index(dataset.corpus)
    texts, both = dataset.queries.text.tolist(), []
    for repeat in range(repeats + 1):
        home = Path(tempfile.mkdtemp())
        os.environ["WEIR_HOME"] = str(home)  # nothing was asked before
        settings.cache_clear()
        alone = driver_alone(url, searcher.table.statement(), texts)
        began, used = time.perf_counter(), time.process_time()
        searcher.search(dataset.queries, K)
        wall, cpu = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)
        if repeat:  # the first one reads the table from the disk
            both.append((wall / len(texts), alone / len(texts), cpu / len(texts)))
    extra = [weir - alone for weir, alone, _ in both]
    latency = searcher.costs().services[0].facts()["latency"][0]
    emit(
        {
            "bench": "postgres_overhead", "queries": len(texts), "k": K, "concurrency": TOGETHER,
            "weir_ms": statistics.median(w for w, _, _ in both), "driver_ms": statistics.median(a for _, a, _ in both),
            "overhead_ms": statistics.median(extra), "overhead_ms_all": extra,
            "weir_cpu_ms": statistics.median(c for _, _, c in both), "p50_ms": latency["p50"], "p99_ms": latency["p99"],
            "versions": dict(searcher.use.versions),
        }
    )  # fmt: skip


def asked(log: Path, since: int) -> Counter[str]:
    """How often each text was searched for, by the server's log from a byte on."""
    said = log.read_bytes()[since:].decode("utf-8", "replace")
    found = re.findall(r"execute .*?SELECT doc, score FROM.*\n.*?arameters: (.*)", said)
    return Counter(text for one in found for text in re.findall(r"\$1 = '((?:[^']|'')*)'", one))


def killed(log: Path, folder: Path, data: str, system: str, answered: int) -> None:
    """Kill a run in the middle, continue it, and compare with one that was left alone."""
    command = [sys.executable, "-m", "weir", "run", "-d", data, "-s", system, "-k", str(K), "-q", "-o"]
    environment = os.environ | {"WEIR_HOME": str(folder / "home")}

    def kept() -> list[str]:
        files = list((folder / "home").rglob("answers.jsonl"))
        lines = files[0].read_bytes().split(b"\n")[:-1] if files else []
        return [json.loads(line)["value"]["asked"]["text"] for line in lines]

    process = subprocess.Popen([*command, str(folder / "out")], env=environment, stdout=subprocess.DEVNULL)
    while len(kept()) < answered:
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1.0)  # what it was asking is written down
    before, since = kept(), log.stat().st_size
    subprocess.run([*command, str(folder / "out")], env=environment, stdout=subprocess.DEVNULL, check=True)
    again = asked(log, since)
    environment["WEIR_HOME"] += "-whole"
    subprocess.run([*command, str(folder / "whole")], env=environment, stdout=subprocess.DEVNULL, check=True)
    runs = [next((folder / name).glob("*/*/run.trec")).read_bytes() for name in ("out", "whole")]
    emit(
        {
            "bench": "postgres_kill", "queries": len(set(kept())), "answered_when_killed": len(before),
            "asked_afterwards": sum(again.values()), "answered_and_asked_again": len(set(before) & set(again)),
            "same_rankings": runs[0] == runs[1],
        }
    )  # fmt: skip


def main() -> None:
    """Measure both on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--answered", type=int, default=150, help="answers after which the run is killed")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.unit.postgres_place import postgres_running

    from weir.datasets.load import load
    from weir.systems import parse_system

    data = str(data_folder(options.data) / "nfcorpus")
    with postgres_running() as place, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PGURL"] = place.url
        os.environ["WEIR_HOME"] = str(folder / "collections")
        file = folder / "shop.toml"
        file.write_text(SETTINGS)
        system = f'postgres("{file}")'
        dataset = load(data)
        place.ask("ALTER SYSTEM SET log_statement = 'none'")  # the log is not timed
        place.ask("SELECT pg_reload_conf()")
        overhead(place.url, parse_system(system), dataset, options.repeats)
        place.ask("ALTER SYSTEM SET log_statement = 'all'")
        place.ask("SELECT pg_reload_conf()")
        killed(place.log, folder, data, system, options.answered)


if __name__ == "__main__":
    main()
