"""The command `weir`: finds the command's module, and turns every expected error into one line."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import click

from weir.cli.terminal import protected_output, show_raw
from weir.errors import PluginError, StoreWarning, UnknownName, WeirError, printable

__all__ = ["COMMANDS", "main", "weir"]

# Group -> name -> first sentence of its help. A command lives in weir.cli.<name> as `command`; spelling the sentence
# out here keeps `weir --help` from importing anything, and a test compares both.
GROUPS = {
    "Measure": {
        "eval": "Score run files against judgments.",
        "measures": "List the measures, their settings and where they come from.",
        "fuse": "Fuse rankings into one.",
        "convert": "Convert rankings or judgments between formats.",
        "conform": "Run the golden vectors against a tool.",
    },
    "Compare": {
        "compare": "Compare systems, with a verdict on each pair.",
        "diff": "Show which queries one run wins and loses against another.",
        "gate": "Fail when a candidate may have become worse than allowed.",
        "power": "Say how small a difference the queries can show, and how many would show a smaller one.",
        "threshold": "Find the score below which a system should stay silent.",
        "why": "Explain why two numbers differ.",
        "reranking": "Say what re-rankings did to their first stage, from run files alone.",
    },
    "Collect": {
        "datasets": "List the collections that Weir knows.",
        "fetch": "Download collections, verify them, and make them ready.",
        "import": "Read files of other tools and golden sets as a collection.",
        "stats": "Describe a collection: sizes, judgments, duplicates, damage.",
        "subset": "Make a mini collection, with the proof of how far it ranks systems as the whole does.",
    },
    "Judge": {
        "audit": "Audit collections, judgments and runs: what is wrong with them, and what that does to scores.",
        "align": "Say which benchmark collections look like this one, and average scores by that.",
        "pool": "Write a sheet of what to judge next.",
        "judge": "Let a language model judge, and say how far to trust it.",
        "relabel": "Score every system again with new judgments.",
        "holes": "Say what people, or people and a model, find among unjudged documents.",
        "agree": "Say how well labels of people, or of models, agree.",
        "estimate": "Estimate scores from few human judgments and many of a model.",
    },
    "Run": {
        "run": "Run systems on collections and score them, resumably.",
        "results": "Show the results in a folder written by weir run.",
        "llm": "Show what language models were asked and answered.",
        "export": "Write results as MTEB, the Hugging Face hub or ir_metadata keep them.",
        "plan": "Say what weir run would make and take: stages, time, disk and memory.",
        "efficiency": "Show what each system costs, next to its quality.",
        "verify": "Check that a results folder is what its records say.",
        "reproduce": "Check results against published scores.",
        "drop": "Remove what systems made on a server.",
        "sensitivity": "Say what re-ranking by a language model depends on.",
        "systems": "List the systems and their presets with every setting.",
        "models": "List the encoders that Weir knows, or say what one comes to.",
        "warm": "Compile the kernels once, so that no first run waits for them.",
        "doctor": "Show what is installed, which engines would run, and where things are kept.",
    },
}
COMMANDS = {name: sentence for group in GROUPS.values() for name, sentence in group.items()}
MODULES = {"eval": "evaluate"}
PLUGINS = {"conform", "export", "import", "reranking", "sensitivity"}
"""Commands that plug-ins bring, see plugin_commands."""
_SHOWN = 200  # characters of an unexpected error
_LINE = 2000  # characters of a message


def _raw(context: click.Context, _: click.Parameter, raw: bool) -> None:
    if raw and not context.resilient_parsing:
        show_raw()


RAW = click.Option(["--raw"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_raw)
"""What every command takes, behind its name too."""


def _of_house(name: str) -> object:
    return importlib.import_module(f"weir.cli.{MODULES.get(name, name)}").command


def _of_plugin(name: str) -> object:
    from weir.cli.plugin_commands import plugin_command  # reading the installed metadata takes 20 ms

    command = plugin_command(name)
    if command is None:
        raise PluginError(
            f"no plug-in that is installed brings the command '{name}'; reinstall weir-ir for its own"
        )
    return command


class _Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = _of_plugin(cmd_name) if cmd_name in PLUGINS else _of_house(cmd_name)
        assert isinstance(command, click.Command)
        found = copy(command)  # so that the module's own is not changed by being called
        found.params = [*command.params, RAW]
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UnknownName("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(len("efficiency")), said) for name, said in commands.items()])


SETTINGS = {"help_option_names": ["-h", "--help"], "color": True}
"""Click takes colours out of what it prints into a pipe, also out of identifiers, which are escaped instead."""


@click.group(cls=_Lazy, invoke_without_command=True, context_settings=SETTINGS)
@click.version_option(package_name="weir-ir", prog_name="weir")
@click.option("--raw", is_flag=True, expose_value=False, is_eager=True, callback=_raw,
              help="Write data into pipes and files byte for byte; by default control characters and marks that turn "
                   "text around are escaped, as always in a terminal.")  # fmt: skip
@click.pass_context
def weir(context: click.Context) -> None:
    """Measure how well retrieval systems find what people need.

    `weir COMMAND --help` explains a command. Results go to standard output, progress to standard error. The shell
    can complete commands, options and their choices: docs/completion.md.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0; 1 where a command says so, as weir gate does; 2 for a mistake or bad input; 130 when interrupted, 143 when
    terminated. What nobody expected is one line too; WEIR_DEBUG=1 shows where it happened.
    """
    with protected_output():
        return _main(arguments)


def _main(arguments: list[str] | None) -> int:
    try:
        with _ended_by_sigterm(), warnings.catch_warnings():
            warnings.showwarning = _warned
            warnings.simplefilter("always", StoreWarning)
            # Click returns the code of ctx.exit(); a command itself returns None.
            code = weir.main(arguments, prog_name="weir", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _stopped("interrupted", 130)
    except _Terminated:
        return _stopped("terminated", 143)
    except (BrokenPipeError, SystemExit):  # click turns a closed pipe into SystemExit
        # Whoever read the output has seen enough, as `head` does: no error, and nothing more to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001  the last place where it can become a line
        return _failed(_said(error))
    return code if isinstance(code, int) else 0


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM raises _Terminated within the block, so that what is half-written is taken away."""

    def end(*_: object) -> None:
        raise _Terminated

    if (
        threading.current_thread() is not threading.main_thread()
    ):  # Python takes signals in the main thread alone
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, without the place in the code that gave it."""
    print("warning: " + printable(str(message)), file=sys.stderr)


def _failed(message: str) -> int:
    if os.environ.get("WEIR_DEBUG"):
        traceback.print_exc()
    line = printable(" ".join(message.split()))
    print("weir: " + (line if len(line) <= _LINE else line[: _LINE - 3] + "..."), file=sys.stderr)
    return 2


def _stopped(how: str, code: int) -> int:
    print(f"\nweir: {how}; what is finished is kept, the same command continues", file=sys.stderr)
    return code


def _said(error: Exception) -> str:
    """What an error says in one line; an unexpected one asks to be reported."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError):
        reason = "no space left on the disk" if error.errno == errno.ENOSPC else error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, WeirError):
        return str(error)
    found = f"{type(error).__name__}: {error}"[:_SHOWN]
    return f"unexpected {found}; this is a mistake in Weir, please report it (WEIR_DEBUG=1 shows where it happened)"
