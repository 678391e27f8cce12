"""Passages that answer queries, and the documents that a chunker loses by cutting them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists
from weir.core.strings import Ids, Int64
from weir.errors import FormatError
from weir.files.json_record import parse_json
from weir.files.text_files import read_bytes
from weir.systems.lexical.passages import WHOLE, Chunked, cut

EXPECTED = (
    'lines of JSON such as {"query": "q1", "document": "d1", "text": "the gold passage"}, or start and end'
)


@dataclass(frozen=True, eq=False)
class GoldSpans:
    """Passages that answer queries, as byte ranges of documents' texts."""

    query: tuple[str, ...]
    """Query of each passage."""
    doc: Int64
    """int64[n], numbers in the corpus."""
    start: Int64
    """int64[n], byte offset in the document's text; `stop` likewise, exclusive."""
    stop: Int64

    def cut_by(self, chunker: Chunked, corpus: Corpus, queries: Ids) -> DocumentLists:
        """Return, for each query, the documents whose answering passages are all cut by the chunker."""
        places = cut(corpus, chunker.words, chunker.overlap, chunker.collapse == "first")
        first, last = (np.searchsorted(places.owner, self.doc, side) for side in ("left", "right"))
        whole: dict[tuple[str, int], bool] = {}
        for n, query in enumerate(self.query):
            own = slice(int(first[n]), int(last[n]))
            reaches = (self.stop[n] <= places.stop[own]) | (places.stop[own] == WHOLE)
            inside = bool((reaches & (places.start[own] <= self.start[n])).any())
            key = query, int(self.doc[n])
            whole[key] = whole.get(key, False) or inside
        lost: dict[str, list[str]] = {}
        for (query, doc), is_whole in whole.items():
            if not is_whole:
                lost.setdefault(query, []).append(corpus.ids[doc])
        return DocumentLists.of([lost.get(query, []) for query in queries])


def read_spans(path: Path, corpus: Corpus, queries: Queries) -> GoldSpans:
    """Return the passages in a file of JSON lines, which name a query by identifier or text.

    White space may differ in a quoted text. Raises FormatError without passages and, with the line, for an
    unknown query or a passage that its document lacks.
    """
    rows = list(_rows(path, corpus, queries))
    if not rows:
        raise FormatError(path, "no passage", EXPECTED)
    query, *numbers = zip(*rows, strict=True)
    return GoldSpans(tuple(query), *(np.array(column, np.int64) for column in numbers))


def _rows(path: Path, corpus: Corpus, queries: Queries) -> Iterator[tuple[str, int, int, int]]:
    asked = queries.to_dict()
    names = {text: name for name, text in asked.items()} | {name: name for name in asked}
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        if not line.strip():
            continue
        record = parse_json(line, f"{path}, line {number}")
        match record:
            case {"query": str() | int() as query, "document": str() | int() as document}:
                doc = int(corpus.ids.codes([str(document)])[0])
            case _:
                raise FormatError(path, repr(record)[:80], EXPECTED, number)
        if str(query) not in names:
            raise FormatError(
                path, f"query '{query}'", "a query of the collection, its identifier or text", number
            )
        if doc < 0:
            raise FormatError(path, f"document '{document}'", "a document of the collection", number)
        text = corpus.text[doc]
        match record:
            case {"text": str(quoted)} if quoted.split():
                words = r"\s+".join(map(re.escape, quoted.split()))
                found = re.search(words, text)
                ends = (-1, -1) if found is None else found.span()
            case {"start": int(start), "end": int(end)}:
                ends = (start, end) if 0 <= start < end <= len(text) else (-1, -1)
            case _:
                raise FormatError(path, repr(record)[:80], EXPECTED, number)
        if ends[0] < 0:
            raise FormatError(path, "a passage outside its document", f"one of document '{document}'", number)
        first, last = (len(text[:end].encode("utf-8")) for end in ends)
        yield names[str(query)], doc, first, last
