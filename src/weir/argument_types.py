"""Check the types of arguments of public functions, with errors of one line."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from inspect import getsource, unwrap
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from weir.errors import BadValue, CallError, UnknownName
from weir.registry import Registry

P = ParamSpec("P")
T = TypeVar("T")
Words: TypeAlias = "tuple[str, tuple[ast.expr, ...]]"
"""A type in an annotation: its name without the module, and the arguments in brackets."""

_SHOWN = 60  # characters of a value
_PLAIN = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_ANYTHING = {"object", "Any", "T"}
_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "None": (lambda value: value is None, "None"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: type(value).__name__ in ("bool", "bool_"), "True or False"),
    "int": (lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    "float": (lambda value: isinstance(value, Real) and not isinstance(value, bool), "a number"),
    "Path": (lambda value: isinstance(value, os.PathLike), "a path"),
    "Callable": (callable, "a function"),
    "Mapping": (lambda value: isinstance(value, Mapping), "a dict"),
    "Iterable": (lambda value: isinstance(value, Iterable) and not _single(value), "a list"),
    "Sequence": (lambda value: isinstance(value, Collection) and not _single(value), "a list"),
}
_KINDS |= {"PathLike": _KINDS["Path"], "dict": _KINDS["Mapping"]}
_KINDS |= {"tuple": _KINDS["Sequence"], "list": _KINDS["Sequence"]}
_FROM_DICTS = {"Corpus", "Queries"}
_OF_OTHERS = {"Measure": "ir_measures"}
"""Class -> library whose objects are accepted too, by their names."""
CONVERSIONS = Registry[Callable[[object], Sequence[object]]]("conversion")
"""Functions that make values of Weir, such as collections, of objects of another package, by "package.Class"."""
_FAST: dict[str, type] = {"None": type(None), "str": str, "bool": bool, "int": int, "float": float}


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with arguments checked against their annotations.

    Integers of any library pass as int, numbers as float, {id: text} or a frame as a Corpus or Queries;
    objects of other packages are converted. The new function raises BadValue for another type, CallError for
    unknown, repeated or missing arguments.
    """

    @cache
    def parameters() -> tuple[list[_Parameter], dict[str, _Parameter], _Parameter | None, list[str]]:
        inner: Any = unwrap(function)
        code, annotations = inner.__code__, inner.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        every = {name: _Parameter(name, annotations.get(name, "object"), function) for name in names}
        rest = code.co_varnames[len(names)] if code.co_flags & 4 else None  # *args
        several = None if rest is None else _Parameter(rest, annotations.get(rest, "object"), function)
        without = names[: code.co_argcount][: code.co_argcount - len(inner.__defaults__ or ())]
        needed = [*without, *(n for n in names[code.co_argcount :] if n not in (inner.__kwdefaults__ or {}))]
        return [every[name] for name in names[: code.co_argcount]], every, several, needed

    def refuse_misplaced(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        in_order, by_name, further, needed = parameters()
        if not kwargs.keys() <= by_name.keys():
            raise CallError(_unknown_argument(function, kwargs.keys() - by_name.keys(), by_name))
        names = [one.name for one in in_order]
        if (further is None and len(args) > len(in_order)) or _given_twice(args, kwargs, names):
            raise CallError(_misplaced(function, args, kwargs, names, by_name))
        if lacking := [name for name in needed if name not in kwargs and name not in names[: len(args)]]:
            several = "s" * (len(lacking) > 1)
            raise CallError(
                f"{_name_of(function)} lacks the argument{several} {' and '.join(lacking)}{_remedies(args)}"
            )

    @wraps(function)
    def checked_call(*args: P.args, **kwargs: P.kwargs) -> T:
        in_order, by_name, further, needed = parameters()
        try:
            if kwargs or further is not None or not len(needed) <= len(args) <= len(in_order):
                refuse_misplaced(args, kwargs)
            for place, value in enumerate(args):
                one = in_order[place] if place < len(in_order) else further
                if one is not None and type(value) not in one.fast and not one.seen(value):
                    try:
                        new = one.taken(value)
                    except BadValue as error:
                        raise BadValue(f"{error}{_order(in_order, args, place)}") from None
                    if new is not value:
                        args = (*args[:place], new, *args[place + 1 :])  # type: ignore[assignment]  # of the same types
            for name, value in kwargs.items():
                one = by_name[name]
                if type(value) not in one.fast and not one.seen(value):
                    kwargs[name] = one.taken(value)
            return function(*args, **kwargs)
        except BadValue as error:
            if remedies := _remedies((*args, *kwargs.values()), str(error)):
                raise BadValue(f"{error}{remedies}") from error.__cause__
            raise

    return checked_call


def named_arguments(called: T) -> T:
    """Return a function, or a dataclass changed in place, that raises CallError for unknown, surplus or
    repeated arguments."""
    function: Any = vars(called)["__init__"] if isinstance(called, type) else called

    @cache
    def parameters() -> tuple[dict[str, None], list[str], bool]:
        code = unwrap(function).__code__
        every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return dict.fromkeys(every), list(every[: code.co_argcount]), bool(code.co_flags & 4)

    @wraps(function)
    def named_call(*args: object, **kwargs: object) -> object:
        every, in_order, further = parameters()
        if not kwargs.keys() <= every.keys():
            raise CallError(_unknown_argument(function, kwargs.keys() - every.keys(), every))
        if (not further and len(args) > len(in_order)) or (kwargs and _given_twice(args, kwargs, in_order)):
            raise CallError(_misplaced(function, args, kwargs, in_order, every))
        return function(*args, **kwargs)

    if isinstance(called, type):
        setattr(called, "__init__", named_call)  # noqa: B010  as `checked_fields`
        return called
    return cast("T", named_call)


def converted(value: object) -> Sequence[object] | None:
    """Return an object of another package as a sequence of Weir's values; None for plain values, and without
    a plug-in for it.

    Raises BadValue if conversion fails.
    """
    if isinstance(value, _PLAIN):
        return None
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__]
    names = (f"{package}.{name}" for package, name in kinds if package not in ("builtins", "weir"))
    known = next((name for name in names if name in CONVERSIONS), None)
    return None if known is None else CONVERSIONS.get(known)(value)


