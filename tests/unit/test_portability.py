"""The same answers on every processor, with bounds checked, and without the compiler what needs none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weir.errors import install_command
from weir.systems.warm import kernel_kinds

JOBS = Path(__file__).with_name("portable_jobs.py")
OTHER_TARGET = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_BOUNDSCHECK": "1"}
ABSENT = (
    "import sys; sys.modules['numba'] = None; from weir.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def answers(*arguments: str, **variables: str) -> dict[str, object]:
    """What the jobs print: digests, and with --prepared what was compiled when."""
    done = subprocess.run(
        [sys.executable, str(JOBS), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual() -> dict[str, object]:
    return answers()


def test_the_ways_to_search_and_to_read_agree(usual):
    assert usual["sparse few"] == usual["sparse many"] == usual["sparse learned"]
    assert len({digest for name, digest in usual.items() if name.startswith(("numpy", "numba"))}) == 1


def test_a_processor_without_extensions_and_checked_bounds_give_the_same_bits(usual, tmp_path):
    """Scores in double have one order of adding, those of MaxSim are chains of fused operations: nothing may move.

    And once the kernels of every system are prepared, into an empty cache, no system compiles another. Term weights
    have kernels only where the processor multiplies bytes.
    """
    digests = answers("--prepared", NUMBA_CACHE_DIR=str(tmp_path), **OTHER_TARGET)
    groups = [group for group in kernel_kinds() if group != "term weights"]
    lines = [f"compiling kernels of {group}: only this once, some seconds" for group in groups]
    assert digests.pop("prepared") == [lines, True]
    assert digests.pop("compiled late") == []
    assert digests == usual


def weir(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that cannot import numba."""
    return subprocess.run(
        [sys.executable, "-c", ABSENT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )


def test_without_numba_runs_are_read_and_scored(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "a.trec").write_text("q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n")
    done = weir("eval", str(tmp_path / "qrels"), str(tmp_path / "a.trec"), "-m", "AP", "--json")
    assert (done.returncode, json.loads(done.stdout)["mean"]) == (0, 1.0), done.stderr


@pytest.mark.parametrize("system", ["bm25", "rm3", "bm25 >> score(rm3)"])
def test_without_numba_a_system_says_in_one_line_what_it_needs(system, tmp_path):
    done = weir("run", "-q", "-d", "brook-medical", "-s", system, "-o", str(tmp_path / "results"))
    assert done.returncode == 2
    assert done.stderr == f"weir: this needs 'numba', which is not installed; {install_command('run')}\n"


def test_systems_are_listed_and_named_without_numba():
    assert "rm3(" in weir("list", "systems").stdout


def test_where_compiling_is_forbidden_the_variable_is_named(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "weir",
            "run",
            "-q",
            "-d",
            "brook-medical",
            "-s",
            "bm25",
            "-o",
            str(tmp_path / "r"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "NUMBA_DISABLE_JIT" in done.stderr
