"""What a result is: a value that says its tables and notes, and the kinds that are registered by their classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from weir.core.scores import Note
from weir.core.tables import Table
from weir.errors import BadValue

R = TypeVar("R", bound="type[Result]")


class Result(Protocol):
    """A frozen value that a public function returns; every writer of `core.tables` takes its tables."""

    def tables(self) -> tuple[Table, ...]:
        """The tables of this result alone."""
        ...

    def notes(self) -> tuple[Note, ...]:
        """What has to be known beside the tables."""
        ...

    @classmethod
    def tables_of(cls, results: Sequence[Any]) -> tuple[Table, ...]:
        """The tables of several results of this class, which may share one."""
        ...


@dataclass(frozen=True)
class RegisteredResult:
    """A kind of result: its class, and the field whose members are the lines of a frame, "" for the result itself."""

    of: type[Result]
    parts: str = ""


RESULTS: dict[str, RegisteredResult] = {}
"""The registered kinds by name; a class registers itself when its module is imported."""


def result(kind: str, parts: str = "") -> Callable[[R], R]:
    """Register the decorated class as a kind of result; raises BadValue for a kind that another class has."""

    def registered(of: R) -> R:
        if kind in RESULTS:
            raise BadValue(f"two classes are results of the kind '{kind}'")
        RESULTS[kind] = RegisteredResult(of, parts)
        return of

    return registered
