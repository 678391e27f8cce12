"""Find a command's module, run it, print errors as one line."""

from __future__ import annotations

import ast
import errno
import os
import re
import shlex
import signal
import sys
import threading
import warnings
from contextlib import suppress
from copy import copy
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weir.cli.terminal import as_options, outputs_are_read, protected_output, show_raw
from weir.errors import (
    NameNote,
    PluginError,
    ServiceError,
    StoreWarning,
    UnknownName,
    WeirError,
    nearest_names,
    printable,
)
from weir.settings import NO_MEMORY

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Section -> command -> first sentence of its help. `load_command` imports a command when it is called; spelling the
# sentence out here keeps `weir --help` from importing anything, and a test compares both.
TOP = {
    "Start here": {
        "run": "Run systems on collections, and show their scores.",
        "eval": "Score rankings against judgments.",
        "compare": "Compare systems, with significance tests.",
        "audit": "Report what is wrong with collections, judgments and runs.",
        "results": "Show the scores in a folder written by weir run.",
    },
    "Explain, decide, check": {
        "diff": "List queries won and lost.",
        "why": "Explain a difference.",
        "gate": "Fail on a regression.",
        "power": "Report detectable effects.",
        "fuse": "Fuse rankings into one.",
        "plan": "Estimate time and cost.",
        "verify": "Check a results folder.",
        "doctor": "Show what is installed.",
    },
}
SUBCOMMANDS = {
    "data": {
        "fetch": "Download collections, verify them, and prepare them.",
        "convert": "Convert rankings or judgments between formats.",
        "stats": "Describe collections: sizes, judgments, duplicates, damage.",
        "subset": "Write a small collection, and report how well it ranks systems.",
        "align": "List the benchmark collections that are most like yours.",
        "drop": "Remove the tables and indexes that systems made on a server.",
    },
    "list": {
        "systems": "List the systems and their presets with every setting.",
        "models": "List the encoders, or describe one.",
        "measures": "List the measures, their settings and their sources.",
        "datasets": "List the collections of the catalogue.",
    },
    "study": {
        "threshold": "Choose the score below which a system should not answer.",
        "efficiency": "Report speed and memory.",
        "reproduce": "Check published scores.",
    },
}
GROUPS = {
    "data": "Fetch, import, convert, export, describe, sample.",
    "list": "List systems, models, measures, datasets.",
    "study": "Study re-rankers, models, costs, published scores.",
}
COMMANDS = {name: sentence for section in TOP.values() for name, sentence in section.items()} | {
    f"{group} {name}": sentence for group, names in SUBCOMMANDS.items() for name, sentence in names.items()
}
"""A sentence on each command of the core, by its words after `weir`; plug-ins add theirs as entry points."""
_SHOWN = 200  # characters of an unexpected error
_LINE = 2000  # characters of a message
NO_ROOM = re.compile("load shared object|failed to map segment|PanicException")
"""Errors that usually mean that `ulimit -v` is too small."""


def _raw(context: click.Context, _: click.Parameter, raw: bool) -> None:
    if raw and not context.resilient_parsing:
        show_raw()


