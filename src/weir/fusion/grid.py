"""The settings that a fit tries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from weir.errors import BadValue
from weir.fusion.method import METHODS, Fusion, FusionMethod, Setting, call_of, parse_fusion
from weir.fusion.norms import NORMS

__all__ = ["STEP", "candidates"]

STEP = 0.1
"""Between the weights that are tried; they add up to 1."""

MOST_SETTINGS = 2_000
"""Settings tried at once."""


def candidates(method: str | Fusion, runs: int, step: float = STEP) -> tuple[Fusion, ...]:
    """The settings that are tried, the method's defaults first; those that `method` gives stay as they are.

    runs: how many are fused; step: between weights, which add up to 1. Raises BadValue where nothing is left to
    choose, for more than 2,000 settings, and for a step that does not divide 1.
    """
    how = method if isinstance(method, Fusion) else parse_fusion(method)
    given: Mapping[str, object] = dict(how.settings) if isinstance(method, Fusion) else call_of(method)[1]
    how.refuse_other_than(runs)
    known = METHODS.get(how.name)
    open_ = {key: list(_grid(known, key, runs, step)) for key in known.defaults() if key not in given}
    count = math.prod(map(len, open_.values()))
    if count < 2:
        raise BadValue(f"{how}: no setting is left to fit; try rrf, rbc, wsum or a method with norms")
    if count > MOST_SETTINGS:
        raise BadValue(
            f"{how}: {count:,} settings to try, more than {MOST_SETTINGS:,}; take a larger step or fix the norm"
        )
    return tuple(
        how.with_settings(dict(zip(open_, chosen, strict=True)))
        for chosen in itertools.product(*open_.values())
    )


def _grid(known: FusionMethod, key: str, runs: int, step: float) -> Iterator[Setting]:
    """What is tried of a setting, its default first."""
    default = known.defaults()[key]
    yield default
    if key == "norm":
        yield from (name for name in NORMS if name != default)
    elif isinstance(default, tuple):
        yield from _simplex(runs, step)
    else:
        yield from (value for value in dict(known.grid).get(key, ()) if value != default)


def _simplex(runs: int, step: float) -> Iterator[tuple[float, ...]]:
    """All weights that are multiples of the step and add up to 1, but for equal ones, which are the default."""
    parts = round(1 / step) if 0 < step <= 1 else 0
    if parts == 0 or abs(parts * step - 1) > 1e-9:
        raise BadValue(f"the step of the weights is {step}; expected one that divides 1, such as 0.1 or 0.05")
    if math.comb(parts + runs - 1, runs - 1) > 100 * MOST_SETTINGS:
        raise BadValue(
            f"{runs} rankings with a step of {step} are too many weights to try; take a larger step"
        )
    for bars in itertools.combinations(range(parts + runs - 1), runs - 1):
        edges = [-1, *bars, parts + runs - 1]
        shares = [b - a - 1 for a, b in itertools.pairwise(edges)]
        if len(set(shares)) > 1:
            yield tuple(share / parts for share in shares)