def converted_one(value: object) -> object:
    """Return an object of another package as one value of Weir, other objects unchanged; raises BadValue for
    several values, or if conversion fails."""
    several = converted(value)
    if several is None:
        return value
    if len(several) != 1:
        names = ", ".join(
            f"{getattr(one, 'name', one)}:{getattr(one, 'split', '')}".rstrip(":") for one in several
        )
        raise BadValue(f"an object {shown_value(value)} is {len(several)} values ({names}); expected one")
    return several[0]


def with_converted(values: object) -> object:
    """Return a list or dict with objects of other packages converted to values of Weir, or such an object as
    a sequence; other values unchanged."""
    if isinstance(values, Mapping):
        named = {name: converted_one(one) for name, one in values.items()}
        return values if all(named[name] is one for name, one in values.items()) else named
    if not isinstance(values, (list, tuple)):
        several = converted(values)
        return values if several is None else several
    found = [converted(one) for one in values]
    if all(one is None for one in found):
        return values
    return [part for one, of in zip(values, found, strict=True) for part in ((one,) if of is None else of)]


def checked_fields(settings: type[T]) -> type[T]:
    """Return a dataclass, changed in place, whose constructor checks types as `checked` does."""
    settings.__init__ = checked(settings.__init__)  # type: ignore[method-assign]  # that is the purpose
    return settings


def _name_of(function: Callable[..., object]) -> str:
    return function.__qualname__.removesuffix(".__init__")


def _given_twice(args: Sequence[object], kwargs: Mapping[str, object], names: Iterable[str]) -> str:
    return next((name for _, name in zip(args, names, strict=False) if name in kwargs), "")


def _misplaced(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    in_order: Sequence[str],
    known: Iterable[str],
) -> str:
    name = _name_of(function)
    if twice := _given_twice(args, kwargs, in_order):
        return f"{name} is given {twice} twice: by its place, and by its name"
    own = [one for one in in_order if one != "self"]
    others = [f"{one}=" for one in known if one not in in_order]
    by_name = f"; by name: {', '.join(others)}" if others else ""
    return f"{name} takes {', '.join(own) or 'nothing'} by place{by_name}; {shown_value(args[-1])} has none"


