"""Composition: first >> reranker, filtered(...), plain Python functions and objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentMasks, parse_filter
from weir.core.query_metadata import QueryMetadata
from weir.core.run import Run
from weir.core.strings import Float64
from weir.datasets.load import filtered
from weir.errors import BadRanking, BadValue
from weir.models.encoder import BeirEncoder, QueryDocumentEncoder, as_encoder
from weir.registry import Identity
from weir.systems.composite import asked_depth, open_parts, run_of_answer, shelf_of
from weir.systems.protocol import (
    IN_MEMORY,
    RERANKERS,
    SYSTEMS,
    CandidateSource,
    Component,
    Composite,
    Context,
    Costs,
    NestedSearcher,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    called,
    check_depth,
    check_k,
    described_depth,
)
from weir.systems.rerank.reranking import RerankingSearcher, has_candidates, rerank_room
from weir.systems.restricted import asked_further, restricted_search

# ----------
# Functions and objects as systems and re-rankers. They take and return dicts, lists and texts; composite.py checks what
# they return. One without a version makes nothing that another process reads.


VIEW = "title text"
SHOWN_CHARACTERS = 80

SearchFunction: TypeAlias = Callable[[dict[str, str], int], object]
"""(queries {id: text}, k) -> {query id: {document id: score}} or {query id: [document ids, best first]}."""
ScoreFunction: TypeAlias = Callable[[list[str], list[str]], object]
"""(texts of queries, texts of documents, aligned) -> a score for each pair."""

T = TypeVar("T")
EncoderLike: TypeAlias = QueryDocumentEncoder | BeirEncoder
SystemLike: TypeAlias = "str | Retriever | Callable[..., object] | SearchObject | IndexObject | EncoderLike"
"""What `as_system` and `parse_system` take: a name, a system, a function, an object."""


@runtime_checkable
class SearchObject(Protocol):
    """An object that answers queries, as a SearchFunction does."""

    def search(self, queries: dict[str, str], k: int) -> object:
        """The answers: see SearchFunction."""
        ...


@runtime_checkable
class IndexObject(Protocol):
    """An object that is given the documents first."""

    def index(self, documents: dict[str, str]) -> object:
        """Index {document id: title and text}; answers with what searches them, None for itself."""
        ...


@runtime_checkable
class PairPredictor(Protocol):
    """A model of pairs, as sentence-transformers' CrossEncoder."""

    def predict(self, pairs: list[tuple[str, str]]) -> object:
        """A score for each (text of a query, text of a document)."""
        ...


@dataclass(frozen=True)
class FunctionSystem:
    """A function, or an object with `search`, as a system; see SearchFunction and IndexObject.

    It keeps no index on disk: an object's is made in memory each time.
    """

    answer: SearchFunction | SearchObject
    identity: Identity
    adapter: ClassVar[str] = "weir.system"

    def __str__(self) -> str:
        return self.identity.name

    __repr__ = __str__

    def __rshift__(self, reranker: object) -> Pipeline:
        return then(self, reranker)

    def describe(self) -> dict[str, object]:
        """Its name and version, or a session."""
        return {"system": "object", **self.identity.describe()}

    def components(self) -> tuple[Component, ...]:
        """None."""
        return ()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionSearcher:
        """Hand the documents to an object that wants them."""
        searcher: object = self.answer
        if isinstance(searcher, IndexObject):
            index = searcher.index(dict(zip(corpus.ids, corpus.view(VIEW), strict=True)))
            searcher = searcher if index is None else index
        if isinstance(searcher, SearchObject):
            return FunctionSearcher(str(self), corpus, searcher.search)
        if not callable(searcher):
            raise BadRanking(f"index made a {type(searcher).__name__} without search(queries, k)")
        return FunctionSearcher(str(self), corpus, searcher)

    def open(self, corpus: Corpus, context: Context) -> FunctionSearcher:
        """As `index`: nothing is kept."""
        return self.index(corpus, context)


