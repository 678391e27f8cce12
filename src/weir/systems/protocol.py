"""Protocols of systems and re-rankers, their context and costs, and the registries of their names.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back (expression.py) and compares.
compose.py adapts objects without these protocols.
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
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, StoreError
from weir.registry import Registry, check_whole, printed
from weir.systems import reranker_names, system_names

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.services.answers import ServiceUsage
    from weir.systems.vectors.approximate import Loss


Progress: TypeAlias = Callable[[int, int], None]
"""Called with (amount done, total amount)."""

DEPTH = 100
"""Default number of documents of a ranking that a re-ranker scores; candidates are all scored."""
MAX_DEPTH = 10_000_000


@dataclass(frozen=True)
class Context:
    """Where a system finds its folder, parts and stored results, and where it reports progress."""

    folder: Path | None = None
    """Folder of the index; None for memory."""
    progress: Progress | None = None
    shelf: Shelf | None = None
    """Provides indexes and rankings of the parts of composite systems; None makes folders within `folder`."""
    reuse: bool = True
    """Read and write stored results; False, for measuring times, does not change results."""
    vectors: tuple[Path, ...] = ()
    """Folders in which `Exported` or `Encoding` wrote vectors of the same index elsewhere, in document order."""
    beyond: int = 0
    """Number of requested documents that only serve to see what follows the cut."""

    def for_part(self, number: int, parts: int) -> Context:
        """Return the context of one of several consecutive parts, with its share of progress and no folder."""
        report = self.progress

        def share(done: int, total: int) -> None:
            if report is not None:
                report(number * total + done, parts * total)

        return replace(self, folder=None, progress=None if report is None else share, vectors=())


IN_MEMORY = Context()
"""A context without folder and progress; only caches touch the disk."""


@dataclass(frozen=True)
class Costs:
    """Costs of a searcher or scorer in addition to index and time."""

    external_bytes: int = 0
    """Bytes of vectors and weights in stores outside the index, or on a server."""
    reused_documents: int = 0
    """Documents whose vectors, generated questions or server rows existed before."""
    cached_queries: bool = False
    """True if vectors of queries are stored too."""
    requested_pairs: int = 0
    """Pairs to score."""
    computed_pairs: int = 0
    """Requested pairs that were not in a store."""
    candidates: int = 0
    """Documents that first stages gave to re-rankers."""
    unscored: int = 0
    """Candidates beyond the re-ranking depth."""
    repeatable: bool = False
    """True if a repeated search costs only time, so that single queries may be timed."""
    services: tuple[ServiceUsage, ...] = ()
    """Requests to services."""
    measured: bool = True
    """True if the time is that of searching, not of reading results made elsewhere."""

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
        """Return the summed costs of searchers and scorers."""
        return sum((part.costs() for part in parts), Costs(repeatable=True))


def only_time(searcher: object) -> Costs:
    """Return costs with nothing but time: searches can be repeated and store nothing."""
    return Costs(repeatable=True)


ANSWERS = 1000
"""Default number of results of a query."""


@runtime_checkable
class Searcher(Protocol):
    """An immutable index that is ready to search."""

    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the k best documents of each query, fewer if fewer match; raises BadValue for k below 1."""
        ...

    def costs(self) -> Costs:
        """Return the time, bytes and requests that its searches have cost so far."""
        ...


@runtime_checkable
class _HoldsCorpus(Protocol):
    corpus: Corpus


def index_repr(searcher: object) -> str:
    """Return a line such as `<BM25Searcher bm25: 80 documents>`: the `__repr__` of an index, whose parts are arrays."""
    name = getattr(searcher, "system", getattr(searcher, "name", ""))
    holds = searcher
    while not isinstance(holds, _HoldsCorpus):
        parts = (getattr(holds, name, None) for name in ("first", "inner", "index"))
        holds = next(part for part in parts if part is not None)
    return f"<{type(searcher).__name__}{f' {name}' if name else ''}: {len(holds.corpus):,} documents>"


@runtime_checkable
class NestedSearcher(Protocol):
    """A searcher that may find result k + 1 at no extra cost."""

    def nested(self, queries: Queries, k: int) -> bool:
        """Return True if a search for k + 1 results has the same first k and costs nothing more."""
        ...


def always_nested(searcher: object, queries: Queries, k: int) -> bool:
    """Return True: the first k of k + 1 results of an exact search are its k results."""
    return True


@runtime_checkable
class Exported(Protocol):
    """A searcher whose index refers to vectors in a local store, which other machines lack."""

    def export(self, folder: Path) -> bool:
        """Write the vectors for `Context.vectors`; return False if none are needed."""
        ...


