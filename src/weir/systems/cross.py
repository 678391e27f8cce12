"""Re-ranking by a cross-encoder, which reads a query and a document together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.encode.cross import CrossEncoder, LoadedCross
from weir.errors import BadValue
from weir.systems.pipeline import check_depth
from weir.systems.system import RERANKERS, Progress, called

__all__ = ["Cross", "CrossScorer", "cross"]

DEPTH = 100
VIEW = "title text"
BLOCK = 1024
"""Documents read from the corpus at once."""


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
        return own | self.encoder.describe()

    def ready(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> CrossScorer:
        """The model, loaded; nothing is kept on disk."""
        return CrossScorer(self.encoder.load(), corpus)


@dataclass(frozen=True, eq=False)
class CrossScorer:
    """A cross-encoder in memory and the documents it reads."""

    model: LoadedCross
    corpus: Corpus
    view: str = VIEW

    def scores(self, queries: Queries, candidates: Run) -> Float64:
        """The model's score of every candidate with its query."""
        found = list(self.model.scores(self._pairs(queries, candidates)))
        return np.concatenate([np.empty(0), *found])

    def _pairs(self, queries: Queries, candidates: Run) -> Iterator[tuple[str, str]]:
        asked, query = queries.text.tolist(), candidates.query_of_row()
        corpus = self.corpus
        for start in range(0, len(candidates.doc), BLOCK):
            doc = candidates.doc[start : start + BLOCK]
            title = None if corpus.title is None else corpus.title.take(doc)
            texts = Corpus(corpus.ids, corpus.text.take(doc), title).view(self.view, 0, len(doc))
            yield from zip([asked[q] for q in query[start : start + BLOCK]], texts.tolist(), strict=True)


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
    number before any activation. Source: Nogueira and Cho 2019. Raises BadValue for settings out of range.
    """
    if not isinstance(model, str):
        raise BadValue(f"cross: model is {model!r}; expected a hub name or a folder")
    return Cross(CrossEncoder(model, max_length, dtype, engine, batch_tokens), depth)
