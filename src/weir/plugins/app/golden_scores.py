"""Scores of a folder's systems on the golden set: queries that people typed."""

from __future__ import annotations

from collections.abc import Mapping

from weir.core.corpus import Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.subject import Subject
from weir.experiment.results import ResultCell
from weir.plugins.app.folder import Results
from weir.plugins.app.try_page import search_typed


def golden_subject(
    results: Results, collection: str, queries: Mapping[str, str]
) -> tuple[Subject, tuple[tuple[str, str], ...]]:
    """Return (subject without documents and judgments, with the rankings of systems that answer all typed queries;
    (system, reason) of each other system).

    queries: {identifier: text}. Stored rankings serve texts of the collection's queries; others are searched now,
        which leaves out systems that ask a service.
    """
    runs, lacking = dict[str, Run](), list[tuple[str, str]]()
    for cell in results.of(collection):
        rankings = dict[str, dict[str, float]]()
        for query, text in queries.items():
            found, failure = _answered(results, cell, text)
            if failure:
                lacking.append((cell.label, failure))
                break
            rankings[query] = dict(found)
        else:
            runs[cell.label] = Run.of(rankings)
    return Subject(collection, None, Queries.of(queries), Qrels.of({}), runs), tuple(lacking)


def _answered(results: Results, cell: ResultCell, text: str) -> tuple[tuple[tuple[str, float], ...], str]:
    known = results.query_of_text(cell.dataset, text)
    if known and (stored := results.rankings(cell).ranking(known)):
        return tuple(stored), ""
    depth = cell.depth
    found, _, failure = results.kept.value_of(
        ("typed", cell.folder, depth, text), lambda: search_typed(results, cell, text, False, depth)
    )
    return found, failure
