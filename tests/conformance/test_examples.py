"""Every example of README.md and of the pages below docs/ runs, and prints what the page shows."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import SHARED
from tests.forks import Runner, forking

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("examples", ROOT / "scripts" / "examples.py")
assert spec is not None
assert spec.loader is not None
examples = importlib.util.module_from_spec(spec)
sys.modules["examples"] = examples  # its dataclasses ask for it
spec.loader.exec_module(examples)


pytestmark = pytest.mark.xdist_group("examples")  # one process imports the packages, for all pages


@pytest.fixture(scope="module")
def ran():
    """A function: the runner on one page, in a process of its own: what an example registers stays there."""

    def page_runner(page, shared=SHARED):
        env = {**os.environ, "WEIR_SHARED": str(shared), "PYTHONWARNINGS": "default"}
        command = [str(ROOT / "scripts" / "examples.py"), str(page)]
        return run(command, env, ROOT, ["numba", "weir.cli.main", "weir.experiment", "weir.systems"])

    run: Runner
    with forking() as run:
        yield page_runner


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in examples.pages()])
def test_the_examples_of_a_page_print_what_it_shows(ran, page):
    done = ran(ROOT / page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_real_collections_their_examples_are_skipped_with_the_reason(ran, tmp_path):
    done = ran(ROOT / "docs" / "tutorials" / "from-beir.md", shared=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 run, 1 skipped" in done.stdout
    assert "needs scifact in ../shared/data" in done.stdout


def test_without_a_package_its_examples_are_skipped_with_the_reason(ran, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- examples: packages numpy no_such_package -->\n```python\n1 / 0\n```\n<!-- examples: fresh -->\n"
        "<!-- examples: packages numpy -->\n```python\n1 + 1\n```\n"
    )
    done = ran(page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 run, 1 skipped" in done.stdout
    assert "needs no_such_package" in done.stdout


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "--- but this is printed:\n1"),
        ("```python\n'a'\n```\n\n```text\n'b'\n```\n", "--- but this is printed:\n'a'"),
        ("```console\n$ weir eval absent.tsv absent.trec\n```\n", "ended with 2"),
        (
            "```console\n$ weir --version\nweir, version none\n```\n",
            "--- but this is printed:\n$ weir --version",
        ),
        ("```console\n$ rm file\n```\n", "runs weir alone"),
    ],
)
def test_an_example_that_fails_or_prints_something_else_is_named(ran, tmp_path, page, said):
    (tmp_path / "page.md").write_text("# Page\n\n" + page)
    done = ran(tmp_path / "page.md")
    assert done.returncode == 1
    assert said in done.stdout


def test_what_is_printed_can_be_written_into_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n6 * 7\n```\n\n```text\nold\n```\n\n```console\n$ weir eval a.tsv b.trec\nold\n```\n"
    )
    found = examples.parts_of(page.read_text())
    assert [part.kind for part in found] == ["python", "text", "console"]
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "examples.py"), "--write", str(page)],
        capture_output=True,
        check=True,
    )
    assert page.read_text() == (
        "```python\n6 * 7\n```\n\n```text\n42\n```\n\n```console\n$ weir eval a.tsv b.trec\nweir: a.tsv: found no such file; expected the path of an existing file\n```\n"
    )
