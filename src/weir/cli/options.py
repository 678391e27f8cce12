"""Derive commands' options from functions; complete names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click
from click import Context, Parameter, option
from click.core import ParameterSource
from click.shell_completion import CompletionItem

import weir
from weir import datasets
from weir.cli.declared import Setting, settings_of
from weir.cli.terminal import give_output_to_file
from weir.errors import BadValue, WeirError
from weir.files.atomic import is_standard_output
from weir.files.paths import STANDARD_OUTPUT, path_of, refuse_empty
from weir.settings import in_environment, size_of

F = TypeVar("F", bound=Callable[..., object])
Given: TypeAlias = dict[str, Any]
"""{parameter: value} of the options that were typed; functions know the defaults of the others."""

CUTS = ("@10", "@100")


class _Given(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    name = "path"

    def __init__(self, read: Callable[[str], object], kind: str = "path") -> None:
        self.read, self.name = read, kind

    def convert(self, value: object, param: Parameter | None, ctx: Context | None) -> object:
        try:
            return self.read(value) if isinstance(value, str) else value
        except BadValue as error:
            raise BadValue(f"{param.get_error_hint(ctx)}: {error}" if param and ctx else str(error)) from None

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _name(text: str) -> str:
    refuse_empty(text)
    return text


def _output(text: str) -> Path:
    path = path_of(text)
    if text.endswith("/"):
        raise BadValue(f"found {text}, a folder; expected a file")
    if is_standard_output(path):
        give_output_to_file()
    return path


def _folder(text: str) -> Path:
    path = path_of(text)
    if path == STANDARD_OUTPUT:
        raise BadValue("found -, standard output; expected a folder (./- is one called so)")
    return path


PATH = _Given(path_of)
"""A path to read."""
NAME = _Given(_name, "text")
"""The name or path of a collection, judgments or the like."""
OUTPUT = _Given(_output)
"""A file to write; `-` is standard output, and then everything else is shown on standard error."""
FOLDER = _Given(_folder)
"""A folder to write."""


def measure_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Return completions of the beginning of a measure's name, with common cut-offs after @."""
    if "@" in begun:
        return _items((begun.partition("@")[0] + cut for cut in CUTS), begun)
    names = []
    for name in weir.measures.MEASURES:
        definition = weir.measures.MEASURES.get(name)
        names += [name] if definition.cutoff != "required" else []
        names += [f"{name}@10"] if definition.cutoff is not None else []
    return _items(names, begun)


def system_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Return completions of the beginning of a system's name."""
    return _items(weir.systems.SYSTEMS, begun)


def dataset_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Return completions of the beginning of a name of a collection, group or reference; folders if none fits."""
    if begun.startswith((".", "/", "~")):
        return [CompletionItem(begun, type="dir")]
    catalogue = datasets.catalogue
    names = [*catalogue.groups(), *catalogue.collection_names(), *datasets.names.SCHEMES]
    return _items(names, begun) or [CompletionItem(begun, type="dir")]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


SPELLED: dict[str, dict[str, Any]] = {
    "by": {"metavar": "GROUPS",
           "help": "Groups of queries: prefix:_ or stem:- (the identifier up to the first or last such sign), a file "
                   "of queries and groups, or a column of the collection."},
    "collection": {"type": NAME, "shell_complete": dataset_names},
    "k": {"flags": "-k"},
    "dataset": {"flags": "-d --dataset", "type": NAME, "shell_complete": dataset_names},
    "datasets": {"flags": "-d --dataset", "type": NAME, "shell_complete": dataset_names},
    "labels": {"flags": "--label", "metavar": "NAME=SYSTEM"},
    "measure": {"flags": "-m --measure", "shell_complete": measure_names},
    "measures": {"flags": "-m --measure", "shell_complete": measure_names},
    "noise": {"type": PATH, "metavar": "FILE"},
    "only": {"flags": "-s --system", "shell_complete": system_names},
    "self_matches": {"flags": "--drop-self", "flag_value": "drop", "type": str, "default": None, "show_default": False,
                     "help": "Leave out documents with the identifier of their query (ArguAna, Quora)."},
    "system": {"flags": "-s --system", "shell_complete": system_names},
    "systems": {"flags": "-s --system", "shell_complete": system_names},
}  # fmt: skip
"""Changes that the command line makes to a parameter of any function: option names, completion, help."""


def options(
    path: str, names: str, into: str = "given", before: str = "", **exceptions: dict[str, Any]
) -> Callable[[F], F]:
    """Return a decorator that adds an option to a command for each of these parameters of a function.

    path: the function or dataclass that declares them, such as "weir.api.comparisons.power".
    names: parameters or fields, separated by blanks, in the order of the help.
    into: the command's argument that receives {parameter: value} of the options that were typed.
    before: text that begins each option's help.
    exceptions: {parameter: arguments of `click.option`} that differ; `flags` are its option names.
    """
    settings = settings_of(path)

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def called_with(**values: object) -> object:
            source = click.get_current_context().get_parameter_source
            given = {name: values.pop(f"{into}__{name}") for name in names.split()}
            typed = {name for name in given if source(f"{into}__{name}") is not ParameterSource.DEFAULT}
            return command(**values, **{into: {name: given[name] for name in given if name in typed}})

        added: Callable[..., object] = called_with
        for name in reversed(names.split()):
            words = _words(settings[name], set(settings)) | SPELLED.get(name, {}) | exceptions.get(name, {})
            words["help"] = before + words["help"]
            flags = words.pop("flags", f"--{name.replace('_', '-')}").split()
            added = option(*flags, f"{into}__{name}", **words)(added)
        return added

    return decorated  # type: ignore[return-value]  # of the same arguments but for `into`


published_as_option = options(
    "weir.api.results_folder.results_beside",
    "published_as",
    "names",
    published_as={"metavar": "NAME=PUBLISHED"},
)
"""The option of commands that lay published scores beside one's own."""


