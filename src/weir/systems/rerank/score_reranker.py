"""Re-ranking by the scores of another system."""

from __future__ import annotations

from dataclasses import dataclass

from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.systems.fused import Fused
from weir.systems.protocol import RERANKERS, Progress, Retriever, Scorer, Shelf, called
from weir.systems.rerank.pipeline import Pipeline, check_depth

__all__ = ["Score"]


@RERANKERS.register("score")
@dataclass(frozen=True)
class Score:
    """Order the first documents by the scores that another system gives them.

    system: any whose index can score given documents: bm25, rm3, an encoder; depth: how many documents. Raises
    BadValue for a system that scores only what it finds, as fusions do.
    """

    system: Retriever
    depth: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"score takes a system, such as score(rm3); {self.system!r} is none")
        if isinstance(self.system, (Fused, Pipeline)):
            raise BadValue(f"score: {self.system} scores only what it finds; give a single system")
        check_depth("score", self.depth)

    def __str__(self) -> str:
        return called("score", [self.system], {} if self.depth == 100 else {"depth": self.depth})

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        return {"reranker": str(self), "depth": self.depth, "system": self.system.describe()}

    def ready(self, corpus: Corpus, shelf: Shelf, progress: Progress | None = None) -> Scorer:
        """The system's index.

        A system may have a method scorer(corpus), what scores documents without an index, or None.
        """
        how = getattr(self.system, "scorer", None)
        alone = how(corpus) if how is not None else None
        if isinstance(alone, Scorer):
            return alone
        searcher = shelf.index(self.system, corpus, progress)
        if not isinstance(searcher, Scorer):
            raise BadValue(f"score: {self.system} scores only what it finds; give another system")
        return searcher
