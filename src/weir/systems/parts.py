"""Systems within systems: each part's index in a folder of its own, opened where it is complete."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.errors import StoreError, WeirError
from weir.io.atomic import storing, write_json
from weir.systems.system import Progress, Reranker, Retriever, Searcher

__all__ = ["check_mark", "folder_name", "indexed", "numbered", "shifted", "suited", "write_mark"]

T = TypeVar("T")

FORMAT = 1


def indexed(part: Retriever, corpus: Corpus, at: Path | None, progress: Progress | None) -> Searcher:
    """A part's index in the folder `at`: opened where a killed process left it complete, else made."""
    if at is not None and at.exists():
        try:
            return part.open(at, corpus)
        except WeirError:  # damaged, or of another corpus: made again
            pass
    if at is not None:
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


def write_mark(path: Path, system: object, parts: list[str], corpus: Corpus) -> None:
    """Say that these parts of a system's index are complete."""
    facts = {"format": FORMAT, "corpus": corpus.fingerprint, "documents": len(corpus)}
    write_json(path, {"system": str(system), "parts": parts, **facts})


def check_mark(path: Path, system: object, parts: set[str]) -> None:
    """Raise StoreError unless `write_mark` said that all these parts are complete."""
    try:
        whole = set(json.loads(path.read_text(encoding="utf-8"))["parts"]) >= parts
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise StoreError(
            f"{path.parent}: this index of {system} is not complete; delete it to build it again"
        )
