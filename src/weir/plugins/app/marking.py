"""Texts with the query's words marked, and tables as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from markupsafe import Markup

from weir.core.tables import Table, excerpt
from weir.errors import WeirError
from weir.experiment.results import ResultCell
from weir.systems.lexical.analyzer import Analyzer, analyzers

USUAL = "lucene-english"
BEFORE_CHARACTERS = 60
"""Characters of an excerpt before the first marked word."""
WORD = re.compile(r"\w+")

Marked: TypeAlias = tuple[tuple[str, bool], ...]
"""(part of a text, True for a word of the query)."""


def tables_html(tables: Iterable[Table]) -> Markup:
    """Return tables as HTML, with texts escaped."""
    frame = '<div class="weir-frame"'
    return Markup("".join(table.html_body() for table in tables).replace(frame, f'{frame} tabindex="0"'))


@dataclass(frozen=True)
class Words:
    """The terms of a query, and the analyzer that finds them in texts."""

    analyzer: Analyzer
    terms: frozenset[str]
    known: dict[str, bool] = field(default_factory=dict)
    """Words seen so far, True for those of the query."""

    @staticmethod
    def of(query: str, cells: Sequence[ResultCell]) -> Words:
        """Return a query's terms by the analyzer that the first system with one declares, else
        lucene-english."""
        declared = (cell.ranked.declared.get("system") for cell in cells)
        named = [
            one["analyzer"]
            for one in declared
            if isinstance(one, dict) and isinstance(one.get("analyzer"), str)
        ]
        try:
            analyzer = analyzers.get(named[0] if named else USUAL)
        except WeirError:  # one of somebody's own, which is not registered here
            analyzer = analyzers.get(USUAL)
        return Words(analyzer, frozenset(analyzer.tokens(query)))

    def marked(self, text: str) -> Marked:
        """Return a text as (part, True for a word of the query), in order; () for ""."""
        parts, at = list[tuple[str, bool]](), 0
        for a, b in self._spans(text):
            parts += [(text[at:a], False), (text[a:b], True)]
            at = b
        return tuple(part for part in [*parts, (text[at:], False)] if part[0])

    def excerpt(self, text: str, most: int) -> Marked:
        """Return about `most` characters of a text on one line, with query words marked.

        It is the text's beginning, or the surroundings of its first query word if the beginning has none.
        """
        line = " ".join(text.split())
        begin = self.marked(excerpt(line, most))
        if len(line) <= most or len(begin) > 1 or begin[0][1]:
            return begin
        first = next((a for a, _ in self._spans(line)), None)
        if first is None:
            return begin
        start = line.find(" ", first - BEFORE_CHARACTERS, first) + 1 or first
        return (("… ", False), *self.marked(excerpt(line[start:], most)))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        if self.analyzer.cut is not None:  # words without blanks between them
            anyone = "|".join(map(re.escape, sorted(self.terms, key=len, reverse=True)))
            return [found.span() for found in re.finditer(anyone, text, re.IGNORECASE)] if anyone else []
        spans = [found.span() for found in WORD.finditer(text)]
        words = list({text[a:b] for a, b in spans} - self.known.keys())
        terms = zip(words, self.analyzer.normalise(words), strict=True)
        self.known.update((word, term in self.terms) for word, term in terms)
        return [(a, b) for a, b in spans if self.known[text[a:b]]]
