"""What is finished is found by a machine that could not make it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

import weir
from weir.experiment.experiment import Experiment
from weir.models import cards
from weir.settings import settings

SYSTEMS = ('dense("minilm", max_length=32)', 'bm25 >> score(dense("minilm", max_length=32), depth=5)')
EXTRA = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "openvino",
    "huggingface_hub",
    "numba",
    "llvmlite",
)
CARRIED = next(card for card in cards() if card.name == "minilm").packaged

ELSEWHERE = """
import importlib.util, json, sys
from pathlib import Path
from weir.errors import MissingExtra
from weir.experiment.experiment import Experiment
systems = tuple(json.loads(sys.argv[2]))
assert not [name for name in json.loads(sys.argv[3]) if importlib.util.find_spec(name)]
rows = Experiment(("brook-facts",), systems, ("nDCG@10",), k=10).execute(sys.argv[1])
print(json.dumps([row.to_dict() for row in rows]))
try:
    Experiment(("brook-facts",), systems, ("nDCG@10",), k=9).execute(sys.argv[1])
except MissingExtra as error:
    print(error)
"""


@pytest.mark.skipif(not CARRIED, reason="needs the package of MiniLM")
def test_finished_cells_are_found_without_the_extras_that_made_them(tmp_path, monkeypatch):
    """In a Python that lacks torch, numba and all that comes with them; a cell that is not finished is refused there."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    grid = Experiment(("brook-facts",), SYSTEMS, ("nDCG@10",), k=10)
    rows = [row.to_dict() for row in grid.execute(tmp_path / "results")]
    settings.cache_clear()
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "results").rglob("*")}
    (tmp_path / "packages").mkdir()
    for path in Path(np.__file__).parents[1].iterdir():
        if not path.name.startswith(EXTRA):
            (tmp_path / "packages" / path.name).symlink_to(path)
    paths = os.pathsep.join([str(Path(weir.__file__).parents[1]), str(tmp_path / "packages")])
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            ELSEWHERE,
            str(tmp_path / "results"),
            json.dumps(SYSTEMS),
            json.dumps(EXTRA),
        ],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, refused = done.stdout.splitlines()
    assert json.loads(found) == rows
    assert "pip install " in refused
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "results").rglob("*")}
