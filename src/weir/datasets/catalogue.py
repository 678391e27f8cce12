"""Read the catalogue of collections, with one TOML file of facts for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from weir.core.rounding import count
from weir.errors import UnknownName
from weir.files.text_files import read_toml
from weir.settings import settings

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A collection in the catalogue, with published counts and download addresses."""

    name: str
    title: str
    task: str
    domain: str
    licence: str
    site: str
    split: str
    """The split whose judgments are usually reported."""
    documents: int
    queries: int
    """Number of judged queries of the split."""
    folder: str
    """Unpacked folder below Weir's home, or within this package if `embedded`."""
    layout: str = "beir"
    has_title: bool = True
    self_match: str = "keep"
    """"drop" if queries are documents and a document with the query's own id is no answer, else "keep"."""
    candidates: str = ""
    """"judged" if only the documents judged for a query may be ranked."""
    relevance: str = "binary"
    grades: dict[int, int] = field(default_factory=dict)
    """Judged pairs of the split by grade."""
    dev_counts: tuple[int, ...] = ()
    """Documents, judged queries and judgments of a dev set with its own documents."""
    words_per_query: float | None = None
    """As published, like `words_per_document` and `duplicates`; None if not published."""
    words_per_document: float | None = None
    duplicates: int | None = None
    # E5-Mistral (Wang et al. 2024) and its successors; BIRCO's objectives in our words.
    instruction: str = ""
    """Instruction for embedding models, as in published scores."""
    notes: str = ""
    urls: tuple[str, ...] = ()
    """URLs of the archive, or of BIRCO's test set; () if there are only copies."""
    md5: str = ""
    bytes: int = 0
    copies: tuple[str, ...] = ()
    """References to copies, tried if the archive is unavailable."""
    content: str = ""
    """Result of `content_of`; "" if unknown, so that copies are compared by counts."""
    obtain: str = ""
    """Instructions for getting a collection that is under licence."""
    embedded: bool = False
    """True if it comes with Weir."""

    @property
    def path(self) -> Path:
        """Folder of the collection; it need not exist."""
        if self.embedded:
            return _HERE / self.folder
        return settings().home / "datasets" / self.folder

    @property
    def here(self) -> bool:
        """True if the collection's folder is on this machine."""
        return self.path.is_dir()

    @property
    def archive(self) -> str:
        """File name of the archive; "" without a download."""
        return self.urls[0].rpartition("/")[2] if self.urls else ""


@dataclass(frozen=True)
class Group:
    """Collections reported together, with the unweighted mean of their scores."""

    name: str
    title: str
    members: tuple[str, ...]
    notes: str = ""


def collection_names() -> list[str]:
    """Return the sorted names of all collections, without groups."""
    return sorted(_stems("catalog"))


def whole_groups(datasets: Iterable[str]) -> list[Group]:
    """Return the groups of which these datasets hold every member."""
    there = set(datasets)
    return [one for one in map(group, groups()) if there.issuperset(one.members)]


def groups() -> list[str]:
    """Return the sorted names of all groups."""
    return sorted(_stems("catalog/groups"))


def is_group(name: str) -> bool:
    """Return True if the catalogue has a group with this name, such as "beir"."""
    return name in _stems("catalog/groups")


def catalogued(name: str) -> str:
    """Return a collection's name as in the catalogue, such as birco-relic for birco/relic; "" if unknown."""
    if name in _stems("catalog"):
        return name
    of, _, member = name.partition("/")
    joined = f"{of}-{member}"
    return joined if is_group(of) and joined in group(of).members else ""


@cache
def published_pools() -> dict[tuple[int, int, int], str]:
    """Return {(documents, judged queries, judgments): name} of BIRCO's collections."""
    pools = {}
    for entry in map(get, group("birco").members):
        if entry.grades:
            pools[entry.documents, entry.queries, sum(entry.grades.values())] = entry.name
        if entry.dev_counts:
            documents, queries, judgments = entry.dev_counts
            pools[documents, queries, judgments] = entry.name
    return pools


def members(name: str) -> tuple[str, ...]:
    """Return the names of a group's collections; for any other name, known or not, that name alone."""
    return group(name).members if is_group(name) else (catalogued(name) or name,)


@cache
def get(name: str) -> Entry:
    """Return the catalogue's facts about a collection; raises UnknownName if unknown."""
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
    """Return a group of collections by name; raises UnknownName if unknown."""
    if not is_group(name):
        raise UnknownName("group of datasets", name, _stems("catalog/groups"))
    facts = _facts(f"catalog/groups/{name}.toml")
    return Group(name, facts["title"], tuple(facts["members"]), facts.get("notes", ""))


def original(reference: str) -> str:
    """Return the catalogue name of the collection that a reference copies, such as scifact for hf:mteb/scifact, else
    the reference.
    """
    return _copies().get(without_revision(reference), reference)


def without_revision(reference: str) -> str:
    """Return a reference such as hf:mteb/scifact@COMMIT without its revision."""
    return re.sub(r"^(hf:[^@#]+)@[^#]+", r"\1", reference)


@cache
def _copies() -> dict[str, str]:
    return {
        without_revision(copy): entry.name
        for entry in entries()
        if not entry.candidates
        for copy in entry.copies
    }


def other_counts(
    name: str, queries: int | None, documents: int | None = None, grades: Mapping[float, int] | None = None
) -> tuple[tuple[str, float, float], ...]:
    """Return (name of the count, own number, published number) for each count that differs; () for an unknown
    collection.

    queries, documents, grades: own numbers, of judgments by grade; None is not compared.
    """
    name = original(name)
    if name not in collection_names():
        return ()
    entry, grades = get(name), grades or {}
    there = {float(grade): number for grade, number in entry.grades.items()}
    counts: list[tuple[str, float | None, float]] = [
        ("documents", documents, entry.documents),
        ("judged queries", queries, entry.queries),
    ]
    if grades and there:
        counts += [
            (f"judgments of grade {grade:g}", grades.get(grade, 0), there.get(grade, 0))
            for grade in sorted({*grades, *there})
        ]
    return tuple((what, here, known) for what, here, known in counts if here is not None and here != known)


def changes_scores(what: str) -> bool:
    """Return False for a count of judgments with a grade from -2 to 0, which affects no score, else True.

    what: name of the count, from `other_counts`.
    """
    return not what.endswith((" -2", " -1", " 0"))


def not_as_published(name: str, differences: tuple[tuple[str, float, float], ...]) -> str:
    """Return a sentence on how a collection's counts differ from the published ones.

    differences: from `other_counts`.
    """
    shown = "; ".join(f"{what}: {count(here)}, published {count(there)}" for what, here, there in differences)
    return f"this is not {name} as it was published: {shown}"


def entries() -> list[Entry]:
    """Return the facts of all collections in the catalogue, sorted by name."""
    return [get(name) for name in collection_names()]


def _facts(path: str) -> dict[str, Any]:
    return read_toml(_HERE / path, "an entry of the catalogue")


@cache
def _stems(folder: str) -> frozenset[str]:
    entries = (_HERE / folder).iterdir()
    return frozenset(f.name.removesuffix(".toml") for f in entries if f.name.endswith(".toml"))