# What every command takes, behind its name too.
RAW = click.Option(["--raw"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_raw)


@cache
def plugin_commands() -> dict[str, EntryPoint]:
    """Return {command name: entry point} of plug-ins' commands, without importing them."""
    from importlib.metadata import entry_points  # reading the installed metadata takes 20 ms

    return {point.name: point for point in entry_points(group="weir.commands")}


def other_commands(group: str = "") -> dict[str, str]:
    """Return {word: sentence of help} for the commands that plug-ins add to a group, by default to the top level.

    A group of a plug-in is one entry.
    """
    start, words = f"{group} " if group else "", dict[str, str]()
    for path, point in sorted(plugin_commands().items()):
        word, _, deeper = path.removeprefix(start).partition(" ")
        if path.startswith(start) and path not in COMMANDS and start + word not in GROUPS:
            module, _, function = point.value.partition(":")
            words[word] = _sentence(
                module.rpartition(".")[0] if deeper else module, "" if deeper else function
            )
            if not words[word]:
                words[word] = f"{'Commands' if deeper else 'Command'} of {_owner(point)}."
            elif _owner(point) != "weir-ir":
                words[word] += f" ({_owner(point)})"
    return words


def _sentence(module: str, function: str) -> str:
    try:
        spec = find_spec(module)
        tree = ast.parse(Path((spec and spec.origin) or "").read_bytes())
    except Exception:  # noqa: BLE001  the code is anybody's, and this only a line of help
        return ""
    places: list[ast.Module | ast.FunctionDef] = [] if function else [tree]
    places += [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function]
    return ((ast.get_docstring(places[0]) if places else None) or "").split("\n")[0]


def all_commands() -> dict[str, str]:
    """Return {name: first sentence of its help} of all installed commands, plug-ins' last."""
    groups = {path.rpartition(" ")[0] for path in plugin_commands()}
    words = {group: other_commands(group) for group in groups}
    return COMMANDS | {
        path: words[group][word]
        for path in sorted(plugin_commands())
        for group, _, word in [path.rpartition(" ")]
        if path not in COMMANDS
    }


def _is_plugin_word(path: str) -> bool:
    return any(one == path or one.startswith(f"{path} ") for one in plugin_commands())


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


_FILES = {
    "running": ("run", "plan", "results", "verify", "study"),
    "scoring": ("eval",),
    "fusing": ("fuse",),
    "comparing": ("compare", "diff", "why", "gate", "power"),
    "auditing": ("audit",),
    "listing": ("list", "doctor"),
    "data": ("data",),
    "studies": ("study",),
}
"""The core's files with commands, and the commands and groups that they define."""


EXTENSIBLE = frozenset({"audit"})
"""Commands to which slices add options."""


def load_command(name: str) -> click.Command:
    """Import and return the click command with a name such as "data fetch".

    Raises UnknownName for an unknown command, PluginError for one that cannot be loaded.
    """
    group, _, word = name.rpartition(" ")
    for file in (file for file, names in _FILES.items() if (group or word) in names):
        for command in vars(import_module(f"weir.cli.{file}")).values():
            if isinstance(command, click.Command) and command.name == word:
                return _extended(name, command) if name in EXTENSIBLE else command
    point = plugin_commands().get(name)
    if point is None:
        raise UnknownName("command", name, [*COMMANDS, *plugin_commands()])
    try:
        loaded: object = point.load()
    except Exception as error:  # the code is anybody's
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"the command '{name}' ({point.value}) cannot be loaded: {reason}") from error
    if not isinstance(loaded, click.Command):
        raise PluginError(f"the command '{name}' ({point.value}) is no click command")
    return loaded


def _extended(name: str, command: click.Command) -> click.Command:
    from importlib.metadata import entry_points

    for point in entry_points(group="weir.command_options", name=name):
        command = point.load()(command)
    return command


