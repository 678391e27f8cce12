"""A cache limited in bytes, for values that are slow to compute."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TypeVar

import numpy as np

T = TypeVar("T")

KEPT_BYTES = 1 << 28
"""Bytes of all cached values together, measured when they were made."""
SAMPLED_ITEMS = 1000
"""Items of a container that are weighed, for all of them."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A cache that drops the least recently used values beyond a number of bytes, never the newest."""

    bytes: int = KEPT_BYTES
    values: dict[object, Future[object]] = field(default_factory=dict)
    """{key: value}, also values being computed; most recently used last."""
    sizes: dict[object, int] = field(default_factory=dict)
    """Bytes of each computed value."""
    lock: Lock = field(default_factory=Lock)
    turn: Lock = field(default_factory=Lock)
    """Held while a background value is computed, so that one is computed at a time."""

    def value_of(self, key: object, make: Callable[[], T]) -> T:
        """Return the cached value of a key; the first caller computes it, others wait.

        An exception of `make` is raised for all, and not cached.
        """
        future, fresh = self._future(key)
        if fresh:
            self._fill(key, future, make)
        return future.result()  # type: ignore[return-value]  # what was made for this key

    def soon(self, key: object, make: Callable[[], T]) -> T | None:
        """Return the cached value of a key; None while `make` computes it in the background. Raises its
        exception."""
        future, fresh = self._future(key)
        if fresh:
            # A daemon, so that a server that is ended does not wait for it.
            Thread(target=self._in_turn, args=(key, future, make), daemon=True).start()
        return future.result() if future.done() else None  # type: ignore[return-value]  # as above

    def _in_turn(self, key: object, future: Future[object], make: Callable[[], object]) -> None:
        with self.turn:
            self._fill(key, future, make)

    def _future(self, key: object) -> tuple[Future[object], bool]:
        with self.lock:
            future = self.values.pop(key, None)
            fresh = future is None or (future.done() and future.exception() is not None)
            if future is None or fresh:
                future = Future()
                self.sizes.pop(key, None)
            self.values[key] = future
            return future, fresh

    def _fill(self, key: object, future: Future[object], make: Callable[[], object]) -> None:
        try:
            value = make()
        except BaseException as error:  # noqa: BLE001  whoever asks for the value is told
            future.set_exception(error)
            size = held_bytes(key)
        else:
            future.set_result(value)
            size = held_bytes((key, value))
        with self.lock:
            self.sizes[key] = size
            left = sum(self.sizes.values())
            for old in [one for one in self.values if one in self.sizes and one != key]:
                if left <= self.bytes:
                    return
                left -= self.sizes.pop(old)
                del self.values[old]


_ELSEWHERE = (type, ModuleType, FunctionType, BuiltinFunctionType, Kept)
"""Objects that outlive a value that refers to them."""


def held_bytes(value: object) -> int:
    """Return an estimate of the bytes that a value and all its parts hold."""
    seen, found, left = set[int](), 0.0, [(value, 1.0)]
    while left:
        one, times = left.pop()
        if id(one) in seen or isinstance(one, _ELSEWHERE):
            continue
        seen.add(id(one))
        found += times * sys.getsizeof(one, 0)
        inner = gc.get_referents(one) if not isinstance(one, np.ndarray) else [one.base]
        share = times * max(1.0, len(inner) / SAMPLED_ITEMS)
        left += [(each, share) for each in inner[:SAMPLED_ITEMS]]
    return int(found)
