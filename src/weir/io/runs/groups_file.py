"""Groups of queries in a file: a query and its group on each line, between a tab."""

from __future__ import annotations

from pathlib import Path

from weir.core.query_groups import QueryGroups
from weir.errors import FormatError
from weir.io.storage.text_files import read_bytes

__all__ = ["read_groups"]

_EXPECTED = "a query and its group between a tab on each line"
_HEADS = ("query", "query-id", "query_id", "qid", "_id", "id")


def read_groups(path: Path) -> QueryGroups:
    """Read groups of queries, plain or packed; a first line that begins with a name such as `query` is a header.

    Empty lines and those that begin with # are left out. Raises FormatError, with the line, for another number of
    columns and for a query that stands in two groups, and for a file without any query.
    """
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"bytes that are not UTF-8 ({error.reason})", "a UTF-8 text file") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.rstrip("\r").split("\t")]
        if cells == [""] or line.startswith("#"):
            continue
        if len(cells) != 2 or not all(cells):
            raise FormatError(path, f"'{line[:80]}'", _EXPECTED, number)
        query, group = cells
        if not found and query.lower() in _HEADS:
            continue
        if found.setdefault(query, group) != group:
            raise FormatError(
                path, f"query '{query}' in '{found[query]}' and '{group}'", "one group for each query", number
            )
    if not found:
        raise FormatError(path, "no query", _EXPECTED)
    return QueryGroups.of(found, path.name)
