"""Re-ranking by a T5 that says whether a document answers a query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weir.core.corpus import Corpus
from weir.encode.t5_rank import LIMIT, MonoT5
from weir.errors import BadValue
from weir.settings import settings
from weir.systems.kept import VIEW, PairScorer
from weir.systems.pipeline import check_depth
from weir.systems.system import RERANKERS, Progress, called

__all__ = ["RankedByT5", "monot5"]

DEPTH = 100


@dataclass(frozen=True)
class RankedByT5:
    """A monoT5 that scores the first `depth` documents of each ranking; see `monot5`."""

    encoder: MonoT5
    depth: int = DEPTH

    def __post_init__(self) -> None:
        check_depth("monot5", self.depth)

    def __str__(self) -> str:
        first, given = self.encoder.arguments
        return called("monot5", first, ({} if self.depth == DEPTH else {"depth": self.depth}) | given)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number; fetches the checkpoint where it is not here."""
        own: dict[str, object] = {"reranker": str(self), "depth": self.depth, "document": VIEW}
        return own | self.encoder.describe(settings().device)

    def ready(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> PairScorer:
        """The model, loaded; scores are kept in Weir's home."""
        device = settings().device
        return PairScorer(str(self), self.encoder.load(device), self.encoder.describe(device), corpus)


@RERANKERS.register("monot5")
def monot5(  # noqa: PLR0913, PLR0917 - the settings of a re-ranker, as they are written
    model: str = "monot5",
    depth: int = DEPTH,
    max_length: int = LIMIT,
    dtype: str = "fp32",
    token_false: str | None = None,
    token_true: str | None = None,
    batch_tokens: int = 0,
) -> RankedByT5:
    """Order the first documents by a T5 that answers whether a document is relevant.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; depth: how many documents;
    max_length: tokens of a pair at most, of which the document loses first; dtype: fp32 or bf16; token_false,
    token_true: the words the checkpoint was taught, None takes what its makers say; batch_tokens: 0 takes what suits
    the device. A score is the logarithm of the share that "true" has of both words; it is kept: no pair is scored
    twice. Source: Nogueira et al. 2020; castorini/pygaggle. Raises BadValue for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"monot5: model is {model!r}; expected a hub name or a folder")
    return RankedByT5(MonoT5(model, max_length, dtype, token_false, token_true, batch_tokens), depth)
