"""Truncation: documents longer than what an encoder reads, and relevant ones whose matching words it does not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.audit.lengths import BATCH_BYTES, document_lengths
from weir.core import rounding
from weir.core.corpus import Corpus
from weir.core.rounding import counted, one_or_more
from weir.core.strings import Int64, Strings
from weir.core.subject import Subject, TokenLimit

__all__ = ["DocumentCut", "cut_by_encoder", "cut_by_words", "lost_behind_the_cut"]

LIMITS_TOKENS = (256, 512)
"""What usual encoders read: all-MiniLM-L6-v2, and BERT-like ones at most."""
CUT_SHARE = 0.1
LEAST_SHARE = 0.01
"""Share of documents cut below which nothing is said, where no relevant one is lost."""
ANALYZER = "lucene-english"
VIEW = "title text"


@dataclass(frozen=True, eq=False)
class DocumentCut:
    """Which documents are cut at a limit of tokens.

    cut: bool[n]; read: words of a document, by its number, that stand before the cut, as `ANALYZER` keeps them.
    """

    limit: int
    cut: NDArray[np.bool_]
    read: Callable[[int], int]


def cut_by_words(lengths: Int64, limit: int) -> DocumentCut:
    """The documents that are cut for certain, since a word is one token at least; lengths: words of each."""
    return DocumentCut(limit, lengths > limit, lambda _: limit)


def cut_by_encoder(corpus: Corpus, limit: TokenLimit) -> DocumentCut:
    """The documents that an encoder cuts, by its own tokens."""
    from weir.text import TermTable, analyzers

    found = [limit.extents(texts.tolist()) for _, texts in corpus.batches(VIEW, BATCH_BYTES)]
    tokens = np.concatenate([np.zeros(0, np.int64), *(t for t, _ in found)])
    kept = np.concatenate([np.zeros(0, np.int64), *(k for _, k in found)])
    table = TermTable(analyzers.get(ANALYZER))

    def read(doc: int) -> int:
        [text] = corpus.view(VIEW, doc, doc + 1).tolist()
        return len(table.lookup(Strings.of([text[: kept[doc]]]))[1])

    return DocumentCut(limit.tokens, tokens > limit.tokens, read)


def lost_behind_the_cut(subject: Subject, by: DocumentCut) -> tuple[int, int]:
    """(relevant documents whose words in common with the query all stand behind the cut, relevant ones cut).

    Of pairs of query and relevant document; words by Lucene's EnglishAnalyzer, places among those it keeps.
    """
    from weir.text import TermTable, analyzers

    corpus, queries, qrels = subject.need_corpus(), subject.need_queries(), subject.need_qrels()
    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    doc_at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    query_at = queries.ids.codes(qrels.queries.strings)[qrels.query_of_row()]
    rows = np.flatnonzero((qrels.grade > 0) & (doc_at >= 0) & (query_at >= 0))
    rows = rows[by.cut[doc_at[rows]]]
    lost = 0
    for row in rows.tolist():
        doc, query = int(doc_at[row]), int(query_at[row])
        _, words = table.lookup(corpus.view(VIEW, doc, doc + 1))
        places = np.flatnonzero(np.isin(words, term[ptr[query] : ptr[query + 1]]))
        lost += bool(len(places)) and int(places[0]) >= by.read(doc)
    return lost, len(rows)


@check("truncation", needs=["corpus"])
def truncation(subject: Subject) -> Iterator[Finding]:
    """How many documents an encoder cannot read whole, and what that loses of relevant ones.

    With an encoder of one's own (--encoder), by its tokens; else of 256 and 512 tokens, a lower bound: a word is
    one token at least. Where queries and judgments are there, relevant documents whose words in common with the query
    all stand behind the cut are counted.
    """
    corpus, limit = subject.need_corpus(), subject.limit
    if not len(corpus):
        return
    if limit is None:
        lengths = document_lengths(corpus)
        cuts = [cut_by_words(lengths, tokens) for tokens in LIMITS_TOKENS]
        opening = "at least this many documents are cut by an encoder: "
    else:
        cuts, opening = [cut_by_encoder(corpus, limit)], f"documents that {limit.model} cuts: "
    shares = {by.limit: float(by.cut.mean()) for by in cuts}
    numbers = [(f"cut at {tokens}", share) for tokens, share in shares.items()]
    said = ", ".join(f"{rounding.share(share)} by one of {tokens} tokens" for tokens, share in shares.items())
    lost_said, lost_any = "", False
    if subject.parts >= {"queries", "qrels"}:
        for by in cuts:
            lost, cut = lost_behind_the_cut(subject, by)
            numbers += [
                (f"relevant cut at {by.limit}", float(cut)),
                (f"relevant lost at {by.limit}", float(lost)),
            ]
            lost_any = lost_any or lost > 0
            if cut:
                lost_said += (
                    f"; of {counted(cut, 'relevant one')} cut at {by.limit}, {lost:,} "
                    f"{one_or_more(lost, 'shares', 'share')} words only behind it"
                )
    if max(shares.values()) < LEAST_SHARE and not lost_any:
        return
    yield Finding(
        "caution" if shares[cuts[-1].limit] >= CUT_SHARE else "note",
        f"{opening}{said}{lost_said}",
        "split them: chunked(...) encodes passages and takes the best of each document",
        tuple(numbers),
    )
