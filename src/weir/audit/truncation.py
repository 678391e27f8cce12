"""Truncation: documents longer than what an encoder reads, and relevant ones whose matching words it does not see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.lengths import document_lengths
from weir.audit.subject import Subject
from weir.audit.wording import counted, one_or_more
from weir.core import rounding
from weir.core.strings import Int64

__all__ = ["lost_behind_the_cut"]

LIMITS_TOKENS = (256, 512)
"""What usual encoders read: all-MiniLM-L6-v2, and BERT-like ones at most."""
CUT_SHARE = 0.1
LEAST_SHARE = 0.01
"""Share of documents cut below which nothing is said, where no relevant one is lost."""
ANALYZER = "lucene-english"


def lost_behind_the_cut(subject: Subject, lengths: Int64, limit: int) -> tuple[int, int]:
    """(relevant documents whose words in common with the query all stand behind the first `limit`, relevant ones cut).

    Of pairs of query and relevant document; words by Lucene's EnglishAnalyzer, places among those it keeps.
    """
    from weir.text import TermTable, analyzers

    corpus, queries, qrels = subject.need_corpus(), subject.need_queries(), subject.need_qrels()
    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    doc_at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    query_at = queries.ids.codes(qrels.queries.strings)[qrels.query_of_row()]
    rows = np.flatnonzero((qrels.grade > 0) & (doc_at >= 0) & (query_at >= 0))
    rows = rows[lengths[doc_at[rows]] > limit]
    lost = 0
    for row in rows.tolist():
        doc, query = int(doc_at[row]), int(query_at[row])
        _, words = table.lookup(corpus.view("title text", doc, doc + 1))
        asked = term[ptr[query] : ptr[query + 1]]
        places = np.flatnonzero(np.isin(words, asked))
        lost += bool(len(places)) and int(places[0]) >= limit
    return lost, len(rows)


@check("truncation", needs=["corpus"])
def truncation(subject: Subject) -> Iterator[Finding]:
    """How many documents an encoder of 256 or 512 tokens cannot read whole, and what that loses of relevant ones.

    A lower bound: a word is one token at least. Where queries and judgments are there, relevant documents whose words
    in common with the query all stand behind the cut are counted.
    """
    lengths = document_lengths(subject.need_corpus())
    if not len(lengths):
        return
    shares = {limit: float((lengths > limit).mean()) for limit in LIMITS_TOKENS}
    lost_any = False
    numbers = [(f"cut at {limit}", share) for limit, share in shares.items()]
    said = ", ".join(f"{rounding.share(share)} by one of {limit} tokens" for limit, share in shares.items())
    lost_said = ""
    if subject.parts >= {"queries", "qrels"}:
        for limit in LIMITS_TOKENS:
            lost, cut = lost_behind_the_cut(subject, lengths, limit)
            numbers += [(f"relevant cut at {limit}", float(cut)), (f"relevant lost at {limit}", float(lost))]
            lost_any = lost_any or lost > 0
            if cut:
                lost_said += (
                    f"; of {counted(cut, 'relevant one')} cut at {limit}, {lost:,} "
                    f"{one_or_more(lost, 'shares', 'share')} words only behind it"
                )
    if max(shares.values()) < LEAST_SHARE and not lost_any:
        return
    yield Finding(
        "caution" if shares[LIMITS_TOKENS[-1]] >= CUT_SHARE else "note",
        f"at least this many documents are cut by an encoder: {said}{lost_said}",
        "split them: chunked(...) encodes passages and takes the best of each document",
        tuple(numbers),
    )
