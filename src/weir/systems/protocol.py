"""The protocol of systems: what one declares, how it is indexed and searched, what it is given and what it costs.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back (expression.py) and compares, and so does
`bm25 >> score(rm3, depth=50)`. Objects that know nothing of this protocol are adapted to it by compose.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, StoreError
from weir.registry import Registry, printed
from weir.systems import reranker_names, system_names

if TYPE_CHECKING:
    from weir.services.answers import ServiceUsage
    from weir.systems.vectors.ann import Loss


Progress: TypeAlias = Callable[[int, int], None]
"""Told (how much is done, how much there is)."""

DEPTH = 100
"""Documents that a re-ranker scores of a ranking, unless a depth is named; of candidates it scores all."""
MAX_DEPTH = 10_000_000
"""Documents of a ranking that may be scored anew."""


@dataclass(frozen=True)
class Context:
    """What a system is given besides texts.

    folder: where an index is written, or lies; None for memory. progress: told how far it is. shelf: where a system
    made of systems finds what its parts have made; None for folders within `folder`. reuse: whether what was computed
    and kept before may be read, and what is computed now kept; False takes times, and changes no result.
    """

    folder: Path | None = None
    progress: Progress | None = None
    shelf: Shelf | None = None
    reuse: bool = True

    def for_part(self, number: int, parts: int) -> Context:
        """That of one of several parts that are done one after the other: its share of the progress, no folder."""
        report = self.progress

        def share(done: int, total: int) -> None:
            if report is not None:
                report(number * total + done, parts * total)

        return replace(self, folder=None, progress=None if report is None else share)


IN_MEMORY = Context()
"""Nothing on disk but caches, and nobody told."""


@dataclass(frozen=True)
class Costs:
    """What a searcher or scorer costs beside its index and its time.

    external_bytes: of vectors and weights in stores outside the index, or on a server; reused_documents: of which what
    is made (vectors, questions, an index on a server) was there before; cached_queries: whether vectors of queries are
    kept too; requested_pairs, computed_pairs: scores of pairs asked for so far, and those of them that had to be
    computed; candidates, unscored: documents that first stages gave to re-rankers, and those of them behind the depth,
    which no re-ranker scored; repeatable: whether asking again costs nothing but time, so that single queries may be
    timed; services: what of others' was asked.
    """

    external_bytes: int = 0
    reused_documents: int = 0
    cached_queries: bool = False
    requested_pairs: int = 0
    computed_pairs: int = 0
    candidates: int = 0
    unscored: int = 0
    repeatable: bool = False
    services: tuple[ServiceUsage, ...] = ()

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.external_bytes + other.external_bytes,
            self.reused_documents + other.reused_documents,
            self.cached_queries or other.cached_queries,
            self.requested_pairs + other.requested_pairs,
            self.computed_pairs + other.computed_pairs,
            self.candidates + other.candidates,
            self.unscored + other.unscored,
            self.repeatable and other.repeatable,
            self.services + other.services,
        )

    @staticmethod
    def of(parts: Iterable[Searcher | Scorer]) -> Costs:
        """The costs of some searchers and scorers together."""
        return sum((part.costs() for part in parts), Costs(repeatable=True))


@runtime_checkable
class Searcher(Protocol):
    """An index ready to answer: an immutable snapshot."""

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, fewer where fewer match."""
        ...

    def costs(self) -> Costs:
        """What it costs so far; `Costs()` where it keeps and counts nothing."""
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

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Index a corpus, in memory or into the context's folder, which appears when it is complete."""
        ...

    def open(self, corpus: Corpus, context: Context) -> Searcher:
        """Open the index made of the same corpus in the context's folder; raises StoreError where it is damaged."""
        ...


class Shelf(Protocol):
    """Where a system made of systems finds what its parts have made: each thing once, whoever asks for it."""

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """The part's index of a corpus, opened where it is whole, else built."""
        ...

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """As `index`, for a part whose rankings are wanted: those it gave before may be read instead of searched."""
        ...


@dataclass(frozen=True)
class Component:
    """A system that another is made of. takes: its rankings ("run") or its index; over: what it indexes, "" for the
    documents of the collection."""

    system: Retriever
    takes: Literal["run", "index"]
    over: str = ""


@runtime_checkable
class Composite(Protocol):
    """A system without an index of its own: its `index` asks the context's shelf for those of its components."""

    def components(self) -> tuple[Component, ...]:
        """What it is made of; () for one that keeps nothing on disk."""
        ...


