"""Whether a change may have made things worse than allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import within_unit
from weir.stats.intervals import bounds

__all__ = ["Gate", "gate"]

# A bound that equals the allowed drop but for rounding passes.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Gate:
    """A difference, its one-sided lower confidence bound, and whether that is within the allowed drop."""

    measure: str
    queries: int
    difference: float
    low: float
    max_drop: float
    confidence: float
    passed: bool

    @property
    def verdict(self) -> str:
        """pass, fail or undecided."""
        return "pass" if self.passed else "undecided" if self.undecided else "fail"

    @property
    def undecided(self) -> bool:
        """Whether it failed although the mean dropped by no more than allowed: there are too few queries to tell."""
        return not self.passed and self.difference >= -self.max_drop


def gate(
    measure: str, differences: Float64, max_drop: float, confidence: float = 0.95, interval: str = "t"
) -> Gate:
    """Is it certain enough that the mean did not drop by more than allowed?

    differences: candidate minus baseline, float64[Q]. A one-sided test of non-inferiority: the lower bound is that
    of the two-sided interval of level 2 * confidence - 1, and not below -1 where values lie within 0..1.
    Raises BadValue for a negative drop, a confidence outside 0.5..1 and fewer than two queries, UnknownName for an
    unknown interval.
    """
    if not (max_drop >= 0 and math.isfinite(max_drop)):
        raise BadValue(f"the allowed drop is {max_drop}; expected a number from 0")
    if not 0.5 < confidence < 1:
        raise BadValue(f"the confidence is {confidence}; expected between 0.5 and 1")
    low = float(bounds(differences[None], interval, 2 * confidence - 1)[0, 0])
    if within_unit(measure):
        low = max(low, -1.0)
    mean = math.fsum(differences.tolist()) / len(differences)
    passed = low >= -max_drop - _ROUNDING
    return Gate(measure, len(differences), mean, low, max_drop, confidence, passed)
