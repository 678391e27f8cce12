"""Functions of higher layers (reading, writing, showing) that `core` calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec, TypeVar

from weir.errors import WeirError

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that a higher layer registers on import.

    A call imports the modules in `rooms` until one registers it, else raises WeirError.
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
