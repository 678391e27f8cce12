"""Measure how often the tests err and the intervals cover, and write docs/calibration.md from docs/calibration.jsonl.

    python scripts/make_calibration.py [--scores FOLDER] [--repetitions 10000]   # measures, some ten minutes
    python scripts/make_calibration.py --small                                   # measures what is of small sizes anew
    python scripts/make_calibration.py --looks                                   # measures verdicts looked at anew
    python scripts/make_calibration.py --page                                    # rewrites the page alone

FOLDER: the topic x system matrices of Urbano, Lima and Hanjalic (SIGIR 2019, CC BY-SA 4.0); by default
../shared/data/trec-score-matrices beside the checkout. They are not part of the project, the rates found are.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import simulate_leaks
import simulate_looks
import simulate_migration
import simulate_questions

from weir.core.strings import Ids
from weir.plugins.labels.sampling import drawn_mean
from weir.stats.compare import ComparisonMethod, ScoreTable, verdicts_across
from weir.stats.distributions import normal_quantile, normal_tail
from weir.stats.gate import GateRules, gates
from weir.stats.power import (
    ALPHA,
    POWER,
    SOME_UNITS,
    detectable,
    equivalence,
    excess_kurtosis,
    queries_needed,
    reach,
)
from weir.stats.resampling import Draws, bounds, fewest, mean_bounds, two_level_means
from weir.stats.significance import adjusted, all_pairs, p_values

ROOT = Path(__file__).resolve().parents[1]
STORED, PAGE = ROOT / "docs" / "calibration.jsonl", ROOT / "docs" / "calibration.md"
SIZES = (25, 50, 100, 300)
TESTS = ("t", "permutation", "bootstrap-shift", "wilcoxon", "sign")
INTERVALS = ("t", "studentised", "bca", "percentile")
MATRICES = {"TREC-8, AP": "adhoc8_ap", "Web 2013, nDCG@20": "web2013_ndcg20"}
SMALL_DRAWS = 1_000
DRAWS, TOGETHER = 2_000, 500  # repetitions done together share their draws
SYSTEMS = (2, 5, 8)
FAMILY_SIZES = {"datasets": (2, 3, 5, 10, 19), "queries": (10, 25, 50, 100, 300, 1_000)}
FAMILY_DRAWS = {2: 4_000, 5: 4_000, 8: 10_000}  # some times what the strictest level needs

FamilySource = Callable[[np.random.Generator, int, int, int], np.ndarray]
"""(generator, repetitions, systems, queries) -> values of equal systems, float64[R, K, n]."""
Source = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]
"""(generator, repetitions, queries) -> rows of values, float64[R, n], and the true mean of each, float64[R]."""


def alike(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences of two systems whose scores have one distribution; a fifth of the queries tie."""
    d = draw.beta(0.6, 1.2, (count, n)) - draw.beta(0.6, 1.2, (count, n))
    return np.where(draw.random((count, n)) < 0.2, 0, d), np.zeros(count)