def _order(in_order: Sequence[_Parameter], args: Sequence[object], place: int) -> str:
    # The order, if this value and a later one fit once they are exchanged.
    given = list(zip(in_order, args, strict=False))
    if place < len(given) and any(
        other.fits(args[place]) and given[place][0].fits(value) for other, value in given[place + 1 :]
    ):
        return f"; the order is {', '.join(one.name for one, _ in given)}"
    return ""


def _unknown_argument(function: Callable[..., object], given: Iterable[str], known: Iterable[str]) -> str:
    names, name = [name for name in known if name != "self"], min(given)
    of_object = "model" in names and name in ("name", "version")
    here = f"weir.encoder(model, {name}=...), or weir.reranker for a re-ranker" if of_object else None
    return str(UnknownName(f"argument of {_name_of(function)}", name, names, here))


def _remedies(values: Iterable[object], refusal: str | None = None) -> str:
    kinds = [
        kind for kind in dict.fromkeys(map(type, values)) if isinstance(getattr(kind, "REMEDY", None), str)
    ]
    said = [kind.REMEDY for kind in kinds if refusal is None or kind.__name__ in refusal]  # type: ignore[attr-defined]  # they have it
    return "".join(f"; {one}" for one in said if one not in (refusal or ""))


@dataclass(frozen=True)
class _Parameter:
    name: str
    annotation: str
    function: Callable[..., object]

    @cached_property
    def types(self) -> tuple[Words, ...]:
        return tuple(_types(ast.parse(self.annotation, mode="eval").body, self.function.__module__))

    @cached_property
    def fast(self) -> Container[type]:
        names = {name for name, _ in self.types}
        return _Everything() if names & _ANYTHING else {kind for name, kind in _FAST.items() if name in names}

    @cached_property
    def accepted(self) -> set[tuple[type, frozenset[type]]]:
        return set()

    def seen(self, value: object) -> bool:
        return (
            isinstance(value, (list, tuple)) and (type(value), frozenset(map(type, value))) in self.accepted
        )

    def fits(self, value: object) -> bool:
        return any(_accepts(value, words, self.function.__module__) for words in self.types)

    def taken(self, value: object) -> object:
        module, names = self.function.__module__, {name for name, _ in self.types}
        for words in self.types:
            if _accepts(value, words, module):
                if isinstance(self.fast, set) and _is_class(words[0], module):
                    self.fast.add(type(value))
                if type(value) in (list, tuple) and all(
                    name == "str" or _is_class(name, module) for name, _ in _element_types(words[1], module)
                ):  # their types alone decide
                    self.accepted.add((type(value), frozenset(map(type, cast("list[object]", value)))))
                if words[0] == "int":
                    return int(cast("Integral", value))
                return (
                    value
                    if words[0] != "float" or isinstance(value, (int, float))
                    else float(cast("Real", value))
                )
        if (found := names & _FROM_DICTS) and _is_table(value):
            return cast("Any", _class(found.pop(), module)).of(value)
        if (new := with_converted(value)) is not value:
            if not self.fits(new):
                new = converted_one(value)
            if self.fits(new):
                return self.taken(new)
        kind = next((words for words in self.types if words[1] and _is_kind(value, words[0])), None)
        if kind is not None:  # a list or a dict whose elements are wrong
            wrong = next(v for v in _elements(value) if not _accepts_element(v, kind, module))
            held = shown_value(wrong).replace("of type", "a value of type", 1)
            raise BadValue(f"{self.name} holds {held}; expected {_described((kind,), module)}")
        raise BadValue(f"{self.name} is {shown_value(value)}; expected {_described(self.types, module)}")


def _is_table(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(row, Mapping) for row in value)
    return isinstance(value, Mapping) or any(
        hasattr(value, name) for name in ("columns", "column_names", "to_numpy")
    )


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


def _single(value: object) -> bool:
    return isinstance(value, (str, bytes, Mapping))


