"""Check for rankings that equal another's, ignore the query, or begin with off-topic documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.bias import term_overlap
from weir.audit.check import Finding, Severity, check
from weir.core.dangling import written_otherwise
from weir.core.qrels import Qrels
from weir.core.rounding import counted, one_or_more
from weir.core.run import Run
from weir.core.strings import Int64, hash_strings
from weir.core.subject import Subject
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.score_rows import deeper_notes

FIRST_RANKS = 10
FEWEST_DOCUMENTS = 3
"""Length of a ranking below which two systems may agree by chance."""
SAME_SHARE = 0.5
"""Share of queries with the same first documents, or the same permutation of another's, that is reported."""
CANDIDATES = 100
"""Depth of a first ranking in which another's first documents are looked for."""
FEWEST_QUERIES = 10
OFF_TOPIC_RANKS = 3
FEW_ANSWERED = 0.5
"""Share of answered queries below which a mean says little."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def ranking_hashes(run: Run) -> dict[str, int]:
    """Return {query: hash of its first ten documents in order}, without rankings of fewer than three documents."""
    top = run.top(FIRST_RANKS)
    names = top.docs.strings
    of_doc = hash_strings(names.data, names.ptr[:-1], names.lengths())[top.doc]
    rank = top.ranks()
    whole: NDArray[np.uint64] = np.zeros(len(top), np.uint64)
    query = top.query_of_row()
    for place in range(1, FIRST_RANKS + 1):
        rows = rank == place
        whole[query[rows]] = (whole[query[rows]] ^ of_doc[rows]) * _MULTIPLIER
    long = np.flatnonzero(np.diff(top.ptr) >= FEWEST_DOCUMENTS)
    return dict(zip(top.queries.take(long).tolist(), whole[long].tolist(), strict=True))


@check("same rankings", needs=["runs"])
def same_rankings(subject: Subject) -> Iterator[Finding]:
    """Systems whose first ten documents are the same, in the same order, for half of the queries or more."""
    # Causes: a re-ranking that failed and kept the order of its first stage; one run file under two names; a step
    # that changes nothing on this collection, such as feedback that adds no term.
    hashes = {name: ranking_hashes(run) for name, run in subject.runs.items()}
    for one, other in combinations(hashes, 2):
        common = hashes[one].keys() & hashes[other].keys()
        same = sorted(query for query in common if hashes[one][query] == hashes[other][query])
        if common and len(same) >= SAME_SHARE * len(common):
            known = [subject.unscored[name] for name in (one, other) if name in subject.unscored]
            reranked = any(candidates for _, candidates in known)
            severity: Severity = "wrong" if len(same) == len(common) else "serious"
            if len(known) == 2 and not reranked:
                severity = "caution"
                remedy = (
                    "neither is a re-ranking: one adds nothing to the other here; see that its settings take "
                    "effect, or report one of the two"
                )
            else:
                remedy = (
                    "a re-ranking that failed keeps its first stage's order: read its requests and answers"
                )
                remedy = remedy if reranked else f"is it one file under two names? {remedy}"
            yield Finding(
                severity,
                f"{one} and {other} have the same first {FIRST_RANKS} documents in the same order for {len(same):,} of "
                f"{len(common):,} queries",
                remedy,
                (("queries", float(len(same))), ("share", len(same) / len(common))),
                tuple(same),
            )


def places_in(first: Run, second: Run) -> Int64:
    """Return the rank in `first` of each of the top ten documents of `second`, int64[queries, 10], for
    queries that both answer, in the order of `second`.

    0 if a document is not in the top 100 of `first`, -1 beyond the end of a ranking of `second`.
    """
    candidates, top = first.top(CANDIDATES), second.top(FIRST_RANKS)
    query = candidates.queries.codes(top.queries.strings).astype(np.int64)
    docs = candidates.docs.codes(top.docs.strings)[top.doc].astype(np.int64)
    size = max(1, len(candidates.docs))
    of_row = top.query_of_row()
    pair_of_row = np.where((docs >= 0) & (query[of_row] >= 0), query[of_row] * size + docs, -1)
    pairs = candidates.query_of_row().astype(np.int64) * size + candidates.doc
    order = np.argsort(pairs, kind="stable")
    place = np.zeros(len(pair_of_row), np.int64)
    if len(pairs):
        row = order[np.minimum(np.searchsorted(pairs[order], pair_of_row), len(pairs) - 1)]
        place = np.where(pairs[row] == pair_of_row, candidates.ranks()[row], 0)
    places = np.full((len(top), FIRST_RANKS), -1, np.int64)
    places[of_row, top.ranks() - 1] = place
    answered = np.append(np.diff(candidates.ptr), 0)[query] > 0
    return places[answered & (np.diff(top.ptr) > 0)]


def commonest_order(places: Int64) -> tuple[tuple[int, ...], int]:
    """Return (most frequent row, its frequency), among rows that are not ascending and have no 0 or -1; ((),
    0) if none.

    places: from `places_in`, int64[queries, ranks].
    """
    # Ascending places do not count (a filter leaves the first ranking so), nor orders with a document the first
    # lacks.
    turned = places[(places > 0).all(axis=1) & (np.diff(places, axis=1) < 0).any(axis=1)]
    if not len(turned):
        return (), 0
    orders, counts = np.unique(turned, axis=0, return_counts=True)
    best = int(counts.argmax())
    return tuple(orders[best].tolist()), int(counts[best])


def _constant_order(places: Int64) -> tuple[tuple[int, ...], int, int]:
    for length in range(places.shape[1], FEWEST_DOCUMENTS - 1, -1):
        part = places[places[:, length - 1] >= 0, :length]
        order, count = commonest_order(part)
        if len(part) >= FEWEST_QUERIES and count >= SAME_SHARE * len(part):
            return order, count, len(part)
    return (), 0, 0


@check("order and scores", needs=["runs"])
def order_and_scores(subject: Subject) -> Iterator[Finding]:
    """Systems whose ranks, or the order of whose rows, contradict their scores."""
    # Causes: distances (less is better) instead of scores, columns in another order, or re-ranked documents whose
    # scores are not comparable to the rest.
    for name, run in subject.runs.items():
        for doubt in run.doubts:
            yield Finding(
                "serious",
                f"{doubt}; the highest score counts as the best",
                "negate distances; weir data import FILE -o DIR --as run-ranks keeps the ranks of a file",
                system=name,
            )


@check("unanswered queries", needs=["runs", "qrels"])
def unanswered_queries(subject: Subject) -> Iterator[Finding]:
    """Systems that return nothing for some of the judged queries, which count as 0 in their means."""
    # Causes: a run of another split or of some queries, identifiers written in another way, a run cut short.
    qrels = subject.need_qrels()
    for name, run in subject.runs.items():
        asked = run.queries.codes(qrels.queries.strings)
        silent = np.flatnonzero((asked < 0) | (np.append(np.diff(run.ptr), 0)[asked] == 0))
        if len(silent):
            answered = len(asked) - len(silent)
            yield Finding(
                "serious" if answered < FEW_ANSWERED * len(asked) else "caution",
                f"it answers {answered:,} of {counted(len(asked), 'judged query', 'judged queries')}; the others "
                "count as 0 in its means",
                "see whether the run is whole, of this split, and spells the identifiers of queries as here",
                (("answered", float(answered)), ("judged queries", float(len(asked)))),
                tuple(qrels.queries.take(silent[:5]).tolist()),
                system=name,
            )


@check("depths", needs=["runs", "qrels"])
def depths(subject: Subject) -> Iterator[Finding]:
    """Systems whose rankings end much earlier than another's, by the measures of a results folder, else by AP."""
    # Causes: another number of documents asked for, a re-ranker that returns its candidates alone, a file cut short.
    uneven: Iterable[str] = subject.uneven_depths or ()
    if subject.uneven_depths is None:
        scores = {name: scores_of(joined, (parse_measure("AP"),)) for name, joined in subject.joins.items()}
        uneven = (note.text for note in deeper_notes(scores))
    for sentence in uneven:
        yield Finding(
            "caution" if subject.uneven_depths is None else "serious",
            f"{sentence}; the longer ones can gain where the shorter end",
            "compare by a measure that looks no deeper than the shortest, or run all to one depth",
        )


