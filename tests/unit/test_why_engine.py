"""Settings of a live index that `weir why` names, beside those of the collection."""

from __future__ import annotations

import pytest

from weir.core.corpus import Corpus
from weir.plugins.servers.why_engine import counts_of_documents


@pytest.mark.parametrize(
    ("documents", "counts"),
    [
        ({"a": "river", "b": "dam", "c": ""}, {3, 2, 0}),
        (
            {
                "a": {"title": "x", "text": "y"},
                "b": {"title": "", "text": "y"},
                "c": {"title": "", "text": ""},
            },
            {3, 2, 1},
        ),
    ],
)
def test_documents_without_text_are_not_missing_from_an_index(documents, counts):
    """Lucene counts the documents that have the field: of a collection with empty texts that is no other collection."""
    assert counts_of_documents(Corpus.of(documents)) == counts
