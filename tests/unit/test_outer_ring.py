"""The house works without its outer ring, and says in one line what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weir

SOURCE = Path(weir.__file__).parent


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package without `plugins`, and a sitecustomize that hides its entry points."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(SOURCE, folder / "weir", ignore=shutil.ignore_patterns("plugins", "__pycache__"))
    (folder / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\nmetadata.entry_points = lambda **_: metadata.EntryPoints()\n"
    )
    (folder / "qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    (folder / "run").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n")
    (folder / "golden.csv").write_text("question,answer,contexts\na,b,c\n")
    return folder


def called(house, *arguments):
    environment = os.environ | {"PYTHONPATH": str(house), "WEIR_HOME": str(house / "home")}
    command = [sys.executable, "-m", "weir", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=house, env=environment, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("eval", "qrels", "run"),
        ("audit", "qrels", "run"),
        pytest.param(("run", "-d", "brook", "-s", "bm25", "-o", "out"), marks=pytest.mark.slow),  # compiles
    ],
)
def test_house_alone(house, arguments):
    answer = called(house, *arguments)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("study", "conform"),
        ("data", "import", "golden.csv"),
        ("run", "-d", "golden.csv", "-s", "bm25", "-o", "out2"),
        ("run", "-d", "hf:a/b", "-s", "bm25", "-o", "out3"),
        ("run", "-d", "brook", "-s", 'elasticsearch("shop.toml")', "-o", "out4"),
    ],
)
def test_what_is_missing_is_one_line(house, arguments):
    answer = called(house, *arguments)
    assert answer.returncode == 2
    assert answer.stderr.startswith("weir: ")
    assert answer.stderr.count("\n") == 1
    assert "bug in Weir" not in answer.stderr
