"""The registry of readers: a function for each format, and a detector with its evidence."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weir.errors import BadValue
from weir.files.column_names import usual
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.items import Choices, Item
from weir.registry import Registry

Detect = Callable[[Contents], str]  # the evidence for a format, "" where there is none
Read = Callable[[Contents, Choices], Iterator[Item]]


@dataclass(frozen=True)
class Reader:
    """An importable file format, with its detector and reader."""

    name: str
    title: str
    detect: Detect
    read: Read
    general: bool = False
    """Its detector runs only if no other finds evidence."""
    by_row: bool = False
    """Rows are read independently, so a large file may come in batches."""


def _import_formats() -> None:
    for name in (
        "engines",
        "evaluators",
        "clicks",
        "layouts",
        "lines",
        "results",
        "golden",
        "refused",
    ):
        importlib.import_module(f"weir.plugins.importing.formats.{name}")


READERS: Registry[Reader] = Registry("import reader", more=_import_formats)


def reader(
    name: str, title: str, detect: Detect = lambda _: "", general: bool = False, by_row: bool = False
) -> Callable[[Read], Read]:
    """Return a decorator that registers a function as the reader of a format.

    detect: returns the evidence, "" for none; without it, only `as_kind` names the format.
    general, by_row: see `Reader`.
    """

    def add_reader(read: Read) -> Read:
        READERS.add(name, Reader(name, title, detect, read, general, by_row))
        return read

    return add_reader


def when(evidence: str, test: Callable[[Contents], object]) -> Detect:
    """Return a detector: a function of a file's contents that returns `evidence` if the test holds, else ""."""
    return lambda contents: evidence if test(contents) else ""


def has_columns(*names: str, without: tuple[str, ...] = ()) -> Detect:
    """Return a detector of files with all these columns and none of `without`; its evidence is the names, else ""."""

    def detect(contents: Contents) -> str:
        columns = set(contents.columns)
        return ", ".join(names) if set(names) <= columns and not set(without) & columns else ""

    return detect


def has_keys(*names: str) -> Detect:
    """Return a detector of files of one JSON object with all these keys; its evidence is the keys, else ""."""

    def detect(contents: Contents) -> str:
        value = contents.rows[0].fields if len(contents.rows) == 1 else contents.value
        return ", ".join(names) if isinstance(value, dict) and set(names) <= set(value) else ""

    return detect


def any_of(*detectors: Detect) -> Detect:
    """Return a detector that gives the first evidence of several, else ""."""
    return lambda contents: next((evidence for detect in detectors if (evidence := detect(contents))), "")


def _reader_of(contents: Contents, roles: set[str]) -> Reader:
    is_query = roles - {"doc", "text", "title"} or usual(contents.columns, "query", "query_id")
    return READERS.get("clicks" if {"clicks", "clicked"} & roles else "records" if is_query else "corpus")


def choose_reader(contents: Contents, kind: str) -> tuple[Reader, str]:
    """Return (reader of a file, evidence for it).

    kind: name of the reader; "" recognises the format, first by the user's columns.

    Raises UnknownName for an unknown kind, BadValue if no reader or several fit.
    """
    if kind:
        return READERS.get(kind), f"`as_kind={kind!r}`"
    held = {role for role, column in contents.roles.items() if column in contents.columns}
    if held and len(held) == len(contents.roles):
        return _reader_of(contents, held), "`columns`"
    for general in (False, True):
        readers = [one for one in map(READERS.get, READERS.names()) if one.general is general]
        fitting = [(one, evidence) for one in readers if (evidence := one.detect(contents))]
        if len(fitting) > 1:
            kinds = " or ".join(f"{one.name} ({evidence})" for one, evidence in fitting)
            raise BadValue(f"{contents.path}: could be {kinds}; choose one with `as_kind`")
        if fitting:
            return fitting[0]
    if held:  # the other columns stand in other files
        return _reader_of(contents, held), "`columns`"
    advice = (
        "name the columns, as in `columns='query=NAME,doc=NAME,grade=NAME'`, of documents "
        "`columns='doc=NAME,text=NAME'`, or the kind, with `as_kind`"
    )
    if contents.shape != "lines":
        fields = (
            f"the fields {', '.join(contents.columns[:8])}" if contents.columns else "a list of such values"
        )
        raise BadValue(f"{contents.path}: no known format has {fields}; {advice}")
    first = next((line for line in contents.text.split("\n") if line.strip()), "").strip()
    if not contents.rows:
        advice = (
            "say the kind, with `as_kind`, or put tabs between columns, which `columns` then names; a list of queries "
            "takes the line query above it"
        )
        raise BadValue(f"{contents.path}: no known format begins with '{first[:60]}'; {advice}")
    cut = first[:60] + "..." * (len(first) > 60)
    raise BadValue(
        f"{contents.path}: found '{cut}', {len(contents.rows[0].fields)} columns without usual names; "
        "say which is which, by these names if they are names, as in `columns='query=NAME,doc=NAME,grade=NAME'`, "
        "else by number, as in `columns='query=1,doc=2,grade=3'` (query_id=1 for identifiers of queries), or "
        "the kind, with `as_kind`"
    )
