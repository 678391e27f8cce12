"""Collections whose queries are documents: how many of the queries are, by identifier and text."""

from __future__ import annotations

import re

import numpy as np

from weir.datasets.load import Dataset

__all__ = ["SELF_MATCHES", "self_matches"]

SELF_MATCHES = 0.1
"""Share of queries from which a collection is one whose queries are documents."""

_WORD = re.compile(r"\w+")


def self_matches(dataset: Dataset) -> float:
    """The share of the judged queries that are a document of the collection, 0 to 1.

    A query is the document that has its identifier where all its words stand there, in order and without a gap, in
    title and text. Identifiers alone say nothing: in Cranfield or CISI, where both count from 1, they belong to
    unrelated texts.
    """
    queries = dataset.queries
    if not len(queries):
        return 0.0
    at = dataset.corpus.ids.codes(queries.ids.strings)
    known = np.flatnonzero(at >= 0)
    found = 0
    for query, document in zip(known.tolist(), at[known].tolist(), strict=True):
        words = _words(queries.text[query])
        found += words != "  " and words in _words(
            dataset.corpus.view("title text", document, document + 1)[0]
        )
    return found / len(queries)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "
