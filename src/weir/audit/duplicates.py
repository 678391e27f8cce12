"""Check for documents and queries with equal or nearly equal texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus, joined
from weir.core.judged import Judged
from weir.core.qrels import Qrels, merge_qrels
from weir.core.rounding import one_or_more, part_of, times
from weir.core.strings import Int32, Int64, StringColumn
from weir.core.subject import Subject
from weir.datasets.card import DuplicateGroups, duplicate_groups, normalised, title_and_text
from weir.kernels import minhash
from weir.kernels.jit import check_available
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.settings import require_memory
from weir.stats.resampling import interval
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.terms import TermTable

MEASURE = "nDCG@10"


def expanded(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> tuple[Qrels, int]:
    """Return (judgments, number added): unjudged duplicates of judged documents get the highest grade of the
    judged ones, with origin "duplicate".

    groups: equal documents of the corpus.
    """
    at = corpus.ids.codes(qrels.docs.strings)
    group = np.where(at[qrels.doc] >= 0, groups.number[at[qrels.doc]], -1)
    rows = np.flatnonzero(group >= 0)
    of_query, grades, members = (
        qrels.query_of_row()[rows].tolist(),
        qrels.grade[rows].tolist(),
        groups.members(),
    )
    judged = set(zip(of_query, at[qrels.doc[rows]].tolist(), strict=True))
    best: dict[tuple[int, int], float] = {}
    for query, number, grade in zip(of_query, group[rows].tolist(), grades, strict=True):
        best[query, number] = max(grade, best.get((query, number), grade))
    added = [
        (query, int(doc), grade)
        for (query, number), grade in best.items()
        for doc in members[number]
        if (query, int(doc)) not in judged
    ]
    if not added:
        return qrels, 0
    query, doc, grade = (np.array(column) for column in zip(*added, strict=True))
    shared = Qrels.from_columns(qrels.queries, corpus.ids, query, doc, grade)
    return merge_qrels(qrels, shared.labelled("duplicate")), len(added)


def copies(columns: Sequence[StringColumn], form: Callable[[str], str] | None = None) -> DuplicateGroups:
    """Return groups of rows that have equal text in every column, without blank texts.

    form: maps a text to the form to compare; None for the text itself.
    """
    groups = duplicate_groups(columns, form)
    firsts = [int(rows[0]) for rows in groups.members()]
    empty = [n for n, row in enumerate(firsts) if not any(column[row].strip() for column in columns)]
    with_text = np.setdiff1d(np.unique(groups.number[groups.number >= 0]), empty)
    renumbered = np.full(len(firsts) + 1, -1, np.int64)
    renumbered[with_text] = np.arange(len(with_text))
    return DuplicateGroups(renumbered[groups.number])


@check("duplicates", needs=["corpus"])
def duplicates(subject: Subject) -> Iterator[Finding]:
    """Documents of the same text, as it is and after normalising, by text alone and by title and text.

    With judgments, also copies that are judged differently or unjudged, and their effect on scores.
    """
    corpus = subject.need_corpus()
    both = title_and_text(corpus)
    counts = {
        "by title and text": copies(both),
        "by text": copies((corpus.text,)),
        "by title and text, normalised": copies(both, normalised),
        "by text, normalised": copies((corpus.text,), normalised),
    }
    numbers = [(f"documents {name}", float(g.rows)) for name, g in counts.items()]
    numbers += [(f"surplus {name}", float(g.surplus)) for name, g in counts.items()]
    widest = counts["by text, normalised"]
    if not widest.rows:
        return
    numbers_shown = "; ".join(f"{name} {g.rows:,} ({g.surplus:,} surplus)" for name, g in counts.items())
    examples = tuple(" = ".join(corpus.ids[int(row)] for row in group[:4]) for group in widest.members()[:5])
    yield Finding(
        "caution",
        f"{widest.rows:,} of {len(corpus):,} documents share their text with another: {numbers_shown}",
        "a ranking that returns copies is scored for each of them; see what judging copies alike changes",
        tuple(numbers),
        examples,
    )
    if subject.qrels is not None:
        groups = counts["by title and text, normalised"]
        yield from _conflicting_labels(subject.qrels, corpus, groups)
        yield from _unjudged_copies(subject, subject.qrels, corpus, groups)


def _conflicting_labels(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> Iterator[Finding]:
    clashes = _conflicts(qrels, corpus, groups)
    if clashes:
        query, names = clashes[0]
        yield Finding(
            "serious",
            f"{times(len(clashes))} one query judges documents of the same title and text differently, such as "
            f"{' and '.join(names)} for query {query}",
            "one of the labels is wrong: judge these pairs again",
            (("pairs of query and group", float(len(clashes))),),
            tuple(f"{q}: {', '.join(n)}" for q, n in clashes),
        )


def _unjudged_copies(
    subject: Subject, qrels: Qrels, corpus: Corpus, groups: DuplicateGroups
) -> Iterator[Finding]:
    wider, added = expanded(qrels, corpus, groups)
    if not added:
        return
    measure = parse_measure(MEASURE)
    effects: dict[str, tuple[float, str]] = {}  # change of each system's mean, and with its interval
    for name, run in subject.runs.items():
        before = scores_of(subject.joins[name], (measure,))
        after = scores_of(Judged.of(run, wider), (measure,))
        difference = after.in_id_order(MEASURE) - before.in_id_order(MEASURE)
        low, high = interval(difference)
        change = float(difference.mean())
        bounds = rounding.between(low, high, rounding.change)
        effects[name] = change, f"; {name}: {MEASURE} {rounding.change(change)} {bounds}"
    yield Finding(
        "serious" if any(abs(change) >= 0.005 for change, _ in effects.values()) else "caution",
        f"{added:,} {one_or_more(added, 'copy of a judged document is', 'copies of judged documents are')} "
        f"unjudged for the same query and {one_or_more(added, 'counts', 'count')} as not relevant"
        + "".join(text for _, text in effects.values()),
        "give copies the grade of their document before comparing systems (weir audit --expand)",
        (
            ("unjudged copies", float(added)),
            *((f"{MEASURE} change, {name}", change) for name, (change, _) in effects.items()),
        ),
    )


def _conflicts(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> list[tuple[str, list[str]]]:
    at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    group = np.where(at >= 0, groups.number[at], -1)
    rows = np.flatnonzero(group >= 0)
    query: Int32 = qrels.query_of_row()[rows]
    order = np.lexsort((group[rows], query))
    rows, query = rows[order], query[order]
    number, grade = group[rows], qrels.grade[rows]
    cuts = np.flatnonzero((np.diff(query) != 0) | (np.diff(number) != 0)) + 1
    parts = np.split(np.arange(len(rows)), cuts) if len(rows) else []
    return [
        (qrels.queries[int(query[part[0]])], [qrels.docs[int(qrels.doc[r])] for r in rows[part]])
        for part in parts
        if grade[part].min() != grade[part].max()
    ]


@check("duplicate queries", needs=["queries"])
def duplicate_queries(subject: Subject) -> Iterator[Finding]:
    """Queries of the evaluated split with the same text, as written or after normalising."""
    queries = subject.judged_queries
    groups, written = copies((queries.text,), normalised), copies((queries.text,)).rows
    if not groups.rows:
        return
    members = groups.members()
    examples = tuple(" = ".join(queries.ids[int(row)] for row in group[:4]) for group in members[:5])
    yield Finding(
        "caution",
        f"{groups.rows:,} of {len(queries):,} {subject.queries_called} share their text with another: {written:,} as "
        f"it is written, {groups.rows - written:,} only after normalising ({groups.surplus:,} surplus)",
        "intervals and tests take queries as independent: count copies once, or resample groups",
        (
            ("queries", float(groups.rows)),
            ("as written", float(written)),
            ("surplus", float(groups.surplus)),
        ),
        examples,
    )


# Near copies: documents whose words are almost those of another, found without comparing all pairs.

NEAR = 0.8
"""Jaccard index of the shingles of two texts from which they are near copies."""
SHINGLE_TERMS = 3
DOCUMENT_BYTES = 300
"""Memory of a document during the search."""
BANDS, ROWS_PER_BAND = 20, 6
"""A pair of Jaccard index 0.8 shares a band, and so is compared, with probability 0.998, one of 0.5 with 0.27."""
LEADERS_COMPARED = 64
"""Most texts of a bucket with which another text is compared."""
MINHASH_SEED = 1997
"""Seed of the permutations: the year of MinHash (Broder)."""
ANALYZER = "lucene-standard"
BATCH_BYTES, BATCH_DOCUMENTS = 1 << 22, 1 << 14


def near_copies(corpus: Corpus) -> tuple[DuplicateGroups, Int64, int]:
    """Return (groups of documents with nearly the same title and text, leaders, number of comparisons skipped).

    leaders: row of the first document of each document's group (without a group its own), int64[n]; members
        share at least 80% of their three-word sequences (Jaccard) with it.

    Copies may be missed if comparisons are skipped. Raises MissingExtra without the `run` extra, BadValue for
    too little memory.
    """
    # Jaccard index of sets of SHINGLE_TERMS consecutive words, lowercased, without punctuation. Candidates
    # share a band of their MinHash signatures; each is compared exactly. Broder 1997; Indyk and Motwani 1998.
    check_available()
    require_memory(
        DOCUMENT_BYTES * len(corpus), f"the search for near copies among {len(corpus):,} documents"
    )
    terms = TermTable(analyzers.get(ANALYZER))
    drawn = np.random.default_rng(MINHASH_SEED).integers(0, 1 << 31, BANDS * ROWS_PER_BAND, dtype=np.uint32)
    multipliers = drawn * np.uint32(2) + np.uint32(1)
    keys = np.zeros((len(corpus), BANDS), np.uint64)
    for start, texts in corpus.batches("title text", BATCH_BYTES):
        ptr, numbers = terms.add(texts)
        minhash.band_keys(ptr, numbers, SHINGLE_TERMS, multipliers, keys[start : start + len(texts)])
    bucket, candidates = _buckets(keys)
    lengths, parts = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    for start in range(0, len(candidates), BATCH_DOCUMENTS):
        rows = candidates[start : start + BATCH_DOCUMENTS]
        text = corpus.text.take(rows)
        ptr, term = terms.lookup(text if corpus.title is None else joined(corpus.title.take(rows), text))
        lengths.append(np.diff(ptr))
        parts.append(term)
    ptr, numbers = np.cumsum(np.concatenate(lengths)), np.concatenate(parts)
    count, shingle = np.zeros(len(candidates), np.int64), np.empty(len(numbers), np.int64)
    spare = np.empty(int(np.diff(ptr).max(initial=0)), np.int64)
    minhash.shingle_sets(ptr, numbers, SHINGLE_TERMS, count, shingle, spare, np.empty(2048, np.int64))
    local = np.empty(len(candidates), np.int64)
    most = np.full(int(bucket.max(initial=-1)) + 1, LEADERS_COMPARED, np.int32)
    skipped = minhash.leaders(ptr, count, shingle, bucket, most, NEAR, local)
    leader = np.arange(len(corpus))
    leader[candidates] = candidates[local]
    firsts = np.flatnonzero(np.bincount(leader, minlength=len(leader)) > 1)
    number = np.full(len(leader), -1, np.int64)
    number[firsts] = np.arange(len(firsts))
    return DuplicateGroups(number[leader]), leader, int(skipped)


def _buckets(keys: NDArray[np.uint64]) -> tuple[Int32, Int64]:
    n, bands = keys.shape
    bucket = np.full((n, bands), -1, np.int32)
    numbered = 0
    for band in range(bands):
        column = keys[:, band]
        order = np.argsort(column, kind="stable")
        opens = np.append(True, np.diff(column[order]) != 0)[:n]
        run = np.cumsum(opens) - 1
        shared = (np.bincount(run) > 1)[run] & (column[order] != 0)
        number = np.cumsum(opens & shared) - 1 + numbered
        bucket[order[shared], band] = number[shared]
        numbered += int(np.count_nonzero(opens & shared))
    rows = np.flatnonzero((bucket >= 0).any(axis=1))
    return bucket[rows], rows


@check("near duplicates", needs=["corpus"])
def near_duplicates(subject: Subject) -> Iterator[Finding]:
    """Documents whose title and text nearly equal another's: 80% or more of three-word sequences are shared, but
    more than case and signs differ (see `duplicates`); and queries that judge near copies differently.

    Source: Broder 1997.
    """
    # Documents that are the same after normalising are counted by `duplicates`.
    corpus = subject.need_corpus()
    groups, leader, skipped = near_copies(corpus)
    same = copies(title_and_text(corpus), normalised).number
    rows = np.flatnonzero((leader != np.arange(len(corpus))) & ((same < 0) | (same != same[leader])))
    if not len(rows):
        return
    yield Finding(
        "caution",
        f"{part_of(len(rows), len(corpus), 'documents', 'is', 'are')} almost another: the Jaccard index of "
        f"their sets of {SHINGLE_TERMS} consecutive words is {NEAR} or more",
        "a ranking that returns both is scored for each of them, and an unjudged one counts as not relevant",
        (("near copies", float(len(rows))), ("comparisons left out", float(skipped))),
        tuple(f"{corpus.ids[int(row)]} ~ {corpus.ids[int(leader[row])]}" for row in rows[:5]),
    )
    if subject.qrels is None:
        return
    beyond = np.where(np.isin(leader, leader[rows]), groups.number, -1)
    clashes = _conflicts(subject.qrels, corpus, DuplicateGroups(beyond))
    if clashes:
        yield Finding(
            "caution",
            f"{times(len(clashes))} one query judges near copies differently",
            "look at these pairs: what differs may be what matters, or one of the labels is wrong",
            (("pairs of query and group", float(len(clashes))),),
            tuple(f"{query}: {', '.join(names)}" for query, names in clashes),
        )
