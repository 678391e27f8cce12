"""Measure how often the tests err and the intervals cover, and write docs/calibration.md from docs/calibration.jsonl.

    python scripts/make_calibration.py [--scores FOLDER] [--repetitions 10000]   # measures, some ten minutes
    python scripts/make_calibration.py --page                                    # rewrites the page alone

FOLDER: the topic x system matrices of Urbano, Lima and Hanjalic (SIGIR 2019, CC BY-SA 4.0); by default
../shared/data/trec-score-matrices beside the checkout. They are not part of the project, the rates found are.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from weir.stats import compare  # noqa: F401  registers the tests
from weir.stats.compare import ComparisonMethod
from weir.stats.intervals import bounds, two_level_means
from weir.stats.power import SOME_UNITS, detectable, excess_kurtosis, reach
from weir.stats.significance import Draws, adjusted, all_pairs, p_values

ROOT = Path(__file__).resolve().parents[1]
STORED, PAGE = ROOT / "docs" / "calibration.jsonl", ROOT / "docs" / "calibration.md"
SIZES = (25, 50, 100, 300)
TESTS = ("t", "permutation", "bootstrap-shift", "wilcoxon", "sign")
INTERVALS = ("t", "studentised", "bca", "percentile")
MATRICES = {"TREC-8, AP": "adhoc8_ap", "Web 2013, nDCG@20": "web2013_ndcg20"}
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


def measured(folder: Path, repetitions: int) -> list[dict]:
    """Every figure, with a line on stderr for each."""
    matrices = {
        name: np.ascontiguousarray(np.genfromtxt(folder / f"{file}.csv", delimiter=",", skip_header=1).T)
        for name, file in MATRICES.items()
    }
    nulls = {"simulated, equal systems": alike} | {
        f"{name}, systems swapped": real(matrix, "swapped") for name, matrix in matrices.items()
    }
    nulls |= {"simulated, skewed": skewed} | {
        f"{name}, recentred": real(matrix, "recentred") for name, matrix in matrices.items()
    }
    rows = {
        "simulated, one system": one_system,
        "simulated, equal systems": alike,
        "simulated, skewed": skewed,
    }
    rows |= {f"{name}, differences": real(matrix, "as they are") for name, matrix in matrices.items()}
    found = []
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
    for part in parts:
        for record in part:
            found.append(record)
            print(record["kind"], record.get("source", ""), record["queries"], record["name"], record["rate"],
                  file=sys.stderr, flush=True)  # fmt: skip
    return found


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


def _uniform(found: list[dict], sources: list[str]) -> list[str]:
    rows = [
        r for r in found if r["kind"] == "error" and r["source"] in sources and r["name"] in DEFAULT_TESTS
    ]
    tenths = [t for r in rows for t in r["tenths"]]
    distance = max(r["distance"] for r in rows)
    said = f"The largest distance is {distance:.4f}; the shares lie between {min(tenths):.4f} and {max(tenths):.4f}."
    return [said, ""]


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
    given = parser.parse_args()
    if not given.page:
        found = measured(given.scores, given.repetitions)
        STORED.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    stored = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]
    PAGE.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main()
