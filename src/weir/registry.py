"""Things known by name: measures, systems, analyzers, dataset layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from weir.errors import BadValue, PluginError, UnknownName

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """Names and what they stand for; an unknown name gets a suggestion.

    Other distributions add their own by an entry point in the group `weir.<kind>s`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._known: dict[str, T] = {}
        self._plugins_read = False

    def add(self, name: str, value: T) -> T:
        """Register a value under a new name."""
        if name in self._known:
            raise BadValue(f"a {self.kind} named '{name}' is registered already")
        self._known[name] = value
        return value

    def register(self, name: str) -> Callable[[T], T]:
        """Register the decorated thing under a name."""
        return lambda value: self.add(name, value)

    def get(self, name: str) -> T:
        """The thing of that name; raises UnknownName with the nearest names, BadValue for what is no text."""
        if not isinstance(name, str):
            raise BadValue(f"{name!r} is no name of a {self.kind}; expected a text")
        if name not in self._known:
            self._read_plugins()
        try:
            return self._known[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._known) from None

    def names(self) -> list[str]:
        """All names, sorted."""
        self._read_plugins()
        return sorted(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        self._plugins_read = True
        for point in entry_points(group=f"weir.{self.kind}s"):
            if point.name not in self._known:
                self._known[point.name] = _loaded(point, self.kind)


def _loaded(point: EntryPoint, kind: str) -> Any:  # noqa: ANN401  whatever its package calls so
    try:
        return point.load()
    except Exception as error:  # it is anybody's
        where = f"the plug-in {kind} '{point.name}' ({point.value})"
        raise PluginError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
