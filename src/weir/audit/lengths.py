"""Lengths: whether systems prefer long or short documents, and whether judgments do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.core.strings import Int64
from weir.core.subject import Subject
from weir.stats.rank_stability import spearman

__all__ = ["LengthProfile", "document_lengths", "length_profile", "relevant_by_length"]

ANALYZER = "lucene-standard"
BATCH_BYTES = 1 << 22
FIRST_RANKS = 10
RATIO = 1.25
"""How many times longer or shorter than the relevant documents those of a system are, at the median, to be said so."""
PARTS = 5
TITLE_ONLY_SHARE = 0.05


def document_lengths(corpus: Corpus) -> Int64:
    """Words of title and text of each document, int64[n], as Lucene's StandardAnalyzer cuts them."""
    from weir.text import TermTable, analyzers

    table = TermTable(analyzers.get(ANALYZER))
    parts = [np.diff(table.add(texts)[0]) for _, texts in corpus.batches("title text", BATCH_BYTES)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


@dataclass(frozen=True)
class LengthProfile:
    """Lengths in words of the first documents that a system returns.

    quartiles: 25%, median, 75%; correlation: mean over queries of Spearman's correlation of score and length, NaN where
    it is not defined for any; title_only: share of those that have a title and no text.
    """

    quartiles: tuple[float, float, float]
    correlation: float
    title_only: float


def length_profile(run: Run, corpus: Corpus, lengths: Int64, k: int = FIRST_RANKS) -> LengthProfile | None:
    """The profile of the first k of each ranking; None where none of them is in the collection."""
    top = run.top(k)
    at = corpus.ids.codes(top.docs.strings)[top.doc]
    known = at >= 0
    if not known.any():
        return None
    found = lengths[at[known]]
    q1, median, q3 = np.quantile(found, [0.25, 0.5, 0.75]).tolist()
    each = [
        spearman(top.score[a:b][known[a:b]], lengths[at[a:b][known[a:b]]].astype(np.float64))
        for a, b in zip(top.ptr[:-1].tolist(), top.ptr[1:].tolist(), strict=True)
    ]
    defined = [value for value in each if not np.isnan(value)]
    return LengthProfile(
        (q1, median, q3),
        float(np.mean(defined)) if defined else float("nan"),
        float(_title_only(corpus)[at[known]].mean()),
    )


def _title_only(corpus: Corpus) -> NDArray[np.bool_]:
    title = np.zeros(len(corpus), np.int64) if corpus.title is None else corpus.title.lengths()
    alone: NDArray[np.bool_] = (corpus.text.lengths() == 0) & (title > 0)
    return alone


def relevant_by_length(subject: Subject, lengths: Int64) -> list[tuple[float, float]]:
    """(median length, share of relevant among the judged) of the judged documents in fifths by their length.

    Empty where nothing judged is in the collection. Source of the picture: Thakur et al. 2021, figure 5.
    """
    qrels, corpus = subject.need_qrels(), subject.need_corpus()
    at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    length, grade = lengths[at[at >= 0]], qrels.grade[at >= 0]
    parts = np.array_split(np.argsort(length, kind="stable"), PARTS)
    return [(float(np.median(length[p])), float((grade[p] > 0).mean())) for p in parts if len(p)]


@check("lengths", needs=["corpus", "runs"])
def lengths(subject: Subject) -> Iterator[Finding]:
    """How long the documents are that each system returns, beside the collection's and the relevant ones.

    A system that prefers short documents loses where relevant ones are long, whatever it understands; documents with a
    title alone are a special case. Source: Thakur et al. 2021, section 6, appendix H and figure 4.
    """
    corpus = subject.need_corpus()
    of_doc = document_lengths(corpus)
    whole = float(np.median(of_doc)) if len(of_doc) else 0.0
    relevant = _relevant_median(subject, of_doc)
    for name, run in subject.runs.items():
        profile = length_profile(run, corpus, of_doc)
        if profile is None:
            continue
        median = profile.quartiles[1]
        ratio = median / relevant if relevant else 1.0
        far = not 1 / RATIO <= ratio <= RATIO
        beside = f"relevant ones {rounding.count(relevant)}, " if relevant else ""
        which = "longer" if ratio > 1 else "shorter"
        yield Finding(
            "caution" if far or profile.title_only >= TITLE_ONLY_SHARE else "note",
            f"the first {FIRST_RANKS} documents have {rounding.count(median)} words at the "
            f"median ({beside}all "
            f"{rounding.count(whole)}); score and length correlate by "
            f"{rounding.effect(profile.correlation)} within a query; "
            f"{rounding.share(profile.title_only)} have a title alone",
            f"it prefers {which} documents than those that are relevant: see whether its score is "
            f"normalised by length"
            if far
            else "",
            (
                *zip(("25%", "median", "75%"), profile.quartiles, strict=True),
                ("correlation of score and length", profile.correlation),
                ("title alone", profile.title_only),
                ("median of relevant", relevant or float("nan")),
                ("median of all", whole),
            ),
            system=name,
        )
    if subject.qrels is not None and bool((subject.qrels.grade <= 0).any()):
        parts = relevant_by_length(subject, of_doc)
        if parts:
            yield _by_length(parts)


def _by_length(parts: list[tuple[float, float]]) -> Finding:
    said = ", ".join(
        f"{rounding.share(share, 0)} of those around {rounding.count(length)} words"
        for length, share in parts
    )
    return Finding(
        "note",
        f"relevant among the judged documents, by their length: {said}",
        numbers=tuple((f"share relevant at {length:.0f} words", share) for length, share in parts),
    )


def _relevant_median(subject: Subject, lengths: Int64) -> float | None:
    if subject.qrels is None:
        return None
    qrels = subject.qrels
    rows = qrels.doc[qrels.grade > 0]
    at = subject.need_corpus().ids.codes(qrels.docs.strings)[rows]
    return float(np.median(lengths[at[at >= 0]])) if (at >= 0).any() else None
