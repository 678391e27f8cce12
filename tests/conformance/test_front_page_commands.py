"""The front page as a newcomer meets it: its commands in their order, on a machine with nothing but Python and make."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from tests.conftest import SOURCE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (make \w+|pip install \S+)", README, re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
    pytest.mark.xdist_group("front page"),
]


def test_the_page_names_the_commands_that_run_here():
    assert COMMANDS == ["make demo", "make test", "pip install .", "pip install '.[run]'"]


def test_make_demo_makes_its_environment_and_a_report(checkout, run):
    done = run("make demo", network=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(re.findall(r"^brook-\w+ +bm25 ", done.stdout, re.MULTILINE)) == 18  # scores, then costs
    assert "scifact" not in done.stdout  # which takes minutes, and comes with REAL=1
    assert "can be concluded" in (checkout / "demo-results.html").read_text(encoding="utf-8")


def test_make_test_is_what_these_tests_are_run_by(run):
    done = run("make -n test")
    assert done.returncode == 0, done.stderr
    assert "-m pytest" in done.stdout


def test_installed_by_pip_the_page_prints_what_it_shows(checkout, run):
    """The base install names what is missing; with the extra every example runs, the fetch from a mirror.

    Without a mirror and the network a fetch says so in a line.
    """
    assert run(f"{shlex.quote(sys.executable)} -m venv ../env").returncode == 0
    install = [command for command in COMMANDS if command.startswith("pip")]
    done = run(install[0] + " -q", network=True, path="env/bin")
    assert done.returncode == 0, done.stderr
    lacking = run("weir run -d brook-news -s bm25 -o lacking", path="env/bin")
    assert lacking.returncode == 2
    assert (
        lacking.stderr == f"weir: this needs 'numba', which is not installed; pip install '{checkout}[run]'\n"
    )
    done = run(install[1] + " -q", network=True, path="env/bin")
    assert done.returncode == 0, done.stderr
    done = run("python scripts/examples.py README.md", path="env/bin")
    assert done.returncode == 0, done.stdout + done.stderr
    blocks = len(re.findall(r"^```(?:console|python)$", README, re.MULTILINE))
    there = (SOURCE / "data" / "nfcorpus" / "nfcorpus.zip").is_file()
    assert f"README.md: {blocks} run, 0 skipped" in done.stdout or not there, done.stdout
    absent = run("weir run -d nfcorpus -s bm25", path="env/bin")
    assert absent.returncode == 2
    assert absent.stderr.startswith(
        "weir: nfcorpus is not on this machine; get it with: weir data fetch nfcorpus"
    )
    fetched = run("weir data fetch nfcorpus", path="env/bin")
    assert fetched.returncode == 2
    assert fetched.stderr.splitlines()[-1].startswith(
        "weir: nfcorpus could not be fetched: without a network copy its folder"
    )