@dataclass(frozen=True, eq=False)
class FunctionSearcher:
    """A function and the documents it may answer with."""

    name: str
    corpus: Corpus
    function: SearchFunction

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """What the function answers, as a run; raises BadRanking for what is no ranking of these documents."""
        check_k(k)
        texts = dict(zip(queries.ids, queries.text, strict=True))
        answer = self.function(texts, k) if texts else {}
        return run_of_answer(answer, queries, self.corpus.ids, self.name).top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """What may be ranked of the function's answer, which is asked once, for all documents."""
        return asked_further(self, queries, k, context, (len(self.corpus), len(self.corpus)))

    def costs(self) -> Costs:
        """Unknown: it is asked once."""
        return Costs()


@dataclass(frozen=True)
class FunctionReranker:
    """A function that scores pairs of texts, or a PairPredictor, as a re-ranker; see ScoreFunction."""

    score: ScoreFunction | PairPredictor
    identity: Identity
    depth: int | None = None
    adapter: ClassVar[str] = "weir.reranker"

    def __post_init__(self) -> None:
        check_depth(self.identity.name, self.depth)

    def __str__(self) -> str:
        return called(self.identity.name, [], {} if self.depth is None else {"depth": self.depth})

    __repr__ = __str__

    def __rrshift__(self, first: object) -> Pipeline:
        return behind(self, first)

    def describe(self) -> dict[str, object]:
        """Its name and version, or a session, its depth, and what of a document it reads."""
        own = {"reranker": "object", **described_depth(self.depth), "document": VIEW}
        return own | self.identity.describe()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionScorer:
        """The function and the documents it reads."""
        model = self.score
        if isinstance(model, PairPredictor):
            return FunctionScorer(lambda a, b: model.predict(list(zip(a, b, strict=True))), corpus)
        return FunctionScorer(model, corpus)


@dataclass(frozen=True, eq=False)
class FunctionScorer:
    """A function that is asked once for each query, about all its candidates."""

    function: ScoreFunction
    corpus: Corpus

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """What the function says of each candidate; raises BadRanking, naming the query, for more or fewer scores."""
        score = np.empty(len(candidates.doc))
        for q, text in enumerate(queries.text):
            rows = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
            doc = candidates.doc[rows]
            if len(doc) == 0:
                continue
            texts = self.corpus.view_of(VIEW, doc).tolist()
            answer = np.asarray(self.function([text] * len(doc), texts), np.float64)
            if answer.shape != (len(doc),):
                raise BadRanking(
                    f"query '{queries.ids[q]}': scores of shape {answer.shape} for {len(doc)} documents"
                )
            score[rows] = answer
        return score

    def costs(self) -> Costs:
        """Unknown: it is asked once."""
        return Costs()


@dataclass(frozen=True)
class Pipeline:
    """A system whose first documents a re-ranker puts in another order.

    first: the system that finds them; reranker: what scores the first `reranker.depth` of each ranking anew. Where no
    depth is named these are the first DEPTH, and all candidates: behind a CandidateSource (pool, a stored run, a
    fusion), and for a query for which the collection names candidates. Those behind the depth keep their order behind
    the others: the i-th of them stands i steps below the lowest new score, a step being 1, or 2**-20 of that score
    where this is more. A document whose identifier is the query's own does not count towards the depth, so that taking
    it out changes nothing else. Raises BadValue for parts that are none.
    """

    first: Retriever
    reranker: Reranker

    def __post_init__(self) -> None:
        if not isinstance(self.first, Retriever):
            raise BadValue(f"a pipeline begins with a system, such as bm25; {self.first!r} is not a system")
        if not isinstance(self.reranker, Reranker):
            raise BadValue(f"a re-ranker follows >>, such as score(rm3); {self.reranker!r} is not one")

    def __str__(self) -> str:
        return f"{self.first} >> {self.reranker}"

    __repr__ = __str__

    def __rshift__(self, reranker: object) -> Pipeline:
        return then(self, reranker)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        candidates = {"candidates": algorithm("candidates")} if has_candidates(self) else {}
        whole = bool(candidates) and self.reranker.depth is None
        return {
            "system": str(self),
            "first": self.first.describe(),
            "reranker": self.reranker.describe() | ({"depth": "all candidates"} if whole else {}),
            "algorithm": algorithm("pipeline"),
            **candidates,
            "behind the depth": "in the order of the first system, below the lowest new score",
        }

    def pool_depth(self, k: int, documents: int) -> int | None:
        """That of its first system: what it orders is not cut."""
        return self.first.pool_depth(k, documents) if isinstance(self.first, CandidateSource) else None

    def is_drawn(self) -> bool:
        """Whether its first system's order is, and so that of what the re-ranker cannot tell apart."""
        return isinstance(self.first, CandidateSource) and self.first.is_drawn()

    def components(self) -> tuple[Component, ...]:
        """The rankings of the first system, and what the re-ranker is made of."""
        by = self.reranker.components() if isinstance(self.reranker, Composite) else ()
        return (Component(self.first, "run", depth=partial(rerank_room, self)), *by)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RerankingSearcher:
        """The first system's answers, and what scores them anew, each from the context's shelf."""
        shelf = shelf_of(context)
        first = shelf.answers(self.first, corpus, context.for_part(0, 2))
        scorer: Scorer = self.reranker.ready(corpus, replace(context.for_part(1, 2), shelf=shelf))
        return RerankingSearcher(self, corpus, first, scorer)

    open = open_parts


