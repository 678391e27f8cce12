"""weir labels estimate on TREC 2019 Deep Learning: people's judgments of half of the queries and UMBRELA's of all."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.files.runs import read_run
from weir.measures import parse_measure
from weir.plugins.labels.estimates import corrected_scores

pytestmark = pytest.mark.real
DRAWS = 40


@pytest.fixture(scope="module")
def labels(shared):
    people, model = {}, {}
    with gzip.open(shared / "data" / "llm-judgments" / "methods.dl19.tsv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            people.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["human"])
            model.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["umbrela_gpt4o"])
    return people, model


@pytest.mark.parametrize("name", ["P(rel=2)@10", "DCG@10"])
def test_corrected_scores_hold_what_people_say_of_all_queries(shared, labels, name):
    people, model = labels
    folder = shared / "data" / "trec-dl" / "runs" / "dl19"
    paths = sorted(folder.iterdir())
    runs = {path.name: read_run(path).top(10) for path in (paths[0], paths[-1])}
    measure, names, rng = parse_measure(name), sorted(people), np.random.default_rng(3)
    every, bar = Qrels.of(people), Qrels.of(model)
    truth = {system: float(measure.per_query(Judged.of(run, every)).mean()) for system, run in runs.items()}
    inside, apart, narrower = [], [], []
    for _ in range(DRAWS):
        few = Qrels.of({n: people[n] for n in rng.permutation(names)[:22].tolist()})
        found = corrected_scores(runs, few, bar, measure)
        inside += [one.corrected.low <= truth[one.system] <= one.corrected.high for one in found]
        narrower += [
            (one.corrected.high - one.corrected.low) / (one.human.high - one.human.low) for one in found
        ]
        [difference] = found[0].differences
        low, high = difference.corrected.low, difference.corrected.high
        apart.append(low <= truth[found[1].system] - truth[found[0].system] <= high)
    # The queries of the collection are fewer than all there could be, of which the interval is, so it holds them more
    # often than its level.
    assert np.mean(inside) >= 0.95
    assert np.mean(apart) >= 0.95
    assert np.mean(narrower) < 1
    assert max(narrower) <= 1.05
