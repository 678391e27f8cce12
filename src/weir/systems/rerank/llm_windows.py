"""How a language model is shown several documents at a time, and which of the orders that come of it count."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace

import numpy as np

from weir.errors import BadValue

__all__ = ["ORDERS", "SORTS", "Ordering", "Windows"]

ORDERS = ("first stage", "reversed", "shuffled")
"""Orders in which documents stand before the model is asked."""
SORTS = ("all", "heapsort", "bubblesort", "tournament")
"""Which groups of documents are compared: every one, or those that a sort needs."""


@dataclass(frozen=True)
class Windows:
    """The windows of a listwise order: documents of one, how far the next is from it, how often over all of them."""

    window: int = 20
    step: int = 10
    passes: int = 1

    def __post_init__(self) -> None:
        _check_counts("llm", {f.name: getattr(self, f.name) for f in fields(self)})
        if self.window < 2 or self.step > self.window:
            raise BadValue("llm: a window has 2 documents or more, and a step is no longer than it")

    def over(self, count: int) -> list[tuple[int, int]]:
        """(start, stop) of each window over so many documents, the last documents first; () for one alone."""
        stops = [count - i * self.step for i in range(count)]
        needed = next((i for i, stop in enumerate(stops) if stop <= self.window), 0) + 1
        once = [(max(0, stop - self.window), stop) for stop in stops[:needed]]
        return once * self.passes if count > 1 else []


@dataclass(frozen=True)
class Ordering:
    """How an order of documents is asked for; None takes the method's own.

    window: documents of a prompt; step, passes: see Windows; sort: one of SORTS; top: how many of the first places a
    sort fills, the others keep the first stage's order behind them; order: one of ORDERS, in which the documents stand
    before the first prompt; seed: of the shuffled order.
    """

    window: int | None = None
    step: int | None = None
    passes: int = 1
    sort: str | None = None
    top: int = 10
    order: str = "first stage"
    seed: int = 0

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("window", "step")}
        given = {name: value for name, value in given.items() if value is not None}
        _check_counts("llm", given | {"passes": self.passes, "top": self.top})
        if self.window == 1:
            raise BadValue("llm: a window has 2 documents or more")
        if self.sort not in (None, *SORTS):
            raise BadValue(f"llm: sort is {self.sort!r}; expected {', '.join(SORTS)}")
        if self.order not in ORDERS:
            raise BadValue(f"llm: order is {self.order!r}; expected {', '.join(ORDERS)}")
        if type(self.seed) is not int or self.seed < 0:
            raise BadValue(f"llm: seed is {self.seed!r}; expected a whole number from 0")

    @property
    def given(self) -> dict[str, object]:
        """What is not by default."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def resolved(self, window: int, sort: str) -> Ordering:
        """The same with a method's window and sort where none is named, and half of the window as the step."""
        wide = self.window or window
        return replace(self, window=wide, step=self.step or max(1, wide // 2), sort=self.sort or sort)

    @property
    def windows(self) -> Windows:
        """The windows of a listwise order, once resolved; raises BadValue for a step that leaves documents out."""
        return Windows(self.window or 2, self.step or 1, self.passes)

    def initial(self, count: int, query: str) -> list[int]:
        """The places of so many documents in the order in which they stand before the first prompt.

        A shuffled order follows from the seed and the query's identifier alone, whatever other queries there are.
        """
        if self.order == "shuffled":
            digest = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            rng = np.random.default_rng([self.seed, int.from_bytes(digest)])
            return [int(place) for place in rng.permutation(count)]
        return list(range(count)) if self.order == "first stage" else list(range(count - 1, -1, -1))


def _check_counts(who: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if type(value) is not int or value < 1:
            raise BadValue(f"{who}: {name} is {value!r}; expected a whole number from 1")
