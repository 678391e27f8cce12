"""Bias of judgments and of systems: what words alone find, and documents that are returned for everything."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.rounding import counted, one_or_more
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject

__all__ = ["found_by_bm25", "term_overlap"]

DEPTHS = (10, 100)
ANALYZER = "lucene-english"
BIASED_SHARE = 0.95
"""Share of the relevant documents among BM25's first 100 from which judgments are said to be lexical."""
FEWEST_DOCUMENTS = 1_000
"""Documents of a collection below which its first 100 say nothing."""
FIRST_RANKS = 10
FEWEST_QUERIES = 50
HUB_SHARE = 0.1
"""Share of the queries for which one document is among the first 10 from which it is called a hub."""
TIMES_CHANCE = 3
"""So many times its expected number of queries, were the first 10 drawn at random, makes a document a hub too."""


def found_by_bm25(subject: Subject) -> dict[int, float]:
    """The share of all relevant documents of the collection that BM25 returns among its first 10 and 100.

    Of all pairs of query and relevant document together, so that queries with many count as often. NaN without any.
    """
    from weir.systems.lexical.bm25 import BM25

    corpus, qrels = subject.need_corpus(), subject.need_qrels()
    run = BM25().index(corpus).search(subject.judged_queries, DEPTHS[-1])
    judged = Judged.of(run, qrels)
    asked = run.queries.codes(qrels.queries.strings) >= 0
    here = corpus.ids.codes(qrels.docs.strings) >= 0
    total = int(np.count_nonzero((qrels.grade > 0) & here[qrels.doc] & asked[qrels.query_of_row()]))
    hits = judged.rank[judged.grade > 0]
    return {depth: int((hits <= depth).sum()) / total if total else float("nan") for depth in DEPTHS}


def term_overlap(subject: Subject, qrels: Qrels) -> Float64:
    """The share of the query's distinct terms that each judged document holds, float64[judgments].

    Terms as Lucene's EnglishAnalyzer gives them. NaN where the query or the document is not there, or has no term.
    """
    from weir.text import TermTable, analyzers

    corpus, queries = subject.need_corpus(), subject.need_queries()
    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    doc_at, query_at = corpus.ids.codes(qrels.docs.strings), queries.ids.codes(qrels.queries.strings)
    used = np.unique(qrels.doc)
    used = used[doc_at[used] >= 0]
    doc_ptr, doc_term = table.lookup(corpus.text.take(doc_at[used]))
    title_ptr, title_term = (
        (np.zeros(len(used) + 1, np.int64), doc_term[:0])
        if corpus.title is None
        else table.lookup(corpus.title.take(doc_at[used]))
    )
    holds = {
        int(doc): set(doc_term[doc_ptr[i] : doc_ptr[i + 1]].tolist())
        | set(title_term[title_ptr[i] : title_ptr[i + 1]].tolist())
        for i, doc in enumerate(used.tolist())
    }
    asked = [set(term[ptr[at] : ptr[at + 1]].tolist()) if at >= 0 else set() for at in query_at.tolist()]
    pairs = zip(qrels.query_of_row().tolist(), qrels.doc.tolist(), strict=True)
    return np.array(
        [
            len(asked[q] & holds[d]) / len(asked[q]) if asked[q] and d in holds else float("nan")
            for q, d in pairs
        ],
        np.float64,
    )


