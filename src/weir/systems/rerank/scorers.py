"""Re-rank by another system's scores and by cross-encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.models.cross_encoder import CrossEncoder
from weir.settings import settings
from weir.systems.compose import Pipeline, behind, system_text
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
from weir.systems.rerank.reranking import VIEW, PairModel, PairScorer

# ----------
# Re-ranking by the scores of another system.


@RERANKERS.register("score")
@named_arguments
@dataclass(frozen=True)
class Score:
    """Re-order the first documents of each ranking by another system's scores.

    Raises BadValue for a system that scores only documents it finds, such as a fusion.
    """

    system: Retriever
    """Has an index that scores given documents: bm25, rm3 or an encoder."""
    depth: int | None = None
    """Documents re-ranked in each ranking; None for 100, or for all candidates."""

    __repr__ = system_text
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
        return {"reranker": str(self), **described_depth(self.depth), "system": self.system.describe()}

    def components(self) -> tuple[Component, ...]:
        return (Component(self.system, "index"),)

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> Scorer:
        alone = self.system.scorer(corpus) if isinstance(self.system, IndexFree) else None
        if alone is not None:
            return alone
        searcher = shelf_of(context).index(self.system, corpus, context)
        if not isinstance(searcher, Scorer):
            raise BadValue(f"score: {self.system} scores only what it finds; give another system")
        return searcher


# ----------
# Re-ranking by models that read a query and a document together.


class PairCheckpoint(Protocol):
    """A checkpoint of a model that reads query and document together."""

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """([model], changed settings), as printed in the re-ranker's name."""

    def describe(self, device: str) -> dict[str, object]:
        """Return everything that decides the scores; raises DownloadError without the checkpoint."""

    def fetch(self) -> None:
        """Download the checkpoint unless it is on this machine."""

    def load(self, device: str) -> PairModel:
        """Return the model, loaded on a device; raises DownloadError, StoreError if damaged, BadValue if
        unsupported."""


@dataclass(frozen=True)
class PairReranker:
    """Re-ranks the first `depth` documents by a model of (query, document) pairs; raises BadValue for a depth
    below 1."""

    name: str
    """Registered name of the re-ranker."""
    encoder: PairCheckpoint
    depth: int | None = None
    """None for 100, or for all candidates."""

    def __post_init__(self) -> None:
        check_depth(self.name, self.depth)

    __repr__ = system_text
    __rrshift__ = behind

    def __str__(self) -> str:
        first, options = self.encoder.arguments
        return called(self.name, first, ({} if self.depth is None else {"depth": self.depth}) | options)

    def describe(self) -> dict[str, object]:
        own: dict[str, object] = {"reranker": self.name, **described_depth(self.depth), "document": VIEW}
        return own | self.encoder.describe(settings().device)

    def fetch(self) -> None:
        self.encoder.fetch()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> PairScorer:
        device = settings().device
        return PairScorer(str(self), self.encoder.load(device), self.encoder.describe(device), corpus)


@RERANKERS.register("cross")
@checked
def cross(
    model: str = "minilm-cross",
    depth: int | None = None,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> PairReranker:
    """Re-order the first documents by a cross-encoder, which reads query and document together.

    model: a name of `weir list models`, a hub name, or a folder.
    depth: documents re-ranked in each ranking, None for 100, or for all candidates.
    max_length: tokens of a pair at most, cut from the longer text first.
    dtype: lowest precision to compute in, fp32, bf16, fp16 or int8.
    engine: openvino, torch or transformers, or auto, which follows a fixed rule.
    batch_tokens: tokens of a batch, 0 to suit the device.

    The score is the output before any activation, and is stored. Source: Nogueira and Cho 2019. Raises
    BadValue for bad settings.
    """
    if not isinstance(model, str):
        raise BadValue(f"cross: model is {model!r}; expected a hub name or a folder")
    return PairReranker("cross", CrossEncoder(model, max_length, dtype, engine, batch_tokens), depth)
