"""Check for empty and damaged texts, lengths of documents, and truncation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus
from weir.core.rounding import counted, one_or_more, part_of
from weir.core.run import Run
from weir.core.strings import Int64, Strings
from weir.core.subject import Subject, TokenLimit
from weir.stats.order_agreement import spearman
from weir.systems.lexical.analyzer import CJK_LETTERS, THAI_LETTERS, analyzers
from weir.systems.lexical.language import language_of_corpus
from weir.systems.lexical.terms import TermTable

SHORT_WORDS = 3
# In scripts without spaces between words, twice as many letters are taken for as many words.
_UNSPACED = re.compile(f"(?:[{CJK_LETTERS}{THAI_LETTERS}].*?){{{2 * SHORT_WORDS}}}", re.DOTALL)
REPEATED_SHARE = 0.5
BATCH_BYTES = 1 << 22
# UTF-8 read as Windows-1252 or Latin-1: a lead byte of two or three, as a letter, and what its continuation becomes.
_MOJIBAKE = re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2(?:\u20ac|\u0080)[\u0080-\u00bf\u0152-\u2122]")
# C1 controls after a letter of _MOJIBAKE are found there; U+0085 and U+2028 end a line for some readers of JSON lines.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]|(?<![\u00c2\u00c3\u00e2])(?<!\u00e2\x80)[\x80-\x9f]"
)
_MARKUP = re.compile(
    r"</?(?:p|br|div|span|b|i|a|table|tr|td|li|ul|h[1-6])(?:\s[^<>]{0,200})?/?>"
    r"|&(?:amp|lt|gt|nbsp|quot|#\d{2,5});",
    re.IGNORECASE,
)
_SMART = re.compile(r"(?:^|\s)\.[TBWX]\s")
DAMAGE = {
    "replacement characters (bytes that were no UTF-8)": re.compile("\ufffd"),
    "UTF-8 read in another encoding, such as Ã© for é": _MOJIBAKE,
    "control characters": _CONTROL,
    "left-over markup, such as <br> or &amp;": _MARKUP,
    "left-over field marks of SMART files, such as .W": _SMART,
}


def damage_of(text: str) -> list[str]:
    """Return the kinds of damage in a text, such as a wrong encoding."""
    return [name for name, pattern in DAMAGE.items() if pattern.search(text)]


def _findings(
    names: Iterable[str], texts: Iterable[str], what: str, total: int, short_matters: bool
) -> Iterator[Finding]:
    empty: list[str] = []
    short: list[str] = []
    damaged: dict[str, list[str]] = {}
    for name, text in zip(names, texts, strict=True):
        words = len(text.split(None, SHORT_WORDS))
        if 0 < words < SHORT_WORDS and _UNSPACED.search(text):
            words = SHORT_WORDS
        if words < SHORT_WORDS:
            (short if words else empty).append(name)
        for kind in damage_of(text):
            damaged.setdefault(kind, []).append(name)
    if empty:
        yield Finding(
            "caution",
            f"{part_of(len(empty), total, what, 'has', 'have')} no text at all",
            "no search by words can match them: take the collection's full version, or leave them out",
            (("empty", float(len(empty))),),
            tuple(empty[:5]),
        )
    if short and short_matters:
        yield Finding(
            "note",
            f"{part_of(len(short), total, what, 'has', 'have')} fewer than {SHORT_WORDS} words",
            "see whether their text was cut",
            (("short", float(len(short))),),
            tuple(short[:5]),
        )
    for kind, damaged_names in damaged.items():
        yield Finding(
            "caution" if len(damaged_names) > total / 100 else "note",
            f"{part_of(len(damaged_names), total, what, 'holds', 'hold')} {kind}",
            "words that are damaged match nothing: mend the texts before indexing",
            ((kind, float(len(damaged_names))),),
            tuple(damaged_names[:5]),
        )


@check("texts", needs=["corpus"])
def texts(subject: Subject) -> Iterator[Finding]:
    """Documents without text or with fewer than three words, and signs of damage: wrong encodings, markup.

    Also texts that begin with their title: an index of both has it twice.
    """
    corpus = subject.need_corpus()
    texts_of_all = chain.from_iterable(block for _, block in corpus.batches("title text", BATCH_BYTES))
    yield from _findings(corpus.ids, texts_of_all, "documents", len(corpus), short_matters=True)
    if corpus.title is None:
        return
    titled = repeated = 0
    for title, text in zip(corpus.title, corpus.text, strict=True):
        titled += bool(title.strip())
        repeated += bool(title.strip()) and text.startswith(title)
    if repeated >= REPEATED_SHARE * max(1, titled):
        yield Finding(
            "caution",
            f"{part_of(repeated, titled, 'texts', 'begins with its title', 'begin with their title')}, so that "
            "title and text together hold it twice",
            "its words count twice, and documents are longer than they are: index the text alone",
            (("texts", float(repeated)), ("documents with a title", float(titled))),
        )


@check("query texts", needs=["queries"])
def query_texts(subject: Subject) -> Iterator[Finding]:
    """Queries of the evaluated split without text, and signs of damage in them."""
    queries = subject.judged_queries
    yield from _findings(queries.ids, queries.text, subject.queries_called, len(queries), short_matters=False)


@check("language", needs=["corpus"])
def language(subject: Subject) -> Iterator[Finding]:
    """The language of a sample of the texts, if it is not English, the default of analyzers."""
    found = language_of_corpus(subject.need_corpus())
    if found is not None and found.name != "english":
        yield Finding(
            "note",
            f"the texts look like {found.written_name} ({found.evidence}); bm25 analyses English unless it is told "
            "otherwise",
            f'take bm25(analyzer="{found.analyzer}")',
        )


# Lengths: whether systems and judgments prefer long or short documents.

LENGTH_ANALYZER = "lucene-standard"
BATCH_BYTES = 1 << 22
FIRST_RANKS = 10
RATIO = 1.25
"""Ratio of a system's median length to that of relevant documents, or its inverse, that is reported."""
PARTS = 5
TITLE_ONLY_SHARE = 0.05