@check("lexical bias", needs=["corpus", "queries", "qrels"])
def lexical_bias(subject: Subject) -> Iterator[Finding]:
    """How many of the relevant documents BM25 finds, and whether they share more words with the query than others do.

    Judgments that were pooled by words reward systems that match words. Indexes the collection. Source: Thakur et al.
    2021, section 5, on lexical bias.
    """
    qrels = subject.need_qrels()
    found = found_by_bm25(subject)
    if np.isnan(found[DEPTHS[0]]):
        return
    overlap = term_overlap(subject, qrels)
    shares = {}
    for name, rows in (("relevant", qrels.grade > 0), ("judged not relevant", qrels.grade <= 0)):
        values = overlap[rows & ~np.isnan(overlap)]
        if len(values):
            shares[name] = float(values.mean())
    said = ", ".join(
        f"{name} documents hold {rounding.share(share)} of the query's terms"
        for name, share in shares.items()
    )
    biased = found[100] >= BIASED_SHARE and len(subject.need_corpus()) >= FEWEST_DOCUMENTS
    yield Finding(
        "caution" if biased else "note",
        f"BM25 finds {rounding.share(found[10])} of the relevant documents among its first 10 and "
        f"{rounding.share(found[100])} among 100; "
        f"{said}",
        "judgments look pooled by words: a system that finds other relevant documents is not rewarded"
        if biased
        else "",
        (
            *((f"found at {depth}", share) for depth, share in found.items()),
            *((f"terms held by {name}", share) for name, share in shares.items()),
        ),
    )


@check("hubs", needs=["runs"])
def hubs(subject: Subject) -> Iterator[Finding]:
    """Documents among a system's first ten for a tenth of the queries or more, relevant to fewer than half of these.

    In a small collection for three times as many queries as by chance. Of judged queries; without judgments of all,
    whatever is relevant. Dense systems have
    such hubs by geometry. Source: Radovanovic, Nanopoulos and Ivanovic 2010.
    """
    for name, run in subject.runs.items():
        top = run.top(FIRST_RANKS)
        judged = np.ones(len(top), np.bool_)
        if subject.qrels is not None:
            judged = subject.qrels.queries.codes(top.queries.strings) >= 0
        rows = judged[top.query_of_row()] & (top.doc >= 0)
        count = np.bincount(top.doc[rows], minlength=len(top.docs))
        asked = int(np.count_nonzero(np.diff(top.ptr)[judged]))
        documents = len(top.docs) if subject.corpus is None else len(subject.corpus)
        least = max(HUB_SHARE, min(1.0, TIMES_CHANCE * FIRST_RANKS / max(1, documents)))
        relevant = np.zeros_like(count) if subject.qrels is None else _relevant_answers(top, subject.qrels)
        often = np.flatnonzero((count >= least * asked) & (2 * relevant < np.maximum(count, 1)))
        if asked < FEWEST_QUERIES or not len(often):
            continue
        often = often[np.argsort(relevant[often] - count[often], kind="stable")]
        names = top.docs.take(often).tolist()
        worst, right = int(count[often[0]]), int(relevant[often[0]])
        told = "" if subject.qrels is None else " and relevant to fewer than half of these"
        yield Finding(
            "caution",
            f"{counted(len(often), 'document')} {one_or_more(len(often), 'is', 'are')} among the first "
            f"{FIRST_RANKS} of {rounding.share(least)} of the queries or more{told}, {names[0]} for {worst:,} of "
            f"{asked:,}" + (f", relevant to {right:,}" if told else ""),
            "look at these texts: what is near to everything is often empty, boilerplate or a list",
            (
                ("hubs", float(len(often))),
                ("queries of the first", float(worst)),
                *((("relevant to", float(right)),) if told else ()),
            ),
            tuple(names),
            system=name,
        )


def _relevant_answers(top: Run, qrels: Qrels) -> Int64:
    """For how many queries each document is returned and relevant, int64[documents]."""
    good = np.flatnonzero(qrels.grade > 0)
    query = top.queries.codes(qrels.queries.strings)[qrels.query_of_row()[good]].astype(np.int64)
    doc = top.docs.codes(qrels.docs.strings)[qrels.doc[good]].astype(np.int64)
    known = (query >= 0) & (doc >= 0)
    width = max(1, len(top.docs))
    answers = top.query_of_row().astype(np.int64) * width + top.doc
    here = np.isin(answers, query[known] * width + doc[known]) & (top.doc >= 0)
    return np.bincount(top.doc[here], minlength=len(top.docs))
