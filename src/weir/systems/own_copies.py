"""Copy objects that search, so that each collection has an index of its own."""

from __future__ import annotations

import copy
from collections import deque
from inspect import ismethod, ismodule, isroutine
from types import MethodType
from typing import Any, TypeVar, cast

T = TypeVar("T")

_CONTAINERS = (dict, list, set, deque, bytearray)
_SEARCHES = ("search", "retrieve", "index")
_HOOKS = ("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__")


def own_copy(given: T) -> T:
    """Return a copy of an object that searches, with copied dicts, lists and sets but shared models.

    Searching objects in its attributes, and the object of a method, are copied too. A function, or an object
    that cannot be copied, is returned itself.
    """
    return cast(T, _copied(given, {}))


def is_shared(given: object) -> bool:
    """Return True for an object that `own_copy` cannot copy, or its method; False for functions and classes."""
    owner = given.__self__ if ismethod(given) else given
    return _is_object(owner) and own_copy(owner) is owner


def _is_object(value: object) -> bool:
    if isinstance(value, type) or ismodule(value) or isroutine(value):
        return False
    return _declares(value, "__dict__") or _declares(value, "__slots__")


def _declares(value: object, name: str) -> bool:
    return any(name in vars(base) for base in type(value).__mro__[:-1])


def _copied(given: object, copies: dict[int, object]) -> object:
    if ismethod(given):
        return MethodType(given.__func__, _copied(given.__self__, copies))
    if id(given) in copies:
        return copies[id(given)]
    closes = _declares(given, "__del__")  # perhaps a connection that both have
    if not _is_object(given) or closes:
        return given
    try:
        new = _shallow(given)
        if new is given:
            return given
        copies[id(given)] = new
        for name, value in _attributes(new).items():
            if isinstance(value, _CONTAINERS):
                object.__setattr__(new, name, copy.copy(value))
            elif _searches(value):
                object.__setattr__(new, name, _copied(value, copies))
    except Exception:  # noqa: BLE001  a class may refuse in any way
        copies[id(given)] = given
    return copies[id(given)]


def _searches(value: object) -> bool:
    return ismethod(value) or (
        _is_object(value) and any(callable(getattr(type(value), name, None)) for name in _SEARCHES)
    )


def _shallow(given: object) -> Any:  # noqa: ANN401  of the same class
    kind = type(given)
    if any(hook in vars(base) for base in kind.__mro__[:-1] for hook in _HOOKS):
        return copy.copy(given)
    new = object.__new__(kind)  # copy.copy would ask `__getattr__` of an object without attributes
    for name, value in _attributes(given).items():
        object.__setattr__(new, name, value)
    return new


def _attributes(given: object) -> dict[str, Any]:
    state: Any = object.__getstate__(given)
    plain, slots = state if isinstance(state, tuple) else (state, None)
    return {**(plain or {}), **(slots or {})}
