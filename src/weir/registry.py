"""Register measures, systems, analyzers and other values by name, and write settings as text."""

from __future__ import annotations

import ast
import inspect
import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from itertools import pairwise
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from weir.errors import BadValue, PluginError, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from _typeshed import DataclassInstance


T = TypeVar("T")

SESSION = "session"
"""Key of a description that marks results as valid in this process only; no other process reads them."""
NAME_CHARACTERS = 80


class Registry(Generic[T]):
    """A mapping from names to values, such as measures; a look-up may import a module or a plug-in.

    kind: a word for a value in messages, such as "measure".
    lazy: a package that registers its names when they are looked up.
    more: registers further names, called when a name is not found.
    group: entry points of plug-ins, by default `weir.<kind>s`.
    prepared: changes each value before it is registered.
    """

    def __init__(
        self,
        kind: str,
        lazy: ModuleType | None = None,
        more: Callable[[], object] | None = None,
        group: str | None = None,
        prepared: Callable[[T], T] = lambda value: value,
    ) -> None:
        self.kind = kind
        self._prepared = prepared
        self.group = group or f"weir.{kind}s"
        self._known: dict[str, T] = {}
        self._lazy = lazy
        self._more = more
        self._points: dict[str, EntryPoint] | None = None

    def add(self, name: str, value: T, again: bool = False) -> T:
        """Register a value, changed by `prepared`, and return it; raises BadValue for a known name unless
        `again`."""
        if name in self._known and not again:
            raise BadValue(f"a {self.kind} named '{name}' is registered already")
        self._known[name] = self._prepared(value)
        return self._known[name]

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers a function or class, as `add` does."""
        return lambda value: self.add(name, value)

    def get(self, name: str) -> T:
        """Return the value of a name, importing its module or plug-in if needed.

        Raises UnknownName, BadValue for a name that is no str, PluginError for a plug-in that cannot be
        loaded.
        """
        if not isinstance(name, str):
            raise BadValue(f"{name!r} names no {self.kind}; expected a text")
        if name in self._known:
            return self._known[name]
        if name in self._lazy_names():
            getattr(self._lazy, name)
        elif self._more is not None:
            self._more()
        if name not in self._known and name in self._of_plugins():
            loaded = _loaded(self._of_plugins()[name], self.kind)
            self._known.setdefault(name, loaded)  # its module may have registered more than it names
        try:
            return self._known[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._names()) from None

    def names(self) -> list[str]:
        """Return all names, sorted, including plug-ins not loaded yet."""
        if self._more is not None:
            self._more()
        return sorted(self._names())

    def __contains__(self, name: object) -> bool:
        if name not in self._known and name not in self._lazy_names() and self._more is not None:
            self._more()
        return name in self._known or name in self._lazy_names() or name in self._of_plugins()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __repr__(self) -> str:
        return f"<{len(self.names())} {self.kind}s: {', '.join(self.names()[:5])}, ...>"

    def _names(self) -> set[str]:
        return {*self._known, *self._lazy_names(), *self._of_plugins()}

    def _lazy_names(self) -> list[str]:
        return [] if self._lazy is None else dir(self._lazy)

    def _of_plugins(self) -> dict[str, EntryPoint]:
        if self._points is None:
            from importlib.metadata import entry_points  # it takes longer to import than most commands run

            self._points = {point.name: point for point in entry_points(group=self.group)}
        return self._points


def _loaded(point: EntryPoint, kind: str) -> Any:  # noqa: ANN401  whatever its package calls so
    try:
        return point.load()
    except Exception as error:  # it is anybody's
        where = f"the plug-in {kind} '{point.name}' ({point.value})"
        raise PluginError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Identity:
    """Name and version of a user's function or object, for tables and keys of stored results."""

    name: str
    version: str | None = None
    """Declared by the owner of the object; None means that `session` identifies it, in this process only."""
    session: str = field(default_factory=lambda: os.urandom(8).hex(), compare=False)
    given: object = field(default=None, compare=False, repr=False)
    named: bool = field(default=True, compare=False, repr=False)
    """False if the name was derived from the object's function, checkpoint or class."""

    def describe(self) -> dict[str, object]:
        """Return {"name": name, "version": version}; without a version also {SESSION: a random id}."""
        entries: dict[str, object] = {"name": self.name, "version": self.version}
        return entries if self.version is not None else entries | {SESSION: self.session}

    def same_object(self, other: Identity) -> bool:
        """Return True for equal declared versions, or, without versions, the same object."""
        if self.version is not None or other.version is not None:
            return self.version == other.version
        methods = inspect.ismethod(self.given) and inspect.ismethod(other.given)
        return self.given is other.given or (methods and self.given == other.given)

    @staticmethod
    def of(given: object, name: str | None = None, version: str | None = None, adapter: str = "") -> Identity:
        """Return the identity of a function, model or other object.

        name: by default the function's, the model's checkpoint, or the class's.
        version: identifies the object for stored results.
        adapter: the function of `weir` that takes a name, for messages.

        Raises BadValue for a lambda or partial without a name, an unprintable or long name, and a version
        that is empty or no str.
        """
        own_name = _own_name(given, adapter) if name is None else name
        if not isinstance(own_name, str) or not own_name.strip() or not own_name.isprintable():
            raise BadValue(f"name is {own_name!r}; expected a text of printable characters")
        if len(own_name) > NAME_CHARACTERS:
            raise BadValue(f"a name of {len(own_name)} characters; expected at most {NAME_CHARACTERS}")
        declared_version(version)
        return Identity(own_name, version, given=given, named=name is not None)


