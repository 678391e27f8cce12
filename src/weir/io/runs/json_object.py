"""Rankings and judgments as one JSON object, {query: {document: number}}."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from weir.core.strings import first_repeated
from weir.errors import BadRanking, FormatError
from weir.io.storage.lines import read_bytes

__all__ = ["read_nested"]

Nested = dict[str, dict[str, float]]
_EXPECTED = 'an object {"query": {"document": number}}'


def read_nested(path: Path) -> Nested:
    """Read {query: {document: number}}.

    Raises FormatError for another shape, for NaN and infinity, and for text that is no JSON; BadRanking for a
    name that occurs twice in one object, which JSON readers usually pass over in silence.
    """
    data = read_bytes(path)
    found = _quickly(data)
    if found is None:
        found = _strictly(path, data)
    if not isinstance(found, dict):
        raise FormatError(path, f"a JSON {type(found).__name__}", _EXPECTED)
    for query, row in found.items():
        if not isinstance(row, dict):
            raise FormatError(path, f"{type(row).__name__} for query '{query}'", _EXPECTED)
        if not set(map(type, row.values())) <= {int, float}:
            document = next(d for d, v in row.items() if type(v) not in (int, float))
            found_here = f"{json.dumps(row[document])[:40]} for query '{query}', document '{document}'"
            raise FormatError(path, found_here, "a number")
    return found


def _quickly(data: bytes) -> Any:  # noqa: ANN401  JSON holds anything
    """Parse with orjson where it is installed; None when a name may occur twice or anything is odd."""
    try:
        loads = importlib.import_module("orjson").loads
        found = loads(data)
    except (ModuleNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not all(isinstance(row, dict) for row in found.values()):
        return None
    # orjson keeps the last of equal names. Each name is followed by one colon; the others stand in names,
    # unless they are written as an escape.
    if b"\\u003" in data:
        return None
    rows = list(found.values())
    colons = sum(map(len, rows)) + len(rows) + sum("".join(row).count(":") for row in (found, *rows))
    return found if colons == data.count(b":") else None


def _strictly(path: Path, data: bytes) -> Any:  # noqa: ANN401  JSON holds anything
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = first_repeated(key for key, _ in pairs)
            raise BadRanking(f"{path}: '{twice}' occurs twice in one object; remove the duplicates first")
        return row

    def refuse(constant: str) -> float:
        raise FormatError(path, constant, "finite numbers")

    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and _objects_on_lines(data):
            raise FormatError(
                path, "JSON lines, an object on each", f"{_EXPECTED}, or a table", error.lineno
            ) from None
        raise FormatError(path, f"no valid JSON ({error.msg})", _EXPECTED, error.lineno) from error
    except (
        ValueError,
        RecursionError,
    ) as error:  # not UTF-8, a number of thousands of digits, nested too deeply
        raise FormatError(path, f"no valid JSON ({error})", _EXPECTED) from error


def _objects_on_lines(data: bytes) -> bool:
    first, _, rest = data.lstrip().partition(b"\n")
    try:
        return isinstance(json.loads(first), dict) and rest.lstrip().startswith(b"{")
    except (ValueError, RecursionError):
        return False
