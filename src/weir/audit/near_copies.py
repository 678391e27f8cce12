"""Near copies: documents whose words are almost those of another, found without comparing all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.audit.duplicates import conflicts, copies
from weir.core.corpus import Corpus, joined
from weir.core.rounding import part_of, times
from weir.core.strings import Int32, Int64
from weir.core.subject import Subject
from weir.datasets.same_text import DuplicateGroups, normalised, title_and_text

if TYPE_CHECKING:
    from weir.text import TermTable

__all__ = ["NEAR", "NearCopies", "near_copies"]

NEAR = 0.8
"""Jaccard index of the shingles of two texts from which they are near copies."""
SHINGLE_TERMS = 3
BANDS, ROWS_PER_BAND = 20, 6
"""A pair of Jaccard index 0.8 shares a band with a probability of 0.998, one of 0.5 with 0.27: then it is compared."""
LEADERS_COMPARED = 64
"""Texts of one bucket that a further one is compared with."""
SEED = 1997
"""Of the permutations: the year of MinHash (Broder)."""
ANALYZER = "lucene-standard"
BATCH_BYTES, BATCH_DOCUMENTS = 1 << 22, 1 << 14


@dataclass(frozen=True, eq=False)
class NearCopies:
    """Documents grouped with a leader that they are near copies of.

    groups: the rows of one group have a Jaccard index of at least NEAR with the group's first row; leader: int64[n],
    the first row of each row's group, itself where it stands alone; skipped: comparisons left out, 0 but for
    collections of many texts that are alike by a part only.
    """

    groups: DuplicateGroups
    leader: Int64
    skipped: int


def near_copies(corpus: Corpus, least: float = NEAR) -> NearCopies:
    """Documents with nearly the same title and text: groups around a leader, each member verified.

    The Jaccard index is that of sets of SHINGLE_TERMS consecutive words, lowercased, punctuation left out. Candidates
    share a band of their MinHash signatures; each is compared exactly. Memory: 8 bytes for each document and band, and
    the words of candidates. Raises MissingExtra without the `run` extra. Sources: Broder 1997; Indyk and Motwani 1998.
    """
    from weir.kernels.jit import check_available

    check_available()
    from weir.kernels import minhash
    from weir.text import TermTable, analyzers

    terms = TermTable(analyzers.get(ANALYZER))
    multipliers = _odd_numbers(BANDS * ROWS_PER_BAND)
    keys = np.zeros((len(corpus), BANDS), np.uint64)
    for start, texts in corpus.batches("title text", BATCH_BYTES):
        ptr, numbers = terms.add(texts)
        minhash.band_keys(ptr, numbers, SHINGLE_TERMS, multipliers, keys[start : start + len(texts)])
    bucket, candidates = _buckets(keys)
    ptr, numbers = _terms_of(corpus, candidates, terms)
    count, shingle = np.zeros(len(candidates), np.int64), np.empty(len(numbers), np.int64)
    spare = np.empty(int(np.diff(ptr).max(initial=0)), np.int64)
    minhash.shingle_sets(ptr, numbers, SHINGLE_TERMS, count, shingle, spare, np.empty(2048, np.int64))
    local = np.empty(len(candidates), np.int64)
    held = np.full(int(bucket.max(initial=-1)) + 1, LEADERS_COMPARED, np.int32)
    skipped = minhash.leaders(ptr, count, shingle, bucket, held, least, local)
    leader = np.arange(len(corpus))
    leader[candidates] = candidates[local]
    return NearCopies(_groups(leader), leader, int(skipped))


def _odd_numbers(count: int) -> NDArray[np.uint32]:
    drawn = np.random.default_rng(SEED).integers(0, 1 << 31, count, dtype=np.uint32)
    return drawn * np.uint32(2) + np.uint32(1)


def _buckets(keys: NDArray[np.uint64]) -> tuple[Int32, Int64]:
    """(bucket int32[c, bands] of the texts that share at least one with another, -1 where not; their rows)."""
    n, bands = keys.shape
    found = np.full((n, bands), -1, np.int32)
    numbered = 0
    for band in range(bands):
        column = keys[:, band]
        order = np.argsort(column, kind="stable")
        opens = np.append(True, np.diff(column[order]) != 0)[:n]
        run = np.cumsum(opens) - 1
        shared = (np.bincount(run) > 1)[run] & (column[order] != 0)
        number = np.cumsum(opens & shared) - 1 + numbered
        found[order[shared], band] = number[shared]
        numbered += int(np.count_nonzero(opens & shared))
    rows = np.flatnonzero((found >= 0).any(axis=1))
    return found[rows], rows


def _terms_of(corpus: Corpus, rows: Int64, terms: TermTable) -> tuple[Int64, Int32]:
    """ptr int64[r + 1], term int32[]: the terms of some documents."""
    lengths, numbers = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    for start in range(0, len(rows), BATCH_DOCUMENTS):
        some = rows[start : start + BATCH_DOCUMENTS]
        text = corpus.text.take(some)
        ptr, term = terms.lookup(text if corpus.title is None else joined(corpus.title.take(some), text))
        lengths.append(np.diff(ptr))
        numbers.append(term)
    return np.cumsum(np.concatenate(lengths)), np.concatenate(numbers)


def _groups(leader: Int64) -> DuplicateGroups:
    size = np.bincount(leader, minlength=len(leader))
    firsts = np.flatnonzero(size > 1)
    number = np.full(len(leader), -1, np.int64)
    number[firsts] = np.arange(len(firsts))
    return DuplicateGroups(number[leader])


@check("near duplicates", needs=["corpus"])
def near_duplicates(subject: Subject) -> Iterator[Finding]:
    """Documents whose title and text are almost those of another: three consecutive words shared by 80% or more.

    Those that are the same after normalising are the matter of `duplicates` and counted there. Where judgments are
    there: groups that one query judges differently. Source: Broder 1997.
    """
    corpus = subject.need_corpus()
    found = near_copies(corpus)
    same = copies(title_and_text(corpus), normalised).number
    follows = found.leader != np.arange(len(corpus))
    near = follows & ((same < 0) | (same != same[found.leader]))
    if near.any():
        rows = np.flatnonzero(near)
        yield Finding(
            "caution",
            f"{part_of(len(rows), len(corpus), 'documents', 'is', 'are')} almost another: the Jaccard index of "
            f"their sets of "
            f"{SHINGLE_TERMS} consecutive words is {NEAR} or more",
            "a ranking that returns both is scored for each of them, and an unjudged one counts as not relevant",
            (("near copies", float(len(rows))), ("comparisons left out", float(found.skipped))),
            tuple(f"{corpus.ids[int(row)]} ~ {corpus.ids[int(found.leader[row])]}" for row in rows[:5]),
        )
        if subject.qrels is not None:
            beyond = np.isin(found.leader, found.leader[rows])
            yield from _judged_differently(
                subject, DuplicateGroups(np.where(beyond, found.groups.number, -1))
            )


def _judged_differently(subject: Subject, groups: DuplicateGroups) -> Iterator[Finding]:
    clashes = conflicts(subject.need_qrels(), subject.need_corpus(), groups)
    if clashes:
        yield Finding(
            "caution",
            f"{times(len(clashes))} one query judges near copies differently",
            "look at these pairs: what differs may be what matters, or one of the labels is wrong",
            (("pairs of query and group", float(len(clashes))),),
            tuple(f"{query}: {', '.join(names)}" for query, names in clashes),
        )
