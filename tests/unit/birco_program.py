"""A program with the face of BIRCO's evaluation/rank2metric.py, for tests of what asks it.

BIRCO's own is not part of the project and was not at hand: this one is written from the description of it in
../shared/data/birco/NOTES.md, by loops over lists, with its slips, and shares no code with Weir. It is run in a folder
beside `datasets`, as `python rank2metric.py --dataset_name relic --boot true --rank_path FILE`.
"""

from __future__ import annotations

import argparse
import math
import pickle
from pathlib import Path

import numpy as np

NAMES = ("doris-mae", "arguana", "clinical-trial", "wtb", "relic")


def recall(grades, ranked, k):
    relevant = [d for d, grade in grades.items() if grade >= 1]
    return sum(d in relevant for d in ranked[:k]) / len(relevant) if relevant else None


def average_precision(grades, ranked):
    hits, total = 0, 0.0
    for place, document in enumerate(ranked, 1):
        if grades[document] >= 1:
            hits += 1
            total += hits / place
    relevant = sum(grade >= 1 for grade in grades.values())
    return total / relevant if relevant else None


def ndcg(grades, ranked):
    ideal = sorted(grades.values(), reverse=True)
    found = best = 0.0
    for place in range(10):
        found += grades[ranked[place]] / math.log2(place + 2)
        best += ideal[place] / math.log2(place + 2)
    return found / best


def reciprocal_rank(grades, ranked):
    """1 / rank of the first document of the highest grade; of equal grades the last of the list is left out."""
    pool = sorted(grades, key=lambda d: -grades[d])
    last = 0
    while last < len(pool) - 1 and grades[pool[last]] == grades[pool[0]]:
        last += 1
    best = pool[:last]
    return next((1 / place for place, d in enumerate(ranked[:10], 1) if d in best), 0.0)


def per_query(qrel, ranks):
    """The values of each measure, of the queries that count."""
    found = {"R@5": [], "R@10": [], "R@20": [], "R@100": [], "NDCG@10": [], "MRR@10": [], "MAP": []}
    for query, grades in qrel.items():
        ranked = ranks[query]
        values = [recall(grades, ranked, k) for k in (5, 10, 20, 100)]
        values += [ndcg(grades, ranked), reciprocal_rank(grades, ranked), average_precision(grades, ranked)]
        for name, value in zip(found, values, strict=True):
            if value is not None:
                found[name].append(value)
    return found


def resampled(values):
    """(mean, deviation) of a thousand bootstrap means."""
    np.random.seed(42)  # noqa: NPY002 - the legacy generator is the point
    means = []
    for _ in range(1000):
        chosen = np.random.choice(range(len(values)), len(values), replace=True)  # noqa: NPY002 - the legacy generator is the point
        means.append(np.mean([values[i] for i in chosen]))
    return np.mean(means), np.std(means)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--dataset_name", choices=NAMES, required=True)
    options.add_argument("--boot", default="false")
    options.add_argument("--rank_path", type=Path, required=True)
    given = options.parse_args()
    test_set = Path("..") / "datasets" / given.dataset_name / "test_set.pickle"
    qrel = pickle.loads(test_set.read_bytes())["qrel"]  # written by the test
    found = per_query(qrel, pickle.loads(given.rank_path.read_bytes()))
    for name, values in found.items():
        if given.boot.lower() == "true":
            label = {"R@10": "R@100", "NDCG@10": "NDCG", "MRR@10": "MRR"}.get(name, name)
            mean, deviation = resampled(values)
            print(f"{label}: {100 * mean:.3f} ± {100 * deviation:.3f}")
        else:
            print(f"{name}: {100 * np.mean(values):.3f}")


if __name__ == "__main__":
    main()
