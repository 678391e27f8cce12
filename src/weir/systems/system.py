"""What a retrieval system is, and how its name is read.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back and compares, and so does
`bm25 >> score(rm3, depth=50)`. Names are read as syntax trees, never evaluated.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, UnknownName
from weir.registry import Registry, printed

__all__ = [
    "RERANKERS",
    "SYSTEMS",
    "Outside",
    "Progress",
    "Reranker",
    "Retriever",
    "Scorer",
    "Searcher",
    "called",
    "fresh",
    "parse_system",
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
        """Everything that can move a number, for the manifest."""
        ...

    def index(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> Searcher:
        """Index a corpus, in memory or into the folder `at`, which appears when it is complete."""
        ...

    def open(self, at: Path, corpus: Corpus) -> Searcher:
        """Open an index made before from the same corpus; raises StoreError where it is damaged."""
        ...


@dataclass(frozen=True)
class Outside:
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

    def __add__(self, other: Outside) -> Outside:
        return Outside(
            self.bytes + other.bytes,
            self.reused + other.reused,
            self.queries or other.queries,
            self.asked + other.asked,
            self.computed + other.computed,
        )

    @staticmethod
    def of(*parts: object) -> Outside:
        """What some searchers keep outside, together."""
        found = [part.outside() for part in parts if hasattr(part, "outside")]
        return sum(found, Outside())


def watched(part: T, progress: Progress) -> T:
    """A searcher or scorer that tells how far a long search is, where it has a method `watched`; else the same."""
    how: Callable[[Progress], T] | None = getattr(part, "watched", None)
    return part if how is None else how(progress)


def fresh(part: T) -> T:
    """A searcher or scorer that computes anew what it keeps, where it has a method `fresh`; else the same.

    For taking times: nothing it does is kept. What is paid for, as an API's answers, is not asked for again.
    """
    how: Callable[[], T] | None = getattr(part, "fresh", None)
    return part if how is None else how()


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
        """Everything that can move a number, for the manifest."""
        ...

    def ready(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> Scorer:
        """What scores documents of a corpus; what it needs on disk lies in the folder `at`, opened or made."""
        ...


# Where each is registered, so that reading a name imports no more than it names; fusion methods are systems too.
_SYSTEMS = {
    "bm25": "bm25",
    "chunked": "chunked",
    "colbert": "late",
    "deepct": "deepct",
    "dense": "dense",
    "doc2query": "doc2query",
    "rm3": "rm3",
    "sparta": "sparse",
    "splade": "sparse",
    "unicoil": "sparse",
}
_RERANKERS = {"cross": "cross", "monot5": "cross", "score": "rescore"}


def _homes(names: dict[str, str]) -> dict[str, str]:
    return {name: f"weir.systems.{module}" for name, module in names.items()}


SYSTEMS: Registry[Callable[..., Retriever]] = Registry("system", _homes(_SYSTEMS), ("weir.systems.fused",))
RERANKERS: Registry[Callable[..., Reranker]] = Registry("reranker", _homes(_RERANKERS))


def parse_system(text: str) -> Retriever:
    """The system that a text such as `bm25(k1=1.2, b=0.75)` or `bm25 >> score(rm3)` names.

    Raises UnknownName for a system or setting that does not exist, BadValue for a malformed text.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise _malformed(text) from None
    return _system(tree, text)


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


def _system(node: ast.expr, text: str) -> Retriever:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        from weir.systems.pipeline import Pipeline  # it is made of what this module defines

        return Pipeline(_system(node.left, text), _built(RERANKERS, node.right, text))
    return _built(SYSTEMS, node, text)


def _argument(node: ast.expr, text: str) -> object:
    """A literal, or a system inside a system."""
    if isinstance(node, (ast.Name, ast.Call, ast.BinOp)):
        return _system(node, text)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _malformed(text) from None


def _built(registry: Registry[Callable[..., T]], node: ast.expr, text: str) -> T:
    """What a name, or a name with settings, stands for in a registry."""
    call = ast.Call(node, [], []) if isinstance(node, ast.Name) else node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise _malformed(text)
    if any(k.arg is None for k in call.keywords):
        raise _malformed(text)
    positional = [_argument(a, text) for a in call.args]
    named = {str(k.arg): _argument(k.value, text) for k in call.keywords}
    name = call.func.id
    _refuse_misplaced(registry.kind, name)
    builder = registry.get(name)
    signature = inspect.signature(builder)
    for key in named:
        if key not in signature.parameters:
            raise UnknownName(f"setting of {name}", key, signature.parameters)
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise BadValue(f"{text}: {error}") from None
    return builder(*positional, **named)


def _refuse_misplaced(kind: str, name: str) -> None:
    """Raise BadValue for a re-ranker in the place of a system, and for a system in the place of a re-ranker."""
    if kind == SYSTEMS.kind and name not in SYSTEMS and name in RERANKERS:
        raise BadValue(f"{name} re-ranks what a system finds: write such as bm25 >> {name}(...)")
    if kind == RERANKERS.kind and name not in RERANKERS and name in SYSTEMS:
        raise BadValue(f"{name} is a system; to re-rank by its scores write >> score({name})")


def _malformed(text: str) -> BadValue:
    return BadValue(f"'{text}' is not a system; expected such as bm25 or bm25(k1=1.2, b=0.75)")
