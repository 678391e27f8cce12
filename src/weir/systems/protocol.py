"""What a retrieval system is, and how it prints.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back (expression.py) and compares, and so does
`bm25 >> score(rm3, depth=50)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.registry import Registry, printed

__all__ = [
    "RERANKERS",
    "SYSTEMS",
    "Composite",
    "ExternalStorage",
    "Fetched",
    "Indexed",
    "Progress",
    "Reranker",
    "Retriever",
    "Scorer",
    "Searcher",
    "Shelf",
    "called",
    "fresh",
    "usage",
    "watched",
]

Progress = Callable[[int, int], None]

T = TypeVar("T")


class Searcher(Protocol):
    """An index ready to answer: an immutable snapshot."""

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents for each query, fewer where fewer match."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """A configuration that turns a corpus into a searcher; a frozen dataclass that prints as its name."""

    def describe(self) -> dict[str, object]:
        """Everything that decides its rankings, as JSON: what the keys of its stages are made of.

        Settings in full, digests of the contents that decide, versions of packages that decide, numbers of algorithms;
        no threads, paths or times. Pure and cheap: nothing is fetched, loaded or measured. An entry "engine", at any
        depth, says what computes, None where nothing here could. Raises DownloadError where a checkpoint is not here.
        """
        ...

    def index(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> Searcher:
        """Index a corpus, in memory or into the folder `at`, which appears when it is complete."""
        ...

    def open(self, at: Path, corpus: Corpus) -> Searcher:
        """Open an index made before from the same corpus; raises StoreError where it is damaged."""
        ...


class Shelf(Protocol):
    """Where a system made of systems finds what its parts have made: each thing once, whoever asks for it."""

    def index(self, part: Retriever, corpus: Corpus, progress: Progress | None = None) -> Searcher:
        """The part's index of a corpus, opened where it is whole, else built."""
        ...

    def answers(self, part: Retriever, corpus: Corpus, progress: Progress | None = None) -> Searcher:
        """As `index`, for a part whose rankings are wanted: those it gave before may be read instead of searched."""
        ...


@runtime_checkable
class Composite(Protocol):
    """A system made of systems, which has no index of its own."""

    def over(self, corpus: Corpus, shelf: Shelf, progress: Progress | None = None) -> Searcher:
        """The system over what its parts have made of a corpus."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A system whose index serves other settings too."""

    def indexed_as(self) -> Retriever:
        """The system that stands for all those that search the same index: its description is the index's key."""
        ...


@runtime_checkable
class Fetched(Protocol):
    """A part that needs what may have to be downloaded, such as a checkpoint."""

    def fetch(self) -> None:
        """Download what is not here, so that describing the part needs no network; raises DownloadError."""
        ...


@dataclass(frozen=True)
class ExternalStorage:
    """What an index keeps outside its own folder, so that its cost can be told.

    bytes: of its vectors there; reused: documents whose vectors or questions were there before; queries: whether
    queries are kept too; asked, computed: scores of pairs asked for so far, and those that had to be computed. A
    searcher that keeps anything there says so by a method `outside`.
    """

    bytes: int = 0
    reused: int = 0
    queries: bool = False
    asked: int = 0
    computed: int = 0

    def __add__(self, other: ExternalStorage) -> ExternalStorage:
        return ExternalStorage(
            self.bytes + other.bytes,
            self.reused + other.reused,
            self.queries or other.queries,
            self.asked + other.asked,
            self.computed + other.computed,
        )

    @staticmethod
    def of(*parts: object) -> ExternalStorage:
        """What some searchers keep outside, together."""
        found = [part.outside() for part in parts if hasattr(part, "outside")]
        return sum(found, ExternalStorage())


def watched(part: T, progress: Progress) -> T:
    """A searcher or scorer that tells how far a long search is, where it has a method `watched`; else the same."""
    how: Callable[[Progress], T] | None = getattr(part, "watched", None)
    return part if how is None else how(progress)


def fresh(part: T) -> T | None:
    """A searcher or scorer that computes anew what it keeps; None where it has no method `fresh`.

    For taking times: nothing it does is kept. A part without the method is not asked again, since each answer may
    cost whoever made it; what is paid for, as an API's answers, is read from where it is kept.
    """
    how: Callable[[], T | None] | None = getattr(part, "fresh", None)
    return None if how is None else how()


@runtime_checkable
class Scorer(Protocol):
    """What says how well given documents answer given queries."""

    def scores(self, queries: Queries, candidates: Run) -> Float64:
        """A score for each row of the candidates: float64 aligned with candidates.doc, numbers of the corpus."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """A configuration that re-orders what another system finds; a frozen dataclass that prints as its name."""

    @property
    def depth(self) -> int:
        """How many of the first documents of each ranking are scored anew."""
        ...

    def describe(self) -> dict[str, object]:
        """Everything that decides its scores, as a Retriever describes itself."""
        ...

    def ready(self, corpus: Corpus, shelf: Shelf, progress: Progress | None = None) -> Scorer:
        """What scores documents of a corpus; indexes of systems that it scores by come from the shelf."""
        ...


# Where each is registered, so that reading a name imports no more than it names; fusion methods are systems too.
_SYSTEMS = {
    "bm25": "lexical.bm25",
    "chunked": "lexical.chunked",
    "colbert": "late_interaction",
    "deepct": "lexical.deepct",
    "dense": "dense",
    "doc2query": "lexical.doc2query",
    "rm3": "lexical.rm3",
    "sparta": "learned_sparse",
    "splade": "learned_sparse",
    "unicoil": "learned_sparse",
}
_RERANKERS = {"cross": "rerank.cross", "monot5": "rerank.cross", "score": "rerank.score_reranker"}


def _homes(names: dict[str, str]) -> dict[str, str]:
    return {name: f"weir.systems.{module}" for name, module in names.items()}


SYSTEMS: Registry[Callable[..., Retriever]] = Registry("system", _homes(_SYSTEMS), ("weir.systems.fused",))
RERANKERS: Registry[Callable[..., Reranker]] = Registry("reranker", _homes(_RERANKERS))


def called(name: str, positional: list[object], settings: dict[str, object]) -> str:
    """How a system with these settings prints: name("first", key=value), or the bare name."""
    inside = [printed(v) for v in positional] + [f"{k}={printed(v)}" for k, v in settings.items()]
    return f"{name}({', '.join(inside)})" if inside else name


def usage(name: str) -> str:
    """A system or re-ranker with all its settings at their defaults, as it may be written."""
    builder = RERANKERS.get(name) if name in RERANKERS else SYSTEMS.get(name)
    many, needed = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.empty
    shown = [
        f"{p.name}, {p.name}, ..."
        if p.kind is many
        else p.name
        if p.default is needed
        else f"{p.name}={printed(p.default)}"
        for p in inspect.signature(builder).parameters.values()
    ]
    return f"{name}({', '.join(shown)})"
