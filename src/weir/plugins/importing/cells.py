"""Values as files write them, with a record of the fields used."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from weir.core.strings import first_repeated
from weir.errors import BadValue
from weir.files.column_names import field_names, fold
from weir.files.label_files import BINARY_WORDS
from weir.files.parsers import parse_slowly

# ----------
# The fields of a record, and what becomes of each: taken by a reader, kept as metadata, or told as left out.


TRIMMED = "\0blanks"
"""The mark of a record of which a text lost blanks around it."""
KEYED = "\0names"
"""The mark of an object whose names are data, such as identifiers."""


class Cells(dict[str, Any]):
    """The fields of a record; reading a field by name marks it as used, iterating does not.

    The name "" reads nothing: it stands for a role without a field.
    """

    __slots__ = ("taken",)
    taken: set[str]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  a field holds anything
        self.take(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  JSON's values
        """Return a field's value, else `default`; mark the field as used."""
        if not name:
            return default
        self.take(name)
        return super().get(name, default)

    def seen(self, name: str) -> Any:  # noqa: ANN401  JSON's values
        """Return a field's value, or None, without marking it as used."""
        return super().get(name) if name else None

    def text(self, name: str) -> str:
        """Return a field's scalar as text without outer blanks, "" for none; a field with text is marked as used."""
        if text := plain_text(value := self.seen(name)):
            self.take(name, *([TRIMMED] if isinstance(value, str) and value != text else []))
        return text

    def number(self, name: str) -> float | None:
        """Return a field's finite number, None without one; a field with a number is marked as used."""
        if (value := number(self.seen(name))) is not None:
            self.take(name)
        return value

    def opened(self, name: str) -> Any:  # noqa: ANN401  JSON's values
        """Return a field's value, marked as used; None without the field. Text that spells a list or object is
        parsed, and replaced in the record.

        Raises ValueError for a malformed or abridged list.
        """
        value = self.get(name)
        members = spelled(value) if isinstance(value, str) else None
        if members is not None:
            self[name] = value = members  # so that unused fields within it are told too
        return value

    def take(self, *names: str) -> None:
        try:
            self.taken.update(names)
        except AttributeError:
            self.taken = set(names)

    def forget(self) -> None:
        """Mark all fields as unused again."""
        self.taken = set()

    def track_with(self, *others: Cells) -> None:
        """Make other records of the same fields share this record's set of used fields."""
        self.take()
        for other in others:
            other.taken = self.taken

    def rest(self, apart: Iterable[str] = ()) -> dict[str, Any]:
        """Return {name: value} of the unused fields, as metadata, and mark them as used.

        apart: fields to leave unused.

        Empty values, vectors, bytes, and lists or objects of fields that weir reads (filter, candidates ...) stay
        unused.
        """
        left = {
            name: value
            for name, value in self.items()
            if name not in self._taken
            and name not in apart
            and has_value(value)
            and not isinstance(value, bytes)
            and not _is_vector(name, value)
            if not (name in MEANT and isinstance(value, (list, dict)))
        }
        self.take(*left)
        take_whole(left)
        return left

    @property
    def _taken(self) -> set[str]:
        return getattr(self, "taken", set())

    def left(self, path: str = "") -> Iterator[str]:
        """Yield the dotted path of each unused field with a value, also within objects and lists, after `path`.

        An object without a used field gives its own path alone; names that are data, such as identifiers, are *.
        """
        for field, value in self.items():
            name = "*" if KEYED in self._taken and field in self._taken else field or "(no name)"
            whole = f"{path}.{name}" if path else str(name)
            if field not in self._taken:
                if has_value(value):
                    yield whole
                continue
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Cells):
                    yield from inner.left(whole) if inner._taken or not inner else [whole]


class RepeatedNameError(Exception):
    """Raised for a repeated name in an object; the message is the name."""


