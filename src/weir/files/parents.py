"""Read tables of passages and their documents."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from weir.errors import FormatError
from weir.files.text_files import read_text

_EXPECTED = "a passage and its document on each line, with a tab between, or a comma in .csv"
_PASSAGES = {"chunk", "chunkid", "passage", "passageid", "pid", "id", "segment", "segmentid", "nodeid"}
_DOCUMENTS = {
    "doc",
    "docid",
    "docno",
    "document",
    "documentid",
    "parent",
    "parentid",
    "source",
    "refdocid",
    "corpusid",
}


def read_parents(path: Path) -> dict[str, str]:
    """Return {passage: document} of a file of two columns (CSV by its name, else with tabs), skipping a header.

    Raises FormatError for a missing or invalid file, a passage with two documents, and no passage.
    """
    text = read_text(path)
    comma = ".csv" in path.suffixes[-2:]
    rows = (
        csv.reader(StringIO(text, newline="")) if comma else (line.split("\t") for line in text.split("\n"))
    )
    parents: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 2 or not all(cells):
            raise FormatError(path, f"{row!r:.80}", _EXPECTED, number)
        passage, document = cells
        heads = ["".join(filter(str.isalnum, cell.lower())) for cell in cells]
        if number == 1 and heads[0] in _PASSAGES and heads[1] in _DOCUMENTS:
            continue
        if parents.setdefault(passage, document) != document:
            found = f"passage '{passage}' of '{parents[passage]}' and of '{document}'"
            raise FormatError(path, found, "one document for each passage", number)
    if not parents:
        raise FormatError(path, "no passage", _EXPECTED)
    return parents
