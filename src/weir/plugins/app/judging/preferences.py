"""Comparisons of two documents, or of two rankings, for a query."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from weir.core.run import Run
from weir.errors import BadValue
from weir.files.journal_labels import Task
from weir.plugins.app.judging.assignment import CLAIM_SECONDS, Table, drawn
from weir.plugins.app.judging.journal import Item
from weir.plugins.app.judging.tasks import Tasks


@dataclass(frozen=True)
class Comparison:
    """Two documents, or two systems' rankings, that a judge compares for a query."""

    number: int
    """Index from 0, its name in pages."""
    task: Task
    """"documents" or "rankings"."""
    query: str
    first: str
    """A document or a system; the first by name."""
    second: str
    documents: tuple[tuple[str, ...], tuple[str, ...]]
    """(documents shown of `first`, of `second`)."""

    def item(self, judge: str) -> Item:
        """Return the journal's key of a judge's answer."""
        return judge, self.task, self.query, self.first, self.second

    def left(self, seed: int, judge: str) -> str:
        """Return the document or system shown on the judge's left, drawn by the seed."""
        return self.first if drawn(seed, "side", *self.item(judge)) < 0.5 else self.second


def compared_documents(tasks: Tasks, each: int, seed: int) -> list[Comparison]:
    """Return comparisons of up to `each` random pairs of documents for each query.

    Raises BadValue if no pair results.
    """
    found: list[Comparison] = []
    for query, pairs in tasks.of_query.items():
        names = sorted(one.document for one in pairs)
        possible = list(combinations(names, 2))
        chosen = random.Random(f"{seed} {query}").sample(possible, min(each, len(possible)))
        for first, second in chosen:
            found.append(Comparison(len(found), "documents", query, first, second, ((first,), (second,))))
    if not found:
        raise BadValue(f"{tasks.name}: no query has two documents to compare, or none were asked for")
    return found


def compared_rankings(first: tuple[str, Run], second: tuple[str, Run], k: int, seed: int) -> list[Comparison]:
    """Return comparisons of two systems' first k documents, in random order of queries.

    Only queries that both answer, differently. Raises BadValue if there are none.
    """
    (name, run), (other, beside) = sorted((first, second), key=lambda one: one[0])
    rankings = [
        {query: tuple(list(found)[:k]) for query, found in one.top(k).to_dict().items()}
        for one in (run, beside)
    ]
    differ = [
        query
        for query in sorted(rankings[0].keys() & rankings[1].keys())
        if rankings[0][query] != rankings[1][query]
    ]
    if not differ:
        raise BadValue(
            f"{name} and {other} return the same first {k} documents for each query that both answer"
        )
    random.Random(seed).shuffle(differ)
    return [
        Comparison(n, "rankings", query, name, other, (rankings[0][query], rankings[1][query]))
        for n, query in enumerate(differ)
    ]


def next_comparison(table: Table, comparisons: Sequence[Comparison], judge: str) -> Comparison | None:
    """Return the comparison to show a judge next; None if nothing is left.

    The one last on the judge's screen, else one that lacks judges, else one that the judge deferred.
    """
    mine = table.in_front(judge)
    if before_me := [one for one in comparisons if one.item(judge) in mine]:
        return max(before_me, key=lambda one: mine[one.item(judge)])
    done: dict[tuple[Task, str, str, str], set[str]] = {}
    for item, since in table.claims.items():
        if table.now - since < CLAIM_SECONDS and item[0] != judge:
            done.setdefault(item[1:], set()).add(item[0])
    for event in table.standing.current():
        if event.task in ("documents", "rankings") and event.kind != "unable":
            done.setdefault(event.item[1:], set()).add(event.judge)
    put_off = None
    for one in comparisons:
        label = table.standing.label(one.item(judge))
        if label is None and len(done.get(one.item(judge)[1:], ())) < table.plan.each:
            return one
        if label is not None and label.kind == "later":
            put_off = put_off or one
    return put_off
