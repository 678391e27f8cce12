"""A distribution of anybody's adds commands, functions and systems by its entry points alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import weir

CODE = '''
import click
import weir


@click.command()
@click.option("--name", default="you")
def hello(name):
    """Greet."""
    click.echo(f"hello {name}")


@click.command()
def broken():
    """Fail."""
    raise ZeroDivisionError("a mistake of its own")


def greet():
    return "greetings"


def shortest(**settings):
    return weir.systems.BM25(k1=0.5)
'''
POINTS = """
[weir.commands]
hello = hello_weir:hello
study hello = hello_weir:hello
lab hello = hello_weir:hello
lab deep hello = hello_weir:hello
broken = hello_weir:broken
absent = hello_weir:absent
number = hello_weir:CODE_OF_NOTHING

[weir.functions]
greet = hello_weir:greet

[weir.systems]
shortest = hello_weir:shortest
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for PYTHONPATH with a distribution in it."""
    folder = tmp_path_factory.mktemp("site")
    facts = folder / "hello_weir-1.0.dist-info"
    facts.mkdir()
    (folder / "hello_weir.py").write_text(CODE)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: hello-weir\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    return folder


def called(folder, *arguments, program=("-m", "weir")):
    places = os.pathsep.join([str(folder), str(Path(weir.__file__).parents[1])])
    environment = os.environ | {"PYTHONPATH": places, "WEIR_HOME": str(folder / "home")}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@pytest.mark.parametrize("words", ["hello", "study hello", "lab hello", "lab deep hello"])
def test_its_command_is_called_in_each_group(folder, words):
    answer = called(folder, *words.split(), "--name", "reader", "--raw")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "hello reader\n", "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--help", "  hello      Command of hello-weir."),
        ("--help", "  lab        Commands of hello-weir."),
        ("study", "  hello        Command of hello-weir."),
        ("lab", "  hello  Command of hello-weir."),
        ("lab --help", "  deep   Commands of hello-weir."),
        ("lab deep", "  hello  Command of hello-weir."),
    ],
)
def test_the_help_of_its_group_lists_it_and_names_the_distribution(folder, words, line):
    answer = called(folder, *words.split())
    assert answer.returncode == 0
    assert line in answer.stdout.splitlines()


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
