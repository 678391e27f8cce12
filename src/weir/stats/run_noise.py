"""Noise of systems that answer differently in each run, with bounds and tests that allow for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from weir.core.strings import Float64
from weir.stats.distributions import student_quantile, student_tail
from weir.stats.significance import deviation_of, exact_mean


@dataclass(frozen=True)
class RunNoise:
    """How a system's mean over queries varies between repeated runs."""

    measure: str
    variance: float
    """Variance of the mean."""
    degrees: int
    """Number of runs that it was estimated from, less 1."""
    of: str = ""
    """The system, the collection and the number of queries that it was measured on."""

    def error(self, differences: Float64) -> tuple[float, float]:
        """Return (standard error, degrees of freedom) of two noisy systems' mean difference, from differences
        of two or more queries.
        """
        # Both systems are taken to be as noisy as the one that was asked again (Satterthwaite 1946). Noise that differs
        # from query to query is counted twice, as differences vary with it: the error is rather too large.
        of_queries, of_runs = deviation_of(differences) ** 2 / len(differences), 2 * self.variance
        total = of_queries + of_runs
        if not total:
            return 0.0, len(differences) - 1.0
        parts = of_queries**2 / (len(differences) - 1) + of_runs**2 / self.degrees
        return math.sqrt(total), total**2 / parts

    def bound(self, differences: Float64, level: float) -> float:
        """Return the one-sided lower bound of two noisy systems' mean difference at confidence `level`."""
        error, degrees = self.error(differences)
        return exact_mean(differences) - (student_quantile(level, degrees) * error if error else 0.0)

    def tail(self, differences: Float64) -> float:
        """Return the one-sided p-value of two noisy systems' mean difference above 0; 0 or 1 without
        variance.
        """
        error, degrees = self.error(differences)
        mean = exact_mean(differences)
        return student_tail(mean / error, degrees) if error else float(mean <= 0)


def noise_notes(noises: Iterable[RunNoise], measures: Iterable[str]) -> list[str]:
    """Return a sentence for each measure whose noise is allowed for."""
    used = {measure: noise_of(noises, measure) for measure in measures}
    return [
        f"{measure}: the noise allowed for is that of {one.of}; both sides are taken to move as much"
        for measure, one in used.items()
        if one is not None and one.of
    ]


def noise_of(noises: Iterable[RunNoise], measure: str) -> RunNoise | None:
    """Return the noise of a measure; None if unknown."""
    return next((one for one in noises if one.measure == measure), None)
