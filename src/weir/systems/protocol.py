"""Protocols of systems and re-rankers, their context and costs, and registries of their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, NotIndexed, StoreError
from weir.registry import Registry, check_whole, printed
from weir.systems import reranker_names, system_names

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.services.answers import ServiceUsage
    from weir.systems.vectors.approximate import Loss


Progress: TypeAlias = Callable[[int, int], None]
"""Called with (amount done, total amount)."""

DEPTH = 100
"""Default number of documents of each ranking that a re-ranker scores; listed candidates are all scored."""
MAX_DEPTH = 10_000_000


@dataclass(frozen=True)
class Context:
    """Where a system keeps its index, how it reports progress, and whether it reuses stored results."""

    folder: Path | None = None
    """Folder of the index; None for memory."""
    progress: Progress | None = None
    shelf: Shelf | None = None
    """Provides the indexes and rankings of a composite system's parts; None makes folders within `folder`."""
    reuse: bool = True
    """Read and write stored results; False, for measuring times, does not change results."""
    vectors: tuple[Path, ...] = ()
    """Folders of vectors of the same index, in document order, that `Exported` or `Encoding` wrote
    elsewhere."""
    beyond: int = 0
    """Number of the k results that only show whether more follow."""

    def for_part(self, number: int, parts: int) -> Context:
        """Return the context for part `number` (from 0) of `parts`, without folder and vectors, its progress
        scaled to the whole."""
        report = self.progress

        def share(done: int, total: int) -> None:
            if report is not None:
                report(number * total + done, parts * total)

        return replace(self, folder=None, progress=None if report is None else share, vectors=())


IN_MEMORY = Context()
"""Context without folder and progress; only caches touch the disk."""


@dataclass(frozen=True)
class Costs:
    """Costs of a searcher or scorer, besides index size and time."""

    external_bytes: int = 0
    """Bytes of vectors and weights outside the index: in stores or on a server."""
    reused_documents: int = 0
    """Documents whose vectors, generated questions or server rows existed already."""
    cached_queries: bool = False
    """True if vectors of queries are stored."""
    requested_pairs: int = 0
    """Pairs to score."""
    computed_pairs: int = 0
    """Requested pairs that were not in a store."""
    candidates: int = 0
    """Documents that first stages gave to re-rankers."""
    unscored: int = 0
    """Candidates beyond the re-ranking depth."""
    repeatable: bool = False
    """True if a repeated search costs only time and gives the same results."""
    services: tuple[ServiceUsage, ...] = ()
    measured: bool = True
    """True if the time is spent searching, not reading results made elsewhere."""
    asked_again: bool = False
    """True if single queries of a searcher that is not repeatable may still be sent once more to be timed, at
    an unknown cost."""

    def __add__(self, other: Costs) -> Costs:
        repeatable = self.repeatable and other.repeatable
        return Costs(
            self.external_bytes + other.external_bytes,
            self.reused_documents + other.reused_documents,
            self.cached_queries or other.cached_queries,
            self.requested_pairs + other.requested_pairs,
            self.computed_pairs + other.computed_pairs,
            self.candidates + other.candidates,
            self.unscored + other.unscored,
            repeatable,
            self.services + other.services,
            self.measured and other.measured,
            not repeatable and self.timeable and other.timeable,
        )

    @property
    def timeable(self) -> bool:
        """True if single queries may be searched once more to be timed."""
        return self.measured and (self.repeatable or self.asked_again)

    @staticmethod
    def of(parts: Iterable[Searcher | Scorer]) -> Costs:
        """Return the summed costs of searchers and scorers."""
        return sum((part.costs() for part in parts), Costs(repeatable=True))


def only_time(searcher: object) -> Costs:
    """Return the Costs of a searcher that stores nothing and may be repeated; used as `costs`."""
    return Costs(repeatable=True)


T = TypeVar("T")
ANSWERS = 1000
"""Default number of results of a query."""


