"""Weights of queries in a file: a query and its weight on each line, between a tab."""

from __future__ import annotations

from pathlib import Path

from weir.core.query_weights import QueryWeights
from weir.errors import BadValue, FormatError
from weir.io.runs.groups_file import read_groups

__all__ = ["read_weights"]


def read_weights(path: Path) -> QueryWeights:
    """Read weights of queries, plain or packed, in the form of a file of groups (`read_groups`).

    Raises FormatError as `read_groups` does, and for a weight that is no number above 0.
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