@runtime_checkable
class Titled(Protocol):
    """A system that a file describes, which may say what tables call it."""

    def title(self) -> tuple[str, str]:
        """(the file as the system's name has it, what the file calls the system), "" where it says nothing."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A system that somebody else runs: it is asked each query, and never for a probe."""

    @property
    def service(self) -> str:
        """What is asked, in a message."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A system whose index serves other settings too."""

    def indexed_as(self) -> Retriever:
        """The system that stands for all those that search the same index: its description is the index's key."""
        ...


@runtime_checkable
class Fetched(Protocol):
    """A part that needs what may have to be downloaded, such as a checkpoint, or libraries of an extra."""

    def fetch(self) -> None:
        """Download what is not here, so that describing the part needs no network; raises DownloadError."""
        ...


@runtime_checkable
class Installed(Protocol):
    """A system that makes things on a server, which stay there until they are removed."""

    def uninstall(self) -> list[str]:
        """Remove all that Weir made there, whoever's process made it; the names of what was removed."""
        ...


@runtime_checkable
class CollectionAware(Protocol):
    """A part that differs between collections, as an encoder with a prompt for each of them."""

    def adapted_to(self, collection: str, instruction: str) -> object:
        """The part as it runs on a collection. instruction: of the collection, "" where nothing says so."""
        ...


@runtime_checkable
class FieldReader(Protocol):
    """A part that may read other fields of the documents than their titles and texts."""

    def fields_read(self) -> tuple[str, ...]:
        """The views or fields that it reads; their contents are part of the keys of its stages."""
        ...


@runtime_checkable
class ApproximateSearcher(Protocol):
    """A searcher that may lose documents against an exact search."""

    def loss(self, queries: Queries, k: int) -> Loss:
        """The share of the exact k best that it does not find; raises BadValue where it searches exactly."""
        ...


@runtime_checkable
class CandidateSource(Protocol):
    """A system whose answers are candidates, which a re-ranker behind it scores whole unless its depth is named."""

    def pool_depth(self, k: int, documents: int) -> int | None:
        """How many answers hold all candidates of a query, where k are wanted of so many documents; None where its
        answers are a ranking, of which the first suffice."""
        ...

    def is_drawn(self) -> bool:
        """Whether the order of its answers is drawn, and so are equal scores of what stands behind it."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """A system with compiled kernels, which are compiled or loaded before a clock starts."""

    def kernels(self, documents: int) -> tuple[str, ...]:
        """The kinds of kernels, of `weir.systems.warm.GROUPS`, that it uses on a collection of so many documents."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """What says how well given documents answer given queries."""

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """A score for each row of the candidates: float64 aligned with candidates.doc, numbers of the corpus."""
        ...

    def costs(self) -> Costs:
        """What it costs so far, as a Searcher's."""
        ...


@runtime_checkable
class IndexFree(Protocol):
    """A retriever that can score given documents without an index of the others."""

    def scorer(self, corpus: Corpus) -> Scorer | None:
        """What scores documents of a corpus; None where these settings need an index."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """A configuration that re-orders what another system finds; a frozen dataclass that prints as its name."""

    @property
    def depth(self) -> int | None:
        """How many of the first documents of each ranking are scored anew; None for DEPTH, and for all candidates."""
        ...

    def describe(self) -> dict[str, object]:
        """Everything that decides its scores, as a Retriever describes itself."""
        ...

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """What scores documents of a corpus; indexes of systems that it scores by come from the context's shelf."""
        ...


def check_depth(name: str, depth: object) -> None:
    """Raise BadValue for a depth that is neither None nor a whole number from 1 to MAX_DEPTH."""
    if depth is not None and (type(depth) is not int or not 1 <= depth <= MAX_DEPTH):
        raise BadValue(f"{name}: depth is {depth!r}; expected a whole number from 1 to {MAX_DEPTH:,}")


def described_depth(depth: int | None) -> dict[str, object]:
    """The entries of a re-ranker's description: of candidates, DEPTH by name is another depth than none."""
    entries: dict[str, object] = {"depth": DEPTH if depth is None else depth}
    return entries | ({"named": True} if depth == DEPTH else {})


def folder_of(context: Context) -> Path:
    """The folder in which an index is opened; raises StoreError where the context names none."""
    if context.folder is None:
        raise StoreError("an index is opened in a folder; the context names none")
    return context.folder


# A name that no list has may be a fusion method of another distribution, which the module of any fusion registers.
SYSTEMS: Registry[Callable[..., Retriever]] = Registry("system", system_names, lambda: system_names.rrf)
RERANKERS: Registry[Callable[..., Reranker]] = Registry("reranker", reranker_names)


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
