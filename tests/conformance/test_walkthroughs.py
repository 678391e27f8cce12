"""The walk-throughs of CONTRIBUTING.md do what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.unit.brooklet import write_collection

from weir.datasets.catalogue import Entry

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(heading: str, language: str) -> str:
    """The first code block under a heading."""
    found = re.search(rf"## {heading}\n.*?```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found.group(1)


def run_with(code: str, tail: str, tmp_path: Path) -> str:
    """What a fresh interpreter prints after the code of a walk-through and some more."""
    program = tmp_path / "program.py"
    program.write_text(f"{code}\n\n{tail}\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_add_a_measure(tmp_path):
    tail = """
import weir
scores = weir.evaluate({"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 2.0, "y": 1.0}, "b": {"y": 1.0}}, ["FirstPlace", "FirstPlace(rel=2)"])
print(scores.measures, scores.values.tolist())
"""
    out = run_with(block("Add a measure", "python"), tail, tmp_path)
    assert out.strip() == "('FirstPlace', 'FirstPlace(rel=2)') [[1.0, 0.0], [0.0, 0.0]]"


def test_add_a_collection():
    facts = tomllib.loads(block("Add a collection", "toml"))
    grades = {int(grade): count for grade, count in facts.pop("grades").items()}
    entry = Entry(
        name="example", grades=grades, **{k: tuple(v) if k == "urls" else v for k, v in facts.items()}
    )
    assert (entry.archive, entry.here, entry.self_match) == ("example.zip", False, "keep")


def test_add_a_system(tmp_path):
    collection = write_collection(tmp_path / "brooklet")
    tail = f"""
from weir.cli import main
main(["run", "-d", {str(collection)!r}, "-s", "longest", "-m", "R@6", "-o", {str(tmp_path / "results")!r}, "--json", "-q"])
"""
    row = json.loads(run_with(block("Add a system", "python"), tail, tmp_path))
    assert (row["system"], row["mean"], row["answered"]) == ("longest", 1.0, 4)


def test_try_a_system_of_your_own(tmp_path):
    tail = """
corpus = weir.Corpus.of({"d1": "a dam", "d2": "a weir in a river", "d3": "a meadow with a weir"})
queries = weir.Queries.of({"q1": "weir", "q2": "dam"})
print(weir.system(longest).index(corpus).search(queries, 2).to_dict())
fused = weir.rrf(weir.BM25(), longest)
print(fused, list(fused.index(corpus).search(queries, 1).to_dict()["q1"]))
"""
    out = run_with(block("Try a system of your own", "python"), tail, tmp_path).splitlines()
    assert out == [
        "{'q1': {'d3': 2.0, 'd2': 1.0}, 'q2': {'d3': 2.0, 'd2': 1.0}}",
        "rrf(bm25, longest) ['d3']",
    ]
