"""Records in JSON that are parsed whole, whoever wrote them: bounded before they are parsed, checked after."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.files.text_files import check_record
from weir.settings import NUMBER_DIGITS, require_memory

_VALUE_BYTES = 200
"""What a value of JSON takes in Python for each of the marks around it, by the worst of a dozen shapes."""
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def require_values(name: object, text: bytes | str, remedy: str = "") -> None:
    """Raise BadValue where memory may not hold the values of a file's JSON, by the marks around them."""
    marks: Iterable[Any] = ",:[{" if isinstance(text, str) else b",:[{"
    require_held(name, sum(text.count(mark) for mark in marks), 2 * len(text), remedy)


def require_held(name: object, values: int, size: int, remedy: str = "") -> None:
    """Raise BadValue where memory may not hold so many values of a file beside so many bytes, those of their texts."""
    require_memory(size + _VALUE_BYTES * values, f"reading {name} whole", remedy)


def json_fault(error: Exception) -> str:
    """Why a text is no JSON, where Python's own words are about Python."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number of thousands of digits" if "int_max_str_digits" in str(error) else str(error)


def read_json(path: Path) -> Any:  # noqa: ANN401  JSON holds anything
    """The value of a record's file.

    Raises FormatError for a device or a pipe, more than RECORD_BYTES, and as `parse_json`; OSError where it cannot be
    read.
    """
    check_record(path)
    return parse_json(path.read_bytes(), path)


def parse_json(data: bytes, name: object) -> Any:  # noqa: ANN401  JSON holds anything
    """The value of a record's bytes; name: of its file.

    Raises BadValue where memory may not hold it; FormatError for what is no JSON, and for half a surrogate pair in a
    text, which no file and no terminal takes.
    """
    require_values(name, data)
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_int=_whole_number)
        if _ESCAPED_HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError(name, "half a surrogate pair in a text", "whole characters") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(name, f"no valid JSON ({json_fault(error)})", "a record in JSON") from None
    return value


def _whole_number(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)
