"""Judges who answer through the page's addresses, while its server is killed again and again.

    python scripts/simulate_judging.py                          # 10,000 judgments, 200 kills, five judges
    python scripts/simulate_judging.py --judgments 2000 --kills 0      # answering times without kills

Prints a line of JSON: how many judgments were answered, lost and stored twice, which have to be 0, the times of answers
that no kill interrupted, in milliseconds, and the most memory of the last server. It listens on loopback in a process
of its own, which is ended by SIGKILL.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from weir.plugins.app.judging.journal import Journal
from weir.plugins.app.judging.room import JOURNAL
from weir.plugins.app.server import csrf_of, tokens_of

SECRET = "0123456789abcdef"
# Starts a server in a fork for each line that is read, so that only the first has to import anything; says its number.
LAUNCHER = """
import os, sys
from pathlib import Path
from weir.plugins.app.serving import serve
folder, port, judges = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
child = 0
for _ in sys.stdin:
    if child:
        os.waitpid(child, 0)  # killed by now
    if not (child := os.fork()):
        serve(
            folder, lambda _: None, ports=[port], token="0123456789abcdef", judges=judges, browser=False
        )
    print(child, flush=True)
"""


@dataclass
class Outcome:
    """What judges were told, and what the journal holds."""

    answered: int = 0
    lost: int = 0
    """Answered with 303, and not in the journal as they were given."""
    twice: int = 0
    """Pairs of one judge with more than one event."""
    wrong: int = 0
    """Pairs that did not get the judges that were asked for."""
    kills: int = 0
    peak_mb: float = 0.0
    """Largest resident memory of the last server."""
    times: list[float] = field(default_factory=list)
    """Seconds of each answer that no kill interrupted."""


class Judge(threading.Thread):
    """Somebody who answers each pair by a fixed rule, and sends an answer again until it is stored."""

    def __init__(self, name: str, token: str, port: int, room: str, outcome: Outcome) -> None:
        super().__init__(daemon=True)
        self.who, self.token, self.port, self.room, self.outcome = name, token, port, room, outcome
        self.given: dict[tuple[str, str], int] = {}
        self.connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: str = "") -> tuple[int, bytes, bool]:
        """Return status and content of an answer, and whether the first try had one."""
        first = True
        while True:
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                headers = {"Cookie": f"weir-{self.port}={self.token}"}
                headers |= {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
                self.connection.request(method, path, body or None, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read(), first
            except (OSError, http.client.HTTPException):
                if self.connection is not None:
                    self.connection.close()
                self.connection, first = None, False
                time.sleep(0.02)

    def run(self) -> None:
        while True:
            status, content, _ = self.ask("GET", f"/judge/{self.room}.json")
            assert status == 200, content
            pair = json.loads(content)["pair"]
            if pair is None:
                if self.connection is not None:
                    self.connection.close()
                return
            grade = grade_of(self.who, pair["query"], pair["document"])
            fields = {
                "csrf": csrf_of(self.token),
                "number": pair["number"],
                "key": pair["key"],
                "grade": grade,
            }
            began = time.perf_counter()
            status, content, first = self.ask("POST", f"/judge/{self.room}/answer", urlencode(fields))
            assert status == 303, content
            if first:
                self.outcome.times.append(time.perf_counter() - began)
            self.given[pair["query"], pair["document"]] = grade
            self.outcome.answered += 1


def grade_of(judge: str, query: str, document: str) -> int:
    """Return the grade that a judge gives a pair, whenever it is asked."""
    return hashlib.blake2b(f"{judge} {query} {document}".encode()).digest()[0] % 4


def make_pool(folder: Path, pairs: int) -> Path:
    """Write a pool of so many pairs, 50 for each query."""
    rng = random.Random(1)
    words = [f"word{n}" for n in range(500)]
    lines = ["query-id\tcorpus-id\tgrade\tquery\ttitle\ttext"]
    for n in range(pairs):
        text = " ".join(rng.choices(words, k=120))
        lines.append(f"q{n // 50}\td{n}\t\t{' '.join(words[n // 50 % 500 :][:3])}\tTitle {n}\t{text}")
    folder.mkdir(parents=True)
    (folder / "to_judge.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def simulate(folder: Path, judgments: int, kills: int, judges: int, seed: int = 1) -> Outcome:
    """Let judges answer a pool of as many pairs while the server is killed; return what became of it."""
    pool = make_pool(folder / "pool", judgments)
    names = [f"judge{n}" for n in range(judges)]
    tokens = {name: token for token, name in tokens_of(SECRET, names).items()}
    port = _free_port()
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(pool), str(port), ",".join(names)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    outcome, rng = Outcome(), random.Random(seed)
    server = _start(launcher)
    workers = [Judge(name, tokens[name], port, "pool", outcome) for name in names]
    try:
        for worker in workers:
            worker.start()
        for number in range(1, kills + 1):
            wanted = judgments * number / (kills + 1)
            while outcome.answered < wanted and any(worker.is_alive() for worker in workers):
                time.sleep(0.002)
            time.sleep(rng.random() * 0.02)
            os.kill(server, signal.SIGKILL)
            outcome.kills += 1
            server = _start(launcher)
        for worker in workers:
            worker.join()
        outcome.peak_mb = _peak_mb(server)
    finally:
        os.kill(server, signal.SIGKILL)
        launcher.terminate()
        launcher.wait()
        for pipe in (launcher.stdin, launcher.stdout):
            if pipe is not None:
                pipe.close()
    _compare(pool, workers, judgments, outcome)
    return outcome


def _compare(pool: Path, workers: list[Judge], judgments: int, outcome: Outcome) -> None:
    journal = Journal.open(pool / JOURNAL)
    stored: dict[tuple[str, str, str], list[float | None]] = {}
    for event in journal.events():
        stored.setdefault((event.judge, event.query, event.document), []).append(event.grade)
    journal.close()
    outcome.twice = sum(len(grades) > 1 for grades in stored.values())
    for worker in workers:
        for pair, grade in worker.given.items():
            outcome.lost += stored.get((worker.who, *pair)) != [grade]
    pairs = {key[1:] for key in stored}
    outcome.wrong = (judgments - len(pairs)) + (len(stored) - len(pairs))


def _start(launcher: subprocess.Popen[str]) -> int:
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.write("start\n")
    launcher.stdin.flush()
    return int(launcher.stdout.readline())


def _peak_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), float("nan"))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def main() -> None:
    """Simulate, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--judgments", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--judges", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = simulate(Path(folder), given.judgments, given.kills, given.judges)
    times = sorted(found.times)
    row = {
        "judgments": found.answered,
        "judges": given.judges,
        "kills": found.kills,
        "lost": found.lost,
        "twice": found.twice,
        "wrong": found.wrong,
    }
    row |= {f"p{100 * share:g}_ms": 1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.99, 1.0)}
    print(json.dumps(row | {"peak_mb": found.peak_mb}))
    sys.exit(1 if found.lost or found.twice or found.wrong or found.answered != given.judgments else 0)


if __name__ == "__main__":
    main()