@runtime_checkable
class Identified(Protocol):
    """A value with an Identity; `adapter` names the function of `weir` that makes it, for messages."""

    identity: Identity
    adapter: ClassVar[str]


def declared_version(version: str | None) -> dict[str, object]:
    """Return {"version": version}; for None also {SESSION: id of this process}, so that no other process
    reuses stored results.

    Raises BadValue for a version that is empty or no str.
    """
    if not (version is None or (isinstance(version, str) and version)):
        raise BadValue(f"version is {version!r}; expected a text, such as '2026-11'")
    return {"version": version} if version is not None else {"version": None, SESSION: _process_session()}


@cache
def _process_session() -> str:
    return os.urandom(8).hex()


def checkpoint_of(given: object) -> str:
    """Return a model object's Hugging Face name, or the end of its checkpoint's path; "" for other objects."""
    checkpoint = getattr(getattr(given, "transformers_model", given), "name_or_path", None)
    if not isinstance(checkpoint, str) or not checkpoint.strip():
        return ""
    parts = PurePath(checkpoint).parts
    for folder, below in pairwise(parts):  # of the hub's cache: models--ORGANISATION--NAME/snapshots/HASH
        if folder.startswith("models--") and below == "snapshots":
            return folder.removeprefix("models--").replace("--", "/", 1)
    return "/".join(parts[-2:])


def _own_name(given: object, adapter: str) -> str:
    if checkpoint := checkpoint_of(given):
        return checkpoint
    name = given.__name__ if inspect.isroutine(given) else type(given).__name__
    if name == "<lambda>" or isinstance(given, partial):
        how = f"{adapter}(..., name='mine')" if adapter else "name='mine'"
        raise BadValue(f"a {name.strip('<>')} has no name of its own; give one: {how}")
    return str(name)


def session_only(description: object) -> bool:
    """Return True if a nested description contains the key SESSION: its results are valid in this process only."""
    return next(sessions(description), None) is not None


def sessions(description: object) -> Iterator[object]:
    """Yield the values of the key SESSION in nested mappings and sequences, depth first."""
    if isinstance(description, Mapping):
        if SESSION in description:
            yield description[SESSION]
        description = tuple(description.values())
    if isinstance(description, Sequence) and not isinstance(description, str):
        for one in description:
            yield from sessions(one)


def changed_settings(config: DataclassInstance, leave_out: tuple[str, ...] = ()) -> dict[str, object]:
    """Return {field: value} of a dataclass's fields that differ from their defaults or have none."""
    values = {f.name: (getattr(config, f.name), f.default) for f in fields(config) if f.name not in leave_out}
    return {name: value for name, (value, default) in values.items() if value != default}


def check_whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Raise BadValue unless a setting is an int, no bool, from `least` to `most` (None: unbounded)."""
    if type(value) is not int or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most:,}"
        raise BadValue(f"{name} is {value!r}; expected a whole number from {least}{end}")


def printed(value: object) -> str:
    """Return a setting as text for a system's name: "text", [list] or {mapping}."""
    if isinstance(value, str):
        written = json.dumps(value, ensure_ascii=False)  # its escapes are Python's too
        return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(printed, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{printed(key)}: {printed(one)}" for key, one in value.items()) + "}"
    return str(value)


@cache
def described(named: Callable[..., object]) -> str:
    """Return a callable's docstring; for a class also "field: text" of each documented field, if its source
    can be read."""
    above = inspect.getdoc(named) or ""
    lines = [f"{name}: {text}" for name, text in _field_docstrings(named)] if isinstance(named, type) else []
    return "\n\n".join(filter(None, [above, "\n".join(lines)]))


def _field_docstrings(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = inspect.getsource(cls)
    except OSError:
        return
    (definition,) = ast.parse(textwrap.dedent(source)).body
    if isinstance(definition, ast.ClassDef):
        for field_line, text_line in pairwise(definition.body):
            match field_line, text_line:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    yield name, " ".join(text.split())
