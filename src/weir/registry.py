"""Things known by name: measures, systems, analyzers, dataset layouts; and how their settings are written."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from weir.errors import BadValue, PluginError, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from _typeshed import DataclassInstance


T = TypeVar("T")

SESSION = "session"
"""Entry of a description that holds in one process only: what is made under it is never read by another."""
NAME_CHARACTERS = 80


class Registry(Generic[T]):
    """Names and what they stand for; an unknown name gets a suggestion.

    lazy: a package whose names (see `lazy_names`) are imported, and so registered, when they are looked up; more:
    registers further names, called when a name is nowhere else. Other distributions add their own by an entry point in
    the group `weir.<kind>s`.
    """

    def __init__(
        self, kind: str, lazy: ModuleType | None = None, more: Callable[[], object] | None = None
    ) -> None:
        self.kind = kind
        self._known: dict[str, T] = {}
        self._lazy = lazy
        self._more = more
        self._points: dict[str, EntryPoint] | None = None

    def add(self, name: str, value: T, again: bool = False) -> T:
        """Register a value under a new name, or again under one that it has."""
        if name in self._known and not again:
            raise BadValue(f"a {self.kind} named '{name}' is registered already")
        self._known[name] = value
        return value

    def register(self, name: str) -> Callable[[T], T]:
        """Register the decorated thing under a name."""
        return lambda value: self.add(name, value)

    def get(self, name: str) -> T:
        """The thing of that name; raises UnknownName with the nearest names, BadValue for what is no text."""
        if not isinstance(name, str):
            raise BadValue(f"{name!r} names no {self.kind}; expected a text")
        if name in self._known:
            return self._known[name]
        if name in self._lazy_names():
            getattr(self._lazy, name)
        elif self._more is not None:
            self._more()
        if name not in self._known and name in self._of_plugins():
            self._known[name] = _loaded(self._of_plugins()[name], self.kind)
        try:
            return self._known[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._names()) from None

    def names(self) -> list[str]:
        """All names, sorted."""
        if self._more is not None:
            self._more()
        return sorted(self._names())

    def __contains__(self, name: object) -> bool:
        """Whether a name is registered; those of plug-ins that were not used yet are among `names` alone."""
        if name not in self._known and name not in self._lazy_names() and self._more is not None:
            self._more()
        return name in self._known or name in self._lazy_names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _names(self) -> set[str]:
        return {*self._known, *self._lazy_names(), *self._of_plugins()}

    def _lazy_names(self) -> list[str]:
        return [] if self._lazy is None else dir(self._lazy)

    def _of_plugins(self) -> dict[str, EntryPoint]:
        """Name -> entry point of what other distributions and the outer ring add; each is loaded when it is named."""
        if self._points is None:
            from importlib.metadata import entry_points  # it takes longer to import than most commands run

            self._points = {point.name: point for point in entry_points(group=f"weir.{self.kind}s")}
        return self._points


def _loaded(point: EntryPoint, kind: str) -> Any:  # noqa: ANN401  whatever its package calls so
    try:
        return point.load()
    except Exception as error:  # it is anybody's
        where = f"the plug-in {kind} '{point.name}' ({point.value})"
        raise PluginError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Identity:
    """What stands for an object that is not registered, in names and keys.

    version: as its owner declares it; None where none is declared, and then the session stands for it, of this process
    alone; given: the object itself.
    """

    name: str
    version: str | None = None
    session: str = field(default_factory=lambda: os.urandom(8).hex(), compare=False)
    given: object = field(default=None, compare=False, repr=False)

    def describe(self) -> dict[str, object]:
        """Its entries of a description."""
        entries: dict[str, object] = {"name": self.name, "version": self.version}
        return entries if self.version is not None else entries | {SESSION: self.session}

    def same_object(self, other: Identity) -> bool:
        """Whether both are of one object, or of objects that one declared version stands for."""
        if self.version is not None or other.version is not None:
            return self.version == other.version
        methods = inspect.ismethod(self.given) and inspect.ismethod(other.given)
        return self.given is other.given or (methods and self.given == other.given)

    @staticmethod
    def of(given: object, name: str | None = None, version: str | None = None, adapter: str = "") -> Identity:
        """That of an object: by default a function's own name, or that of the object's class.

        adapter: the function of `weir` that takes a name, where the caller does not.
        Raises BadValue for one without a name that can be printed, and for a version that is no text.
        """
        own_name = _own_name(given, adapter) if name is None else name
        if not isinstance(own_name, str) or not own_name.strip() or not own_name.isprintable():
            raise BadValue(f"name is {own_name!r}; expected a text of printable characters")
        if len(own_name) > NAME_CHARACTERS:
            raise BadValue(f"a name of {len(own_name)} characters; expected at most {NAME_CHARACTERS}")
        declared_version(version)
        return Identity(own_name, version, given=given)


@runtime_checkable
class Identified(Protocol):
    """A value that an Identity stands for; adapter: the function that gives it a name, as it is called in Python."""

    identity: Identity
    adapter: ClassVar[str]


def declared_version(version: str | None) -> dict[str, object]:
    """The entries of a description for what may answer otherwise tomorrow: its version, or the session.

    Two things of one description and without a version are the same within a process, and to no other process.
    Raises BadValue for a version that is no text.
    """
    if not (version is None or (isinstance(version, str) and version)):
        raise BadValue(f"version is {version!r}; expected a text, such as '2026-11'")
    return {"version": version} if version is not None else {"version": None, SESSION: _process_session()}


@cache
def _process_session() -> str:
    return os.urandom(8).hex()


def _own_name(given: object, adapter: str) -> str:
    """The name of a function, or of an object's class; raises BadValue where that says nothing."""
    name = given.__name__ if inspect.isroutine(given) else type(given).__name__
    if name == "<lambda>" or isinstance(given, partial):
        how = f"{adapter}(..., name='mine')" if adapter else "name='mine'"
        raise BadValue(f"a {name.strip('<>')} has no name of its own; give one: {how}")
    return str(name)


def session_only(description: object) -> bool:
    """Whether a description holds a SESSION, at any depth: what it describes declares no version."""
    return next(sessions(description), None) is not None


def sessions(description: object) -> Iterator[object]:
    """The sessions within a description, at any depth, in its order."""
    if isinstance(description, Mapping):
        if SESSION in description:
            yield description[SESSION]
        description = tuple(description.values())
    if isinstance(description, Sequence) and not isinstance(description, str):
        for one in description:
            yield from sessions(one)


def changed_settings(config: DataclassInstance, leave_out: tuple[str, ...] = ()) -> dict[str, object]:
    """The settings of a configuration that are not by default, by name, in the order in which they are declared."""
    values = {f.name: (getattr(config, f.name), f.default) for f in fields(config) if f.name not in leave_out}
    return {name: value for name, (value, default) in values.items() if value != default}


def check_whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Raise BadValue for a setting that is no whole number of that range."""
    if type(value) is not int or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most:,}"
        raise BadValue(f"{name} is {value!r}; expected a whole number from {least}{end}")


def printed(value: object) -> str:
    """A setting as it is written, on one line: texts in double quotes, several values as a list, named ones a dict."""
    if isinstance(value, str):
        written = json.dumps(value, ensure_ascii=False)  # its escapes are Python's too
        return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(printed, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{printed(key)}: {printed(one)}" for key, one in value.items()) + "}"
    return str(value)
