"""Pickles read as data: containers, texts, numbers and NumPy's arrays; nothing is executed."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.core.strings import first_repeated
from weir.errors import FormatError
from weir.files.text_files import read_bytes, unpacked_name

# NumPy's numbers and texts in a pickle, decoded from their bytes; NumPy's own constructors are never called.

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


# Pickles as data: containers, texts and numbers, read without running anything that stands in them, and written.
#
# A pickle is a program for a small stack machine. The machine here knows the instructions that put together dicts,
# lists, tuples, texts, bytes and numbers, and two names: NumPy's `dtype` and `scalar`, of which numbers and texts are
# decoded from their bytes here. It imports nothing, calls nothing and sets no attribute; whatever asks for that is
# refused by name.

PICKLE_SUFFIXES = (".pickle", ".pkl")
PICKLE_MAGIC = tuple(b"\x80" + bytes([version]) for version in range(2, 6))
"""How pickles of protocol 2 and later begin; earlier ones are known by their names alone."""

MOST_BYTES = 1 << 26
"""The largest pickle that is read, unpacked: some fifteen times the largest of BIRCO's."""
_MOST_INSTRUCTIONS = 5_000_000
_MOST_VALUES = 20_000_000
_MOST_LEVELS = 32
_INTEGER_BITS = 64
_LAST_PROTOCOL = 5
_EXPECTED = "a pickle of plain dicts, lists, texts and numbers"
_CONTAINERS = (dict, list, tuple)


class _OddPickleError(Exception):
    """Something that is no plain data; its text says what."""


class _Mark:
    """Where an instruction began to collect values."""


@dataclass
class _Machine:
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def pop(self) -> Any:  # noqa: ANN401  a pickle holds anything
        if not self.stack or isinstance(self.stack[-1], _Mark):
            raise _OddPickleError("an instruction that takes a value where there is none")
        return self.stack.pop()

    def popped(self, count: int) -> tuple[Any, ...]:
        return tuple(reversed([self.pop() for _ in range(count)]))

    def since_mark(self) -> list[Any]:
        at = next((i for i in range(len(self.stack) - 1, -1, -1) if isinstance(self.stack[i], _Mark)), None)
        if at is None:
            raise _OddPickleError("an instruction that takes values from a mark where there is none")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def top(self, kind: type) -> Any:  # noqa: ANN401  a pickle holds anything
        found = self.pop()
        if type(found) is not kind:
            raise _OddPickleError(f"items put into a {type(found).__name__}")
        self.stack.append(found)
        return found


def is_pickle(path: Path) -> bool:
    """Whether a file is a pickle, by its name or by how it begins; raises FormatError where it cannot be read."""
    if unpacked_name(path).lower().endswith(PICKLE_SUFFIXES):
        return True
    return not path.is_fifo() and read_bytes(path, 2).startswith(
        PICKLE_MAGIC
    )  # what is read of a pipe is gone