ShareEncoder: TypeAlias = Callable[[Corpus, tuple[int, int], Path, Progress | None], None]
"""Encodes share i (from 0) of n of a corpus into a store in a folder, except texts that are stored already."""


@runtime_checkable
class Encoding(Protocol):
    """A retriever whose documents several processes may encode before indexing."""

    def encoding_blocks(self, documents: int) -> int:
        """Return the number of encoding blocks, 1 for a single process."""
        ...

    def share_encoder(self) -> ShareEncoder:
        """Load the model and return a function that encodes one share of the documents into a folder."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """A frozen dataclass that indexes a corpus and prints as its name."""

    def describe(self) -> dict[str, object]:
        """Return everything that decides its rankings, as JSON, for stage keys.

        That is settings, digests of files, versions and numbers of algorithms, but no threads, paths or
        times. Nothing is downloaded, loaded or measured. An "engine" that is not installed is None. Raises
        DownloadError if a checkpoint is missing.
        """
        ...

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Index a corpus in memory or into the context's folder, which appears once complete."""
        ...

    def open(self, corpus: Corpus, context: Context) -> Searcher:
        """Return the searcher of the same corpus's index in the context's folder; raises StoreError if it is
        damaged.
        """
        ...


class Shelf(Protocol):
    """Where composite systems find the indexes and rankings of their parts, each made once."""

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Return the system's index: opened if complete, else built."""
        ...

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        """Return a searcher of the system, which may read stored rankings."""
        ...


@dataclass(frozen=True)
class Component:
    """A system within another one, and the use that the outer system makes of it."""

    system: Retriever
    takes: Literal["run", "index"]
    """The part's rankings ("run") or its index."""
    over: str = ""
    """Name of the indexed texts; "" for the documents of the collection."""
    depth: Callable[[Queries, int, Corpus], int] = lambda queries, k, corpus: k
    """Returns the depth of each ranking that is needed for k results."""


@runtime_checkable
class Composite(Protocol):
    """A system made of other systems; its `index` takes their indexes from the context's shelf."""

    def components(self) -> tuple[Component, ...]:
        """Return the systems that it contains; () if none needs an index."""
        ...


@runtime_checkable
class Titled(Protocol):
    """A system read from a file that may name it for tables."""

    def title(self) -> tuple[str, str]:
        """Return (file in the system's name, name in the file or "")."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A system on a server, whose search times are not measured."""

    @property
    def service(self) -> str:
        """Words that name its server or program in messages, such as "the file x.run"."""
        ...


@runtime_checkable
class DocumentKeeper(Protocol):
    """A system that may search its own documents, and so a collection without documents (NO_DOCUMENTS)."""

    def keeps_documents(self) -> bool:
        """Return True if it reads no document of the collection, so that any identifiers are valid."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A system whose index depends on only some of its settings, so that systems may share it."""

    def indexed_as(self) -> Retriever:
        """Return the system with only the settings that decide the index."""
        ...


@runtime_checkable
class Fetched(Protocol):
    """A part that may need a download or extra."""

    def fetch(self) -> None:
        """Download everything that `describe` needs; raises DownloadError."""
        ...


@runtime_checkable
class Installed(Protocol):
    """A system that leaves tables or indexes on a server."""

    def uninstall(self) -> list[str]:
        """Remove everything that Weir created on the server; return its names."""
        ...


@runtime_checkable
class CollectionAware(Protocol):
    """A part that differs between collections, for example by prompts."""

    def adapted_to(self, collection: str, instruction: str) -> object:
        """Return the system or re-ranker set up for a collection with this instruction, "" for none."""
        ...


@runtime_checkable
class FieldReader(Protocol):
    """A system or re-ranker that reads fields of documents besides title and text."""

    def fields_read(self) -> tuple[str, ...]:
        """Return the views or fields read, whose contents are part of stage keys."""
        ...


@runtime_checkable
class ApproximateSearcher(Protocol):
    """A searcher that may miss documents of an exact search."""

    def loss(self, queries: Queries, k: int) -> Loss:
        """Return the share of the exact k best that is missed; raises BadValue for an exact search."""
        ...


@runtime_checkable
class CandidateSource(Protocol):
    """A system of candidates, which are all re-ranked unless a depth is named."""

    def pool_depth(self, k: int, documents: int) -> int | None:
        """Return the depth that includes all candidates, for k results; None for an ordinary ranking."""
        ...

    def is_drawn(self) -> bool:
        """Return True if the candidates are in random order, which is no ranking."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """A system with compiled kernels, which are loaded before times are measured."""

    def kernels(self, documents: int) -> tuple[str, ...]:
        """Return names of the groups of compiled kernels (`weir.systems.warm.kernel_kinds`) for that many documents."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Scores of given documents for given queries."""

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return each candidate's score, float64 aligned with candidates.doc, in corpus numbers."""
        ...

    def costs(self) -> Costs:
        """Return the time, bytes and requests that its scoring has cost so far."""
        ...


