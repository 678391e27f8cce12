"""One order for every query: re-rankings whose order does not depend on what the documents say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.same_rankings import FIRST_RANKS, KEPT_SHARE
from weir.audit.subject import Subject
from weir.core.run import Run
from weir.core.strings import Int64

__all__ = ["commonest_order", "places_in"]

CANDIDATES = 100
"""Documents of a ranking that another may have put into an order of its own."""
FEWEST_QUERIES = 10


def places_in(first: Run, second: Run, k: int = FIRST_RANKS, depth: int = CANDIDATES) -> Int64:
    """int64[n, k]: the place in `first` of each of the first k documents of `second`, 0 for deeper than `depth`.

    A row for each query that both answer, with k documents or more in the second, in the second's order of queries.
    """
    candidates, top = first.top(depth), second.top(k)
    query = candidates.queries.codes(top.queries.strings)
    whole = np.flatnonzero((np.diff(top.ptr) == k) & (query >= 0))
    rows = (top.ptr[whole, None] + np.arange(k)).ravel()
    docs = candidates.docs.codes(top.docs.strings)[top.doc[rows]].astype(np.int64)
    size = max(1, len(candidates.docs))
    asked = np.where(docs >= 0, np.repeat(query[whole].astype(np.int64), k) * size + docs, -1)
    held = candidates.query_of_row().astype(np.int64) * size + candidates.doc
    order = np.argsort(held, kind="stable")
    at = np.minimum(np.searchsorted(held[order], asked), max(0, len(held) - 1))
    found = order[at] if len(held) else at
    place = np.where(held[found] == asked, candidates.ranks()[found], 0) if len(held) else 0 * at
    return np.asarray(place, np.int64).reshape(len(whole), k)


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


@check("one order", needs=["runs"])
def one_order(subject: Subject) -> Iterator[Finding]:
    """Systems whose first ten documents come from the same places of another's ranking for half of the queries.

    So looks a re-ranking by a language model that answers alike whatever it is asked about; its score hides that.
    """
    for one, other in permutations(subject.runs, 2):
        places = places_in(subject.runs[one], subject.runs[other])
        order, count = commonest_order(places)
        if len(places) >= FEWEST_QUERIES and count >= KEPT_SHARE * len(places):
            named = ", ".join(map(str, order))
            yield Finding(
                "serious",
                f"the first {FIRST_RANKS} documents of {other} stand at the places {named} of {one} for {count:,} of "
                f"{len(places):,} queries",
                "an order that does not depend on the documents is no ranking: look at what was asked and answered",
                (("queries", float(count)), ("share", count / len(places))),
            )
