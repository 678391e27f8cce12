"""Rankings that do not depend on the query, equal another's, or name off-topic documents."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.bias import term_overlap
from weir.audit.check import Finding, check
from weir.core.qrels import Qrels
from weir.core.rounding import counted, one_or_more
from weir.core.run import Run
from weir.core.strings import Int64, hash_strings
from weir.core.subject import Subject

# ----------
# Rankings that are those of another system: re-rankings that failed without a word, files given twice.


FIRST_RANKS = 10
FEWEST_DOCUMENTS = 3
"""Documents of a ranking below which two systems may agree by chance."""
KEPT_SHARE = 0.5
"""Share of queries with the same first ranks from which two systems are said to be one in part."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def ranking_hashes(run: Run, k: int = FIRST_RANKS) -> dict[str, int]:
    """A hash of the first k documents in their order by query, of rankings with FEWEST_DOCUMENTS at least."""
    top = run.top(k)
    names = top.docs.strings
    of_doc = hash_strings(names.data, names.ptr[:-1], names.lengths())[top.doc]
    rank = top.ranks()
    whole: NDArray[np.uint64] = np.zeros(len(top), np.uint64)
    query = top.query_of_row()
    for place in range(1, k + 1):
        rows = rank == place
        whole[query[rows]] = (whole[query[rows]] ^ of_doc[rows]) * _MULTIPLIER
    long = np.flatnonzero(np.diff(top.ptr) >= min(FEWEST_DOCUMENTS, k))
    return dict(zip(top.queries.take(long).tolist(), whole[long].tolist(), strict=True))


@check("same rankings", needs=["runs"])
def same_rankings(subject: Subject) -> Iterator[Finding]:
    """Systems whose first ten documents are the same, in the same order, for half of the queries or more.

    So looks a re-ranking that failed and kept the order of its first stage, and a run file given twice.
    """
    hashes = {name: ranking_hashes(run) for name, run in subject.runs.items()}
    for one, other in combinations(hashes, 2):
        common = hashes[one].keys() & hashes[other].keys()
        same = sorted(query for query in common if hashes[one][query] == hashes[other][query])
        if common and len(same) >= KEPT_SHARE * len(common):
            yield Finding(
                "wrong" if len(same) == len(common) else "serious",
                f"{one} and {other} have the same first {FIRST_RANKS} documents in the same order for {len(same):,} of "
                f"{len(common):,} queries",
                "a re-ranking that failed keeps its first stage's order: look at what it was asked and answered",
                (("queries", float(len(same))), ("share", len(same) / len(common))),
                tuple(same),
            )


# ----------
# One order for every query: re-rankings whose order does not depend on what the documents say.


CANDIDATES = 100
"""Documents of a ranking that another may have put into an order of its own."""
FEWEST_QUERIES = 10


def places_in(first: Run, second: Run, k: int = FIRST_RANKS, depth: int = CANDIDATES) -> Int64:
    """int64[n, k]: the place in `first` of each of the first k documents of `second`.

    0 for deeper than `depth`, -1 behind the end of a ranking with fewer than k. A row for each query that both answer,
    in the second's order of queries.
    """
    candidates, top = first.top(depth), second.top(k)
    query = candidates.queries.codes(top.queries.strings).astype(np.int64)
    docs = candidates.docs.codes(top.docs.strings)[top.doc].astype(np.int64)
    size = max(1, len(candidates.docs))
    of_row = top.query_of_row()
    asked = np.where((docs >= 0) & (query[of_row] >= 0), query[of_row] * size + docs, -1)
    held = candidates.query_of_row().astype(np.int64) * size + candidates.doc
    order = np.argsort(held, kind="stable")
    place = np.zeros(len(asked), np.int64)
    if len(held):
        row = order[np.minimum(np.searchsorted(held[order], asked), len(held) - 1)]
        place = np.where(held[row] == asked, candidates.ranks()[row], 0)
    found = np.full((len(top), k), -1, np.int64)
    found[of_row, top.ranks() - 1] = place
    answered = np.append(np.diff(candidates.ptr), 0)[query] > 0
    return found[answered & (np.diff(top.ptr) > 0)]


