"""The walk-throughs of CONTRIBUTING.md do what they say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.unit.brooklet import write_collection

from weir.datasets.catalogue import Entry

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


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


PLACED = {
    "Add a check of an audit": (
        "audit/query_lengths.py",
        ("audit/__init__.py", "    howlers,\n", "    howlers,\n    query_lengths,\n"),
        ["audit", "--list"],
        "long queries",
    ),
    "Add a measure": (
        "measures/library/first_place.py",
        ("measures/__init__.py", "from weir.measures.library.gains import", "from weir.measures.library.first_place import FirstPlace\n"
         "from weir.measures.library.gains import"),
        ["measures", "FirstPlace"],
        "1 where the first document returned is relevant",
    ),
    "Add a system": (
        "systems/longest.py",
        ("systems/protocol.py", '"dense": "dense",', '"dense": "dense", "longest": "longest",'),
        ["systems", "longest"],
        "longest",
    ),
}  # fmt: skip


@pytest.mark.parametrize("heading", PLACED)
def test_put_where_the_text_says_the_gates_hold_and_the_command_line_knows_it(heading, tmp_path):
    file, (home, before, after), command, said = PLACED[heading]
    for name in ("src", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "benchmarks"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    package = tmp_path / "src" / "weir"
    (package / file).write_text(block(heading, "python"), encoding="utf-8")
    text = (package / home).read_text(encoding="utf-8")
    assert before in text
    (package / home).write_text(text.replace(before, after, 1), encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "WEIR_HOME": str(tmp_path / "home")}

    def ran(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran("scripts/gates.py")
    if importlib.util.find_spec("ruff"):
        ran("-m", "ruff", "check", "--no-cache", str(package / file))
        ran("-m", "ruff", "format", "--check", "--no-cache", str(package / file))
    assert said in ran("-m", "weir", *command)


def test_every_file_of_the_map_is_there():
    named = re.findall(r"\| `(src/weir/\S+)` \|$", TEXT, re.MULTILINE)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_file_that_the_architecture_names_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|tsv|toml))`", text))
    assert len(named) > 30
    places = (ROOT, ROOT / "src", ROOT / "src" / "weir")
    assert sorted(name for name in named if not any((place / name).is_file() for place in places)) == []


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
