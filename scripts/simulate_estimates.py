"""Simulate how often intervals of estimates hold the truth: the figures of docs/labels.md and import.md.

    python scripts/simulate_estimates.py [orders] [precision] [few] [clicks] [--repetitions 2000]   # some ten minutes

Each table is printed as Markdown, to be put on its page. tests/golden/test_estimate_coverage.py repeats a part of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures.measure import parse_measure
from weir.plugins.importing.click_models import ClickLog, click_shares, parse_click_model
from weir.plugins.labels.estimates import corrected_precision
from weir.plugins.labels.sampling import drawn_mean
from weir.stats.order_agreement import kendall_tau, order_interval, spearman, tau_ap

ORDERS = {"tau": kendall_tau, "tau_AP": tau_ap, "Spearman": spearman}
RESAMPLES = 200
JUDGES = {"good (0.9, 0.7)": (0.9, 0.7), "weak (0.6, 0.55)": (0.6, 0.55), "guessing (0.5, 0.5)": (0.5, 0.5)}
"""Sensitivity and specificity."""
MEASURES = ("P@10", "Success@10", "RR@10", "RBP@10", "DCG@10", "ERR@10")


def two_labels(
    draw: np.random.Generator, systems: int, bias: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Values of systems by two sets of labels for a query, without end; the second is biased by system, and noisier."""
    true = draw.normal(0.5, 0.05, systems)
    biased = true + draw.normal(0, bias, systems)
    while True:
        both = draw.normal(0, 0.2) + draw.normal(0, 0.2, systems)
        yield np.clip(true + both, 0, 1), np.clip(biased + both + draw.normal(0, 0.15, systems), 0, 1)


