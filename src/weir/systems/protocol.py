"""The protocols of systems and re-rankers, the context they run in, their costs, and the registries of their names.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back (expression.py) and compares, and so does
`bm25 >> score(rm3, depth=50)`. Objects that know nothing of this protocol are adapted to it by compose.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, StoreError
from weir.registry import Registry, check_whole, printed
from weir.systems import reranker_names, system_names

if TYPE_CHECKING:
    from weir.services.answers import ServiceUsage
    from weir.systems.remote.live_index import LiveIndex
    from weir.systems.vectors.ann import Loss


Progress: TypeAlias = Callable[[int, int], None]
"""Called with (how much is done, how much there is)."""

DEPTH = 100
"""Documents of a ranking that a re-ranker scores where no depth is named; it scores all candidates."""
MAX_DEPTH = 10_000_000
"""The largest depth."""


@dataclass(frozen=True)
class Context:
    """Where a system runs.

    folder: of the index, None for memory; progress: called as the work proceeds; shelf: where a system made of systems
    finds the indexes and rankings of its parts, None for folders within `folder`; reuse: whether stored results are
    read and new ones stored. False serves to measure times and changes no result; vectors: folders with what `Exported`
    and `Encoding` wrote of the same index elsewhere, in the order of its documents; beyond: how many of the documents
    asked for are only to show what follows.
    """

    folder: Path | None = None
    progress: Progress | None = None
    shelf: Shelf | None = None
    reuse: bool = True
    vectors: tuple[Path, ...] = ()
    beyond: int = 0

    def for_part(self, number: int, parts: int) -> Context:
        """The context of one of several parts that run one after the other: its share of the progress, no folder."""
        report = self.progress

        def share(done: int, total: int) -> None:
            if report is not None:
                report(number * total + done, parts * total)

        return replace(self, folder=None, progress=None if report is None else share, vectors=())


IN_MEMORY = Context()
"""Nothing on disk but caches, and no progress."""


@dataclass(frozen=True)
class Costs:
    """What a searcher or scorer costs beside its index and its time.

    external_bytes: of vectors and weights in stores outside the index, or on a server; reused_documents: documents
    whose vectors, questions or rows on a server existed before; cached_queries: whether vectors of queries are stored
    too; requested_pairs, computed_pairs: pairs to score, and those that were not in a store; candidates, unscored:
    documents that first stages gave to re-rankers, and those of them behind the depth; repeatable: whether a repeated
    search costs nothing but time, so that single queries may be timed; services: requests to services; measured:
    whether the time that it takes is that of searching, not of reading what was found elsewhere.
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
    measured: bool = True

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
            self.measured and other.measured,
        )

    @staticmethod
    def of(parts: Iterable[Searcher | Scorer]) -> Costs:
        """The sum of the costs of some searchers and scorers."""
        return sum((part.costs() for part in parts), Costs(repeatable=True))


def only_time(searcher: object) -> Costs:
    """The costs of a searcher that keeps nothing and may be asked again: time alone."""
    return Costs(repeatable=True)


@runtime_checkable
class Searcher(Protocol):
    """An index ready to answer: an immutable snapshot."""

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, fewer where fewer match."""
        ...

    def costs(self) -> Costs:
        """The costs so far; `Costs()` where it stores and counts nothing."""
        ...


@runtime_checkable
class NestedSearcher(Protocol):
    """A searcher that sees at no cost what follows its k results."""

    def nested(self, queries: Queries, k: int) -> bool:
        """Whether the k best are the first k of the k + 1 best, found with the same work."""
        ...


def always_nested(searcher: object, queries: Queries, k: int) -> bool:
    """True, of an exact search."""
    return True


@runtime_checkable
class Exported(Protocol):
    """A searcher whose index refers to vectors in a store of this machine: other machines need these, not the index."""

    def export(self, folder: Path) -> bool:
        """Write the vectors into a new folder, for `Context.vectors`; False where the index stands alone."""
        ...


ShareEncoder: TypeAlias = Callable[[Corpus, tuple[int, int], Path, Progress | None], None]
"""Encodes a share of a corpus, number i (from 0) of n, into a store in a folder; what is there is not encoded again."""


@runtime_checkable
class Encoding(Protocol):
    """A retriever whose documents several processes may encode, a share each, before one of them makes the index."""

    def encoding_blocks(self, documents: int) -> int:
        """In how many blocks so many documents are encoded; 1 where one process has to encode them all."""
        ...

    def share_encoder(self) -> ShareEncoder:
        """What encodes shares, with its model loaded; the folders are for `Context.vectors`."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """A configuration that turns a corpus into a searcher; a frozen dataclass that prints as its name."""

    def describe(self) -> dict[str, object]:
        """Everything that decides its rankings, as JSON: the keys of its stages are made of it.

        It holds all settings, digests of files, versions of packages and numbers of algorithms, but no threads, paths
        or times. It is cheap: nothing is downloaded, loaded or measured. An entry "engine", at any depth, names what
        computes, None where that is not installed. Raises DownloadError where a checkpoint is not here.
        """
        ...

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Index a corpus, in memory or into the context's folder, which appears when it is complete."""
        ...

    def open(self, corpus: Corpus, context: Context) -> Searcher:
        """Open the index made of the same corpus in the context's folder; raises StoreError where it is damaged."""
        ...