def read_pickle(path: Path) -> Any:  # noqa: ANN401  a pickle holds anything
    """What a pickle of plain data holds, as JSON would: keys are texts and tuples lists; and bytes.

    Raises FormatError, in one line, for a file of more than 64 MiB or five million instructions, for damage, and for
    anything but plain data, named: any other name than NumPy's dtype and scalar, a type of objects, a reference to
    outside, an extension, the state of an object, a container within itself, a key twice, or more than 32 levels.
    """
    data = read_bytes(path, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(path, f"a pickle of more than {MOST_BYTES:,} bytes", "a smaller one, or JSON")
    try:
        found = _run(data)
        _refuse_bombs(found)
        return _plain(found)
    except (_OddPickleError, OddNumpyError) as odd:
        raise FormatError(path, str(odd), _EXPECTED) from None


def _run(data: bytes) -> Any:  # noqa: ANN401  a pickle holds anything
    import pickletools  # takes instructions apart and runs none

    machine = _Machine()
    try:
        for count, (code, argument, at) in enumerate(pickletools.genops(data)):
            if count == _MOST_INSTRUCTIONS:
                raise _OddPickleError(f"a pickle of more than {_MOST_INSTRUCTIONS:,} instructions")
            if code.name == "STOP" and at is not None and at + 1 != len(data):
                raise _OddPickleError("bytes behind a pickle's end")
            _step(machine, code.name, argument)
    except (ValueError, OverflowError) as error:  # cut short, an unknown instruction, a text that is none
        raise _OddPickleError(f"a damaged pickle ({' '.join(str(error).split())[:120]})") from None
    found = machine.pop()
    if machine.stack:
        raise _OddPickleError("a pickle that leaves values over")
    return found


def _step(machine: _Machine, name: str, argument: Any) -> None:  # noqa: ANN401  as pickletools gives it
    if name in _VALUES:
        machine.stack.append(_refuse_long(argument))
    elif name in _MADE:
        machine.stack.append(_MADE[name](machine))
    elif name in _DONE:
        _DONE[name](machine)
    elif name in _PUTS:
        machine.memo[len(machine.memo) if argument is None else argument] = _last(machine)
    elif name in _GETS:
        machine.stack.append(_kept(machine, argument))
    elif name == "GLOBAL":
        machine.stack.append(_named(*argument.rpartition(" ")[::2]))
    else:
        _pass_or_refuse(name, argument)


def _kept(machine: _Machine, at: int) -> Any:  # noqa: ANN401  a pickle holds anything
    if at not in machine.memo:
        raise _OddPickleError("a reference to a value that was never kept")
    return machine.memo[at]


def _pass_or_refuse(name: str, argument: object) -> None:
    """Pass over what says nothing about values; raises for everything else, and for protocols to come."""
    if name in ("FRAME", "STOP") or (name == "PROTO" and argument in range(_LAST_PROTOCOL + 1)):
        return
    said = _REFUSED.get(name, f"the instruction {name}")
    raise _OddPickleError(said if argument is None else f"{said} ({str(argument)[:60]})")


def _refuse_long(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        raise _OddPickleError(f"a whole number of {value.bit_length():,} bits")
    return value


def _last(machine: _Machine) -> Any:  # noqa: ANN401  a pickle holds anything
    machine.stack.append(machine.pop())
    return machine.stack[-1]


def _named(module: object, name: object) -> NumpyName:
    found = NUMPY_NAMES.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if found is None:
        raise _OddPickleError(f"the name {str(module)[:60]}.{str(name)[:60]}, which is not called")
    return found


def _reduced(machine: _Machine) -> object:
    callee, arguments = machine.popped(2)
    if not isinstance(callee, NumpyName) or not isinstance(arguments, tuple):
        raise _OddPickleError(f"a call of a {type(callee).__name__}")
    return called(callee, arguments)


def _built(machine: _Machine) -> None:
    state = machine.pop()
    built = _last(machine)
    if not isinstance(built, NumpyType):
        raise _OddPickleError(f"the state of a {type(built).__name__}")
    put_in_order(built, state)


def _set(into: dict[Any, Any], pairs: list[Any]) -> None:
    if len(pairs) % 2:
        raise _OddPickleError("a key without a value")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(key, (str, int)):
            raise _OddPickleError(f"a {type(key).__name__} as a key")
        if key in into:
            raise _OddPickleError(f"'{str(key)[:60]}' twice in one dict")
        into[key] = value


def _dict(machine: _Machine) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    _set(found, machine.since_mark())
    return found


def _set_item(machine: _Machine) -> None:
    pair = machine.popped(2)
    _set(machine.top(dict), list(pair))


def _set_items(machine: _Machine) -> None:
    pairs = machine.since_mark()
    _set(machine.top(dict), pairs)


def _append(machine: _Machine) -> None:
    one = machine.pop()
    machine.top(list).append(one)


def _appends(machine: _Machine) -> None:
    more = machine.since_mark()
    machine.top(list).extend(more)


_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = (
    "STRING",
    "BINSTRING",
    "SHORT_BINSTRING",
    "UNICODE",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
)
_BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8")
_VALUES = frozenset((*_NUMBERS, *_TEXTS, *_BYTES))
_PUTS, _GETS = (
    frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}),
    frozenset({"GET", "BINGET", "LONG_BINGET"}),
)
_MADE: Mapping[str, Callable[[_Machine], Any]] = {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "MARK": lambda _: _Mark(),
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    "DICT": _dict,
    "LIST": _Machine.since_mark,
    "TUPLE": lambda machine: tuple(machine.since_mark()),
    "TUPLE1": lambda machine: machine.popped(1),
    "TUPLE2": lambda machine: machine.popped(2),
    "TUPLE3": lambda machine: machine.popped(3),
    "DUP": _last,
    "STACK_GLOBAL": lambda machine: _named(*machine.popped(2)),
    "REDUCE": _reduced,
}
_DONE: Mapping[str, Callable[[_Machine], object]] = {
    "POP": _Machine.pop,
    "POP_MARK": _Machine.since_mark,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPEND": _append,
    "APPENDS": _appends,
    "BUILD": _built,
}
_REFUSED = {
    **dict.fromkeys(("PERSID", "BINPERSID"), "a reference to outside the file"),
    **dict.fromkeys(("EXT1", "EXT2", "EXT4"), "an entry of the extension registry"),
    **dict.fromkeys(("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"), "an object to be made"),
    **dict.fromkeys(("NEXT_BUFFER", "READONLY_BUFFER", "BYTEARRAY8"), "a buffer"),
    "PROTO": "a protocol that is not known",
    **dict.fromkeys(("EMPTY_SET", "FROZENSET", "ADDITEMS"), "a set, which has no order"),
}


