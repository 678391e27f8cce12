"""The URLs of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.plugins.app import (
    document_page,
    queries_page,
    query_page,
    questions_page,
    start_page,
    try_page,
    why_page,
)
from weir.plugins.app.server import Page

PARTS: Sequence[Page] = [
    *start_page.PAGES,
    *queries_page.PAGES,
    *query_page.PAGES,
    *document_page.PAGES,
    *why_page.PAGES,
    *questions_page.PAGES,
    *try_page.PAGES,
]

WORDS: Mapping[str, object] = {**queries_page.WORDS_OF_TEMPLATES, **query_page.WORDS_OF_TEMPLATES}
"""Functions and values for templates."""