def shown(system: object) -> str:
    """The repr of a system or re-ranker: how it prints, which parses back."""
    return str(system)


def then(first: Retriever, reranker: object) -> Pipeline:
    """first >> reranker, where the re-ranker may be a function or object; raises BadValue for what is none."""
    return Pipeline(first, as_reranker(reranker))


def behind(reranker: Reranker, first: object) -> Pipeline:
    """first >> reranker, where the first may be a function or object; raises BadValue for what is none."""
    return Pipeline(as_system(first), reranker)


@checked
def as_system(given: object, name: str | None = None, version: str | None = None) -> Retriever:
    """A function (queries, k) -> answers, or an object with search(queries, k), as a system; a system as it is.

    queries: {id: text}; answers: {query id: {document id: score}} or {query id: [document ids, best first]}; an object
    with index(documents) is given {id: title and text} first. An encoder with encode_query and encode_document, or
    BEIR's encode_queries and encode_corpus, is `dense` of it. name: how it prints, by default the function's own, or
    that of the object's class; version: what stands for it in keys; where it declares none, what it makes is made
    again in each process. Raises BadValue for what is no system, and for a name that is none or taken.
    """
    if isinstance(given, type):
        raise BadValue(f"{given.__name__} is a class; give a value of it, such as {given.__name__}()")
    if isinstance(given, Retriever):
        return _unchanged(given, name, version)
    if isinstance(given, Reranker):
        raise BadValue(f"{given} re-ranks what a system finds; write such as weir.BM25() >> ...")
    if isinstance(given, EncoderLike) and not isinstance(given, SearchObject):
        return SYSTEMS.get("dense")(as_encoder(given, name=name, version=version))
    if isinstance(given, SearchObject) or callable(given):
        return FunctionSystem(given, _identity(given, name, version, FunctionSystem.adapter))
    raise BadValue(
        f"{_in_message(given)} is not a system; give one such as weir.BM25(), a function (queries, k) or an "
        "object with search(queries, k); a name goes into weir.system(...), an encoder into weir.Dense(...)"
    )


@checked
def as_reranker(
    given: object, depth: int | None = None, name: str | None = None, version: str | None = None
) -> Reranker:
    """A function (texts of queries, texts of documents) -> scores, or an object with predict(pairs), as a re-ranker.

    Texts are aligned, one pair for each candidate of a query. depth: how many documents of each ranking are scored,
    None for 100, and for all candidates; name, version: see `as_system`; a re-ranker stays as it is. Raises BadValue
    for what is none.
    """
    if isinstance(given, type):
        raise BadValue(f"{given.__name__} is a class; give a value of it, such as {given.__name__}()")
    if isinstance(given, Reranker):
        return _unchanged(given, name, version)
    if isinstance(given, PairPredictor) or (callable(given) and not isinstance(given, Retriever)):
        return FunctionReranker(given, _identity(given, name, version, FunctionReranker.adapter), depth)
    raise BadValue(
        f"a re-ranker follows >>, such as weir.Cross(...) or a function of pairs; {_in_message(given)} is not one"
    )


