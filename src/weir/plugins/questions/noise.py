"""How far scores move without a change: in repeated runs, or with other judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.roles import judged_run
from weir.core.rounding import counted, part_of, percent, score
from weir.core.run import Run
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure
from weir.stats.distributions import student_quantile
from weir.stats.resampling import LEVEL
from weir.stats.run_noise import RunNoise

FACTORS = ("system", "judge", "query")
FEWEST_REPEATS = 5
"""Fewest runs of a system for an estimate of its variance; with fewer, gates that use it err in 6 to 8 of 100 cases."""
FIRST_DOCUMENTS = 10


@dataclass(frozen=True)
class VarianceComponent:
    """The variance that a factor, or an interaction of factors, adds to a value."""

    factors: tuple[str, ...]
    """Names in FACTORS: ("system",) is the deviation that all queries of a run share, ("system", "query") the rest."""
    variance: float
    """Unbiased estimate, which may be below 0 if there is no variance."""


def variance_components(values: Float64) -> tuple[VarianceComponent, ...]:
    """Return the variance components of values measured once for each combination of factors.

    values: float64[runs, judges, queries], the scores. A factor of length 1 has no component.

    Raises BadValue if no factor has length 2, and for values that are not finite.
    """
    # Random effects, all crossed, one value in each cell. The expected mean square of a set of factors is the sum of
    # the components of the sets that hold it, each times the number of values that share its levels; solved by
    # inclusion and exclusion. Searle, Casella and McCulloch 1992, chapter 4.
    if values.ndim != len(FACTORS) or not np.isfinite(values).all() or max(values.shape, default=0) < 2:
        raise BadValue(
            f"found values of shape {values.shape}; expected a finite number for each asking, judge and query, two of "
            "one at least"
        )
    axes = [axis for axis, size in enumerate(values.shape) if size > 1]
    subsets = list(chain.from_iterable(combinations(axes, n) for n in range(1, len(axes) + 1)))
    squares = {subset: _mean_square(values, subset) for subset in subsets}
    components = []
    for subset in subsets:
        above = [other for other in subsets if set(subset) <= set(other)]
        total = sum((-1) ** (len(other) - len(subset)) * squares[other] for other in above)
        shared = math.prod(values.shape[axis] for axis in axes if axis not in subset)
        components.append(VarianceComponent(tuple(FACTORS[axis] for axis in subset), total / shared))
    return tuple(components)


def _mean_square(values: Float64, subset: tuple[int, ...]) -> float:
    others = tuple(axis for axis in range(values.ndim) if axis not in subset)
    effect: Float64 = np.asarray(values.mean(axis=others, keepdims=True))
    for axis in subset:
        effect = np.asarray(effect - effect.mean(axis=axis, keepdims=True))
    degrees = math.prod(values.shape[axis] - 1 for axis in subset)
    return float(np.square(effect).sum()) * (values.size // effect.size) / float(degrees)


@dataclass(frozen=True)
class SystemNoise:
    """A measure's noise between repeated runs of one system."""

    subject: str
    """Name of the collection."""
    system: str
    measure: str
    queries: int
    repeats: int
    judges: int
    mean: float
    deviation: float
    """Standard deviation of the mean over the queries, between runs."""
    between: float
    """95th percentile of the difference between the means of two runs."""
    changed: int
    """Number of queries whose first ten documents differ between runs."""
    components: tuple[VarianceComponent, ...]
    """Variance components of the value of a query."""

    @property
    def of_mean(self) -> RunNoise:
        """The variance of the mean between runs, as gates and comparisons take it."""
        asked = f"{counted(self.queries, 'query', 'queries')} asked {self.repeats} times"
        return RunNoise(
            self.measure, self.deviation**2, self.repeats - 1, f"{self.system} on {self.subject}, {asked}"
        )


def system_noise(
    subject: str, system: str, runs: Sequence[Run], labels: Sequence[Qrels], measures: Sequence[Measure]
) -> list[SystemNoise]:
    """Return the noise of each measure between repeated runs of a system.

    labels: judgments of the queries; the first give the mean, others add the judge as a factor.

    Raises BadValue for fewer than 5 runs, or than two queries with a value in every run.
    """
    if len(runs) < FEWEST_REPEATS:
        raise BadValue(
            f"found {len(runs)} rankings of {system}; how far it moves is seen from {FEWEST_REPEATS} askings on"
        )
    queries = [
        query for query in labels[0].queries.tolist() if all(one.get(query) is not None for one in labels[1:])
    ]
    found = []
    for measure in measures:
        values = np.array([[_values(run, one, measure, queries) for one in labels] for run in runs])
        values = values[:, :, ~np.isnan(values).any(axis=(0, 1))]
        if values.shape[2] < 2:
            raise BadValue(f"{subject}: fewer than two queries have a value of {measure} by all judgments")
        means = values[:, 0].mean(axis=1)
        deviation = float(means.std(ddof=1))
        apart = student_quantile((1 + LEVEL) / 2, len(runs) - 1) * math.sqrt(2) * deviation
        found.append(
            SystemNoise(
                subject, system, str(measure), values.shape[2], len(runs), len(labels), float(means.mean()),
                deviation, apart, _changed_queries(runs, queries), variance_components(values),
            )
        )  # fmt: skip
    return found


def _changed_queries(runs: Sequence[Run], queries: Sequence[str]) -> int:
    tops = [run.top(FIRST_DOCUMENTS).to_dict() for run in runs]
    return sum(len({tuple(top.get(query, {})) for top in tops}) > 1 for query in queries)


def _values(run: Run, labels: Qrels, measure: Measure, queries: Sequence[str]) -> Float64:
    scores = scores_of(judged_run(run, labels), (measure,))
    return np.asarray(scores.values[0][scores.queries.codes(queries)])


# Tables.


def _noise_tables(noises: Sequence[SystemNoise]) -> tuple[Table, ...]:
    lines = [
        f"{one.system} on {one.subject}, asked {one.repeats} times: {one.measure} {score(one.mean)} moves by "
        f"{score(one.deviation)} (standard deviation of the mean over {counted(one.queries, 'query', 'queries')}); "
        f"two askings differ by up to {score(one.between)} in 95 of 100 cases; "
        f"{part_of(one.changed, one.queries, 'queries', 'changes its', 'change their')} first {FIRST_DOCUMENTS} "
        "documents"
        for one in noises
    ]
    rows = [["measure", "component", "standard deviation", "share of variance"]]
    for one in noises:
        whole = sum(max(0.0, part.variance) for part in one.components)
        rows += [
            [
                one.measure,
                " x ".join(part.factors),
                score(math.sqrt(max(0.0, part.variance))),
                percent(max(0.0, part.variance) / whole if whole else 0.0),
            ]
            for part in one.components
        ]
    return sentences(*lines), table_of(rows, right=2, keys=2)


NOISES = ResultKind("noise", SystemNoise, _noise_tables, parts="components")
