"""One order for every query: re-rankings whose order does not depend on what the documents say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.same_rankings import FEWEST_DOCUMENTS, FIRST_RANKS, KEPT_SHARE
from weir.core.run import Run
from weir.core.strings import Int64
from weir.core.subject import Subject

__all__ = ["commonest_order", "places_in"]

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
