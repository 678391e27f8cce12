"""RM3: BM25 whose query is enlarged by the words of its own first answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.systems.bm25 import BM25, BM25Searcher
from weir.systems.impact import Forward, Hits
from weir.systems.lexical import query_terms
from weir.systems.system import SYSTEMS, Progress, called

__all__ = ["RM3", "RM3Searcher"]

COMMON = 0.1
"""Words in more than this share of the documents are never added."""


@SYSTEMS.register("rm3")
@dataclass(frozen=True)
class RM3:
    """BM25, asked a second time with the weightiest words of its own first answers added.

    first: the BM25 that answers, one field only; docs: answers looked at; terms: words taken; weight:
    share that the original query keeps. As Anserini's RM3: each answer keeps its `terms` most frequent
    words, words of 2 to 20 ASCII letters or digits in at most a tenth of the documents.
    Source: Abdul-Jaleel et al. 2004; Anserini Rm3Reranker. Raises BadValue for settings out of range.
    """

    first: BM25 = BM25()  # noqa: RUF009 - a frozen value
    docs: int = 10
    terms: int = 10
    weight: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.first, BM25) or len(self.first.recipe.fields) != 1:
            raise BadValue(f"rm3 expands a bm25 over one field, not {self.first}")
        if not all(isinstance(n, int) and n >= 1 for n in (self.docs, self.terms)):
            raise BadValue(f"rm3: docs={self.docs!r}, terms={self.terms!r}; expected whole numbers from 1")
        if not (isinstance(self.weight, (int, float)) and 0 <= self.weight <= 1):
            raise BadValue(f"rm3: weight is {self.weight!r}; expected a number from 0 to 1")

    def __str__(self) -> str:
        default = RM3()
        first: list[object] = [] if self.first == default.first else [self.first]
        names = ("docs", "terms", "weight")
        given = {n: getattr(self, n) for n in names if getattr(self, n) != getattr(default, n)}
        return called("rm3", first, given)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        own = {"docs": self.docs, "terms": self.terms, "weight": self.weight, "common": COMMON}
        return {"system": str(self), "expansion": own, "first": self.first.describe()}

    def index(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> RM3Searcher:
        """Index a corpus, in memory or into the folder `at`."""
        return RM3Searcher(self, self.first.indexed(corpus, at, progress, keep_terms=True))

    def open(self, at: Path, corpus: Corpus) -> RM3Searcher:
        """Open an index that `index` wrote for the same corpus."""
        return RM3Searcher(self, self.first.open(at, corpus))


@dataclass(frozen=True, eq=False)
class RM3Searcher:
    """An index of a corpus that keeps each document's terms."""

    system: RM3
    first: BM25Searcher

    @cached_property
    def eligible(self) -> NDArray[np.bool_]:
        """bool[V]: terms that may be added to a query."""
        index = self.first.parts[0]
        rare = np.diff(index.impacts.ptr) <= COMMON * len(index.order)
        plain = [re.fullmatch("[a-z0-9]{2,20}", term) is not None for term in index.vocabularies[0].tolist()]
        return rare & np.array(plain, np.bool_)

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents for each enlarged query; raises BadValue for k below 1."""
        answers = self.first.search(queries, self.system.docs)
        asked = query_terms(self.first.tables[0], queries.text)
        enlarged = [self._enlarged(q, asked, answers) for q in range(len(queries))]
        ptr = np.zeros(len(queries) + 1, np.int64)
        np.cumsum([len(term) for term, _ in enlarged], out=ptr[1:])
        term = np.concatenate([np.empty(0, np.int32), *(t for t, _ in enlarged)])
        weight = np.concatenate([np.empty(0), *(w for _, w in enlarged)])
        hits = self._checked(ptr, term, weight, k)
        return Run(queries.ids, self.first.corpus.ids, hits.ptr, hits.doc, hits.score, str(self.system))

    def _checked(self, ptr: Int64, term: Int32, weight: Float64, k: int) -> Hits:
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        return self.first.weighted(ptr, term, weight, min(k, max(len(self.first.corpus), 1)))

    def _enlarged(
        self, q: int, asked: tuple[Int64, Int32, NDArray[np.float32]], answers: Run
    ) -> tuple[Int32, Float64]:
        """The terms of one query and its first answers with their weights."""
        span = slice(int(asked[0][q]), int(asked[0][q + 1]))
        term, count = asked[1][span], asked[2][span].astype(np.float64)
        forward = self.first.forward
        if len(term) == 0 or forward is None:
            return term, count
        answer = slice(int(answers.ptr[q]), int(answers.ptr[q + 1]))
        model = self._model(forward, answers.doc[answer], answers.score[answer])
        weights = {t: self.system.weight * c for t, c in zip(term.tolist(), (count / count.sum()).tolist(), strict=True)}
        for t, value in model:
            weights[t] = weights.get(t, 0.0) + (1.0 - self.system.weight) * value
        return np.array(list(weights), np.int32), np.array(list(weights.values()))

    def _model(self, forward: Forward, docs: Int32, scores: Float64) -> list[tuple[int, float]]:
        """The relevance model of the first answers: terms and probabilities, the weightiest ones."""
        model: dict[int, float] = {}
        for doc, score in zip(docs.tolist(), scores.tolist(), strict=True):
            row = slice(int(forward.ptr[doc]), int(forward.ptr[doc + 1]))
            term, count = np.asarray(forward.term[row]), np.asarray(forward.count[row])
            kept = self.eligible[term]
            frequent = self._heaviest(dict(zip(term[kept].tolist(), count[kept].tolist(), strict=True)))
            total = sum(value for _, value in frequent)
            for t, value in frequent:
                model[t] = model.get(t, 0.0) + value / total * score
        best = self._heaviest(model)
        total = sum(value for _, value in best)
        return [(t, value / total) for t, value in best]

    def _heaviest(self, weights: dict[int, float]) -> list[tuple[int, float]]:
        """The `terms` heaviest entries; equal ones in alphabetical order, as Anserini keeps them."""
        names = self.first.parts[0].vocabularies[0]
        return sorted(weights.items(), key=lambda item: (-item[1], names[item[0]]))[: self.system.terms]
