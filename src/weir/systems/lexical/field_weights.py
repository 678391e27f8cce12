"""Fields of documents and how much each of them counts, as bm25 and bm25f take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from weir.core.corpus import check_view
from weir.errors import BadValue

__all__ = ["FieldNumbers", "FieldsGiven", "field_numbers", "field_weights", "names_of", "written"]

FieldNumbers: TypeAlias = tuple[tuple[str, float], ...]
"""A number for each of some fields, in the order of their names."""
FieldsGiven: TypeAlias = Mapping[str, float] | Sequence[str] | FieldNumbers
"""Fields as they may be given: {"title": 3, "text": 1}, or ["title", "text"], which count alike."""

LARGEST_WEIGHT = 1e6


def field_weights(system: str, given: object) -> FieldNumbers:
    """The weight of each field; a field may be a view, such as "title text", which is then searched as one.

    Raises BadValue, naming the system, for what is no FieldsGiven, for none, for a field named twice, and for a weight
    that is not above 0.
    """
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)) or not given:
        expected = '["title", "text"] or {"title": 3, "text": 1}'
        raise BadValue(f"{system}: fields is {given!r}; expected such as {expected}")
    pairs = list(given.items()) if isinstance(given, Mapping) else [_pair(one) for one in given]
    found = field_numbers(system, "fields", pairs, LARGEST_WEIGHT)
    if len(dict(found)) < len(found):
        raise BadValue(f"{system}: fields names a field twice")
    if any(weight == 0 for _, weight in found):
        raise BadValue(f"{system}: a field weighs 0; leave it out")
    return found


def field_numbers(
    system: str, setting: str, given: Sequence[tuple[object, object]], most: float
) -> FieldNumbers:
    """A number from 0 to `most` for each field; raises BadValue for another."""
    found = []
    for name, number in given:
        check_view(name)
        if not (type(number) in (int, float) and isinstance(number, (int, float)) and 0 <= number <= most):
            raise BadValue(
                f"{system}: {setting} gives '{name}' {number!r}; expected a number up to {most:,.0f}"
            )
        found.append((str(name), float(number)))
    return tuple(sorted(found))


def names_of(numbers: FieldNumbers) -> tuple[str, ...]:
    """The fields alone."""
    return tuple(name for name, _ in numbers)


def written(numbers: FieldNumbers) -> list[str] | dict[str, float]:
    """How weights of fields are written: the fields alone where all weigh 1."""
    if all(number == 1 for _, number in numbers):
        return list(names_of(numbers))
    return {name: int(number) if number.is_integer() else number for name, number in numbers}


def _pair(one: object) -> tuple[object, object]:
    return one if isinstance(one, tuple) and len(one) == 2 else (one, 1.0)
