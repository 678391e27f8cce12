"""The command `weir`: finds the command's module, and turns every expected error into one line."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from weir.cli.terminal import outputs_are_read, protected_output, show_raw
from weir.errors import NameNote, PluginError, ServiceError, StoreWarning, UnknownName, WeirError, printable
from weir.settings import NO_MEMORY

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

# Section -> command -> first sentence of its help. `load_command` imports a command when it is called; spelling the
# sentence out here keeps `weir --help` from importing anything, and a test compares both.
TOP = {
    "Start here": {
        "run": "Run systems on collections, and show their scores.",
        "eval": "Score rankings against judgments.",
        "compare": "Compare systems, with significance tests.",
        "audit": "Report what is wrong with collections, judgments and runs.",
        "judge": "Label documents with a language model, and report its agreement.",
        "results": "Show the scores in a folder written by weir run.",
    },
    "Explain, decide, check": {
        "diff": "List queries won and lost.",
        "why": "Explain a difference.",
        "gate": "Fail on a regression.",
        "power": "Report detectable effects.",
        "report": "Write a report.",
        "fuse": "Fuse rankings into one.",
        "plan": "Estimate time and cost.",
        "verify": "Check a results folder.",
        "doctor": "Show what is installed.",
    },
}
SUBCOMMANDS = {
    "data": {
        "fetch": "Download collections, verify them, and prepare them.",
        "import": "Import files of other tools and golden sets as a collection.",
        "convert": "Convert rankings or judgments between formats.",
        "export": "Write results as MTEB, the Hugging Face hub or ir_metadata keep them.",
        "stats": "Describe collections: sizes, judgments, duplicates, damage.",
        "subset": "Write a small collection, and report how well it ranks systems.",
        "align": "List the benchmark collections that are most like yours.",
        "drop": "Remove the tables and indexes that systems made on a server.",
    },
    "labels": {
        "pool": "Write a sheet of the documents to judge next.",
        "agree": "Report how well labels of people, or of models, agree.",
        "estimate": "Estimate scores from few human judgments and many of a model.",
        "holes": "Report how many unjudged documents are relevant.",
        "relabel": "Score every system again with new judgments.",
    },
    "list": {
        "systems": "List the systems and their presets with every setting.",
        "models": "List the encoders, or describe one.",
        "measures": "List the measures, their settings and their sources.",
        "datasets": "List the collections of the catalogue.",
    },
    "submit": {
        "pack": "Pack results for a leaderboard or a reviewer.",
        "verify": "Verify a pack by computing its scores again.",
        "leaderboard": "Write a leaderboard of packs as a static site.",
    },
    "study": {
        "reranking": "Report what re-rankers changed, from run files alone.",
        "sensitivity": "Report what re-ranking by a language model depends on.",
        "threshold": "Choose the score below which a system should not answer.",
        "llm": "Show the prompts and answers of language models.",
        "conform": "Test a tool with the golden vectors.",
        "efficiency": "Report speed and memory.",
        "reproduce": "Check published scores.",
        "cite": "Write the citations of results as BibTeX.",
        "adapt": "Train an encoder on a collection.",
    },
}
GROUPS = {
    "data": "Fetch, import, convert, export, describe, sample.",
    "labels": "Choose what to judge, and measure labels.",
    "list": "List systems, models, measures, datasets.",
    "submit": "Pack results, verify packs, write a leaderboard.",
    "study": "Study re-rankers, models, costs, published scores.",
}
COMMANDS = {name: sentence for section in TOP.values() for name, sentence in section.items()} | {
    f"{group} {name}": sentence for group, names in SUBCOMMANDS.items() for name, sentence in names.items()
}
"""What each command does, by what is typed behind `weir`."""
FORMER = {
    name: f"{group} {name}" for group, names in SUBCOMMANDS.items() for name in names if group != "submit"
} | {"warm": "doctor --compile", "leaderboard": "submit leaderboard"}
"""Other names of commands: former ones, and leaderboard alone; a line says the one that the help shows."""
FORMER_OPTIONS = {
    "eval": {"--least": "--min-agreement", "--labels": "--model-labels", "--pairs": "--p-mrr"},
    "fuse": {"--output": "--out"},
    "run": {"--output": "--out"},
    "gate": {"--confidence": "--level"},
    "plan": {"--stages": "--only-stages"},
    "study reproduce": {"--as": "--published"},
    "data import": {"--output": "--out"},
    "data export": {"--model": "--mteb-name"},
    "labels agree": {"--word": "--label-grade", "--by-query": "--per-query"},
    "labels holes": {"--human": "--human-labels", "--model": "--model-labels"},
    "study reranking": {"--step": "--window-step"},
    "study sensitivity": {"--output": "--out"},
    "study threshold": {"--confidence": "--abstention"},
}
"""Former spellings of options, by command; they still work. One spelling means the same in every command."""
_SHOWN = 200  # characters of an unexpected error
_LINE = 2000  # characters of a message
NO_ROOM = re.compile("load shared object|failed to map segment|PanicException")
"""How errors look that a limit of addresses may cause, and something else too."""


def _raw(context: click.Context, _: click.Parameter, raw: bool) -> None:
    if raw and not context.resilient_parsing:
        show_raw()


# What every command takes, behind its name too.
RAW = click.Option(["--raw"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_raw)


def plugin_commands() -> dict[str, EntryPoint]:
    """The commands of plug-ins, entry points in the group `weir.commands`, by their whole names; none is imported."""
    from importlib.metadata import entry_points  # reading the installed metadata takes 20 ms

    return {point.name: point for point in entry_points(group="weir.commands")}


def other_commands(group: str = "") -> dict[str, str]:
    """The words that other distributions add to a group, or to the outermost for "", and whose commands they are.

    A command in a group that Weir does not have brings that group along.
    """
    start, words = f"{group} " if group else "", dict[str, str]()
    for path, point in sorted(plugin_commands().items()):
        word, _, deeper = path.removeprefix(start).partition(" ")
        if path.startswith(start) and path not in COMMANDS and start + word not in GROUPS:
            words[word] = f"{'Commands' if deeper else 'Command'} of {_owner(point)}."
    return words


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _files(name: str) -> tuple[ModuleType, ...]:
    """The files with the commands of a group, or with a command, imported; plug-ins bring the others."""
    if name in ("run", "plan", "results", "verify"):
        from weir.cli import running

        return (running,)
    if name in ("eval", "fuse"):
        from weir.cli import scoring

        return (scoring,)
    if name in ("compare", "diff", "why", "gate", "power"):
        from weir.cli import comparing

        return (comparing,)
    if name in ("judge", "audit"):
        from weir.cli import judging

        return (judging,)
    if name in ("list", "doctor"):
        from weir.cli import listing

        return (listing,)
    if name == "data":
        from weir.cli import data

        return (data,)
    if name == "labels":
        from weir.cli import labels

        return (labels,)
    if name == "study":
        from weir.cli import running, studies

        return (studies, running)
    return ()


def load_command(name: str) -> click.Command:
    """The command of that name, such as "data fetch"; the file that defines it is imported.

    Raises PluginError for a command of a plug-in that is not installed or cannot be loaded.
    """
    group, _, word = name.rpartition(" ")
    for file in _files(group or word):
        for command in vars(file).values():
            if isinstance(command, click.Command) and command.name == word:
                return command
    point = plugin_commands().get(name)
    if point is None:
        raise PluginError(
            f"no plug-in that is installed brings the command '{name}'; reinstall weir-ir for its own"
        )
    try:
        loaded: object = point.load()
    except Exception as error:  # the code is anybody's
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"the command '{name}' ({point.value}) cannot be loaded: {reason}") from error
    if not isinstance(loaded, click.Command):
        raise PluginError(f"the command '{name}' ({point.value}) is no click command")
    return loaded


class _Commands(click.Group):
    """The commands of a group, each imported when it is called; the outermost has the groups too."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:  # noqa: ANN401  Click's own arguments
        """As Click makes it; prefix: what stands before its commands, the name of the group, "" of the outermost."""
        super().__init__(name, **settings)
        self.prefix = name if name is not None and name != "weir" else ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = (
            SUBCOMMANDS.get(self.prefix, {})
            if self.prefix
            else {n: "" for s in TOP.values() for n in s} | GROUPS
        )
        return [*own, *other_commands(self.prefix)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = f"{self.prefix} {cmd_name}".strip()
        if name not in COMMANDS and name not in plugin_commands():
            sentence = GROUPS.get(name) or other_commands(self.prefix).get(cmd_name)
            return None if not sentence else _Commands(name, help=sentence, invoke_without_command=True,
                                          context_settings=SETTINGS, callback=_show_help)  # fmt: skip
        command = copy(load_command(name))  # so that the module's own is not changed by being called
        command.params = [*command.params, RAW]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *rest = args
        path = f"{self.prefix} {name}".strip()
        if not self.prefix and name in FORMER and name not in other_commands():
            if not ctx.resilient_parsing:
                print(f"note: weir {name} is now weir {FORMER[name]}", file=sys.stderr)
            name, *options = FORMER[name].split()
            path, rest = name, [*options, *rest]
        elif (
            path not in COMMANDS and path not in GROUPS and name[:1] != "-"
            and not ctx.resilient_parsing and name not in other_commands(self.prefix)
        ):  # fmt: skip
            from difflib import get_close_matches

            known = sorted(
                {*COMMANDS, *plugin_commands()}, key=lambda path: -path.count(" ")
            )  # the shortest last
            words = {command.split()[-1]: command for command in known} | {g: g for g in GROUPS} | FORMER
            nearest = get_close_matches(name.lower(), words, n=1, cutoff=0.6)
            raise UnknownName("command", path, known, words[nearest[0]] if nearest else None)
        spellings = FORMER_OPTIONS.get(path, {})
        for place, word in enumerate(rest):
            option, equals, value = word.partition("=")
            if option in spellings:
                rest[place] = spellings[option] + equals + value
                if not ctx.resilient_parsing:
                    print(f"note: {option} is now {spellings[option]}", file=sys.stderr)
        return super().resolve_command(ctx, [name, *rest])

    def invoke(self, ctx: click.Context) -> object:
        # Click turns a broken pipe into SystemExit, whichever pipe it is.
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if outputs_are_read():
                raise ServiceError(
                    "a program or a server ended while it was written to (broken pipe)"
                ) from error
            raise _Unread from error

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.prefix:
            super().format_help(ctx, formatter)
            return
        # One screen of 80 columns and 24 lines, the prompt included.
        lines = [
            "Usage: weir COMMAND [OPTIONS] [ARGUMENTS]...   (weir COMMAND --help explains it)",
            "Measure how well retrieval systems find what people need.",
        ]
        for section, commands in TOP.items():
            cells = [f"  {name:11}{sentence}" for name, sentence in commands.items()]
            half = len(cells) if section == "Start here" else (len(cells) + 1) // 2
            pairs = zip_longest(cells[:half], cells[half:], fillvalue="")
            lines += [section, *(f"{left:39} {right}".rstrip() for left, right in pairs)]
        lines.append("Groups (weir data --help lists the commands of data)")
        lines += [f"  {name:11}{sentence}" for name, sentence in GROUPS.items()]
        if others := other_commands():
            lines.append("Of other distributions")
            lines += [f"  {name:11}{sentence}" for name, sentence in others.items()]
        lines += [
            "Options",
            "  --version  Show the version.            --raw  Write control characters as is.",
        ]
        formatter.write("\n".join(lines) + "\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            commands = SUBCOMMANDS.get(self.prefix, {}) | other_commands(self.prefix)
            formatter.write_dl(list(commands.items()))


def _show_help() -> None:
    """Print the help of a group that is called alone."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


SETTINGS = {"help_option_names": ["-h", "--help"], "color": True}
"""Click takes colours out of what it prints into a pipe, also out of identifiers, which are escaped instead."""


@click.group(cls=_Commands, invoke_without_command=True, context_settings=SETTINGS)
@click.version_option(package_name="weir-ir", prog_name="weir")
@click.option("--raw", is_flag=True, expose_value=False, is_eager=True, callback=_raw,
              help="Write data into pipes and files byte for byte; by default control characters and marks that turn "
                   "text around are escaped, as always in a terminal.")  # fmt: skip
def weir() -> None:
    """Measure how well retrieval systems find what people need.

    `weir COMMAND --help` explains a command. Results go to standard output, progress to standard error. The shell
    can complete commands, options and their choices: docs/quickstart.md.
    """
    _show_help()


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM); what is half-written is taken away on the way out."""


INTERNAL, SHORTAGE = 70, 71
"""Exit codes: an error that nobody expected (EX_SOFTWARE), and memory that the system does not give (EX_OSERR)."""


class _Unread(BaseException):
    """Nobody reads the output any more."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0; 1 where a command says so, as weir gate does; 2 for a mistake or bad input; 70 for what nobody expected, with the
    name of a report; 71 where memory ran out; 130 when interrupted, 143 when terminated. WEIR_DEBUG=1 shows tracebacks.
    """
    takes_signals = threading.current_thread() is threading.main_thread()  # Python's rule
    with protected_output(), warnings.catch_warnings():
        warnings.showwarning = partial(_warned, set[str]())
        warnings.simplefilter("always", StoreWarning)
        ended = list[
            int
        ]()  # signals, whose exceptions may get lost where they strike, as while Python compiles
        terminate = partial(_terminate, ended)
        before = signal.signal(signal.SIGTERM, terminate) if takes_signals else None
        hook, thread_errors = threading.excepthook, list[BaseException]()
        threading.excepthook = lambda end: thread_errors.append(end.exc_value or SystemError(end.exc_type))
        try:
            # Click returns the code of ctx.exit(); a command itself returns None.
            code = weir.main(arguments, prog_name="weir", standalone_mode=False)
            sys.stdout.flush()  # a disk that is full refuses here, not when Python ends
            if thread_errors:  # of a thread whose errors nobody takes
                raise thread_errors[0]
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except BaseException as error:  # noqa: BLE001  the last place where it can become a line
            if ended or isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
                how, code = ("terminated", 143) if ended else ("interrupted", 130)
                _complain(f"\nweir: {how}; finished work is kept, run the same command to resume")
                return code
            if isinstance(error, (_Unread, BrokenPipeError)):
                # Whoever read the output has seen enough, as `head` does: no error, and nothing more to flush.
                with suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            if os.environ.get("WEIR_DEBUG"):
                _complain(traceback.format_exc().rstrip("\n"))
            message, code = _ending(error, sys.argv[1:] if arguments is None else arguments)
            line = printable(" ".join(message.split()))
            _complain("weir: " + (line if len(line) <= _LINE else line[: _LINE - 3] + "..."))
        finally:
            threading.excepthook = hook
            if takes_signals:
                signal.signal(signal.SIGTERM, before)
        return code if isinstance(code, int) else 0


def _complain(line: str) -> None:
    """Print a line on standard error, where anybody reads it."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _terminate(ended: list[int], number: int, _: object) -> None:
    """Note a signal, and end with it."""
    ended.append(number)
    raise _Terminated


def _warned(said: set[str], message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, once, without the place in the code that gave it; of stores, each time."""
    line = f"{'note' if isinstance(message, NameNote) else 'warning'}: {printable(str(message))}"
    if line not in said or isinstance(message, StoreWarning):
        print(line, file=sys.stderr)
    said.add(line)


def _ending(error: BaseException, arguments: list[str]) -> tuple[str, int]:
    """What an error says in one line, and the exit code; of an unexpected one a report is written."""
    if isinstance(error, click.ClickException):
        return error.format_message(), 2
    if isinstance(error, WeirError):
        return str(error), 2
    command = _command_of(arguments)
    doing = f"{command}: " if command else ""
    if lacking := _lacking(error):
        return (
            f"{doing}{lacking}; finished work is kept; let it take less (--max-ram or WEIR_MAX_RAM, "
            "such as 2G), run fewer threads (WEIR_THREADS), or raise the limit (ulimit -v, that of a container)"
        ), SHORTAGE
    if isinstance(error, OSError):
        reason = "no space left on the disk" if error.errno == errno.ENOSPC else error.strerror or str(error)
        return (f"{error.filename}: {reason}" if error.filename else reason), 2
    try:
        from weir.cli.fault_report import write_report

        known = {option for p in load_command(command).params for option in p.opts} if command else set[str]()
        sending = f"please send {write_report(error, command, arguments, known)}, which says how"
    except Exception as refusal:  # noqa: BLE001  whatever hinders the report, the error itself is shown
        sending = f"please report it; the report could not be written ({type(refusal).__name__}: {refusal})"
    try:
        from weir.files.masks import without_secrets

        text = without_secrets(str(error))
    except Exception:  # noqa: BLE001  an error of anybody's that cannot be written out
        text = ""
    kind = f"{type(error).__name__}: {text}"[:_SHOWN]
    owner = "Weir" if not command or command in COMMANDS else _owner(plugin_commands()[command])
    return (
        f"{doing}unexpected {kind}; this is a bug in {owner}, {sending} (WEIR_DEBUG=1 shows where it happened)",
        INTERNAL,
    )


def _lacking(error: BaseException | None) -> str:
    """What the system did not give, in words; "" where the error, and what led to it, say something else."""
    text, shortage = str(error), "there is not enough memory"
    if error is None:
        return ""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return shortage
    if isinstance(error, RuntimeError) and "can't start new thread" in text:
        return "no further thread can be started"
    if isinstance(error, RuntimeError) and NO_MEMORY.search(text):
        return shortage
    # Where `ulimit -v` leaves no room, a library is not found, and Rust panics.
    if not isinstance(error, WeirError) and NO_ROOM.search(f"{type(error).__name__}: {text}"):
        with suppress(ImportError):  # not on Windows
            import resource

            if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
                return shortage
    return _lacking(error.__cause__ or error.__context__)


def _command_of(arguments: list[str]) -> str:
    """The command that was typed, such as "data fetch"; "" where it is none."""
    words = [word for word in arguments if word[:1] != "-"][:2]
    words[:1] = FORMER.get(words[0], words[0]).split() if words else []
    names = (" ".join(words[:2]), *words[:1])
    own = next((name for name in names if name in COMMANDS), "")
    return own or next((name for name in names if name in plugin_commands()), "")
