"""What `--by` names, as groups of queries: a rule on identifiers, a file, or a column of the collection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from weir.core.ids import Ids
from weir.core.query_groups import RULES, QueryGroups
from weir.core.scores import GroupedScores, Scores
from weir.datasets.load import Dataset
from weir.errors import BadValue, UnknownName
from weir.io.runs.groups_file import read_groups

__all__ = ["grouped_scores", "is_column", "query_groups"]


def query_groups(by: object, queries: Ids, dataset: Dataset | None = None) -> QueryGroups:
    """The groups of queries that `by` names.

    by: "prefix:_" (the identifier up to the first _) or "stem:-" (up to the last -), the path of a file of queries and
    groups, the name of a column of the collection, {query: label}, or the groups themselves; queries: whose identifiers
    a rule looks at; dataset: the collection whose column it may be. Raises BadValue, FormatError or UnknownName.
    """
    if isinstance(by, QueryGroups):
        return by
    if isinstance(by, Mapping):
        return QueryGroups.of({str(query): label for query, label in by.items()})
    text = os.fspath(by) if isinstance(by, os.PathLike) else str(by)
    if text.startswith(RULES):
        return QueryGroups.by_identifier(queries, text)
    if Path(text).is_file():
        return read_groups(Path(text))
    if dataset is None:
        raise BadValue(
            f"--by {text}: no such file, and no collection with such a column; name a rule such as prefix:_, a file of "
            "queries and groups, or a column together with --collection"
        )
    if text not in dataset.groups:
        raise UnknownName("column of the queries", text, dataset.groups)
    labels = zip(dataset.queries.ids.tolist(), dataset.groups[text], strict=True)
    return QueryGroups.of(dict(labels), text)


def is_column(by: object) -> bool:
    """Whether `by` can only be the name of a column of a collection."""
    return isinstance(by, str) and not by.startswith(RULES) and not Path(by).is_file()


def grouped_scores(scores: Scores, by: object) -> GroupedScores:
    """The scores of each group that `by` names, as `query_groups` takes it."""
    return GroupedScores.of(scores, query_groups(by, scores.queries))