@dataclass(frozen=True, eq=False)
class TermScores:
    """The part of documents' scores that a term of the query adds."""

    term: str
    field: str
    """Field in which the term was found; "" for a field over all texts."""
    scores: Float64
    """float64[candidates]."""


@runtime_checkable
class TermScored(Protocol):
    """A searcher whose scores are sums over the terms of the query."""

    def term_scores(self, queries: Queries, candidates: Run) -> list[TermScores]:
        """Return the score that each term of a query adds to each of its candidates."""
        ...


@runtime_checkable
class IndexFree(Protocol):
    """A retriever that may score documents without an index."""

    def scorer(self, corpus: Corpus) -> Scorer | None:
        """Return a scorer, None if these settings need an index."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """A frozen dataclass that re-orders results and prints as its name."""

    @property
    def depth(self) -> int | None:
        """Number of documents scored; None for the first DEPTH of a search, or all given candidates."""
        ...

    def describe(self) -> dict[str, object]:
        """Return everything that decides its scores; see Retriever.describe."""
        ...

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """Return a scorer of a corpus's documents, with indexes from the context's shelf."""
        ...


@dataclass(frozen=True)
class PromptPlan:
    """Upper bounds on the prompts and tokens of a re-ranking by a language model."""

    prompts: int
    """For all queries."""
    most: int
    """Prompts for one query."""
    tokens: int
    """Tokens, with documents of mean length and the longest answers allowed."""
    answer_tokens: int
    """Tokens of answers among `tokens`."""
    longest: int | None
    """Tokens if every prompt had the longest documents; None if lengths are unknown."""


@runtime_checkable
class Prompting(Reranker, Protocol):
    """A re-ranker by a language model, with predictable requests."""

    @property
    def service(self) -> str:
        """Name of the language model in messages."""
        ...

    @property
    def local(self) -> bool:
        """True if the model runs on this machine, at no price."""
        ...

    def for_collection(self, dataset: Dataset) -> Prompting:
        """Return the re-ranker for a collection, without an objective if none is known."""
        ...

    def asked(self) -> dict[str, object]:
        """Return everything that decides its prompts; systems with equal values share stored answers."""
        ...

    def plan_prompts(self, dataset: Dataset, depths: Int64) -> PromptPlan:
        """Return upper bounds; `depths` are the candidates of each query, int64[queries]."""
        ...

    def plan_words(
        self, candidates: int, queries: int, document_bytes: float, query_bytes: float
    ) -> PromptPlan:
        """Return upper bounds from mean lengths; `candidates` is the number of each query's."""
        ...


def check_depth(name: str, depth: object) -> None:
    """Raise BadValue for a depth other than None or 1 to MAX_DEPTH."""
    if depth is not None:
        check_whole(f"{name}: depth", depth, 1, MAX_DEPTH)


def check_k(k: int) -> None:
    """Raise BadValue if a search is asked for fewer than one result."""
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")


def described_depth(depth: int | None) -> dict[str, object]:
    """Return the depth entries of a re-ranker's description."""
    # A named depth of DEPTH is another system than none: without a name all candidates are scored.
    entries: dict[str, object] = {"depth": DEPTH if depth is None else depth}
    return entries | ({"named": True} if depth == DEPTH else {})


def folder_of(context: Context) -> Path:
    """Return an index's folder; raises StoreError without one."""
    if context.folder is None:
        raise StoreError("an index is opened in a folder; the context names none")
    return context.folder


# A name that no list has may be a fusion method of another distribution, which the module of any fusion registers.
SYSTEMS: Registry[Callable[..., Retriever]] = Registry("system", system_names, lambda: system_names.rrf)
RERANKERS: Registry[Callable[..., Reranker]] = Registry("reranker", reranker_names)


def called(name: str, positional: list[object], settings: dict[str, object]) -> str:
    """Return a system as text: name("first", key=value), or the bare name."""
    inside = [printed(v) for v in positional] + [f"{k}={printed(v)}" for k, v in settings.items()]
    return f"{name}({', '.join(inside)})" if inside else name


@checked
def usage(name: str) -> str:
    """Return a system or re-ranker with all default settings, as text."""
    builder = SYSTEMS.get(name) if name in SYSTEMS else RERANKERS.get(name)
    arguments = []
    for parameter in inspect.signature(builder).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={printed(parameter.default)}"
        several = f", {parameter.name}, ..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        arguments.append(f"{parameter.name}{default}{several}")
    return f"{name}({', '.join(arguments)})"
