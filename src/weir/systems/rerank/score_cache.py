"""Scores of pairs, kept as they are made: a re-ranking that was killed goes on, and no pair is scored twice.

A pair is kept under the query's text and the document's, so that another pipeline, another depth or another
collection that asks for it finds it. One store for each model with all its settings; see weir.vectors.vector_store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.encode.models.tokens import Text
from weir.errors import BadRanking
from weir.settings import settings
from weir.systems.protocol import IN_MEMORY, Context, Costs, Progress
from weir.vectors.encode_missing import EncodingBlocks, completed
from weir.vectors.journal import Hashes, hash_texts
from weir.vectors.vector_store import VectorStore

__all__ = ["VIEW", "CacheCounts", "PairModel", "PairScorer", "Pairs", "Steps"]

VIEW = "title text"
BLOCK_PAIRS = {"cpu": 256, "cuda": 4096}
"""Pairs scored together and kept: what a killed process loses at most."""
RENDERED_PAIRS = 4096
"""Pairs rendered together."""

Float32: TypeAlias = NDArray[np.float32]


class PairModel(Protocol):
    """A model in memory that reads a query and a document together."""

    @property
    def alone(self) -> bool:
        """Whether a pair's score is the same bits whatever else is scored with it."""
        ...

    @property
    def device(self) -> str:
        """Where it computes, such as "cpu" or "cuda:1"."""
        ...

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        """The scores of (query, document) in order, some at a time; done: told the pairs finished so far."""
        ...


@dataclass
class Steps:
    """Progress through batches, and within each of them. before: what the batches before it have finished."""

    progress: Progress | None
    total: int
    before: int = 0

    def batch(self, done: int, _: int) -> None:
        """A batch begins, with so much done."""
        self.before = done
        self.within(0)

    def within(self, count: int) -> None:
        """So much of the batch is done."""
        if self.progress is not None:
            self.progress(self.before + count, self.total)


@dataclass
class CacheCounts:
    """Pairs asked for, and those of them that had to be computed."""

    asked: int = 0
    computed: int = 0


@dataclass(frozen=True, eq=False)
class PairScorer:
    """A model of pairs and the documents it reads.

    name: of the re-ranker, in messages; about: everything that decides a pair's score.
    """

    name: str
    model: PairModel
    about: Mapping[str, object]
    corpus: Corpus
    tally: CacheCounts = field(default_factory=CacheCounts)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The model's score of every candidate with its query; the progress is told (pairs with a score, all pairs).

        Raises BadRanking for a score that is not finite, which is not kept.
        """
        pairs = Pairs(queries, candidates, self.corpus)
        if len(pairs) == 0:
            return np.empty(0)
        if not context.reuse:
            return self._computed(pairs, np.arange(len(pairs)), None).astype(np.float64)
        store, hashes = VectorStore.of(settings().home / "scores", self.about), pairs.hashes()
        self.tally.asked += len(pairs)
        steps = Steps(context.progress, len(pairs))

        def add(numbers: Int64, wanted: NDArray[np.bool_]) -> None:
            found = self._computed(pairs, numbers, steps.within)
            store.add(hashes[numbers[wanted]], found[wanted][:, None])
            self.tally.computed += len(numbers)

        # The pairs of a query are a block where company moves bits, so that another query changes nothing.
        block = BLOCK_PAIRS[self.model.device.partition(":")[0]]
        cut = EncodingBlocks(
            block, whole=not self.model.alone, group=candidates.query_of_row().astype(np.int64)
        )
        snapshot = completed(store, hashes, add, steps.batch, cut)
        return snapshot.vectors(snapshot.find(hashes))[:, 0].astype(np.float64)

    def costs(self) -> Costs:
        """How many scores were asked for, and computed, so far; without reuse each is computed and none kept."""
        return Costs(requested_pairs=self.tally.asked, computed_pairs=self.tally.computed, repeatable=True)

    def _computed(self, pairs: Pairs, numbers: Int64, done: Callable[[int], None] | None) -> Float32:
        """The scores of these pairs."""
        scores = np.concatenate(list(self.model.scores(pairs.take(numbers), done)))
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            raise BadRanking(
                f"{self.name}: the score of {pairs.name(int(numbers[bad[0]]))} is {scores[bad[0]]}"
            )
        return scores


@dataclass(frozen=True, eq=False)
class Pairs:
    """The texts of queries and their candidates."""

    queries: Queries
    candidates: Run
    corpus: Corpus

    def __len__(self) -> int:
        return len(self.candidates.doc)

    def name(self, number: int) -> str:
        """What a message calls a pair."""
        query = int(self.candidates.query_of_row()[number])
        document = self.candidates.docs[int(self.candidates.doc[number])]
        return f"query '{self.queries.ids[query]}', document '{document}'"

    def take(self, numbers: Int64) -> Iterator[tuple[str, str]]:
        """These pairs."""
        asked, query = self.queries.text.tolist(), self.candidates.query_of_row()
        corpus = self.corpus
        for start in range(0, len(numbers), RENDERED_PAIRS):
            some = numbers[start : start + RENDERED_PAIRS]
            doc = self.candidates.doc[some]
            texts = corpus.view_of(VIEW, doc)
            yield from zip([asked[q] for q in query[some]], texts.tolist(), strict=True)

    def hashes(self) -> Hashes:
        """The hash of each pair: that of the query's length, the query and the document."""
        every = np.arange(len(self))
        blocks = [
            self.take(every[start : start + RENDERED_PAIRS]) for start in range(0, len(self), RENDERED_PAIRS)
        ]
        return np.concatenate([hash_texts([f"{len(q)} {q}{d}".encode() for q, d in b]) for b in blocks])
