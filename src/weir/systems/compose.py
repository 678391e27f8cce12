"""Pipelines (first >> reranker), filtered systems, and functions and objects as systems."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir import datasets
from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments, shown_value, with_article
from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentMasks, parse_filter
from weir.core.query_metadata import QueryMetadata
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadRanking, BadValue
from weir.files.frames import frame_columns
from weir.models.protocols import BeirEncoder, QueryDocumentEncoder, TextsEncoder, missing_method
from weir.registry import Identity
from weir.systems.composite import PLAIN, asked_depth, open_anew, open_parts, run_of_answer, shelf_of
from weir.systems.own_copies import own_copy
from weir.systems.protocol import (
    ANSWERS,
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
    index_repr,
    no_parts,
    searches_once_indexed,
)
from weir.systems.restricted import asked_further, permitted_only, restricted_search

if TYPE_CHECKING:
    from weir.systems.dense_search import VectorEncoder
    from weir.systems.rerank.reranking import RerankingSearcher

# ----------
# Functions and objects as systems and re-rankers. They take and return dicts, lists and texts; composite.py checks what
# they return. One without a version makes nothing that another process reads.


VIEW = "title text"
SHOWN_CHARACTERS = 80

SearchFunction: TypeAlias = Callable[[dict[str, str], int], object]
"""Maps (queries {id: text}, k) to {query id: {document id: score}} or {query id: [document ids, best first]}."""
ScoreFunction: TypeAlias = Callable[[list[str], list[str]], object]
"""Maps (query texts, document texts), aligned, to a score for each pair."""

T = TypeVar("T")
EncoderLike: TypeAlias = QueryDocumentEncoder | BeirEncoder | TextsEncoder
BeirObject: TypeAlias = "BeirSearch | BeirRetrieval"
AnyEncoder: TypeAlias = "EncoderLike | VectorEncoder"
SystemLike: TypeAlias = (
    "str | Retriever | Callable[..., object] | SearchObject | IndexObject | BeirObject | AnyEncoder"
)
"""The arguments of `as_system` and `parse_system`."""


@runtime_checkable
class SearchObject(Protocol):
    """An object with a `search` method, used like a search function."""

    def search(self, queries: dict[str, str], k: int) -> object:
        """Return at most k results for each query of {id: text}: {query id: {document id: score}} or {query
        id: [document ids, best first]}."""


@runtime_checkable
class IndexObject(Protocol):
    """An object that must `index` documents before it can search."""

    def index(self, documents: dict[str, str]) -> object:
        """Index {document id: title and text}; return the object that searches, None for this one."""


@runtime_checkable
class BeirSearch(Protocol):
    """An object with BEIR's search(corpus, queries, top_k, ...), which gets all documents at each call."""

    def search(self, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401  BEIR's own differ in what follows
        """Return {query id: {document id: score}} of at most `top_k` documents each."""


@runtime_checkable
class BeirRetrieval(Protocol):
    """An object with retrieve(corpus, queries), like BEIR's EvaluateRetrieval, which decides the depth."""

    def retrieve(self, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401  as in BeirSearch
        """Return {query id: {document id: score}}."""


BEIR_SIMILARITY = "cos_sim"
"""Default similarity of BEIR's EvaluateRetrieval, passed to a search that requires a score_function."""


def _beir_search(given: object) -> Callable[..., object] | None:
    for method in (getattr(given, "search", None), getattr(given, "retrieve", None)):
        if not callable(method):
            continue
        try:
            parameters = inspect.signature(method).parameters
        except (TypeError, ValueError):  # of a method without a signature
            continue
        if [*parameters][:2] == ["corpus", "queries"]:
            similarity = parameters.get("score_function")
            needed = similarity is not None and similarity.default is similarity.empty
            further = {"score_function": BEIR_SIMILARITY} if needed else {}
            if "top_k" in parameters:
                return lambda corpus, queries, k: method(corpus, queries, top_k=k, **further)
            return lambda corpus, queries, k: method(corpus, queries, **further)
    return None


@runtime_checkable
class PairPredictor(Protocol):
    """A model that scores pairs of texts, such as CrossEncoder of sentence-transformers."""

    def predict(self, pairs: list[tuple[str, str]]) -> object:
        """Return a score for each (query text, document text)."""


@searches_once_indexed
@dataclass(frozen=True)
class FunctionSystem:
    """A function, or an object with `search`, as a system."""

    answer: SearchFunction | SearchObject | BeirObject
    identity: Identity
    adapter: ClassVar[str] = "weir.system"

    def __str__(self) -> str:
        return self.identity.name

    __repr__ = __str__

    def __rshift__(self, reranker: object) -> Pipeline:
        return then(self, reranker)

    def describe(self) -> dict[str, object]:
        return {"system": "object", **self.identity.describe()}

    def keeps_documents(self) -> bool:
        return not isinstance(self.answer, IndexObject)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionSearcher:
        """Return a searcher by a copy of the function or object, which first indexes the corpus if it has `index`.

        Raises BadRanking if `index` returns an object that cannot search.
        """
        searcher: object = own_copy(self.answer)
        if beir := _beir_search(searcher):
            return FunctionSearcher(str(self), corpus, partial(beir, dict(corpus.items())))
        if isinstance(searcher, IndexObject):
            index = searcher.index(dict(zip(corpus.ids, corpus.view(VIEW), strict=True)))
            searcher = searcher if index is None else index
        if isinstance(searcher, SearchObject):
            return FunctionSearcher(str(self), corpus, searcher.search)
        if not callable(searcher):
            raise BadRanking(f"index made a {type(searcher).__name__} without search(queries, k)")
        return FunctionSearcher(str(self), corpus, searcher)

    components = no_parts
    open = open_anew


@dataclass(frozen=True, eq=False)
class FunctionSearcher:
    """Searches by a user's function, called with ({query: text} of all queries, k); cuts results beyond k, raises
    BadRanking for unknown documents.
    """

    name: str
    corpus: Corpus
    function: SearchFunction

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        texts = dict(zip(queries.ids, queries.text, strict=True))
        answer = self.function(texts, k) if texts else {}
        return run_of_answer(answer, queries, self.corpus, self.name).top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        return asked_further(self, queries, k, context, (len(self.corpus), len(self.corpus)))

    def costs(self) -> Costs:
        return Costs()  # a function may be a service that is paid for each request, so it is asked once


@dataclass(frozen=True)
class FunctionReranker:
    """A re-ranker by a function of texts or an object's `predict`; raises BadValue for a depth below 1."""

    score: ScoreFunction | PairPredictor
    identity: Identity
    depth: int | None = None
    """Documents scored; None for 100, or for all candidates."""
    adapter: ClassVar[str] = "weir.reranker"

    def __post_init__(self) -> None:
        check_depth(self.identity.name, self.depth)

    def __str__(self) -> str:
        return called(self.identity.name, [], {} if self.depth is None else {"depth": self.depth})

    __repr__ = __str__

    def __rrshift__(self, first: object) -> Pipeline:
        return behind(self, first)

    def describe(self) -> dict[str, object]:
        own = {"reranker": "object", **described_depth(self.depth), "document": VIEW}
        return own | self.identity.describe()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionScorer:
        model = self.score
        if isinstance(model, PairPredictor):
            return FunctionScorer(lambda a, b: model.predict(list(zip(a, b, strict=True))), corpus)
        return FunctionScorer(model, corpus)


@dataclass(frozen=True, eq=False)
class FunctionScorer:
    """Scores by a function, called once per query with all its candidates; raises BadRanking for a wrong
    number of scores."""

    function: ScoreFunction
    corpus: Corpus

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
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
        return Costs(asked_again=True)


@searches_once_indexed
@dataclass(frozen=True)
class Pipeline:
    """A system whose results a re-ranker re-orders.

    The first `reranker.depth` documents of each ranking are scored: by default 100, or all if the first
    system returns candidates (pool, stored run, fusion) or the query lists some. The others follow in their
    old order, with lower scores. A document with the query's own identifier does not count towards the depth.
    Raises BadValue for a part of another type.
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
        from weir.systems.rerank.reranking import has_candidates

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
        return self.first.pool_depth(k, documents) if isinstance(self.first, CandidateSource) else None

    def is_drawn(self) -> bool:
        return isinstance(self.first, CandidateSource) and self.first.is_drawn()

    def components(self) -> tuple[Component, ...]:
        from weir.systems.rerank.reranking import rerank_room

        by = self.reranker.components() if isinstance(self.reranker, Composite) else ()
        return (Component(self.first, "run", depth=partial(rerank_room, self)), *by)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RerankingSearcher:
        from weir.systems.rerank.reranking import RerankingSearcher

        shelf = shelf_of(context)
        first = shelf.answers(self.first, corpus, context.for_part(0, 2))
        scorer: Scorer = self.reranker.ready(corpus, replace(context.for_part(1, 2), shelf=shelf))
        return RerankingSearcher(self, corpus, first, scorer)

    open = open_parts


def system_text(system: object) -> str:
    """Return str(system), which `parse_system` reads as an equal system; used as `__repr__`."""
    return str(system)


def then(first: Retriever, reranker: object) -> Pipeline:
    """Return the pipeline first >> reranker; a function or object becomes a re-ranker, anything else raises
    BadValue."""
    return Pipeline(first, as_reranker(reranker))


def behind(reranker: Reranker, first: object) -> Pipeline:
    """Return the pipeline first >> reranker; a function or object becomes a system, anything else raises
    BadValue."""
    return Pipeline(as_system(first), reranker)


@checked
def as_system(given: object, name: str | None = None, version: str | None = None) -> Retriever:
    """Return a function, object or encoder as a system; a system unchanged.

    name, version: see `system`.

    Raises BadValue for anything else, and for a system with a name or version.
    """
    if isinstance(given, type):
        raise BadValue(f"{given.__name__} is a class; give a value of it, such as {given.__name__}()")
    if isinstance(given, Retriever):
        return _unchanged(given, name, version)
    if isinstance(given, Reranker):
        raise BadValue(f"{given} re-ranks what a system finds; write such as weir.BM25() >> ...")
    if is_encoder(given):
        return _unchanged(SYSTEMS.get("dense")(given), name, version)
    if isinstance(given, EncoderLike) and not isinstance(
        given, (str, SearchObject)
    ):  # texts have an `encode` too
        from weir.models.encoder import as_encoder

        return SYSTEMS.get("dense")(as_encoder(given, name=name, version=version))
    if isinstance(given, (SearchObject, BeirRetrieval)) and _beir_search(given):
        return FunctionSystem(given, _identity(given, name, version, FunctionSystem.adapter))
    if isinstance(given, SearchObject) or callable(given):
        return FunctionSystem(given, _identity(given, name, version, FunctionSystem.adapter))
    if isinstance(given, (Mapping, Run)) or frame_columns(given) is not None:
        raise BadValue(
            f"found a value {shown_value(given)} as a system, which searches; rankings are scored by "
            "weir.evaluate(qrels, rankings), and compared by weir.compare(qrels, {name: rankings, ...})"
        )
    if half := missing_method(given):
        raise BadValue(f"{_in_message(given)} is not a system: {half}")
    raise BadValue(
        f"{_in_message(given)} is not a system; give one such as weir.BM25(), a function (queries, k) or an "
        "object with search(queries, k), BEIR's search(corpus, queries, top_k) or encode(texts); a name goes into "
        "weir.system(...), a function that encodes into weir.Dense(...)"
    )


def is_encoder(given: object) -> bool:
    """Return True for an encoder made by Weir, such as `weir.encoder(model)`."""
    if isinstance(given, PLAIN) or callable(given):
        return False
    from weir.models.encoder import Encoder, ObjectEncoder
    from weir.models.hosted import Hosted

    return isinstance(given, (Encoder, Hosted, ObjectEncoder))


@checked
def as_reranker(
    given: object, depth: int | None = None, name: str | None = None, version: str | None = None
) -> Reranker:
    """Return a function or object as a re-ranker; a re-ranker unchanged.

    given: a function (query texts, document texts) -> scores, called once for all candidates of a query, or
        an object with predict(pairs).
    depth: documents scored in each ranking, None for 100, or for all if the candidates are a given list. A
        re-ranker keeps its own.
    name: its printed name, by default that of the function, the model's checkpoint or the object's class. A
        lambda needs a name.
    version: identifies it for stored results. Without one, each process computes scores again.

    Raises BadValue for anything else, a depth below 1, a registered name, and a name or version beside a
    re-ranker.
    """
    if isinstance(given, type):
        raise BadValue(f"{given.__name__} is a class; give a value of it, such as {given.__name__}()")
    if isinstance(given, Reranker):
        return _unchanged(given, name, version)
    if isinstance(given, PairPredictor) or (callable(given) and not isinstance(given, Retriever)):
        identity = _identity(given, name, version, FunctionReranker.adapter)
        if not isinstance(given, PairPredictor) and not _takes_texts(given):
            raise BadValue(
                f"{_in_message(given)} does not take two arguments; a function that re-ranks takes (query texts, "
                f"document texts), an object with predict(pairs) takes pairs"
            )
        return FunctionReranker(given, identity, depth)
    if isinstance(given, Retriever) or is_encoder(given) or isinstance(given, EncoderLike):
        own = given if isinstance(given, Retriever) else as_system(given)
        raise BadValue(
            f"a re-ranker follows >>, and {own} is a system; to re-rank by its scores write >> "
            f"weir.systems.score(...), in a text >> score({own})"
        )
    raise BadValue(
        f"a re-ranker follows >>, such as weir.Cross(...) or a function of query texts and document texts; "
        f"{_in_message(given)} is not one"
    )


def _takes_texts(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind((), ())
    except TypeError:
        return False
    except ValueError:  # a builtin may not tell
        return True
    return True


def _unchanged(system: T, name: str | None, version: str | None) -> T:
    if name is not None or version is not None:
        raise BadValue(
            f"{system} has a name and describes itself; name and version are for functions and objects"
        )
    return system


def _identity(function: object, name: str | None, version: str | None, adapter: str) -> Identity:
    identity = Identity.of(function, name, version, adapter)
    if identity.name in {*SYSTEMS.names(), *RERANKERS.names()}:
        raise BadValue(
            f"'{identity.name}' is the name of a registered system; give the object another: "
            f"{adapter}(..., name='mine')"
        )
    return identity


def _in_message(value: object) -> str:
    if isinstance(value, (Retriever, Reranker, Sequence, int, float, type(None))):
        text = str(value) if isinstance(value, (Retriever, Reranker)) else repr(value)
        return text[:SHOWN_CHARACTERS]
    return with_article(type(value).__name__)


# ----------
# Systems restricted by a filter.


@SYSTEMS.register("filtered")
@named_arguments
@dataclass(frozen=True)
class Filtered:
    """Rank only documents that fit a filter, as if the others were removed before the cut at k.

    Document frequencies still count all documents; filters of queries apply too. Programs and servers are
    searched deeper, to 10,000 results, with a warning of queries left with fewer than k. Raises BadValue for
    an invalid filter; a search raises UnknownName for a field that no document has.
    """

    system: Retriever
    filter: str
    """A condition on fields, such as 'lang == "en" and year >= 2020'; see docs/collections.md."""

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(
                f"filtered takes a system, such as filtered(bm25, ...); {self.system!r} is not a system"
            )
        object.__setattr__(self, "filter", str(parse_filter(self.filter)))

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        return called("filtered", [self.system, self.filter], {})

    def describe(self) -> dict[str, object]:
        own = {"filter": self.filter, "algorithm": algorithm("restricted search")}
        return {"system": str(self), **own, **asked_depth(self.system), "of": self.system.describe()}

    def fields_read(self) -> tuple[str, ...]:
        return parse_filter(self.filter).fields

    def pool_depth(self, k: int, documents: int) -> int | None:
        return self.system.pool_depth(k, documents) if isinstance(self.system, CandidateSource) else None

    def is_drawn(self) -> bool:
        return isinstance(self.system, CandidateSource) and self.system.is_drawn()

    def components(self) -> tuple[Component, ...]:
        return (Component(self.system, "index"),)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FilteredSearcher:
        return FilteredSearcher(self, corpus, shelf_of(context).index(self.system, corpus, context))

    open = open_parts


def narrowed(queries: Queries, corpus: Corpus, fitting: NDArray[np.bool_]) -> Queries:
    """Return the queries restricted to documents for which `fitting`, bool[documents], is True, beside their
    own filters."""
    metadata = queries.metadata or QueryMetadata()
    if metadata.filter is not None and metadata.permitted is None:  # the queries' own filters come first
        metadata = datasets.load.filtered(queries, corpus).metadata or metadata
    permitted = metadata.permitted or DocumentMasks.every(corpus.ids, len(queries))
    return replace(queries, metadata=replace(metadata, permitted=permitted.restricted_to(fitting)))


@dataclass(frozen=True, eq=False)
class FilteredSearcher:
    """Searches an index of all documents for documents that fit a filter."""

    system: Filtered
    corpus: Corpus
    searcher: Searcher

    __repr__ = index_repr

    @cached_property
    def fitting(self) -> NDArray[np.bool_]:
        """bool[documents]: True if the document fits the filter."""
        return parse_filter(self.system.filter).mask(self.corpus)

    @checked
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        queries = narrowed(queries, self.corpus, self.fitting)
        run = restricted_search(self.searcher, queries, k, context)
        return replace(run, name=str(self.system))

    search_restricted = search

    def nested(self, queries: Queries, k: int) -> bool:
        return isinstance(self.searcher, NestedSearcher) and self.searcher.nested(queries, k)

    def costs(self) -> Costs:
        return self.searcher.costs()
