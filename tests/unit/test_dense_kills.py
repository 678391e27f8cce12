"""`weir run` with a dense system, killed and interrupted anywhere: the same command continues and ends the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kills import killed_later_each_time, until
from tests.unit import model_servers as es
from tests.unit.brooklet import QUERIES, write_collection
from tests.unit.results import contents
from weir.models.hosted import PROBE

DOCUMENTS = {f"d{i}": (f"title {i}", f"text {i % 900} of a river") for i in range(1000)}
AT_ONCE = 96
"""Texts in a request to Cohere."""


@pytest.fixture
def server(monkeypatch) -> Iterator[tuple[str, es.EmbeddingManners]]:
    monkeypatch.setenv("WEIR_KEY_TEST", "sk-very-secret-0123456789")
    with es.embedding_serving() as (url, manners):
        yield url + "/v2", manners


@pytest.fixture
def run(server, tmp_path):
    """A function: `weir run` with a home and a results folder of the given name, as subprocess.run takes it."""
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

    def given(name: str) -> dict[str, object]:
        env = os.environ | {"WEIR_HOME": str(tmp_path / f"home of {name}")}
        return {"args": [*command, "-o", str(tmp_path / name)], "env": env}

    return given


def sent(manners: es.EmbeddingManners) -> Counter[str]:
    """How often each text was sent, but for the probe that each process sends; then nothing is remembered."""
    counts = Counter(text for asked in manners.asked for text in asked.texts if text != PROBE)
    manners.asked.clear()
    return counts


def vectors(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.rglob("*.bin") if len(p.read_bytes()) > 4096}


def test_killed_at_any_change_it_continues_and_ends_the_same(tmp_path, server, run):
    """E9: killed again and again, it ends with the same bytes, and each kill costs one request at most."""
    manners = server[1]
    output = subprocess.run(**run("whole"), capture_output=True, check=True).stdout
    once = sent(manners)
    assert set(once.values()) == {1}
    assert len(once) == 1000 + len(QUERIES)
    ends = list(killed_later_each_time(at=tmp_path, **run("killed")))
    assert ends[-1].stdout == output
    twice = sent(manners)
    assert set(twice) == set(once)
    assert sum(twice.values()) - len(twice) <= (len(ends) - 1) * AT_ONCE
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert vectors(tmp_path / "home of killed") == vectors(tmp_path / "home of whole") != {}


def test_interrupted_it_says_so_in_a_line_and_keeps_what_is_finished(tmp_path, server, run):
    manners = server[1]
    manners.faults = [None, None, None, es.hang]  # the probe and two requests are answered
    process = subprocess.Popen(**run("stopped"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(manners.asked) == 4, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert output == b""
    said = errors.decode().rstrip("\n").split("\n")[-1]
    assert said == "weir: interrupted; finished work is kept, run the same command to resume"
    assert b"Traceback" not in errors
    left = [p for p in (tmp_path / "stopped").rglob("*") if p.is_file() and p.suffix != ".lock"]
    assert [p.name for p in left] == ["grid.json"]  # what was asked for
    answered = [text for asked in manners.asked[1:3] for text in asked.texts]
    manners.asked.clear()
    again = subprocess.run(**run("stopped"), capture_output=True, check=True)
    assert not set(answered) & set(sent(manners))
    assert subprocess.run(**run("whole"), capture_output=True, check=True).stdout == again.stdout
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


ENDLESS = """
import sys
import numpy as np
from weir.systems.vectors.exact_search import ArraySource, search

documents = np.broadcast_to(np.ones(64, np.float32), (200_000_000, 64))  # of equal score: none can be left out
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
    time.sleep(0.3)  # in the search by now, or just before it
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0] == b"stopped\n"
