"""Weir passes every golden vector, and the vectors and their page are what the scripts make."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

import weir
from weir.core.filters import DocumentLists
from weir.errors import BadValue, WeirError
from weir.measures import parse_measure, score_run
from weir.measures.evaluate import parse_conventions
from weir.plugins.conform.adapters import weir as adapter
from weir.plugins.conform.run_adapter import numbers
from weir.plugins.conform.vectors import as_questions, groups, vectors

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ROOT / "src" / "weir" / "plugins" / "conform" / "adapters"
ALL = vectors()
ANSWERED = [v for v in ALL if v.error is None]
REFUSED = [v for v in ALL if v.error is not None]


def script(name):
    if str(ROOT / "scripts") not in sys.path:
        sys.path.insert(0, str(ROOT / "scripts"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scored(vector):
    """Weir's scores through its public face, and the values that the vector's convention asks for."""
    asked = vector.case.conventions
    end = asked.ties in ("worst", "best")
    conventions = (
        f"ties={'bounds' if end else asked.ties}, missing={asked.missing}, empty={asked.empty}, "
        f"self_matches={asked.self_matches}"
    )
    run = weir.Run.of({q: dict(row) for q, row in vector.case.run.items()})
    candidates, excluded = (
        DocumentLists.of(lists.get(q, ()) for q in run.queries)
        for lists in (vector.case.candidates, vector.case.excluded)
    )
    run = run.among(candidates).without(excluded)
    qrels = {q: dict(row) for q, row in vector.case.qrels.items()}
    if set(run.queries) & qrels.keys():
        scores = weir.evaluate(qrels, run, vector.measures, conventions)
    else:  # which the public face takes for a mistake
        with pytest.raises(BadValue, match=r"no query in common|no ranking"):
            weir.evaluate(qrels, run, vector.measures)
        rules = parse_conventions(conventions)
        scores = score_run(weir.Qrels.of(qrels), run, vector.measures, rules)
    if not end:
        return scores, scores.values, scores.mean_values()
    worst = asked.ties == "worst"
    return scores, scores.low if worst else scores.high, scores.tie_bounds()[:, 0 if worst else 1]


@pytest.mark.filterwarnings("ignore:.* judged ones? but for:weir.errors.RankingWarning")
@pytest.mark.parametrize("vector", ANSWERED, ids=lambda v: v.id)
def test_weir_says_the_exact_value(vector):
    scores, values, means = scored(vector)
    for row, mean, expected in zip(values, means, vector.expected, strict=True):
        found = dict(zip(scores.queries.tolist(), row.tolist(), strict=True))
        found = {q: v for q, v in found.items() if not math.isnan(v)}
        assert list(found) == list(expected.per_query), expected.name
        pairs = [(v, float(expected.per_query[q])) for q, v in found.items()]
        for value, exact in [*pairs, (mean, float(expected.mean))]:
            assert math.isclose(value, exact, rel_tol=1e-12, abs_tol=1e-12), expected.name


@pytest.mark.parametrize("vector", REFUSED, ids=lambda v: v.id)
def test_weir_refuses_with_an_error_of_its_own(vector):
    question = numbers(as_questions([vector])[0])
    for measure in question["measures"]:
        with pytest.raises(WeirError) as refusal:
            adapter.value(question, measure)
        assert "report it" not in str(refusal.value)


def test_the_vectors_are_what_the_script_makes():
    folder = ROOT / "src" / "weir" / "plugins" / "conform" / "vectors"
    made = script("make_vectors").texts()
    assert set(made) == {path.name for path in folder.glob("*.json")}
    for name, text in made.items():
        assert (folder / name).read_text(encoding="utf-8") == text, "run scripts/make_vectors.py"


def test_there_are_enough_of_them_and_each_says_what_it_shows():
    assert len(ALL) >= 300
    assert len({v.id for v in ALL}) == len(ALL)
    assert {v.group for v in ALL} == set(groups())
    for v in ALL:
        assert v.shows.endswith("."), v.id
        assert len(v.shows.split()) >= 2, v.id
        assert v.measures, v.id


def test_every_measure_of_the_oracle_is_asked_and_weir_reads_every_name():
    from weir.plugins.conform.oracle import DEFINITIONS

    names = {name for v in ALL for name in v.measures}
    assert {parse_measure(name).name for name in names} == set(DEFINITIONS)


def test_values_have_digits_enough():
    for v in ANSWERED:
        for expected in v.expected:
            for number in (expected.mean, *expected.per_query.values()):
                digits = sum(c.isdigit() for c in number.decimal.partition("E")[0])
                assert digits >= 20 or number.fraction is not None, (v.id, expected.name)


def test_the_page_says_what_was_found_for_these_vectors():
    make = script("make_conformance")
    known = json.loads((ROOT / "docs" / "conformance.json").read_text(encoding="utf-8"))
    assert known["vectors"] == make.vectors_fingerprint(), (
        "ask the tools again with scripts/make_conformance.py"
    )
    assert {raw["tool"] for raw in known["tools"]} == set(make.ORDER)
    assert (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8") == make.page(known)
    weirs = make.read(known["tools"][0])
    assert weirs.tool == "weir"
    assert weirs.clean == weirs.asked == len(ALL)


@pytest.mark.parametrize("path", sorted(ADAPTERS.glob("*.py")), ids=lambda p: p.stem)
def test_an_adapter_stands_alone(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert (ast.get_docstring(tree) or "").endswith(".")
    names = {
        target.id
        for node in tree.body
        for target in getattr(node, "targets", [])
        if isinstance(target, ast.Name)
    }
    names |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert {"PACKAGE", "FOLLOWS", "HOLDS"} <= names
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert path.stem == "weir" or imported == {"__future__", "typing"}
