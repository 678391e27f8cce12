"""`weir run` with a dense system, killed and interrupted anywhere: the same command continues and ends the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.brooklet import QUERIES, write_collection
from tests.unit.results import contents
from weir.models.hosted import PROBE

DOCUMENTS = {f"d{i}": (f"title {i}", f"text {i % 900} of a river") for i in range(1000)}
AT_ONCE = 96
"""Texts in a request to Cohere."""
KILLS = 5


@pytest.fixture
def server(monkeypatch) -> Iterator[tuple[str, es.EmbeddingManners]]:
    """A server that takes its time, so that there is some to be killed in."""
    monkeypatch.setenv("WEIR_KEY_TEST", "sk-very-secret-0123456789")
    with es.embedding_serving() as (url, manners):
        manners.bill = lambda text: time.sleep(0.0003) or 3
        yield url + "/v2", manners


@pytest.fixture
def run(server, tmp_path):
    """A function: start `weir run` with a home and a results folder of the given name."""
    collection = write_collection(tmp_path / "collection", DOCUMENTS)
    system = f'dense("cohere:m", base="{server[0]}", key="WEIR_KEY_TEST", similarity="dot")'
    command = [
        sys.executable,
        "-m",
        "weir",
        "run",
        "-d",
        str(collection),
        "-s",
        system,
        "-m",
        "nDCG@10",
        "--json",
    ]

    def start(name: str) -> subprocess.Popen[bytes]:
        env = os.environ | {"WEIR_HOME": str(tmp_path / f"home of {name}")}
        more = ["-o", str(tmp_path / name)]
        return subprocess.Popen(command + more, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


def sent(manners: es.EmbeddingManners) -> Counter[str]:
    """How often each text was sent, but for the probe that each process sends; then nothing is remembered."""
    counts = Counter(text for asked in manners.asked for text in asked.texts if text != PROBE)
    manners.asked.clear()
    return counts


def vectors(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.rglob("*.bin") if len(p.read_bytes()) > 4096}


def test_killed_at_random_points_it_continues_and_ends_the_same(tmp_path, server, run):
    """E9: killed five times at random, it ends with the same bytes, and each kill costs one request at most."""
    manners, generator = server[1], np.random.default_rng(0)
    start = time.monotonic()
    output, errors = (whole := run("whole")).communicate()
    length = time.monotonic() - start
    assert whole.returncode == 0, errors
    once = sent(manners)
    assert set(once.values()) == {1}
    assert len(once) == 1000 + len(QUERIES)
    for _ in range(KILLS):
        process = run("killed")
        timer = threading.Timer(generator.uniform(0.3, 1.0) * length, process.kill)
        timer.start()
        process.communicate()
        timer.cancel()
    last = run("killed")
    assert last.communicate()[0] == output
    twice = sent(manners)
    assert set(twice) == set(once)
    assert sum(twice.values()) - len(twice) <= KILLS * AT_ONCE
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert vectors(tmp_path / "home of killed") == vectors(tmp_path / "home of whole") != {}


def test_interrupted_it_says_so_in_a_line_and_keeps_what_is_finished(tmp_path, server, run):
    manners = server[1]
    manners.faults = [None, None, None, es.hang]  # the probe and two requests are answered
    process = run("stopped")
    for _ in range(3000):
        if len(manners.asked) == 4:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == b""
    said = errors.decode().rstrip("\n").split("\n")[-1]
    assert said == "weir: interrupted; finished work is kept, run the same command to resume"
    assert b"Traceback" not in errors
    assert not [p for p in (tmp_path / "stopped").rglob("*") if p.is_file() and p.suffix != ".lock"]
    answered = [text for asked in manners.asked[1:3] for text in asked.texts]
    manners.asked.clear()
    again = run("stopped")
    output, errors = again.communicate()
    assert again.returncode == 0, errors
    assert not set(answered) & set(sent(manners))
    assert run("whole").communicate()[0] == output
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


ENDLESS = """
import sys
import numpy as np
from weir.systems.vectors.exact_search import ArraySource, search

documents = np.broadcast_to(np.ones(64, np.float32), (20_000_000, 64))  # of equal score: none can be left out
queries = np.ones((64, 64), np.float32)
search(ArraySource(documents[:100]), queries, 10)
print("searching", flush=True)
try:
    search(ArraySource(documents), queries, 10)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to a process")
def test_a_long_search_stops_when_it_is_interrupted():
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"searching\n"
    time.sleep(0.3)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0] == b"stopped\n"
    assert time.monotonic() - start < 5
