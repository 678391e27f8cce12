"""Results as a command prints them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weir.api.result_set import KINDS, ResultSet


def shown(
    kind: str, results: Iterable[Any], form: str = "text", width: int | None = None, **options: bool
) -> str:
    """Results of a kind in a form; options: of the function that makes their tables."""
    return ResultSet(KINDS.get(kind), tuple(results)).shown(form, width, options=options)