@runtime_checkable
class Searcher(Protocol):
    """An immutable index of a corpus; of Weir's own, `search` applies the queries' candidates, exclusions and
    filters; for any other, `restricted_search` applies them."""

    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the k best documents of each query, or fewer, in the order of `queries`; raises BadValue for
        k below 1."""

    def costs(self) -> Costs:
        """Return the costs so far."""


@runtime_checkable
class _HoldsCorpus(Protocol):
    corpus: Corpus


def index_repr(searcher: object) -> str:
    """Return a line such as `<BM25Searcher bm25: 80 documents>`, used as `__repr__`."""
    name = getattr(searcher, "system", getattr(searcher, "name", ""))
    holds = searcher
    while not isinstance(holds, _HoldsCorpus):
        parts = (getattr(holds, name, None) for name in ("first", "inner", "index"))
        holds = next(part for part in parts if part is not None)
    return f"<{type(searcher).__name__}{f' {name}' if name else ''}: {len(holds.corpus):,} documents>"


@runtime_checkable
class NestedSearcher(Protocol):
    """A searcher that may know that a deeper search keeps its first results."""

    def nested(self, queries: Queries, k: int) -> bool:
        """Return True if the k + 1 best results begin with the k best, at no further cost; False if unknown."""


def always_nested(searcher: object, queries: Queries, k: int) -> bool:
    """Return True: an exact search's k + 1 best results begin with its k best."""
    return True


@runtime_checkable
class Exported(Protocol):
    """A searcher that can copy its stored vectors for another machine."""

    def export(self, folder: Path) -> bool:
        """Write the index's vectors to a folder, for `Context.vectors` on another machine; return False if it
        has none."""


ShareEncoder: TypeAlias = Callable[[Corpus, tuple[int, int], Path, Progress | None], None]
"""Takes (corpus, (i, n), folder, progress); encodes share i, from 0, of n of the corpus into a store in the
folder, except texts that are stored already."""


@runtime_checkable
class Encoding(Protocol):
    """A retriever whose documents several processes can encode before one indexes them."""

    def encoding_blocks(self, documents: int) -> int:
        """Return the number of blocks in which `documents` documents are encoded; a single block cannot be
        shared."""

    def share_encoder(self) -> ShareEncoder:
        """Load the model, and return a function that encodes a share of a corpus into a store."""


@runtime_checkable
class Retriever(Protocol):
    """A retrieval system: a frozen dataclass, named by `str()`."""

    def describe(self) -> dict[str, object]:
        """Return everything that decides the rankings, as JSON: the key of stored results.

        Includes settings, hashes of files and versions, but no threads, paths or times. An "engine" that is
        not installed is None. Downloads nothing; raises DownloadError without a checkpoint.
        """

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Index a corpus in memory, or atomically into the context's folder, and return its searcher."""

    def open(self, corpus: Corpus, context: Context) -> Searcher:
        """Return the searcher of the index in the context's folder; raises StoreError if missing or damaged."""


class Shelf(Protocol):
    """A cache of the indexes and rankings of a composite system's parts."""

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Return the part's searcher, from its stored index or a new one."""

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Return a searcher of the part that may read stored rankings."""


@dataclass(frozen=True)
class Component:
    """A part of a composite system, and whether its rankings or its index are used."""

    system: Retriever
    takes: Literal["run", "index"]
    """Whether the outer system uses the part's rankings ("run") or its index."""
    over: str = ""
    """Name of the texts that its index is of; "" for the documents of the collection."""
    depth: Callable[[Queries, int, Corpus], int] = lambda queries, k, corpus: k
    """Returns the depth of the part's rankings needed for k results."""


@runtime_checkable
class Composite(Protocol):
    """A system made of others, whose indexes come from the context's shelf."""

    def components(self) -> tuple[Component, ...]:
        """Return the parts that need an index; () for none."""


def no_parts(system: object) -> tuple[Component, ...]:
    """Return (); used as `components` of a system without parts."""
    return ()


@runtime_checkable
class Titled(Protocol):
    """A system read from a settings file that may give a title for tables."""

    def title(self) -> tuple[str, str]:
        """Return (settings file as in the system's name, title or "")."""


@runtime_checkable
class Remote(Protocol):
    """A system on a server, which it names; its search times are not measured."""

    @property
    def service(self) -> str:
        """Name of the server or program in messages."""


