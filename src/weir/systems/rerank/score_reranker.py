"""Re-ranking by the scores of another system."""

from __future__ import annotations

from dataclasses import dataclass

from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.systems.compose import Pipeline, behind, shown
from weir.systems.composite import shelf_of
from weir.systems.fused import Fused
from weir.systems.protocol import (
    IN_MEMORY,
    RERANKERS,
    Component,
    Context,
    IndexFree,
    Retriever,
    Scorer,
    called,
    check_depth,
    described_depth,
)

__all__ = ["Score"]


@RERANKERS.register("score")
@dataclass(frozen=True)
class Score:
    """Order the first documents by the scores that another system gives them.

    system: any whose index can score given documents: bm25, rm3, an encoder; depth: how many documents, None
    for 100, and for all candidates. Raises BadValue for a system that scores only what it finds, as fusions do.
    """

    system: Retriever
    depth: int | None = None

    __repr__ = shown
    __rrshift__ = behind

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"score takes a system, such as score(rm3); {self.system!r} is none")
        if isinstance(self.system, (Fused, Pipeline)):
            raise BadValue(f"score: {self.system} scores only what it finds; give a single system")
        check_depth("score", self.depth)

    def __str__(self) -> str:
        return called("score", [self.system], {} if self.depth is None else {"depth": self.depth})

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        return {"reranker": str(self), **described_depth(self.depth), "system": self.system.describe()}

    def components(self) -> tuple[Component, ...]:
        """The index that scores."""
        return (Component(self.system, "index"),)

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        """The system's index, or what scores without one."""
        alone = self.system.scorer(corpus) if isinstance(self.system, IndexFree) else None
        if alone is not None:
            return alone
        searcher = shelf_of(context).index(self.system, corpus, context)
        if not isinstance(searcher, Scorer):
            raise BadValue(f"score: {self.system} scores only what it finds; give another system")
        return searcher
