"""Values as files write them: fields and who took them, identifiers as they are spelled, lists that text spells."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

from weir.errors import BadValue
from weir.files.column_names import fold
from weir.files.label_files import BINARY_WORDS
from weir.files.parsers import parse_slowly

# ----------
# The fields of a record, and what becomes of each: taken by a reader, kept as metadata, or told as left out.


class Cells(dict[str, Any]):
    """The fields of a record, which know what a reader took of them.

    A field that is read by its name is taken; looking through all of them takes none. An object of which nothing is
    taken counts as taken whole with the field that holds it, as ratings by document do.
    """

    __slots__ = ("taken",)
    taken: set[str]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  a field holds anything
        self.take(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  JSON's values
        """The value of a field, which is taken."""
        self.take(name)
        return super().get(name, default)

    def take(self, *names: str) -> None:
        """Say that fields are accounted for."""
        try:
            self.taken.update(names)
        except AttributeError:
            self.taken = set(names)

    def forget(self) -> None:
        """Say that no field is accounted for, as before reading."""
        self.taken = set()

    def is_read(self) -> bool:
        """Whether anything was taken."""
        return bool(self._taken)

    def share(self, *others: Cells) -> None:
        """Account together with records that hold the same fields."""
        self.take()
        for other in others:
            other.taken = self.taken

    def rest(self, apart: Iterable[str] = ()) -> dict[str, Any]:
        """The fields with a value that nothing took, as metadata, which are taken now; apart: names that are none.

        Vectors are left, and so is what is nested under a name that means something else.
        """
        left = {
            name: value
            for name, value in self.items()
            if name not in self._taken
            and name not in apart
            and has_value(value)
            and not _is_vector(name, value)
            if not (name in _MEANT and isinstance(value, (list, dict)))
        }
        self.take(*left)
        return left

    @property
    def _taken(self) -> set[str]:
        return getattr(self, "taken", set())

    def left(self, path: str = "") -> Iterator[str]:
        """The path of each field with a value that nothing took, objects within taken fields included."""
        for name, value in self.items():
            whole = f"{path}.{name}" if path else str(name)
            if name not in self._taken:
                if has_value(value):
                    yield whole
                continue
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Cells) and inner._taken:
                    yield from inner.left(whole)


_MEANT = {"filter", "candidates", "excluded", "instruction", "unanswerable"}
"""Names of the metadata of queries that mean something, so that nothing else may stand there."""
_LONGEST_LABELS = 50  # numbers in a list that is no vector


def _is_vector(name: str, value: object) -> bool:
    """Whether a field is a vector: what is nested under such a name, or a long list of numbers."""
    if fold(name) in ("vector", "embedding") and isinstance(value, (list, dict)):
        return True
    if not isinstance(value, list) or len(value) <= _LONGEST_LABELS:
        return False
    return all(isinstance(one, (int, float)) for one in value)


def has_value(value: object) -> bool:
    """Whether a cell holds something: no null, NaN, blank text, empty list or empty object."""
    if isinstance(value, float):
        return not math.isnan(value)
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {})


def left_out(records: Iterable[Cells]) -> Counter[str]:
    """How many records have each field that nothing took."""
    return Counter(path for record in records for path in dict.fromkeys(record.left()))


def each_record(value: object) -> Iterator[Cells]:
    """All records in a value, however deep."""
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
    """Raise BadValue, which asks which of several columns plays a role, the same in any order of them."""
    several = sorted(candidates)
    raise BadValue(
        f"{' and '.join(several[:4])} could each be the {role}; choose one, as in --columns {role}={several[0]}"
    )


class Spelled(float):
    """A number that knows how the file spells it, as an identifier 1.10 must."""

    __slots__ = ("text",)
    text: str

    @staticmethod
    def of(text: str) -> Spelled:
        """The number of a text."""
        value = Spelled(text)
        value.text = text
        return value


def plain(value: object) -> str:
    """A scalar as a text without blanks around it, otherwise as `identifier` has it."""
    return identifier(value).strip()


def identifier(value: object) -> str:
    """A scalar as an identifier, as the file spells it; nothing, blanks alone, NaN, lists and objects are "".

    A float of a table in binary is written without the point where it is whole: 7.0 is "7".
    """
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        spelled = getattr(value, "text", "")
        return spelled or (str(int(value)) if value.is_integer() else repr(value))
    text = str(value)
    return text if text.strip() else ""


def is_identifier(text: str) -> bool:
    """Whether a text can serve as an identifier: one word of at most 64 characters."""
    return len(text.split()) == 1 and len(text) <= 64


def number(value: object) -> float | None:
    """A number, also one written as text as everywhere; None for everything else, NaN and infinity included."""
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
    """Whether a value can be a grade by itself: a number, or a word such as true, no and irrelevant."""
    return number(grade_value(value)) is not None


def grade_value(value: object) -> object:
    """A grade as a number where it is a word that means the same in every file; else as it is."""
    if not isinstance(value, (str, bool)):
        return value
    word = " ".join(plain(value).casefold().replace("_", " ").replace("-", " ").split())
    return BINARY_WORDS.get(word, value)


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
    """A list, also one that a cell spells; None for anything else, an object spelled in a cell included.

    Members are as they are spelled: [1.10] is "1.10". Raises ValueError, with the reason, for a text that begins as a
    list and is none, or one with members left out.
    """
    if isinstance(value, list):
        return value
    members = spelled(value) if isinstance(value, str) else None
    return members if isinstance(members, list) else None


def spelled(text: str) -> list[Any] | dict[str, Any] | None:
    """The list or object that a text spells; None for another text; raises as `listed`."""
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
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, (list, dict)):
            return value
    if text[0] == "(":
        return None
    raise ValueError(f"'{text[:60]}' is no list that can be read; write it as JSON")


def _json(text: str) -> Any:  # noqa: ANN401  JSON's values
    return json.loads(text, parse_float=Spelled.of, object_pairs_hook=Cells)


def _python(text: str) -> Any:  # noqa: ANN401  JSON's values
    """The value of Python's literal, numbers as they are spelled."""
    tree = ast.parse(text, mode="eval").body

    def value(node: ast.expr) -> Any:  # noqa: ANN401  JSON's values
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [value(one) for one in node.elts]
        if isinstance(node, ast.Dict):
            keys = [plain(value(key)) if key is not None else "" for key in node.keys]
            return Cells(zip(keys, map(value, node.values), strict=True))
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
    """The members of a list without quotes, [d1, d2], or of numpy's, ['a' 'b'] and [ 3 17]."""
    inner = text[1:-1].strip()
    if text[0] != "[" or not inner:
        return [] if not inner else _refuse()
    if _BY_BLANKS.fullmatch(inner):
        members = [one[0] for one in _MEMBER.finditer(inner)]
        if all(one[:1] in "'\"" for one in members):
            return [str(ast.literal_eval(one)) for one in members]
        if len(members) > 1 and any(number(one) is None for one in members):
            _refuse()
        return members
    members = [one.strip() for one in inner.split(",")]
    if not all(members) or any(set(one) & set("'\"[](){}") for one in members):
        _refuse()
    return members


def _refuse() -> list[str]:
    raise ValueError