@runtime_checkable
class DocumentKeeper(Protocol):
    """A system that may need no documents of the collection (NO_DOCUMENTS)."""

    def keeps_documents(self) -> bool:
        """Return True if the system reads no documents of the collection, and may return any identifier."""


@runtime_checkable
class Indexed(Protocol):
    """A system whose index is shared by systems that differ in search settings."""

    def indexed_as(self) -> Retriever:
        """Return the system with only the settings that decide its index."""


@runtime_checkable
class Fetched(Protocol):
    """A system or re-ranker that may need a download or optional package."""

    def fetch(self) -> None:
        """Download the files that `describe` needs; raises DownloadError if that fails."""


@runtime_checkable
class Installed(Protocol):
    """A system that creates tables or indexes on a server."""

    def uninstall(self) -> list[str]:
        """Remove all tables or indexes that Weir created on the server; return their names."""


@runtime_checkable
class CollectionAware(Protocol):
    """A system or re-ranker that depends on the collection, for example by prompts."""

    def adapted_to(self, collection: str, instruction: str) -> object:
        """Return the system or re-ranker adapted to a collection and its instruction ("" for none)."""


@runtime_checkable
class FieldReader(Protocol):
    """A system or re-ranker that reads certain fields of documents."""

    def fields_read(self) -> tuple[str, ...]:
        """Return the fields, or joined views such as "title text", that are read; their content is part of
        stored results' keys."""


@runtime_checkable
class ApproximateSearcher(Protocol):
    """A searcher that may miss documents that an exact search finds."""

    def loss(self, queries: Queries, k: int) -> Loss:
        """Return the mean shares of the exact k best documents missed, by cause; raises BadValue for an exact
        search."""


@runtime_checkable
class CandidateSource(Protocol):
    """A system that may return candidates without order. Re-rankers read all of them by default."""

    def pool_depth(self, k: int, documents: int) -> int | None:
        """Return the depth that reads all candidates; None if the system ranks, and only its first documents
        are re-ranked.

        k: results asked for.
        documents: size of the collection.
        """

    def is_drawn(self) -> bool:
        """Return True if the order of the candidates is random."""


@runtime_checkable
class Compiled(Protocol):
    """A system with compiled kernels, loaded before times are measured."""

    def kernels(self, documents: int) -> tuple[str, ...]:
        """Return the groups of compiled kernels that a search of `documents` documents calls."""


@runtime_checkable
class Scorer(Protocol):
    """Scores candidate documents of queries."""

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return each candidate's score, float64[candidates], in the order of candidates.doc, numbers in the
        corpus."""

    def costs(self) -> Costs:
        """Return the costs so far."""


@dataclass(frozen=True, eq=False)
class TermScores:
    """The score that one query term adds to each candidate."""

    term: str
    field: str
    """Field in which the term was found; "" if the index does not tell fields apart."""
    scores: Float64
    """float64[candidates]."""


@runtime_checkable
class TermScored(Protocol):
    """A searcher whose scores are sums over query terms."""

    def term_scores(self, queries: Queries, candidates: Run) -> list[TermScores]:
        """Return the score that each term of the one query adds to each candidate."""


@runtime_checkable
class IndexFree(Protocol):
    """A retriever that may score documents without an index."""

    def scorer(self, corpus: Corpus) -> Scorer | None:
        """Return a scorer of the corpus's documents; None if these settings need an index."""


@runtime_checkable
class Reranker(Protocol):
    """A re-ranker of results: a frozen dataclass, named by `str()`."""

    @property
    def depth(self) -> int | None:
        """Documents scored of each ranking; None for the first 100 of a search, or all listed candidates."""

    def describe(self) -> dict[str, object]:
        """Return everything that decides the scores, as JSON: the key of stored results. Downloads nothing."""

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """Return a scorer of a corpus's documents; needed indexes come from the context's shelf."""


