"""Options that commands share, what the shell offers for them, and how rows are chosen and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click import Context, Parameter, option
from click.shell_completion import CompletionItem

from weir.cli.terminal import give_output_to_file, say_notes
from weir.errors import BadValue
from weir.files.atomic import is_standard_output
from weir.files.paths import STANDARD_OUTPUT, path_of, refuse_empty

if TYPE_CHECKING:
    from weir.core.scores import Row, Scores
    from weir.datasets.load import Dataset


F = TypeVar("F", bound=Callable[..., object])

CUTS = ("@10", "@100")


class _Given(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A path or a name as somebody wrote it; an empty one is refused, and the message names the option."""

    name = "path"

    def __init__(self, read: Callable[[str], object], kind: str = "path") -> None:
        self.read, self.name = read, kind

    def convert(self, value: object, param: Parameter | None, ctx: Context | None) -> object:
        """What the text means; values that are no text are defaults, and stay."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except BadValue as error:
            raise BadValue(f"{param.get_error_hint(ctx)}: {error}" if param and ctx else str(error)) from None

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        """The files and folders that it begins."""
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
"""What is read."""
NAME = _Given(_name, "text")
"""A collection, judgments or another thing that goes by a name or a path, as it is written."""
OUTPUT = _Given(_output)
"""A file that is written; `-` is standard output, and then all else that is shown goes to standard error."""
FOLDER = _Given(_folder)
"""A folder that is written."""


def measure_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Measures by name, with the usual cut-offs; behind @ the cut-offs."""
    from weir.measures import MEASURES

    if "@" in begun:
        return _items((begun.partition("@")[0] + cut for cut in CUTS), begun)
    names = []
    for name in MEASURES:
        definition = MEASURES.get(name)
        names += [name] if definition.cutoff != "required" else []
        names += [f"{name}@10"] if definition.cutoff is not None else []
    return _items(names, begun)


def system_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Systems by name."""
    from weir.systems.protocol import SYSTEMS

    return _items(SYSTEMS, begun)


def dataset_names(context: Context, parameter: Parameter, begun: str) -> list[CompletionItem]:
    """Collections and groups of the catalogue, references, or the folders that a path begins."""
    from weir.datasets import catalogue
    from weir.datasets.references import SCHEMES

    if begun.startswith((".", "/", "~")):
        return [CompletionItem(begun, type="dir")]
    return _items([*catalogue.groups(), *catalogue.names(), *SCHEMES], begun) or [
        CompletionItem(begun, type="dir")
    ]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


def measures_option(help: str = "A measure such as nDCG@10; repeatable.") -> Callable[[F], F]:
    """-m as the argument `measures`."""
    return option("-m", "--measure", "measures", shell_complete=measure_names, multiple=True, help=help)


def datasets_option(help: str) -> Callable[[F], F]:
    """-d as the argument `datasets`."""
    return option(
        "-d", "--dataset", "datasets", type=NAME, shell_complete=dataset_names, multiple=True, help=help
    )


def systems_option(help: str) -> Callable[[F], F]:
    """-s as the argument `systems`."""
    return option("-s", "--system", "systems", shell_complete=system_names, multiple=True, help=help)


def collection_option(command: F) -> F:
    """--collection as the argument `collection`: what the runs are of."""
    return option("--collection", type=NAME, shell_complete=dataset_names,
        help="The collection of the runs, a name or a path: its rules hold (self-matches, candidates, queries without "
             "an answer).")(command)  # fmt: skip


def collections_option(command: F) -> F:
    """--collection as the argument `collections`: what run files are of, or where those of a results folder lie."""
    return option("--collection", "collections", type=NAME, multiple=True, shell_complete=dataset_names,
        metavar="[NAME=]COLLECTION",
        help="Documents, queries and rules of run files: a name or a path. Of a results folder: where a collection "
             "lies now, if not where it was; repeatable.")(command)  # fmt: skip


def fetch_option(command: F) -> F:
    """--fetch as the argument `fetch`."""
    return option("--fetch", is_flag=True,
        help="Let the collections that records of results name be brought here, over the network too; by default "
             "nothing is asked for and nothing is written.")(command)  # fmt: skip


def by_option(command: F) -> F:
    """--by as the argument `by`."""
    return option("--by", metavar="GROUPS",
        help="Groups of queries: prefix:_ or stem:- (the identifier up to the first or last such sign), a file of "
             "queries and groups, or a column of the collection.")(command)  # fmt: skip


def table_options(command: F) -> F:
    """--json, --csv, --latex, --markdown and --html as the argument `form`, and --long."""
    kinds = {
        "json": "One JSON object per line, at full precision.",
        "csv": "Comma-separated values, at full precision.",
        "latex": "LaTeX tables, for booktabs.",
        "markdown": "Markdown tables.",
        "html": "A page of HTML.",
    }
    command = click.option("--long", is_flag=True,
        help="A line for each dataset and system with its intervals, also where a grid would do.")(command)  # fmt: skip
    for form, what in reversed(kinds.items()):
        command = click.option(f"--{form}", "form", flag_value=form, help=what)(command)
    return command


def label_option(command: F) -> F:
    """--label as the argument `labels`."""
    return click.option("--label", "labels", multiple=True, metavar="NAME=SYSTEM",
        help="What tables call a system; repeatable.")(command)  # fmt: skip


def notes_option(command: F) -> F:
    """--notes as the argument `notes`."""
    return click.option("--notes", is_flag=True, help="Say more in each note.")(command)


def scorer_option(command: F) -> F:
    """--scorer as the argument `scorer`."""
    return click.option("--scorer", type=click.Choice(["birco"]),
        help="A benchmark's own figures, beside the scores and why they differ.")(command)  # fmt: skip


budget_option = click.option(
    "--budget", help="What may be spent, such as '5 dollars' or '2000000 tokens'.  [default: WEIR_API_BUDGET]"
)


def _use_memory(context: click.Context, parameter: click.Parameter, size: str | None) -> None:
    from weir.settings import use_memory

    if size is not None:
        use_memory(size)


max_ram_option = click.option(
    "--max-ram", metavar="SIZE", callback=_use_memory, expose_value=False,
    help="Memory that may be taken, such as 4G.  [default: WEIR_MAX_RAM, else half of what there is]",
)  # fmt: skip
price_option = click.option(
    "--price", help="Dollars for a million tokens, such as '0.15 in, 0.6 out'.  [default: WEIR_API_PRICE]"
)


def by_group(
    dataset: str, scores: Mapping[str, Scores], by: object, collection: Dataset | None = None
) -> list[Row]:
    """The rows of each group of queries that `by` names, of scores by system; notes go to standard error.

    Raises as `query_groups`.
    """
    from weir.core.scores import GroupedScores, Note, Row
    from weir.datasets.load import query_groups
    from weir.stats.score_rows import rows_by_group

    rows, notes = list[Row](), list[Note]()
    for system, one in scores.items():
        grouped = GroupedScores.of(one, query_groups(by, one.queries, collection))
        notes += grouped.notes()
        rows += rows_by_group(grouped, dataset, system)
    say_notes(notes)
    return rows