@check("identifiers", needs=["runs", "qrels"])
def identifiers(subject: Subject) -> Iterator[Finding]:
    """Identifiers in rankings that only look like judged ones, so that their queries and documents count as
    unjudged."""
    # Causes: blanks and invisible characters of a spreadsheet or page, letters composed otherwise, as on a Mac.
    qrels = subject.need_qrels()
    for name, run in subject.runs.items():
        for what, own, judged in (("document", run.docs, qrels.docs), ("query", run.queries, qrels.queries)):
            found = written_otherwise(own, judged)
            if found:
                several = "queries" if what == "query" else "documents"
                look, are = one_or_more(len(found), "looks", "look"), one_or_more(len(found), "is", "are")
                yield Finding(
                    "serious",
                    f"{counted(len(found), what, several)} of its rankings {look} like judged {several}, but {are} "
                    f"written with other signs, such as {found[0][0]!a} for {found[0][1]!a}, and count as unjudged",
                    "write identifiers alike in all files, such as in NFC and without blanks around them",
                    ((several, float(len(found))),),
                    tuple(one for one, _ in found[:5]),
                    system=name,
                )


@check("query-independent rankings", needs=["runs"])
def query_independent_rankings(subject: Subject) -> Iterator[Finding]:
    """Systems whose first 3 to 10 documents are the same permutation of another system's ranking for half of
    the queries."""
    # Cause: a language model that gives the same answer to every re-ranking prompt, which scores do not show.
    for pair in combinations(subject.runs, 2):
        directions = [
            (one, other, *_constant_order(places_in(subject.runs[one], subject.runs[other])))
            for one, other in (pair, pair[::-1])
        ]
        one, other, order, count, queries = max(directions, key=lambda row: (len(row[2]), row[3]))
        if order:
            places = ", ".join(map(str, order))
            yield Finding(
                "serious",
                f"the first {len(order)} documents of {other} stand at the places {places} of {one} for {count:,} of "
                f"{queries:,} queries",
                "an order that does not depend on the documents is no ranking: read the requests and answers",
                (("queries", float(count)), ("share", count / queries)),
            )


