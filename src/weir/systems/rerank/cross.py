"""Re-ranking by models that read a query and a document together: cross-encoders and T5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weir.core.corpus import Corpus
from weir.encode.pairs.cross_encoder import CrossEncoder
from weir.encode.pairs.t5_ranker import MAX_TOKENS, MonoT5
from weir.errors import BadValue
from weir.settings import settings
from weir.systems.compose import behind, shown
from weir.systems.protocol import IN_MEMORY, RERANKERS, Context, called, check_depth, described_depth
from weir.systems.rerank.score_cache import VIEW, PairModel, PairScorer

__all__ = ["PairEncoder", "PairReranker", "cross", "monot5"]


class PairEncoder(Protocol):
    """A configuration of a model of pairs."""

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How it prints: the model, and what is not by default."""
        ...

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides a score, and under "engine" what computes it."""
        ...

    def fetch(self) -> None:
        """Download what is not here."""
        ...

    def load(self, device: str = "auto") -> PairModel:
        """The model in memory."""
        ...


@dataclass(frozen=True)
class PairReranker:
    """A model of pairs that scores the first `depth` documents of each ranking; name: as it is registered."""

    name: str
    encoder: PairEncoder
    depth: int | None = None

    def __post_init__(self) -> None:
        check_depth(self.name, self.depth)

    __repr__ = shown
    __rrshift__ = behind

    def __str__(self) -> str:
        first, given = self.encoder.arguments
        return called(self.name, first, ({} if self.depth is None else {"depth": self.depth}) | given)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        own: dict[str, object] = {"reranker": self.name, **described_depth(self.depth), "document": VIEW}
        return own | self.encoder.describe(settings().device)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> PairScorer:
        """The model, loaded; scores are kept in Weir's home."""
        device = settings().device
        return PairScorer(str(self), self.encoder.load(device), self.encoder.describe(device), corpus)


@RERANKERS.register("cross")
def cross(
    model: str = "minilm-cross",
    depth: int | None = None,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> PairReranker:
    """Order the first documents by a cross-encoder, which reads query and document together.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; depth: how many documents, None for
    100, and for all candidates; max_length: tokens of a pair at most, of which the longer text loses first; dtype:
    fp32, bf16, fp16 or int8; engine: auto, torch, openvino or transformers, see weir.encode.models.engine;
    batch_tokens: 0 takes what suits the device.
    The score is the model's own number before any activation, and is kept. Source: Nogueira and Cho 2019. Raises
    BadValue for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"cross: model is {model!r}; expected a hub name or a folder")
    return PairReranker("cross", CrossEncoder(model, max_length, dtype, engine, batch_tokens), depth)


@RERANKERS.register("monot5")
def monot5(
    model: str = "monot5",
    depth: int | None = None,
    max_length: int = MAX_TOKENS,
    dtype: str = "fp32",
    token_false: str | None = None,
    token_true: str | None = None,
    batch_tokens: int = 0,
) -> PairReranker:
    """Order the first documents by a T5 that answers whether a document is relevant.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; depth: how many documents, None for
    100, and for all candidates; max_length: tokens of a pair at most, of which the document loses first; dtype: fp32 or
    bf16; token_false, token_true: the words the checkpoint was taught, None takes what its makers say; batch_tokens: 0
    takes what suits the device. A score is the logarithm of the share that "true" has of both words; it is kept: no
    pair is scored twice. Source: Nogueira et al. 2020; castorini/pygaggle. Raises BadValue for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"monot5: model is {model!r}; expected a hub name or a folder")
    return PairReranker(
        "monot5", MonoT5(model, max_length, dtype, token_false, token_true, batch_tokens), depth
    )
