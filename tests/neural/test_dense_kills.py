"""`weir run` with a dense system and its own encoder, killed anywhere: it continues and ends the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

from tests.kills import killed_later_each_time
from tests.neural.conftest import WORDS, sentence_transformer
from tests.unit.brooklet import write_collection
from tests.unit.test_experiment import contents


def stored(home: Path) -> dict[str, bytes]:
    """The store's own files, by name."""
    return {p.name: p.read_bytes() for p in home.rglob("*.bin")}


@pytest.fixture
def run(checkpoint_of, tmp_path):
    """A function: `weir run` on 3,000 texts with random weights, six batches of the store, as subprocess.run takes it."""
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

    def given(name: str) -> dict[str, object]:
        env = os.environ | {"WEIR_HOME": str(tmp_path / f"home of {name}"), "WEIR_THREADS": "1"}
        return {"args": [*command, "-o", str(tmp_path / name)], "env": env}

    return given


def test_killed_at_any_change_it_continues_and_ends_the_same(tmp_path, run):
    """E9: what was stored when it was killed is never touched again, and the results are the same bytes."""
    output = subprocess.run(**run("whole"), capture_output=True, check=True).stdout
    before, outputs = dict[str, bytes](), []
    for done in killed_later_each_time(at=tmp_path, **run("killed")):
        outputs.append(done.stdout)
        now = stored(tmp_path / "home of killed")
        records = len(before.get("journal.bin", b"")) // 24 * 24  # whole batches
        assert now.get("journal.bin", b"")[:records] == before.get("journal.bin", b"")[:records]
        before = now
    assert outputs[-1] == output
    assert stored(tmp_path / "home of killed") == stored(tmp_path / "home of whole") != {}
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