def document_lengths(corpus: Corpus) -> Int64:
    """Return each document's number of words, title and text together, int64[n]."""
    table = TermTable(analyzers.get(LENGTH_ANALYZER))
    parts = [np.diff(table.add(texts)[0]) for _, texts in corpus.batches("title text", BATCH_BYTES)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def length_profile(
    run: Run, corpus: Corpus, lengths: Int64
) -> tuple[tuple[float, float, float], float, float] | None:
    """Return (quartiles of words, correlation, share with only a title) of the top ten documents of all
    rankings; None if none is in the collection.

    lengths: words of each document, int64[documents].

    The correlation is the mean over queries of Spearman's of score and length, or NaN.
    """
    top = run.top(FIRST_RANKS)
    at = corpus.ids.codes(top.docs.strings)[top.doc]
    in_corpus = at >= 0
    if not in_corpus.any():
        return None
    q1, median, q3 = np.quantile(lengths[at[in_corpus]], [0.25, 0.5, 0.75]).tolist()
    each = [
        spearman(top.score[a:b][in_corpus[a:b]], lengths[at[a:b][in_corpus[a:b]]].astype(np.float64))
        for a, b in zip(top.ptr[:-1].tolist(), top.ptr[1:].tolist(), strict=True)
    ]
    defined = [value for value in each if not np.isnan(value)]
    title = np.zeros(len(corpus), np.int64) if corpus.title is None else corpus.title.lengths()
    title_only = (corpus.text.lengths() == 0) & (title > 0)
    return (
        (q1, median, q3),
        float(np.mean(defined)) if defined else float("nan"),
        float(title_only[at[in_corpus]].mean()),
    )


def relevant_by_length(subject: Subject, lengths: Int64) -> list[tuple[float, float]]:
    """Return (median length, share relevant) for up to five equal groups of judged documents, shortest first;
    [] if none is in the collection.

    lengths: words of each document, int64[documents].
    """
    # Thakur et al. 2021, figure 5.
    qrels, corpus = subject.need_qrels(), subject.need_corpus()
    at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    length, grade = lengths[at[at >= 0]], qrels.grade[at >= 0]
    parts = np.array_split(np.argsort(length, kind="stable"), PARTS)
    return [(float(np.median(length[p])), float((grade[p] > 0).mean())) for p in parts if len(p)]


@check("lengths", needs=["corpus", "runs"])
def lengths(subject: Subject) -> Iterator[Finding]:
    """Lengths of the documents that each system returns, compared with the collection's and the relevant ones.

    Source: Thakur et al. 2021, section 6, appendix H and figure 4.
    """
    corpus, qrels = subject.need_corpus(), subject.qrels
    of_doc = document_lengths(corpus)
    whole = float(np.median(of_doc)) if len(of_doc) else 0.0
    relevant: float | None = None
    if qrels is not None:
        at = corpus.ids.codes(qrels.docs.strings)[qrels.doc[qrels.grade > 0]]
        relevant = float(np.median(of_doc[at[at >= 0]])) if (at >= 0).any() else None
    for name, run in subject.runs.items():
        profile = length_profile(run, corpus, of_doc)
        if profile is None:
            continue
        quartiles, correlation, title_only = profile
        median = quartiles[1]
        ratio = median / relevant if relevant else 1.0
        far = not 1 / RATIO <= ratio <= RATIO
        beside = f"relevant ones {rounding.count(relevant)}, " if relevant else ""
        which = "longer" if ratio > 1 else "shorter"
        yield Finding(
            "caution" if far or title_only >= TITLE_ONLY_SHARE else "note",
            f"the first {FIRST_RANKS} documents have {rounding.count(median)} words at the median ({beside}all "
            f"{rounding.count(whole)}); score and length correlate by {rounding.effect(correlation)} within "
            f"a query; {rounding.percent(title_only)} have a title alone",
            f"it prefers {which} documents than those that are relevant: see whether its score is normalised by length"
            if far
            else "",
            (
                *zip(("25%", "median", "75%"), quartiles, strict=True),
                ("correlation of score and length", correlation),
                ("title alone", title_only),
                ("median of relevant", relevant or float("nan")),
                ("median of all", whole),
            ),
            system=name,
        )
    if qrels is not None and bool((qrels.grade <= 0).any()):
        parts = relevant_by_length(subject, of_doc)
        if parts:
            yield Finding(
                "note",
                "relevant among the judged documents, by their length: "
                + ", ".join(
                    f"{rounding.percent(share, 0)} of those around {rounding.count(length)} words"
                    for length, share in parts
                ),
                numbers=tuple((f"share relevant at {length:.0f} words", share) for length, share in parts),
            )


# Truncation: documents longer than an encoder reads, and relevant ones that match only after the cut.

LIMITS_TOKENS = (256, 512)
"""Limits of all-MiniLM-L6-v2, and of BERT-like encoders."""
CUT_SHARE = 0.1
LEAST_SHARE = 0.01
"""Share of cut documents below which nothing is reported unless relevant ones are lost."""
TRUNCATION_ANALYZER = "lucene-english"
VIEW = "title text"


@dataclass(frozen=True, eq=False)
class DocumentCut:
    """Documents that are longer than a limit of tokens, so that an encoder truncates them."""

    limit: int
    cut: NDArray[np.bool_]
    """bool[n]: True for each truncated document."""
    read: Callable[[int], int]
    """Returns the number of a document's words (`TRUNCATION_ANALYZER`) before the cut."""


def cut_by_words(lengths: Int64, limit: int) -> DocumentCut:
    """Return the documents with more words than `limit` tokens, which an encoder certainly truncates.

    lengths: in words, int64[documents].
    """
    return DocumentCut(limit, lengths > limit, lambda _: limit)


def cut_by_encoder(corpus: Corpus, limit: TokenLimit) -> DocumentCut:
    """Return the documents that exceed an encoder's limit, in its own tokens."""
    extents = [limit.extents(texts.tolist()) for _, texts in corpus.batches(VIEW, BATCH_BYTES)]
    tokens = np.concatenate([np.zeros(0, np.int64), *(count for count, _ in extents)])
    characters = np.concatenate([np.zeros(0, np.int64), *(count for _, count in extents)])
    table = TermTable(analyzers.get(TRUNCATION_ANALYZER))

    def read(doc: int) -> int:
        [text] = corpus.view(VIEW, doc, doc + 1).tolist()
        return len(table.lookup(Strings.of([text[: characters[doc]]]))[1])

    return DocumentCut(limit.tokens, tokens > limit.tokens, read)


def lost_behind_the_cut(subject: Subject, by: DocumentCut) -> tuple[int, int]:
    """Return two numbers of relevant pairs: whose document is truncated before its first word of the query,
    and whose document is truncated.

    by: documents that an encoder truncates.
    """
    corpus, queries, qrels = subject.need_corpus(), subject.need_queries(), subject.need_qrels()
    table = TermTable(analyzers.get(TRUNCATION_ANALYZER))
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
    """Documents that exceed an encoder's limit, and the relevant documents whose matching words are cut off.

    Counted in the tokens of a given encoder, else in words for 256 and 512 tokens, a lower bound.
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
    cut_shares = ", ".join(
        f"{rounding.percent(share)} by one of {tokens} tokens" for tokens, share in shares.items()
    )
    losses, lost_any = "", False
    if subject.parts >= {"queries", "qrels"}:
        for by in cuts:
            lost, cut = lost_behind_the_cut(subject, by)
            numbers += [
                (f"relevant {kind} at {by.limit}", float(n)) for kind, n in (("cut", cut), ("lost", lost))
            ]
            lost_any = lost_any or lost > 0
            if cut:
                losses += (
                    f"; of {counted(cut, 'relevant one')} cut at {by.limit}, {lost:,} "
                    f"{one_or_more(lost, 'shares', 'share')} words only after it"
                )
    if max(shares.values()) < LEAST_SHARE and not lost_any:
        return
    yield Finding(
        "caution" if shares[cuts[-1].limit] >= CUT_SHARE else "note",
        f"{opening}{cut_shares}{losses}",
        "split them: chunked(...) encodes passages and takes the best of each document",
        tuple(numbers),
    )
