"""Rankings and judgments in pickles: {query: {document: number}}, and BIRCO's test sets and lists of documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.io.runs.column_names import Kind
from weir.io.storage.safe_pickle import read_pickle

__all__ = ["is_birco_set", "kind_of_pickle", "pickled_nested"]

_TEST_SET = frozenset({"query", "corpus", "qrel"})


def is_birco_set(value: object) -> bool:
    """Whether it is a test set as BIRCO publishes them: texts of queries, texts of documents, and grades."""
    if not isinstance(value, Mapping) or set(value) != _TEST_SET:
        return False
    return all(isinstance(part, Mapping) for part in value.values())


def kind_of_pickle(path: Path) -> Kind | None:
    """What a pickle holds: judgments where it is a test set, a run where it lists documents; None for anything else.

    Raises FormatError as `read_pickle` does.
    """
    value = read_pickle(path)
    if is_birco_set(value):
        return "qrels"
    listed = (
        isinstance(value, Mapping) and len(value) > 0 and all(isinstance(v, list) for v in value.values())
    )
    return "run" if listed else None


def pickled_nested(path: Path, kind: Kind | None) -> dict[str, Any]:
    """What a pickle holds; of a test set the judgments.

    Raises FormatError as `read_pickle` does, for a test set in place of a run, and for no dict.
    """
    value: Any = read_pickle(path)
    if is_birco_set(value):
        if kind == "run":
            raise FormatError(path, "a test set of BIRCO", "a ranking; its judgments stand before the run")
        value = value["qrel"]
    if not isinstance(value, dict):
        raise FormatError(path, f"a {type(value).__name__}", 'a pickle of {"query": {"document": number}}')
    found: dict[str, Any] = value
    return found
