"""How often words occur in collections, and how far two collections use the same words equally often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.corpus import Corpus
from weir.core.strings import Float64, Int64
from weir.text import TermTable, analyzers

__all__ = ["WordCounts", "layout", "weighted_jaccard", "word_counts"]

ANALYZER = "lucene-standard"
BATCH_BYTES = 1 << 22
WORDS_SHOWN = 5
ROUNDS = 300


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word occurs in each of some collections.

    words: the words of all of them; counts: int64[words] of each collection, aligned with words.
    """

    words: list[str]
    counts: tuple[Int64, ...]

    def shares(self, which: int) -> Float64:
        """The share of each word among all words of a collection; zeros for one without words."""
        counts = self.counts[which]
        return counts / max(1, int(counts.sum()))

    def typical(self, of: int, against: int) -> list[str]:
        """The words whose share in one collection exceeds that in another most."""
        surplus = self.shares(of) - self.shares(against)
        return [self.words[i] for i in np.argsort(-surplus, kind="stable")[:WORDS_SHOWN] if surplus[i] > 0]


def word_counts(corpora: Sequence[Corpus]) -> WordCounts:
    """Count the words of titles and texts, lowercased, punctuation left out (Lucene's StandardAnalyzer).

    Streamed: memory is that of the vocabulary. Raises MissingExtra without the `run` extra.
    """
    table = TermTable(analyzers.get(ANALYZER))
    counts = []
    for corpus in corpora:
        total = np.zeros(0, np.int64)
        for _, texts in corpus.batches("title text", BATCH_BYTES):
            _, terms = table.add(texts)
            some = np.bincount(terms, minlength=len(total))
            some[: len(total)] += total
            total = some
        counts.append(total)
    filled = tuple(np.pad(one, (0, len(table) - len(one))) for one in counts)
    return WordCounts(table.terms().tolist(), filled)


def weighted_jaccard(a: Float64, b: Float64) -> float:
    """Sum of the smaller of two shares over sum of the larger, word by word: 1 for equal profiles, 0 for disjoint.

    Source: Ioffe 2010, as Thakur et al. 2021, appendix F, apply it. NaN where neither has a word.
    """
    larger = float(np.maximum(a, b).sum())
    return float(np.minimum(a, b).sum()) / larger if larger else float("nan")


def layout(alike: Float64) -> Float64:
    """Places in the plane at which collections stand as far apart as they are unlike, float64[n, 2], around 0.

    alike: float64[n, n], symmetric, 0 to 1. Each round moves all to where springs of length 1 - alike to the others
    would hold them, from equal places on a circle; the same places every time.
    Source: de Leeuw 1977 (stress by majorization).
    """
    count = len(alike)
    angle = 2 * np.pi * np.arange(count) / max(1, count)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    wanted = 1 - alike
    for _ in range(ROUNDS if count > 1 else 0):
        apart = places[:, None] - places[None]
        distance = np.sqrt((apart**2).sum(axis=2))
        pull = np.divide(wanted, distance, out=np.zeros_like(distance), where=distance > 0)
        places = (pull[:, :, None] * apart).sum(axis=1) / count
    centred: Float64 = places - places.mean(axis=0)
    return centred
