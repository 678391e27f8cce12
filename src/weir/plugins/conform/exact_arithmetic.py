"""Exact numbers: fractions where a value is rational, decimals of sixty digits where a logarithm stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

__all__ = [
    "Exact",
    "as_decimal",
    "discounted",
    "in_base",
    "mean",
    "over",
    "power_of_two",
    "quotient",
    "ratio",
    "text",
    "total",
    "value",
]

Exact: TypeAlias = Fraction | Decimal
# A sum of gains / log2(rank + 1), as the coefficient of each 1 / log2(m).
Discounted: TypeAlias = Mapping[int, Fraction]

_WORK = Context(prec=60, Emin=-999999, Emax=999999)
_SHOWN = Context(prec=30, Emin=-999999, Emax=999999)
_LONGEST = 100  # characters of a fraction that is still written out


def over(above: int | Fraction, below: int | Fraction) -> Fraction:
    """above / below, and 0 where there is nothing to divide by."""
    return Fraction(above) / below if below else Fraction(0)


def discounted(gains: Sequence[int | Fraction], ahead: int = 1) -> Discounted:
    """The sum of gains in rank order, each divided by log2(rank + ahead), with its logarithms left standing.

    log2(m^e) is e log2(m), so 1 / log2(9) is half of 1 / log2(3): each m is taken to its smallest root, and
    sums that are multiples of each other are seen to be.
    """
    found: dict[int, Fraction] = {}
    for rank, gain in enumerate(gains, 1):
        if gain:
            root, power = _root(rank + ahead)
            found[root] = found.get(root, Fraction(0)) + Fraction(gain, power)
    return found


def value(terms: Discounted) -> Exact:
    """The number that a discounted sum is: a fraction where only log2(2) = 1 is left."""
    if set(terms) <= {2}:
        return terms.get(2, Fraction(0))
    return total([_WORK.divide(as_decimal(c), _log2(Fraction(m))) for m, c in terms.items()])


def quotient(above: Discounted, below: Discounted) -> Exact:
    """One discounted sum divided by another: a fraction where one is a multiple of the other, 0 by nothing."""
    if not below or not above:
        return Fraction(0)
    ratios = {above.get(m, Fraction(0)) / coefficient for m, coefficient in below.items()}
    if len(ratios) == 1 and set(above) <= set(below):
        return ratios.pop()
    return ratio(value(above), value(below))


def power_of_two(exponent: Fraction) -> Fraction:
    """2 to the power of a whole number, exactly; of another one to sixty digits, as it is no fraction."""
    if exponent.denominator == 1:
        return Fraction(2) ** exponent.numerator
    return Fraction(_WORK.power(Decimal(2), as_decimal(exponent)))


def in_base(number: Exact, base: Fraction) -> Exact:
    """A sum of quotients by logarithms to the base 2, where they should have been to another base."""
    return number if base == 2 or not number else _WORK.multiply(as_decimal(number), _log2(base))


def total(values: Sequence[Exact]) -> Exact:
    """The sum, a fraction where all values are."""
    fractions = [v for v in values if isinstance(v, Fraction)]
    if len(fractions) == len(values):
        return sum(fractions, Fraction(0))
    found = Decimal(0)
    for v in values:
        found = _WORK.add(found, as_decimal(v))
    return found


def ratio(above: Exact, below: Exact) -> Exact:
    """above / below, and 0 where there is nothing to divide by."""
    if not below or not above:
        return Fraction(0)
    if above == below:
        return Fraction(1)
    if isinstance(above, Fraction) and isinstance(below, Fraction):
        return above / below
    return _WORK.divide(as_decimal(above), as_decimal(below))


def mean(values: Sequence[Exact]) -> Exact:
    """The mean, a fraction where all values are."""
    return ratio(total(values), Fraction(len(values)))


def as_decimal(number: Exact) -> Decimal:
    """A number with sixty digits."""
    if isinstance(number, Decimal):
        return number
    return _WORK.divide(Decimal(number.numerator), Decimal(number.denominator))


def text(number: Exact) -> dict[str, str]:
    """A number as people and programs read it: thirty digits, and the fraction where it is one and short."""
    found = {"decimal": str(_SHOWN.plus(as_decimal(number)))}
    if isinstance(number, Fraction) and len(str(number)) <= _LONGEST:
        found["fraction"] = str(number)
    return found


def _log2(number: Fraction) -> Decimal:
    return _WORK.divide(_WORK.ln(as_decimal(number)), _WORK.ln(Decimal(2)))


def _root(n: int) -> tuple[int, int]:
    """The smallest whole m, and e, with m^e = n."""
    for power in range(n.bit_length(), 1, -1):
        near = round(n ** (1 / power))
        for m in (near - 1, near, near + 1):
            if m > 1 and m**power == n:
                return m, power
    return n, 1