def orders(
    systems: int, queries: int, bias: float, repetitions: int, seed: int = 1
) -> dict[str, tuple[float, float]]:
    """How often intervals of statistics of two orders hold the mean over draws of so many queries; their mean width."""
    draw = np.random.default_rng(seed)
    inside, width = (dict.fromkeys(ORDERS, 0.0) for _ in range(2))
    populations = max(1, repetitions // 50)
    for _ in range(populations):
        source = two_labels(draw, systems, bias)

        def sample(source: Iterator[tuple[np.ndarray, np.ndarray]] = source) -> np.ndarray:
            return np.array([next(source) for _ in range(queries)]).transpose(
                1, 2, 0
            )  # [2, systems, queries]

        means = [sample().mean(axis=2) for _ in range(300)]
        for name, statistic in ORDERS.items():
            truth = float(np.mean([statistic(*one) for one in means]))
            for _ in range(repetitions // populations):
                values = sample()
                times = draw.multinomial(queries, np.full(queries, 1 / queries), RESAMPLES) / queries
                drawn = [statistic(*(values @ one)) for one in times]
                steps = systems * (systems - 1) // 2
                low, high = order_interval(statistic(*values.mean(axis=2)), drawn, queries, steps)
                inside[name] += low <= truth <= high
                width[name] += high - low
    count = repetitions // populations * populations
    return {name: (inside[name] / count, width[name] / count) for name in ORDERS}


def labelled_pairs(
    draw: np.random.Generator, queries: int, prevalence: float, errors: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of ten documents of each query by people and a model of this sensitivity and specificity."""
    human = draw.random((queries, 10)) < draw.beta(3 * prevalence, 3 - 3 * prevalence, queries)[:, None]
    chance = np.where(human, errors[0], 1 - errors[1])
    return human, draw.random((queries, 10)) < chance


def precision(
    judged: int, prevalence: float, errors: tuple[float, float], repetitions: int
) -> tuple[float, float]:
    """How often Rogan and Gladen's estimate is given, and how often its interval holds the truth then."""
    draw, given, inside = np.random.default_rng(2), 0, 0
    for _ in range(repetitions):
        human, model = labelled_pairs(draw, 200, prevalence, errors)
        cells = np.zeros((200, 2, 2))
        for one in (0, 1):
            for other in (0, 1):
                cells[:judged, one, other] = ((human == one) & (model == other))[:judged].sum(axis=1)
        try:
            found = corrected_precision(np.full(200, 10.0), model.sum(axis=1).astype(float), cells, 10)
        except BadValue:
            continue
        given += 1
        inside += found.low <= prevalence <= found.high
    return given / repetitions, inside / given if given else float("nan")


def few_queries(queries: int, repetitions: int, names: tuple[str, ...] = MEASURES) -> dict[str, float]:
    """How often intervals of corrected means hold the truth: a population of 4,000 queries, grades 0 to 3, a model."""
    draw, count = np.random.default_rng(3), 4_000
    chance = draw.beta(0.8, 1.6, count)[:, None] * np.linspace(1.2, 0.5, 10)
    human = (draw.random((count, 10)) < chance) * draw.integers(1, 4, (count, 10))
    wrong = draw.random((count, 10)) < 0.2
    model = np.where(wrong, draw.integers(0, 4, (count, 10)), human)
    columns = {}
    for name in names:
        columns[name] = [_values(name, grades) for grades in (human, model)]
    inside = dict.fromkeys(names, 0)
    for _ in range(repetitions):
        rows = draw.integers(0, count, queries + 300)
        for name, (by_people, by_model) in columns.items():
            mine, alone = rows[:queries], rows[queries:]
            found = drawn_mean(by_people[mine], by_model[mine], by_model[alone]).estimate()
            inside[name] += found.low <= by_people.mean() <= found.high
    return {name: hits / repetitions for name, hits in inside.items()}


def _values(name: str, grades: np.ndarray) -> np.ndarray:
    """A measure of rankings whose documents have these grades, by query."""
    documents = [f"d{n}" for n in range(10)]
    queries = [f"{n:05d}" for n in range(len(grades))]
    qrels = Qrels.of(
        {q: dict(zip(documents, row, strict=True)) for q, row in zip(queries, grades.tolist(), strict=True)}
    )
    run = Run.of({query: documents for query in queries})
    return parse_measure(name).per_query(Judged.of(run, qrels))


def click_log(
    draw: np.random.Generator, queries: int, shown: int, favour: float
) -> tuple[ClickLog, np.ndarray, np.ndarray]:
    """A log, the attraction of each pair, and examination; favour: how far six like rankings follow attraction."""
    attraction = draw.beta(1, 2, (queries, 10))
    examined = np.arange(1, 11) ** -0.8
    usual = favour * attraction + draw.normal(0, 0.3, (queries, 10))
    ranked = np.argsort(-(usual[:, None] + draw.normal(0, 0.2, (queries, 6, 10))), axis=2)
    times = 1 + draw.poisson(shown / 6, (queries, 6, 1)).repeat(10, axis=2)
    chance = np.take_along_axis(attraction[:, None].repeat(6, axis=1), ranked, axis=2) * examined
    pair = ranked + 10 * np.arange(queries)[:, None, None]
    position = np.broadcast_to(np.arange(1, 11), pair.shape)
    columns = (pair, position, draw.binomial(times, chance).astype(float), times.astype(float))
    return ClickLog(*(column.reshape(-1) for column in columns)), attraction.reshape(-1), examined


def clicks(repetitions: int, favour: float, shown: int = 300) -> dict[str, tuple[float, float, float, float]]:
    """Of each model: rank correlation with attraction, mean error, share held by intervals, their mean width."""
    draw, found = np.random.default_rng(4), {}
    for _ in range(repetitions):
        log, attraction, examined = click_log(draw, 60, shown, favour)
        given = "pbm=" + ",".join(f"{one:.12g}" for one in examined)
        for name, text in {
            "ctr": "ctr",
            "coec": "coec",
            "pbm, given": given,
            "pbm, estimated": "pbm",
        }.items():
            shares = click_shares(log, parse_click_model(text))
            value, low, high = (
                np.array([getattr(one, of) for one in shares]) for of in ("value", "low", "high")
            )
            tau = np.mean(
                [kendall_tau(value[a : a + 10], attraction[a : a + 10]) for a in range(0, len(value), 10)]
            )
            held = ((low <= attraction) & (attraction <= high)).mean()
            found.setdefault(name, []).append((tau, (value - attraction).mean(), held, (high - low).mean()))
    return {name: tuple(np.mean(rows, axis=0).tolist()) for name, rows in found.items()}


def _table(head: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["orders", "precision", "few", "clicks"])
    parser.add_argument("--repetitions", type=int, default=2000)
    asked = parser.parse_args()
    times = asked.repetitions
    if "orders" in asked.tables:
        rows = []
        for systems in (3, 5, 10, 30):
            for queries in (20, 50, 200):
                found = [orders(systems, queries, bias, times) for bias in (0.0, 0.02, 0.1)]
                cells = [
                    f"{one[name][0]:.1%} (±{one[name][1] / 2:.2f})"
                    for one in found
                    for name in ("tau", "tau_AP")
                ]
                rows.append([str(systems), str(queries), *cells])
        _table(
            [
                "systems",
                "queries",
                *[f"{n}, {b}" for b in ("same order", "near", "other") for n in ("tau", "tau_AP")],
            ],
            rows,
        )
    if "precision" in asked.tables:
        rows = []
        for name, errors in JUDGES.items():
            for judged in (20, 60):
                found = [precision(judged, share, errors, times) for share in (0.05, 0.4, 0.85)]
                rows.append([name, str(judged), *[f"{given:.0%}: {held:.1%}" for given, held in found]])
        _table(["judge", "queries judged", "P@10 0.05", "0.4", "0.85"], rows)
    if "few" in asked.tables:
        rows = []
        for queries in (10, 20, 50, 100):
            found = few_queries(queries, times)
            rows.append([str(queries), *[f"{one:.1%}" for one in found.values()]])
        _table(["queries judged", *MEASURES], rows)
    if "clicks" in asked.tables:
        rows = []
        by_log = [clicks(max(1, times // 20), favour) for favour in (1.0, 0.0)]
        for name in by_log[0]:
            cells = [name]
            for tau, error, held, width in (one[name] for one in by_log):
                told = ["-", "-"] if name == "coec" else [f"{error:+.3f}", f"{held:.1%} (±{width / 2:.3f})"]
                cells += [f"{tau:.2f}", *told]
            rows.append(cells)
        heads = ["tau", "mean error", "interval holds it"]
        _table(
            ["model", *[f"{one}, {log}" for log in ("good rankings", "arbitrary rankings") for one in heads]],
            rows,
        )


if __name__ == "__main__":
    main()