class _Commands(click.Group):
    def __init__(self, name: str | None = None, **settings: Any) -> None:  # noqa: ANN401  Click's own arguments
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
            sentence = GROUPS.get(name) or (
                _is_plugin_word(name) and other_commands(self.prefix).get(cmd_name)
            )
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
        if (
            path not in COMMANDS and path not in GROUPS and name[:1] != "-"
            and not ctx.resilient_parsing and not _is_plugin_word(path)
        ):  # fmt: skip
            known = sorted(
                {*COMMANDS, *plugin_commands()}, key=lambda path: -path.count(" ")
            )  # the shortest last
            words = {command.split()[-1]: command for command in known} | {g: g for g in GROUPS}
            words |= {path.split()[0]: path.split()[0] for path in plugin_commands()}
            near = nearest_names(name, words, 1)
            raise UnknownName("command", path, known, words[near[0]] if near else None)
        found, command, rest = super().resolve_command(ctx, [name, *rest])
        if command is not None and not isinstance(command, click.Group) and not ctx.resilient_parsing:
            _refuse_repeated(path, command, rest)
        return found, command, rest

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
            lines += [section, *(cells if section == "Start here" else _two_columns(cells))]
        lines.append("Groups (weir data --help lists the commands of data)")
        lines += [f"  {name:11}{sentence}" for name, sentence in GROUPS.items()]
        if others := other_commands():
            lines.append("Plug-ins")
            lines += _two_columns([f"  {name:11}{sentence}" for name, sentence in others.items()])
        lines.append("Options    --version  Show the version.   --raw  Write control characters as is.")
        formatter.write("\n".join(lines) + "\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            commands = SUBCOMMANDS.get(self.prefix, {}) | other_commands(self.prefix)
            formatter.write_dl(list(commands.items()))


def _refuse_repeated(path: str, command: click.Command, args: list[str]) -> None:
    # Click would take the last value, and say nothing of the others.
    context = click.Context(command, **{**SETTINGS, **command.context_settings})  # the help option is kept
    try:
        _, _, order = command.make_parser(context).parse_args(list(args))
    except click.UsageError:
        return  # told when Click reads them again
    for option in order:
        single = isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
        if single and order.count(option) > 1:
            given = f"{option.opts[0]} is given {order.count(option)} times"
            raise click.UsageError(f"{given}; expected once: weir {path} takes one value of it")


def _two_columns(cells: list[str]) -> list[str]:
    narrow = [cell for cell in cells if len(cell) < 40]
    half = (len(narrow) + 1) // 2
    pairs = zip_longest(narrow[:half], narrow[half:], fillvalue="")
    return [cell for cell in cells if len(cell) >= 40] + [
        f"{left:39} {right}".rstrip() for left, right in pairs
    ]


def _show_help() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


SETTINGS = {"help_option_names": ["-h", "--help"], "color": True}
""""color": True keeps Click from removing colour codes in pipes, also out of identifiers, where Weir escapes them."""


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
    """Raised at SIGTERM, so that half-written files are removed."""


INTERNAL, SHORTAGE = 70, 71
"""Exit codes: an unexpected error (EX_SOFTWARE), and lack of memory (EX_OSERR)."""


class _Unread(BaseException):
    """Raised when the reader of the output, such as `head`, has closed the pipe."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0 for success; 1 or 3 if a command says so; 2 for bad input; 70 for an unexpected error, with the name of a
    report; 71 for too little memory; 130 when interrupted, 143 when terminated. WEIR_DEBUG=1 shows tracebacks.

    arguments: by default the process's own.
    """
    takes_signals = threading.current_thread() is threading.main_thread()  # Python's rule
    with protected_output(), warnings.catch_warnings():
        warnings.showwarning = partial(_print_warning, set[str]())
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
            if isinstance(error, SystemExit) and "_WEIR_COMPLETE" in os.environ:
                return 0  # Click exits once it has answered a shell
            if ended or isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
                how, code = ("terminated", 143) if ended else ("interrupted", 130)
                _print_error(f"\nweir: {how}; finished work is kept, run the same command to resume")
                return code
            if isinstance(error, (_Unread, BrokenPipeError)):
                # Whoever read the output has seen enough, as `head` does: no error, and nothing more to flush.
                with suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            if os.environ.get("WEIR_DEBUG"):
                import traceback

                _print_error(traceback.format_exc().rstrip("\n"))
            message, code = _error_line_and_code(error, sys.argv[1:] if arguments is None else arguments)
            line = printable(" ".join(message.split()))
            _print_error("weir: " + (line if len(line) <= _LINE else line[: _LINE - 3] + "..."))
        finally:
            threading.excepthook = hook
            if takes_signals:
                signal.signal(signal.SIGTERM, before)
        return code if isinstance(code, int) else 0


def _print_error(line: str) -> None:
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _terminate(ended: list[int], number: int, _: object) -> None:
    ended.append(number)
    raise _Terminated


def _typed(message: str, command: click.Command | None = None) -> str:
    # Whatever reads files of other tools repeats what their import said.
    message = as_options(message, command)
    if re.search(r"`(as_kind|columns|choices)\b", message):
        with suppress(UnknownName, PluginError):  # import is a plug-in's
            prefix = "" if "weir data import" in message else "weir data import ... "
            message = as_options(message, load_command("data import"), prefix)
    return message


def _print_warning(said: set[str], message: Warning | str, *_: object, **__: object) -> None:
    line = f"{'note' if isinstance(message, NameNote) else 'warning'}: {printable(_typed(str(message)))}"
    if line not in said or isinstance(message, StoreWarning):
        print(line, file=sys.stderr)
    said.add(line)


def _error_line_and_code(error: BaseException, arguments: list[str]) -> tuple[str, int]:
    command = _command_of(arguments)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return _usage_fault(error, error.ctx, arguments), 2
    if isinstance(error, click.ClickException):
        return error.format_message(), 2
    if isinstance(error, WeirError) and not isinstance(
        error, (TypeError, AttributeError)
    ):  # which are bugs here
        message = str(error)
        with suppress(PluginError):  # of a command that cannot be loaded, which then is the error
            message = _typed(message, load_command(command) if command else None)
        return message, 2
    doing = f"{command}: " if command else ""
    if lacking := _lacking_resource(error):
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


def _usage_fault(error: click.UsageError, context: click.Context, arguments: list[str]) -> str:
    from weir.api.given import is_results_folder, two_folders

    if isinstance(error, click.NoSuchOption) and error.option_name == "--split":  # as other tools have it
        return (
            "No such option '--split'; a split stands after the collection, as in scifact:train or ./mine:dev"
        )
    folders = [argument for argument in arguments if is_results_folder(argument)]
    if type(error) is click.UsageError and len(folders) > 1:
        return two_folders(*folders[:2])
    if type(error) is click.UsageError or isinstance(error, click.MissingParameter):
        shown = corrected(error, context, arguments) or example(context)
        if shown == context.command_path and not error.message.startswith("Got unexpected"):
            return error.format_message()  # a command alone is no example of how its options go together
        return f"{error.format_message().rstrip('.')}; such as {shown}"
    return error.format_message()


def corrected(error: click.UsageError, context: click.Context, arguments: list[str]) -> str:
    """Return the typed command line with missing option names put before stray values; "" unless an option
    fits each.
    """
    from weir.cli.options import option_of

    named = [p.name for p in context.command.params if isinstance(p, click.Argument)]
    given = [
        str(v) for n, v in context.params.items() if n in named and isinstance(v, Path) and not v.exists()
    ]
    found = re.search(r"\((.*)\)$", error.message)
    strays = [*given, *(found[1].split(" ") if found else ())]
    options = {word: option_of(word, context.command) for word in strays}
    if not found or not all(options.values()):
        return ""
    pieces = [word for one in arguments for word in (options.get(one, ""), shlex.quote(one)) if word]
    return " ".join(["weir", *pieces])


_EXAMPLES = {
    "QRELS": "qrels.tsv", "RUN": "run.trec", "RUN...": "run.trec", "RUNS...": "a.trec b.trec", "METHOD": "rrf",
    "PATHS...": "results/", "[QRELS] FIRST SECOND": "qrels.tsv a.trec b.trec", "FIRST": "a.trec", "SECOND": "b.trec",
    "RESULTS...": "results/scifact/bm25-fa19b4d424", "[QRELS] BASELINE CANDIDATE": "baseline.tsv results/",
    "NAMES...": "scifact", "DATASET": "scifact", "IN": "run.trec", "OUT": "run.parquet", "SYSTEM": "bm25",
    "FILES...": "golden.jsonl", "TARGETS...": "results/", "HUMAN": "people.tsv", "MODEL": "model.tsv",
    "LABELS": "people.tsv", "JUDGED": "judged.tsv", "RERANKED...": "again.trec", "FOLDER": "results/",
    "FILE": "mine.zip", "{crops|genq|pairs}": "pairs", "--to": "mteb", "--docs": "1000", "--dataset": "scifact",
    "--system": "bm25", "--out": "out", "--output": "out",
}  # fmt: skip
"""Example values of an argument, by its name in the usage, and of a required option."""


def example(context: click.Context) -> str:
    """Return an example call of a command, with its required arguments and options."""
    command = context.command
    required = [p for p in command.params if isinstance(p, click.Option) and p.required]
    pieces = [_EXAMPLES.get(p, p) for p in command.collect_usage_pieces(context) if p in _EXAMPLES]
    options = [f"{option.opts[0]} {_EXAMPLES[option.opts[-1]]}" for option in required]
    return " ".join([context.command_path, *pieces, *options])


def _lacking_resource(error: BaseException | None) -> str:
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
    return _lacking_resource(error.__cause__ or error.__context__)


def _command_of(arguments: list[str]) -> str:
    words = [word for word in arguments if word[:1] != "-"][:2]
    names = (" ".join(words[:2]), *words[:1])
    own = next((name for name in names if name in COMMANDS), "")
    return own or next((name for name in names if name in plugin_commands()), "")
