"""Simulate verdicts that are looked at after each query, and gates of systems that move by themselves.

python scripts/make_calibration.py --looks [--repetitions 10000]   # some minutes; writes docs/calibration.md
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from weir.core.strings import Ids
from weir.stats.compare import ScoreTable
from weir.stats.distributions import normal_quantile, student_quantile
from weir.stats.gate import GateRules, gates
from weir.stats.power import ALPHA, POWER
from weir.stats.run_noise import RunNoise
from weir.stats.sequential import LEVEL, e_values

FIRST_LOOK, LAST_LOOK, TOGETHER = 10, 500, 250
FIXED_SIZES, TIMES = (50, 100, 300), (1, 2, 4)
SYSTEMS, BEST_QUERIES = (2, 4, 8), 200
KINDS = ("looks", "cost of looks", "best by looks", "noisy gates")
NOISY_SIZES, ASKED, SHARED = (50, 300), (5, 10), (0.0, 0.01, 0.02)
OWN, SPREAD = 0.05, 0.15
"""Deviations of a query's value from one asking to another, and of differences from query to query."""


def evidence(rows: np.ndarray) -> np.ndarray:
    """Return e-values of no difference after each query, float64[rows, n]."""
    return np.maximum(e_values(rows), e_values(-rows)) / 2


