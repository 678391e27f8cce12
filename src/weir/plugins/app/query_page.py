"""The page of a query, with up to four rankings side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.datasets.load import Dataset
from weir.errors import UnknownName, WeirError
from weir.experiment.results import ResultCell, scored_measures
from weir.measures.evaluate import score_run
from weir.plugins.app.answers import (
    Column,
    Judgment,
    Rankings,
    columns_of,
    judgments_of,
    lines_svg,
    news,
    pool_judgments,
    ranks_in,
    shown_documents,
    texts_of,
)
from weir.plugins.app.choices import MOST_BESIDE, System, cells_of, measure_of, systems_text
from weir.plugins.app.folder import Results
from weir.plugins.app.marking import Words
from weir.plugins.app.queries_page import Listed
from weir.plugins.app.server import Page, Visit, address
from weir.stats.query_differences import Shift, described, shifts

DEPTHS = (10, 20, 50, 100)
"""Choices of the number of documents shown."""
RELABEL_MEASURE = "nDCG@10"
"""The measure of people's judgments if nothing was judged before."""


@dataclass(frozen=True)
class Missed:
    """A relevant document that none of the rankings shows."""

    document: str
    title: str
    judgment: Judgment
    ranks: tuple[int | None, ...]
    """Its rank in each ranking; None if not returned."""


@dataclass(frozen=True)
class Query:
    """A query's page: up to four rankings side by side."""

    collection: str
    query: str
    text: str
    """"" if the collection is not on this machine."""
    measure: str
    measures: tuple[str, ...]
    systems: tuple[System, ...]
    """All systems of the collection."""
    columns: tuple[Column, ...]
    depth: int
    judged: tuple[tuple[float, int], ...]
    """(grade, number of documents) of the judgments that the numbers count, highest first."""
    new: tuple[tuple[str, int], ...]
    """(pool, number) of people's judgments that the stored scores leave out."""
    with_new: bool
    """True if the numbers count these too."""
    shifts: tuple[Shift, ...]
    """Relevant documents whose ranks moved most from the first to the second system."""
    missed: tuple[Missed, ...]
    here: bool
    """True if texts and judgments are on this machine."""
    readable: bool
    """True if the documents are on this machine, too."""
    before: str | None
    """The previous query of the list from which it was opened; `after` is the next."""
    after: str | None
    parameters: tuple[tuple[str, str | list[str]], ...]
    """Parameters of that list."""

    @property
    def again(self) -> dict[str, object]:
        """The URL parameters of the list of queries to which the page leads back."""
        return dict(self.parameters)

    def at(self, **changed: object) -> str:
        """Return this page's URL with some parameters changed."""
        return address("c", self.collection, "q", self.query, **{**self.again, **changed})

    @property
    def chosen(self) -> list[str]:
        """Short names of the systems shown."""
        return [column.system.label for column in self.columns]

    def with_systems(self, labels: Sequence[str]) -> str:
        """Return this page's URL with other systems, by short names."""
        return self.at(systems=systems_text(labels))

    def opened(self, document: str) -> str:
        """Return the URL of a document's page for this query."""
        return address("c", self.collection, "q", self.query, "d", document)


