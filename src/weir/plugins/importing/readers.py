"""The registry of readers: one decorated function for each format, with a detector that names its evidence."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.items import Choices, Item
from weir.registry import Registry


@dataclass(frozen=True)
class ReadRequest:
    """What the user said that a reader may want; kind: the reader by name, "" where nothing was said."""

    kind: str = ""
    choices: Choices = field(default_factory=Choices)


Detect = Callable[[Contents], str]  # the evidence for a format, "" where there is none
Read = Callable[[Contents, ReadRequest], Iterator[Item]]


@dataclass(frozen=True)
class Reader:
    """A format: what it is called, how it is known, how it is read.

    general: asked only where no other reader finds evidence; refused: it is known, and holds nothing to import; by_row:
    each row is read by itself, so that a large file may come in batches.
    """

    name: str
    title: str
    detect: Detect
    read: Read
    general: bool = False
    refused: bool = False
    by_row: bool = False


def _import_formats() -> None:
    for name in (
        "engines",
        "evaluators",
        "clicks",
        "layouts",
        "lines",
        "golden",
        "refused",
    ):
        importlib.import_module(f"weir.plugins.importing.formats.{name}")


READERS: Registry[Reader] = Registry("import reader", more=_import_formats)


def reader(
    name: str, title: str, detect: Detect = lambda _: "", general: bool = False, by_row: bool = False
) -> Callable[[Read], Read]:
    """Register the decorated function as the reader of a format; without detect it is taken only when named."""

    def register(read: Read) -> Read:
        READERS.add(name, Reader(name, title, detect, read, general, by_row=by_row))
        return read

    return register


def refuses(name: str, title: str, detect: Detect, instead: str) -> None:
    """Register a format whose reading raises BadValue with its name and what to give instead."""

    def read(contents: Contents, _: ReadRequest) -> Iterator[Item]:
        raise BadValue(f"{contents.path}: {title}; {instead}")

    READERS.add(name, Reader(name, title, detect, read, refused=True))


def chosen(contents: Contents, kind: str) -> tuple[Reader, str]:
    """The reader of a file, and the evidence.

    kind: as the user says, or "". Raises UnknownName for another kind; BadValue where two readers find evidence, and
    where none does.
    """
    if kind:
        return READERS.get(kind), f"--as {kind}"
    if contents.given and set(contents.given.values()) <= set(contents.columns):
        by_clicks = {"clicks", "clicked"} & set(contents.given)
        return READERS.get("clicks" if by_clicks else "records"), "--columns"
    for general in (False, True):
        among = [READERS.get(name) for name in READERS.names()]
        fitting = [(one, one.detect(contents)) for one in among if one.general is general]
        fitting = [(one, evidence) for one, evidence in fitting if evidence]
        if len(fitting) > 1:
            could = " or ".join(f"{one.name} ({evidence})" for one, evidence in fitting)
            raise BadValue(f"{contents.path}: could be {could}; say which with --as")
        if fitting:
            return fitting[0]
    raise BadValue(_unknown(contents))


def _unknown(contents: Contents) -> str:
    held = f"the fields {', '.join(contents.columns[:8])}" if contents.columns else "no known fields"
    if contents.shape == "lines":
        first = next((line for line in contents.text.split("\n") if line.strip()), "").strip()
        held = f"'{first[:60]}'"
        if contents.rows:
            count = len(contents.rows[0].fields)
            held = f"{held}, {count} columns without names"
            advice = "say which is which by number, as in --columns query=1,doc=2,grade=3, or what it is, with --as"
            return f"{contents.path}: found {held}; {advice}"
    advice = "say which columns are which, as in --columns query=NAME,doc=NAME,grade=NAME, or what it is, with --as"
    return f"{contents.path}: found {held}, which no format has that is known; {advice}"