def _unchanged(system: T, name: str | None, version: str | None) -> T:
    if name is not None or version is not None:
        raise BadValue(
            f"{system} has a name and describes itself; name and version are for functions and objects"
        )
    return system


def _identity(function: object, name: str | None, version: str | None, adapter: str) -> Identity:
    identity = Identity.of(function, name, version, adapter)
    if identity.name in {*SYSTEMS.names(), *RERANKERS.names()}:
        raise BadValue(f"'{identity.name}' is the name of a registered system; give another: name=...")
    return identity


def _in_message(value: object) -> str:
    """A value in a message: systems as they print, others by their type."""
    if isinstance(value, (Retriever, Reranker, Sequence, int, float, type(None))):
        text = str(value) if isinstance(value, (Retriever, Reranker)) else repr(value)
        return text[:SHOWN_CHARACTERS]
    return f"a {type(value).__name__}"


# ----------
# Systems restricted by a filter.


@SYSTEMS.register("filtered")
@dataclass(frozen=True)
class Filtered:
    """A system's ranking of the documents that fit a filter, as if the others had left it before the cut at k.

    system: any system; what it counts over all documents, such as how many hold a term, stays so. A program or server
    is asked ever deeper, down to 10,000 results; queries for which it gives fewer than k are counted. filter: what a
    document's fields have to be, such as 'lang == "en" and year >= 2020', see docs/collections.md. Queries may have
    filters of their own, which count as well. Raises BadValue for what is no system or no filter.
    """

    system: Retriever
    filter: str

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(
                f"filtered takes a system, such as filtered(bm25, ...); {self.system!r} is not a system"
            )
        object.__setattr__(self, "filter", str(parse_filter(self.filter)))

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return called("filtered", [self.system, self.filter], {})

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        own = {"filter": self.filter, "algorithm": algorithm("restricted search")}
        return {"system": str(self), **own, **asked_depth(self.system), "of": self.system.describe()}

    def fields_read(self) -> tuple[str, ...]:
        """The fields that the filter reads."""
        return parse_filter(self.filter).fields

    def pool_depth(self, k: int, documents: int) -> int | None:
        """That of its system."""
        return self.system.pool_depth(k, documents) if isinstance(self.system, CandidateSource) else None

    def is_drawn(self) -> bool:
        """Whether its system's order is."""
        return isinstance(self.system, CandidateSource) and self.system.is_drawn()

    def components(self) -> tuple[Component, ...]:
        """The system's index, which holds all documents."""
        return (Component(self.system, "index"),)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FilteredSearcher:
        """The system over all documents, from the context's shelf."""
        return FilteredSearcher(self, corpus, shelf_of(context).index(self.system, corpus, context))

    open = open_parts


@dataclass(frozen=True, eq=False)
class FilteredSearcher:
    """A searcher of all documents, and the filter."""

    system: Filtered
    corpus: Corpus
    searcher: Searcher

    @cached_property
    def fitting(self) -> NDArray[np.bool_]:
        """Which documents fit: bool[N]; raises as `DocumentFilter.mask`."""
        return parse_filter(self.system.filter).mask(self.corpus)

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best of the documents that fit; raises BadValue for k below 1."""
        check_k(k)
        metadata = queries.metadata or QueryMetadata()
        if metadata.filter is not None and metadata.permitted is None:  # the queries' own filters come first
            queries = filtered(queries, self.corpus)
            metadata = queries.metadata or metadata
        permitted = metadata.permitted or DocumentMasks.every(self.corpus.ids, len(queries))
        metadata = replace(metadata, permitted=permitted.within(self.fitting))
        run = restricted_search(self.searcher, replace(queries, metadata=metadata), k, context)
        return replace(run, name=str(self.system))

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`: what may be ranked for a query and fits."""
        return self.search(queries, k, context)

    def nested(self, queries: Queries, k: int) -> bool:
        """Whether its system's search is."""
        return isinstance(self.searcher, NestedSearcher) and self.searcher.nested(queries, k)

    def costs(self) -> Costs:
        """Those of its system."""
        return self.searcher.costs()