def off_topic_results(subject: Subject, run: Run, k: int = OFF_TOPIC_RANKS) -> list[tuple[str, str]]:
    """Return (query, document) pairs in the top k whose document shares no term with its query, by rank.

    Only of judged queries, without relevant documents. Raises BadValue without judgments, documents or
    queries.
    """
    top, qrels = run.top(k), subject.need_qrels()
    judged = qrels.queries.codes(top.queries.strings)[top.query_of_row()]
    good = qrels.grade > 0
    relevant = set(zip(qrels.query_of_row()[good].tolist(), qrels.doc[good].tolist(), strict=True))
    doc = qrels.docs.codes(top.docs.strings)[top.doc]
    pairs_of_rows = zip(judged.tolist(), doc.tolist(), strict=True)
    rows = np.array([pair[0] >= 0 and pair not in relevant for pair in pairs_of_rows], bool)
    pairs = Qrels.from_columns(
        top.queries, top.docs, top.query_of_row()[rows], top.doc[rows], top.ranks()[rows].astype(np.int16)
    )
    unlike = np.flatnonzero(term_overlap(subject, pairs) == 0)
    unlike = unlike[np.argsort(pairs.grade[unlike], kind="stable")]
    query = pairs.query_of_row()[unlike]
    return [
        (pairs.queries[int(q)], pairs.docs[int(d)]) for q, d in zip(query, pairs.doc[unlike], strict=True)
    ]


@check("off-topic results", needs=["corpus", "queries", "qrels", "runs"])
def off_topic_check(subject: Subject) -> Iterator[Finding]:
    """Documents at rank 1 to 3 that are not judged relevant and share no term with the query; a list to read."""
    for name, run in subject.runs.items():
        pairs = off_topic_results(subject, run)
        if pairs:
            yield Finding(
                "note",
                f"{counted(len(pairs), 'answer')} among the first {OFF_TOPIC_RANKS} "
                f"{one_or_more(len(pairs), 'shares', 'share')} no term with the query and "
                f"{one_or_more(len(pairs), 'is', 'are')} not judged relevant",
                "read some: each is a missing judgment, a match by meaning, or an error that users see",
                (("answers", float(len(pairs))),),
                tuple(f"{query}: {doc}" for query, doc in pairs),
                system=name,
            )
