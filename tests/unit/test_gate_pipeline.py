"""The pipelines of docs/gate.md: what their files say, and their shell lines run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "gate.md").read_text(encoding="utf-8"), re.DOTALL)
FOUND = {"github": BLOCKS[0], "gitlab": BLOCKS[1]}


def shell_lines(text: str, kind: str) -> str:
    """The lines that a runner gives to its shell, without what installs Weir."""
    if kind == "github":
        [block] = re.findall(r"- run: \|\n((?:          .*\n)+)", text)
        return re.sub(r"^          ", "", block, flags=re.MULTILINE)
    lines = re.findall(r"^    - (.*)$", text, re.MULTILINE)
    assert lines[0].partition("  #")[0] == 'pip install "weir-ir[run]"'
    return "\n".join(lines[1:])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A repository with a golden set and its baseline, and where `weir` is on the path."""
    root = tmp_path_factory.mktemp("pipeline")
    programs = root / "bin"
    programs.mkdir()
    weir = programs / "weir"
    weir.write_text(f'#!/bin/sh\nexec {sys.executable} -m weir "$@"\n')
    weir.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "WEIR_HOME": str(root / "home")}
    environment |= {"GITHUB_STEP_SUMMARY": str(root / "summary.md")}
    script = ROOT / "scripts" / "golden_story.py"
    subprocess.run([sys.executable, script, "golden"], cwd=root, env=environment, check=True)
    save = "weir run -d golden -s bm25 -m nDCG@10 -o base -q && weir gate --save baseline.tsv base"
    subprocess.run(save, cwd=root, env=environment, check=True, shell=True)
    return root, environment


@pytest.mark.parametrize(
    ("kind", "system", "code"), [("github", "bm25", 0), ("github", "rm3", 1), ("gitlab", "rm3", 1)]
)
def test_the_shell_lines_of_a_pipeline_run(place, kind, system, code):
    root, environment = place
    lines = shell_lines(FOUND[kind], kind).replace("-s bm25 ", f"-s {system} ")
    results = f"results-{kind}-{system}"
    done = subprocess.run(
        ["bash", "-e", "-c", lines.replace("-o results", f"-o {results}").replace("tsv results", f"tsv {results}")],
        cwd=root, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert f'failures="{2 * code}"' in (root / "gate.xml").read_text()
    if kind == "github":
        outcome = "**weir gate: FAIL**" if code else "**weir gate: pass**"
        assert (root / "gate.md").read_text().startswith(outcome)
        assert outcome in (root / "summary.md").read_text()


def test_the_pipelines_are_yaml_of_the_shape_that_their_servers_read():
    yaml = pytest.importorskip("yaml")
    github, gitlab = (yaml.safe_load(text) for text in FOUND.values())
    steps = github["jobs"]["gate"]["steps"]
    assert github[True] == "pull_request"  # YAML reads on as a truth value
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert gitlab["retrieval-gate"]["artifacts"]["reports"] == {"junit": "gate.xml"}
    assert gitlab["retrieval-gate"]["allow_failure"] == {"exit_codes": 3}
