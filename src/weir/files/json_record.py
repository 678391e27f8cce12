"""Parse untrusted JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.files.text_files import check_record
from weir.settings import NUMBER_DIGITS, require_memory

JSON_RECORD = "a record in JSON"
_VALUE_BYTES = 200
"""Memory of a JSON value in Python for each mark around it, measured as the worst of a dozen shapes."""
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def require_values(name: object, text: bytes | str, remedy: str = "") -> None:
    """Raise BadValue, ending in `remedy`, if the values of a JSON text would exceed memory."""
    marks: Iterable[Any] = ",:[{" if isinstance(text, str) else b",:[{"
    require_held(name, sum(text.count(mark) for mark in marks), 2 * len(text), remedy)


def require_held(name: object, values: int, size: int, remedy: str = "") -> None:
    """Raise BadValue, ending in `remedy`, if so many JSON values and bytes of text would exceed memory."""
    require_memory(size + _VALUE_BYTES * values, f"reading {name} whole", remedy)


def json_fault(error: Exception) -> str:
    """Return why a text is no JSON, for a message."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number of thousands of digits" if "int_max_str_digits" in str(error) else str(error)


def read_json(path: Path, expected: str = JSON_RECORD) -> Any:  # noqa: ANN401  JSON holds anything
    """Return the value in a JSON file.

    expected: expected content in messages.

    Raises FormatError for invalid JSON, a device or over RECORD_BYTES, BadValue for too little memory, OSError if
    missing.
    """
    check_record(path)
    return parse_json(path.read_bytes(), path, expected)


def parse_json(data: bytes, name: object, expected: str = JSON_RECORD) -> Any:  # noqa: ANN401  JSON holds anything
    """Return the value of JSON in UTF-8.

    name, expected: source and expected content in messages.

    Raises FormatError for invalid JSON and lone surrogates, BadValue for too little memory.
    """
    require_values(name, data)
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_int=whole_number)
        if _ESCAPED_HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError(name, "half a surrogate pair in a text", "whole characters") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(name, f"no valid JSON ({json_fault(error)})", expected) from None
    return value


def whole_number(digits: str) -> int:
    """Return the whole number with these digits; raises ValueError for more than NUMBER_DIGITS."""
    if len(digits) > NUMBER_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)