def unique_cells(pairs: list[tuple[str, Any]]) -> Cells:
    """Return the record of (name, value) pairs; raises RepeatedNameError for a repeated name."""
    fields = Cells(pairs)
    if len(fields) < len(pairs):
        raise RepeatedNameError(first_repeated(name for name, _ in pairs))
    return fields


MEANT = {"filter", "candidates", "excluded", "instruction", "unanswerable"}
"""Metadata of queries with a fixed meaning; nested values of a file never go there by accident."""
_LONGEST_LABELS = 50  # numbers in a list that is no vector


def _is_vector(name: str, value: object) -> bool:
    if fold(name) in ("vector", "embedding") and isinstance(value, (list, dict)):
        return True
    if not isinstance(value, list) or len(value) <= _LONGEST_LABELS:
        return False
    return all(isinstance(one, (int, float)) for one in value)


def has_value(value: object) -> bool:
    """Return True unless a value is None, NaN, blank or empty."""
    if isinstance(value, float):
        return not math.isnan(value)
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {})


def left_out(records: Iterable[Cells]) -> Counter[str]:
    """Return {path of a field: number of records in which it has a value and is unused}."""
    return Counter(path for record in records for path in dict.fromkeys(record.left()))


def trimmed(records: Iterable[Cells]) -> int:
    """Return the number of records in which a text lost outer blanks."""
    return len({id(one.taken) for one in records if TRIMMED in one._taken})


def take_whole(value: object) -> None:
    """Mark all fields of all records in a value as used."""
    for one in each_record(value):
        one.take(*one)


def each_record(value: object) -> Iterator[Cells]:
    """Yield each record (Cells) within a value, at any depth, in no fixed order."""
    level: list[Any] = [value]
    while level:
        one = level.pop()
        if isinstance(one, Cells):
            yield one
        if isinstance(one, dict):
            level.extend(one.values())
        elif isinstance(one, list):
            level.extend(one)


# ----------
# Numbers and identifiers.


def one_of(role: str, candidates: Iterable[str]) -> NoReturn:
    """Raise BadValue that names several columns which fit one role, columns of pages last, and asks to choose."""
    several = sorted(candidates, key=lambda name: (fold(name) in field_names().pages, name))
    raise BadValue(
        f"{' and '.join(several[:4])} could each be the {role}; choose one, as in `columns={ {role: several[0]} }`"
    )


class SingleFloat(float):
    """A float from a column of 32 or 16 bits; refused as identifier from 2^24 on, where digits may be lost."""


class Spelled(float):
    """A float with its spelling in the file, such as 1.10."""

    __slots__ = ("text",)
    text: str

    @staticmethod
    def of(text: str) -> Spelled:
        """Return the number that a text spells; ValueError if it spells none."""
        value = Spelled(text)
        value.text = text
        return value


def plain_text(value: object) -> str:
    """Return a scalar as text without outer blanks; "" for None, NaN, lists, objects and bytes."""
    return identifier(value).strip()


def identifier(value: object) -> str:
    """Return a scalar as the file spells it, but 7.0 as "7"; "" for None, blanks, NaN, lists, objects and bytes."""
    if value is None or isinstance(value, (dict, list, bytes)):
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        spelled = getattr(value, "text", "")
        return spelled or (str(int(value)) if value.is_integer() else repr(value))
    text = str(value)
    return text if text.strip() else ""


_ERRORS = re.compile(r"#+|#(N/A|REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|ERROR!|SPILL!)")
_EXACT, _EXACT_SINGLE = 2.0**53, 2.0**24  # whole numbers below are exact in floats of 64 and 32 bits
_ROUNDED = re.compile(r"-?\d(\.\d+)?E\+\d+")


def is_rounded(value: object) -> bool:
    """Return True for a long number as spreadsheets show it, such as 1.23457E+17."""
    return isinstance(value, str) and _ROUNDED.fullmatch(value.strip()) is not None


