"""What has to be said of a collection beside its scores."""

from __future__ import annotations

from collections.abc import Iterable

from weir.datasets.load import Dataset
from weir.datasets.self_match import SELF_MATCHES, self_matches
from weir.measures import parse_measure
from weir.report.format import share

__all__ = ["collection_notes"]

_COMPLETE = ("R", "R_cap", "Success")
"""Measures that are 1 for a ranking of all documents."""


def collection_notes(dataset: Dataset, measures: Iterable[str], dropped: bool | None = None) -> list[str]:
    """Sentences on what a collection makes of scores: queries that are documents, and cut-offs that take all of them.

    dropped: whether self-matches are left out; by default what the collection says. Reads the documents' store.
    """
    found = []
    said = bool(dataset.entry or dataset.layout.self_match)
    share_of_queries = 0.0 if said or dropped else self_matches(dataset)
    if share_of_queries >= SELF_MATCHES:
        found.append(
            f"note: {share(share_of_queries)} of the queries of {dataset.name} are documents of it, with the same "
            "identifier and text, and find themselves first: leave these out with --drop-self, or with "
            "self_match = 'drop' in a TOML file of the collection ('keep' if that is meant)"
        )
    count = len(dataset.corpus)
    for name in measures:
        measure = parse_measure(name)
        if measure.name in _COMPLETE and measure.cutoff is not None and measure.cutoff >= count:
            found.append(
                f"note: {name} on {dataset.name} is 1 by construction for whatever returns all {count} documents"
            )
    return found
