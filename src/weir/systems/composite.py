"""Systems within systems: each part's index in a folder of its own, opened where it is complete."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.errors import BadValue, StoreWarning, WeirError
from weir.io.storage.atomic import storing
from weir.registry import Identified, Identity, printed, session_only
from weir.systems.plugins import indexed
from weir.systems.protocol import (
    IN_MEMORY,
    CollectionAware,
    Context,
    FieldReader,
    Reranker,
    Retriever,
    Searcher,
    Shelf,
    Titled,
)

__all__ = [
    "FolderShelf",
    "adapted_to",
    "fields_of",
    "folder_name",
    "one_session",
    "parts_of",
    "renumbered",
    "shelf_of",
    "titled",
]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FolderShelf:
    """A shelf on which each part's index has a folder of its own, or lies in memory.

    at: the folder, None for memory; build: whether what is missing is built, else it raises StoreError.
    """

    at: Path | None = None
    build: bool = True
    opened: dict[str, Searcher] = field(default_factory=dict)

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """The part's index, opened where a killed process left it whole, else built."""
        name = folder_name(part)
        if name not in self.opened:
            at = None if self.at is None or session_only(part.describe()) else self.at / name
            self.opened[name] = self._made(part, corpus, replace(context, folder=at, shelf=None))
        return self.opened[name]

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """The part's index: nothing else is kept here."""
        return self.index(part, corpus, context)

    def _made(self, part: Retriever, corpus: Corpus, context: Context) -> Searcher:
        at = context.folder
        if at is None:
            return indexed(part, corpus, context)
        if not self.build:
            return part.open(corpus, context)
        if at.exists():
            try:
                return part.open(corpus, context)
            except WeirError as error:
                warnings.warn(StoreWarning(f"{error}; {part} is indexed again"), stacklevel=2)
        with storing(at):
            at.parent.mkdir(parents=True, exist_ok=True)
        return indexed(part, corpus, context)


def shelf_of(context: Context, build: bool = True) -> Shelf:
    """Where a composite finds its parts: the context's shelf, else folders within its folder, else memory."""
    return FolderShelf(context.folder, build) if context.shelf is None else context.shelf


def adapted_to(system: T, collection: str, instruction: str) -> T:
    """A system as it runs on a collection: with the prompts that its encoders use there, wherever they are in it.

    collection: its name; instruction: what models that follow instructions are told, "" where nothing says so.
    """
    if isinstance(system, CollectionAware):
        return cast(T, system.adapted_to(collection, instruction))
    if isinstance(system, tuple):
        return cast(T, tuple(adapted_to(part, collection, instruction) for part in system))
    if not (isinstance(system, (Retriever, Reranker)) and is_dataclass(type(system))):
        return system
    given: Any = system
    before = {f.name: getattr(given, f.name) for f in fields(given) if f.init}
    after = {name: adapted_to(part, collection, instruction) for name, part in before.items()}
    changed = {
        name: part for name, part in after.items() if part is not before[name] and part != before[name]
    }
    return cast(T, replace(given, **changed)) if changed else system


def one_session(systems: Iterable[T]) -> list[T]:
    """Some systems in which one object, wherever it stands in them, has one session.

    Each adaptation of an object without a version has its own, so that what it made is told apart from what it makes
    after it has changed. Raises BadValue for two objects of one kind and name.
    """
    known: dict[tuple[type, str], Identity] = {}
    return [_with_sessions(system, known) for system in systems]


def _with_sessions(value: T, known: dict[tuple[type, str], Identity]) -> T:
    if isinstance(value, tuple):
        return cast(T, tuple(_with_sessions(one, known) for one in value))
    given: Any = value
    if isinstance(value, Identified) and is_dataclass(type(value)):
        own = value.identity
        first = known.setdefault((type(value), own.name), own)
        if not own.same_object(first):
            raise BadValue(
                f"two objects are named '{own.name}'; give one another name: {value.adapter}(..., name=\"other\")"
            )
        return cast(T, value if own.session == first.session else replace(given, identity=first))
    if not (isinstance(value, (Retriever, Reranker)) and is_dataclass(type(value))):
        return value
    before = {f.name: getattr(given, f.name) for f in fields(given) if f.init}
    after = {name: _with_sessions(part, known) for name, part in before.items()}
    # Values that differ in their session alone are equal, so that parts are held against each other one by one.
    changed = {name: part for name, part in after.items() if not _is_same(part, before[name])}
    return cast(T, replace(given, **changed)) if changed else value


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(map(_is_same, one, other))
    return one is other


def parts_of(system: object) -> Iterator[object]:
    """A system or re-ranker and those within its settings."""
    yield system
    if is_dataclass(system):
        for value in (getattr(system, f.name) for f in fields(system)):
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, (Retriever, Reranker)):
                    yield from parts_of(one)


def titled(system: object) -> str:
    """The name of a system with the files of those within it replaced by what the files call them; "" for no such."""
    name = title = str(system)
    for part in parts_of(system):
        if isinstance(part, Titled):
            file, own = part.title()
            title = title.replace(printed(file), printed(own)) if file and own else title
    return title if title != name else ""


def fields_of(system: object) -> tuple[str, ...]:
    """The views and fields of documents that a system, or one within it, reads."""
    read = (part.fields_read() for part in parts_of(system) if isinstance(part, FieldReader))
    return tuple(field for some in read for field in some)


def folder_name(part: Retriever) -> str:
    """A name that every file system takes, the part's own and that of its settings."""
    text = json.dumps(part.describe(), sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8"), digest_size=5).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.=_]+', '-', str(part)).strip('-.')[:40] or 'part'}-{key}"


def renumbered(run: Run, corpus: Corpus) -> Run:
    """A run with its documents numbered as a corpus numbers them."""
    if run.docs is corpus.ids:
        return run
    return replace(run, docs=corpus.ids, doc=corpus.ids.codes(run.docs.strings)[run.doc])
