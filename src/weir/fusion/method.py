"""A fusion is a value: it prints, parses back, compares, and maps candidates to one score each."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weir.core.strings import Float64
from weir.errors import BadValue, UnknownName
from weir.fusion.candidates import Candidates
from weir.fusion.norms import NORMS
from weir.registry import Registry, printed

__all__ = ["METHODS", "Fusion", "FusionMethod", "Setting", "call_of", "fusion", "parse_fusion"]

Setting: TypeAlias = int | float | str | tuple[float, ...]
"""A setting's value; a tuple has one number for each run."""

NORM = "minmax"
"""The normalisation of methods that go by scores, where none is named."""

_LONGEST = 500  # characters of a fusion's text
_LARGEST_WEIGHT = 1e9
_LARGEST = 1 << 63  # no number of a setting reaches it


@dataclass(frozen=True)
class FusionMethod:
    """How rankings may be fused: a function, whether it goes by scores, the range and the grid of its settings.

    within: the smallest and the largest value of a setting; grid: the values that `fit` tries.
    """

    name: str
    function: Callable[..., Float64]
    scored: bool
    within: tuple[tuple[str, tuple[float, float]], ...] = ()
    grid: tuple[tuple[str, tuple[Setting, ...]], ...] = ()

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def defaults(self) -> dict[str, Setting]:
        """Its settings and their default values."""
        parameters = inspect.signature(self.function).parameters.values()
        own = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        return own | ({"norm": NORM} if self.scored else {})


METHODS: Registry[FusionMethod] = Registry("fusion")


def fusion(
    name: str,
    *,
    scored: bool = False,
    within: Mapping[str, tuple[float, float]] | None = None,
    grid: Mapping[str, tuple[Setting, ...]] | None = None,
) -> Callable[[Callable[..., Float64]], Fusion]:
    """Register the decorated function of `Candidates` as a fusion method.

    Its keyword parameters are the method's settings, whose type is that of their default; one whose default is ()
    takes a number for each run. scored: it goes by scores, which are normalised first, and so has the setting `norm`.
    """

    def register(function: Callable[..., Float64]) -> Fusion:
        ranges, tried = tuple((within or {}).items()), tuple((grid or {}).items())
        METHODS.add(name, FusionMethod(name, function, scored, ranges, tried))
        return Fusion(name)

    return register


@dataclass(frozen=True)
class Fusion:
    """A method with its settings, such as rrf(k=10) or wsum(weights=[0.3, 0.7], norm="zscore").

    settings: only those that differ from the default, so equal fusions compare and print equal.
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={printed(value)}" for key, value in self.settings)
        return f"{self.name}({inside})" if inside else self.name

    def with_settings(self, given: Mapping[str, object]) -> Fusion:
        """The same method with these settings; raises UnknownName for one it does not have, or BadValue."""
        method = METHODS.get(self.name)
        defaults = method.defaults()
        chosen = dict(self.settings)
        for key, value in given.items():
            if key not in defaults:
                raise UnknownName(f"setting of {self.name}", key, defaults)
            chosen[key] = _checked(method, key, value, defaults[key])
        return Fusion(
            self.name, tuple((k, chosen[k]) for k in defaults if chosen.get(k, defaults[k]) != defaults[k])
        )

    @property
    def scored(self) -> bool:
        """Whether it goes by scores."""
        return METHODS.get(self.name).scored

    @property
    def norm(self) -> str:
        """The normalisation of the scores; "none" where ranks alone count."""
        return str(dict(self.settings).get("norm", NORM)) if self.scored else "none"

    def all_settings(self) -> dict[str, Setting]:
        """Every setting with its value, the defaults too."""
        return METHODS.get(self.name).defaults() | dict(self.settings)

    def refuse_other_than(self, runs: int) -> None:
        """Raise BadValue where a setting has another number of values than there are runs."""
        for key, value in self.settings:
            if isinstance(value, tuple) and len(value) != runs:
                raise BadValue(f"{self}: {key} has {len(value)} for {runs} rankings; give one for each")

    def __call__(self, candidates: Candidates) -> Float64:
        """The fused score of each candidate, float64[n]; raises BadValue for another number of weights than runs."""
        self.refuse_other_than(candidates.runs)
        own = {key: value for key, value in self.settings if key != "norm"}
        return METHODS.get(self.name).function(candidates, **own)


def parse_fusion(text: str) -> Fusion:
    """The fusion that a text such as `rrf(k=10)` or `wsum(weights=[0.3, 0.7])` names.

    Raises UnknownName for a method, setting or normalisation that does not exist, BadValue for a malformed text.
    """
    name, given = call_of(text)
    METHODS.get(name)
    return Fusion(name).with_settings(given)


def call_of(text: str) -> tuple[str, dict[str, object]]:
    """The name and the settings that a text gives, defaults that it spells out too; raises BadValue."""
    malformed = BadValue(f"'{text[:_LONGEST]}' is not a fusion; expected such as rrf or rrf(k=10)")
    if len(text) > _LONGEST:
        raise malformed
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, {}
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
            raise malformed
        if any(k.arg is None for k in node.keywords):
            raise malformed
        given = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
        if len(given) < len(node.keywords):
            raise BadValue(f"{node.func.id}: a setting is given twice")
        return node.func.id, given
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise malformed from None


def _checked(method: FusionMethod, key: str, value: object, default: Setting) -> Setting:
    where = f"{method.name}({key}={printed(value)})"
    if key == "norm":
        if not isinstance(value, str):
            raise BadValue(f"{where}: expected one of {', '.join(NORMS)}")
        NORMS.get(value)
        return value
    if isinstance(default, tuple):
        return _weights(where, value)
    return _number(method, key, value, default)


def _number(method: FusionMethod, key: str, value: object, default: Setting) -> Setting:
    where = f"{method.name}({key}={printed(value)})"
    low, high = dict(method.within).get(key, (-math.inf, math.inf))
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default) or not isinstance(value, (int, float)):
        raise BadValue(f"{where}: expected {'a whole number' if isinstance(default, int) else 'a number'}")
    if not (low <= value <= high and abs(value) < _LARGEST):
        raise BadValue(f"{where}: expected within {low}..{high}")
    return value


def _weights(where: str, value: object) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or not all(type(w) in {int, float} for w in value):
        raise BadValue(f"{where}: expected a list of numbers, one for each ranking")
    if value and not (all(0 <= w <= _LARGEST_WEIGHT for w in value) and any(value)):
        raise BadValue(f"{where}: expected numbers from 0 to {_LARGEST_WEIGHT:g}, not all of them 0")
    return tuple(float(w) for w in value)
