"""Where judgments come from: "human", "duplicate", "llm:...", whatever their file says; and layers of judgments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int32

__all__ = ["MODEL", "Origins"]

MODEL = "llm:"
"""How the origin of a model's judgments begins; its name follows."""


@dataclass(frozen=True, eq=False)
class Origins:
    """The origin of each judgment.

    names: the different origins, "" for judgments that name none; code: int32[n] the number in `names` of each
    judgment.
    """

    names: tuple[str, ...]
    code: Int32

    @staticmethod
    def of(texts: Iterable[str]) -> Origins:
        """The origins of judgments, one text for each."""
        known: dict[str, int] = {}
        code = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
        return Origins(tuple(known), code)

    @staticmethod
    def alike(name: str, count: int) -> Origins:
        """One origin for so many judgments."""
        return Origins((name,), np.zeros(count, np.int32))

    def take(self, rows: NDArray[np.integer]) -> Origins:
        """The origins of these judgments."""
        return Origins(self.names, self.code[rows])

    def then(self, other: Origins) -> Origins:
        """The origins of these judgments and then of others."""
        names = tuple(dict.fromkeys([*self.names, *other.names]))
        number = np.array([names.index(name) for name in other.names], np.int32)
        return Origins(names, np.concatenate([self.code, number[other.code]]))

    def tolist(self) -> list[str]:
        """The origin of each judgment."""
        return [self.names[code] for code in self.code.tolist()]

    def of_models(self) -> NDArray[np.bool_]:
        """Which judgments are a model's: those whose origin begins with "llm:", bool[n]."""
        models = np.array([name.startswith(MODEL) for name in self.names], np.bool_)
        return np.asarray(models[self.code], np.bool_)

    def counts(self, rows: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """How many judgments, or of these, come from where, the most first."""
        code = self.code if rows is None else self.code[rows]
        number = np.bincount(code, minlength=len(self.names)).tolist()
        found = {name: n for name, n in zip(self.names, number, strict=True) if n}
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def said(self, rows: NDArray[np.bool_] | None = None) -> str:
        """The counts in words: "9 human, 2 llm:judge"."""
        return ", ".join(f"{n:,} {name or 'of no named origin'}" for name, n in self.counts(rows).items())
