"""Read pickles as plain data, without running code."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.core.strings import first_repeated
from weir.errors import FormatError
from weir.files.text_files import first_bytes, is_pipe, unpacked_name
from weir.settings import PICKLE_BYTES

# NumPy's numbers and texts in a pickle, decoded from their bytes; NumPy's own constructors are never called.

_TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_FORMATS = dict(zip(_TYPES, "?bhiqBHIQefd", strict=True))
"""{NumPy's name of a number type: its `struct` code}."""
_LONGEST = 4096  # characters of a text
_CODE_POINT_BYTES = 4
_STATE = 8  # version, byte order, three parts of compound types, size, alignment, flags


class _OddNumpyError(Exception):
    """Raised for a NumPy type or value in a pickle that is no plain number or text."""


@dataclass(frozen=True)
class _NumpyName:
    name: str


NUMPY_NAMES = {
    ("numpy", "dtype"): _NumpyName("dtype"),
    ("numpy.core.multiarray", "scalar"): _NumpyName("scalar"),
    ("numpy._core.multiarray", "scalar"): _NumpyName("scalar"),  # since NumPy 2
}


@dataclass(eq=False)
class _NumpyType:
    code: str
    order: str = "<"


def _result_of_call(callee: _NumpyName, arguments: tuple[object, ...]) -> object:
    if callee.name == "dtype":
        code = arguments[0] if arguments else None
        ours = isinstance(code, str) and (code in _FORMATS or re.fullmatch(r"U[1-9][0-9]{0,3}", code))
        if not ours or len(arguments) not in (1, 3):
            raise _OddNumpyError(f"the NumPy type '{str(code)[:40]}'")
        return _NumpyType(str(code))
    kind, data = arguments if len(arguments) == 2 else (None, None)
    if not isinstance(kind, _NumpyType) or not isinstance(data, bytes):
        raise _OddNumpyError("a NumPy scalar without a type and bytes")
    if kind.code in _FORMATS:
        form = kind.order + _FORMATS[kind.code]
        if struct.calcsize(form) != len(data):
            raise _OddNumpyError(f"a NumPy scalar of type {kind.code} in {len(data)} bytes")
        return struct.unpack(form, data)[0]
    length = int(kind.code[1:])
    if length > _LONGEST or len(data) != _CODE_POINT_BYTES * length:
        raise _OddNumpyError(f"a NumPy text of type {kind.code} in {len(data)} bytes")
    try:
        return data.decode("utf-32-le" if kind.order == "<" else "utf-32-be").rstrip("\0")
    except UnicodeDecodeError:
        raise _OddNumpyError(f"a NumPy text of type {kind.code} that is not valid Unicode") from None


def _put_in_order(kind: _NumpyType, state: object) -> None:
    if not isinstance(state, tuple) or len(state) != _STATE or state[2:5] != (None, None, None):
        raise _OddNumpyError("the state of a NumPy type of several parts")
    if state[1] not in ("<", ">", "|"):
        raise _OddNumpyError(f"the byte order '{str(state[1])[:10]}' of a NumPy type")
    kind.order = ">" if state[1] == ">" else "<"


# Pickles as data: containers, texts and numbers, read without executing anything, and written.
#
# A pickle is a program for a small stack machine. The machine here knows the instructions that build dicts, lists,
# tuples, texts, bytes and numbers, and two names, NumPy's `dtype` and `scalar`, whose values are decoded from their
# bytes here. It imports nothing, calls nothing and sets no attribute; any other instruction is refused by name.

PICKLE_SUFFIXES = (".pickle", ".pkl")
PICKLE_MAGIC = tuple(b"\x80" + bytes([version]) for version in range(2, 6))
"""First bytes of pickles of protocol 2 and later; earlier ones are recognised by name."""

_MOST_INSTRUCTIONS = 5_000_000
_MOST_VALUES = 20_000_000
_MOST_LEVELS = 32
_INTEGER_BITS = 64
_LAST_PROTOCOL = 5
_EXPECTED = "a pickle of plain dicts, lists, texts and numbers"
_CONTAINERS = (dict, list, tuple)


class _OddPickleError(Exception):
    """A pickle holds more than plain data; the message names what."""


class _Mark:
    pass


@dataclass
class _Machine:
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def pop(self) -> Any:  # noqa: ANN401  a pickle holds anything
        if not self.stack or isinstance(self.stack[-1], _Mark):
            raise _OddPickleError("an instruction without a value to take")
        return self.stack.pop()

    def last(self) -> Any:  # noqa: ANN401  a pickle holds anything
        self.stack.append(self.pop())
        return self.stack[-1]

    def popped(self, count: int) -> tuple[Any, ...]:
        return tuple(reversed([self.pop() for _ in range(count)]))

    def since_mark(self) -> list[Any]:
        at = next((i for i in range(len(self.stack) - 1, -1, -1) if isinstance(self.stack[i], _Mark)), None)
        if at is None:
            raise _OddPickleError("an instruction without a mark to take values from")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def last_of_kind(self, kind: type) -> Any:  # noqa: ANN401  a pickle holds anything
        value = self.last()
        if type(value) is not kind:
            raise _OddPickleError(f"items put into a {type(value).__name__}")
        return value

    def execute(self, name: str, argument: Any) -> None:  # noqa: ANN401  as pickletools gives it
        if name in _VALUES:
            if isinstance(argument, int) and argument.bit_length() > _INTEGER_BITS:
                raise _OddPickleError(f"a whole number of {argument.bit_length():,} bits")
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _PUTS:
            self.memo[len(self.memo) if argument is None else argument] = self.last()
        elif name in _GETS:
            if argument not in self.memo:
                raise _OddPickleError("a reference to a value that was not stored")
            self.stack.append(self.memo[argument])
        elif name == "DUP":
            self.last()
            self.stack.append(self.stack[-1])
        elif name == "POP":
            self.pop()
        elif name == "POP_MARK":
            self.since_mark()
        elif name == "LIST":
            self.stack.append(self.since_mark())
        elif name == "TUPLE":
            self.stack.append(tuple(self.since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            self.stack.append(self.popped(int(name[-1])))
        elif name == "DICT":
            pairs = self.since_mark()
            self.stack.append({})
            self.set_items(pairs)
        elif name in ("SETITEM", "SETITEMS"):
            self.set_items(list(self.popped(2)) if name == "SETITEM" else self.since_mark())
        elif name in ("APPEND", "APPENDS"):
            values = [self.pop()] if name == "APPEND" else self.since_mark()
            self.last_of_kind(list).extend(values)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            module, attribute = argument.rpartition(" ")[::2] if name == "GLOBAL" else self.popped(2)
            texts = isinstance(module, str) and isinstance(attribute, str)
            if not texts or (module, attribute) not in NUMPY_NAMES:
                raise _OddPickleError(
                    f"the name {str(module)[:60]}.{str(attribute)[:60]}, which is not allowed"
                )
            self.stack.append(NUMPY_NAMES[module, attribute])
        elif name == "REDUCE":
            callee, arguments = self.popped(2)
            if not isinstance(callee, _NumpyName) or not isinstance(arguments, tuple):
                raise _OddPickleError(f"a call of a {type(callee).__name__}")
            self.stack.append(_result_of_call(callee, arguments))
        elif name == "BUILD":
            state, target = self.pop(), self.last()
            if not isinstance(target, _NumpyType):
                raise _OddPickleError(f"the state of a {type(target).__name__}")
            _put_in_order(target, state)
        elif name not in ("FRAME", "STOP") and (name != "PROTO" or argument not in range(_LAST_PROTOCOL + 1)):
            reason = _REFUSED.get(name, f"the instruction {name}")
            raise _OddPickleError(reason if argument is None else f"{reason} ({str(argument)[:60]})")

    def set_items(self, pairs: list[Any]) -> None:
        into = self.last_of_kind(dict)
        if len(pairs) % 2:
            raise _OddPickleError("a key without a value")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, (str, int)):
                raise _OddPickleError(f"a {type(key).__name__} as a key")
            if key in into:
                raise _OddPickleError(f"'{str(key)[:60]}' twice in one dict")
            into[key] = value


def is_pickle(path: Path) -> bool:
    """Return True for a pickle, by suffix or first bytes."""
    if unpacked_name(path).lower().endswith(PICKLE_SUFFIXES):
        return True
    # A pipe can be read only once.
    return not is_pipe(path) and first_bytes(path, 2).startswith(PICKLE_MAGIC)


def read_pickle(path: Path) -> Any:  # noqa: ANN401  a pickle holds anything
    """Return the plain data of a pickle, keys as texts and tuples as lists, without running code.

    Raises FormatError for a missing, damaged or oversized file, cycles, repeated keys, and anything but containers,
    texts, numbers and NumPy scalars.
    """
    import pickletools  # takes instructions apart and runs none

    data = first_bytes(path, PICKLE_BYTES + 1)
    if len(data) > PICKLE_BYTES:
        raise FormatError(path, f"a pickle of more than {PICKLE_BYTES:,} bytes", "a smaller one, or JSON")
    machine = _Machine()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "error", DeprecationWarning
            )  # an escape in a text that Python does not know
            for count, (code, argument, at) in enumerate(pickletools.genops(data)):
                if count == _MOST_INSTRUCTIONS:
                    raise _OddPickleError(f"a pickle of more than {_MOST_INSTRUCTIONS:,} instructions")
                if code.name == "STOP" and at is not None and at + 1 != len(data):
                    raise _OddPickleError("bytes after a pickle's end")
                machine.execute(code.name, argument)
        value = machine.pop()
        if machine.stack:
            raise _OddPickleError("a pickle with values left over")
        _unfolded({}, value, 0)
        return _plain(value)
    except (_OddPickleError, _OddNumpyError) as odd:
        raise FormatError(path, str(odd), _EXPECTED) from None
    except (
        ValueError,
        OverflowError,
        DeprecationWarning,
    ) as error:  # cut short, unknown, no text
        reason = f"a damaged pickle ({' '.join(str(error).split())[:120]})"
        raise FormatError(path, reason, _EXPECTED) from None


_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING"),
        *("BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": _Mark,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_REFUSED = {
    **dict.fromkeys(("PERSID", "BINPERSID"), "a reference to outside the file"),
    **dict.fromkeys(("EXT1", "EXT2", "EXT4"), "an entry of the extension registry"),
    **dict.fromkeys(("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"), "an object to be made"),
    **dict.fromkeys(("NEXT_BUFFER", "READONLY_BUFFER", "BYTEARRAY8"), "a buffer"),
    "PROTO": "a protocol that is not known",
    **dict.fromkeys(("EMPTY_SET", "FROZENSET", "ADDITEMS"), "a set, which has no order"),
}


def _unfolded(sizes: dict[int, tuple[int, int]], value: object, level: int) -> tuple[int, int]:
    if not isinstance(value, _CONTAINERS):
        return 1, 0
    if id(value) not in sizes:
        if level == _MOST_LEVELS:
            raise _OddPickleError(f"containers within themselves, or more than {_MOST_LEVELS} levels of them")
        parts = value.values() if isinstance(value, dict) else value
        inner = [_unfolded(sizes, part, level + 1) for part in parts]
        sizes[id(value)] = 1 + sum(n for n, _ in inner), 1 + max((deep for _, deep in inner), default=0)
    values, levels = sizes[id(value)]
    if values > _MOST_VALUES or level + levels > _MOST_LEVELS:
        raise _OddPickleError("containers that unfold into too many values")
    return values, levels


def _plain(value: Any) -> Any:  # noqa: ANN401  a pickle holds anything
    if isinstance(value, dict):
        texts = {str(key): _plain(one) for key, one in value.items()}
        if len(texts) < len(value):
            twice = first_repeated(map(str, value)) or ""
            raise _OddPickleError(f"'{twice[:60]}' twice in one dict, as a text and as a number")
        return texts
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (_NumpyName, _NumpyType)):
        raise _OddPickleError("a NumPy name instead of a value")
    return value


def pickled_rows(rows: Iterable[tuple[str, Iterable[str] | Mapping[str, float]]]) -> Iterable[bytes]:
    """Yield the bytes of a pickled dict, {name: list of texts or dict of numbers}."""
    yield b"\x80\x04}("
    for name, row in rows:
        if isinstance(row, Mapping):
            pairs = (
                _pickled_text(key)
                + (
                    struct.pack("<ci", b"J", number)
                    if isinstance(number, int)
                    else struct.pack(">cd", b"G", number)
                )
                for key, number in row.items()
            )
            yield _pickled_text(name) + b"}(" + b"".join(pairs) + b"u"
        else:
            yield _pickled_text(name) + b"](" + b"".join(map(_pickled_text, row)) + b"e"
    yield b"u."


def _pickled_text(text: str) -> bytes:
    data = text.encode("utf-8")
    return b"X" + len(data).to_bytes(4, "little") + data
