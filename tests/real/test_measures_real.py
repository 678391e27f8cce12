"""More of the measures on stored runs: as trec_eval prints them for its own files, and BIRCO's recomputed figures."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from tests.certified import plain_qrels, plain_run
from tests.conftest import SHARED

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.files.runs import read_qrels, read_run
from weir.measures import score_run
from weir.measures.evaluate import Conventions

pytestmark = pytest.mark.real
TESTS = SHARED / "data" / "trec_eval-tests"
BIRCO = SHARED / "data" / "birco"
PRINTED = {
    "G": "G",
    "Rndcg": "RnDCG",
    "binG": "binG",
    "gm_bpref": "gmbpref",
    "gm_map": "gmAP",
    "ndcg_1=3,2=9,4=4.5": "nDCG(gain='1=3,2=9,4=4.5')",
    "ndcg_rel": "nDCG_rel",
    "num_nonrel_judged_ret": "NumNonrelRet",
    "set_relative_P": "SetR_cap",
    "utility": "Utility",
    "utility_2,-1,0,0": "Utility(hit=2.0)",
}
GRADED = {"G", "Rndcg", "ndcg_rel"}  # trec_eval's option -l changes nothing for them
FILES = [
    ("qrels.test", "results.test", "out.test.a", {}),
    ("qrels.test", "results.test", "out.test.aq", {}),
    ("qrels.test", "results.trunc", "out.test.aqc", {}),
    ("qrels.test", "results.trunc", "out.test.aqcM", {"first": 100}),
    ("qrels.rel_level", "results.test", "out.test.aql", {"rel": 2}),
    ("qrels.test", "results.test", "out.test.meas_params", {}),
]


def weir_name(name: str, rel: int) -> str | None:
    """What Weir calls a measure that trec_eval prints, or None."""
    settings = [f"rel={rel}"] if rel > 1 and name not in GRADED else []
    if name.startswith("Rprec_mult_"):
        times = float(name.rpartition("_")[2])
        return f"Rprec({', '.join([*settings, f'times={times}'])})"
    found = PRINTED.get(name)
    return found and (f"{found}({', '.join(settings)})" if settings else found)


@pytest.mark.parametrize("version", ["v9.0.8", "v10.0"])
@pytest.mark.parametrize(("judged", "run", "expected", "options"), FILES, ids=str)
def test_what_trec_eval_prints_for_its_own_files(shared: Path, version, judged, run, expected, options):
    folder, rel = TESTS / version, options.get("rel", 1)
    rows = [line.split() for line in (folder / expected).read_text(encoding="utf-8").split("\n")]
    named = [
        (row[1], weir_name(row[0], rel), float(row[2]))
        for row in rows
        if len(row) == 3 and weir_name(row[0], rel)
    ]
    assert len({name for _, name, _ in named}) >= (4 if "params" in expected else 15)
    ours = read_run(folder / run, ties="trec9" if version == "v9.0.8" else "trec")
    ours = ours.top(options["first"]) if "first" in options else ours
    scores = score_run(read_qrels(folder / judged), ours, {name for _, name, _ in named})
    means = dict(zip(scores.measures, scores.mean_values().tolist(), strict=True))
    for query, text, printed in named:
        name = str(score_run(read_qrels(folder / judged), ours, text).measures[0])
        if query == "all":
            found = scores.of(name).sum() if name.startswith("Num") else means[name]
        else:
            found = scores.of(name)[int(scores.queries.codes([query])[0])]
        assert found == pytest.approx(printed, abs=0.5e-4 + 1e-9), (query, name)


OF_BIRCO = {
    "R@5": "R@5",
    "R@10": "R@10",
    "R@20": "R@20",
    "R@100": "R@100",
    "nDCG@10": "nDCG@10",
    "MRR@10": "RR(of='best')@10",
    "MAP": "AP",
}
# Its rankings are of the test queries, whose judgments are there for two datasets.
LISTED = sorted((BIRCO / "ranks").glob("relic/*.json")) + sorted((BIRCO / "ranks").glob("wtb/*.json"))


@pytest.mark.parametrize("path", LISTED, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_what_birco_computes(shared: Path, path: Path):
    name = path.parent.name
    expected = json.loads((BIRCO / "expected_metrics.json").read_text(encoding="utf-8"))[name][path.stem]
    assert expected.keys() == OF_BIRCO.keys()
    judged = plain_qrels(BIRCO / "beir" / name / "qrels" / "test.tsv")
    scores = score_run(Qrels.of(judged), Run.of(plain_run(path)), OF_BIRCO.values())
    assert scores.answered.all()
    for theirs, mean in zip(OF_BIRCO, scores.mean_values().tolist(), strict=True):
        assert mean == pytest.approx(expected[theirs]["mean"], rel=0, abs=1e-12), theirs
        assert expected[theirs]["n"] == len(scores.queries)


def as_birco(grades: dict[str, float], ranked: list[str]) -> dict[str, float]:
    """Its scorer's figures of one query, as NOTES.md tells them: gains by the grade itself, relevance from 1."""
    gains = [[grades[d] for d in ranked], sorted(grades.values(), reverse=True)]
    found, best = (sum(g / math.log2(rank + 1) for rank, g in enumerate(row[:10], 1)) for row in gains)
    relevant = [rank for rank, d in enumerate(ranked, 1) if grades[d] >= 1]
    first = next(rank for rank, d in enumerate(ranked, 1) if grades[d] == max(grades.values()))
    told = {"nDCG@10": found / best, "MRR@10": 1 / first if first <= 10 else 0.0}
    if relevant:
        told["MAP"] = sum(n / rank for n, rank in enumerate(relevant, 1)) / len(relevant)
        told |= {f"R@{k}": sum(rank <= k for rank in relevant) / len(relevant) for k in (5, 10, 20, 100)}
    return told


@pytest.mark.parametrize("name", ["doris-mae-dev", "clinical-trial-dev"])
@pytest.mark.parametrize("seed", range(3))
def test_what_birco_computes_of_grades_with_fractions(shared: Path, name: str, seed: int):
    path = BIRCO / "beir" / name / "qrels" / "dev.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    grades: dict[str, dict[str, float]] = {}
    for query, doc, grade in rows:
        grades.setdefault(query, {})[doc] = float(grade)
    ranked = {query: sorted(pool) for query, pool in grades.items()}
    for pool in ranked.values():
        random.Random(seed).shuffle(pool)
    qrels = read_qrels(path)
    assert qrels.fractional == (name == "doris-mae-dev")
    assert qrels.to_dict() == grades
    named = OF_BIRCO | {"MRR@10": "RR(of='best', rel=0.001)@10"}
    told = {query: as_birco(grades[query], order) for query, order in ranked.items()}
    for theirs, ours in named.items():
        conventions = Conventions(empty="zero" if theirs in ("nDCG@10", "MRR@10") else "left-out")
        values = score_run(qrels, Run.of(ranked), ours, conventions).values[0]
        expected = [told[query].get(theirs, math.nan) for query in qrels.queries.tolist()]
        assert values.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), theirs
