"""`weir run` with a dense system and its own encoder, killed anywhere: it continues and ends the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

from tests.neural.conftest import WORDS, sentence_transformer
from tests.unit.brooklet import write_collection
from tests.unit.test_experiment import contents


def stored(home: Path) -> dict[str, bytes]:
    """The store's own files, by name."""
    return {p.name: p.read_bytes() for p in home.rglob("*.bin")}


@pytest.fixture
def run(checkpoint_of, tmp_path):
    """A function: start `weir run` on 3,000 texts with random weights, six batches of the store."""
    folder = sentence_transformer(shutil.copytree(checkpoint_of("bert"), tmp_path / "bert"))
    rng = np.random.default_rng(3)
    documents = {f"d{i}": (f"one {i}", " ".join(rng.choice(WORDS, 30)) + f" {i}") for i in range(3000)}
    collection = write_collection(tmp_path / "collection", documents)
    system = f'dense("{folder}", engine="torch")'
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
        env = os.environ | {"WEIR_HOME": str(tmp_path / f"home of {name}"), "WEIR_THREADS": "1"}
        more = ["-o", str(tmp_path / name)]
        return subprocess.Popen(command + more, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


def test_killed_at_random_points_it_continues_and_ends_the_same(tmp_path, run):
    """E9: what was stored when it was killed is never touched again, and the results are the same bytes."""
    generator = np.random.default_rng(9)
    start = time.monotonic()
    output, errors = (whole := run("whole")).communicate()
    length = time.monotonic() - start
    assert whole.returncode == 0, errors
    before: dict[str, bytes] = {}
    for _ in range(4):
        process = run("killed")
        timer = threading.Timer(generator.uniform(0.4, 1.0) * length, process.kill)
        timer.start()
        process.communicate()
        timer.cancel()
        now = stored(tmp_path / "home of killed")
        records = len(before.get("journal.bin", b"")) // 24 * 24  # whole batches
        assert now.get("journal.bin", b"")[:records] == before.get("journal.bin", b"")[:records]
        before = now
    last = run("killed")
    assert last.communicate()[0] == output
    assert stored(tmp_path / "home of killed") == stored(tmp_path / "home of whole") != {}
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
