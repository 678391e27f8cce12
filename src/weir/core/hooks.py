"""Functions of higher layers (reading, writing, showing) that values of `core` call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec, TypeVar

from weir.errors import WeirError

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that a higher layer registers on import.

    A call before that imports the modules of `rooms` in turn; WeirError if none registers it.
    """

    rooms: Callable[[], Iterator[None]] = staticmethod(lambda: iter(()))
    """Returns an iterator that imports the modules with registered functions, from the lowest layer up."""

    def __init__(self, use: str) -> None:
        self.use = use
        self.function: Callable[P, R] | None = None

    def register(self, function: Callable[P, R]) -> None:
        """Set the function that calls are passed to."""
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        floors = Hook.rooms()
        while self.function is None:
            if next(floors, self) is self:
                raise WeirError(f"no module is imported that is for {self.use}; import weir")
        return self.function(*args, **kwargs)
