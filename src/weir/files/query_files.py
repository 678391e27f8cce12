"""Read files with a group or a weight for each query."""

from __future__ import annotations

from pathlib import Path

from weir.core.query_metadata import QueryGroups, QueryWeights
from weir.errors import BadValue, FormatError
from weir.files.text_files import read_text

# Groups of queries in a file: a query, a tab and its group on each line.

_EXPECTED = "a query, a tab and its group on each line"
_HEADS = ("query", "query-id", "query_id", "qid", "_id", "id")


def read_groups(path: Path) -> QueryGroups:
    """Return the group of each query from lines "query, tab, group", skipping comments (#) and a header.

    Raises FormatError for a missing or invalid file, a query in two groups, and no query.
    """
    groups: dict[str, str] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        cells = [cell.strip() for cell in line.rstrip("\r").split("\t")]
        if cells == [""] or line.startswith("#"):
            continue
        if len(cells) != 2 or not all(cells):
            raise FormatError(path, f"'{line[:80]}'", _EXPECTED, number)
        query, group = cells
        if not groups and query.lower() in _HEADS:
            continue
        if groups.setdefault(query, group) != group:
            raise FormatError(
                path,
                f"query '{query}' in '{groups[query]}' and '{group}'",
                "one group for each query",
                number,
            )
    if not groups:
        raise FormatError(path, "no query", _EXPECTED)
    return QueryGroups.of(groups, path.name)


# Weights of queries in a file: a query, a tab and its weight on each line.


def read_weights(path: Path) -> QueryWeights:
    """Return the weight of each query from lines "query, tab, weight", skipping comments (#) and a header.

    Raises the errors of `read_groups`, and FormatError for a weight that is no number above 0.
    """
    groups = read_groups(path)
    texts = [groups.labels[code] for code in groups.group.tolist()]
    weights: dict[str, object] = {}
    for query, text in zip(groups.queries.tolist(), texts, strict=True):
        try:
            weights[query] = float(text)
        except ValueError:
            raise FormatError(
                path,
                f"the weight '{text}' of query '{query}'",
                "a number above 0, and no header but query-id",
            ) from None
    try:
        return QueryWeights.of(weights)
    except BadValue as error:
        raise FormatError(path, str(error), "weights above 0") from None
