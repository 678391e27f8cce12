"""Single faults in whatever Weir keeps: each ends in the same numbers, with one line, and never in a dead process.

WEIR_FAULTS: how many are drawn altogether, 100 where nothing is said. `WEIR_FAULTS=1000 pytest tests/property/test_faults.py`
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.faults import KINDS, Fault

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

SCENES = [
    "bm25,multifield,rm3,learned",
    "collection,collection too,scores",
    "dense index,dense store",
    "late index,late store",
]
"""Each process does the same number of faults in each of its scenes."""
COUNT = int(os.environ.get("WEIR_FAULTS", "100"))
SEED = 20


def quiet(fault: str) -> bool:
    """Faults that leave nothing to say: store.json of a vector store decides nothing, what ends between two batches of
    a journal, or within one, is what a killed process leaves, and who looks nothing up does not use that table."""
    if fault.startswith(("dense store", "late store", "scores")):
        return "store.json" in fault or ("journal.bin" in fault and ("trunc" in fault or "deletion" in fault))
    return fault.startswith("collection too") and "of ids." in fault


@pytest.mark.parametrize("scenes", SCENES)
def test_a_fault_ends_in_the_same_numbers_and_one_line(scenes: str, tmp_path: Path):
    if scenes.startswith(("dense", "late")) and not importlib.util.find_spec("transformers"):
        pytest.skip("needs the `torch` extra (transformers)")
    count = -(-COUNT // sum(group.count(",") + 1 for group in SCENES))
    command = [sys.executable, "-m", "tests.fault_scenes", scenes, str(SEED), str(count), str(tmp_path)]
    environment = os.environ | {"WEIR_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, cwd=Path(__file__).parents[2]
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"{lines[-1:]}: exit {done.returncode}\n{done.stderr[-3000:]}"
    assert len(lines) == 2 * count * len(scenes.split(","))
    for fault, found in zip(lines[::2], lines[1::2], strict=True):
        what = fault["fault"]
        assert "traceback" not in found, f"{what}\n{found['traceback']}"
        assert found["same"], what
        assert found["mended"], what
        assert found["said"] or quiet(what), what
        assert len(found["said"]) <= 2, (
            what,
            found["said"],
        )  # a store's own, and that of the index that knew it
        assert not any("\n" in line for line in found["said"]), what


def test_faults_are_the_same_for_a_seed_and_each_changes_something(tmp_path: Path):
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    whole = {"a": rng.bytes(3000), "in/b": b"x", "c": b"", "d": bytes(2000) + b"1"}
    drawn = []
    for number in range(100):
        for name, data in whole.items():
            (tmp_path / name).write_bytes(data)
        fault = Fault.drawn(np.random.default_rng(number), tmp_path)
        assert fault == Fault.drawn(np.random.default_rng(number), tmp_path)
        fault.strike(tmp_path)
        assert {n: (tmp_path / n).read_bytes() for n in whole if (tmp_path / n).exists()} != whole, fault
        drawn.append(fault.kind)
    assert set(drawn) == set(KINDS)
