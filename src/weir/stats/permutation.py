"""The paired randomisation (permutation) test and the bootstrap-shift test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.stats.distributions import normal_quantile
from weir.stats.resampling import BLOCK_CELLS, Draws, resampled_sums, sign_sums
from weir.stats.significance import Detection, Pairs, p_of_draws, significance

# Sums that are equal but for rounding must count as equal, or the arrangement observed would not count.
_ROUNDING = 1e-12


def exact_p_values(rows: Float64) -> Float64:
    """Return exact two-sided p-values of the randomisation test of rows without zeros; memory grows with
    2^(columns / 2).
    """
    sums = rows.sum(axis=1)
    # Flipping a set of differences gives as large a sum where the sum over the set is not above zero.
    upward = rows * np.where(sums < 0, -1, 1)[:, None] / np.abs(rows).sum(axis=1, keepdims=True)
    half = rows.shape[1] // 2
    one, other = (_subset_sums(part) for part in (upward[:, :half], upward[:, half:]))
    # Rows are kept apart by adding more than any sum comes to, so that one search serves all.
    apart = 3.0 * np.arange(len(rows))[:, None]
    at = np.searchsorted(
        np.sort(one + apart, axis=1).reshape(-1), (apart - other).reshape(-1) + 10 * _ROUNDING, "right"
    )
    below = at.reshape(other.shape) - one.shape[1] * np.arange(len(rows))[:, None]
    return np.asarray(np.minimum(1.0, below.sum(axis=1) * 2.0 ** (1 - rows.shape[1])))


def rejected_by_signs(rows: Float64, level: float) -> NDArray[np.bool_]:
    """Return True for each row whose randomisation test has a p-value below about `level`; rows of a dozen
    differences or more.
    """
    # Quantile of a sum under random signs from its fourth and sixth cumulant: Cornish and Fisher 1937.
    z = normal_quantile(1 - level / 2)
    square = rows * rows
    scale = square.sum(axis=1)
    fourth = -2 * (square**2).sum(axis=1) / scale**2
    sixth = 16 * (square**3).sum(axis=1) / scale**3
    quantile = (
        z
        + fourth * (z**3 - 3 * z) / 24
        + sixth * (z**5 - 10 * z**3 + 15 * z) / 720
        - fourth**2 * (3 * z**5 - 24 * z**3 + 29 * z) / 384
    )
    return np.asarray(np.abs(rows.sum(axis=1)) > quantile * np.sqrt(scale))


def rejected_by_samples(rows: Float64, level: float) -> NDArray[np.bool_]:
    """Return True for each row whose bootstrap-shift test has a p-value below about `level`."""
    # Quantile of a mean over samples drawn with replacement, as in `rejected_by_signs`.
    z = normal_quantile(1 - level / 2)
    n = rows.shape[1]
    square = (rows - rows.mean(axis=1, keepdims=True)) ** 2
    scale = square.sum(axis=1)
    fourth = (n * (square**2).sum(axis=1) / scale**2 - 3) / n
    quantile = z + fourth * (z**3 - 3 * z) / 24
    return np.asarray(np.abs(rows.sum(axis=1)) > quantile * np.sqrt(scale))


def _subset_sums(columns: Float64) -> Float64:
    sums = np.zeros((len(columns), 1))
    for column in columns.T:
        sums = np.concatenate([sums, sums + column[:, None]], axis=1)
    return sums


def _smallest(units: int, systems: int, draws: Draws) -> float:
    # All differences have one sign: 2 of all patterns, or no draw.
    return 2.0 ** (1 - units) if units <= draws.count.bit_length() else 1 / (draws.count + 1)


@significance(
    "permutation", drawn=True, smallest=_smallest, detection=Detection(exact_p_values, rejected_by_signs)
)
def permutation_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return two-sided p-values of the paired randomisation test of mean differences, float64[pairs].

    Exact if the nonzero differences have no more sign patterns than `draws`. Parameters: see `p_values`.
    """
    # Fisher 1935; Smucker, Allan and Carterette 2007.
    p = np.empty(len(pairs))
    open_ = np.ones(len(pairs), np.bool_)
    for number, (i, j) in enumerate(pairs.tolist()):
        differences = values[i] - values[j]
        differences = differences[differences != 0]
        if enumerated(len(differences), draws.count):
            p[number], open_[number] = exact_p(differences), False
    if open_.any():
        centred = values - values.mean(axis=0)
        # Swapping two systems on a query flips the sign of its difference.
        sums = sign_sums(centred, draws.count, draws.generator())
        p[open_] = _shares(values, pairs[open_], sums, draws.count)
    return p


@significance(
    "bootstrap-shift",
    drawn=True,
    smallest=lambda units, systems, draws: 1 / (draws.count + 1),
    detection=Detection(rejects=rejected_by_samples),
)
def bootstrap_shift_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return two-sided p-values of the bootstrap-shift test of mean differences, float64[pairs].

    Too liberal for few queries. Parameters: see `p_values`.
    """
    # Savoy 1997; Urbano, Lima and Hanjalic 2019, who shift by the mean of the resampled means, which is the
    # observed mean up to Monte Carlo error.
    centred = values - values.mean(axis=0)
    totals = centred.sum(axis=1)
    sums = (block - totals for block in resampled_sums(centred, draws.count, draws.generator()))
    return _shares(values, pairs, sums, draws.count)


def enumerated(differing: int, draws: int) -> bool:
    """Return True if the sign patterns of `differing` nonzero differences are at most about `draws`."""
    # Flipping the sign of the first difference mirrors every sum, so half the patterns tell all.
    return differing <= draws.bit_length()


def exact_p(differences: Float64) -> float:
    """Return the exact two-sided p-value of the randomisation test, 1 for none; holds 2^(n - 1) sums in
    memory.
    """
    if len(differences) == 0:
        return 1.0
    sums = differences[:1].copy()
    for d in differences[1:].tolist():
        sums = np.concatenate([sums + d, sums - d])
    tolerance = _ROUNDING * float(np.abs(differences).sum())
    return float(np.mean(np.abs(sums) >= abs(float(differences.sum())) - tolerance))


def _shares(values: Float64, pairs: Pairs, sums: Iterator[Float64], draws: int) -> Float64:
    first, second = pairs.T
    scale = np.abs(values).sum(axis=1)
    observed = np.abs(values.sum(axis=1)[first] - values.sum(axis=1)[second])
    threshold = observed - _ROUNDING * (scale[first] + scale[second])
    larger: NDArray[np.int64] = np.zeros(len(pairs), np.int64)
    for block in sums:
        width = max(1, BLOCK_CELLS // len(block))
        for start in range(0, len(pairs), width):
            part = slice(start, start + width)
            by_system = block.T
            differences = by_system[first[part]] - by_system[second[part]]
            larger[part] += np.count_nonzero(np.abs(differences) >= threshold[part, None], axis=1)
    return p_of_draws(larger, draws)
