"""The windows in which a language model is shown candidates."""

from __future__ import annotations

from dataclasses import dataclass

from weir.errors import BadValue

__all__ = ["Windows"]


@dataclass(frozen=True)
class Windows:
    """The windows of a listwise order: documents of one, how far the next is from it, how often over all of them."""

    window: int = 20
    step: int = 10
    passes: int = 1

    def __post_init__(self) -> None:
        for name in ("window", "step", "passes"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise BadValue(f"llm: {name} is {getattr(self, name)!r}; expected a whole number from 1")
        if self.window < 2 or self.step > self.window:
            raise BadValue("llm: a window has 2 documents or more, and a step is no longer than it")

    def over(self, count: int) -> list[tuple[int, int]]:
        """(start, stop) of each window over so many documents, the last documents first; () for one alone."""
        stops = [count - i * self.step for i in range(count)]
        needed = next((i for i, stop in enumerate(stops) if stop <= self.window), 0) + 1
        once = [(max(0, stop - self.window), stop) for stop in stops[:needed]]
        return once * self.passes if count > 1 else []