def _types(node: ast.expr, module: str) -> Iterable[Words]:
    if isinstance(node, ast.BinOp):
        yield from _types(node.left, module)
        yield from _types(node.right, module)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield from _types(ast.parse(node.value, mode="eval").body, module)
        else:
            yield ("None" if node.value is None else "object", ())
    else:
        base = node.value if isinstance(node, ast.Subscript) else node
        name = base.attr if isinstance(base, ast.Attribute) else ast.unparse(base)
        inner = node.slice if isinstance(node, ast.Subscript) else None
        arguments = () if inner is None else tuple(inner.elts) if isinstance(inner, ast.Tuple) else (inner,)
        if name == "Literal":
            kinds = {type(one.value).__name__ for one in arguments if isinstance(one, ast.Constant)}
            yield from ((kind, ()) for kind in sorted(kinds))
        elif name in _KINDS or name in _ANYTHING:
            yield (name, arguments if name not in ("Callable", "PathLike") else ())
        else:
            found = _class(name, module)
            found = getattr(
                found, "__value__", found
            )  # of a `type` statement, as NDArray is one from NumPy 2.5 on
            if found is None or isinstance(found, type):
                yield (name, ())
            else:  # an alias
                text = found if isinstance(found, str) else repr(found)
                yield from _types(ast.parse(text, mode="eval").body, module)


@cache
def _class(name: str, module: str) -> object:
    home = sys.modules[module]
    if hasattr(home, name):
        return cast("object", getattr(home, name))
    imports = [one for one in ast.walk(ast.parse(getsource(home))) if isinstance(one, ast.ImportFrom)]
    for node in imports:
        for alias in node.names:
            if node.module is not None and (alias.asname or alias.name) == name:
                return cast("object", getattr(importlib.import_module(node.module), alias.name))
    # Within an imported alias.
    loaded = (sys.modules.get(node.module or "") for node in imports)
    return next((getattr(one, name) for one in loaded if hasattr(one, name)), None)


def _accepts(value: object, words: Words, module: str) -> bool:
    name, arguments = words
    if name in _ANYTHING:
        return True
    if name in _KINDS:
        return _is_kind(value, name) and all(
            _accepts_element(v, words, module) for v in _elements(value, arguments)
        )
    if isinstance(value, _PLAIN):
        return False
    if name in _OF_OTHERS and type(value).__module__.partition(".")[0] == _OF_OTHERS[name]:
        return True
    found = _class(name, module)
    if not isinstance(found, type):
        return True
    try:
        return isinstance(value, found)
    except TypeError:  # a protocol that is for type checkers alone
        return True


def _is_class(name: str, module: str) -> bool:
    if name in _KINDS or name in _ANYTHING:
        return False
    found = _class(name, module)
    return isinstance(found, type) and not getattr(found, "_is_protocol", False)


def _is_kind(value: object, name: str) -> bool:
    return name in _KINDS and _KINDS[name][0](value)


def _elements(value: object, arguments: object = True) -> Iterable[object]:
    if not arguments or isinstance(value, str) or not isinstance(value, Collection):
        return ()
    return value.values() if isinstance(value, Mapping) else value


def _accepts_element(value: object, words: Words, module: str) -> bool:
    return any(_accepts(value, one, module) for one in _element_types(words[1], module))


@cache
def _element_types(arguments: tuple[ast.expr, ...], module: str) -> list[Words]:
    last = [one for one in arguments if not _is_ellipsis(one)][-1:]
    return [one for node in last for one in _types(node, module)]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def shown_value(value: object) -> str:
    """Return a value with its type for a message, such as "5 (int)"; "of type Run" for other objects and long
    values."""
    text = repr(value) if isinstance(value, _PLAIN) else ""
    kind = type(value).__name__
    text = text if value is None else f"{text} ({kind})" if text else ""
    return text if 0 < len(text) <= _SHOWN else f"of type {kind}"


def shortened(text: str) -> str:
    """Return a text for a message, cut at 60 characters."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def with_article(name: str) -> str:
    """Return a name with its spoken article: an object, an M, a Run."""
    vowel = name[:1] in ("AEFHILMNORSX" if len(name) == 1 else "AEIOUaeiou")
    return f"{'an' if vowel else 'a'} {name}"


def _described(types: Iterable[Words], module: str) -> str:
    words = list[str]()
    for name, arguments in types:
        text = _KINDS[name][1] if name in _KINDS else with_article(name)
        if name == "tuple" and len(arguments) > 1 and not _is_ellipsis(arguments[-1]):
            words.append(f"a tuple of {len(arguments)}")
            continue
        text += ", {identifier: text}, a frame" if name in _FROM_DICTS else ""
        inner = _element_types(arguments, module)
        if inner and not {one for one, _ in inner} & _ANYTHING:
            text += f" (each {_described(inner, module)})"
        words.append(text)
    words = list(dict.fromkeys(words))
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
