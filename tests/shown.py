"""Results as a command prints them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weir.api.result_set import ResultSet
from weir.core.results import RESULTS


def shown(
    kind: str, results: Iterable[Any], form: str = "text", width: int | None = None, **options: bool
) -> str:
    """Results of a kind in a form; options: of the function that makes their tables."""
    items = tuple(results)
    tables = RESULTS[kind].tables(items, **options) if options or not items else None
    return ResultSet(kind, items).shown(form, width, tables=tables)
