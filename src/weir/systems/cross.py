"""Re-ranking by a cross-encoder, which reads a query and a document together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weir.core.corpus import Corpus
from weir.encode.cross import CrossEncoder
from weir.errors import BadValue
from weir.settings import settings
from weir.systems.kept import VIEW, PairScorer
from weir.systems.pipeline import check_depth
from weir.systems.system import RERANKERS, Progress, called

__all__ = ["Cross", "cross"]

DEPTH = 100


@dataclass(frozen=True)
class Cross:
    """A cross-encoder that scores the first `depth` documents of each ranking; see `cross`."""

    encoder: CrossEncoder
    depth: int = DEPTH

    def __post_init__(self) -> None:
        check_depth("cross", self.depth)

    def __str__(self) -> str:
        first, given = self.encoder.arguments
        return called("cross", first, ({} if self.depth == DEPTH else {"depth": self.depth}) | given)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number; fetches the checkpoint where it is not here."""
        own: dict[str, object] = {"reranker": str(self), "depth": self.depth, "document": VIEW}
        return own | self.encoder.describe(settings().device)

    def ready(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> PairScorer:
        """The model, loaded; scores are kept in Weir's home."""
        device = settings().device
        return PairScorer(str(self), self.encoder.load(device), self.encoder.describe(device), corpus)


@RERANKERS.register("cross")
def cross(
    model: str = "minilm-cross",
    depth: int = DEPTH,
    max_length: int | None = None,
    dtype: str = "fp32",
    engine: str = "auto",
    batch_tokens: int = 0,
) -> Cross:
    """Order the first documents by a cross-encoder, which reads query and document together.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; depth: how many documents;
    max_length: tokens of a pair at most, of which the longer text loses first; dtype: fp32, bf16, fp16 or int8;
    engine: packed, transformers or auto; batch_tokens: 0 takes what suits the device. A score is the model's own
    number before any activation, and is kept: no pair is scored twice. Source: Nogueira and Cho 2019. Raises BadValue
    for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"cross: model is {model!r}; expected a hub name or a folder")
    return Cross(CrossEncoder(model, max_length, dtype, engine, batch_tokens), depth)
