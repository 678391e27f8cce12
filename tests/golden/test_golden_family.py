"""The family of measures against figures of trec_eval, gdeval, ir-measures, cwl-eval and ndeval.

`cases.json` holds the cases, the other files what programs compute of them: scripts/make_golden_family.py.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest
from tests.reference_more import MORE

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.measures import MEASURES, parse_measure, score_run

HERE = Path(__file__).parent / "family"
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_golden_family.py"


def read(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


CASES = {case["name"]: case for case in read("cases")}
PROGRAMS = {
    program: read(program) for program in ("pytrec_eval", "gdeval", "cwl_eval", "ir_measures", "ndeval")
}
# Two programs order tied documents their own way: their figures of these cases are of other rankings.
OTHER_TIES = {"cwl_eval": {"tie-docid-desc", "random-sampled"}, "ndeval": {"tie-docid-desc"}}
LEAST = math.log(0.00001)
SILENT = {"Accuracy"}  # about a query without pairs it says nothing
NAMED = [
    pytest.param(program, name, id=f"{program}-{name}")
    for program, found in PROGRAMS.items()
    for name in found["values"]
    if name not in OTHER_TIES.get(program, ())
]


def scored(case, measures, ties):
    return score_run(Qrels.of(case["qrels"]), Run.of(case["run"], ties=ties), measures)


def test_every_case_is_computed_by_trec_eval_and_no_name_is_twice():
    assert list(PROGRAMS["pytrec_eval"]["values"]) == list(CASES)
    assert len(CASES) == len(read("cases"))
    assert all(found["tool"] for found in PROGRAMS.values())
    assert {name: len(found["values"]) > 10 for name, found in PROGRAMS.items()} == dict.fromkeys(
        PROGRAMS, True
    )


@pytest.mark.parametrize(("program", "name"), NAMED)
def test_every_query_has_the_value_of_the_program(program, name):
    expected = PROGRAMS[program]["values"][name]
    scores = scored(CASES[name], list(expected), "trec9" if program == "pytrec_eval" else "trec")
    for measure, values in expected.items():
        assert values.keys() <= set(scores.queries.tolist())
        for query, value in zip(scores.queries, scores.of(measure).tolist(), strict=True):
            # A query that the run does not answer is left out by all of them, and by gdeval one
            # without a relevant document; in Weir both count 0.
            missing = LEAST if measure.removeprefix("condensed(").startswith("gm") else 0.0
            if query in values or measure.partition("(")[0].partition("@")[0] not in SILENT:
                assert value == pytest.approx(values.get(query, missing), rel=0, abs=1e-12), (measure, query)


RESTATED = [
    pytest.param(case, fact, id=f"{name}-{fact['tool']}")
    for name, case in CASES.items()
    for fact in case.get("restated", ())
]


@pytest.mark.parametrize(("case", "fact"), RESTATED)
def test_the_means_that_tools_print(case, fact):
    scores = scored(case, list(fact["means"]), "trec")
    for measure, mean, printed in zip(
        scores.measures, scores.mean_values(), fact["means"].values(), strict=True
    ):
        assert abs(mean - printed) <= max(0.5 * 10.0 ** -fact["digits"], 1e-12) * (1 + 1e-9), measure


def test_all_measures_with_a_program_are_here_and_the_others_are_held_against_plain_loops():
    here = {
        parse_measure(m).name for found in PROGRAMS.values() for row in found["values"].values() for m in row
    }
    first = {"AP", "DCG", "Hole", "Judged", "P", "R", "RR", "Success", "nDCG"}
    intents = {
        name for name in MEASURES.names() if MEASURES.get(name).of == "intents"
    }  # test_golden_diversity.py
    # Q is AP where gains weigh nothing, F@k is made of P and R, the residual and NumRel are printed by trec_eval 10:
    # tests/unit/test_family.py, tests/real.
    rules = {name for name in MEASURES.names() if MEASURES.get(name).of == "rules"}  # test_document_rules.py
    others = set(MEASURES.names()) - here - first - intents - rules - set(MORE)
    assert others == {"F", "NumRel", "Q", "RBP_residual"}


def test_the_script_reproduces_what_trec_eval_says():
    pytest.importorskip("pytrec_eval")
    spec = importlib.util.spec_from_file_location("make_golden_family", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(script)
    for program, found in PROGRAMS.items():
        assert script.text_of(found) == (HERE / f"{program}.json").read_text(encoding="utf-8")
    again, checked_in = script.computed("pytrec_eval")["values"], PROGRAMS["pytrec_eval"]["values"]
    sys.path[:] = before
    assert list(again) == list(checked_in)
    for name, values in again.items():
        assert list(values) == list(checked_in[name])
        for measure, row in values.items():
            assert row.keys() == checked_in[name][measure].keys()
            assert all(math.isclose(v, checked_in[name][measure][q], rel_tol=1e-14) for q, v in row.items())