@dataclass(frozen=True)
class PromptPlan:
    """Upper bounds of a language model's prompts and tokens for a re-ranking."""

    prompts: int
    """Prompts for all queries."""
    tokens: int
    """Tokens with documents of mean length and the longest answers allowed."""
    answer_tokens: int
    """Tokens of answers, part of `tokens`."""
    longest: int | None
    """Tokens if every prompt had the longest documents; None if lengths are unknown."""


@runtime_checkable
class Prompting(Reranker, Protocol):
    """A re-ranker by a language model that can bound its requests in advance."""

    @property
    def service(self) -> str:
        """Name of the language model in messages."""

    @property
    def local(self) -> bool:
        """True if the model runs on this machine, at no price."""

    def for_collection(self, dataset: Dataset) -> Prompting:
        """Return the re-ranker for a collection, without an objective in its prompts if neither settings nor
        queries state one."""

    def asked(self) -> dict[str, object]:
        """Return everything that decides the prompts; equal values share stored answers."""

    def plan_prompts(self, dataset: Dataset, depths: Int64) -> PromptPlan:
        """Return upper bounds of the prompts and tokens to re-rank a collection.

        depths: int64[queries], documents to re-rank.
        """

    def plan_words(
        self, candidates: int, queries: int, document_bytes: float, query_bytes: float
    ) -> PromptPlan:
        """Return the bounds of `plan_prompts`, estimated from mean lengths in bytes.

        candidates: documents to re-rank per query.
        """


def check_depth(name: str, depth: object) -> None:
    """Raise BadValue, naming the system `name`, unless depth is None or a whole number from 1 to 10 million."""
    if depth is not None:
        check_whole(f"{name}: depth", depth, 1, MAX_DEPTH)


def check_k(k: int) -> None:
    """Raise BadValue for k below 1."""
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")


def described_depth(depth: int | None) -> dict[str, object]:
    """Return {"depth": depth} for a re-ranker's description, 100 for None; an explicit 100 adds {"named": True}."""
    # A named depth of DEPTH is another system than none: without a name all candidates are scored.
    entries: dict[str, object] = {"depth": DEPTH if depth is None else depth}
    return entries | ({"named": True} if depth == DEPTH else {})


def folder_of(context: Context) -> Path:
    """Return the context's folder; raises StoreError if it has none."""
    if context.folder is None:
        raise StoreError("an index is opened in a folder; the context names none")
    return context.folder


def searches_once_indexed(system: T) -> T:
    """Change a class so that `search` before `index` raises NotIndexed, and return it.

    A class with a `__getattr__`, and anything but a class, is returned unchanged.
    """
    if isinstance(system, type) and not any("__getattr__" in vars(kind) for kind in system.__mro__):
        setattr(system, "__getattr__", _missing)  # noqa: B010  a method would hide all attributes from type checkers
    return system


def _missing(system: object, name: str) -> NoReturn:
    kind = type(system).__name__
    if name == "search":
        raise NotIndexed(
            f"{kind} has no documents yet to search; write such as system.index(documents).search(queries, k=10)"
        )
    raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=system)


# A name that no list has may be a fusion method of another distribution, which the module of any fusion registers.
SYSTEMS: Registry[Callable[..., Retriever]] = Registry(
    "system", system_names, lambda: system_names.rrf, prepared=searches_once_indexed
)
RERANKERS: Registry[Callable[..., Reranker]] = Registry("reranker", reranker_names)


def called(name: str, positional: list[object], settings: dict[str, object]) -> str:
    """Return a call as text, such as name("first", key=value); without arguments the bare name."""
    inside = [printed(v) for v in positional] + [f"{k}={printed(v)}" for k, v in settings.items()]
    return f"{name}({', '.join(inside)})" if inside else name


@checked
def usage(name: str) -> str:
    """Return the call of a system or re-ranker with all settings and defaults; raises UnknownName for another
    name."""
    builder = SYSTEMS.get(name) if name in SYSTEMS else RERANKERS.get(name)
    arguments = []
    for parameter in inspect.signature(builder).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={printed(parameter.default)}"
        several = f", {parameter.name}, ..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        arguments.append(f"{parameter.name}{default}{several}")
    return f"{name}({', '.join(arguments)})"