def commonest_order(places: Int64) -> tuple[tuple[int, ...], int]:
    """(the places of the commonest order, of how many rows); ((), 0) for none.

    Orders that go down the first ranking, whatever they leave out of it, do not count: so looks one without what it may
    not return. Nor do those with a document that it does not have.
    """
    turned = places[(places > 0).all(axis=1) & (np.diff(places, axis=1) < 0).any(axis=1)]
    if not len(turned):
        return (), 0
    orders, counts = np.unique(turned, axis=0, return_counts=True)
    best = int(counts.argmax())
    return tuple(orders[best].tolist()), int(counts[best])


def _constant_order(places: Int64) -> tuple[tuple[int, ...], int, int]:
    """(the longest order of first places that half of the queries or more have, of how many queries, of how many long
    enough); ((), 0, 0) for none.
    """
    for length in range(places.shape[1], FEWEST_DOCUMENTS - 1, -1):
        part = places[places[:, length - 1] >= 0, :length]
        order, count = commonest_order(part)
        if len(part) >= FEWEST_QUERIES and count >= KEPT_SHARE * len(part):
            return order, count, len(part)
    return (), 0, 0


@check("one order", needs=["runs"])
def one_order(subject: Subject) -> Iterator[Finding]:
    """Systems whose first 3 to 10 documents come from the same places of another's ranking for half of the queries.

    So looks a re-ranking by a language model that answers alike whatever it is asked about; its score hides that.
    """
    for pair in combinations(subject.runs, 2):
        directions = [
            (one, other, *_constant_order(places_in(subject.runs[one], subject.runs[other])))
            for one, other in (pair, pair[::-1])
        ]
        one, other, order, count, asked = max(directions, key=lambda found: (len(found[2]), found[3]))
        if order:
            named = ", ".join(map(str, order))
            yield Finding(
                "serious",
                f"the first {len(order)} documents of {other} stand at the places {named} of {one} for {count:,} of "
                f"{asked:,} queries",
                "an order that does not depend on the documents is no ranking: look at what was asked and answered",
                (("queries", float(count)), ("share", count / asked)),
            )


# ----------
# Howlers: answers near the top that are not relevant and have nothing in common with the query.


OFF_TOPIC_RANKS = 3


def howlers_of(subject: Subject, run: Run, k: int = OFF_TOPIC_RANKS) -> list[tuple[str, str]]:
    """(query, document) among the first k, not judged relevant, without a term of the query, by rank."""
    top, qrels = run.top(k), subject.need_qrels()
    asked = qrels.queries.codes(top.queries.strings)[top.query_of_row()]
    good = {
        (q, d)
        for q, d, g in zip(
            qrels.query_of_row().tolist(), qrels.doc.tolist(), qrels.grade.tolist(), strict=True
        )
        if g > 0
    }
    doc = qrels.docs.codes(top.docs.strings)[top.doc]
    rows = np.array(
        [q >= 0 and (q, d) not in good for q, d in zip(asked.tolist(), doc.tolist(), strict=True)], bool
    )
    pairs = Qrels.from_columns(
        top.queries, top.docs, top.query_of_row()[rows], top.doc[rows], top.ranks()[rows].astype(np.int16)
    )
    bare = np.flatnonzero(term_overlap(subject, pairs) == 0)
    bare = bare[np.argsort(pairs.grade[bare], kind="stable")]
    query = pairs.query_of_row()[bare]
    return [(pairs.queries[int(q)], pairs.docs[int(d)]) for q, d in zip(query, pairs.doc[bare], strict=True)]


@check("howlers", needs=["corpus", "queries", "qrels", "runs"])
def howlers(subject: Subject) -> Iterator[Finding]:
    """Answers at rank 1 to 3 that are not judged relevant and share no term with the query: look at some of them.

    What a system finds by meaning alone looks so too; it is a list for reading, not a mistake by itself.
    """
    for name, run in subject.runs.items():
        found = howlers_of(subject, run)
        if found:
            yield Finding(
                "note",
                f"{counted(len(found), 'answer')} among the first {OFF_TOPIC_RANKS} "
                f"{one_or_more(len(found), 'shares', 'share')} no term with the query and "
                f"{one_or_more(len(found), 'is', 'are')} not judged relevant",
                "read some: each is a gap of the judgments, a find by meaning, or a mistake to be seen by users",
                (("answers", float(len(found))),),
                tuple(f"{query}: {doc}" for query, doc in found),
                system=name,
            )