class Shelf(Protocol):
    """The indexes and rankings of the parts of systems, each made once."""

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """The part's index of a corpus, opened where it is complete, else built."""
        ...

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """As `index`, for a part whose rankings are needed: stored rankings may be read instead of searched."""
        ...


@dataclass(frozen=True)
class Component:
    """A part of a system. takes: its rankings ("run") or its index; over: what it indexes, "" for the documents of the
    collection; depth: how many results of each ranking are taken, for k of these queries over this corpus."""

    system: Retriever
    takes: Literal["run", "index"]
    over: str = ""
    depth: Callable[[Queries, int, Corpus], int] = lambda queries, k, corpus: k


@runtime_checkable
class Composite(Protocol):
    """A system without an index of its own: its `index` asks the context's shelf for those of its components."""

    def components(self) -> tuple[Component, ...]:
        """Its parts; () for one that stores nothing on disk."""
        ...


@runtime_checkable
class Titled(Protocol):
    """A system that a file describes, which may hold a name for tables."""

    def title(self) -> tuple[str, str]:
        """(the file as the system's name has it, the name in the file, "" for none)."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A system that runs elsewhere: queries are sent to it for results alone, never to measure it."""

    @property
    def service(self) -> str:
        """Its name in a message."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A system whose index does not depend on all of its settings."""

    def indexed_as(self) -> Retriever:
        """The system whose description is the key of the index, the same for all that search this index."""
        ...


@runtime_checkable
class Fetched(Protocol):
    """A part that may need a download, such as a checkpoint, or libraries of an extra."""

    def fetch(self) -> None:
        """Download what is not here, so that `describe` needs no network; raises DownloadError."""
        ...


@runtime_checkable
class LiveIndexed(Protocol):
    """A system whose index stands on a server that says how it analyses texts and how it scores."""

    def live_index(self, corpus: Corpus) -> LiveIndex:
        """The index that answers for a corpus; raises BadValue where its server has no such words."""
        ...


@runtime_checkable
class Installed(Protocol):
    """A system that makes tables or indexes on a server, which stay there until they are removed."""

    def uninstall(self) -> list[str]:
        """Remove all that Weir made there, in any process; returns the names of what was removed."""
        ...


@runtime_checkable
class CollectionAware(Protocol):
    """A part that differs between collections, as an encoder with a prompt for each of them."""

    def adapted_to(self, collection: str, instruction: str) -> object:
        """The part as it runs on a collection. instruction: that of the collection, "" for none."""
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
        """The share of the exact k best that it does not return; raises BadValue where it searches exactly."""
        ...


@runtime_checkable
class CandidateSource(Protocol):
    """A system that returns candidates: a re-ranker behind it scores all of them unless its depth is named."""

    def pool_depth(self, k: int, documents: int) -> int | None:
        """How many results hold all candidates of a query, for k results of so many documents; None where its results
        are a ranking, of which the first suffice."""
        ...

    def is_drawn(self) -> bool:
        """Whether the order of its results is drawn by lot, and with it that of equal scores behind it."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """A system with compiled kernels, which are compiled or loaded before a clock starts."""

    def kernels(self, documents: int) -> tuple[str, ...]:
        """The kinds of kernels, of `weir.systems.warm.GROUPS`, that it uses on a collection of so many documents."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Scores of given documents for given queries."""

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """A score for each row of the candidates: float64 aligned with candidates.doc, numbers of the corpus."""
        ...

    def costs(self) -> Costs:
        """The costs so far, as a Searcher's."""
        ...


@runtime_checkable
class IndexFree(Protocol):
    """A retriever that can score given documents without an index of the others."""

    def scorer(self, corpus: Corpus) -> Scorer | None:
        """The scorer of documents of a corpus; None where these settings need an index."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """A configuration that re-orders the results of another system; a frozen dataclass that prints as its name."""

    @property
    def depth(self) -> int | None:
        """How many of the first documents of each ranking are scored; None for DEPTH, and for all candidates."""
        ...

    def describe(self) -> dict[str, object]:
        """Everything that decides its scores, as a Retriever describes itself."""
        ...

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """The scorer of documents of a corpus; the indexes that it needs come from the context's shelf."""
        ...


def check_depth(name: str, depth: object) -> None:
    """Raise BadValue for a depth that is neither None nor a whole number from 1 to MAX_DEPTH."""
    if depth is not None:
        check_whole(f"{name}: depth", depth, 1, MAX_DEPTH)


def check_k(k: int) -> None:
    """Raise BadValue for a number of results below 1."""
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")


def described_depth(depth: int | None) -> dict[str, object]:
    """The entries of a re-ranker's description. A named depth of DEPTH differs from none: with none, all candidates are
    scored."""
    entries: dict[str, object] = {"depth": DEPTH if depth is None else depth}
    return entries | ({"named": True} if depth == DEPTH else {})


def folder_of(context: Context) -> Path:
    """The folder of an index; raises StoreError where the context has none."""
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


@checked
def usage(name: str) -> str:
    """A system or re-ranker with all its settings at their defaults, as it may be written."""
    builder = RERANKERS.get(name) if name in RERANKERS else SYSTEMS.get(name)
    arguments = []
    for parameter in inspect.signature(builder).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={printed(parameter.default)}"
        several = f", {parameter.name}, ..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        arguments.append(f"{parameter.name}{default}{several}")
    return f"{name}({', '.join(arguments)})"
