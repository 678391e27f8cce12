"""The collections Weir knows by name: one TOML file of facts for each, read when it is asked for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from weir.errors import UnknownName
from weir.settings import settings


@dataclass(frozen=True)
class Entry:
    """What is published about a collection.

    split: the judgments everyone reports on. self_match: "drop" where queries are documents of the corpus and
    a document with the query's own id is no answer, else "keep". candidates: "judged" where the documents judged for a
    query are those that may be ranked; dev_counts: documents, judged queries and judgments of a dev set with documents
    of its own. documents, queries: their number (queries:
    judged ones of the split). grades: judged pairs of the split by grade. words_per_query,
    words_per_document, duplicates: as published, None where nothing is. instruction: what embedding models that
    follow instructions are told, in the words their published scores were made with (E5-Mistral, Wang et al. 2024,
    taken up by those after it; BIRCO's objectives in words of ours). urls, md5, bytes: the archive, or BIRCO's test
    set, and its check; without one only copies are tried; copies: references to copies of it, tried where the archive
    cannot be had; content: what `content_of` says
    of it, "" where that was never computed, and a copy is compared by its counts; folder: where the collection lies
    once unpacked, below Weir's home. obtain: for collections under licence, how to get them. embedded: it comes with
    Weir; `folder` is within this package.
    """

    name: str
    title: str
    task: str
    domain: str
    licence: str
    site: str
    split: str
    documents: int
    queries: int
    folder: str
    layout: str = "beir"
    has_title: bool = True
    self_match: str = "keep"
    candidates: str = ""
    relevance: str = "binary"
    grades: dict[int, int] = field(default_factory=dict)
    train_pairs: int = 0
    dev_queries: int = 0
    dev_counts: tuple[int, ...] = ()
    words_per_query: float | None = None
    words_per_document: float | None = None
    duplicates: int | None = None
    instruction: str = ""
    notes: str = ""
    urls: tuple[str, ...] = ()
    md5: str = ""
    bytes: int = 0
    copies: tuple[str, ...] = ()
    content: str = ""
    obtain: str = ""
    embedded: bool = False

    @property
    def path(self) -> Path:
        """The folder the collection lies in, or will."""
        if self.embedded:
            return Path(str(files("weir.datasets") / self.folder))
        return settings().home / "datasets" / self.folder

    @property
    def here(self) -> bool:
        """Whether the collection is on this machine."""
        return self.path.is_dir()

    @property
    def archive(self) -> str:
        """The file name of the archive, "" where there is none to download."""
        return self.urls[0].rpartition("/")[2] if self.urls else ""


@dataclass(frozen=True)
class Group:
    """Collections reported together; their score is the unweighted mean of the members' scores."""

    name: str
    title: str
    members: tuple[str, ...]
    notes: str = ""


def names() -> list[str]:
    """The names of all collections, sorted; groups have their own."""
    return sorted(_stems("catalog"))


def groups() -> list[str]:
    """The names of all groups, sorted."""
    return sorted(_stems("catalog/groups"))


def is_group(name: str) -> bool:
    """Whether this is the name of a group."""
    return name in _stems("catalog/groups")


def catalogued(name: str) -> str:
    """The catalogue's name of a collection, "" for one that it does not have.

    A member of a group may also be written behind the group and a slash: birco/relic is birco-relic.
    """
    if name in _stems("catalog"):
        return name
    of, _, member = name.partition("/")
    joined = f"{of}-{member}"
    return joined if is_group(of) and joined in group(of).members else ""


@cache
def published_pools() -> dict[tuple[int, int, int], str]:
    """{(documents, judged queries, judgments): collection} of BIRCO's sets, as far as these counts are known."""
    pools = {}
    for entry in map(get, group("birco").members):
        if entry.grades:
            pools[entry.documents, entry.queries, sum(entry.grades.values())] = entry.name
        if entry.dev_counts:
            documents, queries, judgments = entry.dev_counts
            pools[documents, queries, judgments] = entry.name
    return pools


def members(name: str) -> tuple[str, ...]:
    """The collections of a group, or the one of this name, which the catalogue need not have."""
    return group(name).members if is_group(name) else (catalogued(name) or name,)


@cache
def get(name: str) -> Entry:
    """The entry of a name, as `catalogued` reads it; raises UnknownName, suggesting the nearest."""
    official = catalogued(name)
    if not official:
        raise UnknownName("dataset", name, _stems("catalog") | _stems("catalog/groups"))
    if official != name:
        return get(official)
    facts = _facts(f"catalog/{name}.toml")
    facts["grades"] = {int(grade): count for grade, count in facts.get("grades", {}).items()}
    facts |= {key: tuple(facts.get(key, ())) for key in ("urls", "copies", "dev_counts")}
    return Entry(name=name, **facts)


@cache
def group(name: str) -> Group:
    """The group of that name; raises UnknownName, suggesting the nearest."""
    if not is_group(name):
        raise UnknownName("group of datasets", name, _stems("catalog/groups"))
    facts = _facts(f"catalog/groups/{name}.toml")
    return Group(name, facts["title"], tuple(facts["members"]), facts.get("notes", ""))


def entries() -> list[Entry]:
    """Every entry (reads all files)."""
    return [get(name) for name in names()]


def _facts(path: str) -> dict[str, Any]:
    return tomllib.loads((files("weir.datasets") / path).read_text(encoding="utf-8"))


@cache
def _stems(folder: str) -> frozenset[str]:
    entries = (files("weir.datasets") / folder).iterdir()
    return frozenset(f.name.removesuffix(".toml") for f in entries if f.name.endswith(".toml"))
