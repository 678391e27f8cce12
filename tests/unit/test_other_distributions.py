"""A distribution of anybody's adds commands, functions, systems, measures, sources, sections by its entry points alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import write_collection

PAGE = (Path(weir.__file__).parents[2] / "docs/plugins.md").read_text(encoding="utf-8")
PROJECT, CODE = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1] for kind in ("toml", "python"))
FAILING = '''

@click.command()
def broken():
    """Fail."""
    raise ZeroDivisionError("a mistake of its own")
'''
MORE = {
    "study hello": "hello_weir:hello",
    "lab hello": "hello_weir:hello",
    "lab deep hello": "hello_weir:hello",
    "broken": "hello_weir:broken",
    "absent": "hello_weir:absent",
    "number": "hello_weir:CODE_OF_NOTHING",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for PYTHONPATH with the page's distribution in it, and some commands more."""
    folder = tmp_path_factory.mktemp("site")
    facts = folder / "hello_weir-1.0.dist-info"
    facts.mkdir()
    (folder / "hello_weir.py").write_text(CODE + FAILING)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: hello-weir\nVersion: 1.0\n")
    groups = tomllib.loads(PROJECT)["project"]["entry-points"]
    groups["weir.commands"] |= MORE
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in groups.items()
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    write_collection(folder / "collections" / "mine")
    return folder


def called(folder, *arguments, program=("-m", "weir")):
    places = [str(folder), str(Path(weir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places)), "HOME": str(folder)}
    environment |= {"WEIR_HOME": str(folder / "home")}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@pytest.mark.parametrize("words", ["hello", "study hello", "lab hello", "lab deep hello"])
def test_its_command_is_called_in_each_group(folder, words):
    answer = called(folder, *words.split(), "--name", "reader", "--raw")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "hello reader\n", "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--help", "hello Greet somebody. (hello-weir)"),
        ("--help", "lab Commands of hello-weir."),
        ("study", "hello Greet somebody. (hello-weir)"),
        ("lab", "hello Greet somebody. (hello-weir)"),
        ("lab --help", "deep Commands of hello-weir."),
        ("lab deep", "hello Greet somebody. (hello-weir)"),
    ],
)
def test_the_help_of_its_group_lists_it_and_names_the_distribution(folder, words, line):
    answer = called(folder, *words.split())
    assert answer.returncode == 0
    assert line in " ".join(answer.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hallo", "no command named 'hallo'; did you mean hello?"),
        ("lab nothing", "no command named 'lab nothing'; "),
        ("absent", "the command 'absent' (hello_weir:absent) cannot be loaded"),
        ("number", "the command 'number' (hello_weir:CODE_OF_NOTHING) cannot be loaded"),
    ],
)
def test_a_mistake_is_one_line(folder, words, said):
    answer = called(folder, *words.split())
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"weir: {said}")
    assert answer.stderr.count("\n") == 1


def test_an_error_of_its_command_is_called_a_bug_of_the_distribution(folder):
    answer = called(folder, "broken")
    assert answer.returncode == 70
    assert "weir: broken: unexpected ZeroDivisionError" in answer.stderr
    assert "this is a bug in hello-weir, " in answer.stderr


def test_its_function_and_its_system_are_used(folder):
    program = "import weir; print(weir.greet(), weir.system('shortest()'))"
    answer = called(folder, program=("-c", program))
    assert answer.stdout == "greetings bm25(k1=0.5)\n", answer.stderr


def test_its_source_system_and_measure_make_results_and_its_section_is_in_their_report(folder):
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    grid = ("-d", "shelf:mine", "-s", "shortest()", "-s", "bm25", "-m", "Hits@2", "-m", "P@2")
    run = called(folder, "run", "-q", *grid, "-o", "out", "--json")
    assert run.returncode == 0, run.stderr
    scores = {
        (row["system"], row["measure"]): row["mean"] for row in map(json.loads, run.stdout.splitlines())
    }
    for system in ("bm25(k1=0.5)", "bm25"):
        assert scores[system, "Hits@2"] == pytest.approx(2 * scores[system, "P@2"])
    report = called(folder, "report", "out", "-o", "page.html")
    assert report.returncode == 0, report.stderr
    assert "2 systems were heard." in (folder / "page.html").read_text(encoding="utf-8")
