"""NumPy's numbers and texts in a pickle, decoded from their bytes; NumPy's own constructors are never called."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

__all__ = ["NUMPY_NAMES", "NumpyName", "NumpyType", "OddNumpyError", "called", "put_in_order"]

_FORMATS = {
    "b1": "?",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "f2": "e",
    "f4": "f",
    "f8": "d",
}
"""Numbers by NumPy's name of their type, as `struct` calls them."""
_LONGEST = 4096  # characters of a text
_CODE_POINT_BYTES = 4
_STATE = 8  # version, byte order, three parts of compound types, size, alignment, flags


class OddNumpyError(Exception):
    """A type or a value that is no plain number or text; its text says what."""


@dataclass(frozen=True)
class NumpyName:
    """One of the names that a pickle may call: "dtype" or "scalar"."""

    name: str


NUMPY_NAMES = {
    ("numpy", "dtype"): NumpyName("dtype"),
    ("numpy.core.multiarray", "scalar"): NumpyName("scalar"),
    ("numpy._core.multiarray", "scalar"): NumpyName("scalar"),  # since NumPy 2
}


@dataclass(eq=False)
class NumpyType:
    """The type of a scalar, such as f8 or U7; order: "<" or ">", set when its state follows, as NumPy does."""

    code: str
    order: str = "<"


def called(callee: NumpyName, arguments: tuple[object, ...]) -> object:
    """What calling a name comes to: a type, or the number or text of a scalar; raises OddNumpyError."""
    if callee.name == "scalar":
        return _scalar(arguments)
    code = arguments[0] if arguments else None
    known = isinstance(code, str) and (code in _FORMATS or re.fullmatch(r"U[1-9][0-9]{0,3}", code))
    if not known or len(arguments) not in (1, 3):
        raise OddNumpyError(f"the NumPy type '{str(code)[:40]}'")
    return NumpyType(str(code))


def put_in_order(kind: NumpyType, state: object) -> None:
    """Give a type the byte order that its state says; raises OddNumpyError for the state of a compound type."""
    if not isinstance(state, tuple) or len(state) != _STATE or state[2:5] != (None, None, None):
        raise OddNumpyError("the state of a NumPy type of several parts")
    if state[1] not in ("<", ">", "|"):
        raise OddNumpyError(f"the byte order '{str(state[1])[:10]}' of a NumPy type")
    kind.order = ">" if state[1] == ">" else "<"


def _scalar(arguments: tuple[object, ...]) -> object:
    kind, data = arguments if len(arguments) == 2 else (None, None)
    if not isinstance(kind, NumpyType) or not isinstance(data, bytes):
        raise OddNumpyError("a NumPy scalar that is no type and bytes")
    if kind.code not in _FORMATS:
        return _text(kind, data)
    form = kind.order + _FORMATS[kind.code]
    if struct.calcsize(form) != len(data):
        raise OddNumpyError(f"a NumPy scalar of type {kind.code} in {len(data)} bytes")
    return struct.unpack(form, data)[0]


def _text(kind: NumpyType, data: bytes) -> str:
    length = int(kind.code[1:])
    if length > _LONGEST or len(data) != _CODE_POINT_BYTES * length:
        raise OddNumpyError(f"a NumPy text of type {kind.code} in {len(data)} bytes")
    try:
        return data.decode("utf-32-le" if kind.order == "<" else "utf-32-be").rstrip("\0")
    except UnicodeDecodeError:
        raise OddNumpyError(f"a NumPy text of type {kind.code} that is not valid Unicode") from None