def t_found(rows: np.ndarray) -> np.ndarray:
    """Return whether a t-test of the queries so far finds a difference, bool[rows, n]."""
    n = np.arange(1, rows.shape[1] + 1)
    mean = np.cumsum(rows, axis=1) / n
    squares = np.maximum(np.cumsum(rows**2, axis=1) - n * mean**2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / np.sqrt(squares / (n - 1) / n)
    edges = [np.inf, *(student_quantile(1 - ALPHA / 2, int(df)) for df in n[1:] - 1)]
    return np.asarray(np.nan_to_num(t) > np.array(edges))


def within_unit(rows: np.ndarray) -> np.ndarray:
    """Return rows with those that leave -1..1 divided by their largest value; a mean of 0 stays one."""
    return np.asarray(rows / np.maximum(1, np.abs(rows).max(axis=1, keepdims=True)))


def false_verdicts(name: str, source, repetitions: int) -> Iterator[dict]:  # noqa: ANN001  a Source of make_calibration
    """How often equal systems are told apart at any look, and by tests that are not made for looking."""
    found, done = {"bets": 0, "t, each look": 0, "t, once": 0}, 0
    for part in range(0, repetitions, TOGETHER):
        rows = within_unit(source(np.random.default_rng([12, part, *name.encode()]), TOGETHER, LAST_LOOK)[0])
        by_t = t_found(rows)
        found["bets"] += int((evidence(rows).max(axis=1) >= 1 / (1 - LEVEL)).sum())
        found["t, each look"] += int(by_t[:, FIRST_LOOK - 1 :].any(axis=1).sum())
        found["t, once"] += int(by_t[:, -1].sum())
        done += TOGETHER
    for test, count in found.items():
        yield {
            "kind": "looks",
            "source": name,
            "queries": LAST_LOOK,
            "name": test,
            "count": done,
            "rate": count / done,
        }


def cost(name: str, matrix: np.ndarray, repetitions: int) -> Iterator[dict]:
    """How many queries a verdict takes where a t-test of a fixed size finds the effect with a probability of 80%."""
    for fixed in FIXED_SIZES:
        effect = (normal_quantile(1 - ALPHA / 2) + normal_quantile(POWER)) / fixed**0.5  # in deviations
        after, done, wrong = list[np.ndarray](), 0, 0
        for part in range(0, repetitions, TOGETHER):
            draw = np.random.default_rng([13, part, fixed, *name.encode()])
            systems, topics = matrix.shape
            first = draw.integers(0, systems, TOGETHER)
            d = matrix[first] - matrix[(first + draw.integers(1, systems, TOGETHER)) % systems]
            d = d - d.mean(axis=1, keepdims=True) + effect * d.std(axis=1, keepdims=True)
            rows = np.take_along_axis(
                within_unit(d), draw.integers(0, topics, (TOGETHER, TIMES[-1] * fixed)), axis=1
            )
            right, other = (e_values(way * rows) / 2 >= 1 / (1 - LEVEL) for way in (1, -1))
            after.append(np.where(right.any(axis=1), right.argmax(axis=1) + 1, np.inf))
            wrong += int(other.any(axis=1).sum())
            done += TOGETHER
        taken = np.concatenate(after)
        by = [float(np.mean(taken <= fixed * times)) for times in TIMES]
        yield {"kind": "cost of looks", "source": name, "queries": fixed, "name": "bets", "count": done,
               "rate": by[0], "by": by,
               "median": float(np.median(taken)), "mean": float(np.minimum(taken, TIMES[-1] * fixed).mean()),
               "wrong": wrong / done}  # fmt: skip


def best_of_equal(name: str, source, repetitions: int) -> Iterator[dict]:  # noqa: ANN001  a FamilySource
    """How often one of several equal systems is called best at any look, as `decide` calls it."""
    for systems in SYSTEMS:
        wrong = done = 0
        for part in range(0, repetitions, TOGETHER):
            values = source(np.random.default_rng([14, part, systems]), TOGETHER, systems, BEST_QUERIES)
            values = np.clip(values, 0, 1)
            called = np.zeros(TOGETHER, np.bool_)
            for one in range(systems):
                beaten = [
                    e_values(values[:, one] - values[:, other]).max(axis=1) >= systems / (1 - LEVEL)
                    for other in range(systems)
                    if other != one
                ]
                called |= np.all(beaten, axis=0)
            wrong, done = wrong + int(called.sum()), done + TOGETHER
        yield {"kind": "best by looks", "source": name, "queries": BEST_QUERIES, "name": str(systems), "count": done,
               "rate": wrong / done}  # fmt: skip


def noisy_gates(repetitions: int) -> Iterator[dict]:
    """How often a gate fails where nothing dropped, and each asking of a system moves all queries together."""
    for n, asked, shared in itertools.product(NOISY_SIZES, ASKED, SHARED):
        draw, failed = np.random.default_rng([15, n, asked, int(1000 * shared)]), {"with": 0, "without": 0}
        for _ in range(repetitions):
            again = draw.normal(0, shared, (asked, 1)) + draw.normal(0, OWN, (asked, n))
            noise = RunNoise("DCG@10", float(again.mean(axis=1).var(ddof=1)), asked - 1)
            moved = draw.normal(0, shared, 2) @ (1, -1) + draw.normal(0, OWN, (2, n)).sum(axis=0)
            d = draw.normal(0, SPREAD, n) + moved
            names, values = ("baseline", "candidate"), np.stack([np.zeros(n), d])
            table = ScoreTable("d", "DCG@10", names, values, queries=Ids.of(f"q{q}" for q in range(n)))
            for name, known in (("with", (noise,)), ("without", ())):
                failed[name] += gates([("", table)], GateRules(0, noise=known))[0].verdict == "fail"
        for name, count in failed.items():
            yield {"kind": "noisy gates", "source": f"{shared:g}, {asked}", "queries": n, "name": name,
                   "count": repetitions, "rate": count / repetitions}  # fmt: skip


def page(found: list[dict]) -> list[str]:
    """The section of docs/calibration.md."""
    lines = ["## Verdicts that are looked at after each query", "", LOOKS, ""]
    names = ("bets", "t, each look", "t, once")
    lines += ["| values | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    of_looks = [r for r in found if r["kind"] == "looks"]
    for source in dict.fromkeys(r["source"] for r in of_looks):
        rates = {r["name"]: r["rate"] for r in of_looks if r["source"] == source}
        lines.append(f"| {source} | " + " | ".join(f"{rates[name]:.1%}" for name in names) + " |")
    lines += [
        "",
        BEST,
        "",
        "| systems | " + " | ".join(map(str, SYSTEMS)) + " |",
        "|---" * (len(SYSTEMS) + 1) + "|",
    ]
    best = {r["name"]: r["rate"] for r in found if r["kind"] == "best by looks"}
    lines.append("| called best | " + " | ".join(f"{best[str(n)]:.1%}" for n in SYSTEMS) + " |")
    lines += ["", COST, ""]
    head = ["values", "fixed size", *(f"{times}x" for times in TIMES), "median", "mean", "wrong"]
    lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in (r for r in found if r["kind"] == "cost of looks"):
        cells = [str(r["source"]), str(r["queries"]), *(f"{share:.1%}" for share in r["by"])]
        cells += [f"{r['median']:.0f}", f"{r['mean']:.0f}", f"{r['wrong']:.2%}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Gates of systems that move by themselves", "", NOISE, ""]
    head = [
        "shared deviation, askings",
        *(f"{n}, {how}" for n in NOISY_SIZES for how in ("without", "with noise")),
    ]
    lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    of_gates = {
        (r["source"], r["queries"], r["name"]): r["rate"] for r in found if r["kind"] == "noisy gates"
    }
    for source in dict.fromkeys(source for source, _, _ in of_gates):
        rates = [of_gates[source, n, how] for n in NOISY_SIZES for how in ("without", "with")]
        lines.append("| " + " | ".join([source, *(f"{rate:.1%}" for rate in rates)]) + " |")
    return [*lines, ""]


LOOKS = f"""`weir gate --sequential`, `weir judge --until-decided` and `weir open POOL` are looked at after each query.
How often equal systems are told apart at any of {LAST_LOOK} looks (`bets`) should be at most 5%; beside it, a t-test
that is looked at after each query from the tenth on, and one of all queries."""
BEST = f"How often one of several equal systems is called best at any of {BEST_QUERIES} looks, at most 5%:"
COST = f"""What looking costs: the effect is that which a t-test of a fixed size finds 80 times in 100. Shares of
verdicts after as many queries, and after two and four times as many; the number of queries at the verdict (the mean
stops at {TIMES[-1]} times); shares of wrong verdicts at any look:"""
NOISE = f"""A gate fails where nothing dropped, though asking a system again moves all its queries together by a
deviation (and each by another {OWN:g}; differences of queries deviate by {SPREAD:g}). `--noise` allows for what was
seen in some askings, and should keep it at 5%. By queries; 5,000 repetitions each, known to within 0.6 points:"""


def measured(
    nulls: Mapping[str, object],
    matrices: Mapping[str, np.ndarray],
    families: Mapping[str, object],
    repetitions: int,
) -> Iterator[dict]:
    """Every figure of looks."""
    yield from noisy_gates(max(4, repetitions // 2))
    for name, source in nulls.items():
        yield from false_verdicts(name, source, repetitions)
    for name, source in families.items():
        yield from best_of_equal(name, source, repetitions)
    for name, matrix in matrices.items():
        yield from cost(name, matrix, max(TOGETHER, repetitions // 5))
