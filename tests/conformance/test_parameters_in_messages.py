"""A message names a parameter as Python passes it, in backquotes; the command line writes its option in that place."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.cli.main import all_commands, load_command, main
from weir.cli.terminal import as_options
from weir.errors import BadValue

SOURCE = Path(weir.__file__).parent
OPTION = re.compile(r"(?<![^\s('\"\[])(?:--(?!weir-)[a-z][\w-]*|-[a-zA-Z](?![\w-]))")
PARAMETER = re.compile(r"`(\w+)(?:=[^`]*)?`")
MANY = ("conventions", "choices")
"""Parameters whose entries are options of their own."""
OF_OTHERS = ("pip install", "ulimit")
COMMANDS = {name: load_command(name) for name in sorted(all_commands(), key=len, reverse=True)}
VALUE = st.text(st.characters(exclude_characters="`", exclude_categories=["C", "Z"]), min_size=1)


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string but docstrings; {} stands for what is put into it."""
    passed = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed |= {id(value) for value in ast.walk(node)}
            yield (
                node.lineno,
                "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


@cache
def messages() -> list[tuple[str, str]]:
    """Return (file and line, text) of all that is no part of a command line, where no command is declared."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text("utf-8")
        if SOURCE / "cli" not in path.parents and "@click.command" not in source:
            found += [(f"{path.relative_to(SOURCE)}:{line}", text) for line, text in texts(ast.parse(source))]
    return [(place, text) for place, text in found if not re.fullmatch(r"-\S+( \S*)?", text.strip())]


def stands_in_command(text: str, option: re.Match[str]) -> bool:
    """Return whether an option follows the command that has it, or a program of others."""
    before = text[: option.start()]
    if any(name in before for name in OF_OTHERS):
        return True
    called = re.split(r"\bweir ", before)[1:]
    name = next((name for name in COMMANDS if called and called[-1].startswith(name)), None)
    return name is not None and any(option[0] in one.opts for one in COMMANDS[name].params)


def test_options_stand_in_whole_commands_alone():
    loose = [
        f"{place}: {option[0]} in {text!r}"
        for place, text in messages()
        for option in OPTION.finditer(text)
        if not stands_in_command(text, option)
    ]
    assert not loose


def test_what_stands_in_backquotes_is_an_option_of_a_command():
    options = {
        (one.name or "").rpartition("__")[2]
        for command in COMMANDS.values()
        for one in command.params
        if isinstance(one, click.Option)
    }
    unknown = [
        f"{place}: {found[0]}"
        for place, text in messages()
        for found in PARAMETER.finditer(text)
        if (found[0].split("'")[1].split("=")[0] if found[1] in MANY else found[1]) not in options
    ]
    assert not unknown


def test_a_value_that_is_advised_is_one_to_type():
    """`systems=...` would be printed as -s Ellipsis."""
    loose = [
        f"{place}: {found[0]}"
        for place, text in messages()
        for found in PARAMETER.finditer(text)
        if found[0].endswith("=...`")
    ]
    assert not loose


@given(VALUE, st.dictionaries(VALUE, VALUE, min_size=1, max_size=3), st.lists(VALUE, min_size=1, max_size=3))
def test_what_the_message_advises_is_read_as_that_value(text, table, several):
    @click.command
    @click.option("-m", "--measure", "given__measures", multiple=True)
    @click.option("--where", "where", multiple=True)
    @click.option("--by")
    @click.option("--drop", is_flag=True)
    def command(given__measures, where, by, drop):
        return list(given__measures), list(where), by, drop

    said = as_options(f"`measures={several!r}` `where={table!r}` `by={text!r}` `drop=True`", command)
    pairs = [f"{name}={value}" for name, value in table.items()]
    assert command.main(shlex.split(said), standalone_mode=False) == (several, pairs, text, True)
    assert as_options("`measures`, `drop`, `k` and `weir list`", command) == "-m, --drop, `k` and `weir list`"


def test_both_sides_read_the_same_message(tmp_path, capsys):
    qrels, run = tmp_path / "q.trec", tmp_path / "r.trec"
    qrels.write_text("q1 0 d1 1\n")
    run.write_text("q1 Q0 d1 1 2 x\n")
    with pytest.raises(BadValue, match=r"^`by='prefix:_'`: no query identifier has '_' in it"):
        weir.evaluate(qrels, run).by("prefix:_")
    assert main(["eval", str(qrels), str(run), "--by", "prefix:_"]) == 2
    assert "weir: --by prefix:_: no query identifier" in capsys.readouterr().err