def refuse_no_identifier(column: str, value: object) -> None:
    """Raise ValueError for a list, object, Boolean, bytes, spreadsheet error (#N/A), or a float that may lack digits.

    column: name for the message.
    """
    if type(value) is str and _ERRORS.fullmatch(value.strip()):
        raise ValueError(f"'{value.strip()}' of a spreadsheet as '{column}'; expected an identifier")
    exact = _EXACT_SINGLE if isinstance(value, SingleFloat) else _EXACT
    if isinstance(value, float) and not isinstance(value, Spelled) and math.inf > abs(value) >= exact:
        raise ValueError(
            f"{value:.0f} as '{column}' is a float, whose last digits are lost; write it as whole or text"
        )
    if type(value) is int or (type(value) is str and value.lstrip()[:1] not in ("[", "{")):
        return
    with suppress(ValueError):
        members = spelled(value) if isinstance(value, str) else None
        value = members if isinstance(members, dict) or len(members or ()) > 1 else value
    kinds: dict[type, str] = {bool: "a Boolean", list: "a list", dict: "an object", bytes: "bytes, no UTF-8,"}
    what = next((what for kind, what in kinds.items() if isinstance(value, kind)), "")
    if what:
        raise ValueError(f"{what} as '{column}'; expected an identifier")


def is_identifier(text: str) -> bool:
    """Return True if a text is one word of at most 64 characters."""
    return len(text.split()) == 1 and len(text) <= 64


def number(value: object) -> float | None:
    """Return a number, Boolean or text as a finite float; None for other values, NaN and infinity."""
    if isinstance(value, str):
        parsed = parse_slowly(value.strip().encode("utf-8", "surrogatepass"))
    elif isinstance(value, (bool, int, float)):
        try:
            parsed = float(value)
        except OverflowError:
            return None
    else:
        return None
    return parsed if math.isfinite(parsed) else None


def is_grade(value: object) -> bool:
    """Return True for a number, or a word with a known grade such as true, no and irrelevant."""
    return number(grade_value(value)) is not None


def grade_value(value: object, words: Mapping[str, float] = BINARY_WORDS) -> object:
    """Return the number of a word such as true, no or irrelevant, by `words`; another value unchanged."""
    return words.get(grade_word(value), value) if isinstance(value, (str, bool)) else value


def grade_word(value: object) -> str:
    """Return a value as text, case-folded, with one blank for each run of blanks, hyphens and underscores."""
    return " ".join(plain_text(value).casefold().replace("_", " ").replace("-", " ").split())


# ----------
# Lists, as JSON, Python, numpy, pandas or nobody in particular spells them in a cell.


_WRAPPED = re.compile(
    r"(?:np\.|numpy\.|pd\.)?(?:array|Index|Series|list|tuple|set|frozenset|deque|tensor|dict_keys|dict_values|Counter)"
    r"\((.*)\)",
    re.DOTALL,
)
_CALL = re.compile(r"[A-Za-z_][\w.]*\((?:<class [^>]*>, )?[\[{(].*[\]})]\)", re.DOTALL)  # of another type
_SCALAR = re.compile(r"(?:np|numpy)\.(?:str_|bool_?|u?int\d+|float\d+)")  # as numpy 2 writes members of lists
_DTYPE = re.compile(r",\s*(?:dtype|name|copy)\s*=\s*[^,]*\Z")
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_BY_BLANKS = re.compile(rf"\s*(?:(?:{_QUOTED})(?=\s|\Z)\s*)+|[^'\",\[\](){{}}]+", re.DOTALL)
_CUT = re.compile(r"(?<![^\s,\[])(?:\.\.\.|…)(?![^\s,\]])")
_MEMBER = re.compile(rf"{_QUOTED}|\S+", re.DOTALL)
_PAIRS = {"[": "]", "(": ")", "{": "}"}