def query(visit: Visit) -> Query:
    """Return a query's page: rankings of up to four systems, with judgments.

    The URL's `judgments=new` counts people's new ones, too. Raises UnknownName for an unknown query, system
    or measure, StoreError for damaged rankings.
    """
    results = visit.folder.results()
    collection, name = visit.names["collection"], visit.names["query"]
    cells = results.of(collection)
    measures = scored_measures(cells)
    measure = measure_of(visit, measures)
    chosen = cells_of(visit, results, cells, measure)
    dataset, text = results.dataset(collection), ""
    if dataset is not None and dataset.layout.queries is not None:
        text = dataset.all_queries.get(name) or ""
    rankings = [results.rankings(cell).ranking(name) for cell in chosen]
    values = [_value(results, cell, measure, name) for cell in chosen]
    if not (text or any(rankings) or not np.isnan(values).all()):
        raise UnknownName(f"query of {collection}", name, dataset.queries.ids if dataset is not None else [])
    asked = visit.one("depth")
    depth = int(asked) if asked in map(str, DEPTHS) else DEPTHS[0]
    judged = judgments_of(None if dataset is None else dataset.qrels, name)
    new = news(judged, pool_judgments(visit.rooms, collection, name, text))
    pools = Counter(one.pool for one in new.values())
    qrels = None if dataset is None else dataset.qrels
    if with_new := visit.one("judgments") == "new" and bool(new):
        judged, measure, new = judged | new, measure or RELABEL_MEASURE, {}
        qrels = together = Qrels.of({name: {document: one.grade for document, one in judged.items()}})
        values = [_scored_anew(name, ranking, together, measure) for ranking in rankings]
    systems = [System.of(results.numbers, cell.label) for cell in chosen]
    words = Words.of(text, cells)
    columns = columns_of(systems, rankings, depth, dataset, judged, words, values, new)
    listed = Listed.of(visit, results)
    before, after = _neighbours(listed, name)
    grades = [one.grade for one in judged.values()]
    return Query(
        collection,
        name,
        text,
        measure,
        measures,
        tuple(System.of(results.numbers, cell.label) for cell in cells),
        columns,
        depth,
        tuple((grade, grades.count(grade)) for grade in sorted(set(grades), reverse=True)),
        tuple(sorted(pools.items())),
        with_new,
        _shifts(name, rankings, dataset, qrels),
        _missed(rankings, depth, judged, dataset),
        dataset is not None,
        results.readable(collection),
        before,
        after,
        tuple(
            (
                listed.parameters
                | {
                    "systems": systems_text([system.label for system in systems]),
                    "judgments": "new" if visit.one("judgments") == "new" else "",
                }
            ).items()
        ),
    )


def _value(results: Results, cell: ResultCell, measure: str, name: str) -> float:
    if not measure or cell.mean(measure) is None:
        return float("nan")
    scores = results.scores(cell)
    at = int(scores.queries.codes([name])[0])
    return float(scores.of(measure)[at]) if at >= 0 else float("nan")


def _neighbours(listed: Listed, name: str) -> tuple[str | None, str | None]:
    queries = listed.compared.queries
    number = int(queries.codes([name])[0])
    place = np.flatnonzero(listed.order == number)
    if not len(place):
        return None, None
    at, order = int(place[0]), listed.order
    return (
        queries[int(order[at - 1])] if at else None,
        queries[int(order[at + 1])] if at + 1 < len(order) else None,
    )


def _scored_anew(name: str, ranking: Sequence[tuple[str, float]], qrels: Qrels, measure: str) -> float:
    try:
        scores = score_run(qrels, Run.of({name: dict(ranking)}), measure)
    except WeirError:  # a measure of more than grades
        return float("nan")
    return float(scores.of(measure)[0])


def _shifts(name: str, rankings: Rankings, dataset: Dataset | None, qrels: Qrels | None) -> tuple[Shift, ...]:
    if dataset is None or qrels is None or len(rankings) < 2:
        return ()
    first, second = (Run.of({name: dict(ranking)}) for ranking in rankings[:2])
    moved = shifts(name, qrels, first, second)
    return moved if dataset.layout.documents is None else described(moved, dataset.corpus)


def _missed(
    rankings: Rankings,
    depth: int,
    judged: dict[str, Judgment],
    dataset: Dataset | None,
) -> tuple[Missed, ...]:
    shown = {document for ranking in rankings for document, _ in ranking[:depth]}
    lost = [(document, one) for document, one in judged.items() if one.relevant and document not in shown]
    lost.sort(key=lambda pair: -pair[1].grade)
    ranks_of = ranks_in(rankings)
    texts = texts_of(dataset, [document for document, _ in lost])
    return tuple(
        Missed(document, texts.get(document, ("", ""))[0], one, ranks_of(document)) for document, one in lost
    )


WORDS_OF_TEMPLATES = {
    "lines": lines_svg,
    "shown_documents": shown_documents,
    "depths": DEPTHS,
    "most_beside": MOST_BESIDE,
    "systems_text": systems_text,
}
PAGES: Sequence[Page] = [Page("/c/{collection}/q/{query}", "query.html", query)]