def _words(setting: Setting, parameters: set[str]) -> dict[str, Any]:
    def spelled(name: re.Match[str]) -> str:
        return "--" + name[1].replace("_", "-") if name[1] in parameters else name[1]

    about = re.sub(r"`([^`]+)`", spelled, setting.about.partition(". In Python")[0])
    about = about[:1].upper() + about[1:]
    kinds = set(re.findall(r"\w+", setting.type))
    words: dict[str, Any] = {"help": about, "required": setting.required}
    words |= {"type": next((kind for kind in (int, float) if kind.__name__ in kinds), str)}
    words |= {"default": setting.default or None, "show_default": bool(setting.default)}
    if isinstance(setting.default, (int, float)):  # 0 is a default, too
        words |= {"default": setting.default, "show_default": "bool" not in kinds}
    if kinds & {"Sequence", "Iterable", "tuple"}:
        return words | {"multiple": True, "help": f"{about.rstrip('.')}; repeatable."}
    if "bool" in kinds:
        return words | {"is_flag": True, "type": bool}
    choices = re.search(r"Literal(\[.*?\])", setting.type)
    return words | {"type": click.Choice(ast.literal_eval(choices[1]))} if choices else words


def forms(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds an option such as --json for each output format, passed to the command as
    `form`.
    """

    def decorated(command: F) -> F:
        for name in reversed(names):
            command = option(f"--{name}", "form", flag_value=name, help=_FORMS[name])(command)
        return command

    return decorated


_FORMS = {
    "json": "JSON, an object per line, at full precision.",
    "csv": "Comma-separated values, at full precision.",
    "latex": "LaTeX tables, for booktabs.",
    "markdown": "Markdown tables.",
    "html": "A page of HTML.",
}


def table_options(command: F) -> F:
    """Add options for all output formats (argument `form`), --long and --explain to a command; return it."""
    command = click.option("--explain", is_flag=True, help="Say how the intervals were made, as pages do.")(
        command
    )
    command = click.option("--long", is_flag=True,
        help="A line for each dataset and system with its intervals, also where a grid would do.")(command)  # fmt: skip
    return forms(*_FORMS)(command)


def refuse_beside(option: str, others: Mapping[str, bool]) -> None:
    """Raise BadValue if other options are used that `option` makes ineffective.

    others: {option: True if it is used}.
    """
    if used := [name for name, is_used in others.items() if is_used]:
        raise BadValue(f"{option} has lines of its own; leave out {' and '.join(used)}")


def option_of(word: str, command: click.Command) -> str:
    """Return the first of the options -d, -s, -m and -o of a command that fits a stray word; "" if none does."""

    def is_measure() -> bool:
        with suppress(WeirError):
            return bool(weir.parse_measure(word))
        return False

    there, name = os.path.exists(word), word.partition(":")[0]  # noqa: PTH110  False for what is no path
    catalogue = datasets.catalogue
    takes = {
        "-d": (there and Path(word).is_dir())
        or name in catalogue.collection_names()
        or catalogue.is_group(name),
        "-s": re.split(r"\W", word, maxsplit=1)[0] in weir.systems.SYSTEMS,
        "-m": is_measure(),
        "-o": not there and (word.endswith("/") or Path(word).suffix != ""),
    }
    has = {name for parameter in command.params for name in parameter.opts}
    return next((option for option, fits in takes.items() if fits and option in has), "")


by_option = option("--by", **SPELLED["by"])
notes_option = option("--notes", is_flag=True, help="Say more in each note.")
quiet_option = option("-q", "--quiet", is_flag=True, help="No progress.")
scorer_option = option("--scorer", type=click.Choice(["birco"]),
                       help="A benchmark's own figures, beside the scores and why they differ.")  # fmt: skip


def _call_option(
    flag: str,
    variable: str,
    help: str,
    metavar: str | None = None,
    check: Callable[[str], object] = str,
) -> Callable[[F], F]:
    def given(context: Context, _: Parameter, value: str | None) -> None:
        if value is not None:
            check(value)
            context.find_root().with_resource(in_environment(variable, value))

    return option(flag, callback=given, expose_value=False, help=help, metavar=metavar)


budget_option = _call_option(
    "--budget",
    "WEIR_API_BUDGET",
    "What may be spent, such as '5 dollars' or '2000000 tokens'.  [default: WEIR_API_BUDGET]",
)
device_option = _call_option(
    "--device",
    "WEIR_DEVICE",
    "Where neural models run: cpu, cuda, cuda:1, or several such as cuda:0,cuda:1, on which documents are encoded side "
    "by side.  [default: a GPU where there is one]",
)
max_ram_option = _call_option(
    "--max-ram",
    "WEIR_MAX_RAM",
    "Memory that may be taken, such as 4G.  [default: WEIR_MAX_RAM, else half of what there is]",
    metavar="SIZE",
    check=size_of,
)
price_option = _call_option(
    "--price",
    "WEIR_API_PRICE",
    "Dollars for a million tokens, such as '0.15 in, 0.6 out'.  [default: WEIR_API_PRICE]",
)
