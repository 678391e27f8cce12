"""Options of commands say what the functions declare that take their values."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path

import click
import pytest

import weir
from weir.cli import options
from weir.cli.declared import settings_of
from weir.cli.main import all_commands, load_command
from weir.errors import BadValue
from weir.settings import settings

SOURCE = Path(weir.__file__).parent
FILES = [*SOURCE.glob("cli/*.py"), *SOURCE.glob("plugins/*/*command*.py")]
DECLARED = sorted(
    {path for file in FILES for path in re.findall(r'@options\(\s*"([\w.]+)"', file.read_text("utf-8"))}
)


@pytest.mark.parametrize("path", DECLARED)
def test_what_is_read_from_the_source_is_what_python_knows(path):
    module, _, name = path.rpartition(".")
    known = inspect.signature(getattr(importlib.import_module(module), name)).parameters.values()
    named = [one for one in known if one.kind != one.VAR_POSITIONAL]
    settings = settings_of(path)
    assert list(settings) == [one.name for one in named]
    for one in named:
        plain = isinstance(one.default, (bool, int, float, str, tuple))
        assert settings[one.name].default == (one.default if plain else None)


@pytest.mark.parametrize("name", sorted(all_commands()))
def test_every_option_has_help_that_names_no_python(name):
    command = load_command(name)
    about = command.get_help(click.Context(command)).partition("Options:")[0]
    assert not re.search(r"\S {3,}\S", about)  # as where a line of its docstring is indented by mistake
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.opts
            assert not re.search(r"`|\bNone\b|\bTrue\b|\{\w+: ", option.help), option.help


@pytest.mark.parametrize("before", [None, "8M"])
def test_what_an_option_sets_for_a_call_ends_with_it(before, monkeypatch):
    asked = {
        "WEIR_API_BUDGET": ("--budget", "5 tokens"), "WEIR_DEVICE": ("--device", "cpu"),
        "WEIR_MAX_RAM": ("--max-ram", "2M"), "WEIR_API_PRICE": ("--price", "1"),
    }  # fmt: skip
    for variable in asked:
        monkeypatch.setenv(variable, before or "")
        if before is None:
            monkeypatch.delenv(variable)
    environment = dict(os.environ)
    command = click.Command("asked", callback=lambda: ({v: os.environ[v] for v in asked}, settings()))
    for add in (options.budget_option, options.device_option, options.max_ram_option, options.price_option):
        command = add(command)
    group = click.Group("weir", commands=[command])
    words = ["asked", *(word for pair in asked.values() for word in pair)]
    variables, during = group.main(words, standalone_mode=False)
    assert variables == {variable: value for variable, (_, value) in asked.items()}
    assert (during.api_budget, during.device, during.api_price) == ("5 tokens", "cpu", "1")
    for wrong in (["--unknown"], ["--max-ram", "little"]):
        with pytest.raises((click.UsageError, BadValue)):
            group.main([*words, *wrong], standalone_mode=False)
    assert os.environ == environment
    assert settings().device == (before or "auto")