def skewed(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences of mean zero, many small losses and few large gains: a gamma distribution of skewness 1.4."""
    return draw.gamma(2, 0.1, (count, n)) - 0.2, np.zeros(count)


def one_system(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one system, most of them low: a beta distribution with mean 1/3."""
    return draw.beta(0.5, 1, (count, n)), np.full(count, 1 / 3)


def real(matrix: np.ndarray, how: str) -> Source:
    """Differences of two systems of a track on topics drawn with replacement, another two in each repetition.

    how: "swapped", the systems swapped at random on each topic; "recentred", less their mean; "as they are".
    """

    def source(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        systems, topics = matrix.shape
        first = draw.integers(0, systems, count)
        second = (first + draw.integers(1, systems, count)) % systems
        differences = matrix[first] - matrix[second]
        truth = differences.mean(axis=1)
        if how == "recentred":
            differences, truth = differences - truth[:, None], np.zeros(count)
        rows = np.take_along_axis(differences, draw.integers(0, topics, (count, n)), axis=1)
        if how == "swapped":
            rows, truth = rows * draw.choice([-1.0, 1.0], rows.shape), np.zeros(count)
        return rows, truth

    return source


def errors(name: str, source: Source, repetitions: int) -> Iterator[dict]:
    """How often each test finds a difference where there is none, at 0.05, and how even its p-values are."""
    for n in SIZES:
        found: dict[str, list[np.ndarray]] = {test: [] for test in TESTS}
        for part in range(0, repetitions, TOGETHER):
            draw = np.random.default_rng([1, n, part, *name.encode()])
            rows, _ = source(draw, TOGETHER, n)
            draws = Draws(DRAWS, int(draw.integers(2**31)))
            values = np.vstack([rows, np.zeros(n)])
            pairs = np.stack([np.arange(TOGETHER), np.full(TOGETHER, TOGETHER)], axis=1)
            for test in TESTS:
                found[test].append(p_values(test, values, pairs, draws))
        for test in TESTS:
            p = np.concatenate(found[test])
            yield {"kind": "error", "source": name, "queries": n, "name": test, "count": len(p)} | even(p)


def even(p: np.ndarray) -> dict:
    """The share below 0.05, the shares of the ten tenths, the largest distance from the uniform distribution."""
    ordered = np.sort(p)
    steps = np.arange(len(p) + 1) / len(p)
    distance = max(np.abs(ordered - steps[:-1]).max(), np.abs(ordered - steps[1:]).max())
    tenths = np.histogram(p, np.linspace(0, 1, 11))[0] / len(p)
    return {"rate": float(np.mean(p < 0.05)), "tenths": tenths.tolist(), "distance": float(distance)}


def families(repetitions: int) -> Iterator[dict]:
    """How often any of the six pairs of four equal systems is found different."""
    for n in SIZES:
        draw, found = np.random.default_rng([2, n]), {"tukey": 0, "holm": 0, "bonferroni": 0, "none": 0}
        for number in range(repetitions):
            values = draw.beta(1, 2, n) + draw.normal(0, 0.1, (4, n))
            found["tukey"] += int(p_values("tukey", values, draws=Draws(400, number)).min() < 0.05)
            p = p_values("t", values)
            for correct in ("holm", "bonferroni", "none"):
                found[correct] += int(adjusted(p, correct).min() < 0.05)
        for how, count in found.items():
            name = "tukey" if how == "tukey" else f"t, {how}"
            yield {
                "kind": "family",
                "queries": n,
                "name": name,
                "count": repetitions,
                "rate": count / repetitions,
            }


def coverage(name: str, source: Source, repetitions: int) -> Iterator[dict]:
    """How often a 95% interval holds the true mean, and how often it ends below or begins above it."""
    for n in SIZES:
        low: dict[str, int] = dict.fromkeys(INTERVALS, 0)
        high: dict[str, int] = dict.fromkeys(INTERVALS, 0)
        for part in range(0, repetitions, TOGETHER):
            draw = np.random.default_rng([3, n, part, *name.encode()])
            rows, truth = source(draw, TOGETHER, n)
            draws = Draws(DRAWS, int(draw.integers(2**31)))
            for how in INTERVALS:
                ends = bounds(rows, how, draws=draws)
                # The mean of topics drawn from a list is the truth but for rounding where all are equal.
                low[how] += int((ends[:, 1] < truth - 1e-12).sum())
                high[how] += int((ends[:, 0] > truth + 1e-12).sum())
        done = -(-repetitions // TOGETHER) * TOGETHER
        for how in INTERVALS:
            missed = {"below": low[how] / done, "above": high[how] / done}
            rate = 1 - missed["below"] - missed["above"]
            yield {
                "kind": "coverage",
                "source": name,
                "queries": n,
                "name": how,
                "count": done,
                "rate": rate,
            } | missed


def queries_alike(draw: np.random.Generator, count: int, systems: int, n: int) -> np.ndarray:
    """Values of equal systems on queries that are easy or hard for all."""
    return draw.beta(1, 2, (count, 1, n)) + draw.normal(0, 0.1, (count, systems, n))


def datasets_alike(draw: np.random.Generator, count: int, systems: int, n: int) -> np.ndarray:
    """Means of equal systems on datasets of 50 to 500 queries, each of which suits one more than another."""
    queries = draw.integers(50, 501, (count, 1, n))
    means = draw.normal(0, 0.02, (count, systems, n)) + draw.normal(0, 0.18, (count, systems, n)) / np.sqrt(
        queries
    )
    return draw.beta(2, 2, (count, 1, n)) + means


def topics_alike(matrix: np.ndarray) -> FamilySource:
    """Systems of a track on topics drawn with replacement, dealt anew on each topic, so that all are equal."""

    def source(draw: np.random.Generator, count: int, systems: int, n: int) -> np.ndarray:
        which = draw.random((count, len(matrix))).argpartition(systems - 1, axis=1)[:, :systems]
        values = matrix[which[:, :, None], draw.integers(0, matrix.shape[1], (count, 1, n))]
        return draw.permuted(values, axis=1)

    return source


def detected(
    unit: str, name: str, source: FamilySource, sizes: tuple[int, ...], repetitions: int
) -> Iterator[dict]:
    """How often a comparison of each with each finds what is not there, and how often the effect that it prints.

    The effect is printed from one sample; in another, one system is better by it than all others, which are equal.
    """
    for n, systems in itertools.product(sizes, SYSTEMS):
        method = ComparisonMethod(draws=FAMILY_DRAWS[systems])
        pairs = all_pairs(systems)
        family = method.family(len(pairs), systems, systems - 1)
        possible = reach(method.test, n, method.alpha, family, Draws(), systems)
        wrong, right, done = 0, 0.0, 0
        for part in range(0, repetitions // min(systems, 4), TOGETHER):
            draw = np.random.default_rng([5, n, systems, part, *name.encode()])
            draws = Draws(method.draws, int(draw.integers(2**31)))
            before, values = np.split(
                source(draw, TOGETHER, systems, 2 * n), 2, axis=2
            )  # of the same systems
            done += TOGETHER
            wrong += int((_least(values, pairs, draws).min(axis=1) < method.alpha).sum())
            if possible.possible:
                differences = before[:, pairs[:, 1]] - before[:, pairs[:, 0]]
                tails = [excess_kurtosis(rows) for rows in differences]
                shift = [
                    detectable(1.0, n, method.power, method.alpha, method.test, family, k) for k in tails
                ]
                values[:, 1] += (np.array(shift) * differences[:, 0].std(axis=1, ddof=1))[:, None]
                # The one that is better against each: all pairs of it are alike.
                right += float(
                    (_least(values, pairs, draws)[:, (pairs == 1).any(axis=1)] < method.alpha)
                    .mean(axis=1)
                    .sum()
                )
        yield {
            "kind": "detected",
            "source": name,
            "unit": unit,
            "queries": n,
            "name": f"{systems} systems",
            "count": done,
            "rate": right / done if possible.possible else None,
            "false": wrong / done,
            "fewest": possible.fewest,
        }


def _least(values: np.ndarray, pairs: np.ndarray, draws: Draws) -> np.ndarray:
    """The corrected p-values of the pairs of each repetition's systems, float64[R, P]; the first pair is (0, 1)."""
    count, systems, n = values.shape
    each = (np.arange(count)[:, None, None] * systems + pairs).reshape(-1, 2)
    p = p_values("permutation", values.reshape(-1, n), each, draws).reshape(count, -1)
    return np.stack([adjusted(row, "holm") for row in p])


def datasets(repetitions: int) -> Iterator[dict]:
    """Intervals of a difference over datasets whose own true differences vary, with 50 to 500 queries each."""
    for count in (5, 9, 18):
        draw, hits = np.random.default_rng([4, count]), dict.fromkeys(("t", "percentile", "two-level"), 0)
        for number in range(repetitions):
            true = draw.normal(0.02, 0.03, count)
            parts = [
                draw.normal(m, 0.25, (1, n)) for m, n in zip(true, draw.integers(50, 501, count), strict=True)
            ]
            means = np.array([[p.mean() for p in parts]])
            ends = {how: bounds(means, how, draws=Draws(1_000, number))[0] for how in ("t", "percentile")}
            drawn = two_level_means([[p] for p in parts], Draws(1_000, number))[:, 0]
            ends["two-level"] = np.quantile(drawn, [0.025, 0.975])
            for how, (low, high) in ends.items():
                hits[how] += int(low <= 0.02 <= high)
        for how, hit in hits.items():
            yield {
                "kind": "datasets",
                "queries": count,
                "name": how,
                "count": repetitions,
                "rate": hit / repetitions,
            }


# Small sizes: means over groups, shares, plans, gates and boards.

GROUPS, GROUP_QUERIES, BESIDE = (1, 5), (2, 3, 7, 10, 25, 50, 100), (60, 60)
JUDGED_QUERIES, SHARES, OF_QUERIES = (10, 25, 100), (0.5, 0.8, 0.9), 200
PILOTS, PLANNED = (6, 8, 10, 25, 100), 0.05
BOARDS, BOARD_QUERIES, BOARD_SYSTEMS = (9,), (2, 10, 100), 5
EQUIVALENT_QUERIES, MARGIN = (10, 30, 100, 300), 0.05


def mostly_ones(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one system, 80% of them 1."""
    values = draw.beta(2, 2, (count, n))
    return np.where(draw.random((count, n)) < 0.8, 1.0, values), np.full(count, 0.9)


def zero_or_one(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one system, 70% of them 1, the others 0."""
    return (draw.random((count, n)) < 0.7).astype(float), np.full(count, 0.7)


def of_one(matrix: np.ndarray) -> Source:
    """Scores of a system of a track on topics drawn with replacement, another system in each repetition."""

    def source(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        rows = matrix[draw.integers(0, len(matrix), count)]
        return np.take_along_axis(rows, draw.integers(0, matrix.shape[1], (count, n)), axis=1), rows.mean(
            axis=1
        )

    return source


def means_over_groups(
    name: str, source: Source, repetitions: int, counts: Sequence[int] = GROUPS, beside: Sequence[int] = ()
) -> Iterator[dict]:
    """How often the interval of a mean over groups of so many queries holds the truth; without one, how often.

    beside: queries of more groups.
    """
    for count, n in itertools.product(counts, GROUP_QUERIES):
        if count * n + sum(beside) < fewest():
            continue
        draw = np.random.default_rng([6, count, n, *name.encode()])
        sizes = (*[n] * count, *beside)
        parts, truths = zip(*(source(draw, repetitions, size) for size in sizes), strict=True)
        truth, unit = np.mean(truths, axis=0), np.ones(1, np.bool_)
        ends = np.array(
            [
                mean_bounds([part[r : r + 1] for part in parts], draw, resamples=SMALL_DRAWS, unit=unit)[0]
                for r in range(repetitions)
            ]
        )
        yield {
            "kind": "groups", "source": name, "queries": n, "count": repetitions,
            "name": f"{count}" + f" beside {len(beside)} of {max(beside, default=0)}" * bool(beside),
            "rate": float(np.mean((ends[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1]))),
        }  # fmt: skip


def estimates(repetitions: int) -> Iterator[dict]:
    """How often intervals of `labels estimate` hold the mean, where values are 0 or 1 and the model errs on a tenth."""
    for share, n in itertools.product(SHARES, JUDGED_QUERIES):
        draw, hits = np.random.default_rng([7, n, int(100 * share)]), {"people": 0, "corrected": 0}
        for _ in range(repetitions):
            human = (draw.random(OF_QUERIES) < share) * 1.0
            model = np.where(draw.random(OF_QUERIES) < 0.1, 1 - human, human)
            for name, weight in (("people", 0.0), ("corrected", None)):
                found = drawn_mean(human[:n], model[:n], model[n:], weight, (0.0, 1.0)).estimate()
                hits[name] += found.low <= share <= found.high
        for name, hit in hits.items():
            yield {"kind": "estimates", "source": f"{share:g}", "queries": n, "name": name, "count": repetitions,
                   "rate": hit / repetitions}  # fmt: skip


def plans(name: str, source: Source, repetitions: int) -> Iterator[dict]:
    """How often the t-test finds an effect on as many queries as a pilot of so many asks for."""
    for n in PILOTS:
        draw = np.random.default_rng([8, n, *name.encode()])
        pilots, _ = source(draw, repetitions, n)
        tails = np.array([excess_kurtosis(pilot[None]) for pilot in pilots])
        asked = {k: queries_needed(PLANNED, 1.0, POWER, ALPHA, "t", k, n) for k in np.unique(tails).tolist()}
        # So many are asked for of a deviation of 1, which is the true one; of another as many as its square says.
        needed = np.array([asked[k] for k in tails.tolist()]) * pilots.var(axis=1, ddof=1)
        edge = normal_quantile(1 - ALPHA / 2)
        chances = [normal_tail(edge - PLANNED * count**0.5) for count in needed.tolist()]
        yield {"kind": "plans", "source": name, "queries": n, "name": "t", "count": repetitions,
               "rate": float(np.mean(chances))}  # fmt: skip


def standard(values: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> Source:
    """A source of mean 0."""
    return lambda draw, count, n: (values(draw, (count, n)), np.zeros(count))


def standard_differences(matrix: np.ndarray) -> Source:
    """Differences of two systems of a track, less their mean and over their deviation, as `real`."""

    def source(draw: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        systems, topics = matrix.shape
        first = draw.integers(0, systems, count)
        rows = matrix[first] - matrix[(first + draw.integers(1, systems, count)) % systems]
        rows = (rows - rows.mean(axis=1, keepdims=True)) / np.maximum(rows.std(axis=1, keepdims=True), 1e-9)
        return np.take_along_axis(rows, draw.integers(0, topics, (count, n)), axis=1), np.zeros(count)

    return source


def gated(repetitions: int) -> Iterator[dict]:
    """How often so many queries as a gate names decide it, and how often anything fails where nothing dropped."""
    for change, verdict in ((0.0, "pass"), (-0.05, "fail"), (-0.022, "fail"), (-0.011, "fail")):
        for n in (30, 300):
            draw = np.random.default_rng([9, n, int(-1000 * change)])
            seen = draw.normal(0, 0.1, n)
            seen = (seen - seen.mean()) / seen.std(ddof=1) * 0.2 + change
            [one] = gates([("", _gate_table(seen))], GateRules(0.01))
            needed = one.needed if one.verdict == "undecided" else None
            if needed is None:
                continue
            rows = [draw.normal(change, 0.2, needed) for _ in range(repetitions)]
            right = [gates([("", _gate_table(row))], GateRules(0.01))[0].verdict == verdict for row in rows]
            yield {"kind": "gates", "source": f"{change:+g}", "queries": n, "name": verdict, "count": len(right),
                   "rate": float(np.mean(right)), "needed": needed}  # fmt: skip
    for groups, n in itertools.product((0, 5), (2, 10, 100)):
        draw, failed = np.random.default_rng([10, groups, n]), 0
        for _ in range(repetitions):
            parts = draw.normal(0, 0.1, (max(1, groups), n))
            cases = [("", _gate_table(parts.reshape(-1)))]
            cases += [(f"g{number}", _gate_table(row)) for number, row in enumerate(parts[:groups])]
            failed += any(one.verdict == "fail" for one in gates(cases, GateRules(0)))
        yield {"kind": "false failures", "queries": n, "name": str(groups), "count": repetitions,
               "rate": failed / repetitions}  # fmt: skip


def _gate_table(differences: np.ndarray) -> ScoreTable:
    values, names = np.stack([np.zeros(len(differences)), differences]), ("baseline", "candidate")
    return ScoreTable("d", "m", names, values, queries=Ids.of(f"q{q}" for q in range(len(differences))))


def boards(repetitions: int) -> Iterator[dict]:
    """How often a board of equal systems gives anything but the whole range of ranks."""
    for collections, n in itertools.product(BOARDS, BOARD_QUERIES):
        draw, narrower = np.random.default_rng([11, collections, n]), 0
        names, method = tuple("abcde"), ComparisonMethod(draws=1_000)
        for _ in range(repetitions):
            values = queries_alike(draw, collections, BOARD_SYSTEMS, n)
            tables = {f"d{d}": [ScoreTable(f"d{d}", "m", names, of)] for d, of in enumerate(values)}
            narrower += "better" in verdicts_across(tables, method).values()
        yield {"kind": "boards", "queries": n, "name": str(collections), "count": repetitions,
               "rate": narrower / repetitions}  # fmt: skip


def equivalents(repetitions: int) -> Iterator[dict]:
    """How often differences are called equivalent at 0.05: of a mean at the margin, falsely, and of mean 0."""

    def one_in(share: float, large: float, others: float) -> Source:
        return lambda draw, count, n: (
            np.where(draw.random((count, n)) < share, large, others),
            np.full(count, share * large + (1 - share) * others),
        )

    sources: dict[str, Source] = {
        "normal, deviation 0.1": standard(lambda draw, shape: draw.normal(0, 0.1, shape)),
        "heavy tails (Laplace), 0.1": standard(lambda draw, shape: draw.laplace(0, 0.1 / 2**0.5, shape)),
        "simulated, skewed": skewed,
        "one in 10 is 0.5, others 0": one_in(0.1, 0.5, 0.0),
        "one in 5 is 0.5, others -0.02": one_in(0.2, 0.5, -0.02),
        "one in 10 is 1, others -0.05": one_in(0.1, 1.0, -0.05),
    }
    for name, source in sources.items():
        for at in ("margin", "0") if "one in" not in name else ("margin",):
            for n in EQUIVALENT_QUERIES:
                draw = np.random.default_rng([12, n, *f"{name} {at}".encode()])
                rows, truth = source(draw, repetitions, n)
                margin = float(abs(truth[0])) or MARGIN
                shifted = rows + (margin if at == "margin" and not truth[0] else 0.0)
                found = [equivalence(row, margin) < ALPHA for row in shifted]
                yield {"kind": "equivalents", "source": name, "queries": n, "name": at, "count": repetitions,
                       "rate": float(np.mean(found))}  # fmt: skip


def small(matrices: dict[str, np.ndarray], repetitions: int) -> Iterator[dict]:
    """The figures of small sizes; a fifth of the repetitions of others, of gates a tenth, of boards a twentieth."""
    repetitions = max(4, repetitions // 5)
    [first, *_] = matrices.items()
    means: dict[str, Source] = {"simulated, one system": one_system, "simulated, 80% are 1": mostly_ones}
    means[f"{first[0]}, one system"] = of_one(first[1])
    for name, source in means.items():
        yield from means_over_groups(name, source, repetitions)
    for name, source in (("simulated, 0 or 1", zero_or_one), ("simulated, 80% are 1", mostly_ones)):
        yield from means_over_groups(name, source, repetitions, (1,), BESIDE)
    yield from estimates(repetitions)
    pilots = {
        "normal": standard(lambda draw, shape: draw.normal(0, 1, shape)),
        "heavy tails (Laplace)": standard(lambda draw, shape: draw.laplace(0, 0.5**0.5, shape)),
    }
    pilots |= {f"{name}, differences": standard_differences(matrix) for name, matrix in matrices.items()}
    for name, source in pilots.items():
        yield from plans(name, source, repetitions)
    yield from gated(max(4, repetitions // 2))
    yield from boards(max(4, repetitions // 4))
    yield from equivalents(repetitions)


def read_matrices(folder: Path) -> dict[str, np.ndarray]:
    """Values of the systems of each track, by its name, float64[K, topics]."""
    return {
        name: np.ascontiguousarray(np.genfromtxt(folder / f"{file}.csv", delimiter=",", skip_header=1).T)
        for name, file in MATRICES.items()
    }


def said(records: Iterable[dict]) -> list[dict]:
    """The records, with a line on stderr for each."""
    found = []
    for record in records:
        found.append(record)
        print(*record.values(), file=sys.stderr, flush=True)
    return found


def null_sources(matrices: dict[str, np.ndarray]) -> dict[str, Source]:
    """Differences whose mean is 0."""
    nulls: dict[str, Source] = {"simulated, equal systems": alike}
    nulls |= {f"{name}, systems swapped": real(matrix, "swapped") for name, matrix in matrices.items()}
    nulls["simulated, skewed"] = skewed
    return nulls | {f"{name}, recentred": real(matrix, "recentred") for name, matrix in matrices.items()}


def looks(matrices: dict[str, np.ndarray], repetitions: int) -> Iterator[dict]:
    """Verdicts that are looked at after each query."""
    families = {"queries, simulated": queries_alike}
    return simulate_looks.measured(null_sources(matrices), matrices, families, repetitions)


def measured(folder: Path, repetitions: int) -> list[dict]:
    """Every figure, with a line on stderr for each."""
    matrices = read_matrices(folder)
    nulls = null_sources(matrices)
    rows = {
        "simulated, one system": one_system,
        "simulated, equal systems": alike,
        "simulated, skewed": skewed,
    }
    rows |= {f"{name}, differences": real(matrix, "as they are") for name, matrix in matrices.items()}
    parts = [errors(name, source, 2 * repetitions) for name, source in nulls.items()]
    parts += [coverage(name, source, repetitions) for name, source in rows.items()]
    of_families: dict[str, tuple[str, FamilySource]] = {
        "datasets, simulated": ("datasets", datasets_alike),
        "queries, simulated": ("queries", queries_alike),
    }
    of_families |= {f"{name}, topics drawn": ("queries", topics_alike(m)) for name, m in matrices.items()}
    parts += [families(repetitions), datasets(max(1, repetitions // 10))]
    parts += [
        detected(unit, name, source, FAMILY_SIZES[unit], repetitions)
        for name, (unit, source) in of_families.items()
    ]
    parts += [
        small(matrices, repetitions),
        looks(matrices, repetitions),
        simulate_leaks.measured(),
    ]
    return said(itertools.chain(*parts))


def page(found: list[dict]) -> str:
    """The page, from the figures alone."""
    out = [INTRODUCTION]
    nulls = list(dict.fromkeys(r["source"] for r in found if r["kind"] == "error"))
    fair = [s for s in nulls if "equal" in s or "swapped" in s]
    for title, sources in (
        ("equal systems", fair),
        ("equal means, unequal systems", [s for s in nulls if s not in fair]),
    ):
        out += [f"## Share of false findings at 0.05: {title}", ""]
        out += [TITLES[title], "", *_table(found, "error", sources, TESTS, ".4f")]
    out += ["## Are p-values uniform?", "", UNIFORM, "", *_uniform(found, fair)]
    out += ["## All pairs of four equal systems together", "", FAMILY, ""]
    out += _table(found, "family", [""], ("tukey", "t, holm", "t, bonferroni", "t, none"), ".4f")
    sources = list(dict.fromkeys(r["source"] for r in found if r["kind"] == "coverage"))
    out += ["## How often a 95% interval holds the truth", "", COVERAGE, ""]
    out += _table(found, "coverage", sources, INTERVALS, ".1%")
    out += ["## Intervals of a mean over datasets", "", DATASETS, ""]
    out += _table(found, "datasets", [""], ("t", "percentile", "two-level"), ".1%")
    out += ["## How often a printed effect is found", "", DETECTED, "", *_detected(found)]
    out += ["## Small sizes", "", SMALL, "", *_small(found), *simulate_looks.page(found)]
    out += simulate_leaks.page(found)
    out += simulate_migration.page(found)
    out += simulate_questions.page(found)
    return "\n".join(out).rstrip() + "\n"


def _table(found: list[dict], kind: str, sources: list[str], names: tuple[str, ...], form: str) -> list[str]:
    at = {(r.get("source", ""), r["queries"], r["name"]): r["rate"] for r in found if r["kind"] == kind}
    unit = "datasets" if kind == "datasets" else "queries"
    head = [*(["values"] if sources != [""] else []), unit, *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for source in sources:
        if source.startswith(LEFT_OUT):
            continue
        for n in dict.fromkeys(q for s, q, _ in at if s == source and (q in SHOWN or unit == "datasets")):
            cells = [format(at[source, n, name], form) for name in names]
            lines.append("| " + " | ".join([*([source] if source else []), str(n), *cells]) + " |")
    return [*lines, ""]


def _detected(found: list[dict]) -> list[str]:
    """A line for each source and number of queries or datasets: how often effects and false verdicts are found."""
    rows: dict[tuple[str, int, str], dict[str, dict]] = {}
    for r in found:
        if r["kind"] == "detected" and r["queries"] in SHOWN_EFFECTS and not r["source"].startswith(LEFT_OUT):
            rows.setdefault((r["source"], r["queries"], r["unit"]), {})[r["name"]] = r
    names = ("2 systems", "8 systems")
    head = ["values", "queries or datasets", *names, *(f"false, {name}" for name in names)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (source, n, unit), row in rows.items():
        effects = [
            f"none; takes {row[name]['fewest']} {unit}"
            if row[name]["rate"] is None
            else f"{row[name]['rate']:.1%}"
            for name in names
        ]
        lines.append(
            "| "
            + " | ".join([source, f"{n:,}", *effects, *(f"{row[name]['false']:.1%}" for name in names)])
            + " |"
        )
    return [*lines, ""]


def _small(found: list[dict]) -> list[str]:
    """The tables of small sizes."""
    lines = list[str]()
    for kind, text, head in SMALL_TABLES:
        own = [r for r in found if r["kind"] == kind]
        sizes = sorted({r["queries"] for r in own})
        lines += [text, "", "| " + " | ".join([*head, *map(str, sizes)]) + " |"]
        lines += ["|" + "---|" * (len(head) + len(sizes))]
        for source, label in dict.fromkeys((r.get("source", ""), r["name"]) for r in own):
            at = {r["queries"]: r for r in own if (r.get("source", ""), r["name"]) == (source, label)}
            cells = ["none" if n not in at else f"{at[n]['rate']:.1%}" for n in sizes]
            if kind == "gates":
                cells = [f"{at[n]['rate']:.1%} ({at[n]['needed']:,})" if n in at else "-" for n in sizes]
            names = [part for part in (source, label) if part]
            lines.append("| " + " | ".join([*names, *cells]) + " |")
        lines.append("")
    return lines


def _uniform(found: list[dict], sources: list[str]) -> list[str]:
    rows = [
        r for r in found if r["kind"] == "error" and r["source"] in sources and r["name"] in DEFAULT_TESTS
    ]
    tenths = [t for r in rows for t in r["tenths"]]
    distance = max(r["distance"] for r in rows)
    said = f"The largest distance is {distance:.4f}; the shares lie between {min(tenths):.4f} and {max(tenths):.4f}."
    return [said, ""]


SMALL = """With few queries percentiles of resampled means are too narrow, and a mean over groups of two held the truth
75 times in 100. So means of fewer than 50 queries, or over groups of fewer, have Student's interval, shares Wilson's;
there is none for fewer than 6 queries, a group of a single one, and values that are all equal. `none` stands for what
has no interval. Coverage should lie between 93% and 97%. Where nearly all values are 1 and there are few, it is above;
of skewed scores, as of TREC-8, it is a point below with ten queries. Shares come in steps: of 0.8 Wilson's interval
holds 92.6% with 25 queries, whatever is done.
Each figure comes from 2,000 repetitions (gates 1,000, boards 500), and is known to within about 1 point (gates 1.5,
boards 2)."""
SMALL_TABLES = (
    (
        "groups",
        "The interval of a mean over groups holds the truth, by queries of each group:",
        ("values", "groups"),
    ),
    (
        "estimates",
        "Shares of 200 queries, by how many of them people judged (`weir labels estimate`):",
        ("share", "estimate"),
    ),
    (
        "plans",
        """An effect is found on as many queries as `weir power` asks for, by queries of the pilot. If the tails are so
heavy that the variance has no variance (Student's t with 3 degrees of freedom) it is found 70 times in 100:""",
        ("differences", "test"),
    ),
    (
        "gates",
        """A gate with an allowed drop of 0.01 is decided on as many queries as it asks for (in brackets), by the change
and the queries seen:""",
        ("change", "decided"),
    ),
    (
        "false failures",
        "A gate fails anything where nothing dropped, by queries of each group:",
        ("groups",),
    ),
    (
        "boards",
        "A board of five equal systems has a range of ranks other than 1-5, by queries of each collection:",
        ("collections",),
    ),
    (
        "equivalents",
        """Systems are called equivalent (`--margin`): falsely where the true difference is the margin, rightly where it
is 0 (margin 0.05). The first should be at most 5%. Skewed differences with few large ones beyond the margin exceed it
by a point or two with few queries, as by every t-test:""",
        ("differences", "true difference"),
    ),
)
DEFAULT_TESTS = ("t", "permutation")
LEFT_OUT = "Web 2013"
"""The values whose tables the page leaves out; its figures are like those of TREC-8."""
SHOWN = (25, 300)
"""The numbers of queries whose shares the page shows; calibration.jsonl holds the others, too."""
SHOWN_EFFECTS = (10, 19, 25, 100)
"""The same for printed effects: numbers of datasets or queries."""
INTRODUCTION = f"""# Calibration

This page shows how often the tests report a difference that does not exist, and how often the intervals contain the
true value. `python scripts/make_calibration.py` measures all of it and writes this page; do not edit it.
`docs/calibration.jsonl` holds every figure, also those for Web 2013 and other numbers of queries, which are left
out here.

- Each figure comes from 10,000 repetitions (single tests 20,000, intervals over datasets 1,000, printed effects
  5,000 or 2,500), and is known to within 0.0044 (share of 0.05), 0.5 points (95%) or 1.3 points (printed effects).
- Resampling draws {DRAWS:,} times ({FAMILY_DRAWS[2]:,} to {FAMILY_DRAWS[8]:,} for printed effects).
- Values are simulated, or drawn with replacement from the topics of TREC-8 ad hoc (129 systems) and Web 2013, two
  other systems in each repetition. Scores: Urbano, Lima and Hanjalic, SIGIR 2019, CC BY-SA 4.0.
"""
TITLES = {
    "equal systems": """The scores of the two systems could be swapped. `t` and `permutation` should lie between
0.045 and 0.055. `bootstrap-shift` finds too many differences with few queries; `sign` finds too few where values
tie.""",
    "equal means, unequal systems": """Differences average zero but are skewed: one system loses a little on many
queries and gains much on few. `t`, `permutation` and `bootstrap-shift` test the mean, and approach 0.05 as
queries are added. `wilcoxon` and `sign` test the median, which is not zero: more queries make them worse.""",
}
UNIFORM = """Without a difference every p-value should be equally likely. For `t` and `permutation` the page
has the largest distance of their distribution from the uniform one, and the shares of the ten tenths, near 0.1."""
FAMILY = """How often any of the six pairs is found different. `tukey` should be near 0.05, a correction at most
there."""
COVERAGE = """A share below 95% means that the interval is too narrow. `t` is the default for differences and
`percentile` for the mean of one system. With 25 or 50 queries `percentile` is one to three points short. `t` and
`studentised` come nearest."""
DATASETS = """The true difference varies between datasets with 50 to 500 queries each. With few datasets
`percentile` is too narrow. `two-level` also draws queries anew and is wider. `t` is the default."""
DETECTED = f"""Two samples of the same equal systems are drawn. The first gives the minimum detectable effect of a
pair (permutation, Holm over all pairs). In the second, one system is better than all others by that effect. The
effect should be found 80 times in 100. `false` is how often any pair of equal systems is called different; it
should be at most 5%. Where no p-value can come below the level, Weir prints how many queries or datasets it takes
instead of an effect.

The effect rests on the estimated deviation of the differences. Up to {SOME_UNITS} queries or datasets a simulation
of the test with a stated seed gives the effect; beyond, the t-test does."""


def main() -> None:
    """Measure unless told not to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--scores", type=Path, default=ROOT.parent / "shared" / "data" / "trec-score-matrices"
    )
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--looks", action="store_true")
    parser.add_argument("--leaks", action="store_true")
    parser.add_argument("--migration", action="store_true")
    parser.add_argument("--questions", action="store_true")
    given = parser.parse_args()
    stored = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]
    if given.migration or given.questions:
        one = simulate_migration if given.migration else simulate_questions
        anew = one.measured(given.scores.parent, 500) if given.migration else one.measured()
        found = [record for record in stored if record["kind"] not in one.KINDS] + said(anew)
        STORED.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    elif given.leaks:
        found = [record for record in stored if record["kind"] not in simulate_leaks.KINDS]
        found += said(simulate_leaks.measured())
        STORED.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    elif given.small or given.looks:
        kinds = simulate_looks.KINDS if given.looks else [kind for kind, *_ in SMALL_TABLES]
        found = [record for record in stored if record["kind"] not in kinds]
        anew = looks if given.looks else small
        found += said(anew(read_matrices(given.scores), given.repetitions))
        STORED.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    elif not given.page:
        own = {*simulate_migration.KINDS, *simulate_questions.KINDS}  # each made anew by its option
        found = measured(given.scores, given.repetitions) + [one for one in stored if one["kind"] in own]
        STORED.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    stored = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]
    PAGE.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main()
