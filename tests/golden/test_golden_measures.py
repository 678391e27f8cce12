"""Weir's measures against figures of trec_eval, pytrec_eval, ir-measures, ranx, gdeval and BEIR.

`computed` comes from scripts/make_golden.py; `restated` are facts those programs print, with their digits.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.measures import MEASURES, score_run

HERE = Path(__file__).parent / "measures"
FILES = sorted(HERE.glob("*.json"))
CASES = [(f.stem, case) for f in FILES for case in json.loads(f.read_text(encoding="utf-8"))]
NAMED = [pytest.param(case, id=f"{stem}-{case['name']}") for stem, case in CASES]


def scored(case, measures, ties="trec", without_self=False):
    run = Run.of(case["run"], ties=ties)
    return score_run(Qrels.of(case["qrels"]), run.without_self() if without_self else run, measures)


def test_there_are_enough_cases_and_no_name_twice():
    names = [case["name"] for _, case in CASES]
    assert len(names) >= 40
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", NAMED)
def test_every_query_has_the_value_of_trec_eval(case):
    expected = case["computed"]["values"]
    scores = scored(case, list(expected), ties="trec9")
    assert scores.queries.tolist() == list(case["qrels"])
    for measure, values in expected.items():
        for query, value in zip(scores.queries, scores.of(measure).tolist(), strict=True):
            # trec_eval leaves a query out that the run does not hold; in Weir it counts 0.
            assert value == pytest.approx(values.get(query, 0.0), abs=1e-12), (measure, query)
            assert (query in values) == bool(case["run"].get(query))


RESTATED = [
    pytest.param(case, fact, id=f"{case['name']}-{fact['tool']}")
    for _, case in CASES
    for fact in case.get("restated", ())
]


@pytest.mark.parametrize(("case", "fact"), RESTATED)
def test_the_means_other_tools_print(case, fact):
    ties, self_matches = fact.get("ties", "trec"), fact.get("without_self", False)
    scores = scored(case, list(fact["means"]), ties, self_matches)
    step = 10.0 ** -fact["digits"]
    for measure, mean, printed in zip(
        scores.measures, scores.mean_values(), fact["means"].values(), strict=True
    ):
        if fact.get("cut"):  # gdeval.pl cuts digits off where the others round
            assert printed <= mean < printed + step, measure
        else:
            assert abs(mean - printed) <= max(0.5 * step, 1e-12) * (1 + 1e-9), measure


def test_the_float32_tie_is_a_tie_only_for_trec_eval_9():
    case = next(c for _, c in CASES if c["name"] == "float32-scores")
    assert scored(case, ["RR"], ties="trec").mean_values() == [1.0]
    assert scored(case, ["RR"], ties="trec9").mean_values() == [0.5]


def test_the_script_reproduces_the_files():
    pytest.importorskip("pytrec_eval")
    path = Path(__file__).resolve().parents[2] / "scripts" / "make_golden.py"
    spec = importlib.util.spec_from_file_location("make_golden", path)
    script = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(script)
    for file in FILES:
        cases = json.loads(file.read_text(encoding="utf-8"))
        assert script.text_of(cases) == file.read_text(encoding="utf-8"), f"{file.name}: run `make golden`"
        for case in cases:
            again = script.recomputed(case)
            assert list(again) == list(case)
            values, checked_in = again["computed"]["values"], case["computed"]["values"]
            assert values.keys() == checked_in.keys()
            for measure, row in values.items():
                assert row.keys() == checked_in[measure].keys()
                # Another C library may round a logarithm differently in the last place.
                assert all(math.isclose(v, checked_in[measure][q], rel_tol=1e-14) for q, v in row.items())
    sys.path[:] = before


def test_every_measure_that_trec_eval_has_is_certified():
    golden = Path(__file__).parent / "measures"
    cases = [case for file in golden.glob("*.json") for case in json.loads(file.read_text(encoding="utf-8"))]
    certified = {m.split("@")[0].split("(")[0] for case in cases for m in case["computed"]["values"]}
    restated = {
        m.split("@")[0].split("(")[0] for c in cases for fact in c.get("restated", ()) for m in fact["means"]
    }
    diversity = json.loads(golden.with_name("diversity.json").read_text(encoding="utf-8"))
    certified |= {m.split("@")[0].split("(")[0] for m in diversity["values"]}
    files = [
        json.loads(file.read_text(encoding="utf-8")) for file in golden.with_name("family").glob("*.json")
    ]
    for values in (v for file in files if isinstance(file, dict) for v in file["values"].values()):
        certified |= {m.split("@")[0].split("(")[0] for m in values}
    # These have no program that prints them digit by digit: tests/property holds them against plain
    # loops in fractions, tests/unit/test_family.py against what they are made of.
    alone = {"ContextPrecision", "DCG", "F", "IDCG", "NCG", "NuggetRecall", "NumRel", "Q", "RBP_residual"}
    alone |= {"Leak", "Stale", "Superseded"}  # no other program has them: tests/unit/test_document_rules.py
    assert certified | restated | alone == set(MEASURES.names()) | {"condensed"}