def _refuse_bombs(value: object) -> None:
    """Refuse what is nested too deeply or within itself, or would unfold into too many values."""
    known: dict[int, tuple[int, int]] = {}  # of a container: values when unfolded, levels

    def size(one: object, level: int) -> tuple[int, int]:
        if not isinstance(one, _CONTAINERS):
            return 1, 0
        if id(one) not in known:
            if level == _MOST_LEVELS:
                raise _OddPickleError(
                    f"containers within themselves, or more than {_MOST_LEVELS} levels of them"
                )
            inner = [size(held, level + 1) for held in (one.values() if isinstance(one, dict) else one)]
            known[id(one)] = 1 + sum(n for n, _ in inner), 1 + max((deep for _, deep in inner), default=0)
        values, levels = known[id(one)]
        if values > _MOST_VALUES or level + levels > _MOST_LEVELS:
            raise _OddPickleError("containers that unfold beyond all bounds")
        return values, levels

    size(value, 0)


def _plain(value: Any) -> Any:  # noqa: ANN401  a pickle holds anything
    """The value with keys as texts and tuples as lists, each container a new one; raises for what is no data."""
    if isinstance(value, dict):
        found = {str(key): _plain(held) for key, held in value.items()}
        if len(found) < len(value):
            twice = first_repeated(map(str, value)) or ""
            raise _OddPickleError(f"'{twice[:60]}' twice in one dict, as a text and as a number")
        return found
    if isinstance(value, (list, tuple)):
        return [_plain(held) for held in value]
    if isinstance(value, (NumpyName, NumpyType)):
        raise _OddPickleError("a NumPy name instead of a value")
    return value


def pickled_rows(rows: Iterable[tuple[str, Iterable[str] | Mapping[str, float]]]) -> Iterable[bytes]:
    """A dict of lists of texts, or of dicts of numbers, as a pickle of protocol 4: its head, each row, its end."""
    yield b"\x80\x04}("
    for name, row in rows:
        if isinstance(row, Mapping):
            pairs = (_pickled_text(key) + _number(value) for key, value in row.items())
            yield _pickled_text(name) + b"}(" + b"".join(pairs) + b"u"
        else:
            yield _pickled_text(name) + b"](" + b"".join(map(_pickled_text, row)) + b"e"
    yield b"u."


def _pickled_text(text: str) -> bytes:
    data = text.encode("utf-8")
    return b"X" + len(data).to_bytes(4, "little") + data


def _number(value: float) -> bytes:
    from struct import pack

    return pack("<ci", b"J", value) if isinstance(value, int) else pack(">cd", b"G", value)
