"""The two levels of chance in a mean over datasets: which datasets, and which queries within each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.core.strings import Float64
from weir.stats.resampling import resampled_counts, resampled_sums
from weir.stats.significance import Draws

__all__ = ["two_level_means"]


def two_level_means(datasets: Sequence[Sequence[Float64]], draws: Draws) -> Float64:
    """Means over datasets drawn with replacement, and queries with replacement within each, float64[B, K].

    datasets: for each its parts, float64[K, Q] with a row for each system; the means of the parts are averaged. All
    systems share the samples; a dataset that is drawn twice has its queries drawn twice. Somewhat wide, as
    the means of the datasets vary with their queries already. Source: Davison and Hinkley 1997, section 3.8.
    """
    first, *others = draws.generator().spawn(1 + sum(map(len, datasets)))
    blocks = resampled_counts(len(datasets), draws.count, first)
    times = np.concatenate([block.astype(np.int64) for block in blocks])
    total = np.zeros((draws.count, len(datasets[0][0])))
    streams = iter(others)
    for number, parts in enumerate(datasets):
        sample = np.repeat(np.arange(draws.count), times[:, number])
        for part in parts:
            sums = np.concatenate(list(resampled_sums(part, len(sample), next(streams))))
            np.add.at(total, sample, sums / (part.shape[1] * len(parts)))
    return total / len(datasets)
