"""Systems within systems: each part's index in a folder of its own, opened where it is complete."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.errors import StoreWarning, WeirError
from weir.io.storage.atomic import storing
from weir.systems.protocol import Progress, Reranker, Retriever, Searcher

__all__ = ["Folder", "folder_name", "numbered", "parts_of", "shifted", "suited"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Folder:
    """A shelf on which each part's index has a folder of its own, or lies in memory.

    at: the folder, None for memory; build: whether what is missing is built, else it raises StoreError.
    """

    at: Path | None = None
    build: bool = True
    opened: dict[str, Searcher] = field(default_factory=dict)

    def index(self, part: Retriever, corpus: Corpus, progress: Progress | None = None) -> Searcher:
        """The part's index, opened where a killed process left it whole, else built."""
        name = folder_name(part)
        if name not in self.opened:
            self.opened[name] = self._made(
                part, None if self.at is None else self.at / name, corpus, progress
            )
        return self.opened[name]

    def answers(self, part: Retriever, corpus: Corpus, progress: Progress | None = None) -> Searcher:
        """The part's index: nothing else is kept here."""
        return self.index(part, corpus, progress)

    def _made(self, part: Retriever, at: Path | None, corpus: Corpus, progress: Progress | None) -> Searcher:
        if at is None:
            return part.index(corpus, None, progress)
        if not self.build:
            return part.open(at, corpus)
        if at.exists():
            try:
                return part.open(at, corpus)
            except WeirError as error:
                warnings.warn(StoreWarning(f"{error}; {part} is indexed again"), stacklevel=2)
        with storing(at):
            at.parent.mkdir(parents=True, exist_ok=True)
        return part.index(corpus, at, progress)


def suited(system: T, collection: str, instruction: str) -> T:
    """A system as it runs on a collection: with the prompts that its encoders use there, wherever they are in it.

    collection: its name; instruction: what models that follow instructions are told, "" where nothing says so. A part
    that differs between collections has a method on_collection(collection, instruction).
    """
    if hasattr(system, "on_collection"):
        return cast(T, system.on_collection(collection, instruction))
    if isinstance(system, tuple):
        return cast(T, tuple(suited(part, collection, instruction) for part in system))
    if not (isinstance(system, (Retriever, Reranker)) and is_dataclass(type(system))):
        return system
    given: Any = system
    before = {f.name: getattr(given, f.name) for f in fields(given) if f.init}
    after = {name: suited(part, collection, instruction) for name, part in before.items()}
    changed = {
        name: part for name, part in after.items() if part is not before[name] and part != before[name]
    }
    return cast(T, replace(given, **changed)) if changed else system


def parts_of(system: object) -> Iterator[object]:
    """A system or re-ranker and those within its settings."""
    yield system
    if is_dataclass(system):
        for value in (getattr(system, f.name) for f in fields(system)):
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, (Retriever, Reranker)):
                    yield from parts_of(one)


def folder_name(part: Retriever) -> str:
    """A name that every file system takes, the part's own and that of its settings."""
    text = json.dumps(part.describe(), sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8"), digest_size=5).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.=_]+', '-', str(part)).strip('-.')[:40] or 'part'}-{key}"


def numbered(run: Run, corpus: Corpus) -> Run:
    """A run with its documents numbered as a corpus numbers them."""
    if run.docs is corpus.ids:
        return run
    return replace(run, docs=corpus.ids, doc=corpus.ids.codes(run.docs.strings)[run.doc])


def shifted(progress: Progress, number: int, parts: int) -> Progress:
    """Progress of one of several parts that are done one after the other."""
    return lambda done, total: progress(number * total + done, parts * total)