def listed(value: object) -> list[Any] | None:
    """Return a list, or the list that a text spells; None for other values.

    Numbers in a text stay as spelled ([1.10] has "1.10"). Raises ValueError as `spelled` does.
    """
    if isinstance(value, list):
        return value
    members = spelled(value) if isinstance(value, str) else None
    return members if isinstance(members, list) else None


def spelled(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the list or object that a text spells, as JSON, Python or numpy; None for other text.

    Raises ValueError for a malformed or abridged list, or a repeated name.
    """
    text = text.strip()
    while wrapped := _WRAPPED.fullmatch(text):
        text = wrapped[1].strip() or "[]"
        while dtype := _DTYPE.search(text):
            text = text[: dtype.start()].strip()
    if _CALL.fullmatch(text):
        raise ValueError(f"'{text[:60]}' is no list that can be read; write it as JSON")
    if text[:1] not in _PAIRS or (text[0] == "(" and not text.endswith(")")):
        return None
    if text[-1:] != _PAIRS[text[0]] or len(text) < 2:
        if text[1:2] in "'\"" or _PAIRS[text[0]] not in text:
            raise ValueError(f"'{text[:40]}' begins a list that does not end")
        return None
    if _CUT.search(re.sub(_QUOTED, "''", text)):
        raise ValueError(f"'{text[:40]}' is a list of which some members are left out (...)")
    for read in (_json, _python, _words):
        try:
            value = read(text)
        except RepeatedNameError as error:
            raise ValueError(f"'{error}' twice in '{text[:60]}'") from None
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, (list, dict)):
            return value
    if text[0] == "(":
        return None
    raise ValueError(f"'{text[:60]}' is no list that can be read; write it as JSON")


def _json(text: str) -> Any:  # noqa: ANN401  JSON's values
    return json.loads(text, parse_float=Spelled.of, object_pairs_hook=unique_cells)


def _python(text: str) -> Any:  # noqa: ANN401  JSON's values
    tree = ast.parse(text, mode="eval").body

    def value(node: ast.expr) -> Any:  # noqa: ANN401  JSON's values
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [value(one) for one in node.elts]
        if isinstance(node, ast.Dict):
            keys = [plain_text(value(key)) if key is not None else "" for key in node.keys]
            return unique_cells(list(zip(keys, map(value, node.values), strict=True)))
        if isinstance(node, ast.Constant):
            if (
                isinstance(node.value, str)
                and re.fullmatch(rf"\(?\s*(?:{_QUOTED})\s*\)?", source, re.DOTALL) is None
            ):
                raise ValueError("strings side by side")  # Python would join them; numpy writes lists so
            if isinstance(node.value, bytes):
                raise ValueError("bytes")
            if type(node.value) in (int, float):
                with suppress(ValueError):  # 0x10
                    return Spelled.of(source)
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Spelled.of(source)
        if isinstance(node, ast.Call) and _SCALAR.fullmatch(ast.unparse(node.func)) and len(node.args) == 1:
            return value(node.args[0])
        if isinstance(node, ast.Call) and _WRAPPED.fullmatch(source):
            return spelled(source)
        if isinstance(node, ast.Name) and node.id in ("nan", "null"):
            return None
        raise ValueError("no literal")

    return value(tree)


def _words(text: str) -> list[str]:
    inner = text[1:-1].strip()
    if text[0] != "[" or not inner:
        return [] if not inner else _refuse()
    if _BY_BLANKS.fullmatch(inner):
        members = [one[0] for one in _MEMBER.finditer(inner)]
        if all(one[:1] in "'\"" for one in members):
            return [str(ast.literal_eval(one)) for one in members]
        if len(members) > 1 and any(number(one) is None for one in members):
            _refuse()
        return [re.sub(r"(?<=\d)\.\Z", "", one) for one in members]  # numpy writes 3.0 as 3.
    members = [one.strip() for one in inner.split(",")]
    if not all(members) or any(set(one) & set("'\"[](){}") for one in members):
        _refuse()
    return members


def _refuse() -> list[str]:
    raise ValueError
