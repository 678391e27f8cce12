"""The page of a typed query, answered by a folder's systems; nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.core.corpus import Queries
from weir.errors import WeirError
from weir.experiment.results import ResultCell
from weir.plugins.app.answers import Column, columns_of, judgments_of, news, pool_judgments
from weir.plugins.app.choices import System, cells_of, systems_text
from weir.plugins.app.folder import Results
from weir.plugins.app.marking import Words
from weir.plugins.app.server import Page, Visit, address
from weir.systems.composite import parts_of, rankings
from weir.systems.expression import parse_system
from weir.systems.protocol import Context
from weir.systems.stored_run import CandidatePool, StoredRun

ANSWERS = 10
QUERY_CHARACTERS = 2000
DEPTH = 100
"""Documents requested, so that ranks in other rankings are known."""
WAITS = "It asks a service for each query, and waits for Ask."
NO_SEARCH = "It is rankings in a file, which answer the queries of that file alone."


@dataclass(frozen=True)
class Trial:
    """The page of a typed query: some systems' rankings."""

    collection: str
    collections: tuple[str, ...]
    systems: tuple[System, ...]
    """All systems of the collection."""
    query: str
    columns: tuple[Column, ...]
    known: str
    """The collection's query with this text, whose grades are shown; "" without one."""
    golden: str
    """The golden set's collection file to which the query may be added; "" without pools."""
    waiting: bool
    """True if a system asks a service, which only a POST request does."""

    @property
    def chosen(self) -> list[str]:
        """Short names of the searched systems."""
        return [column.system.label for column in self.columns]

    def with_systems(self, labels: Sequence[str]) -> str:
        """Return this page's URL with other systems, by short names."""
        return address("try", collection=self.collection, query=self.query, systems=systems_text(labels))

    def opened(self, document: str) -> str:
        """Return the URL of a document's page for this query."""
        return address("c", self.collection, "d", document, query=self.query)


def trial(visit: Visit) -> Trial:
    """Return the page of up to four systems' rankings for the URL's query; systems that ask services are not
    searched."""
    return _trial(visit, visit.one("query"), False)


def ask(visit: Visit) -> Trial:
    """Return the page of up to four systems' rankings for a form's query, also by systems that ask services."""
    return _trial(visit, visit.given.get("query", ""), True)


def _trial(visit: Visit, query: str, paid: bool) -> Trial:
    results, query = visit.folder.results(), query.strip()[:QUERY_CHARACTERS]
    collection = visit.one("collection", next(iter(results.collections)))
    cells = results.of(collection)
    chosen = cells_of(visit, results, cells, results.measures[0] if results.measures else "")
    systems = [System.of(results.numbers, cell.label) for cell in chosen]
    found = [search_typed(results, cell, query, paid) for cell in chosen]
    dataset = results.dataset(collection) if query else None
    known = results.query_of_text(collection, query) if query else ""
    judged = judgments_of(None if dataset is None else dataset.qrels, known)
    pools = pool_judgments(visit.rooms, collection, known, query) if query else {}
    columns = columns_of(
        systems,
        [answers for answers, _, _ in found],
        ANSWERS,
        dataset,
        pools | judged,
        Words.of(query, cells),
        [float("nan")] * len(chosen),
        {name: one for name, one in news(judged, pools).items() if name in judged},
    )
    return Trial(
        collection,
        tuple(results.collections),
        tuple(System.of(results.numbers, cell.label) for cell in cells),
        query,
        tuple(
            replace(column, milliseconds=milliseconds, failure=failure)
            for column, (_, milliseconds, failure) in zip(columns, found, strict=True)
        ),
        known,
        visit.rooms.golden_file(collection) if visit.rooms is not None else "",
        any(failure == WAITS for _, _, failure in found),
    )


def search_typed(
    results: Results, cell: ResultCell, query: str, paid: bool, depth: int = DEPTH
) -> tuple[tuple[tuple[str, float], ...], float | None, str]:
    """Return ((document, score) of a system's first documents, milliseconds or None, why there is no ranking
    or "").

    paid: also search systems that ask a service.
    """
    if not query:
        return (), None, ""
    try:
        if any(isinstance(part, (StoredRun, CandidatePool)) for part in parts_of(parse_system(cell.system))):
            return (), None, NO_SEARCH
        searcher = results.searcher(cell)
        if not (paid or searcher.costs().repeatable):
            return (), None, WAITS
        begun = time.perf_counter()
        run = rankings(
            searcher, Queries.of({"q": query}), depth, cell.system, cell.dataset, Context(reuse=False)
        )
        return tuple(run["q"].items()), 1000 * (time.perf_counter() - begun), ""
    except WeirError as error:
        return (), None, str(error)


PAGES: Sequence[Page] = [Page("/try", "try.html", trial), Page("/try/ask", "try.html", ask, writes=True)]
