"""What rooms above say of values: how they are read, written and shown.

A value of `core` calls a `Hook`; the room that knows how registers its function when it is imported. `weir/__init__.py`
says which modules these are, so that a value that came from elsewhere, such as a pickle, finds them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec, TypeVar

from weir.errors import WeirError

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function of a room above; use: what it is for, as in "writing a run"."""

    rooms: Callable[[], Iterator[None]] = staticmethod(lambda: iter(()))
    """Imports the modules that register functions, floor by floor from below."""

    def __init__(self, use: str) -> None:
        self.use = use
        self.function: Callable[P, R] | None = None

    def register(self, function: Callable[P, R]) -> None:
        """Let calls go to this function."""
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the registered function; raises WeirError where no module registers one."""
        floors = Hook.rooms()
        while self.function is None:
            if next(floors, self) is self:
                raise WeirError(f"no module is imported that is for {self.use}; import weir")
        return self.function(*args, **kwargs)
